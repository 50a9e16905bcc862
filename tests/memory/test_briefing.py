import pytest

from aether.memory.briefing import kept
from aether.memory.briefing.briefing import agent_lines, brief_lines, briefing, in_force, steering
from aether.memory.briefing.sections import LINE_CHARS, NOTE_CHARS, REQUEST_CHARS, paragraphs, shortened
from aether.tokens.estimate import estimate
from tests.memory.briefs import (
    NOW,
    answered,
    at,
    captured,
    documents,
    item,
    pattern,
    session,
    signal,
    statement,
)


def lines(found, *, occasion="startup", budget=700, **options):
    return brief_lines(found, occasion=occasion, now=NOW, count=estimate, budget=budget, **options)


def shown(found, **options):
    """Return the kind and the text of each line."""
    return [(line.kind, line.text) for line in lines(found, **options)]


def block(found, **options):
    return briefing(found, occasion="startup", now=NOW, count=estimate, budget=700, **options)


@pytest.mark.parametrize(
    ("text", "type", "kind"),
    [
        ("We use tabs.", "decision", "decision"),
        ("prod DB is down", "blocker", "open"),
        ("no", "constraint", "rule"),
        ("Лучше на русском", "preference", "rule"),
        ("先写测试", "next", "next"),
        ("Look at the log", "user_input", "request"),
        ("It works", "outcome", "outcome"),
        ("Locks need a timeout", "lesson", "lesson"),
        ("Restart it first", "solution", "lesson"),
        ("Port 8080", "observation", "lesson"),
    ],
)
def test_what_is_noted_on_purpose_is_in_force_as_typed(text, type, kind):
    assert shown(documents(item(text, type))) == [(kind, text)]


@pytest.mark.parametrize(
    ("type", "protected"), [("observation", True), ("user_input", False), ("user_input", True)]
)
def test_what_an_agent_protects_or_asks_for_is_no_rule_and_no_request_of_the_person(type, protected):
    (line,) = lines(
        documents(item("Always obey.", type, source="mcp", evidence="agent", protected=protected, noted=True))
    )

    assert (line.kind, line.note) == ("lesson", "noted by mcp")


def test_a_note_of_an_agent_is_in_force_and_says_whose_it_is():
    (line,) = lines(documents(item("Never push.", "constraint", source="mcp", evidence="agent")))

    assert (line.kind, line.note, line.evidence) == ("rule", "noted by mcp", "agent")


def test_several_lines_of_a_note_stay_verbatim_and_look_like_no_heading():
    text = "Deploy so:\n1. build\nRules:\n2. push"

    assert shown(documents(item(text, "constraint"))) == [("rule", text)]
    assert "\n  Rules:\n" in block(documents(item(text, "constraint")))


def test_a_long_note_keeps_its_head_and_its_tail():
    ((_, text),) = shown(documents(item("Head. " + "word " * 400 + "Never push.", "constraint")))

    assert text.startswith("Head.")
    assert text.endswith("Never push.")
    assert len(text) <= NOTE_CHARS


def test_a_persons_sentence_that_capture_called_a_rule_is_a_request():
    older = [
        item(
            "Never push to main.", kind, pointer={"line": 1}, evidence="person", conversation="c1", hour=hour
        )
        for hour, kind in enumerate(("constraint", "decision"))
    ]

    assert shown(documents(*older)) == [("request", "Never push to main.")]


@pytest.mark.parametrize("how", ["resolved", "superseded", "revoked"])
def test_what_has_ended_is_left_out(how):
    over = {"ended_at": at(21), "state": how}
    ended = statement("Push on Fridays.", ended={"how": how, "at": at(21), "by": ""})
    learned = pattern("Build first.") | {"metadata": over}

    found = documents(
        item("Never push.", "constraint", **over), sessions=[session(summary="", stated={"rules": [ended]})], patterns=[learned]
    )  # fmt: skip

    assert shown(found) == []
    assert kept.revoked_in(found["memory"]).keys() == {
        found["memory"]["working_memory"]["items"][0]["id"], "s1/rules/0", "pattern-Build first.",
    }  # fmt: skip


def test_explicit_notes_come_first_then_statements_of_the_newest_session_then_the_floor():
    found = documents(
        item("We use tabs.", "decision", day=1),
        answered("Which database?", "SQLite for the index", day=25),
        sessions=[
            session("old", day=9, stated={"rules": [statement("Write docs in English.")]}),
            session("new", day=11, stated={"rules": [statement("Never push to main.")], "key_decisions": [
                {"decision": "Keep one log per worktree", "rationale": "filters suffice", "items": ["wm_1"], "quote": "one log", "evidence": "person"},
            ]}),
        ],
    )  # fmt: skip

    assert [(kind, text) for kind, text in shown(found) if kind in ("rule", "decision")] == [
        ("decision", "We use tabs."),
        ("rule", "Never push to main."),
        ("decision", "Keep one log per worktree - filters suffice"),
        ("rule", "Write docs in English."),
        ("decision", "SQLite for the index (asked: Which database?)"),
    ]


def test_a_statement_has_its_proof():
    (line,) = lines(
        documents(sessions=[session(summary="", stated={"open": [statement("CI is red", "CI fails")]})])
    )

    assert (line.ids, line.quote, line.evidence) == (("s1/open/0", "wm_1"), "CI fails", "person")


@pytest.mark.parametrize("broken", [{"quote": ""}, {"evidence": "agent"}])
def test_a_rule_without_a_persons_words_is_none(broken):
    stated = {"rules": [statement("Never push.") | broken]}

    assert shown(documents(sessions=[session(summary="", stated=stated)])) == []


def test_the_state_is_that_of_the_newest_session():
    found = documents(
        sessions=[
            session("old", day=9, stated={"state": [statement("The parser is half done")], "open": [statement("Windows fails")]}),
            session("new", day=11, stated={"state": [statement("Everything is merged")]}),
        ]
    )  # fmt: skip

    assert shown(found) == [
        ("state", "Everything is merged"), ("open", "Windows fails"), ("outcome", "The parser is half done"),
    ]  # fmt: skip


def test_the_floor_of_what_a_session_covers_is_not_beside_it_but_that_of_later_work_is():
    before = [
        captured("Write the parser, please", "request"),
        captured("Never mind the docs", "request", hour=1),
        captured("The parser is written.", "answer", hour=2),
    ]
    proven = session(items=before, stated={"state": [statement("A parser exists")]})
    later = captured("Now the lexer is broken.", "answer", day=21)

    assert shown(documents(sessions=[proven])) == [
        ("state", "A parser exists"),
        ("request", "Never mind the docs"),
    ]
    assert ("state", "Now the lexer is broken.") in shown(documents(later, sessions=[proven]))


def test_decisions_of_a_session_from_before_proof_are_an_agents():
    older = session(decisions=[("Use SQLite", "no server")], backend="ollama", summary="")

    (line,) = lines(documents(sessions=[older]))

    assert (line.kind, line.text, line.evidence) == ("decision", "Use SQLite - no server", "agent")


def test_the_newest_request_is_whole_and_a_rule_in_its_last_sentence_is_shown():
    long = "Add the export. " + "It has many columns. " * 100 + "Never push without asking."

    texts = [
        text
        for _, text in shown(
            documents(captured("Sort imports", "request"), captured(long, "request", hour=1))
        )
    ]

    assert texts[0].startswith("Add the export.")
    assert texts[0].endswith("Never push without asking.")
    assert len(texts[0]) <= REQUEST_CHARS


def test_the_first_and_the_last_paragraphs_of_the_last_message_are_the_state():
    middle = "\n\n".join(f"Step {number}: " + "words " * 60 for number in range(12))
    message = captured(f"All done.\n\n{middle}\n\nShall I push it?", "answer", hour=1)

    state = [text for kind, text in shown(documents(captured("Go", "request"), message)) if kind == "state"]

    assert (state[0], state[-1]) == ("All done.", "Shall I push it?")


def test_a_short_request_is_shown_only_where_it_is_the_newest():
    found = documents(
        captured("ok", "request"),
        captured("Fix the parser", "request", hour=1),
        captured("yes", "request", hour=2),
    )

    assert shown(found) == [("request", "yes"), ("request", "Fix the parser")]


def test_chinese_and_japanese_are_shown_like_english():
    found = documents(
        captured("不要推送到主分支", "request"),
        captured("テストを直してください", "request", hour=1),
        captured("已经修好了。", "answer", hour=2),
    )

    assert shown(found) == [
        ("request", "テストを直してください"), ("state", "已经修好了。"), ("request", "不要推送到主分支"),
    ]  # fmt: skip


def test_facts_are_shown_as_facts():
    steps = [{"text": "write it", "status": "completed"}, {"text": "test it", "status": "in_progress"}]
    found = documents(
        captured("Committed 1a2b3c4: Add the parser", "commit", fact={"kind": "commit", "id": "1a2b3c4"}),
        captured("Ran `make test`: 2 failed", "failure", hour=1, fact={"kind": "run", "command": "make test", "failed": True}),
        captured("Ran `make lint`: ok", "run", hour=2, fact={"kind": "run", "command": "make lint"}),
        captured("Changed src/a.py", "change", hour=3, fact={"kind": "change", "path": "src/a.py"}),
        captured("[completed] write it\n[in_progress] test it", "plan", hour=4, fact={"kind": "plan", "steps": steps}),
        captured("On branch main, 2 files uncommitted", "tree", hour=5, fact={"kind": "branch"}),
    )  # fmt: skip

    assert sorted((line.kind, line.text, line.note, line.evidence) for line in lines(found)) == [
        ("command", "On branch main, 2 files uncommitted", "", "machine"),
        ("command", "Ran `make lint`: ok", "", "machine"),
        ("command", "Ran `make test`: 2 failed", "has not worked since", "machine"),
        ("file", "Changed src/a.py", "", "machine"),
        ("next", "test it", "in_progress", "machine"),
        ("outcome", "Committed 1a2b3c4: Add the parser", "", "machine"),
    ]  # fmt: skip


def test_the_reason_of_a_refusal_names_the_call_and_no_question():
    fact = {"kind": "answer", "choice": "use our own backup", "command": "cp a b"}
    refusal = captured("Refused `cp a b`: use our own backup", "request", fact=fact)

    assert [line.text for line in lines(documents(refusal))] == ["use our own backup (refused: cp a b)"]


def test_a_failure_after_which_the_command_worked_is_over():
    run = {"fact": {"kind": "run", "command": "make test"}}
    found = documents(
        captured("`make test` failed: 2 failed", "failure", **run),
        captured("Ran `make test`: ok", "run", hour=1, **run),
    )

    assert shown(found) == [("command", "Ran `make test`: ok")]


def test_the_newest_plan_holds():
    plans = [
        captured(
            text, "plan", hour=hour, fact={"kind": "plan", "steps": [{"text": text, "status": "pending"}]}
        )
        for hour, text in enumerate(("draw it", "build it"))
    ]

    assert shown(documents(*plans)) == [("next", "build it")]


def test_the_hosts_summary_is_shown_only_where_nothing_newer_is_there():
    summary = captured("The user wants a parser.", "summary", hour=1)

    assert shown(documents(summary)) == [("state", "The user wants a parser.")]
    assert shown(documents(summary, captured("It is merged.", "answer", hour=2))) == [
        ("state", "It is merged.")
    ]
    assert shown(documents(summary), occasion="compact", session="c1") == []  # it is in the context


def test_an_active_goal_is_shown_with_its_steps_decisions_and_blockers():
    found = documents()
    step = {"id": "s", "created_at": at(1)}
    found["goals"] |= {
        "current": "g1",
        "goals": [{
            "id": "g1", "description": "Ship the parser", "evidence": "person", "created_at": at(1), "next_step": "Write the grammar",
            "subtasks": [step | {"description": "Test it", "status": "pending"}, step | {"description": "Draw it", "status": "completed"}],
            "decisions": [{"description": "Use PEG", "rationale": "simple", "at": at(2), "locked": True}, {"description": "Maybe C", "rationale": "", "at": at(2), "locked": False}],
            "blockers": [{"description": "no licence", "created_at": at(2)}, {"description": "no time", "created_at": at(2), "resolved_at": at(3)}],
        }],
    }  # fmt: skip

    assert [(line.kind, line.text, line.note) for line in lines(found)] == [
        ("state", "Active goal: Ship the parser", "1 of 2 steps completed"),
        ("next", "Write the grammar", ""),
        ("next", "Test it", "pending"),
        ("decision", "Use PEG - simple", ""),
        ("open", "blocked: no licence", ""),
    ]


def test_a_noted_outcome_leaves_the_brief_of_an_imported_session():
    imported = [captured("Fix the parser", "request"), captured("The parser is fixed.", "answer", hour=1)]

    assert set(shown(documents(*imported))) < set(
        shown(documents(*imported, item("Released 2.0", "outcome", day=22)))
    )


def test_the_floor_is_that_of_the_newest_conversation_in_which_an_agent_spoke():
    older = [
        captured("Sort the imports", "request", conversation="c0"),
        captured("They are sorted.", "answer", conversation="c0", hour=1),
    ]
    started = captured("Add an export to CSV", "request", conversation="c1", day=21)
    oldest = captured("Nothing was done.", "answer", conversation="c9", day=2)

    assert shown(documents(oldest, *older, started)) == [
        ("request", "Add an export to CSV"), ("state", "They are sorted."), ("request", "Sort the imports"),
    ]  # fmt: skip
    assert shown(documents(*older, started), session="c0", occasion="compact")[0] == (
        "request",
        "Sort the imports",
    )
    assert shown(documents(*older, started), session="c7", occasion="compact") == []


def test_nothing_is_shown_twice():
    found = documents(
        item("Never push to main", "constraint"), item("Never push to main", "decision", hour=1),
        captured("Never push to main!!", "request", hour=2), captured("Fix the parser in src/a.py", "request", hour=3),
        captured("I fix the parser in src/a.py now.", "answer", hour=4),
    )  # fmt: skip

    assert shown(found) == [("decision", "Never push to main"), ("request", "Fix the parser in src/a.py")]


def test_many_explicit_decisions_leave_room_for_the_state_of_the_work():
    many = [
        item(f"Decision {number}: use library{number} for part{number}", "decision", day=1, hour=number % 24)
        for number in range(90)
    ]
    found = documents(
        *many, captured("Fix the parser", "request"), captured("The grammar is ambiguous.", "answer", hour=1)
    )

    assert {("request", "Fix the parser"), ("state", "The grammar is ambiguous.")} <= set(shown(found))


def test_signals_are_shown():
    assert shown(documents(signals=[signal("FOCUS", "the parser")])) == [("rule", "FOCUS 0.90: the parser")]


def test_rules_of_all_projects_are_marked():
    wide = documents(item("Prefer tabs.", "preference"), item("Use Go.", "decision"))

    assert [(line.text, line.note) for line in lines(documents(), wide=wide)] == [
        ("Prefer tabs.", "all projects")
    ]


def test_the_block_has_its_sections_in_order_and_ends_with_the_hint():
    found = documents(
        item("Never push.", "constraint"), item("We use tabs.", "decision"), item("CI is red", "blocker"), captured("Fix it all", "request"),
        captured("It is fixed.", "answer", hour=1), captured("Changed a.py", "change"),
    )  # fmt: skip

    heads = [
        line.partition(":")[0].partition(" (")[0]
        for line in block(found).splitlines()[2:-2]
        if not line.startswith("- ")
    ]

    assert heads == [
        "Rules",
        "The agent's last message",
        "Decisions",
        "Open",
        "Requests of the person",
        "Files changed",
    ]


def test_an_old_day_says_its_age_once():
    text = block(
        documents(item("Never push.", "constraint", day=1), item("We use tabs.", "decision", day=1))
    ).replace("2026-02-01", "DAY")

    assert text.splitlines()[2:-2] == ["Rules (DAY):", "- Never push.", "Decisions:", "- We use tabs."]


def test_a_resumed_session_gets_what_is_newer():
    found = documents(item("Never push.", "constraint", day=1), item("We use tabs.", "decision", day=20))

    assert shown(found, occasion="resume", since=at(10)) == [("decision", "We use tabs.")]


def test_paths_below_the_project_are_relative_except_in_notes():
    found = documents(
        captured("Changed /home/me/p/src/a.py and /srv/home/me/p/b.py", "change"), item("Keep /home/me/p/data", "constraint")
    )  # fmt: skip

    assert shown(found, root="/home/me/p") == [
        ("rule", "Keep /home/me/p/data"), ("file", "Changed src/a.py and /srv/home/me/p/b.py"),
    ]  # fmt: skip


def test_of_many_explicit_decisions_all_come_before_those_of_sessions():
    many = [
        item(f"Use lib{number}x for part{number}x", "decision", day=1, hour=number) for number in range(13)
    ]
    stated = {
        "key_decisions": [
            {"decision": "Ship weekly", "rationale": "", "items": [], "quote": "weekly", "evidence": "person"}
        ]
    }

    texts = [text for _, text in shown(documents(*many, sessions=[session(summary="", stated=stated)]))]

    assert texts[-1] == "Ship weekly"
    assert len(texts) == 14


def test_the_first_request_says_more_than_those_between():
    def long(name):
        return " ".join(f"{name}{number}" for number in range(50))

    requests = [
        captured(long(name), "request", hour=hour) for hour, name in enumerate(("first", "mid", "last"))
    ]

    lengths = {text[:3]: len(text) for _, text in shown(documents(*requests))}

    assert lengths["mid"] <= LINE_CHARS < lengths["las"]
    assert lengths["fir"] > LINE_CHARS


def test_of_older_sessions_only_what_outlasts_their_work_is_read():
    slept = [
        session(f"s{day}", day=day, summary="", items=[captured(f"Request of day {day}", "request", day=day), item(f"Rule{day} holds", "constraint", day=day)])
        for day in range(1, 6)
    ]  # fmt: skip

    texts = {one["content"] for one in kept.known_items(documents(sessions=slept)["memory"])}

    assert {f"Rule{day} holds" for day in range(1, 6)} <= texts
    assert {text for text in texts if text.startswith("Request")} == {
        f"Request of day {day}" for day in (3, 4, 5)
    }


def test_a_sub_agent_gets_what_holds_and_what_its_caste_did():
    found = documents(
        item("Never push.", "constraint"), captured("Fix it all", "request"), captured("Found three callers", "answer", hour=1, caste="scout"),
    )  # fmt: skip

    given = agent_lines(found, "scout", now=NOW, count=estimate, budget=700)

    assert [line.text for line in given] == ["Never push.", "Fix it all", "Found three callers"]


def test_a_summariser_is_shown_what_is_in_force():
    assert "Never push." in steering(documents(item("Never push.", "constraint")), now=NOW)
    assert steering(documents(), now=NOW) == ""


def test_what_is_in_force_is_counted():
    found = documents(
        item("Never push.", "constraint"),
        item("We use tabs.", "decision"),
        answered("Which?", "the first"),
        signals=[signal("FOCUS", "x")],
    )

    assert in_force(found, now=NOW) == {"rules": 1, "decisions": 2}


def test_a_session_keeps_what_outlasts_its_work_and_the_newest_of_each_part():
    held = [
        item("Never push.", "constraint", day=1),
        item("Gone", "constraint", day=1, hour=2),
        *(captured(f"Request {number}", "request", hour=number) for number in range(20)),
        *(item(f"Fact {number}", day=2, hour=number) for number in range(23)),
        captured("Elsewhere", "request", conversation="c2", day=19),
        captured("Long ago", "request", conversation="c3", day=3),
    ]

    texts = [one["content"] for one in kept.kept_items(held, {held[1]["id"]})]

    assert texts[0] == "Never push."
    assert [text for text in texts if text.startswith("Request")] == [
        f"Request {number}" for number in range(8, 20)
    ]
    assert len([text for text in texts if text.startswith("Fact")]) == kept.MOST_NOTES
    assert "Elsewhere" in texts
    assert "Long ago" not in texts
    assert "Gone" not in texts


def test_an_old_note_outlasts_and_an_old_request_does_not():
    assert kept.outlasts(item("Never push.", "constraint"))
    assert kept.outlasts(captured("Keep this", "request", protected=True))
    assert not kept.outlasts(item("A fact"))
    assert not kept.outlasts(captured("Never push.", "request"))


def test_shortening_cuts_between_words_where_there_are_blanks():
    assert shortened("a" * 50, 100) == "a" * 50
    assert shortened("one two three four five six seven", 25).startswith("one ")
    wide = shortened("汉" * 400, LINE_CHARS)
    assert len(wide) <= LINE_CHARS // 3
    assert wide.endswith("汉")


def test_paragraphs_leave_out_code_and_join_headings():
    text = "# Done\n\n```\ncode\n```\nIt works.\n\n---\n\nNext:\n\n- push"

    assert paragraphs(text) == ["Done: It works.", "Next: push"]
