"""Redaction of texts and JSON values, and the rules of privacy: private blocks in texts, private paths.

Values are copied and originals stay unchanged; a redacted text stays as it is when it is redacted again. Secrets
recognised by a rule are in `rules`, those recognised by a name in `assignments`; docs/security.md lists both.
Hooks and imports use the same functions, so that an import never stores text that a hook leaves out.
"""

from __future__ import annotations

import json
import os
import re
from fnmatch import translate
from functools import lru_cache, partial
from typing import NamedTuple

from aether.errors import InvalidInput, shown
from aether.project import IGNORES_CASE
from aether.redact.assignments import is_secret_name, may_be_secret_name, without_assigned, without_said
from aether.redact.encoded import without_encoded
from aether.redact.rules import without_ruled
from aether.redact.table import PLACEHOLDER
from aether.redact.values import is_docker_auth, is_drawn

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeVar

    T = TypeVar("T")

# Deeper values are replaced whole: no message nests that deep, and other parsers may fail there.
MAX_DEPTH = 200
# A replaced secret may have hidden the next: two keys without a space between them. Each pass leaves less to find.
MOST_PASSES = 8
# A list of two that starts with one of these is a header and its value.
_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})


class Rules(NamedTuple):
    """The rules for secrets: compiled patterns of the caller, and whether the built-in ones apply."""

    patterns: tuple[re.Pattern[str], ...] = ()
    builtin: bool = True


DEFAULT = Rules()


def rules(patterns: Iterable[str], *, builtin: bool = True) -> Rules:
    r"""Return the rules that replace the matches of `patterns`, beside the built-in ones.

    Of a pattern with groups only the groups are replaced, of one without groups the whole match.

    Raises:
        InvalidInput: a pattern is not a regular expression, or matches the empty text.

    >>> redact("ticket ACME-1234 of ward 7", rules([r"ACME-\d+", r"ward (\d+)"]))
    'ticket <REDACTED> of ward <REDACTED>'
    """
    compiled = []
    for nth, pattern in enumerate(patterns):
        try:
            compiled.append(re.compile(pattern))
        except (re.error, TypeError, OverflowError, RecursionError) as reason:
            raise InvalidInput(
                f"{shown(pattern)} is not a regular expression ({reason}).",
                fix="Correct it, or escape its special characters with a backslash.",
                where=f"redaction.patterns[{nth}]",
            ) from reason
        if compiled[-1].match(""):
            raise InvalidInput(
                f"{shown(pattern)} matches the empty text, so it would match everywhere.",
                fix="Use + in the place of *, or include more of the secret.",
                where=f"redaction.patterns[{nth}]",
            )
    return Rules(tuple(compiled), builtin)


# Texts that the built-in rules leave as they are: keys and short words come again in each message, and a message in each
# compaction of its conversation. No text with a secret is held here.
_CLEAN: set[str] = set()
_MOST_CLEAN, _MOST_CLEAN_CHARS = 20_000, 4_000_000
_CLEAN_CHARS = [0]


def redact(text: str, rules: Rules = DEFAULT) -> str:
    """Return `text` with every secret in it replaced by `<REDACTED>`, and the names of secrets kept.

    >>> redact("api_key=sk-abc123, max_tokens: 512")
    'api_key=<REDACTED>, max_tokens: 512'
    """
    plain = rules.builtin and not rules.patterns
    if plain and text in _CLEAN:
        return text
    original = text
    steps = [
        *(partial(_without_matches, pattern) for pattern in rules.patterns),
        *(_BUILTIN if rules.builtin else ()),
    ]
    unchanged = 0
    for step in steps * MOST_PASSES:
        before, text = text, step(text)
        unchanged = unchanged + 1 if text == before else 0
        if unchanged == len(steps):  # each step has seen the text as it is
            break
    if plain and text == original:
        _remember_clean(text)
    return text


def _remember_clean(text: str) -> None:
    if len(text) > _MOST_CLEAN_CHARS:
        return
    if len(_CLEAN) == _MOST_CLEAN or _CLEAN_CHARS[0] + len(text) > _MOST_CLEAN_CHARS:
        _CLEAN.clear()
        _CLEAN_CHARS[0] = 0
    _CLEAN.add(text)
    _CLEAN_CHARS[0] += len(text)


def _without_matches(pattern: re.Pattern[str], text: str) -> str:
    # Placeholders stay as they are, whatever the pattern.
    return PLACEHOLDER.join(pattern.sub(_without_groups, part) for part in text.split(PLACEHOLDER))


def _without_plain(text: str) -> str:
    for step in (without_ruled, without_assigned, without_said):
        text = step(text)
    return text


_BUILTIN = (without_ruled, without_assigned, without_said, partial(without_encoded, plain=_without_plain))


def _without_groups(match: re.Match[str]) -> str:
    spans = [match.span(group) for group in range(1, len(match.groups()) + 1)]
    spans = sorted(span for span in spans or [match.span()] if span[0] < span[1])
    parts, index = [], match.start()
    for start, end in spans:
        if start >= index:
            parts += [match.string[index:start], PLACEHOLDER]
        index = max(index, end)
    return "".join([*parts, match.string[index : match.end()]])


def redacted(value: T, rules: Rules = DEFAULT) -> T:
    """Return a copy of a JSON value without secrets, in the same shape.

    Texts and keys are redacted. Any value under a secret's name is replaced, unless it is empty, true or false; so are
    the value beside `"name": "API_KEY"` and the entry after `"--password"` in a list.

    >>> redacted({"api_key": {"id": 7}, "args": ["--token", "x"], "max_tokens": 512})
    {'api_key': '<REDACTED>', 'args': ['--token', '<REDACTED>'], 'max_tokens': 512}
    """
    copied: T = _copied(value, rules, MAX_DEPTH)
    return copied


def _copied(value: Any, rules: Rules, depth: int) -> Any:
    if isinstance(value, str):
        return redact(_without_escaped(value, rules, depth), rules)
    if isinstance(value, dict):
        return _copied_dict(value, rules, depth - 1) if depth else PLACEHOLDER
    if isinstance(value, list | tuple):
        if not depth:
            return PLACEHOLDER
        copied = [
            PLACEHOLDER if secret and isinstance(entry, str) else _copied(entry, rules, depth - 1)
            for secret, entry in zip(_after_flags(value, rules), value, strict=True)
        ]
        return copied if isinstance(value, list) else tuple(copied)
    return value


def _without_escaped(text: str, rules: Rules, depth: int) -> str:
    """Return `text`, if it is JSON as the arguments of a call are, without the secrets that its escapes hide."""
    if not (depth and "\\" in text and text[:1] in "{[" and text[-1:] in "}]"):
        return text
    try:
        parsed = json.loads(text)
        copied = _copied(parsed, rules, depth - 1)
        return text if copied == parsed else json.dumps(copied, ensure_ascii=text.isascii())
    except (ValueError, RecursionError):
        return text


def _copied_dict(value: dict[Any, Any], rules: Rules, depth: int) -> dict[Any, Any]:
    beside = value.get("name", value.get("key"))
    pair = isinstance(beside, str) and is_secret_name(beside)
    copied: dict[Any, Any] = {}
    for key, entry in value.items():
        clean_key = free = _copied(key, rules, depth) if isinstance(key, str) else key
        nth = 1
        while free in copied:  # another key was redacted to the same text
            nth += 1
            free = f"{clean_key} {nth}"
        docker = key == "auth" and isinstance(entry, str) and is_docker_auth(entry)
        is_named = docker or (pair and key == "value") or (isinstance(key, str) and is_secret_name(key))
        if isinstance(key, str) and isinstance(entry, str) and not is_named and may_be_secret_name(key):
            is_named = is_drawn(entry)
        if rules.builtin and is_named:
            copied[free] = entry if entry is None or isinstance(entry, bool) or entry == "" else PLACEHOLDER
        else:
            copied[free] = _copied(entry, rules, depth)
    return copied


def _after_flags(value: list[Any] | tuple[Any, ...], rules: Rules) -> list[bool]:
    """Return for each entry whether it is a secret by the flag or header before it."""
    secret = [False] * len(value)
    for nth, entry in enumerate(value[:-1] if rules.builtin else ()):
        if isinstance(entry, str) and len(entry) <= 80:
            header = len(value) == 2 and entry.lower() in _HEADERS
            if header or (entry.startswith("-") and "=" not in entry and is_secret_name(entry)):
                secret[nth + 1] = True
    return secret


# A person writes `<private>`; `<aether-memory …>` holds text that aether injected, and is never captured.
INJECTED = "aether-memory"
_BLOCKS = ("private", INJECTED)
_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "filename", "target_file")
_COMMAND_KEYS = ("command", "cmd", "script", "code")
_PATCH_KEYS = ("input", "patch", "command")
_PATCHED = r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.+)$"
# No system has a longer path, and a shell takes no longer command.
_PATH_CHARS = 4_096
_COMMAND_CHARS = 1 << 17
# A hundred thousand blocks take a tenth of a second; the stored part of any text is far shorter.
_SEARCHED_CHARS = 1 << 21
_BETWEEN_WORDS = r"[\s\"'`=;|&<>(){},:]+"


def without_blocks(text: str, names: tuple[str, ...] = _BLOCKS) -> str:
    """Return `text` without private blocks and those of aether; an unclosed block ends with the text.

    Of a very long text with blocks, only the start is scanned and kept.

    >>> without_blocks("a <private>b <private>c</private> d</private> e")
    'a  e'
    """
    if "<" not in text:
        return text
    folded = text.lower()
    if not any(f"<{name}" in folded or f"</{name}" in folded for name in names):
        return text
    text = text[:_SEARCHED_CHARS]
    parts, index = [], 0
    depth = dict.fromkeys(names, 0)  # the end tag of one kind does not close the other
    for tag in re.finditer(rf"<(/?)({'|'.join(names)})\b[^>]*?(?:(/?)>|\Z)", text, re.IGNORECASE):
        if not any(depth.values()):
            parts.append(text[index : tag.start()])
        name = tag[2].lower()
        if not tag[3]:
            depth[name] = max(0, depth[name] - 1) if tag[1] else depth[name] + 1
        index = tag.end()
    return "".join(parts if any(depth.values()) else [*parts, text[index:]])


def without_whole_blocks(text: str) -> str:
    """Return `text`, a statement, without its closed blocks; a tag without a partner is a word and stays.

    A remaining opening tag of aether is escaped, so that it cannot open a block later.

    >>> without_whole_blocks("Use `<private>` there. <private>mine</private>Never <aether-memory> here.")
    'Use `<private>` there. Never ‹aether-memory> here.'
    """
    while (shorter := _without_pairs(text)) != text:
        text = shorter
    return re.sub(rf"<(?=/?{INJECTED}\b)", "‹", text, flags=re.IGNORECASE)


def _without_pairs(text: str) -> str:
    opened: list[tuple[str, int]] = []
    waiting = dict.fromkeys(_BLOCKS, 0)
    pairs: list[tuple[int, int]] = []
    for tag in re.finditer(rf"<(/?)({'|'.join(_BLOCKS)})\b[^>]*(?:>|\Z)", text, re.IGNORECASE):
        name = tag[2].lower()
        if not tag[1]:
            opened.append((name, tag.start()))
            waiting[name] += 1
        elif waiting[name]:
            opening = ("", 0)
            while opening[0] != name:
                opening = opened.pop()
                waiting[opening[0]] -= 1
            while pairs and pairs[-1][0] > opening[1]:
                pairs.pop()
            pairs.append((opening[1], tag.end()))
    stops = [0, *(end for _, end in pairs)]
    starts = [*(start for start, _ in pairs), len(text)]
    return "".join(text[end:start] for end, start in zip(stops, starts, strict=True))


def is_private(given: dict[str, object], patterns: str, cwd: str) -> bool:
    """Return whether the arguments of a call name a path that matches one of the `patterns`, also within a command.

    A command that is too long to be searched counts as private if any pattern is set.

    >>> is_private({"file_path": "/app/secrets/a.txt"}, ".env*, secrets/**", "/app")
    True
    >>> is_private({"command": "cat ./.env.local | wc"}, ".env*, secrets/**", "/app")
    True
    """
    matcher = _matcher(patterns)
    names = [value for key in _PATH_KEYS if isinstance(value := given.get(key), str)]
    for key in _PATCH_KEYS:
        if isinstance(value := given.get(key), str):
            names += (path.strip() for path in re.findall(_PATCHED, value, re.MULTILINE))
    # A link is another name of a private file.
    names += [os.path.realpath(os.path.join(cwd, name)) for name in names if "\0" not in name]
    for key in _COMMAND_KEYS:
        value = given.get(key)
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                continue
            if len(text) > _COMMAND_CHARS:
                return bool(patterns.strip(" ,"))
            names += re.split(_BETWEEN_WORDS, text)
    paths = {os.path.expanduser(path) for path in names if 0 < len(path) <= _PATH_CHARS}
    return any(matcher.match(_normcase(os.path.normpath(os.path.join(cwd, path)))) for path in paths)


def _normcase(path: str) -> str:
    return os.path.normcase(path).casefold() if IGNORES_CASE else path


@lru_cache(maxsize=4)
def _matcher(patterns: str) -> re.Pattern[str]:
    """Return one expression that matches an absolute path if it, or a directory above it, matches a pattern.

    As in .gitignore, a name alone matches at any depth. One expression is fast: a command has many words.
    """
    separator = re.escape(os.sep)
    expressions = []
    for pattern in filter(
        None, (os.path.expanduser(pattern_.strip()).rstrip("/") for pattern_ in patterns.split(","))
    ):
        path = _normcase(pattern.removesuffix("/**").removeprefix("**/"))
        # `translate` ends its expression with the two characters that mean the end of the text.
        expressions.append(("" if os.path.isabs(path) else f"(?s:.*){separator}") + translate(path)[:-2])
    return re.compile(rf"(?:{'|'.join(expressions)})(?:{separator}|\Z)" if expressions else r"(?!)")
