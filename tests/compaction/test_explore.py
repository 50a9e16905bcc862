"""Exploration is told by what calls do, and only runs of it are dropped."""

from __future__ import annotations

from aether.compaction.steps import exploration_runs, only_explores, only_reads
from aether.messages.convert import read
from aether.messages.model import Block, groups
from tests.compaction.conversations import bash, conversation, tool
from tests.tables import rows


@rows(
    ("name", "arguments", "only_looks"),
    [
        ("Read", {"file_path": "a.py"}, True),
        ("read_file", {"path": "a.py"}, True),
        ("listFiles", {"dir": "."}, True),
        ("Grep", {"pattern": "x"}, True),
        ("WebFetch", {"url": "https://example.org"}, True),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, True),
        ("str_replace_editor", {"command": "create", "path": "a.py"}, False),
        ("Bash", {"command": "grep -rn x src 2>&1 >/dev/null | head"}, True),
        ("Bash", {"command": "echo x > a.py"}, False),
        ("Bash", {"command": "find . -name x -delete"}, False),
        ("Bash", {"command": "ls | xargs rm"}, False),
        ("view_file", {"command": "view", "path": "a.py"}, True),
        ("Bash", {"command": "ls -la src && git log | head"}, True),
        ("shell", {"cmd": ["grep", "-rn", "x", "src"]}, True),
        ("Bash", {"command": "make test"}, False),
        ("Bash", {"command": "cat > a.py <<'EOF'\nx\nEOF"}, False),
        ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, False),
        ("read_and_write", {"path": "a.py", "content": "x"}, False),
        ("spread", {}, False),
        ("thread_create", {}, False),
        ("", {}, False),
    ],
)
def test_a_call_is_judged_by_its_name_and_its_arguments(name, arguments, only_looks):
    assert only_reads(Block("call", tool=name, arguments=arguments)) == only_looks


@rows(
    ("messages", "only_looks"),
    [
        (tool("Read", file_path="a.py"), True),
        (tool("Read", "no such file", failed=True, file_path="a.py"), False),
        (bash("ls", None), False),
        (bash("make"), False),
    ],
)
def test_what_failed_or_waits_is_no_exploration(messages, only_looks):
    read_in = conversation(messages)

    assert only_explores(read_in, groups(read_in)[0]) == only_looks


def test_what_the_user_said_beside_a_result_is_no_exploration():
    use = {"type": "tool_use", "id": "a", "name": "Read", "input": {"path": "a.py"}}
    beside = [
        {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
        {"type": "text", "text": "Never do that."},
    ]
    messages = read(
        [{"role": "assistant", "content": [use]}, {"role": "user", "content": beside}], "anthropic"
    )

    assert not only_explores(messages, groups(messages)[0])


def test_a_run_has_at_least_three_and_ends_where_something_is_done():
    looked = [(1, True), (2, True), (3, False), (4, True), (6, True), (7, True), (8, True)]

    assert list(exploration_runs(looked)) == [[4, 6, 7, 8]]
    assert list(exploration_runs([])) == []


@rows(
    ("said", "folds"),
    [("Let me look at the loader next.", True), ("Reading it now.", True),
     ("There it is. `findSessions` returns all sessions that match, not the newest.", False)],
)  # fmt: skip
def test_a_look_that_found_something_is_not_folded(said, folds):
    call, result = tool("Read", "text", file_path="a.py")
    call["content"].insert(0, {"type": "text", "text": said})
    messages = conversation([call, result])

    assert only_explores(messages, groups(messages)[0]) is folds
