"""Words that a person handed over to a command of an agent, such as `/aether:remember TEXT`: the agent that repeats them states nothing.

Kept are checksums of the newest few, so that the words themselves are nowhere else.
"""

from __future__ import annotations

import json
import os

from aether import regular
from aether.errors import AetherError

FILE, MOST = "hooks/handed.json", 20


def note(home: str, prompt: str) -> None:
    """Note the words after the name of a command in `prompt`; nothing for another prompt, and no failure matters here."""
    command, _, words = prompt.partition(" ")
    if not command.startswith("/") or not words.strip() or not os.path.isdir(os.path.join(home, "hooks")):
        return
    try:
        path = os.path.join(home, FILE)
        known = [*_read(home), _checksum(words)][-MOST:]
        temporary = f"{path}.{os.getpid()}.tmp"
        regular.create(temporary, json.dumps(known).encode())
        os.replace(temporary, path)
    except (AetherError, OSError):
        return


def was_handed(home: str | os.PathLike[str], text: str) -> bool:
    """Return whether a person handed over exactly these words lately."""
    return _checksum(text) in _read(home)


def _read(home: str | os.PathLike[str]) -> list[str]:
    try:
        known = json.loads(regular.read(os.path.join(home, FILE), regular.CONFIG_BYTES))
    except (OSError, AetherError, ValueError, RecursionError):
        return []
    return [entry for entry in known if isinstance(entry, str)] if isinstance(known, list) else []


def _checksum(words: str) -> str:
    return regular.digest(" ".join(words.split()).casefold().encode("utf-8", "replace"))
