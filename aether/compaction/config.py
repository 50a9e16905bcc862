"""The configuration of compaction: every setting once, with its default, its rule and what it means.

The fields of `CompactPolicy` and `CompactConfig` are the table that parsing, environment variables, the example
files and the documentation are made of (`settings`). A value that breaks its rule is refused by the name of its
field, however it was given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field, fields
from typing import Any, NamedTuple

from aether.compaction.policies import ROLES, STEPS, STRATEGIES
from aether.compaction.shapes import Policy
from aether.errors import InvalidInput, shown
from aether.redact.redaction import rules
from aether.tokens.profiles import profile

Rule = Callable[[Any], str]
"""Value, of the right kind, to what it must be; empty where it is that."""

EXPORTERS = ("console", "file", "ariadne", "otlp", "none")
STORAGES = ("fs", "s3", "none")
BACKENDS = ("extractive", "anthropic", "openai", "ollama", "command")
# Where an Ariadne viewer listens unless told otherwise (facts of requirement 002).
ARIADNE_URL = "http://localhost:5175/ingest"
# Model and window that requirement 002 has where neither is set, and tokens below which nothing can be compacted.
MODEL, WINDOW, LEAST_WINDOW = "gpt-4", 128_000, 1000
# Seconds: an hour, longer than any model writes a summary; sockets refuse times that are far longer.
MOST_SECONDS = 3600.0
# A target this far below a low trigger leaves room for several turns before the next compaction.
TARGET_OF_TRIGGER = 0.75
_WANTED = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", tuple: "a list of texts"}  # fmt: skip


def _any(_value: Any) -> str:
    return ""


def _share(value: float) -> str:
    return "" if 0 < value <= 1 else "must be in range (0.0, 1.0]"


def _part(value: float) -> str:
    return "" if 0 <= value < 1 else "must be in range [0.0, 1.0)"


def _seconds(value: float) -> str:
    return "" if 0 < value <= MOST_SECONDS else f"must be > 0 and at most {MOST_SECONDS:g}"


def _window(value: int) -> str:
    return "" if not value or value >= LEAST_WINDOW else f"must be >= {LEAST_WINDOW}"


def _address(value: str) -> str:
    from aether.http import address

    try:
        if value:
            address(value, where="")
    except InvalidInput:
        return f"must be the address of a server such as {ARIADNE_URL}, without a password"
    return ""


def _backend(value: str) -> str:
    name, _, program = value.partition(":")
    if name in BACKENDS and bool(program.strip()) == (name == "command"):
        return ""
    return f"must be one of {', '.join(BACKENDS[:-1])}, command:PROGRAM"


def _not_empty(value: str) -> str:
    return "" if value.strip() else "must not be empty"


def _at_least(least: int) -> Rule:
    return lambda value: "" if value >= least else f"must be >= {least}"


def _one_of(names: Iterable[str]) -> Rule:
    known = tuple(names)
    return lambda value: "" if value in known else f"must be one of {', '.join(filter(None, known))}"


def _all_of(names: Iterable[str]) -> Rule:
    known = tuple(names)
    return lambda value: "" if set(value) <= set(known) else f"must be a list of {', '.join(known)}"


def _expressions(value: tuple[str, ...]) -> str:
    try:
        rules(value)
    except InvalidInput as reason:
        return f"must be a list of regular expressions ({reason.where}: {reason.what})"
    return ""


def _setting(default: Any, meaning: str, rule: Rule = _any, *, path: str = "") -> Any:
    return field(default=default, metadata={"meaning": meaning, "rule": rule, "path": path})


@dataclass(frozen=True)
class CompactPolicy:
    """When a conversation is compacted, and what stays; values out of range raise `InvalidInput`."""

    trigger_pct: float = _setting(
        0.85, "share of the window from which on a conversation is compacted", _share
    )
    target_pct: float = _setting(
        0.0, "share of the window to compact to, below the trigger; 0: 0.6, or 0.75 of a lower trigger", _part
    )
    trigger_tokens: int = _setting(
        0, "tokens from which on it is compacted whatever their share; 0: none", _at_least(0)
    )
    trigger_messages: int = _setting(
        0, "number of messages from which on it is compacted; 0: none", _at_least(0)
    )
    hard_cap_buffer: int = _setting(1500, "tokens of the window that stay free for the answer", _at_least(0))
    keep_recent_turns: int = _setting(
        6,
        "turns at the end that stay as they are; a turn is a user message and all that answers it",
        _at_least(1),
    )
    keep_tool_io_pairs: int = _setting(
        4, "tool calls at the end that stay, each with its results", _at_least(1)
    )
    roles_never_prune: tuple[str, ...] = _setting(
        ("system", "developer"), "roles that are protected", _all_of(ROLES)
    )
    protected_flag: str = _setting(
        "protected", "key of `meta` that protects a message where it is truthy", _not_empty
    )
    protected_labels: tuple[str, ...] = _setting((), "labels (`meta.label`) that protect a message")
    protected_paths: tuple[str, ...] = _setting(
        (), "glob patterns: tool calls and results about such files are protected"
    )
    min_reclaim_pct: float = _setting(
        Policy().min_reclaim,
        "least share of the tokens that must go, or it is not worth the prompt cache",
        _part,
    )
    strategy: str = _setting("task_state", "what the summary is about", _one_of(STRATEGIES))
    steps: tuple[str, ...] = _setting(
        Policy().steps, "rungs of the ladder in order; without `summarise` no summariser is asked", _all_of(STEPS)
    )  # fmt: skip

    def __post_init__(self) -> None:
        _require(self)
        if self.target_pct and self.target_pct >= self.trigger_pct:
            raise InvalidInput(
                f"target_pct must be below trigger_pct ({self.trigger_pct:g}), got {self.target_pct:g}.",
                fix="A target at the trigger compacts again on the next turn; lower it, or leave it out.",
            )

    def policy(self) -> Policy:
        """Return this as the policy that `compaction.plan` takes."""
        default = min(Policy().target, TARGET_OF_TRIGGER * self.trigger_pct)
        return Policy(
            trigger=self.trigger_pct,
            target=self.target_pct or default,
            trigger_tokens=self.trigger_tokens,
            trigger_messages=self.trigger_messages,
            reserve=self.hard_cap_buffer,
            keep_recent_turns=self.keep_recent_turns,
            keep_tool_pairs=self.keep_tool_io_pairs,
            protected_roles=self.roles_never_prune,
            protected_flag=self.protected_flag,
            protected_labels=self.protected_labels,
            protected_paths=self.protected_paths,
            min_reclaim=self.min_reclaim_pct,
            strategy=self.strategy,  # type: ignore[arg-type] # the rule above holds it to the strategies
            steps=self.steps,  # type: ignore[arg-type] # likewise
        )


@dataclass(frozen=True)
class CompactConfig:
    """What `CompactManager` and `compactctl` work by; values out of range raise `InvalidInput`."""

    model: str = _setting(MODEL, "model whose tokens are counted and which events name", _not_empty)
    max_context_tokens: int = _setting(
        0,
        f"window of the model in tokens; 0: what the model named above is known to take, else {WINDOW}",
        _window,
    )
    policy: CompactPolicy = field(default_factory=CompactPolicy)
    telemetry_enabled: bool = _setting(True, "whether events are sent", path="telemetry.enabled")
    telemetry_exporter: str = _setting(
        "",
        f"who carries events: {', '.join(EXPORTERS)}; empty: ariadne or otlp where its URL is set, else none",
        _one_of(("", *EXPORTERS)),
        path="telemetry.exporter",
    )
    telemetry_path: str = _setting("", "file that the exporter `file` appends to", path="telemetry.path")
    ariadne_url: str = _setting(
        "", f"address of an Ariadne viewer, such as {ARIADNE_URL}", _address, path="telemetry.ariadne_url"
    )
    otlp_url: str = _setting(
        "",
        "address of an OTLP/HTTP receiver; empty: OpenTelemetry's own default",
        _address,
        path="telemetry.otlp_url",
    )
    storage_enabled: bool = _setting(True, "whether redacted copies are kept", path="storage.enabled")
    storage_adapter: str = _setting(
        "fs", f"where redacted copies go: {', '.join(STORAGES)}", _one_of(STORAGES), path="storage.adapter"
    )
    storage_path: str = _setting(
        "./.compact/archive", "directory of the adapter `fs`", _not_empty, path="storage.path"
    )
    storage_bucket: str = _setting("", "bucket of the adapter `s3`", path="storage.bucket")
    storage_prefix: str = _setting("", "prefix of its keys", path="storage.prefix")
    storage_kms_key_id: str = _setting(
        "", "KMS key that S3 encrypts with; empty: the bucket's own", path="storage.kms_key_id"
    )
    redaction_enabled: bool = _setting(
        True, "whether secrets are replaced in copies and events", path="redaction.enabled"
    )
    redaction_patterns: tuple[str, ...] = _setting(
        (), "regular expressions of further secrets", _expressions, path="redaction.patterns"
    )
    summarizer_backend: str = _setting(
        "extractive",
        "who writes summaries: extractive (no model, no key), anthropic, openai, ollama, command:PROGRAM",
        _backend,
        path="summarizer.backend",
    )
    summarizer_model: str = _setting("", "model of that backend; empty: its default", path="summarizer.model")
    summarization_timeout: float = _setting(
        10.0, "seconds that one summary may take", _seconds, path="summarizer.timeout"
    )

    def __post_init__(self) -> None:
        _require(self)
        if not self.max_context_tokens:
            known = profile(self.model) if self.model != MODEL else None
            object.__setattr__(self, "max_context_tokens", known.window if known and known.known else WINDOW)
        if self.policy.hard_cap_buffer >= self.max_context_tokens:
            raise InvalidInput(
                f"policy.hard_cap_buffer must be below max_context_tokens ({self.max_context_tokens}), "
                f"got {self.policy.hard_cap_buffer}.",
                fix="Lower the buffer, or raise the window.",
            )
        if self.exporter == "file" and not self.telemetry_path:
            raise InvalidInput(
                "telemetry.path must not be empty with the exporter file.", fix="Name the file."
            )
        if self.storage_enabled and self.storage_adapter == "s3" and not self.storage_bucket:
            raise InvalidInput(
                "storage.bucket must not be empty with the adapter s3.", fix="Name the bucket."
            )

    @property
    def exporter(self) -> str:
        """Return who carries events away, `none` where nobody does."""
        if not self.telemetry_enabled:
            return "none"
        if self.telemetry_exporter:
            return self.telemetry_exporter
        return "ariadne" if self.ariadne_url else "otlp" if self.otlp_url else "none"


class Key(NamedTuple):
    """One setting: where it stands in a file, and what it may be."""

    path: str
    """In the nested form: `telemetry.ariadne_url`."""
    flat: str
    """In the flat form, and the name of the field: `ariadne_url`."""
    env: str
    default: Any
    """Its type is that of the setting."""
    meaning: str
    rule: Rule


def _key(one: Field[Any], table: str = "") -> Key:
    path = one.metadata["path"] or f"{table}{one.name}"
    env = f"COMPACT_{one.name.upper()}"
    return Key(path, one.name, env, one.default, one.metadata["meaning"], one.metadata["rule"])


def _keys() -> Iterable[Key]:
    for one in fields(CompactConfig):
        if one.name == "policy":
            yield from (_key(below, "policy.") for below in fields(CompactPolicy))
        else:
            yield _key(one)


def _require(settings: CompactPolicy | CompactConfig) -> None:
    for one in fields(settings):
        if "rule" not in one.metadata:
            continue
        typed(_key(one), getattr(settings, one.name), called=one.name)


def typed(key: Key, value: Any, *, called: str = "", where: str = "") -> Any:
    """Return `value` as the type of its key: whole numbers stand for numbers, lists become tuples.

    Raises:
        InvalidInput: it is of another type, or breaks the rule of the key.
    """
    wanted = type(key.default)
    if wanted is float and type(value) is int:
        value = float(value)
    if wanted is tuple and isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = tuple(value)
    what = key.rule(value) if type(value) is wanted else f"must be {_WANTED[wanted]}"
    if what:
        got = "" if key.rule is _address else f", got {shown(value)}"  # an address may hold a password
        raise InvalidInput(
            f"{called or key.path} {what}{got}.",
            fix=f"The default is {json.dumps(key.default)}: {key.meaning}.",
            where=where,
        )
    return value


KEYS: dict[str, Key] = {key.path: key for key in _keys()}
"""Every setting by its path."""
