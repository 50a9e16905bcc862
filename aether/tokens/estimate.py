"""Token estimate: about how many tokens a text has, without a vocabulary.

The text is cut as a byte-pair tokenizer cuts it: words with the character before them, groups of digits, runs of signs
and of white space. A Latin word is priced by its pairs of letters, any other run by the block of its characters. The
prices were fitted to o200k_base on prose in many languages, code, JSON, logs and transcripts. Prose of a script consists mostly of
pairs of letters that often join a token (`data/letter_pairs.json`), Han prose of frequent characters. Where they are missing, each
letter costs what it has alone: one token if its script uses it often, else two, because the first bytes of its block are one token.

Guarantees: deterministic, linear in the text, 0 for the empty text and at least 1 for any other. Cutting a text
anywhere changes the sum by at most `CUT_BOUND` tokens.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import deque
from functools import lru_cache
from itertools import groupby, pairwise

from aether.project import shipped
from aether.text.regex import lazy

# Prices are thousandths of a token: whole numbers add up to the same sum in any order.
TOKEN = 1000
CUT_BOUND = 64
# Longer pieces rarely come again.
_CACHED_PIECES, _CACHED_CHARS = 1 << 14, 48
# Letters of a word that are priced by pairs; longer runs are rarely words.
PAIRED_LETTERS, _FLAT_LETTER, _REPEATED_LETTER = 24, 400, 125

# First character of a block, price of a run, price of a character; a run without a price is one of signs.
_BLOCKS = (
    (0, None, 1476), (0x20, None, 406), (0x7F, None, 1476), (0x80, None, 874), (0x250, None, 1500),
    (0x370, 82, 375), (0x400, 700, 152), (0x530, 528, 305), (0x590, -21, 446), (0x600, 320, 285),
    (0x900, 170, 300), (0x964, None, 1000), (0x970, 170, 300), (0x980, 460, 341), (0xA00, 460, 375), (0xA80, 460, 341),
    (0xB00, 470, 1080), (0xB80, 460, 320), (0xC00, 460, 410), (0xC80, 460, 341), (0xD80, 460, 350), (0xE00, -120, 390),
    (0xE80, 300, 2000), (0xF00, 300, 1800), (0x1000, 300, 400), (0x10A0, 532, 279), (0x1100, None, 2400), (0x1200, None, 2000), (0x13A0, None, 3000), (0x1400, None, 1500), (0x1780, 300, 470),
    (0x1800, None, 1500), (0x1F00, 82, 375), (0x2000, None, 919), (0x200D, None, 800), (0x200E, None, 919),
    (0x2070, None, 1900), (0x20D0, None, 800), (0x2100, None, 1900), (0x2500, None, 1800), (0x25A0, None, 1900),
    (0x2C00, None, 1500), (0x3000, None, 833), (0x3041, -430, 690), (0x3100, None, 1500), (0x3130, 760, 405),
    (0x3190, None, 1500), (0x3400, 0, 3000), (0x4E00, 340, 660), (0xA000, None, 3000), (0xA4D0, None, 1500), (0xAC00, 760, 405),
    (0xD800, None, 1000), (0xE000, None, 3000), (0xF900, 340, 660), (0xFB00, None, 1500), (0xFB1D, -21, 446),
    (0xFB50, 320, 285), (0xFE00, None, 800), (0xFE10, None, 1500), (0xFE70, 320, 285), (0xFF00, None, 833),
    (0xFFF0, None, 1000), (0x10000, None, 3000), (0x1F000, None, 2400), (0x20000, 0, 3000), (0x40000, None, 2150),
)  # fmt: skip
_STARTS = [start for start, _, _ in _BLOCKS]
# Cyrillic beyond Russian, and Han that only traditional Chinese writes.
_TRADITIONAL = "們個這來時為國說對會學過發還開關電話東車長門問間題點種樣實現應該當經體與業務無後裡從動員樂頭見書讓給認識記計設許論請調談議證變結統線組續網紅約級終總練細單將導師張強錯錄鐘鍵閉陣隊際陽難雲頁項順須領頻類顯風飛養馬驗魚麗複雜帶幫幾庫廠輸轉較輕載運選適遠進達違連邊醫釋針銀鎖鏈資質費貨責買賣賞價儲優傳傷備條標權機檢欄檔氣沒決測滿滅狀獨獲環畫異療眾碼確禮稱積穩窗競節範簡簽紀純紙紹絕絡維"
_DEARER = dict.fromkeys("іїєґђјљњћџѓќѕў", 1500) | dict.fromkeys(_TRADITIONAL, 640)
# Letters that few texts of their script have join no token: their price beyond that of a usual letter.
_RARE_LETTER, _RARE_SIGN = 2000, 1900
_MARKS = range(0x300, 0x370)
# Latin beyond the languages of Europe and Vietnam, Cyrillic beyond those with millions of readers, figures and signs of Thai.
_RARE_BLOCKS = (range(0x180, 0x250), range(0x460, 0x500), range(0xE4F, 0xE5C))
_USUAL = frozenset("ơưƠƯșțȘȚǎǐǒǔґҐғҒқҚңҢүҮұҰһҺәӘөӨҗҖ")
# Letters that are looked at together, and the score below which they are not prose: a pair that its script often joins, and
# a Han character that Chinese or Japanese uses often, raises it; any other lowers it. Where a script has many letters, fewer
# pairs of its prose are joined, and each counts for more.
_WINDOW, _NO_PROSE = 16, -1
_OFTEN, _OFTEN_OF_MANY, _MANY = 1, 3, "\u3041"
_LETTERS_ALONE = lazy(r"[\u0370-\u10ff\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]+|\n")
# The characters that make up the greater part of Chinese and Japanese prose.
_FREQUENT_HAN = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经"
    "么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三"
    "又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先"
    "海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计"
    "管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程"
    "北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运试验码错误服器配置文件测试网络据库户端改查删除添"
    "這個們來為國說時會對過發後經現當沒動還進樣實開關點業間問應見產電話給門員論處爾變數報結務場計統區隊決馬書聽達強難權設記類該規萬"
    "覺術領確傳師觀讓識帶導爭運試驗碼錯誤網絡據庫戶測單"
    "気会社実際対応変更場合使用確認処理追加設定必要検索前後毎読書込"
)
_HAN, _HANGUL = range(0x4E00, 0xA000), range(0xAC00, 0xD7A4)
# Thai: consonants, the vowels written above or below one, and the tones written above either.
_THAI_CONSONANTS, _THAI_VOWELS = range(0xE01, 0xE2F), (0xE31, *range(0xE34, 0xE3B))
_THAI_TONES = range(0xE47, 0xE4F)
# Signs and runs of JSON and code that are one token each.
_COMMON_SIGNS = "😂❤😍🤣😊🙏💕😭😘👍👏😁🔥😉👌✨🙂😀👇👉⭐✅✔▶→←↑↓•✓●█─│"
_COMMON_RUNS = frozenset(
    """ ":" "," ":[" ":{" "},{" "}, "}} }}, },{" }] }} ]} }); }, }; ); ()); })) ))) () (); ){ ... --- === :// </ /> -> => != == """.split()
)
_RUN_OF_SIGNS = 183
# "-" goes 64 to a token, a box 7.
_REPEATED_SIGN = {0x20: 20, 0x2500: 150}
# Lengths at which o200k_base needs one more token for a run of white space.
_SPACES_IN_TOKEN, _BREAKS_IN_TOKEN = 128, 16
# Price of a word by the character before it (none, space, "." or "_", other) and shape (lower, Capital, UPPER, mixed).
_WORD = ((-74, 89, -217, 433), (-288, -97, -420, 105), (-9, 212, -242, 446), (436, 708, 547, 1145))
_LETTER = (439, 441, 551, 466)
# Price of a pair of letters: row the first (^ word start, ~ beyond a-z), column the second (a-z, ~, $ word end);
# level 28 is nothing, a step 25 thousandths.
_LEVELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
_PAIR_ROWS = """
    VTVSXWXTTTVXWWYVfVSXTXVbWcaS ODHEpMAHEMMAIDwBYBJDQKRGHNIa KXZgHfecQBYEYp8jhJJNJYjlWhQT
    IcMXDacFIaDJUiEoXBX6GgUdPWNW ObdNFdRgGEZMLRIUdRLSVTcZSZaO FPFHPFGTPRUKJFOHHEHLONJGOSVP
    GeabKIVcDbcPNaLKdMTEIbYZNlHb ZRXWGcOGPYcKZKHjkCTMJSbiaSbR MWoWGchZHmXUY4BRfPf4IfYYaUOW
    LDAAHIDZTQJGJB3CWQGBSOfJmFSg MmaLIVbddaOihIQNefOtUmPmncVe QOeTMOIMMfaWaHdGhgOVRbQkbhMX
    G5YID4EcIcYPVeEKlXNMDOZhCjSS DCLe6YXcJaVLHVGAWhOgMecfcbIR LmFGJLCKPLGQIPIUmeEENTgXeVVT
    KIHFWCEbPB9IKAOKdBRGFTAPKbVd IXMJEgcHLgaCGXAMeDMAOOZVUjKX UaYefidgTlmLefbdQZpd4bddkoef
    ITOKHKIPJhIZIDCQXPLPMaUfJcQR TlQXDVQGLgMbbTNEQJBHGMLsFdVO GWNYFPcAIdRVTcHMFELNKfHO6OLQ
    JCFRBA9ZGvS5IDcCm6F9UbcTZOUe HdXk6cWaBgWZSZHTdTqmbadyiVRY DtdNGdhKFeeUeJFYiMIiZaKdejEW
    GaJdjVoZJidfNeXIflmJaslTVblW TcdhWgcoMfcLUQIWm1G4mRHfLUSL SiXZMdnTUagghRRajhiYOkVWVQXZ
    LP2XTHaRIZfVRIBWPbXeBcRGRjjg
"""
_PAIRS = {
    (first, second): 25 * (_LEVELS.index(level) - 28)
    for first, row in zip("^abcdefghijklmnopqrstuvwxyz~", _PAIR_ROWS.split(), strict=True)
    for second, level in zip("abcdefghijklmnopqrstuvwxyz~$", row, strict=True)
}
_UPPER, _LOWER = "A-ZÀ-ÖØ-Þ", "a-zß-öø-ɏ\u0300-\u036fḀ-ỿ"
_PIECE = lazy(
    rf"[^\r\n0-9{_UPPER}{_LOWER}\u0370-\u1dff\u3040-\U0010ffff]?+(?:[{_UPPER}]*+[{_LOWER}]++|[{_UPPER}]++)(?:'(?:s|t|re|ve|m|ll|d))?"
    rf"|[0-9]{{1,3}}| ?+[^\s0-9{_UPPER}{_LOWER}]++[\r\n/]*+|\s*[\r\n]++|\s+(?!\S)|\s"
)
_BEFORE_WORD = lazy(r" (?=\S)")
_WORD_PARTS = lazy(rf"([^{_UPPER}{_LOWER}]?)([{_UPPER}]*)([{_LOWER}]*)")


def estimate(text: str) -> int:
    """Return the approximate number of tokens of `text`.

    >>> estimate(""), estimate("The tests pass again."), estimate("日本語")
    (0, 5, 2)
    """
    return tokens_of(price(text))


def tokens_of(price: int) -> int:
    """Return a price as whole tokens."""
    return (price + TOKEN // 2) // TOKEN


def price(text: str) -> int:
    """Return the tokens of `text` in thousandths, before they are rounded; cut at line ends, the parts have the same sum."""
    start, *words = _BEFORE_WORD.split(text)
    known = _price_of_pieces(start) + sum(map(_PRICES.__getitem__, words))
    return known if text.isascii() else known + _price_of_no_prose(text)


def _price_of_pieces(text: str) -> int:
    pieces = _PIECE.findall(text)
    return sum([_cached_price(piece) if len(piece) < _CACHED_CHARS else _price(piece) for piece in pieces])


def _price_of_no_prose(text: str) -> int:
    """Return what the letters beyond a-z cost more than in prose; each line starts again from prose."""
    total = score = 0
    weights: deque[int] = deque((0,) * _WINDOW, _WINDOW)
    joined = _joined().get
    for run in _LETTERS_ALONE.findall(text):
        if run == "\n":
            score, weights = 0, deque((0,) * _WINDOW, _WINDOW)
            continue
        last = ""
        for letter in run:
            weight, more, start = _letter_alone(letter)
            if weight is None:
                weight = joined(last + letter, -1) if last else 0
            score += weight - weights[0]
            weights.append(weight)
            if score < _NO_PROSE:
                total += more if last else more + start
            last = letter
    return total


@lru_cache(maxsize=_CACHED_PIECES)
def _letter_alone(letter: str) -> tuple[int | None, int, int]:
    """Return how much `letter` speaks for prose, None if its pair decides; its price alone, and that of a run, beyond the usual."""
    _, base, unit = _BLOCKS[bisect_right(_STARTS, ord(letter)) - 1]
    weight: int | None
    if ord(letter) in _HAN:
        weight, known = (_OFTEN_OF_MANY, True) if letter in _FREQUENT_HAN else (-1, False)
    else:
        weight, known = None if ord(letter) >> 7 in _paired_blocks() else 0, letter in _joined()
    alone = (TOKEN if known else 2 * TOKEN) - unit - _surcharge(letter, "")
    return weight, max(0, alone), max(0, TOKEN - (base or 0))


@lru_cache(maxsize=1)
def _joined() -> dict[str, int]:
    """Return how much a pair of letters that often joins a token speaks for prose; the letters alone are there too."""
    with open(shipped("data/letter_pairs.json"), "rb") as file:
        table = json.loads(file.read())
    return dict.fromkeys(table["alone"], 0) | {
        part: _OFTEN if pairs < _MANY else _OFTEN_OF_MANY for pairs in table["pairs"].values()
        for at in range(0, len(pairs), 2) for part in (pairs[at], pairs[at + 1], pairs[at : at + 2])
    }  # fmt: skip


@lru_cache(maxsize=1)
def _paired_blocks() -> frozenset[int]:
    return frozenset(ord(part) >> 7 for part in _joined() if len(part) == 1)


def _price(piece: str) -> int:
    if piece.isdigit():
        return TOKEN
    if piece.isspace():
        spaces = piece.count(" ")
        tokens = 1 + spaces // _SPACES_IN_TOKEN + (len(piece) - spaces) // _BREAKS_IN_TOKEN
        return TOKEN * (tokens + max(0, piece.count(" \n") - 1))
    before, upper, lower = _WORD_PARTS.match(piece).groups()  # type: ignore[union-attr]
    word = upper + lower
    if not word:
        return _price_of_signs(piece.lstrip(" ").rstrip("\r\n"))
    shape = 0 if not upper else 2 if not lower else 1 if len(upper) == 1 else 3
    lead = 0 if not before else 1 if before == " " else 2 if before in "._" else 3
    head = "".join(letter if "a" <= letter <= "z" else "~" for letter in word[:PAIRED_LETTERS].lower())
    pairs = sum(map(_PAIRS.__getitem__, pairwise(f"^{head}$")))
    tail = pairwise(word[PAIRED_LETTERS - 1 :])
    tail_price = sum(_REPEATED_LETTER if last == letter else _FLAT_LETTER for last, letter in tail)
    rare = 0 if word.isascii() else sum(map(_surcharge, word, f" {word}"))
    return max(TOKEN, _WORD[lead][shape] + _LETTER[shape] * len(head) + pairs + tail_price + rare)


_cached_price = lru_cache(maxsize=_CACHED_PIECES)(_price)


class _Prices(dict[str, int]):
    """The prices of words that come again, each with the space before it: no piece goes on over that space."""

    def __missing__(self, word: str) -> int:
        if len(word) >= _CACHED_CHARS:
            return _price_of_pieces(f" {word}")
        if len(self) >= _CACHED_PIECES:
            self.clear()
        return self.setdefault(word, _price_of_pieces(f" {word}"))


_PRICES = _Prices()


@lru_cache(maxsize=_CACHED_PIECES)
def _surcharge(sign: str, last: str) -> int:
    """Return what `sign` costs behind the sign `last`, beyond the usual price of its block."""
    code, before = ord(sign), ord(last or " ")
    if code in _MARKS:
        return _RARE_LETTER
    if any(code in block for block in _RARE_BLOCKS) and sign not in _USUAL:
        return _RARE_SIGN
    if code in _THAI_VOWELS or code in _THAI_TONES:
        is_usual = before in _THAI_CONSONANTS or (code in _THAI_TONES and before in _THAI_VOWELS)
        return 0 if is_usual else _RARE_SIGN
    if code in _HANGUL or code in _HAN:
        return _DEARER.get(sign, 0) if sign in _usual_syllables() else _RARE_SIGN
    return _DEARER.get(sign, 0)


@lru_cache(maxsize=1)
def _usual_syllables() -> frozenset[str]:
    """Return the characters that the national standards of China, Taiwan, Japan and Korea have for common use."""
    common: set[str] = set(_TRADITIONAL)
    for codec, first, last in (
        ("gb2312", 0xB0, 0xD7),
        ("big5", 0xA4, 0xC6),
        ("shift_jis", 0x88, 0x98),
        ("euc_kr", 0xB0, 0xC8),
    ):
        pairs_of_bytes = (bytes((high, low)) for high in range(first, last + 1) for low in range(0x40, 0xFF))
        common.update(b"".join(pairs_of_bytes).decode(codec, "ignore"))
    return frozenset(common)


def _price_of_signs(signs: str) -> int:
    if signs in _COMMON_RUNS:
        return TOKEN
    total = 0
    for block, run in groupby(signs, lambda sign: bisect_right(_STARTS, ord(sign)) - 1):
        start, base, unit = _BLOCKS[block]
        price, last = base or (0 if total else _RUN_OF_SIGNS), ""
        for sign in run:
            if sign == last and start in _REPEATED_SIGN:
                price += _REPEATED_SIGN[start]
            else:
                price += TOKEN if sign in _COMMON_SIGNS else unit + _surcharge(sign, last)
            last = sign
        total += price if base is None else max(TOKEN, price)
    return max(TOKEN, total)
