"""What matters most is told by kinds of sentences, whole words and who said it; never by the same input twice differently."""

from __future__ import annotations

from aether.compaction.partition import MOST_SENTENCES, cut_prose, importance, is_request, select_sentences
from aether.compaction.shapes import RemovedText
from tests.compaction.conversations import conversation, model, tool, user
from tests.tables import rows


def count(text):
    return len(text.split())


@rows(
    ("text", "asks"),
    [
        ("Please look at this.", True),
        ("Create the table.", True),
        ("I'd like you to implement a cache.", True),
        ("Can you fix the login?", True),
        ("It is late, and add a test.", True),
        ("Never push to main without a review.", True),
        ("The helper crashed.", False),
        ("A prefix for it", False),
        ("We recreate the db nightly", False),
        ("helpful stuff?", False),
        ("", False),
    ],
)
def test_a_request_is_told_by_whole_words(text, asks):
    assert is_request(text) == asks


def test_requests_and_decisions_matter_more_than_chatter():
    request, decision, edit, fact, chatter = (
        importance(conversation(part), newness=0.5)
        for part in (
            user("Please create the table."),
            model("We decided to use PostgreSQL."),
            tool("Edit", file_path="a.py", old_string="a", new_string="b")[:1],
            model("The table has four columns."),
            model("Thanks, sounds good!"),
        )
    )

    assert request > decision > edit > fact > chatter


def test_of_two_equals_the_newer_matters_more():
    message = conversation(model("The table has four columns."))

    assert importance(message, newness=1.0) > importance(message, newness=0.0)
    assert importance([], newness=0.0) == 0.0


def said(*texts, role="assistant"):
    return [RemovedText(at, role, "", text) for at, text in enumerate(texts)]


def test_statements_are_listed_in_the_order_they_were_made():
    found = select_sentences(
        said("Let me look at the file. We decided to use PostgreSQL because of joins.", "Thanks!", "The build fails on Windows."),
        "", most=100, count=count,
    )  # fmt: skip

    assert found == "- We decided to use PostgreSQL because of joins.\n- The build fails on Windows."


def test_what_tools_said_is_no_statement():
    heard = [
        RemovedText(0, "tool", "Bash", "We decided to fail."),
        RemovedText(1, "assistant", "Bash", '{"command": "We must run"}'),
    ]

    assert select_sentences(heard, "", most=100, count=count) == ""


def test_they_fit_and_the_weightiest_stay():
    texts = [f"The table number {at} has four columns." for at in range(50)]
    found = select_sentences(
        said(*texts[:25], "We must never use floats for money.", *texts[25:]), "", most=40, count=count
    )

    assert count(found) <= 40
    assert "never use floats" in found


def test_what_the_last_summary_said_stays_before_new_facts():
    found = select_sentences(
        said(*(f"The row number {at} has four columns." for at in range(50))),
        "- We decided to use SQLite.\n- The table number one has rows.", most=20, count=count,
    )  # fmt: skip

    assert found.startswith("- We decided to use SQLite.\n- The table number one has rows.")


def test_the_same_sentence_is_told_once():
    assert (
        select_sentences(
            said("The disk is full of logs.", "The disk is full of logs."),
            "The disk is full of logs.",
            most=99,
            count=count,
        ).count("disk")
        == 1
    )


def test_of_a_very_long_conversation_the_newest_sentences_are_read():
    texts = [f"The table number {at} has four columns." for at in range(MOST_SENTENCES + 50)]

    found = select_sentences(said(*texts), "", most=10**6, count=count)

    assert found.count("\n") + 1 == MOST_SENTENCES
    assert "number 50 " in found
    assert "number 49 " not in found


def test_prose_is_cut_where_a_sentence_or_a_line_ends():
    assert cut_prose("One two three.", most=3, count=count) == "One two three."
    assert cut_prose("One two. Three four. Five.", most=4, count=count) == "One two. Three four."
    assert cut_prose("- one two\n- three four\n- five", most=6, count=count) == "- one two\n- three four"
    assert cut_prose("東京は雨。大阪は晴れ。", most=6, count=len) == "東京は雨。"
    assert cut_prose("one two three four", most=2, count=count) == ""
