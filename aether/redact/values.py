"""What a value looks like: drawn at random, a password, credentials in base64, a template."""

from __future__ import annotations

from aether.redact.table import PLACEHOLDER, pattern, words
from aether.text.regex import lazy

_RUN = lazy(r"[A-Za-z0-9]+")
_MASKS = ("AAAAAAAA", "xxxxxxxx", "XXXXXXXX", "00000000", "********", "........")
_TWO_CAPITALS = lazy(r"[a-z][A-Z]|[A-Z][a-z]*[A-Z]")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = "0123456789"
_BASE64 = frozenset(_LETTERS + _DIGITS + "+/")
_DRAWN_SIGNS = frozenset(_LETTERS + _DIGITS + "_+/=~!@#%^&*-")
_SYMBOLS = frozenset("!@#$%^&*+?~=")
# A longer value of a cookie is no setting of a page, such as a theme or a language.
_LONGEST_SETTING = 12
# A value of so many characters may be drawn at random.
LEAST_DRAWN, _MOST_DRAWN = 16, 512
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
# The letters of BIP-173 and the numbers of its checksum.
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


def is_template(value: str) -> bool:
    """Return whether `value` is a template for a secret: `${PASSWORD}`, `<your password>`, `****`.

    >>> is_template("$DB_PASSWORD"), is_template("hunter2")
    (True, False)
    """
    return bool(pattern("template").match(value))


def is_random(body: str) -> bool:
    """Return whether `body` of a token is drawn at random: `your-key-here` and `XXXXXXXXXXXX` are not."""
    if body.endswith("EXAMPLE") or any(map(body.__contains__, _MASKS)):
        return False
    for part in _RUN.findall(body):
        if part.isalpha() and (part.islower() or part[1:].islower() or (part.isupper() and len(part) < 16)):
            continue
        return True
    return False


def is_drawn(value: str, *, least: int = LEAST_DRAWN) -> bool:
    """Return whether `value` looks drawn at random: letters and digits mixed, no path, no words.

    >>> is_drawn("zz81kd9xq04mfha2"), is_drawn("src/app/models/user_2"), is_drawn("release-2024-05-01")
    (True, False, False)
    """
    if not 6 <= len(value) <= _MOST_DRAWN or not _DRAWN_SIGNS.issuperset(value) or is_template(value):
        return False
    mixed = sum(
        len(run)
        for run in _RUN.findall(value)
        if not run.isalpha() and not run.isdigit() and not is_numbered(run)
    )
    return mixed >= least * 3 // 4 or (mixed > 0 and len(value) >= 2 * least)


def is_numbered(run: str) -> bool:
    """Return whether `run` is a word with a number: `utf8`, `v2`, `sha256`, `10MB`."""
    letters = run.strip(_DIGITS)
    numbers = len(run) - len(letters)
    if not numbers or not letters or not _BASE64.issuperset(run) or not letters.isalpha():
        return False
    if run.startswith(letters):
        return len(letters) <= 10 and numbers <= 3
    return run.endswith(letters) and len(letters) <= 5 and numbers <= 6


def is_token(value: str) -> bool:
    """Return False for `bearer tokens` and `Bearer authentication`: a token has a digit, or capitals inside."""
    if value.isupper() and value.replace("_", "").replace("-", "").isalpha() and len(value) <= 30:
        return False  # YOUR_TOKEN
    return any(map(str.isdigit, value)) or value[1:] != value[1:].lower() or len(value) > 30


def is_password(value: str) -> bool:
    """Return whether `value` looks like a password: letters with digits or signs, and no path, call or name."""
    if (
        is_template(value)
        or value[:1] in "/.-$<{[(%@})]"
        or any(sign in value for sign in ("(", "[", "://", "=", "`", "\\", "{"))
    ):
        return False
    if value.count("/") > 1 or dotted(value):
        return False
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    mixed = _TWO_CAPITALS.search(value) is not None
    signs = not _SYMBOLS.isdisjoint(value.rstrip("!?"))
    if "_" in value or value.count("-") > 1:
        return letters and digits and (mixed or signs or (value[:1].isupper() and value != value.upper()))
    return len(value) > 5 and letters and (digits or (signs and len(value) > 7))


def dotted(value: str) -> list[str]:
    """Return the parts of a dotted name, such as `self.config.token`; none of another value."""
    parts = value.rstrip(",;)]}:").replace("?.", ".").split(".")
    return parts if len(parts) > 1 and all(part.isidentifier() and len(part) <= 41 for part in parts) else []


def is_login(value: str) -> bool:
    """Return False for `Basic authentication` and `basic JavaScript`: credentials hold a colon, in base64."""
    return b":" in decoded(value)


def is_docker_auth(value: str) -> bool:
    """Return whether `value` is one that Docker stores under `auth`: a user, a colon and a password, in base64.

    >>> is_docker_auth("Ym9iOmh1bnRlcjI="), is_docker_auth("required")
    (True, False)
    """
    digits = value.rstrip("=")
    if len(digits) < 8 or not _BASE64.issuperset(digits):
        return False
    user, colon, _ = decoded(digits).partition(b":")
    return bool(colon) and 0 < len(user) <= 256 and all(33 <= byte <= 126 for byte in user)


def decoded(value: str) -> bytes:
    """Return what `value` is in base64; empty if it is no base64."""
    digits = value.rstrip("=")
    # Where letters are alike in both cases, one of another alphabet may be among them.
    if not digits.isascii():
        return b""
    import binascii

    # Those of addresses, which have two other signs, too.
    return binascii.a2b_base64(digits[: len(digits) // 4 * 4].replace("-", "+").replace("_", "/"))


def is_base58(value: str) -> bool:
    """Return whether `value` is base58 that ends in the checksum of its bytes, as the private keys of BIP-32 do."""
    from hashlib import sha256

    number = 0
    for letter in value:
        number = number * 58 + _BASE58.index(letter)
    content = number.to_bytes((number.bit_length() + 7) // 8, "big")
    content = bytes(len(value) - len(value.lstrip("1"))) + content
    return sha256(sha256(content[:-4]).digest()).digest()[:4] == content[-4:]


def is_nkey(value: str) -> bool:
    """Return whether `value`, a seed of NATS in base32, ends in the CRC-16 of its bytes."""
    from base64 import b32decode
    from binascii import crc_hqx

    content = b32decode(value + "=" * (-len(value) % 8))
    return crc_hqx(content[:-2], 0) == int.from_bytes(content[-2:], "little")


def is_bech32(value: str) -> bool:
    """Return whether `value`, a prefix and its data behind a `1`, has the checksum of BIP-173."""
    prefix, _, data = value.partition("1")
    points = [ord(letter) for letter in prefix]
    checksum = 1
    for part in [
        *(point >> 5 for point in points),
        0,
        *(point & 31 for point in points),
        *map(_BECH32.index, data),
    ]:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ part
        for bit, generator in enumerate(_GENERATORS):
            checksum ^= generator if top >> bit & 1 else 0
    return checksum == 1


def is_cookie(value: str) -> bool:
    """Return whether cookies, as in a header, hold more than settings of a page and the attributes of a cookie.

    >>> is_cookie("sid=k3; Path=/"), is_cookie("theme=dark; SameSite=Lax; Secure")
    (True, False)
    """
    return any(map(_is_identity, value.split(";")))


def _is_identity(cookie: str) -> bool:
    """Return whether a cookie, `name=value`, may be that of a session: by its name, or by a value that is no word."""
    name, sign, content = (word.strip().strip("\"'").lower() for word in cookie.partition("="))
    if name in words("attributes of cookies"):
        return False
    if not sign:  # a value alone
        return len(name) > _LONGEST_SETTING
    if name.endswith(tuple(words("cookie ends"))) or "sess" in name or "auth" in name:
        return bool(content)
    return bool(content) and not (content.isalpha() and len(content) <= _LONGEST_SETTING)


def is_argument(value: str) -> bool:
    """Return False for an argument that names where the secret is, or what it is of."""
    return PLACEHOLDER not in value and not is_template(value) and not pattern("no argument").fullmatch(value)


def has_unit(text: str, at: int) -> bool:
    """Return whether the value before `at` counts something: `12 characters`, `30-day`."""
    following = text[at : at + 20].lower()
    return following[following[:1] in (" ", "-") :].startswith(tuple(words("units")))
