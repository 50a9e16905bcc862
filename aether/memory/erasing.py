"""Erasing: one function on strings, applied to everything that a file of a home holds, so that the file stays whole.

What was sealed (journal lines, documents, hand-offs, snapshots, conversations) is sealed anew, revisions keep their
numbers, and a patch names by its path what it named before. A digest that is known to be of an erased text becomes that of
what took its place, or is emptied; `docs/security.md` says which are left. Which spellings there are is `text.erasing`'s
to know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

from aether.errors import AetherError
from aether.memory import handoff, snapshots
from aether.memory.mentions import STATEMENTS
from aether.schemas import check
from aether.shapes import JsonObject
from aether.store import codec, documents, journal
from aether.store.conversation_log import FILE as CONVERSATION
from aether.store.journal import Entry
from aether.store.patch import keys_of, pointer
from aether.text.words import sentences

Rewrite = Callable[[str], str]
Concerns = Callable[[bytes], bool]

# Schemas do not say these: words of the providers' messages, of transcripts, and of the log.
WIRE_WORDS = (
    "assistant", "arguments", "function_call_output", "tool_calls", "tool_result", "redacted_thinking", "reasoning",
    "encrypted_content", "signature", "cache_control", "ephemeral", "image_url", "input_text", "output_text", "developer",
    "system", "message", "derived", "conversation", "compaction", "receipt", "access", "edited by hand", "forgetting",
    "checksum", "journal", "stamp", "timestamp",
)  # fmt: skip
# Digests over several texts, kept for evidence only.
_EMPTIED = (
    frozenset({"sha256_before", "sha256_after"}),
    frozenset({"id", "layer", "part", "sha256"}),
)
# What a receipt of forgetting holds, which says nothing itself.
MARK_OF_FORGETTING = b'"forgotten":['
# What a receipt of a compaction holds: of one in a conversation that held the text, the digests are emptied.
MARK_OF_COMPACTION = b'"sha256_before"'
_DIGEST = re.compile(r"[0-9a-f]{64}|[0-9a-f]{16}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?")
_DOCUMENTS = (*documents.NAMES, "session_answer", "usage")
# A sentence of a note that is shorter may be anybody's.
LEAST_SENTENCE_CHARS = 20


@lru_cache(maxsize=1)
def _words() -> tuple[str, ...]:
    """Return the names and values that schemas fix."""
    found: set[str] = {*Entry._fields, *WIRE_WORDS, *_DOCUMENTS}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.update(value.get("properties", {}))
            found.update(
                each for each in (*value.get("enum", []), value.get("const")) if isinstance(each, str)
            )
        for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(below)

    for name in _DOCUMENTS:
        walk(check.schema(name))
    return tuple(word.casefold() for word in found)


def is_reserved(text: str) -> bool:
    """Tell whether `text` is part of a word that the files of a home are built of, or of a moment.

    >>> is_reserved("memory"), is_reserved("2026-03-01"), is_reserved("hunter2")
    (True, True, False)
    """
    return bool(_MOMENT.fullmatch(text)) or any(text.casefold() in word for word in _words())


def dicts(value: Any) -> Iterator[JsonObject]:
    """Yield every object in `value`."""
    level = [value]
    while level:
        one = level.pop()
        if isinstance(one, dict):
            yield one
        level += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


def values_of(path: str, data: bytes, concerns: Concerns = bool) -> Iterator[Any]:
    """Yield the JSON values in the file at `path`; of many lines those that are of concern."""
    for part in data.splitlines() if path.endswith(".jsonl") else [data] if path.endswith(".json") else ():
        value = _parsed(part) if concerns(part) else None
        if value is not None:
            yield value


def texts_of(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an item, a session, a pattern or a signal says, in one piece and in its sentences."""
    said = [entry.get("content"), entry.get("pattern"), *_texts(entry.get("evidence"), ("text",))]
    metadata = entry.get("metadata")
    if isinstance(metadata, dict):
        said += [metadata.get("context"), *(metadata.get("protected") or [] if "session_id" in entry else [])]
    if "session_id" in entry:
        said.append(entry.get("summary"))
        for part, fields in STATEMENTS.items():
            said += _texts(entry.get(part), fields)
    for text in said:
        if isinstance(text, str) and text.strip():
            yield text
            yield from (one for one in sentences(text) if len(one) >= LEAST_SENTENCE_CHARS)


def _texts(entries: Any, fields: tuple[str, ...]) -> Iterator[Any]:
    for entry in entries if isinstance(entries, list) else ():
        yield from (entry.get(field) for field in fields if isinstance(entry, dict))


def digests(held: str, erase: Rewrite) -> dict[str, str]:
    """Return the digest of a text that was erased, and what it is now."""
    return {_sha(held): _sha(erase(held))}


def item_digests(entry: JsonObject, erase: Rewrite) -> dict[str, str]:
    """Return the digest by which a hand-off knows an item, and what it is now; nothing for what is no item."""
    try:
        return {handoff.digest(entry): handoff.digest(mapped(entry, erase))}  # type: ignore[arg-type]  # a KeyError says that it is none
    except (KeyError, TypeError, AttributeError):
        return {}


def _sha(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def with_digests(erase: Rewrite, known: Mapping[str, str]) -> Rewrite:
    """Return `erase`, which also replaces the digests in `known`."""
    return lambda text: known.get(text) or erase(text)


def found_digests(data: bytes) -> set[str]:
    """Return what may be a digest in `data`."""
    return set(_DIGEST.findall(data.decode("ascii", "replace")))


def mapped(value: Any, erase: Rewrite, *, patch: bool = False) -> Any:
    """Return `value` with `erase` applied to every string in it, keys included; in a `patch` also to each key of a path.

    >>> mapped({"a": ["b", 1], "c": {"b": None}}, lambda text: text.replace("b", "*"))
    {'a': ['*', 1], 'c': {'*': None}}
    """
    if isinstance(value, str):
        return erase(value)
    if isinstance(value, list):
        return [_step(below, erase) if patch else mapped(below, erase) for below in value]
    if not isinstance(value, dict):
        return value
    made = {erase(key): mapped(below, erase) for key, below in value.items()}
    for fields in _EMPTIED:
        if fields <= made.keys():
            made |= {field: "" for field in fields if "sha256" in field}
    return made


def _step(step: JsonObject, erase: Rewrite) -> JsonObject:
    made = {**step}
    for field in ("path", "from"):
        if field in step:
            made[field] = pointer(*map(erase, keys_of(step[field])))
    return made | ({"value": mapped(step["value"], erase)} if "value" in step else {})


def transaction(fields: JsonObject, erase: Rewrite) -> JsonObject:
    """Return the fields of a journal line; what the log itself reads in them stays as it is."""
    made: JsonObject = {}
    for name, value in fields.items():
        if name in ("patches", "inverse"):
            made[name] = {document: mapped(patch, erase, patch=True) for document, patch in value.items()}
        elif name in ("appends", "by") or (name == "reason" and fields["operation"] != "undo"):
            made[name] = mapped(value, erase)
        else:
            made[name] = value
    return made


def rewritten(path: str, data: bytes, erase: Rewrite, concerns: Concerns = bool) -> bytes:
    """Return the file at `path`, relative to its home, with `erase` applied; the very bytes where it changes nothing.

    Of many lines only those that are of concern are looked at.
    """
    if path.endswith(".jsonl"):
        lines = data.splitlines(keepends=True)
        return b"".join(_line(line, erase) if concerns(line) else line for line in lines)
    if path.endswith(".json") and not path.startswith("memories/"):
        value = _parsed(data)
        if value is not None:
            return _whole(path, data, value, erase)
    return _raw(data, erase)


def _raw(data: bytes, erase: Rewrite) -> bytes:
    return erase(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _parsed(data: bytes) -> Any:
    try:
        return codec.parse(data, where="erasing")
    except AetherError:
        return None


def _line(line: bytes, erase: Rewrite) -> bytes:
    body = journal.sealed_body(line)
    value = _parsed(line if body is None else body)
    if value is None or not line.endswith(b"\n"):
        return _raw(line, erase)
    if isinstance(value, dict) and "operation" in value and body is not None:
        made = transaction(value, erase)
    else:
        made = mapped(value, erase)
    if made == value:
        return line
    return codec.line(made) + b"\n" if body is None else journal.sealed(made)


def _whole(path: str, data: bytes, value: Any, erase: Rewrite) -> bytes:
    found = documents.parse(data, where=path)
    made = mapped(found.value if found.state == "good" else value, erase)
    if made == (found.value if found.state == "good" else value):
        return data
    if found.state == "good":
        return documents.encode(made, found.revision, size=len(data))
    if isinstance(value, dict) and "checksum" in value:
        made["checksum"] = _checksum(value, made)
    return codec.document(made, size=len(data))


def _checksum(before: JsonObject, after: JsonObject) -> Any:
    """Return the checksum of a snapshot or a hand-off, if it held before."""
    if "documents" in before:
        whole = before["checksum"] == snapshots.checksum(before["documents"])
        return snapshots.checksum(after["documents"]) if whole else before["checksum"]
    try:
        handoff.require_whole(before, where="")
    except AetherError:
        return before["checksum"]
    rest = {field: value for field, value in after.items() if field not in ("checksum", "prompt")}
    return handoff.sealed(rest, after["prompt"])["checksum"]  # type: ignore[arg-type]  # whole, as was just seen


def conversation_of(path: str, data: bytes) -> str | None:
    """Return the id of the conversation whose log is at `path`, None where there is none."""
    if not path.startswith("conversations/") or not path.endswith(f"/{CONVERSATION}"):
        return None
    header = journal.unsealed(data[: data.find(b"\n") + 1]) or {}
    return header.get("conversation")
