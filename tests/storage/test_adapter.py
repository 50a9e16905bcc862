import pytest

from aether.errors import InvalidInput
from aether.storage.adapter import message_lines, next_free_step, summary_file, transcript_file


def test_files_are_named_by_their_step_in_three_digits_at_least():
    assert transcript_file(0) == "transcript-pre-compact-000.jsonl"
    assert summary_file(12345) == "summary-12345.json"


@pytest.mark.parametrize("name", [transcript_file, summary_file])
def test_there_is_no_step_before_the_first(name):
    with pytest.raises(InvalidInput, match="-1 is not a step"):
        name(-1)


def test_the_next_step_is_after_the_last_of_either_kind():
    assert next_free_step([]) == 1
    assert next_free_step(["summary-007.json", "transcript-pre-compact-003.jsonl", "events.jsonl"]) == 8
    assert next_free_step(["summary-9.json", "summary-009.json.bak", "lock"]) == 1


def test_each_message_is_a_line():
    assert message_lines([{"b": "é\n"}, {"a": 1}]) == '{"b":"é\\n"}\n{"a":1}\n'.encode()
