"""Forgetting on the command line."""

from __future__ import annotations

import json

from aether.cli import forget, output
from tests.cli.stage import shown


def test_what_would_go_is_shown_and_stays(here, capsys):
    done = shown(capsys, "memory", "forget", "--match", "ATOMIC", "--dry-run")

    assert here["ITEM"] in done.out
    assert done.err == "Nothing was changed.\n"
    assert here["ITEM"] in shown(capsys, "recall", "atomic").out


def test_it_needs_a_yes_then_says_how_to_have_it_back(here, capsys):
    assert "Pass --yes" in shown(capsys, "memory", "forget", here["ITEM"], code=2).err
    done = shown(capsys, "memory", "forget", here["ITEM"], "--yes")
    assert done.out.startswith("1 entry forgotten. aether undo ")

    assert here["ITEM"] not in shown(capsys, "recall", "atomic writes").out
    shown(capsys, *done.out.rpartition("aether ")[2].partition(" brings")[0].split())
    assert here["ITEM"] in shown(capsys, "recall", "atomic writes").out


def test_a_person_sees_it_and_may_say_no(here, capsys, monkeypatch):
    monkeypatch.setattr(output, "confirmed", lambda what, yes: False)

    assert here["ITEM"] in shown(capsys, "memory", "forget", here["ITEM"], code=1).out
    assert (
        json.loads(shown(capsys, "memory", "forget", here["ITEM"], "--json", code=1).out)["forgotten"]
        is False
    )


def test_nothing_that_holds_it_is_said(here, capsys):
    done = shown(capsys, "memory", "forget", "--match", "zebra", "--yes")

    assert (done.out, done.err) == ("", "No entry holds that; nothing was changed.\n")


def test_a_long_list_is_cut_and_other_documents_are_named(here, capsys, monkeypatch):
    monkeypatch.setattr(forget, "SHOWN", 1)
    shown(capsys, "phase", "start", "1", "--name", "the state of things")

    done = shown(capsys, "memory", "forget", "--match", "state", "--dry-run")

    assert "… and 1 more" in done.out
    assert "also in COLONY_STATE" in done.err


def test_erasing_shows_where_and_never_what_and_asks_twice(here, capsys, monkeypatch):
    dry = shown(capsys, "memory", "forget", "--match", "atomic writes", "--erase", "--dry-run")
    assert ("history" in dry.out, "atomic" in dry.out, dry.err) == (True, False, "Nothing was changed.\n")
    assert (
        "Pass --yes" in shown(capsys, "memory", "forget", "--match", "atomic writes", "--erase", code=2).err
    )

    asked = []
    monkeypatch.setattr(output, "confirmed", lambda what, yes: asked.append(what) or len(asked) % 2 == 1)
    shown(capsys, "memory", "forget", "--match", "atomic writes", "--erase", code=1)
    reported = json.loads(
        shown(capsys, "memory", "forget", "--match", "atomic writes", "--erase", "--json", code=1).out
    )
    assert (len(asked), reported["forgotten"], reported["erased"]["left"]) == (4, False, [])
    assert "atomic writes" in shown(capsys, "recall", "atomic").out


def test_undo_and_show_say_that_a_revision_was_erased(here, capsys):
    shown(capsys, "add", "The key is hunter2hunter2.", "--type", "constraint")
    shown(capsys, "memory", "forget", "--match", "hunter2hunter2", "--erase", "--yes")
    revision = str(json.loads(shown(capsys, "log", "--json").out)[0]["revision"])

    for words in (["undo"], ["undo", revision]):
        assert "was erased and cannot be undone" in shown(capsys, *words, code=11).err
    then = shown(capsys, "show", "memory", "--revision", revision)
    assert "[ERASED]" in then.out
    assert f"Revision {revision} was erased" in then.err
    assert "was erased" not in shown(capsys, "show", "memory", "--revision", str(int(revision) - 1)).err


def test_what_is_erased_is_removed_and_what_is_not_reached_is_said(here, capsys):
    done = shown(capsys, "memory", "forget", "--match", "atomic writes", "--erase", "--yes")

    assert (done.out.startswith("Erased at "), "Not reached: transcripts" in done.err) == (True, True)
    assert "atomic writes" not in shown(capsys, "memory", "show").out
    again = shown(capsys, "memory", "forget", "--match", "atomic writes", "--erase", "--yes")
    assert again.err == "No entry holds that; nothing was changed.\n"


def test_a_text_can_come_from_standard_input(here, capsys, monkeypatch):
    monkeypatch.setattr(forget, "read_text", lambda source: "atomic writes\n")

    done = json.loads(shown(capsys, "memory", "forget", "--match", "-", "--erase", "--yes", "--json").out)

    assert (done["forgotten"], done["targets"], done["erased"]["places"]["documents"]) == (True, [], 1)


def test_what_stays_is_said(here, capsys, monkeypatch):
    from aether.api import forget

    found = forget.Erased({"hooks": 1}, 1, 2, ["config.toml"], ["hook.log"], 0, done=True)
    monkeypatch.setattr(forget, "preview_erase", lambda ids, match, home: found)
    monkeypatch.setattr(forget, "erase", lambda ids, match, home: found)

    done = shown(capsys, "memory", "forget", here["ITEM"], "--erase", "--yes", code=1)

    assert "2 texts of it left" in done.err
    assert "config.toml holds it too" in done.err
    assert "hook.log was changed meanwhile" in done.err


def test_what_says_it_in_other_words_is_listed_and_goes_when_asked_for(here, capsys):
    shown(capsys, "add", "State files must be written atomically.")
    shown(capsys, "add", "Write state files atomically, always.")
    (item,) = [
        one["id"]
        for one in json.loads(shown(capsys, "memory", "show", "--json").out)
        if one["content"] == "State files must be written atomically."
    ]

    plan = shown(capsys, "memory", "forget", item, "--dry-run")
    assert "Write state files" not in plan.out
    assert "The same in other words" in plan.err
    assert "Write state files" in plan.err
    shown(capsys, "memory", "forget", item, "--similar", "--yes")

    assert "Write state files" not in shown(capsys, "recall", "state files atomically").out


def test_an_entity_of_the_knowledge_graph_is_forgotten_by_its_id_and_comes_back(here, capsys, tmp_path):
    source = tmp_path / "graph.jsonl"
    source.write_text(
        '{"type":"entity","name":"Ada","entityType":"person","observations":["Knows Quorvex."]}\n'
        '{"type":"relation","from":"Ada","to":"Bob","relationType":"knows"}\n'
    )
    shown(capsys, "graph", "--import", str(source))

    done = shown(capsys, "memory", "forget", "entity:Ada", "--yes")

    assert json.loads(shown(capsys, "graph", "Ada", "--json").out) == {
        "entities": [],
        "relations": [],
    }
    shown(capsys, *done.out.rpartition("aether ")[2].partition(" brings")[0].split())
    assert len(json.loads(shown(capsys, "graph", "Ada", "--json").out)["relations"]) == 1
