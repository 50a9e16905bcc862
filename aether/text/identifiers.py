"""Identifiers: the exact paths, commands, errors, names, numbers and URLs in a text.

Each is verbatim text. Tokens are recognised one by one, so the cost is linear in any text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from aether.text.regex import lazy


class Identifiers(NamedTuple):
    """The identifiers of a text, each verbatim, in order, once."""

    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


# Longer tokens are data (base64, minified code), not names.
TOKEN_CHARS = 240
# With the signs at its end; longer ones are not even looked up.
_MOST_TOKEN_CHARS = 2 * TOKEN_CHARS
# Texts of one conversation repeat their words.
_CACHED_TOKENS = 1 << 15
_NO_NAME = ("", "")
# The point of a longer error message is at its start.
ERROR_CHARS = 200

# Programs whose name, followed by something like an argument, is a command even without a prompt before it.
PROGRAMS = frozenset(
    "git gh npm npx yarn pnpm node deno bun python python3 pip pip3 uv pytest tox nox ruff mypy black make cmake "
    "cargo rustc go gofmt java javac mvn gradle docker kubectl helm terraform aws gcloud az curl wget ssh scp rsync "
    "ls cd cp mv rm mkdir cat grep rg sed awk find chmod chown tar psql mysql sqlite3 redis-cli systemctl apt "
    "apt-get brew bash sh sudo php composer ruby bundle rails rake dotnet swift aether tsc eslint jest vitest".split()
)

_WORD_CHARS = r"[^\s\"'`()<>\[\]{},;|“”‘’«»（）、。]++"
_TOKEN = lazy(rf"{_WORD_CHARS}(?:(?<=\d),(?=\d){_WORD_CHARS})*+")
_TRIM = ".:!?*_="
_URLS = ("https://", "http://", "ftp://", "ssh://", "git://", "file://", "www.")
_FILE = lazy(
    r"[\w@+-][\w.@+-]*\.(?:py|pyi|js|jsx|ts|tsx|mjs|json|jsonl|toml|ya?ml|md|rst|txt|html|css|scss|c|h|cc|cpp|hpp|rs|go|java|kt|rb|"
    r"php|cs|swift|sh|bash|sql|csv|xml|ini|cfg|conf|lock|log|env|ipynb|vue|svelte|proto|tf|gradle|diff|patch|pdf|png|jpe?g|svg|zip|gz|tar|db|sqlite)"
    r"|Makefile|Dockerfile|\.env|\.gitignore"
)
_ROOTED = lazy(r"(?:~|\.{1,2})?/[\w.@+~-]+(?:/[\w.@+~-]*)*|[A-Za-z]:\\[^\s]+")
_INNER = lazy(r"[\w.@+-]+(?:/[\w.@+-]+)+/?|[\w.@+-]+/")
_ERROR_ENDS = ("Error", "Exception", "Warning", "Fault")
_IDENTIFIER = lazy(
    r"--?[A-Za-z][\w-]*(?:=\S*)?|[A-Za-z]\w*_\w+|_+\w+|[a-z]+\w*[A-Z]\w*|(?:[A-Z][a-z0-9]+){2,}[A-Z]?|[A-Z]{2,}[a-z]\w+|"
    r"[A-Z][A-Z0-9]*(?:[-_][A-Z0-9]+)+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z_]\w*(?:::\w+)+|[#@][\w-]+|"
    r"(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}|[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,40}|[A-Z]+\d[\w-]*|\w+@[\w.-]+"
)
_NUMBER = lazy(r"[$€£¥~<>≤≥±+-]*\d[\d.,:/_×x-]*(?:[%°]|[A-Za-zµ]{1,6})?(?:/[A-Za-z]+)?|v\d[\w.-]*")
_PROMPTS = ("$ ", "❯ ", ">>> ")
# Longer ones are data.
COMMAND_CHARS = 300
_TICKED = lazy(r"`([^`\n]{2,300})`")
_BARE_COMMAND = lazy(
    rf"(?:^|(?<=[:(;&|] )|(?<=\b[Rr]an )|(?<=\b[Rr]un ))((?:{'|'.join(sorted(map(re.escape, PROGRAMS), key=len, reverse=True))})"
    r"(?: +[^\n`]{1,280})?)",
    re.MULTILINE,
)
_ERROR_LINE = lazy(
    r"\b(?:[A-Za-z_][\w.]{0,80}(?:Error|Exception)|[Ee]rror(?:\[\w+\])?|ERROR|FATAL|[Ff]atal|panic|FAILED|Traceback)(?!\w) ?(?::|\()[^\n]{0,200}"
    r"|\b[Ee]xit(?:ed)?(?: with)?(?: (?:code|status))? \d+|\bHTTP[ /]?[45]\d\d\b|\b[45]\d\d [A-Z][a-z]+(?: [A-Z][a-z]+)?"
)
# A text without one of these has no such line.
_ERROR_WORDS = ("rror", "ERROR", "Exception", "FATAL", "atal", "panic", "FAILED", "Traceback", "xit", "HTTP")
_STATUS = lazy(r"[45]\d\d [A-Z]")


def identifiers(text: str) -> Identifiers:
    """Return the paths, commands, errors, identifiers, numbers and URLs in `text`.

    >>> identifiers("Ran `pytest -q tests/api.py`: 3 failed, KeyError: 'id' in fetch_user")[:4]
    (('tests/api.py',), ('pytest -q tests/api.py',), ("KeyError: 'id' in fetch_user",), ('-q', 'fetch_user'))
    """
    errors = _error_lines(text)
    names: dict[str, list[str]] = {field: [] for field in Identifiers._fields}
    names |= {"commands": commands(text), "errors": errors}
    for token in dict.fromkeys(_TOKEN.findall(text)):
        field, name = _kind(token) if len(token) < _MOST_TOKEN_CHARS else _NO_NAME
        if field and not (field == "errors" and any(name in error for error in errors)):
            names[field].append(name)
    return Identifiers(*(tuple(dict.fromkeys(listed)) for listed in names.values()))


def _error_lines(text: str) -> list[str]:
    if not (any(word in text for word in _ERROR_WORDS) or _STATUS.search(text)):
        return []  # the pattern is tried at each word
    return [match.group().rstrip()[:ERROR_CHARS] for match in _ERROR_LINE.finditer(text)]


@lru_cache(maxsize=_CACHED_TOKENS)
def _kind(raw: str) -> tuple[str, str]:
    """Return the field that a token belongs to, and what it names; of a plain word both are empty."""
    token = raw.rstrip(_TRIM)
    if (len(token) < 2 and not token.isdigit()) or len(token) > TOKEN_CHARS or _is_plain(token):
        return _NO_NAME
    if token.startswith(_URLS):
        return "urls", token
    if (path := _path(token)) is not None:
        return "paths", path
    if _is_error_name(token):
        return "errors", token
    if _NUMBER.fullmatch(token):
        return "numbers", token
    return ("identifiers", token) if _IDENTIFIER.fullmatch(token) else _NO_NAME


def _is_plain(token: str) -> bool:
    letters = token.isascii() and token.isalpha() and (len(token) == 1 or token[1:].islower())
    return letters and not _FILE.fullmatch(token)


def _is_error_name(token: str) -> bool:
    """Return whether a token names an error: "KeyError", "ENOENT", "SIGTERM"."""
    if token.endswith(_ERROR_ENDS):
        return token.replace(".", "").isidentifier()
    is_code = token.isascii() and token.isalnum() and token.isupper() and token[:4].isalpha()
    return is_code and ((token[0] == "E" and len(token) > 3) or (token[:3] == "SIG" and 5 < len(token) < 9))


def commands(text: str) -> list[str]:
    """Return the shell commands in `text`: after a prompt, in backticks, or at the start of a line."""
    prompted = text.splitlines() if any(prompt in text for prompt in _PROMPTS) else []
    lines = (line.strip() for line in prompted if line.lstrip().startswith(_PROMPTS))
    listed = [line.partition(" ")[2].strip()[:COMMAND_CHARS] for line in lines]
    bare = text
    if "`" in text:
        listed.extend(match.group(1) for match in _TICKED.finditer(text) if _has_program(match.group(1)))
        bare = _TICKED.sub(" ", text)
    # Within prose, only an argument that no sentence has marks a command ("make sure", "find out").
    listed.extend(
        match.group(1).rstrip(" .,)")
        for line in bare.split("\n")
        if not PROGRAMS.isdisjoint(line.split())
        for match in _BARE_COMMAND.finditer(line)
        if _has_program(match.group(1)) and any(map(_is_argument, match.group(1).split()[1:]))
    )
    return listed


def _has_program(text: str) -> bool:
    program, _, arguments = text.partition(" ")
    return program in PROGRAMS and bool(arguments)


def _is_argument(word: str) -> bool:
    return word.lstrip("-")[:1].isalnum() if word.startswith("-") else not {*word[:-1]}.isdisjoint("/.=*")


def _path(token: str) -> str | None:
    bare = token
    for _ in range(2):  # a line, and a column
        before, _, number = bare.rpartition(":")
        bare = before if number.isdecimal() else bare
    if "/" not in token and "\\" not in token:
        return bare if _FILE.fullmatch(bare) else None
    if _ROOTED.fullmatch(bare):
        return bare
    if not _INNER.fullmatch(bare) or bare[0].isdigit():
        return None
    last = bare.rstrip("/").rpartition("/")[2]
    is_path = "." in last.strip(".") or bare.count("/") > 1 or bare.endswith("/") or "_" in bare
    return bare if is_path else None
