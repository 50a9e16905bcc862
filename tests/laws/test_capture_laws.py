"""Laws of reading and capturing, whatever the transcript holds."""

import io
import json

from hypothesis import example, given
from hypothesis import strategies as st

from aether.errors import InvalidInput
from aether.memory.capture.extract import capture
from aether.messages.read import read_records
from aether.messages.records import FORMATS, read_json_values
from aether.text.cleaning import without_injected
from tests.effort import examples

SECRET = "zebra-quartz-secret"
WORDS = [
    "user",
    "assistant",
    "tool",
    "text",
    "tool_use",
    "tool_result",
    "message",
    "progress",
    "system",
    "response_item",
]
KEYS = [
    "type",
    "role",
    "content",
    "message",
    "uuid",
    "payload",
    "input",
    "text",
    "name",
    "id",
    "tool_use_id",
    "tool_calls",
]


def json_values():
    """Any JSON value, with the words and keys of transcripts more often than chance would have it."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text()
        | st.sampled_from(WORDS)
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(max_size=5) | st.sampled_from(KEYS), inner, max_size=6)
        ),
        max_leaves=20,
    )


def phrases():
    """What people and assistants say, what tools print, and any text at all."""
    said = [
        *(
            "Add a page for health.",
            "Never use floats for money.",
            "yes",
            "I prefer tabs.",
            "Shall I use SQLite?",
        ),
        *("We decided to use SQLite because one process writes.", "Fixed the crash of the parser for good."),
        *(
            "The build fails because the Go version is too old.",
            "error: no such file",
            "3 passed",
            "def f(): ...",
        ),
    ]
    return st.sampled_from(said) | st.text(max_size=60)


def blocks(words):
    """One content block that says, calls or answers."""
    calls = st.sampled_from(["c1", "c2"])
    return st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, words),
        st.builds(
            lambda call, text: {
                "type": "tool_use",
                "id": call,
                "name": "Bash",
                "input": {"command": f"make {text}"},
            },
            calls,
            words,
        ),
        st.builds(
            lambda call, text: {
                "type": "tool_use",
                "id": call,
                "name": "Write",
                "input": {"file_path": "a.py", "content": text},
            },
            calls,
            words,
        ),
        st.builds(
            lambda call, text, failed: {
                "type": "tool_result",
                "tool_use_id": call,
                "content": text,
                "is_error": failed,
            },
            calls,
            words,
            st.booleans(),
        ),
    )


def transcripts(words):
    """Claude Code transcripts of a few dozen lines whose texts are drawn from `words`."""
    line = st.builds(
        lambda kind, content, side: {
            "type": kind,
            "sessionId": "s",
            "isSidechain": side,
            "message": {"role": kind, "content": content},
        },
        st.sampled_from(["user", "assistant"]),
        st.lists(blocks(words), min_size=1, max_size=3) | words,
        st.booleans(),
    )
    boundary = st.just({"type": "system", "subtype": "compact_boundary", "sessionId": "s"})
    return st.lists(line | boundary, min_size=1, max_size=25)


def stream(lines):
    return io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def captured(lines):
    return list(capture(read_records(stream(lines), format="claude_code"), file="x"))


def keys(lines):
    return [note["metadata"]["pointer"]["key"] for note in captured(lines)]


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_reported(data):
    """No bytes raise: each line gives values or a bad line with its number."""
    bad = []
    found = list(read_json_values(io.BytesIO(data), on_bad=bad.append))

    lines = data.count(b"\n") + 1
    assert all(1 <= number <= lines for number, _ in found)
    assert all(1 <= line.line <= lines for line in bad)


@given(st.lists(json_values(), max_size=6), st.sampled_from([*FORMATS, None]))
@example([{"type": []}], "codex")
@example(
    [{"messages": [{"role": "user", "content": "Go."}], "compactions": [{"before_message": []}]}], "chat"
)
@examples(300)
def test_any_json_lines_are_captured_or_refused(lines, name):
    """No JSON raises anything but the error that names the formats."""
    try:
        found = list(capture(read_records(stream(lines), format=name), file="x"))
    except InvalidInput:
        assert name is None
    else:
        assert all(note["content"].strip() for note in found)


@given(transcripts(phrases()))
def test_reading_again_gives_the_same_keys_and_each_once(lines):
    """Keys depend on nothing but the transcript, and tell its notes apart."""
    assert keys(lines) == keys(lines)
    assert len(set(keys(lines))) == len(keys(lines))


@given(transcripts(phrases()))
def test_notes_are_fewer_than_a_few_per_record(lines):
    """What is kept is bounded by what happened."""
    blocks_ = sum(
        len(line["message"]["content"]) if isinstance(line.get("message", {}).get("content"), list) else 1
        for line in lines
    )

    assert len(captured(lines)) <= 4 * blocks_


def hidden():
    """Texts with the secret inside a marked block, whole, nested or torn, among words worth a note."""
    around = st.sampled_from(
        ["We decided to use SQLite. ", "Never use floats. ", "def f(): ...\n", "error: no ", ""]
    )
    opened = st.sampled_from(
        ["<aether-memory>", '<aether-memory layer="long">', "<aether-memory><aether-memory>"]
    )
    closed = st.sampled_from(["</aether-memory>", "</aether-memory></aether-memory>", ""])
    return st.builds(
        lambda a, b, c, d: f"{a}{b}We decided on {SECRET}. {c}{d}", around, opened, closed, around
    ).filter(lambda text: SECRET not in without_injected(text))


@given(transcripts(hidden()))
def test_injected_text_is_never_captured(lines):
    """No word from inside a marked block appears in any note."""
    assert SECRET not in json.dumps(captured(lines))
