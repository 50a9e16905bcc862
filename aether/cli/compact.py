"""Compaction on the command line: see what it would do, do it, look at what it did, take it back."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from aether.cli.output import (
    Ask,
    Group,
    as_json,
    emit,
    facts,
    note,
    pass_ask,
    plain,
    progress,
    say,
    short,
    table,
    write_file,
)

PROVIDERS = ("anthropic", "openai", "responses", "gemini", "plain")
STRATEGIES = ("task_state", "brief", "decision_log", "code_delta", "step_ledger", "requirements_ledger")
POLICIES = ("compact", "window", "prune-only")
_SIGNS = {"kept": " ", "shortened": "~", "removed": "-", "added": "+"}


@click.group("compact", cls=Group)
def compact_command() -> None:
    """Make conversations fit a model's window.

    \b
    Example:
      aether compact plan session.jsonl --window 8000
    """


def _choices(command: Any) -> Any:
    """Add the options that say what is compacted and how."""
    options = (
        click.argument("file"),
        click.option("--window", type=click.IntRange(1), help="Tokens that the model takes"),
        click.option("--model", help="The model that will be sent it, for its window and its count"),
        click.option(
            "--policy", type=click.Choice(POLICIES), default="compact", show_default=True,
            help="What fires, what stays, how far it goes",
        ),
        click.option("--strategy", type=click.Choice(STRATEGIES), help="What the summary is about  [default: task_state]"),
        click.option(
            "--for", "provider", type=click.Choice(PROVIDERS),
            help="Write the messages as this provider spells them  [default: as the file does]",
        ),
        click.option("--conversation", metavar="ID", help="Its name in the home  [default: the name of the file]"),
        click.option(
            "--nth", type=click.IntRange(0), default=0,
            help="Which conversation of a file that holds several, counted from 0",
        ),
        click.option("--force", is_flag=True, help="Compact although no trigger fires"),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@compact_command.command("plan")
@_choices
@pass_ask
def plan(ask: Ask, /, file: str, force: bool, **chosen: Any) -> None:
    """Show what compaction would do; nothing is changed.

    FILE holds a conversation in any format that is known, or is - for standard input. Neither a model nor a key is needed.

    \b
    Example:
      aether compact plan session.jsonl --window 8000
    """
    from aether.operations import compacting

    with progress(ask) as tell:
        loaded, asked = _loaded(ask, file, chosen, tell)
        made = compacting.compaction_plan(**asked, force=force)
    data = {
        "conversation": asked["conversation_id"],
        "wire": loaded.wire,
        "messages": len(made.messages),
        "tokens": made.tokens_before,
        "window": made.bounds.window,
        "limit": made.bounds.limit,
        "goal": made.bounds.goal,
        "triggered": made.triggered,
        "reason": made.reason,
        "kept": made.why._asdict(),
        "removed": len(made.messages) - len(made.kept) if made.triggered else 0,
        "shortened": len(made.changed),
        "protected": len(made.protected),
        "asks_a_summariser": made.task is not None,
        "steps": list(made.steps),
        "findings": [finding._asdict() for finding in made.findings],
    }
    emit(ask, data, _plan_lines(data))


def _plan_lines(data: dict[str, Any]) -> list[str]:
    used = f"{data['tokens']} of {data['window']} ({100 * data['tokens'] / data['window']:.1f} %)"
    lines = facts(
        [("messages", data["messages"]), ("tokens", used), ("limit", data["limit"])], indent=0, room=9
    )
    if not data["triggered"]:
        return [*lines, "Nothing to do: no trigger fires.", *_findings(data["findings"])]
    kept = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in data["kept"].items() if number)
    lines += facts([("why", data["reason"]), ("kept", kept), ("removed", data["removed"]),
                    ("shortened", data["shortened"]), ("aims for", f"{data['goal']} tokens")], indent=0, room=9)  # fmt: skip
    lines += [f"  {nth}. {step}" for nth, step in enumerate(data["steps"], start=1)]
    return [*lines, *_findings(data["findings"])]


@compact_command.command("run")
@_choices
@click.option(
    "--backend", metavar="NAME", help="Who writes the summary  [default: compact.backend, else extractive]"
)
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file instead of stdout")
@pass_ask
def run(ask: Ask, /, file: str, force: bool, backend: str | None, output: str | None, **chosen: Any) -> None:
    """Compact a conversation, and keep the whole of it.

    FILE holds a conversation in any format that is known, or is - for standard input; it is not changed. The whole
    conversation is kept in the home, or in .compact/ where there is none, so that "aether compact undo" gives it back.

    \b
    Example:
      aether compact run session.jsonl --window 8000 --force --output smaller.json
    """
    from aether.messages.conversation import dumped
    from aether.messages.formats import bare, read
    from aether.operations import compacting
    from aether.operations.compaction_case import Options

    with progress(ask) as tell:
        loaded, asked = _loaded(ask, file, chosen, tell)
        tell("compacting")
        options = Options(backend=backend or "")
        # The file is what is meant, not what an earlier run made of it.
        do = compacting.compact if force else partial(compacting.preflight, resume=False)
        done = do(**asked, options=options)
    messages = read([bare(raw) for raw in done.messages], loaded.wire)
    data = dumped(loaded._replace(messages=messages if done.triggered else loaded.messages))
    if output is not None:
        write_file(output, data)
    receipt = done.receipt._asdict() if done.receipt else None
    about = {
        "conversation": asked["conversation_id"], "triggered": done.triggered, "reason": done.reason,
        "tokens_before": done.tokens_before, "tokens_after": done.tokens_after, "limit": done.limit,
        "counter": done.counter, "output": output, "receipt": receipt,
        "messages": None if output else [message.raw for message in messages],
        "findings": [finding._asdict() for finding in done.findings],
    }  # fmt: skip
    emit(ask, about, output or data.decode("utf-8", "surrogatepass").rstrip("\n"))
    _tell_run(ask, about)


def _tell_run(ask: Ask, about: dict[str, Any]) -> None:
    if not about["triggered"]:
        note(
            ask,
            f"Nothing to do: {about['tokens_before']} tokens, and no trigger fires. --force compacts anyway.",
        )
        return
    share = 100 * (1 - about["tokens_after"] / about["tokens_before"])
    note(
        ask,
        f"{about['tokens_before']} -> {about['tokens_after']} tokens ({share:.0f} % less), by {about['counter']}.",
    )
    for line in _findings(about["findings"]):
        say(line)
    note(
        ask, f"To see it: aether compact diff {about['conversation']}; to take it back: aether compact undo."
    )


def _findings(findings: Any) -> list[str]:
    return [f"{finding['level']}: {plain(finding['message'])}" for finding in findings]


@compact_command.command("diff")
@click.argument("conversation")
@click.option(
    "--step", type=click.IntRange(1), help="Which compaction  [default: the newest that is not undone]"
)
@click.option("--all", "everything", is_flag=True, help="Show what stayed as it was too")
@pass_ask
def diff(ask: Ask, conversation: str, step: int | None, everything: bool) -> None:
    """Show what a compaction kept, shortened and removed.

    \b
    Example:
      aether compact diff session
    """
    from aether.operations import compaction_views

    found = compaction_views.compaction_diff(conversation, step=step, home=ask.home)
    data = {"receipt": found.receipt, "rows": [row._asdict() for row in found.rows]}
    shown = [row for row in found.rows if everything or row.change != "kept"]
    rows = [
        (_SIGNS[row.change], "" if row.before is None else row.before, row.role, short(row.text))
        for row in shown
    ]
    receipt = found.receipt
    head = f"Compaction {receipt['step']} of {conversation}: "
    head += f"{receipt['tokens_before']} -> {receipt['tokens_after']} tokens, "
    head += f"{receipt['messages_before']} -> {receipt['messages_after']} messages."
    lines = [head, *table(rows, right=[1])]
    emit(ask, data, lines)
    note(ask, "- removed   ~ shortened   + added")


@compact_command.command("undo")
@click.argument("conversation")
@click.option(
    "--output", type=click.Path(dir_okay=False), help="Write the messages to this file instead of stdout"
)
@pass_ask
def undo(ask: Ask, conversation: str, output: str | None) -> None:
    """Take the newest compaction back, byte for byte.

    Prints the messages as they are from now on: those from before the compaction, then what was said since. Once
    more takes the one before back. Where the file cannot be written, they go to stdout.

    \b
    Example:
      aether compact undo session --output whole.json
    """
    from aether.errors import AetherError
    from aether.operations import compacting
    from aether.store import codec

    done = compacting.undo_compaction(conversation, home=ask.home)
    unwritten: AetherError | None = None
    if output is not None:
        try:
            write_file(output, codec.document(done.messages))
        except AetherError as reason:  # it is undone: who asked must have the messages all the same
            unwritten, output = reason, None
    data = {
        "conversation": conversation, "step": done.step, "count": len(done.messages), "output": output,
        "messages": None if output else done.messages, "findings": [finding._asdict() for finding in done.findings],
    }  # fmt: skip
    emit(ask, data, output or as_json(done.messages))
    note(ask, f"Compaction {done.step} is undone: {len(done.messages)} messages.")
    for line in _findings(data["findings"]):
        say(line)
    if unwritten:
        raise type(unwritten)(
            "this file could not be written; the compaction is undone, and the messages are on stdout.",
            fix="Keep them from there.",
            where=unwritten.where,
        ) from unwritten


@compact_command.command("list")
@pass_ask
def list_(ask: Ask) -> None:
    """List the conversations that are kept.

    \b
    Example:
      aether compact list
    """
    from aether.operations import compaction_views

    found = compaction_views.conversation_list(home=ask.home)
    rows = [(one.messages, one.context, one.compactions, one.undone, one.conversation) for one in found]
    head = ("said", "live", "compactions", "undone", "conversation")
    emit(ask, [one._asdict() for one in found], table(rows, head=head, right=range(4)))
    for one in found:
        if one.problem:
            say(plain(f"{one.conversation}: {one.problem}"))
    if not found:
        note(ask, "None yet: a conversation is kept when it is compacted.")


def _loaded(ask: Ask, file: str, chosen: dict[str, Any], tell: Any) -> tuple[Any, dict[str, Any]]:
    """Return the conversation of the file, in the provider's words, and what to ask an operation for."""
    from aether.compaction.policies import policy
    from aether.errors import InvalidInput
    from aether.messages.conversation import load, said_in

    if not (chosen["window"] or chosen["model"]):
        raise InvalidInput(
            "there is neither a window nor a model.", fix="Give --window or --model.", where=file
        )
    tell("reading")
    loaded = load(sys.stdin.buffer if file == "-" else file, nth=chosen["nth"])
    if loaded.others:
        note(ask, f"The file holds {loaded.others} more conversation(s); --nth names one.")
    if chosen["provider"]:
        loaded, findings = said_in(loaded, chosen["provider"])
        for finding in findings:
            note(ask, f"{finding.where}: {plain(finding.message)}")
    tell("counting")
    rules = policy(chosen["policy"])
    rules = rules._replace(strategy=chosen["strategy"]) if chosen["strategy"] else rules
    return loaded, {
        "conversation_id": chosen["conversation"] or Path(loaded.name).stem or "input",
        "messages": [message.raw for message in loaded.messages],
        "model": chosen["model"], "window": chosen["window"], "policy": rules, "system": loaded.system,
        "tools": loaded.tools, "wire": loaded.wire, "home": ask.home,
    }  # fmt: skip
