"""Forms of secrets: tokens that are recognised by their own form, anywhere in a text.

The tokens of providers are the rows of `data/secrets.json`; beside them JSON Web Tokens, private keys (whole, escaped,
cut at either end), hashes of passwords, passwords in URLs, signatures of signed URLs, webhooks, and credentials after
`Bearer` and `Basic`. One pattern finds the prefixes of all rows, and a row is compiled when a text
first has its prefix. Every pattern takes time that grows with the length of the text alone: repeated parts are bounded, or
cannot start twice in one run.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from aether.project import shipped
from aether.text.regex import any_of, lazy
from aether.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

PLACEHOLDER = "<REDACTED>"


class _Form(NamedTuple):
    """A row: the literal that it starts with or holds, the widths of the text before that, and the pattern."""

    literal: str
    widths: tuple[int, ...]
    pattern: re.Pattern[str]


class _Table(NamedTuple):
    """One pattern for the first characters of all forms, the forms of each, and those around a literal."""

    prefix: re.Pattern[str]
    starts: dict[str, list[_Form]]
    holds: list[_Form]


_PART = lazy(r"\{(\w+):(\d+)(?:(\+)|-(\d+))?\}")
# After a literal this long a token is recognised although its end was cut off.
_DISTINCTIVE, _LEAST_OF_CUT = 5, 16
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_URL_ESCAPE, _JSON_ESCAPE = lazy(r"%[0-9A-Fa-f]{2}"), lazy(r"\\u00[0-9A-Fa-f]{2}")
# A token has a run of so many characters: no pattern is compiled for a short text without one.
_LEAST_RUN, _SHORT_TEXT = 14, 1_000
# What no table is read for: a text without a long run that has a digit, or a capital after a small letter.
_RUN, _MIXED = lazy(r"[A-Za-z0-9_./+=:%$!~-][A-Za-z0-9_./+=:%$!~-]{13,}+"), lazy(r"[0-9]|[a-z][A-Z]")
_ID_PART = lazy(r"(?<![^/\s])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![^/.\s])")
# A token starts after no word, and is as long.
_BEFORE_FORM = rf"(?<![A-Za-z0-9_])(?=[A-Za-z0-9_./+=:%$!~-]{{{_LEAST_RUN}}})"
_FORM_START = lazy(_BEFORE_FORM)
# The middle of one: a search for a literal first is ten times as fast.
_IN_ID = lazy(r"-[0-9a-f]{4}-[0-9a-f]{4}-")
_SEGMENT = lazy(r"[A-Za-z0-9]+")
_REPEATED = lazy(r"([AxX0*.])\1{7}")
# The secret beside the id of an AWS key, in the next column.
_AWS_SECRET = lazy(r"""[\s,:;"'|]{1,10}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])""")
_AWS_IDS = ("AKIA", "ASIA", "AROA", "ABIA", "ACCA")
_AZURE = 86
_BASE64 = frozenset(_LETTERS + "+/")
# Each run ends at a dot or starts after another character: no character is scanned twice.
_JWT = r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){0,3}"
# Crypt's and Apache's hashes of passwords: `$2y$…`, `$apr1$…`, `$argon2id$…`, `{SSHA}…`.
_HASHES = lazy(
    r"\$(?:apr1|[156y]|2[abxy]?|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]{0,10})\$[A-Za-z0-9./+=,$-]{16,512}"
    r"|\{S{0,2}(?:SHA|MD5)(?:256|512)?\}[A-Za-z0-9+/]{16,200}={0,2}"
)
_HASHED = "$apr1$ $1$ $5$ $6$ $y$ $2 $argon2 $scrypt$ $pbkdf2 SHA} SHA256} SHA512} MD5}".split()
_HOOKS = lazy(
    r"(hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/"
    r"|webhook\.office\.com/webhookb2/|outlook\.office\.com/webhook/|hooks\.zapier\.com/hooks/catch/|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/"
    r"|chat\.googleapis\.com/v1/spaces/[A-Za-z0-9_-]{4,40}/messages\?key=|maker\.ifttt\.com/trigger/\w{1,60}/(?:json/)?with/key/"
    r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=|api\.telegram\.org/(?:file/)?bot|hc-ping\.com/|"
    r"[a-z0-9-]{1,40}\.logic\.azure\.com[^\s\"'<>]{1,200}?[?&]sig=|ingest\.sentry\.io/api/hooks/)[A-Za-z0-9_/@:%.&=-]+"
)
_HOOK_HOSTS = (
    "slack discord office zapier feishu lark googleapis ifttt weixin telegram hc-ping logic.azure".split()
)
_USERINFO = lazy(
    r"""(://[^\s/:@"'<>`\\]{0,256}):(?![0-9]{1,5}[?#])(?!password@|\$\{?[A-Za-z_(]|\{\{?[\w ]|%\(|\[|\*+@|<)([^\s/"'<>`\\]{1,512})@"""
)
_LONG_USER = lazy(r"://[A-Za-z0-9_-]{20,256}@")
# Addresses of databases without a scheme: `user:x@tcp(db:3306)/app`, `user:x@db.example.org:5432/app`.
_LONGEST_USERINFO = 200
_HOST = lazy(r"@(?:(?:tcp|unix)\(|[\w.-]{1,100}:[0-9]{2,5}\b)")
_BARE_USERINFO = lazy(r"""(?<![\w.:/@%+-])[A-Za-z_][\w.-]{0,63}:(?![$<{%*\[])([^\s:@/"'<>`\\]{1,128})\Z""")
_SIGNATURES = lazy(
    r"""([?&](?i:sig|signature|x-(?:amz|goog)-(?:signature|credential|security-token))=)[^&\s"'<>#]+"""
)
# Matched where the word is, which a search for the word finds ten times as fast as a pattern.
_BEARER = lazy(r"(?i)\bbearer\s{1,4}([A-Za-z0-9._~+/-]{6,}={0,2})")
_BASIC = lazy(r"(?i)\bbasic\s{1,4}([A-Za-z0-9+/_-]{6,}={0,2})")

_MARK = r"-----%s (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_BEGIN, _END = lazy(_MARK % "BEGIN"), lazy(_MARK % "END")
# Between the lines of a key: newlines, escaped newlines (once or twice), quotes and joints of program text.
_BETWEEN = r"""(?:\\{1,4}[rn]|[\s"'+,>|#*]){1,40}"""
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{1,80}"
_CUT_TAIL = lazy(rf"(?:{_BETWEEN}(?:[A-Za-z0-9+/=]{{16,}}|{_HEADER}))+(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,15}})?")
# Read from its end to its start, so the joints are spelt backwards.
_BETWEEN_PARTS = r"""(?:[rn]\\{1,4}|[\s"'+,>|#*]){1,40}"""
_CUT_HEAD = lazy(rf"(?:{_BETWEEN_PARTS}[A-Za-z0-9+/=]{{1,15}})?(?:{_BETWEEN_PARTS}[A-Za-z0-9+/=]{{16,}})+")
# The longest private keys in use (RSA 16384, armoured) are under 16 KB.
_LONGEST_KEY = 1 << 14
# The first line of a key's body, by which it is recognised when both marks were cut off: DER of RSA, PKCS 8, EC; OpenSSH.
_BODY = lazy(
    r"(?<![A-Za-z0-9+/=])(?:MII[A-Za-z0-9+/]{3}IBAA|MI[GH][A-Za-z0-9+/]AgEA|MC4CAQAwBQYDK2Vw|MHcCAQEE|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{16,}={0,2}"
    rf"(?:{_BETWEEN}[A-Za-z0-9+/=]{{16,}}+)*(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,15}}(?![A-Za-z0-9+/=]))?"
)
_BODIES = ("MII", "MIG", "MIH", "MC4CAQ", "MHcCAQ", "b3BlbnNzaC1rZXkt")


def without_shapes(text: str) -> str:
    """Return `text` with every secret that is recognised by its form replaced."""
    # A search for a word takes a hundredth of the time of a pattern, and an unused pattern is never compiled.
    text = _without_private_keys(text) if "PRIVATE KEY" in text else text
    text = _without_tokens(text)
    seen = look(text)
    schemes = [
        found.span(1) for found in after_words(text, seen, ("bearer",), _BEARER) if _is_token(found[1])
    ]
    schemes += [
        found.span(1) for found in after_words(text, seen, ("basic",), _BASIC) if _holds_colon(found[1])
    ]
    text = replaced(text, schemes)
    if ("$" in text or "}" in text) and any(map(text.__contains__, _HASHED)):
        text = _HASHES.sub(PLACEHOLDER, text)
    if "://" in text:
        if any(host in text for host in _HOOK_HOSTS):
            text = _HOOKS.sub(rf"\1{PLACEHOLDER}", text)
        if "@" in text:
            text = _USERINFO.sub(rf"\1:{PLACEHOLDER}@", text)
            text = _LONG_USER.sub(f"://{PLACEHOLDER}@", text)
        if any(sign in seen.folded for sign in ("sig=", "signature=", "credential=", "security-token=")):
            text = _SIGNATURES.sub(rf"\1{PLACEHOLDER}", text)
    return replaced(text, _before_hosts(text)) if "@" in text else text


def _before_hosts(text: str) -> list[tuple[int, int]]:
    spans = []
    for host in _HOST.finditer(text):
        start = max(0, host.start() - _LONGEST_USERINFO)
        if user := _BARE_USERINFO.search(text, start, host.start()):
            spans.append(user.span(1))
    return spans


@lru_cache(maxsize=1)
def forms() -> dict[str, Any]:
    """Return the content of `data/secrets.json`: the alphabets, and the rows of forms and commands."""
    return _shipped("secrets")


def _shipped(name: str) -> dict[str, Any]:
    # Not by `paths`, which imports pathlib: the event of a tool does without.
    with open(shipped(f"data/{name}.json"), "rb") as file:
        found: dict[str, Any] = json.loads(file.read())
    return found


@lru_cache(maxsize=1)
def _table() -> _Table:
    """Return the forms, each under the part of it by which it is found fastest."""
    found = forms()
    by_literal: dict[str, list[_Form]] = {"eyJ": [_Form("eyJ", (), lazy(_JWT))]}
    by_literal |= {start: [_Form("", (), _BODY)] for start in _BODIES}
    holds: list[_Form] = []
    other: list[str] = []
    for row in found["forms"]:
        form = row["form"]
        literal = form.partition("{")[0]
        pattern = _pattern(form, found["alphabets"])
        if len(literal) > 1:
            by_literal.setdefault(literal, []).append(_Form(literal, (), lazy(pattern)))
            continue
        held, widths = _held(form)
        if held:
            holds.append(_Form(held, widths, lazy(rf"(?<![A-Za-z0-9_]){pattern}")))
        else:
            other.append(pattern)
    starts: dict[str, list[_Form]] = {}
    for literal in sorted(by_literal, key=len):
        fronts = (literal[:end] for end in range(1, len(literal)))
        least = next(filter(starts.__contains__, fronts), literal)
        starts[least] = [*by_literal[literal], *starts.get(least, [])]
    prefix = rf"{_BEFORE_FORM}(?:({any_of(starts)})|({'|'.join(other)}))"
    return _Table(re.compile(prefix), starts, holds)


@lru_cache(maxsize=1)
def _marks() -> tuple[tuple[str, ...], tuple[str, ...], re.Pattern[str]]:
    """Return what a text needs for the table to matter: a start of a form, a part of one, or a match of the pattern.

    They follow from the table, as a test shows; to read it would cost nearly every event of a hook a millisecond.
    """
    found = _shipped("secret_marks")
    return tuple(found["starts"]), tuple(found["holds"]), lazy(found["other"])


def _has_form(text: str, shadow: str) -> bool:
    """Return whether the table has to be read for a short text; that takes longer than all else about it."""
    starts, holds, other = _marks()
    return (
        any(_starts_form(shadow, start) for start in starts if start in shadow)
        or any(map(text.__contains__, holds))
        or other.search(shadow) is not None
    )


def _starts_form(text: str, start: str) -> bool:
    at = text.find(start)
    while at >= 0 and not _FORM_START.match(text, at):
        at = text.find(start, at + 1)
    return at >= 0


def _held(form: str) -> tuple[str, tuple[int, ...]]:
    """Return the longest literal within a form, and the widths that the text before it may have."""
    best, least, most, at = "", 0, 0, 0
    widths: tuple[int, ...] = ()
    for part in _PART.finditer(form):
        literal = form[at : part.start()]
        if len(literal) > max(1, len(best)):
            best, widths = literal, tuple(range(least, most + 1))
        least += len(literal) + int(part[2])
        most += len(literal) + int(part[4] or part[2])
        at = part.end()
    if len(form) - at > max(1, len(best)):
        best, widths = form[at:], tuple(range(least, most + 1))
    return best, widths


def _pattern(form: str, alphabets: dict[str, str]) -> str:
    """Return the regular expression of a form in the notation of `data/secrets.json`."""
    made, at, literal = "", 0, 0
    for part in _PART.finditer(form):
        made += re.escape(form[at : part.start()])
        literal = max(literal, part.start() if not at else 0)
        least, most = part[2], part[4] or ("" if part[3] else part[2])
        last, at = part.end() == len(form), part.end()
        if last and literal >= _DISTINCTIVE:
            least, most = str(min(int(least), _LEAST_OF_CUT)), ""
        end = "+" if not most else "(?![A-Za-z0-9])" if last else ""
        made += f"[{alphabets[part[1]]}]{{{least},{most}}}{end}"
    return made + re.escape(form[at:])


def _without_tokens(text: str) -> str:
    """Return `text` without the tokens of providers and without JSON Web Tokens."""
    if len(text) < _SHORT_TEXT and max(map(len, text.split()), default=0) < _LEAST_RUN:
        return text  # no pattern is compiled for it
    # Each event of a hook names its session; no form has an id as a whole part of a path.
    plain = _ID_PART.sub("", text) if _IN_ID.search(text) else text
    if not any(_MIXED.search(plain, *run.span()) for run in _RUN.finditer(plain)):
        return text
    shadow = without_escapes(text)
    if len(text) < _SHORT_TEXT and not _has_form(text, shadow):
        return replaced(text, [*_azure(text)])
    table = _table()
    spans = list(_starting(text, shadow, table))
    for form in table.holds:
        if form.literal in text:
            spans += _holding(shadow, form)
    return replaced(text, [*spans, *_azure(text)])


def without_escapes(text: str) -> str:
    """Return `text` with a blank for each letter of an escape: an escaped newline or `%3D` ends a word, too."""
    if "\\" in text:
        text = text.replace("\\n", "\\ ").replace("\\t", "\\ ").replace("\\r", "\\ ")
    if "\\u00" in text:
        text = _JSON_ESCAPE.sub("      ", text)
    return _URL_ESCAPE.sub("   ", text) if "%" in text else text


def _starting(text: str, shadow: str, table: _Table) -> Iterator[tuple[int, int]]:
    reached = 0
    words: dict[_Form, int] = {}  # the end of the last run of words in the form of a token
    for found in table.prefix.finditer(shadow):
        at = found.start()
        if at < reached:
            continue
        if found[1] is None:
            if _is_random(found[2]):
                reached = found.end(2)
                yield at, reached
            continue
        for form in table.starts[found[1]]:
            if at < words.get(form, 0) or not text.startswith(form.literal, at):
                continue
            if token := form.pattern.match(text, at):
                if not _is_random(token[0][len(form.literal) :]):
                    words[form] = token.end()
                    continue
                reached = token.end()
                if form.literal in _AWS_IDS and (secret := _AWS_SECRET.match(text, reached)):
                    reached = secret.end()
                yield at, reached
                break


def _holding(text: str, form: _Form) -> Iterator[tuple[int, int]]:
    at = text.find(form.literal)
    while at >= 0:
        for width in form.widths:
            if width <= at and (found := form.pattern.match(text, at - width)):
                yield found.span()
                break
        at = text.find(form.literal, at + 1)


def _azure(text: str) -> Iterator[tuple[int, int]]:
    """Yield the keys of Azure's storage, 86 characters and `==`; after `sha512-` it is a hash."""
    at = text.find("==", _AZURE)
    while at >= 0:
        start = at - _AZURE
        before = text[start - 1 : start]
        if before != "-" and before not in _BASE64 and _BASE64.issuperset(text[start:at]):
            yield start, at + 2
        at = text.find("==", at + 1)


def _is_random(body: str) -> bool:
    """Return whether `body` is drawn at random: `your-key-here` and `XXXXXXXXXXXX` are not."""
    if _REPEATED.search(body) or body.endswith("EXAMPLE"):
        return False
    for part in _SEGMENT.findall(body):
        if part.isalpha() and (part.islower() or part[1:].islower() or (part.isupper() and len(part) < 16)):
            continue
        return True
    return False


def replaced(text: str, spans: list[tuple[int, int]]) -> str:
    """Return `text` with each of `spans` replaced, overlapping ones as one."""
    if not spans:
        return text
    parts, at, last = [], 0, -1
    for start, end in sorted(spans):
        if start >= at and start > last:
            parts += [text[at:start], PLACEHOLDER]
        at, last = max(at, end), start
    return "".join([*parts, text[at:]])


def lowered(text: str) -> str:
    """Return `text` in small letters, each at the place of its capital."""
    # A search that ignores case takes six times as long.
    small = text.lower()
    if len(small) == len(text):
        return small
    return re.sub(r"[A-Z]+", lambda capitals: capitals[0].lower(), text)  # some capitals are small as two


class Look(NamedTuple):
    """A text in small letters and without escapes, the words of the latter as a set and joined, and which of `SIGNS` it may hold."""

    folded: str
    shadow: str
    words: set[str]
    joined: str
    signs: frozenset[str]


# The words, in small letters, where patterns are tried, and the parts of the names of secrets.
SIGNS = frozenset(
    "bearer basic mysql mariadb sshpass identified set login machine echo printf auth credential jdbc private-lines pass pw psw "
    "kennwort pin secret cred zugangsdaten contrase senha wachtwoord mot token api access key schl log sign anmelden user "
    "cookie conn jwt psk _pat _sas _dsn _salt _pepper _pin _otp _hmac _licen _sid heslo sifre clave mdp geheimnis salasana "
    "adgangskode parola losenord jelszo lozinka mnemonic seedphrase totp sessid sessionid dockerconfigjson stringdata pswd parole".split()
)
# Words without any: a conversation repeats its words. Of letters only, as no drawn secret is.
_PLAIN: set[str] = set()
_MOST_PLAIN, _LONGEST_PLAIN = 20_000, 20


@lru_cache(maxsize=1)
def look(text: str) -> Look:
    """Return how `text` is searched: each step of a redaction looks at the same one."""
    shadow = without_escapes(text)
    words, joined = vocabulary(shadow)
    # An escape ends a word, and so may cut one that is searched for in the text itself.
    new = (words if shadow == text else words | vocabulary(text)[0]) - _PLAIN
    signs = frozenset(filter(" ".join(new).__contains__, SIGNS))
    if len(_PLAIN) > _MOST_PLAIN:
        _PLAIN.clear()
    _PLAIN.update(
        word
        for word in new
        if len(word) <= _LONGEST_PLAIN and word.isalpha() and not any(map(word.__contains__, signs))
    )
    return Look(lowered(text), shadow, words, joined, signs)


def after_words(
    text: str, seen: Look, words: Iterable[str], pattern: re.Pattern[str], starts: tuple[str, ...] = ("",)
) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern` where one of `words`, each of `SIGNS`, starts; `seen` is the look at `text`.

    With `starts`, each match starts with one of these: other places are passed without the pattern.
    """
    folded = seen.folded
    for word in filter(seen.signs.__contains__, words):
        at = folded.find(word)
        while at >= 0:
            if folded.startswith(starts, at) and (found := pattern.match(text, at)):
                yield found
            at = folded.find(word, at + 1)


# Capitals to small letters, and what is in no name of a program or of a value to blanks.
_TO_WORDS = "".join(
    sign.lower() if sign.isascii() and sign.isupper()
    else sign if sign.isalnum() or sign > "\x7f" or sign in "_.@-"
    else " "
    for sign in map(chr, range(256))
)  # fmt: skip
_BYTES_TO_WORDS = _TO_WORDS.encode("latin-1")


def vocabulary(shadow: str) -> tuple[set[str], str]:
    """Return the different words of a text without escapes, in small letters: as a set, and joined.

    A long text repeats its words: to search their join for the rare ones takes a twentieth of the time.
    """
    if shadow.isascii():
        words = set(shadow.encode().translate(_BYTES_TO_WORDS).decode().split())
        return words, " ".join(words)
    encoded = shadow.encode("utf-8", "surrogatepass")
    joined = (
        b" ".join(set(encoded.translate(_BYTES_TO_WORDS).split())).decode("utf-8", "surrogatepass").lower()
    )
    return set(joined.split(" ")), joined


def _is_token(text: str) -> bool:
    """Return False for `bearer tokens` and `Bearer authentication`: a token has a digit, or capitals inside."""
    if text.isupper() and text.replace("_", "").replace("-", "").isalpha() and len(text) <= 30:
        return False  # YOUR_TOKEN
    return any(map(str.isdigit, text)) or text[1:] != text[1:].lower() or len(text) > 30


def _holds_colon(text: str) -> bool:
    """Return False for `Basic authentication` and `basic JavaScript`: credentials hold a colon, in base64."""
    whole = text.rstrip("=")
    # Where letters are alike in both cases, one of another alphabet may be among them.
    if not whole.isascii():
        return False
    import base64

    decoded = base64.b64decode(
        whole[: len(whole) // 4 * 4], altchars=b"-_" if "-" in whole or "_" in whole else None
    )
    return b":" in decoded


def _without_private_keys(text: str) -> str:
    """Return `text` without private keys: between two marks, after the first, or before the second."""
    marks = sorted(
        (*found.span(), opens)
        for mark, opens in ((_BEGIN, True), (_END, False))
        for found in mark.finditer(text)
    )
    spans, reached = [], 0
    for nth, (start, stop, opens) in enumerate(marks):
        following = marks[nth + 1] if nth + 1 < len(marks) else None
        if opens and following and not following[2] and following[0] - stop <= _LONGEST_KEY:
            spans.append((start, following[1]))
            reached = following[1]
        elif opens:
            body = _CUT_TAIL.match(text, stop)  # a mark without a key is a word about keys
            spans += [(start, body.end())] if body else []
            reached = body.end() if body else stop
        elif start >= reached:
            body = _CUT_HEAD.match(text[max(reached, start - _LONGEST_KEY) : start][::-1])
            spans += [(start - body.end(), stop)] if body else []
            reached = stop
    return replaced(text, spans)
