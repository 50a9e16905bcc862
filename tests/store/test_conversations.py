"""Conversations: messages, compactions and undo in an append-only log."""

import errno
import os
import shutil
import stat

import pytest

from aether import regular
from aether.api import admin
from aether.api.backup import create_backup, restore_backup
from aether.api.forget import erase
from aether.errors import (
    Conflict,
    InvalidDocument,
    InvalidInput,
    LockTimeout,
    NotFound,
    StorageFailed,
    UnsafePath,
)
from aether.store import conversation_checks, conversation_list, conversations, doctor, files, log, seals
from aether.store import history as store_history
from aether.store.conversations import clear, extend, load, path_of, pop, record_compaction, undo
from aether.store.files import locked
from aether.store.history import (
    compaction,
    context,
    extended,
    header,
    history,
    next_step,
    texts,
)
from tests import children, homes
from tests.tables import rows

ID = "user:42/α"


def said(*words):
    return [{"role": "user", "content": word} for word in words]


def words(messages):
    return [message["content"] for message in messages]


def talk(home, *reported):
    return extend(home, ID, said(*reported), now=homes.NOW)


def compact(home, before, summary, kept):
    """Replace all but the last `kept` messages of `before` by one."""
    at = len(before) - kept
    after = [{"role": "assistant", "content": summary}, *before[at:]]
    places = [None, *range(at, len(before))]
    record_compaction(home, ID, before=before, after=after, places=places, receipt={"step": 0}, now=homes.NOW)
    return after


def live(home):
    return context(load(home, ID))


def test_messages_come_back_byte_for_byte(home):
    odd = {"z": 1, "a": [1.0, -0.0, 1e300, 10**40, True, None, "\ud800", "é", "\x00"], "": {"b": {}, "a": []}}

    extend(home, ID, [odd], now=homes.NOW)

    assert repr(live(home)) == repr([odd])


def test_what_is_given_out_may_be_changed(home):
    talk(home, "one")

    live(home)[0]["content"] = "changed"

    assert words(live(home)) == ["one"]


def test_appending_nothing_writes_nothing(home):
    talk(home, "one")
    before = path_of(home, ID).read_bytes()

    talk(home)

    assert path_of(home, ID).read_bytes() == before


def test_no_one_else_may_read_a_conversation(home):
    talk(home, "one")

    assert stat.S_IMODE(path_of(home, ID).stat().st_mode) == 0o600


def test_a_message_that_is_no_json_keeps_all_of_them_out(home):
    with pytest.raises(InvalidInput, match="messages\\[1\\]"):
        extend(home, ID, [*said("one"), {"at": float("nan")}], now=homes.NOW)

    assert live(home) == []


def test_a_home_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(NotFound, match="aether init"):
        talk(tmp_path / "gone", "one")

    assert not (tmp_path / "gone").exists()


def test_a_message_that_another_took_back_meanwhile_is_not_taken_twice(home, monkeypatch):
    talk(home, "one")
    stale = load(home, ID)
    pop(home, ID, now=homes.NOW)
    real, given = conversations.load, iter([stale])
    monkeypatch.setattr(conversations, "load", lambda *args: next(given, None) or real(*args))

    assert pop(home, ID, now=homes.NOW) is None


def test_a_whole_list_is_known_after_something_was_taken_back(home):
    compact(home, said("one", "two"), "S1", 1)
    talk(home, "three")
    pop(home, ID, now=homes.NOW)

    compact(home, said("one", "two", "four"), "S2", 1)

    assert words(history(load(home, ID))) == ["one", "two", "three", "four"]


def test_a_caller_who_keeps_giving_the_whole_list_stores_it_once(home):
    compact(home, said("one", "two", "three"), "S1", 1)

    compact(home, said("one", "two", "three", "four"), "S2", 1)

    assert words(history(load(home, ID))) == ["one", "two", "three", "four"]


def test_a_message_that_differs_only_in_type_or_order_is_another(home):
    extend(home, ID, [{"a": 1, "b": True}], now=homes.NOW)

    for other in ({"b": True, "a": 1}, {"a": 1.0, "b": True}, {"a": True, "b": 1}):
        record_compaction(home, ID, before=[other], after=[], places=[], receipt={}, now=homes.NOW)
        assert repr(undo(home, ID, now=homes.NOW).messages[:1]) == repr([other])


def test_a_message_that_was_shortened_is_a_new_one(home):
    talk(home, "a long one", "two")
    short = [*said("a …"), live(home)[1]]

    record_compaction(home, ID, before=live(home), after=short, places=[0, 1], receipt={}, now=homes.NOW)

    log = load(home, ID)
    assert context(log) == short
    assert log.derived == [0, 0, 1]
    assert words(history(log)) == ["a long one", "two"]


def test_steps_count_up_and_receipts_say_theirs(home):
    assert next_step(load(home, ID)) == 1
    after = compact(home, said("one", "two"), "S1", 1)
    undo(home, ID, now=homes.NOW)
    compact(home, said("one", "two", "three"), "S2", 1)

    log = load(home, ID)
    assert [found.receipt for found in log.compactions] == [{"step": 1}, {"step": 2}]
    assert next_step(log) == 3
    assert compaction(log, 1) == (said("one", "two"), after, {"step": 1})
    for step in (0, 3):
        with pytest.raises(NotFound, match=f"no compaction {step}; it has had 2"):
            compaction(log, step)


def test_a_receipt_that_is_no_json_stores_nothing(home):
    talk(home, "one")

    with pytest.raises(InvalidInput, match="receipt"):
        record_compaction(home, ID, before=live(home), after=[], places=[], receipt={"x": {1}}, now=homes.NOW)
    assert load(home, ID).compactions == []


def test_what_does_not_go_on_from_the_result_is_not_joined_and_said(home):
    compact(home, said("one", "two", "three"), "S1", 1)
    compact(home, said("elsewhere", "three"), "S2", 1)

    first, second = undo(home, ID, now=homes.NOW), undo(home, ID, now=homes.NOW)

    assert words(first.messages) == ["elsewhere", "three"]
    assert words(second.messages) == ["one", "two", "three"]
    assert [finding.code for finding in second.findings] == ["not-joined"]
    assert "2 messages" in second.findings[0].message
    assert words(history(load(home, ID))) == ["one", "two", "three", "elsewhere", "three"]


def test_a_result_of_which_something_was_taken_back_is_not_joined(home):
    compact(home, said("one", "two"), "S1", 1)
    pop(home, ID, now=homes.NOW)

    done = undo(home, ID, now=homes.NOW)

    assert words(done.messages) == ["one", "two"]
    assert len(done.findings) == 1


def test_what_others_said_while_it_was_compacted_stays(home):
    talk(home, "one", "two")
    read, before = load(home, ID), live(home)
    talk(home, "meanwhile")

    record_compaction(
        home, ID, before=before, after=before[1:], places=[1], receipt={}, now=homes.NOW, read=read
    )

    assert words(live(home)) == ["two", "meanwhile"]
    assert words(undo(home, ID, now=homes.NOW).messages) == ["one", "two", "meanwhile"]


@pytest.mark.parametrize(
    "meanwhile", [pop, clear, undo, lambda home, *_, now: compact(home, live(home), "S2", 1)]
)
def test_a_conversation_that_others_changed_meanwhile_is_not_compacted(home, meanwhile):
    compact(home, said("one", "two"), "S1", 1)
    read, before = load(home, ID), live(home)
    meanwhile(home, ID, now=homes.NOW)
    changed = live(home)

    with pytest.raises(Conflict, match="compact it again"):
        record_compaction(home, ID, before=before, after=[], places=[], receipt={}, now=homes.NOW, read=read)
    assert live(home) == changed


def test_a_list_is_numbered_as_it_will_be_stored(home):
    talk(home, "one", "two")

    found = store_history.numbered(load(home, ID), texts(said("one", "two", "three", "four")))

    assert found == [1, 2, 3, 4]
    assert store_history.numbered(load(home, ID), texts(said("two", "five"))) == [2, 3]


def test_nothing_can_be_undone_where_nothing_was_compacted(home):
    with pytest.raises(NotFound):
        undo(home, ID, now=homes.NOW)
    assert not path_of(home, ID).exists()


def test_conversations_are_listed_by_their_ids(home):
    assert conversations.stored_conversations(home) == []
    talk(home, "one")
    extend(home, "x" * 300, said("one"), now=homes.NOW)

    found = conversations.stored_conversations(home)

    assert [stored.id for stored in found] == [ID, "x" * 300]
    assert [stored.bytes for stored in found] == [stored.path.stat().st_size for stored in found]


def test_a_conversation_whose_first_line_is_damaged_is_listed_by_its_directory(home):
    extend(home, "talk", said("one"), now=homes.NOW)
    path = path_of(home, "talk")
    path.write_bytes(b"x" + path.read_bytes())

    assert [stored.id for stored in conversations.stored_conversations(home)] == ["talk"]
    assert [(finding.level, finding.code) for finding in doctor.examine(home)] == [("error", "damaged-line")]
    assert words(context(load(home, "talk"))) == ["one"]
    place = "conversations/talk/history.jsonl"
    assert doctor.repair(home, now=homes.NOW) == [f"wrote {place} again; lost: 1 line"]
    assert [finding.code for finding in doctor.examine(home)] == ["quarantine", "known-loss"]
    assert words(context(load(home, "talk"))) == ["one"]


@pytest.mark.parametrize("opening", [b"", b'{"conversation":"us'])
def test_a_conversation_whose_first_write_failed_can_start_again(home, opening):
    talk(home, "one")
    path_of(home, ID).write_bytes(opening)
    path_of(home, ID).with_name(log.HEAD).unlink()  # it is written after the log

    assert [stored.id for stored in conversations.stored_conversations(home)] == [ID] * bool(opening)
    doctor.repair(home, now=homes.NOW)
    assert doctor.examine(home) == []
    talk(home, "two")

    assert words(live(home)) == ["two"]


@pytest.mark.parametrize(("torn", "kept"), [(b'{"n":2', 0), (b'{"n":2}\n', 1), (b"\x00\n\x00", 1)])
def test_doctor_cuts_a_torn_end_off_and_keeps_what_may_have_been_a_message(home, torn, kept):
    talk(home, "one")
    path = path_of(home, ID)
    whole = path.read_bytes()
    path.write_bytes(whole + torn)

    assert [finding.code for finding in doctor.examine(home)] == ["torn-line"]
    assert "torn end of conversations/" in doctor.repair(home, now=homes.NOW)[0]

    assert path.read_bytes() == whole
    assert [file.read_bytes() for file in (home / "quarantine").glob("*")] == [torn] * kept


def test_a_directory_in_the_place_of_a_log_is_reported_and_hides_no_other(home):
    talk(home, "one")
    (home / "conversations" / "odd" / "history.jsonl").mkdir(parents=True)

    assert [stored.id for stored in conversations.stored_conversations(home)] == [ID]
    assert [(finding.code, finding.where) for finding in doctor.examine(home)] == [
        ("no-file", "conversations/odd/history.jsonl")
    ]
    assert doctor.repair(home, now=homes.NOW) == []


def half_written(home, monkeypatch, module):
    """Leave half of a second message in the log, which is whole when `module` comes to cut it off."""
    talk(home, "one")
    path, head = path_of(home, ID), path_of(home, ID).with_name(log.HEAD)
    before, known = path.read_bytes(), head.read_bytes()
    talk(home, "two")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(before) + 20])
    head.write_bytes(known)
    real = module.cut_end

    def finished(*given):
        monkeypatch.setattr(module, "cut_end", real)
        path.write_bytes(whole)
        return real(*given)

    monkeypatch.setattr(module, "cut_end", finished)
    conversations._CACHE.clear()


def test_a_line_that_was_still_being_written_is_not_cut_off(home, monkeypatch):
    """Without a lock that holds, a reader may see half of another writer's line."""
    half_written(home, monkeypatch, conversations)
    talk(home, "three")

    assert words(context(load(home, ID, whole=True))) == ["one", "two", "three"]


def test_doctor_cuts_no_line_off_that_was_still_being_written(home, monkeypatch):
    half_written(home, monkeypatch, conversation_checks)

    assert [line for line in doctor.repair(home, now=homes.NOW) if "torn" in line] == []
    assert words(context(load(home, ID, whole=True))) == ["one", "two"]


def test_the_next_message_takes_the_place_of_a_torn_end(home):
    talk(home, "one")
    with path_of(home, ID).open("ab") as file:
        file.write(b'{"n":2,"at"')

    talk(home, "two")

    assert words(live(home)) == ["one", "two"]
    assert doctor.examine(home) == []


def test_a_copied_directory_is_found(home):
    extend(home, "talk", said("one"), now=homes.NOW)
    copy = home / "conversations" / "copy"
    copy.mkdir()
    (copy / "history.jsonl").write_bytes(path_of(home, "talk").read_bytes())

    found = doctor.examine(home)

    assert [(finding.code, finding.where) for finding in found] == [
        ("misplaced", "conversations/copy/history.jsonl")
    ]


def test_a_conversation_has_a_lock_of_its_own(home):
    homes.configure(home, "[store]\nlock_timeout_seconds = 0.01\n")
    talk(home, "one")

    with locked(home):
        talk(home, "two")
    with locked(path_of(home, ID).parent):
        extend(home, "other", said("one"), now=homes.NOW)
        with pytest.raises(LockTimeout):
            talk(home, "three")
    assert words(live(home)) == ["one", "two"]


def test_two_writers_whose_lock_failed_both_get_their_turn(home, monkeypatch):
    talk(home, "one")
    real, others = conversations.append, iter([said("two")])

    def append(path, data, *, at):
        for other in others:
            (line,) = store_history.message_lines(2, store_history.texts(other), "2026")
            real(path, regular.seal(line), at=at)
        return real(path, data, at=at)

    monkeypatch.setattr(conversations, "append", append)
    talk(home, "three")

    assert words(live(home)) == ["one", "two", "three"]


def test_writers_that_meet_again_and_again_are_reported(home, monkeypatch):
    talk(home, "one")

    def append(path, data, *, at):
        raise log.ConcurrentWrite(path)

    monkeypatch.setattr(conversations, "append", append)

    with pytest.raises(Conflict, match="5 times"):
        talk(home, "two")


def test_a_full_disk_stores_nothing_and_says_so(home, monkeypatch):
    talk(home, "one")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "sync_data", full)
    with pytest.raises(StorageFailed, match="Nothing was stored"):
        talk(home, "two")
    monkeypatch.undo()

    assert words(live(home)) == ["one"]


def test_a_conversation_that_is_not_there_is_distinguished_from_one_that_was_not_compacted(home):
    with pytest.raises(NotFound, match=r"is not kept here.*aether compact show"):
        undo(home, "nobody", now=homes.NOW)
    talk(home, "one")
    with pytest.raises(NotFound, match="was not compacted yet"):
        undo(home, ID, now=homes.NOW)


@pytest.fixture
def talked(home):
    """Return a home whose conversation `talk` has three messages."""
    conversations.extend(home, "talk", said("one", "two", "three"), now=homes.NOW)
    return home


def rewritten(home, change, *, known=False):
    """Change the file, for a process that has read it before (`known`) or that has not."""
    path = path_of(home, "talk")
    path.write_bytes(change(path.read_bytes()))
    if not known:
        conversations._CACHE.clear()
    return path


def test_only_what_was_appended_is_read_again(talked, monkeypatch):
    load(talked, "talk")
    conversations.extend(talked, "talk", said("four"), now=homes.NOW)
    seen = []
    real = store_history.extended
    monkeypatch.setattr(conversations, "extended", lambda log, data: seen.append(data) or real(log, data))
    conversations._CACHE[path_of(talked, "talk")] = known = _short(talked)

    log = load(talked, "talk")

    assert len(log.texts) == 4
    assert len(seen[0]) == log.end - known.end < log.end


def _short(home):
    """The log as it was before the last line."""
    path = path_of(home, "talk")
    data = path.read_bytes()
    before = b"".join(data.splitlines(keepends=True)[:-1])
    return extended(store_history.empty(path, "talk")._replace(inode=path.stat().st_ino), before)


def test_another_log_in_the_same_place_is_read_again(talked):
    """A line that was read and then cut off, because it was never acknowledged, must not stay in the cache."""
    load(talked, "talk")
    line = store_history.message_line(3, b'{"role":"user","content":"other"}', "2026")
    rewritten(talked, lambda data: b"".join(data.splitlines(keepends=True)[:-1]) + log.seal(line), known=True)

    assert store_history.context(load(talked, "talk"))[-1]["content"] == "other"


@pytest.mark.parametrize(
    "torn", [b"{", b'{"n":4,"at":"2026","message":{}', b"\x00" * 40, b"{}\n", b"\xff\n{"]
)
def test_a_torn_end_is_not_there(talked, torn):
    rewritten(talked, lambda data: data + torn)

    log = load(talked, "talk")

    assert (len(log.texts), log.torn) == (3, torn)


def test_part_of_a_call_is_not_there(talked):
    whole = path_of(talked, "talk").read_bytes()
    conversations.extend(talked, "talk", said("four", "five", "six"), now=homes.NOW)
    lines = path_of(talked, "talk").read_bytes()[len(whole) :].splitlines(keepends=True)
    rewritten(talked, lambda data: whole + lines[0] + lines[1])

    log = load(talked, "talk")

    assert (len(log.texts), log.end) == (3, len(whole))


@pytest.mark.parametrize("line", [0, 1, 2])
def test_a_damaged_line_costs_only_its_message_and_is_named(talked, line):
    def damage(data):
        lines = data.splitlines(keepends=True)
        lines[line] = lines[line].replace(b"e", b"b", 1)
        return b"".join(lines)

    path = rewritten(talked, damage)

    left = [text for nth, text in enumerate(["one", "two", "three"], 1) if nth != line]
    assert words(context(load(talked, "talk"))) == left
    assert [finding.where for finding in doctor.examine(talked) if finding.level == "error"] == [
        path.relative_to(talked).as_posix()
    ]
    conversations.extend(talked, "talk", said("four"), now=homes.NOW)
    assert words(context(load(talked, "talk", whole=True))) == [*left, "four"]
    assert [finding.code for finding in doctor.examine(talked)] == ["quarantine", "known-loss"]


def test_a_missing_line_is_named(talked):
    conversations.extend(talked, "talk", said("four"), now=homes.NOW)
    rewritten(
        talked, lambda data: b"".join(x for n, x in enumerate(data.splitlines(keepends=True)) if n != 3)
    )

    assert words(context(load(talked, "talk"))) == ["one", "two", "four"]
    assert [finding.code for finding in doctor.examine(talked)] == ["damaged-line"]


def test_one_damaged_conversation_keeps_no_other_from_opening(talked):
    conversations.extend(talked, "other", said("one"), now=homes.NOW)
    rewritten(talked, lambda data: data.replace(b"one", b"eno"))

    assert store_history.context(load(talked, "other")) == said("one")


def test_two_ids_in_one_place_are_distinguished(talked):
    """On a disk that does not tell capitals from small letters, `Talk` and `talk` are one directory."""
    rewritten(talked, lambda data: data.replace(data.splitlines(keepends=True)[0], header("Talk")))

    with pytest.raises(Conflict, match="'Talk', not 'talk'"):
        load(talked, "talk")


def test_a_newer_format_is_left_alone(talked):
    newer = log.seal_json({"conversation": "talk", "format": 99})
    path = rewritten(talked, lambda data: newer)

    with pytest.raises(InvalidDocument, match="newer aether"):
        conversations.extend(talked, "talk", said("four"), now=homes.NOW)
    assert path.read_bytes() == newer


def test_what_cannot_be_read_is_said(talked):
    path = path_of(talked, "talk")
    path.unlink()
    path.mkdir()

    with pytest.raises(StorageFailed, match="Nothing was read"):
        load(talked, "talk")


def test_a_damage_that_came_after_reading_is_seen_by_whoever_reads_again(talked):
    load(talked, "talk")
    rewritten(talked, lambda data: data.replace(b"one", b"eno"), known=True)

    assert len(load(talked, "talk").texts) == 3
    assert load(talked, "talk", whole=True).damaged == 1


def test_no_id_leads_out_of_the_home(home, tmp_path):
    assert path_of(home, "../../evil").is_relative_to(home / "conversations")
    (home / "conversations").symlink_to(tmp_path)

    with pytest.raises(UnsafePath):
        path_of(home, "talk")
    with pytest.raises(InvalidInput):
        path_of(home, "")


@pytest.mark.usefixtures("lying_lock")
def test_writers_whose_lock_lies_lose_nothing_and_leave_a_log_that_can_be_read(home):
    acknowledged = children.acknowledged(
        home, 12, lambda name: extend(home, ID, said(name, f"{name}b"), now=homes.NOW)
    )

    stored = words(context(load(home, ID, whole=True)))
    assert len(acknowledged) > 12
    assert len(set(stored)) == len(stored)
    assert set(acknowledged) <= set(stored)


def test_a_conversation_that_was_brought_back_is_whole_with_its_head(home):
    talk(home, "one", "two")
    records = conversations.records_of(home, ID)
    data = path_of(home, ID).read_bytes()
    path_of(home, ID).unlink()

    assert conversations.bring_back(home, ID, records, now=homes.NOW)
    assert path_of(home, ID).read_bytes() == data
    path_of(home, ID).with_name(log.HEAD).unlink()
    path_of(home, ID).unlink()
    assert conversations.bring_back(home, ID, records, now=homes.NOW)

    assert doctor.examine(home) == []


def test_a_call_that_is_there_twice_counts_once_and_what_follows_is_whole(home):
    talk(home, "one")
    before = path_of(home, ID).read_bytes()
    talk(home, "two", "three")
    path = path_of(home, ID)
    call = path.read_bytes()[len(before) :]
    with path.open("ab") as file:
        file.write(call)
    conversations._CACHE.clear()
    talk(home, "four")

    assert words(context(load(home, ID, whole=True))) == ["one", "two", "three", "four"]
    assert doctor.examine(home) == []


def missing(home):
    return [(one.level, one.code, one.where) for one in doctor.examine(home) if one.code != "quarantine"]


def test_a_deleted_conversation_is_missed_and_named_as_lost_or_brought_back_from_a_snapshot(home):
    talk(home, "one", "two")
    conversations.extend(home, "other", said("three"), now=homes.NOW)
    assert missing(home) == []
    admin.create_snapshot("both", home=home)
    conversations.extend(home, "other", said("four"), now=homes.NOW)
    conversations.extend(home, "late", said("five"), now=homes.NOW)
    shutil.rmtree(home / "conversations")

    found = missing(home)
    done = doctor.repair(home, now=homes.NOW)

    assert found == [("error", "missing-conversation", f"conversations/{name}/history.jsonl") for name in (path_of(home, ID).parent.name, "other", "late")]  # fmt: skip
    assert [line.partition(" back")[0] for line in done[:2]] == [f"brought {seals.place(home, path_of(home, one))}" for one in (ID, "other")]  # fmt: skip
    assert "is lost: its directory was deleted, and no snapshot has it" in done[2]
    assert [one["content"] for one in context(load(home, "other"))] == ["three"]
    losses = [one.message for one in doctor.examine(home)]
    assert [text.count("was brought back from snapshots/") for text in losses] == [1, 1, 0]
    assert "nothing of it was left" in losses[2]
    assert {one.level for one in doctor.examine(home)} == {"info"}

    conversations.extend(home, "late", said("six"), now=homes.NOW)
    assert {one.level for one in doctor.examine(home)} == {"info"}
    shutil.rmtree(home / "conversations" / "late")
    assert ("error", "missing-conversation", "conversations/late/history.jsonl") in missing(home)


def test_a_damaged_or_deleted_list_is_noticed_and_made_again(home):
    for name in ("a", "b", "c"):
        conversations.extend(home, name, said("one"), now=homes.NOW)
    path = home / conversation_list.LIST
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    flipped = bytearray(data)
    flipped[20] ^= 4
    for damaged in (None, b"", bytes(len(data)), data[:-9], b"".join(lines[:2]), bytes(flipped), lines[0] + b"X" * 9 + lines[1][9:] + lines[2]):  # fmt: skip
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)

        assert {level for level, _, _ in missing(home)} == {"error"}, damaged
        doctor.repair(home, now=homes.NOW)

        assert missing(home) == [], damaged
        assert conversation_list.listed(home)[0].keys() == {"a", "b", "c"}


def test_a_conversation_of_an_earlier_release_joins_the_list_when_the_home_is_repaired(home):
    talk(home, "one")
    path = path_of(home, ID)
    _, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([store_history.header(ID), *rest]))
    (home / conversation_list.LIST).unlink()
    conversations.extend(home, ID, said("two"), now=homes.NOW)

    assert missing(home) == [("info", "unlisted", seals.place(home, path))]
    doctor.repair(home, now=homes.NOW)
    assert missing(home) == []


def test_the_list_costs_one_line_for_each_conversation_and_nothing_for_a_message(home):
    talk(home, "one")
    size = (home / conversation_list.LIST).stat().st_size
    talk(home, "two", "three")

    assert (home / conversation_list.LIST).stat().st_size == size < 200
    assert path_of(home, ID).read_bytes().count(b'"listed":true') == 1


def test_a_directory_without_documents_has_no_list(tmp_path):
    conversations.extend(tmp_path, ID, said("one"), now=homes.NOW)

    assert not (tmp_path / "data").exists()
    assert b"listed" not in path_of(tmp_path, ID).read_bytes()


def test_nobody_finds_a_new_conversation_in_the_list_alone(home, monkeypatch):
    """An erasing between the two would rename the one and not the other."""
    held = []
    cut = conversations.cut_end

    def observed(*given):
        with pytest.raises(LockTimeout):
            locked(home / "conversations/.list", timeout=0.01).__enter__()
        held.append("one" in [line.id for line in conversation_list.listed(home)[0].values()])
        return cut(*given)

    monkeypatch.setattr(conversations, "cut_end", observed)
    extend(home, "one", [{"role": "user", "content": "hello"}], now=homes.NOW)

    assert held == [True]
    with locked(home / "conversations/.list", timeout=0.01):
        pass


@rows("name", ["lock", "Lock", "list", "head", ".list", "history.jsonl"])
def test_a_conversation_may_have_the_name_of_any_file_of_ours(tmp_path, name):
    home = homes.fresh(tmp_path)

    for id_ in (name, "another", name, "a third"):
        conversations.extend(home, id_, [{"role": "user", "content": "Hello."}], now=homes.NOW)

    assert {one.id for one in conversations.stored_conversations(home)} == {name, "another", "a third"}
    assert len(store_history.history(conversations.load(home, name))) == 2
    assert doctor.examine(home) == []
    create_backup(str(tmp_path / "backups"), home=home)
    with (
        conversation_list.list_lock(home),
        pytest.raises(LockTimeout),
        locked(home / "conversations/.list", timeout=0),
    ):
        pass
    erase(match="Hello.", home=home)
    assert store_history.history(conversations.load(home, name))[0]["content"] == "[ERASED]"
    restored = restore_backup(str(tmp_path / "backups"), home=tmp_path / "new").home
    assert {one.id for one in conversations.stored_conversations(restored)} == {name, "another", "a third"}


def test_a_home_whose_list_had_its_lock_elsewhere_can_have_a_conversation_called_lock(home):
    """Earlier releases kept it in `conversations/lock`, where that conversation has its directory."""
    conversations.extend(home, "another", [{"role": "user", "content": "Hello."}], now=homes.NOW)
    (home / "conversations/lock").write_bytes(b"process 1: aether on vm\n")

    conversations.extend(home, "lock", [{"role": "user", "content": "Hello."}], now=homes.NOW)

    assert {one.id for one in conversations.stored_conversations(home)} == {"another", "lock"}


def test_a_home_that_was_blocked_by_a_conversation_called_lock_goes_on(home):
    """Earlier releases made its directory, and could not take the lock of the list any more."""
    (home / "conversations/lock").mkdir(parents=True)
    (home / "conversations/lock/lock").write_bytes(b"")
    assert [one for one in doctor.examine(home) if one.level != "info"] == []

    for name in ("another", "lock"):
        conversations.extend(home, name, [{"role": "user", "content": "Hello."}], now=homes.NOW)

    assert {one.id for one in conversations.stored_conversations(home)} == {"another", "lock"}


@rows(
    "line",
    [
        {"conversation": ["a"], "at": "t"},
        {"conversation": "a", "at": 7},
        {"conversation": "a", "at": "t", "source": []},
    ],
)
def test_a_line_of_the_list_that_says_nothing_is_passed_over(tmp_path, line):
    """Anybody can make one with a good checksum, and a clone may bring it."""
    home = homes.fresh(tmp_path)
    (home / conversation_list.LIST).write_bytes(log.seal_json(line | {"lost": True}))

    assert conversation_list.listed(home) == ({}, False)
    assert conversation_list.removed_ids(home) == set()
    assert [one for one in doctor.examine(home) if one.level != "info"] == []
