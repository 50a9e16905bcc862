"""Replies: what a person said in the place of a tool's result, an answer to questions or the refusal of a call."""

from __future__ import annotations

from aether.hints import Any
from aether.messages.model import as_object, as_text
from aether.messages.records import Record
from aether.messages.tool_calls import answers_in, is_refusal, words_of_refusal

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Of Claude Code: without these it asked nobody, and refused the call by its settings.
_NOT_ASKED = ("haven't granted", "approval settings")
_HEAD_CHARS = 400
# Codex and Cline.
_REFUSALS = ("rejected by user", "The user denied this operation")
_ANSWER_IS, _NOTES = '"="', '" notes: '
# Several answers come of one part of a line; a record is named by its line and part.
_PARTS = 1_000


def reply(result: Record, words: str = "") -> Record:
    """Return the refusal that a `result` tells of, with the person's reason; another result as it is.

    `words` are those of the person, if the source has them apart.
    """
    head = result.text[:_HEAD_CHARS]
    refused = is_refusal(result.text) or any(refusal in head for refusal in _REFUSALS)
    if not (result.is_error and refused) or any(policy in head for policy in _NOT_ASKED):
        return result
    return result._replace(kind="refusal", text=words or words_of_refusal(result.text))


def answers(result: Record, questions: Any, given: Any = None, notes: Any = None) -> list[Record]:
    """Return a person's answers to `questions`, one record each; none if nobody answered.

    `questions` are those of the call; `given` the answers by question or by its id, each a text, a list, or an object with
    `answers`; without them they are read from the text of the `result`. `notes` are what the person wrote about an answer.
    """
    asked = [_asked(question) for question in (questions if isinstance(questions, list) else [])]
    if isinstance(given, dict) and given:
        known = {name: entry for entry in asked for name in entry[:2] if name}
        pairs = [
            (known.get(name, ("", name, [])), *_chosen(choice, as_object(notes).get(name)))
            for name, choice in given.items()
        ]
    else:
        pairs = list(_read(result.text, asked))
    found: list[Record] = []
    for (_, question, options), choice, words in pairs:
        if choice or words:
            about = {"question": question, "options": options, "choice": choice or words}
            part = result.part + len(found) * _PARTS
            found.append(
                result._replace(
                    kind="answer", text=words or choice, arguments=about, is_error=False, part=part
                )
            )
    return found


def _asked(question: Any) -> tuple[str, str, list[str]]:
    """Return the id, the text and the options of a question."""
    about = as_object(question)
    listed = about.get("options")
    options = (
        as_text(option) or as_text(as_object(option).get("label"))
        for option in (listed if isinstance(listed, list) else [])
    )
    text = as_text(about.get("question")) or as_text(about.get("title")) or as_text(question)
    return as_text(about.get("id")), text, [*filter(None, options)]


def _chosen(choice: Any, notes: Any) -> tuple[str, str]:
    """Return what a person chose, and how the person said it: the choice with the notes on it."""
    listed = as_object(choice).get("answers", choice)
    texts = [as_text(text) for text in (listed if isinstance(listed, list) else [listed])]
    noted = [text.removeprefix("user_note:").strip() for text in texts if text.startswith("user_note:")]
    noted += filter(None, [as_text(as_object(notes).get("notes"))])
    chosen = ", ".join(text for text in texts if text and not text.startswith("user_note:"))
    return chosen, "\n".join(filter(None, [chosen, *noted]))


def _read(
    text: str, asked: Iterable[tuple[str, str, list[str]]]
) -> Iterator[tuple[tuple[str, str, list[str]], str, str]]:
    asked = list(asked)
    for answer in answers_in(text):
        question, is_pair, rest = answer.removeprefix('"').partition(_ANSWER_IS)
        if not is_pair:
            together = "\n".join(entry[1] for entry in asked)
            options = asked[0][2] if len(asked) == 1 else []
            yield ("", together, options), answer, answer
            continue
        choice, _, notes = rest.partition(_NOTES)
        options = next((entry[2] for entry in asked if entry[1] == question), [])
        choice = choice.removesuffix('"')
        yield ("", question, options), choice, "\n".join(filter(None, [choice, notes]))
