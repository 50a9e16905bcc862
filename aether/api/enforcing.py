"""Rules that act: a person's entry becomes a check before each call of a tool, and back.

Nothing but a person's own entry is enforced, and only by an explicit call; `proposals` says which entries name a command or a
path. What acts is in the user's own state directory (`aether.store.enforced`), so that no home that came from others acts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from aether import git
from aether.api.entries import About, about
from aether.api.home import Home, find, now, read
from aether.api.working import add_working_memory_item
from aether.clock import new_id
from aether.errors import InvalidInput, NotFound, public, require_one_of, shown
from aether.memory.enforcement import decide, fits_itself
from aether.memory.items import items_of
from aether.store import enforced
from aether.store.origin import is_confirmed
from aether.text.shell_syntax import UNFINISHED
from aether.types import RULE_TYPES, Action, EnforcedRule

MOST_RULES = 200
PATTERN_CHARS = 500
# So many rules of so many characters are far below the limit of who reads them.
TEXT_CHARS = 5_000
_QUOTED = re.compile(r"`([^`\n]{2,80})`")


class StoppedCall(NamedTuple):
    """A call of the past that a rule would have stopped."""

    id: str
    """The entry of memory that knows it."""
    at: str
    tool: str
    call: str
    """The command or the path."""
    action: Action


class Proposal(NamedTuple):
    """A person's rule that names a command or a path, and could act."""

    entry: str
    text: str
    command: str
    path: str


@public
def enforced_rules(*, home: Home = None) -> list[EnforcedRule]:
    """Return the rules that act in this home, oldest first.

    Raises:
        CorruptDocument: their file is damaged.
    """
    return enforced.read(find(home))


@public
def enforce_rule(
    entry: str, *, action: Action = "deny", tool: str = "", command: str = "", regex: str = "", path: str = "",
    home: Home = None,
) -> EnforcedRule:  # fmt: skip
    """Let the entry `entry` stop calls of tools from now on, and return the rule.

    At most one of `command` (words or a pattern of a shell command), `regex` (of a shell command) and `path` (patterns of
    edited files) is given; with `tool` alone every call of that tool is stopped.

    Raises:
        NotFound: memory has no such entry.
        InvalidInput: the entry is not one of a person of this home, or is no longer in force; the pattern is missing or
            wrong; or there are too many rules.
        StorageFailed: the state directory cannot be written.
    """
    known = about(entry, home=home)
    metadata: Mapping[str, Any] = known.entry.get("metadata") or {}
    if metadata.get("evidence") != "person" or not is_confirmed(find(home)):
        raise InvalidInput(
            "only an entry of a person can act.", where=known.id,
            fix='Add the rule yourself, at a terminal: aether rule add "…" --command "…".',
        )  # fmt: skip
    if known.state not in ("in force", "archived"):
        raise InvalidInput(f"the entry is {known.state}.", fix="Choose one that is in force.", where=known.id)
    return _let_act(known.text, known, action, home, tool=tool, command=command, regex=regex, path=path)


@public
def add_rule(text: str, *, action: Action = "deny", home: Home = None, **patterns: str) -> EnforcedRule:
    """Add the words of a person, and let them stop calls of tools as `enforce_rule` does; of a rule that cannot act nothing is added."""
    return _let_act(text, None, action, home, **patterns)


def _let_act(text: str, known: About | None, action: Action, home: Home, **patterns: str) -> EnforcedRule:
    patterns = {name: patterns.get(name, "") for name in ("tool", "command", "regex", "path")}
    _check(text, action, patterns)

    def with_rule(rules: list[EnforcedRule]) -> list[EnforcedRule]:
        others = [
            other for other in rules if known is None or _pattern(other) != (known.id, *patterns.values())
        ]
        if len(others) >= MOST_RULES:
            raise InvalidInput(f"{MOST_RULES} rules act already.", fix="Relax one first.", where="rule")
        entry = known or about(
            add_working_memory_item(text, "constraint", 0.9, metadata={"evidence": "person"}, home=home),
            home=home,
        )
        rule = EnforcedRule(
            id=new_id("rule", now()), entry=entry.id, text=" ".join(text.split()), said_at=entry.at, action=action,
            tool=patterns["tool"], command=patterns["command"], regex=patterns["regex"], path=patterns["path"],
        )  # fmt: skip
        return [*others, rule]

    return enforced.change(find(home), with_rule)[-1]


def _pattern(rule: EnforcedRule) -> tuple[str, ...]:
    return rule["entry"], rule["tool"], rule["command"], rule["regex"], rule["path"]


def _check(text: str, action: Action, patterns: Mapping[str, str]) -> None:
    require_one_of(action, ("deny", "ask"), "an action", where="action")
    if len(text) > TEXT_CHARS:
        raise InvalidInput(
            f"the rule has {len(text)} characters.", fix=f"Add one of at most {TEXT_CHARS}.", where="text"
        )
    given = {name: pattern for name, pattern in patterns.items() if pattern}
    if not given or len(given.keys() - {"tool"}) > 1:
        raise InvalidInput(
            "expected one of command, regex and path, or a tool.",
            fix='Such as: --command "git push*".',
            where="rule",
        )
    for name, pattern in given.items():
        if len(pattern) > PATTERN_CHARS or not pattern.strip() or "\0" in pattern:
            raise InvalidInput(
                "the pattern is empty or too long.",
                fix=f"Use at most {PATTERN_CHARS} characters.",
                where=name,
            )
    try:
        re.compile(given.get("regex", ""))
    except re.error as reason:
        raise InvalidInput(
            f"is not a regular expression: {reason}.", fix="Correct it.", where="regex"
        ) from reason
    if "command" in given and not fits_itself(given["command"]):
        raise InvalidInput(
            f"{shown(given['command'])} would not stop this command itself.", where="command",
            fix="Name one command as its program gets it: without quotes, variables and the options of git before its verb.",
        )  # fmt: skip


@public
def relax_rule(id: str, *, home: Home = None) -> EnforcedRule:
    """Stop enforcing a rule, and return it; its entry stays in memory. `id` may be the end of the id.

    Raises:
        NotFound, InvalidInput: no rule has this id, or several.
        StorageFailed: the state directory cannot be written.
    """
    place = find(home)
    rule = _named(enforced.read(place), id)
    enforced.change(place, lambda rules: [other for other in rules if other["id"] != rule["id"]])
    return rule


def _named(rules: list[EnforcedRule], id: str) -> EnforcedRule:
    matches = [rule for rule in rules if rule["id"] == id or (id and rule["id"].endswith(id))]
    if len(matches) > 1:
        raise InvalidInput(f"{shown(id)} names several rules.", fix="Use more of the id.", where="rule")
    if not matches:
        raise NotFound(
            f"no rule that acts has the id {shown(id)}.", fix='See "aether rule list".', where="rule"
        )
    return matches[0]


@public
def calls_stopped_by(id: str, *, home: Home = None) -> list[StoppedCall]:
    """Return the calls in memory that a rule would have stopped, newest first.

    Memory knows changed files, and the runs that were worth a note by the start of their first line. So the end that such
    a line lacks is no reason to ask.

    Raises:
        NotFound, InvalidInput: no rule that acts has this id, or several.
    """
    place = find(home)
    rule = _named(enforced.read(place), id)
    directory, git_aliases = str(place.parent), cache(git.aliases)
    stopped = []
    for item in items_of(read(home).documents["memory"]):
        call = _call(item["metadata"].get("fact") or {})
        decision = decide([rule], call[0], call[1], directory, git_aliases) if call else None
        if call and decision and not decision.doubt.startswith(UNFINISHED):
            words = str(call[1].get("command") or call[1].get("file_path"))
            stopped.append(
                StoppedCall(item["id"], item["metadata"]["timestamp"], call[0], words, decision.action)
            )
    return stopped[::-1]


def _call(fact: Mapping[str, Any]) -> tuple[str, dict[str, str]] | None:
    """Return the call that a fact is about: its tool and arguments."""
    if command := fact.get("command"):
        return "Bash", {"command": str(command)}
    if fact.get("kind") == "change" and fact.get("path"):
        return "Edit", {"file_path": str(fact["path"])}
    return None


@public
def rule_proposals(*, home: Home = None) -> list[Proposal]:
    """Return the rules of a person that name a command or a path in backticks and do not act, newest first."""
    place = find(home)
    acting, confirmed = {rule["entry"] for rule in enforced.read(place)}, is_confirmed(place)
    proposals = []
    for item in items_of(read(home).documents["memory"]):
        is_rule = confirmed and item["type"] in RULE_TYPES and item["metadata"].get("evidence") == "person"
        quoted = _QUOTED.search(item["content"]) if is_rule and item["id"] not in acting else None
        if quoted:
            is_path = " " not in quoted[1] and ("/" in quoted[1] or "." in quoted[1][1:])
            command, path = ("", quoted[1]) if is_path else (quoted[1], "")
            proposals.append(Proposal(item["id"], " ".join(item["content"].split()), command, path))
    return proposals[::-1]
