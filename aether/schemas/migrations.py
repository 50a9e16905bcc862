"""Migrations: documents of older versions become documents of today, by pure functions, on read."""

from __future__ import annotations

from typing import Any

VERSION = 3


def current(
    name: str,  # noqa: ARG001
    value: Any,
) -> Any:
    """Return `value` as a document of today's version; the very same object where it is one already."""
    return value
