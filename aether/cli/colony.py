"""The colony on the command line: signals, phases, state."""

from __future__ import annotations

from typing import cast

import click

from aether.cli.complete import castes, completes, signal_types
from aether.cli.output import Ask, Command, Group, Table, emit, facts, note, pass_ask, say, when
from aether.text.words import pluralize
from aether.types import Caste, SignalName, State

PHASE = click.IntRange(0)


@click.command("signal", cls=Command)
@click.argument("type_", metavar="[TYPE]", required=False, shell_complete=completes(signal_types))
@click.argument("context", required=False)
@click.option("--strength", type=float, help="From 0 to 1  [default: by type]")
@click.option(
    "--caste",
    shell_complete=completes(castes),
    help="The caste that sends it; for the list, the caste that senses it",
)
@click.option("--phase", type=PHASE, help="The phase it is about")
@pass_ask
def signal_command(
    ask: Ask, *, type_: str | None, context: str | None, strength: float | None, caste: str | None, phase: int | None
) -> None:  # fmt: skip
    """Deposit a signal, or list the active ones.

    TYPE is INIT, FOCUS, REDIRECT, FEEDBACK, CHECKIN, PHASE_COMPLETE or TOKEN_THRESHOLD; it fades by its half-life.
    The id is printed. Without TYPE the active signals are listed, strongest first.

    \b
    Example:
      aether signal FOCUS "database performance"
      aether signal --caste builder
    """
    from aether.api import colony

    if type_ is None:
        if strength is not None or phase is not None:
            raise click.UsageError("--strength and --phase need a TYPE.")
        _list_signals(ask, caste)
        return
    if context is None:
        raise click.UsageError("Missing argument 'CONTEXT'.")
    signal = colony.emit_signal(
        cast("SignalName", type_), context, strength=strength, caste=cast("Caste | None", caste), phase=phase, home=ask.place()
    )  # fmt: skip
    emit(ask, signal, signal["id"])
    if signal["queued"]:
        note(ask, f"{signal['type']} is queued: it is deposited when the running phase ends.")


def _list_signals(ask: Ask, caste: str | None) -> None:
    from aether.api import colony

    active_signals = colony.active_signals(caste=cast("Caste | None", caste), home=ask.place())
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
      aether phase start 1 --name foundation
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
    emit(ask, outcome, text)


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
    emit(ask, outcome, text)
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


@click.command("state", cls=Command)
@click.argument("state", required=False)
@click.option("--trigger", default="manual", show_default=True, help="With STATE: the reason, in one word")
@click.option("--recover", is_flag=True, help="Return a crashed colony to PLANNING")
@pass_ask
def state_command(ask: Ask, *, state: str | None, trigger: str, recover: bool) -> None:
    """Show the state of the colony and its phases.

    Also shows whether the colony crashed, and which phase waits for your decision. With STATE, changes the state to one
    that the present state leads to; a snapshot is taken before and after. --recover leaves memory and signals as they
    are, and takes a snapshot first.

    \b
    Example:
      aether state
      aether state INIT
    """
    from aether.api import colony

    if recover and state:
        raise click.UsageError("STATE and --recover exclude each other.")
    if not (recover or state):
        _show_state(ask)
        return
    place = ask.place()
    entry = (
        colony.recover_from_crash(home=place)
        if recover
        else colony.transition_state(cast(State, state), trigger, home=place)
    )
    emit(ask, entry, f"{entry['from']} → {entry['to']}")


def _show_state(ask: Ask) -> None:
    from aether.api import colony

    place = ask.place()
    document, crash = colony.colony(home=place), colony.detect_crash(home=place)
    status, machine, roadmap = (
        document["colony_status"],
        document["state_machine"],
        document["phases"]["roadmap"],
    )
    checkin = status["queen_checkin"]
    data = {
        "state": status["state"], "current_phase": status["current_phase"], "phases_completed": status["phases_completed"],
        "queen_checkin": checkin, "roadmap": roadmap, "workers": status["workers"],
        "last_transition": machine["last_transition"], "transitions_count": machine["transitions_count"],
        "crash": crash,
    }  # fmt: skip
    text: list[str | Table] = [
        *facts(
            [
                ("State", status["state"]),
                ("Phase", "—" if status["current_phase"] is None else status["current_phase"]),
                ("Workers", len(status["workers"])),
                ("Transitions", machine["transitions_count"]),
                ("Last", when(machine["last_transition"] or "never")),
            ],
            indent=0,
        ),
        Table(
            [
                (
                    entry["phase"],
                    entry.get("status") or "—",
                    entry.get("name") or "—",
                    entry.get("goal") or "",
                )
                for entry in roadmap
            ],
            head=("phase", "status", "name", "goal"),
            right=[0],
        ),
    ]
    if checkin and checkin["status"] == "awaiting_review":
        text.append(
            f"Phase {checkin['phase']} waits for your decision: aether phase decide continue|adjust|redo"
        )
    emit(ask, data, text)
    if crash:
        say(f"{crash.message} {crash.fix}")
