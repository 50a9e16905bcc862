"""The tool `compress`: working memory becomes a session, by the built-in architect or by the model that calls.

`prepare` gives the model what an architect reads, in parts; `ingest` takes the session it wrote. Both can be repeated:
a hand-off stays open until a session of it is stored, and the same session stored twice is stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from aether.backends.request import session_request
from aether.errors import InvalidInput, shown
from aether.integrations.mcp_server.answers import Answer, part_of
from aether.memory import answers, phases
from aether.memory.handoff import room
from aether.memory.ingest import Ingested
from aether.operations import architects, compression, edge, handoffs
from aether.shapes import JsonObject

# What needs no model, no key and no network.
BUILT_IN = "extractive"
BY_CALLER = {"backend": "mcp", "model": "the caller"}


def compress(
    action: Literal["auto", "prepare", "ingest"] = "auto", phase: int | None = None,
    session: Any = None, part: int = 1, *,
    home: Path, progress: Callable[[str], None] = lambda _: None,
) -> Answer:  # fmt: skip
    """Answer with what compressing did, or with what there is to compress.

    Raises:
        InvalidInput: the session is missing or is rejected, in words that say what to correct; nothing changed.
        Conflict: its hand-off is not open any more.
    """
    if action == "ingest":
        return _ingested(session, phase, home)
    chosen = _current(home) if phase is None else phase
    if action == "prepare":
        return _prepared(chosen, part, home)
    done = architects.compress(chosen, architect=BUILT_IN, home=home, progress=progress)
    return Answer(_words(done.ingested) if done.ingested else done.prepared.reason)


def handoff_text(phase: int, home: Path) -> tuple[str, str]:
    """Return the instruction and items of the hand-off of `phase`, and its path; or why there is none, and ""."""
    made = compression.prepare(phase, manual=True, home=home)
    if made.path is None:
        return made.reason, ""
    handoff = handoffs.read_handoff(made.path)
    given = cast(JsonObject, {**handoff, "target_tokens": room(handoff)})
    return session_request(given).prompt, str(made.path)


def _prepared(phase: int, part: int, home: Path) -> Answer:
    text, path = handoff_text(phase, home)
    if not path:
        return Answer(text)
    shown = part_of(text, part, ask=f"compress, action=prepare, phase={phase}")
    after = "When you have read all of it, write the session JSON and call compress with action=ingest."
    return Answer(f"{shown}\n{after} The hand-off is also in the file {path}.")


def _ingested(session: Any, phase: int | None, home: Path) -> Answer:
    if session is None or session == "":
        raise InvalidInput(
            "session is missing.",
            fix="Give the session JSON that action=prepare asked for.",
            where="compress",
        )
    if not isinstance(session, Mapping | str):
        raise InvalidInput(
            f"session is {shown(session)}.",
            fix="Give one JSON object with the fields that action=prepare showed.",
            where="compress",
        )
    chosen = _phase_of(session, home) if phase is None else phase
    done = compression.trigger_phase_boundary_compression(
        chosen, session, architect=dict(BY_CALLER), home=home
    )
    return Answer(_words(done))


def _phase_of(session: Mapping[str, Any] | str, home: Path) -> int:
    """Return the phase of the hand-off that a session answers."""
    named = answers.unwrap(session).get("session_id")
    opened = edge.read(home).documents["memory"]["compression"]["open"]
    return next((int(record["phase"]) for record in opened if record["id"] == named), _current(home))


def _current(home: Path) -> int:
    return phases.current_phase(edge.read(home).documents["COLONY_STATE"])


def _words(done: Ingested) -> str:
    session = done.session
    if not done.stored:
        return f"Session {session['session_id']} was stored already; nothing changed."
    text = (
        f"Session {session['session_id']} of phase {session['phase']}: {done.items} items, "
        f"{session['original_tokens']} tokens became {session['compressed_tokens']}. "
        "The items are in the archive and are still found by recall."
    )
    if done.carried:
        text += f" {len(done.carried)} statements that had to survive were added word for word."
    return text + "".join(f" {note}" for note in done.notes)
