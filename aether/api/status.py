"""Status: how full the layers are, and the savings of compression."""

from __future__ import annotations

from collections import Counter as Tally

from aether.api.home import Home, read
from aether.errors import public
from aether.memory import gate, sessions
from aether.memory.items import token_usage
from aether.types import JsonObject


@public
def get_memory_status(*, home: Home = None) -> JsonObject:
    """Return how full each layer is, and the counters since the home was made."""
    snapshot = read(home)
    memory = snapshot.documents["memory"]
    fill, short, metrics = token_usage(memory), memory["short_term_memory"], memory["metrics"]
    stored_sessions = sessions.sessions_of(memory)
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
            "sessions": len(stored_sessions),
            "max_sessions": short["max_sessions"],
            "percent": round(100 * len(stored_sessions) / short["max_sessions"], 1),
            "target_ratio": memory["compression"]["target_ratio"],
        },
        "long_term_memory": {
            "patterns": len(patterns),
            "types": {
                name: types[name] for name in ("success_pattern", "failure_pattern", "preference", "constraint")
            },
        },
        "waiting": len(gate.waiting_of(snapshot.documents)),
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


@public
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
