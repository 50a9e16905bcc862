"""The shapes of the official contract: what fits, and how what does not is named."""

from __future__ import annotations

import pytest

from aether.errors import InvalidInput
from aether.integrations.mcp_server.graph_tools import ENTITY, RELATION, array_of, validated
from tests.tables import rows

ANT = {"name": "ant", "entityType": "insect", "observations": ["It digs."]}


def test_what_fits_is_returned_without_other_fields():
    assert validated([{**ANT, "more": 1}], ENTITY, where="entities") == [ANT]


@rows(
    ("given", "message"),
    [
        ("ant", "entities: is 'ant'"),
        (["ant"], r"entities\[0\]: is 'ant'. Use an object with name, entityType, observations"),
        ([ANT, {**ANT, "name": 5}], r"entities\[1\]: name is 5. Use a text"),
        ([{**ANT, "observations": "x"}], "Use an array of texts"),
        ([{**ANT, "observations": [1]}], "Use an array of texts"),
    ],
)
def test_what_does_not_fit_is_named_by_its_place(given, message):
    with pytest.raises(InvalidInput, match=message):
        validated(given, ENTITY, where="entities")


def test_a_schema_requires_every_field():
    made = array_of(RELATION)

    assert made["items"]["required"] == ["from", "to", "relationType"]
    assert array_of(ENTITY)["items"]["properties"]["observations"]["items"] == {"type": "string"}
