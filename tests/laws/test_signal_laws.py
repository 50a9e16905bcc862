"""Laws of signals: decay depends on age alone, and the order of deposits does not matter."""

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aether.memory import signals
from aether.store.patch import apply

SHIPPED = json.loads((Path(__file__).resolve().parents[2] / "data" / "pheromones.json").read_text())
NOW = datetime(2026, 3, 1, tzinfo=UTC)


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
