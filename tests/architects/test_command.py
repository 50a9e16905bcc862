import json
import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from aether.architects import command
from aether.architects.base import Settings
from aether.architects.request import session_request
from aether.errors import BackendFailed, BackendUnavailable, InvalidInput
from tests.architects import fakes

REQUEST = session_request(fakes.handoff(fakes.item(1, "We chose lines over whole files. \ud800 日本")))
posix = pytest.mark.skipif(os.name == "nt", reason="process groups and signals are POSIX")
# Long enough for a busy machine to start Python, short enough to wait for.
START_SECONDS = 20.0


def complete(code, request=REQUEST, **settings):
    return command.complete(
        request,
        settings=Settings(**({"command": fakes.python(code), "timeout_seconds": START_SECONDS} | settings)),
        count=fakes.quarter,
    )


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = ""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as status:
            state = status.read().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def removed(pid):
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_the_program_reads_the_hand_off_and_its_output_is_the_answer():
    completion = complete("import sys; print(sys.stdin.read())")

    assert json.loads(completion.text) == REQUEST.data
    assert completion.backend == "command"


def test_a_large_hand_off_passes_whole():
    large = session_request(fakes.handoff(fakes.item(1, "x" * 3_000_000)))

    completion = complete("import sys; print(len(sys.stdin.read()))", large)

    assert int(completion.text) == len(json.dumps(large.data))


def test_a_program_need_not_read_its_input():
    large = session_request(fakes.handoff(fakes.item(1, "x" * 3_000_000)))

    assert complete("print('{}')", large).text.strip() == "{}"


def test_a_byte_order_mark_is_no_part_of_the_answer():
    assert complete("import sys; sys.stdout.buffer.write(b'\\xef\\xbb\\xbf{}')").text == "{}"


def test_a_failing_program_is_reported_with_its_code_and_last_words():
    with pytest.raises(BackendFailed, match=r"(?s)ended with exit code 3\. Its last words: .*the end"):
        complete("import sys; print('{}'); sys.stderr.write('x' * 9000 + 'the end'); sys.exit(3)")


def test_only_the_tail_of_stderr_is_shown():
    with pytest.raises(BackendFailed) as caught:
        complete("import sys; sys.stderr.write('x' * 9000); sys.exit(1)")

    assert len(str(caught.value)) < command.STDERR_TAIL_BYTES + 500


@posix
def test_a_program_that_a_signal_ended_is_reported_by_its_name():
    with pytest.raises(BackendFailed, match="ended with signal SIGTERM"):
        complete("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")


@pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="needs signals without a name")
def test_an_unknown_signal_is_reported_by_its_number():
    with pytest.raises(BackendFailed, match=r"ended with signal 40\."):
        complete("import os; os.kill(os.getpid(), 40)")


@pytest.mark.parametrize("code", ["pass", "print('  ')"])
def test_a_program_that_says_nothing_is_a_failure(code):
    with pytest.raises(BackendFailed, match="wrote nothing to stdout"):
        complete(code)


def test_output_that_is_no_text_is_a_failure():
    with pytest.raises(BackendFailed, match="not UTF-8"):
        complete("import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\xff')")


def test_a_program_that_never_stops_writing_is_stopped(monkeypatch):
    monkeypatch.setattr(command, "MAX_OUTPUT_BYTES", 200_000)

    with pytest.raises(BackendFailed, match="wrote more than 200000 bytes"):
        complete("while True: print('x' * 1000)")


@posix
def test_a_program_that_hangs_is_stopped_with_its_children(tmp_path):
    pids = tmp_path / "pids"
    code = (
        "import subprocess, sys, os, time;"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        f"open({str(pids) + '.new'!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}');"
        f"os.replace({str(pids) + '.new'!r}, {str(pids)!r});"
        "time.sleep(60)"
    )
    released = threading.Event()
    real_wait = command._wait

    def wait_until_started(process, threads, flooded, _seconds, heard):
        deadline = time.monotonic() + START_SECONDS
        while not pids.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        released.set()
        return real_wait(process, threads, flooded, 0.05, heard)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "_wait", wait_until_started)
        with pytest.raises(BackendFailed, match="was stopped"):
            complete(code)

    assert released.is_set()
    assert all(removed(int(pid)) for pid in pids.read_text().split())


@posix
def test_a_program_that_ignores_being_asked_is_made_to_end(monkeypatch):
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.1)
    started = []
    real_start = command._start
    monkeypatch.setattr(command, "_start", lambda *given: started.append(real_start(*given)) or started[0])

    with pytest.raises(BackendFailed, match="did not end within"):
        complete(
            "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
            timeout_seconds=1.0,
        )

    assert started[0].returncode in {-signal.SIGKILL, -signal.SIGTERM}


@posix
def test_an_interrupt_leaves_nothing_running(monkeypatch):
    started = []
    real_start = command._start
    monkeypatch.setattr(command, "_start", lambda *given: started.append(real_start(*given)) or started[0])

    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        complete("import time; time.sleep(60)")

    assert started[0].returncode is not None


@posix
def test_a_helper_that_keeps_the_pipes_does_not_hold_the_answer_back(monkeypatch):
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.2)
    code = (
        "import subprocess, sys; print('{}', flush=True);"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    )

    assert complete(code).text.strip() == "{}"


def test_a_program_that_is_not_there_is_unavailable():
    with pytest.raises(BackendUnavailable, match="there is no program 'no-such-program-here'"):
        complete("", command="no-such-program-here --flag")


@posix
def test_a_program_that_cannot_be_run_is_unavailable(tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)

    with pytest.raises(BackendUnavailable, match="cannot be run"):
        complete("", command=str(broken))


@pytest.mark.parametrize(("line", "words"), [("", "no command"), ("jq 'x", "cannot be read")])
def test_a_command_that_makes_no_sense_is_refused(line, words):
    with pytest.raises(InvalidInput, match=words):
        complete("", command=line)


@posix
def test_arguments_with_blanks_stay_together():
    assert command._words("prog 'a b' c") == ["prog", "a b", "c"]


def test_on_windows_backslashes_stay_and_quotes_go(monkeypatch):
    monkeypatch.setattr(command, "_WINDOWS", True)

    assert command._words(r'C:\tools\prog.exe "a b"') == [r"C:\tools\prog.exe", "a b"]


@pytest.mark.parametrize(("ended", "calls"), [(None, 1), (0, 0)])
def test_on_windows_the_whole_tree_of_a_running_program_is_ended(monkeypatch, ended, calls):
    ran = []
    monkeypatch.setattr(command, "_WINDOWS", True)
    monkeypatch.setattr(command.subprocess, "run", lambda words, **_more: ran.append(words))

    command._signal_group(SimpleNamespace(pid=77, poll=lambda: ended), hard=True)

    assert ran == [["taskkill", "/F", "/T", "/PID", "77"]] * calls
