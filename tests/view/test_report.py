"""The report as one HTML file, and its charts: whole, escaped, without script, style attributes or an address."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import pytest

import aether
from aether.api import hook_sessions
from aether.errors import BackendUnavailable
from aether.view import charts
from aether.view.charts import as_html
from tests.cli.stage import shown

HOSTILE = [
    "<script>alert(1)</script>", "</style><script>alert(2)</script>", '"><img src=https://x.example onerror=alert(3)>',
    "<svg onload=alert(4)>", "{{ 7 * 7 }}{% raw %}", "\u202egnp.exe\x1b[31m\0", "]]></title></svg>", "&lt;b&gt; &amp;",
]  # fmt: skip
pytestmark = pytest.mark.extras


@pytest.fixture(autouse=True)
def _packages():
    pytest.importorskip("jinja2")
    pytest.importorskip("leather")


@pytest.fixture
def filled(home):
    for text in HOSTILE:
        aether.add_working_memory_item(
            f"Decided {text}, because {text}.", "decision", 0.9, caste=text[:60], home=home
        )
        aether.emit_signal("FEEDBACK", text, home=home)
    aether.add_goal(HOSTILE[0], home=home)
    aether.add_working_memory_item("All of it. " * 100, "outcome", 0.9, metadata={"phase": 1}, home=home)
    session = aether.compress(1, home=home).ingested.session["session_id"]
    for text in HOSTILE:
        aether.extract_pattern_to_long_term(
            f"Never use {text}", session_id=session, type="constraint", home=home
        )
    return home


@pytest.fixture
def numbers(filled, monkeypatch, tmp_path):
    """Return the numbers of a report in which every chart has something to draw."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    aether.search_memory("All of it", home=filled)
    hook_sessions.start_injected(filled, "s-1", [f"- {HOSTILE[0]}"])
    found = aether.report(home=filled)["charts"]
    spent = {"answers": 2, "input_tokens": 3, "output_tokens": 1, "cost_usd": 0.5, "models": [HOSTILE[0]]}
    return {**found, "architects": [{"day": "2026-03-01", **spent}]}


class Tags(HTMLParser):
    """The tags of a document with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_nothing_in_the_file_runs_loads_or_links_elsewhere(filled):
    tags = Tags(as_html(aether.report(home=filled))).found

    assert {tag for tag, _ in tags} <= set(
        "html head meta title style body header h1 h2 h3 p time nav ul ol li a main section dl div dt dd bdi b small span figure "
        "figcaption svg desc g rect text line path details summary table thead tbody tr th td".split()
    )
    for _, attributes in tags:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src", "srcset", "data")
        ]
        assert attributes.get("href", "#").startswith("#")


def test_hostile_text_is_shown_as_text(filled):
    text = as_html(aether.report(home=filled))

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "{{ 7 * 7 }}" in text


def test_each_chart_has_a_title_a_description_and_a_table(filled, numbers):
    for chart in charts.charts_of(numbers):
        assert f">{chart.title}</title>" in chart.svg, chart.title
        assert "<desc " in chart.svg
        assert 'role="img" ' in chart.svg
        assert chart.rows
        assert all(len(row) == len(chart.head) for row in chart.rows)
        tags = Tags(chart.svg).found
        assert {tag for tag, _ in tags} <= {"svg", "title", "desc", "g", "rect", "text", "line", "path"}
        drawn = {"stroke", "fill"} - {name for _, given in tags for name in given if given[name] != "none"}
        assert drawn == {"stroke", "fill"}, "colours are classes"


def test_the_labels_of_an_axis_differ(numbers):
    for chart in charts.charts_of(numbers):
        axes = re.findall(r'<g class="axis[^>]*>.*?</g>\s*</g>', chart.svg, re.DOTALL)
        assert len(axes) == 2, chart.title
        for axis in axes:
            labels = re.findall(r"<text[^>]*>([^<]+)</text>", axis)
            assert labels, chart.title
            assert len(set(labels)) == len(labels), chart.title


def test_a_chart_without_numbers_says_so_and_draws_nothing(home):
    drawn = {chart.title: chart for chart in charts.charts_of(aether.report(home=home)["charts"])}

    assert drawn.pop("Fill of the layers").svg
    assert {title: (chart.svg, chart.description) for title, chart in drawn.items()} == {
        "Tokens of memory given to each session": ("", "No session was given memory yet."),
        "Hits of recall": ("", "Memory was asked nothing since aether counts that."),
        "Cost of architects": ("", "No model was asked yet; the built-in architect costs nothing."),
        "Growth of memory": ("", "No entry was noted yet."),
        "Tokens saved": ("", "Nothing was compressed or compacted yet."),
        "Strength of signals": ("", "No signal is active."),
    }


def test_a_year_of_recalls_is_drawn_by_its_newest_days_and_listed_in_full():
    days = [
        {"day": f"2026-0{month}-{day:02}", "answered": month, "unanswered": 9 - month, "opened": 1}
        for month in range(1, 10)
        for day in range(1, 29)
    ]

    chart = charts.recalls_chart(days)

    assert chart.description.startswith("Memory had an answer to 1,260 of 2,268 prompts and searches")
    assert len(chart.rows) == len(days)
    assert len(Tags(chart.svg).found) < 100
    assert "2026-09-28: 9 of 9" in chart.svg


def test_a_report_of_a_long_history_stays_below_a_megabyte(home):
    said = "Decided to keep this long line of words in mind for the next year of work. " * 12
    entries = [
        {"content": f"{nth} {said}, because {said}", "type": "decision", "relevance_score": 0.5} for nth in range(700)
    ]  # fmt: skip
    for start in range(0, len(entries), 100):
        aether.add_working_memory_items(entries[start : start + 100], home=home)
        aether.clear_working_memory(home=home)

    assert len(as_html(aether.report(home=home)).encode()) < 1_000_000


def test_the_command_writes_one_file_and_replaces_an_older_one(filled, tmp_path, capsys):
    path = tmp_path / "report.html"
    path.write_text("old")

    seen = shown(capsys, "report", "--home", str(filled), "--output", str(path))

    assert seen.out == ""
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("report")] == ["report.html"]


def test_without_the_packages_the_error_names_the_extra(home, monkeypatch):
    found = aether.report(home=home)
    monkeypatch.setitem(sys.modules, "leather", None)

    with pytest.raises(BackendUnavailable, match=r"\.\[view\]"):
        as_html(found)
