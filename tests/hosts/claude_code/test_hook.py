"""The hook process: any input ends well, the output has the shape of its event, and no event is lost."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aether
from aether import clock
from aether.api import recall, working
from aether.hosts import answer, hook
from aether.hosts.claude_code import event as claude_code_event
from aether.store import config, spool
from aether.store.files import locked
from tests import homes
from tests.api.calls import memory
from tests.crash import faults
from tests.effort import examples
from tests.laws.json_values import values
from tests.tables import rows

HOOKS = Path(__file__).parents[4] / "shared" / "data" / "hooks"
ANSWER = "from aether.hosts.hook import run; run()"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a home; returns it."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    (tmp_path / "app" / ".git").mkdir(parents=True)
    homes.fresh(tmp_path / "app")
    return tmp_path / "app"


def reported(project, name, **more):
    payload = {"hook_event_name": name, "session_id": "s", "cwd": str(project), **more}
    return hook.main([], json.dumps(payload).encode())


def ran(project, nth=1):
    return reported(
        project, "PostToolUse", tool_name="Bash", tool_input={"command": f"make {nth}"}, tool_response="ok", tool_use_id=f"t{nth}"
    )  # fmt: skip


def entries(project):
    home = str(project / ".aether")
    return [spool.get(home, name) for name in spool.waiting(home)]


def logged(project):
    path = project / ".aether" / spool.NAME
    return path.read_text(encoding="utf-8") if path.exists() else ""


def process(project, payload, *words, code=ANSWER, **options):
    return subprocess.run(
        [sys.executable, "-c", code, *words], input=payload if isinstance(payload, bytes) else json.dumps(payload).encode(),
        capture_output=True, check=False, cwd=project, env=homes.plain_environment(), **options,
    )  # fmt: skip


def test_the_event_of_a_tool_is_kept_and_prints_nothing(project):
    assert ran(project) == (0, "")

    (entry,) = entries(project)
    assert entry["input"] == {"command": "make 1"}
    assert entry["at"].endswith("Z")
    assert len(entry["at"]) == len("2026-03-01T10:15:00.000000Z")


def test_what_a_turn_yielded_is_stored_by_a_process_of_its_own(project):
    asked = "Please always use SQLite for the state."
    reported(project, "UserPromptSubmit", prompt=asked, prompt_id="p1")

    found = process(
        project, {"hook_event_name": "Stop", "session_id": "s", "cwd": str(project), "prompt_id": "p1"}
    )

    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")
    until = time.monotonic() + 60
    while entries(project) and time.monotonic() < until:
        time.sleep(0.05)
    assert (entries(project), logged(project)) == ([], "")
    assert asked in json.dumps(homes.reopened(project / ".aether").documents["memory"])


def test_the_end_of_a_session_keeps_the_brief_of_the_next(project, monkeypatch):
    working.add_working_memory_item("The cache listens on 8007.", "decision", home=project / ".aether")
    reported(project, "SessionEnd", reason="other")

    monkeypatch.setattr(
        "aether.memory.briefing.briefing.briefing", lambda **_: pytest.fail("it was made again")
    )
    code, text = reported(project, "SessionStart", source="startup", session_id="next")

    assert (code, "The cache listens on 8007." in text, logged(project)) == (0, True, "")


def test_the_argument_names_the_event_if_the_payload_does_not(project):
    payload = {"cwd": str(project), "prompt": "Use SQLite."}

    assert hook.main(["UserPromptSubmit"], json.dumps(payload).encode()) == (0, "")
    assert "Use SQLite." in (project / ".aether" / "data" / "memory.json").read_text() + str(entries(project)) + "".join(
        path.read_text() for path in (project / ".aether").rglob("*.jsonl")
    )  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [b"", b"{", b"null", b"[1]", b'"text"', b"\x00\xff\xfe", b"[" * 200_000, b'{"hook_event_name": 7}'],
)
def test_input_that_is_no_event_ends_well_and_is_logged(project, monkeypatch, said):
    monkeypatch.chdir(project)

    assert hook.main(["Stop"] if b"{" not in said else [], said) == (0, "")
    assert said.startswith(b'{"') or len(logged(project).splitlines()) == 1


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16", "utf-8"])
def test_any_encoding_of_json_is_read(project, mark):
    payload = {"hook_event_name": "TaskCompleted", "cwd": str(project), "task_subject": "Größe 漢字"}

    hook.main([], json.dumps(payload, ensure_ascii=False).encode(mark))

    assert entries(project)[0]["subject"] == "Größe 漢字"


def test_bytes_that_are_no_text_lose_only_themselves(project):
    said = json.dumps(
        {"hook_event_name": "TaskCompleted", "cwd": str(project), "task_subject": "a@b"}
    ).encode()

    hook.main([], said.replace(b"@", b"\xff"))

    assert entries(project)[0]["subject"] == "a�b"


@examples(60)
@given(
    values()
    | st.dictionaries(
        st.sampled_from(["hook_event_name", "session_id", "cwd", "prompt", "tool_input", "a"]), values()
    )
)
def test_any_json_ends_well_and_prints_nothing(payload):
    if isinstance(payload, dict):
        payload = {**payload, "cwd": "/nowhere/at/all"}

    assert hook.main(["PostToolUse"], json.dumps(payload).encode()) == (0, "")


@examples(60)
@given(st.binary(max_size=200))
def test_any_bytes_end_well(said):
    assert hook.main(["Stop"], said) == (0, "")


def test_a_session_makes_the_home_and_keeps_it_out_of_git(tmp_path):
    (tmp_path / ".git").mkdir()

    assert ran(tmp_path) == (0, "")
    assert not (tmp_path / ".aether").exists()
    reported(tmp_path, "SessionStart", source="startup")

    assert (tmp_path / ".aether" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / ".aether" / "data" / "memory.json").exists()


@rows("where", ["user", "off", "gone"])
def test_no_home_is_created_in_a_forbidden_place(tmp_path, monkeypatch, where):
    if where == "user":
        monkeypatch.setenv("HOME", str(tmp_path))
    if where == "off":
        monkeypatch.setenv("AETHER_AUTO_INIT", "0")
    project = tmp_path / "gone" if where == "gone" else tmp_path

    assert reported(project, "SessionStart", source="startup") == (0, "")
    assert not (project / ".aether").exists()


def test_a_paused_home_hears_and_says_nothing(project):
    (project / ".aether" / "hooks").mkdir()
    (project / ".aether" / "hooks" / "paused").touch()

    assert ran(project) == (0, "")
    assert reported(project, "SessionStart", source="startup") == (0, "")
    assert entries(project) == []


def test_with_capture_off_nothing_is_kept(project):
    (project / ".aether" / "config.toml").write_text("[claude]\ncapture = false\n")

    assert ran(project) == (0, "")
    assert entries(project) == []


def test_private_paths_come_from_the_configuration(project):
    (project / ".aether" / "config.toml").write_text('[claude]\nprivate_paths = "secrets/**"\n')

    for path in ("secrets/a", "b.py"):
        reported(project, "PostToolUse", tool_name="Write", tool_input={"file_path": path, "content": "x"})

    assert [entry["input"]["file_path"] for entry in entries(project)] == ["b.py"]


def asked(project, session="s"):
    return reported(project, "TaskCompleted", task_subject="Done", session_id=session)


@pytest.mark.parametrize(
    "said",
    [
        "new_key = true",
        "brief_tokens = 'many'",
        "deadline_seconds = -1",
        "capture = 'yes'",
        "[later]\nkey = 1",
    ],
)
def test_an_invalid_setting_loses_no_event_and_is_logged_once_for_each_session(project, said):
    (project / ".aether" / "config.toml").write_text(f"[claude]\nprivate_paths = 'secrets/**'\n{said}\n")

    ran(project, 1)
    asked(project)
    reported(project, "PostToolUse", tool_name="Write", tool_input={"file_path": "secrets/a", "content": "x"})
    asked(project, "another")

    assert [entry["event"] for entry in entries(project)] == ["PostToolUse", "TaskCompleted", "TaskCompleted"]
    assert len(logged(project).splitlines()) == 2


@pytest.mark.parametrize(
    "said", ["[claude]\ncapture = maybe\n", "[claude]\nprivate_paths = ['a']\n", "claude = 1\n", None]
)
def test_with_unreadable_private_paths_only_calls_are_left_out(project, said):
    path = project / ".aether" / "config.toml"
    path.mkdir() if said is None else path.write_text(said)

    ran(project)
    asked(project)

    assert [entry["event"] for entry in entries(project)] == ["TaskCompleted"]
    assert len(logged(project).splitlines()) == 1
    assert "private_paths cannot be read" in logged(project)


def test_a_broken_configuration_keeps_a_session_from_nothing_that_is_remembered(project):
    aether.add_working_memory_item("Never push on Fridays.", "constraint", home=project / ".aether")
    (project / ".aether" / "config.toml").write_text("[claude]\nnew_key = true\n")

    assert "Never push" in reported(project, "SessionStart", source="startup")[1]
    assert reported(project, "UserPromptSubmit", prompt="Use SQLite.")[0] == 0
    assert "Use SQLite." in str(entries(project))


def test_no_configuration_makes_a_hook_wait_without_end(project, monkeypatch):
    monkeypatch.setattr(hook.time, "monotonic", lambda: 7.0)
    homes.configure(project / ".aether", "[claude]\ndeadline_seconds = 3600.0\n")
    given = []

    hook.main(
        ["Stop"], json.dumps({"cwd": str(project)}).encode(), deadline=lambda each, *_: given.append(each)
    )

    assert given[-1] == hook.MOST_SECONDS


def test_a_home_that_is_a_link_to_another_is_neither_read_nor_written(project, tmp_path, monkeypatch):
    (tmp_path / "here" / "data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    aether.add_working_memory_item("The host is db7.", "constraint", home=project / ".aether")
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    (tmp_path / "clone" / ".aether").symlink_to(project / ".aether")

    assert reported(tmp_path / "clone", "SessionStart", source="startup") == (0, "")
    assert reported(tmp_path / "clone", "UserPromptSubmit", prompt="Which host is db7?") == (0, "")
    assert entries(project) == []
    assert [path.name for path in (tmp_path / "here").rglob("*")] == ["data"]


@pytest.mark.parametrize(
    ("event", "most"), [("UserPromptSubmit", 12.0), ("Stop", 12.0), ("TaskCompleted", 4.0)]
)
def test_an_event_has_time_to_be_kept_before_its_answer_has_time(project, event, most, monkeypatch):
    (project / ".aether" / "config.toml").write_text("[claude]\ndeadline_seconds = 0.1\n")
    payload = {
        "cwd": str(project),
        "prompt": "Use SQLite.",
        "task_subject": "a",
        "last_assistant_message": "Done.",
    }
    seen = []

    hook.main(
        [event],
        json.dumps(payload).encode(),
        deadline=lambda each, *_: seen.append((each, len(entries(project)))),
    )

    assert seen[:2] == [(most, 0)] * 2
    assert seen[2:] == [(0.1, 1)][: hook.EVENTS.get(event, hook.UNKNOWN).answers]


def test_the_log_is_not_written_where_a_repository_leads_it(project, tmp_path):
    (project / ".aether" / "hook.log").symlink_to(tmp_path / "rc")
    (project / ".aether" / "config.toml").write_text("[claude]\nx = 1\n")

    reported(project, "Stop")

    assert not (tmp_path / "rc").exists()


def test_other_settings_are_no_reason_to_read_the_configuration(project):
    homes.configure(project / ".aether", "[store]\nfold_bytes = 10\n")

    ran(project)

    assert len(entries(project)) == 1


def test_the_defaults_are_those_of_the_configuration():
    known = {name: value for name, value in vars(hook.Defaults).items() if name.startswith("claude_")}
    settings = config.Config()

    assert known == {name: getattr(settings, name) for name in known}
    assert len(known) == 7


def read_file(project, path="src/store.py", **more):
    given = {"file_path": str(project / path)}
    _, text = reported(
        project, "PostToolUse", tool_name="Read", tool_input=given, tool_response="text", **more
    )
    return json.loads(text)["hookSpecificOutput"]["additionalContext"] if text else ""


def test_reading_a_file_is_answered_only_if_that_is_switched_on(project, monkeypatch):
    home = project / ".aether"
    aether.add_working_memory_item(
        "Keep state in src/store.py, because one writer is enough.", "decision", 0.9, home=home
    )
    monkeypatch.setattr(hook, "_keep", None)  # nothing is kept of it, switched on or off

    assert read_file(project) == ""
    homes.configure(home, "[claude]\nfile_history = true\n")

    assert "one writer is enough" in read_file(project, tool_use_id="1")
    assert read_file(project, tool_use_id="2") == "", "the session has it already"
    assert "one writer is enough" in read_file(project, session_id="other")
    assert read_file(project, "src/data_store.py", session_id="third") == ""


def test_nothing_is_said_about_a_private_file(project):
    home = project / ".aether"
    aether.add_working_memory_item("Never commit config/.env to git.", "constraint", 0.9, home=home)
    homes.configure(home, "[claude]\nfile_history = true\n")

    assert read_file(project, "config/.env") == ""


def test_the_task_of_a_sub_agent_is_read_from_its_transcript(project, monkeypatch):
    transcript = project / "agent.jsonl"
    transcript.write_text(
        '{"type": "user", "message": {"role": "user", "content": "Look at it."}}\n{"x": 1}\n'
    )
    monkeypatch.setattr(answer, "answer", lambda *_, **__: "")

    reported(project, "SubagentStop", agent_id="a", agent_type="scout", agent_transcript_path=str(transcript))
    reported(
        project, "SubagentStop", agent_id="b", agent_type="scout", agent_transcript_path=str(project / "none")
    )
    transcript.write_text("[1]")
    reported(project, "SubagentStop", agent_id="c", agent_type="scout", agent_transcript_path=str(transcript))

    assert [entry.get("task_text") for entry in entries(project)] == ["Look at it.", None, None]


def test_interim_texts_are_read_from_the_transcript(project, monkeypatch):
    transcript = project / "s.jsonl"
    said = {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "We chose SQLite."}]}
    transcript.write_text(json.dumps({"type": "assistant", "uuid": "u1", "message": said}) + "\n")
    monkeypatch.setattr(answer, "answer", lambda *_, **__: "")
    about = {"transcript_path": str(transcript), "last_assistant_message": "Done."}

    for event in ("Stop", "PreCompact", "UserPromptSubmit", "PostCompact"):
        reported(project, event, **about)
    (project / ".aether" / "config.toml").write_text("[claude]\ncapture = false\n")
    reported(project, "Stop", **about)

    found = [{"text": "We chose SQLite.", "uuid": "u1", "id": "m1"}]
    assert [entry.get("said") for entry in entries(project)] == [found, found, None, None]


def test_a_part_that_fails_is_logged_and_the_event_is_kept(project, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(answer, "answer", broken)

    assert reported(project, "Stop", last_assistant_message="Done.") == (0, "")
    assert "RuntimeError: no such luck" in logged(project)
    assert entries(project)[0]["message"] == "Done."


def test_the_output_has_the_shape_of_its_event(project, monkeypatch):
    monkeypatch.setattr(answer, "answer", lambda host, entry, *_, **__: f"of {entry['event']}")

    said = {
        name: reported(project, name, agent_type="scout", agent_id="a")[1]
        for name in sorted(name for name, kind in hook.EVENTS.items() if kind.answers)
    }

    for name, text in said.items():
        assert text == claude_code_event.output(name, f"of {name}")


def test_an_event_that_comes_twice_at_once_is_answered_once(project, monkeypatch):
    monkeypatch.setattr(answer, "answer", lambda *_, **__: "remembered")

    first, second = (reported(project, "SessionStart", source="startup") for _ in range(2))

    assert "remembered" in first[1]
    assert second == (0, "")
    assert len(entries(project)) == 2


def test_a_home_that_stays_locked_ends_the_hook_and_loses_nothing(project):
    with locked(project / ".aether", timeout=5):
        found = process(
            project,
            {"hook_event_name": "Stop", "cwd": str(project), "last_assistant_message": "Decided: SQLite."},
        )

    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")
    assert len(entries(project)) == 1


def test_the_summary_of_a_compaction_outlives_a_locked_home(project):
    home = project / ".aether"
    aether.add_working_memory_item("Never commit to the main branch.", "constraint", home=home)
    (home / "hooks").mkdir()
    prose = "The service moved to port 8001. Its tests still fail on Windows; next comes the clock."
    event = {"compact_summary": f"<summary>{prose}</summary>", "trigger": "auto"}
    with locked(home, timeout=5):
        assert reported(project, "PostCompact", **event) == (0, "")
    assert "PostCompact s LockTimeout" in logged(project)

    assert ran(project) == (0, "")
    reported(project, "SessionStart", source="compact")

    assert [each["summary"] for each in memory(home)["short_term_memory"]["sessions"]] == [prose]


def test_a_home_that_is_a_file_ends_well(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".aether").write_text("")

    assert reported(tmp_path, "SessionStart", source="startup")[0] == 0
    assert ran(tmp_path) == (0, "")


def test_a_full_disk_ends_well_and_leaves_no_piece(project, monkeypatch):
    def full(handle, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert ran(project) == (0, "")
        code, text = reported(project, "UserPromptSubmit", prompt="Never deploy on Fridays.")

    assert list((project / ".aether" / "hooks" / "spool").iterdir()) == []
    # The log could not take it, so the user is shown it.
    assert code == 0
    assert "No space left on device" in json.loads(text)["systemMessage"]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_home_that_may_not_be_written_is_still_read(project, monkeypatch, number):
    aether.add_working_memory_item("Never deploy on Fridays.", "constraint", home=project / ".aether")
    for name in ("open", "mkdir", "replace", "unlink"):
        refuse_writing(monkeypatch, name, number)

    (start, prompt), (stop, nothing) = (
        reported(project, name, source="startup") for name in ("SessionStart", "Stop")
    )

    said = json.loads(prompt)
    assert (start, stop, nothing) == (0, 0, "")
    assert "Never deploy on Fridays." in said["hookSpecificOutput"]["additionalContext"]
    assert os.strerror(number) in said["systemMessage"]
    assert said["systemMessage"].endswith("What memory holds is still read.")


def refuse_writing(monkeypatch, name, number):
    """Let a function of `os` fail as where nothing may be written; a file can be opened for reading."""
    real = getattr(os, name)

    def refused(path, *more, **named):
        if name == "open" and more and not more[0] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return real(path, *more, **named)
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(os, name, refused)


def test_what_the_user_is_shown_can_always_be_printed():
    said = hook._not_stored(claude_code_event, "/home/\udcff", OSError(28, "No space left on device"))

    assert "No space left" in json.loads(said.encode("ascii"))["systemMessage"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_kill_at_any_call_leaves_a_whole_entry_or_none(project):
    home = project / ".aether"
    with faults.injected(faults.Calls()) as calls:
        ran(project)
    struck = 0
    for strike, name in enumerate(calls.names):
        for fault in faults.KILLED:
            if faults.apply_to(name, fault):
                before = len(spool.waiting(str(home)))

                def act(strike=strike, fault=fault):
                    with faults.injected(faults.Calls(strike, fault)):
                        ran(project)

                struck += faults.in_child(act) == -signal.SIGKILL
                assert len(spool.waiting(str(home))) - before in (0, 1)

    assert struck > 5
    assert None not in entries(project)


def test_sixteen_processes_at_once_lose_nothing(project):
    payloads = [
        {"hook_event_name": "PostToolUse", "cwd": str(project), "tool_name": "Bash", "tool_input": {"command": f"make {nth}"}}
        for nth in range(16)
    ]  # fmt: skip
    running = [
        subprocess.Popen(
            [sys.executable, "-c", ANSWER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=homes.plain_environment(),
        )
        for _ in payloads
    ]  # fmt: skip

    said = [
        each.communicate(json.dumps(payload).encode())
        for each, payload in zip(running, payloads, strict=True)
    ]

    assert said == [(b"", b"")] * 16
    assert {each.returncode for each in running} == {0}
    assert {entry["input"]["command"] for entry in entries(project)} == {f"make {nth}" for nth in range(16)}


def test_a_reader_that_goes_away_is_no_failure(project):
    code = f"import os; os.close(1); {ANSWER}"

    found = process(
        project, {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(project)}, code=code
    )

    assert (found.returncode, found.stderr) == (0, b"")


def test_a_late_answer_ends_with_a_line_in_the_log(project):
    (project / ".aether" / "config.toml").write_text("[claude]\ndeadline_seconds = 0.3\n")
    code = (
        "import time\nfrom aether.hosts import answer, hook\n"
        "answer.answer = lambda *a, **k: time.sleep(60)\nhook.run()"
    )

    found = process(
        project,
        {"hook_event_name": "Stop", "cwd": str(project), "last_assistant_message": "Done."},
        code=code,
    )

    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")
    assert "Stop - was not done in time" in logged(project)
    assert len(entries(project)) == 1


@pytest.mark.parametrize(
    ("event", "until_kept", "seconds"),
    [
        ("PostToolUse", 4.0, None), ("Whatever", 4.0, None), ("SessionEnd", 1.8, None), ("Stop", 12.0, 8.0),
        ("PreCompact", 27.0, 24.0), ("PostCompact", 27.0, 24.0),
    ],
)  # fmt: skip
def test_keeping_an_event_may_take_as_long_as_the_host_waits_and_answering_as_is_set(
    project, event, until_kept, seconds, monkeypatch
):
    monkeypatch.setattr(answer, "answer", lambda *_, **__: "")
    given = []

    hook.main(
        [event], json.dumps({"cwd": str(project)}).encode(), deadline=lambda each, *_: given.append(each)
    )

    assert given == [until_kept, until_kept] + ([seconds] if seconds else [])


def test_the_host_does_not_wait_longer_for_an_event_that_took_long_to_be_kept(project, monkeypatch):
    clock, given = iter(range(0, 10_000, 11)), []
    monkeypatch.setattr(hook.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(answer, "answer", lambda *_, **__: "")
    answered_with = {"cwd": str(project), "hook_event_name": "Stop"}
    hook.main([], json.dumps(answered_with).encode(), deadline=lambda each, *_: given.append(each))

    assert given[-1] == 1.0


def test_an_event_that_is_kept_late_is_kept(project):
    (project / ".aether" / "config.toml").write_text("[claude]\ndeadline_seconds = 0.1\n")
    code = (
        "import time\nfrom aether.hosts import answer, hook\nreal = hook.entry_of\n"
        "answer.answer = lambda *a, **k: ''\n"
        "def slow(*given, **more):\n    time.sleep(2.5)\n    return real(*given, **more)\n"
        "hook.entry_of = slow\nhook.run()"
    )

    found = process(project, {"hook_event_name": "Stop", "cwd": str(project), "last_assistant_message": "Done."}, code=code)  # fmt: skip

    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")
    assert [entry["message"] for entry in entries(project)] == ["Done."]


def test_the_time_for_an_event_counts_from_when_the_host_has_said_it(project, monkeypatch):
    seen = []

    class Slow(io.BytesIO):
        def read(self, *size):
            seen.append("read")
            return super().read(*size)

    said = Slow(json.dumps({"cwd": str(project), "tool_name": "Bash", "tool_input": {"command": "make"}}).encode())  # fmt: skip
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(said))
    monkeypatch.setattr(hook, "set_deadline", lambda seconds, *about: seen.append(seconds))

    assert hook.serve(["PostToolUse"]) == 0
    assert seen[:3] == [hook.MOST_SECONDS, "read", hook.UNKNOWN.seconds]
    assert len(entries(project)) == 1


def test_the_first_event_of_a_project_is_kept_before_its_home_is_made(tmp_path, monkeypatch):
    from aether.api import admin

    def broken(place):
        raise RuntimeError("too late")

    (tmp_path / ".git").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(admin, "init", broken)
        reported(tmp_path, "UserPromptSubmit", prompt="Never use port 8001.")
    assert len(entries(tmp_path)) == 1
    reported(tmp_path, "SessionStart", source="startup")

    assert "Never use port 8001." in (tmp_path / ".aether" / "data" / "journal.jsonl").read_text()
    assert entries(tmp_path) == []


@pytest.mark.parametrize("more", ['"n": ' + "9" * 5_000, '"n": -' + "9" * 5_000, '"cwd": "a\\u0000b"'])
def test_a_very_long_number_and_an_invalid_directory_lose_no_event(project, monkeypatch, more):
    monkeypatch.chdir(project)
    said = f'{{"hook_event_name": "TaskCompleted", "cwd": {json.dumps(str(project))}, "task_subject": "All", {more}}}'

    assert hook.main([], said.encode()) == (0, "")
    assert [entry["subject"] for entry in entries(project)] == ["All"]


def test_streams_that_were_closed_before_are_no_failure(project, piped, monkeypatch):
    piped({"hook_event_name": "SessionStart", "source": "startup", "cwd": str(project)})
    monkeypatch.setattr(sys, "stdout", None)
    assert hook.serve([]) == 0

    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert hook.serve([]) == 1


def test_code_that_holds_the_interpreter_is_ended_too(project):
    (project / ".aether" / "config.toml").write_text("[claude]\ndeadline_seconds = 0.2\n")
    code = (
        "import re, signal\nfrom aether.hosts import answer, hook\nhook.GRACE_SECONDS = 0.3\n"
        "answer.answer = lambda *a, **k: re.match('(a+)+$', 'a' * 60 + 'b')\nhook.run()"
    )

    found = process(project, {"hook_event_name": "Stop", "cwd": str(project)}, code=code, timeout=60)

    assert found.returncode in (0, 1)
    assert (found.stdout, found.stderr) == (b"", b"")


def test_at_a_terminal_the_usage_is_printed(monkeypatch, capsys):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", terminal)

    assert hook.serve([]) == 1
    assert "aether claude install" in capsys.readouterr().err


@rows("word", ["--help", "-h"])
def test_the_usage_is_no_event(word, project, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))

    assert hook.serve([word]) == 0
    assert "aether claude install" in capsys.readouterr().out
    assert not list(project.rglob("hook.log"))


@pytest.fixture
def piped(monkeypatch):
    """Let standard input hold what it is called with, and nothing go off at a deadline."""

    def hold(payload):
        said = io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode()))
        monkeypatch.setattr(sys, "stdin", said)

    return hold


def test_the_output_is_utf_8(project, piped, monkeypatch, capfdbinary):
    monkeypatch.setattr(answer, "answer", lambda *_, **__: "漢字")
    piped({"hook_event_name": "UserPromptSubmit", "cwd": str(project)})

    assert hook.serve([]) == 0
    assert "漢字".encode() in capfdbinary.readouterr().out


def test_a_closed_output_is_no_failure(project, piped, monkeypatch):
    class Closed:
        buffer = property(lambda self: self)

        def write(self, data):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    piped({"hook_event_name": "Stop", "cwd": str(project)})

    assert hook.serve(["Stop"]) == 0


def test_the_process_ends_with_the_code(project, piped, monkeypatch):
    import gc

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(gc, "disable", lambda: None)
    monkeypatch.setattr(sys, "argv", ["aether-hook", "Stop"])
    piped({"cwd": str(project)})

    with pytest.raises(SystemExit) as left:
        hook.run()
    assert left.value.code == 0
    with pytest.raises(SystemExit):
        hook._time_out(str(project / ".aether"), "Stop", "s")
    assert "not done in time" in logged(project)


@pytest.mark.parametrize("architect", ["", "host", "claude-code"])
def test_the_event_of_a_tool_imports_next_to_nothing(project, architect):
    if architect:
        homes.configure(project / ".aether", f'[architect]\ndefault = "{architect}"\n')
    code = (
        "import sys, json\nfrom aether.hosts import hook\n"
        "assert hook.main([], sys.stdin.buffer.read()) == (0, '')\nprint(' '.join(sys.modules))"
    )
    payload = {
        "hook_event_name": "PostToolUse", "cwd": str(project), "tool_name": "Bash", "tool_input": {"command": "pytest"},
        "tool_response": {"stdout": "3 passed"},
    }  # fmt: skip

    found = set(process(project, payload, code=code).stdout.decode().split())

    heavy = {
        "pathlib", "dataclasses", "tomllib", "click", "jsonschema", "asyncio", "filelock",
        "sqlite3", "subprocess", "tempfile", "datetime", "base64", "aether.api", "aether.memory", "aether.paths",
    }  # fmt: skip
    assert len(entries(project)) == 1
    assert heavy & found == set()


@pytest.mark.parametrize(
    ("event", "more", "heavy"),
    [
        # The stemmer, which leaves no module, and what compares two lines that are alike.
        ("SessionStart", {"source": "startup"}, "stemmer unicodedata aether.messages.records aether.store.merge sqlite3 aether.api.drain aether.search.rank aether.text.similarity"),
        ("UserPromptSubmit", {"prompt": "Why does load_sessions() of `a.py` retry the gateway?"},
         "aether.api.drain aether.store.keys aether.store.archive_store aether.memory.capture.notes aether.memory.capture.passages aether.messages aether.store.merge unicodedata"),
        # Nothing is searched, and compressing starts only in a full memory.
        ("UserPromptSubmit", {"prompt": "Why does load_sessions() of `a.py` retry the gateway?", "architect": "host"},
         "aether.store.keys aether.store.config"),
        ("Stop", {"last_assistant_message": "All 3 tests pass."}, "sqlite3 aether.api.working aether.api.compress aether.search.rank unicodedata"),
    ],
)  # fmt: skip
def test_an_event_that_reads_memory_imports_what_it_needs(project, event, more, heavy):
    home = project / ".aether"
    if architect := more.get("architect"):
        homes.configure(home, f'[architect]\ndefault = "{architect}"\n')
    aether.add_working_memory_item(
        "Never retry `load_sessions()` of the gateway — it waits.", "constraint", home=home
    )
    code = (
        "import sys\nfrom aether.hosts import hook\n"
        "code, said = hook.main([], sys.stdin.buffer.read())\nprint(code, *sys.modules)\n"
        "from aether.text import words\nprint(*['stemmer'] * words._stemmer.cache_info().currsize)"
    )
    payload = {"hook_event_name": event, "session_id": "s", "cwd": str(project), **more}

    code, *found = process(project, payload, code=code).stdout.decode().split()

    others = "dataclasses tomllib click jsonschema asyncio subprocess tempfile threading aether.api.importing _strptime"
    assert (code, logged(project)) == ("0", "")
    # Git is asked at the start of a session and at the end of a turn.
    asking = set() if event == "UserPromptSubmit" else {"subprocess", "threading"}
    assert ({*others.split(), *heavy.split()} - asking) & {*found} == set()


def captured():
    """Every captured payload, by a name."""
    for path in sorted(HOOKS.rglob("*.json*")):
        texts = (
            path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        )
        yield from ((f"{path.stem}-{nth}", json.loads(text)) for nth, text in enumerate(texts))


@pytest.mark.real_data
def test_every_captured_payload_goes_through(project):
    found = list(captured())
    if not found:
        pytest.skip("the captured payloads are not here")
    for name, payload in found:
        code, said = hook.main([], json.dumps({**payload, "cwd": str(project)}).encode())

        event = payload.get("hook_event_name", "")
        assert code == 0, name
        assert claude_code_event.takes_text(event) or said == "", name
        assert not said.startswith("{") or json.loads(said)["hookSpecificOutput"]["hookEventName"] == event, (
            name
        )
    assert logged(project) == ""


TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"


def written(kind, content, uuid):
    return json.dumps({
        "type": kind, "uuid": uuid, "sessionId": "s", "cwd": "/app", "timestamp": "2026-03-01T10:00:00.000Z",
        "isSidechain": False, "message": {"role": kind, "content": content, "id": uuid},
    }) + "\n"  # fmt: skip


def test_entries_of_hooks_are_not_imported_again_with_their_secrets(project, tmp_path):
    home = project / ".aether"
    (home / "config.toml").write_text("[claude]\nprivate_paths = 'secrets/**'\n")
    prompt = f"Never deploy with token {TOKEN} on Fridays. <private>Call me NIGHTJAR.</private>"
    last = f"Decided: we deploy from Monday to Thursday, because Fridays are frozen. Token {TOKEN} noted."
    vault = {"file_path": "/app/secrets/a.txt", "content": "the vault is 4711-OMEGA"}
    transcript = tmp_path / "s.jsonl"
    about = {"transcript_path": str(transcript), "prompt_id": "p"}
    reported(project, "UserPromptSubmit", prompt=prompt, **about)
    reported(project, "PostToolUse", tool_name="Write", tool_input=vault, tool_use_id="t", **about)
    reported(project, "Stop", last_assistant_message=last, **about)
    call = [{"type": "tool_use", "id": "t", "name": "Write", "input": vault}]
    answer = [{"type": "tool_result", "tool_use_id": "t", "content": "File created"}]
    transcript.write_text(
        written("user", prompt, "u1") + written("assistant", call, "a1") + written("user", answer, "u2")
        + written("assistant", [{"type": "text", "text": last}], "a2")
    )  # fmt: skip

    done = aether.import_transcripts([transcript], home=home)

    assert (done.items, done.known) == (0, 2)
    said = (home / "data" / "memory.json").read_text() + (home / "data" / "journal.jsonl").read_text()
    assert "<REDACTED>" in said
    assert not [secret for secret in (TOKEN, "NIGHTJAR", "OMEGA") if secret in said]


# Every event that Claude Code knows, and what we may print for it.
EVENTS = dict.fromkeys(
    "PreToolUse PostToolUse PostToolUseFailure PostToolBatch Notification UserPromptExpansion SessionEnd "
    "Stop StopFailure SubagentStop PreCompact PostCompact PreModelSwitch PostModelSwitch PermissionRequest PermissionDenied Setup "
    "TeammateIdle TaskCreated TaskCompleted Elicitation ElicitationResult ConfigChange WorktreeCreate WorktreeRemove "
    "InstructionsLoaded CwdChanged FileChanged DirectoryAdded MessageDisplay SomethingNew".split(),
    "nothing",
) | {
    "SessionStart": "context",
    "PostToolUse": "context",
    "UserPromptSubmit": "context",
    "SubagentStart": "context",
}


@rows(("event", "shape"), EVENTS.items(), ids=EVENTS)
def test_each_event_prints_only_its_own_form(event, shape):
    said = claude_code_event.output(event, "Use SQLite.")

    if shape == "context":
        inner = {"hookEventName": event, "additionalContext": "Use SQLite."}
        assert json.loads(said) == {"hookSpecificOutput": inner}
    else:
        assert said == ""


@rows("event", ["SessionStart", "UserPromptSubmit"])
@rows("line", ["words of a memory", "🎉" * 60, '"\\\n'])
def test_a_text_that_is_too_long_loses_lines_and_keeps_the_one_that_closes(event, line):
    said = claude_code_event.output(event, "\n".join(["<aether-memory>", *[line] * 4000, "</aether-memory>"]))
    reported = json.loads(said)["hookSpecificOutput"]["additionalContext"]

    assert (
        8_500
        < claude_code_event.length_of(said)
        <= claude_code_event.MOST_CHARS
        < claude_code_event.LIMIT_CHARS
    )
    assert reported.startswith("<aether-memory>")
    assert reported.endswith("</aether-memory>")


@pytest.mark.parametrize("text", ["x" * 9_000, "x" * 9_000 + "\n "])
def test_a_line_that_does_not_fit_is_left_out(text):
    assert claude_code_event.output("SessionStart", text) == ""


def test_characters_are_counted_as_claude_code_counts_them():
    assert claude_code_event.length_of("a漢🎉") == 4


def happened(project, event, session, **more):
    assert reported(project, event, session_id=session, transcript_path=f"/t/{session}.jsonl", **more)[0] == 0


@pytest.mark.parametrize(
    "words", ["add a test for the webhook retries", "webhook retries", "why does the webhook retry"]
)
def test_the_request_that_is_being_answered_is_no_hit(project, words):
    """A search in a turn is part of the answer: what asks for it says nothing new, in whichever words."""
    home = project / ".aether"
    before, now = "Add retries to the webhook, at most five.", "add a test for the webhook retries"
    happened(project, "UserPromptSubmit", "s-one", prompt=before)
    happened(project, "Stop", "s-one", last_assistant_message="Done.")
    happened(project, "UserPromptSubmit", "s-two", prompt=now)
    assert spool.waiting(str(home))

    waiting = [hit["content"] for hit in recall.recall(words, home=home)]
    drained = [hit["content"] for hit in recall.recall(words, home=home)]
    assert (waiting, drained) == ([before], [before])
    assert not spool.waiting(str(home))

    happened(project, "Stop", "s-two", last_assistant_message="OK.")
    assert {hit["content"] for hit in recall.recall(words, home=home)} == {before, now}


def test_a_request_is_found_by_its_id_and_when_its_turn_was_never_ended(project, monkeypatch):
    home = project / ".aether"
    happened(project, "UserPromptSubmit", "s-one", prompt="Add retries to the webhook.")
    (item,) = working.list_working_memory_items(home=home)

    assert recall.recall("webhook", home=home) == []
    assert [hit["id"] for hit in recall.recall(item["id"], home=home)] == [item["id"]]
    monkeypatch.setattr(recall, "now", lambda: clock.now() + timedelta(hours=recall.ASKING_HOURS))
    assert [hit["id"] for hit in recall.recall("webhook", home=home)] == [item["id"]]


def test_what_a_hook_keeps_is_found_by_the_project(project):
    happened(project, "UserPromptSubmit", "s-one", prompt="Never retry the webhook.")
    happened(project, "Stop", "s-one", last_assistant_message="OK.")

    for item in working.list_working_memory_items(project=str(project), home=project / ".aether"):
        assert item["metadata"]["project"] == str(project)
    assert working.list_working_memory_items(project=str(project), home=project / ".aether")
