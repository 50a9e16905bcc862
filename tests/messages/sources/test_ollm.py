"""Sessions and snapshots of OLLM-CLI become conversations, whatever its versions left out."""

from __future__ import annotations

import pytest

from aether.errors import InvalidInput
from aether.messages.sources import ollm
from tests.tables import rows

SESSION = {
    "sessionId": "session-1700000000000",
    "startTime": "2026-02-01T10:00:00Z",
    "model": "llama3.1:8b",
    "provider": "ollama",
    "messages": [
        {"role": "system", "parts": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "text": "List the files."}], "timestamp": 1_770_000_000_000},
        {"role": "assistant", "parts": [{"type": "text", "text": "a.py"}], "timestamp": "2026-02-02T02:40:05.000Z"},
    ],
    "toolCalls": [
        {"id": "c1", "name": "ls", "args": {"path": "."}, "result": {"llmContent": "a.py\n"}, "timestamp": 1_770_000_002_000}
    ],
    "metadata": {"tokenCount": 9, "compressionCount": 0, "modeHistory": [{"from": "assistant", "to": "developer"}]},
}  # fmt: skip
HISTORY = {
    "sessionId": "s2",
    "messages": [
        {"id": "m1", "role": "user", "content": "Hi", "timestamp": 1_770_000_000_000},
        {
            "id": "m2",
            "role": "assistant",
            "content": "",
            "toolCalls": [{"id": "t1", "name": "ls", "args": {}}],
        },
        {"id": "m3", "role": "tool", "content": "a.py", "toolCallId": "t1"},
        {"id": "m1", "role": "user", "content": "Hi", "timestamp": 1_770_000_009_000},
        {"id": "m4", "role": "assistant", "content": "  "},
    ],
    "checkpointRecords": [{"id": "ckpt_1", "messageRange": [0, 1], "level": 3}],
    "metadata": {"totalMessages": 5, "contextSize": 8192},
}
SNAPSHOT = {
    "id": "snap_1_ab",
    "sessionId": "s2",
    "timestamp": 1_770_000_010_000,
    "conversationState": {
        "messages": [{"id": "m9", "role": "assistant", "content": "Done.", "timestamp": 1_770_000_009_000}],
        "checkpoints": [
            {"id": "ckpt_a", "timestamp": 1_770_000_001_000, "summary": "The port is 8080.", "originalMessageIds": ["x", "y"],
             "tokenCount": 6, "compressionLevel": 2, "compressionNumber": 4, "metadata": {"model": "llama3"}},
            {"id": "ckpt_b", "summary": " ", "originalMessageIds": ["z"]},
            {"id": "ckpt_c", "summary": "Said whole.", "originalMessageIds": ["m9"]},
        ],
        "goals": [{"id": "g1", "description": "Ship it"}],
    },
    "userMessages": [{"id": "m8", "content": "Do it", "timestamp": 1_770_000_008_000}],
    "archivedUserMessages": [{"id": "m7", "summary": "The first words", "timestamp": 1_770_000_007_000, "fullMessageAvailable": False}],
    "purpose": "rollback",
    "metadata": {"model": "llama3", "contextSize": 4096},
}  # fmt: skip


def test_a_session_keeps_its_messages_in_order_with_the_calls_between_them():
    found = ollm.conversation(SESSION)

    assert (found.kind, found.id, found.checkpoints, found.warnings) == (
        "session",
        SESSION["sessionId"],
        [],
        [],
    )
    assert found.settings == {"model": "llama3.1:8b", "mode": "developer", "system": "Be brief."}
    user, call, result, answer = found.messages
    assert (user["content"], answer["content"]) == ("List the files.", "a.py")
    assert user["meta"]["at"] == "2026-02-02T02:40:00.000000Z"
    assert call["tool_calls"][0]["function"] == {"name": "ls", "arguments": '{"path": "."}'}
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c1", "a.py\n")


def test_a_history_keeps_equal_messages_and_calls_with_their_results():
    found = ollm.conversation(HISTORY)

    assert [one["role"] for one in found.messages] == ["user", "assistant", "tool", "user"]
    assert found.settings == {"window": 8192}
    assert [one.split(":")[0] for one in found.warnings] == [
        "1 blank message left out",
        "1 checkpoint record left out",
    ]


def test_a_snapshot_has_its_checkpoints_before_its_messages():
    found = ollm.conversation(SNAPSHOT)

    assert (found.kind, found.id) == ("snapshot", "s2-snap_1_ab")
    assert [one["content"] for one in found.checkpoints] == ["The port is 8080.", ollm.NO_SUMMARY]
    assert [one["content"] for one in found.messages] == ["The first words", "Do it", "Done."]
    one, two = found.about
    assert (one["id"], one["level"], one["model"], one["messages"]) == ("ckpt_a", 2, "llama3", 2)
    assert two["level"] == 3
    assert found.settings == {"window": 4096, "model": "llama3"}
    assert len(found.warnings) == 4


@rows(
    "index",
    [{"version": "1.0", "snapshots": []}, {"version": "1.0", "snapshots": [{"id": "s"}]}, {"snap_1": "s1", "snap_2": "s1"}],
)  # fmt: skip
def test_an_index_has_no_conversation(index):
    assert ollm.conversation(index) is None


@rows(
    "value",
    [
        [], "text", {}, {"sessionId": "x"}, {"messages": []}, {"sessionId": "", "messages": []}, {"sessionId": 5, "messages": []},
        {"sessionId": "x", "messages": {}}, {"sessionId": "x", "messages": [5]}, {"sessionId": "x", "messages": [{"role": "robot"}]},
        {"sessionId": "x", "conversationState": {"messages": []}}, {"id": "s", "sessionId": "x", "checkpoints": []},
    ],
)  # fmt: skip
def test_what_is_no_file_of_ollm_is_refused(value):
    with pytest.raises(InvalidInput, match="OLLM-CLI"):
        ollm.conversation(value)


@rows("time", [None, True, "soon", -1, 1e300, float("inf"), 5, [], "2026-02-30"])
def test_an_odd_time_is_never_fatal(time):
    message = {"role": "user", "content": "Hi", "timestamp": time}
    found = ollm.conversation({"sessionId": "x", "messages": [message, {**message, "content": "There"}]})

    assert [one["content"] for one in found.messages] == ["Hi", "There"]


@rows(
    "field, value",
    [("toolCalls", {"a": 1}), ("checkpointRecords", 5), ("metadata", 5), ("model", {}), ("userMessages", 5), ("archivedUserMessages", 5),
     ("checkpoints", [{"originalMessageIds": 5}]), ("checkpoints", [{"level": []}]), ("checkpoints", 5), ("mode", [])],
)  # fmt: skip
def test_a_field_of_another_type_is_never_a_crash(field, value):
    file = {
        "id": "snap",
        "sessionId": "x",
        "messages": [{"id": "m", "role": "user", "content": "Hi"}],
        field: value,
    }
    try:
        found = ollm.conversation(file)
    except InvalidInput:
        return
    assert [one["content"] for one in found.messages if one["content"]] == ["Hi"]
