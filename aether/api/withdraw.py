"""Undoing a source: everything that came from one conversation, file, agent or host is taken out of memory in one change.

It is planned first, as the patch that would be committed, and `undo` reverses it. Text stays in the history of the home
until it is erased (`forget.erase`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from aether.api import memory_tool
from aether.api.forget import remembered_archive
from aether.api.home import Home, change, copied, counter_of, drained, find, instant, now, read
from aether.clock import new_id, stamp
from aether.errors import NotFound, public, shown
from aether.memory import gate, teamwork
from aether.memory import withdraw as withdrawing
from aether.memory.forget import Target
from aether.memory.items import DEFAULT_SOURCE
from aether.memory.origins import SourceKind, every_item, is_from, names_of, nearest_names, source_names
from aether.store import ledger
from aether.store.authors import Author
from aether.store.snapshot import Snapshot
from aether.types import Change, JsonObject, Patch


class SourceUndo(NamedTuple):
    """What undoing a source takes out of memory."""

    source: str
    kinds: dict[SourceKind, int]
    """What the name names, with the number of items of each."""
    targets: list[Target]
    """The items, sessions, parts of sessions of several sources, patterns, signals and packets that go."""
    patterns: list[str]
    """The ids of patterns that others support too: only the support of the source goes."""
    patches: dict[str, Patch]
    """The changes of the documents; after the change as it was planned under the lock."""
    revision: int
    """The revision to undo; 0 if nothing was changed."""


def preview_undo_source(source: str, *, since: str = "", home: Home = None) -> SourceUndo:
    """Return what `undo_source` would take out, and change nothing.

    Raises:
        NotFound: nothing came from a source of this name; the nearest names are in the message.
        InvalidInput: `since` is not a time.
    """
    snapshot = read(home)
    members = ledger.senders(snapshot)
    archived = remembered_archive(snapshot)
    first = _first(since)
    closure = _closure(snapshot.documents, archived, members, source, first)
    kinds = _kinds(snapshot, archived, members, source, first)
    planned = _planned(snapshot.documents, closure)
    return SourceUndo(source, kinds, closure.targets, [*closure.patterns], copied(planned.patches), 0)


@public
def undo_source(source: str, *, since: str = "", home: Home = None) -> SourceUndo:
    """Remove everything that came from `source` from memory, in one revision, and return it.

    `source` is the id of a conversation, the name of a transcript or another file, the name of an agent or caste, a host
    or a member of a shared colony, or the id of one entry. With `since`, a time such as `2026-03-01` or `7d`, only what
    was said since. Sessions and patterns made only from it are removed too; others lose what nothing else supports.

    Raises:
        NotFound: nothing came from a source of this name; the nearest names are in the message.
        InvalidInput: `since` is not a time.
    """
    place, first = drained(find(home)), _first(since)
    snapshot = read(place)
    members, archived = ledger.senders(snapshot), remembered_archive(snapshot)
    kinds = _kinds(snapshot, archived, members, source, first)

    def plan(state: Mapping[str, Any]) -> Change:
        closure = _closure(state, archived, members, source, first)
        planned = _planned(state, closure)
        return planned._replace(result=(closure.targets, [*closure.patterns], planned.patches))

    reason = f"{source} since {first}" if first else source
    with memory_tool.directory_updated(place):
        committed = change(place, plan, Author("undo source", reason=reason))
    targets, patterns, patches = committed.result
    revision = committed.revision if committed.changed else 0
    return SourceUndo(source, kinds, [Target(*fields) for fields in targets], patterns, patches, revision)


def _first(since: str) -> str:
    moment = instant(since, at=now(), where="since")
    return stamp(moment) if moment else ""


def _closure(
    state: Mapping[str, Any], archived: list[JsonObject], members: Mapping[str, str], source: str, first: str
) -> withdrawing.Closure:
    closure = withdrawing.closure(
        state,
        archived,
        lambda item: is_from(item, source, since=first, member=members.get(item["id"], "")),
        architects=() if first else (source,),
    )
    sent = [target for target, at in _sent(state, source) if at >= first]
    return closure._replace(targets=[*closure.targets, *sent])


def _sent(state: Mapping[str, Any], source: str) -> Iterator[tuple[Target, str]]:
    """Yield the signals and packets that an agent or caste of the name `source` sent, each with its time."""
    if source == DEFAULT_SOURCE:
        return
    for name in ("active_pheromones", "queued"):
        for signal in state["pheromones"].get(name, ()):
            metadata = signal["metadata"]
            if source and source in (metadata.get("source"), metadata.get("caste")):
                text = str(metadata.get("context") or "")
                yield Target(signal["id"], "signals", signal["type"], text, ""), str(signal["created_at"])
    for packet in (state.get(teamwork.DOCUMENT) or {}).get("packets", ()):
        if source and packet["by"] == source:
            yield Target(packet["id"], "packets", "packet", packet["note"], ""), packet["at"]


def _planned(state: Mapping[str, Any], closure: withdrawing.Closure) -> Change:
    moment = now()
    count = counter_of(state["memory"])
    return withdrawing.withdraw(
        state, closure, now=moment, count=count, receipt_id=new_id("receipt", moment, 0)
    )


def _kinds(
    snapshot: Snapshot, archived: list[JsonObject], members: Mapping[str, str], source: str, first: str
) -> dict[SourceKind, int]:
    """Return the kinds of source that `source` names, each with the number of its items.

    Raises:
        NotFound: it names none.
    """
    every = [*every_item(snapshot.documents["memory"], archived), *gate.waiting_of(snapshot.documents)]
    items = {
        item["id"]: item
        for item in every
        if is_from(item, source, since=first, member=members.get(item["id"], ""))
    }
    kinds: dict[SourceKind, int] = {}
    for item in items.values():
        matching: set[SourceKind] = {
            kind for kind, name in names_of(item, members.get(item["id"], "")) if name == source
        }
        for kind in matching or {"file"}:
            kinds[kind] = kinds.get(kind, 0) + 1
    if kinds or any(_sent(snapshot.documents, source)):
        return kinds
    raise _unknown(source, every, members, first)


def _unknown(
    source: str, every: Iterable[Mapping[str, Any]], members: Mapping[str, str], first: str
) -> NotFound:
    sources = source_names(every, members)
    names = {name: kind for kind, named in sources.items() for name in named}
    near = nearest_names(source, names)
    fix = f"Did you mean {', '.join(f'the {names[name]} {shown(name)}' for name in near)}?" if near else ""
    listed = '"aether trace ID" names the source of an entry.'
    when = f" since {first}" if first else ""
    return NotFound(
        f"nothing in memory came from {shown(source)}{when}.", fix=f"{fix} {listed}".lstrip(), where="source"
    )
