import pytest

from aether.errors import InvalidInput
from aether.memory.colony import MAX_PHASE, check_phase, phase_number
from tests.tables import rows

NOT_PHASES = ["../x", "a/b", "con", "", "x" * 300, "1", -1, 1.0, 1.5, True, False, None, [], MAX_PHASE + 1]


@rows("phase", [0, 1, 42, MAX_PHASE])
def test_whole_numbers_from_zero_are_phases(phase):
    assert check_phase(phase) == phase


@rows("phase", NOT_PHASES)
def test_anything_else_is_refused_with_its_value(phase):
    with pytest.raises(InvalidInput, match=r"is not a phase. Use a whole number"):
        check_phase(phase)


@rows(
    ("value", "expected"),
    [(3, 3), ("3", 3), ("03", 3), ("-3", None), ("³", None), ("9" * 400, None), (3.0, None), (None, None)],
)
def test_documents_may_hold_phases_as_text(value, expected):
    assert phase_number(value) == expected
