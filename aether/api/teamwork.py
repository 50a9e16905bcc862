"""Teamwork: claim files and tasks, hand entries over to other agents, and see who works on what.

The rules are in `memory.teamwork`. A claim is acknowledged only once it is in the journal, in a shared home in that of the
colony: it never waits for a server. Undoing a claim ends it; undoing a release gives it back for the rest of its time, unless
another agent has claimed it meanwhile. Restored snapshots change no claim and no packet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypedDict, cast

from aether import project
from aether.api import entries
from aether.api.home import Home, change, change_snapshot, copied, find, now, read
from aether.clock import new_id
from aether.document_types import PacketHead
from aether.errors import InvalidInput, NotFound, public, shown
from aether.memory import teamwork
from aether.memory.teamwork import TTL_SECONDS
from aether.paths import project_root
from aether.redact.redact import redact, without_whole_blocks
from aether.store.authors import QUEEN, Author
from aether.store.merge import value_at
from aether.store.patch import keys_of
from aether.store.snapshot import Snapshot
from aether.store.undo import ENTRY_LISTS, entry_changes, states_since
from aether.types import Change, Claim, JsonObject, Packet, TeamMember

# A kind and a name, such as `task:docs`; one letter before the colon is a drive of Windows.
_TASK = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:\s*\S")
# What changes in an entry without changing what it says.
_BOOKKEEPING = frozenset({
    "access_count", "last_accessed", "count", "places", "occurrences", "last_seen", "confidence", "token_count",
    "associative_links",
})  # fmt: skip


class ReceivedItem(TypedDict):
    """An entry of a packet as it is now."""

    id: str
    type: str
    text: str
    """Empty if it is in memory no more."""
    state: str
    """`in force`, `superseded`, `resolved`, `revoked`, `archived`, `forgotten` or `unknown`."""
    warning: str
    """What happened to it since it was handed over; empty if nothing did."""


class Received(PacketHead):
    """A packet with its entries as they are now."""

    items: list[ReceivedItem]


class Roster(NamedTuple):
    """Who works on what."""

    phase: int | None
    """The phase that is open; None without one."""
    awaiting: int | None
    """The phase that waits for the decision of the Queen."""
    members: list[TeamMember]


@public
def claim(resource: str, *, by: str, ttl: float = TTL_SECONDS, task: str = "", home: Home = None) -> Claim:
    """Claim a file, a directory or a task for the agent `by` for `ttl` seconds, and return the claim.

    `resource` is a path (relative to the current directory; all spellings of a file are one, and so are its copies in the
    worktrees of one repository), or `KIND:NAME` such as `task:docs`. A claim on a directory covers what is below it. The
    holder renews by claiming again. `revision` of the claim is a fencing number: a later holder always has a greater one.

    Raises:
        Conflict: another agent holds it, or something above or below it; the error names it and the end of its time.
        InvalidInput: an argument is impossible, or there are too many claims.
        StorageFailed: the claim could not be stored, or the server of a shared home cannot be asked.
    """
    wanted, about = resource_of(resource, home=home), redact(task)

    def plan(snapshot: Snapshot) -> Change:
        return teamwork.claim(
            snapshot.documents[teamwork.DOCUMENT], wanted, by=by, task=about, ttl_seconds=ttl, now=now(),
            revision=snapshot.revision + 1,
        )  # fmt: skip

    granted: Claim = change_snapshot(
        home, plan, Author("claim", by=str(by), reason=wanted), may_wait=False
    ).result
    if granted["by"] != " ".join(by.split()):
        raise teamwork.held(granted)
    return granted


@public
def release(resource: str = "", *, by: str, home: Home = None) -> list[Claim]:
    """End the claim of `by` on `resource`, or all its claims, and return what was released.

    Raises:
        NotFound: it holds no such claim.
        Conflict: another agent holds it.
    """
    wanted = resource_of(resource, home=home) if resource else ""

    def plan(snapshot: Snapshot) -> Change:
        return teamwork.release(snapshot.documents[teamwork.DOCUMENT], wanted, by=by, now=now())

    author = Author("release", by=str(by), reason=wanted)
    released: list[Claim] = change_snapshot(home, plan, author, may_wait=False).result
    return released


@public
def claims(*, home: Home = None) -> list[Claim]:
    """Return the current claims, oldest first."""
    live: list[Claim] = copied(teamwork.live_claims(read(home).documents[teamwork.DOCUMENT], now=now()))
    return live


def resource_of(text: str, *, home: Home = None) -> str:
    """Return the resource that `text` names: a task as it is, a path in the one form that all its spellings have.

    A relative path is one of the current directory, or of the home's project if that is elsewhere.

    Raises:
        InvalidInput: it is empty, too long, or cannot be a path.
    """
    words = redact(text) if isinstance(text, str) else text
    if not isinstance(words, str) or not words.strip():
        return teamwork.resource(words)
    if _TASK.match(words):
        kind, _, name = words.partition(":")
        return teamwork.resource(f"{kind}:{name.strip()}")
    root = os.path.realpath(project_root(find(home)) or os.sep)
    base, main = os.getcwd(), project.repository_of(root)[1]
    if not _is_within(os.path.realpath(base), root) and (not main or project.repository_of(base)[1] != main):
        base = root
    try:
        path = os.path.realpath(os.path.join(base, os.path.expanduser(words.strip())))
    except (OSError, ValueError) as reason:  # NUL, a lone surrogate, a loop of links
        raise InvalidInput(
            f"{shown(text)} cannot be a path.", fix="Name a file, or a task as task:NAME.", where="resource"
        ) from reason
    top, main = project.repository_of(path)
    if top and top != main and _is_within(path, top):  # a copy in a worktree
        path = os.path.normpath(os.path.join(main, os.path.relpath(path, top)))
    if root != os.path.dirname(root) and _is_within(path, root):
        path = os.path.relpath(path, root)
        path = path if path == os.curdir else os.path.join(os.curdir, path)
    return teamwork.resource(path.replace(os.sep, "/"))


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(os.path.join(directory, ""))


@public
def hand_over(
    *, to: str, items: Iterable[str] = (), note: str = "", by: str = QUEEN, home: Home = None
) -> Packet:
    """Put entries of memory, named by their ids, with a note into the inbox of the agent `to`, and return the packet.

    Raises:
        NotFound: an entry is not in memory.
        InvalidInput: there are neither items nor a note, or an argument is impossible.
    """
    ids, words = [str(entry) for entry in items], redact(without_whole_blocks(note)).strip()
    for entry_id in ids:
        if entries.about(entry_id, home=home).state == "forgotten":
            raise NotFound(
                f"{shown(entry_id)} is forgotten.", fix='See "aether recall QUERY".', where="items"
            )
    moment = now()

    def plan(snapshot: Snapshot) -> Change:
        return teamwork.hand_over(
            snapshot.documents[teamwork.DOCUMENT], to=to, items=ids, note=words, by=by, now=moment,
            id=new_id("packet", moment), revision=snapshot.revision,
        )  # fmt: skip

    packet: Packet = change_snapshot(home, plan, Author("hand over", by=str(by), reason=f"to {to}")).result
    return packet


@public
def inbox(of: str, *, take: bool = False, home: Home = None) -> list[Received]:
    """Return the packets for the agent `of`, oldest first, each entry as it is now, with a warning if it changed since.

    With `take` they leave the inbox in the same transaction, so that exactly one of several readers gets each packet.
    """
    if take:
        author = Author("take packets", by=str(of), reason=f"of {of}")
        packets = change(
            home, lambda documents: teamwork.take(documents[teamwork.DOCUMENT], of), author
        ).result
    else:
        packets = teamwork.packets_for(read(home).documents[teamwork.DOCUMENT], of)
    snapshot = read(home)
    earlier = _memory_at(snapshot, {packet["revision"] for packet in packets})
    return [
        cast("Received", {**packet, "items": [_received(snapshot, entry_id, packet["revision"], earlier) for entry_id in packet["items"]]})
        for packet in packets
    ]  # fmt: skip


def _memory_at(snapshot: Snapshot, revisions: set[int]) -> dict[int, Any]:
    """Return the document memory at each of `revisions`, as far as the history reaches back."""
    states: dict[int, Any] = {snapshot.revision: snapshot.documents["memory"]}
    for oldest in sorted(revisions - {snapshot.revision}):
        try:
            steps, state = states_since(snapshot, oldest)
        except NotFound:
            continue
        states |= {entry.revision: after["memory"] for entry, after in steps if entry.revision in revisions}
        states[oldest] = state["memory"]
        break
    return states


def _received(snapshot: Snapshot, id: str, revision: int, earlier: Mapping[int, Any]) -> ReceivedItem:
    """Return the entry `id` as it is now, with a warning if it is not as it was at `revision`."""
    try:
        entry = entries.about(id, home=snapshot.home)
    except NotFound:
        return ReceivedItem(id=id, type="", text="", state="unknown", warning="no history knows it any more")
    text, warning = entry.text, ""
    left = None
    if entry.state in ("archived", "forgotten"):
        history, _ = entry_changes(snapshot, id, most=1)
        left = history[0] if history else None
    if entry.state == "forgotten" or (left and left.operation == "undo"):
        text = "" if entry.state == "forgotten" else text
        warning = "in memory no more" + (f" ({left.operation}, revision {left.revision})" if left else "")
    elif entry.state not in ("in force", "archived"):
        warning = f"{entry.state} by {entry.by}" if entry.by else entry.state
    elif revision not in earlier:
        warning = "the history no longer reaches back to when it was handed over, so a change would not show"
    elif (before := _entry(earlier[revision], id)) and (after := _entry(snapshot.documents["memory"], id)):
        warning = "" if _content(before) == _content(after) else f"changed since revision {revision}"
    return ReceivedItem(id=id, type=entry.type, text=text, state=entry.state, warning=warning)


def _entry(memory: Any, id: str) -> JsonObject | None:
    for path in ENTRY_LISTS:
        for entry in value_at(memory, tuple(keys_of(path))) or ():
            if id in (entry.get("id"), entry.get("session_id")):
                return cast("JsonObject", entry)
    return None


def _content(entry: Any) -> Any:
    """Return an entry without its counters and links."""
    if isinstance(entry, dict):
        return {key: _content(below) for key, below in entry.items() if key not in _BOOKKEEPING}
    return [_content(below) for below in entry] if isinstance(entry, list) else entry


@public
def roster(*, home: Home = None) -> Roster:
    """Return who works on what: the open phase, the registered workers, and who holds which claims."""
    documents = read(home).documents
    status = documents["COLONY_STATE"]["colony_status"]
    roadmap = documents["COLONY_STATE"]["phases"]["roadmap"]
    current = next((entry["phase"] for entry in roadmap if entry["status"] == "in_progress"), None)
    checkin = status["queen_checkin"]
    awaiting = checkin["phase"] if checkin and checkin["status"] == "awaiting_review" else None
    return Roster(current, awaiting, copied(teamwork.members(documents, now=now())))
