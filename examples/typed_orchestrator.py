"""An orchestrator whose every result has a type: it passes `mypy --strict`, and a function of its own is the architect."""

from typing import Any

import aether
from aether.types import EmittedSignal, Hit, Item, Session

home = aether.init("colony/.aether")


def architect(handoff: dict[str, Any]) -> dict[str, Any]:
    """Return the session that stands for the items of a hand-off; ids and time are those of the hand-off."""
    decisions = [item["content"] for item in handoff["items"] if item["type"] == "decision"]
    return {
        "summary": f"Phase {handoff['phase']} chose how state is kept.",
        "key_decisions": [{"decision": each, "rationale": "see the decision"} for each in decisions],
        "outcomes": [],
    }


aether.start_phase(1, name="storage", home=home)
aether.add_working_memory_item("State is JSON, because people read it.", "decision", 0.9, phase=1, home=home)
aether.add_working_memory_item("A write takes 4 ms.", "outcome", phase=1, home=home)
focus: EmittedSignal = aether.emit_signal("FOCUS", "speed of the writes", home=home)
print("queued" if focus["queued"] else "active", "-", focus["context"])

items: list[Item] = aether.list_working_memory_items(home=home)
print(len(items), "items of phase", items[0]["metadata"].get("phase"))
aether.complete_phase(1, home=home)
done = aether.compress(1, architect=architect, home=home)
if done.ingested is not None:
    session: Session = done.ingested.session
    print("session:", session["summary"])
for signal in aether.active_signals(home=home):
    if signal["type"] == "FOCUS":
        print("next phase:", signal["context"])
for hits in (aether.recall("state", home=home), aether.search_memory("state", limit=1, home=home)):
    first: Hit = hits[0]
    print(first["layer"], first["tokens"] > 0, "-", first["gist"])
