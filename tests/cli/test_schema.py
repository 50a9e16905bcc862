"""Checking documents by hand."""

from __future__ import annotations

from aether.cli.main import main


def test_the_documents_of_a_home_are_checked(here, capsys):
    capsys.readouterr()

    assert main(["schema", "check"]) == 0
    assert capsys.readouterr().out == "Every document fits its schema.\n"


def test_a_file_is_checked_by_its_name_and_the_place_is_named(here, tmp_path, capsys):
    text = (tmp_path / ".aether/data/memory.json").read_text(encoding="utf-8")
    (tmp_path / "memory.json").write_text(text, encoding="utf-8")
    assert main(["schema", "check", "memory.json"]) == 0
    (tmp_path / "other.json").write_text(text.replace('"LRU"', '"FIFO"', 1), encoding="utf-8")
    capsys.readouterr()

    assert main(["schema", "check", "--schema", "memory", "other.json"]) == 1

    assert capsys.readouterr().out.startswith("memory#/working_memory/eviction_policy: ")


def test_a_file_without_a_schema_is_an_error_that_names_the_schemas(here, capsys):
    assert main(["schema", "check", "session.json"]) == 2
    assert (
        "Pass --schema with one of memory, pheromones, COLONY_STATE, graph, memories."
        in capsys.readouterr().err
    )
