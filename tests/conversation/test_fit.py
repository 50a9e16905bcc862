"""A conversation is fitted by the first step that is enough, older groups stay as there is room, and each step is reported."""

from __future__ import annotations

import pytest

from aether.conversation import draft as drafts
from aether.conversation import fit
from aether.conversation.fit import PROSE_SHARE, drop_misplaced, fit_conversation
from aether.conversation.partition import partition
from aether.conversation.plan import plan
from aether.conversation.policy import bounds, policy
from aether.conversation.readings import Readings
from aether.conversation.room import summary_message
from aether.conversation.shapes import Facts, Plan, Policy, Summary
from aether.conversation.summary import rendered
from aether.errors import BudgetExceeded
from aether.messages.convert import read
from aether.tokens.count import message_tokens
from tests.conversation.conversations import bash, conversation, model, tool, user
from tests.conversation.test_steps import LONG_OUTPUT, draft_of, thinking
from tests.tables import rows


def count(text):
    return -(-len(text) // 4)


def fit_in(messages, policy, *, window, overhead=0, pointer=lambda at: f"line {at}", **limits):
    tokens = tuple(message_tokens(message, count) for message in messages)
    allowed = bounds(policy, window)._replace(**limits)
    idle = Plan(tuple(messages), policy, policy, allowed, overhead, False, "", 0, tokens, count)
    return fit_conversation(
        idle, partition(messages, policy), limits=allowed, pointer=pointer, readings=Readings()
    )


def saved(found):
    return sum(cut.tokens_before - cut.tokens_after for cut in found.cuts)


def test_nothing_is_removed_if_shortening_is_enough():
    messages = conversation(user("Go."), *(bash("make", LONG_OUTPUT) for _ in range(10)), model("Done."))

    found = fit_in(messages, policy("compact"), window=20_000)

    assert found.place == -1
    assert len(found.kept) == len(messages)
    assert found.steps == (f"shorten_results: {len(found.cuts)} results, {saved(found):,} tokens",)
    assert 10_000 < found.total <= 12_000
    assert [cut.at for cut in found.cuts] == sorted(found.changed)


def test_explorations_are_dropped_next_and_no_model_is_needed():
    looked = (tool("Read", "x" * 1_500, file_path=f"{at}.py") for at in range(20))
    messages = conversation(
        user("Go."), *looked, *(bash("make", LONG_OUTPUT) for _ in range(4)), model("Done.")
    )

    found = fit_in(messages, policy("compact"), window=18_000)

    assert not found.asks
    assert found.place >= 0
    assert {fact.path for fact in found.facts.files} == {
        f"{(at - 1) // 2}.py" for at in set(range(1, 41)) - set(found.kept)
    }
    assert found.facts.lookups[0].endswith("messages in full: line 1 to 40")


def test_the_rest_is_replaced_by_a_summary_that_has_its_share():
    messages = conversation(
        user("Go."),
        *(part for at in range(40) for part in (user(f"Please do {at}. " * 40), model("Done. " * 40))),
    )

    found = fit_in(messages, policy("compact"), window=8_000)

    assert found.asks
    assert found.task.said
    assert found.task.max_tokens == found.prose_tokens > 0
    assert found.total + found.prose_tokens <= 8_000 * 0.6
    assert found.why[:3] == (1, 12, 0)


def test_a_session_of_one_turn_is_compacted_by_its_calls():
    messages = conversation(
        user("Go."), *(bash(f"make {at}", LONG_OUTPUT[:2_000]) for at in range(200)), model("Done.")
    )

    found = fit_in(messages, policy("compact"), window=32_000)

    assert found.kept[0] == 0
    assert found.kept[-9:] == tuple(range(393, 402))
    assert 0.5 * 32_000 < found.total + found.prose_tokens <= 0.6 * 32_000


def test_of_loose_groups_the_oldest_are_removed_and_the_newest_stay_up_to_the_goal():
    messages = conversation(
        user("Go."), *(bash(f"make {at}", f"built {at} " * 40) for at in range(300)), model("Done.")
    )

    found = fit_in(messages, policy("compact"), window=16_000)

    first = found.kept[1]
    assert found.kept == (0, *range(first, 602))
    assert found.why.middle > 20
    one_more = message_tokens(messages[first - 1], count) + message_tokens(messages[first - 2], count)
    prose = int(PROSE_SHARE * 9_600)
    assert 9_600 - one_more < found.total + prose <= 9_600
    assert f"select: {found.why.middle // 2} newer groups kept, as there is room" in found.steps


def test_kept_exploration_is_shortened_and_kept_work_stays_whole():
    looked = [tool("Read", "x" * 3_000, file_path=f"{at}.py") for at in range(2)]
    done = [bash(f"make {at}", "y" * 3_000) for at in range(60)]
    messages = conversation(
        user("Go."), *(part for at in range(30) for part in (*looked, *done[at : at + 1])), model("Done.")
    )

    found = fit_in(messages, policy("compact"), window=20_000)

    middle = [at for at in found.kept[1:] if at < len(messages) - 9]
    reads = [at for at in middle if "xxx" in messages[at].blocks[0].text]
    builds = [at for at in middle if "yyy" in messages[at].blocks[0].text]
    assert len(reads) > 4
    assert set(reads) <= set(found.changed)
    assert set(builds[1:]).isdisjoint(found.changed)


def test_held_results_are_shortened_before_the_summary_loses_facts():
    decided = [
        user(f"Use variant {at} of the parser, because it is short. " + "word " * 80) for at in range(60)
    ]
    messages = conversation(
        user("Please port the parser. Never use floats."),
        *decided,
        *(user(f"Next, part {at}.") for at in range(6)),
        *(bash(f"make {at}", "z" * 8_000) for at in range(4)),
        model("Done."),
    )

    found = fit_in(messages, policy("compact"), window=9_000)

    assert len(found.facts.requests) > 10
    assert found.effective.keep_recent_turns == policy("compact").keep_recent_turns
    assert found.changed
    assert len(messages) - 2 not in found.changed
    assert found.why.tool_pairs == 8


def test_an_earlier_summary_stays_if_nothing_else_could_be_removed():
    summary = summary_message(Summary(3, Facts(goals=("Ship it.",)), "Done so far. " * 20), "anthropic")
    messages = [
        *conversation(user("Ship it.")),
        summary,
        *conversation(*(bash("make", LONG_OUTPUT) for _ in range(4))),
    ]

    found = fit_in(messages, policy("compact"), window=12_000)

    assert found.place == -1
    assert 1 in found.kept


def test_a_summary_that_no_longer_fits_is_made_smaller():
    summary = summary_message(Summary(3, Facts(goals=("Ship it.",)), "Done so far. " * 900), "anthropic")
    messages = [*conversation(user("Ship it.")), summary, *conversation(bash("make", "ok"))]

    found = fit_in(messages, policy("compact"), window=3_000)

    assert (found.place, found.version) == (2, 4)
    assert found.facts.goals == ("Ship it.",)
    assert found.total + found.prose_tokens < 0.85 * 3_000


def test_two_summaries_become_one():
    one, two = (summary_message(Summary(at, Facts(names=(f"name_{at}",)), ""), "anthropic") for at in (1, 2))
    messages = [*conversation(user("Ship it.")), one, two, *conversation(bash("make", "ok"), model("Done."))]

    found = fit_in(messages, policy("compact"), window=100_000)

    assert found.version == 3
    assert found.facts.names == ("name_1", "name_2")
    assert {1, 2}.isdisjoint(found.kept)


def test_the_newest_answer_is_shortened_only_to_fit_and_what_is_left_is_stalled():
    messages = conversation(user("Go."), bash("make", "x" * 36_000))

    found = fit_in(messages, policy("compact")._replace(reserve=500), window=10_000)

    assert not found.changed
    assert [finding.code for finding in found.findings] == ["stalled"]

    found = fit_in(messages, policy("compact")._replace(reserve=2_000), window=10_000)

    assert 7_000 < found.total <= 8_000


def test_the_opening_request_is_shortened_before_anything_is_refused():
    messages = conversation(
        user("Never use floats. " + "Ship it. " * 2_000),
        model("Yes."),
        user("And?"),
        model("Done."),
        user("Now?"),
    )

    found = fit_in(messages, policy("compact"), window=3_000)

    assert "tokens cut; full text: line 0]" in found.changed[0].text
    assert "opening-shortened" in [finding.code for finding in found.findings]


def test_constraints_take_more_than_their_share_before_they_are_cut():
    rules = [f"Never touch the file number {at} of the vendor directory." for at in range(60)]
    before = user(rendered(Summary(1, Facts(constraints=tuple(rules)), "")))
    messages = conversation(
        user("Go."),
        before,
        model("Yes. " * 400),
        *(part for at in range(9) for part in (user(f"And {at}? " * 60), model("Done. " * 60))),
    )

    found = fit_in(messages, policy("compact"), window=3_000)

    assert len(found.facts.constraints) == 60
    assert found.effective.keep_recent_turns < 6
    assert found.total <= 1_500


def test_facts_that_cannot_fit_are_dropped_at_last_with_a_finding():
    rules = [f"Never touch the file number {at} of the vendor directory." for at in range(400)]
    before = user(rendered(Summary(1, Facts(constraints=tuple(rules)), "")))
    messages = conversation(user("Go."), before, user("word " * 560), model("Done."))

    found = fit_in(messages, policy("compact"), window=1_000)

    assert found.total <= 850
    reported = [finding.message for finding in found.findings if finding.code == "facts-left-out"]
    assert len(reported) == 1
    assert reported[0].endswith(f"1 current request, {400 - len(found.facts.constraints)} constraints.")


def test_of_constraints_that_cannot_all_fit_the_newest_stay():
    rules = [f"Never touch the file number {at} of the vendor directory." for at in range(100)]
    before = user(rendered(Summary(1, Facts(constraints=tuple(rules)), "")))
    messages = conversation(user("Go."), before, user("word " * 480), model("Done."))

    found = fit_in(messages, policy("compact"), window=1_000)

    assert found.total <= 850
    assert found.facts.constraints[-1] == "Never touch the file number 99 of the vendor directory."
    assert len(found.facts.constraints) > 3


def test_a_policy_that_only_shortens_removes_nothing_and_may_fail():
    messages = conversation(user("Go."), *(bash("make", LONG_OUTPUT) for _ in range(10)), model("Done."))
    only = Policy(steps=("shorten_results",))

    assert len(fit_in(messages, only, window=16_000).kept) == len(messages)
    with pytest.raises(BudgetExceeded):
        fit_in(messages, only, window=4_000)


def test_protected_messages_that_do_not_fit_are_refused_before_any_step(monkeypatch):
    rule = {"role": "developer", "content": "Never push. " * 2_000}
    messages = read([rule, *({"role": "user", "content": f"Do part {at}."} for at in range(50))], "openai")
    monkeypatch.setattr(fit, "shorten_groups", None)
    monkeypatch.setattr(fit, "facts_of_removed", None)

    with pytest.raises(BudgetExceeded, match=r"messages\[0\] \(protected\)"):
        fit_in(messages, policy("compact"), window=4_000)


def test_a_policy_without_prose_asks_nobody_and_gives_the_facts_all_the_room():
    messages = conversation(
        user("Go."),
        *(part for at in range(40) for part in (user(f"Please do {at}. " * 40), model("Done. " * 40))),
    )

    found = fit_in(messages, policy("prune-only"), window=8_000)

    assert found.task is None
    assert found.prose_tokens == 0
    assert found.facts.requests


def test_only_few_older_messages_stay_if_their_number_counts():
    messages = conversation(
        user("Go."), *(part for at in range(40) for part in (user(f"Please do {at}."), model("Done.")))
    )

    found = fit_in(messages, policy("window")._replace(trigger_messages=20), window=8_000)

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
def test_the_summary_is_put_after_opening_and_protected_messages(roles, protected, kept, place):
    found = fit_in(
        spoken(roles, protected), policy("compact")._replace(keep_recent_turns=1), window=100_000, goal=1
    )

    assert (found.kept, found.place) == (kept, place)


def test_the_summary_is_never_put_between_a_call_and_its_result():
    call = {"id": "a", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    raws = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Yes. " * 200},
        {"role": "assistant", "content": None, "tool_calls": [call], "meta": {"protected": True}},
        {"role": "user", "content": "Faster!"},
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
    ]

    found = fit_in(
        read(raws, "openai"), policy("compact")._replace(keep_recent_turns=1), window=100_000, goal=1
    )

    assert (found.kept, found.place) == ((0, 2, 3, 4), 2)


def test_folding_leaves_the_summary_room_for_what_it_has_to_say():
    looked = (
        tool("Read", "x" * 1_500, file_path=f"src/some/deep/folder/of/the/project/{at}.py")
        for at in range(60)
    )
    messages = conversation(
        user("Go."), *looked, *(bash("make", LONG_OUTPUT) for _ in range(4)), model("Done.")
    )

    found = fit_in(messages, policy("compact"), window=36_000)

    assert not found.asks
    assert not [one for one in found.findings if one.code == "facts-left-out"]
    assert len(found.facts.files) > 10


def says(text):
    return {"role": "model", "parts": [{"text": text}]}


def asks(text):
    return {"role": "user", "parts": [{"text": text}]}


def calls(name):
    return [
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"result": "ok"}}}]},
    ]


GEMINI = [
    asks("Go."),
    says("One."),
    asks("More."),
    says("Two."),
    asks("Then?"),
    *calls("run"),
    says("Three."),
    asks("And?"),
]
"""Groups: 0 asks, 1 says, 2 asks, 3 says, 4 asks, 5 calls, 6 says, 7 asks."""


def settled(raws, kept, loose):
    draft = draft_of(read(raws, "gemini"))
    draft.kept[:] = [at in kept for at in range(len(draft.kept))]
    drop_misplaced(draft, loose)
    return [at for at, is_kept in enumerate(draft.kept) if is_kept]


def test_gemini_texts_kept_by_weight_make_way_for_calls():
    assert settled(GEMINI, {0, 1, 3, 5, 6, 7}, loose=[1, 2, 3, 4]) == [0, 5, 6, 7]


def test_gemini_calls_are_dropped_if_the_text_before_them_must_stay():
    assert settled(GEMINI, {0, 1, 5, 6, 7}, loose=[2, 3, 4]) == [0, 1, 6, 7]


def word_count(text):
    return len(text.split())


def refusal(raws, *, window=1_000, overhead=0):
    with pytest.raises(BudgetExceeded) as refused:
        plan(read(raws, "openai"), policy("compact"), word_count, window=window, overhead=overhead)
    return refused.value


def test_protected_content_is_named_with_its_tokens():
    raws = [{"role": "system", "content": "rule " * 900}, {"role": "user", "content": "Go."}]

    error = refusal(raws)

    assert "messages[0] (protected) 904" in error.what
    assert "Reduce the protected content" in error.fix
    assert "larger window" in error.fix
    assert error.exit_code == 7


def test_the_newest_message_and_what_is_sent_beside_are_named():
    raws = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "log " * 700},
    ]

    error = refusal(raws, overhead=200)

    assert "messages[2] (newest message of the user) 704, system prompt and tool schemas 200" in error.what
    assert "messages[0] (opening request) 5" in error.what


def test_each_step_reports_its_number_and_its_tokens():
    draft = draft_of(
        conversation(
            user("Go."), thinking("One."), tool("Write", LONG_OUTPUT, content=LONG_OUTPUT), model(LONG_OUTPUT), user("More."), bash("make", LONG_OUTPUT),
            bash("make", LONG_OUTPUT),
        )
    )  # fmt: skip
    groups = range(len(draft.kept))
    drafts.shorten_groups(draft, ("drop_reasoning", "shorten_results"), groups, goal=1, most=1)
    drafts.shorten_harder(draft, [2, 3], most=1)
    saved = {key: cut.tokens_before - cut.tokens_after for key, cut in draft.cuts.items()}

    found = fit.steps_taken(draft, policy("compact"), folded=False)

    assert found == (
        f"drop_reasoning: 1 message, {draft.given[1] - draft.tokens[1]:,} tokens",
        f"shorten_results: 3 results, {saved[3, 0] + saved[7, 0] + saved[9, 0]:,} tokens",
        f"shorten_arguments: 1 call, {saved[2, 0]:,} tokens",
        f"reduce: 1 text shortened, {saved[4, 0]:,} tokens",
    )


def test_even_the_newest_calls_go_before_a_conversation_is_refused():
    messages = conversation(
        user("Go."),
        *(tool("Set", "ok", **{f"key_{at}_{n}": n for n in range(60)}) for at in range(3)),
        model("Done."),
    )
    window = sum(message_tokens(message, count) for message in messages) // 3 - 60

    found = fit_in(messages, policy("compact")._replace(reserve=0), window=window)

    assert found.total <= window
    assert found.kept == (0, len(messages) - 1)
    assert found.effective.keep_tool_pairs == 0
    assert any("of the newest calls, as nothing else makes it fit" in step for step in found.steps)
