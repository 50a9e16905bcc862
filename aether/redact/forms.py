"""Forms of secrets: tokens that are recognised by their own form, anywhere in a text.

Keys of providers by their prefixes, JSON Web Tokens, private keys (whole, escaped, cut at either end), passwords
in URLs, signatures of signed URLs, webhooks, and credentials after `Bearer` and `Basic`. Every pattern takes time
that grows with the length of the text alone: repeated parts are bounded, or cannot start twice in one run.
"""

from __future__ import annotations

from aether.text.regex import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

PLACEHOLDER = "<REDACTED>"

_KEYS = lazy(r"""(?x)(?<![A-Za-z0-9_])(?:
      sk-[A-Za-z0-9]{20,} (?:-[A-Za-z0-9_-]*)?                    # OpenAI's first form, and its many imitators
    | sk-(?:ant|proj|svcacct|admin|or|None|lf)-[A-Za-z0-9_-]{8,}
    | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,} | GOCSPX-[A-Za-z0-9_-]{20,}
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
    | gl(?:pat|dt|rt|cbt|ptt|ft|oas|soat|imt|agent)-[A-Za-z0-9_.-]{16,}
    | xox[a-z]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,}
    | (?:AKIA|ASIA|AROA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9]) (?:[\s,:;"'|]{1,10}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?
    | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{30,}
    | SG\.[A-Za-z0-9_-]{16,80}\.[A-Za-z0-9_-]{16,}
    | [srp]k_(?:live|test)_[A-Za-z0-9]{10,} | whsec_[A-Za-z0-9+/=]{16,}
    | (?:gsk|r8|glsa|shpat|shpss|shpca|figd|sbp|ntn|dop_v1|lin_api|lsv2_pt|lsv2_sk|sntrys)_[A-Za-z0-9_-]{20,}
    | (?:xai|pplx|nvapi|tvly|NRAK|PMAK)-[A-Za-z0-9_-]{20,}
    | hvs\.[A-Za-z0-9_-]{20,} | dapi[0-9a-f]{32} | key-[0-9a-f]{32} | sq0[a-z]{3}-[A-Za-z0-9_-]{20,}
    | (?<![+/-])[A-Za-z0-9+/]{86}==                             # Azure storage; sha512- before one is a hash
    | [0-9]{8,10}:AA[A-Za-z0-9_-]{30,} | AGE-SECRET-KEY-1[A-Z0-9]{40,}
    )""")
# The prefix of each kind above, and the length of Azure's, which has no prefix.
_PREFIXES = (
    "sk- AIza ya29. GOCSPX- ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- glcbt- glptt- glft- gloas- glsoat- "
    "glimt- glagent- xox xapp- AKIA ASIA AROA ABIA ACCA hf_ npm_ pypi- SG. sk_ rk_ pk_ whsec_ gsk_ r8_ glsa_ shpat_ "
    "shpss_ shpca_ figd_ sbp_ ntn_ dop_v1_ lin_api_ lsv2_pt_ lsv2_sk_ sntrys_ xai- pplx- nvapi- tvly- NRAK- PMAK- hvs. "
    "dapi key- sq0 AGE-SECRET-KEY-1"
).split()
_AZURE = 86
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_WITHIN_WORDS, _BASE64 = _LETTERS | {"_"}, _LETTERS | {"+", "/"}
# `sk-` with dashes is also the prefix of names such as sk-learn-compatible-estimator: those have no digit.
_DASHED = lazy(r"(?<![A-Za-z0-9_])sk-[A-Za-z0-9_-]{20,}")
# The run before the first dot starts only after another character: no character is scanned twice.
_JWT = lazy(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}")
_HOOKS = lazy(
    r"(hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/"
    r"|webhook\.office\.com/webhookb2/)[A-Za-z0-9_/@-]+"
)
_USERINFO = lazy(
    r"""(?<=://)([^\s/:@"'<>`\\]{0,256}):(?![0-9]{1,5}[?#])(?!\$\{|\$\(|\{\{?\w|%\()([^\s/"'<>`\\]{1,512})@"""
)
_LONG_USER = lazy(r"(?<=://)[A-Za-z0-9_-]{20,256}@")
_SIGNATURES = lazy(
    r"""(?i)(?<=[?&])((?:sig|signature|x-(?:amz|goog)-(?:signature|credential))=)[^&\s"'<>#]+"""
)
_BEARER = lazy(r"(?i)\b(bearer\s{1,4})([A-Za-z0-9._~+/-]{6,}={0,2})")
_BASIC = lazy(r"(?i)\b(basic\s{1,4})([A-Za-z0-9+/]{6,}={0,2})")
_LOGIN = lazy(r"(?i)\b(login\s{1,8}\S{1,200}\s{1,8}password\s{1,8})\S+")
_CURL_USER = lazy(r"""(\s(?:-u|--user|--proxy-user)[\s=]{1,4}["']?[^\s:"'$]{1,100}:)(?!\$)[^\s"']+""")

_MARK = r"-----%s (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_BEGIN, _END = lazy(_MARK % "BEGIN"), lazy(_MARK % "END")
# Between the lines of a key: newlines, escaped newlines (once or twice), quotes and joints of program text.
_BETWEEN = r"""(?:\\{1,4}[rn]|[\s"'+,>|#*]){1,40}"""
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment): [^\n\\]{1,80}"
_CUT_TAIL = lazy(rf"(?:{_BETWEEN}(?:[A-Za-z0-9+/=]{{16,}}|{_HEADER}))+(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,15}})?")
# Read from its end to its start, so the joints are spelt backwards.
_NEEWTEB = r"""(?:[rn]\\{1,4}|[\s"'+,>|#*]){1,40}"""
_CUT_HEAD = lazy(rf"(?:{_NEEWTEB}[A-Za-z0-9+/=]{{1,15}})?(?:{_NEEWTEB}[A-Za-z0-9+/=]{{16,}})+")
# The longest private keys in use (RSA 16384, armoured) are under 16 KB.
_LONGEST_KEY = 1 << 14


def without_shapes(text: str) -> str:
    """Return `text` with every secret that is recognised by its form replaced."""
    # A search for a word takes a hundredth of the time of a pattern, and an unused pattern is never compiled.
    text = _without_private_keys(text) if "PRIVATE KEY" in text else text
    if any(_starts(text, prefix) for prefix in _PREFIXES) or ":AA" in text or _may_hold_azure(text):
        text = _KEYS.sub(PLACEHOLDER, text)
    text = _DASHED.sub(_if_it_has_a_digit, text) if _starts(text, "sk-") else text
    text = _JWT.sub(PLACEHOLDER, text) if "eyJ" in text else text
    folded = _folded(text)
    text = _BEARER.sub(_unless_a_word, text) if "bearer" in folded else text
    text = _BASIC.sub(_if_credentials, text) if "basic" in folded else text
    if "://" in text:
        if "slack" in text or "discord" in text or "office" in text:
            text = _HOOKS.sub(rf"\1{PLACEHOLDER}", text)
        if "@" in text:
            text = _USERINFO.sub(rf"\1:{PLACEHOLDER}@", text)
            text = _LONG_USER.sub(f"{PLACEHOLDER}@", text)
        if "sig" in folded or "credential" in folded:
            text = _SIGNATURES.sub(rf"\1{PLACEHOLDER}", text)
    text = _LOGIN.sub(rf"\1{PLACEHOLDER}", text) if "login" in folded else text
    return _CURL_USER.sub(rf"\1{PLACEHOLDER}", text) if "-u" in text else text


def _folded(text: str) -> str:
    """Return `text` in small letters, as `(?i)` compares them: the long s is an s, and i with a dot or none an i."""
    return text.lower().replace("ſ", "s").replace("ı", "i").replace("\u0307", "")


def _starts(text: str, prefix: str) -> bool:
    """Return whether a word of `text` starts with `prefix`."""
    at = text.find(prefix)
    while at >= 0 and text[at - 1 : at] in _WITHIN_WORDS:
        at = text.find(prefix, at + 1)
    return at >= 0


def _may_hold_azure(text: str) -> bool:
    at = text.find("==", _AZURE)
    while at >= 0 and not _BASE64.issuperset(text[at - _AZURE : at]):
        at = text.find("==", at + 1)
    return at >= 0


def _if_it_has_a_digit(found: re.Match[str]) -> str:
    return PLACEHOLDER if any(map(str.isdigit, found[0])) else found[0]


def _unless_a_word(found: re.Match[str]) -> str:
    """Keep `bearer tokens` and `Bearer authentication`: a token has a digit, or capitals inside."""
    text = found[2]
    secret = any(map(str.isdigit, text)) or text[1:] != text[1:].lower() or len(text) > 30
    return f"{found[1]}{PLACEHOLDER}" if secret else found[0]


def _if_credentials(found: re.Match[str]) -> str:
    """Keep `Basic authentication` and `basic JavaScript`: credentials are a user, a colon and a password."""
    whole = found[2].rstrip("=")
    import base64

    decoded = base64.b64decode(whole[: len(whole) // 4 * 4])
    return f"{found[1]}{PLACEHOLDER}" if b":" in decoded else found[0]


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
    parts, at = [], 0
    for start, stop in spans:
        parts += [text[at:start], PLACEHOLDER]
        at = stop
    return "".join([*parts, text[at:]])
