"""Replies: what a person said in the place of a tool's result, an answer to questions or the refusal of a call."""

from __future__ import annotations

from typing import Any, NamedTuple

from aether.messages.model import as_object, as_text
from aether.messages.records import Record
from aether.messages.tool_calls import answers_in, is_refusal, words_of_refusal

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterator

# Of Claude Code: without these it asked nobody, and refused the call by its settings.
_NOT_ASKED = ("haven't granted", "approval settings")
_HEAD_CHARS = 400
# Codex and Cline.
_REFUSALS = ("rejected by user", "The user denied this operation")
_ANSWER_IS, _NOTES = '"="', '" notes: '
# Several answers come of one part of a line; a record is named by its line and part.
_PARTS = 1_000


def reply(result: Record, words: str = "") -> Record:
    """Return the refusal in a `result`, with the person's reason; another result as it is.

    `words` are those of the person, if the source has them apart.
    """
    head = result.text[:_HEAD_CHARS]
    refused = is_refusal(result.text) or any(refusal in head for refusal in _REFUSALS)
    if not (result.is_error and refused) or any(policy in head for policy in _NOT_ASKED):
        return result
    return result._replace(kind="refusal", text=words or words_of_refusal(result.text))


def answers(result: Record, questions: Any, choices: Any = None, notes: Any = None) -> list[Record]:
    """Return a person's answers to `questions`, one record each; none if nobody answered.

    `questions` are those of the call; `choices` the answers by question or by its id, each a text, a list, or an object with
    `answers`; without them they are read from the text of the `result`. `notes` are what the person wrote about an answer.
    """
    entries = [_question(question) for question in (questions if isinstance(questions, list) else [])]
    if isinstance(choices, dict) and choices:
        by_name = {name: question for question in entries for name in question[:2] if name}
        pairs = [
            (by_name.get(name, _Question("", name, [])), *_chosen(choice, as_object(notes).get(name)))
            for name, choice in choices.items()
        ]
    else:
        pairs = list(_read(result.text, entries))
    filled = [pair for pair in pairs if pair[2]]
    return [
        result._replace(
            kind="answer", text=words, is_error=False, part=result.part + nth * _PARTS,
            arguments={"question": question.text, "options": question.options, "choice": choice or words},
        )
        for nth, (question, choice, words) in enumerate(filled)
    ]  # fmt: skip


class _Question(NamedTuple):
    id: str
    text: str
    options: list[str]


def _question(question: Any) -> _Question:
    about = as_object(question)
    listed = about.get("options")
    options = (
        as_text(option) or as_text(as_object(option).get("label"))
        for option in (listed if isinstance(listed, list) else [])
    )
    text = as_text(about.get("question")) or as_text(about.get("title")) or as_text(question)
    return _Question(as_text(about.get("id")), text, [*filter(None, options)])


def _chosen(choice: Any, notes: Any) -> tuple[str, str]:
    """Return what a person chose, and how the person said it: the choice with the notes on it."""
    listed = as_object(choice).get("answers", choice)
    texts = [as_text(text) for text in (listed if isinstance(listed, list) else [listed])]
    noted = [text.removeprefix("user_note:").strip() for text in texts if text.startswith("user_note:")]
    noted += filter(None, [as_text(as_object(notes).get("notes"))])
    chosen = ", ".join(text for text in texts if text and not text.startswith("user_note:"))
    return chosen, "\n".join(filter(None, [chosen, *noted]))


def _read(text: str, entries: list[_Question]) -> Iterator[tuple[_Question, str, str]]:
    """Yield the answers in the text of a result, each with its question; free words answer all of them."""
    for answer in answers_in(text):
        question, is_pair, after = answer.removeprefix('"').partition(_ANSWER_IS)
        if is_pair:
            choice, _, notes = after.partition(_NOTES)
            options = next((entry.options for entry in entries if entry.text == question), [])
            words = "\n".join(filter(None, [choice.removesuffix('"'), notes]))
            yield _Question("", question, options), choice.removesuffix('"'), words
        else:
            together = "\n".join(entry.text for entry in entries)
            yield _Question("", together, entries[0].options if len(entries) == 1 else []), answer, answer
