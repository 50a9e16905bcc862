"""Model profiles (window, counter, factor), and the factors learned from the usage that providers report.

Profiles are the entries of the user's own `models.json`, then of `data/models.json`; the first entry whose pattern
fits the name of the model applies. A model without an entry gets a small window and a finding. For open
models the entry is the least that hosts commonly offer; names as Ollama writes them (`llama3:8b`) get little, because it cuts
longer prompts silently, unless its server reports the size (`api.tokens`).

The learned factor of a model is the median of its last reports, each the reported tokens by the counted ones. It
changes only with that median, so that counts stay valid, and applies to one model and one counter only. The file of
the reports is read and written in `api.usage`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_type_hints

from aether import regular
from aether.errors import AetherError, InvalidDocument, InvalidInput, shown
from aether.messages.model import PROVIDER_FORMATS, ProviderFormat
from aether.paths import resource
from aether.tokens.counters import FACTOR_PLACES, counter
from aether.types import Finding, JsonObject

# Tokens. The first GPT-4 has the smallest window of all hosted models still on offer, this one; the owner of a local
# server with less gives the window.
UNKNOWN_WINDOW = 8_192
SCHEMA_VERSION = 1
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
        if any(fnmatchcase(each, entry.match) for each in names):
            return Profile(model, *entry[:-1], known=not entry.assumed)
    return Profile(model, *Entry("", UNKNOWN_WINDOW)[:-1], known=False)


def finding(found: Profile) -> Finding | None:
    """Return a finding about a profile with an assumed window; None for a known window."""
    if found.known:
        return None
    by = f"like {found.match}" if found.match else "the smallest that hosted models have"
    return Finding(
        "warning",
        "unknown-model",
        found.model,
        f"the window of {shown(found.model)} is not known; {found.window} tokens are assumed, {by}.",
        "Give the window, or add the model to models.json in the home.",
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
    data = regular.read(path)
    try:
        value = json.loads(data)
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
    table = _table(value, {"schema_version", "checked", "models", "context_profiles"}, where)
    _profiles(table, where)
    if table.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise _wrong(f"{where}.schema_version", table["schema_version"], f"Use {SCHEMA_VERSION}.")
    models = table.get("models", [])
    if not isinstance(models, list):
        raise _wrong(f"{where}.models", models, "Use a list.")
    return tuple(_entry(model, f"{where}.models[{at}]") for at, model in enumerate(models))


def context_profiles(path: Path) -> dict[int, int]:
    """Return the most tokens of a prompt by size of window, as the file at `path` lists them.

    Raises:
        InvalidDocument: as `read` says.
    """
    read(path)
    return _profiles(json.loads(regular.read(path)), f"{path}::$")


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
    try:
        value = json.loads(regular.read(path))
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(f"not JSON: {error}.", fix="Correct the file.", where=str(path)) from error
    where = f"{path}::$"
    listed = value.get("models") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise _wrong(f"{where}.models", listed, "Give the LLM_profiles.json of OLLM-CLI.")
    other = value.get("fallback_model")
    found = {"": _served(other, f"{where}.fallback_model")} if isinstance(other, dict) else {}
    for at, model in enumerate(listed):
        name = model.get("id") if isinstance(model, dict) else None
        if not isinstance(name, str) or not name:
            raise _wrong(f"{where}.models[{at}].id", name, "Name the model.")
        found[name.lower()] = _served(model, f"{where}.models[{at}]")
    return found


def _served(model: dict[str, Any], where: str) -> Served:
    limits: dict[int, int] = {}
    profiles = model.get("context_profiles", [])
    for at, one in enumerate(profiles if isinstance(profiles, list) else []):
        size, limit = (
            one.get(key) if isinstance(one, dict) else None for key in ("size", "ollama_context_size")
        )
        if not (type(size) is int and type(limit) is int and 0 < limit <= size):
            fix = "Give size and ollama_context_size in tokens, the second at most the first."
            raise _wrong(f"{where}.context_profiles[{at}]", one, fix)
        limits[size] = limit
    window = model.get("default_context", 0)
    if type(window) is not int or window < 0:
        raise _wrong(f"{where}.default_context", window, "Use a whole number of tokens.")
    return Served(limits, window, model.get("tool_support") is not False)


def _profiles(table: dict[str, Any], where: str) -> dict[int, int]:
    found = table.get("context_profiles", {})
    if not isinstance(found, dict):
        raise _wrong(f"{where}.context_profiles", found, "Use an object of sizes and limits.")
    for size, limit in found.items():
        if not (size.isdecimal() and type(limit) is int and 0 < limit <= int(size)):
            raise _wrong(
                f"{where}.context_profiles.{size}", limit, "Use tokens, at most those of the window."
            )
    return {int(size): limit for size, limit in found.items()}


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
    if key == "wire" and given not in PROVIDER_FORMATS:
        raise _wrong(where, given, f"Use one of {', '.join(PROVIDER_FORMATS)}.")
    if key == "counter":
        try:
            counter(given)
        except AetherError as error:
            raise _wrong(where, given, error.fix) from error


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
    return InvalidDocument(f"{shown(given)} is not allowed here.", fix=fix, where=where)


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
        found = round(min(MOST_FACTOR, max(LEAST_FACTOR, middle)), FACTOR_PLACES)
        return self.before if abs(found - self.before) <= STEADY * self.before else found


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
    known = reports.ratios if reports.counter == counter else ()
    ratios = (*known, round(tokens / plain, FACTOR_PLACES))[-KEPT_REPORTS:]
    return Reports(counter, ratios, reports.factor if known else 0.0)


def parsed(value: Any, *, where: str) -> dict[str, Reports]:
    """Return the reports by model that `value`, the content of their file, holds.

    Raises:
        InvalidDocument: `value` is not in the form that `written` makes.
    """
    models = value.get("models") if isinstance(value, dict) else None
    if not isinstance(models, dict) or not all(map(_is_report, models.values())):
        raise InvalidDocument(
            "does not hold reports about models.",
            fix="Remove it: its factors are learned again.",
            where=where,
        )
    return {
        model: Reports(held["counter"], tuple(held["ratios"]), held.get("before", 0.0))
        for model, held in models.items()
    }


def written(reports: Mapping[str, Reports]) -> JsonObject:
    """Return `reports` as their file holds them."""
    models = {
        model: {"counter": held.counter, "ratios": list(held.ratios), "before": held.before}
        for model, held in sorted(reports.items())
    }
    return {"schema_version": 1, "models": models}


def _is_report(held: Any) -> bool:
    return (
        isinstance(held, dict)
        and isinstance(held.get("counter"), str)
        and isinstance(held.get("ratios"), list)
        and all(
            isinstance(ratio, int | float) and math.isfinite(ratio) and ratio >= 0
            for ratio in (*held["ratios"], held.get("before", 0.0))
        )
    )
