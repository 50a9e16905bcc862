import gc
import io
import json
import tracemalloc

import pytest

from aether.errors import InvalidInput, NotFound
from aether.messages.read import (
    detect_file_format,
    formats,
    looks_like_json,
    read_records,
    records_of_values,
    without_private,
)
from aether.messages.records import Record
from tests.tables import rows

MESSAGE = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Go."}}


def stream(*values):
    return io.BytesIO(b"".join(json.dumps(value).encode() + b"\n" for value in values))


@pytest.mark.parametrize("format", [None, "plain"])
def test_binary_data_is_no_text_either(format):
    with pytest.raises(InvalidInput, match="binary data"):
        list(read_records(io.BytesIO(b"\x7fELF\0\1\n" * 9), format=format))


@pytest.mark.parametrize("format", [None, "claude_code"])
def test_a_short_log_that_a_power_cut_padded_is_read(format):
    bad = []
    padded = io.BytesIO(stream(MESSAGE).getvalue() + b"\0" * 512)

    assert [record.text for record in read_records(padded, format=format, on_bad=bad.append)] == ["Go."]
    assert [one.line for one in bad] == [2]


@rows(
    ("value", "name", "kind"),
    [
        (MESSAGE, "claude_code", "user"),
        (
            {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Go."}},
            "codex",
            "user",
        ),
        ([{"role": "user", "content": "Go."}], "chat", "user"),
        ([{"source": "user", "action": "message", "args": {"content": "Go."}}], "openhands", "user"),
        ({"content": "Go.", "type": "decision"}, "items", "item"),
    ],
)
def test_every_format_is_found_and_can_be_forced(value, name, kind):
    [found] = read_records(stream(value))
    [forced] = read_records(stream(value), format=name)

    assert (found.kind, found.text) == (kind, "Go.")
    assert detect_file_format([value]) == name
    assert forced == found


def test_text_is_plain_and_json_can_be_forced_to_be():
    assert [record.text for record in read_records(io.BytesIO(b"Hello.\n\nWorld."))] == ["Hello.", "World."]
    assert [record.kind for record in read_records(stream(MESSAGE), format="plain")] == ["text"]


def test_the_name_of_a_file_does_not_matter(tmp_path):
    path = tmp_path / "notes.md"
    path.write_text(json.dumps(MESSAGE, indent=2))

    assert [record.text for record in read_records(path)] == ["Go."]


def test_bad_lines_are_counted_and_do_not_stop_the_reading():
    bad = []
    data = stream(MESSAGE).read() + b"oops\n" + stream(MESSAGE).read() + b'{"torn'

    found = list(read_records(io.BytesIO(data), on_bad=bad.append))

    assert len(found) == 2
    assert [line.line for line in bad] == [2, 4]


def test_an_empty_file_holds_no_records():
    assert list(read_records(io.BytesIO(b""))) == []


@rows("data", [b'{"name": "package"}', b'{"oops', b"\x89PNG\x00\x00"])
def test_unknown_formats_are_refused(data):
    with pytest.raises(InvalidInput):
        list(read_records(io.BytesIO(data)))


def test_a_format_that_does_not_exist_is_refused_at_once():
    with pytest.raises(InvalidInput, match="xml"):
        read_records(io.BytesIO(b""), format="xml")


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        list(read_records(tmp_path / "gone.jsonl"))


def test_a_sub_agents_file_learns_its_caste_from_the_file_beside_it(tmp_path):
    path = tmp_path / "agent-7.jsonl"
    path.write_text(json.dumps({**MESSAGE, "isSidechain": True, "uuid": "u"}))

    assert [record.caste for record in read_records(path)] == ["agent"]
    path.with_suffix(".meta.json").write_text('{"agentType": "scout"}')
    assert [record.caste for record in read_records(path)] == ["scout"]


def test_values_may_come_from_anywhere():
    assert [
        record.text for record in records_of_values("chat", [(1, [{"role": "user", "content": "Go."}])])
    ] == ["Go."]


@pytest.mark.parametrize(
    ("few", "many", "bytes_a_line"),
    [(200, 600, 1_000), pytest.param(500, 4_000, 400, marks=pytest.mark.slow)],
)
def test_memory_does_not_grow_with_the_file(few, many, bytes_a_line):
    def lines(count):
        for n in range(count):
            value = {**MESSAGE, "uuid": f"u{n}", "message": {"role": "user", "content": "x" * 2_000}}
            yield json.dumps(value).encode() + b"\n"

    def peak(count):
        gc.collect()
        tracemalloc.start()
        for _ in read_records(_Lines(lines(count))):
            pass
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(few)  # what is loaded and cached on the first call counts for neither
    # Ids of lines are remembered, their content is not.
    assert peak(many) - peak(few) < (many - few) * bytes_a_line


class _Lines(io.RawIOBase):
    def __init__(self, lines):
        self._lines = lines

    def __iter__(self):
        return self._lines


@rows(
    ("value", "found"),
    [
        ({"type": "user", "message": {"role": "user", "content": "x"}}, "claude_code"),
        ({"type": "summary", "summary": "t", "leafUuid": "x"}, "claude_code"),
        ({"type": "queue-operation", "sessionId": "s"}, "claude_code"),
        ({"loglines": []}, "claude_code"),
        ({"type": "session_meta", "payload": {}}, "codex"),
        ([{"role": "user", "content": "x"}], "chat"),
        ({"messages": [{"role": "user", "content": "x"}]}, "chat"),
        ({"sessionId": "s", "messages": [{"type": "user", "content": "x"}]}, "chat"),
        ({"type": "session", "id": "s"}, "chat"),
        ([{"source": "user", "action": "message"}], "openhands"),
        ({"history": [{"source": "user", "action": "message"}]}, "openhands"),
        ({"content": "x", "type": "decision"}, "items"),
        ([{"content": "x", "type": "decision"}], "items"),
    ],
)
def test_a_format_is_known_by_its_content(value, found):
    assert detect_file_format([value]) == found


def test_values_that_say_nothing_are_passed_over():
    assert detect_file_format([7, {}, {"content": "x", "type": "decision"}]) == "items"


@rows("values", [[], [{"name": "package"}], [[1, 2]]])
def test_an_unknown_format_names_those_there_are(values):
    with pytest.raises(InvalidInput) as caught:
        detect_file_format(values, where="x.json")

    assert all(name in str(caught.value) for name in formats())
    assert str(caught.value).startswith("x.json: ")


@rows("text", ["{", '[{"a": 1}]', "[", "[1, 2]", ' {"a"'])
def test_json_looks_like_json(text):
    assert looks_like_json(text)


@rows("text", ["[link](a)", "[x] done", "{curly} prose", "text", ""])
def test_prose_with_brackets_does_not(text):
    assert not looks_like_json(text)


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


def test_text_without_the_suffix_of_notes_is_imported_only_on_request(tmp_path):
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")

    with pytest.raises(InvalidInput, match=r"neither a conversation nor notes.*--format plain"):
        list(read_records(tmp_path / "hosts"))
    assert [record.text for record in read_records(tmp_path / "hosts", format="plain")] == [
        "127.0.0.1 localhost"
    ]
