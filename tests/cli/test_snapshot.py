"""Snapshots by hand."""

from __future__ import annotations

import json

import aether
from aether.cli.main import main


def shown(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr()


def test_a_snapshot_is_listed_restored_and_the_restore_undone(here, capsys):
    assert shown(capsys, "snapshot", "list").err == "No snapshot was taken yet.\n"
    made = shown(capsys, "snapshot", "create", "--label", "before").out.strip()
    main(["memory", "add", "A later note"])

    assert made in shown(capsys, "snapshot", "list").out
    assert "Pass --yes" in shown(capsys, "snapshot", "restore", code=2).err
    assert shown(capsys, "snapshot", "restore", made, "--yes").out == "Restored: memory.\n"
    assert len(aether.list_working_memory_items()) == 2
    main(["undo"])
    assert len(aether.list_working_memory_items()) == 3


def test_restoring_what_is_there_says_so(here, capsys):
    main(["snapshot", "create"])

    assert shown(capsys, "snapshot", "restore", "--yes").out == "Restored: nothing differed.\n"


def test_a_person_may_say_no(here, capsys, monkeypatch):
    main(["snapshot", "create"])
    monkeypatch.setattr("aether.cli.snapshot.confirmed", lambda what, yes: False)

    assert json.loads(shown(capsys, "snapshot", "restore", "--json", code=1).out) == {"changed": []}
