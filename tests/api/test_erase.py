"""Erasing: what was planted through every door of a home is in none of its bytes afterwards, and the home is whole."""

from __future__ import annotations

import gzip
import json

import pytest
import zstandard

import aether
from aether.api import admin as homes_of
from aether.api import (
    archive,
    colony,
    conversations,
    drain,
    forget,
    goals,
    graph,
    hook_sessions,
    recall,
    working,
)
from aether.api.colony import emit_signal
from aether.cli.main import main
from aether.errors import Conflict, InvalidInput, LockTimeout, NotFound
from aether.store import archive_store, snapshot, spool
from aether.store import conversations as store_conversations
from aether.store import files as store_files
from aether.store.files import locked
from tests import homes
from tests.api.test_memory_tool import tool
from tests.cli import stage
from tests.hook_player import put, turn
from tests.tables import rows

PLAIN = "Quorvex-77-Blue"
# What JSON, twice nested JSON, pointers, URLs and Python all write in another way.
ODD = 'Zé"q/u~o\\β r1'
# Stands in the paths of memory files, and so in the pointers of patches.
SLASHED = "vault/Quorvex~key"
WHOLE_RESULT = {"type": "tool_result", "tool_use_id": "call_1", "content": ""}


def raw_forms(text):
    """Every way in which `text` may stand in bytes, worked out apart from the code under test."""
    once = [json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], text]
    twice = [json.dumps(one, ensure_ascii=flag)[1:-1] for one in once for flag in (True, False)]
    return {one.encode() for one in (*once, *twice)}


def holders(home, text):
    """Return the files of `home` that hold `text`, in their bytes or in their names."""
    forms = raw_forms(text)
    found = []
    for path in sorted(home.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        data += path.relative_to(home).as_posix().encode()
        if any(form in data for form in forms):
            found.append(path.relative_to(home).as_posix())
    return found


@pytest.mark.parametrize(
    "text", ["first zqc-one\nsecond zqc-one", 'it\'s "zqc-one" now', "Always use zqc-one\tafter it"]
)
def test_a_text_is_erased_however_aether_itself_writes_it(home, text):
    aether.add_working_memory_item(
        text, "constraint", 0.9, metadata={"protected": True, "evidence": "person"}, home=home
    )
    goals.add_goal(text, home=home)
    hook_sessions.start_injected(home, "s-1", [f"- {line}" for line in text.splitlines()])
    put(
        home,
        {"event": "UserPromptSubmit", "session": "s-1", "at": "2026-03-01T10:15:00.000000Z", "prompt": text},
    )
    drain.drain(home)

    forget.erase(match=text, home=home)

    assert not [path for path in home.rglob("*") if path.is_file() and b"zqc-one" in path.read_bytes()]
    assert is_sound(home) == []


def is_sound(home):
    return [one for one in homes_of.examine(home=home) if one.level != "info"]


def compress(home, phase, text):
    aether.prepare_compression_data(phase, home=home, manual=True)
    answer = {
        **stage.session(), "id": f"phase_{phase}_x", "session_id": f"phase_{phase}_x",
        "summary": f"It was about {text}.",
        "key_decisions": [{"decision": f"Always use {text} for the cache", "rationale": f"{text} is quick", "quote": text}],
        "state": [{"text": f"It works with {text}.", "quote": text}],
        "outcomes": [{"result": f"{text} works", "impact": "later phases rely on it"}],
    }  # fmt: skip
    aether.trigger_phase_boundary_compression(phase, answer, home=home)


def conversation(text):
    call = {
        "type": "tool_use",
        "id": "call_1",
        "name": "run",
        "input": {"command": f"login '{text}'", text: 1},
    }
    return [
        {"role": "user", "content": f"The password is {text}."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{**WHOLE_RESULT, "content": json.dumps({"said": text})}]},
        *({"role": ("assistant", "user")[n % 2], "content": f"{n} and so on. " * 40} for n in range(30)),
    ]


def planted(home, text):
    """Put `text` through every door of `home`, each with something innocent beside it."""
    homes_of.init(home)
    aether.add_working_memory_item(f"Note: {text} is it.", "decision", 0.9, home=home, metadata={"phase": 1})
    aether.add_working_memory_item(text, "constraint", 0.9, home=home, metadata={"phase": 1})
    for phase in (1, 2, 3):
        aether.add_working_memory_item(f"Always use {text} in {phase}.", "preference", 0.9, home=home)
        compress(home, phase, text)
    aether.detect_patterns_across_sessions(home=home)
    aether.extract_pattern_to_long_term(f"Always use {text}", session_id="phase_3_x", home=home)
    emit_signal("FOCUS", context=f"look at {text}", home=home)
    colony.start_phase(4, name=f"the {text} phase", home=home)
    tool(home, "create", path="/memories/" + text.replace(chr(92), "-") + ".md", file_text=f"it is\n{text}\n")
    tool(home, "create", path="/memories/by_hand.md", file_text="nothing yet")
    (home / "memories/by_hand.md").write_text(f"by hand: {text}")
    graph.create_entities([{"name": text, "entityType": "key", "observations": [f"is {text}"]}], home=home)
    graph.create_relations([{"from": text, "to": text, "relationType": "is"}], home=home)
    conversations.add_messages("work", conversation(text), home=home)
    conversations.add_messages(f"about {text}", conversation(text), home=home)
    aether.compact("work", conversations.context("work", home=home), window=4000, home=home)
    put(home, *turn(1))
    put(home, {"event": "UserPromptSubmit", "session": "s2", "at": "2026-03-01T10:15:00.000000Z", "prompt": f"Never use {text}."})  # fmt: skip
    hook_sessions.record_injected(home, "s2", [f"- {text}"])
    aether.create_snapshot(f"with {text}", home=home)
    item = aether.add_working_memory_item(f"{text}\nstays open", "decision", 0.9, home=home)
    done = forget.forget([str(item)], home=home)
    homes_of.undo(done.revision, home=home)
    working.clear_working_memory(home=home)
    aether.add_working_memory_item(f"Open: {text} once more", "decision", 0.9, home=home)
    aether.prepare_compression_data(5, home=home, manual=True)
    recall.search_memory(text, home=home)
    _by_hand(home, text)


def _by_hand(home, text):
    """What people, crashes and exporters leave: an edit, damaged files, logs, a torn line."""
    homes_of.fold(home=home)
    path = home / "data/COLONY_STATE.json"
    edited = json.loads(path.read_bytes())
    edited["colony_status"]["current_phase_name"] = f"by hand {text}"
    path.write_text(json.dumps(edited))
    (home / "quarantine").mkdir(exist_ok=True)
    (home / "quarantine/journal.corrupt-1").write_bytes(b"\xff{" + json.dumps({"a": text}).encode())
    (home / "hook.log").write_text(f"2026 hook {text}\n2026 hook fine\n")
    (home / "telemetry.jsonl").write_text(json.dumps({"event": {"said": text}}) + "\nno json " + text + "\n")
    with (home / "data/journal.jsonl").open("ab") as journal:
        journal.write(json.dumps({"revision": 1, "said": text}).encode())


@pytest.fixture
def place(tmp_path):
    return homes_of.init(tmp_path / ".aether")


def test_no_byte_of_the_text_remains_in_any_file(tmp_path):
    erase_everywhere(tmp_path, ODD)


@pytest.mark.slow
@rows("text", [PLAIN, SLASHED], ids=["plain", "slashed"])
def test_no_byte_of_other_texts_remains(tmp_path, text):
    erase_everywhere(tmp_path, text)


def erase_everywhere(tmp_path, text):
    """Plant `text` everywhere, erase it, and look into every byte."""
    home = tmp_path / ".aether"
    planted(home, text)
    assert len(holders(home, text)) > 20
    looked = forget.preview_erase(match=text, home=home)

    done = forget.erase(match=text, home=home)

    assert holders(home, text) == []
    assert set(looked.places) <= set(done.places)
    assert {"documents", "history", "backups", "archive", "records", "hand-offs", "snapshots", "conversations",
            "memory files", "hooks", "quarantine", "logs"} == done.places.keys()  # fmt: skip
    assert (done.done, done.left, done.own, done.skipped) == (True, [], [], 0)
    snapshot._CACHE.clear()
    store_conversations._CACHE.clear()
    assert is_sound(home) == []
    assert forget.preview_erase(match=text, home=home).places == {}
    assert not (home / "erasing").exists()


def test_the_log_is_as_it_was_and_another_revision_can_be_undone(place):
    aether.add_working_memory_item(f"It is {PLAIN}.", "decision", 0.9, home=place)
    aether.add_working_memory_item("Another note.", "decision", 0.9, home=place)
    revision = snapshot.load(place).revision
    aether.add_working_memory_item(f"It is {PLAIN} again.", "decision", 0.9, home=place)
    before = aether.log(home=place)

    forget.erase(match=PLAIN, home=place)

    assert aether.log(home=place) == [
        line._replace(reason=line.reason.replace(PLAIN, "[ERASED]") + " (erased)")
        if PLAIN in line.reason
        else line
        for line in before
    ]
    assert [hit["content"] for hit in recall.search_memory("erased", home=place)] == [
        "It is [ERASED] again.", "It is [ERASED].",
    ]  # fmt: skip
    assert aether.undo(revision, home=place).revision == revision
    items = aether.show("memory", home=place)["working_memory"]["items"]
    assert [item["content"] for item in items] == ["It is [ERASED].", "It is [ERASED] again."]
    assert is_sound(place) == []


def test_a_revision_that_held_the_text_cannot_be_undone_and_says_so(place):
    aether.add_working_memory_item("Innocent note.", "decision", 0.9, home=place)
    innocent = snapshot.load(place).revision
    aether.add_working_memory_item(f"It is {PLAIN}.", "decision", 0.9, home=place)
    held = snapshot.load(place).revision

    forget.erase(match=PLAIN, home=place)

    for number in (None, held):
        with pytest.raises(Conflict, match=f"revision {held} was erased and cannot be undone") as caught:
            aether.undo(number, home=place)
        assert (f'undone by "aether undo {innocent}"' in caught.value.fix) is (number is None)
    assert homes_of.is_erased(held, home=place)
    assert not homes_of.is_erased(innocent, home=place)
    assert aether.undo(innocent, home=place).revision == innocent
    items = aether.show("memory", home=place)["working_memory"]["items"]
    assert [item["content"] for item in items] == ["It is [ERASED]."]


def test_a_forgetting_of_something_else_can_still_be_undone(place):
    other = str(aether.add_working_memory_item("Innocent note.", "decision", 0.9, home=place))
    forgotten = forget.forget([other], home=place).revision
    aether.add_working_memory_item(f"It is {PLAIN}.", "decision", 0.9, home=place)

    forget.erase(match=PLAIN, home=place)

    aether.undo(forgotten, home=place)
    assert recall.full([other], home=place)[0]["text"] == "Innocent note."


def test_two_texts_that_were_keys_stay_two_keys(place):
    for name in ("Quorvex", "Zyntral"):
        tool(place, "create", path=f"/memories/{name}.md", file_text=f"about {name}")
        forget.erase(match=name, home=place)

    assert aether.show("memories", home=place)["files"] == {
        "/memories/[ERASED].md": "about [ERASED]", "/memories/[ERASED-2].md": "about [ERASED-2]",
    }  # fmt: skip
    assert is_sound(place) == []


@pytest.mark.parametrize("written", ["Pa\u0308rvex-1", "P\u00e4rvex-1"])
def test_a_text_is_found_in_both_unicode_forms_and_in_any_nesting_of_json(place, written):
    aether.add_working_memory_item(f"It is {written}.", "decision", 0.9, home=place)
    (place / "telemetry.jsonl").write_text(json.dumps({"a": json.dumps({"b": written})}) + "\n")

    forget.erase(match="P\u00e4rvex-1", home=place)

    assert holders(place, written) == []
    assert json.loads(json.loads((place / "telemetry.jsonl").read_text())["a"]) == {"b": "[ERASED]"}


def test_where_only_erased_changes_are_left_undo_says_so(place):
    home = homes.fresh(place.parent / "new")
    item = aether.add_working_memory_item(f"It is {PLAIN}.", "decision", 0.9, home=home)
    forget.erase([str(item)], home=home)

    with pytest.raises(Conflict, match="revision 3 was erased and cannot be undone"):
        aether.undo(home=home)


def test_named_entries_are_erased_with_their_sentences_and_forgotten(place):
    said = "The vault opens with Quorvex at noon. Nobody else may know where it is."
    item = str(aether.add_working_memory_item(said, "decision", 0.9, home=place, metadata={"phase": 1}))
    compress(place, 1, "Nobody else may know where it is.")
    kept = str(aether.add_working_memory_item("Innocent note.", "decision", 0.9, home=place))

    done = forget.erase([item, "phase_1_x"], home=place)

    assert (done.done, done.forgotten) == (True, 2)
    for text in (said, "Nobody else may know where it is.", "The vault opens"):
        assert holders(place, text) == []
    assert recall.full([kept], home=place)[0]["text"] == "Innocent note."
    assert is_sound(place) == []
    again = forget.erase([item], home=place)
    assert (again.done, again.places, again.forgotten) == (False, {}, 0)


def test_forgotten_entries_can_still_be_erased_by_id(place):
    signal = emit_signal("FOCUS", context=f"look at {PLAIN}", home=place)["id"]
    forget.forget([signal], home=place)

    done = forget.erase([signal], home=place)

    assert (done.forgotten, holders(place, PLAIN)) == (0, [])


def test_texts_of_a_thing_that_are_too_short_or_words_of_files_stay(place):
    item = str(aether.add_working_memory_item("done", "decision", 0.9, home=place))

    done = forget.erase([item], home=place)

    assert (done.skipped, done.places, done.forgotten, done.done) == (1, {}, 1, True)


@rows(
    ("ids", "text", "what"),
    [
        ([], "", "expected either"), (["a"], PLAIN, "expected either"), ([], "  abcde ", "too short"),
        ([], "content", "the words of the file formats"), ([], '": "note', r"a file format \(documents\)"),
    ],
)  # fmt: skip
def test_a_text_that_would_damage_files_is_rejected_and_not_repeated(place, ids, text, what):
    aether.add_working_memory_item('note x": "note one', "decision", 0.9, home=place)
    aether.add_working_memory_item("note one", "decision", 0.9, home=place)
    before = homes.reopened(place).revision

    with pytest.raises(InvalidInput, match=what) as refused:
        forget.erase(ids, match=text, home=place)

    assert (not text.strip()) or text.strip() not in str(refused.value).replace(
        "the words of the file formats", ""
    )
    assert homes.reopened(place).revision == before


def test_an_erasure_that_breaks_a_schema_is_refused(place, monkeypatch):
    item = str(aether.add_working_memory_item("note one", "decision", 0.9, home=place))
    monkeypatch.setattr(forget.erasing, "is_reserved", lambda text: False)

    with pytest.raises(InvalidInput, match="part of the schema of"):
        forget.erase(match="working_memory", home=place)

    assert recall.full([item], home=place)


def test_an_unknown_id_is_named(place):
    with pytest.raises(NotFound, match="'wm_none' is in no layer"):
        forget.preview_erase(["wm_none"], home=place)


def test_files_of_a_person_are_kept_and_named(place):
    (place / "config.toml").write_text(f'[claude]\nprivate_paths = "{PLAIN}"\n')
    aether.add_working_memory_item(PLAIN, "decision", 0.9, home=place)

    done = forget.erase(match=PLAIN, home=place)

    assert (done.own, holders(place, PLAIN)) == (["config.toml"], ["config.toml"])
    again = forget.erase(match=PLAIN, home=place)
    assert (again.done, again.own) == (False, ["config.toml"])


def test_links_are_not_followed_and_other_files_are_looked_into(place, tmp_path):
    (tmp_path / "outside.txt").write_text(PLAIN)
    (place / "link.txt").symlink_to(tmp_path / "outside.txt")
    (place / "notes.txt").write_text(PLAIN)

    assert forget.erase(match=PLAIN, home=place).places == {"other": 1}
    assert ((tmp_path / "outside.txt").read_text(), (place / "notes.txt").read_text()) == (PLAIN, "[ERASED]")


def test_files_that_a_hook_removes_meanwhile_are_skipped(place, monkeypatch):
    (place / "notes.txt").write_text(PLAIN)
    monkeypatch.setattr(forget, "file_identity", lambda path: path.unlink(missing_ok=True) or (0, 0, 0))

    assert forget.preview_erase(match=PLAIN, home=place).places == {}


def test_a_directory_that_cannot_be_read_stops_it(place, monkeypatch):
    def walk(top, onerror):
        onerror(OSError(5, "broken"))
        return iter([])

    monkeypatch.setattr(forget.os, "walk", walk)
    with pytest.raises(OSError, match="broken"):
        forget.preview_erase(match=PLAIN, home=place)


def test_while_hooks_or_a_command_write_nothing_is_changed(place, monkeypatch):
    put(place, *turn(1))
    aether.add_working_memory_item(PLAIN, "decision", 0.9, home=place)
    homes.configure(place, "[store]\nlock_timeout_seconds = 0.05\n")

    for held in (place / "hooks", place):
        with locked(held), pytest.raises(LockTimeout):
            forget.erase(match=PLAIN, home=place)

    assert holders(place, PLAIN) != []
    assert forget.erase(match=PLAIN, home=place).done


def test_a_conversation_goes_on_under_its_new_name(place):
    name = f"about {PLAIN}"
    conversations.add_messages(name, conversation(PLAIN), home=place)

    forget.erase(match=PLAIN, home=place)

    assert conversations.conversation_ids(home=place) == ["about [ERASED]"]
    assert conversations.full_history("about [ERASED]", home=place) == conversation("[ERASED]")
    conversations.add_messages("about [ERASED]", [{"role": "user", "content": "more"}], home=place)
    assert len(conversations.full_history("about [ERASED]", home=place)) == len(conversation("")) + 1


def test_a_compaction_can_be_undone_and_a_handoff_ingested_afterwards(place):
    conversations.add_messages("work", conversation(PLAIN), home=place)
    aether.compact("work", conversations.context("work", home=place), window=4000, home=place)
    aether.add_working_memory_item(f"Use {PLAIN}.", "decision", 0.9, home=place, metadata={"phase": 1})
    aether.prepare_compression_data(1, home=place, manual=True)

    forget.erase(match=PLAIN, home=place)

    receipts = store_conversations.load(place, "work").compactions[0].receipt
    assert (receipts["sha256_before"], receipts["sha256_after"]) == ("", "")
    assert aether.undo_compaction("work", home=place).messages == conversation("[ERASED]")
    aether.trigger_phase_boundary_compression(1, {**stage.session(), "key_decisions": []}, home=place)
    assert aether.show("memory", home=place)["working_memory"]["items"] == []
    assert is_sound(place) == []


def test_an_entry_of_a_hook_that_waits_is_erased_as_well(place, monkeypatch):
    put(
        place,
        {"event": "UserPromptSubmit", "session": "s9", "at": "2026-03-01T10:15:00.000000Z", "prompt": PLAIN},
    )
    monkeypatch.setattr(forget, "drained", lambda home: home)

    assert "hooks" in forget.erase(match=PLAIN, home=place).places

    assert holders(place, PLAIN) == []
    assert aether.log(home=place)[0].operation == "capture"
    assert (spool.waiting(str(place)), hook_sessions.find_session(place, "s9") is not None) == ([], True)


def test_a_forgetting_is_undone_alone_although_another_followed(place):
    first = str(aether.add_working_memory_item("One thing.", "decision", 0.9, home=place))
    second = str(aether.add_working_memory_item("Two things.", "decision", 0.9, home=place))
    one = forget.forget([first], home=place)
    two = forget.forget([second], home=place)

    aether.undo(one.revision, home=place)
    assert [hit["id"] for hit in aether.search_memory("thing things", home=place)] == [first]

    aether.undo(two.revision, home=place)
    assert len(recall.full([first, second], home=place)) == 2


def test_notes_with_the_names_of_our_own_files_are_erased_too(place):
    """A note called `lock` is no lock; left as it was, it would be taken for an edit, and bring the text back."""
    paths = [
        f"/memories/{directory}{name}"
        for directory in ("", "data/", "conversations/talk/")
        for name in ("lock", "head", "index.sqlite", "plan.json", "seals.json", "history.jsonl")
    ]
    for path in paths:
        tool(place, "create", path=path, file_text=f"it is {PLAIN}")

    forget.erase(match=PLAIN, home=place)
    tool(place, "view", path="/memories")

    assert holders(place, PLAIN) == []
    files = aether.show("memories", home=place)["files"]
    assert files == dict.fromkeys(sorted(paths), "it is [ERASED]")
    assert is_sound(place) == []


def packings(data):
    """Every way in which a home may hold the bytes of a text in other bytes."""
    text = data.decode()
    return {
        "zst": store_files.packed(data),
        "gz": gzip.compress(data),
        "gz of gz": gzip.compress(gzip.compress(data[:9]) + gzip.compress(data[9:])),
        "zst of gz": store_files.packed(gzip.compress(data)),
        "utf-16": text.encode("utf-16"),
        "utf-16-be": text.encode("utf-16-be"),
        "utf-32": text.encode("utf-32"),
        "gz of utf-16": gzip.compress(text.encode("utf-16-le")),
    }


def test_text_in_utf_16_that_was_cut_off_is_named(home):
    (home / "quarantine").mkdir(exist_ok=True)
    (home / "quarantine" / "cut").write_bytes("The password is hunter2-secret.".encode("utf-16")[:-1])

    done = forget.erase(match="hunter2-secret", home=home)

    assert done.unread == ("quarantine/cut",)


def unpacked(data):
    """Return the text of a packing, worked out apart from the code under test."""
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return unpacked(zstandard.ZstdDecompressor().decompressobj().decompress(data))
    if data.startswith(b"\x1f\x8b"):
        return unpacked(gzip.decompress(data))
    return data.decode(json.detect_encoding(data))


@rows("directory", ["quarantine", "memories", "archive/2026/03", "archive/grace", ""])
def test_compressed_and_otherwise_encoded_copies_are_erased_in_every_directory(tmp_path, directory):
    home = homes_of.init(tmp_path / ".aether")
    (home / directory).mkdir(parents=True, exist_ok=True)
    held = json.dumps({"said": f"it is {PLAIN}"}).encode()
    for name, data in packings(held).items():
        (home / directory / f"{name}.conversation.full.x").write_bytes(data)
        assert PLAIN in unpacked(data)

    done = forget.erase(match=PLAIN, home=home)

    assert sum(done.places.values()) == len(packings(held))
    for name, data in packings(held).items():
        after = (home / directory / f"{name}.conversation.full.x").read_bytes()
        assert json.loads(unpacked(after)) == {"said": "it is [ERASED]"}, name
        assert after[:2] == data[:2] or name.startswith("utf"), name
    assert forget.preview_erase(match=PLAIN, home=home).places == {}


@rows("encode", [gzip.compress, lambda data: data.decode().encode("utf-16"), lambda data: data])
def test_the_original_of_an_archived_conversation_is_erased_as_it_was_given(tmp_path, encode):
    home = homes_of.init(tmp_path / ".aether")
    messages = [{"role": "user", "content": f"it is {PLAIN}"}, {"role": "assistant", "content": "Yes."}]
    given = tmp_path / "talk.json"
    given.write_bytes(encode(json.dumps({"id": "talk", "messages": messages}).encode()))
    assert aether.archive_files([given], home=home).failed == []

    forget.erase(match=PLAIN, home=home)

    restored = aether.restore_conversation("talk", output=tmp_path / "back.json", home=home)
    assert restored.exact
    assert (
        json.loads(unpacked((tmp_path / "back.json").read_bytes()))["messages"][0]["content"]
        == "it is [ERASED]"
    )
    assert is_sound(home) == []
    for name in archive_store.names(home):
        assert PLAIN not in json.dumps(archive_store.read(home, name))


def test_archive_files_of_another_program_and_those_in_quarantine_are_erased(place):
    messages = [{"role": "user", "content": f"it is {PLAIN}"}, {"role": "assistant", "content": "Yes."}]
    older = {"version": "1.0", "original_conversation": {"id": "old", "messages": messages, "title": "Old"}}
    path = place / "archive/2026/03/old.json.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(json.dumps(older).encode()))
    homes.configure(place, "[archive]\ncompress = true\n")
    aether.archive_conversations([{"id": "one", "messages": messages}], home=place)
    assert archive.delete_archived("one", home=place)

    forget.erase(match=PLAIN, home=place)

    for kept in (path, *(place / "quarantine").iterdir()):
        assert PLAIN not in unpacked(kept.read_bytes())


def test_what_a_damaged_compressed_file_holds_cannot_be_seen_and_is_named(place, capsys):
    (place / "quarantine").mkdir()
    (place / "quarantine/grace-x.corrupt-1").write_bytes(store_files.packed(PLAIN.encode() * 9)[:-3])
    aether.add_working_memory_item(f"It is {PLAIN}.", "decision", 0.9, home=place)

    done = forget.erase(match=PLAIN, home=place)

    assert (done.done, done.unread) == (True, ("quarantine/grace-x.corrupt-1",))
    assert holders(place, PLAIN) == []
    words = ["memory", "forget", "--match", PLAIN, "--erase", "--yes", "--home", str(place)]
    assert main(words) == 1
    assert "quarantine/grace-x.corrupt-1" in capsys.readouterr().err
    assert main([*words, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["erased"]["unread"] == ["quarantine/grace-x.corrupt-1"]
