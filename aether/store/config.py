"""Configuration: the one loader of settings, from files and from the environment.

A setting comes from the first of these that has it: an argument, the environment, the file that the caller names, the
`config.toml` of the home, the `config.toml` of the user, the default. Every file has the same keys, those of `keys`.
A home is data, never authority, and may come from anybody: of a file in a home, keys with authority count only if the
user trusts exactly this file, and some others only as far as they lower what the user has; `untrusted` says which do
not. The user's word is a file in the user's own state directory, never in the home: it names the configuration by its
path and holds the hash of its bytes, so that a changed file is another file, and is not trusted. What belongs to the
memory itself (capacities, thresholds, ratios) is in `memory.json`.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.errors import AetherError, InvalidDocument, InvalidInput, NotFound, UnsafePath, shown
from aether.project import HOME_NAME, state_directory, user_file
from aether.store import files
from aether.store.keys import CHECKED_ON_USE, FIELDS, KEYS, NAMES, check_value
from aether.store.keys import Config as Config  # noqa: PLC0414 - what `load` returns
from aether.types import Finding

NAME = "config.toml"
FORMS = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_YES, _NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_TABLES = {name.partition(".")[0] for name in NAMES if "." in name}
_VARIABLES = {name: key for key in KEYS.values() for name in key.env}
_PRIVATE = "claude.private_paths"
# Similar names are searched for slowly: a file of a thousand wrong names must not keep anybody waiting.
MOST_FAULTS = 20
# Of a name without its table, of 1: "fold" is like "fold_bytes".
LEAST_LIKENESS = 0.5
# A TOML key of n parts costs n * n steps, and no setting has more than two; a list of paths has some dozen dots.
MOST_DOTS = 250
MOST_REASON = 300


class _Read(NamedTuple):
    """The settings of one source by path, and the errors of its invalid ones by the names it uses."""

    values: dict[str, Any]
    wrong: dict[str, AetherError]
    old: dict[str, str]
    """The older names it uses, with those of today."""
    refused: Mapping[str, Any] = {}
    """The settings with authority of a home that is not trusted with them."""
    bounded: Mapping[str, Any] = {}
    """Those of its settings that count only as far as they lower what the user has; they are in `values` too."""


_NOTHING = _Read({}, {}, {})
# Every commit asks for the settings: each source is read once while it stays as it is, and so is their sum.
_FILES: dict[Path, tuple[tuple[int, int, int], int | None, _Read]] = {}
_HOMES: dict[Path, tuple[tuple[_Read, ...], tuple[Config, dict[str, AetherError]]]] = {}
_AROUND: dict[str, Any] = {}


class Settings(NamedTuple):
    """The settings that are set, and the source of each one."""

    values: dict[str, Any]
    """By path."""
    origins: dict[str, str]
    """By path, of every setting: environment, file, home, user or default."""
    findings: list[Finding]
    """Unknown variables, mistakes in the files of home and user, and older names."""


def load(home: Path) -> Config:
    """Return the configuration of `home`: its `config.toml`, below it the user's, above it the environment.

    Raises:
        InvalidDocument: a file does not parse, or a key is unknown or of the wrong type.
        InvalidInput: a variable is not allowed.
    """
    found, wrong = _of_home(home)
    for reason in wrong.values():
        raise reason
    return found


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
    found, wrong = _of_home(home)
    return found, {name: str(reason) for name, reason in wrong.items()}


def hides_private_paths(wrong: Iterable[str]) -> bool:
    """Return whether errors of these settings, as `load_with_errors` names them, leave the private paths unknown."""
    return not {"", "claude", _PRIVATE}.isdisjoint(wrong)


def _of_home(home: Path) -> tuple[Config, dict[str, AetherError]]:
    # The mapping below `os.environ`: to decode every name takes longer than the rest of a commit's own work.
    raw = getattr(os.environ, "_data", os.environ)
    if _AROUND.get("raw") != raw:
        _AROUND.update(raw=dict(raw), user=Path(user_file()), read=_of_variables(os.environ, "AETHER_"))
    sources = (_of_config(_AROUND["user"], own=True), _of_config(_path(home, NAME)), _AROUND["read"])
    known = _HOMES.get(home)
    if known is None or not all(map(operator.is_, known[0], sources)):
        raised = _raised(sources[1], sources[0])
        fields = {
            FIELDS[path]: value for one in sources for path, value in one.values.items()
            if path in FIELDS and not (one is sources[1] and path in raised)
        }  # fmt: skip
        if _PRIVATE in sources[1].values and _PRIVATE not in sources[2].values:
            # A home adds private paths: with fewer than without it, it would turn a protection off.
            usual = sources[0].values.get(_PRIVATE, KEYS[_PRIVATE].default)
            named = f"{usual},{sources[1].values[_PRIVATE]}".split(",")
            fields[FIELDS[_PRIVATE]] = ", ".join(dict.fromkeys(filter(None, map(str.strip, named))))
        wrong = {name: reason for one in sources for name, reason in one.wrong.items()}
        known = _HOMES[home] = sources, (Config(**fields), wrong)
    return known[1]


def untrusted(home: Path, name: str = "") -> list[Finding]:
    """Return the finding that the `config.toml` of `home` has settings that do not count, or none.

    They are those with authority, of a file that the user does not trust, whose path starts with `name`; not those
    that have the same value without it.
    """
    found, _ = _of_home(home)
    user, read, around = _HOMES[home][0]
    refused = {**read.refused, **_raised(read, user)}
    usual = {path: getattr(found, field) for path, field in FIELDS.items()}
    usual |= {path: user.values.get(path, KEYS[path].default) for path in refused if path not in FIELDS}
    names = [
        path
        for path, value in refused.items()
        if path.startswith(name) and path not in around.values and usual[path] != value
    ]
    return _ignored(_path(home, NAME), names)


def require_trusted(home: Path, names: Iterable[str]) -> None:
    """Require that the user trusts `home` with its settings of these paths, or has all of them elsewhere.

    Raises:
        UnsafePath: the home has one that does not count.
    """
    user, read = (_of_config(_path(user_file()), own=True), _of_config(_path(home, NAME)))
    for name in names:
        for one in untrusted(home, name):
            if name in read.refused and name not in user.values:
                raise UnsafePath(one.message, fix=one.fix, where=one.where)


def _raised(read: _Read, user: _Read) -> dict[str, Any]:
    """Return the settings of a home that nobody trusts by which it would have more than `user` has."""
    usual = {path: user.values.get(path, KEYS[path].default) for path in read.bounded}
    return {path: value for path, value in read.bounded.items() if value > usual[path]}


def _ignored(file: Path, names: Iterable[str]) -> list[Finding]:
    if not (listed := ", ".join(sorted(names))):
        return []
    what = f"ignored, because a home is data and only its user may set them: {listed}."
    fix = f'Run "aether trust" to see and allow them, or set them in {user_file()} or the environment.'
    return [Finding("warning", "untrusted", str(file), what, fix)]


def authority(file: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes of the configuration `file` of a home, and its settings that count only if it is trusted.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it does not parse.
        InvalidDocument, UnsafePath: it is too large, or no regular file.
    """
    data = _bytes(file, own=False)
    read = _checked(_mapping(data, file), str(file), InvalidDocument, late=True)
    judged = _untrusted(read)
    return data, {**judged.refused, **_raised(judged, _of_config(_path(user_file()), own=True))}


def _untrusted(read: _Read) -> _Read:
    """Return the settings of a home that nobody trusts."""
    refused = {path: value for path, value in read.values.items() if KEYS[path].authority}
    kept = {path: value for path, value in read.values.items() if path not in refused}
    bounded = {path: value for path, value in kept.items() if KEYS[path].lowers}
    return read._replace(values=kept, refused=refused, bounded=bounded)


def _judged(read: _Read, file: Path, data: bytes) -> _Read:
    """Return the settings of `file` in a home, which holds `data`: without those with authority unless it is trusted."""
    judged = _untrusted(read)
    needs = judged.refused or judged.bounded
    return judged if needs and not is_trusted(file, data) else read


def settings(
    file: str | os.PathLike[str] | None = None, *, home: Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:  # fmt: skip
    """Return the settings of compaction that are set: in the environment, in `file`, in `home`, in the user's file.

    Of the `config.toml` of `home`, settings with authority are left out unless the user trusts it, and so are those
    that break a rule that is checked late; mistakes are findings. A `file` in a home is a home's, too. `environ` is the environment of this process unless given; with one that is given, neither
    home nor user's file is read.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is of no known form, does not parse, or a setting is unknown or not allowed.
    """
    layers: dict[str, _Read] = {}
    if environ is None:
        layers["user"] = _of_config(_path(user_file()), own=True)
        if home is not None:
            found = _of_config(_path(home, NAME))
            kept = {
                path: value
                for path, value in found.values.items()
                if not path.startswith(CHECKED_ON_USE)
                or (KEYS[path].authority and not KEYS[path].rule(value))
            }
            layers["home"] = found._replace(values=kept)
    findings = untrusted(home) if "home" in layers and home is not None else []
    findings += [
        Finding("warning", reason.code, reason.where, reason.what, reason.fix)
        for one in layers.values()
        for reason in one.wrong.values()
    ]
    around = os.environ if environ is None else environ
    if file is not None:
        layers["file"] = _named(Path(file))
        findings += _ignored(Path(file), layers["file"].refused)
        findings += [
            Finding("info", "old-name", str(file), f"{old} is an older name of {new}.", f"Write {new}.")
            for old, new in layers["file"].old.items()
        ]
    layers["environment"] = _of_variables(around, "AETHER_", "COMPACT_")
    for layer in ("file", "environment"):
        for reason in layers[layer].wrong.values() if layer in layers else ():
            raise reason
    values = {path: value for one in layers.values() for path, value in one.values.items()}
    origins = {path: layer for layer, one in layers.items() for path in one.values}
    return Settings(
        values, {path: origins.get(path, "default") for path in KEYS}, [*unknown_variables(around), *findings]
    )


def _named(file: Path) -> _Read:
    """Return the settings of a file that the caller names; one in a home has authority only if the user trusts it."""
    data = _bytes(file, own=True)
    read = _checked(_mapping(data, file), str(file), InvalidInput, late=False)
    return _judged(read, file, data) if HOME_NAME in Path(os.path.realpath(file)).parts else read


def unknown_variables(environ: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each `COMPACT_*` variable that is not a setting: misspelt, or another program's."""
    unknown = sorted(name for name in environ if name.startswith("COMPACT_") and name not in _VARIABLES)
    fix = "Correct its name, or ignore this."
    return [
        Finding("warning", "unknown-variable", name, "is not a setting of aether.", fix) for name in unknown
    ]


def _checked(tree: Mapping[str, Any], where: str, kind: type[AetherError], *, late: bool) -> _Read:
    """Return the settings of a parsed file; it may be nested, flat, or both."""
    values: dict[str, Any] = {}
    wrong: dict[str, AetherError] = {}
    old: dict[str, str] = {}
    for name, value in _leaves(tree):
        if len(wrong) == MOST_FAULTS:
            break
        key, fault = NAMES.get(name), None
        if key is None:
            fault = _unknown(name, value)
        elif key.path in values:
            fault = InvalidInput(f"{key.path} is given twice.", fix="Leave one of them out.")
        else:
            try:
                values[key.path] = check_value(key, value, late=late)
            except InvalidInput as reason:
                fault = reason
        if fault:
            wrong[name] = kind(fault.what, fix=fault.fix, where=where)
        if key and name != key.path:
            old[name] = key.path
    return _Read(values, wrong, old)


def _leaves(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{below}", found) for below, found in value.items())
        elif value is not None or name not in _TABLES:  # in YAML, a table with nothing in it
            yield str(name), value


def _unknown(name: str, value: Any) -> InvalidInput:
    """Return the error for a name that is not a setting, with the similar one that it may mean."""
    from difflib import SequenceMatcher, get_close_matches

    if name in _TABLES:
        what = f"{name} must be a table of settings, got {shown(value)}."
        return InvalidInput(what, fix="Nest its keys below it.")
    names = {key.path.rpartition(".")[2]: key.path for key in KEYS.values()}
    last = name.rpartition(".")[2]
    # Names of one table are similar by its name alone.
    found = [
        one for one in get_close_matches(name, NAMES, n=1)
        if SequenceMatcher(None, last, one.rpartition(".")[2]).ratio() >= LEAST_LIKENESS
    ]  # fmt: skip
    found = found or [names[one] for one in get_close_matches(last, names, n=1)]
    meant = f"Did you mean {found[0]}? " if found else ""
    return InvalidInput(
        f"{shown(name)} is not a setting.", fix=f'{meant}"compactctl create-config" lists all settings.'
    )


def _of_config(path: Path, *, own: bool = False) -> _Read:
    """Return the settings of the `config.toml` at `path`, read once while it stays as it is; none if it does not exist.

    It is a home's, and has authority only if the user trusts it, unless it is the user's `own`.
    """
    try:
        found = os.stat(path, follow_symlinks=own)
    except OSError:
        return _NOTHING
    now, known = (found.st_mtime_ns, found.st_size, found.st_ino), _FILES.get(path)
    if known is None or known[0] != now or (known[1] is not None and known[1] != _time_of_trust(path)):
        read, judged = _NOTHING, None
        try:
            data = _bytes(path, own=own)
            read = _checked(_mapping(data, path), str(path), InvalidDocument, late=True)
            if not own:
                judged = _time_of_trust(path)
                read = _judged(read, path, data)
        except NotFound as reason:
            return read._replace(wrong={"": reason})  # the disk may answer the next time
        except InvalidInput as reason:
            read = read._replace(wrong={"": InvalidDocument(reason.what, fix=reason.fix, where=str(path))})
        except AetherError as reason:
            read = read._replace(wrong={"": reason})
        known = _FILES[path] = now, judged, read
    return known[2]


def record_of_trust(file: Path) -> Path:
    """Return where the user's word about the configuration `file` is kept, whether or not it is there."""
    place = os.path.join(os.path.realpath(file.parent), file.name)
    name = sha256(place.encode("utf-8", "surrogateescape")).hexdigest()
    return Path(state_directory(), "trust", f"{name}.json")


def is_trusted(file: Path, data: bytes) -> bool:
    """Return whether the user trusts `file` with exactly the content `data`."""
    return trusted_hash(file) == sha256(data).hexdigest()


def trusted_hash(file: Path) -> str:
    """Return the hash of the content with which the user trusts `file`; empty without one."""
    try:
        found = json.loads(regular.read(record_of_trust(file), regular.CONFIG_BYTES))
    except (OSError, ValueError, RecursionError, AetherError):
        return ""
    return str(found.get("sha256", "")) if isinstance(found, dict) else ""


def grant_trust(file: Path, data: bytes) -> None:
    """Trust `file` while its content is `data`.

    Raises:
        StorageFailed: the state directory cannot be written.
    """
    path = record_of_trust(file)
    word = {
        "path": os.path.join(os.path.realpath(file.parent), file.name),
        "sha256": sha256(data).hexdigest(),
    }
    with files.storage_errors(path):
        files.make_directory(path.parent)
        files.write_whole(path, files.json_line(word) + b"\n")


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


def _of_variables(environ: Mapping[str, str], *prefixes: str) -> _Read:
    """Return the settings of variables; of two for one setting, that of the last prefix wins. Empty ones are not set."""
    values: dict[str, Any] = {}
    wrong: dict[str, AetherError] = {}
    given = [name for name in environ if name.startswith(prefixes) and name in _VARIABLES]
    for name in sorted(given):
        key, text = _VARIABLES[name], environ[name].strip()
        try:
            if text and not (key.path in values and name.startswith(prefixes[0])):
                values[key.path] = check_value(
                    key, _value(type(key.default), text), late=prefixes == ("AETHER_",)
                )
        except InvalidInput as reason:
            wrong[name] = InvalidInput(reason.what, fix=reason.fix, where=name)
    return _Read(values, wrong, {})


def _value(kind: type, text: str) -> Any:
    """Return `text` as a value of `kind` if it can be read as one, else the text itself.

    A list is JSON, or separated by commas (regular expressions may hold commas: use JSON).
    """
    if kind is bool:
        return True if text.lower() in _YES else False if text.lower() in _NO else text
    if kind is tuple and not text.startswith("["):
        return tuple(one.strip() for one in text.split(",") if one.strip())
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
        found = _parse(data.decode("utf-8-sig"), form)
    except UnicodeDecodeError as reason:
        raise InvalidInput("is not UTF-8 text.", fix="Convert it to UTF-8.", where=str(path)) from reason
    except RecursionError as reason:
        raise InvalidInput("is nested too deeply.", fix="Correct the file.", where=str(path)) from reason
    except ValueError as reason:
        what = f"is not {form.upper()}: {str(reason)[:MOST_REASON]}."
        raise InvalidInput(what, fix="Correct the file.", where=str(path)) from reason
    if not isinstance(found, Mapping):
        what = f"must hold settings by name, got {shown(found)}."
        raise InvalidInput(what, fix='See "compactctl create-config".', where=str(path))
    return found


def _parse(text: str, form: str) -> Any:
    if form == "json":
        return json.loads(text, object_pairs_hook=_once)
    if form == "toml":
        import tomllib

        if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
            raise ValueError(f"a line has more than {MOST_DOTS} dots")
        return tomllib.loads(text)
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as reason:
        raise ValueError(reason) from reason
    return {} if found is None else found  # a file of comments


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of `pairs`, and refuse two of one key."""
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{shown(twice)} is given twice")
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
