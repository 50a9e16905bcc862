"""Repairs of plain messages: a role for each, and no message that says nothing."""

from __future__ import annotations

from collections.abc import Sequence

from aether.errors import shown
from aether.messages.checks.plain import says
from aether.messages.repairs.notes import Mended, changed, lost
from aether.shapes import Finding, JsonObject


def mended(raws: Sequence[JsonObject]) -> Mended:
    """Return `raws` with a role each, without the messages that hold nothing; and what was done."""
    found: list[Finding] = []
    kept = []
    for at, raw in enumerate(raws):
        role, where = raw.get("role", raw.get("type")), f"messages[{at}]"
        if not says(raw):
            found.append(lost("empty-content", where, "Dropped the message, which holds nothing."))
        elif isinstance(role, str):
            kept.append(raw)
        else:
            found.append(changed("bad-role", where, f"The role {shown(role)} became user."))
            kept.append({**raw, "role": "user"})
    return Mended(kept, found)
