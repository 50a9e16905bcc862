"""Laws of memory: whatever is done in whatever order, nothing is lost and every derived value is true."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.errors import BudgetExceeded, Conflict, InvalidInput, NotFound
from aether.memory import handoff, ingest, items, patterns, sessions
from aether.schemas import check
from aether.store.merge import merge, rules_of
from aether.store.patch import apply, diff, join_changes
from aether.types import Change
from tests.effort import examples
from tests.memory.states import answer, count, instruct, later, new_id, shipped

# So small that a few words fill it, and two sessions are all that fit.
CAPACITY = 20
SESSIONS = 2
SAID = (
    "Use JSON for state",
    "Never push to main",
    "Do not use JSON for state",
    "a b c d e f",
    "日本語",
    "\ud800",
)
JOURNEYS = examples(60)
# Bookkeeping of reads: undo leaves it as it is.
TOUCHED = {"access_count", "last_accessed", "last_seen"}


class World(NamedTuple):
    """The documents, the archive beside them, and how many steps were taken."""

    documents: dict[str, Any]
    archive: tuple[dict[str, Any], ...] = ()
    moment: int = 0

    @property
    def memory(self):
        return self.documents["memory"]

    @property
    def items(self):
        return {each["id"]: each for each in items.items_of(self.memory)}

    @property
    def sessions(self):
        return [each["session_id"] for each in sessions.sessions_of(self.memory)]

    @property
    def archived(self):
        """Ids of the archived items; an archived session is named by its own field."""
        return [record["item"]["id"] for record in self.archive if "session" not in record]


def initial_world():
    """Return a memory that three more items would fill."""
    world = World(shipped(capacity=CAPACITY, sessions=SESSIONS))
    for said in SAID[:3]:
        world = changed(world, _add(world, [said], "observation", None, protected=False))
    return world


def steps():
    """Return a strategy of operations by name, with what each is given; places count modulo."""
    place, phase, name = st.integers(0, 5), st.integers(1, 2), st.integers(0, 8)
    said = st.lists(st.sampled_from(SAID), min_size=1, max_size=2)
    kind = st.sampled_from(["observation", "decision", "constraint"])
    high = st.lists(st.tuples(st.sampled_from(SAID[:3]), st.sampled_from([0.5, 0.9])), max_size=2)
    given_to = {
        "add": (said, kind, st.sampled_from([None, 1, 2]), st.sampled_from([False] * 4 + [True])),
        "update": (place, st.sampled_from(SAID)),
        "get": (place,),
        "clear": (),
        "prepare": (phase,),
        "ingest": (phase, name, high),
        "create": (name, high),
        "evict": (place,),
        "promote": (),
    }
    # Additions are what the others have to work on.
    names = st.sampled_from([*given_to, "add", "add", "add", "add", "get", "ingest"])
    return names.flatmap(lambda name: st.tuples(st.just(name), *given_to[name]))


def journeys():
    """Return a strategy of lists of operations."""
    return st.lists(steps(), max_size=15)


def _add(world, said, kind, phase, protected):
    entries = [
        items.checked_entry(text, kind, metadata={"phase": phase, "protected": protected}) for text in said
    ]
    return items.add(world.memory, entries, now=later(world.moment), new_id=new_id, count=count)


def _nth(world, place):
    held = list(world.items)
    if not held:
        raise NotFound("nothing", fix="-")
    return held[place % len(held)]


def _update(world, place, text):
    return items.update(
        world.memory, _nth(world, place), {"content": text}, now=later(world.moment), count=count
    )


def _get(world, place):
    return items.record_access(world.memory, [_nth(world, place)], now=later(world.moment))


def _clear(world):
    return items.clear(world.memory, now=later(world.moment))


def _prepare(world, phase):
    name = new_id(f"phase_{phase}", later(world.moment))
    return handoff.start_handoff(world.memory, phase, compression_id=name, now=later(world.moment))


def _answer(name, high):
    said = [{"content": text, "relevance_score": score, "type": "fact"} for text, score in high]
    return answer(f"s{name}", high_value_items=said)


def _ingest(world, phase, name, high):
    return ingest.ingest(
        world.documents, _answer(name, high), phase=phase, now=later(world.moment), new_id=new_id, count=count,
        architect={}, instruct=instruct,
    )  # fmt: skip


def _create(world, name, high):
    return ingest.create_session(
        world.documents, _answer(name, high), phase=1, now=later(world.moment), new_id=new_id, count=count
    )


def _evict(world, place):
    name = world.sessions[place % len(world.sessions)] if world.sessions else "none"
    return ingest.promote_and_evict(world.documents, name, now=later(world.moment), new_id=new_id)


def _promote(world):
    return patterns.promote(world.memory, now=later(world.moment), new_id=new_id)


PLANS = {
    "add": _add, "update": _update, "get": _get, "clear": _clear, "prepare": _prepare, "ingest": _ingest,
    "create": _create, "evict": _evict, "promote": _promote,
}  # fmt: skip


def changed(world, change):
    documents = {name: apply(value, change.patches.get(name, [])) for name, value in world.documents.items()}
    return World(documents, (*world.archive, *change.appends.get("items", [])), world.moment + 1)


def lived(journey):
    """Return for each step: the world before it, the step, its change (None if refused), the world after it."""
    world, steps_done = initial_world(), []
    for step in journey:
        before = repr(world.documents)
        try:
            change = PLANS[step[0]](world, *step[1:])
        except (BudgetExceeded, Conflict, InvalidInput, NotFound):
            change = None
        assert repr(world.documents) == before, "no function changes what it is given"
        after = world._replace(moment=world.moment + 1) if change is None else changed(world, change)
        steps_done.append((world, step, change, after))
        world = after
    return steps_done


@JOURNEYS
@given(journeys())
def test_memory_fits_its_schema_and_every_derived_value_is_true(journey):
    steps_done = lived(journey)

    for *_, world in steps_done:
        assert items.examine(world.documents) == []
        assert world.memory["working_memory"]["current_tokens"] <= CAPACITY
        assert len(world.sessions) <= SESSIONS
    for name, value in (steps_done[-1][-1] if steps_done else initial_world()).documents.items():
        assert check.findings(name, value) == []


@JOURNEYS
@given(journeys())
def test_what_was_added_is_in_working_memory_or_in_the_archive_and_never_in_both(journey):
    added = set()
    for before, step, change, world in lived(journey):
        added |= before.items.keys()
        if change and step[0] == "add":
            added.update(change.result.ids)
        assert sorted(added) == sorted([*world.items, *world.archived])


@JOURNEYS
@given(journeys().map(lambda journey: [*journey, *(("create", name, []) for name in range(3))]))
def test_a_session_that_was_stored_is_in_short_term_memory_or_in_the_archive(journey):
    stored: list[str] = []
    for before, step, change, world in lived(journey):
        if change and change.patches and step[0] in ("ingest", "create"):
            stored += [] if f"s{step[-2]}" in before.sessions else [f"s{step[-2]}"]
        evicted = [record["session"]["session_id"] for record in world.archive if "session" in record]
        assert sorted(stored) == sorted([*world.sessions, *evicted])


@JOURNEYS
@given(journeys(), steps(), steps())
def test_ingesting_takes_exactly_the_prepared_items(journey, one, two):
    for before, step, change, world in lived([*journey, ("prepare", 1), one, two, ("ingest", 1, 9, [])]):
        if not change or step[0] != "ingest" or not change.patches:
            continue
        record = handoff.open_handoff(before.memory, step[1])
        prepared = (
            handoff.unchanged_items(before.memory, record)
            if record
            else handoff.items_up_to(before.memory, step[1])
        )
        assert before.items.keys() - world.items.keys() == {each["id"] for each in prepared}
        assert {each: before.items[each] for each in world.items} == world.items
        assert record not in world.memory["compression"]["open"]


@JOURNEYS
@given(journeys(), st.integers(1, 2))
def test_the_same_answer_twice_changes_nothing(journey, phase):
    world = [initial_world(), *(after for *_, after in lived(journey))][-1]
    world = changed(world, _create(world, 9, [("Never push to main", 0.9)]))

    for again in (
        _ingest(world, phase, 9, [("Never push to main", 0.9)]),
        _create(world, 9, [("Never push to main", 0.9)]),
    ):
        assert not any(again.patches.values())
        assert not any(again.appends.values())


@JOURNEYS
@given(journeys(), st.integers(0, 5), st.lists(st.sampled_from(SAID), min_size=1, max_size=4))
def test_adding_drops_nothing_below_the_hard_limit_and_the_least_recently_used_at_it(journey, place, said):
    journey = [*journey, ("get", place), ("add", said, "observation", None, False)]
    for before, step, change, world in lived(journey):
        if not change or step[0] != "add":
            continue
        coming = sum(map(count, step[1]))
        room = CAPACITY - before.memory["working_memory"]["current_tokens"]
        evicted = [before.items[each] for each in change.result.evicted]
        assert before.items.keys() - world.items.keys() == {each["id"] for each in evicted}
        assert not any(each["metadata"].get("protected") for each in evicted)
        if coming <= room:
            assert evicted == []
            continue
        loose = [each for each in before.items.values() if not each["metadata"].get("protected")]
        loose.sort(key=lambda each: each["metadata"]["last_accessed"])
        assert {each["id"] for each in loose[: len(evicted)]} == {each["id"] for each in evicted}
        last = loose[len(evicted) - 1]["token_count"]
        assert sum(each["token_count"] for each in evicted) - last < coming - room, "one less was enough"


@JOURNEYS
@given(journeys(), steps())
def test_undoing_the_last_change_is_as_if_it_had_not_been(journey, last):
    """As the store plans it: what was before is merged in, then what is derived is made true."""
    before, _, change, world = lived([*journey, last])[-1]
    if change is None:
        return
    rules = rules_of(check.schema("memory"))

    merged, conflicts = merge(world.memory, world.memory, before.memory, rules)
    undone = Change({"memory": diff(world.memory, merged)})
    undone = changed(world, join_changes(undone, items.derived_change(world.documents, undone)))

    assert conflicts == []
    assert _untouched(undone.memory) == _untouched(before.memory)
    assert items.examine(undone.documents) == []


def _untouched(value):
    if isinstance(value, dict):
        return {key: _untouched(below) for key, below in value.items() if key not in TOUCHED}
    return [_untouched(below) for below in value] if isinstance(value, list) else value


@JOURNEYS
@given(journeys(), st.sampled_from(["", "Sorry, I cannot help with that.", "Error: 529", None, 5, []]))
def test_a_rejected_answer_changes_nothing(journey, summary):
    world = [initial_world(), *(after for *_, after in lived(journey))][-1]
    before = repr(world.documents)

    with pytest.raises((InvalidInput, Conflict)):  # a conflict where two hand-offs are open
        ingest.ingest(
            world.documents, answer("new", summary=summary), phase=1, now=later(world.moment), new_id=new_id,
            count=count, architect={}, instruct=instruct,
        )  # fmt: skip

    assert repr(world.documents) == before


@given(st.lists(st.lists(st.sampled_from(SAID), min_size=1, max_size=3), min_size=3, max_size=6))
def test_an_addition_signals_as_if_its_whole_patch_were_applied_first(batches):
    documents = shipped(capacity=CAPACITY, sessions=SESSIONS)
    for moment, said in enumerate(batches):
        entries = [items.checked_entry(text, "observation") for text in said]
        options = {"now": later(moment), "new_id": lambda kind, now, nth: f"{kind}_{now.isoformat()}_{nth}"}
        try:
            change = items.add_items(documents, entries, count=count, **options)
        except BudgetExceeded:
            continue
        added = items.add(documents["memory"], entries, count=count, **options)
        documents |= {"memory": apply(documents["memory"], added.patches["memory"])}
        signalled = items.signal_threshold(documents, **options)
        assert change == join_changes(added, signalled, result=[added.result, signalled.result])
        documents |= {name: apply(documents[name], patch) for name, patch in signalled.patches.items()}
