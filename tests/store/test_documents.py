import json

import pytest

from aether.errors import NotFound
from aether.store import documents
from tests.tables import rows


def test_a_written_document_reads_back_with_its_revision(home):
    documents.write(home, "memory", {"a": [1]}, 7)

    assert documents.read(documents.path_of(home, "memory")) == documents.Document("good", {"a": [1]}, 7)
    assert documents.read_revision(documents.path_of(home, "memory")) == 7


def test_a_document_is_plain_json_for_anyone(home):
    documents.write(home, "memory", {"a": "ü"}, 7)

    found = json.loads(documents.path_of(home, "memory").read_text(encoding="utf-8"))
    assert found["a"] == "ü"
    assert found["stamp"]["revision"] == 7


@rows("value", [{"a": {}}, {"a": "x" * 40_000}, {"a": "\ud800"}, {"stamp2": [1e16]}])
def test_every_document_has_a_stamp_that_holds(value):
    data = documents.encode(value, 3, size=len(str(value)))

    assert documents.parse(data, where="memory") == documents.Document("good", value, 3)


@rows(
    ("change", "state", "revision"),
    [
        (lambda data: data.replace(b'"a": 1', b'"a": 2'), "edited", 7),
        (lambda data: json.dumps(json.loads(data)).encode(), "edited", 7),
        (lambda data: data.replace(b"\n", b"\r\n"), "edited", 7),
        (lambda data: b'{"a": 1}', "unstamped", 0),
        (lambda data: b'{"a": 1, "stamp": "x"}', "unstamped", 0),
        (lambda data: b'{"a": 1, "stamp": {"revision": true}}', "unstamped", 0),
        (lambda data: b'{"a": 1, "stamp": {"revision": -1}}', "unstamped", 0),
        (lambda data: b"", "corrupt", 0),
        (lambda data: b"null", "corrupt", 0),
        (lambda data: b"[]", "corrupt", 0),
        (lambda data: data[:-20], "corrupt", 0),
    ],
)
def test_what_was_done_to_a_file_is_noticed(change, state, revision):
    data = documents.encode({"a": 1}, 7, size=0)

    found = documents.parse(change(data), where="memory")

    assert (found.state, found.revision) == (state, revision)


def test_a_missing_file_is_missing(tmp_path):
    assert documents.read(tmp_path / "none").state == "missing"
    assert documents.read_revision(tmp_path / "none") is None


def test_there_are_only_the_known_documents(home):
    with pytest.raises(NotFound, match=r"'\.\./x' is not a document"):
        documents.path_of(home, "../x")


def test_the_five_versions_before_are_kept(home):
    for revision in range(1, 9):
        documents.write(home, "memory", {"n": revision}, revision)

    kept = documents.backups(home, "memory")

    assert [documents.read(path).revision for path in kept] == [3, 4, 5, 6, 7]
    assert documents.newest_good_backup(home, "memory", until=5).value == {"n": 5}


def test_a_damaged_backup_is_passed_over(home):
    for revision in range(2, 5):
        documents.write(home, "memory", {"n": revision}, revision)
    documents.backups(home, "memory")[-1].write_bytes(b"{")

    assert documents.newest_good_backup(home, "memory", until=9).value == {"n": 2}


def test_a_backup_that_cannot_be_read_is_passed_over(home):
    documents.write(home, "memory", {"n": 1}, 1)
    (documents.backups_of(home, "memory") / "memory.000000000009.json").mkdir(parents=True)

    assert documents.newest_good_backup(home, "memory", until=9).state in ("good", "missing")


def test_two_quarantines_of_one_instant_are_both_kept(home):
    at = "2026-03-01T10:15:00.000000Z"

    kept = [documents.quarantine(home, "memory", data, at=at) for data in (b"one", b"two", b"three")]

    assert [path.read_bytes() for path in kept] == [b"one", b"two", b"three"]
    assert kept[0].name == "memory.corrupt-20260301T101500000000Z"
