"""Goals: what a person wants reached, in their own words, with steps, decisions, files and blockers.

The document is `goals`. Its field `current` names the goal that is worked on, so no sequence of changes, undone or
merged, leaves two. The wording of a goal never changes, and a locked decision is never unlocked. The report of a model on
a goal consists of markers, one a line:

    [CHECKPOINT] step - COMPLETED | IN-PROGRESS | PENDING | BLOCKED
    [DECISION] decision - LOCKED | UNLOCKED
    [ARTIFACT] Created | Modified | Deleted path
    [NEXT] step
    [GOAL] goal

Markers add to the current goal and complete its steps. They never set a goal, because only a person does that. Where a
function takes `reference`, it is an id, the end of one, or words of a goal's description; "" is the current goal.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from aether import prompts
from aether.clock import NewId, parse, stamp
from aether.errors import InvalidInput, NotFound, require_one_of, shown
from aether.store.patch import diff
from aether.text.regex import lazy
from aether.text.tags import neutralize
from aether.text.words import parts, pluralize, runs
from aether.types import Change, JsonObject, Patch, SubtaskStatus

if TYPE_CHECKING:
    from aether.types import Artifact, Blocker, Goal, Subtask

DOCUMENT = "goals"
Status = Literal["active", "paused", "blocked", "completed", "abandoned"]
Document = Mapping[str, Any]

# The wording of a goal is in every prompt, whole: a page of it would fill a small window.
MOST_GOAL_CHARS = 2_000
MOST_CHARS = 400
MOST_ENDED = 10
MOST_CHECKPOINTS = 20
MOST_OPEN = 100
MOST_STEPS = 100
MOST_DECISIONS = 100
MOST_ARTIFACTS = 200
# In the text for a model; all locked decisions of a person and open blockers are there.
SHOWN_STEPS, SHOWN_ARTIFACTS, SHOWN_PROPOSED = 10, 3, 3
BY_MARKER = "Extracted from the text of a model"
PRIORITIES = ("high", "medium", "low")
BLOCKERS = ("missing-info", "external-dependency", "technical-issue")
ACTIONS = ("created", "modified", "deleted")

# Of one text; more is not a report.
MOST_MARKERS = 200
_MOST_LINE_CHARS = 2_000
_TAG = lazy(
    r"[\s>*+\-•·–—#]*(?:\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s*)?\**(?P<tick>`?)\[\s*(?P<kind>goal|checkpoint|decision|artifact|next)\s*\]"
    r"(?P<shut>`?)\**\s*:?\**\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_STATUS_WORDS: Mapping[str, SubtaskStatus] = {
    "completed": "completed", "complete": "completed", "done": "completed", "finished": "completed",
    "in progress": "in-progress", "inprogress": "in-progress", "ongoing": "in-progress", "started": "in-progress",
    "pending": "pending", "todo": "pending", "to do": "pending", "not started": "pending",
    "blocked": "blocked",
}  # fmt: skip
_LOCKS = ("locked", "unlocked")
_WORDS = "|".join(word.replace(" ", r"[\s_-]") for word in (*_STATUS_WORDS, *_LOCKS))
_WITH_STATUS = lazy(
    r"(?P<text>.*\S)(?:\s*[-–—−]+\s+|\s+[-–—−]+\s*|\s*:\s*|\s*(?=[(\[]))[(\[*_`]*"
    rf"(?P<word>{_WORDS})[)\]*_`]*[.!]?(?:\s*\(.*\))?",
    re.IGNORECASE | re.DOTALL,
)
_ACTION_WORDS: Mapping[str, str] = {
    "created": "created", "added": "created", "modified": "modified", "changed": "modified", "updated": "modified",
    "deleted": "deleted", "removed": "deleted",
}  # fmt: skip
_ARTIFACT = lazy(
    rf"(?P<action>{'|'.join(_ACTION_WORDS)})\b[*_]*\s*:?\s*(?:`(?P<quoted>[^`]+)`|(?P<path>\S.*?))"
    r"(?:\s+[-–—]+\s+(?P<about>.*))?",
    re.IGNORECASE | re.DOTALL,
)
# The type of a file, by the words in its path and the ends of its name.
_TYPES = (
    ("test", {"test", "tests", "spec", "specs"}, ()),
    ("documentation", {"doc", "docs", "readme"}, (".md", ".rst", ".txt", ".adoc")),
    ("configuration", {"config", "configs", "configuration"},
     (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env")),
)  # fmt: skip


class Marker(NamedTuple):
    """One line of a model's report."""

    kind: Literal["goal", "checkpoint", "decision", "artifact", "next"]
    text: str
    """The step, decision, path or goal."""
    word: str = ""
    """Of a checkpoint its status, of a decision `locked`, `unlocked` or nothing, of an artifact its action."""
    about: str = ""
    """More about an artifact."""


class Applied(NamedTuple):
    """The markers of a text that belong to the current goal."""

    goal_id: str
    """Empty if no goal is current: then nothing was applied."""
    checkpoints: int = 0
    decisions: int = 0
    artifacts: int = 0
    next_steps: int = 0
    proposed: tuple[str, ...] = ()
    """Goals that the model named and that are not the current one; a person may add them."""

    @property
    def total(self) -> int:
        """Return the number of applied markers."""
        return self.checkpoints + self.decisions + self.artifacts + self.next_steps


def status_of(document: Document, goal: Mapping[str, Any]) -> Status:
    """Return the status of one goal of `document`."""
    if outcome := goal.get("outcome"):
        return cast("Status", outcome)
    if open_blockers(goal):
        return "blocked"
    return "active" if document["current"] == goal["id"] else "paused"


def open_blockers(goal: Mapping[str, Any]) -> list[Blocker]:
    """Return the unresolved blockers of `goal`."""
    return [blocker for blocker in goal["blockers"] if not blocker.get("resolved_at")]


def progress_of(goal: Mapping[str, Any]) -> int:
    """Return how much of `goal` is done, in percent of its steps.

    >>> progress_of({"subtasks": [{"status": "completed"}, {"status": "pending"}, {"status": "blocked"}]})
    33
    """
    steps: list[Subtask] = goal["subtasks"]
    if not steps:
        return 100 if goal.get("outcome") == "completed" else 0
    completed = sum(step["status"] == "completed" for step in steps)
    return (200 * completed + len(steps)) // (2 * len(steps))


def next_steps(goal: Mapping[str, Any]) -> list[str]:
    """Return what comes next: steps in progress, then steps that nothing holds up, then the last [NEXT] of a model."""
    if goal.get("outcome"):
        return []
    completed = {step["id"] for step in goal["subtasks"] if step["status"] == "completed"}
    ready = [step for step in goal["subtasks"] if completed.issuperset(step.get("depends_on", ()))]
    steps = [step["description"] for step in goal["subtasks"] if step["status"] == "in-progress"]
    steps += [step["description"] for step in ready if step["status"] == "pending"]
    noted = goal.get("next_step", "")
    return [*steps, noted] if noted and _key(noted) not in map(_key, steps) else steps


def view(document: Document, goal: Mapping[str, Any]) -> JsonObject:
    """Return a copy of a stored goal with its `status`, `progress`, `next` and `actual_effort`."""
    minutes = int(goal["worked_seconds"]) // 60
    return {
        **deepcopy(dict(goal)),
        "status": status_of(document, goal),
        "progress": progress_of(goal),
        "next": next_steps(goal),
        "actual_effort": f"{minutes // 60}h {minutes % 60}m",
    }


def views(document: Document, *, ended: bool = False) -> list[JsonObject]:
    """Return the goals, the current one first, then the newest; with `ended` the finished ones too."""
    goals = [view(document, goal) for goal in reversed(document["goals"]) if ended or not goal.get("outcome")]
    return sorted(goals, key=lambda goal: (goal["id"] != document["current"], "outcome" in goal))


def current(document: Document) -> JsonObject | None:
    """Return the goal that is worked on, active or blocked; None without one."""
    goals = (goal for goal in document["goals"] if goal["id"] == document["current"])
    return next((view(document, goal) for goal in goals if not goal.get("outcome")), None)


def find(document: Document, reference: str = "") -> str:
    """Return the id of the goal that `reference` names. Open goals come before finished ones.

    Raises:
        NotFound: there is no such goal, or none is current.
        InvalidInput: several fit.
    """
    goals: Sequence[Goal] = document["goals"]
    if not reference.strip():
        goal = current(document)
        if goal:
            return str(goal["id"])
        fix = 'Start one: "aether goal start GOAL", or "aether goal add TEXT".'
        raise NotFound("no goal is active.", fix=fix, where="goals")
    words = _key(reference)
    for fits in (
        lambda goal: goal["id"] == reference,
        lambda goal: goal["id"].endswith(reference),
        lambda goal: _key(goal["description"]) == words,
        lambda goal: words in _key(goal["description"]),
    ):
        hits = [goal for goal in goals if fits(goal)]
        hits = [goal for goal in hits if not goal.get("outcome")] or hits
        if len(hits) > 1:
            names = ", ".join(goal["id"] for goal in hits[:5])
            what = f"{shown(reference)} fits {len(hits)} goals."
            raise InvalidInput(what, fix=f"Name one of {names}.", where="goals")
        if hits:
            return hits[0]["id"]
    fix = 'See all with "aether goal show --all".'
    if any(_key(step["description"]) == words for goal in goals for step in goal["subtasks"]):
        fix = "It is a step of a goal: name it with --step."
    raise NotFound(f"there is no goal {shown(reference)}.", fix=fix, where="goals")


def add(
    document: Document, description: str, *, now: datetime, new_id: NewId, priority: str = "medium",
    steps: Iterable[str] = (), tags: Iterable[str] = (), parent: str = "", effort: str = "",
    evidence: str = "person", start: bool = True,
) -> Change:  # fmt: skip
    """Return the change that adds a goal, and makes it the current one unless `start` is false.

    Raises:
        InvalidInput: a text is empty or too long, the priority is unknown, or there are too many open goals.
        NotFound: there is no goal `parent`.
    """
    require_one_of(priority, PRIORITIES, "a priority", where="goals")
    if _is_full(document):
        fix = 'End one: "aether goal done GOAL".'
        raise InvalidInput(f"there are {MOST_OPEN} open goals.", fix=fix, where="goals")
    goal: JsonObject = {
        "id": new_id("goal", now, 0),
        "description": _text(description, most=MOST_GOAL_CHARS),
        "priority": priority, "evidence": evidence, "created_at": stamp(now), "worked_seconds": 0,
        "tags": [_line(tag) for tag in tags],
        "subtasks": [], "decisions": [], "artifacts": [], "blockers": [], "checkpoints": [],
    }  # fmt: skip
    if parent:
        goal["parent_goal_id"] = find(document, parent)
    if effort:
        goal["estimated_effort"] = _line(effort)
    for nth, words in enumerate(dict.fromkeys(map(_line, steps))):
        _add_step(goal, words, now=now, id=new_id("step", now, nth))
    if not start:
        goal["paused_at"] = stamp(now)
    after = {**document, "goals": [*document["goals"], goal]}
    return _planned(document, _moved(after, goal["id"], now) if start else after, goal["id"])


def _is_full(document: Document) -> bool:
    return sum(not goal.get("outcome") for goal in document["goals"]) >= MOST_OPEN


def added_again(document: Document, patch: Patch, *, now: datetime) -> Change | None:
    """Return the change that adds the goal of `patch`, which `add` made of another state, to this one; `now` as then.

    It waits beside a current goal that was started later. None if it is there, or its parent or the room for it is not.
    """
    added: list[Goal] = [
        step["value"] for step in patch if step["op"] == "add" and step["path"].rpartition("/")[0] == "/goals"
    ]
    ids = {goal["id"] for goal in document["goals"]}
    if len(added) != 1 or added[0]["id"] in ids or _is_full(document):
        return None
    goal = added[0]
    if goal.get("parent_goal_id", "") not in {"", *ids}:
        return None
    started = [other for other in document["goals"] if other["id"] == document["current"]]
    since = started[0].get("started_at", "") if started else ""
    if any(step["path"] == "/current" for step in patch) and since <= stamp(now):
        after = {**document, "goals": [*document["goals"], goal]}
        return _planned(document, _moved(after, goal["id"], now), goal["id"])
    paused: Any = {name: value for name, value in goal.items() if name != "started_at"}
    paused["paused_at"] = stamp(now)
    return _planned(document, {**document, "goals": [*document["goals"], paused]}, goal["id"])


def start(document: Document, reference: str, *, now: datetime) -> Change:
    """Return the change that makes a paused goal the current one; the one before it is paused.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: it has ended, or is blocked; or several fit.
    """
    goal = _open_goal(document, reference)
    _require_unblocked(goal, 'Resolve it first: "aether goal block --resolved --goal GOAL".')
    return _planned(document, _moved(document, goal["id"], now), goal["id"])


def pause(document: Document, reference: str, *, now: datetime) -> Change:
    """Return the change that pauses the current goal, so that none is current.

    Raises:
        NotFound: none is current, or there is no such goal.
        InvalidInput: it is not the current goal.
    """
    goal_id = find(document, reference)
    if document["current"] != goal_id:
        words = status_of(document, _goal(document, goal_id))
        raise InvalidInput(f"the goal is {words}.", fix="Only the active goal can be paused.", where=goal_id)
    return _planned(document, _moved(document, None, now), goal_id)


def finish(document: Document, reference: str, *, now: datetime, abandoned: bool = False) -> Change:
    """Return the change that ends a goal. The ten most recently finished goals are kept; the log holds the others.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: it has ended before, or a blocker is open (unless it is abandoned).
    """
    goal_id = _open_goal(document, reference)["id"]
    if not abandoned:
        fix = 'Resolve it first ("aether goal block --resolved"), or abandon the goal (--abandoned).'
        _require_unblocked(_goal(document, goal_id), fix)
    after = _moved(document, None, now) if document["current"] == goal_id else document

    def end(goal: JsonObject) -> None:
        goal["outcome"] = "abandoned" if abandoned else "completed"
        goal["completed_at"] = stamp(now)
        goal.pop("paused_at", None)

    after = _edited(after, goal_id, end)
    finished = sorted((goal["completed_at"], goal["id"]) for goal in after["goals"] if goal.get("outcome"))
    old = {name for _, name in finished[:-MOST_ENDED]} - {goal_id}
    result = view(after, _goal(after, goal_id))
    after = {**after, "goals": [goal for goal in after["goals"] if goal["id"] not in old]}
    return Change({DOCUMENT: diff(document, after)}, result=result)


def set_step(
    document: Document, reference: str, words: str, status: SubtaskStatus, *, now: datetime, new_id: NewId,
    depends_on: Iterable[str] = (), blocked_by: str = "", add: bool = True,
) -> Change:  # fmt: skip
    """Return the change that gives a step this status; a step that is not there is added, unless `add` is false.

    `words` are those of the step, whatever their case; `depends_on` names steps that come first, likewise.

    Raises:
        InvalidInput: the text is empty or too long, the goal has ended, or has too many steps.
        NotFound: there is no such goal, no step of `depends_on`, or, without `add`, none with these words.
    """
    text = _line(words)

    def change(goal: JsonObject) -> None:
        step = _step(goal, text) if add else _require_step(goal, text)
        step = step or _add_step(goal, text, now=now, id=new_id("step", now, 0))
        _set_status(step, status, now)
        if blocked_by:
            step["blocked_by"] = _line(blocked_by)
        if needed := [_require_step(goal, name)["id"] for name in depends_on]:
            step["depends_on"] = list(dict.fromkeys([*step.get("depends_on", []), *needed]))

    return _changed(document, reference, change)


def block(
    document: Document, reference: str, description: str, *, now: datetime, new_id: NewId,
    kind: str = "technical-issue",
) -> Change:  # fmt: skip
    """Return the change that adds a blocker.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: the text is empty or too long, the kind is unknown, or the goal has ended.
    """
    require_one_of(kind, BLOCKERS, "a kind of blocker", where="goals")
    blocker = {
        "id": new_id("blocker", now, 0), "description": _line(description), "type": kind, "created_at": stamp(now),
    }  # fmt: skip
    return _changed(document, reference, lambda goal: goal["blockers"].append(blocker))


def unblock(
    document: Document, reference: str, which: str = "", *, now: datetime, resolution: str = ""
) -> Change:
    """Return the change that resolves one open blocker, named by words of it or its id, or the only one.

    Raises:
        NotFound: there is no such goal, no blocker is open, or none fits.
        InvalidInput: several fit, or the goal has ended.
    """

    def change(goal: JsonObject) -> None:
        hits: list[Any] = [
            blocker
            for blocker in open_blockers(goal)
            if blocker["id"] == which or _key(which) in _key(blocker["description"])
        ]
        if not hits:
            what = f"no open blocker fits {shown(which)}." if which else "no blocker is open."
            raise NotFound(what, fix='See them with "aether goal show".', where=goal["id"])
        if len(hits) > 1:
            names = "; ".join(shown(blocker["description"]) for blocker in hits)
            what = f"{len(hits)} blockers are open: {names}."
            raise InvalidInput(what, fix="Name one by words of it.", where=goal["id"])
        hits[0]["resolved_at"] = stamp(now)
        if resolution:
            hits[0]["resolution"] = _line(resolution)

    return _changed(document, reference, change)


def decide(
    document: Document, reference: str, description: str, *, now: datetime, new_id: NewId,
    rationale: str = "", alternatives: Iterable[str] = (), locked: bool = True,
) -> Change:  # fmt: skip
    """Return the change that records a decision, or locks the one of the same words. Nothing unlocks one.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: a text is empty or too long, the goal has ended, or has too many locked decisions.
    """
    text, rejected = _line(description), [_line(alternative) for alternative in alternatives]

    def change(goal: JsonObject) -> None:
        decision = _record_decision(goal, text, locked=locked, now=now, id=new_id("decision", now, 0))
        if decision is None:
            raise _full("locked decisions", MOST_DECISIONS, goal)
        if rationale:
            decision["rationale"] = _line(rationale)
        decision["alternatives"] = list(dict.fromkeys([*decision["alternatives"], *rejected]))

    return _changed(document, reference, change)


def record_artifact(
    document: Document, reference: str, path: str, action: str, *, now: datetime, new_id: NewId, about: str = ""
) -> Change:  # fmt: skip
    """Return the change that records a file that was `created`, `modified` or `deleted`.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: the path is empty or too long, the action is unknown, or the goal has ended.
    """
    require_one_of(action, ACTIONS, "an action", where="goals")
    marker = Marker("artifact", _line(path), action, about)
    return _changed(
        document, reference, lambda goal: _record_artifact(goal, marker, now, new_id("artifact", now, 0))
    )


def checkpoint(
    document: Document, reference: str, description: str, *, now: datetime, new_id: NewId, summary: str = "",
    metrics: Iterable[str] = (),
) -> Change:  # fmt: skip
    """Return the change that records the present state of a goal; the newest checkpoints are kept.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: a text is empty or too long, or the goal has ended.
    """
    text, measured = _line(description), [_line(metric) for metric in metrics]

    def change(goal: JsonObject) -> None:
        present: list[Artifact] = [
            artifact for artifact in goal["artifacts"] if artifact["action"] != "deleted"
        ]
        state = {
            "files_modified": _once(artifact["path"] for artifact in present if artifact["type"] != "test"),
            "tests_added": _once(artifact["path"] for artifact in present if artifact["type"] == "test"),
            "decisions_locked": [
                decision["description"] for decision in goal["decisions"] if decision["locked"]
            ],
            "metrics_recorded": measured,
        }
        entry = {
            "id": new_id("goalpoint", now, 0), "description": text, "at": stamp(now), "state": state,
            "summary": summary.strip(),
        }  # fmt: skip
        goal["checkpoints"] = [*goal["checkpoints"], entry][-MOST_CHECKPOINTS:]

    return _changed(document, reference, change)


def parse_markers(text: str) -> list[Marker]:
    r"""Return the markers in `text`, in order. Lines that are almost one, or quote the grammar, are left out.

    Case, bullets, numbers, quotes, emphasis, other dashes and "IN PROGRESS" change nothing; the last dash separates
    the status.

    >>> for marker in parse_markers("- [checkpoint] Parse A - B – in progress\n[DECISION] Use SQLite - LOCKED"):
    ...     print(marker.kind, "|", marker.text, "|", marker.word)
    checkpoint | Parse A - B | in-progress
    decision | Use SQLite | locked
    """
    markers: list[Marker] = []
    for line in text.splitlines():
        if "[" not in line or len(line) > _MOST_LINE_CHARS or len(markers) >= MOST_MARKERS:
            continue
        tag = _TAG.fullmatch(line)
        if not tag:
            continue
        content = tag["rest"].strip().strip("*").strip()
        content = content.removesuffix("`") if tag["tick"] and not tag["shut"] else content
        marker = _marker(tag["kind"].lower(), " ".join(neutralize(content).split()))
        # Dots and text in brackets are the grammar itself, quoted.
        text = marker.text if marker else "…"
        if marker and text not in ("…", "...") and text[0] + text[-1] not in ("<>", "[]", "{}"):
            markers.append(marker._replace(text=marker.text[:MOST_CHARS].rstrip()))
    return markers


def _marker(kind: str, content: str) -> Marker | None:
    """Return the marker of this kind with the content of its line; None if it is malformed."""
    if not content:
        return None
    if kind == "checkpoint":
        match = _WITH_STATUS.fullmatch(content)
        word = " ".join(re.split(r"[\s_-]+", match["word"].lower())) if match else ""
        status = _STATUS_WORDS.get(word)
        return Marker("checkpoint", match["text"], status) if match and status else None
    if kind == "decision":
        lock = ""
        # "A - B - LOCKED - UNLOCKED": the last word counts, and none stays in the text.
        while (match := _WITH_STATUS.fullmatch(content)) and match["word"].lower() in _LOCKS:
            content, lock = match["text"], lock or match["word"].lower()
        return Marker("decision", content, lock)
    if kind == "artifact":
        match = _ARTIFACT.fullmatch(content)
        if not match:
            return None
        about = (match["about"] or "")[:MOST_CHARS]
        return Marker(
            "artifact", match["quoted"] or match["path"], _ACTION_WORDS[match["action"].lower()], about
        )
    return Marker("next" if kind == "next" else "goal", content)


def apply_markers(document: Document, markers: Iterable[Marker], *, now: datetime, new_id: NewId) -> Change:
    """Return the change that the markers of a text make to the current goal; its result is an `Applied`.

    A completed step is not reopened, a locked decision not unlocked, and nothing is added twice, so the same text twice
    changes nothing the second time.
    """
    goal, listed = current(document), list(markers)
    description = _key(goal["description"]) if goal else ""
    descriptions = (marker.text for marker in listed if marker.kind == "goal")
    proposed = tuple(_once(text for text in descriptions if _key(text) != description))
    if goal is None:
        return Change({DOCUMENT: []}, result=Applied("", proposed=proposed))
    counts = dict.fromkeys(("checkpoint", "decision", "artifact", "next"), 0)

    def change(goal: JsonObject) -> None:
        for nth, marker in enumerate(listed):
            if marker.kind in counts and _apply(goal, marker, now, new_id(marker.kind, now, nth)):
                counts[marker.kind] += 1

    patches = _changed(document, goal["id"], change).patches
    applied = Applied(
        goal["id"], counts["checkpoint"], counts["decision"], counts["artifact"], counts["next"], proposed
    )
    return Change(patches, result=applied)


def as_proposals(markers: Iterable[Marker]) -> list[Marker]:
    """Return the decisions among `markers`, none of them locked: a summary repeats, and nobody decides in it."""
    return [marker._replace(word="unlocked") for marker in markers if marker.kind == "decision"]


def _apply(goal: JsonObject, marker: Marker, now: datetime, id: str) -> bool:
    """Apply one marker to `goal`; return whether it had room."""
    step = _step(goal, marker.text)
    if marker.kind == "checkpoint":
        if step is None:
            if len(goal["subtasks"]) >= MOST_STEPS:
                return False
            step = _add_step(goal, marker.text, now=now, id=id)
        if step["status"] != "completed":
            _set_status(step, cast("SubtaskStatus", marker.word), now)
        if marker.word == "completed" and _key(goal.get("next_step", "")) == _key(marker.text):
            del goal["next_step"]
    elif marker.kind == "decision":
        is_locked = marker.word == "locked"
        return (
            _record_decision(goal, marker.text, locked=is_locked, now=now, id=id, rationale=BY_MARKER)
            is not None
        )
    elif marker.kind == "artifact":
        _record_artifact(goal, marker, now, id)
    elif step is None or step["status"] != "completed":
        goal["next_step"] = marker.text
    return True


def goal_text(goal: Mapping[str, Any], *, without: int = 0) -> str:
    """Return a goal, as `view` gives it, in words for a model; the same goal always gives the same text.

    All locked decisions and open blockers are in it, `without` the oldest so many decisions of a model.
    """
    lines = [f"Goal: {goal['description']}", f"Status: {goal['status']}. Priority: {goal['priority']}."]
    steps: list[Subtask] = goal["subtasks"]
    unfinished = [step for step in steps if step["status"] != "completed"]
    if steps:
        lines.append(f"Steps: {len(steps) - len(unfinished)} of {len(steps)} completed.")
    for step in sorted(unfinished, key=lambda step: step["status"] != "in-progress")[:SHOWN_STEPS]:
        why = f" ({step['blocked_by']})" if step.get("blocked_by") else ""
        lines.append(f"- {step['status']}: {step['description']}{why}")
    if len(unfinished) > SHOWN_STEPS:
        lines.append(f"- and {len(unfinished) - SHOWN_STEPS} more")
    decisions = [decision for decision in goal["decisions"] if decision["locked"]]
    if decisions:
        lines.append("Decided, and locked:")
    if without:
        lines.append(f"- {pluralize(without, 'decisions')} of earlier messages")
    dropped = [decision["id"] for decision in decisions if decision["rationale"] == BY_MARKER][:without]
    for decision in decisions:
        why = "" if decision["rationale"] in ("", BY_MARKER) else f" (because: {decision['rationale']})"
        lines += [f"- {decision['description']}{why}"] if decision["id"] not in dropped else []
    open_decisions = [decision for decision in goal["decisions"] if not decision["locked"]]
    proposed = [decision for decision in open_decisions if decision["rationale"] == BY_MARKER]
    lines += [
        f"Proposed by the model, not decided: {decision['description']}"
        for decision in proposed[-SHOWN_PROPOSED:]
    ]
    lines += [f"Blocked by: {blocker['description']}" for blocker in open_blockers(goal)]
    if goal.get("next_step"):
        lines.append(f"Next: {goal['next_step']}")
    if files := goal["artifacts"][-SHOWN_ARTIFACTS:]:
        lines.append("Last files: " + "; ".join(f"{file['action']} {file['path']}" for file in files))
    return "\n".join(lines)


def prompt_text(document: Document, fits: Callable[[str], bool] = bool) -> str:
    """Return the current goal for a system prompt, with the grammar of its markers; "" without one.

    What does not fit loses the oldest decisions that a model reported, as few as possible.
    """
    goal = current(document)
    if not goal:
        return ""

    def text(without: int) -> str:
        return prompts.render("goal", goal=goal_text(goal, without=without)).strip()

    if fits(complete := text(0)):
        return complete
    most = sum(decision["locked"] and decision["rationale"] == BY_MARKER for decision in goal["decisions"])
    return text(bisect_left(range(most), True, key=lambda without: fits(text(without))))


def artifact_type(path: str) -> str:
    """Return the type of the file at `path`.

    >>> [artifact_type(path) for path in ("tests/test_a.py", "latest.py", "README.md", "config/app.yaml")]
    ['test', 'file', 'documentation', 'configuration']
    """
    words = {word for run in runs(path) for word in (run.casefold(), *parts(run))}
    kinds = (
        kind
        for kind, kind_words, suffixes in _TYPES
        if words & kind_words or path.lower().endswith(suffixes or ("\0",))
    )
    return next(kinds, "file")


def _record_decision(
    goal: JsonObject, text: str, *, locked: bool, now: datetime, id: str, rationale: str = ""
) -> JsonObject | None:
    """Add a decision or lock the one of the same words, and return it; None without room."""
    decisions: list[JsonObject] = goal["decisions"]
    for decision in decisions:
        if _key(decision["description"]) == _key(text):
            decision["locked"] = decision["locked"] or locked
            return decision
    if len(decisions) >= MOST_DECISIONS:
        unlocked = next((index for index, decision in enumerate(decisions) if not decision["locked"]), None)
        if unlocked is None:
            return None
        del decisions[unlocked]
    decisions.append(
        {"id": id, "description": text, "rationale": rationale, "alternatives": [], "at": stamp(now), "locked": locked}
    )  # fmt: skip
    return decisions[-1]


def _record_artifact(goal: JsonObject, marker: Marker, now: datetime, id: str) -> None:
    recorded = {(artifact["path"], artifact["action"]) for artifact in goal["artifacts"]}
    if (marker.text, marker.word) not in recorded:
        entry = {
            "id": id, "type": artifact_type(marker.text), "path": marker.text, "action": marker.word, "at": stamp(now),
        }  # fmt: skip
        entry |= {"description": marker.about} if marker.about else {}
        goal["artifacts"] = [*goal["artifacts"], entry][-MOST_ARTIFACTS:]


def _add_step(goal: JsonObject, text: str, *, now: datetime, id: str) -> JsonObject:
    if len(goal["subtasks"]) >= MOST_STEPS:
        raise _full("steps", MOST_STEPS, goal)
    step: JsonObject = {"id": id, "description": text, "status": "pending", "created_at": stamp(now)}
    goal["subtasks"].append(step)
    return step


def _set_status(step: JsonObject, status: SubtaskStatus, now: datetime) -> None:
    if status == "completed" and step["status"] != "completed":
        step["completed_at"] = stamp(now)
    elif status != "completed":
        step.pop("completed_at", None)
    if status != "blocked":
        step.pop("blocked_by", None)
    step["status"] = status


def _step(goal: Mapping[str, Any], words: str) -> JsonObject | None:
    steps = (
        step for step in goal["subtasks"] if step["id"] == words or _key(step["description"]) == _key(words)
    )
    return next(steps, None)


def _require_step(goal: Mapping[str, Any], words: str) -> JsonObject:
    step = _step(goal, words)
    if step is None:
        fix = 'See them with "aether goal show".'
        raise NotFound(f"there is no step {shown(words)}.", fix=fix, where=str(goal["id"]))
    return step


def _goal(document: Document, goal_id: str) -> JsonObject:
    return next(goal for goal in document["goals"] if goal["id"] == goal_id)


def _open_goal(document: Document, reference: str) -> JsonObject:
    """Return the goal that `reference` names.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: it has ended.
    """
    goal = _goal(document, find(document, reference))
    if outcome := goal.get("outcome"):
        fix = "Name an open one, or add a new one: aether goal add TEXT."
        raise InvalidInput(f"the goal is {outcome}.", fix=fix, where=goal["id"])
    return goal


def _require_unblocked(goal: Mapping[str, Any], fix: str) -> None:
    if blockers := open_blockers(goal):
        what = f"the goal is blocked: {shown(blockers[0]['description'])}."
        raise InvalidInput(what, fix=fix, where=goal["id"])


def _changed(document: Document, reference: str, change: Callable[[JsonObject], None]) -> Change:
    """Return the change of one open goal."""
    goal_id = _open_goal(document, reference)["id"]
    return _planned(document, _edited(document, goal_id, change), goal_id)


def _edited(document: Document, goal_id: str, change: Callable[[JsonObject], None]) -> JsonObject:
    goals = list(document["goals"])
    for index, goal in enumerate(goals):
        if goal["id"] == goal_id:
            goals[index] = deepcopy(goal)
            change(goals[index])
    return {**document, "goals": goals}


def _moved(document: Document, to: str | None, now: datetime) -> JsonObject:
    """Return `document` with another current goal, and the times of both."""

    def leave(goal: JsonObject) -> None:
        since = goal.pop("started_at", "")
        worked = (now - parse(since)).total_seconds() if since else 0.0
        goal["worked_seconds"] += max(0, int(worked))
        goal["paused_at"] = stamp(now)

    def enter(goal: JsonObject) -> None:
        goal.pop("paused_at", None)
        goal["started_at"] = stamp(now)

    if document["current"] == to:
        return dict(document)
    after = _edited(document, document["current"], leave) if document["current"] else dict(document)
    after = _edited(after, to, enter) if to else after
    return {**after, "current": to}


def _planned(before: Document, after: Document, goal_id: str) -> Change:
    return Change({DOCUMENT: diff(before, after)}, result=view(after, _goal(after, goal_id)))


def _text(words: str, *, most: int = MOST_CHARS) -> str:
    """Return `words` without the space around them.

    Raises:
        InvalidInput: they are empty, or too many.
    """
    text = words.strip()
    if not text or len(text) > most:
        what = f"the text has {len(text):,} characters, the limit is {most:,}."
        what = what if text else "the text is empty."
        raise InvalidInput(what, fix=f"Write 1 to {most:,} characters.", where="goals")
    return text


def _line(words: str) -> str:
    return _text(" ".join(words.split()))


def _key(text: str) -> str:
    return " ".join(text.casefold().split())


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _full(what: str, most: int, goal: Mapping[str, Any]) -> InvalidInput:
    fix = "Divide it: aether goal add TEXT --parent GOAL."
    return InvalidInput(f"the goal has {most} {what}, the limit.", fix=fix, where=str(goal["id"]))
