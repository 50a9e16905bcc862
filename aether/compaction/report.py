"""Reports: what a compaction did and why, in words for a person, and what it cannot do.

They are told from the draft as it ended, so what was tried and undone is not in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aether.compaction import ladder
from aether.compaction.bounds import Bounds
from aether.compaction.explore import explores, runs
from aether.compaction.ladder import Draft
from aether.compaction.shapes import Kept, Policy
from aether.errors import BudgetExceeded
from aether.messages.message import BlockKind
from aether.shapes import Finding

# The largest ones tell enough.
NAMED = 5
_GRAVE = ("decision", "decisions", "goal", "goals", "constraint", "constraints")
_SHORTENED: dict[BlockKind, str] = {
    "result": "shorten_results: {} result{s}",
    "call": "shorten_arguments: {} call{s}",
    "text": "reduce: {} text{s} shortened",
}


def steps(draft: Draft, policy: Policy, *, folded: bool) -> tuple[str, ...]:
    """Return what each rung did, with its number and its tokens."""
    return (*_lighter(draft), *_removed(draft, policy, folded=folded), *draft.steps)


def _lighter(draft: Draft) -> Iterator[str]:
    """Yield what was shortened in what stays."""
    still = set(ladder.standing(draft))
    cut = [(at, block) for at, block in draft.cuts if at in still]
    saved = {key: draft.cuts[key].tokens_before - draft.cuts[key].tokens_after for key in cut}
    thought = {at: draft.given[at] - draft.tokens[at] for at in draft.now if at in still}
    for at, block in cut:
        thought[at] -= saved[at, block]
    thoughtless = [at for at in thought if _thinks(draft, at)]
    if thoughtless:
        yield _step(
            "drop_reasoning: {} message{s}", len(thoughtless), max(0, sum(thought[at] for at in thoughtless))
        )
    for kind, told in _SHORTENED.items():
        found = [saved[at, block] for at, block in cut if draft.now[at].blocks[block].kind == kind]
        if found:
            yield _step(told, len(found), sum(found))


def _thinks(draft: Draft, at: int) -> bool:
    """Tell whether a message thought and no longer does."""
    before, after = (
        sum(block.kind == "reasoning" for block in message.blocks)
        for message in (draft.messages[at], draft.now[at])
    )
    return after < before


def _removed(draft: Draft, policy: Policy, *, folded: bool) -> Iterator[str]:
    parts = draft.parts
    gone = [at for at in range(len(parts.groups)) if not draft.kept[at] and at not in parts.summaries]
    members = [at for group in gone for at in parts.groups[group].members]
    tokens = sum(draft.given[at] for at in members)
    if not members:
        return
    if folded:
        number = sum(1 for _ in runs((at, explores(draft.messages, parts.groups[at])) for at in gone))
        yield _step("fold_exploration: {} run{s}", number, tokens)
    elif "summarise" in policy.steps:
        yield _step("summarise: {} message{s}", len(members), tokens)
    else:
        yield _step("reduce: {} message{s} removed", len(members), tokens)


def _step(told: str, number: int, tokens: int) -> str:
    return f"{told.format(f'{number:,}', s='' if number == 1 else 's')}, {tokens:,} tokens"


def why(draft: Draft, policy: Policy) -> Kept:
    """Return how many messages stayed for which reason."""
    parts = draft.parts
    found = {"pinned": 0, "recent": 0, "tool_pairs": 0, "middle": 0}
    held = ladder.holds(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    for at, group in enumerate(parts.groups):
        if draft.kept[at]:
            shielded = parts.opening in group.members or not parts.protected.isdisjoint(group.members)
            reason = (
                "pinned" if shielded
                else "middle" if not held[at]
                else "recent" if parts.pair[at] < 0
                else "tool_pairs"
            )  # fmt: skip
            found[reason] += len(group.members)
    return Kept(**found)


def findings(draft: Draft, lost: Sequence[str], *, stalled: int) -> Iterator[Finding]:
    """Yield what whoever is asked should know; `stalled`: so many tokens must stay, too many, 0 where they are not."""
    if stalled:
        yield Finding(
            "warning",
            "stalled",
            "conversation",
            f"what must stay, {stalled} tokens, is enough for another compaction to be due.",
            "Protect less, lower the keep counts, or use a larger window.",
        )
    opening = draft.parts.opening
    if opening in draft.now and draft.kept:
        yield Finding(
            "warning",
            "opening-shortened",
            f"messages[{opening}]",
            "the opening request was too long to stay whole.",
            "Use a larger window, or protect it to be told instead.",
        )
    if lost:
        # Files can be read again and names looked up; what was decided stands nowhere else.
        grave = any(one.endswith(_GRAVE) for one in lost)
        yield Finding(
            "warning" if grave else "info",
            "facts-left-out",
            "summary",
            f"no room for {', '.join(lost)}.",
            "They are in the history; raise summary_share to keep more.",
        )


def refused(draft: Draft, limits: Bounds, summary: int) -> BudgetExceeded:
    """Return the error that names what holds the tokens of a draft that does not fit."""
    parts = draft.parts
    standing = set(ladder.standing(draft))
    shares = [
        ("system prompt and tool schemas", draft.overhead),
        _share(draft, "protected", parts.protected & standing),
        _share(draft, "opening request", {parts.opening} & standing - parts.protected),
        _share(
            draft, "newest message of the user", {parts.newest} & standing - parts.protected - {parts.opening}
        ),
        ("summary", summary),
    ]
    named = {parts.opening, parts.newest} | parts.protected
    shares.append(_share(draft, "calls and texts that stay", standing - named))
    total = ladder.used(draft) + summary
    told = ", ".join(f"{what} {tokens}" for what, tokens in shares if tokens)
    return BudgetExceeded(
        f"{total} tokens must stay and {limits.limit} of a window of {limits.window} may be used ({told}).",
        fix="Reduce the protected content, shorten the messages named, or use a model with a larger window.",
        where="conversation",
    )


def _share(draft: Draft, what: str, positions: Iterable[int]) -> tuple[str, int]:
    found = sorted(positions, key=lambda at: (-draft.tokens[at], at))
    places = ", ".join(f"messages[{at}]" for at in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{what} ({places}{more})", sum(draft.tokens[at] for at in found)
