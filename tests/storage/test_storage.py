"""Copies of transcripts, summaries and events, by the adapter for files and the choice of an adapter."""

import errno
import json
import os
import stat
import sys
import threading

import pytest

from aether.errors import BackendUnavailable, Conflict, InvalidInput, StorageFailed, UnsafePath
from aether.storage import adapter, storage
from aether.storage.adapter import FileStorage, message_lines, next_free_step, summary_file, transcript_file
from aether.storage.s3 import CONNECT_SECONDS, READ_SECONDS
from tests.tables import rows


def test_files_are_named_by_their_step_in_three_digits_at_least():
    assert transcript_file(0) == "transcript-pre-compact-000.jsonl"
    assert summary_file(12345) == "summary-12345.json"


@pytest.mark.parametrize("name", [transcript_file, summary_file])
def test_there_is_no_step_before_the_first(name):
    with pytest.raises(InvalidInput, match="-1 is not a step"):
        name(-1)


def test_the_next_step_is_after_the_last_of_either_kind():
    assert next_free_step([]) == 1
    assert next_free_step(["summary-007.json", "transcript-pre-compact-003.jsonl", "events.jsonl"]) == 8
    assert next_free_step(["summary-9.json", "summary-009.json.bak", "lock"]) == 1


def test_each_message_is_a_line():
    assert message_lines([{"b": "é\n"}, {"a": 1}]) == '{"b":"é\\n"}\n{"a":1}\n'.encode()


MESSAGES = [{"role": "user", "content": "one"}, {"role": "tool", "content": None, "meta": {"label": "é"}}]


@pytest.fixture
def place(tmp_path):
    return FileStorage(tmp_path / "archive")


def read(where):
    with open(where, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_transcript_is_one_message_per_line(place):
    where = place.save_transcript("s1", MESSAGES, 1)

    assert where == str(place.root / "s1" / "transcript-pre-compact-001.jsonl")
    assert read(where) == MESSAGES
    assert stat.S_IMODE(os.stat(where).st_mode) == 0o600


def test_a_summary_is_one_document(place):
    where = place.save_summary("s1", {"content": "short"}, 12)

    assert where == str(place.root / "s1" / "summary-012.json")
    with open(where, encoding="utf-8") as file:
        assert json.load(file) == {"content": "short"}


def test_events_are_appended(place):
    for nth in range(3):
        where = place.save_event("s1", {"nth": nth})

    assert read(where) == [{"nth": 0}, {"nth": 1}, {"nth": 2}]
    assert stat.S_IMODE(os.stat(where).st_mode) == 0o600


def test_a_torn_event_is_cut_off_by_the_next(place):
    where = place.save_event("s1", {"nth": 0})
    with open(where, "a", encoding="utf-8") as file:
        file.write('{"nth')

    place.save_event("s1", {"nth": 1})

    assert read(where) == [{"nth": 0}, {"nth": 1}]


@pytest.mark.parametrize("links", [True, False])
def test_a_step_is_never_written_over(place, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", _refuse)
    where = place.save_transcript("s1", MESSAGES, 1)

    assert place.save_transcript("s1", MESSAGES, 1) == where
    with pytest.raises(Conflict, match="written before"):
        place.save_transcript("s1", MESSAGES[:1], 1)

    assert read(where) == MESSAGES
    assert os.listdir(place.root / "s1") == ["transcript-pre-compact-001.jsonl"]


def _refuse(*args, **kwargs):
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_what_fails_leaves_nothing(place, monkeypatch):
    monkeypatch.setattr(os, "link", _refuse)
    real = os.open

    def full(handle, data):
        real_write(handle, data[:3])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real_write = adapter.write_all
    monkeypatch.setattr(adapter, "write_all", full)

    with pytest.raises(StorageFailed, match="Nothing was stored"):
        place.save_summary("s1", {"content": "short"}, 1)

    assert os.listdir(place.root / "s1") == []
    assert os.open is real


def test_of_many_at_once_one_writes_and_the_others_agree_or_conflict(place):
    outcomes = []

    def write(who):
        try:
            outcomes.append(place.save_transcript("s1", [{"who": who % 2}], 1))
        except Conflict:
            outcomes.append("conflict")
        place.save_event("s1", {"who": who})

    threads = [threading.Thread(target=write, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outcomes.count("conflict") == 4
    assert sorted(event["who"] for event in read(place.root / "s1" / "events.jsonl")) == list(range(8))


def test_the_next_step_is_after_what_is_kept(place):
    assert place.next_step("s1") == 1
    place.save_transcript("s1", MESSAGES, 4)
    place.save_event("s1", {})

    assert place.next_step("s1") == 5
    assert place.next_step("s2") == 1


@rows("session", ["../evil", "/etc", "user:42/α", ".", "..", "con", "a\x00b", "x" * 500])
def test_any_session_stays_below_the_root(place, session):
    where = place.save_event(session, {})

    assert os.path.realpath(where).startswith(str(place.root) + os.sep)
    assert os.listdir(place.root.parent) == ["archive"]


def test_no_session_is_refused(place):
    with pytest.raises(InvalidInput, match="session"):
        place.save_event("", {})


def test_a_directory_that_leads_elsewhere_is_refused(place, tmp_path):
    place.root.mkdir()
    (place.root / "s1").symlink_to(tmp_path)

    with pytest.raises(UnsafePath):
        place.save_event("s1", {})


def test_a_root_that_is_a_file_is_said(tmp_path):
    (tmp_path / "archive").write_text("")

    with pytest.raises(StorageFailed):
        FileStorage(tmp_path / "archive").save_transcript("s1", MESSAGES, 1)


def test_the_root_does_not_move_with_the_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = FileStorage("archive")
    monkeypatch.chdir("/")

    assert place.save_event("s1", {}).startswith(str(tmp_path))


def test_fs_is_a_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    named, default = storage("fs", path=str(tmp_path / "copies")), storage("fs")

    assert isinstance(named, FileStorage)
    assert named.root == tmp_path / "copies"
    assert default.root == tmp_path / ".compact" / "archive"


def test_another_kind_is_refused():
    with pytest.raises(InvalidInput, match="'ftp' is not a storage"):
        storage("ftp")


def test_s3_wants_a_bucket():
    with pytest.raises(InvalidInput, match="no bucket"):
        storage("s3")


def test_s3_without_boto3_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)

    with pytest.raises(BackendUnavailable, match=r"\.\[s3\]"):
        storage("s3", bucket="copies")


@pytest.mark.extras
def test_s3_is_a_bucket(monkeypatch):
    pytest.importorskip("boto3", reason="boto3 is not installed")
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "us-east-1")

    made = storage("s3", bucket="copies", prefix="/a/b/", kms_key_id="key")

    assert (made.name, made.bucket, made.prefix) == ("s3", "copies", "a/b")
    settings = made.client.meta.config
    assert (settings.connect_timeout, settings.read_timeout) == (CONNECT_SECONDS, READ_SECONDS)


def test_git_ignores_the_default_place_of_copies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    FileStorage().save_event("s", {"event": "x"})
    FileStorage(tmp_path / "other").save_event("s", {"event": "x"})

    assert (tmp_path / ".compact" / ".gitignore").read_text() == "*\n"
    assert not (tmp_path / "other" / ".gitignore").exists()
    assert not (tmp_path / ".gitignore").exists()
