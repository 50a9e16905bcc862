"""Shapes of compaction: policies, facts, plans, results and receipts.

Tokens are whole tokens by the counter that the caller gave; ratios are shares of the window, 0.85 is 85 %.
Positions are indices into the list of messages that was given to `plan`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from aether.messages.model import Message
from aether.messages.tool_calls import ErrorFact, FileFact
from aether.types import Finding, JsonObject

Strategy = Literal[
    "task_state", "brief", "decision_log", "code_delta", "step_ledger", "requirements_ledger"
]  # fmt: skip
Step = Literal[
    "shorten_results", "shorten_arguments", "drop_reasoning", "fold_exploration", "summarise", "select", "reduce",
]  # fmt: skip


class Policy(NamedTuple):
    """How one conversation is compacted; see docs/compaction.md for each field."""

    name: str = "compact"
    trigger: float = 0.85
    """Share of the window from which on a conversation is compacted (requirements/002)."""
    target: float = 0.60
    """Share of the window to compact to; below the trigger, or it would fire again on the next turn."""
    trigger_tokens: int = 0
    """Tokens from which on it is compacted whatever their share; 0: no such trigger."""
    trigger_messages: int = 0
    """Number of messages from which on it is compacted; 0: no such trigger."""
    reserve: int = 1500
    """Tokens of the window that stay free for the answer (`hard_cap_buffer`)."""
    keep_recent_turns: int = 6
    """Turns at the end that stay as they are; a turn is a user message with all its answers."""
    keep_tool_pairs: int = 4
    """Tool calls at the end, each with its results, that stay (`keep_tool_io_pairs`)."""
    keep_middle: float = 0.0
    """Share of the target for older messages kept whole by importance (`window`)."""
    keep_requests: bool = False
    """Whether older instructions and explicit requests of the user stay as messages (`window`)."""
    protected_roles: tuple[str, ...] = ("system", "developer")
    """Roles whose messages no step may change or drop."""
    protected_flag: str = "protected"
    """Key of `meta` that protects a message if it is truthy."""
    protected_labels: tuple[str, ...] = ()
    """Values of `meta.label` that protect a message."""
    protected_paths: tuple[str, ...] = ()
    """Glob patterns: tool calls and results about such files are protected."""
    min_reclaim: float = 0.05
    """Least share of the tokens to remove: less is not worth the prompt cache it costs."""
    min_progress: float = 0.05
    """Least growth since the last compaction, as share of the window, before another one is tried."""
    summary_share: float = 0.55
    """Most of the target that the summary may take."""
    strategy: Strategy = "task_state"
    """The subject of a summary; one prompt each."""
    steps: tuple[Step, ...] = (
        "drop_reasoning", "shorten_results", "shorten_arguments", "fold_exploration", "summarise", "select", "reduce",
    )  # fmt: skip
    """Steps in order; a policy without `summarise` never asks a model."""


class Facts(NamedTuple):
    """The machine fields of a summary, which must not depend on prose. Every text is verbatim from the input."""

    goals: tuple[str, ...] = ()
    """The opening request once it is removed, never changed; further ones are those of older summaries."""
    opening: tuple[str, ...] = ()
    """The head of the opening request while that stays among the messages; removed, it is a goal."""
    current: tuple[str, ...] = ()
    """The newest message of the person, and those before it as far as all are brief; replaced like `state` and `next`."""
    state: tuple[str, ...] = ()
    """Paragraphs from the ends of the newest answers, and the steps of the plan that are done."""
    next: tuple[str, ...] = ()
    """The steps of the plan that are not done."""
    ran: tuple[str, ...] = ()
    """Commits, and the last run of each command with its outcome, newest last."""
    earlier: tuple[str, ...] = ()
    """First and last paragraphs of earlier answers, newest last."""
    requests: tuple[str, ...] = ()
    """Other messages of the person, newest last."""
    constraints: tuple[str, ...] = ()
    """Only of older summaries: the rules of a person are in the requests."""
    decisions: tuple[str, ...] = ()
    """Answers of the person to questions, newest last."""
    open_calls: tuple[str, ...] = ()
    files: tuple[FileFact, ...] = ()
    errors: tuple[ErrorFact, ...] = ()
    names: tuple[str, ...] = ()
    """Ids, numbers, URLs, commands and identifiers worth finding again."""
    lookups: tuple[str, ...] = ()
    """The places of the full text of removed messages, in words for a model."""


class Summary(NamedTuple):
    """The contents of the message that replaces removed ones."""

    version: int
    facts: Facts
    prose: str


class RemovedText(NamedTuple):
    """One removed message, or the result of a call, in the form for a summariser."""

    at: int
    role: str
    tool: str
    text: str


class SummaryTask(NamedTuple):
    """The task of a summariser."""

    strategy: Strategy
    version: int
    said: tuple[RemovedText, ...]
    previous: str
    """Prose of the previous summary, which the new one replaces."""
    facts: Facts
    """The machine fields beside the prose, which need not repeat them."""
    max_tokens: int


class Kept(NamedTuple):
    """How many messages stayed for which reason."""

    pinned: int = 0
    recent: int = 0
    tool_pairs: int = 0
    middle: int = 0
    """Older ones that stayed by importance, or because there was room."""


class Cut(NamedTuple):
    """A text that was shortened within a message that stayed."""

    at: int
    block: int
    tokens_before: int
    tokens_after: int
    pointer: str
    """The place of the full text."""


class Receipt(NamedTuple):
    """The record of one compaction: messages removed and kept, the reasons, and the data to undo it."""

    conversation_id: str
    step: int
    """1 for the first compaction of the conversation."""
    at: str
    policy: JsonObject
    """The policy as asked for."""
    effective: JsonObject
    """The policy as applied: keep counts after reduction, window, limit and target in tokens."""
    trigger: str
    """The reason of the compaction, in words."""
    note: str
    tokens_before: int
    tokens_after: int
    counter: str
    messages_before: int
    messages_after: int
    kept: JsonObject
    removed: list[int]
    """Positions before that are not in the result."""
    places: list[int | None]
    """For each message of the result its position before; None for the summary."""
    protected: list[int]
    """Positions before of protected messages; all of them are in the result."""
    cuts: list[JsonObject]
    steps: list[str]
    """The steps taken, each with its savings, in words."""
    summary: JsonObject
    """`version`, `tokens`, `strategy`, `backend`, `model`, `input_tokens`, `output_tokens`, `cost_usd`,
    `prompt_sha256`, `tries`, `rejected`; empty without a summary."""
    sha256_before: str
    sha256_after: str
    findings: list[JsonObject]


class Compacted(NamedTuple):
    """A conversation that fits."""

    messages: tuple[Message, ...]
    triggered: bool
    tokens_before: int
    tokens_after: int
    limit: int
    """Tokens that the whole may have: the window less the reserve."""
    summary: Summary | None
    findings: tuple[Finding, ...]
    kept: Kept = Kept()
    effective: Policy = Policy()
    places: tuple[int | None, ...] = ()
    cuts: tuple[Cut, ...] = ()
    steps: tuple[str, ...] = ()
    protected: tuple[int, ...] = ()
