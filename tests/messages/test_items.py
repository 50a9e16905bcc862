from aether.messages.sources.chat import is_item, item_fault, item_records
from tests.tables import rows


def test_an_item_is_a_record_that_keeps_it_whole():
    item = {
        "content": "Use SQLite.",
        "type": "decision",
        "relevance_score": 0.9,
        "metadata": {"timestamp": "t"},
    }

    [record] = item_records([(4, item)])

    assert (record.kind, record.text, record.arguments, record.time, record.line) == (
        "item",
        "Use SQLite.",
        item,
        "t",
        4,
    )


def test_a_list_of_items_is_taken_apart():
    listed = [{"content": "a", "type": "x"}, {"content": "b", "type": "x"}]

    assert [record.part for record in item_records([(1, listed)])] == [0, 1]


@rows(
    "item",
    [
        7,
        {"content": "", "type": "x"},
        {"content": "a"},
        {"content": "a", "type": 3},
        {"content": "a", "type": "x", "relevance_score": "high"},
        {"content": "a", "type": "x", "relevance_score": True},
        {"content": "a", "type": "x", "relevance_score": 1.5},
        {"content": "a", "type": "x", "relevance_score": float("nan")},
    ],
)
def test_an_item_that_cannot_be_stored_is_reported_with_its_line(item):
    bad = []

    assert list(item_records([(9, item)], on_bad=bad.append)) == []
    assert bad[0].line == 9
    assert bad[0].reason == item_fault(item)


def test_messages_and_transcript_lines_are_no_items():
    assert not is_item({"content": "hi", "type": "x", "role": "user"})
    assert not is_item([])
