"""Shapes: what the state, the hand-off and the results look like, said to the type checker.

`data/schemas/*.schema.json` say the same to everyone else, and a test says that the two agree.
Token counts are whole tokens by the counter of the home; times are text as `clock.stamp` writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

JsonObject = dict[str, Any]
Layer = Literal["working_memory", "short_term_memory", "long_term_memory", "archive"]
Level = Literal["error", "warning", "info"]
Operation = dict[str, Any]
"""One RFC 6902 operation: `op`, `path` and, as the op asks, `value` or `from`."""
Patch = list[Operation]
Counter = Callable[[str], int]
"""Text to whole tokens; each home records which one it uses."""


class Link(TypedDict):
    """A typed association from the thing that holds it to `target_id`."""

    link_id: str
    target_id: str
    target_type: str
    link_type: str
    created_at: str


class ItemMetadata(TypedDict):
    """What is known about an item beside its text; further keys are the caller's own."""

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
    """A pheromone; `decay_rate` is its half-life in seconds, null where it does not fade."""

    id: str
    type: str
    strength: float
    created_at: str
    decay_rate: float | None
    metadata: JsonObject


class Handoff(TypedDict):
    """What `prepare` writes for the architect: exactly these items, in this order."""

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
    prompt: JsonObject
    """`name`, `sha256` and `text`: the rendered instruction for a model or a person."""
    checksum: str


class Change(NamedTuple):
    """What a pure function wants done: patches by document, records by append-only file, an answer."""

    patches: dict[str, Patch]
    appends: dict[str, list[JsonObject]] = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    result: Any = None


class Finding(NamedTuple):
    """One result of a check."""

    level: Level
    code: str
    where: str
    message: str
    fix: str
