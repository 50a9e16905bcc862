"""Deduplication: which captured notes can be stored, and which are stored already by an import or by hooks.

A note has a key that never changes. Hooks name an event otherwise than its transcript does, so a note of hooks and one of
an import are the same if transcript, type and text are (`text_key`). Two notes of the same origin are never compared that
way: an act that was repeated is noted twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from aether import regular
from aether.api.hook_sessions import HOOKS
from aether.errors import InvalidInput
from aether.memory import gate, items
from aether.memory.items import COPY_PREFIX, REMOVED
from aether.memory.layers import instant_text
from aether.store import files, record_files
from aether.store.snapshot import Snapshot
from aether.types import Counter, JsonObject

# Items of one commit: enough that the disk does not dominate, few enough to lose little in a crash.
BATCH_ITEMS = 500
# About a tenth of a working memory of the usual size.
BATCH_CHARS = 80_000
# A batch must fit into a small one whole: few scripts take more than two tokens for a character.
BATCH_CHARS_PER_TOKEN = 0.5
# Among known keys, if there are keys of texts: a draft's is not made without.
SAID = "said"
# A longer archive is asked through its index: to read one as long takes as long as to import the index.
SCANNED_BYTES = 4 << 20
# An item is nested below the document, working memory and the list of items.
NESTING_ABOVE = 3


def note_key(entry: Any) -> str:
    """Return the key of a draft or an item; empty if it was not captured."""
    return str(_pointer(entry).get("key", ""))


def text_key(entry: Any) -> str:
    """Return one key of the text, the type and the transcript of a draft or an item.

    The work of a sub-agent is in a file of its own and in that of its session, so the file is left out.
    """
    by_worker = entry.get("caste") or entry["metadata"].get("caste")
    file = "" if by_worker else _pointer(entry).get("file", "")
    words = f"{file}\0{entry['type']}\0{entry['content']}"
    return f"{SAID} {regular.digest(words.encode('utf-8', 'surrogatepass'))[:32]}"


def copy_key(entry: Any, before: dict[str, int]) -> str:
    """Return the key of a draft that is the same in every copy of its conversation; `before` counts those of the same words."""
    texts = f"{entry['metadata'].get('conversation')}\0{entry['type']}\0{entry['content']}"
    words = regular.digest(texts.encode("utf-8", "surrogatepass"))[:32]
    before[words] = before.get(words, 0) + 1
    return f"{COPY_PREFIX}{words} {before[words]}"


def is_from_hooks(entry: Any) -> bool:
    """Return whether a draft or an item comes from hooks."""
    return bool(_pointer(entry).get("via") == HOOKS)


def known_keys(
    snapshot: Snapshot, *, to_hooks: bool, files: Collection[str] = (), keys: Collection[str] = (),
    conversations: Collection[str] = (), after: int = -1,
) -> set[str]:  # fmt: skip
    """Return the keys of all captured entries, the text keys of those of the other origin, and the ids of passages for an import.

    The archive is read `after` that position. Hooks compare texts only with the items of the transcripts in `files`; an
    import compares with all items of hooks. With `keys`, other keys of the archive may be left out, and with
    the ids of their `conversations` what is neither of these nor of `files`: a hook waits for this.
    """
    matches: set[str] = set()
    for entry in _stored(snapshot, after, keys, files if keys else (), conversations):
        metadata = entry["metadata"]
        if "pointer" not in metadata and "places" not in metadata:
            continue  # it was not captured
        pointer = _pointer(entry)
        matches.add(str(pointer.get("key", "")))
        matches.update(str(place.get("key", "")) for place in _places(entry))
        if not to_hooks and entry["type"] == items.HISTORY:
            matches.add(entry["id"])
        by_hooks = bool(pointer.get("via") == HOOKS)
        if by_hooks != to_hooks and (not to_hooks or pointer.get("file") in files):
            matches |= {text_key(entry), SAID}
    return matches - {""}


def phases_by_file(snapshot: Snapshot) -> dict[str, set[int]]:
    """Return the phases of the stored entries by the name of their transcript, "" for those that were not imported."""
    matches: dict[str, set[int]] = {}
    for entry in _stored(snapshot, -1):
        phase = entry["metadata"].get("phase")
        if isinstance(phase, int):
            file = "" if is_from_hooks(entry) else str(_pointer(entry).get("file", ""))
            matches.setdefault(file, set()).add(phase)
    return matches


def conversations(snapshot: Snapshot) -> set[str]:
    """Return the ids of the conversations of which something is stored that is not from a copy."""
    entries = (entry for entry in _stored(snapshot, -1) if not note_key(entry).startswith(COPY_PREFIX))
    return {str(entry["metadata"].get("conversation", "")) for entry in entries}


def is_known(draft: Any, known: Collection[str]) -> bool:
    """Return whether `draft` is stored already."""
    return note_key(draft) in known or (SAID in known and text_key(draft) in known)


def is_new(draft: Any, known: set[str]) -> bool:
    """Return whether `draft` is not stored yet, and add its key to `known`."""
    fresh = not is_known(draft, known)
    known.add(note_key(draft))
    return fresh


def batch_chars(capacity: int) -> float:
    """Return how many characters a batch may have if working memory holds `capacity` tokens."""
    return min(BATCH_CHARS, capacity * BATCH_CHARS_PER_TOKEN)


def batches(entries: Iterable[JsonObject], most_chars: float) -> Iterator[list[JsonObject]]:
    """Yield `entries` in lists that are one commit each, of at least one entry."""
    batch: list[JsonObject] = []
    chars = 0
    for entry in entries:
        chars += len(entry["content"])
        if batch and (len(batch) == BATCH_ITEMS or chars > most_chars):
            yield batch
            batch, chars = [], len(entry["content"])
        batch.append(entry)
    if batch:
        yield batch


def storable(draft: JsonObject, *, capacity: int, certain_chars: float, count: Counter) -> JsonObject:
    """Return `draft` as it can be stored, checked.

    Text of up to `certain_chars` fits without being counted.

    Raises:
        InvalidInput: it cannot be stored.
    """
    metadata = dict(draft["metadata"])
    if not instant_text(metadata.get("timestamp")):
        metadata.pop("timestamp", None)  # without a valid one the time of storing applies
    checked = items.checked_entry(**{**draft, "metadata": metadata})
    files.checked_json(checked, where="item", above=NESTING_ABOVE)
    tokens = count(checked["content"]) if len(checked["content"]) > certain_chars else 0
    if tokens > capacity:
        raise InvalidInput(
            f"{tokens} tokens do not fit into a working memory of {capacity}.", fix="Split it."
        )
    return checked


def _stored(
    snapshot: Snapshot, after: int, keys: Collection[str] = (), files: Collection[str] = (),
    conversations: Collection[str] = (),
) -> Iterator[Any]:  # fmt: skip
    yield from items.items_of(snapshot.documents["memory"])
    yield from gate.waiting_of(snapshot.documents)
    # Items that an undo or a restore removed count as never captured.
    places = items.known_places(snapshot.documents["memory"])
    for record in _archived(snapshot, after, keys, files, conversations):
        if record["why"] != REMOVED and items.is_kept(record["item"]["id"], places):
            yield record["item"]


def _archived(
    snapshot: Snapshot, after: int, keys: Collection[str], files: Collection[str], conversations: Collection[str]
) -> Iterator[JsonObject]:  # fmt: skip
    """Yield the records of the archive `after` a position; see `known_keys` for what may be left out."""
    names = {*files, *conversations}
    sizes = (path.stat().st_size for path in record_files.files_of(snapshot.home, "items"))
    if after < 0 and conversations and all(names) and sum(sizes) > SCANNED_BYTES:
        from aether.search.archive import records_of_conversations  # a hook seldom needs it

        if indexed := records_of_conversations(snapshot, names):
            after = indexed[0]
            yield from indexed[1]
    holding = [*(("key", key) for key in keys), *(("file", file) for file in files)]
    for _, record in record_files.records(snapshot, "items", after=after, holding=holding):
        yield record


def _pointer(entry: Any) -> JsonObject:
    pointer = entry["metadata"].get("pointer")  # anyone may give an item a pointer of another kind
    return pointer if isinstance(pointer, dict) else {}


def _places(entry: Any) -> list[JsonObject]:
    places = entry["metadata"].get("places")
    return [place for place in places if isinstance(place, dict)] if isinstance(places, list) else []
