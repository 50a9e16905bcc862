"""Telemetry of a home: what a commit appended to the colony's events leaves by the exporters of `config.toml`.

The change stands before anything is exported, and nothing that happens to an event is an error of the change.
Exporters are made once per process and configuration, and close when the process ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

from aether.errors import AetherError
from aether.paths import HOME_NAME
from aether.store import config
from aether.types import JsonObject

if TYPE_CHECKING:
    from aether.events.events import Exporter
    from aether.events.exporters import Kind

NO_EXPORTER = ("", "none")
# Where the exporter `file` appends to in a home.
DEFAULT_FILE = "telemetry.jsonl"


def export(home: Path, records: Sequence[JsonObject]) -> None:
    """Export `records`, as they are appended to the events of `home`, where its configuration asks for it."""
    one = exporter_of(home) if records else None
    if one is None:
        return
    from aether.events.events import colony_event

    for record in records:
        one.emit(colony_event(record, colony_session_id(home)))


def exporter_of(home: Path) -> Exporter | None:
    """Return what carries events away from `home`, made once; None where its configuration asks for nothing."""
    settings = config.or_default(home)
    return None if settings.telemetry_exporter in NO_EXPORTER else _make_exporter(home, settings)


def colony_session_id(home: Path) -> str:
    """Return the id under which the events of the colony in `home` are told: its directory's name, made unique.

    >>> session_of(Path("/projects/shop/.aether"))
    'colony-shop-e90ec126'
    """
    place = home.parent if home.name == HOME_NAME else home
    return f"colony-{place.name}-{sha256(str(place).encode('utf-8', 'replace')).hexdigest()[:8]}"


@lru_cache(maxsize=16)
def _make_exporter(home: Path, settings: config.Config) -> Exporter:
    from aether.events.delivery import warn
    from aether.events.exporters import exporter, fan_out

    urls = {"ariadne": settings.telemetry_ariadne_url, "otlp": settings.telemetry_otlp_url}
    made: list[Exporter] = []
    for kind in map(str.strip, settings.telemetry_exporter.split(",")):
        try:
            one = exporter(
                cast("Kind", kind), url=urls.get(kind, ""), path=home / (settings.telemetry_path or DEFAULT_FILE),
                timeout_seconds=settings.telemetry_timeout_seconds, content=settings.telemetry_content,
            )  # fmt: skip
        except AetherError as reason:  # once: what is made here, also without this one, is kept
            warn("telemetry", str(reason))
        else:
            made.append(one)
    return fan_out(made)
