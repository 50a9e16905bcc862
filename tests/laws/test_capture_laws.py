"""Laws of reading and capturing, whatever the transcript holds."""

import io
import json

from hypothesis import example, given
from hypothesis import strategies as st

from aether.errors import InvalidInput
from aether.memory.capture.extract import capture
from aether.memory.capture.notes import words_of
from aether.memory.facts import fact_text
from aether.messages.read import formats, read_records
from aether.messages.records import Record, read_json_values
from aether.redact.redact import redact
from aether.text.cleaning import clean, without_echoes, without_injected
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


@given(st.lists(json_values(), max_size=6), st.sampled_from([*formats(), None]))
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


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
COMMANDS = [
    "pytest -q",
    "git commit -m 'Add a page'",
    "git push",
    "make test | tail -3",
    "cat a.py",
    "rm a.py",
]
OUTPUTS = [
    "3 passed in 0.1s",
    "1 failed, 2 passed",
    "Exit code 2\nerror: no rule",
    "[main 1a2b3c4] Add a page",
    "To github.com:me/it.git\n   0a0a0a0..1a2b3c4  main -> main",
]


def said_by_anybody():
    """Texts in several scripts, outputs of machines, secrets in and out of assignments, and any text at all."""
    known = [
        *OUTPUTS,
        "好的",
        "はい、SQLiteにしてください。",
        "Да",
        "no mocks please",
        TOKEN,
        f"password={TOKEN}",
        "Bearer",
        "x",
    ]
    return st.sampled_from(known) | st.text(max_size=40)


def records():
    """Stories: things that are said, and calls of a shell, an editor, a plan and an unknown tool with their results."""
    text = said_by_anybody()
    speech = st.builds(
        lambda kind, text, agent, given: [Record(kind, text, arguments=given, agent=agent)],
        st.sampled_from(
            ["user", "assistant", "assistant", "answer", "boundary", "summary", "system", "text"]
        ),
        text | st.just("We use SQLite because one process writes. " * 5),
        st.sampled_from(["", "", "a1"]),
        st.builds(lambda text: {"question": text, "options": [text, {"label": text}], "choice": text}, text),
    )
    calls = st.one_of(
        st.builds(lambda command: ("Bash", {"command": command}), st.sampled_from(COMMANDS)),
        st.builds(
            lambda text: ("Bash", {"command": f"make test && git commit -m '{text}' && git push"}), text
        ),
        st.builds(lambda text: ("Write", {"file_path": f"{text}.py", "content": text}), text),
        st.builds(lambda text: ("TodoWrite", {"todos": [{"content": text, "status": "pending"}]}), text),
        st.builds(lambda text: ("cancel_order", {"password": text, "id": text}), text),
        st.builds(lambda text: ("ExitPlanMode", {"plan": text}), text),
    )
    outputs = text | st.sampled_from(
        ["\n".join([OUTPUTS[3], OUTPUTS[3].replace("1a2b", "3c4d"), OUTPUTS[4]]), "Updated."]
    )
    answered = st.builds(
        lambda call, kind, text, failed: [
            Record("call", tool=call[0], arguments=call[1], call_id="c"),
            Record(kind, text, call_id="c", is_error=failed),
        ],
        calls, st.sampled_from(["result", "result", "result", "refusal"]), outputs, st.booleans(),
    )  # fmt: skip
    stories = st.lists(speech | answered, max_size=10)
    return stories.map(
        lambda events: [
            record._replace(line=line, session="s")
            for line, record in enumerate((one for event in events for one in event), 1)
        ]
    )


BY_PERSONS = {"user", "answer", "refusal"}


@given(
    st.lists(
        st.sampled_from(["key=hunter2hunter2 ", "", "<private>a</private>b", "Use it.", "Use that."])
        | st.text(),
        max_size=6,
    )
)
def test_the_words_of_a_record_are_kept_for_no_other(texts):
    fresh = [redact(without_echoes(clean(text)).strip()) for text in texts]

    assert [words_of(text) for text in texts for _ in range(2)] == [
        words for words in fresh for _ in range(2)
    ]


@given(records())
@examples(300)
def test_only_what_a_person_typed_or_answered_is_a_persons(story):
    """An item whose evidence is a person comes from a record of a person in the main conversation or of an answer."""
    for note in capture(story):
        if note["metadata"]["evidence"] == "person":
            record = story[note["metadata"]["pointer"]["line"] - 1]
            assert record.kind in BY_PERSONS
            assert record.kind != "user" or not record.agent


@given(records())
def test_every_message_of_a_person_is_noted(story):
    """What a person typed is stored in the person's words, in any script, unless nothing is left of it."""
    texts = {note["content"] for note in capture(story) if note["metadata"]["evidence"] == "person"}
    for record in story:
        words = redact(without_echoes(clean(record.text)).strip())
        if record.kind == "user" and not record.agent and words and not words.startswith("/aether"):
            assert words in texts


@given(records())
@examples(300)
def test_the_text_of_a_fact_is_made_of_its_fields_and_neither_has_a_secret(story):
    """`content == fact_text(fact)`, and both are redacted."""
    for note in capture(story):
        if fact := note["metadata"].get("fact"):
            assert note["content"] == fact_text(fact)
        assert TOKEN not in json.dumps(note)


@given(records())
def test_capturing_again_gives_the_same_notes_with_distinct_keys(story):
    """The second import of a transcript adds nothing, and the first loses nothing to an equal key."""
    first, second = list(capture(story)), list(capture(story))

    assert first == second
    assert len({note["metadata"]["pointer"]["key"] for note in first}) == len(first)
