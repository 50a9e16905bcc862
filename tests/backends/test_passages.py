import json

from hypothesis import given
from hypothesis import strategies as st

from aether.backends.chunks import split_task, task_tokens
from tests.backends import fakes


def test_what_fits_is_one_task_as_it_was():
    task = fakes.summary_task()

    assert split_task(task, most_tokens=1_000, count=len) == [task]


def test_no_messages_are_still_one_task():
    task = fakes.summary_task() | {"said": []}

    assert split_task(task, most_tokens=10, count=len) == [task]


@given(st.lists(st.text(max_size=300), max_size=6), st.integers(1, 300))
def test_every_text_goes_to_one_part_in_order_and_whole(texts, most):
    task = fakes.summary_task() | {"said": [fakes.said(at, text) for at, text in enumerate(texts)]}

    parts = split_task(task, most_tokens=most, count=len)

    pieces = [piece for part in parts for piece in part["said"]]
    assert [
        "".join(piece["text"] for piece in pieces if piece["at"] == at) for at in range(len(texts))
    ] == texts
    assert all(part["said"] for part in parts) or not texts


def test_a_part_is_no_larger_than_asked_where_a_frame_fits():
    task = fakes.summary_task(fakes.said(0, "word " * 400), fakes.said(1, "short"))

    parts = split_task(task, most_tokens=300, count=len)

    assert len(parts) > 5
    assert all(task_tokens(part, len) <= 300 for part in parts)
    assert task_tokens(task, len) == sum(len(json.dumps(said)) for said in task["said"])
