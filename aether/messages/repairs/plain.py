"""Repairs of plain messages: the role that is meant, and no message that says nothing."""

from __future__ import annotations

from collections.abc import Sequence

from aether.errors import shown
from aether.messages.checks.plain import ROLES, says
from aether.messages.repairs.notes import Mended, changed, lost, speaker
from aether.shapes import Finding, JsonObject


def mended(raws: Sequence[JsonObject]) -> Mended:
    """Return `raws` with roles that are some, without the messages that hold nothing; and what was done."""
    found: list[Finding] = []
    kept = []
    for at, raw in enumerate(raws):
        role = speaker(raw.get("role"), ROLES)
        if not says(raw):
            found.append(
                lost("empty-content", f"messages[{at}]", "Dropped the message, which holds nothing.")
            )
            continue
        if role != raw.get("role"):
            found.append(
                changed("bad-role", f"messages[{at}]", f"The role {shown(raw.get('role'))} became {role}.")
            )
        kept.append(raw if role == raw.get("role") else {**raw, "role": role})
    return Mended(kept, found)
