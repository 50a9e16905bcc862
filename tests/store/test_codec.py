import math

import pytest

from aether.errors import CorruptDocument, InvalidInput
from aether.store import files
from tests.tables import rows


def nested(levels):
    """Return `levels` lists, one in the other."""
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


@rows(
    "value",
    [
        "\0", "\ud800", "a\udfffb", "\u2028\r\n", "/a~1b/-", "😀" * 3, "x" * 300_000, 2**63, -(2**64), 10**4000,
        0.1, 5e-324, 1.7976931348623157e308, {"": {"stamp": None}}, [], {}, None, True,
    ],
    ids=lambda value: type(value).__name__,  # not every one of them can be printed
)  # fmt: skip
@rows("size", [0, files.SMALL_CHARS])
def test_hostile_values_come_back_exactly(value, size):
    kept = [files.checked_json({"v": value}, where="test")]

    assert files.parse_json(files.json_line(kept), where="test") == kept
    assert files.parse_json(files.json_document(kept, size=size), where="test") == kept


def test_minus_zero_keeps_its_sign():
    for size in (0, files.SMALL_CHARS):
        assert (
            math.copysign(1, files.parse_json(files.json_document([-0.0], size=size), where="test")[0]) == -1
        )


@pytest.mark.parametrize("size", [0, files.SMALL_CHARS])
def test_a_split_surrogate_pair_is_refused_because_it_would_come_back_joined(size):
    with pytest.raises(InvalidInput, match="surrogate pair"):
        files.json_document(["\ud83d\ude00"], size=size)
    with pytest.raises(InvalidInput, match="surrogate pair"):
        files.json_line(["\ud83d\ude00"])


def test_a_line_is_one_line():
    assert files.json_line({"a": "b\nc\r\u2028"}).count(b"\n") == 0


@rows(
    ("value", "words"),
    [
        (math.nan, "nan is not JSON"),
        (math.inf, "inf is not JSON"),
        ({1: "a"}, "1 is not a text key"),
        ({"a": (1,)}, "is not JSON"),
        ({"a": {1, 2}}, "is not JSON"),
        (b"bytes", "is not JSON"),
        (10**5000, "cannot be read back"),
        (nested(files.MAX_DEPTH + 1), "nested more than 100 levels"),
        (nested(10_000), "nested more than 100 levels"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_give_back_is_refused(value, words):
    with pytest.raises(InvalidInput, match=words):
        files.checked_json(value, where="test")


def test_the_deepest_allowed_value_is_kept_by_both_encoders():
    value = files.checked_json(nested(files.MAX_DEPTH), where="test")

    assert files.json_document(value, size=0) == files.json_document(value, size=files.SMALL_CHARS)
    assert files.parse_json(files.json_line(value), where="test") == value


def test_the_levels_above_a_value_count_too():
    files.checked_json(nested(50), where="test", above=50)

    with pytest.raises(InvalidInput, match="nested"):
        files.checked_json(nested(51), where="test", above=50)


@rows(
    "data",
    [b"", b"{", b"[NaN]", b"[-Infinity]", b"\xff", b"[" * 100_000, b"[" + b"9" * 5000 + b"]", b"{} {}"],
    ids=len,
)
def test_what_is_not_json_is_corrupt_and_says_where(data):
    with pytest.raises(CorruptDocument, match=r"^memory\.json: not JSON"):
        files.parse_json(data, where="memory.json")


def test_the_place_of_the_mistake_is_named():
    with pytest.raises(CorruptDocument, match="line 2, column 3"):
        files.parse_json("{\n  x", where="memory.json")
