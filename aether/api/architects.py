"""Architects: who writes the sessions of a home, what that costs, and the state of those that hooks start.

The state is in `<home>/hooks/architect/`: the tokens of today, the work at hand, the last failure, and what was tried.
`api.detached` keeps it. It is bookkeeping: after a loss something is tried once more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether.errors import AetherError, Conflict, InvalidDocument, InvalidInput
from aether.project import user_file
from aether.store import config
from aether.store.files import save, storage_errors, write_whole
from aether.store.keys import KEYS, Config, check_value
from aether.store.spool import require_real
from aether.types import JsonObject

DIRECTORY = "architect"
_FORMS: dict[str, dict[str, type]] = {
    "spent": {"day": str, "tokens": int}, "failure": {"at": str, "what": str}, "running": {"at": str, "session": str}, "tried": {},
}  # fmt: skip
# The architects that hooks start no process for.
UNASKED = ("extractive", "host", "manual")
# One question and two corrections: a model that fails three times keeps failing.
TRIES = 3
# Seconds of slack before work without an end counts as killed.
SLACK_SECONDS = 60
COSTS = {
    "host": "the agent that is running writes them: about 600 tokens each time (after a commit, a finished plan, ten edits, a compaction), "
    "500 for the tool; nothing is sent to another model",
    "claude-code": "your own Claude Code is started after a session, with your subscription or key",
    "anthropic": "each session is sent to Anthropic after its end, with your key",
    "openai": "each session is sent to OpenAI, or to the server that is set, after its end, with your key",
    "ollama": "your own Ollama is asked after a session; it costs time of this machine",
    "command": "your program is started after a session",
    "extractive": "no model is asked, so nothing is judged; it costs nothing",
    "manual": "a person writes them",
}


class Standing(NamedTuple):
    """The architect of a home, for `aether status`."""

    architect: str
    cost: str
    tokens_today: int
    daily_tokens: int
    """The limit; 0 for an architect that hooks do not start."""
    failure: str
    """What went wrong last, or that the limit is reached; empty if all is well."""


def standing(home: Path) -> Standing:
    """Return who writes the sessions of `home`, what that costs, and what went wrong last."""
    settings, state = config.or_default(home), read_state(home)
    chosen = settings.architect
    name = chosen.partition(":")[0]
    cost = COSTS.get(name, f"each session is sent to {name} after its end")
    if chosen in UNASKED:
        return Standing(chosen, cost, 0, 0, "")
    failure, running = state.get("failure") or {}, state.get("running") or {}
    words = f"{failure['at'][:16]}: {failure['what']}" if failure else ""
    if running and clock.parse(running["at"]) + patience(settings) < clock.now():
        words = f"{running['at'][:16]}: it did not finish. Nothing changed."
    return Standing(chosen, cost, spent_today(state), settings.architect_daily_tokens, words)


def patience(settings: Config) -> timedelta:
    """Return how long one session may take, with all its tries."""
    return timedelta(seconds=settings.architect_timeout_seconds * TRIES + SLACK_SECONDS)


def today() -> str:
    """Return the day whose tokens are counted, in UTC."""
    return f"{clock.now():%Y-%m-%d}"


def spent_today(state: Mapping[str, Any]) -> int:
    """Return the tokens that hooks have spent on an architect today."""
    spent = state.get("spent") or {}
    return int(spent["tokens"]) if spent.get("day") == today() else 0


def read_state(home: Path) -> JsonObject:
    """Return the state of the architect of `home`; empty without one."""
    with suppress(OSError, AetherError, ValueError, RecursionError):
        require_real(str(home), DIRECTORY)
        state = json.loads(regular.read(_file(home)))
        if isinstance(state, dict):
            return {name: part for name, part in state.items() if _is_part(name, part)}
    return {}


def _is_part(name: str, part: object) -> bool:
    """Return whether a part of the state has the form that `api.detached` writes: a home may come from anybody."""
    if not isinstance(part, dict) or name not in _FORMS:
        return False
    has_types = all(type(part.get(field)) is kind for field, kind in _FORMS[name].items() if part)
    return has_types and ("at" not in part or bool(clock.parse(part["at"])))


def write_state(home: Path, state: JsonObject) -> None:
    """Write the state of the architect of `home`, whose directory exists.

    Raises:
        StorageFailed: it could not be written, or the directory leads elsewhere.
    """
    with storage_errors(_file(home)):
        require_real(str(home), DIRECTORY)
        write_whole(_file(home), json.dumps(state).encode("ascii"))


def _file(home: Path) -> Path:
    return home / "hooks" / DIRECTORY / "state.json"


# --- The choice of an architect: asked once, when aether is installed, and written where it counts. For one project that is
# the `config.toml` of its home, which the user trusts with it; for all projects the user's own. Every other byte stays.

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


def chosen(scope: str, home: Path) -> str:
    """Return the architect that is chosen for `scope` already; empty if nobody chose."""
    path = file_of(scope, home)
    name = _architect_table(_read_config(path), path).get("default", "")
    trusted = scope == "user" or not config.untrusted(home, KEY)
    return str(name) if trusted else ""


def choose(architect: str, scope: str, home: Path) -> Choice:
    """Return the change that makes `architect` the one of `scope`.

    Raises:
        InvalidInput: there is no such architect.
        InvalidDocument: the file is not TOML, or names the architect in a way that only a person can change.
        Conflict: the file of the home has settings that its user does not trust.
    """
    check_value(KEYS[KEY], architect, called="--architect")
    path = file_of(scope, home)
    before = _read_config(path)
    _architect_table(before, path)
    if scope != "user" and any(config.untrusted(home)):
        raise Conflict(
            "has settings that nobody trusts, so the architect is not written beside them.",
            fix='Look at them with "aether trust --show", or choose for all projects: --user.', where=str(path),
        )  # fmt: skip
    after = with_architect((before or b"").decode("utf-8"), architect)
    if (
        _architect_table(after.encode(), path, fix=f'Set {KEY} = "{architect}" by hand.').get("default")
        != architect
    ):
        raise InvalidDocument("names the architect twice.", fix=f"Set {KEY} by hand.", where=str(path))
    return Choice(architect, path, before, after.encode())


def write_choice(choice: Choice, scope: str) -> None:
    """Write the choice; a home's file is trusted as it is then.

    Raises:
        StorageFailed: it cannot be written.
    """
    if choice.changes:
        save(choice.path, choice.after)
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
    heads = [
        number
        for number, line_of_file in enumerate(lines)
        if line_of_file.partition("#")[0].strip() == "[architect]"
    ]
    if not heads:
        space = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{space}{chr(10) if text else ''}[architect]\n{line}"
    for number in range(heads[0] + 1, len(lines)):
        if lines[number].lstrip().startswith("["):
            break
        if lines[number].partition("=")[0].strip() == "default":
            return "".join([*lines[:number], line, *lines[number + 1 :]])
    head = lines[heads[0]].rstrip("\n") + "\n"
    return "".join([*lines[: heads[0]], head, line, *lines[heads[0] + 1 :]])


def _read_config(path: Path) -> bytes | None:
    with storage_errors(path):
        try:
            return regular.read(path, regular.CONFIG_BYTES)
        except FileNotFoundError:
            return None


def _architect_table(data: bytes | None, path: Path, *, fix: str = "Correct the file.") -> dict[str, Any]:
    try:
        import tomllib  # of a configuration only

        table = tomllib.loads((data or b"").decode("utf-8")).get("architect", {})
    except ValueError as reason:
        raise InvalidDocument(f"is not TOML: {reason}.", fix=fix, where=str(path)) from reason
    if not isinstance(table, dict):
        raise InvalidInput("architect must be a table.", fix=fix, where=str(path))
    return table
