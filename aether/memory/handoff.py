"""Hand-offs: the items that an architect is given, and the record of them.

A hand-off is open from `prepare` until its session is stored. `memory.compression.open` records the ids of
its items with a digest of each, so that ingesting removes exactly these: items that were added or changed
meanwhile stay. The file `compressions/<id>.json` can be built again from that record.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from aether import clock, regular
from aether.errors import CorruptDocument
from aether.memory import phases, signals
from aether.memory.items import items_of
from aether.memory.statements import in_force
from aether.text.regex import lazy
from aether.types import Change, Handoff, Item, JsonObject, Patch

SCHEMA_VERSION = 1
# The form of the ids that `clock.short_id` makes of "phase_<n>".
_ID = lazy(r"phase_\d+_[0-9a-f]{8}")
# The signals that say what matters now; the other types are bookkeeping of the colony.
STEERING = ("FOCUS", "REDIRECT", "FEEDBACK")
# Items of these types must survive word for word, like protected ones.
PROTECTED_TYPES = frozenset({"constraint"})
# About a page, or a memory of 1,000 tokens at the usual ratio. Readers have room for that much, so a smaller
# session need not become shorter: the ratio is a target for large hand-offs.
PAGE_TOKENS = 400
# So many statements of earlier sessions are listed for the architect, each with so many characters.
MOST_EARLIER, EARLIER_CHARS = 20, 160


def items_up_to(
    memory: Mapping[str, Any], phase: int, conversation: str = "", *, alone: bool = False
) -> list[Item]:
    """Return the items of `phase`, of earlier phases unless `alone`, and without a phase; with `conversation`, only those noted in it."""
    items = [
        item
        for item in items_of(memory)
        if (item_phase := item["metadata"].get("phase", phase)) == phase or (item_phase < phase and not alone)
    ]
    if conversation:
        return [item for item in items if item["metadata"].get("conversation") == conversation]
    return items


def phase_to_compress(documents: Mapping[str, Any]) -> int:
    """Return the current phase or, if only later phases have items, the first of those."""
    current = phases.current_phase(documents["COLONY_STATE"])
    used = (item["metadata"].get("phase", current) for item in items_of(documents["memory"]))
    return max(current, min(used, default=0))


def item_digest(item: Item) -> str:
    """Return a digest of the type, content, phase and protection of `item`."""
    metadata = item["metadata"]
    fields = [item["type"], item["content"], metadata.get("phase"), bool(metadata.get("protected"))]
    return regular.digest(json.dumps(fields).encode())[:16]


def session_room(handoff: Mapping[str, Any]) -> int:
    """Return how many tokens the session of `handoff` may have: its target, but at least a page.

    >>> session_room({"target_tokens": 40}), session_room({"target_tokens": 4_000})
    (400, 4000)
    """
    return max(int(handoff["target_tokens"]), PAGE_TOKENS)


def open_handoff(memory: Mapping[str, Any], phase: int, conversation: str = "") -> JsonObject | None:
    """Return the record of the newest hand-off that is open for `phase`, or for one `conversation` in it, or None."""
    handoffs = open_handoffs(memory, phase, conversation)
    return handoffs[-1] if handoffs else None


def open_handoffs(memory: Mapping[str, Any], phase: int, conversation: str = "") -> list[JsonObject]:
    """Return the records of all hand-offs that are open for `phase`, or for one `conversation` in it."""
    return [
        record
        for record in memory["compression"]["open"]
        if record["phase"] == phase and record.get("conversation", "") == conversation
    ]


def start_handoff(
    memory: Mapping[str, Any], phase: int, *, compression_id: str, now: datetime, conversation: str = "",
    alone: bool = False,
) -> Change:  # fmt: skip
    """Return the change that opens a hand-off of the items of `phase`, or of one `conversation`; its result is the record."""
    items = items_up_to(memory, phase, conversation, alone=alone)
    record = {
        "id": compression_id, "phase": phase, "prepared_at": clock.stamp(now),
        "total_tokens": sum(item["token_count"] for item in items),
        "items": {item["id"]: item_digest(item) for item in items},
    }  # fmt: skip
    if conversation:
        record["conversation"] = conversation
    patch: Patch = [{"op": "add", "path": "/compression/open/-", "value": record}]
    return Change({"memory": patch}, result=record)


def is_id_used(memory: Mapping[str, Any], compression_id: str) -> bool:
    """Return whether an open hand-off or a session has this id."""
    sessions = memory["short_term_memory"]["sessions"]
    ids = [record["id"] for record in memory["compression"]["open"]]
    return compression_id in ids or any(compression_id == session["session_id"] for session in sessions)


def is_handoff_id(text: object) -> bool:
    """Return whether `text` has the form of an id of `prepare`, so that it can only name that hand-off."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def has_unchanged_items(memory: Mapping[str, Any], record: JsonObject) -> bool:
    """Return whether any item of a hand-off is still in working memory, unchanged."""
    items = record["items"]
    return any(item["id"] in items and item_digest(item) == items[item["id"]] for item in items_of(memory))


def unchanged_items(memory: Mapping[str, Any], record: JsonObject) -> list[Item]:
    """Return the items of a hand-off that are still in working memory, unchanged."""
    items = record["items"]
    return [
        item for item in items_of(memory) if item["id"] in items and item_digest(item) == items[item["id"]]
    ]


def later_items(memory: Mapping[str, Any], record: JsonObject, *, alone: bool = False) -> list[Item]:
    """Return the items of a hand-off's phase, and of earlier ones unless `alone`, that were added or changed after it."""
    included = {item["id"] for item in unchanged_items(memory, record)}
    now = items_up_to(memory, record["phase"], record.get("conversation", ""), alone=alone)
    return [item for item in now if item["id"] not in included]


def build_handoff(
    documents: Mapping[str, Any], record: JsonObject, items: Sequence[Item], *, revision: int, now: datetime
) -> Handoff:
    """Return the hand-off of `record` without prompt and checksum, which `seal` adds."""
    memory = documents["memory"]
    tokens = sum(item["token_count"] for item in items)
    # In the order of the conversation: an import may add what was said before.
    items = sorted(items, key=lambda item: item["metadata"]["timestamp"])
    earlier = _earlier(memory, {item["id"] for item in items})
    handoff = {
        "schema_version": SCHEMA_VERSION, "compression_id": record["id"], "phase": record["phase"],
        "prepared_at": record["prepared_at"], "revision": revision,
        "items": list(items), "item_count": len(items), "total_tokens": tokens,
        "target_tokens": int(tokens / memory["compression"]["target_ratio"]),
        "counter": memory["token_counter"]["counter"], "protected": protected_items(items),
        "signals": signals.active_signals(documents["pheromones"], now=now, types=STEERING),
        **({"earlier": earlier} if earlier else {}),
    }  # fmt: skip
    return cast(Handoff, handoff)


def _earlier(memory: Mapping[str, Any], included: Collection[str]) -> list[JsonObject]:
    """Return what the session may resolve or supersede, shortened: of earlier sessions, and what was noted on purpose."""
    entries = [entry for entry in in_force(memory) if entry.id not in included]
    entries = [entry for entry in entries if "/" in entry.id or entry.noted or entry.kind == "rule"]
    return [
        {"id": entry.id, "kind": entry.kind, "text": " ".join(entry.text.split())[:EARLIER_CHARS]}
        for entry in entries[:MOST_EARLIER]
    ]


def protected_items(items: Sequence[Item]) -> list[JsonObject]:
    """Return the statements that must survive word for word, with the reason."""
    protected = []
    for item in items:
        marked = item["metadata"].get("protected")
        if marked or item["type"] in PROTECTED_TYPES:
            why = "marked protected" if marked else f"a {item['type']}"
            protected.append({"id": item["id"], "content": item["content"], "why": why})
    return protected


def seal(handoff: Handoff, prompt: JsonObject) -> Handoff:
    """Return `handoff` with its prompt and a checksum over all of it."""
    whole_handoff = {**handoff, "prompt": prompt}
    return cast(Handoff, {**whole_handoff, "checksum": _checksum(whole_handoff)})


def require_intact(handoff: Any, *, where: str) -> Handoff:
    """Return `handoff`, read from a file, if its checksum matches.

    Raises:
        CorruptDocument: it was changed or cut off.
    """
    if isinstance(handoff, dict) and "checksum" in handoff:
        fields = {field: value for field, value in handoff.items() if field != "checksum"}
        if handoff["checksum"] == _checksum(fields):
            return cast(Handoff, handoff)
    raise CorruptDocument(
        "the hand-off was changed after it was written.",
        fix='Run "aether memory prepare" again, which writes a new one.',
        where=where,
    )


def _checksum(value: Mapping[str, Any]) -> str:
    return regular.digest(json.dumps(value, sort_keys=True).encode())
