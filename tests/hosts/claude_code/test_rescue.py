"""Rescue: transcripts become items of their own project before Claude Code deletes them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from aether.api.admin import init
from aether.errors import InvalidInput, LockTimeout, NotFound
from aether.hosts.claude_code import rescue
from aether.hosts.claude_code.rescue import rescue as rescue_rescue
from tests import homes
from tests.api.calls import memory

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
# Enough to tell, and read in a second.
SMALL_BYTES = 60_000
DAY = 86_400


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config" / "projects").mkdir(parents=True)
    return tmp_path / "config"


@pytest.fixture
def here(tmp_path, monkeypatch, config):
    """Stand in a project that has a home, beside another that has one too."""
    for name in ("here", "other"):
        (tmp_path / name / ".git").mkdir(parents=True)
        init(tmp_path / name / ".aether")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def said(directory, text, *, session="s", uuid="1"):
    return {
        "type": "user", "cwd": str(directory), "sessionId": session, "timestamp": "2026-03-01T10:15:00.000Z",
        "uuid": f"00000000-0000-4000-8000-{uuid:0>12}", "parentUuid": None, "message": {"role": "user", "content": text},
    }  # fmt: skip


def transcript(config, directory, text, *, name="s.jsonl", days=0.0, folder=None, **more):
    path = config / "projects" / (folder or "".join(c if c.isalnum() else "-" for c in str(directory))) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"type": "mode", "mode": "default"}, said(directory, text, **more)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    at = rescue.now().timestamp() - days * DAY
    os.utime(path, (at, at))
    return path


def contents(project):
    return [item["content"] for item in memory(project / ".aether")["working_memory"]["items"]]


def test_a_transcript_goes_into_the_home_of_its_own_project_only(here, config, tmp_path):
    transcript(config, here, "Never deploy on a Friday.")
    transcript(config, tmp_path / "other", "Never deploy on a Monday.", uuid="2")

    done = rescue_rescue()

    assert [(one.state, one.items, one.home) for one in done] == [("imported", 1, str(here / ".aether"))]
    assert contents(here) == ["Never deploy on a Friday."]
    assert contents(tmp_path / "other") == []


def test_all_go_each_into_its_own_home(here, config, tmp_path):
    (here / "below").mkdir()
    (tmp_path / "third").mkdir()
    transcript(config, here / "below", "Never deploy on a Friday.")
    transcript(config, tmp_path / "other", "Never deploy on a Monday.", uuid="2")
    transcript(config, tmp_path / "third", "Never deploy at all.", uuid="3")

    done = rescue_rescue(everywhere=True)

    assert sorted((one.state, one.items) for one in done) == [
        ("imported", 1),
        ("imported", 1),
        ("skipped", 0),
    ]
    assert contents(here) == ["Never deploy on a Friday."]
    assert contents(tmp_path / "other") == ["Never deploy on a Monday."]
    assert [one.reason for one in done if one.reason] == [
        f'its project has no home: run "aether init" in {tmp_path / "third"}'
    ]
    assert list((tmp_path / "third").iterdir()) == []


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_transcript_of_a_removed_directory_is_skipped(here, config, everywhere):
    transcript(config, here / "gone", "Never tell the client's key.")

    (done,) = rescue_rescue(everywhere=everywhere)

    assert (done.state, done.items, contents(here)) == ("skipped", 0, [])
    assert f"{here / 'gone'} no longer exists." in done.reason
    assert f'aether import "{done.path}"' in done.reason


def test_rescuing_again_adds_nothing_and_changes_nothing_of_theirs(here, config):
    path = transcript(config, here, "Never deploy on a Friday.")
    before = path.read_bytes(), path.stat().st_mtime_ns

    rescue_rescue()
    (again,) = rescue_rescue()

    assert (again.items, again.known, again.revisions) == (0, 1, ())
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_dry_run_reports_the_same_and_stores_nothing(here, config):
    transcript(config, here, "Never deploy on a Friday.")

    (planned,) = rescue_rescue(dry_run=True)
    (done,) = rescue_rescue()

    assert (planned.state, planned.items, planned.revisions) == ("planned", 1, ())
    assert (done.state, done.items, len(done.revisions)) == ("imported", 1, 1)


def test_those_that_go_first_come_first_and_only_old_ones_if_asked(here, config):
    (config / "settings.json").write_text('{"cleanupPeriodDays": 20}')
    for days in (1, 19, 25):
        transcript(
            config, here, f"Never deploy on day {days}.", name=f"{days}.jsonl", days=days, uuid=str(days)
        )

    done = rescue_rescue(older_than=10, dry_run=True)

    assert [(Path(one.path).stem, one.age_days, one.days_left) for one in done] == [
        ("25", 25.0, -5.0),
        ("19", 19.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        ({}, 30),
        ({"local": 7, "project": 8, "user": 9}, 7),
        ({"project": 8, "user": 9}, 8),
        ({"user": 0}, 0),
        ({"user": "x"}, 30),
        ({"user": True}, 30),
    ],
)
def test_the_period_is_that_of_the_nearest_settings(here, config, settings, days):
    (here / ".claude").mkdir()
    files = {
        "local": here / ".claude" / "settings.local.json", "project": here / ".claude" / "settings.json",
        "user": config / "settings.json",
    }  # fmt: skip
    for scope, value in settings.items():
        files[scope].write_text(json.dumps({"cleanupPeriodDays": value}))

    assert rescue.cleanup_days(str(here)) == days


def test_a_sub_agents_transcript_goes_where_its_session_goes(here, config, tmp_path):
    main = transcript(config, here, "Never deploy on a Friday.")
    folder = f"{main.parent.name}/s/subagents"
    transcript(
        config, tmp_path / "other", "Find out why it fails.", name="agent-1.jsonl", folder=folder, uuid="2"
    )

    done = rescue_rescue()

    assert {Path(one.path).name for one in done} == {"s.jsonl", "agent-1.jsonl"}
    assert contents(tmp_path / "other") == []
    assert contents(here) == ["Never deploy on a Friday."]  # what another agent asks is no person's

    main.unlink()
    assert rescue_rescue() == []


def test_odd_files_are_reported_and_the_others_are_imported(here, config):
    sound = transcript(config, here, "Never deploy on a Friday.")
    for name, data in {
        "empty.jsonl": b"", "odd.jsonl": b'\xff\n[1]\n{"cwd": 3}\n{"cwd": "C:\\\\there"}\n{"cwd": "/a\\u0000b"}\n', "long.jsonl": b"{}\n" * 300
    }.items():  # fmt: skip
        sound.with_name(name).write_bytes(data)
    if os.name != "nt":
        sound.with_name("gone.jsonl").symlink_to(sound.with_name("nowhere"))
    (config / "projects" / "elsewhere").mkdir()
    (config / "projects" / "elsewhere" / "x.jsonl").write_bytes(b"{}\n")

    done = {Path(one.path).name: one for one in rescue_rescue()}

    assert done.pop("s.jsonl").state == "imported"
    assert {one.state for one in done.values()} == {"skipped"}
    assert set(done) == {"empty.jsonl", "odd.jsonl", "long.jsonl"} | (
        {"gone.jsonl"} if os.name != "nt" else set()
    )
    assert all(one.reason for one in done.values())


def test_a_failed_import_is_reported(here, config, monkeypatch):
    transcript(config, here, "Never deploy on a Friday.")
    for error, state in (
        (InvalidInput("is of no known format.", fix="Say which."), "skipped"),
        (LockTimeout("somebody writes.", fix="Wait."), "failed"),
    ):
        monkeypatch.setattr(rescue, "import_transcripts", raising(error))
        (done,) = rescue_rescue()
        assert done.state == state
        assert error.what in done.reason


def raising(error):
    def do(*arguments, **options):
        raise error

    return do


def test_stopping_in_the_middle_keeps_the_stored_items(here, config, monkeypatch):
    for number in (1, 2):
        transcript(
            config,
            here,
            f"Never deploy on day {number}.",
            name=f"{number}.jsonl",
            days=3 - number,
            uuid=str(number),
        )
    heard = []

    def stop(words):
        heard.append(words)
        if words.startswith("2 of 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rescue_rescue(progress=stop)

    assert contents(here) == ["Never deploy on day 1."]
    assert heard[0].startswith("1 of 2: 1.jsonl, 1 records read")
    rescue_rescue()
    assert len(contents(here)) == 2


def test_a_home_that_is_named_takes_those_of_the_project_here(here, config, tmp_path, monkeypatch):
    transcript(config, here, "Never deploy on a Friday.")
    transcript(config, tmp_path / "other", "Never deploy on a Monday.", uuid="2")
    named = homes.fresh(tmp_path)

    rescue_rescue(named)
    monkeypatch.setenv("AETHER_HOME", str(named))
    (again,) = rescue_rescue()

    assert (again.items, again.known) == (0, 1)
    assert [item["content"] for item in memory(named)["working_memory"]["items"]] == [
        "Never deploy on a Friday."
    ]


@pytest.mark.parametrize("how", ["option", "environment"])
def test_one_home_for_all_projects_is_refused(here, how, monkeypatch):
    monkeypatch.setenv("AETHER_HOME", str(here) if how == "environment" else "")

    with pytest.raises(InvalidInput, match="all projects"):
        rescue_rescue(here if how == "option" else None, everywhere=True)


def test_a_project_without_a_home_is_an_error(here):
    shutil.rmtree(here / ".aether")

    with pytest.raises(NotFound):
        rescue_rescue()


def test_a_project_without_a_home_gets_one_if_that_is_asked(here, config, tmp_path, monkeypatch):
    bare = tmp_path / "bare"
    (bare / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (tmp_path / "me").mkdir()
    transcript(config, bare, "Never deploy on a Friday.")
    transcript(config, tmp_path / "me", "Never deploy on a Monday.", name="m.jsonl")

    def states(**options):
        done = rescue_rescue(everywhere=True, **options)
        return {Path(one.directory).name: (one.state, one.items) for one in done}

    assert states() == {"bare": ("skipped", 0), "me": ("skipped", 0)}
    assert states(make=True, dry_run=True) == {"bare": ("planned", 1), "me": ("skipped", 0)}
    assert not (bare / ".aether").exists()
    assert states(make=True) == {"bare": ("imported", 1), "me": ("skipped", 0)}
    assert (bare / ".aether" / ".gitignore").read_text() == "*\n"

    monkeypatch.chdir(tmp_path / "me")
    monkeypatch.chdir(bare)
    (bare / ".aether").rename(tmp_path / "moved")
    assert [one.state for one in rescue_rescue(make=True)] == ["imported"]


@pytest.mark.slow
@pytest.mark.real_data
def test_real_transcripts_are_rescued_as_they_are_imported(here, config):
    found = [
        path for path in sorted((DATA / "claude_code").glob("*.jsonl")) if path.stat().st_size < SMALL_BYTES
    ]
    if not found:
        pytest.skip("the real transcripts are not beside this checkout")
    (config / "projects" / "-p").mkdir()
    for path in found:
        text, there = path.read_text(encoding="utf-8"), rescue._directory_of(path)
        moved = text.replace(json.dumps(there), json.dumps(str(here))) if there else text
        (config / "projects" / "-p" / path.name).write_text(moved, encoding="utf-8")

    done = rescue_rescue()
    again = rescue_rescue()

    taken = [one for one in done if one.state == "imported"]
    assert len(taken) > 5
    assert sum(one.items for one in taken) > 20
    assert sum(one.items for one in again) == 0
    assert all(one.reason for one in done if one.state != "imported")
