"""Recall on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import aether
from aether.api.prompt_recall import prompt_recall
from aether.mcp import tools
from tests.cli.stage import shown


def test_the_index_has_a_line_per_entry_and_says_what_all_cost(here, capsys):
    done = shown(capsys, "recall", "atomic writes")

    lines = done.out.splitlines()
    assert lines[0].split() == ["id", "type", "tokens", "from", "text"]
    assert here["ITEM"] in lines[2]
    assert "in full: aether recall --full ID… (27 tokens)" in done.err
    one = shown(capsys, "recall", "atomic writes", "--limit", "1")
    assert one.err.startswith("In full: aether recall --full ID… (")


def test_a_pipe_gets_the_whole_part_that_matches(here, capsys):
    said = "The quorum ledger is locked once for each row, because the reader of the nightly export must see it whole, or not at all."
    aether.add_working_memory_item("Many things were talked about. " * 40 + said, "outcome")

    assert said in shown(capsys, "recall", "quorum ledger locked").out
    (entry,) = json.loads(shown(capsys, "recall", "quorum ledger locked", "--json").out)["entries"]
    assert said in entry["passage"]
    assert said not in entry["gist"]


def test_filters_are_of_the_index_only(here, capsys):
    done = shown(capsys, "recall", "--timeline", here["ITEM"], "--type", "decision", code=2)

    assert "a filter needs a QUERY" in done.err


def test_an_entry_is_printed_whole_with_its_neighbours(here, capsys):
    assert here["OTHER"] in shown(capsys, "recall", "--timeline", here["ITEM"]).out
    text = shown(capsys, "recall", "--full", here["ITEM"], "--full", here["OTHER"]).out
    assert "Decided to use atomic writes for state, because a crash must not tear it.\n\nid:" in text


def test_a_timeline_marks_its_entry_and_says_when_in_its_order(here, capsys):
    head, rule, *lines = shown(capsys, "recall", "--timeline", here["ITEM"]).out.splitlines()

    assert (head.split(), set(rule)) == (["id", "type", "time", "tokens", "gist"], {"─", " "})
    assert [line[:3] for line in lines if here["ITEM"] in line] == [">  "]
    assert {line[:3] for line in lines if here["ITEM"] not in line} == {"   "}
    times = [re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line)[0] for line in lines]
    assert times == sorted(times)


def test_ids_may_follow_one_another(here, capsys):
    one_by_one = shown(capsys, "recall", "--full", here["ITEM"], "--full", here["OTHER"]).out

    assert shown(capsys, "recall", "--full", here["ITEM"], here["OTHER"]).out == one_by_one
    assert "zebra" in shown(capsys, "recall", "--full", here["ITEM"], "zebra", code=3).err


def test_a_query_needs_no_quotes(here, capsys):
    quoted = shown(capsys, "recall", "atomic writes").out

    assert shown(capsys, "recall", "atomic", "writes").out == quoted


def test_nothing_found_is_said_beside_the_data(here, capsys):
    done = shown(capsys, "recall", "???")

    assert (done.out, done.err) == ("", "Nothing found.\n")


def test_a_guess_is_marked_as_one(here, capsys):
    done = shown(capsys, "recall", "zebra")

    assert len(done.out.splitlines()) == 2 + done.out.count("weak match") > 2
    entries = json.loads(shown(capsys, "recall", "zebra", "--json").out)["entries"]
    assert all(entry["weak"] for entry in entries)
    assert not any(
        "weak" in entry for entry in json.loads(shown(capsys, "recall", "atomic", "--json").out)["entries"]
    )
    assert "weak match" in shown(capsys, "memory", "search", "zebra").out


def test_one_of_the_three_steps_is_needed(here, capsys):
    assert "one of QUERY, --timeline ID and --full ID… is needed" in shown(capsys, "recall", code=2).err
    assert "one of QUERY" in shown(capsys, "recall", "x", "--timeline", "y", code=2).err
    assert "one of QUERY" in shown(capsys, "recall", "--full", "x", "--timeline", "y", code=2).err


def test_why_says_how_much_a_command_takes_with_it(here, capsys):
    rule = "Never push to the main branch."
    name = aether.add_working_memory_item(rule, "constraint")
    aether.add_working_memory_item(f"{rule} Ask first.", "observation")

    assert f"    aether memory forget {name} --yes  # 2 entries" in shown(capsys, "brief", "--why").out.split(
        "\n"
    )
    taken = shown(capsys, "memory", "forget", name, "--dry-run", "--json").out
    assert len(json.loads(taken)["targets"]) == 2


def test_notes_that_repeat_in_other_conversations_are_listed_once_with_their_places(here, capsys):
    said = [f"Never touch the vendor directory{end}" for end in (".", ".", "!", ". Ask Mia first.")]
    names = [
        aether.add_working_memory_item(
            text, "constraint", 0.9, metadata={"conversation": f"talk-{number}", "evidence": "person"}
        )
        for number, text in enumerate(said)
    ]

    entries = json.loads(shown(capsys, "recall", "vendor directory", "--json").out)["entries"]

    (first,) = (one for one in entries if one.get("repeats"))
    assert {first["id"], *(one["id"] for one in first["repeats"])} == {*names[:3]}
    assert {one["id"] for one in entries} == {first["id"], names[3]}
    assert {one["conversation"] for one in first["repeats"]} < {"talk-0", "talk-1", "talk-2"}
    assert "(and in 2 other conversations)" in shown(capsys, "recall", "vendor directory").out
    assert len(json.loads(shown(capsys, "memory", "search", "vendor directory", "--json").out)) == 2
    assert names[0] in [
        one["id"] for one in json.loads(shown(capsys, "recall", names[0], "--json").out)["entries"]
    ]


def test_a_pattern_says_in_words_from_where_it_was_learned(here, capsys):
    shown(capsys, "add", "Never write state without a temporary file.", "--type", "constraint")
    shown(capsys, "compress", "--phase", "1")

    said = shown(capsys, "recall", "temporary file").out
    found = shown(capsys, "memory", "search", "temporary file", "--layer", "long_term_memory").out

    for text in (said, found):
        assert "learned in 1 session" in text
        assert "session_id" not in text


def test_the_reasons_of_a_brief_name_the_commands_that_work_without_a_question(here, capsys):
    shown(capsys, "add", "Never write state without a temporary file.", "--type", "constraint")
    before = shown(capsys, "brief", "--why").out

    (command,) = re.findall(r"aether (memory forget \S+ --yes)", before)[:1]

    assert "temporary file" in before
    shown(capsys, *command.split())
    assert before != shown(capsys, "brief", "--why").out


def test_why_shows_what_a_rank_follows_from(here, capsys):
    aether.add_working_memory_item("Never write state without a lock", "constraint")

    first = shown(capsys, "recall", "rules for writes", "--why", "--limit", "1").out.splitlines()
    assert first[0].startswith(" 1. wm_")
    assert re.fullmatch(r"    words [\d.]+: writes [\d.]+, rules [\d.]+, .*kind ×2.00.*", first[2])
    (entry,) = json.loads(shown(capsys, "recall", "rules for writes", "--why", "--limit", "1", "--json").out)[
        "entries"
    ]
    assert entry["evidence"]["factors"]["kind"] == 2.0
    assert "evidence" not in shown(capsys, "recall", "rules for writes", "--json").out
    assert "importance and time" in shown(capsys, "recall", "zebra", "--why").out
    assert "atomy like atom" in shown(capsys, "recall", "atomy", "--why").out
    assert "id 0.00: the query names it" in shown(capsys, "recall", here["ITEM"], "--why", "--limit", "1").out


def test_notes_of_a_model_are_below_the_index(here, capsys):
    note = {"command": "create", "path": "/memories/deploy.md", "file_text": "Deploy by make ship."}
    aether.memory_tool(note, home=".aether")

    assert "/memories/deploy.md: Deploy by make ship." in shown(capsys, "recall", "deploying ships").out
    assert json.loads(shown(capsys, "recall", "deploying ships", "--json").out)["notes"] == [
        {"path": "/memories/deploy.md", "passage": "Deploy by make ship.", "share": 1.0}
    ]
    assert "deploy.md" not in shown(capsys, "recall", "deploying ships", "--type", "decision").out


def test_what_supersedes_an_entry_comes_before_it_and_the_entry_is_marked(here, capsys):
    old = aether.add_working_memory_item("Skip the Windows build.", "decision")
    other = aether.add_working_memory_item("The Windows build is slow.", "observation")
    shown(capsys, "memory", "resolve", old, "--by", "Ship for every system since May.")
    new = aether.list_working_memory_items()[0]["id"]
    settled = aether.add_working_memory_item("The Windows build is red.", "blocker")
    shown(capsys, "memory", "resolve", settled)

    hits = aether.recall("skip the Windows build")

    assert [hit["id"] for hit in hits][:2] == [new, old]
    assert other in [hit["id"] for hit in hits]
    ends = {hit["id"]: (hit["ended"]["how"], hit["ended"]["by"]) for hit in hits if "ended" in hit}
    assert ends == {old: ("superseded", new), settled: ("resolved", "")}
    assert [hit["id"] for hit in aether.recall("skip the Windows build", limit=1)] == [new]
    assert f"(superseded by {new})" in shown(capsys, "recall", "skip Windows").out
    assert f"superseded by {new}" in shown(capsys, "recall", "--full", old).out
    assert f"(superseded by {new}) Skip" in shown(capsys, "recall", "--timeline", old).out
    entries = json.loads(shown(capsys, "recall", "skip Windows", "--json").out)["entries"]
    assert [entry.get("ended", {}).get("how") for entry in entries][:2] == [None, "superseded"]
    lines = [
        line for line in tools.recall("skip Windows", home=Path(".aether")).text.splitlines() if old in line
    ]
    assert f"(superseded by {new}) Skip" in lines[0]
    assert "Skip" not in prompt_recall("Shall we skip the Windows build, or not?", budget=500)
