"""Secrets in another form: texts in base64, and seed phrases.

A block of base64 is decoded once, and replaced whole if the text in it holds a secret. A seed phrase is 12 to 24 words of
the list of BIP-39 whose last bits are a checksum of the others, so that hardly any sentence is taken for one.
"""

from __future__ import annotations

import json
from functools import lru_cache

from aether.project import shipped
from aether.redact.rules import look, replaced
from aether.redact.values import decoded
from aether.text.regex import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from aether.redact.rules import Look

# A shorter block holds no assignment of a secret.
_LEAST_BLOCK, _MOST_BLOCK = 32, 1 << 16
_BLOCK = lazy(r"[A-Za-z0-9+/_-]{32,}+={0,2}")
# A block may go on behind a line break.
_LINE = lazy(r"(?:\r?\n|\\{1,4}n)[ \t]{0,16}[A-Za-z0-9+/_-]{2,}+={0,2}")
_ESCAPED_BREAK = lazy(r"\\+n|\s")
# Words of a phrase, and the bits that are their checksum.
_SEED_COUNTS = {24: 8, 21: 7, 18: 6, 15: 5, 12: 4}
_LEAST_SEEDS = min(_SEED_COUNTS)
_LEAST_RUN = bytes([True]) * _LEAST_SEEDS
# A longer run is of the list itself.
_MOST_SEEDS = 48
# Different words of the list in a text that holds a phrase: some may be there twice.
_LEAST_DIFFERENT = 9
# Twelve words of three letters, and the signs between them.
_LEAST_PHRASE = b"a" * (_LEAST_SEEDS * 4 - 1)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Letters to `a`, what is between the words of a phrase to `b`, all else to blanks. Behind a hint the words may be numbered.
_OF_PHRASES, _OF_LISTS = (
    bytes(97 if chr(byte) in _LETTERS else 98 if chr(byte) in between else 32 for byte in range(256))
    for between in (" \t\r\n,", " \t\r\n,.):;0123456789\"'[]-")
)
_JOINED = bytes.maketrans(b"b", b"a")
# No word of the list has one letter, two, or nine: most sentences end a run here.
_NO_SEEDS = (b"bab", b"baab", b"a" * 9)
_HINTS = frozenset({"seed", "mnemonic", "recovery", "phrase", "wallet"})
_LONGEST_LIST = 600
_SEED = lazy(r"[a-z]+")


def without_encoded(text: str, *, plain: Callable[[str], str]) -> str:
    """Return `text` without seed phrases, and without the blocks of base64 whose text `plain` changes.

    >>> without_encoded("REJfUEFTU1dPUkQ9aHVudGVyMgpERUJVRz1mYWxzZQo=", plain=lambda text: text.replace("hunter2", ""))
    '<REDACTED>'
    """
    seen = look(text)
    spans = [*_blocks(text, seen, plain), *_phrases(seen)]
    return replaced(text, spans) if spans else text


def _blocks(text: str, seen: Look, plain: Callable[[str], str]) -> Iterator[tuple[int, int]]:
    """Yield the places of the blocks that hold a secret: the whole of a block of several lines, else one of its lines."""
    for word in seen.tokens.split():
        for block in _BLOCK.finditer(word) if len(word) >= _LEAST_BLOCK else ():
            if not _text_in(block[0][:_LEAST_BLOCK]):
                continue
            index = text.find(block[0])
            while index >= 0:
                ends = _ends(text, index + len(block[0]))
                # The last line may be of other text.
                for end in reversed(ends[:1] + ends[-2:]):
                    content = _text_in(_ESCAPED_BREAK.sub("", text[index:end]))
                    if content and plain(content) != content:
                        yield index, end
                        break
                index = text.find(block[0], ends[-1])


def _ends(text: str, end: int) -> list[int]:
    """Return the end of the first line of a block, and those of the lines behind it."""
    ends, most = [end], end + _MOST_BLOCK
    while text[ends[-1] - 1] != "=" and (line := _LINE.match(text, ends[-1], most)):
        ends.append(line.end())
    return ends


def _text_in(block: str) -> str:
    """Return the text that `block` is in base64, as a file of settings is; empty for other bytes."""
    content = decoded(block)
    is_text = content.isascii() and all(byte > 31 or byte in b"\t\r\n" for byte in content)
    return content.decode("ascii") if is_text else ""


def _phrases(seen: Look) -> Iterator[tuple[int, int]]:
    """Yield the places of seed phrases."""
    if len(seen.words) < _LEAST_DIFFERENT:
        return
    runs = [*_long_runs(seen.folded, _OF_PHRASES)]
    for start, end in _around_hints(seen):
        runs += [
            (start + first, start + last) for first, last in _long_runs(seen.folded[start:end], _OF_LISTS)
        ]
    places = _seed_places() if runs else {}
    if sum(map(places.__contains__, seen.words)) < _LEAST_DIFFERENT:
        return
    for start, end in runs:
        part = seen.folded[start:end]
        # To split is three times as fast as to search for words.
        words = _SEED.findall(part) if "." in part or ")" in part else part.replace(",", " ").split()
        if _LEAST_RUN not in bytes(map(places.__contains__, words)):
            continue
        run: list[tuple[int, int, int]] = []
        for word in _SEED.finditer(seen.folded, start, end):
            place = places.get(word[0], -1)
            if place >= 0:
                run.append((place, *word.span()))
                continue
            if len(run) >= _LEAST_SEEDS:
                yield from _in_run(run)
            run = []
        if len(run) >= _LEAST_SEEDS:
            yield from _in_run(run)


def _around_hints(seen: Look) -> Iterator[tuple[int, int]]:
    """Yield the places of the text behind each hint, where the words of a phrase may be numbered; none twice."""
    for hint in _HINTS.intersection(seen.words):
        index = seen.folded.find(hint)
        while index >= 0:
            yield index, index + _LONGEST_LIST
            index = seen.folded.find(hint, index + _LONGEST_LIST)


def _long_runs(text: str, signs: bytes) -> Iterator[tuple[int, int]]:
    """Yield the places of the runs of signs of phrases that are long enough for one."""
    # As many bytes as characters: one that is not ASCII is no sign of a phrase.
    mapped = text.encode("ascii", "replace").translate(signs)
    for word in _NO_SEEDS:
        mapped = mapped.replace(word, b" " * len(word))
    mapped = mapped.translate(_JOINED)
    start = mapped.find(_LEAST_PHRASE)
    while start >= 0:
        end = mapped.find(b" ", start)
        end = len(mapped) if end < 0 else end
        yield start, end
        start = mapped.find(_LEAST_PHRASE, end)


def _in_run(run: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the places of the phrases in a run of words of the list, each with its number and its span."""
    first = 0
    while first <= min(len(run), _MOST_SEEDS) - _LEAST_SEEDS:
        count = next((count for count in _SEED_COUNTS if _is_phrase(run[first : first + count], count)), 0)
        if count:
            yield run[first][1], run[first + count - 1][2]
        first += count or 1


def _is_phrase(words: Sequence[tuple[int, int, int]], count: int) -> bool:
    """Return whether the checksum of `words` fits; the words of a sorted list are no phrase."""
    numbers = [number for number, _, _ in words]
    if len(numbers) < count or numbers == sorted(numbers):
        return False
    from hashlib import sha256  # seldom needed

    bits, value = _SEED_COUNTS[count], 0
    for number in numbers:
        value = value << 11 | number
    entropy = (value >> bits).to_bytes(count * 4 // 3, "big")
    return sha256(entropy).digest()[0] >> (8 - bits) == value & ((1 << bits) - 1)


@lru_cache(maxsize=1)
def _seed_places() -> dict[str, int]:
    """Return the words of BIP-39, each with its place in the list."""
    with open(shipped("data/seed_words.json"), "rb") as file:
        words: str = json.loads(file.read())["words"]
    return {word: place for place, word in enumerate(words.split())}
