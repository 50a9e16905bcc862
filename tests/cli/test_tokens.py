"""Counting by hand."""

from __future__ import annotations

import json

from tests.cli.stage import shown


def test_files_are_counted_and_it_is_said_by_what(here, tmp_path, capsys):
    done = shown(capsys, "tokens", "count", "README.md", "session.json")

    assert [line.split()[-1] for line in done.out.splitlines()[2:]] == ["README.md", "session.json"]
    assert done.err == "Counted by estimate (about ±10 %).\n"


def test_a_counter_becomes_the_homes_own(here, vocabulary, capsys):
    assert shown(capsys, "tokens", "use", "o200k_base").out == "This home counts by o200k_base (exact).\n"
    assert (
        json.loads(shown(capsys, "status", "--layers", "--json").out)["working_memory"]["counter"]
        == "o200k_base"
    )


def test_fetching_prints_where_the_file_is(here, vocabulary, tmp_path, capsys):
    assert shown(capsys, "tokens", "fetch", "o200k_base").out == f"{tmp_path / 'o200k_base'}\n"


def test_models_are_listed_with_their_windows_and_factors(here, capsys):
    done = shown(capsys, "tokens", "count", "--models", "claude-opus-5-5", "home-made")

    assert [line.split() for line in done.out.splitlines()[2:]] == [
        ["claude-opus-5-5", "1000000", "128000", "1.75", "0"],
        ["home-made", "8192?", "1", "0"],
    ]
    assert done.err == "Counted by estimate (about ±10 %), times the factor.\n"


def test_every_known_pattern_is_listed_where_no_model_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    listed = json.loads(shown(capsys, "tokens", "count", "--models", "--json").out)

    assert {"gpt-4.1*", "gemini-3*"} <= {model["model"] for model in listed}
