"""Redaction: secrets replaced in texts and in JSON values, copies made and originals left alone.

What a secret is, by its shape or by the name it stands under, is in `shapes`, `assignments` and `names`;
docs/security.md lists it for people. A redacted text, redacted again, stays as it is.
"""

from __future__ import annotations

import re
from collections import namedtuple

from aether.errors import InvalidInput, shown
from aether.redact.assignments import without_assigned
from aether.redact.commands import is_docker_auth, without_commands
from aether.redact.names import is_secret_name
from aether.redact.shapes import PLACEHOLDER, without_shapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeVar

    T = TypeVar("T")

# What is nested deeper is replaced whole: no message is, and a parser that is not ours may give up on it.
MAX_DEPTH = 200
# What was replaced may have hidden something: two keys without a space between them. Each pass leaves less to find.
MOST_PASSES = 8
# A list of two that begins with one of these is a header and what it says.
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})


# What counts as a secret: the built-in rules, and compiled patterns of the caller's own.
Rules = namedtuple("Rules", ["patterns", "builtin"], defaults=[(), True])  # noqa: PYI024 - typing costs a hook milliseconds
DEFAULT = Rules()


def rules(patterns: Iterable[str], *, builtin: bool = True, where: str = "redaction.patterns") -> Rules:
    r"""Return the rules that replace what `patterns` match, beside the built-in ones.

    A pattern with groups replaces what its groups match and keeps the rest; one without replaces all of its match.

    Raises:
        InvalidInput: one is no regular expression, or matches the empty text.

    >>> redact("ticket ACME-1234 of ward 7", rules([r"ACME-\d+", r"ward (\d+)"]))
    'ticket <REDACTED> of ward <REDACTED>'
    """
    return Rules(
        tuple(_compiled(pattern, f"{where}[{nth}]") for nth, pattern in enumerate(patterns)), builtin
    )


def _compiled(pattern: str, where: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError, OverflowError, RecursionError) as reason:
        raise InvalidInput(
            f"{shown(pattern)} is not a regular expression ({reason}).",
            fix="Correct it, or escape what is meant literally with a backslash.",
            where=where,
        ) from reason
    if compiled.match(""):
        raise InvalidInput(
            f"{shown(pattern)} matches the empty text, so it would match everywhere.",
            fix="Use + in the place of *, or name more of what is secret.",
            where=where,
        )
    return compiled


def redact(text: str, rules: Rules = DEFAULT) -> str:
    """Return `text` with every secret in it replaced by `<REDACTED>`, and the names of secrets kept.

    >>> redact("api_key=sk-abc123, max_tokens: 512")
    'api_key=<REDACTED>, max_tokens: 512'
    """
    for _ in range(MOST_PASSES):
        before, text = text, _once(text, rules)
        if text == before:
            break
    return text


def _once(text: str, rules: Rules) -> str:
    for pattern in rules.patterns:
        # What is replaced already is not looked at again, whatever the pattern.
        text = PLACEHOLDER.join(pattern.sub(_without_groups, part) for part in text.split(PLACEHOLDER))
    return without_assigned(without_commands(without_shapes(text))) if rules.builtin else text


def _without_groups(found: re.Match[str]) -> str:
    spans = [found.span(group) for group in range(1, len(found.groups()) + 1)]
    spans = sorted(span for span in spans or [found.span()] if span[0] < span[1])
    parts, at = [], found.start()
    for start, end in spans:
        if start >= at:
            parts += [found.string[at:start], PLACEHOLDER]
        at = max(at, end)
    return "".join([*parts, found.string[at : found.end()]])


def redacted(value: T, rules: Rules = DEFAULT) -> T:
    """Return a copy of a JSON value without secrets, in the same shape.

    Texts are redacted, keys too; what stands under a secret's name is replaced whatever it is, unless it is nothing,
    true or false; so is the value beside `"name": "API_KEY"`, and what follows `"--password"` in a list.

    >>> redacted({"api_key": {"id": 7}, "args": ["--token", "x"], "max_tokens": 512})
    {'api_key': '<REDACTED>', 'args': ['--token', '<REDACTED>'], 'max_tokens': 512}
    """
    copied: T = _copied(value, rules, MAX_DEPTH)
    return copied


def _copied(value: Any, rules: Rules, depth: int) -> Any:
    if isinstance(value, str):
        return redact(value, rules)
    if isinstance(value, dict):
        return _copied_dict(value, rules, depth - 1) if depth else PLACEHOLDER
    if isinstance(value, list | tuple):
        return _copied_list(value, rules, depth - 1) if depth else PLACEHOLDER
    return value


def _copied_dict(value: dict[Any, Any], rules: Rules, depth: int) -> dict[Any, Any]:
    beside = value.get("name", value.get("key"))
    pair = isinstance(beside, str) and is_secret_name(beside)
    copied: dict[Any, Any] = {}
    for key, entry in value.items():
        kept = _free_key(_copied(key, rules, depth) if isinstance(key, str) else key, copied)
        docker = key == "auth" and isinstance(entry, str) and is_docker_auth(entry)
        named = docker or (pair and key == "value") or (isinstance(key, str) and is_secret_name(key))
        if rules.builtin and named:
            copied[kept] = entry if entry is None or isinstance(entry, bool) or entry == "" else PLACEHOLDER
        else:
            copied[kept] = _copied(entry, rules, depth)
    return copied


def _free_key(key: Any, taken: dict[Any, Any]) -> Any:
    """Return `key`, or the first of `key 2`, `key 3`… that no other key was redacted to."""
    free, nth = key, 1
    while free in taken:
        nth += 1
        free = f"{key} {nth}"
    return free


def _copied_list(value: list[Any] | tuple[Any, ...], rules: Rules, depth: int) -> Any:
    copied = [
        PLACEHOLDER if before is not None and isinstance(entry, str) else _copied(entry, rules, depth)
        for before, entry in zip(_flags(value, rules), value, strict=True)
    ]
    return copied if isinstance(value, list) else tuple(copied)


def _flags(value: list[Any] | tuple[Any, ...], rules: Rules) -> list[str | None]:
    """Return for each entry the flag or header before it that makes it a secret, or None."""
    flags: list[str | None] = [None] * len(value)
    for nth, entry in enumerate(value[:-1] if rules.builtin else ()):
        if isinstance(entry, str) and len(entry) <= 80:
            header = len(value) == 2 and entry.lower() in _HEADERS
            if header or (entry.startswith("-") and "=" not in entry and is_secret_name(entry)):
                flags[nth + 1] = entry
    return flags
