"""One function on strings, applied to every kind of file, which stays whole."""

from __future__ import annotations

import json

import pytest

from aether.memory import handoff, snapshots
from aether.memory.forgetting import erase as forgetting_erase
from aether.store import documents, files, snapshot
from tests import homes

OLD, NEW = "Quorvex", "[ERASED]"


def erase(text):
    return text.replace(OLD, NEW)


def test_a_document_keeps_its_revision_and_has_a_stamp_that_holds():
    data = documents.encode({"a": OLD}, 7, size=0)

    found = documents.parse(forgetting_erase.rewrite_file("data/memory.json", data, erase), where="memory")

    assert found == ("good", {"a": NEW}, 7)


def test_a_line_of_the_journal_is_mapped_and_sealed_and_its_paths_key_by_key():
    line = snapshot.entry_line(
        snapshot.Entry(
            3, "2026-03-01", "queen", "undo", f"of revision {OLD} 2",
            {"memories": [{"op": "add", "path": f"/files/~1{OLD}~0", "value": {OLD: 1}}, {"op": "remove", "path": "/a"}]},
            {"memories": [{"op": "move", "from": f"/{OLD}", "path": "/b"}]}, {"items": [{"item": OLD}]},
        )
    )  # fmt: skip

    made = files.unsealed(forgetting_erase.rewrite_file("data/journal.jsonl", line, erase))

    assert made["patches"]["memories"] == [
        {"op": "add", "path": f"/files/~1{NEW}~0", "value": {NEW: 1}},
        {"op": "remove", "path": "/a"},
    ]
    assert made["inverse"]["memories"] == [{"op": "move", "from": f"/{NEW}", "path": "/b"}]
    assert (made["appends"], made["reason"]) == ({"items": [{"item": NEW}]}, f"of revision {OLD} 2")


def test_lines_that_do_not_change_stay_byte_for_byte_and_torn_ones_are_mapped_as_they_stand():
    data = b'{"a" :1}\n' + b'{"b": "Quorvex"}\n' + b"[1]\n" + b'no json Quorvex\n{"c": "Quorvex'

    made = forgetting_erase.rewrite_file("telemetry.jsonl", data, erase)

    assert made == b'{"a" :1}\n{"b":"[ERASED]"}\n[1]\nno json [ERASED]\n{"c": "[ERASED]'


def test_what_is_no_json_is_mapped_as_text_bytes_that_are_none_included():
    assert forgetting_erase.rewrite_file("memories/a.json", b'{"Quorvex":\xff', erase) == b'{"[ERASED]":\xff'
    assert forgetting_erase.rewrite_file("hook.log", b"Quorvex\n", erase) == b"[ERASED]\n"
    assert forgetting_erase.rewrite_file("data/memory.json", b"{Quorvex", erase) == b"{[ERASED]"
    assert forgetting_erase.rewrite_file("a.json", b'["x"]', erase) == b'["x"]'


@pytest.mark.parametrize("good", [True, False])
def test_a_snapshot_and_a_handoff_are_sealed_anew_if_they_were_whole(good):
    snapshot = snapshots.take_snapshot(
        {"memory": {"a": OLD}}, snapshot_id="s", label="", now=homes.NOW, revision=1
    )
    given = handoff.seal({"items": [OLD]}, {"text": OLD})
    if not good:
        snapshot["checksum"] = given["checksum"] = "0"

    made, handed = (
        json.loads(forgetting_erase.rewrite_file("x.json", files.json_document(one), erase))
        for one in (snapshot, given)
    )

    assert (made["checksum"] == snapshots.checksum({"memory": {"a": NEW}})) is good
    assert handed["items"] == [NEW]
    if good:
        assert handoff.require_intact(handed, where="") == handed
    else:
        assert (made["checksum"], handed["checksum"]) == ("0", "0")


def test_digests_of_what_is_erased_follow_it_and_others_are_emptied():
    item = homes.item("one", f"{OLD} is it")
    known = forgetting_erase.digests(OLD, erase) | forgetting_erase.digests(item, erase)
    after = homes.item("one", f"{NEW} is it")

    made = forgetting_erase.map_strings(
        {"items": {"one": handoff.item_digest(item)}, "sha256_before": "a", "sha256_after": "b"},
        lambda text: known.get(text) or erase(text),
    )

    assert made == {"items": {"one": handoff.item_digest(after)}, "sha256_before": "", "sha256_after": ""}
    assert forgetting_erase.digests({"content": OLD}, erase) == {}
    forgotten = {"id": "a", "layer": "archive", "part": "", "sha256": "x", "at": "y"}
    assert forgetting_erase.map_strings(forgotten, erase) == forgotten | {"sha256": ""}


def test_what_a_thing_says_is_all_its_texts_and_their_longer_sentences():
    session = {
        "session_id": "s", "summary": "One. Two sentences that are long enough.", "key_decisions": [{"decision": "D", "rationale": ""}],
        "outcomes": "none", "high_value_items": [None], "metadata": {"protected": ["P"], "context": None},
    }  # fmt: skip
    pattern = {"pattern": "A", "evidence": [{"text": "E"}], "metadata": {"context": "C"}}

    assert list(forgetting_erase.texts_of(session)) == [
        "One. Two sentences that are long enough.", "Two sentences that are long enough.", "P", "D",
    ]  # fmt: skip
    assert list(forgetting_erase.texts_of(pattern)) == ["A", "C", "E"]
    assert list(forgetting_erase.texts_of({"content": "x", "metadata": 1})) == ["x"]


def test_the_objects_of_a_file_are_those_that_parse_and_all_in_them():
    found = forgetting_erase.objects("a.jsonl", b'{"a":1}\nno\n[{"b":{"c":2}}]')
    assert sorted(map(str, found)) == ["{'a': 1}", "{'b': {'c': 2}}", "{'c': 2}"]
    assert list(forgetting_erase.objects("a.json", b'{"a":1}')) == [{"a": 1}]
    assert list(forgetting_erase.objects("a.log", b'{"a":1}')) == []


def test_a_conversation_is_known_by_the_first_line_of_its_log():
    data = files.seal_json({"conversation": "c", "format": 1})

    assert forgetting_erase.conversation_of("conversations/c/history.jsonl", data) == "c"
    assert forgetting_erase.conversation_of("conversations/c/history.jsonl", b"") is None
    assert forgetting_erase.conversation_of("data/history.jsonl", data) is None


@pytest.mark.parametrize("text", ["content", "assistant", "working", "2026-03-01", "observation", "metadata"])
def test_words_that_files_are_built_of_are_reserved(text):
    assert forgetting_erase.is_reserved(text)
