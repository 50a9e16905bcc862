import json
import sys
from types import SimpleNamespace

import pytest

import aether
from aether.api import compress
from aether.backends.base import Completion
from aether.errors import BackendFailed, BackendUnavailable, Conflict, InvalidInput
from tests import homes
from tests.api.calls import memory, snapshot, whole
from tests.memory.states import answer
from tests.tables import rows

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
    return json.dumps(answer(given["compression_id"], compressed_at=given["prepared_at"]) | fields)


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

    told = json.dumps(session)
    assert all(text in told for text in ("needs no package", "ISO dates only", "parser.py", "ModuleNotFound"))
    assert all(month in told for month in ("March", "April", "May"))


def test_every_architect_is_told_how_much_room_there_is(noted, scripted):
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
    (noted / "config.toml").write_text('[architect]\ndefault = "manual"\n')

    done = aether.compress(1, home=noted)

    assert done.architect == "manual"
    assert done.ingested is None
    assert done.prepared.path.exists()


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


def test_a_program_is_told_what_to_correct(noted, tmp_path):
    """Rejected twice, accepted the third time; what the feedback says is what was wrong."""
    body = f"""
from pathlib import Path
seen = Path({str(tmp_path / "seen")!r})
tries = seen.read_text().splitlines() if seen.exists() else []
with seen.open("a") as file:
    print(json.dumps(given.get("feedback", "")), file=file)
answer = {answer()!r} | {{"summary": ["", "I'm sorry, but I can't do that.", "SQLite was chosen."][len(tries)]}}
print(json.dumps(answer))
"""

    done = aether.compress(1, architect=program(tmp_path, body), home=noted)

    assert done.architect == "command"
    assert len(done.notes) == 2
    told = [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]
    assert told[0] == ""
    assert "is empty" in told[1]
    assert "is a refusal" in told[2]
    assert done.ingested.session["metadata"]["architect"]["tries"] == 3


def test_what_all_tries_cost_stands_in_the_receipt(noted, scripted):
    asked = scripted("nothing", {"summary": ""}, {"summary": "SQLite was chosen."})
    heard = []

    done = aether.compress(1, architect="anthropic", home=noted, progress=heard.append)

    assert [bool(request.feedback) for request in asked] == [False, True, True]
    [receipt] = aether.export(home=noted)["receipts"]
    assert receipt["architect"].items() >= {
        "backend": "anthropic", "model": "some-model", "input_tokens": 300, "output_tokens": 30, "cost_usd": 0.75,
        "tries": 3, "calls": 3,
    }.items()  # fmt: skip
    assert heard == ["asking anthropic", "asking anthropic, again (1)", "asking anthropic, again (2)"]
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


def test_what_arrives_while_a_model_thinks_stays(noted, monkeypatch, scripted):
    """The original cleared everything, and lost what arrived meanwhile."""
    scripted({"summary": "SQLite was chosen."})
    real = compress.ingest_session
    late = []

    def slowly(*args, **options):
        late.append(
            aether.add_working_memory_item("Arrived while the model was thinking", "note", home=noted)
        )
        return real(*args, **options)

    monkeypatch.setattr(compress, "ingest_session", slowly)
    aether.compress(1, architect="anthropic", home=noted)

    assert homes.ids(noted) == late


def test_a_slow_architect_takes_only_the_handoff_it_was_given(noted, monkeypatch, scripted):
    scripted({"summary": "SQLite was chosen.", "id": "mine", "session_id": "mine"})
    real = compress.ingest_session

    def overtaken(*args, **options):
        monkeypatch.setattr(compress, "ingest_session", real)
        aether.compress(1, architect="extractive", home=noted)
        aether.add_working_memory_item("Arrived after that", "note", home=noted)
        return real(*args, **options)

    monkeypatch.setattr(compress, "ingest_session", overtaken)
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
