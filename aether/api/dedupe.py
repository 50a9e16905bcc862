"""Drafts: what capture made of a conversation, on its way into working memory.

Says which can be stored, and which are stored already, whether an import or hooks noted them. A note has a
key that never changes. But hooks name an event otherwise than its transcript does, so a note of the one and a
note of the other are the same where transcript, type and text are: `said`. Two notes of the same origin are
never compared so: what was really done twice is noted twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from typing import Any

from aether import clock
from aether.errors import InvalidInput
from aether.memory import items
from aether.memory.snapshots import REMOVED
from aether.store import archive, files
from aether.store.snapshot import Snapshot
from aether.types import Counter, JsonObject

# One commit each: large enough that the disk is not what takes the time, small enough to lose little.
BATCH_ITEMS = 500
# About a tenth of a working memory of the usual size.
BATCH_CHARS = 80_000
# A batch must fit into a small one whole: few scripts take more than two tokens for a character.
BATCH_CHARS_PER_TOKEN = 0.5
# An item stands below the document, working memory and the list of items.
NESTING_ABOVE = 3
# What `pointer.via` says of a note that hooks brought.
HOOKS = "hooks"


def note_key(entry: Any) -> str:
    """Return the key of a draft or an item; empty where it was not captured."""
    return str(_pointer(entry).get("key", ""))


def text_key(entry: Any) -> str:
    """Return what a draft or an item says, and of which transcript, in one word.

    A sub-agent's work is told in a file of its own and in that of its session: what it says is enough.
    """
    by_worker = entry.get("caste") or entry["metadata"].get("caste")
    file = "" if by_worker else _pointer(entry).get("file", "")
    words = f"{file}\0{entry['type']}\0{entry['content']}"
    return f"said {sha256(words.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def is_from_hooks(entry: Any) -> bool:
    """Tell whether hooks brought a draft or an item."""
    return bool(_pointer(entry).get("via") == HOOKS)


def known_keys(
    snapshot: Snapshot, *, to_hooks: bool, files: Collection[str] = (), after: int = -1
) -> set[str]:
    """Return the keys of all that was captured before, and what those of the other origin say.

    What is archived is read `after` that position. Only items of the transcripts in `files` are told by what they
    say to hooks; an import compares with all that hooks brought.
    """
    found: set[str] = set()
    for entry in _stored(snapshot, after):
        found.add(note_key(entry))
        if is_from_hooks(entry) != to_hooks and (not to_hooks or _pointer(entry).get("file") in files):
            found.add(text_key(entry))
    return found - {""}


def is_known(draft: Any, known: Collection[str]) -> bool:
    """Tell whether `draft` is stored already."""
    return note_key(draft) in known or text_key(draft) in known


def is_new(draft: Any, known: set[str]) -> bool:
    """Tell whether `draft` is not stored yet, and count it as known from now on."""
    fresh = not is_known(draft, known)
    known.add(note_key(draft))
    return fresh


def batch_chars(capacity: int) -> float:
    """Return how many characters a batch may have where working memory holds `capacity` tokens."""
    return min(BATCH_CHARS, capacity * BATCH_CHARS_PER_TOKEN)


def batches(drafts: Iterable[JsonObject], most_chars: float) -> Iterator[list[JsonObject]]:
    """Yield `drafts` in lists that are one commit each, of at least one draft."""
    batch: list[JsonObject] = []
    chars = 0
    for draft in drafts:
        chars += len(draft["content"])
        if batch and (len(batch) == BATCH_ITEMS or chars > most_chars):
            yield batch
            batch, chars = [], len(draft["content"])
        batch.append(draft)
    if batch:
        yield batch


def storable(draft: JsonObject, *, capacity: int, certain_chars: float, count: Counter) -> JsonObject:
    """Return `draft` as it can be stored, checked.

    Text of up to `certain_chars` fits without being counted.

    Raises:
        InvalidInput: it cannot be stored.
    """
    checked = items.checked_entry(**{**draft, "metadata": _dated(draft["metadata"])})
    files.checked_json(checked, where="item", above=NESTING_ABOVE)
    tokens = count(checked["content"]) if len(checked["content"]) > certain_chars else 0
    if tokens > capacity:
        raise InvalidInput(
            f"{tokens} tokens do not fit into a working memory of {capacity}.", fix="Split it."
        )
    return checked


def _dated(metadata: JsonObject) -> JsonObject:
    """Return `metadata` without a timestamp that is none: then the time of storing stands for it."""
    try:
        clock.parse(metadata.get("timestamp", ""))
    except InvalidInput:
        return {name: value for name, value in metadata.items() if name != "timestamp"}
    return metadata


def _stored(snapshot: Snapshot, after: int) -> Iterator[Any]:
    yield from items.items_of(snapshot.documents["memory"])
    # What an undo or a restore took back was as good as never captured.
    records = (record for _, record in archive.records(snapshot, "items", after=after))
    yield from (record["item"] for record in records if record["why"] != REMOVED)


def _pointer(entry: Any) -> JsonObject:
    found = entry["metadata"].get("pointer")  # anyone may give an item a pointer of another kind
    return found if isinstance(found, dict) else {}
