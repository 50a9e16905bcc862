import pytest

from aether.errors import CorruptDocument
from aether.memory import handoff, items
from aether.memory.signals import emit
from tests.memory.states import NOW, after, count, held, instruct, later, shipped, with_items


def opened(documents, phase=1, name="phase_1_a"):
    change = handoff.start_handoff(documents["memory"], phase, compression_id=name, now=NOW)
    return after(documents, change), change.result


def built(documents, record):
    given = handoff.unchanged_items(documents["memory"], record)
    return handoff.build_handoff(documents, record, given, revision=7, now=NOW)


def test_a_phase_has_its_own_items_earlier_ones_and_those_without_a_phase():
    documents = with_items(shipped(), "none")
    documents = with_items(documents, "earlier", phase=1)
    documents = with_items(documents, "own", phase=2)
    documents = with_items(documents, "later", phase=3)

    assert [each["content"] for each in handoff.items_up_to(documents["memory"], 2)] == [
        "none",
        "earlier",
        "own",
    ]


def test_an_open_handoff_records_a_digest_of_each_item():
    documents, record = opened(with_items(shipped(), "a b", "c"))

    assert record["total_tokens"] == 3
    assert record["items"] == {each["id"]: handoff.item_digest(each) for each in held(documents)}
    assert handoff.open_handoff(documents["memory"], 1) == record
    assert handoff.open_handoff(documents["memory"], 2) is None


def test_of_two_open_for_a_phase_the_newer_counts():
    documents, _ = opened(with_items(shipped(), "a"))
    documents, newer = opened(documents, name="phase_1_b")

    assert handoff.open_handoff(documents["memory"], 1) == newer


def test_changed_and_removed_items_are_no_longer_part_of_a_handoff():
    documents, record = opened(with_items(shipped(), "same", "reworded", "seen"))
    _, reworded, seen = held(documents)
    for new in (
        items.update(documents["memory"], reworded["id"], {"content": "anew"}, now=later(9), count=count),
        items.record_access(documents["memory"], [seen["id"]], now=later(9)),
    ):
        documents = after(documents, new)

    assert [each["content"] for each in handoff.unchanged_items(documents["memory"], record)] == [
        "same",
        "seen",
    ]
    assert handoff.unchanged_items(shipped()["memory"], record) == []


@pytest.mark.parametrize("changed", [{"phase": 2}, {"protected": True}])
def test_an_item_that_moved_or_was_protected_since_is_not_held(changed):
    documents, record = opened(with_items(shipped(), "moved", "same", phase=1))
    moved = held(documents)[0]["id"]
    documents = after(
        documents, items.update(documents["memory"], moved, {"metadata": changed}, now=later(9), count=count)
    )

    assert [each["content"] for each in handoff.unchanged_items(documents["memory"], record)] == ["same"]


def test_a_handoff_has_the_items_signals_and_limits_for_the_architect():
    documents, record = opened(with_items(shipped(), *["word " * 50] * 2))
    felt = emit(documents["pheromones"], "FOCUS", "payments", now=NOW, id="focus_1")
    bookkeeping = emit(documents["pheromones"], "INIT", "goal", now=NOW, id="init_1")
    documents = after(after(documents, felt), bookkeeping)

    given = built(documents, record)

    assert given["compression_id"] == "phase_1_a"
    assert (given["item_count"], given["total_tokens"], given["target_tokens"]) == (2, 100, 40)
    assert given["items"] == held(documents)
    assert given["counter"] == "estimate"
    assert given["revision"] == 7
    assert [(each["id"], each["effective_strength"]) for each in given["signals"]] == [("focus_1", 0.7)]


def test_constraints_and_marked_items_are_protected():
    documents = with_items(shipped(), "ordinary")
    documents = with_items(documents, "rule", type="constraint")
    documents = with_items(documents, "marked", protected=True)
    documents = with_items(documents, "both", type="constraint", protected=True)

    reported = [(each["content"], each["why"]) for each in handoff.protected_items(held(documents))]

    assert reported == [
        ("rule", "a constraint"),
        ("marked", "marked protected"),
        ("both", "marked protected"),
    ]


def test_a_sealed_handoff_is_whole_until_it_is_changed():
    documents, record = opened(with_items(shipped(), "note \ud800 \x00"))
    whole = handoff.seal(built(documents, record), instruct({}))

    assert handoff.require_intact(whole, where="x.json") == whole
    for changed in (
        {**whole, "phase": 2},
        {**whole, "items": []},
        {**whole, "mine": 1},
        {"checksum": "x"},
        [],
        None,
    ):
        with pytest.raises(CorruptDocument, match="was changed after it was written"):
            handoff.require_intact(changed, where="x.json")


def test_a_session_always_has_room_for_a_page():
    assert [handoff.session_room({"target_tokens": tokens}) for tokens in (0, 399, 400, 401)] == [
        400,
        400,
        400,
        401,
    ]
