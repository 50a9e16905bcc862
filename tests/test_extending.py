"""The page on extending: its modules are added, one of each kind, and used."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

import aether
from aether.api.compact import preflight
from aether.cli import main as cli_main
from aether.hosts import HOSTS, hook
from aether.messages import convert, providers, read
from aether.store import keys
from tests import homes
from tests.test_docs import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
MOST_LINES = 60


@pytest.fixture
def added(tmp_path, monkeypatch):
    """Return what imports a module of the page, written to a directory outside of the package."""
    monkeypatch.syspath_prepend(str(tmp_path))
    project = tmp_path / "app"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    homes.fresh(project)

    def add(name):
        [block] = re.findall(rf"```python\n# {name}\.py\n(.*?)```", PAGE, re.DOTALL)
        assert block.count("\n") < MOST_LINES
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return add


def contents():
    return [item["content"] for item in aether.list_working_memory_items(home=".aether")]


def test_a_host(added, monkeypatch):
    added("new_host")
    monkeypatch.setitem(HOSTS, "new", "new_host")

    def report(kind, **fields):
        return hook.main(["new"], json.dumps({"kind": kind, "id": "s", "folder": ".", **fields}).encode())

    assert report("said", words="Never retry the webhook.") == (0, "")
    assert report("ran", line="pytest -q", words="3 passed") == (0, "")
    assert report("end", words="All tests pass.") == (0, "")
    assert {"Never retry the webhook.", "All tests pass."} <= set(contents())
    code, answer = hook.main(["new"], json.dumps({"kind": "begin", "id": "t", "folder": "."}).encode())
    assert code == 0
    assert "Never retry the webhook." in json.loads(answer)["memory"]


def test_a_source(added, monkeypatch, tmp_path):
    module = added("new_source")
    monkeypatch.setitem(read.SOURCES, "diary", read._row(module))
    monkeypatch.setattr(read, "SOURCES", {"diary": read.SOURCES["diary"], **read.SOURCES})
    lines = [{"diary": "Never ship on Fridays.", "by": "me"}, {"diary": "Noted: Thursday it is.", "by": "it"}]
    file = tmp_path / "diary.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))

    assert "diary" in read.formats()
    result = aether.import_transcripts([file], format="diary", home=".aether")

    assert result.items
    assert "Never ship on Fridays." in contents()


def test_a_provider(added, monkeypatch):
    module = added("new_provider")
    monkeypatch.setitem(providers.PROVIDERS, "new", module)
    raws = [{"from": "human", "says": "Hello."}, {"from": "bot", "says": "Good morning."}]

    assert convert.detect_format(raws) == "new"
    messages = [convert.message(raw, "new") for raw in raws]
    assert [(message.role, message.blocks[0].text) for message in messages] == [
        ("user", "Hello."),
        ("assistant", "Good morning."),
    ]
    assert convert.convert(messages, "openai").messages[1].raw == {
        "role": "assistant",
        "content": "Good morning.",
    }
    back = convert.convert([convert.message({"role": "user", "content": "Hi."}, "openai")], "new")
    assert [message.raw for message in back.messages] == [{"from": "human", "says": "Hi."}]
    sent = [*raws, {"from": "human", "says": "And now?"}]
    done = preflight("c", sent, window=8_000, wire="new", home=".aether")
    assert done.messages == sent, done.findings


def test_an_architect(added, monkeypatch):
    added("new_architect")
    monkeypatch.setitem(keys.BACKENDS, "terse", "new_architect")
    aether.add_working_memory_item("Decided: the ledger is one file.", "decision", home=".aether", phase=1)

    assert keys.check_value(keys.KEYS["architect.default"], "terse") == "terse"
    assert keys.check_value(keys.KEYS["summarizer.backend"], "terse") == "terse"
    done = aether.compress(1, architect="terse", home=".aether")

    assert done.architect == "terse", done.notes
    [session] = json.loads(Path(".aether/data/memory.json").read_text())["short_term_memory"]["sessions"]
    assert session["key_decisions"][0]["decision"] == "Decided: the ledger is one file."


def test_a_command(added, monkeypatch, capsys):
    added("new_command")
    monkeypatch.setitem(cli_main.NOUNS, "hello", ("hello", "Say how many items there are"))
    monkeypatch.setitem(sys.modules, "aether.cli.hello", sys.modules["new_command"])

    cli_main.cli(["hello"], standalone_mode=False)

    assert capsys.readouterr().out.strip() == "0 items"
