"""Shapes of a conversation: policies, facts, summaries, receipts, checkpoints, parts and checks.

Tokens are whole tokens by the counter that the caller gave; ratios are shares of the window, 0.85 is 85 %.
Positions are indices into the list of messages that was given to `plan`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from aether.messages.model import Message, ProviderFormat
from aether.messages.tool_calls import ErrorFact, FileFact
from aether.types import Counter, Finding, JsonObject

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
    """Share of the window at which a conversation is compacted."""
    target: float = 0.60
    """Share of the window to compact to; below the trigger, or it would fire again on the next turn."""
    trigger_tokens: int = 0
    """Number of tokens at which it is compacted, whatever their share; 0: no such trigger."""
    trigger_messages: int = 0
    """Number of messages at which it is compacted; 0: no such trigger."""
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


def task_as_json(task: SummaryTask) -> JsonObject:
    """Return a summary task as the data of a request."""
    facts = task.facts._asdict()
    for field in ("files", "errors"):
        facts[field] = [fact._asdict() for fact in facts[field]]
    return {**task._asdict(), "said": [text._asdict() for text in task.said], "facts": facts}


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


class Bounds(NamedTuple):
    """The bounds of one compaction in tokens, and in messages if their number is a trigger."""

    window: int
    reserve: int
    limit: int
    ceiling: int
    roomy: int
    goal: int
    most_messages: int
    """As many as fire no trigger; 0: any number."""
    findings: tuple[Finding, ...]


class Plan(NamedTuple):
    """The outcome of planning a compaction; untriggered, it changes nothing."""

    messages: tuple[Message, ...]
    policy: Policy
    effective: Policy
    """The policy with the keep counts and the reserve that were used."""
    bounds: Bounds
    overhead: int
    triggered: bool
    reason: str
    """Reason of the compaction; empty if nothing is done."""
    tokens_before: int
    tokens: tuple[int, ...]
    """By position, before the compaction."""
    count: Counter
    kept: tuple[int, ...] = ()
    """Positions that stay, ascending."""
    changed: dict[int, Message] = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """The messages that stay in another form, by position."""
    total: int = 0
    """Tokens of all that is sent, with a summary without prose."""
    place: int = -1
    """Position before which the summary is put; -1: there is no new summary."""
    version: int = 0
    facts: Facts = Facts()
    prose_tokens: int = 0
    """Room for prose in the summary."""
    previous: str = ""
    """Prose of the previous summary."""
    task: SummaryTask | None = None
    """What the prose is made of; None: the summary has only facts."""
    asks: bool = False
    """Whether a summariser is asked for the prose; else lines are selected."""
    protected: tuple[int, ...] = ()
    required: tuple[int, ...] = ()
    why: Kept = Kept()
    findings: tuple[Finding, ...] = ()
    cuts: tuple[Cut, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def wire(self) -> ProviderFormat:
        """Return the provider format of the messages."""
        return self.messages[0].format if self.messages else "plain"


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


Mode = Literal["developer", "planning", "assistant", "debugger", "user"]
"""What a conversation is about: it decides what is never compressed, and what a summariser looks for."""
Purpose = Literal["recovery", "rollback", "emergency"]
Action = Literal["compress", "merge", "rollover", "aggressive-summarization"]
ExportFormat = Literal["markdown", "json"]
Progress = Callable[[str, int, str], None]
"""Gets the stage of a compression, its progress in percent, which never falls, and a message for a person."""

LEVEL_NAMES = {1: "compact", 2: "moderate", 3: "detailed"}
COMPACT, MODERATE, DETAILED = LEVEL_NAMES


class Tier(NamedTuple):
    """A class of window sizes."""

    number: int
    label: str
    most_window: int
    """The largest window of the tier in tokens; 0: any."""
    prompt_budget: int
    """Tokens that the system prompt should have at most; more is a warning, and is never compressed."""
    most_checkpoints: int
    """Beside a merged one; of more the oldest are merged."""
    is_rollover: bool = False
    """Whether there is one checkpoint, written again each time; else checkpoints age one by one."""


class Limits(NamedTuple):
    """When something happens to a context, as shares of the limit of its model, and how checkpoints age."""

    inform: float = 0.70
    compress: float = 0.80
    snapshot: float = 0.85
    emergency: float = 0.95
    target: float = 0.60
    """What a compression aims at: below `compress`, or it would be needed again at once."""
    checkpoints: float = 0.30
    """Of the room beside the system prompt: the most that all checkpoints take."""
    moderate_age: int = 3
    """Compressions after which a checkpoint becomes moderate."""
    compact_age: int = 6
    merge_age: int = 10
    least_users: int = 10
    """Newest messages of the user that stay whole, if there is room."""
    most_users: int = 20
    """The same for a compression by hand; an automatic one keeps as many as there is room for."""
    least_tokens: int = 500
    """Fewer are not worth an automatic compression; in a small window a tenth of the limit."""
    snapshots: int = 5
    """Newest snapshots that can be restored: so many by hand, and so many others."""


class ContextSettings(NamedTuple):
    """The settings of one context, as its log records them."""

    window: int
    model: str = ""
    mode: Mode = "assistant"
    system: str = ""
    provider: str = ""
    tools: tuple[JsonObject, ...] = ()
    """Schemas that are sent with each request, and counted."""
    parts: tuple[tuple[str, str], ...] = ()
    """Further named parts of the system prompt, such as goals, skills, or the prompts of MCP servers."""
    tool_support: bool | None = None


class Checkpoint(NamedTuple):
    """A summary in the place of a range of messages."""

    id: str
    level: int
    """3 detailed, 2 moderate, 1 compact."""
    tokens: int
    """Of the whole message in the context."""
    compression_number: int
    """The compression that made it, from 1; of a merged one that of its oldest."""
    message_range: tuple[int, int]
    """Numbers of the first and the last message that it covers, in the log."""
    summary: str
    created_at: str = ""
    compressed_at: str | None = None
    """When it was last written again at a lower level."""
    model: str = ""
    """The author: a backend, or the model that it asked."""
    mode: str = "assistant"
    messages: int = 0
    """How many messages it stands for."""
    tokens_before: int = 0
    """The tokens of these messages."""


class TokenMetrics(NamedTuple):
    """How the messages of a context were counted by this process."""

    hits: int
    """Messages that were needed and not counted again."""
    misses: int
    """Messages that were counted."""
    recalculations: int
    """Of these, messages that were counted before, by another counter, in another format or for another model."""
    tokens: int
    largest_message: int
    """Tokens of the largest live message."""
    average_tokens: float
    """Of the live messages."""
    seconds: float
    """Since the context was first read."""

    @property
    def hit_rate(self) -> float:
        """Return the share of the messages that were not counted again."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 0.0


class LiveMessage(NamedTuple):
    """One live message with its number, its tokens, and its checkpoint if it is one."""

    number: int
    """In the log, of the message that was added; a shortened copy has the number of the original."""
    message: Message
    tokens: int
    checkpoint: Checkpoint | None = None
    mentions: bool = False
    """Whether its text names a snapshot or a history, which is a finding."""


class SystemPart(NamedTuple):
    """One named part of the system prompt; the one named `base` is the caller's own text."""

    name: str
    text: str


class CheckpointPart(NamedTuple):
    """A checkpoint in the prompt."""

    live: LiveMessage


class RecentPart(NamedTuple):
    """A message that is sent as it was said."""

    live: LiveMessage


class NewPart(NamedTuple):
    """The newest message, to be answered."""

    live: LiveMessage


Part = SystemPart | CheckpointPart | RecentPart | NewPart


class PartTokens(NamedTuple):
    """The share of one part in a prompt."""

    name: str
    """`system` and, after a colon, the name of its part; `tools`, `checkpoints`, `recent` or `new`."""
    tokens: int


class Prompt(NamedTuple):
    """What is sent to a model: never more than the limit."""

    messages: list[JsonObject]
    """Without `meta`; with the system prompt as first message, unless the format has it beside the messages."""
    tokens: int
    limit: int
    parts: tuple[PartTokens, ...]
    system: str
    """The whole system prompt, for requests that have it beside the messages."""
    tools: tuple[JsonObject, ...] = ()


class Suggestion(NamedTuple):
    """Something that would make a context smaller."""

    action: Literal["compress", "merge_checkpoints", "remove_messages", "emergency_rollover"]
    priority: int
    """1 is to be tried first."""
    tokens: int
    """Estimate of what it saves."""
    why: str


class Validation(NamedTuple):
    """Whether a context can be sent."""

    valid: bool
    tokens: int
    limit: int
    overage: int
    """Tokens above the limit, else 0."""
    suggestions: tuple[Suggestion, ...]
    findings: tuple[Finding, ...]
    level: Literal["none", "inform", "compress", "emergency", "rollover"]
    """What the fill asks for: from 70, 80, 95 and 100 % of the limit on."""

    @property
    def ratio(self) -> float:
        """Return the used share of the limit, which may exceed 1."""
        return self.tokens / self.limit if self.limit > 0 else 0.0


class Work(NamedTuple):
    """One summary to be written: a new checkpoint, or one that takes the place of others."""

    kind: Literal["create", "age", "merge", "roll"]
    id: str
    """Of the checkpoint that is written again; empty for a new one."""
    checkpoints: tuple[int, ...]
    """Positions of the checkpoints that it replaces."""
    messages: tuple[int, ...]
    """Positions of the messages that it replaces."""
    level: int
    most_tokens: int
    """Of the summary, without the line above it."""
    message_range: tuple[int, int]
    compression_number: int
    covers: int
    """Messages that it stands for, in all."""
    tokens_before: int


class Compression(NamedTuple):
    """The result of a compression; without success everything is as it was."""

    success: bool
    reason: str
    """Why it did not succeed, in the words of OLLM-CLI; else empty."""
    tokens_before: int
    tokens_after: int
    validation: Validation
    checkpoint: Checkpoint | None = None
    """The new checkpoint."""
    aged: tuple[str, ...] = ()
    """Ids of the checkpoints that were written again at a lower level."""
    merged: tuple[str, ...] = ()
    """Ids of the checkpoints that are one now."""
    step: int = 0
    """Number of the compaction, for `aether compact show` and undo."""
    error: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def freed_tokens(self) -> int:
        """Return the tokens that it saved."""
        return self.tokens_before - self.tokens_after


class EmergencyResult(NamedTuple):
    """One emergency action, which was really done, or left everything as it was."""

    action: Action
    success: bool
    tokens_freed: int
    snapshot_id: str
    error: str = ""


class ProviderError(NamedTuple):
    """What the error of a provider says."""

    kind: Literal["overflow", "connection", "unknown"]
    window: int = 0
    """The limit that it names, 0 without one."""
    tokens: int = 0
    """The tokens of the request by its count, 0 if it does not say."""


class Overflow(NamedTuple):
    """What an error of a provider means for the context, and what was done."""

    kind: Literal["overflow", "connection", "unknown"]
    retry: bool
    """Whether the request may be sent again, with a prompt built anew."""
    actions: tuple[EmergencyResult, ...]
    validation: Validation
