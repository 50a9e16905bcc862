"""Of the middle the requests stay first, then what matters most, as far as the goal leaves room."""

from __future__ import annotations

from aether.compaction import steps
from aether.compaction.fit import drop_misplaced, keep_older
from aether.compaction.shapes import Policy
from aether.messages.convert import read
from tests.compaction.conversations import bash, conversation, model, tool, user
from tests.compaction.test_ladder import draft_of

WINDOW = Policy("window", keep_middle=0.5, keep_requests=True)


def middle_of(draft, policy=WINDOW, *, goal, room=0, least=0, most_messages=0):
    held = steps.held_groups(draft.parts, recent=1, pairs=1)
    loose = steps.loose_groups(draft.parts, held)
    draft.kept[:] = held
    keep_older(draft, policy, loose, goal=goal, room=room, least=least, most_messages=most_messages)
    return [at for at in loose if draft.kept[at]]


TALK = conversation(
    user("Hello there."),
    model("Thanks, sounds good!"),
    user("Please never use floats for money."),
    model("We decided to use PostgreSQL because of joins."),
    tool("Read", "x " * 50, file_path="a.py"),
    user("Hm, the sky is blue."),
    model("Good."),
    bash("make"),
    user("And now?"),
)


def test_requests_stay_before_anything_else():
    draft = draft_of(TALK)
    goal = sum(steps.group_tokens(draft, at) for at in (0, 2, 7, 8))

    assert middle_of(draft, WINDOW._replace(keep_middle=0.0), goal=goal) == [2]
    assert draft.steps == ["select: 1 older groups kept for what they say"]


def test_what_was_decided_stays_before_small_talk():
    draft = draft_of(TALK)

    assert middle_of(draft, WINDOW._replace(keep_requests=False, keep_middle=1.0), goal=72) == [2, 3]


def test_the_newest_stay_as_far_as_there_is_room_and_then_no_older_one():
    draft = draft_of(TALK)
    some = sum(steps.group_tokens(draft, at) for at in (0, 7, 8, 6, 5))

    assert middle_of(draft, Policy(), goal=some) == [5, 6]
    assert middle_of(draft, Policy(), goal=10_000) == [1, 2, 3, 4, 5, 6]
    assert middle_of(draft, Policy(), goal=10_000, most_messages=6) == [5, 6]
    assert draft.steps[-1] == "select: 2 newer groups kept, as there is room"


def test_what_was_shortened_in_vain_is_whole_again_where_it_stays():
    messages = conversation(
        user("Go."), bash("make", "x" * 4_000), tool("Read", "y" * 4_000, file_path="a.py"), bash("make")
    )
    draft = draft_of(messages)
    steps.shorten_groups(draft, ("shorten_results",), [1, 2], goal=1)

    assert middle_of(draft, Policy(), goal=10_000) == [1, 2]
    assert sorted(draft.now) == [4]
    assert sorted(at for at, _ in draft.cuts) == [4]
    assert draft.tokens[:4] == list(draft.given[:4])


def test_what_does_not_fit_whole_may_fit_shortened():
    messages = conversation(user("Go."), bash("make", "x" * 4_000), bash("make", "x" * 4_000), bash("make"))
    draft = draft_of(messages)

    assert middle_of(draft, Policy(), goal=1_500) == [1, 2]
    assert sorted(draft.now) == [2]


def test_nothing_stays_where_the_goal_leaves_no_room():
    draft = draft_of(TALK)

    assert middle_of(draft, goal=20) == []
    assert middle_of(draft, goal=10_000, room=10_000, least=10_000) == []
    assert draft.steps == []


def test_a_result_without_a_call_is_never_chosen():
    raws = [
        {"role": "user", "content": "Go."},
        {"role": "tool", "tool_call_id": "x", "content": "We decided."},
        {"role": "user", "content": "Now?"},
    ]

    assert middle_of(draft_of(read(raws, "openai")), goal=10_000) == []


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


def test_gemini_texts_that_only_their_weight_kept_make_way_for_calls():
    assert settled(GEMINI, {0, 1, 3, 5, 6, 7}, loose=[1, 2, 3, 4]) == [0, 5, 6, 7]


def test_gemini_calls_go_where_the_text_before_them_must_stay():
    assert settled(GEMINI, {0, 1, 5, 6, 7}, loose=[2, 3, 4]) == [0, 1, 6, 7]


def test_gemini_calls_after_the_user_or_after_results_stay():
    assert settled(GEMINI, {0, 1, 4, 5, 7}, loose=[2, 3]) == [0, 1, 4, 5, 7]
    assert settled([asks("Go."), *calls("run"), *calls("run")], {0, 1, 2}, loose=[]) == [0, 1, 2]


def test_other_providers_take_calls_after_texts():
    draft = draft_of(TALK)
    before = list(draft.kept)

    drop_misplaced(draft, [1])
    drop_misplaced(draft_of([]), [])

    assert draft.kept == before
