"""The gate: who may state what, what waits, how a person decides, and that nothing that waits is anywhere else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import aether
from aether.api import (
    closing,
    colony,
    drain,
    goals,
    graph,
    handoffs,
    importing,
    patterns,
    review,
    working,
)
from aether.api.forget import erase, forget
from aether.api.home import read
from aether.cli.main import cli, main
from aether.errors import InvalidInput, NotFound, Refused
from aether.hosts import hook
from aether.memory import gate
from aether.store import authors, config, spool
from tests import homes
from tests.hook_player import entry, put
from tests.tables import rows

RULE = "Never push to main on a Friday."
FACT = "The exporter runs at night."


def set_mode(home, mode):
    (home / "config.toml").write_text(f'[memory]\nagents = "{mode}"\n')
    config.grant_trust(home / "config.toml", (home / "config.toml").read_bytes())
    return home


def waiting(home, session=""):
    return [item["content"] for item in review.waiting(session, home=home)]


def live(home):
    return [item["content"] for item in aether.list_working_memory_items(home=home)]


def as_agent(home, content, type="decision", **more):
    with authors.acting(authors.MCP):
        return working.add_note(content, type, 0.7, home=home, **more)


# Who waits


def test_what_an_agent_states_in_a_shell_has_it_as_its_source(home):
    set_mode(home, "propose")
    with authors.acting(authors.AGENT):
        working.add_working_memory_item(FACT, "decision", home=home)

    (item,) = review.waiting(home=home)
    assert (item["metadata"]["source"], item["metadata"]["proposal"]["by"]) == ("agent", "agent")
    assert len(aether.undo_source("agent", home=home).targets) == 1


@rows(
    ("mode", "type", "by", "waits"),
    [
        ("write", "decision", {"caste": "builder"}, False),
        ("write", "constraint", {}, False),
        ("write", "constraint", {"caste": "builder"}, True),
        ("write", "preference", {"source": "mcp"}, True),
        ("write", "constraint", {"metadata": {"evidence": "agent"}}, True),
        ("propose", "decision", {}, False),
        ("propose", "decision", {"caste": "builder"}, True),
        ("propose", "observation", {"source": "scout", "metadata": {"evidence": "person"}}, True),
        ("propose", "observation", {"caste": "scout", "metadata": {"evidence": "agent", "confirmed_by": "person"}}, True),
        ("propose", "observation", {"metadata": {"evidence": "machine"}}, False),
    ],
)  # fmt: skip
def test_what_an_agent_states_waits_as_the_person_says(mode, type, by, waits, tmp_path):
    home = set_mode(homes.fresh(tmp_path), mode)

    added = aether.add_working_memory_item(FACT, type, home=home, **by)

    assert added.waits is waits
    assert (waiting(home), live(home)) == (([FACT], []) if waits else ([], [FACT]))


def test_a_rule_in_a_whole_sentence_of_a_person_is_the_persons(home):
    aether.add_working_memory_item(f"I am in a hurry. {RULE} Thanks!", "user_input", home=home)

    assert not as_agent(home, "never push to main on a friday", "constraint").waits
    assert as_agent(home, "push to main on a Friday", "constraint").waits


def test_who_acts_over_mcp_cannot_claim_to_be_the_person(home):
    set_mode(home, "propose")
    forged = {"evidence": "person", "confirmed_by": "person", "noted": True}

    for source in ("queen", "person"):
        assert as_agent(home, f"{RULE} ({source})", "constraint", source=source, metadata=forged).waits
    assert live(home) == []


@rows("by", ["mcp", "agent"])
def test_an_agent_decides_about_nothing(by, home):
    added = as_agent(home, RULE, "constraint")
    with authors.acting(by), pytest.raises(Refused, match="only a person decides"):
        review.decide([added], accept=True, home=home)
    assert waiting(home) == [RULE]


def test_a_command_in_the_shell_of_an_agent_shows_nothing_that_waits(home, monkeypatch, capsys):
    set_mode(home, "propose")
    as_agent(home, FACT)

    def printed(*command):
        main(["--home", str(home), *command])
        return "".join(capsys.readouterr())

    assert all(FACT in printed(*command) for command in (["log"], ["export"], ["show", "proposals"]))

    monkeypatch.setenv("CLAUDECODE", "1")

    for command in (["log"], ["export"], ["show", "proposals"], ["show", "memory"], ["memory", "review"]):
        assert FACT not in printed(*command), command
    assert '"items"' in printed("show", "memory")


@pytest.mark.parametrize("field", ["evidence", "corrected_by"])
def test_an_agent_that_corrects_an_entry_vouches_for_it_itself(home, field):
    rule = aether.add_working_memory_item("Deploy on Mondays.", "constraint", home=home)

    with authors.acting(authors.AGENT):
        with pytest.raises(Refused, match="who vouches"):
            aether.update_working_memory_item(rule, {"metadata": {field: "person"}}, home=home)
        aether.update_working_memory_item(rule, {"content": "Deploy on Fridays."}, home=home)

    item = aether.get_working_memory_item(rule, home=home)
    assert item["metadata"]["corrected_by"] == "agent"


def test_what_cannot_wait_is_refused_to_agents_and_not_to_persons(home):
    set_mode(home, "propose")
    with authors.acting(authors.MCP), pytest.raises(Refused, match="cannot wait"):
        aether.emit_signal("FOCUS", "the exporter", home=home)
    aether.emit_signal("FOCUS", "the exporter", home=home)
    denied = aether.memory_tool({"command": "create", "path": "/memories/a.md", "file_text": "x"}, home=home)
    assert denied.is_error
    assert "Refused" not in denied.text
    assert "memory.agents" in denied.text
    with pytest.raises(Refused, match="without a hand-off"):
        aether.create_short_term_session(1, {"summary": "x"}, home=home)


# Off: memory is only read


def test_off_refuses_agents_and_lets_the_person_write(home):
    set_mode(home, "off")

    with pytest.raises(Refused, match=r"memory\.agents") as refusal:
        as_agent(home, FACT)
    assert 'memory.agents = "propose"' in str(refusal.value)
    with pytest.raises(Refused):
        aether.add_working_memory_item(FACT, "decision", home=home, caste="builder")
    with authors.acting(authors.MCP), pytest.raises(Refused, match="only read"):
        aether.emit_signal("FOCUS", "x", home=home)
    aether.add_working_memory_item(RULE, "constraint", home=home)
    with authors.acting(authors.MCP):
        aether.get_working_memory_item(review_id(home), home=home)
    assert live(home) == [RULE]
    assert aether.compress(0, home=home).ingested.stored
    with pytest.raises(Refused):
        aether.trigger_phase_boundary_compression(0, {"summary": "x"}, home=home)


def review_id(home):
    return read(home).documents["memory"]["working_memory"]["items"][0]["id"]


def test_off_lets_hooks_capture_nothing_and_still_brief(home, monkeypatch):
    monkeypatch.chdir(home.parent)
    aether.add_working_memory_item(RULE, "constraint", home=home)
    for mode, kept in (("off", 0), ("write", 1)):
        set_mode(home, mode)
        event = {"session_id": mode, "cwd": str(home.parent), "prompt": "What now?", "source": "startup"}
        output = hook.main(
            ["SessionStart"], json.dumps({**event, "hook_event_name": "SessionStart"}).encode()
        )[1]
        hook.main(["UserPromptSubmit"], json.dumps({**event, "hook_event_name": "UserPromptSubmit"}).encode())
        assert RULE in output
        assert len(spool.waiting(str(home))) == kept, mode
    assert handoffs.summary_change(read(set_mode(home, "off")), "A summary.", now=homes.NOW).patches == {}


def test_a_home_that_nobody_trusts_may_only_close_the_gate(home):
    for mode, counts in (("off", "off"), ("propose", "propose"), ("write", "write")):
        (home / "config.toml").write_text(f'[memory]\nagents = "{mode}"\n')
        assert config.load(home).memory_agents == counts
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AETHER_MEMORY_AGENTS", "off")
        assert config.load(home).memory_agents == "off"


# Captured, imported, written by an architect


def test_of_a_turn_only_the_agents_words_wait_and_an_accepted_one_keeps_its_place(home):
    set_mode(home, "propose")
    said = "I moved the invoices to the new table."
    put(
        home,
        entry("UserPromptSubmit", prompt="Please move the invoices.", prompt_id="p"),
        entry("Stop", message=said, prompt_id="p"),
    )

    drain.drain(home)

    assert (live(home), waiting(home)) == (["Please move the invoices."], [said])
    [item] = review.waiting(home=home)
    review.decide([item["id"]], accept=True, home=home)
    [accepted] = [one for one in aether.list_working_memory_items(home=home) if one["content"] == said]
    about = accepted["metadata"]
    assert (accepted["id"], about["timestamp"], about["evidence"], about["confirmed_by"]) == (
        item["id"], item["metadata"]["timestamp"], "agent", "person",
    )  # fmt: skip
    assert "state" not in about


def test_a_list_of_tasks_waits_and_a_line_about_a_phase_changes_nothing(home):
    set_mode(home, "propose")
    todos = {
        "todos": [{"content": "Mail the log to everybody", "status": "pending", "activeForm": "Mailing"}]
    }
    put(
        home,
        entry("UserPromptSubmit", prompt="Please move the invoices.", prompt_id="p"),
        entry("PostToolUse", tool="TodoWrite", input=todos, output="ok", failed=False, id="t1"),
        entry("Stop", message='aether: start phase 3 "Mail the log"', prompt_id="p"),
        entry("SessionEnd"),
    )  # fmt: skip

    drain.drain(home)

    assert any("Mail the log to everybody" in text for text in waiting(home))
    assert live(home) == ["Please move the invoices."]
    assert colony.colony(home=home)["colony_status"]["current_phase"] is None


def test_a_graph_is_imported_only_where_agents_write(home, tmp_path):
    file = tmp_path / "graph.jsonl"
    file.write_text('{"type": "entity", "name": "a", "entityType": "b", "observations": ["c"]}')
    set_mode(home, "propose")

    with pytest.raises(Refused, match="cannot wait for you"):
        graph.import_graph(file, home=home)
    assert graph.import_graph(file, home=set_mode(home, "write")).merged.entities == 1


def test_an_import_waits_whole_unless_the_person_vouches_for_it(home, tmp_path):
    set_mode(home, "propose")
    file = tmp_path / "talk.jsonl"
    file.write_text(
        "\n".join(json.dumps({"role": role, "content": f"{role} says it."}) for role in ("user", "assistant"))
    )

    first = importing.import_transcripts([file], home=home)
    again = importing.import_transcripts([file], home=home)

    assert (first.items, first.waiting, again.waiting, again.known) == (0, 2, 0, 2)
    assert aether.search_memory("says", home=home) == []
    assert len(waiting(home, "talk.jsonl")) == 2
    assert waiting(home, "other.jsonl") == []
    review.decide([item["id"] for item in review.waiting(home=home)], accept=False, home=home)
    assert importing.import_transcripts([file], home=home).waiting == 0
    other = set_mode(homes.fresh(tmp_path / "b"), "propose")
    assert importing.import_transcripts([file], accept=True, home=other).waiting == 0
    assert len(live(other)) == 2


def test_an_architects_statements_wait_and_the_session_is_selected(home):
    old = aether.add_working_memory_item("The table is frozen.", "decision", home=home)
    set_mode(home, "propose")
    about = {"conversation": "c-one", "evidence": "person", "pointer": {"file": "c.jsonl"}}
    for text in ("Please thaw the table.", "The table is not frozen any more."):
        aether.add_working_memory_item(text, "user_input", home=home, metadata=about)
    answer = {
        "next": [{"text": "Thaw the table.", "quote": "thaw the table"}],
        "decisions": [
            {"decision": "The table is not frozen.", "quote": "not frozen any more", "supersedes": str(old)}
        ],
        "open": [{"text": "Nobody said this.", "quote": "it was never said"}],
        "summary": "The table thaws.",
    }

    done = closing.close_session(answer, home=home)
    again = closing.close_session(answer, home=home)

    assert [item["content"] for item in review.waiting(home=home)] == [*done.ingested.waiting.values()]
    assert sorted(waiting(home)) == ["Thaw the table.", "The table is not frozen.", "The table thaws."]
    assert done.dropped == [("open", "Nobody said this.")]
    assert again.ingested is None
    [session] = read(home).documents["memory"]["short_term_memory"]["sessions"]
    assert "thaws" not in json.dumps(session)
    assert session["metadata"]["architect"]["proposed_by"] == "host"
    [decision] = [doubt for doubt in review.review(home=home) if doubt.entries[0].type == "decision"]
    assert decision.quote == "not frozen any more"
    assert decision.source == "host, c-one"
    assert decision.effect == f"takes the place of {old}: The table is frozen."
    assert review.settle(decision.id, "keep", home=home).entry == decision.id
    ended = next(item for item in aether.list_working_memory_items(home=home) if item["id"] == old)[
        "metadata"
    ]
    assert (ended["state"], ended["ended_by"]) == ("superseded", decision.id)


def test_a_session_quotes_the_words_of_its_agent_that_still_wait(home):
    set_mode(home, "propose")
    put(
        home,
        entry("UserPromptSubmit", "c", prompt="Please fix it.", prompt_id="p"),
        entry("Stop", "c", message="The cache was stale.", prompt_id="p"),
    )
    drain.drain(home)

    done = closing.close_session(
        {"state": [{"text": "The cache was stale.", "quote": "cache was stale"}]}, home=home
    )

    assert done.dropped == []
    assert waiting(home) == ["The cache was stale."]


def test_markers_of_a_model_set_no_goal_where_agents_only_propose(home):
    goal = aether.add_goal("Ship the table.", home=home)
    set_mode(home, "propose")

    assert goals.apply_markers("[CHECKPOINT] Half of it.", home=home) == goals.Applied("")
    assert goals.goal(goal["id"], home=home)["checkpoints"] == []


# Decisions


def test_decisions_are_one_change_each_and_undone_by_one(home):
    set_mode(home, "propose")
    added = [as_agent(home, f"{FACT} {nth}") for nth in range(4)]
    before = read(home)

    assert review.decide(added, accept=True, home=home).entries == added
    assert read(home).revision == before.revision + 1
    aether.undo(home=home)
    assert read(home).documents == before.documents
    review.decide(added[:1], accept=False, home=home)
    assert as_agent(home, f"{FACT} 0") == ""
    with pytest.raises(Refused, match=r"a person rejected this statement"), authors.acting(authors.MCP):
        aether.add_working_memory_item(f"{FACT} 0", "decision", 0.7, home=home)
    with pytest.raises(NotFound, match="does not wait"):
        review.decide(added[:2], accept=True, home=home)
    assert len(waiting(home)) == 3
    aether.undo(home=home)
    assert read(home).documents == before.documents


@pytest.mark.parametrize(
    "about", [{"how": [1], "target": {}, "quote": 1, "items": 5}, {"how": "supersede", "target": "no id"}]
)
def test_a_proposal_that_names_nothing_is_a_new_entry(about, home):
    set_mode(home, "propose")
    added = as_agent(home, FACT)
    with authors.acting(authors.MCP):
        odd = aether.add_working_memory_item(RULE, "constraint", metadata={"proposal": about}, home=home)

    assert review.waiting(home=home)[1]["metadata"]["proposal"]["how"] == "new"
    assert review.decide([added, odd], accept=True, home=home).entries == [added, odd]
    assert {*live(home)} == {FACT, RULE}


def test_what_ends_an_entry_that_has_left_memory_is_accepted(home):
    older = aether.add_working_memory_item(RULE, "constraint", home=home)
    as_agent(home, "Never push on a holiday.", "constraint", supersedes=[older])
    assert review.waiting(home=home)[0]["metadata"]["proposal"]["target"] == older
    forget([older], home=home)

    review.decide([item["id"] for item in review.waiting(home=home)], accept=True, home=home)

    assert live(home) == ["Never push on a holiday."]


def test_an_accepted_entry_may_be_corrected_and_then_is_the_persons(home):
    added = as_agent(home, RULE, "constraint")
    with pytest.raises(InvalidInput, match="one accepted entry"):
        review.decide([added], accept=False, text="x", home=home)

    done = review.settle(added, "correct", "Never push on a Friday.", home=home)

    assert (done.entry, live(home)) == (added, ["Never push on a Friday."])
    assert read(home).documents["memory"]["working_memory"]["items"][0]["metadata"]["evidence"] == "person"
    assert review.review(home=home) == []


def test_what_it_would_give_evidence_to_is_named_and_secrets_are_blanked(home):
    fact = "The exporter must run twice a night, or invoices get lost."
    patterns.promote_item(str(aether.add_working_memory_item(fact, "constraint", 0.9, home=home)), home=home)
    set_mode(home, "propose")
    as_agent(home, f"{fact} password=hunter2hunter2")

    [doubt] = [one for one in review.review(home=home) if one.kind == "proposal"]

    assert "more evidence for pattern_" in doubt.effect
    assert "hunter2" not in str(doubt)


def test_the_oldest_captured_entries_make_room_and_others_do_not(home, monkeypatch):
    monkeypatch.setattr(gate, "MOST_WAITING", 2)
    set_mode(home, "propose")
    about = {"evidence": "agent", "pointer": {"file": "c.jsonl", "key": "k"}}
    aether.add_working_memory_item("Captured.", "outcome", home=home, metadata=about)
    for nth in range(2):
        as_agent(home, f"{FACT} {nth}")

    with pytest.raises(Refused, match="wait for a person"):
        as_agent(home, f"{FACT} 2")
    assert waiting(home) == [f"{FACT} 0", f"{FACT} 1"]
    # What is captured never stops the capture of a person's words.
    aether.add_working_memory_item("Captured again.", "outcome", home=home, metadata=about)
    assert waiting(home) == [f"{FACT} 0", f"{FACT} 1"]


def test_an_import_says_how_much_of_it_found_no_room(home, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gate, "MOST_WAITING", 2)
    set_mode(home, "propose")
    file = tmp_path / "talk.jsonl"
    lines = [{"role": "user", "content": f"Use port {port} from now on."} for port in (1, 2, 3, 4, 5)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    cli(["--home", str(home), "import", str(file)], standalone_mode=False)

    assert len(waiting(home)) == 2
    output = capsys.readouterr().out
    assert "2 items wait for you" in output
    assert "3 older items left" in output
    cli(["--home", str(home), "memory", "review"], standalone_mode=False)
    assert "an import states this user_input, no person" in capsys.readouterr().out


# Forgotten and erased, and read by no tool


def test_what_waits_is_forgotten_and_erased_as_any_other_entry(home):
    set_mode(home, "propose")
    as_agent(home, "The exporter is fine.")
    dropped = as_agent(home, "Call Zaphod Beeblebrox at home.")

    forget([dropped], home=home)
    assert waiting(home) == ["The exporter is fine."]
    aether.undo(home=home)
    assert len(waiting(home)) == 2
    erase([dropped], home=home)

    assert waiting(home) == ["The exporter is fine."]
    for path in home.rglob("*"):
        assert not path.is_file() or b"Zaphod" not in path.read_bytes(), path


def test_undoing_a_source_reaches_what_waits_of_it(home):
    set_mode(home, "propose")
    put(
        home,
        entry("Stop", "c-one", message="The page said: send the keys."),
        entry("Stop", "c-two", message="All is well."),
    )
    drain.drain(home)
    as_agent(home, FACT, caste="scout")
    before = read(home).documents

    aether.undo_source("c-one", home=home)
    aether.undo_source("scout", home=home)

    assert waiting(home) == ["All is well."]
    assert as_agent(home, FACT, caste="scout") == ""
    aether.undo(home=home)
    aether.undo(home=home)
    assert read(home).documents == before


def test_packets_are_refused_where_agents_only_propose_and_claims_are_not(home):
    set_mode(home, "propose")
    with pytest.raises(Refused, match="cannot wait"):
        aether.hand_over(to="scout", note="Push it now.", by="builder", home=home)
    assert aether.claim("task:docs", by="builder", home=home)["by"] == "builder"
    set_mode(home, "off")
    with pytest.raises(Refused, match="only read"):
        aether.claim("task:tests", by="builder", home=home)
    aether.hand_over(to="scout", note="Look at the tests.", home=home)


def test_a_document_as_a_model_may_see_it_has_no_proposals_of_earlier_releases():
    value = {"sessions": [{"metadata": {"proposals": [{"text": "x"}], "items": []}, "proposals": 1}]}

    assert gate.without_waiting(value) == {"sessions": [{"metadata": {"items": []}, "proposals": 1}]}


# At once, and on several machines

_PROPOSE = """
import sys
import aether
for nth in range(3):
    aether.add_working_memory_item(f"Fact {nth} of worker {sys.argv[2]}.", "decision", home=sys.argv[1], caste="builder")
"""


@pytest.mark.slow
def test_sixteen_processes_propose_at_once_and_nothing_is_lost(home):
    set_mode(home, "propose")
    workers = [subprocess.Popen([sys.executable, "-c", _PROPOSE, str(home), str(nth)]) for nth in range(16)]

    assert [worker.wait() for worker in workers] == [0] * 16
    assert sorted(waiting(home)) == sorted(
        f"Fact {nth} of worker {one}." for nth in range(3) for one in range(16)
    )
    assert live(home) == []
    review.decide([item["id"] for item in review.waiting("builder", home=home)], accept=True, home=home)


@pytest.mark.slow
def test_two_processes_that_decide_at_once_decide_once(home):
    set_mode(home, "propose")
    added = as_agent(home, FACT)
    code = "import sys, aether.api.review as r\nr.decide([sys.argv[2]], True, home=sys.argv[1])"

    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(home), added], stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]

    assert sorted(bool(worker.wait()) for worker in workers) == [False, True]
    assert live(home) == [FACT]
