"""Ingesting: store the answer of an architect as a session, in one transaction or not at all.

The answer is read (`answers`), its statements are proven (`proof`), the fidelity gate adds what must survive (`fidelity`), and
it is stored once; what it resolves or supersedes of earlier sessions ends in the same transaction. Exactly the prepared items move from working memory to the archive; repeated statements are promoted; sessions over the limit are
evicted after their patterns were extracted; a receipt records all of it, and how many statements were dropped without proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from aether import clock
from aether.clock import NewId
from aether.errors import Conflict, InvalidInput, shown
from aether.memory import answers, fidelity, gate, handoff, items, patterns, proof, sessions, statements
from aether.memory.briefing.kept import keeps_items, kept_items, outlasts, timestamp
from aether.redact.redact import redacted
from aether.store.patch import chain_changes, join_changes
from aether.types import (
    RELEVANCE_OF_TYPE,
    Change,
    Counter,
    EndState,
    Handoff,
    Item,
    JsonObject,
    Patch,
    Session,
)

# The summary of an answer of which nothing is proven.
NO_SUMMARY = "The agent closed its conversation."

Step = Callable[[Mapping[str, Any]], Change]
MakePrompt = Callable[[JsonObject], JsonObject]
"""Makes the prompt of a hand-off, so that an answer that repeats it is recognized."""

Select = Callable[[Handoff], str]
"""Selects the answer of the built-in architect from a hand-off."""

FindEvicted = Callable[[str, str], Session | None]
"""Finds the evicted session with this id that was made of the answer with this digest."""


class IngestResult(NamedTuple):
    """The stored session and the effects of storing it."""

    session: Session
    stored: bool
    """False if the same session was stored already."""
    items: int
    """Number of items that moved from working memory to the archive."""
    carried: list[JsonObject]
    """Required statements that the architect had left out and the gate restored, with the reason."""
    left_out: list[JsonObject]
    """Required statements that the gate had no room for; only the archive has them."""
    missing: list[str]
    """Paths, names and numbers of those."""
    fidelity: float
    """Share of the required statements that the architect had kept."""
    patterns: list[str]
    """Ids of created patterns."""
    contradictions: list[JsonObject]
    """Pairs of patterns that cannot both hold."""
    evicted: list[str]
    """Ids of sessions that the limit moved to the archive."""
    receipt_id: str
    notes: list[str]
    """The corrections of the answer, in words."""
    dropped: dict[str, int] = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """How many statements of each field had no proof and were dropped."""
    waiting: dict[str, str] = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """The statements that wait for a person, by id."""
    revision: int = 0
    """The revision of the change; 0 if nothing was stored, or if it waits for the server of a shared colony."""


def ingest(
    documents: Mapping[str, Any], answer: str | Mapping[str, Any], *, phase: int, now: datetime, new_id: NewId,
    count: Counter, architect: JsonObject, instruct: MakePrompt, compression_id: str | None = None,
    find_evicted: FindEvicted = lambda session_id, digest: None, summary: str = "", select: Select | None = None,
) -> Change:  # fmt: skip
    """Return the change that stores `answer` as the session of `phase`; its result is an `IngestResult`.

    What only a person can confirm waits for one (`gate`). With `select` all statements of the answer and its summary do, and
    the session is what that selects from the items.

    `compression_id` names the hand-off that it answers; without it, the answer's own ids do, else it is
    the one open for the phase. `find_evicted` looks up evicted sessions. `summary`, checked by the caller, replaces
    that of the answer, because it may cover more than the items.

    Raises:
        InvalidInput: the answer is rejected; the text can be sent back to its author.
        Conflict: its id is used already, the named hand-off is not open any more, or several are open.
    """
    memory = documents["memory"]
    raw = _unwrapped(memory, answer, phase, compression_id)
    digest = sessions.answer_digest(raw)
    same = _same_session(memory, raw, phase=phase, compression_id=compression_id, find_evicted=find_evicted)
    if same is not None and same["metadata"].get("answer_sha256") == digest:
        return Change({}, result=already_stored(same))
    record, prepared = _handoff_and_items(memory, raw, phase, compression_id, now)
    built = handoff.build_handoff(documents, record, prepared, revision=0, now=now)
    source = cast(Handoff, {**built, "prompt": instruct(cast(JsonObject, built))})
    extractive = architect.get("backend") == sessions.EXTRACTIVE
    checked = answers.check_answer(raw, source, phase, count=count, extractive=extractive)
    checked = _not_in_future(checked, now)
    stated = _stated(documents, checked, source, architect, summary=summary, select=select, count=count)
    endings, author = stated.endings, str(architect.get("backend") or "architect")
    gated = fidelity.gate(source, stated.fields, count=count)
    metadata = {
        "compression_id": record["id"], "answer_sha256": digest, "architect": stated.architect,
        **_metadata_of(prepared, {end.id for end in endings}, now),
    }  # fmt: skip
    session = sessions.build_session(
        gated.session, phase=phase, original_tokens=record["total_tokens"], count=count, metadata=metadata
    )
    change = chain_changes(
        documents,
        lambda state: gate.propose(state, stated.waiting, by=author, now=now, new_id=new_id, count=count),
        *(_end_step(end, clock.stamp(now)) for end in endings),
        lambda state: sessions.store_session(state["memory"], session),
        lambda state: sessions.count_compression(state["memory"], session),
        lambda state: _archive_items(state["memory"], prepared, session, record["id"], now),
        lambda state: _close(state["memory"], record["id"]),
        lambda state: items.withdraw_threshold(state, now=now),
        *_promote_and_evict(session["session_id"], now, new_id),
    )
    promoted, evicted = change.result[-2:]
    result = IngestResult(
        session, True, len(prepared), gated.carried, gated.left_out, gated.missing_identifiers, gated.score, promoted.created,
        [pair._asdict() for pair in promoted.contradictions], evicted, new_id("receipt", now, 0),
        _notes(checked, memory, record), dropped=proof.dropped_counts(stated.dropped),
        waiting={id_: entry["content"] for id_, entry in zip(change.result[0], stated.waiting, strict=True) if id_},
    )  # fmt: skip
    stamp = clock.stamp(now)
    event = {"event": "memory.compressed", "at": stamp, "receipt_id": result.receipt_id, "phase": phase}
    receipt = _receipt(result, prepared, record, stamp)
    return join_changes(change, Change({}, {"receipts": [receipt], "events": [event]}), result=result)


class _Stated(NamedTuple):
    """What is stored of a checked answer, and what waits for a person."""

    fields: JsonObject
    endings: list[_Ending]
    waiting: list[JsonObject]
    dropped: list[JsonObject]
    architect: JsonObject
    """The author of the session."""


def _stated(
    documents: Mapping[str, Any], checked: answers.CheckedAnswer, source: Handoff, architect: JsonObject, *, summary: str,
    select: Select | None, count: Counter,
) -> _Stated:  # fmt: skip
    """Return what of a checked answer is stored; with `select`, that of the built-in architect, and all of it waits."""
    memory, author = documents["memory"], str(architect.get("backend") or "architect")
    extractive = author == sessions.EXTRACTIVE
    proven = _proven(checked.fields, _witnessed(documents, source, select), memory, quoting=extractive)
    endings, proposals = _ends(memory, proven, checked.fields["session_id"])
    conversation = _conversation_of(source["items"], architect)
    kinds = {entry.id: entry.kind for entry in statements.in_force(memory)} if proposals else {}
    waiting = [
        _waiting_entry(
            {"type": gate.TYPE_OF_KIND.get(kinds.get(entry["target"], "rule")), **entry}, author, conversation
        )
        for entry in proposals
    ]
    fields = {**proven.fields, **({"summary": summary} if summary else {})}
    if select is None or extractive:
        return _Stated(fields, endings, waiting, proven.dropped, architect)
    waiting += _all_waiting(fields, endings, author, conversation)
    phase = checked.fields["phase"]
    own = answers.check_answer(select(source), source, phase, count=count, extractive=True).fields
    own |= {name: checked.fields[name] for name in ("id", "session_id", "compressed_at")}
    selected = _proven(own, source, memory, quoting=True).fields
    author_of_session = {**architect, "backend": sessions.EXTRACTIVE, "proposed_by": author}
    return _Stated(selected, [], waiting, proven.dropped, author_of_session)


def _witnessed(documents: Mapping[str, Any], source: Handoff, select: Select | None) -> Handoff:
    """Return the hand-off by whose items an answer is proven: where an agent's words wait, those of its conversations, too."""
    if select is None:
        return source
    conversations = {item["metadata"].get("conversation") for item in source["items"]} - {None, ""}
    waiting = [
        item for item in gate.waiting_of(documents) if item["metadata"].get("conversation") in conversations
    ]
    return cast(Handoff, {**source, "items": [*source["items"], *waiting]})


def _conversation_of(prepared: Sequence[Item], architect: Mapping[str, Any]) -> str:
    names = {item["metadata"].get("conversation", "") for item in prepared}
    return str(architect.get("session") or (names.pop() if len(names) == 1 else ""))


# The type of the item that a statement becomes when a person accepts it.
_TYPE_OF_FIELD = {
    "state": "outcome", "next": "next", "rules": "constraint", "open": "blocker", "key_decisions": "decision",
    "outcomes": "outcome", "resolved": "outcome",
}  # fmt: skip


def _waiting_entry(fields: Mapping[str, Any], author: str, conversation: str) -> JsonObject:
    """Return the checked entry of a proposal: its `type` and `text`, and perhaps `kind`, `quote`, `items` and `target`."""
    kind, type_ = fields.get("kind", "new"), fields["type"]
    metadata = gate.proposal(
        how=kind if kind in ("resolve", "supersede") else "new", target=fields.get("target", ""), quote=fields.get("quote", ""),
        sources=fields.get("items", ()), evidence="agent", conversation=conversation,
    )  # fmt: skip
    relevance = RELEVANCE_OF_TYPE.get(type_, items.DEFAULT_RELEVANCE)
    source = author[: items.MAX_WORD_CHARS]
    return items.checked_entry(fields["text"], type_, relevance, source=source, metadata=metadata)


def _all_waiting(
    fields: Mapping[str, Any], endings: Sequence[_Ending], author: str, conversation: str
) -> list[JsonObject]:
    """Return the checked entries of all that an architect states, the ends of earlier entries included."""
    ending = {"/".join(end.by.split("/")[-2:]): end for end in endings}
    proposals: list[JsonObject] = []
    for field, type_ in _TYPE_OF_FIELD.items():
        for place, entry in enumerate(fields.get(field) or []):
            end = ending.get(f"{field}/{place}")
            text = entry.get("text") or entry.get("decision") or entry.get("result") or ""
            rationale = entry.get("rationale") or entry.get("impact") or ""
            kind = {"superseded": "supersede", None: "new"}.get(end and end.how, "resolve")
            if field != "resolved" or end:
                proposals.append(
                    {**entry, "type": type_, "kind": kind, "target": end.id if end else "", "text": f"{text} ({rationale})" if rationale else text}
                )  # fmt: skip
    proposals += [
        {"text": entry["content"], "type": entry["type"]} for entry in fields.get("high_value_items") or []
    ]
    if fields.get("summary") not in (None, "", NO_SUMMARY):
        proposals.append({"text": fields["summary"], "type": "outcome"})
    return [_waiting_entry(entry, author, conversation) for entry in proposals if entry["text"].strip()]


def _metadata_of(prepared: Sequence[Item], ended_ids: set[str], now: datetime) -> JsonObject:
    """Return what a session keeps of its items: their number, castes, newest time, lasting ones and ended texts."""
    ended = ended_ids | {item["id"] for item in prepared if item["metadata"].get("ended_at")}
    times = [stamp for item in prepared if (stamp := timestamp(item["metadata"]["timestamp"]))]
    texts = [item["content"] for item in prepared if item["id"] in ended]
    return {
        "item_count": len(prepared), "castes": sorted({item["metadata"]["caste"] for item in prepared if item["metadata"]["caste"]}),
        **({"until": min(max(times), clock.stamp(now))} if times else {}), "items": kept_items(prepared, ended),
        **({"ended": texts} if texts else {}),
    }  # fmt: skip


def _unwrapped(
    memory: Mapping[str, Any], answer: str | Mapping[str, Any], phase: int, compression_id: str | None
) -> JsonObject:
    """Return the session in `answer`; without a hand-off that it could answer, the error is about that."""
    try:
        return answers.unwrap(answer)
    except InvalidInput as reason:
        if compression_id or handoff.open_handoffs(memory, phase):
            raise
        raise InvalidInput(
            f"no hand-off is open for phase {phase}, and the answer is not a session: {reason.what}",
            fix=f'Prepare a hand-off first: "aether memory prepare --phase {phase}".',
            where="compress",
        ) from reason


def _same_session(
    memory: Mapping[str, Any], raw: JsonObject, *, phase: int, compression_id: str | None,
    find_evicted: FindEvicted,
) -> Session | None:  # fmt: skip
    """Return the session that this answer may have become before."""
    digest = sessions.answer_digest(raw)
    name = str(raw.get("session_id") or raw.get("id") or compression_id or "")
    same = sessions.find_session(memory, name) or find_evicted(name, digest)
    if not name and not handoff.open_handoffs(memory, phase):
        # An answer without ids answers the open hand-off; without one, it may have answered the last.
        same = next(
            (
                session
                for session in sessions.sessions_of(memory)
                if session["phase"] == phase and session["metadata"].get("answer_sha256") == digest
            ),
            None,
        )
    return same


def _proven(fields: JsonObject, source: Handoff, memory: Mapping[str, Any], *, quoting: bool) -> proof.Proven:
    """Return the proven statements of an answer; the built-in architect is `quoting` items, and states nothing."""
    texts = {name: value for name, value in fields.items() if isinstance(value, list) or name == "summary"}
    fields = {**fields, **redacted(texts)}
    if quoting:
        plain = {name: value for name, value in fields.items() if name not in statements.STATED_FIELDS}
        return proof.Proven(plain, [], [])
    context = [text for entry in source.get("earlier", []) for text in entry.values()]
    context += [signal["metadata"].get("context", "") for signal in source["signals"]]
    proven = proof.prove(fields, source["items"], statements.explicit_notes(memory), context=context)
    # Items that left meanwhile prove nothing, and that is nobody's fault.
    if source["items"] and (reason := proof.rejection(proven)):
        raise InvalidInput(reason, fix=proof.HOW_TO_QUOTE)
    return proven


class _Ending(NamedTuple):
    """An earlier entry that the session ends."""

    id: str
    how: EndState
    by: str


def _ends(
    memory: Mapping[str, Any], proven: proof.Proven, session_id: str
) -> tuple[list[_Ending], list[JsonObject]]:
    """Return what of earlier sessions ends, and all that a person is to confirm."""
    earlier = statements.in_force(memory)
    endings: dict[str, _Ending] = {}
    proposals = [*proven.proposals]
    for end in proven.ends:
        target = statements.find_earlier(
            end.references, [entry for entry in earlier if entry.id not in end.items]
        )
        if target is None or target.id in endings:
            continue
        if statements.may_end(target, end.evidence):
            undone: EndState = "resolved" if target.kind in ("open", "next") else "revoked"
            how: EndState = "superseded" if end.kind == "supersede" else undone
            endings[target.id] = _Ending(target.id, how, f"{session_id}/{end.by}")
        else:
            proposals.append(
                {
                    "kind": end.kind, "text": end.text, "quote": end.quote, "items": end.items, "target": target.id,
                }
            )  # fmt: skip
    return list(endings.values()), proposals


def _end_step(end: _Ending, ended_at: str) -> Step:
    return lambda state: statements.end(state["memory"], end.id, end.how, at=ended_at, by=end.by)


def _notes(checked: answers.CheckedAnswer, memory: Mapping[str, Any], record: JsonObject) -> list[str]:
    notes = [f"{note.where}: {note.message}" for note in checked.findings]
    if record not in memory["compression"]["open"]:
        notes.append(f"nothing was prepared: the session covers all items up to phase {record['phase']}")
    return notes


def already_stored(session: Session) -> IngestResult:
    """Return the result of ingesting an answer whose session is stored already."""
    note = "the same answer was stored before: nothing changed"
    return IngestResult(session, False, 0, [], [], [], 1.0, [], [], [], "", [note])


def _not_in_future(checked: answers.CheckedAnswer, now: datetime) -> answers.CheckedAnswer:
    """Return `checked`, compressed no later than now: a session of the future would outlive all others."""
    stated, latest = checked.fields["compressed_at"], clock.stamp(now)
    if stated <= latest:
        return checked
    note = answers.corrected("compressed_at", f"{stated} is in the future and was set to now.")
    return answers.CheckedAnswer({**checked.fields, "compressed_at": latest}, [*checked.findings, note])


def _handoff_and_items(
    memory: Mapping[str, Any], answer: Mapping[str, Any], phase: int, compression_id: str | None,
    now: datetime,
) -> tuple[JsonObject, list[Item]]:  # fmt: skip
    """Return the hand-off that `answer` answers, and its items; without one, all items to compress."""
    ids = [answer.get(field) for field in ("id", "session_id", "compression_id")]
    ids = [compression_id] if compression_id else ids
    records_named = [record for record in memory["compression"]["open"] if record["id"] in ids]
    closed = compression_id or next(filter(handoff.is_handoff_id, ids), None)
    if closed and not records_named:
        # The hand-off that is open now has items that this architect has never seen.
        raise Conflict(
            f"the hand-off {shown(closed)} is not open any more: another session answered it.",
            fix='Prepare again: "aether memory prepare".',
            where="compress",
        )
    if records_named and records_named[0]["phase"] != phase:
        raise InvalidInput(
            f"the hand-off {records_named[0]['id']} is of phase {records_named[0]['phase']}, not {phase}.",
            fix=f"Ingest it with --phase {records_named[0]['phase']}.",
            where="compress",
        )
    if not records_named:
        records = handoff.open_handoffs(memory, phase)
        holding = [record for record in records if handoff.unchanged_items(memory, record)]
        if len(holding) > 1:
            raise Conflict(
                f"the answer records_named none of the hand-offs open for phase {phase}: "
                f"{', '.join(record['id'] for record in holding)}.",
                fix="Name the one it answers: aether memory ingest --handoff ID.",
                where="compress",
            )
        records_named = (holding or records)[-1:]
    record = records_named[0] if records_named else None
    if record is not None:
        return record, handoff.unchanged_items(memory, record)
    everything = handoff.items_up_to(memory, phase)
    if not everything:
        raise InvalidInput(
            f"nothing was prepared for phase {phase}, and working memory has nothing of it.",
            fix="Use create_short_term_session to store a session without items.",
            where="compress",
        )
    opened = handoff.start_handoff(memory, phase, compression_id=f"phase_{phase}_unprepared", now=now)
    return opened.result, everything


def _archive_items(
    memory: Mapping[str, Any], prepared: Sequence[Item], session: Session, compression_id: str, now: datetime
) -> Change:
    going = {item["id"] for item in prepared}
    part = memory["working_memory"]
    places = [place for place, item in enumerate(part["items"]) if item["id"] in going]
    current_tokens = part["current_tokens"] - sum(item["token_count"] for item in prepared)
    patch = [
        *items.removal(places),
        {"op": "replace", "path": "/working_memory/current_tokens", "value": current_tokens},
    ]
    records = items.archive_records(
        [part["items"][place] for place in places],
        why="compressed",
        now=now,
        session_id=session["session_id"],
        compression_id=compression_id,
    )
    return Change({"memory": patch}, {"items": records} if records else {})


def _close(memory: Mapping[str, Any], compression_id: str) -> Change:
    """Return the change that closes this hand-off and every other one without remaining items."""
    records = memory["compression"]["open"]
    places = [
        place for place, record in enumerate(records)
        if record["id"] == compression_id or not handoff.unchanged_items(memory, record)
    ]  # fmt: skip
    patch = [{"op": "remove", "path": f"/compression/open/{place}"} for place in reversed(places)]
    return Change({"memory": patch})


def _promote_and_evict(stored: str, now: datetime, new_id: NewId) -> tuple[Step, Step]:
    """Return the steps that promote repeated statements, then evict the oldest sessions except `stored`.

    `stored` is spared however old it claims to be: evicted at once, it would be stored again when it is ingested again.
    """

    def promote(documents: Mapping[str, Any]) -> Change:
        return patterns.promote(documents["memory"], now=now, new_id=new_id)

    def evict_oldest(documents: Mapping[str, Any]) -> Change:
        oldest = sessions.oldest_session(documents["memory"], spared=stored)
        return _evict(documents, oldest["session_id"], now) if oldest else Change({})

    def trim(documents: Mapping[str, Any]) -> Change:
        short = documents["memory"]["short_term_memory"]
        surplus = len(short["sessions"]) - short["max_sessions"]
        change = chain_changes(documents, *[evict_oldest] * max(0, surplus))
        return change._replace(result=[session["session_id"] for session in change.result])

    return promote, trim


def _evict(documents: Mapping[str, Any], session_id: str, now: datetime) -> Change:
    """Return the change that moves one session to the archive; its result is that session.

    Its rules, protected texts and decisions of a person hold on: the oldest session that stays keeps their items.
    """
    change = chain_changes(
        documents,
        lambda state: _hand_on(state["memory"], session_id),
        lambda state: _hand_on_statements(state["memory"], session_id),
        lambda state: sessions.evict_session(state["memory"], session_id, now=now),
    )
    return change._replace(result=change.result[-1])


def _hand_on(memory: Mapping[str, Any], session_id: str) -> Change:
    """Return the change that gives the items of a session that outlast it, and that nobody ended, to the next older one."""
    every = sessions.sessions_of(memory)
    leaving = sessions.find_session(memory, session_id)
    staying = [place for place, entry in enumerate(every) if entry is not leaving and keeps_items(entry)]
    if leaving is None or not staying:
        return Change({})
    contents = {item["content"] for item in items.items_of(memory)}
    contents |= {item["content"] for position in staying for item in every[position]["metadata"]["items"]}
    lasting = [
        item
        for item in leaving["metadata"].get("items", [])
        if outlasts(item) and not item["metadata"].get("ended_at") and item["content"] not in contents
    ]
    heir = min(staying, key=lambda index: sessions.last_instant(every[index]))
    path = f"/short_term_memory/sessions/{heir}/metadata/items"
    patch: Patch = [{"op": "add", "path": f"{path}/{nth}", "value": item} for nth, item in enumerate(lasting)]
    return Change({"memory": patch} if patch else {})


def _hand_on_statements(memory: Mapping[str, Any], session_id: str) -> Change:
    """Return the change that gives a person's rules and decisions in force in a session to the oldest one that stays."""
    every = cast(Sequence[Mapping[str, Any]], sessions.sessions_of(memory))
    leaving = sessions.find_session(memory, session_id)
    staying = [place for place, session in enumerate(every) if session is not leaving]
    if leaving is None or not staying:
        return Change({})
    heir = min(staying, key=lambda place: sessions.last_instant(every[place]))
    patch: Patch = []
    for field in ("rules", "key_decisions"):
        lasting = [
            entry
            for entry in cast(Mapping[str, Any], leaving).get(field) or []
            if entry.get("evidence") == "person"
            and not entry.get("ended")
            and not any(entry in (every[place].get(field) or []) for place in staying)
        ]
        if lasting:
            path = f"/short_term_memory/sessions/{heir}/{field}"
            patch.append({"op": "add", "path": path, "value": [*(every[heir].get(field) or []), *lasting]})
    return Change({"memory": patch} if patch else {})


def create_session(
    documents: Mapping[str, Any], answer: str | Mapping[str, Any], *, phase: int, now: datetime, new_id: NewId,
    count: Counter,
) -> Change:  # fmt: skip
    """Return the change that stores a session without items; its result is the session id."""
    raw = answers.unwrap(answer)
    checked = _not_in_future(answers.check_answer(raw, None, phase, count=count), now)
    # Without items nothing can be proven: what the requirement names is stored as it is given.
    fields = {name: value for name, value in checked.fields.items() if name not in statements.STATED_FIELDS}
    stated = raw.get("original_tokens")
    # Without items to count, the number that the caller states is used.
    original = int(stated) if isinstance(stated, int | float) and 0 <= stated < 1 << 53 else 0
    session = sessions.build_session(
        fields, phase=phase, original_tokens=original, count=count,
        metadata={"answer_sha256": sessions.answer_digest(raw)},
    )  # fmt: skip
    change = chain_changes(
        documents,
        lambda state: sessions.store_session(state["memory"], session),
        *_promote_and_evict(session["session_id"], now, new_id),
    )
    return change._replace(result=session["session_id"])


def promote_and_evict(
    documents: Mapping[str, Any], session_id: str, *, now: datetime, new_id: NewId
) -> Change:
    """Return the change that promotes repeated statements, then moves one session to the archive."""
    change = chain_changes(
        documents,
        lambda state: patterns.promote(state["memory"], now=now, new_id=new_id),
        lambda state: _evict(state, session_id, now),
    )
    return change._replace(result=change.result[-1])


def _receipt(
    result: IngestResult, prepared: Sequence[Item], record: JsonObject, recorded_at: str
) -> JsonObject:
    session = result.session
    fields = (
        "carried", "left_out", "missing", "fidelity", "patterns", "contradictions", "evicted", "notes", "dropped",
    )  # fmt: skip
    return {
        "receipt_id": result.receipt_id, "kind": "compression", "at": recorded_at, "compression_id": record["id"],
        "session_id": session["session_id"], "phase": session["phase"],
        "architect": session["metadata"]["architect"], "tokens_before": session["original_tokens"],
        "tokens_after": session["compressed_tokens"], "ratio": session["compression_ratio"],
        "items": [item["id"] for item in prepared], **{field: getattr(result, field) for field in fields},
        "answer_sha256": session["metadata"]["answer_sha256"],
    }  # fmt: skip
