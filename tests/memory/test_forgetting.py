"""What forgetting takes out of memory; over a home it is tested in tests/api/test_forget.py."""

from __future__ import annotations

import json
from pathlib import Path

from aether.memory.forgetting.find import find_by_ids, find_by_text
from aether.memory.forgetting.forget import forget
from aether.store.patch import apply
from tests.homes import NOW, item

DATA = Path(__file__).parents[2] / "data"


def documents(*items):
    made = {
        name: json.loads((DATA / f"{name}.json").read_bytes())
        for name in ("memory", "pheromones", "COLONY_STATE")
    }
    made["memory"]["working_memory"]["items"] = list(items)
    made["memory"]["working_memory"]["current_tokens"] = sum(one["token_count"] for one in items)
    return made


def test_an_id_that_names_nothing_is_said():
    found, unknown = find_by_ids(documents(item("a")), [], ["a", "b", "a"])

    assert ([one.id for one in found], unknown) == (["a"], ["b"])


def test_an_archived_item_that_is_live_again_is_one_thing():
    archived = [{"item": item("a", "note two")}, {"item": item("b", "note")}]

    assert [(one.id, one.layer) for one in find_by_text(documents(item("a", "note")), archived, "NOTE")] == [
        ("a", "working_memory"), ("b", "archive"),
    ]  # fmt: skip


def test_nothing_to_forget_is_no_change():
    done = forget(documents(), [], now=NOW, count=len, receipt_id="r")

    assert (done.patches, done.appends, done.result) == ({}, {}, None)


def test_what_is_left_adds_up_and_links_nowhere_else():
    linked = item("b", "another", tokens=3) | {"associative_links": [{"target_id": "a", "id": "l"}]}
    before = documents(item("a", tokens=2), linked)
    targets, _ = find_by_ids(before, [], ["a"])

    done = forget(before, targets, now=NOW, count=len, receipt_id="r")

    after = apply(before["memory"], done.patches["memory"])
    assert [(one["id"], one["associative_links"]) for one in after["working_memory"]["items"]] == [("b", [])]
    assert after["working_memory"]["current_tokens"] == 3
    assert [one["id"] for one in after["forgotten"]] == ["a"]
    assert [one["why"] for one in done.appends["items"]] == ["forgotten"]
