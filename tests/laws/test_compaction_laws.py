"""Laws of compaction and its summaries, over generated conversations of every provider format, policies and windows."""

from __future__ import annotations

import copy
import json
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aether.conversation.facts import merged_facts
from aether.conversation.partition import is_earlier_summary, partition
from aether.conversation.plan import apply, plan
from aether.conversation.policy import POLICIES, policy, validated
from aether.conversation.room import Sizes, fit_facts
from aether.conversation.shapes import Facts, Policy, Summary
from aether.conversation.summary import END, is_summary, parsed, rendered
from aether.errors import BudgetExceeded
from aether.messages.convert import bare, convert, read
from aether.messages.model import PROVIDER_FORMATS, groups
from aether.messages.tool_calls import calls_of
from aether.messages.validate import check
from aether.store.keys import STEPS
from aether.text.summary_checks import model_fault
from aether.tokens.count import message_tokens
from tests.conversation.conversations import facts_of
from tests.effort import examples
from tests.laws.histories import broken, history
from tests.laws.summaries import facts, summaries, texts
from tests.tables import rows

# A text of this many tokens, and a frame of a summary, stay whatever is done.
LEFT_OF_A_TEXT = 80
FRAME = 80


def count(text):
    return -(-len(text) // 4)


class Case(NamedTuple):
    """One conversation to compact."""

    wire: str
    messages: list
    policy: Policy
    window: int
    overhead: int
    force: bool
    drawn: str = ""
    """How the messages were made; they themselves are too long to be shown."""

    def __repr__(self):
        return f"Case({self.drawn}, {self.policy}, window={self.window}, overhead={self.overhead}, force={self.force})"

    def planned(self, **more):
        return plan(
            self.messages, self.policy, count, window=self.window, overhead=self.overhead,
            **{"force": self.force, **more},
        )  # fmt: skip

    def done(self, prose=None):
        return apply(self.planned(), prose)

    @property
    def tokens(self):
        return self.overhead + sum(message_tokens(one, count) for one in self.messages)


@st.composite
def policies(draw):
    """A valid policy: a named one with some of its fields drawn anew."""
    trigger = draw(st.floats(0.3, 1.0))
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=1, unique=True) | st.just(STEPS))
    base = policy(draw(st.sampled_from(sorted(POLICIES))))
    drawn = {
        "trigger": trigger,
        "target": trigger * draw(st.floats(0.2, 0.95)),
        "trigger_messages": draw(st.sampled_from([0, 0, 0, 5, 40])),
        "reserve": draw(st.integers(0, 3_000)),
        "keep_recent_turns": draw(st.integers(1, 8)),
        "keep_tool_pairs": draw(st.integers(1, 8)),
        "keep_middle": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "keep_requests": draw(st.booleans()),
        "min_reclaim": draw(st.sampled_from([0.0, 0.05, 0.5])),
        "summary_share": draw(st.floats(0.05, 0.6)),
        "steps": tuple(dict.fromkeys((*steps, "summarise", "reduce"))),
    }
    some = draw(st.sets(st.sampled_from(sorted(drawn))))
    changes = {field: value for field, value in drawn.items() if field in some}
    if {"trigger", "target"} & set(changes):
        changes |= {"trigger": drawn["trigger"], "target": drawn["target"]}
    return validated(base._replace(**changes))


@st.composite
def cases(draw, *, faults=0):
    """A conversation of any wire, some messages of it protected, with a window that it may or may not fit."""
    wire = draw(st.sampled_from(PROVIDER_FORMATS))
    shape = {
        "turns": draw(st.integers(1, 8)),
        "rounds": draw(st.sampled_from([1, 4])),
        "parallel": draw(st.integers(1, 3)),
        "tools": draw(st.sampled_from([0.0, 0.5, 0.9])),
        "interrupts": draw(st.sampled_from([0.0, 0.5])),
        "thinking": draw(st.sampled_from([0.0, 0.5])),
        "images": draw(st.sampled_from([0.0, 0.0, 0.1])),
        "words": draw(st.sampled_from([2, 8, 30])),
    }
    seed = draw(st.integers(0, 2**32))
    ending = draw(st.sampled_from([None, "user", "results", "assistant", "calls"]))
    if faults:
        raws = broken(seed, wire, faults=draw(st.integers(1, faults)), **shape)
    else:
        raws = history(seed, wire, ending=ending, **shape)
    for at in draw(st.sets(st.integers(0, max(0, len(raws) - 1)), max_size=2)) if raws else ():
        raws[at] = {**raws[at], "meta": {"protected": draw(st.sampled_from([True, 1, "true", "yes", False]))}}
    messages = read(raws, wire)
    used = sum(message_tokens(one, count) for one in messages)
    window = max(draw(st.sampled_from([200, 1_000])), int(used * draw(st.floats(0.05, 1.6))))
    overhead = draw(st.sampled_from([0, 0, window // 10]))
    drawn = f"history({seed}, {wire!r}, ending={ending!r}, faults={bool(faults)}, {shape}) of {len(raws)}"
    return Case(wire, messages, draw(policies()), window, overhead, draw(st.booleans()), drawn)


def tried(case, prose=None):
    """Return the case compacted, None where it cannot be made to fit."""
    try:
        return case.done(prose)
    except BudgetExceeded:
        return None


def least(case):
    """Return the tokens that no rung of the ladder takes away, and a little more."""
    parts = partition(case.messages, case.policy)
    pair = [at for at in range(len(parts.groups)) if parts.pair[at] == 0]
    held = {at for group in {*parts.pinned, *pair} for at in parts.groups[group].members}
    return case.overhead + FRAME + sum(floor(case, parts, at) for at in held)


def floor(case, parts, at):
    message = case.messages[at]
    tokens = message_tokens(message, count)
    if at in parts.protected or at in (parts.opening, parts.newest):
        return tokens
    kinds = ("result", "call", "text") if message.role == "assistant" else ("result",)
    able = (count(block.text) for block in message.blocks if block.kind in kinds and block.at)
    return tokens - sum(max(0, some - LEFT_OF_A_TEXT) for some in able)


@given(cases())
def test_a_result_fits_its_limit_by_a_fresh_count(case):
    result = tried(case)

    if result and result.triggered:
        fresh = case.overhead + sum(message_tokens(message, count) for message in result.messages)
        assert fresh == result.tokens_after <= result.limit < case.window + 1


@given(cases())
def test_a_conversation_is_refused_only_if_its_pinned_messages_are_too_large(case):
    case = case._replace(policy=case.policy._replace(steps=STEPS))

    if tried(case) is None:
        assert least(case) > limit_of(case)


def limit_of(case):
    reserve = case.policy.reserve
    return case.window - (reserve if reserve <= case.window / 2 else int(0.15 * case.window))


@given(cases())
def test_nothing_is_done_where_no_trigger_fires(case):
    case = case._replace(window=10 * max(1_000, case.tokens), force=False)
    case = case._replace(policy=case.policy._replace(trigger=0.9, target=0.5, trigger_messages=0))

    result = case.done()

    assert not result.triggered
    assert all(one is other for one, other in zip(result.messages, case.messages, strict=True))


@given(cases())
def test_what_is_protected_comes_through_as_it_is_and_in_order(case):
    result = tried(case)

    if result and result.triggered:
        flagged = [at for at, one in enumerate(case.messages) if one.raw.get("meta", {}).get("protected")]
        system = [at for at, one in enumerate(case.messages) if one.role == "system"]
        there = [place for place in result.places if place is not None]
        assert set(flagged) | set(system) <= set(result.protected) <= set(there)
        assert there == sorted(there)
        by_place = dict(zip(result.places, result.messages, strict=True))
        assert all(by_place[at].raw is case.messages[at].raw for at in result.protected)


@given(cases())
def test_the_opening_request_and_the_newest_message_of_the_user_stay(case):
    result = tried(case)

    if result and result.triggered:
        users = [
            at
            for at, one in enumerate(case.messages)
            if one.role == "user" and any(block.kind in ("text", "media") for block in one.blocks)
        ]
        assert {*users[:1], *users[-1:]} <= set(result.places)
        assert case.messages[users[-1]].text == result.messages[result.places.index(users[-1])].text


@given(cases())
def test_what_a_provider_takes_it_takes_afterwards(case):
    sent = [bare(one.raw) for one in case.messages]
    if any(found.level == "error" for found in check(read(sent, case.wire), case.wire)):
        return

    result = tried(case)

    if result:
        after = [bare(one.raw) for one in result.messages]
        assert [one for one in check(read(after, case.wire), case.wire) if one.level == "error"] == []


@given(cases(faults=6))
def test_of_a_broken_conversation_no_group_is_torn(case):
    result = tried(case)

    if result and result.triggered:
        stayed = set(result.places)
        for group in groups(case.messages):
            assert stayed.issuperset(group.members) or stayed.isdisjoint(group.members)


@given(cases())
def test_every_message_is_kept_once_or_removed(case):
    result = tried(case)

    if result:
        there = [place for place in result.places if place is not None]
        assert len(set(there)) == len(there)
        assert set(there) <= set(range(len(case.messages)))
        changed = {cut.at for cut in result.cuts}
        for place, message in zip(result.places, result.messages, strict=True):
            if place is not None and place not in changed:
                thinks = any(block.kind == "reasoning" for block in case.messages[place].blocks)
                assert thinks or message is case.messages[place]
        assert (summaries_in(result) == 1) == (None in result.places)


def summaries_in(result):
    return sum(map(is_earlier_summary, result.messages))


@given(
    cases(),
    st.sampled_from([None, "", "Done so far.", "A sentence. " * 2_000, "## Files\n- x\n</COMPACT-SUMMARY>"]),
)
def test_whatever_a_summariser_says_the_result_fits(case, prose):
    result = tried(case, prose)

    if result and result.triggered:
        assert result.tokens_after <= result.limit


@given(cases())
def test_the_same_input_gives_the_same_output_and_is_not_changed(case):
    raws = copy.deepcopy([message.raw for message in case.messages])

    first, second = tried(case), tried(case)

    assert first == second
    assert json.dumps([message.raw for message in case.messages]) == json.dumps(raws)


@given(cases())
def test_compacting_what_was_compacted_changes_nothing_unless_it_is_still_too_much(case):
    case = case._replace(force=False)
    result = tried(case)

    if result and result.triggered and "stalled" not in [one.code for one in result.findings]:
        again = tried(case._replace(messages=list(result.messages)))
        assert not again.triggered
        assert again.messages == result.messages


@given(cases())
def test_what_has_not_grown_is_not_compacted_again(case):
    case = case._replace(force=False, policy=case.policy._replace(min_progress=0.05))
    result = tried(case)

    if result and result.triggered:
        again = case._replace(messages=list(result.messages))
        assert not again.planned(last_tokens=result.tokens_after).triggered


@given(cases(), st.integers(0, 2**32))
@examples(50)
def test_a_summary_is_handed_on_and_never_read_as_conversation(case, seed):
    case = case._replace(force=True)
    first = tried(case, "The flux capacitor needs 1.21 gigawatts.")

    if first and first.summary:
        more = [
            raw for raw in history(seed, case.wire, turns=8) if raw.get("role") not in ("system", "developer")
        ]
        grown = case._replace(messages=[*first.messages, *read(more, case.wire)], window=100_000)
        planned = grown.planned()
        at = first.places.index(None)
        said = [one for one in planned.task.said if one.at == at] if planned.task else []
        assert said == []
        if planned.place >= 0:
            assert planned.version == first.summary.version + 1
            second = apply(planned, None)
            assert set(first.summary.facts.constraints) <= set(second.summary.facts.constraints)
            assert summaries_in(second) == 1


@given(cases())
def test_equal_messages_are_not_merged(case):
    twin = case.messages[-1]
    if any(block.kind in ("call", "result") for block in twin.blocks):
        return
    case = case._replace(messages=[*case.messages, twin, twin])

    result = tried(case)

    if result and result.triggered:
        parts = partition(case.messages, case.policy)
        same = [at for at, one in enumerate(case.messages) if one is twin]
        stayed = [at for at in same if any(at in parts.groups[pin].members for pin in parts.pinned)]
        assert set(stayed) <= set(result.places)


def steady_call(at, size):
    """Return one call and its result of so many characters, as OpenAI spells them."""
    call = {"id": f"c{at}", "type": "function", "function": {"name": "run", "arguments": f'{{"at": {at}}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{at}", "content": f"{at} " + "x" * size},
    ]


@given(st.sampled_from(PROVIDER_FORMATS), st.floats(0.03, 0.2), st.integers(2_000, 12_000))
@examples(25)
def test_a_steady_stream_of_calls_is_not_compacted_at_every_call(wire, share, window):
    raws = [{"role": "user", "content": "Go."}]
    messages = convert(read(raws, "openai"), wire).messages
    # A reserve of up to half of a small window would make the share of a call twice what it is.
    whole = policy("compact")._replace(reserve=0)
    fired = []
    for at in range(60):
        call = read(steady_call(at, int(4 * share * window)), "openai")
        messages = [*messages, *convert(call, wire).messages]
        result = Case(wire, messages, whole, window, 0, force=False).done()
        messages = list(result.messages)
        if result.triggered:
            fired.append(at)

    assert fired
    # Between two of them there is room for a tenth of the window, or for one call where that is larger.
    assert len(fired) <= 2 + 60 / max(1.5, 0.1 / share)


@rows("wire", PROVIDER_FORMATS)
@pytest.mark.parametrize(
    ("named", "seeds"),
    [
        ("compact", 1),
        *(pytest.param(name, 4, marks=pytest.mark.slow) for name in ("compact", "window", "prune-only")),
    ],
)
def test_long_conversations_stay_valid_through_several_compactions(wire, named, seeds):
    for seed in range(seeds):
        messages = []
        for part in range(3):
            more = history(seed * 10 + part, wire, turns=12, rounds=4, words=8, images=0)
            messages += read(
                [raw for raw in more if not part or raw.get("role") not in ("system", "developer")], wire
            )
            case = Case(wire, messages, policy(named), 2_000 + 2_000 * seed, 0, force=False)
            result = case.done()
            raws = [bare(one.raw) for one in result.messages]
            found = [one for one in check(read(raws, wire), wire) if one.level == "error"]
            assert [one for one in found if one.code != "repeated-id"] == []
            messages = read([one.raw for one in result.messages], wire)


# Laws of summaries: they read back exactly, fit their room, lose nothing on the way, and never raise.
wires = st.sampled_from(PROVIDER_FORMATS)
seeds = st.integers(0, 5_000)


def words(text):
    return len(text.split())


@given(summaries())
def test_a_summary_reads_back_exactly(summary):
    assert parsed(rendered(summary)) == summary


@given(summaries(), texts())
def test_text_beside_a_summary_makes_it_invalid(summary, more):
    assume(more.strip())

    assert parsed(f"{more}\n{rendered(summary)}") is None
    assert parsed(f"{rendered(summary)}\n{more}") is None


@given(texts())
def test_no_text_breaks_the_reader(text):
    parsed(text)
    parsed(f"<COMPACT-SUMMARY v1>\n{text}\n{END}")


@given(facts(), st.integers(1, 400))
def test_fitted_facts_fit_or_only_goals_constraints_and_a_pointer_are_left(found, most):
    kept, lost = fit_facts(found, sizes=Sizes(len), most=most)

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
    paths = {file.path for file in both.files}
    for given_path in {file.path for file in (*older.files, *newer.files)}:  # once under its two paths
        assert given_path in paths or any(
            path.endswith(f"/{given_path.removeprefix('./')}") for path in paths
        )


@examples(60)
@given(seeds, wires, st.booleans())
def test_facts_of_any_history_are_verbatim_and_change_nothing(seed, wire, whole):
    raws = history(seed, wire) if whole else broken(seed, wire)
    messages = read(raws, wire)
    before = copy.deepcopy(raws)

    found = facts_of(messages, range(len(messages)))

    assert raws == before
    assert found == facts_of(messages, range(len(messages)))
    said = " ".join(" ".join(block.text for message in messages for block in message.blocks).split())
    spoken = (*found.goals, *found.current, *found.requests, *found.state, *found.earlier)
    whole = [text for text in spoken if not text.startswith(("Asked: ", "Refused "))]
    plain = [" ".join(part.split()) for text in whole for part in text.split(" […] ")]
    assert [text for text in plain if text not in said] == []
    assert [name for name in found.names if " ".join(name.split()) not in said] == []


@examples(60)
@given(seeds, wires)
def test_every_call_of_a_valid_history_finds_its_own_result(seed, wire):
    messages = read(history(seed, wire), wire)

    for call in calls_of(messages):
        if call.result is not None:
            assert any(call.result in message.blocks for message in messages[call.at + 1 :])


@examples(15)
@given(seeds, st.integers(2, 6))
def test_the_opening_request_and_rules_of_older_summaries_survive_twenty_rounds(seed, size):
    """Each round removes everything but the summary, whose text is all that the next one knows."""
    opening = "Build the store for tickets. Never delete a ticket."
    rules = tuple(f"Never call service {digit} without a token." for digit in range(size))
    text = rendered(Summary(0, Facts(goals=(opening,), constraints=rules), ""))
    for nth in range(20):
        raws = [{"role": "assistant", "content": text}]
        raws += [{"role": "user", "content": f"Please look at part {nth}{at} again."} for at in range(size)]
        raws += history(seed + nth, "plain", turns=2)
        messages = read(raws, "plain")
        before = [
            summary for message in messages if is_summary(message) and (summary := parsed(message.text))
        ]
        found = facts_of(messages, range(len(messages)))
        together = merged_facts(before[0].facts, found) if before else found
        kept, _ = fit_facts(together, sizes=Sizes(words), most=400)
        text = rendered(Summary(nth + 1, kept, "Prose."))
    last = parsed(text).facts

    assert last.goals == (opening,)
    assert last.constraints == rules


@given(texts(), st.lists(texts(), max_size=3))
def test_any_text_is_judged(prose, said):
    fault = model_fault(prose, given=said, most_tokens=100, count=words)

    assert bool(fault) or prose.strip()
    assert json.dumps(fault)
