"""Words handed over to a command: exactly these pass the gate, and nothing of them is kept but a checksum."""

from __future__ import annotations

import json

import pytest

import aether
from aether.api import review, working
from aether.hosts import hook
from aether.store import authors, handed
from tests import homes

RULE = "Never sail in fog."


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = homes.fresh(tmp_path)
    (home / "hooks").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return home


def submit(home, prompt):
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s",
        "cwd": str(home.parent),
        "prompt": prompt,
    }
    assert hook.main([], json.dumps(payload).encode())[0] == 0


def add(home, text):
    with authors.acting(authors.MCP):
        return working.add_note(text, "constraint", home=home)


def test_a_rule_that_the_person_handed_over_is_stored_when_the_agent_repeats_it(home):
    submit(home, "/aether:remember  never sail in FOG.")

    assert not add(home, RULE).waits
    assert add(home, "Always sail in fog.").waits
    assert [item["content"] for item in review.waiting(home=home)] == ["Always sail in fog."]


@pytest.mark.parametrize("prompt", [RULE, "/aether:remember", "/tmp/never sail", ""])
def test_other_prompts_hand_over_nothing(home, prompt):
    submit(home, prompt)

    assert not handed.was_handed(home, "")
    assert add(home, "Never sail in ice.").waits


def test_only_checksums_of_the_newest_words_are_kept(home):
    for nth in range(30):
        handed.note(str(home), f"/remember Word {nth} of the harbour.")

    text = (home / handed.FILE).read_text()
    assert "harbour" not in text
    assert [handed.was_handed(home, f"Word {nth} of the harbour.") for nth in (9, 10, 29)] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("damage", ["", "{", "[1]", "{}", "[[["])
def test_a_damaged_list_hands_over_nothing(home, damage):
    (home / handed.FILE).write_text(damage)

    assert not handed.was_handed(home, RULE)
    handed.note(str(home), f"/remember {RULE}")
    assert handed.was_handed(home, RULE)


def test_no_home_is_made_for_it(tmp_path):
    handed.note(str(tmp_path / "none"), f"/remember {RULE}")

    assert not (tmp_path / "none").exists()
    assert not handed.was_handed(tmp_path / "none", RULE)
    assert aether.__version__
