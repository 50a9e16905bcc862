import pytest

import aether
from aether.api import dedupe
from aether.errors import InvalidInput
from tests import homes
from tests.tables import rows


def draft(content="Use tabs.", *, file="s1.jsonl", key="k1", via=None, **more):
    pointer = {"file": file, "key": key} | ({"via": via} if via else {})
    return {"content": content, "type": "decision", "metadata": {"pointer": pointer, "phase": 1, **more}}


def stored(home, *entries):
    aether.add_working_memory_items(entries, home=home)
    return homes.anew(home)


@pytest.mark.parametrize(
    ("here", "there", "to_hooks", "fresh"),
    [
        ("hooks", None, False, False),  # an import knows what hooks noted
        (None, "hooks", True, False),  # and the other way round
        (None, None, False, True),  # what was done twice is noted twice
        ("hooks", "hooks", True, True),
    ],
)
def test_the_other_origin_is_known_by_what_it_says(here, there, to_hooks, fresh, home):
    known = dedupe.known_keys(stored(home, draft(via=here)), to_hooks=to_hooks, files={"s1.jsonl"})

    assert dedupe.is_new(draft(key="k2", via=there), known) == fresh


def test_a_key_is_known_whoever_noted_it(home):
    snapshot = stored(home, draft(via="hooks"), {"content": "No key.", "type": "decision"})

    for to_hooks in (False, True):
        known = dedupe.known_keys(snapshot, to_hooks=to_hooks, files=())
        assert not dedupe.is_new(draft("Other words."), known)
        assert "" not in known


def test_the_same_words_of_another_transcript_or_kind_are_fresh(home):
    known = dedupe.known_keys(stored(home, draft(via="hooks")), to_hooks=False)

    assert dedupe.is_new(draft(file="s2.jsonl", key="k2"), known)
    assert dedupe.is_new(draft(key="k3") | {"type": "outcome"}, known)
    assert not dedupe.is_new(draft("Anything", key="k3"), known)


def test_what_a_sub_agent_said_is_known_from_whichever_file_tells_it(home):
    said = draft(via="hooks") | {"caste": "scout"}
    known = dedupe.known_keys(stored(home, said), to_hooks=False)

    assert not dedupe.is_new(draft(file="agent-a1.jsonl", key="k2") | {"caste": "scout"}, known)
    assert dedupe.is_new(draft(file="agent-a1.jsonl", key="k3"), known)


def test_hooks_compare_with_their_own_transcript_only(home):
    known = dedupe.known_keys(stored(home, draft()), to_hooks=True, files={"s2.jsonl"})

    assert known == {"k1"}


def test_what_is_archived_is_known(home):
    stored(home, draft(via="hooks"))
    aether.clear_working_memory(home=home)

    assert dedupe.known_keys(homes.anew(home), to_hooks=False) >= {"k1"}


def test_what_was_undone_is_as_good_as_never_noted(home):
    stored(home, draft(via="hooks"))
    aether.undo(home=home)

    assert dedupe.known_keys(homes.anew(home), to_hooks=False) == set()


def test_what_is_archived_is_read_after_a_position(home):
    stored(home, draft())
    aether.clear_working_memory(home=home)

    assert dedupe.known_keys(homes.anew(home), to_hooks=True, after=1 << 60) == set()


@rows("pointer", [None, "somewhere", 7, ["key"]])
def test_a_pointer_of_another_kind_is_none(pointer):
    entry = {"content": "x", "type": "decision", "metadata": {"pointer": pointer}}

    assert (dedupe.note_key(entry), dedupe.is_from_hooks(entry)) == ("", False)
    assert dedupe.text_key(entry).startswith("said ")


def test_batches_are_full_and_hold_everything_in_order(monkeypatch):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 3)
    made = [{"content": "x" * size} for size in (1, 1, 1, 1, 5, 9, 20, 1)]

    found = list(dedupe.batches(iter(made), 10))

    assert [[len(each["content"]) for each in batch] for batch in found] == [
        [1, 1, 1],
        [1, 5],
        [9],
        [20],
        [1],
    ]
    assert list(dedupe.batches([], 10)) == []


def test_a_small_working_memory_gets_small_batches():
    assert dedupe.batch_chars(100) == 50
    assert dedupe.batch_chars(1_000_000) == dedupe.BATCH_CHARS


def test_what_can_be_stored_comes_back_checked_and_without_a_time_that_is_none():
    found = dedupe.storable(draft(timestamp="yesterday"), capacity=10, certain_chars=100, count=len)

    assert "timestamp" not in found["metadata"]
    timed = draft(timestamp="2026-03-01T10:15:00Z")
    assert "timestamp" in dedupe.storable(timed, capacity=10, certain_chars=100, count=len)["metadata"]


@pytest.mark.parametrize(("content", "reason"), [(" ", "required"), ("x" * 11, "11 tokens do not fit")])
def test_what_cannot_be_stored_is_refused(content, reason):
    with pytest.raises(InvalidInput, match=reason):
        dedupe.storable(draft(content), capacity=10, certain_chars=5, count=len)
