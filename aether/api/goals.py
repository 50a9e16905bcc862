"""Goals of a home: add, start, pause, block, decide, finish, and what a model's text says of them.

One document, so that the memory of the colony, its briefing and every conversation speak of the same goal. Each change
is one journaled transaction that `aether undo` reverses. Secrets are replaced before anything is stored. Where a function
takes `goal`, it is an id, the end of one, or words of the goal's description; "" is the current goal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from aether.api.home import Home, change, now, read
from aether.clock import new_id
from aether.conversation import goals as pure
from aether.conversation.goals import Applied
from aether.errors import public
from aether.redact.redact import redact, without_whole_blocks
from aether.store.authors import Author
from aether.types import Change, JsonObject, SubtaskStatus

Document = Mapping[str, Any]


@public
def add_goal(
    description: str, *, priority: str = "medium", steps: Iterable[str] = (), tags: Iterable[str] = (),
    parent: str = "", effort: str = "", start: bool = True, home: Home = None,
) -> JsonObject:  # fmt: skip
    """Add a goal in a person's words and return it; it becomes the active one, unless `start` is false.

    Raises:
        InvalidInput: a text is empty or too long, the priority is unknown, or there are too many open goals.
        NotFound: there is no goal `parent`.
    """
    texts = [_plain(each) for each in steps]
    return _change(
        "add goal",
        lambda document: pure.add(
            document, _plain(description), now=now(), new_id=new_id, priority=priority, steps=texts,
            tags=[_plain(tag) for tag in tags], parent=parent, effort=_plain(effort), start=start,
        ),
        home,
    )  # fmt: skip


@public
def goals(*, ended: bool = False, home: Home = None) -> list[JsonObject]:
    """Return the open goals, the current one first, then the newest; with `ended` also those that ended.

    Each has its `status` (active, paused, blocked, completed, abandoned), `progress` in percent, `next` and
    `actual_effort` beside what is stored.
    """
    return pure.views(_document(home), ended=ended)


@public
def goal(reference: str = "", *, home: Home = None) -> JsonObject:
    """Return one goal.

    Raises:
        NotFound: there is no such goal, or none is current.
        InvalidInput: several fit.
    """
    document = _document(home)
    wanted = pure.find(document, reference)
    return next(each for each in pure.views(document, ended=True) if each["id"] == wanted)


@public
def current_goal(*, home: Home = None) -> JsonObject | None:
    """Return the goal that is worked on, active or blocked; None without one."""
    return pure.current(_document(home))


@public
def start_goal(goal: str, *, home: Home = None) -> JsonObject:
    """Make a paused goal the active one, pause the one before it, and return it.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: it has ended, or is blocked; or several fit.
    """
    return _of_goal("start goal", goal, lambda document, found: pure.start(document, found, now=now()), home)


@public
def pause_goal(goal: str = "", *, home: Home = None) -> JsonObject:
    """Pause the active goal and return it; none is active then.

    Raises:
        NotFound: none is active.
        InvalidInput: another one is.
    """
    return _of_goal("pause goal", goal, lambda document, found: pure.pause(document, found, now=now()), home)


@public
def finish_goal(goal: str = "", *, abandoned: bool = False, home: Home = None) -> JsonObject:
    """Complete or abandon a goal and return it. The ten newest that ended are kept; the log holds the others.

    Raises:
        NotFound: there is no such goal.
        InvalidInput: it has ended before, or is blocked and not abandoned.
    """
    return _of_goal(
        "finish goal", goal, lambda document, found: pure.finish(document, found, now=now(), abandoned=abandoned), home
    )  # fmt: skip


@public
def set_step(
    words: str, status: SubtaskStatus = "pending", *, goal: str = "", depends_on: Iterable[str] = (),
    blocked_by: str = "", add: bool = True, home: Home = None,
) -> JsonObject:  # fmt: skip
    """Add a step to a goal, or change the status of the one with these words, and return the goal.

    Raises:
        NotFound: there is no such goal, no such step in `depends_on`, or no step with these words and `add` is false.
        InvalidInput: a text is empty or too long, the goal has ended, or has too many steps.
    """
    needed = [_plain(each) for each in depends_on]
    return _of_goal(
        "set step", goal,
        lambda document, found: pure.set_step(
            document, found, _plain(words), status, now=now(), new_id=new_id, depends_on=needed,
            blocked_by=_plain(blocked_by), add=add,
        ),
        home,
    )  # fmt: skip


@public
def next_step(*, goal: str = "", home: Home = None) -> list[str]:
    """Return what comes next for a goal, first things first.

    Raises:
        NotFound: there is no such goal, or none is current.
    """
    document = _document(home)
    wanted = pure.find(document, goal)
    return next(pure.next_steps(each) for each in document["goals"] if each["id"] == wanted)


@public
def block_goal(
    description: str, *, kind: str = "technical-issue", goal: str = "", home: Home = None
) -> JsonObject:
    """Add a blocker to a goal and return the goal, which is blocked until it is resolved.

    Raises:
        NotFound: there is no such goal, or none is current.
        InvalidInput: the text is empty or too long, the kind is unknown, or the goal has ended.
    """
    return _of_goal(
        "block goal", goal,
        lambda document, found: pure.block(document, found, _plain(description), now=now(), new_id=new_id, kind=kind),
        home,
    )  # fmt: skip


@public
def unblock_goal(blocker: str = "", *, resolution: str = "", goal: str = "", home: Home = None) -> JsonObject:
    """Resolve one blocker, named by words of it, or the only one, and return the goal.

    Raises:
        NotFound: there is no such goal or blocker.
        InvalidInput: several blockers fit, or the goal has ended.
    """
    return _of_goal(
        "unblock goal", goal,
        lambda document, found: pure.unblock(document, found, _plain(blocker), now=now(), resolution=_plain(resolution)),
        home,
    )  # fmt: skip


@public
def decide_goal(
    decision: str, *, rationale: str = "", alternatives: Iterable[str] = (), locked: bool = True, goal: str = "",
    home: Home = None,
) -> JsonObject:  # fmt: skip
    """Record a decision for a goal, or lock the one of the same words, and return the goal. Nothing unlocks one.

    Raises:
        NotFound: there is no such goal, or none is current.
        InvalidInput: a text is empty or too long, the goal has ended, or has too many locked decisions.
    """
    rejected = [_plain(each) for each in alternatives]
    return _of_goal(
        "decide", goal,
        lambda document, found: pure.decide(
            document, found, _plain(decision), now=now(), new_id=new_id, rationale=_plain(rationale),
            alternatives=rejected, locked=locked,
        ),
        home,
    )  # fmt: skip


@public
def record_artifact(
    path: str, action: str, *, about: str = "", goal: str = "", home: Home = None
) -> JsonObject:
    """Record a file that the work for a goal `created`, `modified` or `deleted`, and return the goal.

    Raises:
        NotFound: there is no such goal, or none is current.
        InvalidInput: the path is empty or too long, the action is unknown, or the goal has ended.
    """
    return _of_goal(
        "record artifact", goal,
        lambda document, found: pure.record_artifact(
            document, found, _plain(path), action, now=now(), new_id=new_id, about=_plain(about)
        ),
        home,
    )  # fmt: skip


@public
def checkpoint_goal(
    description: str, *, summary: str = "", metrics: Iterable[str] = (), goal: str = "", home: Home = None
) -> JsonObject:
    """Record the present state of a goal and return the goal; its twenty newest checkpoints are kept.

    Raises:
        NotFound: there is no such goal, or none is current.
        InvalidInput: a text is empty or too long, or the goal has ended.
    """
    measured = [_plain(each) for each in metrics]
    return _of_goal(
        "checkpoint goal", goal,
        lambda document, found: pure.checkpoint(
            document, found, _plain(description), now=now(), new_id=new_id, summary=_plain(summary), metrics=measured
        ),
        home,
    )  # fmt: skip


def prompt_text(fits: Callable[[str], bool] = bool, *, home: Home = None) -> str:
    """Return the current goal for a system prompt, "" without one; the same bytes as long as it does not change.

    What does not fit loses the oldest decisions that a model reported.
    """
    return pure.prompt_text(_document(home), fits)


def guidance(*, home: Home = None) -> str:
    """Return the current goal in words for a summariser, "" without one."""
    found = pure.current(_document(home))
    return pure.goal_text(found) if found else ""


def apply_markers(text: str, *, home: Home = None) -> Applied:
    """Apply the markers in a model's text to the current goal, and return what they were.

    The same text twice changes nothing the second time. A text without markers does not open the home.
    """
    markers = pure.parse_markers(_plain(text)) if "[" in text else []
    if not markers:
        return Applied("")
    author = Author("apply markers", by="model")
    done = change(
        home,
        lambda documents: pure.apply_markers(documents[pure.DOCUMENT], markers, now=now(), new_id=new_id),
        author,
    )
    return cast("Applied", done.result)


def _document(home: Home) -> Document:
    found: JsonObject = read(home).documents[pure.DOCUMENT]
    return found


def _change(operation: str, plan: Callable[[Document], Change], home: Home) -> JsonObject:
    done = change(home, lambda documents: plan(documents[pure.DOCUMENT]), Author(operation))
    found: JsonObject = done.result
    return found


def _of_goal(
    operation: str, reference: str, plan: Callable[[Document, str], Change], home: Home
) -> JsonObject:
    return _change(operation, lambda document: plan(document, pure.find(document, reference)), home)


def _plain(text: str) -> str:
    """Return `text` without secrets, private blocks and blocks that aether injected."""
    return redact(without_whole_blocks(text))
