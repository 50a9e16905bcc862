"""Secrets that no name of theirs stands before: in command lines, SQL statements and Docker's configuration.

`mysql -pSECRET`, `sshpass -p SECRET`, `IDENTIFIED BY 'SECRET'`, `SET PASSWORD FOR … = 'SECRET'`, `"auth": "…"`.
Every pattern looks no further than a bounded way from where it begins, so the time grows with the text alone.
"""

from __future__ import annotations

import re

from aether.redact.assignments import is_template
from aether.redact.shapes import PLACEHOLDER
from aether.text.patterns import lazy

# A quoted value goes to its closing quote, or to the end of a line that was cut; no password is longer.
# What was consumed is never gone back over: else a run of backslashes takes exponential time.
_QUOTED = r"""(?P<open>\\{0,16}["'])(?P<quoted>(?>(?P=open){2}|\\.|[^\n]){1,256}?)(?=(?P=open)(?!(?P=open))|\n|\Z)"""
_BARE = r"""(?P<bare>[^\s"'`\\;|&)]{1,256})"""
_VALUE = rf"(?:{_QUOTED}|{_BARE})"
_GAP = r"""[\s"',]{1,8}"""

# `find / -name mysql -print` and `docker run --name mysql -p3306:3306` have no password.
_MYSQL = lazy(
    r"""\b(?:mysql|mariadb)[a-z-]{0,16}[\s"'](?>[^\n|;&]|(?<=\\)\n|;["']){0,300}?(?<=[\s"'])-p"""
    rf"(?!(?:rint[0f]?|rune|erm|ath|ort|id|l)\b|[0-9.:]+:[0-9]+[\s\"'/]){_VALUE}"
)
_SSHPASS = lazy(
    rf"""\bsshpass(?:{_GAP}-(?:v|P{_GAP}[^\s"']{{1,40}})){{0,3}}{_GAP}-p(?:["',]{{0,2}}\s{{0,8}}){_VALUE}"""
)
_IDENTIFIED = lazy(
    r"(?i)\b(?P<word>identified)\s{1,8}(?:with\s{1,8}[^\s;]{1,64}\s{1,8})?(?:by|as)\s{1,8}(?:(?:values|password)\s{1,8})?"
    rf"(?!random\s){_VALUE}"
)
_SET_PASSWORD = lazy(
    rf"(?i)\bset\s{{1,8}}password\s{{1,8}}for\s{{1,8}}[^\s=]{{1,200}}\s{{0,8}}=\s{{0,8}}(?:(?:old_)?password\(\s{{0,8}})?{_QUOTED}"
)
# In small letters "identified by" is also prose; after `create user bob` or `to 'bob'@'%'` it is a statement.
_USER = lazy(r"(?i)\b(?:user|to)\s{1,8}(?:if\s{1,8}not\s{1,8}exists\s{1,8})?[^\s;]{1,200}\s{1,8}\Z")
_LOOK_BACK = 240
_BOUND = lazy(r"[?:@&]\w{0,64}")  # a parameter of a statement
_DOCKER = lazy(
    r"""(["']auth\\{0,16}["']\s{0,8}:\s{0,8}\\{0,16}["'])([A-Za-z0-9+/]{8,4096}={0,2})(?=\\{0,16}["'])"""
)


def without_commands(text: str) -> str:
    """Return `text` without the passwords that commands and statements are given.

    >>> without_commands("mysqldump -uroot -phunter2 shop; create user bob identified by 'hunter2'")
    "mysqldump -uroot -p<REDACTED> shop; create user bob identified by '<REDACTED>'"
    """
    # To look for a word takes a hundredth of the time of a pattern.
    if "mysql" in text or "mariadb" in text:
        text = _MYSQL.sub(_unless_template, text)
    text = _SSHPASS.sub(_unless_template, text) if "sshpass" in text else text
    if "dentified" in text or "IDENTIFIED" in text:
        text = _IDENTIFIED.sub(_if_statement, text)
    if "assword" in text or "PASSWORD" in text:
        text = _SET_PASSWORD.sub(_unless_template, text)
    docker = "'auth" in text or '"auth' in text
    return _DOCKER.sub(_if_credentials, text) if docker else text


def is_docker_auth(value: str) -> bool:
    """Return whether `value` is what Docker keeps under `auth`: a user, a colon and a password, in base64.

    >>> is_docker_auth("Ym9iOmh1bnRlcjI="), is_docker_auth("required")
    (True, False)
    """
    whole = value.rstrip("=")
    if not re.fullmatch(r"[A-Za-z0-9+/]{8,}", whole):
        return False
    import base64

    said = base64.b64decode(whole[: len(whole) // 4 * 4])
    return bool(re.match(rb"[!-9;-~]{1,256}:", said))


def _unless_template(found: re.Match[str]) -> str:
    group = "quoted" if found["quoted"] is not None else "bare"
    if is_template(found[group]):
        return found[0]
    start, end = (at - found.start() for at in found.span(group))
    return f"{found[0][:start]}{PLACEHOLDER}{found[0][end:]}"


def _if_statement(found: re.Match[str]) -> str:
    before = found.string[max(0, found.start() - _LOOK_BACK) : found.start()]
    statement = found["word"].isupper() or _USER.search(before)
    return found[0] if not statement or _BOUND.fullmatch(found["bare"] or "") else _unless_template(found)


def _if_credentials(found: re.Match[str]) -> str:
    return f"{found[1]}{PLACEHOLDER}" if is_docker_auth(found[2]) else found[0]
