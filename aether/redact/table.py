"""The table of secrets, `data/secrets.json`: forms of tokens, rules, commands, names of secrets, and what is no secret.

A pattern of the table is compiled at its first use. A text that has none of a rule's keywords never uses its pattern.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from aether.project import shipped
from aether.text.regex import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACEHOLDER = "<REDACTED>"


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """Return the content of `data/secrets.json`; its field `about` says what each field means."""
    # Not by `paths`, which imports pathlib: the event of a tool does without.
    with open(shipped("data/secrets.json"), "rb") as file:
        content: dict[str, Any] = json.loads(file.read())
    return content


@lru_cache(maxsize=64)
def words(name: str) -> frozenset[str]:
    """Return the words of the table under `name`."""
    return frozenset(table()["words"][name].split())


@lru_cache(maxsize=64)
def pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of the table under `name`: a text, or a list of alternatives."""
    source = table()["patterns"][name]
    return compiled(source if isinstance(source, str) else "|".join(source))


def compiled(expression: str) -> re.Pattern[str]:
    """Return `expression` as a pattern, with the table's parts in the place of their names, such as `{value}`."""
    for name, part in table()["parts"].items():
        expression = expression.replace(f"{{{name}}}", part)
    return lazy(expression)
