"""An orchestrator's loop: note what happens, mark the phase boundary, let a program of your own compress."""

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import aether

home = aether.init(tempfile.mkdtemp())
aether.start_phase(1, name="storage", home=home)
decided = aether.add_working_memory_item(
    "Decided to keep state in JSON, because a person can read it.", "decision", 0.9, home=home
)
aether.add_working_memory_item("Looked at three databases and at plain files.", "observation", 0.3, home=home)
# Two agents side by side: one claims the task, the other is refused, and gets what was decided.
for agent in ("builder-1", "builder-2"):
    with suppress(aether.AetherError):  # it does something else then
        aether.claim("task:storage", by=agent, ttl=600, home=home)
aether.hand_over(to="builder-2", items=[decided], by="builder-1", home=home)
print("handed over:", aether.inbox("builder-2", home=home)[0]["items"][0]["text"])
print("at work:", *(member["name"] for member in aether.roster(home=home).members if member["claims"]))
aether.complete_phase(1, home=home)
# Any program may be the architect: the hand-off comes on its stdin, the session goes to its stdout.
program = Path(__file__).with_name("architect.py")
done = aether.compress(1, architect=f"command:{sys.executable} {program}", home=home)
print(
    f"{done.ingested.items} items became session {done.ingested.session['phase']}, written by {done.architect}"
)
print("left in working memory:", len(aether.list_working_memory_items(home=home)))
