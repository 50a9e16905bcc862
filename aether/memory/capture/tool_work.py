"""Tool work: an agent's tool calls in one stretch of work, as few facts as possible.

Each file is noted once per stretch however often it was edited, each relevant command with its last result, each
failure together with the run that later succeeded and what happened in between. A call failed if its host says so. All of
it is bounded: the oldest part is noted early, or dropped if its call was never answered.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from aether.memory.capture.notes import Note, fact_note, shorten
from aether.messages import shell, tool_calls
from aether.messages.model import as_object, as_text
from aether.redact.redact import redact, redacted, without_blocks
from aether.text.cleaning import clean, without_escapes
from aether.text.regex import lazy
from aether.types import Fact, Step

if TYPE_CHECKING:
    from aether.memory.capture.notes import Origin
    from aether.messages.records import Record
    from aether.types import JsonObject

# An agent has few open calls at a time; more were interrupted and will never be answered.
OPEN_CALLS = 256
OPEN_FAILURES = 64
# A stretch with more is a mass change; the oldest are noted at this limit.
FILES = 256
COMMANDS = 128
# Files changed and commands run between a failure and its success, the last of each.
CHANGED_SINCE = 8
RUN_SINCE = 3
FINDING_CHARS = 2_000
PLAN_CHARS = 4_000
ARGUMENT_CHARS = 200
OUTPUT_CHARS = 160
MOST_WORDS = 32
# A longer list is no plan of one conversation.
MOST_TASKS = 40
TASK_CHARS = 400

_AGENTS = {"Task", "Agent"}
_PLANS = frozenset({"todowrite", "todo_write", "task_create", "task_update", "update_plan"})
# Tools by which hosts manage their own agents, tasks and processes: no act in the world.
_BOOKKEEPING = _PLANS | frozenset(
    "spawn_agent send_input close_agent wait_agent resume_agent write_stdin wait skill ask_user_question "
    "request_user_input kill_shell kill_bash bash_output task_stop task_output tool_search enter_plan_mode".split()
)
_APPROVED_PLAN = "ExitPlanMode"
# Words in the name of a tool that looks at something, and changes nothing.
_LOOKS = frozenset(
    "get list search find read view fetch query lookup check show describe calculate think grep glob ls open click screenshot".split()
)
# Commands and tools of aether: their output comes from memory, and is not noted again.
_AETHER = frozenset({"aether", "aether-hook"})
_MEMORY_FILES = "/memories"
_VERSION_CONTROL = ("git ", "gh ", "glab ")
# The address that a host of code answers.
_PUBLISHED_AT = lazy(r"^https://\S+/(?:pull|issues|merge_requests)/\d+\S*$", re.MULTILINE)
# Claude Code puts a frame around the report of a sub-agent, and indents each of its lines.
_REPORT_FRAME, _REPORT_END, _LAUNCHED = "[Subagent hand-back]", "\nagentId: ", "Async agent launched"


class Entry(TypedDict):
    """A fact of this stretch that may still change, and the place of its note."""

    fact: Fact
    at: Origin


class Failure(Entry):
    """A call that failed and has not succeeded since."""

    changed: list[str]
    """The files changed since, newest first."""
    ran: list[str]
    """The commands run since, newest last."""


class Call(TypedDict):
    """A call without an answer so far."""

    tool: str
    command: str
    changes: list[list[Any]]
    acts: str
    """The call as text, of a tool that is neither shell nor editor and does something."""
    at: Origin
    plan: NotRequired[JsonObject]
    """The arguments of a tool that keeps the list of tasks."""


class Work(TypedDict):
    """The open work of one agent."""

    calls: dict[str, Call]
    failures: dict[str, Failure]
    files: dict[str, Entry]
    commands: dict[str, Entry]
    plan: NotRequired[dict[str, Step]]
    """Each task by its number, in order."""
    planned: NotRequired[Origin]
    """The place of the last change of the plan; absent once it is noted."""


def new_work() -> Work:
    """Return the work of an agent before its first call."""
    return Work(calls={}, failures={}, files={}, commands={})


def record_call(work: Work, record: Record, place: Origin) -> None:
    """Record the call of a tool, until it is answered."""
    arguments = record.arguments
    ran = tool_calls.shell_command(arguments) or as_text(arguments.get("code"))
    if _is_own(record.tool, arguments, ran):
        return
    changes = [list(change) for change in tool_calls.file_changes(arguments, ran)]
    if record.tool in _AGENTS:
        place = place | {"caste": str(arguments.get("subagent_type") or "agent")}
    work["calls"].pop(record.call_id, None)
    work["calls"][record.call_id] = Call(
        tool=record.tool, command=redact(without_blocks(ran)), changes=changes,
        acts="" if ran or changes else _act(record.tool, arguments), at=place,
    )  # fmt: skip
    if keeps_tasks(record.tool):
        work["calls"][record.call_id]["plan"] = arguments
    if len(work["calls"]) > OPEN_CALLS:
        del work["calls"][next(iter(work["calls"]))]


def _is_own(tool: str, arguments: JsonObject, ran: str) -> bool:
    """Return whether a call is one of aether itself."""
    if tool == "memory":
        return str(arguments.get("path") or arguments.get("old_path") or "").startswith(_MEMORY_FILES)
    if tool.startswith("mcp__") and "aether" in tool.split("__")[1].lower():
        return True
    programs = (part.text.split() for part in (shell.parts_of(ran) if "aether" in ran else ()))
    return any(words[0].rpartition("/")[2] in _AETHER or words[1:3] == ["-m", "aether"] for words in programs)


def keeps_tasks(tool: str) -> bool:
    """Return whether a tool keeps the list of tasks: a call of it may follow the last message of a turn."""
    return tool_calls.CAMEL.sub("_", tool).lower() in _PLANS


def refused_call(work: Work, call_id: str) -> Fact:
    """Return what a call that a person refused would have done, as a part of a fact, and forget the call."""
    call = work["calls"].pop(call_id, None)
    if call is None:
        return Fact(kind="answer")
    if call["command"]:
        return Fact(kind="answer", command=shell.short_command(call["command"]))
    if call["changes"]:
        return Fact(kind="answer", path=_target(call))
    return Fact(kind="answer", command=call["tool"])


def record_result(work: Work, record: Record) -> list[Note]:
    """Record a tool's answer, and return the notes that are complete with it."""
    call = work["calls"].pop(record.call_id, None)
    if call is None:
        return []
    text = without_blocks(record.text)
    # Of a chain that failed, the first parts may have committed.
    published = _published(call, text) if call["command"] else []
    if record.is_error or (call["command"] and shell.reports_failure(call["command"], text)):
        return published + _failed(work, call, text)
    if call["tool"] in _AGENTS:
        return _report(call, text)
    _record_plan(work, call, text)
    solved = _solved(work, call, text)
    early = [
        note
        for change in call["changes"]
        for note in _changed(work, tool_calls.as_answered(tool_calls.FileChange(*change), text), call["at"])
    ]
    notes = [*published, *solved, *early]
    if call["acts"]:
        return [*notes, _acted(call, text)]
    if not solved and call["command"] and shell.is_notable(call["command"]):
        if not published or not _is_version_control(call["command"]):
            notes += _ran(work, call["command"], text, call["at"])
        for failure in work["failures"].values():
            command = f"`{shell.short_command(call['command'])}`"
            failure["ran"] = [*(name for name in failure["ran"] if name != command), command][-RUN_SINCE:]
    return notes


def close_stretch(work: Work) -> list[Note]:
    """Close the stretch: return its files, commands and changed plan, and forget them; the plan itself goes on."""
    notes = [_change_note(entry) for entry in work["files"].values()]
    notes += [_run_note(entry) for entry in work["commands"].values()]
    work["files"], work["commands"] = {}, {}
    place = work.pop("planned", None)
    if place and "plan" in work:
        plan = Fact(kind="plan", steps=[*work["plan"].values()])
        notes.append(fact_note(place, plan, "observation", "plan", role="plan"))
    return notes


def hand_on_plan(work: Work, to: Work) -> None:
    """Give the plan of one stretch, which a compaction ended, to the next."""
    if "plan" in work:
        to["plan"] = work["plan"]


def close_failures(work: Work) -> list[Note]:
    """Return the failures that were not fixed, and forget them."""
    notes = [_failure_note(failure) for failure in work["failures"].values()]
    work["failures"] = {}
    return notes


def _act(tool: str, arguments: JsonObject) -> str:
    """Return the call of a tool that does something, as text; "" if it only looks, or is bookkeeping of its host."""
    if tool == _APPROVED_PLAN:
        return shorten(redact(clean(as_text(arguments.get("plan")))), PLAN_CHARS)
    words = tool_calls.tool_words(tool)
    if tool in _AGENTS or "_".join(words) in _BOOKKEEPING or not _LOOKS.isdisjoint(words):
        return ""
    text = json.dumps(redacted(arguments), ensure_ascii=False, default=str) if arguments else ""
    return f"{tool} {shorten(without_blocks(text), ARGUMENT_CHARS)}".strip()


def _acted(call: Call, output: str) -> Note:
    if call["tool"] == _APPROVED_PLAN:
        return Note(call["at"], call["acts"], "decision", "plan", role="plan", confirmed=True)
    answer = shorten(redact(" ".join(without_escapes(output).split())), OUTPUT_CHARS)
    act = Fact(kind="run", command=call["acts"])
    return fact_note(call["at"], act | Fact(kind="run", outcome=answer) if answer else act, "command", "did")


def _report(call: Call, output: str) -> list[Note]:
    """Return the note of a sub-agent's report; its own last message is the same text, and gives the same note."""
    text = output.partition(_REPORT_END)[0]
    head, framed, body = text.partition(_REPORT_FRAME)
    text = redact(clean(textwrap.dedent(body.partition("\n")[2]) if framed else head))
    if not text or text.startswith(_LAUNCHED):
        return []
    return [Note(call["at"], shorten(text, FINDING_CHARS), "outcome", "found", role="answer")]


def _record_plan(work: Work, call: Call, output: str) -> None:
    """Record what a call says about the tasks of its agent: the whole list, a new task, or the state of one."""
    arguments = call.get("plan")
    if not arguments:
        return
    plan = work.setdefault("plan", {})
    steps = next((value for key in ("todos", "plan") if isinstance(value := arguments.get(key), list)), None)
    status, subject = as_text(arguments.get("status")), as_text(arguments.get("subject"))
    if plan or steps != []:
        work["planned"] = call["at"]
    if steps is not None:
        plan.clear()
        for step in map(as_object, steps):
            if text := as_text(step.get("content")) or as_text(step.get("step")):
                plan[f"step {len(plan)}"] = Step(
                    text=redact(text), status=as_text(step.get("status")) or "pending"
                )
    elif task := plan.get(str(arguments.get("taskId", ""))):
        task["status"] = status or task["status"]
        if subject or as_text(arguments.get("description")):
            task["text"] = _task_text({"subject": task["text"].partition(": ")[0], **arguments})
    elif subject:
        number = output.partition("#")[2].split(" ", 1)[0]
        name = as_text(arguments.get("taskId")) or (number if number.isdecimal() else str(len(plan) + 1))
        plan[name] = Step(text=_task_text(arguments), status=status or "pending")
    for name in [*plan][:-MOST_TASKS]:
        del plan[name]


def _task_text(arguments: JsonObject) -> str:
    about = " ".join(as_text(arguments.get("description")).split())[:TASK_CHARS]
    return redact(": ".join(filter(None, (as_text(arguments.get("subject")), about))))


def _published(call: Call, output: str) -> list[Note]:
    """Return the commits, pushes, pull requests and issues that `call` made, as its output names them."""
    parts, place = shell.parts_of(call["command"]), call["at"]
    verbs = {step[0] for part in parts if (step := shell.git_step(part))}
    notes: list[Note] = []
    commits = tool_calls.commits_in(call["command"], output)
    messages = tool_calls.commit_messages(call["command"]) if commits else []
    bodies = dict(reversed([_subject_and_body(message) for message in messages]))
    for commit in commits:
        fields = {**commit._asdict(), "body": bodies.get(commit.subject, "")}
        notes.append(_publication(place, fields, len(notes)))
    opened = [tool_calls.message_of(part) for part in parts if _opens(part.text)]
    addresses = _PUBLISHED_AT.findall(output) if opened else []
    if len(addresses) == len(opened):
        for address, message in zip(addresses, opened, strict=True):
            subject, body = _subject_and_body(message)
            notes.append(_publication(place, {"id": address, "subject": subject, "body": body}, len(notes)))
    return notes + ([*_pushed(place, output)] if "push" in verbs else [])


def _pushed(place: Origin, output: str) -> Iterator[Note]:
    """Yield the branches that git says it pushed: "To URL", and below it " * [new branch] main -> main"."""
    remote = ""
    for line in output.split("\n"):
        if line.startswith("To "):
            remote = line[3:].strip()
        elif remote and line[:1] == " " and line[1:2] in (" ", "+", "*") and " -> " in line:
            branch = line.rpartition(" -> ")[2].split(" ")[0]
            yield fact_note(
                place, Fact(kind="push", branch=branch, remote=remote), "command", f"pushed {branch}"
            )


def _publication(place: Origin, fields: dict[str, str], nth: int) -> Note:
    texts: Any = {name: shorten(text, FINDING_CHARS) for name, text in fields.items() if text}
    slot = f"published {nth}" if nth else "published"
    return fact_note(place, Fact(kind="commit") | texts, "outcome", slot, role="commit")


def _subject_and_body(message: str) -> tuple[str, str]:
    subject, _, body = message.partition("\n")
    return subject.strip(), body.strip()


def _opens(command: str) -> bool:
    words = command.split()[:3]
    return words[:1] in (["gh"], ["glab"]) and words[1:2] != ["api"] and "create" in words


def _is_version_control(command: str) -> bool:
    return all(
        part.text.startswith(_VERSION_CONTROL)
        for part in shell.parts_of(command)
        if shell.is_notable(part.text)
    )


def _failed(work: Work, call: Call, text: str) -> list[Note]:
    command = call["command"]
    if tool_calls.is_harmless(command, text) or not (command or call["changes"] or call["acts"]):
        return []
    key = _failure_key(call)
    # The same check may be named with its directory and without.
    same = (
        name
        for name in work["failures"]
        if tool_calls.resolves(key, name, whole=True) and tool_calls.resolves(name, key, whole=True)
    )
    before = work["failures"].pop(key if key in work["failures"] else next(same, key), None)
    fact = (
        _run_fact(command, text)
        if command
        else Fact(kind="run", command=f"{call['tool']} {_target(call)}".strip())
    )
    fact |= Fact(
        kind="run",
        failed=True,
        times=1 + (before["fact"]["times"] if before else 0),
        outcome=shell.error_excerpt(text),
    )
    work["failures"][key] = Failure(
        fact=fact, at=_again_at(before["at"], call["at"]) if before else call["at"],
        changed=before["changed"] if before else [], ran=before["ran"] if before else [],
    )  # fmt: skip
    if command:
        work["commands"].pop(_run_key(command), None)
    if len(work["failures"]) > OPEN_FAILURES:
        return [_failure_note(work["failures"].pop(next(iter(work["failures"]))))]
    return []


def _solved(work: Work, call: Call, text: str) -> list[Note]:
    """Return the notes of the failures that `call` is the second try of, and forget them."""
    if not work["failures"] or shell.is_undecided(call["command"], text):
        return []
    key = _failure_key(call)
    again = [
        name for name, failure in work["failures"].items()
        if tool_calls.resolves(key, name) and not name.partition("\n")[0].endswith(shell.ANY_SCRIPT)
        and not (_commits(command := failure["fact"].get("command", "")) and command != shell.short_command(call["command"]))
    ]  # fmt: skip
    return [_solution_note(work["failures"].pop(name), call, text) for name in again]


def _commits(command: str) -> bool:
    """Return whether `command` commits: another commit says nothing of one that failed."""
    steps = map(shell.git_step, shell.parts_of(command) if "git" in command else ())
    return any(step is not None and step[0] == "commit" for step in steps)


def _changed(work: Work, change: tool_calls.FileChange, place: Origin) -> Iterator[Note]:
    """Record a change of a file."""
    for failure in work["failures"].values():
        # The last change is the most likely fix.
        earlier_paths = [path for path in failure["changed"] if path != change.path]
        failure["changed"] = [change.path, *earlier_paths][:CHANGED_SINCE]
    before = work["files"].get(change.path)
    if before:
        fact = before["fact"]
        fact["times"] += 1
        fact["names"] = [*dict.fromkeys([*fact["names"], *change.names])][:CHANGED_SINCE]
        before["at"] = _again_at(before["at"], place)
        if "deleted" in (change.action, fact["action"]):
            fact["action"] = "deleted" if change.action == "deleted" else "changed"
        return
    fact = Fact(
        kind="change",
        path=change.path,
        action=change.action,
        names=[*change.names],
        times=1,
        lines=change.lines,
    )
    work["files"][change.path] = Entry(fact=fact, at=place)
    if len(work["files"]) > FILES:
        yield _change_note(work["files"].pop(next(iter(work["files"]))))


def _ran(work: Work, command: str, output: str, place: Origin) -> list[Note]:
    key = _run_key(command)
    before = work["commands"].pop(key, None)
    fact = _run_fact(command, output)
    fact["times"] = 1 + (before["fact"]["times"] if before else 0)
    if outcome := shell.outcome_of(command, output):
        fact["outcome"] = outcome
    work["commands"][key] = Entry(fact=fact, at=_again_at(before["at"], place) if before else place)
    if len(work["commands"]) > COMMANDS:
        return [_run_note(work["commands"].pop(next(iter(work["commands"]))))]
    return []


def _run_fact(command: str, output: str) -> Fact:
    """Return the fields of a run that its command and its host's frame around the output have."""
    shortened = shell.short_command(command)
    fact = Fact(kind="run", command=shortened, argv=_words(shortened))
    code = shell.exit_code(output)
    return fact if code is None else fact | Fact(kind="run", exit=code)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)[:MOST_WORDS]
    except ValueError:  # a quotation without an end
        return command.split()[:MOST_WORDS]


def _run_key(command: str) -> str:
    # Every commit and push is an event of its own; the tenth run of the tests replaces the ninth.
    name = shell.command_signature(command)
    return shell.short_command(command) if name.startswith(_VERSION_CONTROL) else name


def _failure_key(call: Call) -> str:
    return (
        tool_calls.failure_key(f"{tool_calls.SHELL}{call['command']}") if call["command"] else _target(call)
    )


def _again_at(first: Origin, last: Origin) -> Origin:
    """Return the origin of what happened again: named by the first time, dated by the last, for what came between is older."""
    return first | {"time": last["time"]}


def _target(call: Call) -> str:
    return str(call["changes"][0][0]) if call["changes"] else call["tool"]


def _change_note(entry: Entry) -> Note:
    return fact_note(entry["at"], entry["fact"], "code_change", f"file {entry['fact']['path']}")


def _run_note(entry: Entry) -> Note:
    return fact_note(entry["at"], entry["fact"], "command", "ran")


def _failure_note(failure: Failure) -> Note:
    return fact_note(failure["at"], failure["fact"], "error", "failed")


def _solution_note(failure: Failure, call: Call, output: str) -> Note:
    outcome = shell.outcome_of(call["command"], output) if call["command"] else shell.outcome_line(output)
    since: Sequence[str] = [*failure["changed"], *failure["ran"]]
    fields = {name: value for name, value in failure["fact"].items() if name not in ("exit", "outcome")}
    complaint = failure["fact"].get("outcome", "")
    fact: Any = {**fields, "failed": False, "after": [*since], "body": complaint, "outcome": outcome}
    return fact_note(_again_at(failure["at"], call["at"]), fact, "solution", "fixed")
