"""Secrets recognised by their context: under a secret's name, and where a person says one.

Names: a key is split into words (`accessToken`, `ACCESS_TOKEN` and `access-token` are the same two), and its last
words decide: `api_key` holds a secret, `api_key_url` does not, `token` does, `max_token` and `token_count` do not.

Assignments (`password = …`, `"api_key": "…"`, `--token …`, `<secret>…</secret>`): a search finds a word of a secret's
name and reads the whole name around it, the sign after it, and the value as far as it goes: to its closing quote, the
end of a YAML line, the next parameter of a URL. Code that fetches a secret, type hints, templates and prose stay.

Every pattern looks a bounded distance ahead, so the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from aether.redact.rules import Rule, look, matches, replaced, rules
from aether.redact.table import PLACEHOLDER, compiled, pattern, table, words
from aether.redact.values import (
    LEAST_DRAWN,
    dotted,
    has_unit,
    is_cookie,
    is_drawn,
    is_numbered,
    is_password,
    is_template,
)
from aether.text.regex import lazy

_WORDS = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Names whose answer stays in memory.
_CACHED_NAMES = 4096
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
# Longer runs of such characters are data, not names.
_LONGEST_NAME = 64
# What may follow a name that has a value: a quote, a bracket, a sign, a blank.
_AFTER_NAME = frozenset(" \t\r\n\"'`\\]*,=!?:：>")
# `token: str = ` before the value of a parameter.
_HINT = lazy(r"[A-Za-z_][\w.]{0,40}(?:\[[\w., |]{0,60}\])?(?:[ ]\|[ ]\w{1,20}){0,3}[ ]=[ ]")
_QUOTE = lazy(r"""[frbFRB]{0,2}(?P<slashes>\\{0,16})(?P<quote>\"{3}|'{3}|["'`])""")
_ESCAPED_TRIPLE = lazy(r"""[frbFRB]{0,2}((\\{1,16}["'])\2\2)""")
_BLOCK = lazy(
    r"[|>][0-9+-]{0,2}[ \t]*\r?\n(?P<indent>[ \t]+)[^\n]*(?:\n(?:(?P=indent)[^\n]*|[ \t]*(?=\r?\n)))*"
)
_SCHEMA = lazy(r"""\{\s{0,40}["']?(?:type|description|title|\$ref|anyOf|enum)["']?\s{0,4}:""")
# After a secret that a sentence ends with, a person says something else.
_NEXT_SENTENCE = lazy(r"[.!?](?P<blank> +)(?=[^\W\d_a-zß-ÿ])")
# A secret's object longer than this, and the objects after so many that never close, are skipped.
_LONGEST_OBJECT = 1 << 16
_UNCLOSED_OBJECTS = 16
# Code and prose are recognised within this distance; the text behind is not scanned again for each name before it.
_LONGEST_LOOK = 1 << 10
_LOOK_BACK = 80
_LONGEST_ELEMENT = 1 << 12
_CLOSERS = ",;)]}>"
_SCHEMES = ("bearer ", "basic ", "token ", "digest ", "negotiate ", "apikey ")
# Allowed before a name at the start of a line: signs of lists, quotes and diffs, and a word.
_BEFORE_LINE, _FIRST_WORDS = " \t>*#/|+$-", ("", "export", "set", "ENV", "const", "let", "var", "env:")
_COUNTED = ("per", "each", "every", "next", "first", "last", "unexpected")
_KEY_FILES = (".key", ".pem", ".crt", ".cer", ".p12", ".pfx", ".jks", ".json", ".pub", ".asc", ".gpg")
# Parameters of an address that hold a secret if they are drawn at random.
_PARAMETERS = frozenset({"key", "auth", "sid", "ticket"})


@lru_cache(maxsize=_CACHED_NAMES)
def is_secret_name(key: str) -> bool:
    """Return whether a value under `key` is a secret.

    >>> [key for key in ("apiKey", "DB_PASSWORD_2", "max_tokens", "token_count", "token_type") if is_secret_name(key)]
    ['apiKey', 'DB_PASSWORD_2']
    """
    name, parts = key.lower(), _words(key)
    if name.endswith(tuple(table()["foreign"])):
        return True
    if not parts:
        return False
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if before == "existing":  # `existingSecret: name`
        return False
    # The id of a private key is in the key file of a service account of Google.
    if (
        last in words("secret")
        or name.endswith(("key-data", "private_key_id"))
        or name in ("_auth", "auth_header")
    ):
        return True
    if last.endswith(tuple(words("secret ends"))) and last not in words("not secret"):
        return True
    return (
        (last == "token" and before not in words("no token of"))
        or (last == "tokens" and before in words("tokens of"))
        or (last in ("key", "pat") and before in words("key of"))
        or (last == "string" and before in ("connection", "conn", "secret"))
        or (last == "pass" and bool(before))  # `pass` alone counts the tests that passed
    )


@lru_cache(maxsize=_CACHED_NAMES)
def may_be_secret_name(key: str) -> bool:
    """Return whether a value under `key` is a secret if it looks drawn at random: `travis_key`, `REGISTRY_AUTH`.

    >>> [key for key in ("TRAVIS_KEY", "cache_key", "primaryKey", "keyboard") if may_be_secret_name(key)]
    ['TRAVIS_KEY']
    """
    parts = _words(key)
    if not parts or parts[-1] not in words("doubtful"):
        return False
    if len(parts) == 1:
        return parts[0] in ("pass", "pat", "sas", "bearer")
    return words("no doubt of").isdisjoint(parts)


def _words(key: str) -> list[str]:
    """Return the words of a name in small letters, without those that modify it: `API_KEY_PROD`, `password_2`."""
    parts = [word.lower() for word in _WORDS.findall(key)]
    while len(parts) > 1 and (parts[-1] in words("modifiers") or parts[-1].isdigit()):
        parts.pop()
    return parts


class _Place(NamedTuple):
    """The place of a secret's name, and of the value after it: the sign between them, and whether with a space."""

    text: str
    start: int
    end: int
    value: int
    sign: str
    spaced: bool

    @property
    def name(self) -> str:
        return self.text[self.start : self.end]

    @property
    def before(self) -> str:
        return self.text[max(0, self.start - _LOOK_BACK) : self.start]


def without_assigned(text: str) -> str:
    """Return `text` with every value under a secret's name replaced; the names stay.

    >>> without_assigned("login --password hunter2 --retries 3, max_tokens: 512")
    'login --password <REDACTED> --retries 3, max_tokens: 512'
    """
    seen = look(text)
    stem = _stems(seen.signs)
    parts: list[str] = []
    copied, index, unclosed = 0, 0, 0
    while stem and (match := stem.search(seen.folded, index)):
        start, index = _name(text, match)
        name = text[start:index]
        certain = is_secret_name(name)
        doubtful = may_be_secret_name(name) or (
            name.lower() in _PARAMETERS and text[start - 1 : start] in ("?", "&")
        )
        place = _place(text, start, index) if certain or doubtful or name == "--key" else None
        if place is None or _is_part(place):
            continue
        start, end = _extent(place, objects=certain and unclosed < _UNCLOSED_OBJECTS)
        if not certain and not _is_likely(name, text[start:end]):
            continue
        if place.sign == "default" and not is_password(text[start:end]):
            continue
        unclosed += end < start
        if start < end and text[start:end] != PLACEHOLDER:
            parts += [text[copied:start], PLACEHOLDER]
            copied = end
        index = max(index, end)
    return "".join([*parts, text[copied:]])


def _stems(signs: frozenset[str]) -> re.Pattern[str] | None:
    """Return the pattern for the words of names that a text with `signs` may hold, None if it holds none."""
    rare = signs.intersection([*words("rare stems"), *table()["foreign"]])
    return _stem_pattern(rare) if rare or not signs.isdisjoint(words("stems")) else None


@lru_cache(maxsize=64)
def _stem_pattern(rare: frozenset[str]) -> re.Pattern[str]:
    return compiled("|".join([table()["patterns"]["stem"], *sorted(rare)]))


def _is_part(place: _Place) -> bool:
    """Return whether the name is a part of a resource's name, or of a shell's `${NAME:-default}`."""
    text, start = place.text, place.start
    if text[start - 2 : start] == "${" and place.sign == ":":
        default = text[place.end : place.end + _LOOK_BACK].partition("}")[0].lstrip(":-=?+")
        return not is_password(default)
    return place.before.endswith(":") and bool(pattern("resource").search(place.before))


def _is_likely(name: str, value: str) -> bool:
    """Return whether `value` under a doubtful `name` is a secret; `pass=…` and `auth=bob:…` need less."""
    short = name.lower().rpartition("_")[2].endswith(("pass", "pin", "auth", "otp", "pepper", "salt"))
    before, colon, after = value.partition(":")
    if colon and short and _is_identifier(before) and len(after) > 3 and " " not in after:
        return not is_template(after) and not after.startswith("/")
    if name.lower() == "pass":
        return len(value) > 5 and not value[0].isdigit() and any(map(str.isdigit, value)) and " " not in value
    return is_drawn(value, least=6 if short else LEAST_DRAWN)


def _is_identifier(text: str) -> bool:
    return text.isascii() and text.isidentifier() and len(text) <= 61


def without_said(text: str) -> str:
    """Return `text` without the passwords and keys that its prose names.

    >>> without_said("The password for staging is Tr0ub4dor&3, the token is expired.")
    'The password for staging is <REDACTED>, the token is expired.'
    """
    seen = look(text)
    likely = [rule for rule in rules("prose") if not seen.signs.isdisjoint(rule.keywords)]
    matches_ = [match for rule in likely for match in matches(text, seen, rule, _says_secret)]
    return replaced(
        text, ((match.start("secret"), match.start("secret") + len(_said(match))) for match in matches_)
    )


def _said(match: re.Match[str]) -> str:
    return match["secret"].rstrip(".,;:?)]}…")


def _says_secret(rule: Rule, match: re.Match[str]) -> bool:
    """Return whether the noun of a match is a word of its own, and what is said a secret."""
    text, start, value = match.string, match.start(), _said(match)
    before = text[max(0, start - 2) : start]
    escaped = before in ("\\n", "\\t")
    joined = before[-1:] == "-" and before[:1].isalpha()  # WLAN-Passwort
    if before and before[-1] in _NAME_CHARS and not escaped and not joined:
        return False
    is_secret = _is_said(match, value) if "noun" in rule.pattern.groupindex else is_password(value)
    return is_secret and not has_unit(text, match.start("secret") + len(value))


def _is_said(match: re.Match[str], value: str) -> bool:
    noun, says = match["noun"].lower(), match["says"]
    if PLACEHOLDER in value or (not says and match["of"]):
        return False
    if noun.endswith(("key", "token", "schlüssel")):
        return is_drawn(value, least=12)
    if noun == "pin" and match.string[match.end("noun")] == ":" and value.isdigit():
        return len(value) > 3
    if says and value.isdigit():
        return len(value) > 3 and says.lower() != "to"
    numbered = is_numbered(value)
    return (
        is_password(value)
        and (bool(says) or bool(match["quote"]) or not numbered)
        and not (numbered and len(value) < 6)
    )


def _name(text: str, stem: re.Match[str]) -> tuple[int, int]:
    start, end = stem.span()
    least, most = max(0, start - _LONGEST_NAME), min(len(text), end + _LONGEST_NAME)
    while start > least and text[start - 1] in _NAME_CHARS:
        start -= 1
    if start < stem.start() and text[start] in "nrt" and text[start - 1 : start] == "\\":
        start += 1  # an escaped newline, not a letter of the name
    while end < most and text[end] in _NAME_CHARS:
        end += 1
    return start, end


class _Between(NamedTuple):
    """What is between a name and its value: a row of the table."""

    name: str
    after: re.Pattern[str]
    before: re.Pattern[str] | None
    sign: str | None
    spaced: bool


@lru_cache(maxsize=1)
def _between() -> tuple[_Between, ...]:
    return tuple(
        _Between(
            name=row.get("name", ""),
            after=compiled(row["after"]),
            before=compiled(row["before"]) if "before" in row else None,
            sign=row.get("sign"),
            spaced=row.get("spaced", False),
        )
        for row in table()["between"]
    )


def _place(text: str, start: int, end: int) -> _Place | None:
    """Return the start of the name's value, None without a value."""
    if text[start - 1 : start] == "<" and text[end : end + 1] == ">":
        return _Place(text, start, end, end + 1, ">", spaced=False)
    if text[end : end + 1] not in _AFTER_NAME:
        return None
    name, before = text[start:end].lower(), text[max(0, start - _LOOK_BACK) : start]
    for row in _between():
        if not name.startswith(row.name) or not (match := row.after.match(text, end)):
            continue
        if row.before and not row.before.search(before):
            continue
        if row.sign is not None:
            return _Place(text, start, end, match.end(), row.sign, row.spaced)
        spaced = bool(match["space"]) or text[end : end + 1] in (" ", "\t")
        return _Place(text, start, end, match.end(), match["sign"], spaced)
    return None


def _extent(place: _Place, *, objects: bool) -> tuple[int, int]:
    """Return the start and the end of the value: equal if it is not a secret, -1 as the end if it never closes."""
    if place.sign == ":" and (hint := _HINT.match(place.text, place.value)):
        place = place._replace(value=hint.end())
    text, index = place.text, place.value
    if block := _BLOCK.match(text, index):
        return block.end("indent"), block.end()
    if triple := _ESCAPED_TRIPLE.match(text, index):
        end = text.find(triple[1], triple.end())
        return triple.end(), end if end >= 0 else len(text)
    if quote := _QUOTE.match(text, index):
        return _quoted(place, quote)
    if "==" in place.sign or "!" in place.sign or place.sign in ("=>", "", "?:"):
        return index, index  # compared, not given; an arrow function; a type
    if text[index : index + 1] in ("{", "[") and not pattern("template").match(text, index):
        return _object(place, look=objects)
    return _unquoted(place)


def _quoted(place: _Place, quote: re.Match[str]) -> tuple[int, int]:
    text, index = place.text, place.value
    if text[place.end : place.end + 1] == place.sign == ":":
        is_closing = text[quote.end() : quote.end() + 1] in ("", " ", ",", ".", ")", ";", "\n")
        # The quote closes one that was opened before the name: at the `Password:` prompt.
        if text[place.start - 1 : place.start] == quote["quote"] or (is_closing and not place.spaced):
            return index, index
    start, end = _after_scheme(place, quote.end()), _closing(text, quote)
    if quote["quote"] == "`" and place.sign == "=" and not place.spaced and " " in text[start:end]:
        return start, start  # the output of a command
    value = text[start:end]
    return (start, start) if value.lower() in words("nothing yet") or is_template(value) else (start, end)


def _unquoted(place: _Place) -> tuple[int, int]:
    text, index = place.text, place.value
    if not text[place.start : place.end].isascii() and not text[index : index + 1].isascii():
        return index, index  # 密码：请输入 - more words about passwords
    index = _after_scheme(place, index)
    stop_ = end = _end(place, index + _LONGEST_LOOK)
    if end > index + _LONGEST_LOOK - _LOOK_BACK and not _is_no_secret(place, text[index:end], index, ""):
        stop_ = end = _end(place, len(text))
    while (
        end > index
        and (text[end - 1] in _CLOSERS or text[end - 1].isspace())
        and text[index:end] != PLACEHOLDER
    ):
        end -= 1
    is_plain = any(
        _is_no_secret(place, text[index:stop], index, text[stop : stop + 1]) for stop in (stop_, end)
    )
    sentence = _NEXT_SENTENCE.search(text, index, end) if place.spaced else None
    return (index, index) if is_plain else (index, sentence.start("blank") if sentence else end)


def _after_scheme(place: _Place, start: int) -> int:
    """Return the start of the credentials of an Authorization header: after `Bearer `, which stays."""
    ahead = place.text[start : start + 20].lower()
    scheme = next((scheme for scheme in _SCHEMES if ahead.startswith(scheme)), None)
    if scheme is None or not place.name.lower().endswith("authorization"):
        return start
    behind = ahead[len(scheme) : len(scheme) + 3]
    return start + len(scheme) + len(behind) - len(behind.lstrip(" "))


def _closing(text: str, quote: re.Match[str]) -> int:
    """Return the end of the string that `quote` opens: its closing quote, or the end of its line."""
    slashes, mark = re.escape(quote["slashes"]), quote["quote"]
    if len(mark) == 3:
        end = text.find(mark, quote.end())
        return len(text) if end < 0 else end
    within = rf"(?:[^{mark}\\\n]|\\.)*" if not slashes else r"[^\n]*?(?<!\\)"
    closed = re.compile(rf"{within}(?={slashes}{mark})").match(text, quote.end())
    if closed:
        return closed.end()
    # A value of several lines ends where its quote closes a line; else the text was cut.
    several = not slashes and re.compile(
        rf"(?:(?!\n[ \t]*\n)[^{mark}]){{1,2000}}(?={mark}[ \t]*(?:[,;)\]}}]|\n|\Z))"
    ).match(text, quote.end())
    if several:
        return several.end()
    end = text.find("\n", quote.end())
    return len(text) if end < 0 else end


def _object(place: _Place, *, look: bool) -> tuple[int, int]:
    """Return the extent of the list or object that is the value; the JSON schema of a secret is no value."""
    text, index = place.text, place.value
    if not look or _SCHEMA.match(text, index):
        return index, index
    # Strings are passed over; they are escaped as often as the name is.
    escapes = text[place.end : place.end + 16]
    slashes = re.escape(escapes[: len(escapes) - len(escapes.lstrip("\\"))])
    quote = rf'(?<!\\){slashes}"'
    strings = rf"{quote}[\s\S]*?{quote}" if slashes else r'"(?:[^"\\]|\\.)*"'
    depth = 0
    for match in re.compile(rf"{strings}|[\[\]{{}}]").finditer(text, index, index + _LONGEST_OBJECT):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if not depth:
            return index, match.end()
    return index, -1


def _end(place: _Place, most: int) -> int:
    """Return the end of an unquoted value, at most `most`."""
    text, before = place.text, place.before
    if place.sign == ">":
        end = text.find("<", place.value, place.value + _LONGEST_ELEMENT)
        return end if text.startswith("</", max(end, 0)) else place.value
    if place.name.lower().endswith(("authorization", "cookie")):
        rule = "end of line"
    elif before[-1:] in ("?", "&", ";"):
        rule = "end of field" if before[-1] == ";" else "end of parameter"
    elif place.sign == "--" or (place.sign == "=" and not place.spaced):
        rule = "end of word"
    else:
        line = before.rpartition("\n")[2].rpartition("\\n")[2]
        first = line.strip(_BEFORE_LINE) in _FIRST_WORDS
        rule = "end of scalar" if first else "end within line"
    match = pattern(rule).search(text, place.value, most)
    return match.start() if match else min(most, len(text))


def _is_no_secret(place: _Place, value: str, start: int, after: str) -> bool:
    """Return whether an unquoted value is code, a type, a template, or a word about secrets."""
    name = place.name.lstrip("-")
    if not value or value.lower() in words("nothing yet") or is_template(value):
        return True
    if pattern("angles").match(place.text, start) or pattern("type").fullmatch(value):
        return True
    if place.sign == "--":
        return (
            value.startswith("-")
            or value.lower() in words("prose")
            or value == name.upper().replace("-", "_")
        )
    if name.lower() in ("pwd", "oldpwd") and (
        value[0] in "~./" or value[1:3] == ":\\" or value.startswith("\\\\")
    ):
        return True
    if name.lower().endswith("key") and "/" in value and value.endswith(_KEY_FILES) and _is_path(value):
        return True
    return _is_code(name, value, place.text, start, after) or _is_prose(place, value)


def _is_path(value: str) -> bool:
    return all(sign.isalnum() or sign in "_./~$-" for sign in value)


def _is_code(name: str, value: str, text: str, start: int, after: str) -> bool:
    if pattern("code").match(text, start):
        return True
    if parts := dotted(value):
        return (
            name.lower() == "pw" or parts[0] in words("roots") or any(map(is_secret_name, value.split(".")))
        )
    if not _is_identifier(value):
        return False
    # `connect(password=password)` passes one on; `PASSWORD=password` is a weak one.
    same = value.lower() == name.lower().rpartition(".")[2]
    if same and "." in name:
        return True
    return (same and value[0].isupper() and name != value) or (
        after in (",", ")", "}") and (same or is_secret_name(value))
    )


def _is_prose(place: _Place, value: str) -> bool:
    word = place.before.split()[-1] if place.before[-1:] in (" ", "\t") and place.before.strip() else ""
    if word.lower().strip("\"'`([*-_:;,.") in _COUNTED:
        return True
    first, _, remainder = value.partition(" ")
    if remainder and first.lower() in words("prose in German"):
        return True
    if remainder and place.name.lower() == "cookie" and "=" not in value:
        return True
    if place.name.lower().endswith("cookie") and place.sign == ":" and "=" in value:
        return not is_cookie(value)
    is_word = word.replace("'", "a").isalpha() and word.isascii() and word.islower()
    return place.sign == ":" and bool(remainder) and first.lower() in words("prose") and is_word
