"""Links: typed associations between items, sessions and patterns.

Both ends must exist in a layer. Items and patterns hold their links in `associative_links`, sessions in
`metadata.associative_links`; a session also lists its patterns in `metadata.related_patterns`. Between
sessions and patterns a link can be followed from either end. Linking twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput, NotFound, shown
from aether.shapes import Change, JsonObject, Link, Patch

NewId = Callable[[str, datetime, int], str]

# The code of the original knew the first three, its schema the next four; the last two are ours.
LINK_TYPES = (
    "originated_from", "related_to", "extracted_from",
    "similar_context", "causal_relationship", "temporal_proximity", "caste_affinity",
    "contradicts", "supersedes",
)  # fmt: skip
# Between two patterns these read the same from either end; the others would say the reverse.
_MUTUAL = frozenset(("related_to", "similar_context", "temporal_proximity", "caste_affinity", "contradicts"))


class _End(NamedTuple):
    """One end of a link: what it is, where it stands, what it holds."""

    id: str
    type: str
    pointer: str
    value: Mapping[str, Any]


def create_link(
    memory: JsonObject, source_id: str, target_id: str, link_type: str, *, now: datetime, new_id: NewId
) -> Change:
    """Return the change that links `source_id` to `target_id`; its result is the id of the link.

    Raises:
        InvalidInput: the type is not one of ``LINK_TYPES``, or both ends are the same.
        NotFound: an end is in no layer.
    """
    if link_type not in LINK_TYPES:
        raise InvalidInput(
            f"{shown(link_type)} is not a link type.", fix=f"Use one of {', '.join(LINK_TYPES)}."
        )
    if source_id == target_id:
        raise InvalidInput(f"{shown(source_id)} cannot be linked to itself.", fix="Name two different ids.")
    source, target = _end(memory, source_id), _end(memory, target_id)
    patch: Patch = []
    link_id = _hold(patch, source, target, link_type, link_id=new_id("link", now, 0), now=now)
    kinds = {source.type, target.type}
    both_ways = kinds == {"short_term_session", "long_term_pattern"}
    if both_ways or ("working_memory_item" not in kinds and link_type in _MUTUAL):
        back_id = _hold(patch, target, source, link_type, link_id=new_id("link", now, 1), now=now)
        if both_ways and source.type == "short_term_session":
            # A session lists the ids of its patterns; the link itself stands in the pattern.
            link_id = back_id
    return Change({"memory": patch} if patch else {}, result=link_id)


def new_link(link_id: str, target_id: str, target_type: str, link_type: str, *, now: datetime) -> Link:
    """Return a link as its holder stores it."""
    return {
        "link_id": link_id,
        "target_id": target_id,
        "target_type": target_type,
        "link_type": link_type,
        "created_at": clock.stamp(now),
    }


def relate(session: Mapping[str, Any], pointer: str, pattern_ids: list[str]) -> Patch:
    """Return the patch that lists `pattern_ids` in the session at `pointer`; those listed already are left out."""
    metadata = session.get("metadata")
    if not isinstance(metadata, dict):
        return [{"op": "add", "path": f"{pointer}/metadata", "value": {"related_patterns": pattern_ids}}]
    listed = metadata.get("related_patterns")
    if not isinstance(listed, list):
        return [{"op": "add", "path": f"{pointer}/metadata/related_patterns", "value": pattern_ids}]
    path = f"{pointer}/metadata/related_patterns/-"
    return [{"op": "add", "path": path, "value": each} for each in pattern_ids if each not in listed]


def _end(memory: JsonObject, wanted: str) -> _End:
    layers = (
        ("working_memory", "items", "working_memory_item"),
        ("short_term_memory", "sessions", "short_term_session"),
        ("long_term_memory", "patterns", "long_term_pattern"),
    )
    for layer, entries, end_type in layers:
        for at, entry in enumerate(memory[layer][entries]):
            if entry["id"] == wanted:
                return _End(wanted, end_type, f"/{layer}/{entries}/{at}", entry)
    raise NotFound(
        f"no item, session or pattern has the id {shown(wanted)}.",
        fix='Find ids with "aether memory search" or "aether show memory".',
    )


def _hold(patch: Patch, holder: _End, target: _End, link_type: str, *, link_id: str, now: datetime) -> str:
    """Add to `patch` what makes `holder` hold a link to `target`; return the id of that link."""
    is_session = holder.type == "short_term_session"
    if is_session and target.type == "long_term_pattern":
        patch += relate(holder.value, holder.pointer, [target.id])
        return link_id
    pointer, owner = holder.pointer, holder.value
    if is_session:
        pointer, owner = f"{pointer}/metadata", owner.get("metadata")  # type: ignore[assignment]
        if not isinstance(owner, dict):
            patch.append({"op": "add", "path": pointer, "value": {}})
            owner = {}
    links = owner.get("associative_links")
    if not isinstance(links, list):
        patch.append({"op": "add", "path": f"{pointer}/associative_links", "value": []})
        links = []
    for held in links:
        if held["target_id"] == target.id and held["link_type"] == link_type:
            return str(held["link_id"])
    link = new_link(link_id, target.id, target.type, link_type, now=now)
    patch.append({"op": "add", "path": f"{pointer}/associative_links/-", "value": link})
    return link_id
