"""Erasing: replace a text in one file of a home so that the file stays valid.

The text is found exactly as it is, in NFC and NFD, and as JSON escapes each of these, also inside a string of JSON.
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Any

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
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?")


def forms(texts: Iterable[str]) -> list[str]:
    r"""Return each of `texts` in all searched forms, longest first.

    >>> forms(['a"b'])
    ['a\\\\\\"b', 'a\\"b', 'a"b']
    """
    spellings = {unicodedata.normalize(form, text) for text in texts for form in ("NFC", "NFD")} | {*texts}
    for _ in range(2):
        spellings |= {
            json.dumps(text, ensure_ascii=flag)[1:-1] for text in spellings for flag in (True, False)
        }
    return sorted(spellings - {""}, key=lambda text: (-len(text), text))


def pattern_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that finds `texts` in all their forms; it matches nothing without texts."""
    return re.compile("|".join(map(re.escape, forms(texts))) or r"(?!)")


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


def unwrapped(
    data: bytes, raw: re.Pattern[bytes] | None = None, *, where: str
) -> tuple[bytes, tuple[str, ...]]:
    """Return what is in `data`, uncompressed and in UTF-8, and the layers around it, the outer one first.

    What looks like UTF-16 or UTF-32 and holds what `raw` matches as it is, stays as it is.

    Raises:
        CorruptDocument: it is compressed, or starts as UTF-16 or UTF-32, and is damaged.
    """
    layers: list[str] = []
    while len(layers) < _MOST_LAYERS and data.startswith((files.ZSTD, _GZIP)):
        is_gzip = data.startswith(_GZIP)
        data = (files.gunzipped if is_gzip else files.unpacked)(data, where=where)
        layers.append("gzip" if is_gzip else "zstd")
    encoding = next((name for bom, name in _BOMS.items() if data.startswith(bom)), json.detect_encoding(data))
    if encoding.startswith(("utf-16", "utf-32")) and not (raw and raw.search(data)):
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
