"""Erasing is a map of strings: every state that ever was is the old one with its strings mapped, and undo goes on."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aether.errors import Conflict, NotFound
from aether.memory.erasing import mapped
from aether.operations import erasing
from aether.store import patch
from aether.store.commit import Author, commit, fold_home
from aether.store.undo import states_back, undo
from aether.text.erasing import marks, replaced, sought, spans
from tests import homes
from tests.effort import examples
from tests.laws.json_values import values

TEXT = "Quorvex"
MARK = "[ERASED]"
# What is said, with the text in it or not, in one piece, twice, or beside what looks like a mark.
SAID = st.sampled_from([TEXT, f"a {TEXT} b", f"{TEXT}{TEXT}", "nothing", "ERASED", f"/{TEXT}/~1", "Quor"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), SAID),
        st.tuples(st.just("say"), SAID),
        st.tuples(st.just("note"), SAID),
        st.tuples(st.sampled_from(["remove", "fold", "undo"]), st.just("")),
    ),
    max_size=12,
)


def act(home, number, step, said):
    """Do one step of a history; what makes no sense at this point is passed over."""
    held = homes.ids(home)
    if step == "add":
        homes.add(home, f"item{number}", said)
    elif step == "remove" and held:
        homes.remove(home, held[0])
    elif step == "say" and held:
        homes.patch(home, {"op": "replace", "path": "/working_memory/items/0/content", "value": said})
    elif step == "note":
        path = patch.pointer("files", f"/memories/{said.strip('/')}-{number}")
        homes.patch(home, {"op": "add", "path": path, "value": said}, document="memories")
    elif step == "fold":
        fold_home(home, now=homes.NOW)
    elif step == "undo":
        take_back(home, homes.anew(home).revision)


def take_back(home, revision):
    """Undo `revision`, and return what came of it."""
    try:
        return commit(
            home,
            lambda found: undo(found, revision),
            Author("undo", reason=f"of revision {revision}"),
            now=homes.NOW,
        )
    except (Conflict, NotFound) as reason:
        return type(reason)


def past(home):
    """Return the state at every revision, newest first, and what the log says of it."""
    snapshot = homes.anew(home)
    steps, first = states_back(snapshot, 1)
    return [*((entry.revision, entry.operation, entry.at, state) for entry, state in steps), first]


@given(STEPS, st.integers(1, 12))
@examples(60)
def test_every_state_that_ever_was_is_mapped_and_undo_goes_on(steps, revision):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home, other = (homes.fresh(Path(directory, name)) for name in ("one", "two"))
        for number, (step, said) in enumerate(steps):
            act(home, number, step, said)
            act(other, number, step, said)
        fold_home(other, now=homes.NOW)
        before = past(other)

        erasing.erase(match=TEXT, home=home)

        wanted = json.loads(json.dumps(before).replace(TEXT, MARK))
        assert json.loads(json.dumps(past(home))) == wanted
        done, meant = take_back(home, revision), take_back(other, revision)
        assert type(done) is type(meant)
        assert homes.anew(home).documents == json.loads(
            json.dumps(homes.anew(other).documents).replace(TEXT, MARK)
        )


@given(values(), values())
def test_a_change_of_mapped_states_is_the_mapped_change(before, after):
    wanted = sought(["abcdef"])

    def erase(text):
        return replaced(text.replace("a", "abcdef"), wanted, {"abcdef": "[ERASED]"})

    change = patch.diff(mapped(before, erase), mapped(after, erase))

    assert patch.apply(mapped(before, erase), mapped(patch.diff(before, after), erase, patch=True)) == mapped(
        after, erase
    )
    assert len(change) == len(patch.diff(before, after))


@given(
    st.lists(
        st.sampled_from(["abcdef", "ABCDEF", "abcde", "f", "…", "x ", "[ERASED]", "[", "]"]), max_size=8
    ).map("".join)
)
def test_nothing_is_left_and_what_differed_differs(text):
    wanted = sought(["abcdef"])
    found: dict[str, None] = {}
    for start, end in spans(text, wanted):
        found[text[start:end]] = None
    by = marks(found, wanted, taken=text)

    made = replaced(text, wanted, by)

    assert "abcdef" not in made.lower()
    back = made
    for spelling, mark in by.items():
        back = back.replace(mark, spelling)
    assert back == text
