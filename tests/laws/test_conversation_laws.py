"""Laws of conversation logs: nothing said is lost, undo gives back what was there, and a new reader sees the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.errors import NotFound
from aether.store.conversations import clear, extend, load, pop, record_compaction, undo
from aether.store.history import context, history
from tests import homes
from tests.effort import examples
from tests.laws.json_values import text, values

ID = "talk"


def messages():
    """A message as providers know it, of any values."""
    return st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant"]), "content": text()}
    ) | st.dictionaries(text(), values(4), max_size=3)


def reported():
    """A few messages said in one call."""
    return st.lists(messages(), min_size=1, max_size=3)


def acts():
    """What may be done to a conversation, in any order."""
    compact = st.tuples(st.just("compact"), messages(), st.integers(0, 3), reported())
    others = st.sampled_from([("undo",), ("pop",)]) | st.just(("clear",))
    return st.lists(st.tuples(st.just("say"), reported()) | compact | compact | others, max_size=8)


@pytest.fixture(scope="module", autouse=True)
def _no_syncs():
    patch = pytest.MonkeyPatch()
    patch.setattr("aether.store.files.sync_data", lambda handle: None)
    patch.setattr("aether.store.files.sync_directory", lambda directory: None)
    yield
    patch.undo()


@examples(150)
@given(acts())
def test_a_log_is_what_a_plain_list_would_be(steps):
    """Beside the log stands a model: the context, all that was said, and a stack of what undo gives back."""
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home = Path(directory)
        live, said, stack = [], [], []
        for step in steps:
            live, said, stack = _did(home, step, live, said, stack)
            log = load(home, ID)
            assert repr(context(log)) == repr(live)
            assert repr(history(log)) == repr(said)
            reopened = load(home, ID, whole=True)
            assert (reopened.texts, reopened.context, reopened.open) == (log.texts, log.context, log.open)


def _did(home, step, live, said, stack):
    """Do one step to the log, and return what the model is after it."""
    kind, *given_ = step
    if kind == "say":
        extend(home, ID, given_[0], now=homes.NOW)
        return live + given_[0], said + given_[0], stack
    if kind == "pop":
        assert repr(pop(home, ID, now=homes.NOW)) == repr(live[-1] if live else None)
        return live[:-1], said, stack
    if kind == "clear":
        clear(home, ID, now=homes.NOW)
        return [], said, []
    if kind == "undo":
        return (*_undone(home, live, said, stack),)
    summary, kept, new = given_
    before = live + new  # what the caller has, and never stored
    after = [summary, *before[len(before) - kept :]]
    places = [None, *range(len(before) - min(kept, len(before)), len(before))]
    after = [summary, *(before[place] for place in places[1:])]
    record_compaction(home, ID, before=before, after=after, places=places, receipt={}, now=homes.NOW)
    return after, said + new, [*stack, (before, len(after))]


def _undone(home, live, said, stack):
    if not stack:
        with pytest.raises(NotFound):
            undo(home, ID, now=homes.NOW)
        return live, said, stack
    before, made = stack[-1]
    done = undo(home, ID, now=homes.NOW)
    # The model knows how much of the result is left by its length only: a message taken back shortens it.
    joined = [] if done.findings else live[made:]
    assert repr(done.messages) == repr(before + joined)
    return before + joined, said, stack[:-1]


@given(st.lists(st.tuples(messages(), reported()), min_size=1, max_size=4))
def test_undoing_every_compaction_gives_back_every_message(rounds):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home, said = Path(directory), []
        for summary, new in rounds:
            extend(home, ID, new, now=homes.NOW)
            said += new
            before = context(load(home, ID))
            record_compaction(
                home, ID, before=before, after=[summary, before[-1]], places=[None, len(before) - 1], receipt={},
                now=homes.NOW,
            )  # fmt: skip

        done = [undo(home, ID, now=homes.NOW) for _ in rounds]

        assert repr(done[-1].messages) == repr(said) == repr(history(load(home, ID)))
        assert not any(one.findings for one in done)
