"""The demo, as a person sees it."""

from __future__ import annotations

import json

import pytest

from aether.cli.main import main


@pytest.mark.slow
def test_the_demo_shows_each_step_on_lines_that_fit(capsys):
    assert main(["demo"]) == 0

    text = capsys.readouterr().out
    for number in range(1, 6):
        assert f"{number}. " in text
    assert max(map(len, text.splitlines())) <= 100
    assert "DIFFERS" not in text


@pytest.mark.slow
def test_the_home_is_left_behind_on_request(tmp_path, capsys):
    assert main(["demo", "--keep", str(tmp_path / "kept"), "--json"]) == 0

    data = json.loads(capsys.readouterr().out)
    assert data["home"] == str(tmp_path / "kept" / ".aether")
    assert main(["memory", "stats", "--home", str(tmp_path / "kept")]) == 0
    assert len(data["phases"]) == 4
    assert data["check"]["findings"] == []


def test_a_directory_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").touch()

    assert main(["demo", "--keep", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
