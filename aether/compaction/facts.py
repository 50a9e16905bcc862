"""Facts: the parts of removed messages that must not depend on prose, taken from them word for word.

Goals, requests, constraints and decisions come from texts, files and errors from tool calls, names from both. Blocks
that aether injected are left out. Earlier summaries are never read as conversation: their facts and prose are handed on
unchanged. If there are more facts than the summary has room for, the easiest to find again are dropped first.
The form of a summary is in `summary`, the readers of failed commands and changed files in `messages.tool_calls`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import accumulate, chain
from typing import Any, NamedTuple

from aether.compaction.progress import done_in, is_continuation, progress_of, with_speaker, words_of_person
from aether.compaction.shapes import Facts, RemovedText, Summary
from aether.compaction.summary import is_summary, parsed, rendered
from aether.messages.convert import new_message, reread
from aether.messages.model import Message, ProviderFormat, Role
from aether.messages.shell import short_command
from aether.messages.sources.codex import HEADER
from aether.messages.tool_calls import (
    Call,
    FileFact,
    calls_of,
    failures_of,
    files_of,
    merged_failures,
    merged_files,
)
from aether.redact.redact import DEFAULT, Rules, redacted
from aether.text.accounts import leans
from aether.text.choices import settled
from aether.text.classify import (
    asks_for_decision,
    closing_question,
    is_approval,
    is_empty_reply,
    is_reply,
    message_by_kind,
    statements_by_kind,
    states_choice,
)
from aether.text.cleaning import clean, without_escapes, without_injected
from aether.text.endings import endings
from aether.text.identifiers import identifiers
from aether.text.picking import longest_front
from aether.text.similarity import index, nearest
from aether.text.words import pluralize, sentences, stems
from aether.tokens.count import message_tokens
from aether.types import Counter

# A page: the rest of a longer opening request is material, which the archive keeps.
GOAL_CHARS = 4_000
REQUEST_CHARS = 2_000
# Without room for all, the heads of requests: what is wanted comes first, pasted material after it.
SHORT_REQUEST_CHARS = 240
STATEMENT_CHARS = 400
ARGUMENT_CHARS = 120
# With more statements, comparing all pairs takes longer than reading them; equal ones are still merged.
MOST_COMPARED = 300
# A reply of as many words, none of them from the question, is a remark about something else.
REMARK_WORDS = 6
# A question is right before its answer; after more messages it was answered by something else.
_LOOK_BACK = 3
_RULES = frozenset({"constraint", "preference"})
# A request that changes the direction starts like this; the rest of it may be long.
_REVISES = re.compile(
    r"\W*(?:(?:ok(?:ay)?|no|hm+|wait|sorry|but|well)[,.!]? )*"
    r"(?:actually|instead(?! of)|change of plans?|new (?:goal|plan|direction)|on second thought|scrap (?:that|this|the)|"
    r"forget (?:about |that|the)|never ?mind|(?:the|our) goal is(?: now)?|we no longer (?:need|want)|let's rather|stop working on)\b",
    re.IGNORECASE,
)
# The lines of a state that are no account: the plan, the runs and the work tree.
_STATUS = re.compile(
    r"(?P<plan>[a-z_]+: )|(?P<runs>Ran `)|(?P<tree>Uncommitted|The branch is |The last commit|Nothing was |Commits, |Edits that |No file was )"
)
# What is tried, or comes before the rest, is no new goal.
_TRIES = re.compile(r"\b(?:maybe|perhaps|first|for now|quickly)\b", re.IGNORECASE)

# Share of a summary that the facts may use if prose is wanted beside them: selected sentences say less than a model's.
FACTS_SHARE, FACTS_SHARE_SELECTED = 0.85, 0.95
# Tokens: prose of fewer is not worth a call of a model.
LEAST_PROSE = 40
# Characters of a call's arguments that a summariser is shown.
CALL_CHARS = 4_000
_POINTER = re.compile(r"(?P<many>\d+) messages in full: (?P<first>.+?)(?: to (?P<last>.+))?", re.DOTALL)

# The newest of these describe the present state; they outlive the older ones of everything else.
NEWEST = 3
NEWEST_NAMES = 20
NEWEST_DECISIONS = 10
NEWEST_FILES = 12
# Files read last are about to be used; a path costs as much as three names, so more would displace ids that people gave.
NEWEST_READ = 3
# Paragraphs of the state: about the newest answer and what the calls show.
NEWEST_STATE = 24
# Those about the last checks, commits and pushes: in a small summary the words of a person are worth more than the others.
LEAST_STATE = 8
NEWEST_DONE = 18
# Of the room, for the newest words of a person: about 5 % of the window.
WORDS_SHARE = 0.28
# The newest of the dropped requests, whose names may stay.
NAMED_REQUESTS = 100
# On average no text has longer tokens.
LONGEST_TOKEN_CHARS = 20
# A shortened goal or constraint keeps at least this much.
LEAST_CHARS = 80
CUT = "… [the rest of this was removed with the messages; see the archive]"
# Halvings between the whole text and the least of it.
_HALVINGS = 12

# About 500 tokens: as much as the rest of the facts of one stretch of work uses.
MOST_NAMES = 80
# Names after a merge: a summary of eight thousand tokens holds no more.
MOST_MERGED_NAMES = 400
# Longer ones are data.
NAME_CHARS = 120
# Output says what it is about at its two ends.
_HEAD_CHARS, _TAIL_CHARS = 3_000, 1_500
# A longer text was pasted; it has names at its ends, too.
_TEXT_CHARS = 20_000
# The newest calls and results that are read for names, which bounds the time; older ones are in the history.
_MOST_BY_TOOL = 600
# Weight of one use, by its author.
_BY_PERSON, _BY_MODEL, _BY_CALL, _BY_TOOL = 8, 4, 2, 1
# Each compaction of a conversation reads the texts of the one before again.
CACHED_TEXTS = 4_096
_BY_TOOLS = frozenset({"call", "result"})
# Small bare numbers count things; they identify nothing.
_SPECIFIC_NUMBER = re.compile(r".*\d{3}|.*[%$€£¥°]|\D*\d+[.,:]\d+|.*\d[A-Za-zµ]", re.DOTALL)
# A round number is an amount, such as a limit of time.
_LINE_NUMBER = re.compile(r"\d{1,4}|\d{1,3}0{3,}")
# A time of day, a range of lines, a place in a file, a duration, a mode and an estimate name nothing; nor do the sizes in a
# listing, a label of a list, a class of answers ("2xx"), a small number and the type of one.
_CLOCK = re.compile(
    r"~.*|\./|\d{1,3}(?:,\d{3})*-[a-z]+|(?:[A-Za-z\d]-[A-Za-z\d]_?)+|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?|\d+(?:-\d+)+(?<!\d{4}-\d\d-\d\d)|\d{1,2}x"
    r"|[-+]\d+(?:,\d+)?|\d+,\d+p?|\d+p|\d+:(?://.*|[A-Za-z_]\w*)|\d[A-Ha-h]|\dxx|\d{1,3}(?:/\d{1,3})*|#\d|(?:u?int|float)\d+|0o?[0-7]{3,6}|100(?:644|755)|[\d.]+(?:ms|µs|s)|(?:\d+m)?\d+s|e\.g|i\.e|0\.0+"
)
_LISTED = re.compile(r"^[-dlbcps][rwxsStT-]{9}[.+@]?\s.*$|^total \d+$", re.MULTILINE)
_LISTED_NAME = re.compile(r"\S+(?: -> \S+)?$")
_ID = re.compile(r"(?=.*\d)(?!--?[A-Za-z]).{5,}", re.DOTALL)
# Words and numbers on a string ("run-4711", "eu-west-1a", "q21330"): letters and digits in one token, and all of it:
# not the start of a time or a version ("2026-01-23T19:04", "ubuntu-24.04"), nor what follows a "%" in a URL.
_COINED = re.compile(
    r"(?<![\w./@:%+-])(?=[\w-]{4})(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Za-z])\w+(?:-\w+)*(?![\w/@%+-]|\.\w|:\d)"
)
# A token that a cut may have torn.
_TORN_END, _TORN_START = re.compile(r"[\w./:@%+-]+\Z"), re.compile(r"\A[\w./:@%+-]+")
_OPTION = re.compile(r"--?[A-Za-z][\w-]*$")
# Of names in a numbered series so many are kept, as examples.
SERIES = 3
_NUMBERED = re.compile(r"[a-z_]+(?:_?\d+)+(?:_[a-z]+)?")
_DIGITS = re.compile(r"\d+")


class _Extract(NamedTuple):
    """One text of a message, with the field of `Facts` that it belongs to."""

    field: str
    text: str


def redacted_message(given: Message, rules: Rules | None = DEFAULT) -> Message:
    """Return a copy of `given` without secrets; `given` itself if it holds none, or without `rules`."""
    raw = given.raw if rules is None else redacted(given.raw, rules)
    return given if raw == given.raw else reread(given, raw)


def facts_of(messages: Sequence[Message], positions: Iterable[int]) -> Facts:
    """Return the facts of the removed messages at `positions`; the others show how the work went on."""
    summaries = [at for at, message in enumerate(messages) if is_summary(message)]
    removed = sorted({at for at in positions if 0 <= at < len(messages)}.difference(summaries))
    extracts = _in_force(_extracts(messages, removed, summaries))
    made = calls_of(messages)
    is_removed = set(removed).__contains__
    mine = [call for call in made if is_removed(call.at)]
    earlier = (parsed(messages[at].text) for at in summaries)
    kept = set(range(len(messages))).difference(removed)
    present = progress_of(messages, made, stays=kept.__contains__)
    stays = not summaries and _opening(messages, summaries) not in removed
    facts = Facts(
        opening=present.opening if stays and present.opening != present.current else (),
        current=present.current,
        earlier=present.earlier,
        state=present.state,
        next=present.next,
        **{
            field: tuple(dict.fromkeys(one.text for one in extracts if one.field == field))
            for field in ("goals", "requests", "constraints", "decisions")
        },
        open_calls=tuple(dict.fromkeys(_open_call(call) for call in mine if call.result is None)),
        files=files_of(mine),
        errors=failures_of(
            made,
            removed=is_removed,
            before=chain.from_iterable(summary.facts.errors for summary in earlier if summary),
        ),
    )
    names = names_of(messages, removed, besides=_text_beside_names(facts))
    return facts._replace(names=_beside_files(names, facts.files))


def merged_facts(older: Facts, newer: Facts) -> Facts:
    """Return the facts of two stretches, the older first: nothing twice, nothing lost, the newest at the end.

    The opening request stays first; an error that was open and is closed by now is listed as closed.
    """
    goals = tuple(dict.fromkeys((*older.goals, *newer.goals)))
    requests = _newest_once((*older.requests, *newer.requests))
    replaced = older.state if newer.state else ()
    found = Facts(
        goals=goals,
        opening=() if goals else older.opening or newer.opening,
        earlier=_newest_once((*older.earlier, *_accounts_in(replaced, newer.state), *newer.earlier)),
        current=newer.current or older.current,
        state=(*newer.state, *_still_so(older.state, newer)) or older.state,
        next=(*newer.next, *_still_so(older.next, newer, "plan"))
        if newer.state or newer.next
        else older.next,
        requests=tuple(text for text in requests if text not in goals),
        constraints=_distinct((*_still_in_force(older, newer), *newer.constraints)),
        decisions=_distinct(_newest_once((*older.decisions, *newer.decisions))),
        open_calls=_newest_once((*older.open_calls, *newer.open_calls)),
        files=merged_files(older.files, newer.files),
        errors=merged_failures(older.errors, newer.errors),
        lookups=_newest_once((*older.lookups, *newer.lookups)),
    )
    present = set(names_in(_text_beside_names(found)))
    names = merged_names(older.names, newer.names)
    return found._replace(names=_beside_files((name for name in names if name not in present), found.files))


def _still_so(lines: Sequence[str], newer: Facts, *kinds: str) -> Iterator[str]:
    """Yield those of earlier `lines` of whose kind, the plan, the runs or the work tree, the `newer` facts have none."""
    known = {found.lastgroup for part in (*newer.state, *newer.next) if (found := _STATUS.match(part))}
    for part in lines if newer.state else ():
        kind = found.lastgroup if (found := _STATUS.match(part)) else None
        if kind and kind not in known and kind in (kinds or _STATUS.groupindex):
            yield part


def _accounts_in(state: Sequence[str], newer: Collection[str]) -> Iterator[str]:
    """Yield what the state of an earlier summary says that was changed, besides what the newer state says."""
    for part in state:
        if part not in newer and not _STATUS.match(part):
            yield from done_in(part)


def _extracts(
    messages: Sequence[Message], removed: Iterable[int], summaries: Sequence[int]
) -> Iterator[_Extract]:
    opening = _opening(messages, summaries)
    for at in removed:
        message = messages[at]
        text = clean(message.text) if message.role in {"user", "assistant"} else ""
        said = words_of_person(message, text)
        if not (text or said) or is_continuation(text):
            continue
        if not said:
            for one in statements_by_kind(text).get("decision", ()):
                if states_choice(one):
                    yield _Extract("decisions", one.lstrip("-*•+ ") or one)
        elif at == opening:
            yield _Extract("goals", with_speaker(message, _head(said, GOAL_CHARS)))
            yield from (_Extract("constraints", one) for kind, one in message_by_kind(said) if kind in _RULES)
        else:
            for found in _request_extracts(said, _text_before(messages, at)):
                asks = found.field in {"goals", "requests"}
                yield found._replace(text=with_speaker(message, found.text)) if asks else found


def _in_force(extracts: Iterable[_Extract]) -> list[_Extract]:
    """Return `extracts` without the rules that a person's later words end."""
    held: list[_Extract] = []
    for one in extracts:
        ended = _ended_by(_of_person([one.text]), [each.text for each in held if each.field == "constraints"])
        held = [each for each in held if each.field != "constraints" or each.text not in ended]
        held.append(one)
    return held


def _still_in_force(older: Facts, newer: Facts) -> list[str]:
    """Return the rules of `older` that no words of a person in `newer` end."""
    said = (*newer.goals, *newer.requests, *newer.decisions, *newer.current)
    ended = _ended_by(_of_person(said), older.constraints)
    return [one for one in older.constraints if one not in ended]


def _of_person(said: Iterable[str]) -> Iterator[str]:
    """Yield the texts without those that an agent may have said: of its messages only its choices are noted."""
    return (text for text in said if "\nAnswered: " in text or not states_choice(text))


def _ended_by(said: Iterable[str], rules: Collection[str]) -> set[str]:
    """Return those of `rules` that the texts `said` end: each the only one that is named."""
    ended: set[str] = set()
    for text in said if rules else ():
        for end in endings(text.rpartition("\nAnswered: ")[2]):
            named = {one for one in rules if end.words and end.concerns(one)}
            ended |= named if len(named) == 1 else set()
    return ended


def _opening(messages: Sequence[Message], summaries: Sequence[int]) -> int:
    """Return the position of the request that opened the conversation; -1 if a summary replaced it."""
    end = summaries[0] if summaries else len(messages)
    for at in range(end):
        text = clean(messages[at].text) if messages[at].role == "user" else ""
        if text and not is_continuation(text) and not is_empty_reply(text):
            return at
    return -1


def _text_before(messages: Sequence[Message], at: int) -> str:
    for before in reversed(messages[max(0, at - _LOOK_BACK) : at]):
        if is_summary(before):
            break
        if before.role == "assistant" and (text := clean(before.text)):
            return text
        if before.role == "user" and clean(before.text):
            break
    return ""


def _request_extracts(text: str, before: str) -> Iterator[_Extract]:
    """Yield the contents of a person's message: what it settles of the text `before` it, rules, a choice, a request."""
    choice = settled(text, before) if before else None
    parts = message_by_kind(text)
    rules = [_Extract("constraints", one) for kind, one in parts if kind in _RULES]
    if choice and not choice.own:
        yield _Extract("decisions", choice.with_answer(text))
        yield from rules
        return
    asked = closing_question(before) if before and is_reply(text) else ""
    if asked and not (is_empty_reply(text) and not asks_for_decision(asked)):
        decides = asks_for_decision(asked) and not choice and _takes_up(text, asked)
        field = "decisions" if decides else "requests"
        yield _Extract(field, f"Asked: {asked}\nAnswered: {text}")
        yield from rules
        return
    if is_empty_reply(text):
        return
    yield from rules
    for one in [one for kind, one in parts if kind not in _RULES]:
        if (choice := settled(one, "")) and choice.text == one.strip():
            yield _Extract("decisions", _head(one, STATEMENT_CHARS))
        else:
            yield _Extract("goals" if _revises(one) else "requests", _head(one, REQUEST_CHARS))


def _takes_up(reply: str, asked: str) -> bool:
    """Return whether a `reply` is about what was `asked`: a longer one may speak of something else."""
    short = len(reply.split()) < REMARK_WORDS or is_approval(reply)
    return short or not {*stems(reply)}.isdisjoint(stems(asked))


def _revises(request: str) -> bool:
    """Return whether a request changes what the work is for."""
    return bool(_REVISES.match(request)) and not _TRIES.search(sentences(request)[0])


def _head(text: str, most: int) -> str:
    """Return the opening sentences of `text`, as many as fit, verbatim."""
    if len(text) <= most:
        return text
    end = 0
    for sentence in sentences(text[:most]):
        at = text.find(sentence, end, most)
        if at < 0 or at + len(sentence) >= most:
            break
        end = at + len(sentence)
    return text[:end] or text[:most].rstrip()


def _open_call(call: Call) -> str:
    if call.command:
        given = short_command(call.command)
    else:
        texts = (value for value in call.arguments.values() if isinstance(value, str) and value.strip())
        given = next(texts, "").strip().partition("\n")[0]
        given = given if len(given) <= ARGUMENT_CHARS else given[: ARGUMENT_CHARS - 1] + "…"
    return f"{call.tool}: {given}".strip(": ")


def _text_beside_names(facts: Facts) -> str:
    """Return the text of all facts but the names: a name in it is not listed again."""
    texts = (*facts.goals, *facts.requests, *facts.constraints, *facts.decisions, *facts.open_calls)
    return "\n".join((*texts, *(file.path for file in facts.files), *(error.text for error in facts.errors)))


def _beside_files(names: Iterable[str], files: Iterable[FileFact]) -> tuple[str, ...]:
    """Return those of `names` that are not the end of a listed path."""
    parts = (file.path.split("/") for file in files)
    listed = {"/".join(one[at:]) for one in parts for at in range(len(one))}
    return tuple(name for name in names if name not in listed)


def _newest_once(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text once, at its last place."""
    return tuple(reversed(dict.fromkeys(reversed(tuple(texts)))))


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return `texts` without repeats of an earlier one, in other words, too."""
    every = tuple(dict.fromkeys(texts))
    if len(every) > MOST_COMPARED:
        return every
    among = index(every)
    return tuple(text for at, text in enumerate(every) if all(near.at >= at for near in nearest(text, among)))


class PreviousSummary(NamedTuple):
    """The joined contents of earlier summaries."""

    version: int
    """Of the newest one; 0 without any."""
    facts: Facts
    prose: str


class FittedSummary(NamedTuple):
    """The facts that a summary has room for, the facts dropped in words, and the tokens of its message without prose."""

    facts: Facts
    lost: list[str]
    tokens: int


def previous_summary(messages: Sequence[Message], positions: Iterable[int]) -> PreviousSummary:
    """Return the joined contents of the summaries at these positions, the oldest first."""
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
    """Return the facts of earlier summaries and of the removed messages, with a pointer to their full text."""
    facts = merged_facts(before.facts, facts_of(messages, removed))
    first = pointer(removed[0]) if removed else ""
    if not first:
        return facts
    many, last = len(removed), pointer(removed[-1])
    # One line for each file, which is named once.
    file = first.rpartition(" ")[0]
    others: list[str] = []
    for line in facts.lookups:
        earlier = _POINTER.fullmatch(line)
        if earlier is None or not file or earlier["first"].rpartition(" ")[0] != file:
            others.append(line)
            continue
        end = earlier["last"] or earlier["first"]
        if (_line_of(earlier["first"]), _line_of(end)) != (_line_of(first), _line_of(last)):
            many += int(earlier["many"])
        first, last = min(first, earlier["first"], key=_line_of), max(last, end, key=_line_of)
    until = last.rpartition(" ")[2] if file else last
    where = first if (_line_of(first) == _line_of(last) and file) or first == last else f"{first} to {until}"
    return facts._replace(lookups=(*dict.fromkeys(others), f"{many} messages in full: {where}"))


def _line_of(pointer: str) -> int:
    found = re.search(r"\d+$", pointer)
    return int(found[0]) if found else 0


def with_facts_of_cut(facts: Facts, messages: Sequence[Message], at: int) -> Facts:
    """Return `facts` with those of a shortened message, except its goals, which its head still states."""
    return merged_facts(facts, facts_of(messages, [at])._replace(goals=()))


def fit_summary(
    facts: Facts, version: int, provider: ProviderFormat, *, count: Counter, most: int
) -> FittedSummary:
    """Return the facts that fit into a summary of `most` tokens; goals and constraints may exceed it."""
    around = tokens_around(provider, count)
    kept, lost = fit_facts(facts, count=count, most=max(1, most - around))
    return FittedSummary(
        kept, lost, message_tokens(summary_message(Summary(version, kept, ""), provider), count)
    )


def tokens_around(provider: ProviderFormat, count: Counter) -> int:
    """Return the tokens of a summary message beside its text."""
    return message_tokens(new_message(summary_role(provider), "", provider), count)


def summary_role(provider: ProviderFormat) -> Role:
    """Return the role of a summary message.

    A response of the model that thinks before it calls cannot follow one that does not, and the first message
    must be the user's in formats that join the messages of one side: Anthropic and Gemini.
    """
    return "user" if provider in ("anthropic", "gemini") else "assistant"


def summary_message(summary: Summary, provider: ProviderFormat) -> Message:
    """Return the message that replaces the removed ones."""
    return new_message(summary_role(provider), rendered(summary), provider)


def removed_texts(messages: Sequence[Message], removed: Iterable[int]) -> tuple[RemovedText, ...]:
    """Return the texts, calls and results of the removed messages in order, without reasoning."""
    tools = {
        block.call_id: block.tool for message in messages for block in message.blocks if block.kind == "call"
    }
    found: list[RemovedText] = []
    for at in removed:
        role = messages[at].role
        for block in messages[at].blocks:
            if block.kind == "result":
                found.append(RemovedText(at, "tool", tools.get(block.call_id, block.tool), block.text))
            elif block.kind == "call":
                found.append(RemovedText(at, role, block.tool, block.text[:CALL_CHARS]))
            elif block.kind == "text" and block.text.strip():
                found.append(RemovedText(at, role, "", block.text))
    return tuple(found)


class _Drop(NamedTuple):
    """One kind of entry that may be dropped, the oldest first."""

    name: str
    field: str
    drops: Callable[[Any], object] = lambda _: True
    stay: int = 0
    """How many of the newest are kept."""
    share: float = 0.0
    """Share of the room within which the newest are kept beside the goals and the current request, which a person said
    too; if something is left of each, the shortest as a whole."""
    left: Callable[[Any], Any] = lambda _: None
    """The remainder of a dropped entry; None: nothing."""


def _without_hash(file: FileFact) -> FileFact:
    return file._replace(sha256="")


def _is_read(file: FileFact) -> bool:
    return file.action == "read"


def _hash_of_read(file: FileFact) -> str:
    return file.sha256 if _is_read(file) else ""


def _is_long(text: str) -> bool:
    return len(text) > SHORT_REQUEST_CHARS


def _shorter(text: str) -> str:
    return _head(text, SHORT_REQUEST_CHARS)


# The easiest to find again first; goals, constraints and the newest pointer to the full text are never dropped.
_DROPS = (
    _Drop("requests that are among the messages", "current", stay=1),
    _Drop("errors that are over", "errors", lambda error: not error.open),
    _Drop("hashes of files that were read", "files", _hash_of_read, left=_without_hash),
    _Drop("files that were read", "files", _is_read, stay=NEWEST_READ),
    _Drop("hashes of files", "files", lambda file: file.sha256, left=_without_hash),
    _Drop("names", "names", stay=NEWEST_NAMES),
    _Drop("open errors", "errors", stay=NEWEST),
    _Drop("ends of requests", "requests", _is_long, share=WORDS_SHARE, left=_shorter),
    _Drop("ends of older paragraphs", "state", _is_long, stay=NEWEST_STATE, left=_shorter),
    _Drop("earlier results", "earlier", leans),
    _Drop("earlier results", "earlier", stay=NEWEST_DONE),
    _Drop("names", "names"),
    _Drop("requests", "requests", share=WORDS_SHARE),
    _Drop("paragraphs of the state", "state", stay=NEWEST_STATE),
    _Drop("earlier results", "earlier"),
    _Drop("files that were read", "files", _is_read),
    _Drop("paragraphs of the state", "state", stay=LEAST_STATE),
    _Drop("ends of requests", "requests", _is_long, left=_shorter),
    _Drop("requests", "requests", stay=NEWEST),
    _Drop("opening requests", "opening"),
    _Drop("current requests", "current"),
    _Drop("decisions", "decisions", stay=NEWEST_DECISIONS),
    _Drop("lookups", "lookups", stay=1),
    _Drop("requests", "requests"),
    _Drop("names", "names"),
    _Drop("decisions", "decisions", stay=NEWEST),
    _Drop("paragraphs of the state", "state", stay=NEWEST),
    _Drop("open errors", "errors", stay=NEWEST),
    _Drop("open errors", "errors"),
    _Drop("files", "files", stay=NEWEST_FILES),
    _Drop("decisions", "decisions"),
    _Drop("open calls", "open_calls"),
    _Drop("files", "files"),
    _Drop("paragraphs of the state", "state"),
    _Drop("next steps", "next"),
)


def fit_facts(facts: Facts, *, count: Counter, most: int) -> tuple[Facts, list[str]]:
    """Return the facts that a summary of `most` tokens without prose holds, and the dropped ones in words.

    Goals and constraints are at worst shortened; only they can make the result larger than `most`.
    """
    dropped: dict[str, int] = {}
    tokens = _tokens(facts, count)
    for drop in _DROPS:
        if tokens <= most:
            break
        if drop.field == "earlier" and (apart := _without_repeats(facts)) != facts:
            # What the state says as well takes no room from what it does not.
            facts, tokens = apart, _tokens(apart, count)
        facts, number = _without(facts, drop, count=count, most=most)
        if number:
            tokens = _tokens(facts, count)
            dropped[drop.name] = dropped.get(drop.name, 0) + number
    facts = _without_repeats(facts)
    lost = [pluralize(number, name) for name, number in dropped.items()]
    if tokens > most:
        shorter = _shortened(facts, count=count, most=most)
        lost += ["the ends of goals and constraints"] if shorter != facts else []
        facts = shorter
    return facts, lost


def _without_repeats(facts: Facts) -> Facts:
    """Return `facts` without what was done earlier and the state says as well."""
    present = "\n".join(facts.state).replace("**", "")
    return facts._replace(earlier=tuple(one for one in facts.earlier if one not in present))


def _tokens(facts: Facts, count: Counter) -> int:
    return count(rendered(Summary(1, facts, "")))


def _without(facts: Facts, drop: _Drop, *, count: Counter, most: int) -> tuple[Facts, int]:
    """Return `facts` with the fewest entries dropped that make it fit, or all if none is enough; and their number."""
    entries: tuple[Any, ...] = getattr(facts, drop.field)
    places = [at for at, entry in enumerate(entries) if drop.drops(entry)]
    places = places[: max(0, len(places) - drop.stay)]
    if drop.share and places:
        shortest = drop.left(entries[places[0]]) is not None
        said = count("\n".join((*facts.goals, *facts.current[-1:])))
        staying = _within(entries, drop.share * most - said, count, shortest=shortest)
        places = [at for at in places if at not in staying]
    # Entries beyond any possible room are dropped unmeasured, because counting thousands of texts takes long.
    low, high, room = 0, len(places), most * LONGEST_TOKEN_CHARS
    for number in range(len(places), 0, -1):
        entry = entries[places[number - 1]]
        room -= len(entry if isinstance(entry, str) else str(entry[0]))
        if room < 0:
            low = number
            break
    # Most drops are not enough as a whole: one count says so. A dropped request leaves names, so fewer may be smaller.
    if low < high and drop.field != "requests":
        every = _dropped(facts, drop, places)
        if _tokens(every, count) > most:
            return every, high
    stay = longest_front(
        high - low, lambda stay: _tokens(_dropped(facts, drop, places[: high - stay]), count) <= most
    )
    return _dropped(facts, drop, places[: high - stay]), high - stay


def _within(entries: Sequence[str], most: float, count: Counter, *, shortest: bool) -> set[int]:
    """Return the places of the newest entries that have at most so many tokens together, or of the `shortest`."""
    places = range(len(entries) - 1, -1, -1)
    ranked = sorted(places, key=lambda at: len(entries[at])) if shortest else places
    sizes = accumulate(count(entries[at]) for at in ranked)
    return {at for at, size in zip(ranked, sizes, strict=True) if size <= most}


def _dropped(facts: Facts, drop: _Drop, places: Sequence[int]) -> Facts:
    entries: tuple[Any, ...] = getattr(facts, drop.field)
    removed = set(places)
    left = ((drop.left(entry) if at in removed else entry) for at, entry in enumerate(entries))
    changed: dict[str, Any] = {drop.field: tuple(entry for entry in left if entry is not None)}
    if drop.field == "requests" and (drop.stay or drop.share) and places:
        # The ids and numbers of a dropped request are kept, as they cost little.
        names = [name for at in places[-NAMED_REQUESTS:] for name in names_in(entries[at])]
        added = dict.fromkeys(name for name in names if name not in facts.names)
        changed["names"] = tuple(dict.fromkeys((*added, *facts.names)))
    return facts._replace(**changed)


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
    goals, constraints = (
        tuple(text if len(text) <= chars + len(CUT) else text[:chars].rstrip() + CUT for text in texts)
        for texts in (facts.goals, facts.constraints)
    )
    return facts._replace(goals=goals, constraints=constraints)


def names_of(messages: Sequence[Message], positions: Iterable[int], *, besides: str = "") -> tuple[str, ...]:
    """Return the names at `positions` that are not in `besides`, the last used at the end.

    A name is an id, number, URL, command, path or identifier, verbatim. Names are ranked by use, first those that a
    person wrote; in tool results only ids and URLs count, which cannot be words. The number is bounded.
    """
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


def merged_names(older: Sequence[str], newer: Sequence[str]) -> tuple[str, ...]:
    """Return each name once, the newest at the end; of too many, the oldest are dropped.

    >>> merged_names(["a1", "b2"], ["a1"])
    ('b2', 'a1')
    """
    every = _newest_once((*older, *dict.fromkeys(newer)))
    return tuple(_few_of_a_series(every, said=every)[-MOST_MERGED_NAMES:])


def names_in(text: str) -> list[str]:
    """Return the names in the text of a person or a model.

    >>> names_in("Order 48213 failed 3 times in fetch_user, see https://x.org/a")
    ['https://x.org/a', 'fetch_user', '48213']
    >>> names_in("Run run-4711 in eu-west-1a")
    ['run-4711', 'eu-west-1a']
    """
    found = identifiers(text)
    words = [name for name in found.identifiers if not _OPTION.match(name)]
    words += [number for number in found.numbers if _SPECIFIC_NUMBER.match(number)]
    every = chain(found.urls, found.commands, words, _COINED.findall(text), found.paths)
    return [name for name in dict.fromkeys(every) if _is_name(name)]


def _is_name(text: str) -> bool:
    return 1 < len(text) <= NAME_CHARS and not _CLOCK.fullmatch(text)


def _few_of_a_series(names: Sequence[str], *, said: Collection[str]) -> list[str]:
    """Return `names` with the newest few of each numbered series: always in code, otherwise if nobody `said` them."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in reversed(names):
        series = _DIGITS.sub("#", name) if name not in said or _NUMBERED.fullmatch(name) else ""
        seen[series] = seen.get(series, 0) + 1
        if not re.search(r"[A-Za-z]", series) or seen[series] <= SERIES:
            found.append(name)
    return found[::-1]


def _uses(messages: Sequence[Message], positions: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    """Yield the names in each block with the weight of its author."""
    listed = list(positions)
    by_tool = sum(block.kind in _BY_TOOLS for at in listed for block in messages[at].blocks)
    for at in listed:
        for block in messages[at].blocks:
            if block.kind == "text" and messages[at].role != "system":
                weight = _BY_PERSON if messages[at].role == "user" else _BY_MODEL
                yield weight, list(_names_in_message(_ends(block.text, _TEXT_CHARS)))
            elif block.kind in _BY_TOOLS:
                by_tool -= 1
                if by_tool < _MOST_BY_TOOL:
                    weight = _BY_CALL if block.kind == "call" else _BY_TOOL
                    yield weight, list(_ids_in(without_escapes(_ends(block.text, _HEAD_CHARS))))


@lru_cache(maxsize=CACHED_TEXTS)
def _names_in_message(text: str) -> tuple[str, ...]:
    return tuple(names_in(clean(text)))


@lru_cache(maxsize=CACHED_TEXTS)
def _ids_in(text: str) -> tuple[str, ...]:
    """Return the ids and URLs in the text of a call or a result; of a line of `ls -l` only the name is read."""
    listed = _LISTED.sub(
        lambda line: "" if line[0].startswith("total ") else "".join(_LISTED_NAME.findall(line[0])),
        without_injected(HEADER.sub("", text)),
    )
    found = identifiers(listed)
    every = (*found.urls, *found.identifiers, *found.numbers, *_COINED.findall(listed))
    ids = (name for name in dict.fromkeys(every) if _is_name(name) and _ID.fullmatch(name))
    return tuple(name for name in ids if not _LINE_NUMBER.fullmatch(name))


def _ends(text: str, most: int) -> str:
    """Return `text`, or the whole tokens of its two ends."""
    if len(text) <= most + _TAIL_CHARS:
        return text
    return f"{_TORN_END.sub('', text[:most])}\n{_TORN_START.sub('', text[-_TAIL_CHARS:])}"
