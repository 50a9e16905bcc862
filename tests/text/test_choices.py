"""Choices: what a person settles, and in whose words."""

from __future__ import annotations

from aether.text.choices import OWN_CHOICES, about_of, own_choice, settled
from tests.tables import rows

TABLE = """\
How should failures be handled?

| Option | Description |
|--------|-------------|
| **A. Silent fallback (Recommended)** | Log the error, proceed without it. |
| **B. Fail** | Return an error. |

Option A seems best because:
- it blocks nobody

Which do you prefer?
"""
A = "**A. Silent fallback (Recommended)** | Log the error, proceed without it."
HOW = "The fix would compare with the **last** state instead of reading all files again."
REVERT = "It works.\n\nWant to just revert to that pattern? We'd only keep `Type()`."


@rows(
    ("reply", "before", "taken", "alone"),
    [
        ("A.", TABLE, A, True),
        ("A. is fine, ensure we log", TABLE, A, False),
        ("we do A after all", TABLE, A, True),
        ("No, a please.", TABLE, A, True),
        ("back to A", TABLE, A, True),
        ("no, A is broken", TABLE, None, True),
        ("no, a bug", TABLE, None, True),
        (
            "I'd like both. but to answer your question B seems good",
            TABLE,
            "**B. Fail** | Return an error.",
            False,
        ),
        (
            "a",
            "Fixed. Should I use jitter (a) or a step (b)? I'd lean to (a).",
            "Should I use jitter (a) or a step (b)?",
            False,
        ),
        (
            "b then",
            "I can either (a) keep the cache, or (b) drop it. I'd lean to (b).",
            "I can either (a) keep the cache, or (b) drop it.",
            False,
        ),
        ("jitter please", "Fixed. Use jitter, or a fixed step?", "Use jitter, or a fixed step?", False),
        ("step", "Use jitter in the first step, or a fixed step?", None, True),
        ("jitter", "Jitter is in. Shall I push?", None, True),
        ("why jitter", "Use jitter, or a fixed step?", None, True),
        ("commit", "Shall I commit, or run the tests?", None, True),
        ("2", "I fixed (1) the lock and (2) the parser.", None, True),
        (
            "yes",
            "Do you want jitter or a step? I recommend jitter.",
            "Do you want jitter or a step? I recommend jitter.",
            True,
        ),
        ("I'd go with B and say so in the name", TABLE, "**B. Fail** | Return an error.", False),
        ("a new test please", TABLE, None, True),
        (
            "I concede defeat. let's go back",
            REVERT,
            "Want to just revert to that pattern? We'd only keep `Type()`.",
            False,
        ),
        ("yes please", "Want me to log it without changing the flow of the run?", None, True),
        (
            "yes, and spawn a review",
            "The recommended order is not there yet.\n" + "It is a report.\n" * 9,
            None,
            True,
        ),
        ("yes", "Want me to push?", None, True),
        ("yes", f"It is too slow.\n\nWant me to fix this? {HOW}", HOW, True),
        ("yes", "Want me to fix this? The fix would be a line in each of the three callers.", None, True),
        ("yes", "I'd suggest:\n- this\n- that", None, True),
        ("let's note that it is obsolete?", "All is done.", "let's note that it is obsolete?", True),
        # The parts of an answer to several questions belong together.
        (
            "A) when it ends\n\nB) I want this as a separate feature",
            "Two questions.",
            "A) when it ends\n\nB) I want this as a separate feature",
            True,
        ),
    ],
)
def test_a_reply_takes_up_the_words_of_the_agent(reply, before, taken, alone):
    choice = settled(reply, before)

    assert (choice and choice.text) == taken
    assert choice is None or choice.asked is not alone


@rows(
    ("said", "cue"),
    [
        ("we should summarise the scope I think, not the entire log", "this, not that"),
        ("Sure, but the tool should handle that for the user, not you in this repo.", "this, not that"),
        ("let's bump it to a follow up", "let's"),
        ("yes, let's do this for the flag, and then let's chat about helpers", "let's"),
        ("I think we should separate the hook types.", "we will"),
        ("We decided to use Postgres.", "we decided"),
        ("ok, I've settled on one lock per home", "we decided"),
        ("we haven't decided on a name yet", ""),
        ("have we decided on a name?", ""),
        ("write a comment there, I'll handle it over there", "I'll handle it"),
        ("intentional - keep it local!", "go with, keep"),
        ("We use SQLite after all, two writers are enough.", "after all"),
        ("We keep the old parser after all.", "after all"),
        ("do we use it after all?", ""),
        ("Use it only after all tests pass", ""),
        ("We keep losing data after all.", ""),
        ("just define the list on line 434 and drop the other", "just do"),
        ("we block this on the default branch, let's remove this restriction", "so let's drop it"),
        ("then, let's note on #162 that nobody needs it any more?", "let's, with a question mark"),
        ("Actually, drop weasyprint: we go back to reportlab, the image got too large.", "back to"),
        ("I think one entry a file is to much", "too much"),
        ("no, drop it again, the risk of a stale cache is too big", "too much"),
        ("B) I want to build this as a separate feature (lastSeen)", "a feature of its own"),
        ("I think the upload fails when the file is too big", ""),
        ("the test suite is too complex", ""),
        ("I want to see this as a diff", ""),
        ("drop the users table and go back to the list", ""),
        ("let's look at the tests again, are they green?", ""),
        ("let's keep the flag, or should we drop it?", ""),
        ("should we keep the flag for now?", ""),
        ("let's look at the tests together", ""),
        ("just keep going until done", ""),
        ("We will lose data if this fails.", ""),
        ("we should not see two rows here", ""),
        ("we should never have used it", ""),
        ("we should have separate logs for each worktree", "we will"),
        ("I'm not sure we should keep it, not now", ""),
        ("let's chat about the helpers, and then let's keep them", ""),
    ],
)
def test_a_person_chooses_by_a_named_cue(said, cue):
    assert own_choice(said) == cue
    assert not cue or cue in OWN_CHOICES


@rows(
    ("option", "text", "about"),
    [
        ("Log the deletion", "The reason is kept but never shown.\n\n**Options:**\n1. Drop it\n2. Log the deletion\n\nWhich?", "The reason is kept but never shown."),
        ("a field of its own", "Two ways.\n\n### (b) a field of its own\n\nThe name stays as it was typed.\n\n```\nx\n```", "The name stays as it was typed."),
        ("keep both", "(a) drop the first one there is\n\n(b) keep both", ""),
        ("Log it", "Which of these?\n\n1. Drop it\n2. Log it", ""),
        ("Log it", "Plan saved to `plan.md`. Two ways are left:\n\n1. Drop it\n2. Log it", "Plan saved to `plan.md`."),
    ],
)  # fmt: skip
def test_an_entry_of_a_list_is_stored_with_what_it_is_about(option, text, about):
    assert about_of(text, option) == about


@rows(
    ("before", "about"),
    [
        ("Added `commit_sha` to the metadata of each checkpoint.", "Added `commit_sha` to the metadata of each checkpoint."),
        ("Added `commit_sha` to the metadata. " * 50, ""),
        ("", ""),
    ],
)  # fmt: skip
def test_an_own_choice_that_points_back_has_what_it_is_about(before, about):
    found = settled("no, let's remove this again, nobody should rely on it", before)

    assert found is not None
    assert (found.own, found.about) == (True, about)
    assert (
        getattr(settled("let's use SQLite for the queue, since it needs no server", before), "about", None)
        == ""
    )
