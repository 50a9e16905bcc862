"""The overview of a colony: what memory holds, the active goal, the hooks and what is wrong.

It is cheap enough to be called often: it counts the entries of the spool without draining it, and takes no lock.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

from aether import clock, regular
from aether.api.architects import standing
from aether.api.briefing import in_force
from aether.api.home import Home, find, present
from aether.conversation import goals
from aether.errors import AetherError
from aether.memory import sessions
from aether.memory.items import token_usage
from aether.store import config, conversation_checks, copies, documents, files, seals, spool
from aether.store.snapshot import Snapshot
from aether.types import JsonObject

LOG_LINES = 5
# Days: an earlier failure was repaired since, or it occurs again.
LOG_DAYS = 7


def overview(*, home: Home = None) -> JsonObject:
    """Return what memory holds, active goal, phase, last compression, the state of the hooks and their failures.

    Raises:
        NotFound: there is no home.
    """
    place = find(home)
    snapshot = present(place)
    memory = snapshot.documents["memory"]
    colony = snapshot.documents["COLONY_STATE"]["colony_status"]
    fill = token_usage(memory)
    stored = sessions.sessions_of(memory)
    goal = goals.current(snapshot.documents["goals"])
    last = max(stored, key=lambda session: session["compressed_at"], default=None)
    try:
        newest = max((place / "hooks" / "sessions").glob("*.json"), key=os.path.getmtime, default=None)
        event = json.loads(regular.read(newest)) if newest else {}
    except (OSError, ValueError):
        event = {}
    event_time = event.get("at") if isinstance(event, dict) else ""
    return {
        "home": str(place),
        "revision": snapshot.revision,
        "items": len(memory["working_memory"]["items"]),
        "tokens": fill.current,
        "max_tokens": fill.maximum,
        "percent": fill.percent,
        "compression_needed": fill.needed,
        "sessions": len(stored),
        "patterns": len(memory["long_term_memory"]["patterns"]),
        "compressions": memory["metrics"]["total_compressions"],
        **in_force(snapshot),
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
            "paused": spool.is_paused(str(place)),
            "waiting": len(spool.waiting(str(place))),
            "last_event": event_time if isinstance(event_time, str) else "",
        },
        "architect": standing(place)._asdict(),
        "problems": [
            *config_problems(place),
            *file_problems(place),
            *edit_problems(snapshot),
            *copy_problems(place),
            *conversation_problems(place),
        ],
        "log": recent_log(place),
    }


def config_problems(home: Path) -> list[str]:
    """Return the problems of the configuration of `home`, and what works until they are corrected."""
    _, wrong = config.load_with_errors(home)
    if not wrong:
        return []
    exception = ", and keep no calls of tools" if config.hides_private_paths(wrong) else ""
    last = f"Until then hooks use the default of each such setting{exception}; commands change nothing in the home."
    *reasons, reason = wrong.values()
    return [*reasons, f"{reason} {last}"]


def file_problems(home: Path) -> list[str]:
    """Return a line for each link, pipe or device in the place of a file that commands and hooks use."""
    paths = [path for part in ("", "data", "hooks") for path in files.no_files(home / part)]
    return [
        f"{path} is a link, a pipe or a device, which nothing opens. Remove it, or put a regular file there."
        for path in paths
        if path != home / config.NAME
    ]


def conversation_problems(home: Path) -> list[str]:
    """Return a line for each conversation whose record is no regular file."""
    paths = conversation_checks.irregular(home)
    return [
        f'The record {seals.place(home, path)} is not a regular file: run "aether doctor".' for path in paths
    ]


def copy_problems(home: Path) -> list[str]:
    """Return a line for each copy from another machine that may hold what memory lacks."""
    return [
        f'{copies.place(home, copy)} is a copy from another machine, and may hold what memory lacks: run "aether doctor".'
        for copy in copies.copies(home, is_quick=True)
        if not copy.is_derived
    ]


def edit_problems(snapshot: Snapshot) -> list[str]:
    """Return a line for each hand edit that is not in force."""
    return [
        *(
            f"The edit of {name}.json is not in force: {about['reason']}"
            for name, about in snapshot.refused.items()
        ),
        *(
            f'An edit of {edit.document}.json waits in quarantine: "aether doctor --accept {edit.path.name}".'
            for edit in documents.kept_edits(snapshot.home)
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
