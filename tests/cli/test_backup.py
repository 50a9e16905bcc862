"""Backups on the command line: what a person reads, exit codes, and Ctrl-C."""

import json
from pathlib import Path

import pytest

from aether.api import backup
from aether.cli.main import INTERRUPTED, main
from tests.cli.stage import shown


@pytest.fixture
def place(here, tmp_path):
    main(["backup", "create", str(tmp_path / "backups"), "--quiet"])
    return str(tmp_path / "backups")


def test_what_is_listed_is_what_was_made(place, capsys):
    (made,) = json.loads(shown(capsys, "backup", "list", place, "--json").out)
    line = shown(capsys, "backup", "list", place).out.splitlines()[-1]

    assert line.startswith(made["id"])
    assert line.endswith(made["home"])
    assert (
        shown(capsys, "backup", "list", "--verify", place, made["id"]).out
        == "Everything is there, as it was written.\n"
    )


def test_a_damaged_backup_exits_1_and_a_restore_of_it_5(place, capsys, tmp_path):
    for path in (Path(place) / "objects").glob("*/*"):
        path.write_bytes(b"other")

    assert "was changed" in shown(capsys, "backup", "list", "--verify", place, code=1).out
    assert (
        "was changed"
        in shown(capsys, "backup", "restore", place, "--home", str(tmp_path / "new"), code=5).err
    )
    assert not (tmp_path / "new").exists()


def test_no_home_is_restored_over(place, capsys, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").touch()

    said = shown(capsys, "backup", "restore", place, "--home", str(tmp_path / "new"), code=11).err

    assert "not empty" in said
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine"]


def test_a_restore_names_what_was_damaged_before_the_backup(place, capsys, tmp_path):
    home = Path(json.loads(shown(capsys, "backup", "list", place, "--json").out)[0]["home"])
    (month,) = (home / "data" / "journal").iterdir()
    month.write_bytes(month.read_bytes()[:-9])
    shown(capsys, "backup", "create", place)

    done = shown(capsys, "backup", "restore", place, "--home", str(tmp_path / "new"))

    assert f"damaged when it was backed up: data/journal/{month.name}: it was cut off" in done.err
    assert done.out.startswith(str(tmp_path / "new"))


def test_ctrl_c_leaves_no_backup_and_no_home(place, capsys, tmp_path, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(backup, "_write_files", interrupted)
    shown(capsys, "backup", "restore", place, "--home", str(tmp_path / "new"), code=INTERRUPTED)
    monkeypatch.setattr(backup, "read_home", interrupted)
    shown(capsys, "backup", "create", place, code=INTERRUPTED)

    assert not list(tmp_path.glob("new*"))
    assert len(backup.backups(place)) == 1


def test_a_place_that_cannot_be_is_named_as_such(here, capsys, tmp_path):
    (tmp_path / "file").write_text("")

    for place in ("/dev/null", "file", "file/below"):
        assert (
            ": is not a directory. Name a directory" in shown(capsys, "backup", "create", place, code=2).err
        )
    assert "there is no such directory" in shown(capsys, "backup", "list", "nowhere", code=3).err
