"""Facts: the parts of removed messages that must not depend on prose, taken from them word for word.

Requests are the words of a person, decisions a person's answers to questions; files, errors and runs come from the calls
of tools, names from texts and calls. Blocks that aether injected are left out. Earlier summaries are never read as
conversation: their facts and prose are handed on unchanged. What was said is read in `progress`; which
facts a summary has room for is decided in `room`, and its form in `summary`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce
from itertools import chain
from typing import NamedTuple

from aether.conversation.progress import (
    ASKED,
    PAGE_CHARS,
    REQUEST_CHARS,
    Conversation,
    call_label,
    merged_ran,
    middle_cut,
    progress_of,
)
from aether.conversation.readings import BY_CALL, DIGITS, Reading, names_in
from aether.conversation.shapes import Facts, RemovedText
from aether.conversation.summary import parsed
from aether.messages.model import Message
from aether.messages.tool_calls import FileFact, failures_of, files_of, merged_failures, merged_files

# Share of a summary that the facts may use if prose is wanted beside them.
FACTS_SHARE = 0.9
# Tokens: prose of fewer is not worth a call of a model.
LEAST_PROSE = 40
# Characters of a call's arguments that a summariser is shown.
CALL_CHARS = 4_000
_POINTER = re.compile(r"(?P<many>\d+) messages in full: (?P<first>.+?)(?: to (?P<last>.+))?", re.DOTALL)


def facts_in(conversation: Conversation, positions: Iterable[int]) -> Facts:
    """Return the facts of the removed messages at `positions`; the others show how the work went on."""
    messages, summaries = conversation.messages, conversation.summaries
    removed = {index for index in positions if 0 <= index < len(messages)}.difference(summaries)
    opening = conversation.opening
    present = progress_of(conversation, stays=lambda index: index not in removed)
    by_person = [
        text for text in conversation.said if text.by == "person" and text.at in removed and text != opening
    ]
    calls = [call for call in conversation.calls if call.at in removed]
    earlier = (parsed(messages[index].text) for index in summaries)
    first = middle_cut(opening.shown, PAGE_CHARS) if opening else ""
    stays = opening is None or opening.at not in removed
    requests = _newest_once(middle_cut(text.shown, REQUEST_CHARS) for text in by_person if not text.asked)
    answers = _newest_once(middle_cut(text.shown, REQUEST_CHARS) for text in by_person if text.asked)
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
    names = names_of(conversation.readings, sorted(removed), besides=_names_beside(facts))
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
    stated = {*goals, *(middle_cut(text, REQUEST_CHARS) for text in current)}
    requests = (*older.requests, *(text for text in replaced if text not in answers), *newer.requests)
    decisions = (*older.decisions, *answers, *newer.decisions)
    state = newer.state or older.state
    before = (*older.earlier, *(older.state if newer.state else ()), *newer.earlier)
    merged = Facts(
        goals=goals,
        opening=() if goals else older.opening or newer.opening,
        current=tuple(text for text in current if text not in goals),
        state=state,
        next=newer.next or older.next,
        ran=merged_ran(older.ran, newer.ran),
        earlier=tuple(text for text in _newest_once(before) if text not in state),
        requests=tuple(text for text in _newest_once(requests) if text not in stated),
        constraints=tuple(dict.fromkeys((*older.constraints, *newer.constraints))),
        decisions=tuple(text for text in _newest_once(decisions) if text not in stated),
        open_calls=_newest_once((*older.open_calls, *newer.open_calls)),
        files=merged_files(older.files, newer.files),
        errors=merged_failures(older.errors, newer.errors),
        lookups=_newest_once((*older.lookups, *newer.lookups)),
    )
    present = _names_beside(merged)
    names = merged_names(older.names, newer.names)
    return merged._replace(names=_beside_files((name for name in names if name not in present), merged.files))


def _names_beside(facts: Facts) -> set[str]:
    """Return the names in all facts but the names: they are not listed again."""
    texts = (
        *facts.goals, *facts.opening, *facts.current, *facts.requests, *facts.constraints, *facts.decisions,
        *facts.open_calls, *(file.path for file in facts.files), *(error.text for error in facts.errors),
    )  # fmt: skip
    return set(chain.from_iterable(map(names_in, texts)))


def _beside_files(names: Iterable[str], files: Iterable[FileFact]) -> tuple[str, ...]:
    """Return those of `names` that are not the end of a listed path."""
    parts = (file.path.split("/") for file in files)
    listed = {"/".join(steps[index:]) for steps in parts for index in range(len(steps))}
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


def previous_summary(messages: Sequence[Message], positions: Iterable[int]) -> PreviousSummary:
    """Return the joined contents of the summaries at these positions, the oldest first."""
    summaries = [summary for index in positions if (summary := parsed(messages[index].text))]
    if not summaries:
        return PreviousSummary(0, Facts(), "")
    return PreviousSummary(
        max(summary.version for summary in summaries),
        reduce(merged_facts, (summary.facts for summary in summaries)),
        "\n".join(summary.prose for summary in summaries if summary.prose),
    )


def facts_of_removed(
    conversation: Conversation, removed: Sequence[int], before: PreviousSummary, pointer: Callable[[int], str]
) -> Facts:
    """Return the facts of earlier summaries and of the removed messages, with a pointer to their full text."""
    facts = merged_facts(before.facts, facts_in(conversation, removed))
    first = pointer(removed[0]) if removed else ""
    if not first:
        return facts
    many, last = len(removed), pointer(removed[-1])
    # One line for each file, which is named once.
    file = first.rpartition(" ")[0]
    other_lines: list[str] = []
    for line in facts.lookups:
        earlier = _POINTER.fullmatch(line)
        if earlier is None or not file or earlier["first"].rpartition(" ")[0] != file:
            other_lines.append(line)
            continue
        end = earlier["last"] or earlier["first"]
        if (_line_of(earlier["first"]), _line_of(end)) != (_line_of(first), _line_of(last)):
            many += int(earlier["many"])
        first, last = min(first, earlier["first"], key=_line_of), max(last, end, key=_line_of)
    until = last.rpartition(" ")[2] if file else last
    where = first if (_line_of(first) == _line_of(last) and file) or first == last else f"{first} to {until}"
    return facts._replace(lookups=(*dict.fromkeys(other_lines), f"{many} messages in full: {where}"))


def _line_of(pointer: str) -> int:
    digits = pointer[len(pointer.rstrip("0123456789")) :]
    return int(digits or 0)


def with_facts_of_cut(facts: Facts, conversation: Conversation, at: int) -> Facts:
    """Return `facts` with those of a shortened message, except its goals, which its head still states."""
    return merged_facts(facts, facts_in(conversation, [at])._replace(goals=()))


def removed_texts(messages: Sequence[Message], removed: Iterable[int]) -> tuple[RemovedText, ...]:
    """Return the texts, calls and results of the removed messages in order, without reasoning."""
    tools = {
        block.call_id: block.tool for message in messages for block in message.blocks if block.kind == "call"
    }
    texts: list[RemovedText] = []
    for index in removed:
        role = messages[index].role
        for block in messages[index].blocks:
            if block.kind == "result":
                texts.append(RemovedText(index, "tool", tools.get(block.call_id, block.tool), block.text))
            elif block.kind == "call":
                texts.append(RemovedText(index, role, block.tool, block.text[:CALL_CHARS]))
            elif block.kind == "text" and block.text.strip():
                texts.append(RemovedText(index, role, "", block.text))
    return tuple(texts)


# About 500 tokens: as much as the rest of the facts of one stretch of work uses.
MOST_NAMES = 80
# Names after a merge: a summary of eight thousand tokens holds no more.
MOST_MERGED_NAMES = 400
# The newest calls and results that are read for names; older ones are in the history.
_MOST_BY_TOOL = 600
# Of names in a numbered series that nobody but tools wrote so many are kept, as examples.
SERIES = 3


def names_of(
    readings: Sequence[Reading], positions: Iterable[int], *, besides: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names at `positions` that are not among `besides`, the last used at the end.

    A name is an id, number, URL, command, path or identifier, verbatim. Names are ranked by use, first those that a
    person wrote; in tool results only ids and URLs count, which cannot be words. The number is bounded.
    """
    uses = [use for index in positions for use in readings[index].names]
    by_tool = sum(weight <= BY_CALL for weight, _ in uses)
    weights: dict[str, int] = {}
    last: dict[str, int] = {}
    spoken: set[str] = set()
    for order, (weight, names) in enumerate(uses):
        by_tool -= weight <= BY_CALL
        if weight <= BY_CALL and by_tool >= _MOST_BY_TOOL:
            continue
        for name in names:
            weights[name] = weights.get(name, 0) + weight
            last[name] = order
        if weight > BY_CALL:
            spoken.update(names)
    ranked = sorted(weights, key=lambda name: -weights[name])
    newest = sorted((name for name in ranked if name not in besides), key=lambda name: last[name])
    few = set(_few_of_a_series(newest, mentioned=spoken))
    chosen = [name for name in ranked if name in few][:MOST_NAMES]
    return tuple(sorted(chosen, key=lambda name: last[name]))


def merged_names(older: Sequence[str], newer: Sequence[str]) -> tuple[str, ...]:
    """Return each name once, the newest at the end; of too many, the oldest are dropped.

    >>> merged_names(["a1", "b2"], ["a1"])
    ('b2', 'a1')
    """
    return tuple(reversed(dict.fromkeys(reversed((*older, *dict.fromkeys(newer))))))[-MOST_MERGED_NAMES:]


def _few_of_a_series(names: Sequence[str], *, mentioned: Collection[str]) -> list[str]:
    """Return `names` with the newest few of each numbered series of words that are not `mentioned`."""
    seen: dict[str, int] = {}
    few: list[str] = []
    for name in reversed(names):
        series = "" if name in mentioned or not any(map(str.isalpha, name)) else DIGITS.sub("#", name)
        seen[series] = seen.get(series, 0) + 1
        if not series or seen[series] <= SERIES:
            few.append(name)
    return few[::-1]
