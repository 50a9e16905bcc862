"""Importing: transcripts become items once, however often they are imported."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

import aether
from aether.api import admin, briefing, compress, conversations, dedupe, importing
from aether.api.home import read
from aether.compat import ollm_import
from aether.errors import Conflict, InvalidInput, NotFound
from aether.memory.capture.notes import note_key, origin
from aether.messages.read import read_records
from aether.store import commit as commits
from aether.store import record_files
from tests import homes
from tests.api.calls import limits, memory, snapshot, whole
from tests.architects.extractive.handoffs import unfounded
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"

# Bytes: by default the smaller files, so that all of it stays under a minute.
DEFAULT_BYTES = 1_000_000


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def note(nth, **more):
    return {
        "content": f"Note number {nth} says that port {8000 + nth} is free.",
        "type": "observation",
        **more,
    }


def transcript(tmp_path, *entries, name="notes.jsonl"):
    path = tmp_path / name
    path.write_text(
        "".join(entry if isinstance(entry, str) else lines(entry) for entry in entries), encoding="utf-8"
    )
    return path


def load(home, *sources, **options):
    return aether.import_transcripts(sources, home=home, **options)


def contents(home):
    return [each["content"] for each in memory(home)["working_memory"]["items"]]


def test_what_says_no_time_has_that_of_the_last_change_of_its_file(home, tmp_path):
    def talk(name, changed, *said):
        path = transcript(
            tmp_path, *({"role": "user", "content": text, **more} for text, more in said), name=name
        )
        os.utime(path, (changed, changed))
        return path

    older = talk("older.jsonl", 1_700_000_000, ("Never use tabs.", {}), ("Never use semicolons.", {}))
    newer = talk("newer.jsonl", 1_710_000_000, ("Never use bare asserts.", {}))
    copied = talk("copied.jsonl", 1_710_000_000, ("Never use prints.", {}))
    later = talk("later.jsonl", 4_000_000_000, ("Never use globals.", {}))
    dated = {"timestamp": "2024-05-01T10:00:00Z"}
    partly = talk(
        "partly.jsonl", 1_720_000_000, ("Never use goto.", dated), ("Never use recursion here.", {})
    )

    done = load(home, newer, copied, older, partly, later)

    days = {
        each["content"]: each["metadata"]["timestamp"][:10]
        for each in memory(home)["working_memory"]["items"]
    }
    assert days.pop("Never use globals.") < "2096"  # no file was changed in the future
    assert days == {
        "Never use bare asserts.": "2024-03-09", "Never use prints.": "2024-03-09", "Never use tabs.": "2023-11-14",
        "Never use semicolons.": "2023-11-14", "Never use goto.": "2024-05-01",
        "Never use recursion here.": "2024-05-01",
    }  # fmt: skip
    assert [(each["file"], each["at"][:10]) for each in done.undated][:3] == [
        ("newer.jsonl", "2024-03-09"), ("copied.jsonl", "2024-03-09"), ("older.jsonl", "2023-11-14"),
    ]  # fmt: skip
    assert "partly.jsonl" not in [each["file"] for each in done.undated]
    brief = briefing.session_brief(home, "startup")
    # The newest conversation without an answer of an agent, then those before it.
    assert all(text in brief for text in ("prints", "asserts", "tabs"))


def days(home):
    """Return the day of each item by its text."""
    items = memory(home)["working_memory"]["items"]
    return {each["content"]: each["metadata"]["timestamp"][:10] for each in items}


def talks(tmp_path, *said, changed=1_720_000_000, name="talks.jsonl"):
    """Return a file with the conversations of which `said` has the ids and, by its text, the time of each entry."""
    lists = [
        {
            "session_id": session,
            "messages": [
                {"role": "user", "content": text, **({"timestamp": time} if time else {})}
                for text, time in entries.items()
            ],
        }
        for session, entries in said
    ]
    path = transcript(tmp_path, *lists, name=name)
    os.utime(path, (changed, changed))
    return path


def test_entries_before_the_first_time_of_their_conversation_have_that_time(home, tmp_path):
    dated = {"Never use tabs.": "", "Never use prints.": "", "Never use goto.": "2024-05-01T10:00:00Z"}
    path = talks(tmp_path, ("one", dated))

    assert load(home, path).undated == []

    assert days(home) == dict.fromkeys(dated, "2024-05-01")


def test_a_time_is_of_its_own_conversation_only(home, tmp_path):
    path = talks(
        tmp_path,
        ("one", {"Never use tabs.": "2024-05-01T10:00:00Z", "Never use prints.": ""}),
        ("two", {"Never use goto.": "", "Never use globals.": ""}),
        ("three", {"Never use asserts.": "", "Never use recursion.": "2023-01-01T10:00:00Z"}),
        ("one", {"Never use semicolons.": ""}),
    )

    done = load(home, path)

    assert days(home) == {
        "Never use tabs.": "2024-05-01", "Never use prints.": "2024-05-01", "Never use goto.": "2024-07-03",
        "Never use globals.": "2024-07-03", "Never use asserts.": "2023-01-01", "Never use recursion.": "2023-01-01",
        "Never use semicolons.": "2024-05-01",
    }  # fmt: skip
    assert [(each["file"], each["at"][:10]) for each in done.undated] == [("talks.jsonl", "2024-07-03")]


def test_lines_that_name_no_conversation_belong_to_that_of_the_one_before(home, tmp_path):
    line = {"uuid": "u", "sessionId": "one", "type": "user", "timestamp": "2024-05-01T10:00:00Z"}
    summary = {"type": "summary", "summary": "Tabs were removed.", "leafUuid": "u"}
    said = {**line, "message": {"role": "user", "content": "Never use tabs."}}

    done = load(home, transcript(tmp_path, summary, said, summary, name="claude.jsonl"))

    assert done.undated == []
    assert set(days(home).values()) == {"2024-05-01"}


def test_few_entries_wait_for_the_first_time_of_their_conversation(home, tmp_path, monkeypatch):
    monkeypatch.setattr(importing, "WAITING_CHARS", 40)
    said = {f"Never use tool number {number}.": "" for number in range(9)}
    path = talks(tmp_path, ("one", {**said, "Never use goto.": "2024-05-01T10:00:00Z"}))
    waiting = []
    monkeypatch.setattr(
        importing,
        "_all_at",
        lambda time, records, to=importing._all_at: waiting.append(len(records)) or to(time, records),
    )

    assert [each["at"][:10] for each in load(home, path).undated] == ["2024-07-03"]
    assert max(waiting) < 4
    assert days(home) == {**dict.fromkeys(said, "2024-07-03"), "Never use goto.": "2024-05-01"}


def test_the_time_that_an_archive_gave_a_file_is_none(home, tmp_path):
    said = ("one", {"Never use tabs.": ""})
    first = talks(tmp_path, said, changed=315_532_800, name="zipped.jsonl")

    done = load(home, first)

    assert done.undated == [{"file": "zipped.jsonl", "at": ""}]
    assert min(days(home).values()) > "2024"


def test_a_file_without_times_is_named_only_if_something_was_stored_from_it(home, tmp_path):
    path = talks(tmp_path, ("one", {"Never use tabs.": ""}))

    assert [each["file"] for each in load(home, path, dry_run=True).undated] == ["talks.jsonl"]
    assert [each["file"] for each in load(home, path).undated] == ["talks.jsonl"]
    assert load(home, path).undated == load(home, path, dry_run=True).undated == []


def test_items_of_a_transcript_are_stored(home, tmp_path):
    path = transcript(tmp_path, note(1, relevance_score=0.9), note(2))

    done = load(home, path)

    assert (done.files, done.records, done.items, done.known, done.bad_lines) == (1, 2, 2, 0, [])
    assert contents(home) == [note(1)["content"], note(2)["content"]]
    assert done.tokens == memory(home)["working_memory"]["current_tokens"]
    assert done.types == {"observation": 2}
    assert memory(home)["working_memory"]["items"][0]["metadata"]["relevance_score"] == 0.9
    whole(home)


def test_a_dry_run_stores_nothing_and_returns_the_same_counts(home, tmp_path):
    path = transcript(tmp_path, *map(note, range(5)))
    before = snapshot(home)

    tried = load(home, path, dry_run=True)

    assert snapshot(home) == before
    assert [each["content"] for each in tried.preview] == [note(nth)["content"] for nth in range(5)]
    done = load(home, path)
    assert tried.revisions == []
    assert tried._replace(preview=[], revisions=done.revisions) == done


def test_a_time_that_is_still_to_come_is_named_and_outranks_nothing(home, tmp_path):
    def said(text, time, session):
        message = {"role": "user", "content": text}
        return {"type": "user", "sessionId": session, "uuid": text, "timestamp": time, "message": message}

    ahead = transcript(tmp_path, said("Port it to Java.", "2099-01-01T00:00:00Z", "a"), name="ahead.jsonl")
    mixed = transcript(
        tmp_path,
        said("Begin.", "2026-01-02T00:00:00Z", "b"),
        said("Go on.", "2098-01-01T00:00:00Z", "b"),
        said("No Java.", "2026-01-03T00:00:00Z", "b"),
        name="mixed.jsonl",
    )
    done = load(home, ahead, mixed)
    times = {
        each["content"]: each["metadata"]["timestamp"] for each in memory(home)["working_memory"]["items"]
    }

    assert [(each["file"], each["at"][:4]) for each in done.future] == [
        ("ahead.jsonl", "2099"),
        ("mixed.jsonl", "2098"),
    ]
    assert times["Port it to Java."] < times["Begin."] == times["Go on."] < times["No Java."]


def test_a_dry_run_counts_what_was_said_again_once_as_an_import_does(home, tmp_path):
    turns = [{"role": role, "content": text} for role, text in (("user", "Check it."), ("assistant", "OK."))]
    path = transcript(tmp_path, *turns * 4, name="talk.jsonl")
    tried = load(home, path, dry_run=True)
    done = load(home, path)

    assert tried.items == done.items == 2
    assert (tried.tokens, tried.types) == (done.tokens, done.types)


def test_importing_again_adds_nothing_also_after_compression(home, tmp_path):
    path = transcript(tmp_path, *map(note, range(5)))
    load(home, path)

    assert load(home, path)[2:4] == (0, 5)
    aether.compress(1, home=home)
    aether.fold(home=home)
    again = load(home, path)

    assert (again.items, again.known) == (0, 5)
    assert contents(home) == []


def test_a_file_that_grew_adds_what_is_new(home, tmp_path):
    path = transcript(tmp_path, note(1))
    load(home, path)
    with path.open("a", encoding="utf-8") as file:
        file.write(lines(note(2)))

    assert load(home, path).items == 1
    assert contents(home) == [note(1)["content"], note(2)["content"]]


def test_bad_lines_are_counted_and_named_and_the_rest_is_stored(home, tmp_path):
    path = transcript(tmp_path, note(1), "{broken\n", note(2), "[1, \n", note(3), '{"torn": ')

    done = load(home, path)

    assert done.items == 3
    assert [each["line"] for each in done.bad_lines] == [2, 4, 6]
    assert all(each["file"] == "notes.jsonl" and each["reason"] for each in done.bad_lines)


def test_a_phase_may_be_forced(home, tmp_path):
    done = load(home, transcript(tmp_path, note(1)), phase=7)

    assert done.phases == [7]
    assert memory(home)["working_memory"]["items"][0]["metadata"]["phase"] == 7


def test_a_directory_and_a_stream_are_sources_too(home, tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    transcript(tmp_path / "in", note(1), name="a.jsonl")
    transcript(tmp_path / "in" / "deep", note(2), name="b.jsonl")
    (tmp_path / "in" / "c.png").write_bytes(b"\x89PNG")

    done = load(home, tmp_path / "in", io.BytesIO(lines(note(3)).encode()))

    assert done.files == 3
    assert len(contents(home)) == 3


def test_a_stranger_in_a_directory_keeps_nobody_out(home, tmp_path):
    (tmp_path / "in").mkdir()
    transcript(tmp_path / "in", note(1), name="b.jsonl")
    (tmp_path / "in" / "a.json").write_text('{"neither": "of them"}')

    done = load(home, tmp_path / "in")

    assert len(contents(home)) == 1
    assert "a.json" in [each["file"] for each in done.bad_lines]


def test_a_missing_file_or_an_unknown_format_is_an_error(home, tmp_path):
    (tmp_path / "empty").mkdir()
    before = snapshot(home)

    for source in (tmp_path / "none.jsonl", tmp_path / "empty"):
        with pytest.raises(NotFound):
            load(home, source)
    with pytest.raises(InvalidInput):
        load(home, transcript(tmp_path, note(1)), format="word")
    assert snapshot(home) == before


def test_a_batch_fits_into_a_small_working_memory(home, tmp_path):
    limits(home, capacity=300)

    done = load(home, transcript(tmp_path, *map(note, range(60))))

    assert done.items == 60
    assert len(done.evicted) > 0
    assert len(homes.ids(home)) + len(done.evicted) == 60
    whole(home)


@rows(
    "odd",
    [
        note(9, metadata={"z": float("nan")}),
        note(9, metadata={"z": json.loads("[" * 200 + "]" * 200)}),
        note(9, metadata={"z": json.loads("[" * 96 + "]" * 96)}),
        note(9, type="t" * 300),
        note(9, metadata={"protected": "yes"}),
        note(9, content="many words in a row " * 60),
    ],
    ids=["NaN", "deep", "deep below its document", "type", "protected", "large"],
)
def test_an_impossible_item_is_named_like_a_bad_line_and_the_others_are_stored(home, tmp_path, odd):
    limits(home, capacity=60)
    path = transcript(tmp_path, note(1), odd, note(2))

    done = load(home, path)

    assert contents(home) == [note(1)["content"], note(2)["content"]]
    [bad] = done.bad_lines
    assert (bad["file"], bad["line"]) == ("notes.jsonl", 2)
    assert bad["reason"]
    whole(home)


def test_notes_that_another_process_imports_meanwhile_are_stored_once(home, tmp_path, monkeypatch):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 4)
    path = transcript(tmp_path, *map(note, range(10)))
    others = []

    def race(records, items):
        if records == 6 and not others:
            others.append(load(home, path))
            aether.clear_working_memory(home=home)

    done = load(home, path, progress=race)

    assert (done.items, done.known) == (4, 6)
    assert others[0].items == 6
    removed = [each["item"]["content"] for each in aether.export(home=home)["items"]]
    assert sorted(removed + contents(home)) == [note(nth)["content"] for nth in range(10)]


def test_notes_imported_at_the_same_time_are_stored_once(home, tmp_path, monkeypatch):
    path = transcript(tmp_path, *map(note, range(3)))

    done = load(home, path, progress=lambda records, items: records == 3 and load(home, path))

    assert (done.items, done.known, done.revisions) == (0, 3, [])
    assert contents(home) == [note(nth)["content"] for nth in range(3)]


def test_words_imported_at_the_same_time_are_kept_once_and_read_once(home, tmp_path, monkeypatch):
    path = tmp_path / "talk.json"
    said = ["Print the labels of the parcels.", "Printed the labels; all 12 parcels have one."] * 2
    path.write_text(
        json.dumps(
            [
                {"role": role, "content": f"{words} ({nth})"}
                for nth, (role, words) in enumerate(zip(["user", "assistant"] * 2, said, strict=True))
            ]
        ),
        encoding="utf-8",
    )
    others, searched = [], calls_of(monkeypatch, record_files, "records")

    def race(records, items):
        if not others:
            others.append(None)
            others[0] = load(home, path)
            searched.clear()

    done = load(home, path, progress=race)

    assert (done.items, done.revisions) == (0, [])
    assert [kind for _, kind in searched].count("items") == 1
    assert len(others[0].revisions) == 1
    kept = [record["item"]["id"] for _, record in record_files.records(read(home), "items")]
    assert kept
    assert len(kept) == len({*kept})


@rows("which", [None, 0, 1, 2])
def test_the_log_names_the_import_and_one_undo_takes_all_of_it_back(tmp_path, monkeypatch, which):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 4)
    home = homes.fresh(tmp_path)
    homes.add(home, "before")
    path = transcript(tmp_path, *map(note, range(10)))

    done = load(home, path)
    homes.add(home, "after")

    reported = [(line.revision, line.operation, line.reason) for line in aether.log(home=home)[1:4]]
    sizes = (2, 4, 4)
    assert reported == [
        (revision, "import", f"notes.jsonl ({size} items)")
        for revision, size in zip(reversed(done.revisions), sizes, strict=True)
    ]
    if which is None:
        aether.undo(home=home)
    aether.undo(None if which is None else done.revisions[which], home=home)
    assert homes.ids(home) == (["before"] if which is None else ["before", "after"])
    with pytest.raises(Conflict, match="is undone already"):
        aether.undo(done.revisions[1], home=home)
    aether.undo(homes.reopened(home).revision, home=home)
    assert len(homes.ids(home)) == (11 if which is None else 12)
    aether.undo(done.revisions[-1], home=home)
    assert load(home, path).items == 10


def test_the_first_import_of_conversations_is_undone_alone(home, tmp_path):
    said = (
        '[{{"role": "user", "content": "{0}"}}, {{"role": "assistant", "content": "The {0} is done now."}}]'
    )
    for name in ("parser", "printer"):
        (tmp_path / f"{name}.json").write_text(said.format(f"Write a fast {name} for our logs"))
    first = load(home, tmp_path / "parser.json")
    load(home, tmp_path / "printer.json")

    aether.undo(first.revisions[-1], home=home)

    assert {hit["conversation"] for hit in aether.search_memory("write a fast one for our logs", home=home)}
    assert not aether.search_memory("parser", home=home, types=("history",))
    assert aether.search_memory("printer", home=home, types=("history",))


def test_the_undo_of_an_import_that_overflowed_working_memory_brings_back_what_it_evicted(
    home, tmp_path, monkeypatch
):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 40)
    path = transcript(tmp_path, *({**note(nth), "content": f"note {nth} " * 90} for nth in range(160)))
    homes.patch(home, {"op": "replace", "path": "/working_memory/max_capacity_tokens", "value": 8_000})
    homes.add(home, "before")

    done = load(home, path)
    assert done.evicted
    assert len(done.revisions) > 3
    aether.undo(home=home)

    assert homes.ids(home) == ["before"]
    assert [one.message for one in aether.examine(home=home)] == []


def test_stopping_in_the_middle_keeps_whole_batches_and_importing_again_completes_them(
    home, tmp_path, monkeypatch
):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 4)
    path = transcript(tmp_path, *map(note, range(10)))

    def stop(records, items):
        if records == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(home, path, progress=stop)
    assert len(contents(home)) == 4
    done = load(home, path)

    assert (done.items, done.known) == (6, 4)
    assert contents(home) == [note(nth)["content"] for nth in range(10)]
    whole(home)


def test_progress_hears_every_record(home, tmp_path):
    heard = []

    load(home, transcript(tmp_path, note(1), note(2)), progress=lambda records, items: heard.append(records))

    assert heard == [1, 2]


def test_an_invalid_time_does_not_exclude_a_note(home, tmp_path):
    load(home, transcript(tmp_path, note(1, metadata={"timestamp": "yesterday"})))

    assert len(contents(home)) == 1


def test_past_the_threshold_the_handoff_is_prepared(home, tmp_path):
    limits(home, capacity=600)

    load(home, transcript(tmp_path, *map(note, range(40))))

    assert list(home.glob("compressions/*.json"))


def calls_of(monkeypatch, module, name):
    """Return a list that grows with each call of a function."""
    calls, whole = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **more: calls.append(given) or whole(*given, **more))
    return calls


def test_the_handoff_of_many_batches_is_prepared_once(home, tmp_path, monkeypatch):
    prepared = calls_of(monkeypatch, compress, "prepare_current_phase")
    limits(home, capacity=600)

    done = load(home, transcript(tmp_path, *map(note, range(80))))

    assert len(done.revisions) > 2
    assert len(prepared) == 1


def test_notes_are_compared_with_those_of_the_home_when_it_has_changed_only(home, tmp_path, monkeypatch):
    compared = calls_of(monkeypatch, dedupe, "known_keys")
    limits(home, capacity=600)

    done = load(home, transcript(tmp_path, *map(note, range(80))))

    assert len(done.revisions) > 2
    assert len(compared) == 2  # once for all, and once under the lock


def test_an_import_folds_a_few_times_and_at_its_end_whatever_its_batches(home, tmp_path, monkeypatch):
    limits(home, capacity=600)
    homes.configure(home, "[store]\nfold_bytes = 6000\n")
    folds = calls_of(monkeypatch, commits, "_fold")

    done = load(home, transcript(tmp_path, *map(note, range(300))))

    journal = home / "data" / "journal.jsonl"
    bytes_written = sum(path.stat().st_size for path in (home / "data" / "journal").iterdir())
    assert len(done.revisions) > 10
    assert 1 <= len(folds) < bytes_written / 6000 / 4
    assert journal.stat().st_size <= 6000


def test_the_tokens_of_an_import_are_those_of_its_items(home, tmp_path):
    done = load(home, transcript(tmp_path, *map(note, range(20))))

    assert done.tokens == sum(each["token_count"] for each in memory(home)["working_memory"]["items"])
    assert done.tokens == load(home, transcript(tmp_path, *map(note, range(20, 40))), dry_run=True).tokens


def test_the_sample_is_imported_phase_by_phase(home):
    from aether.paths import resource

    done = load(home, resource("data/samples/colony.jsonl"))

    assert done.bad_lines == []
    assert len(done.phases) > 1
    assert done.items == len(contents(home))


def transcripts():
    """Return the real transcripts, smaller ones first."""
    found = [path for kind in ("claude_code", "codex", "trajectories") for path in (DATA / kind).glob("*")]
    return sorted(
        (path for path in found if path.suffix in importing.SUFFIXES), key=lambda path: path.stat().st_size
    )


def conversation(nth, *said):
    """Return the records of one conversation of Claude Code: a person and the agent in turn, and a command."""
    records = []
    for at, text in enumerate(said):
        role = "assistant" if at % 2 else "user"
        content = [{"type": "text", "text": text}] if at % 2 else text
        records.append(
            {"type": role, "uuid": f"u{nth}-{at}", "sessionId": f"c{nth}", "timestamp": f"2026-03-0{nth}T10:0{at}:00.000Z",
             "message": {"role": role, "content": content}}
        )  # fmt: skip
    return records


@pytest.mark.real_data
@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [path for path in transcripts() if path.stat().st_size <= DEFAULT_BYTES]
    or [pytest.param(None, marks=pytest.mark.skip("the real transcripts are not here"))],
    ids=lambda path: path.name if path else "none",
)
def test_a_real_transcript_becomes_items_and_then_a_session(home, path):
    try:
        done = load(home, path)
    except InvalidInput:
        # An index or a description beside the transcripts.
        assert path.suffix in (".json", ".md")
        return

    ids = homes.ids(home)
    assert len(ids) == done.items - len(done.evicted)
    assert load(home, path).items == 0
    if not ids:
        return
    compressed = aether.compress(max([1, *done.phases]), home=home)
    assert compressed.architect == "extractive"
    assert compressed.notes == []
    assert homes.ids(home) == []
    assert aether.verify_token_limit(home=home).current == 0
    archived = [each["item"] for each in aether.export(home=home)["items"]]
    archived = [item for item in archived if item["type"] != "history"]  # the words kept for search
    removed = {item["id"] for item in archived}
    assert removed == set(ids) | set(done.evicted)
    said = [item["content"] for item in archived]
    assert unfounded(compressed.ingested.session, said) == []
    if compressed.ingested.session["original_tokens"] > 1_000:  # less has the room of a page
        assert compressed.ingested.session["compression_ratio"] > 1.8
    assert load(home, path).items == 0
    aether.fold(home=home)
    whole(home)


def test_a_directory_is_imported_without_the_memory_and_the_history_in_it(home, tmp_path):
    for name in ("notes.md", ".aether/data/memory.md", ".git/HEAD.md"):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("We decided to use SQLite because it needs no server.\n", encoding="utf-8")

    assert aether.import_transcripts([tmp_path / "project"], home=home).files == 1


TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"


def claude_line(kind, content, uuid, **more):
    message = {"role": kind, "content": content, **more}
    return {
        "type": kind, "uuid": uuid, "sessionId": "s", "cwd": "/app", "message": message,
        "timestamp": "2026-03-01T10:00:00.000Z", "isSidechain": False,
    }  # fmt: skip


def used(name, uuid, tool, **arguments):
    block = {"type": "tool_use", "id": name, "name": tool, "input": arguments}
    return claude_line("assistant", [block], uuid, id=uuid)


def answered(name, uuid, text):
    return claude_line("user", [{"type": "tool_result", "tool_use_id": name, "content": text}], uuid)


REMEMBERED = [
    claude_line("user", f"Never deploy with token {TOKEN} on Fridays. <private>Call me NIGHTJAR.</private>", "u1"),
    used("t1", "a1", "Write", file_path="/app/secrets/a.txt", content="the vault is 4711-OMEGA"),
    answered("t1", "u2", "File created"),
    used("t2", "a2", "Bash", command=f"make deploy TOKEN={TOKEN}"),
    answered("t2", "u3", f"{'.' * 150} deployed with {TOKEN} to the {'long ' * 30} end"),
    used("t3", "a3", "Bash", command="cat secrets/a.txt && make test"),
    answered("t3", "u4", "12 passed, OMEGA in 0.1s"),
    claude_line("assistant", f"Decided: {'we say at length ' * 110} {TOKEN} {'and on ' * 200}", "a4", id="m4"),
]  # fmt: skip


def test_content_that_hooks_leave_out_is_not_imported(home, tmp_path):
    (home / "config.toml").write_text('[claude]\nprivate_paths = "secrets/**"\n')

    done = load(home, transcript(tmp_path, *REMEMBERED))

    said = "\n".join(contents(home))
    assert done.items >= 3
    assert "on Fridays" in said
    assert "make deploy TOKEN=<REDACTED>" in said
    for secret in (TOKEN[:10], "NIGHTJAR", "OMEGA", "<private"):
        assert not [
            path for path in home.rglob("*") if path.is_file() and secret in path.read_text(errors="replace")
        ]


def test_the_key_of_a_note_is_the_same_whether_something_in_it_was_redacted(home, tmp_path):
    path = transcript(tmp_path, *REMEMBERED)
    record = next(read_records(path))

    load(home, path)

    keys = {each["metadata"]["pointer"]["key"] for each in memory(home)["working_memory"]["items"]}
    assert TOKEN in record.text
    assert keys & {note_key(origin(record, ""), slot) for slot in ("said", "demand 0", "demand 1")}
    assert load(home, path).items == 0


def test_secrets_in_other_formats_and_in_metadata_are_redacted(home, tmp_path):
    chat = json.dumps(
        [{"role": "user", "content": f"Always sign with {TOKEN} <private>NIGHTJAR</private> please."}]
    )
    items = transcript(tmp_path, note(1, metadata={"by": TOKEN, "password": "hunter2"}), name="items.jsonl")
    plain = tmp_path / "notes.md"
    plain.write_text(f"We decided to use {TOKEN} for the deploys. <private>NIGHTJAR</private>\n")
    (tmp_path / "chat.json").write_text(chat)

    done = load(home, tmp_path / "chat.json", items, plain)

    assert done.items >= 3
    for secret in (TOKEN, "hunter2", "NIGHTJAR"):
        assert secret not in json.dumps(memory(home))


def draft(content="Use tabs.", *, file="s1.jsonl", key="k1", via=None, **more):
    pointer = {"file": file, "key": key} | ({"via": via} if via else {})
    return {"content": content, "type": "decision", "metadata": {"pointer": pointer, "phase": 1, **more}}


def stored(home, *entries):
    aether.add_working_memory_items(entries, home=home)
    return homes.reopened(home)


@rows("pointer", [None, "somewhere", 7, ["key"]])
def test_a_pointer_of_another_kind_is_ignored(pointer):
    entry = {"content": "x", "type": "decision", "metadata": {"pointer": pointer}}

    assert (dedupe.note_key(entry), dedupe.is_from_hooks(entry)) == ("", False)
    assert dedupe.text_key(entry).startswith("said ")


def test_batches_are_full_and_hold_everything_in_order(monkeypatch):
    monkeypatch.setattr(dedupe, "BATCH_ITEMS", 3)
    made = [{"content": "x" * size} for size in (1, 1, 1, 1, 5, 9, 20, 1)]

    found = list(dedupe.batches(iter(made), 10))

    assert [[len(each["content"]) for each in batch] for batch in found] == [
        [1, 1, 1],
        [1, 5],
        [9],
        [20],
        [1],
    ]
    assert list(dedupe.batches([], 10)) == []


def test_each_file_is_a_phase_of_its_own_and_keeps_it(home, tmp_path):
    one, two = (
        transcript(tmp_path, note(1), name="one.jsonl"),
        transcript(tmp_path, note(2), name="two.jsonl"),
    )

    assert load(home, one).phases == [1]
    assert load(home, two).phases == [2]
    transcript(tmp_path, note(1), note(3), name="one.jsonl")

    assert load(home, one).phases == [1]
    assert load(home, one, two, dry_run=True).items == 0


def ollm_files(place):
    """Write files as OLLM-CLI has them: a session, a snapshot, an index, and two that are bad."""
    (place / "snapshots").mkdir(parents=True)
    said = [
        {"id": "m1", "role": "user", "content": "Hello"},
        {"id": "m2", "role": "assistant", "content": "Hi"},
    ]
    written = {
        "s1.json": {"sessionId": "s1", "messages": said, "metadata": {"contextSize": 4096}},
        "snapshots/snapshot-a.json": {
            "id": "snap_a", "sessionId": "s1", "messages": said, "purpose": "recovery",
            "checkpoints": [{"id": "ckpt_1", "summary": "The port is 8080.", "originalMessageIds": ["m0"]}],
        },
        "snapshots/snapshots-index.json": {"version": "1.0", "snapshots": []},
        "bad.json": {"sessionId": "s3"},
    }  # fmt: skip
    for name, value in written.items():
        (place / name).write_text(json.dumps(value), encoding="utf-8")
    (place / "torn.json").write_text('{"sessionId": ', encoding="utf-8")
    return place


def test_files_of_ollm_become_conversations_and_bad_ones_are_named(home, tmp_path):
    source = ollm_files(tmp_path / "ollm")
    before = {path: path.read_bytes() for path in source.rglob("*.json")}

    done = ollm_import.import_ollm([source], backup=tmp_path / "backup", home=home)

    states = {os.path.basename(one.file): one.state for one in done.files}
    assert states == {
        "s1.json": "imported", "snapshot-a.json": "imported", "snapshots-index.json": "skipped", "bad.json": "bad",
        "torn.json": "bad",
    }  # fmt: skip
    assert all(one.notes for one in done.files if one.state == "bad")
    assert [one["content"] for one in conversations.context("s1", home=home)] == ["Hello", "Hi"]
    (found,) = aether.checkpoints("s1-snap_a", home=home)
    assert (found.id, found.summary, found.message_range) == ("ckpt_1", "The port is 8080.", (1, 1))
    assert aether.build_prompt("s1-snap_a", home=home).messages[-1]["content"] == "Hi"
    assert {path: path.read_bytes() for path in source.rglob("*.json")} == before
    assert copies(tmp_path / "backup") == {str(path.resolve())[1:]: data for path, data in before.items()}
    assert [one.code for one in admin.examine(home=home) if one.level != "info"] == []


def copies(backup):
    """Return the content of each file below a directory, by its path."""
    return {
        path.relative_to(backup).as_posix(): path.read_bytes() for path in backup.rglob("*") if path.is_file()
    }


def test_each_file_that_is_read_is_copied_under_its_own_path_and_each_state_of_it(home, tmp_path):
    source, backup = tmp_path / "ollm", tmp_path / "backup"
    deep = source.joinpath("x" * 250, "y" * 255, "z" * 250)
    names = [source / "a" / "b-c.json", source / "a-b" / "c.json", deep / ("f" * 250 + ".json")]
    for path in names:
        path.parent.mkdir(parents=True)
        path.write_text(
            json.dumps({"sessionId": path.name[:9], "messages": [{"role": "user", "content": str(path)}]})
        )
    first = {str(path.resolve())[1:]: path.read_bytes() for path in names}

    done = ollm_import.import_ollm([source], backup=backup, home=home)
    assert [one.state for one in done.files] == ["imported"] * 3
    assert copies(backup) == first
    for nth in (1, 2):
        names[0].write_text(json.dumps({"sessionId": "b-c.json", "messages": [], "nth": nth}))
        for _ in range(2):
            ollm_import.import_ollm([source], backup=backup, home=home)
        assert names[0].read_bytes() in copies(backup).values()
        assert len(copies(backup)) == 3 + nth
    assert first.items() <= copies(backup).items()


def test_a_file_that_cannot_be_copied_is_named_and_not_imported(home, tmp_path):
    source = ollm_files(tmp_path / "ollm")
    backup = tmp_path / "backup"
    blocked = backup.joinpath(*(source / "s1.json").resolve().parts[1:])
    (blocked / "in its place").mkdir(parents=True)
    (backup / "changed").write_text("no directory")

    done = ollm_import.import_ollm([source], backup=backup, home=home)

    states = {os.path.basename(one.file): one.state for one in done.files}
    assert (states["s1.json"], states["snapshot-a.json"]) == ("bad", "imported")
    assert conversations.conversation_ids(home=home) == ["s1-snap_a"]


def test_an_import_from_ollm_changes_no_conversation_that_exists(home, tmp_path):
    source = ollm_files(tmp_path / "ollm")
    conversations.add_messages("s1", [{"role": "user", "content": "Mine"}], home=home)

    done = ollm_import.import_ollm([source / "s1.json"], home=home)
    assert (done.id, [one.state for one in done.files]) == ("", ["skipped"])
    assert [one["content"] for one in conversations.context("s1", home=home)] == ["Mine"]

    ollm_import.import_ollm([source / "snapshots"], home=home)
    again = ollm_import.import_ollm([source / "snapshots"], home=home)
    assert [one.state for one in again.files] == ["known", "skipped"]


def test_a_dry_run_of_an_import_from_ollm_stores_nothing(home, tmp_path):
    done = ollm_import.import_ollm(
        [ollm_files(tmp_path / "ollm")], dry_run=True, backup=tmp_path / "b", home=home
    )

    assert [one.state for one in done.files].count("imported") == 2
    assert conversations.conversation_ids(home=home) == []
    assert not (tmp_path / "b").exists()
    with pytest.raises(NotFound):
        ollm_import.import_ollm([tmp_path / "nowhere"], home=home)


def test_an_import_from_ollm_is_rolled_back_but_for_what_was_continued(home, tmp_path):
    done = ollm_import.import_ollm([ollm_files(tmp_path / "ollm")], home=home)
    conversations.add_messages("s1", [{"role": "user", "content": "More"}], home=home)

    back = ollm_import.undo_ollm_import(done.id, home=home)

    assert {one.conversation: one.state for one in back.files} == {"s1": "changed", "s1-snap_a": "undone"}
    assert conversations.conversation_ids(home=home) == ["s1"]
    (kept,) = (home / "quarantine").iterdir()
    assert b"The port is 8080." in kept.read_bytes()
    assert [one.code for one in admin.examine(home=home) if one.level != "info"] == []
    with pytest.raises(NotFound, match="no conversation is of import"):
        ollm_import.undo_ollm_import("ollm_nobody", home=home)


def said_in_turns(tmp_path, *texts, name="t.jsonl", session="s1"):
    return transcript(
        tmp_path,
        *(
            {
                "type": "assistant" if nth % 2 else "user", "sessionId": session, "uuid": f"{session}-{nth}",
                "timestamp": f"2026-03-01T10:{nth:02}:00.000Z",
                "message": {"role": "assistant" if nth % 2 else "user", "content": text},
            }
            for nth, text in enumerate(texts)
        ),
        name=name,
    )  # fmt: skip


RULE, DROPPED = "Never use mocks in the tests.", "The rule about mocks is dropped."
PASS, FAIL = "All 12 tests of the store pass now.", "One test of the store fails now."


def test_the_later_of_the_same_words_of_a_conversation_count(home, tmp_path):
    path = said_in_turns(tmp_path, RULE, PASS, DROPPED, FAIL, RULE, PASS)

    done = load(home, path)

    assert contents(home) == [DROPPED, FAIL, RULE, PASS]
    assert done.items == 4
    places = [item["metadata"].get("places") for item in memory(home)["working_memory"]["items"]]
    assert [[place["line"] for place in found or ()] for found in places] == [[], [], [1], [2]]
    shown = [line["text"] for line in briefing.brief(home)["lines"]]
    assert RULE in shown
    assert PASS in shown
    again = load(home, path)
    assert (again.items, again.known) == (0, 6)
    whole(home)


def test_the_same_words_of_three_conversations_stay_in_each(home, tmp_path):
    for session in ("a", "b", "c"):
        load(home, said_in_turns(tmp_path, RULE, PASS, RULE, name=f"{session}.jsonl", session=session))

    assert contents(home).count(RULE) == 3


def rollout(tmp_path, name, *entries):
    path = tmp_path / f"{name}.jsonl"
    path.write_text(lines(*(entry for each in entries for entry in each)), encoding="utf-8")
    return path


def rollout_of(session, *texts, minute=0, **meta):
    """Return the lines of a rollout: one exchange of a person and the agent a minute for each text."""
    found = [("session_meta", {"id": session, "cwd": "/app", **meta})]
    for text in texts:
        for role, kind, words in (("user", "input", text), ("assistant", "output", f"Done: {text}")):
            message = {"role": role, "content": [{"type": f"{kind}_text", "text": words}]}
            found.append(("response_item", {"type": "message", **message}))
    return [
        {"timestamp": f"2026-04-11T20:{minute + nth // 2:02}:00Z", "type": kind, "payload": payload}
        for nth, (kind, payload) in enumerate(found)
    ]


SAID = ["Never push to the main branch.", "Add a parser for dates.", "Go on with the next one.", "Go on with the next one."]  # fmt: skip
LATER = ["Go on with the next one.", "Use SQLite for the cache instead."]
EXPLORER = {"source": {"subagent": {}}, "agent_role": "explorer", "forked_from_id": "main"}


def forked(tmp_path, name="child", *, said=SAID):
    """Return the rollout of a sub-agent, which starts with a copy of what was `said`, written at once."""
    answered = {"type": "function_call_output", "call_id": "c", "output": "You are the newly spawned agent."}
    copied = [*rollout_of("main", *said), {"type": "response_item", "payload": answered}]
    copied.insert(2, {"type": "event_msg", "payload": {}})  # its lines have other numbers
    start, *own = rollout_of(name, f"Review the parser of {name}.", minute=31, **EXPLORER)
    at = "2026-04-11T20:30:00Z"
    return rollout(tmp_path, name, [{**each, "timestamp": at} for each in (start, *copied)], own)


def kept(home):
    """Return how often each note and passage of each conversation is kept, with its agent."""
    found = {}
    for one in [*memory(home)["working_memory"]["items"], *(each["item"] for each in archived(home))]:
        data = one["metadata"]
        what = (data["conversation"], data["caste"], one["type"], one["content"])
        found[what] = found.get(what, 0) + data.get("count", 1)
    return found


def archived(home):
    found = record_files.records(homes.reopened(home), "items")
    return [record for _, record in found if record["why"] != "removed"]


@rows(
    "imports", [
        ["parent child"], ["child parent"], ["child", "parent"], ["parent", "child"],
        ["child", "child", "parent", "parent", "child"], ["child short", "parent"], ["short", "child", "parent"],
    ],
)  # fmt: skip
def test_what_a_sub_agents_rollout_copied_is_imported_once(tmp_path, imports):
    files = {"parent": rollout(tmp_path, "parent", rollout_of("main", *SAID, *LATER)), "child": forked(tmp_path), "short": forked(tmp_path, "short", said=SAID[:3])}  # fmt: skip
    wanted, found = (homes.fresh(tmp_path / name) for name in ("wanted", "found"))
    load(wanted, files["parent"])
    for name in ("child", "short"):
        if name in " ".join(imports).split():
            load(wanted, files[name])

    for names in imports:
        load(found, *(files[name] for name in names.split()))

    assert kept(found) == kept(wanted)
    whole(found)


def test_without_the_rollout_of_its_session_a_copy_is_imported_as_that_session(home, tmp_path):
    done = load(home, forked(tmp_path))

    found = kept(home)
    assert ("main", None, "user_input", SAID[0]) in found
    assert {what[:2] for what in found} == {("main", None), ("child", "explorer")}
    assert not any(what[0] == "child" and "Never" in what[3] for what in found)
    assert done.skipped_copies == []


def test_a_skipped_copy_is_reported(home, tmp_path):
    skipped = [{"file": "child.jsonl", "conversation": "main", "records": 8}]
    parent = rollout(tmp_path, "parent", rollout_of("main", *SAID))

    tried = load(home, forked(tmp_path), parent, dry_run=True)
    done = load(home, io.BytesIO(parent.read_bytes()), forked(tmp_path))

    assert tried.skipped_copies == done.skipped_copies == skipped
    assert load(home, forked(tmp_path)).skipped_copies == skipped


def test_what_an_undone_import_of_a_copy_brought_is_not_known(home, tmp_path):
    done = load(home, forked(tmp_path))
    aether.undo(done.revisions[-1], home=home)

    load(home, rollout(tmp_path, "parent", rollout_of("main", *SAID, *LATER)))

    said = [each["item"]["content"] for each in archived(home) if each["item"]["metadata"]["pointer"]["file"] == "parent.jsonl"]  # fmt: skip
    assert ("main", None, "user_input", SAID[0]) in kept(home)
    assert said.count(SAID[0]) == 1
