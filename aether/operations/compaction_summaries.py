"""Compaction summaries: what the host's summariser wrote becomes part of the session of the prepared hand-off.

The extractive architect makes the structured part (decisions, outcomes, high-value items) of what aether itself
captured; the host's prose is only the session's `summary`, and only where the gate finds it to be one. So a model
that was told what aether remembers makes no new evidence of it: prose is never promoted. What is rejected
never becomes memory; the extractive summary stays, and the receipt says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from aether import clock
from aether.memory import ingest, phases
from aether.memory.briefing import steering
from aether.memory.capture import SUMMARY_CHARS
from aether.memory.fidelity import demands
from aether.memory.handoff import PAGE_TOKENS
from aether.memory.ingest import Ingested
from aether.memory.items import items_of
from aether.memory.notes import shorten
from aether.memory.sessions import sessions_of
from aether.operations.briefing import project_root
from aether.operations.compression import (
    Prepared,
    ingested,
    outgrown,
    prepare,
    read_handoff,
)
from aether.operations.edge import Author, Home, Snapshot, change, counter_of, find, new_id, now, read
from aether.operations.taking_in import patience_of
from aether.redact.redaction import redact
from aether.shapes import Change, JsonObject
from aether.store import appends, config
from aether.store.undo import taken_back
from aether.text.cleaning import clean
from aether.text.model_faults import model_fault

# Of the target, however much the prose takes: what was captured is what can be relied on.
STRUCTURED_SHARE = 0.5

_THOUGHTS_END = re.compile(r"</analysis\s*>", re.IGNORECASE)
_THOUGHTS = re.compile(r"<analysis\b", re.IGNORECASE)
_SUMMARY = re.compile(r"<summary\s*>(.*?)(?:</summary\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_CODE = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)


def ingest_summary(home: Home, summary: str, *, session: str = "", trigger: str = "") -> Ingested | None:
    """Store `summary` with the session of the open hand-off, prepared now where none is open, and return what that did.

    None where nothing was stored: working memory is empty, so what was said is in sessions already. Only where
    there is no session either (hooks were installed in the middle of a conversation) is an accepted summary stored
    by itself. The same summary of the same host `session` again changes nothing. One undo takes it back.

    Raises:
        LockTimeout: another process was writing; nothing changed, and the hand-off stays open.
    """
    place = find(home)
    snapshot = read(place)
    digest = sha256(f"{session}\0{summary}".encode("utf-8", "surrogatepass")).hexdigest()
    known = [
        each for each in sessions_of(snapshot.documents["memory"]) if _digest_of(each["metadata"]) == digest
    ]
    if known:
        return ingest.again(known[0])
    if _taken(snapshot, digest):
        return None
    prose = prose_of(summary)
    memory = snapshot.documents["memory"]
    said = [item["content"] for item in items_of(memory)]
    shown = [*said, steering(snapshot.documents, now=now(), root=project_root(place))]
    fault = f"It {found}." if (found := model_fault(prose, given=shown)) else ""
    prepared = _prepared(place, new=False)
    if prepared.path is None:
        return None if fault or sessions_of(memory) else _alone(place, prose, digest)
    record = cast(JsonObject, prepared.record)
    architect = {
        "backend": "extractive", "model": "", "task": "compaction summary", "summary": fault or "accepted",
        "summary_sha256": digest, "session": session, "trigger": trigger,
    }  # fmt: skip
    return ingested(
        record["phase"],
        _structured(prepared.path, "" if fault else prose, memory),
        home=place, architect=architect, compression_id=record["id"], summary="" if fault else prose,
        settings=patient(place),
    )  # fmt: skip


def prepare_for_summary(home: Home) -> Prepared:
    """Return the hand-off that the next summary will be stored with: all that working memory holds of the phase."""
    return _prepared(find(home), new=True)


def prose_of(summary: str) -> str:
    """Return what `summary` says: without the thoughts before it, machinery, secrets and, if it is long, code.

    >>> prose_of("<analysis>Let me see.</analysis><summary>Chose SQLite.</summary>")
    'Chose SQLite.'
    """
    thoughts = [*_THOUGHTS_END.finditer(summary)]
    text = summary[thoughts[-1].end() :] if thoughts else summary
    found = _SUMMARY.search(text)
    if found:
        text = found[1]
    elif not thoughts and _THOUGHTS.search(text):
        text = ""  # cut off before it began
    text = redact(clean(text))
    if len(text) > SUMMARY_CHARS:
        text = _CODE.sub("", text).strip()
    return shorten(text, SUMMARY_CHARS)


def patient(home: Path) -> config.Config:
    """Return the settings of `home` with the patience of a hook."""
    settings = config.or_default(home)
    return settings._replace(lock_timeout_seconds=min(patience_of(home), settings.lock_timeout_seconds))


def _prepared(home: Path, *, new: bool) -> Prepared:
    documents = read(home).documents
    current = phases.current_phase(documents["COLONY_STATE"])
    # Where only later phases have items, it is the first of them.
    first = min((item["metadata"].get("phase", current) for item in items_of(documents["memory"])), default=0)
    phase = max(current, first)
    return prepare(phase, manual=True, new=new and outgrown(phase, home), home=home, settings=patient(home))


def _digest_of(holder: Mapping[str, Any]) -> str:
    return str((holder.get("architect") or {}).get("summary_sha256", ""))


def _taken(snapshot: Snapshot, digest: str) -> bool:
    """Return whether the summary was stored and its session has gone since, other than by undoing."""
    revisions = [
        receipt["revision"]
        for _, receipt in appends.records(snapshot, "receipts")
        if _digest_of(receipt) == digest
    ]
    return bool(revisions) and not taken_back(snapshot).issuperset(revisions)


def _structured(path: Path, prose: str, memory: Mapping[str, Any]) -> str:
    """Return the extractive architect's answer to the hand-off at `path`, with room for `prose` beside it."""
    from aether.backends import extractive
    from aether.backends.base import Settings
    from aether.backends.request import session_request

    handoff = read_handoff(path)
    count = counter_of(memory)
    given = {**handoff, "required": demands(handoff), "summarised": bool(prose)}
    request = session_request(cast(JsonObject, given))
    target = request.target_tokens
    room = max(PAGE_TOKENS, int(target * STRUCTURED_SHARE), target - count(prose))
    answer = extractive.complete(request._replace(target_tokens=room), settings=Settings(), count=count)
    return answer.text


def _alone(home: Path, prose: str, digest: str) -> Ingested:
    """Store `prose` as a session that stands for no items."""
    at = now()
    name = f"summary_{digest[:8]}"
    answer = {
        "id": name, "session_id": name, "compressed_at": clock.stamp(at), "summary": prose,
        "key_decisions": [], "outcomes": [], "high_value_items": [],
    }  # fmt: skip

    def plan(documents: Mapping[str, Any]) -> Change:
        phase = phases.current_phase(documents["COLONY_STATE"])
        count = counter_of(documents["memory"])
        return ingest.create(documents, answer, phase=phase, now=at, new_id=new_id, count=count)

    change(home, plan, Author("create session", by="architect", reason=name), settings=patient(home))
    stored = sessions_of(read(home).documents["memory"])
    return ingest.again(stored[-1])._replace(stored=True, notes=["the summary stands for no items"])
