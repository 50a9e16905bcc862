import os
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether import prompts
from aether.errors import InvalidDocument, InvalidInput
from aether.paths import resource
from aether.store.keys import STRATEGIES
from tests.tables import rows

GOLDEN = Path(__file__).parent / "golden" / "prompts"
DOLLARS = {
    "compressed_at": "2026-03-01T10:15:00.000000Z",
    "phase": "2",
    "session_id": "c1",
    "target_tokens": "400",
    "total_tokens": "1000",
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that makes a text the prompt `mine` of a scratch folder."""

    def write(text):
        folder = tmp_path / "prompts"
        folder.mkdir(exist_ok=True)
        (folder / "mine.md").write_text(text, encoding="utf-8")
        return "mine"

    monkeypatch.setattr(prompts, "resource", lambda relative: tmp_path / relative)
    return write


@rows("name", prompts.names())
def test_every_prompt_loads_and_declares_what_it_uses(name):
    prompt = prompts.load(name)

    assert set(string.Template(prompt.text).get_identifiers()) == set(prompt.variables)
    assert prompt.purpose.endswith(".")
    assert prompt.output.endswith(".")


@rows("name", prompts.names())
def test_every_prompt_is_named_by_code(name):
    package = resource("prompts").parent / "aether"
    calls = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))

    assert f'"{name}"' in calls


@rows("name", prompts.names())
def test_every_prompt_reads_as_its_golden_rendering(name):
    """The rendering stands in a file for review; AETHER_GOLDEN=write writes it anew."""
    golden = GOLDEN / f"{name}.txt"
    text = prompts.render(name, **{key: f"«{key}»" for key in prompts.load(name).variables})
    if os.environ.get("AETHER_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")

    assert text == golden.read_text(encoding="utf-8")


def test_rendering_strips_the_head_and_fills_the_variables():
    text = prompts.render("architect", **DOLLARS)

    assert text.startswith("You write the memory")
    assert '"compressed_at": "2026-03-01T10:15:00.000000Z"' in text
    assert "about 400 tokens" in text
    assert "$" not in text


@rows(
    "rule",
    [
        "word for word",
        "never follow them",
        "Many sessions have none",
        "copied exactly",
        '"quote"',
        '"supersedes"',
        '"high_value_items"',
    ],
)
def test_the_architect_gets_the_rules(rule):
    assert rule in prompts.render("architect", **DOLLARS)


def test_a_missing_variable_and_an_unused_argument_are_each_named():
    with pytest.raises(
        InvalidInput, match=r"Not given: earlier, items, protected, signals\. Not asked for: tone\."
    ):
        prompts.render("handoff", tone="warm")


def test_values_are_not_filled_a_second_time():
    assert "costs $feedback and $$5" in prompts.render("correction", feedback="costs $feedback and $$5")


@rows("name", ["nobody", "../README", "README", ""])
def test_an_unknown_prompt_is_refused_with_the_names(name):
    with pytest.raises(InvalidInput, match="architect"):
        prompts.load(name)


@rows(
    "text",
    [
        "",
        "no head",
        "---\npurpose: x\n---\ntext",
        "---\npurpose: x.\nvariables: a\noutput: y.\n---\nno variable",
        "---\npurpose: x.\nvariables: a\noutput: y.\n---\n$a and $b",
        "---\npurpose: x.\nvariables: a\noutput: y.\n---\n$a costs $5",
        "before\n---\npurpose: x.\nvariables: a\noutput: y.\n---\n$a",
    ],
)
def test_a_prompt_file_that_lies_about_itself_is_refused(written, text):
    with pytest.raises(InvalidDocument):
        prompts.load(written(text))


def test_a_prompt_without_variables_and_with_windows_line_ends_is_fine(written):
    name = written("---\r\npurpose: x.\r\nvariables: \r\noutput: y.\r\n---\r\nit costs $$5")

    assert prompts.load(name).variables == ()
    assert prompts.render(name) == "it costs $5"


@given(st.text())
def test_no_text_closes_a_marker_and_none_is_lost(text):
    """Quoted data decodes to itself and holds no closing tag."""
    import json

    line = prompts.quoted([{"content": text}])

    assert "</" not in line
    assert json.loads(line) == {"content": text}


@rows("strategy", STRATEGIES)
def test_the_prompt_of_a_strategy_shows_an_example(strategy):
    heading, _, example = prompts.load(f"summaries/{strategy}").text.partition("\n# An example\n")

    assert heading
    assert len(example.split()) > 40
