"""The token estimate: the approximate number of tokens of a text, without a vocabulary, data files or imports.

The text is cut into the pieces of a byte-pair tokenizer (words with the character
before them, groups of digits, runs of punctuation and of white space), and each piece is priced: a
Latin word by its pairs of letters, other scripts by length, symbols by the block they come from.
The price list was fitted to o200k_base; its error per kind of text is in
`benchmarks/results/token_estimate.json`. `counters.calibrate` corrects it for one home.

Guarantees: deterministic, independent of locale and environment, linear in the text, never raises;
0 for the empty text and at least 1 for any other. Cutting a text anywhere changes the sum by at
most `CUT_BOUND` tokens for each `WINDOW_CHARS` of it, usually by less than two.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import repeat
from operator import add, eq
from typing import NamedTuple

from aether.text.regex import lazy

# Prices below are thousandths of a token: whole numbers add up to the same sum in any order.
TOKEN = 1000

# Characters priced at once: bounds the memory for the pieces of one window.
WINDOW_CHARS = 1 << 18

# Pieces whose price is remembered: they make up nine tenths of transcripts and prose, and are looked up in a third
# of the time that pricing takes. Longer pieces rarely come again, and would make the memory they take unbounded.
REMEMBERED_PIECES = 1 << 14
REMEMBERED_CHARS = 48

# Letters of a word priced by pairs. Longer runs are rarely words, and a flat price for the rest
# keeps the effect of a cut bounded.
PAIRED_LETTERS = 24

# The dearest 24 letters cost about this much more by pairs than flat.
CUT_BOUND = 32

_UPPER = "A-ZÀ-ÖØ-Þ"
_LOWER = "a-zß-öø-ÿĀ-ɏ\u0300-\u036fḀ-ỿ"

# How the prices were obtained: 5 MB of text in 100 kinds (prose and manuals; code in ten languages;
# JSON, Markdown, minified JavaScript; agent transcripts; user-interface texts in 36 languages;
# generated base64, hex, numbers, tables, logs, paths, terminal output) was cut by `_patterns` below,
# every distinct piece was counted exactly with o200k_base, and `max(1, sum of prices)` was fitted by
# weighted least squares. Each kind weighs the same, except: prose, Markdown and transcripts three
# times, most code one and a half times, user-interface languages half; among languages of one
# script the most spoken leads (Russian, Hindi, simplified Chinese). Prices that end in round
# hundreds were set by hand from counts of single signs.

# (characters, price of a run, price of each character): runs of one script.
_SCRIPTS = (
    ("Ͱ-Ͽἀ-῿", 82, 375),
    ("Ѐ-ԯ", 700, 143),
    ("\u0530-\u058f", 528, 305),
    ("\u0590-\u05ff\ufb1d-\ufb4f", -21, 446),
    ("\u0600-\u065f\u066e-\u06ef\u06fa-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefe", 320, 285),
    ("\u0900-\u0963\u0970-\u097f", 170, 285),
    ("\u0980-\u0dff", 460, 341),  # Bengali to Sinhala
    ("\u0e00-\u0e4f", -120, 390),
    ("\u0e80-\u109f\u1780-\u17ff", 300, 700),  # Lao to Myanmar, Khmer; not measured: like rare letters
    ("\u10a0-\u10ff", 532, 279),
    ("\u1100-\u11ff\u3130-\u318f가-힣", 760, 405),
    ("ぁ-ヿ", -430, 690),
    ("々一-鿿豈-\ufaff", 340, 660),
    ("㐀-䶿\U00020000-\U0003ffff", 0, 3000),  # rare Han: three or four bytes, each its own token
)

# Letters that mark a costlier neighbour of a common language: Cyrillic beyond Russian, and frequent
# Han characters that only traditional Chinese writes. Price of each, on top.
_DEARER = dict.fromkeys("іїєґђјљњћџѓќѕў", 1300) | dict.fromkeys(
    "們個這來時為國說對會學過發還開關電話東車長門問間題點種樣實現應該當經體與業務無後裡從動員樂頭見書"
    "讓給認識記計設許論請調談議證變結統線組續網紅約級終總練細單將導師張強錯錄鐘鍵閉陣隊際陽難雲頁項"
    "順須領頻類顯風飛養馬驗魚麗複雜帶幫幾庫廠輸轉較輕載運選適遠進達違連邊醫釋針銀鎖鏈資質費貨責買賣"
    "賞價儲優傳傷備條標權機檢欄檔氣沒決測滿滅狀獨獲環畫異療眾碼確禮稱積穩窗競節範簡簽紀純紙紹絕絡維",
    640,
)

# Signs: first character of a block, name for the reader, price of one character there.
_BLOCKS = (
    (0x00, "control", 1476),
    (0x20, "ASCII", 406),
    (0x7F, "control", 1476),
    (0x80, "Latin signs", 874),
    (0x100, "letters of rare scripts", 1500),
    (0x964, "danda", 1000),
    (0x970, "letters of rare scripts", 1500),
    (0x2000, "general punctuation", 919),
    (0x200D, "joiner", 800),
    (0x200E, "general punctuation", 919),
    (0x2070, "symbols", 1900),
    (0x20D0, "marks on symbols", 800),
    (0x2100, "symbols", 1900),
    (0x2500, "boxes", 1800),
    (0x25A0, "symbols", 1900),
    (0x2C00, "letters of rare scripts", 1500),
    (0x3000, "CJK punctuation", 833),
    (0x3040, "letters of rare scripts", 1500),
    (0xD800, "lone surrogates", 1000),
    (0xE000, "private use", 3000),
    (0xF900, "letters of rare scripts", 1500),
    (0xFE00, "variation selectors", 800),
    (0xFE10, "letters of rare scripts", 1500),
    (0xFF00, "full-width signs", 833),
    (0xFFF0, "replacement character", 1000),
    (0x10000, "pictographs", 2150),
    (0x1F1E6, "letters of flags", 2000),
    (0x1F200, "pictographs", 2150),
    (0x1F600, "faces", 1900),
    (0x1F650, "pictographs", 2150),
)
# Signs outside ASCII so frequent that each is one token.
_COMMON_SIGNS = "😂❤😍🤣😊🙏💕😭😘👍👏😁🔥😉👌✨🙂😀👇👉⭐✅✔▶→←↑↓•✓●█─│"
# Runs of JSON and code that are one token each.
_COMMON_RUNS = frozenset(
    """ ":" "," ":[" ":{" "},{" "}, "}} }}, },{" }] }} ]} }); }, }; ); ()); })) ))) () (); ){ ... --- === :// </ /> -> => != == """.split()
)
_BLOCK_STARTS = [start for start, _, _ in _BLOCKS]
_RUN_OF_SIGNS = 183
# The same sign again, in blocks where runs of one sign are few tokens: "-" goes 64 to a token.
_REPEATED_SIGN = {"ASCII": 20, "boxes": 150}

# Lengths at which o200k_base needs one more token for a run of white space.
_SPACES_IN_TOKEN = 128
_BREAKS_IN_TOKEN = 16
_SPACED_LINE = TOKEN  # each further line of nothing but spaces
_DIGITS = "0123456789"

# Price of starting a word, by the character before it (nothing, space, "." or "_", other) and by its
# shape (lower, Capital, UPPER, several capitals and lower); then the price of each letter by shape.
_WORD = ((-74, 89, -217, 433), (-288, -97, -420, 105), (-9, 212, -242, 446), (436, 708, 547, 1145))
_LETTER = (439, 441, 551, 466)
_FLAT_LETTER = 400
_REPEATED_LETTER = 125

# The price of a pair of neighbouring letters: row the first (^ word start, ~ letter beyond
# a-z), column the second (a-z, ~, $ word end). Level 28 is nothing, a step 25 thousandths.
_LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
_PAIR_ROWS = (
    "VTVSXWXTTTVXWWYVfVSXTXVbWcaS",  # ^
    "ODHEpMAHEMMAIDwBYBJDQKRGHNIa",  # a
    "KXZgHfecQBYEYp8jhJJNJYjlWhQT",  # b
    "IcMXDacFIaDJUiEoXBX6GgUdPWNW",  # c
    "ObdNFdRgGEZMLRIUdRLSVTcZSZaO",  # d
    "FPFHPFGTPRUKJFOHHEHLONJGOSVP",  # e
    "GeabKIVcDbcPNaLKdMTEIbYZNlHb",  # f
    "ZRXWGcOGPYcKZKHjkCTMJSbiaSbR",  # g
    "MWoWGchZHmXUY4BRfPf4IfYYaUOW",  # h
    "LDAAHIDZTQJGJB3CWQGBSOfJmFSg",  # i
    "MmaLIVbddaOihIQNefOtUmPmncVe",  # j
    "QOeTMOIMMfaWaHdGhgOVRbQkbhMX",  # k
    "G5YID4EcIcYPVeEKlXNMDOZhCjSS",  # l
    "DCLe6YXcJaVLHVGAWhOgMecfcbIR",  # m
    "LmFGJLCKPLGQIPIUmeEENTgXeVVT",  # n
    "KIHFWCEbPB9IKAOKdBRGFTAPKbVd",  # o
    "IXMJEgcHLgaCGXAMeDMAOOZVUjKX",  # p
    "UaYefidgTlmLefbdQZpd4bddkoef",  # q
    "ITOKHKIPJhIZIDCQXPLPMaUfJcQR",  # r
    "TlQXDVQGLgMbbTNEQJBHGMLsFdVO",  # s
    "GWNYFPcAIdRVTcHMFELNKfHO6OLQ",  # t
    "JCFRBA9ZGvS5IDcCm6F9UbcTZOUe",  # u
    "HdXk6cWaBgWZSZHTdTqmbadyiVRY",  # v
    "DtdNGdhKFeeUeJFYiMIiZaKdejEW",  # w
    "GaJdjVoZJidfNeXIflmJaslTVblW",  # x
    "TcdhWgcoMfcLUQIWm1G4mRHfLUSL",  # y
    "SiXZMdnTUagghRRajhiYOkVWVQXZ",  # z
    "LP2XTHaRIZfVRIBWPbXeBcRGRjjg",  # ~
)
_PRICE_OF_LEVEL = {level: 25 * (nth - 28) for nth, level in enumerate(_LEVELS)}
_PAIRS = {
    first + second: _PRICE_OF_LEVEL[level]
    for first, row in zip("^abcdefghijklmnopqrstuvwxyz~", _PAIR_ROWS, strict=True)
    for second, level in zip("abcdefghijklmnopqrstuvwxyz~$", row, strict=True)
}


class _Patterns(NamedTuple):
    """The patterns of a piece, of its last letter by script, and of a word: the character before it, and its cases."""

    piece: re.Pattern[str]
    letter: re.Pattern[str]
    word: re.Pattern[str]


@lru_cache(maxsize=2)
def _patterns(*, ascii_only: bool) -> _Patterns:
    """Return the patterns for every script, or those that cut a text of ASCII and signs in the same way.

    Compiled when first used: few notes have letters of other scripts, and the tables for all of them take 20 ms.
    """
    upper, lower, scripts = (
        ("A-Z", "a-z", []) if ascii_only else (_UPPER, _LOWER, [one for one, _, _ in _SCRIPTS])
    )
    letters = upper + lower + "".join(scripts)
    # Possessive where a piece may be long: a hostile text must not be scanned twice.
    piece = (
        rf"[^\r\n0-9{letters}]?+(?:[{upper}]*+[{lower}]++|[{upper}]++)(?:'(?:s|t|re|ve|m|ll|d))?"
        + "".join(rf"| ?+[{characters}]++" for characters in scripts)
        + rf"|[0-9]{{1,3}}| ?+[^\s0-9{letters}]++[\r\n/]*+|\s*[\r\n]++|\s+(?!\S)|\s"
    )
    letter = f"([{upper}{lower}])" + "".join(f"|([{characters}])" for characters in scripts)
    word = rf"([^{upper}{lower}]?)([{upper}]*)([{lower}]*)"
    return _Patterns(re.compile(piece), re.compile(letter), re.compile(word))


_NOT_A_TO_Z = lazy(r"[^a-z]")


def estimate(text: str) -> int:
    """Return the approximate number of tokens of `text`.

    >>> estimate(""), estimate("The tests pass again."), estimate("日本語")
    (0, 5, 2)
    """
    if len(text) < _REMEMBERED_FROM:
        return _estimated(text) if text else 0
    key = (len(text), hash(text))
    found = _COUNTED.get(key)
    if found is None:
        if len(_COUNTED) >= _MOST_COUNTED:
            _COUNTED.clear()
        found = _COUNTED[key] = _estimated(text)
    return found


# The counts of texts of so many characters and more, by their length and hash: a conversation is counted before each
# compaction, and a text that is shortened there several times. The texts themselves are not held.
_REMEMBERED_FROM, _MOST_COUNTED = 40, 8_192
_COUNTED: dict[tuple[int, int], int] = {}


def _has_rare_letters(text: str) -> bool:
    """Return whether a text may have letters beyond a to z; dashes, arrows, boxes, signs and pictures are none."""
    return not text.isascii() and any(
        not (one < "\x80" or "\u2000" <= one < "\u2c00" or "\U0001f000" <= one < "\U00020000")
        for one in {*text}
    )


def _estimated(text: str) -> int:
    price = 0
    plain = not _has_rare_letters(text)
    by, prices = _patterns(ascii_only=plain), _prices(ascii_only=plain)
    for start in range(0, len(text), WINDOW_CHARS):
        price += sum(map(prices.__getitem__, by.piece.findall(text[start : start + WINDOW_CHARS])))
    return (price + TOKEN // 2) // TOKEN


class _Prices(dict[str, int]):
    """The prices of pieces, each made when it is first asked for; those of short pieces are remembered."""

    def __init__(self, by: _Patterns) -> None:
        self._by = by

    def __missing__(self, piece: str) -> int:
        price = _price(piece, self._by)
        if len(piece) <= REMEMBERED_CHARS:
            if len(self) >= REMEMBERED_PIECES:
                self.clear()
            self[piece] = price
        return price


@lru_cache(maxsize=2)
def _prices(*, ascii_only: bool) -> _Prices:
    """Return the prices of pieces; they depend on the patterns, so each has its own."""
    return _Prices(_patterns(ascii_only=ascii_only))


def _price(piece: str, by: _Patterns) -> int:
    last = piece[-1]
    letter = by.letter.match(last)
    if letter is None:
        return _sign_price(piece, last)
    if letter.lastindex == 1:
        return _word_price(piece, by)
    _, run, each = _SCRIPTS[(letter.lastindex or 2) - 2]
    dearer = sum(map(_DEARER.get, piece.lower(), repeat(0)))
    return max(TOKEN, run + each * len(piece.lstrip(" ")) + dearer)


def _word_price(piece: str, by: _Patterns) -> int:
    parts = by.word.match(piece)
    before, upper, lower = parts.groups() if parts else ("", "", "")
    shape = 0 if not upper else 2 if not lower else 1 if len(upper) == 1 else 3
    lead = 0 if not before else 1 if before == " " else 2 if before in "._" else 3
    word = upper + lower
    head = _NOT_A_TO_Z.sub("~", word[:PAIRED_LETTERS].lower())
    pairs = map(_PAIRS.get, map(add, "^" + head, head + "$"), repeat(0))
    price = _WORD[lead][shape] + _LETTER[shape] * len(head) + sum(pairs)
    if len(word) > PAIRED_LETTERS:
        tail = word[PAIRED_LETTERS:]
        repeated = sum(map(eq, tail, word[PAIRED_LETTERS - 1 :]))
        price += _REPEATED_LETTER * repeated + _FLAT_LETTER * (len(tail) - repeated)
    return max(TOKEN, price)


def _sign_price(piece: str, last: str) -> int:
    if last in _DIGITS:
        return TOKEN
    if piece.isspace():
        spaces = piece.count(" ")
        runs = 1 + spaces // _SPACES_IN_TOKEN + (len(piece) - spaces) // _BREAKS_IN_TOKEN
        return TOKEN * runs + _SPACED_LINE * max(0, piece.count(" \n") - 1)
    signs = piece.lstrip(" ").rstrip("\r\n")
    if signs in _COMMON_RUNS:
        return TOKEN
    price = _RUN_OF_SIGNS
    if last in "\r\n" and ("\u2100" <= signs[-1] < "\u3000" or signs[-1] > "\uffff"):
        price += TOKEN  # line ends join punctuation, not pictures
    previous = ""
    for sign in signs:
        _, block, each = _BLOCKS[bisect_right(_BLOCK_STARTS, ord(sign)) - 1]
        if sign == previous and block in _REPEATED_SIGN:
            price += _REPEATED_SIGN[block]
        else:
            price += TOKEN if sign in _COMMON_SIGNS else each
        previous = sign
    return max(TOKEN, price)
