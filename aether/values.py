"""Values: the change that a pure function plans, the finding of a check, and the closed lists of names in documents.

They are what running code needs of `types`; all else there is for the type checker, and takes a hook's time to make.
"""

from __future__ import annotations

from aether.tuples import NamedTuple

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from typing import Any

    from aether.types import Decision, Detail, JsonObject, Layer, Level, Patch, State

# Each has the names of the type that `types` has of it; a test compares the two.
LAYERS: tuple[Layer, ...] = ("working_memory", "short_term_memory", "long_term_memory", "archive")
STATES: tuple[State, ...] = ("IDLE", "INIT", "PLANNING", "EXECUTING", "VERIFYING", "COMPLETED", "FAILED")
DECISIONS: tuple[Decision, ...] = ("continue", "adjust", "redo")
DETAILS: tuple[Detail, ...] = ("full", "key_points", "summary", "metadata")
"""From the whole conversation to its description."""

# The known types of items, each with its importance where nothing else decides it: how much a colleague would miss it.
# Above 0.8 one sighting is enough for long-term memory, which is right for a person's demands and for nothing else.
RELEVANCE_OF_TYPE = {
    "constraint": 0.8, "preference": 0.75, "decision": 0.8, "blocker": 0.75, "solution": 0.75, "user_input": 0.7,
    "outcome": 0.7, "error": 0.65, "code_change": 0.6, "command": 0.5, "observation": 0.4,
}  # fmt: skip


class Change(NamedTuple):
    """The change that a pure function plans: patches by document, records by append-only file, a result."""

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
