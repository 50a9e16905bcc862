"""Forgetting: remove targets from memory in one change, so that one undo brings all of them back.

Targets (`find`) are items, sessions or single statements of them, patterns, signals, entities and relations. Archived
items, and statements of archived sessions, are hidden by their ids (`memory.forgotten`), because the archive is only
appended to. The text itself stays in the
history of the home until it is erased (`erasing`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from aether import clock
from aether.memory import graph, items, sessions
from aether.memory.forgetting.find import (
    ENTITY,
    Target,
    quotes,
    statement_texts,
)
from aether.store.patch import chain_changes, diff
from aether.tokens.counters import session_tokens
from aether.types import Change, Counter, Item, JsonObject

# The reason in the archive records.
WHY = "forgotten"
RECEIPT_KIND = "forgetting"


def forget(
    documents: Mapping[str, Any], targets: Iterable[Target], *, now: datetime, count: Counter, receipt_id: str
) -> Change:
    """Return the change that forgets `targets`; its result is the receipt."""
    chosen = list(targets)
    if not chosen:
        return Change({}, result=None)
    receipt = _receipt(chosen, now, receipt_id)
    memory, pheromones, known = documents["memory"], documents["pheromones"], documents.get(graph.DOCUMENT)
    signals = _ids(chosen, "signals")
    kept = {
        name: [signal for signal in pheromones[name] if signal["id"] not in signals]
        for name in ("active_pheromones", "queued")
        if name in pheromones
    }
    ids = _ids(chosen, "working_memory")
    removed = [item for item in items.items_of(memory) if item["id"] in ids]
    patches = {
        "memory": diff(memory, _memory_without(memory, chosen, now, count)),
        "pheromones": diff(pheromones, {**pheromones, **kept}),
    }
    if known:
        patches[graph.DOCUMENT] = diff(known, _graph_without(known, chosen))
    appends = {"receipts": [receipt]}
    if removed:
        appends["items"] = items.archive_records(removed, why=WHY, now=now)
    change = chain_changes(
        documents,
        lambda state: Change(patches, appends),
        lambda state: items.withdraw_threshold(state, now=now),
    )
    return change._replace(result=receipt)


def _ids(targets: Iterable[Target], layer: str) -> set[str]:
    return {target.id for target in targets if target.layer == layer and not target.part}


def _memory_without(
    memory: Mapping[str, Any], chosen: list[Target], now: datetime, count: Counter
) -> JsonObject:
    whole = {target.id for target in chosen if not target.part}
    parts = _parts(chosen)
    working, short, long = memory["working_memory"], memory["short_term_memory"], memory["long_term_memory"]
    texts = statement_texts(chosen) or [target.text for target in chosen]
    held = [_unquoting(item, texts) for item in working["items"] if item["id"] not in whole]
    kept = [
        _session_without(session, parts.get(session["session_id"], set()), texts, count)
        for session in short["sessions"]
        if session["session_id"] not in whole
    ]
    patterns = [pattern for pattern in long["patterns"] if pattern["id"] not in whole]
    # A hand-off that contains the text has to be prepared again.
    records = [record for record in memory["compression"]["open"] if whole.isdisjoint(record["items"])]
    tokens = sum(item["token_count"] for item in held)
    made = {
        **memory,
        "working_memory": {**working, "items": held, "current_tokens": tokens},
        "short_term_memory": {**short, "sessions": kept, "current_sessions": len(kept)},
        "long_term_memory": {**long, "patterns": patterns},
        "compression": {**memory["compression"], "open": records},
    }
    hidden, cut = items.forgotten_ids(memory), items.forgotten_parts(memory)
    hide = [target for target in chosen if target.layer in ("archive", "working_memory")]
    if hide:
        at = clock.stamp(now)
        fresh = [
            {"id": each.id, "at": at, **({"part": each.part} if each.part else {})}
            for each in hide
            if each.id not in hidden and each.part not in cut.get(each.id, ())
        ]
        made["forgotten"] = [*memory.get("forgotten", []), *fresh]
    unlinked: JsonObject = _unlinked(made, whole)
    return unlinked


def _parts(chosen: Iterable[Target]) -> dict[str, set[str]]:
    parts: dict[str, set[str]] = {}
    for target in chosen:
        if target.part:
            parts.setdefault(target.id, set()).add(target.part)
    return parts


def _graph_without(known: Mapping[str, Any], chosen: list[Target]) -> JsonObject:
    """Return the knowledge graph without the chosen entities, their relations, and the chosen parts of others."""
    removed = {one.removeprefix(ENTITY) for one in _ids(chosen, "graph")}
    parts = _parts(chosen)
    entities = []
    for entity in known["entities"]:
        if entity["name"] not in removed:
            without = parts.get(ENTITY + entity["name"], ())
            numbered = enumerate(entity["observations"])
            kept = [each for nth, each in numbered if f"observations/{nth}" not in without]
            entities.append({**entity, "observations": kept})
    relations = [
        each
        for each in known["relations"]
        if each["id"] not in parts and removed.isdisjoint({each["from"], each["to"]})
    ]
    return {**known, "entities": entities, "relations": relations}


def _unquoting(item: Item, texts: Sequence[str]) -> Item:
    """Return `item` without a name of its conversation, or a person's reply, that repeats one of `texts`."""
    metadata = item["metadata"]
    said = [
        name
        for name in ("title", "reply")
        if isinstance(metadata.get(name), str) and quotes(metadata[name], texts)
    ]
    if not said:
        return item
    left = {name: value for name, value in metadata.items() if name not in said}
    return cast(Item, {**item, "metadata": left})


def _session_without(
    session: Mapping[str, Any], parts: set[str], texts: Sequence[str], count: Counter
) -> JsonObject:
    """Return a session without the statements `parts`, its tokens counted again; no item of it repeats one of `texts`."""
    made: JsonObject = {**session}
    if quoting := session["metadata"].get("items"):
        made["metadata"] = {**session["metadata"], "items": [_unquoting(item, texts) for item in quoting]}
    if not parts:
        return made
    made = sessions.without_parts(made, parts)
    made["compressed_tokens"] = session_tokens(made, count)
    made["compression_ratio"] = sessions.compression_ratio(made["original_tokens"], made["compressed_tokens"])
    return made


def _unlinked(value: Any, removed: set[str]) -> Any:
    """Return `value` without links and references to the ids in `removed`."""
    if isinstance(value, dict):
        made = {key: _unlinked(below, removed) for key, below in value.items()}
        if "associative_links" in made:
            made["associative_links"] = [
                link for link in made["associative_links"] if link["target_id"] not in removed
            ]
        if isinstance(made.get("related_patterns"), list):
            made["related_patterns"] = [one for one in made["related_patterns"] if one not in removed]
        return made
    return [_unlinked(below, removed) for below in value] if isinstance(value, list) else value


def _receipt(chosen: list[Target], now: datetime, receipt_id: str) -> JsonObject:
    """Return the receipt: the place and the digest of each forgotten text, without the text."""
    return {
        "receipt_id": receipt_id, "kind": RECEIPT_KIND, "at": clock.stamp(now),
        "forgotten": [
            {
                "id": target.id, "layer": target.layer, "part": target.part,
                "sha256": hashlib.sha256(target.text.encode("utf-8", "surrogatepass")).hexdigest(),
            }
            for target in chosen
        ],
        "undo": 'aether undo REVISION, the revision of this receipt; "aether log" names it',
    }  # fmt: skip
