"""The server, asked by the real client: in this process, and as a process of its own over stdio."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

import aether
from aether.api import compress, graph, working
from aether.errors import AetherError, BackendUnavailable, InvalidInput
from aether.mcp import catalogue
from aether.mcp import server as serving
from aether.store import doctor
from aether.tokens.counters import counter
from tests.tables import rows

servers = pytest.importorskip("tests.mcp.servers", reason="no mcp package to serve with")
from tests.mcp.servers import MODES, ask, call, mcp, program, text_of  # noqa: E402

pytestmark = pytest.mark.extras

ANT = {"name": "ant", "entityType": "insect", "observations": ["It digs."]}
# The list of tools in tokens of the built-in estimate; measured 1,421 and 795.
MOST_TOKENS = {"memory": 1_450, "graph": 820}
WRITES = 20


def build(home, tools="all"):
    return serving.build(str(home), tools=tools)


def test_the_tools_are_offered_with_what_a_client_may_assume_of_them(home):
    tools = {tool.name: tool for tool in ask(build(home), lambda client: client.list_tools()).tools}

    assert len(tools) == 22
    assert tools["recall"].annotations.read_only_hint
    assert tools["delete_entities"].annotations.destructive_hint
    assert tools["delete_entities"].annotations.idempotent_hint
    assert not tools["remember"].annotations.destructive_hint
    assert not tools["remember"].annotations.open_world_hint
    assert tools["remember"].input_schema["required"] == ["content"]
    assert tools["phase"].input_schema["properties"]["action"]["enum"] == [
        "show",
        "start",
        "complete",
        "decide",
    ]
    assert tools["read_graph"].output_schema["required"] == ["entities", "relations"]
    assert tools["recall"].output_schema is None


def test_closing_a_conversation_costs_little_to_offer(home):
    [tool] = [
        each
        for each in ask(build(home), lambda client: client.list_tools()).tools
        if each.name == "close_session"
    ]
    offered = {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}

    assert counter("estimate", 1.0)(json.dumps(offered, separators=(",", ":"))) <= 500
    assert tool.input_schema.get("required", []) == []


@rows(
    ("arguments", "said"),
    [
        ({"content": "Keep it.", "protect": True}, "remember has no 'protect'. It takes content, type,"),
        ({"text": "Keep it."}, "remember has no 'text'. It takes content, type,"),
        ({}, "remember: content: Field required. It takes content, type,"),
        ({"content": ["Keep it."]}, "remember: content: Input should be a valid string. It takes content,"),
    ],
)
def test_a_wrong_or_unknown_argument_is_rejected_with_the_known_ones(home, arguments, said):
    result = call(build(home), "remember", **arguments)

    assert result.is_error
    assert said in text_of(result)
    assert "pydantic" not in text_of(result)
    assert aether.get_memory_status(home=home)["working_memory"]["items"] == 0


def test_the_graph_tools_ignore_unknown_arguments(home):
    assert not call(build(home), "create_entities", entities=[ANT], more=1).is_error


@pytest.mark.parametrize("name", MOST_TOKENS)
def test_the_list_of_tools_costs_a_model_little(home, name):
    tools = ask(build(home, name), lambda client: client.list_tools()).tools
    reported = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in tools
    ]

    assert counter("estimate", 1.0)(json.dumps(reported, separators=(",", ":"))) <= MOST_TOKENS[name]


def test_remembered_items_are_recalled_over_the_protocol(home):
    async def asking(client):
        reported = text_of(await client.call_tool("remember", {"content": "Use SQLite.", "type": "decision"}))
        index = text_of(await client.call_tool("recall", {"query": "sqlite"}))
        added = reported.split()[2].rstrip(".")
        return added, index, text_of(await client.call_tool("get", {"ids": [added]}))

    added, index, full = ask(build(home), asking)

    assert added in index
    assert "Use SQLite." in full


def test_another_process_writes_to_the_same_home(home):
    async def asking(client):
        before = text_of(await client.call_tool("recall", {"query": "sqlite"}))
        aether.add_working_memory_item("Use SQLite.", "decision", home=home)
        return before, text_of(await client.call_tool("recall", {"query": "sqlite"}))

    before, after = ask(build(home), asking)

    assert before.startswith("Nothing")
    assert "Use SQLite." in after


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("remember", {}, "content"),
        ("remember", {"content": ["x"]}, "string"),
        ("remember", {"content": "x", "relevance": 7}, "Use a number from 0 to 1"),
        ("recall", {"query": "  "}, "query"),
        ("recall", {"query": "x", "limit": "many"}, "integer"),
        ("timeline", {"id": "none"}, "in no layer"),
        ("get", {"ids": ["../../etc/passwd"]}, "in no layer"),
        ("compress", {"action": "explode"}, "auto"),
        ("compress", {"phase": -1}, "phase"),
        ("phase", {"action": "decide"}, "decision is missing"),
        ("signals", {"action": "emit", "context": "x", "type": "PANIC"}, "PANIC"),
        ("create_entities", {"entities": [{"name": "x"}]}, "entityType"),
        ("create_entities", {"entities": "x"}, "list"),
        (
            "add_observations",
            {"observations": [{"entityName": "x", "contents": []}]},
            "Entity with name x not found",
        ),
        ("no_such_tool", {}, "no_such_tool"),
    ],
)
def test_an_impossible_call_is_answered_with_the_fix(home, name, arguments, words):
    result = call(build(home), name, **arguments)

    assert result.is_error
    assert words in text_of(result)


def test_a_list_that_a_client_sends_as_text_is_a_list(home):
    result = call(build(home), "create_entities", entities=json.dumps([ANT]))

    assert result.structured_content == {"entities": [ANT]}


def test_lone_surrogates_are_replaced_in_answers(home):
    graph.create_entities([{**ANT, "observations": ["\ud800"]}], home=home)

    result = call(build(home), "open_nodes", names=["ant"])

    assert result.structured_content["entities"][0]["observations"] == ["?"]


def test_lone_surrogates_are_replaced_in_errors(home):
    result = call(build(home), "get", ids=["entity:\ud800x"])

    assert result.is_error
    assert "Entity with name ?x not found" in text_of(result)


def test_a_cut_graph_has_its_note_in_text_and_value(home):
    graph.create_entities([{**ANT, "observations": ["x" * 30_000]}], home=home)

    result = call(build(home), "read_graph")

    assert result.content[1].text == result.structured_content["note"]


def test_the_home_of_the_project_is_made_at_the_first_call(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)

    async def asking(client):
        await client.list_tools()
        before = (tmp_path / ".aether").exists()
        await client.call_tool("remember", {"content": "It is here."})
        return before

    assert not ask(serving.build(), asking)
    assert working.list_working_memory_items(home=tmp_path / ".aether")[0]["content"] == "It is here."


def test_a_long_call_delays_no_other_and_reports_progress(home, monkeypatch):
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    go_on = threading.Event()
    real = compress.compress

    def slow(*arguments, **options):
        assert go_on.wait(30)
        return real(*arguments, **options)

    monkeypatch.setattr(compress, "compress", slow)
    heard = []

    async def asking(client):
        async def hear(progress, total, message):
            heard.append(message)

        long = asyncio.ensure_future(client.call_tool("compress", {}, progress_callback=hear))
        status = text_of(await client.call_tool("status", {}))
        go_on.set()
        return status, text_of(await long)

    status, done = ask(build(home), asking)

    assert "working memory: 1 item," in status
    assert done.startswith("Session ")
    assert heard[1:2] == ["asking extractive"]


def test_whoever_listens_hears_that_the_graph_changed(home):
    async def asking(client):
        async with client.listen(resource_subscriptions=["memory://knowledge-graph"]) as changes:
            await client.call_tool("create_entities", {"entities": [ANT]})
            return await anext(aiter(changes))

    assert "knowledge-graph" in str(ask(build(home), asking, mode="2026-07-28"))


def test_without_the_package_it_says_what_to_install(monkeypatch, home):
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)

    with pytest.raises(BackendUnavailable, match=r"\.\[mcp\]"):
        build(home)


def test_an_unknown_set_of_tools_is_rejected(home):
    with pytest.raises(InvalidInput):
        build(home, "some")


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_process_over_stdio_in_each_version_of_the_protocol(home, mode):
    async def asking(client):
        await client.call_tool("create_entities", {"entities": [ANT]})
        tools = await client.list_tools()
        return [tool.name for tool in tools.tools], await client.call_tool("read_graph", {})

    names, found = ask(program(home, "--tools", "graph"), asking, mode=mode)

    assert len(names) == 9
    assert found.structured_content == {"entities": [ANT], "relations": []}


@pytest.mark.slow
def test_two_servers_at_once_lose_nothing(home):
    async def one(name):
        async with mcp.Client(program(home, "--tools", "all")) as client:
            for n in range(WRITES):
                await client.call_tool("remember", {"content": f"{name} says {n}."})
                await client.call_tool("create_entities", {"entities": [{**ANT, "name": f"{name} {n}"}]})

    async def both():
        await asyncio.gather(one("ann"), one("bob"))

    asyncio.run(both())

    assert len(working.list_working_memory_items(home=home)) == 2 * WRITES
    assert len(graph.read_graph(home=home)["entities"]) == 2 * WRITES
    assert doctor.examine(home) == []


# What is printed and logged while the server is at work.
NOISE = """
import logging, os
from aether.mcp import tools
real = tools.get_memory_status
def noisy(**options):
    print("noise in a call"); os.write(1, b"noise on the descriptor\\n"); logging.getLogger("x").warning("noise in a log")
    return real(**options)
tools.get_memory_status = noisy
"""


def spoken(lines, home, *, code="", last=2):
    """Return what a server writes to stdout and stderr, and its exit code, when stdin ends after the answer `last`."""
    start = program(home, code=code)
    process = subprocess.Popen(
        [start.command, *start.args],
        env=start.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        process.stdin.writelines(
            line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
        )
        process.stdin.flush()
        out = []
        while not out or f'"id":{last},'.encode() not in out[-1].replace(b" ", b""):
            out.append(process.stdout.readline())
            assert out[-1], process.stderr.read().decode()
        rest, err = process.communicate()
    return [*out, *rest.splitlines()], err.decode(), process.returncode


def request(id, method, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


HELLO = [
    request(
        1,
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "t", "version": "1"},
    ),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


@pytest.mark.slow
def test_the_end_of_stdin_is_the_end_of_the_process(home):
    out, _, code = spoken([*HELLO, request(2, "tools/list")], home)

    assert code == 0
    assert {json.loads(line)["id"] for line in out} == {1, 2}


@pytest.mark.slow
def test_nothing_but_the_protocol_is_on_stdout_whatever_prints(home):
    out, err, _ = spoken([*HELLO, request(2, "tools/call", name="status", arguments={})], home, code=NOISE)

    assert [json.loads(line)["jsonrpc"] for line in out] == ["2.0", "2.0"]
    assert all(f"noise {where}" in err for where in ("in a call", "on the descriptor", "in a log"))


@pytest.mark.slow
def test_garbage_on_stdin_does_not_end_the_server(home):
    garbage = [
        b"garbage\n",
        b"[]\n",
        b"{}\n",
        b'{"jsonrpc":"2.0","id":7,"method":"no/such"}\n',
        b"\xff\xfe\n",
    ]

    out, _, code = spoken([*garbage, *HELLO, request(2, "tools/list")], home)

    answers = {answer.get("id"): answer for answer in map(json.loads, out)}
    assert code == 0
    assert answers[2]["result"]["tools"]
    assert "error" in answers[7]
    assert "Nothing was done" in answers[None]["error"]["message"]


def speak(lines, home, monkeypatch):
    """Return the answers, by id, of a server in this process to the `lines` on its stdin."""
    stdin, stdout = (io.TextIOWrapper(io.BytesIO(data)) for data in (b"".join(lines), b""))
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys, "stdout", stdout)

    serving.serve(str(home))

    return {answer.get("id"): answer for answer in map(json.loads, stdout.buffer.getvalue().splitlines())}


@pytest.mark.parametrize(
    ("fault", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"remember","arguments":{"text":"a \\ud800 b"}}}', 7),
        (b'{"jsonrpc":"2.0","id":"seven","method":"tools/\\udfff","params":{}}', "seven"),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list","params":{}}', None),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list"', None),
        (b"[" * 100_000, None),
    ],
)  # fmt: skip
def test_a_line_that_is_no_message_is_answered_with_an_error(home, monkeypatch, fault, id):
    answers = speak(
        [fault + b"\n", *(json.dumps(line).encode() + b"\n" for line in HELLO)], home, monkeypatch
    )

    assert "half of a surrogate pair" in answers[id]["error"]["message"]
    assert answers[1]["result"]["serverInfo"]["name"] == "aether"


@pytest.mark.slow
def test_a_server_that_is_killed_has_stored_all_that_it_acknowledged(home):
    start = program(home, "--tools", "graph")
    process = subprocess.Popen(
        [start.command, *start.args], env=start.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    acknowledged = []
    with process:
        for line in HELLO:
            print(json.dumps(line), file=process.stdin, flush=True)
        process.stdout.readline()
        for n in range(WRITES):
            entity = {**ANT, "name": f"ant {n}"}
            asked = request(n + 10, "tools/call", name="create_entities", arguments={"entities": [entity]})
            print(json.dumps(asked), file=process.stdin, flush=True)
            if n == WRITES - 1:
                break  # it is killed while it works on the last
            process.stdout.readline()
            acknowledged.append(entity["name"])
        process.kill()

    found = [entity["name"] for entity in graph.read_graph(home=home)["entities"]]
    assert found[: WRITES - 1] == acknowledged
    assert not [finding for finding in doctor.examine(home) if finding.level == "error"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("phase", {"action": "start", "number": 1, "name": "SECRET", "goal": "SECRET"}),
        ("remember", {"content": "Use it.", "type": "SECRET", "caste": "SECRET"}),
        ("signals", {"action": "emit", "type": "FOCUS", "context": "x", "caste": "SECRET"}),
    ],
)
def test_a_secret_is_stored_in_no_field_of_a_tool(home, name, arguments):
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    tool = next(tool for tool in catalogue.tools_of("all") if tool.name == name)
    filled = {field: secret if value == "SECRET" else value for field, value in arguments.items()}

    with suppress(AetherError):
        serving._as_agent(tool, {**filled, "home": home})

    assert not [path for path in home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert list(home.rglob("journal.jsonl"))
