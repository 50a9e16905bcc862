"""The format of a shared colony's lines and tables belongs to a migration of its server: an addition needs a new one.

Replicas with the same tables must take the same lines. One that lacks a field of a line sets the line aside, and differs.
"""

from __future__ import annotations

import hashlib
import json

from aether.paths import resource
from aether.schemas import check
from aether.sharing import postgres
from aether.store import documents, record_files
from aether.store.journal import Entry

# By the newest migration: what its tables and functions are, and what a line may hold. A released row never changes; for
# a change after a release add a migration in data/postgres/ and a row here.
PINNED = {
    8: ("11da11e15cd817c2", "cbc0d01fec299a74"),
    9: ("54645f55a67b026c", "bbb2a45a615798ea"),
}
# What says something to people, and nothing of what is valid.
WORDS = {"title", "description", "examples", "$comment", "default", "$id"}


def without_words(schema):
    """Return a schema without its words."""
    if isinstance(schema, dict):
        return {
            name: {key: without_words(part) for key, part in value.items()} if name in ("properties", "$defs") else without_words(value)
            for name, value in schema.items()
            if name not in WORDS
        }  # fmt: skip
    return [without_words(part) for part in schema] if isinstance(schema, list) else schema


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def line_format():
    """Return what a line may hold: its fields, its kinds of records, and the documents that its patches make."""
    schemas = {name: without_words(check.schema(name)) for name in documents.NAMES}
    value = [list(Entry._fields), list(record_files.KINDS), schemas]
    return digest(json.dumps(value, sort_keys=True).encode())


def tables():
    """Return the statements that make the tables and functions of the newest version."""
    files = [*postgres.migrations().values(), resource("data/postgres/functions.sql")]
    return digest(b"".join(path.read_bytes() for path in files))


def test_an_addition_to_lines_or_tables_has_a_migration():
    newest = max(postgres.migrations())

    assert PINNED.get(newest) == (line_format(), tables()), (
        f"Lines or tables of a shared colony changed, and their newest migration is still {newest}. Add "
        f"data/postgres/{newest + 1:04d}_NAME.sql and its row in PINNED; change the row of {newest} only if no release has it."
    )


def test_words_of_a_schema_are_no_part_of_the_format_and_a_property_of_such_a_name_is():
    schema = {
        "title": "T",
        "properties": {"title": {"type": "string", "description": "D"}},
        "required": ["title"],
    }

    assert without_words(schema) == {"properties": {"title": {"type": "string"}}, "required": ["title"]}
