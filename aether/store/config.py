"""Configuration: the optional `config.toml` of a home, every key known and checked.

What belongs to the memory itself (capacities, thresholds, ratios) stands in `memory.json`; here stands
how this machine works with it. An unknown key is an error that names its path, never a silent default.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from aether.errors import AetherError, InvalidDocument, shown
from aether.store.files import storage


class Config(NamedTuple):
    """The settings of one home; each field is the key `table.name` of `config.toml`."""

    # A commit takes about a millisecond, a fold of a full home about twenty: this is hundreds of holders.
    lock_timeout_seconds: float = 30.0
    """`store.lock_timeout_seconds`: how long a writer waits for another."""
    fold_bytes: int = 1 << 20
    """`store.fold_bytes`: size of the journal, in bytes, at which a commit folds it."""
    history_months: int = 0
    """`store.history_months`: months of folded journal to keep for undo and time travel; 0: all."""
    architect: str = "extractive"
    """`architect.default`: the architect of `aether memory compress`."""
    architect_model: str = ""
    """`architect.model`: the model of a model backend; empty: the backend's own default."""
    architect_base_url: str = ""
    """`architect.base_url`: its server; empty: its usual address or environment variable."""
    architect_timeout_seconds: float = 120.0
    """`architect.timeout_seconds`: how long one answer may take."""
    architect_max_retries: int = 2
    """`architect.max_retries`: how often a busy or failing server is asked again."""
    architect_max_output_tokens: int = 16_000
    """`architect.max_output_tokens`: the longest answer that is asked for, in tokens."""
    architect_window_tokens: int = 0
    """`architect.window_tokens`: largest input in tokens; larger ones go in parts. 0: the backend's own."""
    architect_input_usd_per_million: float = 0.0
    """`architect.input_usd_per_million`: price of a million input tokens, for receipts. 0: unknown."""
    architect_output_usd_per_million: float = 0.0
    """`architect.output_usd_per_million`: price of a million output tokens, for receipts. 0: unknown."""
    compact_backend: str = "extractive"
    """`compact.backend`: who writes the summaries of compacted conversations."""
    compact_model: str = ""
    """`compact.model`: its model; empty: the backend's own default."""
    compact_timeout_seconds: float = 10.0
    """`compact.timeout_seconds`: how long one summary may take before a step without a model does it."""
    compact_storage: str = "none"
    """`compact.storage`: where redacted copies of what was compacted go: none, fs or s3."""
    compact_storage_path: str = "./.compact/archive"
    """`compact.storage_path`: the directory of those copies (fs)."""
    compact_storage_bucket: str = ""
    """`compact.storage_bucket`: the bucket of those copies (s3)."""
    compact_storage_prefix: str = ""
    """`compact.storage_prefix`: what their keys begin with (s3)."""
    telemetry_exporter: str = "none"
    """`telemetry.exporter`: who carries events away, separated by commas: console, file, ariadne, otlp; or none."""
    telemetry_ariadne_url: str = ""
    """`telemetry.ariadne_url`: the viewer; empty: port 5175 of this machine."""
    telemetry_otlp_url: str = ""
    """`telemetry.otlp_url`: the traces of the collector; empty: OpenTelemetry's variables, or port 4318 of this machine."""
    telemetry_path: str = "telemetry.jsonl"
    """`telemetry.path`: the file that the exporter `file` appends to, seen from the home."""
    telemetry_timeout_seconds: float = 2.0
    """`telemetry.timeout_seconds`: how long the end of a command may wait for events to be sent."""
    telemetry_content: bool = False
    """`telemetry.content`: whether texts, such as those of signals, are exported too; redacted in any case."""
    claude_capture: bool = True
    """`claude.capture`: whether the hooks of Claude Code remember what happens in a session."""
    claude_inject: bool = True
    """`claude.inject`: whether a session and its sub-agents are told what is remembered when they start."""
    claude_recall: bool = True
    """`claude.recall`: whether a prompt that strongly matches something remembered is given it."""
    claude_recall_tokens: int = 400
    """`claude.recall_tokens`: the most tokens that a prompt is given."""
    claude_brief_tokens: int = 1_500
    """`claude.brief_tokens`: the most tokens that a session is told when it starts."""
    # Where secrets stand that no form gives away.
    claude_private_paths: str = ".env, .env.*, *.pem, *.key, id_rsa*, id_ed25519*, .ssh/**, .aws/**"
    """`claude.private_paths`: paths of which nothing is captured: patterns such as `secrets/**`, separated by commas."""
    claude_auto_compress: bool = True
    """`claude.auto_compress`: whether a turn's end compresses working memory that is full, without a model."""
    # Claude Code waits longer for a hook, but a person notices this much.
    claude_deadline_seconds: float = 8.0
    """`claude.deadline_seconds`: how long a hook that reads memory may take, before and after a compaction three times
    as long; what it has not told then is not told."""


KEYS = {
    "store.lock_timeout_seconds": "lock_timeout_seconds",
    "store.fold_bytes": "fold_bytes",
    "store.history_months": "history_months",
    "architect.default": "architect",
    **{
        f"{table}.{name.removeprefix(f'{table}_')}": name
        for table in ("architect", "compact", "telemetry", "claude")
        for name in Config._fields
        if name.startswith(f"{table}_")
    },
}
_KINDS = {str: "a text", bool: "true or false", int: "a number that is not negative"}
_KINDS[float] = _KINDS[int]
_CACHE: dict[Path, tuple[tuple[int, int], Config]] = {}


def load(home: Path) -> Config:
    """Return the configuration of `home`; the defaults where there is no `config.toml`.

    Raises:
        InvalidDocument: it is not TOML, or a key is unknown or of the wrong type.
    """
    path = _path(home)
    try:
        found = os.stat(path)
    except OSError:
        return Config()
    known = _CACHE.get(path)
    if known is None or known[0] != (found.st_mtime_ns, found.st_size):
        known = (found.st_mtime_ns, found.st_size), _parse(path)
        _CACHE[path] = known
    return known[1]


def or_default(home: Path) -> Config:
    """Return the configuration of `home`; the defaults where it is broken, so that mending still works."""
    return tolerant(home)[0]


def tolerant(home: Path) -> tuple[Config, dict[str, str]]:
    """Return the configuration of `home`, and what is wrong with it by key; what is wrong has its default.

    The key is empty where the whole file cannot be read.
    """
    try:
        return load(home), {}
    except AetherError as reason:
        whole = str(reason)
    path, sound, wrong = _path(home), {}, {}
    try:
        found = _flat(path)
    except AetherError:
        return Config(), {"": whole}
    for key, value in found.items():
        try:
            _known(path, key)
            sound[KEYS[key]] = _typed(path, key, value)
        except InvalidDocument as reason:
            wrong[key] = str(reason)
    return Config(**sound), wrong


@lru_cache(maxsize=64)
def _path(home: Path) -> Path:
    return home / "config.toml"


def _parse(path: Path) -> Config:
    return Config(
        **{KEYS[key]: _typed(path, key, value) for key, value in _flat(path).items() if _known(path, key)}
    )


def _flat(path: Path) -> dict[str, Any]:
    """Return what `path` sets, by `table.name`."""
    import tomllib

    try:
        with storage(path):
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as reason:
        raise InvalidDocument(f"not TOML: {reason}.", fix="Correct the file.", where=str(path)) from reason
    flat: dict[str, Any] = {}
    for table, values in tables.items():
        flat |= (
            {f"{table}.{key}": value for key, value in values.items()}
            if isinstance(values, dict)
            else {table: values}
        )
    return flat


def _known(path: Path, key: str) -> bool:
    if key not in KEYS:
        import difflib

        meant = difflib.get_close_matches(key, KEYS, n=1)
        fix = f"Did you mean {meant[0]}?" if meant else f"Use one of {', '.join(sorted(KEYS))}."
        raise InvalidDocument(f"{shown(key)} is not a setting.", fix=fix, where=str(path))
    return True


def _typed(path: Path, key: str, value: Any) -> Any:
    wanted = get_type_hints(Config)[KEYS[key]]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is float and number and value >= 0:
        return float(value)
    if type(value) is wanted and (not number or value >= 0):
        return value
    raise InvalidDocument(
        f"{key} is {shown(value)}.",
        fix=f"Use {_KINDS[wanted]}.",
        where=str(path),
    )
