"""Token counting, as a caller asks for it: count, fetch exact vocabularies, choose and calibrate a counter.

A home records its counter; changing it counts every item and session anew, so that the counts of the
items and of the state always agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aether.errors import InvalidInput, NotFound
from aether.memory.items import items_of
from aether.memory.recount import recounted
from aether.operations.edge import Author, Home, change, read
from aether.shapes import Change
from aether.store import appends
from aether.tokens import calibrate as calibration
from aether.tokens import exact
from aether.tokens.counters import counter, label


class Counted(NamedTuple):
    """How many tokens a text has, and who says so."""

    tokens: int
    counter: str
    characters: int


def count_tokens(text: str, *, name: str | None = None, home: Home = None) -> Counted:
    """Return the tokens of `text` by the counter `name`, else by the home's, else by the estimate.

    Raises:
        InvalidInput: there is no such counter.
        BackendUnavailable: its vocabulary is not on this machine.
    """
    factor = 1.0
    if name is None:
        try:
            settings = read(home).documents["memory"]["token_counter"]
            name, factor = settings["counter"], settings["factor"]
        except NotFound:
            if home is not None:
                raise
            name = "estimate"
    return Counted(counter(name, factor)(text), label(name, factor), len(text))


def fetch_vocabulary(name: str, *, url: str = "") -> Path:
    """Download the vocabulary of an exact counter, checked against its known checksum, and return its path.

    Raises:
        InvalidInput: there is no such vocabulary.
        BackendUnavailable: it cannot be reached.
    """
    return exact.fetch(name, url=url)


def use_counter(name: str, factor: float = 1.0, *, home: Home = None) -> str:
    """Make `name` the counter of the home, count everything anew, and return how it is called in words.

    Raises:
        InvalidInput: there is no such counter.
        BackendUnavailable: its vocabulary is not on this machine.
    """
    counter(name, factor)("probe")  # a missing vocabulary must show before anything is changed

    def plan(documents: Mapping[str, Any]) -> Change:
        return recounted(documents["memory"], {"counter": name, "factor": factor}, counter(name, factor))

    change(home, plan, Author("use counter", reason=label(name, factor)))
    return label(name, factor)


def calibrate(
    texts: Iterable[tuple[str, str]] = (),
    *,
    against: str = "o200k_base",
    apply: bool = False,
    home: Home = None,
) -> calibration.Calibration:
    """Return how far the estimate is from an exact counter on `texts` (kind, text), else on what the home holds.

    With `apply`, the home counts by the corrected estimate from now on.

    Raises:
        InvalidInput: there is nothing to calibrate on.
        BackendUnavailable: the exact vocabulary is not on this machine.
    """
    samples = list(texts) or _held(home)
    if not samples:
        raise InvalidInput(
            "there is nothing to calibrate on.", fix="Name files, or add items first.", where="tokens"
        )
    found = calibration.calibrate(samples, counter(against))
    if apply:
        use_counter("estimate", found.factor, home=home)
    return found


def _held(home: Home) -> list[tuple[str, str]]:
    snapshot = read(home)
    archived = (record["item"] for _, record in appends.records(snapshot, "items"))
    return [(item["type"], item["content"]) for item in (*items_of(snapshot.documents["memory"]), *archived)]
