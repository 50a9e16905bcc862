"""Results of the commands: the type of the one JSON value that each command prints with `--json`.

`aether schema` derives the JSON Schema of a command from its type here; a test runs every example and
compares. A command that prints the result of a function unchanged names the type of that result. Times are
ISO 8601 in UTC.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from aether.api.admin import Folded, LogLine, Restored, Trust
from aether.api.architects import Standing
from aether.api.archive import Ageing, Archived, ArchivedBatch, ArchiveHit
from aether.api.archive import Restored as RestoredConversation
from aether.api.backup import Backup
from aether.api.chat import Compressed
from aether.api.closing import Closed
from aether.api.compact import Compaction
from aether.api.compact_views import ConversationEntry, DiffRow, DryRun
from aether.api.compress import Prepared
from aether.api.confirming import HomeTrust
from aether.api.context import ContextEntry, ContextStatus
from aether.api.conversations import CheckedMessages
from aether.api.enforcing import Proposal, StoppedCall
from aether.api.forget import Erased, Forgotten
from aether.api.importing import Imported
from aether.api.removed import RemovedMessage
from aether.api.review import Ending
from aether.api.share import Apart, Shared
from aether.api.teamwork import Received, Roster
from aether.api.tokens import ListedModel, TokenCount
from aether.api.trace import Trace
from aether.api.withdraw import SourceUndo
from aether.api.working import ItemId
from aether.cli.schedule import Job
from aether.compat.ollm_import import OllmImport
from aether.conversation.archive_retention import Policy
from aether.conversation.archived import ArchivedConversation
from aether.conversation.shapes import Checkpoint, Compression, Kept, TokenMetrics, Validation
from aether.hosts.claude_code.health import Report as Installation
from aether.hosts.claude_code.rescue import Transcript
from aether.hosts.installing import HostChange, NativeMemory
from aether.hosts.settings import FileChange
from aether.memory.briefing.sections import Kind
from aether.memory.graph import Graph, Merged
from aether.memory.ingest import IngestResult
from aether.memory.items import TokenUsage
from aether.memory.memory_tool import Match
from aether.memory.patterns import Promotion
from aether.memory.phases import PhaseChange
from aether.memory.review import Entry
from aether.memory.timeline import FileHistory, Moment
from aether.messages.records import BadLine
from aether.schemas.derive import adapted
from aether.sharing.postgres import Member
from aether.store.history import Snapshot as ContextState
from aether.types import (
    ActiveSignal,
    Claim,
    Detail,
    EmittedSignal,
    Ended,
    EnforcedRule,
    Finding,
    GoalStatus,
    HistoryEntry,
    Hit,
    HitEvidence,
    Item,
    JsonObject,
    Packet,
    QueenCheckin,
    RoadmapPhase,
    Snapshot,
    Worker,
)

ArchiveAgePlan = TypedDict(
    "ArchiveAgePlan",
    {
        "id": str,
        "title": str,
        "days": int,
        "score": float,
        "rule": str,
        "from": Detail,
        "to": Detail,
        "bytes": int,
    },
)
"""One conversation that is old enough."""


class ArchiveExplain(TypedDict):
    """The decision about one conversation."""

    id: str
    title: str
    archived: bool
    level: Detail
    decided_level: Detail
    age_level: Detail
    retention_level: Detail
    rule: str
    reason: str
    score: float
    parts: dict[str, float]
    days: int
    since: str
    since_is: str
    grace_until: str | None
    """Until when its fuller form can be restored; empty for good."""
    next_level: str
    """The level that it gets next, if nothing changes; empty if it stays."""
    next_at: str
    """When it gets that level. ISO 8601, UTC; empty if it stays."""


class ArchiveMark(TypedDict):
    """What is marked."""

    marked: bool
    ids: list[str]
    unknown: list[str]


class ArchiveStats(TypedDict):
    """The size of the archive."""

    conversations: int
    bytes: int
    levels: dict[str, int]


class ContextDeleted(TypedDict):
    """A deleted conversation."""

    conversation: str
    files: list[str]
    """Its files in quarantine; none if it was deleted for good."""


class BriefLine(TypedDict):
    """One line."""

    kind: Kind
    """`repository`: what came with a clone, and nobody confirmed."""
    heading: str
    """Of a group within its kind, such as the answers of the person."""
    text: str
    ids: list[str]
    """The entries that it comes from; empty where it comes from the state of the colony, or from texts of an old session."""
    evidence: Literal["person", "machine", "agent", ""]
    """Who vouches for it: a person said it, a machine showed it, an agent wrote it; empty where unknown."""
    corrected: bool
    """Whether whoever vouches for it corrected its words, at the time `at`."""
    at: str
    note: str
    tokens: int
    checks: list[str]
    """What the work tree and git say of each file, symbol, commit, branch and pull request that it names."""
    correctable: bool
    """Whether its entry is a single statement, which aether memory update can correct."""


class BriefLeftOut(TypedDict):
    """A line that a check left out."""

    text: str
    ids: list[str]
    checks: list[str]


class Brief(TypedDict):
    """What a new session gets."""

    occasion: Literal["startup", "clear", "compact", "resume", "fork", "subagent"]
    lines: list[BriefLine]
    left_out: list[BriefLeftOut]
    block: str
    """The text that the hook injects; empty where memory has nothing to tell."""
    tokens: int


class ChatTurn(TypedDict):
    """One message and its answer."""

    text: str
    interrupted: bool
    overflows: int
    read_tokens: int
    input_tokens: int
    output_tokens: int
    calls: list[str]
    compressed: list[Compressed]


class Chat(TypedDict):
    """A chat."""

    conversation: str
    backend: str
    model: str
    tokens: int
    limit: int
    tier: str
    checkpoints: int
    goal: str
    turns: list[ChatTurn]


class ClaudeInstall(TypedDict):
    """What installing did."""

    scope: Literal["project", "local", "user"]
    links: list[FileChange]
    files: list[FileChange]
    home: str | None
    """The project's home; null for the user, and in a dry run."""
    made_home: bool
    plugin: str
    architect: str | None
    """The architect that is chosen; null if none could be written."""
    architect_file: str | None


class Install(TypedDict):
    """What installing in agents did."""

    scope: Literal["project", "user"]
    hosts: list[HostChange]
    failed: dict[str, str]
    """Why a host could not be changed, by its name."""
    home: str | None
    """The project's home; null for the user, and in a dry run."""
    native_memory: NativeMemory | None


class Uninstall(TypedDict):
    """What removing from agents did."""

    scope: Literal["project", "user"] | None
    hosts: list[HostChange]
    native_memory: NativeMemory | None
    """What was given back; null if nothing had to be."""


class RuleList(TypedDict):
    """The rules of a home that act."""

    rules: list[EnforcedRule]
    proposals: list[Proposal]
    """Rules of a person that name a command or a path, and could act."""


class ClaudePause(TypedDict):
    """What that did."""

    home: str
    paused: bool


class ClaudeRescue(TypedDict):
    """What rescuing did."""

    dry_run: bool
    transcripts: list[Transcript]
    items: int


class ClaudeUninstall(TypedDict):
    """What uninstalling did."""

    scope: Literal["project", "local", "user"] | None
    files: list[FileChange]
    native_memory: NativeMemory | None
    """What was given back; null if nothing had to be."""


class CompactDiff(TypedDict):
    """What one compaction did."""

    receipt: JsonObject
    """The receipt, as docs/compaction.md lists it; null where nothing was done."""
    rows: list[DiffRow]


class CompactPlan(TypedDict):
    """What a compaction would do."""

    conversation: str
    wire: str
    messages: int
    tokens: int
    window: int
    limit: int
    goal: int
    tokens_after: int
    """Tokens of all that would be sent, with a summary that no model wrote."""
    triggered: bool
    reason: str
    kept: Kept
    removed: int
    shortened: int
    protected: int
    asks_a_summariser: bool
    steps: list[str]
    findings: list[Finding]


class CompactShow(TypedDict):
    """The text that one compaction removed."""

    conversation: str
    step: int
    messages: list[RemovedMessage]


class CompactUndo(TypedDict):
    """What was undone."""

    conversation: str
    step: int
    count: int
    output: str | None
    messages: list[JsonObject] | None
    findings: list[Finding]


class Completion(TypedDict):
    """The script."""

    shell: Literal["bash", "zsh", "fish"]
    script: str


class ContextExport(TypedDict):
    """The history."""

    conversation: str
    format: str
    output: str | None
    text: str | None


class DemoPhase(TypedDict):
    """One compressed phase."""

    phase: int
    items: int
    session_id: str
    tokens_before: int
    tokens_after: int
    ratio: float
    patterns: int
    carried: int


class DemoSearch(TypedDict):
    """A search."""

    query: str
    hits: list[Hit]


class WorkingMemoryStatus(TypedDict):
    """Working memory."""

    items: int
    tokens: int
    max_capacity_tokens: int
    percent: float
    eviction_threshold_tokens: int
    compression_needed: bool
    counter: str


class ShortTermMemoryStatus(TypedDict):
    """Short-term memory."""

    sessions: int
    max_sessions: int
    percent: float
    target_ratio: float


class LongTermMemoryStatus(TypedDict):
    """Long-term memory."""

    patterns: int
    types: dict[str, int]


class ColonyStatus(TypedDict):
    """The colony."""

    state: str
    current_phase: int | None


class MemoryMetrics(TypedDict):
    """Counters since the home was made."""

    total_compressions: int
    total_pattern_extractions: int
    average_compression_ratio: float
    working_memory_evictions: int
    short_term_evictions: int


class MemoryStatus(TypedDict):
    """How full the layers are."""

    home: str
    revision: int
    working_memory: WorkingMemoryStatus
    short_term_memory: ShortTermMemoryStatus
    long_term_memory: LongTermMemoryStatus
    waiting: int
    """Entries that wait for a person."""
    open_handoffs: list[str]
    colony: ColonyStatus
    metrics: MemoryMetrics


class DemoCheck(TypedDict):
    """A look at the home."""

    findings: list[Finding]
    undone: LogLine
    restored: bool


class Demo(TypedDict):
    """What the demo did."""

    imported: Imported
    phases: list[DemoPhase]
    patterns: list[JsonObject]
    search: DemoSearch
    status: MemoryStatus
    check: DemoCheck
    home: str | None
    """The home that was left behind; null where it was a scratch one."""


class DemoCall(TypedDict):
    """A command, and what a rule did about it: deny, ask, or nothing."""

    command: str
    action: str


class DemoWaiting(TypedDict):
    """A statement that waits."""

    text: str
    source: str
    effect: str


class DemoUndone(TypedDict):
    """A source that was taken back."""

    entries: int
    left: list[str]
    """What the next session reads."""
    waiting: int


class DemoRules(TypedDict):
    """What the demo of rules did."""

    calls: list[DemoCall]
    stale: list[str]
    """The facts that are true no more."""
    waiting: DemoWaiting
    told: list[str]
    """What the next session read of the agent's statements."""
    undone: DemoUndone


class Doctor(TypedDict):
    """What was found."""

    repaired: list[str]
    findings: list[Finding]
    sizes: dict[str, int]
    """With --size the bytes of the files, by kind."""


class ErrorParts(TypedDict):
    """The error."""

    code: str
    """The class of the error, the word to match on; UsageError for a command line that cannot be parsed."""
    where: str
    what: str
    fix: str
    exit_code: int


class Failure(TypedDict):
    """What every command prints with --json when it fails."""

    error: ErrorParts


class ExportDocuments(TypedDict):
    """The documents."""

    memory: JsonObject
    pheromones: JsonObject
    COLONY_STATE: JsonObject
    graph: JsonObject
    memories: JsonObject


class ExportConversation(TypedDict):
    """One conversation."""

    conversation: str
    history: NotRequired[list[JsonObject]]
    context: NotRequired[list[JsonObject]]
    compactions: NotRequired[list[JsonObject]]
    problem: NotRequired[str]


class Export(TypedDict):
    """The whole colony."""

    revision: int
    documents: ExportDocuments
    items: list[JsonObject]
    receipts: list[JsonObject]
    events: list[JsonObject]
    history: list[JsonObject]
    conversations: list[ExportConversation]


class ExportedFile(TypedDict):
    """With --output: where it was written."""

    output: str
    revision: int


class GoalNext(TypedDict):
    """What comes next."""

    next: list[str]


class GraphText(TypedDict):
    """What would be written."""

    text: str


class GraphFile(TypedDict):
    """With --output: where it was written."""

    path: str


class Hook(TypedDict):
    """What the hook prints for the event."""

    told: JsonObject | str
    """What Claude Code is given: an object with hookSpecificOutput, plain text, or an empty text."""


class Init(TypedDict):
    """The home that is ready for use."""

    home: str


class Mcp(TypedDict):
    """One tool."""

    name: str
    description: str


class MemoryClear(TypedDict):
    """What was cleared."""

    archived: int


class CompressedPhase(TypedDict):
    """What compressing one phase did."""

    handoff: str | None
    reason: str
    architect: str
    notes: list[str]
    result: IngestResult | None


class CompressedPhases(TypedDict):
    """Without --phase."""

    phases: list[CompressedPhase]
    too_small: list[int]
    """The phases of less than a page, which stay in working memory."""


class MemoryLink(TypedDict):
    """The link."""

    link_id: str


class DoubtCommands(TypedDict):
    """The commands that settle it: `accept` and `reject` of an entry that waits, else `keep` and `forget`."""

    correct: str
    keep: NotRequired[str]
    forget: NotRequired[str]
    accept: NotRequired[str]
    reject: NotRequired[str]
    forget_newer: NotRequired[str]
    correct_newer: NotRequired[str]


class ReviewDoubt(TypedDict):
    """One doubt."""

    id: str
    kind: Literal["secret", "instruction", "proposal", "contradiction", "unconfirmed", "duplicate", "stale"]
    why: str
    entries: list[Entry]
    """What it is about; of a pair the older is first."""
    quote: str
    """Of a proposal: the words that it rests on."""
    source: str
    """Of a proposal: who states it, and in which conversation or file."""
    effect: str
    """Of a proposal: what it would change."""
    commands: DoubtCommands


class SettledDoubt(TypedDict):
    """One answer."""

    id: str
    answer: Literal["keep", "correct", "forget", "accept", "reject"]
    entry: str
    """The entry as it is now; empty if it was forgotten or rejected."""


class MemoryReview(TypedDict):
    """What is doubtful in memory."""

    doubts: list[ReviewDoubt]
    settled: list[SettledDoubt]
    more: int


class MemoryStatsSession(TypedDict):
    """One session."""

    session_id: str
    phase: int
    compressed_at: str
    original_tokens: int
    compressed_tokens: int
    compression_ratio: float


class MemoryStats(TypedDict):
    """What compression did so far."""

    total_compressions: int
    average_compression_ratio: float
    sessions: list[MemoryStatsSession]
    max_sessions: int
    working_memory_evictions: int
    short_term_evictions: int


class RecallEntry(TypedDict):
    """One entry."""

    id: str
    layer: Literal["working_memory", "short_term_memory", "long_term_memory", "archive"]
    type: str
    at: str
    tokens: int
    gist: NotRequired[str]
    """Its text on one line, cut; of an index and a timeline."""
    passage: NotRequired[str]
    """The part of its text that answers the query; of an index."""
    score: NotRequired[float]
    """What it is ranked by; larger is better; 0 in a timeline."""
    repeats: NotRequired[list[JsonObject]]
    """Notes of other conversations that say the same in the same words."""
    weak: NotRequired[bool]
    """Whether it has no word of the query and is only the best guess of a small home."""
    evidence: NotRequired[HitEvidence]
    """With --why."""
    speaker: NotRequired[str]
    project: NotRequired[str]
    conversation: NotRequired[str]
    title: NotRequired[str]
    text: NotRequired[str]
    entry: NotRequired[JsonObject]
    """The item, session or pattern as it is stored; of full entries."""
    ended: NotRequired[Ended]
    """How it ended, of one that is not in force."""


class Recall(TypedDict):
    """What memory knows."""

    step: Literal["index", "timeline", "full"]
    entries: list[RecallEntry]
    tokens: int
    notes: NotRequired[list[Match]]
    """The files of the memory tool that answer the query; of an index."""


class ReportOverview(TypedDict):
    """The home as it is now."""

    items: int
    tokens: int
    max_tokens: int
    percent: float
    sessions: int
    patterns: int
    state: str
    phase: int | None
    revision: int
    goal: str
    open: list[str]


class ReportMoment(TypedDict):
    """One moment."""

    at: str
    kind: str
    text: str
    by: str
    conversation: str


class ReportDay(TypedDict):
    """One day."""

    day: str
    moments: list[ReportMoment]


class ReportDecision(TypedDict):
    """One decision."""

    at: str
    text: str
    why: str
    evidence: str
    id: str


class ReportLesson(TypedDict):
    """One lesson."""

    text: str
    type: str
    occurrences: int
    confidence: float
    last_seen: str
    id: str


class ReportOmissions(TypedDict):
    """What the size of a report leaves out."""

    moments: int
    decisions: int
    lessons: int


class ReportCharts(TypedDict):
    """The numbers of the charts."""

    injected: list[JsonObject]
    recalls: list[JsonObject]
    architects: list[JsonObject]
    growth: list[JsonObject]
    saved: list[JsonObject]
    layers: list[JsonObject]
    signals: list[JsonObject]


class ReportData(TypedDict):
    """The report as data."""

    project: str
    made_at: str
    since: str
    conversation: str
    overview: ReportOverview
    counts: dict[str, int]
    timeline: list[ReportDay]
    decisions: list[ReportDecision]
    lessons: list[ReportLesson]
    left_out: ReportOmissions
    charts: ReportCharts


class Report(TypedDict):
    """What was written."""

    format: Literal["html", "markdown"]
    output: str
    bytes: int
    report: ReportData


class ShareRight(TypedDict):
    """A role and its right."""

    role: str
    right: Literal["read", "write", "admin"] | None
    """Null if it has none any more."""


class ShareRemove(TypedDict):
    """A line that is not at the server any more."""

    revision: int


class ShareStatus(TypedDict):
    """How far a replica is; beside it what its server says, if it can be reached."""

    colony: str
    replica: str
    revision: int
    waiting: int
    unfit: int
    unread: list[str]
    """Lines and conversations of the colony that this home cannot read, and why."""
    reachable: NotRequired[bool]
    reason: NotRequired[str]
    """Why nothing is known of the server: it did not answer, or refuses."""
    head: NotRequired[int]
    lag: NotRequired[int]
    streams: NotRequired[list[Apart]]
    """Conversations, and the files, that the replica does not have as the server has them."""
    faults: NotRequired[list[str]]
    """What keeps conversations, files or notes of hooks from being exchanged."""
    server: NotRequired[JsonObject]
    """What the server says of the colony: its versions, replicas and faults."""


class SnapshotRestore(TypedDict):
    """What was restored."""

    changed: list[str]


class StateShow(TypedDict):
    """The state of the colony."""

    state: str
    current_phase: int | None
    phases_completed: list[int]
    queen_checkin: QueenCheckin | None
    """The phase that waits for the Queen, or what she decided; null before the first."""
    roadmap: list[RoadmapPhase]
    workers: list[Worker]
    last_transition: str | None
    transitions_count: int
    crash: Finding | None


class CurrentGoal(TypedDict):
    """The goal that is worked on; null without one."""

    id: str
    description: str
    status: Literal["active", "blocked"]
    progress: int
    evidence: Literal["person", "agent"]


class LastCompression(TypedDict):
    """The last compression; null without one."""

    session_id: str
    compressed_at: str
    compression_ratio: float
    items: int | None
    """The items that it replaced; null for a session of an older version."""


class HookStatus(TypedDict):
    """What the hooks of Claude Code do."""

    paused: bool
    waiting: int
    last_event: str
    """When a hook last heard of a session. ISO 8601, UTC; empty where none did."""


class Status(TypedDict):
    """The colony at a glance."""

    home: str
    revision: int
    items: int
    tokens: int
    max_tokens: int
    percent: float
    compression_needed: bool
    sessions: int
    patterns: int
    compressions: int
    rules: int
    decisions: int
    goal: CurrentGoal | None
    state: str
    phase: int | None
    last_compression: LastCompression | None
    hooks: HookStatus
    problems: list[str]
    log: list[str]
    architect: Standing


class InForce(TypedDict):
    """A rule or decision."""

    kind: Literal["rule", "decision"]
    text: str


class Start(TypedDict):
    """What `aether` alone shows."""

    home: str | None
    """Null where there is none."""
    in_force: list[InForce]
    next: list[str]


class Statusline(TypedDict):
    """The line for Claude Code."""

    line: str
    overview: Status | None
    """What aether status --json prints; null without memory."""


class Timeline(TypedDict):
    """What happened."""

    moments: list[Moment]
    left_out: bool
    """Whether there are older ones."""


class TokensFetch(TypedDict):
    """The vocabulary."""

    name: str
    path: str


class TokensUse(TypedDict):
    """The counter of the home."""

    counter: str


class View(TypedDict):
    """The address of a view, printed when it starts."""

    url: str
    read_only: bool


class CtlStatistics(TypedDict):
    """What was done."""

    tokens_before: int
    tokens_after: int
    pruned_count: int


class CtlCompact(TypedDict):
    """The compacted messages."""

    messages: list[JsonObject]
    statistics: CtlStatistics


class CtlCreateConfig(TypedDict):
    """An example of every setting."""

    output: str | None
    format: Literal["toml", "yaml", "json"]
    text: str | None


class CtlValidateConfig(TypedDict):
    """A configuration that is valid."""

    valid: Literal[True]
    config: JsonObject
    origins: dict[str, Literal["environment", "file", "home", "user", "default"]]
    """For each setting by path: environment, file, home, user or default."""
    findings: list[JsonObject]


# To mypy, what `adapted` makes is no type.
_list: Any = list
_METRICS = adapted("ContextMetrics", TokenMetrics, hit_rate=float)
_CONTEXT = adapted(
    "ContextStatus", ContextStatus, without=["settings", "validation"], ratio=float, window=int, model=str, mode=str,
    level=Literal["none", "inform", "compress", "emergency", "rollover"], metrics=_METRICS,
)  # fmt: skip
_AGED = adapted("ArchiveAge", Ageing, plan=list[ArchiveAgePlan], dry_run=bool)
_RESTORED_HOME = adapted("BackupRestore", Backup, findings=list[Finding])
_COMPACTED = adapted(
    "CompactRun", Compaction, without=["window"], conversation=str, output=str | None, receipt=JsonObject | None, messages=list[JsonObject] | None,
)  # fmt: skip
_MERGED = adapted("GraphImport", Merged, bad_lines=list[BadLine], revision=int)
_ADDED = adapted("ArchiveAdd", ArchivedBatch, without=["before"])
_RESTORED = adapted("ArchiveRestore", RestoredConversation, id=str, conversation=JsonObject | None)
_CHECKED_CONTEXT = adapted("ContextCheck", Validation, ratio=float)
_COMPRESSED_CONTEXT = adapted(
    "ContextCompress", Compression, without=["validation", "findings"], freed_tokens=int
)
_IMPORTED = adapted("Import", Imported, restored=NotRequired[Restored])
_ADDED_ITEM = adapted("MemoryAdd", ItemId, id=str)
_FORGOTTEN = adapted(
    "MemoryForget", Forgotten, without=["receipt"], forgotten=bool, receipt_id=str, erased=NotRequired[Erased]
)
_VERIFIED = adapted("MemoryVerify", TokenUsage, percent=float, status=Literal["PASS", "WARNING", "FAIL"])
_CLOSED = adapted("MemoryClose", Closed, without=["ingested"], result=IngestResult | None)
_SNAPSHOT = adapted("SnapshotEntry", Snapshot, without=["documents", "conversations"])
_CONTEXT_SNAPSHOT = adapted(
    "ContextSnapshot", ContextState, without=["context", "settings", "compressions"], messages=int
)
_COUNTED = adapted("TokensCount", TokenCount, file=str)
_CHECKED_MESSAGES = adapted("MessagesCheck", CheckedMessages, without=["repaired"], file=str, output=str)
_TRUST = adapted("Trust", Trust, without=["data"], content=HomeTrust | None)
_DRY_RUN = adapted("CtlDryRun", DryRun, without=["after", "findings"])

RESULTS: dict[str, Any] = {
    "aether": Start,
    "archive add": _ADDED,
    "archive age": _AGED | Job,
    "archive list": list[Archived]
    | list[ArchiveHit]
    | ArchivedConversation
    | ArchiveExplain
    | ArchiveStats
    | list[Finding],
    "archive mark": ArchiveMark,
    "archive policy": Policy,
    "archive restore": _RESTORED,
    "backup create": Backup,
    "backup list": list[Backup] | list[Finding],
    "backup restore": _RESTORED_HOME,
    "brief": Brief,
    "compact check": _CHECKED_MESSAGES,
    "chat": Chat,
    "claude install": ClaudeInstall,
    "claude pause": ClaudePause,
    "claude rescue": ClaudeRescue,
    "claude status": Installation,
    "claude uninstall": ClaudeUninstall,
    "install": Install,
    "rule list": RuleList,
    "rule add": EnforcedRule,
    "rule enforce": EnforcedRule,
    "rule relax": EnforcedRule,
    "rule test": list[StoppedCall],
    "uninstall": Uninstall,
    "compact run": _COMPACTED | CompactPlan,
    "compact show": CompactShow | CompactDiff | list[ConversationEntry],
    "completion": Completion,
    "context compress": _COMPRESSED_CONTEXT,
    "context delete": ContextDeleted,
    "context import": OllmImport,
    "context set": _CONTEXT,
    "context snapshot": _list[_CONTEXT_SNAPSHOT] | _CONTEXT,
    "context status": _CONTEXT | _CHECKED_CONTEXT | list[Checkpoint] | list[ContextEntry],
    "demo": Demo | DemoRules,
    "doctor": Doctor,
    "error": Failure,
    "export": Export | ExportedFile | ContextExport,
    "fold": Folded,
    "goal add": GoalStatus,
    "goal block": GoalStatus,
    "goal decide": GoalStatus,
    "goal done": GoalStatus,
    "goal next": GoalNext,
    "goal show": GoalStatus | list[GoalStatus],
    "goal start": GoalStatus,
    "hook": Hook,
    "import": _IMPORTED,
    "init": Init,
    "log": list[LogLine],
    "mcp": list[Mcp],
    "add": _ADDED_ITEM,
    "compress": CompressedPhase | CompressedPhases | MemoryClear,
    "memory forget": _FORGOTTEN,
    "memory ingest": IngestResult | _CLOSED,
    "memory prepare": Prepared,
    "memory promote": Promotion,
    "memory resolve": Ending,
    "memory review": MemoryReview,
    "memory show": Item | list[Item],
    "memory search": list[Hit],
    "memory update": Item,
    "phase complete": PhaseChange,
    "phase decide": QueenCheckin,
    "phase start": PhaseChange,
    "recall": Recall,
    "report": Report,
    "share init": Shared,
    "share join": Shared,
    "share leave": Shared,
    "share members": list[Member] | ShareRight,
    "share remove": ShareRemove,
    "share status": ShareStatus,
    "signal": EmittedSignal | list[ActiveSignal],
    "claim": Claim | list[Claim],
    "inbox": Packet | list[Received],
    "roster": Roster,
    "snapshot": _SNAPSHOT | _list[_SNAPSHOT] | SnapshotRestore,
    "state": StateShow | HistoryEntry,
    "graph": Graph | _MERGED | GraphText | GraphFile | MemoryLink,
    "schema": JsonObject | list[Finding],
    "show": JsonObject,
    "status": Status | MemoryStatus | MemoryStats | _VERIFIED,
    "statusline": Statusline,
    "timeline": Timeline | FileHistory,
    "tokens count": _list[_COUNTED] | list[ListedModel],
    "tokens fetch": TokensFetch,
    "tokens use": TokensUse,
    "trace": Trace,
    "trust": _TRUST,
    "undo": LogLine | CompactUndo | SourceUndo,
    "view": View,
    "compactctl compact": CtlCompact,
    "compactctl create-config": CtlCreateConfig,
    "compactctl diff": list[DiffRow],
    "compactctl dry-run": _DRY_RUN,
    "compactctl validate-config": CtlValidateConfig,
}
