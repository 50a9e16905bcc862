"""Review of memory: end entries, list what is doubtful, and settle a doubt by keeping, correcting or forgetting an entry.

An entry that ends is resolved, or another takes its place; it stays in memory, and no brief has it any more. It is an item, a
pattern, or a statement of a session (`phase_1_ab12cd34/open/0`; `aether brief --why` shows the ids). A proposal that is kept
or corrected is in force or ends its target; one that is forgotten is not raised again (`memory.gate`). Each change is one
transaction that `undo` reverses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast, get_args

from aether.api.forget import SUPERSEDING_RELEVANCE, forget_targets, remembered_archive, supersede
from aether.api.home import Home, change, copied, counter_of, find, now, read
from aether.api.working import update_working_memory_item
from aether.clock import new_id, stamp
from aether.errors import Conflict, InvalidInput, NotFound, Refused, public, shown
from aether.memory import gate, items
from aether.memory import review as reviewing
from aether.memory.forget import find_by_ids, find_repeats
from aether.memory.gate import Decided
from aether.memory.review import Doubt, Entry
from aether.memory.sessions import sessions_of
from aether.memory.statements import end, statements_of
from aether.store.authors import Author, is_agent
from aether.store.patch import chain_changes
from aether.text.words import pluralize
from aether.types import RELEVANCE_OF_TYPE, Change, EndState, Evidence, Item

# The type of the note that takes the place of a statement or pattern.
_TYPE_OF = {
    "rule": "constraint", "decision": "decision", "open": "blocker", "next": "next", "state": "outcome",
    "success_pattern": "observation", "failure_pattern": "observation",
}  # fmt: skip
# How ids start: a wrong one is not taken for a text.
_ID_STARTS = ("wm_", "phase_", "pattern_")

Answer = Literal["keep", "correct", "forget"]


class Settled(NamedTuple):
    """A doubt that was answered."""

    doubt: Doubt
    answer: Answer
    entry: str
    """The id of the entry as it is now; empty if it was forgotten."""


@public
def review(*, home: Home = None) -> list[Doubt]:
    """Return what is doubtful in live memory and was not kept before, the most serious first; secrets are blanked."""
    return reviewing.doubts(read(home).documents, now=now())


@public
def waiting(session: str = "", *, home: Home = None) -> list[Item]:
    """Return the entries that wait for a person, oldest first; of a `session` those of a source with this in its name.

    The name may be that of the conversation, its title, the file, or who states them.
    """
    entries = gate.waiting_of(read(home).documents)
    return cast("list[Item]", copied([item for item in entries if gate.is_from(item, session)]))


@public
def decide(ids: Iterable[str], accept: bool, *, text: str = "", home: Home = None) -> Decided:
    """Accept or reject entries that wait, in one change, and return what became of them; `text` corrects an only one.

    Raises:
        NotFound: one of them does not wait.
        InvalidInput: there is a text, and not one entry that is accepted.
        Refused: an agent decides.
        BudgetExceeded: working memory has no room for them.
    """
    chosen, moment = [*dict.fromkeys(ids)], now()
    if text and (len(chosen) != 1 or not accept):
        raise InvalidInput(
            "a text corrects one accepted entry.",
            fix="Name one entry, or leave the text out.",
            where="review",
        )
    if is_agent():
        raise Refused(
            "only a person decides about what waits.",
            fix="Type it at a terminal of your own, or use aether view.",
            where="review",
        )

    def plan(documents: Mapping[str, Any]) -> Change:
        if not accept:
            return gate.reject(documents, chosen, now=moment)
        count = counter_of(documents["memory"])
        return gate.accept(documents, chosen, now=moment, new_id=new_id, count=count, text=text)

    verb = "accept" if accept else "reject"
    reason = f"{verb} {chosen[0]}" if len(chosen) == 1 else f"{verb} {pluralize(len(chosen), 'entries')}"
    return (
        cast(Decided, change(home, plan, Author("review", reason=reason)).result)
        if chosen
        else Decided([], [])
    )


@public
def settle(
    doubt_id: str, answer: Answer, text: str = "", *, newer: bool = False, home: Home = None
) -> Settled:
    """Answer a doubt, and return it: keep everything, correct its first entry to `text`, or forget that entry.

    To keep or correct a proposal puts it in force: the entry of the result is the new item, or the target that ended.

    With `newer` it is the second entry of a pair that is corrected or forgotten. Of a duplicate only that entry is
    forgotten; else all entries that repeat its text. `undo` reverses the answer.

    Raises:
        NotFound: there is no such doubt, or it was settled before.
        Conflict: one of its entries was changed meanwhile.
        InvalidInput: the answer is unknown, a correction has no text, or there is no newer entry.
    """
    place = find(home)
    doubt = next((entry for entry in review(home=place) if entry.id == doubt_id), None)
    if doubt is None:
        raise NotFound(
            f"there is no doubt {shown(doubt_id)}.", fix='See "aether memory review".', where="review"
        )
    if newer and len(doubt.entries) < 2:
        raise InvalidInput(
            f"{shown(doubt_id)} is about one entry.", fix="Answer without the newer one.", where="review"
        )
    subject = doubt.entries[newer]
    if answer not in get_args(Answer) or (answer == "correct" and not text.strip()):
        raise InvalidInput(
            f"{shown(answer)} with the text {shown(text)} is not an answer.",
            fix="Use keep, forget, or correct with a text.", where="review",
        )  # fmt: skip
    if doubt.kind == "proposal":
        correction = text.strip() if answer == "correct" else ""
        decided = decide([doubt.id], answer != "forget", text=correction, home=place)
        return Settled(doubt, answer, decided.entries[0])
    if answer == "keep":
        moment = now()
        change(
            place,
            lambda state: reviewing.keep(_current(state, doubt), doubt, now=moment),
            Author("review", reason=doubt_id),
        )
    elif answer == "forget":
        _forget(doubt, subject, place)
    elif subject.part:
        return Settled(doubt, answer, _forget(doubt, subject, place, correction=text))
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


def _forget(doubt: Doubt, subject: Entry, place: Home, correction: str = "") -> str:
    """Forget `subject` of a doubt, and return the id of the item that says `correction` instead, "" without one."""
    archived, moment = remembered_archive(read(place)), now()

    def plan(state: Mapping[str, Any]) -> Change:
        memory = _current(state, doubt)
        if subject.part:
            repeats = find_repeats(state, archived, reviewing.find_text(memory, subject) or subject.text)
        else:
            repeats, _ = find_by_ids(state, archived, [subject.id])
        if doubt.kind == "duplicate":  # the other entry may repeat it word for word, and stays
            copies = {
                (session["session_id"], f"items/{nth}")
                for session in sessions_of(memory)
                for nth, item in enumerate(session["metadata"].get("items", []))
                if item["id"] == subject.id
            }
            repeats = [repeat for repeat in repeats if (repeat.id, repeat.part) in {subject.name, *copies}]
        changes = chain_changes(
            state,
            lambda present: forget_targets(present, repeats, moment),
            lambda present: _add(present, subject, correction, moment) if correction else Change({}),
        )
        return changes._replace(result=changes.result[1].ids[0] if correction else "")

    return str(change(place, plan, Author("correct" if correction else "forget", reason=doubt.id)).result)


def _add(state: Mapping[str, Any], subject: Entry, text: str, moment: datetime) -> Change:
    entry = items.checked_entry(
        text, subject.type, SUPERSEDING_RELEVANCE, metadata={"supersedes": subject.id}
    )
    return items.add(state["memory"], [entry], now=moment, new_id=new_id, count=counter_of(state["memory"]))


class Ending(NamedTuple):
    """An entry that ended."""

    id: str
    how: EndState
    text: str
    by: str
    """The id of the entry that took its place; empty if it was resolved."""
    revision: int


@public
def resolve_memory(id: str, *, home: Home = None) -> Ending:
    """End the item, pattern or statement `id`, because it is settled, and return it.

    Raises:
        NotFound: live memory has no such entry.
    """
    moment = stamp(now())

    def plan(state: Mapping[str, Any]) -> Change:
        _, text = _entry(state["memory"], id)
        return end(state["memory"], id, "resolved", at=moment)._replace(result=text)

    outcome = change(home, plan, Author("resolve", reason=id))
    return Ending(id, "resolved", str(outcome.result), "", outcome.revision)


@public
def supersede_memory(id: str, by: str, *, evidence: Evidence | None = None, home: Home = None) -> Ending:
    """End the item, pattern or statement `id`, because `by` takes its place, and return it.

    `by` is the id of a live entry, or a text: then a new note of the same type says it, with this `evidence`.

    Raises:
        NotFound: live memory has no such entry.
        InvalidInput: `by` is blank, or the entry itself.
    """
    if not by.strip() or by == id:
        raise InvalidInput(
            f"{shown(by)} cannot take the place of {shown(id)}.",
            fix="Give a text, or another id.",
            where="by",
        )
    moment = now()

    def plan(state: Mapping[str, Any]) -> Change:
        memory = state["memory"]
        _, text = _entry(memory, id)
        if by.startswith(_ID_STARTS) or by in _entries(memory):
            _entry(memory, by)
            return end(memory, id, "superseded", at=stamp(moment), by=by)._replace(result=(text, by))
        committed = replaced(state, id, by, evidence, at=moment)
        return committed._replace(result=(text, committed.result))

    outcome = change(home, plan, Author("supersede", reason=id))
    text, newer = outcome.result
    return Ending(id, "superseded", text, newer, outcome.revision)


def replaced(
    state: Mapping[str, Any], id: str, text: str, evidence: Evidence | None, *, at: datetime
) -> Change:
    """Return the change that notes `text` in the place of the entry `id`; its result is the id of the new item.

    Raises:
        NotFound: live memory has no such entry.
    """
    memory = state["memory"]
    type_, _ = _entry(memory, id)
    about = {items.SUPERSEDES: id, **({"evidence": evidence} if evidence else {})}
    entry = items.checked_entry(
        text, type_, RELEVANCE_OF_TYPE.get(type_, items.DEFAULT_RELEVANCE), metadata=about
    )
    added = items.add(memory, [entry], now=at, new_id=new_id, count=counter_of(memory))
    newer = added.result.ids[0]
    changes = chain_changes(
        state,
        lambda _: added,
        lambda present: end(present["memory"], id, "superseded", at=stamp(at), by=newer),
    )
    return changes._replace(result=newer)


def _entry(memory: Mapping[str, Any], id: str) -> tuple[str, str]:
    """Return the type and the text of a live entry."""
    try:
        return _entries(memory)[id]
    except KeyError:
        raise NotFound(
            f"live memory has no entry {shown(id)}.",
            fix='See "aether memory show" or "aether brief --why".',
            where="memory",
        ) from None


def _entries(memory: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the types and texts of items, those that sessions keep, patterns and statements by id."""
    sessions = sessions_of(memory)
    statements = [statement for session in sessions for statement in statements_of(session)]
    patterns = memory["long_term_memory"]["patterns"]
    session_items = [item for session in sessions for item in session["metadata"].get("items", [])]
    return {
        **{statement.id: (_TYPE_OF[statement.kind], statement.text) for statement in statements},
        **{pattern["id"]: (_TYPE_OF.get(pattern["type"], pattern["type"]), pattern["pattern"]) for pattern in patterns},
        **{item["id"]: (item["type"], item["content"]) for item in (*session_items, *items.items_of(memory))},
    }  # fmt: skip
