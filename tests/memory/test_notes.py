from aether.memory.capture.notes import Note, draft, note_key, origin, shorten
from aether.messages.records import Record

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def at(**more):
    return origin(Record("user", line=3, **more), "opening")


def test_a_draft_says_what_where_and_how_much_it_matters():
    made = draft(Note(at(uuid="u", time="t", part=2), "Use it.", "decision", "said"), file="a.jsonl", phase=2)

    assert (made["content"], made["type"], made["relevance_score"], made["source"], made["caste"]) == (
        *("Use it.", "decision", 0.8),
        *("queen", None),
    )
    pointer = made["metadata"]["pointer"]
    assert (pointer["file"], pointer["line"], pointer["uuid"], pointer["part"]) == ("a.jsonl", 3, "u", 2)
    assert (made["metadata"]["phase"], made["metadata"]["timestamp"]) == (2, "t")


def test_what_a_worker_did_is_the_workers():
    made = draft(Note(at(caste="scout"), "x", "outcome", "said"), file="", phase=1, relevance=0.1)

    assert (made["source"], made["caste"], made["relevance_score"]) == ("worker_ant", "scout", 0.1)
    assert "timestamp" not in made["metadata"]


def test_a_key_follows_the_record_and_not_the_file():
    assert note_key(at(uuid=UUID), "said") == note_key(at(uuid=UUID, session="elsewhere"), "said")
    assert note_key(at(uuid="m1", session="a"), "said") != note_key(at(uuid="m1", session="b"), "said")
    assert note_key(at(session="a"), "said") != note_key(at(session="a", part=1), "said")
    assert note_key(at(), "said") != note_key(at(), "task")


def test_records_at_the_same_place_of_two_files_differ_in_key_by_what_they_say():
    assert note_key(at(text="a"), "said") == note_key(at(text="a"), "said")
    assert note_key(at(text="a"), "said") != note_key(at(text="b"), "said")
    assert note_key(at(arguments={"x": 1}), "ran") != note_key(at(arguments={"x": 2}), "ran")
    assert note_key(at(uuid=UUID, text="a"), "said") == note_key(at(uuid=UUID, text="b"), "said")


def test_arguments_nested_too_deeply_to_be_written_have_a_key_all_the_same():
    deep = []
    for _ in range(5_000):
        deep = [deep]

    assert note_key(at(arguments={"x": deep}, text="a"), "ran") != note_key(at(arguments={"x": deep}), "ran")


def test_short_text_stays_as_it_is():
    assert shorten("abc", 3) == "abc"


def test_long_text_keeps_head_and_tail_between_words():
    text = " ".join(f"word{n}" for n in range(400))

    short = shorten(text, 200)

    assert short.startswith("word0 ")
    assert short.endswith("word399")
    assert "characters left out" in short
    assert all(piece in text for piece in short.replace("…", "").split(" [")[0].split())


def test_long_text_without_blanks_is_cut_all_the_same():
    assert len(shorten("x" * 10_000, 100)) < 140
