"""Forgetting on the command line."""

from __future__ import annotations

import json

from aether.cli import memory_forget
from aether.cli.main import main


def shown(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr()


def test_what_would_go_is_shown_and_stays(here, capsys):
    done = shown(capsys, "memory", "forget", "--match", "ATOMIC", "--dry-run")

    assert here["ITEM"] in done.out
    assert done.err == "Nothing was changed.\n"
    assert here["ITEM"] in shown(capsys, "recall", "atomic").out


def test_it_needs_a_yes_then_says_how_to_have_it_back(here, capsys):
    assert "Pass --yes" in shown(capsys, "memory", "forget", here["ITEM"], code=2).err
    done = shown(capsys, "memory", "forget", here["ITEM"], "--yes")
    assert done.out.startswith("1 thing(s) forgotten. aether undo ")

    assert here["ITEM"] not in shown(capsys, "recall", "atomic writes").out
    shown(capsys, *done.out.rpartition("aether ")[2].partition(" brings")[0].split())
    assert here["ITEM"] in shown(capsys, "recall", "atomic writes").out


def test_a_person_sees_it_and_may_say_no(here, capsys, monkeypatch):
    monkeypatch.setattr(memory_forget, "confirmed", lambda what, yes: False)

    assert here["ITEM"] in shown(capsys, "memory", "forget", here["ITEM"], code=1).out
    assert (
        json.loads(shown(capsys, "memory", "forget", here["ITEM"], "--json", code=1).out)["forgotten"]
        is False
    )


def test_nothing_that_holds_it_is_said(here, capsys):
    done = shown(capsys, "memory", "forget", "--match", "zebra", "--yes")

    assert (done.out, done.err) == ("", "Nothing holds that; nothing was changed.\n")


def test_a_long_list_is_cut_and_other_documents_are_named(here, capsys, monkeypatch):
    monkeypatch.setattr(memory_forget, "SHOWN", 1)
    shown(capsys, "phase", "start", "1", "--name", "the state of things")

    done = shown(capsys, "memory", "forget", "--match", "state", "--dry-run")

    assert "… and 1 more" in done.out
    assert "also in COLONY_STATE" in done.err
