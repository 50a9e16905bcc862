"""Where it stands: accounts of a conversation, what they report, and the next step."""

from __future__ import annotations

from aether.memory.briefing import sections, standing
from aether.memory.briefing.briefing import brief_lines, briefing
from tests.memory.briefs import NOW, at, count, documents, entry, item, pattern, session
from tests.tables import rows

REPORT = """\
All tests pass.

## What changed

- `load()` now returns the newest session instead of the oldest
- **Kept** `dump()` as it is, because the report reads it

```python
x = 1
```

| a | b |
|---|---|

## Options

- A table would be quicker

Next step: push `main`.

Want me to push?
"""


def answer(text, day=5, **metadata):
    return item(text, "outcome", day=day, role="answer", conversation="c", pointer={"line": 1}, **metadata)


def request(text, day=4):
    return item(text, "user_input", day=day, role="request", conversation="c")


def changed(day=4):
    return item("Changed a.py", "code_change", day=day, hour=2, conversation="c")


def injected(*items):
    newest = sorted(items, key=lambda each: each["metadata"]["timestamp"], reverse=True)
    found = standing.accounts(newest)
    said = standing.reports(found)
    ahead = [line.text for line in standing.next_steps(found, newest)]
    return (
        [line.text for line in (*said["state"], *said["published"], *said["answers"])],
        [line.text for line in said["results"]],
        ahead,
    )


def test_the_last_account_is_injected_in_whole_paragraphs_without_code_tables_options_and_questions():
    state, results, ahead = injected(request("Fix load."), changed(), answer(REPORT))

    assert state == [
        "`load()` now returns the newest session instead of the oldest",
        "Kept `dump()` as it is, because the report reads it",
    ]
    assert results == []
    assert ahead == ["Want me to push?", "Next step: push `main`."]


def test_every_line_is_found_in_the_account():
    whole = " ".join(REPORT.replace("**", "").split())

    assert all(text in whole for lines in injected(changed(), answer(REPORT)) for text in lines)


def test_an_earlier_account_says_what_it_changed_and_not_how_it_was_checked():
    earlier = "- `write()` now keeps the order of the columns instead of sorting\n\n- All 14 tests of `writer_test.py` pass"
    newest = "- `load()` now returns the newest session instead of the oldest"

    state, *_ = injected(
        changed(day=2), answer(earlier, day=3), request("Go on.", 4), changed(day=5), answer(newest, day=6)
    )

    assert state == [
        "`load()` now returns the newest session instead of the oldest",
        "`write()` now keeps the order of the columns instead of sorting",
    ]


def test_an_account_that_the_person_turned_down_is_not_injected():
    kept = answer("Added `a.py`, which reads the log.", day=2)
    dropped = answer("Added `b.py`, which writes the log.", day=5)

    state, results, _ = injected(kept, request("Go on.", 4), dropped, request("nah let's roll back", 6))

    assert state == ["Added `a.py`, which reads the log."]
    assert results == []


def test_an_account_of_work_says_more_than_an_answer_to_a_question():
    work = answer("`save()` now writes the file at once instead of at the end.", day=3)
    later = answer("`load()` reads the file, and it returns what `save()` wrote.", day=5)

    state, _, _ = injected(
        request("Mend save.", 1), changed(2), work, request("How does load work?", 4), later
    )

    assert work["content"] in state


def test_the_options_of_the_last_question_are_the_next_step():
    asked = (
        "**Option 1: Drop the cache** (simple)\n\n**Option 2: Keep the cache**\n\nWhich one do you prefer?"
    )

    assert injected(answer(asked))[2] == [
        "Which one do you prefer?",
        "Option 1: Drop the cache (simple)",
        "Option 2: Keep the cache",
    ]


def test_a_question_that_the_person_replied_to_is_no_next_step():
    asked = answer("Fixed `parser.py`. Should the parser use jitter or a fixed step?", day=3)

    assert injected(asked)[2] == ["Should the parser use jitter or a fixed step?"]
    assert injected(asked, request("Use jitter.", 4))[2] == []


@rows(
    ("said", "state", "ahead"),
    [
        (
            "Jitter is in `a.py`, and 14 tests pass. **Next I will run the load test.**",
            ["Jitter is in `a.py`, and 14 tests pass."],
            ["Next I will run the load test."],
        ),
        (
            "Jitter is in `a.py`, and 14 tests pass. Remaining: the load test.",
            ["Jitter is in `a.py`, and 14 tests pass."],
            ["Remaining: the load test."],
        ),
        (
            "Jitter is in `a.py`, 14 tests pass, and the next release has it.",
            ["Jitter is in `a.py`, 14 tests pass, and the next release has it."],
            [],
        ),
    ],
)
def test_a_sentence_about_what_comes_next_is_no_state(said, state, ahead):
    assert injected(changed(), answer(said)) == (state, [], ahead)


def test_the_tasks_that_are_not_done_are_the_next_step_of_the_newest_plan():
    def plan(text, day):
        return item(text, day=day, role="plan", evidence="machine", conversation="c")

    old, new = plan("[pending] write it", 1), plan("[completed] write it\n[in_progress] test it", 2)

    assert injected(old, new)[2] == ["test it"]


def test_the_tasks_of_a_sub_agent_are_its_own():
    plan = item(
        "[in_progress] write the handbook\n[pending] publish it", role="plan", day=5, conversation="c"
    )
    of_agent = item("[in_progress] read the code", role="plan", day=6, caste="scout", conversation="c")

    assert injected(request("Write it."), plan, of_agent)[2] == ["write the handbook", "publish it"]


def test_what_sub_agents_reported_is_injected_until_the_main_agent_reports():
    report = item(
        "Added `useTodos()`, which stores the list in the browser.", "outcome", day=6, caste="builder", role="answer",
        conversation="c",
    )  # fmt: skip
    older = item("Added `Todo`.", "outcome", day=3, caste="builder", role="answer", conversation="c")
    under_way = answer("Now the page:", day=5, fate="cut")
    asked = request("Build the page.", 4)

    def reported(*items):
        return [line.text for line in standing.delegated(items)]

    assert reported(report, under_way, asked, older) == [
        "Added `useTodos()`, which stores the list in the browser."
    ]
    assert reported(answer("The page is built.", day=7), report, under_way, asked) == []


def test_a_request_that_was_reported_on_is_not_open_while_the_agent_goes_on():
    asked, done = request("Speed it up.", 4), answer("Both run at the same time now.", day=5)
    cut = answer("Checking what is tracked:", day=6, fate="cut")

    assert standing.under_way([cut, asked])
    assert not standing.under_way([cut, done, asked])
    stopped = answer("Both run at the same time now.", day=5, fate="interrupted")
    assert standing.under_way([stopped, asked])
    assert standing.reported_on([request("Go on.", 7), stopped, asked]) == set()
    assert standing.reported_on([request("Go on.", 7), done, asked]) == {asked["id"]}


def test_the_last_report_is_shown_from_its_first_sentences_on():
    gaps = "\n\n1. `sync()` has no test of a pruned branch, and it deletes what it does not know."
    short = "Short answer: not enough to trust it yet."

    assert injected(request("Is it tested?"), answer(f"{short}{gaps}"))[0][0] == short
    # Of an earlier report this is history, and so is the opening of a list or of work that was stopped.
    newer = (request("And the docs?", 6), answer("`docs.md` has all of it; nothing is left to write.", day=7))
    assert short not in injected(request("Is it tested?"), answer(f"{short}{gaps}"), *newer)[0]
    opens = "The gaps that I would close first are these:"
    assert opens not in injected(request("Is it tested?"), answer(f"{opens}{gaps}"))[0]
    stopped = answer(f"{short}{gaps}", fate="interrupted")
    assert short not in injected(request("Is it tested?"), stopped)[0]


@rows(
    ("opening", "shown"),
    [
        ("I would not merge it as it is. Two things are open.", "I would not merge it as it is. Two things are open."),
        ("Good question! No duplication. Is it clear what differs?", "No duplication."),
        ("Done. I made two changes:", ""),
        ("No, not under all threats, but you could turn it off. Let me show why.", "No, not under all threats, but you could turn it off."),
        ("It reads the newest one. Next, I will add the metric.", "It reads the newest one."),
        ("Yes, that is how it works.", ""),
        ("Yes, it does.", ""),
        ("Good catch.", ""),
        ("Perfect. Understood.", ""),
        ("This project uses SQLite alone.", "This project uses SQLite alone."),
        ("Good catch, there is one more.", "Good catch, there is one more."),
        ("OK to merge once the log is kept.", "OK to merge once the log is kept."),
        ("Not safe: callers that retry lose data.", "Not safe: callers that retry lose data."),
        ("No, it is not enough.", "No, it is not enough."),
        ("The queue could be split, which would remove the lock.", ""),
        ("Now I understand the order of the sessions.", ""),
        ("Yeah, let me take stock of the whole list.", ""),
        ("Fixed.", ""),
    ],
)  # fmt: skip
def test_of_the_opening_of_the_last_report_what_answers_is_shown(opening, shown):
    rest = "1. `load()` reads the newest session, because the oldest is stale."
    state, *_ = injected(request("Is it twice there?"), answer(f"{opening}\n\n{rest}"))

    assert state[:-1] == ([shown] if shown else [])


def ahead_of(*items):
    """Return the next steps after the `items` of one conversation, the newest first."""
    return [line.text for line in standing.next_steps(standing.accounts(items), items)]


def test_a_question_is_shown_with_the_way_that_it_offers():
    way, then = "I could share a `fetch()` helper.", "That is little work."
    ask = "Would you prefer the common logic in one place?"

    def asked(*said):
        return ahead_of(answer(f"Both functions in `a.py` are small.\n\n{' '.join(said)}"))

    assert asked(way, ask) == [f"{way} {ask}"]
    assert asked(way, then, ask) == [f"{way} {then} {ask}"]
    assert asked(way, f"{'It is work' * 40}.", ask) == [f"{way} … {ask}"]
    assert asked("They differ in `b`.", ask) == [ask]


def test_that_the_branch_is_ready_holds_until_something_else_happens():
    said = [
        "PR #90 is ready for merge.",
        "The branch now sits on top of `main` at `53a216b8`.",
        "Added `a.py`, which reads the newest session.",
    ]
    report = answer("\n\n".join(said), day=4)

    asked = request("Finish it.", 2)
    assert injected(asked, changed(3), report)[0] == said
    assert injected(asked, changed(3), report, request("And b?", 5))[0] == said[-1:]


def test_a_task_in_progress_is_marked():
    plan = item("[in_progress] read `a.py`\n[pending] read `b.py`", "observation", day=5, role="plan")

    def marks(*items):
        return [(line.text, line.note) for line in standing.next_steps([], items)]

    assert marks(plan, request("Read both.", 4)) == [("read `a.py`", "in progress"), ("read `b.py`", "")]
    # What a report followed is more often done and not ticked off.
    done = answer("Both are read, and their rows are in the list of all sessions.", day=6)
    assert ("read `a.py`", "") in marks(done, plan, request("Read both.", 4))


@rows(
    ("said", "ahead"),
    [
        ("Next.js 15 with the router of `app/`", False),
        ("Next-auth reads `auth.ts`", False),
        ("The TODO app keeps its list in `list.ts`", False),
        ("Next: the router of `app/`", True),
        ("To do: the router of `app/`", True),
        ("TODO - the router of `app/`", True),
    ],
)
def test_what_is_named_next_or_to_do_is_no_step(said, ahead):
    shown = ahead_of(answer(f"Added `a.ts`, which keeps the list.\n\n{said}"))

    assert shown == ([said] if ahead else [])


@rows(
    ("heading", "ahead"),
    [
        ("TODO app", False),
        ("Todo endpoints", False),
        ("Next-gen list", False),
        ("Next.js", False),
        ("Still to do", True),
        ("TODOs (1)", True),
        ("TODO items", True),
        ("Next-Steps", True),
    ],
)
def test_below_a_heading_that_names_what_is_to_do_are_steps(heading, ahead):
    shown = ahead_of(answer(f"Added `a.ts`.\n\n## {heading}\n\n- the list of `b.ts` in order"))

    assert shown == (["the list of `b.ts` in order"] if ahead else [])


def test_where_something_is_and_what_leads_in_say_nothing():
    said = [
        "Based on my search of the code, here's where `load()` is used.",
        "Located in: `a/load.py` (lines 5-9)",
        "Test Function: `test_load` (lines 15-27)",
        "Added `load()`, which reads the newest session.",
    ]
    state, *_ = injected(request("Where is it?"), answer("\n\n".join(said)))

    assert state == said[-1:]


def test_examples_of_use_are_no_facts():
    said = "`share` is stored with each commit.\n\n## Use cases\n\n- Dashboard: `average share: 73%` over 40 commits"

    assert injected(request("What is it for?"), answer(said))[0] == ["`share` is stored with each commit."]


def test_an_answer_without_names_is_shown_if_it_is_the_last_word():
    said = "Yeah, it should simply be inlined, because nobody else calls it."

    assert injected(request("Why is it a function?"), answer(said))[0] == [said]
    praised = f"Great question, and thank you for asking it! {said}"
    assert injected(request("Why is it a function?"), answer(praised))[0] == [said]


def test_what_is_made_is_injected_while_there_is_no_report_on_it():
    made = item(
        "I'm adding a queue in `src/queue.py` that the workers share.", day=5, role="change", conversation="c"
    )

    assert [line.text for line in standing.reasons([made, request("Add a queue.")])] == [made["content"]]
    assert [*standing.reasons([answer("Added `src/queue.py`.", day=6), made, request("Add a queue.")])] == []


def test_of_a_turn_that_was_cut_off_its_last_messages_are_the_state():
    asked, before = request("Add a queue.", 4), answer("Added the store.", day=3)
    said = [
        item(text, day=5, hour=hour, role=role, conversation="c")
        for hour, (role, text) in enumerate([
            ("change", "Moved the queue into `src/queue.py`; all tests pass. I'm wiring the workers to it."),
            ("said", "Let me look at the workers."),
            ("said", "`make test` fails in `test_queue.py`, because nobody closes the queue."),
            ("change", "I'm closing the queue in `Workers.stop()`, so that the test ends."),
            ("change", "The test ends now. I'm adding the same to `Pool.stop()`."),
        ])
    ]  # fmt: skip
    items = [*reversed(said), asked, before]

    assert [line.text for line in standing.last_words(items)] == [said[at]["content"] for at in (4, 3, 2, 0)]
    assert [*standing.last_words([answer("The queue is done.", day=6), *items])] == []
    assert [*standing.last_words([asked, before])] == []


@rows("step", [("Changed src/pool.py: stop", "code_change"), ("Ran `make test`: 4 passed", "command")])
def test_what_was_said_before_the_last_step_is_no_state(step):
    early = item("The parser is fixed. I'm adding its tests.", day=5, hour=1, role="said", conversation="c")
    stepped = item(step[0], step[1], day=5, hour=2, conversation="c")
    late = item(
        "`make lint` complains about `src/pool.py`.\n```\nE501\n```",
        day=5,
        hour=3,
        role="said",
        conversation="c",
    )

    shown = standing.last_words([late, stepped, early, request("Fix the parser.", 4)])

    assert [line.text for line in shown] == ["`make lint` complains about `src/pool.py`."]


def test_what_an_unfinished_turn_announced_is_no_next_step_after_a_command():
    asked, cut = (
        request("Fix the parser.", 4),
        answer("I need to fix the dates in `a.py`.", day=5, fate="cut"),
    )
    ran = item("Ran `make test`: 4 passed", "command", day=6, conversation="c")

    assert ahead_of(cut, asked) == ["I need to fix the dates in `a.py`."]
    assert ahead_of(ran, cut, asked) == []


def test_why_something_was_edited_is_shown_of_the_last_turns():
    def turn(day):
        why = f"I'm keeping `part{day}()` as it is, because the report reads it."
        return [
            changed(day),
            item(why, day=day, role="change", conversation="c"),
            request(f"Do part {day}.", day),
        ]

    items = [one for day in (9, 8, 7, 6, 5, 4) for one in turn(day)]

    assert [line.text.split("`")[1] for line in standing.reasons(items)] == [
        f"part{day}()" for day in (9, 8, 7, 6, 5)
    ]


@rows(
    ("last", "ahead"),
    [
        (
            "All steps are pushed.\n\nStill clearly open from the plan:\n- a lock around `load()`\n- tests of `dump()`",
            ["Still clearly open from the plan: - a lock around `load()` - tests of `dump()`"],
        ),
        (
            "Open:\n- the lock around `load()` is not released after an error\n- nobody has tested `dump()` on a full disk",
            ["the lock around `load()` is not released after an error", "nobody has tested `dump()` on a full disk"],
        ),
        (
            "The branch is rebased. Want me to push it with force?\n\n- `load()` is in `a.py`\n\nAll tests pass.",
            ["The branch is rebased. Want me to push it with force?"],
        ),
        ("Is it needed? No, nobody calls `load()`.\n\nIt was there for `dump()`.\n\nAll tests pass.", []),
        (
            "Two ways:\n\n| Way | What |\n|---|---|\n| A. Log it | the call goes on as before |\n| B. Fail | the call ends with an error |\n\nWhich do you prefer?",
            ["Which do you prefer?", "A. Log it | the call goes on as before", "B. Fail | the call ends with an error"],
        ),
        (
            "Two gaps:\n\n- nobody tests `load()`\n- `dump()` has no limit\n\nShall I fix these?",
            ["Two gaps: - nobody tests `load()` - `dump()` has no limit", "Shall I fix these?"],
        ),
        ("Added `load()`. The third task (`dump()`) remains pending.", ["Added `load()`. The third task (`dump()`) remains pending."]),
        ("After that I added `load()` to the parser.", []),
        ("After that we will add `load()` to the parser.", ["After that we will add `load()` to the parser."]),
        ("Added `load()`. If you want, I can add `dump()` next.", ["If you want, I can add `dump()` next."]),
        ("Added `load()`. I can add `dump()` too if you'd like.", ["I can add `dump()` too if you'd like."]),
    ],
)  # fmt: skip
def test_what_is_still_open_or_offered_at_the_end_is_ahead(last, ahead):
    assert injected(answer(last))[2] == ahead


def test_what_an_earlier_account_put_off_is_injected_first():
    left = "**#2 Integration tests** - deferred (can be follow-up)"
    before = answer(f"`save()` now keeps the order instead of the names.\n\n- {left}", day=2)
    asked = answer("There is no test of `dump()` with two sessions. It reads `a.py`.", day=3)
    now = answer("`load()` now reads `b.py` instead of `a.py`.", day=6)

    _, results, _ = injected(
        changed(1), before, request("?", 2), asked, request("Go on.", 4), changed(5), now
    )

    assert results == [
        "There is no test of `dump()` with two sessions. It reads `a.py`.",
        left.replace("**", ""),
    ]


def test_a_name_puts_nothing_off():
    asked = answer("Want me to change either? This is the branch `fix-deferred-helper` of `a.py`.", day=2)
    now = answer("`load()` now reads `b.py` instead of `a.py`.", day=6)

    assert injected(changed(1), asked, request("Both.", 4), changed(5), now)[1] == []


def test_a_question_that_names_nothing_comes_with_the_proposal_before_it():
    asked = "The map is written twice.\n\nWe could search the registered agents instead.\n\nWant me to make that change?"

    assert injected(answer(asked))[2] == [
        "We could search the registered agents instead.",
        "Want me to make that change?",
    ]


def test_only_the_message_of_a_commit_after_the_newest_account_is_injected():
    def commit(text, day):
        return item(
            f"[main 1a2b3c4] {text}\n\n{text}\n\nAdded `{text[-1]}.py`, which reads it.",
            "outcome",
            day=day,
            role="commit",
            evidence="machine",
            conversation="c",
        )

    said = "`load()` now reads the file without a cache, because the cache was stale."
    items = [commit("Keep a", 1), request("Drop it.", 2), changed(3), commit("Drop b", 4)]

    assert injected(*items, answer(said, day=5))[:2] == ([said], [])
    assert injected(*items, answer(said, day=5), commit("Read c", 6))[0] == [
        said, "1a2b3c4 Read c", "Added `c.py`, which reads it.",
    ]  # fmt: skip
    # One that only names the commit leaves the rest to it.
    assert "1a2b3c4 Drop b" in injected(*items, answer("Committed as `1a2b3c4`.", day=5))[0]


@rows(("kind", "shown"), [("pull", True), ("issues", False)])
def test_a_pull_request_before_the_newest_account_is_injected_by_its_address(kind, shown):
    made = item(
        f"https://example.org/{kind}/7\n\nAdd a reader\n\n- `load()` reads the newest session", "observation", day=2,
        role="commit", conversation="c",
    )  # fmt: skip
    report = "Added `a.py` to the page, because nothing else on it showed the newest session."
    said = standing.reports(standing.accounts([answer(report, day=5), changed(3), made]))

    assert [line.text for line in said["state"]] == [report]
    assert [line.text for line in said["published"]] == (
        ["https://example.org/pull/7 Add a reader"] if shown else []
    )


@rows(
    ("opening", "shown"),
    [
        ("**Fix:** Added a check that skips any link it meets:", True),
        ("**Fix:** Two fixes for what was seen in the manual tests:", False),
        ("## Added a check that skips any link it meets:", False),
    ],
)
def test_a_line_above_a_block_of_code_that_says_what_was_changed_is_no_heading(opening, shown):
    state, *_ = injected(
        answer(f"All is well in `a.py`, and the tests pass.\n\n{opening}\n\n```\nif link: skip\n```")
    )

    assert (opening.replace("**", "").rstrip(":") in state) is shown


@rows(
    ("opening", "shown"),
    [
        ("It is clear now. Two tests use both `t.Parallel()` and `os.Chdir()`:", True),
        ("Task 2 — the places (`reader.py:82-100`):", True),
        ("Two more of the tests are of this kind:", True),
        ("You could change one of these in `reader.py`:", False),
    ],
)
def test_an_entry_of_a_list_is_injected_with_the_line_that_opens_it(opening, shown):
    entry = "`reader_test.py` has `t.Parallel()` at line 36, and only there"
    state, *_ = injected(answer(f"Removed `a.py`, and the tests pass.\n\n{opening}\n- {entry}\n"))

    assert state[1:] == ([f"{opening} - {entry}"] if shown else [])


def test_a_long_list_is_injected_by_its_entries_after_the_sentence_that_opens_it():
    opening = "Two tests use both `t.Parallel()` and `os.Chdir()`:"
    entries = [
        f"`reader_{n}_test.py` calls `t.Parallel()` at line {n}, {'and again ' * 14}there" for n in (3, 5)
    ]
    state, *_ = injected(answer("\n- ".join([f"It is clear now. {opening}", *entries])))

    assert state == [opening, *entries]


@rows(
    ("last", "asked"),
    [
        ("Would you like me to:\n1. Drop `a.py`\n2. **Test** `b.py`", ["Would you like me to: 1. Drop `a.py` 2. Test `b.py`"]),
        ("I'd go with the lock, because it is there already.\n\nDoes that make sense?", ["I'd go with the lock, because it is there already."]),
        ("The lock comes first, since all others need it. Want to start there?", ["The lock comes first, since all others need it. Want to start there?"]),
        ("## 1. The lock\n\nIt is free.\n\nShall I push `main`?", ["Shall I push `main`?"]),
        ("| Comment | Fix |\n|---|---|\n| the lock of `a.py` | Added docs on why it is held |\n\nReady to commit these changes?", ["Ready to commit these changes?"]),
        ("## 1. The lock\n\nIt is free.\n\n## 2. The queue\n\nIt is new.\n\nWhich do you prefer?", ["Which do you prefer?", "1. The lock", "2. The queue"]),
    ],
)  # fmt: skip
def test_the_next_step_is_what_the_person_is_asked(last, asked):
    *_, ahead = injected(request("Look at it."), answer(f"Read `a.py` and `b.py`.\n\n{last}"))

    assert ahead == asked


@rows(
    ("reply", "work", "check", "waits"),
    [
        ("can you explain the gate? I don't follow", False, " Does that make sense?", True),
        ("what does the gate cost?", False, " Does that help? Happy to say more.", True),
        ("what does the gate cost?", False, "", False),
        ("what does the gate cost?", True, " Does that help?", False),
        ("yes, and what about the docs?", False, " Does that help?", False),
        ("can you revert it?", False, " Does that help?", False),
    ],
)
def test_a_question_waits_while_the_person_asks_back_and_the_answer_only_asks_whether_it_is_clear(
    reply, work, check, waits
):
    asked = answer("Two ways to do it. Want me to add the gate to `load()`?", day=3)
    later = [changed(day=5)] if work else []
    *_, ahead = injected(
        asked, request(reply, 4), *later, answer(f"The gate is one line in `load()`.{check}", day=6)
    )

    assert ahead == (["Want me to add the gate to `load()`?"] if waits else [])


@rows(
    ("reply", "kept"),
    [
        ("can you revert this change?", False),
        ("please undo it", False),
        ("should we revert to polling?", True),
    ],
)
def test_work_that_the_person_wants_undone_is_not_injected_though_a_question_came_between(reply, kept):
    state, results, _ = injected(
        answer("Added `a.py`, which reads the log.", day=1),
        request("Poll it.", 2), changed(day=2), answer("Added `b.py`, which polls instead.", day=3),
        request("not sure I like it", 4), answer("There are three ways.", day=5),
        request(reply, 6),
    )  # fmt: skip

    assert ("Added `b.py`, which polls instead." in state + results) is kept


def test_what_the_newest_account_leaves_open_and_the_start_of_a_long_sentence_are_state():
    long = (
        "The fix: `load()` now reads the newest session; "
        + "`dump()` keeps the order of its columns and rows; " * 9
    )
    left = "The rounding of `sum()` is left unaddressed for now — let me know if you want it."

    state, *_ = injected(answer(f"Done.\n\n{long}\n\n{left}"))

    assert state[-1] == left
    assert state[0].startswith("The fix: `load()` now reads the newest session; `dump()`")
    assert state[0].endswith("of its columns and rows")


def test_what_an_answer_says_that_reports_no_work_is_no_state():
    design = "`load()` reads the newest session, and `dump()` keeps the order of its columns."
    ran = item("Ran `make deploy`: ok", "command", day=5, conversation="c")

    def sections_of(*items):
        found = standing.reports(standing.accounts(items))
        return {name: len(found[name]) for name in ("state", "answers")}

    assert sections_of(answer(design, day=6), request("How?", 4)) == {"state": 0, "answers": 1}
    assert sections_of(answer(design, day=6), changed(5), request("Do it.", 4)) == {"state": 1, "answers": 0}
    assert sections_of(answer(design, day=6), ran, request("Do it.", 4)) == {"state": 1, "answers": 0}
    assert sections_of(answer(f"Added it. {design}", day=6), request("Do it.", 4)) == {
        "state": 1,
        "answers": 0,
    }


def test_of_answers_only_the_last_two_are_shown():
    said = [
        answer(f"`part{day}()` only reads the index, and it keeps the order instead of sorting.", day=day)
        for day in (9, 8, 7)
    ]
    items = [one for each in said for one in (each, request("And the next?", 1))]

    shown = standing.reports(standing.accounts(items))["answers"]

    assert [line.text[:7] for line in shown] == ["`part9(", "`part8("]


def test_rows_of_options_and_what_was_wrong_are_no_state():
    asked = "Which way?\n\n| A. Log it | `load()` logs the error and returns what it has |\n| B. Fail | `load()` returns the error |\n\nI prefer the first."
    wrong = "Fixed in `a.py`.\n\n**What was actually wrong** — two faults:\n1. `load()` returns the oldest session\n2. `dump()` only keeps one row"

    assert injected(answer(asked))[0] == []
    assert injected(changed(), answer(wrong))[0] == ["Fixed in `a.py`."]


def test_a_list_of_which_most_entries_are_state_is_whole():
    entries = ["`load()` now reads the newest session", "`dump()` keeps one row", "the handbook"]
    state, *_ = injected(
        answer("All three are fixed:\n\n" + "\n".join(f"- {one} in the end" for one in entries))
    )

    assert [one for one in entries if not any(one in line for line in state)] == []


def test_edits_that_a_person_wants_undone_are_no_changed_files():
    def edit(name, day):
        return item(f"Changed {name}", "code_change", day=day, conversation="c")

    back = request("can you revert this change?", 5)
    items = [edit("a.py", 6), back, edit("a.py", 4), request("Add a flag.", 3), edit("b.py", 2)]

    assert [line.text for line in sections.changed_files(items)] == ["b.py (changed, 1 edit)"]
    assert len(sections.changed_files([edit("a.py", 6), request("Go on.", 5), *items[2:]])) == 2


@rows(
    ("reply", "then", "left"),
    [
        ("can you revert this change?", ["edit"], 0),
        ("can you revert this change?", [], 0),  # it is being done
        ("can you revert that, only the flag please", ["edit"], 1),
        ("undo it; keep the retry though", ["edit"], 1),
        ("can you revert this?", ["declined", "leave it then"], 1),
    ],
)
def test_only_what_was_undone_whole_is_left_out(reply, then, left):
    work = answer("Added `a.py`, which reads the log, and `b.py` now writes it.", day=3)
    items = [request(reply, 4), work, changed(2), request("Add a flag and a retry.", 1)]
    more = {
        "edit": changed(5),
        "declined": answer("It is needed.", day=5),
        "leave it then": request("ok, leave it", 6),
    }
    items = [*reversed([more[name] for name in then]), *items]

    assert len(standing.reports(standing.accounts(items))["state"]) == left


def test_what_was_wrong_before_the_work_is_not_its_state():
    said = "## What was wrong\n\n`load()` dropped the newest session.\n\n## Fix\n\n`load()` now keeps the newest session."

    assert injected(request("Fix it."), changed(), answer(said))[0] == [
        "`load()` now keeps the newest session."
    ]
    done = [changed(day=1), answer("Added `a.py`.", day=2)]
    assert "`load()` dropped the newest session." in injected(*done, request("Why?", 3), answer(said))[0]


def test_a_pull_request_is_named_by_its_address():
    made = item(
        "https://example.org/pull/7\n\nAdd a reader\n\n- `load()` reads the newest session", "observation", day=6,
        role="commit", conversation="c",
    )  # fmt: skip

    assert injected(request("Open it."), made)[0][0] == "https://example.org/pull/7 Add a reader"


def test_what_a_commit_says_was_wrong_is_no_state_of_the_work():
    made = item(
        "[main 1a2b3c4] Read the newest session\n\nRead the newest session\n\n`load()` returned the oldest session, because of the order.",
        "outcome", day=6, role="commit", conversation="c",
    )  # fmt: skip

    said = standing.reports(standing.accounts([made, changed(3)]))

    assert said["state"] == []
    assert [line.text for line in said["published"]][-1] == (
        "`load()` returned the oldest session, because of the order."
    )


def test_names_below_an_entry_belong_to_it():
    state, *_ = injected(
        answer("Changed:\n- Added the commands of the reader:\n  - `load --dry-run`\n  - `check`\n- Kept `dump()`, because it is read.\n- `make test ARGS='-run all of them'`")
    )  # fmt: skip

    assert state == [
        "Changed: - Added the commands of the reader: - `load --dry-run` - `check` - Kept `dump()`, because it is read. - `make test ARGS='-run all of them'`"
    ]


@rows(
    ("said", "injected_as"),
    [
        (
            "Readers should use the log of their session, instead of the `print` of today. Let me fix them.",
            ["Readers should use the log of their session, instead of the `print` of today."],
        ),
        (
            "It is in `a.py`. Let me add `HASH_LENGTH` there, so that all names of branches have it:",
            ["Let me add `HASH_LENGTH` there, so that all names of branches have it"],
        ),
        ("It is in `a.py`. Let me add `HASH_LENGTH` there and use it for all names of branches:", []),
        ("Let me look at `a.py` so that I can find it.", []),
        ("The reason is one that `a.py` gives away in its first few lines:", []),
        ("Now I see the problem in `a.py`.", []),
        ("Both should use `write_rows()` instead of the `print` of today.", []),
        ("It should use `write_rows()` instead of the `print` of today.", []),
        ("I need to use `paths.NAME` instead of the constant `NAME`.", []),
    ],
)
def test_the_reason_of_an_edit_that_followed_is_injected(said, injected_as):
    made = item(said, role="change", conversation="c")

    assert [line.text for line in standing.reasons([made])] == injected_as
    assert list(standing.reasons([item(said, role="said")])) == []


def test_the_work_of_another_conversation_is_not_injected():
    mine = answer("Added `a.py` to the page.", day=2)
    other = {**answer("Added `b.py` to the page.", day=3)}
    other["metadata"] = {**other["metadata"], "conversation": "d"}

    assert standing.of_conversation([other, mine], "c") == [mine]
    assert standing.of_conversation([other, mine], "") == [other]
    assert standing.of_conversation([other, mine], "unknown") == [other]


def test_the_parts_of_the_hosts_summary_count_until_an_account_is_newer():
    def part(role, text, day):
        return item(text, day=day, role=role, conversation="c")

    items = [part("next", "Run `make test` and push.", 6), part("pending", "- the docs\n- the page", 6)]
    old, new = (
        standing.accounts([answer("Added `a.py`.", day=5)]),
        standing.accounts([answer("Pushed.", day=7)]),
    )

    assert [line.text for line in standing.from_summary(old, items, "next", "pending")] == [
        "Run `make test` and push.", "the docs", "the page",
    ]  # fmt: skip
    assert list(standing.from_summary(new, items, "next", "pending")) == []


def test_later_words_of_a_person_end_the_rule_or_decision_that_they_name():
    mocks = item("No mocks in integration tests.", "constraint", day=2, conversation="c")
    tabs = item("Never use tabs.", "constraint", day=2, hour=1, conversation="c")
    field = item("keep the endpoint in a field", "decision", day=3, conversation="c", reply="let's do b")
    cases = {
        "The rule about mocks is gone.": {mocks["id"]},
        "Forget that rule about tabs, please.": {tabs["id"]},
        "Don't forget the rule about tabs.": set(),
        "Is the rule about mocks gone?": set(),
        "The old rule is gone.": set(),  # which of two?
        "The rule about commits is gone.": set(),
        "nah, roll back": {field["id"]},
        "roll back the migration": set(),
        "We do A after all.": {field["id"]},
        "Did it work after all?": set(),
    }

    for said, ended in cases.items():
        items = [request(said, day=6), field, tabs, mocks]
        assert {*sections.revoked(items)} == ended, said
    assert sections.revoked([request("The old rule is gone.", day=6), mocks]) == {mocks["id"]: at(6)}
    later = item("The tests are slow.", "user_input", day=5, conversation="c")
    assert sections.revoked([request("nah, roll back", day=6), later, field]) == {}


def test_a_rule_that_was_said_twice_ends_as_one():
    first, again = (item("Never use tabs.", "constraint", day=day) for day in (2, 3))
    newer = item("Never use tabs.", "constraint", day=8)

    ended = sections.revoked([newer, request("The rule about tabs is gone.", day=6), again, first])

    assert ended == {first["id"]: at(6), again["id"]: at(6)}


def binding(memory):
    """Return the rules and decisions that a start is given."""
    lines = brief_lines(
        {**documents(), "memory": memory}, occasion="startup", now=NOW, count=count, budget=700
    )
    return [line.text for line in lines if line.section in ("rules", "decisions", "learned")]


@rows("kept", ["working_memory", "session", "same session"])
def test_a_compressed_rule_ends_by_later_words_wherever_those_are(kept):
    said = request("The rule about mocks is gone, use them.", day=12)
    rules = [entry("Never use mocks.", "constraint"), entry("Never use tabs.", "constraint")]
    decided = [("We keep the lexer.", "it is fast")]
    sessions = {
        "working_memory": [session("s1", day=10, entries=rules, decisions=decided)],
        "session": [
            session("s1", day=10, entries=rules, decisions=decided),
            session("s2", day=12, items=[said]),
        ],
        "same session": [session("s1", day=10, entries=rules, decisions=decided, ended=["Never use mocks."])],
    }[kept]
    items = [said] if kept == "working_memory" else []
    learned = [] if kept == "same session" else [pattern("Never use mocks.", day=10)]

    found = documents(*items, sessions=sessions, patterns=learned)

    assert binding(found["memory"]) == ["Never use tabs.", "We keep the lexer. - it is fast"]
    assert binding(documents(sessions=sessions[:1], patterns=learned)["memory"]) == (
        ["Never use tabs.", "We keep the lexer. - it is fast"]
        if kept == "same session"
        else ["Never use mocks.", "Never use tabs.", "We keep the lexer. - it is fast"]
    )


def test_a_session_does_not_keep_a_rule_that_was_ended():
    mocks = item("Never use mocks.", "constraint", day=2)
    said = request("The rule about mocks is gone, use them.", day=6)
    later = [request(f"Read page {number} of the report, please.", day=7 + number) for number in range(12)]
    held = [mocks, said, *later]

    kept = sections.kept_items(held, sections.revoked(held))

    assert mocks not in kept
    assert later[-1] in kept


def test_the_rows_of_a_table_are_injected_but_not_its_head():
    said = "Done:\n\n| Comment | What was changed |\n|---|---|\n| **Order** (line 22) | `load()` now sorts by time |\n| 7 | 8 |\n"

    assert injected(request("Fix the order."), changed(), answer(said))[0] == [
        "Order (line 22) | `load()` now sorts by time"
    ]


def test_work_done_by_commands_alone_has_accounts_too():
    first = answer("Updated 35 files: the module is now `acme/tool`, and `go.mod` says so.", day=5)
    second = answer("`go vet` passes, and all 16 packages pass their tests.", day=7)

    state, _, _ = injected(
        request("Rename the module.", day=4), first, request("Does it compile?", day=6), second
    )
    assert first["content"] in state
    assert second["content"] in state


def test_what_was_before_the_work_is_not_its_state():
    said = "Cut at runes:\n\n- Before: `text[:77]` cut letters in two\n- After: `cut(text, 77)` keeps letters whole\n"

    assert injected(request("Fix it."), changed(), answer(said))[0] == [
        "Cut at runes: - After: `cut(text, 77)` keeps letters whole"
    ]


def test_of_an_opening_that_names_nothing_only_the_rest_is_injected():
    said = "Great, exactly that is fixed now. I changed `load()` and `save()` so that both sort by time:\n\n```\nx\n```"

    assert injected(request("Fix it."), changed(), answer(said))[0] == [
        "I changed `load()` and `save()` so that both sort by time"
    ]


def test_the_text_of_an_issue_is_no_account_of_work():
    filed = "https://example.com/acme/tool/issues/7\n\nFollow fewer redirects\nThe client follows 10 redirects, and `push` then fails."
    issue = item(filed, "outcome", day=6, role="commit", conversation="c")

    state, results, _ = injected(
        request("File it."), changed(), answer("Now `load()` sorts by time, and keeps the names."), issue
    )
    assert not any("10 redirects" in line for line in state + results)


def test_a_next_step_with_a_command_holds_until_such_a_command_ran():
    planned = answer("Next step when ready: `git tag v1 && git push origin v1` for a trial run.", day=5)
    later = answer("`load()` now sorts by time.", day=8)
    ran = item("Ran `git tag v1`", "command", day=7, conversation="c")

    assert injected(request("Go."), changed(), planned, later)[2] == [planned["content"]]
    assert injected(request("Go."), changed(), planned, ran, later)[2] == []


def test_a_name_of_two_words_is_no_command():
    said = answer("The next step is `probe visibility`: tests that count the probes.", day=5)

    assert injected(request("Go."), changed(), said, answer("`load()` now sorts by time.", day=8))[2] == []


def test_a_sentence_that_reports_is_no_heading_of_open_work():
    said = "This commit also carried the pending work that was left in the tree from earlier turns:\n- `save()` is now gated by a flag and skips empty files"
    state, _, ahead = injected(request("Go."), changed(), answer(said))

    assert ahead == []
    assert any("`save()` is now gated by a flag and skips empty files" in one for one in state)


def test_a_question_that_was_answered_since_does_not_hide_the_work():
    work = item(
        "`load()` in `a.py` now sorts by time, and all tests pass.",
        "outcome",
        day=1,
        conversation="work",
        role="answer",
    )
    asked = item("What is next?", "user_input", day=2, conversation="chat", role="request")
    said = item("The tests are next.", "outcome", day=2, hour=1, conversation="chat", role="answer")

    assert standing.of_conversation([said, asked, work]) == [work]
    assert standing.of_conversation([said, asked]) == [said, asked]


def test_a_rule_ends_although_patterns_and_architects_put_it_in_other_words():
    rule = item("Please, always run the linters before a commit.", "constraint", day=2)
    learned = {**pattern("Run the linters before every commit.", day=2), "id": "learned"}
    other = {**pattern("Never use tabs in Go files.", day=2), "id": "other"}
    entries = [entry("The project wants linters to pass before anything is committed.", "constraint")]
    summed = session(
        "s", day=4, backend="ollama", items=[rule], entries=entries, decisions=[("Linters run in CI", "")]
    )
    said = request("The rule about linters is dropped.", day=3)

    memory = documents(said, sessions=[summed], patterns=[learned, other])["memory"]

    ended = sections.revoked_in(memory)
    assert set(ended) == {rule["id"], "learned", "s/rule 0", "s/decision 0"}
    assert set(ended.values()) == {at(3)}
    assert binding(memory) == ["Never use tabs in Go files."]


def test_what_is_marked_as_ended_needs_no_words_and_makes_no_name_ambiguous():
    over = item("Never use mocks in Go.", "constraint", day=1, ended_at=at(2))
    rule = item("Never use mocks.", "constraint", day=3)
    known = {**pattern("Never use mocks in Python", day=1), "metadata": {"ended_at": at(2)}, "id": "p"}
    memory = documents(request("The rule about mocks is dropped.", day=4), rule, over, patterns=[known])[
        "memory"
    ]

    assert sections.revoked_in(memory) == {over["id"]: at(2), "p": at(2), rule["id"]: at(4)}
    assert sections.revoked_in(documents(over, patterns=[known])["memory"]) == {over["id"]: at(2), "p": at(2)}


def test_words_without_a_name_end_nothing_that_was_learned_elsewhere():
    memory = documents(
        item("The rule is dropped.", "user_input", day=9), patterns=[pattern("Never use mocks")]
    )["memory"]

    assert sections.revoked_in(memory) == {}


def test_a_rule_of_all_projects_ends_in_the_home_where_it_was_said():
    wide = documents(
        item("Never use tabs.", "constraint", day=1), item("Forget the rule about tabs.", "user_input", day=2),
        item("Never push.", "constraint", day=1),
    )  # fmt: skip

    lines = brief_lines(documents(), occasion="startup", now=NOW, count=count, budget=700, wide=wide)

    assert [line.text for line in lines] == ["Never push."]


@rows(
    ("said", "left"),
    [
        ("[P1] `load()` of `reader.py` can still follow links.", False),
        ("[P1] `dump()` of `writer.py` can still follow links.", True),
        ("[P1] Links that leave the directory can still be followed.", False),
        ("`load()` of `reader.py` now reads 14 columns instead of 12.", True),
    ],
)
def test_a_finding_is_over_when_its_file_was_changed(said, left):
    fixed = item("Changed src/reader.py (2 edits)", "code_change", day=4, hour=2, conversation="c")

    assert injected(answer(said, day=3), request("Fix it.", 4), fixed)[0] == ([said] if left else [])


@rows(
    ("asked", "edit", "conversation", "left"),
    [
        ("Fix it.", "Changed src/reader.py (1 edit): load", "c", False),
        (
            "Add a flag to the command.",
            "Changed src/reader.py (1 edit): main",
            "c",
            False,
        ),  # the person moved on
        ("Add a flag to the command.", "Changed src/cli.py (1 edit): main", "c", True),
        ("Add a flag to the command.", "Changed src/reader.py (1 edit): main", "another", True),
    ],
)
def test_a_finding_is_over_when_its_conversation_goes_on_to_change_its_file(asked, edit, conversation, left):
    said = "[P1] `load()` of `reader.py` can still follow links."
    work = item(edit, "code_change", day=4, hour=2, conversation=conversation)
    found = standing.accounts(standing.of_conversation([work, request(asked, 4), answer(said, day=3)], "c"))

    assert [one.text for account in found for one in account.paragraphs] == ([said] if left else [])


@rows(
    ("later", "left"),
    [
        ("**Fixed all three findings.** The tests pass.", False),
        ("All review comments of `reader.py` are addressed now.", False),
        ("Fixed all findings but one of `reader.py`.", True),
        ("Added `check.py`, and 14 tests pass.", True),
    ],
)
def test_a_finding_is_over_when_a_later_account_says_that_all_are_fixed(later, left):
    finding = "[P1] `load()` can still follow links, because `b.py` has no check."
    state, results, _ = injected(
        changed(2), answer(finding, day=3), request("Fix them.", 4), changed(5), answer(later, day=6)
    )

    assert (finding in [*state, *results]) is left


@rows(
    ("said", "state"),
    [
        ('To answer your question "is `a.py` now used everywhere?":\n```\nx\n```', []),
        ("I added `Quiet` wrappers in three places of `a.py`:\n```\nx\n```", ["I added `Quiet` wrappers in three places of `a.py`"]),
    ],
)  # fmt: skip
def test_a_line_says_something_without_what_it_answers_or_opens(said, state):
    assert injected(changed(), answer(said))[0] == state


def test_an_account_that_many_requests_and_edits_followed_is_history():
    old = answer("Moved the lock of `load()` into `store.py`, so that `dump()` shares it.", day=2)
    since = [
        one
        for hour in range(8)
        for one in (
            item(
                f"Go on with part {hour}.", "user_input", day=3, hour=hour, role="request", conversation="c"
            ),
            item(f"Changed part{hour}.py", "code_change", day=3, hour=hour, conversation="c"),
        )
    ]
    new = answer("`part7.py` now reads the time in UTC.", day=4)

    state, results, _ = injected(changed(1), old, *since[:12], new)
    assert old["content"] in state
    state, results, _ = injected(changed(1), old, *since, new)
    assert (state, results) == ([new["content"]], [])


@rows(
    "said",
    [
        "1. ✅ **parser.go:103** - Empty content\n2. ✅ **parser.go:424** - Error without chunks",
        "Added `TestLinks` which:\n1. Creates a regular file in `a/`\n2. Checks that a link to `b/` is skipped",
        "### When it runs\n\n- `--clean` - removes `dist/` first, so that nothing is left of the last build",
        "The run is complete. I'm reading the statistics of `a.py` to see whether it is fixed now.",
    ],
)
def test_checklists_half_sentences_explanations_and_narration_are_no_state(said):
    state, results, _ = injected(changed(), answer(said))

    assert [*state, *results] in ([], ["The run is complete."])


@rows(
    "said",
    [
        "Added regression coverage in [reader_test.go](internal/reader_test.go:7)",
        "Updated `reader_test.go:11` - changed the helpers",
        "`test_reader.py` - now covers names in Greek",
        "Tests updated for the new signature of `load()`",
    ],
)
def test_written_tests_are_state_only_if_nothing_else_is(said):
    fix = "`load()` now returns the newest session instead of the oldest"

    assert injected(changed(), answer(f"- {fix}\n- {said}"))[0] == [fix]
    assert injected(changed(), answer(f"{said}"))[0] == [said]


def test_a_limitation_of_earlier_work_is_injected():
    limit = "Edits of one file by both cannot be separated."
    earlier = answer(f"Moved the lock of `load()` into `store.py`.\n\n**Limitation:**\n\n{limit}", day=2)

    state, results, _ = injected(
        changed(1), earlier, request("Go on.", 3), changed(4), answer("`dump()` now reads `store.py`.", day=5)
    )

    assert limit in [*state, *results]


def test_a_list_of_places_is_injected_with_what_is_done_there():
    said = "Now let me log the id in each handler. The places are:\n\n1. `start()` - after the check\n2. `stop()` - before it"

    *_, ahead = injected(request("Fix the log."), changed(), answer(said))

    assert ahead == [
        "Now let me log the id in each handler. The places are: 1. `start()` - after the check 2. `stop()` - before it"
    ]


@rows(
    "said",
    [
        "I'm removing the temporary hook in `a.py` and keeping the permanent test.",
        "I'm adding the helpers of `a.py` next, scoped so that others stay as they are, next.",
        "I'm replacing that with a scanner in `a.py`, so that nested calls are found.",
        "I'm adding that flag now and making it read `a.py`, while keeping the default as it is.",
        "I'm adding direct tests of `a.py`, so that the planner is specified without the whole sync.",
    ],
)
def test_a_reason_of_passing_work_is_not_injected(said):
    assert list(standing.reasons([item(said, role="change")])) == []


def test_what_was_made_comes_before_what_was_adjusted():
    made = "I'm adding a `Retry` type that both clients share instead of two loops."
    adjusted = "I'm moving the check to the end of `run()`, so that it sees all calls."
    items = [item(adjusted, day=3, role="change"), item(made, day=2, role="change")]

    found = standing.reports([], standing.reasons(items))

    assert [line.text for line in found["reasons"]] == [made, adjusted]


def test_a_commit_that_the_work_tree_names_is_no_state():
    tree = item("The last commit, 1a2b3c4, was pushed.", day=6, role="tree", conversation="c")
    work = answer(
        "- Committed as `1a2b3c4` on branch `main`\n- `load()` now returns the newest session instead of the oldest"
    )

    lines = brief_lines(
        documents(changed(), work, tree), occasion="startup", now=NOW, count=count, budget=700
    )

    assert [line.text for line in lines if line.section == "state"] == [
        "`load()` now returns the newest session instead of the oldest"
    ]


def test_entries_that_do_not_fit_below_another_show_as_left_out():
    below = [f"`load_{n}()` keeps the order of the {'rows and ' * 12}columns" for n in range(4)]
    said = "Changed the reader in `a.py`:\n" + "\n".join(f"  - {one}" for one in below)
    state, *_ = injected(request("Go."), changed(), answer(f"- {said}"))

    assert state[0].startswith("Changed the reader in `a.py`: - `load_0()`")
    assert state[0].endswith("columns …")


def test_what_was_running_when_it_was_said_is_no_state_once_something_else_happened():
    said = "- `load()` now returns the newest session\n- The full run of `make bench` is still running, ETA 12:30"

    assert injected(changed(), answer(said))[0] == [
        "`load()` now returns the newest session", "The full run of `make bench` is still running, ETA 12:30",
    ]  # fmt: skip
    assert injected(changed(), answer(said), request("Go on.", 6))[0] == [
        "`load()` now returns the newest session"
    ]


def test_state_says_how_many_requests_followed_it():
    said = answer("`load()` now returns the newest session, and `save()` writes it at once.", day=3)
    one, two = request("Now the docs.", 4), request("And the tests.", 5)

    def notes(*later):
        return [
            line.note for line in standing.reports(standing.accounts([*later, said, changed(2)]))["state"]
        ]

    assert (notes(), notes(one), notes(two, one)) == (
        [""], ["before the last request"], ["before the last 2 requests"],
    )  # fmt: skip


def test_what_all_lines_of_the_state_have_in_common_is_in_their_heading():
    said = answer("`load()` now returns the newest session.\n\n`save()` now writes the file at once.", day=3)
    block = briefing(
        documents(changed(2), said, request("Now the docs.", 4)),
        occasion="startup",
        now=NOW,
        count=count,
        budget=900,
    )

    assert "the agent's last reports (2026-02-03, before the last request):\n- `load()`" in block
    assert block.count("before the last request") == 1


def test_what_an_account_says_is_next_was_started_when_an_edit_followed():
    last = answer("I'll add the helpers to `utils.py` and then fix the three callers.", day=5)

    def notes(*items):
        newest = [*items, last, request("Fix it.")]
        return [(line.text, line.note) for line in standing.next_steps(standing.accounts(newest), newest)]

    assert notes() == [(last["content"], "")]
    assert notes(changed(6)) == [(last["content"], "an edit followed")]


@rows(
    ("task", "ran", "left"),
    [
        ("Run the tests to verify the change", "Ran `make test`: ok", False),
        ("Run the tests to verify the change", "Ran `make lint`: ok", True),
        ("Write tests for `load()`", "Ran `make test`: ok", True),
        ("Verification: fmt, lint", "Ran `make lint`: ok", True),
    ],
)
def test_a_task_that_only_runs_a_check_is_done_when_such_a_check_passed(task, ran, left):
    plan = item(f"[in_progress] {task}", day=5, role="plan", conversation="c")
    run = item(ran, "command", day=6, conversation="c")
    before = item(ran, "command", day=4, conversation="c")

    def ahead(*newest):
        return [line.text for line in standing.next_steps([], newest)]

    assert ahead(plan, before) == [task]
    assert ahead(run, plan) == ([task] if left else [])


def test_a_commit_that_a_rebase_gave_another_name_is_listed_once():
    said = answer(
        "- `1a1a1a1` — `Add retries to the queue of the webhook`\n- Each retry waits twice as long now.",
        day=6,
    )
    tree = item(
        "Commits, the newest first: 2b2b2b2 Add retries to the queue of the webhook.",
        day=6,
        role="tree",
        conversation="c",
    )
    lines = brief_lines(
        documents(changed(), said, tree), occasion="startup", now=NOW, count=count, budget=900
    )

    assert [line.text for line in lines if line.section == "state"] == ["Each retry waits twice as long now."]


def test_what_a_review_found_before_a_commit_is_over():
    finding = answer("- High: the queue can lose an entry when `src/queue.py` is closed twice.", day=3)
    commit = item(
        "[main 1a1a1a1] Close once\n\nClose once",
        "outcome",
        day=4,
        role="commit",
        evidence="machine",
        conversation="c",
    )

    assert [len(one.paragraphs) for one in standing.accounts([finding])] == [1]
    assert [len(one.paragraphs) for one in standing.accounts([commit, finding])][1:] == [0]


def made_commit(name, day):
    return item(
        f"[main {name}] Add retries\n\nAdd retries\n\nThe webhook now retries five times instead of failing.",
        "outcome", day=day, role="commit", evidence="machine", conversation="c",
    )  # fmt: skip


def committing(command, day):
    return item(f"Ran `{command}`: [main 9d9d9d9] Add retries", "command", day=day, conversation="c")


def account_names(*items):
    return [one.paragraphs[0].text for one in standing.accounts(items)]


def test_a_commit_that_was_amended_is_no_account():
    amended = committing("git commit --amend --no-edit", 5)

    assert account_names(amended, made_commit("1a1a1a1", 4), made_commit("0a0a0a0", 3)) == [
        "0a0a0a0 Add retries"
    ]
    # With a message of its own the new commit stands beside the command.
    assert account_names(made_commit("2b2b2b2", 5), amended, made_commit("1a1a1a1", 4)) == [
        "2b2b2b2 Add retries"
    ]


def test_amends_without_a_message_amend_one_commit():
    twice = [committing("git commit --amend --no-edit", 7), committing("git commit --amend --no-edit -a", 6)]

    assert account_names(*twice, made_commit("1a1a1a1", 4), made_commit("0a0a0a0", 3)) == [
        "0a0a0a0 Add retries"
    ]


def test_of_a_chain_of_amended_commits_the_last_one_is_an_account():
    second, third = (
        committing("git commit --amend -m 'Add one; more'", 5),
        committing("git commit --amend -m two", 6),
    )
    before = [made_commit("1a1a1a1", 4), made_commit("0a0a0a0", 3)]
    # A command and the message of its commit have one time: either may come first.
    for chain in (
        [third, made_commit("3c3c3c3", 6), second, made_commit("2b2b2b2", 5)],
        [made_commit("3c3c3c3", 6), third, made_commit("2b2b2b2", 5), second],
    ):
        assert account_names(*chain, *before) == ["3c3c3c3 Add retries", "0a0a0a0 Add retries"]
    # It amended what it made itself.
    both = committing("git commit -m one && git commit --amend -m two", 5)
    assert account_names(both, *before) == ["1a1a1a1 Add retries", "0a0a0a0 Add retries"]


@rows(
    ("said", "state"),
    [
        ("Verification:\n- `make test` of the whole repository\n- `make lint`", []),
        ("Verification:\n- `make test` of the whole repository passed", ["Verification: - `make test` of the whole repository passed"]),
    ],
)  # fmt: skip
def test_what_was_run_is_state_only_with_how_it_came_out(said, state):
    text = f"`load()` now returns the newest session.\n\n{said}"

    assert injected(changed(), answer(text))[0][1:] == state


def test_a_turn_whose_edits_were_reverted_says_nothing():
    def edit(text, day):
        return item(text, "code_change", day=day, hour=2, conversation="c")

    first, second = (
        answer("Added `a.lock` to `.gitignore`.", day=3),
        answer("Added `b.lock` to `b.py`.", day=5),
    )
    rule = item("The tool should handle that for all users.", "constraint", day=4, conversation="c")
    items = [
        second, edit("Changed b.py: lock", 4), edit("Reverted .gitignore", 4), rule,
        first, edit("Changed .gitignore: a.lock", 2), request("Ignore the lock.", 1),
    ]  # fmt: skip

    assert [one.item["id"] for one in standing.accounts(items)] == [second["id"]]
    assert [line.text for line in sections.changed_files(items)] == ["b.py (changed, 1 edit): lock"]
    made = [*items[:5], items[5], edit("Created c.py (2 lines): c", 2), items[6]]
    assert [one.item["id"] for one in standing.accounts(made)] == [second["id"], first["id"]]
    # Nor does it say why, as long as it left no other edit.
    kept = "I'm keeping `lock()` as it is, because the report reads it."
    reason = item(kept, day=2, role="change", conversation="c")
    assert list(standing.reasons([*items[:-1], reason, items[-1]])) == []
    assert [line.text for line in standing.reasons([*made[:-1], reason, made[-1]])] == [kept]
    # Of two edits one is left.
    twice = [*items[:5], edit("Changed .gitignore (2 edits): a.lock", 2), items[6]]
    assert [one.item["id"] for one in standing.accounts(twice)] == [second["id"], first["id"]]
    assert ".gitignore (changed, 2 edits): a.lock" in [line.text for line in sections.changed_files(twice)]
