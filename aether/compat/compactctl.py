"""Ariadne's command `compactctl`: check a configuration, and try, compare and do compactions by it.

It works by the configuration where `aether compact` works by options. Every failure ends
with 1, as the requirement has it; which error it was is on stderr, and with --json in `error`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from aether.cli.main import BROKEN_PIPE, INTERRUPTED, interruptible, leave
from aether.cli.output import (
    Ask,
    Group,
    Table,
    as_json,
    emit,
    facts,
    finding_line,
    need_output,
    note,
    pass_ask,
    say,
    write_file,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aether.conversation.policy import CompactConfig
    from aether.messages.transcripts import Conversation
    from aether.store.config import Settings
    from aether.types import Finding

FAILED = 1
_SIGNS = {"kept": " ", "removed": "-", "added": "+"}


@click.group("compactctl", cls=Group)
def compactctl() -> None:
    """Try and run compactions with a configuration.

    Settings come from variables, else from the file of --config, else from the config.toml of the home, else from the
    user's, else from the defaults; "compactctl create-config" lists them. Failures exit with 1.

    \b
    Example:
      compactctl dry-run --messages messages.json
    """


_CONFIG = click.option("--config", metavar="FILE", help="Settings in TOML, YAML or JSON")
_MESSAGES = click.option(
    "--messages", metavar="JSON|FILE|-", required=True,
    help="A list of messages, a file that holds them, or stdin",
)  # fmt: skip


@compactctl.command("validate-config")
@_CONFIG
@click.option(
    "--merge-env",
    is_flag=True,
    help="Check the result together with the variables and the config.toml of home and user",
)
@pass_ask
def validate_config(ask: Ask, config: str | None, merge_env: bool) -> None:
    """Check a configuration and print its values.

    \b
    Example:
      compactctl validate-config --config compact.yaml
    """
    from aether.conversation.policy import config_from_values, config_values
    from aether.store.config import nested, settings

    loaded = _settings(ask, config) if merge_env else settings(config, environ={})
    if not merge_env:
        _note(ask, loaded.findings)
    values = config_values(config_from_values(loaded.values))
    rows = [(path, loaded.origins[path], " ".join(as_json(value).split())) for path, value in values.items()]
    data = {
        "valid": True, "config": nested(values), "origins": {path: loaded.origins[path] for path in values},
        "findings": loaded.findings,
    }  # fmt: skip
    emit(ask, data, Table(rows, head=("setting", "from", "value")))
    note(ask, "The configuration is valid.")


@compactctl.command("dry-run")
@_MESSAGES
@_CONFIG
@pass_ask
def dry_run(ask: Ask, messages: str, config: str | None) -> None:
    """Show the plan of a preflight; nothing is changed.

    No model and no key is needed.

    \b
    Example:
      compactctl dry-run --messages messages.json
    """
    from aether.api.compact_views import dry_run

    chosen, loaded = _configured(ask, config), _loaded(messages)
    trial = dry_run(
        _raws(loaded), chosen, system=loaded.system, tools=loaded.tools, wire=loaded.format, home=ask.home
    )
    data = {name: value for name, value in trial._asdict().items() if name not in ("after", "findings")}
    rows = [
        ("total messages", trial.total), ("pinned", trial.pinned), ("recent", trial.recent), ("tool I/O", trial.tool_io),
        ("eligible", trial.eligible), ("tokens", f"{trial.tokens} of {trial.max_tokens}"),
        ("trigger", f"Yes: {trial.reason}" if trial.trigger else "No"), ("after", f"{trial.tokens_after} tokens"),
    ]  # fmt: skip
    emit(ask, data, facts(rows, indent=0, room=14))
    _note(ask, trial.findings)


@compactctl.command("diff")
@_MESSAGES
@click.option("--after", metavar="FILE", help="Compare with these instead of the result of a compaction")
@_CONFIG
@pass_ask
def diff(ask: Ask, messages: str, after: str | None, config: str | None) -> None:
    """Compare the messages before and after a compaction.

    \b
    Example:
      compactctl diff --messages messages.json
    """
    from aether.api.compact_views import diff_messages, dry_run

    loaded = _loaded(messages)
    before = _raws(loaded)
    if after is None:
        then = dry_run(
            before, _configured(ask, config), system=loaded.system, tools=loaded.tools, wire=loaded.format,
            force=True, home=ask.home,
        ).after  # fmt: skip
    else:
        then = _raws(_loaded(after))
    rows = diff_messages(before, then)
    changed = [(_SIGNS[row.change], row.role, row.text) for row in rows if row.change != "kept"]
    emit(ask, rows, [f"{len(before)} -> {len(then)} messages", Table(changed), "- removed   + added"])


@compactctl.command("compact")
@_MESSAGES
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file instead of stdout")
@click.option(
    "--session", default="compactctl", show_default=True,
    help="Name that the whole conversation is kept under",
)  # fmt: skip
@click.option(
    "--note", "why", default="manual", show_default=True, help="The reason, for the receipt and the event"
)
@_CONFIG
@pass_ask
def compact(
    ask: Ask, *, messages: str, output: str | None, session: str, why: str, config: str | None
) -> None:
    """Compact messages now, and keep the whole of them.

    Prints messages and statistics as JSON. The whole conversation is kept in the home, or else in .compact/.

    \b
    Example:
      compactctl compact --messages messages.json --output smaller.json
    """
    from aether.api import compact
    from aether.api.compact import options_from_config
    from aether.messages.convert import bare

    need_output(ask, output, content="the conversation")
    chosen, loaded = _configured(ask, config), _loaded(messages)
    compaction = compact.compact(
        session, _raws(loaded), model=chosen.model, window=chosen.max_context_tokens, policy=chosen.policy.policy(),
        system=loaded.system, tools=loaded.tools, wire=loaded.format, note=why, options=options_from_config(chosen, home=ask.home),
    )  # fmt: skip
    data = {
        "messages": [bare(raw) for raw in compaction.messages],
        "statistics": {
            "tokens_before": compaction.tokens_before, "tokens_after": compaction.tokens_after,
            "pruned_count": len(compaction.receipt.removed) if compaction.receipt else 0,
        },
    }  # fmt: skip
    if output is not None:
        write_file(output, (as_json(data) + "\n").encode("utf-8", "surrogatepass"))
    emit(ask, data, output or as_json(data))
    _note(ask, compaction.findings)
    note(ask, f"{compaction.tokens_before} -> {compaction.tokens_after} tokens, by {compaction.counter}.")


@compactctl.command("create-config")
@click.option("--output", metavar="FILE", help="Write to this new file; its extension names the format")
@click.option(
    "--format", "kind", type=click.Choice(("toml", "yaml", "json")), default="yaml", show_default=True,
    help="The format on stdout",
)  # fmt: skip
@pass_ask
def create_config(ask: Ask, output: str | None, kind: str) -> None:
    """Write an example of every setting at its default.

    \b
    Example:
      compactctl create-config --output compact.toml
    """
    from aether.store.config import create, example, form_of

    if output is None:
        text = example(kind)
        emit(ask, {"output": None, "format": kind, "text": text}, text.rstrip("\n"))
        return
    path = create(output)
    emit(ask, {"output": str(path), "format": form_of(path), "text": None}, str(path))


def _settings(ask: Ask, config: str | None) -> Settings:
    """Return the settings of files and variables; slips in names are said first, whatever else is wrong."""
    import os

    from aether.api.conversations import record_directory
    from aether.store.config import settings, unknown_variables

    early = unknown_variables(os.environ)
    for finding in early:
        say(finding_line(finding))
    loaded = settings(config, home=record_directory(ask.home))
    _note(ask, [finding for finding in loaded.findings if finding not in early])
    return loaded


def _note(ask: Ask, findings: Sequence[Finding]) -> None:
    for finding in findings:
        note(ask, finding_line(finding))


def _configured(ask: Ask, config: str | None) -> CompactConfig:
    from aether.conversation.policy import config_from_values

    return config_from_values(_settings(ask, config).values)


def _loaded(messages: str) -> Conversation:
    """Return the conversation that JSON text, a file or stdin holds."""
    from io import BytesIO

    from aether.messages.transcripts import load_conversation

    if messages.lstrip()[:1] in ("[", "{"):
        return load_conversation(BytesIO(messages.encode("utf-8", "surrogateescape")))
    return load_conversation(sys.stdin.buffer if messages == "-" else messages)


def _raws(loaded: Conversation) -> list[dict[str, Any]]:
    return [message.raw for message in loaded.messages]


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 for every failure."""
    words = sys.argv[1:] if arguments is None else arguments
    code = interruptible(words, command=compactctl, name="compactctl")
    leave(code if code in (0, INTERRUPTED, BROKEN_PIPE) else FAILED, at_once=arguments is None)
