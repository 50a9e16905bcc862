import pytest

from aether.text.summary_checks import LEAST_ECHO_WORDS, SLACK, UNRELATED, model_fault
from tests.tables import rows
from tests.text.short_answers import SPANS

LONG = " ".join(f"Module {n} drops entry {n} because handler {n} returns too early." for n in range(80))
SUMMARY = "The importer now streams its input and memory stays flat; large transcripts import."
ITEMS = [f"Item {at}: the {name} worker moved file {at} to shelf {at * 7} after check {at * 3}." for at, name in
        enumerate("ash birch cedar elm fir hazel larch maple oak pine rowan spruce".split())]  # fmt: skip
TASK = {
    "given": [f"Fix the queue. {LONG}", "1 passed " * 300],
    "before": "Earlier: the parser was rewritten.",
    "most_tokens": 400,
}


def count(text):
    return len(text.split())


BAD = [
    "",
    " \n\t",
    "---\n",
    "...",
    "I'm sorry, but I can't help with that.",
    "I’m sorry, but I can’t assist with that request.",
    "As an AI language model, I cannot do that.",
    '{"error": {"type": "overloaded_error", "message": "Overloaded"}}',
    '```json\n{"type": "error"}\n```',
    '{"detail": "Not Found"}',
    "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    "<html>\n<head><title>504</title></head></html>",
    "Error: 429 Too Many Requests",
    'Traceback (most recent call last):\n  File "a.py", line 3, in f\nKeyError: 1',
    "The parser was fixed:\n```\ndef f():",
    "word " * 600,
    "The parser was fixed and all of the tests pass again. " * 20,
    LONG[:2_000],
]
GOOD = [
    "The API returned 429; we added a retry with backoff in client.py.",
    "Error handling was added to the parser: bad lines are reported with their number, then skipped.",
    "Error handling: done. Rate limiting: open. Overloaded servers: a retry was added.",
    "The user asked to fix the login. The agent found that the token expired and fixed it in auth.py.",
    "500 rows were imported; two of them failed with KeyError.",
    "404 pages now use the shared layout, as the user asked.",
    "Goal: ship v2.\n- Traceback (most recent call last) shows up in logs when the key is missing\n- fixed in a.py",
    "Users cannot log in on Windows; cause unknown. Next: check the cookie flags.",
    "Unfortunately the build still fails on arm64. We cannot reproduce it locally, so CI gets debug output next.",
    "We cannot use Redis (licence). Decided on SQLite.",
    "- Overloaded servers caused the 529s; retries added\n- next: alerts",
    "Rate limit handling: the client now waits as the header says.",
    "Connection errors were traced to the proxy; without its setting the tests pass.",
    "None of the three fixes works on Windows yet; the first one is on the branch win-fix.",
    "Done: the parser. Open: the writer. Next: tests for both.",
    "OK status pages are cached for 60 s; error pages are not.",
    '{"goal": "ship", "status": "half done"}',
    "{not json, but {braces} and a note about the parser}",
    "Ein Test schlug fehl; behoben in a.py.",
    "登录已修复，测试通过。",
    "1. Read the traceback → the cause is a missing key\n2. Added the key → 3 passed",
    "The refusal of the payment provider (code 402) is shown to the user now.",
    "There is no migration yet; the schema has to change first.",
    LONG[:200],
]


@pytest.mark.parametrize("prose", BAD)
def test_an_answer_that_is_not_a_summary_has_a_fault(prose):
    fault = model_fault(prose, **TASK, count=count)

    assert fault.startswith(("is ", "says ", "has ", "copies ", "repeats ", "breaks "))


@rows("prose", GOOD)
def test_a_good_summary_may_speak_of_errors_refusals_and_limits(prose):
    assert model_fault(prose, **TASK, count=count) == ""


def test_a_little_over_the_limit_is_let_through():
    at_most = " ".join(f"word{at}" for at in range(int(TASK["most_tokens"] * SLACK)))

    assert model_fault(at_most, **TASK, count=count) == ""
    assert model_fault(at_most + " word", **TASK, count=count) == "has 541 tokens; 400 were asked for"


def test_a_summary_as_long_as_its_input_is_a_fault():
    short = {"given": ["one two " * 40], "most_tokens": 400}

    assert "no fewer than the 80" in model_fault(" ".join(map(str, range(80))), **short, count=count)
    assert model_fault(" ".join(map(str, range(60))), **short, count=count) == ""


def test_what_opens_like_a_refusal_and_has_a_name_of_the_input_is_a_summary():
    assert (
        model_fault("I cannot verify it on Windows, but handler 71 returns late now.", **TASK, count=count)
        == ""
    )
    assert model_fault("I cannot verify it.", **TASK, count=count).startswith("is a refusal")


def test_quoting_one_sentence_is_no_echo_but_copying_a_message_is():
    sentence = LONG[: LONG.index("Module 3 ")]
    own = "Beside that the reader was rewritten from scratch and the writer now closes its files in every case at last."

    assert model_fault(f"{sentence} {own} {own[::-1]}", **TASK, count=count) == ""
    copied = " ".join(LONG.split()[: LEAST_ECHO_WORDS + 20])
    assert model_fault(copied, **TASK, count=count) == "copies one message"


def test_the_input_is_counted_only_as_far_as_needed():
    counted = []

    def counting(text):
        counted.append(text)
        return count(text)

    many = {"given": ["other words " * 200] * 50, "most_tokens": 400}

    assert model_fault(" ".join(f"Part {at} goes on." for at in range(25)), **many, count=counting) == ""
    assert len(counted) < 5


def test_without_a_counter_length_does_not_matter_but_an_echo_does():
    long = " ".join(f"Part {at} of the parser was fixed and test {at} passes." for at in range(400))

    assert model_fault(long, given=[LONG]) == ""
    assert model_fault(LONG, given=["short", LONG]) == "copies one message"


@pytest.mark.parametrize(
    "summary",
    [
        SUMMARY,
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
    assert model_fault(summary) == ""
    assert model_fault(summary, given=ITEMS, count=count) == ""


def test_repeating_the_input_is_no_summary():
    fault = model_fault(" ".join(ITEMS), given=[*ITEMS, "x " * 40])

    assert fault == "repeats the whole input"


def test_selecting_sentences_of_the_input_is_one():
    assert model_fault(" ".join(ITEMS[:3]), given=ITEMS, count=count) == ""


def test_a_summary_longer_than_its_input_is_rejected():
    fault = model_fault(SUMMARY * 20, given=ITEMS, count=count)

    assert "no fewer than" in fault


def test_two_short_items_may_be_summed_up_at_length():
    assert model_fault(SUMMARY, given=["Stream.", "Done."], count=count) == ""


def test_repeating_the_instruction_is_no_summary():
    asked = "Write two or three sentences that say what was done and what was decided."

    fault = model_fault(asked, given=["Stream."], instruction=f"Rules.\n{asked}\nItems: Stream.")

    assert fault == "repeats the instruction"


def test_repeating_a_sentence_of_an_item_that_the_prompt_shows_is_one():
    assert model_fault(SUMMARY, given=[SUMMARY], instruction=f"Items: {SUMMARY}", count=count) == ""


def judged(prose, span):
    about, given, _ = SPANS[span]
    return model_fault(prose, given=given, most_tokens=300, count=count, about=about)


def test_good_short_answers_are_accepted():
    good = [(prose, span) for span, (_, _, answers) in SPANS.items() for prose in answers]

    assert len(good) >= 60
    assert [case for case in good if judged(*case) and judged(*case) != UNRELATED] == []
    # A few are in another language and share nothing but the script.
    assert sum(judged(*case) == UNRELATED for case in good) <= 0.05 * len(good)


def test_an_answer_about_something_else_is_a_fault_only_where_the_subject_is_known():
    prose = "The weather in Lisbon stays sunny until Sunday."

    assert model_fault(prose, given=ITEMS) == ""
    assert "no word of" in model_fault(prose, given=ITEMS, about=["Sort the trees."])
    assert model_fault("The trees wait until Sunday.", given=ITEMS, about=["Sort the trees."]) == ""
