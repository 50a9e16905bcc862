from aether.memory.summaries import summary_faults
from tests.tables import rows

GOOD = "The importer now streams its input and memory stays flat; large transcripts import."


def handoff(*contents, prompt=""):
    return {"items": [{"content": content} for content in contents], "prompt": {"text": prompt}}


LONG = [f"Item {at}: the {name} worker moved file {at} to shelf {at * 7} after check {at * 3}." for at, name in
        enumerate("ash birch cedar elm fir hazel larch maple oak pine rowan spruce".split())]  # fmt: skip


@rows(
    ("summary", "kind"),
    [
        ("", "empty"),
        (" \n…", "empty"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("I’m unable to summarise this.", "refusal"),
        ("As an AI language model, I have no memory.", "refusal"),
        ("Unfortunately, the input is missing and I cannot go on.", "refusal"),
        ("Error: 529 overloaded", "error message"),
        ("API Error (500): internal", "error message"),
        ("Traceback (most recent call last):\n  File", "error message"),
        ('{"type":"error","error":{}}', "error message"),
        ("HTTP 503 Service Unavailable", "error message"),
        ("Rate limit exceeded, try again later", "error message"),
        ("ValueError: no items", "error message"),
    ],
)
def test_a_text_that_is_no_summary_is_recognised(summary, kind):
    (fault,) = summary_faults(summary, None)

    assert kind in fault


@rows(
    "summary",
    [
        GOOD,
        "Error handling was rewritten: the importer skips bad lines.",
        "Errors in the parser were fixed.",
        "I moved the importer to streaming.",
        "Sorry states of the old importer were removed.",
        "The team cannot deploy before Monday.",
        "500 files were imported.",
        "导入器现在使用流式读取。",
    ],
)
def test_a_summary_that_speaks_of_errors_is_still_one(summary):
    assert summary_faults(summary, None) == []
    assert summary_faults(summary, handoff(*LONG)) == []


def test_repeating_the_input_is_no_summary():
    (fault,) = summary_faults(" ".join(LONG), handoff(*LONG, "x " * 40))

    assert "repeats the items" in fault


def test_selecting_sentences_of_the_input_is_one():
    assert summary_faults(" ".join(LONG[:3]), handoff(*LONG)) == []


def test_a_summary_longer_than_its_input_is_rejected():
    (fault,) = summary_faults(GOOD * 20, handoff(*LONG))

    assert "more than the items" in fault


def test_two_short_items_may_be_summed_up_at_length():
    assert summary_faults(GOOD, handoff("Stream.", "Done.")) == []


def test_repeating_the_instruction_is_no_summary():
    asked = "Write two or three sentences that say what was done and what was decided."

    (fault,) = summary_faults(asked, handoff("Stream.", prompt=f"Rules.\n{asked}\nItems: Stream."))

    assert "instruction" in fault


def test_repeating_a_sentence_of_an_item_that_the_prompt_shows_is_one():
    assert summary_faults(GOOD, handoff(GOOD, prompt=f"Items: {GOOD}")) == []
