"""Facts: the parts of removed messages that must not depend on prose, taken from them word for word.

Requests are the words of a person, decisions a person's answers to questions; files, errors and runs come from the calls
of tools, names from texts and calls. Blocks that aether injected are left out. Earlier summaries are never read as
conversation: their facts and prose are handed on unchanged. If there are more facts than the summary has room for, the
easiest to find again are dropped first. The form of a summary is in `summary`, what was said in `progress`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import accumulate, chain
from typing import Any, NamedTuple

from aether.compaction.progress import (
    ASKED,
    PAGE_CHARS,
    REQUEST_CHARS,
    Conversation,
    call_label,
    conversation_of,
    merged_ran,
    middle_cut,
    progress_of,
)
from aether.compaction.shapes import Facts, RemovedText, Summary
from aether.compaction.summary import parsed, rendered
from aether.messages.convert import new_message, reread
from aether.messages.model import Message, ProviderFormat, Role
from aether.messages.sources.codex import HEADER
from aether.messages.tool_calls import FileFact, failures_of, files_of, merged_failures, merged_files
from aether.redact.redact import DEFAULT, Rules, redacted
from aether.text.cleaning import clean, without_escapes, without_injected
from aether.text.identifiers import identifiers
from aether.text.picking import longest_front
from aether.text.words import pluralize
from aether.tokens.count import message_tokens
from aether.types import Counter

# Without room for all, requests with their middle cut out: what is wanted comes first, a rule may come last.
SHORT_REQUEST_CHARS, LEAST_REQUEST_CHARS = 240, 100
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
# Paragraphs of the state: about the newest answer.
NEWEST_STATE = 24
# In a small summary the words of a person are worth more than the others.
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
# Fewer digits count something.
LEAST_DIGITS = 4
_AMOUNT = frozenset("%$€£¥°")
# Letters and digits in one token, with hyphens between ("run-4711", "q21330"), and all of it: not the start of a time or a
# version ("2026-01-23T19:04", "ubuntu-24.04"), nor what follows a "%" in a URL.
_COINED = re.compile(
    r"(?<![\w.,/@:%+-])(?=[\w-]{4})(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Za-z])\w+(?:-\w+)*(?![\w/@%+-]|\.\w|:\d)"
)
# A line of `ls -l` before the name.
_LISTED = re.compile(r"^(?:[-dlbcps][rwxsStT-]{9}\S*(?:\s+\S+){7}|total \d+$)", re.MULTILINE)
# Of names in a numbered series that nobody but tools wrote so many are kept, as examples.
SERIES = 3
_DIGITS = re.compile(r"\d+")


def redacted_message(given: Message, rules: Rules | None = DEFAULT) -> Message:
    """Return a copy of `given` without secrets; `given` itself if it holds none, or without `rules`."""
    raw = given.raw if rules is None else redacted(given.raw, rules)
    return given if raw == given.raw else reread(given, raw)


def facts_of(messages: Sequence[Message], positions: Iterable[int]) -> Facts:
    """Return the facts of the removed messages at `positions`; the others show how the work went on."""
    return facts_in(conversation_of(messages), positions)


def facts_in(conversation: Conversation, positions: Iterable[int]) -> Facts:
    """Return the facts of the removed messages at `positions` of a `conversation`, as `facts_of`."""
    messages, summaries = conversation.messages, conversation.summaries
    removed = {at for at in positions if 0 <= at < len(messages)}.difference(summaries)
    opening = conversation.opening
    present = progress_of(conversation, stays=lambda at: at not in removed)
    by_person = [
        one for one in conversation.said if one.by == "person" and one.at in removed and one != opening
    ]
    calls = [call for call in conversation.calls if call.at in removed]
    earlier = (parsed(messages[at].text) for at in summaries)
    first = middle_cut(opening.shown, PAGE_CHARS) if opening else ""
    stays = opening is None or opening.at not in removed
    requests = _newest_once(middle_cut(one.shown, REQUEST_CHARS) for one in by_person if not one.asked)
    answers = _newest_once(middle_cut(one.shown, REQUEST_CHARS) for one in by_person if one.asked)
    current = {middle_cut(text, REQUEST_CHARS) for text in present.current}
    facts = Facts(
        goals=() if stays else (first,),
        opening=(first,) if first and stays and first not in present.current else (),
        current=present.current,
        state=present.state,
        next=present.next,
        earlier=present.earlier,
        ran=present.ran,
        requests=tuple(text for text in requests if text not in current),
        decisions=tuple(text for text in answers if text not in current),
        open_calls=tuple(dict.fromkeys(call_label(call) for call in calls if call.result is None)),
        files=files_of(calls),
        errors=failures_of(
            conversation.calls,
            removed=removed.__contains__,
            before=chain.from_iterable(summary.facts.errors for summary in earlier if summary),
        ),
    )
    names = names_of(messages, sorted(removed), besides=_text_beside_names(facts))
    return facts._replace(names=_beside_files(names, facts.files))


def merged_facts(older: Facts, newer: Facts) -> Facts:
    """Return the facts of two stretches, the older first: nothing twice, nothing lost, the newest at the end.

    The opening request stays first; a state that is replaced is what was done before; an error that was open and is closed
    by now is listed as closed.
    """
    goals = tuple(dict.fromkeys((*older.goals, *newer.goals)))
    current = newer.current or older.current
    replaced = [middle_cut(text, REQUEST_CHARS) for text in (older.current if newer.current else ())]
    answers = [text for text in replaced if text.startswith(ASKED)]
    shown = {*goals, *(middle_cut(text, REQUEST_CHARS) for text in current)}
    requests = (*older.requests, *(text for text in replaced if text not in answers), *newer.requests)
    decisions = (*older.decisions, *answers, *newer.decisions)
    state = newer.state or older.state
    before = (*older.earlier, *(older.state if newer.state else ()), *newer.earlier)
    found = Facts(
        goals=goals,
        opening=() if goals else older.opening or newer.opening,
        current=tuple(text for text in current if text not in goals),
        state=state,
        next=newer.next or older.next,
        ran=merged_ran(older.ran, newer.ran),
        earlier=tuple(text for text in _newest_once(before) if text not in state),
        requests=tuple(text for text in _newest_once(requests) if text not in shown),
        constraints=tuple(dict.fromkeys((*older.constraints, *newer.constraints))),
        decisions=tuple(text for text in _newest_once(decisions) if text not in shown),
        open_calls=_newest_once((*older.open_calls, *newer.open_calls)),
        files=merged_files(older.files, newer.files),
        errors=merged_failures(older.errors, newer.errors),
        lookups=_newest_once((*older.lookups, *newer.lookups)),
    )
    present = set(names_in(_text_beside_names(found)))
    names = merged_names(older.names, newer.names)
    return found._replace(names=_beside_files((name for name in names if name not in present), found.files))


def _text_beside_names(facts: Facts) -> str:
    """Return the text of all facts but the names: a name in it is not listed again."""
    texts = (*facts.goals, *facts.requests, *facts.constraints, *facts.decisions, *facts.open_calls)
    return "\n".join((*texts, *(file.path for file in facts.files), *(error.text for error in facts.errors)))


def _beside_files(names: Iterable[str], files: Iterable[FileFact]) -> tuple[str, ...]:
    """Return those of `names` that are not the end of a listed path."""
    parts = (file.path.split("/") for file in files)
    listed = {"/".join(steps[at:]) for steps in parts for at in range(len(steps))}
    return tuple(name for name in names if name not in listed)


def _newest_once(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text once, at its last place."""
    return tuple(reversed(dict.fromkeys(reversed(tuple(texts)))))


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
    conversation: Conversation,
    removed: Sequence[int],
    before: PreviousSummary,
    pointer: Callable[[int], str],
) -> Facts:
    """Return the facts of earlier summaries and of the removed messages, with a pointer to their full text."""
    facts = merged_facts(before.facts, facts_in(conversation, removed))
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
    digits = pointer[len(pointer.rstrip("0123456789")) :]
    return int(digits or 0)


def with_facts_of_cut(facts: Facts, conversation: Conversation, at: int) -> Facts:
    """Return `facts` with those of a shortened message, except its goals, which its head still states."""
    return merged_facts(facts, facts_in(conversation, [at])._replace(goals=()))


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
    return middle_cut(text, SHORT_REQUEST_CHARS) != text


def _is_longest(text: str) -> bool:
    return middle_cut(text, LEAST_REQUEST_CHARS) != text


def _shortest(text: str) -> str:
    return middle_cut(text, LEAST_REQUEST_CHARS)


def _shorter(text: str) -> str:
    return middle_cut(text, SHORT_REQUEST_CHARS)


# The easiest to find again first; goals, constraints and the newest pointer to the full text are never dropped.
_DROPS = (
    _Drop("errors that are over", "errors", lambda error: not error.open),
    _Drop("hashes of files that were read", "files", _hash_of_read, left=_without_hash),
    _Drop("files that were read", "files", _is_read, stay=NEWEST_READ),
    _Drop("hashes of files", "files", lambda file: file.sha256, left=_without_hash),
    _Drop("names", "names", stay=NEWEST_NAMES),
    _Drop("open errors", "errors", stay=NEWEST),
    _Drop("parts of requests", "requests", _is_long, share=WORDS_SHARE, left=_shorter),
    _Drop("parts of older paragraphs", "state", _is_long, stay=NEWEST_STATE, left=_shorter),
    _Drop("parts of opening requests", "opening", _is_long, left=_shorter),
    _Drop("earlier results", "earlier", stay=NEWEST_DONE),
    _Drop("names", "names"),
    _Drop("parts of requests", "requests", _is_longest, share=WORDS_SHARE, left=_shortest),
    _Drop("paragraphs of the state", "state", stay=NEWEST_STATE),
    _Drop("earlier results", "earlier"),
    _Drop("files that were read", "files", _is_read),
    _Drop("paragraphs of the state", "state", stay=LEAST_STATE),
    _Drop("requests", "requests", share=WORDS_SHARE),
    _Drop("parts of requests", "requests", _is_longest, left=_shortest),
    _Drop("opening requests", "opening"),
    _Drop("parts of current requests", "current", _is_long, left=_shorter),
    _Drop("paragraphs of the state", "state", stay=NEWEST),
    _Drop("requests", "requests", stay=NEWEST),
    _Drop("decisions", "decisions", stay=NEWEST_DECISIONS),
    _Drop("lookups", "lookups", stay=1),
    _Drop("requests", "requests"),
    _Drop("names", "names"),
    _Drop("decisions", "decisions", stay=NEWEST),
    _Drop("open errors", "errors", stay=NEWEST),
    _Drop("open errors", "errors"),
    _Drop("files", "files", stay=NEWEST_FILES),
    _Drop("decisions", "decisions"),
    _Drop("open calls", "open_calls"),
    _Drop("runs", "ran"),
    _Drop("files", "files"),
    _Drop("paragraphs of the state", "state"),
    _Drop("current requests", "current", stay=1),
    _Drop("current requests", "current"),
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
        facts, number = _without(facts, drop, count=count, most=most)
        if number:
            tokens = _tokens(facts, count)
            dropped[drop.name] = dropped.get(drop.name, 0) + number
    lost = [pluralize(number, name) for name, number in dropped.items()]
    if tokens > most:
        shorter = _shortened(facts, count=count, most=most)
        lost += ["the ends of goals and constraints"] if shorter != facts else []
        facts = shorter
    return facts, lost


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
    return _newest_once((*older, *dict.fromkeys(newer)))[-MOST_MERGED_NAMES:]


def names_in(text: str) -> list[str]:
    """Return the names in the text of a person or a model.

    >>> names_in("Order 48213 failed 3 times in fetch_user, see https://x.org/a")
    ['https://x.org/a', 'fetch_user', '48213']
    >>> names_in("Run run-4711 in eu-west-1a")
    ['run-4711', 'eu-west-1a']
    """
    found = identifiers(text)
    amounts = filter(_is_amount, found.numbers)
    every = chain(found.urls, found.commands, found.identifiers, amounts, _COINED.findall(text), found.paths)
    return [name for name in dict.fromkeys(every) if _is_name(name)]


def _is_name(text: str) -> bool:
    """Return whether a token is no option, no estimate ("~350"), no data, and not as short as "#1" or "i.e"."""
    return (len(text) > 3 or "_" in text) and len(text) <= NAME_CHARS and text[0] not in "-~"


def _is_amount(number: str) -> bool:
    """Return whether a number says more than how many: it is long and no time or range, or has a currency or percentage."""
    is_long = sum(map(str.isdecimal, number)) >= LEAST_DIGITS and {*number}.isdisjoint(":-/")
    return is_long or not _AMOUNT.isdisjoint(number)


def _few_of_a_series(names: Sequence[str], *, said: Collection[str]) -> list[str]:
    """Return `names` with the newest few of each numbered series of words that nobody `said`."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in reversed(names):
        series = "" if name in said or not any(map(str.isalpha, name)) else _DIGITS.sub("#", name)
        seen[series] = seen.get(series, 0) + 1
        if not series or seen[series] <= SERIES:
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
    """Return the ids and URLs in the text of a call or a result: what has digits and cannot be a word."""
    listed = _LISTED.sub("", without_injected(HEADER.sub("", text)))
    found = identifiers(listed)
    amounts = filter(_is_amount, found.numbers)
    names = dict.fromkeys((*found.urls, *found.identifiers, *amounts, *_COINED.findall(listed)))
    # A round number is an amount, such as a limit of time.
    return tuple(
        name
        for name in names
        if _is_name(name) and len(name) > LEAST_DIGITS and _DIGITS.search(name) and not name.endswith("000")
    )


def _ends(text: str, most: int) -> str:
    """Return `text`, or its two ends without the tokens that the cut has torn."""
    if len(text) <= most + _TAIL_CHARS:
        return text
    head, tail = text[:most], text[-_TAIL_CHARS:]
    return f"{head[: -len(head.split()[-1])] if head.split() else head}\n{tail.partition(' ')[2] or tail}"
