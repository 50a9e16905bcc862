"""The words of an imported conversation are kept for search: bounded, redacted, forgettable, undoable, once."""

import json

from aether.api.admin import undo
from aether.api.forget import erase, forget
from aether.api.importing import import_transcripts
from aether.api.recall import search_memory
from aether.api.working import clear_working_memory
from aether.memory.capture import passages
from aether.memory.capture.passages import Collector
from aether.memory.items import is_kept
from aether.messages.records import Record
from aether.store import record_files
from aether.store.snapshot import load


def said(kind, text, line, **more):
    return Record(kind, text, line=line, session="s1", time="2026-01-01T10:00:00Z", **more)


RECORDS = [
    said("user", "why is the export slow?", 1),
    said("assistant", "Let me look at the exporter.", 2),
    said("call", "", 3, tool="Bash"),
    said("result", "a thousand lines of output", 4),
    said("assistant", "The exporter locks the ledger for each row.", 5),
    said("user", "thanks", 6),
]


def collected(records, known=None):
    words = Collector("chat.jsonl", known or {})
    assert list(words.watch(records)) == list(records)
    return words.drain()


def test_a_passage_is_what_one_speaker_wrote_with_its_request_and_its_place():
    found = collected(RECORDS)

    assert [(one["content"], one["metadata"]["speaker"]) for one in found] == [
        ("why is the export slow?", "person"),
        (
            "Asked: why is the export slow?\nLet me look at the exporter.\n\nThe exporter locks the ledger for each row.",
            "agent",
        ),
        ("thanks", "person"),
    ]
    assert found[1]["metadata"]["pointer"] == {"file": "chat.jsonl", "line": 2}
    assert found[1]["metadata"]["conversation"] == "s1"


def test_a_passage_names_its_project_and_the_title_of_its_conversation():
    other = Record("user", "and the import?", line=7, session="s2", directory="/src/bank")
    found = collected([*(each._replace(directory="/src/shop") for each in RECORDS), other])

    places = [[one["metadata"].get(name) for name in ("project", "conversation", "title")] for one in found]
    assert places == [["/src/shop", "s1", "why is the export slow?"]] * 3 + [
        ["/src/bank", "s2", "and the import?"]
    ]


def test_passages_are_bounded_and_without_secrets_and_private_text(monkeypatch):
    monkeypatch.setattr(passages, "CONVERSATION_CHARS", 12_000)
    key = "sk-ant-api03-" + "Ab1" * 31 + "AA"
    long = said("assistant", "\n\n".join(f"paragraph {n} " + "x" * 700 for n in range(60)), 2)
    found = collected([said("user", f"the key is {key} <private>at home</private>", 1), long])

    assert key not in json.dumps(found)
    assert "at home" not in json.dumps(found)
    assert all(len(one["content"]) <= passages.PASSAGE_CHARS + 200 for one in found)
    assert sum(len(one["content"]) for one in found) <= 12_000


def test_a_grown_transcript_adds_only_what_is_new():
    first = collected(RECORDS[:5])
    key = first[0]["id"].partition(".")[0]
    later = collected(RECORDS, {key: 5})

    assert [one["content"] for one in later] == ["thanks"]
    assert later[0]["id"].startswith(key)


def test_passages_beyond_the_kept_line_are_not_found():
    assert is_kept("said_a.5.1.1", {"said_a": 5})
    assert not is_kept("said_a.6.6.1", {"said_a": 5})
    assert not is_kept("said_b.1.1.1", {"said_a": 5})


def transcript(path):
    lines = [
        {"role": "user", "content": "why does the nightly export take an hour?"},
        {"role": "assistant", "content": "Because the quorum ledger is locked once per row; a zebra-stripe index avoids it."},
        {"role": "user", "content": "ok"},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def found(home, query="zebra-stripe index", **options):
    return [hit for hit in search_memory(query, home=home, **options) if hit["type"] == "history"]


def test_the_words_of_an_import_are_found_marked_and_filtered_until_it_is_undone(home, tmp_path):
    done = import_transcripts([transcript(tmp_path / "chat.jsonl")], home=home)
    (hit,) = found(home)

    assert hit["speaker"] == "agent"
    assert "zebra-stripe" in hit["passage"]
    assert found(home, conversation="CHAT.jsonl")
    assert not found(home, conversation="another")
    assert not found(home, project="elsewhere")

    for revision in reversed(done.revisions):
        undo(revision, home=home)
    assert not found(home)


def claude_transcript(path):
    lines = [
        {"type": kind, "sessionId": "c-one", "cwd": "/src/shop", "uuid": f"u{nth}", "timestamp": f"2026-01-01T10:0{nth}:00Z", "message": {"role": kind, "content": text}}
        for nth, (kind, text) in enumerate(
            [
                ("user", "why does the nightly export take an hour?"),
                ("assistant", "Because the quorum ledger is locked once per row; a zebra-stripe index avoids it."),
                ("user", "Never use a zebra-stripe index."),
            ]
        )
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_the_words_of_an_import_are_found_by_project_and_title_as_its_items_are(home, tmp_path):
    import_transcripts([claude_transcript(tmp_path / "c-one.jsonl")], home=home)
    hits = search_memory("zebra-stripe index", project="/src/SHOP", conversation="nightly", home=home)

    assert {hit["type"] for hit in hits} >= {"history", "constraint"}
    assert {(hit["project"], hit["conversation"], hit["title"]) for hit in hits} == {
        ("/src/shop", "c-one", "why does the nightly export take an hour?")
    }
    assert not search_memory("zebra-stripe index", project="bank", home=home)


def test_passages_of_an_earlier_release_have_the_place_of_their_conversation(home, tmp_path, monkeypatch):
    def keep(memory, words, said, now, keep=passages.keep):
        bare = [
            {**each, "metadata": {name: value for name, value in each["metadata"].items() if name not in ("title", "project")}}
            for each in said
        ]  # fmt: skip
        return keep(memory, words, bare, now)

    monkeypatch.setattr(passages, "keep", keep)
    import_transcripts([claude_transcript(tmp_path / "c-one.jsonl")], home=home)

    for change in (lambda: None, lambda: clear_working_memory(home=home)):
        change()
        hits = found(home, project="/src/shop")
        assert {(hit["project"], hit["title"]) for hit in hits} == {
            ("/src/shop", "why does the nightly export take an hour?")
        }
        assert not found(home, project="bank")


def test_importing_again_adds_no_passage_and_undoing_leaves_the_file_importable(home, tmp_path):
    file = transcript(tmp_path / "chat.jsonl")
    done = import_transcripts([file], home=home)
    again = import_transcripts([file], home=home)
    assert not again.revisions

    for revision in reversed(done.revisions):
        undo(revision, home=home)
    import_transcripts([file], home=home)
    assert len(found(home)) == 1


def test_forgetting_and_erasing_reach_passages(home, tmp_path):
    import_transcripts([transcript(tmp_path / "chat.jsonl")], home=home)
    forget([found(home)[0]["id"]], home=home)
    assert not found(home)

    erase(match="zebra-stripe index", home=home)
    kept = json.dumps([record for _, record in record_files.records(load(home), "items")])
    assert "zebra" not in kept
