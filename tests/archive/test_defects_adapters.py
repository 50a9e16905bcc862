"""The defects of the original memory manager, each a test of its adapters; its verify lines run under our names."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import aether
from aether.compat.archive_manager import (
    INFO,
    ArchivalManager,
    CompressionEngine,
    CompressionLevel,
    MemoryManager,
    RetentionPolicy,
)
from aether.errors import Conflict, CorruptDocument, InvalidDocument, InvalidInput, UnsafePath

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
DECISION = "We decided to keep the state as JSON, because people read it."
LAST = "In the end port 8080 stays closed, and the release is on 3 March."


class Clock:
    """A clock that stays until it is moved."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now

    def move(self, days):
        self.now += timedelta(days=days)


def said(number=24):
    """Return the texts of a talk about many modules, with a decision in its middle and a conclusion at its end."""
    found = [
        f"Module {nth} has {nth * 7} lines and reads the file conf/part{nth}.toml. Colleague {nth} wrote it in week {nth + 9}."
        for nth in range(number)
    ]
    found[number // 2] = DECISION
    return [*found, LAST]


def talk(id_="talk", *, at="2026-01-05T10:00:00Z", texts=None, role=("user", "assistant"), **fields):
    messages = [
        {"id": f"m{nth}", "role": role[nth % len(role)], "content": text, "timestamp": at}
        for nth, text in enumerate(said() if texts is None else texts)
    ]
    return {"id": id_, "title": "Modules", "created_at": at, "messages": messages, **fields}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def manager(clock):
    made = MemoryManager(":memory:", now=clock)
    made.initialize()
    yield made
    made.close()


def fill(manager, *conversations):
    done = manager.archival_manager.archive_conversations_batch(conversations, compress=False)
    assert done.failed == []
    return done


def level_of(manager, id_):
    return {one["id"]: one["compression_level"] for one in manager.archival_manager.list_archived()}[id_]


def whole_archive(manager):
    """Return all bytes below the archive of a manager, the index aside."""
    files = (manager.home / "archive").rglob("*")
    return {path: path.read_bytes() for path in files if path.is_file() and "index" not in path.name}


def test_the_verify_lines_of_the_original_run_without_a_model_a_download_or_weaker_tls(tmp_path):
    # 5. NLTK's setup turned certificate checks off for the whole process, and downloaded; transformers was loaded.
    lines = """
        import ssl, sys
        before = ssl.create_default_context, ssl._create_default_https_context
        from aether.compat.archive_manager import CompressionEngine; ce = CompressionEngine(); print('Compression engine created successfully')
        from aether import MemoryManager; mm = MemoryManager(':memory:'); print('Memory manager with archival created successfully')
        mm.initialize(); mm.create_conversation('c'); mm.add_message('m', 'c', 'user', 'Hello there.')
        ce.generate_summary(mm.get_conversation('c')); mm.trigger_automatic_compression(30); mm.close()
        print((ssl.create_default_context, ssl._create_default_https_context) == before)
        print(sorted({'transformers', 'torch', 'nltk', 'anthropic', 'openai'} & sys.modules.keys()))
    """
    code = "\n".join(line.strip() for line in lines.splitlines())

    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": ""},
    )  # fmt: skip

    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "Compression engine created successfully", "Memory manager with archival created successfully", "True", "[]",
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_summary_is_one_and_key_points_keep_the_order_and_the_end():
    # 3. and 4. Without a model both were the first 70 %, and the conclusions went.
    engine, conversation = CompressionEngine(), talk()
    whole = "\n".join(said())

    points = engine.extract_key_points(conversation)
    summary = engine.generate_summary(conversation)

    assert summary != points
    assert len(summary) <= 0.4 * len(whole)
    assert len(engine.generate_summary(conversation, 0.2)) <= 0.2 * len(whole)
    assert 0.5 * len(whole) <= len(points) <= 0.7 * len(whole)
    assert LAST in points
    assert LAST in summary
    assert DECISION in points
    at = [whole.index(line) for line in points.splitlines()]
    assert at == sorted(at)


def test_metrics_are_measured_of_each_conversation():
    # 6. The score of retention was a constant of the level, and quality grew with the number of full stops.
    engine = CompressionEngine()
    vague = talk(texts=["Well, that is how it goes with these. So it seems to me."] * 20)

    facts, none = (engine.compress(one, "summary").metrics for one in (talk(), vague))
    full, empty = engine.compress(talk(), "full").metrics, engine.compress(talk(texts=[]), "summary").metrics

    assert (full.compression_ratio, full.information_retention_score, full.quality_score) == (1.0, 1.0, 1.0)
    assert facts.information_retention_score < none.information_retention_score == 1.0
    assert empty.quality_score == 0.0
    assert facts.compression_ratio == facts.compressed_length / facts.original_length


def test_no_title_and_no_parent_directory_are_no_errors(tmp_path):
    # 8. null was a TypeError, a missing parent a FileNotFoundError.
    archive = ArchivalManager(tmp_path / "far" / "away" / "archive")

    with pytest.warns(UserWarning, match="compressed has no effect"):
        path = Path(
            archive.archive_conversation(talk(title=None), CompressionEngine().compress_by_age(talk()))
        )

    assert path.is_relative_to(archive.archive_directory / "2026" / "01")
    assert "Module-0-has-0-lines" in path.name  # its first line is its title
    assert archive.restore_conversation(path)["title"] is None
    assert "untitled" in archive.archive_conversation(talk("empty", title=None, texts=[]))
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == 1  # readable, and versioned


def test_garbage_drops_no_conversation_of_a_batch_and_is_named(tmp_path):
    # 9. A batch dropped it silently.
    engine, archive = CompressionEngine(), ArchivalManager(tmp_path / "archive")
    batch = [talk("good"), talk("odd", at="the day before yesterday"), "no conversation", talk("last")]

    compressed = engine.batch_compress_conversations(batch)
    stored = archive.archive_conversations(batch)

    assert [one.original_id for one in compressed] == ["good", "odd", "last"]
    assert [one["id"] for one in map(archive.restore_conversation, stored)] == ["good", "odd", "last"]
    assert len(compressed.failed) == 1
    assert any("no conversation" in one.message for one in stored.failed)
    assert any("the day before yesterday" in one.message for one in stored.failed)


def test_lists_refuse_a_month_without_a_year(tmp_path):
    # 10. It was ignored, and everything was listed.
    archive = ArchivalManager(tmp_path / "archive")
    archive.archive_conversations_batch([talk("one"), talk("two", at="2025-01-05T10:00:00Z")], compress=False)

    assert [one["id"] for one in archive.list_archived(2026, 1)] == ["one"]
    assert [one["id"] for one in archive.list_archived(2025)] == ["two"]
    assert len(archive.list_archived(include_content=True)[0]["content"]["messages"]) == 25
    for year, month in ((None, 1), (2026, 13), (2026, 0)):
        with pytest.raises(InvalidInput, match="month"):
            archive.list_archived(year, month)


def test_damaged_and_newer_files_are_named_and_paths_stay_inside(tmp_path):
    # 10. A newer version was restored, a damaged file was None, and any path was deleted.
    archive = ArchivalManager(tmp_path / "archive")
    path = Path(archive.archive_conversation(talk()))
    outside = tmp_path / "outside.json"
    outside.write_bytes(path.read_bytes())
    whole = path.read_bytes()

    for call in (archive.restore_conversation, archive.delete_archive):
        for escape in (outside, path.parent / ".." / ".." / ".." / ".." / "outside.json"):
            with pytest.raises(UnsafePath):
                call(escape)
    path.write_bytes(whole.replace(b'"version": 1', b'"version": 99', 1))
    with pytest.raises(InvalidDocument, match="99"):
        archive.restore_conversation(path)
    path.write_bytes(whole[:-40])
    with pytest.raises(CorruptDocument):
        archive.restore_conversation(path)
    path.write_bytes(whole)
    assert outside.exists()
    assert archive.delete_archive(path)
    assert not archive.delete_archive(path)
    assert archive.restore_conversation(path) is None
    assert archive.get_archive_stats()["total_archived_conversations"] == 0
    assert [one for one in aether.examine(home=archive.home) if one.level == "error"] == []


def test_nothing_is_shared_with_what_was_given(tmp_path):
    # 11. A full form was the caller's own object, and _archival_info stayed inside a conversation.
    engine, archive, given = (
        CompressionEngine(now=lambda: START),
        ArchivalManager(tmp_path / "archive"),
        talk(),
    )
    compressed = engine.compress_by_age(given)
    assert compressed.content == given
    engine.decompress(compressed)["messages"][0]["content"] = "changed"
    compressed.content["messages"][1]["content"] = "changed"
    assert given == talk()

    restored = archive.restore_conversation(archive.archive_conversation(given))
    info = restored[INFO]
    again = archive.restore_conversation(archive.archive_conversation(restored))

    assert info.keys() == {
        "archived_at",
        "archive_path",
        "compression_level",
        "compression_ratio",
        "version",
        "exact",
    }
    assert {key: value for key, value in again.items() if key != INFO} == given
    assert INFO not in json.dumps(json.loads(Path(info["archive_path"]).read_bytes()))


def test_a_mark_counts_only_where_somebody_set_it():
    # 12. Every conversation had 0.2 of it.
    policy = RetentionPolicy()
    plain, marked = talk(texts=["hi"]), talk(texts=["hi"], metadata={"user_marked_important": True})

    assert policy.calculate_importance_score(plain) < 0.2
    assert policy.should_retain_compressed(plain) == (True, "metadata")
    assert policy.should_retain_compressed(marked) == (False, "full")
    assert policy.should_retain_full(marked)
    assert policy.calculate_importance_score(talk(texts=[])) == 0.0
    for score, wanted in ((0.9, "full"), (0.45, "key_points"), (0.25, "summary"), (0.1, "metadata")):
        assert policy.should_retain_compressed(plain, score)[1] == wanted


def test_messages_keep_their_times_and_order(manager, clock):
    # 15. Each had the second of its insertion.
    manager.create_conversation("c", title="Times", created_at=START)
    for nth in range(6):
        manager.add_message(f"m{nth}", "c", ("user", "assistant")[nth % 2], f"Text {nth}.", timestamp=START + timedelta(microseconds=nth))  # fmt: skip

    assert [one["id"] for one in manager.get_recent_messages("c", 3)] == ["m5", "m4", "m3"]
    assert [one["id"] for one in manager.get_messages_by_role("c", "user")] == ["m0", "m2", "m4"]
    times = [one["timestamp"] for one in manager.get_conversation_messages("c")]
    assert times[0] == "2026-01-05T10:00:00.000000Z"
    assert all(one < later for one, later in pairwise(times))
    assert (
        manager.get_conversation_metadata(["c", "unknown"])["c"]["summary_stats"]["user_message_count"] == 3
    )
    assert manager.get_conversation_metadata(["c", "unknown"]).keys() == {"c"}
    for first, last in ((START, START), (date(2026, 1, 5), date(2026, 1, 5)), ("2026-01-05", "2026-01-05")):
        assert [one["id"] for one in manager.get_conversations_by_date_range(first, last)] == ["c"]
    assert manager.get_conversations_by_date_range("2026-01-06", "2026-01-07") == []


def test_a_manager_in_memory_has_its_tables_and_leaves_nothing(clock):
    # 15. Its tables were made by another connection.
    manager = MemoryManager(":memory:", now=clock)
    with pytest.raises(RuntimeError, match="not initialized"):
        manager.get_conversation("c")
    manager.initialize()
    place = manager.home

    manager.create_conversation("c")
    manager.add_message("m", "c", "user", "Hello.", token_count=2, importance_score=0.9, metadata={"a": 1})
    manager.update_conversation_metadata("c", {"kind": "greeting"})
    assert manager.update_importance_score("c", "m", 0.1)

    found = manager.get_conversation("c")
    assert found == {
        "id": "c", "title": "c", "created_at": "2026-01-05T10:00:00.000000Z", "updated_at": "2026-01-05T10:00:00.000000Z",
        "session_id": "c", "total_messages": 1, "total_tokens": 2, "context_window_size": 4096, "model_history": [],
        "metadata": {"kind": "greeting"},
        "messages": [{
            "id": "m", "conversation_id": "c", "role": "user", "content": "Hello.", "timestamp": "2026-01-05T10:00:00.000000Z",
            "token_count": 2, "importance_score": 0.1, "metadata": {"a": 1}, "embedding_id": None,
        }],
    }  # fmt: skip
    assert "messages" not in manager.get_conversation("c", include_messages=False)
    assert manager.get_recent_conversations(5)[0]["id"] == "c"
    assert manager.get_conversation("unknown") is None
    assert manager.get_database_stats()["total_messages"] == 1
    for role, score in (("robot", 0.5), ("user", 1.5)):
        with pytest.raises(InvalidInput):
            manager.add_message("n", "c", role, "Hello.", importance_score=score)
    assert manager.delete_conversation("c")
    assert not manager.delete_conversation("c")
    manager.close()
    assert not place.exists()


def test_a_conversation_of_a_manager_ages_and_is_live_again_exactly(manager, clock):
    manager.create_conversation("c", title="Ports", metadata={"team": "ants"}, created_at=START)
    for nth, text in enumerate(said(40)):
        manager.add_message(
            f"m{nth}", "c", "user", text, token_count=3, timestamp=START + timedelta(minutes=nth)
        )
    manager.update_importance_score("c", "m1", 0.9)
    before = manager.get_conversation("c")
    log = (manager.home / "conversations" / "c" / "history.jsonl").read_bytes()
    clock.move(100)

    done = manager.trigger_automatic_compression()
    faded = manager.get_conversation("c")

    assert (done["compressed_count"], done["archived_count"], done["errors"]) == (1, 1, [])
    assert (faded["title"], faded["compression_level"], faded["total_tokens"]) == ("Ports", "summary", 41 * 3)
    assert LAST in faded["summary"]
    assert not (manager.home / "conversations" / "c" / "history.jsonl").exists()
    with pytest.raises(Conflict, match="archived"):
        manager.add_message("late", "c", "user", "One more.")
    assert manager.restore_conversation("c") == before
    assert (manager.home / "conversations" / "c" / "history.jsonl").read_bytes() == log
    manager.add_message("late", "c", "user", "One more.")
    assert manager.trigger_automatic_compression()["total_processed"] == 0  # it was used today
    assert manager.restore_conversation("unknown") is None


def test_a_message_costs_the_same_however_long_the_conversation_is(manager):
    manager.create_conversation("c")
    path, sizes = manager.home / "conversations" / "c" / "history.jsonl", []
    for nth in range(60):
        manager.add_message(f"m{nth:02}", "c", "user", "The same text again.", timestamp=START)
        sizes.append(path.stat().st_size)

    added = [later - one for one, later in pairwise(sizes)]
    assert max(added) - min(added) <= 4  # the numbers of a record may have one digit more
    assert not (manager.home / "archive").exists()


def test_a_manager_of_a_path_is_continued_by_the_next_one(tmp_path, clock):
    for nth in range(2):
        manager = MemoryManager(tmp_path / "memory.db", now=clock)
        manager.initialize()
        manager.create_conversation(f"c{nth}")

    assert {one["id"] for one in manager.get_recent_conversations()} == {"c0", "c1"}
    (tmp_path / "old.db").write_bytes(b"SQLite format 3\0")
    with pytest.raises(InvalidInput, match="a home is a directory"):
        MemoryManager(tmp_path / "old.db").initialize()


def test_the_trigger_reaches_every_level_and_conversation_and_is_done_once(manager, clock):
    # 16. Key points were never reached, the oldest conversations never seen, and each run did all of it again.
    ages = {"new": 5, "month": 31, "quarter": 91, "year": 366}
    fill(manager, *(
        talk(name, at=(START - timedelta(days=days)).isoformat(), texts=["Well, so it goes."] * 4) for name, days in ages.items()
    ))  # fmt: skip

    first = manager.trigger_automatic_compression(30)
    again = manager.trigger_automatic_compression(30)

    assert {name: level_of(manager, name) for name in ages}["new"] == "full"
    levels = [level_of(manager, name) for name in ("month", "quarter", "year")]
    assert levels[0] == "key_points"
    assert "full" not in levels
    assert (first["compressed_count"], first["errors"], first["threshold_days"]) == (3, [], 30)
    assert (again["compressed_count"], again["total_space_saved_bytes"]) == (0, 0)


def test_a_threshold_spares_what_is_younger(manager, clock):
    fill(manager, talk("month", at="2025-12-01T00:00:00Z", texts=["hi"]), talk("year", at="2025-01-01T00:00:00Z", texts=["hi"]))  # fmt: skip

    done = manager.trigger_automatic_compression(90)

    assert (done["total_processed"], done["compressed_count"]) == (1, 1)
    assert (level_of(manager, "month"), level_of(manager, "year")) == ("full", "metadata")


def test_the_ratio_is_that_of_what_is_kept(manager, clock):
    # 17. It compared the database with itself and the archive: 0.95 whatever was done.
    fill(manager, talk(texts=said(60)))
    assert manager.get_archival_stats()["compression_ratio"] == 1.0
    clock.move(100)
    manager.trigger_automatic_compression()

    stats = manager.get_archival_stats()

    assert stats.keys() == {"archive", "retention", "database", "compression_ratio"}
    assert 0.1 < stats["compression_ratio"] <= 0.7
    assert stats["retention"]["total_conversations"] == stats["archive"]["total_archived_conversations"] == 1
    assert stats["archive"]["years_with_archives"] == [2026]


def test_a_conversation_is_compressed_archived_marked_and_restored(manager, clock):
    # 18. No test covered any of these.
    fill(manager, talk(), talk("marked"))
    assert manager.mark_conversation_important("marked")
    assert not manager.mark_conversation_important("unknown")
    assert manager.compress_conversation("unknown") is None
    clock.move(40)

    assert manager.compress_conversation("talk").compression_level is CompressionLevel.KEY_POINTS
    assert level_of(manager, "talk") == "full"  # asking changes nothing
    path = manager.archive_conversation("talk")
    assert manager.archive_conversation("unknown") is None

    assert (level_of(manager, "talk"), level_of(manager, "marked")) == ("key_points", "full")
    restored = manager.archival_manager.restore_conversation(path)
    assert restored.pop(INFO)["exact"]
    assert restored == talk()
    assert manager.retention_policy.get_retention_statistics()["important_marked"] == 1
