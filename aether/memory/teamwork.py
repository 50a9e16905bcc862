"""Teamwork: the claims of agents that work side by side, the packets that they hand over, and who works on what.

The document is `teamwork`. A claim is a lease: it ends when its time is over, whatever became of its holder. Guaranteed:
claims that overlap (the same resource, or one below the other) are never held by two agents. The claim with the greatest
revision counts, so an undo or a restored snapshot that brings an older one back takes nothing from a later holder.

A clock that is set forward ends claims early; the fencing number shows a former holder. After a clock was set back by more
than the time of a claim, its time starts again, so that it never lasts longer than twice its time. Which file a resource
is, and whether the entries of a packet changed, is found out in `api`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from aether.clock import stamp
from aether.errors import Conflict, InvalidInput, NotFound, shown
from aether.memory.colony import MAX_WORKER_CHARS
from aether.store.patch import diff
from aether.types import Change

if TYPE_CHECKING:
    from aether.types import Claim, Packet, TeamMember

DOCUMENT = "teamwork"
# Long enough for one task between two renewals, and a dead agent blocks the others no longer.
TTL_SECONDS = 900.0
# A week: a longer one is forgotten by whoever made it.
MOST_TTL_SECONDS = 7 * 86_400.0
# The document is read by every command; a colony has a few dozen agents.
MOST_CLAIMS = MOST_PACKETS = 1_000
MOST_ITEMS = 100
MOST_RESOURCE_CHARS = 1_000
MOST_TASK_CHARS = 500
MOST_NOTE_CHARS = 4_000


def resource(text: str) -> str:
    """Return `text`, a path in its one form or `KIND:NAME`, in one line.

    Raises:
        InvalidInput: it is empty, too long, or holds control characters.

    >>> resource("task:Write  the docs")
    'task:Write the docs'
    """
    return _line(text, MOST_RESOURCE_CHARS, where="resource")


def overlap(one: str, other: str) -> bool:
    """Return whether two resources are the same, or one is below the other.

    Some systems treat two names as one that differ in the case of letters, so everywhere they count as one.

    >>> overlap("./src", "./SRC/api.py"), overlap("./src", "./src2"), overlap(".", "task:docs")
    (True, False, False)
    """
    first, second = _folded(one), _folded(other)
    return first.startswith(second) or second.startswith(first)


def _folded(name: str) -> str:
    if not name.isascii():
        import unicodedata  # the brief of a start does not pay for it

        name = unicodedata.normalize("NFC", name)
    return name.casefold().rstrip("/") + "/"


def live_claims(document: Mapping[str, Any], *, now: datetime) -> list[Claim]:
    """Return the claims that hold now, oldest first; of two that overlap the one that was granted later."""
    moment = stamp(now)
    running = [claim for claim in document["claims"] if claim["ends_at"] > moment]
    live: list[Claim] = []
    # By a resource: who holds it, and who holds it or something below it.
    holders, holders_below = dict[str, set[str]](), dict[str, set[str]]()
    for claim in sorted(running, key=lambda claim: claim["revision"], reverse=True):
        *above, own = accumulate(_folded(claim["id"]).split("/")[:-1], "{}{}/".format, initial="")
        agents = holders_below.get(own, set()).union(*(holders.get(name, ()) for name in above))
        if agents <= {claim["by"]}:
            live.append(claim)
            holders.setdefault(own, set()).add(claim["by"])
            for name in (*above, own):
                holders_below.setdefault(name, set()).add(claim["by"])
    return live[::-1]


def _obstacle(claims: Iterable[Claim], resource: str, by: str) -> Claim | None:
    """Return a claim of another agent than `by` that overlaps `resource`."""
    return next((claim for claim in claims if claim["by"] != by and overlap(claim["id"], resource)), None)


def claim(
    document: Mapping[str, Any], resource: str, *, by: str, now: datetime, revision: int, task: str = "",
    ttl_seconds: float = TTL_SECONDS,
) -> Change:  # fmt: skip
    """Return the change that grants or renews a claim; its result is the claim, or that of another agent in its way.

    `revision` is that of the change. A renewal keeps the revision of the grant, and its task unless another is given.

    Raises:
        InvalidInput: an argument is impossible, or there are too many claims.
    """
    holder, task = _name(by, "by"), _line(task, MOST_TASK_CHARS, where="task") if task else ""
    if type(ttl_seconds) not in (int, float) or not 0 < ttl_seconds <= MOST_TTL_SECONDS:
        raise InvalidInput(
            f"{shown(ttl_seconds)} seconds is not a time for a claim.",
            fix=f"Use more than 0 and at most {MOST_TTL_SECONDS:g}.",
            where="ttl",
        )
    present = {**document, "claims": _restarted(document["claims"], now)}
    claims = live_claims(present, now=now)
    if obstacle := _obstacle(claims, resource, holder):
        return _changed(document, present["claims"], obstacle)
    granted: Claim = {
        "id": resource, "by": holder, "task": task, "since": stamp(now), "renewed_at": stamp(now),
        "ends_at": stamp(now + timedelta(seconds=ttl_seconds)), "ttl_seconds": float(ttl_seconds), "revision": revision,
    }  # fmt: skip
    before = next((own for own in claims if _folded(own["id"]) == _folded(resource)), None)
    if before:
        granted |= {"id": before["id"], "since": before["since"], "revision": before["revision"]}
        granted["task"] = task or before["task"]
        return _changed(document, [granted if own is before else own for own in claims], granted)
    if len(claims) >= MOST_CLAIMS:
        raise InvalidInput(f"there are {MOST_CLAIMS} claims.", fix="Release some first.", where="claim")
    return _changed(document, [*claims, granted], granted)


def release(document: Mapping[str, Any], resource: str, *, by: str, now: datetime) -> Change:
    """Return the change that ends the claim of `by` on a resource, without one all its claims; its result lists them.

    Raises:
        NotFound: it holds no such claim.
        Conflict: another agent holds it.
    """
    holder, claims = _name(by, "by"), live_claims(document, now=now)
    released = [
        own
        for own in claims
        if own["by"] == holder and (not resource or _folded(own["id"]) == _folded(resource))
    ]
    if resource and not released:
        if obstacle := _obstacle(claims, resource, holder):
            raise held(obstacle)
        raise NotFound(
            f"{holder} does not hold {shown(name_of(resource))}.", fix='See "aether claim".', where="claim"
        )
    remaining = [other for other in claims if other not in released]
    return _changed(document, remaining if released else document["claims"], released)


def held(claim: Claim) -> Conflict:
    """Return the error for a resource that another agent holds."""
    about = f" ({claim['task']})" if claim["task"] else ""
    what = f"{claim['by']} holds {shown(name_of(claim['id']))} until {claim['ends_at'][:19]}Z{about}."
    return Conflict(what, fix="Work on something else, or wait until then.", where="claim")


def name_of(resource: str) -> str:
    """Return a resource as people read it.

    >>> name_of("./src/api.py"), name_of("task:docs")
    ('src/api.py', 'task:docs')
    """
    return resource.removeprefix("./")


def _restarted(claims: Iterable[Claim], now: datetime) -> list[Claim]:
    """Return `claims`; the time of one that was renewed too far in the future starts again: the clock was set back."""
    after: list[Claim] = []
    for claim in claims:
        end = stamp(now + timedelta(seconds=min(claim["ttl_seconds"], MOST_TTL_SECONDS)))
        is_set_back = claim["renewed_at"] > end
        after.append({**claim, "renewed_at": stamp(now), "ends_at": end} if is_set_back else claim)
    return after


def _changed(document: Mapping[str, Any], claims: Sequence[Claim], result: Any) -> Change:
    return Change({DOCUMENT: diff(document, {**document, "claims": list(claims)})}, result=result)


def hand_over(
    document: Mapping[str, Any], *, to: str, items: Sequence[str], note: str, by: str, now: datetime, id: str,
    revision: int,
) -> Change:  # fmt: skip
    """Return the change that puts a packet into the inbox of `to`; its result is the packet.

    Raises:
        InvalidInput: it has neither items nor a note, an argument is impossible, or too many packets wait.
    """
    unique = list(dict.fromkeys(items))
    if not unique and not note.strip():
        raise InvalidInput("the packet is empty.", fix="Name items, or write a note.", where="items")
    if len(unique) > MOST_ITEMS or len(note) > MOST_NOTE_CHARS:
        raise InvalidInput(
            f"the packet has {len(unique)} items and a note of {len(note)} characters.",
            fix=f"Use at most {MOST_ITEMS} and {MOST_NOTE_CHARS:,}.",
            where="packet",
        )
    if len(document["packets"]) >= MOST_PACKETS:
        raise InvalidInput(
            f"{MOST_PACKETS} packets wait.", fix="Take some out: aether inbox NAME --take.", where="packet"
        )
    packet: Packet = {
        "id": id, "to": _name(to, "to"), "by": _name(by, "by"), "at": stamp(now), "note": note, "revision": revision,
        "items": unique,
    }  # fmt: skip
    return Change({DOCUMENT: [{"op": "add", "path": "/packets/-", "value": packet}]}, result=packet)


def packets_for(document: Mapping[str, Any], name: str) -> list[Packet]:
    """Return the packets in the inbox of an agent, oldest first."""
    return [packet for packet in document["packets"] if packet["to"] == _name(name, "of")]


def take(document: Mapping[str, Any], name: str) -> Change:
    """Return the change that empties the inbox of an agent; its result is the packets that were in it."""
    taken = packets_for(document, name)
    packets = [packet for packet in document["packets"] if packet not in taken]
    return Change({DOCUMENT: diff(document, {**document, "packets": packets})}, result=taken)


def members(documents: Mapping[str, Any], *, now: datetime) -> list[TeamMember]:
    """Return the agents at work by name: registered workers, holders of claims, and those for whom packets wait."""
    document = documents.get(DOCUMENT) or {"claims": [], "packets": []}
    workers = {worker["id"]: worker for worker in documents["COLONY_STATE"]["colony_status"]["workers"]}
    claims = live_claims(document, now=now)
    names = {*workers, *(claim["by"] for claim in claims), *(packet["to"] for packet in document["packets"])}
    agents: list[TeamMember] = []
    for name in sorted(names):
        own = [claim for claim in claims if claim["by"] == name]
        worker: Mapping[str, Any] = workers.get(name, {})
        task = worker.get("task") or next((claim["task"] for claim in reversed(own) if claim["task"]), None)
        waiting = sum(packet["to"] == name for packet in document["packets"])
        agents.append(
            {"name": name, "caste": worker.get("caste"), "task": task, "claims": own, "packets": waiting}
        )
    return agents


def descriptions(documents: Mapping[str, Any], *, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a line of words for each agent that holds a claim or is registered, and since when it is known.

    An agent for whom packets wait, and that neither holds nor is registered, is not at work.
    """
    workers = {worker["id"]: worker for worker in documents["COLONY_STATE"]["colony_status"]["workers"]}
    for member in members(documents, now=now):
        if not member["claims"] and member["name"] not in workers:
            continue
        caste = f" ({member['caste']})" if member["caste"] else ""
        holds = ", ".join(name_of(claim["id"]) for claim in member["claims"])
        parts = [f"holds {holds}" if holds else "", member["task"] or ""]
        since = [claim["since"] for claim in member["claims"]] or [workers[member["name"]]["registered_at"]]
        words = "; ".join(filter(None, parts))
        yield f"{member['name']}{caste}" + (f": {words}" if words else ""), str(min(since))


def _name(text: str, where: str) -> str:
    return _line(text, MAX_WORKER_CHARS, where=where)


def _line(text: str, most: int, *, where: str) -> str:
    """Return `text` in one line with single spaces.

    Raises:
        InvalidInput: it is empty, too long, or holds characters that cannot be printed.
    """
    line = " ".join(text.split()) if isinstance(text, str) else ""
    if not line or len(line) > most or not line.isprintable():
        raise InvalidInput(
            f"{shown(text)} cannot be used.", fix=f"Use one line of 1 to {most} characters.", where=where
        )
    return line
