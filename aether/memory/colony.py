"""Colony: the state machine of `COLONY_STATE`, its workers, crash recovery, and phase numbers.

The state moves along legal edges only; the edges back from a crash are open to recovery alone. Every
transition is kept: the newest 100 in the document, older ones in the append-only file `history`. The
transitions that a phase goes through are decided in `phases`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from aether import clock
from aether.errors import InvalidInput, NotFound, require_one_of, shown
from aether.types import Change, Finding, State

if TYPE_CHECKING:
    from aether.types import HistoryEntry, Patch, Worker

# Largest whole number that every JSON reader returns exactly (2**53 - 1, RFC 8259 section 6).
MAX_PHASE = 9_007_199_254_740_991

DOCUMENT = "COLONY_STATE"
STATES: tuple[State, ...] = get_args(State)
EDGES: dict[State, tuple[State, ...]] = {
    "IDLE": ("INIT",), "INIT": ("PLANNING",), "PLANNING": ("EXECUTING",), "EXECUTING": ("VERIFYING", "FAILED"),
    "VERIFYING": ("COMPLETED", "EXECUTING"), "COMPLETED": ("IDLE",), "FAILED": ("PLANNING",),
}  # fmt: skip
# Without these edges, recovery would report success and leave the colony in the state of the crash.
RECOVERY_EDGES: dict[State, tuple[State, ...]] = {"EXECUTING": ("PLANNING",), "VERIFYING": ("PLANNING",)}
RECOVERY_TRIGGERS = ("crash_recovery", "timeout_recovery")
# Work is in progress in these states; leaving them dismisses the workers.
RUNNING: tuple[State, ...] = ("EXECUTING", "VERIFYING")
# Transitions that stay in the document (facts of the original colony).
MAX_HISTORY = 100
# Automatic snapshots that are kept; older ones may be pruned (facts of the original colony).
MAX_AUTOMATIC_SNAPSHOTS = 10
# Without a transition for half an hour the work counts as stuck (facts of the original colony).
STUCK_SECONDS = 1800
MAX_WORKER_CHARS = 200


def transition(
    colony: Mapping[str, Any], new: str, *, now: datetime, trigger: str = "manual",
    checkpoint: str | None = None,
) -> Change:  # fmt: skip
    """Return the change that moves the colony to the state `new`; its result is the history entry.

    `checkpoint` is the id of the automatic snapshot that was taken before. EXECUTING and VERIFYING lead
    back to PLANNING by a recovery trigger only.

    Raises:
        InvalidInput: the state is unknown, or no legal edge leads to it.
    """
    change = follow_route(colony, [new], now=now, trigger=trigger, checkpoint=checkpoint)
    return change._replace(result=change.result[0])


def follow_route(
    colony: Mapping[str, Any], route: Sequence[str], *, now: datetime, trigger: str,
    checkpoint: str | None = None,
) -> Change:  # fmt: skip
    """Return the change that moves the colony through every state of `route`; its result is the entries.

    Raises:
        InvalidInput: a step is not a legal edge.
    """
    if not route:
        return Change({}, result=[])
    entries = _entries(colony["colony_status"]["state"], route, trigger, clock.stamp(now), checkpoint)
    machine = colony["state_machine"]
    count = machine["transitions_count"] + len(entries)
    patch: Patch = [
        {"op": "replace", "path": "/colony_status/state", "value": route[-1]},
        {"op": "replace", "path": "/state_machine/transitions_count", "value": count},
        {"op": "replace", "path": "/state_machine/last_transition", "value": clock.stamp(now)},
        *({"op": "add", "path": "/state_machine/state_history/-", "value": entry} for entry in entries),
    ]
    if any(step not in RUNNING for step in route):
        empty: dict[str, Any] = {"workers": [], "workers_registered": 0}
        patch += [
            {"op": "replace", "path": f"/colony_status/{field}", "value": value}
            for field, value in empty.items()
            if colony["colony_status"][field]
        ]
    if checkpoint is not None:
        patch += _checkpoint_patch(colony, checkpoint)
    history = [*machine["state_history"], *entries]
    older = history[: max(0, len(history) - MAX_HISTORY)]
    patch += [{"op": "remove", "path": "/state_machine/state_history/0"} for _ in older]
    return Change({DOCUMENT: patch}, {"history": older} if older else {}, entries)


def _entries(
    state: State, route: Sequence[str], trigger: str, moment: str, checkpoint: str | None
) -> list[HistoryEntry]:
    entries: list[HistoryEntry] = []
    for step in route:
        reached = _reached(state, step, trigger)
        entries.append(
            {"from": state, "to": reached, "trigger": trigger, "timestamp": moment, "checkpoint": checkpoint}
        )
        state = reached
    return entries


def _reached(state: State, new: str, trigger: str) -> State:
    """Return the state `new` if a legal edge leads to it."""
    legal = EDGES[state]
    recovery = RECOVERY_EDGES.get(state, ())
    for name in legal + (recovery if trigger in RECOVERY_TRIGGERS else ()):
        if name == new:
            return name
    require_one_of(new, STATES, "a state", where="colony state")
    fix = f"From {state} the colony may go to {' or '.join(legal)}"
    if recovery:
        fix += f", and by recovery to {' or '.join(recovery)}"
    raise InvalidInput(f"Invalid transition: {state} -> {new}.", fix=f"{fix}.", where="colony state")


def _checkpoint_patch(colony: Mapping[str, Any], snapshot_id: str) -> Patch:
    surplus = len(colony["checkpoints"]["automatic"]) + 1 - MAX_AUTOMATIC_SNAPSHOTS
    return [
        {"op": "add", "path": "/checkpoints/automatic/-", "value": snapshot_id},
        *({"op": "remove", "path": "/checkpoints/automatic/0"} for _ in range(surplus)),
    ]


def record_checkpoint(colony: Mapping[str, Any], snapshot_id: str) -> Change:
    """Return the change that lists an automatic snapshot, at most the ten newest; its result is the id.

    `snapshots.prunable` decides which files may then be removed.
    """
    return Change({DOCUMENT: _checkpoint_patch(colony, snapshot_id)}, result=snapshot_id)


def register_worker(
    colony: Mapping[str, Any], worker_id: str, *, now: datetime, caste: str | None = None,
    task: str | None = None,
) -> Change:  # fmt: skip
    """Return the change that registers an active worker; its result is the worker.

    Registering an active worker again updates its caste and task.

    Raises:
        InvalidInput: the id is empty or longer than `MAX_WORKER_CHARS`.
    """
    if not isinstance(worker_id, str) or not worker_id.strip() or len(worker_id) > MAX_WORKER_CHARS:
        raise InvalidInput(
            f"{shown(worker_id)} is not the id of a worker.",
            fix=f"Use a text of 1 to {MAX_WORKER_CHARS} characters.",
            where="worker",
        )
    worker: Worker = {"id": worker_id, "caste": caste, "task": task, "registered_at": clock.stamp(now)}
    place = _place_of(colony, worker_id)
    if place is not None:
        patch: Patch = [{"op": "replace", "path": f"/colony_status/workers/{place}", "value": worker}]
    else:
        registered = colony["colony_status"]["workers_registered"] + 1
        patch = [
            {"op": "add", "path": "/colony_status/workers/-", "value": worker},
            {"op": "replace", "path": "/colony_status/workers_registered", "value": registered},
        ]
    return Change({DOCUMENT: patch}, result=worker)


def release_worker(colony: Mapping[str, Any], worker_id: str) -> Change:
    """Return the change that removes an active worker; its result is the worker.

    Raises:
        NotFound: no active worker has this id.
    """
    place = _place_of(colony, worker_id)
    workers = colony["colony_status"]["workers"]
    if place is None:
        raise NotFound(
            f"no worker {shown(worker_id)} is active.",
            fix=f"Active: {shown([worker['id'] for worker in workers])}.",
            where="worker",
        )
    patch: Patch = [{"op": "remove", "path": f"/colony_status/workers/{place}"}]
    return Change({DOCUMENT: patch}, result=workers[place])


def _place_of(colony: Mapping[str, Any], worker_id: str) -> int | None:
    ids = [worker["id"] for worker in colony["colony_status"]["workers"]]
    return ids.index(worker_id) if worker_id in ids else None


def detect_crash(colony: Mapping[str, Any], now: datetime) -> Finding | None:
    """Return a finding if running work has lost its workers or made no transition for half an hour.

    A colony that never registered a worker cannot lose one. A clock that was set back is not a crash.
    """
    status, machine = colony["colony_status"], colony["state_machine"]
    if status["state"] not in RUNNING:
        return None
    if status["workers_registered"] and not status["workers"]:
        code, what = "colony_without_workers", f"{status['state']} with no active worker"
    else:
        last = machine["last_transition"]
        where = f"{DOCUMENT} /state_machine/last_transition"
        idle = (now - clock.parse(last, where=where)).total_seconds() if last is not None else 0
        if idle <= STUCK_SECONDS:
            return None
        code, what = "colony_stuck", f"{status['state']} without a transition for {idle:.0f} s"
    return Finding(
        "warning", code, f"{DOCUMENT} /colony_status/state", f"{what}.",
        "Ignore this if the work is in progress; else recover the colony to PLANNING and start the phase again.",
    )  # fmt: skip


def recover(colony: Mapping[str, Any], *, now: datetime, checkpoint: str | None = None) -> Change:
    """Return the change that takes a crashed colony back to PLANNING; its result is the history entry.

    The trigger is `timeout_recovery` if the colony was stuck, else `crash_recovery`. The caller decides
    that it crashed; memory and signals are left as they are.

    Raises:
        InvalidInput: the colony is not EXECUTING or VERIFYING.
    """
    state = colony["colony_status"]["state"]
    if state not in RUNNING:
        raise InvalidInput(
            f"nothing to recover: the colony is {state}.",
            fix=f"Recover only from {' or '.join(RUNNING)}.",
            where="colony state",
        )
    crash = detect_crash(colony, now)
    trigger = "timeout_recovery" if crash and crash.code == "colony_stuck" else "crash_recovery"
    return transition(colony, "PLANNING", now=now, trigger=trigger, checkpoint=checkpoint)


def check_phase(phase: object) -> int:
    """Return `phase` if it is a phase number: a whole number from 0 to `MAX_PHASE`.

    Everything else is refused, so that a phase is safe in a file name and equal phases compare equal.

    Raises:
        InvalidInput: it is not an int, is a bool, is negative, or is too large.

    >>> check_phase(2)
    2
    """
    if isinstance(phase, bool) or not isinstance(phase, int) or not 0 <= phase <= MAX_PHASE:
        raise InvalidInput(
            f"{shown(phase)} is not a phase.", fix="Use a whole number, 0 or more.", where="phase"
        )
    return phase


def phase_number(value: Any) -> int | None:
    """Return the phase number that a document holds as `value`, or None; files of the original hold text.

    >>> phase_number("7"), phase_number(2), phase_number(True), phase_number("seven")
    (7, 2, None, None)
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MAX_PHASE)):
        value = int(value)
    try:
        return check_phase(value)
    except InvalidInput:
        return None
