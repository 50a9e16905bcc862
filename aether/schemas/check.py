"""Schema checks: a finding for each place at which a value breaks its schema, with the rule.

The schemas are `data/schemas/*.schema.json` (JSON Schema 2020-12). Checking costs a quarter of a second
per megabyte, and the library 50 ms to import: it is done for input from outside (hand edits, answers,
snapshots, old versions) and by `schema check` and `doctor`, not for an addition, whose patches are built valid
(the laws check them).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from aether.errors import InvalidDocument
from aether.paths import resource
from aether.store.patch import pointer
from aether.types import Finding


@lru_cache(maxsize=32)
def schema(name: str) -> dict[str, Any]:
    """Return the schema called `name`, such as `memory` or `cli/status`."""
    found: dict[str, Any] = json.loads(resource(f"data/schemas/{name}.schema.json").read_bytes())
    return found


@lru_cache(maxsize=32)
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema(name))


def findings(name: str, value: Any, *, partly: bool = False) -> list[Finding]:
    """Return a finding for each place at which `value` breaks the schema called `name`, in document order.

    With `partly`, objects that are in no list may lack what the schema requires of them.
    """
    from jsonschema.exceptions import best_match

    found = []
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
        found.append(Finding("error", rule, where, what, "Correct the value at this place."))
    return sorted(found, key=lambda finding: finding.where)


def require(name: str, value: Any, *, fix: str) -> None:
    """Do nothing if `value` fits the schema called `name`.

    Raises:
        InvalidDocument: it does not; the first place and the number of others are named.
    """
    found = findings(name, value)
    if found:
        more = f" ({len(found) - 1} more)" if len(found) > 1 else ""
        raise InvalidDocument(f"{found[0].message}{more}.", fix=fix, where=found[0].where)
