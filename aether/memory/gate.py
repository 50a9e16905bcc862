"""The gate: statements of agents, importers and architects that wait for a person.

What waits is in the document `proposals`, and no surface that a model reads shows that: an entry there is an item with the
state `proposed`. To accept it moves it to working memory, or ends its target; to reject it removes it, and it is not
proposed again. Each is one change. Which statements wait is the setting `memory.agents`: with `write` rules in nobody's
words but an agent's, with `propose` and `off` all that no person said and no machine showed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from aether import clock, regular
from aether.errors import NotFound, Refused, shown
from aether.memory import items
from aether.memory.items import DEFAULT_SOURCE, items_of
from aether.memory.sessions import last_heard, sessions_of
from aether.memory.statements import end, evidence_of, in_force
from aether.store.patch import chain_changes
from aether.text.words import normalized, sentences
from aether.types import RELEVANCE_OF_TYPE, RULE_TYPES, Change, EndState

if TYPE_CHECKING:
    from aether.clock import NewId
    from aether.types import Counter, Item, JsonObject, Patch

DOCUMENT = "proposals"
PROPOSED = "proposed"
WRITE, PROPOSE, OFF = "write", "propose", "off"
# Types that a person vouches for by accepting them; of others it is only known that a person saw them.
_VOUCHED_TYPES = RULE_TYPES | {"decision", "blocker", "next"}
# Facts that a machine shows, and that are an agent's words.
_STATED_FACTS = frozenset({"plan", "question"})
# Every command reads the document; a person who has not looked at this many will not look at more.
MOST_WAITING = 2_000
_ID_CHARS = 16
# The type of the item that a statement of an architect becomes.
TYPE_OF_KIND = {"rule": "constraint", "decision": "decision", "open": "blocker", "next": "next"}

How = Literal["new", "resolve", "supersede"]
_END_OF: dict[str, EndState] = {"resolve": "resolved", "supersede": "superseded"}


class Decided(NamedTuple):
    """The entries that a person decided about."""

    ids: list[str]
    entries: list[str]
    """Of each the id of the item that it became or of the entry that it ended; empty if it was rejected."""


def waits(entry: Mapping[str, Any], mode: str, memory: Mapping[str, Any], *, captured: bool = False) -> bool:
    """Return whether a checked entry has to wait; of a `captured` one its evidence counts, whatever worker it is of.

    A rule in a whole sentence of a person, as memory has it, is the person's, whoever repeats it.
    """
    if not is_of_agent(entry, captured=captured):
        return False
    if mode != WRITE:
        return True
    return entry["type"] in RULE_TYPES and not _is_said(entry["content"], memory)


def is_of_agent(entry: Mapping[str, Any], *, captured: bool = False) -> bool:
    """Return whether only an agent vouches for a checked entry: it says so, or names a source or caste of one."""
    metadata = entry["metadata"]
    if captured:
        is_stated = (
            metadata.get("evidence") == "agent" or (metadata.get("fact") or {}).get("kind") in _STATED_FACTS
        )
        return is_stated and metadata.get("confirmed_by") != "person"
    return (
        bool(metadata.get("evidence") == "agent")
        or entry["source"] != DEFAULT_SOURCE
        or entry["caste"] is not None
    )


def _is_said(text: str, memory: Mapping[str, Any]) -> bool:
    """Return whether a person said `text` as a whole sentence; part of one may say the opposite."""
    ends = " .!?。!?"
    sought = normalized(text).strip(ends)
    return any(
        sought == normalized(sentence).strip(ends)
        for item in items_of(memory)
        if evidence_of(item) == "person" and not item["metadata"].get("injected")
        for sentence in sentences(item["content"])
    )


def ends_rule_of_person(memory: Mapping[str, Any], ids: Iterable[str]) -> bool:
    """Return whether one of the entries `ids` is a rule of a person, which no agent ends."""
    rules = (
        {entry.id for entry in in_force(memory) if entry.kind == "rule" and entry.evidence == "person"}
        if ids
        else set()
    )
    return not rules.isdisjoint(ids)


def refusal(what: str) -> Refused:
    """Return the error for `what` agents may not do."""
    fix = 'The person can change this: memory.agents = "propose" or "write" in the config.toml of the home, or AETHER_MEMORY_AGENTS.'
    return Refused(f"{what}: memory.agents is off.", fix=fix, where="memory")


def proposal(
    *, how: How = "new", target: str = "", quote: str = "", sources: Sequence[str] = (), **metadata: Any
) -> JsonObject:
    """Return the metadata of an entry that would end `target`, and rests on a `quote` of the items `sources`."""
    about = {"how": how, "target": target, "quote": quote, **({"items": [*sources]} if sources else {})}
    return {**{name: value for name, value in metadata.items() if value}, "proposal": about}


def with_ends(memory: Mapping[str, Any], entry: JsonObject, ends: Mapping[str, EndState]) -> list[JsonObject]:
    """Return a checked entry and the ends of others that come with it, each as an entry that can wait, itself first.

    Raises:
        NotFound: live memory has no entry with one of the ids.
    """
    replaced = entry["metadata"].get(items.SUPERSEDES)
    stated = []
    for older in ends:
        end(memory, older, "resolved", at="")  # it must be there
        how: How = "supersede" if older == replaced else "resolve"
        stated.append({**entry, "metadata": {**entry["metadata"], **proposal(how=how, target=older)}})
    stated.sort(key=lambda ending: ending["metadata"]["proposal"]["how"] != "supersede")
    return stated if replaced else [entry, *stated]


def without_waiting(value: Any, *, name: str = "") -> Any:
    """Return a copy of a document or an entry as a model may see it: sessions of earlier releases hold proposals, too."""
    if isinstance(value, dict):
        return {
            key: without_waiting(inner, name=key)
            for key, inner in value.items()
            if not (name == "metadata" and key == DOCUMENT)
        }
    return [without_waiting(inner) for inner in value] if isinstance(value, list) else value


def waiting_of(documents: Mapping[str, Any]) -> list[Item]:
    """Return the entries that wait, those that sessions of earlier releases hold first, then oldest first."""
    former = [item for _, item in _former(documents["memory"])]
    waiting: list[Item] = documents.get(DOCUMENT, {}).get("waiting", [])
    return [*former, *waiting] if former else waiting


def _former(memory: Mapping[str, Any]) -> Iterator[tuple[str, Item]]:
    """Yield the mark and the entry of each proposal that a session of an earlier release holds, unless it was decided."""
    decided = {entry["id"] for entry in memory.get("reviewed", [])}
    for session in sessions_of(memory):
        for place, fields in enumerate(session["metadata"].get(DOCUMENT) or []):
            words = f"proposal\n{session['session_id']}/{DOCUMENT}/{place} {fields['text']}"
            mark = f"doubt_{regular.digest(words.encode('utf-8', 'surrogatepass'))[:10]}"
            if mark in decided:
                continue
            at = last_heard(session)
            about = {
                "how": fields["kind"] if fields["kind"] in _END_OF else "new", "target": fields.get("target") or "",
                "quote": fields.get("quote", ""), "by": str((session["metadata"].get("architect") or {}).get("backend", "architect")),
                "at": at, "items": [*fields.get("items", [])],
            }  # fmt: skip
            type_ = TYPE_OF_KIND.get(fields["kind"]) or _type_of(memory, about["target"])
            metadata = {
                "timestamp": at, "relevance_score": RELEVANCE_OF_TYPE.get(type_, items.DEFAULT_RELEVANCE), "access_count": 0,
                "last_accessed": at, "source": about["by"] or "architect", "caste": None, "evidence": "agent", "state": PROPOSED,
                "proposal": about,
            }  # fmt: skip
            item = {"type": type_, "content": fields["text"], "token_count": 0, "metadata": metadata}
            id_ = f"wm_{digest_of(item)}_{session['session_id']}"
            yield mark, cast("Item", {"id": id_, **item, "associative_links": []})


def _type_of(memory: Mapping[str, Any], id: str) -> str:
    kind = next((entry.kind for entry in in_force(memory) if entry.id == id), "rule")
    return TYPE_OF_KIND.get(kind, "observation")


def is_from(item: Mapping[str, Any], name: str) -> bool:
    """Return whether an entry that waits is from a conversation, file or author with `name` in its name; any without one."""
    metadata = item["metadata"]
    file = (metadata.get("pointer") or {}).get("file", "")
    names = (
        metadata.get("conversation"),
        metadata.get("title"),
        file,
        metadata["source"],
        metadata["proposal"]["by"],
    )
    return not name or name.casefold() in "\n".join(filter(None, names)).casefold()


def propose(
    documents: Mapping[str, Any], entries: Sequence[JsonObject], *, by: str, now: datetime, new_id: NewId, count: Counter
) -> Change:  # fmt: skip
    """Return the change that lets checked entries wait; its result are their ids, "" for one that a person rejected before.

    What waits or is in force in the same words has the id that it has. Beyond the limit the oldest captured entries leave.

    Raises:
        Refused: the limit is reached by others.
    """
    if not entries:
        return Change({}, result=[])
    document = documents[DOCUMENT]
    ids = {
        digest_of(item): item["id"]
        for item in (*_present(documents["memory"], entries), *waiting_of(documents))
    }
    ids |= {entry["id"]: "" for entry in document["rejected"]}
    fresh: list[Item] = []
    result = []
    for nth, entry in enumerate(entries):
        about = {**_about(entry), "by": by, "at": clock.stamp(now)}
        if about["target"] and not _is_live(documents["memory"], about["target"]):
            about |= {"how": "new", "target": ""}
        metadata = {**entry["metadata"], "state": PROPOSED, "proposal": about}
        item = items.new_item(
            {**entry, "metadata": metadata},
            id=new_id("wm", now, nth),
            count=count,
            created_at=clock.stamp(now),
        )
        if digest_of(item) not in ids:
            ids[digest_of(item)] = item["id"]
            fresh.append(item)
        result.append(ids[digest_of(item)])
    waiting = document["waiting"]
    surplus = _surplus([*waiting, *fresh])
    patch: Patch = [
        {"op": "remove", "path": f"/waiting/{place}"} for place in surplus[::-1] if place < len(waiting)
    ]
    fresh = [item for nth, item in enumerate(fresh, len(waiting)) if nth not in surplus]
    patch += [{"op": "add", "path": "/waiting/-", "value": item} for item in fresh]
    return Change({DOCUMENT: patch} if patch else {}, result=result)


def _is_live(memory: Mapping[str, Any], id: str) -> bool:
    try:
        end(memory, id, "resolved", at="")
    except NotFound:
        return False
    return True


def _about(entry: Mapping[str, Any]) -> JsonObject:
    """Return what an entry would change; a caller may have given it fields of any kind."""
    given_fields = entry["metadata"].get("proposal") or {}
    how, target, quote = (given_fields.get(name) for name in ("how", "target", "quote"))
    is_end = isinstance(how, str) and how in _END_OF and isinstance(target, str) and bool(target)
    sources = given_fields.get("items")
    return {
        "how": how if is_end else "new", "target": target if is_end else "", "quote": quote if isinstance(quote, str) else "",
        **({"items": [*map(str, sources)]} if isinstance(sources, list) else {}),
    }  # fmt: skip


def _present(memory: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> list[Item]:
    texts = {entry["content"] for entry in entries}
    return [
        item for item in items_of(memory) if item["content"] in texts and not item["metadata"].get("ended_at")
    ]


def _surplus(waiting: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of the oldest captured entries, for which there is no room."""
    surplus = max(0, len(waiting) - MOST_WAITING)
    captured = [nth for nth, item in enumerate(waiting) if item["metadata"].get("pointer")]
    if surplus > len(captured):
        raise Refused(
            f"{MOST_WAITING} statements wait for a person.",
            fix="Let the person decide about them first: aether memory review.", where="memory",
        )  # fmt: skip
    return captured[:surplus]


def digest_of(item: Mapping[str, Any]) -> str:
    """Return what is the same in two entries that say and change the same."""
    about = _about(item)
    words = (item["type"], about["how"], about["target"], normalized(item["content"]))
    return regular.digest("\0".join(words).encode("utf-8", "surrogatepass"))[:_ID_CHARS]


def accept(
    documents: Mapping[str, Any], ids: Collection[str], *, now: datetime, new_id: NewId, count: Counter, text: str = ""
) -> Change:  # fmt: skip
    """Return the change that puts entries in force, in the words `text` if there are any; its result is a `Decided`.

    Raises:
        NotFound: one of them does not wait.
        BudgetExceeded: working memory has no room for them.
    """
    chosen = _chosen(documents, ids)
    accepted = [item for item in chosen if _how(item) != "resolve"]
    steps: list[Callable[[Mapping[str, Any]], Change]] = [lambda state: _removal(state, ids, now)]
    if accepted:
        entries = [_entry_of(item, text, count, now) for item in accepted]
        steps += [
            lambda state: items.add_made(state["memory"], entries, now=now),
            lambda state: items.signal_threshold(state, now=now, new_id=new_id),
        ]
    steps += [partial(_end, item=item, at=clock.stamp(now)) for item in chosen if _how(item) in _END_OF]
    results = [
        item["metadata"]["proposal"]["target"] if _how(item) == "resolve" else item["id"] for item in chosen
    ]
    change = chain_changes(documents, *steps)
    return change._replace(result=Decided([item["id"] for item in chosen], results))


def _end(documents: Mapping[str, Any], *, item: Item, at: str) -> Change:
    """Return the change that ends the target of an accepted entry; none if it has left live memory since."""
    how, target = _how(item), item["metadata"]["proposal"]["target"]
    if not _is_live(documents["memory"], target):
        return Change({})
    return end(documents["memory"], target, _END_OF[how], at=at, by="" if how == "resolve" else item["id"])


def _how(item: Mapping[str, Any]) -> How:
    return cast(How, item["metadata"]["proposal"]["how"])


def _entry_of(item: Item, text: str, count: Counter, now: datetime) -> Item:
    """Return the item that an accepted entry becomes: it keeps its id and where it comes from, a captured one its time."""
    content = text or item["content"]
    metadata: JsonObject = {name: value for name, value in item["metadata"].items() if name != "state"}
    metadata["confirmed_by"] = "person"
    if not metadata.get("pointer"):
        metadata |= {"timestamp": clock.stamp(now), "last_accessed": clock.stamp(now)}
    if _how(item) == "supersede":
        metadata[items.SUPERSEDES] = item["metadata"]["proposal"]["target"]
    if text or item["type"] in _VOUCHED_TYPES:
        metadata |= {"evidence": "person", "noted": True}
    made = {**item, "content": content, "token_count": count(content), "metadata": metadata}
    return cast("Item", made)


def reject(documents: Mapping[str, Any], ids: Collection[str], *, now: datetime) -> Change:
    """Return the change that removes entries, so that they are not proposed again; its result is a `Decided`.

    Raises:
        NotFound: one of them does not wait.
    """
    if not ids:
        return Change({}, result=Decided([], []))
    chosen = _chosen(documents, ids)
    known = {entry["id"] for entry in documents[DOCUMENT]["rejected"]}
    digests = [digest for digest in dict.fromkeys(map(digest_of, chosen)) if digest not in known]
    removal = _removal(documents, ids, now).patches
    marks: Patch = [
        {"op": "add", "path": "/rejected/-", "value": {"id": digest, "at": clock.stamp(now)}}
        for digest in digests
    ]
    patches = {**removal, DOCUMENT: [*removal[DOCUMENT], *marks]}
    return Change(patches, result=Decided([item["id"] for item in chosen], [""] * len(chosen)))


def _chosen(documents: Mapping[str, Any], ids: Collection[str]) -> list[Item]:
    by_id = {item["id"]: item for item in waiting_of(documents)}
    for id_ in ids:
        if id_ not in by_id:
            raise NotFound(f"{shown(id_)} does not wait.", fix='See "aether memory review".', where="review")
    return [by_id[id_] for id_ in ids]


def _removal(documents: Mapping[str, Any], ids: Collection[str], now: datetime) -> Change:
    """Return the change that lets entries wait no longer; sessions of earlier releases keep theirs, which are marked."""
    memory, at = documents["memory"], clock.stamp(now)
    marks = [{"id": mark, "at": at} for mark, item in _former(memory) if item["id"] in ids]
    if marks and "reviewed" not in memory:
        marking: Patch = [{"op": "add", "path": "/reviewed", "value": marks}]
    else:
        marking = [{"op": "add", "path": "/reviewed/-", "value": mark} for mark in marks]
    places = [nth for nth, item in enumerate(documents[DOCUMENT]["waiting"]) if item["id"] in ids]
    removals: Patch = [{"op": "remove", "path": f"/waiting/{nth}"} for nth in reversed(places)]
    return Change({**({"memory": marking} if marks else {}), DOCUMENT: removals})
