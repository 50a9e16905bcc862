import copy
import json
from pathlib import Path

import pytest

from aether.errors import InvalidDocument
from aether.schemas import check, migrations
from tests.tables import rows

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["memory", "pheromones", "COLONY_STATE"]
OLD = sorted((ROOT / "tests" / "examples").glob("*/old-v2/*.json"))


def shipped(name):
    return json.loads((ROOT / "data" / f"{name}.json").read_text())


@rows("path", OLD, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_files_of_the_original_load(path):
    name, old = path.parent.parent.name, json.loads(path.read_text())
    untouched = copy.deepcopy(old)

    document, _ = migrations.migrate(name, old)

    assert old == untouched
    assert document["schema_version"] == 3
    assert check.findings(name, document) == []
    assert migrations.current(name, old) == document


@rows("name", NAMES)
def test_a_document_of_today_is_returned_as_it_is(name):
    document = shipped(name)

    assert migrations.current(name, document) is document
    assert migrations.migrate(name, document) == (document, [])


@rows("name", NAMES)
@rows("version", [4, 3.5, 10**30])
def test_a_document_of_a_newer_aether_is_left_untouched(name, version):
    with pytest.raises(InvalidDocument, match=r"written by a newer aether .*Upgrade aether") as caught:
        migrations.current(name, {"schema_version": version})

    assert caught.value.where == f"{name}.json"


@rows("version", [None, "2.0", 2, 0, True, []])
def test_an_odd_version_is_an_old_one(version):
    document = migrations.current("pheromones", {"schema_version": version})

    assert document == shipped("pheromones")


@rows("name", NAMES)
@rows("odd", [None, [], "text", 3, [{"items": 1}]])
def test_what_is_no_document_is_set_aside_whole(name, odd):
    document, findings = migrations.migrate(name, odd)

    assert document == {**shipped(name), "unplaced": [{"where": "/", "value": odd}]}
    assert [finding.code for finding in findings] == ["unplaced"]


def test_what_was_set_aside_before_stays():
    old = {"unplaced": ["from before"], "active_pheromones": ["odd"]}

    document = migrations.current("pheromones", old)

    assert document["unplaced"] == ["from before", {"where": "/active_pheromones/0", "value": "odd"}]


def test_a_foreign_unplaced_is_set_aside_itself():
    document = migrations.current("pheromones", {"unplaced": 3, "active_pheromones": ["odd"]})

    assert document["unplaced"][0] == {"where": "/unplaced", "value": 3}


def test_an_item_without_a_count_is_counted_by_the_given_counter():
    old = {"working_memory": {"items": [{"content": "seven c"}, {"content": "x", "token_count": 9}]}}

    document, _ = migrations.migrate("memory", old, count=len)

    working = document["working_memory"]
    assert [item["token_count"] for item in working["items"]] == [7, 9]
    assert working["current_tokens"] == 16
