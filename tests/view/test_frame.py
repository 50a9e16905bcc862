"""The words and checks of a page that need no framework."""

from __future__ import annotations

import aether
from aether.store.snapshot import load
from aether.view import app, frame, pages


def test_a_digest_changes_with_the_entry_and_not_with_a_look_at_it(home):
    name = aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    before = frame.digest(frame.live_entry(load(home).documents, name))

    aether.search_memory("sqlite", home=home)
    seen = frame.digest(frame.live_entry(load(home).documents, name))
    aether.update_working_memory_item(name, {"content": "Use PostgreSQL."}, home=home)
    after = frame.digest(frame.live_entry(load(home).documents, name))

    assert before == seen != after


def test_a_way_back_leads_nowhere_else():
    for text in (
        "//evil.example",
        "http://evil.example/",
        "/\\evil",
        "javascript:alert(1)",
        "",
        "/a\nb",
        "/\x00",
        "[",
        "/é",
    ):
        assert app.own_path(text) == "/", text
    assert app.own_path("/search?q=a%20b&page=2") == "/search?q=a%20b&page=2"


def test_a_list_has_pages_and_none_beyond_the_last():
    whole = frame.part(range(120), 99)

    assert (whole.page, whole.pages, whole.lines, whole.first) == (3, 3, list(range(100, 120)), 101)
    assert frame.part([], 1) == ([], 1, 1, 0, False)


def test_a_search_without_access_writes_nothing(home):
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    before = load(home).revision

    assert aether.search_memory("sqlite", access=False, home=home)
    assert load(home).revision == before


def test_every_page_is_named_once_and_belongs_to_a_function_without_a_framework():
    paths = [page.path for page in app.PAGES]

    assert len(set(paths)) == len(paths)
    assert {page.make.__module__.partition(".")[0] for page in app.PAGES} == {"aether"}
    assert set(pages.OCCASIONS) >= {"startup", "compact", "resume", "subagent"}
