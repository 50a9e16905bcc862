"""Defects 1, 7, 9, 10 and 16 of Mai's memory manager: each is one that this archive does not have."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta

import pytest

import aether
from aether.errors import AetherError, InvalidDocument, InvalidInput, UnsafePath
from aether.store import archive_store, conversations
from tests import homes
from tests.tables import rows

WORDS = [
    "Which database do we use, and why? I think about JSON.",
    "Decision: we use Postgres 16, because it stores JSON. I compared several others for a long time.",
]


def said(times=1):
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"{n}. {WORDS[n % 2]}"} for n in range(2 * times)
    ]


def talk(name="c", created_at="2026-03-01T10:15:00Z", times=1, **fields):
    return {"id": name, "title": "Database", "created_at": created_at, "messages": said(times), **fields}


def harsh(home):
    """Let nothing but its age decide what a conversation keeps."""
    names = ("important_threshold", "preserve_threshold", "summary_threshold")
    aether.update_retention_policy(dict.fromkeys(names, 1), home=home)


def on_disk(home):
    places = [*(home / "archive").rglob("*"), *(home / "conversations").rglob("*.jsonl")]
    return sum(one.stat().st_size for one in places if one.is_file() and "index" not in one.name)


def test_1_space_is_saved_and_the_number_is_measured(home):
    harsh(home)
    conversations.extend(home, "live", said(100), now=homes.NOW)
    aether.archive_conversations([talk(times=100)], home=home)
    before, now = on_disk(home), homes.NOW + timedelta(days=100)
    saved = 0
    for days in (0, 30):
        saved += aether.age_archive(now=now + timedelta(days=days), home=home).saved_bytes
        assert saved == before - on_disk(home)
    assert saved > 0.5 * before
    assert conversations.stored_conversations(home) == []
    assert aether.archive_stats(home=home)["bytes"] == on_disk(home)


def test_7_two_conversations_never_share_a_file(home):
    names = ["12345678-a", "12345678-b", "12345678/a", "12345678_a", "A", "a"]
    added = aether.archive_conversations([talk(name, own=name) for name in names], home=home).added
    assert len({one.path for one in added}) == len(names)
    for name in names:
        assert aether.restore_conversation(name, home=home).conversation == talk(name, own=name)


@rows(
    ("created", "since"),
    [
        ("2026-03-01T10:15:00", "2026-03-01T10:15:00.000000Z"),
        ("2026-03-01T10:15:00Z", "2026-03-01T10:15:00.000000Z"),
        ("2026-03-01T23:15:00+13:00", "2026-03-01T10:15:00.000000Z"),
        ("2024-02-29", "2024-02-29T00:00:00.000000Z"), ("", ""), (None, ""), ("yesterday", ""), (3.5e300, ""), ({}, ""),
    ],
)  # fmt: skip
def test_9_times_of_any_kind_are_read_and_garbage_drops_nothing(tmp_path, created, since):
    home = homes.fresh(tmp_path)
    done = aether.archive_conversations([talk(created_at=created), talk("other")], home=home)
    assert [one.id for one in done.added] == ["c", "other"]
    assert done.failed == []
    assert bool({"bad-time", "no-time"} & {one.code for one in done.findings}) == (not since)
    plan = aether.age_archive(now=homes.NOW + timedelta(days=3000), home=home).plan
    assert {one.id for one in plan} == ({"c", "other"} if since else {"other"})
    explained = aether.explain_retention("c", home=home)
    assert (explained["since"], explained["level"] == "full") == (since, not since)
    for naive in (homes.NOW.replace(tzinfo=None), homes.NOW):
        assert aether.explain_retention("other", now=naive, home=home)["days"] == 0


def test_10_versions_paths_and_damage_are_refused_with_advice(home):
    (added,) = aether.archive_conversations([talk()], home=home).added
    path = home / added.path
    whole = path.read_bytes()
    for version, advice in (("9.9", "Upgrade"), (2, "Upgrade"), ("1.0", "archive add")):
        path.write_text(json.dumps({**json.loads(whole), "version": version}))
        with pytest.raises(InvalidDocument, match=advice):
            aether.restore_conversation("c", home=home)
        assert [one.level for one in aether.verify_archive(home=home)][:1] == ["error"]
        assert path.exists()
    path.write_bytes(whole[:300])
    with pytest.raises(AetherError, match="doctor"):
        aether.restore_conversation("c", home=home)
    path.write_bytes(whole)
    with pytest.raises(InvalidInput):
        aether.list_archived(month="03", home=home)
    outside = home.parent / "outside.json"
    outside.write_text("{}")
    with pytest.raises(UnsafePath):
        archive_store.remove(home, "archive/../../outside.json")
    (home / "archive" / "notes").mkdir()
    (home / "archive" / "notes" / "x.json").write_text("{}")
    assert outside.exists()
    assert aether.verify_archive(home=home) == []


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_10_a_file_of_the_original_program_is_added(home, tmp_path, ending):
    given = talk(created_at="2025-07-01T12:00:00")
    data = json.dumps(
        {"version": "1.0", "original_conversation": given, "compressed_conversation": {}}
    ).encode()
    old = tmp_path / f"20250701_120000_Title_c{ending}"
    old.write_bytes(gzip.compress(data) if ending == ".json.gz" else data)

    (added,) = aether.archive_files([old], home=home).added

    assert aether.read_archived(added.id, home=home)["content"]["messages"] == given["messages"]


def test_16_every_level_is_reached_by_age_alone_and_the_oldest_come_first(home):
    harsh(home)
    for nth in range(3):
        conversations.extend(home, f"live{nth}", said(), now=homes.NOW + timedelta(minutes=nth))
    given = [talk(f"c{nth:04}", (homes.NOW + timedelta(minutes=nth)).isoformat()) for nth in range(12)]
    aether.archive_conversations(given, home=home)
    reached = []
    for days in (10, 31, 91, 366):
        now = homes.NOW + timedelta(days=days)
        done = aether.age_archive(now=now, home=home)
        assert done.failed == []
        assert [one.id for one in done.plan] == [
            one.id for one in sorted(done.plan, key=lambda one: (-one.days, one.id))
        ]
        again = aether.age_archive(now=now, home=home)
        assert (again.plan, again.done, again.failed) == ([], [], [])
        levels = {one.level for one in aether.list_archived(home=home)}
        reached.append((len(done.done), levels))
    assert reached == [(0, {"full"}), (15, {"key_points"}), (15, {"summary"}), (15, {"metadata"})]


def test_16_a_pass_reads_only_what_is_ready(home, monkeypatch):
    harsh(home)
    young = [talk(f"young{nth}", (homes.NOW + timedelta(days=60)).isoformat()) for nth in range(60)]
    aether.archive_conversations([*young, *(talk(f"old{nth}") for nth in range(3))], home=home)
    aether.age_archive(now=homes.NOW, home=home)  # which also decides by the policy, once
    read: list[str] = []
    real = archive_store.read_bytes
    monkeypatch.setattr(
        archive_store, "read_bytes", lambda place, name, *more: read.append(name) or real(place, name, *more)
    )

    done = aether.age_archive(now=homes.NOW + timedelta(days=61), home=home)

    assert len(done.done) == 3
    assert not any("young" in name for name in read)
