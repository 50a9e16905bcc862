"""Review of memory: list what is doubtful, and settle a doubt by keeping, correcting or forgetting an entry.

Each answer is one transaction that `undo` reverses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from aether.api.forget import forget_targets, remembered_archive, supersede
from aether.api.home import Home, change, find, now, read
from aether.api.working import update_working_memory_item
from aether.errors import Conflict, InvalidInput, NotFound, shown
from aether.memory import review as reviewing
from aether.memory.forgetting.find import find_by_ids
from aether.memory.review import Doubt
from aether.store.authors import Author
from aether.types import Change

Answer = Literal["keep", "correct", "forget"]


class Settled(NamedTuple):
    """A doubt that was answered."""

    doubt: Doubt
    answer: Answer
    entry: str
    """The id of the entry as it is now; empty if it was forgotten."""


def review(*, home: Home = None) -> list[Doubt]:
    """Return what is doubtful in live memory and was not kept before, the most serious first; secrets are blanked."""
    return reviewing.doubts(read(home).documents["memory"], now=now())


def settle(doubt_id: str, answer: Answer, text: str = "", *, home: Home = None) -> Settled:
    """Answer a doubt, and return it: keep everything, correct its first entry to `text`, or forget that entry.

    Of a duplicate only that entry is forgotten; else all entries that repeat its text. `undo` reverses the answer.

    Raises:
        NotFound: there is no such doubt, or it was settled before.
        Conflict: one of its entries was changed meanwhile.
        InvalidInput: the answer is unknown, or a correction has no text.
    """
    place = find(home)
    doubt = next((one for one in review(home=place) if one.id == doubt_id), None)
    if doubt is None:
        raise NotFound(
            f"there is no doubt {shown(doubt_id)}.", fix='See "aether memory review".', where="review"
        )
    subject = doubt.entries[0]
    if answer == "keep":
        at = now()
        change(
            place,
            lambda state: reviewing.keep(_current(state, doubt), doubt, now=at),
            Author("review", reason=doubt_id),
        )
    elif answer == "forget":
        _forget(doubt, place)
    elif answer != "correct" or not text.strip():
        raise InvalidInput(
            f"{shown(answer)} with the text {shown(text)} is no answer.",
            fix="Use keep, forget, or correct with a text.", where="review",
        )  # fmt: skip
    elif subject.layer == "working_memory":
        update_working_memory_item(subject.id, {"content": text}, home=place)
    else:
        return Settled(doubt, answer, str(supersede(subject.id, {"content": text}, home=place).item["id"]))
    return Settled(doubt, answer, "" if answer == "forget" else subject.id)


def _current(state: Mapping[str, Any], doubt: Doubt) -> Any:
    """Return memory if the doubt is still about what it holds."""
    if not reviewing.is_current(state["memory"], doubt):
        what = f"what {doubt.id} is about was changed meanwhile."
        raise Conflict(what, fix='Look at it again: "aether memory review".', where="review")
    return state["memory"]


def _forget(doubt: Doubt, place: Home) -> None:
    archived, subject, at = remembered_archive(read(place)), doubt.entries[0].id, now()

    def plan(state: Mapping[str, Any]) -> Change:
        _current(state, doubt)
        targets, _ = find_by_ids(state, archived, [subject])
        if doubt.kind == "duplicate":  # the other entry may repeat it word for word, and stays
            targets = [target for target in targets if target.id == subject and not target.part]
        return forget_targets(state, targets, at)

    change(place, plan, Author("forget", reason=doubt.id))
