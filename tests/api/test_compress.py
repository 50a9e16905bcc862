"""Compression: hand-offs, architects and stored sessions."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

import aether
from aether.api import compress, handoffs
from aether.architects import anthropic as anthropic_backend
from aether.architects import openai as openai_backend
from aether.architects.base import Completion
from aether.errors import BackendFailed, BackendUnavailable, Conflict, InvalidInput, NotFound, StorageFailed
from aether.memory import handoff
from tests import homes
from tests.api.calls import answer_text, handed, limits, memory, snapshot, whole
from tests.memory.states import answer
from tests.tables import rows

DECISION = ("Decision: Use JSON for state", "decision", 1.0)

OUTCOME = ("Outcome: Schema created successfully", "outcome", 0.9)

ATOMIC = {"content": "Use atomic writes for state files", "relevance_score": 0.9, "type": "preference"}


def add(home, *entries, **metadata):
    return [
        aether.add_working_memory_item(content, kind, relevance, home=home, metadata=metadata)
        for content, kind, relevance in entries or (DECISION, OUTCOME)
    ]


def sessions(home):
    part = memory(home)["short_term_memory"]
    assert part["current_sessions"] == len(part["sessions"])
    return part["sessions"]


def ingest(home, given=None, phase=1):
    return aether.trigger_phase_boundary_compression(
        phase, answer_text() if given is None else given, home=home
    )


def test_prepared_data_holds_the_items_and_their_numbers(home):
    """The first design, data preparation: two items in, a file with two items out."""
    ids = add(home)

    path = aether.prepare_compression_data(1, True, home=home)

    given = handed(path)
    assert path.parent == home / "compressions"
    assert path.name == f"{given['compression_id']}.json"
    assert [each["id"] for each in given["items"]] == ids
    assert (given["phase"], given["item_count"]) == (1, 2)
    assert given["total_tokens"] == aether.get_memory_status(home=home)["working_memory"]["tokens"]
    assert given["target_tokens"] == int(given["total_tokens"] / 2.5)
    assert given["compression_id"] in given["prompt"]["text"]
    assert f"about {handoff.session_room(given)} tokens" in given["prompt"]["text"]
    assert handoffs.read_handoff(path) == given


def test_without_the_signal_of_the_phase_nothing_is_prepared(home):
    """Defect 6 of the original: the signal was looked for and then not looked at."""
    add(home)
    before = snapshot(home)

    assert aether.prepare_compression_data(1, home=home) is None
    assert "PHASE_COMPLETE" in compress.prepare(1, home=home).reason
    assert snapshot(home) == before

    aether.emit_signal("PHASE_COMPLETE", "phase 2 is done", phase=2, home=home)
    assert aether.prepare_compression_data(1, home=home) is None
    aether.emit_signal("PHASE_COMPLETE", "phase 1 is done", phase=1, home=home)
    assert aether.prepare_compression_data(1, home=home) is not None


def test_a_completed_phase_can_be_compressed(home):
    add(home)
    aether.start_phase(1, home=home)
    aether.complete_phase(1, home=home)

    assert handed(aether.prepare_compression_data(1, home=home))["item_count"] == 2


def test_an_empty_working_memory_is_skipped(home):
    assert aether.prepare_compression_data(1, True, home=home) is None
    assert "Working Memory is empty" in compress.prepare(1, manual=True, home=home).reason
    add(home, phase=2)
    assert aether.prepare_compression_data(1, True, home=home) is None


def test_a_second_prepare_returns_the_same_file_unless_a_new_one_is_asked_for(home):
    add(home)
    path = aether.prepare_compression_data(1, True, home=home)
    written = path.read_bytes()
    add(home, ("Arrived later", "observation", 0.5))

    assert aether.prepare_compression_data(1, True, home=home) == path
    assert path.read_bytes() == written

    newer = aether.prepare_compression_data(1, True, home=home, new=True)
    assert newer != path
    assert handed(newer)["item_count"] == 3
    assert path.read_bytes() == written
    assert aether.prepare_compression_data(1, True, home=home) == newer


@pytest.mark.parametrize("harm", ["deleted", "edited", "cut", "emptied", "a directory of it"])
def test_a_handoff_that_was_harmed_is_made_again(home, harm):
    add(home)
    path = aether.prepare_compression_data(1, True, home=home)
    whole_one = handed(path)
    if harm == "deleted":
        path.unlink()
    elif harm == "edited":
        path.write_text(json.dumps({**whole_one, "target_tokens": 1}))
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:100])
    elif harm == "emptied":
        path.write_bytes(b"")
    else:
        path.unlink()
        path.parent.rmdir()

    assert aether.prepare_compression_data(1, True, home=home) == path
    again = handed(path)
    varying = {"revision", "checksum"}
    assert {key: again[key] for key in again.keys() - varying} == {
        key: whole_one[key] for key in whole_one.keys() - varying
    }


def test_a_handoff_whose_items_all_left_is_followed_by_a_new_one(home):
    add(home)
    path = aether.prepare_compression_data(1, True, home=home)
    aether.clear_working_memory(home=home)
    add(home)

    newer = aether.prepare_compression_data(1, True, home=home)

    assert newer != path
    assert handed(newer)["item_count"] == 2


def test_a_handoff_with_digests_of_another_version_is_prepared_again_and_closed(home):
    """An earlier version made them of the words alone."""
    ids = add(home)
    path = aether.prepare_compression_data(1, True, home=home)
    homes.patch(
        home,
        {
            "op": "replace",
            "path": "/compression/open/0/items",
            "value": dict.fromkeys(map(str, ids), "0" * 16),
        },
    )

    newer = aether.prepare_compression_data(1, True, home=home)

    assert newer != path
    assert handed(newer)["item_count"] == 2
    assert ingest(home).items == 2
    assert memory(home)["compression"]["open"] == []


def test_another_process_that_prepared_meanwhile_is_followed(home, monkeypatch):
    add(home)
    real, reported = compress.read, []

    def read(place):
        found = real(place)
        if not reported:
            reported.append(True)
            reported.append(aether.prepare_compression_data(1, True, home=home))
        return found

    monkeypatch.setattr(compress, "read", read)

    assert aether.prepare_compression_data(1, True, home=home) == reported[1]
    assert len(memory(home)["compression"]["open"]) == 1


@rows("phase", ["../x", "a/b", "con", "", "x" * 300, "1", -1, 1.5, None, True, 2**64, float("nan")])
def test_an_invalid_phase_is_rejected_and_no_file_is_made(home, phase):
    """Defect 9 of the original: the phase went into a path unescaped."""
    add(home)
    before = snapshot(home)

    for call in (
        lambda: aether.prepare_compression_data(phase, True, home=home),
        lambda: aether.compress(phase, home=home),
        lambda: aether.trigger_phase_boundary_compression(phase, answer_text(), home=home),
        lambda: aether.create_short_term_session(phase, answer_text(), home=home),
    ):
        with pytest.raises(InvalidInput, match="is not a phase"):
            call()
    assert snapshot(home) == before
    assert not (home / "compressions").exists()


def test_the_largest_phase_number_can_name_a_file(home):
    add(home)

    assert aether.prepare_compression_data(2**53 - 1, True, home=home).exists()


def test_the_flow_of_the_requirement(home):
    """The first design, phase boundary: the items go, one session comes, the metrics follow."""
    add(home)
    aether.prepare_compression_data(1, True, home=home)
    compressed = {
        "id": "phase_1_test", "session_id": "phase_1_test", "compressed_at": "2026-02-01T12:00:00Z",
        "original_tokens": 500, "compressed_tokens": 200, "phase": 1,
        "summary": "Phase 1: Implemented colony state schemas with JSON persistence",
        "key_decisions": [{"decision": "Use JSON for state", "rationale": "Human-readable and universal"}],
        "outcomes": [{"result": "Schema created", "impact": "Colony state persists across sessions"}],
        "high_value_items": [],
    }  # fmt: skip

    done = ingest(home, json.dumps(compressed))

    state = memory(home)
    assert state["working_memory"]["current_tokens"] == 0
    [session] = sessions(home)
    assert session == done.session
    assert session["summary"] == compressed["summary"]
    assert state["metrics"]["total_compressions"] == 1
    assert state["metrics"]["average_compression_ratio"] == session["compression_ratio"] > 0
    assert done.items == 2
    whole(home)


def test_the_original_flow_without_prepare(home):
    add(home)

    assert ingest(home, answer()).items == 2
    assert homes.ids(home) == []
    whole(home)


def test_the_same_answer_twice_changes_nothing_also_after_folding(home):
    add(home)
    ingest(home)
    aether.fold(home=home)
    add(home, ("Arrived later", "observation", 0.5))
    before = snapshot(home)

    assert not ingest(home).stored
    assert not ingest(home, f"```json\n{answer_text()}\n```").stored
    assert snapshot(home) == before


@pytest.mark.parametrize(
    "given",
    [
        "", "no JSON", answer_text(summary=""), answer_text(compressed_at="2.5x"), answer_text()[:-9], "{}", "[]",
        answer_text(id=["x"], session_id=5), '{"a":' * 5_000, json.dumps(answer(x=1)).replace('"outcomes"', '"results"'),
    ],
)  # fmt: skip
def test_a_rejected_answer_leaves_everything_as_it_was(home, given):
    """Defect 5 of the original: working memory was cleared although nothing was stored."""
    add(home)
    path = aether.prepare_compression_data(1, True, home=home)
    before, written = snapshot(home), path.read_bytes()

    with pytest.raises(InvalidInput):
        ingest(home, given)

    assert snapshot(home) == before
    assert path.read_bytes() == written
    assert aether.export(home=home)["receipts"] == []


@pytest.mark.parametrize("name", ["../x", "a/b", "con", "x" * 200, "\ud800", "\0", "/etc/passwd"])
def test_a_session_may_have_any_name_and_makes_no_file_of_it(home, name):
    add(home)
    beside = sorted(home.parent.iterdir())

    ingest(home, answer(name))

    assert [each["session_id"] for each in sessions(home)] == [name]
    assert sorted(home.parent.iterdir()) == beside
    assert not any(path.stem in (name, "x", "b", "passwd") for path in home.rglob("*"))
    aether.evict_short_term_session(name, home=home)
    aether.fold(home=home)
    assert sessions(home) == []


def test_changes_between_prepare_and_ingest_are_kept(home):
    limits(home, capacity=400)
    reworded, read, evicted = add(
        home,
        ("Reworded later", "observation", 0.5),
        ("Read later", "observation", 0.5),
        ("Evicted later", "note", 0.5),
    )
    path = aether.prepare_compression_data(1, True, home=home)
    aether.update_working_memory_item(reworded, {"content": "Reworded now"}, home=home)
    aether.get_working_memory_item(read, home=home)
    path.unlink()  # the file itself is not needed
    tokens = memory(home)["working_memory"]["current_tokens"]
    coming = add(home, ("word " * (400 - tokens + 1), "observation", 0.5))
    assert evicted in coming[0].evicted

    done = ingest(home, answer_text(key_decisions=[]))

    assert set(homes.ids(home)) == {reworded, *coming}
    assert done.items == 1
    archive = aether.export(home=home)["items"]
    assert {each["item"]["id"]: each["why"] for each in archive} == {read: "compressed", evicted: "evicted"}
    whole(home)


def test_a_folded_home_ingests_as_well(home):
    add(home)
    aether.prepare_compression_data(1, True, home=home)
    aether.fold(home=home)

    assert ingest(home).items == 2
    aether.fold(home=home)
    assert len(aether.export(home=home)["items"]) == 2
    whole(home)


def test_undoing_a_compression_brings_its_items_back(home):
    ids = add(home)
    aether.prepare_compression_data(1, True, home=home)
    before = memory(home)
    ingest(home, answer(high_value_items=[ATOMIC]))
    later = add(home, ("Arrived later", "observation", 0.5))

    aether.undo(homes.reopened(home).revision - 1, home=home)

    state = memory(home)
    assert homes.ids(home) == [*ids, *later]
    assert sessions(home) == []
    assert state["metrics"] == before["metrics"]
    assert state["compression"] == before["compression"]
    assert state["long_term_memory"]["patterns"] == []
    hits = aether.search_memory("JSON schema", home=home)
    assert sorted(hit["id"] for hit in hits if hit["layer"] == "working_memory") == sorted(ids)
    assert [hit["id"] for hit in hits if hit["layer"] not in ("working_memory", "long_term_memory")] == []
    assert all(hit.get("weak") for hit in aether.search_memory("again", home=home))
    whole(home)
    assert ingest(home, answer("again")).items == 2


def test_a_compression_can_be_undone_after_its_session_was_evicted(home):
    ids = add(home)
    ingest(home)
    revision = homes.reopened(home).revision
    aether.evict_short_term_session(home=home)

    aether.undo(revision, home=home)

    assert homes.ids(home) == ids
    assert sessions(home) == []
    whole(home)


def test_sessions_over_the_limit_go_to_the_archive_after_their_patterns_were_extracted(home):
    limits(home, sessions=3)
    for nth in range(5):
        aether.create_short_term_session(
            nth, answer(f"s{nth}", compressed_at=f"2026-02-0{nth + 1}", high_value_items=[ATOMIC]), home=home
        )

    assert [each["session_id"] for each in sessions(home)] == ["s2", "s3", "s4"]
    archive = aether.export(home=home)["items"]
    assert [each["session"]["session_id"] for each in archive] == ["s0", "s1"]
    assert memory(home)["metrics"]["short_term_evictions"] == 2
    patterns = {each["pattern"]: each for each in memory(home)["long_term_memory"]["patterns"]}
    assert patterns[ATOMIC["content"]]["occurrences"] == 5
    assert patterns[ATOMIC["content"]]["confidence"] == 1.0
    hits = aether.search_memory("JSON for state", layers=["archive"], home=home)
    assert {hit["id"] for hit in hits} == {"s0", "s1"}
    whole(home)


def test_ten_sessions_stay(home):
    """The first design: ten compressed sessions."""
    for nth in range(11):
        aether.create_short_term_session(
            nth, answer(f"s{nth}", compressed_at=f"2026-02-{nth + 1:02}"), home=home
        )

    assert [each["session_id"] for each in sessions(home)] == [f"s{nth}" for nth in range(1, 11)]


def test_a_session_by_itself_is_stored_once(home):
    add(home)
    before = homes.ids(home)

    assert aether.create_short_term_session(1, answer_text(original_tokens=1000), home=home) == "phase_1_test"
    assert aether.create_short_term_session(1, answer_text(original_tokens=1000), home=home) == "phase_1_test"

    assert [(each["session_id"], each["original_tokens"]) for each in sessions(home)] == [
        ("phase_1_test", 1000)
    ]
    assert homes.ids(home) == before
    assert memory(home)["metrics"]["total_compressions"] == 0
    with pytest.raises(Conflict):
        aether.create_short_term_session(1, answer_text(summary="Other."), home=home)


def test_sessions_of_the_requirement_make_one_pattern(home):
    """The first design, pattern extraction: one statement in two sessions is one pattern with two occurrences."""
    for nth in (1, 2):
        given = answer(
            f"test_{nth}",
            key_decisions=[],
            outcomes=[],
            high_value_items=[ATOMIC],
            summary=f"Test session {nth}",
        )
        aether.create_short_term_session(nth, json.dumps(given), home=home)

    [pattern] = memory(home)["long_term_memory"]["patterns"]
    assert (pattern["pattern"], pattern["occurrences"], pattern["confidence"]) == (ATOMIC["content"], 2, 0.8)
    assert memory(home)["metrics"]["total_pattern_extractions"] == 1


def test_evicting_takes_the_oldest_or_the_one_that_is_named(home):
    for nth in range(3):
        aether.create_short_term_session(
            nth, answer(f"s{nth}", compressed_at=f"2026-02-0{3 - nth}"), home=home
        )

    assert aether.evict_short_term_session(home=home)["session_id"] == "s2"
    assert aether.evict_short_term_session("s0", home=home)["session_id"] == "s0"
    with pytest.raises(NotFound):
        aether.evict_short_term_session("s0", home=home)
    assert [each["session_id"] for each in sessions(home)] == ["s1"]

    aether.undo(home=home)
    assert {each["session_id"] for each in sessions(home)} == {"s0", "s1"}
    assert memory(home)["metrics"]["short_term_evictions"] == 1
    whole(home)


def test_evicting_from_nothing_is_nothing(home):
    before = snapshot(home)

    assert aether.evict_short_term_session(home=home) is None
    assert snapshot(home) == before


def test_a_handoff_that_is_not_there_is_an_error(home):
    with pytest.raises(NotFound, match="no such hand-off"):
        handoffs.read_handoff(home / "compressions" / "none.json")


def test_an_answer_to_a_handoff_that_was_answered_does_not_take_what_came_later(home):
    """The architect has never seen it: to archive it under that session would lose it from sight."""
    add(home)
    path = aether.prepare_compression_data(1, True, home=home)
    late = answer(handed(path)["compression_id"])
    ingest(home, answer("somebody-else"))
    add(home, ("came later", "note", 0.5))
    aether.prepare_compression_data(1, True, home=home)

    with pytest.raises(Conflict, match="not open any more"):
        ingest(home, late)

    assert [each["content"] for each in aether.list_working_memory_items(home=home)] == ["came later"]


def test_a_phase_boundary_folds_the_journal_into_the_documents(home):
    add(home)

    ingest(home, answer("s1"))

    on_disk = json.loads((home / "data" / "memory.json").read_text(encoding="utf-8"))
    assert [each["id"] for each in on_disk["short_term_memory"]["sessions"]] == ["s1"]


def test_an_id_in_use_is_not_given_to_another_handoff(home, monkeypatch):
    add(home)
    first = handed(aether.prepare_compression_data(1, True, home=home))["compression_id"]
    drawn = iter([first, first, "phase_1_ffffffff"])
    monkeypatch.setattr(handoffs, "short_id", lambda kind: next(drawn))

    second = aether.prepare_compression_data(1, True, home=home, new=True)

    assert handed(second)["compression_id"] == "phase_1_ffffffff"


def test_a_handoff_that_cannot_be_written_is_reported_as_open(home):
    aether.add_working_memory_item("note", "x", home=home)
    (home / "compressions").write_text("in the way")

    with pytest.raises(StorageFailed, match="The hand-off is open"):
        aether.prepare_compression_data(1, manual=True, home=home)
    (home / "compressions").unlink()

    assert aether.prepare_compression_data(1, manual=True, home=home).exists()


def test_the_answer_of_an_evicted_session_takes_nothing_unless_its_compression_is_undone(home):
    limits(home, sessions=1)
    add(home)
    first = answer_text("first")
    ingest(home, first)
    stored = aether.log(limit=1, home=home)[0].revision
    add(home, ("more", "observation", 0.3))
    ingest(home, answer_text("second", key_decisions=[], compressed_at="2026-03-02T12:00:00Z"))
    evicted = aether.log(limit=1, home=home)[0].revision
    later = add(home, ("never shown to an architect", "observation", 0.3))

    again = ingest(home, first)

    assert (again.stored, again.items, homes.ids(home)) == (False, 0, later)
    aether.undo(evicted, home=home)
    aether.undo(stored, home=home)
    assert ingest(home, first).stored
    whole(home)


def test_an_answer_is_not_stored_under_another_phase_than_its_handoff(home):
    add(home)
    path = aether.prepare_compression_data(1, True, home=home)

    with pytest.raises(InvalidInput, match=r"is of phase 1, not 2\. Ingest it with --phase 1"):
        ingest(home, answer(handed(path)["compression_id"]), phase=2)

    assert sessions(home) == []


NOTES = (
    ("We chose SQLite over Postgres because the tool must run without a server.", "decision"),
    ("The import of 40,000 records takes 3 seconds and its memory stays flat.", "outcome"),
    ("Never commit to the main branch.", "constraint"),
    ("Looking around in src/ for a while.", "observation"),
)


@pytest.fixture
def noted(home):
    """Return a home with notes of a phase in it."""
    aether.add_working_memory_items([{"content": text, "type": kind} for text, kind in NOTES], home=home)
    return home


def program(tmp_path, body):
    """Return the architect that runs `body`, which finds the hand-off in `given`."""
    path = tmp_path / "architect.py"
    path.write_text(f"import json, sys\ngiven = json.load(sys.stdin)\n{body}", encoding="utf-8")
    return f"command:'{sys.executable}' '{path}'"


def session_of(given, fields):
    return json.dumps(
        answer(given["compression_id"], compressed_at=given["prepared_at"], key_decisions=[]) | fields
    )


@pytest.fixture
def scripted(monkeypatch):
    """Return a function that makes `anthropic` answer in turn; a text is an answer, an error is raised."""

    def script(*turns, name="anthropic"):
        asked = []
        real = compress.backend_of

        def complete(request, *, settings, count):
            asked.append(request)
            turn = turns[len(asked) - 1]
            if isinstance(turn, Exception):
                raise turn
            said = turn if isinstance(turn, str) else session_of(request.data, turn)
            return Completion(said, name, "some-model", 100, 10, 0.25)

        fake = SimpleNamespace(NAME=name, complete=complete)
        monkeypatch.setattr(
            compress,
            "backend_of",
            lambda spec: (fake, {}) if spec.partition(":")[0] == name else real(spec),
        )
        return asked

    return script


def test_without_a_name_the_extractive_architect_compresses(noted):
    done = aether.compress(1, home=noted)

    assert done.architect == "extractive"
    assert done.notes == []
    assert done.ingested.items == len(NOTES)
    assert "Never commit to the main branch." in json.dumps(done.ingested.session)
    assert homes.ids(noted) == []
    whole(noted)


def test_of_a_small_memory_nothing_that_matters_is_lost(home):
    worker = {"type": "outcome", "source": "worker_ant", "caste": "explorer"}
    notes = [
        {"content": "Make the invoices readable.", "type": "user_input"},
        {"content": "We parse dates with fromisoformat because it needs no package.", "type": "decision"},
        {"content": "Task: Which date formats do the invoices use?", "type": "observation"},
        {"content": "Finding: the invoices use ISO dates only.", **worker},
        {"content": "Created parser.py (3 lines): parse", "type": "code_change"},
        {"content": "`pytest` failed: ModuleNotFoundError: No module named 'invoices'", "type": "error"},
        {"content": "The parser reads all the invoices of March.", "type": "outcome"},
        {"content": "The parser reads all the invoices of April.", "type": "outcome"},
        {"content": "The parser reads all the invoices of May.", "type": "outcome"},
    ]
    aether.add_working_memory_items(notes, home=home)

    session = aether.compress(1, home=home).ingested.session

    reported = json.dumps(session)
    assert all(
        text in reported for text in ("needs no package", "ISO dates only", "parser.py", "ModuleNotFound")
    )
    assert all(month in reported for month in ("March", "April", "May"))


def test_every_architect_gets_the_size_of_the_session(noted, scripted):
    asked = scripted({})

    aether.compress(1, architect="anthropic", home=noted)

    assert asked[0].target_tokens == asked[0].data["target_tokens"] == 400
    assert "400" in asked[0].prompt


def test_the_extractive_architect_gives_the_same_session_for_the_same_items(noted):
    first = aether.compress(1, home=noted).ingested.session
    aether.undo(home=noted)
    again = aether.compress(1, home=noted).ingested.session

    varying = {"metadata"}
    assert {key: first[key] for key in first.keys() - varying} == {
        key: again[key] for key in again.keys() - varying
    }


def test_the_configured_architect_is_the_default(noted):
    homes.configure(noted, '[architect]\ndefault = "manual"\n')

    done = aether.compress(1, home=noted)

    assert done.architect == "manual"
    assert done.ingested is None
    assert done.prepared.path.exists()


@rows(
    ("default", "architect", "server"),
    [
        ("openai", None, "http://127.0.0.1:9/v1"),
        ("openai", "openai", "http://127.0.0.1:9/v1"),
        ("extractive", "openai", "http://127.0.0.1:9/v1"),
        ("openai", "anthropic", ""),
        ("ollama", "openai", ""),
    ],
)
def test_a_key_is_not_sent_to_the_server_of_another_architect(default, architect, server, noted, monkeypatch):
    monkeypatch.setenv("AETHER_ARCHITECT_DEFAULT", default)
    monkeypatch.setenv("AETHER_ARCHITECT_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("AETHER_ARCHITECT_MODEL", "m")
    seen = []

    def complete(request, *, settings, count):
        seen.append((settings.base_url, settings.model))
        raise BackendUnavailable("enough seen.", fix="Nothing.")

    for module in (anthropic_backend, openai_backend):
        monkeypatch.setattr(module, "complete", complete)
    with pytest.raises(BackendUnavailable, match="enough seen"):
        aether.compress(1, architect=architect, home=noted)
    assert seen == [(server, "m" if server else "")]


def test_a_person_gets_the_handoff_and_nothing_else_happens(noted):
    ids = homes.ids(noted)

    done = aether.compress(1, architect="manual", home=noted)

    assert (done.ingested, done.architect, done.notes) == (None, "manual", [])
    assert done.prepared.path == aether.prepare_compression_data(1, True, home=noted)
    assert homes.ids(noted) == ids


def test_nothing_to_compress_is_no_error(home):
    done = aether.compress(1, home=home)

    assert done.ingested is None
    assert "empty" in done.prepared.reason
    assert done.prepared.path is None


@rows("name", ["gpt", "command", "command:", "extractive:x", "../x"])
def test_an_unknown_architect_is_refused_before_anything_is_prepared(noted, name):
    before = snapshot(noted)

    with pytest.raises(InvalidInput, match="architect"):
        aether.compress(1, architect=name, home=noted)
    assert snapshot(noted) == before


def test_a_program_may_be_the_architect(noted, tmp_path):
    body = (
        "print('Here it is:', json.dumps({'id': given['compression_id'], 'session_id': given['compression_id'],"
        " 'compressed_at': given['prepared_at'], 'summary': 'SQLite was chosen and the import is fast.',"
        " 'key_decisions': [], 'outcomes': [], 'high_value_items': []}))"
    )

    done = aether.compress(1, architect=program(tmp_path, body), home=noted)

    assert done.architect == "command"
    assert done.notes == []
    assert done.ingested.session["summary"].startswith("SQLite was chosen")
    assert "Never commit to the main branch." in [each["content"] for each in done.ingested.carried]
    whole(noted)


def test_a_program_gets_the_reasons_to_correct_its_answer(noted, tmp_path):
    """Rejected twice, accepted the third time; what the feedback says is what was wrong."""
    body = f"""
from pathlib import Path
seen = Path({str(tmp_path / "seen")!r})
tries = seen.read_text().splitlines() if seen.exists() else []
with seen.open("a") as file:
    print(json.dumps(given.get("feedback", "")), file=file)
answer = {answer(key_decisions=[])!r} | {{"summary": ["", "I'm sorry, but I can't do that.", "SQLite was chosen."][len(tries)]}}
print(json.dumps(answer))
"""

    done = aether.compress(1, architect=program(tmp_path, body), home=noted)

    assert done.architect == "command"
    assert len(done.notes) == 2
    reported = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    assert reported[0] == ""
    assert "is empty" in reported[1]
    assert "is a refusal" in reported[2]
    assert done.ingested.session["metadata"]["architect"]["tries"] == 3


def test_the_receipt_holds_the_cost_of_all_tries(noted, scripted):
    asked = scripted("nothing", {"summary": ""}, {"summary": "SQLite was chosen."})
    heard = []

    done = aether.compress(1, architect="anthropic", home=noted, progress=heard.append)

    assert [bool(request.feedback) for request in asked] == [False, True, True]
    [receipt] = aether.export(home=noted)["receipts"]
    assert receipt["architect"].items() >= {
        "backend": "anthropic", "model": "some-model", "input_tokens": 300, "output_tokens": 30, "cost_usd": 0.75,
        "tries": 3, "calls": 3,
    }.items()  # fmt: skip
    stored = "checking and storing the session"
    assert [words for words in heard if words != stored] == [
        "preparing the hand-off", "asking anthropic", "asking anthropic, again (1)", "asking anthropic, again (2)",
    ]  # fmt: skip
    assert heard[-1] == stored
    assert done.architect == "anthropic"


def test_after_three_rejections_the_extractive_architect_does_it_and_the_result_says_so(noted, scripted):
    scripted("one", "two", "three")

    done = aether.compress(1, architect="anthropic", home=noted)

    assert done.architect == "extractive"
    assert [note.partition(":")[0] for note in done.notes[:3]] == ["anthropic"] * 3
    assert done.notes[3] == "the extractive architect wrote the session instead"
    assert done.ingested.items == len(NOTES)
    whole(noted)


def test_when_a_backend_fails_the_extractive_architect_does_it(noted, scripted):
    asked = scripted(BackendFailed("overloaded.", fix="Wait."))

    done = aether.compress(1, architect="anthropic", home=noted)

    assert len(asked) == 1
    assert done.architect == "extractive"
    assert done.notes[0] == "anthropic: overloaded."


def test_a_backend_that_is_missing_is_an_error_and_no_item_moves(noted, scripted):
    scripted(BackendUnavailable("no key.", fix="Set it."))
    before = memory(noted)

    with pytest.raises(BackendUnavailable, match="no key"):
        aether.compress(1, architect="anthropic", home=noted)

    now = memory(noted)
    assert now["working_memory"] == before["working_memory"]
    assert now["short_term_memory"] == before["short_term_memory"]
    assert aether.export(home=noted)["receipts"] == []
    with pytest.raises(BackendUnavailable, match="no program"):
        aether.compress(1, architect="command:no-such-program-anywhere", home=noted)


def test_when_no_architect_succeeds_nothing_changes_and_the_handoff_stays_open(noted, scripted):
    asked = scripted(*["nothing"] * 3, name="extractive")

    with pytest.raises(BackendFailed, match="no architect wrote an acceptable session"):
        aether.compress(1, architect="extractive", home=noted)

    assert len(asked) == 3
    assert len(homes.ids(noted)) == len(NOTES)
    assert len(memory(noted)["compression"]["open"]) == 1


def test_items_that_arrive_while_a_model_answers_are_kept(noted, monkeypatch, scripted):
    """The original cleared everything, and lost what arrived meanwhile."""
    scripted({"summary": "SQLite was chosen."})
    real = compress.store_answer
    late = []

    def slowly(*args, **options):
        late.append(
            aether.add_working_memory_item("Arrived while the model was thinking", "note", home=noted)
        )
        return real(*args, **options)

    monkeypatch.setattr(compress, "store_answer", slowly)
    aether.compress(1, architect="anthropic", home=noted)

    assert homes.ids(noted) == late


def test_a_slow_architect_takes_only_the_handoff_it_was_given(noted, monkeypatch, scripted):
    scripted({"summary": "SQLite was chosen.", "id": "mine", "session_id": "mine"})
    real = compress.store_answer

    def overtaken(*args, **options):
        monkeypatch.setattr(compress, "store_answer", real)
        aether.compress(1, architect="extractive", home=noted)
        aether.add_working_memory_item("Arrived after that", "note", home=noted)
        return real(*args, **options)

    monkeypatch.setattr(compress, "store_answer", overtaken)
    with pytest.raises(Conflict, match="not open any more"):
        aether.compress(1, architect="anthropic", home=noted)

    assert len(homes.ids(noted)) == 1
    assert memory(noted)["metrics"]["total_compressions"] == 1


def test_compressing_takes_what_came_after_the_open_handoff_too(home):
    aether.add_working_memory_item(
        "Decided to keep state in JSON, because people read it.", "decision", home=home
    )
    aether.prepare_compression_data(1, True, home=home)
    aether.add_working_memory_item(
        "Decided to write with a rename, because power fails.", "decision", home=home
    )

    done = aether.compress(1, architect="extractive", home=home)

    assert done.ingested.items == 2
    assert aether.list_working_memory_items(home=home) == []


def test_a_function_may_be_the_architect_and_leave_ids_and_time_to_the_handoff(noted):
    asked = []

    def mine(handoff):
        asked.append(handoff)
        if "feedback" not in handoff:
            return {"summary": "", "key_decisions": [], "outcomes": []}
        return {"summary": "The repository got its rules.", "key_decisions": [], "outcomes": []}

    done = aether.compress(1, architect=mine, home=noted)

    assert [sorted(each.keys() & {"feedback", "items", "prompt"}) for each in asked] == [
        ["items", "prompt"], ["feedback", "items", "prompt"],
    ]  # fmt: skip
    session = done.ingested.session
    assert session["id"] == session["session_id"] == done.prepared.record["id"]
    assert session["compressed_at"] == done.prepared.record["prepared_at"]
    assert session["summary"] == "The repository got its rules."
    assert (done.architect, session["metadata"]["architect"]["model"]) == ("function", "mine")
    whole(noted)


def test_the_same_answer_without_ids_twice_changes_nothing(noted):
    given = {"summary": "The repository got its rules.", "key_decisions": [], "outcomes": []}
    first = aether.trigger_phase_boundary_compression(1, given, home=noted)
    again = aether.trigger_phase_boundary_compression(1, given, home=noted)

    assert (first.stored, again.stored) == (True, False)
    assert again.session["id"] == first.session["id"]


def test_a_function_that_fails_is_replaced_and_anything_else_is_no_architect(noted):
    def broken(handoff):
        raise KeyError("summary")

    with pytest.raises(InvalidInput, match="not an architect"):
        aether.compress(1, architect=7, home=noted)
    done = aether.compress(1, architect=broken, home=noted)

    assert done.architect == "extractive"
    assert "KeyError" in done.notes[0]


@rows("text", [
    "Error: 401 Unauthorized. Invalid API key.", "API Error: 529 overloaded", "I'm sorry, I can't help with that.",
    "Request timed out.", "Traceback (most recent call last):\n  File x\nValueError: bad", "TODO", '{"error": 1}', "<html>", "…",
])  # fmt: skip
def test_the_extractive_architect_is_never_rejected(tmp_path, text):
    home = aether.init(tmp_path / f"home{abs(hash(text))}")
    aether.add_working_memory_item(text, "error", home=home)

    assert aether.compress(1, architect="extractive", home=home).notes == []
