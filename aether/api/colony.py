"""The colony: signals, phases, states and workers, each change one transaction.

The rules are in `memory.signals`, `memory.phases` and `memory.colony`; a transition is saved by snapshots (`api.admin`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, cast

from aether.api.admin import automatic_snapshot
from aether.api.home import Home, change, copied, fold_if_possible, now, read
from aether.clock import new_id
from aether.errors import AetherError, Conflict, public
from aether.memory import colony as colony_state
from aether.memory import phases, signals
from aether.store.authors import Author
from aether.store.patch import chain_changes
from aether.types import (
    ActiveSignal,
    Caste,
    Change,
    EmittedSignal,
    Finding,
    JsonObject,
    Signal,
    SignalName,
    State,
)


@public
def emit_signal(
    type: SignalName,
    context: str,
    *,
    strength: float | None = None,
    home: Home = None,
    source: str = "queen",
    caste: Caste | None = None,
    phase: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> EmittedSignal:
    """Deposit a signal and return it; faded ones move to the events in the same change.

    `caste` is the caste that sends it. Every caste senses every signal, by its own sensitivity: `active_signals(caste=…)`.
    While a phase executes, FOCUS and REDIRECT are `queued`: they are deposited when it ends, for the next one.

    Raises:
        InvalidInput: an unknown type, or a strength outside 0 to 1.
    """
    moment = now()
    fields: JsonObject = {
        "type": type, "context": context, "strength": strength, "source": source, "caste": caste,
        "phase": phase, "metadata": copied(metadata),
    }  # fmt: skip

    def plan(documents: Mapping[str, Any]) -> Change:
        return signals.deposit(documents, fields, now=moment, new_id=new_id)

    outcome = change(home, plan, Author("emit", by=source, reason=type))
    emitted, queued = cast("tuple[Signal, bool]", outcome.result)
    return {**emitted, "context": signals.context_of(emitted), "queued": queued}


def queued_signals(*, home: Home = None) -> list[Signal]:
    """Return the signals that wait for the end of the running phase, oldest first."""
    return [copied(signal) for signal in signals.queued_signals(read(home).documents["pheromones"])]


def _released(plan: Callable[[Mapping[str, Any]], Change]) -> Callable[[Mapping[str, Any]], Change]:
    """Return `plan` with the deposit of the queued signals if the colony does not execute any more."""

    def both(documents: Mapping[str, Any]) -> Change:
        def deposit(state: Mapping[str, Any]) -> Change:
            colony_now = state["COLONY_STATE"]["colony_status"]["state"]
            return signals.release(state["pheromones"], colony_state=colony_now, now=now())

        changes = chain_changes(documents, plan, deposit)
        return changes._replace(result=changes.result[0])

    return both


@public
def active_signals(*, caste: Caste | None = None, home: Home = None) -> list[ActiveSignal]:
    """Return the signals that apply to `caste` now, strongest first, each with its effective strength."""
    signals_now = signals.active_signals(read(home).documents["pheromones"], now=now(), caste=caste)
    return [copied(signal) for signal in signals_now]


@public
def colony(*, home: Home = None) -> JsonObject:
    """Return the state of the colony: COLONY_STATE.json as it is now."""
    state: JsonObject = copied(read(home).documents["COLONY_STATE"])
    return state


@public
def transition_state(new: State, trigger: str = "manual", *, home: Home = None) -> JsonObject:
    """Change the state of the colony, with a snapshot before and after, and return the history entry.

    Raises:
        InvalidInput: that transition is not legal; the legal ones are named.
    """
    present = colony(home=home)
    old = present["colony_status"]["state"]
    colony_state.transition(present, new, now=now(), trigger=trigger)  # refuses before a snapshot is taken
    before = automatic_snapshot(f"pre_{old}_to_{new}", home=home)
    result: JsonObject = change(
        home,
        _released(
            lambda documents: colony_state.transition(
                documents["COLONY_STATE"], new, now=now(), trigger=trigger, checkpoint=before
            )
        ),
        Author("transition", reason=f"{old} to {new}: {trigger}"),
    ).result
    with contextlib.suppress(AetherError):  # the transition is committed, with or without its second snapshot
        after = automatic_snapshot(f"post_{old}_to_{new}", home=home)
        change(
            home,
            lambda documents: colony_state.record_checkpoint(documents["COLONY_STATE"], after),
            Author("snapshot", by="colony", reason=after),
        )
    return result


@public
def start_phase(
    phase: int, *, name: str | None = None, goal: str | None = None, home: Home = None
) -> phases.PhaseChange:
    """Start a phase: the colony changes to EXECUTING by its legal transitions, with no worker registered.

    Raises:
        InvalidInput: it is not a phase number, or another phase is running.
    """

    def plan(documents: Mapping[str, Any]) -> Change:
        return phases.start_phase(
            documents["COLONY_STATE"], documents["pheromones"], phase, now=now(), name=name, goal=goal
        )

    result: phases.PhaseChange = change(home, plan, Author("start phase", reason=f"phase {phase}")).result
    return result


@public
def complete_phase(phase: int, *, home: Home = None) -> phases.PhaseChange:
    """Complete a phase: PHASE_COMPLETE marks the boundary, the Queen is asked, the next phase is adapted.

    Raises:
        InvalidInput: it is not a phase number, it failed, or it was never started and nothing was noted in it.
    """
    moment = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        phases.require_known_phase(documents, phase)
        return phases.complete_and_adapt(documents, phase, now=moment, new_id=new_id)

    author = Author("complete phase", reason=f"phase {phase}")
    result: phases.PhaseChange = change(home, _released(plan), author).result
    fold_if_possible(home)
    return result


@public
def adapt_next_phase_from_memory(phase: int, *, home: Home = None) -> phases.AdaptedPhase | None:
    """Emit the confident patterns of `phase` as signals for the next one; None if there are no new ones."""

    def plan(documents: Mapping[str, Any]) -> Change:
        return phases.adapt_next_phase(
            documents["memory"], documents["COLONY_STATE"], documents["pheromones"], phase, now=now(),
            new_id=new_id,
        )  # fmt: skip

    result: phases.AdaptedPhase | None = change(home, plan, Author("adapt", reason=f"phase {phase}")).result
    return result


@public
def await_queen_decision(phase: int, *, home: Home = None) -> JsonObject | None:
    """Ask the Queen to review `phase`, and return the open check-in."""
    moment = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        return phases.await_queen_decision(
            documents["COLONY_STATE"],
            documents["pheromones"],
            phase,
            now=moment,
            signal_id=new_id("checkin", moment),
        )

    change(home, plan, Author("check in", by="colony", reason=f"phase {phase}"))
    waiting: JsonObject | None = colony(home=home)["colony_status"]["queen_checkin"]
    return waiting


@public
def decide(
    decision: str, *, note: str | None = None, phase: int | None = None, home: Home = None
) -> JsonObject | None:
    """Record the decision of the Queen on the open check-in, and return it: `continue`, `adjust` or `redo`.

    Raises:
        InvalidInput: no check-in is open, or the decision is unknown.
        Conflict: the check-in is not that of `phase`, if that is given.
    """

    def plan(documents: Mapping[str, Any]) -> Change:
        waits = documents["COLONY_STATE"]["colony_status"]["queen_checkin"] or {}
        if phase is not None and waits.get("phase") != phase:
            what = f"phase {phase} waits for no decision any more."
            raise Conflict(what, fix="Look at the phases as they are now, and decide again.", where="queen")
        return phases.decide(
            documents["COLONY_STATE"], documents["pheromones"], decision, now=now(), note=note
        )

    change(home, plan, Author("decide", reason=decision))
    decided: JsonObject | None = colony(home=home)["colony_status"]["queen_checkin"]
    return decided


@public
def register_worker(
    worker_id: str, *, caste: Caste | None = None, task: str | None = None, home: Home = None
) -> JsonObject:
    """Register a worker of the running phase and return it; crash detection relies on the registered workers.

    The start and the end of a phase clear the register: register the workers of a phase after its start.
    """
    result: JsonObject = change(
        home,
        lambda documents: colony_state.register_worker(
            documents["COLONY_STATE"], worker_id, now=now(), caste=caste, task=task
        ),
        Author("register worker", by=worker_id),
    ).result
    return result


@public
def release_worker(worker_id: str, *, home: Home = None) -> JsonObject:
    """Remove a worker from the register and return it.

    Raises:
        NotFound: it is not registered.
    """
    result: JsonObject = change(
        home,
        lambda documents: colony_state.release_worker(documents["COLONY_STATE"], worker_id),
        Author("release worker", by=worker_id),
    ).result
    return result


@public
def detect_crash(*, home: Home = None) -> Finding | None:
    """Return a finding if running work has lost its workers or makes no progress, else None."""
    return colony_state.detect_crash(colony(home=home), now())


@public
def recover_from_crash(*, home: Home = None) -> JsonObject:
    """Return a crashed colony to PLANNING, with a snapshot before, and return the history entry.

    Memory and signals stay as they are.

    Raises:
        InvalidInput: the colony is not executing or verifying.
    """
    before = automatic_snapshot("pre_recovery", home=home)
    result: JsonObject = change(
        home,
        _released(
            lambda documents: colony_state.recover(documents["COLONY_STATE"], now=now(), checkpoint=before)
        ),
        Author("recover"),
    ).result
    return result
