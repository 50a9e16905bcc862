"""Forgetting, as a caller asks for it: show the plan, or do it in one transaction with a receipt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether.api.home import Home, change, counter_of, now, read
from aether.api.home import find as home_find
from aether.clock import new_id
from aether.errors import InvalidInput, NotFound, shown
from aether.memory import items
from aether.memory.forgetting import find
from aether.memory.forgetting import forget as forgetting_forget
from aether.memory.forgetting.find import Target
from aether.store import archive as store_archive
from aether.store.commit import Author
from aether.store.snapshot import Snapshot
from aether.text.words import pluralize
from aether.types import Change, JsonObject

# Documents that forgetting leaves alone: each has commands of its own.
UNCHANGED_DOCUMENTS = ("COLONY_STATE", "memories")
# A shorter text is in too much to be meant.
MIN_TEXT_CHARS = 3


class Forgotten(NamedTuple):
    """The result of forgetting, or its plan."""

    targets: list[Target]
    similar: list[Target]
    """Things that say the same in other words; they stay unless asked for too."""
    elsewhere: list[str]
    """Documents that hold the text too and are not changed."""
    receipt: JsonObject | None
    revision: int
    """The revision to undo; 0 if nothing was changed."""


class _Found(NamedTuple):
    """Things to forget, and similar ones."""

    targets: list[Target]
    similar: list[Target]
    elsewhere: list[str]


def preview_forget(
    ids: Iterable[str] = (), *, match: str = "", similar: bool = False, home: Home = None
) -> Forgotten:
    """Return what forgetting `ids`, or everything that contains the text `match`, would remove; nothing is changed.

    Everything that says the same as an item or pattern is forgotten with it: statements of sessions, patterns, the
    prompt that it was part of, observations of the knowledge graph. With `similar`, so are those in other words.

    Raises:
        InvalidInput: neither or both are given, or the text is too short.
        NotFound: an id names nothing.
    """
    snapshot = read(home)
    found = _found(snapshot.documents, remembered_archive(snapshot), list(ids), match, similar=similar)
    return Forgotten(*found, None, 0)


def forget(
    ids: Iterable[str] = (), *, match: str = "", similar: bool = False, home: Home = None
) -> Forgotten:
    """Remove from memory what `would_forget` returns, and return it.

    No search, recall or briefing finds it any more; undoing the returned revision brings it back. Its text stays in
    the history of the home.

    Raises:
        InvalidInput, NotFound: as `would_forget`; nothing was changed.
    """
    place, wanted, at = home_find(home), list(ids), now()
    # The archive only grows; an item that arrives in it meanwhile was live, and is found in memory.
    archived = remembered_archive(read(place))

    def plan(documents: Mapping[str, Any]) -> Change:
        found = _found(documents, archived, wanted, match, similar=similar)
        done = forget_targets(documents, found.targets, at)
        return done._replace(result=(found, done.result))

    author = Author("forget", reason=pluralize(len(wanted), "ids") if wanted else "by text")
    done = change(place, plan, author)
    found, receipt = done.result
    targets, like = ([Target(*each) for each in some] for some in found[:2])
    return Forgotten(targets, like, found.elsewhere, receipt, done.revision if done.changed else 0)


def forget_targets(documents: Mapping[str, Any], targets: list[Target], at: datetime) -> Change:
    """Return the change that forgets `targets`; its result is the receipt."""
    return forgetting_forget.forget(
        documents, targets, now=at, count=counter_of(documents["memory"]), receipt_id=new_id("receipt", at, 0)
    )


def remembered_archive(snapshot: Snapshot) -> list[JsonObject]:
    """Return the archive records that are not forgotten, oldest first."""
    hidden = items.forgotten_ids(snapshot.documents["memory"])
    return [
        record for _, record in store_archive.records(snapshot, "items") if record["item"]["id"] not in hidden
    ]


def _found(
    documents: Mapping[str, Any], archived: list[JsonObject], ids: list[str], match: str, *, similar: bool
) -> _Found:
    if bool(ids) == bool(match):
        raise InvalidInput("expected either ids or a text.", fix="Pass one of them.", where="forget")
    if match:
        if len(match.strip()) < MIN_TEXT_CHARS:
            raise InvalidInput(
                f"the text {shown(match)} is too short: too much holds it.",
                fix=f"Use at least {MIN_TEXT_CHARS} characters.",
                where="forget",
            )
        return _Found(find.find_by_text(documents, archived, match), [], _elsewhere(documents, [match]))
    targets, unknown = find.find_by_ids(documents, archived, ids)
    if unknown:
        raise NotFound(
            f"{shown(unknown[0])} is in no layer, no signal, not in the archive and not in the knowledge graph.",
            fix='See "aether recall QUERY".',
            where="forget",
        )
    like = find.find_similar(documents, archived, targets)
    if similar:
        targets, like = targets + like, []
    return _Found(targets, like, _elsewhere(documents, find.statement_texts(targets)))


def _elsewhere(documents: Mapping[str, Any], texts: list[str]) -> list[str]:
    """Return the documents that hold one of `texts` and that forgetting does not change."""
    sought = [json.dumps(text, ensure_ascii=False)[1:-1].casefold() for text in texts]
    held = {
        name: json.dumps(documents.get(name), ensure_ascii=False).casefold() for name in UNCHANGED_DOCUMENTS
    }
    return [
        name
        for name, whole in held.items()
        if any(one in whole for one in sought if len(one.strip()) >= MIN_TEXT_CHARS)
    ]
