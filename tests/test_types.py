"""The schemas and the typed dictionaries describe the same documents."""

import json
import re
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from mypy import api

from aether import document_types, types
from aether.api import working
from aether.memory import colony, signals
from aether.paths import resource
from aether.schemas import check
from tests import homes
from tests.sources import ROOT
from tests.tables import rows

MEMORY = check.schema("memory")
PARTS = {name: MEMORY["$defs"][name] for name in ("item", "session", "pattern", "link")}
SESSION = PARTS["session"]["properties"]
SAME = {
    "Item": PARTS["item"],
    "ItemMetadata": PARTS["item"]["properties"]["metadata"],
    "Session": PARTS["session"],
    "KeyDecision": SESSION["key_decisions"]["items"],
    "Outcome": SESSION["outcomes"]["items"],
    "HighValueItem": SESSION["high_value_items"]["items"],
    "Statement": MEMORY["$defs"]["statement"],
    "Ended": MEMORY["$defs"]["statement"]["properties"]["ended"],
    "Fact": PARTS["item"]["properties"]["metadata"]["properties"]["fact"],
    "Step": PARTS["item"]["properties"]["metadata"]["properties"]["fact"]["properties"]["steps"]["items"],
    "Pattern": PARTS["pattern"],
    "Link": PARTS["link"],
}
JSON_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}
SCHEMAS = sorted(
    str(path.relative_to(resource("data/schemas"))).removesuffix(".schema.json")
    for path in resource("data/schemas").rglob("*.schema.json")
)


@rows("name", SAME)
def test_a_shape_and_its_schema_have_the_same_members(name):
    hints = get_type_hints(getattr(types, name), include_extras=True)

    assert set(hints) == set(SAME[name]["properties"])
    assert {key for key, hint in hints.items() if get_origin(hint) is not NotRequired} == set(
        SAME[name]["required"]
    )


@rows("name", SAME)
def test_a_shape_and_its_schema_have_the_same_types(name):
    for member, hint in get_type_hints(getattr(types, name)).items():
        part = SAME[name]["properties"][member]
        said = part.get("type")
        assert set(said if isinstance(said, list) else [said]) == set(_json_types(hint)), member


def _json_types(hint: Any) -> list[str | None]:
    """Return the JSON types that a type hint allows; None for any."""
    if hint is object:
        return [None]
    if isinstance(hint, type) and issubclass(hint, dict) and hint is not dict:
        return ["object"]
    origin = get_origin(hint) or hint
    if origin in JSON_TYPES:
        return [JSON_TYPES[origin]]
    found: list[str | None] = []
    for below in get_args(hint):
        found += (
            _json_types(below) if isinstance(below, type) or get_origin(below) else [JSON_TYPES[type(below)]]
        )
    return found


def test_every_typed_dictionary_of_the_memory_has_its_schema():
    made = {
        name
        for name, shape in vars(document_types).items()
        if isinstance(shape, type) and issubclass(shape, dict)
    }

    # Those of the colony and its goals are compared with its schemas in tests/memory; the last ones are no part of a document.
    assert made - set(SAME) == {
        "Signal", "SignalType", "QueenCheckin", "Worker", "HistoryEntry", "RoadmapPhase", "Adaptation",
        "Goal", "GoalStatus", "Subtask", "GoalDecision", "Artifact", "Blocker", "GoalCheckpoint", "GoalCheckpointState",
        "ActiveSignal", "Claim", "EnforcedRule", "Packet", "PacketHead", "TeamMember", "Handoff", "HitEvidence", "Snapshot", "EmittedSignal", "Hit", "Archived",
    }  # fmt: skip


def _parts(part, place=""):
    """Yield every schema below `part` with its place."""
    if isinstance(part, dict):
        for name, below in part.get("properties", {}).items():
            yield f"{place}/{name}", below
            yield from _parts(below, f"{place}/{name}")
        for name, below in part.get("$defs", {}).items():
            yield from _parts(below, f"{place}/$defs/{name}")
        yield from _parts(part.get("items"), f"{place}/*")


@rows("name", SCHEMAS)
def test_every_property_has_a_description(name):
    missing = [place for place, part in _parts(check.schema(name)) if not part.get("description", "").strip()]

    assert missing == []


@rows("name", SCHEMAS)
def test_every_schema_is_one_and_its_examples_fit(name):
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(check.schema(name))
    for example in check.schema(name).get("examples", []):
        assert check.findings(name, example) == []


@rows("name", ["memory", "pheromones", "COLONY_STATE"])
def test_what_is_shipped_fits_its_schema_which_has_an_example(name):
    shipped = json.loads(resource(f"data/{name}.json").read_bytes())

    assert check.findings(name, shipped) == []
    assert check.schema(name)["examples"]


def test_every_setting_of_the_memory_is_read_by_the_code():
    """A setting that nothing reads does nothing, whatever its description says."""
    written = {"description", "$schema", "unplaced"}
    settings = {
        name
        for part, shape in MEMORY["properties"].items()
        for name in (shape.get("properties") or {part: None})
        if name not in written
    }
    package = Path(types.__file__).parent
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in package.rglob("*.py") if path.parent.name != "schemas"
    )
    # The only policy there is: the schema admits no other value.
    unread = {name for name in settings if not re.search(rf"""["'/]{re.escape(name)}["'/]""", code)}

    assert unread == {"eviction_policy"}


@rows(
    ("names", "table"),
    [
        (types.ItemType, types.RELEVANCE_OF_TYPE),
        (types.SignalName, signals.TYPES),
        (types.Caste, json.loads(resource("data/pheromones.json").read_text())["caste_sensitivities"]),
        (types.State, colony.EDGES),
    ],
)
def test_the_names_that_a_type_checker_knows_are_those_of_the_tables(names, table):
    assert set(get_args(names)) == set(table)


CALLS = """
import aether

aether.add_working_memory_item("Use SQLite.", "decision", caste="builder")
aether.emit_signal("FOCUS", "the parser")
aether.transition_state("PLANNING")
aether.add_working_memory_item("Use SQLite.", "decison")
aether.add_working_memory_item("Use SQLite.", "decision", caste="bulider")
aether.emit_signal("FOCSU", "the parser")
aether.active_signals(caste="bulider")
aether.transition_state("PLANING")
"""


def test_a_misspelt_name_fails_the_type_check(tmp_path):
    file = tmp_path / "calls.py"
    file.write_text(CALLS)

    output, _, _ = api.run(["--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(file)])

    # The cache names an earlier directory of the same file.
    places = [int(line) for line in re.findall(r"calls\.py:(\d+): error", output)]
    assert places == [7, 8, 9, 10, 11], output


def test_a_misspelt_type_is_stored_with_a_warning(tmp_path):
    home = homes.fresh(tmp_path)

    with pytest.warns(UserWarning, match="Did you mean 'decision'"):
        working.add_working_memory_item("Use SQLite.", "decison", home=home)
    working.add_working_memory_item("A joke.", "joke", home=home)

    assert [item["type"] for item in working.list_working_memory_items(home=home)] == ["joke", "decison"]
