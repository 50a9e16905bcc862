"""Each rung takes the oldest first, no more than is needed, and nothing that is protected."""

from __future__ import annotations

from aether.compaction import steps
from aether.compaction.partition import partition
from aether.compaction.policy import policy
from aether.compaction.shapes import Policy
from aether.compaction.steps import Draft
from aether.messages.convert import read
from aether.tokens.count import message_tokens
from tests.compaction.conversations import bash, conversation, model, tool, user

LONG = "\n".join(f"line {at} of the output" for at in range(400))


def count(text):
    return -(-len(text) // 4)


def draft_of(messages, policy=Policy(), *, overhead=0):  # noqa: B008 - a policy is a constant
    parts = partition(messages, policy)
    tokens = [message_tokens(message, count) for message in messages]
    return Draft(
        messages,
        parts,
        count,
        lambda at: f"line {at}",
        overhead,
        tokens,
        list(tokens),
        {},
        [True] * len(parts.groups),
        {},
        [],
    )


def loose_of(draft, *, recent=1, pairs=1):
    return steps.loose_groups(draft.parts, steps.held_groups(draft.parts, recent=recent, pairs=pairs))


def test_results_are_shortened_oldest_first_and_only_until_the_goal():
    draft = draft_of(conversation(user("Go."), *(bash("make", LONG) for _ in range(6))))
    goal = steps.used_tokens(draft) - 2_500

    steps.shorten_groups(draft, ("shorten_results",), loose_of(draft), goal=goal)

    assert sorted(draft.now) == [2, 4]
    assert steps.used_tokens(draft) <= goal
    assert steps.used_tokens(draft) == sum(
        message_tokens(draft.now.get(at, draft.messages[at]), count) for at in range(13)
    )
    assert draft.cuts[2, 0].pointer == "line 2"


def test_steps_are_taken_in_the_order_of_the_policy_and_others_are_not():
    draft = draft_of(
        conversation(user("Go."), tool("Write", LONG, content=LONG), bash("make"), model("Done."))
    )

    steps.shorten_groups(
        draft, ("summarise", "shorten_arguments", "shorten_results"), loose_of(draft), goal=1
    )

    assert list(draft.cuts) == [(1, 0), (2, 0)]
    assert sorted(draft.now) == [1, 2]


def test_kept_results_are_shortened_before_the_newest_and_only_by_a_policy_that_shortens():
    draft = draft_of(conversation(user("Go."), *(bash("make", LONG) for _ in range(3))))
    steps.shorten_kept_results(draft, ("reduce",), most=1, limit=1, share=100)
    assert draft.now == {}

    steps.shorten_kept_results(draft, ("shorten_results",), most=1, limit=1, share=1_000)

    assert sorted(draft.now) == [2, 4, 6]
    assert draft.tokens[2] < 300
    assert draft.tokens[4] < draft.tokens[6] <= 1_100


def test_what_is_protected_is_not_shortened():
    messages = conversation(user("Go."), bash("make", LONG), bash("make", LONG), model("Done."))
    messages[2].raw["meta"] = {"protected": True}
    draft = draft_of(messages)

    steps.shorten_groups(draft, ("shorten_results",), [0, 1, 2, 3], goal=1)
    steps.shorten_harder(draft, [0, 1, 2, 3], most=1)

    assert 2 not in draft.now
    assert 4 in draft.now


def thinking(text):
    return [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": LONG, "signature": "c2ln"},
                {"type": "text", "text": text},
            ],
        }
    ]


def test_reasoning_goes_but_not_that_of_the_turn_that_goes_on():
    draft = draft_of(
        conversation(user("Go."), thinking("One."), user("More."), thinking("Two."), model("Three."))
    )

    steps.shorten_groups(draft, ("drop_reasoning",), [0, 1, 2, 3, 4], goal=1)

    assert sorted(draft.now) == [1]


def thinking_call():
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    [call, result] = tool("Write", content=LONG)
    return [{**call, "content": [thought, *call["content"]]}, result]


def test_a_call_that_is_rewritten_loses_its_reasoning_and_one_of_the_turn_that_goes_on_is_not_rewritten():
    draft = draft_of(conversation(user("Go."), thinking_call(), user("More."), thinking_call(), bash("make")))

    steps.shorten_groups(draft, ("shorten_arguments",), [1, 3], goal=1)

    assert sorted(draft.now) == [1]
    assert [block["type"] for block in draft.now[1].raw["content"]] == ["tool_use"]


def test_cheap_steps_that_cannot_help_are_not_taken():
    draft = draft_of(
        conversation(
            user("Go."), *(model("word " * 300) for _ in range(9)), *(bash("make", LONG) for _ in range(3))
        )
    )
    loose = loose_of(draft)

    assert steps.cannot_reach(draft, policy("compact"), loose, goal=500)
    assert not steps.cannot_reach(draft, policy("window"), loose, goal=500)
    assert not steps.cannot_reach(draft, policy("compact"), loose, goal=steps.used_tokens(draft) - 100)


def test_explorations_go_oldest_run_first():
    looked = [tool("Read", LONG, file_path=f"{at}.py") for at in range(8)]
    draft = draft_of(
        conversation(user("Go."), *looked[:4], bash("make"), *looked[4:], bash("make"), bash("make"))
    )
    one_run = sum(draft.tokens[1:9])

    assert steps.fold_exploration(draft, loose_of(draft), goal=steps.used_tokens(draft) - 100)

    assert steps.used_tokens(draft) == sum(draft.tokens) - one_run


def test_explorations_that_are_not_enough_are_said_to_be_not():
    draft = draft_of(
        conversation(user("Go."), *(tool("Read", "x", file_path="a.py") for _ in range(4)), model(LONG))
    )

    assert not steps.fold_exploration(draft, loose_of(draft), goal=10)


def counts_after(draft, most, policy=Policy(), **more):  # noqa: B008 - a policy is a constant
    return steps.lower_keep_counts(draft, policy, most=most, **{"most_messages": 0, **more})


def pairs(number, words=100):
    return [
        part
        for at in range(number)
        for part in (user(f"question {at} " * words), bash("make", LONG), model(f"answer {at} " * words))
    ]


def test_keep_counts_are_lowered_one_at_a_time_turns_first():
    draft = draft_of(conversation(*pairs(12)))
    seen = []
    most = 10**9
    while True:
        found = counts_after(draft, most)
        if seen[-1:] == [found]:
            break
        seen.append(found)
        most = steps.used_tokens(draft) - 1

    assert seen == [(6, 4), (5, 4), (5, 3), (4, 3), (4, 2), (3, 2), (3, 1), (2, 1), (1, 1)]


def test_counts_that_need_no_lowering_are_those_of_the_policy_however_large():
    draft = draft_of(conversation(*pairs(3)))

    assert counts_after(draft, 10**9, Policy(keep_recent_turns=10**9, keep_tool_pairs=10**9)) == (
        10**9,
        10**9,
    )
    assert counts_after(draft, 1, Policy(keep_recent_turns=10**9, keep_tool_pairs=10**9)) == (1, 1)


def test_too_many_messages_lower_the_counts_too():
    draft = draft_of(conversation(*pairs(12)))

    recent, tools = counts_after(draft, 10**9, most_messages=12)

    assert sum(1 for _ in steps.kept_positions(draft)) <= 12
    assert (recent, tools) == (3, 2)


def test_what_is_said_between_the_calls_of_the_newest_turn_goes_oldest_first():
    draft = draft_of(
        conversation(
            user("Go."), *(model(f"step {at} " * 50) for at in range(6)), bash("make"), model("Done.")
        )
    )
    counts_after(draft, 10**9)

    steps.drop_remarks(draft, most=steps.used_tokens(draft) - 150, most_messages=0)

    assert [at for at, kept in enumerate(draft.kept) if not kept] == [1, 2]

    steps.drop_remarks(draft, most=10**9, most_messages=5)

    assert sum(1 for _ in steps.kept_positions(draft)) == 5
    assert draft.kept[0]
    assert draft.kept[-1]


def test_what_stays_is_shortened_only_as_far_as_needed():
    draft = draft_of(conversation(user("Go."), bash("make", LONG), bash("make", LONG)))
    most = steps.used_tokens(draft) - 400

    steps.shorten_harder(draft, [1, 2], most=most)

    assert sorted(draft.now) == [2]
    assert most - 150 < steps.used_tokens(draft) <= most


def test_at_last_little_more_than_the_markers_stay():
    draft = draft_of(conversation(user("Go."), tool("Write", LONG, content=LONG, note=LONG), model(LONG)))

    steps.shorten_harder(draft, [0, 1, 2], most=1)

    assert sorted(draft.now) == [1, 2, 3]
    assert steps.used_tokens(draft) < 350
    assert (1, 0) in draft.cuts
    assert draft.cuts[2, 0].tokens_before == count(LONG)


def test_reasoning_of_older_turns_goes_before_their_words():
    draft = draft_of(conversation(user("Go."), thinking("One."), user("More."), model("Two.")))

    steps.shorten_harder(draft, [1], most=steps.used_tokens(draft) - 10)

    assert draft.messages[1].text == draft.now[1].text == "One."


def test_what_a_person_said_is_not_shortened_here():
    draft = draft_of(conversation(user(LONG), model("Yes."), user(LONG), model("Yes."), user(LONG)))

    steps.shorten_harder(draft, [0, 1, 2, 3, 4], most=1)

    assert draft.now == {}


def test_the_opening_request_is_shortened_last_and_only_where_it_is_not_the_newest_or_protected():
    draft = draft_of(conversation(user(LONG), model("Yes."), user("More.")))
    most = steps.used_tokens(draft) - 300

    assert steps.shorten_opening(draft, most=most)
    assert steps.used_tokens(draft) <= most
    assert not steps.shorten_opening(draft, most=most)
    assert not steps.shorten_opening(draft_of(conversation(user(LONG))), most=1)
    assert not steps.shorten_opening(
        draft_of(conversation(user(LONG), user("x")), Policy(protected_roles=("user",))), most=1
    )
    assert not steps.shorten_opening(draft_of([]), most=-1)


def test_an_opening_picture_cannot_be_shortened():
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    draft = draft_of(
        read(
            [{"role": "user", "content": [picture]}, {"role": "user", "content": "What is it?"}], "anthropic"
        )
    )

    assert not steps.shorten_opening(draft, most=1)
