"""Short-term memory: compressed sessions of earlier work, the newest ten.

The document is `memory`, its part `short_term_memory`. Guaranteed: `current_sessions` is the number of
sessions; storing a session twice stores it once; an evicted session moves to the archive whole, after its
patterns were extracted. `answers` decides which answers of an architect become sessions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from aether import clock, regular
from aether.errors import Conflict, InvalidInput, NotFound, shown
from aether.text.words import sentences
from aether.tokens.counters import ANSWER_FIELDS, session_tokens
from aether.types import Change

if TYPE_CHECKING:
    from aether.types import Counter, JsonObject, Patch, Session

PART = "/short_term_memory"
# The built-in architect, which quotes the items word for word and copies their types.
EXTRACTIVE = "extractive"
# The texts of each entry in the lists of a session.
STATEMENT_FIELDS = {
    "key_decisions": ("decision", "rationale", "quote"), "outcomes": ("result", "impact"), "high_value_items": ("content",),
    **dict.fromkeys(("state", "next", "rules", "open", "resolved"), ("text", "quote")),
}  # fmt: skip
# Of an answer of an older version these are the fields that its digest covers.
_DIGESTED = ANSWER_FIELDS[:8]
# The metadata of a session that keep its items, or texts of them, word for word.
VERBATIM_FIELDS = (
    "items", "ended", "proposals", "protected", "noted", "files", "open", "asked", "found", "state", "next",
)  # fmt: skip
# What a session says by the types of its entries, in the order in which it reads.
_HEADINGS = {
    "State": (), "Asked": ("user_input", "user_request", "request"),
    "Done": ("code_change", "command", "code_snippet"), "Results": ("outcome", "solution"),
    "Decisions": ("decision",), "Rules": ("constraint", "preference"), "Failed and open": ("error", "blocker"),
    "Next": ("next",),
}  # fmt: skip
_OTHERS = "Noted"
# Replaces a forgotten line in the prose of a session.
FORGOTTEN_LINE = "[forgotten]"
_STATED = {
    "state": "State",
    "rules": "Rules",
    "open": "Failed and open",
    "next": "Next",
    "resolved": "Results",
}
# What was asked for and done comes before how it came out.
_WORK_TYPES = frozenset("user_input user_request request code_change command code_snippet".split())


def sessions_of(memory: Mapping[str, Any]) -> list[Session]:
    """Return the sessions of short-term memory, in the order in which they were stored."""
    sessions: list[Session] = memory["short_term_memory"]["sessions"]
    return sessions


def find_session(memory: Mapping[str, Any], session_id: str) -> Session | None:
    """Return the session with this id, or None."""
    return next((session for session in sessions_of(memory) if session["session_id"] == session_id), None)


def ended_in(session: Mapping[str, Any], text: str) -> bool:
    """Return whether `text` is a rule or decision that a person's words in the session, or before it, ended."""
    ended = (session.get("metadata") or {}).get("ended")
    if not ended:
        return False
    statement = text.strip()
    return any(statement == entry.strip() or statement in sentences(entry) for entry in ended)


def last_heard(session: Mapping[str, Any]) -> str:
    """Return the time of the newest item that `session` was made of; that of the compression if it is not known.

    History that is imported is compressed long after it happened.
    """
    metadata = session.get("metadata")
    until = metadata.get("until") if isinstance(metadata, dict) else None
    return str(until or session.get("compressed_at", ""))


def compression_ratio(original: int, compressed: int) -> float:
    """Return original / compressed, two decimals; 0 if `compressed` is 0.

    >>> compression_ratio(500, 200), compression_ratio(500, 0)
    (2.5, 0.0)
    """
    return round(original / compressed, 2) if compressed else 0.0


def answer_digest(answer: Mapping[str, Any]) -> str:
    """Return a hash of the fields that an architect writes, equal for equal answers."""
    fields = {
        field: answer.get(field)
        for field in ANSWER_FIELDS
        if field in _DIGESTED or answer.get(field) is not None
    }
    return regular.digest(json.dumps(fields, sort_keys=True).encode())


def build_session(
    answer: JsonObject, *, phase: int, original_tokens: int, count: Counter, metadata: JsonObject
) -> Session:
    """Return the session of `answer`, a checked answer, with tokens counted by `count`."""
    session = {
        "id": answer["id"], "session_id": answer["session_id"], "phase": phase,
        "compressed_at": answer["compressed_at"], "original_tokens": original_tokens, "compressed_tokens": 0,
        "compression_ratio": 0.0, "summary": answer["summary"], "key_decisions": answer["key_decisions"],
        "outcomes": answer["outcomes"], "high_value_items": answer["high_value_items"],
        **{name: answer[name] for name in STATEMENT_FIELDS if answer.get(name) and name not in ANSWER_FIELDS[:8]},
        "metadata": {"context": "", "related_patterns": [], **metadata},
    }  # fmt: skip
    session["compressed_tokens"] = session_tokens(session, count)
    session["compression_ratio"] = compression_ratio(original_tokens, session["compressed_tokens"])
    return cast("Session", session)


def store_session(memory: Mapping[str, Any], session: Session) -> Change:
    """Return the change that stores `session`; it is empty if the same session is stored already.

    Raises:
        Conflict: another session, an item or a pattern has its id.
    """
    same = find_session(memory, session["session_id"])
    if same is not None:
        if same["metadata"].get("answer_sha256") == session["metadata"].get("answer_sha256"):
            return Change({}, result=same)
        raise Conflict(
            f"another session is called {shown(session['session_id'])}.",
            fix="Give this one an id and session_id of its own.",
            where="short_term_memory",
        )
    # Ids are unique over all layers, because links and searches only have the id.
    used = {session[field] for session in sessions_of(memory) for field in ("id", "session_id")}
    used |= {item["id"] for item in memory["working_memory"]["items"]}
    used |= {pattern["id"] for pattern in memory["long_term_memory"]["patterns"]}
    for name in sorted({session["id"], session["session_id"]} & used):
        raise Conflict(
            f"{shown(name)} is the id of another session, an item or a pattern.",
            fix="Give this session an id and session_id of its own.",
            where="short_term_memory",
        )
    patch: Patch = [
        {"op": "add", "path": f"{PART}/sessions/-", "value": session},
        _count_step(len(sessions_of(memory)) + 1),
    ]
    return Change({"memory": patch}, result=session)


def count_compression(memory: Mapping[str, Any], session: Session) -> Change:
    """Return the change that counts the compression of `session` in the metrics."""
    metrics = memory["metrics"]
    total_compressions = metrics["total_compressions"] + 1
    total = round(metrics.get("compression_ratio_total", 0.0) + session["compression_ratio"], 2)
    return Change({
        "memory": [
            {"op": "replace", "path": "/metrics/total_compressions", "value": total_compressions},
            {"op": "add", "path": "/metrics/compression_ratio_total", "value": total},
            {"op": "replace", "path": "/metrics/average_compression_ratio", "value": average_ratio(total, total_compressions)},
        ]
    })  # fmt: skip


def average_ratio(total: float, compressions: int) -> float:
    """Return the average ratio; it is stored beside its sum, so that it stays right after an undo."""
    return round(total / compressions, 4) if compressions else 0.0


def oldest_session(memory: Mapping[str, Any], *, spared: str | None = None) -> Session | None:
    """Return the session that was last heard of first, by instant and not by text, except `spared`, or None."""
    sessions = (session for session in sessions_of(memory) if session["session_id"] != spared)
    return min(sessions, key=last_instant, default=None)


def last_instant(session: Mapping[str, Any]) -> datetime:
    """Return the time of the newest item of `session`, or of its compression where none is known."""
    try:
        return clock.parse(last_heard(session))
    except InvalidInput:  # a hand edit wrote no time
        return clock.parse(session["compressed_at"])


def evict_session(memory: Mapping[str, Any], session_id: str, *, now: datetime) -> Change:
    """Return the change that moves one session to the archive; its result is that session.

    Raises:
        NotFound: no session has this id.
    """
    ids = [session["session_id"] for session in sessions_of(memory)]
    if session_id not in ids:
        raise NotFound(
            f"there is no session {shown(session_id)}.",
            fix='See "aether status --compressions".',
            where="short_term_memory",
        )
    place = ids.index(session_id)
    session = sessions_of(memory)[place]
    evictions = memory["metrics"]["short_term_evictions"] + 1
    patch: Patch = [
        {"op": "remove", "path": f"{PART}/sessions/{place}"},
        _count_step(len(sessions_of(memory)) - 1),
        {"op": "replace", "path": "/metrics/short_term_evictions", "value": evictions},
    ]
    # The archive record is an item that search finds, and the whole session.
    heard = last_heard(session)
    item = {
        "id": session_id, "type": "session", "content": session_text(session),
        "token_count": session["compressed_tokens"], "associative_links": [],
        "metadata": {
            "timestamp": heard, "relevance_score": 0.5, "access_count": 0, "last_accessed": heard,
            "source": "architect", "caste": None, "phase": session["phase"],
        },
    }  # fmt: skip
    record = {
        "item": item, "left_at": clock.stamp(now), "why": "evicted", "session_id": None,
        "compression_id": session["metadata"].get("compression_id"), "session": session,
    }  # fmt: skip
    return Change({"memory": patch}, {"items": [record]}, session)


def _count_step(sessions: int) -> JsonObject:
    return {"op": "replace", "path": f"{PART}/current_sessions", "value": sessions}


def verbatim_texts(session: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the items that a session keeps, and the texts that an older one keeps of its items, by kind."""
    return {
        name: texts
        for name, texts in session["metadata"].items()
        if name in VERBATIM_FIELDS and isinstance(texts, list)
    }


def without_parts(session: Mapping[str, Any], parts: Collection[str]) -> JsonObject:
    """Return a session without the statements `parts`, such as `outcomes/2` or `summary/0`."""
    shortened: JsonObject = {**session}
    for name in STATEMENT_FIELDS.keys() & session.keys():
        shortened[name] = [entry for nth, entry in enumerate(session[name]) if f"{name}/{nth}" not in parts]
    prose = session["summary"].split("\n")
    shortened["summary"] = "\n".join(
        FORGOTTEN_LINE if f"summary/{nth}" in parts else line for nth, line in enumerate(prose)
    )
    verbatim = {
        name: [entry for nth, entry in enumerate(verbatim_entries) if f"{name}/{nth}" not in parts]
        for name, verbatim_entries in verbatim_texts(shortened).items()
    }
    shortened["metadata"] = {
        name: verbatim.get(name, value)
        for name, value in shortened["metadata"].items()
        if verbatim.get(name, True)
    }
    return shortened


def session_sections(session: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what `session` says under headings: the summary, the state, what was asked, done, decided, is open and next.

    What ended is left out of the decisions, rules and open points; a heading without text is left out.
    """
    headings = {kind: name for name, kinds in _HEADINGS.items() for kind in kinds}
    sections: dict[str, list[str]] = {"Summary": session["summary"].split("\n")}
    sections |= {name: [] for name in (*_HEADINGS, _OTHERS)}
    sections["Results"] += [_joined(outcome["result"], outcome["impact"]) for outcome in session["outcomes"]]
    sections["Decisions"] += [
        _joined(key_decision["decision"], key_decision["rationale"])
        for key_decision in session["key_decisions"]
        if not key_decision.get("ended") and not ended_in(session, key_decision["decision"])
    ]
    for field, name in _STATED.items():
        sections[name] += [entry["text"] for entry in session.get(field, []) if not entry.get("ended")]
    for entry in session["high_value_items"]:
        name = headings.get(entry.get("type", ""), _OTHERS)
        if name not in ("Decisions", "Rules") or not ended_in(session, entry["content"]):
            sections[name].append(entry["content"])
    return {
        name: statements
        for name, texts in sections.items()
        if (statements := [*dict.fromkeys(filter(str.strip, texts))])
    }


def _joined(what: str, why: str) -> str:
    return " — ".join(filter(None, (what, why)))


def session_text(session: Mapping[str, Any]) -> str:
    """Return the statements of `session` as plain text, one a line.

    They read in order: what it was for, what was done, how it came out, what was decided, the rules, what is open and next.
    """
    decided = [_joined(entry["decision"], entry["rationale"]) for entry in session["key_decisions"]]
    results = [_joined(entry["result"], entry["impact"]) for entry in session["outcomes"]]
    high_value_items = session["high_value_items"]
    work = [entry["content"] for entry in high_value_items if entry.get("type") in _WORK_TYPES]
    contents = [entry["content"] for entry in high_value_items if entry.get("type") not in _WORK_TYPES]
    stated = [entry["text"] for field in _STATED for entry in session.get(field, [])]
    return "\n".join([session["summary"], *work, *results, *decided, *contents, *stated])
