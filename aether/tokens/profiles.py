"""Model profiles: how much a model takes, and how far its tokens are from what is counted here.

They come from `data/models.json`, after the entries of the user's own `models.json`; the first entry whose pattern
fits the name of the model holds. A model that nobody listed gets a small window, and `finding` says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from aether.errors import AetherError, InvalidDocument, shown
from aether.messages.message import WIRES, Wire
from aether.paths import resource
from aether.shapes import Finding
from aether.tokens.counters import counter

# Tokens. Of the hosted models that are still offered the first GPT-4 has the smallest window, this one; a local
# server may well be set to less, and then its owner names the window.
UNKNOWN_WINDOW = 8_192
SCHEMA_VERSION = 1
# What stands before a model's name on routers and clouds: `openrouter/anthropic/`, `models/`, `us.anthropic.`, `ft:`.
_PREFIXES = re.compile(r"^(?:.*/)?(?:[a-z-]+[.:])*")


class Entry(NamedTuple):
    """One line of a file of models."""

    match: str
    """Shell pattern for names, lower case, without what stands before a model's name on routers and clouds."""
    window: int
    """Most tokens that may be sent: the whole window, or less where a provider keeps a part for the answer."""
    output: int = 0
    """Most tokens of one answer; 0: not known."""
    counter: str = "estimate"
    """The counter whose vocabulary is the model's own; the estimate where none is published."""
    factor: float = 1.0
    """Tokens of the model for one of o200k_base, which the estimate is fitted to."""
    wire: Wire = "openai"
    assumed: bool = False
    """Whether this stands for models of a family that nobody has looked up."""


class Profile(NamedTuple):
    """What is known of one model; the fields are those of `Entry`."""

    model: str
    match: str
    window: int
    output: int
    counter: str
    factor: float
    wire: Wire
    known: bool
    """Whether the window was looked up, not assumed."""


def profile(model: str, *, own: Sequence[Entry] = ()) -> Profile:
    """Return the profile of `model`: by the first fitting entry of `own`, else of the shipped ones.

    >>> profile("us.anthropic.claude-opus-5-5-v1:0").window, profile("home-made").known
    (1000000, False)
    """
    name = model.lower()
    names = {name, _PREFIXES.sub("", name)}
    for entry in (*own, *shipped()):
        if any(fnmatchcase(each, entry.match) for each in names):
            return Profile(model, *entry[:-1], known=not entry.assumed)
    return Profile(model, *Entry("", UNKNOWN_WINDOW)[:-1], known=False)


def finding(found: Profile) -> Finding | None:
    """Return what to tell about a profile whose window was assumed; None where it was looked up."""
    if found.known:
        return None
    by = f"like {found.match}" if found.match else "the smallest that hosted models have"
    return Finding(
        "warning",
        "unknown-model",
        found.model,
        f"the window of {shown(found.model)} is not known; {found.window} tokens are assumed, {by}.",
        "Name the window, or add the model to models.json in the home.",
    )


@lru_cache(maxsize=1)
def shipped() -> tuple[Entry, ...]:
    """Return the entries that come with aether."""
    return read(resource("data/models.json"))


def read(path: Path) -> tuple[Entry, ...]:
    """Return the entries of the file at `path`.

    Raises:
        InvalidDocument: it is not JSON, or a key is unknown, missing or of the wrong kind; `where` names it.
    """
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(f"not JSON: {error}.", fix="Correct the file.", where=str(path)) from error
    return entries(value, where=str(path))


def entries(value: Any, *, where: str) -> tuple[Entry, ...]:
    """Return the entries that `value`, the content of a file of models, lists.

    >>> entries({"models": [{"match": "mine*", "window": 32768}]}, where="models.json")[0].window
    32768

    Raises:
        InvalidDocument: a key is unknown, missing or of the wrong kind; `where` names it.
    """
    where = f"{where}::$"
    table = _table(value, {"schema_version", "checked", "models"}, where)
    if table.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise _wrong(f"{where}.schema_version", table["schema_version"], f"Use {SCHEMA_VERSION}.")
    models = table.get("models", [])
    if not isinstance(models, list):
        raise _wrong(f"{where}.models", models, "Use a list.")
    return tuple(_entry(model, f"{where}.models[{at}]") for at, model in enumerate(models))


def _entry(value: Any, where: str) -> Entry:
    table = _table(value, Entry._fields, where)
    for key in ("match", "window"):
        if key not in table:
            raise InvalidDocument(f"{key} is missing.", fix="Add it.", where=where)
    for key, given in table.items():
        _require(key, given, f"{where}.{key}")
    return Entry(**table)._replace(match=table["match"].lower(), factor=float(table.get("factor", 1.0)))


def _require(key: str, given: Any, where: str) -> None:
    wanted = get_type_hints(Entry)[key]
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if key == "factor" and not (number and 0 < given < 100):
        raise _wrong(where, given, "Use a number above 0, such as 1.3.")
    if wanted is int and not (type(given) is int and given >= (key == "window")):
        raise _wrong(where, given, "Use a whole number of tokens.")
    if wanted is bool and not isinstance(given, bool):
        raise _wrong(where, given, "Use true or false.")
    if wanted is str and not (isinstance(given, str) and given):
        raise _wrong(where, given, "Use a text.")
    if key == "wire" and given not in WIRES:
        raise _wrong(where, given, f"Use one of {', '.join(WIRES)}.")
    if key == "counter":
        _require_counter(given, where)


def _require_counter(name: str, where: str) -> None:
    try:
        counter(name)
    except AetherError as error:
        raise _wrong(where, name, error.fix) from error


def _table(value: Any, keys: Iterable[str], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, value, "Use an object.")
    for key in value:
        if key not in keys:
            raise InvalidDocument(
                f"{shown(key)} is not a setting.",
                fix=f"Use {', '.join(sorted(keys))}.",
                where=f"{where}.{key}",
            )
    return value


def _wrong(where: str, given: Any, fix: str) -> InvalidDocument:
    return InvalidDocument(f"{shown(given)} cannot stand here.", fix=fix, where=where)
