import json
from pathlib import Path

import pytest

from aether.memory.capture import extract as module
from aether.memory.capture.extract import capture, end_agent, end_turn, finish, new_state, observe
from aether.messages.read import read_records
from aether.messages.records import Record
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
SAMPLE = Path(__file__).resolve().parents[2] / "data" / "samples" / "colony.jsonl"
REAL = sorted(
    path
    for folder in ("claude_code", "codex", "trajectories")
    for path in (DATA / folder).glob("*.json*")
    if not path.name.startswith("_")
)


def notes(*records, **more):
    placed = (record._replace(line=record.line or n) for n, record in enumerate(records, start=1))
    return list(capture(placed, **more))


def brief(*records, **more):
    return [(note["type"], note["content"]) for note in notes(*records, **more)]


def keys(drafts):
    return [draft["metadata"]["pointer"]["key"] for draft in drafts]


def user(text, **more):
    return Record("user", text, **more)


def said(text, **more):
    return Record("assistant", text, **more)


def run(command, answer="ok", **more):
    return (
        Record("call", tool="Bash", arguments={"command": command}, call_id=command, **more),
        Record("result", answer, call_id=command, **more),
    )


def test_a_turn_gives_its_request_its_work_and_its_answer():
    assert brief(
        user("Add a health page."),
        said("Let me look."),
        *run("make test", "3 passed"),
        said("Added the page."),
    ) == [
        ("user_input", "Add a health page."),
        ("command", "Ran `make test`: 3 passed"),
        ("outcome", "Added the page."),
    ]


def test_what_is_being_done_when_a_turn_ends_is_no_outcome():
    assert brief(
        user("Let a helper look at the date formats."),
        said("A helper is on its way."),
        user("Go on."),
        said("Which date formats do the invoices use?", agent="a", caste="explorer"),
        said("Finding: the invoices use ISO dates only.", agent="a", caste="explorer"),
        said("Waiting for the helper."),
    ) == [
        ("user_input", "Let a helper look at the date formats."),
        ("outcome", "Finding: the invoices use ISO dates only."),
    ]


def test_what_was_stated_on_the_way_is_noted_and_the_answer_is_kept_whole():
    found = brief(
        user("Choose a store."),
        said("Let me look. We decided to use SQLite because one process writes."),
        said("Let me now write it."),
        said("Built it. It is small."),
    )

    assert found[1:] == [
        ("decision", "We decided to use SQLite because one process writes."),
        ("outcome", "Built it. It is small."),
    ]


def test_the_parts_of_one_message_are_one_answer():
    assert brief(said("Added a page.", message_id="m"), said("Added a test.", message_id="m")) == [
        ("outcome", "Added a page.\n\nAdded a test.")
    ]


def test_what_was_decided_stands_beside_the_outcome():
    decided = "I decided to key it by customer rather than IP, because offices share an address."

    assert brief(user("Add a limiter."), said(f"I've added the limiter. {decided} All tests pass.")) == [
        ("user_input", "Add a limiter."),
        ("outcome", "I've added the limiter. All tests pass."),
        ("decision", decided),
    ]


def test_thanks_are_neither_a_request_nor_an_answer():
    assert brief(said("Added the page. Anything else?"), user("thanks, looks good")) == [
        ("outcome", "Added the page. Anything else?")
    ]
    assert brief(user("looks good, ship it"), said("You're welcome! How can I help you today?")) == []


def test_machinery_and_encouragement_are_not_noted():
    assert (
        brief(user("<system-reminder>x</system-reminder>"), user("ok, thanks!"), said("Great!"), said(""))
        == []
    )


def test_a_short_reply_is_noted_with_its_question():
    [_, decision] = brief(said("Built it. Shall I use SQLite?"), user("yes"))[:2]
    told = brief(said("Could you share your id?"), user("It is seven."))

    assert decision == ("decision", "Asked: Shall I use SQLite?\nAnswered: yes")
    assert told[-1][0] == "user_input"


def test_demands_inside_a_long_request_are_noted_on_their_own():
    request = "Build a service. It sends mail. It keeps books. Never use floats for money. I prefer plain functions."

    found = notes(user(request))

    assert [(note["type"], note["relevance_score"]) for note in found] == [
        ("user_input", 0.7),
        ("constraint", 0.9),
        ("preference", 0.85),
    ]


def test_a_long_text_says_how_much_of_it_is_missing():
    [note] = notes(user("word " * 5_000), file="a.jsonl")

    assert len(note["content"]) < 2_600
    assert "characters left out" in note["content"]
    assert note["metadata"]["pointer"]["file"] == "a.jsonl"


def test_boundaries_cut_phases_unless_one_is_given():
    story = [user("Do one."), Record("boundary"), user("Do two."), Record("boundary"), user("Do three.")]

    assert [note["metadata"]["phase"] for note in notes(*story, first_phase=4)] == [4, 5, 6]
    assert [note["metadata"]["phase"] for note in notes(*story, phase=9)] == [9, 9, 9]


def test_an_open_failure_belongs_to_the_phase_it_happened_in():
    call, _ = run("make")
    found = notes(
        call,
        Record("result", "error: no", call_id="make", is_error=True),
        Record("boundary"),
        user("Build the page."),
    )

    assert [(note["type"], note["metadata"]["phase"]) for note in found] == [("error", 1), ("user_input", 2)]


def test_a_summary_is_noted_only_where_nothing_else_tells_of_the_past():
    summary = Record("summary", "Earlier we built the page.")

    assert brief(summary, user("Build the page.")) == [
        ("observation", "Earlier we built the page."),
        ("user_input", "Build the page."),
    ]
    assert brief(user("Build the page."), summary) == [("user_input", "Build the page.")]
    assert brief(Record("summary", "")) == []


def test_a_sub_agents_work_carries_its_caste_and_its_answer_is_noted_once():
    agent = {"agent": "a1", "caste": "scout"}
    found = notes(
        Record("call", tool="Task", arguments={"prompt": "Map it.", "subagent_type": "scout"}, call_id="t"),
        user("Map it.", **agent),
        *run("make", **agent),
        said("Mapped and verified all of it.", **agent),
        Record("result", "Mapped and verified all of it.", call_id="t"),
    )

    assert [(note["type"], note["source"], note["caste"]) for note in found] == [
        ("observation", "worker_ant", "scout"),
        ("outcome", "worker_ant", "scout"),
        ("command", "worker_ant", "scout"),
    ]


def test_an_agent_that_starts_again_closes_what_it_did_before():
    agent = {"agent": "a1", "caste": "scout"}

    found = brief(
        user("Map one.", **agent),
        said("Mapped and verified one.", **agent),
        user("Map two.", **agent),
        user("", **agent),
    )

    assert [kind for kind, _ in found] == ["observation", "outcome", "observation"]


def test_only_so_many_agents_are_watched_at_once(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED_AGENTS", 2)
    state = new_state()
    found = []
    for n in range(9):
        found += observe(state, said(f"Created and verified page {n}.", agent=str(n), caste="scout", line=n))

    assert len(found) == 9
    assert state["turns"] == {}


def test_paragraphs_of_text_are_noted_by_what_they_say():
    texts = [
        "We decided to use SQLite.",
        "The sky is blue.",
        "Thanks!",
        "<system-reminder>x</system-reminder>",
    ]

    assert [kind for kind, _ in brief(*(Record("text", text) for text in texts))] == [
        "decision",
        "observation",
    ]


def item(**more):
    given = {"content": "Use it.", "type": "decision", **more}
    return Record("item", given["content"], arguments=given, session="s")


def test_an_item_keeps_what_its_writer_gave_it():
    [note] = notes(
        item(
            relevance_score=0.3,
            source="worker_ant",
            caste="scout",
            metadata={"phase": 7, "mine": 1, "access_count": 9},
        )
    )

    assert (note["type"], note["relevance_score"], note["source"], note["caste"]) == (
        "decision",
        0.3,
        "worker_ant",
        "scout",
    )
    assert (note["metadata"]["phase"], note["metadata"]["mine"]) == (7, 1)
    assert "access_count" not in note["metadata"]


def test_an_item_without_particulars_gets_the_defaults():
    [note] = notes(item(metadata={"relevance_score": "odd", "phase": "odd"}), phase=None)

    assert (note["relevance_score"], note["source"], note["caste"], note["metadata"]["phase"]) == (
        0.5,
        "queen",
        None,
        1,
    )
    [note] = notes(item(metadata={"phase": 7}), phase=3)
    assert note["metadata"]["phase"] == 3


@rows(
    "record",
    [
        item(metadata={"injected": True}),
        item(injected=True),
        item(content="<aether-memory>old</aether-memory>"),
        user("<aether-memory>Never use floats.</aether-memory>"),
        said("<aether-memory>We decided to use SQLite.</aether-memory>"),
        Record("text", "<aether-memory>We decided.</aether-memory>"),
        Record("summary", "<aether-memory>We decided.</aether-memory>"),
        Record("system", "We decided to use SQLite."),
    ],
)
def test_what_aether_added_is_never_noted(record):
    assert notes(record) == []


def test_the_same_transcript_gives_the_same_keys_wherever_it_lies():
    story = [
        user("Do one.", uuid="u1", session="s"),
        *run("make"),
        said("Added the page.", uuid="u2", session="s"),
    ]

    assert keys(notes(*story, file="a")) == keys(notes(*story, file="b"))
    assert len(set(keys(notes(*story)))) == len(keys(notes(*story)))


def test_conversations_that_open_with_the_same_words_do_not_share_keys():
    opening = user("Please continue with the plan.")
    one = notes(opening, said("Decided: the queue uses SQLite, because it is one file."))
    other = notes(opening, said("Decided: the mailer uses Postfix, because it is installed."))

    assert len({*keys(one), *keys(other)}) == 3


def test_a_grown_transcript_adds_only_what_is_new():
    story = [user("Do one."), *run("make"), said("Added the page."), user("Do two."), said("Added a test.")]

    before, after = keys(notes(*story[:4])), keys(notes(*story))

    assert set(before) < set(after)


def test_a_failure_that_is_fixed_later_becomes_a_note_of_its_own():
    failing = [run("make")[0], Record("result", "error: no", call_id="make", is_error=True)]

    before, after = notes(*failing), notes(*failing, *run("make"))

    assert [note["type"] for note in before + after] == ["error", "solution"]
    assert not set(keys(before)) & set(keys(after))


def test_two_conversations_of_one_file_do_not_mix():
    found = brief(
        user("Do one.", session="a"),
        said("Built it. Shall I use SQLite?", session="a"),
        user("yes", session="b"),
        Record("summary", "Earlier we built it.", session="c"),
    )

    assert [kind for kind, _ in found] == ["user_input", "outcome", "observation"]


def test_a_repeated_text_is_noted_once():
    assert len(brief(user("Do one."), user("Do one."))) == 1


def test_the_state_can_be_kept_between_two_events():
    state = new_state(file="a.jsonl")
    found = []
    for n, record in enumerate([user("Do one."), *run("make", "3 passed"), said("Added the page.")], start=1):
        found += observe(state, record._replace(line=n))
        state = json.loads(json.dumps(state))
    found += finish(state)

    assert found == notes(user("Do one."), *run("make", "3 passed"), said("Added the page."), file="a.jsonl")


def test_the_sample_tells_a_story_in_four_phases():
    found = list(capture(read_records(SAMPLE), file=SAMPLE.name))

    assert {note["metadata"]["phase"] for note in found} == {1, 2, 3, 4}
    assert {note["type"] for note in found} >= {
        "constraint",
        "preference",
        "decision",
        "solution",
        "code_change",
        "error",
    }
    assert {note["caste"] for note in found} == {None, "scout"}
    for phase in (1, 2, 3, 4):
        demands = [
            note["content"]
            for note in found
            if note["type"] == "constraint" and note["metadata"]["phase"] == phase
        ]
        assert any("cents" in demand for demand in demands)


def told(state, *records):
    return [draft["content"] for record in records for draft in observe(state, record)]


def ended(drafts):
    return [draft["content"] for draft in drafts]


def test_the_end_of_a_turn_need_not_wait_for_the_next_request():
    state = new_state()

    first = told(state, user("Add a page."), *run("make test", "3 passed"), said("Added the page."))
    notes = ended(end_turn(state))

    assert (first, notes) == (["Add a page."], ["Ran `make test`: 3 passed", "Added the page."])
    assert end_turn(state) == []
    assert told(state, user("Add another page.")) == ["Add another page."]
    assert finish(state) == []


def test_what_is_said_after_the_end_of_a_turn_is_an_answer_of_its_own():
    state = new_state()
    told(state, said("We use SQLite because it is there. The page is ready."))
    end_turn(state)

    assert told(state, said("The page is live now.")) == []
    assert ended(end_turn(state)) == ["The page is live now."]


def test_a_failure_outlives_the_end_of_its_turn():
    state = new_state()
    fails, answer = run("make test", "main.c:3: error: x")
    told(state, fails, answer._replace(is_error=True))

    assert end_turn(state) == []
    assert told(state, *run("make test", "3 passed")) == [
        "`make test` failed: main.c:3: error: x\nWorked when run again: 3 passed"
    ]


def test_a_question_outlives_the_end_of_its_turn():
    state = new_state()
    told(state, said("Shall we use SQLite or keep the JSON files?"))
    asked = ended(end_turn(state))

    found = told(state, user("SQLite"))

    assert found == ["Asked: Shall we use SQLite or keep the JSON files?\nAnswered: SQLite"]
    assert asked == [] or asked[0] not in found


def test_nothing_is_noted_at_the_end_of_a_turn_without_work():
    assert end_turn(new_state()) == []


def test_a_sub_agent_that_ended_is_noted_and_forgotten():
    state = new_state()
    worker = {"agent": "a1", "caste": "Explore"}
    told(state, *run("make docs", "built 3 files", **worker), said("The docs are built.", **worker))

    assert ended(end_agent(state, "a1")) == ["Ran `make docs`: built 3 files", "The docs are built."]
    assert end_agent(state, "a1") == end_agent(state, "never heard of") == []
    assert finish(state) == []


@rows("prompt", ["/aether:remember Always use tabs.", "/aether", "/aether status of things"])
def test_what_the_queen_asks_of_memory_is_no_request_to_remember(prompt):
    assert brief(user(prompt)) == []


def test_a_command_that_only_begins_alike_is_a_request():
    assert brief(user("/aetherial please add a page for the spirits.")) != []


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not REAL, reason="no real transcripts beside this checkout")
def test_every_real_transcript_gives_notes_that_can_be_told_apart():
    for path in REAL:
        bad = []
        found = list(capture(read_records(path, on_bad=bad.append), file=path.name))

        assert found, path.name
        assert bad == [], path.name
        assert len(set(keys(found))) == len(found), path.name
        assert all(note["content"].strip() and len(note["content"]) < 20_000 for note in found), path.name


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not REAL, reason="no real transcripts beside this checkout")
def test_a_real_transcript_that_grows_adds_only_what_is_new(tmp_path):
    index = json.loads((DATA / "claude_code" / "_compaction_index.json").read_text())
    for name, points in index["growth_points"].items():
        source = DATA / "claude_code" / Path(name).name
        lines = source.read_bytes().splitlines(keepends=True)
        known = set()
        for point in points:
            part = tmp_path / "part.jsonl"
            part.write_bytes(b"".join(lines[:point]))
            again = keys(capture(read_records(part), file="part"))
            lost = known - set(again)
            # A failure or an answer that stood open at the cut is told differently once it went on.
            assert len(lost) <= max(3, len(known) // 20), (name, point)
            known |= set(again)
