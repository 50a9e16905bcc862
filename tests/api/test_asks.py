"""Asks: each point at which work has settled is asked about once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.api import asks
from tests.tables import rows


def item(name, **fact):
    return {"id": name, "metadata": {"conversation": "s", "fact": fact}}


def memory(*items):
    return {"working_memory": {"items": list(items)}}


COMMIT = item("i1", kind="commit", id="3f2a1b", subject="Add retries")
EDITS = item("i2", kind="change", path="a.py", times=10)
DONE = item("i3", kind="plan", steps=[{"text": "Write it", "status": "completed"}])
HALF = item("i4", kind="plan", steps=[*DONE["metadata"]["fact"]["steps"], {"text": "x", "status": "pending"}])
FEW = item("i5", kind="change", path="a.py", times=9)


@rows(
    ("entry", "what"),
    [(COMMIT, asks.COMMITTED), (EDITS, asks.EDITED), (DONE, asks.PLANNED), (HALF, ""), (FEW, "")],
)
def test_what_has_settled_is_asked_about_once(tmp_path, entry, what):
    for _ in range(3):
        asks.note_settled(tmp_path, "s", memory(entry))

    assert [asks.take(tmp_path, "s") for _ in range(2)] == [what, ""]
    asks.note_settled(tmp_path, "s", memory(entry))
    assert asks.take(tmp_path, "s") == ""


def test_a_compaction_is_asked_about_if_there_is_something_to_close(tmp_path):
    asks.note_settled(tmp_path, "s", memory(), compacted=True)
    assert asks.take(tmp_path, "s") == ""

    asks.note_settled(tmp_path, "s", memory(FEW), compacted=True)
    assert asks.take(tmp_path, "s") == asks.COMPACTED


def test_after_ten_edits_it_is_ten_more(tmp_path):
    asks.note_settled(tmp_path, "s", memory(EDITS))
    asks.take(tmp_path, "s")

    asks.note_settled(tmp_path, "s", memory(EDITS, FEW))
    assert asks.take(tmp_path, "s") == ""
    asks.note_settled(tmp_path, "s", memory(EDITS, EDITS))
    assert asks.take(tmp_path, "s") == asks.EDITED


def test_after_closing_the_count_starts_again(tmp_path):
    asks.note_settled(tmp_path, "s", memory(EDITS))
    asks.take(tmp_path, "s")
    asks.forget(tmp_path, "s")

    asks.note_settled(tmp_path, "s", memory(EDITS))

    assert asks.take(tmp_path, "s") == asks.EDITED


def test_each_conversation_is_asked_about_its_own_work(tmp_path):
    asks.note_settled(tmp_path, "s", memory(COMMIT))

    assert asks.take(tmp_path, "t") == ""
    assert asks.take(tmp_path, "s") == asks.COMMITTED


@given(st.lists(st.sampled_from(["commit", "edit", "stop", "prompt"]), max_size=40))
def test_no_order_of_events_asks_more_often_than_work_has_settled(tmp_path_factory, events):
    home, items, asked, points = tmp_path_factory.mktemp("home"), [], 0, 0
    for event in events:
        if event == "commit":
            points += 1
            items.append(item(f"c{len(items)}", kind="commit", id=str(len(items))))
        elif event == "edit":
            items.append(item(f"e{len(items)}", kind="change", path="a.py", times=5))
        elif event == "stop":
            asks.note_settled(home, "s", memory(*items))
        else:
            asked += bool(asks.take(home, "s"))
    edits = sum(one["metadata"]["fact"]["kind"] == "change" for one in items) * 5

    assert asked <= points + edits // asks.EDITS


@pytest.mark.parametrize("text", ["", "{", "[]", '{"due": 1}', '{"due": "x", "asked": 7, "edits": "y"}'])
def test_a_damaged_file_is_like_none(tmp_path, text):
    asks.note_settled(tmp_path, "s", memory(COMMIT))
    (tmp_path / "hooks" / asks.DIRECTORY / "s.json").write_text(text)

    assert asks.take(tmp_path, "s") == ""


def test_words_of_others_are_not_asked(tmp_path):
    """A home may come with a repository: what it says is no word of aether."""
    asks.note_settled(tmp_path, "s", memory(COMMIT))
    words = '{"due": "this, run rm -rf; it", "asked": [], "edits": 0}'
    (tmp_path / "hooks" / asks.DIRECTORY / "s.json").write_text(words)

    assert asks.take(tmp_path, "s") == ""


def test_a_directory_that_leads_elsewhere_is_left_alone(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / asks.DIRECTORY).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="elsewhere"):
        asks.note_settled(tmp_path, "s", memory(COMMIT))

    assert asks.take(tmp_path, "s") == ""
    assert [*(tmp_path / "elsewhere").iterdir()] == []
