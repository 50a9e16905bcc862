"""An orchestrator whose every result has a type (`mypy --strict` passes); a function of its own is the architect."""

import tempfile
from typing import Any

import aether
from aether.types import EmittedSignal, Hit, Item


def architect(handoff: dict[str, Any]) -> dict[str, Any]:
    """Return the session for the items of a hand-off, which has the ids and the time."""
    said = [item["content"] for item in handoff["items"] if item["type"] == "decision"]
    decisions = [{"decision": each, "rationale": "see the decision"} for each in said]
    return {"summary": "Phase 1 chose how state is kept.", "key_decisions": decisions, "outcomes": []}


home = aether.init(tempfile.mkdtemp())
aether.start_phase(1, name="storage", home=home)
aether.add_working_memory_item("State is JSON, because people read it.", "decision", 0.9, phase=1, home=home)
focus: EmittedSignal = aether.emit_signal("FOCUS", "speed of the writes", home=home)
print("queued" if focus["queued"] else "active", "-", focus["context"])
items: list[Item] = aether.list_working_memory_items(home=home)
print(items[0]["type"], "of phase", items[0]["metadata"].get("phase"))
aether.complete_phase(1, home=home)
done = aether.compress(1, architect=architect, home=home)
print("session:", done.ingested.session["summary"] if done.ingested else "none")
print("next phase:", *(one["context"] for one in aether.active_signals(home=home) if one["type"] == "FOCUS"))
for hits in (aether.recall("state", home=home), aether.search_memory("state", limit=1, home=home)):
    first: Hit = hits[0]
    print(first["layer"], "-", first["gist"])
