"""Shapes of documents, the hand-off, snapshots and results: names of `aether.types`, which loads them when they are used.

A process that only checks types by name, such as a hook, never makes these classes: all together take it milliseconds.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from aether.types import (
    Action,
    Decision,
    EndState,
    Evidence,
    Fact,
    JsonObject,
    Layer,
    PhaseStatus,
    State,
    SubtaskStatus,
)


class Link(TypedDict):
    """A typed association from the thing that holds it to `target_id`."""

    link_id: str
    target_id: str
    target_type: str
    link_type: str
    created_at: str


class Ended(TypedDict):
    """The end of a statement: how, when, and the id or text of what ended it ("" if a person said so)."""

    how: EndState
    at: str
    by: str


class Statement(TypedDict):
    """One statement of an architect with its proof: the items that it rests on, and words of one of them."""

    text: str
    items: list[str]
    quote: str
    evidence: Evidence
    ended: NotRequired[Ended]


class ItemMetadata(TypedDict):
    """The metadata of an item; further keys are the caller's own."""

    timestamp: str
    relevance_score: float
    access_count: int
    last_accessed: str
    source: str
    caste: str | None
    phase: NotRequired[int]
    protected: NotRequired[bool]
    injected: NotRequired[bool]
    pointer: NotRequired[JsonObject]
    count: NotRequired[object]
    places: NotRequired[object]
    evidence: NotRequired[str]
    role: NotRequired[str]
    reply: NotRequired[str]
    confirmed_by: NotRequired[str]
    corrected_at: NotRequired[str]
    corrected_by: NotRequired[str]
    ended_at: NotRequired[str]
    fate: NotRequired[str]
    conversation: NotRequired[str]
    title: NotRequired[str]
    project: NotRequired[str]
    fact: NotRequired[Fact]
    noted: NotRequired[bool]
    state: NotRequired[str]
    ended_by: NotRequired[str]
    proposal: NotRequired[JsonObject]


class Item(TypedDict):
    """One entry of working memory."""

    id: str
    type: str
    content: str
    token_count: int
    metadata: ItemMetadata
    associative_links: list[Link]


class KeyDecision(TypedDict):
    """A decision with its reason."""

    decision: str
    rationale: str
    items: NotRequired[list[str]]
    quote: NotRequired[str]
    evidence: NotRequired[Evidence]
    supersedes: NotRequired[str]
    """The id or the words of the earlier decision that it replaces."""
    ended: NotRequired[Ended]


class Outcome(TypedDict):
    """A result with what it changes."""

    result: str
    impact: str


class HighValueItem(TypedDict):
    """One statement worth keeping word for word."""

    content: str
    relevance_score: float
    type: str
    carried: NotRequired[bool]
    injected: NotRequired[bool]


class Session(TypedDict):
    """One compressed stretch of work in short-term memory."""

    id: str
    session_id: str
    phase: int
    compressed_at: str
    original_tokens: int
    compressed_tokens: int
    compression_ratio: float
    summary: str
    key_decisions: list[KeyDecision]
    outcomes: list[Outcome]
    high_value_items: list[HighValueItem]
    state: NotRequired[list[Statement]]
    next: NotRequired[list[Statement]]
    rules: NotRequired[list[Statement]]
    open: NotRequired[list[Statement]]
    resolved: NotRequired[list[Statement]]
    """What this session resolved or revoked of earlier sessions."""
    metadata: JsonObject


class Pattern(TypedDict):
    """One regularity in long-term memory; `metadata.evidence` names the sessions that show it."""

    id: str
    type: Literal["success_pattern", "failure_pattern", "preference", "constraint"]
    pattern: str
    confidence: float
    occurrences: int
    created_at: str
    last_seen: str
    associative_links: list[Link]
    metadata: JsonObject


class Signal(TypedDict):
    """A pheromone; `decay_rate` is its half-life in seconds, null if it does not fade."""

    id: str
    type: str
    strength: float
    created_at: str
    decay_rate: float | None
    metadata: JsonObject


class Handoff(TypedDict):
    """The hand-off that `prepare` writes for the architect: exactly these items, in this order."""

    schema_version: int
    compression_id: str
    phase: int
    prepared_at: str
    revision: int
    items: list[Item]
    item_count: int
    total_tokens: int
    target_tokens: int
    counter: str
    protected: list[JsonObject]
    """Statements that must survive word for word: `id`, `content`, `why`."""
    signals: list[Signal]
    """Active FOCUS, REDIRECT and FEEDBACK signals, each with its `effective_strength`."""
    earlier: NotRequired[list[JsonObject]]
    """Statements in force that the session may resolve or supersede: `id`, `kind` and `text`."""
    prompt: JsonObject
    """`name`, `sha256` and `text`: the rendered instruction for a model or a person."""
    checksum: str


class Archived(TypedDict):
    """When and why an archived entry left its layer; for a compressed one the ids of its session and hand-off."""

    left_at: str
    why: str
    session_id: str | None
    compression_id: str | None


class HitEvidence(TypedDict):
    """Why a hit has its score: the sum of words and surroundings, times the factors."""

    words: dict[str, float]
    """What each word of the query adds; a synonym is in parentheses."""
    surroundings: float
    """What neighbours add."""
    factors: dict[str, float]
    """The factors other than 1, by name."""
    alike: dict[str, str]
    """Of a weak match: the words of the query, each with the word that is spelled like it."""


class Hit(TypedDict):
    """One entry that answers a query, of any layer or of the archive."""

    id: str
    layer: Layer
    layer_priority: int
    """0 working memory, 1 short-term, 2 long-term, 3 archive."""
    relevance: float
    """From 0 to 1."""
    score: float
    """The larger, the better."""
    why: str
    """The kind of match: id, exact, phrase, words or weak."""
    matched: list[str]
    """Words of the query that it holds."""
    type: str
    phase: int | None
    at: str
    """ISO 8601, UTC; empty if unknown."""
    content: str
    """Its main text: of a session the summary."""
    passage: str
    """The part of its text that answers the query."""
    tokens: int
    """The cost of its full text."""
    gist: str
    """Its text on one line, shortened."""
    entry: JsonObject
    """The stored item, session or pattern."""
    speaker: NotRequired[str]
    project: NotRequired[str]
    conversation: NotRequired[str]
    title: NotRequired[str]
    weak: NotRequired[bool]
    """Whether it has no word of the query and is only the best guess of a small home."""
    evidence: NotRequired[HitEvidence]
    level: NotRequired[str]
    """Of an archived conversation, how much of it is kept."""
    archived: NotRequired[Archived]
    neighbours: NotRequired[dict[str, list[JsonObject]]]
    repeats: NotRequired[list[JsonObject]]
    """The id, time and conversation of notes of other conversations that say the same in the same words."""
    ended: NotRequired[Ended]
    """How it ended, of one that is not in force."""


class SignalType(TypedDict):
    """A type of signal: how long it lasts, how strong it starts, its effect."""

    half_life_seconds: float | None
    default_strength: float
    effect: str


class ActiveSignal(Signal):
    """A signal with its strength at one instant, before and after the sensitivity of a caste."""

    current_strength: float
    effective_strength: float
    context: str
    """Its text, as in `metadata`."""


class EmittedSignal(Signal):
    """A signal as it was deposited, or queued for the next phase."""

    context: str
    """Its text, as in `metadata`."""
    queued: bool


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


HistoryEntry = TypedDict(
    "HistoryEntry", {"from": State, "to": State, "trigger": str, "timestamp": str, "checkpoint": str | None}
)


class Adaptation(TypedDict):
    """The patterns that a phase inherits from the phase before it."""

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


class Snapshot(TypedDict):
    """Exact saved state of the whole colony, for recovery only."""

    snapshot_id: str
    label: str
    automatic: bool
    timestamp: str
    revision: int
    documents: dict[str, JsonObject]
    checksum: str
    conversations: NotRequired[dict[str, list[JsonObject]]]
    """The records of each, by its id; only in a snapshot that was asked for."""


class Subtask(TypedDict):
    """One step of a goal; `depends_on` are ids of steps that come first."""

    id: str
    description: str
    status: SubtaskStatus
    created_at: str
    completed_at: NotRequired[str]
    depends_on: NotRequired[list[str]]
    blocked_by: NotRequired[str]


class GoalDecision(TypedDict):
    """A decision for a goal; a locked one stays in every context and is never unlocked."""

    id: str
    description: str
    rationale: str
    alternatives: list[str]
    at: str
    locked: bool


class Artifact(TypedDict):
    """A file that the work for a goal created, modified or deleted."""

    id: str
    type: Literal["file", "test", "documentation", "configuration"]
    path: str
    action: Literal["created", "modified", "deleted"]
    at: str
    description: NotRequired[str]


class Blocker(TypedDict):
    """What stops the work for a goal; resolved as soon as it has a `resolved_at`."""

    id: str
    description: str
    type: Literal["missing-info", "external-dependency", "technical-issue"]
    created_at: str
    resolved_at: NotRequired[str]
    resolution: NotRequired[str]


class GoalCheckpointState(TypedDict):
    """The files, tests and locked decisions of a goal at one time, and what was measured."""

    files_modified: list[str]
    tests_added: list[str]
    decisions_locked: list[str]
    metrics_recorded: list[str]


class GoalCheckpoint(TypedDict):
    """The state of a goal at one time, in words and as lists."""

    id: str
    description: str
    at: str
    state: GoalCheckpointState
    summary: str


class Goal(TypedDict):
    """One goal in its original wording. Whether it is active, paused or blocked follows from the document `goals`."""

    id: str
    description: str
    priority: Literal["high", "medium", "low"]
    evidence: Literal["person", "agent"]
    created_at: str
    outcome: NotRequired[Literal["completed", "abandoned"]]
    completed_at: NotRequired[str]
    paused_at: NotRequired[str]
    started_at: NotRequired[str]
    worked_seconds: int
    parent_goal_id: NotRequired[str]
    estimated_effort: NotRequired[str]
    tags: list[str]
    next_step: NotRequired[str]
    subtasks: list[Subtask]
    decisions: list[GoalDecision]
    artifacts: list[Artifact]
    blockers: list[Blocker]
    checkpoints: list[GoalCheckpoint]


class GoalStatus(Goal):
    """The goal."""

    status: Literal["active", "paused", "blocked", "completed", "abandoned"]
    progress: int
    """Share of its steps that are completed, in percent."""
    next: list[str]
    actual_effort: str
    """The time that it was the active goal, up to the last pause."""


class Claim(TypedDict):
    """A lease of one agent on a file, a directory or a task."""

    id: str
    """The resource: `./PATH` in the project, another absolute path, or `KIND:NAME`."""
    by: str
    task: str
    since: str
    renewed_at: str
    ends_at: str
    ttl_seconds: float
    revision: int
    """The fencing number: the revision that granted it."""


class PacketHead(TypedDict):
    """A packet without its entries."""

    id: str
    to: str
    by: str
    at: str
    note: str
    revision: int


class Packet(PacketHead):
    """Entries that one agent hands over to another, as they were at `revision`."""

    items: list[str]


class TeamMember(TypedDict):
    """An agent that is registered as a worker, holds a claim, or has packets that wait for it."""

    name: str
    caste: str | None
    task: str | None
    """That of the worker; without one, of its newest claim."""
    claims: list[Claim]
    packets: int


class EnforcedRule(TypedDict):
    """A rule that acts, in the words of the person; of `command`, `regex` and `path` at most one is set."""

    id: str
    entry: str
    """The entry of memory that it was made from; empty if it was given here."""
    text: str
    said_at: str
    """When the person said it."""
    action: Action
    tool: str
    """A name of a tool, with `*`; empty for shells (`command`, `regex`) or editors (`path`)."""
    command: str
    """Words, which the command starts with, or a pattern with `*`, `?` and `[…]`."""
    regex: str
    path: str
    """Patterns of paths, separated by commas, as in `claude.private_paths`."""
