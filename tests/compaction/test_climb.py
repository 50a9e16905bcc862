"""The climb ends at the first rung that is enough, and always with a conversation that can be sent."""

from __future__ import annotations

import pytest

from aether.compaction.budget import bounds
from aether.compaction.facts import summary_message
from aether.compaction.fit import fit_conversation
from aether.compaction.partition import partition
from aether.compaction.policy import policy
from aether.compaction.shapes import Facts, Policy, Summary
from aether.errors import BudgetExceeded
from aether.messages.convert import read
from aether.tokens.count import message_tokens
from tests.compaction.conversations import bash, conversation, model, tool, user
from tests.tables import rows

LONG = "\n".join(f"line {at} of the output" for at in range(400))


def count(text):
    return -(-len(text) // 4)


def climb(messages, policy, *, window, overhead=0, pointer=lambda at: f"line {at}", **limits):
    tokens = [message_tokens(message, count) for message in messages]
    return fit_conversation(
        messages, partition(messages, policy), policy, count, limits=bounds(policy, window)._replace(**limits),
        overhead=overhead, tokens=tokens, pointer=pointer,
    )  # fmt: skip


def saved(found):
    return sum(cut.tokens_before - cut.tokens_after for cut in found.cuts)


def test_shortening_is_enough_where_it_is_enough():
    messages = conversation(user("Go."), *(bash("make", LONG) for _ in range(10)), model("Done."))

    found = climb(messages, policy("compact"), window=20_000)

    assert found.place == -1
    assert len(found.kept) == len(messages)
    assert found.steps == (f"shorten_results: {len(found.cuts)} results, {saved(found):,} tokens",)
    assert 10_000 < found.total <= 12_000
    assert [cut.at for cut in found.cuts] == sorted(found.changed)


def test_explorations_go_next_and_no_model_is_needed():
    looked = (tool("Read", "x" * 1_500, file_path=f"{at}.py") for at in range(20))
    messages = conversation(user("Go."), *looked, *(bash("make", LONG) for _ in range(4)), model("Done."))

    found = climb(messages, policy("compact"), window=18_000)

    assert found.folded
    assert found.place >= 0
    assert {fact.path for fact in found.facts.files} == {
        f"{(at - 1) // 2}.py" for at in set(range(1, 41)) - set(found.kept)
    }
    assert found.facts.lookups[0].endswith("messages in full: line 1 to 40")


def test_the_rest_goes_into_a_summary_that_has_its_share():
    messages = conversation(
        user("Go."),
        *(part for at in range(40) for part in (user(f"Please do {at}. " * 40), model("Done. " * 40))),
    )

    found = climb(messages, policy("compact"), window=8_000)

    assert not found.folded
    assert found.task.said
    assert found.task.max_tokens == found.prose_tokens > 0
    assert found.total + found.prose_tokens <= 8_000 * 0.6
    assert found.why[:3] == (1, 12, 0)


def test_a_session_of_one_turn_is_compacted_by_its_calls():
    messages = conversation(
        user("Go."), *(bash(f"make {at}", LONG[:2_000]) for at in range(200)), model("Done.")
    )

    found = climb(messages, policy("compact"), window=32_000)

    assert found.kept[0] == 0
    assert found.kept[-9:] == tuple(range(393, 402))
    assert 0.5 * 32_000 < found.total + found.prose_tokens <= 0.6 * 32_000


def test_of_what_no_count_holds_the_oldest_goes_and_the_newest_stays_as_far_as_the_goal():
    messages = conversation(
        user("Go."), *(bash(f"make {at}", f"built {at} " * 40) for at in range(300)), model("Done.")
    )

    found = climb(messages, policy("compact"), window=16_000)

    first = found.kept[1]
    assert found.kept == (0, *range(first, 602))
    assert found.why.middle > 20
    one_more = message_tokens(messages[first - 1], count) + message_tokens(messages[first - 2], count)
    room = int(0.25 * 9_600)
    assert 9_600 - one_more < found.total - summary_tokens(found) + room <= 9_600
    assert f"select: {found.why.middle // 2} newer groups kept, as there is room" in found.steps


def summary_tokens(found):
    return message_tokens(summary_message(Summary(found.version, found.facts, ""), "anthropic"), count)


def test_looking_around_among_what_stays_is_shortened_and_what_was_done_stays_whole():
    looked = [tool("Read", "x" * 3_000, file_path=f"{at}.py") for at in range(2)]
    done = [bash(f"make {at}", "y" * 3_000) for at in range(60)]
    messages = conversation(
        user("Go."), *(part for at in range(30) for part in (*looked, *done[at : at + 1])), model("Done.")
    )

    found = climb(messages, policy("compact"), window=20_000)

    middle = [at for at in found.kept[1:] if at < len(messages) - 9]
    reads = [at for at in middle if "xxx" in messages[at].blocks[0].text]
    builds = [at for at in middle if "yyy" in messages[at].blocks[0].text]
    assert len(reads) > 4
    assert set(reads) <= set(found.changed)
    assert set(builds[1:]).isdisjoint(found.changed)


def test_held_results_are_shortened_before_the_summary_is_stunted():
    decided = [
        model(f"We decided to use variant {at} because it is short. " + "word " * 80) for at in range(60)
    ]
    messages = conversation(
        user("Please port the parser. Never use floats."),
        *decided,
        *(user(f"Next, part {at}.") for at in range(6)),
        *(bash(f"make {at}", "z" * 8_000) for at in range(4)),
        model("Done."),
    )

    found = climb(messages, policy("compact"), window=9_000)

    assert len(found.facts.decisions) > 20
    assert found.facts.constraints == ()
    assert found.effective == policy("compact")
    assert found.changed
    assert len(messages) - 2 not in found.changed
    assert found.why.tool_pairs == 8


def test_a_compaction_is_a_worthwhile_step_below_the_trigger():
    messages = conversation(user("Go."))
    fired = []
    for at in range(40):
        messages += conversation(bash(f"make {at}", "w" * 3_200))
        if sum(message_tokens(one, count) for one in messages) >= 0.85 * 4_000:
            fired.append(at)
            found = climb(messages, policy("compact"), window=4_000)
            messages = [found.changed.get(at, messages[at]) for at in found.kept]
            assert sum(message_tokens(one, count) for one in messages) <= 0.75 * 4_000

    assert len(fired) <= 40 / 1.5


def test_an_earlier_summary_that_is_all_that_could_go_stays_as_it_is():
    summary = summary_message(Summary(3, Facts(goals=("Ship it.",)), "Done so far. " * 20), "anthropic")
    messages = [
        *conversation(user("Ship it.")),
        summary,
        *conversation(*(bash("make", LONG) for _ in range(4))),
    ]

    found = climb(messages, policy("compact"), window=12_000)

    assert found.place == -1
    assert 1 in found.kept


def test_a_summary_that_no_longer_fits_is_made_smaller():
    summary = summary_message(Summary(3, Facts(goals=("Ship it.",)), "Done so far. " * 900), "anthropic")
    messages = [*conversation(user("Ship it.")), summary, *conversation(bash("make", "ok"))]

    found = climb(messages, policy("compact"), window=3_000)

    assert (found.place, found.version) == (2, 4)
    assert found.facts.goals == ("Ship it.",)
    assert found.total + found.prose_tokens < 0.85 * 3_000


def test_two_summaries_become_one():
    one, two = (summary_message(Summary(at, Facts(names=(f"name_{at}",)), ""), "anthropic") for at in (1, 2))
    messages = [*conversation(user("Ship it.")), one, two, *conversation(bash("make", "ok"), model("Done."))]

    found = climb(messages, policy("compact"), window=100_000)

    assert found.version == 3
    assert found.facts.names == ("name_1", "name_2")
    assert {1, 2}.isdisjoint(found.kept)


def test_a_conversation_of_which_nothing_may_go_gets_no_summary():
    messages = conversation(user("Go."), bash("make", LONG))

    found = climb(messages, policy("compact"), window=2_500)

    assert found.place == -1
    assert found.total < 0.85 * 2_500
    assert found.steps == (f"shorten_results: 1 result, {saved(found):,} tokens",)


def test_the_newest_answer_is_shortened_only_to_fit_and_what_is_left_is_stalled():
    messages = conversation(user("Go."), bash("make", "x" * 36_000))

    found = climb(messages, policy("compact")._replace(reserve=500), window=10_000)

    assert not found.changed
    assert [finding.code for finding in found.findings] == ["stalled"]

    found = climb(messages, policy("compact")._replace(reserve=2_000), window=10_000)

    assert 7_000 < found.total <= 8_000


def test_the_opening_request_is_shortened_before_anything_is_refused():
    messages = conversation(
        user("Never use floats. " + "Ship it. " * 2_000),
        model("Yes."),
        user("And?"),
        model("Done."),
        user("Now?"),
    )

    found = climb(messages, policy("compact"), window=3_000)

    assert "tokens cut; full text: line 0]" in found.changed[0].text
    assert "opening-shortened" in [finding.code for finding in found.findings]
    assert found.facts.constraints == ("Never use floats.",)


def test_the_opening_request_is_shortened_also_where_nothing_goes():
    messages = conversation(user("Ship it. " * 2_000), user("Now?"))

    found = climb(messages, policy("compact"), window=3_000)

    assert found.place == -1
    assert found.total <= 1_500


def test_constraints_take_more_than_their_share_before_they_are_cut():
    rules = [
        user(f"Never touch the file number {at} of the vendor directory. " + "ok " * 40) for at in range(60)
    ]
    messages = conversation(
        user("Go."),
        *rules,
        *(part for at in range(9) for part in (user(f"And {at}? " * 60), model("Done. " * 60))),
    )

    found = climb(messages, policy("compact"), window=3_000)

    assert len(found.facts.constraints) == 60
    assert found.effective.keep_recent_turns < 6
    assert found.total <= 1_500


def test_facts_that_cannot_fit_go_at_last_and_that_is_said():
    rules = [user(f"Never touch the file number {at} of the vendor directory.") for at in range(400)]
    messages = conversation(user("Go."), *rules, user("word " * 560), model("Done."))

    found = climb(messages, policy("compact"), window=1_000)

    assert found.total <= 850
    told = [finding.message for finding in found.findings if finding.code == "facts-left-out"]
    assert told == [f"no room for 1 goal, {400 - len(found.facts.constraints)} constraints."]


def test_of_constraints_that_cannot_all_fit_the_newest_stay():
    rules = [user(f"Never touch the file number {at} of the vendor directory.") for at in range(100)]
    messages = conversation(user("Go."), *rules, user("word " * 480), model("Done."))

    found = climb(messages, policy("compact"), window=1_000)

    assert found.total <= 850
    assert found.facts.constraints[-1] == "Never touch the file number 99 of the vendor directory."
    assert len(found.facts.constraints) > 3


def test_a_policy_that_only_shortens_removes_nothing_and_may_fail():
    messages = conversation(user("Go."), *(bash("make", LONG) for _ in range(10)), model("Done."))
    only = Policy(steps=("shorten_results",))

    assert len(climb(messages, only, window=16_000).kept) == len(messages)
    with pytest.raises(BudgetExceeded):
        climb(messages, only, window=4_000)


def test_a_policy_that_removes_but_does_not_reduce_keeps_its_counts():
    messages = conversation(
        user("Go."), *(part for _ in range(30) for part in (user("Do it. " * 60), model("Done. " * 60)))
    )
    firm = Policy(steps=("summarise",))

    assert climb(messages, firm, window=6_000).effective == firm
    with pytest.raises(BudgetExceeded):
        climb(messages, firm, window=1_200)


def test_a_policy_without_prose_asks_nobody_and_gives_the_facts_all_the_room():
    messages = conversation(
        user("Go."),
        *(part for at in range(40) for part in (user(f"Please do {at}. " * 40), model("Done. " * 40))),
    )

    found = climb(messages, policy("prune-only"), window=8_000)

    assert found.task is None
    assert found.prose_tokens == 0
    assert found.facts.requests


def test_of_the_middle_only_few_messages_may_stay_where_their_number_counts():
    messages = conversation(
        user("Go."), *(part for at in range(40) for part in (user(f"Please do {at}."), model("Done.")))
    )

    found = climb(messages, policy("window")._replace(trigger_messages=20), window=8_000)

    assert len(found.kept) + 1 < 20
    assert found.why.middle == 0


def spoken(roles, protected):
    """Return a conversation of one letter per message; those at the protected positions are so."""
    names = {"s": "system", "u": "user", "a": "assistant"}
    raws = [{"role": names[role], "content": f"{at} " * 200} for at, role in enumerate(roles)]
    for at in protected:
        raws[at]["meta"] = {"protected": True}
    return read(raws, "openai")


@rows(
    ("roles", "protected", "kept", "place"),
    [
        ("suauauauauau", (), (0, 1, 11), 11),
        ("suauauauauau", (5,), (0, 1, 5, 11), 11),
        ("suauauauauua", (8,), (0, 1, 8, 10, 11), 10),
        ("suauauauauaa", (9, 10, 11), (0, 1, 9, 10, 11), 9),
        ("uauasa", (4, 5), (0, 2, 3, 4, 5), 2),
        ("aaua", (3,), (2, 3), 2),
    ],
)
def test_the_summary_stands_after_what_opens_and_is_protected(roles, protected, kept, place):
    found = climb(
        spoken(roles, protected), policy("compact")._replace(keep_recent_turns=1), window=100_000, goal=1
    )

    assert (found.kept, found.place) == (kept, place)


def test_the_summary_never_stands_between_a_call_and_its_result():
    call = {"id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    raws = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Yes. " * 200},
        {"role": "assistant", "content": None, "tool_calls": [call], "meta": {"protected": True}},
        {"role": "user", "content": "Faster!"},
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
    ]

    found = climb(
        read(raws, "openai"), policy("compact")._replace(keep_recent_turns=1), window=100_000, goal=1
    )

    assert (found.kept, found.place) == ((0, 2, 3, 4), 2)


def test_folding_leaves_the_summary_room_for_what_it_has_to_say():
    looked = (
        tool("Read", "x" * 1_500, file_path=f"src/some/deep/folder/of/the/project/{at}.py")
        for at in range(60)
    )
    messages = conversation(user("Go."), *looked, *(bash("make", LONG) for _ in range(4)), model("Done."))

    found = climb(messages, policy("compact"), window=36_000)

    assert found.folded
    assert not [one for one in found.findings if one.code == "facts-left-out"]
    assert len(found.facts.files) > 10
