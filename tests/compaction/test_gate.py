from aether.compaction.gate import LEAST_ECHO_WORDS, SLACK, rejected, unfit
from aether.compaction.shapes import Facts, Said, SummaryTask
from tests.tables import rows

LONG = " ".join(f"Module {n} drops entry {n} because handler {n} returns too early." for n in range(80))
TASK = SummaryTask(
    "task_state", 1, (Said(0, "user", "", f"Fix the queue. {LONG}"), Said(1, "tool", "Bash", "1 passed " * 300)),
    "Earlier: the parser was rewritten.", Facts(), 400,
)  # fmt: skip


def count(text):
    return len(text.split())


BAD = [
    "",
    " \n\t",
    "# Summary\n\n---\n",
    "N/A",
    "None.",
    "[summary]",
    "{{summary}}",
    "<summary></summary>",
    "```\n```",
    "...",
    "Understood.",
    "No summary available.",
    "Sure! Here is the summary:",
    "Here's a summary of the conversation:",
    "Lorem ipsum dolor sit amet",
    "I'm sorry, but I can't help with that.",
    "I’m sorry, but I can’t assist with that request.".replace("’", "'"),
    "I apologize, but I'm unable to provide a summary of this content.",
    "Sorry, I cannot summarize this conversation because it contains personal data.",
    "I cannot assist with this request as it violates policy.",
    "I won't continue with this task.",
    "I must decline to summarize this.",
    "Unfortunately, I am not able to access the messages.",
    "As an AI language model, I cannot do that.",
    "This content violates our usage policies.",
    "I don't see any conversation to summarize. Please provide the messages.",
    "Please provide the conversation you would like me to summarize.",
    "There is no conversation to summarize.",
    '{"error": {"type": "overloaded_error", "message": "Overloaded"}}',
    '```json\n{"type": "error"}\n```',
    '{"detail": "Not Found"}',
    "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    "<html>\n<head><title>504</title></head></html>",
    "Rate limit exceeded, please retry after 20s",
    "Overloaded",
    "overloaded_error",
    "Error: 429 Too Many Requests",
    "Error code: 500 - {'error': 'x'}",
    "HTTP/1.1 503 Service Unavailable",
    "429 Too Many Requests",
    "Internal Server Error",
    "API Error: Connection refused",
    "Connection refused",
    "Request timed out.",
    "ValueError: bad input",
    "Invalid API key provided",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "This model's maximum context length is 8192 tokens".replace("This model's ", ""),
    "The model is currently overloaded. Please try again later.",
    "An error occurred while processing your request.",
    'Traceback (most recent call last):\n  File "a.py", line 3, in f\nKeyError: 1',
    'Something failed:\nTraceback (most recent call last):\n  File "a.py", line 3, in f\nKeyError: 1',
    "TypeError: x is undefined\n    at run (app.js:10:5)\n    at main (app.js:20:1)",
    "word " * 600,
    LONG[:2_000],
]
GOOD = [
    "The API returned 429; we added a retry with backoff in client.py.",
    "Error handling was added to the parser: bad lines are reported with their number, then skipped.",
    "Error handling: done. Rate limiting: open. Overloaded servers: a retry was added.",
    "The user asked to fix the login. The agent found that the token expired and fixed it in auth.py.",
    "500 rows were imported; two of them failed with KeyError.",
    "404 pages now use the shared layout, as the user asked.",
    "I'm sorry was the message shown to users; the copy is neutral now, see strings.json.",
    "Goal: ship v2.\n- Traceback (most recent call last) shows up in logs when the key is missing\n- fixed in a.py",
    "Users cannot log in on Windows; cause unknown. Next: check the cookie flags.",
    "Unfortunately the build still fails on arm64. We cannot reproduce it locally, so CI gets debug output next.",
    "We cannot use Redis (licence). Decided on SQLite.",
    "I cannot verify the fix on Windows, but on Linux all 212 tests pass.",
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


@rows("prose", BAD)
def test_what_is_no_summary_is_rejected_with_a_reason(prose):
    reason = rejected(prose, TASK, count=count)

    assert reason.startswith("It ")
    assert reason.endswith(".")


@rows("prose", GOOD)
def test_a_good_summary_may_speak_of_errors_refusals_and_limits(prose):
    assert rejected(prose, TASK, count=count) == ""


def test_a_little_over_the_limit_is_let_through():
    at_most = "word " * int(TASK.max_tokens * SLACK)

    assert rejected(at_most, TASK, count=count) == ""
    assert rejected(at_most + "word", TASK, count=count) == "It has 541 tokens; 400 were asked for."


def test_a_summary_as_long_as_what_it_stands_for_is_none():
    short = TASK._replace(said=(Said(0, "user", "", "one two " * 40),), previous="")

    assert "no fewer than the 80" in rejected("other words " * 40, short, count=count)
    assert rejected("other words " * 30, short, count=count) == ""


def test_a_long_refusal_that_lists_what_was_done_is_a_summary():
    prose = "I cannot help with the deployment, the user said.\n- the parser was fixed\n- the tests pass"

    assert rejected(prose, TASK, count=count) == ""


def test_quoting_one_sentence_is_no_echo_but_copying_a_message_is():
    sentence = LONG[: LONG.index("Module 3 ")]
    own = "Beside that the reader was rewritten from scratch and the writer now closes its files in every case at last."

    assert rejected(f"{sentence} {own} {own[::-1]}", TASK, count=count) == ""
    copied = " ".join(LONG.split()[: LEAST_ECHO_WORDS + 20])
    assert rejected(copied, TASK, count=count) == "It copies one message."


def test_what_it_stands_for_is_counted_only_as_far_as_needed():
    counted = []

    def counting(text):
        counted.append(text)
        return count(text)

    many = TASK._replace(said=tuple(Said(at, "user", "", "other words " * 200) for at in range(50)))

    assert rejected("It goes on with the parser of the ledger. " * 12, many, count=counting) == ""
    assert len(counted) < 5


@rows("prose", ["", "N/A", "...", "I'm sorry, but I can't help with that.", "Error: 500 oh no"])
def test_what_is_no_summary_is_unfit_however_long_one_may_be(prose):
    assert unfit(prose)


def test_without_a_task_length_does_not_matter_but_an_echo_does():
    long = "The parser was fixed and the tests pass. " * 400

    assert unfit(long, [LONG]) == ""
    assert unfit(LONG, ["short", LONG]) == "It copies one message."
