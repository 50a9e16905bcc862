import json

import pytest

from aether.errors import InvalidInput
from aether.memory.answers import MAX_CHARS, check_answer, unwrap
from tests.tables import rows

SESSION = {
    "id": "phase_1",
    "session_id": "phase_1",
    "compressed_at": "2026-03-01T12:00:00Z",
    "summary": "The importer streams and its memory stays flat.",
    "key_decisions": [{"decision": "Stream the import", "rationale": "Whole files took 1.2 GB"}],
    "outcomes": [{"result": "Memory is flat", "impact": "Large transcripts import"}],
    "high_value_items": [{"content": "Stream the import", "relevance_score": 0.9, "type": "decision"}],
}
TEXT = json.dumps(SESSION, indent=2)


def changed(**fields):
    return {**SESSION, **fields}


def faults(answer, **options):
    with pytest.raises(InvalidInput) as caught:
        check_answer(answer, options.get("handoff"), 1)
    return str(caught.value)


@rows(
    "answer",
    [
        SESSION,
        TEXT,
        "\ufeff" + TEXT,
        f"```json\n{TEXT}\n```",
        f"Here is the session {{as asked}}:\n\n{TEXT}\n\nLet me know {{if}} it helps.",
        f"[{TEXT}]",
        json.dumps({"session": SESSION}),
        TEXT + "\n" + TEXT,
        'A {"note": "small"} first. ' + TEXT,
        TEXT.replace('"decision"\n    }\n  ]\n}', '"decision",\n    },\n  ],\n}'),
    ],
)
def test_the_session_is_found_however_it_is_wrapped(answer):
    assert unwrap(answer) == SESSION


@rows(
    ("answer", "said"),
    [
        ("I could not do it.", "no complete JSON object"),
        ("", "no complete JSON object"),
        (TEXT[:-40], "cut off"),
        ('{"summary": NaN}', "cut off"),
        ('{"summary": "a",,}', "cut off"),
        ("[" * 5, "cut off"),
        (TEXT + TEXT.replace("phase_1", "phase_2"), "2 different JSON objects"),
        ("x" * (MAX_CHARS + 1), "characters"),
        ('{"summary": ' + "[" * 40 + "]" * 40 + "}", "levels deep"),
        ('{"a":' * 100_000, "too deep"),
        ({"summary": {1, 2}}, "not JSON"),
        ({"summary": float("nan")}, "not JSON"),
    ],
)
def test_an_answer_without_exactly_one_session_is_rejected(answer, said):
    with pytest.raises(InvalidInput, match=said):
        unwrap(answer)


def test_all_faults_are_named_at_once():
    reported = faults(
        {
            "id": 7,
            "compressed_at": "soon",
            "summary": ["x"],
            "key_decisions": [{"decision": "a", "rationale": "b"}, 5, {"decision": "c", "rationale": ["d"]}],
            "outcomes": {"result": "x"},
            "high_value_items": [7, {"relevance_score": 1}],
        }
    )

    for fault in (
        "9 faults", "session_id is missing", "id is 7", "compressed_at: 'soon' is not a time",
        "summary is ['x']", "key_decisions[1] is 5", "key_decisions[2].rationale is ['d']",
        "outcomes is {'result': 'x'}", "high_value_items[0].content is missing",
        "high_value_items[1].content is missing",
    ):  # fmt: skip
        assert fault in reported


def test_rejecting_an_empty_object_names_every_required_field():
    reported = faults({"summary": None})

    for name in ("id", "session_id", "compressed_at", "summary", "key_decisions", "outcomes"):
        assert f"{name} is missing" in reported


@rows(
    ("given", "kept"),
    [
        ("Stream", {"decision": "Stream", "rationale": ""}),
        ({"decision": "Stream"}, {"decision": "Stream", "rationale": ""}),
        ({"text": "Stream", "rationale": None}, {"decision": "Stream", "rationale": ""}),
        (
            {"decision": "Stream", "rationale": "r", "quote": "q", "items": 3, "supersedes": "s1"},
            {"decision": "Stream", "rationale": "r", "quote": "q", "items": ["3"], "supersedes": "s1"},
        ),
    ],
)
def test_a_decision_is_read_with_its_proof_and_needs_no_reason(given, kept):
    assert check_answer(changed(key_decisions=[given]), None, 1).fields["key_decisions"] == [kept]


@rows(
    ("given", "kept"),
    [("x", {"result": "x", "impact": ""}), ({"result": "x"}, {"result": "x", "impact": ""})],
)
def test_an_outcome_needs_no_impact(given, kept):
    assert check_answer(changed(outcomes=[given]), None, 1).fields["outcomes"] == [kept]


@rows(
    ("given", "kept", "noted"),
    [
        (0.7, 0.7, False),
        ("0.9", 0.9, False),
        ("85%", 0.85, False),
        (1.4, 1.0, True),
        (-3, 0.0, True),
        ("high", 0.5, True),
        (None, 0.5, True),
        (True, 0.5, True),
        (10**400, 0.5, True),
        ("inf", 0.5, True),
    ],
)
def test_a_relevance_is_read_or_corrected_with_a_finding(given, kept, noted):
    checked = check_answer(
        changed(high_value_items=[{"content": "x", "relevance_score": given, "type": "fact"}]), None, 1
    )

    assert checked.fields["high_value_items"][0]["relevance_score"] == kept
    assert [each.where for each in checked.findings] == ["high_value_items[0].relevance_score"] * noted
