"""Configuration: the one loader of settings, from files and from the environment.

A setting comes from the first of these that has it: an argument, the environment, the file that the caller names, the
`config.toml` of the home, the `config.toml` of the user, the default. Every file has the keys of `keys`.
A home is data, never authority, and may come from anybody: in a home's file, keys with authority count only if the
user trusts exactly this file, and some others only if they lower what the user has; `untrusted` names those that do
not count. The trust is stored in the user's own state directory, never in the home: it names the configuration by its
path and holds the hash of its bytes, so that a changed file is not trusted. What belongs to the memory itself
(capacities, thresholds, ratios) is in `memory.json`.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.errors import AetherError, InvalidDocument, InvalidInput, NotFound, UnsafePath, shown
from aether.project import HOME_NAME, state_directory, user_file
from aether.store import files
from aether.store.keys import CHECKED_ON_USE, FIELDS, KEYS, NAMES, RETIRED, check_value
from aether.store.keys import Config as Config  # noqa: PLC0414 - what `load` returns
from aether.types import Finding

NAME = "config.toml"
FORMS = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_TABLES = {name.partition(".")[0] for name in NAMES if "." in name}
_VARIABLES = {name: key for key in KEYS.values() for name in key.env}
_PRIVATE = "claude.private_paths"
# The search for a similar name is slow: a file with a thousand wrong names must not keep anybody waiting.
MAX_ERRORS = 20
# A TOML key of n parts costs n * n steps, and no setting has more than two; a list of paths has some dozen dots.
MAX_DOTS = 250


class _Source(NamedTuple):
    """The settings of one file or of the environment, by path."""

    values: dict[str, Any]
    errors: dict[str, AetherError]
    """By the name that the source uses; an empty name if a whole file cannot be read."""
    notes: list[Finding]
    """Older names, and settings of earlier releases, which are ignored."""
    refused: Mapping[str, Any] = {}
    """The settings with authority of an untrusted home."""
    bounded: Mapping[str, Any] = {}
    """The values of an untrusted home that count only if they are below the user's; also in `values`."""


_EMPTY = _Source({}, {}, [])
# Every commit asks for the settings: each source is read once while it stays as it is, and so is their sum.
_FILES: dict[Path, tuple[tuple[int, int, int], int | None, _Source]] = {}
_HOMES: dict[Path, tuple[tuple[_Source, ...], tuple[Config, dict[str, AetherError]]]] = {}
_ENVIRONMENT: dict[str, Any] = {}


class Settings(NamedTuple):
    """The settings that are set, and the source of each one."""

    values: dict[str, Any]
    """By path."""
    origins: dict[str, str]
    """By path, of every setting: environment, file, home, user or default."""
    findings: list[Finding]
    """Unknown variables, mistakes in the files of home and user, older names and removed settings."""


def load(home: Path) -> Config:
    """Return the configuration of `home`: its `config.toml`, below it the user's, above it the environment.

    Raises:
        InvalidDocument: a file does not parse, or a key is unknown or of the wrong type.
        InvalidInput: a variable is not allowed.
    """
    config, errors = _of_home(home)
    for reason in errors.values():
        raise reason
    return config


def or_default(home: Path) -> Config:
    """Return the configuration of `home`, with defaults for invalid settings, so that repairs still work."""
    return _of_home(home)[0]


def faults(home: Path) -> list[AetherError]:
    """Return every mistake in the configuration of `home`."""
    return [*_of_home(home)[1].values()]


def load_with_errors(home: Path) -> tuple[Config, dict[str, str]]:
    """Return the configuration of `home`, with defaults for invalid settings, and the errors by key.

    The key is empty if a whole file cannot be read.
    """
    config, errors = _of_home(home)
    return config, {name: str(reason) for name, reason in errors.items()}


def hides_private_paths(names: Iterable[str]) -> bool:
    """Return whether errors of these settings, as `load_with_errors` names them, leave the private paths unknown."""
    return not {"", "claude", _PRIVATE}.isdisjoint(names)


def notes(home: Path) -> list[Finding]:
    """Return the older names and the removed settings in the files of `home` and of its user."""
    _of_home(home)
    return [note for source in _HOMES[home][0] for note in source.notes]


def _of_home(home: Path) -> tuple[Config, dict[str, AetherError]]:
    # The mapping below `os.environ`: to decode every name takes longer than the rest of a commit's own work.
    raw = getattr(os.environ, "_data", os.environ)
    if _ENVIRONMENT.get("raw") != raw:
        _ENVIRONMENT.update(
            raw=dict(raw), user=Path(user_file()), source=_of_variables(os.environ, "AETHER_")
        )
    user, local = _of_config(_ENVIRONMENT["user"], own=True), _of_config(_path(home, NAME))
    sources = user, local, _ENVIRONMENT["source"]
    cached = _HOMES.get(home)
    if cached is None or not all(map(operator.is_, cached[0], sources)):
        values: dict[str, Any] = {}
        for source in sources:
            ignored = _raised(local, user) if source is local else {}
            values |= {path: value for path, value in source.values.items() if path not in ignored}
        if _PRIVATE in local.values and _PRIVATE not in sources[2].values:
            # A home adds private paths: with fewer than without it, it would turn a protection off.
            patterns = f"{user.values.get(_PRIVATE, KEYS[_PRIVATE].default)},{local.values[_PRIVATE]}".split(
                ","
            )
            values[_PRIVATE] = ", ".join(dict.fromkeys(filter(None, map(str.strip, patterns))))
        config = Config(**{FIELDS[path]: value for path, value in values.items() if path in FIELDS})
        errors = {name: reason for source in sources for name, reason in source.errors.items()}
        cached = _HOMES[home] = sources, (config, errors)
    return cached[1]


def _raised(home: _Source, user: _Source) -> dict[str, Any]:
    """Return the settings of an untrusted home that are above those of `user`."""
    usual = {path: user.values.get(path, KEYS[path].default) for path in home.bounded}
    return {path: value for path, value in home.bounded.items() if value > usual[path]}


def untrusted(home: Path, name: str = "") -> list[Finding]:
    """Return the finding that the `config.toml` of `home` has settings that do not count, or none.

    They are those with authority, of a file that the user does not trust, whose path starts with `name`; not those
    that have the same value without it.
    """
    config, _ = _of_home(home)
    user, local, environment = _HOMES[home][0]
    refused = {**local.refused, **_raised(local, user)}
    usual = {path: getattr(config, field) for path, field in FIELDS.items()}
    usual |= {path: user.values.get(path, KEYS[path].default) for path in refused if path not in FIELDS}
    paths = [
        path
        for path, value in refused.items()
        if path.startswith(name) and path not in environment.values and usual[path] != value
    ]
    return _ignored(_path(home, NAME), paths)


def require_trusted(home: Path, names: Iterable[str]) -> None:
    """Require that the user trusts `home` with its settings of these paths, or has all of them elsewhere.

    Raises:
        UnsafePath: the home has one that does not count.
    """
    user, local = (_of_config(_path(user_file()), own=True), _of_config(_path(home, NAME)))
    for name in names:
        for finding in untrusted(home, name):
            if name in local.refused and name not in user.values:
                raise UnsafePath(finding.message, fix=finding.fix, where=finding.where)


def _ignored(file: Path, paths: Iterable[str]) -> list[Finding]:
    if not (names := ", ".join(sorted(paths))):
        return []
    message = f"ignored, because a home is data and only its user may set them: {names}."
    fix = f'Run "aether trust" to see and allow them, or set them in {user_file()} or the environment.'
    return [Finding("warning", "untrusted", str(file), message, fix)]


def authority(file: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of the configuration `file` of a home, and its settings that count only if it is trusted.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it does not parse.
        InvalidDocument, UnsafePath: it is too large, or no regular file.
    """
    data = _bytes(file, own=False)
    source = _without_trust(_checked(_mapping(data, file), str(file), InvalidDocument, late=True))
    return data, {**source.refused, **_raised(source, _of_config(_path(user_file()), own=True))}


def _without_trust(source: _Source) -> _Source:
    """Return the settings of a home that nobody trusts."""
    refused = {path: value for path, value in source.values.items() if KEYS[path].authority}
    values = {path: value for path, value in source.values.items() if path not in refused}
    bounded = {path: value for path, value in values.items() if KEYS[path].lowers}
    return source._replace(values=values, refused=refused, bounded=bounded)


def _judged(source: _Source, file: Path, data: bytes) -> _Source:
    """Return the settings of `file` in a home, which holds `data`, as far as the user trusts it."""
    limited = _without_trust(source)
    return limited if (limited.refused or limited.bounded) and not is_trusted(file, data) else source


def settings(
    file: str | os.PathLike[str] | None = None, *, home: Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:  # fmt: skip
    """Return the settings of compaction that are set: in the environment, in `file`, in `home`, in the user's file.

    The `config.toml` of `home` counts without settings with authority unless the user trusts it, and without those
    that break a rule that is checked late; its mistakes are findings. A `file` in a home is a home's, too. `environ` is
    the environment of this process unless given; with a given one, neither home nor user's file is read.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is of no known form, does not parse, or a setting is unknown or not allowed.
    """
    layers: dict[str, _Source] = {}
    findings = []
    if environ is None:
        layers["user"] = _of_config(_path(user_file()), own=True)
        if home is not None:
            source = _of_config(_path(home, NAME))
            values = {
                path: value
                for path, value in source.values.items()
                if not path.startswith(CHECKED_ON_USE)
                or (KEYS[path].authority and not KEYS[path].rule(value))
            }
            layers["home"] = source._replace(values=values)
            findings = untrusted(home)
        findings += [
            Finding("warning", reason.code, reason.where, reason.what, reason.fix)
            for source in layers.values()
            for reason in source.errors.values()
        ]
    variables = os.environ if environ is None else environ
    if file is not None:
        layers["file"] = _of_named_file(Path(file))
        findings += [*_ignored(Path(file), layers["file"].refused), *layers["file"].notes]
    layers["environment"] = _of_variables(variables, "AETHER_", "COMPACT_")
    for layer in ("file", "environment"):
        for reason in layers.get(layer, _EMPTY).errors.values():
            raise reason
    values = {path: value for source in layers.values() for path, value in source.values.items()}
    origins = {path: layer for layer, source in layers.items() for path in source.values}
    origins = {path: origins.get(path, "default") for path in KEYS}
    return Settings(values, origins, [*unknown_variables(variables), *findings])


def _of_named_file(file: Path) -> _Source:
    """Return the settings of a file that the caller names; one in a home has authority only if the user trusts it."""
    data = _bytes(file, own=True)
    source = _checked(_mapping(data, file), str(file), InvalidInput, late=False)
    return _judged(source, file, data) if HOME_NAME in Path(os.path.realpath(file)).parts else source


def unknown_variables(environ: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each `COMPACT_*` variable that is not a setting: misspelt, or another program's."""
    unknown = sorted(name for name in environ if name.startswith("COMPACT_") and name not in _VARIABLES)
    fix = "Correct its name, or ignore this."
    return [
        Finding("warning", "unknown-variable", name, "is not a setting of aether.", fix) for name in unknown
    ]


def _checked(tree: Mapping[str, Any], where: str, kind: type[AetherError], *, late: bool) -> _Source:
    """Return the settings of a parsed file; it may be nested, flat, or both."""
    source = _Source({}, {}, [])
    for name, value in _leaves(tree):
        key, fault = NAMES.get(name), None
        try:
            if key is not None:
                if key.path in source.values:
                    fault = InvalidInput(f"{key.path} is given twice.", fix="Leave one of them out.")
                source.values[key.path] = check_value(key, value, late=late)
            elif name in RETIRED:
                note = f"{name} is no longer a setting, and is ignored."
                source.notes.append(Finding("info", "removed-setting", where, note, RETIRED[name]))
            else:
                fault = _unknown(name, value)
        except InvalidInput as reason:
            fault = reason
        if fault:
            source.errors[name] = kind(fault.what, fix=fault.fix, where=where)
            if len(source.errors) == MAX_ERRORS:
                break
        if key and name != key.path:
            note = f"{name} is an older name of {key.path}."
            source.notes.append(Finding("info", "old-name", where, note, f"Write {key.path}."))
    return source


def _leaves(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{below}", leaf) for below, leaf in value.items())
        elif value is not None or name not in _TABLES:  # in YAML, a table with nothing in it
            yield str(name), value


def _unknown(name: str, value: Any) -> InvalidInput:
    """Return the error for a name that is not a setting, with the similar one that it may mean."""
    from difflib import get_close_matches

    if name in _TABLES:
        what = f"{name} must be a table of settings, got {shown(value)}."
        return InvalidInput(what, fix="Nest its keys below it.")
    # Names of one table are similar by the table alone: the last parts are compared, those of the table first.
    table, _, last = name.rpartition(".")
    below = {path.rpartition(".")[2]: path for path in KEYS if path.rpartition(".")[0] == table}
    everywhere = {path.rpartition(".")[2]: path for path in KEYS}
    similar = [below[near] for near in get_close_matches(last, below, 1, 0.5)]
    similar += [everywhere[near] for near in get_close_matches(last, everywhere, 1)]
    advice = f"Did you mean {similar[0]}? " if similar else ""
    fix = f'{advice}"compactctl create-config" lists all settings.'
    return InvalidInput(f"{shown(name)} is not a setting.", fix=fix)


def _of_config(path: Path, *, own: bool = False) -> _Source:
    """Return the settings of the `config.toml` at `path`, read once while it stays as it is; none if it does not exist.

    It is a home's, and has authority only if the user trusts it, unless it is the user's `own`.
    """
    try:
        stat = os.stat(path, follow_symlinks=own)
    except OSError:
        return _EMPTY
    version, cached = (stat.st_mtime_ns, stat.st_size, stat.st_ino), _FILES.get(path)
    trust_time = None if own else _time_of_trust(path)
    if cached is None or cached[:2] != (version, trust_time):
        try:
            data = _bytes(path, own=own)
            source = _checked(_mapping(data, path), str(path), InvalidDocument, late=True)
            source = source if own else _judged(source, path, data)
        except NotFound as reason:
            return _EMPTY._replace(errors={"": reason})  # the disk may answer the next time
        except InvalidInput as reason:
            wrong = InvalidDocument(reason.what, fix=reason.fix, where=str(path))
            source = _EMPTY._replace(errors={"": wrong})
        except AetherError as reason:
            source = _EMPTY._replace(errors={"": reason})
        cached = _FILES[path] = version, trust_time, source
    return cached[2]


def record_of_trust(file: Path) -> Path:
    """Return where the user's trust in the configuration `file` is stored, if it is."""
    name = regular.digest(_real_path(file).encode("utf-8", "surrogateescape"))
    return Path(state_directory(), "trust", f"{name}.json")


def _real_path(file: Path) -> str:
    return os.path.join(os.path.realpath(file.parent), file.name)


def is_trusted(file: Path, data: bytes) -> bool:
    """Return whether the user trusts `file` with exactly the content `data`."""
    return trusted_hash(file) == regular.digest(data)


def trusted_hash(file: Path) -> str:
    """Return the hash of the content with which the user trusts `file`; empty without one."""
    try:
        record = json.loads(regular.read(record_of_trust(file), regular.CONFIG_BYTES))
    except (OSError, ValueError, RecursionError, AetherError):
        return ""
    return str(record.get("sha256", "")) if isinstance(record, dict) else ""


def grant_trust(file: Path, data: bytes) -> None:
    """Trust `file` while its content is `data`.

    Raises:
        StorageFailed: the state directory cannot be written.
    """
    path = record_of_trust(file)
    record = {"path": _real_path(file), "sha256": regular.digest(data)}
    files.save(path, files.json_line(record) + b"\n")


def revoke_trust(file: Path) -> bool:
    """Trust `file` no longer, and return whether it was trusted with any content.

    Raises:
        StorageFailed: the state directory cannot be written.
    """
    path = record_of_trust(file)
    with files.storage_errors(path, left="The file is still trusted."):
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True


def _time_of_trust(file: Path) -> int:
    try:
        return record_of_trust(file).stat().st_mtime_ns
    except OSError:
        return 0


def _of_variables(environ: Mapping[str, str], *prefixes: str) -> _Source:
    """Return the settings of variables; of two for one setting, that of the last prefix wins. Empty ones are not set."""
    source = _Source({}, {}, [])
    for prefix in prefixes:
        for name in sorted(name for name in environ if name.startswith(prefix) and name in _VARIABLES):
            key, text = _VARIABLES[name], environ[name].strip()
            try:
                if text:
                    value = _value(type(key.default), text)
                    source.values[key.path] = check_value(key, value, late=prefixes == ("AETHER_",))
            except InvalidInput as reason:
                source.errors[name] = InvalidInput(reason.what, fix=reason.fix, where=name)
    return source


def _value(kind: type, text: str) -> Any:
    """Return `text` as a value of `kind` if it can be read as one, else the text itself.

    A list is JSON, or separated by commas (regular expressions may hold commas: use JSON).
    """
    if kind is bool:
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else text
    if kind is tuple and not text.startswith("["):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        return json.loads(text) if kind is tuple else kind(text)
    except ValueError:
        return text


@lru_cache(maxsize=64)
def _path(*parts: str | Path) -> Path:
    return Path(*parts)


def form_of(path: Path) -> str:
    """Return the form of a configuration file by its name: toml, yaml or json.

    Raises:
        InvalidInput: its name has another ending.
    """
    form = FORMS.get(path.suffix.lower())
    if form is None:
        what = "has no ending of a configuration file."
        raise InvalidInput(what, fix=f"Use {', '.join(FORMS)}.", where=str(path))
    return form


def _bytes(path: Path, *, own: bool) -> bytes:
    """Return the bytes of a configuration file; only the name of one's `own` may be a link."""
    form_of(path)
    try:
        return regular.read(os.path.realpath(path) if own else path, regular.CONFIG_BYTES)
    except OSError as reason:
        words = reason.strerror or "no such name"
        raise NotFound(f"cannot be read ({words}).", fix="Name a file.", where=str(path)) from reason


def _mapping(data: bytes, path: Path) -> Mapping[str, Any]:
    """Return the settings that `data`, the content of the file at `path`, nests.

    Raises:
        InvalidInput: it is not of the form of its name.
    """
    form = form_of(path)
    try:
        tree = _parse(data.decode("utf-8-sig"), form)
    except UnicodeDecodeError as reason:
        raise InvalidInput("is not UTF-8 text.", fix="Convert it to UTF-8.", where=str(path)) from reason
    except RecursionError as reason:
        raise InvalidInput("is nested too deeply.", fix="Correct the file.", where=str(path)) from reason
    except ValueError as reason:
        what = f"is not {form.upper()}: {str(reason)[:300]}."
        raise InvalidInput(what, fix="Correct the file.", where=str(path)) from reason
    if not isinstance(tree, Mapping):
        what = f"must hold settings by name, got {shown(tree)}."
        raise InvalidInput(what, fix='See "compactctl create-config".', where=str(path))
    return tree


def _parse(text: str, form: str) -> Any:
    if form == "json":
        return json.loads(text, object_pairs_hook=_without_repeats)
    if form == "toml":
        import tomllib

        if any(line.count(".") > MAX_DOTS for line in text.splitlines()):
            raise ValueError(f"a line has more than {MAX_DOTS} dots")
        return tomllib.loads(text)
    import yaml

    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as reason:
        raise ValueError(reason) from reason
    return {} if tree is None else tree  # a file of comments


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of `pairs`, and refuse two of one key."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{shown(name)} is given twice")
    return dict(pairs)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by path as a file nests them."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        table, _, name = path.rpartition(".")
        place = tree.setdefault(table, {}) if table else tree
        place[name] = list(value) if isinstance(value, tuple) else value
    return tree


def example(form: str) -> str:
    """Return an example file of every setting at its default, commented; JSON has no comments."""
    tree = nested({path: key.default for path, key in KEYS.items()})
    if form == "json":
        return json.dumps(tree, indent=2) + "\n"
    lines = ["# Configuration of aether: every setting with its default; its variables are in parentheses."]
    for table in dict.fromkeys(path.rpartition(".")[0] for path in KEYS):
        lines += ["", *([f"[{table}]" if form == "toml" else f"{table}:"] if table else [])]
        indent, sign = "  " if table and form == "yaml" else "", " = " if form == "toml" else ": "
        for key in [key for key in KEYS.values() if key.path.rpartition(".")[0] == table]:
            lines.append(f"{indent}# {key.meaning[0].upper()}{key.meaning[1:]} ({', '.join(key.env)}).")
            # Texts, numbers, truths and lists are written alike in JSON, TOML and YAML.
            lines.append(f"{indent}{key.path.rpartition('.')[2]}{sign}{json.dumps(key.default)}")
    return "\n".join(lines) + "\n"


def create(path: str | os.PathLike[str]) -> Path:
    """Write an example of every setting to `path`, in the form of its name, and return it.

    Raises:
        Conflict: there is such a file.
        InvalidInput: its name has another ending.
        StorageFailed: it cannot be written.
    """
    return files.write_new(path, example(form_of(Path(path))).encode())
