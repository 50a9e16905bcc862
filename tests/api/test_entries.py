"""Entries as a person looks at them: state, links both ways, every change, the newest of each layer."""

from __future__ import annotations

import pytest

import aether
from aether.api import briefing, entries, forget
from aether.errors import Conflict, InvalidInput, NotFound
from aether.store import undo
from aether.store.authors import acting
from aether.store.snapshot import load


@pytest.fixture
def rule(home):
    aether.add_working_memory_item("Round half to even.", "decision", home=home)
    return str(aether.add_working_memory_item("Never use floats for money.", "constraint", 0.9, home=home))


def steps(changes):
    return [(each.operation, bool(each.before), bool(each.after)) for each in changes]


def test_the_history_of_an_entry_has_each_change_of_it_and_no_other(home, rule):
    other = str(aether.add_working_memory_item("Amounts are cents.", "decision", home=home))
    aether.update_working_memory_item(rule, {"content": "Never use floats."}, home=home)
    aether.fold(home=home)
    aether.update_working_memory_item(other, {"content": "Amounts are integers."}, home=home)
    aether.search_memory("floats", home=home)
    aether.create_associative_link(rule, other, "causal_relationship", home=home)

    found, complete = entries.changes(rule, home=home)

    assert steps(found) == [("link", True, True), ("update", True, True), ("add", False, True)]
    assert found[1].before["content"] == "Never use floats for money."
    assert found[1].after["content"] == "Never use floats."
    assert (entries.about(rule, home=home).state, complete) == ("in force", True)


def test_a_history_follows_an_entry_whose_place_in_its_list_moves(home):
    names = [str(aether.add_working_memory_item(f"Item {nth}.", "decision", home=home)) for nth in range(6)]
    aether.create_associative_link(names[4], names[0], "causal_relationship", home=home)
    aether.forget([names[1]], home=home)
    aether.create_associative_link(names[4], names[2], "causal_relationship", home=home)
    aether.undo(home=home)
    aether.undo(home=home)
    aether.create_associative_link(names[4], names[5], "causal_relationship", home=home)
    aether.update_working_memory_item(names[4], {"content": "Item four."}, home=home)

    found, _ = entries.changes(names[4], home=home)

    assert [each[0] for each in steps(found)] == ["update", "link", "undo", "link", "link", "add"]
    assert [len(each.after["associative_links"]) for each in found] == [2, 2, 1, 2, 1, 0]
    assert [each[0] for each in steps(entries.changes(names[1], home=home)[0])] == ["undo", "forget", "add"]


def test_a_forgotten_entry_has_its_last_text_and_the_change_that_removed_it(home, rule):
    aether.forget([rule], home=home)

    found = entries.about(rule, home=home)

    assert (found.state, found.layer, found.text) == ("forgotten", "", "Never use floats for money.")
    aether.undo(entries.changes(rule, home=home)[0][0].revision, home=home)
    assert entries.about(rule, home=home).state == "in force"


def test_an_entry_that_never_was_is_not_found(home):
    with pytest.raises(NotFound):
        entries.about("wm_nothing", home=home)


def test_links_are_seen_from_both_ends(home, rule):
    other = str(aether.add_working_memory_item("Amounts are cents.", "decision", home=home))
    aether.create_associative_link(rule, other, "causal_relationship", home=home)

    (out,), (back,) = entries.about(rule, home=home).links, entries.about(other, home=home).links

    assert (out.id, out.type, out.out, out.text) == (other, "causal_relationship", True, "Amounts are cents.")
    assert (back.id, back.type, back.out) == (rule, "causal_relationship", False)


def test_what_is_superseded_names_what_is_in_its_place(home, rule):
    aether.clear_working_memory(home=home)
    made = forget.supersede(rule, {"content": "Money is integer cents."}, home=home).item

    found = entries.about(rule, home=home)

    assert (found.state, found.by) == ("superseded", made["id"])
    assert entries.about(made["id"], home=home).links[0].id == rule


def test_no_more_of_the_history_is_read_than_is_asked_for(home, rule, monkeypatch):
    for nth in range(5):
        aether.update_working_memory_item(rule, {"content": f"Rule {nth}."}, home=home)

    few, whole = undo.entry_changes(load(home), rule, most=2)
    monkeypatch.setattr(undo, "MOST_READ", 3)
    read, complete = undo.entry_changes(load(home), rule)

    assert (len(few), whole, len(read), complete) == (2, False, 3, False)


def test_a_change_says_how_much_its_revision_changed(home, rule):
    aether.add_working_memory_items(
        [{"content": f"Later {nth}.", "type": "decision"} for nth in range(3)], home=home
    )
    aether.create_associative_link(rule, aether.list_working_memory_items(home=home)[0]["id"], home=home)
    aether.compress(1, home=home)

    compressed, *older = entries.changes(rule, home=home)[0]

    assert (compressed.extent["items"], compressed.extent["sessions"]) == (5, 1)
    assert [one.extent for one in older] == [{"items": 1}, {"items": 1}]


def test_the_newest_come_first_layer_by_layer_and_page_by_page(home):
    names = [
        str(aether.add_working_memory_item(f"Item {nth}.", "outcome" if nth % 2 else "decision", home=home))
        for nth in range(7)
    ]

    live = entries.newest(limit=3, home=home)
    aether.clear_working_memory(home=home)
    older = entries.newest(layer="archive", start=2, limit=3, home=home)
    typed = entries.newest(layer="archive", types=["outcome"], limit=2, home=home)

    assert ([line.id for line in live.lines], live.total, live.more) == (names[:3:-1], 7, True)
    assert ([line.id for line in older.lines], older.total, older.more) == (names[4:1:-1], 7, True)
    assert ([line.id for line in typed.lines], typed.more) == ([names[5], names[3]], True)
    assert entries.newest(layer="working_memory", home=home).lines == []
    with pytest.raises(InvalidInput):
        entries.newest(layer="attic", home=home)


def test_who_acts_through_a_surface_is_the_author_of_the_change(home, rule):
    with acting("viewer") as done:
        aether.forget([rule], home=home)
    aether.undo(home=home)

    assert [line.by for line in aether.log(home=home)[:2]] == ["queen", "viewer"]
    assert done.revisions == [aether.log(home=home)[1].revision]


def test_a_surface_that_only_reads_commits_nothing_and_leaves_the_spool(home, rule):
    with acting("viewer", read_only=True), pytest.raises(Conflict, match="read-only"):
        aether.forget([rule], home=home)

    assert entries.about(rule, home=home).state == "in force"


def test_the_brief_of_a_sub_agent_has_its_lines_with_their_sources(home, rule):
    found = briefing.brief(home, occasion="subagent", caste="builder")

    assert found["block"].split("\n")[1:] == briefing.subagent_brief(home, "builder").split("\n")[1:]
    assert [line["ids"] for line in found["lines"] if line["text"] == "Never use floats for money."] == [
        [rule]
    ]
    assert all(line["tokens"] > 0 for line in found["lines"])
    assert found["tokens"] >= sum(line["tokens"] for line in found["lines"])


def test_a_protected_line_of_a_brief_names_its_item(home):
    name = str(
        aether.add_working_memory_item(
            "The port is 8010.", "observation", home=home, metadata={"protected": True, "evidence": "person"}
        )
    )

    (line,) = [line for line in briefing.brief(home)["lines"] if "8010" in line["text"]]

    assert (line["ids"], line["evidence"]) == ([name], "person")
