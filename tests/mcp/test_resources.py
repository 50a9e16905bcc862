"""The home of a call, and the resources and prompts of the server."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import aether
from aether.api import compress, graph, recall
from aether.api.colony import emit_signal
from aether.errors import InvalidInput, NotFound
from aether.mcp import server
from aether.mcp.results import RESULT_CHARS
from aether.mcp.server import compress_prompt, served_home, summary_prompt

ANT = {"name": "ant", "entityType": "insect", "observations": ["It digs."]}


@pytest.fixture
def filled(home):
    graph.create_entities([ANT], home=home)
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    emit_signal("FOCUS", "search", home=home)
    return home


def item_of(home):
    return recall.recall("sqlite", home=home)[0].id


def test_each_is_json(filled):
    assert json.loads(server.knowledge_graph(filled)) == {"entities": [ANT], "relations": []}
    assert json.loads(server.overview(filled))["newest"][0]["gist"] == "Use SQLite."
    assert json.loads(server.signals(filled))[0]["type"] == "FOCUS"
    assert json.loads(server.state(filled))["colony_status"]["state"] == "IDLE"
    assert json.loads(server.entry(item_of(filled), filled))["content"] == "Use SQLite."
    with pytest.raises(NotFound):
        server.entry("none", filled)


def test_sessions_are_listed_with_their_summaries(filled):
    compress.compress(1, home=filled)

    assert json.loads(server.sessions(filled))[0]["summary"]


def read(home, uri, *, tools="all"):
    servers = pytest.importorskip("tests.mcp.servers", reason="no mcp package to serve with")
    from aether.mcp.server import build

    found = servers.ask(build(str(home), tools=tools), lambda client: client.read_resource(uri))
    return found.contents[0].text


@pytest.mark.extras
def test_a_client_reads_them_by_address(filled):
    assert json.loads(read(filled, "memory://knowledge-graph"))["entities"] == [ANT]
    assert json.loads(read(filled, "aether://memory"))["working_memory"]["items"] == 1
    assert "Use SQLite." in read(filled, f"aether://items/{item_of(filled)}")


@pytest.mark.extras
def test_a_long_resource_names_the_next_call_but_the_graph_is_whole(filled):
    long = aether.add_working_memory_item("zebra " * 8_000, "outcome", home=filled)
    graph.create_entities([{**ANT, "name": f"ant {n}" + "x" * 500} for n in range(100)], home=filled)

    assert "part=2" in read(filled, f"aether://items/{long}")
    assert len(json.loads(read(filled, "memory://knowledge-graph"))["entities"]) == 101


@pytest.mark.extras
def test_with_the_official_tools_there_is_only_the_graph(home):
    servers = pytest.importorskip("tests.mcp.servers", reason="no mcp package to serve with")
    from aether.mcp.server import build

    async def asking(client):
        return await client.list_resources(), await client.list_resource_templates()

    found, templates = servers.ask(build(str(home), tools="graph"), asking)

    assert [str(each.uri) for each in found.resources] == ["memory://knowledge-graph"]
    assert templates.resource_templates == []


@pytest.mark.extras
def test_a_missing_resource_is_an_error_with_a_message(home):
    servers = pytest.importorskip("tests.mcp.servers", reason="no mcp package to serve with")
    from aether.mcp.server import build

    missing = servers.refused(build(str(home)), lambda client: client.read_resource("aether://items/none"))
    (home / "data" / "memory.json").write_text('{"schema_version": 99}', encoding="utf-8")
    newer = servers.refused(build(str(home)), lambda client: client.read_resource("aether://memory"))

    assert "in no layer" in missing
    assert "memory" in newer
    assert "newer" in newer


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project in which the server is started from somewhere else."""
    directory = tmp_path / "project"
    (directory / ".git").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(directory))
    monkeypatch.chdir(tmp_path)
    return directory


def test_the_project_that_claude_code_names_has_its_home_made(project):
    assert served_home(None) == project / ".aether"
    assert (project / ".aether" / "data" / "memory.json").exists()


def test_a_home_that_is_named_comes_before_that_of_the_project(project, tmp_path, monkeypatch):
    assert served_home(str(tmp_path / "one" / ".aether")) == tmp_path / "one" / ".aether"

    monkeypatch.setenv("AETHER_HOME", str(tmp_path / "two" / ".aether"))

    assert served_home(None) == tmp_path / "two" / ".aether"
    assert (tmp_path / "two" / ".aether" / "data").is_dir()


def test_without_a_word_from_claude_code_it_is_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)

    assert served_home(None) == tmp_path / ".aether"


def test_a_home_with_files_of_hooks_only_is_created(project):
    (project / ".aether" / "hooks" / "spool").mkdir(parents=True)

    assert (served_home(None) / "data" / "memory.json").exists()


def test_no_home_is_made_in_ones_home_directory_unless_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)

    assert not served_home(None).exists()
    assert served_home(str(tmp_path / ".aether")).exists()


def test_no_home_is_made_where_that_is_turned_off(project, monkeypatch):
    monkeypatch.setenv("AETHER_AUTO_INIT", "0")

    assert not served_home(None).exists()
    assert not served_home(str(project / "other")).exists()


def test_nothing_of_another_kind_is_made_a_home(tmp_path):
    from aether.api.status import get_memory_status

    assert served_home(str(tmp_path)) == tmp_path
    with pytest.raises(NotFound, match="is not a home"):
        get_memory_status(home=served_home(str(tmp_path)))


def test_compressing_puts_the_hand_off_before_the_model(home):
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)

    text = compress_prompt("", str(home))

    assert "You write the memory of a stretch of work" in text
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
    servers = pytest.importorskip("tests.mcp.servers", reason="no mcp package to serve with")
    from aether.mcp.server import build

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


@pytest.mark.parametrize("name", ["h", ".aether"])
def test_first_calls_at_once_make_one_home_and_are_all_stored(name, tmp_path):
    def call(number):
        home = served_home(str(tmp_path / name))
        return aether.add_working_memory_item(f"Fact {number}.", "observation", home=home)

    with ThreadPoolExecutor(6) as pool:
        ids = list(pool.map(call, range(6)))

    assert {item["id"] for item in aether.list_working_memory_items(home=tmp_path / name)} == {*ids}
