"""The tools of aether's own memory: their work, and the texts they answer with.

Recall has three steps, so that a model pays only for what it reads: `recall` gives an index with the cost of each
entry, `timeline` the neighbours of one in time, `get` full texts. Recalled text is marked as memory, so that aether
never remembers its own words. `compress` is done at once by the built-in architect, or by the calling model: `prepare`
gives it the hand-off in parts, `ingest` takes the session it wrote, and both can be repeated. Stored texts lose such
marked blocks, `<private>` ones and their secrets, and the answer says so: a model that believes that something is
remembered does not say it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from aether import clock
from aether.api import admin as homes
from aether.api import closing, colony, graph, handoffs, working
from aether.api import compress as api_compress
from aether.api import home as api_home
from aether.api import memory_tool as notes
from aether.api import recall as api_recall
from aether.api import teamwork as api_teamwork
from aether.api import timeline as api_timeline
from aether.api import trace as api_trace
from aether.api.confirming import own_test
from aether.api.status import get_memory_status
from aether.architects.request import session_request
from aether.errors import InvalidInput, NotFound, shown
from aether.mcp.results import RESULT_CHARS, Answer, as_json, part_of
from aether.memory import answers, gate, phases, teamwork
from aether.memory.handoff import session_room
from aether.memory.ingest import IngestResult
from aether.memory.items import items_of
from aether.memory.layers import excerpt, format_line, hit_line
from aether.memory.memory_tool import ROOT
from aether.memory.statements import end_words
from aether.redact.redact import redact, without_whole_blocks
from aether.store.documents import NAMES
from aether.text.tags import UNCONFIRMED, memory_block
from aether.text.words import pluralize
from aether.types import RELEVANCE_OF_TYPE, ActiveSignal, Caste, JsonObject, SignalName

# The architect that needs no model, no key and no network.
BUILT_IN = "extractive"
BY_CALLER = {"backend": "mcp", "model": "the caller"}
SOURCE = "mcp"
# Nobody reads an index of more lines; a better query helps.
MOST_LINES = 50
# The prefix of an entity's name in the place of an id.
ENTITY = "entity:"
# Entities in an index: short ones, that must not crowd out the items.
MOST_ENTITIES = 3
# Characters of a name or a signal's context in a list; a longer one is read elsewhere.
MOST_NAME_CHARS = 2_000
# A colony has a dozen active signals at once.
MOST_SIGNALS_CHARS = RESULT_CHARS - 1_000
LEFT_OUT = "What is marked as private, or as aether's own memory, was left out."
REPLACED = "Secrets in it were replaced by <REDACTED> and are not stored."


def remember(  # noqa: PLR0917 - each is an argument of the tool
    content: str, type: str = "observation", relevance: float | None = None, protected: bool = False,
    caste: str | None = None, resolves: list[str] | None = None, supersedes: list[str] | None = None, *, home: Path,
) -> Answer:  # fmt: skip
    """Store one item and answer with its id; an equal item is not stored again.

    `resolves` and `supersedes` are ids of entries that it ends.

    Raises:
        InvalidInput: nothing is left to remember, or an argument is invalid.
        NotFound: an entry to end is not in live memory.
    """
    stored_text, note = _required(content, where="content")
    left_out = f" {note}" if note else ""
    for item in [] if resolves or supersedes else items_of(api_home.read(home).documents["memory"]):
        about = item["metadata"]
        same = about.get("source") == SOURCE and (item["content"], item["type"]) == (stored_text, type)
        same = same and not about.get("ended_at")
        if same and (about.get("protected") or not protected):
            return Answer(f"Remembered already, as {item['id']}; nothing was stored.{left_out}")
    worth = RELEVANCE_OF_TYPE.get(type, RELEVANCE_OF_TYPE["observation"]) if relevance is None else relevance
    added = working.add_note(
        stored_text, type, worth, source=SOURCE, caste=caste, metadata={"protected": True} if protected else None,
        resolves=resolves or (), supersedes=supersedes or (), home=home,
    )  # fmt: skip
    if added.waits:
        return Answer(f"{waiting_text(added)}{left_out}")
    text = f"Remembered as {added}.{left_out}"
    if added.compression_needed:
        text += " Working memory is nearly full: call compress."
    return Answer(text)


def waiting_text(id: str) -> str:
    """Return the answer about a statement that waits, or that a person rejected before."""
    if not id:
        return "Not stored: the person rejected this before."
    return f"Noted as {id}; it counts once the person accepts it (aether memory review). Until then no recall and no brief has it."


def recall(  # noqa: PLR0917 - each is an argument of the tool
    query: str, limit: int = 10, types: list[str] | None = None, project: str | None = None,
    conversation: str | None = None, since: str | None = None, *, home: Path,
) -> Answer:  # fmt: skip
    """Answer with an index of the entries that match `query`, best first, each with the part that matches.

    The entities of the knowledge graph are of no type, project, conversation or time: a filter leaves them out.

    Raises:
        InvalidInput: the query is blank, the limit is not from 1 to 50, or `since` is no time.
    """
    if not 1 <= limit <= MOST_LINES:
        raise InvalidInput(f"limit is {limit}.", fix=f"Use 1 to {MOST_LINES}.", where="recall")
    hits = api_recall.recall(
        query,
        limit=limit,
        types=types or (),
        project=project,
        conversation=conversation,
        since=since,
        home=home,
    )
    lines = [format_line(hit_line(hit)) for hit in hits]
    count = api_home.counter_of(api_home.read(home).documents["memory"])
    filtered = types or project or conversation or since
    for match in [] if filtered else graph.recall_entities(query, limit=MOST_ENTITIES, home=home):
        cost = count(match.text)
        lines.append(
            f"{ENTITY}{excerpt(match.name, MOST_NAME_CHARS)} · {excerpt(match.type)} · {match.at[:10] or 'undated'} · {cost} tokens · {excerpt(match.text)}"
        )
    matches = [] if filtered else notes.recall_notes(query, limit=MOST_ENTITIES, home=home)
    lines += [f"{match.path} · note · {excerpt(match.passage)}" for match in matches]
    if not lines:
        return Answer("Nothing in memory has these words. Others that stand in it may.")
    return _marked(lines, "Full text: get with ids. What happened around one: timeline with its id.", home)


def timeline(id: str, before: int = 3, after: int = 3, *, home: Path) -> Answer:
    """Answer with the entry `id` among its neighbours in time.

    Raises:
        NotFound: the id is unknown.
        InvalidInput: a number of neighbours is not from 0 to 50.
    """
    if max(before, after) > MOST_LINES:
        raise InvalidInput("too many neighbours.", fix=f"Use at most {MOST_LINES}.", where="timeline")
    neighbours = api_recall.timeline(id, before=before, after=after, home=home)
    lines = [f"{'> ' if line.id == id else '  '}{line.at[11:16]} {format_line(line)}" for line in neighbours]
    return _marked(lines, "Full text: get with ids.", home)


def file_history(path: str, part: int = 1, *, home: Path) -> Answer:
    """Answer with what memory knows about one source file: decisions and rules first, then errors, then changes.

    Raises:
        InvalidInput: the path names no file, or the part is unknown.
    """
    history = api_timeline.file_history(path, home=home)
    lines = [
        f"- {line.at[:10] or 'undated'} {line.type}{' (revoked since)' if line.revoked else ''}: {line.text} [{line.id}]"
        for part_of_it in (history.decisions, history.errors, history.changes, history.others)
        for line in part_of_it
    ]
    if not lines:
        return Answer("Nothing is remembered about this file.")
    return _marked([part_of("\n".join(lines), part, ask="the same path")], "", home)


def get(ids: list[str], part: int = 1, *, home: Path) -> Answer:
    """Answer with entries, entities or whole documents in full.

    Raises:
        NotFound: an id is unknown.
        InvalidInput: no id is given, or the part is unknown.
    """
    if not ids:
        raise InvalidInput("no id is given.", fix="Take ids from recall.", where="ids")
    texts = []
    for id_ in ids:
        if id_ in NAMES and id_ != gate.DOCUMENT:
            texts.append(f"# {id_}\n{as_json(gate.without_waiting(homes.show(id_, home=home)))}")
        elif id_.startswith(ENTITY):
            texts.append(f"# {id_}\n{graph.describe_entity(id_.removeprefix(ENTITY), home=home).text}")
        elif id_.startswith(f"{ROOT}/"):
            texts.append(f"# {id_}\n{notes.read_note(id_, home=home)}")
        else:
            try:
                (entry,) = api_recall.full([id_], home=home)
            except NotFound as reason:
                raise NotFound(reason.what, fix="Take ids from recall.", where=reason.where) from reason
            ended = end_words(entry.get("ended"))
            about = (id_, entry["layer"], entry["type"], entry["at"][:16], *filter(None, [ended]))
            head = f"# {' · '.join(about)}"
            texts.append(f"{head}\n{entry['text']}")
    return _marked([part_of("\n\n".join(texts), part, ask="the same ids")], "", home)


def trace(id: str, part: int = 1, *, home: Path) -> Answer:
    """Answer with the place from which an entry came, and with what was made of it.

    Raises:
        NotFound: the id is unknown.
    """
    result = api_trace.trace(id, home=home)
    return _marked([part_of("\n".join(api_trace.trace_lines(result)), part, ask="the same id")], "", home)


def _marked(lines: Sequence[str], how: str, home: Path) -> Answer:
    if own_test(home):
        lines = [f"What no session here noted is {UNCONFIRMED} (the user can: `aether trust`).", *lines]
    text = memory_block(lines, occasion="recall", at=clock.stamp(clock.now()))
    return Answer(f"{text}\n{how}" if how else text)


def close_session(  # noqa: PLR0917 - each is an argument of the tool
    state: list[Any] | None = None, next: list[Any] | None = None, rules: list[Any] | None = None,
    open: list[Any] | None = None, resolved: list[Any] | None = None, decisions: list[Any] | None = None,
    summary: str = "", session: str = "", *, home: Path,
) -> Answer:  # fmt: skip
    """Answer with what was stored of the caller's own conversation, and what was not, for want of proof.

    Raises:
        InvalidInput: the answer is rejected; the text says what to correct, and nothing changed.
    """
    fields = {
        "state": state, "next": next, "rules": rules, "open": open, "resolved": resolved, "decisions": decisions, "summary": summary,
    }  # fmt: skip
    closed = closing.close_session(fields, home=home, session=session, by=SOURCE)
    return Answer(closed_text(closed))


def closed_text(done: closing.Closed) -> str:
    """Return the result of closing a conversation, for its author to correct what was dropped."""
    if done.ingested is None:
        return done.reason
    text = _result_text(done.ingested)
    if done.dropped:
        lines = "\n".join(f"- {field}: {said}" for field, said in done.dropped)
        text += f"\nNot stored, for want of proof; for what holds all the same, call remember:\n{lines}"
    return text


def compress(
    action: Literal["auto", "prepare", "ingest"] = "auto", phase: int | None = None,
    session: Any = None, part: int = 1, *,
    home: Path, progress: Callable[[str], None] = lambda _: None,
) -> Answer:  # fmt: skip
    """Answer with the result of compressing, or with the hand-off to compress.

    Raises:
        InvalidInput: the session is missing or invalid; the error says what to correct, and nothing changed.
        Conflict: its hand-off is no longer open.
    """
    if action == "ingest":
        return _ingested(session, phase, home)
    chosen = _current(home) if phase is None else phase
    if action == "prepare":
        text, path = handoff_text(chosen, home)
        if not path:
            return Answer(text)
        text = part_of(text, part, ask=f"compress, action=prepare, phase={chosen}")
        after = "When you have read all of it, write the session JSON and call compress with action=ingest."
        return Answer(f"{text}\n{after} The hand-off is also in the file {path}.")
    outcome = api_compress.compress(chosen, architect=BUILT_IN, home=home, progress=progress)
    return Answer(_result_text(outcome.ingested) if outcome.ingested else outcome.prepared.reason)


def handoff_text(phase: int, home: Path) -> tuple[str, str]:
    """Return the instruction and items of the hand-off of `phase`, and its path; without one the reason, and ""."""
    prepared = api_compress.prepare(phase, manual=True, home=home)
    if prepared.path is None:
        return prepared.reason, ""
    handoff = handoffs.read_handoff(prepared.path)
    sized = cast(JsonObject, {**handoff, "target_tokens": session_room(handoff)})
    return session_request(sized).prompt, str(prepared.path)


def _ingested(session: Any, phase: int | None, home: Path) -> Answer:
    if session is None or session == "":
        raise InvalidInput(
            "session is missing.",
            fix="Give the session JSON that action=prepare asked for.",
            where="compress",
        )
    if not isinstance(session, Mapping | str):
        raise InvalidInput(
            f"session is {shown(session)}.",
            fix="Give one JSON object with the fields that action=prepare showed.",
            where="compress",
        )
    if phase is None:  # that of the hand-off which the session answers
        opened = api_home.read(home).documents["memory"]["compression"]["open"]
        answered = answers.unwrap(session).get("session_id")
        phase = next((int(record["phase"]) for record in opened if record["id"] == answered), _current(home))
    ingested = api_compress.trigger_phase_boundary_compression(
        phase, session, architect=dict(BY_CALLER), home=home
    )
    return Answer(_result_text(ingested))


def _current(home: Path) -> int:
    return phases.current_phase(api_home.read(home).documents["COLONY_STATE"])


def _result_text(ingested: IngestResult) -> str:
    session = ingested.session
    if not ingested.stored:
        return f"Session {session['session_id']} was stored already; nothing changed."
    text = (
        f"Session {session['session_id']} of phase {session['phase']}: {ingested.items} items, "
        f"{session['original_tokens']} tokens became {session['compressed_tokens']}. "
        "The items are in the archive and are still found by recall."
    )
    if ingested.carried:
        text += f" {len(ingested.carried)} statements that had to survive were added word for word."
    if ingested.waiting:
        text += (
            f" {pluralize(len(ingested.waiting), 'statements')} wait for the person (aether memory review)."
        )
    return text + "".join(f" {note}" for note in ingested.notes)


def signals(
    action: Literal["list", "emit"] = "list", type: str = "FOCUS", context: str = "", strength: float | None = None,
    caste: str | None = None, *, home: Path,
) -> Answer:  # fmt: skip
    """Answer with the active signals, or deposit one.

    Raises:
        InvalidInput: the context is empty, the type is unknown, or it may not be deposited now.
    """
    own_caste = cast("Caste | None", caste)
    if action == "emit":
        if not context.strip():
            raise InvalidInput("context is missing.", fix="Say what the signal is about.", where="signals")
        stored_context, note = _required(context, where="context")
        emitted = colony.emit_signal(
            cast("SignalName", type),
            stored_context,
            strength=strength,
            caste=own_caste,
            source=SOURCE,
            home=home,
        )
        when = (
            "queued until the running phase ends"
            if emitted["queued"]
            else f"at strength {emitted['strength']:g}"
        )
        return Answer(f"{emitted['type']} {when}: {emitted['id']}. {note}".rstrip())
    lines = [_signal_line(signal) for signal in colony.active_signals(caste=own_caste, home=home)]
    fitting = sum(end <= MOST_SIGNALS_CHARS for end in accumulate(len(line) + 1 for line in lines))
    weaker = f"{len(lines) - fitting} weaker ones are active besides." if fitting < len(lines) else ""
    return _marked(lines[:fitting], weaker, home) if lines else Answer("No signal is active.")


def _signal_line(signal: ActiveSignal) -> str:
    context = excerpt(signal["context"], MOST_NAME_CHARS)
    return f"{signal['type']} {signal['effective_strength']:.2f}: {context} ({signal['created_at'][:16]})"


def phase(
    action: Literal["show", "start", "complete", "decide"] = "show", number: int | None = None, *,
    name: str | None = None, goal: str | None = None,
    decision: Literal["continue", "adjust", "redo"] | None = None, note: str | None = None, home: Path,
) -> Answer:  # fmt: skip
    """Answer with the phase of the colony's work, having done the action.

    Raises:
        InvalidInput: the action is impossible now, or the decision is missing.
    """
    current = phases.current_phase(colony.colony(home=home))
    chosen = current if number is None else number
    did = ""
    if action == "start":
        outcome = colony.start_phase(chosen, name=name, goal=goal, home=home)
        did = f"Phase {chosen} {'is started' if outcome.changed else 'was running already'}. "
    elif action == "complete":
        outcome = colony.complete_phase(chosen, home=home)
        did = f"Phase {chosen} {'is complete' if outcome.changed else 'was complete already'}. "
    elif action == "decide":
        if decision is None:
            raise InvalidInput("decision is missing.", fix="Use continue, adjust or redo.", where="phase")
        colony.decide(decision, note=note, home=home)
        did = f"Decided: {decision}. "
    return Answer(did + _phase_words(colony.colony(home=home)))


def claim(
    action: Literal["list", "take", "release"] = "list", resource: str = "", by: str = "", task: str = "",
    ttl: float = teamwork.TTL_SECONDS, *, home: Path,
) -> Answer:  # fmt: skip
    """Answer with who works on what, having taken, renewed or released a claim.

    Raises:
        Conflict: another agent holds it.
        NotFound: it is not the caller's to release.
        InvalidInput: an argument is missing or impossible.
    """
    if action == "take":
        granted = api_teamwork.claim(resource, by=by, ttl=ttl, task=task, home=home)
        until = granted["ends_at"][:19]
        return Answer(
            f"{granted['by']} holds {teamwork.name_of(granted['id'])} until {until}Z; number {granted['revision']}."
        )
    if action == "release":
        released = api_teamwork.release(resource, by=by, home=home)
        return Answer(f"Released: {', '.join(teamwork.name_of(one['id']) for one in released) or 'nothing'}.")
    lines = [words for words, _ in teamwork.descriptions(api_home.read(home).documents, now=clock.now())]
    return _marked(lines, "", home) if lines else Answer("Nobody is at work.")


def inbox(
    name: str, action: Literal["read", "take", "put"] = "read", items: list[str] | None = None, note: str = "",
    by: str = "", *, home: Path,
) -> Answer:  # fmt: skip
    """Answer with the packets for an agent, or put one into its inbox.

    Raises:
        NotFound: an entry is not in memory.
        InvalidInput: an argument is missing or impossible.
    """
    if action == "put":
        words, left_out = _required(note, where="note") if note else ("", "")
        packet = api_teamwork.hand_over(to=name, items=items or (), note=words, by=by, home=home)
        return Answer(f"Handed over to {packet['to']}: {packet['id']}. {left_out}".rstrip())
    lines = []
    for received in api_teamwork.inbox(name, take=action == "take", home=home):
        lines.append(f"From {received['by']} at {received['at'][:16]}: {received['note']}".rstrip())
        for item in received["items"]:
            warning = f" (WARNING: {item['warning']})" if item["warning"] else ""
            lines.append(f"- {item['type']}: {item['text']} [{item['id']}]{warning}")
    return _marked(lines, "", home) if lines else Answer("No packet waits.")


def _phase_words(state: JsonObject) -> str:
    now = state["colony_status"]
    phase = "none yet" if now["current_phase"] is None else now["current_phase"]
    text = f"State {now['state']}, phase {phase}."
    waiting = now["queen_checkin"]
    if waiting and waiting["status"] == "awaiting_review":
        text += f" Phase {waiting['phase']} awaits a decision: continue, adjust or redo."
    return text


def status(*, home: Path) -> Answer:
    """Answer with the fill and the place of memory."""
    totals = get_memory_status(home=home)
    working_memory, short, long = (
        totals["working_memory"],
        totals["short_term_memory"],
        totals["long_term_memory"],
    )
    knowledge = graph.read_graph(home=home)
    lines = [
        f"home: {totals['home']} (revision {totals['revision']})",
        f"working memory: {pluralize(working_memory['items'], 'items')}, {working_memory['tokens']} of {working_memory['max_capacity_tokens']} tokens"
        + (", compression needed: call compress" if working_memory["compression_needed"] else ""),
        f"short-term memory: {short['sessions']} of {short['max_sessions']} sessions",
        f"long-term memory: {pluralize(long['patterns'], 'patterns')}",
        f"knowledge graph: {pluralize(len(knowledge['entities']), 'entities')}, {pluralize(len(knowledge['relations']), 'relations')}",
        *(
            [f"{pluralize(totals['waiting'], 'statements')} wait for the person: aether memory review"]
            if totals["waiting"]
            else []
        ),
        f"hand-offs open: {', '.join(totals['open_handoffs']) or 'none'}",
        _phase_words(colony.colony(home=home)),
    ]
    return Answer("\n".join(lines))


class Statement(NamedTuple):
    """The part of a text that is stored."""

    text: str
    note: str
    """The changes in words; empty without any."""


def statement(text: str) -> Statement:
    """Return the part of `text` that is stored, and a note on the rest.

    >>> statement("Use SQLite. <private>It is mine.</private>")
    Statement(text='Use SQLite. ', note="What is marked as private, or as aether's own memory, was left out.")
    """
    public = without_whole_blocks(text)
    clean = redact(public)
    # A lone tag of aether's own is replaced by one of the same length, and is not left out.
    noted = {LEFT_OUT: len(public) != len(text), REPLACED: clean != public}
    return Statement(clean, " ".join(words for words, holds in noted.items() if holds))


def _required(text: str, *, where: str) -> Statement:
    """Return the part of `text` that is stored.

    Raises:
        InvalidInput: nothing of it is.
    """
    storable = statement(text)
    if text.strip() and not storable.text.strip():
        raise InvalidInput(
            "all of it is private, or aether's own memory.", fix="Say it in words of your own.", where=where
        )
    return storable


def notes_on(value: Any) -> str:
    """Return the notes on all texts in `value`."""
    texts = [value]
    notes: dict[str, None] = {}
    for text in texts:
        if isinstance(text, (dict, list)):
            texts += text.values() if isinstance(text, dict) else text
        else:
            notes |= {statement(text).note: None}
    return " ".join(note for note in notes if note)
