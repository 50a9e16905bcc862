import json
from pathlib import Path

from aether.schemas.migrations import migrate
from tests.tables import rows

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "memory" / "old-v2"
EPOCH = "1970-01-01T00:00:00.000000Z"


def shipped_oddities():
    return migrate("memory", json.loads((EXAMPLES / "shipped_oddities.json").read_text()))


def items(*raw):
    document, findings = migrate("memory", {"working_memory": {"items": list(raw)}})
    return document["working_memory"]["items"], document.get("unplaced", []), findings


def sessions(*raw):
    document, _ = migrate("memory", {"short_term_memory": {"sessions": list(raw)}})
    return document["short_term_memory"]["sessions"], document.get("unplaced", [])


def patterns(*raw):
    document, _ = migrate("memory", {"long_term_memory": {"patterns": list(raw)}})
    return document["long_term_memory"]["patterns"], document.get("unplaced", [])


def test_counts_are_taken_anew():
    document, _ = shipped_oddities()
    working, short = document["working_memory"], document["short_term_memory"]

    assert working["current_tokens"] == sum(item["token_count"] for item in working["items"]) == 46
    assert short["current_sessions"] == len(short["sessions"]) == 3


def test_sessions_under_one_id_are_told_apart():
    document, findings = shipped_oddities()

    ids = [
        (s["id"], s["session_id"], s["compressed_at"][14:19])
        for s in document["short_term_memory"]["sessions"]
    ]
    assert ids == [
        ("phase_1_test", "phase_1_test", "54:32"),
        ("phase_1_test_2", "phase_1_test_2", "58:10"),
        ("phase_2", "phase_2", "00:00"),
    ]
    said = [(f.code, f.where) for f in findings if f.where.endswith("sessions") and "dupl" in f.code]
    place = "memory#/short_term_memory/sessions"
    assert said == [("duplicate_renamed", place), ("duplicate_dropped", place)]


def test_what_has_no_place_is_kept():
    document, _ = shipped_oddities()

    assert document["unplaced"] == [
        {"where": "/working_memory/items/5", "value": "a note that somebody left here"}
    ]
    assert document["compression"]["triggers"] == {
        "phase_boundary": True,
        "token_threshold": True,
        "manual": True,
    }


def test_what_is_missing_comes_from_the_initial_document():
    document, _ = shipped_oddities()

    assert document["$schema"] == "Aether Triple-Layer Memory v2.0"
    assert document["compression"]["preserves"] == ["key_decisions", "outcomes"]
    assert document["search"]["max_results_per_layer"] == 20
    assert document["metrics"] == {
        "total_compressions": 4,
        "total_pattern_extractions": 4,
        "compression_ratio_total": 9.32,
        "average_compression_ratio": 2.33,
        "working_memory_evictions": 0,
        "short_term_evictions": 0,
    }


def test_an_item_of_little_more_than_text_is_an_item():
    (item,), unplaced, _ = items({"content": "hello", "own": 1})

    assert unplaced == []
    assert item == {
        "id": "wm_v2_0",
        "type": "observation",
        "content": "hello",
        "own": 1,
        "token_count": 2,
        "metadata": {
            "timestamp": EPOCH,
            "relevance_score": 0.5,
            "access_count": 0,
            "last_accessed": EPOCH,
            "source": "queen",
            "caste": None,
        },
        "associative_links": [],
    }


@rows("raw", [{}, {"content": ""}, {"content": 3}, {"content": None}, [], None])
def test_an_item_without_text_is_set_aside(raw):
    assert items(raw)[:2] == ([], [{"where": "/working_memory/items/0", "value": raw}])


def test_times_without_a_zone_are_utc():
    (item,), _, _ = items({"content": "x", "metadata": {"timestamp": "2026-01-31T23:01:00"}})

    assert item["metadata"]["timestamp"] == "2026-01-31T23:01:00.000000Z"
    assert item["metadata"]["last_accessed"] == "2026-01-31T23:01:00.000000Z"


def test_options_that_have_a_meaning_now_have_it_or_go_aside():
    metadata = {"phase": "2", "protected": "yes", "injected": True, "pointer": {"line": 1}, "mood": "good"}

    (item,), unplaced, _ = items({"content": "x", "metadata": metadata})

    kept = {key: item["metadata"].get(key) for key in metadata}
    assert kept == {"phase": 2, "protected": None, "injected": True, "pointer": {"line": 1}, "mood": "good"}
    assert unplaced == [{"where": "/working_memory/items/0/metadata/protected", "value": "yes"}]


def test_links_get_what_they_lack():
    (item,), unplaced, _ = items(
        {"id": "wm_1", "content": "x", "associative_links": [{"target_id": "s1"}, {"link_id": "nowhere"}]}
    )

    assert item["associative_links"] == [
        {
            "link_id": "link_v2_wm_1_0",
            "target_id": "s1",
            "target_type": "short_term_session",
            "link_type": "related_to",
            "created_at": EPOCH,
        }
    ]
    assert [entry["value"] for entry in unplaced] == [{"link_id": "nowhere"}]


def test_an_empty_session_is_a_session():
    (session,), _ = sessions({})

    assert session == {
        "id": "session_v2_0",
        "session_id": "session_v2_0",
        "phase": 0,
        "compressed_at": EPOCH,
        "original_tokens": 0,
        "compressed_tokens": 0,
        "compression_ratio": 0,
        "summary": "",
        "key_decisions": [],
        "outcomes": [],
        "high_value_items": [],
        "metadata": {},
    }


def test_an_id_that_is_no_text_is_set_aside():
    (session,), unplaced = sessions({"id": ["x"], "session_id": "s1"})

    assert (session["id"], session["session_id"]) == ("s1", "s1")
    assert unplaced == [{"where": "/short_term_memory/sessions/0/id", "value": ["x"]}]


def test_a_memory_without_words_about_its_triggers_gets_ours():
    document, _ = migrate("memory", {"metrics": {"compression_ratio_total": 5.0}})

    assert document["compression"]["triggers"] == ["phase_boundary", "token_threshold", "manual"]
    assert document["metrics"]["compression_ratio_total"] == 5.0


def test_related_patterns_are_ids():
    (one, two), unplaced = sessions(
        {"id": "a", "metadata": {"related_patterns": ["p1"]}},
        {"id": "b", "metadata": {"related_patterns": [1]}},
    )

    assert (one["metadata"], two["metadata"]) == ({"related_patterns": ["p1"]}, {})
    assert [entry["value"] for entry in unplaced] == [[1]]


def test_the_ratio_is_computed_not_believed():
    (session,), _ = sessions(
        {"id": "s", "original_tokens": "950", "compressed_tokens": 380.4, "compression_ratio": "9x"}
    )

    assert (session["original_tokens"], session["compressed_tokens"], session["compression_ratio"]) == (
        950,
        380,
        2.5,
    )


@rows(
    ("raw", "phase"),
    [
        ({"id": "phase_3_test"}, 3),
        ({"id": "phase_3", "phase": "4"}, 4),
        ({"session_id": "x", "phase": 1.5}, 0),
    ],
)
def test_a_session_knows_its_phase(raw, phase):
    assert sessions(raw)[0][0]["phase"] == phase


def test_bare_texts_are_statements():
    (session,), unplaced = sessions(
        {"key_decisions": ["Use JSON", {"rationale": "none"}], "outcomes": [{"result": "Done", "impact": 3}]}
    )

    assert session["key_decisions"] == [{"decision": "Use JSON", "rationale": ""}]
    assert session["outcomes"] == [{"result": "Done", "impact": ""}]
    assert [entry["value"] for entry in unplaced] == [{"rationale": "none"}, 3]


def test_high_value_items_need_text():
    (session,), unplaced = sessions(
        {"high_value_items": [{"content": "Keep", "relevance_score": 7}, {"type": "x"}]}
    )

    assert session["high_value_items"] == [{"content": "Keep", "relevance_score": 1.0, "type": "observation"}]
    assert [entry["value"] for entry in unplaced] == [{"type": "x"}]


def test_a_pattern_keeps_what_it_is_related_to():
    document, _ = shipped_oddities()

    (pattern,) = document["long_term_memory"]["patterns"]
    assert pattern["metadata"] == {
        "context": "builders",
        "related_castes": ["builder"],
        "related_phases": [1, 2],
    }
    assert pattern["associative_links"][0]["target_id"] == "phase_1_test"


def test_evidence_of_another_shape_is_set_aside():
    found, unplaced = patterns({"pattern": "x", "metadata": {"evidence": ["s1"]}})

    assert "evidence" not in found[0]["metadata"]
    assert unplaced == [{"where": "/long_term_memory/patterns/0/metadata/evidence", "value": ["s1"]}]


@rows(
    ("target", "type"),
    [("wm_1", "working_memory_item"), ("pattern_1", "long_term_pattern"), ("phase_1", "short_term_session")],
)
def test_a_link_of_an_unknown_kind_goes_by_the_id(target, type):
    links = [{"target_id": target, "target_type": "thing"}]

    (item,), unplaced, _ = items({"content": "x", "associative_links": links})

    assert item["associative_links"][0]["target_type"] == type
    assert [entry["value"] for entry in unplaced] == ["thing"]


def test_an_odd_pattern_gets_what_it_lacks():
    (pattern,), unplaced = patterns(
        {
            "pattern": "Say less",
            "type": "focus_preference",
            "occurrences": 0,
            "metadata": {"related_phases": ["x"]},
        },
        {"type": "constraint"},
    )

    assert (pattern["id"], pattern["type"], pattern["confidence"], pattern["occurrences"]) == (
        "pattern_v2_0",
        "preference",
        0.7,
        1,
    )
    assert pattern["created_at"] == pattern["last_seen"] == EPOCH
    assert [entry["value"] for entry in unplaced] == ["focus_preference", "x", {"type": "constraint"}]
