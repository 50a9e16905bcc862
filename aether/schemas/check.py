"""Schema checks: a finding for each place at which a value breaks its schema, with the rule.

The schemas are `data/schemas/*.schema.json` (JSON Schema 2020-12). Checking by the library costs a quarter of a second
per megabyte, and 50 ms to import it. Most values fit, and tests that are made of the schema once see that in a tenth of
the time (`_fits`); the library finds the words for the others. Checked is input from outside (hand edits, answers,
snapshots, old versions, lines of other machines), and by `schema check` and `doctor`; not an addition, whose patches are
built valid (the laws check them).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from aether.errors import InvalidDocument
from aether.paths import resource
from aether.store.patch import pointer
from aether.types import Finding


@lru_cache(maxsize=32)
def schema(name: str) -> dict[str, Any]:
    """Return the schema called `name`, such as `memory`."""
    value: dict[str, Any] = json.loads(resource(f"data/schemas/{name}.schema.json").read_bytes())
    return value


@lru_cache(maxsize=32)
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema(name))


def findings(name: str, value: Any, *, partly: bool = False) -> list[Finding]:
    """Return a finding for each place at which `value` breaks the schema called `name`, in document order.

    With `partly`, objects that are in no list may lack what the schema requires of them.
    """
    return [] if _fits(name, "", partly=partly)(value) else library_findings(name, value, partly=partly)


def library_findings(name: str, value: Any, *, partly: bool = False) -> list[Finding]:
    """Return the findings of the library, as `findings`."""
    from jsonschema.exceptions import best_match

    results = []
    for error in _validator(name).iter_errors(value):
        deepest = best_match([error]) or error
        if (
            partly
            and deepest.validator == "required"
            and not any(isinstance(step, int) for step in deepest.absolute_path)
        ):
            continue
        rule, where = f"schema-{deepest.validator}", f"{name}#{pointer(*deepest.absolute_path) or '/'}"
        what = deepest.message
        what = what if len(what) <= 200 else f"{what[:120]} … {what[-79:]}"
        results.append(Finding("error", rule, where, what, "Correct the value at this place."))
    return sorted(results, key=lambda finding: finding.where)


def require(name: str, value: Any, *, fix: str) -> None:
    """Do nothing if `value` fits the schema called `name`.

    Raises:
        InvalidDocument: it does not; the first place and the number of others are named.
    """
    faults = findings(name, value)
    if faults:
        suffix = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InvalidDocument(f"{faults[0].message}{suffix}.", fix=fix, where=faults[0].where)


Test = Callable[[Any], bool]


def fits(name: str, rule: dict[str, Any], value: Any) -> bool:
    """Return whether `value` fits `rule`, a part of the schema called `name`."""
    return _test(name, rule, partly=False)(value)


_TYPES: dict[str, frozenset[type]] = {
    "object": frozenset({dict}), "array": frozenset({list}), "string": frozenset({str}),
    "null": frozenset({type(None)}), "boolean": frozenset({bool}), "integer": frozenset({int}),
    "number": frozenset({int, float}),
}  # fmt: skip
_OF_MEMBERS = frozenset({"properties", "additionalProperties", "required"})
# Words that are no rule; the library does not check a format either.
_NOTES = frozenset(
    {"$schema", "$id", "$defs", "title", "description", "default", "examples", "format", "x-merge"}
)


@lru_cache(maxsize=256)
def _fits(name: str, part: str, *, partly: bool) -> Test:
    """Return a test that is true only of values that fit the `part` of a schema, all of it if that is empty.

    It may be false of a value that fits in an unusual way, such as 1.0 for a whole number.
    """
    rule: Any = schema(name)
    for key in part.split("/")[1:]:
        rule = rule[key]
    return _test(name, rule, partly=partly)


def _test(name: str, rule: Any, *, partly: bool) -> Test:
    if not isinstance(rule, dict):
        return lambda value: rule is True
    tests = [_test_of(name, keyword, rule, partly=partly) for keyword in rule.keys() - _NOTES - _OF_MEMBERS]
    if not _OF_MEMBERS.isdisjoint(rule):
        tests.append(_test_of_members(name, rule, partly=partly))
    return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)


def _test_of(name: str, keyword: str, rule: dict[str, Any], *, partly: bool) -> Test:
    """Return the test of one keyword of a rule; false of everything for one that is not known here."""
    about = rule[keyword]
    if keyword in _OF_VALUES:
        prepared, holds = _OF_VALUES[keyword]
        argument = prepared(about)
        return lambda value: holds(value, argument)
    if keyword == "items":
        entry_test = _test(name, about, partly=False)
        return lambda value: type(value) is not list or all(map(entry_test, value))
    if keyword == "anyOf":
        some = [_test(name, option, partly=False) for option in about]
        return lambda value: any(fits(value) for fits in some)
    if keyword == "$ref" and about.startswith("#/"):
        # A schema may contain itself, so the other part is looked for when it is needed.
        return lambda value: _fits(name, about[1:], partly=partly)(value)  # noqa: PLW0108
    return lambda value: False


def _test_of_members(name: str, rule: dict[str, Any], *, partly: bool) -> Test:
    members = {key: _test(name, member, partly=partly) for key, member in rule.get("properties", {}).items()}
    other = _test(name, rule.get("additionalProperties", True), partly=partly)
    needed = frozenset(() if partly else rule.get("required", ()))
    return lambda value: (
        type(value) is not dict
        or (needed <= value.keys() and all(members.get(key, other)(member) for key, member in value.items()))
    )


def _types(about: Any) -> frozenset[type]:
    return frozenset().union(*(_TYPES[name] for name in ([about] if isinstance(about, str) else about)))


def _is_one_of(value: Any, allowed: list[Any]) -> bool:
    # Equal lists may differ for the library: [1] and [true].
    return type(value) not in (dict, list) and any(
        type(value) is type(option) and value == option for option in allowed
    )


# By keyword: what is made of its value once, and whether a value holds to that.
_OF_VALUES: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], bool]]] = {
    "type": (_types, lambda value, types: type(value) in types),
    "const": (lambda one: [one], _is_one_of),
    "enum": (list, _is_one_of),
    "minimum": (float, lambda value, bound: type(value) not in (int, float) or value >= bound),
    "maximum": (float, lambda value, bound: type(value) not in (int, float) or value <= bound),
    "exclusiveMinimum": (float, lambda value, bound: type(value) not in (int, float) or value > bound),
    "exclusiveMaximum": (float, lambda value, bound: type(value) not in (int, float) or value < bound),
    "minLength": (int, lambda value, least: type(value) is not str or len(value) >= least),
    "maxItems": (int, lambda value, most: type(value) is not list or len(value) <= most),
    "uniqueItems": (bool, lambda value, wanted: type(value) is not list or len(value) < 2),
    "pattern": (re.compile, lambda value, found: type(value) is not str or found.search(value) is not None),
}
