"""Policies: named settings of compaction, and the proof that a policy makes sense.

A policy is data. What it names is done in `plan`; nothing ever changes a policy: a result says by `effective`
which one it came to. Shares are of the window, tokens are whole tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from aether.compaction.shapes import Policy, Step, Strategy
from aether.errors import InvalidInput, shown

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
STEPS: tuple[Step, ...] = get_args(Step)
ROLES = ("system", "developer", "user", "assistant", "tool")

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

# Field: least, most, whether the least itself is excluded.
_SHARES = {
    "trigger": (0.0, 1.0, True),
    "target": (0.0, 1.0, True),
    "keep_middle": (0.0, 1.0, False),
    "min_reclaim": (0.0, 1.0, False),
    "min_progress": (0.0, 1.0, False),
    "summary_share": (0.0, 1.0, True),
}
_LEAST = {
    "trigger_tokens": 0,
    "trigger_messages": 0,
    "reserve": 0,
    "keep_recent_turns": 1,
    "keep_tool_pairs": 1,
}
_TEXTS = ("protected_roles", "protected_labels", "protected_paths", "steps")


def policy(name: str) -> Policy:
    """Return the policy of that name.

    Raises:
        InvalidInput: there is none.

    >>> policy("window").trigger, policy("brief").strategy
    (0.7, 'brief')
    """
    found = POLICIES.get(name)
    if found is None:
        raise InvalidInput(
            f"{shown(name)} is no policy.", fix=f"Use one of {', '.join(POLICIES)}.", where="policy"
        )
    return found


def policy_from(settings: Mapping[str, Any], *, where: str = "policy") -> Policy:
    """Return the policy that `settings` make: `name` says which one they start from, the rest overrides its fields.

    Raises:
        InvalidInput: a field is unknown or its value is not allowed; the error says which.

    >>> policy_from({"name": "window", "keep_recent_turns": 3}).keep_recent_turns
    3
    """
    unknown = [key for key in settings if key not in Policy._fields]
    if unknown:
        raise InvalidInput(
            f"{shown(unknown[0])} is no field of a policy.",
            fix=f"Use {', '.join(Policy._fields)}.",
            where=f"{where}.{unknown[0]}",
        )
    name = settings.get("name", "compact")
    base = POLICIES.get(name) if isinstance(name, str) else None
    given = {key: _listed(key, value) for key, value in settings.items()}
    return validated((base or Policy())._replace(**given), where=where)


def _listed(key: str, value: Any) -> Any:
    return tuple(value) if key in _TEXTS and isinstance(value, list) else value


def validated(policy: Policy, *, where: str = "policy") -> Policy:
    """Return `policy`, having proved that each field is allowed and that they go together.

    Raises:
        InvalidInput: one is not; the error says which by its path.
    """
    _check_texts(policy, where)
    for field, (least, most, excluded) in _SHARES.items():
        value = getattr(policy, field)
        fits = _is_number(value) and least <= value <= most and not (excluded and value == least)
        _require(
            fits, f"{shown(value)} is not in range {'(' if excluded else '['}{least}, {most}].", where, field
        )
    for field, least in _LEAST.items():
        value = getattr(policy, field)
        _require(
            _is_whole(value) and value >= least,
            f"{shown(value)} must be a whole number >= {least}.",
            where,
            field,
        )
    if policy.target >= policy.trigger:
        raise InvalidInput(
            f"{policy.target} is not below the trigger, {policy.trigger}: it would fire again at once.",
            fix="Lower the target.",
            where=f"{where}.target",
        )
    return policy


def _check_texts(policy: Policy, where: str) -> None:
    _require(
        policy.strategy in STRATEGIES, f"{shown(policy.strategy)} is no strategy: {', '.join(STRATEGIES)}.", where,
        "strategy",
    )  # fmt: skip
    for field in ("name", "protected_flag"):
        value = getattr(policy, field)
        _require(isinstance(value, str) and bool(value.strip()), f"{shown(value)} is no name.", where, field)
    for field in _TEXTS:
        value = getattr(policy, field)
        fits = isinstance(value, tuple) and all(isinstance(one, str) and one for one in value)
        _require(fits, f"{shown(value)} is not a list of texts.", where, field)
    _check_known(policy.steps, STEPS, f"{where}.steps")
    _check_known(policy.protected_roles, ROLES, f"{where}.protected_roles")
    _require(bool(policy.steps), "without steps nothing can be done.", where, "steps")


def _check_known(given: Iterable[str], known: tuple[str, ...], where: str) -> None:
    seen: set[str] = set()
    for at, one in enumerate(given):
        if one not in known or one in seen:
            raise InvalidInput(
                f"{shown(one)} is {'there twice' if one in seen else 'unknown'}.",
                fix=f"Use each of {', '.join(known)} at most once.",
                where=f"{where}[{at}]",
            )
        seen.add(one)


def _require(fits: bool, what: str, where: str, field: str) -> None:
    if not fits:
        raise InvalidInput(what, fix=f"Correct {field}.", where=f"{where}.{field}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
