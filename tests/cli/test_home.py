"""The home by hand: its history, its documents, snapshots, and the demo."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import aether
from aether.cli import demo_rules
from aether.cli.main import main
from aether.cli.output import AGENT_VARIABLES, USER_VARIABLES
from tests.cli.stage import shown
from tests.hook_player import put, turn


def out(capsys, *words, code=0):
    capsys.readouterr()
    assert main(list(words)) == code
    return capsys.readouterr().out


def test_init_prints_the_home_and_keeps_what_is_there(here, tmp_path, capsys):
    assert out(capsys, "init", str(tmp_path)) == f"{tmp_path / '.aether'}\n"
    assert here["ITEM"] in out(capsys, "memory", "show")


def test_init_takes_the_home_itself_as_well(tmp_path, capsys):
    assert out(capsys, "init", str(tmp_path / ".aether")) == f"{tmp_path / '.aether'}\n"


def test_the_log_is_newest_first_and_can_be_cut(here, capsys):
    main(["add", "A note", "--source", "worker_ant"])

    lines = out(capsys, "log", "--limit", "1").splitlines()

    assert lines[0].split() == ["rev", "when", "(UTC)", "who", "what", "touched", "why"]
    assert "worker_ant  add" in lines[2]
    assert len(lines) == 3


def test_the_log_names_the_user_and_an_agent(here, capsys, monkeypatch):
    monkeypatch.setenv("LOGNAME", "mara")
    for name in AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    main(["add", "A note"])
    monkeypatch.setenv("CLAUDECODE", "1")
    main(["add", "Another note"])

    assert [entry["by"] for entry in json.loads(out(capsys, "log", "--json"))[:2]] == ["agent", "mara"]
    assert aether.log(limit=1)[0].by == "agent"
    aether.add_working_memory_item("By a program", "observation")
    assert aether.log(limit=1)[0].by == "queen"


def test_a_user_without_a_name_in_the_environment_has_the_one_of_the_system(here, capsys, monkeypatch):
    pwd = pytest.importorskip("pwd")
    for name in (*USER_VARIABLES, *AGENT_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    user = pwd.getpwuid(os.geteuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(("mara", *user[1:])))
    main(["add", "A note"])

    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    main(["add", "Another note"])

    assert [entry.by for entry in aether.log(limit=2)] == ["queen", "mara"]


def test_counted_reads_are_in_the_log_only_when_asked_for(here, capsys):
    main(["memory", "show", here["ITEM"]])

    assert "access" not in out(capsys, "log")
    assert "access" in out(capsys, "log", "--all")


def test_undo_says_what_it_took_back(here, capsys):
    main(["add", "A note"])

    assert out(capsys, "undo").startswith("Undid revision 4: add")
    assert "A note" not in out(capsys, "memory", "show")


def test_undo_takes_back_what_was_asked_for_and_not_what_hooks_brought_meanwhile(here, capsys):
    main(["add", "A note"])
    put(Path(".aether"), *turn(1))

    assert out(capsys, "undo").startswith("Undid revision 4: add")
    assert "capture" in out(capsys, "log")
    assert "make service-1" in out(capsys, "memory", "show")


def test_fold_says_which_revision_the_documents_contain(here, capsys):
    assert out(capsys, "fold") == "The documents contain revision 3.\n"


def test_show_prints_a_document_as_it_is_and_as_it_was(here, capsys):
    assert len(json.loads(out(capsys, "show", "memory"))["working_memory"]["items"]) == 2
    assert len(json.loads(out(capsys, "show", "memory", "--revision", "2"))["working_memory"]["items"]) == 1


def test_doctor_is_content_with_a_good_home(here, capsys):
    assert out(capsys, "doctor") == "Nothing is wrong.\n"


def test_doctor_shows_how_many_bytes_the_files_of_each_kind_have(here, tmp_path, capsys):
    sizes = json.loads(out(capsys, "doctor", "--size", "--json"))["sizes"]
    shown = out(capsys, "doctor", "--size").splitlines()

    files = [path for path in (tmp_path / ".aether").rglob("*") if path.is_file()]
    kept = [path for path in files if path.parent.name == "journal"]
    assert sizes["history"] == sum(
        path.stat().st_size for path in [*kept, tmp_path / ".aether/data/journal.jsonl"]
    )
    assert sum(sizes.values()) == sum(path.stat().st_size for path in files)
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    assert shown[-1] == f"{sum(sizes.values()):>15,}  bytes in all"


def test_doctor_finds_mends_and_only_then_is_content(here, tmp_path, capsys):
    path = tmp_path / ".aether/data/memory.json"
    path.write_bytes(b"{ not JSON")

    assert "memory.json" in out(capsys, "doctor", code=1)
    assert path.read_bytes() == b"{ not JSON"
    assert main(["doctor", "--repair"]) == 0
    assert "Repaired: " in capsys.readouterr().err
    assert here["ITEM"] in out(capsys, "memory", "show")


def test_the_documents_of_a_home_are_checked(here, capsys):
    capsys.readouterr()

    assert main(["schema", "--check"]) == 0
    assert capsys.readouterr().out == "Every document fits its schema.\n"


def test_a_file_is_checked_by_its_name_and_the_place_is_named(here, tmp_path, capsys):
    text = (tmp_path / ".aether/data/memory.json").read_text(encoding="utf-8")
    (tmp_path / "memory.json").write_text(text, encoding="utf-8")
    assert main(["schema", "--check", "memory.json"]) == 0
    (tmp_path / "other.json").write_text(text.replace('"LRU"', '"FIFO"', 1), encoding="utf-8")
    capsys.readouterr()

    assert main(["schema", "--check", "--schema", "memory", "other.json"]) == 1

    assert capsys.readouterr().out.startswith("memory#/working_memory/eviction_policy: ")


def test_a_file_without_a_schema_is_an_error_that_names_the_schemas(here, capsys):
    assert main(["schema", "--check", "session.json"]) == 2
    assert (
        "Pass --schema with one of memory, pheromones, COLONY_STATE, graph, memories, goals, retention, teamwork, proposals."
        in capsys.readouterr().err
    )


def test_a_snapshot_is_listed_restored_and_the_restore_undone(here, capsys):
    assert shown(capsys, "snapshot", "--list").err == "No snapshot was taken yet.\n"
    made = shown(capsys, "snapshot", "--label", "before").out.strip()
    main(["add", "A later note"])

    assert made in shown(capsys, "snapshot", "--list").out
    assert "Pass --yes" in shown(capsys, "snapshot", "--restore", code=2).err
    assert "there is no snapshot 'nope'" in shown(capsys, "snapshot", "nope", "--restore", code=3).err
    assert "SNAPSHOT_ID needs --restore" in shown(capsys, "snapshot", "nope", code=2).err
    assert shown(capsys, "snapshot", "--restore", made, "--yes").out == "Restored: memory.\n"
    assert len(aether.list_working_memory_items()) == 2
    main(["undo"])
    assert len(aether.list_working_memory_items()) == 3


def test_restoring_what_is_there_says_so(here, capsys):
    main(["snapshot"])

    assert shown(capsys, "snapshot", "--restore", "--yes").out == "Restored: nothing differed.\n"


def test_a_person_may_keep_the_present_state(here, capsys, monkeypatch):
    main(["snapshot"])
    monkeypatch.setattr("aether.cli.output.confirmed", lambda what, yes: False)

    assert json.loads(shown(capsys, "snapshot", "--restore", "--json", code=1).out) == {"changed": []}


@pytest.mark.slow
def test_the_demo_shows_each_step(capsys):
    assert main(["demo"]) == 0

    text = capsys.readouterr().out
    for number in range(1, 6):
        assert f"{number}. " in text
    assert "DIFFERS" not in text


@pytest.mark.slow
def test_the_home_is_left_behind_on_request(tmp_path, capsys):
    assert main(["demo", "--keep", str(tmp_path / "kept"), "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert data["home"] == str(tmp_path / "kept" / ".aether")
    assert main(["status", "--compressions", "--home", str(tmp_path / "kept")]) == 0
    assert len(data["phases"]) == 4
    assert data["check"]["findings"] == []


@pytest.mark.slow
def test_the_demo_of_rules_says_the_same_in_every_run_and_leaves_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    texts = []
    for _ in range(2):
        assert main(["demo", "--rules"]) == 0
        texts.append(capsys.readouterr().out)
    assert main(["demo", "--rules", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)

    lines = texts[0].splitlines()
    assert texts[0] == texts[1]
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    assert [call["action"] for call in data["calls"]] == ["deny", "deny", ""]
    assert ["moved to src/http/retry.py" in fact for fact in data["stale"]] == [True]
    assert data["told"] == [demo_rules.PAGE_FACT]
    assert data["undone"] == {"entries": 2, "left": [demo_rules.RULE, demo_rules.FACT], "waiting": 0}
    assert not [path for path in (tmp_path / "state").rglob("*.json") if path.parent.name == "rules"]
    assert main(["demo", "--rules", "--keep", "x"]) == 2
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert main(["demo", "--rules"]) == 8


def test_a_directory_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").touch()

    assert main(["demo", "--keep", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_an_edit_that_is_not_in_force_is_named_by_the_command_that_finds_it(here, capsys):
    main(["add", "A note"])
    path = Path(".aether/data/memory.json")
    path.write_text(path.read_text().replace('"A note"', "7"))
    capsys.readouterr()

    said = shown(capsys, "memory", "show").err
    assert said.startswith("Note: the edit of data/memory.json is not in force: ")
    assert said.endswith("7 is not of type 'string'. See: aether doctor\n")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[]", "a list, and no JSON object."),
        ("7", "a single value, and no JSON object."),
        ('{"a":', "not JSON (line 1, column 6)."),
    ],
)
def test_a_file_that_is_no_document_is_kept_and_named_with_its_fault(here, capsys, text, fault):
    before = shown(capsys, "memory", "show").out
    Path(".aether/data/memory.json").write_text(text)

    assert f"memory.json: the file is {fault} " in out(capsys, "doctor", code=1)
    listed = shown(capsys, "memory", "show")

    assert listed.out == before
    assert listed.err.startswith(f"Note: data/memory.json is {fault} It is kept in quarantine/, ")
    assert [path.read_text() for path in Path(".aether/quarantine").iterdir()] == [text]


@pytest.mark.parametrize("change", ["{}", "edited"])
def test_a_change_by_hand_is_named_once_with_the_way_back(here, capsys, change):
    main(["add", "A note"])
    path = Path(".aether/data/memory.json")
    path.write_text(path.read_text().replace("A note", "Another") if change == "edited" else change)

    assert "Note: data/memory.json was changed by hand " in shown(capsys, "memory", "show").err
    assert "changed by hand" not in shown(capsys, "memory", "show").err
    main(["undo"])
    assert "A note" in out(capsys, "memory", "show")


def test_a_document_that_is_only_written_otherwise_is_no_change(here, capsys):
    path = Path(".aether/data/memory.json")
    path.write_text(json.dumps(json.loads(path.read_text())))

    assert "Note" not in shown(capsys, "memory", "show").err


def test_a_conflicting_edit_is_named_by_status_and_doctor_and_taken_in_by_its_command(here, capsys):
    main(["add", "A note"])
    path = Path(".aether/data/memory.json")
    edited = json.loads(path.read_text())
    edited["working_memory"]["items"][0]["token_count"] = "many"
    path.write_text(json.dumps(edited))

    assert "is not in force" in shown(capsys, "status", code=1).err
    main(["add", "Another note"])
    (kept,) = Path(".aether/quarantine").glob("memory.edited-????????????????.json")
    command = f"aether doctor --accept {kept.name}"
    assert command in shown(capsys, "status", code=1).err
    assert command in out(capsys, "doctor")
    failed = shown(capsys, "doctor", "--accept", kept.name, code=4).err
    assert "'many' is not of type" in failed
    assert f"Correct quarantine/{kept.name}, " in failed
    kept.write_text(kept.read_text().replace('"many"', "7"))

    done = json.loads(out(capsys, "doctor", "--accept", kept.name, "--json"))

    assert done["repaired"] == [f"accepted {kept.name}"]
    assert not list(Path(".aether/quarantine").iterdir())
