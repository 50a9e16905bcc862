"""Hand-offs: their files, and the session that a host's summary makes of one.

The drain stores summaries too, so nothing here uses home access. The extractive architect makes the structured part
(decisions, outcomes, high-value items) of the statements that aether itself captured; the host's prose is only the session's
`summary`, and only if the gate accepts it. So a model that was given memory makes no new evidence of it: prose is never
promoted. Rejected prose never becomes memory; the extractive summary is used, and the receipt gives the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from aether import clock, regular
from aether.clock import new_id, short_id
from aether.errors import AetherError, NotFound, own_call
from aether.memory import gate, handoff, ingest, items
from aether.memory.capture.notes import shorten
from aether.memory.items import items_of
from aether.memory.sessions import EXTRACTIVE, sessions_of
from aether.paths import file_name, inside, project_root
from aether.store import config, files, record_files
from aether.store.files import make_directory, storage_errors, write_whole
from aether.store.patch import chain_changes
from aether.store.snapshot import Snapshot
from aether.store.undo import undone_revisions
from aether.text.regex import lazy
from aether.tokens.counters import counter_of
from aether.types import RELEVANCE_OF_TYPE, Change, Counter, Handoff, JsonObject, Session

# Of the target, with prose of any length: captured statements are the reliable part.
STRUCTURED_SHARE = 0.5

_CODE = lazy(r"(?ms)^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)")


def handoff_path(home: Path, record: JsonObject) -> Path:
    """Return the path of the file of the hand-off `record`, written or not."""
    return inside(home, f"compressions/{file_name(record['id'], what='compression id')}.json")


def free_id(home: Path, memory: Mapping[str, Any], phase: int) -> str:
    """Return a fresh id for a hand-off of `phase`."""
    while True:
        chosen = short_id(f"phase_{phase}")
        if not handoff.is_id_used(memory, chosen) and not handoff_path(home, {"id": chosen}).exists():
            return chosen


def ensure_open(
    home: Path, documents: Mapping[str, Any], phase: int, now: datetime, conversation: str = ""
) -> Change:
    """Return the change that opens a hand-off of `phase`, or of one `conversation` in it, unless one with items is open.

    Its result is the record of the hand-off.
    """
    memory = documents["memory"]
    record = handoff.open_handoff(memory, phase, conversation)
    if record is not None and handoff.has_unchanged_items(memory, record):
        return Change({}, result=record)
    name = free_id(home, memory, phase)
    return handoff.start_handoff(memory, phase, compression_id=name, now=now, conversation=conversation)


def ensure_file(snapshot: Snapshot, record: JsonObject) -> Path:
    """Return the file of the open hand-off `record`, written again if it is missing or damaged."""
    path = handoff_path(snapshot.home, record)
    try:
        read_handoff(path)
    except AetherError:
        _write_file(snapshot.home, record, path)
    return path


def _write_file(home: Path, record: JsonObject, path: Path) -> None:
    from aether.api.home import present
    from aether.architects.request import prompt_of
    from aether.store.commit import write_lock

    left = "The hand-off is open; preparing it again writes its file."
    # Read under the lock: what is erased while the file is written would be in it.
    with own_call(), write_lock(home), storage_errors(home, left=left):
        snapshot = present(home)
        memory = snapshot.documents["memory"]
        # An erasure changes its digests.
        record = next((open for open in memory["compression"]["open"] if open["id"] == record["id"]), record)  # noqa: A001
        items = handoff.unchanged_items(memory, record)
        built = handoff.build_handoff(
            snapshot.documents, record, items, revision=snapshot.revision, now=clock.now()
        )
        sized = cast(JsonObject, {**built, "target_tokens": handoff.session_room(built)})
        make_directory(path.parent)
        write_whole(path, files.json_document(handoff.seal(built, prompt_of(sized))))


def read_handoff(path: Path) -> Handoff:
    """Return the hand-off in the file at `path`.

    Raises:
        NotFound: there is no such file.
        CorruptDocument: it was changed or truncated.
    """
    try:
        data = regular.read(path)
    except OSError as reason:
        raise NotFound(
            "there is no such hand-off.", fix='Run "aether memory prepare".', where=str(path)
        ) from reason
    return handoff.require_intact(files.parse_json(data, where=path.name), where=path.name)


def evicted_session(snapshot: Snapshot, name: str, digest: str) -> Session | None:
    """Return the session of this answer from the archive, if it was evicted and that was not undone."""
    receipts = (record for _, record in record_files.records(snapshot, "receipts"))
    # Receipts are few and the archive is long: it is read only for an answer that was stored before.
    if not any((it.get("session_id"), it.get("answer_sha256")) == (name, digest) for it in receipts):
        return None
    undone = undone_revisions(snapshot)
    for _, record in record_files.records(snapshot, "items"):
        session = record.get("session") if record["why"] == "evicted" else None
        if session and session["session_id"] == name and record["revision"] not in undone:
            return cast(Session, session)
    return None


def summary_change(
    snapshot: Snapshot, summary: str, *, session: str = "", trigger: str = "", now: datetime
) -> Change:
    """Return the change that stores `summary` with the session of the open hand-off; its result is an `IngestResult`.

    The hand-off is that of the items of the host's `session`, of all if it is not known: a session that goes on beside
    it keeps its own. It is opened first if it is not open. The change has the result None if nothing is stored, because working memory is empty
    and the sessions hold its items already. If there is no session either (hooks were installed in the middle of a
    conversation), an accepted summary is stored by itself. The same summary of the same host `session` again changes
    nothing.

    Raises:
        InvalidInput, Conflict: as `aether.memory.ingest.ingest`.
    """
    from aether.api.confirming import own_entries
    from aether.memory.briefing.briefing import steering
    from aether.text.summary_checks import model_fault

    memory, place = snapshot.documents["memory"], snapshot.home
    mode = config.or_default(place).memory_agents
    if mode == gate.OFF:
        return Change({})
    digest = regular.digest(f"{session}\0{summary}".encode("utf-8", "surrogatepass"))
    sessions = [session for session in sessions_of(memory) if _digest_of(session["metadata"]) == digest]
    if sessions:
        return Change({}, result=ingest.already_stored(sessions[0]))
    stored = [
        receipt["revision"]
        for _, receipt in record_files.records(snapshot, "receipts")
        if _digest_of(receipt) == digest
    ]
    if stored and not undone_revisions(snapshot).issuperset(stored):  # its session was evicted since
        return Change({})
    prose = prose_of(summary)
    contents = [item["content"] for item in items_of(memory)]
    inputs = [
        *contents,
        steering({**snapshot.documents, **own_entries(snapshot)}, now=now, root=project_root(place)),
    ]
    fault = f"It {fault_words}." if (fault_words := model_fault(prose, given=inputs)) else ""
    phase = handoff.phase_to_compress(snapshot.documents)
    if not handoff.items_up_to(memory, phase, session):
        if fault or sessions_of(memory):
            return Change({})
        return _without_items(snapshot.documents, prose, digest, session, now, waits=mode != gate.WRITE)
    waits = bool(prose) and not fault and mode != gate.WRITE
    opening = ensure_open(place, snapshot.documents, phase, now, session)
    architect = {
        "backend": "extractive", "model": "", "task": "compaction summary", "summary": fault or ("waits" if waits else "accepted"),
        "summary_sha256": digest, "session": session, "trigger": trigger,
    }  # fmt: skip

    def store(documents: Mapping[str, Any]) -> Change:
        state = snapshot._replace(documents=dict(documents))
        return _with_session(state, opening.result, "" if fault or waits else prose, architect, now)

    def propose(documents: Mapping[str, Any]) -> Change:
        return _waiting_summary(documents, prose, session, now) if waits else Change({})

    change = chain_changes(snapshot.documents, propose, lambda _: opening, store)
    return change._replace(result=change.result[-1])


def _waiting_summary(documents: Mapping[str, Any], prose: str, session: str, now: datetime) -> Change:
    """Return the change that lets the summary of a host wait for a person."""
    metadata = {"evidence": "agent", **({"conversation": session} if session else {})}
    entry = items.checked_entry(prose, "outcome", RELEVANCE_OF_TYPE["outcome"], metadata=metadata)
    return gate.propose(
        documents, [entry], by="summary of a compaction", now=now, new_id=new_id, count=counter_of(documents["memory"])
    )  # fmt: skip


def select_of(place: Path, architect: Mapping[str, Any], count: Counter) -> ingest.Select | None:
    """Return what selects the session where the statements of an `architect` wait for a person; None where they do not.

    Raises:
        Refused: `memory.agents` is off.
    """
    mode = config.or_default(place).memory_agents
    if mode == gate.WRITE or architect.get("backend") == EXTRACTIVE:
        return None
    if mode == gate.OFF:
        raise gate.refusal("no architect but the built-in one writes a session here")
    return partial(selected, count=count)


def selected(built: Handoff, count: Counter) -> str:
    """Return the answer of the built-in architect to a hand-off."""
    from aether.architects import extractive
    from aether.architects.base import Settings
    from aether.architects.request import session_request
    from aether.memory.fidelity import required_entries
    from aether.memory.handoff import session_room

    data = {**built, "required": required_entries(built), "target_tokens": session_room(built)}
    request = session_request(cast(JsonObject, data))
    return extractive.complete(request, settings=Settings(), count=count).text


def _with_session(
    snapshot: Snapshot, record: JsonObject, prose: str, architect: JsonObject, now: datetime
) -> Change:
    """Return the change that stores the session of the hand-off `record`, with `prose` as its summary unless it is empty."""
    from aether.architects import extractive
    from aether.architects.base import Settings
    from aether.architects.request import instruction, session_request
    from aether.memory.fidelity import required_entries

    documents = snapshot.documents
    count = counter_of(documents["memory"])
    items = handoff.unchanged_items(documents["memory"], record)
    built = handoff.build_handoff(documents, record, items, revision=snapshot.revision, now=now)
    data = {**built, "required": required_entries(built), "summarised": bool(prose)}
    request = session_request(cast(JsonObject, data))
    target = request.target_tokens
    room = max(handoff.PAGE_TOKENS, int(target * STRUCTURED_SHARE), target - count(prose))
    answer = extractive.complete(request._replace(target_tokens=room), settings=Settings(), count=count)
    return ingest.ingest(
        documents, answer.text, phase=record["phase"], now=now, new_id=new_id, count=count, architect=architect,
        compression_id=record["id"], instruct=instruction, summary=prose,
        find_evicted=lambda name, digest: evicted_session(snapshot, name, digest),
    )  # fmt: skip


def prose_of(summary: str) -> str:
    """Return the prose of `summary`: without the analysis before it, markup of hosts, secrets and, if it is long, code.

    >>> prose_of("<analysis>Let me see.</analysis><summary>Chose SQLite.</summary>")
    'Chose SQLite.'
    """
    from aether.memory.capture.extract import SUMMARY_CHARS
    from aether.redact.redact import redact
    from aether.text.cleaning import clean, without_thoughts

    text = redact(clean(without_thoughts(summary)))
    if len(text) > SUMMARY_CHARS:
        text = _CODE.sub("", text).strip()
    return shorten(text, SUMMARY_CHARS)


def _digest_of(holder: Mapping[str, Any]) -> str:
    return str((holder.get("architect") or {}).get("summary_sha256", ""))


def _without_items(
    documents: Mapping[str, Any], prose: str, digest: str, session: str, now: datetime, *, waits: bool
) -> Change:
    """Return the change that stores `prose` as a session without items, or lets it wait."""
    if waits:
        return _waiting_summary(documents, prose, session, now)._replace(result=None)
    name = f"summary_{digest[:8]}"
    answer = {
        "id": name, "session_id": name, "compressed_at": clock.stamp(now), "summary": prose,
        "key_decisions": [], "outcomes": [], "high_value_items": [],
    }  # fmt: skip
    phase, count = handoff.phase_to_compress(documents), counter_of(documents["memory"])
    change = chain_changes(
        documents,
        lambda state: ingest.create_session(state, answer, phase=phase, now=now, new_id=new_id, count=count),
        lambda state: Change({}, result=sessions_of(state["memory"])[-1]),
    )
    already_stored = ingest.already_stored(change.result[-1])
    return change._replace(result=already_stored._replace(stored=True, notes=["the summary covers no items"]))
