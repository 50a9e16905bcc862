"""The choice of an architect: asked once, when aether is installed, and written where it counts.

For one project that is the `config.toml` of its home, which the user trusts with it; for all projects the user's own. Every
other byte of the file stays.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.errors import Conflict, InvalidDocument, InvalidInput
from aether.project import user_file
from aether.store import config
from aether.store.files import make_directory, storage_errors, write_whole
from aether.store.keys import KEYS, check_value

KEY = "architect.default"
# For whoever cannot be asked: it costs least, and sends nothing anywhere.
USUAL = "host"
# In the order in which a person is asked; a program needs --architect.
OFFERED = ("host", "claude-code", "anthropic", "openai", "ollama", "extractive")


class Choice(NamedTuple):
    """The change of a configuration that makes `architect` the architect."""

    architect: str
    path: Path
    before: bytes | None
    after: bytes

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


def present(scope: str, home: Path) -> str:
    """Return the architect that is chosen for `scope` already; empty if nobody chose."""
    path = file_of(scope, home)
    chosen = _table(_read(path), path).get("default", "")
    trusted = scope == "user" or not config.untrusted(home, KEY)
    return str(chosen) if trusted else ""


def plan(architect: str, scope: str, home: Path) -> Choice:
    """Return the change that makes `architect` the one of `scope`.

    Raises:
        InvalidInput: there is no such architect.
        InvalidDocument: the file is not TOML, or names the architect in a way that only a person can change.
        Conflict: the file of the home has settings that its user does not trust.
    """
    check_value(KEYS[KEY], architect, called="--architect")
    path = file_of(scope, home)
    before = _read(path)
    _table(before, path)
    if scope != "user" and any(config.untrusted(home)):
        raise Conflict(
            "has settings that nobody trusts, so the architect is not written beside them.",
            fix='Look at them with "aether trust --show", or choose for all projects: --user.', where=str(path),
        )  # fmt: skip
    after = with_architect((before or b"").decode("utf-8"), architect)
    if _table(after.encode(), path, fix=f'Set {KEY} = "{architect}" by hand.').get("default") != architect:
        raise InvalidDocument("names the architect twice.", fix=f"Set {KEY} by hand.", where=str(path))
    return Choice(architect, path, before, after.encode())


def write(choice: Choice, scope: str) -> None:
    """Write the choice; a home's file is trusted as it is then.

    Raises:
        StorageFailed: it cannot be written.
    """
    if choice.changes:
        with storage_errors(choice.path):
            make_directory(choice.path.parent)
            write_whole(choice.path, choice.after)
    if scope != "user":
        config.grant_trust(choice.path, choice.after)


def file_of(scope: str, home: Path) -> Path:
    """Return the configuration that a choice for `scope` is written to."""
    return Path(user_file()) if scope == "user" else home / config.NAME


def with_architect(text: str, architect: str) -> str:
    r"""Return the configuration `text` with `architect` as the default one.

    >>> with_architect("[claude]\nrecall = false\n", "host")
    '[claude]\nrecall = false\n\n[architect]\ndefault = "host"\n'
    """
    line = f"default = {json.dumps(architect)}\n"
    lines = text.splitlines(keepends=True)
    heads = [at for at, each in enumerate(lines) if each.partition("#")[0].strip() == "[architect]"]
    if not heads:
        space = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{space}{chr(10) if text else ''}[architect]\n{line}"
    for at in range(heads[0] + 1, len(lines)):
        if lines[at].lstrip().startswith("["):
            break
        if lines[at].partition("=")[0].strip() == "default":
            return "".join([*lines[:at], line, *lines[at + 1 :]])
    head = lines[heads[0]].rstrip("\n") + "\n"
    return "".join([*lines[: heads[0]], head, line, *lines[heads[0] + 1 :]])


def _read(path: Path) -> bytes | None:
    with storage_errors(path):
        try:
            return regular.read(path, regular.CONFIG_BYTES)
        except FileNotFoundError:
            return None


def _table(data: bytes | None, path: Path, *, fix: str = "Correct the file.") -> dict[str, Any]:
    try:
        table = tomllib.loads((data or b"").decode("utf-8")).get("architect", {})
    except ValueError as reason:
        raise InvalidDocument(f"is not TOML: {reason}.", fix=fix, where=str(path)) from reason
    if not isinstance(table, dict):
        raise InvalidInput("architect must be a table.", fix=fix, where=str(path))
    return table
