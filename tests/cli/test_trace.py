"""Where an entry came from, and the undo of a source, on the command line."""

from __future__ import annotations

import json

import aether
from aether.cli import forget, output
from tests.cli.stage import shown


def test_an_entry_leads_to_its_place_its_author_and_what_was_made_of_it(here, capsys):
    metadata = {"phase": 1, "conversation": "c-1", "evidence": "person", "title": "Parser", "count": 2, "places": [{"line": 3}],
                "pointer": {"file": "c-1.jsonl", "line": 7, "uuid": "m-7", "host": "codex"}}  # fmt: skip
    item = aether.add_working_memory_item("Dates are parsed by hand.", "decision", 0.95, metadata=metadata)
    aether.compress(1, architect="extractive")

    text = shown(capsys, "trace", item).out

    assert "c-1.jsonl:7, message m-7, conversation c-1, host codex" in text
    assert "a person said it" in text
    assert "and 1 time before" in text
    assert "What was made of it:" in text
    pattern = json.loads(shown(capsys, "trace", item, "--json").out)["derived"][-1]["id"]
    assert "Stated by extractive" in shown(capsys, "trace", pattern).out


def test_corrected_words_have_the_witness_and_the_revision_of_the_correction(here, capsys):
    metadata = {"evidence": "machine", "fact": {"kind": "run", "command": "make"}, "pointer": {"file": "c-1.jsonl", "line": 7}}  # fmt: skip
    item = aether.add_working_memory_item("Ran `make`", "command", metadata=metadata)
    undone = aether.undo()
    aether.undo(undone.revision + 1)  # the archive has the item as it was
    shown(capsys, "memory", "update", item, "--content", "Ran `make`: two warnings remain")
    aether.add_working_memory_item("Another.", "observation")
    ((corrected,),) = [[source.corrected for source in aether.trace(item).sources]]

    text = shown(capsys, "trace", item).out
    why = shown(capsys, "brief", "--why").out

    assert (corrected.operation, corrected.reason) == ("update", item)
    assert "    a person corrected it, " in text
    assert f"revision {corrected.revision}, update {item}" in text
    assert (
        text.index("a person corrected it")
        < text.index("before the correction")
        < text.index("a machine showed it")
    )
    assert "Ran `make`: two warnings remain\n    command, a person corrected it, " in why


def test_of_many_items_it_says_how_many_there_are(here, capsys, monkeypatch):
    monkeypatch.setattr("aether.api.trace.MOST_ITEMS", 1)
    name = aether.compress(1, architect="extractive").ingested.session["session_id"]

    assert "It rests on 2 items" in shown(capsys, "trace", name).err
    assert "revision" in shown(capsys, "trace", name).out


def test_a_source_is_shown_asked_about_and_taken_out_and_comes_back(here, capsys, monkeypatch):
    dry = shown(capsys, "undo", "--source", here["ITEM"], "--dry-run")
    assert (here["ITEM"] in dry.out, dry.err) == (True, "Nothing was changed.\n")
    assert "The patch has" in dry.out
    assert json.loads(shown(capsys, "undo", "--source", here["ITEM"], "--dry-run", "--json").out)["patches"][
        "memory"
    ]

    monkeypatch.setattr(output, "confirmed", lambda what, yes: yes)
    assert here["ITEM"] in shown(capsys, "undo", "--source", here["ITEM"], code=1).out
    assert json.loads(shown(capsys, "undo", "--source", here["ITEM"], "--json", code=1).out)["revision"] == 0

    done = shown(capsys, "undo", "--source", here["ITEM"], "--yes").out
    assert "1 entry of" in done
    assert len(aether.list_working_memory_items()) == 1
    shown(capsys, "undo")
    assert len(aether.list_working_memory_items()) == 2


def test_a_long_list_is_cut_and_patterns_that_stay_are_named(here, capsys, monkeypatch):
    monkeypatch.setattr(forget, "SHOWN", 1)
    for number in range(4):
        metadata = {"phase": 1, "conversation": f"c-{number % 2}{number // 3}"}
        aether.add_working_memory_item("Dates are parsed by hand.", "decision", 0.5, metadata=metadata)
        aether.compress(1, architect="extractive")

    text = shown(capsys, "undo", "--source", "c-10", "--dry-run").out

    assert "… and 1 more" in text
    assert "loses the support of this source" in text


def test_what_does_not_go_together_is_refused(here, capsys):
    for words in (
        ["--source", "x", "3"],
        ["--source", "x", "--conversation", "y"],
        ["--dry-run"],
        ["--since", "7d"],
    ):
        assert "need --source" in (text := shown(capsys, "undo", *words, code=2).err) or "excludes" in text
    assert "nothing in memory came from 'x'" in shown(capsys, "undo", "--source", "x", code=3).err


def test_why_says_what_was_checked_and_what_was_left_out(here, capsys, monkeypatch):
    line = {
        "kind": "next",
        "text": "Split a.py.",
        "ids": [],
        "evidence": "agent",
        "corrected": False,
        "at": "",
        "note": "",
        "tokens": 3,
        "correctable": False,
        "checks": ["a.py was removed"],
    }
    left = [{"text": "Changed b.py", "ids": [], "checks": ["b.py was removed"]}]
    monkeypatch.setattr(
        "aether.api.briefing.brief",
        lambda *given, **named: {
            "occasion": "startup",
            "lines": [line],
            "left_out": left,
            "block": "",
            "tokens": 0,
        },
    )

    text = shown(capsys, "brief", "--why").out

    assert "    checked: a.py was removed" in text
    assert "Left out: Changed b.py\n    checked: b.py was removed" in text


def test_doctor_looks_up_what_memory_names(here, capsys):
    assert "Nothing has changed that memory names." in shown(capsys, "doctor", "--facts").out
    assert "excludes" in shown(capsys, "doctor", "--facts", "--repair", code=2).err
