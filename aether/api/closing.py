"""Closing: the session of one conversation, written by the agent that runs, or by a model that aether asks.

It covers what the conversation has in working memory, and what a compaction archived with the host's summary before
anybody judged it: that session is replaced, and keeps its id, its items and its summary. All of it is one transaction; a
rejected answer changes nothing. The proof of each statement is that of `memory.ingest`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from aether.api import asks
from aether.api.handoffs import evicted_session, free_id, select_of
from aether.api.home import Home, change_snapshot, counter_of, find, fold_if_possible, now
from aether.clock import new_id
from aether.errors import InvalidInput, public, shown
from aether.memory import answers, handoff, ingest, phases, proof
from aether.memory.ingest import NO_SUMMARY, IngestResult
from aether.memory.items import forgotten_ids, items_of
from aether.memory.sessions import sessions_of
from aether.store import record_files
from aether.store.authors import Author
from aether.store.patch import apply, chain_changes
from aether.store.snapshot import Snapshot
from aether.types import Change, Handoff, Item, JsonObject, Patch, Session

# The architect in the receipt of a session that the running agent wrote.
HOST = {"backend": "host", "model": "", "task": "closing"}
# The task of the sessions that a compaction stores; `api.handoffs` names them so.
COMPACTION = "compaction summary"
# Short names of an answer's fields: a tool is called with few words.
_FIELDS = {"decisions": "key_decisions"}
STATEMENTS = ("state", "next", "rules", "open", "resolved", "key_decisions")


class Dropped(NamedTuple):
    """A statement that was not stored, for want of proof."""

    field: str
    text: str


class Closed(NamedTuple):
    """Result of closing a conversation."""

    ingested: IngestResult | None
    """None if there was nothing to close."""
    reason: str = ""
    """Why there was nothing to close."""
    conversation: str = ""
    dropped: Sequence[Dropped] = ()


class Work(NamedTuple):
    """The items of a conversation that no architect has judged."""

    conversation: str
    phase: int
    live: list[Item]
    archived: list[Item]
    """Those that a compaction archived."""
    compacted: Session | None
    """The session that it stored."""


@public
def close_session(
    answer: str | Mapping[str, Any], *, home: Home, session: str = "", by: str = "architect",
    architect: Mapping[str, Any] = HOST, only: Collection[str] | None = None,
) -> Closed:  # fmt: skip
    """Store `answer` as the session of a conversation: the one whose id starts with `session`, else the newest.

    `answer` has `state`, `next`, `rules`, `open`, `resolved`, `decisions` and `summary`, all of them optional; each
    statement is `{text, quote}`. Ids and the time are those of the hand-off, and a missing summary is made of the statements.
    `only` are the ids of the items that it covers, where its author has not seen those that came since.

    Raises:
        InvalidInput: the answer is rejected, or `session` fits several conversations; nothing changed, and the text says
            what to correct.
    """
    from aether.architects.request import instruction

    fields, place, moment = answer_fields(answer), find(home), now()

    def plan(snapshot: Snapshot) -> Change:
        work = unclosed(snapshot, session)
        if work and only is not None:
            work = work._replace(live=[item for item in work.live if item["id"] in only])
        if work is None or not (work.live or work.archived):
            return Change({}, result=Closed(None, _why_nothing(snapshot, session)))
        opening = _opened(snapshot, work, moment)
        select = select_of(place, architect, counter_of(snapshot.documents["memory"]))
        stated, summary = _with_summary(fields, work, waits=select is not None)

        def store(documents: Mapping[str, Any]) -> Change:
            record = documents["memory"]["compression"]["open"][-1]
            return ingest.ingest(
                documents, stated, phase=work.phase, now=moment, new_id=new_id, count=counter_of(documents["memory"]),
                architect={**architect, "session": work.conversation}, compression_id=record["id"], instruct=instruction,
                find_evicted=lambda name, digest: evicted_session(snapshot, name, digest), summary=summary, select=select,
            )  # fmt: skip

        change = chain_changes(snapshot.documents, lambda _: opening, store)
        archived = {item["id"] for item in work.archived}
        moved = [item for item in change.appends.get("items", []) if item["item"]["id"] not in archived]
        appends = {**change.appends, "items": moved}
        if not moved:
            del appends["items"]
        stored: IngestResult = change.result[-1]
        missing = _missing(stated, stored)
        return Change(change.patches, appends, Closed(stored, "", work.conversation, missing))

    outcome = change_snapshot(place, plan, Author("close", by=by, reason="conversation"), ahead=True)
    closed = cast(Closed, outcome.result)
    if closed.ingested is None:
        return closed
    asks.forget(place, closed.conversation)
    fold_if_possible(place)
    return closed._replace(ingested=closed.ingested._replace(revision=outcome.revision))


def _with_summary(fields: JsonObject, work: Work, *, waits: bool) -> tuple[JsonObject, str]:
    """Return the fields of an answer with a summary, and the one that a compaction stored, if that holds on."""
    own = fields.get("summary")
    if waits:
        return {**fields, "summary": own or NO_SUMMARY}, ""
    stored = "" if own or not work.compacted else work.compacted["summary"]
    # What is not proven does not come back as a summary.
    provable = proof.prove(fields, [*work.archived, *work.live]).fields
    texts = " ".join(text for _, text in _statements(provable))
    return {**fields, "summary": own or stored or texts or NO_SUMMARY}, stored


def _missing(stated: Mapping[str, Any], stored: IngestResult) -> list[Dropped]:
    """Return the statements that are neither stored nor wait."""
    there, waiting = [*_statements(stored.session)], [*stored.waiting.values()]
    return [
        Dropped(field, text)
        for field, text in _statements(stated)
        if (field, text) not in there and not any(late.startswith(text) for late in waiting)
    ]


def answer_fields(answer: str | Mapping[str, Any]) -> JsonObject:
    """Return the fields of `answer` by the names that a session has, without ids.

    Raises:
        InvalidInput: it is no JSON object, or says nothing.
    """
    if isinstance(answer, str):
        try:
            value = json.loads(answer)
        except (ValueError, RecursionError):
            value = answers.unwrap(answer)
    else:
        value = answer
    if not isinstance(value, Mapping):
        raise InvalidInput(f"the answer is {shown(value)}.", fix="Give one JSON object.", where="answer")
    fields: JsonObject = {
        _FIELDS.get(str(name), str(name)): content
        for name, content in value.items()
        if content not in (None, "", [])
    }
    for name in ("id", "session_id", "compression_id"):
        fields.pop(name, None)
    if not any(fields.get(name) for name in (*STATEMENTS, "summary", "outcomes", "high_value_items")):
        raise InvalidInput(
            "the answer says nothing.",
            fix='Give at least one statement, such as {"state": [{"text": "…", "quote": "…"}]}.',
            where="answer",
        )
    return {"key_decisions": [], "outcomes": [], **fields}


def unclosed(snapshot: Snapshot, session: str = "") -> Work | None:
    """Return what no architect has judged of the conversation whose id starts with `session`, else of the newest one.

    Raises:
        InvalidInput: several conversations have an id that starts with `session`.
    """
    memory = snapshot.documents["memory"]
    heard: dict[str, str] = {}
    for item in items_of(memory):
        name = item["metadata"].get("conversation", "")
        heard[name] = max(heard.get(name, ""), item["metadata"]["timestamp"])
    for stored in sessions_of(memory):
        name = conversation_of(stored)
        if name in heard or _is_compaction(stored):
            heard[name] = max(heard.get(name, ""), stored["compressed_at"])
    heard.pop("", None)  # what was noted by hand is nobody's conversation
    fitting = [session] if session in heard else [name for name in heard if name.startswith(session)]
    if session and len(fitting) > 1:
        raise InvalidInput(
            f"{len(fitting)} conversations have an id that starts with {shown(session)}.",
            fix="Give more of it.", where="session",
        )  # fmt: skip
    if not fitting:
        return None
    conversation = max(fitting, key=lambda name: heard[name])
    live = [item for item in items_of(memory) if item["metadata"].get("conversation") == conversation]
    compacted = next(
        (session for session in reversed(sessions_of(memory)) if conversation_of(session) == conversation),
        None,
    )
    archived = _archived(snapshot, compacted) if compacted and _is_compaction(compacted) else []
    if not live and not archived:
        return None
    current = phases.current_phase(snapshot.documents["COLONY_STATE"])
    phase = max(item["metadata"].get("phase", current) for item in (*live, *archived))
    return Work(conversation, phase, live, archived, compacted if archived else None)


def handoff_of(snapshot: Snapshot, work: Work) -> Handoff:
    """Return the hand-off of `work` for a model that is asked from here; it is in no file and no document."""
    from aether.architects.request import prompt_of

    opening = _opened(snapshot, work, now())
    documents = {
        **snapshot.documents,
        "memory": apply(snapshot.documents["memory"], opening.patches["memory"]),
    }
    record = documents["memory"]["compression"]["open"][-1]
    built = handoff.build_handoff(
        documents,
        record,
        handoff.unchanged_items(documents["memory"], record),
        revision=snapshot.revision,
        now=now(),
    )
    sized = cast(JsonObject, {**built, "target_tokens": handoff.session_room(built)})
    return handoff.seal(built, prompt_of(sized))


def conversation_of(session: Mapping[str, Any]) -> str:
    """Return the conversation of a host that a session was made of; empty if it is not known."""
    return str((session["metadata"].get("architect") or {}).get("session", ""))


def _is_compaction(session: Mapping[str, Any]) -> bool:
    return (session["metadata"].get("architect") or {}).get("task") == COMPACTION


def _archived(snapshot: Snapshot, session: Session) -> list[Item]:
    """Return the items of a session that a compaction stored, from the archive; not those that were forgotten since."""
    name, hidden = session["session_id"], forgotten_ids(snapshot.documents["memory"])
    records_of_session = record_files.records(snapshot, "items", holding=[("session_id", name)])
    records = {
        entry["item"]["id"]: entry["item"]
        for _, entry in records_of_session
        if entry.get("session_id") == name
    }
    return [item for item in records.values() if item["id"] not in hidden]


def _opened(snapshot: Snapshot, work: Work, moment: datetime) -> Change:
    """Return the change that opens the hand-off of `work`, with the session of a compaction taken back before."""

    def restore(documents: Mapping[str, Any]) -> Change:
        return _restored(documents["memory"], work.compacted, work.archived) if work.compacted else Change({})

    def start(documents: Mapping[str, Any]) -> Change:
        memory = documents["memory"]
        name = work.compacted["session_id"] if work.compacted else free_id(snapshot.home, memory, work.phase)
        opening = handoff.start_handoff(
            memory, work.phase, compression_id=name, now=moment, conversation=work.conversation
        )
        record, items = opening.result, [*work.archived, *work.live]
        record["items"] = {item["id"]: record["items"][item["id"]] for item in items}
        record["total_tokens"] = sum(item["token_count"] for item in items)
        return opening

    return chain_changes(snapshot.documents, restore, start)


def _restored(memory: Mapping[str, Any], session: Session, archived: Sequence[Item]) -> Change:
    """Return the change that takes a session back: its `archived` items are in working memory again."""
    part, short = memory["working_memory"], memory["short_term_memory"]
    place = short["sessions"].index(session)
    tokens = part["current_tokens"] + sum(item["token_count"] for item in archived)
    patch: Patch = [
        {"op": "remove", "path": f"/short_term_memory/sessions/{place}"},
        {"op": "replace", "path": "/short_term_memory/current_sessions", "value": len(short["sessions"]) - 1},
        *({"op": "add", "path": "/working_memory/items/-", "value": item} for item in archived),
        {"op": "replace", "path": "/working_memory/current_tokens", "value": tokens},
    ]
    return Change({"memory": patch})


def _statements(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield field and text of each statement."""
    for name in STATEMENTS:
        value = fields.get(name) or []
        for entry in value if isinstance(value, list) else [value]:
            text = (entry.get("text") or entry.get("decision")) if isinstance(entry, Mapping) else entry
            if isinstance(text, str) and text.strip():
                yield name, text.strip()


def _why_nothing(snapshot: Snapshot, session: str) -> str:
    stored = [
        entry
        for entry in sessions_of(snapshot.documents["memory"])
        if (name := conversation_of(entry)) and name.startswith(session)
    ]
    if stored:
        return f"Nothing to close: session {stored[-1]['session_id']} has all of this conversation."
    name_suffix = f" of {shown(session)}" if session else ""
    return f"Nothing to close: working memory has no items{name_suffix or ' of a conversation'}."
