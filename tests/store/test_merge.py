"""Salvage: damaged lines, and later changes applied again without a lost one."""

from random import Random

import pytest

from aether.store import doctor, log, merge
from aether.store import journal as journals
from aether.store.patch import apply_with_inverse
from tests import homes
from tests.tables import rows

LINES = [log.seal_json({"n": n, "text": "some text*J-"}) for n in range(3)]
RULES = {("total",): "sum", ("entries", "*", "reads"): "touch"}


def test_a_flipped_bit_costs_its_own_line_and_no_other():
    data = b"".join(LINES)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8

        lines = [line for line, good in log.lines_of(bytes(damaged)) if good]

        assert set(lines) <= set(LINES), at
        # A flipped end of a line joins two.
        assert len(lines) >= len(LINES) - 2, at


def test_a_damaged_line_is_named_in_its_place():
    harmed = LINES[0] + LINES[1].replace(b"some", b"eome") + LINES[2]

    assert list(log.lines_of(harmed)) == [
        (LINES[0], True), (LINES[1].replace(b"some", b"eome"), False), (LINES[2], True),
    ]  # fmt: skip


def entry(name, reads=0):
    return {"id": name, "reads": reads, "text": f"about {name}"}


@pytest.mark.parametrize(
    ("_what", "before", "patch", "now", "wanted"),
    [
        ("an entry is found by its value", [entry("a"), entry("b")],
         [{"op": "remove", "path": "/entries/1"}], [entry("b")], []),
        ("a part of it too", [entry("a"), entry("b")],
         [{"op": "replace", "path": "/entries/1/text", "value": "new"}], [entry("b")], [entry("b") | {"text": "new"}]),
        ("an entry that is missing", [entry("a"), entry("b")],
         [{"op": "remove", "path": "/entries/0"}], [entry("b")], None),
        ("an entry that has changed", [entry("a")],
         [{"op": "replace", "path": "/entries/0/text", "value": "new"}], [entry("a") | {"text": "other"}], None),
        ("two entries that could be meant", [entry("a") | {"text": "x"}, entry("b") | {"text": "x"}],
         [{"op": "replace", "path": "/entries/1/text", "value": "y"}],
         [entry("a") | {"text": "x"}, entry("b") | {"text": "x"}], None),
        ("an addition", [entry("a")], [{"op": "add", "path": "/entries/-", "value": entry("c")}], [], [entry("c")]),
        ("an addition that is there", [], [{"op": "add", "path": "/entries/-", "value": entry("a")}], [entry("a")], None),
        ("bookkeeping", [entry("a")], [{"op": "replace", "path": "/entries/0/reads", "value": 3}], [], []),
    ],
)  # fmt: skip
def test_a_change_is_applied_only_where_it_fits(_what, before, patch, now, wanted):
    was = {"total": 5, "entries": before}
    patch = [*patch, {"op": "replace", "path": "/total", "value": 7}]
    inverse = apply_with_inverse(was, patch)[1]
    state = {"total": 9, "entries": now}

    fitted = merge.refitted(state, patch, inverse, RULES)

    if wanted is None:
        assert fitted is None
    else:
        assert apply_with_inverse(state, fitted)[0] == {"total": 11, "entries": wanted}


FIELD = [{"op": "replace", "path": "/entries/0/text", "value": "new"}]
WHOLE = [{"op": "replace", "path": "/entries/0", "value": entry("a") | {"text": "new"}}]


@rows(
    ("what", "patch", "now", "wanted"),
    [
        ("another entry with the old value", FIELD, [entry("b") | {"text": "about a"}], None),
        ("two entries with the old value", FIELD, [entry("b") | {"text": "about a"}, entry("a")],
         [entry("b") | {"text": "about a"}, entry("a") | {"text": "new"}]),
        ("the entry has another value now", FIELD, [entry("a") | {"text": "other"}], None),
        ("the entry has this value already", FIELD, [entry("a") | {"text": "new"}], [entry("a") | {"text": "new"}]),
        ("a whole entry that was read", WHOLE, [entry("b"), entry("a", reads=3)],
         [entry("b"), entry("a", reads=3) | {"text": "new"}]),
        ("a whole entry of which another field was changed", WHOLE, [entry("a") | {"more": 1}],
         [entry("a") | {"more": 1, "text": "new"}]),
        ("a whole entry of which this field was changed", WHOLE, [entry("a") | {"text": "other"}], None),
        ("an entry that was read is removed", [{"op": "remove", "path": "/entries/0"}], [entry("a", reads=2)], []),
        ("an entry that was changed is not", [{"op": "remove", "path": "/entries/0"}], [entry("a") | {"text": "x"}], None),
        ("a field is added to it", [{"op": "add", "path": "/entries/0/more", "value": 1}], [entry("b"), entry("a")],
         [entry("b"), entry("a") | {"more": 1}]),
        ("an entry without an id, by what it is", [{"op": "remove", "path": "/entries/2"}], ["y", "x"], ["y"]),
        ("a part of an entry without an id", [{"op": "replace", "path": "/entries/3/0", "value": 2}], [[1]], None),
    ],
)  # fmt: skip
def test_an_entry_is_known_by_its_id(what, patch, now, wanted):
    was = {"total": 5, "entries": [entry("a"), entry("b"), "x", [1]]}
    ids = merge.ids_of(was, patch)
    inverse = apply_with_inverse(was, patch)[1]

    fitted = merge.refitted({"total": 9, "entries": now}, patch, inverse, RULES, ids)

    assert (fitted is None) == (wanted is None)
    if fitted is not None:
        assert apply_with_inverse({"total": 9, "entries": now}, fitted)[0]["entries"] == wanted


@pytest.mark.parametrize("seed", range(4))
def test_a_lost_commit_costs_itself_and_what_depends_on_it(tmp_path, seed):
    random = Random(seed)
    home = homes.fresh(tmp_path)
    held, changes = [], []
    for n in range(12):
        if held and random.random() < 0.4:
            changes.append(("remove", held.pop(random.randrange(len(held)))))
            homes.remove(home, changes[-1][1])
        else:
            changes.append(("add", f"item-{n}"))
            held.append(f"item-{n}")
            homes.add(home, f"item-{n}", f"text {n}", tokens=n + 1)
    path = journals.journal_path(home)
    lines = path.read_bytes().splitlines(keepends=True)
    at = random.randrange(len(changes))
    lines[at + 1] = b"\0" * 40 + lines[at + 1][40:]
    path.write_bytes(b"".join(lines))
    lost, name = changes[at]

    wanted = [one for one in held if (lost, one) != ("add", name)]
    if lost == "remove":
        wanted.append(name)
    assert sorted(homes.ids(home)) == sorted(wanted)
    homes.add(home, "after")
    assert sorted(homes.ids(home)) == sorted([*wanted, "after"])
    assert [one.level for one in doctor.examine(home)] == ["info"] * len(doctor.examine(home))
