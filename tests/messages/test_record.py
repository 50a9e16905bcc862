from collections import OrderedDict

from aether.messages.records import FORMATS, BadLine, Record, ignore_bad_line, put_bounded


def test_a_record_needs_no_more_than_its_kind():
    assert Record("user").text == ""
    assert dict(Record("call").arguments) == {}


def test_the_oldest_is_forgotten_first():
    known = OrderedDict()

    for n in range(5):
        put_bounded(known, n, n, most=3)

    assert list(known) == [2, 3, 4]


def test_bad_lines_may_be_ignored():
    assert ignore_bad_line(BadLine(1, "torn")) is None
    assert "claude_code" in FORMATS
