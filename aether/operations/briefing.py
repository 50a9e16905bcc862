"""Briefings, as a hook asks for them: what a model is told, and how its summary is steered."""

from __future__ import annotations

from aether.operations.edge import Home


def session_brief(home: Home, source: str, session: str = "") -> str:
    """Return the block that a session beginning by `source` is given, or ""."""
    return ""


def compaction_steering(home: Home, session: str = "") -> str:
    """Return what the summariser must keep, having prepared the hand-off; never raises for a locked or full home."""
    return ""


def subagent_brief(home: Home, caste: str) -> str:
    """Return the block that a sub-agent of `caste` is given, or ""."""
    return ""
