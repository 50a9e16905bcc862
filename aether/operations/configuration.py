"""Reading the configuration of compaction: a TOML, YAML or JSON file, with the environment above it.

The environment wins over the file, the file over the defaults, setting by setting. What may be set, and what is
refused, is in `compaction.config`.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aether.compaction import settings
from aether.compaction.config import KEYS, CompactConfig
from aether.errors import Conflict, InvalidInput, NotFound, shown
from aether.shapes import Finding
from aether.store import files

Kind = Literal["toml", "yaml", "json"]
Origin = Literal["environment", "file", "default"]
_KINDS: dict[str, Kind] = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}


class Configured(NamedTuple):
    """A configuration, and where each setting came from."""

    config: CompactConfig
    origins: dict[str, Origin]
    """By path of the setting."""
    findings: list[Finding]
    """What looks like a slip, but may be another program's."""


def configuration(
    path: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None
) -> Configured:
    """Return the configuration that the file at `path`, if any, and the environment make.

    `environ` is the environment of this process unless given; an empty one leaves it out.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is of no known kind, does not parse, or a setting is unknown or not allowed.
    """
    around = os.environ if environ is None else environ
    in_file = {} if path is None else settings.of_tree(_tree(Path(path)), where=str(path))
    in_environment = settings.of_environment(around)
    config = settings.built({**in_file, **in_environment})
    origins: dict[str, Origin] = {
        key: "environment" if key in in_environment else "file" if key in in_file else "default"
        for key in KEYS
    }
    return Configured(config, origins, slips(around))


def slips(environ: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each `COMPACT_*` variable that is no setting."""
    return [
        Finding(
            "warning",
            "unknown-variable",
            name,
            "is no setting of aether.",
            "Correct its name, or ignore this.",
        )
        for name in settings.strangers(environ)
    ]


def _tree(path: Path) -> Mapping[str, Any]:
    kind = kind_of(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as reason:
        words = reason.strerror or "no such name"
        raise NotFound(f"cannot be read ({words}).", fix="Name a file.", where=str(path)) from reason
    except UnicodeDecodeError as reason:
        raise InvalidInput("is not UTF-8 text.", fix="Convert it to UTF-8.", where=str(path)) from reason
    found = _parsed(text, kind, path)
    if found is None:  # a YAML file of comments
        return {}
    if not isinstance(found, Mapping):
        raise InvalidInput(
            f"must hold settings by name, got {shown(found)}.",
            fix='See "compactctl create-config".',
            where=str(path),
        )
    return found


def kind_of(path: Path) -> Kind:
    """Return the kind of configuration file that the name of `path` says.

    Raises:
        InvalidInput: it says none.
    """
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise InvalidInput(
            "is no kind of configuration file.", fix=f"Use {', '.join(_KINDS)}.", where=str(path)
        )
    return kind


def _parsed(text: str, kind: Kind, path: Path) -> Any:
    try:
        if kind == "yaml":
            import yaml

            try:
                return yaml.safe_load(text)
            except yaml.YAMLError as reason:
                raise ValueError(reason) from reason
        return tomllib.loads(text) if kind == "toml" else json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as reason:
        raise InvalidInput(
            f"is not {kind.upper()}: {reason}.", fix="Correct the file.", where=str(path)
        ) from reason


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of `pairs`; of two of one key it would be unsaid which holds."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(shown(name) for name in names if names.count(name) > 1)} is given twice")
    return found


def create_configuration(path: str | os.PathLike[str]) -> Path:
    """Write an example of every setting to `path`, in the form that its name says, and return it.

    Raises:
        Conflict: there is such a file.
        InvalidInput: its name says no form.
        StorageFailed: it cannot be written.
    """
    target = Path(path)
    text = settings.example(kind_of(target))
    if target.exists():
        raise Conflict("is there already.", fix="Name another file, or remove it.", where=str(path))
    with files.storage(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(target, text.encode())
    return target
