"""The documents: what they show is run, what they name exists, what is generated is up to date."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import aether
from aether.cli.claude import mcp_command
from aether.cli.main import main
from aether.conversation import archive_retention as retention
from aether.conversation.archive_retention import boundaries, level_of_age
from aether.mcp import catalogue
from aether.paths import resource
from aether.store import documents, record_files
from aether.store.keys import KEYS
from tests import test_regular
from tests.cli.stage import GRAPH, old_talk, prepared
from tests.laws import test_no_secret_leaves
from tests.laws.histories import history
from tests.readme_command import readme_command
from tests.tables import rows
from tests.text import test_growth, test_tags

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
COMPACTION = (ROOT / "docs" / "compaction.md").read_text(encoding="utf-8")
CHAT = (ROOT / "docs" / "chat.md").read_text(encoding="utf-8")
ARCHIVE = (ROOT / "docs" / "archive.md").read_text(encoding="utf-8")
MCP = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
INTEGRATIONS = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
CLAUDE_CODE = (ROOT / "docs" / "claude-code.md").read_text(encoding="utf-8")
FORMATS = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
# The vocabulary: one word per thing.
WORDS = """
    home document item session pattern link layer signal caste phase compress architect backend protected receipt
    archive event snapshot finding journal revision patch fold counter promote stamp hand-off
""".split()


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date(capsys):
    made = generate()

    assert [
        name
        for name, page in made.PAGES.items()
        if page() != (ROOT / "docs" / name).read_text(encoding="utf-8")
    ] == []
    assert (made.main(["--check"]), capsys.readouterr().out) == (0, "")


def test_the_python_of_the_readme_prints_what_the_readme_says(tmp_path):
    (code,) = blocks(README, "python")
    shown = README.partition(code)[2].partition("```text\n")[2].partition("```")[0]

    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (ran.stdout, ran.stderr) == (shown, "")


@pytest.mark.slow
@rows(
    ("page", "nth"),
    [
        *((COMPACTION, nth) for nth in range(len(blocks(COMPACTION, "python")))),
        *((INTEGRATIONS, nth) for nth in range(len(blocks(INTEGRATIONS, "python")))),
    ],
    ids=lambda value: value.splitlines()[0][2:] if isinstance(value, str) else str(value),
)
def test_the_python_of_a_page_prints_what_it_says(page, nth, tmp_path):
    code = blocks(page, "python")[nth]
    for package in re.findall(
        r"^from (agents|langchain|aether\.frameworks\.langgraph_store)\b", code, re.MULTILINE
    )[:1]:
        needed = package.replace("aether.frameworks.langgraph_store", "langgraph")
        pytest.importorskip(needed, reason=f"needs the package {needed}")
    shown = page.partition(code)[2].partition("```text\n")[2].partition("```")[0]

    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (ran.stdout, ran.stderr) == (shown, "")


def test_the_orchestrator_of_the_docs_runs_with_its_architect(tmp_path):
    page = (ROOT / "docs" / "orchestrator.md").read_text(encoding="utf-8")
    program, architect = blocks(page, "python")
    (tmp_path / "architect.py").write_text(architect, encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (ran.stdout, ran.stderr) == (blocks(page, "text")[0], "")


def test_the_commands_of_the_page_on_compaction_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    messages = history(3, "openai", turns=30)
    (tmp_path / "session.jsonl").write_text("\n".join(map(json.dumps, messages)), encoding="utf-8")

    for block in blocks(COMPACTION, "console"):
        for line in block.splitlines():
            assert main(shlex.split(line.removeprefix("$ aether "))) == 0, (line, capsys.readouterr().err)
    assert json.loads((tmp_path / "whole.json").read_text(encoding="utf-8")) == messages


def test_the_commands_of_the_page_on_chats_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    prepared(tmp_path)
    lines = [line for block in blocks(CHAT, "sh") for line in block.splitlines()]

    assert len(lines) == 6
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    assert "The port is 8080." in (tmp_path / "talk.md").read_text(encoding="utf-8")


def test_the_commands_of_the_page_on_goals_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks((ROOT / "docs" / "goals.md").read_text(encoding="utf-8"), "console")

    for line in block.splitlines():
        assert main(shlex.split(line.removeprefix("$ aether "))) == 0, (line, capsys.readouterr().err)


def test_the_commands_of_the_page_on_teamwork_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    (block,) = blocks((ROOT / "docs" / "teamwork.md").read_text(encoding="utf-8"), "console")

    for line in block.splitlines():
        assert main(shlex.split(line.removeprefix("$ aether "))) == 0, (line, capsys.readouterr().err)


def test_the_commands_of_the_page_on_the_archive_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old-talk.json").write_text(json.dumps(old_talk()), encoding="utf-8")

    for block in blocks(ARCHIVE, "console"):
        for line in block.splitlines():
            assert main(shlex.split(line.removeprefix("$ aether "))) == 0, (line, capsys.readouterr().err)
    assert (tmp_path / "restored.json").exists()


def test_the_ages_of_the_page_on_the_archive_are_those_of_the_code():
    table = re.findall(r"^\| (\d+) \| ([a-z ]+) \| ([a-z ]+) \|$", ARCHIVE, re.MULTILINE)

    assert [int(days) for days, *_ in table] == [6, 7, 29, 30, 89, 90, 364, 365]
    for days, *named in table:
        by_age = [level_of_age(int(days), boundaries(preset)) for preset in ("default", "research")]
        assert [name.replace(" ", "_") for name in named] == by_age, days


def test_the_weights_of_the_page_on_the_archive_are_those_of_the_code():
    (line,) = (line for line in ARCHIVE.splitlines() if line.startswith("The score is the weighted sum"))

    assert [float(weight) for weight in re.findall(r"\((0\.\d+)\)", line)] == [
        *retention.policy().weights.values()
    ]


def test_the_commands_of_the_page_on_mcp_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memory.jsonl").write_text(GRAPH, encoding="utf-8")

    for block in blocks(MCP, "console"):
        for line in block.splitlines():
            assert main(shlex.split(line.removeprefix("$ aether "))) == 0, (line, capsys.readouterr().err)
    assert (tmp_path / "again.jsonl").read_text(encoding="utf-8") == GRAPH


def test_the_page_on_mcp_names_every_tool_and_a_configuration_that_starts():
    table = MCP.partition("## Tools")[2].partition("\n\nA model")[0]

    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [tool.name for tool in catalogue.MEMORY]
    for block in blocks(MCP, "json"):
        (server,) = json.loads(block)["mcpServers"].values()
        mcp_command.make_context("mcp", server["args"][1:])


def test_the_steps_of_compaction_in_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    messages = history(3, "openai", turns=30)
    (tmp_path / "talk.json").write_text(json.dumps(messages), encoding="utf-8")
    (steps,) = (block for block in blocks(README, "console") if "compact" in block)

    for line in steps.splitlines():
        assert main(shlex.split(line.removeprefix("$ aether "))) == 0, (line, capsys.readouterr().err)
    assert json.loads((tmp_path / "whole.json").read_text(encoding="utf-8")) == messages


@rows("page", ["README.md", "docs/memory.md"])
def test_the_steps_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = resource("data/samples/colony.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "session.jsonl").write_text("".join(lines[:40]), encoding="utf-8")
    text = (ROOT / page).read_text(encoding="utf-8")
    (steps,) = (block for block in blocks(text, "console") if "aether init" in block)

    for line in steps.splitlines():
        assert main(shlex.split(line.removeprefix("$ aether "))) == 0, (line, capsys.readouterr().err)
    assert "Nothing is wrong." in capsys.readouterr().out


def test_the_readme_shows_the_whole_demo(capsys):
    picture = (ROOT / "docs" / "demo.svg").read_text(encoding="utf-8")
    shown = [html.unescape(line) for line in re.findall(r">([^<]*)</text>", picture)]

    assert main(["demo"]) == 0
    assert shown == ["$ aether demo", *filter(None, capsys.readouterr().out.splitlines())]
    assert "](docs/demo.svg)" in README


def test_the_readme_fits_in_150_lines():
    assert len(README.splitlines()) <= 150


def test_the_commands_of_the_page_on_claude_code_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "user"))

    for block in blocks(CLAUDE_CODE, "console"):
        for line in block.splitlines():
            code = main(shlex.split(line.removeprefix("$ aether ")))
            assert code == 0 or "claude status" in line, (line, capsys.readouterr().err)
    assert "four times" in json.dumps(aether.list_working_memory_items())  # the last command is undo


def test_the_commands_of_the_page_on_backups_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0

    (steps,) = blocks((ROOT / "docs" / "backup.md").read_text(encoding="utf-8"), "console")
    for line in steps.splitlines():
        assert main(shlex.split(line.removeprefix("$ aether "))) == 0, (line, capsys.readouterr().err)


def test_the_settings_of_the_page_on_claude_code_are_all_of_them():
    (table,) = blocks(CLAUDE_CODE, "toml")

    assert {f"claude.{name}" for name in tomllib.loads(table)["claude"]} == {
        key for key in KEYS if key.startswith("claude.")
    }


def test_the_set_up_commands_are_what_continuous_integration_uses():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert "tests/readme_command.py test" in script
    assert readme_command("demo").endswith(".venv/bin/aether demo")
    assert ".venv/bin/pytest" in readme_command("test")


@rows("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))

    assert [target for target in targets if not (page.parent / target).exists()] == []


@rows("page", PAGES, ids=lambda page: page.name)
def test_every_path_of_a_module_exists(page):
    """A path is below the repository or below aether/; a directory that is in neither belongs to an example."""
    named = re.findall(r"`((?:[\w.]+/)+\w+\.py)`", page.read_text(encoding="utf-8"))
    roots = {
        path: [root for root in (ROOT, ROOT / "aether") if (root / path.split("/")[0]).is_dir()]
        for path in named
    }

    assert [
        path for path in named if roots[path] and not any((root / path).is_file() for root in roots[path])
    ] == []


def test_the_trials_of_the_page_on_numbers_are_there_with_their_counts():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8").partition("\n## Trials\n")[2]
    rows_of_trials = [
        line
        for line in page.splitlines()
        if re.search(r"`(?:\w+=1 )?(pytest|python) [^`]*`", line) and line[0] == "|"
    ]
    table = json.loads((ROOT / "data" / "secrets.json").read_text(encoding="utf-8"))
    counts = {
        "tests/text/test_tags.py": [len(test_tags.VARIANTS)],
        "tests/test_regular.py": [len(test_regular.FILES)],
        "tests/hosts/test_hostile_home.py": [sum(key.authority for key in KEYS.values())],
        "tests/redact/test_forms.py": [len(table["forms"]), len(table["commands"])],
        "tests/laws/test_no_secret_leaves.py": [len(test_no_secret_leaves._cases())],
        "tests/text/test_growth.py": [len(test_growth.SEEDS), len(test_growth.FUNCTIONS)],
    }

    named = [name for line in rows_of_trials for name in re.findall(r"(?:tests|benchmarks)/[\w/.]+", line)]
    assert [name for name in named if not (ROOT / name).exists()] == []
    for name, numbers in counts.items():
        lines = " ".join(line for line in rows_of_trials if name in line)
        assert [number for number in numbers if not re.search(rf"\b{number}\b", lines)] == [], name


def test_every_guarantee_names_a_test_that_is_there():
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8"))

    assert len(named) >= 6
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_word_of_the_vocabulary_is_defined_once():
    defined = re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY, re.MULTILINE)

    assert [word for word in WORDS if defined.count(word) != 1] == []
    assert len(defined) == len(set(defined))


def test_every_setting_is_in_the_table():
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    table = page.partition("<!-- generated")[2].partition("<!-- end")[0]

    assert re.findall(r"^\| `([\w.]+)` \| [a-z]", table, re.MULTILINE) == list(KEYS)


def test_every_document_and_every_append_only_file_is_described():
    for name in documents.NAMES:
        assert f"| `data/{name}.json` |" in FORMATS
    for kind, path in {**record_files.SINGLE, **record_files.MONTHLY}.items():
        assert f"append-only file `{kind}`" in FORMATS
        assert f"`{path}" in FORMATS


def test_every_file_of_a_lived_in_home_is_described(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in ("init", "add 'Decided to use one file.' --type decision --phase 1", "phase complete 1",
                 "compress --phase 1", "snapshot", "memory search file"):  # fmt: skip
        assert main(shlex.split(line)) == 0
    described = re.findall(r"^\| `([^`]+)` \|", FORMATS, re.MULTILINE)
    patterns = [
        re.sub(r"YYYY-MM|REVISION|DOCUMENT|\bID\b", r"[^/]+", re.escape(name).replace(r"\-", "-"))
        for name in described
    ]

    found = {
        path.relative_to(tmp_path / ".aether").as_posix()
        for path in (tmp_path / ".aether").rglob("*")
        if path.is_file()
    }

    assert [
        name for name in sorted(found) if not any(re.fullmatch(pattern, name) for pattern in patterns)
    ] == []


@pytest.mark.parametrize(
    ("heading", "fields"),
    [("## A hand-off", "compressions"), ("## A snapshot", "snapshots")],
)  # fmt: skip
def test_every_field_of_a_file_is_named(heading, fields, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in ("init", "add note --phase 1", "memory prepare --phase 1", "snapshot"):
        assert main(line.split()) == 0
    section = FORMATS.partition(heading)[2].partition("\n## ")[0]
    (path,) = (tmp_path / ".aether" / fields).iterdir()

    assert [field for field in json.loads(path.read_bytes()) if f"`{field}`" not in section] == []


def test_every_field_of_a_line_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line in ("init", "add note --phase 1", "compress --phase 1"):
        assert main(line.split()) == 0
    data = tmp_path / ".aether" / "data"

    for path in (*data.glob("journal/*.jsonl"), *data.glob("archive/items/*.jsonl"), data / "receipts.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert [field for field in json.loads(line) if f"`{field}`" not in FORMATS] == []


def test_the_container_is_built_from_what_the_wheel_needs():
    shown = [
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line[0] == "!"
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    (extras,) = set(re.findall(r"\[([a-z,]+)\]'", (ROOT / "Dockerfile").read_text(encoding="utf-8")))

    assert sorted(shown) == sorted(
        [
            "pyproject.toml", project["project"]["readme"], *project["project"]["license-files"],
            *wheel["packages"], *wheel["force-include"],
        ]
    )  # fmt: skip
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])


def _words_of_prose():
    """Yield each page outside the part Reference of the site, with its words; generated blocks are left out."""
    menu = re.split(
        r"^  - (\w+):\n",
        (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2],
        flags=re.MULTILINE,
    )
    for part, pages in zip(menu[1::2], menu[2::2], strict=True):
        for name in re.findall(r"- (\w[\w-]*\.md)", pages):
            text = (ROOT / "docs" / name).read_text(encoding="utf-8")
            if part != "Reference":
                yield (
                    name,
                    len(re.sub(r"<!-- [^>]*generated.*?<!-- end -->", "", text, flags=re.DOTALL).split()),
                )


def test_the_prose_of_the_docs_stays_below_30_000_words():
    """Of the guides and the pages on the design: the reference lists, and is looked up. Who adds words, cuts as many."""
    words = dict(_words_of_prose())

    assert len(words) > 25
    assert sum(words.values()) <= 30_000, sorted(words.items(), key=lambda each: -each[1])[:5]
