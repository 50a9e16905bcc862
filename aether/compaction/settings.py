"""Settings of compaction as text: parsed files and environment variables to a configuration, and back.

Files may be nested (`policy: {trigger_pct: 0.7}`) or flat (`ariadne_url: …`); an unknown key is refused with its
path. An environment variable overrides its own key and no other. Reading is done in `operations.configuration`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from aether.compaction.config import KEYS, CompactConfig, CompactPolicy, Key, typed
from aether.errors import InvalidInput, shown
from aether.shapes import JsonObject

_YES, _NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_FLAT = {key.flat: key for key in KEYS.values() if not key.path.startswith("policy.")}
_ENV = {key.env: key for key in KEYS.values()}
_TABLES = {path.partition(".")[0] for path in KEYS if "." in path}


def of_tree(tree: Mapping[str, Any], *, where: str = "") -> dict[str, Any]:
    """Return the settings that a parsed file makes, by path; it may be nested, flat, or both.

    Raises:
        InvalidInput: a key is unknown, given twice, or its value is not allowed.
    """
    found: dict[str, Any] = {}
    for path, value in _leaves(tree, where):
        key = KEYS.get(path) or _FLAT.get(path)
        if key is None:
            raise InvalidInput(f"{shown(path)} is not a setting.", fix=_meant(path), where=where)
        if key.path in found:
            raise InvalidInput(f"{key.path} is given twice.", fix="Leave one of them out.", where=where)
        found[key.path] = typed(key, value, where=where)
    return found


def _meant(path: str) -> str:
    """Return which settings a slip may have meant: those spelt like it, in whatever table they stand."""
    names = {key.path.rpartition(".")[2]: key.path for key in KEYS.values()}
    found = get_close_matches(path, [*KEYS, *_FLAT], n=1)
    found = found or [names[one] for one in get_close_matches(path.rpartition(".")[2], names, n=1)]
    meant = f"Did you mean {found[0]}? " if found else ""
    return f'{meant}"compactctl create-config" lists all settings.'


def _leaves(tree: Mapping[str, Any], where: str) -> Iterable[tuple[str, Any]]:
    for name, value in tree.items():
        if name not in _TABLES:
            yield str(name), value
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{below}", found) for below, found in value.items())
        elif value is not None:  # in YAML, a table with nothing in it
            raise InvalidInput(
                f"{name} must be a table of settings, got {shown(value)}.",
                fix="Nest its keys below it.",
                where=where,
            )


def of_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that `COMPACT_*` variables make, by path; each overrides its own key only.

    Empty variables count as not set.

    Raises:
        InvalidInput: a value is not allowed.

    >>> of_environment({"COMPACT_TRIGGER_PCT": "0.7", "COMPACT_TELEMETRY_ENABLED": "no", "PATH": "/bin"})
    {'policy.trigger_pct': 0.7, 'telemetry.enabled': False}
    """
    given = {name: text for name, text in environ.items() if name in _ENV and text.strip()}
    return {
        _ENV[name].path: typed(_ENV[name], _value(_ENV[name], text.strip()), where=name)
        for name, text in given.items()
    }


def strangers(environ: Mapping[str, str]) -> list[str]:
    """Return the `COMPACT_*` variables that are no setting: slips, or another program's."""
    return sorted(name for name in environ if name.startswith("COMPACT_") and name not in _ENV)


def _value(key: Key, text: str) -> Any:
    """Return `text` as the type of the key where it can be read as that, else the text itself."""
    kind = type(key.default)
    if kind is bool:
        word = text.lower()
        return True if word in _YES else False if word in _NO else text
    if kind is tuple:
        return _list(text)
    try:
        return kind(text)
    except ValueError:
        return text


def _list(text: str) -> Any:
    """Return a JSON list, or what stands between commas (regular expressions may hold commas: use JSON)."""
    if not text.startswith("["):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return json.loads(text)
    except ValueError:
        return text


def built(settings: Mapping[str, Any]) -> CompactConfig:
    """Return the configuration that `settings`, by path, make; defaults for the rest.

    Raises:
        InvalidInput: two of them contradict each other.
    """
    policy = {KEYS[path].flat: value for path, value in settings.items() if path.startswith("policy.")}
    rest = {KEYS[path].flat: value for path, value in settings.items() if not path.startswith("policy.")}
    return CompactConfig(policy=CompactPolicy(**policy), **rest)


def value_of(config: CompactConfig, key: Key) -> Any:
    """Return what `config` has for `key`."""
    return getattr(config.policy if key.path.startswith("policy.") else config, key.flat)


def tree_of(config: CompactConfig) -> JsonObject:
    """Return the nested form of `config`, as a file would hold it."""
    tree: JsonObject = {}
    for key in KEYS.values():
        table, _, name = key.path.rpartition(".")
        value = value_of(config, key)
        place = tree.setdefault(table, {}) if table else tree
        place[name] = list(value) if isinstance(value, tuple) else value
    return tree


EXAMPLE_HEAD = (
    "Configuration of compaction: every setting with its default.",
    "Environment variables override single settings; they stand in parentheses.",
)


def example(kind: str) -> str:
    """Return an example file of every setting at its default, commented; `kind` is toml, yaml or json.

    JSON has no comments, so that form has none.
    """
    if kind == "json":
        return json.dumps(tree_of(CompactConfig()), indent=2) + "\n"
    tables: dict[str, list[Key]] = {}
    for key in KEYS.values():
        tables.setdefault(key.path.rpartition(".")[0], []).append(key)
    lines = [f"# {line}" for line in EXAMPLE_HEAD]
    for table, keys in tables.items():
        lines += ["", *_table(table, keys, kind)]
    return "\n".join(lines) + "\n"


def _table(table: str, keys: Iterable[Key], kind: str) -> Iterator[str]:
    if table:
        yield f"[{table}]" if kind == "toml" else f"{table}:"
    indent = "  " if table and kind == "yaml" else ""
    for key in keys:
        name = key.path.rpartition(".")[2]
        yield f"{indent}# {key.meaning[0].upper()}{key.meaning[1:]} ({key.env})."
        # Texts, numbers, truths and lists are written alike in JSON, TOML and YAML.
        yield f"{indent}{name}{' = ' if kind == 'toml' else ': '}{json.dumps(key.default)}"
