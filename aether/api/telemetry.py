"""Telemetry of a home: export the events of a commit by the exporters of `config.toml`.

The change is committed before anything is exported, and a failing exporter is never an error of the change.
Exporters are made once per process and configuration, and close when the process ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from aether import regular
from aether.errors import AetherError
from aether.paths import HOME_NAME, inside
from aether.store import config
from aether.types import JsonObject

if TYPE_CHECKING:
    from aether.events.events import Exporter
    from aether.events.exporters import Kind

NO_EXPORTER = ("", "none")
# Where the exporter `file` appends to in a home.
DEFAULT_FILE = "telemetry.jsonl"


def export(home: Path, records: Sequence[JsonObject]) -> None:
    """Export `records`, newly appended to the events of `home`, if its configuration asks for it."""
    exporter_of_home = exporter_of(home) if records else None
    if exporter_of_home is None:
        return
    from aether.events.events import colony_event

    for record in records:
        exporter_of_home.emit(colony_event(record, colony_session_id(home)))


def exporter_of(home: Path) -> Exporter | None:
    """Return the exporter of events of `home`, made once; None if its configuration names none."""
    settings = config.or_default(home)
    return None if settings.telemetry_exporter in NO_EXPORTER else _make_exporter(home, settings)


def colony_session_id(home: Path) -> str:
    """Return the session id of the events of the colony in `home`: its directory's name, made unique.

    >>> colony_session_id(Path("/projects/shop/.aether"))
    'colony-shop-e90ec126'
    """
    place = home.parent if home.name == HOME_NAME else home
    return f"colony-{place.name}-{regular.digest(str(place).encode('utf-8', 'replace'))[:8]}"


@lru_cache(maxsize=16)
def _make_exporter(home: Path, settings: config.Config) -> Exporter:
    from aether.events.delivery import warn
    from aether.events.exporters import exporter, fan_out

    telemetry_path = settings.telemetry_path  # only the user can name a path out of the home
    path = home / telemetry_path if telemetry_path else inside(home, DEFAULT_FILE)
    urls = {"ariadne": settings.telemetry_ariadne_url, "otlp": settings.telemetry_otlp_url}
    exporters: list[Exporter] = []
    for kind in map(str.strip, settings.telemetry_exporter.split(",")):
        try:
            entry = exporter(cast("Kind", kind), url=urls.get(kind, ""), path=path, content=False)
        except AetherError as reason:  # reported once: the exporters without this one are kept
            warn("telemetry", str(reason))
        else:
            exporters.append(entry)
    return fan_out(exporters)
