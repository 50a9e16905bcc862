"""Tool work: an agent's tool calls in one stretch of work, in as few notes as possible.

Each file is noted once per stretch however often it was edited, each relevant command with its last result, each
failure together with the run that later succeeded and the files changed in between. All of it is bounded: the oldest
part is noted early, or dropped if its call was never answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable

from aether.hints import Any, NotRequired
from aether.memory.capture.notes import Note, Origin, shorten
from aether.messages.model import as_object, as_text
from aether.messages.records import Record
from aether.messages.shell import (
    ANY_SCRIPT,
    command_signature,
    error_excerpt,
    hides_failure,
    is_notable,
    is_undecided,
    outcome_line,
    outcome_of,
    parts_of,
    prepares,
    short_command,
)
from aether.messages.tool_calls import (
    ASKING_TOOL,
    CAMEL,
    SHELL,
    FileChange,
    WorkTree,
    answers_in,
    as_answered,
    commit_messages,
    commits_in,
    failure_key,
    file_changes,
    is_harmless,
    is_quiet_commit,
    is_refusal,
    message_of,
    new_work_tree,
    place_given,
    publishes,
    record_in_work_tree,
    record_refusal,
    resolves,
    shell_command,
    swaps_of,
    takes_edit_back,
    unknown_outcome,
    without_amended,
    work_tree_lines,
)
from aether.redact.redact import redact, redacted, without_blocks
from aether.text.cleaning import clean, without_escapes
from aether.text.regex import lazy
from aether.tuples import TypedDict
from aether.types import JsonObject

# An agent has few open calls at a time; more were interrupted and will never be answered.
OPEN_CALLS = 256
OPEN_FAILURES = 64
# A stretch with more is a mass change; the oldest are noted at this limit.
FILES = 256
COMMANDS = 128
CHANGED_SINCE = 8
PREPARED_SINCE = 3
FINDING_CHARS = 2_000
PLAN_CHARS = 2_400
ARGUMENT_CHARS = 200
OUTPUT_CHARS = 160

_AGENTS = {"Task", "Agent"}
_BOOKKEEPING = frozenset(
    "todowrite todo_write task_create task_update update_plan spawn_agent send_input close_agent write_stdin".split()
)
_PLANS = frozenset({"todowrite", "todo_write", "task_create", "task_update", "update_plan"})
# A longer list is no plan of one conversation.
MOST_TASKS = 40
TASK_CHARS = 400
# Replaces the note of a work tree whose edits were all undone since.
NOTHING_LEFT = "No edit of this conversation is known to be uncommitted."
# Replaces the note of a list that was emptied since.
EMPTY_PLAN = "The list of tasks was emptied."
LEFT_PLAN = "The list of steps was left behind by later requests."
# Turns with a report after which a list of steps is over: its own, and the next one.
STEPS_LAST = 2
_ACTS = lazy(
    r"(?:^|_)(?:create|update|cancel|book|send|delete|remove|modify|exchange|return|transfer|add|set|insert|replace|append|submit|"
    r"publish|deploy|merge|pay|refund|order|post|write|save|close|assign|move|rename|archive|upload|enable|disable)(?:_|$)"
)
_READS = lazy(
    r"(?:get|list|search|find|read|view|fetch|query|lookup|check|show|describe|calculate|think)(?:_|$)"
)
# Commands, tools and files of aether: their output comes from memory, and is not noted again.
_AETHER_COMMAND = lazy(
    r"(?:^|[;&|(`\n])\s*(?:(?:sudo|time|env|exec|command|uvx|uv run|poetry run|python[\d.]* -m)\s+|[A-Za-z_]\w*=\S*\s+)*"
    r"(?:\S*/)?aether(?:-hook)?(?:\s|\Z)",
    needs=("aether",),
)
_AETHER_TOOL = lazy(r"mcp__(?:\w*_)?aether", re.IGNORECASE, needs=("aether",))
_MEMORY_FILES = "/memories"
_TASK_NUMBER = lazy(r"#(\d+)")
_OPENS = lazy(r"gh (?:pr|issue) create\b", needs=("create",))
# What git and GitHub answer: "[main 1a2b3c4] Add a page", the address of a pull request.
_COMMITTED = lazy(r"^\[[^\]\n]+ [0-9a-f]{7,}\] .+$", re.MULTILINE)
_PUBLISHED_AT = lazy(
    r"^https://\S+/(?:pull|issues|merge_requests)/\d+\S*$",
    re.MULTILINE,
    needs=("/pull/", "/issues/", "/merge_requests/"),
)
# Its place is taken by this where a commit was quiet.
_QUIETLY = "Committed"
_ONLY_PUSHES = lazy(r"git (?:-C \S+ )?push\b[^;&|\n]*")
_TRAILER = lazy(r"\n+agentId: .*\Z", re.DOTALL)
# Claude Code puts a frame around the report of a sub-agent, and indents each of its lines.
_REPORT_FRAME = lazy(r"\A.*?^\[Subagent hand-back\][^\n]*\n", re.DOTALL | re.MULTILINE)
_INDENT = lazy(r"^  ", re.MULTILINE)


class Change(TypedDict):
    """A file changed in this stretch."""

    action: str
    edits: int
    lines: int
    names: list[str]
    first: str
    at: Origin


class Run(TypedDict):
    """A relevant command of this stretch, with its last result."""

    shown: str
    ending: str
    runs: int
    at: Origin


class Failure(TypedDict):
    """A call that failed and has not succeeded since."""

    shown: str
    complaint: str
    times: int
    changed: list[str]
    """The files changed since, newest first."""
    at: Origin
    prepared: NotRequired[list[str]]
    """The commands since that installed or set up something."""


class Call(TypedDict):
    """A call without an answer so far."""

    tool: str
    command: str
    changes: list[list[Any]]
    text: str
    """The noteworthy arguments of a tool that is neither shell nor editor."""
    at: Origin
    plan: NotRequired[JsonObject]
    """The arguments of a tool that keeps the list of tasks."""
    place: NotRequired[str]
    """The directory in which it asks to run its command."""
    noted: NotRequired[bool]
    """Whether a note says that it has no answer."""


class Work(TypedDict):
    """The open work of one agent."""

    calls: dict[str, Call]
    failures: dict[str, Failure]
    files: dict[str, Change]
    commands: dict[str, Run]
    edited: NotRequired[bool]
    """Whether a file changed since the last message."""
    plan: NotRequired[dict[str, list[str]]]
    """The state and text of each task by its number, in order."""
    planned: NotRequired[Origin]
    """The place of the last change of the plan; absent once it is noted."""
    reported: NotRequired[int]
    """How many turns ended with a report since the plan was written as a list of steps; absent if it has tasks of their own."""


class Tree(TypedDict):
    """The files under version control, as the calls of all agents show them."""

    shown: WorkTree
    at: NotRequired[Origin]
    """The place of the last call that changed them; absent once they are noted."""
    partial: NotRequired[bool]
    """Whether the conversation began before its first record."""


def new_work() -> Work:
    """Return the work of an agent before its first call."""
    return Work(calls={}, failures={}, files={}, commands={})


def new_tree() -> Tree:
    """Return the files of a conversation before its first call."""
    return Tree(shown=new_work_tree())


def record_call(work: Work, record: Record, at: Origin) -> None:
    """Record the call of a tool, until it is answered."""
    arguments = record.arguments
    ran = shell_command(arguments) or as_text(arguments.get("code"))
    if record.tool == "memory":
        own = str(arguments.get("path") or arguments.get("old_path") or "").startswith(_MEMORY_FILES)
    else:
        own = bool(_AETHER_TOOL.match(record.tool) or _AETHER_COMMAND.search(ran.split("<<", 1)[0]))
    if own:
        return
    changes = [list(change) for change in file_changes(arguments, ran)]
    text = "" if ran or changes else _described_call(record.tool, arguments)
    if record.tool in _AGENTS:
        at = at | {"caste": str(arguments.get("subagent_type") or "agent")}
    work["calls"].pop(record.call_id, None)
    work["calls"][record.call_id] = Call(
        tool=record.tool, command=redact(without_blocks(ran)), changes=changes, text=text, at=at
    )
    if place := place_given(arguments):
        work["calls"][record.call_id]["place"] = place
    if keeps_tasks(record.tool):
        work["calls"][record.call_id]["plan"] = arguments
    if len(work["calls"]) > OPEN_CALLS:
        del work["calls"][next(iter(work["calls"]))]


def keeps_tasks(tool: str) -> bool:
    """Return whether a tool keeps the list of tasks: a call of it may follow the last message of a turn."""
    return CAMEL.sub("_", tool).lower() in _PLANS


def record_result(work: Work, record: Record, tree: Tree | None = None) -> list[Note]:
    """Record a tool's answer, in `tree` too if given, and return the notes that are complete with it."""
    call = work["calls"].pop(record.call_id, None)
    if call is None:
        return []
    if is_refusal(record.text):
        if tree is not None and (call["changes"] or publishes(call["command"])):
            record_refusal(tree["shown"], [str(path) for path, *_ in call["changes"]], call["command"])
            tree["at"] = call["at"]
        return []
    failed = record.is_error or hides_failure(call["command"], record.text)
    found = [FileChange(*change) for change in call["changes"]]
    changes, swaps = {one.path: str(one.action) for one in found}, swaps_of(found)
    undone = {path for path, swap in swaps.items() if tree and takes_edit_back(tree["shown"], path, swap)}
    if tree is not None and record_in_work_tree(
        tree["shown"],
        changes,
        call["command"],
        record.text,
        swaps=swaps,
        failed=failed,
        directory=record.directory,
        place=call.get("place", ""),
    ):
        tree["at"] = call["at"]
    return _failed(work, call, record) if failed else _succeeded(work, call, record, undone)


def close_tree(tree: Tree, unanswered: Iterable[Call] = ()) -> list[Note]:
    """Return the note of the files under version control, none if nothing changed since the last one, nor a call is `unanswered`."""
    at = tree.pop("at", None)
    lines = [*work_tree_lines(tree["shown"], whole=not tree.get("partial"))]
    for call in unanswered:
        said = "" if call.get("noted") else unknown_outcome(call["command"])
        if said:
            call["noted"] = True  # it may never be answered, and is not said again
            at, lines = (at or call["at"]), [said, *(line for line in lines if line != said)]
    text = " ".join(lines) or (NOTHING_LEFT if "swaps" in tree["shown"] else "")
    return [Note(at, text, "observation", "tree", role="tree", machine=True)] if at and text else []


def close_stretch(work: Work) -> list[Note]:
    """Close the stretch: return its files, commands and changed plan, and forget them; the plan itself goes on."""
    notes = [_change_note(path, change) for path, change in work["files"].items()]
    notes += [_run_note(run) for run in work["commands"].values()]
    work["files"], work["commands"] = {}, {}
    at = work.pop("planned", None)
    if at and "plan" in work:
        lines = [f"[{state}] {text}" for state, text in work["plan"].values()] or [EMPTY_PLAN]
        notes.append(Note(at, "\n".join(lines), "observation", "plan", role="plan", machine=True))
    return notes


def leave_steps(work: Work, at: Origin) -> list[Note]:
    """Count a turn that ended with a report on a list of steps; after the second, return that these were left behind.

    A list of steps is written for one request, and agents seldom tick off the last ones.
    """
    work["reported"] += 1
    if work["reported"] < STEPS_LAST:
        return []
    del work["reported"]
    if not work.pop("plan", None):
        return []
    return [Note(at, LEFT_PLAN, "observation", "plan", role="plan", machine=True)]


def hand_on_plan(work: Work, to: Work) -> None:
    """Give the plan of one stretch, which a compaction ended, to the next."""
    if "plan" in work:
        to["plan"] = work["plan"]
        if "reported" in work:
            to["reported"] = work["reported"]


def close_failures(work: Work) -> list[Note]:
    """Return the failures that were not fixed, and forget them."""
    notes = [_failure_note(failure) for failure in work["failures"].values()]
    work["failures"] = {}
    return notes


def _described_call(tool: str, arguments: JsonObject) -> str:
    plan = arguments.get("plan")
    if isinstance(plan, str):
        return shorten(redact(clean(plan)), PLAN_CHARS)
    name = CAMEL.sub("_", tool.rsplit("__", 1)[-1]).lower()
    if name in _BOOKKEEPING or _READS.match(name) or not _ACTS.search(name):
        return ""
    given = json.dumps(redacted(arguments), ensure_ascii=False, default=str) if arguments else ""
    return f"{tool} {shorten(without_blocks(given), ARGUMENT_CHARS)}".strip()


def _failed(work: Work, call: Call, record: Record) -> list[Note]:
    text = without_blocks(record.text)
    ran = call["command"]
    if is_harmless(ran, text) or not (ran or call["changes"] or call["text"]):
        return []
    name = _failure_key(call)
    # The same check may be named with its directory and without.
    same = (one for one in work["failures"] if _is_again(name, one) and _is_again(one, name))
    known = work["failures"].pop(name if name in work["failures"] else next(same, name), None)
    work["failures"][name] = Failure(
        shown=short_command(ran) if ran else _target(call), complaint=error_excerpt(text),
        times=known["times"] + 1 if known else 1, changed=known["changed"] if known else [],
        at=_again_at(known["at"], call["at"]) if known else call["at"],
    )  # fmt: skip
    if known and (prepared := known.get("prepared")):
        work["failures"][name]["prepared"] = prepared
    if ran:
        work["commands"].pop(_run_key(ran), None)
    if len(work["failures"]) > OPEN_FAILURES:
        return [_failure_note(work["failures"].pop(next(iter(work["failures"]))))]
    return []


def _answer(at: Origin, said: str, nth: int) -> Note:
    """Return the note of an answer with its question: a decision, unless the person asks back."""
    slot = f"answered {nth}" if nth else "answered"
    if said.rstrip('"').endswith("?"):
        return Note(at, said, "user_input", slot, by_person=True, role="request")
    return Note(at, said, "decision", slot, by_person=True)


def _succeeded(work: Work, call: Call, record: Record, undone: Collection[str]) -> list[Note]:
    text = without_blocks(record.text)
    if call["tool"] in _AGENTS:
        found = _TRAILER.sub("", text)
        framed = _REPORT_FRAME.match(found)
        found = redact(clean(_INDENT.sub("", found[framed.end() :]) if framed else found))
        if not found or found.startswith("Async agent launched"):
            return []
        # The sub-agent's own last message is the same text, and gives the same note.
        return [Note(call["at"], shorten(found, FINDING_CHARS), "outcome", "found", role="answer")]
    if call["tool"] == ASKING_TOOL and (said := answers_in(text)):
        return [_answer(call["at"], clean(one), at) for at, one in enumerate(said)]
    _record_plan(work, call, text)
    notes = _published(call, text) if call["command"] else []
    done = _failure_key(call)
    known = work["failures"]
    if known and is_undecided(call["command"], text):
        known = {}
    solved = {name: how for name, each in known.items() if (how := _solves(call, done, name, each))}
    notes += [_solution_note(known.pop(name), how, call, text) for name, how in solved.items()]
    for change in call["changes"]:
        one = as_answered(FileChange(*change), text)
        notes += _changed(work, one, call["at"], undoes=one.path in undone)
    if prepares(call["command"]):
        for failure in work["failures"].values():
            others = [one for one in failure.get("prepared", []) if one != short_command(call["command"])]
            failure["prepared"] = [*others, short_command(call["command"])][-PREPARED_SINCE:]
    if call["command"] and is_notable(call["command"]) and not solved:
        notes += _ran(work, call["command"], text, call["at"])
    elif call["text"]:
        answer = redact(" ".join(without_escapes(text).split()))
        did = call["text"] + (f" → {shorten(answer, OUTPUT_CHARS)}" if answer else "")
        plan = Note(call["at"], call["text"], "outcome", "plan", confirmed=True, role="plan")
        notes.append(
            plan if call["tool"] == "ExitPlanMode" else Note(call["at"], did, "command", "did", machine=True)
        )
    return notes


def _record_plan(work: Work, call: Call, output: str) -> None:
    """Record what a call says about the tasks of its agent: the whole list, a new task, or the state of one."""
    given = call.get("plan")
    if not given:
        return
    plan = work.setdefault("plan", {})
    steps = next((one for key in ("todos", "plan") if isinstance(one := given.get(key), list)), None)
    if plan or steps != []:
        work["planned"] = call["at"]
    if steps is not None:
        work["reported"] = 0
        plan.clear()
        for step in map(as_object, steps):
            text = as_text(step.get("content")) or as_text(step.get("step"))
            if text:
                plan[f"step {len(plan)}"] = [as_text(step.get("status")) or "pending", redact(text)]
    elif known := plan.get(str(given.get("taskId", ""))):
        known[0] = as_text(given.get("status")) or known[0]
        if as_text(given.get("subject")) or as_text(given.get("description")):
            known[1] = _task_text({"subject": known[1].partition(": ")[0], **given})
    elif as_text(given.get("subject")):
        work.pop("reported", None)
        number = _TASK_NUMBER.search(output)
        name = as_text(given.get("taskId")) or (number[1] if number else str(len(plan) + 1))
        plan[name] = [as_text(given.get("status")) or "pending", _task_text(given)]
    for name in [*plan][:-MOST_TASKS]:
        del plan[name]


def _task_text(given: JsonObject) -> str:
    about = " ".join(as_text(given.get("description")).split())[:TASK_CHARS]
    return redact(": ".join(filter(None, (as_text(given.get("subject")), about))))


def _published(call: Call, output: str) -> list[Note]:
    """Return the message of each commit, and title and text of each pull request or issue, that `call` made, below its name."""
    if "git" not in call["command"] and "gh" not in call["command"]:
        return []
    parts = parts_of(call["command"])
    commits = commit_messages(call["command"])
    opened = [said for part in parts if _OPENS.match(part.text) and (said := message_of(part))]
    lines = _COMMITTED.findall(output) or [" ".join(one) for one in commits_in(call["command"], output)]
    if not lines and is_quiet_commit(call["command"], output):
        lines = [_QUIETLY] * len(commits)
    addresses = _PUBLISHED_AT.findall(output)
    found = without_amended(call["command"], _paired(lines, commits))
    if len(addresses) == len(opened):
        found += zip(addresses, opened, strict=True)
    return [
        Note(
            call["at"], f"{redact(name)}\n\n{shorten(said, FINDING_CHARS)}", "outcome",
            f"published {at}" if at else "published", role="commit", machine=True,
        )
        for at, (name, said) in enumerate(found)
    ]  # fmt: skip


def _paired(lines: list[str], messages: list[str]) -> list[tuple[str, str]]:
    """Return the lines that name commits with their messages: in order, else each message with the line of its subject."""
    if len(lines) == len(messages):
        return [*zip(lines, messages, strict=True)]
    return [
        (line, said)
        for said in messages
        for line in [one for one in lines if one.endswith(f" {said.partition(chr(10))[0]}")][:1]
    ]


def _changed(work: Work, change: FileChange, at: Origin, *, undoes: bool) -> list[Note]:
    """Record a change; one that undoes the last edit of its file leaves nothing of both."""
    work["edited"] = True
    for failure in work["failures"].values():
        # The last change is the most likely fix.
        others = [path for path in failure["changed"] if path != change.path]
        failure["changed"] = [change.path, *others][:CHANGED_SINCE]
    known = work["files"].get(change.path)
    if known and undoes and known["action"] == "changed":
        known["edits"] -= 1
        # Which of them were those of the edit that is undone is not known.
        known["names"], known["first"] = [], ""
        if not known["edits"]:
            del work["files"][change.path]
        return []
    if known and known["action"] == "reverted" and not undoes:
        at = _again_at(work["files"].pop(change.path)["at"], at)
        known = None
    if known:
        known["edits"] += 1
        known["at"] = _again_at(known["at"], at)
        known["names"] = list(dict.fromkeys([*known["names"], *change.names]))[:CHANGED_SINCE]
        known["first"] = known["first"] or change.first
        if change.action == "deleted" or known["action"] == "deleted":
            known["action"] = "deleted" if change.action == "deleted" else "changed"
        return []
    work["files"][change.path] = Change(
        action="reverted" if undoes else change.action,
        edits=1,
        lines=change.lines,
        names=list(change.names),
        first=change.first,
        at=at,
    )
    if len(work["files"]) > FILES:
        oldest = next(iter(work["files"]))
        return [_change_note(oldest, work["files"].pop(oldest))]
    return []


def _ran(work: Work, command: str, output: str, at: Origin) -> list[Note]:
    name = _run_key(command)
    known = work["commands"].pop(name, None)
    work["commands"][name] = Run(
        shown=short_command(command), ending=outcome_of(command, output),
        runs=known["runs"] + 1 if known else 1, at=_again_at(known["at"], at) if known else at,
    )  # fmt: skip
    if len(work["commands"]) > COMMANDS:
        return [_run_note(work["commands"].pop(next(iter(work["commands"]))))]
    return []


def _run_key(command: str) -> str:
    # Every commit and push is an event of its own; the tenth run of the tests replaces the ninth.
    name = command_signature(command)
    return short_command(command) if name.startswith(("git ", "gh ")) else name


def _failure_key(call: Call) -> str:
    return failure_key(f"{SHELL}{call['command']}") if call["command"] else _target(call)


def _solves(call: Call, done: str, failed: str, failure: Failure) -> str:
    """Return how the `call`, with the key `done`, is the `failure` with the key `failed` tried again; "" if it is not."""
    shown = failure["shown"]
    # Another commit says nothing of one that failed; a push alone goes as far as the last one.
    again = not publishes(shown) or _ONLY_PUSHES.fullmatch(shown) or shown == short_command(call["command"])
    if not again or failed.partition("\n")[0].endswith(ANY_SCRIPT):
        return ""
    if resolves(done, failed, whole=True):
        return "Worked"
    return "Part of it worked" if resolves(done, failed) else ""


def _is_again(done: str, failed: str) -> bool:
    return resolves(done, failed, whole=True)


def _again_at(first: Origin, last: Origin) -> Origin:
    """Return the origin of what happened again: named by the first time, dated by the last, for what came between is older."""
    return first | {"time": last["time"]}


def _target(call: Call) -> str:
    return str(call["changes"][0][0]) if call["changes"] else call["tool"]


def _change_note(path: str, change: Change) -> Note:
    if change["action"] == "reverted":
        number = f" ({change['edits']} edits)" if change["edits"] > 1 else ""
        return Note(change["at"], f"Reverted {path}{number}", "code_change", f"file {path}", machine=True)
    what = {"created": "Created", "deleted": "Deleted"}.get(change["action"], "Changed")
    size = f" ({change['lines']} lines)" if change["action"] == "created" and change["lines"] else ""
    if change["edits"] > 1:
        size = f" ({change['edits']} edits)"
    about = ", ".join(change["names"]) or change["first"]
    content = f"{what} {path}{size}" + (f": {about}" if about and change["action"] != "deleted" else "")
    return Note(change["at"], content, "code_change", f"file {path}", machine=True)


def _run_note(run: Run) -> Note:
    times = f" ({run['runs']} runs)" if run["runs"] > 1 else ""
    end = f": {run['ending']}" if run["ending"] else ""
    return Note(run["at"], f"Ran `{run['shown']}`{times}{end}", "command", "ran", machine=True)


def _failure_note(failure: Failure) -> Note:
    times = f" {failure['times']} times" if failure["times"] > 1 else ""
    content = f"`{failure['shown']}` failed{times}: {failure['complaint']}"
    return Note(failure["at"], content, "error", "failed", machine=True)


def _solution_note(failure: Failure, how: str, call: Call, output: str) -> Note:
    shown = short_command(call["command"]) if call["command"] else failure["shown"]
    since = [f"changes to {', '.join(failure['changed'])}"] if failure["changed"] else []
    since += [f"`{one}`" for one in failure.get("prepared", [])]
    way = f"after {' and '.join(since)}" if since else "when run again"
    if shown != failure["shown"]:
        way = f"as `{shown}`" + (f" {way}" if since else "")
    end = outcome_of(call["command"], output) if call["command"] else outcome_line(output)
    content = f"{_failure_note(failure).content}\n{how} {way}" + (f": {end}" if end else ".")
    return Note(_again_at(failure["at"], call["at"]), content, "solution", "fixed", machine=True)
