"""Forgetting: what is named, or holds a text, goes out of memory and is found no more.

Items, sessions or single statements of them, patterns and signals are taken out; what is already in the archive
is hidden by its id (`memory.forgotten`), because the archive is only ever appended to. All of it is one change,
so that one undo brings it back. The text itself stays in the history of the home.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether import clock
from aether.memory import items, sessions
from aether.memory.changes import chained
from aether.memory.checkup import rederived
from aether.memory.ingest import withdraw_threshold
from aether.shapes import Change, Counter, JsonObject
from aether.store.patch import diff
from aether.tokens.sessions import session_tokens

WHY = "forgotten"
KIND = "forgetting"
STATEMENTS = {"key_decisions": ("decision", "rationale"), "outcomes": ("result", "impact"), "high_value_items": ("content",)}  # fmt: skip
# What a session says of what was taken out of its prose.
LEFT_OUT = "[forgotten]"


class Target(NamedTuple):
    """One thing that would be forgotten."""

    id: str
    layer: str
    """The layer, `archive`, or `signals`."""
    type: str
    text: str
    part: str
    """Which statement of a session, such as `outcomes/2` or `summary`; empty for the whole."""


def by_ids(
    documents: Mapping[str, Any], archived: Iterable[JsonObject], ids: Iterable[str]
) -> tuple[list[Target], list[str]]:
    """Return what the ids name, and the ids that name nothing.

    With a pattern go the statements of sessions that it was made of: it would come back from them.
    """
    wanted = list(dict.fromkeys(ids))
    everything = [*_whole(documents), *_archive(documents, archived)]
    found = [target for target in everything if target.id in wanted]
    patterns = {target.id for target in found if target.layer == "long_term_memory"}
    sources = {
        _folded(text)
        for pattern in documents["memory"]["long_term_memory"]["patterns"]
        if pattern["id"] in patterns
        for text in (pattern["pattern"], *(each["text"] for each in pattern.get("evidence", [])))
    }
    gone = {target.id for target in found}
    found += [
        target
        for target in _statements(documents)
        if target.id not in gone and any(_folded(line) in sources for line in target.text.split("\n"))
    ]
    return found, [one for one in wanted if one not in gone]


def by_text(documents: Mapping[str, Any], archived: Iterable[JsonObject], text: str) -> list[Target]:
    """Return everything that holds `text`, whatever the case of its letters; of sessions only the statements."""
    sought = text.casefold()
    whole = (target for target in _whole(documents) if target.layer != "short_term_memory")
    everything = (*whole, *_statements(documents), *_archive(documents, archived))
    return [target for target in everything if sought in target.text.casefold()]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _whole(documents: Mapping[str, Any]) -> Iterator[Target]:
    memory = documents["memory"]
    for item in items.items_of(memory):
        yield Target(item["id"], "working_memory", item["type"], item["content"], "")
    for session in sessions.sessions_of(memory):
        yield Target(session["session_id"], "short_term_memory", "session", sessions.text_of(session), "")
    for pattern in memory["long_term_memory"]["patterns"]:
        texts = [
            pattern["pattern"],
            pattern["metadata"].get("context") or "",
            *(each["text"] for each in pattern.get("evidence", [])),
        ]
        yield Target(
            pattern["id"],
            "long_term_memory",
            pattern["type"],
            "\n".join(dict.fromkeys(filter(None, texts))),
            "",
        )
    for signal in documents["pheromones"]["active_pheromones"]:
        yield Target(
            signal["id"], "signals", signal["type"], str(signal["metadata"].get("context") or ""), ""
        )


def _statements(documents: Mapping[str, Any]) -> Iterator[Target]:
    for session in sessions.sessions_of(documents["memory"]):
        for nth, line in enumerate(session["summary"].split("\n")):
            yield Target(session["session_id"], "short_term_memory", "summary", line, f"summary/{nth}")
        for part, fields in STATEMENTS.items():
            for nth, entry in enumerate(session[part]):  # type: ignore[literal-required]  # the parts are keys of a session
                text = "\n".join(str(entry[field]) for field in fields)
                yield Target(session["session_id"], "short_term_memory", part, text, f"{part}/{nth}")
        for nth, text in enumerate(session["metadata"].get("protected") or []):
            yield Target(session["session_id"], "short_term_memory", "protected", text, f"protected/{nth}")


def _archive(documents: Mapping[str, Any], archived: Iterable[JsonObject]) -> Iterator[Target]:
    live = {item["id"] for item in items.items_of(documents["memory"])}
    newest = {record["item"]["id"]: record["item"] for record in archived}
    for name, item in newest.items():
        if name not in live:
            yield Target(name, "archive", item["type"], item["content"], "")


def forget(
    documents: Mapping[str, Any], targets: Iterable[Target], *, now: datetime, count: Counter, receipt_id: str
) -> Change:
    """Return the change that forgets `targets`; its result is the receipt."""
    chosen = list(targets)
    if not chosen:
        return Change({}, result=None)
    receipt = _receipt(chosen, now, receipt_id)

    def take_out(state: Mapping[str, Any]) -> Change:
        memory, pheromones = state["memory"], state["pheromones"]
        signals = {target.id for target in chosen if target.layer == "signals"}
        kept = [signal for signal in pheromones["active_pheromones"] if signal["id"] not in signals]
        gone = [item for item in items.items_of(memory) if item["id"] in _ids(chosen, "working_memory")]
        records = items.archived(gone, why=WHY, now=now)
        return Change(
            {
                "memory": diff(memory, _without(memory, chosen, now, count)),
                "pheromones": diff(pheromones, {**pheromones, "active_pheromones": kept}),
            },
            {"receipts": [receipt], **({"items": records} if records else {})},
        )

    done = chained(documents, take_out, lambda state: rederived(state, Change({})), withdraw_threshold(now))
    return done._replace(result=receipt)


def _ids(targets: Iterable[Target], layer: str) -> set[str]:
    return {target.id for target in targets if target.layer == layer and not target.part}


def _without(memory: Mapping[str, Any], chosen: list[Target], now: datetime, count: Counter) -> JsonObject:
    whole = {target.id for target in chosen if not target.part}
    parts: dict[str, set[str]] = {}
    for target in chosen:
        if target.part:
            parts.setdefault(target.id, set()).add(target.part)
    kept = [
        _left(session, parts.get(session["session_id"], set()), count)
        for session in sessions.sessions_of(memory)
        if session["session_id"] not in whole
    ]
    short, long = memory["short_term_memory"], memory["long_term_memory"]
    working = memory["working_memory"]
    staying = [pattern for pattern in long["patterns"] if pattern["id"] not in whole]
    hide = [target.id for target in chosen if target.layer in ("archive", "working_memory")]
    made = {
        **memory,
        "working_memory": {
            **working,
            "items": [item for item in working["items"] if item["id"] not in whole],
        },
        "short_term_memory": {**short, "sessions": kept},
        "long_term_memory": {**long, "patterns": staying},
        "compression": {
            **memory["compression"],
            # A hand-off holds the text: one that does is prepared anew without it.
            "open": [record for record in memory["compression"]["open"] if whole.isdisjoint(record["items"])],
        },
    }
    if hide:
        known = memory.get("forgotten", [])
        made["forgotten"] = [
            *known,
            *({"id": one, "at": clock.stamp(now)} for one in hide if one not in items.forgotten(memory)),
        ]
    unlinked: JsonObject = _unlinked(made, whole)
    return unlinked


def _left(session: Mapping[str, Any], parts: set[str], count: Counter) -> JsonObject:
    """Return a session without some of its statements, its tokens counted anew."""
    if not parts:
        return dict(session)
    made: JsonObject = {**session}
    for name in STATEMENTS:
        made[name] = [entry for nth, entry in enumerate(session[name]) if f"{name}/{nth}" not in parts]
    prose = session["summary"].split("\n")
    made["summary"] = "\n".join(
        LEFT_OUT if f"summary/{nth}" in parts else line for nth, line in enumerate(prose)
    )
    metadata = session["metadata"]
    if metadata.get("protected"):
        kept = [text for nth, text in enumerate(metadata["protected"]) if f"protected/{nth}" not in parts]
        made["metadata"] = {**metadata, "protected": kept}
    made["compressed_tokens"] = session_tokens(made, count)
    made["compression_ratio"] = sessions.ratio(made["original_tokens"], made["compressed_tokens"])
    return made


def _unlinked(value: Any, gone: set[str]) -> Any:
    """Return `value` without the links and mentions that lead to what is gone."""
    if isinstance(value, dict):
        made = {key: _unlinked(below, gone) for key, below in value.items()}
        if "associative_links" in made:
            made["associative_links"] = [
                link for link in made["associative_links"] if link["target_id"] not in gone
            ]
        if isinstance(made.get("related_patterns"), list):
            made["related_patterns"] = [one for one in made["related_patterns"] if one not in gone]
        return made
    return [_unlinked(below, gone) for below in value] if isinstance(value, list) else value


def _receipt(chosen: list[Target], now: datetime, receipt_id: str) -> JsonObject:
    """Return the record of what was forgotten: where it was and what it hashes to, never what it said."""
    return {
        "receipt_id": receipt_id,
        "kind": KIND,
        "at": clock.stamp(now),
        "forgotten": [
            {
                "id": target.id, "layer": target.layer, "part": target.part,
                "sha256": hashlib.sha256(target.text.encode("utf-8", "surrogatepass")).hexdigest(),
            }
            for target in chosen
        ],
        "undo": 'aether undo REVISION, the revision of this receipt; "aether log" names it',
    }  # fmt: skip
