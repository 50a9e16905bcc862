"""Overview: how a whole colony is at a glance, cheap enough to be asked again and again.

Only looking: what waits in the spool is counted, not taken in, and no lock is taken.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

from aether import clock
from aether.errors import AetherError
from aether.memory import sessions
from aether.memory.threshold import usage
from aether.operations.edge import Home, find
from aether.shapes import JsonObject
from aether.store import config, hook_log, spool
from aether.store.state import load

LOG_LINES = 5
# What went wrong earlier was mended since, or it comes again.
LOG_DAYS = 7


def overview(*, home: Home = None) -> JsonObject:
    """Return tokens in memory, phase, last compression, and how the hooks do and what went wrong.

    Raises:
        NotFound: there is no home.
    """
    place = find(home)
    snapshot = load(place)
    memory = snapshot.documents["memory"]
    colony = snapshot.documents["COLONY_STATE"]["colony_status"]
    fill = usage(memory)
    held = sessions.sessions_of(memory)
    last = max(held, key=lambda session: session["compressed_at"], default=None)
    return {
        "home": str(place),
        "revision": snapshot.revision,
        "items": len(memory["working_memory"]["items"]),
        "tokens": fill.current,
        "max_tokens": fill.maximum,
        "percent": fill.percent,
        "compression_needed": fill.needed,
        "sessions": len(held),
        "patterns": len(memory["long_term_memory"]["patterns"]),
        "state": colony["state"],
        "phase": colony["current_phase"],
        "last_compression": last
        and {name: last[name] for name in ("session_id", "compressed_at", "compression_ratio")},
        "hooks": _hooks(place),
        "problems": config_problem(place),
        "log": recent_log(place),
    }


def config_problem(home: Path) -> list[str]:
    """Return what is wrong with the configuration of `home`; nothing where it can be read."""
    try:
        config.load(home)
    except AetherError as reason:
        return [f"{reason} Until then the hooks tell nothing."]
    return []


def recent_log(home: Path) -> list[str]:
    """Return the last lines of `hook.log` of these days: what hooks could not do."""
    try:
        lines = (home / hook_log.NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    since = f"{clock.now() - timedelta(days=LOG_DAYS):%Y-%m-%dT%H:%M:%SZ}"
    return [line for line in lines if line >= since][-LOG_LINES:]


def _hooks(home: Path) -> JsonObject:
    return {
        "paused": (home / "hooks" / "paused").exists(),
        "waiting": len(spool.waiting(str(home))),
        "last_event": _last_event(home / "hooks" / "sessions"),
    }


def _last_event(directory: Path) -> str:
    """Return when a hook last heard of a session; empty where none did, or nobody can tell."""
    try:
        newest = max(directory.glob("*.json"), key=os.path.getmtime, default=None)
        found = json.loads(newest.read_bytes()) if newest else {}
    except (OSError, ValueError):
        return ""
    at = found.get("at") if isinstance(found, dict) else ""
    return at if isinstance(at, str) else ""
