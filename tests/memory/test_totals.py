"""The derived values of memory and their check."""

from __future__ import annotations

from aether.memory import items, totals
from aether.store.patch import apply
from tests.memory.states import NOW, held, shipped, with_items
from tests.tables import rows

WRONG = {
    "/working_memory/current_tokens": 9,
    "/short_term_memory/current_sessions": 3,
    "/metrics/average_compression_ratio": 2.5,
}


def broken(documents, path, value):
    patch = [{"op": "replace", "path": path, "value": value}]
    return {**documents, "memory": apply(documents["memory"], patch)}


def test_a_memory_whose_parts_agree_has_no_findings():
    assert totals.examine(shipped()) == []
    assert totals.examine(with_items(shipped(), "a", "b c")) == []


@rows(("path", "value"), WRONG.items())
def test_a_wrong_derived_value_is_found_and_corrected(path, value):
    documents = broken(shipped(), path, value)

    [finding] = totals.examine(documents)
    mended = totals.repaired(documents)

    assert (finding.level, finding.code, finding.where) == ("error", "derived", f"memory#{path}")
    assert str(value) in finding.message
    assert mended.result == [f"set {path} to 0"] or mended.result == [f"set {path} to 0.0"]
    assert totals.examine({**documents, "memory": apply(documents["memory"], mended.patches["memory"])}) == []


def test_a_home_of_the_original_knows_no_sum_of_ratios():
    documents = broken(shipped(), "/metrics/average_compression_ratio", 2.5)
    del documents["memory"]["metrics"]["compression_ratio_total"]

    assert totals.examine(documents) == []


def test_an_id_that_occurs_twice_is_found():
    """Defect 15 of the original: equal content in one second got the same id."""
    documents = with_items(shipped(), "a")
    [item] = held(documents)
    documents["memory"]["working_memory"] |= {"items": [item, item], "current_tokens": 2}

    assert [(each.code, each.where) for each in totals.examine(documents)] == [
        ("repeated-id", f"memory#{item['id']}")
    ]


def test_more_tokens_than_the_limit_are_found():
    documents = broken(with_items(shipped(), "a b c"), "/working_memory/max_capacity_tokens", 2)

    assert [each.code for each in totals.examine(documents)] == ["over-capacity"]


def test_the_derived_change_corrects_the_totals_after_a_change():
    documents = with_items(shipped(), "a", "b c")
    change = items.clear(documents["memory"], now=NOW)
    change.patches["memory"].pop()  # the total is forgotten

    follows = totals.derived_change(documents, change)

    assert follows.patches == {
        "memory": [{"op": "replace", "path": "/working_memory/current_tokens", "value": 0}]
    }
    assert totals.derived_change(documents, items.clear(documents["memory"], now=NOW)).patches == {
        "memory": []
    }
