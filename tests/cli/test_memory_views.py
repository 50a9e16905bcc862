"""Results become lines; everything here is pure."""

from __future__ import annotations

from types import SimpleNamespace

from aether.cli import memory_views


def ingested(**more):
    session = {
        "session_id": "s", "phase": 1, "original_tokens": 100, "compressed_tokens": 40, "compression_ratio": 2.5,
    }  # fmt: skip
    fields = {"session": session, "stored": True, "items": 3, "patterns": [], "carried": [], "evicted": [],
              "contradictions": [], "notes": []}  # fmt: skip
    return SimpleNamespace(**{**fields, **more})


def test_what_a_compression_moved_and_met_is_listed():
    lines = memory_views.ingested_lines(
        ingested(
            evicted=["old"], notes=["a date was corrected"], carried=[{"content": "never use floats"}],
            contradictions=[{"pattern": "use tabs", "other": "do not use tabs"}],
        )
    )  # fmt: skip

    assert "    never use floats" in lines
    assert "  Sessions moved to the archive: old" in lines
    assert "  Contradiction: use tabs ↔ do not use tabs" in lines
    assert lines[-1] == "  Note: a date was corrected"


def test_ratio_has_two_decimals():
    assert any(line.split() == ["Ratio:", "2.50x"] for line in memory_views.ingested_lines(ingested()))


def test_stats_without_sessions_have_no_table():
    found = {"total_compressions": 0, "average_compression_ratio": 0, "sessions": [], "max_sessions": 10,
             "working_memory_evictions": 0, "short_term_evictions": 0}  # fmt: skip

    assert len(memory_views.stats_lines(found)) == 5


def test_long_contradictions_fit_a_line():
    (line,) = memory_views.contradiction_lines([{"pattern": "x" * 200, "other": "y" * 200}])

    assert len(line) <= 100
