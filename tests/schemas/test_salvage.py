import json
from pathlib import Path

from aether.schemas import salvage
from aether.schemas.salvage import Notes
from aether.store.documents import NAMES
from tests.tables import rows


def notes():
    return Notes("memory", [], [])


@rows(
    ("read", "value", "expected"),
    [
        (salvage.text, "  ", None),
        (salvage.text, 3, None),
        (salvage.number, "2.5", 2.5),
        (salvage.number, "two", None),
        (salvage.number, float("nan"), None),
        (salvage.number, "inf", None),
        (salvage.number, 10**400, None),
        (salvage.number, [1], None),
        (salvage.whole, "7", 7),
        (salvage.whole, "seven", None),
        (salvage.phase_number, "x", None),
        (salvage.phase_number, True, None),
        (salvage.fraction, 1.5, 1.0),
        (salvage.fraction, -1, 0.0),
        (salvage.fraction, "x", None),
        (salvage.strength, 0, None),
        (salvage.strength, 2, 1.0),
        (salvage.half_life, 3600, 3600),
        (salvage.half_life, 0, None),
        (salvage.half_life, "soon", None),
        (salvage.instant, "2026-02-01T01:00:00-05:00", "2026-02-01T06:00:00.000000Z"),
        (salvage.instant, "0001-01-01T00:00:00", None),
        (salvage.instant, 12, None),
        (salvage.mapping, [], None),
        (salvage.listing, {}, None),
    ],
)
def test_readers_give_what_should_be_there_or_nothing(read, value, expected):
    assert read(value) == expected


@rows(
    ("id", "expected"),
    [
        ("focus_1769904000", "2026-02-01T00:00:00.000000Z"),
        ("wm_1772359200000001_9f86d081", "2026-03-01T10:00:00.000001Z"),
        ("pattern_1769904000_0cc175b9", "2026-02-01T00:00:00.000000Z"),
        ("phase_1_test", "1970-01-01T00:00:00.000000Z"),
    ],
)
def test_an_id_may_say_when_it_was_made(id, expected):
    assert salvage.instant_in(id) == expected


@rows("absent", [{}, {"n": None}, {"n": ""}])
def test_what_is_absent_gets_its_default_without_a_word(absent):
    said = notes()

    assert salvage.field(absent, "n", salvage.whole, 5, place="/x", notes=said) == 5
    assert (said.findings, said.unplaced) == ([], [])


def test_what_cannot_be_read_is_kept_and_named():
    said = notes()

    assert salvage.field({"n": "many"}, "n", salvage.whole, 5, place="/x", notes=said) == 5
    assert said.unplaced == [{"where": "/x/n", "value": "many"}]
    assert said.findings[0].where == "memory#/x/n"
    assert said.findings[0].message == "'many' is not a whole number; it was set aside."


def test_entries_that_cannot_be_read_are_set_aside_one_by_one():
    said = notes()

    found = salvage.entries(
        {"items": [{"id": "a"}, "b", {}]},
        "items",
        lambda raw, place, notes: raw or None,
        place="/w",
        notes=said,
    )

    assert found == [{"id": "a"}]
    assert said.unplaced == [{"where": "/w/items/1", "value": "b"}, {"where": "/w/items/2", "value": {}}]


def test_texts_leave_out_what_is_none():
    said = notes()

    assert salvage.texts({"t": ["a", 1]}, "t", place="/x", notes=said) == ["a"]
    assert said.unplaced == [{"where": "/x/t/1", "value": 1}]


def test_repeated_ids_are_renamed_and_exact_copies_dropped():
    said = notes()
    found = [
        {"id": "a", "session_id": "a", "n": 1, "metadata": {}},
        {"id": "a_2", "n": 1, "metadata": {}},
        {"id": "a", "session_id": "a", "n": 2, "metadata": {}},
        {"id": "a", "session_id": "b", "n": 3},
        {"id": "a", "session_id": "a", "n": 1, "metadata": {}},
        {"id": "a", "session_id": "a", "n": 2, "metadata": {}},
    ]

    kept = salvage.unique(found, "/s", said)

    assert kept == [
        found[0],
        found[1],
        {"id": "a_3", "session_id": "a_3", "n": 2, "metadata": {"renamed_from": "a"}},
        {"id": "a_4", "session_id": "b", "n": 3, "metadata": {"renamed_from": "a"}},
    ]
    assert [finding.code for finding in said.findings] == [
        "duplicate_renamed",
        "duplicate_renamed",
        "duplicate_dropped",
        "duplicate_dropped",
    ]


def test_filling_keeps_what_fits_and_what_is_unknown():
    said = notes()
    initial = {"a": {"n": 1, "ratio": 0, "l": [], "t": "x"}, "free": None, "gone": {"b": 2}}

    found = salvage.filled(
        {"a": {"n": "3", "ratio": "2.5", "l": {}, "own": 1}, "free": [1], "more": 0}, initial, "", said
    )

    assert found == {
        "a": {"n": 3, "ratio": 2.5, "l": [], "t": "x", "own": 1},
        "free": [1],
        "gone": {"b": 2},
        "more": 0,
    }
    assert said.unplaced == [{"where": "/a/l", "value": {}}]


@rows("odd", ["text", 3, [1]])
def test_a_value_in_the_place_of_an_object_is_set_aside(odd):
    said = notes()

    assert salvage.filled({"a": odd}, {"a": {"n": 1}}, "", said) == {"a": {"n": 1}}
    assert said.unplaced == [{"where": "/a", "value": odd}]


def test_the_shipped_documents_hold_only_what_filling_knows():
    """Filling reads by the initial value; a true or false there would need a reader of its own."""
    data = Path(__file__).resolve().parents[2] / "data"

    def kinds(value):
        below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return {type(value)}.union(*map(kinds, below))

    for path in (data / f"{name}.json" for name in NAMES):
        assert kinds(json.loads(path.read_text())) <= {dict, list, str, int, float, type(None)}


def test_a_ratio_below_nothing_is_set_aside():
    notes = Notes("memory", [], [])

    filled = salvage.filled({"compression_ratio": -1.0}, {"compression_ratio": 2.5}, "/short", notes)

    assert filled == {"compression_ratio": 2.5}
    assert [one["where"] for one in notes.unplaced] == ["/short/compression_ratio"]
