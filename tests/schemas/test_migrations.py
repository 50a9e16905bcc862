"""Documents of version 2 become documents of today: nothing is lost, and odd values are set aside."""

import copy
import json
from pathlib import Path

import pytest

from aether.errors import InvalidDocument
from aether.schemas import check
from aether.schemas.migrations import current
from aether.store.documents import NAMES
from tests.tables import rows

ROOT = Path(__file__).resolve().parents[2]
ORIGINAL = ["memory", "pheromones", "COLONY_STATE"]
OLD = sorted((ROOT / "tests" / "examples").glob("*/old-v2/*.json"))


def shipped(name):
    return json.loads((ROOT / "data" / f"{name}.json").read_text())


@rows("path", OLD, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_files_of_the_original_load(path):
    name, old = path.parent.parent.name, json.loads(path.read_text())
    untouched = copy.deepcopy(old)

    document = current(name, old)

    assert old == untouched
    assert document["schema_version"] == 3
    assert check.findings(name, document) == []
    assert current(name, old) == document


@rows("name", ORIGINAL)
def test_an_odd_file_of_the_original_becomes_its_golden_document(name):
    old = json.loads((EXAMPLES / name / "old-v2" / "shipped_oddities.json").read_text())

    assert current(name, old) == json.loads(
        (ROOT / "tests" / "golden" / "from_v2" / f"{name}.json").read_text()
    )


@rows("name", ORIGINAL)
def test_a_document_of_today_is_returned_as_it_is(name):
    document = shipped(name)

    assert current(name, document) is document


@rows("name", ORIGINAL)
@rows("version", [4, 3.5, 10**30])
def test_a_document_of_a_newer_aether_is_left_untouched(name, version):
    with pytest.raises(InvalidDocument, match=r"written by a newer aether .*Upgrade aether") as caught:
        current(name, {"schema_version": version})

    assert caught.value.where == f"{name}.json"


@rows("name", ORIGINAL)
@rows("odd", [None, [], "text", 3, [{"items": 1}]])
def test_what_is_no_document_is_set_aside_whole(name, odd):
    document = current(name, odd)

    assert document == {**shipped(name), "unplaced": [{"where": "/", "value": odd}]}


EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
EPOCH = "1970-01-01T00:00:00.000000Z"


def pheromones(**fields):
    document = current("pheromones", fields)
    assert check.findings("pheromones", document) == []
    return document


def colony(**fields):
    document = current("COLONY_STATE", fields)
    assert check.findings("COLONY_STATE", document) == []
    return document


def set_aside(document):
    return [entry["value"] for entry in document.get("unplaced", [])]


def items(*raw):
    document = current("memory", {"working_memory": {"items": list(raw)}})
    return document["working_memory"]["items"], document.get("unplaced", [])


def sessions(*raw):
    document = current("memory", {"short_term_memory": {"sessions": list(raw)}})
    return document["short_term_memory"]["sessions"], document.get("unplaced", [])


def patterns(*raw):
    document = current("memory", {"long_term_memory": {"patterns": list(raw)}})
    return document["long_term_memory"]["patterns"], document.get("unplaced", [])


def test_an_item_of_little_more_than_text_is_an_item():
    (item,), unplaced = items({"content": "hello", "own": 1})

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


def test_options_that_have_a_meaning_now_have_it_or_go_aside():
    metadata = {"phase": "2", "protected": "yes", "injected": True, "pointer": {"line": 1}, "mood": "good"}

    (item,), unplaced = items({"content": "x", "metadata": metadata})

    kept = {key: item["metadata"].get(key) for key in metadata}
    assert kept == {"phase": 2, "protected": None, "injected": True, "pointer": {"line": 1}, "mood": "good"}
    assert unplaced == [{"where": "/working_memory/items/0/metadata/protected", "value": "yes"}]


def test_links_get_what_they_lack():
    (item,), unplaced = items(
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


def test_the_ratio_is_computed_not_believed():
    (session,), _ = sessions(
        {"id": "s", "original_tokens": "950", "compressed_tokens": 380.4, "compression_ratio": "9x"}
    )

    assert (session["original_tokens"], session["compressed_tokens"], session["compression_ratio"]) == (
        950,
        380,
        2.5,
    )


@pytest.mark.parametrize(
    ("raw", "phase"),
    [
        ({"id": "phase_3_test"}, 3),
        ({"id": "phase_3", "phase": "4"}, 4),
        ({"session_id": "x", "phase": "soon"}, 0),
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
        {"high_value_items": [{"content": "Keep", "relevance_score": "0.9"}, {"type": "x"}]}
    )

    assert session["high_value_items"] == [{"content": "Keep", "relevance_score": 0.9, "type": "observation"}]
    assert [entry["value"] for entry in unplaced] == [{"type": "x"}]


@pytest.mark.parametrize(
    ("target", "type"),
    [("wm_1", "working_memory_item"), ("pattern_1", "long_term_pattern"), ("phase_1", "short_term_session")],
)
def test_a_link_of_an_unknown_kind_goes_by_the_id(target, type):
    links = [{"target_id": target, "target_type": "thing"}]

    (item,), unplaced = items({"content": "x", "associative_links": links})

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
    assert [entry["value"] for entry in unplaced] == ["focus_preference", 0, "x", {"type": "constraint"}]


def test_a_signal_of_an_unknown_type_does_not_fade():
    (signal,) = pheromones(active_pheromones=[{"type": "SHOUT"}])["active_pheromones"]

    assert signal == {
        "type": "SHOUT",
        "id": "shout_v2_0",
        "strength": 0.5,
        "created_at": EPOCH,
        "decay_rate": None,
        "metadata": {},
    }


def test_odd_words_about_a_signal_are_set_aside():
    metadata = {"source": 3, "caste": None, "phase": "soon", "own": [1]}

    document = pheromones(active_pheromones=[{"type": "FOCUS", "metadata": metadata}])

    assert document["active_pheromones"][0]["metadata"] == {"caste": None, "own": [1]}
    assert set_aside(document) == [3, "soon"]


def test_odd_tables_are_set_aside():
    document = pheromones(
        pheromone_types={"FOCUS": 3}, caste_sensitivities={"builder": {"FOCUS": "x"}, "ant": 1}
    )

    assert document["pheromone_types"]["FOCUS"]["half_life_seconds"] == 3600
    assert document["caste_sensitivities"]["builder"]["FOCUS"] == 1.0
    assert set_aside(document) == [3, "x", 1]


def test_odd_words_about_a_phase_or_a_check_in_are_set_aside():
    document = colony(
        colony_status={"queen_checkin": {"phase": 1, "status": "seen"}},
        phases={"roadmap": [{"id": 2, "phase": "soon", "status": "blue"}]},
    )

    assert document["phases"]["roadmap"][0]["phase"] == 2
    assert sorted(set_aside(document)) == ["blue", "seen", "soon"]


def test_odd_completed_phases_are_read_or_set_aside():
    document = colony(colony_status={"phases_completed": ["2", {"id": 3, "name": "x"}, "soon", 2]})

    assert document["colony_status"]["phases_completed"] == [2, 3]
    assert set_aside(document) == [{"id": 3, "name": "x"}, "soon"]


def test_workers_that_cannot_be_named_are_set_aside():
    document = colony(colony_status={"workers": [{"id": "w1"}, {"caste": "scout"}]})

    assert document["colony_status"]["workers"] == [
        {"id": "w1", "caste": None, "task": None, "registered_at": EPOCH}
    ]
    assert document["colony_status"]["workers_registered"] == 1


@pytest.mark.parametrize(
    ("raw", "status", "decision"),
    [
        ({"phase": 1}, "awaiting_review", None),
        (
            {"phase": "1", "queen_decision": "adjust", "decided_at": "soon", "note": "well"},
            "decided",
            "adjust",
        ),
        ({"phase": 1, "queen_decision": "approved"}, "decided", None),
    ],
)
def test_check_ins_are_read(raw, status, decision):
    checkin = colony(colony_status={"queen_checkin": raw})["colony_status"]["queen_checkin"]

    assert (checkin["phase"], checkin["status"], checkin["queen_decision"]) == (1, status, decision)


@pytest.mark.parametrize("raw", [{"status": "awaiting_review"}, 3])
def test_a_check_in_without_a_phase_is_set_aside(raw):
    document = colony(colony_status={"queen_checkin": raw})

    assert document["colony_status"]["queen_checkin"] is None
    assert set_aside(document) == [raw]


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ("2026-02-01T01:00:00-05:00", "2026-02-01T06:00:00.000000Z"),
        ("2026-02-01 06:00:00", "2026-02-01T06:00:00.000000Z"),
        ("0001-01-01T00:00:00", EPOCH),
        ("soon", EPOCH),
        (12, EPOCH),
    ],
)
def test_times_are_read_or_start_with_1970(raw, kept):
    (item,), unplaced = items({"content": "x", "metadata": {"timestamp": raw}})

    assert item["metadata"]["timestamp"] == kept
    assert bool(unplaced) == (kept == EPOCH)


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        ("wm_1769904000", "2026-02-01T00:00:00.000000Z"),
        ("wm_1772359200000001_9f86d081", "2026-03-01T10:00:00.000001Z"),
        ("pattern_1769904000_0cc175b9", "2026-02-01T00:00:00.000000Z"),
        ("phase_1_test", EPOCH),
    ],
)
def test_an_id_may_say_when_it_was_made(id, expected):
    (item,), _ = items({"id": id, "content": "x"})

    assert item["metadata"]["timestamp"] == expected


def test_repeated_ids_are_renamed_and_exact_copies_dropped():
    def said(**fields):
        return {"id": "a", "session_id": "a", "summary": "x"} | fields

    document = current(
        "memory",
        {
            "short_term_memory": {
                "sessions": [
                    said(), said(id="a_2", session_id="a_2"), said(summary="y"), said(session_id="b"), said(), said(summary="y")
                ]
            }
        },
    )  # fmt: skip

    kept = document["short_term_memory"]["sessions"]
    assert [(one["id"], one["session_id"], one["metadata"].get("renamed_from")) for one in kept] == [
        ("a", "a", None),
        ("a_2", "a_2", None),
        ("a_3", "a_3", "a"),
        ("a_4", "b", "a"),
    ]


def test_settings_that_fit_and_unknown_fields_are_kept():
    layer = {"max_sessions": "12", "compression_ratio": "3.5", "compression_method": 3, "own": 1}
    working = {"eviction_policy": 3}

    document = current("memory", {"working_memory": working, "short_term_memory": layer, "more": 0})

    short = document["short_term_memory"]
    assert (short["max_sessions"], short["compression_ratio"], short["own"]) == (12, "3.5", 1)
    assert (short["compression_method"], document["more"]) == (3, 0)
    assert document["working_memory"]["eviction_policy"] == "LRU"
    assert set_aside(document) == [3]


@pytest.mark.parametrize(
    ("layer", "key", "odd", "default"),
    [
        ("short_term_memory", "max_sessions", 0, 10),
        ("working_memory", "max_capacity_tokens", 0, 200_000),
        ("working_memory", "eviction_threshold_percent", 250, 80),
        ("working_memory", "eviction_policy", "FIFO", "LRU"),
        ("working_memory", "items", {}, []),
        ("compression", "target_ratio", 1, 2.5),
    ],
)
def test_a_setting_that_breaks_the_schema_is_set_aside(layer, key, odd, default):
    document = current("memory", {layer: {key: odd}})

    assert document[layer][key] == default
    assert document["unplaced"] == [{"where": f"/{layer}/{key}", "value": odd}]
    assert check.findings("memory", document) == []


@pytest.mark.parametrize("nonsense", [0, -1, True, "x"])
def test_a_signal_does_not_take_a_half_life_or_strength_that_nothing_can_fade_by(nonsense):
    own = {"decay_rate": nonsense, "half_life_seconds": nonsense, "default_strength": -1}
    document = pheromones(pheromone_types={"OWN": own}, active_pheromones=[{"type": "OWN"}])

    assert document["pheromone_types"]["OWN"]["half_life_seconds"] is None
    assert document["active_pheromones"][0]["decay_rate"] is None
    assert document["active_pheromones"][0]["strength"] == 0.5


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"memory", "pheromones", "COLONY_STATE"}))
def test_documents_that_the_original_did_not_have_keep_their_content(name):
    data = json.loads((EXAMPLES.parents[1] / "data" / f"{name}.json").read_text())
    (key,) = [key for key in data if key in ("entities", "files", "goals", "marked", "claims", "waiting")]
    content = {"/memories/a.txt": ""} if key in ("files", "marked") else [{"name": "a"}]

    document = current(name, {key: content})

    assert document == {**data, key: content}
    assert current(name, {key: 3}) == {**data, "unplaced": [{"where": f"/{key}", "value": 3}]}


ITEM, SIGNAL = ("working_memory", "items"), ("active_pheromones",)


@rows(
    ("list_path", "place", "raw", "value", "is_kept"),
    [
        (ITEM, ("metadata", "relevance_score"), "0.25", 0.25, True),
        (ITEM, ("metadata", "relevance_score"), None, 0.5, True),
        (ITEM, ("metadata", "relevance_score"), 1.5, 0.5, False),
        (ITEM, ("metadata", "relevance_score"), "two", 0.5, False),
        (ITEM, ("metadata", "relevance_score"), float("nan"), 0.5, False),
        (ITEM, ("metadata", "relevance_score"), True, 0.5, False),
        (ITEM, ("token_count",), "12", 12, True),
        (ITEM, ("token_count",), 40.5, 40, True),
        (ITEM, ("token_count",), "", 1, True),
        (ITEM, ("token_count",), -1, 1, False),
        (ITEM, ("token_count",), 10**400, 10**400, True),
        (ITEM, ("token_count",), "1e999", 1, False),
        (SIGNAL, ("strength",), "0.25", 0.25, True),
        (SIGNAL, ("strength",), 0, 0.7, False),
        (SIGNAL, ("decay_rate",), "60", 60, True),
        (SIGNAL, ("decay_rate",), None, None, True),
        (SIGNAL, ("decay_rate",), "soon", None, False),
        (SIGNAL, ("metadata", "phase"), "2", 2, True),
    ],
)
def test_a_number_is_read_from_text_and_set_aside_where_it_does_not_fit(
    list_path, place, raw, value, is_kept
):
    entry = {"content": "x", "type": "FOCUS"} | (
        {place[0]: raw} if len(place) == 1 else {place[0]: {place[1]: raw}}
    )
    old = {list_path[0]: [entry]} if len(list_path) == 1 else {list_path[0]: {list_path[1]: [entry]}}

    document = current("pheromones" if list_path == SIGNAL else "memory", old)

    (result,) = document[list_path[0]] if len(list_path) == 1 else document[list_path[0]][list_path[1]]
    for key in place:
        result = result[key]
    assert result == value
    where = "/".join(("", *list_path, "0", *place))
    assert [step["where"] for step in document.get("unplaced", [])] == ([] if is_kept else [where])


@rows(
    ("fields", "place", "value"),
    [
        ({"metrics": [1]}, ("metrics", "total_compressions"), 0),
        ({"metrics": {"compression_ratio_total": 5.0}}, ("metrics", "compression_ratio_total"), 5.0),
        ({"search": {"ranking": "by words"}}, ("search", "ranking"), "by words"),
        ({"compression": {"triggers": ["manual"]}}, ("compression", "triggers"), ["manual"]),
    ],
)
def test_members_of_the_memory_are_kept_or_have_their_default(fields, place, value):
    document = current("memory", fields)

    assert document[place[0]][place[1]] == value
    assert check.findings("memory", document) == []


def test_a_roadmap_and_a_history_say_what_they_lack():
    roadmap = [{"status": "not started"}, {"status": "done"}, {"number": "7", "status": "started"}]
    entry = {"from": "IDLE", "to": "INIT", "timestamp": "2026-02-01T00:00:00Z"}

    document = colony(phases={"roadmap": roadmap}, state_machine={"state_history": [entry]})

    phases = [(phase["phase"], phase["status"]) for phase in document["phases"]["roadmap"]]
    assert phases == [(1, "planned"), (2, "completed"), (7, "in_progress")]
    assert document["state_machine"]["last_transition"] == "2026-02-01T00:00:00.000000Z"
    assert document["state_machine"]["state_history"][0]["trigger"] == "manual"
