"""Markdown on a page: nothing of it runs, nothing is loaded, and plain text stays as it was written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.extras
pytest.importorskip("markdown_it")
pytest.importorskip("markupsafe")

from aether.view.markup import codes, gist, markdown  # noqa: E402 - markdown-it-py is optional

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "[a](data:text/html,x)",
    "![a](https://evil.example/x.png)", '![a"><script>](x)', "[a]: javascript:x\n\n[a]", '<https://ok.example/"onclick=x>',
    "`<b>`", "```html\n<iframe>\n```", "# <svg/onload=x>", "&lt;script&gt;", '[a](https://ok.example "t" onclick=x)',
]  # fmt: skip
TAG = re.compile(r"<([a-z0-9]+)((?:\s[^>]*)?)>")
ALLOWED = set(
    "p h3 h4 h5 h6 ul ol li a em strong s code pre blockquote br hr table thead tbody tr th td".split()
)


def check(html):
    for name, attributes in TAG.findall(html):
        assert name in ALLOWED, html
        for attribute in re.findall(r'([a-z-]+)="', attributes):
            assert attribute in {"href", "rel", "title", "class", "start"}, html
        if name == "a":
            assert re.search(r'href="(https?://|mailto:)', attributes), html
            assert 'rel="noreferrer' in attributes, html


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_is_harmless(text):
    html = str(markdown(text))

    check(html)
    assert "<script" not in html
    assert "<img" not in html


@pytest.mark.parametrize(
    "text",
    [
        "> " * 50 + "Words",
        "".join("  " * depth + "- a\n" for depth in range(15)) + "  " * 15 + "- Words",
        '[a]: https://ok.example "Words"',
    ],
)
def test_no_words_are_hidden_from_a_reader(text):
    html = str(markdown(text))

    check(html)
    assert "Words" in html


@given(
    st.lists(
        st.sampled_from(
            [*HOSTILE, "# A\n", "- b\n", "| a | b |\n|:--|--:|\n| 1 | 2 |\n", "text ", "**x**", "\n\n", "1. "]
        )
    ).map("".join)
)
def test_any_mixture_is_harmless(text):
    check(str(markdown(text)))


def test_markdown_is_rendered_with_headings_below_those_of_the_page():
    html = str(markdown("# Plan\n\n1. **Use** `SQLite`\n\n| a |\n|---|\n| b |\n"))

    assert "<h3>Plan</h3>" in html
    assert "<strong>Use</strong> <code>SQLite</code>" in html
    assert "<td>b</td>" in html


@given(st.text(st.characters(exclude_characters="`\r\0", exclude_categories=["Cs"])))
def test_text_without_backticks_is_only_escaped(text):
    from markupsafe import escape

    assert codes(text) == escape(text)


@given(st.text(alphabet="a`<&\n *_#", max_size=20))
def test_words_between_backticks_are_code_and_nothing_else_changes(text):
    html = str(codes(text))

    assert set(re.findall(r"</?(\w+)", html)) <= {"code"}
    assert "<a" not in html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Plan\n\n```python\nrun()\n```\nthen **stop** it", "Plan run() then stop it"),
        (
            "src/*.py, **/test_*.py and `**kw` of 2**8 * 3**2",
            "src/*.py, **/test_*.py and `**kw` of 2**8 * 3**2",
        ),
        ("Fixes #12, see ```x``` and C#", "Fixes #12, see ```x``` and C#"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_a_text_in_a_list_is_one_line_without_marks_that_say_nothing(text, shown):
    assert gist(text) == shown
