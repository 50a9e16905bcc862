"""Notes: what a repair returns, how it tells what it did, and how it names what has to be renamed."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from aether.shapes import Finding, JsonObject

# How other programs call the speakers.
_SPEAKERS = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system"}


class Mended(NamedTuple):
    """Messages as a provider takes them, and what was done to them."""

    raws: list[JsonObject]
    findings: list[Finding]


def lost(code: str, where: str, what: str) -> Finding:
    """Return the note that content is gone."""
    return Finding("warning", code, where, what, "Look into the original if it matters.")


def changed(code: str, where: str, what: str) -> Finding:
    """Return the note that something was moved, renamed or respelt."""
    return Finding("info", code, where, what, "Nothing has to be done.")


def speaker(role: Any, roles: Collection[str]) -> str:
    """Return the role of `roles` that is meant by `role`; the user where none is.

    >>> speaker("model", {"user", "assistant"}), speaker(7, {"user", "assistant"})
    ('assistant', 'user')
    """
    if isinstance(role, str) and role in roles:
        return role
    meant = _SPEAKERS.get(role, "user") if isinstance(role, str) else "user"
    return meant if meant in roles else "user"


def unused(name: str, taken: Collection[str], *, most: int) -> str:
    """Return `name`, or with a number at its end where it is taken or longer than `most` characters.

    >>> unused("call_1", {"call_1"}, most=40)
    'call_1_2'
    """
    found, number = name[:most], 1
    while found in taken:
        number += 1
        found = f"{name[: most - len(str(number)) - 1]}_{number}"
    return found


def arguments_text(given: Any) -> str | None:
    """Return the arguments of a call as JSON text; None where they are neither text nor an object."""
    if isinstance(given, str):
        return given
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else None
