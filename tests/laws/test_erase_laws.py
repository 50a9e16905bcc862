"""Erasing maps strings: every past state is the old one with its strings mapped, and what did not hold the text is undone as before."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aether.api import forget
from aether.errors import Conflict, NotFound
from aether.memory.erase import map_strings, marks, pattern_of, rewrite_file
from aether.store import journal as journals
from aether.store import log, patch
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.store.journal import folded_entries
from aether.store.undo import states_since, undo
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
        take_back(home, homes.reopened(home).revision)


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
    snapshot = homes.reopened(home)
    steps, first = states_since(snapshot, 1)
    return [*((entry.revision, entry.operation, entry.at, state) for entry, state in steps), first]


@given(STEPS, st.integers(1, 12))
@examples(60)
def test_every_past_state_is_mapped_and_only_what_held_the_text_cannot_be_undone(steps, revision):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home, other = (homes.fresh(Path(directory, name)) for name in ("one", "two"))
        for number, (step, said) in enumerate(steps):
            act(home, number, step, said)
            act(other, number, step, said)
        fold_home(other, now=homes.NOW)
        before = past(other)
        held = [entry.revision for entry in folded_entries(other) if TEXT in str(entry)]

        forget.erase(match=TEXT, home=home)

        wanted = json.loads(json.dumps(before).replace(TEXT, MARK))
        assert json.loads(json.dumps(past(home))) == wanted
        assert [entry.revision for entry in folded_entries(home) if entry.erased] == held
        done = take_back(home, revision)
        if revision in held:
            assert done is Conflict
        else:
            assert type(done) is type(take_back(other, revision))
        assert homes.reopened(home).documents == json.loads(
            json.dumps(homes.reopened(other).documents).replace(TEXT, MARK)
        )


@given(values(), values())
def test_a_change_of_mapped_states_is_the_mapped_change(before, after):
    def erase(text):
        return text.replace("a", "[ERASED]")

    line = journals.entry_line(
        journals.Entry(1, "", "", "edit", "", {"x": patch.diff(before, after)}, {}, {})
    )
    change = journals.entry_of(log.unsealed(rewrite_file("a.jsonl", line, erase))).patches.get("x", [])

    assert patch.apply(map_strings(before, erase), change) == map_strings(after, erase)


@given(
    st.lists(
        st.sampled_from(["abcdéf", "abcde\u0301f", "abcd", "f", "x ", "[ERASED]", "[", "]"]), max_size=8
    ).map("".join)
)
def test_nothing_is_left_and_what_differed_differs(text):
    pattern = pattern_of(["abcdéf"])
    by = marks(pattern.findall(text), taken=["[ERASED]"])

    made = pattern.sub(lambda match: by[match[0]], text)

    assert not pattern.search(made)
    back = made
    for spelling, mark in by.items():
        back = back.replace(mark, spelling)
    assert back == text
