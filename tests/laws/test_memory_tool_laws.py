"""Laws of the memory tool: no call raises, no path leads out, and every command does what its sentence says."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

import aether
from aether.api.memory_tool import memory_tool as memory_tool_memory_tool
from aether.errors import Conflict, NotFound
from aether.memory import memory_tool
from aether.memory.memory_tool import MAX_VIEW_CHARS, blocking_path, canonical, index, run
from tests import homes
from tests.api.test_memory_tool import shown, stored
from tests.effort import examples

NAMES = st.sampled_from(
    ["a", "b", "A", "a.md", "dir", ".hidden", "node_modules", "..", "x y", "ü", "con", "%2e", ""]
)


PATHS = st.lists(NAMES, max_size=3).map(lambda names: "/".join(["/memories", *names]))


TEXTS = st.text(alphabet="ab \n\r\tü\u2028", max_size=12)
PLAIN_TEXTS = TEXTS.map(lambda text: text.replace("\r", ""))


LINES = st.integers(-1, 6)


COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": PATHS}, optional={"view_range": st.lists(LINES, max_size=3)}),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": PATHS, "old_str": TEXTS, "new_str": TEXTS}),
    st.fixed_dictionaries({"command": st.just("insert"), "path": PATHS, "insert_line": LINES, "insert_text": TEXTS}),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)  # fmt: skip


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
)


def after(commands):
    """Return the files after `commands`."""
    files = {}
    for command in commands:
        answer = run(files, command)
        files = files if answer.files is None else dict(answer.files)
    return files


@given(st.lists(COMMANDS, max_size=12))
def test_stored_files_are_valid_in_a_directory_of_any_system(commands):
    files = after(commands)

    for path in files:
        assert canonical(path) == path
        others = [each for each in files if each != path]
        assert blocking_path(index(others), path) == ""


@given(st.lists(COMMANDS, max_size=8), COMMANDS)
def test_an_error_and_a_view_change_nothing(commands, last):
    answer = run(after(commands), last)

    assert answer.text
    assert (answer.files is None) == (answer.is_error or last["command"] == "view")


@given(
    st.dictionaries(st.sampled_from(["command", "path", "file_text", "insert_line", "view_range"]), ANY_JSON)
)
def test_no_call_raises(command):
    assert run({"/memories/a": "x"}, command).is_error
    assert run({"/memories/a": "x"}, {**command, "command": "view"}).text


@given(TEXTS, st.integers(0, 6), TEXTS)
@example("\r\n", 0, "")
@example("a\r\nb", 2, "c")
def test_inserting_puts_lines_between_lines(text, at, added):
    answer = run({"/memories/a": text}, {"command": "insert", "path": "/memories/a", "insert_line": at, "insert_text": added})  # fmt: skip
    lines = memory_tool._lines(text)

    if answer.is_error:
        assert at > len(lines)
        return
    now = answer.files["/memories/a"]
    after = [*lines[:at], *(memory_tool._lines(added) or [""]), *lines[at:]]
    is_windows = memory_tool._ends_in_crlf(text)
    end = "\r" if is_windows else ""
    assert memory_tool._ends_in_crlf(now) or not is_windows
    assert [line.removesuffix(end) for line in memory_tool._lines(now)] == [
        line.removesuffix(end) for line in after
    ]
    assert now.endswith("\n") or not text.endswith("\n")


def replaced(text, old, new):
    command = {"command": "str_replace", "path": "/memories/a", "old_str": old, "new_str": new}
    return run({"/memories/a": text}, command)


@given(PLAIN_TEXTS, PLAIN_TEXTS, PLAIN_TEXTS)
def test_replacing_needs_one_place_and_changes_only_that(text, old, new):
    answer = replaced(text, old, new)

    assert answer.is_error == (not old or text.count(old) != 1)
    if not answer.is_error:
        assert answer.files == {"/memories/a": text.replace(old, new)}


@given(PLAIN_TEXTS, PLAIN_TEXTS, PLAIN_TEXTS)
def test_replacing_is_the_same_in_a_file_of_windows(text, old, new):
    plain = replaced(text, old, new)
    answer = replaced(text.replace("\n", "\r\n"), old, new)

    assert answer.is_error == plain.is_error
    if not answer.is_error and "\n" in text:
        assert answer.files == {"/memories/a": plain.files["/memories/a"].replace("\n", "\r\n")}


@given(st.text(alphabet="ab\n", max_size=40), st.integers(5, 60))
def test_every_line_can_be_seen_by_paging(text, room):
    """With little room, each view shows at least a part of a line, and says where it stopped."""
    lines, seen = memory_tool._lines(text), []
    before, memory_tool.MAX_VIEW_CHARS = MAX_VIEW_CHARS, room + 50
    try:
        while len(seen) < len(lines):
            command = {"command": "view", "path": "/memories/a", "view_range": [len(seen) + 1, -1]}
            reported = run({"/memories/a": text}, command).text.split("\n")[1:]
            seen += [line.partition("\t")[2] for line in reported if "\t" in line]
    finally:
        memory_tool.MAX_VIEW_CHARS = before

    assert seen == lines


HAND = st.fixed_dictionaries(
    {
        "hand": st.sampled_from(["a", "b", "dir/c", "dir"]),
        "text": st.none() | st.text(alphabet="xyz", max_size=4),
    }
)


UNDO = st.just({"undo": True})


SIMPLE = COMMANDS.filter(lambda command: ".." not in str(command) and "con" not in str(command))


@examples(40)
@given(st.lists(SIMPLE | HAND | UNDO, max_size=10))
def test_the_directory_shows_the_document_whatever_happens_in_between(steps):
    base = Path(tempfile.mkdtemp(dir=homes.IN_MEMORY))
    try:
        home = homes.fresh(base)
        for step in steps:
            written = by_hand(home / "memories", step) if "hand" in step else None
            if "undo" in step:
                try:
                    aether.undo(home=home)
                except (Conflict, NotFound):
                    continue
            elif "hand" not in step:
                memory_tool_memory_tool(step, home=home)
            if written is not None:
                memory_tool_memory_tool({"command": "view", "path": "/memories"}, home=home)
                assert stored(home)[f"/memories/{step['hand']}"] == written
            assert shown(home) == stored(home)
        assert not [finding for finding in aether.examine(home=home) if finding.level == "error"]
    finally:
        shutil.rmtree(base)


def by_hand(root, step):
    """Do what a person does; return the text that must be kept, None where none was written."""
    target = root / step["hand"]
    if step["text"] is None:
        if target.is_dir():
            shutil.rmtree(target)
        elif target.exists():
            target.unlink()
        memory_tool_memory_tool({"command": "view", "path": "/memories"}, home=root.parent)
        return None
    names = {path.name.casefold(): path.name for path in target.parent.glob("*")}
    if target.is_dir() or target.parent.is_file() or names.get(target.name, target.name) != target.name:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(step["text"])
    return step["text"]
