"""Partition: which groups of a conversation always stay, in which order others may be dropped, and how much each matters.

Membership is by position, never by value: two equal messages are two. Protected messages are named by the policy;
beside them the opening request, the newest message of the user, calls that wait for their results, and the newest compaction
that a provider made itself always stay.
Importance needs no model and judges no language: the words of a person come first, then changes of files, then answers,
and newer text before older. The steps that drop groups are in `draft`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from typing import NamedTuple
from unicodedata import east_asian_width

from aether.conversation.shapes import Policy
from aether.conversation.summary import is_summary
from aether.messages import providers
from aether.messages.convert import META
from aether.messages.model import Block, Group, Message, as_object, as_text, groups, turns
from aether.messages.tool_calls import file_changes
from aether.text.selection import longest_front
from aether.text.words import strings_in
from aether.types import Counter, JsonObject

_YES = frozenset({"true", "yes", "1", "on"})
_HEAD = "<COMPACT-SUMMARY v"
# A longer text holds a file; its path is in an argument of its own.
_PATH_CHARS = 4_096
_BETWEEN_PATHS = re.compile(r"[\s\"'`=:;,|&<>()\[\]{}]+")

# What an older group is worth: the words of a person, a change of files, an answer, and anything else.
REQUEST_WEIGHT, EDIT_WEIGHT, ANSWER_WEIGHT, LEAST_WEIGHT = 1.0, 0.7, 0.5, 0.35
# The newest of two equals stays; age alone never outweighs a kind.
NEWNESS_WEIGHT = 0.15
# A line. A message of fewer characters says little without the ones before it.
BRIEF_CHARS = 40
_END = re.compile(r"[.!?…](?=\s)|\n|[。！？]")


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
    restart: int
    """Position of the newest compaction of the provider itself, before which nothing is read; -1 without one."""


def partition(messages: Sequence[Message], policy: Policy) -> Parts:
    """Return the groups of `messages` with what holds them, in time proportional to their number."""
    # A summary is a group of its own: a response of the model neither continues in it nor starts with it.
    earlier = [is_earlier_summary(item) for item in messages]
    grouped = groups(
        [
            item._replace(role="user", blocks=item.blocks[:1]) if is_early else item
            for item, is_early in zip(messages, earlier, strict=True)
        ]
    )
    summaries = tuple(
        index for index, group in enumerate(grouped) if len(group.members) == 1 and earlier[group.members[0]]
    )
    replaced = {grouped[index].members[0] for index in summaries}
    by_user = (index for index, item in enumerate(messages) if item.role == "user" and index not in replaced)
    # Text or media of the user, beside results of tools.
    requests = [
        index
        for index in by_user
        if any(
            item.kind in ("media", "other") or (item.kind == "text" and item.text.strip())
            for item in messages[index].blocks
        )
    ]
    opening, newest = (requests[0], requests[-1]) if requests else (-1, -1)
    summary_groups = frozenset(summaries)
    turn = _turns(messages, grouped, summary_groups)
    shielded = frozenset(_protected(messages, grouped, policy)) - replaced
    pinned = {
        index
        for index, group in enumerate(grouped)
        if not shielded.isdisjoint(group.members)
        or not {opening, newest}.isdisjoint(group.members)
        or (group.open and turn[index] == 0)
    }
    pair = _pairs(messages, grouped)
    restart = max((at for at, item in enumerate(messages) if _replaces_history(item)), default=-1)
    pinned.update(index for index, group in enumerate(grouped) if restart in group.members)
    if messages and providers.provider(messages[0].format).TRAITS.calls_follow_user:
        # The request of a pinned call stays, too.
        first = {rank: index for index, rank in reversed([*enumerate(turn)])}
        pinned.update([first[turn[index]] for index in pinned if grouped[index].kind == "tools"])
    orphans = frozenset(
        index for index, group in enumerate(grouped) if group.kind == "orphan" and pair[index] < 0
    )
    # The last group that may be last stays: the model is about to continue it.
    never = orphans | summary_groups
    last = [index for index in range(len(grouped)) if index not in never]
    pinned.update([max(last, key=lambda index: grouped[index].members[-1])] if last else [])
    return Parts(
        grouped, shielded, frozenset(pinned), summaries, opening, newest, turn, pair, orphans, restart
    )


def _replaces_history(message: Message) -> bool:
    return any(block.replaces_history for block in message.blocks)


def is_earlier_summary(message: Message) -> bool:
    """Return whether `message` is the summary of an earlier compaction."""
    first = message.blocks[0].text if message.blocks else ""
    return first.lstrip().startswith(_HEAD) and is_summary(message)


def _turns(
    messages: Sequence[Message], message_groups: Sequence[Group], summaries: frozenset[int]
) -> list[int]:
    """Return by group how many turns are after its own; a summary starts no turn, whatever its role."""
    listed: list[list[int]] = []
    for members in turns(messages, message_groups):
        if listed and members[0] in summaries:
            listed[-1].extend(members)
        else:
            listed.append([*members])
    rank = [0] * len(message_groups)
    for after, turn in enumerate(reversed(listed)):
        for index in turn:
            rank[index] = after
    return rank


def _pairs(messages: Sequence[Message], message_groups: Sequence[Group]) -> list[int]:
    """Return by group how many groups of calls are after it; plain messages have answers without calls."""
    rank = [-1] * len(message_groups)
    after = 0
    for index in range(len(message_groups) - 1, -1, -1):
        lonely = (
            message_groups[index].kind == "orphan"
            and messages[message_groups[index].members[0]].format == "plain"
        )
        if message_groups[index].kind == "tools" or lonely:
            rank[index] = after
            after += 1
    return rank


def _protected(messages: Sequence[Message], message_groups: Sequence[Group], policy: Policy) -> Iterator[int]:
    roles = frozenset(policy.protected_roles)
    globs = [translate(glob) for glob in policy.protected_paths]
    # A path matches as a whole, or by its end.
    pattern = re.compile(f"(?:.*/)?(?:{'|'.join(globs)})", re.DOTALL) if globs else None
    for group in message_groups:
        members = [messages[index] for index in group.members]
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
        for text in strings_in(block.arguments):
            start = text[:_PATH_CHARS]
            yield start
            yield from _BETWEEN_PATHS.split(start)


def is_brief(text: str, most: int = BRIEF_CHARS) -> bool:
    """Return whether `text` is shorter than `most` characters, of which a wide one, as in Chinese, counts as three.

    >>> is_brief("go on"), is_brief("把发票解析器移植到别的语言去"), is_brief("Port the parser of invoices to another language.")
    (True, False, False)
    """
    if len(text) >= most or text.isascii():
        return len(text) < most
    return len(text) + 2 * sum(east_asian_width(char) in "WF" for char in text) < most


def importance(members: Sequence[Message], *, newness: float) -> float:
    """Return how much a group of messages matters; `newness` is 0 for the oldest and 1 for the newest."""
    return max(map(_weight, members), default=0.0) + NEWNESS_WEIGHT * newness


def _weight(message: Message) -> float:
    calls = [dict(block.arguments) for block in message.blocks if block.kind == "call"]
    if any(next(file_changes(arguments), None) is not None for arguments in calls):
        return EDIT_WEIGHT
    if is_brief(message.text):
        return 0.0
    if message.role == "user":
        return REQUEST_WEIGHT
    return LEAST_WEIGHT if calls else ANSWER_WEIGHT


# A heading whose lines were cut.
_TRAILING_HEADING = re.compile(r"(?:^|\n)[^\n-][^\n]{0,40}:\s*\Z")


def cut_prose(prose: str, *, most: int, count: Counter) -> str:
    """Return the head of `prose` of at most `most` tokens, up to the end of a sentence or a line.

    >>> cut_prose("One two. Three four. Five.", most=4, count=lambda text: len(text.split()))
    'One two. Three four.'
    """
    if count(prose) <= most:
        return prose
    stops = [match.end() for match in _END.finditer(prose)]
    stop_count = longest_front(len(stops), lambda number: count(prose[: stops[number - 1]].rstrip()) <= most)
    return _TRAILING_HEADING.sub("", prose[: stops[stop_count - 1]]).rstrip() if stop_count else ""
