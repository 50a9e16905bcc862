"""init, log, undo, fold, show and doctor, as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path

from aether.cli.main import main
from tests.hook_player import put, turn


def out(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr().out


def test_init_prints_the_home_and_keeps_what_is_there(here, tmp_path, capsys):
    assert out(capsys, "init", str(tmp_path)) == f"{tmp_path / '.aether'}\n"
    assert here["ITEM"] in out(capsys, "memory", "list")


def test_init_takes_the_home_itself_as_well(tmp_path, capsys):
    assert out(capsys, "init", str(tmp_path / ".aether")) == f"{tmp_path / '.aether'}\n"


def test_the_log_is_newest_first_and_can_be_cut(here, capsys):
    main(["memory", "add", "A note", "--source", "worker_ant"])

    lines = out(capsys, "log", "--limit", "1").splitlines()

    assert lines[0].split() == ["rev", "when", "(UTC)", "who", "what", "touched", "why"]
    assert "worker_ant  add" in lines[2]
    assert len(lines) == 3


def test_counted_reads_are_in_the_log_only_when_asked_for(here, capsys):
    main(["memory", "get", here["ITEM"]])

    assert "access" not in out(capsys, "log")
    assert "access" in out(capsys, "log", "--all")


def test_undo_says_what_it_took_back(here, capsys):
    main(["memory", "add", "A note"])

    assert out(capsys, "undo").startswith("Undid revision 4: add")
    assert "A note" not in out(capsys, "memory", "list")


def test_undo_takes_back_what_was_asked_for_and_not_what_hooks_brought_meanwhile(here, capsys):
    main(["memory", "add", "A note"])
    put(Path(".aether"), *turn(1))

    assert out(capsys, "undo").startswith("Undid revision 4: add")
    assert "capture" in out(capsys, "log")
    assert "make service-1" in out(capsys, "memory", "list")


def test_fold_says_which_revision_the_documents_contain(here, capsys):
    assert out(capsys, "fold") == "The documents contain revision 3.\n"


def test_show_prints_a_document_as_it_is_and_as_it_was(here, capsys):
    assert len(json.loads(out(capsys, "show", "memory"))["working_memory"]["items"]) == 2
    assert len(json.loads(out(capsys, "show", "memory", "--revision", "2"))["working_memory"]["items"]) == 1


def test_doctor_is_content_with_a_good_home(here, capsys):
    assert out(capsys, "doctor") == "Nothing is wrong.\n"


def test_doctor_finds_mends_and_only_then_is_content(here, tmp_path, capsys):
    path = tmp_path / ".aether/data/memory.json"
    path.write_bytes(b"{ not JSON")

    assert "memory.json" in out(capsys, "doctor", code=1)
    assert path.read_bytes() == b"{ not JSON"
    assert main(["doctor", "--repair"]) == 0
    assert "Repaired: " in capsys.readouterr().err
    assert here["ITEM"] in out(capsys, "memory", "list")
