import aether
from tests.api.calls import limits, memory
from tests.memory.states import answer


def test_an_empty_home_is_empty(home):
    status = aether.get_memory_status(home=home)

    assert status["home"] == str(home)
    assert status["working_memory"] == {
        "items": 0, "tokens": 0, "max_capacity_tokens": 200_000, "percent": 0.0, "eviction_threshold_tokens": 160_000,
        "compression_needed": False, "counter": "estimate",
    }  # fmt: skip
    assert status["short_term_memory"] == {
        "sessions": 0,
        "max_sessions": 10,
        "percent": 0.0,
        "target_ratio": 2.5,
    }
    assert status["long_term_memory"]["types"] == {
        "success_pattern": 0, "failure_pattern": 0, "preference": 0, "constraint": 0,
    }  # fmt: skip
    assert set(status["metrics"].values()) == {0}
    assert status["colony"] == {"state": "IDLE", "current_phase": None}
    assert status["open_handoffs"] == []


def test_the_numbers_follow_what_happens(home):
    limits(home, capacity=50)
    aether.add_working_memory_item("word " * 40, "note", home=home)
    high = [{"content": "Tests failed on Windows", "relevance_score": 0.9, "type": "fact"}]
    aether.create_short_term_session(1, answer(high_value_items=high), home=home)
    aether.start_phase(3, home=home)

    status = aether.get_memory_status(home=home)

    assert status["working_memory"]["items"] == 1
    assert status["working_memory"]["compression_needed"]
    assert status["working_memory"]["tokens"] == memory(home)["working_memory"]["current_tokens"]
    assert status["short_term_memory"]["percent"] == 10.0
    assert status["long_term_memory"]["patterns"] == 1
    assert status["long_term_memory"]["types"]["failure_pattern"] == 1
    assert status["metrics"]["total_pattern_extractions"] == 1
    assert len(status["open_handoffs"]) == 1
    assert status["colony"] == {"state": "EXECUTING", "current_phase": 3}


def test_the_statistics_agree_with_the_metrics(home):
    """Defect 17 of the original: 2.33 here, 4.83 there."""
    for nth in range(3):
        aether.add_working_memory_item("word " * 400 * (nth + 1), "note", home=home)
        aether.trigger_phase_boundary_compression(nth, answer(f"s{nth}"), home=home)

    stats = aether.get_compression_stats(home=home)

    ratios = [each["compression_ratio"] for each in stats["sessions"]]
    assert stats["total_compressions"] == len(ratios) == 3
    assert round(sum(ratios) / 3, 4) == stats["average_compression_ratio"]
    assert (
        stats["average_compression_ratio"]
        == aether.get_memory_status(home=home)["metrics"]["average_compression_ratio"]
    )
    assert [each["session_id"] for each in stats["sessions"]] == ["s0", "s1", "s2"]
    assert (stats["max_sessions"], stats["working_memory_evictions"], stats["short_term_evictions"]) == (
        10,
        0,
        0,
    )
