"""Model profiles (window, counter, factor), and the factors learned from the usage that providers report.

Profiles are the entries of the user's own `models.json`, then of `data/models.json`; the first entry whose pattern
fits the name of the model applies. A model without an entry gets a small window and a finding. For open
models the entry is the least that hosts commonly offer; names as Ollama writes them (`llama3:8b`) get little, because it cuts
longer prompts silently, unless its server reports the size (`api.tokens`).

The learned factor of a model is the median of its last reports, each the reported tokens by the counted ones. It
changes only with that median, so that counts stay valid, and applies to one model and one counter only. The file of
the reports is read and written in `api.tokens`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from aether import regular
from aether.errors import AetherError, InvalidDocument, InvalidInput, shown
from aether.messages.model import ProviderFormat
from aether.paths import resource
from aether.schemas.check import findings
from aether.tokens.counters import ESTIMATE, FACTOR_PLACES, counter
from aether.types import Finding, JsonObject

# Tokens. The first GPT-4 has the smallest window of all hosted models still on offer, this one; the owner of a local
# server with less gives the window.
UNKNOWN_WINDOW = 8_192
# Prefixes of model names on routers and clouds: `openrouter/anthropic/`, `models/`, `us.anthropic.`, `ft:`.
_PREFIXES = re.compile(r"^(?:.*/)?(?:[a-z-]+[.:])*")


class Entry(NamedTuple):
    """One line of a file of models."""

    match: str
    """Shell pattern for names, lower case, without the prefixes of routers and clouds."""
    window: int
    """Most tokens of a request: the whole window, or less if the provider reserves a part for the answer."""
    output: int = 0
    """Most tokens of one answer; 0: not known."""
    counter: str = "estimate"
    """The counter with the model's own vocabulary; the estimate if none is published."""
    factor: float = 1.0
    """Tokens of the model for one of o200k_base, to which the estimate is fitted."""
    wire: ProviderFormat = "openai"
    assumed: bool = False
    """Whether this covers models of a family that have no entry of their own."""


class Profile(NamedTuple):
    """The limits of one model; the fields are those of `Entry`."""

    model: str
    match: str
    window: int
    output: int
    counter: str
    factor: float
    wire: ProviderFormat
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
        if any(fnmatchcase(candidate, entry.match) for candidate in names):
            return Profile(model, *entry[:-1], known=not entry.assumed)
    return Profile(model, *Entry("", UNKNOWN_WINDOW)[:-1], known=False)


def finding(about: Profile) -> Finding | None:
    """Return a finding about a profile with an assumed window; None for a known window."""
    if about.known:
        return None
    comparison = f"like {about.match}" if about.match else "the smallest that hosted models have"
    return Finding(
        "warning",
        "unknown-model",
        about.model,
        f"the window of {shown(about.model)} is not known; {about.window} tokens are assumed, {comparison}.",
        "Give the window, or add the model to models.json in the home.",
    )


@lru_cache(maxsize=1)
def shipped() -> tuple[Entry, ...]:
    """Return the entries that come with aether."""
    return tuple(Entry(**model) for model in json.loads(resource("data/models.json").read_bytes())["models"])


@lru_cache(maxsize=1)
def shipped_limits() -> dict[int, int]:
    """Return the most tokens of a prompt by size of window that come with aether, never to be changed."""
    return read(resource("data/models.json")).limits


class Own(NamedTuple):
    """A file of models of the user's own."""

    entries: tuple[Entry, ...] = ()
    limits: dict[int, int] = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """Most tokens of a prompt by size of window."""


def read(path: Path) -> Own:
    """Return the content of the file of models at `path`.

    Raises:
        InvalidDocument: it is not JSON, or a key is unknown, missing or of the wrong kind; `where` names it.
    """
    value = _parsed(path)
    if broken := findings("models", value):
        where = re.sub(r"/(\d+)(?=/|$)", r"[\1]", broken[0].where.partition("#")[2].rstrip("/"))
        raise InvalidDocument(
            f"{broken[0].message}.", fix="Correct the file.", where=f"{path}::${where.replace('/', '.')}"
        )
    entries = []
    for nth, model in enumerate(value["models"]):
        try:
            counter(model.get("counter", ESTIMATE))
        except AetherError as error:
            raise _wrong(f"{path}::$.models[{nth}].counter", model["counter"], error.fix) from error
        entries.append(Entry(**model)._replace(match=model["match"].lower()))
    limits = {int(size): limit for size, limit in value.get("context_profiles", {}).items()}
    for size, limit in limits.items():
        if limit > size:
            fix = "Use tokens, at most those of the window."
            raise _wrong(f"{path}::$.context_profiles.{size}", limit, fix)
    return Own(tuple(entries), limits)


def _parsed(path: Path) -> Any:
    try:
        return json.loads(regular.read(path))
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(f"not JSON: {error}.", fix="Correct the file.", where=str(path)) from error


class Served(NamedTuple):
    """What the profiles of OLLM-CLI say about one model."""

    limits: dict[int, int]
    """Most tokens of a prompt by size of window, as they are in the file."""
    window: int
    """The window that it has unless another is chosen; 0 if the file does not say."""
    tools: bool


UNNAMED = Served({}, 0, True)


def ollm_profiles(path: Path) -> dict[str, Served]:
    """Return the profiles in a file of OLLM-CLI (`LLM_profiles.json`) by model, in small letters; "" has those of others.

    Raises:
        InvalidDocument: it is not such a file; `where` names the key.
    """
    value, where = _parsed(path), f"{path}::$"
    listed = value.get("models") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise _wrong(f"{where}.models", listed, "Give the LLM_profiles.json of OLLM-CLI.")
    other = value.get("fallback_model")
    profiles = {"": _served(other, f"{where}.fallback_model")} if isinstance(other, dict) else {}
    for index, model in enumerate(listed):
        name = model.get("id") if isinstance(model, dict) else None
        if not isinstance(name, str) or not name:
            raise _wrong(f"{where}.models[{index}].id", name, "Name the model.")
        profiles[name.lower()] = _served(model, f"{where}.models[{index}]")
    return profiles


def _served(model: dict[str, Any], where: str) -> Served:
    limits: dict[int, int] = {}
    profiles = model.get("context_profiles", [])
    for index, row in enumerate(profiles if isinstance(profiles, list) else []):
        fields = row if isinstance(row, dict) else {}
        size, limit = fields.get("size"), fields.get("ollama_context_size")
        if not (type(size) is int and type(limit) is int and 0 < limit <= size):
            fix = "Give size and ollama_context_size in tokens, the second at most the first."
            raise _wrong(f"{where}.context_profiles[{index}]", row, fix)
        limits[size] = limit
    window = model.get("default_context", 0)
    if type(window) is not int or window < 0:
        raise _wrong(f"{where}.default_context", window, "Use a whole number of tokens.")
    return Served(limits, window, model.get("tool_support") is not False)


def _wrong(where: str, value: Any, fix: str) -> InvalidDocument:
    return InvalidDocument(f"{shown(value)} is not allowed here.", fix=fix, where=where)


# Reports of one model that count: enough that one odd request moves nothing, few enough to follow a new vocabulary.
KEPT_REPORTS = 21
# Models measured so far have 1.0 to 1.7 tokens for one counted; beyond these bounds something else was reported,
# such as a request with another system prompt, or input tokens without the cached ones.
LEAST_FACTOR = 0.5
MOST_FACTOR = 3.0
# Below this many tokens the overhead of a message outweighs its content.
LEAST_COUNTED = 200
# A factor that differs by less than this share stays: with a new one every message is counted again, and the built-in
# estimate is less exact anyway (within 10 %).
STEADY = 0.02
# The keys of the input tokens in usage objects. Only Anthropic excludes the cached ones from the first.
ANTHROPIC_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_REPORTED = (
    ANTHROPIC_INPUT,
    ("prompt_tokens",),
    ("promptTokenCount",),
    ("prompt_token_count",),
    ("prompt_eval_count",),
)


class Reports(NamedTuple):
    """The reports about one model."""

    counter: str
    """The counter that they correct."""
    ratios: tuple[float, ...] = ()
    """Oldest first."""
    before: float = 0.0
    """The correction before the newest report; 0 without an earlier report."""

    @property
    def factor(self) -> float:
        """Return the correction, within its bounds; 1 without reports."""
        middle = median(self.ratios) if self.ratios else 1.0
        bounded = round(min(MOST_FACTOR, max(LEAST_FACTOR, middle)), FACTOR_PLACES)
        return self.before if abs(bounded - self.before) <= STEADY * self.before else bounded


def reported(usage: int | Mapping[str, Any]) -> int:
    """Return the input tokens that a provider reports, cached ones included.

    >>> reported({"input_tokens": 12, "cache_read_input_tokens": 30_000, "output_tokens": 7})
    30012
    >>> reported({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}})
    900

    Raises:
        InvalidInput: `usage` holds no number of input tokens.
    """
    if isinstance(usage, Mapping):
        keys = next((keys for keys in _REPORTED if isinstance(usage.get(keys[0]), int)), ())
        tokens = sum(usage.get(key) or 0 for key in keys)
    else:
        tokens = usage
    if type(tokens) is not int or tokens < 1:
        raise InvalidInput(
            f"{shown(usage)} reports no input tokens.",
            fix="Give their number, or the usage object of the provider's answer.",
            where="reported",
        )
    return tokens


def after(reports: Reports, counter: str, plain: float, tokens: int) -> Reports:
    """Return `reports` with one more: `tokens` where `counter` counts `plain`; reports by another counter are dropped.

    >>> after(Reports("estimate", (1.0, 1.2)), "estimate", 1000, 1400).factor
    1.2
    """
    if plain < LEAST_COUNTED:
        return reports
    ratios_ = reports.ratios if reports.counter == counter else ()
    ratios = (*ratios_, round(tokens / plain, FACTOR_PLACES))[-KEPT_REPORTS:]
    return Reports(counter, ratios, reports.factor if ratios_ else 0.0)


def parsed(value: Any, *, where: str) -> dict[str, Reports]:
    """Return the reports by model that `value`, the content of their file, holds.

    Raises:
        InvalidDocument: `value` is not in the form that `written` makes.
    """
    if findings("usage", value):
        what, fix = "does not hold reports about models.", "Remove it: its factors are learned again."
        raise InvalidDocument(what, fix=fix, where=where)
    return {
        model: Reports(about["counter"], tuple(about["ratios"]), about.get("before", 0.0))
        for model, about in value["models"].items()
    }


def written(reports: Mapping[str, Reports]) -> JsonObject:
    """Return `reports` as their file holds them."""
    models = {
        model: {**about._asdict(), "ratios": list(about.ratios)} for model, about in sorted(reports.items())
    }
    return {"schema_version": 1, "models": models}
