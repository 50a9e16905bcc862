import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.errors import InvalidDocument
from aether.paths import resource
from aether.schemas import check
from tests.tables import rows

EXAMPLES = Path(__file__).parents[1] / "examples"


def cases(kind):
    """Return the example files of this kind: valid or invalid."""
    return sorted(path.relative_to(EXAMPLES) for path in EXAMPLES.glob(f"*/{kind}/*.json"))


def read(relative):
    return relative.parts[0], json.loads((EXAMPLES / relative).read_text(encoding="utf-8"))


@pytest.fixture
def memory():
    """Return the shipped memory."""
    return json.loads(resource("data/memory.json").read_bytes())


@rows("relative", cases("valid"), ids=str)
def test_a_valid_example_fits(relative):
    assert check.findings(*read(relative)) == []


@rows("relative", cases("invalid"), ids=str)
def test_an_invalid_example_does_not_fit(relative):
    assert check.findings(*read(relative))


@rows(
    ("name", "code", "place"),
    [
        ("relevance_above_one", "maximum", "working_memory/items/0/metadata/relevance_score"),
        ("item_without_id", "required", "working_memory/items/0"),
        ("tokens_in_words", "type", "working_memory/current_tokens"),
        ("unknown_pattern_type", "enum", "long_term_memory/patterns/0/type"),
        ("session_without_summary", "required", "short_term_memory/sessions/0"),
        ("unknown_link_target", "enum", "working_memory/items/0/associative_links/0/target_type"),
    ],
)
def test_an_invalid_memory_is_found_at_its_place(name, code, place):
    (found,) = check.findings(*read(Path("memory") / "invalid" / f"{name}.json"))

    assert (found.code, found.where) == (f"schema-{code}", f"memory#/{place}")


def test_a_finding_names_the_place_and_the_rule(memory):
    memory["working_memory"]["items"] = [{"id": "a"}, 7]

    found = check.findings("memory", memory)

    assert ("schema-type", "memory#/working_memory/items/1") in [(one.code, one.where) for one in found]
    assert {one.level for one in found} == {"error"}


def test_the_findings_come_in_the_order_of_their_places(memory):
    memory["metrics"]["total_compressions"] = -1
    memory["working_memory"]["current_tokens"] = "many"

    places = [one.where for one in check.findings("memory", memory)]

    assert places == sorted(places)
    assert len(places) == 2


def test_requiring_what_does_not_fit_names_the_first_place_and_counts_the_others(memory):
    memory["metrics"]["total_compressions"] = -1
    memory["working_memory"]["current_tokens"] = "many"

    with pytest.raises(
        InvalidDocument, match=r"^memory#/metrics/total_compressions: .* \(1 more\)\. Correct it\."
    ):
        check.require("memory", memory, fix="Correct it.")


@rows("relative", cases("valid"), ids=str)
def test_the_library_is_not_asked_about_a_valid_example(relative):
    name, value = read(relative)

    assert check._fits(name, "", partly=False)(value)


def places(value, path=()):
    """Yield the path to each value below `value`."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(below, dict | list):
            yield from places(below, (*path, key))


_ODD = [None, True, 0, -1, 1.0, 10**30, "", "x", "2026-03-01T10:00:00Z", [], [[]], ["x", "x"], {}, {"id": 1}]


@given(st.data())
def test_what_fits_at_once_has_no_finding_of_the_library(data):
    name, value = read(data.draw(st.sampled_from(cases("valid")), "example"))
    value = copy.deepcopy(value)
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from([*places(value)] or [("x",)]), "place")
        into = value
        for key in above:
            into = into[key]
        if data.draw(st.booleans(), "removed") and last in (into if isinstance(into, dict) else ()):
            del into[last]
        else:
            into[last] = copy.deepcopy(data.draw(st.sampled_from(_ODD), "odd"))
    partly = data.draw(st.booleans())

    if check._fits(name, "", partly=partly)(value):
        assert check.library_findings(name, value, partly=partly) == []
