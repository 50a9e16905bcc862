"""Briefing: what a model is told of its memory when a session, a sub-agent or a summary begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from aether.shapes import Counter


def briefing(
    documents: Mapping[str, Any], *, occasion: str, now: datetime, count: Counter, budget: int,
    since: str = "", wide: Mapping[str, Any] | None = None,
) -> str:  # fmt: skip
    """Return what matters now as one `<aether-memory …>` block, or "" where there is nothing to say."""
    return ""


def steering(documents: Mapping[str, Any], *, now: datetime, count: Counter) -> str:
    """Return, as plain text for a summariser, what its summary must keep."""
    return ""


def agent_brief(
    documents: Mapping[str, Any], caste: str, *, now: datetime, count: Counter, budget: int
) -> str:
    """Return what a sub-agent of `caste` needs to know, as one block, or ""."""
    return ""
