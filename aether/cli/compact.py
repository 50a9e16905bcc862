"""Compaction on the command line: see what it would do, do it, look at what it did, take it back."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aether.cli.output import (
    Ask,
    Group,
    as_json,
    emit,
    facts,
    gathered,
    need_output,
    note,
    pass_ask,
    plain,
    progress,
    say,
    short,
    table,
    wrapped,
    write_file,
)

if TYPE_CHECKING:
    from aether.messages.conversation import Conversation
    from aether.shapes import Finding

PROVIDERS = ("anthropic", "openai", "responses", "gemini", "plain")
STRATEGIES = ("task_state", "brief", "decision_log", "code_delta", "step_ledger", "requirements_ledger")
POLICIES = ("compact", "window", "prune-only")
_KEPT = {"pinned": "pinned", "recent": "recent", "tool_pairs": "calls", "middle": "older"}
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
        click.option("--conversation", metavar="ID", help="Its name in the home  [default: that of the file]"),
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
    from aether.compaction.plan import apply
    from aether.operations import compacting

    with progress(ask) as tell:
        loaded, asked = _loaded(ask, file, chosen, tell)
        made = compacting.compaction_plan(**asked, force=force)
        after = apply(made, None).tokens_after if made.triggered else made.tokens_before
    findings = [*_doubts(asked), *made.findings]
    data = {
        "conversation": asked["conversation_id"],
        "wire": loaded.wire,
        "messages": len(made.messages),
        "tokens": made.tokens_before,
        "window": made.bounds.window,
        "limit": made.bounds.limit,
        "goal": made.bounds.goal,
        "tokens_after": after,
        "triggered": made.triggered,
        "reason": made.reason,
        "kept": made.why._asdict(),
        "removed": len(made.messages) - len(made.kept) if made.triggered else 0,
        "shortened": len(made.changed),
        "protected": len(made.protected),
        "asks_a_summariser": made.task is not None,
        "steps": list(made.steps),
        "findings": [finding._asdict() for finding in findings],
    }
    emit(ask, data, _plan_lines(data))


def _doubts(asked: dict[str, Any]) -> tuple[Finding, ...]:
    """Return what to tell where the window is that of a model that nobody knows."""
    from aether.operations.compaction_case import place_of
    from aether.operations.usage import counting

    if asked["window"]:
        return ()
    return counting(asked["model"], place=place_of(asked["home"])).findings


def _plan_lines(data: dict[str, Any]) -> list[str]:
    used = f"{data['tokens']:,} of {data['window']:,} ({100 * data['tokens'] / data['window']:.1f} %)"
    pairs = [("messages", data["messages"]), ("tokens", used), ("limit", f"{data['limit']:,}")]
    if not data["triggered"]:
        why = (
            [] if data["findings"] else ["Nothing to do: no trigger fires; --force shows what one would do."]
        )
        return [*facts(pairs, indent=0), *why, *_findings(data["findings"])]
    kept = ", ".join(f"{_KEPT[name]} {number}" for name, number in data["kept"].items() if number)
    pairs += [("why", data["reason"]), ("kept", kept), ("removed", data["removed"]), ("shortened", data["shortened"]),
              ("after", f"{data['tokens_after']:,} tokens, by a summary without a model")]  # fmt: skip
    lines = facts(pairs, indent=0)
    lines += [f"  {nth}. {step}" for nth, step in enumerate(data["steps"], start=1)]
    return [*lines, *_findings(data["findings"])]


@compact_command.command("run")
@_choices
@click.option(
    "--backend", metavar="NAME", help="Who writes the summary  [default: summarizer.backend, else extractive]"
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
    from aether.store.keys import KEYS, checked

    need_output(ask, output, what="the conversation")
    if backend is not None:
        checked(KEYS["summarizer.backend"], backend, called="--backend")
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
    _tell_run(ask, about, forced=force)


def _tell_run(ask: Ask, about: dict[str, Any], *, forced: bool) -> None:
    before, after = about["tokens_before"], about["tokens_after"]
    if not about["triggered"]:
        why = "what stays anyway is all there is" if forced else "no trigger fires. --force compacts anyway"
        note(ask, f"Nothing to do: {before:,} tokens, and {why}.")
    else:
        share = 100 * (1 - after / before)
        note(ask, f"{before:,} -> {after:,} tokens ({share:.0f} % less), by {about['counter']}.")
    for line in _findings(about["findings"]):
        say(line)
    if about["triggered"]:
        name = shlex.quote(about["conversation"])
        note(ask, f"To see it: aether compact diff {name}")
        note(ask, f"To take it back: aether compact undo {name}")


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
    head += f"{receipt['tokens_before']:,} -> {receipt['tokens_after']:,} tokens, "
    head += f"{receipt['messages_before']} -> {receipt['messages_after']} messages."
    emit(ask, data, [*wrapped(head), *table(rows, right=[1]), "- removed   ~ shortened   + added"])


@compact_command.command("undo")
@click.argument("conversation")
@click.option(
    "--output", type=click.Path(dir_okay=False), help="Write the messages to this file instead of stdout"
)
@pass_ask
def undo(ask: Ask, conversation: str, output: str | None) -> None:
    """Take the newest compaction back, byte for byte.

    Prints the list of messages as they are from now on: those from before the compaction, then what was said since;
    what else stood in the file that was compacted, that file has. Once more takes the one before back. Where the file cannot be written, they go to stdout.

    \b
    Example:
      aether compact undo session --output whole.json
    """
    from aether.errors import AetherError
    from aether.operations import compacting
    from aether.store import codec

    need_output(ask, output, what="the conversation")
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
    head = ("messages", "context", "compactions", "undone", "conversation")
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
        for finding in gathered(findings):
            note(ask, f"{finding.where}: {plain(finding.message)}")
    tell("counting")
    rules = policy(chosen["policy"])
    rules = rules._replace(strategy=chosen["strategy"]) if chosen["strategy"] else rules
    return loaded, {
        "conversation_id": chosen["conversation"] or _name(ask, file, loaded),
        "messages": [message.raw for message in loaded.messages],
        "model": chosen["model"], "window": chosen["window"], "policy": rules, "system": loaded.system,
        "tools": loaded.tools, "wire": loaded.wire, "home": ask.home,
    }  # fmt: skip


def _name(ask: Ask, file: str, loaded: Conversation) -> str:
    """Return what to call the conversation of a file: its path below the directory of the home, in words.

    Two files of one name in two directories are two conversations; that of a file elsewhere begins with its directory.
    """
    from aether.operations.compaction_case import place_of

    if file == "-":
        return Path(loaded.name).stem or "input"
    path, base = Path(file).resolve(), place_of(ask.home).parent.resolve()
    within = path.relative_to(base) if path.is_relative_to(base) else Path(path.parent.name, path.name)
    return "-".join(within.with_suffix("").parts)
