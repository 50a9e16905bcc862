"""Working memory by hand."""

from __future__ import annotations

import io
import json
import sys

import pytest

import aether
from aether.cli.main import main


def shown(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr()


def typed(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def limit(tmp_path, tokens):
    """Edit the limit of working memory by hand."""
    path = tmp_path / ".aether/data/memory.json"
    text = path.read_text(encoding="utf-8")
    assert '"max_capacity_tokens": 200000' in text
    path.write_text(
        text.replace('"max_capacity_tokens": 200000', f'"max_capacity_tokens": {tokens}'), encoding="utf-8"
    )


def test_adding_prints_the_id_and_nothing_else(here, capsys):
    done = shown(
        capsys, "memory", "add", "A note", "--phase", "2", "--protect", "--metadata", '{"ticket": 7}'
    )

    item = aether.get_working_memory_item(done.out.strip())
    assert (item["metadata"]["phase"], item["metadata"]["protected"], item["metadata"]["ticket"]) == (
        2,
        True,
        7,
    )
    assert done.err == ""


def test_text_comes_from_standard_input_as_it_is(here, capsys, monkeypatch):
    typed(monkeypatch, "two\nlines\n")

    done = shown(capsys, "memory", "add", "-")

    assert aether.get_working_memory_item(done.out.strip())["content"] == "two\nlines\n"


def test_metadata_must_be_an_object(here, capsys):
    assert "not JSON" in shown(capsys, "memory", "add", "x", "--metadata", "{", code=2).err
    assert "not a JSON object" in shown(capsys, "memory", "add", "x", "--metadata", "[]", code=2).err


def test_at_the_threshold_the_hand_off_is_named(here, tmp_path, capsys):
    current = aether.get_memory_status()["working_memory"]["tokens"]
    limit(tmp_path, current + 5)

    done = shown(capsys, "memory", "add", "One more.")

    assert "Compression is needed" in done.err
    assert ".aether/compressions/" in done.err
    assert "Compression is needed" in shown(capsys, "memory", "status").err


def test_at_the_limit_what_moved_is_counted(here, tmp_path, capsys):
    limit(tmp_path, aether.get_memory_status()["working_memory"]["tokens"])

    assert "Working memory was full: 1 item(s) moved" in shown(capsys, "memory", "add", "One more.").err


def test_an_item_is_shown_with_what_is_known_of_it(here, capsys):
    text = shown(capsys, "memory", "get", here["ITEM"]).out

    assert "relevance:  0.9\n" in text
    assert text.endswith("\nDecided to use atomic writes for state, because a crash must not tear it.\n")


def test_an_imported_item_says_where_it_was_found(here, capsys):
    main(["import", "session.jsonl"])
    found = [item for item in aether.list_working_memory_items() if "pointer" in item["metadata"]]

    assert "from:       session.jsonl, line " in shown(capsys, "memory", "get", found[0]["id"]).out


def test_an_update_corrects_what_was_archived(here, capsys):
    shown(capsys, "memory", "clear", "--yes")

    done = shown(capsys, "memory", "update", here["ITEM"], "--content", "State is written by rename.")

    assert "State is written by rename." in done.out
    assert f"A new item in place of {here['ITEM']}; 1 thing(s)" in done.err
    assert here["ITEM"] not in shown(capsys, "recall", "state").out
    shown(capsys, "undo")
    assert here["ITEM"] in shown(capsys, "recall", "atomic writes").out


def test_an_update_changes_what_is_given(here, capsys, monkeypatch):
    typed(monkeypatch, "new words")

    shown(
        capsys,
        "memory",
        "update",
        here["ITEM"],
        "--content",
        "-",
        "--type",
        "fact",
        "--protect",
        "--metadata",
        '{"a": 1}',
    )

    item = aether.get_working_memory_item(here["ITEM"])
    assert (item["content"], item["type"], item["metadata"]["protected"]) == ("new words", "fact", True)
    shown(capsys, "memory", "update", here["ITEM"], "--unprotect")
    assert "protected" not in aether.get_working_memory_item(here["ITEM"])["metadata"]


def test_the_list_has_a_line_per_item(here, capsys):
    lines = shown(capsys, "memory", "list").out.splitlines()

    assert lines[0].split() == ["id", "type", "rel", "tokens", "content"]
    assert len(lines) == 4
    assert max(map(len, lines)) <= 100


def test_clearing_needs_a_yes_and_says_what_it_did(here, capsys):
    refused = shown(capsys, "memory", "clear", code=2)
    assert refused.err == "Error: 2 item(s) will move to the archive. Pass --yes to do it.\n"

    assert "2 item(s) moved" in shown(capsys, "memory", "clear", "--yes").out
    assert shown(capsys, "memory", "list").err == "Working memory is empty.\n"


def test_a_person_may_say_no(here, capsys, monkeypatch):
    monkeypatch.setattr("aether.cli.memory.confirmed", lambda what, yes: False)

    assert json.loads(shown(capsys, "memory", "clear", "--json", code=1).out) == {"archived": 0}


def test_search_shows_hits_best_first(here, capsys):
    lines = shown(
        capsys, "memory", "search", "atomic writes", "--layer", "working_memory", "--type", "decision"
    ).out.splitlines()

    assert lines[0].split() == ["score", "layer", "id", "text"]
    assert here["ITEM"] in lines[2]


def test_finding_nothing_is_said_beside_the_data(here, capsys):
    done = shown(capsys, "memory", "search", "zebra")

    assert (done.out, done.err) == ("", "Nothing found.\n")


def test_status_has_the_sections_of_the_original(here, capsys):
    text = shown(capsys, "memory", "status").out

    for title in ("Working Memory", "Short-term Memory", "Long-term Memory", "Metrics"):
        assert f"\n{title}\n" in f"\n{text}"
    assert " / 200000 (0%)" in text


@pytest.mark.parametrize(
    ("spare", "verdict", "code"), [(1000, "PASS", 0), (0, "WARNING", 0), (-1, "FAIL", 1)]
)
def test_verify_passes_warns_and_fails(here, tmp_path, capsys, spare, verdict, code):
    current = aether.get_memory_status()["working_memory"]["tokens"]
    limit(tmp_path, current + spare)

    assert f"Status:     {verdict}\n" in shown(capsys, "memory", "verify", code=code).out
