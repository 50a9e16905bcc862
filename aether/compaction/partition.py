"""Partition: which groups of a conversation always stay, in which order others may be dropped, and how much each matters.

Membership is by position, never by value: two equal messages are two. Protected messages are named by the policy;
beside them the opening request, the newest message of the user and calls that wait for their results always stay.
Importance and selected sentences need no model: requests and instructions of the user come first, then decisions,
constraints and solutions, and newer text before older. The steps that drop groups are in `steps`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from typing import Any, NamedTuple

from aether.compaction.shapes import Policy, RemovedText
from aether.compaction.summary import is_summary
from aether.messages.convert import META
from aether.messages.model import Block, Group, Message, as_object, as_text, groups, turns
from aether.messages.tool_calls import file_changes
from aether.text.classify import Kind, classify, rule
from aether.text.picking import heaviest_fitting, longest_front
from aether.text.words import sentences
from aether.types import Counter, JsonObject

_YES = frozenset({"true", "yes", "1", "on"})
_HEAD = "<COMPACT-SUMMARY v"
# A longer text holds a file; its path is in an argument of its own.
_PATH_CHARS = 4_096
_BETWEEN_PATHS = re.compile(r"[\s\"'`=:;,|&<>()\[\]{}]+")

# What a later reader asks for first; chatter and announcements say nothing.
WEIGHTS: dict[Kind, float] = {
    "constraint": 0.9, "decision": 0.9, "solution": 0.8, "preference": 0.7, "blocker": 0.6, "outcome": 0.6,
    "fact": 0.4, "exploration": 0.1, "chatter": 0.0,
}  # fmt: skip
REQUEST_WEIGHT = 1.0
EDIT_WEIGHT = 0.7
# The newest of two equals stays; age alone never outweighs a kind.
NEWNESS_WEIGHT = 0.15
# Text of a person counts more than text for them.
USER_WEIGHT = 0.2
# A sentence of an earlier summary was selected before; an outcome gets nothing, because only the newest ones matter.
PREVIOUS_WEIGHT = 0.3
# Sentences read in one message and in all, newest first: bounds the time a long conversation takes.
MESSAGE_SENTENCES = 40
MOST_SENTENCES = 3_000
# Longer ones hold data.
SENTENCE_CHARS = 600
# A sentence below this weight is not worth its tokens.
LEAST_WEIGHT = 0.35
_HEAD_CHARS = 4_000
_BULLET = "- "
_END = re.compile(r"[.!?…](?=\s)|\n|[。！？]")
_REQUEST = re.compile(
    r"(?:^|[.!?:;,]\s+|\b(?:please|then|also|now|and|to|could you|can you|would you|you to)\s+)"
    r"(?:help|create|implement|fix|add|write|make|build|change|update|remove|delete|rename|refactor|test|run|use|"
    r"move|replace|migrate|deploy|document|explain|review|keep|ensure|never|always|don't|do not)\b|\bplease\b",
    re.IGNORECASE,
)


class Parts(NamedTuple):
    """The groups of a conversation and what holds each of them."""

    groups: list[Group]
    protected: frozenset[int]
    """Positions that the policy protects, with all members of their groups."""
    pinned: frozenset[int]
    """Indices of groups that always stay."""
    summaries: tuple[int, ...]
    """Indices of groups that are summaries of earlier compactions."""
    opening: int
    """Position of the first message of the user; -1 without one."""
    newest: int
    """Position of the newest message of the user; -1 without one."""
    turn: list[int]
    """By group, how many turns are after its own."""
    pair: list[int]
    """By group, how many groups of tool calls are after it; -1 for other groups."""
    orphans: frozenset[int]
    """Indices of results without a call, which only protection keeps."""


def partition(messages: Sequence[Message], policy: Policy) -> Parts:
    """Return the groups of `messages` with what holds them, in time proportional to their number."""
    # A summary is a group of its own: a response of the model neither continues in it nor starts with it.
    earlier = [is_earlier_summary(one) for one in messages]
    found = groups(
        [
            one._replace(role="user", blocks=one.blocks[:1]) if is_early else one
            for one, is_early in zip(messages, earlier, strict=True)
        ]
    )
    summaries = tuple(
        at for at, group in enumerate(found) if len(group.members) == 1 and earlier[group.members[0]]
    )
    replaced = {found[at].members[0] for at in summaries}
    by_user = (at for at, one in enumerate(messages) if one.role == "user" and at not in replaced)
    # Text or media of the user, beside results of tools.
    asked = [
        at
        for at in by_user
        if any(
            one.kind in ("media", "other") or (one.kind == "text" and one.text.strip())
            for one in messages[at].blocks
        )
    ]
    opening, newest = (asked[0], asked[-1]) if asked else (-1, -1)
    summary_groups = frozenset(summaries)
    turn = _turns(messages, found, summary_groups)
    shielded = frozenset(_protected(messages, found, policy)) - replaced
    pinned = {
        at
        for at, group in enumerate(found)
        if not shielded.isdisjoint(group.members)
        or not {opening, newest}.isdisjoint(group.members)
        or (group.open and turn[at] == 0)
    }
    pair = _pairs(messages, found)
    if messages and messages[0].format == "gemini":
        # Gemini takes a call only after the user, or after results: the request of a pinned call stays, too.
        first = {rank: at for at, rank in reversed([*enumerate(turn)])}
        pinned.update([first[turn[at]] for at in pinned if found[at].kind == "tools"])
    orphans = frozenset(at for at, group in enumerate(found) if group.kind == "orphan" and pair[at] < 0)
    # The last group that may be last stays: the model is about to continue it.
    never = orphans | summary_groups
    last = [at for at in range(len(found)) if at not in never]
    pinned.update([max(last, key=lambda at: found[at].members[-1])] if last else [])
    return Parts(found, shielded, frozenset(pinned), summaries, opening, newest, turn, pair, orphans)


def is_earlier_summary(message: Message) -> bool:
    """Return whether `message` is the summary of an earlier compaction."""
    first = message.blocks[0].text if message.blocks else ""
    return first.lstrip().startswith(_HEAD) and is_summary(message)


def _turns(messages: Sequence[Message], found: Sequence[Group], summaries: frozenset[int]) -> list[int]:
    """Return by group how many turns are after its own; a summary starts no turn, whatever its role."""
    listed: list[list[int]] = []
    for members in turns(messages, found):
        if listed and members[0] in summaries:
            listed[-1].extend(members)
        else:
            listed.append([*members])
    rank = [0] * len(found)
    for after, turn in enumerate(reversed(listed)):
        for at in turn:
            rank[at] = after
    return rank


def _pairs(messages: Sequence[Message], found: Sequence[Group]) -> list[int]:
    """Return by group how many groups of calls are after it; plain messages have answers without calls."""
    rank = [-1] * len(found)
    after = 0
    for at in range(len(found) - 1, -1, -1):
        lonely = found[at].kind == "orphan" and messages[found[at].members[0]].format == "plain"
        if found[at].kind == "tools" or lonely:
            rank[at] = after
            after += 1
    return rank


def _protected(messages: Sequence[Message], found: Sequence[Group], policy: Policy) -> Iterator[int]:
    roles = frozenset(policy.protected_roles)
    globs = [translate(glob) for glob in policy.protected_paths]
    # A path matches as a whole, or by its end.
    pattern = re.compile(f"(?:.*/)?(?:{'|'.join(globs)})", re.DOTALL) if globs else None
    for group in found:
        members = [messages[at] for at in group.members]
        by_path = pattern is not None and any(
            any(map(pattern.match, paths_in_call(block))) for member in members for block in member.blocks
        )
        if by_path or any(is_protected(member, policy, roles) for member in members):
            yield from group.members


def protected_positions(messages: Sequence[Message], policy: Policy) -> frozenset[int]:
    """Return the positions of the messages that the policy protects, with all members of their groups."""
    return frozenset(_protected(messages, groups(messages), policy))


def is_protected(message: Message, policy: Policy, roles: frozenset[str]) -> bool:
    """Return whether the role, the flag or the label of `message` protects it.

    >>> flagged = Message("user", (), {"role": "user", "meta": {"protected": "yes"}}, "plain")
    >>> is_protected(flagged, Policy(), frozenset())
    True
    """
    if as_text(message.raw.get("role")) in roles or message.role in roles:
        return True
    meta: JsonObject = as_object(message.raw.get(META))
    flag = meta.get(policy.protected_flag)
    flagged = flag.strip().lower() in _YES if isinstance(flag, str) else bool(flag)
    return flagged or meta.get("label") in policy.protected_labels


def paths_in_call(block: Block) -> Iterator[str]:
    """Yield possible paths in the arguments of a call: its texts, and the words of them."""
    if block.kind == "call":
        for text in _texts(block.arguments):
            yield text
            yield from _BETWEEN_PATHS.split(text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:_PATH_CHARS]
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def is_request(text: str) -> bool:
    """Return whether a person asks for something or sets a rule, recognised by whole words.

    >>> is_request("Please create the table."), is_request("The helper crashed."), is_request("Never push to main.")
    (True, False, True)
    """
    head = text[:_HEAD_CHARS]
    return bool(_REQUEST.search(head)) or any(rule(one) for one in sentences(head)[:MESSAGE_SENTENCES])


def importance(members: Sequence[Message], *, newness: float) -> float:
    """Return how much a group of messages matters; `newness` is 0 for the oldest and 1 for the newest."""
    weights = [0.0]
    for message in members:
        text = message.text[:_HEAD_CHARS]
        called = (dict(block.arguments) for block in message.blocks if block.kind == "call")
        if any(next(file_changes(arguments), None) is not None for arguments in called):
            weights.append(EDIT_WEIGHT)
        elif message.role == "user" and text and is_request(text):
            weights.append(REQUEST_WEIGHT)
        else:
            weights += [WEIGHTS[classify(one)] for one in sentences(text)[:MESSAGE_SENTENCES]]
    return max(weights) + NEWNESS_WEIGHT * newness


class _Line(NamedTuple):
    """One sentence that may be kept."""

    weight: float
    order: int
    text: str


def select_sentences(said: Sequence[RemovedText], previous: str, *, most: int, count: Counter) -> str:
    """Return the sentences that matter most, as a list in order, of at most `most` tokens.

    Answers of tools are left out; `previous`, the prose of the previous summary, competes with the newer texts. The
    same input gives the same selection.
    """
    worth = [line for line in _lines(said, previous) if line.weight >= LEAST_WEIGHT]
    worth.sort(key=lambda line: line.order)
    chosen = heaviest_fitting(
        ((line.order, line.weight, count(f"{_BULLET}{line.text}\n")) for line in worth), most=most
    )
    return "\n".join(_BULLET + line.text for line in worth if line.order in chosen)


def _lines(said: Sequence[RemovedText], previous: str) -> list[_Line]:
    """Return the candidate sentences in order, each once, the newest within the bounds."""
    found: dict[str, _Line] = {}
    order = 0
    for bullet in sentences(previous):
        text = bullet.removeprefix(_BULLET)
        kind = classify(text)
        more = 0.0 if kind == "outcome" else PREVIOUS_WEIGHT
        found[text] = _Line(WEIGHTS[kind] + more, order := order + 1, text)
    room = MOST_SENTENCES
    kept: list[tuple[float, list[str]]] = []
    for removed in reversed(said):
        if removed.role in ("user", "assistant") and not removed.tool and room:
            some = sentences(removed.text[:_HEAD_CHARS])[: min(room, MESSAGE_SENTENCES)]
            room -= len(some)
            kept.append((USER_WEIGHT if removed.role == "user" else 0.0, some))
    for more, some in reversed(kept):
        for text in some:
            if text not in found and len(text) <= SENTENCE_CHARS:
                found[text] = _Line(WEIGHTS[classify(text)] + more, order := order + 1, text)
    return list(found.values())


# A heading whose lines were cut.
_TRAILING_HEADING = re.compile(r"(?:^|\n)[^\n-][^\n]{0,40}:\s*\Z")


def cut_prose(prose: str, *, most: int, count: Counter) -> str:
    """Return the head of `prose` of at most `most` tokens, up to the end of a sentence or a line.

    >>> cut_prose("One two. Three four. Five.", most=4, count=lambda text: len(text.split()))
    'One two. Three four.'
    """
    if count(prose) <= most:
        return prose
    ends = [found.end() for found in _END.finditer(prose)]
    kept = longest_front(len(ends), lambda number: count(prose[: ends[number - 1]].rstrip()) <= most)
    return _TRAILING_HEADING.sub("", prose[: ends[kept - 1]]).rstrip() if kept else ""
