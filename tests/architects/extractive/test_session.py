"""The extractive architect: what a session holds, where, and in whose words."""

import json

from aether.architects.base import Request, Settings
from aether.architects.extractive import NAME, complete
from aether.architects.extractive.session import NOTHING
from aether.tokens.counters import session_tokens
from tests.architects.extractive.handoffs import PREPARED_AT, count, handoff, item, session, signal, texts
from tests.tables import rows

FILLER = "Entry {n} of the long table holds the colour {n} of the house of number {n}."


def filler(many):
    return [item(FILLER.format(n=n)) for n in range(many)]


def test_the_completion_names_the_backend_and_costs_nothing():
    request = Request("session", handoff("Built the parser."), "", {}, 100)

    done = complete(request, settings=Settings(), count=count)

    assert (done.backend, done.model, done.cost_usd) == (NAME, "", None)


def test_what_fits_is_kept_as_it_is():
    data = handoff(
        item("Make it fast.", "user_input"), item("Never push.", "constraint"), item("Use SQLite.", "decision"),
        item("It is fast now.", "outcome"), item("Saw the log.\n\n  Twice.", "observation"), target=400,
    )  # fmt: skip

    assert {key: value for key, value in session(data).items() if key not in ("id", "session_id")} == {
        "compressed_at": PREPARED_AT,
        "phase": 3,
        "summary": "Make it fast.",
        "key_decisions": [{"decision": "Use SQLite.", "rationale": ""}],
        "outcomes": [{"result": "It is fast now.", "impact": ""}],
        "high_value_items": [
            {"content": "Never push.", "relevance_score": 0.5, "type": "constraint"},
            {"content": "Saw the log.\n\n  Twice.", "relevance_score": 0.5, "type": "observation"},
        ],
    }


def test_it_meets_the_target_and_uses_it():
    data = handoff(*filler(200))

    tokens = session_tokens(session(data), count)

    assert 0.9 * data["target_tokens"] < tokens <= data["target_tokens"]


def test_the_mark_of_a_cut_is_no_line_of_an_output():
    output = "\n".join([FILLER.format(n=1), "…", *(FILLER.format(n=n) for n in range(2, 12))])
    written = [
        session(handoff(item(output, "outcome", evidence="machine"), target=most)) for most in range(4, 90)
    ]

    assert all("…" not in texts(data) for data in written)


def test_what_binds_is_kept_whole_even_over_the_target():
    bound = [item(f"Rule {n}: {'never ' * 40}push.", kind) for n, kind in enumerate(("constraint", "decision", "preference", "blocker"))]  # fmt: skip
    data = handoff(*bound, *filler(5), target=10)

    kept = texts(session(data))

    assert all(one["content"] in kept for one in bound)


def test_only_items_of_type_decision_are_decisions_and_no_statement_is_written():
    made = session(handoff(item("We decided to use SQLite.", "observation"), item("Use tabs.", "decision")))

    assert made["key_decisions"] == [{"decision": "Use tabs.", "rationale": ""}]
    assert not {"state", "rules", "open", "next", "resolved"} & made.keys()


def test_the_summary_is_the_newest_request_and_the_ends_of_the_last_message():
    account = "The importer streams now.\n\n" + "\n\n".join(
        FILLER.format(n=n) for n in range(30)
    ) + "\n\nThe release of Friday can go out."  # fmt: skip
    data = handoff(
        item("Make the importer fast, please.", "user_input", evidence="person"),
        item("Also never load whole files.", "user_input", evidence="person"),
        item(account, "outcome", evidence="agent"),
    )

    assert session(data)["summary"].splitlines() == [
        "Also never load whole files.", "The importer streams now.", "The release of Friday can go out.",
    ]  # fmt: skip


def test_a_persons_words_come_before_an_agents():
    said = [item(f"So do it as we did it the last time, and so on, {word}.", "user_input", evidence="person") for word in ("one", "two", "three")]  # fmt: skip
    rich = [
        item(f"The loader{n} of `src/part{n}/load{n}.py` reads {n * 7919} rows of Lisbon{n}.")
        for n in range(60)
    ]

    kept = "\n".join(texts(session(handoff(*rich[:30], *said, *rich[30:]))))

    assert all(one["content"] in kept for one in said)


def test_every_changed_file_is_named():
    files = [
        item(f"Changed src/part{n}.py: run{n}\n{'x' * 200}", "code_change", evidence="machine")
        for n in range(40)
    ]
    kept = "\n".join(texts(session(handoff(*files, *filler(100)))))

    assert all(f"src/part{n}.py" in kept for n in range(40))


def test_of_a_plan_only_the_newest_holds():
    plans = [item(f"[pending] step {n}", "observation", evidence="machine", role="plan") for n in range(2)]

    kept = "\n".join(texts(session(handoff(*plans, target=400))))

    assert "step 1" in kept
    assert "step 0" not in kept


def test_what_ended_or_was_injected_is_left_out():
    data = handoff(
        item("Never push.", "constraint", ended_at=PREPARED_AT), item("Old memory.", injected=True),
        item("Before. <aether-memory>hidden</aether-memory> After."), target=400,
    )  # fmt: skip
    made = session(data | {"protected": []})

    assert texts(made) == ["Before. \n\n After."]


def test_an_injected_rule_that_is_protected_stays_and_says_so():
    data = handoff(item("Use tabs.", "constraint", injected=True), item("Done."), protected=[0], target=400)

    assert session(data)["high_value_items"] == [
        {"content": "Use tabs.", "relevance_score": 0.5, "type": "constraint", "injected": True}
    ]


def test_protected_content_without_an_item_is_kept():
    data = handoff("Built it.", target=400)
    data["protected"].append({"id": "gone", "content": "Keep the seal.", "why": "test"})

    assert {"content": "Keep the seal.", "relevance_score": 1.0, "type": "constraint"} in session(data)["high_value_items"]  # fmt: skip


def test_a_protected_text_is_kept_even_if_an_item_before_it_has_the_same_words():
    data = handoff("Keep the seal.", item("Keep the seal.", "constraint"), target=0, protected=[1])

    assert [entry["content"] for entry in session(data)["high_value_items"]] == ["Keep the seal."]


def test_a_repeated_text_is_kept_once():
    assert texts(session(handoff("Built the parser.", "Built the parser.", target=400))) == [
        "Built the parser."
    ]


def test_in_a_talk_each_change_of_the_speaker_is_named():
    turns = [f"{('Ann', 'Bob')[n % 2]}: {FILLER.format(n=n)}" for n in range(60)]
    data = handoff(*turns)
    made = session(data)

    lines = [line for text in texts(made) for line in text.splitlines()]
    assert session_tokens(made, count) <= data["target_tokens"]
    assert all(line.startswith(("Ann: ", "Bob: ", "Entry ")) for line in lines)
    assert any(line.startswith("Ann: ") for line in lines)


def test_an_answer_outweighs_its_question_and_what_nobody_asked():
    talk = [
        turn
        for n in range(20)
        for turn in (
            f"Ann: Which of the two towns has more of number {n}?", f"Bob: The town of Lisbon{n} has it.",
            f"Ann: Fine, take that for number {n}.", f"Bob: The town of Madrid{n} has it.",
        )
    ]  # fmt: skip
    kept = "\n".join(texts(session(handoff(*talk, target=200))))

    assert kept.count("Lisbon") > 2 * kept.count("Which")
    assert kept.count("Lisbon") > kept.count("Madrid")


def test_a_signal_decides_between_equals():
    equal = [f"The parser{n} reads the file of part{n}." for n in range(30)]
    steered = session(
        handoff(
            *equal, "The lexer0 reads the file of part30.", target=40, signals=[signal("FOCUS", "lexer0")]
        )
    )

    assert "lexer0" in "\n".join(texts(steered))


def test_the_summary_repeats_an_entry_if_nothing_else_is_left_and_costs_nothing():
    data = handoff(item("Never push to main without asking.", "constraint"), protected=[0])
    made = session(data)

    assert made["summary"] == made["high_value_items"][0]["content"]
    assert session_tokens(made, count) == data["total_tokens"]


@rows("items", [(), (" \n ",), ("<aether-memory>x</aether-memory>",)])
def test_an_empty_handoff_gives_a_summary_that_says_so(items):
    made = session(handoff(*items))

    assert made["summary"] == NOTHING
    assert made["high_value_items"] == []


def test_of_a_summarised_handoff_nothing_moves_into_the_summary():
    data = handoff(item("Make it fast.", "user_input"), item("It is fast.", "outcome"), target=400)

    made = session(data, summarised=True)

    assert [one["content"] for one in made["high_value_items"]] == ["Make it fast."]
    assert [one["result"] for one in made["outcomes"]] == ["It is fast."]


def test_ids_and_times_come_from_the_handoff_and_decide_nothing():
    data = handoff(*filler(50))
    other = data | {"compression_id": "phase_3_ffffffff_a_much_longer_name", "prepared_at": "2027"}

    assert texts(session(data)) == texts(session(other))
    assert json.loads(json.dumps(session(other)))["session_id"] == other["compression_id"]
