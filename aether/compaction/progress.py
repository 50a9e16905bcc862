"""Progress: where a conversation is, read from the whole of it: its current request, its state and the next step.

The state is what a machine showed, the plan, the last checks and the last commit or push with their outcome, and the
answers that ended the last turns, verbatim. The next step is what the plan still has, and what the last answer offers
or asks. Unlike the other facts they describe the present, so each compaction replaces those of the one before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from aether.compaction.summary import is_summary
from aether.messages.model import Message
from aether.messages.shell import (
    command_target,
    covers,
    is_notable,
    is_undecided,
    outcome_of,
    short_command,
)
from aether.messages.tool_calls import (
    Call,
    file_changes,
    is_refusal,
    publishes,
    shell_command,
    words_of_refusal,
)
from aether.text.accounts import (
    HEADING,
    LEAST_REASON,
    NEXT,
    TO_DO,
    change_of,
    changes,
    claims,
    left_open,
    paragraphs,
    reason_of,
    recommended,
    refers,
    refuses,
)
from aether.text.choices import CHOICE_WORDS, settled
from aether.text.classify import closing_question, is_empty_reply, is_reply, prose
from aether.text.cleaning import clean, without_injected
from aether.text.regex import lazy
from aether.types import JsonObject

# A page at most: the newest answer first, older ones from their heads, and what says most of each.
ANSWER_CHARS = 2_400
ANSWERS_CHARS = 4_800
EARLIER_CHARS = 12_000
ACCOUNT_CHARS = 900
# Of an answer without work: what it found is looked up, what it decided is not.
FOUND_CHARS = 300
ANNOUNCEMENTS = 6
CACHED_ANSWERS = 4_096
# A shorter text announces the next call or says that it is done.
LEAST_ANSWER = 160
LEAST_NEWEST = 40
REQUEST_CHARS = 1_000
# Of a request that stays among the messages: with the others it shows what the work is for.
STAYING_CHARS = 240
PLAN_ENTRIES = 12
CHECKS = 6
NEXT_SENTENCES = 6
# A plan is replaced by its newest version; tasks are added and updated one by one.
_PLAN_KEYS = ("todos", "plan", "tasks", "items")
_WHOLE_PLANS = _PLAN_KEYS[:2]
_TEXT_KEYS = ("content", "step", "subject", "title", "description", "text")
_TASK_ID = ("taskId", "task_id", "id")
_OVER = frozenset({"completed", "complete", "done", "cancelled", "canceled", "deleted", "skipped"})
_BULLET = lazy(r"\A[-*•+]\s+")
_RULER = lazy(r"[-*_=]{3,}")
# A longer block of code is looked up in the file.
_LONG_CODE = lazy(r"^```[^\n]*\n(?:(?!```).){400,}?^```[^\n]*$\n?", re.DOTALL | re.MULTILINE)
# What only writes the form of files shows nothing.
_FORMATS = lazy(r"(?:gofmt|goimports|prettier|rustfmt)\b[^&|;]* (?:-\w*w|--write)\b[^&|;]*\Z|(?:ruff|cargo|\w+ run|make) (?:fmt|format)\b[^&|;]*\Z")  # fmt: skip
_BRANCHES = lazy(r"\bgit (?:checkout -[bB]|switch -c|branch (?!-)|worktree add)\b")
_CREATED = lazy(r"[Tt]ask #?(\d+)")
_FORWARD = lazy(
    rf"\b(?:next (?:\w+ )?steps?\b|{NEXT}(?=\W*(?:[:,—–-]|\Z)| (?:i|we|up|is)\b)|remaining|still (?:needs?|has to|to (?:do|be)|open|missing|pending)|left to do|{TO_DO}|"
    r"not yet|follow[- ]?ups?|afterwards|before (?:merging|releasing|pushing|shipping)|"
    r"(?:i|we)(?:'ll| will| can| could)\b|you (?:can|could|may want|might want|should|need)|"
    r"want me to|shall i|should i|would you like|do you want|let me know)",
    re.IGNORECASE,
)
_NOTHING_LEFT = lazy(
    r"\b(?:no|nothing|none|without)\b.{0,20}\b(?:remain\w*|left|open|pending|missing|follow[- ]?ups?|todos?)\b",
    re.IGNORECASE,
)


class Progress(NamedTuple):
    """The present of a conversation; every text is verbatim from it but for the words that name a status."""

    opening: tuple[str, ...] = ()
    current: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()


class Turn(NamedTuple):
    """What the model said between two messages of a person."""

    answer: str = ""
    """Its last message, if it says more than that a call follows."""
    stays: bool = False
    """Whether that stays among the messages."""
    closing: str = ""
    """A shorter text after it, if no call follows."""
    reasons: tuple[str, ...] = ()
    """Why edits were made, one sentence each."""
    under_way: tuple[str, ...] = ()
    """The announcements since its last message."""
    said: tuple[str, ...] = ()
    """Its last texts that no edit has followed yet."""
    worked: bool = False
    """Whether it changed or published something."""


def progress_of(
    messages: Sequence[Message], calls: Sequence[Call], *, stays: Callable[[int], bool] = lambda _: False
) -> Progress:
    """Return the requests, the state and the next step of a conversation with these `calls`.

    What was done earlier is not repeated from a message of which `stays`, given its position, says that it stays.
    """
    requests, turns = _spoken(messages, stays)
    plan = _plan(calls)
    newest = turns[-1] if turns else Turn()
    answers = [turn.answer for turn in turns if turn.answer]
    last = newest.answer or (answers[-1] if answers else "")
    ahead = [f"{status}: {text}" for text, status in plan if status not in _OVER]
    # What an account announced before more calls was done by the time the turn ended.
    end = newest.closing or last
    said = [_BULLET.sub("", one) for one in prose(end) if _looks_ahead(one)][-NEXT_SENTENCES:]
    question = closing_question(end)
    return Progress(
        opening=requests[:1],
        # "commit" alone does not say of what.
        current=requests[1:] or requests,
        state=(
            *_shown_answers(answers),
            *newest.under_way,
            # The others are next.
            *[f"{status}: {text}" for text, status in plan if status in _OVER][-PLAN_ENTRIES:],
            *_checks(calls),
        ),
        next=tuple(
            dict.fromkeys(
                (*ahead[:PLAN_ENTRIES], *said, *([question] if question else []), *newest.under_way[-1:])
            )
        ),
        earlier=_done_before(turns, answers[:-1]),
    )


def _looks_ahead(sentence: str) -> bool:
    """Return whether a `sentence` says what is left to do, rather than that nothing is."""
    return bool(_FORWARD.search(sentence)) and not _NOTHING_LEFT.search(sentence)


def _spoken(messages: Sequence[Message], stays: Callable[[int], bool]) -> tuple[tuple[str, ...], list[Turn]]:
    """Return a person's requests, the first, the heads of those that stay, and the newest, and the turns of the model."""
    # What a person said with what it takes up, that alone, and whether the message stays.
    requests: list[tuple[str, str, bool]] = []
    praise: list[tuple[str, str, bool]] = []
    turns: list[Turn] = []
    turn, before = Turn(), ""
    for at, message in enumerate(messages):
        text = clean(without_injected(message.text)) if message.role in {"user", "assistant"} else ""
        said = words_of_person(message, text)
        if said and not is_summary(message):
            if refuses(said) and turn.answer:
                turn = turn._replace(answer="", closing="", reasons=())
            if turn != Turn():
                turns.append(_ended(turn)._replace(under_way=()))
            turn = Turn()
            said = _head(said, REQUEST_CHARS)
            whole = with_speaker(message, _with_its_matter(said, before))
            asked = (whole, with_speaker(message, said), stays(at))
            praise = [asked] if is_empty_reply(said) and requests else []
            requests += [] if praise else [asked]
            before = ""
        elif message.role == "assistant" and not is_summary(message):
            if any(block.kind == "call" for block in message.blocks):
                requests += praise  # "ship it" asks for something if the model sets to work
                praise, turn = [], _with_call(turn)
            before = text or before
            turn = _with_edits(_with_text(turn, text, message, stays=stays(at)) if text else turn, message)
    turns += [_ended(turn)] if turn != Turn() else []
    ends = (0, len(requests) - 1)
    shown = (
        whole if at in ends or len(whole) <= STAYING_CHARS else _head(said, STAYING_CHARS)
        for at, (whole, said, stayed) in enumerate(requests)
        if stayed or at in ends
    )
    return tuple(shown), turns


def _with_its_matter(said: str, before: str) -> str:
    """Return a person's words with what they take up of the message `before`: "3" says nothing alone, nor does "fix it"."""
    choice = settled(said, before) if before else None
    if choice is None or choice.own:
        leans = is_reply(said) and (refers(said) or is_empty_reply(said))
        asked = closing_question(before) if before and leans else ""
        return f"Asked: {asked}\nAnswered: {said}" if len(asked.split()) >= CHOICE_WORDS else said
    about = f"{choice.about}\n" if choice.about else ""
    whole = f"Asked: {about}{choice.text}\nAnswered: {said}"
    return whole if len(whole) <= REQUEST_CHARS else f"Asked: {choice.text}\nAnswered: {said}"


def with_speaker(message: Message, text: str) -> str:
    """Return `text` after the name of its speaker, if the message has one: a chat may have more than two."""
    given = message.raw.get("name")
    name = " ".join(given.split()) if isinstance(given, str) else ""
    named = name and text and not text.startswith((f"{name}:", "Asked: "))
    return f"{name}: {text}" if named else text


def is_continuation(text: str) -> bool:
    """Return whether another program wrote `text`, a summary, in place of an earlier conversation: it requests nothing."""
    return text.startswith("This session is being continued from a previous conversation")


def words_of_person(message: Message, text: str) -> str:
    """Return what a person says in `message`: its clean `text`, or the words with which a call was refused."""
    if message.role == "user" and text:
        return "" if is_continuation(text) else text
    refused = (
        words_of_refusal(block.text) for block in message.blocks if block.kind == "result" and block.is_error
    )
    return clean(next(filter(None, refused), ""))


def _with_text(turn: Turn, text: str, message: Message, *, stays: bool) -> Turn:
    """Return `turn` with the next text of the model; of a message that `stays`, no reason is noted."""
    turn = turn._replace(said=turn.said if stays else (*turn.said, text)[-ANNOUNCEMENTS:])
    calls = any(block.kind == "call" for block in message.blocks)
    if len(text) >= LEAST_ANSWER or not (calls or len(turn.answer) >= LEAST_ANSWER):
        return turn._replace(answer=with_speaker(message, text), stays=stays, closing="", under_way=())
    if not calls:
        return turn._replace(closing=text)
    return turn._replace(
        answer=turn.answer if len(turn.answer) >= LEAST_ANSWER else "",
        under_way=(*turn.under_way, text)[-ANNOUNCEMENTS:],
    )


def _with_call(turn: Turn) -> Turn:
    """Return `turn` with a call: a short text before it announced that."""
    if not turn.closing:
        return turn
    return turn._replace(closing="", under_way=(*turn.under_way, turn.closing)[-ANNOUNCEMENTS:])


def _ended(turn: Turn) -> Turn:
    """Return `turn` with the short text that ended it below its account."""
    if len(turn.closing) < LEAST_NEWEST:
        return turn
    return turn._replace(answer=f"{turn.answer}\n\n{turn.closing}", under_way=())


def _with_edits(turn: Turn, message: Message) -> Turn:
    """Return `turn` with the reasons for the edits and commits of `message`, which the texts before them give."""
    calls = [block.arguments for block in message.blocks if block.kind == "call"]
    if not any(map(_changes_anything, calls)):
        return turn
    reasons = (reason_in(one) for one in turn.said if len(one) >= LEAST_REASON)
    return turn._replace(said=(), reasons=(*turn.reasons, *filter(None, reasons)), worked=True)


def _changes_anything(arguments: JsonObject) -> bool:
    """Return whether a call edits a file, commits, pushes or makes a branch."""
    command = shell_command(arguments)
    return any(file_changes(arguments, command)) or publishes(command) or bool(_BRANCHES.search(command))


def _shown_answers(answers: Sequence[str]) -> list[str]:
    """Return the paragraphs of the newest answers in their order, as far as there is room."""
    chosen, room = list[str](), ANSWERS_CHARS
    for text in reversed(answers):
        if len(text) < (LEAST_ANSWER if chosen else LEAST_NEWEST):
            continue
        if room < LEAST_ANSWER:
            break
        chosen.append(_head(_LONG_CODE.sub("", text), min(room, ANSWER_CHARS)))
        room -= len(chosen[-1])
    return [part for text in reversed(chosen) for part in _parts(text)]


def _parts(text: str) -> Iterator[str]:
    """Yield the paragraphs of an answer, each below the heading or the line that opens it, but for headings above nothing."""
    heading = lead = ""
    for part in _blocks(text):
        if not part or _RULER.fullmatch(part):
            continue
        if HEADING.fullmatch(part):
            yield from filter(None, [lead])
            heading, lead = part, ""
            continue
        whole = "\n".join(filter(None, [lead or heading, part]))
        heading, lead = "", whole if part.endswith(":") else ""
        yield from [] if lead else [whole]
    yield from filter(None, [lead])


def _blocks(text: str) -> Iterator[str]:
    """Yield what is between the empty lines of `text`; those in a block of code part nothing."""
    code = ""
    for part in re.split(r"(\n\s*\n)", text):
        code += part
        if code.count("```") % 2 == 0:
            yield code.strip()
            code = ""
    yield from map(str.strip, re.split(r"\n\s*\n", code))  # a block that nothing closes


def _done_before(turns: Sequence[Turn], older: Sequence[str]) -> tuple[str, ...]:
    """Return what the `older` answers say that was changed or put off, and what edits were made for, in order."""
    left, by_words = set(older), not any(turn.worked for turn in turns)
    found: list[str] = []
    for turn in turns:
        if not turn.stays and turn.answer in left and len(turn.answer) >= LEAST_ANSWER:
            found += done_in(turn.answer, worked=turn.worked or by_words)
        found += turn.reasons
    kept, room = list[str](), EARLIER_CHARS
    for one in reversed(dict.fromkeys(found)):
        room -= len(one)
        if room < 0:
            break
        kept.append(one)
    return tuple(reversed(kept))


@lru_cache(maxsize=CACHED_ANSWERS)
def reason_in(text: str) -> str:
    """Return the sentence of the text before an edit that says why it is made, else what is changed."""
    return reason_of(text) or change_of(text)


@lru_cache(maxsize=CACHED_ANSWERS)
def done_in(answer: str, *, worked: bool = True) -> tuple[str, ...]:
    """Return what an answer says that its turn changed, or decided and found if it changed nothing, and what it put off."""
    said = paragraphs(answer)
    did = (
        changes(said, ACCOUNT_CHARS, below_changes=True)
        if worked
        else (*filter(None, [reason_of(answer)]), *claims(said, FOUND_CHARS))
    )
    return tuple(dict.fromkeys((*did, *recommended(said), *left_open(said))))


def _head(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    cut = max(text.rfind(end, 0, most) for end in (". ", "\n", ".\n"))
    return text[: cut + 1].rstrip() if cut > 0 else text[:most]


def _plan(calls: Iterable[Call]) -> list[tuple[str, str]]:
    """Return the entries of the newest plan or task list with their status, in order."""
    whole: list[tuple[str, str]] = []
    tasks: dict[str, tuple[str, str]] = {}
    for call in calls:
        key = next((key for key in _PLAN_KEYS if isinstance(call.arguments.get(key), list)), "")
        listed: list[Any] = call.arguments[key] if key else []
        entries = [(_text_of(one), one["status"]) for one in listed if _is_entry(one)]
        # A list of tasks can be emptied; other tools have empty lists as well.
        if entries or (not listed and key in _WHOLE_PLANS):
            whole = [(text, status) for text, status in entries if text]
        elif call.tool.lower().startswith("task"):
            _count_task(tasks, call)
    return whole or list(tasks.values())


def _is_entry(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("status"), str)


def _text_of(one: dict[str, Any]) -> str:
    return next((" ".join(one[key].split()) for key in _TEXT_KEYS if isinstance(one.get(key), str)), "")


def _count_task(tasks: dict[str, tuple[str, str]], call: Call) -> None:
    given = call.arguments
    known = next((str(given[key]) for key in _TASK_ID if given.get(key)), "")
    if known and isinstance(given.get("status"), str) and known in tasks:
        tasks[known] = (tasks[known][0], given["status"])
    elif not known and isinstance(given.get("subject"), str) and call.result is not None:
        made = _CREATED.search(call.result.text)
        tasks[made[1] if made else str(len(tasks) + 1)] = (_text_of(given), "pending")


def _checks(calls: Iterable[Call]) -> list[str]:
    """Return the last run of each of the newest checks, commits and pushes, with its outcome.

    A run that a later one covers says nothing of the present.
    """
    found: dict[str, Call] = {}
    for call in calls:
        if call.result is None or not is_notable(call.command) or _FORMATS.match(short_command(call.command)):
            continue
        # The work tree says what was committed and pushed.
        output = call.result.text
        if not (publishes(call.command) or is_refusal(output) or is_undecided(call.command, output)):
            target = command_target(call.command)
            for earlier in [one for one in found if covers(target, one)]:
                del found[earlier]
            found[target] = call
    shown = []
    for call in list(found.values())[-CHECKS:]:
        end = outcome_of(call.command, without_injected(call.result.text)) if call.result else ""
        shown.append(f"Ran `{short_command(call.command)}`" + (f": {end}" if end else ""))
    return shown
