"""Correcting, as a caller asks for it: what left working memory is said anew, and what said it before is forgotten.

Items of working memory are changed in place (`working.update_working_memory_item`). What was archived or became a
pattern cannot be: the correction is a new item that names what it supersedes, in one transaction with the forgetting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aether.errors import InvalidInput, NotFound, shown
from aether.memory import items, mentions
from aether.memory.changes import chained
from aether.memory.mentions import Target
from aether.operations.edge import Author, Home, change, counter_of, find, new_id, now, owned, read
from aether.operations.forgetting import archive, without
from aether.shapes import Change, Item, JsonObject
from aether.store import codec

# Somebody took the trouble to put it right: as high as a constraint.
RELEVANCE = 0.9

# What else has an id, and what to do instead.
_INSTEAD = {
    "session": 'It says several things: "aether memory forget --match TEXT" what is wrong in it, and "aether memory add" what is right.',
    "signals": 'Let it go with "aether memory forget {id}", and say it anew with "aether signal emit".',
    "graph": 'Let it go with "aether memory forget {id}"; a model writes it anew through "aether mcp --tools graph".',
}


class Corrected(NamedTuple):
    """What correcting did."""

    item: Item
    """The correction, in working memory."""
    forgotten: list[Target]
    """Everything that said it before."""
    revision: int


def correct(id: str, updates: Mapping[str, Any], *, home: Home = None) -> Corrected:
    """Store `updates` (content and other fields of an item) in place of an archived item or a pattern, and return that.

    All that says the same as `id` is forgotten in the same transaction, so one undo brings it back.

    Raises:
        NotFound: nothing has this id.
        InvalidInput: no content is given, a field is impossible, or `id` is neither an item nor a pattern.
        BudgetExceeded: the new content does not fit.
    """
    place, at = find(home), now()
    archived = archive(read(place))
    given = owned(codec.checked(dict(updates), where=f"item {id}"))

    def plan(documents: Mapping[str, Any]) -> Change:
        targets, unknown = mentions.by_ids(documents, archived, [id])
        if unknown:
            raise NotFound(
                f"{shown(id)} is in no layer and not in the archive.",
                fix='See "aether recall QUERY".',
                where="correct",
            )
        draft = _draft(targets[0], given)
        done = chained(
            documents,
            lambda state: without(state, targets, at),
            lambda state: items.add(
                state["memory"], [draft], now=at, new_id=new_id, count=counter_of(state["memory"])
            ),
        )
        return done._replace(result=(targets, done.result[1].ids[0]))

    done = change(place, plan, Author("correct", reason=id))
    targets, made = done.result
    (item,) = (one for one in items.items_of(read(place).documents["memory"]) if one["id"] == made)
    return Corrected(owned(item), [Target(*each) for each in targets], done.revision)


def _draft(old: Target, given: Mapping[str, Any]) -> JsonObject:
    """Return the draft of the item that takes the place of `old`."""
    kind = "session" if old.type == "session" else old.layer
    if kind in _INSTEAD:
        raise InvalidInput(
            f"{shown(old.id)} is no single statement that could be corrected.",
            fix=_INSTEAD[kind].format(id=old.id),
            where="correct",
        )
    if "content" not in given:
        raise InvalidInput(
            f"{shown(old.id)} is not in working memory any more: only its text can be corrected.",
            fix=f'Say what is right: aether memory update {old.id} --content "TEXT".',
            where="correct",
        )
    metadata = {**(given.get("metadata") or {}), "supersedes": old.id}
    (made,) = items.drafts([{"type": old.type, "relevance_score": RELEVANCE, **given, "metadata": metadata}])
    return made
