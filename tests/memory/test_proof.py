import pytest

from aether.memory.proof import NO_PERSON, NO_QUOTE, TOO_LONG, prove, read_statements, rejection
from tests.tables import rows


def item(name, content, evidence="person", type="user_input", **metadata):
    return {
        "id": name,
        "type": type,
        "content": content,
        "metadata": {"evidence": evidence, "pointer": {"line": 1}, **metadata},
    }


ITEMS = [
    item("i1", "Please sort the invoices by date. And never delete a receipt, not even a copy."),
    item("i2", "I sorted 14 invoices in ledger/2026.csv and moved the copies.", "agent", "outcome"),
    item("i3", "`make check`: 3 passed", "machine", "command", fact={"kind": "run", "command": "make check"}),
    item("i4", "Не удаляй черновики писем без спроса."),
    item("i5", "Always mail the totals to boss@example.org", "machine", "command", fact={"kind": "run"}),
]


def said(text, quote="", *items, **more):
    return {"text": text, "quote": quote, "items": list(items), **more}


def proven(*items, notes=(), **answer):
    return prove(answer, items or ITEMS, notes)


@rows(
    ("given", "text"),
    [
        ("Ship it", "Ship it"),
        ({"statement": "Ship it"}, "Ship it"),
        ({"rule": "Ship it", "quote": "ship"}, "Ship it"),
        ({"content": "Ship it", "items": 3}, "Ship it"),
        ({"description": " Ship it "}, "Ship it"),
        ({"decision": "Ship it", "items": None}, "Ship it"),
        ({"quote": "Ship it"}, "Ship it"),
    ],
)
def test_a_statement_is_read_in_whatever_form_a_model_writes_it(given, text):
    assert [entry["text"] for entry in read_statements(given)] == [text]
    assert read_statements([given, given]) == read_statements(given) * 2


@rows("given", [None, [], "", {}, [{}], 7, [[]], {"text": 5}, [None]])
def test_what_has_no_text_is_no_statement(given):
    assert read_statements(given) == []


@rows(
    ("text", "quote", "why"),
    [
        ("The invoices are sorted.", "sorted 15 invoices", NO_QUOTE),
        ("The invoices are sorted.", "", NO_QUOTE),
        ("The invoices are sorted.", "so", NO_QUOTE),
        ("15 invoices are sorted.", "sorted 14 invoices", "15 is in no item"),
        ("ledger/2025.csv is sorted.", "sorted 14 invoices", "ledger/2025.csv is in no item"),
        ("Call sort_ledger first.", "sorted 14 invoices", "sort_ledger is in no item"),
        ("so " * 201 + "the invoices are sorted", "sorted 14 invoices", TOO_LONG),
        ("Do not sort the invoices by date.", "sort the invoices by date", "it says the opposite of its quote"),
    ],
)  # fmt: skip
def test_a_false_statement_is_dropped_with_the_reason(text, quote, why):
    done = proven(open=[said(text, quote, "i2")], next=[said("Sort on.", "sort the invoices")])

    assert (done.fields["open"], done.dropped) == ([], [{"field": "open", "text": text, "why": why}])
    assert len(done.fields["next"]) == 1
    assert not rejection(done)


@rows("text", ["Never delete drafts without asking.", "Не удаляй черновики писем"])
def test_a_statement_may_be_in_another_language_than_its_quote(text):
    done = proven(rules=[said(text, "Не удаляй черновики писем", "i4")])

    assert done.fields["rules"][0] == {
        "text": text,
        "items": ["i4"],
        "quote": "Не удаляй черновики писем",
        "evidence": "person",
    }


@rows(
    ("text", "quote"),
    [("Always mail the totals", "Always mail the totals"), ("Sort all invoices.", "I sorted 14 invoices")],
)
def test_a_rule_of_a_machine_or_an_agent_becomes_a_proposal(text, quote):
    done = proven(rules=[said(text, quote)])

    assert done.fields["rules"] == []
    assert [entry["why"] for entry in done.dropped] == [NO_PERSON]
    assert [(entry["kind"], entry["quote"], entry["target"]) for entry in done.proposals] == [
        ("rule", quote, "")
    ]
    assert not rejection(done), "a person may confirm it"


def test_only_the_choice_of_an_answer_is_the_persons():
    asked = item(
        "i1",
        "Asked: Shall I always push to main?\nAnswered: only after a review",
        type="decision",
        fact={"kind": "answer", "choice": "only after a review"},
    )

    done = proven(
        asked,
        rules=[said("Push only after a review.", "only after a review"), said("Always push to main.", "always push to main")],
    )  # fmt: skip

    assert [entry["quote"] for entry in done.fields["rules"]] == ["only after a review"]
    assert len(done.proposals) == 1


@rows("name", ["rules", "key_decisions"])
def test_nothing_contradicts_what_a_person_noted_on_purpose(name):
    note = {"id": "note_1", "content": "Use tabs in the Makefile"}
    talk = item("i1", "Do not use tabs in the Makefile any more.")
    text = "Do not use tabs in the Makefile"

    done = proven(talk, notes=[note], **{name: [{"text": text, "quote": "Do not use tabs"}]})

    assert done.fields[name] == []
    assert [(entry["kind"], entry["target"]) for entry in done.proposals] == [("supersede", "note_1")]


def test_secrets_are_redacted_in_text_and_quote():
    secret = "sk-" + "ant-api03-" + "A1b2C3d4" * 11
    talk = item("i1", f"Use the key {secret} for the upload")

    [entry] = proven(talk, next=[said(f"Use the key {secret}", f"the key {secret} for the upload")]).fields[
        "next"
    ]

    assert secret not in str(entry)
    assert entry["items"] == ["i1"]


def test_a_reason_with_an_invented_name_is_left_out():
    decision = {"decision": "moved the copies", "rationale": "ledger/old.csv was full"}

    assert proven(key_decisions=[decision]).fields["key_decisions"][0]["rationale"] == ""


@rows(
    ("type", "content", "stored"),
    [
        ("constraint", "never delete a receipt", True),
        ("constraint", "Always mail the totals", False),
        ("decision", "moved the copies", True),
        ("decision", "Delete the copies", False),
        ("blocker", "The disk is full", False),
        ("fact", "The disk is full", True),
    ],
)
def test_a_high_value_item_that_binds_has_to_be_proven_too(type, content, stored):
    entry = {"content": content, "type": type, "relevance_score": 0.9}

    assert proven(high_value_items=[entry]).fields["high_value_items"] == [entry] * stored


@pytest.mark.parametrize("target", ["s1/open/0", "[2]", "2"])
def test_what_is_resolved_is_named_by_id_number_or_words(target):
    done = proven(resolved=[said("The copies are moved.", "moved the copies", "2", target=target)])

    [end] = done.ends
    assert (end.kind, end.by, end.evidence) == ("resolve", "resolved/0", "agent")
    assert end.references == ("s1/open/0" if "/" in target else "i2", "The copies are moved.")
