"""The memory tool in the real SDK: its dispatch, its runner against a server on this machine, and its own tool beside ours."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aether
from aether.errors import BackendUnavailable
from aether.frameworks import memory_tool as integration
from tests import homes
from tests.api.test_memory_tool import shown, stored
from tests.effort import examples

# A server notices that it is to end after so long.
POLL_SECONDS = 0.01


@pytest.fixture
def sdk():
    return pytest.importorskip("anthropic.tools", reason="needs the package anthropic")


@pytest.fixture
def tool(sdk, home):
    return integration.AetherMemoryTool(home=home)


def test_it_is_declared_as_the_tool_of_the_api(tool):
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_its_own_options_are_the_sdks(sdk, home):
    cached = integration.AetherMemoryTool(home, cache_control={"type": "ephemeral"})

    assert cached.to_dict()["cache_control"] == {"type": "ephemeral"}


def test_every_command_is_dispatched(tool, home):
    def call(command, **given):
        return tool.call({"command": command, **given})

    assert call("create", path="/memories/a.md", file_text="one\n").startswith("File created successfully")
    assert call("insert", path="/memories/a.md", insert_line=1, insert_text="two").endswith(
        "has been edited."
    )
    assert call("str_replace", path="/memories/a.md", old_str="one", new_str="1").startswith(
        "The memory file has been"
    )
    assert call("view", path="/memories/a.md", view_range=[2, -1]).endswith("     2\ttwo")
    assert call("rename", old_path="/memories/a.md", new_path="/memories/b.md").startswith(
        "Successfully renamed"
    )
    assert shown(home) == stored(home) == {"/memories/b.md": "1\ntwo\n"}
    assert call("delete", path="/memories/b.md") == "Successfully deleted /memories/b.md"


def test_an_error_is_marked_as_one(sdk, tool):
    for command, said in (
        ({"command": "view", "path": "/memories/no"}, "The path /memories/no does not exist."),
        (
            {"command": "create", "path": "/memories/a"},
            "Error: The `file_text` parameter of create is missing",
        ),
    ):
        with pytest.raises(sdk.ToolError) as caught:
            tool.call(command)
        assert str(caught.value.content).startswith(said)


def test_a_home_that_cannot_be_used_is_an_error_of_the_tool(sdk, tmp_path):
    with pytest.raises(sdk.ToolError, match="is not a home"):
        integration.AetherMemoryTool(home=tmp_path).call({"command": "view", "path": "/memories"})


def test_all_memory_is_cleared(tool, home):
    tool.call({"command": "create", "path": "/memories/a", "file_text": "x"})

    assert tool.clear_all_memory() == "All memory cleared: 1 files."

    assert stored(home) == {}


def test_it_can_be_waited_for(sdk, home):
    tool = integration.AsyncAetherMemoryTool(home)

    async def use():
        await asyncio.gather(
            *[
                tool.call({"command": "create", "path": f"/memories/{nth}", "file_text": str(nth)})
                for nth in range(5)
            ]
        )
        with pytest.raises(sdk.ToolError):
            await tool.call({"command": "view", "path": "/etc"})
        return await tool.clear_all_memory()

    assert asyncio.run(use()) == "All memory cleared: 5 files."


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch):
    integration._classes.cache_clear()
    monkeypatch.setitem(sys.modules, "anthropic.tools", None)
    monkeypatch.setitem(sys.modules, "anthropic", None)

    with pytest.raises(BackendUnavailable, match="pip install "):
        _ = integration.AetherMemoryTool


def test_there_is_nothing_else_in_it():
    with pytest.raises(AttributeError, match="has no attribute 'MemoryTool'"):
        _ = integration.MemoryTool


class Model(BaseHTTPRequestHandler):
    """Calls the memory tool with the prepared commands, one answer each, and then says that it is done."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        nth = sum(message["role"] == "assistant" for message in body["messages"])
        if nth < len(self.server.commands):
            content = [
                {"type": "tool_use", "id": f"c{nth}", "name": "memory", "input": self.server.commands[nth]}
            ]
        else:
            content = [{"type": "text", "text": "done"}]
        answer = {
            "id": f"msg{nth}", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": "tool_use" if content[0]["type"] == "tool_use" else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as running:
        running.asked = []
        thread = threading.Thread(target=running.serve_forever, args=(POLL_SECONDS,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def results(body):
    """Return what the model was told: text and whether it is an error, of every tool result."""
    blocks = [
        block for message in body["messages"] if message["role"] == "user" for block in message["content"]
    ]
    return [
        (text_of(block["content"]), block.get("is_error", False))
        for block in blocks
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]


def text_of(content):
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def test_the_runner_of_the_sdk_carries_commands_and_answers(sdk, tool, home, server):
    import anthropic

    server.commands = [
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/ants.md", "file_text": "They carry."},
        {"command": "view", "path": "/memories/bees.md"},
        {"command": "view", "path": "/memories/../../etc/passwd"},
    ]

    with anthropic.Anthropic(
        base_url=f"http://127.0.0.1:{server.server_port}", api_key="x", max_retries=0
    ) as client:
        last = client.beta.messages.tool_runner(
            model="claude-haiku-5-5", max_tokens=100, tools=[tool], thread=False,
            messages=[{"role": "user", "content": "Remember that ants carry."}],
        ).until_done()  # fmt: skip

    assert last.content[0].text == "done"
    assert server.asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    reported = results(server.asked[-1])
    assert [error for _, error in reported] == [False, False, True, True]
    assert reported[0][0].endswith("\n0B\t/memories")
    assert reported[1][0] == "File created successfully at: /memories/ants.md"
    assert reported[2][0] == "The path /memories/bees.md does not exist. Please provide a valid path."
    assert shown(home) == {"/memories/ants.md": "They carry."}
    assert aether.log(home=home)[0].by == "model"


NAMES = st.sampled_from(["a", "b", "dir", "dir/c", "dir/sub/d"])
PATHS = NAMES.map(lambda name: f"/memories/{name}")
LINES = st.lists(st.sampled_from(["one", "two", "", "ü"]), min_size=1, max_size=4)
# The SDK's own tool ends every file with a line feed when it inserts; here each begins with one at its end.
TEXTS = LINES.map(lambda lines: "".join(f"{line}\n" for line in lines))
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": PATHS | st.just("/memories")}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": PATHS, "old_str": st.sampled_from(["one", "two\n", "ü", "no"]), "new_str": st.sampled_from(["", "new", "two\nlines"])}),
    st.fixed_dictionaries({"command": st.just("insert"), "path": PATHS, "insert_line": st.integers(-1, 4), "insert_text": st.sampled_from(["line", "two\nlines\n"])}),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS | st.just("/memories")}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)  # fmt: skip


@examples(40)
@given(st.lists(COMMANDS, min_size=1, max_size=12))
def test_it_does_what_the_sdks_own_tool_does(commands):
    """The words differ a little; what is done, whether it is an error, and what is seen do not."""
    tools = pytest.importorskip("anthropic.tools", reason="needs the package anthropic")
    base = Path(tempfile.mkdtemp(dir=homes.IN_MEMORY))
    try:
        ours = integration.AetherMemoryTool(home=homes.fresh(base))
        theirs = tools.BetaLocalFilesystemMemoryTool(str(base / "theirs"))
        for command in commands:
            if unlike(command, base / "theirs/memories"):
                continue
            said, expected = answer(tools, ours, command), answer(tools, theirs, command)
            prune(base / "theirs/memories")
            assert said[1] == expected[1], (command, said, expected)
            assert meaning(said[0]) == meaning(expected[0])
            assert shown(base / ".aether") == shown(base / "theirs")
    finally:
        shutil.rmtree(base)


def unlike(command, root):
    """Return whether the two mean to differ: a path below a file, and what is moved into itself or onto itself.

    The SDK's own tool lets the operating system answer those. It also loses an empty last line when it inserts.
    """
    places = [
        root / command[key][len("/memories/") :] for key in ("path", "old_path", "new_path") if key in command
    ]
    below_a_file = any(parent.is_file() for place in places for parent in place.parents)
    if command["command"] == "insert" and places[0].is_file():
        return f"\n{places[0].read_text()}".endswith("\n\n")
    return below_a_file or (command["command"] == "rename" and places[1].is_relative_to(places[0]))


def answer(tools, tool, command):
    try:
        return tool.call(command), False
    except tools.ToolError as reason:
        return str(reason.content), True


def meaning(text):
    """Return `text` without what differs by intent.

    That is: the size of directories (theirs is the file system's) and a slash behind them, the word `Error`, the
    number of an empty line behind the last, the reach of a snippet, and that a directory is no file.
    """
    lines = text.splitlines()
    if text.startswith("Here're"):
        return sorted(line.partition("\t")[2].rstrip("/") for line in lines[1:])
    if text.startswith("Here's"):
        return [line for line in lines if line.partition("\t")[2] or "\t" not in line]
    said = lines[0].removeprefix("Error: ").partition(". ")[0].rstrip(".")
    return said.replace("is not a file", "does not exist")


def prune(root):
    """Remove empty directories: ours are there as long as a file is in them."""
    for directory, _, _ in os.walk(root, topdown=False):
        if directory != str(root) and not os.listdir(directory):
            os.rmdir(directory)
