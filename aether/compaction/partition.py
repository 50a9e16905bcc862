"""Partition: which groups of a conversation always stay, and in which order the others may go.

Membership is by position, never by value: two equal messages are two. Protected content is what the policy
names; beside it the opening request, the newest message of the user and calls that wait for their results
always stay. What goes and when is decided in `ladder`.

Selection: what of the older conversation matters most, told without a model.

Requests and instructions of the user come first, then what was decided, bound or solved, and what is newer.
The same input gives the same selection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from typing import Any, NamedTuple

from aether.compaction.shapes import Policy, RemovedText
from aether.compaction.summary import is_summary
from aether.messages.convert import META
from aether.messages.model import Block, Group, Message, as_object, as_text, groups, turns
from aether.messages.tool_calls import file_changes
from aether.text.classify import Kind, classify, rule
from aether.text.picking import heaviest_fitting
from aether.text.words import sentences
from aether.types import Counter, JsonObject

_YES = frozenset({"true", "yes", "1", "on"})
_HEAD = "<COMPACT-SUMMARY v"
# A text that is longer holds a file; its path stands in an argument of its own.
_PATH_CHARS = 4_096
_BETWEEN_PATHS = re.compile(r"[\s\"'`=:;,|&<>()\[\]{}]+")


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
    """Position of the first message of the user; -1 where there is none."""
    newest: int
    """Position of the newest message of the user; -1 where there is none."""
    turn: list[int]
    """By group, how many turns are after its own."""
    pair: list[int]
    """By group, how many groups of tool calls are after it; -1 for what is no tool call."""
    orphans: frozenset[int]
    """Indices of results without a call, which nothing but protection keeps."""


def partition(messages: Sequence[Message], policy: Policy) -> Parts:
    """Return the groups of `messages` with what holds them, in time proportional to their number."""
    # A summary is a group of its own: a response of the model neither goes on in it nor begins with it.
    found = groups([_apart(one) if is_earlier_summary(one) else one for one in messages])
    summaries = tuple(
        at
        for at, group in enumerate(found)
        if len(group.members) == 1 and is_earlier_summary(messages[group.members[0]])
    )
    carried = {found[at].members[0] for at in summaries}
    asked = [at for at, message in enumerate(messages) if at not in carried and _asks(message)]
    opening, newest = (asked[0], asked[-1]) if asked else (-1, -1)
    turn = _turns(messages, found, frozenset(summaries))
    shielded = frozenset(_protected(messages, found, policy)) - carried
    pinned = {
        at
        for at, group in enumerate(found)
        if not shielded.isdisjoint(group.members)
        or not {opening, newest}.isdisjoint(group.members)
        or (group.open and turn[at] == 0)
    }
    pair = _pairs(messages, found)
    if messages and messages[0].format == "gemini":
        pinned.update(_askers(found, turn, pinned))
    orphans = frozenset(at for at, group in enumerate(found) if group.kind == "orphan" and pair[at] < 0)
    pinned.update(_last(found, orphans.union(summaries)))
    return Parts(found, shielded, frozenset(pinned), summaries, opening, newest, turn, pair, orphans)


def is_earlier_summary(message: Message) -> bool:
    """Tell whether `message` is the summary of an earlier compaction."""
    first = message.blocks[0].text if message.blocks else ""
    return first.lstrip().startswith(_HEAD) and is_summary(message)


def _apart(summary: Message) -> Message:
    return summary._replace(role="user", blocks=summary.blocks[:1])


def _asks(message: Message) -> bool:
    """Tell whether the user says or shows something in `message`, beside what tools answered."""
    return message.role == "user" and any(
        block.kind in ("media", "other") or (block.kind == "text" and block.text.strip())
        for block in message.blocks
    )


def _turns(messages: Sequence[Message], found: Sequence[Group], summaries: frozenset[int]) -> list[int]:
    """Return by group how many turns are after its own; a summary begins none, whatever its role."""
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


def _askers(found: Sequence[Group], turn: Sequence[int], pinned: set[int]) -> Iterator[int]:
    """Yield what opened the turns of pinned calls: Gemini takes a call only after the user, or after results."""
    turns_of = {turn[at] for at in pinned if found[at].kind == "tools"}
    first = {rank: at for at, rank in reversed([*enumerate(turn)])}
    yield from (first[rank] for rank in turns_of)


def _last(found: Sequence[Group], never: frozenset[int]) -> list[int]:
    """Return the last group that can stand last: what the model is about to continue."""
    standing = [at for at in range(len(found)) if at not in never]
    return [max(standing, key=lambda at: found[at].members[-1])] if standing else []


def _protected(messages: Sequence[Message], found: Sequence[Group], policy: Policy) -> Iterator[int]:
    roles = frozenset(policy.protected_roles)
    matches = _matcher(policy.protected_paths)
    for group in found:
        members = [messages[at] for at in group.members]
        by_path = matches is not None and any(
            any(map(matches, paths_in_call(block))) for member in members for block in member.blocks
        )
        if by_path or any(is_protected(member, policy, roles) for member in members):
            yield from group.members


def is_protected(message: Message, policy: Policy, roles: frozenset[str]) -> bool:
    """Tell whether the role, the flag or the label of `message` protects it.

    >>> flagged = Message("user", (), {"role": "user", "meta": {"protected": "yes"}}, "plain")
    >>> is_protected(flagged, Policy(), frozenset())
    True
    """
    if as_text(message.raw.get("role")) in roles or message.role in roles:
        return True
    meta: JsonObject = as_object(message.raw.get(META))
    return _is_set(meta.get(policy.protected_flag)) or meta.get("label") in policy.protected_labels


def _is_set(flag: Any) -> bool:
    return flag.strip().lower() in _YES if isinstance(flag, str) else bool(flag)


def _matcher(globs: Iterable[str]) -> Any:
    """Return the test whether a path fits one of `globs`, or ends in something that does; None without globs."""
    patterns = [translate(glob) for glob in globs]
    if not patterns:
        return None
    return re.compile(f"(?:.*/)?(?:{'|'.join(patterns)})", re.DOTALL).match


def paths_in_call(block: Block) -> Iterator[str]:
    """Yield what may be a path in the arguments of a call: short texts, and the words of longer ones."""
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


# What a later reader asks for first; chatter and announcements tell nothing.
WEIGHTS: dict[Kind, float] = {
    "constraint": 0.9, "decision": 0.9, "solution": 0.8, "preference": 0.7, "blocker": 0.6, "outcome": 0.6,
    "fact": 0.4, "exploration": 0.1, "chatter": 0.0,
}  # fmt: skip
REQUEST_WEIGHT = 1.0
EDIT_WEIGHT = 0.7
# The newest of two equals stays; age alone never outweighs a kind.
NEWNESS_WEIGHT = 0.15
# What the person said, over what was said to them; what an earlier summary kept was chosen before.
# What was done is over: the newest of it tells where the work stands.
USER_WEIGHT = 0.2
PREVIOUS_WEIGHT = 0.3
# Sentences looked at in one message and in all, newest first: bounds the time a long conversation takes.
MESSAGE_SENTENCES = 40
MOST_SENTENCES = 3_000
# Longer ones hold data.
SENTENCE_CHARS = 600
# A sentence below this weight is not worth its tokens.
LEAST_WEIGHT = 0.35
_HEAD_CHARS = 4_000
_BULLET = "- "

_REQUEST = re.compile(
    r"(?:^|[.!?:;,]\s+|\b(?:please|then|also|now|and|to|could you|can you|would you|you to)\s+)"
    r"(?:help|create|implement|fix|add|write|make|build|change|update|remove|delete|rename|refactor|test|run|use|"
    r"move|replace|migrate|deploy|document|explain|review|keep|ensure|never|always|don't|do not)\b|\bplease\b",
    re.IGNORECASE,
)


class _Line(NamedTuple):
    """One sentence that may be kept."""

    weight: float
    order: int
    text: str


def is_request(text: str) -> bool:
    """Tell whether a person asks for something, or sets a rule; told by whole words.

    >>> is_request("Please create the table."), is_request("The helper crashed."), is_request("Never push to main.")
    (True, False, True)
    """
    head = text[:_HEAD_CHARS]
    return bool(_REQUEST.search(head)) or any(rule(one) for one in sentences(head)[:MESSAGE_SENTENCES])


def importance(members: Sequence[Message], *, newness: float) -> float:
    """Return how much a group of messages matters; `newness` is 0 for the oldest and 1 for the newest."""
    best = max((_importance(message) for message in members), default=0.0)
    return best + NEWNESS_WEIGHT * newness


def _importance(message: Message) -> float:
    if any(
        block.kind == "call" and next(file_changes(dict(block.arguments)), None) is not None
        for block in message.blocks
    ):
        return EDIT_WEIGHT
    text = message.text[:_HEAD_CHARS]
    if message.role == "user" and text and is_request(text):
        return REQUEST_WEIGHT
    said = sentences(text)[:MESSAGE_SENTENCES]
    return max((WEIGHTS[classify(one)] for one in said), default=0.0)


def select_sentences(said: Sequence[RemovedText], previous: str, *, most: int, count: Counter) -> str:
    """Return the sentences that matter most, as a list in order, of at most `most` tokens.

    Answers of tools are left out; `previous`, the prose of the summary before, competes with what was said since.
    """
    lines = _lines(said, previous)
    worth = sorted((line for line in lines if line.weight >= LEAST_WEIGHT), key=lambda line: line.order)
    chosen = heaviest_fitting(
        ((line.order, line.weight, count(f"{_BULLET}{line.text}\n")) for line in worth), most=most
    )
    return "\n".join(_BULLET + line.text for line in worth if line.order in chosen)


def _lines(said: Sequence[RemovedText], previous: str) -> list[_Line]:
    """Return what may be kept: each sentence once, where it was said last, no more than can be looked at."""
    found: dict[str, _Line] = {}
    order = 0
    carried = [one.removeprefix(_BULLET) for one in sentences(previous)]
    for one in carried:
        more = 0.0 if classify(one) == "outcome" else PREVIOUS_WEIGHT
        found[one] = _Line(_weight(one) + more, order := order + 1, one)
    spoken = [one for one in said if one.role in ("user", "assistant") and not one.tool]
    room = MOST_SENTENCES
    kept: list[tuple[RemovedText, list[str]]] = []
    for one_said in reversed(spoken):
        some = sentences(one_said.text[:_HEAD_CHARS])[: min(room, MESSAGE_SENTENCES)]
        room -= len(some)
        kept.append((one_said, some))
        if not room:
            break
    for one_said, some in reversed(kept):
        person = USER_WEIGHT if one_said.role == "user" else 0.0
        for one in some:
            if one not in found and len(one) <= SENTENCE_CHARS:
                found[one] = _Line(_weight(one) + person, order := order + 1, one)
    return list(found.values())


def _weight(sentence: str) -> float:
    return WEIGHTS[classify(sentence)]


def cut_prose(prose: str, *, most: int, count: Counter) -> str:
    """Return the beginning of `prose` that has at most `most` tokens, ended where a sentence or a line ends.

    >>> cut("One two. Three four. Five.", most=4, count=lambda text: len(text.split()))
    'One two. Three four.'
    """
    if count(prose) <= most:
        return prose
    low, high = 0, len(_ends(prose))
    ends = _ends(prose)
    while low < high:
        middle = (low + high + 1) // 2
        if count(prose[: ends[middle - 1]].rstrip()) <= most:
            low = middle
        else:
            high = middle - 1
    return prose[: ends[low - 1]].rstrip() if low else ""


_END = re.compile(r"[.!?…](?=\s)|\n|[。！？]")


def _ends(text: str) -> list[int]:
    return [found.end() for found in _END.finditer(text)]
