"""Goals: what a person wants reached, in their own words, with steps, decisions, files and blockers.

The document is `goals`. Its field `current` names the goal that is worked on, so no sequence of changes, undone or
merged, leaves two. The wording of a goal never changes, and a locked decision is never unlocked. What a model reports on
a goal comes as markers, one a line:

    [CHECKPOINT] step - COMPLETED | IN-PROGRESS | PENDING | BLOCKED
    [DECISION] decision - LOCKED | UNLOCKED
    [ARTIFACT] Created | Modified | Deleted path
    [NEXT] step
    [GOAL] goal

Markers add to the current goal and complete its steps. They never set a goal, because only a person does that.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from aether import prompts
from aether.clock import NewId, parse, stamp
from aether.errors import InvalidInput, NotFound, shown
from aether.store.patch import diff
from aether.text.regex import lazy
from aether.text.tags import neutralize
from aether.text.words import parts, pluralize, runs
from aether.types import (
    Artifact,
    Blocker,
    Change,
    Goal,
    GoalDecision,
    JsonObject,
    Patch,
    Subtask,
    SubtaskStatus,
)

DOCUMENT = "goals"
Status = Literal["active", "paused", "blocked", "completed", "abandoned"]

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
SHOWN_STEPS = 10
SHOWN_ARTIFACTS = 3
BY_MARKER = "Extracted from the text of a model"

# Of one text; more is not a report.
MOST_MARKERS = 200
_MOST_LINE_CHARS = 2_000
_TAG = lazy(
    r"[\s>*+\-•·–—#]*(?:\d{1,3}[.)]\s+)?(?:\[[ xX]\]\s*)?\**(?P<tick>`?)\[\s*(?P<kind>goal|checkpoint|decision|artifact|next)\s*\]"
    r"(?P<shut>`?)\**\s*:?\**\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SUFFIX = (
    r"(?P<text>.*\S)(?:\s*[-–—−]+\s+|\s+[-–—−]+\s*|\s*:\s*|\s*(?=[(\[]))[(\[*_`]*(?P<word>{words})[)\]*_`]*[.!]?"
    r"(?:\s*\(.*\))?"
)
_STATUS_WORDS: Mapping[str, SubtaskStatus] = {
    "completed": "completed", "complete": "completed", "done": "completed", "finished": "completed",
    "in progress": "in-progress", "inprogress": "in-progress", "ongoing": "in-progress", "started": "in-progress",
    "pending": "pending", "todo": "pending", "to do": "pending", "not started": "pending",
    "blocked": "blocked",
}  # fmt: skip
_LOCKS = ("locked", "unlocked")
_ENDED = lazy(
    _SUFFIX.replace("{words}", "|".join(word.replace(" ", r"[\s_-]") for word in (*_STATUS_WORDS, *_LOCKS))),
    re.IGNORECASE | re.DOTALL,
)
_ACTIONS: Mapping[str, str] = {
    "created": "created", "added": "created", "modified": "modified", "changed": "modified", "updated": "modified",
    "deleted": "deleted", "removed": "deleted",
}  # fmt: skip
_ARTIFACT = lazy(
    rf"(?P<action>{'|'.join(_ACTIONS)})\b[*_]*\s*:?\s*(?:`(?P<quoted>[^`]+)`|(?P<path>\S.*?))"
    r"(?:\s+[-–—]+\s+(?P<about>.*))?",
    re.IGNORECASE | re.DOTALL,
)
# The words in the path of a file by which its type is known, and the ends of its name.
_TEST_WORDS = frozenset({"test", "tests", "spec", "specs"})
_DOCUMENT_WORDS, _DOCUMENT_ENDS = frozenset({"doc", "docs", "readme"}), (".md", ".rst", ".txt", ".adoc")
_SETTINGS_WORDS = frozenset({"config", "configs", "configuration"})
_SETTINGS_ENDS = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env")


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


def status_of(document: Mapping[str, Any], goal: Mapping[str, Any]) -> Status:
    """Return the status of one goal of `document`."""
    if ended := goal.get("outcome"):
        return cast("Status", ended)
    if open_blockers(goal):
        return "blocked"
    return "active" if document["current"] == goal["id"] else "paused"


def open_blockers(goal: Mapping[str, Any]) -> list[Blocker]:
    """Return the unresolved blockers of `goal`."""
    return [each for each in goal["blockers"] if not each.get("resolved_at")]


def progress_of(goal: Mapping[str, Any]) -> int:
    """Return how much of `goal` is done, in percent of its steps.

    >>> progress_of({"subtasks": [{"status": "completed"}, {"status": "pending"}, {"status": "blocked"}]})
    33
    """
    steps: list[Subtask] = goal["subtasks"]
    if not steps:
        return 100 if goal.get("outcome") == "completed" else 0
    done = sum(step["status"] == "completed" for step in steps)
    return (200 * done + len(steps)) // (2 * len(steps))


def next_steps(goal: Mapping[str, Any]) -> list[str]:
    """Return what comes next: steps in progress, then steps that nothing holds up, then what was last said."""
    if goal.get("outcome"):
        return []
    done = {step["id"] for step in goal["subtasks"] if step["status"] == "completed"}
    ready = [step for step in goal["subtasks"] if done.issuperset(step.get("depends_on", ()))]
    steps = [step["description"] for step in goal["subtasks"] if step["status"] == "in-progress"]
    steps += [step["description"] for step in ready if step["status"] == "pending"]
    said = goal.get("next_step", "")
    return [*steps, said] if said and _key(said) not in map(_key, steps) else steps


def view(document: Mapping[str, Any], goal: Mapping[str, Any]) -> JsonObject:
    """Return a copy of a stored goal with its `status`, `progress`, `next` and `actual_effort`."""
    minutes = int(goal["worked_seconds"]) // 60
    return {
        **deepcopy(dict(goal)),
        "status": status_of(document, goal),
        "progress": progress_of(goal),
        "next": next_steps(goal),
        "actual_effort": f"{minutes // 60}h {minutes % 60}m",
    }


def views(document: Mapping[str, Any], *, ended: bool = False) -> list[JsonObject]:
    """Return the goals, the current one first, then the newest; those that ended only if `ended`."""
    found = [view(document, goal) for goal in reversed(document["goals"]) if ended or not goal.get("outcome")]
    return sorted(found, key=lambda goal: (goal["id"] != document["current"], "outcome" in goal))


def current(document: Mapping[str, Any]) -> JsonObject | None:
    """Return the goal that is worked on, active or blocked; None without one."""
    for goal in document["goals"]:
        if goal["id"] == document["current"] and not goal.get("outcome"):
            return view(document, goal)
    return None


def find(document: Mapping[str, Any], reference: str = "") -> str:
    """Return the id of the goal that `reference` names: an id, its end, or words of its description; "": the current.

    Open goals come first: a goal that ended is only found if no open one fits.

    Raises:
        NotFound: there is no such goal, or none is current.
        InvalidInput: several fit.
    """
    goals: Sequence[Goal] = document["goals"]
    if not reference.strip():
        if now := current(document):
            return str(now["id"])
        raise NotFound(
            "no goal is active.",
            fix='Start one: "aether goal start GOAL", or "aether goal add TEXT".',
            where="goals",
        )
    words = _key(reference)
    for fits in (
        lambda goal: goal["id"] == reference,
        lambda goal: goal["id"].endswith(reference),
        lambda goal: _key(goal["description"]) == words,
        lambda goal: words in _key(goal["description"]),
    ):
        found = [goal for goal in goals if fits(goal)]
        found = [goal for goal in found if not goal.get("outcome")] or found
        if len(found) > 1:
            raise InvalidInput(
                f"{shown(reference)} fits {len(found)} goals.",
                fix="Name one of " + ", ".join(goal["id"] for goal in found[:5]) + ".",
                where="goals",
            )
        if found:
            return found[0]["id"]
    fix = 'See all with "aether goal list --all".'
    if any(_key(step["description"]) == words for goal in goals for step in goal["subtasks"]):
        fix = "It is a step of a goal: name it with --step."
    raise NotFound(f"there is no goal {shown(reference)}.", fix=fix, where="goals")


def add(
    document: Mapping[str, Any], description: str, *, now: datetime, new_id: NewId, priority: str = "medium",
    steps: Iterable[str] = (), tags: Iterable[str] = (), parent: str = "", effort: str = "",
    evidence: str = "person", start: bool = True,
) -> Change:  # fmt: skip
    """Return the change that adds a goal, and makes it the current one unless `start` is false.

    Raises:
        InvalidInput: a text is empty or too long, the priority is unknown, or there are too many open goals.
        NotFound: there is no goal `parent`.
    """
    if priority not in ("high", "medium", "low"):
        raise InvalidInput(
            f"{shown(priority)} is not a priority.", fix="Use high, medium or low.", where="goals"
        )
    if sum(not goal.get("outcome") for goal in document["goals"]) >= MOST_OPEN:
        raise InvalidInput(
            f"there are {MOST_OPEN} open goals.", fix='End one: "aether goal done GOAL".', where="goals"
        )
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
        goal["subtasks"].append(_new_step(goal, words, "pending", now=now, id=new_id("step", now, nth)))
    if not start:
        goal["paused_at"] = stamp(now)
    after = {**document, "goals": [*document["goals"], goal]}
    return _planned(document, _moved(after, goal["id"], now) if start else after, goal["id"])


def added_again(document: Mapping[str, Any], patch: Patch, *, now: datetime) -> Change | None:
    """Return the change that adds the goal of `patch`, which `add` made of another state, to this one; `now` as then.

    It waits beside a current goal that was started later. None if it is there, or its parent or the room for it is not.
    """
    coming: list[Goal] = [
        step["value"] for step in patch if step["op"] == "add" and step["path"].rpartition("/")[0] == "/goals"
    ]
    held = {goal["id"] for goal in document["goals"]}
    is_full = sum(not goal.get("outcome") for goal in document["goals"]) >= MOST_OPEN
    if (
        len(coming) != 1
        or coming[0]["id"] in held
        or is_full
        or coming[0].get("parent_goal_id", "") not in {"", *held}
    ):
        return None
    goal, at = coming[0], stamp(now)
    after = {**document, "goals": [*document["goals"], goal]}
    since = next(
        (one.get("started_at", "") for one in document["goals"] if one["id"] == document["current"]), ""
    )
    if any(step["path"] == "/current" for step in patch) and since <= at:
        return _planned(document, _moved(after, goal["id"], now), goal["id"])
    waits: Any = {name: value for name, value in goal.items() if name != "started_at"} | {"paused_at": at}
    return _planned(document, {**after, "goals": [*document["goals"], waits]}, goal["id"])


def start(document: Mapping[str, Any], goal_id: str, *, now: datetime) -> Change:
    """Return the change that makes a paused goal the current one; the one before it is paused.

    Raises:
        InvalidInput: it has ended, or is blocked.
    """
    goal = _goal(document, goal_id)
    if goal.get("outcome"):
        raise InvalidInput(
            f"the goal is {goal['outcome']}.",
            fix="Add it again, or undo its end: see aether log.",
            where=goal_id,
        )
    if blockers := open_blockers(goal):
        raise InvalidInput(
            f"the goal is blocked: {shown(blockers[0]['description'])}.",
            fix='Resolve it first: "aether goal unblock --goal GOAL".',
            where=goal_id,
        )
    return _planned(document, _moved(document, goal_id, now), goal_id)


def pause(document: Mapping[str, Any], goal_id: str, *, now: datetime) -> Change:
    """Return the change that pauses the current goal, so that none is current.

    Raises:
        InvalidInput: it is not the current goal.
    """
    if document["current"] != goal_id:
        words = status_of(document, _goal(document, goal_id))
        raise InvalidInput(f"the goal is {words}.", fix="Only the active goal can be paused.", where=goal_id)
    return _planned(document, _moved(document, None, now), goal_id)


def finish(document: Mapping[str, Any], goal_id: str, *, now: datetime, abandoned: bool = False) -> Change:
    """Return the change that ends a goal. Of the goals that ended the newest are kept; the log holds the others.

    Raises:
        InvalidInput: it has ended before, or a blocker is open (unless it is abandoned).
    """
    goal = _goal(document, goal_id)
    if goal.get("outcome"):
        raise InvalidInput(
            f"the goal is {goal['outcome']} already.",
            fix="Name an open one: aether goal list.",
            where=goal_id,
        )
    if not abandoned and (blockers := open_blockers(goal)):
        raise InvalidInput(
            f"the goal is blocked: {shown(blockers[0]['description'])}.",
            fix='Resolve it first ("aether goal unblock"), or abandon the goal (--abandoned).',
            where=goal_id,
        )
    after = _moved(document, None, now) if document["current"] == goal_id else document

    def end(goal: JsonObject) -> None:
        goal["outcome"] = "abandoned" if abandoned else "completed"
        goal["completed_at"] = stamp(now)
        goal.pop("paused_at", None)

    after = _edited(after, goal_id, end)
    ended = sorted((each["completed_at"], each["id"]) for each in after["goals"] if each.get("outcome"))
    old = {each for _, each in ended[:-MOST_ENDED]} - {goal_id}
    result = view(after, _goal(after, goal_id))
    after = {**after, "goals": [each for each in after["goals"] if each["id"] not in old]}
    return Change({DOCUMENT: diff(document, after)}, result=result)


def set_step(
    document: Mapping[str, Any], goal_id: str, words: str, status: SubtaskStatus, *, now: datetime, new_id: NewId,
    depends_on: Iterable[str] = (), blocked_by: str = "", add: bool = True,
) -> Change:  # fmt: skip
    """Return the change that gives a step this status; a step that is not there is added, unless `add` is false.

    `words` are those of the step, whatever their case; `depends_on` names steps that come first, likewise.

    Raises:
        InvalidInput: the text is empty or too long, the goal has ended, or has too many steps.
        NotFound: there is no step of `depends_on`, or, without `add`, none with these words.
    """
    text = _line(words)

    def change(goal: JsonObject) -> None:
        step = _step(goal, text) if add else _known_step(goal, text)
        if step is None:
            if len(goal["subtasks"]) >= MOST_STEPS:
                raise _full("steps", MOST_STEPS, goal_id)
            step = _new_step(goal, text, status, now=now, id=new_id("step", now, 0))
            goal["subtasks"].append(step)
        _set_status(step, status, now)
        if blocked_by:
            step["blocked_by"] = _line(blocked_by)
        if needed := [_known_step(goal, each)["id"] for each in depends_on]:
            step["depends_on"] = list(dict.fromkeys([*step.get("depends_on", []), *needed]))

    return _changed(document, goal_id, change)


def block(
    document: Mapping[str, Any], goal_id: str, description: str, *, now: datetime, new_id: NewId,
    kind: str = "technical-issue",
) -> Change:  # fmt: skip
    """Return the change that adds a blocker.

    Raises:
        InvalidInput: the text is empty or too long, the kind is unknown, or the goal has ended.
    """
    if kind not in ("missing-info", "external-dependency", "technical-issue"):
        raise InvalidInput(
            f"{shown(kind)} is not a kind of blocker.",
            fix="Use missing-info, external-dependency or technical-issue.",
            where="goals",
        )
    blocker = {
        "id": new_id("blocker", now, 0), "description": _line(description), "type": kind, "created_at": stamp(now),
    }  # fmt: skip
    return _changed(document, goal_id, lambda goal: goal["blockers"].append(blocker))


def unblock(
    document: Mapping[str, Any], goal_id: str, which: str = "", *, now: datetime, resolution: str = ""
) -> Change:
    """Return the change that resolves one open blocker, named by words of it or its id, or the only one.

    Raises:
        NotFound: no blocker is open, or none fits.
        InvalidInput: several fit, or the goal has ended.
    """

    def change(goal: JsonObject) -> None:
        found = [
            each
            for each in open_blockers(goal)
            if each["id"] == which or _key(which) in _key(each["description"])
        ]
        if not found:
            raise NotFound(
                f"no open blocker fits {shown(which)}." if which else "no blocker is open.",
                fix='See them with "aether goal show".',
                where=goal_id,
            )
        if len(found) > 1:
            raise InvalidInput(
                f"{len(found)} blockers are open: {'; '.join(shown(each['description']) for each in found)}.",
                fix="Name one by words of it.",
                where=goal_id,
            )
        found[0]["resolved_at"] = stamp(now)
        if resolution:
            found[0]["resolution"] = _line(resolution)

    return _changed(document, goal_id, change)


def decide(
    document: Mapping[str, Any], goal_id: str, description: str, *, now: datetime, new_id: NewId,
    rationale: str = "", alternatives: Iterable[str] = (), locked: bool = True,
) -> Change:  # fmt: skip
    """Return the change that records a decision, or locks the one of the same words. Nothing unlocks one.

    Raises:
        InvalidInput: a text is empty or too long, the goal has ended, or has too many locked decisions.
    """
    text, rejected = _line(description), [_line(each) for each in alternatives]

    def change(goal: JsonObject) -> None:
        if not _record_decision(goal, text, locked=locked, now=now, id=new_id("decision", now, 0)):
            raise _full("locked decisions", MOST_DECISIONS, goal_id)
        decision = next(each for each in goal["decisions"] if _key(each["description"]) == _key(text))
        if rationale:
            decision["rationale"] = _line(rationale)
        decision["alternatives"] = list(dict.fromkeys([*decision["alternatives"], *rejected]))

    return _changed(document, goal_id, change)


def record_artifact(
    document: Mapping[str, Any], goal_id: str, path: str, action: str, *, now: datetime, new_id: NewId, about: str = ""
) -> Change:  # fmt: skip
    """Return the change that records a file that was `created`, `modified` or `deleted`.

    Raises:
        InvalidInput: the path is empty or too long, the action is unknown, or the goal has ended.
    """
    if action not in _ACTIONS.values():
        raise InvalidInput(
            f"{shown(action)} is not an action.", fix="Use created, modified or deleted.", where="goals"
        )
    marker = Marker("artifact", _line(path), action, about)
    return _changed(
        document, goal_id, lambda goal: _record_artifact(goal, marker, now, new_id("artifact", now, 0))
    )


def checkpoint(
    document: Mapping[str, Any], goal_id: str, description: str, *, now: datetime, new_id: NewId, summary: str = "",
    metrics: Iterable[str] = (),
) -> Change:  # fmt: skip
    """Return the change that records the present state of a goal; the newest checkpoints are kept.

    Raises:
        InvalidInput: a text is empty or too long, or the goal has ended.
    """
    text, measured = _line(description), [_line(each) for each in metrics]

    def change(goal: JsonObject) -> None:
        made: list[Artifact] = [each for each in goal["artifacts"] if each["action"] != "deleted"]
        state = {
            "files_modified": _once(each["path"] for each in made if each["type"] != "test"),
            "tests_added": _once(each["path"] for each in made if each["type"] == "test"),
            "decisions_locked": [each["description"] for each in goal["decisions"] if each["locked"]],
            "metrics_recorded": measured,
        }
        entry = {"id": new_id("goalpoint", now, 0), "description": text, "at": stamp(now), "state": state}
        goal["checkpoints"] = [*goal["checkpoints"], {**entry, "summary": summary.strip()}][
            -MOST_CHECKPOINTS:
        ]

    return _changed(document, goal_id, change)


def parse_markers(text: str) -> list[Marker]:
    r"""Return the markers in `text`, in order. Lines that are almost one, or quote the grammar, are left out.

    Case, bullets, numbers, quotes, emphasis, other dashes and "IN PROGRESS" change nothing; the last dash separates
    the status.

    >>> for marker in parse_markers("- [checkpoint] Parse A - B – in progress\n[DECISION] Use SQLite - LOCKED"):
    ...     print(marker.kind, "|", marker.text, "|", marker.word)
    checkpoint | Parse A - B | in-progress
    decision | Use SQLite | locked
    """
    found: list[Marker] = []
    for line in text.splitlines():
        if "[" not in line or len(line) > _MOST_LINE_CHARS:
            continue
        tag = _TAG.fullmatch(line)
        if tag and len(found) < MOST_MARKERS:
            rest = tag["rest"].strip().strip("*").strip()
            rest = rest.removesuffix("`") if tag["tick"] and not tag["shut"] else rest
            marker = _marker(tag["kind"].lower(), " ".join(neutralize(rest).split()))
            if marker and not _is_placeholder(marker.text):
                found.append(marker._replace(text=marker.text[:MOST_CHARS].rstrip()))
    return found


def apply_markers(
    document: Mapping[str, Any], markers: Iterable[Marker], *, now: datetime, new_id: NewId
) -> Change:
    """Return the change that the markers of a text make to the current goal; its result is an `Applied`.

    A completed step is not reopened, a locked decision not unlocked, and what is known is not repeated, so the same
    text twice changes nothing the second time.
    """
    held = current(document)
    every = list(markers)
    known = _key(held["description"]) if held else ""
    proposed = tuple(_once(each.text for each in every if each.kind == "goal" and _key(each.text) != known))
    if held is None:
        return Change({DOCUMENT: []}, result=Applied("", proposed=proposed))
    counts = dict.fromkeys(("checkpoint", "decision", "artifact", "next"), 0)

    def change(goal: JsonObject) -> None:
        for nth, marker in enumerate(every):
            if marker.kind in counts and _apply(goal, marker, now, new_id(marker.kind, now, nth)):
                counts[marker.kind] += 1

    patch = _changed(document, held["id"], change).patches
    applied = Applied(
        held["id"], counts["checkpoint"], counts["decision"], counts["artifact"], counts["next"], proposed
    )
    return Change(patch, result=applied)


def goal_text(goal: Mapping[str, Any], *, without: int = 0) -> str:
    """Return a goal, as `view` gives it, in words for a model; the same goal always gives the same text.

    All locked decisions and open blockers are in it, but for the oldest decisions of a model, as many as it shall be `without`.
    """
    lines = [
        f"Goal: {goal['description']}",
        f"Status: {goal['status']}. Priority: {goal['priority']}.",
    ]
    steps: list[Subtask] = goal["subtasks"]
    left = [step for step in steps if step["status"] != "completed"]
    if steps:
        lines.append(f"Steps: {len(steps) - len(left)} of {len(steps)} completed.")
    for step in sorted(left, key=lambda step: step["status"] != "in-progress")[:SHOWN_STEPS]:
        why = f" ({step['blocked_by']})" if step.get("blocked_by") else ""
        lines.append(f"- {step['status']}: {step['description']}{why}")
    if len(left) > SHOWN_STEPS:
        lines.append(f"- and {len(left) - SHOWN_STEPS} more")
    decisions: list[GoalDecision] = [each for each in goal["decisions"] if each["locked"]]
    if decisions:
        lines.append("Decided, and locked:")
    if without:
        lines.append(f"- {pluralize(without, 'decisions')} of earlier messages")
    by_model = [each["id"] for each in decisions if each["rationale"] == BY_MARKER][:without]
    for each in decisions:
        if each["id"] in by_model:
            continue
        why = "" if each["rationale"] in ("", BY_MARKER) else f" (because: {each['rationale']})"
        lines.append(f"- {each['description']}{why}")
    lines += [f"Blocked by: {each['description']}" for each in open_blockers(goal)]
    if goal.get("next_step"):
        lines.append(f"Next: {goal['next_step']}")
    if files := goal["artifacts"][-SHOWN_ARTIFACTS:]:
        lines.append("Last files: " + "; ".join(f"{each['action']} {each['path']}" for each in files))
    return "\n".join(lines)


def prompt_text(document: Mapping[str, Any], fits: Callable[[str], bool] = bool) -> str:
    """Return the current goal for a system prompt, with the grammar of its markers; "" without one.

    What does not fit loses the oldest decisions that a model reported, as few as possible.
    """
    goal = current(document)
    if not goal:
        return ""

    def text(without: int) -> str:
        return prompts.render("goal", goal=goal_text(goal, without=without)).strip()

    if fits(whole := text(0)):
        return whole
    most = sum(each["locked"] and each["rationale"] == BY_MARKER for each in goal["decisions"])
    return text(bisect_left(range(most), True, key=lambda without: fits(text(without))))


def artifact_type(path: str) -> str:
    """Return the type of the file at `path`.

    >>> [artifact_type(path) for path in ("tests/test_a.py", "latest.py", "README.md", "config/app.yaml")]
    ['test', 'file', 'documentation', 'configuration']
    """
    words = {word for run in runs(path) for word in (run.casefold(), *parts(run))}
    if words & _TEST_WORDS:
        return "test"
    if words & _DOCUMENT_WORDS or path.lower().endswith(_DOCUMENT_ENDS):
        return "documentation"
    return "configuration" if words & _SETTINGS_WORDS or path.lower().endswith(_SETTINGS_ENDS) else "file"


def _is_placeholder(text: str) -> bool:
    """Return whether `text` is the grammar itself, quoted, and so reports nothing."""
    return text in ("…", "...") or (text[0], text[-1]) in (("<", ">"), ("[", "]"), ("{", "}"))


def _marker(kind: str, rest: str) -> Marker | None:
    """Return the marker of this kind in the rest of its line; None if it is malformed."""
    if not rest:
        return None
    if kind == "checkpoint":
        found = _ENDED.fullmatch(rest)
        word = " ".join(found["word"].lower().replace("_", " ").replace("-", " ").split()) if found else ""
        return (
            Marker("checkpoint", found["text"], _STATUS_WORDS[word])
            if found and word in _STATUS_WORDS
            else None
        )
    if kind == "decision":
        text, word = rest, ""
        # "A - B - LOCKED - UNLOCKED": the last word counts, and none stays in the text.
        while (found := _ENDED.fullmatch(text)) and found["word"].lower() in _LOCKS:
            text, word = found["text"], word or found["word"].lower()
        return Marker("decision", text, word)
    if kind == "artifact":
        found = _ARTIFACT.fullmatch(rest)
        if not found:
            return None
        path = found["quoted"] or found["path"]
        return Marker(
            "artifact", path, _ACTIONS[found["action"].lower()], (found["about"] or "")[:MOST_CHARS]
        )
    return Marker("next" if kind == "next" else "goal", rest)


def _apply(goal: JsonObject, marker: Marker, now: datetime, id: str) -> bool:
    """Apply one marker to `goal`; return whether it had room."""
    if marker.kind == "checkpoint":
        step = _step(goal, marker.text)
        if step is None:
            if len(goal["subtasks"]) >= MOST_STEPS:
                return False
            step = _new_step(goal, marker.text, "pending", now=now, id=id)
            goal["subtasks"].append(step)
        if step["status"] != "completed":
            _set_status(step, cast("SubtaskStatus", marker.word), now)
        if marker.word == "completed" and _key(goal.get("next_step", "")) == _key(marker.text):
            del goal["next_step"]
        return True
    if marker.kind == "decision":
        return _record_decision(
            goal, marker.text, locked=marker.word == "locked", now=now, id=id, rationale=BY_MARKER
        )
    if marker.kind == "artifact":
        _record_artifact(goal, marker, now, id)
        return True
    done = _step(goal, marker.text)
    if done is None or done["status"] != "completed":
        goal["next_step"] = marker.text
    return True


def _record_decision(
    goal: JsonObject, text: str, *, locked: bool, now: datetime, id: str, rationale: str = ""
) -> bool:
    """Add a decision or lock the one of the same words; return whether there was room."""
    decisions: list[JsonObject] = goal["decisions"]
    for each in decisions:
        if _key(each["description"]) == _key(text):
            each["locked"] = each["locked"] or locked
            return True
    if len(decisions) >= MOST_DECISIONS:
        loose = next((at for at, each in enumerate(decisions) if not each["locked"]), None)
        if loose is None:
            return False
        del decisions[loose]
    decisions.append(
        {"id": id, "description": text, "rationale": rationale, "alternatives": [], "at": stamp(now), "locked": locked}
    )  # fmt: skip
    return True


def _record_artifact(goal: JsonObject, marker: Marker, now: datetime, id: str) -> None:
    known = {(each["path"], each["action"]) for each in goal["artifacts"]}
    if (marker.text, marker.word) not in known:
        entry = {
            "id": id, "type": artifact_type(marker.text), "path": marker.text, "action": marker.word, "at": stamp(now),
        }  # fmt: skip
        entry |= {"description": marker.about} if marker.about else {}
        goal["artifacts"] = [*goal["artifacts"], entry][-MOST_ARTIFACTS:]


def _new_step(goal: JsonObject, text: str, status: SubtaskStatus, *, now: datetime, id: str) -> JsonObject:
    if len(goal["subtasks"]) >= MOST_STEPS:
        raise _full("steps", MOST_STEPS, str(goal["id"]))
    step: JsonObject = {"id": id, "description": text, "status": "pending", "created_at": stamp(now)}
    _set_status(step, status, now)
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
    return next(
        (
            each
            for each in goal["subtasks"]
            if each["id"] == words or _key(each["description"]) == _key(words)
        ),
        None,
    )


def _known_step(goal: Mapping[str, Any], words: str) -> JsonObject:
    step = _step(goal, words)
    if step is None:
        raise NotFound(
            f"there is no step {shown(words)}.",
            fix='See them with "aether goal show".',
            where=str(goal["id"]),
        )
    return step


def _goal(document: Mapping[str, Any], goal_id: str) -> Goal:
    for goal in document["goals"]:
        if goal["id"] == goal_id:
            return cast("Goal", goal)
    raise NotFound(f"there is no goal {shown(goal_id)}.", fix="See aether goal list --all.", where="goals")


def _changed(document: Mapping[str, Any], goal_id: str, change: Callable[[JsonObject], None]) -> Change:
    """Return the change of one open goal.

    Raises:
        InvalidInput: it has ended.
    """
    if ended := _goal(document, goal_id).get("outcome"):
        raise InvalidInput(
            f"the goal is {ended}.",
            fix="Name an open one, or add a new one: aether goal add TEXT.",
            where=goal_id,
        )
    return _planned(document, _edited(document, goal_id, change), goal_id)


def _edited(document: Mapping[str, Any], goal_id: str, change: Callable[[JsonObject], None]) -> JsonObject:
    goals = list(document["goals"])
    for at, goal in enumerate(goals):
        if goal["id"] == goal_id:
            goals[at] = deepcopy(goal)
            change(goals[at])
    return {**document, "goals": goals}


def _moved(document: Mapping[str, Any], to: str | None, now: datetime) -> JsonObject:
    """Return `document` with another current goal, the time of both kept."""

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


def _planned(before: Mapping[str, Any], after: Mapping[str, Any], goal_id: str) -> Change:
    return Change({DOCUMENT: diff(before, after)}, result=view(after, _goal(after, goal_id)))


def _text(words: str, *, most: int = MOST_CHARS) -> str:
    """Return `words` without the space around them.

    Raises:
        InvalidInput: they are empty, or too many.
    """
    text = words.strip()
    if not text or len(text) > most:
        what = (
            f"the text has {len(text):,} characters, the most is {most:,}." if text else "the text is empty."
        )
        raise InvalidInput(what, fix=f"Write 1 to {most:,} characters.", where="goals")
    return text


def _line(words: str) -> str:
    return _text(" ".join(words.split()))


def _key(text: str) -> str:
    return " ".join(text.casefold().split())


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _full(what: str, most: int, where: str) -> InvalidInput:
    return InvalidInput(
        f"the goal has {most} {what}, the most there can be.", fix="Divide it: aether goal add TEXT --parent GOAL.",
        where=where,
    )  # fmt: skip
