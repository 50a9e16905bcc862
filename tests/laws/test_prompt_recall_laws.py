"""Laws of prompt recall: bounded, of this memory, and never treated as a person's words."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from aether.memory.layers import Record
from aether.search import reminders as prompt_match
from aether.search.reminders import MOST_MATCHES, PASSAGE_CHARS, match_prompt, parse_prompt
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


# Forms that share few letters with their stem, or none, and words beside them, in sentences that all name one file.
FORMS = "tying tie hoping hope using use copies copy flies fly bought buy don't".split()
ANIMALS = "zebra quagga tapir ocelot merlin osprey kestrel axolotl heron walrus".split()
SENTENCES = st.tuples(
    st.lists(st.sampled_from(FORMS), min_size=1, max_size=3), st.lists(st.sampled_from(ANIMALS), min_size=4, unique=True)
).map(lambda said: f"The {' '.join(said[0] + said[1])} in deploy.py.")  # fmt: skip


@example(
    ["tie", "use"],
    ["The copy using quagga heron ocelot in deploy.py.", "The tying osprey tapir merlin in deploy.py."],
)
@given(st.lists(st.sampled_from(FORMS), min_size=2, max_size=5), st.lists(SENTENCES, min_size=2, max_size=3))
def test_what_is_not_cut_into_words_is_no_better_match(said, memory):
    asked = parse_prompt(f"Which {' '.join(said)} in deploy.py?")
    records = [Record(f"m{nth}", "archive", "decision", "", text, 1, {}) for nth, text in enumerate(memory)]
    most = prompt_match._opening
    try:
        prompt_match._opening = lambda _: ""  # each passage may have every word
        whole = match_prompt(asked, records)
    finally:
        prompt_match._opening = most

    assert match_prompt(asked, records) == whole


@given(st.lists(TEXTS, min_size=1, max_size=8), st.text(max_size=20))
def test_a_block_is_never_taken_for_something_that_was_said(lines, occasion):
    assert clean(memory_block(lines, occasion=occasion, at="2026-03-01")) == ""
