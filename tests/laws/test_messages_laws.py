"""Laws of groups, checks and repairs, over conversations of every provider: valid, broken, and senseless."""

from __future__ import annotations

import copy
import json
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aether.api.compact import Options, compact, preflight, undo_compaction
from aether.errors import AetherError
from aether.messages import convert
from aether.messages.content import encodable
from aether.messages.model import PROVIDER_FORMATS, groups, turns
from aether.messages.transcripts import convert_conversation, load_conversation
from aether.messages.validate import check, repair
from tests.effort import examples
from tests.laws.histories import Ending, broken_histories, histories, history, junk, seeds
from tests.tables import rows

DATA = Path(__file__).parents[2].parent / "shared" / "data"
# A fault matters in some providers and some places only: the usual 100 examples miss it now and then.
thoroughly = examples(400)
# Of a file of many conversations, so many are read.
MOST_OF_A_FILE = 6


def texts(messages):
    """What users and the assistant say, as a bag; white space at the ends is not said."""
    return Counter(
        block.text.strip()
        for message in messages
        if message.role in ("user", "assistant")
        for block in message.blocks
        if block.kind == "text" and block.text.strip()
    )


def strings(value):
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, dict):
        for below in value.values():
            yield from strings(below)
    elif isinstance(value, list):
        for below in value:
            yield from strings(below)


def same(one, other):
    """Whether two values are equal; NaN is equal to itself."""
    return repr(one) == repr(other)


def errors(messages, provider):
    """The errors that a repair can do something about: where nothing is left, nothing can be repaired."""
    return [
        found for found in check(messages, provider) if found.level == "error" and found.code != "no-messages"
    ]


@given(histories())
def test_a_valid_conversation_is_refused_for_nothing_and_left_alone(case):
    provider, raws = case
    messages = convert.read(raws, provider)

    repaired = repair(messages, provider)

    assert errors(messages, provider) == []
    assert repaired == (messages, [])


@given(histories())
def test_only_the_calls_at_the_very_end_may_lack_results(case):
    provider, raws = case

    found = groups(convert.read(raws, provider))

    assert not any(group.open for group in found[:-1])
    assert not any(group.kind == "orphan" for group in found) or provider == "plain"


@thoroughly
@given(broken_histories())
def test_after_a_repair_nothing_is_refused(case):
    provider, raws = case

    assert errors(repair(convert.read(raws, provider), provider).messages, provider) == []


@thoroughly
@given(broken_histories())
def test_repairing_twice_is_repairing_once(case):
    provider, raws = case
    once = repair(convert.read(raws, provider), provider).messages

    assert repair(once, provider) == (once, [])
    json.dumps([message.raw for message in once], ensure_ascii=False, allow_nan=False).encode()


@thoroughly
@given(broken_histories())
def test_a_repair_loses_and_invents_no_text_and_reports_each_change(case):
    provider, raws = case
    before = copy.deepcopy(raws)
    messages = convert.read(raws, provider)

    repaired = repair(messages, provider)

    assert same(raws, before)
    assert texts(convert.read(encodable(raws), provider)) <= texts(repaired.messages)
    assert texts(repaired.messages).keys() <= set(strings(encodable(raws)))
    assert bool(repaired.findings) == (not same(repaired.messages, messages))


@given(st.sampled_from(PROVIDER_FORMATS), junk())
@example("anthropic", [{"role": "assistant", "content": [{"type": "thinking"}]}])
@example("plain", [{"type": "function"}, {"role": "function", "content": "Done."}])
@example("plain", [{"role": "assistant", "toolCalls": [{"status": [], "result": 1}]}])
def test_whatever_it_is_it_can_be_read_grouped_checked_and_repaired(provider, raws):
    messages = convert.read(raws, provider)

    repaired = repair(messages, provider).messages

    assert errors(repaired, provider) == []
    assert repair(repaired, provider) == (repaired, [])
    require_a_partition(messages)


@given(st.one_of(histories(), broken_histories()))
def test_groups_are_a_partition_and_turns_are_one_of_the_groups(case):
    provider, raws = case

    require_a_partition(convert.read(raws, provider))


def require_a_partition(messages):
    found = groups(messages)
    members = [group.members for group in found]

    assert sorted(at for group in members for at in group) == list(range(len(messages)))
    assert members == sorted(members, key=lambda group: group[0])
    assert all(list(group) == sorted(group) for group in members)
    assert [at for turn in turns(messages, found) for at in turn] == list(range(len(found)))


# An answer in front of the first request is lost with its calls, so the request stays.
@given(histories("anthropic", "openai", "responses", "gemini"), st.sets(st.integers(0, 40)))
def test_whichever_groups_go_no_result_is_left_without_its_call(case, removed):
    provider, raws = case
    messages = convert.read(raws, provider)
    found = groups(messages)

    requests = [
        at
        for at, message in enumerate(messages)
        if message.role == "user" and any(block.kind == "text" for block in message.blocks)
    ]
    members = (at for number, group in enumerate(found) if number not in removed for at in group.members)
    kept = sorted({*requests[:1], *members})
    left = check([messages[at] for at in kept], provider)

    assert not {
        "orphan-result",
        "missing-result",
        "interleaved-result",
        "dangling-reasoning",
        "result-order",
    } & {one.code for one in left}


@given(seeds(), st.sampled_from(PROVIDER_FORMATS), st.sampled_from(Ending.__args__))
def test_a_history_is_the_same_each_time_and_ends_as_asked(seed, provider, ending):
    raws = history(seed, provider, ending=ending)

    assert json.dumps(raws) == json.dumps(history(seed, provider, ending=ending))
    open_at_the_end = {found.code for found in check(convert.read(raws, provider), provider)} & {
        "dangling-call"
    }
    assert bool(open_at_the_end) == (ending == "calls" and provider != "plain")


def conversations(path):
    """The first few conversations of a file; none where it holds no conversation."""
    try:
        first = load_conversation(path)
    except AetherError:
        return []
    more = min(first.others, MOST_OF_A_FILE - 1)
    return [first, *(load_conversation(path, nth=number) for number in range(1, more + 1))]


@pytest.mark.real_data
@pytest.mark.slow
@rows(("folder", "least"), [("claude_code", 20), ("codex", 5), ("hooks", 0), ("trajectories", 40)])
def test_real_sessions_are_grouped_checked_and_repaired(folder, least):
    if not (DATA / folder).is_dir():
        pytest.skip("needs the real transcripts beside the repository")
    seen = 0
    for path in sorted((DATA / folder).rglob("*.json*")):
        for read in conversations(path):
            for provider in {read.format, "anthropic", "openai", "responses", "gemini"}:
                messages = convert_conversation(read, provider)[0].messages
                assert errors(repair(messages, provider).messages, provider) == [], (
                    path.name,
                    provider,
                )
            require_a_partition(read.messages)
            seen += 1
    assert seen >= least


def plain_words(value):
    return " ".join("".join(char if char.isalnum() else " " for char in json.dumps(value)).split())


@examples(60)
@given(broken_histories(), st.sets(st.integers(0, 12), max_size=4))
def test_what_is_returned_to_be_sent_is_valid_and_has_all_protected_text(case, marked):
    """Whatever the mixture: halves of pairs, repeated ids, wrong values, lost keys."""
    provider, raws = case
    raws = [{**raw, "meta": {"protected": True}} if at in marked else raw for at, raw in enumerate(raws)]
    given = copy.deepcopy(raws)

    with tempfile.TemporaryDirectory() as place:
        record = Path(place) / ".compact"
        about = {"window": 10_000_000, "wire": provider, "options": Options(record=record)}
        sent = preflight("c", raws, **about)
        forced = compact("c", raws, **about)
        broken = preflight("d", raws, **about, repair=False)
        if forced.triggered:
            kept = [encodable(raw, lone=False) for raw in given]
            assert undo_compaction("c", home=record).messages == kept

    assert same(raws, given)
    assert all(one is other for one, other in zip(broken.messages, raws, strict=True))
    for done in (sent, forced):
        messages = convert.read([convert.bare(raw) for raw in done.messages], provider)
        if done.messages:
            assert errors(messages, provider) == []
        there = Counter(block.text.strip() for message in messages for block in message.blocks)
        whole = plain_words([message.raw for message in messages])
        for at in marked & set(range(len(raws))):
            for block in convert.provider(provider).message(raws[at]).blocks:
                if block.kind in ("text", "result") and block.text.strip():
                    assert there[block.text.strip()] or plain_words(block.text) in whole
    if errors(convert.read(list(map(convert.bare, raws)), provider), provider):
        assert sent.findings
    else:
        assert all(one is other for one, other in zip(sent.messages, raws, strict=True))
