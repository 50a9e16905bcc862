"""The reader: threads of captured conversations, and the calendar."""

from __future__ import annotations

import json
import re
from datetime import date
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aether
from aether.api import hook_sessions
from aether.api.compress import compress
from aether.memory.timeline import Moment
from aether.store import enforced, places
from aether.view.reading import SHADES, WEEKS, calendar


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.lists(st.integers(-400, 3), max_size=20))
def test_the_calendar_ends_today_and_counts_each_day_of_the_year(today, ages):
    moments = [
        Moment(date.fromordinal(today.toordinal() + age).isoformat(), "note", "note", "", "") for age in ages
    ]
    days = [day for week in calendar(moments, today) for day in week["days"]]

    assert days[-1]["date"] == today.isoformat()
    assert days == sorted(days, key=lambda day: day["date"])
    assert 7 * (WEEKS - 1) < len(days) <= 7 * WEEKS
    counted = {day["date"]: day["number"] for day in days}
    expected = [moment.at for moment in moments if moment.at in counted]
    assert sum(counted.values()) == len(expected)
    assert all((day["shade"] > 0) == (day["number"] > 0) and day["shade"] <= SHADES for day in days)


@pytest.fixture
def reader(home):
    pytest.importorskip("starlette.testclient")
    pytest.importorskip("leather")
    from tests.view.surfers import Reader

    return Reader(home)


def imported(home, tmp_path, messages=120):
    """Import a session of an agent with `messages` messages, of a person and of the agent in turn."""
    lines = []
    for nth in range(messages):
        user = nth % 2 == 0
        text = (
            f"Please **do** step {nth} of <b>it</b>." if user else f"Step {nth} is done, see `step_{nth}.py`."
        )
        lines.append({
            "type": "user" if user else "assistant", "uuid": f"u{nth}", "sessionId": "5d1b3c5e-0000-4000-8000-000000000001", "cwd": "/srv/shop",
            "timestamp": f"2026-03-01T{10 + nth // 60:02}:{nth % 60:02}:00.000Z", "message": {"role": "user" if user else "assistant", "content": text},
        })  # fmt: skip
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    aether.import_transcripts([file], home=home)
    return "5d1b3c5e-0000-4000-8000-000000000001"


@pytest.mark.extras
def test_an_imported_conversation_is_listed_and_read_as_a_thread(home, tmp_path, reader):
    name = imported(home, tmp_path)

    listed, page, second = (
        reader.get("/conversations"),
        reader.get(f"/thread/{name}"),
        reader.get(f"/thread/{name}?page=2"),
    )

    assert f"/thread/{name}" in listed.text
    assert "Please <strong>do</strong> step 0 of &lt;b&gt;it&lt;/b&gt;." in page.text
    assert "<code>step_1.py</code>" in page.text
    assert "user input" not in page.text, "the note of a request repeats the message"
    assert "step 118" not in page.text
    assert "step 60" in second.text


@pytest.mark.extras
def test_an_entry_leads_to_its_place_in_the_conversation(home, tmp_path, reader):
    name = imported(home, tmp_path)
    (request,) = [
        item for item in aether.list_working_memory_items(home=home) if "step 100 " in item["content"]
    ]

    entry = reader.get(f"/entry/{request['id']}")
    page = reader.get(f"/thread/{name}?at={request['id']}")

    assert f"/thread/{name}?at={request['id']}#here" in unescape(entry.text)
    assert page.text.count('id="here"') == 1
    here = page.text[page.text.index('id="here"') :]
    assert "step 100" in here[: here.index("</li>")]


@pytest.mark.extras
def test_a_conversation_that_memory_does_not_hold_is_not_found(home, reader):
    aether.init(home)

    aether.add_working_memory_item("Noted outside of conversations.", "decision", home=home)

    assert reader.get("/thread/nothing").status_code == 404
    assert reader.get("/thread/").status_code == 404


@pytest.mark.extras
def test_a_day_of_the_calendar_leads_to_its_moments(home, reader, monkeypatch):
    for day in (3, 4):
        about = {"timestamp": f"2026-01-0{day}T10:00:00Z"}
        aether.add_working_memory_item(f"Use file {day}.", "decision", 0.9, metadata=about, home=home)

    page, day = reader.get("/timeline?type=decision"), reader.get("/timeline?type=decision&day=2026-01-03")

    assert "/timeline?day=2026-01-03&type=decision" in unescape(page.text)
    assert "2026-01-04: 1 moment" in page.text
    assert "Use file 3." in day.text
    assert "Use file 4." not in day.text
    assert reader.get("/timeline?day=never").status_code == 400


@pytest.mark.extras
def test_the_live_page_shows_injected_lines_captured_notes_and_stopped_calls(
    home, reader, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    about = {"conversation": "s-1", "title": "Ship the shop", "evidence": "person"}
    entry = aether.add_working_memory_item("Use SQLite for the shop.", "decision", metadata=about, home=home)
    hook_sessions.start_injected(home, "s-1", ["- Never push on Fridays.", entry])
    rule = aether.enforce_rule(
        aether.add_working_memory_item("Never push.", "constraint", metadata={"evidence": "person"}, home=home),
        command="git push*", home=home,
    )  # fmt: skip
    enforced.note_stop(str(home), rule["id"], "deny", "Bash", "s-1")
    enforced.note_stop(str(home), rule["id"], "deny", "Bash", "of-another-session")

    page = reader.get("/live-sessions").text

    assert "Ship the shop" in page
    assert "- Never push on Fridays." in page
    assert re.search(r"Told [1-9]\d* tokens: 1 line and 1 entry", page)
    assert "Tokens of memory given to each session as a table" in reader.get("/charts").text
    assert page.count("Use SQLite for the shop.") == 2, "it was captured, and it was told"
    assert page.count(rule["id"]) == 1


@pytest.mark.extras
def test_the_live_page_of_a_home_without_hooks_says_what_to_do(home, reader):
    aether.init(home)

    assert "aether install" in reader.get("/live-sessions").text


@pytest.mark.extras
def test_the_undo_of_a_change_in_several_parts_names_what_it_undoes(home, reader):
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    compress(1, architect="extractive", part="x/1", home=home)
    (session,) = aether.get_compression_stats(home=home)["sessions"]

    page = reader.get(f"/entry/{session['session_id']}").text

    assert "all of this compression" in page
    assert "this import" not in page


@pytest.mark.extras
def test_the_graph_is_drawn_and_listed_the_same_each_time(home, tmp_path, reader):
    pytest.importorskip("igraph")
    name = imported(home, tmp_path, messages=8)
    entry = aether.add_working_memory_item(
        "Use `<b>` here.", "decision", metadata={"conversation": name, "title": "Ship"}, home=home
    )

    page, again = reader.get("/graph").text, reader.get("/graph").text

    assert page.count(f'href="/entry/{entry}"') == 2, "in the drawing and in the list"
    assert f'href="/thread/{name}"' in page
    assert "<b>" not in page
    assert page[page.index("<svg") :] == again[again.index("<svg") :]


@pytest.mark.extras
def test_the_graph_of_memory_without_links_says_what_makes_them(home, reader):
    aether.init(home)

    assert "No two entries are linked yet." in reader.get("/graph").text


@pytest.mark.extras
@pytest.mark.parametrize("read_only", [False, True])
def test_a_person_goes_from_one_home_to_another(home, tmp_path, monkeypatch, read_only):
    pytest.importorskip("starlette.testclient")
    from tests.view.surfers import Reader

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    other = aether.init(tmp_path / "other" / ".aether")
    aether.add_working_memory_item("Use SQLite here.", "decision", home=home)
    aether.add_working_memory_item("Use Postgres there.", "decision", home=other)
    places.remember(home)
    places.remember(other)
    reader = Reader(home, read_only=read_only)
    before = reader.frame.csrf
    page = reader.get("/homes")
    assert page.text.count("shown now") == 1

    answer = reader.submit(page, "open-home")

    assert "This is the memory of" in reader.follow(answer).text
    assert "Use Postgres there." in reader.get("/search").text
    assert "Use SQLite here." not in reader.get("/search").text
    assert reader.post("open-home", csrf=before, home="x").status_code == 403, (
        "a form of the other home changes nothing here"
    )
    assert reader.post("open-home", home="nowhere").status_code == 404


@pytest.mark.extras
def test_a_search_shows_no_marks_of_markdown_and_a_brief_leads_to_compressed_entries(home, reader):
    rule = aether.add_working_memory_item(
        "Never push on Fridays.", "constraint", metadata={"phase": 1, "evidence": "person"}, home=home
    )
    text = "## Plan\n\n```sh\nmake `ledger`\n```\n**Ledger** first. " + "It is one file. " * 60
    aether.add_working_memory_item(text, "outcome", 0.9, metadata={"phase": 1}, home=home)
    found = reader.get("/search?q=ledger").text

    aether.compress(1, home=home)

    assert not re.search(r"(?s)<bdi class=\"text\">[^<]*(`|##|\*\*)", found)
    assert "<mark>ledger</mark>" in found
    assert f'href="/entry/{rule}"' in reader.get("/brief").text
    assert reader.get(f"/entry/{rule}").status_code == 200
