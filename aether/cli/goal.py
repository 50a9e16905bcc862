"""Goals on the command line: set one, work on it, decide, block, finish."""

from __future__ import annotations

from typing import Any

import click

from aether.cli.complete import completes, goal_ids
from aether.cli.output import Ask, Group, Table, emit, facts, note, one_line, pass_ask, read_text, when
from aether.text.words import pluralize

GOAL = click.option(
    "--goal",
    default="",
    metavar="GOAL",
    shell_complete=completes(goal_ids),
    help="Another goal than the active one",
)


@click.group("goal", cls=Group)
def goal_command() -> None:
    """Set goals and keep them through every conversation.

    One goal is active. It is in each briefing and in the system prompt of each context, in the words in which it was
    set. GOAL is an id, the end of one, or words of its description; without it, the active goal.

    \b
    Example:
      aether goal add "Ship the parser" --step "Write it" --step "Test it"
    """


@goal_command.command("add")
@click.argument("text")
@click.option("--step", "steps", multiple=True, metavar="TEXT", help="A step to it; may be repeated")
@click.option(
    "--priority",
    type=click.Choice(["high", "medium", "low"]),
    default="medium",
    show_default=True,
    help="How much it matters",
)
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="A word to sort it by; may be repeated")
@click.option("--parent", default="", metavar="GOAL", help="The goal that it is a part of")
@click.option("--effort", default="", metavar="TEXT", help="The expected effort, in words")
@click.option("--later", is_flag=True, help="Do not make it the active goal")
@pass_ask
def add(
    ask: Ask,
    *,
    text: str,
    steps: tuple[str, ...],
    priority: str,
    tags: tuple[str, ...],
    parent: str,
    effort: str,
    later: bool,
) -> None:
    """Add a goal and make it the active one.

    TEXT is stored exactly as given; - reads it from standard input. The active goal is paused.

    \b
    Example:
      aether goal add "Ship the parser" --step "Write it" --step "Test it"
    """  # fmt: skip
    from aether.api import goals

    words = read_text("-") if text == "-" else text
    place = ask.place()
    before = goals.current_goal(home=place)
    added = goals.add_goal(
        words, priority=priority, steps=steps, tags=tags, parent=parent, effort=effort, start=not later, home=place,
    )  # fmt: skip
    emit(ask, added, added["id"])
    if before and not later:
        note(ask, f'Paused: "{one_line(before["description"])}" (aether goal start {_short(before)})')


@goal_command.command("show")
@click.argument("goal", default="", shell_complete=completes(goal_ids))
@click.option("--list", "listed", is_flag=True, help="List the open goals instead, the active one first")
@click.option("--all", "ended", is_flag=True, help="Also list finished goals")
@pass_ask
def show(ask: Ask, *, goal: str, listed: bool, ended: bool) -> None:
    """Show a goal with its steps, decisions and blockers.

    \b
    Example:
      aether goal show
      aether goal show --list
    """
    from aether.api import goals

    if listed or ended:
        _list(ask, ended=ended)
        return
    shown_goal = goals.goal(goal, home=ask.place())
    emit(ask, shown_goal, _lines(shown_goal))


def _list(ask: Ask, *, ended: bool) -> None:
    from aether.api import goals

    listed = goals.goals(ended=ended, home=ask.place())
    rows = [
        (
            goal["status"],
            f"{goal['progress']}%",
            goal["priority"],
            _short(goal),
            one_line(goal["description"]),
        )
        for goal in listed
    ]
    emit(ask, listed, Table(rows, head=("status", "done", "priority", "id", "goal"), right=[1]))
    if not listed and not ended and (finished := goals.goals(ended=True, home=ask.place())):
        note(
            ask, f'No goal is open, {len(finished)} ended: aether goal show --all, or aether goal add "TEXT"'
        )
    elif not listed:
        note(ask, 'There is no goal: aether goal add "TEXT"')


@goal_command.command("start")
@click.argument("goal", shell_complete=completes(goal_ids))
@pass_ask
def start(ask: Ask, goal: str) -> None:
    """Make a paused goal the active one.

    The goal that was active is paused.

    \b
    Example:
      aether goal start "parser"
    """
    from aether.api import goals

    _report(ask, goals.start_goal(goal, home=ask.place()))


@goal_command.command("done")
@click.argument("goal", default="", shell_complete=completes(goal_ids))
@click.option("--step", default="", metavar="TEXT", help="Complete this step of it, not the goal")
@click.option("--abandoned", is_flag=True, help="End it as given up, not reached")
@click.option("--paused", is_flag=True, help="Pause it, so that no goal is active")
@pass_ask
def done(ask: Ask, *, goal: str, step: str, abandoned: bool, paused: bool) -> None:
    """Complete a goal or one step of it, or stop work on it.

    The ten most recently finished goals are kept; "aether log" has the others.

    \b
    Example:
      aether goal done --step "Write it"
    """
    from aether.api import goals
    from aether.errors import InvalidInput

    if bool(step) + abandoned + paused > 1:
        raise InvalidInput(
            "--step, --abandoned and --paused exclude each other.", fix="Use one of them.", where="goal done"
        )
    place = ask.place()
    if step:
        _report(ask, goals.set_step(step, "completed", goal=goal, add=False, home=place))
        return
    if paused:
        _report(ask, goals.pause_goal(goal, home=place))
        return
    ended = goals.finish_goal(goal, abandoned=abandoned, home=place)
    _report(ask, ended)
    unfinished = [
        one_line(entry["description"]) for entry in ended["subtasks"] if entry["status"] != "completed"
    ]
    if unfinished and not abandoned:
        note(ask, f"Left open: {'; '.join(unfinished)}. aether undo takes it back.")
    if goals.current_goal(home=place) is None:
        note(ask, 'No goal is active now: aether goal start GOAL, or aether goal add "TEXT"')


@goal_command.command("block")
@click.argument("text", default="")
@click.option(
    "--type",
    "kind",
    type=click.Choice(["missing-info", "external-dependency", "technical-issue"]),
    default="technical-issue",
    show_default=True,
    help="The kind of blocker",
)
@click.option(
    "--resolved",
    is_flag=True,
    help="Resolve the blocker instead; TEXT is part of its text, needed if several are open",
)
@click.option("--how", default="", metavar="TEXT", help="With --resolved: how")
@GOAL
@pass_ask
def block(ask: Ask, *, text: str, kind: str, resolved: bool, how: str, goal: str) -> None:
    """Record what blocks a goal, or that it is resolved.

    \b
    Example:
      aether goal block "The API key is missing" --type missing-info
      aether goal block --resolved --how "The key came by mail"
    """
    from aether.api import goals

    if resolved:
        _report(ask, goals.unblock_goal(text, resolution=how, goal=goal, home=ask.place()))
    elif not text or how:
        raise click.UsageError("--how needs --resolved." if how else "Missing argument 'TEXT'.")
    else:
        _report(ask, goals.block_goal(text, kind=kind, goal=goal, home=ask.place()))


@goal_command.command("decide")
@click.argument("text")
@click.option("--because", default="", metavar="TEXT", help="The reason")
@click.option(
    "--instead-of",
    "alternatives",
    multiple=True,
    metavar="TEXT",
    help="A rejected alternative; may be repeated",
)
@click.option("--open", "still_open", is_flag=True, help="Do not lock it yet")
@GOAL
@pass_ask
def decide(
    ask: Ask, *, text: str, because: str, alternatives: tuple[str, ...], still_open: bool, goal: str
) -> None:
    """Record a decision and lock it.

    A locked decision stays in every context, and only "aether undo" unlocks it.

    \b
    Example:
      aether goal decide "Use SQLite" --because "one file" --instead-of "Postgres"
    """
    from aether.api import goals

    decided = goals.decide_goal(
        text, rationale=because, alternatives=alternatives, locked=not still_open, goal=goal, home=ask.place()
    )
    _report(ask, decided)


@goal_command.command("next")
@click.argument("text", default="")
@GOAL
@pass_ask
def next_(ask: Ask, *, text: str, goal: str) -> None:
    """Show what comes next, or add a step.

    With TEXT, adds a step; without it, shows the steps in progress and the steps that nothing holds up.

    \b
    Example:
      aether goal next "Write the documentation"
    """
    from aether.api import goals

    place = ask.place()
    if text:
        goals.set_step(text, goal=goal, home=place)
    steps = goals.next_step(goal=goal, home=place)
    emit(ask, {"next": steps}, steps)
    if not steps:
        note(ask, 'No step is open: aether goal next "TEXT", or aether goal done')


def _report(ask: Ask, goal: dict[str, Any]) -> None:
    steps = (
        f", {goal['progress']}% of {pluralize(len(goal['subtasks']), 'steps')}" if goal["subtasks"] else ""
    )
    emit(ask, goal, f'"{one_line(goal["description"])}" is {goal["status"]}{steps}.')


def _short(goal: dict[str, Any]) -> str:
    """Return the end of the id, which is enough to name it."""
    return str(goal["id"]).rpartition("_")[2]


def _lines(goal: dict[str, Any]) -> list[str | Table]:
    lines: list[str | Table] = [*goal["description"].splitlines(), ""]
    lines += facts(
        [
            ("Id", goal["id"]),
            ("Status", f"{goal['status']}, {goal['priority']} priority, {goal['progress']}% done"),
            ("Set", f"{when(goal['created_at'])} UTC by {'a person' if goal['evidence'] == 'person' else 'an agent'}"),
            *([("Ended", f"{when(goal['completed_at'])} UTC")] if "completed_at" in goal else []),
            *([("Part of", goal["parent_goal_id"])] if "parent_goal_id" in goal else []),
            ("Effort", goal["actual_effort"] + (f" of {goal['estimated_effort']}" if "estimated_effort" in goal else "")),
            *([("Tags", ", ".join(goal["tags"]))] if goal["tags"] else []),
            *([("Next", goal["next"][0])] if goal["next"] else []),
        ],
        indent=0,
    )  # fmt: skip
    sections = (
        ("Steps", [(step["status"], step["description"]) for step in goal["subtasks"]]),
        ("Decisions", [("locked" if entry["locked"] else "open", _decision(entry)) for entry in goal["decisions"]]),
        ("Blockers", [("resolved" if entry.get("resolved_at") else "open", entry["description"]) for entry in goal["blockers"]]),
        ("Files", [(entry["action"], entry["path"]) for entry in goal["artifacts"]]),
        ("Checkpoints", [(when(entry["at"]), entry["description"]) for entry in goal["checkpoints"]]),
    )  # fmt: skip
    for head, rows in sections:
        if rows:
            lines += ["", f"{head}:", Table(rows, indent=2)]
    return lines


def _decision(decision: dict[str, Any]) -> str:
    why = f" — {decision['rationale']}" if decision["rationale"] else ""
    rejected = f" (not {', '.join(decision['alternatives'])})" if decision["alternatives"] else ""
    return f"{decision['description']}{why}{rejected}"
