"""The view as a whole: who may come in, what a page shows, what a form changes, and what happens when two do it at once."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from html import unescape

import pytest

import aether
from aether.api import admin, entries
from aether.api import share as sharing
from aether.errors import InvalidInput
from aether.store import commit
from aether.store.snapshot import load
from aether.view import app
from tests import homes
from tests.colonies import colony  # noqa: F401 - a fixture
from tests.sources import ROOT
from tests.tables import rows
from tests.view.surfers import PORT, Reader

pytestmark = pytest.mark.extras
pytest.importorskip("starlette")
pytest.importorskip("jinja2")
pytest.importorskip("uvicorn")


@pytest.fixture
def rule(home):
    return str(aether.add_working_memory_item("Never use floats for money.", "constraint", 0.9, home=home))


# Who may come in


@rows(
    "headers",
    [
        {"host": "evil.example"},
        {"host": f"evil.example:{PORT}"},
        {"host": "127.0.0.1"},
        {"host": f"127.0.0.1:{PORT + 1}"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://localhost:{PORT}"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_a_request_from_elsewhere_reaches_no_page(home, headers):
    answer = Reader(home).get("/", **headers)

    assert answer.status_code == 403
    assert "floats" not in answer.text


def test_without_the_key_nothing_is_shown(home, rule):
    reader = Reader(home, enter=False)

    for path in ("/", "/brief", f"/entry/{rule}", "/live", "/nowhere", "/?token=wrong", "/?token="):
        answer = reader.get(path)
        assert (answer.status_code, "floats" in answer.text) == (403, False), path
    assert reader.post("forget", entry=rule).status_code == 403
    assert reader.get("/static/view.css").status_code == 200


def test_the_cookie_is_strict_and_is_not_the_key(home):
    reader = Reader(home, enter=False)

    cookie = reader.get(f"/?token={reader.frame.token}").headers["set-cookie"]

    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert reader.frame.token not in cookie
    assert str(PORT) in cookie.partition("=")[0]


def test_a_form_without_its_token_or_origin_changes_nothing(home, rule):
    reader = Reader(home)
    before = load(home).revision

    for given in (
        {"csrf": ""},
        {"csrf": "x" * 64},
        {"origin": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ):
        assert reader.post("forget", entry=rule, **given).status_code == 403, given
    assert reader.client.get(f"/do/forget?entry={rule}").status_code == 404
    assert load(home).revision == before


def test_every_answer_forbids_scripts_and_frames_from_elsewhere(home, rule):
    reader = Reader(home)

    for answer in (
        reader.get("/"),
        reader.get("/nowhere"),
        reader.get("/", host="evil.example"),
        reader.get("/static/view.js"),
    ):
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert reader.get("/").headers["cache-control"] == "no-store"


def test_an_answer_to_a_fault_is_as_strict_and_a_stranger_gets_no_page(home, rule, monkeypatch):
    from aether.view import pages

    reader, stranger = Reader(home), Reader(home, enter=False)
    monkeypatch.setattr(pages.entries, "newest", lambda **_: 1 / 0)

    answer = reader.get("/search")
    assert (answer.status_code, "ZeroDivisionError" in answer.text) == (500, True)
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["cache-control"] == "no-store"
    for path in ("/static/none.css", "/static/a/b", "/static/"):
        assert stranger.get(path).status_code == 403, path
    assert stranger.get("/static/view.css").status_code == 200


def test_a_page_loads_only_from_itself_and_has_no_inline_script_or_style(home, rule):
    reader = Reader(home)

    for page in reader.frame.pages:
        text = reader.get(page.path.replace("{id:path}", rule)).text
        loaded = re.findall(r'(?:src|href|action)="([^"]*)"', text)
        assert [one for one in loaded if not one.startswith(("/", "#"))] == [], page.path
        assert not re.search(r"<style|<script(?![^>]* src=)|\sstyle=|\son\w+=", text), page.path


def test_a_file_outside_the_static_ones_is_not_served(home):
    reader = Reader(home)

    for name in ("..%2f..%2fmemory.json", "%2e%2e/view.css", "nothing.css", "view.py"):
        assert reader.get(f"/static/{name}").status_code == 404, name


# What a page shows


def test_every_page_of_an_empty_home_says_what_to_do_first(home):
    reader = Reader(home)

    for page in reader.frame.pages:
        if page.in_menu:
            answer = reader.get(page.path)
            assert answer.status_code == 200, page.path
            assert "<h1>" in answer.text
    assert "aether claude install" in reader.get("/").text


def test_a_hostile_text_is_text_on_every_page(home):
    hostile = '"><script>alert(1)</script><img src=x onerror=alert(1)></textarea>\u202e{{ 7*7 }}\x1b[31m'
    name = aether.add_working_memory_item(
        f"Never {hostile}", "constraint", 0.9, source="q<b>", home=home, metadata={"title": hostile}
    )
    reader = Reader(home)

    for path in (
        "/",
        "/brief",
        "/search",
        "/search?q=never",
        f"/entry/{name}",
        "/log",
        "/review",
        "/health",
        f"/search?q={'%3Cscript%3E'}",
        "/%3Cscript%3E",
    ):
        text = reader.get(path).text
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path
        assert "</textarea>\u202e" not in text
        assert "\u202e" not in text, path
        assert "\x1b" not in text, path
        assert "49" not in re.findall(r"Never[^<]*", text), path


def test_the_brief_shows_each_line_with_source_evidence_age_and_cost(home, rule):
    aether.add_working_memory_item(
        "Round half to even.", "constraint", home=home, metadata={"evidence": "person"}
    )
    text = Reader(home).get("/brief").text

    assert "Never use floats for money." in text
    assert f"/entry/{rule}" in text
    assert "a person said it" in text
    assert "just now" in text
    assert re.search(r"\d+ tokens", text)
    assert "Revoke" in text


def test_search_marks_what_matches_and_counts_no_access(home, rule):
    before = load(home).revision

    text = Reader(home).get("/search?q=floats").text

    assert "<mark>floats</mark>" in text
    assert load(home).revision == before


def test_an_entry_shows_its_history_and_links_both_ways(home, rule):
    other = str(aether.add_working_memory_item("Amounts are integer cents.", "decision", home=home))
    aether.create_associative_link(rule, other, "causal_relationship", home=home)
    aether.update_working_memory_item(rule, {"content": "Never use floats for amounts."}, home=home)
    reader = Reader(home)

    text, back = reader.get(f"/entry/{rule}").text, reader.get(f"/entry/{other}").text

    assert "<del><bdi" in text
    assert "Never use floats for money." in text
    assert "Amounts are integer cents." in text
    assert "Never use floats for amounts." in back


def test_what_was_revoked_and_said_again_contradicts_no_brief(home):
    def said(text, type="constraint", day=1):
        about = {"timestamp": f"2026-01-0{day}T10:00:00Z", "evidence": "person"}
        return str(aether.add_working_memory_item(text, type, 0.9, home=home, metadata=about))

    old = said("Never use mocks in tests.")
    aether.resolve_memory(old, home=home)
    reader = Reader(home)
    assert "A brief leaves it out." in reader.get(f"/entry/{old}").text
    assert "Never use mocks" not in reader.get("/brief").text

    new = said("Never use mocks in tests.", day=3)

    page = reader.get(f"/entry/{old}").text
    assert "A brief leaves it out." not in page
    assert f'<a href="/entry/{new}">another entry</a> says the same' in page
    assert "Never use mocks" in reader.get("/brief").text
    assert ">in force</span>" in reader.get(f"/entry/{new}").text


def test_an_undo_says_what_else_its_revision_takes_back(home, rule):
    aether.add_working_memory_item("Round half to even.", "decision", home=home)
    aether.compress(1, home=home)

    text = Reader(home).get(f"/entry/{rule}").text

    assert "as a whole: 2 items, 1 session" in text
    assert re.search(r"Undo<span> all of revision \d+", text)
    assert '<span class="unseen"> revision' in text, "the addition of this entry alone"


def test_an_unknown_page_entry_or_action_says_so(home):
    reader = Reader(home)

    assert reader.get("/nowhere").status_code == 404
    assert reader.get("/entry/nothing").status_code == 404
    assert reader.post("nothing").status_code == 404
    assert reader.post("forget").status_code == 400
    assert reader.post("undo", revision="x").status_code == 400


def test_long_lists_have_pages(home):
    aether.add_working_memory_items(
        [{"content": f"Result number {nth}.", "type": "outcome"} for nth in range(120)], home=home
    )
    reader = Reader(home)

    first, last = reader.get("/search"), reader.get("/search?page=3")

    assert first.text.count("data-row=") == 50
    assert last.text.count("data-row=") == 20
    assert "page=2" in first.text
    assert len(first.content) < 150_000


def test_the_newest_entries_follow_the_dates_that_were_asked_for(home):
    for day in range(1, 8):
        given = {"timestamp": f"2026-01-0{day}T10:00:00Z"}
        aether.add_working_memory_item(f"Day {day}.", "decision", home=home, metadata=given)
    reader = Reader(home)

    for layer in ("", "archive"):
        page = reader.get(f"/search?since=2026-01-03&until=2026-01-05&layer={layer}").text
        assert re.findall(r"Day \d", page) == ["Day 4", "Day 3"], layer
        assert "2 entries, the newest first" in page
        aether.clear_working_memory(home=home)
    assert "No entry has this type and time." in reader.get("/search?since=2026-02-01").text
    assert reader.get("/search?since=soon").status_code == 400


def test_a_pager_names_no_number_that_nobody_counted(home, monkeypatch):
    aether.add_working_memory_items(
        [{"content": f"Result number {nth}.", "type": "outcome"} for nth in range(120)], home=home
    )
    reader = Reader(home)

    for path in ("/search?q=result", "/log"):
        for nth in range(60 if path == "/log" else 0):
            aether.add_working_memory_item(f"Note {nth}.", "note", home=home)
        pager = re.search(r'<nav class="pager".*?</nav>', reader.get(path).text, re.DOTALL)[0]
        assert "1 to 50, and more" in pager, path
        assert "51" not in pager
    assert "101 to 120 of 120" in reader.get("/search?q=result&page=3").text
    aether.clear_working_memory(home=home)
    monkeypatch.setattr(entries, "READ_AT_ONCE", 60)
    page = reader.get("/search?layer=archive&type=outcome").text
    assert "1 to 50, and more" in page
    assert "More than 59 entries" in page
    assert "101 to 120 of 120" in reader.get("/search?layer=archive&type=outcome&page=3").text


def test_no_page_is_larger_than_what_it_shows(home):
    """Long texts and long lists have an end on every page, and the whole is a page or a command away."""
    names = aether.add_working_memory_items(
        [{"content": f"Never {nth} {'word ' * 5_000}", "type": "constraint"} for nth in range(5)], home=home
    )
    for nth in range(60):
        text = f"Changed {nth}. {'other words ' * 200}"
        aether.update_working_memory_item(names[0], {"content": text}, home=home)
    reader = Reader(home)

    for page in reader.frame.pages:
        for name in names[:2]:
            answer = reader.get(page.path.replace("{id:path}", name))
            assert len(answer.content) < 150_000, (page.path, len(answer.content))
    assert "The whole: aether recall --full" in reader.get(f"/entry/{names[1]}").text


# What a form changes


def test_an_action_is_a_revision_of_the_viewer_that_its_notice_undoes(home, rule):
    reader = Reader(home)

    notice = reader.follow(reader.submit(reader.get("/brief"), "forget"))

    assert "Never use floats" not in reader.get("/brief").text
    assert (aether.log(home=home)[0].by, aether.log(home=home)[0].operation) == ("viewer", "forget")
    assert 'role="status"' in notice.text
    again = reader.follow(reader.submit(notice, "undo"))
    assert "Never use floats for money." in again.text
    assert aether.log(home=home)[0].by == "viewer"


def test_each_action_does_what_its_button_says(home, rule):
    reader = Reader(home)
    page = reader.get(f"/entry/{rule}")

    reader.follow(reader.submit(page, "protect"))
    assert load(home).documents["memory"]["working_memory"]["items"][0]["metadata"]["protected"] is True
    page = reader.get(f"/entry/{rule}")
    reader.follow(
        reader.submit(page, "correct", text="Money is\r\ninteger cents.", type="decision", relevance="0.7")
    )
    item = aether.list_working_memory_items(home=home)[0]
    assert (item["content"], item["type"], item["metadata"]["relevance_score"]) == (
        "Money is\ninteger cents.",
        "decision",
        0.7,
    )
    other = str(aether.add_working_memory_item("Round half to even.", "decision", home=home))
    page = reader.get(f"/entry/{rule}")
    reader.follow(reader.submit(page, "link", target=other, type="related_to"))
    linked = {item["id"]: item["associative_links"] for item in aether.list_working_memory_items(home=home)}
    assert linked[rule][0]["target_id"] == other
    assert {line.by for line in aether.log(home=home)[:4]} == {"viewer", "queen"}


def test_an_item_is_promoted_from_its_page_with_an_undo(home, rule):
    reader = Reader(home)

    notice = reader.follow(reader.submit(reader.get(f"/entry/{rule}"), "promote"))

    (pattern,) = load(home).documents["memory"]["long_term_memory"]["patterns"]
    assert (pattern["pattern"], pattern["type"]) == ("Never use floats for money.", "constraint")
    assert (pattern["occurrences"], pattern["metadata"]["evidence"]) == (1, [])
    assert "extracted from" in reader.get(f"/entry/{rule}").text
    assert "has it already" in reader.follow(reader.submit(reader.get(f"/entry/{rule}"), "promote")).text
    assert "Promote to long-term" not in reader.get(f"/entry/{pattern['id']}").text
    reader.follow(reader.submit(notice, "undo"))
    assert load(home).documents["memory"]["long_term_memory"]["patterns"] == []
    assert aether.log(limit=1, home=home)[0].by == "viewer"
    assert admin.examine(home=home) == []


def test_what_a_page_cannot_show_is_not_changed_with_the_rest(home):
    text = "Right to left: \u200fשלום, and an escape \x1b[1m."
    item = str(aether.add_working_memory_item(text, "note", 0.3, home=home))
    reader = Reader(home)
    page = reader.get(f"/entry/{item}")
    shown = unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", page.text, re.DOTALL)[1]).lstrip("\n")
    assert shown != text

    reader.follow(reader.submit(page, "correct", text=shown, type="note", relevance="0.8"))

    found = aether.get_working_memory_item(item, home=home)
    assert (found["content"], found["metadata"]["relevance_score"]) == (text, 0.8)


def test_a_statement_is_forgotten_and_not_what_only_contains_its_letters(home):
    kept = [
        str(aether.add_working_memory_item(text, "constraint", 0.9, home=home))
        for text in ("Never use Redistribution lists.", "Never use Redis for sessions of guests.")
    ]
    dropped = str(aether.add_working_memory_item("Use Redis", "decision", 0.9, home=home))
    reader = Reader(home)

    reader.follow(reader.post("forget-text", text="Use Redis"))
    assert set(homes.ids(home)) == set(kept)
    assert dropped not in homes.ids(home)
    again = reader.post("forget-text", text="Use Redis")
    assert (again.status_code, "no entry says this any more" in again.text) == (404, True)


def test_a_doubt_is_settled_one_by_one(home):
    aether.add_working_memory_item(
        "The key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH.", "observation", home=home
    )
    reader = Reader(home)
    page = reader.get("/review")

    assert "sk-ant-api03-abcdefghijkl" not in page.text
    reader.follow(reader.submit(page, "review", nth=1))

    assert "Nothing to review." in reader.get("/review").text
    assert aether.list_working_memory_items(home=home) == []


def test_what_waits_is_accepted_rejected_and_decided_by_source(home):
    for nth, source in enumerate(("mcp", "mcp", "scout", "scout", "scout")):
        aether.add_working_memory_item(f"Never do {nth} of these.", "constraint", source=source, home=home)
    reader = Reader(home)
    page = reader.get("/review")
    assert "Source: mcp" in page.text
    assert "Change: new constraint" in page.text
    assert "3 entries wait of scout" in page.text

    reader.follow(reader.submit(page, "review", nth=0))
    reader.follow(reader.submit(reader.get("/review"), "review", nth=1))
    reader.follow(reader.submit(reader.get("/review"), "decide-all", nth=0))

    assert "Nothing to review." in reader.get("/review").text
    contents = [item["content"] for item in aether.list_working_memory_items(home=home)]
    assert contents == [f"Never do {nth} of these." for nth in (4, 3, 2, 0)]


def test_an_answer_about_an_entry_that_was_changed_meanwhile_is_a_conflict(home):
    texts = ("Use tabs for indentation.", "Use tabs for the indentation.")
    names = [str(aether.add_working_memory_item(text, "constraint", 0.9, home=home)) for text in texts]
    reader = Reader(home)
    for changed, answer in ((names[0], 0), (names[1], 1)):
        page = reader.get("/review")
        aether.update_working_memory_item(changed, {"content": f"Indent by {answer + 2}."}, home=home)

        stale = reader.submit(page, "review", nth=answer)

        assert stale.status_code == 409
        assert f"Indent by {answer + 2}." in stale.text
        assert ("Keep", "Forget")[answer] in stale.text
        assert reader.forms(stale, "review") == []
        aether.undo(home=home)
    written = reader.submit(page, "review", nth=3, text="Use spaces.")
    assert len(aether.list_working_memory_items(home=home)) == 2
    assert written.status_code == 303, "the entries are again as they were shown"
    aether.undo(home=home)
    reader.follow(reader.submit(reader.get("/review"), "review", nth=2))
    assert [one["content"] for one in aether.list_working_memory_items(home=home)] == [texts[0]]


def test_after_an_action_a_person_is_back_where_she_was(home, rule):
    reader = Reader(home)
    for back, wanted in (
        ("/search?q=a", "/search?q=a&done="),
        ("//evil.example/", "/?done="),
        ("https://evil.example", "/?done="),
    ):
        name = str(aether.add_working_memory_item(f"Item for {back}", "decision", home=home))
        live = reader.forms(reader.get(f"/entry/{name}"), "forget")[0]
        location = reader.post("forget", **{**live, "back": back}).headers["location"]
        assert location.startswith(wanted), location


# Two at once


def test_a_stale_page_shows_both_versions_and_overwrites_nothing(home, rule):
    one, two = Reader(home), Reader(home)
    first, second = one.get(f"/entry/{rule}"), two.get(f"/entry/{rule}")

    one.follow(
        one.submit(first, "correct", text="Money is integer cents.", type="constraint", relevance="0.9")
    )
    answer = two.submit(second, "correct", text="Money is a decimal.", type="constraint", relevance="0.9")

    assert answer.status_code == 409
    assert "Money is integer cents." in answer.text
    assert "Money is a decimal." in answer.text
    assert "data-live" not in answer.text  # news must not take away what was written
    assert aether.list_working_memory_items(home=home)[0]["content"] == "Money is integer cents."
    two.follow(two.submit(answer, "correct"))
    assert aether.list_working_memory_items(home=home)[0]["content"] == "Money is a decimal."


def test_what_was_forgotten_meanwhile_is_a_conflict_too(home, rule):
    reader = Reader(home)
    page = reader.get(f"/entry/{rule}")
    aether.forget([rule], home=home)

    answer = reader.submit(page, "correct", text="Other words.", type="constraint", relevance="0.9")

    assert answer.status_code == 409
    assert "Other words." in answer.text
    assert aether.list_working_memory_items(home=home) == []


def test_the_check_is_made_under_the_lock(home, rule, monkeypatch):
    """Between a check before the lock and the change another writer could be."""
    reader = Reader(home)
    page = reader.get(f"/entry/{rule}")
    real = commit.write_lock

    def late(place, **given):
        monkeypatch.setattr(commit, "write_lock", real)
        other = threading.Thread(
            target=aether.update_working_memory_item,
            args=(rule, {"content": "Changed at the last moment."}),
            kwargs={"home": home},
        )
        other.start()
        other.join()
        return real(place, **given)

    monkeypatch.setattr(commit, "write_lock", late)
    answer = reader.submit(page, "forget")

    assert answer.status_code == 409
    assert aether.list_working_memory_items(home=home)[0]["content"] == "Changed at the last moment."


def test_an_undo_that_a_later_change_prevents_is_explained(home, rule):
    reader = Reader(home)
    aether.update_working_memory_item(rule, {"content": "Two."}, home=home)
    aether.update_working_memory_item(rule, {"content": "Three."}, home=home)
    number = load(home).revision - 1

    answer = reader.post("undo", revision=str(number))

    assert answer.status_code == 409
    assert "Undo the later change first." in answer.text


# A home that is read only, locked, damaged or growing


def test_a_read_only_view_changes_nothing_and_offers_no_form(home, rule):
    spool = home / "hooks" / "spool"
    spool.mkdir(parents=True)
    (spool / "1-x.json").write_text("{}")
    reader = Reader(home, read_only=True)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}

    for page in reader.frame.pages:
        forms = reader.get(page.path.replace("{id:path}", rule)).text.replace("/do/open-home", "")
        assert "/do/" not in forms, page.path
    for action in ("forget", "undo", "protect", "repair"):
        assert reader.post(action, entry=rule, revision="1").status_code == 409, action

    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def tree(place):
    return {
        str(path.relative_to(place)): (path.read_bytes() if path.is_file() else b"")
        for path in place.rglob("*")
    }


def test_a_read_only_view_writes_nothing_at_all(home, rule):
    """Not the indexes that a search makes, no lock, no folded journal; with an index, an old one, and none."""
    talk = {"id": "t", "title": "Pipes", "messages": [{"role": "user", "content": "A talk about pipes."}]}
    aether.archive_conversations([talk], home=home)
    for nth in range(3):
        aether.add_working_memory_item(f"Tune the carburettor {nth}.", "decision", home=home)
        aether.compress(1, home=home)
        if nth == 1:
            aether.search_memory("carburettor", home=home)
        for file in home.rglob("*.sqlite") if nth == 0 else ():
            file.unlink()
        if nth == 2:
            (home / "hooks" / "spool").mkdir(parents=True, exist_ok=True)
            (home / "hooks" / "spool" / "1-x.json").write_text("{}")
        before, reader = tree(home), Reader(home, read_only=True)
        for page in reader.frame.pages:
            assert reader.get(page.path.replace("{id:path}", rule)).status_code in (200, 404), page.path
        text = reader.get("/search?q=carburettor&layer=archive").text
        assert text.count("<mark>") >= nth
        assert "pipes" in reader.get("/search?q=pipes").text
        assert reader.get("/health?check=1").status_code == 200
        app._state(reader.frame)

        after = tree(home)
        assert sorted(after) == sorted(before), nth
        assert after == before, nth


def test_a_damaged_home_has_a_page_that_says_what_to_do(home, rule):
    admin.fold(home=home)
    (home / "data" / "memory.json").write_text("{")
    (home / "data" / "journal.jsonl").write_text("nonsense\n")
    for path in (home / "data" / "backups").glob("*"):
        path.unlink()
    reader = Reader(home)

    for path in ("/", "/health", "/health?check=1", "/log"):
        answer = reader.get(path)
        assert answer.headers["content-type"].startswith("text/html"), path
        assert "doctor" in answer.text or "Repair" in answer.text or answer.status_code == 200, path


def test_a_locked_home_is_read_and_a_change_says_who_has_the_lock(home, rule):
    (home / "config.toml").write_text("[store]\nlock_timeout_seconds = 0.1\n")
    reader = Reader(home)
    page = reader.get(f"/entry/{rule}")

    with commit.write_lock(home):
        assert reader.get("/brief").status_code == 200
        answer = reader.submit(page, "forget")

    assert answer.status_code == 503
    assert "lock" in answer.text


def test_a_journal_that_grows_shows_in_the_next_page(home):
    reader = Reader(home)

    for nth in range(3):
        aether.add_working_memory_item(f"Number {nth} arrived.", "decision", home=home)
        assert f"Number {nth} arrived." in reader.get("/search").text


# The command


def test_the_command_prints_its_address_serves_it_and_leaves_nothing_behind(home, rule):
    before = {str(path) for path in home.rglob("*")}
    process = subprocess.Popen(
        [sys.executable, "-m", "aether", "view", "--no-browser", "--home", str(home)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=homes.plain_environment(), cwd=ROOT,
    )  # fmt: skip
    try:
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", address)
        opened = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor()
        )
        opened.open(address, timeout=30).read()
        live = opened.open(address.partition("?")[0] + "live", timeout=30)
        assert b"aether" in live.readline()
    finally:
        process.send_signal(signal.SIGINT)
        out, words = process.communicate(timeout=30)

    live.close()
    assert process.returncode == 0, words
    assert out == ""
    assert "Traceback" not in words
    assert {str(path) for path in home.rglob("*")} - before <= {
        str(home / "lock"),
        str(home / "data" / "lock"),
    }


def test_news_of_the_home_reach_an_open_page(home):
    import asyncio

    from aether.view import app

    reader = Reader(home)

    class Request:
        def __init__(self, app):
            self.app = app

        async def is_disconnected(self):
            return False

    async def listen():
        events = app._changes(reader.frame, Request(reader.app))
        assert (await anext(events)).startswith(":")
        assert (await anext(events)).startswith(":")
        aether.add_working_memory_item("It arrived.", "decision", home=home)
        async with asyncio.timeout(20):
            return await anext(events)

    assert asyncio.run(listen()).startswith("event: change")


def test_a_shared_home_shows_what_other_replicas_did_and_refuses_what_is_stale(colony):  # noqa: F811
    """News of another machine reach an open page, and what a person changes reaches the other machine."""
    ours, theirs = colony.first(), colony.join()
    item = str(aether.add_working_memory_item("Never use floats for money.", "constraint", 0.9, home=ours))
    reader = Reader(ours)

    def seen(path, words):
        end = time.monotonic() + 20
        while words not in (page := reader.get(path)).text and time.monotonic() < end:
            time.sleep(0.1)  # a home asks the server once in a second
        assert words in page.text, path
        return page

    aether.list_working_memory_items(home=theirs)
    sharing.update_share(home=theirs)
    shown = reader.get(f"/entry/{item}")
    before = app._state(reader.frame)
    aether.update_working_memory_item(item, {"content": "Money is integer cents."}, home=theirs)
    end = time.monotonic() + 20
    while app._state(reader.frame) == before and time.monotonic() < end:
        time.sleep(0.1)
    assert app._state(reader.frame) != before, "this is what an open page listens to"

    stale = reader.submit(shown, "forget")
    assert (stale.status_code, "Money is integer cents." in stale.text) == (409, True)
    notice = reader.follow(reader.submit(seen(f"/entry/{item}", "Money is integer cents."), "forget"))
    sharing.update_share(home=theirs)
    assert item not in homes.ids(theirs)
    assert aether.log(limit=1, home=theirs)[0].by == "viewer"
    reader.follow(reader.submit(notice, "undo"))
    sharing.update_share(home=theirs)
    assert item in homes.ids(theirs)
    for page in reader.frame.pages:
        assert reader.get(page.path.replace("{id:path}", item)).status_code in (200, 404), page.path
    looked, tree_before = Reader(ours, read_only=True), tree(ours)
    for page in reader.frame.pages:
        looked.get(page.path.replace("{id:path}", item))
    assert tree(ours) == tree_before
    colony.agree()


def test_a_taken_port_is_named(home):
    from aether.view.app import View

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidInput, match="--port"):
            View(home, port=taken.getsockname()[1])


def test_the_view_is_bound_to_this_machine_only(home):
    from aether.view.app import View

    view = View(home)

    assert view.socket.getsockname()[0] == "127.0.0.1"
    view.socket.close()
