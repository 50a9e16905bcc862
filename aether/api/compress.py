"""Compression: prepare a hand-off, ask an architect for the session, store it; or store the summary of a host.

The model is asked between two transactions, never while a lock is held. The architect is any backend of `backends`. A rejected
answer is sent back with the reasons, twice; after that, or when the backend fails, the built-in extractive architect writes the
session, and the result says so. The content of a hand-off and of a summary's session is in `api.handoffs`, the rules of storing
in `memory.ingest`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from aether.api.architects import TRIES, UNASKED
from aether.api.drain import PATIENCE_SECONDS
from aether.api.handoffs import (
    ensure_file,
    evicted_session,
    free_id,
    handoff_path,
    read_handoff,
    select_of,
    summary_change,
)
from aether.api.home import (
    Home,
    change,
    change_snapshot,
    copied,
    counter_of,
    find,
    fold_if_possible,
    now,
    read,
)
from aether.architects import backend as backend_of
from aether.architects.base import Completion, Request, Settings
from aether.architects.request import session_request
from aether.clock import new_id
from aether.errors import BackendFailed, InvalidInput, Refused, public, shown
from aether.memory import handoff, ingest, sessions, signals
from aether.memory.colony import check_phase
from aether.memory.fidelity import required_entries
from aether.memory.handoff import session_room
from aether.memory.ingest import IngestResult
from aether.memory.items import items_of
from aether.redact.redact import redacted
from aether.store import config
from aether.store.authors import Author
from aether.store.files import require_writable
from aether.store.keys import Config
from aether.store.snapshot import Snapshot
from aether.types import Change, Counter, Handoff, JsonObject, Session

FALLBACK = "extractive"
# The architects that have a server and a model.
SERVED = ("anthropic", "openai", "ollama", "claude-code")
# Author of a session that a function of the caller wrote.
FUNCTION = "function"


class Prepared(NamedTuple):
    """Result of preparing a hand-off."""

    path: Path | None
    """The hand-off file; None if there is nothing to compress."""
    reason: str
    """Why there is no file; empty if there is one."""
    record: JsonObject | None = None
    newer: int = 0
    """Items of the phase that are newer than the hand-off and not in it."""


@public
def prepare_compression_data(
    phase: int, manual: bool = False, *, home: Home = None, new: bool = False
) -> Path | None:
    """Return the path of the hand-off for the architect, or None if there is nothing to compress.

    At a phase boundary that is: PHASE_COMPLETE was signalled for `phase` (`manual` is the Queen's own
    trigger and needs no signal) and working memory has items of it. While a hand-off is open, the same
    one is returned, unless `new`.
    """
    return prepare(phase, manual=manual, new=new, home=home).path


@public
def prepare(
    phase: int, *, manual: bool = False, new: bool = False, renew: bool = False, home: Home = None,
    settings: Config | None = None, by: str = "", conversation: str = "", alone: bool = False,
) -> Prepared:  # fmt: skip
    """Return the hand-off of `phase`, or of one `conversation` in it, and its record, or the reason for having none.

    It has the items of earlier phases, too, unless `alone`. With `renew` an open one is replaced if items are newer.
    `settings` are those of the home unless given; `by` is the author of the change, the Queen unless given.
    """
    phase = check_phase(phase)
    place = find(home)
    snapshot = read(place)
    if not manual and signals.find_phase_complete(snapshot.documents["pheromones"], phase) is None:
        return Prepared(None, f"No PHASE_COMPLETE signal for phase {phase}: it is not at its boundary yet.")
    if not handoff.items_up_to(snapshot.documents["memory"], phase, conversation, alone=alone):
        return Prepared(None, f"Working Memory is empty for phase {phase}, skipping compression.")
    opened = handoff.open_handoff(snapshot.documents["memory"], phase, conversation)
    new = new or (renew and opened is not None and _newer(snapshot, opened, alone=alone) > 0)
    compression_id = free_id(place, snapshot.documents["memory"], phase)
    moment = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        memory = documents["memory"]
        record = handoff.open_handoff(memory, phase, conversation)
        # Another process may have prepared one meanwhile.
        if record and handoff.has_unchanged_items(memory, record) and not (new and record == opened):
            return Change({}, result=record)
        return handoff.start_handoff(
            memory, phase, compression_id=compression_id, now=moment, conversation=conversation, alone=alone
        )  # fmt: skip

    record = plan(snapshot.documents).result
    if record != opened:
        author = Author("prepare", by=by or "queen", reason=f"phase {phase}")
        record = cast(JsonObject, change(place, plan, author, settings=settings).result)
        snapshot = read(place)
    return Prepared(ensure_file(snapshot, record), "", record, _newer(snapshot, record, alone=alone))


def _newer(snapshot: Snapshot, record: JsonObject, *, alone: bool) -> int:
    """Return how many items of the phase of a hand-off are newer than it."""
    return len(handoff.later_items(snapshot.documents["memory"], record, alone=alone))


def prepare_current_phase(home: Home, *, by: str = "") -> Prepared:
    """Return the hand-off of the current phase, prepared now if none is open yet.

    If only later phases have items, it is that of the first of them. `by` is the author in the log.
    """
    snapshot = read(home)
    memory = snapshot.documents["memory"]
    for record in memory["compression"]["open"]:
        path = handoff_path(snapshot.home, record)
        # Runs at every addition past the threshold, so the content is left to `prepare` to check.
        if path.exists() and handoff.has_unchanged_items(memory, record):
            return Prepared(path, "", record)
    return prepare(handoff.phase_to_compress(snapshot.documents), manual=True, home=home, by=by)


@public
def trigger_phase_boundary_compression(
    phase: int,
    compressed_json: str | Mapping[str, Any],
    *,
    home: Home = None,
    architect: JsonObject | None = None,
    compression_id: str | None = None,
) -> IngestResult:
    """Store the session that an architect made of the open hand-off, and return the result.

    In one transaction: the session is stored, exactly the prepared items move to the archive (what
    arrived meanwhile stays), patterns are promoted, sessions over the limit are evicted, and a receipt is
    written. The same answer again changes nothing. `architect` goes into the receipt; `compression_id`
    names the hand-off where several may be open (default: the one the answer names, else the only one).

    Raises:
        InvalidInput: the answer is rejected; nothing changed, and the text says what to correct.
        Conflict: something else has its id, the named hand-off is not open any more, or several are open.
    """
    return store_answer(phase, compressed_json, home=home, architect=architect, compression_id=compression_id)


def store_answer(
    phase: int, answer: str | Mapping[str, Any], *, home: Home, architect: JsonObject | None, compression_id: str | None,
    by: str = "architect", part: str = "",
) -> IngestResult:  # fmt: skip
    """Store the session of an architect; `by` is the author in the log, `part` one of several changes that are undone together."""
    from aether.architects.request import instruction

    phase = check_phase(phase)
    place, moment = find(home), now()

    def plan(snapshot: Snapshot) -> Change:
        documents = snapshot.documents
        return ingest.ingest(
            documents, answer, phase=phase, now=moment, new_id=new_id,
            count=counter_of(documents["memory"]), architect=architect or {}, compression_id=compression_id,
            instruct=instruction,
            find_evicted=lambda name, digest: evicted_session(snapshot, name, digest),
            select=select_of(place, architect or {}, counter_of(documents["memory"])),
        )  # fmt: skip

    # The gate and the promotion take seconds in a full home, which other writers would wait for.
    author = Author("compress", by=by, reason=f"phase {phase}", part=part)
    outcome = change_snapshot(place, plan, author, ahead=True)
    fold_if_possible(place)
    result = cast(IngestResult, outcome.result)
    return result._replace(revision=outcome.revision) if result.stored else result


@public
def create_short_term_session(
    phase: int, compressed_json: str | Mapping[str, Any], *, home: Home = None
) -> str:
    """Store a session without touching working memory, promote what repeats, and return its id.

    Raises:
        InvalidInput: the JSON is not a session.
        Conflict: another session has the same id.
        Refused: `memory.agents` is not write.
    """
    phase = check_phase(phase)
    moment, place = now(), find(home)

    def plan(documents: Mapping[str, Any]) -> Change:
        count = counter_of(documents["memory"])
        if select_of(place, {}, count):
            raise Refused(
                "a session without a hand-off has nothing that could wait, and agents only propose here.",
                fix="Prepare a hand-off and ingest its answer, or let the person set memory.agents.", where="compress",
            )  # fmt: skip
        return ingest.create_session(
            documents, compressed_json, phase=phase, now=moment, new_id=new_id, count=count
        )

    outcome = change(home, plan, Author("create session", by="architect", reason=f"phase {phase}"))
    return str(outcome.result)


@public
def evict_short_term_session(session_id: str | None = None, *, home: Home = None) -> Session | None:
    """Move one session (default: the oldest) to the archive, its patterns extracted first, and return it.

    None if there is no session.

    Raises:
        NotFound: there is no session with this id.
    """
    moment = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        oldest = sessions.oldest_session(documents["memory"])
        chosen = session_id or (oldest["session_id"] if oldest else None)
        return (
            ingest.promote_and_evict(documents, chosen, now=moment, new_id=new_id) if chosen else Change({})
        )

    evicted: Session | None = change(home, plan, Author("evict session")).result
    return evicted


@public
def ingest_summary(
    home: Home, summary: str, *, session: str = "", trigger: str = "", by: str = "architect"
) -> IngestResult | None:
    """Store `summary`, written by a host, with the session of the open hand-off; return None if nothing was stored.

    The same summary of the same host `session` again changes nothing. One undo reverses it. `handoffs.summary_change`
    decides about the content.

    Raises:
        LockTimeout: another process was writing; nothing changed, and the hand-off stays open.
    """
    place, moment = find(home), now()
    outcome = change_snapshot(
        place,
        lambda snapshot: summary_change(snapshot, summary, session=session, trigger=trigger, now=moment),
        Author("compress", by=by, reason="summary of a compaction"),
        settings=_hook_settings(place),
        ahead=True,
    )
    fold_if_possible(place)
    ingested: IngestResult | None = outcome.result
    return ingested


def prepare_for_summary(home: Home, session: str = "", *, by: str = "queen") -> Prepared:
    """Prepare the hand-off for the next summary of a host: the items of its `session`, of the whole phase if it is not known."""
    place = find(home)
    phase, settings = handoff.phase_to_compress(read(place).documents), _hook_settings(place)
    return prepare(phase, manual=True, renew=True, home=place, settings=settings, by=by, conversation=session)


def _hook_settings(home: Path) -> Config:
    """Return the settings of `home` with the lock timeout of a hook."""
    settings = config.or_default(home)
    return settings._replace(lock_timeout_seconds=min(PATIENCE_SECONDS, settings.lock_timeout_seconds))


Architect = Callable[[JsonObject], str | Mapping[str, Any]]
"""A caller's own architect: from a hand-off to the session, as text or as an object."""


def _backend(architect: object) -> tuple[Any, Mapping[str, Any], str]:
    """Return the backend of an architect, settings that its name holds, and its name; None for a person.

    Raises:
        InvalidInput: it is neither a function nor the name of an architect.
    """
    if callable(architect):
        name = getattr(architect, "__name__", type(architect).__name__)

        def complete(request: Request, *, settings: Settings, count: Counter) -> Completion:
            del settings, count  # of models
            try:
                answer = architect(
                    copied(request.data) | ({"feedback": request.feedback} if request.feedback else {})
                )
                text = answer if isinstance(answer, str) else json.dumps(dict(answer))
            except Exception as reason:
                raise BackendFailed(
                    f"{name} failed: {type(reason).__name__}: {reason}.",
                    fix="Correct the function.",
                    where=name,
                ) from reason
            return Completion(text, FUNCTION, name)

        return SimpleNamespace(NAME=FUNCTION, complete=complete), {}, name
    if not isinstance(architect, str):
        raise InvalidInput(
            f"{shown(architect)} is not an architect.",
            fix="Give a name, or a function of the hand-off.", where="architect",
        )  # fmt: skip
    if architect == "manual":
        return None, {}, architect
    return *backend_of(architect), architect


class Compressed(NamedTuple):
    """Result of a compression."""

    prepared: Prepared
    ingested: IngestResult | None
    """None if there was nothing to compress, or the architect is a person."""
    architect: str
    """Author of the stored session."""
    notes: list[str]
    """Failures on the way, in words."""


@public
def phases_to_compress(*, home: Home = None) -> dict[int, int]:
    """Return the phases that items of working memory belong to, ascending, with their tokens; the current one if they have none."""
    documents = read(find(home)).documents
    used = (item["metadata"].get("phase") for item in items_of(documents["memory"]))
    phases = sorted({phase for phase in used if phase is not None}) or [handoff.phase_to_compress(documents)]
    tokens = dict.fromkeys(phases, 0)
    for item in items_of(documents["memory"]):
        tokens[item["metadata"].get("phase", phases[0])] += item["token_count"]
    return tokens


@public
def compress(
    phase: int,
    *,
    architect: str | Architect | None = None,
    home: Home = None,
    progress: Callable[[str], None] | None = None,
    by: str = "",
    alone: bool = False,
    part: str = "",
) -> Compressed:
    """Compress the items of `phase`, and of earlier phases unless `alone`, by an architect, and return the result.

    `architect` is `extractive`, `anthropic`, `openai`, `ollama`, `claude-code`, `command:PROGRAM ARGUMENTS` (quoted as in a shell), `manual` (stops after
    the hand-off), or a function that takes the hand-off (with `feedback` after a rejection) and returns the session as text or
    as an object; by default the one in `config.toml`, else the extractive one. `progress` is called with
    each step. `by` is the author in the log; `undo` without a revision skips changes by a hook. `part` makes it one of several
    sessions that are undone together: `NAME/1`, `NAME/2` and so on.

    Raises:
        InvalidInput: the architect is unknown.
        BackendUnavailable: it needs a package, key, program or server that is missing.
        UnsafePath: the `config.toml` of the home names the architect, its model or its server, and is not trusted.
    """
    place = find(home)
    require_writable(place)
    settings = config.load(place)
    if architect is None:
        config.require_trusted(place, ["architect.default"])
    # The agent that runs closes its own conversation; a command beside it has nobody to ask.
    usual = FALLBACK if settings.architect == "host" else settings.architect
    module, overrides, chosen = _backend(architect or usual)
    if module is not None and module.NAME in SERVED:
        config.require_trusted(place, ["architect.default", "architect.model", "architect.base_url"])
    progress = progress or (lambda _: None)
    progress("preparing the hand-off")
    prepared = prepare(phase, manual=True, renew=True, home=place, by=by, alone=alone)
    if prepared.path is None or module is None:
        return Compressed(prepared, None, chosen, [])
    reach = reach_of(settings, chosen, overrides)
    notes: list[str] = []
    stored = _ask(prepared, module, reach, notes=notes, progress=progress, place=place, author=by, part=part)
    if stored is None and module.NAME != FALLBACK:
        fallback, _ = backend_of(FALLBACK)
        progress("asking the extractive architect instead")
        stored = _ask(
            prepared, fallback, reach, notes=notes, progress=progress, place=place, author=by, part=part
        )
        if stored is not None:
            notes.append("the extractive architect wrote the session instead")
    if stored is None:
        raise BackendFailed(
            f"no architect wrote an acceptable session: {'; '.join(notes)}.",
            fix="Nothing changed; the hand-off stays open. Write the session by hand and ingest it.",
            where=f"phase {phase}",
        )
    return Compressed(prepared, stored, stored.session["metadata"]["architect"]["backend"], notes)


def reach_of(settings: Config, chosen: str, overrides: Mapping[str, Any]) -> Settings:
    """Return the settings for the backend of the `chosen` architect, with the `overrides` that its name holds."""
    # The server and the model of one provider are not those of another: its key would go to the wrong one.
    is_own_server = settings.architect in (chosen, *UNASKED)
    reach = Settings(
        model=settings.architect_model if is_own_server else "", base_url=settings.architect_base_url if is_own_server else "",
        timeout_seconds=settings.architect_timeout_seconds,
    )  # fmt: skip
    return reach._replace(**cast(Any, overrides))


def _ask(
    prepared: Prepared, module: Any, reach: Settings, *, place: Path, notes: list[str],
    progress: Callable[[str], None], author: str, part: str,
) -> IngestResult | None:  # fmt: skip
    """Ask the backend for the session of the hand-off, and return the result; None if there is no acceptable answer."""
    path, record = prepared.path, prepared.record
    if path is None or record is None:
        return None

    def store(answer: str, architect: JsonObject) -> IngestResult:
        return store_answer(
            record["phase"], answer, home=place, architect=architect, compression_id=record["id"],
            by=author or "architect", part=part,
        )  # fmt: skip

    count = counter_of(read(place).documents["memory"])
    return ask_until_stored(
        read_handoff(path), module, reach, store=store, count=count, notes=notes, spent=[], progress=progress
    )


def ask_until_stored(
    handoff: Handoff, module: Any, reach: Settings, *, store: Callable[[str, JsonObject], IngestResult],
    count: Counter, notes: list[str], spent: list[Completion], progress: Callable[[str], None] = lambda _: None,
) -> IngestResult | None:  # fmt: skip
    """Ask the backend until `store` takes its answer, and return the result; None if it fails or every answer is rejected.

    `store` gets the answer and the architect for its receipt. `notes` gets each failure, `spent` each completion.
    """
    if module.NAME != FALLBACK:  # the request may leave this machine; redacted before anything is derived
        handoff = redacted(handoff)
    # The request lists what the fidelity gate requires, so that nothing has to be added afterwards.
    handoff_data = cast(
        JsonObject, {**handoff, "required": required_entries(handoff), "target_tokens": session_room(handoff)}
    )
    feedback = ""
    for attempt in range(TRIES):
        progress(f"asking {module.NAME}" + (f", again ({attempt})" if attempt else ""))
        request = session_request(handoff_data, feedback=feedback)
        try:
            spent.append(module.complete(request, settings=reach, count=count))
            costs = [entry.cost_usd for entry in spent if entry.cost_usd is not None]
            author = {
                "backend": spent[-1].backend, "model": spent[-1].model,
                "input_tokens": sum(entry.input_tokens for entry in spent),
                "output_tokens": sum(entry.output_tokens for entry in spent),
                "cost_usd": round(sum(costs), 6) if costs else None, "calls": sum(entry.calls for entry in spent),
                "tries": len(spent), "task": request.task, "prompt_sha256": handoff_data["prompt"]["sha256"],
            }  # fmt: skip
            progress("checking and storing the session")
            return store(spent[-1].text, author)
        except InvalidInput as reason:
            feedback = str(reason)
            notes.append(f"{module.NAME}: answer rejected: {reason.what}")
        except BackendFailed as reason:
            notes.append(f"{module.NAME}: {reason.what}")
            return None
    return None
