"""Laws of prompt recall: bounded, of this memory, and never treated as a person's words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aether.memory.layers import Record
from aether.search.prompt_match import MOST_MATCHES, PASSAGE_CHARS, match_prompt, parse_prompt
from aether.text.cleaning import clean
from aether.text.tags import memory_block

WORDS = st.sampled_from(
    "stripe webhook backoff the is retries parse_header deploy.py </aether-memory> <aether-memory> because we\n of ENG-221 . fetchUser".split(" ")
)  # fmt: skip


TEXTS = st.one_of(st.lists(WORDS, max_size=30).map(" ".join), st.text(max_size=60))


TYPES = st.sampled_from(["decision", "constraint", "outcome", "code_change", "command"])


MEMORIES = st.lists(st.tuples(TEXTS, TYPES), max_size=12).map(
    lambda found: [Record(f"m{nth}", "archive", kind, "", text, 1, {}) for nth, (text, kind) in enumerate(found)]
)  # fmt: skip


@given(TEXTS, MEMORIES)
def test_matches_are_few_of_this_memory_and_repeatable(prompt, memory):
    asked = parse_prompt(prompt)
    found = match_prompt(asked, memory) if asked else []

    assert len(found) <= MOST_MATCHES
    assert all(one.record in memory and len(one.passage) <= PASSAGE_CHARS for one in found)
    assert len({one.record.id for one in found}) == len(found)
    assert (match_prompt(asked, memory) if asked else []) == found


@given(TEXTS, MEMORIES)
def test_entries_left_out_never_match(prompt, memory):
    asked = parse_prompt(prompt)
    first = match_prompt(asked, memory) if asked else []
    out = {one.record.id for one in first}

    assert not asked or not out & {one.record.id for one in match_prompt(asked, memory, leave_out=out)}


@given(st.lists(TEXTS, min_size=1, max_size=8), st.text(max_size=20))
def test_a_block_is_never_taken_for_something_that_was_said(lines, occasion):
    assert clean(memory_block(lines, occasion=occasion, at="2026-03-01")) == ""
