"""A small conversation in each format: a request, a call that failed, its result, an answer, and words of programs."""

from __future__ import annotations

ASK, TOLD = "Use SQLite. No mocks.", "Done: it is SQLite."
RUN = {"command": "pytest -q"}
AT, MS = "2026-10-02T10:00:00Z", 1790935200000
REMINDER = "<system-reminder>Never stop.</system-reminder>"
# Of all samples but those named in the tests: who said what, with the name of the tool of a call.
SPOKEN = [("user", ASK), ("call", "shell"), ("result", "1 failed"), ("assistant", TOLD)]


def text(words):
    return {"type": "text", "text": words}


def chatgpt():
    def node(name, parent, role, content, **more):
        message = {"id": name, "author": {"role": role}, "create_time": MS / 1000, "content": content, **more}
        return {"id": name, "parent": parent, "children": [], "message": message}

    def says(words):
        return {"content_type": "text", "parts": [words]}

    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    nodes = [
        {"id": "root", "parent": None, "message": None},
        node("n0", "root", "system", says("Never stop."), **hidden),
        node("n1", "n0", "user", says(ASK)),
        node("old", "n1", "assistant", says("Withdrawn.")),
        node("n2", "n1", "assistant", {"content_type": "code", "text": "run()"}, recipient="shell"),
        node("n3", "n2", "tool", {"content_type": "execution_output", "text": "1 failed"}),
        node("n4", "n3", "assistant", {"content_type": "thoughts", "thoughts": []}),
        node("n5", "n4", "assistant", says(TOLD)),
    ]
    mapping = {entry["id"]: entry for entry in nodes}
    return [[{"title": "Queue", "conversation_id": "c1", "mapping": mapping, "current_node": "n5"}]]


def claude_ai():
    def message(name, parent, sender, *blocks):
        about = {
            "uuid": name,
            "parent_message_uuid": parent,
            "sender": sender,
            "created_at": f"{AT[:-2]}{name}Z",
        }
        return {**about, "text": "", "content": [*blocks]}

    call = {"type": "tool_use", "id": "t1", "name": "shell", "input": RUN}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": [text("1 failed")], "is_error": True}
    messages = [
        message("1", "0", "human", text(ASK)),
        message("2", "1", "assistant", text("Withdrawn.")),
        message("3", "1", "assistant", call, answer, text(TOLD)),
    ]
    return [[{"uuid": "c1", "name": "Queue", "created_at": AT, "chat_messages": messages}]]


def opencode():
    def message(name, role, *parts):
        info = {
            "id": name,
            "sessionID": "ses_1",
            "role": role,
            "time": {"created": MS},
            "path": {"cwd": "/srv"},
        }
        return {"info": info, "parts": [*parts]}

    state = {"status": "error", "input": RUN, "error": "1 failed"}
    tool = {"type": "tool", "tool": "shell", "callID": "t1", "state": state}
    synthetic = {"type": "text", "text": "Never stop.", "synthetic": True}
    messages = [
        message("m1", "user", synthetic, text(ASK)),
        message("m2", "assistant", {"type": "step-start"}, tool, text(TOLD)),
    ]
    return [{"info": {"id": "ses_1", "directory": "/srv"}, "messages": messages}]


def vscode_chat():
    call = {"id": "t1", "name": "shell", "arguments": '{"command": "pytest -q"}'}
    metadata = {
        "toolCallRounds": [{"response": "", "toolCalls": [call]}, {"response": TOLD, "toolCalls": []}],
        "toolCallResults": {"t1": {"content": [{"value": "1 failed"}]}},
    }
    request = {
        "requestId": "r1", "timestamp": MS, "message": {"text": ASK}, "result": {"metadata": metadata},
        "response": [{"value": TOLD}, {"kind": "undoStop"}],
    }  # fmt: skip
    return [{"responderUsername": "GitHub Copilot", "sessionId": "s1", "requests": [request]}]


def copilot_cli():
    def event(kind, **data):
        return {"type": kind, "id": kind, "timestamp": AT, "data": data}

    request = {"toolCallId": "t1", "name": "shell", "arguments": RUN}
    return [
        event("session.start", sessionId="s1", context={"cwd": "/srv"}),
        event("user.message", content="Never stop.", source="skill"),
        event("user.message", content=ASK),
        event("assistant.message", content="", toolRequests=[request]),
        event("tool.execution_start", toolCallId="t1", toolName="shell", arguments=RUN),
        event("tool.execution_complete", toolCallId="t1", success=False, error={"message": "1 failed"}),
        event("assistant.message", content=TOLD),
    ]


def cursor():
    def line(role, *blocks):
        return {"role": role, "message": {"content": [*blocks]}}

    call = {"type": "tool_use", "name": "shell", "input": RUN}
    result = {"type": "tool_result", "tool_use_id": "", "content": "1 failed", "is_error": True}
    query = text(f"<open_files>a.py</open_files>\n<user_query>\n{ASK}\n</user_query>")
    return [line("user", query), line("assistant", call), line("user", result), line("assistant", text(TOLD))]


def sharegpt():
    turns = [
        ("system", "Never stop."), ("human", ASK), ("function_call", '{"name": "shell", "arguments": {"command": "pytest -q"}}'),
        ("observation", "1 failed"), ("gpt", TOLD),
    ]  # fmt: skip
    return [[{"id": "c1", "conversations": [{"from": role, "value": words} for role, words in turns]}]]


def ai_sdk():
    tool = {
        "type": "tool-shell",
        "toolCallId": "t1",
        "state": "output-error",
        "input": RUN,
        "errorText": "1 failed",
    }
    return [
        [
            {"id": "m1", "role": "user", "parts": [text(ASK)], "metadata": {"createdAt": MS}},
            {"id": "m2", "role": "assistant", "parts": [{"type": "step-start"}, tool, text(TOLD)]},
        ]
    ]


def langchain():
    def constructor(name, **fields):
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", name],
            "kwargs": fields,
        }

    call = {"name": "shell", "args": RUN, "id": "t1", "type": "tool_call"}
    return [
        [
            {"type": "system", "data": {"content": "Never stop."}},
            {"type": "human", "data": {"content": ASK, "id": "m1"}},
            constructor("AIMessage", content="", tool_calls=[call]),
            constructor("ToolMessage", content="1 failed", tool_call_id="t1", status="error"),
            {"type": "ai", "data": {"content": TOLD}},
        ]
    ]


def responses():
    arguments = '{"command": "pytest -q"}'
    return [
        {"role": "developer", "content": "Never stop."},
        {"role": "user", "content": ASK},
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "function_call", "call_id": "t1", "name": "shell", "arguments": arguments},
        {"type": "function_call_output", "call_id": "t1", "output": "1 failed", "status": "incomplete"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": TOLD}]},
    ]


def goose():
    def message(role, *content, **more):
        return {"role": role, "created": MS // 1000, "content": [*content], **more}

    request = {
        "type": "toolRequest",
        "id": "t1",
        "toolCall": {"status": "success", "value": {"name": "shell", "arguments": RUN}},
    }
    response = {"type": "toolResponse", "id": "t1", "toolResult": {"status": "error", "error": "1 failed"}}
    return [
        {"working_dir": "/srv", "description": "Queue", "message_count": 4},
        message("user", text("Never stop."), metadata={"userVisible": False}),
        message("user", text(ASK)),
        message("assistant", {"type": "thinking", "thinking": "Hm."}, request),
        message("user", response),
        message("assistant", text(TOLD)),
    ]


def amp():
    call = {"type": "tool_use", "id": "t1", "name": "shell", "input": RUN}
    run = {"status": "done", "result": {"output": "1 failed", "exitCode": 1}}
    answer = {"type": "tool_result", "toolUseID": "t1", "run": run}
    messages = [("user", text(ASK)), ("assistant", call), ("user", answer), ("assistant", text(TOLD))]
    listed = [
        {"role": role, "messageId": nth, "content": [block]} for nth, (role, block) in enumerate(messages)
    ]
    trees = [{"uri": "file:///srv"}]
    return [{"v": 1, "id": "T-1", "created": MS, "env": {"initial": {"trees": trees}}, "messages": listed}]


def continue_dev():
    call = {
        "id": "t1",
        "type": "function",
        "function": {"name": "shell", "arguments": '{"command": "pytest -q"}'},
    }
    state = {"toolCallId": "t1", "status": "errored", "output": [{"content": "1 failed"}]}
    history = [
        {"message": {"role": "user", "content": [text(ASK)]}, "contextItems": [{"content": "Never stop."}]},
        {"message": {"role": "assistant", "content": "", "toolCalls": [call]}, "toolCallStates": [state]},
        {"message": {"role": "tool", "content": "1 failed", "toolCallId": "t1"}},
        {"message": {"role": "assistant", "content": TOLD}},
    ]
    return [{"sessionId": "s1", "workspaceDirectory": "file:///srv", "history": history}]


def gemini():
    call = {"functionCall": {"name": "shell", "args": RUN}}
    answer = {"functionResponse": {"name": "shell", "response": {"error": "1 failed"}}}
    turns = [("user", {"text": ASK}), ("model", call), ("user", answer), ("model", {"text": TOLD})]
    return [{"history": [{"role": role, "parts": [part]} for role, part in turns]}]


def qwen_code():
    def line(name, parent, kind, *parts, **more):
        about = {
            "uuid": name,
            "parentUuid": parent,
            "sessionId": "s1",
            "timestamp": AT,
            "cwd": "/srv",
            "type": kind,
        }
        return {**about, "message": {"role": "user", "parts": [*parts]}, **more}

    call = {"functionCall": {"id": "t1", "name": "shell", "args": RUN}}
    answer = {"functionResponse": {"id": "t1", "name": "shell", "response": {"output": "1 failed"}}}
    return [
        line("1", None, "user", {"text": f"{REMINDER}\n{ASK}"}),
        line("old", "1", "assistant", {"text": "Withdrawn."}),
        line("again", "1", "assistant", {"text": "Thinking.", "thought": True}, call),
        line("3", "again", "tool_result", answer, toolCallResult={"status": "error"}),
        line("4", "3", "assistant", {"text": TOLD}),
    ]


def openhands_sdk():
    def event(kind, source, **more):
        return {"kind": kind, "id": kind, "source": source, "timestamp": AT, **more}

    said = {"role": "user", "content": [text(ASK)]}
    answer = {"role": "assistant", "content": [text(TOLD)]}
    call = {"tool_name": "shell", "tool_call_id": "t1"}
    return [
        event("SystemPromptEvent", "agent", system_prompt=text("Never stop.")),
        event("MessageEvent", "user", llm_message=said),
        event("ActionEvent", "agent", action={"kind": "TerminalAction", **RUN}, thought=[], **call),
        event(
            "ObservationEvent",
            "environment",
            observation={"content": [text("1 failed")], "exit_code": 1},
            **call,
        ),
        event("MessageEvent", "agent", llm_message=answer),
    ]


def letta():
    function = {"name": "shell", "arguments": '{"command": "pytest -q"}'}
    event = '{"type": "heartbeat", "reason": "Never stop.", "time": "now"}'
    messages = [
        {"id": "m0", "role": "user", "content": [text(event)], "created_at": AT},
        {"id": "m1", "role": "user", "content": [text(ASK)], "created_at": AT},
        {
            "id": "m2",
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t1", "function": function}],
        },
        {
            "id": "m3",
            "role": "tool",
            "tool_call_id": "t1",
            "content": "1 failed",
            "tool_returns": [{"status": "error"}],
        },
        {"id": "m4", "role": "assistant", "content": [text(TOLD)]},
    ]
    return [{"agents": [{"name": "ada", "messages": messages}], "blocks": []}]


def mem0():
    return [{"results": [{"id": "1", "memory": "Likes tabs.", "created_at": AT, "metadata": None}]}]


SAMPLES = {
    "chatgpt": chatgpt(), "claude_ai": claude_ai(), "opencode": opencode(), "vscode_chat": vscode_chat(),
    "copilot_cli": copilot_cli(), "cursor": cursor(), "sharegpt": sharegpt(), "ai_sdk": ai_sdk(),
    "langchain": langchain(), "responses": responses(), "goose": goose(), "amp": amp(), "continue": continue_dev(),
    "gemini": gemini(), "qwen_code": qwen_code(), "openhands_sdk": openhands_sdk(), "chat": letta(), "memories": mem0(),
}  # fmt: skip
