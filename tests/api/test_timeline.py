"""The timeline of a home and the history of a file, with the archive, compressions and compactions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random

import pytest

import aether
from aether.api import hook_sessions, report
from aether.api.forget import erase
from aether.api.home import read
from aether.api.timeline import file_reminder
from aether.errors import AetherError, InvalidInput

SAID = [{"role": ("user", "assistant")[nth % 2], "content": f"Note {nth}. " * 60} for nth in range(60)]


def add(home, text, type="decision", **given):
    return str(aether.add_working_memory_item(text, type, 0.9, home=home, **given))


def test_archived_items_and_compressions_are_on_the_timeline(home):
    add(home, "Use one file, because backups are simple.", metadata={"timestamp": "2026-01-05T00:00:00Z"})
    aether.start_phase(1, home=home)
    aether.compress(1, home=home)

    found = aether.timeline(home=home)

    assert [one.kind for one in found] == ["decision", "phase", "compression"]
    assert found[0].text == "Use one file, because backups are simple."
    assert aether.timeline(until="2026-02-01", home=home) == found[:1]
    assert aether.timeline(limit=1, home=home) == found[-1:]


def test_a_compression_that_was_undone_is_neither_on_the_timeline_nor_in_what_was_saved(home):
    add(home, "Use one file, because backups are simple.")
    for _ in range(2):
        aether.compress(1, home=home)
        aether.undo(home=home)
        assert aether.timeline(types=["compression"], home=home) == []
        assert report.saved(read(home)) == []
        undo = aether.log(limit=1, home=home)[0].revision
    aether.undo(undo, home=home)

    assert len(aether.timeline(types=["compression"], home=home)) == 1


def test_a_compaction_is_on_the_timeline_with_its_conversation(home):
    aether.compact("talk", SAID, window=8000, home=home)

    (found,) = aether.timeline(conversation="talk", home=home)

    assert (found.kind, found.conversation) == ("compaction", "talk")
    assert "60 to" in found.text


def test_a_file_is_known_from_live_and_archived_entries(home):
    add(home, "Keep state in src/store.py only, because one writer is enough.")
    add(home, "Changed src/store.py", "code_change")
    aether.clear_working_memory(home=home)
    add(home, "`pytest` failed: src/store.py:3", "error")
    forgotten = add(home, "src/store.py has a secret door.")
    aether.forget(ids=[forgotten], home=home)

    found = aether.file_history("store.py", home=home)

    assert [len(part) for part in found[1:]] == [1, 1, 1, 0]
    assert "secret door" not in str(found)


def test_a_reminder_is_short_marked_as_memory_and_only_about_this_file(home):
    add(home, "Keep state in src/store.py only, because one writer is enough.")
    add(home, "Never open data_store.py twice.", "constraint")
    add(home, "Changed src/store.py", "code_change")

    text = file_reminder("/srv/shop/src/store.py", home=home)

    assert text.startswith('<aether-memory occasion="read"')
    assert "one writer is enough" in text
    assert "data_store" not in text
    assert file_reminder("/srv/shop/src/other.py", home=home) == ""
    assert file_reminder("", home=home) == ""


def test_each_file_that_a_session_reads_is_answered_once(home):
    """Also with what another file was answered with, and also if several are read at the same moment."""
    add(home, "Keep state in src/store.py and src/index.py only.")
    for nth in range(5):
        add(home, f"Rule {nth} of src/store.py is kept.", "decision")

    first, second = (
        file_reminder(f"/srv/{name}", home=home, session="s") for name in ("src/store.py", "src/index.py")
    )

    assert first.count("decision:") == 3
    assert "Keep state in" in second
    assert file_reminder("/srv/src/store.py", home=home, session="s") == ""
    assert (
        file_reminder("/srv/src/store.py", home=home, session="t").splitlines()[1:] == first.splitlines()[1:]
    )
    for nth in range(8):
        add(home, f"Use src/file{nth}.py once.")
    paths = [f"/srv/src/file{nth % 8}.py" for nth in range(32)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda path: file_reminder(path, home=home, session="u"), paths))
    assert sum(map(bool, found)) == 8
    assert len(hook_sessions.read_injected(home, "u")) == 16


def test_a_path_without_a_name_is_an_error(home):
    for path in ("", "/", "./"):
        with pytest.raises(InvalidInput, match="names no file"):
            aether.file_history(path, home=home)


def test_a_nul_in_a_name_breaks_neither_timeline_nor_search(home):
    about = {"title": "Ship\0it", "project": "/a\0b", "phase": 1}
    add(home, "Use one file.", caste="sco\0ut", metadata=about)
    aether.compress(1, home=home)

    assert [one.caste for one in aether.timeline(types=["decision"], home=home)] == ["sco\0ut"]
    assert len(aether.search_memory("file", layers=["archive"], caste="sco\0ut", home=home)) == 1


def test_an_archived_item_that_was_forgotten_or_erased_is_on_no_timeline(home):
    entry = add(home, "The password of the harbour is swordfish.")
    other = add(home, "Use one file.")
    aether.clear_working_memory(home=home)

    assert [one.id for one in aether.timeline(home=home)] == [entry, other]
    aether.forget(ids=[entry], home=home)
    assert [one.id for one in aether.timeline(home=home)] == [other]
    aether.undo(home=home)
    erase(match="swordfish", home=home)
    assert "swordfish" not in str(aether.timeline(home=home))


@pytest.mark.parametrize("seed", range(8))
def test_the_newest_moments_are_the_last_of_all(home, seed):
    """Whatever was archived, forgotten, undone and archived again, in whatever order of time, and at equal times."""
    rng = Random(seed)

    types = ["decision", "constraint", "code_change", "error", "lesson"]

    def time():
        return f"20{rng.choice((24, 26, 31))}-01-0{rng.randint(1, 5)}T00:00:00Z"

    def all_moments():
        return aether.timeline(home=home)

    steps = [
        lambda: add(
            home, f"Use one file, says {rng.random()}. Nobody reads the other.",
            rng.choice(types),
            metadata={
                "timestamp": time(),
                "conversation": rng.choice(["talk", "walk"]), "project": rng.choice(["/srv/shop", "/srv/bank"]),
            },
        ),
        lambda: aether.compress(1, home=home),
        lambda: aether.clear_working_memory(home=home),
        lambda: aether.undo(home=home),
        lambda: aether.forget(ids=[one.id for one in all_moments()[-8:] if one.id], home=home),
        lambda: aether.update_working_memory_item(
            rng.choice(all_moments()).id, {"type": rng.choice(types), "metadata": {"timestamp": time()}}, home=home
        ),
        lambda: aether.compact("talk", SAID, window=8000, home=home),
        lambda: aether.fold(home=home),
    ]  # fmt: skip
    for _ in range(80):
        with suppress(AetherError, IndexError):
            rng.choices(steps, weights=(16, 1, 4, 4, 1, 4, 1, 1))[0]()

    filters = [
        {}, {"types": ["error", "phase"]}, {"types": ["note"]}, {"since": "2026-01-02T00:00:00Z"},
        {"until": "2026-01-04T00:00:00Z"}, {"conversation": "TAL"}, {"project": "bank", "types": ["constraint"]},
    ]  # fmt: skip
    for keep in filters:
        whole = aether.timeline(home=home, **keep)
        for limit in (1, 2, 3, 5, 8, 13, 99):
            assert aether.timeline(limit=limit, home=home, **keep) == whole[-limit:], (keep, limit)
