"""Agents that work side by side: claims of files in all their spellings, packets that warn, and who works on what."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import timedelta

import pytest

import aether
from aether import clock
from aether.api import briefing, forget
from aether.errors import Conflict, InvalidInput, NotFound
from aether.memory import teamwork
from aether.store.snapshot import load
from tests import homes
from tests.tables import rows


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the home of a project that is the current directory."""
    project = tmp_path / "app"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    monkeypatch.chdir(project)
    homes.fresh(project)
    return project / ".aether"


def after(monkeypatch, seconds):
    instant = clock.now() + timedelta(seconds=seconds)
    monkeypatch.setattr("aether.api.teamwork.now", lambda: instant)


def test_one_agent_holds_a_file_until_it_releases_it(home):
    claim = aether.claim("src/api.py", by="b1", task="retries")

    with pytest.raises(Conflict, match=r"b1 holds 'src/api.py' until .*\(retries\)"):
        aether.claim("src/api.py", by="b2")
    with pytest.raises(Conflict, match="b1 holds"):
        aether.release("src/api.py", by="b2")
    assert aether.claims() == [claim]

    assert aether.release("src/api.py", by="b1") == [claim]
    assert aether.claim("src/api.py", by="b2")["revision"] > claim["revision"]


def test_the_holder_renews_and_keeps_its_number_and_task(home, monkeypatch):
    claim = aether.claim("src/api.py", by="b1", task="retries", ttl=10)
    after(monkeypatch, 5)

    renewed = aether.claim("src/API.py", by="b1", ttl=10)

    assert renewed["ends_at"] > claim["ends_at"]
    same = ("id", "since", "revision", "task")
    assert [renewed[field] for field in same] == [claim[field] for field in same]
    assert len(aether.claims()) == 1


def test_a_claim_ends_by_itself_and_its_former_holder_notices(home, monkeypatch):
    claim = aether.claim("task:docs", by="b1", ttl=10)
    after(monkeypatch, 10)
    assert aether.claims() == []

    taken = aether.claim("task: docs", by="b2", ttl=10)

    assert taken["revision"] > claim["revision"]
    with pytest.raises(Conflict, match="b2 holds"):
        aether.claim("task:docs", by="b1")


def test_all_spellings_of_a_path_are_one(home, tmp_path, monkeypatch):
    (home.parent / "src" / "api.py").touch()
    os.symlink(home.parent / "src" / "api.py", home.parent / "link.py")
    spellings = [
        "src/api.py", "./src/api.py", "src//api.py", "src/../src/./api.py", str(home.parent / "src" / "api.py"),
        "link.py", "SRC/Api.py", " src/api.py ",
    ]  # fmt: skip
    for number, spelling in enumerate(spellings):
        aether.claim(spelling, by="b1")
        assert [claim["id"] for claim in aether.claims()] == ["./src/api.py"], number
        with pytest.raises(Conflict):
            aether.claim(spelling, by="b2")

    monkeypatch.chdir("src")
    with pytest.raises(Conflict):
        aether.claim("api.py", by="b2", home=home)
    # A server that was started elsewhere means files of the project.
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Conflict):
        aether.claim("src/api.py", by="b2", home=home)


def test_a_path_in_a_worktree_is_that_of_the_repository(tmp_path, monkeypatch):
    main, tree = tmp_path / "main", tmp_path / "tree"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(main)]
    main.mkdir()
    for words in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
        ["worktree", "add", "-q", str(tree)],
    ):
        subprocess.run([*git, *words], check=True, capture_output=True)
    homes.fresh(main)
    monkeypatch.chdir(tree)

    claim = aether.claim("src/api.py", by="b1")

    assert claim["id"] == "./src/api.py"
    with pytest.raises(Conflict):
        aether.claim(str(main / "src" / "api.py"), by="b2")


def test_a_directory_covers_what_is_below_it_and_not_its_neighbours(home):
    aether.claim("src", by="b1")

    aether.claim("srcs/a.py", by="b2")
    aether.claim("src/own.py", by="b1")
    for resource in ("src/a.py", ".", str(home.parent)):
        with pytest.raises(Conflict):
            aether.claim(resource, by="b2")
    aether.claim("task:src", by="b2")


def test_a_path_outside_of_the_project_keeps_its_absolute_form(home, tmp_path):
    claim = aether.claim(str(tmp_path / "other" / "a.py"), by="b1")

    assert claim["id"] == (tmp_path.resolve() / "other" / "a.py").as_posix()


@rows(
    ("resource", "options"),
    [
        ("", {}), (" ", {}), ("a\0b", {}), ("x" * 2000, {}), (3, {}), ("a", {"ttl": 0}), ("a", {"ttl": -1}),
        ("a", {"ttl": float("nan")}), ("a", {"ttl": 1e9}), ("a", {"ttl": True}), ("a", {"ttl": "9"}), ("a", {"by": ""}),
        ("a", {"by": "x\ny\u202e"}), ("a", {"by": "x" * 300}), ("a", {"task": "x" * 600}),
    ],
)  # fmt: skip
def test_what_cannot_be_claimed_is_refused_and_changes_nothing(home, resource, options):
    with pytest.raises(InvalidInput):
        aether.claim(resource, **{"by": "b1", **options})

    assert aether.claims() == []


def test_there_are_so_many_claims_at_most(home, monkeypatch):
    monkeypatch.setattr(teamwork, "MOST_CLAIMS", 2)
    aether.claim("task:one", by="b1")
    aether.claim("task:two", by="b1")
    with pytest.raises(InvalidInput, match="there are 2 claims"):
        aether.claim("task:three", by="b1")

    assert [claim["id"] for claim in aether.release(by="b1")] == ["task:one", "task:two"]
    assert aether.release(by="b1") == []
    with pytest.raises(NotFound, match="b1 does not hold 'task:one'"):
        aether.release("task:one", by="b1")


def test_a_clock_that_was_set_back_starts_a_claim_again_instead_of_keeping_it_for_ever(home, monkeypatch):
    after(monkeypatch, 100_000)
    aether.claim("task:docs", by="dead", ttl=10)
    after(monkeypatch, 0)
    with pytest.raises(Conflict):
        aether.claim("task:docs", by="b2", ttl=10)

    after(monkeypatch, 11)

    assert aether.claim("task:docs", by="b2", ttl=10)["by"] == "b2"


def test_undoing_a_claim_ends_it_and_undoing_a_release_takes_it_from_nobody(home):
    claim = aether.claim("src/api.py", by="b1")
    aether.undo(claim["revision"])
    assert aether.claims() == []
    aether.claim("src/api.py", by="b1")
    aether.release("src/api.py", by="b1")
    released = load(home).revision
    aether.undo(released)
    assert [one["by"] for one in aether.claims()] == ["b1"]

    aether.release("src/api.py", by="b1")
    released = load(home).revision
    other = aether.claim("src", by="b2")
    aether.undo(released)

    assert aether.claims() == [other]
    with pytest.raises(Conflict, match="b2 holds"):
        aether.claim("src/api.py", by="b1")


def test_an_undo_without_a_number_is_about_no_claim(home):
    item = aether.add_working_memory_item("Use JSON.", "decision")
    aether.claim("src/api.py", by="b1")

    aether.undo()

    assert len(aether.claims()) == 1
    with pytest.raises(NotFound):
        aether.get_working_memory_item(item)


def test_a_restored_snapshot_brings_no_claim_back(home):
    aether.claim("src/api.py", by="b1")
    saved = aether.create_snapshot("before")
    aether.release("src/api.py", by="b1")
    other = aether.claim("src/api.py", by="b2")

    aether.restore_snapshot(saved["snapshot_id"])

    assert aether.claims() == [other]


def test_a_secret_in_a_task_or_a_note_is_not_stored(home):
    secret = "ghp_" + "a1B2" * 9
    claim = aether.claim("task:docs", by="b1", task=f"with {secret}")
    packet = aether.hand_over(to="b2", note=f"use {secret} <private>mine</private>", by="b1")

    assert secret not in claim["task"] + packet["note"]
    assert "mine" not in packet["note"]


# --- Packets


def test_a_packet_names_entries_and_is_taken_once(home):
    item = aether.add_working_memory_item("Use JSON.", "decision")
    packet = aether.hand_over(to="b2", items=[item, item], note="Look.", by="b1")

    (seen,) = aether.inbox("b2")
    assert (seen["id"], seen["note"], seen["by"], packet["items"]) == (packet["id"], "Look.", "b1", [item])
    assert seen["items"] == [
        {"id": item, "type": "decision", "text": "Use JSON.", "state": "in force", "warning": ""}
    ]
    assert aether.inbox("b3") == []
    assert aether.inbox("b2", take=True) == [seen]
    assert aether.inbox("b2", take=True) == aether.inbox("b2") == []


def changed(item):
    aether.update_working_memory_item(item, {"content": "Use YAML."})
    return "changed since revision", "Use YAML."


def superseded(item):
    other = aether.add_working_memory_item("Use TOML.", "decision")
    aether.supersede_memory(item, str(other))
    return f"superseded by {other}", "Use JSON."


def resolved(item):
    aether.resolve_memory(item)
    return "resolved", "Use JSON."


def forgotten(item):
    aether.forget([item])
    return r"in memory no more \(forget, revision", ""


def erased(item):
    forget.erase([item])
    return "in memory no more", ""


def read_again(item):
    aether.recall("JSON")
    aether.search_memory("JSON")
    return "$", "Use JSON."


def compressed(item):
    aether.compress(0)
    return "$", "Use JSON."


def changed_and_undone(item):
    changed(item)
    aether.undo()
    return "$", "Use JSON."


@pytest.mark.parametrize(
    "act",
    [changed, superseded, resolved, forgotten, erased, read_again, compressed, changed_and_undone],
    ids=lambda act: act.__name__,
)
def test_a_packet_warns_if_an_entry_is_no_longer_what_was_handed_over(home, act):
    item = aether.add_working_memory_item("Use JSON.", "decision", 0.9)
    aether.hand_over(to="b2", items=[item])

    warning, text = act(item)

    ((received,),) = (packet["items"] for packet in aether.inbox("b2"))
    assert received["text"] == text
    assert re.match(warning, received["warning"])


def test_an_entry_that_was_undone_is_named_by_the_revision_that_did_it(home):
    item = aether.add_working_memory_item("Use JSON.", "decision", 0.9)
    aether.hand_over(to="b2", items=[item])
    added = load(home).revision - 1

    aether.undo(added)

    ((received,),) = (packet["items"] for packet in aether.inbox("b2"))
    assert received["state"] == "archived"
    assert f"undo, revision {load(home).revision}" in received["warning"]


def test_erasing_a_text_reaches_packets_and_claims(home):
    aether.add_working_memory_item("The word is Quorvex-77-Blue.", "observation")
    aether.hand_over(to="b2", note="The word is Quorvex-77-Blue.")
    aether.claim("vault/Quorvex-77-Blue.txt", by="b1", task="Quorvex-77-Blue")

    forget.erase(match="Quorvex-77-Blue")

    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"quorvex" not in everything.lower()
    assert "Quorvex" not in aether.inbox("b2")[0]["note"]


def test_a_packet_from_before_the_history_says_that_a_change_would_not_show(home, monkeypatch):
    item = aether.add_working_memory_item("Use JSON.", "decision", 0.9)
    aether.hand_over(to="b2", items=[item])
    aether.add_working_memory_item("Another.", "decision", 0.9)
    monkeypatch.setattr(
        "aether.api.teamwork.states_since", lambda *_: (_ for _ in ()).throw(NotFound("", fix=""))
    )

    ((received,),) = (packet["items"] for packet in aether.inbox("b2"))

    assert "history" in received["warning"]


def test_an_entry_that_no_history_knows_is_named(home):
    item = aether.add_working_memory_item("Use JSON.", "decision", 0.9)
    aether.hand_over(to="b2", items=[item])
    document = home / "data" / "teamwork.json"
    aether.fold()
    document.write_text(document.read_text().replace(item, "wm_1_00000000"))

    ((received,),) = (packet["items"] for packet in aether.inbox("b2"))

    assert received["state"] == "unknown"


def test_what_cannot_be_handed_over_is_refused(home, monkeypatch):
    item = aether.add_working_memory_item("Use JSON.", "decision", 0.9)
    for options in ({}, {"note": " "}, {"note": "x" * 5000}, {"note": "x", "to": ""}):
        with pytest.raises(InvalidInput):
            aether.hand_over(**{"to": "b2", **options})
    with pytest.raises(NotFound):
        aether.hand_over(to="b2", items=["wm_1_00000000"])
    monkeypatch.setattr(teamwork, "MOST_PACKETS", 0)
    with pytest.raises(InvalidInput, match="packets wait"):
        aether.hand_over(to="b2", items=[item])
    aether.forget([item])
    with pytest.raises(NotFound, match="forgotten"):
        aether.hand_over(to="b2", items=[item])


# --- Who works on what


def test_the_roster_has_workers_holders_and_inboxes(home):
    aether.start_phase(2)
    aether.register_worker("b1", caste="builder", task="the api")
    aether.claim("src/api.py", by="b1")
    aether.claim("task:docs", by="b2", task="write them")
    aether.hand_over(to="lead", note="Done.")

    roster = aether.roster()

    assert (roster.phase, roster.awaiting) == (2, None)
    found = {
        member["name"]: (member["caste"], member["task"], len(member["claims"]), member["packets"])
        for member in roster.members
    }
    assert found == {
        "b1": ("builder", "the api", 1, 0), "b2": (None, "write them", 1, 0), "lead": (None, None, 0, 1),
    }  # fmt: skip
    aether.complete_phase(2)
    assert (aether.roster().phase, aether.roster().awaiting) == (None, 2)


def test_after_a_compaction_the_brief_names_who_works_on_what(home, monkeypatch):
    aether.add_working_memory_item("Use JSON.", "decision", 0.9)
    aether.register_worker("b1", caste="builder", task="the api </aether-memory>")
    aether.claim("src/api.py", by="b1", ttl=60)
    aether.hand_over(to="nobody", note="Done.")

    text = briefing.session_brief(home, "compact", "s")

    assert "Who works on what" in text
    assert "- b1 (builder): holds src/api.py; the api\n" in text
    assert "nobody" not in text
    assert "Who works" not in briefing.session_brief(home, "startup", "s")
    aether.release_worker("b1")
    monkeypatch.setattr("aether.api.briefing.now", lambda: clock.now() + timedelta(seconds=61))
    assert "b1" not in briefing.session_brief(home, "compact", "s")
