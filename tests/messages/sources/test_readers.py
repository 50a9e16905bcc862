"""Readers of histories: who said what, which calls were made and how they ended, in every format of the table."""

import copy
import gzip
import io
import json
import random
import sqlite3
import zipfile

import pytest

from aether.api import importing
from aether.errors import InvalidInput
from aether.messages import read as reading
from aether.messages.read import SOURCES, detect_file_format, read_records
from aether.messages.sources.reader import time_of
from aether.messages.transcripts import load_conversation
from tests.messages.sources import samples
from tests.messages.sources.samples import ASK, SAMPLES, SPOKEN, TOLD, text
from tests.tables import rows


def data(values):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def read(values, **options):
    content = values if isinstance(values, bytes) else data(values)
    return list(read_records(io.BytesIO(content), **options))


def brief(found):
    """Return who said what, without the words of programs."""
    return [
        (one.kind, one.tool or one.text if one.kind == "call" else one.text)
        for one in found
        if one.kind != "system"
    ]


CONVERSATIONS = [name for name in SAMPLES if name != "memories"]


@rows("name", CONVERSATIONS)
def test_each_format_is_known_by_its_content_and_gives_the_same_conversation(name):
    bad = []
    found = read(SAMPLES[name], on_bad=bad.append)
    call, result = (next(one for one in found if one.kind == kind) for kind in ("call", "result"))

    assert detect_file_format(SAMPLES[name]) == name
    assert brief(found) == SPOKEN
    assert bad == []
    assert result.call_id == call.call_id or name == "cursor"
    assert result.is_error or name in ("chatgpt", "sharegpt", "vscode_chat")
    assert call.arguments in ({"command": "pytest -q"}, {"code": "run()"})
    assert "Withdrawn." not in str(found)
    assert len({(one.line, one.part) for one in found}) == len(found)


@rows(
    "name",
    [
        "chatgpt",
        "claude_ai",
        "opencode",
        "vscode_chat",
        "copilot_cli",
        "goose",
        "amp",
        "qwen_code",
        "openhands_sdk",
    ],
)
def test_times_are_those_of_the_messages(name):
    spoken = [one for one in read(SAMPLES[name]) if one.kind in ("user", "call", "assistant")]

    assert {one.time[:16] for one in spoken} == {"2026-10-02T10:00"}


@rows("name", ["opencode", "copilot_cli", "goose", "amp", "continue", "qwen_code"])
def test_the_directory_is_that_of_the_session(name):
    assert {one.directory for one in read(SAMPLES[name]) if one.kind == "user"} == {"/srv"}


@rows("name", CONVERSATIONS)
def test_each_format_can_be_compacted(name):
    conversation = load_conversation(io.BytesIO(data(SAMPLES[name])))

    assert [message.text for message in conversation.messages if message.role == "user"][-1:] == [ASK]
    assert conversation.messages[-1].text == TOLD


def test_what_is_not_understood_is_counted():
    value = copy.deepcopy(samples.opencode()[0])
    value["messages"][1]["parts"] += [{"type": "hologram"}, {"type": "hologram"}]
    bad = []
    read([value], on_bad=bad.append)

    assert [one.reason for one in bad] == ["left out: 2 of parts of type hologram"]


def test_a_log_with_types_and_contents_is_refused_with_what_it_starts_with():
    with pytest.raises(InvalidInput, match="VIEW_FILE"):
        read([{"type": "VIEW_FILE", "content": "a"}, {"type": "PLAN", "content": "b"}])


@rows(
    ("value", "words"),
    [
        ({"mapping": [], "title": "x"}, "nearest to chatgpt, and lacks current_node"),
        ([{"role": "user", "words": "x"}], "nearest to chat, and lacks content"),
    ],
)
def test_a_file_that_is_of_no_format_is_refused_with_the_nearest_one(value, words):
    with pytest.raises(InvalidInput, match=words):
        read([value])


def test_of_openhands_only_the_branch_of_the_last_event_is_read():
    events = [
        {**event, "id": str(nth), "parent_id": str(nth - 1)}
        for nth, event in enumerate(samples.openhands_sdk())
    ]
    said = {"role": "assistant", "content": "Withdrawn."}
    events.insert(
        2, {"kind": "MessageEvent", "id": "old", "parent_id": "1", "source": "agent", "llm_message": said}
    )
    found = read([event for event in events if event["id"] != "0"])

    assert brief(found) == SPOKEN


def test_of_openhands_an_answer_is_in_one_of_several_places():
    seen = [{"text": "a", "metadata": {"exit_code": 1}}, {"new_content": "b"}, {}]
    events = [{"kind": "ObservationEvent", "source": "environment", "observation": entry} for entry in seen]
    events += [
        {"kind": "AgentErrorEvent", "source": "agent", "error": "c"},
        {"kind": "Hologram", "source": "x"},
    ]
    events += [{"kind": "Condensation", "source": "x", "summary": "d"}]
    finish = {"kind": "FinishAction", "message": "e"}
    events += [{"kind": "ActionEvent", "source": "agent", "thought": [text("f")], "action": finish}]
    bad = []
    found = read(events, on_bad=bad.append)

    assert [(one.text, one.is_error) for one in found if one.kind == "result"] == [
        ("a", True),
        ("b", False),
        ("", False),
        ("c", True),
    ]
    assert [(one.kind, one.text) for one in found if one.kind != "result"] == [
        ("boundary", ""), ("summary", "d"), ("assistant", "f"), ("assistant", "e"),
    ]  # fmt: skip
    assert [one.reason for one in bad] == ["left out: 1 of events of kind Hologram"]


def test_a_transcript_of_cursor_as_text_is_read():
    lines = f"""user:
<user_query>
{ASK}
</user_query>

A:
[Thinking] Hm.
[Tool call] shell
  command: pytest -q

[Tool result] shell
1 failed
user: Never stop.
user:
Never.

assistant:
{TOLD}
"""
    found = read(lines.encode())

    assert [(one.kind, one.tool or one.text) for one in found] == [
        ("user", ASK), ("call", "shell"), ("result", "shell"), ("assistant", TOLD),
    ]  # fmt: skip
    assert found[1].arguments == {"command": "pytest -q"}
    assert found[2].text == "1 failed\nuser: Never stop.\nuser:\nNever."


def test_of_copilot_events_may_lack_a_time_and_a_result_may_be_text():
    events = [
        {key: value for key, value in event.items() if key != "timestamp"} for event in samples.copilot_cli()
    ]
    events[5]["data"] = {"toolCallId": "t1", "success": False, "result": "1 failed"}
    events += [{"type": "session.compaction_complete", "data": {"summaryContent": "So far."}}]

    assert brief(read(events)) == [*SPOKEN, ("boundary", ""), ("summary", "So far.")]


def test_of_chatgpt_without_a_mark_the_last_branch_is_read_and_pictures_are_shown():
    [[conversation]] = copy.deepcopy(samples.chatgpt())
    del conversation["current_node"]
    first = conversation["mapping"]["n1"]["message"]
    first["content"] = {
        "content_type": "multimodal_text",
        "parts": [{"content_type": "image_asset_pointer"}, ASK],
    }

    assert brief(read([conversation])) == SPOKEN


def test_memories_beside_a_claude_ai_export_are_notes():
    found = read([[{"conversations_memory": "Ada likes tabs.", "project_memories": {"p": "Uses SQLite."}}]])

    assert [(one.kind, one.text) for one in found] == [("text", "Ada likes tabs."), ("text", "Uses SQLite.")]


def test_the_editors_own_session_is_read_as_its_changes_left_it():
    [session] = copy.deepcopy(samples.vscode_chat())
    requests, session["requests"] = session["requests"], []
    second = {**requests[0], "requestId": "r2", "message": {"text": "And now?"}}
    lines = [
        {"kind": 0, "v": session},
        {"kind": 2, "k": ["requests"], "v": requests},
        {"kind": 2, "k": ["requests"], "v": [second], "i": 1},
        {"kind": 1, "k": ["requests", 1, "message"], "v": {"text": "And then?"}},
        {"kind": 1, "k": ["gone", 1, "x"], "v": 1},
    ]

    assert [one.text for one in read(lines) if one.kind == "user"] == [ASK, "And then?"]


def test_a_call_of_the_editor_without_its_round_is_read_from_what_is_shown():
    [session] = copy.deepcopy(samples.vscode_chat())
    about = {
        "commandLine": {"original": "pytest -q"},
        "terminalCommandOutput": {"text": "1 failed"},
        "terminalCommandState": {"exitCode": 1},
    }
    shown = {
        "kind": "toolInvocationSerialized",
        "toolId": "shell",
        "toolCallId": "t1",
        "toolSpecificData": about,
    }
    session["requests"][0] |= {"result": {}, "response": [shown, {"value": TOLD}]}

    assert brief(read([session])) == SPOKEN


def test_of_copilot_what_a_sub_agent_says_is_its_own():
    events = [
        *samples.copilot_cli(),
        {
            "type": "assistant.message",
            "timestamp": "",
            "data": {"content": "I map.", "parentToolCallId": "t1"},
        },
    ]

    assert [(one.agent, one.text) for one in read(events) if one.agent] == [("t1", "I map.")]


def test_of_ai_sdk_version_4_and_dynamic_tools_are_read():
    inner = {
        "state": "result",
        "toolCallId": "t1",
        "toolName": "shell",
        "args": {"command": "ls"},
        "result": {"stdout": "a.py"},
    }
    dynamic = {
        "type": "dynamic-tool",
        "toolName": "look",
        "toolCallId": "t2",
        "state": "input-available",
        "input": {},
    }
    parts = [{"type": "tool-invocation", "toolInvocation": inner}, dynamic]
    found = read(
        [
            {
                "messages": [
                    {"id": "m", "role": "user", "parts": [text(ASK)]},
                    {"role": "assistant", "parts": parts},
                ]
            }
        ]
    )

    assert brief(found) == [("user", ASK), ("call", "shell"), ("result", "a.py"), ("call", "look")]


def test_the_state_of_a_graph_and_nested_messages_are_read():
    for value in (
        {"values": {"messages": samples.langchain()[0]}},
        {"inputs": {"messages": samples.langchain()}},
    ):
        assert brief(read([value])) == SPOKEN


def test_what_a_graph_hands_on_between_agents_is_no_persons():
    named = {"type": "human", "data": {"content": "Never stop.", "name": "researcher"}}
    summary = {
        "type": "human",
        "data": {"content": "So far: SQLite.", "additional_kwargs": {"lc_source": "summarization"}},
    }

    assert brief(read([[summary, named, *samples.langchain()[0]]])) == [
        ("summary", "So far: SQLite."),
        *SPOKEN,
    ]


def test_a_run_state_and_a_response_are_read():
    opening, *generated = samples.responses()[1:]
    state = {
        "original_input": ASK,
        "current_agent": {},
        "generated_items": [{"raw_item": item} for item in generated],
    }
    response = {"object": "response", "input": [opening], "output": generated}

    assert brief(read([state])) == brief(read([response])) == SPOKEN


def test_calls_of_servers_and_of_shells_have_their_outputs():
    items = [
        {"type": "mcp_call", "id": "m1", "name": "find", "arguments": "{}", "error": "no such page"},
        {"type": "shell_call", "call_id": "s1", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "s1", "output": [{"stdout": "a", "stderr": "b", "outcome": {"exit_code": 1}}]},
        {"type": "compaction", "id": "c", "encrypted_content": "x"},
    ]  # fmt: skip

    assert [(one.kind, one.text, one.is_error) for one in read(items)] == [
        ("call", "", False), ("result", "no such page", True), ("call", "", False), ("result", "ab", True), ("boundary", "", False),
    ]  # fmt: skip


def database(path, **tables):
    with sqlite3.connect(path) as connection:
        for name, rows_ in tables.items():
            columns = [*rows_[0]]
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            for row in rows_:
                connection.execute(
                    f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", [*row.values()]
                )
    connection.close()
    return path


def test_databases_of_known_programs_are_read(tmp_path):
    items = [
        {"id": nth, "session_id": "s1", "message_data": json.dumps(item), "created_at": samples.AT}
        for nth, item in enumerate(samples.responses())
    ]
    agents = database(tmp_path / "agents.db", agent_messages=items)
    goose = database(tmp_path / "goose.db", messages=[
        {"id": nth, "session_id": "s1", "role": message["role"], "created_timestamp": message["created"],
         "content_json": json.dumps(message["content"]), "metadata_json": json.dumps(message.get("metadata", {}))}
        for nth, message in enumerate(samples.goose()[1:])
    ], sessions=[{"id": "s1", "working_dir": "/srv"}])  # fmt: skip
    [export] = samples.opencode()
    opencode = database(
        tmp_path / "opencode.db",
        message=[{"id": each["info"]["id"], "session_id": "ses_1", "data": json.dumps(each["info"])} for each in export["messages"]],
        part=[
            {"id": nth, "message_id": each["info"]["id"], "data": json.dumps(part)}
            for each in export["messages"] for nth, part in enumerate(each["parts"])
        ],
    )  # fmt: skip

    for path in (agents, goose, opencode):
        assert brief(read_records(path)) == SPOKEN
        assert brief(read(path.read_bytes())) == SPOKEN
        assert len(load_conversation(path).messages) >= len(SPOKEN)


def test_the_memory_of_claude_mem_gives_notes_with_their_source(tmp_path):
    row = {
        "id": 1,
        "project": "shop",
        "memory_session_id": "s",
        "title": "SQLite",
        "narrative": "It was chosen.",
        "facts": '["One file"]',
        "created_at_epoch": samples.MS,
    }
    path = database(
        tmp_path / "claude-mem.db", observations=[row], user_prompts=[{"id": 1, "prompt_text": "Never."}]
    )
    [found] = read_records(path)

    assert (found.kind, found.text) == ("text", "From claude-mem: SQLite\nIt was chosen.\n- One file")
    assert found.time.startswith("2026-10-02")


def test_databases_that_are_unknown_or_damaged_are_refused(tmp_path):
    other = database(tmp_path / "other.db", accounts=[{"id": 1}])
    torn = tmp_path / "torn.db"
    torn.write_bytes(other.read_bytes()[:700])

    for path, words in ((other, "accounts"), (torn, "damaged")):
        with pytest.raises(InvalidInput, match=words):
            list(read_records(path))


@rows(
    "pack",
    [
        gzip.compress,
        lambda content: content.decode().encode("utf-16"),
        lambda content: content.decode().encode("utf-16-be"),
    ],
)
def test_packed_and_recoded_files_are_read(pack):
    assert brief(read(pack(data(SAMPLES["opencode"])))) == SPOKEN


def test_a_damaged_or_too_large_gzip_is_refused(monkeypatch):
    packed = gzip.compress(data(SAMPLES["opencode"]) * 50)
    with pytest.raises(InvalidInput, match="damaged"):
        read(packed[:-9])
    monkeypatch.setattr("aether.messages.unpack.MOST_BYTES", 1_000)
    with pytest.raises(InvalidInput, match="unpacks to more"):
        read(packed)


def test_a_line_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "MOST_LINE_BYTES", 1_000)

    with pytest.raises(InvalidInput, match="line 2 has more than"):
        read([{"role": "user", "content": "Go."}, {"role": "user", "content": "a" * 2_000}])


def test_a_directory_and_a_zip_of_all_formats_are_imported(home, tmp_path):
    for name, values in SAMPLES.items():
        (tmp_path / "all" / name).mkdir(parents=True)
        content = data(values).replace(ASK.encode(), f"{ASK} {name}".encode())
        (tmp_path / "all" / name / "history.jsonl").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in sorted((tmp_path / "all").rglob("*.jsonl")):
            archive.write(path, path.relative_to(tmp_path))
        archive.writestr("all/picture.png", b"x")
    listed = importing.import_transcripts([tmp_path / "all"], dry_run=True, home=home)
    zipped = importing.import_transcripts([tmp_path / "all.zip"], dry_run=True, home=home)

    assert listed.bad_lines == zipped.bad_lines == []
    assert (listed.files, listed.records) == (zipped.files, zipped.records)
    requests = [entry["content"] for entry in listed.preview if entry["type"] == "user_input"]
    assert sorted(requests) == sorted(f"{ASK} {name}" for name in CONVERSATIONS)


def test_a_damaged_zip_is_named(home, tmp_path):
    torn, good = tmp_path / "torn.zip", tmp_path / "good.jsonl"
    torn.write_bytes(b"PK\3\4 and no more")
    good.write_bytes(data(SAMPLES["cursor"]))

    with pytest.raises(InvalidInput, match="damaged"):
        importing.import_transcripts([torn], home=home)
    done = importing.import_transcripts([torn, good], dry_run=True, home=home)
    assert [(bad["file"], done.items > 0) for bad in done.bad_lines] == [("torn.zip", True)]


def test_conversations_of_many_files_are_joined(home, tmp_path):
    [export] = samples.opencode()
    for message in export["messages"]:
        name = f"msg_{message['info']['id']}"
        write(tmp_path / f"storage/message/ses_1/{name}.json", message["info"])
        for nth, part in enumerate(message["parts"]):
            write(tmp_path / f"storage/part/{name}/prt_{nth}.json", part)
    write(tmp_path / "storage/session/p/ses_1.json", export["info"])
    for nth, event in enumerate(samples.openhands_sdk()):
        write(tmp_path / f"talk/events/event-{nth:05}-x.json", event)
    write(tmp_path / "talk/base_state.json", {"id": "s1"})
    write(
        tmp_path / "task/api_conversation_history.json", [{"role": "user", "content": f"<task>{ASK}</task>"}]
    )
    write(tmp_path / "task/ui_messages.json", [{"ts": 1, "type": "say", "text": ASK}])
    done = importing.import_transcripts([tmp_path], dry_run=True, home=home)

    assert (done.files, done.bad_lines) == (3, [])
    assert [entry["content"] for entry in done.preview if entry["type"] == "user_input"] == [ASK] * 3


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


@rows(
    ("fields", "source"),
    [
        ("title: Queue\ntype: note\npermalink: queue\ncreated_at: 2026-10-02", "From basic-memory, Queue:"),
        ('name: "queue"\ndescription: why', "From the memory of Claude Code, queue:"),
    ],
)
def test_notes_with_fields_name_their_source(fields, source):
    found = read(f"---\n{fields}\n---\n\nIt is SQLite.\n\n- [decision] One file #db\n".encode())

    assert [(one.kind, one.text) for one in found] == [
        ("text", f"{source} It is SQLite."), ("text", f"{source} - [decision] One file #db"),
    ]  # fmt: skip


@rows("content", [b"---\ntitle: Plan\n---\n\nShip it.\n", b"---\nname: x\ndescription: y\nIt never ends.\n"])
def test_other_fields_are_plain_text(content):
    assert "From" not in str([one.text for one in read(content)])


def test_no_memory_of_another_program_is_a_rule(home, tmp_path):
    (tmp_path / "mem0.json").write_bytes(data([{"results": [{"id": "1", "memory": "Never use Redis."}]}]))
    (tmp_path / "graph.jsonl").write_bytes(data([
        {"type": "entity", "name": "ada", "entityType": "person", "observations": ["Never uses spaces."]},
        {"type": "relation", "from": "ada", "to": "shop", "relationType": "builds"},
    ]))  # fmt: skip
    done = importing.import_transcripts([tmp_path], dry_run=True, home=home)

    assert done.types == {"observation": 3}
    assert {entry["metadata"].get("evidence", "agent") for entry in done.preview} == {"agent"}
    assert sorted(entry["content"].partition(":")[0] for entry in done.preview) == ["From MCP memory"] * 2 + [
        "From mem0"
    ]


@rows(
    ("value", "expected"),
    [(samples.AT, samples.AT), ("x", "x"), (True, "1970-01-01T00:00:01.000000Z"), (1e300, ""), ([], "")],
)
def test_times_are_texts(value, expected):
    assert time_of(value) == expected


def altered(value, chance):
    """Return `value` with one place in it replaced, removed, repeated or moved."""
    places = [(value, key) for key in range(len(value))]
    for holder, key in places:
        inner = holder[key]
        keys = inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        places += [(inner, below) for below in keys]
    holder, key = chance.choice(places)
    what = chance.choice(["drop", "twin", "null", "number", "list", "text", "object", "deep", "swap"])
    if what == "drop":
        del holder[key]
    elif what == "twin" and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif what == "swap":
        other, place = chance.choice(places)
        holder[key] = copy.deepcopy(other[place]) if place in other or isinstance(other, list) else None
    else:
        holder[key] = {
            "null": None, "number": chance.choice([-1, 0, 2**70, 1.5]), "list": [[], {}, 1], "text": "\ud800<a>\0",
            "object": {"type": [], "id": {}, "content": [1]}, "deep": [[[[[{}]]]]],
        }.get(what)  # fmt: skip
    return value


@rows("name", [*SAMPLES])
def test_no_change_of_a_file_is_more_than_a_bad_line_or_a_refusal(name):
    chance = random.Random(name)
    for _ in range(500):
        values = altered(copy.deepcopy(SAMPLES[name]), chance)
        content = bytearray(data(values))
        if chance.random() < 0.2 and content:
            content[chance.randrange(len(content))] = chance.randrange(256)
        for format_ in (None, name):
            try:
                found = read(bytes(content), format=format_)
            except InvalidInput:
                continue
            assert len(found) < 100
            assert all(
                isinstance(part, str)
                for one in found
                for part in (one.text, one.tool, one.call_id, one.time, one.uuid)
            )


def test_every_reader_has_a_sample_or_a_test_of_its_own():
    elsewhere = {"codex", "antigravity", "claude_code", "openhands", "cline", "items"}

    assert SOURCES.keys() - SAMPLES.keys() == elsewhere
