"""Withdrawing: take everything that came from one source out of memory, as if the source had never come.

The closure of the items of a source is: the items, live and archived; the sessions made of them only; of other sessions the
statements and texts that no item of another source bears out; the patterns that only these support, and of other patterns
that support. What those entries ended is in force again. Everything else stays as it is: entries of other sources, and what
says that the source was read, so that reading it again does not bring it back. It is one change, which `undo` reverses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether.memory import forget, gate, items, sessions
from aether.memory.forget import Target
from aether.memory.origins import every_item
from aether.memory.patterns import CONFIDENCE_PER_SESSION, NEW_CONFIDENCE
from aether.memory.sessions import last_heard, sessions_of
from aether.redact.redact import redact
from aether.store.patch import chain_changes, diff
from aether.text.cleaning import without_injected
from aether.text.words import is_quoted, normalized, sentences
from aether.types import Change, Counter, JsonObject

_END_FIELDS = frozenset({"state", "ended_at", "ended_by"})


class Closure(NamedTuple):
    """What came from a source."""

    targets: list[Target]
    """The items, sessions, statements of sessions, and patterns that go."""
    patterns: dict[str, JsonObject]
    """The patterns that lose support and stay, as they will be, by id."""
    ended_by: frozenset[str]
    """The ids of the entries that go and may have ended others: items and statements."""
    sessions: list[Mapping[str, Any]]
    """The sessions that go whole."""


class _Sessions(NamedTuple):
    """The sessions that lose something: whole, or in parts by their ids."""

    whole: dict[str, Mapping[str, Any]]
    parts: dict[str, set[str]]
    texts: dict[str, list[str]]
    """Of those that lose parts, the normalized texts of the items of others."""


def closure(
    documents: Mapping[str, Any],
    archived: Iterable[JsonObject],
    is_chosen: Callable[[Mapping[str, Any]], bool],
    *,
    architects: Collection[str] = (),
) -> Closure:
    """Return the closure of the items that are chosen.

    `archived` are the archive records that are not forgotten, oldest first. Of `architects`, conversations, come also the
    sessions that they wrote without items.
    """
    memory, records = documents["memory"], list(archived)
    waiting = gate.waiting_of(documents)
    chosen = {item["id"]: item for item in (*every_item(memory, records), *waiting) if is_chosen(item)}
    losing = _sessions(memory, records, chosen, architects)
    late = [item for item in waiting if item["id"] in chosen]
    targets = [Target(item["id"], gate.DOCUMENT, item["type"], item["content"], "") for item in late]
    targets += [*_item_targets(memory, records, chosen), *_session_targets(memory, records, losing)]
    changed = _patterns(memory, records, chosen, losing)
    leaving = [
        pattern for pattern in memory["long_term_memory"]["patterns"] if changed.get(pattern["id"], 0) is None
    ]
    targets += [
        Target(pattern["id"], "long_term_memory", pattern["type"], pattern["pattern"], "")
        for pattern in leaving
    ]
    statements = {f"{name}/{part}" for name, parts in losing.parts.items() for part in parts}
    statements |= {
        f"{name}/{field}/{nth}"
        for name, session in losing.whole.items()
        for field in sessions.STATEMENT_FIELDS
        for nth in range(len(session.get(field) or ()))
    }
    left = {name: pattern for name, pattern in changed.items() if pattern is not None}
    return Closure(targets, left, frozenset({*chosen, *statements}), list(losing.whole.values()))


# --- What goes


def _item_targets(
    memory: Mapping[str, Any], records: list[JsonObject], chosen: Mapping[str, Mapping[str, Any]]
) -> Iterator[Target]:
    live = {item["id"] for item in items.items_of(memory)}
    archived = {record["item"]["id"] for record in records}
    for name, item in chosen.items():
        layer = "working_memory" if name in live else "archive" if name in archived else ""
        if layer:
            yield Target(name, layer, item["type"], item["content"], "")


def _sessions(
    memory: Mapping[str, Any],
    records: list[JsonObject],
    chosen: Mapping[str, Any],
    architects: Collection[str],
) -> _Sessions:
    """Return the sessions, live and archived, that lose something with the chosen items."""
    made_of: dict[str, dict[str, Mapping[str, Any]]] = {}
    for record in records:
        if record.get("session_id"):
            made_of.setdefault(record["session_id"], {})[record["item"]["id"]] = record["item"]
    losing = _Sessions({}, {}, {})
    for session in _every_session(memory, records):
        name = session["session_id"]
        own = {item["id"]: item for item in session["metadata"].get("items", [])} | made_of.get(name, {})
        architect = (session["metadata"].get("architect") or {}).get("session", "")
        if own.keys() <= chosen.keys() and (own or architect in architects):
            losing.whole[name] = session
        elif not own.keys().isdisjoint(chosen):
            others = [item["content"] for key, item in own.items() if key not in chosen]
            losing.texts[name] = [normalized(text) for text in dict.fromkeys([*others, *map(redact, others)])]
            losing.parts[name] = {*_lost_parts(session, chosen, losing.texts[name])}
    return losing


def _every_session(memory: Mapping[str, Any], records: list[JsonObject]) -> Iterator[Mapping[str, Any]]:
    live = {session["session_id"] for session in sessions_of(memory)}
    yield from sessions_of(memory)
    hidden = items.forgotten_parts(memory)
    newest = {
        record["session"]["session_id"]: record["session"] for record in records if record.get("session")
    }
    for name, session in newest.items():
        if name not in live:
            # The places of the other parts stay: an archived session is only hidden.
            yield {**session, "hidden": hidden.get(name, ())}


def _lost_parts(session: Mapping[str, Any], chosen: Mapping[str, Any], others: list[str]) -> Iterator[str]:
    """Yield the parts of a session of several sources that nothing of the others bears out."""
    for target in forget.parts_of(session, ""):
        field, _, nth = target.part.partition("/")
        entry = session[field][int(nth)] if field != "summary" else {}
        proof = entry.get("items") or ()
        text = entry["quote"] if proof and entry.get("quote") else target.text
        borne_out = bool(proof) and not chosen.keys() >= {*proof}
        borne_out = borne_out or _is_of_others(text, others)
        if not borne_out and target.text.strip() and target.part not in session.get("hidden", ()):
            yield target.part
    for field, entries in sessions.verbatim_texts(session).items():
        for place, entry in enumerate(entries):
            if isinstance(entry, Mapping):
                names = [entry["id"]] if field == "items" else entry.get("items") or ()
                if names and chosen.keys() >= {*names}:
                    yield f"{field}/{place}"
            elif not _is_of_others(str(entry), others):
                yield f"{field}/{place}"


def _is_of_others(text: str, others: list[str]) -> bool:
    """Return whether each line of `text`, or every sentence of it, is in a text of another source."""
    lines = [line for line in text.split("\n") if line.strip()]
    return all(
        _is_in(line, others) or all(_is_in(sentence, others) for sentence in sentences(line))
        for line in lines
    )


def _is_in(sentence: str, others: list[str]) -> bool:
    return any(is_quoted(sentence, other) for other in others)


def _session_targets(
    memory: Mapping[str, Any], records: list[JsonObject], losing: _Sessions
) -> Iterator[Target]:
    for session in _every_session(memory, records):
        name = session["session_id"]
        layer = "archive" if "hidden" in session else "short_term_memory"
        if name in losing.whole:
            yield Target(name, layer, "session", sessions.session_text(session), "")
        for part in sorted(losing.parts.get(name, ())):
            field, _, nth = part.partition("/")
            yield Target(name, layer, field, _part_text(session, field, int(nth)), part)


def _part_text(session: Mapping[str, Any], field: str, nth: int) -> str:
    if field == "summary":
        return str(session["summary"].split("\n")[nth])
    entry = session[field][nth] if field in sessions.STATEMENT_FIELDS else session["metadata"][field][nth]
    if not isinstance(entry, Mapping):
        return str(entry)
    return str(
        next(filter(None, (entry.get(name) for name in ("decision", "result", "content", "text"))), "")
    )


# --- What changes


def _patterns(
    memory: Mapping[str, Any], records: list[JsonObject], chosen: Mapping[str, Any], losing: _Sessions
) -> dict[str, JsonObject | None]:
    """Return the patterns that lose support, by id: as they will be, or None for those that go."""
    known = {session["session_id"]: session for session in _every_session(memory, records)}
    changed: dict[str, JsonObject | None] = {}
    for pattern in memory["long_term_memory"]["patterns"]:
        evidence = _evidence_of(pattern)
        lost = [entry for entry in evidence if _is_lost(entry, known, losing)]
        links = pattern.get("associative_links") or []
        of_items = [link for link in links if link["target_type"] == "working_memory_item"]
        lost_items = [link for link in of_items if link["target_id"] in chosen]
        if lost or lost_items:
            left = [entry for entry in evidence if entry not in lost]
            noted = len(of_items) > len(lost_items)
            stays = noted or (
                left and _holds_without(pattern, lost, left, known, memory["pattern_extraction"])
            )
            changed[pattern["id"]] = _weakened(pattern, lost, left, known) if stays else None
    return changed


def _evidence_of(pattern: Mapping[str, Any]) -> list[JsonObject]:
    """Return the evidence of a pattern; one of the original format has its sessions in its links."""
    evidence = (pattern.get("metadata") or {}).get("evidence")
    if evidence is not None:
        return list(evidence)
    links = pattern.get("associative_links") or []
    ids = dict.fromkeys(link["target_id"] for link in links if link["target_type"] == "short_term_session")
    return [{"session_id": name, "phase": None, "text": pattern["pattern"]} for name in ids]


def _is_lost(entry: JsonObject, known: Mapping[str, Any], losing: _Sessions) -> bool:
    name = entry["session_id"]
    if name not in losing.parts:
        return name in losing.whole
    if _is_of_others(entry["text"], losing.texts[name]):
        return False
    # A statement that an item of another source proves may have words of its own.
    parts = (target for target in forget.parts_of(known[name], "") if target.part not in losing.parts[name])
    wanted = normalized(entry["text"])
    return not any(wanted in normalized(target.text) for target in parts)


def _holds_without(
    pattern: Mapping[str, Any], lost: list[JsonObject], left: list[JsonObject], known: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> bool:  # fmt: skip
    """Return whether a pattern would have been made of the evidence that is left.

    It would if what it was made of is left, if enough sessions are, or if one states it as of high relevance.
    """
    first = {
        link["target_id"]
        for link in pattern["associative_links"]
        if link["created_at"] == pattern["created_at"]
    }
    made_of_lost = any({name, known.get(name, {}).get("id", name)} & first for name in _names(lost))
    return (
        not made_of_lost
        or len(left) >= settings["repeated_success"]
        or any(_is_weighty(entry, known, settings["high_relevance"]) for entry in left)
    )


def _names(evidence: Iterable[JsonObject]) -> list[str]:
    return [entry["session_id"] for entry in evidence]


def _is_weighty(entry: JsonObject, known: Mapping[str, Any], high: float) -> bool:
    statements = known.get(entry["session_id"], {}).get("high_value_items") or []
    return any(
        float(statement.get("relevance_score") or 0.0) > high
        and without_injected(str(statement.get("content") or "")).strip() == entry["text"]
        for statement in statements
    )


def _weakened(
    pattern: Mapping[str, Any], lost: list[JsonObject], left: list[JsonObject], known: Mapping[str, Any]
) -> JsonObject:
    """Return a pattern with the evidence that is left, in a wording of it."""
    occurrences = pattern["occurrences"] - len(lost)
    lowered = pattern["confidence"] - CONFIDENCE_PER_SESSION * len(lost)
    if pattern["confidence"] >= 1:  # it may have been more: sessions count up to a limit
        lowered = NEW_CONFIDENCE + CONFIDENCE_PER_SESSION * (occurrences - 1)
    leaving = {key for name in _names(lost) for key in (name, known.get(name, {}).get("id"))}
    texts = [entry["text"] for entry in left]
    times = [last_heard(known[name]) for name in _names(left) if name in known]
    metadata = {**(pattern.get("metadata") or {}), "evidence": left}
    phases = [entry.get("phase") for entry in left]
    if "related_phases" in metadata and lost:
        metadata["related_phases"] = [phase for phase in metadata["related_phases"] if phase in phases]
    castes = {caste for name in _names(left) for caste in _castes(known.get(name, {}))}
    lost_castes = {caste for name in _names(lost) for caste in _castes(known.get(name, {}))} - castes
    if "related_castes" in metadata:
        metadata["related_castes"] = [
            caste for caste in metadata["related_castes"] if caste not in lost_castes
        ]
    return {
        **pattern,
        "pattern": pattern["pattern"] if not texts or pattern["pattern"] in texts else texts[-1],
        "occurrences": occurrences,
        "confidence": round(min(1.0, max(lowered, 0.0)), 4),
        "last_seen": max(times) if len(times) == len(left) and times else pattern["last_seen"],
        "associative_links": [
            link for link in pattern["associative_links"] if link["target_id"] not in leaving
        ],
        "metadata": metadata,
    }


def _castes(session: Mapping[str, Any]) -> list[str]:
    return list((session.get("metadata") or {}).get("castes") or [])


# --- The change


def withdraw(
    documents: Mapping[str, Any], source: Closure, *, now: datetime, count: Counter, receipt_id: str
) -> Change:
    """Return the change that takes a closure out of memory; its result is the receipt."""
    if not source.targets and not source.patterns:
        return Change({})
    change = chain_changes(
        documents,
        lambda state: _reopen(state["memory"], source),
        lambda state: _weaken(state["memory"], source),
        lambda state: forget.forget(state, source.targets, now=now, count=count, receipt_id=receipt_id),
        lambda state: _recount(documents["memory"], state["memory"], source),
    )
    return change._replace(result=change.result[2])


def _weaken(memory: Mapping[str, Any], source: Closure) -> Change:
    long = memory["long_term_memory"]
    patterns = [source.patterns.get(pattern["id"], pattern) for pattern in long["patterns"]]
    lost = {
        (evidence["session_id"], pattern["id"])
        for pattern in long["patterns"] if pattern["id"] in source.patterns
        for evidence in _evidence_of(pattern) if evidence not in _evidence_of(source.patterns[pattern["id"]])
    }  # fmt: skip
    stored = [_unrelated(session, lost) for session in sessions_of(memory)]
    short = {**memory["short_term_memory"], "sessions": stored}
    return Change(
        {
            "memory": diff(
                memory,
                {**memory, "long_term_memory": {**long, "patterns": patterns}, "short_term_memory": short},
            )
        }
    )


def _unrelated(session: Mapping[str, Any], lost: set[tuple[str, str]]) -> Mapping[str, Any]:
    related = session["metadata"].get("related_patterns")
    names = (session["session_id"], session["id"])
    if not related or not any((name, pattern) in lost for name in names for pattern in related):
        return session
    left = [pattern for pattern in related if not any((name, pattern) in lost for name in names)]
    return {**session, "metadata": {**session["metadata"], "related_patterns": left}}


def _reopen(memory: Mapping[str, Any], source: Closure) -> Change:
    """Return the change that puts back in force what an entry of the closure ended, and gives the other statements their new numbers."""
    renamed = _renamed(memory, source.targets)
    return Change({"memory": diff(memory, _reopened(memory, source.ended_by, renamed))})


def _renamed(memory: Mapping[str, Any], targets: Iterable[Target]) -> dict[str, str]:
    """Return the new ids of the statements that move up where others before them go."""
    parts = {(target.id, target.part) for target in targets if target.part}
    renamed: dict[str, str] = {}
    for session in sessions_of(memory):
        name = session["session_id"]
        for field in sessions.STATEMENT_FIELDS:
            entries = range(len(session.get(field) or ()))  # type: ignore[arg-type]
            left = [nth for nth in entries if (name, f"{field}/{nth}") not in parts]
            renamed |= {
                f"{name}/{field}/{nth}": f"{name}/{field}/{place}"
                for place, nth in enumerate(left)
                if nth != place
            }
    return renamed


def _reopened(value: Any, ended_by: frozenset[str], renamed: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_reopened(entry, ended_by, renamed) for entry in value]
    if not isinstance(value, dict):
        return value
    fields = dict(value)
    if fields.get("ended_by") in ended_by:
        fields = {name: field for name, field in fields.items() if name not in _END_FIELDS}
    elif fields.get("ended_by") in renamed:
        fields["ended_by"] = renamed[fields["ended_by"]]
    ended = fields.get("ended")
    if isinstance(ended, dict) and ended.get("by") in ended_by:
        del fields["ended"]
    elif isinstance(ended, dict) and ended.get("by") in renamed:
        fields["ended"] = {**ended, "by": renamed[ended["by"]]}
    if fields.get("target") in renamed and "quote" in fields:
        fields["target"] = renamed[fields["target"]]
    return {name: _reopened(field, ended_by, renamed) for name, field in fields.items()}


def _recount(before: Mapping[str, Any], memory: Mapping[str, Any], source: Closure) -> Change:
    """Return the change that counts the compressions and patterns as if those of the closure had not been made."""
    metrics = memory["metrics"]
    compressed = [session for session in source.sessions if session["metadata"].get("compression_id")]
    compressions = max(0, metrics["total_compressions"] - len(compressed))
    ratios = {session["session_id"]: session["compression_ratio"] for session in sessions_of(before)}
    drift = sum(
        session["compression_ratio"] - ratios.get(session["session_id"], 0.0)
        for session in sessions_of(memory)
    )
    total = (
        metrics.get("compression_ratio_total", 0.0)
        - sum(session["compression_ratio"] for session in compressed)
        + drift
    )
    total = round(max(0.0, total), 2) if compressions else 0.0
    patterns = sum(target.layer == "long_term_memory" for target in source.targets)
    after = {
        **metrics,
        "total_compressions": compressions,
        "total_pattern_extractions": max(0, metrics["total_pattern_extractions"] - patterns),
        "average_compression_ratio": sessions.average_ratio(total, compressions),
        **({"compression_ratio_total": total} if "compression_ratio_total" in metrics else {}),
    }
    return Change({"memory": diff(memory, {**memory, "metrics": after})})
