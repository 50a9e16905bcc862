"""Rules that act on the command line: list, add, enforce, relax and test them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from aether.cli.output import Ask, Group, Table, emit, is_typed, note, pass_ask, plain, when, with_options
from aether.text.words import pluralize

if TYPE_CHECKING:
    from aether.types import Action, EnforcedRule


@click.group("rule", cls=Group)
def rule_command() -> None:
    """Let rules stop tool calls of agents.

    A rule acts before each call of a tool, in every agent that `aether install` gave hooks. It is yours, on this machine:
    a home that came from others stops nothing. It prevents mistakes and is not a sandbox: it does not see what a script
    does.

    \b
    Example:
      aether rule list
    """


def pattern_options(command: Any) -> Any:
    """Add the options that say what a rule stops."""
    options = [
        click.option("--deny", "action", flag_value="deny", default=True, help="Refuse such a call  [default]"),
        click.option("--ask", "action", flag_value="ask", help="Have the agent ask you first if it can, else refuse"),
        click.option("--command", metavar="WORDS", default="", help="Shell commands that start with these words, or match a pattern with *"),
        click.option("--regex", metavar="REGEX", default="", help="Shell commands that contain a match of this expression"),
        click.option("--path", metavar="PATTERNS", default="", help="Edits of matching files, such as migrations/**"),
        click.option("--tool", metavar="NAME", default="", help="Calls of this tool, as the agent names it; * matches any"),
    ]  # fmt: skip
    return with_options(command, options)


@rule_command.command("list")
@pass_ask
def list_rules(ask: Ask) -> None:
    """List the rules that act, and those that could.

    \b
    Example:
      aether rule list
    """
    from aether.api import enforcing

    place = ask.place()
    acting, proposals = enforcing.enforced_rules(home=place), enforcing.rule_proposals(home=place)
    rows = [(rule["id"], rule["action"], pattern_words(rule), plain(rule["text"])) for rule in acting]
    table = Table(rows, head=("id", "action", "stops", "rule"))
    emit(ask, {"rules": acting, "proposals": proposals}, table if rows else "No rule acts.")
    for proposal in proposals:
        option = f'--command "{proposal.command}"' if proposal.command else f'--path "{proposal.path}"'
        note(ask, f"To let it act: aether rule enforce {proposal.entry} {option}   ({plain(proposal.text)})")


@rule_command.command("add")
@click.argument("text")
@pattern_options
@pass_ask
def add(ask: Ask, /, text: str, action: Action, **patterns: str) -> None:
    """Add a rule in your words, and let it act.

    Only what a person types acts, so this needs a terminal.

    \b
    Example:
      aether rule add "Never push on Fridays." --command "git push" --ask
    """
    from aether.api import enforcing
    from aether.errors import InvalidInput

    if not is_typed():
        raise InvalidInput(
            "a rule acts only if a person typed it, and this is not a terminal.",
            fix="Type it at a terminal, or enforce an entry of a person: aether rule enforce ID.",
            where="rule add",
        )
    _emit_rule(ask, enforcing.add_rule(text, action=action, home=ask.place(), **patterns))


@rule_command.command("enforce")
@click.argument("id")
@pattern_options
@pass_ask
def enforce(ask: Ask, /, id: str, action: Action, **patterns: str) -> None:
    """Let a person's entry stop tool calls.

    \b
    Example:
      aether rule enforce "$OTHER" --deny --command "git push*"
    """
    from aether.api import enforcing

    rule = enforcing.enforce_rule(id, action=action, home=ask.place(), **patterns)
    _emit_rule(ask, rule)


def _emit_rule(ask: Ask, rule: EnforcedRule) -> None:
    emit(ask, rule, f"{rule['id']}: {rule['action']} {pattern_words(rule)}")
    note(
        ask, "It acts in every agent that aether install gave hooks; one that had them before needs it again."
    )
    note(ask, f"What it would have stopped: aether rule test {rule['id']}")
    note(ask, f"To end it: aether rule relax {rule['id']}")


@rule_command.command("relax")
@click.argument("id")
@pass_ask
def relax(ask: Ask, id: str) -> None:
    """Stop enforcing a rule; its entry stays in memory.

    \b
    Example:
      aether rule relax "$RULE"
    """
    from contextlib import suppress

    from aether.api import enforcing, entries
    from aether.errors import NotFound

    place = ask.place()
    rule = enforcing.relax_rule(id, home=place)
    emit(ask, rule, f"Relaxed: {plain(rule['text'])}")
    with suppress(NotFound):
        if rule["entry"] and entries.about(rule["entry"], home=place).state == "in force":
            how = " or ".join(f"aether memory {verb} {rule['entry']}" for verb in ("resolve", "forget"))
            note(ask, f"It no longer stops calls, but briefs still show the rule. To end that: {how}")


@rule_command.command("test")
@click.argument("id")
@pass_ask
def test(ask: Ask, id: str) -> None:
    """Show past calls that a rule would have stopped.

    Memory holds changed files and the commands that were worth a note.

    \b
    Example:
      aether rule test "$RULE"
    """
    from aether.api import enforcing

    calls = enforcing.calls_stopped_by(id, home=ask.place())
    rows = [(when(call.at), call.action, call.tool, plain(call.call), call.id) for call in calls]
    table = Table(rows, head=("when", "action", "tool", "call", "entry"))
    emit(ask, calls, table if rows else "It would have stopped nothing that memory knows.")
    if rows:
        note(ask, f"It would have stopped {pluralize(len(rows), 'calls')}.")


def pattern_words(rule: EnforcedRule) -> str:
    """Return what a rule stops, in words."""
    patterns = {"command": rule["command"], "regex": rule["regex"], "path": rule["path"]}
    what = next((f"{name} {pattern}" for name, pattern in patterns.items() if pattern), "every call")
    return plain(f"{what} of {rule['tool']}" if rule["tool"] else what)
