"""The words of an imported conversation are kept for search: bounded, redacted, forgettable, undoable, once."""

import json

import pytest

from aether.api.admin import undo
from aether.api.forget import erase, forget
from aether.api.importing import import_transcripts
from aether.api.recall import search_memory
from aether.api.working import clear_working_memory
from aether.memory.capture import passages
from aether.memory.capture.passages import Collector
from aether.memory.items import is_kept, known_places
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


def collected(records, kept=()):
    words = Collector("chat.jsonl", kept)
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
    later = collected(RECORDS, [{"id": key, "file": "chat.jsonl", "line": 5, "passages": 2}])

    assert [one["content"] for one in later] == ["thanks"]
    assert later[0]["id"].startswith(key)


def test_the_words_of_one_line_are_known_by_their_number():
    one_line = [each._replace(line=1) for each in RECORDS]
    first = collected(one_line[:5])
    kept = [{"id": first[0]["id"].partition(".")[0], "file": "chat.jsonl", "line": 1, "passages": 2}]

    assert [one["content"] for one in collected(one_line, kept)] == ["thanks"]
    assert not collected(one_line[:5], kept)
    assert len({one["id"] for one in collected(one_line)}) == 3


def test_what_a_person_answers_to_questions_and_says_in_a_refusal_are_passages():
    answered = said("answer", "never more than five tries", 7, call_id="c1")
    refused = said("refusal", "use the replica", 8)
    other = said("result", "The user responded: blue", 8, call_id="c2")  # words of a file that was read
    passages = collected([*RECORDS, answered, refused, other])

    assert [(passage["content"], passage["metadata"]["speaker"]) for passage in passages[3:]] == [
        ("never more than five tries", "person"),
        ("use the replica", "person"),
    ]


def test_an_answer_names_no_request_of_another_conversation():
    other = said("assistant", "The parser is iterative now.", 7)._replace(session="s2")
    found = collected([*RECORDS, other])

    assert found[-1]["content"] == "The parser is iterative now."


def test_passages_beyond_the_kept_line_are_not_found():
    assert is_kept("said_a.5-2.1", {"said_a": (5, 2)})
    assert not is_kept("said_a.5-3.5", {"said_a": (5, 2)})
    assert not is_kept("said_a.6-1.6", {"said_a": (5, 2)})
    assert not is_kept("said_b.1-1.1", {"said_a": (5, 2)})
    assert is_kept("said_a.5.1.1", {"said_a": (5, 2)}), "of an earlier release"
    assert is_kept("said_a.5.1.1", {"said_a": (5, 0)})
    assert not is_kept("said_a.5-1.1", {"said_a": (5, 0)})


def transcript(path):
    lines = [
        {"role": "user", "content": "why does the nightly export take an hour?"},
        {"role": "assistant", "content": "Because the quorum ledger is locked once per row; a zebra-stripe index avoids it."},
        {"role": "user", "content": "ok"},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def found(home, query="zebra-stripe index", **options):
    return search_memory(query, types=["history"], home=home, **options)


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

    assert {hit["type"] for hit in hits} >= {"outcome", "user_input"}, "the passages repeat them"
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


def talk(path, *texts, **wrapped):
    path.parent.mkdir(exist_ok=True)
    messages = [{"role": ("user", "assistant")[nth % 2], "content": text} for nth, text in enumerate(texts)]
    path.write_text(json.dumps({**wrapped, "messages": messages} if wrapped else messages), encoding="utf-8")
    return path


def words_of(home):
    known = known_places(load(home).documents["memory"])
    stored = [record["item"] for _, record in record_files.records(load(home), "items")]
    return [one["content"] for one in stored if one["type"] == "history" and is_kept(one["id"], known)]


def test_a_conversation_on_one_line_that_grows_adds_its_new_words(home, tmp_path):
    first = ["Port the parser.", "It is ported to a table."]
    import_transcripts([talk(tmp_path / "chat.json", *first)], home=home)
    grown = [*first, "Never use regexes in it.", "The regexes are removed."]
    import_transcripts([talk(tmp_path / "chat.json", *grown)], home=home)
    again = import_transcripts([tmp_path / "chat.json"], home=home)

    assert not again.revisions
    assert words_of(home) == [
        "Port the parser.",
        "Asked: Port the parser.\nIt is ported to a table.",
        "Never use regexes in it.",
        "Asked: Never use regexes in it.\nThe regexes are removed.",
    ]


def test_an_import_that_was_stopped_is_completed_by_the_next(home, tmp_path):
    texts = [
        f"Never call module {nth} {'from outside ' * 2}." if nth % 2 == 0 else f"Module {nth} is closed."
        for nth in range(1400)
    ]
    file = talk(tmp_path / "chat.json", *texts)
    stops = iter([None])

    def stop_after_one_batch(records, items):
        if items and next(stops, "stop"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_transcripts([file], home=home, progress=stop_after_one_batch)
    assert 0 < len(words_of(home)) < 1400
    import_transcripts([file], home=home)
    assert len(words_of(home)) == len({*words_of(home)}) == 1400


@pytest.mark.parametrize("together", [True, False])
def test_conversations_that_start_with_the_same_words_in_files_of_one_name_are_two(home, tmp_path, together):
    one = talk(
        tmp_path / "a" / "chat.json",
        "Fix the build.",
        "The cache was stale.",
        "Never clear it.",
        "Noted that.",
    )
    two = talk(tmp_path / "b" / "chat.json", "Fix the build.", "A header was missing.")
    for files in [[one, two]] if together else [[one], [two]]:
        import_transcripts(files, home=home)

    assert "Asked: Fix the build.\nA header was missing." in words_of(home)
    assert len(words_of(home)) == 6
    assert len({hit["id"] for hit in found(home, "Fix the build")}) >= 4

    talk(two, "Fix the build.", "A header was missing.", "Always vendor headers.", "They are vendored.")
    import_transcripts([one, two], home=home)
    assert len(words_of(home)) == 8
    rules = {
        item["content"]: item["metadata"]["phase"]
        for item in load(home).documents["memory"]["working_memory"]["items"]
    }
    assert (rules["Never clear it."], rules["Always vendor headers."]) == (1, 2)


def test_a_conversation_with_a_name_of_its_own_is_known_wherever_it_lies(home, tmp_path):
    name = "0b5c7a1e-2f3d-4c5b-8a9e-1f2d3c4b5a69"
    for place in ("a", "b"):
        file = talk(tmp_path / place / "chat.json", "Fix the build.", "The cache was stale.", session_id=name)
        import_transcripts([file], home=home)

    assert len(words_of(home)) == 2


REQUEST = "Open the archive room for the auditors who come on Monday morning before the office opens, the door code is 4711-0815 and it must be given to nobody else, then write them a note that names the shelf with the ledgers of last year."
ANSWER = "The note names the third shelf, which has the zebra ledgers."


def note_of(home, start):
    items = load(home).documents["memory"]["working_memory"]["items"]
    return next(item["id"] for item in items if item["content"].startswith(start))


def in_home(home, text):
    files = [path for path in home.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl")]
    return any(text in path.read_text(encoding="utf-8") for path in files)


def test_a_forgotten_request_is_not_quoted_by_its_answers_and_an_erased_one_is_in_no_file(home, tmp_path):
    import_transcripts([talk(tmp_path / "chat.json", REQUEST, ANSWER, "Thanks, that was all.")], home=home)
    request = note_of(home, "Open the archive")
    done = forget([request], home=home)

    assert not any("is 4711" in json.dumps(hit) for hit in search_memory("door code archive room", home=home))
    (hit,) = found(home, "zebra ledgers")
    assert hit["content"] == ANSWER

    undo(done.revision, home=home)
    assert any("is 4711" in json.dumps(hit) for hit in found(home, "door code archive room"))

    assert in_home(home, "is 4711")
    erase([request], home=home)
    assert not in_home(home, "is 4711")
    assert found(home, "zebra ledgers")


def test_a_rule_that_is_erased_is_in_no_quotation_that_cut_it(home, tmp_path):
    request = "Write the note that the auditors asked us for, so that they have it in time on Monday. Never give the door code 4711-0815 of the archive room to anybody who is not on the list of auditors of this year."
    import_transcripts([talk(tmp_path / "chat.json", request, ANSWER)], home=home)
    rule = note_of(home, "Write the note")
    forget([rule], home=home)

    assert not any("door code" in json.dumps(hit) for hit in found(home, "zebra ledgers"))
    erase([rule], home=home)
    assert not in_home(home, "is 4711")


def test_of_an_answer_only_the_quoted_text_is_forgotten(home, tmp_path):
    import_transcripts([talk(tmp_path / "chat.json", REQUEST, ANSWER)], home=home)
    forget(match="4711-0815", home=home)

    (hit,) = found(home, "zebra ledgers")
    assert hit["content"] == ANSWER


def test_erasing_a_request_leaves_what_others_start_with_the_same_words(home, tmp_path):
    import_transcripts([talk(tmp_path / "chat.json", REQUEST, ANSWER, "Thanks, that was all.")], home=home)
    other = f"{REQUEST[:100]} room of the cellar, said Anna."
    import_transcripts([talk(tmp_path / "other.json", other, "The cellar is open now.")], home=home)
    erase([note_of(home, REQUEST)], home=home)

    assert note_of(home, other)
    assert not in_home(home, "is 4711")


def test_words_wait_until_it_is_known_whose_they_are():
    first = collected(RECORDS)
    words = Collector("chat.jsonl", [])
    [*words.watch(RECORDS)]
    words.drain()
    end = first[-1]["id"].split(".")[1].split("-")
    kept = [
        {
            "id": words.id,
            "file": "chat.jsonl",
            "line": int(end[0]),
            "part": int(end[1]),
            "passages": 3,
            "digest": words.digest,
        }
    ]
    again = Collector("chat.jsonl", kept)
    early = []
    for _record in again.watch([*RECORDS, said("user", "and now?", 9)]):
        early += again.drain()  # as a batch of notes is stored meanwhile

    assert [one["content"] for one in (*early, *again.drain())] == ["and now?"]
    assert again.id == words.id
