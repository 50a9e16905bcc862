"""The defects of the original (mai-archive, facts §6) that concern the pure part, each with a test that fails where it comes back."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime

import pytest

from aether.conversation import archive_levels as forms
from aether.conversation import archive_retention as retention
from aether.conversation.archived import LEVELS, conversation_of, given_conversation, read_conversation
from aether.errors import InvalidInput
from aether.text.words import sentences
from tests.archive.conversations import NOW, TALK, conversation, given
from tests.tables import rows

# Five facts of one kind: the last one matters as much as the first.
STORY = [
    "The first server was bought in March.", "It is called heron.", "Its disk is small.", "The second one is called egret.",
    "Both are in the same room.", "The room is cold.", "The key to it is with Amira.", "Conclusion: we will move heron to Lyon on 14 June.",
]  # fmt: skip


def archived(found, level):
    """Return an archive file of a conversation at a level, with what the pure part puts into it."""
    content = forms.form(found, level)
    return {
        **{key: found[key] for key in ("id", "title", "created_at", "updated_at")},
        "level": level, "content": content, "metadata": forms.metadata(found), "metrics": forms.measure(found, content),
    }  # fmt: skip


def spoken(content):
    return "\n".join(one["content"] for one in content["messages"])


def test_defect_02_the_level_by_score_wins_over_a_lesser_one_by_age():
    """A conversation whose score keeps its key points has them at any age."""
    talk = [
        ("user" if at % 2 else "assistant", f"How does the code of plan {at} work, and why?")
        for at in range(40)
    ]
    old = retention.decide(conversation(talk, days=900), now=NOW)

    assert old.score.total >= retention.STANDARD.preserve_threshold
    assert (old.age_level, old.retention_level, old.level, old.rule) == (
        "metadata",
        "key_points",
        "key_points",
        "score",
    )


def test_defect_03_a_summary_is_not_the_key_points():
    found = conversation()
    points, summary = forms.form(found, "key_points"), forms.form(found, "summary")
    speech = sum(len(one.text) for one in forms.spoken(found))

    assert len(summary["summary"]) <= 0.40 * speech < len(spoken(points)) <= 0.70 * speech
    assert "index" in summary["summary"]


def test_defect_04_key_points_keep_the_end_and_the_order():
    found = conversation([("user", "Tell me about the servers."), ("assistant", " ".join(STORY))])
    points = spoken(forms.form(found, "key_points")).splitlines()

    assert STORY[-1] in points
    assert points == [one for one in [TELL, *STORY] if one in points]
    assert 3 < len(points) < len(STORY)


TELL = "Tell me about the servers."


@rows(
    "text",
    [
        "no full stop at all " * 40,
        "One\nTwo lines\nThree lines of it\nFour lines of it\nFive",
        "東京の会議は六月です。" * 9,
        "a" * 5_000,
        "```\nx = 1\ny = 2\nz = 3\nw = 4\n```",
    ],
)
def test_defect_04_text_without_full_stops_is_never_longer_than_it_was(text):
    found = conversation([("assistant", text)])
    whole = sum(len(one.text) for one in forms.spoken(found))
    for level in ("key_points", "summary"):
        content = forms.form(found, level)
        kept = content.get("summary", "") if level == "summary" else spoken(content)

        assert 0 < len(kept) <= whole + len("Assistant: ")
        assert all(one in sentences(text) for one in kept.removeprefix("Assistant: ").splitlines())


def test_defect_06_the_numbers_are_measured_and_differ_between_conversations():
    chat = conversation([("user", f"That is nice, number {at} of the day.") for at in range(12)])
    work = conversation()
    measured = [forms.measure(one, forms.form(one, "summary")) for one in (chat, work)]

    assert measured[0]["retention"]["numbers"] == pytest.approx(len(_numbers(chat)) / 12, abs=0.01)
    assert measured[0]["ratio"] != measured[1]["ratio"]
    assert measured[1]["facts"] == {"identifiers": 2, "numbers": 3, "decisions": 0, "questions": 2}
    assert all(value <= 1 for one in measured for value in one["retention"].values())
    # More full stops make nothing better.
    dotted = conversation([("user", "That. Is. Nice. " * 12)])
    assert forms.measure(dotted, forms.form(dotted, "summary"))["retention"]["numbers"] == 1.0


def _numbers(found):
    text = forms.form(found, "summary")["summary"]
    return [at for at in range(12) if f"number {at} of" in text]


@rows("title", [None, "", "   ", 7, ["a"]])
def test_defect_08_a_conversation_without_a_title_has_its_first_words(title):
    found, findings = read_conversation(given(title=title))

    assert found["title"].startswith("Our nightly export of the ledger takes four hours.")
    assert len(found["title"]) <= 80
    assert findings == []
    assert read_conversation({"messages": []})[0]["title"] == "untitled"


def test_defect_09_naive_and_aware_times_are_one_kind_of_time():
    times = (
        "2026-11-01T10:00:00",
        "2026-11-01T10:00:00Z",
        "2026-11-01T12:00:00+02:00",
        "2026-11-01 10:00:00",
    )
    found = [read_conversation({"messages": [], "created_at": time})[0] for time in times]

    assert {one["created_at"] for one in found} == {"2026-11-01T10:00:00.000000Z"}
    assert {retention.age(one, NOW).days for one in found} == {21}
    assert retention.age(found[0], datetime(2026, 11, 22, 12, tzinfo=UTC)) == retention.age(found[2], NOW)


@rows("time", ["garbage", "2026-02-30", 12e300, {"at": 1}, "0000-01-01", [], True])
def test_defect_09_a_time_that_is_none_is_a_finding_and_drops_nothing(time):
    raw = given(created_at=time)
    raw["messages"][2]["timestamp"] = time
    found, findings = read_conversation(raw, where="talks[3]")

    assert len(found["messages"]) == len(TALK)
    known = [] if time == [] else ["talks[3].messages[2].timestamp"]
    assert [one.where for one in findings if one.code == "bad-time"] == [*known, "talks[3].created_at"]
    assert retention.last_used(found)[1] == "messages"
    lost, findings = read_conversation({"messages": [{"role": "user", "content": "Hi", "timestamp": time}]})
    assert retention.age(lost, NOW) == retention.Age(0, "")
    assert "no-time" in {one.code for one in findings}


@rows("level", LEVELS)
def test_defect_11_a_form_shares_nothing_with_its_conversation(level):
    raw = given(
        messages=[*given()["messages"], {"role": "user", "content": [{"type": "text", "text": "Look."}]}]
    )
    found, _ = read_conversation(raw)
    before, whole = deepcopy(raw), deepcopy(found)
    content = forms.form(found, level)
    again = conversation_of({**archived(found, level), "content": content})
    for message in content.get("messages", []):
        message["content"] = "changed"
    content.get("metadata", {}).update(title="changed")

    assert (raw, found) == (before, whole)
    if level == "full":
        assert given_conversation(forms.form(again, "full")) == raw  # and nothing of the archive is inside


def test_defect_12_no_marks_for_everybody_and_metadata_can_be_reached():
    hi = conversation([("user", "hi")], days=400)
    decided = retention.decide(hi, now=NOW)

    assert decided.score.total == pytest.approx(0.145)
    assert decided.score.parts["user_marked"] == 0
    assert (decided.retention_level, decided.level) == ("metadata", "metadata")
    marked = retention.decide(hi, now=NOW, marked=True)
    assert marked.score.total > 0.5
    assert (marked.level, marked.rule) == ("full", "marked")
    assert retention.score(read_conversation({"messages": []})[0]).total == 0
    own, _ = read_conversation(given([("user", "hi")], days=400, metadata={"user_marked_important": True}))
    assert retention.decide(own, now=NOW).level == "full"


@rows(
    "changes, where",
    [
        ({"weights": {"message_count": 50}}, "policy.weights.message_count"),
        ({"weights": {"message_count": -0.1}}, "policy.weights.message_count"),
        ({"weights": {"message_count": "0.2"}}, "policy.weights.message_count"),
        ({"weights": {"message_count": float("nan")}}, "policy.weights.message_count"),
        ({"weights": {"charm": 0.2}}, "policy.weights"),
        ({"weights": [0.2]}, "policy.weights"),
        ({"weights": dict.fromkeys(retention.PARTS, 0)}, "policy.weights"),
        ({"important_threshold": "abc"}, "policy.important_threshold"),
        ({"important_threshold": True}, "policy.important_threshold"),
        ({"preserve_threshold": 0.9}, "policy"),
        ({"user_marked_multiplier": 0.5}, "policy.user_marked_multiplier"),
        ({"recent_days": 1.5}, "policy.recent_days"),
        ({"threshold": 0.5}, "policy"),
        ("abc", "policy"),
    ],
)
def test_defect_13_a_policy_takes_no_number_that_makes_no_sense(changes, where):
    with pytest.raises(InvalidInput) as refused:
        retention.policy(changes)

    assert refused.value.where == where
    assert refused.value.fix


def test_defect_13_a_policy_changes_what_is_named_and_nothing_else():
    first = retention.policy({"weights": {"time_span": 0.3}, "important_threshold": 0.8})
    second = retention.policy({"summary_threshold": 0.1}, of=first)

    assert second == first._replace(summary_threshold=0.1)
    assert second.weights == {**retention.STANDARD.weights, "time_span": 0.3}
    assert retention.policy() == retention.STANDARD


def test_defect_14_topics_and_entities_are_words_and_few():
    found = conversation(
        [
            (
                "user",
                "An unlikely explanation of the airplane, and/or maybe 1/2 cup, see /passwd and https things.",
            )
        ]
    )
    described = forms.metadata(found)
    assert (described["topics"], described["key_entities"]) == ([], [])

    text = "Ask amira@example.com, see https://example.com/a, and src/export.py. We plan the project; plans change."
    described = forms.metadata(conversation([("user", text)]))
    assert described["key_entities"] == ["amira@example.com", "https://example.com/a", "src/export.py"]
    assert described["topics"] == ["planning"]
    many = " ".join(f"https://example.com/page/{at}" for at in range(200))
    long = conversation([("user", f"Read {many}")] * 4)
    content = forms.form(long, "metadata")
    assert len(content["metadata"]["key_entities"]) == forms.MOST_ENTITIES
    assert forms.measure(long, content)["ratio"] < 0.1
    assert len(json.dumps(content)) < 0.1 * len(json.dumps(forms.form(long, "full")))
