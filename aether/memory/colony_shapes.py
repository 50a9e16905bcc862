"""Colony shapes: what `pheromones.json`, `COLONY_STATE.json` and snapshots look like, said to the type checker.

`data/schemas/pheromones.schema.json` and `data/schemas/COLONY_STATE.schema.json` say the same to everyone
else, and a test says that the two agree. The signal itself is in `aether.shapes`.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from aether.shapes import JsonObject, Signal

State = Literal["IDLE", "INIT", "PLANNING", "EXECUTING", "VERIFYING", "COMPLETED", "FAILED"]
PhaseStatus = Literal["planned", "in_progress", "completed"]
Decision = Literal["continue", "adjust", "redo"]


class SignalType(TypedDict):
    """What a type of signal means: how long it lasts, how strong it starts, what it does."""

    half_life_seconds: float | None
    default_strength: float
    effect: str


class Pheromones(TypedDict):
    """The document `pheromones`."""

    schema_version: int
    active_pheromones: list[Signal]
    pheromone_types: dict[str, SignalType]
    caste_sensitivities: dict[str, dict[str, float]]


class ActiveSignal(Signal):
    """A signal with its strength at one instant, before and after the sensitivity of a caste."""

    current_strength: float
    effective_strength: float


class QueenCheckin(TypedDict):
    """A phase that waits for the Queen, or what she decided about it."""

    phase: int
    status: Literal["awaiting_review", "decided"]
    timestamp: str
    queen_decision: Decision | None
    decided_at: NotRequired[str]
    note: NotRequired[str]


class Worker(TypedDict):
    """A worker that is at work now."""

    id: str
    caste: str | None
    task: str | None
    registered_at: str


class ColonyStatus(TypedDict):
    """Where the colony stands."""

    state: State
    current_phase: int | None
    phases_completed: list[int]
    queen_checkin: QueenCheckin | None
    workers: list[Worker]
    workers_registered: int


HistoryEntry = TypedDict(
    "HistoryEntry",
    {"from": State, "to": State, "trigger": str, "timestamp": str, "checkpoint": str | None},
)
"""One transition of the state machine; `checkpoint` is the automatic snapshot taken before it."""


class StateMachine(TypedDict):
    """The states, and the way through them so far."""

    states: list[State]
    transitions_count: int
    last_transition: str | None
    state_history: list[HistoryEntry]


class Checkpoints(TypedDict):
    """The newest automatic snapshots, oldest first."""

    automatic: list[str]


class Adaptation(TypedDict):
    """What a phase takes over from the patterns of the phase before it."""

    inherited_focus: list[str]
    inherited_constraints: list[str]
    success_patterns: list[str]
    failure_patterns: list[str]
    adapted_from: int
    adapted_at: str


class RoadmapPhase(TypedDict):
    """One phase of the roadmap."""

    phase: int
    name: str | None
    goal: str | None
    status: PhaseStatus
    started_at: str | None
    completed_at: str | None
    adaptation: Adaptation | None


class Phases(TypedDict):
    """The phases that are planned, running or done."""

    roadmap: list[RoadmapPhase]


class ColonyState(TypedDict):
    """The document `COLONY_STATE`."""

    schema_version: int
    goal: str | None
    colony_status: ColonyStatus
    state_machine: StateMachine
    checkpoints: Checkpoints
    phases: Phases


class Snapshot(TypedDict):
    """Exact saved state of the whole colony, for recovery only."""

    snapshot_id: str
    label: str
    automatic: bool
    timestamp: str
    revision: int
    documents: dict[str, JsonObject]
    checksum: str
