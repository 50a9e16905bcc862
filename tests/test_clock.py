"""Times and ids."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import strategies as st

from aether import clock
from aether.clock import new_id, short_id
from aether.errors import InvalidInput
from tests.homes import NOW
from tests.tables import rows

instants = st.integers(-30_000_000_000_000_000, 250_000_000_000_000_000).map(
    lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
)


def test_a_stamp_is_in_utc_whatever_the_zone():
    there = datetime(2026, 3, 1, 5, 15, tzinfo=timezone(timedelta(hours=-5)))

    assert clock.stamp(there) == "2026-03-01T10:15:00.000000Z"


@rows(
    ("text", "hour"),
    [
        ("2026-03-01T10:15:00", 10),
        ("2026-03-01T10:15:00+02:00", 8),
        ("2026-03-01", 0),
        ("20260301T101500Z", 10),
    ],
)
def test_iso_8601_is_read(text, hour):
    found = clock.parse(text)

    assert (found.hour, found.tzinfo) == (hour, UTC)


@rows("text", ["", "yesterday", "2026-13-01", None, 7, "0001-01-01T00:00:00+14:00"])
def test_what_is_no_time_is_refused_with_its_place(text):
    with pytest.raises(InvalidInput, match=r"^signal: .* is not a time"):
        clock.parse(text, where="signal")


def test_years_before_1000_are_padded_so_that_they_sort_and_are_read_back():
    early = clock.parse("0099-01-01")

    assert clock.stamp(early) == "0099-01-01T00:00:00.000000Z"
    assert clock.parse(clock.stamp(early)) == early


def test_an_id_names_its_kind_and_instant():
    assert re.fullmatch(r"wm_1772360100000007_[0-9a-f]{8}", new_id("wm", NOW + timedelta(microseconds=7)))


def test_ids_of_one_instant_differ():
    made = [new_id("wm", NOW, nth) for nth in range(20_000)]

    assert len(set(made)) == len(made)
    assert made == sorted(made)


def test_a_short_id_has_eight_random_digits_and_no_time():
    made = {short_id("phase_3") for _ in range(100)}

    assert len(made) == 100
    assert all(re.fullmatch(r"phase_3_[0-9a-f]{8}", each) for each in made)


@rows(
    ("text", "expected"),
    [
        ("36h", "2026-03-06T12:00:00"), ("7d", "2026-03-01T00:00:00"), ("2w", "2026-02-22T00:00:00"),
        ("1y", "2025-03-08T00:00:00"), ("2026-03-01T10:15:00Z", "2026-03-01T10:15:00"), ("2026-03-01", "2026-03-01T00:00:00"),
    ],
)  # fmt: skip
def test_a_time_is_written_in_full_or_as_a_time_before_now(text, expected):
    assert (
        clock.instant_of(text, at=datetime(2026, 3, 8, tzinfo=UTC), where="since").isoformat()
        == f"{expected}+00:00"
    )


@rows("text", ["7", "d", "-7d", "99999y", "yesterday", ""])
def test_another_time_is_an_error_that_names_the_forms(text):
    with pytest.raises(InvalidInput, match="36h, 7d"):
        clock.instant_of(text, at=datetime(2026, 3, 8, tzinfo=UTC), where="since")
