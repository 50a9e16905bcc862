"""Damage of a file at rest: it is detected or harmless, costs only what it hit, and is reported truthfully afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import aether
from aether.api import admin, conversations
from aether.errors import AetherError
from aether.store import archive_store, record_files, snapshot
from aether.store import conversations as store_conversations
from aether.store.commit import fold_home
from tests import effort, homes
from tests.api.test_erase import compress, conversation
from tests.api.test_memory_tool import tool

DAMAGES = ("flip", "truncate", "zero", "delete")
ANSWER = {"role": "user", "content": "And now?"}
# Files without a record of their own: what they hold is elsewhere, is made again, or is a person's.
DERIVED = {
    "index.sqlite": "the index of archived items and conversations: made again from their files",
    "index.sqlite-journal": "the same",
    "archive/step.json": "a step of the archive that is being taken",
    "lock": "the holder of a lock, for an error message",
    "hook.log": "failures of hooks, for a person",
    "hook.log.1": "the same",
    "config.toml": "settings that a person writes; checked when they are read",
    "models.json": "the same",
    "hooks/": "the state of running sessions: after a loss a line is injected or noted twice. A waiting event has a checksum",
    "memories/": "the files of the document `memories`, in which a person may write",
    "data/memories/": "the same, and what was written there last",
    "data/backups/": "copies of documents; a damaged one is not used",
    "data/erasures": "the mark of the last erasure, which calls that run compare",
    "data/identity.json": "the name by which backups know the home: the next backup makes another, and asks once",
    "data/share.json": "the colony that the home is a replica of, by name: it joins again",
    "share/": "changes that wait for the server, and what was agreed with it, each with its checksum",
    "data/usage.json": "counts that providers reported: learned again",
    "compressions/": "copies of items that are in working memory or in the archive",
    "quarantine/": "damaged files, for a person",
    "erasing/": "an erasing that is being done",
}


def is_derived(name: str) -> bool:
    """Return whether the file `name` of a home is one of the table `DERIVED`."""
    last = name.rpartition("/")[2]
    return any(
        name == one or (one.endswith("/") and name.startswith(one)) or last == "lock" == one
        for one in DERIVED
    )


def full_home(directory):
    """Return a home with something in every kind of file, three months of history, and commits that are not folded."""
    home = homes.fresh(directory)
    for month in range(2):
        at = homes.later(month * 31 * 86_400)
        for n in range(4):
            homes.add(home, f"item-{month}-{n}", f"Note {n} of month {month}.", now=at)
        homes.remove(home, f"item-{month}-1", now=at)
        fold_home(home, now=at)
    aether.add_working_memory_item("Always use SQLite.", "decision", 0.9, home=home, metadata={"phase": 1})
    compress(home, 1, "SQLite")
    tool(home, "create", path="/memories/a.md", file_text="a note")
    aether.emit_signal("FOCUS", context="look at it", home=home)
    conversations.add_messages("talk", conversation("swordfish"), home=home)
    aether.compact("talk", conversations.context("talk", home=home), window=4000, home=home)
    conversations.add_messages("talk", [ANSWER], home=home)
    conversations.add_messages("other", [ANSWER, ANSWER], home=home)
    conversations.add_messages(
        "old", [ANSWER, {"role": "assistant", "content": "Decision: we use SQLite."}], home=home
    )
    given = {"id": "given", "created_at": "2020-01-01", "messages": [ANSWER] * 3}
    aether.archive_conversations([given, {**given, "id": "marked"}], home=home)
    aether.mark_conversation_important("marked", home=home)
    for name in ("talk", "other"):
        aether.mark_conversation_important(name, home=home)
    aether.age_archive(now=homes.later(86_400 * 9_000), home=home)
    aether.create_snapshot("before", home=home)
    aether.search_memory("SQLite", home=home)
    aether.add_working_memory_item("Waits to be compressed.", "decision", 0.9, home=home)
    aether.prepare_compression_data(2, home=home, manual=True)
    admin.fold(home=home)
    for n in range(4):
        homes.add(home, f"open-{n}", f"Open note {n}.")
    return home


@pytest.fixture(scope="module")
def original():
    """Return a full home that no test changes, in memory where the machine has such a place."""
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        yield full_home(Path(directory))


def damaged(path, kind, random):
    """Damage the file at `path`; return False if that leaves it as it was."""
    data = path.read_bytes()
    if kind == "delete":
        path.unlink()
        return True
    at = random.randrange(max(1, len(data)))
    if kind == "flip" and data:
        made = bytearray(data)
        made[at] ^= 1 << random.randrange(8)
    elif kind == "truncate":
        made = data[:at]
    else:
        made = bytes(len(data))
    path.write_bytes(made)
    return bytes(made) != data


def view(home):
    """Return everything that a home answers, as a new process sees it."""
    forget_caches()
    found = snapshot.load(home)
    talks = {stored.id: store_conversations.load(home, stored.id) for stored in store_conversations.stored_conversations(home)}  # fmt: skip
    return {
        "documents": found.documents,
        "records": {
            kind: [one for _, one in record_files.records(found, kind)] for kind in record_files.KINDS
        },
        "history": [(line.revision, line.operation, line.by) for line in aether.log(home=home, limit=0)],
        "talks": {name: (log.texts, log.context, log.compactions) for name, log in talks.items()},
        "archived": {
            value["id"]: (
                value["level"],
                value["content"],
                value["steps"],
                archive_store.read_grace(home, value["grace"]) if value["grace"] else b"",
            )
            for name in archive_store.names(home)
            if (value := _readable(home, name))
        },
        "snapshots": {path.name: path.read_bytes() for path in (home / "snapshots").glob("*.json")},
    }


def _readable(home, name):
    with suppress(AetherError):
        value = archive_store.read(home, name)
        if value["grace"]:
            archive_store.read_grace(home, value["grace"])
        return value
    return None


def forget_caches():
    snapshot._CACHE.clear()
    store_conversations._CACHE.clear()


def seen(home):
    forget_caches()
    return admin.examine(home=home)


def trial(original, place, seeds, *, going_on=1):
    """Damage one file for each seed, check every promise, and return the counts; each `going_on`th is worked in."""
    counts = Counter()
    before = view(original)
    names = [path.relative_to(original) for path in sorted(original.rglob("*")) if path.is_file()]
    for seed in seeds:
        random = Random(seed)
        name, kind = random.choice(names), random.choice(DAMAGES)
        home = place / str(seed) / ".aether"
        shutil.copytree(original, home)
        if not damaged(home / name, kind, random):
            continue
        counts["all"] += 1
        case = f"seed {seed}: {kind} {name}"
        problems = [one for one in seen(home) if one.level != "info"]
        if problems:
            counts["detected"] += 1
        elif is_derived(name.as_posix()):
            counts["derived"] += 1
        else:
            assert view(home) == before, case
            counts["harmless"] += 1
        if seed % going_on == 0:
            goes_on(home, place / f"{seed}-on", case)
        repaired = admin.repair(home=home)
        after = seen(home)
        # A document that still parses is taken for an edit by hand; one that breaks the schema waits for a person.
        assert {one.code for one in after if one.level != "info"} <= {"kept-edit"}, (case, after)
        now = view(home)
        whole = all(now[part] == before[part] for part in before if part != "history")
        if problems:
            counts["restored whole" if whole else "loss named"] += 1
        # A stamp that was hit makes of its file one that came from elsewhere.
        taken = {"edited by hand", "brought in"}
        edited = any(line.operation in taken for line in aether.log(home=home, limit=0))
        assert whole or edited or any(one.code == "known-loss" for one in after), (case, repaired)
        shutil.rmtree(place / str(seed))
    return counts


def goes_on(home, place, case):
    """Check that an agent goes on in a damaged home: everything that adds, and what it sends."""
    copy = place / ".aether"
    shutil.copytree(home, copy)
    forget_caches()
    said = conversation("swordfish")
    try:
        assert aether.preflight("talk", said, model="gpt-4o", home=copy).messages
        aether.compact("talk", conversations.context("talk", home=copy) or said, window=4000, home=copy)
        conversations.add_messages("talk", [ANSWER], home=copy)
        assert conversations.context("talk", home=copy)[-1] == ANSWER
        aether.undo_compaction("talk", home=copy)
        item = aether.add_working_memory_item("Goes on.", "decision", 0.9, home=copy)
        assert str(item) in [one["id"] for one in aether.list_working_memory_items(home=copy)]
        aether.undo(home=copy)
    except aether.AetherError as reason:  # which case it was
        raise AssertionError(f"{case}: {reason}") from reason
    shutil.rmtree(place)


@pytest.fixture
def place(original, unsynced):
    """Return a directory for copies."""
    directory = original.parent / "copies"
    yield directory
    shutil.rmtree(directory, ignore_errors=True)
    forget_caches()


@pytest.mark.parametrize("first", [0, 10, 20, 30])
def test_damage_of_any_file_is_detected_and_costs_only_what_it_hit(original, place, first):
    counts = trial(original, place, range(first, first + 10), going_on=5)

    assert counts["all"] >= 8


@pytest.mark.slow
def test_damage_of_any_file_hundreds_of_times(original, place):
    # All thousand take a quarter of an hour.
    counts = trial(original, place, range(1000 if effort.FULL_TRIALS else 150))

    print(dict(counts))
    assert counts["detected"] + counts["derived"] + counts["harmless"] == counts["all"]


def test_preflight_goes_on_in_a_damaged_home_and_says_so(original, place):
    home = place / "preflight" / ".aether"
    shutil.copytree(original, home)
    path = home / "conversations/talk/history.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\0" * 50 + lines[3][50:], *lines[4:]]))
    memory = home / "data/memory.json"
    memory.write_bytes(memory.read_bytes().replace(b'"LRU"', b"5", 1))
    forget_caches()
    said = conversation("swordfish")

    done = aether.preflight("talk", said, window=100_000, home=home)

    assert done.messages == said
    assert "damaged-line" in {finding.code for finding in done.findings}
