"""Who counts for a model, and what its provider reports: the learned correction of one home.

Counts are those of the home's own counter times a factor: the one learned from reports about this very model, else
the one of its profile. Reports lie in `data/usage.json` of the home, beside the journal: they are a measurement and no
state, `aether undo` must not take them back, and whoever removes the file only has to learn anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from aether.errors import AetherError, InvalidInput, NotFound, shown
from aether.operations.edge import Home, find, read
from aether.shapes import Counter, Finding
from aether.store import codec
from aether.store.files import storage, write_whole
from aether.store.lock import locked
from aether.store.state import FileId, file_id
from aether.tokens import profiles
from aether.tokens.counters import counter, label
from aether.tokens.profiles import Entry, Profile, profile
from aether.tokens.usage import FACTOR_PLACES, Reports, after, parsed, reported, written


class Counting(NamedTuple):
    """How the messages of one model are counted."""

    count: Counter
    label: str
    """Which counter that is, in words."""
    counter: str
    factor: float
    """What the counter is multiplied by, learned or from the profile."""
    reports: int
    """How many reports of the provider that factor was learned from."""
    profile: Profile | None
    """None where no model was named."""
    findings: tuple[Finding, ...] = ()


class Listed(NamedTuple):
    """One model, as a person is shown it."""

    model: str
    window: int
    output: int
    known: bool
    factor: float
    counter: str
    """Who counts for it, in words."""
    reports: int


def counting(model: str = "", *, place: Path | None = None) -> Counting:
    """Return how messages for `model` are counted where `place` is the home, or a directory that may be none.

    Reports that cannot be read are a finding, and the profile's factor holds.

    Raises:
        InvalidDocument: the user's own `models.json` there is wrong; `where` says at which key.
    """
    name, factor = _counter(place)
    if not model:
        return Counting(counter(name, factor), label(name, factor), name, factor, 0, None)
    findings: list[Finding] = []
    own = _own(place)
    found = profile(model, own=own)
    reports = _reports(place, findings).get(model, Reports(name))
    learned = reports.counter == name and bool(reports.ratios)
    factor = reports.factor if learned else round(factor * found.factor, FACTOR_PLACES)
    doubt = profiles.finding(found)
    return Counting(
        counter(name, factor),
        label(name, factor),
        name,
        factor,
        len(reports.ratios) if learned else 0,
        found,
        (*findings, *([doubt] if doubt else [])),
    )


def record_usage(model: str, counted: int, usage: int | Mapping[str, Any], *, home: Home = None) -> Counting:
    """Learn from a request that was counted as `counted` and that its provider reports as `usage`.

    `counted` is what aether said of the whole request, system prompt and tools included; `usage` is the number of
    input tokens, cached ones included, or the usage object of the provider's answer. Return how the model is
    counted from now on.

    Raises:
        InvalidInput: a number is not positive, the model has no name, or `usage` names no input tokens.
        InvalidDocument: what was learned before cannot be read.
        LockTimeout: another process is writing.
    """
    if not model.strip():
        raise InvalidInput("there is no model.", fix="Name the model that answered.", where="model")
    if type(counted) is not int or counted < 1:
        raise InvalidInput(
            f"{shown(counted)} is not a number of tokens.", fix="Give what aether counted.", where="counted"
        )
    tokens, place = reported(usage), find(home)
    path = _path(place)
    with locked(place), storage(path):
        now = counting(model, place=place)
        known = dict(_read(path, _id(path)))
        held = known.get(model, Reports(now.counter))
        known[model] = after(held, now.counter, counted / now.factor, tokens)
        if known[model] != held:
            write_whole(path, codec.document(written(known)))
    return counting(model, place=place)


def models(*names: str, home: Home = None) -> list[Listed]:
    """Return what is known of `names`; of no names, of each model that was reported on and each pattern of models.

    Raises:
        InvalidDocument: the user's own `models.json` is wrong; `where` says at which key.
    """
    try:
        place = find(home)
    except NotFound:
        if home is not None:
            raise
        place = None
    if names:
        return [_listed(name, counting(name, place=place)) for name in names]
    heard = [_listed(name, counting(name, place=place)) for name in sorted(_reports(place, []))]
    base, factor = _counter(place)
    return heard + [_pattern(entry, base, factor) for entry in (*_own(place), *profiles.shipped())]


def _listed(name: str, found: Counting) -> Listed:
    known = found.profile or profile(name)
    return Listed(name, known.window, known.output, known.known, found.factor, found.label, found.reports)


def _pattern(entry: Entry, name: str, factor: float) -> Listed:
    factor = round(factor * entry.factor, FACTOR_PLACES)
    return Listed(entry.match, entry.window, entry.output, not entry.assumed, factor, label(name, factor), 0)


def _counter(place: Path | None) -> tuple[str, float]:
    if place is None:
        return "estimate", 1.0
    try:
        settings = read(place).documents["memory"]["token_counter"]
    except NotFound:
        return "estimate", 1.0
    return settings["counter"], settings["factor"]


def _own(place: Path | None) -> tuple[Entry, ...]:
    path = place / "models.json" if place else None
    return _entries(path, _id(path)) if path else ()


def _reports(place: Path | None, findings: list[Finding]) -> dict[str, Reports]:
    path = _path(place) if place else None
    try:
        return _read(path, _id(path)) if path else {}
    except AetherError as error:
        findings.append(Finding("warning", error.code, error.where, error.what, error.fix))
        return {}


def _id(path: Path) -> FileId:
    with storage(path):
        return file_id(str(path))


def _path(place: Path) -> Path:
    return place / "data" / "usage.json"


@lru_cache(maxsize=16)
def _entries(path: Path, found: FileId) -> tuple[Entry, ...]:
    with storage(path):
        return profiles.read(path) if found else ()


@lru_cache(maxsize=16)
def _read(path: Path, found: FileId) -> dict[str, Reports]:
    """Return the reports in the file at `path`, which is never changed but by a copy."""
    with storage(path):
        return parsed(codec.parse(path.read_bytes(), where=str(path)), where=str(path)) if found else {}
