"""Reports: what is in one, that secrets are not, how long it may get, and its Markdown."""

from __future__ import annotations

import pytest

import aether
from aether.api import recall, report
from aether.api.compress import prepare, store_answer
from aether.api.prompt_recall import prompt_recall
from aether.cli.main import main
from aether.errors import InvalidInput, NotFound
from aether.store import places

SECRET = "sk-ant-api03-" + "Ab3" * 27


def add(home, text, type="decision", **given):
    return str(aether.add_working_memory_item(text, type, 0.9, home=home, **given))


def test_a_report_has_decisions_with_why_lessons_and_days(home):
    add(home, "Use one file, because backups are simple.", metadata={"timestamp": "2026-01-05T10:00:00Z"})
    add(home, "The mail server refuses us.", "blocker", metadata={"timestamp": "2026-01-06T10:00:00Z"})
    aether.add_goal("Ship it", home=home)
    aether.decide_goal("Mail only", rationale="SMS is dear", home=home)

    found = aether.report(home=home)

    assert [(one["text"], one["why"]) for one in found["decisions"]] == [
        ("Use one file, because backups are simple.", ""), ("Mail only", "SMS is dear"),
    ]  # fmt: skip
    assert [day["day"] for day in found["timeline"]] == ["2026-01-05", "2026-01-06"]
    assert found["overview"]["open"] == ["The mail server refuses us."]
    assert (found["overview"]["goal"], found["counts"]) == ("Ship it", {"decision": 1, "error": 1})


def test_a_report_about_a_conversation_has_nothing_of_others(home):
    for talk, text in (("talk-1", "Use one file, because backups are simple."), ("talk-2", "Use Redis.")):
        add(home, text, metadata={"conversation": talk, "timestamp": "2026-01-05T10:00:00Z"})
    add(home, "The mail server refuses us.", "blocker")
    aether.compress(1, home=home)
    aether.add_goal("Ship it", home=home)
    aether.decide_goal("Mail only", home=home)

    found = aether.report(conversation="talk-1", home=home)

    assert [one["text"] for one in found["decisions"]] == ["Use one file, because backups are simple."]
    assert (found["overview"]["goal"], found["overview"]["open"]) == ("", [])


def test_a_secret_is_replaced_before_it_is_cut(home):
    (home / "config.toml").write_text('[redaction]\npatterns = ["door \\\\d{4} \\\\d{4} \\\\d{4}"]\n')
    add(home, "x" * (report.MOMENT_CHARS - 14) + " door 1234 5678 9012")

    assert "1234" not in str(aether.report(home=home))


def test_a_secret_is_replaced_in_every_text_of_a_report(home):
    about = {name: f"{name} {SECRET}" for name in ("title", "project")}
    add(home, f"Use {SECRET}, because {SECRET}.", caste=f"bee {SECRET}", source=SECRET, metadata=about)
    add(home, "Use two.", metadata={"conversation": SECRET})
    add(home, f"Blocked by {SECRET}", "blocker")
    aether.compress(1, home=home)
    add(home, f"Blocked again by {SECRET}", "blocker")
    aether.add_goal(f"Reach {SECRET}", home=home)
    aether.decide_goal(f"Take {SECRET}", rationale=f"It is {SECRET}", home=home)
    aether.emit_signal("FOCUS", SECRET, home=home)
    aether.start_phase(2, name=SECRET, home=home)

    for conversation in ("", SECRET, "title"):
        found = aether.report(conversation=conversation, home=home)
        assert found["timeline"]
        assert SECRET not in str(found), conversation
        assert "Ab3Ab3" not in str(found), conversation


def test_a_conversation_that_nothing_has_is_an_error_and_an_empty_one_is_not(home):
    add(home, "Use one file.", metadata={"conversation": "talk-1", "timestamp": "2026-01-05T10:00:00Z"})
    talk = {"id": "rested", "title": "Pipes", "messages": [{"role": "user", "content": "Pipes?"}]}
    aether.archive_conversations([talk], home=home)

    for given in ({"conversation": "talk-1", "since": "1h"}, {"conversation": "pipes"}):
        assert aether.report(**given, home=home)["timeline"] == []
        assert aether.timeline(**given, home=home) == []
    for ask in (aether.report, aether.timeline):
        with pytest.raises(NotFound, match="'talk-2'"):
            ask(conversation="talk-2", home=home)
    for command in ("report", "timeline"):
        assert main(["--home", str(home), command, "--conversation", "talk-2"]) == NotFound.exit_code


def test_lessons_are_the_patterns_seen_since_the_most_certain_first(home):
    add(home, "Use one file.")
    session = aether.compress(1, home=home).ingested.session["session_id"]
    for text, confidence in (("Run the tests first.", 0.5), ("Never block.", 0.9)):
        aether.extract_pattern_to_long_term(
            text, session_id=session, type="constraint", confidence=confidence, home=home
        )

    assert [one["text"] for one in aether.report(home=home)["lessons"]] == [
        "Never block.",
        "Run the tests first.",
    ]
    assert aether.report(since="2999-01-01", home=home)["lessons"] == []


def test_a_report_since_a_time_has_nothing_older(home):
    add(home, "Old: use one file.", metadata={"timestamp": "2026-01-05T10:00:00Z"})
    add(home, "New: use two.")

    found = aether.report(since="7d", home=home)

    assert [one["text"] for one in found["decisions"]] == ["New: use two."]
    with pytest.raises(InvalidInput, match="7d"):
        aether.report(since="last week", home=home)


def test_secrets_are_replaced_unless_they_are_asked_for(home):
    add(home, f"The key is {SECRET}.", "outcome")
    aether.emit_signal("FOCUS", f"password=hunter2hunter2 and {SECRET}", home=home)

    assert SECRET not in str(aether.report(home=home))
    assert SECRET not in report.as_markdown(aether.report(home=home))
    assert SECRET in str(aether.report(redact=False, home=home))


def test_own_patterns_of_secrets_count_too(home):
    add(home, "The ticket is ACME-1234.", "outcome")
    (home / "config.toml").write_text('[redaction]\npatterns = ["ACME-[0-9]+"]\n')

    assert "ACME-1234" not in str(aether.report(home=home))


def test_a_long_history_is_cut_and_says_so(home, monkeypatch):
    monkeypatch.setattr(report, "MOST_MOMENTS", 2)
    monkeypatch.setattr(report, "MOST_DECISIONS", 1)
    for nth in range(4):
        add(home, f"Use file {nth}.")

    found = aether.report(home=home)
    text = report.as_markdown(found)

    assert found["left_out"] == {"moments": 2, "decisions": 3, "lessons": 0}
    assert [one["text"] for one in found["decisions"]] == ["Use file 3."]
    assert text.endswith("Left out, the oldest: 2 moments, 3 decisions.\n")


def test_markdown_shows_foreign_text_as_it_is(home):
    add(home, "Use <b>one</b> [file](https://x.example)\n# now | `later`")

    line = next(line for line in report.as_markdown(aether.report(home=home)).splitlines() if "Use" in line)

    assert r"Use \<b\>one\</b\> \[file\](https://x.example) \# now \| \`later\`" in line


def test_savings_add_up_over_compressions_and_compactions(home):
    add(home, "Use one file, because backups are simple. " * 40, "outcome")
    aether.compress(1, home=home)
    said = [{"role": ("user", "assistant")[nth % 2], "content": f"Note {nth}. " * 60} for nth in range(60)]
    aether.compact("talk", said, window=8000, home=home)

    steps = aether.report(home=home)["charts"]["saved"]

    assert [step["kind"] for step in steps] == ["compression", "compaction"]
    assert steps[-1]["sum"] == sum(step["before"] - step["after"] for step in steps) > 0


def test_an_empty_home_gives_a_short_report(home):
    found = aether.report(home=home)

    assert (found["timeline"], found["decisions"], found["charts"]["signals"]) == ([], [], [])
    assert report.as_markdown(found).startswith("# ")


def test_hits_and_misses_of_recall_are_counted_by_day_and_the_page_counts_for_none(
    home, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    entry = add(home, "Use `ledger_cache.py` for the harbour ledger, because one file is enough.")
    for nth in range(250):
        add(home, f"Step {nth} is done.", "observation")

    aether.search_memory("harbour ledger", home=home)
    aether.search_memory("harbour ledger", access=False, home=home)
    aether.search_memory("zeppelins", home=home)
    prompt_recall("What does ledger_cache.py do for the harbour ledger?", budget=500, home=home)
    prompt_recall("How do zeppelins fly over mountains?", budget=500, home=home)
    recall.full([entry], home=home)
    recall.full([entry], access=False, home=home)

    (day,) = aether.report(home=home)["charts"]["recalls"]
    assert (day["answered"], day["unanswered"], day["opened"]) == (2, 2, 1)


def test_a_log_of_recalls_that_was_cut_short_is_read_as_far_as_it_goes(home, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    places.note_recall(home, places.SEARCH, 2)
    (log,) = (tmp_path / "state" / "aether" / "places").glob("*.recalls")
    with log.open("a") as file:
        file.write('[1]\n{"at": 1}\n["2026-')

    assert [recalled.hits for recalled in places.recalls(home)] == [2]


def test_what_models_cost_is_summed_up_by_day_and_the_built_in_architect_costs_nothing(home):
    spent = {"input_tokens": 300, "output_tokens": 30, "cost_usd": 0.75}
    for nth, author in enumerate(
        [
            {"backend": "anthropic", "model": "some-model", **spent},
            {"backend": "ollama", "model": "", "input_tokens": 7, "output_tokens": 0, "cost_usd": None},
            {"backend": "extractive", "model": ""},
        ]
    ):
        add(
            home,
            f"Use file {nth}, because backups of {nth} are simple. " * 20,
            "outcome",
            metadata={"phase": nth + 1},
        )
        answer = {"summary": f"Use file {nth}.", "key_decisions": [], "outcomes": [], "high_value_items": []}
        aether.prepare_compression_data(nth + 1, home=home)
        prepared = prepare(nth + 1, manual=True, home=home).record["id"]
        store_answer(nth + 1, answer, home=home, architect=author, compression_id=prepared)

    (day,) = aether.report(home=home)["charts"]["architects"]
    assert (
        day.items()
        >= {
            "answers": 2,
            "input_tokens": 307,
            "output_tokens": 30,
            "cost_usd": 0.75,
            "models": ["ollama", "some-model"],
        }.items()
    )


def test_growth_counts_every_entry_on_the_day_it_was_noted(home):
    for day, number in ((3, 2), (7, 1)):
        for nth in range(number):
            add(home, f"Use file {day}.{nth}.", metadata={"timestamp": f"2026-01-0{day}T10:00:00Z"})

    assert aether.report(home=home)["charts"]["growth"] == [
        {"day": "2026-01-03", "entries": 2, "sum": 2},
        {"day": "2026-01-07", "entries": 1, "sum": 3},
    ]
    assert [day["sum"] for day in aether.report(since="2026-01-05", home=home)["charts"]["growth"]] == [3]
