"""Erasing: replace a text in one file of a home so that the file stays valid.

The text is found exactly as it is, in NFC and NFD, and in every spelling of these that JSON allows, also of JSON in a
string of JSON: strings are compared decoded, and what is replaced are the characters that they were decoded from.
Sealed files (documents, hand-offs, snapshots, conversations) are sealed again. A journal line that contained the text
keeps its revision and is marked `erased`; its patches still fit the lines around it, but `undo` rejects it. `api.forget`
chooses the files, and `store.rewrite` exchanges them.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple

from aether.errors import AetherError, CorruptDocument
from aether.memory import handoff, snapshots
from aether.memory.capture.notes import title_of
from aether.memory.capture.passages import REQUEST_CHARS
from aether.memory.sessions import STATEMENT_FIELDS
from aether.regular import sealed_body
from aether.schemas import check
from aether.store import documents, files
from aether.store.conversations import FILE as CONVERSATION
from aether.store.journal import Entry
from aether.store.log import seal_json, unsealed
from aether.store.patch import keys_of, pointer
from aether.text.words import sentences
from aether.types import JsonObject

Rewrite = Callable[[str], str]
IsRelevant = Callable[[bytes], bool]

# A shorter text is part of too many words.
MIN_CHARS = 6
# A shorter sentence is too common.
MIN_SENTENCE_CHARS = 20
MARK = re.compile(r"\[ERASED(?:-\d+)?\]")
# Words of provider formats, transcripts and the log, which schemas do not list.
FORMAT_WORDS = (
    "assistant", "arguments", "function_call_output", "tool_calls", "tool_result", "redacted_thinking", "reasoning",
    "encrypted_content", "signature", "cache_control", "ephemeral", "image_url", "input_text", "output_text", "developer",
    "system", "message", "derived", "conversation", "compaction", "receipt", "access", "edited by hand", "forgetting",
    "checksum", "journal", "stamp", "timestamp", "session_answer", "usage",
)  # fmt: skip
# Objects with digests over several texts: these are emptied, since a guess of the text could be tried against them.
_EVIDENCE = ({"sha256_before", "sha256_after"}, {"id", "layer", "part", "sha256"})
# How data starts that gzip compressed.
_GZIP = b"\x1f\x8b"
# A file that was compressed before it was added to the archive has two; more is nobody's.
_MOST_LAYERS = 4
_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip
# How JSON writes a character in a string: the letter after the backslash, if there is one for it.
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = "[0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf'\\(?:u[dD][89abAB]{_HEX}\\u[dD][c-fC-F]{_HEX}|u{_HEX}{_HEX}|["\\/bfnrt])')
# JSON in a string of JSON, and so on: a transcript of a tool that writes JSON has three.
_MOST_LEVELS = 6
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?")


class Wanted(NamedTuple):
    """The texts to erase, as patterns."""

    text: re.Pattern[str]
    raw: re.Pattern[bytes]
    """The same, in UTF-8."""
    escape: re.Pattern[str]
    """An escape that may stand for one of their characters; it is in whatever spells them in another way than `text`."""
    raw_escape: re.Pattern[bytes]


def wanted(texts: Iterable[str]) -> Wanted:
    """Return the patterns that find `texts` in NFC and NFD; without texts they match nothing."""
    spellings = {unicodedata.normalize(form, text) for text in texts for form in ("NFC", "NFD")} | {*texts}
    pattern = "|".join(map(re.escape, sorted(spellings - {""}, key=len, reverse=True))) or r"(?!)"
    letters = "u" + "".join(
        letter for letter, char in _ESCAPES.items() if any(char in text for text in spellings)
    )
    escape = rf"\\[{re.escape(letters)}]"
    raw = pattern.encode("utf-8", "surrogatepass")
    return Wanted(re.compile(pattern), re.compile(raw), re.compile(escape), re.compile(escape.encode()))


def spans(
    wanted: Wanted, text: str, given: Iterable[tuple[int, int]] = (), levels: int = _MOST_LEVELS
) -> list[tuple[int, int]]:
    r"""Return where the wanted texts are in `text`, in order, with `given`, which are to be whole escapes as well.

    >>> spans(wanted(["a/b"]), r"a/b a\/b \u0061/b a\\\u002Fb")
    [(0, 3), (4, 8), (9, 17), (18, 28)]
    """
    every = sorted([*given, *(match.span() for match in wanted.text.finditer(text))])
    if levels and (wanted.escape.search(text) or (every and "\\" in text)):
        decoded, sources, targets = _unescaped(text)

        def below(place: int, *, is_end: bool) -> int:
            nth = bisect_right(sources, place) - 1
            # Within an escape, which are the odd ones: before it, or behind it.
            past = is_end if nth % 2 else place - sources[nth]
            return targets[nth] + (past if place > sources[nth] else 0)

        def above(place: int) -> int:
            nth = bisect_right(targets, place) - 1
            return sources[nth] + place - targets[nth]

        inner = [(below(start, is_end=False), below(end, is_end=True)) for start, end in every]
        return [(above(start), above(end)) for start, end in spans(wanted, decoded, inner, levels - 1)]
    merged: list[tuple[int, int]] = []
    for start, end in every:
        last = merged.pop() if merged and start < merged[-1][1] else (start, end)
        merged.append((last[0], max(end, last[1])))
    return merged


def _unescaped(text: str) -> tuple[str, array[int], array[int]]:
    """Return `text` with its escapes decoded, the start and the end of each in `text`, and the same in the result."""
    pieces, sources, targets = [], array("Q", [0]), array("Q", [0])
    for match in _ESCAPE.finditer(text):
        pieces += [
            text[sources[-1] : match.start()],
            _ESCAPES.get(match[0][1]) or json.loads(f'"{match[0]}"'),
        ]
        start = targets[-1] + match.start() - sources[-1]
        sources.extend(match.span())
        targets.extend((start, start + 1))
    return "".join((*pieces, text[sources[-1] :])), sources, targets


def is_in(wanted: Wanted, data: bytes) -> bool:
    """Return whether a wanted text is in `data`; an escaped one is in one line, as all strings of JSON are."""
    if wanted.raw.search(data) or not wanted.raw_escape.search(data):
        return bool(wanted.raw.search(data))
    lines = (line for line in data.splitlines() if wanted.raw_escape.search(line))
    return any(spans(wanted, line.decode("utf-8", "surrogateescape")) for line in lines)


def replaced(wanted: Wanted, text: str, replacement: Rewrite) -> str:
    """Return `text` with the `replacement` of each wanted text in its place."""
    pieces, last = [], 0
    for start, end in spans(wanted, text):
        pieces += [text[last:start], replacement(text[start:end])]
        last = end
    return "".join((*pieces, text[last:]))


def marks(spellings: Iterable[str], *, taken: Iterable[str]) -> dict[str, str]:
    """Return a mark for each of `spellings` that is not in `taken`: keys and ids that differ must still differ.

    >>> marks(["hunter2", "swordfish"], taken=["[ERASED-2]"])
    {'hunter2': '[ERASED]', 'swordfish': '[ERASED-3]'}
    """
    used = {*taken}
    every = (f"[ERASED-{number}]" if number > 1 else "[ERASED]" for number in count(1))
    free = (mark for mark in every if mark not in used)
    return dict(zip(dict.fromkeys(spellings), free, strict=False))


@lru_cache(maxsize=1)
def _reserved() -> str:
    """Return the names and values that schemas fix, one a line."""
    reserved_words = {*Entry._fields, *FORMAT_WORDS, *documents.NAMES}
    for name in (*documents.NAMES, "session_answer", "usage"):
        for part in _objects_in(check.schema(name)):
            values = (*part.get("properties", ()), *part.get("enum", ()), part.get("const"))
            reserved_words.update(value for value in values if isinstance(value, str))
    return "\n".join(reserved_words)


def is_reserved(text: str) -> bool:
    """Return whether `text` is part of a word that the formats of a home use, or a time.

    >>> is_reserved("memory"), is_reserved("2026-03-01"), is_reserved("hunter2")
    (True, True, False)
    """
    return bool(_MOMENT.fullmatch(text)) or text in _reserved()


def objects(path: str, data: bytes) -> Iterator[JsonObject]:
    """Yield every JSON object in the file at `path`, the inner ones too."""
    parts = data.splitlines() if path.endswith(".jsonl") else [data] if path.endswith(".json") else []
    for part in parts:
        yield from _objects_in(_parsed(part))


def _objects_in(value: Any) -> Iterator[JsonObject]:
    """Yield `value` and the values in it that are objects."""
    level = [value]
    while level:
        node = level.pop()
        if isinstance(node, dict):
            yield node
        level += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def texts_of(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of an item, a session, a pattern or a signal, each whole and in its sentences."""
    metadata = entry.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    content = entry.get("content")
    about = metadata.get("proposal")
    quote = about.get("quote") if isinstance(about, dict) else None
    candidates = [content, quote, entry.get("pattern"), metadata.get("context"), metadata.get("reply")]
    if isinstance(content, str) and title_of(content).endswith("…"):
        # A conversation is named by the start of its first request, and answers quote that of theirs.
        candidates += [title_of(content), " ".join(content.split())[:REQUEST_CHARS]]
    parts: list[tuple[Any, tuple[str, ...]]] = [(metadata.get("evidence"), ("text",))]
    if "session_id" in entry:
        candidates += [
            entry.get("summary"),
            *(metadata.get("protected") or []),
            *(metadata.get("ended") or []),
        ]
        parts += [(metadata.get("items"), ("content",)), (metadata.get("proposals"), ("text", "quote"))]
        parts += ((entry.get(part), fields) for part, fields in STATEMENT_FIELDS.items())
    for inner, fields in parts:
        objects = (
            [inner_object for inner_object in inner if isinstance(inner_object, dict)]
            if isinstance(inner, list)
            else []
        )
        candidates += [inner_object.get(field) for inner_object in objects for field in fields]
    for text in candidates:
        if isinstance(text, str) and text.strip():
            yield text
            yield from (sentence for sentence in sentences(text) if len(sentence) >= MIN_SENTENCE_CHARS)


def digests(value: Any, erase: Rewrite) -> dict[str, str]:
    """Return the digests of `value`, a text or an item, in receipts and hand-offs, each with its replacement."""
    if isinstance(value, str):
        return {_sha(value): _sha(erase(value))}
    try:
        return {handoff.item_digest(value): handoff.item_digest(map_strings(value, erase))}
    except (KeyError, TypeError, AttributeError):  # not an item
        return {}


def _sha(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def conversation_of(path: str, data: bytes) -> str | None:
    """Return the id of the conversation whose log is at `path`, or None."""
    if not path.startswith("conversations/") or not path.endswith(f"/{CONVERSATION}"):
        return None
    return (unsealed(data[: data.find(b"\n") + 1]) or {}).get("conversation")


def unwrapped(data: bytes, wanted: Wanted | None = None, *, where: str) -> tuple[bytes, tuple[str, ...]]:
    """Return what is in `data`, uncompressed and in UTF-8, and the layers around it, the outer one first.

    What looks like UTF-16 or UTF-32 and holds what is `wanted` as it is, stays as it is.

    Raises:
        CorruptDocument: it is compressed, or starts as UTF-16 or UTF-32, and is damaged.
    """
    layers: list[str] = []
    while len(layers) < _MOST_LAYERS and data.startswith((files.ZSTD, _GZIP)):
        is_gzip = data.startswith(_GZIP)
        data = (files.gunzipped if is_gzip else files.unpacked)(data, where=where)
        layers.append("gzip" if is_gzip else "zstd")
    encoding = next((name for bom, name in _BOMS.items() if data.startswith(bom)), json.detect_encoding(data))
    if encoding.startswith(("utf-16", "utf-32")) and not (wanted and wanted.raw.search(data)):
        try:
            data = data.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
            layers.append(encoding)
        except UnicodeError as reason:  # no text, but a picture, say
            if data.startswith(tuple(_BOMS)):
                what = f"damaged ({encoding} that was cut off)."
                raise CorruptDocument(what, fix="Look at it, then remove it.", where=where) from reason
    return data, tuple(layers)


def wrapped(data: bytes, layers: Iterable[str]) -> bytes:
    """Return `data` in the layers from which `unwrapped` took it."""
    for layer in reversed([*layers]):
        if layer == "gzip":
            data = gzip.compress(data, mtime=0)
        elif layer == "zstd":
            data = files.packed(data)
        else:
            data = data.decode("utf-8", "surrogatepass").encode(layer, "surrogatepass")
    return data


def rewrite_file(path: str, data: bytes, erase: Rewrite, concerns: IsRelevant = bool) -> bytes:
    """Return the file at `path`, relative to its home, with `erase` applied; the same bytes if nothing changes.

    In a file of lines, `erase` is applied to the lines for which `concerns` is true.
    """
    if path.endswith(".jsonl"):
        lines = data.splitlines(keepends=True)
        return b"".join(_line(line, erase) if concerns(line) else line for line in lines)
    if sealed_body(data) is not None:  # a waiting event of a hook
        return _line(data, erase)
    value = _parsed(data) if path.endswith(".json") and not path.startswith("memories/") else None
    return _raw(data, erase) if value is None else _whole(data, value, erase)


def _line(line: bytes, erase: Rewrite) -> bytes:
    body = sealed_body(line)
    value = _parsed(line if body is None else body)
    if value is None or not line.endswith(b"\n"):
        return _raw(line, erase)
    is_entry = body is not None and "operation" in value
    erased_value = _transaction(value, erase) if is_entry else map_strings(value, erase)
    if erased_value == value:
        return line
    if body is None:
        return files.json_line(erased_value) + b"\n"
    # A line in which only a digest was emptied can still be undone.
    gained_mark = is_entry and len(MARK.findall(str(erased_value))) > len(MARK.findall(str(value)))
    return seal_json({**erased_value, "erased": True} if gained_mark else erased_value)


def _transaction(fields: JsonObject, erase: Rewrite) -> JsonObject:
    """Return the fields of a journal line with `erase` applied, except to those that the log reads."""
    erased = {
        **fields,
        "by": erase(fields.get("by", "")),
        "appends": map_strings(fields.get("appends", {}), erase),
    }
    if fields["operation"] != "undo":  # its reason names the revision
        erased["reason"] = erase(fields.get("reason", ""))
    for name in ("patches", "inverse"):
        erased[name] = {
            document: [_step(step, erase) for step in patch]
            for document, patch in fields.get(name, {}).items()
        }
    return {name: value for name, value in erased.items() if value or name in fields}


def _step(step: JsonObject, erase: Rewrite) -> JsonObject:
    erased = {**step, **({"value": map_strings(step["value"], erase)} if "value" in step else {})}
    for field in {"path", "from"} & step.keys():
        erased[field] = pointer(*map(erase, keys_of(step[field])))
    return erased


def _whole(data: bytes, value: Any, erase: Rewrite) -> bytes:
    document = documents.parse(data, where="erasing")
    if document.state == "good":
        erased = map_strings(document.value, erase)
        return (
            data if erased == document.value else documents.encode(erased, document.revision, size=len(data))
        )
    erased = map_strings(value, erase)
    if erased == value:
        return data
    if isinstance(value, dict) and "checksum" in value:
        erased["checksum"] = _checksum(value, erased)
    return files.json_document(erased, size=len(data))


def _checksum(before: JsonObject, after: JsonObject) -> Any:
    """Return the checksum of a snapshot or a hand-off, a new one if it was right before."""
    if "documents" in before:
        was_intact = before["checksum"] == snapshots.checksum(before["documents"])
        return snapshots.checksum(after["documents"]) if was_intact else before["checksum"]
    try:
        handoff.require_intact(before, where="")
    except AetherError:
        return before["checksum"]
    content = {field: value for field, value in after.items() if field not in ("checksum", "prompt")}
    return handoff.seal(content, after["prompt"])["checksum"]  # type: ignore[arg-type]  # whole, as was just seen


def _raw(data: bytes, erase: Rewrite) -> bytes:
    return erase(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _parsed(data: bytes) -> Any:
    try:
        return files.parse_json(data, where="erasing")
    except AetherError:
        return None


def map_strings(value: Any, erase: Rewrite) -> Any:
    """Return `value` with `erase` applied to every string in it, keys included.

    >>> map_strings({"a": ["b", 1], "c": {"b": None}}, lambda text: text.replace("b", "*"))
    {'a': ['*', 1], 'c': {'*': None}}
    """
    if isinstance(value, str):
        return erase(value)
    if isinstance(value, list):
        return [map_strings(below, erase) for below in value]
    if not isinstance(value, dict):
        return value
    mapped = {erase(key): map_strings(below, erase) for key, below in value.items()}
    for fields in _EVIDENCE:
        if fields <= mapped.keys():
            mapped |= {field: "" for field in fields if field.startswith("sha256")}
    return mapped
