"""Journeys of a person through `aether view`, in the system's Chromium: nothing is asked of anybody else on the way."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import aether
from aether import clock
from aether.api.briefing import brief
from tests import homes, loopback
from tests.e2e.view import sample, stage
from tests.e2e.view.hostile import TEXTS
from tests.effort import FULL_TRIALS

pytestmark = [pytest.mark.extras, pytest.mark.slow]

HOOK = [sys.executable, "-c", "from aether.hosts.hook import run; run()"]
# Each width and each scheme; all pairs where trials are whole.
LOOKS = (
    [(width, scheme) for width in (360, 800, 1600) for scheme in ("light", "dark")]
    if FULL_TRIALS
    else [(360, "light"), (800, "dark"), (1600, "light")]
)


def brief_of(home: Path) -> str:
    """Return the text that a new session gets."""
    return brief(home)["block"]


def item_of(home: Path, text: str) -> str:
    """Return the id of the item that begins with `text`."""
    held = aether.list_working_memory_items(home=home)
    return next(item["id"] for item in held if item["content"].startswith(text))


def hook(home: Path, **event: Any) -> None:
    """Let Claude Code's hook note `event` in the project of `home`."""
    given = {"session_id": "live", "cwd": str(home.parent), "prompt_id": "p1", **event}
    subprocess.run(
        HOOK,
        input=json.dumps(given),
        text=True,
        env=homes.plain_environment(),
        check=True,
        capture_output=True,
    )


def edit(page: Any) -> Any:
    """Open the form that corrects an entry, and return the field of its text."""
    page.get_by_text("Edit", exact=True).first.click()
    return page.get_by_label("Text", exact=True).first


def press(page: Any, name: str) -> None:
    """Press the first button of that name."""
    page.get_by_role("button", name=re.compile(name)).first.click()


def test_a_wrong_rule_is_found_revoked_and_brought_back(harbour, view, visit):
    page = visit(view(harbour)).page
    assert sample.WRONG_RULE in brief_of(harbour)

    page.get_by_role("link", name=re.compile("French")).first.click()
    press(page, "^Forget")

    page.get_by_role("status").get_by_text("forgotten").wait_for()
    assert sample.WRONG_RULE not in brief_of(harbour)
    assert aether.log(limit=1, home=harbour)[0].by == "viewer"
    press(page, "^Undo")
    page.get_by_role("status").get_by_text("undone").wait_for()
    assert sample.WRONG_RULE in brief_of(harbour)


def test_an_item_from_a_hook_appears_without_a_reload(harbour, view, visit):
    visitor = visit(view(harbour))
    visitor.go("/brief")
    visitor.page.evaluate("window.same = true")

    hook(
        harbour,
        hook_event_name="UserPromptSubmit",
        prompt="Never deploy on Fridays, the harbour is full then.",
    )

    visitor.page.get_by_text("Never deploy on Fridays").first.wait_for()
    assert visitor.page.evaluate("window.same") is True


def test_a_page_that_is_being_edited_is_not_replaced_by_news(harbour, view, visit):
    visitor = visit(view(harbour))
    page = visitor.go(f"/entry/{item_of(harbour, 'Decided to render tickets')}")
    edit(page).fill("Half a sentence")

    aether.add_working_memory_item("Something else happened.", "observation", home=harbour)

    page.wait_for_timeout(2_000)
    assert page.get_by_label("Text", exact=True).first.input_value() == "Half a sentence"


def test_a_compaction_is_looked_at_and_undone(harbour, view, visit):
    page = visit(view(harbour)).page

    page.get_by_role("link", name="Conversations", exact=True).click()
    page.get_by_role("link", name=sample.CONVERSATION).first.click()
    page.get_by_text("Goal: send reminders").first.wait_for(state="attached")
    press(page, "^Undo")

    page.get_by_role("status").first.wait_for()
    (found,) = aether.conversation_list(home=harbour)
    assert found.undone == 1


def test_a_conversation_is_restored_from_the_archive(harbour, view, visit):
    aether.age_archive(now=clock.now() + timedelta(days=45), home=harbour)
    assert aether.conversation_list(home=harbour) == []
    page = visit(view(harbour)).page

    page.get_by_role("link", name="Archive", exact=True).click()
    page.locator("li", has_text=sample.CONVERSATION).get_by_role(
        "button", name=re.compile("^Restore")
    ).click()

    page.get_by_role("status").get_by_text("live conversation again, exactly as it was archived").wait_for()
    (found,) = aether.conversation_list(home=harbour)
    assert found.conversation == sample.CONVERSATION


def test_a_correction_from_a_second_window_shows_both_versions_and_overwrites_nothing(harbour, view, visit):
    visitor = visit(view(harbour))
    entry = item_of(harbour, "Decided to render tickets")
    first = visitor.go(f"/entry/{entry}")
    second = visitor.go(f"/entry/{entry}", visitor.context.new_page())

    opened = edit(second)  # from here on no news replaces the page
    edit(first).fill("Tickets are PDF from the first window.")
    press(first, "^(Save|Correct)")
    first.get_by_role("status").filter(has_text=re.compile(r"\w")).first.wait_for()
    opened.fill("Tickets are SVG from the second window.")
    press(second, "^(Save|Correct)")
    second.get_by_text("from the first window").first.wait_for()

    assert (
        second.get_by_text("from the second window").count() + second.get_by_label("Text", exact=True).count()
        >= 1
    )
    assert (
        aether.get_working_memory_item(entry, home=harbour)["content"]
        == "Tickets are PDF from the first window."
    )
    press(second, "^Do it all the same")
    second.get_by_role("status").first.wait_for()
    assert (
        aether.get_working_memory_item(entry, home=harbour)["content"]
        == "Tickets are SVG from the second window."
    )


def test_everything_is_reached_and_done_by_the_keyboard(harbour, view, visit):
    visitor = visit(view(harbour))
    page = visitor.page

    page.keyboard.press("/")
    page.keyboard.type("french")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=french*")
    page.get_by_text("French").first.wait_for()
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/entry/*")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText || ''").startswith("Forget"):
            break
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("forgotten").wait_for()
    assert sample.WRONG_RULE not in brief_of(harbour)
    page.keyboard.press("u")
    page.get_by_role("status").get_by_text("undone").wait_for()
    assert sample.WRONG_RULE in brief_of(harbour)
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")

    for path in visitor.links():
        assert unreached(visitor.go(path)) == [], path


def unreached(page: Any) -> list[str]:
    """Return what can be pressed or filled on the page, and the Tab key does not reach."""
    wanted = page.evaluate(
        """() => [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]
        .filter(one => one.checkVisibility({visibilityProperty: true}))
        .map((one, nth) => (one.dataset.wanted = nth, one.outerHTML.slice(0, 80)))"""
    )
    reached = set()
    page.evaluate("document.activeElement.blur()")
    # A field of a date has several places.
    for _ in range(len(wanted) + 30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement?.dataset?.wanted ?? ''"))
    return [one for nth, one in enumerate(wanted) if str(nth) not in reached]


def test_without_javascript_a_person_searches_corrects_and_undoes(harbour, view, visit):
    visitor = visit(view(harbour), java_script_enabled=False)
    page = visitor.page
    for link in (
        page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link").all_inner_texts()
    ):
        page.get_by_role("link", name=link, exact=True).first.click()
        page.get_by_role("heading", level=1).wait_for()

    page.get_by_role("searchbox").first.fill("tickets")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=re.compile("tickets", re.IGNORECASE)).first.click()
    edit(page).fill("Tickets are paper.")
    press(page, "^(Save|Correct)")
    page.get_by_role("status").get_by_text("Corrected").wait_for()
    assert item_of(harbour, "Tickets are paper.")
    press(page, "^Undo")
    page.get_by_role("status").get_by_text("undone").wait_for()
    assert item_of(harbour, "Decided to render tickets")


def test_each_page_is_readable_at_each_width_in_light_and_dark(harbour, view, visit):
    if not stage.axe():
        pytest.skip("no axe-core here: name its axe.min.js in AETHER_TEST_AXE")
    served = view(harbour)
    wide, broken = [], []
    for width, scheme in LOOKS:
        visitor = visit(
            served, viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        for path in kinds(visitor):
            page = visitor.go(path)
            shown, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            wide += [f"{path} at {width}: {shown}"] if shown > room else []
            broken += [f"{width} {scheme} {one}" for one in stage.findings(page)]
            assert page.evaluate("document.getAnimations().length") == 0

    assert wide == []
    assert broken == []


def kinds(visitor: stage.Visitor) -> list[str]:
    """Return one page of each kind, as links lead to them, and one of an error."""
    found, waiting = {}, ["/"]
    while waiting:
        path = waiting.pop(0)
        kind = path.split("?")[0] if path.count("/") == 1 else path.split("/")[1]
        if kind in found:
            continue
        found[kind] = path
        if not path.endswith((".json", ".jsonl", ".html", ".md")):
            visitor.go(path)
            waiting += visitor.links()
    assert len(found) >= 8, found
    return [*found.values(), "/entry/none"]


def test_hostile_texts_run_nothing_and_ask_nobody_in_the_browser(tmp_path, view, visit):
    texts = iter(list(TEXTS.values()) * 9)
    home = sample.make(tmp_path / "harbour", text=lambda text: f"{text} {next(texts)}")
    for text in TEXTS.values():
        aether.add_working_memory_item(text, "decision", 0.9, home=home)
    visitor = visit(view(home))

    for path in [*kinds(visitor), "/search", "/search?page=2"]:
        page = visitor.go(path)
        assert "aether" in page.title()
        page.get_by_role("heading", level=1).wait_for()
        assert page.get_by_role("navigation", name="Pages", exact=True).is_visible()


def test_another_page_can_neither_read_nor_change_memory(harbour, view, visit):
    served = view(harbour)
    visitor = visit(served)
    rule = item_of(harbour, sample.WRONG_RULE)

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            page = f'<form method=post action="{served.origin}/do/forget"><input name=entry value="{rule}"><button>Go</button></form>'
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_):
            pass

    with loopback.serving(Elsewhere) as port:
        page = visitor.context.new_page()
        page.goto(f"http://localhost:{port}/")
        read = page.evaluate(
            "url => fetch(url, {credentials: 'include'}).then(a => a.text(), () => 'refused')", served.origin
        )
        with page.expect_navigation():
            page.get_by_role("button").click()
        assert "another page" in page.inner_text("body")
        visitor.asked[:] = [url for url in visitor.asked if f":{port}/" not in url]
        visitor.trouble[:] = [one for one in visitor.trouble if f":{port}/" not in one]

    assert read == "refused"
    assert sample.WRONG_RULE in brief_of(harbour)


def test_a_view_that_only_reads_offers_nothing_to_change(harbour, view, visit):
    before = aether.log(limit=1, everything=True, home=harbour)[0].revision
    visitor = visit(view(harbour, "--read-only"))

    for path in kinds(visitor):
        page = visitor.go(path)
        # To show another home changes none.
        assert page.locator("form[method=post]:not([action='/do/open-home'])").count() == 0, path

    assert aether.log(limit=1, everything=True, home=harbour)[0].revision == before


def test_a_view_leaves_nothing_behind(harbour, browser):
    before = sorted(path.relative_to(harbour) for path in harbour.rglob("*"))

    with stage.viewing(harbour) as served:
        visitor = stage.Visitor(browser, served)
        visitor.leave()

    assert sorted(path.relative_to(harbour) for path in harbour.rglob("*")) == before


def test_the_report_opens_from_disk_and_asks_for_nothing(harbour, visit, tmp_path):
    report = tmp_path / "report.html"
    command = [sys.executable, "-m", "aether", "--home", str(harbour), "report", "--output", str(report)]
    environment = {**homes.plain_environment(), "PYTHONPATH": ":".join(sys.path)}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    visitor = visit(None)

    page = visitor.page
    page.goto(report.as_uri())

    page.get_by_role("heading", level=1).wait_for()
    assert visitor.asked == [report.as_uri()]
    assert page.locator("script").count() == 0
    assert not stage.axe() or stage.findings(page) == []
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visitor.asked.clear()
