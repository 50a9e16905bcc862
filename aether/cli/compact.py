"""Compaction on the command line: plan, run, compare and undo it, and check messages against a provider's rules."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aether.cli.complete import backends, completes, conversation_names
from aether.cli.output import (
    Ask,
    Group,
    Table,
    as_json,
    emit,
    facts,
    finding_line,
    gathered,
    need_output,
    note,
    pass_ask,
    plain,
    progress,
    say,
    with_options,
    write_file,
)
from aether.text.words import argument, pluralize

if TYPE_CHECKING:
    from aether.api.compact import Compaction
    from aether.messages.transcripts import Conversation
    from aether.types import Finding

# Providers whose rules a conversation is checked against, and all formats that messages are written in.
CHECKED = ("anthropic", "openai", "responses", "gemini")
PROVIDERS = (*CHECKED, "plain")
STRATEGIES = ("task_state", "brief", "decision_log", "code_delta", "step_ledger", "requirements_ledger")
POLICIES = ("compact", "window", "prune-only")
_KEPT = {"pinned": "pinned", "recent": "recent", "tool_pairs": "calls", "middle": "older"}
_SIGNS = {"kept": " ", "shortened": "~", "removed": "-", "added": "+"}


@click.group("compact", cls=Group)
def compact_command() -> None:
    """Make conversations fit a model's window.

    \b
    Example:
      aether compact run session.jsonl --window 8000 --dry-run
    """


def _choices(command: Any) -> Any:
    """Add the options of the conversation and of its compaction."""
    options = (
        click.argument("file"),
        click.option("--window", type=click.IntRange(1), help="The model's window in tokens"),
        click.option("--model", help="The model that receives it: its window and token count"),
        click.option(
            "--policy", type=click.Choice(POLICIES), default="compact", show_default=True,
            help="The rules for trigger, protected messages and target",
        ),
        click.option("--strategy", type=click.Choice(STRATEGIES), help="The subject of the summary  [default: task_state]"),
        click.option(
            "--for", "provider", type=click.Choice(PROVIDERS),
            help="Write the messages in the format of this provider  [default: that of the file]",
        ),
        click.option("--conversation", metavar="ID", help="Its name in the home  [default: that of the file]"),
        click.option(
            "--nth", type=click.IntRange(0), default=0,
            help="The number of the conversation in a file of several, from 0",
        ),
        click.option("--force", is_flag=True, help="Compact even if no trigger fires"),
        click.option(
            "--no-repair", "repair", flag_value=False, default=True,
            help="Leave messages that the provider would refuse as they are",
        ),
    )  # fmt: skip
    return with_options(command, options)


def _plan(ask: Ask, file: str, force: bool, chosen: dict[str, Any]) -> None:
    """Print what a compaction would do; no model and no key is needed."""
    from aether.api import compact
    from aether.conversation.plan import apply

    with progress(ask) as report:
        loaded, arguments = _loaded(ask, file, chosen, report)
        planned = compact.compaction_plan(**arguments, force=force)
        after = apply(planned, None).tokens_after if planned.triggered else planned.tokens_before
    findings = [*_doubts(arguments), *planned.findings]
    data = {
        "conversation": arguments["conversation_id"], "wire": loaded.format, "messages": len(planned.messages),
        "tokens": planned.tokens_before, "window": planned.bounds.window, "limit": planned.bounds.limit,
        "goal": planned.bounds.goal, "tokens_after": after, "triggered": planned.triggered, "reason": planned.reason,
        "kept": planned.why._asdict(), "removed": len(planned.messages) - len(planned.kept) if planned.triggered else 0,
        "shortened": len(planned.changed), "protected": len(planned.protected),
        "asks_a_summariser": planned.task is not None, "steps": list(planned.steps),
        "findings": findings,
    }  # fmt: skip
    emit(ask, data, _plan_lines(data, _findings(findings)))


def _doubts(options: dict[str, Any]) -> tuple[Finding, ...]:
    """Return the findings about the window of a model that is not known."""
    from aether.api.conversations import record_directory
    from aether.api.tokens import counting

    if options["window"]:
        return ()
    return counting(options["model"], place=record_directory(options["home"])).findings


def _plan_lines(data: dict[str, Any], findings: list[str]) -> list[str]:
    used = f"{data['tokens']:,} of {data['window']:,} ({100 * data['tokens'] / data['window']:.1f} %)"
    pairs = [("messages", data["messages"]), ("tokens", used), ("limit", f"{data['limit']:,}")]
    if not data["triggered"]:
        why = [] if findings else ["Nothing to do: no trigger fires; --force plans anyway."]
        return [*facts(pairs, indent=0), *why, *findings]
    kept_by_reason = ", ".join(f"{_KEPT[name]} {number}" for name, number in data["kept"].items() if number)
    pairs += [("why", data["reason"]), ("kept", kept_by_reason), ("removed", data["removed"]), ("shortened", data["shortened"]),
              ("after", f"{data['tokens_after']:,} tokens, by a summary without a model")]  # fmt: skip
    lines = facts(pairs, indent=0)
    lines += [f"  {nth}. {step}" for nth, step in enumerate(data["steps"], start=1)]
    return [*lines, *findings]


@compact_command.command("run")
@_choices
@click.option(
    "--backend",
    shell_complete=completes(backends),
    metavar="NAME",
    help="The backend that writes the summary  [default: summarizer.backend, else extractive]",
)
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file instead of stdout")
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing")
@pass_ask
def run(
    ask: Ask,
    /,
    *,
    file: str,
    force: bool,
    backend: str | None,
    output: str | None,
    dry_run: bool,
    **chosen: Any,
) -> None:
    """Compact a conversation, and keep the whole of it.

    FILE holds a conversation in any supported format, or is - for standard input; it is not changed. The whole
    conversation is kept in the home, or else in .compact/, so that "aether undo --conversation" can restore it.
    Parts that the provider would refuse (halves of tool calls, blank blocks) are repaired in the result and
    named on stderr.

    \b
    Example:
      aether compact run session.jsonl --window 8000 --force --output smaller.json
      aether compact run session.jsonl --window 8000 --dry-run
    """
    from aether.api import compact
    from aether.api.compact import Options
    from aether.messages.convert import bare, read
    from aether.messages.transcripts import conversation_bytes
    from aether.store.keys import KEYS, check_value

    if dry_run:
        _plan(ask, file, force, chosen)
        return
    need_output(ask, output, content="the conversation")
    if backend is not None:
        check_value(KEYS["summarizer.backend"], backend, called="--backend")
    with progress(ask) as report:
        loaded, arguments = _loaded(ask, file, chosen, report)
        report("compacting")
        origin, wrapper = loaded.origin, {}
        if origin.kind == "body" and origin.format == loaded.format:
            wrapper = {"key": origin.key, "body": {**loaded.frame, origin.key: []}}
        options = Options(backend=backend or "", wrapper=wrapper)
        # The file itself is compacted, not the result of an earlier run.
        do = compact.compact if force else partial(compact.preflight, resume=False)
        compaction = do(**arguments, options=options)
    messages = read([bare(raw) for raw in compaction.messages], loaded.format)
    before = arguments["messages"]
    same = len(before) == len(compaction.messages) and all(
        message_sent is old for message_sent, old in zip(compaction.messages, before, strict=False)
    )
    data = conversation_bytes(loaded if same else loaded._replace(messages=messages))
    if output is not None:
        write_file(output, data)
    receipt = compaction.receipt
    about = {
        "conversation": arguments["conversation_id"], "triggered": compaction.triggered, "reason": compaction.reason,
        "tokens_before": compaction.tokens_before, "tokens_after": compaction.tokens_after, "limit": compaction.limit,
        "counter": compaction.counter, "output": output, "receipt": receipt,
        "messages": None if output else [message.raw for message in messages],
        "findings": compaction.findings,
    }  # fmt: skip
    emit(ask, about, output or data.decode("utf-8", "surrogatepass").rstrip("\n"))
    _report(ask, compaction, arguments["conversation_id"], force=force)


def _report(ask: Ask, compaction: Compaction, conversation: str, *, force: bool) -> None:
    """Say on stderr what was done, the findings, and how to see and undo it."""
    if compaction.triggered:
        share = 100 * (1 - compaction.tokens_after / compaction.tokens_before)
        note(
            ask,
            f"{compaction.tokens_before:,} -> {compaction.tokens_after:,} tokens ({share:.0f} % less), by {compaction.counter}.",
        )
    else:
        why = "every message is protected" if force else "no trigger fires. --force compacts anyway"
        note(ask, f"Nothing to do: {compaction.tokens_before:,} tokens, and {why}.")
    for line in _findings(compaction.findings):
        say(line)
    if compaction.triggered:
        name = argument(conversation)
        note(ask, f"To see it: aether compact show --diff {name}")
        note(ask, f"To undo it: aether undo {argument(conversation, '--conversation')}")


def _findings(findings: Iterable[Finding]) -> list[str]:
    return [
        plain(": ".join(filter(None, (finding.level, finding.where, finding.message))))
        for finding in gathered(findings)
    ]


@compact_command.command("show")
@click.argument("conversation", required=False, shell_complete=completes(conversation_names))
@click.argument("number", metavar="[N]", required=False, type=click.IntRange(1))
@click.option("--diff", is_flag=True, help="Show the summary, and what was kept, shortened and removed")
@click.option("--step", type=click.IntRange(1), hidden=True, help="The former spelling of N")
@click.option("--all", "everything", is_flag=True, help="With --diff: show unchanged messages too")
@pass_ask
def show(
    ask: Ask, conversation: str | None, number: int | None, *, diff: bool, step: int | None, everything: bool
) -> None:
    """Print what a compaction removed, or list the conversations.

    N is the number of the compaction, by default the newest that is not undone. Each message has its number in the
    conversation and its role; calls (→) and results (←) name their tool. Nothing is cut. With --diff messages are
    numbered from 1 in the list that was compacted; in --json their places are counted from 0. Without CONVERSATION, lists
    the kept conversations.

    \b
    Example:
      aether compact show session
      aether compact show session 1 --diff
      aether compact show
    """
    if conversation is None:
        _list(ask)
    elif diff:
        _diff(ask, conversation, number or step, everything=everything)
    else:
        _removed(ask, conversation, number)


def _diff(ask: Ask, conversation: str, step: int | None, *, everything: bool) -> None:
    from aether.api import compact_views

    difference = compact_views.compaction_diff(conversation, step=step, home=ask.home)
    data = {"receipt": difference.receipt, "rows": difference.rows}
    visible = [row for row in difference.rows if everything or row.change != "kept"]
    rows = [
        (_SIGNS[row.change], "" if row.before is None else row.before + 1, row.role, row.text)
        for row in visible
        if row.change != "added"
    ]
    added = [line for row in visible if row.change == "added" for line in [f"+ {row.role}", row.text]]
    receipt = difference.receipt
    head = f"Compaction {receipt['step']} of {conversation}: "
    head += f"{receipt['tokens_before']:,} -> {receipt['tokens_after']:,} tokens, "
    head += f"{receipt['messages_before']} -> {receipt['messages_after']} messages."
    emit(ask, data, [head, *map(plain, added), Table(rows, right=[1]), "- removed   ~ shortened   + added"])
    note(ask, f"The removed text: aether compact show {argument(conversation)} {receipt['step']}")


def _removed(ask: Ask, conversation: str, step: int | None) -> None:
    from aether.api import removed

    number, messages = removed.removed_by_compaction(conversation, step, home=ask.home)
    data = {"conversation": conversation, "step": number, "messages": messages}
    emit(ask, data, [plain(line) for message in messages for line in [*removed.message_lines(message), ""]])
    if not messages:
        note(ask, f"Compaction {number} removed no message.")


def undo_compaction(ask: Ask, conversation: str, step: int | None, output: str | None) -> None:
    """Undo the newest compaction of a conversation, and print or write its messages."""
    from aether.api import compact
    from aether.errors import AetherError
    from aether.store import files

    need_output(ask, output, content="the conversation")
    undone = compact.undo_compaction(conversation, step=step or 0, home=ask.home)
    unwritten: AetherError | None = None
    if output is not None:
        try:
            write_file(output, files.json_document(undone.document))
        except AetherError as reason:  # it is undone: who asked must have the messages all the same
            unwritten, output = reason, None
    data = {
        "conversation": conversation, "step": undone.step, "count": len(undone.messages), "output": output,
        "messages": None if output else undone.messages, "findings": undone.findings,
    }  # fmt: skip
    emit(ask, data, output or as_json(undone.messages))
    note(ask, f"Compaction {undone.step} is undone: {pluralize(len(undone.messages), 'messages')}.")
    for line in _findings(undone.findings):
        say(line)
    if unwritten:
        raise type(unwritten)(
            "this file could not be written; the compaction is undone, and the messages are on stdout.",
            fix="Keep them from there.",
            where=unwritten.where,
        ) from unwritten


def _list(ask: Ask) -> None:
    from aether.api import compact_views

    entries = compact_views.conversation_list(home=ask.home)
    rows = [
        (entry.messages, entry.context, entry.compactions, entry.undone, entry.conversation)
        for entry in entries
    ]
    head = ("messages", "context", "compactions", "undone", "conversation")
    emit(ask, entries, Table(rows, head=head, right=range(4)))
    for entry in entries:
        if entry.problem:
            say(plain(f"{entry.conversation}: {entry.problem}"))
    if not entries:
        note(ask, "No conversation yet: one is kept when it is compacted.")


def _loaded(ask: Ask, file: str, chosen: dict[str, Any], report: Any) -> tuple[Any, dict[str, Any]]:
    """Return the conversation of the file, in the provider's format, and the arguments of an operation."""
    from aether.conversation.policy import policy
    from aether.errors import InvalidInput
    from aether.messages.transcripts import convert_conversation, load_conversation

    report("reading")
    loaded = load_conversation(sys.stdin.buffer if file == "-" else file, nth=chosen["nth"])
    if not (chosen["window"] or chosen["model"]):
        raise InvalidInput(
            "no window and no model is given.", fix="Pass --window or --model.", where="compact"
        )
    for finding in gathered(loaded.unread):
        say(finding_line(finding, file))
    if loaded.others:
        note(ask, f"The file holds {pluralize(loaded.others, 'more conversations')}; --nth names one.")
    if chosen["provider"]:
        loaded, findings = convert_conversation(loaded, chosen["provider"])
        for finding in gathered(findings):
            note(ask, f"{finding.where}: {plain(finding.message)}")
    report("counting")
    rules = policy(chosen["policy"])
    rules = rules._replace(strategy=chosen["strategy"]) if chosen["strategy"] else rules
    return loaded, {
        "conversation_id": chosen["conversation"] or _name(ask, file, loaded),
        "messages": [message.raw for message in loaded.messages],
        "model": chosen["model"], "window": chosen["window"], "policy": rules, "system": loaded.system,
        "tools": loaded.tools, "wire": loaded.format, "repair": chosen["repair"], "home": ask.home,
    }  # fmt: skip


def _name(ask: Ask, file: str, loaded: Conversation) -> str:
    """Return the name of a file's conversation: its path below the directory of the home.

    Two files of one name in two directories are two conversations; the name of a file elsewhere starts with its directory.
    """
    from aether.api.conversations import record_directory

    if file == "-":
        return Path(loaded.name).stem or "input"
    path, base = Path(file).resolve(), record_directory(ask.home).parent.resolve()
    within = path.relative_to(base) if path.is_relative_to(base) else Path(path.parent.name, path.name)
    return "-".join(within.with_suffix("").parts)


@compact_command.command("check")
@click.argument("file")
@click.option(
    "--for", "provider", type=click.Choice(CHECKED),
    help="The provider; other formats are converted first  [default: the provider of the file's format]",
)  # fmt: skip
@click.option("--repair", is_flag=True, help="Repair errors without inventing content")
@click.option(
    "--output", type=click.Path(dir_okay=False), help="Write the repaired conversation to this file"
)
@click.option(
    "--nth", type=click.IntRange(min=0), default=0, show_default=True,
    help="The number of the conversation in a file of several, from 0",
)  # fmt: skip
@pass_ask
def check(ask: Ask, file: str, *, provider: Any, repair: bool, output: str | None, nth: int) -> int:
    """Report errors that a provider would reject.

    FILE is a request body, or a conversation in any format that "aether compact run" reads; - is standard
    input. Exits 1 if errors remain.

    \b
    Example:
      aether compact check request.json
      aether compact check request.json --for openai --repair --output repaired.json
    """
    from aether.api.conversations import check_messages

    if output is not None and not repair:
        raise click.UsageError("--output needs --repair.")
    source = sys.stdin.buffer if file == "-" else file
    report = check_messages(source, provider=provider, repair=repair, nth=nth)
    if output is not None:
        write_file(output, report.repaired)
    fields = report._asdict()
    del fields["repaired"]
    emit(ask, {"file": file, **fields, "output": output or ""}, _lines(report))
    if report.wire != report.provider and report.wire in CHECKED:
        note(
            ask,
            f"Checked as converted for {report.provider}; --for {report.wire} checks the file unconverted.",
        )
    if report.others:
        note(ask, f"{pluralize(report.others, 'more conversations')} in the file: choose with --nth.")
    if repair and output is None:
        note(ask, "Nothing was written: name a file with --output.")
    return int(any(finding.level == "error" for finding in report.findings))


def _lines(checked: Any) -> Iterator[str]:
    yield from _finding_lines("converted", checked.converted)
    yield from _finding_lines("repaired", checked.repairs)
    for finding in gathered(checked.findings):
        yield finding_line(finding, f"{finding.level} {finding.code}")
    if not checked.findings:
        converted = "" if checked.wire == checked.provider else f", converted from {checked.wire}"
        these = "this message" if checked.messages == 1 else f"these {checked.messages} messages"
        yield f"{checked.provider} accepts {these}{converted}."


def _finding_lines(label: str, findings: Iterable[Finding]) -> Iterator[str]:
    return (finding_line(finding, f"{label} {finding.code}") for finding in gathered(findings))
