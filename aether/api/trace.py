"""Tracing: from a line of a brief back to the words in a transcript, and on to what was made of it.

The chain is a pattern's evidence, a session's statement, the words that prove it, the items with these words, the place of
each in its transcript, and the line of the journal that stored it. What is not recorded is empty; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from aether.api import entries
from aether.api.forget import remembered_archive
from aether.api.home import Home, copied, read
from aether.errors import NotFound, public
from aether.memory.layers import excerpt
from aether.memory.link_graph import Node
from aether.memory.origins import Origin, every_item, origin_of
from aether.memory.sessions import last_heard, sessions_of
from aether.memory.statements import Stated, evidence_of, is_statement, statements_of, witness
from aether.store.snapshot import Snapshot
from aether.store.undo import entries_newest_first
from aether.text.words import is_quoted, normalized, pluralize, strings_in
from aether.types import JsonObject

# Items of a session or a pattern that are followed to their transcripts; `rests_on` is the number of all.
MOST_ITEMS = 20
# Characters of a text in the lines for a person or a model.
SHOWN_CHARS = 400
# A session is named as its hand-off is, which was prepared before it was stored.
_HANDOFFS = "/compression/"


class Written(NamedTuple):
    """The line of the journal that stored an entry; revision 0 if the history does not have it any more."""

    revision: int
    at: str
    by: str
    operation: str
    reason: str
    member: str
    """In a shared home, the member of the colony that sent it."""


class Statement(NamedTuple):
    """A statement of an architect that a line rests on."""

    id: str
    """Empty for a text of a session that is no statement with a proof."""
    session: str
    text: str
    quote: str
    items: list[str]
    at: str
    architect: JsonObject
    """Its backend, and its model and conversation if they are known."""


class Source(NamedTuple):
    """An item at the end of the chain: words as somebody said them, or as a machine showed them."""

    id: str
    text: str
    at: str
    evidence: str
    """Who vouches for it: person, machine or agent."""
    origin: Origin
    written: Written
    again: list[JsonObject]
    """The other places in the transcript where the same words were said, as recorded."""
    captured: str
    """Who vouches for it as it was stored; `evidence` is of its present words."""
    corrected: Written | None = None
    """The line of the journal with its present words, if they were corrected since."""


_Lines = dict[str | tuple[str, str], Written]


class Trace(NamedTuple):
    """Where an entry of memory came from, and what was made of it."""

    id: str
    kind: str
    text: str
    at: str
    state: str
    written: Written
    statements: list[Statement]
    sources: list[Source]
    rests_on: int
    """The number of all items that it rests on; of many, only the newest are in `sources`."""
    derived: list[Node]
    """What was made of it, or is linked with it: a session, a statement, a pattern, or the type of a link."""


@public
def trace(id: str, *, home: Home = None) -> Trace:
    """Return where the item, statement, session, pattern or archived entry `id` came from, and what was made of it.

    Raises:
        NotFound: neither memory nor its history has this id.
    """
    snapshot = read(home)
    memory, records = snapshot.documents["memory"], remembered_archive(snapshot)
    items = {item["id"]: item for item in every_item(memory, records)}
    # An item that an undo took out and brought back is archived, too, as it was then.
    items |= {item["id"]: item for item in reversed([*every_item(memory, ())])}
    sessions = {session["session_id"]: session for session in sessions_of(memory)} | {
        record["session"]["session_id"]: record["session"] for record in records if record.get("session")
    }
    kind, text, at, state = _entry(snapshot, id, sessions)
    statements = [*_statements(id, sessions, memory)]
    ids = [id] if id in items else [*dict.fromkeys(_items_of(id, statements, sessions, records))]
    ordered = sorted(
        (name for name in ids if name in items),
        key=lambda name: str(items[name]["metadata"].get("timestamp")),
        reverse=True,
    )
    shown_ids = ordered[:MOST_ITEMS]
    times = {name: time for name in shown_ids if (time := items[name]["metadata"].get("corrected_at"))}
    written = _written(snapshot, {id.partition("/")[0], *shown_ids}, times)
    sources = [_source(items[name], written) for name in shown_ids]
    derived = _derived(id, text, snapshot, sessions, records)
    own = written.get(id.partition("/")[0], _UNKNOWN)
    result: Trace = copied(Trace(id, kind, text, at, state, own, statements, sources, len(ordered), derived))
    return result


_UNKNOWN = Written(0, "", "", "", "", "")


def _entry(snapshot: Snapshot, id: str, sessions: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return kind, text, time and state of an entry."""
    if not is_statement(id):
        about = entries.about(id, home=snapshot.home)
        return about.type, about.text, about.at, about.state
    session = sessions.get(id.partition("/")[0], {})
    stated = next((stated for stated in statements_of(session) if stated.id == id), None) if session else None
    if stated is None:
        fix = 'See "aether brief --why", which names the statements of each line.'
        raise NotFound(f"memory has no statement {id!r}.", fix=fix, where="trace")
    state = stated.ended["how"] if stated.ended else "in force"
    return stated.kind, stated.text, last_heard(session), state


def _statements(id: str, sessions: Mapping[str, Any], memory: Mapping[str, Any]) -> Iterator[Statement]:
    """Yield the statements that an entry rests on: itself, those of its evidence, or all of a session."""
    session = sessions.get(id.partition("/")[0])
    if session:
        yield from (
            _statement(stated, session)
            for stated in statements_of(session)
            if id in (stated.id, session["session_id"])
        )
    pattern = next((entry for entry in memory["long_term_memory"]["patterns"] if entry["id"] == id), None)
    for support in (pattern.get("metadata") or {}).get("evidence") or () if pattern else ():
        of_session = sessions.get(support["session_id"])
        if of_session is None:
            yield Statement("", support["session_id"], support["text"], "", [], "", {})
            continue
        same = [
            stated
            for stated in statements_of(of_session)
            if normalized(support["text"]) in normalized(stated.text)
        ]
        if same:
            yield from (_statement(stated, of_session) for stated in same)
        else:
            architect = _architect(of_session)
            yield Statement(
                "", support["session_id"], support["text"], "", [], last_heard(of_session), architect
            )


def _statement(stated: Stated, session: Mapping[str, Any]) -> Statement:
    items, at = [*stated.items], last_heard(session)
    return Statement(
        stated.id, session["session_id"], stated.text, stated.quote, items, at, _architect(session)
    )


def _architect(session: Mapping[str, Any]) -> JsonObject:
    return dict((session.get("metadata") or {}).get("architect") or {})


def _items_of(
    id: str, statements: Iterable[Statement], sessions: Mapping[str, Any], records: Iterable[JsonObject]
) -> Iterator[str]:
    """Yield the ids of the items that an entry which is no item rests on."""
    for statement in statements:
        yield from statement.items
        if session := sessions.get(statement.session) if not statement.items else None:
            items = _of_session(session, records)
            yield from (
                item["id"] for item in items if is_quoted(statement.text, normalized(item["content"]))
            )
    if session := sessions.get(id):
        yield from (item["id"] for item in _of_session(session, records))


def _of_session(session: Mapping[str, Any], records: Iterable[JsonObject]) -> Iterator[Mapping[str, Any]]:
    yield from session["metadata"].get("items", [])
    yield from (record["item"] for record in records if record.get("session_id") == session["session_id"])


def _source(item: Mapping[str, Any], lines: _Lines) -> Source:
    metadata, name = item["metadata"], item["id"]
    places = metadata.get("places")
    again = [place for place in places if isinstance(place, dict)] if isinstance(places, list) else []
    at = str(metadata.get("timestamp", ""))
    captured = evidence_of({**item, "metadata": {**metadata, "corrected_by": ""}})
    time = metadata.get("corrected_at")
    corrected = lines.get((name, time), _UNKNOWN._replace(at=time)) if time else None
    written, origin = lines.get(name, _UNKNOWN), origin_of(item)
    return Source(name, item["content"], at, evidence_of(item), origin, written, again, captured, corrected)


def _written(snapshot: Snapshot, ids: Collection[str], times: Mapping[str, str]) -> _Lines:
    """Return the first line of the journal that has each of `ids`, by id, and by id and time that of each correction in `times`."""
    lines: _Lines = {}
    for entry in entries_newest_first(snapshot):
        steps = [
            step for patch in entry.patches.values() for step in patch if not step["path"].startswith(_HANDOFFS)
        ]  # fmt: skip
        for name in {*_ids_in(steps), *_ids_in(entry.appends)} & {*ids}:
            lines[name] = Written(
                entry.revision, entry.at, entry.by, entry.operation, entry.reason, entry.member
            )
            if name in times and times[name] in strings_in(steps):
                lines[name, times[name]] = lines[name]
    return lines


def _ids_in(value: Any) -> Iterator[str]:
    """Yield the ids of the entries in a part of a transaction."""
    if isinstance(value, dict):
        for key in ("id", "session_id"):
            if isinstance(value.get(key), str):
                yield value[key]
        for below in value.values():
            yield from _ids_in(below)
    elif isinstance(value, list):
        for below in value:
            yield from _ids_in(below)


def _derived(
    id: str, text: str, snapshot: Snapshot, sessions: Mapping[str, Any], records: Iterable[JsonObject]
) -> list[Node]:
    """Return what was made of an entry, and what is linked with it: each once."""
    memory = snapshot.documents["memory"]
    derived: list[Node] = []
    own = {id}
    for session in sessions.values():
        cited = [stated for stated in statements_of(session) if id in stated.items]
        derived += [Node(stated.id, "statement", stated.text) for stated in cited]
        if any(item["id"] == id for item in _of_session(session, records)) or cited:
            derived.append(Node(session["session_id"], "session", excerpt(session["summary"])))
            own |= {session["session_id"]}
    for pattern in memory["long_term_memory"]["patterns"]:
        supports = (pattern.get("metadata") or {}).get("evidence") or ()
        if any(_supports(support, id, own, text) for support in supports):
            derived.append(Node(pattern["id"], "pattern", pattern["pattern"]))
    if not is_statement(id):
        derived += [Node(end.id, end.type, end.text) for end in entries.about(id, home=snapshot.home).links]
    return list({(entry.id, entry.kind): entry for entry in derived if entry.id != id}.values())


def _supports(support: Mapping[str, Any], id: str, own: Collection[str], text: str) -> bool:
    """Return whether an evidence of a pattern is of the session `id`, or words of an item or statement of its session."""
    if support["session_id"] not in {*own, id.partition("/")[0]}:
        return False
    return support["session_id"] == id or is_quoted(support["text"], normalized(text))


# --- In words


def trace_lines(result: Trace) -> list[str]:
    """Return a trace in lines for a person or a model; long texts are shortened."""
    time = f", {_minute(result.at)}" if result.at else ""
    lines = [excerpt(result.text, SHOWN_CHARS), f"    {result.kind}, {result.state}{time}"]
    if result.written.revision and not any(source.id == result.id for source in result.sources):
        lines.append(f"    {_written_line(result.written)}")
    for statement in result.statements:
        lines += _statement_lines(statement)
    for source in result.sources:
        lines += _source_lines(source)
    if result.derived:
        lines.append("What was made of it:")
        lines += [f"    {entry.kind} {entry.id}: {excerpt(entry.text)}" for entry in result.derived]
    return lines


def _statement_lines(statement: Statement) -> list[str]:
    architect = statement.architect
    author = " ".join(str(architect[name]) for name in ("backend", "model") if architect.get(name))
    number = f" as {statement.id}" if statement.id else ""
    head = f"Stated by {author or 'an unknown architect'} in session {statement.session}{number}"
    proof = [f'    proof: "{statement.quote}"'] if statement.quote else []
    return [head, f"    {excerpt(statement.text, SHOWN_CHARS)}", *proof]


def _source_lines(source: Source) -> list[str]:
    origin = source.origin
    where = [f"{origin.file}:{origin.line}" if origin.file and origin.line else origin.file]
    where += [f"message {origin.message}" if origin.message else ""]
    where += [f"conversation {origin.conversation}" if origin.conversation else ""]
    where += [f"agent {origin.agent}" if origin.agent else "", f"host {origin.host}" if origin.host else ""]
    place = ", ".join(name for name in where if name) or "it was not captured from a transcript"
    about = f"{witness(source.captured)}, {_minute(source.at)}"
    correction = []
    if source.corrected:
        correction = [
            f"    {witness(source.evidence, corrected=True)}, {_minute(source.corrected.at)}",
            f"    {_written_line(source.corrected)}",
            "    before the correction:",
        ]
    again = f", and {pluralize(len(source.again), 'times')} before" if source.again else ""
    return [
        f"From {source.id}", f"    {excerpt(source.text, SHOWN_CHARS)}", *correction, f"    {about}{again}", f"    {place}",
        f"    {_written_line(source.written)}",
    ]  # fmt: skip


def _written_line(written: Written) -> str:
    if not written.revision:
        return "stored before the history that the home keeps"
    member = f", sent by {written.member}" if written.member else ""
    reason = f" {written.reason}" if written.reason else ""
    return f"stored by {written.by}{member}: revision {written.revision}, {written.operation}{reason}, {_minute(written.at)}"


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
