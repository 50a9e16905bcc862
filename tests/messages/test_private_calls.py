"""Private calls: a call about a private path and its result are not there, all else is."""

from __future__ import annotations

from aether.messages.read import without_private
from aether.messages.records import Record


def call(name, path, **more):
    return Record("call", tool="Write", arguments={"file_path": path, "content": "x"}, call_id=name, **more)


def result(name):
    return Record("result", text="done", call_id=name)


def test_a_private_call_is_left_out_with_its_result():
    said = Record("user", text="Look at secrets/a.txt.")
    records = [said, call("1", "secrets/a.txt"), call("2", "src/a.py"), result("1"), result("2")]

    assert list(without_private(records, "secrets/**", directory="/app")) == [said, records[2], records[4]]


def test_a_relative_path_is_seen_from_where_the_call_was_made():
    inside, outside = call("1", "a.txt", directory="/app/secrets"), call("2", "a.txt", directory="/app")

    assert list(without_private([inside, outside], "/app/secrets", directory="/app")) == [outside]


def test_an_id_that_is_used_again_is_another_call():
    records = [call("", ".env"), result(""), call("", "a.py"), result("")]

    assert list(without_private(records, ".env*", directory="/app")) == records[2:]
