"""`aether share`: a home becomes a replica, another joins, both see each other, and one goes on alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from aether import clock
from aether.cli.main import main
from aether.errors import UnsafePath
from aether.sharing import ledgers
from aether.store import ledger
from aether.store.files import locked
from tests import directory_ledger, homes, postgres_server


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setitem(ledgers.MODULES, directory_ledger.START, directory_ledger.__name__)
    (tmp_path / "server").mkdir()
    monkeypatch.setenv(ledgers.URL, f"{directory_ledger.START}{tmp_path / 'server'}")
    return f"{directory_ledger.START}{tmp_path / 'server'}"


def test_a_colony_from_its_start_to_its_end(tmp_path, url, capsys):
    home = homes.fresh(tmp_path / "first")
    two = tmp_path / "two" / ".aether"

    assert main(["share", "init", url, "garden", "--home", str(home)]) == 0
    assert "Shared as garden, revision" in capsys.readouterr().out
    assert main(["share", "join", url, "garden", str(two.parent)]) == 0
    assert f"Joined garden at revision 1: {two}" in capsys.readouterr().out
    homes.add(home, "news")
    assert main(["fold", "--home", str(two)]) == 0
    assert "revision 2" in capsys.readouterr().out

    assert main(["share", "status", "--json", "--home", str(two)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in ("colony", "revision", "reachable", "head", "lag", "waiting", "unfit")} == {
        "colony": "garden", "revision": 2, "reachable": True, "head": 2, "lag": 0, "waiting": 0, "unfit": 0,
    }  # fmt: skip
    assert main(["share", "leave", "--home", str(two)]) == 0
    assert "This home has left garden at revision 2." in capsys.readouterr().out
    assert main(["share", "status", "--home", str(two)]) == 3
    assert "not shared" in capsys.readouterr().err


def test_a_colony_is_never_named_by_accident(tmp_path, url, capsys):
    home = homes.fresh(tmp_path / "first")

    for name in ("", " "):
        assert main(["share", "init", url, name, "--home", str(home)]) == 2
        assert "a colony needs a name" in capsys.readouterr().err
    assert main(["share", "status", "--home", str(home)]) == 3


def test_why_nothing_is_exchanged_is_said_once_and_not_after_leaving(tmp_path, url, capsys, monkeypatch):
    home = homes.fresh(tmp_path / "first")
    main(["share", "init", url, "garden", "--home", str(home)])
    homes.add(home, "a")
    capsys.readouterr()

    def refuse(*arguments, **named):
        raise UnsafePath("the role has no right in it.", fix="Ask an admin.", where="here")

    for call in ("head", "ends", "read_after"):
        monkeypatch.setattr(directory_ledger.DirectoryLedger, call, refuse)
    assert main(["fold", "--home", str(home)]) == 1
    assert capsys.readouterr().err.count("no right in it") == 1
    assert main(["share", "leave", "--force", "--home", str(home)]) == 0
    assert "no news from the colony" not in capsys.readouterr().err


@pytest.mark.extras
def test_the_set_up_of_the_page_works_as_written(tmp_path):
    """In the shells of two machines, with a server of its own."""
    text = (Path(__file__).parents[2] / "docs" / "shared.md").read_text(encoding="utf-8")
    console, sql = (re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)[1] for kind in ("console", "sql"))
    first, address, share, join, status = (line.removeprefix("$ ") for line in console.splitlines())
    assert first.startswith("pip install '.[postgres]'")
    assert "postgresql://ana@db.example.org/aether" in address
    with postgres_server.running() as server:
        for statement in sql.splitlines():
            server.sql(statement.partition("--")[0])
        address = address.replace(
            "postgresql://ana@db.example.org/aether", f"'{server.url('ana', 'aether')}'"
        )
        program = f'aether() {{ "{sys.executable}" -m aether "$@"; }}'
        env = {name: value for name, value in os.environ.items() if not name.startswith(("AETHER_", "PG"))}
        env |= {"PYTHONPATH": str(Path(__file__).parents[2])}
        for name, line in (("one", share), ("two", join)):
            (tmp_path / name).mkdir()
            script = f"set -e\n{program}\n{address}\n{line}\n{status}"
            done = subprocess.run(
                ["sh", "-c", script],
                cwd=tmp_path / name,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            assert re.search(r"lag +0", done.stdout)
    assert (tmp_path / "two" / ".aether" / ledger.PLACE).exists()


def test_an_interrupted_init_goes_on_and_a_refusal_says_what_to_do(tmp_path, url, capsys, monkeypatch):
    home = homes.fresh(tmp_path / "first")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledgers, "write_share", interrupted)
        assert main(["share", "init", url, "garden", "--home", str(home)]) == 130
    assert main(["share", "init", url, "garden", "--home", str(home)]) == 0

    assert main(["share", "join", "what", "garden", str(tmp_path / "two")]) != 0
    assert "Use one such as postgresql://HOST/DATABASE" in capsys.readouterr().err
    assert not (tmp_path / "two" / ".aether").exists()


def test_a_home_that_does_not_know_its_colony_any_more_leaves_it(tmp_path, url, capsys):
    home = homes.fresh(tmp_path / "first")
    assert main(["share", "init", url, "garden", "--home", str(home)]) == 0
    (home / ledger.PLACE).write_text("{")

    assert main(["share", "leave", "--home", str(home)]) == 11
    assert main(["share", "leave", "--force", "--home", str(home)]) == 0

    assert "This home has left its colony at revision 1." in capsys.readouterr().out


def test_a_wait_is_said_on_a_terminal_only(tmp_path, capsys, monkeypatch):
    home = homes.fresh(tmp_path / "first")
    real = clock.waiting_for

    @contextmanager
    def waiting_for(what):  # as if it took a second: the lock is free once it was said
        with real(what):
            for notice in clock.NOTICES:
                notice(f"Waiting for {what()} ...")
                notice(f"Waiting for {what()} ...")
            holder.__exit__(None, None, None)
            yield

    monkeypatch.setattr(clock, "waiting_for", waiting_for)
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal, raising=False)
        holder = locked(home)
        holder.__enter__()
        assert main(["add", f"A fact {terminal}.", "--type", "observation", "--home", str(home)]) == 0
        said = capsys.readouterr().err
        words = f"Waiting for process {os.getpid()}: "
        assert [
            line.startswith(words) and line.endswith(f"lock of {home}, for at most 30 s ...")
            for line in said.splitlines()
        ] == [True] * terminal
    assert clock.NOTICES == []


def test_a_notice_comes_after_a_while(monkeypatch):
    said = Event()
    monkeypatch.setattr(clock, "NOTICE_SECONDS", 0.01)
    monkeypatch.setattr(clock, "NOTICES", [lambda words: said.set()])
    with clock.waiting_for(lambda: "nothing"):
        assert said.wait(60)
