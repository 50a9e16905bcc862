import pytest

from aether.errors import CorruptDocument
from aether.memory import handoff
from tests.memory.states import NOW, after, instruct, shipped, with_items


def opened(documents, phase=1, name="phase_1_a"):
    change = handoff.start_handoff(documents["memory"], phase, compression_id=name, now=NOW)
    return after(documents, change), change.result


def built(documents, record):
    given = handoff.unchanged_items(documents["memory"], record)
    return handoff.build_handoff(documents, record, given, revision=7, now=NOW)


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
