"""Adding to aether is a file and a row of a table: the examples of docs/extending.md are added, and used."""

from __future__ import annotations

import importlib
import json
import re

import pytest

import aether
from aether.api import importing, working
from aether.architects import backend
from aether.architects.base import Request, Settings
from aether.cli import main as command_line
from aether.hosts import hook, installing
from aether.messages.convert import convert, read
from aether.store.keys import KEYS, check_value
from tests import homes
from tests.sources import ROOT
from tests.tables import rows

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python file=(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
ROWS = re.findall(r"^```python row=(\S+?):(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MOST_LINES = 60
ENTRIES = [
    {"by": "human", "says": "Which port does the gateway use?"},
    {"by": "bot", "says": "", "calls": [{"id": "c1", "tool": "grep", "input": '{"word": "port"}'}]},
    {"by": "tool", "call": "c1", "says": "port = 8443"},
    {"by": "bot", "says": "It uses port 8443."},
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with a home; the examples are in a temporary directory, each with its row."""
    for name, code in FILES.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(code, encoding="utf-8")
        package = importlib.import_module(".".join(name.split("/")[:-1]))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(place.parent)])
    for module_name, table, row in ROWS:
        module = importlib.import_module(module_name)
        names = dict(vars(module))
        for name in FILES:
            if re.search(rf"\b{(stem := name.split('/')[-1][:-3])}\b(?!\")", row):
                names[stem] = importlib.import_module(name[:-3].replace("/", "."))
        for key, value in eval(f"{{{row}}}", names).items():
            monkeypatch.setitem(eval(table, names), key, value)
            if table.startswith("SECTIONS"):
                monkeypatch.setitem(module.NOUNS, key, value)  # all sections as one table
    root = tmp_path / "app"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    homes.fresh(root)
    return root


def contents(project):
    return [item["content"] for item in working.list_working_memory_items(home=project / ".aether")]


@rows("name", FILES)
def test_an_example_is_short(name):
    assert len([line for line in FILES[name].splitlines() if line.strip()]) < MOST_LINES


def test_each_kind_has_an_example():
    assert len(FILES) == len(ROWS) == 5


def happens(project, kind, **fields):
    payload = {"kind": kind, "thread": "t-1", "root": str(project), **fields}
    return hook.main(["lantern", kind], json.dumps(payload).encode())


def test_a_host_is_remembered_and_given_memory(project):
    token = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    assert happens(project, "prompt", words=f"Never retry the webhook with {token}.") == (0, "")
    assert happens(project, "shell", id="c1", line="pytest -q", shown="3 passed", code=0) == (0, "")
    assert happens(project, "end", last="All tests pass.") == (0, "")
    assert happens(project, "shell", id="c2", line="cat .env", shown="KEY=1", code=0) == (0, "")

    assert {"Never retry the webhook with <REDACTED>.", "All tests pass."} <= set(contents(project))
    code, output = happens(project, "begin")
    assert code == 0
    assert "Never retry the webhook" in json.loads(output)["context"]


def test_a_malformed_event_of_a_host_is_logged_and_fails_nothing(project):
    assert happens(project, "unknown") == (0, "")
    assert hook.main(["lantern", "prompt"], b"{}") == (0, "")
    assert "KeyError" in (project / ".aether" / "hook.log").read_text()


def test_a_host_is_installed_and_removed(project):
    installing.install("lantern", "project", project=project)
    assert "aether-hook" in (project / "lantern.json").read_text()

    installing.uninstall("lantern", "project", project=project)
    assert not (project / "lantern.json").exists()
    assert "lantern" in [state.host for state in installing.hosts()]


def test_a_providers_format_is_detected_converted_and_compacted(project):
    messages = read(ENTRIES)
    assert {message.format for message in messages} == {"ledger"}
    there = convert(messages, "openai").messages
    back = convert(there, "ledger").messages
    assert [message.raw for message in back] == ENTRIES

    long = [
        entry | {"says": f"{turn}: {entry['says']} {'And so on. ' * 40}"} for turn in range(30) for entry in ENTRIES[::3]
    ]  # fmt: skip
    fitted = aether.preflight("talk", long, window=4_000, home=project / ".aether")
    assert fitted.messages[-1] == long[-1]
    assert len(fitted.messages) < len(long)


def test_a_format_of_histories_is_imported(project):
    remarks = [
        {"who": "me", "words": "Never deploy on a Friday.", "when": "2026-11-02T10:00:00Z"},
        {"who": "ran", "id": "1", "line": "pytest -q", "shown": "2 passed", "when": "2026-11-02T10:01:00Z"},
        {"who": "dog", "words": "?"},
    ]
    file = project / "talk.jsonl"
    file.write_text(json.dumps({"title": "deploys", "remarks": remarks}))

    result = importing.import_transcripts([file], home=project / ".aether")

    assert "Never deploy on a Friday." in contents(project)
    assert [bad["reason"] for bad in result.bad_lines] == ["left out: 1 of remarks of dog"]


def test_a_backend_can_be_named_and_asked(project):
    module, overrides = backend("clerk")
    assert (module.NAME, overrides) == ("clerk", {})
    assert check_value(KEYS["architect.default"], "clerk") == "clerk"
    assert check_value(KEYS["summarizer.backend"], "clerk") == "clerk"
    request = Request("summary", {}, "Sum up.\n\nuser: Use port 8443.", {}, 100)
    assert module.complete(request, settings=Settings(), count=len).text == "user: Use port 8443."


def test_a_command_is_run_and_in_the_help(project, capsys):
    home = project / ".aether"
    working.add_working_memory_item("The port is 8443.", "decision", home=home)

    assert command_line.main(["newest", "--home", str(home)]) == 0
    assert capsys.readouterr().out == "The port is 8443.\n"
    assert command_line.main(["--help"]) == 0
    assert "Show the newest item of working memory" in capsys.readouterr().out
