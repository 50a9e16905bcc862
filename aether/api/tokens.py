"""Tokens: count a text, choose the counter of a home, and learn from the usage that providers report.

A home records its counter; changing it recounts every item and session, so that the counts of the items and of the state
always agree. Messages for a model are counted by the home's counter times a factor: learned from reports about this very
model, else that of its profile. Reports are in `data/usage.json` of the home, beside the journal: they are a measurement and
no state, so `aether undo` does not affect them, and after removing the file aether only has to learn again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from aether import http, regular
from aether.api.home import Home, change, find, read
from aether.errors import (
    AetherError,
    BackendFailed,
    BackendUnavailable,
    Conflict,
    CorruptDocument,
    InvalidDocument,
    InvalidInput,
    NotFound,
    public,
    shown,
)
from aether.events.delivery import warn
from aether.memory.items import recount
from aether.store import config, files
from aether.store.authors import Author
from aether.store.commit import write_lock
from aether.store.files import save, storage_errors, write_whole
from aether.tokens import exact
from aether.tokens import models as tokens_models
from aether.tokens.counters import FACTOR_PLACES, counter, label
from aether.tokens.models import Profile, Reports, Served, profile
from aether.types import Change, Counter, Finding

T = TypeVar("T")
# For the whole download: the largest vocabulary at 30 kB a second.
FETCH_TIMEOUT_SECONDS = 120.0
# The largest has 3.6 MB; an answer beyond this is not one.
FETCH_MAX_BYTES = 16 << 20
# Names of models on the user's own Ollama server, whose owner chose the size of the window.
_SERVED = re.compile(r"(?:ollama|ollama_chat)/(.+)|([^/]+:(?:latest|\d+(?:\.\d+)?b.*))", re.IGNORECASE)


class TokenCount(NamedTuple):
    """Tokens of a text, and the counter that counted them."""

    tokens: int
    counter: str
    characters: int


def count_tokens(text: str, *, name: str | None = None, home: Home = None) -> TokenCount:
    """Return the tokens of `text` by the counter `name`, else by the home's, else by the estimate.

    Raises:
        InvalidInput: the counter is unknown.
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
    return TokenCount(counter(name, factor)(text), label(name, factor), len(text))


def fetch_vocabulary(name: str, *, url: str = "") -> Path:
    """Download the vocabulary of an exact counter to where counting finds it, and return its path.

    An intact one is not fetched again. `url` names another place of the same file, whose checksum is known.

    Raises:
        InvalidInput: there is no such vocabulary, or the address is not http or https.
        BackendUnavailable: the server cannot be reached.
        BackendFailed: it answered with an error or with another file.
        StorageFailed: the file cannot be written.
    """
    rank_file = exact.known(name)
    address = url or rank_file.url
    target = exact.cache_directory() / rank_file.file_name
    if exact.intact(target, rank_file):
        return target
    content = _downloaded(address)
    if regular.digest(content) != rank_file.sha256:
        raise BackendFailed(
            f"the answer ({len(content)} bytes) is not the rank file of {name}: its checksum differs.",
            fix="Try again, or fetch from another address.",
            where=address,
        )
    save(target, content)
    return target


def _downloaded(url: str) -> bytes:
    again = "Check the connection and the proxy settings, or put the file into a tiktoken cache by hand."
    answer = http.request(
        http.address(url, where="url"),
        timeout_seconds=FETCH_TIMEOUT_SECONDS,
        redirects=True,
        most_bytes=FETCH_MAX_BYTES,
    )
    if answer.failure == "dropped":
        raise BackendFailed(f"the answer was cut off: {answer.reason}.", fix="Try again.", where=url)
    if answer.failure:
        raise BackendUnavailable(f"cannot be reached: {answer.reason}.", fix=again, where=url)
    if answer.status >= 300:
        raise BackendFailed(f"the server answered {answer.status} {answer.reason}.", fix=again, where=url)
    return answer.content


@public
def use_counter(name: str, factor: float = 1.0, *, home: Home = None) -> str:
    """Make `name` the counter of the home, recount everything, and return the name of the counter in words.

    Raises:
        InvalidInput: the counter is unknown.
        BackendUnavailable: its vocabulary is not on this machine.
    """
    counter(name, factor)("probe")  # a missing vocabulary fails before anything is changed

    def plan(documents: Mapping[str, Any]) -> Change:
        return recount(documents["memory"], {"counter": name, "factor": factor}, counter(name, factor))

    change(home, plan, Author("use counter", reason=label(name, factor)))
    return label(name, factor)


class Counting(NamedTuple):
    """How the messages of one model are counted."""

    count: Counter
    label: str
    """The counter in words."""
    counter: str
    factor: float
    """Factor of the counter, learned or from the profile."""
    reports: int
    """Number of reports of the provider that the factor was learned from."""
    profile: Profile | None
    """None if no model was named."""
    findings: tuple[Finding, ...] = ()


class ListedModel(NamedTuple):
    """One model, for a list."""

    model: str
    window: int
    output: int
    known: bool
    factor: float
    counter: str
    """Its counter in words."""
    reports: int


def counting(model: str = "", *, place: Path | None = None) -> Counting:
    """Return the way to count messages for `model`; `place` is the home, or a directory that need not be one.

    Reports that cannot be read are a finding, and the factor of the profile applies.

    Raises:
        InvalidDocument: the user's own `models.json` is invalid; `where` names the key.
    """
    findings: list[Finding] = []
    name, factor = _counter(place, findings)
    if not model:
        return Counting(counter(name, factor), label(name, factor), name, factor, 0, None, tuple(findings))
    entries = _own(place).entries
    limits = profile(model, own=entries)
    if served := _SERVED.fullmatch(model):
        from aether.architects.ollama import served_window  # only users of Ollama pay for its client

        window = served_window(served[1] or served[2])
        limits = limits._replace(window=window, known=True) if window else limits
    reports = _reports(place, findings).get(model, Reports(name))
    learned = reports.counter == name and bool(reports.ratios)
    factor = reports.factor if learned else round(factor * limits.factor, FACTOR_PLACES)
    doubt = tokens_models.finding(limits)
    return Counting(
        counter(name, factor), label(name, factor), name, factor, len(reports.ratios) if learned else 0, limits,
        (*findings, *([doubt] if doubt else [])),
    )  # fmt: skip


# What this process has reported, oldest first; of a server that runs for months only the newest.
_REPORTED: dict[tuple[str, str | Finding], None] = {}
MOST_REPORTED = 1_000


def is_first(about: str, reported: str | Finding) -> bool:
    """Return whether this process has not reported this yet; from now on it has."""
    key = (about, reported)
    if key in _REPORTED:
        return False
    _REPORTED[key] = None
    if len(_REPORTED) > MOST_REPORTED:
        del _REPORTED[next(iter(_REPORTED))]
    return True


def warn_once(findings: Iterable[Finding]) -> None:
    """Warn of each unknown model among `findings`, once per process: an integration hands no findings to its caller."""
    for finding in findings:
        if finding.code == "unknown-model" and is_first("model", finding.where):
            warn("aether", f"{finding.message} {finding.fix}")


@public
def record_usage(model: str, counted: int, usage: int | Mapping[str, Any], *, home: Home = None) -> Counting:
    """Learn a factor from a request that aether counted as `counted` and its provider as `usage`, and return the counting.

    `counted` is aether's count of the whole request, system prompt and tools included; `usage` is the number of
    input tokens, cached ones included, or the usage object of the provider's answer.

    Raises:
        InvalidInput: a number is not positive, the model has no name, or `usage` names no input tokens.
        InvalidDocument: the earlier reports cannot be read.
        LockTimeout: another process is writing.
    """
    if not model.strip():
        raise InvalidInput(
            "the name of the model is empty.", fix="Name the model that answered.", where="model"
        )
    if type(counted) is not int or counted < 1:
        raise InvalidInput(
            f"{shown(counted)} is not a number of tokens.", fix="Give the count of aether.", where="counted"
        )
    tokens, place = tokens_models.reported(usage), find(home)
    path = _path(place)
    with write_lock(place), storage_errors(path):
        now = counting(model, place=place)
        reports: dict[str, Reports] = _content(path, _stored_reports, {})
        earlier = reports.get(model, Reports(now.counter))
        reports[model] = tokens_models.after(earlier, now.counter, counted / now.factor, tokens)
        if reports[model] != earlier:
            write_whole(path, files.json_document(tokens_models.written(reports)))
    return counting(model, place=place)


def models(*names: str, home: Home = None) -> list[ListedModel]:
    """Return the models `names`; without names, each model with reports and each pattern of models.

    Raises:
        InvalidDocument: the user's own `models.json` is invalid; `where` names the key.
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
    base, factor = _counter(place, [])
    for entry in (*_own(place).entries, *tokens_models.shipped()):
        scaled = round(factor * entry.factor, FACTOR_PLACES)
        is_known = not entry.assumed
        heard.append(
            ListedModel(entry.match, entry.window, entry.output, is_known, scaled, label(base, scaled), 0)
        )
    return heard


def _listed(name: str, counting_: Counting) -> ListedModel:
    limits = counting_.profile or profile(name)
    return ListedModel(
        name, limits.window, limits.output, limits.known, counting_.factor, counting_.label, counting_.reports
    )


def _counter(place: Path | None, findings: list[Finding]) -> tuple[str, float]:
    """Return the counter of the home; the estimate without a home, and with a finding if its state cannot be read."""
    if place is None:
        return "estimate", 1.0
    try:
        settings = read(place).documents["memory"]["token_counter"]
    except NotFound:
        return "estimate", 1.0
    except (CorruptDocument, InvalidDocument, Conflict) as error:
        findings.append(Finding("warning", error.code, error.where, error.what, error.fix))
        return "estimate", 1.0
    return settings["counter"], settings["factor"]


def _own(place: Path | None) -> tokens_models.Own:
    return _content(place / "models.json" if place else None, tokens_models.read, tokens_models.Own())


def _content(path: Path | None, reader: Callable[[Path], T], empty: T) -> T:
    """Return what `reader` makes of the file at `path`; `empty` without one."""
    if path is None:
        return empty
    with storage_errors(path):
        return reader(path) if os.path.lexists(path) else empty


def context_profiles(place: Path, model: str = "") -> dict[int, int]:
    """Return the most tokens of a prompt by size of window.

    Those that the file `context.profiles` has for `model` come before those of the home's own `models.json`, and these
    before the shipped ones.

    Raises:
        InvalidDocument: one of the user's own files is invalid; `where` names the key.
        NotFound: there is no file `context.profiles`.
    """
    shipped = tokens_models.shipped_limits()
    return shipped | _own(place).limits | served_model(place, model).limits


def served_model(place: Path, model: str) -> Served:
    """Return what the file `context.profiles` says about `model`: limits, window, and whether it calls tools.

    Raises:
        InvalidDocument, NotFound: as `context_profiles`.
    """
    file_name = config.or_default(place).context_profiles
    if not file_name:
        return tokens_models.UNNAMED
    path = place / Path(file_name).expanduser()
    profiles = _content(path, tokens_models.ollm_profiles, None)
    if profiles is None:
        what = f"there is no file {shown(str(path))}."
        raise NotFound(what, fix="Name the LLM_profiles.json in context.profiles, or remove the key.", where="context.profiles")  # fmt: skip
    return profiles.get(model.lower()) or profiles.get("", tokens_models.UNNAMED)


def _reports(place: Path | None, findings: list[Finding]) -> dict[str, Reports]:
    try:
        return _content(_path(place) if place else None, _stored_reports, {})
    except AetherError as error:
        findings.append(Finding("warning", error.code, error.where, error.what, error.fix))
        return {}


def _path(place: Path) -> Path:
    return place / "data" / "usage.json"


def _stored_reports(path: Path) -> dict[str, Reports]:
    return tokens_models.parsed(files.parse_json(regular.read(path), where=str(path)), where=str(path))
