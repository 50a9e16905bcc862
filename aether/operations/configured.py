"""What a configuration of compaction asks for: its summariser, its place for copies, its exporter, its rules.

Reading a configuration is done in `configuration`; here its words become the parts that `compacting` works with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from aether.backends.base import Settings
from aether.compaction.settings import CompactConfig
from aether.errors import StorageFailed
from aether.events import exporters
from aether.events.event import Event, Exporter
from aether.events.names import TOKEN_ESTIMATE, TRIGGER_DECISION
from aether.events.record import record
from aether.operations.compaction_case import Options
from aether.operations.conversing import place
from aether.operations.edge import Home
from aether.redact.redaction import Rules, rules
from aether.shapes import JsonObject
from aether.storage import storage as storage_of
from aether.storage.adapter import StorageAdapter

# Told at each turn; on a distant storage each event kept costs several requests.
_EACH_TURN = frozenset({TOKEN_ESTIMATE, TRIGGER_DECISION})


def rules_of(config: CompactConfig) -> Rules | None:
    """Return how copies are redacted; None where the configuration turns that off."""
    return rules(config.redaction_patterns) if config.redaction_enabled else None


def options_of(
    config: CompactConfig,
    *,
    home: Home = None,
    storage: StorageAdapter | None = None,
    exporter: Exporter | None = None,
) -> Options:
    """Return what the operations of compaction are to use: the parts that `config` names, or those given.

    Conversations are kept in the home, or in `.compact/` where none is named and none found. Events of a compaction
    are kept beside its copies.

    Raises:
        BackendUnavailable: a package that the configuration asks for is missing.
        InvalidInput: an address cannot be.
    """
    kept = _storage(config) if storage is None else guarded(storage)
    carriers = [_exporter(config) if exporter is None else exporter]
    if kept is not None:
        carriers.append(exporters.callback(partial(_keep, kept), rules=rules_of(config)))
    return Options(
        backend=config.summarizer_backend,
        settings=Settings(
            model=config.summarizer_model,
            timeout_seconds=config.summarization_timeout,
        ),
        storage=kept,
        exporter=exporters.fan_out(carriers),
        rules=rules_of(config),
        record=place(home),
    )


def _storage(config: CompactConfig) -> StorageAdapter | None:
    if not config.storage_enabled or config.storage_adapter == "none":
        return None
    return storage_of(
        config.storage_adapter,
        path=config.storage_path,
        bucket=config.storage_bucket,
        prefix=config.storage_prefix,
        kms_key_id=config.storage_kms_key_id,
    )


def _exporter(config: CompactConfig) -> Exporter:
    urls = {"ariadne": config.ariadne_url, "otlp": config.otlp_url}
    kinds = cast("list[exporters.Kind]", [kind.strip() for kind in config.exporter.split(",")])
    made = [
        exporters.exporter(kind, url=urls.get(kind, ""), path=config.telemetry_path, rules=rules_of(config))
        for kind in kinds
    ]
    return exporters.fan_out(made) if len(made) > 1 else made[0]


class Copies(NamedTuple):
    """A storage adapter made of functions."""

    name: str
    save_transcript: Callable[[str, Sequence[JsonObject], int], str]
    save_summary: Callable[[str, JsonObject, int], str]
    save_event: Callable[[str, JsonObject], str]


class Numbered(NamedTuple):
    """The same, of a storage that knows which steps it has."""

    name: str
    save_transcript: Callable[[str, Sequence[JsonObject], int], str]
    save_summary: Callable[[str, JsonObject, int], str]
    save_event: Callable[[str, JsonObject], str]
    next_step: Callable[[str], int]


def guarded(storage: StorageAdapter) -> StorageAdapter:
    """Return a caller's own storage so that whatever it raises is a `StorageFailed`: its copies are not the record."""
    name = str(getattr(storage, "name", "") or type(storage).__name__)
    kind = Numbered if hasattr(storage, "next_step") else Copies
    saves = (_guarded(getattr(storage, each), name) for each in kind._fields[1:])
    return cast("StorageAdapter", kind(name, *saves))


def _guarded(do: Callable[..., Any], name: str) -> Callable[..., Any]:
    def guard(*arguments: Any) -> Any:
        try:
            found = do(*arguments)
            return found if isinstance(found, int) else str(found or name)
        except Exception as reason:
            what = f"{type(reason).__name__}: {reason}"
            raise StorageFailed(
                what, fix="See to the storage; the home has the whole.", where=name
            ) from reason

    return guard


def _keep(storage: StorageAdapter, event: Event) -> None:
    """Append an event to those of its session; of turns that are not compacted nothing is kept."""
    if event.name not in _EACH_TURN or event.properties.get("triggered"):
        storage.save_event(event.session_id, record(event))
