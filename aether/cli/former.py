"""Former spellings of commands, which work for one more release with a hint on stderr.

`{}` is the next word of the command line; without one, it and the option before it are left out. `{*}` is
all words before the first option, as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

FORMER_SPELLINGS = {
    "memory add": "add",
    "memory compress": "compress",
    "memory clear": "compress --no-session",
    "memory close": "memory ingest",
    "memory get": "memory show",
    "memory link": "graph --link",
    "memory list": "memory show",
    "memory stats": "status --compressions",
    "memory status": "status --layers",
    "memory supersede": "memory resolve",
    "memory verify": "status --limits",
    "history": "timeline",
    "compact diff": "compact show --diff",
    "compact list": "compact show",
    "compact plan": "compact run --dry-run",
    "compact undo": "undo --conversation",
    "messages check": "compact check",
    "context check": "context status --check",
    "context checkpoints": "context status --checkpoints",
    "context export": "export",
    "context list": "context status",
    "context mode": "context set {} --mode {}",
    "context model": "context set {} --model {}",
    "context restore": "context snapshot --restore",
    "archive explain": "archive list --why",
    "archive schedule": "archive age --schedule",
    "archive search": "archive list --search {*}",
    "archive show": "archive list",
    "archive stats": "archive list --stats",
    "archive unmark": "archive mark --remove",
    "archive verify": "archive list --verify",
    "goal list": "goal show --list",
    "goal pause": "goal done --paused",
    "goal unblock": "goal block --resolved",
    "signal emit": "signal",
    "signal list": "signal",
    "phase show": "state",
    "state recover": "state --recover",
    "state set": "state",
    "state show": "state",
    "share grant": "share members",
    "share revoke": "share members --revoke",
    "claude resume": "claude pause --resume",
    "backup verify": "backup list --verify",
    "snapshot create": "snapshot",
    "snapshot list": "snapshot --list",
    "snapshot restore": "snapshot --restore",
    "schema check": "schema --check",
    "schema show": "schema",
    "tokens models": "tokens count --models",
    "graph export": "graph --export",
    "graph import": "graph --import",
    "graph search": "graph",
}


def spelled_now(former: str, words: Sequence[str]) -> list[str]:
    """Return the command line of today for a former spelling that is followed by `words`.

    >>> spelled_now("archive search", ["webhook", "retries", "--limit", "3"])
    ['archive', 'list', '--search', 'webhook retries', '--limit', '3']
    """
    leading = [*takewhile(lambda word: not word.startswith("-"), words)]
    options = words[len(leading) :]
    spelling = []
    for part in FORMER_SPELLINGS[former].split():
        if part == "{*}":
            spelling.append(" ".join(leading))
            leading = []
        elif part == "{}" and leading:
            spelling.append(leading.pop(0))
        elif part == "{}" and spelling[-1].startswith("-"):
            spelling.pop()
        elif part != "{}":
            spelling.append(part)
    return [*spelling, *leading, *options]
