"""The refusal: what must stay and does not fit, by name, with its tokens and with what can be done."""

from __future__ import annotations

from collections.abc import Iterable

from aether.compaction import ladder
from aether.compaction.bounds import Bounds
from aether.compaction.ladder import Draft
from aether.errors import BudgetExceeded

# The largest ones tell enough.
NAMED = 5


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
