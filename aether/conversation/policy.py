"""Policies: named settings of compaction, their triggers and bounds, and the public `CompactConfig` and `CompactPolicy`.

A policy is data, applied in `plan`, and never changed: the `effective` policy of a result is the one that was used.
Shares are of the window, tokens are whole tokens. `CompactConfig` and `CompactPolicy` have the names of requirement
002. Every rule and default is a key of `store.keys`; an invalid value is refused by the name of its field. The bounds of a
compaction are, in tokens:

limit    the most that may be sent: the window less the reserve
ceiling  a trigger fires above it; a result stays below, or it would be compacted again at once
roomy    a worthwhile step below the ceiling; keep counts are lowered for it, or every other turn would compact again
goal     the target of a compaction, so that it is not needed again soon
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import ceil
from typing import Any, NamedTuple, get_args

from aether.conversation.shapes import Bounds, Policy, Strategy
from aether.errors import InvalidInput, shown
from aether.store.keys import (
    CODE_FIELDS,
    KEYS,
    MODEL,
    WINDOW,
    Key,
    Rule,
    any_share,
    check_value,
    not_empty,
    positive_share,
)
from aether.tokens.models import profile
from aether.types import Finding

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

_NAMED = (
    Policy(),
    # requirements/001: from 70 % on, to half, of which three tenths are older messages kept by weight.
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
    "name": not_empty, "target": positive_share, "summary_share": positive_share, "keep_middle": any_share, "min_reclaim": any_share,
    "min_progress": any_share,
}  # fmt: skip
_SETTINGS = KEYS | CODE_FIELDS
_KEYS = {
    FIELDS.get(key.field, key.field): key for path, key in _SETTINGS.items() if path.startswith("policy.")
} | {
    name: Key(name, Policy._field_defaults[name], "see docs/compaction.md", rule)
    for name, rule in _OWN.items()
}
# A target this far below a low trigger leaves room for several turns before the next compaction.
TARGET_OF_TRIGGER = 0.75
SETTINGS = {path: key for path, key in KEYS.items() if key.field}
"""The settings of compaction by path."""


def policy(name: str) -> Policy:
    """Return the policy of that name.

    Raises:
        InvalidInput: there is no such policy.

    >>> policy("window").trigger, policy("brief").strategy
    (0.7, 'brief')
    """
    named_policy = POLICIES.get(name)
    if named_policy is None:
        raise InvalidInput(
            f"{shown(name)} is not a policy.", fix=f"Use one of {', '.join(POLICIES)}.", where="policy"
        )
    return named_policy


def validated(policy: Policy, *, where: str = "policy") -> Policy:
    """Return `policy` after a check of each field and of their combination.

    Raises:
        InvalidInput: a field is invalid; the error names it by its path.
    """
    for name, key in _KEYS.items():
        try:
            check_value(key, getattr(policy, name), called=name)
        except InvalidInput as reason:
            raise InvalidInput(reason.what, fix=reason.fix, where=f"{where}.{name}") from reason
    if policy.target >= policy.trigger:
        raise InvalidInput(
            f"{policy.target} is not below the trigger, {policy.trigger}: it would fire again at once.",
            fix="Lower the target.",
            where=f"{where}.target",
        )
    return policy


def _of(path: str) -> Any:
    return field(default=_SETTINGS[path].default, metadata={"key": _SETTINGS[path]})


def _require(settings: CompactPolicy | CompactConfig) -> None:
    for setting in fields(settings):
        if "key" in setting.metadata:
            check_value(setting.metadata["key"], getattr(settings, setting.name), called=setting.name)


@dataclass(frozen=True)
class CompactPolicy:
    """The triggers of a compaction and the messages that stay; values out of range raise `InvalidInput`.

    It is `Policy` under Ariadne's names: `policy` returns that.
    """

    trigger_pct: float = _of("policy.trigger_pct")
    target_pct: float = _of("policy.target_pct")
    trigger_tokens: int = _of("policy.trigger_tokens")
    trigger_messages: int = _of("policy.trigger_messages")
    hard_cap_buffer: int = _of("policy.hard_cap_buffer")
    keep_recent_turns: int = _of("policy.keep_recent_turns")
    keep_tool_io_pairs: int = _of("policy.keep_tool_io_pairs")
    roles_never_prune: tuple[str, ...] = _of("policy.roles_never_prune")
    protected_flag: str = _of("policy.protected_flag")
    protected_labels: tuple[str, ...] = _of("policy.protected_labels")
    protected_paths: tuple[str, ...] = _of("policy.protected_paths")
    min_reclaim_pct: float = _of("policy.min_reclaim_pct")
    strategy: str = _of("policy.strategy")
    steps: tuple[str, ...] = _of("policy.steps")

    def __post_init__(self) -> None:
        _require(self)
        if self.target_pct and self.target_pct >= self.trigger_pct:
            raise InvalidInput(
                f"target_pct must be below trigger_pct ({self.trigger_pct:g}), got {self.target_pct:g}.",
                fix="A target at the trigger compacts again on the next turn; lower it, or leave it out.",
            )

    def policy(self) -> Policy:
        """Return this as a policy for `compaction.plan`."""
        values = {
            FIELDS.get(setting.name, setting.name): getattr(self, setting.name) for setting in fields(self)
        }
        default = min(Policy().target, TARGET_OF_TRIGGER * self.trigger_pct)
        return Policy(**{**values, "target": self.target_pct or default})


@dataclass(frozen=True)
class CompactConfig:
    """The settings of `CompactManager` and `compactctl`; values out of range raise `InvalidInput`."""

    model: str = _of("model")
    max_context_tokens: int = _of("max_context_tokens")
    policy: CompactPolicy = CompactPolicy()
    telemetry_enabled: bool = _of("telemetry.enabled")
    telemetry_exporter: str = _of("telemetry.exporter")
    telemetry_path: str = _of("telemetry.path")
    ariadne_url: str = _of("telemetry.ariadne_url")
    otlp_url: str = _of("telemetry.otlp_url")
    storage_enabled: bool = _of("storage.enabled")
    storage_adapter: str = _of("storage.adapter")
    storage_path: str = _of("storage.path")
    storage_bucket: str = _of("storage.bucket")
    storage_prefix: str = _of("storage.prefix")
    storage_kms_key_id: str = _of("storage.kms_key_id")
    redaction_enabled: bool = _of("redaction.enabled")
    redaction_patterns: tuple[str, ...] = _of("redaction.patterns")
    summarizer_backend: str = _of("summarizer.backend")
    summarizer_model: str = _of("summarizer.model")
    summarization_timeout: float = _of("summarizer.timeout")

    def __post_init__(self) -> None:
        _require(self)
        if not self.max_context_tokens:
            model_profile = profile(self.model) if self.model != MODEL else None
            object.__setattr__(
                self,
                "max_context_tokens",
                model_profile.window if model_profile and model_profile.known else WINDOW,
            )
        if self.policy.hard_cap_buffer >= self.max_context_tokens:
            raise InvalidInput(
                f"policy.hard_cap_buffer must be below max_context_tokens ({self.max_context_tokens}), "
                f"got {self.policy.hard_cap_buffer}.",
                fix="Lower the buffer, or raise the window.",
            )
        if "file" in map(str.strip, self.exporter.split(",")) and not self.telemetry_path:
            raise InvalidInput(
                "telemetry.path must not be empty with the exporter file.", fix="Name the file."
            )
        if self.storage_enabled and self.storage_adapter == "s3" and not self.storage_bucket:
            raise InvalidInput(
                "storage.bucket must not be empty with the adapter s3.", fix="Name the bucket."
            )

    @property
    def exporter(self) -> str:
        """Return the exporters of events, or `none`."""
        if not self.telemetry_enabled:
            return "none"
        if self.telemetry_exporter:
            return self.telemetry_exporter
        return "ariadne" if self.ariadne_url else "otlp" if self.otlp_url else "none"


def config_from_values(values: Mapping[str, Any]) -> CompactConfig:
    """Return the configuration from settings by path, with defaults for the rest; unknown settings are ignored.

    Raises:
        InvalidInput: two of them contradict each other.
    """
    known_values = {path: value for path, value in values.items() if path in SETTINGS}
    policy = {KEYS[path].field: value for path, value in known_values.items() if path.startswith("policy.")}
    other_values = {
        KEYS[path].field: value for path, value in known_values.items() if not path.startswith("policy.")
    }
    return CompactConfig(policy=CompactPolicy(**policy), **other_values)


def config_values(config: CompactConfig) -> dict[str, Any]:
    """Return every setting of `config` by path."""
    return {
        path: getattr(config.policy if path.startswith("policy.") else config, key.field)
        for path, key in SETTINGS.items()
    }


# A reserve of more than half of a window was meant for a larger window; then the answer gets this share of it.
MOST_RESERVE_SHARE = 0.5
CLAMPED_RESERVE_SHARE = 0.15
# A compaction by hand has an effect however empty the window is: 45 % of the used tokens may stay (requirements/002: it
# removes at least 40 %).
BY_HAND_SHARE = 0.45
# Between two compactions there is room for twice the least progress, a tenth of the window by default: else a session
# whose kept calls nearly fill the window is compacted at almost every call.
ROOM_OF_PROGRESS = 2


class ContextBudget(NamedTuple):
    """Tokens of one window, by use."""

    window: int
    """Size of the window in tokens, the answer included."""
    reserve: int = 0
    """Tokens that stay free for the answer."""
    system: int = 0
    developer: int = 0
    tools: int = 0
    """Of the tool schemas."""
    messages: int = 0

    @property
    def used(self) -> int:
        """Return the tokens of all that is sent."""
        return self.system + self.developer + self.tools + self.messages

    @property
    def limit(self) -> int:
        """Return the tokens that may be sent: the window less the reserve."""
        return self.window - self.reserve

    @property
    def ratio(self) -> float:
        """Return the used share of the window, which may exceed 1."""
        return self.used / self.window


def checked(budget: ContextBudget) -> ContextBudget:
    """Return `budget` after a check that something can be sent at all.

    Raises:
        InvalidInput: the window is not positive, a part is negative, or the reserve leaves nothing.
    """
    if budget.window < 1:
        raise InvalidInput(
            f"{shown(budget.window)} is not a window.", fix="Give its tokens, at least 1.", where="window"
        )
    for name, tokens in zip(budget._fields, budget, strict=True):
        if tokens < 0:
            raise InvalidInput(
                f"{shown(tokens)} is not a number of tokens.", fix="Give 0 or more.", where=name
            )
    if budget.reserve >= budget.window:
        raise InvalidInput(
            f"{budget.reserve} tokens leave nothing of a window of {budget.window}.",
            fix="Lower the reserve, or name a model with a larger window.",
            where="reserve",
        )
    return budget


def fires(budget: ContextBudget, policy: Policy, messages: int) -> str:
    """Return the reason, in words, if a trigger of `policy` fires for a conversation of so many messages; else empty.

    Above the limit it fires whatever the policy says, because more cannot be sent.

    >>> fires(ContextBudget(128_000, messages=108_800), Policy(), messages=9)
    '108800 of 128000 tokens used (85.0 %): the trigger is 85 %'
    >>> fires(ContextBudget(128_000, messages=96_000), Policy(), messages=9)
    ''
    """
    if budget.ratio >= policy.trigger:
        share = f"{100 * budget.ratio:.1f} %"
        return f"{budget.used} of {budget.window} tokens used ({share}): the trigger is {100 * policy.trigger:g} %"
    if budget.used > budget.limit:
        return f"{budget.used} tokens used: the limit is {budget.limit}, the window less the reserve"
    if policy.trigger_tokens and budget.used >= policy.trigger_tokens:
        return f"{budget.used} tokens used: the trigger is {policy.trigger_tokens}"
    if policy.trigger_messages and messages >= policy.trigger_messages:
        return f"{messages} messages: the trigger is {policy.trigger_messages}"
    return ""


def bounds(policy: Policy, window: int) -> Bounds:
    """Return the bounds of a compaction of a conversation in this window.

    Raises:
        InvalidInput: the window is not positive.

    >>> bounds(Policy(), 128_000)[:6]
    (128000, 1500, 126500, 108799, 95999, 76800)
    >>> bounds(Policy(), 1_000)[:6]
    (1000, 150, 850, 849, 749, 600)
    """
    reserve = policy.reserve
    findings: tuple[Finding, ...] = ()
    if window > 0 and reserve > MOST_RESERVE_SHARE * window:
        reserve = int(CLAMPED_RESERVE_SHARE * window)
        message = f"{policy.reserve} tokens are more than half of a window of {window}; {reserve} are kept free instead."
        fix = "Set a reserve that suits the window."
        findings = (Finding("info", "reserve-clamped", "policy.reserve", message, fix),)
    limit = checked(ContextBudget(window, reserve)).limit
    fires_at = min(policy.trigger * window, policy.trigger_tokens or float("inf"))
    ceiling = max(1, min(limit, ceil(fires_at) - 1))
    goal = max(
        1, min(int(policy.target * window), int(ceiling * policy.target / policy.trigger + 1), ceiling)
    )
    roomy = max(goal, ceiling - int(ROOM_OF_PROGRESS * policy.min_progress * window))
    return Bounds(window, reserve, limit, ceiling, roomy, goal, max(0, policy.trigger_messages - 1), findings)
