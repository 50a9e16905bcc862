"""Secrets in commands, statements and files of credentials: known by their place, not by a name or a form.

Arguments of programs (`redis-cli -a x`, `docker login -p x`, `curl -u bob:x`, `vault login x`) are the rows under
`commands` in `data/secrets.json`; beside them `mysql -px`, `sshpass -p x`, what is piped into a login, SQL statements,
Docker's configuration, `.netrc`, `.pgpass`, and the data of a Kubernetes Secret. Every pattern looks a bounded
distance ahead, so the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aether.redact.assignments import is_template
from aether.redact.forms import (
    PLACEHOLDER,
    after_words,
    forms,
    look,
    replaced,
    without_escapes,
)
from aether.text.regex import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

# A quoted value goes to its closing quote, or to the end of a line that was cut; no password is longer.
# Possessive: without backtracking. Else a run of backslashes takes exponential time.
_QUOTED = r"""(?P<open>\\{0,16}["'])(?P<quoted>(?>(?P=open){2}|\\.|[^\n]){1,256}?)(?=(?P=open)(?!(?P=open))|\n|\Z)"""
_BARE = r"""(?P<bare>[^\s"'`\\;|&)]{1,256})"""
_VALUE = rf"(?:{_QUOTED}|{_BARE})"
_GAP = r"""[\s"',]{1,8}"""

# `find / -name mysql -print` and `docker run --name mysql -p3306:3306` have no password.
_MYSQL = lazy(
    r"""(?:\b|(?<=\\n))(?:mysql|mariadb)[a-z-]{0,16}[\s"'](?>[^\n|;&]|(?<=\\)\n|;\\{0,4}["']){0,300}?(?<=[\s"'])-p"""
    rf"(?!(?:rint[0f]?|rune|erm|ath|ort|id|l)\b|[0-9.:]+:[0-9]+[\s\"'/]){_VALUE}"
)
_SSHPASS = lazy(
    rf"""(?:\b|(?<=\\n))sshpass(?:{_GAP}-(?:v|P{_GAP}[^\s"']{{1,40}})){{0,3}}{_GAP}-p(?:["',]{{0,2}}\s{{0,8}}){_VALUE}"""
)
_IDENTIFIED = lazy(
    r"(?i)(?:\b|(?<=\\n))(?P<word>identified)\s{1,8}(?:with\s{1,8}[^\s;]{1,64}\s{1,8})?(?:by|as)\s{1,8}(?:(?:values|password)\s{1,8})?"
    rf"(?!random\s){_VALUE}"
)
_SET_PASSWORD = lazy(
    rf"(?i)(?:\b|(?<=\\n))set\s{{1,8}}password\s{{1,8}}for\s{{1,8}}[^\s=]{{1,200}}\s{{0,8}}=\s{{0,8}}(?:(?:old_)?password\(\s{{0,8}})?{_QUOTED}"
)
# In small letters "identified by" is also prose; after `create user bob` or `to 'bob'@'%'` it is a statement.
_USER = lazy(r"(?i)\b(?:user|to)\s{1,8}(?:if\s{1,8}not\s{1,8}exists\s{1,8})?[^\s;]{1,200}\s{1,8}\Z")
_COMMANDS_LOOK_BACK = 240
_BOUND = lazy(r"[?:@&]\w{0,64}")  # a parameter of a statement
# `machine example.org login bob password x` of a .netrc, in one line or in several.
_LOGIN = lazy(
    rf"(?i)(?:\b|(?<=\\n))(?:login\s{{1,8}}\S{{1,200}}|machine\s{{1,8}}\S{{1,200}})\s{{1,8}}password\s{{1,8}}(?![=:]){_VALUE}"
)
# A line of a .pgpass: host, port, database, user, password.
_PGPASS_MIDDLE = lazy(r":(?:[0-9]{4,5}|\*):[\w*.-]{1,64}:[\w*.@-]{1,64}:")
_PGPASS = lazy(
    r"(?m)^[ \t>]{0,8}(?![0-9]{1,4}:)(?:[A-Za-z0-9*][\w.*-]{0,200}|\[[0-9a-f:]{2,40}\]):(?:[0-9]{4,5}|\*):[\w*.-]{1,64}:[\w*.@-]{1,64}:(?P<open>)(?P<quoted>(?!))?(?P<bare>[^\s:]{1,256})$"
)
# What is piped into a login: `echo x | docker login --password-stdin`, `echo x | sudo -S`, `echo bob:x | chpasswd`.
_STDIN = r"(?:sudo\s[^|\n]{0,40}?-S\b|su\b|(?:sudo\s{1,4})?(?:chpasswd|passwd\b[^\n|]{0,40}--stdin|cryptsetup\b)|[a-z][^\n|]{0,160}?--(?:password|pass|passphrase|with|access)-?(?:stdin|token|fd)\b|kinit\b|gpg\b[^\n|]{0,120}--passphrase-fd|(?:pct|vercel|wrangler|gh|fly|heroku|railway)\b[^\n|]{0,40}\b(?:secret|env)\b)"
_PIPED = lazy(
    rf"(?:echo|printf)\s{{1,4}}(?:-[a-zA-Z]{{1,3}}\s{{1,4}}|[\"']%s(?:\\n)?[\"']\s{{1,4}})?(?P<user>[\"']?[\w.-]{{1,64}}:)?{_VALUE}[\"']?\s{{0,4}}\|\s{{0,4}}{_STDIN}"
)
_READS = lazy(
    r"--with-token\s|-stdin\s|-fd[\s=]|\bkinit\s|sudo -S|(?:ch|vnc)passwd\b|\bsu\b|\b(?:secret|secrets|env)\s(?:put|set|add)\b"
)
_HERE = lazy(rf"<<<(?!<)\s{{0,4}}{_VALUE}")  # not within a rule of `<`
# `smtp.login("bob", "x")`, `auth=("bob", "x")`, `HTTPBasicAuth("bob", "x")`: a user and a password.
_CALLED = lazy(
    r"(?i)(?:login|auth|credentials?)\s{0,2}=?\s{0,2}\(\s{0,8}(?:[a-z_][\w.]{0,60}|[\"'][^\"'\n]{1,80}[\"']),\s{0,8}"
    r"(?P<open>[\"'])(?=[^\"'\n]{0,128}[0-9])(?P<quoted>[^\"'\n ]{6,128})(?=[\"']\s{0,8},?\s{0,8}\))(?P<bare>(?!))?"
)
_ORACLE = lazy(r"(?i)jdbc:oracle:\w{1,10}:[\w.-]{1,64}/(?P<open>)(?P<quoted>(?!))?(?P<bare>[^\s@/]{1,128})@")
# The body of a key of PuTTY.
_PUTTY = lazy(
    r"(?i)private-lines: [0-9]{1,3}\r?\n(?P<open>)(?P<quoted>(?!))?(?P<bare>(?:[a-z0-9+/=]{16,80}\r?\n?){1,200})"
)
# Each pattern and the words, in small letters, where it is tried.
_AFTER_WORDS = (
    (("mysql", "mariadb"), _MYSQL),
    (("sshpass",), _SSHPASS),
    (("identified",), _IDENTIFIED),
    (("set",), _SET_PASSWORD),
    (("login", "machine"), _LOGIN),
    (("echo", "printf"), _PIPED),
    (("login", "auth", "credential"), _CALLED),
    (("jdbc",), _ORACLE),
    (("private-lines",), _PUTTY),
)
# An argument that names where the secret is, or what it is of.
_OPEN = lazy(
    r"-|@\S*|(?:true|false|none|null|prompt|stdin|env:.*|file:.*|op:.*|pass|password|token|user(?:name)?|secret)|\d{1,5}:\d{1,5}(?:/\w+)?"
)
# Programs whose secret needs no flag with a hyphen before it.
_WITHOUT_FLAGS = frozenset(
    "ansible-vault aws cargo cmdkey enable fly flyctl heroku htpasswd masterauth mc net ngrok nuget rclone requirepass runas "
    "snmp-server snyk sqlplus steamcmd vault wandb wpa_passphrase xfreerdp".split()
)
_FLAG = lazy(r"[\s\"',]-")
_AFTER_NAME = frozenset(" \t\n\r\"',")
_IN_NAME = lazy(r"[\w.@-]")
_LONGEST_SECRET = 1 << 13
_KIND = lazy(r"""(?m)^[ \t]*kind:[ \t]*["']?Secret["']?[ \t]*$|("kind"\s{0,4}:\s{0,4}"Secret")""")
_YAML_DATA = lazy(
    r"(?m)^(?P<indent>[ \t]*)(?:data|stringData):[ \t]*\n(?P<body>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n)+)"
)
_YAML_VALUE = lazy(
    r"(?m)^[ \t]*[\w./-]{1,200}:[ \t]+(?![|>][-+]?[ \t]*$)(?P<value>[^\n]+?)[ \t]*$|^[ \t]+(?![\w./-]{1,200}:[ \t]|[\w./-]{1,200}:$)(?P<line>[^\n]+)$"
)
_JSON_DATA = lazy(r'"(?:data|stringData)"\s{0,8}:\s{0,8}\{([^{}]{1,8192})\}')
_JSON_VALUE = lazy(r':\s{0,8}"((?:[^"\\]|\\.){1,8192})"')
_DOCKER = lazy(
    r"""(["']auth\\{0,16}["']\s{0,8}:\s{0,8}\\{0,16}["'])([A-Za-z0-9+/]{8,4096}={0,2})(?=\\{0,16}["'])"""
)


def without_commands(text: str) -> str:
    """Return `text` without the passwords in commands and statements.

    >>> without_commands("mysqldump -uroot -phunter2 shop; create user bob identified by 'hunter2'")
    "mysqldump -uroot -p<REDACTED> shop; create user bob identified by '<REDACTED>'"
    """
    seen = look(text)
    spans = []
    for starts, pattern in _AFTER_WORDS if seen.signs else ():
        for found in () if seen.signs.isdisjoint(starts) else after_words(text, seen, starts, pattern):
            if not found.groupdict().get("word") or _is_statement(found):
                spans += _span(found)
    if "'auth" in text or '"auth' in text:
        spans += [found.span(2) for found in _DOCKER.finditer(text) if is_docker_auth(found[2])]
    if text.count(":") > 3 and _PGPASS_MIDDLE.search(text):
        spans += [span for found in _PGPASS.finditer(text) for span in _span(found)]
    before, text = text, replaced(text, [*spans, *_here(text)])
    shadow = seen.shadow if text == before else without_escapes(text)
    text = replaced(text, _arguments(text, seen.words, shadow))
    return replaced(text, _kubernetes(text)) if "Secret" in text else text


def _span(found: re.Match[str]) -> list[tuple[int, int]]:
    """Return the place of the value, none if it is a template."""
    group = "quoted" if found["quoted"] is not None else "bare"
    return [] if is_template(found[group]) else [found.span(group)]


def _here(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the values that a command reads from a string: `docker login --password-stdin <<< x`."""
    at = text.find("<<<")
    while at >= 0:
        if found := _HERE.match(text, at):  # the quicker question first
            line = text[max(text.rfind("\n", 0, at), at - _COMMANDS_LOOK_BACK, 0) : at]
            if _READS.search(line):
                yield from _span(found)
        at = text.find("<<<", at + 3)


@lru_cache(maxsize=1)
def _programs() -> dict[str, list[re.Pattern[str]]]:
    """Return the patterns of the arguments of each program, under the first word of its name."""
    arguments: dict[str, list[re.Pattern[str]]] = {}
    for row in forms()["commands"]:
        name, *rest = row["program"].split()
        arguments.setdefault(name, []).append(lazy(_argument(row, rest)))
    return arguments


def _argument(row: dict[str, Any], words: list[str]) -> str:
    """Return the pattern of the secret in the arguments of a program, after `words`."""
    before = "".join(rf"{_GAP}{re.escape(word)}" for word in words)
    user = {"user:value": ":", "user%value": "%", "user,value": ",", "user/value": "/", "name=value": "="}
    sign = user.get(row.get("form", ""))
    start = rf"(?P<user>[\"']?[^\s\"':%,/=$<]{{0,100}}{sign})" if sign else ""
    value = rf"{start}(?P<open>)(?P<quoted>(?!))?{_BARE}" if sign else _VALUE
    if flags := row.get("flags"):
        chosen = "|".join(
            re.escape(flag).replace("\\ ", _GAP) + ("" if flag.endswith(":") else r"[\s\"',=]{1,8}")
            for flag in flags
        )
        skipped = rf"(?:[^\s\"']{{1,100}}{_GAP}){{{row['skip']}}}" if "skip" in row else ""
        return rf"{before}(?=[\s\"',])(?P<before>(?>[^\n|;&]|(?<=\\)\n){{0,300}}?)(?<=[\s\"'])(?:{chosen}){skipped}(?!-){value}"
    flag = rf"(?:{_GAP}-[\w-]{{1,40}}){{0,4}}"
    return rf"{before}{flag}(?:{_GAP}[^\s\"'-][^\s\"']{{0,200}}){{{row.get('skip', 0)}}}{_GAP}(?!-){value}"


def _arguments(text: str, words: set[str], shadow: str) -> list[tuple[int, int]]:
    """Return the places of the secrets among the arguments of those programs that are among the words of the text."""
    if not ("-" in shadow and _FLAG.search(shadow)) and _WITHOUT_FLAGS.isdisjoint(words):
        return []  # a hook's short text needs no table
    arguments = _programs()
    spans: list[tuple[int, int]] = []
    read: dict[re.Pattern[str], int] = {}  # how far the arguments of a call on the same line were read
    for program, start in _calls(shadow, words.intersection(arguments)):
        for pattern in arguments[program]:
            at = start if start >= read.get(pattern, 0) else len(text) + 1
            while found := pattern.match(text, at):
                group = "quoted" if found["quoted"] is not None else "bare"
                if _is_argument(found[group]):
                    spans.append(found.span(group))
                if "before" not in pattern.groupindex or found.end() <= at:
                    break
                at = found.end(group)
                if found["open"]:
                    at += len(found["open"])
                read[pattern] = at
    return spans


def _calls(shadow: str, programs: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the programs that are named as whole words, and where their arguments start."""
    for program in programs:
        at = shadow.find(program)
        while at >= 0:
            end = at + len(program)
            if shadow[end : end + 1] in _AFTER_NAME and not (at and _IN_NAME.match(shadow[at - 1])):
                yield program, end
            at = shadow.find(program, end)


def _is_argument(value: str) -> bool:
    return PLACEHOLDER not in value and not is_template(value) and not _OPEN.fullmatch(value)


def _kubernetes(text: str) -> list[tuple[int, int]]:
    """Return the places of the values in the data of each Kubernetes Secret, in YAML and in JSON."""
    spans = []
    for start, end in _apart(_documents(text, yaml=False)):
        for block in _JSON_DATA.finditer(text, start, end):
            spans += [value.span(1) for value in _JSON_VALUE.finditer(text, *block.span(1))]
    for start, end in _apart(_documents(text, yaml=True)):
        for block in _YAML_DATA.finditer(text, start, end):
            for value in _YAML_VALUE.finditer(text, *block.span("body")):
                group = "value" if value["value"] is not None else "line"
                if _is_argument(value[group].strip("\"'")):
                    spans.append(value.span(group))
    return spans


def _documents(text: str, *, yaml: bool) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of the text around each `kind: Secret`, in a document of YAML or in JSON."""
    for kind in _KIND.finditer(text):
        start, end = max(0, kind.start() - _LONGEST_SECRET), min(len(text), kind.end() + _LONGEST_SECRET)
        if yaml and not kind[1]:
            last = text.find("\n---", kind.end(), end)
            yield max(text.rfind("\n---", start, kind.start()), start), end if last < 0 else last
        elif not yaml and kind[1]:
            yield start, end


def _apart(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return sorted `spans` with those that overlap as one, so that no text is scanned twice."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def is_docker_auth(value: str) -> bool:
    """Return whether `value` is one that Docker stores under `auth`: a user, a colon and a password, in base64.

    >>> is_docker_auth("Ym9iOmh1bnRlcjI="), is_docker_auth("required")
    (True, False)
    """
    whole = value.rstrip("=")
    if not re.fullmatch(r"[A-Za-z0-9+/]{8,}", whole):
        return False
    import base64

    decoded = base64.b64decode(whole[: len(whole) // 4 * 4])
    return bool(re.match(rb"[!-9;-~]{1,256}:", decoded))


def _is_statement(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - _COMMANDS_LOOK_BACK) : found.start()]
    statement = found["word"].isupper() or _USER.search(before)
    return bool(statement) and not _BOUND.fullmatch(found["bare"] or "")
