"""Goals of a home: add, start, pause, block, decide, finish, and the markers in a model's text.

One document, so that the memory of the colony, its briefing and every conversation speak of the same goal. Each change
is one journaled transaction that `aether undo` reverses. Secrets are replaced before anything is stored. Where a function
takes `goal`, it is an id, the end of one, or words of the goal's description; "" is the current goal. All of them raise
`NotFound` if there is no such goal, and `InvalidInput` if several fit, it has ended, or a text is empty or too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from aether.api.home import Home, change, now, read
from aether.clock import new_id
from aether.conversation import goals as pure
from aether.conversation.goals import Applied
from aether.errors import Refused, public
from aether.redact.redact import redact, without_whole_blocks
from aether.store.authors import MODEL, Author
from aether.types import Change, JsonObject, SubtaskStatus


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
    edit = partial(
        pure.add, description=_plain(description), new_id=new_id, priority=priority, steps=_texts(steps), tags=_texts(tags),
        parent=parent, effort=_plain(effort), start=start,
    )  # fmt: skip
    return _change("add goal", edit, home)


@public
def goals(*, ended: bool = False, home: Home = None) -> list[JsonObject]:
    """Return the open goals, the current one first, then the newest; with `ended` also those that ended.

    Each has its `status` (active, paused, blocked, completed, abandoned), `progress` in percent, `next` and
    `actual_effort` beside what is stored.
    """
    return pure.views(read(home).documents[pure.DOCUMENT], ended=ended)


@public
def goal(reference: str = "", *, home: Home = None) -> JsonObject:
    """Return one goal.

    Raises:
        NotFound: there is no such goal, or none is current.
        InvalidInput: several fit.
    """
    document = read(home).documents[pure.DOCUMENT]
    goal_id = pure.find(document, reference)
    return next(goal for goal in pure.views(document, ended=True) if goal["id"] == goal_id)


@public
def current_goal(*, home: Home = None) -> JsonObject | None:
    """Return the goal that is worked on, active or blocked; None without one."""
    return pure.current(read(home).documents[pure.DOCUMENT])


@public
def start_goal(goal: str, *, home: Home = None) -> JsonObject:
    """Make a paused goal the active one, pause the one before it, and return it; a blocked one is not started."""
    return _change("start goal", partial(pure.start, reference=goal), home)


@public
def pause_goal(goal: str = "", *, home: Home = None) -> JsonObject:
    """Pause the active goal and return it; none is active then."""
    return _change("pause goal", partial(pure.pause, reference=goal), home)


@public
def finish_goal(goal: str = "", *, abandoned: bool = False, home: Home = None) -> JsonObject:
    """Complete a goal, or abandon it even if it is blocked, and return it. The ten last finished goals are kept."""
    return _change("finish goal", partial(pure.finish, reference=goal, abandoned=abandoned), home)


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
    edit = partial(
        pure.set_step, reference=goal, words=_plain(words), status=status, new_id=new_id, depends_on=_texts(depends_on),
        blocked_by=_plain(blocked_by), add=add,
    )  # fmt: skip
    return _change("set step", edit, home)


@public
def next_step(*, goal: str = "", home: Home = None) -> list[str]:
    """Return what comes next for a goal, first things first.

    Raises:
        NotFound: there is no such goal, or none is current.
    """
    document = read(home).documents[pure.DOCUMENT]
    goal_id = pure.find(document, goal)
    return next(pure.next_steps(goal) for goal in document["goals"] if goal["id"] == goal_id)


@public
def block_goal(
    description: str, *, kind: str = "technical-issue", goal: str = "", home: Home = None
) -> JsonObject:
    """Add a blocker to a goal and return the goal, which is blocked until it is resolved."""
    edit = partial(pure.block, reference=goal, description=_plain(description), new_id=new_id, kind=kind)
    return _change("block goal", edit, home)


@public
def unblock_goal(blocker: str = "", *, resolution: str = "", goal: str = "", home: Home = None) -> JsonObject:
    """Resolve one blocker, named by words of it, or the only one, and return the goal."""
    edit = partial(pure.unblock, reference=goal, which=_plain(blocker), resolution=_plain(resolution))
    return _change("unblock goal", edit, home)


@public
def decide_goal(
    decision: str, *, rationale: str = "", alternatives: Iterable[str] = (), locked: bool = True, goal: str = "",
    home: Home = None,
) -> JsonObject:  # fmt: skip
    """Record a decision for a goal, or lock the one of the same words, and return the goal. Nothing unlocks one."""
    edit = partial(
        pure.decide, reference=goal, description=_plain(decision), new_id=new_id, rationale=_plain(rationale),
        alternatives=_texts(alternatives), locked=locked,
    )  # fmt: skip
    return _change("decide", edit, home)


@public
def record_artifact(
    path: str, action: str, *, about: str = "", goal: str = "", home: Home = None
) -> JsonObject:
    """Record a file that the work for a goal `created`, `modified` or `deleted`, and return the goal."""
    edit = partial(
        pure.record_artifact, reference=goal, path=_plain(path), action=action, new_id=new_id, about=_plain(about),
    )  # fmt: skip
    return _change("record artifact", edit, home)


@public
def checkpoint_goal(
    description: str, *, summary: str = "", metrics: Iterable[str] = (), goal: str = "", home: Home = None
) -> JsonObject:
    """Record the present state of a goal and return the goal; its twenty newest checkpoints are kept."""
    edit = partial(
        pure.checkpoint, reference=goal, description=_plain(description), new_id=new_id, summary=_plain(summary),
        metrics=_texts(metrics),
    )  # fmt: skip
    return _change("checkpoint goal", edit, home)


def prompt_text(fits: Callable[[str], bool] = bool, *, home: Home = None) -> str:
    """Return the current goal for a system prompt, "" without one; the same bytes as long as it does not change.

    What does not fit loses the oldest decisions that a model reported.
    """
    return pure.prompt_text(read(home).documents[pure.DOCUMENT], fits)


def guidance(*, home: Home = None) -> str:
    """Return the current goal in words for a summariser, "" without one."""
    goal = pure.current(read(home).documents[pure.DOCUMENT])
    return pure.goal_text(goal) if goal else ""


@public
def apply_markers(text: str, *, proposed: bool = False, home: Home = None) -> Applied:
    """Apply the markers in a model's text to the current goal, and return what they were.

    `proposed`: the text is a summary, whose decisions are only proposals and whose other markers say nothing new. The
    same text twice changes nothing the second time. A text without markers does not open the home. Where `memory.agents` lets
    agents only propose, none is applied: a marker cannot wait.
    """
    markers = pure.parse_markers(_plain(text)) if "[" in text else []
    markers = pure.as_proposals(markers) if proposed else markers
    if not markers:
        return Applied("")
    try:
        applied = change(
            home,
            lambda documents: pure.apply_markers(documents[pure.DOCUMENT], markers, now=now(), new_id=new_id),
            Author("apply markers", by=MODEL),
        )
    except Refused:
        return Applied("")
    return cast("Applied", applied.result)


def _change(operation: str, edit: Callable[..., Change], home: Home) -> JsonObject:
    changed = change(home, lambda documents: edit(documents[pure.DOCUMENT], now=now()), Author(operation))
    goal: JsonObject = changed.result
    return goal


def _plain(text: str) -> str:
    """Return `text` without secrets, private blocks and blocks that aether injected."""
    return redact(without_whole_blocks(text))


def _texts(texts: Iterable[str]) -> list[str]:
    return [_plain(text) for text in texts]
