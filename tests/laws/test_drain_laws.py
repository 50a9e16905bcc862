"""However entries come – repeated, in portions, by many processes – each is noted once, and no note is lost."""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.api.drain import drain
from aether.api.hook_sessions import find_session
from aether.store import spool
from tests import homes
from tests.effort import examples
from tests.hook_player import called, entry, put, turn

SESSIONS = ("s1", "s2")
EVENTS = st.one_of(
    st.builds(turn, st.integers(0, 5), st.sampled_from(SESSIONS)),
    st.builds(
        lambda number, failed, session: [
            called(number, f"make part-{number % 3}", f"part {number} built", failed=failed, session=session)
        ],
        st.integers(10, 30), st.booleans(), st.sampled_from(SESSIONS),
    ),
    st.builds(
        lambda event, session: [entry(event, session)],
        st.sampled_from(["SessionStart", "PreCompact", "PostCompact", "SessionEnd"]), st.sampled_from(SESSIONS),
    ),
)  # fmt: skip
HISTORIES = st.lists(EVENTS, max_size=8).map(lambda groups: [each for group in groups for each in group])


PLACES: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def _place():
    """Have a place for the homes, one for each example, that is removed after the tests."""
    with tempfile.TemporaryDirectory(prefix="aether-law-", dir=homes.IN_MEMORY) as directory:
        PLACES.append(Path(directory))
        yield
        PLACES.clear()


def fresh():
    return homes.fresh(Path(tempfile.mkdtemp(dir=PLACES[0])))


def notes(home):
    """Return the notes with their keys, in the order of the store."""
    items = homes.reopened(home).documents["memory"]["working_memory"]["items"]
    return [(item["metadata"]["pointer"].get("key"), item["type"], item["content"]) for item in items]


def at_once(entries):
    home = fresh()
    put(home, *entries)
    assert drain(home).left == ""
    return home


@examples(40)
@given(HISTORIES, st.data())
def test_portions_change_nothing(entries, data):
    home = fresh()
    left = list(entries)
    while left:
        size = data.draw(st.integers(1, len(left)))
        put(home, *left[:size])
        del left[:size]
        drain(home)

    whole = at_once(entries)
    assert notes(home) == notes(whole)
    for session in SESSIONS:
        one, other = find_session(home, session), find_session(whole, session)
        assert (one and (one["state"], one["seen"])) == (other and (other["state"], other["seen"]))


@examples(40)
@given(HISTORIES, st.data())
def test_what_is_delivered_again_a_little_later_changes_nothing(entries, data):
    doubled = []
    for each in entries:
        doubled += [each] * data.draw(st.integers(1, 3))

    assert notes(at_once(doubled)) == notes(at_once(entries))


@examples(40)
@given(HISTORIES)
def test_draining_again_what_was_not_removed_changes_nothing(entries):
    home = fresh()
    names = put(home, *entries)
    kept = {name: spool.get(str(home), name) for name in names}
    drain(home)
    before = notes(home)
    for name, each in kept.items():
        (home / "hooks" / "spool" / name).write_text(json.dumps(each))

    drain(home)

    assert notes(home) == before


@examples(40)
@given(HISTORIES)
def test_a_lost_session_file_doubles_nothing(entries):
    home = fresh()
    names = put(home, *entries)
    kept = [spool.get(str(home), name) for name in names]
    drain(home)
    before = notes(home)
    for path in (home / "hooks" / "sessions").glob("*"):
        path.unlink()
    put(home, *kept)
    drain(home)

    assert notes(home) == before


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.hook_player import put, turn
for number in range(int(sys.argv[3])):
    for entry in turn(number, sys.argv[4]):
        put(Path(sys.argv[2]), entry)
"""
TAKER = """
import sys, time
from pathlib import Path
from aether.api.drain import drain
until = time.monotonic() + 60
while sys.stdin.read(0) == "" and time.monotonic() < until and not (Path(sys.argv[2]) / "stop").exists():
    drain(Path(sys.argv[2]), patience=5)
drain(Path(sys.argv[2]), patience=5)
"""


@pytest.mark.slow
def test_sixteen_that_put_and_four_that_take_in_lose_and_double_nothing():
    home, root = fresh(), str(Path(__file__).parents[2])
    turns = 3

    def start(code, *more):
        return subprocess.Popen(
            [sys.executable, "-c", code, root, str(home), *more], env=homes.plain_environment(), cwd=root,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    takers = [start(TAKER) for _ in range(4)]
    writers = [start(WRITER, str(turns), f"w{number}") for number in range(16)]
    assert [writer.wait() for writer in writers] == [0] * 16
    (home / "stop").touch()
    assert [taker.wait() for taker in takers] == [0] * 4

    expected = at_once([each for w in range(16) for n in range(turns) for each in turn(n, f"w{w}")])
    assert sorted(notes(home)) == sorted(notes(expected))
    assert len(notes(home)) == 16 * turns * 3
    assert spool.waiting(str(home)) == []


@examples(20)
@given(HISTORIES, st.integers(0, 1 << 16))
def test_entries_out_of_order_are_each_noted_at_most_once_and_keep_their_keys(entries, seed):
    """Hooks of parallel calls run at once: their entries may come in any order."""
    mixed = list(entries)
    random.Random(seed).shuffle(mixed)

    found = notes(at_once(mixed))

    assert len({key for key, _, _ in found}) == len(found)
    assert {key for key, kind, _ in found if kind == "user_input"} == {
        key for key, kind, _ in notes(at_once(entries)) if kind == "user_input"
    }
