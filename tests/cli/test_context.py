"""Contexts on the command line: status, checks, compressions, snapshots, exports, and imports from OLLM-CLI."""

from __future__ import annotations

import json

import aether
from aether.api import conversations
from tests.cli.stage import shown


def data(capsys, *words, code=0):
    return json.loads(shown(capsys, *words, "--json", code=code).out)


def test_a_context_is_compressed_shown_and_taken_back(here, capsys):
    shown(capsys, "context", "import", "ollm", "--quiet")
    before = data(capsys, "context", "status", "talk")
    assert (before["checkpoints"], before["compressions"], before["window"]) == (0, 0, 8192)
    assert (before["tier"]["number"], before["tier"]["label"]) == (2, "basic")

    done = data(capsys, "context", "compress", "talk")
    (made,) = data(capsys, "context", "status", "--checkpoints", "talk")

    assert done["success"]
    assert done["checkpoint"]["id"] == made["id"]
    assert made["message_range"][0] == 1
    assert data(capsys, "context", "status", "talk")["tokens"] == done["tokens_after"] < before["tokens"]
    shown(capsys, "undo", "--conversation", "talk")
    assert data(capsys, "context", "status", "talk")["tokens"] == before["tokens"]


def test_what_cannot_be_compressed_is_said_with_a_code(here, capsys):
    aether.open_context("empty", window=4096)

    said = shown(capsys, "context", "compress", "empty", code=1)

    assert said.out.startswith("Nothing was compressed: ")


def test_a_check_names_the_overage_and_what_to_do(here, capsys):
    shown(capsys, "context", "import", "ollm", "--quiet")
    shown(capsys, "context", "set", "talk", "--window", "1024", "--quiet")

    found = data(capsys, "context", "status", "--check", "talk", code=7)

    assert not found["valid"]
    assert found["overage"] == found["tokens"] - found["limit"] > 0
    assert found["suggestions"][0]["priority"] == 1
    assert "too large" in shown(capsys, "context", "status", "--check", "talk", code=7).out


def test_a_snapshot_is_restored_and_messages_since_stay_in_the_history(here, capsys):
    shown(capsys, "context", "import", "ollm", "--quiet")
    (taken,) = data(capsys, "context", "snapshot", "talk")
    aether.add_message("talk", {"role": "user", "content": "Later words"})

    data(capsys, "context", "snapshot", "--restore", "talk", taken["id"])

    assert "Later words" not in json.dumps(conversations.context("talk"))
    assert "Later words" in shown(capsys, "export", "talk").out
    assert taken["id"] in [one["id"] for one in data(capsys, "context", "snapshot", "talk", "--list")]
    shown(capsys, "context", "snapshot", "--restore", "talk", "snap_nobody", code=3)


def test_mode_and_model_change_and_are_shown(here, capsys):
    shown(capsys, "context", "import", "ollm", "--quiet")

    assert data(capsys, "context", "set", "talk", "--mode", "developer")["mode"] == "developer"
    found = data(capsys, "context", "set", "talk", "--model", "llama3.1:8b", "--window", "2048")
    assert (found["model"], found["window"], found["tier"]["label"]) == ("llama3.1:8b", 2048, "minimal")
    assert shown(capsys, "context", "set", "talk", "--model", "gpt-4o").out.startswith(
        "mode developer, model gpt-4o, "
    )
    assert "Name --mode, --model or --window." in shown(capsys, "context", "set", "talk", code=2).err
    shown(capsys, "context", "set", "talk", "--mode", "nobody", code=2)
    assert data(capsys, "context", "status")[0]["conversation"] == "talk"


def test_a_conversation_that_is_no_context_says_how_it_becomes_one(here, capsys):
    shown(capsys, "context", "status", "nobody", code=3)
    conversations.add_messages("plain", [{"role": "user", "content": "Hello"}])
    assert data(capsys, "context", "set", "plain", "--window", "4096")["messages"] == 1


def test_an_import_reports_each_file_and_a_bad_one_by_its_exit_code(here, capsys, tmp_path):
    (tmp_path / "ollm" / "bad.json").write_text("{", encoding="utf-8")

    dry = data(capsys, "context", "import", "ollm", "--dry-run", code=4)
    assert dry["dry_run"]
    assert not dry["id"]
    assert conversations.conversation_ids() == []

    said = shown(capsys, "context", "import", "ollm", "--backup", "kept", code=4)
    assert "bad.json" in said.err
    assert len([path for path in (tmp_path / "kept").rglob("*") if path.is_file()]) == 2
    name = said.err.rpartition("--rollback ")[2].strip()

    again = data(capsys, "context", "import", "ollm", code=4)
    assert {one["state"] for one in again["files"]} == {"bad", "known"}
    back = data(capsys, "context", "import", "--rollback", name)
    assert [one["state"] for one in back["files"]] == ["undone"]
    assert conversations.conversation_ids() == []
    shown(capsys, "context", "import", code=2)
    shown(capsys, "context", "import", "nowhere", code=3)


def test_a_conversation_is_deleted_once_a_person_agrees(here, capsys):
    conversations.add_messages("talk", [{"role": "user", "content": "hello"}])

    assert "Pass --yes" in shown(capsys, "context", "delete", "talk", code=2).err
    assert data(capsys, "context", "delete", "talk", "--yes")["files"]
    assert "there is no conversation" in shown(capsys, "context", "delete", "talk", "--yes", code=3).err

    conversations.add_messages("talk", [{"role": "user", "content": "hello"}])
    assert data(capsys, "context", "delete", "talk", "--yes", "--for-good")["files"] == []
