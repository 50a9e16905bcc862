"""Prompt recall: which entries a prompt matches, and above all which not."""

from __future__ import annotations

import pytest

from aether.memory.layers import Record
from aether.search import prompt_match as module
from aether.search.prompt_match import (
    LOOKED_AT,
    MOST_MATCHES,
    PROMPT_CHARS,
    match_prompt,
    parse_prompt,
)
from tests.tables import rows

FILLER = [f"The {word} service answers within {n} seconds." for n, word in enumerate(
    "billing search export invoice mail report archive audit".split()
)]  # fmt: skip


def record(id, text, type="decision"):
    return Record(id, "working_memory", type, "2026-03-01T00:00:00.000000Z", text, 5, {})


def memory(*texts, type="decision"):
    return [record(f"m{nth}", text, type) for nth, text in enumerate(texts)] + [
        record(f"f{nth}", text, "outcome") for nth, text in enumerate(FILLER)
    ]


def called(prompt, records, **options):
    asked = parse_prompt(prompt)
    return [one.record.id for one in match_prompt(asked, records, **options)] if asked else []


WEBHOOK = (
    "Decided: Stripe webhook retries use exponential backoff with five attempts, because calls are dropped."
)


@rows(
    "prompt",
    [
        "Which retry policy did we pick for the Stripe webhook?",
        "the stripe webhook retry thing",
        "Stripe webhooks: how often do we retry?",
    ],
)
def test_a_question_about_a_decision_matches_it(prompt):
    assert called(prompt, memory(WEBHOOK)) == ["m0"]


@rows(
    "prompt",
    [
        "", "   ", "ok", "yes please, go on", "fix the failing test", "/compact keep the webhook retries of stripe",
        "What colour should the login button have?",
        "Does the stripe account page load slowly on phones, and should the billing team hear of it?",
        "see https://stripe.com/docs/webhook/retries/backoff",
    ],
)  # fmt: skip
def test_a_prompt_that_says_little_or_something_else_calls_nothing_to_mind(prompt):
    assert called(prompt, memory(WEBHOOK)) == []


@rows(
    "prompt",
    [
        "where is parse_header used?",
        "look at src/net/utf_reader.py",
        "what about ENG-221?",
        "is fetchUser ok?",
    ],
)
def test_a_name_that_few_entries_hold_is_enough(prompt):
    texts = (
        "We keep parse_header as it is because two callers rely on it.",
        "The fix is in utf_reader.py, where the length was wrong.",
        "ENG-221 waits for the review of the security people.",
        "The caller of fetchUser has to close the connection itself.",
    )

    assert len(called(prompt, memory(*texts))) == 1


def test_a_name_that_everything_holds_is_not():
    texts = [f"The module app_core.py got part {number} of the new design." for number in range(9)]

    assert called("please open app_core.py", memory(*texts)) == []


@rows(
    "prompt",
    ['{"parse_header": 3}', "level=info parse_header=yes", "about GitHub and README.md", "tell a.bc"],
)
def test_output_of_programs_and_brands_are_no_names(prompt):
    found = parse_prompt(prompt)

    assert found is None or found.names == ()


def test_part_of_a_longer_name_is_another_name():
    assert (
        called(
            "where is parse_header used?", memory("The reparse_header2 helper is only for the old format.")
        )
        == []
    )


def test_words_scattered_over_an_entry_are_no_answer():
    scattered = "The stripe is blue on the left.\nSome webhook exists for that team.\nA retry of the print went through."

    assert called("the stripe webhook retry thing", memory(scattered)) == []


@rows(
    ("prompt", "reported"),
    [
        ("stripe webhook invoices", ["m0"]),  # two words of three
        ("stripe webhook invoices pagination", []),  # two of four
        ("stripe webhook backoff pagination", ["m0"]),  # three of four
    ],
)
def test_most_significant_words_of_the_prompt_must_be_in_the_answer(prompt, reported):
    assert called(prompt, memory(WEBHOOK)) == reported


def test_the_prompt_itself_is_no_news():
    assert (
        called(
            "Stripe webhook retries use exponential backoff",
            memory("Stripe webhook retries use exponential backoff!"),
        )
        == []
    )


@pytest.mark.parametrize("type", ["command", "observation"])
def test_commands_and_observations_never_match(type):
    assert (
        called("where is parse_header used?", memory("Ran grep for parse_header in the old tree.", type=type))
        == []
    )


def test_a_changed_file_matches_only_by_name():
    records = memory(
        "Changed parse_header.py: the stripe webhook retries now wait longer than before.", type="code_change"
    )

    assert called("the stripe webhook retry thing", records) == []
    assert called("what happened in parse_header.py lately?", records) == ["m0"]


def test_lines_of_code_are_passed_over():
    text = "We keep it.\nif x := parse_header(a.b, c.d):\nparse_header: table 3 4\nThe reason for parse_header is the old client."

    (found,) = match_prompt(parse_prompt("why parse_header?"), memory(text))
    assert found.passage == "The reason for parse_header is the old client."


def test_scripts_without_function_words_can_answer_too():
    assert called("parse_header?", memory("一\nparse_header は古いクライアントのために残す。別の行。")) == [
        "m0"
    ]


def test_matches_are_few_and_without_repetitions():
    texts = ["We keep parse_header because the old client needs it.", "We keep parse_header because the old client needs it now.",
             "The limit inside parse_header is nine kilobytes by contract."]  # fmt: skip

    assert called("where is parse_header used?", memory(*texts[:2])) == ["m0"]
    assert set(called("where is parse_header used?", memory(*texts))) == {"m0", "m2"}
    assert MOST_MATCHES == 3


def test_demands_of_a_person_come_before_reports():
    records = [record("o", "The parse_header step took three minutes in the nightly job.", "outcome"),
               record("c", "Never change parse_header without asking the platform team.", "constraint")]  # fmt: skip

    assert called("where is parse_header used?", records) == ["c", "o"]


def test_entries_left_out_are_still_counted():
    assert called("the stripe webhook retry thing", memory(WEBHOOK), leave_out=["m0"]) == []
    # Common elsewhere, the words tell nothing.
    held = dict.fromkeys(("stripe", "webhook", "retri"), 500)
    assert called("the stripe webhook retry thing", memory(WEBHOOK), held=held, others=600) == []


def test_text_submitted_by_the_program_is_no_prompt():
    assert (
        parse_prompt("<task-notification><result>parse_header is wrong</result></task-notification>") is None
    )


@rows(
    "address", ["ann@ledger.parse_header.py", "(http://a.example/parse_header.py", "see:www.parse_header.py"]
)
def test_addresses_name_nothing(address):
    assert parse_prompt(f"ask {address} of it") is None
    assert parse_prompt(f"ask {address} of @parse_header.py").names == ("parse_header.py",)


@rows("run", ["@", "a@", "a://", "www."])
def test_a_long_run_of_the_signs_of_addresses_is_looked_at_once(run, monkeypatch):
    monkeypatch.setattr(module, "PROMPT_CHARS", 50_000)  # in quadratic time minutes, in cubic days

    assert parse_prompt(run * 20_000) is None


def test_of_a_pasted_page_only_the_ends_are_read():
    page = "lorem ipsum " * PROMPT_CHARS

    assert parse_prompt(f"parse_header {page}").names == ("parse_header",)
    assert parse_prompt(f"{page} parse_header {page}").names == ()
    assert len(parse_prompt(page * 50).words) <= PROMPT_CHARS


def test_of_very_many_only_the_likeliest_are_cut_into_words():
    asked = parse_prompt("the stripe webhook retry thing")
    many = [
        record(f"x{n}", f"stripe and webhook number {n} of the list", "outcome") for n in range(LOOKED_AT * 2)
    ]

    assert [one.record.id for one in match_prompt(asked, [*many, record("it", WEBHOOK)])] == []
    assert match_prompt(asked, []) == []


def kept(id, text, type, at, **metadata):
    return Record(id, "archive", type, f"2026-03-01T00:00:{at:02}.000000Z", text, 5, {"metadata": metadata})


@rows(
    ("prompt", "found"),
    [
        ("did we commit webhook.py?", ["tree"]),
        ("did we commit the probe count visibility tests?", ["commit"]),
        ("did we commit the colours of the login page?", []), ("commit webhook.py", []),
    ],
)  # fmt: skip
def test_a_question_for_a_commit_is_answered_by_commits_and_the_state_of_the_work_tree(prompt, found):
    same = {"conversation": "c"}
    records = [
        *(kept(f"f{nth}", text, "outcome", 1) for nth, text in enumerate(FILLER)),
        *(kept(f"asked{nth}", f"Look at webhook.py, part {nth}.", "user_input", 1) for nth in range(4)),
        kept("change", "Changed src/webhook.py: send", "code_change", 2, **same),
        kept("old", "Uncommitted: webhook.py.", "observation", 2, role="tree", **same),
        kept("commit", "[main be94300] Add probe count visibility tests\n\nAdd probe count visibility tests", "outcome", 3, role="commit", **same),
        kept("tree", "The last commit, 617fc5e, was pushed.", "observation", 4, role="tree", **same),
        kept("other", "Nothing was committed in this conversation.", "observation", 5, role="tree", conversation="d"),
        kept("ran", "Ran `git commit -q -m x load.py`: 1a2b3c4 x", "command", 6, conversation="d"),
    ]  # fmt: skip

    assert called(prompt, records) == found


@rows(
    ("prompt", "found"),
    [
        ("Why does the Stripe webhook use jitter?", ["why"]), ("why jitter?", ["why"]),
        ("what is `src/webhook.py` about and why did we choose jitter?", ["why"]),
        ("Why is the login page blue?", []), ("add jitter to the mails", []), ("why though?", []),
    ],
)  # fmt: skip
def test_a_question_for_a_reason_is_answered_by_a_choice_that_gives_one(prompt, found):
    records = [
        *memory("The mails got a new layout."),
        record("why", "let's use jitter in the webhook, because all clients retry at once", "decision"),
        record("without", "Jitter is in the handbook of the webhook now.", "outcome"),
        record("change", "Changed /p/src/webhook.py: send, jitter", "code_change"),
    ]

    assert called(prompt, records) == found


def test_a_question_is_no_answer_to_another():
    asked = "Shall we document the choice of the interactive ledger beside its parser and printer?"

    assert (
        called("When did we make the choice that the ledger is interactive?", memory(asked, type="outcome"))
        == []
    )
    assert called(
        "When did we make the choice that the ledger is interactive?", memory(asked[:-1], type="outcome")
    )
