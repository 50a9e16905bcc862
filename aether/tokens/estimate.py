"""The token estimate: how many tokens a text has, without a vocabulary, data files or imports.

The text is cut into the same pieces as a byte-pair tokenizer cuts it (words with the character
before them, groups of digits, runs of punctuation and of white space), and each piece is priced: a
Latin word by its pairs of letters, other scripts by length, symbols by the block they come from.
The price list was fitted to o200k_base; what it reaches per kind of text stands in
`benchmarks/results/token_estimate.json`. Correcting it for one home is `calibrate`'s affair.

Guarantees: deterministic, independent of locale and environment, linear in the text, never raises;
0 for the empty text and at least 1 for any other. Cutting a text anywhere changes the sum by at
most `CUT_BOUND` tokens for each `WINDOW_CHARS` of it, usually by less than two.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter as Tally
from itertools import repeat
from operator import add, eq

# Prices below are thousandths of a token: whole numbers add up to the same sum in any order.
TOKEN = 1000

# Characters priced at once: bounds the memory for the pieces of one window.
WINDOW_CHARS = 1 << 18

# Letters of a word priced by pairs. Longer runs are rarely words, and a flat price for the rest
# keeps the effect of a cut bounded.
PAIRED_LETTERS = 24

# The dearest 24 letters cost about this much more by pairs than flat.
CUT_BOUND = 32

_UPPER = "A-ZÀ-ÖØ-Þ"
_LOWER = "a-zß-öø-ÿĀ-ɏ\u0300-\u036fḀ-ỿ"

# How the prices were obtained: 5 MB of text in 90 kinds (prose and manuals; code in ten languages;
# JSON, Markdown, minified JavaScript; agent transcripts; user-interface texts in 36 languages;
# generated base64, hex, numbers, tables, logs, paths, terminal output) was cut by the pattern below,
# every distinct piece was counted exactly with o200k_base, and `max(1, sum of prices)` was fitted by
# weighted least squares, each kind weighing the same (prose, Markdown and transcripts three times,
# most code one and a half times, user-interface languages half).

# (characters, price of a run, price of each character): runs of one script.
_SCRIPTS = (
    ("Ͱ-Ͽἀ-῿", 82, 375),
    ("Ѐ-ԯ", 528, 240),
    ("\u0530-\u058f", 528, 305),
    ("\u0590-\u05ff\ufb1d-\ufb4f", -21, 446),
    ("\u0600-\u065f\u066e-\u06ef\u06fa-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefe", 464, 269),
    ("\u0900-\u0963\u0970-\u097f", 44, 380),
    ("\u0980-\u0dff", 460, 341),  # Bengali to Sinhala
    ("\u0e00-\u0e4f", 283, 367),
    ("\u0e80-\u109f\u1780-\u17ff", 300, 700),  # Lao to Myanmar, Khmer; not measured: like rare letters
    ("\u10a0-\u10ff", 532, 279),
    ("\u1100-\u11ff\u3130-\u318f가-힣", 723, 407),
    ("ぁ-ヿ", -446, 643),
    ("々一-鿿豈-\ufaff", 276, 739),
    ("㐀-䶿\U00020000-\U0003ffff", 0, 3000),  # rare Han: three or four bytes, each its own token
)

# First character of a block, name for the reader, price of one character there.
_BLOCKS = (
    (0x00, "control", 1486),
    (0x20, "ASCII", 394),
    (0x7F, "control", 1486),
    (0x80, "Latin signs", 845),
    (0x100, "letters of rare scripts", 1500),
    (0x2000, "general punctuation", 902),
    (0x200D, "joiner", 579),
    (0x200E, "general punctuation", 902),
    (0x2070, "symbols", 1196),
    (0x20D0, "marks on symbols", 579),
    (0x2100, "symbols", 1196),
    (0x2500, "boxes", 1394),
    (0x25A0, "symbols", 1196),
    (0x2C00, "letters of rare scripts", 1500),
    (0x3000, "CJK punctuation", 809),
    (0x3040, "letters of rare scripts", 1500),
    (0xD800, "lone surrogates and private use", 3000),
    (0xF900, "letters of rare scripts", 1500),
    (0xFE00, "variation selectors", 579),
    (0xFE10, "letters of rare scripts", 1500),
    (0xFF00, "full-width signs", 809),
    (0xFFF0, "replacement character", 1000),
    (0x10000, "pictographs", 2314),
    (0x1F1E6, "letters of flags", 1937),
    (0x1F200, "pictographs", 2314),
    (0x1F600, "faces", 922),
    (0x1F650, "pictographs", 2314),
)
_BLOCK_STARTS = [start for start, _, _ in _BLOCKS]
_RUN_OF_SIGNS = 220
_REPEATED_SIGN = 85  # the same ASCII sign or box again: runs of them are single tokens
_REPEATED_RARE_SIGN = 902
_MERGED_BLOCKS = ("ASCII", "boxes")

# Lengths at which o200k_base needs one more token for a run of white space.
_SPACES_IN_TOKEN = 80
_BREAKS_IN_TOKEN = 16
_DIGITS = "0123456789"

# Price of starting a word, by what stands before it (nothing, space, "." or "_", other) and by its
# shape (lower, Capital, UPPER, MIXed); then the price of each letter by shape.
_WORD = ((-62, 101, -217, 425), (-285, -72, -421, 104), (5, 235, -244, 443), (444, 728, 541, 1140))
_LETTER = (436, 435, 550, 466)
_FLAT_LETTER = 400
_REPEATED_LETTER = 125

# What a pair of neighbouring letters adds or saves: row the first (^ word start, ~ letter beyond
# a-z), column the second (a-z, ~, $ word end). Level 28 is nothing, a step 25 thousandths.
_LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
_PAIR_ROWS = (
    "VTWSXWYUUUVXWWYVfVSXTXVbWdZS",  # ^
    "NEHDoMAGEKM9IDwBYAJDQLRHINIa",  # a
    "KXZgHffcRBYFYp7kiJKNKYilXhRT",  # b
    "IcMXDZdGIaDKUiEoXBX6GgUdPWNW",  # c
    "ObcNEcRgFFZMLRHUdRLSVUcYSZaO",  # d
    "FQFHPFGSPSVKJFOHHDHLONKGOSVQ",  # e
    "HeaaKIVcDbdPNaLKdLUEIcYZMlFb",  # f
    "ZRXVGbNIPYcKaLHjkCTKJRbhaScR",  # g
    "MWoZGchZHkYUY5BQfOf3IdYYcUNW",  # h
    "LEAAGICYSPJGIB3CWPGBRNfKnGSg",  # i
    "LmaLJVbdcaOihJQNdfOuUmPmncXe",  # j
    "QOeTMOINLfZXbFdIhhNVQaQlZhMY",  # k
    "G6YIE4EcIdXPVfEKlYNLDNZhCjQT",  # l
    "DCLe6YXdJaVMHTGAWhOgMdcfcaJS",  # m
    "KmFGILCKPLHQIOIUmfFEMTgXeWVS",  # n
    "JIHGWCDYO99ILAOKeBRGGTBQLcVd",  # o
    "IXMKEgcILgaCGXAMeDNAONZVUkJY",  # p
    "VaYefidgTlmLefcdQZpd5bdekoee",  # q
    "HUOJHKIPJhHZIDBQXPMQNZUfJcPS",  # r
    "SmQXDVQGLgMbbSNEQIBGGLLtFdVP",  # s
    "FXNYFQcAIdQVScGNEELMKfHN4OLQ",  # t
    "KCFRCA9ZGvS5IDcCm6F8UdcTZPVe",  # u
    "GcYk7cWaAgWZSZGSdWqmZbdykVRY",  # v
    "EtdMGdhKFeeVeJGXiMIiZaKdejFW",  # w
    "FaJdjVoZKidcNeXIflmJbtlTUblW",  # x
    "TccfWhcoMfcKUPIWm1F3nWHgKVSL",  # y
    "TjXZNdoTSagghSRajhiYPkVWVQXZ",  # z
    "MQ3XTFZQIcdWRHBWPcYeBbSCSkjh",  # ~
)
_PAIRS = {
    first + second: 25 * (_LEVELS.index(level) - 28)
    for first, row in zip("^abcdefghijklmnopqrstuvwxyz~", _PAIR_ROWS, strict=True)
    for second, level in zip("abcdefghijklmnopqrstuvwxyz~$", row, strict=True)
}

_LETTERS = _UPPER + _LOWER + "".join(characters for characters, _, _ in _SCRIPTS)
_LETTER_KINDS = re.compile(
    f"([{_UPPER}{_LOWER}])" + "".join(f"|([{characters}])" for characters, _, _ in _SCRIPTS)
)
# Possessive where a piece may be long: a hostile text must not be scanned twice.
_PIECE = re.compile(
    rf"[^\r\n0-9{_LETTERS}]?+(?:[{_UPPER}]*+[{_LOWER}]++|[{_UPPER}]++)(?:'(?:s|t|re|ve|m|ll|d))?"
    + "".join(rf"| ?+[{characters}]++" for characters, _, _ in _SCRIPTS)
    + rf"|[0-9]{{1,3}}| ?+[^\s0-9{_LETTERS}]++[\r\n/]*+|\s*[\r\n]++|\s+(?!\S)|\s"
)
_WORD_PARTS = re.compile(rf"([^{_UPPER}{_LOWER}]?)([{_UPPER}]*)([{_LOWER}]*)")
_NOT_A_TO_Z = re.compile(r"[^a-z]")


def estimate(text: str) -> int:
    """Return about how many tokens `text` has.

    >>> estimate(""), estimate("The tests pass again."), estimate("日本語")
    (0, 5, 2)
    """
    if not text:
        return 0
    price = 0
    for start in range(0, len(text), WINDOW_CHARS):
        pieces = Tally(_PIECE.findall(text[start : start + WINDOW_CHARS]))
        price += sum(_price(piece) * times for piece, times in pieces.items())
    return max(1, (price + TOKEN // 2) // TOKEN)


def _price(piece: str) -> int:
    last = piece[-1]
    letter = _LETTER_KINDS.match(last)
    if letter is None:
        return _sign_price(piece, last)
    if letter.lastindex == 1:
        return _word_price(piece)
    _, run, each = _SCRIPTS[(letter.lastindex or 2) - 2]
    return max(TOKEN, run + each * len(piece.lstrip(" ")))


def _word_price(piece: str) -> int:
    parts = _WORD_PARTS.match(piece)
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
        return TOKEN * (1 + (len(piece) - 1) // (_SPACES_IN_TOKEN if last == " " else _BREAKS_IN_TOKEN))
    signs = piece.lstrip(" ").rstrip("\r\n")
    price = _RUN_OF_SIGNS
    previous = ""
    for sign in signs:
        block = _BLOCKS[bisect_right(_BLOCK_STARTS, ord(sign)) - 1]
        if sign != previous:
            price += block[2]
        else:
            price += _REPEATED_SIGN if block[1] in _MERGED_BLOCKS else _REPEATED_RARE_SIGN
        previous = sign
    return max(TOKEN, price)
