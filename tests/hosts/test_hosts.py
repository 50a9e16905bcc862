"""Every host: payloads become the same events, answers have the host's form, and settings come back to the byte."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from aether.api import working
from aether.cli.main import cli
from aether.errors import AetherError, Conflict, InvalidDocument, InvalidInput
from aether.hosts import HOSTS, hook, installing, programs
from tests import homes

OTHERS = [host for host in HOSTS if host != "claude-code"]
PROMPT, COMMAND, OUTPUT, MESSAGE = "Never retry the webhook.", "pytest -q", "3 passed", "All tests pass."


def claude_like(event, **fields):
    """Return a payload as most hosts send it."""
    return {"hook_event_name": event, "session_id": "s-1", "transcript_path": "", **fields}


def events(host, cwd):
    """Return the payloads of one short session of `host`: a start, a prompt, a command, and the last message."""
    directory = {"cwd": cwd}
    match host:
        case "gemini-cli":
            names = ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent")
            printed = {"llmContent": f"Output: {OUTPUT}\nProcess Group PGID: 7", "returnDisplay": OUTPUT}
            call = {
                "tool_name": "run_shell_command",
                "tool_input": {"command": COMMAND},
                "tool_response": printed,
            }
            last = {"prompt": PROMPT, "prompt_response": MESSAGE}
        case "copilot":
            names = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")
            result = {"result_type": "success", "text_result_for_llm": OUTPUT}
            call = {"tool_name": "bash", "tool_input": {"command": COMMAND}, "tool_result": result}
            log = "\n".join(
                json.dumps(record)
                for record in (
                    {"type": "user.message", "data": {"content": PROMPT}},
                    {"type": "assistant.message", "data": {"content": MESSAGE}},
                    {"type": "assistant.turn_end", "data": {}},
                )
            )
            path = f"{cwd}/events.jsonl"
            with open(path, "w") as file:
                file.write(f"torn{log}\n")
            last = {"transcript_path": path}
        case "cursor":
            names = ("sessionStart", "beforeSubmitPrompt", "postToolUse", "afterAgentResponse")
            printed = json.dumps({"exitCode": 0, "stdout": OUTPUT})
            call = {"tool_name": "Shell", "tool_input": {"command": COMMAND}, "tool_output": printed}
            last = {"text": MESSAGE}
            directory = {"workspace_roots": [cwd], "conversation_id": "s-1"}
        case _:
            names = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")
            call = {"tool_name": "bash" if host == "opencode" else "Bash", "tool_input": {"command": COMMAND}, "tool_response": OUTPUT}  # fmt: skip
            last = {"last_assistant_message": MESSAGE}
    fields = ({"source": "startup"}, {"prompt": PROMPT}, {**call, "tool_use_id": "c1"}, last)
    return [claude_like(name, **directory, **more) for name, more in zip(names, fields, strict=True)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with a home, and a user whose directories are empty."""
    for name in ("CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "user" / name))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setattr(installing, "own_program", lambda: ["/venv/bin/aether-hook"])
    project = tmp_path / "app"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    homes.fresh(project)
    return project


@pytest.mark.parametrize("host", OTHERS)
def test_a_session_is_remembered_and_the_next_gets_memory(project, host):
    def report(payload):
        code, output = hook.main([host, payload["hook_event_name"]], json.dumps(payload).encode())
        assert code == 0
        return output

    started, *others = events(host, str(project))
    report(started)
    for payload in others:
        report(payload)

    home = project / ".aether"
    assert not (home / "hook.log").exists()
    items = {item["content"]: item["metadata"] for item in working.list_working_memory_items(home=home)}
    assert items[PROMPT]["evidence"] == "person"
    assert items[MESSAGE]["pointer"]["host"] == host
    memory = json.loads(report({**started, "session_id": "s-2", "conversation_id": "s-2"}))
    assert PROMPT in json.dumps(memory)


def test_a_prompt_before_the_start_does_not_take_the_place_of_memory(project):
    def report(payload, **fields):
        payload = json.dumps({**payload, **fields}).encode()
        return hook.main(["copilot"], payload)[1]

    started, *others = events("copilot", str(project))
    for payload in others:
        report(payload)
    report(others[0], session_id="s-2", prompt="Which calls are retried?")

    assert PROMPT in report(started, session_id="s-2")


@pytest.mark.parametrize("host", OTHERS)
def test_the_call_and_its_output_are_those_of_a_shell(host, tmp_path):
    payload = events(host, str(tmp_path))[2]

    call = import_module(HOSTS[host]).event_of(payload)["call"]

    assert (call["tool"], call["input"], call["output"], call["failed"]) == (
        "Bash",
        {"command": COMMAND},
        OUTPUT,
        False,
    )


@pytest.mark.parametrize(
    ("host", "fields", "failed"),
    [
        ("gemini-cli", {"tool_response": {"llmContent": "Output: no\nExit Code: 2"}}, True),
        ("gemini-cli", {"tool_response": {"llmContent": "Output: no", "error": {"message": "denied"}}}, True),
        ("gemini-cli", {"tool_response": {"llmContent": "Output: no\nExit Code: 0"}}, False),
        ("gemini-cli", {"tool_response": "no"}, False),
        ("cursor", {"tool_output": '{"exitCode": 1, "stdout": "no"}'}, True),
        ("cursor", {"tool_output": "no"}, False),
        (
            "cursor",
            {"hook_event_name": "postToolUseFailure", "tool_output": None, "error_message": "no"},
            True,
        ),
        ("copilot", {"hook_event_name": "PostToolUseFailure", "tool_result": None, "error": "no"}, True),
    ],
)
def test_a_call_that_failed_says_so(tmp_path, host, fields, failed):
    payload = {**events(host, str(tmp_path))[2], **fields}

    call = import_module(HOSTS[host]).event_of(payload)["call"]

    assert (call["failed"], call["output"]) == (failed, "no")


@pytest.mark.parametrize("host", OTHERS)
def test_what_is_no_event_of_aether_and_its_own_tools_are_left_out(host, tmp_path):
    module = import_module(HOSTS[host])
    own = {**events(host, str(tmp_path))[2], "tool_name": "mcp__aether__recall"}

    assert module.event_of({"hook_event_name": "Notification", "session_id": "s"})["event"] == ""
    assert module.event_of(own)["call"] is None
    assert module.output("PreCompact", "text") == ""


def test_a_turn_without_a_message_waits_for_it_only_a_moment(tmp_path, monkeypatch):
    copilot = import_module(HOSTS["copilot"])
    monkeypatch.setattr(copilot, "WAIT_SECONDS", 0.01)
    log = tmp_path / "events.jsonl"
    log.write_text('{"type": "user.message", "data": {}}\n')

    for path in (log, tmp_path / "missing", 7):
        assert copilot.speech_of({"transcript_path": str(path) if path != 7 else 7}, "Stop") == {}


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{}",
        '{\r\n\t"theme": "dark",\r\n\t"hooks": {"Stop": [], "stop": []}\r\n}',
        '{"version": 1, "hooks": {"SessionStart": [], "sessionStart": []}}\n',
    ],
)
@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("host", OTHERS)
def test_settings_come_back_to_the_byte(project, host, scope, text):
    if host == "opencode":
        text = None  # a file of its own
    module = import_module(HOSTS[host])
    root = project if scope == "project" else module.directory()
    path = module.edit(None, root, is_user=scope == "user").path
    if text is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())

    installing.install(host, scope)
    installed = path.read_bytes()
    assert installed.count(b"aether-hook") >= len(module.EVENTS) or host == "opencode"
    assert b"/venv/bin" not in installed or scope == "user"
    assert [file.change for file in installing.install(host, scope).files] == ["unchanged"]
    assert path.read_bytes() == installed

    installing.uninstall(host, scope)
    assert (path.read_bytes().decode() if path.exists() else None) == text
    assert not list((project.parent / "user").rglob("*backup*"))


@pytest.mark.parametrize("host", ["codex", "cursor"])
def test_what_others_added_since_stays(project, host):
    module = import_module(HOSTS[host])
    path = module.edit(None, project, is_user=False).path
    installing.install(host, "project")
    settings = json.loads(path.read_text())
    event = next(iter(module.EVENTS))
    foreign = {"type": "command", "command": "say done"}
    settings["hooks"][event].append(foreign if host == "cursor" else {"hooks": [foreign]})
    settings["hooks"]["Other"] = []
    path.write_text(json.dumps(settings))

    installing.install(host, "project")
    installing.uninstall(host, "project")

    left = json.loads(path.read_text())["hooks"]
    assert left == {event: [foreign if host == "cursor" else {"hooks": [foreign]}], "Other": []}


def test_hooks_of_an_earlier_program_are_replaced(project, monkeypatch):
    installing.install("copilot", "user")
    monkeypatch.setattr(installing, "own_program", lambda: ["/new/bin/aether-hook"])

    [file] = installing.install("copilot", "user").files

    text = (project.parent / "user" / "COPILOT_HOME" / "hooks" / "aether.json").read_text()
    assert file.change == "changed"
    assert "/venv/bin" not in text
    assert text.count("/new/bin/aether-hook copilot ") == len(import_module(HOSTS["copilot"]).EVENTS)


@pytest.mark.parametrize(
    ("host", "path", "text", "error"),
    [
        ("cursor", ".cursor/hooks.json", '{"hooks": {"sessionStart": {}}}', InvalidDocument),
        ("codex", ".codex/hooks.json", '{"hooks": 3}', InvalidDocument),
        ("gemini-cli", ".gemini/settings.json", "{ // mine\n}", InvalidDocument),
        ("opencode", ".opencode/plugins/aether.js", "export const Mine = 1\n", Conflict),
    ],
)
def test_a_file_of_another_form_is_refused_and_stays(project, host, path, text, error):
    (project / path).parent.mkdir(parents=True)
    (project / path).write_text(text)

    with pytest.raises(error, match=r"(?s)" + path.rpartition("/")[2]):
        installing.install(host, "project")

    assert (project / path).read_text() == text
    assert [file.change for file in _uninstalled(host)] in ([], ["unchanged"])
    assert (project / path).read_text() == text


def _uninstalled(host):
    try:
        return installing.uninstall(host, "project").files
    except AetherError:
        return []


def test_an_unknown_host_is_named_with_those_there_are(project):
    with pytest.raises(InvalidInput, match="codex"):
        installing.install("emacs", "user")


def test_install_takes_the_hosts_of_this_machine(project, monkeypatch, capsys):
    monkeypatch.setattr(installing.shutil, "which", lambda name: f"/bin/{name}" if name == "gemini" else None)
    (project.parent / "user" / "CODEX_HOME").mkdir(parents=True)
    (project / ".codex").mkdir()
    (project / ".codex" / "hooks.json").write_text("[]")

    code = cli(["install", "--project", "--json"], standalone_mode=False)
    data = json.loads(capsys.readouterr().out)

    assert code == 1
    assert [change["host"] for change in data["hosts"]] == ["gemini-cli"]
    assert list(data["failed"]) == ["codex"]
    assert (project / ".gemini" / "settings.json").exists()
    assert cli(["uninstall", "gemini-cli"], standalone_mode=False) is None
    assert "removed" in capsys.readouterr().out
    assert not (project / ".gemini").exists()
    cli(["uninstall", "gemini-cli"], standalone_mode=False)
    assert "Nothing of aether" in capsys.readouterr().out


def test_without_a_host_on_this_machine_it_says_which_there_are(project, monkeypatch, capsys):
    monkeypatch.setattr(installing.shutil, "which", lambda name: None)

    assert cli(["install"], standalone_mode=False) == 1
    assert "opencode" in capsys.readouterr().err


def test_claude_code_is_one_of_them(project, monkeypatch):
    from aether.hosts.claude_code import install

    monkeypatch.setattr(install, "can_serve", lambda: False)
    monkeypatch.setattr(programs, "own_script", lambda name: "")

    [file] = installing.install("claude-code", "project", dry_run=True).files
    assert file.change == "created"
    assert not (project / ".claude").exists()
    installing.install("claude-code", "project")
    changes = [file.change for file in installing.uninstall("claude-code", "project").files]
    assert changes.count("removed") == 1
