"""Recall on the command line."""

from __future__ import annotations

from aether.cli.main import main


def shown(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr()


def test_the_index_has_a_line_per_entry_and_says_what_all_cost(here, capsys):
    done = shown(capsys, "recall", "atomic writes")

    lines = done.out.splitlines()
    assert lines[0].split() == ["id", "type", "day", "tokens", "gist"]
    assert here["ITEM"] in lines[2]
    assert "tokens: aether recall --full ID" in done.err


def test_an_entry_is_printed_whole_with_its_neighbours(here, capsys):
    assert here["OTHER"] in shown(capsys, "recall", "--timeline", here["ITEM"]).out
    text = shown(capsys, "recall", "--full", here["ITEM"], "--full", here["OTHER"]).out
    assert "Decided to use atomic writes for state, because a crash must not tear it.\n\nid:" in text


def test_nothing_found_is_said_beside_the_data(here, capsys):
    done = shown(capsys, "recall", "zebra")

    assert (done.out, done.err) == ("", "Nothing found.\n")


def test_one_of_the_three_steps_is_needed(here, capsys):
    assert "one of QUERY, --timeline and --full is needed" in shown(capsys, "recall", code=2).err
    assert "one of QUERY" in shown(capsys, "recall", "x", "--full", "y", code=2).err
