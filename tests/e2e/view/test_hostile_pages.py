"""Whatever a text holds, on a page it is text: eighty hostile ones in every field, question, address and form."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

import aether
from aether import paths
from aether.errors import AetherError
from aether.view import markup
from tests.e2e.view import sample
from tests.e2e.view.asking import Answer, Visit
from tests.e2e.view.hostile import TEXTS
from tests.e2e.view.markup import Page, raw_faults, readable
from tests.effort import FULL_TRIALS

pytestmark = pytest.mark.extras
pytest.importorskip("starlette", reason="the extra view is not installed")
pytest.importorskip("jinja2", reason="the extra view is not installed")

HOSTILE = list(TEXTS.values())
# Of one kind of page, such as those of entries: each has the same template.
MOST_OF_KIND = 12
# Each of so many homes has the texts in other fields; all of them put each text into each field.
ROTATIONS = range(1, len(HOSTILE) if FULL_TRIALS else 4)


def mixed(first: int = 0) -> Callable[[str], str]:
    """Return what appends the hostile texts in turn, from the `first` on."""
    turn = count(first)
    return lambda text: f"{text} {HOSTILE[next(turn) % len(HOSTILE)]}"


# Every element that Markdown becomes.
ALL_MARKDOWN = """# A
## B
### C
#### D
- *a* **b** ~~c~~ `d`
> e

3. f\\
g

***

| h |
|:--|
| i |

```python
j
```

[k](/ "l")
"""


@pytest.fixture(scope="module")
def allowed(_sample) -> set[tuple[str, str]]:
    """Return the elements and attributes that the templates hold, and the charts of the plain sample."""
    found: set[tuple[str, str]] = set()
    for path in (paths.resource("data/view") / "templates").glob("*.html"):
        bare = re.sub(r"\{#.*?#\}|\{%.*?%\}", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        found |= Page(re.sub(r"\{\{.*?\}\}", "x", bare, flags=re.DOTALL)).shapes
    found |= Page(str(markup.markdown(ALL_MARKDOWN))).shapes
    visit = Visit(_sample)
    charts = [
        chart
        for path in ("/colony", "/conversations")
        for chart in re.findall(r"(?s)<svg.*?</svg>", visit.get(path).html)
    ]
    assert charts
    return found.union(*(Page(chart).shapes for chart in charts))


def faults(answer: Answer, allowed: set[tuple[str, str]]) -> list[str]:
    """Return what is wrong with the page of `answer` as a page of ours."""
    page = Page(answer.html)
    found = page.faults + raw_faults(answer.html)
    found += [f"<{tag} {name}> is in no template" for tag, name in sorted(page.shapes - allowed)]
    found += [
        f"unescaped: {text[:40]!r}" for text in HOSTILE if re.search("[<>\"']", text) and text in answer.html
    ]
    if "default-src 'self'" not in answer.headers.get("content-security-policy", ""):
        found.append("no policy")
    if answer.status >= 500 and answer.status != 503:
        found.append(f"status {answer.status}")
    if (
        answer.html.rstrip()[-7:] != "</html>"
        or ("nav", "") not in page.shapes
        or ("h1", "") not in page.shapes
    ):
        found.append("the page is not whole")
    return found


def crawl(visit: Visit) -> dict[str, Answer]:
    """Return the pages that links lead to, from the overview on: of one kind at most so many."""
    waiting, found, kinds = ["/"], {}, {}
    while waiting:
        path = waiting.pop(0)
        kind = re.sub(r"(?<=/.)/.*|\?.*", "", path) if path.count("/") < 2 else path.split("/")[1]
        kinds[kind] = kinds.get(kind, 0) + 1
        if path in found or kinds[kind] > MOST_OF_KIND:
            continue
        found[path] = answer = visit.get(path)
        if answer.headers["content-type"].startswith("text/html"):
            waiting += [
                link for link in Page(answer.html).links if link.startswith("/") and link not in found
            ]
    return found


def trouble(pages: dict[str, Answer], allowed: set[tuple[str, str]]) -> dict[str, list[str]]:
    """Return what is wrong, by page."""
    html = {path: one for path, one in pages.items() if one.headers["content-type"].startswith("text/html")}
    return {path: found for path, one in html.items() if (found := faults(one, allowed))}


def test_no_page_of_a_home_of_hostile_texts_holds_markup_that_its_template_does_not(tmp_path, allowed):
    home = sample.make(tmp_path / "harbour", text=mixed())

    pages = crawl(Visit(home))

    assert trouble(pages, allowed) == {}
    # Every page of the menu was seen, and so were entries.
    assert {page.path for page in Visit(home).frame.pages if page.in_menu} <= set(pages)
    assert [path for path in pages if path.startswith("/entry/")]


@pytest.mark.slow
@pytest.mark.parametrize("first", ROTATIONS)
def test_no_field_of_a_page_takes_any_hostile_text_as_markup(tmp_path, first, allowed):
    home = sample.make(tmp_path / "harbour", text=mixed(first if FULL_TRIALS else first * 17))

    assert trouble(crawl(Visit(home)), allowed) == {}


def test_a_hostile_text_is_read_on_the_page_of_its_entry_as_it_was_written(harbour, allowed):
    ids = [
        aether.add_working_memory_item(f"begin {text} end", "observation", home=harbour) for text in HOSTILE
    ]
    visit = Visit(harbour)

    unread = {
        name
        for entry, (name, text) in zip(ids, TEXTS.items(), strict=True)
        if readable(f"begin {text} end") not in readable(Page(visit.get(f"/entry/{entry}").html).text)
    }

    assert unread == set()


def test_hostile_types_authors_and_castes_are_text_too(harbour, allowed):
    ids = []
    for nth, text in enumerate(HOSTILE):
        more = {"source": text, "caste": text, "metadata": {"project": text, "session": text, "role": text}}
        for fields in ({"type": text, **more}, more, {"type": text}, {"caste": text}):
            try:
                given = {"type": "decision", "relevance_score": 0.9, **fields}
                ids.append(aether.add_working_memory_item(f"Decided {nth}.", home=harbour, **given))
            except AetherError:
                continue
            break
    visit = Visit(harbour)

    pages = {f"/entry/{one}": visit.get(f"/entry/{one}") for one in ids} | crawl(visit)

    assert len(ids) > len(HOSTILE) * 0.9
    assert trouble(pages, allowed) == {}


def test_a_hostile_question_filter_or_address_is_answered_by_a_whole_page(harbour, allowed):
    visit = Visit(harbour)
    asked = {}
    names = (
        "q",
        "page",
        "type",
        "project",
        "occasion",
        "done",
        "since",
        "layer",
        "back",
        "step",
        "level",
        "day",
    )
    for nth, text in enumerate(HOSTILE):
        # Each page gets each fourth text, and all of them where trials are whole.
        for at, page in enumerate(visit.frame.pages):
            if not FULL_TRIALS and (nth + at) % 4:
                continue
            path = "".join(
                quote(text.replace("\0", ""), safe="") if part.startswith("{") else part
                for part in re.split(r"(\{.*?\})", page.path)
            )
            asked[f"{path} {text}"] = visit.get(path, **dict.fromkeys(names, text))

    assert trouble(asked, allowed) == {}


def test_a_hostile_form_is_refused_by_a_whole_page_or_kept_as_text(harbour, allowed):
    visit = Visit(harbour)
    item = aether.list_working_memory_items(home=harbour)[0]["id"]
    from aether.view.app import ACTIONS

    asked = {}
    fields = "text content type reason words note id ids revision conversation context name answer doubt level days".split()
    for nth, text in enumerate(HOSTILE):
        for name in ACTIONS:
            given = dict.fromkeys(fields, text) | {
                "entry": (item, text)[nth % 2],
                "state": text,
                "back": text,
            }
            answer = visit.post(name, **given)
            if answer.status in (302, 303):
                where = answer.headers["location"]
                assert re.match(r"/(?![/\\])", where), where
                answer = visit.get(where)
            asked[f"{name} {text}"] = answer

    assert trouble(asked, allowed) == {}


def test_files_with_hostile_names_are_named_as_text(harbour, allowed):
    for nth, text in enumerate(HOSTILE):
        name = text.replace("\0", "").replace("/", "")[:60].encode("utf-8", "replace")
        for place in ("", "conversations", "quarantine", "archive"):
            directory = harbour / place
            directory.mkdir(exist_ok=True)
            Path(os.fsdecode(bytes(directory) + b"/%d" % nth + name)).write_text("{")
    with (harbour / "hook.log").open("a", encoding="utf-8") as log:
        log.writelines(f"{text}\n" for text in HOSTILE)

    assert trouble(crawl(Visit(harbour)), allowed) == {}


def test_the_checks_see_a_text_that_is_not_escaped(harbour, allowed):
    visit = Visit(harbour)
    whole = visit.get("/")

    def broken(text: str) -> list[str]:
        return faults(whole._replace(html=whole.html.replace("</h1>", f"{text}</h1>", 1)), allowed)

    plain = {
        "no quote",
        "url",
        "url with a tab",
        "url as entity",
        "data url",
        "markdown",
        "path",
        "jinja",
        "format",
    }
    plain |= {"other templates", "entities", "event stream", "huge word", "backquote"}
    assert broken("") == []
    assert {name for name, text in TEXTS.items() if not broken(text)} <= plain
