"""What the archive must not lose: other conversations of an id, files of a newer aether, a return, and a step that makes no sense."""

from __future__ import annotations

import gzip
import json
import os
from datetime import timedelta

import pytest

import aether
from aether.api import archive
from aether.api.admin import import_export
from aether.errors import Conflict
from aether.store import archive_store, conversations, doctor, history, search_index
from tests import homes
from tests.archive.talks import SECRET, WORDS, add, levels, said, talk
from tests.tables import rows

LATER = homes.NOW + timedelta(days=100)
OTHERS = [
    "Where do the bees sleep, and does anyone know how they find their way home in the evening?",
    "Decision: the hive stays under the lime tree at 7 Field Lane. I asked the neighbours about it for a while.",
    "Good. The notes are in garden/hive.md. Nothing else is open today. It is raining.",
    "And one more word.",
]


def files_of(home, *places):
    """Return the content of the files of the archive, and of what the list and the quarantine have."""
    found = [path for name in places or ("archive", "quarantine") for path in (home / name).rglob("*")]
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in found
        if path.is_file() and not path.name.startswith("index.sqlite")
    }


def test_what_another_process_adds_meanwhile_is_there_already(home, monkeypatch):
    """Eight commands that add one file at once all say that it is archived."""
    real, first = archive.archive_steps.add, [1]

    def raced(place, made, **how):
        if first:
            first.clear()
            real(place, made[:1], **how)
        return real(place, made, **how)

    monkeypatch.setattr(archive.archive_steps, "add", raced)
    done = aether.archive_conversations([talk(), talk("fresh")], home=home)

    assert ([one.id for one in done.added], done.failed) == ([talk()["id"], "fresh"], [])
    assert [*done.before] == [talk()["id"]]
    assert {one.id for one in aether.list_archived(home=home)} == {talk()["id"], "fresh"}


@pytest.mark.parametrize("days", [0, 100, 160])
def test_another_conversation_of_the_same_id_never_takes_the_place_of_an_archived_one(home, tmp_path, days):
    """At every level, also where no full form is left to compare with (160 days)."""
    source = tmp_path / "chat.json"
    source.write_text(json.dumps(talk("of a file")))
    add(home, talk())
    aether.archive_files([source], home=home)
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    for day in range(20, days + 1, 20):
        aether.age_archive(now=homes.NOW + timedelta(days=day), home=home)
    source.write_text(json.dumps(talk("of a file", words=OTHERS)))
    before = files_of(home)

    other = aether.archive_conversations([talk(words=OTHERS), talk("live", words=OTHERS)], home=home)
    from_file = aether.archive_files([source], home=home)

    assert [one.code for one in (*other.failed, *from_file.failed)] == ["Conflict"] * 3
    assert files_of(home) == before
    grown = talk(words=[*WORDS, "One more word."])
    add(home, grown)
    assert aether.restore_conversation("given", home=home).conversation == grown


def _of_version(path, version):
    """Write an archive file as another version would: sealed, with fields of its own."""
    value = json.loads(path.read_bytes()) | {"version": version, "new": {"field": 1}}
    path.write_bytes(archive_store.encoded(value))


def test_a_repair_leaves_what_a_newer_aether_archived(home):
    add(home, talk(), talk("ours"))
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    aether.age_archive(now=LATER, home=home)
    for row in archive_store.rows(home):
        if row.id != "ours":
            _of_version(home / row.name, 2)
    search_index.remove(home / search_index.FILE)
    before = files_of(home)

    assert {(one.code, one.level) for one in aether.examine(home=home)} == {("InvalidDocument", "error")}
    done = doctor.repair(home, now=LATER)

    assert done == ["left 2 archive files of a newer aether as they are, and all that may belong to them"]
    assert files_of(home) == before
    assert {(one.code, one.level) for one in aether.examine(home=home)} == {("InvalidDocument", "error")}
    again = aether.archive_conversations([talk(), talk("fresh")], home=home)
    assert [one.code for one in again.failed] == ["InvalidDocument"]
    assert [one.id for one in again.added] == ["fresh"]
    assert {name: data for name, data in files_of(home).items() if name in before} == before


def test_a_damaged_archive_file_is_not_written_over(home):
    (added,) = add(home, talk())
    path = home / added.path
    path.write_bytes(path.read_bytes()[:-200])
    search_index.remove(home / search_index.FILE)
    damaged = path.read_bytes()

    again = aether.archive_conversations([talk()], home=home)

    assert [one.code for one in again.failed] == ["CorruptDocument"]
    assert path.read_bytes() == damaged
    aether.repair(home=home)
    assert damaged in files_of(home, "quarantine").values()
    add(home, talk())


RECEIPT = {"id": "age_1", "rule": "restored"}
AGE = {
    "kind": "age",
    "id": "a",
    "receipt": "r",
    "new": "",
    "grace": "",
    "old": "",
    "old_grace": "",
    "live": True,
}
STEPS = [
    {}, [], 3, {"kind": []}, {"kind": "add"}, {"kind": "add", "new": [1], "grace": []}, {"kind": "add", "new": [""], "grace": [""]},
    {"kind": "add", "new": [], "grace": ["data/memory.json"]}, {"kind": "add", "new": [], "grace": ["archive/grace/../../data/memory.json"]},
    {"kind": "age"}, AGE, AGE | {"new": "archive/2026/03/x.json", "id": ""}, AGE | {"new": "../x"}, AGE | {"live": 1},
    {"kind": "restore", "id": "live", "old": "", "grace": "", "receipt": RECEIPT},
    {"kind": "restore", "id": "live", "old": "archive/2026/03/x.json", "grace": "archive/grace/x.zst", "receipt": {}},
    {"kind": "remove", "id": "", "names": []}, {"kind": "remove", "id": "x", "names": ["archive/grace"]},
    {"kind": "remove", "id": "x", "names": ["archive/grace/made.zst"]}, {"kind": "remove", "id": "x", "names": ["/etc/hostname"]},
    {"kind": "remove", "id": "x", "names": [None]}, {"kind": "remove", "id": "x", "names": "archive/2026/03/x.json"}, "text",
    {"kind": "remove", "id": 7, "names": ["archive/2026/03/x.json"]}, {"kind": "remove", "id": "x", "names": ["archive/victim"]}, {"kind": "remove", "id": "x", "names": ["archive/index.sqlite\0"]},
]  # fmt: skip


@rows("step", STEPS)
def test_a_step_that_no_aether_wrote_stops_nothing_and_removes_nothing(tmp_path, step):
    home = homes.fresh(tmp_path)
    add(home, talk())
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    (home / "archive" / "grace" / "made.zst").mkdir(parents=True)
    memory, before = (home / "data" / "memory.json").read_bytes(), files_of(home)
    path = home / archive_store.STEP
    acts = [
        lambda: aether.restore_conversation("given", home=home), lambda: aether.age_archive(now=homes.NOW, home=home),
        lambda: doctor.repair(home, now=LATER), lambda: add(home, talk()),
    ]  # fmt: skip

    for act in acts:
        path.write_text(json.dumps(step))
        act()
        assert not path.exists()

    assert (home / "data" / "memory.json").read_bytes() == memory
    kept = {name: data for name, data in files_of(home).items() if name.startswith("quarantine/")}
    assert files_of(home) == before | kept
    assert set(kept.values()) <= {json.dumps(step).encode()}
    assert aether.verify_archive(home=home) == []
    assert [one.id for one in conversations.stored_conversations(home)] == ["live"]


def test_an_interrupted_step_of_a_conversation_whose_log_was_damaged_is_repaired(home, monkeypatch):
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    with monkeypatch.context() as patch:
        patch.setattr(conversations, "retire", lambda *_args, **_named: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            aether.age_archive(now=LATER, home=home)
    path = conversations.path_of(home, "live")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"x" + lines[2][1:], *lines[3:]]))

    for _ in range(2):
        aether.repair(home=home)

    assert archive_store.open_step(home) is None
    assert [one.code for one in aether.examine(home=home) if one.level != "info"] == []
    left = history.history(conversations.load(home, "live"))
    assert [one["content"] for one in left] == [WORDS[0], WORDS[2]]


def test_a_return_counts_as_a_use(home, monkeypatch):
    """A restored conversation stays as long as one that was used on that day, also after a killed return."""
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    log = conversations.path_of(home, "live").read_bytes()
    aether.age_archive(now=LATER, home=home)
    back = LATER + timedelta(days=3)
    monkeypatch.setattr(archive.clock, "now", lambda: back)

    aether.restore_conversation("live", home=home)

    assert conversations.path_of(home, "live").read_bytes() == log
    for days, planned in ((0, []), (29, []), (30, ["live"])):
        now = back + timedelta(days=days)
        assert [one.id for one in aether.age_archive(now=now, dry_run=True, home=home).plan] == planned
    explained = aether.explain_retention("live", home=home)
    assert (explained["since"], explained["since_is"], explained["days"]) == (
        aether.clock.stamp(back), "last use", 0,
    )  # fmt: skip
    assert explained["next_at"] == aether.clock.stamp(back + timedelta(days=30))

    aether.age_archive(now=back + timedelta(days=31), home=home)
    assert aether.read_archived("live", home=home)["metrics"]["since"] == aether.clock.stamp(back)
    monkeypatch.setattr(archive_store, "take_out", lambda *_: 1 / 0)
    back = LATER + timedelta(days=50)
    with pytest.raises(ZeroDivisionError):
        aether.restore_conversation("live", home=home)
    monkeypatch.undo()
    aether.age_archive(now=back, home=home)
    assert aether.age_archive(now=back + timedelta(days=29), dry_run=True, home=home).plan == []
    conversations.extend(home, "live", said("More."), now=back + timedelta(days=5))
    assert aether.age_archive(now=back + timedelta(days=34), dry_run=True, home=home).plan == []


def test_what_rests_is_the_original_after_the_first_step_and_then_the_form_before(home):
    """As docs/archive.md says: byte for byte for the grace of the first step, and longer if a step falls into that time."""
    aether.update_retention_policy(dict.fromkeys(("important_threshold", "preserve_threshold"), 1), home=home)
    found = {}
    add(home, talk())
    for day in (31, 59, 62, 91, 120, 122):
        aether.age_archive(now=homes.NOW + timedelta(days=day), home=home)
        back = aether.restore_conversation("given", home=home)
        found[day] = (levels(home)["given"], back.level, back.exact)
    assert found == {
        31: ("key_points", "full", True), 59: ("key_points", "full", True), 62: ("key_points", "key_points", False),
        91: ("summary", "key_points", False), 120: ("summary", "key_points", False), 122: ("summary", "summary", False),
    }  # fmt: skip
    add(home, talk("soon"))
    for day in (8, 31):
        aether.age_archive(now=homes.NOW + timedelta(days=day), preset="research", home=home)
    aether.age_archive(now=homes.NOW + timedelta(days=60), preset="research", home=home)
    assert aether.restore_conversation("soon", home=home).exact


def test_a_writer_who_waited_while_a_conversation_was_archived_hears_that(home, monkeypatch):
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    real = conversations.lock_of

    def lock_of(place, path):
        """Archive the conversation first: its directory goes, with the lock that the writer waits for."""
        monkeypatch.setattr(conversations, "lock_of", real)
        aether.age_archive(now=LATER, home=home)
        return real(place, path)

    monkeypatch.setattr(conversations, "lock_of", lock_of)
    with pytest.raises(Conflict, match=r"was archived.*aether archive restore live"):
        conversations.extend(home, "live", said("More."), now=LATER)
    assert not (home / "conversations" / "live").exists()


def _lines(messages):
    return "".join(json.dumps(one) + "\n" for one in messages).encode()


def _whole(messages):
    return json.dumps({"id": "chat", "messages": messages}, indent=1)


FILES = {
    "lines": _lines,
    "gzip": lambda messages: gzip.compress(_lines(messages), mtime=1_700_000_000),
    "utf-16": lambda messages: _whole(messages).encode("utf-16"),
    "utf-32-be": lambda messages: _whole(messages).encode("utf-32-be"),
    "utf-16 and gzip": lambda messages: gzip.compress(_whole(messages).encode("utf-16-le")),
    "a line in latin-1": lambda messages: b'{"role": "user", "content": "caf\xe9"}\n' + _lines(messages),
}


@rows("written", FILES.values(), ids=str)
def test_an_export_carries_files_of_any_encoding_and_compression(tmp_path, written):
    home, other, hidden = (homes.fresh(tmp_path / name) for name in ("home", "other", "hidden"))
    for place, words in ((home, WORDS), (hidden, [*WORDS, f"The key is {SECRET}."])):
        source = place.parent / "chat.jsonl"
        source.write_bytes(written(said(*words)))
        aether.archive_files([source], home=place)
    (name,) = (one.id for one in aether.list_archived(home=home))

    import_export(json.loads(json.dumps(aether.export(home=home))), home=other)
    secret = aether.export(home=hidden)

    out = tmp_path / "out"
    assert aether.restore_conversation(name, output=out, home=other).exact
    assert out.read_bytes() == (home.parent / "chat.jsonl").read_bytes()
    (record,) = secret["archived"]
    assert SECRET not in json.dumps(record)
    assert "5432" in json.dumps(record["file"])
    assert set(record) <= {
        "file",
        "text",
    }  # a file that is not UTF-8 stays behind, rather than its secret going out
    last = homes.fresh(tmp_path / "last")
    import_export(secret, home=last)
    assert aether.verify_archive(home=last) == []


def test_a_deleted_file_is_missed_although_another_id_ends_in_the_same_name(tmp_path):
    home = homes.fresh(tmp_path)
    for name in ("user_1", "1"):
        conversations.extend(home, name, said(*WORDS), now=homes.NOW)
    aether.age_archive(now=LATER, home=home)
    (home / archive_store.find(home, "1").name).unlink()

    assert archive_store.ids_on_disk(home, {"user_1", "1"}) == {"user_1"}


def test_a_file_without_times_is_the_same_one_after_it_was_touched(tmp_path):
    home = homes.fresh(tmp_path)
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(said(*WORDS)))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (first,) = aether.archive_files([path], home=home).added
    os.utime(path, (1_750_000_000, 1_750_000_000))

    aether.archive_files([path], home=home)

    value = archive_store.read(home, first.path)
    assert value["created_at"].startswith("2023-11-14")
    assert value["steps"] == []


def test_an_archive_of_which_a_file_was_deleted_is_not_verified(home):
    aether.archive_conversations([talk()], home=home)
    archived = aether.list_archived(home=home)[0]
    (home / archived.path).unlink()

    findings = [one for one in aether.verify_archive(home=home) if one.level == "error"]

    assert [(one.code, one.where) for one in findings] == [("missing-conversation", archived.path)]


def test_doctor_opens_the_index_as_often_for_many_conversations_as_for_few(home, monkeypatch):
    opened = []
    real = search_index.connected
    monkeypatch.setattr(search_index, "connected", lambda *args: opened.append(1) or real(*args))
    counts = []
    for number in (2, 12):
        add(home, *(talk(f"{number}-{nth}") for nth in range(number)))
        opened.clear()
        assert [found for found in aether.examine(home=home) if found.level == "error"] == []
        counts.append(len(opened))

    assert counts[0] == counts[1] > 0
