import json
from datetime import UTC, datetime
from pathlib import Path

from aether.memory.snapshots import archive_removed
from aether.store.patch import diff
from aether.types import Change
from tests import homes
from tests.memory.states import answer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def memory(*entries, sessions=()):
    state = json.loads((Path(__file__).resolve().parents[2] / "data" / "memory.json").read_text())
    state["working_memory"]["items"] = list(entries)
    state["short_term_memory"]["sessions"] = list(sessions)
    return state


def removed_records(before, after):
    """Return what the archive gets when memory `before` becomes `after`."""
    change = Change({"memory": diff(before, after)})
    return archive_removed({"memory": before}, change, now=NOW).appends.get("items", [])


def test_what_is_there_no_more_goes_to_the_archive():
    one, two = homes.item("one"), homes.item("two")

    records = removed_records(memory(one, two), memory(two))

    assert [(record["item"], record["why"]) for record in records] == [(one, "removed")]


def test_a_session_that_is_there_no_more_goes_to_the_archive_whole():
    session = {
        **answer("s1"), "session_id": "s1", "phase": 1, "compressed_tokens": 3, "metadata": {},
        "compressed_at": "2026-03-01T12:00:00Z",
    }  # fmt: skip

    [record] = removed_records(memory(sessions=[session]), memory())

    assert (record["session"], record["why"]) == (session, "removed")
    assert removed_records(memory(), memory(sessions=[session])) == []


def test_a_change_takes_its_departures_with_it():
    documents = {"memory": memory(homes.item("one"))}
    gone = Change({"memory": [{"op": "remove", "path": "/working_memory/items/0"}]}, result="done")

    change = archive_removed(documents, gone, now=NOW)

    assert change.patches == gone.patches
    assert [record["item"]["id"] for record in change.appends["items"]] == ["one"]
    assert change.result == "done"
    assert archive_removed(documents, Change({}), now=NOW).appends == {}
