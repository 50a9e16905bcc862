"""Memory by hand: items, search, status, and the loop as steps and as one command."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import aether
from aether.api import compress as compressing
from aether.api import review
from aether.cli import memory, output, status
from aether.cli.main import main
from aether.errors import Conflict
from tests.cli.stage import shown


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
    done = shown(capsys, "add", "A note", "--phase", "2", "--protect", "--metadata", '{"ticket": 7}')

    item = aether.get_working_memory_item(done.out.strip())
    assert (item["metadata"]["phase"], item["metadata"]["protected"], item["metadata"]["ticket"]) == (
        2,
        True,
        7,
    )
    assert done.err == ""


def test_text_comes_from_standard_input_as_it_is(here, capsys, monkeypatch):
    typed(monkeypatch, "two\nlines\n")

    done = shown(capsys, "add", "-")

    assert aether.get_working_memory_item(done.out.strip())["content"] == "two\nlines\n"


def test_a_person_hears_of_a_secret_in_a_note_and_of_a_misspelt_rule(here, capsys, monkeypatch):
    monkeypatch.setattr("aether.cli.memory.is_typed", lambda: True)

    written = shown(capsys, "add", "The token is ghp_" + "a1B2" * 9, "--type", "rules")
    assert f"aether memory forget {written.out.strip()} --erase" in written.err
    assert "--type rule" in written.err
    assert shown(capsys, "add", "Use spaces.", "--type", "rule").err == ""


def test_metadata_must_be_an_object(here, capsys):
    assert "not JSON" in shown(capsys, "add", "x", "--metadata", "{", code=2).err
    assert "not a JSON object" in shown(capsys, "add", "x", "--metadata", "[]", code=2).err


def test_at_the_threshold_the_hand_off_is_named(here, tmp_path, capsys):
    current = aether.get_memory_status()["working_memory"]["tokens"]
    limit(tmp_path, current + 5)

    done = shown(capsys, "add", "One more.")

    assert "Compression is needed" in done.err
    assert ".aether/compressions/" in done.err
    assert "Compression is needed" in shown(capsys, "status", "--layers").err


def test_at_the_limit_what_moved_is_counted(here, tmp_path, capsys):
    limit(tmp_path, aether.get_memory_status()["working_memory"]["tokens"])

    assert "Working memory was full: 1 item moved" in shown(capsys, "add", "One more.").err


def test_an_item_is_shown_with_what_is_known_of_it(here, capsys):
    text = shown(capsys, "memory", "show", here["ITEM"]).out

    assert "relevance:  0.9\n" in text
    assert text.endswith("\nDecided to use atomic writes for state, because a crash must not tear it.\n")


def test_an_imported_item_says_where_it_was_found(here, capsys):
    main(["import", "session.jsonl"])
    found = [item for item in aether.list_working_memory_items() if "pointer" in item["metadata"]]

    assert "from:       session.jsonl, line " in shown(capsys, "memory", "show", found[0]["id"]).out


def test_an_update_corrects_what_was_archived(here, capsys):
    shown(capsys, "compress", "--no-session", "--yes")

    done = shown(capsys, "memory", "update", here["ITEM"], "--content", "State is written by rename.")

    assert "State is written by rename." in done.out
    assert f"A new item in place of {here['ITEM']}; 1 entry" in done.err
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
    lines = shown(capsys, "memory", "show").out.splitlines()

    assert lines[0].split() == ["id", "type", "rel", "tokens", "from", "content"]
    assert len(lines) == 4


PLACES = {
    "shop": {"project": "/src/shop", "conversation": "c-one", "title": "Retries of the webhook", "timestamp": "2026-01-02T10:00:00Z"},
    "bank": {"project": "/src/bank", "conversation": "c-two", "title": "The nightly export", "timestamp": "2026-02-03T10:00:00Z"},
}  # fmt: skip
PLACED = "Zebra stripes are printed twice"
FILTERED = [
    (["--project", "SHOP"], {"shop"}),
    (["--project", "elsewhere"], set()),
    (["--conversation", "c-two"], {"bank"}),
    (["--conversation", "webhook"], {"shop"}),
    (["--type", "decision", "--type", "outcome"], {"shop", "bank"}),
    (["--type", "decison"], set()),
    (["--since", "2026-02-01"], {"bank"}),
    (["--until", "2026-02-01"], {"shop"}),
    (["--since", "999y"], {"shop", "bank"}),
    (["--caste", "scout"], {"shop"}),
    (["--phase", "0"], {"bank"}),
]
READERS = (["memory", "show"], ["memory", "search", "zebra stripes"], ["recall", "zebra stripes"])


@pytest.fixture
def places(here):
    return {
        aether.add_working_memory_item(
            f"{PLACED} in the {name}.", kind, caste=caste, phase=phase, metadata=PLACES[name]
        ): name
        for name, kind, caste, phase in (("shop", "decision", "scout", 3), ("bank", "outcome", None, 0))
    }


@pytest.mark.parametrize(("filters", "wanted"), FILTERED, ids=[" ".join(filters) for filters, _ in FILTERED])
def test_list_search_and_recall_have_the_same_filters(places, capsys, filters, wanted):
    for reader in READERS:
        given = json.loads(shown(capsys, *reader, *filters, "--json").out)
        found = given["entries"] if reader[0] == "recall" else given

        assert {places[each["id"]] for each in found if each["id"] in places} == wanted, reader


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_a_filter_that_nothing_passes_says_so_and_an_impossible_one_is_refused(places, capsys, reader):
    done = shown(capsys, *reader, "--project", "elsewhere")

    assert (done.out, done.err) == ("", "Nothing found.\n")
    assert "'soon' is not a time" in shown(capsys, *reader, "--since", "soon", code=2).err


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_rows_name_the_project_and_the_conversation(places, capsys, monkeypatch, reader):
    piped = shown(capsys, *reader).out
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    on_screen = shown(capsys, *reader).out.splitlines()

    for item in places:
        place = next(line for line in on_screen if item in line)
        below = on_screen[on_screen.index(place) + 1]
        named = f"{places[item]} {PLACES[places[item]]['title']}"
        assert named in piped
        assert named in place
        assert below == f"    {PLACED} in the {places[item]}."
        assert max(map(len, on_screen)) <= 100


@pytest.mark.parametrize("reader", READERS, ids=" ".join)
def test_rows_of_one_place_do_not_repeat_it(places, capsys, reader):
    aether.add_working_memory_item(f"{PLACED} again.", "decision", metadata=PLACES["shop"])

    of_one = shown(capsys, *reader, "--project", "/src/shop").out

    assert of_one.count(PLACED) == 2
    assert PLACES["shop"]["title"] not in of_one


def test_on_a_narrow_terminal_the_part_that_matches_is_seen(here, capsys, monkeypatch):
    text = "The meeting was long and many things were said by many people, until it was found that the quorum ledger tore"
    item = aether.add_working_memory_item(text, "outcome")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for reader in READERS[1:]:
        first, second = shown(capsys, *reader[:-1], "quorum ledger").out.splitlines()

        assert item in first
        assert "quorum ledger" in second


def test_clearing_needs_a_yes_and_says_what_it_did(here, capsys):
    refused = shown(capsys, "compress", "--no-session", code=2)
    assert refused.err == "Error: 2 items will move to the archive. Pass --yes to do it.\n"

    assert "2 items moved" in shown(capsys, "compress", "--no-session", "--yes").out
    assert shown(capsys, "memory", "show").err == "Working memory is empty.\n"


@pytest.mark.parametrize(
    "command",
    [["memory", "show"], ["memory", "search", "commit"], ["recall", "commit"], ["timeline"]],
)
def test_a_type_that_no_entry_has_is_named_with_those_that_there_are(here, capsys, command):
    aether.add_working_memory_item("Never commit to main.", "constraint", 0.9)

    done = shown(capsys, *command, "--type", "decsion")

    assert done.err.startswith("No entry has the type 'decsion'; there are: constraint, ")


@pytest.mark.parametrize("command", [["list"], ["search", "commit"]])
def test_rule_is_a_type_of_rules_and_a_caste_has_no_capitals(here, capsys, command):
    rule = aether.add_working_memory_item("Never commit to main.", "constraint", 0.9, caste="Explore")
    review.decide([rule], accept=True)
    aether.add_working_memory_item("We commit to SQLite.", "decision", 0.9, caste="Builder")

    for chosen in (["--type", "rule"], ["--caste", "explore"]):
        found = json.loads(shown(capsys, "memory", *command, *chosen, "--json").out)
        said = {one["content"] for one in found}
        assert "Never commit to main." in said
        assert "We commit to SQLite." not in said


def test_an_item_is_shown_alike_in_every_layer(here, capsys):
    first = shown(capsys, "memory", "show", here["ITEM"]).out.splitlines()
    aether.clear_working_memory()
    then = shown(capsys, "memory", "show", here["ITEM"]).out.splitlines()

    assert [line.partition(":")[0] for line in first] == [line.partition(":")[0] for line in then]
    assert (first[1].split(), then[1].split()) == (["layer:", "working"], ["layer:", "archive"])


def test_an_item_of_a_file_is_listed_with_its_name(here, capsys, tmp_path):
    (tmp_path / "plan.md").write_text("We decided to use SQLite because it is one file.\n")
    shown(capsys, "import", "plan.md")

    assert "agent plan.md" in shown(capsys, "memory", "show").out


def test_a_type_is_one_word(here, capsys):
    assert "more than one word" in shown(capsys, "add", "A note", "--type", "two words", code=2).err


def test_clearing_nothing_promises_no_undo(here, capsys):
    shown(capsys, "compress", "--no-session", "--yes")

    assert (
        shown(capsys, "compress", "--no-session", "--yes").out
        == "Working memory is empty already: nothing was changed.\n"
    )


def test_after_a_compression_the_list_says_where_the_items_are(here, capsys):
    shown(capsys, "compress", "--phase", "1")

    said = shown(capsys, "memory", "show").err

    assert said.startswith("Working memory is empty: 2 items went into session phase_1_")
    assert "; 1 rule in force; to search all: aether recall WORDS.\n" in said
    assert "went into session phase_1_" in shown(capsys, "status").out


def test_a_session_reads_under_headings_in_memory_and_in_the_archive(here, capsys):
    aether.add_working_memory_item("Never push to main.", "constraint", 0.9)
    aether.add_working_memory_item("Ran `make docs`: ok", "command", 0.5)
    shown(capsys, "compress", "--phase", "1")
    (session,) = aether.get_compression_stats()["sessions"]
    name = session["session_id"]

    page = shown(capsys, "memory", "show", name).out
    aether.evict_short_term_session(name)
    archived = shown(capsys, "memory", "show", name).out

    assert f"id:     {name}\n" in page
    assert page.endswith("\n- Never push to main.\n")
    assert page.index("\nSummary:\n") < page.index("\nDecisions:\n") < page.index("\nRules:\n")
    assert archived.partition("\nSummary:")[2] == page.partition("\nSummary:")[2]


def test_a_review_lists_doubts_with_the_commands_that_settle_them(here, capsys):
    aether.add_working_memory_item("The key is AKIAIOSFODNN7EXAMPLE.", "observation", 0.5)
    (doubt,) = json.loads(shown(capsys, "memory", "review", "--json").out)["doubts"]

    listed = shown(capsys, "memory", "review").out
    done = shown(capsys, *doubt["commands"]["forget"].split()[1:])

    assert listed.startswith("secret: it holds what looks like a secret\n  1. ")
    assert "AKIA" not in listed
    assert all(command in listed for command in doubt["commands"].values())
    assert "1 reviewed, 0 left" in done.err
    assert shown(capsys, "memory", "review").err == "Nothing to review.\n"


def test_a_person_is_asked_about_each_doubt(here, capsys, monkeypatch):
    for number in range(4):
        aether.add_working_memory_item(f"Key {number}0 is AKIAIOSFODNN7EXAMP{number}E.", "observation", 0.5)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    answers = iter(["k", "f", "c", "Key 20 is in the vault.", "q"])
    monkeypatch.setattr("click.prompt", lambda *words, **options: next(answers))

    done = shown(capsys, "memory", "review")

    assert "1 of 4" in done.err
    assert "3 reviewed, 1 left" in done.err
    assert "Key 20 is in the vault." in [item["content"] for item in aether.list_working_memory_items()]


def test_what_waits_is_listed_with_its_source_and_decided_one_by_one_or_all_of_a_source(here, capsys):
    added = [
        json.loads(shown(capsys, "add", f"Never do {nth} of these.", "--type", "constraint", "--source", source, "--json").out)
        for nth, source in enumerate(("mcp", "mcp", "scout", "scout"))
    ]  # fmt: skip
    assert all(entry["waits"] for entry in added)
    first, second, third, fourth = (entry["id"] for entry in added)

    listed = shown(capsys, "memory", "review").out
    one = json.loads(shown(capsys, "memory", "review", "--accept", first, "--reject", second, "--json").out)
    of_others = json.loads(shown(capsys, "memory", "review", "--session", "nobody", "--json").out)
    of_scout = json.loads(shown(capsys, "memory", "review", "--session", "scout", "--json").out)
    every = shown(capsys, "memory", "review", "--all", "reject", "--session", "scout")

    assert "proposal: mcp states this constraint, no person\n  1. " in listed
    assert (
        f"     source: mcp\n     change: new constraint\n  aether memory review --accept {first}\n" in listed
    )
    assert [(answer["id"], answer["answer"], answer["entry"]) for answer in one["settled"]] == [
        (first, "accept", first), (second, "reject", ""),
    ]  # fmt: skip
    assert of_others["doubts"] == []
    assert [doubt["id"] for doubt in of_scout["doubts"]] == [third, fourth]
    assert every.err.startswith("2 reviewed, 0 left")
    assert shown(capsys, "add", "Never do 3 of these.", "--type", "constraint", "--source", "scout").err == (
        "The person rejected this before: not stored.\n"
    )
    shown(capsys, "memory", "review", "--session", "x", "--keep", "y", code=2)
    shown(capsys, "undo")
    assert json.loads(shown(capsys, "status", "--json", "--layers").out)["waiting"] == 2


def test_a_person_at_a_terminal_accepts_corrects_and_rejects(here, capsys, monkeypatch):
    for nth in range(3):
        shown(capsys, "add", f"Never do {nth} of these.", "--type", "constraint", "--source", "mcp")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    answers = iter(["a", "c", "Never do it twice.", "r"])
    monkeypatch.setattr("click.prompt", lambda *words, **options: next(answers))

    done = shown(capsys, "memory", "review")

    assert "3 reviewed, 0 left" in done.err
    contents = [item["content"] for item in aether.list_working_memory_items()]
    assert {"Never do 0 of these.", "Never do it twice."} <= {*contents}
    assert not {"Never do 1 of these.", "Never do 2 of these."} & {*contents}


def test_an_agents_shell_proposes_and_decides_nothing(here, capsys, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")

    added = shown(capsys, "add", "Never push.", "--type", "constraint", "--source", "queen")

    assert added.err == "It waits for the person: aether memory review.\n"
    refused = shown(capsys, "memory", "review", "--all", "accept", code=14)
    assert "only a person decides" in refused.err


def test_of_a_pair_either_entry_can_be_forgotten_or_corrected(here, capsys, monkeypatch):
    rules = (
        "Use tabs for indentation.",
        "Use tabs for indentation!",
        "Never push on Fridays.",
        "Never push on Fridays!",
    )
    for rule in rules:
        aether.add_working_memory_item(rule, "constraint", 0.9)
    tabs, fridays = json.loads(shown(capsys, "memory", "review", "--json").out)["doubts"]
    assert shown(capsys, *tabs["commands"]["forget_newer"].split()[1:]).err.startswith("1 reviewed, 1 left")

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    answers = iter(["c2", "Push on Fridays before noon only."])
    monkeypatch.setattr("click.prompt", lambda *words, **options: next(answers))
    shown(capsys, "memory", "review")

    said = [item["content"] for item in aether.list_working_memory_items()]
    assert {rules[0], rules[2], "Push on Fridays before noon only."} <= {*said}
    assert not {rules[1], rules[3]} & {*said}
    assert fridays["kind"] == "duplicate"


def test_a_person_may_say_no(here, capsys, monkeypatch):
    monkeypatch.setattr("aether.cli.output.confirmed", lambda what, yes: False)

    assert json.loads(shown(capsys, "compress", "--no-session", "--json", code=1).out) == {"archived": 0}


def test_search_shows_hits_best_first(here, capsys):
    lines = shown(
        capsys, "memory", "search", "atomic writes", "--layer", "working_memory", "--type", "decision"
    ).out.splitlines()

    assert lines[0].split() == ["score", "layer", "id", "from", "text"]
    assert here["ITEM"] in lines[2]


def test_a_terminal_shows_two_lines_a_hit_with_the_part_that_answers():
    text = "We met in the morning. " * 30 + "The ledger is locked once per row. Nobody knew."
    hit = {
        "id": "wm_1", "layer": "archive", "type": "history", "at": "2026-03-01T10:00:00Z", "speaker": "agent",
        "content": text, "passage": "The ledger is locked once per row. Nobody knew.", "matched": ["ledger"],
    }  # fmt: skip
    first, second = memory.hit_rows([hit])

    assert "2026-03-01 agent" in first
    assert second.strip().startswith("The ledger is locked")
    assert max(len(first), len(second)) <= shutil.get_terminal_size().columns


def test_a_long_title_of_a_conversation_takes_no_more_columns_than_a_name():
    hit = {"at": "2026-03-01T10:00:00Z", "speaker": "agent", "title": "please look at the ledger\n" * 9}
    other = {**hit, "title": "ec48fae0-26ba-4958-acf2-08a0644c73bf"}

    shown_first, shown_other = memory.origins([hit, other])

    assert shown_first == "2026-03-01 agent please look at the ledger please look a…"
    assert shown_other.endswith(other["title"])


def test_finding_nothing_is_said_beside_the_data(here, capsys):
    done = shown(capsys, "memory", "search", "zebra", "--layer", "long_term_memory")

    assert (done.out, done.err) == ("", "Nothing found.\n")


def test_status_has_the_sections_of_the_original(here, capsys):
    text = shown(capsys, "status", "--layers").out

    for title in ("Working Memory", "Short-term Memory", "Long-term Memory", "Metrics"):
        assert f"\n{title}\n" in f"\n{text}"
    assert " / 200000 (0%)" in text
    assert "160000 (asks for compression)\n" in text


@pytest.mark.parametrize(
    ("spare", "verdict", "code"), [(1000, "PASS", 0), (0, "WARNING", 0), (-1, "FAIL", 1)]
)
def test_verify_passes_warns_and_fails(here, tmp_path, capsys, spare, verdict, code):
    current = aether.get_memory_status()["working_memory"]["tokens"]
    limit(tmp_path, current + spare)

    assert f"Status:     {verdict}\n" in shown(capsys, "status", "--limits", code=code).out


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

    reported = shown(capsys, "memory", "ingest", "--phase", "1", "session.json", code=11).err
    assert newer in reported
    assert "--handoff ID" in reported
    shown(capsys, "memory", "ingest", "--phase", "1", "--handoff", newer, "session.json")
    [session] = aether.show("memory")["short_term_memory"]["sessions"]
    assert session["metadata"]["compression_id"] == newer


def test_a_rejected_answer_says_what_to_correct(here, tmp_path, capsys):
    (tmp_path / "bad.json").write_text('{"summary": 5}', encoding="utf-8")

    assert "summary" in shown(capsys, "memory", "ingest", "--phase", "1", "bad.json", code=2).err
    assert len(aether.list_working_memory_items()) == 2


def test_compress_does_it_in_one_step(here, capsys):
    text = shown(capsys, "compress", "--phase", "1").out

    assert "Items compressed:   2\n" in text
    assert aether.list_working_memory_items() == []


def test_compress_without_a_phase_makes_a_session_of_each(here, capsys):
    for phase in (3, 7, 7):
        _add_pages(phase)

    text = shown(capsys, "compress", "--phase", "1").out + shown(capsys, "compress").out

    assert [one["phase"] for one in aether.get_compression_stats()["sessions"]] == [1, 3, 7]
    assert text.index("Phase 3 compression complete") < text.index("Phase 7 compression complete")
    assert json.loads(shown(capsys, "compress", "--json").out)["phases"][0]["result"] is None


def test_compress_without_a_phase_leaves_small_phases_in_working_memory(here, capsys):
    """A session would be no smaller, and takes the place of another one; `--phase` does it nevertheless."""
    aether.add_working_memory_item("Decided to build gate 3 of steel.", "decision", phase=3)
    _add_pages(5)
    aether.add_working_memory_item("Decided to build gate 7 of steel.", "decision", phase=7)

    said = shown(capsys, "compress")

    assert "so kept in working memory: phase 1, 3, 7." in said.err
    assert [one["phase"] for one in aether.get_compression_stats()["sessions"]] == [5]
    assert sorted(one["metadata"]["phase"] for one in aether.list_working_memory_items()) == [1, 1, 3, 7]
    before = aether.log(limit=1)
    assert shown(capsys, "compress").out == ""
    assert (aether.log(limit=1), json.loads(shown(capsys, "compress", "--json").out)) == (
        before,
        {"phases": [], "too_small": [1, 3, 7]},
    )
    assert "Items compressed:   3\n" in shown(capsys, "compress", "--phase", "3").out


def test_a_phase_without_items_of_its_own_says_whose_are_compressed(here, capsys):
    aether.add_working_memory_item("Decided to build gate 3 of steel.", "decision", phase=3)

    typo = shown(capsys, "compress", "--phase", "77").err
    aether.add_working_memory_item("Decided to build gate 78 of steel.", "decision", phase=78)

    assert typo.startswith(
        "Phase 77 had no items of its own: those of phases 1, 3 were compressed as phase 77.\n"
    )
    assert "phase" not in shown(capsys, "compress", "--phase", "78").err
    aether.add_working_memory_item("Decided to build gate 78 of steel.", "decision", phase=78)
    aether.add_working_memory_item("Decided to build gate 79 of steel.", "decision", phase=79)
    both = shown(capsys, "compress", "--phase", "79").err
    assert both.startswith("With phase 79, the items of phase 78 were compressed.\n")


def test_compressing_all_phases_is_undone_as_one(here, capsys):
    for phase in (3, 7):
        _add_pages(phase)
    before = aether.list_working_memory_items()

    said = shown(capsys, "compress").err
    assert len(aether.get_compression_stats()["sessions"]) == 2
    undo = said.rpartition("To undo it: aether ")[2].split()
    shown(capsys, *undo)

    assert aether.get_compression_stats()["sessions"] == []
    assert aether.list_working_memory_items() == before


def _add_pages(phase):
    """Add an item of two pages: smaller phases are left in working memory."""
    beams = "".join(f" Beam {nth} of gate {phase} is {nth + 3} metres long." for nth in range(60))
    aether.add_working_memory_item(f"Decided to build gate {phase} of steel.{beams}", "decision", phase=phase)


def test_a_phase_that_was_too_small_to_compress_names_the_change_to_undo(here, capsys):
    for phase in (3, 7):
        aether.add_working_memory_item(f"Decided to build gate {phase} of steel.", "decision", phase=phase)
        text = shown(capsys, "compress", "--phase", str(phase)).out
        newest = aether.log(limit=1)[0].revision

        assert f"no smaller than its items. aether undo {newest} takes it back.\n" in text


def test_what_one_phase_became_is_reported_although_the_next_failed(here, capsys, monkeypatch):
    _add_pages(2)
    _add_pages(3)
    whole = compressing.compress

    def fails(phase, **given):
        if phase == 3:
            raise Conflict("the gate is shut.", fix="Open it.", where="gate")
        return whole(phase, **given)

    monkeypatch.setattr(compressing, "compress", fails)

    done = shown(capsys, "compress", "--json", code=Conflict.exit_code)

    assert json.loads(done.out)["error"]["what"] == "the gate is shut."
    assert "Stored before it failed: phase_2_" in done.err


def test_a_person_gets_one_hand_off_at_a_time(here, capsys):
    _add_pages(3)
    _add_pages(4)

    done = shown(capsys, "compress", "--architect", "manual")

    assert len(done.out.splitlines()) == 1
    assert "aether memory ingest --phase 3 FILE" in done.err


def test_compress_by_a_person_stops_at_the_hand_off(here, capsys):
    done = shown(capsys, "compress", "--phase", "1", "--architect", "manual")

    assert done.out.startswith("/")
    assert "by hand" in done.err


def test_nothing_to_compress_is_fine(here, capsys):
    assert "No compression needed." in shown(capsys, "compress", "--phase", "0").out


def test_an_architect_that_fails_is_replaced_and_the_result_says_so(here, capsys):
    done = shown(capsys, "compress", "--phase", "1", "--architect", f"command:{sys.executable} -c exit(3)")

    assert "Note: the extractive architect wrote the session instead.\n" in done.err
    assert "compression complete" in done.out


def test_promote_and_stats_report_what_came_of_it(here, capsys):
    main(["compress", "--phase", "1"])

    assert "new patterns" in shown(capsys, "memory", "promote").out
    lines = shown(capsys, "status", "--compressions").out.splitlines()
    assert lines[0].split() == ["Total", "compressions:", "1"]
    assert lines[-1].startswith("phase_1_")


def test_a_link_is_made_both_ways(here, capsys):
    made = shown(capsys, "graph", "--link", here["ITEM"], here["OTHER"]).out.strip()

    links = [
        link["link_id"] for item in aether.list_working_memory_items() for link in item["associative_links"]
    ]
    assert made in links


def ingested(**more):
    session = {
        "session_id": "s", "phase": 1, "original_tokens": 100, "compressed_tokens": 40, "compression_ratio": 2.5,
    }  # fmt: skip
    fields = {"session": session, "stored": True, "items": 3, "patterns": [], "carried": [], "evicted": [],
              "contradictions": [], "notes": [], "dropped": {}}  # fmt: skip
    return SimpleNamespace(**{**fields, **more})


def test_what_a_compression_moved_and_met_is_listed():
    lines = memory.ingested_lines(
        ingested(
            evicted=["old"], notes=["a date was corrected"], dropped={"rules": 2, "open": 1}, carried=[{"content": "never use floats"}],
            contradictions=[{"pattern": "use tabs", "other": "do not use tabs"}],
        )
    )  # fmt: skip

    assert "    never use floats" in lines
    assert "  Dropped, because no item proves it: rules 2, open 1" in lines
    assert "  Sessions moved to the archive: old" in lines
    assert "  Contradiction: use tabs ↔ do not use tabs" in lines
    assert lines[-1] == "  Note: a date was corrected"


def test_ratio_has_two_decimals():
    assert any(line.split() == ["Ratio:", "2.50x"] for line in memory.ingested_lines(ingested()))


def test_stats_without_sessions_have_no_table():
    found = {"total_compressions": 0, "average_compression_ratio": 0, "sessions": [], "max_sessions": 10,
             "working_memory_evictions": 0, "short_term_evictions": 0}  # fmt: skip

    assert len(status.compression_lines(found)) == 5


@pytest.mark.parametrize(
    ("terminal", "agent", "evidence"), [(True, False, "person"), (True, True, "agent"), (False, False, None)]
)
def test_what_a_person_types_at_a_terminal_has_the_evidence_of_a_person(
    here, capsys, monkeypatch, terminal, agent, evidence
):
    for name in output.AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if agent:
        monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminal)

    added = shown(capsys, "add", "We deploy on Mondays.", "--type", "decision").out.split()[0]
    shown(capsys, "memory", "update", here["ITEM"], "--content", "State is written atomically, everywhere.")

    held = {item["id"]: item["metadata"] for item in aether.list_working_memory_items()}
    assert (held[added].get("evidence"), held[here["ITEM"]]["corrected_by"]) == (
        evidence,
        evidence or "person",
    )


def test_an_agent_closes_its_conversation_from_standard_input(here, capsys, monkeypatch):
    metadata = json.dumps({"conversation": "talk-1", "evidence": "person"})
    shown(capsys, "add", "Never push to main; open a pull request.", "--metadata", metadata)
    answer = {
        "rules": [{"text": "Never push to main.", "quote": "Never push to main"}],
        "open": [{"text": "The tests fail.", "quote": "nobody said that"}],
    }
    for code in (0, 1):
        text = io.TextIOWrapper(io.BytesIO(json.dumps(answer).encode()))
        monkeypatch.setattr(sys, "stdin", text)
        done = shown(capsys, "memory", "ingest", "-", "--session", "talk", code=code)
        assert ("Not stored, for want of proof: open: The tests fail." in done.out) == (code == 0)

    assert done.out.startswith("Nothing to close: session ")


def test_an_entry_is_resolved_and_another_put_in_its_place(here, capsys):
    item = here["ITEM"]
    done = json.loads(shown(capsys, "memory", "resolve", item, "--json").out)
    assert (done["id"], done["how"], done["by"]) == (item, "resolved", "")
    shown(capsys, "undo")

    out = shown(capsys, "memory", "resolve", item, "--by", "At most 8 workers").out
    newer = [each for each in aether.list_working_memory_items() if each["content"] == "At most 8 workers"]
    assert f"{item} is superseded by {newer[0]['id']}" in out
    assert "no entry" in shown(capsys, "memory", "resolve", "wm_1", code=3).err


def test_an_item_ends_others_when_it_is_added(here, capsys):
    blocker = shown(capsys, "add", "prod DB is down", "--type", "blocker").out.strip()

    shown(capsys, "add", "The DB is up again", "--type", "outcome", "--resolves", blocker)

    lines = [line["text"] for line in json.loads(shown(capsys, "brief", "--json").out)["lines"]]
    assert "The DB is up again" in lines
    assert "prod DB is down" not in lines
