"""Facts: what of removed messages must not depend on prose, taken from them word for word.

Goals, requests, constraints and decisions come from what was said, files and errors from what the tools did,
names from both. Blocks that aether injected and earlier summaries are never taken for conversation. What of
it all has room in a summary is decided in `fitting`.

Names: the ids, numbers, URLs, commands, paths and identifiers of a stretch that someone may look for again.

A name is verbatim text. Ranked by use, what the person said first; what only tools said counts where it cannot
be a word (ids and URLs). Bounded, so that a listing of ten thousand ids costs no more than one of a hundred.

Fitting: the facts that have room in a summary, and by name what has not.

What is easiest to find again goes first: errors that are over, files that were read long ago, hashes, old requests
(their names stay), names, the newest files that were read, then decisions, and only then what describes the
present state. Constraints, goals and the newest pointer to the full text are never dropped; where they alone are
too long, each keeps its beginning.

What the summary carries: what removed messages said, their facts, and the room that both may take.

Earlier summaries are never read as conversation: their facts and their prose are carried on as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

from aether.compaction.shapes import Facts, RemovedText, Summary
from aether.compaction.summary import is_summary, parsed, rendered
from aether.messages.convert import new_message as message_saying
from aether.messages.model import Block, Message, ProviderFormat, Role
from aether.messages.shell import short_command
from aether.messages.tool_calls import (
    Call,
    ErrorFact,
    FileFact,
    calls_of,
    failures_of,
    files_of,
    merged_failures,
    merged_files,
)
from aether.text.classify import (
    asks_for_decision,
    closing_question,
    is_empty_reply,
    is_reply,
    statements_by_kind,
    states_choice,
)
from aether.text.classify import message_by_kind as classify_told
from aether.text.cleaning import clean, without_injected
from aether.text.identifiers import Identifiers, identifiers
from aether.text.similarity import index, nearest
from aether.text.words import pluralize, sentences
from aether.tokens.count import message_tokens
from aether.types import Counter

# About 500 tokens: as much as the rest of the facts of one stretch of work takes.
MOST_NAMES = 80
# What has been carried so far and is new together: a summary of eight thousand tokens holds no more.
MOST_MERGED_NAMES = 400
# Longer ones are data.
NAME_CHARS = 120
# Output says what it is about at its two ends.
_HEAD_CHARS, _TAIL_CHARS = 3_000, 1_500
# A text beyond this is something pasted; its names stand at its ends, too.
_TEXT_CHARS = 20_000
# What tools said longer ago is in the history; the newest so many calls and results bound the time this takes.
_MOST_BY_TOOL = 600
# Weight of one use, by who uses it.
_BY_PERSON, _BY_MODEL, _BY_CALL, _BY_TOOL = 8, 4, 2, 1

# Small bare numbers count things; they identify nothing.
_TELLING_NUMBER = re.compile(r".*\d{3}|.*[%$€£¥°]|\D*\d+[.,:]\d+|.*\d[A-Za-zµ]", re.DOTALL)
_LINE_NUMBER = re.compile(r"\d{1,4}")
# A clock, a range of lines or a guess names nothing; of a listing neither do the sizes.
_CLOCK = re.compile(r"~.*|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?|\d+(?:-\d+)+(?<!\d{4}-\d\d-\d\d)|\d{1,2}x")
_LISTED = re.compile(r"^[-dlbcps][rwxsStT-]{9}[.+@]?\s.*$|^total \d+$", re.MULTILINE)
_LISTED_NAME = re.compile(r"\S+(?: -> \S+)?$")
_ID = re.compile(r"(?=.*\d)(?!--?[A-Za-z]).{5,}", re.DOTALL)
# Words and numbers on a string ("run-4711", "eu-west-1a", "q21330"): letters and digits in one token.
_COINED = re.compile(
    r"(?<![\w./@:-])(?=[\w-]{4})(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Za-z])\w+(?:-\w+)*(?![\w/@-])"
)
_OPTION = re.compile(r"--?[A-Za-z][\w-]*$")

# What is numbered through in code and logs: a few show how they are called.
SERIES = 3
_NUMBERED = re.compile(r"[a-z_]+(?:_?\d+)+(?:_[a-z]+)?")
_DIGITS = re.compile(r"\d+")

_BY_TOOLS = frozenset({"call", "result"})


def names_of(messages: Sequence[Message], positions: Iterable[int], *, besides: str = "") -> tuple[str, ...]:
    """Return the names at `positions` that do not stand in `besides` already, what was used last at the end."""
    weights: dict[str, int] = {}
    last: dict[str, int] = {}
    said: set[str] = set()
    for order, (weight, found) in enumerate(_uses(messages, positions)):
        for name in found:
            weights[name] = weights.get(name, 0) + weight
            last[name] = order
        if weight >= _BY_MODEL:
            said.update(found)
    ranked = sorted(weights, key=lambda name: -weights[name])
    # As a set: looking for each name in the whole text would be quadratic in a long stretch.
    known = set(names_in(besides))
    newest = sorted((name for name in ranked if name not in known), key=lambda name: last[name])
    few = set(_few_of_a_series(newest, said=said))
    kept = [name for name in ranked if name in few][:MOST_NAMES]
    return tuple(sorted(kept, key=lambda name: last[name]))


def _few_of_a_series(names: Sequence[str], *, said: Collection[str]) -> list[str]:
    """Return `names` with the newest few of what is numbered through: in code always, else where nobody `said` it."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in reversed(names):
        series = _DIGITS.sub("#", name) if name not in said or _NUMBERED.fullmatch(name) else ""
        seen[series] = seen.get(series, 0) + 1
        if not re.search(r"[A-Za-z]", series) or seen[series] <= SERIES:
            found.append(name)
    return found[::-1]


def names_in(text: str) -> list[str]:
    """Return the names in what someone said.

    >>> names_in("Order 48213 failed 3 times in fetch_user, see https://x.org/a")
    ['https://x.org/a', 'fetch_user', '48213']
    >>> names_in("Run run-4711 in eu-west-1a")
    ['run-4711', 'eu-west-1a']
    """
    found = identifiers(text)
    every = chain(found.urls, found.commands, _words(found), _COINED.findall(text), found.paths)
    return [name for name in dict.fromkeys(every) if _fits(name)]


def merged_names(older: Sequence[str], newer: Sequence[str]) -> tuple[str, ...]:
    """Return each name once, what is newest at the end; of too many, the oldest go.

    >>> merged_names(["a1", "b2"], ["a1"])
    ('b2', 'a1')
    """
    again = set(newer)
    every = [*(name for name in older if name not in again), *dict.fromkeys(newer)]
    return tuple(_few_of_a_series(every, said=every)[-MOST_MERGED_NAMES:])


def _uses(messages: Sequence[Message], positions: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    listed = list(positions)
    by_tool = sum(block.kind in _BY_TOOLS for at in listed for block in messages[at].blocks)
    for at in listed:
        for block in messages[at].blocks:
            if block.kind == "text" and messages[at].role != "system":
                person = messages[at].role == "user"
                text = clean(_ends(block.text, _TEXT_CHARS))
                yield (_BY_PERSON if person else _BY_MODEL), names_in(text)
            elif block.kind in _BY_TOOLS:
                by_tool -= 1
                if by_tool < _MOST_BY_TOOL:
                    yield from _used_by_tool(block)


def _used_by_tool(block: Block) -> Iterator[tuple[int, list[str]]]:
    text = _LISTED.sub(_listed_name, without_injected(_ends(block.text, _HEAD_CHARS)))
    found = identifiers(text)
    every = dict.fromkeys((*found.urls, *found.identifiers, *found.numbers, *_COINED.findall(text)))
    ids = [name for name in every if _fits(name) and _is_id(name)]
    yield (_BY_CALL if block.kind == "call" else _BY_TOOL), ids


def _listed_name(line: re.Match[str]) -> str:
    """Return of a line of `ls -l` the name alone."""
    found = _LISTED_NAME.search(line[0])
    return found[0] if found and not line[0].startswith("total ") else ""


def _ends(text: str, most: int) -> str:
    return text if len(text) <= most + _TAIL_CHARS else f"{text[:most]}\n{text[-_TAIL_CHARS:]}"


def _words(found: Identifiers) -> Iterator[str]:
    yield from (name for name in found.identifiers if not _OPTION.match(name))
    yield from (number for number in found.numbers if _TELLING_NUMBER.match(number))


def _is_id(name: str) -> bool:
    return bool(_ID.fullmatch(name)) and not _LINE_NUMBER.fullmatch(name)


def _fits(name: str) -> bool:
    return 1 < len(name) <= NAME_CHARS and not _CLOCK.fullmatch(name)


# The newest of these say where the work stands; they outlive the older ones of everything else.
NEWEST = 3
NEWEST_NAMES = 40
NEWEST_DECISIONS = 10
NEWEST_FILES = 12
# What was read last is about to be used; a path costs as much as three names, so more would cost the ids people gave.
NEWEST_READ = 3
# The newest of the dropped requests, whose names may stay.
NAMED_REQUESTS = 100
# On average no text has longer tokens.
LONGEST_TOKEN_CHARS = 20
# A goal or constraint that is shortened says at least this much.
LEAST_CHARS = 80
CUT = "… [the rest of this was removed with the messages; see the archive]"
# Halvings between the whole text and the least of it.
_HALVINGS = 12


class _Rung(NamedTuple):
    """One thing that may go: which entries of a field, the oldest first."""

    what: str
    field: str
    goes: Callable[[Any], object] = lambda _: True
    stay: int = 0
    """How many of the newest are not dropped on this rung."""
    left: Callable[[Any], Any] = lambda _: None
    """What is left of an entry that goes; None: nothing."""


def _hashless(file: FileFact) -> FileFact:
    return file._replace(sha256="")


def _is_read(file: FileFact) -> bool:
    return file.action == "read"


_RUNGS = (
    _Rung("errors that are over", "errors", lambda error: not error.open),
    _Rung(
        "hashes of files that were read", "files", lambda file: _is_read(file) and file.sha256, left=_hashless
    ),
    _Rung("files that were read", "files", _is_read, stay=NEWEST_READ),
    _Rung("hashes of files", "files", lambda file: file.sha256, left=_hashless),
    _Rung("requests", "requests", stay=NEWEST),
    _Rung("names", "names", stay=NEWEST_NAMES),
    _Rung("names", "names"),
    _Rung("decisions", "decisions", stay=NEWEST_DECISIONS),
    _Rung("files that were read", "files", _is_read),
    _Rung("lookups", "lookups", stay=1),
    _Rung("requests", "requests"),
    _Rung("decisions", "decisions", stay=NEWEST),
    _Rung("open errors", "errors", stay=NEWEST),
    _Rung("open errors", "errors"),
    _Rung("files", "files", stay=NEWEST_FILES),
    _Rung("decisions", "decisions"),
    _Rung("open calls", "open_calls"),
    _Rung("files", "files"),
)


def fit_facts(facts: Facts, *, count: Counter, most: int) -> tuple[Facts, list[str]]:
    """Return what of `facts` a summary of `most` tokens without prose holds, and what it does not, in words.

    Goals and constraints stay, shortened at worst; only they can make the result larger than `most`.
    """
    dropped: dict[str, int] = {}
    tokens = _tokens(facts, count)
    for rung in _RUNGS:
        if tokens <= most:
            break
        facts, gone = _without(facts, rung, count=count, most=most)
        if gone:
            tokens = _tokens(facts, count)
            dropped[rung.what] = dropped.get(rung.what, 0) + gone
    findings = [pluralize(number, what) for what, number in dropped.items()]
    if tokens > most:
        shorter = _shortened(facts, count=count, most=most)
        findings += ["the ends of goals and constraints"] if shorter != facts else []
        facts = shorter
    return facts, findings


def _tokens(facts: Facts, count: Counter) -> int:
    return count(rendered(Summary(1, facts, "")))


def _without(facts: Facts, rung: _Rung, *, count: Counter, most: int) -> tuple[Facts, int]:
    """Return `facts` with the fewest entries dropped that make it fit, all that may go where none is enough; and their number."""
    entries: tuple[Any, ...] = getattr(facts, rung.field)
    places = [at for at, entry in enumerate(entries) if rung.goes(entry)]
    places = places[: max(0, len(places) - rung.stay)]
    low, high = _hopeless([len(_text(entries[at])) for at in places], most), len(places)
    while low < high:
        middle = (low + high) // 2
        if _tokens(_dropped(facts, rung, places[:middle]), count) <= most:
            high = middle
        else:
            low = middle + 1
    return _dropped(facts, rung, places[:low]), low


def _hopeless(lengths: Sequence[int], most: int) -> int:
    """Return how many of the first entries have no room whatever else goes: counting thousands of texts takes long."""
    room = most * LONGEST_TOKEN_CHARS
    for newest, length in enumerate(reversed(lengths)):
        room -= length
        if room < 0:
            return len(lengths) - newest
    return 0


def _dropped(facts: Facts, rung: _Rung, places: Sequence[int]) -> Facts:
    entries: tuple[Any, ...] = getattr(facts, rung.field)
    gone = set(places)
    left = ((rung.left(entry) if at in gone else entry) for at, entry in enumerate(entries))
    kept = tuple(entry for entry in left if entry is not None)
    changed: dict[str, Any] = {rung.field: kept}
    if rung.field == "requests" and rung.stay and places:
        # A request that goes leaves its ids and numbers, which cost little.
        names = [name for at in places[-NAMED_REQUESTS:] for name in names_in(entries[at])]
        changed["names"] = tuple(
            dict.fromkeys((*(name for name in names if name not in facts.names), *facts.names))
        )
    return facts._replace(**changed)


def _text(entry: Any) -> str:
    return entry if isinstance(entry, str) else str(entry[0])


def _shortened(facts: Facts, *, count: Counter, most: int) -> Facts:
    """Return `facts` with goals and constraints cut to the greatest common length that fits."""
    low, high = LEAST_CHARS, max(map(len, (*facts.goals, *facts.constraints)), default=0)
    for _ in range(_HALVINGS):
        middle = (low + high) // 2
        if _tokens(_cut_to(facts, middle), count) <= most:
            low = middle
        else:
            high = middle
    return _cut_to(facts, low)


def _cut_to(facts: Facts, chars: int) -> Facts:
    return facts._replace(
        goals=tuple(_cut(text, chars) for text in facts.goals),
        constraints=tuple(_cut(text, chars) for text in facts.constraints),
    )


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars + len(CUT) else text[:chars].rstrip() + CUT


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
    made = calls_of(messages)
    removed = set(said)
    mine = [call for call in made if call.at in removed]
    facts = Facts(
        **{field: tuple(_texts(heard, field)) for field in ("goals", "requests", "constraints", "decisions")},
        open_calls=tuple(dict.fromkeys(_open(call) for call in mine if call.result is None)),
        files=files_of(mine),
        errors=failures_of(made, removed=removed.__contains__, before=_errors_before(messages, summaries)),
    )
    return facts._replace(names=names_of(messages, said, besides=_told_in(facts)))


def merged_facts(older: Facts, newer: Facts) -> Facts:
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
            decided = (one for one in statements_by_kind(text).get("decision", ()) if not _describes(one))
            yield from (_Heard("decisions", _unmarked(one)) for one in decided)
        elif at == opening:
            yield _Heard("goals", _head(text, GOAL_CHARS))
            yield from (_Heard("constraints", one) for kind, one in classify_told(text) if kind in _RULES)
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
            return closing_question(text)
        if before.role == "user" and clean(before.text):
            break
    return ""


def _asked(text: str, question_before: str) -> Iterator[_Heard]:
    """Yield what a person's message says: the answer to a question, rules, a choice, a request."""
    if question_before and not (is_empty_reply(text) and not asks_for_decision(question_before)):
        field = "decisions" if asks_for_decision(question_before) else "requests"
        yield _Heard(field, f"Asked: {question_before}\nAnswered: {text}")
        return
    if is_empty_reply(text):
        return
    for kind, one in classify_told(text):
        if kind in _RULES:
            yield _Heard("constraints", one)
        elif kind == "decision":
            yield _Heard("decisions", _head(one, STATEMENT_CHARS))
        else:
            yield _Heard("goals" if _REVISES.match(one) else "requests", _head(one, REQUEST_CHARS))


def _describes(sentence: str) -> bool:
    return bool(_DESCRIBES.search(sentence)) and not states_choice(sentence)


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
    given = short_command(call.command) if call.command else _short(call)
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


# Of the room of a summary the machine fields may take so much where prose is wanted beside them.
FACTS_SHARE = 0.75
# Tokens: with less room than this, prose says nothing worth asking a model for.
LEAST_PROSE = 40
# A call that is only named is told by this many characters of its arguments.
CALL_CHARS = 4_000

_POINTER = re.compile(r"(?P<many>\d+) messages in full: (?P<first>.+?)(?: to (?P<last>.+))?", re.DOTALL)


class PreviousSummary(NamedTuple):
    """What earlier summaries hand on."""

    version: int
    """Of the newest one; 0 where there is none."""
    facts: Facts
    prose: str


class FittedSummary(NamedTuple):
    """The facts that a summary has room for, and the tokens of its message without prose."""

    facts: Facts
    lost: list[str]
    tokens: int


def previous_summary(messages: Sequence[Message], positions: Iterable[int]) -> PreviousSummary:
    """Return what the summaries at these positions hand on, the oldest first."""
    found = [summary for at in positions if (summary := parsed(messages[at].text))]
    if not found:
        return PreviousSummary(0, Facts(), "")
    return PreviousSummary(
        max(summary.version for summary in found),
        reduce(merged_facts, (summary.facts for summary in found)),
        "\n".join(summary.prose for summary in found if summary.prose),
    )


def facts_of_removed(
    messages: Sequence[Message],
    removed: Sequence[int],
    before: PreviousSummary,
    pointer: Callable[[int], str],
) -> Facts:
    """Return the facts of the messages that were removed, after those of the summaries before."""
    facts = merged_facts(before.facts, facts_of(messages, removed))
    first = pointer(removed[0]) if removed else ""
    if not first:
        return facts
    last = pointer(removed[-1])
    return facts._replace(lookups=_located(facts.lookups, len(removed), first, last))


def _located(before: Iterable[str], many: int, first: str, last: str) -> tuple[str, ...]:
    """Return where everything is in full: one line for each file, which is named once."""
    file = first.rpartition(" ")[0]
    others: list[str] = []
    for one in before:
        earlier = _POINTER.fullmatch(one)
        if earlier is None or not file or earlier["first"].rpartition(" ")[0] != file:
            others.append(one)
            continue
        end = earlier["last"] or earlier["first"]
        if (_line_of(earlier["first"]), _line_of(end)) != (_line_of(first), _line_of(last)):
            many += int(earlier["many"])
        first, last = min(first, earlier["first"], key=_line_of), max(last, end, key=_line_of)
    until = last.rpartition(" ")[2] if file else last
    where = first if (_line_of(first) == _line_of(last) and file) or first == last else f"{first} to {until}"
    return (*dict.fromkeys(others), f"{many} messages in full: {where}")


def _line_of(pointer: str) -> int:
    found = re.search(r"\d+$", pointer)
    return int(found[0]) if found else 0


def with_facts_of_cut(facts: Facts, messages: Sequence[Message], at: int) -> Facts:
    """Return `facts` with those of a message that was cut; it still says what it is about, so without its goals."""
    return merged_facts(facts, facts_of(messages, [at])._replace(goals=()))


def fit_summary(
    facts: Facts, version: int, wire: ProviderFormat, *, count: Counter, most: int
) -> FittedSummary:
    """Return what of the facts fits into `most` tokens; goals and constraints may take more."""
    around = tokens_around(wire, count)
    kept, lost = fit_facts(facts, count=count, most=max(1, most - around))
    return FittedSummary(kept, lost, message_tokens(summary_message(Summary(version, kept, ""), wire), count))


def tokens_around(wire: ProviderFormat, count: Counter) -> int:
    """Return what a summary message costs beside its text."""
    return message_tokens(message_saying(summary_role(wire), "", wire), count)


def summary_role(wire: ProviderFormat) -> Role:
    """Return who says the summary.

    A response of the model that thinks before it calls cannot follow one that does not, and the first message
    must be the user's, where Anthropic and Gemini join what one side says.
    """
    return "user" if wire in ("anthropic", "gemini") else "assistant"


def summary_message(summary: Summary, wire: ProviderFormat) -> Message:
    """Return the message that stands for what was removed."""
    return message_saying(summary_role(wire), rendered(summary), wire)


def removed_texts(messages: Sequence[Message], removed: Iterable[int]) -> tuple[RemovedText, ...]:
    """Return what the removed messages said, called and received, in order; not what was thought."""
    tools = {
        block.call_id: block.tool for message in messages for block in message.blocks if block.kind == "call"
    }
    found: list[RemovedText] = []
    for at in removed:
        for block in messages[at].blocks:
            if block.kind == "result":
                found.append(RemovedText(at, "tool", tools.get(block.call_id, block.tool), block.text))
            elif block.kind == "call":
                found.append(RemovedText(at, messages[at].role, block.tool, block.text[:CALL_CHARS]))
            elif block.kind == "text" and block.text.strip():
                found.append(RemovedText(at, messages[at].role, "", block.text))
    return tuple(found)
