from tests.effort import examples

"""Laws of summaries: they read back exactly, fit their room, lose nothing on the way, and never raise."""

import copy
import json

from hypothesis import assume, given
from hypothesis import strategies as st

from aether.compaction.facts import facts_of, fit_facts, merged_facts
from aether.compaction.shapes import Facts, Summary
from aether.compaction.summary import END, is_summary, parsed, rendered
from aether.messages.convert import read
from aether.messages.model import PROVIDER_FORMATS
from aether.messages.tool_calls import calls_of
from aether.text.model_faults import model_fault
from tests.laws.histories import broken, history
from tests.laws.summaries import facts, summaries, texts

wires = st.sampled_from(PROVIDER_FORMATS)
seeds = st.integers(0, 5_000)


def words(text):
    return len(text.split())


@given(summaries())
def test_a_summary_reads_back_exactly(summary):
    assert parsed(rendered(summary)) == summary


@given(summaries(), texts())
def test_what_says_more_than_a_summary_is_none(summary, more):
    assume(more.strip())

    assert parsed(f"{more}\n{rendered(summary)}") is None
    assert parsed(f"{rendered(summary)}\n{more}") is None


@given(texts())
def test_no_text_breaks_the_reader(text):
    parsed(text)
    parsed(f"<COMPACT-SUMMARY v1>\n{text}\n{END}")


@given(facts(), st.integers(1, 400))
def test_fitted_facts_fit_or_only_goals_constraints_and_a_pointer_are_left(found, most):
    kept, lost = fit_facts(found, count=len, most=most)

    assert len(rendered(Summary(1, kept, ""))) <= most or kept == Facts(
        goals=kept.goals, constraints=kept.constraints, lookups=found.lookups[-1:]
    )
    assert (kept == found) == (not lost)
    assert len(kept.goals) == len(found.goals)
    assert len(kept.constraints) == len(found.constraints)


@given(facts())
def test_merging_with_nothing_changes_nothing_more_the_second_time(found):
    once = merged_facts(Facts(), found)

    assert merged_facts(Facts(), once) == once
    assert merged_facts(once, Facts()) == once
    assert merged_facts(once, once).constraints == once.constraints


@given(facts(), facts())
def test_merging_never_loses_a_goal(older, newer):
    both = merged_facts(older, newer)

    assert set(both.goals) == {*older.goals, *newer.goals}
    assert both.goals[: len(set(older.goals))] == tuple(dict.fromkeys(older.goals))
    assert {file.path for file in both.files} == {file.path for file in (*older.files, *newer.files)}


@examples(60)
@given(seeds, wires, st.booleans())
def test_facts_of_any_history_stand_in_it_and_change_nothing(seed, wire, whole):
    raws = history(seed, wire) if whole else broken(seed, wire)
    messages = read(raws, wire)
    before = copy.deepcopy(raws)

    found = facts_of(messages, range(len(messages)))

    assert raws == before
    assert found == facts_of(messages, range(len(messages)))
    said = " ".join(" ".join(block.text for message in messages for block in message.blocks).split())
    spoken = (*found.goals, *found.requests, *found.constraints)
    plain = [" ".join(text.split()) for text in spoken if not text.startswith("Asked: ")]
    assert [text for text in plain if text not in said] == []
    assert [name for name in found.names if " ".join(name.split()) not in said] == []


@examples(60)
@given(seeds, wires)
def test_every_call_of_a_valid_history_finds_its_own_result(seed, wire):
    messages = read(history(seed, wire), wire)

    for call in calls_of(messages):
        if call.result is not None:
            assert call.at < call.answered_at
            assert call.result in messages[call.answered_at].blocks


@examples(15)
@given(seeds, st.integers(2, 6))
def test_goals_and_constraints_survive_twenty_rounds(seed, size):
    """Each round removes everything but the summary, whose text is all that the next one knows."""
    asked = ["Build the store for tickets. Never delete a ticket."]
    text = ""
    for nth in range(20):
        rules = [f"Never call service {nth}{digit} without a token." for digit in range(size)]
        asked += rules
        raws = [{"role": "assistant", "content": text}] if text else []
        raws += [{"role": "user", "content": asked[0]}] if not text else []
        raws += [{"role": "user", "content": f"Please look at part {nth} again. {rule}"} for rule in rules]
        raws += history(seed + nth, "plain", turns=2)
        messages = read(raws, "plain")
        before = [
            summary for message in messages if is_summary(message) and (summary := parsed(message.text))
        ]
        found = facts_of(messages, range(len(messages)))
        together = merged_facts(before[0].facts, found) if before else found
        kept, _ = fit_facts(together, count=words, most=400)
        text = rendered(Summary(nth + 1, kept, "Prose."))
    last = parsed(text).facts

    assert last.goals[0] == asked[0]
    assert set(asked[1:]) <= set(last.constraints)


@given(texts(), st.lists(texts(), max_size=3))
def test_any_text_is_judged(prose, said):
    fault = model_fault(prose, given=said, most_tokens=100, count=words)

    assert bool(fault) or prose.strip()
    assert json.dumps(fault)
