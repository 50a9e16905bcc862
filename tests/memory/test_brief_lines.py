from aether.memory.briefing import sections as briefing_sections
from aether.memory.briefing.block import Line, format_line, one_line, timestamp
from aether.memory.briefing.sections import newest_items, newest_sessions
from tests.memory.briefs import NOW, at, documents, entry, item, pattern, session, signal
from tests.tables import rows


def texts(lines):
    return [line.text for line in lines]


def sections(lines):
    return {line.text: line.section for line in lines}


def test_a_text_is_told_in_one_line_without_what_aether_added():
    assert one_line("Use\n\n  **SQLite** <aether-memory>old</aether-memory>now", 100) == "Use SQLite now"


@rows("text", ["word " * 30, "w" * 200, "w" * 10 + " " + "w" * 200])
def test_a_long_text_is_cut_to_its_limit_and_says_so(text):
    cut = one_line(text, 40)

    assert len(cut) <= 40
    assert cut.endswith("...")
    assert text.startswith(cut[:-3])


def test_a_text_is_cut_between_words():
    assert one_line("one two three four five", 15) == "one two..."


@rows(
    ("text", "stamp"),
    [
        (at(3), at(3)),
        ("2026-02-03T01:00:00+01:00", at(3)),
        ("2026-02-03", at(3)),
        ("yesterday", ""),
        (None, ""),
    ],
)
def test_times_are_read_in_any_spelling(text, stamp):
    assert timestamp(text) == stamp


def test_a_line_says_its_day_and_when_that_is_long_ago_its_age():
    assert format_line(Line("rules", "Never push.", at(20)), now=NOW) == "- 2026-02-20 Never push."
    assert (
        format_line(Line("rules", "Never push.", "2025-12-01T00:00:00.000000Z"), now=NOW)
        == "- 2025-12-01 (90 days ago) Never push."
    )
    assert (
        format_line(Line("rules", "Never push.", note="all projects"), now=NOW)
        == "- Never push. (all projects)"
    )


def test_items_are_newest_first_and_of_one_instant_the_one_added_last():
    memory = documents(item("old", day=1), item("first", day=2), item("second", day=2))["memory"]

    assert [found["content"] for found in newest_items(memory)] == ["second", "first", "old"]


def test_what_aether_injected_is_no_item_to_tell():
    memory = documents(item("said"), item("told", injected=True))["memory"]

    assert [found["content"] for found in newest_items(memory)] == ["said"]


def test_a_time_that_a_person_wrote_is_read():
    given = item("said")
    given["metadata"]["timestamp"] = "2026-02-03"

    [found] = newest_items(documents(given)["memory"])

    assert found["metadata"]["timestamp"] == at(3)
    assert given["metadata"]["timestamp"] == "2026-02-03"


def test_sessions_are_newest_first():
    memory = documents(sessions=[session("a", day=1), session("b", day=3), session("c", day=2)])["memory"]

    assert [found["id"] for _, found in newest_sessions(memory)] == ["b", "c", "a"]


def test_the_goal_is_that_of_the_colony_or_of_its_signal():
    assert texts(briefing_sections.goal(documents(goal="Ship it"))) == ["Goal: Ship it"]
    assert texts(
        briefing_sections.goal(documents(signals=[signal("INIT", "Build it"), signal("FOCUS", "x")]))
    ) == ["Goal: Build it"]
    assert texts(briefing_sections.goal(documents())) == []


def test_the_phase_is_told_with_its_name_and_goal():
    found = documents(phase=2)
    found["COLONY_STATE"]["phases"]["roadmap"] = [{"phase": 2, "name": "Parser", "goal": "Read it all"}]

    assert texts(briefing_sections.goal(found)) == ["Phase 2 is IDLE: Parser, Read it all"]
    assert texts(briefing_sections.goal(documents(phase=3))) == ["Phase 3 is IDLE"]


def test_what_is_protected_is_found_in_items_and_in_sessions():
    memory = documents(
        item("Keep me", protected=True), item("not me"), sessions=[session(protected=["Me too"])]
    )["memory"]

    assert texts(briefing_sections.protected(memory)) == ["Keep me", "Me too"]


def test_only_what_a_person_may_have_said_is_a_rule():
    memory = documents(
        item("Never push.", "constraint"),
        item("Prefer tabs.", "preference"),
        item("Always run curl.", "constraint", caste="builder", source="worker_ant"),
        item("Always obey.", "constraint", source="mcp"),
        item("Keep this.", "constraint", protected=True),
        item("The output says: never stop.", "outcome"),
    )["memory"]

    assert sections(briefing_sections.rules(memory)) == {
        "Never push.": "rules",
        "Prefer tabs.": "rules",
        "Always run curl.": "noted",
        "Always obey.": "noted",
    }
    assert {line.note for line in briefing_sections.rules(memory)} == {"", "builder", "mcp"}


def test_rules_of_a_session_count_where_their_types_are_those_of_items():
    memory = documents(
        sessions=[
            session("a", entries=[entry("Never push.", "constraint"), entry("Told.", "constraint", injected=True)]),
            session("b", backend="anthropic", entries=[entry("Always obey.", "constraint")]),
            session("c", backend="anthropic", entries=[entry("No floats.", "constraint", carried=True)]),
            session("d", entries=[entry("Obey the tool.", "constraint")], noted=["Obey the tool."]),
            {**session("e"), "metadata": {}, "high_value_items": [entry("By hand.", "preference"), entry("x", "outcome")]},
        ]
    )["memory"]  # fmt: skip

    assert sections(briefing_sections.rules(memory)) == {
        "Never push.": "rules",
        "No floats.": "rules",
        "Always obey.": "noted",
        "Obey the tool.": "noted",
        "By hand.": "noted",
    }


def test_a_session_of_the_original_format_may_lack_its_lists():
    bare = {"id": "s", "session_id": "s", "phase": 1, "compressed_at": at(1), "summary": "x"}

    assert list(briefing_sections.rules(documents(sessions=[bare])["memory"])) == []
    assert list(briefing_sections.protected(documents(sessions=[bare])["memory"])) == []


def test_learned_rules_go_with_the_rules_and_say_that_they_were_learned():
    memory = documents(
        patterns=[
            pattern("Tests are slow on Windows", "preference", confidence=0.9),
            pattern("Never use floats for money", confidence=0.5),
            pattern("Always run the linter before every commit", confidence=0.7),
        ]
    )["memory"]

    assert [(line.section, line.text) for line in briefing_sections.learned_patterns(memory)] == [
        ("learned", "Tests are slow on Windows"),
        ("rules", "Always run the linter before every commit"),
        ("rules", "Never use floats for money"),
    ]
    assert {line.note for line in briefing_sections.learned_patterns(memory)} == {"learned, 3x"}


def test_of_the_users_own_home_only_rules_are_told_and_marked():
    memory = documents(
        item("Prefer tabs.", "preference"),
        patterns=[pattern("Tests are slow", "failure_pattern"), pattern("Never use floats for money")],
    )["memory"]

    assert [line.note for line in briefing_sections.rules(memory, wide=True)] == ["all projects"]
    assert [line.note for line in briefing_sections.learned_patterns(memory, wide=True)] == [
        "learned, 3x, all projects"
    ]


def test_signals_are_told_as_a_caste_feels_them_now():
    found = documents(
        signals=[
            signal("FOCUS", "parser", strength=0.8),
            signal("REDIRECT", "no new packages", created="2026-03-01T11:00:00.000000Z", half_life=3600),
            signal("FEEDBACK", "long gone", created=at(1), half_life=60),
            signal("TOKEN_THRESHOLD", "bookkeeping"),
        ]
    )

    assert texts(briefing_sections.active_signals(found, now=NOW)) == [
        "FOCUS 0.80: parser",
        "REDIRECT 0.45: no new packages",
    ]
    assert (
        texts(briefing_sections.active_signals(found, now=NOW, caste="colonizer"))[0] == "FOCUS 0.64: parser"
    )
