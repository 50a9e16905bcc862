"""What a reader of the README alone stumbled over: each command says what is wrong, and ends with the code of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import aether
from aether import paths
from aether.api import compress as api_compress
from aether.api import importing
from aether.cli.main import main
from aether.errors import InvalidDocument, InvalidInput, NotFound, StorageFailed
from aether.store import files
from tests.tables import rows

CLAUDE = {
    "type": "user",
    "uuid": "u",
    "sessionId": "s",
    "message": {"role": "user", "content": "Use SQLite."},
}


@rows(("line", "what"), [
    (["memry"], "'memry'. Did you mean 'memory'? See"), (["memory", "serch"], "'serch'. Did you mean 'search'? See"),
    (["search", "x"], "'search'. Did you mean 'memory search'? See"),
    (["ad", "x"], "'ad'. Did you mean 'add' or 'archive add' or 'goal add'? See"), (["phase", "xyzzy"], "'xyzzy'. See"),
])  # fmt: skip
def test_a_misspelt_command_prints_three_suggestions_at_most(capsys, line, what):
    assert main(line) == 2
    assert f"No such command {what}" in capsys.readouterr().err


@rows("line", ["memory add x --type decision", "--json memory add x"])
def test_a_former_spelling_works_with_a_hint(here, capsys, line):
    capsys.readouterr()

    assert main(line.split()) == 0

    printed = capsys.readouterr()
    assert "aether memory add is now aether add" in printed.err
    assert "wm_" in printed.out


def test_quiet_leaves_out_the_hint_of_a_former_spelling(here, capsys):
    capsys.readouterr()

    assert main("--quiet memory add x".split()) == 0
    assert capsys.readouterr().err == ""


def test_help_lists_the_daily_commands_first_under_their_heading(capsys):
    assert main(["--help"]) == 0

    text = capsys.readouterr().out
    headings = ["Daily:", "Memory:", "Conversations:", "Colony:", "Integrations:", "Care:"]
    places = [text.index(f"\n{heading}\n") for heading in headings]
    assert places == sorted(places)
    daily = text[places[0] : places[1]].splitlines()[2:]
    assert [line.split()[0] for line in daily if line] == (
        "init import status brief recall add compress view undo".split()
    )


@rows(("line", "words"), [
    (["log", "--limit", "abc"], "'abc' is not a whole number."),
    (["add", "x", "--relevance", "abc"], "'abc' is not a number."),
])  # fmt: skip
def test_a_value_of_the_wrong_kind_is_said_to_be_no_number(capsys, line, words):
    assert main(line) == 2
    assert words in capsys.readouterr().err


@rows(("name", "data", "options", "words"), [
    ("empty.jsonl", b"", [], "is empty"), ("a.jsonl", json.dumps(CLAUDE).encode(), ["--format", "codex"], "It is of the format claude_code"),
    ("b.json", b"\x00\x01\x02" * 99, [], "binary data"), ("c.json", b'{"a": ', [], "broken JSON, at line 1"),
    ("d.md", b"\n \n", [], "no message and no note"),
])  # fmt: skip
def test_a_file_of_which_nothing_is_imported_is_an_error(
    tmp_path, monkeypatch, capsys, name, data, options, words
):
    monkeypatch.chdir(tmp_path)
    aether.init()
    (tmp_path / name).write_bytes(data)

    assert main(["import", name, *options]) == 2
    assert words in capsys.readouterr().err
    assert aether.list_working_memory_items() == []


@pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="no file that cannot be read although it opens"
)
@rows(
    "line", [["import"], ["compact", "run"], ["archive", "add"], ["compact", "check"], ["graph", "--import"]]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch, capsys, line):
    monkeypatch.chdir(tmp_path)
    aether.init()

    assert main([*line, "/proc/self/mem"]) in (NotFound.exit_code, InvalidDocument.exit_code)
    said = capsys.readouterr().err
    assert "/proc/self/mem: cannot be read (Input/output error)" in said
    assert "stdout" not in said


def test_a_directory_is_imported_without_licences_and_refused_files_show_in_the_exit_code(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    aether.init()
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "notes.md").write_text("We decided to use SQLite because it is one file.\n")
    for name in ("LICENSE.txt", "LICENSE-MIT.md", "NOTICE.md", "COPYING.txt"):
        (docs / name).write_text("You must not use this file except in compliance with the licence.\n")

    assert main(["import", "docs"]) == 0
    assert len(aether.list_working_memory_items()) == 1
    (docs / "empty.md").write_bytes(b"")
    capsys.readouterr()
    assert main(["import", "docs"]) == 4
    assert "empty.md: it is empty." in capsys.readouterr().err


def test_a_very_long_line_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importing, "LONG_LINE_CHARS", 5_000)
    aether.init()
    long = {**CLAUDE, "uuid": "v", "message": {"role": "user", "content": "Use SQLite, always. " * 400}}
    (tmp_path / "a.jsonl").write_text(json.dumps(CLAUDE) + "\n" + json.dumps(long) + "\n")

    assert main(["import", "a.jsonl"]) == 0
    assert "a.jsonl: line 2: 7999 characters; only an extract is kept." in capsys.readouterr().err


@rows("data", ["{}", "no JSON", '{"summary": 7}'])
def test_an_answer_to_no_handoff_is_about_the_handoff(home, data):
    with pytest.raises(InvalidInput, match=r"for phase 9"):
        aether.trigger_phase_boundary_compression(9, data, home=home)


def test_a_home_that_cannot_be_made_is_no_reason_to_make_one(capsys, monkeypatch):
    monkeypatch.setattr(paths, "find_home", Path)
    assert main(["--home", "/proc/aether-none", "init"]) == StorageFailed.exit_code
    said = capsys.readouterr().err
    assert "no directory can be made there" in said
    assert "aether init" not in said


def test_a_directory_in_the_place_of_a_document_is_named_with_its_repair(home, capsys):
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    aether.fold(home=home)
    (home / "data" / "memory.json").unlink()
    (home / "data" / "memory.json").mkdir()

    for line in (["memory", "show"], ["status"]):
        assert main(["--home", str(home), *line]) == StorageFailed.exit_code
        said = capsys.readouterr().err
        assert f"{home / 'data' / 'memory.json'}: Is a directory. " in said
        assert "aether doctor --repair" in said
    assert main(["--home", str(home), "doctor", "--repair"]) == 0
    assert [item["content"] for item in aether.list_working_memory_items(home=home)] == ["Use SQLite."]


def test_git_ignores_a_new_home_and_an_old_one_stays(tmp_path):
    place = aether.init(tmp_path / ".aether")
    assert (place / ".gitignore").read_text() == "*\n"
    (place / ".gitignore").unlink()
    aether.init(place)
    assert not (place / ".gitignore").exists()


def test_a_read_only_home_is_noticed_before_the_work(home, tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").write_text(json.dumps(CLAUDE))
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    monkeypatch.setattr(files.os, "access", lambda path, mode: False)
    monkeypatch.setattr(importing, "read_records", lambda *given, **options: pytest.fail("it was read"))

    with pytest.raises(StorageFailed, match="read-only"):
        aether.import_transcripts([tmp_path / "a.jsonl"], home=home)
    with pytest.raises(StorageFailed, match="read-only"):
        aether.compress(1, architect=lambda handoff: pytest.fail("it was asked"), home=home)
    assert api_compress.compress is aether.compress


def test_the_log_says_what_it_left_out(home, capsys):
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    aether.search_memory("SQLite", home=home)
    aether.add_working_memory_item("Never use YAML.", "constraint", home=home)

    assert main(["log", "--home", str(home)]) == 0
    assert "1 revision that only counts reads" in capsys.readouterr().err
    assert main(["log", "--all", "--home", str(home)]) == 0
    assert "reads" not in capsys.readouterr().err


def test_undoing_a_compaction_gives_back_the_file_with_its_other_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said = [
        {"role": ("user", "assistant")[n % 2], "content": f"Part {n} of the talk. " * 60} for n in range(30)
    ]
    whole = {"model": "gpt-4o", "messages": said, "temperature": 0.5}
    (tmp_path / "a.json").write_text(json.dumps(whole))

    assert main(["compact", "run", "a.json", "--window", "4000", "--force", "--output", "b.json"]) == 0
    assert main(["undo", "--conversation", "a", "--output", "c.json"]) == 0
    assert json.loads((tmp_path / "c.json").read_text()) == whole


def test_findings_of_a_converted_conversation_name_the_places_of_the_file(tmp_path, capsys):
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "read", "input": {}} for n in range(2)]
    results = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "x"} for n in range(2)]
    said = [
        {"role": "user", "content": "Go."}, {"role": "assistant", "content": calls}, {"role": "user", "content": results},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "open", "name": "read", "input": {}}]},
        {"role": "user", "content": "Well?"},
    ]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(said))

    assert main(["compact", "check", str(tmp_path / "a.json"), "--for", "openai"]) == 1
    assert "messages[3] (converted: messages[4]" in capsys.readouterr().out


def test_a_type_that_looks_like_a_slip_is_named(home, capsys):
    assert main(["add", "Use SQLite.", "--type", "decison", "--home", str(home)]) == 0
    assert "--type decision" in capsys.readouterr().err
    for known in ("decision", "pheromone"):
        assert main(["add", "Use SQLite.", "--type", known, "--home", str(home)]) == 0
        assert "known type" not in capsys.readouterr().err


@rows("phase", ["x", True, [1], -1, 1.5])
def test_a_search_in_no_phase_is_refused(home, phase):
    with pytest.raises(InvalidInput, match="is not a phase"):
        aether.search_memory("SQLite", phase=phase, home=home)
