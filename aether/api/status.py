"""Status: how full the layers are, the savings of compression, and an overview of the whole colony.

`overview` is cheap enough to be called often: it counts the entries of the spool without draining it, and takes no lock.
"""

from __future__ import annotations

import json
import os
from collections import Counter as Tally
from datetime import timedelta
from pathlib import Path

from aether import clock, regular
from aether.api.home import Home, find, read
from aether.context import goals
from aether.errors import AetherError
from aether.memory import sessions
from aether.memory.briefing.briefing import in_force
from aether.memory.items import token_usage
from aether.store import config, documents, spool
from aether.store.snapshot import Snapshot, load
from aether.types import JsonObject


def get_memory_status(*, home: Home = None) -> JsonObject:
    """Return how full each layer is, and the counters since the home was made."""
    snapshot = read(home)
    memory = snapshot.documents["memory"]
    fill, short, metrics = token_usage(memory), memory["short_term_memory"], memory["metrics"]
    held = sessions.sessions_of(memory)
    patterns = memory["long_term_memory"]["patterns"]
    types = Tally(pattern["type"] for pattern in patterns)
    return {
        "home": str(snapshot.home),
        "revision": snapshot.revision,
        "working_memory": {
            "items": len(memory["working_memory"]["items"]),
            "tokens": fill.current,
            "max_capacity_tokens": fill.maximum,
            "percent": fill.percent,
            "eviction_threshold_tokens": fill.threshold,
            "compression_needed": fill.needed,
            "counter": memory["token_counter"]["counter"],
        },
        "short_term_memory": {
            "sessions": len(held),
            "max_sessions": short["max_sessions"],
            "percent": round(100 * len(held) / short["max_sessions"], 1),
            "target_ratio": memory["compression"]["target_ratio"],
        },
        "long_term_memory": {
            "patterns": len(patterns),
            "types": {
                name: types[name] for name in ("success_pattern", "failure_pattern", "preference", "constraint")
            },
        },
        "open_handoffs": [record["id"] for record in memory["compression"]["open"]],
        "colony": {
            "state": snapshot.documents["COLONY_STATE"]["colony_status"]["state"],
            "current_phase": snapshot.documents["COLONY_STATE"]["colony_status"]["current_phase"],
        },
        "metrics": {
            name: metrics[name]
            for name in (
                "total_compressions", "total_pattern_extractions", "average_compression_ratio",
                "working_memory_evictions", "short_term_evictions",
            )
        },
    }  # fmt: skip


def get_compression_stats(*, home: Home = None) -> JsonObject:
    """Return the counters of compression, and one line per session."""
    memory = read(home).documents["memory"]
    metrics = memory["metrics"]
    return {
        "total_compressions": metrics["total_compressions"],
        "average_compression_ratio": metrics["average_compression_ratio"],
        "sessions": [
            {
                field: session[field]
                for field in (
                    "session_id", "phase", "compressed_at", "original_tokens", "compressed_tokens", "compression_ratio",
                )
            }
            for session in sessions.sessions_of(memory)
        ],
        "max_sessions": memory["short_term_memory"]["max_sessions"],
        "working_memory_evictions": metrics["working_memory_evictions"],
        "short_term_evictions": metrics["short_term_evictions"],
    }  # fmt: skip


LOG_LINES = 5
# Days: an earlier failure was repaired since, or it occurs again.
LOG_DAYS = 7


def overview(*, home: Home = None) -> JsonObject:
    """Return what memory holds, active goal, phase, last compression, the state of the hooks and their failures.

    Raises:
        NotFound: there is no home.
    """
    place = find(home)
    snapshot = load(place)
    memory = snapshot.documents["memory"]
    colony = snapshot.documents["COLONY_STATE"]["colony_status"]
    fill = token_usage(memory)
    held = sessions.sessions_of(memory)
    goal = goals.current(snapshot.documents["goals"])
    last = max(held, key=lambda session: session["compressed_at"], default=None)
    try:
        newest = max((place / "hooks" / "sessions").glob("*.json"), key=os.path.getmtime, default=None)
        event = json.loads(regular.read(newest)) if newest else {}
    except (OSError, ValueError):
        event = {}
    at = event.get("at") if isinstance(event, dict) else ""
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
        **in_force(snapshot.documents, now=clock.now()),
        "goal": goal
        and {name: goal[name] for name in ("id", "description", "status", "progress", "evidence")},
        "state": colony["state"],
        "phase": colony["current_phase"],
        "last_compression": last
        and {
            **{name: last[name] for name in ("session_id", "compressed_at", "compression_ratio")},
            "items": (last.get("metadata") or {}).get("item_count"),
        },
        "hooks": {
            "paused": (place / "hooks" / "paused").exists(),
            "waiting": len(spool.waiting(str(place))),
            "last_event": at if isinstance(at, str) else "",
        },
        "problems": [*config_problems(place), *edit_problems(snapshot)],
        "log": recent_log(place),
    }


def config_problems(home: Path) -> list[str]:
    """Return the problems of the configuration of `home`; none if it can be read."""
    try:
        config.load(home)
    except AetherError as reason:
        return [f"{reason} Until then the hooks inject nothing."]
    return []


def edit_problems(snapshot: Snapshot) -> list[str]:
    """Return a line for each hand edit that is not in force."""
    return [
        *(
            f"The edit of {name}.json is not in force: {about['reason']}"
            for name, about in snapshot.refused.items()
        ),
        *(
            f'An edit of {kept.document}.json waits in quarantine: "aether doctor --accept {kept.path.name}".'
            for kept in documents.kept_edits(snapshot.home)
        ),
    ]


def recent_log(home: Path) -> list[str]:
    """Return the last lines of `hook.log`: recent failures of hooks."""
    try:
        lines = regular.read(home / spool.NAME).decode("utf-8", "replace").splitlines()
    except (OSError, AetherError):
        return []
    since = f"{clock.now() - timedelta(days=LOG_DAYS):%Y-%m-%dT%H:%M:%SZ}"
    return [line for line in lines if line >= since][-LOG_LINES:]
