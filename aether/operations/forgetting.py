"""Forgetting, as a caller asks for it: what would go, and its going, in one transaction with a receipt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aether.errors import InvalidInput, NotFound, shown
from aether.memory import forgetting, items
from aether.memory.forgetting import Target
from aether.operations.edge import Author, Home, Snapshot, change, counter_of, find, new_id, now, read
from aether.shapes import Change, JsonObject
from aether.store import appends

# Documents that forgetting leaves alone: each has commands of its own.
ELSEWHERE = ("COLONY_STATE", "graph", "memories")
# A shorter text is in too much to be meant.
LEAST_CHARS = 3


class Forgotten(NamedTuple):
    """What forgetting did, or would do."""

    targets: list[Target]
    elsewhere: list[str]
    """Documents that hold the text too and were left as they are."""
    receipt: JsonObject | None
    revision: int
    """The revision to undo; 0 where nothing was changed."""


def would_forget(ids: Iterable[str] = (), *, match: str = "", home: Home = None) -> Forgotten:
    """Return what forgetting `ids`, or all that holds the text `match`, would take out; nothing is changed.

    Raises:
        InvalidInput: neither or both are given, or the text is too short.
        NotFound: an id names nothing.
    """
    snapshot = read(home)
    targets = _targets(snapshot.documents, _archive(snapshot), list(ids), match)
    return Forgotten(targets, _elsewhere(snapshot.documents, match), None, 0)


def forget(ids: Iterable[str] = (), *, match: str = "", home: Home = None) -> Forgotten:
    """Take `ids`, or all that holds the text `match`, out of memory, and return what went.

    No search, recall or briefing finds it any more; the revision that is returned brings it back when undone. Its
    text stays in the history of the home.

    Raises:
        InvalidInput, NotFound: as `would_forget`; nothing was changed.
    """
    place, wanted, at = find(home), list(ids), now()
    # The archive only grows; what else arrives in it meanwhile was live, and is found there.
    archived = _archive(read(place))

    def plan(documents: Mapping[str, Any]) -> Change:
        targets = _targets(documents, archived, wanted, match)
        done = forgetting.forget(
            documents,
            targets,
            now=at,
            count=counter_of(documents["memory"]),
            receipt_id=new_id("receipt", at, 0),
        )
        return done._replace(result=(targets, _elsewhere(documents, match), done.result))

    author = Author("forget", reason=f"{len(wanted)} ids" if wanted else "by text")
    done = change(place, plan, author)
    targets, elsewhere, receipt = done.result
    return Forgotten(
        [Target(*each) for each in targets], elsewhere, receipt, done.revision if done.changed else 0
    )


def _archive(snapshot: Snapshot) -> list[JsonObject]:
    gone = items.forgotten(snapshot.documents["memory"])
    return [record for _, record in appends.records(snapshot, "items") if record["item"]["id"] not in gone]


def _targets(
    documents: Mapping[str, Any], archived: list[JsonObject], ids: list[str], match: str
) -> list[Target]:
    if bool(ids) == bool(match):
        raise InvalidInput(
            "what to forget is needed: ids, or a text.", fix="Pass one of them, not both.", where="forget"
        )
    if match:
        if len(match.strip()) < LEAST_CHARS:
            raise InvalidInput(
                f"the text {shown(match)} is too short: too much holds it.",
                fix=f"Use at least {LEAST_CHARS} characters.",
                where="forget",
            )
        return forgetting.by_text(documents, archived, match)
    targets, unknown = forgetting.by_ids(documents, archived, ids)
    if unknown:
        raise NotFound(
            f"{shown(unknown[0])} is in no layer, no signal and not in the archive.",
            fix='See "aether recall QUERY".',
            where="forget",
        )
    return targets


def _elsewhere(documents: Mapping[str, Any], match: str) -> list[str]:
    """Return the documents that forgetting does not change and that hold `match`."""
    sought = match.casefold()
    return [
        name
        for name in ELSEWHERE
        if sought and sought in json.dumps(documents.get(name), ensure_ascii=False).casefold()
    ]
