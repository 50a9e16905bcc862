"""Policies: named settings of compaction, and the check that a policy makes sense.

A policy is data, applied in `plan`; nothing ever changes a policy: a result names by `effective` the one that it used.
Shares are of the window, tokens are whole tokens. The rules are those of the keys in `store.keys`.
"""

from __future__ import annotations

from typing import get_args

from aether.compaction.shapes import Policy, Strategy
from aether.errors import InvalidInput, shown
from aether.store.keys import KEYS, Key, Rule, checked, not_empty, share, up_to_all

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

_NAMED = (
    Policy(),
    # requirements/001: from 70 % on, to half, of which three tenths are older messages kept for their weight.
    Policy("window", trigger=0.70, target=0.50, keep_middle=0.30, keep_requests=True),
    Policy(
        "prune-only",
        steps=("drop_reasoning", "shorten_results", "shorten_arguments", "fold_exploration", "reduce"),
    ),
    *(Policy(strategy, strategy=strategy) for strategy in STRATEGIES),
)
POLICIES = {policy.name: policy for policy in _NAMED}
"""Every named policy; the name of a strategy is `compact` with that strategy."""

FIELDS = {
    "trigger_pct": "trigger", "target_pct": "target", "hard_cap_buffer": "reserve", "min_reclaim_pct": "min_reclaim",
    "keep_tool_io_pairs": "keep_tool_pairs", "roles_never_prune": "protected_roles",
}  # fmt: skip
"""The fields of a policy by their names in a configuration, where those differ."""
# A policy has its target, and fields that no configuration sets.
_OWN: dict[str, Rule] = {
    "name": not_empty, "target": share, "summary_share": share, "keep_middle": up_to_all, "min_reclaim": up_to_all,
    "min_progress": up_to_all,
}  # fmt: skip
_KEYS = {
    FIELDS.get(key.field, key.field): key for path, key in KEYS.items() if path.startswith("policy.")
} | {
    name: Key(name, Policy._field_defaults[name], "see docs/compaction.md", rule)
    for name, rule in _OWN.items()
}


def policy(name: str) -> Policy:
    """Return the policy of that name.

    Raises:
        InvalidInput: there is no such policy.

    >>> policy("window").trigger, policy("brief").strategy
    (0.7, 'brief')
    """
    found = POLICIES.get(name)
    if found is None:
        raise InvalidInput(
            f"{shown(name)} is not a policy.", fix=f"Use one of {', '.join(POLICIES)}.", where="policy"
        )
    return found


def validated(policy: Policy, *, where: str = "policy") -> Policy:
    """Return `policy` after a check that each field is allowed and that they go together.

    Raises:
        InvalidInput: one is not; the error names it by its path.
    """
    for field, key in _KEYS.items():
        try:
            checked(key, getattr(policy, field), called=field)
        except InvalidInput as reason:
            raise InvalidInput(reason.what, fix=reason.fix, where=f"{where}.{field}") from reason
    if policy.target >= policy.trigger:
        raise InvalidInput(
            f"{policy.target} is not below the trigger, {policy.trigger}: it would fire again at once.",
            fix="Lower the target.",
            where=f"{where}.target",
        )
    return policy
