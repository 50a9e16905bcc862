"""Prompts: what a person starts by name, with and without a server."""

from __future__ import annotations

import pytest

import aether
from aether.errors import InvalidInput
from aether.integrations.mcp_server.results import RESULT_CHARS
from aether.integrations.mcp_server.server import compress_prompt, summary_prompt


def test_compressing_puts_the_hand_off_before_the_model(home):
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)

    text = compress_prompt("", str(home))

    assert "You are the architect" in text
    assert "Use SQLite." in text
    assert text.endswith("action=ingest.")


def test_with_nothing_to_compress_it_says_so(home):
    assert "phase 7" in compress_prompt("7", str(home))
    with pytest.raises(InvalidInput, match="Use a number"):
        compress_prompt("first", str(home))


def test_a_long_hand_off_says_how_to_get_the_rest(home):
    for n in range(30):
        aether.add_working_memory_item(f"{n}: " + "A long story. " * 100, "outcome", home=home)

    text = compress_prompt("1", str(home))

    assert len(text) < RESULT_CHARS + 500
    assert "part=2" in text


@pytest.mark.parametrize("phase", ["one", "9" * 5_000])
def test_a_phase_is_a_number_that_can_be_one(home, phase):
    with pytest.raises(InvalidInput, match="Use a number, or leave it out"):
        compress_prompt(phase, str(home))


def test_a_summary_is_asked_for_in_one_of_the_ways_that_compaction_knows():
    assert "800" in summary_prompt("brief")
    with pytest.raises(InvalidInput, match="task_state"):
        summary_prompt("poem")


@pytest.mark.extras
def test_a_client_gets_them_by_name(home):
    servers = pytest.importorskip(
        "tests.integrations.mcp_server.servers", reason="no mcp package to serve with"
    )
    from aether.integrations.mcp_server.server import build

    async def asking(client):
        listed = await client.list_prompts()
        made = await client.get_prompt("compress", {})
        summary = await client.get_prompt("summary", {"kind": "brief"})
        texts = [each.messages[0].content.text for each in (made, summary)]
        return [each.name for each in listed.prompts], *texts

    names, text, summary = servers.ask(build(str(home)), asking)

    assert names == ["compress", "summary"]
    assert "Working Memory is empty" in text
    assert "800" in summary
    wrong = servers.refused(build(str(home)), lambda client: client.get_prompt("summary", {"kind": "poem"}))
    assert "task_state" in wrong
