"""The archive of a home: adding, listing, searching, reading, bringing back, marking, checking, exporting."""

from __future__ import annotations

import gzip
import json
import os
import sys
from datetime import timedelta

import pytest
import zstandard

import aether
from aether import clock
from aether.api import archive, forget
from aether.api.admin import import_export
from aether.errors import Conflict, CorruptDocument, InvalidDocument, InvalidInput, NotFound, UnsafePath
from aether.schemas import check
from aether.store import archive_steps, archive_store, commit, conversations, doctor, history, search_index
from aether.store import files as store_files
from tests import homes
from tests.archive.talks import SECRET, WORDS, add, levels, said, talk
from tests.tables import rows

LATER = homes.NOW + timedelta(days=100)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are UTF-8 there")
def test_a_file_whose_name_is_not_utf_8_is_added(home, tmp_path):
    name = os.fsencode(tmp_path) + b"/talk\xff.json"
    with open(name, "w") as file:
        json.dump([{"role": "user", "content": "Never retry."}], file)

    [added] = aether.archive_files([os.fsdecode(name)], home=home).added

    assert added.id.startswith("talk?-")
    assert "Never retry." in json.dumps(aether.read_archived(added.id, home=home))


def test_a_dict_comes_back_as_it_was_given_at_every_age_within_its_grace(home):
    given = talk(
        session_id="s", model_history=["m"], metadata={"own": [1, {"x": None}]}, unknown={"kept": True}
    )
    before = json.dumps(given)
    add(home, given)
    assert json.dumps(given) == before

    for now in (homes.NOW, homes.NOW + timedelta(days=40), LATER):
        aether.age_archive(now=now, home=home)
        restored = aether.restore_conversation("given", home=home)
        assert (restored.exact, json.dumps(restored.conversation)) == (True, before)
    assert levels(home) == {"given": "summary"}


@pytest.mark.parametrize("damage", ["cut", "deleted"])
def test_a_lost_archive_file_is_made_again_from_the_file_that_was_added(home, tmp_path, damage):
    source, out = tmp_path / "chat.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(one) + " \n" for one in said(*WORDS)))
    (added,) = aether.archive_files([source], home=home).added
    path, before = home / added.path, aether.read_archived(added.id, home=home)
    path.write_bytes(path.read_bytes()[:200])
    if damage == "deleted":
        path.unlink()
    assert "error" in {finding.level for finding in aether.verify_archive(home=home)}

    lines = aether.repair(home=home)

    assert any(f"recovered conversation '{added.id}'" in line for line in lines)
    after = aether.read_archived(added.id, home=home)
    assert after["content"]["messages"] == before["content"]["messages"]
    assert aether.restore_conversation(added.id, output=out, home=home).exact
    assert out.read_bytes() == source.read_bytes()
    assert [finding.level for finding in aether.verify_archive(home=home)] == []


def test_a_file_comes_back_byte_for_byte_within_its_grace(home, tmp_path):
    source, out = tmp_path / "chat.jsonl", tmp_path / "out" / "chat.jsonl"
    source.write_text("".join(json.dumps(one) + " \n" for one in said(*WORDS)))
    os.utime(source, (1_700_000_000, 1_700_000_000))
    (added,) = aether.archive_files([source], home=home).added
    aether.age_archive(now=LATER + timedelta(days=2000), home=home)

    restored = aether.restore_conversation(added.id, output=out, home=home)

    assert restored.exact
    assert out.read_bytes() == source.read_bytes()
    with pytest.raises(Conflict, match="is there already"):
        aether.restore_conversation(added.id, output=out, home=home)


def test_a_batch_reports_each_failure_and_goes_on(home, tmp_path):
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "good.json").write_text(json.dumps(talk("from-file")))
    done = aether.archive_conversations([talk("a"), {"x": 1}, talk("b", created_at="no time"), 3], home=home)
    from_files = aether.archive_files(
        [tmp_path / "missing.json", tmp_path / "empty.json", tmp_path / "good.json"], home=home
    )

    assert [one.id for one in done.added] == ["a", "b"]
    assert [one.where for one in done.failed] == ["conversations[1]", "conversations[3]"]
    assert "bad-time" in {one.code for one in done.findings}
    assert [one.id for one in from_files.added] == ["from-file"]
    assert len(from_files.failed) == 2


def test_adding_again_changes_nothing_adds_what_was_said_since_and_refuses_another_one(home):
    (first,) = add(home, talk())
    assert add(home, talk()) == [first]
    grown = talk(words=[*WORDS, "One more word."])
    add(home, grown)
    assert aether.restore_conversation("given", home=home).conversation == grown

    other = aether.archive_conversations([talk(words=["Another one."])], home=home)
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    live = aether.archive_conversations([talk("live")], home=home)

    assert [one.code for one in (*other.failed, *live.failed)] == ["Conflict", "Conflict"]
    assert aether.restore_conversation("given", home=home).conversation == grown
    assert aether.verify_archive(home=home) == []


def test_lists_are_newest_first_by_month_and_level(home):
    add(
        home,
        talk("a", "2025-12-31T23:30:00-02:00"),
        talk("b", "2026-01-31"),
        talk("c", "2025-12-01T00:00:00"),
    )
    assert [one.id for one in aether.list_archived(home=home)] == ["b", "a", "c"]
    assert [one.id for one in aether.list_archived(month="2026-01", home=home)] == ["b", "a"]
    assert [one.path[:16] for one in aether.list_archived(month="2025-12", home=home)] == ["archive/2025/12/"]
    assert aether.list_archived(level="summary", home=home) == []
    assert len(aether.list_archived(limit=2, home=home)) == 2
    for wrong in ({"month": "2026"}, {"level": "half"}, {"limit": -1}):
        with pytest.raises(InvalidInput):
            aether.list_archived(**wrong, home=home)
    stats = aether.archive_stats(home=home)
    sizes = [(home / one.path).stat().st_size for one in aether.list_archived(home=home)]
    assert stats == {
        "conversations": 3, "bytes": sum(sizes), "levels": {"full": 3, "key_points": 0, "summary": 0, "metadata": 0},
    }  # fmt: skip


def test_archived_conversations_are_found_with_their_level_and_the_part_that_matches(home):
    others = [
        talk(f"c{n}", words=["Talk about the garden.", f"The tree number {n} is high."]) for n in range(5)
    ]
    add(home, talk(), *others)
    conversations.extend(home, "live", said(*WORDS[:2], f"The key is {SECRET}"), now=homes.NOW)
    aether.age_archive(now=homes.NOW + timedelta(days=40), home=home)

    hits = aether.search_archive("which port does postgres have", home=home)
    assert {one.id for one in hits[:2]} == {"given", "live"}
    assert {one.level for one in hits} == {"key_points"}
    assert "5432" in hits[0].passage
    found = aether.search_memory("postgres port", home=home)
    assert {(one["id"], one["layer"], one["type"], one["level"]) for one in found} == {
        ("given", "archive", "conversation", "key_points"), ("live", "archive", "conversation", "key_points"),
    }  # fmt: skip
    assert "5432" in found[0]["passage"]
    assert aether.recall("postgres port", home=home)[0]["level"] == "key_points"
    assert aether.search_memory("live", home=home)[0]["why"] == "id"
    assert SECRET not in json.dumps(
        [aether.search_memory("key", home=home), aether.search_archive("key", home=home)]
    )
    from aether.api.recall import full

    assert "5432" in full(["given"], home=home)[0]["text"]


def test_an_old_conversation_about_common_words_is_found_among_many_that_hold_them(home, monkeypatch):
    """The best are chosen among all that hold a word, not among the newest of them."""
    monkeypatch.setattr(archive_store, "_CANDIDATES", 1)
    answer = "The harbour crane. The crane of the harbour lifts; a harbour without a crane, a crane without a harbour."
    add(home, talk("old", words=[answer]))
    for nth in range(40):
        add(
            home,
            talk(
                f"talk {nth}",
                words=[f"The harbour was busy on day {nth}.", f"A crane stood idle, number {nth}."],
            ),
        )

    assert [hit.id for hit in aether.search_archive("harbour crane", limit=1, home=home)] == ["old"]
    assert [hit.id for hit in aether.search_archive("crane", limit=1, home=home)] == ["old"]


def test_a_file_without_times_ages_from_its_last_change_and_is_named_by_what_a_person_said(home, tmp_path):
    wrapped = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"
    file = tmp_path / "chat.json"
    file.write_text(
        json.dumps([{"role": "user", "content": each} for each in (wrapped, "Fix the parser.\nSoon.")])
    )
    os.utime(file, (written := (homes.NOW - timedelta(days=40)).timestamp(), written))

    [added] = aether.archive_files([file], home=home).added
    assert added.title == "Fix the parser."
    assert added.created_at == clock.stamp(homes.NOW - timedelta(days=40))
    assert aether.explain_retention(added.id, now=homes.NOW, home=home)["days"] == 40
    os.utime(file)
    again = aether.archive_files([file], home=home)
    assert again.failed == []
    assert [one.id for one in aether.list_archived(home=home)] == [added.id]

    add(home, {"id": "undated", "messages": said("Nothing says when this was.")})
    assert "No time of it is known" in aether.explain_retention("undated", now=homes.NOW, home=home)["reason"]


def test_the_index_can_be_lost_damaged_or_of_another_version(home):
    add(home, talk("a"), talk("b"))
    index = home / search_index.FILE
    wanted = aether.list_archived(home=home)
    for harm in (
        index.unlink,
        lambda: index.write_bytes(b"no database" * 1000),
        lambda: index.write_bytes(b""),
    ):
        harm()
        assert aether.list_archived(home=home) == wanted
        assert aether.verify_archive(home=home) == []


def test_words_leave_the_index_with_their_conversation_and_secrets_never_enter_it(home):
    add(home, talk("a", words=["The zebraquagga has api_key=sk-zz9plural7."]), talk("b"))
    index = home / search_index.FILE
    assert b"zebraquagga" in index.read_bytes()
    assert b"zz9plural7" not in index.read_bytes()

    archive_steps.set_aside(home, "a", now=homes.NOW)

    assert b"zebraquagga" not in index.read_bytes()
    assert aether.search_archive("zebraquagga", home=home) == []


def test_marks_keep_a_conversation_full_and_are_undone(home):
    add(home, talk())
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    assert aether.mark_conversation_important("given", home=home)
    assert aether.mark_conversation_important("live", home=home)
    assert not aether.mark_conversation_important("nobody", home=home)
    assert aether.age_archive(now=LATER, home=home).plan == []
    assert aether.explain_retention("given", now=LATER, home=home)["rule"] == "marked"
    assert aether.read_archived("given", home=home)["marked"]

    aether.undo(home=home)
    assert [one.id for one in aether.age_archive(now=LATER, home=home).plan] == ["live"]
    assert aether.mark_conversation_important("given", False, home=home)
    assert [one.id for one in aether.age_archive(now=LATER, home=home).plan] == ["given"]


def test_a_policy_is_checked_journaled_and_decides_from_then_on(home):
    add(home, talk())
    for wrong in ({"weights": {"message_count": 50}}, {"important_threshold": "abc"}, {"no": 1}):
        with pytest.raises(InvalidInput):
            aether.update_retention_policy(wrong, home=home)
    assert aether.age_archive(now=LATER, dry_run=True, home=home).plan[0].to_level == "summary"
    aether.update_retention_policy({"important_threshold": 0.2, "preserve_threshold": 0.2}, home=home)
    assert aether.age_archive(now=LATER, dry_run=True, home=home).plan == []
    assert aether.show("retention", home=home)["policy"] == {
        "important_threshold": 0.2,
        "preserve_threshold": 0.2,
    }
    aether.undo(home=home)
    assert len(aether.age_archive(now=LATER, home=home).plan) == 1
    assert [one["conversation_id"] for one in aether.retention_recommendations(home=home)] == ["given"]


def test_settings_decide_ages_grace_and_compression(home):
    homes.configure(home, '[archive]\nboundaries = "1, 2, 3"\ngrace_days = 0\ncompress = true\n')
    add(home, talk(words=[*WORDS, *WORDS]))
    assert aether.list_archived(home=home)[0].path.endswith(".json.zst")
    aether.age_archive(now=homes.NOW + timedelta(days=2), home=home)
    assert levels(home) == {"given": "summary"}
    assert aether.read_archived("given", home=home)["grace"] is None
    assert archive_store.grace_names(home) == []
    homes.configure(home, "[archive]\ncompress = false\n")
    assert aether.verify_archive(home=home) == []
    with pytest.raises(InvalidDocument):
        homes.configure(home, '[archive]\nboundaries = "3, 2, 1"\n') and aether.age_archive(home=home)


def test_forever_keeps_the_fuller_form(home):
    add(home, talk())
    aether.age_archive(now=LATER, forever=True, home=home)
    aether.update_retention_policy({"summary_threshold": 0.4}, home=home)
    aether.age_archive(now=LATER + timedelta(days=4000), home=home)
    assert levels(home) == {"given": "metadata"}
    assert aether.restore_conversation("given", home=home).conversation == talk()


def test_the_end_of_a_grace_is_planned_like_every_other_loss(home):
    add(home, talk())
    aether.age_archive(now=LATER, home=home)
    later = LATER + timedelta(days=60)

    (planned,) = aether.age_archive(now=later, dry_run=True, home=home).plan
    done = aether.age_archive(now=later, home=home)

    assert (planned.id, planned.rule, planned.from_level, planned.to_level) == (
        "given", "grace over", "full", "summary",
    )  # fmt: skip
    assert [one["rule"] for one in done.done] == ["grace over"]
    assert not aether.restore_conversation("given", home=home).exact
    assert aether.age_archive(now=later, home=home).plan == []


def test_a_mark_keeps_the_fuller_form_of_what_has_aged(home):
    add(home, talk())
    aether.age_archive(now=LATER, home=home)
    aether.mark_conversation_important("given", home=home)
    aether.age_archive(now=LATER + timedelta(days=60), home=home)

    assert aether.restore_conversation("given", home=home).conversation == talk()


def test_a_step_of_the_archive_is_not_undone_as_if_it_were_a_change_of_a_document(home):
    add(home, talk())
    aether.age_archive(now=LATER, home=home)
    revision = aether.log(home=home)[0].revision

    with pytest.raises(Conflict, match="it changed no document") as caught:
        aether.undo(revision, home=home)
    assert "aether archive restore" in caught.value.fix


def test_receipts_say_what_went_and_hold_no_text(home):
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    (receipt,) = aether.age_archive(now=LATER, home=home).done
    stored = [one for one in aether.export(home=home)["receipts"] if one.get("kind") == "archive"]
    assert {key: receipt[key] for key in ("from", "to", "grace_until")} == {
        "from": "full", "to": "summary", "grace_until": "2026-07-09T10:15:00.000000Z",
    }  # fmt: skip
    assert [{**one, "revision": 0, "nth": 0} for one in stored] == [{**receipt, "revision": 0, "nth": 0}]
    assert "Postgres" not in json.dumps(receipt)
    assert aether.read_archived("live", home=home)["steps"] == [receipt]


def test_an_archived_conversation_is_one_conversation(home):
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    aether.age_archive(now=LATER, home=home)
    with pytest.raises(Conflict, match="aether archive restore live"):
        conversations.extend(home, "live", said("More."), now=LATER)
    assert aether.examine(home=home) == []
    aether.restore_conversation("live", home=home)
    assert levels(home) == {}
    assert aether.examine(home=home) == []
    with pytest.raises(NotFound):
        aether.read_archived("live", home=home)


def _cut(path):
    path.write_bytes(path.read_bytes()[:-200])


def _change_title(path):
    path.write_bytes(path.read_bytes().replace(b'"title": "Database"', b'"title": "Another"'))


@pytest.mark.parametrize(
    ("harm", "code", "level"),
    [
        (_cut, "damaged-file", "full"), (_change_title, "damaged-file", "summary"),
        (lambda path: path.unlink(), "missing-conversation", "full"),
    ],
)  # fmt: skip
def test_a_damaged_or_lost_archive_file_is_found_and_repaired(home, harm, code, level):
    (added,) = add(home, talk())
    aether.age_archive(now=LATER, home=home)
    harm(home / added.path)
    assert code in {one.code for one in aether.examine(home=home)}

    assert aether.repair(home=home)

    assert [one for one in aether.examine(home=home) if one.level != "info"] == []
    assert levels(home) == {"given": level}
    assert aether.restore_conversation("given", home=home).exact


def test_a_lost_archive_file_of_a_live_conversation_brings_its_log_back(home):
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    log = conversations.path_of(home, "live").read_bytes()
    aether.age_archive(now=LATER, home=home)
    (home / aether.list_archived(home=home)[0].path).unlink()
    aether.repair(home=home)
    assert conversations.path_of(home, "live").read_bytes() == log
    assert [one for one in aether.examine(home=home) if one.level != "info"] == []


def test_a_damaged_grace_is_found_and_the_rest_stays(home):
    add(home, talk())
    aether.age_archive(now=LATER, home=home)
    (name,) = archive_store.grace_names(home)
    _cut(home / name) if (home / name).stat().st_size > 300 else (home / name).write_bytes(b"")
    assert [one.code for one in aether.verify_archive(home=home)] == ["damaged-grace"]
    aether.repair(home=home)
    assert [one for one in aether.examine(home=home) if one.level != "info"] == []
    assert not aether.restore_conversation("given", home=home).exact


def test_an_export_carries_the_archive_and_its_grace_without_secrets(home, tmp_path):
    conversations.extend(home, "live", said(*WORDS, f"The key is {SECRET}"), now=homes.NOW)
    source = tmp_path / "chat.json"
    source.write_text(json.dumps(said(*WORDS)))
    os.utime(source, (1_700_000_000, 1_700_000_000))
    add(home, talk(), talk("marked", metadata={"user_marked_important": True}))
    aether.archive_files([source], home=home)
    aether.age_archive(now=LATER, home=home)
    given = json.loads(json.dumps(aether.export(home=home)))
    assert SECRET not in json.dumps(given)
    other = homes.fresh(tmp_path / "other")

    import_export(given, home=other)

    assert levels(other) == levels(home)
    assert [one for one in aether.examine(home=other) if one.level != "info"] == []
    for name in levels(home):
        one, two = (aether.restore_conversation(name, home=place) for place in (home, other))
        assert two.exact == one.exact
        assert len(two.conversation["messages"]) == len(one.conversation["messages"])


def test_paths_stay_in_the_archive(home, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("archive/../../outside/x.json", "../outside/x", "data/memory.json", "/etc/passwd"):
        for act in (archive_store.read_bytes, archive_store.remove):
            with pytest.raises(UnsafePath):
                act(home, name)
    (home / "archive").symlink_to(outside)
    done = aether.archive_conversations([talk("../../x")], home=home)
    assert [one.code for one in done.failed] == ["UnsafePath"]
    assert list(outside.iterdir()) == []


def test_a_directory_of_conversations_without_a_home_has_no_archive(tmp_path):
    record = tmp_path / ".compact"
    (record / "archive" / "talk").mkdir(parents=True)  # where redacted copies are kept
    conversations.extend(record, "talk", said(*WORDS), now=homes.NOW)
    assert conversations.load(record, "other").texts == []
    assert [one.name for one in (record / "archive").iterdir()] == ["talk"]


def test_a_file_of_the_archive_fits_its_schema(home):
    add(home, talk())
    conversations.extend(home, "live", said(*WORDS), now=homes.NOW)
    for days in (0, 40, 100, 400):
        aether.age_archive(now=homes.NOW + timedelta(days=days), home=home)
        for one in aether.list_archived(home=home):
            assert check.findings("archived_conversation", aether.read_archived(one.id, home=home)) == []


PLANTED = "Quorvex-77-Blue"


def holders(home, text):
    """Return the files of the home that hold a text, in their bytes, compressed or not, or in their names."""
    found = []
    for path in sorted(home.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".zst":
            data = store_files.unpacked(data, where=path.name)
        if text.encode() in data + path.as_posix().encode():
            found.append(path.relative_to(home).as_posix())
    return found


@pytest.mark.parametrize("packed", [False, True])
def test_an_erased_text_is_in_no_file_of_the_archive_and_its_grace(home, tmp_path, packed):
    if packed:
        homes.configure(home, "[archive]\ncompress = true\n")
    source = tmp_path / "chat.json"
    source.write_text(json.dumps(talk("file", words=[f"The name is {PLANTED}.", *WORDS])))
    add(home, talk("dict", title=f"About {PLANTED}", words=[f"Its {PLANTED} is new.", *WORDS]), talk("clean"))
    aether.archive_files([source], home=home)
    conversations.extend(home, f"of {PLANTED}", said(*WORDS, f"We decided for {PLANTED}."), now=homes.NOW)
    aether.age_archive(now=LATER, home=home)
    assert len(holders(home, PLANTED)) > 5
    clean = aether.read_archived("clean", home=home)

    aether.fold(home=home)
    preview = forget.preview_erase(match=PLANTED, home=home)
    erased = forget.erase(match=PLANTED, home=home)

    assert erased.places == preview.places
    assert erased.places["archived conversations"] > 4
    assert holders(home, PLANTED) == []
    assert aether.verify_archive(home=home) == []
    assert [one for one in aether.examine(home=home) if one.level != "info"] == []
    assert aether.read_archived("clean", home=home) == clean
    assert levels(home) == dict.fromkeys(("clean", "dict", "file", "of [ERASED]"), "summary")
    for name in levels(home):
        assert aether.restore_conversation(name, home=home).exact
    restored = history.history(conversations.load(home, "of [ERASED]"))
    assert restored[-1]["content"] == "We decided for [ERASED]."
    receipts = [
        one for one in aether.export(home=home)["receipts"] if one.get("conversation") == "of [ERASED]"
    ]
    assert receipts[0]["sha256_before"] == ""


GIVEN = "archive/2026/03/20260301_101500_Database_given.json"
REMOVE = {"kind": "remove", "id": "given", "names": [GIVEN]}


def test_a_step_of_an_earlier_release_is_ended_and_its_files_are_in_quarantine(home):
    add(home, talk())
    (home / archive_store.STEP).write_text(json.dumps(REMOVE))

    with commit.write_lock(home):
        assert archive_steps.settle(home, now=LATER).startswith("completed the removal")
    assert levels(home) == {}
    assert len([*(home / "quarantine").iterdir()]) == 1


def test_a_removed_conversation_is_in_no_search(home):
    add(home, talk("a"), talk("b"))
    assert archive.delete_archived("a", home=home)
    add(home, talk("b", words=[*WORDS, "The harbour crane."]))

    assert [hit.id for hit in aether.search_archive("postgres", home=home)] == ["b"]
    assert [hit.id for hit in aether.search_archive("crane", home=home)] == ["b"]


def test_compressed_bytes_that_were_cut_or_extended_are_refused():
    packed = store_files.packed(b"body")
    assert store_files.unpacked(packed, where="x") == b"body"
    for data in (packed + b"y", packed[:-1], b"", b"body"):
        with pytest.raises(CorruptDocument):
            store_files.unpacked(data, where="x")


def test_what_unpacks_to_far_more_than_texts_do_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr(archive_store.regular, "DOCUMENT_BYTES", 1_000)
    plain = b'{"text": "%s"}' % (b"ants " * 100_000)

    with pytest.raises(CorruptDocument, match=r"at most [\d,]+ are read"):
        store_files.unpacked(zstandard.ZstdCompressor().compress(plain), where="x")
    with pytest.raises(CorruptDocument, match="it unpacks to more"):
        store_files.gunzipped(gzip.compress(plain), where="x")
    stored = store_files.packed(plain)
    assert store_files.unpacked(stored, where="x") == plain == stored


@rows("make", [lambda path: path.mkdir(), lambda path: path.symlink_to("/etc/hostname"), os.mkfifo])
def test_what_is_no_file_in_the_place_of_a_step_stops_nothing(tmp_path, make):
    home = homes.fresh(tmp_path)
    add(home, talk())
    make(home / archive_store.STEP)

    doctor.repair(home, now=LATER)

    assert not os.path.lexists(home / archive_store.STEP)
    assert levels(home) == {"given": "full"}


@rows(
    "file", ["../victim", "archive/victim", GIVEN.replace("given", "other"), "archive/grace/../victim.zst", 7]
)
def test_a_file_of_the_archive_names_no_other_as_its_fuller_form(tmp_path, file):
    """Ageing would remove that, and repairing take it for damaged."""
    home = homes.fresh(tmp_path)
    add(home, talk(), talk("other"))
    value = archive_store.read(home, GIVEN)
    grace = {"file": file, "level": "full", "sha256": "0" * 64, "bytes": 1, "until": ""}
    archive_store.write(home, GIVEN, value | {"grace": grace})

    with pytest.raises(CorruptDocument):
        archive_store.read(home, GIVEN)
    doctor.repair(home, now=LATER)

    assert levels(home) == {"other": "full"}


@pytest.mark.parametrize("lost", ["a row", "a file"])
def test_the_index_is_compared_with_the_files_at_the_first_look_after_the_machine_started(
    home, lost, monkeypatch
):
    add(home, talk(), talk(session_id="second", id="second"))
    before = {entry.id: entry for entry in aether.list_archived(home=home)}
    [first, *_] = before.values()
    if lost == "a file":
        (home / first.path).unlink()
    else:
        archive_store._changed(
            home, lambda db: db.execute("DELETE FROM conversation WHERE id = ?", (first.id,))
        )
    monkeypatch.setattr(search_index, "_start_of_machine", lambda: 77)

    found = {entry.id for entry in aether.list_archived(home=home)}

    assert found == (before.keys() if lost == "a row" else before.keys() - {first.id})


def test_a_check_resolves_each_directory_of_the_archive_once(home, monkeypatch):
    for number in range(4):
        add(home, talk(id=f"talk-{number}"))
    resolved = []
    real = archive_store.inside
    monkeypatch.setattr(archive_store, "inside", lambda home, name: resolved.append(name) or real(home, name))

    assert archive_steps.examine(home) == []
    assert len([name for name in resolved if name.startswith("archive/2")]) == 1
