"""Secrets recognised by their form or their place: the rules of `data/secrets.json`, applied in one loop.

A token is searched in the words of a text that may be drawn at random: they are few, and a long text repeats them. Any
other rule is tried where one of its keywords is. Each pattern looks a bounded distance ahead, so the time is linear
in the length of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from aether.redact import values
from aether.redact.table import PLACEHOLDER, compiled, pattern, table, words
from aether.text.regex import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
# Characters of a token, and of the name of a program or of a secret, to themselves, all others to blanks.
_OF_TOKENS, _OF_NAMES = (
    bytes(byte if byte > 127 or chr(byte) in letters else 32 for byte in range(256))
    for letters in (_LETTERS + "_./+=:%$!~@-", _LETTERS + "_.@-")
)
# A token is as long, and mixed: with a digit, or a capital after a small letter.
_LEAST_TOKEN = 14
_MIXED = lazy(r"[0-9]|[a-z][A-Z]")
# Two characters with which a token may start: there is no letter or digit before it.
_STARTS = lazy(r"(?<![A-Za-z0-9])(?=(..))")
_ESCAPE = lazy(r"\\(?:u00[0-9A-Fa-f]{2}|[nrt])|%[0-9A-Fa-f]{2}")
_SMALL = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_PART = lazy(r"\{(\w+):(\d+)(?:(\+)|-(\d+))?\}")
# After a literal this long a token is recognised although its end was cut off.
_DISTINCTIVE, _LEAST_OF_CUT = 5, 16
_LONGEST_SECRET = 1 << 13
# The end of a line, and a line that is nothing else; a shorter literal starts many words.
_DIVIDED = lazy(
    r"([A-Za-z0-9_.=+/-]{6,512}+)\\?(?:\r?\n|\\{1,4}n)[ \t>|]{0,16}([A-Za-z0-9_.=+/-]{6,512}+)(?=[\"'`,;)\]}]{0,4}\s|\\|[\"'`]?\Z)"
)
_LEAST_DIVIDED = 3
# Without it no Kubernetes Secret is in a text; a pattern of its lines takes ten times as long.
_SECRET_KIND = lazy(r"kind\"?\s*+:\s*+[\"']?Secret")
_AFTER_PROGRAM = frozenset(" \t\n\r\"',")
_CHECKS: dict[str, Callable[[str], bool]] = {
    "token": values.is_token, "login": values.is_login, "docker": values.is_docker_auth,
    "web token": lambda value: values.is_random(value[3:]),
    "no template": lambda value: not values.is_template(value), "cookie": values.is_cookie,
    "base58": values.is_base58, "bech32": values.is_bech32, "nkey": values.is_nkey,
    "digit": lambda value: not value.replace(".", "").isalpha(),
}  # fmt: skip


class Look(NamedTuple):
    """How a text is searched: in small letters, without escapes, its words, those that may hold a token, and its keywords."""

    folded: str
    shadow: str
    words: frozenset[str]
    tokens: str
    signs: frozenset[str]


class Rule(NamedTuple):
    """A row of the table: where its pattern is tried (everywhere if `at` is empty), and what its secret must pass."""

    keywords: tuple[str, ...]
    at: tuple[str, ...]
    following: str
    sign: re.Pattern[str] | None
    pattern: re.Pattern[str]
    any_case: bool
    secret: str | int
    check: Callable[[str], bool] | None


@lru_cache(maxsize=4)
def rules(name: str) -> tuple[Rule, ...]:
    """Return the rules of the table under `name`: "rules" of any text, or "prose" for what a person says."""
    return tuple(map(_rule, table()[name]))


def _rule(row: dict[str, Any]) -> Rule:
    expression = row["regex"]
    return Rule(
        keywords=tuple(map(str.lower, row["keywords"])),
        at=() if row.get("anywhere") else tuple(row["keywords"]),
        following=row.get("following", ""),
        sign=compiled(row["sign"]) if "sign" in row else None,
        pattern=compiled(expression),
        any_case=expression.startswith("(?i)"),
        secret="secret" if "(?P<secret>" in expression or "{value}" in expression else 0,
        check=_CHECKS[row["check"]] if "check" in row else None,
    )


@lru_cache(maxsize=1)
def _keywords() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keywords of all rules and names: those that are searched in words, and those with other characters."""
    keywords = {*words("stems"), *words("rare stems"), *table()["foreign"]}
    keywords |= {keyword for name in ("rules", "prose") for rule in rules(name) for keyword in rule.keywords}
    other = {keyword for keyword in keywords if b" " in keyword.encode().translate(_OF_NAMES)}
    return tuple(keywords - other), tuple(other)


@lru_cache(maxsize=1)
def look(text: str) -> Look:
    """Return how `text` is searched: each step of a redaction looks at the same one."""
    shadow, folded = without_escapes(text), lowered(text)
    parts = _parts(shadow)
    # An escape ends a word, and so may cut one that is searched for in the text itself: `C:\\token`.
    joined = b" ".join(parts if shadow == text else parts | _parts(text)).translate(_OF_NAMES)
    names = joined.decode("utf-8", "surrogatepass").lower()
    long = [part.decode("utf-8", "surrogatepass") for part in parts if len(part) >= _LEAST_TOKEN]
    in_words, other = _keywords()
    return Look(
        folded,
        shadow,
        frozenset(names.split()),
        " ".join(part for part in long if _MIXED.search(part)),
        frozenset([*filter(names.__contains__, in_words), *filter(folded.__contains__, other)]),
    )


def _parts(text: str) -> set[bytes]:
    return set(text.encode("utf-8", "surrogatepass").translate(_OF_TOKENS).split())


def lowered(text: str) -> str:
    """Return `text` in small letters, each at the place of its capital."""
    # A search that ignores case takes six times as long.
    small = text.lower()
    if len(small) == len(text):
        return small
    return text.translate(_SMALL)  # some capitals are small as two


def without_escapes(text: str) -> str:
    """Return `text` with blanks for each escape: an escaped newline or `%3D` ends a word, too."""
    if "\\" not in text and "%" not in text:
        return text
    return _ESCAPE.sub(lambda escape: " " * len(escape[0]), text)


def replaced(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return `text` with each of `spans` replaced, overlapping ones as one."""
    parts, index, last = [], 0, -1
    for start, end in sorted(spans):
        if start >= index and start > last:
            parts += [text[index:start], PLACEHOLDER]
        index, last = max(index, end), start
    return "".join([*parts, text[index:]])


def without_ruled(text: str) -> str:
    """Return `text` without tokens, and without the secrets that the rules and the commands of the table find.

    >>> without_ruled("mysqldump -uroot -phunter2 shop; create user bob identified by 'hunter2'")
    "mysqldump -uroot -p<REDACTED> shop; create user bob identified by '<REDACTED>'"
    """
    seen = look(text)
    spans = [*_tokens(text, seen), *_arguments(text, seen)]
    for rule in rules("rules"):
        if not seen.signs.isdisjoint(rule.keywords):
            spans += (match.span(rule.secret) for match in matches(text, seen, rule))
    if "Secret" in text and _SECRET_KIND.search(text):
        spans += _kubernetes(text)
    return replaced(text, spans)


def _passes(rule: Rule, match: re.Match[str]) -> bool:
    secret = match[rule.secret]
    return bool(secret) and (rule.check is None or rule.check(secret))


def matches(
    text: str, seen: Look, rule: Rule, accepts: Callable[[Rule, re.Match[str]], bool] = _passes
) -> Iterator[re.Match[str]]:
    """Yield the matches of `rule`, a keyword of which is there, in `text` that it accepts, by its check if not by `accepts`.

    The search goes on behind a match that is accepted, and within one that is not.
    """
    if rule.sign and not rule.sign.search(text):
        return
    if not rule.at:
        yield from (match for match in rule.pattern.finditer(text) if accepts(rule, match))
        return
    searched = seen.folded if rule.any_case else text
    for keyword, sign in zip(rule.at, rule.keywords, strict=True):
        index = searched.find(keyword) if sign in seen.signs else -1
        while index >= 0:
            match = rule.pattern.match(text, index) if _follows(rule, text, index + len(keyword)) else None
            if match and accepts(rule, match):
                yield match
                index = match.end() - 1
            index = searched.find(keyword, index + 1)


def _follows(rule: Rule, text: str, position: int) -> bool:
    """Return whether a sign follows a keyword that the pattern of the rule may go on with; a blank is any blank."""
    sign = text[position : position + 1]
    return not rule.following or sign in rule.following or (sign.isspace() and " " in rule.following)


def _tokens(text: str, seen: Look) -> Iterator[tuple[int, int]]:
    """Yield the places of the tokens of providers; a form is searched in the text if one of its words has it."""
    starts = {"", *_STARTS.findall(seen.tokens)} if seen.tokens else set()
    for start in starts.intersection(_forms() if starts else ()):
        for literal, nth in _forms()[start]:
            if literal not in seen.tokens:
                continue
            if any(_of_form(nth, seen.tokens)):
                yield from _of_form(nth, seen.shadow)
            if len(literal) >= _LEAST_DIVIDED:
                yield from _divided(text, literal, nth)


def _divided(text: str, literal: str, nth: int) -> Iterator[tuple[int, int]]:
    """Yield the places of the tokens that a line break divides; nothing else is on the second line."""
    index = text.find(literal)
    while index >= 0:
        parts = _DIVIDED.match(text, index)
        if parts and not text[max(0, index - 1) : index].isalnum() and values.is_drawn(parts[2], least=6):
            match = _form_pattern(nth).match(parts[1] + parts[2])
            if match and match.end() > len(parts[1]):
                yield index, parts.end(2)
        index = text.find(literal, index + len(literal))


def _of_form(nth: int, text: str) -> Iterator[tuple[int, int]]:
    row = table()["forms"][nth]
    start, check = row["form"].index("{"), _CHECKS[row["check"]] if "check" in row else None
    for match in _form_pattern(nth).finditer(text):
        if values.is_random(match[0][start:]) and (check is None or check(match[0])):
            yield match.span()


@lru_cache(maxsize=1)
def _forms() -> dict[str, list[tuple[str, int]]]:
    """Return the longest literal and the number of each form of the table, by two characters that all its tokens start with."""
    forms: dict[str, list[tuple[str, int]]] = {}
    for nth, row in enumerate(table()["forms"]):
        start = row["form"].partition("{")[0]
        literal = start if len(start) > 1 else max(re.split(r"\{.*?\}", row["form"]), key=len)
        forms.setdefault(start[:2] if len(start) > 1 else "", []).append((literal, nth))
    return forms


@lru_cache(maxsize=512)
def _form_pattern(nth: int) -> re.Pattern[str]:
    """Return the pattern of a form, of which the table says the notation."""
    row = table()["forms"][nth]
    form, not_after = row["form"], row.get("not_after", "")
    expression, index = "", 0
    for part in _PART.finditer(form):
        expression += re.escape(form[index : part.start()])
        if not index:
            # No token starts within a word. Behind its literal this is asked seldom.
            expression += rf"(?<![A-Za-z0-9_{not_after}]{expression})"
        least, most = part[2], part[4] or ("" if part[3] else part[2])
        last, index = part.end() == len(form), part.end()
        if last and form.index("{") >= _DISTINCTIVE:
            least, most = str(min(int(least), _LEAST_OF_CUT)), ""
        end = "+" if not most else "(?![A-Za-z0-9])" if last else ""
        expression += f"[{table()['alphabets'][part[1]]}]{{{least},{most}}}{end}"
    return re.compile(expression + re.escape(form[index:]))


@lru_cache(maxsize=1)
def _programs() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the commands of the table under the first word of each."""
    programs: dict[str, list[dict[str, Any]]] = {}
    for row in table()["commands"]:
        programs.setdefault(row["program"].partition(" ")[0], []).append(row)
    return programs


@lru_cache(maxsize=256)
def _argument(name: str, nth: int) -> re.Pattern[str]:
    """Return the pattern of the secret in the arguments of a program, behind the first word of its name."""
    row = _programs()[name][nth]
    before = "".join(rf"{{gap}}{re.escape(word)}" for word in row["program"].split()[1:])
    value = "{value}"
    if "form" in row:  # as in `user:value`
        sign = row["form"].strip("abcdefghijklmnopqrstuvwxyz")
        value = rf"[\"']?[^\s\"':%,/=$<]{{0,100}}{sign}(?P<secret>{{bare}})"
    skipped = r"[^\s\"'-][^\s\"']{0,200}{gap}"
    if "flags" not in row:
        return compiled(
            rf"{before}(?:{{gap}}-[\w-]{{1,40}}){{0,4}}{{gap}}(?:{skipped}){{{row.get('skip', 0)}}}(?!-){value}"
        )
    flags = "|".join(
        re.escape(flag).replace("\\ ", "{gap}") + ("" if flag.endswith(":") else r"[\s\"',=]{1,8}")
        for flag in row["flags"]
    )
    flag = rf"(?=[\s\"',])(?P<before>(?>[^\n|;&]|(?<=\\)\n){{0,300}}?)(?<=[\s\"'])(?:{flags})"
    return compiled(rf"{before}{flag}(?:{skipped}){{{row.get('skip', 0)}}}(?!-){value}")


def _arguments(text: str, seen: Look) -> Iterator[tuple[int, int]]:
    """Yield the places of the secrets among the arguments of the programs of the table."""
    for program in seen.words.intersection(_programs()):
        starts = [*_calls(seen.shadow, program)]
        for nth, row in enumerate(_programs()[program]):
            reached = 0  # how far the arguments of a call on the same line were read
            for start in starts:
                match = _argument(program, nth).match(text, start) if start >= reached else None
                while match:
                    accepts = _CHECKS[row["check"]] if "check" in row else values.is_argument
                    if accepts(match["secret"]) and not values.is_template(match["secret"]):
                        yield match.span("secret")
                    if "flags" not in row:
                        break
                    # Another flag may follow, behind the value and its quote.
                    reached = match.end("secret") + len(match.groupdict().get("open") or "")
                    match = _argument(program, nth).match(text, reached)


def _calls(shadow: str, program: str) -> Iterator[int]:
    """Yield where the arguments of `program` start, where it is named as a whole word."""
    index = shadow.find(program)
    while index >= 0:
        end = index + len(program)
        before = shadow[index - 1 : index]
        if shadow[end : end + 1] in _AFTER_PROGRAM and not (
            before.isalnum() or before in ("_", ".", "@", "-")
        ):
            yield end
        index = shadow.find(program, end)


def _kubernetes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the values in the data of each Kubernetes Secret, in YAML and in JSON."""
    for start, end in _around_secrets(text):
        for block in pattern("json data").finditer(text, start, end):
            yield from (value.span(1) for value in pattern("json value").finditer(text, *block.span(1)))
        indent, index = -1, start
        for line in text[start:end].splitlines(keepends=True):
            content = line.strip()
            column = len(line) - len(line.lstrip())
            if content and column <= indent:
                indent = -1
            if content in ("data:", "stringData:"):
                indent = column
            elif content and indent >= 0:
                key, colon, value = content.partition(": ")
                value = content if " " in key or not colon else value.strip()
                if (
                    not content.endswith(":")
                    and value[:1] not in "|>"
                    and values.is_argument(value.strip("\"'"))
                ):
                    yield index + line.rindex(value), index + line.rindex(value) + len(value)
            index += len(line)


def _around_secrets(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of the text around each `kind: Secret`, at most a document of YAML; none twice."""
    around: list[tuple[int, int]] = []
    for kind in pattern("kind of secret").finditer(text):
        start, end = max(0, kind.start() - _LONGEST_SECRET), min(len(text), kind.end() + _LONGEST_SECRET)
        start = max(start, text.rfind("\n---", start, kind.start()))
        last = text.find("\n---", kind.end(), end)
        end = end if last < 0 else last
        if around and start < around[-1][1]:
            around[-1] = around[-1][0], max(end, around[-1][1])
        else:
            around.append((start, end))
    return around
