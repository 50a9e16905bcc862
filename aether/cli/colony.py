"""The colony on the command line: signals, phases, state."""

from __future__ import annotations

from typing import cast

import click

from aether.cli.output import Ask, Group, Table, emit, facts, note, pass_ask, say, when
from aether.text.words import pluralize
from aether.types import State

PHASE = click.IntRange(0)


@click.group("signal", cls=Group)
def signal_command() -> None:
    """Deposit and list signals.

    \b
    Example:
      aether signal list
    """


@signal_command.command("emit")
@click.argument("type_", metavar="TYPE")
@click.argument("context")
@click.option("--strength", type=float, help="From 0 to 1  [default: by type]")
@click.option("--caste", help="The caste that sends it")
@click.option("--phase", type=PHASE, help="The phase it is about")
@pass_ask
def emit_(
    ask: Ask, *, type_: str, context: str, strength: float | None, caste: str | None, phase: int | None
) -> None:
    """Deposit a signal and print its id.

    TYPE is INIT, FOCUS, REDIRECT, FEEDBACK, CHECKIN or PHASE_COMPLETE; it fades by its half-life.

    \b
    Example:
      aether signal emit FOCUS "database performance"
    """
    from aether.api import colony

    signal = colony.emit_signal(type_, context, strength=strength, caste=caste, phase=phase, home=ask.place())
    emit(ask, signal, signal["id"])
    if signal["queued"]:
        note(ask, f"{signal['type']} is queued: it is deposited when the running phase ends.")


@signal_command.command("list")
@click.option("--caste", help="With the sensitivity of this caste")
@pass_ask
def list_(ask: Ask, caste: str | None) -> None:
    """List the active signals, strongest first.

    \b
    Example:
      aether signal list --caste builder
    """
    from aether.api import colony

    active_signals = colony.active_signals(caste=caste, home=ask.place())
    rows = [
        (
            signal["type"], f"{signal['effective_strength']:.2f}", f"{signal['strength']:.2f}",
            when(signal["created_at"]), signal["context"],
        )
        for signal in active_signals
    ]  # fmt: skip
    emit(
        ask,
        active_signals,
        Table(rows, head=("type", "now", "at first", "since (UTC)", "context"), right=[1, 2]),
    )
    if not active_signals:
        note(ask, "No signal is active.")
    waiting = len(colony.queued_signals(home=ask.place()))
    if waiting:
        note(ask, f"{pluralize(waiting, 'signals')} queued until the running phase ends.")


@click.group("phase", cls=Group)
def phase_command() -> None:
    """Start, complete and review phases.

    \b
    Example:
      aether phase show
    """


@phase_command.command("start")
@click.argument("phase", type=PHASE)
@click.option("--name", help="Its name")
@click.option("--goal", help="Its goal")
@pass_ask
def start(ask: Ask, phase: int, name: str | None, goal: str | None) -> None:
    """Start a phase.

    \b
    Example:
      aether phase start 1 --name foundation
    """
    from aether.api import colony

    outcome = colony.start_phase(phase, name=name, goal=goal, home=ask.place())
    text = (
        f"Phase {phase} started; the colony is {outcome.state}."
        if outcome.changed
        else f"Phase {phase} was running already."
    )
    emit(ask, outcome._asdict(), text)


@phase_command.command("complete")
@click.argument("phase", type=PHASE)
@pass_ask
def complete(ask: Ask, phase: int) -> None:
    """Complete a phase, so that its work can be compressed.

    This is the phase boundary: it deposits PHASE_COMPLETE, leaves the phase waiting for your decision, and carries
    its lessons to the next one.

    \b
    Example:
      aether phase complete 1
    """
    from aether.api import colony

    outcome = colony.complete_phase(phase, home=ask.place())
    text = (
        f"Phase {phase} completed; the colony is {outcome.state}."
        if outcome.changed
        else f"Phase {phase} was completed before."
    )
    emit(ask, outcome._asdict(), text)
    if outcome.changed:
        note(ask, f"Next: aether compress --phase {phase}, then aether phase decide continue")


@phase_command.command("decide")
@click.argument("decision", type=click.Choice(["continue", "adjust", "redo"]))
@click.option("--note", help="The reason")
@pass_ask
def decide(ask: Ask, decision: str, note: str | None) -> None:
    """Decide about the phase that waits for your decision.

    \b
    Example:
      aether phase decide continue
    """
    from aether.api import colony

    checkin = colony.decide(decision, note=note, home=ask.place())
    emit(ask, checkin, f"Phase {checkin['phase'] if checkin else '?'}: {decision}.")


@phase_command.command("show")
@pass_ask
def show(ask: Ask) -> None:
    """Show the phases, and which one waits for your decision.

    \b
    Example:
      aether phase show
    """
    from aether.api import colony

    state = colony.colony(home=ask.place())
    status, roadmap = state["colony_status"], state["phases"]["roadmap"]
    checkin = status["queen_checkin"]
    data = {
        "current_phase": status["current_phase"], "phases_completed": status["phases_completed"],
        "queen_checkin": checkin, "roadmap": roadmap,
    }  # fmt: skip
    current = "—" if status["current_phase"] is None else status["current_phase"]
    roadmap_table = Table(
        [
            (entry["phase"], entry.get("status") or "—", entry.get("name") or "—", entry.get("goal") or "")
            for entry in roadmap
        ],
        head=("phase", "status", "name", "goal"),
        right=[0],
    )
    text: list[str | Table] = [f"Current phase: {current} ({status['state']})", roadmap_table]
    if checkin and checkin["status"] == "awaiting_review":
        text.append(
            f"Phase {checkin['phase']} waits for your decision: aether phase decide continue|adjust|redo"
        )
    emit(ask, data, text)


@click.group("state", cls=Group, invoke_without_command=True)
@click.pass_context
def state_command(ctx: click.Context) -> None:
    """Show or change the state of the colony.

    \b
    Example:
      aether state show
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(state_show)


@state_command.command("show")
@pass_ask
def state_show(ask: Ask) -> None:
    """Show the state of the colony, and whether it crashed.

    \b
    Example:
      aether state show
    """
    from aether.api import colony

    place = ask.place()
    state, crash = colony.colony(home=place), colony.detect_crash(home=place)
    status, machine = state["colony_status"], state["state_machine"]
    data = {
        "state": status["state"], "current_phase": status["current_phase"], "workers": status["workers"],
        "last_transition": machine["last_transition"], "transitions_count": machine["transitions_count"],
        "crash": crash._asdict() if crash else None,
    }  # fmt: skip
    text = facts(
        [
            ("State", status["state"]),
            ("Phase", "—" if status["current_phase"] is None else status["current_phase"]),
            ("Workers", len(status["workers"])),
            ("Transitions", machine["transitions_count"]),
            ("Last", when(machine["last_transition"] or "never")),
        ],
        indent=0,
    )
    emit(ask, data, text)
    if crash:
        say(f"{crash.message} {crash.fix}")


@state_command.command("set")
@click.argument("state")
@click.option("--trigger", default="manual", show_default=True, help="The reason, in one word")
@pass_ask
def state_set(ask: Ask, state: str, trigger: str) -> None:
    """Change the state of the colony.

    STATE must be one that the present state leads to; a snapshot is taken before and after.

    \b
    Example:
      aether state set INIT
    """
    from aether.api import colony

    entry = colony.transition_state(cast(State, state), trigger, home=ask.place())
    emit(ask, entry, f"{entry['from']} → {entry['to']}")


@state_command.command("recover")
@pass_ask
def state_recover(ask: Ask) -> None:
    """Return a crashed colony to PLANNING.

    Memory and signals stay as they are; a snapshot is taken before.

    \b
    Example:
      aether state recover
    """
    from aether.api import colony

    entry = colony.recover_from_crash(home=ask.place())
    emit(ask, entry, f"{entry['from']} → {entry['to']}")
