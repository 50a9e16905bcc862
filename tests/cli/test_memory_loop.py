"""The loop by hand, and as one command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import aether
from aether.cli.main import main


def shown(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr()


def test_prepare_prints_the_path_and_says_what_is_next(here, capsys):
    done = shown(capsys, "memory", "prepare", "--phase", "1")

    assert json.loads(Path(done.out.strip()).read_text(encoding="utf-8"))["item_count"] == 2
    assert "aether memory ingest --phase 1 FILE" in done.err
    assert shown(capsys, "memory", "prepare", "--phase", "1").out == done.out
    assert shown(capsys, "memory", "prepare", "--phase", "1", "--new").out != done.out


def test_nothing_to_prepare_is_said_and_is_not_success(here, capsys):
    done = shown(capsys, "memory", "prepare", "--phase", "0", code=1)

    assert done.out == ""
    assert done.err.endswith("No compression needed.\n")


def test_a_session_written_by_hand_is_stored_once(here, capsys):
    main(["memory", "prepare", "--phase", "1"])

    text = shown(capsys, "memory", "ingest", "--phase", "1", "session.json").out

    assert text.startswith("Phase 1 compression complete:\n")
    assert "Carried over word for word" in text
    again = shown(capsys, "memory", "ingest", "--phase", "1", "session.json").out
    assert again == "Session phase_1_by_hand was stored before; nothing changed.\n"


def test_of_several_hand_offs_one_is_named(here, capsys):
    main(["memory", "prepare", "--phase", "1"])
    newer = Path(shown(capsys, "memory", "prepare", "--phase", "1", "--new").out.strip()).stem

    told = shown(capsys, "memory", "ingest", "--phase", "1", "session.json", code=11).err
    assert newer in told
    assert "--handoff ID" in told
    shown(capsys, "memory", "ingest", "--phase", "1", "--handoff", newer, "session.json")
    [session] = aether.show("memory")["short_term_memory"]["sessions"]
    assert session["metadata"]["compression_id"] == newer


def test_a_rejected_answer_says_what_to_correct(here, tmp_path, capsys):
    (tmp_path / "bad.json").write_text('{"summary": 5}', encoding="utf-8")

    assert "summary" in shown(capsys, "memory", "ingest", "--phase", "1", "bad.json", code=2).err
    assert len(aether.list_working_memory_items()) == 2


def test_compress_does_it_in_one_step(here, capsys):
    text = shown(capsys, "memory", "compress", "--phase", "1").out

    assert "Items compressed:   2\n" in text
    assert aether.list_working_memory_items() == []


def test_compress_by_a_person_stops_at_the_hand_off(here, capsys):
    done = shown(capsys, "memory", "compress", "--phase", "1", "--architect", "manual")

    assert done.out.startswith("/")
    assert "by hand" in done.err


def test_nothing_to_compress_is_fine(here, capsys):
    assert "No compression needed." in shown(capsys, "memory", "compress", "--phase", "0").out


def test_an_architect_that_fails_is_replaced_and_the_result_says_so(here, capsys):
    done = shown(
        capsys, "memory", "compress", "--phase", "1", "--architect", f"command:{sys.executable} -c exit(3)"
    )

    assert "Note: the extractive architect wrote the session instead.\n" in done.err
    assert "compression complete" in done.out


def test_promote_and_stats_tell_what_came_of_it(here, capsys):
    main(["memory", "compress", "--phase", "1"])

    assert "new pattern(s)" in shown(capsys, "memory", "promote").out
    lines = shown(capsys, "memory", "stats").out.splitlines()
    assert lines[0].split() == ["Total", "compressions:", "1"]
    assert lines[-1].startswith("phase_1_")


def test_a_link_is_made_both_ways(here, capsys):
    made = shown(capsys, "memory", "link", here["ITEM"], here["OTHER"]).out.strip()

    links = [
        link["link_id"] for item in aether.list_working_memory_items() for link in item["associative_links"]
    ]
    assert made in links
