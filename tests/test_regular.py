"""Files of homes that are no regular files, or larger than a reader waits for."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tomllib

import pytest

import aether
from aether import regular
from aether.api import admin, backup, conversations, drain, share
from aether.api.overview import overview
from aether.errors import AetherError, InvalidDocument, LockTimeout, NotFound, UnsafePath
from aether.hosts import hook
from aether.hosts.claude_code import health
from aether.sharing import offline
from aether.store import conversations as store_conversations
from aether.store import spool
from aether.store.commit import fold_home
from aether.types import Finding
from tests import homes
from tests.tables import rows

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no FIFOs")


def fifo(path):
    os.mkfifo(path)


def hollow(path):
    path.write_bytes(b"{}\n")
    os.truncate(path, 100_000_000)


def device(path):
    path.symlink_to("/dev/zero")


def link(path):
    (path.parent / "elsewhere").write_text("{}")
    path.symlink_to(path.parent / "elsewhere")


def listener(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


KINDS = (fifo, device, link, listener)


@pytest.mark.parametrize("make", [*KINDS, hollow])
def test_only_a_regular_file_is_opened(make, tmp_path):
    make(tmp_path / "file")

    assert not regular.is_readable(tmp_path / "file")
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_APPEND):
        with pytest.raises(UnsafePath, match=r"not a regular file\. Remove it|mostly holes"):
            regular.handle(tmp_path / "file", flags)


def test_a_file_that_a_disk_compresses_or_says_nothing_of_is_opened(tmp_path, monkeypatch):
    hollow(tmp_path / "file")

    def seeks(handle, place, how, real=os.lseek, whole=True):
        if how == os.SEEK_HOLE and not whole:
            raise OSError("the disk knows no holes")
        return 100_000_000 if how == os.SEEK_HOLE else real(handle, place, how)

    for whole in (True, False):
        monkeypatch.setattr(
            regular.os, "lseek", lambda *arguments, whole=whole: seeks(*arguments, whole=whole)
        )
        assert regular.read(tmp_path / "file", 100_000_000).startswith(b"{}\n\0")


def test_what_may_not_be_read_is_readable_for_somebody_and_what_is_missing_for_nobody(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(bytes(20_000_000))
    monkeypatch.setattr(regular, "handle", lambda path: (_ for _ in ()).throw(PermissionError()))

    assert regular.is_readable(tmp_path / "file")
    assert not regular.is_readable(tmp_path / "missing")
    assert not regular.is_readable(tmp_path)


def test_a_file_is_read_up_to_its_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")

    assert regular.read(tmp_path / "file", 5) == b"12345"
    with pytest.raises(InvalidDocument, match="has 5 bytes, and at most 4 are read"):
        regular.read(tmp_path / "file", 4)


def test_a_file_that_grows_while_it_is_read_is_read_up_to_its_limit(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"12345")
    fields = [*os.stat(tmp_path / "file")]
    monkeypatch.setattr(regular.os, "fstat", lambda _: os.stat_result([*fields[:6], 3, *fields[7:]]))

    assert regular.read(tmp_path / "file", 5) == b"12345"
    with pytest.raises(InvalidDocument, match="has 5 bytes, and at most 4 are read"):
        regular.read(tmp_path / "file", 4)


def test_a_directory_and_a_missing_file_are_what_they_are(tmp_path):
    with pytest.raises(IsADirectoryError):
        regular.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        regular.read(tmp_path / "nowhere")


def test_without_the_flags_of_unix_a_link_is_refused_too(tmp_path, monkeypatch):
    link(tmp_path / "file")
    monkeypatch.delattr(os, "O_NOFOLLOW")

    with pytest.raises(UnsafePath):
        regular.handle(tmp_path / "file")


# Every file of a home that something reads, and what reads it.
FILES = {
    "config.toml": lambda home: aether.get_memory_status(home=home),
    "models.json": lambda home: aether.preflight("c", [{"role": "user", "content": "hi"}], model="x", home=home),
    "hook.log": lambda home: overview(home=home),
    "lock": lambda home: homes.add(home, "one"),
    "data/memory.json": lambda home: aether.get_memory_status(home=home),
    "data/graph.json": lambda home: aether.get_memory_status(home=home),
    "data/journal.jsonl": lambda home: aether.get_memory_status(home=home),
    "data/journal/2026-03.jsonl": lambda home: aether.log(home=home),
    "data/archive/items/2026-03.jsonl": lambda home: aether.search_memory("x", home=home),
    "data/receipts.jsonl": lambda home: aether.undo(home=home),
    "data/usage.json": lambda home: aether.preflight("c", [{"role": "user", "content": "hi"}], model="x", home=home),
    "snapshots/one.json": lambda home: admin.list_snapshots(home=home),
    "hooks/spool/00000000000000000001-1-aa.json": lambda home: aether.get_memory_status(home=home),
    "hooks/sessions/s.json": lambda home: overview(home=home),
    "hooks/answering": lambda home: overview(home=home),
    "memories/a.md": lambda home: aether.get_memory_status(home=home),
    "conversations/c/history.jsonl": lambda home: aether.preflight("c", [{"role": "user", "content": "x"}], home=home),
}  # fmt: skip


@pytest.mark.parametrize("make", [fifo, pytest.param(device, marks=pytest.mark.slow)])
def test_no_reader_of_a_home_waits_or_breaks_at_a_file_that_is_none(make, tmp_path):
    for name, read in FILES.items():
        home = homes.fresh(tmp_path / name.replace("/", "-"))
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)
        with contextlib.suppress(AetherError):  # it says what to do
            read(home)
        assert all(isinstance(one, Finding) for one in aether.examine(home=home))


def sparse(path):
    with path.open("wb") as file:
        file.truncate(50_000_000)


def deep(path):
    path.write_bytes(b'{"claude":' + b"[" * 100_000)


def names(path):
    path.write_text("\n".join(f"claude.k{nth} = 1" for nth in range(4000)))


def parts(path):
    path.write_text("claude." + "a." * 30_000 + "a = 1")


READ_BY_HOOKS = (
    "config.toml",
    "hook.log",
    "lock",
    "data/memory.json",
    "data/journal.jsonl",
    "hooks/spool/1-1-a.json",
)


def test_a_hook_answers_whatever_is_in_a_home(tmp_path, monkeypatch):
    monkeypatch.setattr(tomllib, "loads", counted := Counted(tomllib.loads))
    for nth, (name, make) in enumerate(
        [*((name, fifo) for name in READ_BY_HOOKS), *(("config.toml", one) for one in (sparse, deep, names, parts)),
         *(("data/memory.json", one) for one in (sparse, deep)), *(("data/journal.jsonl", one) for one in (deep, names))]
    ):  # fmt: skip
        home = homes.fresh(tmp_path / str(nth))
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)
        for event in ("SessionStart", "PostToolUse", "UserPromptSubmit"):
            payload = {
                "hook_event_name": event, "session_id": "s", "cwd": str(home.parent), "prompt": "Which one?",
                "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": ""},
            }  # fmt: skip
            assert hook.main([event], json.dumps(payload).encode())[0] == 0
    assert counted.most <= regular.CONFIG_BYTES  # characters that the slow parser was given


class Counted:
    """A function of a text, and the length of the longest one that it was given."""

    def __init__(self, function):
        self.function, self.most = function, 0

    def __call__(self, text):
        self.most = max(self.most, len(text))
        return self.function(text)


def test_the_null_device_is_an_empty_file_and_a_name_that_is_none_is_not_found():
    with regular.named("/dev/null") as file:
        assert file.read() == b""
    for name in ("a\0b", "\ud800", "/nowhere/at/all"):
        with pytest.raises(NotFound):
            regular.named(name)


@rows("put", [fifo, device, link, listener])
def test_an_agent_goes_on_where_its_record_is_no_file_and_doctor_and_status_say_so(tmp_path, put):
    home = homes.fresh(tmp_path)
    given = [{"role": role, "content": "word " * 200} for _ in range(12) for role in ("user", "assistant")]
    for name in ("small", "large"):
        (home / "conversations" / name).mkdir(parents=True)
        put(home / "conversations" / name / "history.jsonl")

    small = aether.preflight("small", given[:2], window=8_000, home=home)
    large = aether.preflight("large", given, window=4_000, home=home)

    assert small.messages == given[:2]
    assert large.messages == given
    assert [found.code for found in small.findings] == ["UnsafePath"]
    assert [found.code for found in large.findings] == ["UnsafePath", "not-compacted"]
    assert not large.triggered
    with pytest.raises(UnsafePath):
        aether.compact("large", given, window=4_000, home=home)
    named = {found.where for found in admin.examine(home=home) if found.code == "no-file"}
    assert named == {"conversations/small/history.jsonl", "conversations/large/history.jsonl"}
    assert sum("is not a regular file" in problem for problem in overview(home=home)["problems"]) == 2


def test_every_file_of_a_home_is_its_owners_alone_whatever_the_umask_is(tmp_path, monkeypatch):
    """Also those that are made beside the documents: marks of failures, the list for git, hand-offs."""

    def held(*_, **__):
        raise LockTimeout("held by another.", fix="Wait.", where="hooks")

    monkeypatch.setattr(drain, "locked", held)
    before = os.umask(0)
    try:
        home = admin.init(tmp_path / "made" / ".aether")
        hook._make_place(str(tmp_path / "hooked" / ".aether"))
        with share._in_making(tmp_path / "joined" / ".aether"):
            pass
        offline.note_try(home, failed=True)
        health.pause(home)
        aether.add_working_memory_item("Use Redis.", "decision", 0.9, home=home, metadata={"phase": 1})
        aether.prepare_compression_data(1, home=home, manual=True)
        spool.put(str(home), {"event": "SessionStart", "session": "s"})
        drain.drain(home)
    finally:
        os.umask(before)

    found = [path for path in tmp_path.rglob("*") if path.lstat().st_mode & 0o077]
    assert [path for path in found if ".aether" in path.parts] == []
    names = {path.relative_to(home).as_posix() for path in home.rglob("*")}
    assert {".gitignore", "share/tried", "hooks/paused", "compressions"} <= names


def test_a_mark_is_not_made_where_a_link_leads(home, tmp_path):
    (home / "share").mkdir()
    (home / offline.TRIED).symlink_to(tmp_path / "elsewhere")

    offline.note_try(home, failed=True)

    assert not (tmp_path / "elsewhere").exists()


def test_a_file_with_another_name_is_never_written_through_to_it(tmp_path):
    """A home that came from others may have its journal, its head, its months and its locks as hard links."""
    home = homes.fresh(tmp_path)
    homes.add(home, "one")
    outside = {}
    for path in [path for path in home.rglob("*") if path.is_file()]:
        link = tmp_path / f"outside-{path.name}"
        os.link(path, link)
        outside[link] = link.read_bytes()

    homes.add(home, "two")
    fold_home(home, now=homes.NOW)

    assert {link: link.read_bytes() for link in outside} == outside
    assert homes.ids(home) == ["one", "two"]
    assert not list(home.rglob(f"*{regular.TEMP_SUFFIX}"))


def test_a_copy_that_cannot_be_made_leaves_no_temp_file(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x")
    os.link(tmp_path / "file", tmp_path / "link")
    monkeypatch.setattr(os, "replace", lambda *_: os.stat("/nowhere"))

    with pytest.raises(OSError, match="No such file"):
        regular.handle(tmp_path / "file", os.O_WRONLY)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def test_a_history_beyond_the_limit_is_named_and_kept_and_hinders_nothing_else(
    home, tmp_path, monkeypatch, capsys
):
    conversations.add_messages("long", [{"role": "user", "content": "ants " * 400}], home=home)
    conversations.add_messages("short", [{"role": "user", "content": "Hello"}], home=home)
    content = (home / "conversations/long/history.jsonl").read_bytes()
    monkeypatch.setattr(regular, "LOG_BYTES", 1_500)
    store_conversations._CACHE.clear()

    with pytest.raises(
        InvalidDocument, match=r"long/history\.jsonl: has [\d,]+ bytes, and at most 1,500 are read"
    ):
        conversations.full_history("long", home=home)
    assert {stored.id for stored in store_conversations.stored_conversations(home)} == {"long", "short"}
    assert len(conversations.full_history("short", home=home)) == 1
    assert any("long/history.jsonl" in finding.where for finding in aether.examine(home=home))
    created = backup.create_backup(str(tmp_path / "backups"), home=home)
    assert created.files > 2
    assert (home / "conversations/long/history.jsonl").read_bytes() == content
