"""Laws of the colony and its signals: the state stays legal, nothing is lost, and decay depends on age alone."""

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from aether.errors import AetherError
from aether.memory import colony as machine
from aether.memory import phases, signals, snapshots
from aether.schemas import check
from aether.store.patch import apply
from tests.effort import examples

DATA = Path(__file__).resolve().parents[2] / "data"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def shipped():
    return {name: json.loads((DATA / f"{name}.json").read_text()) for name in ("pheromones", "COLONY_STATE")}


def acts():
    """One thing that someone may ask of the colony, sensible or not."""
    phase = st.integers(0, 3)
    return st.one_of(
        st.tuples(st.just("start"), phase),
        st.tuples(st.just("complete"), phase),
        st.tuples(st.just("decide"), st.sampled_from(phases.DECISIONS)),
        st.tuples(st.just("transition"), st.sampled_from(machine.STATES)),
        st.tuples(st.just("register"), st.sampled_from(["w1", "w2"])),
        st.tuples(st.just("release"), st.sampled_from(["w1", "w2"])),
        st.tuples(st.just("recover"), st.none()),
    )


def asked(documents, act, now):
    name, what = act
    colony, pheromones = documents["COLONY_STATE"], documents["pheromones"]
    match name:
        case "start":
            return phases.start_phase(colony, pheromones, what, now=now)
        case "complete":
            ids = lambda kind, now, nth: f"{kind}_{now.timestamp():.0f}_{nth}"  # noqa: E731
            return phases.complete_phase(colony, pheromones, what, now=now, new_id=ids)
        case "decide":
            return phases.decide(colony, pheromones, what, now=now)
        case "transition":
            return machine.transition(colony, what, now=now)
        case "register":
            return machine.register_worker(colony, what, now=now)
        case "release":
            return machine.release_worker(colony, what)
        case _:
            return machine.recover(colony, now=now)


def lived(doings):
    """The documents after all `doings` that were not refused, and every record that was appended."""
    documents, appended = shipped(), {"events": [], "history": []}
    for nth, act in enumerate(doings):
        before = copy.deepcopy(documents)
        try:
            change = asked(documents, act, NOW + timedelta(seconds=nth))
        except AetherError:
            continue
        finally:
            assert documents == before
        documents = {name: apply(value, change.patches.get(name, [])) for name, value in documents.items()}
        for file, records in change.appends.items():
            appended[file] += records
    return documents, appended


@given(st.lists(acts(), max_size=25))
@examples(40)
def test_the_documents_always_fit_their_schemas(doings):
    """Patches are built valid, because additions are not checked against the schema."""
    documents, _ = lived(doings)

    for name, document in documents.items():
        assert check.findings(name, document) == []


@given(st.lists(acts(), max_size=40))
@examples(40)
def test_every_step_was_a_legal_edge_and_is_kept(doings):
    """The history is one unbroken way from IDLE to the present state; recovery alone goes back."""
    documents, appended = lived(doings)
    colony = documents["COLONY_STATE"]

    way = appended["history"] + colony["state_machine"]["state_history"]

    assert len(way) == colony["state_machine"]["transitions_count"]
    state = "IDLE"
    for entry in way:
        assert entry["from"] == state
        recovery = entry["trigger"] in machine.RECOVERY_TRIGGERS
        edges = machine.RECOVERY_EDGES if recovery else machine.EDGES
        assert entry["to"] in edges[state]
        state = entry["to"]
    assert state == colony["colony_status"]["state"]


@given(st.lists(acts(), max_size=25))
@example([("complete", 1), ("complete", 0), ("start", 1)])
@examples(40)
def test_every_completed_phase_has_its_boundary_and_no_other(doings):
    """PHASE_COMPLETE is active exactly for the phases that are complete now."""
    documents, _ = lived(doings)
    completed = documents["COLONY_STATE"]["colony_status"]["phases_completed"]

    assert [n for n in range(4) if signals.find_phase_complete(documents["pheromones"], n)] == sorted(
        completed
    )


@given(st.lists(acts(), max_size=25), st.integers(0, 3))
@examples(40)
def test_completing_twice_is_completing_once(doings, phase):
    """The second time changes nothing, whatever came before."""
    documents, _ = lived([*doings, ("complete", phase)])

    if phase in documents["COLONY_STATE"]["colony_status"]["phases_completed"]:
        assert asked(documents, ("complete", phase), NOW).patches == {}


@given(st.lists(acts(), max_size=15), st.lists(acts(), max_size=15))
@examples(40)
def test_a_restore_leads_back_exactly_but_keeps_the_list_of_snapshots(doings, later):
    """Restoring is a patch like any other; twice is once."""
    before, _ = lived(doings)
    now, _ = lived(doings + later)
    now["COLONY_STATE"] = {**now["COLONY_STATE"], "checkpoints": {"automatic": ["snap_9"]}}
    taken = snapshots.take_snapshot(before, snapshot_id="snap_1", label="", now=NOW, revision=1)

    change = snapshots.restore(now, taken)
    after = {name: apply(value, change.patches.get(name, [])) for name, value in now.items()}

    assert after["pheromones"] == before["pheromones"]
    kept = {"checkpoints": {"automatic": ["snap_9"]}}
    assert after["COLONY_STATE"] == {**before["COLONY_STATE"], **kept}
    assert snapshots.restore(after, taken).patches == {}


SHIPPED = json.loads((Path(__file__).resolve().parents[2] / "data" / "pheromones.json").read_text())


def strengths():
    """A strength that a signal may have."""
    return st.floats(min_value=0, max_value=1, exclude_min=True)


def half_lives():
    """Seconds from a moment to a year, or no fading at all."""
    return st.none() | st.floats(min_value=0.1, max_value=3e7)


def ages():
    """Seconds up to four months."""
    return st.floats(min_value=0, max_value=1e7)


def deposits():
    """What someone may deposit: type, strength, and how many seconds from now, past or future."""
    return st.tuples(st.sampled_from(sorted(signals.TYPES)), strengths(), st.integers(-100_000, 100_000))


def deposited(pheromones, nth, deposit):
    kind, strength, seconds = deposit
    when = NOW + timedelta(seconds=seconds)
    change = signals.emit(pheromones, kind, "x", now=when, id=f"s{nth}", strength=strength)
    return apply(pheromones, change.patches["pheromones"])


def all_deposited(numbered):
    state = SHIPPED
    for nth, deposit in numbered:
        state = deposited(state, nth, deposit)
    return state


@given(strengths(), half_lives(), ages(), ages())
def test_decaying_by_a_then_b_is_decaying_by_both(strength, half_life, a, b):
    """What is left depends on the age alone, not on how often someone looked."""

    def left(of, age):
        return signals.decayed_strength(of, age_seconds=age, half_life_seconds=half_life)

    twice, once = left(left(strength, a), b), left(strength, a + b)

    assert abs(twice - once) <= 1e-9


@given(strengths(), half_lives(), ages(), ages())
def test_decay_never_makes_a_signal_stronger(strength, half_life, a, b):
    """The older, the weaker; and never below nothing."""
    early, late = sorted((a, b))

    def left(age):
        return signals.decayed_strength(strength, age_seconds=age, half_life_seconds=half_life)

    assert 0 <= left(late) <= left(early) <= strength


@given(strengths(), half_lives(), ages())
def test_a_signal_from_the_future_is_fresh(strength, half_life, age):
    """A clock that went backwards neither weakens nor strengthens."""
    assert signals.decayed_strength(strength, age_seconds=-age, half_life_seconds=half_life) == strength


@given(
    st.lists(deposits(), max_size=6).flatmap(
        lambda made: st.tuples(st.just(made), st.permutations(range(len(made))))
    )
)
def test_deposits_commute(made_and_order):
    """Whoever deposits first, the colony feels the same signals in the same order."""
    made, order = made_and_order

    one = all_deposited(enumerate(made))
    two = all_deposited((nth, made[nth]) for nth in order)

    for caste in (None, "builder", "stranger"):
        assert signals.active_signals(one, now=NOW, caste=caste) == signals.active_signals(
            two, now=NOW, caste=caste
        )


@given(st.lists(deposits(), max_size=6), st.integers(0, 1_000_000))
def test_expiring_loses_no_signal(made, seconds):
    """What is active and what went to the events is what was deposited; the felt ones all stay."""
    state = all_deposited(enumerate(made))
    untouched = copy.deepcopy(state)
    later = NOW + timedelta(seconds=seconds)

    change = signals.expire(state, later)
    after = apply(state, change.patches.get("pheromones", []))

    assert state == untouched
    moved = [event["signal"] for event in change.appends.get("events", [])]
    key = lambda signal: signal["id"]  # noqa: E731
    assert sorted(after["active_pheromones"] + moved, key=key) == sorted(state["active_pheromones"], key=key)
    assert signals.active_signals(after, now=later) == signals.active_signals(state, now=later)
    assert signals.expire(after, later).patches == {}
