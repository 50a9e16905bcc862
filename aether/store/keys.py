"""The keys of the configuration: every setting once, with its default, its rule and its meaning.

The loader (`config`), the documentation, the example files and the messages of errors are made from this table. A new
key has authority until somebody has thought about what a cloned repository could do with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from aether.errors import InvalidInput, shown
from aether.store.files import LOCK_SECONDS

T = TypeVar("T")
Rule = Callable[[Any], str]
"""Value of the right type to what it must be; empty if it is valid."""

EXPORTERS = ("console", "file", "ariadne", "otlp", "none")
STORAGES = ("fs", "s3", "none")
# The module of each backend that completes a request, and of each that chats; `aether.architects` imports them.
BACKENDS = {
    "extractive": "aether.architects.extractive", "claude-code": "aether.architects.claude_cli",
    "anthropic": "aether.architects.anthropic", "openai": "aether.architects.openai",
    "ollama": "aether.architects.ollama", "command": "aether.architects.command",
}  # fmt: skip
CHATS = {
    "echo": "aether.architects.stream", "ollama": "aether.architects.ollama", "openai": "aether.architects.openai",
    "anthropic": "aether.architects.anthropic", "command": "aether.architects.command",
}  # fmt: skip
ROLES = ("system", "developer", "user", "assistant", "tool")
PRESETS = ("default", "research")
STRATEGIES = ("task_state", "brief", "decision_log", "code_delta", "step_ledger", "requirements_ledger")
# How much agents may state, least first.
GATES = ("off", "propose", "write")
STEPS = ("drop_reasoning", "shorten_results", "shorten_arguments", "fold_exploration", "summarise", "select", "reduce")  # fmt: skip
# Where an Ariadne viewer listens by default (read from its sources).
ARIADNE_URL = "http://localhost:5175/ingest"
# Model and window that Ariadne has where neither is set, and tokens below which nothing can be compacted.
MODEL, WINDOW, MIN_WINDOW = "gpt-4", 128_000, 1000
# The smallest window that leaves room for a system prompt, a summary and a message.
MIN_CONTEXT_WINDOW = 256
# Seconds: an hour, longer than any model writes a summary; sockets refuse times that are far longer.
MAX_SECONDS = 3600.0
_TYPE_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", tuple: "a list of strings"}  # fmt: skip
# The rules of these tables bind those who use them: homes of older versions hold unchecked values.
CHECKED_ON_USE = ("summarizer", "telemetry", "storage")


class Key(NamedTuple):
    """One setting."""

    path: str
    """Its name in a file: `telemetry.ariadne_url` is `ariadne_url` of the table `telemetry`."""
    default: Any
    """Its type is that of the setting."""
    meaning: str
    """One line, with the unit."""
    rule: Rule
    authority: bool = False
    """Whether a home may set it only if its user trusts it.

    With it, a cloned repository could start programs, set servers, exporters or paths, turn a protection off, delete
    or hide what is kept, spend money, or make others wait.
    """
    lowers: bool = False
    """Whether an untrusted home may switch it off or lower it, below what the user has."""
    also: tuple[str, ...] = ()
    """Older names that files may use."""
    env: tuple[str, ...] = ()
    """Its variables. Only compaction reads those that begin with `COMPACT_`, and they win."""
    field: str = ""
    """Its field in `CompactConfig` or `CompactPolicy`, where it has one."""


def positive_share(value: float) -> str:
    """Require a share above 0."""
    return "" if 0 < value <= 1 else "must be in range (0.0, 1.0]"


def share_below_one(value: float) -> str:
    """Require a share below 1."""
    return "" if 0 <= value < 1 else "must be in range [0.0, 1.0)"


def any_share(value: float) -> str:
    """Require a share from 0 to 1."""
    return "" if 0 <= value <= 1 else "must be in range [0.0, 1.0]"


def at_least(minimum: int) -> Rule:
    """Return the rule that requires `minimum` or more."""
    return lambda value: "" if value >= minimum else f"must be >= {minimum}"


def not_empty(value: str) -> str:
    """Require a text that is not blank."""
    return "" if value.strip() else "must not be empty"


def _zero_or_at_least(minimum: int) -> Rule:
    return lambda value: "" if not value or value >= minimum else f"must be >= {minimum}"


def _seconds(value: float) -> str:
    return "" if 0 < value <= MAX_SECONDS else f"must be > 0 and at most {MAX_SECONDS:g}"


def _address(value: str) -> str:
    from aether.http import address

    try:
        if value:
            address(value, where="")
    except InvalidInput:
        return f"must be the address of a server such as {ARIADNE_URL}, without a password"
    return ""


def architects() -> list[str]:
    """Return the names of architects: the agent that is running, a person, and every backend."""
    return ["host", "manual", *BACKENDS]


def summarisers() -> list[str]:
    """Return the names of backends that write summaries: all but one that starts too slowly for a request that waits."""
    return [name for name in BACKENDS if name != "claude-code"]


def _backend_of(names: Callable[[], Iterable[str]]) -> Rule:
    def rule(value: str) -> str:
        name, _, program = value.partition(":")
        fits = name in names() and bool(program.strip()) == (name == "command")
        listed = [name for name in names() if name != "command"]
        return "" if fits else f"must be one of {', '.join(listed)}, command:PROGRAM"

    return rule


def _one_of(*names: str) -> Rule:
    return lambda value: "" if value in names else f"must be one of {', '.join(names)}"


def _exporters(value: str) -> str:
    names = [name.strip() for name in value.split(",")]
    return "" if not value or set(names) <= set(EXPORTERS) else f"must be one of {', '.join(EXPORTERS)}"


def _ages(value: str) -> str:
    days = [day.strip() for day in value.split(",")]
    if not value or (len(days) == 3 and all(map(str.isdecimal, days)) and days == sorted(days, key=int)):
        return ""
    return "must be three ascending numbers of days, such as 30, 90, 365"


def _some_of(*names: str, minimum: int = 0) -> Rule:
    def rule(value: tuple[str, ...]) -> str:
        wrong = [index for index, name in enumerate(value) if name not in names or name in value[:index]]
        where = f" (see [{wrong[0]}])" if wrong else ""
        required = f"must be a list of {', '.join(names)}, each at most once{where}"
        return required if wrong or len(value) < minimum else ""

    return rule


def _no_blanks(value: tuple[str, ...]) -> str:
    return "" if all(text.strip() for text in value) else "must be a list of strings that are not empty"


def _expressions(value: tuple[str, ...]) -> str:
    from aether.redact.redact import rules

    try:
        rules(value)
    except InvalidInput as reason:
        return f"must be a list of regular expressions ({reason.where}: {reason.what})"
    return ""


KEYS: dict[str, Key] = {}
"""Every setting by its path."""


def _key(
    path: str, default: T, meaning: str, rule: Rule = lambda _: "", *, field: str = "", old: str = "",
    lowers: bool = False, harmless: bool = False,
) -> T:  # fmt: skip
    table, _, _ = path.rpartition(".")
    env = [f"AETHER_{path.upper().replace('.', '_')}"] if table else []
    env += [f"COMPACT_{field.upper()}"] if field else []
    also = [name for name in (old, field if table != "policy" else "") if name and name != path]
    authority = not (lowers or harmless)
    KEYS[path] = Key(path, default, meaning, rule, authority, lowers, tuple(also), tuple(env), field)
    return default


# What a compaction takes out of a context stays in the home, and an undo restores it: any home may set how.
_key("model", MODEL, "model whose tokens are counted and which events name", not_empty, field="model", harmless=True)  # fmt: skip
_key(
    "max_context_tokens", 0, f"window of the model in tokens; 0: that of the model named above if it is known, else {WINDOW}",
    _zero_or_at_least(MIN_WINDOW), field="max_context_tokens", harmless=True,
)  # fmt: skip
_key("policy.trigger_pct", 0.85, "share of the window at which a conversation is compacted", positive_share, field="trigger_pct", harmless=True)  # fmt: skip
_key(
    "policy.target_pct", 0.0, "share of the window to compact to, below the trigger; 0: 0.6, or 0.75 of a lower trigger",
    share_below_one, field="target_pct", harmless=True,
)  # fmt: skip
_key("policy.hard_cap_buffer", 1500, "tokens of the window that stay free for the answer", at_least(0), field="hard_cap_buffer", harmless=True)  # fmt: skip
_key(
    "policy.keep_recent_turns", 6, "turns at the end that stay as they are; a turn is a user message and all that answers it",
    at_least(1), field="keep_recent_turns", harmless=True,
)  # fmt: skip
_key("policy.keep_tool_io_pairs", 4, "tool calls at the end that stay, each with its results", at_least(1), field="keep_tool_io_pairs", harmless=True)  # fmt: skip
_key("policy.roles_never_prune", ("system", "developer"), "roles that are protected", _some_of(*ROLES), field="roles_never_prune")  # fmt: skip
_key("policy.strategy", "task_state", "subject of the summary", _one_of(*STRATEGIES), field="strategy", harmless=True)  # fmt: skip
_key("telemetry.enabled", True, "whether `CompactManager` and `compactctl` send events", field="telemetry_enabled")  # fmt: skip
_key("storage.enabled", True, "whether redacted copies are kept", field="storage_enabled")
_key("storage.adapter", "fs", f"place of redacted copies: {', '.join(STORAGES)}", _one_of(*STORAGES), field="storage_adapter", old="compact.storage")  # fmt: skip
_key("storage.path", "./.compact/archive", "directory of the adapter `fs`", not_empty, field="storage_path", old="compact.storage_path")  # fmt: skip
_key("storage.bucket", "", "bucket of the adapter `s3`", field="storage_bucket", old="compact.storage_bucket")  # fmt: skip
_key("storage.prefix", "", "prefix of its keys", field="storage_prefix", old="compact.storage_prefix")  # fmt: skip
# They can only redact more.
_key("redaction.patterns", (), "regular expressions for further secrets", _expressions, field="redaction_patterns", harmless=True)  # fmt: skip
_COMPACTION_KEYS = len(KEYS)


class Config(NamedTuple):
    """The settings by which the commands work on a home; the declaration of a field is its row of the table."""

    compact_backend: str = _key(
        "summarizer.backend", "extractive",
        "writer of summaries: extractive (no model, no key), anthropic, openai, ollama, command:PROGRAM",
        _backend_of(summarisers), field="summarizer_backend", old="compact.backend",
    )  # fmt: skip
    compact_model: str = _key("summarizer.model", "", "model of that backend; empty: its default", field="summarizer_model", old="compact.model")  # fmt: skip
    # A wait that its user can end is harmless.
    compact_timeout_seconds: float = _key("summarizer.timeout", 10.0, "seconds that one summary may take", _seconds, field="summarization_timeout", old="compact.timeout_seconds", harmless=True)  # fmt: skip
    lock_timeout_seconds: float = _key("store.lock_timeout_seconds", LOCK_SECONDS, "seconds that a writer waits for another", harmless=True)  # fmt: skip
    fold_bytes: int = _key("store.fold_bytes", 1 << 20, "size of the journal in bytes at which a commit folds it; between the parts of an import, eight times that", harmless=True)  # fmt: skip
    history_months: int = _key("store.history_months", 0, "months of folded journal to keep for undo and time travel; 0: all")  # fmt: skip
    architect: str = _key(
        "architect.default", "extractive",
        "who writes the session of a conversation: extractive (no model), host (the agent that is running), or a model that "
        "hooks and `aether compress` ask: claude-code, anthropic, openai, ollama, command:PROGRAM",
        _backend_of(architects),
    )  # fmt: skip
    architect_daily_tokens: int = _key("architect.daily_tokens", 200_000, "most tokens that hooks may spend on a model architect in one day and home; 0: none")  # fmt: skip
    architect_model: str = _key("architect.model", "", "model of a model backend; empty: the backend's own default")  # fmt: skip
    architect_base_url: str = _key("architect.base_url", "", "its server; empty: its usual address or environment variable")  # fmt: skip
    architect_timeout_seconds: float = _key("architect.timeout_seconds", 120.0, "seconds that one answer may take", harmless=True)  # fmt: skip
    chat_backend: str = _key("chat.backend", "echo", "backend of `aether chat`: echo (no model), ollama, openai, anthropic, command:PROGRAM", _backend_of(CHATS.keys))  # fmt: skip
    chat_model: str = _key("chat.model", "", "its model; empty: AETHER_MODEL, or its default")
    chat_base_url: str = _key("chat.base_url", "", "its server; empty: its usual address or environment variable")  # fmt: skip
    context_window: int = _key("context.window", 0, "window of a new context in tokens; 0: that of its model, or of its server", _zero_or_at_least(MIN_CONTEXT_WINDOW))  # fmt: skip
    context_profiles: str = _key("context.profiles", "", "file of model profiles in the form of OLLM-CLI (`LLM_profiles.json`): limits of prompts, windows, tool support; a relative path starts at the home")  # fmt: skip
    context_compress_pct: float = _key("context.compress_pct", 0.80, "share of the limit at which a message is followed by a compression", positive_share, harmless=True)  # fmt: skip
    telemetry_exporter: str = _key(
        "telemetry.exporter", "",
        f"exporters of events, separated by commas: {', '.join(EXPORTERS)}; "
        "empty: none, but in `CompactManager` and `compactctl` ariadne or otlp where its URL is set",
        _exporters, field="telemetry_exporter",
    )  # fmt: skip
    telemetry_ariadne_url: str = _key("telemetry.ariadne_url", "", f"address of an Ariadne viewer, such as {ARIADNE_URL}", _address, field="ariadne_url")  # fmt: skip
    telemetry_otlp_url: str = _key("telemetry.otlp_url", "", "address of an OTLP/HTTP receiver; empty: OpenTelemetry's own default", _address, field="otlp_url")  # fmt: skip
    telemetry_path: str = _key("telemetry.path", "", "file that the exporter `file` appends to; empty: `telemetry.jsonl` in the home", field="telemetry_path")  # fmt: skip
    claude_capture: bool = _key("claude.capture", True, "whether the hooks of Claude Code remember what happens in a session", lowers=True)  # fmt: skip
    claude_inject: bool = _key("claude.inject", True, "whether memory is injected into a session and its sub-agents at their start", lowers=True)  # fmt: skip
    claude_recall: bool = _key("claude.recall", True, "whether memory is injected into a prompt that strongly matches it", lowers=True)  # fmt: skip
    claude_file_history: bool = _key("claude.file_history", False, "whether decisions and errors about a source file are injected when it is read; `aether claude install` again after a change", lowers=True)  # fmt: skip
    claude_brief_tokens: int = _key("claude.brief_tokens", 700, "most tokens of memory at the start of a session; never more than 700", lowers=True)  # fmt: skip
    # Files whose secrets have no form that gives them away. A home adds to those of its user.
    claude_private_paths: str = _key(
        "claude.private_paths", ".env, .env.*, *.pem, *.key, id_rsa*, id_ed25519*, .ssh/**, .aws/**",
        "paths of which nothing is captured: patterns such as `secrets/**`, separated by commas; a home adds to its user's",
        harmless=True,
    )  # fmt: skip
    claude_auto_compress: bool = _key("claude.auto_compress", True, "whether the end of a turn compresses full working memory, without a model", lowers=True)  # fmt: skip
    # Claude Code waits longer for a hook, but a person notices this much.
    claude_deadline_seconds: float = _key(
        "claude.deadline_seconds", 8.0,
        "seconds that a hook that reads memory may take, three times as many before and after a compaction; after that it prints nothing",
        lowers=True,
    )  # fmt: skip
    # An untrusted home may let agents state less than its user does: the values are in the order of the alphabet.
    memory_agents: str = _key(
        "memory.agents", "write",
        "treatment of statements of agents, importers and architects: write (only rules wait for a person), propose (all of them wait), off (they are refused, and hooks capture nothing)",
        _one_of(*GATES), lowers=True,
    )  # fmt: skip
    share_offline: str = _key("share.offline", "refuse", "what happens to a change of a shared home whose server cannot be reached: refuse, queue", _one_of("refuse", "queue"))  # fmt: skip
    archive_boundaries: str = _key(
        "archive.boundaries", "",
        "days from which key points, a summary and a description are kept, such as `30, 90, 365`; empty: those of the default preset",
        _ages,
    )  # fmt: skip
    archive_grace_days: int = _key("archive.grace_days", 30, "days that the previous form of a conversation is kept after a step of the archive, and can be restored exactly; 0: none")  # fmt: skip
    archive_auto: str = _key("archive.auto", "off", "whether the first command of a day ages the conversations that are old enough: off, daily", _one_of("off", "daily"))  # fmt: skip
    # Nothing is lost, and every command reads both.
    archive_compress: bool = _key("archive.compress", False, "whether archive files are compressed (`.json.zst`), and no longer readable as they are", harmless=True)  # fmt: skip


NAMES: dict[str, Key] = {name: key for key in KEYS.values() for name in (key.path, *key.also)}
"""Every setting by each of its names in files."""
FIELDS = dict(zip([*KEYS][_COMPACTION_KEYS:], Config._fields, strict=True))
"""The fields of `Config` by the paths of their settings."""

RETIRED = {
    **dict.fromkeys(
        (
            "policy.trigger_tokens", "policy.trigger_messages", "policy.protected_flag", "policy.protected_labels",
            "policy.protected_paths", "policy.min_reclaim_pct", "policy.steps", "storage.kms_key_id", "redaction.enabled",
        ),
        "Pass it in code, as a field of `CompactConfig` or `CompactPolicy`.",
    ),
    "storage_kms_key_id": "Pass it in code, as a field of `CompactConfig`.",
    "redaction_enabled": "Pass it in code, as a field of `CompactConfig`.",
    **dict.fromkeys(
        (
            "architect.max_retries", "architect.max_output_tokens", "architect.window_tokens",
            "architect.input_usd_per_million", "architect.output_usd_per_million", "chat.timeout_seconds",
            "context.inform_pct", "context.snapshot_pct", "context.emergency_pct", "context.checkpoints_pct",
            "context.target_pct", "context.moderate_age", "context.compact_age", "context.merge_age",
            "context.recent_messages", "context.most_recent_messages", "context.least_tokens", "context.snapshots",
            "context.summary_seconds", "telemetry.timeout_seconds", "telemetry.content", "claude.recall_tokens", "archive.seconds",
        ),
        "Its default applies; remove the line.",
    ),
    "context.model": "Pass --model to the command; remove the line.",
    "context.mode": "Pass --mode to the command; remove the line.",
    "archive.preset": "Write its days in archive.boundaries, or pass --preset to the command.",
}  # fmt: skip
"""Settings of earlier releases, which are ignored, with the advice for who has one."""

CODE_FIELDS: dict[str, Key] = {
    path: Key(path, default, meaning, rule, field=path.rpartition(".")[2])
    for path, default, meaning, rule in (
        ("policy.trigger_tokens", 0, "number of tokens at which it is compacted, whatever their share; 0: no such trigger", at_least(0)),
        ("policy.trigger_messages", 0, "number of messages at which it is compacted; 0: no such trigger", at_least(0)),
        ("policy.protected_flag", "protected", "key of `meta` that protects a message where it is truthy", not_empty),
        ("policy.protected_labels", (), "labels (`meta.label`) that protect a message", _no_blanks),
        ("policy.protected_paths", (), "glob patterns: tool calls and results about such files are protected", _no_blanks),
        ("policy.min_reclaim_pct", 0.05, "least share of the tokens that must go, or it is not worth the prompt cache", share_below_one),
        ("policy.steps", STEPS, "steps in order; without `summarise` no summariser is asked", _some_of(*STEPS, minimum=1)),
        ("storage.kms_key_id", "", "KMS key that S3 encrypts with; empty: the bucket's own", lambda _: ""),
        ("redaction.enabled", True, "whether secrets are replaced in copies and events", lambda _: ""),
    )
}  # fmt: skip
"""The fields of `CompactPolicy` and `CompactConfig` that no file sets: their defaults and rules by path."""


def check_value(key: Key, value: Any, *, called: str = "", late: bool = False) -> Any:
    """Return `value` as the type of its key: a whole number is a number too, a list becomes a tuple.

    With `late`, the rules of settings that are checked when they are used are left to that.

    Raises:
        InvalidInput: it is of another type, or breaks the rule of the key.
    """
    kind = type(key.default)
    if kind is float and type(value) is int:
        value = float(value)
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    problem = ""
    if type(value) is not kind or (kind is tuple and not all(isinstance(text, str) for text in value)):
        problem = f"must be {_TYPE_WORDS[kind]}"
    elif not (late and key.path.startswith(CHECKED_ON_USE)):
        problem = key.rule(value)
    if not problem and kind in (int, float):
        problem = at_least(0)(value)
    if problem:
        got = "" if key.rule is _address else f", got {shown(value)}"  # an address may hold a password
        fix = f"The default is {json.dumps(key.default)}: {key.meaning}."
        raise InvalidInput(f"{called or key.path} {problem}{got}.", fix=fix)
    return value
