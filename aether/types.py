"""Types: the shapes of what documents hold, the hand-off, the snapshots and the results, for the type checker.

Those of documents are in `data/schemas/*.schema.json` too; a test compares the two. Token counts are whole tokens
by the counter of the home; times are text as `clock.stamp` writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict, get_args

if TYPE_CHECKING:
    from aether.document_types import *  # noqa: F403 - they are names of this module

JsonObject = dict[str, Any]
Layer = Literal["working_memory", "short_term_memory", "long_term_memory", "archive"]
Level = Literal["error", "warning", "info"]
Detail = Literal["full", "key_points", "summary", "metadata"]
"""How much of an archived conversation is left."""
DETAILS: tuple[Detail, ...] = get_args(Detail)
"""From the whole conversation to its description."""
Operation = dict[str, Any]
"""One RFC 6902 operation: `op`, `path` and, as the op asks, `value` or `from`."""
Patch = list[Operation]
Counter = Callable[[str], int]
"""Text to whole tokens; each home records which one it uses."""

ItemType = Literal[
    "constraint", "preference", "decision", "blocker", "solution", "user_input", "outcome", "error", "code_change", "command",
    "observation",
]  # fmt: skip
"""The known types of items. A home takes others, too; where types are checked, `cast` says that one is meant."""
RULE_TYPES = frozenset({"constraint", "preference"})
"""The types of rules. Who types `rule` means a constraint."""
SignalName = Literal["INIT", "FOCUS", "REDIRECT", "FEEDBACK", "CHECKIN", "PHASE_COMPLETE", "TOKEN_THRESHOLD"]
"""The known types of signals; a home may define others."""
Caste = Literal["colonizer", "route_setter", "builder", "watcher", "scout", "architect"]
"""The known castes; a colony may have others, whose sensitivity to each signal is full."""
# The known types of items, each with its importance where nothing else decides it: how much a colleague would miss it.
# Above 0.8 one sighting is enough for long-term memory, which is right for a person's demands and for nothing else.
RELEVANCE_OF_TYPE = {
    "constraint": 0.8, "preference": 0.75, "decision": 0.8, "blocker": 0.75, "solution": 0.75, "user_input": 0.7,
    "outcome": 0.7, "error": 0.65, "code_change": 0.6, "command": 0.5, "observation": 0.4,
}  # fmt: skip
# What a timeline calls them.
Kind = Literal[
    "request", "decision", "rule", "result", "error", "fix", "change", "command", "note", "compression",
    "compaction", "phase",
]  # fmt: skip
KIND_OF_TYPE: dict[str, Kind] = {
    "user_input": "request", "decision": "decision", "constraint": "rule", "preference": "rule", "outcome": "result",
    "error": "error", "blocker": "error", "solution": "fix", "code_change": "change", "command": "command",
}  # fmt: skip
FactKind = Literal["change", "run", "commit", "push", "branch", "plan", "question", "answer"]
Evidence = Literal["person", "machine", "agent"]
"""Who vouches for a statement: a person said it, a machine showed it, an agent wrote it."""
EndState = Literal["resolved", "superseded", "revoked"]
"""How a statement ended; one without such a state is in force."""


# Facts are made by every hook at the end of a turn, so their shapes are here, and not in `aether.document_types`.
class Step(TypedDict):
    """One step of a plan."""

    text: str
    status: str


class Fact(TypedDict):
    """What a machine showed, as fields. Which of them a fact has follows from its kind."""

    kind: FactKind
    path: NotRequired[str]
    """Of a change: the file."""
    action: NotRequired[str]
    """Of a change: created, changed, deleted, moved or reverted."""
    names: NotRequired[list[str]]
    """Of a change: the functions, classes or headings that it touched."""
    lines: NotRequired[int]
    command: NotRequired[str]
    """Of a run: the command line, shortened."""
    argv: NotRequired[list[str]]
    """Of a run: the words of its command."""
    exit: NotRequired[int]
    """Of a run: its exit code, if the host reported one."""
    failed: NotRequired[bool]
    """Of a run: whether the host reported a failure."""
    times: NotRequired[int]
    """How many runs or edits it stands for."""
    outcome: NotRequired[str]
    """Of a run: the line of its output that says how it ended."""
    after: NotRequired[list[str]]
    """Of a run that works again: the files changed and commands run since it failed."""
    id: NotRequired[str]
    """Of a commit its hash; of a pull request its address."""
    subject: NotRequired[str]
    body: NotRequired[str]
    branch: NotRequired[str]
    remote: NotRequired[str]
    steps: NotRequired[list[Step]]
    question: NotRequired[str]
    options: NotRequired[list[str]]
    choice: NotRequired[str]
    """Of an answer: what the person chose or wrote."""


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


State = Literal["IDLE", "INIT", "PLANNING", "EXECUTING", "VERIFYING", "COMPLETED", "FAILED"]
PhaseStatus = Literal["planned", "in_progress", "completed"]
Decision = Literal["continue", "adjust", "redo"]
SubtaskStatus = Literal["pending", "in-progress", "completed", "blocked"]
Action = Literal["deny", "ask"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # every import asks for `__path__`
        raise AttributeError(f"module 'aether.types' has no attribute {name!r}")
    from aether import document_types

    return getattr(document_types, name)
