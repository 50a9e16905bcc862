import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from aether.errors import StorageFailed
from aether.events.exporters import file
from tests.events.samples import every, summary
from tests.tables import rows

ROOT = Path(__file__).parents[2]


def test_each_event_is_one_line_and_only_the_owner_may_read_it(tmp_path):
    path = tmp_path / "deep" / "er" / "events.jsonl"
    one = file(path)

    for event in every():
        one.emit(event)

    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == [event.name for event in every()]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_was_there_stays(tmp_path):
    path = tmp_path / "events.jsonl"
    file(path).emit(summary("first"))

    file(path).emit(summary("second"))

    assert [json.loads(line)["payload"]["summary"] for line in path.read_text().splitlines()] == [
        "first",
        "second",
    ]


def test_a_relative_path_stays_where_it_was_named(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    one = file("events.jsonl")

    monkeypatch.chdir(tmp_path / "elsewhere")
    one.emit(summary())

    assert (tmp_path / "events.jsonl").stat().st_size > 0


def test_several_processes_write_whole_lines(tmp_path):
    path = tmp_path / "events.jsonl"
    code = (
        "import sys\nfrom aether.events.exporters import file\nfrom tests.events.samples import summary\n"
        "one = file(sys.argv[1])\nfor _ in range(100): one.emit(summary('x' * 3000))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, path], cwd=ROOT) for _ in range(3)]

    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 300


@rows("name", ["", "taken/events.jsonl", "a\0b"])
def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path, name):
    (tmp_path / "taken").write_text("a file, not a directory")

    with pytest.raises(StorageFailed, match="Name a file"):
        file(tmp_path / name)


def test_a_disk_that_is_full_stops_nobody_and_joins_no_lines(tmp_path, monkeypatch):
    path, real = tmp_path / "events.jsonl", os.write
    one = file(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: real(handle, data[:9]))
        one.emit(summary("lost"))

    one.emit(summary("kept"))

    assert one.lost == 1
    assert json.loads(path.read_text().splitlines()[1])["payload"] == {"summary": "kept"}
