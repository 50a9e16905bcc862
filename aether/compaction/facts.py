"""Facts: what of removed messages must not depend on prose, taken from them word for word.

Goals, requests, constraints and decisions come from what was said, files and errors from what the tools did,
names from both. Blocks that aether injected and earlier summaries are never taken for conversation. What of
it all has room in a summary is decided in `fitting`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from aether.compaction.fitting import fitted
from aether.compaction.names import merged_names, names_in, names_of
from aether.compaction.shapes import Facts
from aether.compaction.summary import is_summary, parsed
from aether.messages.message import Message
from aether.messages.shell import shown_command
from aether.messages.tool_calls import (
    Call,
    ErrorFact,
    calls,
    failures_of,
    files_of,
    merged_failures,
    merged_files,
)
from aether.text.classify import decides, is_empty_reply, is_reply, question, stated, tells_choice, told
from aether.text.cleaning import clean
from aether.text.similarity import index, nearest
from aether.text.words import sentences

__all__ = ["facts_of", "fitted", "merged"]

# A page: an opening request that is longer holds material, which the archive keeps.
GOAL_CHARS = 4_000
REQUEST_CHARS = 600
STATEMENT_CHARS = 400
ARGUMENT_CHARS = 120
# From here on comparing all with all would take longer than reading them; equal ones still fall together.
MOST_COMPARED = 300

# What changes the direction opens like this; the rest of a request may be long.
_REVISES = re.compile(
    r"\W*(?:(?:ok(?:ay)?|no|hm+|wait|sorry|but|well)[,.!]? )*"
    r"(?:actually|instead(?! of)|change of plans?|new (?:goal|plan|direction)|on second thought|scrap (?:that|this|the)|"
    r"forget (?:about |that|the)|never ?mind|(?:the|our) goal is(?: now)?|we no longer (?:need|want)|let's rather|stop working on)\b",
    re.IGNORECASE,
)
# What another program wrote in place of an earlier conversation is not a request.
_CARRIED_OVER = re.compile(r"This session is being continued from a previous conversation")


# "decision" in the name of something, and a contrast between what things are, settle nothing.
_DESCRIBES = re.compile(
    r"\b(?:appears?|seems?|looks?)\b[^,;]{0,60}\b(?:rather than|instead of)\b|\w-decision\b|"
    r"\bdecision[- ](?:tests?|coverage|logs?|trees?|tables?|paths?|cases?)\b",
    re.IGNORECASE,
)


class _Heard(NamedTuple):
    """What one message of a person, or of the model, says for the facts."""

    field: str
    text: str


def facts_of(messages: Sequence[Message], positions: Iterable[int]) -> Facts:
    """Return the facts of the messages at `positions`, which are removed; the others tell how it went on."""
    gone = sorted({at for at in positions if 0 <= at < len(messages)})
    summaries = [at for at, message in enumerate(messages) if is_summary(message)]
    said = [at for at in gone if at not in summaries]
    heard = list(_heard(messages, said, summaries))
    made = calls(messages)
    removed = set(said)
    mine = [call for call in made if call.at in removed]
    facts = Facts(
        **{field: tuple(_texts(heard, field)) for field in ("goals", "requests", "constraints", "decisions")},
        open_calls=tuple(dict.fromkeys(_open(call) for call in mine if call.result is None)),
        files=files_of(mine),
        errors=failures_of(made, removed=removed.__contains__, before=_errors_before(messages, summaries)),
    )
    return facts._replace(names=names_of(messages, said, besides=_told_in(facts)))


def merged(older: Facts, newer: Facts) -> Facts:
    """Return the facts of two stretches, the older first: nothing twice, nothing lost, what is newest at the end.

    The opening request stays first; an error that was open and is closed by now is listed as closed.
    """
    goals = _once((*older.goals, *newer.goals))
    constraints = _alike((*older.constraints, *newer.constraints))
    decisions = _alike(_newest_once((*older.decisions, *newer.decisions)))
    found = Facts(
        goals=goals,
        requests=tuple(
            text for text in _newest_once((*older.requests, *newer.requests)) if text not in goals
        ),
        constraints=constraints,
        decisions=decisions,
        open_calls=_newest_once((*older.open_calls, *newer.open_calls)),
        files=merged_files(older.files, newer.files),
        errors=merged_failures(older.errors, newer.errors),
        lookups=_newest_once((*older.lookups, *newer.lookups)),
    )
    told_already = set(names_in(_told_in(found)))
    names = merged_names(older.names, newer.names)
    return found._replace(names=tuple(name for name in names if name not in told_already))


def _heard(messages: Sequence[Message], said: Iterable[int], summaries: Sequence[int]) -> Iterator[_Heard]:
    opening = _opening(messages, summaries)
    for at in said:
        message = messages[at]
        text = clean(message.text) if message.role in {"user", "assistant"} else ""
        if not text or _CARRIED_OVER.match(text):
            continue
        if message.role == "assistant":
            decided = (one for one in stated(text).get("decision", ()) if not _describes(one))
            yield from (_Heard("decisions", _unmarked(one)) for one in decided)
        elif at == opening:
            yield _Heard("goals", _head(text, GOAL_CHARS))
            yield from (_Heard("constraints", one) for kind, one in told(text) if kind in _RULES)
        else:
            yield from _asked(text, _question_before(messages, at) if is_reply(text) else "")


_RULES = frozenset({"constraint", "preference"})
# A question stands right before its answer; more messages between them, and it was answered by something else.
_LOOK_BACK = 3


def _opening(messages: Sequence[Message], summaries: Sequence[int]) -> int:
    """Return the position of the request that opened the conversation; -1 where a summary stands for it."""
    end = summaries[0] if summaries else len(messages)
    for at in range(end):
        text = clean(messages[at].text) if messages[at].role == "user" else ""
        if text and not _CARRIED_OVER.match(text) and not is_empty_reply(text):
            return at
    return -1


def _question_before(messages: Sequence[Message], at: int) -> str:
    for before in reversed(messages[max(0, at - _LOOK_BACK) : at]):
        if is_summary(before):
            break
        if before.role == "assistant" and (text := clean(before.text)):
            return question(text)
        if before.role == "user" and clean(before.text):
            break
    return ""


def _asked(text: str, question_before: str) -> Iterator[_Heard]:
    """Yield what a person's message says: the answer to a question, rules, a choice, a request."""
    if question_before and not (is_empty_reply(text) and not decides(question_before)):
        field = "decisions" if decides(question_before) else "requests"
        yield _Heard(field, f"Asked: {question_before}\nAnswered: {text}")
        return
    if is_empty_reply(text):
        return
    for kind, one in told(text):
        if kind in _RULES:
            yield _Heard("constraints", one)
        elif kind == "decision":
            yield _Heard("decisions", _head(one, STATEMENT_CHARS))
        else:
            yield _Heard("goals" if _REVISES.match(one) else "requests", _head(one, REQUEST_CHARS))


def _describes(sentence: str) -> bool:
    return bool(_DESCRIBES.search(sentence)) and not tells_choice(sentence)


def _unmarked(sentence: str) -> str:
    """Return `sentence` without the mark of a list before it."""
    return sentence.lstrip("-*•+ ") or sentence


def _texts(heard: Iterable[_Heard], field: str) -> list[str]:
    return list(dict.fromkeys(one.text for one in heard if one.field == field))


def _head(text: str, most: int) -> str:
    """Return the sentences that `text` begins with, as many as fit; they stand in it as they are."""
    if len(text) <= most:
        return text
    end = 0
    for sentence in sentences(text[:most]):
        at = text.find(sentence, end, most)
        if at < 0 or at + len(sentence) >= most:
            break
        end = at + len(sentence)
    return text[:end] or text[:most].rstrip()


def _open(call: Call) -> str:
    given = shown_command(call.command) if call.command else _short(call)
    return f"{call.tool}: {given}".strip(": ")


def _short(call: Call) -> str:
    texts = (value for value in call.arguments.values() if isinstance(value, str) and value.strip())
    first = next(texts, "").strip().partition("\n")[0]
    return first if len(first) <= ARGUMENT_CHARS else first[: ARGUMENT_CHARS - 1] + "…"


def _errors_before(messages: Sequence[Message], summaries: Iterable[int]) -> Iterator[ErrorFact]:
    found = (parsed(messages[at].text) for at in summaries)
    return chain.from_iterable(summary.facts.errors for summary in found if summary)


def _told_in(facts: Facts) -> str:
    """Return everything that the facts say beside the names: a name that stands there needs no second place."""
    texts = (*facts.goals, *facts.requests, *facts.constraints, *facts.decisions, *facts.open_calls)
    return "\n".join((*texts, *(file.path for file in facts.files), *(error.text for error in facts.errors)))


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _newest_once(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text once, at the place where it was said last."""
    return tuple(reversed(dict.fromkeys(reversed(tuple(texts)))))


def _alike(texts: Iterable[str]) -> tuple[str, ...]:
    """Return `texts` without those that say what an earlier one says, in other words, too."""
    every = _once(texts)
    if len(every) > MOST_COMPARED:
        return every
    among = index(every)
    return tuple(text for at, text in enumerate(every) if all(near.at >= at for near in nearest(text, among)))
