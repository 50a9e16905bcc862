"""The one place that turns every end of a command into words and an exit code; shell completion."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import aether
from aether import errors
from aether.cli.main import BROKEN_PIPE, INTERRUPTED, cli, leave, main
from aether.errors import AetherError, InvalidInput, StorageFailed
from tests import homes
from tests.cli import stage
from tests.tables import rows

ROOT = Path(__file__).parents[2]


def process(directory, *words, **more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-m", "aether", *words], cwd=directory, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **more,
    )  # fmt: skip


def failing(monkeypatch, reason):
    def raise_it(**options):
        raise reason

    monkeypatch.setattr(cli, "main", raise_it)


def test_the_version_is_one_line(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "aether 0.1.0\n"


def test_no_noun_shows_the_home_what_is_in_force_and_three_commands(here, capsys):
    main(["add", "Tabs, not blanks.", "--type", "preference"])
    capsys.readouterr()

    assert main([]) == 0
    text = capsys.readouterr().out.splitlines()
    assert text[0] == f"Home: {Path('.aether').resolve()}"
    assert any("Tabs, not blanks." in line for line in text)
    assert [line.split()[0] for line in text[-3:]] == ["aether"] * 3

    assert main(["--json"]) == 0
    start = json.loads(capsys.readouterr().out)
    assert {"kind": "rule", "text": "Tabs, not blanks."} in start["in_force"]
    assert len(start["next"]) == 3


def test_no_noun_without_a_home_says_how_to_make_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main([]) == 0
    assert "aether init" in capsys.readouterr().out

    assert main(["init", "--quiet"]) == 0
    capsys.readouterr()
    assert main([]) == 0
    assert "aether install" in capsys.readouterr().out


def test_an_unknown_verb_says_where_help_is(capsys):
    assert main(["memory", "mislay"]) == 2
    reported = capsys.readouterr().err
    assert reported.startswith("Error: aether memory: No such command 'mislay'.")
    assert reported.endswith(" See aether memory --help.\n")


def test_an_unknown_noun_is_a_usage_error(capsys):
    assert main(["bogus"]) == 2
    assert capsys.readouterr().err.startswith("Error: aether: No such command 'bogus'.")


def every_error(kind=AetherError):
    yield kind
    for below in kind.__subclasses__():
        yield from every_error(below)


@rows("kind", [kind for kind in every_error() if kind.__module__ == errors.__name__])
def test_every_error_is_one_line_with_its_own_exit_code(monkeypatch, capsys, kind):
    failing(monkeypatch, kind("what it is.", fix="What to do.", where="where"))

    assert main(["log"]) == kind.exit_code
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "Error: where: what it is. What to do.\n")


def test_with_json_an_error_is_an_object_on_stdout_and_a_line_on_stderr(monkeypatch, capsys):
    failing(monkeypatch, InvalidInput("what.", fix="Fix."))

    assert main(["log", "--json"]) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "error": {"code": "InvalidInput", "where": "", "what": "what.", "fix": "Fix.", "exit_code": 2}
    }
    assert shown.err == "Error: what. Fix.\n"


def test_an_error_of_the_system_is_reported_like_ours(monkeypatch, capsys):
    failing(monkeypatch, OSError(36, "File name too long", "x" * 300))

    assert main(["log"]) == StorageFailed.exit_code
    assert "File name too long" in capsys.readouterr().err


def test_a_bug_is_not_hidden(monkeypatch):
    failing(monkeypatch, ZeroDivisionError())

    with pytest.raises(ZeroDivisionError):
        main(["log"])


def test_ctrl_c_is_reported_and_has_the_code_that_shells_expect(monkeypatch, capsys):
    failing(monkeypatch, KeyboardInterrupt())

    assert main(["log"]) == INTERRUPTED
    assert capsys.readouterr().err == "Interrupted. What was acknowledged is stored.\n"


def test_a_fold_that_fails_does_not_deny_what_is_stored(here, monkeypatch, capsys):
    def full(*arguments, **options):
        raise StorageFailed("the disk is full.", fix="Free some space.")

    monkeypatch.setattr("aether.store.commit.fold_home", full)

    assert main(["add", "A note"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("wm_")
    assert "stored in the journal, but not folded" in shown.err


def test_a_command_leaves_the_documents_folded(here, tmp_path):
    assert main(["add", "A note"]) == 0

    memory = json.loads((tmp_path / ".aether/data/memory.json").read_text(encoding="utf-8"))
    assert memory["working_memory"]["items"][-1]["content"] == "A note"


@pytest.mark.parametrize(
    ("module", "command"), [("memory", ["memory", "search", "note"]), ("recall", ["recall", "note"])]
)
def test_a_search_does_not_wait_for_a_fold_of_what_it_read_until_the_journal_is_long(
    module, command, here, tmp_path, monkeypatch, capsys
):
    file = tmp_path / ".aether/data/memory.json"
    main(["add", "A note"])
    before = file.read_bytes()

    assert main(command) == 0
    assert file.read_bytes() == before

    monkeypatch.setattr(f"aether.cli.{module}.UNFOLDED_BYTES", 100)
    assert main(command) == 0
    memory = json.loads(file.read_text(encoding="utf-8"))
    assert memory["working_memory"]["items"][-1]["metadata"]["access_count"] == 2


def test_aether_home_names_the_home(here, tmp_path, monkeypatch, capsys):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("AETHER_HOME", str(tmp_path))
    capsys.readouterr()

    assert main(["status", "--layers", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["home"] == str(tmp_path / ".aether")


def test_a_reader_that_goes_away_is_no_error(here, tmp_path):
    for words in (["memory", "show"], ["--help"], ["log", "--json"]):
        running = process(tmp_path, *words)
        running.stdout.close()
        reported = running.stderr.read()
        running.stderr.close()

        assert (running.wait(), reported) == (BROKEN_PIPE, b"")


def test_a_process_that_is_interrupted_exits_130_without_a_traceback(here, tmp_path):
    waiting = "import time; print(flush=True); time.sleep(60)"
    (tmp_path / "slow.py").write_text(
        f"import pathlib; pathlib.Path('begun').touch()\n{waiting}", encoding="utf-8"
    )
    running = process(
        tmp_path, "compress", "--phase", "1", "--architect", f"command:{sys.executable} slow.py",
        start_new_session=True, preexec_fn=homes.heed_interrupts,
    )  # fmt: skip
    while not (tmp_path / "begun").exists():
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.02)

    running.send_signal(signal.SIGINT)

    out, reported = running.communicate(timeout=120)
    assert (running.returncode, out) == (INTERRUPTED, b"")
    assert b"Interrupted." in reported
    assert b"Traceback" not in reported


@pytest.mark.parametrize("env", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}, {"NO_COLOR": "1"}])
def test_the_encoding_of_the_terminal_never_stops_a_command(here, tmp_path, env):
    for words in (
        ["add", "日本 → ü"],
        ["memory", "show"],
        ["memory", "show", "--json"],
        ["status", "--layers"],
    ):
        out, reported = process(tmp_path, *words, env=env).communicate(timeout=120)

        assert reported == b""
        assert b"\x1b" not in out


def test_exit_codes_reach_the_shell(here, tmp_path):
    for words, code in ((["memory", "show", "nothing"], 3), (["log", "--limit", "x"], 2), (["doctor"], 0)):
        running = process(tmp_path, *words)
        running.communicate(timeout=120)

        assert running.returncode == code


def test_a_fresh_process_that_adds_an_item_imports_nothing_it_can_do_without(here, tmp_path):
    """Start-up is what a hook pays on every call; the milliseconds are measured in the benchmarks."""
    code = "import sys; from aether.cli.main import main; main(['add', 'x']); print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**homes.plain_environment(), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    needless = {"dataclasses", "tempfile", "random", "orjson", "jsonschema", "filelock", "sqlite3", "tiktoken", "anthropic",
                "aether.api.compress", "aether.memory.ingest", "aether.text.similarity", "aether.tokens.exact"}  # fmt: skip
    assert needless & set(ran.stdout.split()) == set()


def test_the_tree_is_what_the_stage_walks():
    assert len(stage.NAMES) > 35


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_the_command_and_its_variable(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "_AETHER_COMPLETE" in capsys.readouterr().out


def test_words_are_completed(monkeypatch, capsys):
    monkeypatch.setenv("_AETHER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "aether memory se")
    monkeypatch.setenv("COMP_CWORD", "2")

    assert main([]) == 0

    assert "plain,search" in capsys.readouterr().out


@rows(
    ("line", "completed"),
    [
        ("aether add x --type deci", ["decision"]),
        ("aether recall x --caste buil", ["builder"]),
        ("aether compress --architect extr", ["extractive"]),
        ("aether compact run a.json --backend oll", ["ollama"]),
        ("aether show phero", ["pheromones"]),
        ("aether memory show wm_", ["ITEM", "OTHER"]),
        ("aether memory show wm_ --home nowhere", []),
    ],
)
def test_values_are_completed(here, monkeypatch, capsys, line, completed):
    words = line.split()
    if "nowhere" in line:
        words = ["aether", "--home", "nowhere", *words[1:-2]]
    monkeypatch.setenv("_AETHER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    capsys.readouterr()

    assert main([]) == 0

    values = [entry.removeprefix("plain,") for entry in capsys.readouterr().out.split()]
    assert values == sorted(here.get(value, value) for value in completed)


def test_names_of_what_a_home_keeps_are_completed(here, monkeypatch, capsys):
    goal = aether.add_goal("Ship it")["id"]
    snapshot = aether.create_snapshot("before")["snapshot_id"]
    said = [{"role": ("user", "assistant")[nth % 2], "content": f"Note {nth}. " * 60} for nth in range(60)]
    aether.compact("talk-one", said, window=8000)
    aether.archive_conversations(
        [{"id": "old-one", "created_at": "2026-01-01T10:00:00Z", "messages": said[:2]}]
    )
    lines = {
        "aether goal done goal": goal,
        "aether snapshot --restore s": snapshot,
        "aether context status ta": "talk-one",
        "aether archive restore o": "old-one",
        "aether signal FOC": "FOCUS",
    }
    monkeypatch.setenv("_AETHER_COMPLETE", "bash_complete")
    for line, completed in lines.items():
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
        capsys.readouterr()

        main([])

        assert capsys.readouterr().out == f"plain,{completed}\n", line


def ended(directory, code):
    """Return the exit code and the output of a process that runs `code` and then the command line."""
    whole = f"import sys\nsys.argv = ['aether', '--version']\n{code}\nfrom aether.cli.main import run\nrun()"
    # A process whose coverage is measured has work at its end.
    given = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment = {**given, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", whole], cwd=directory, env=environment, capture_output=True, check=False
    )
    return done.returncode, done.stdout.decode()


def test_a_process_with_nothing_left_to_do_ends_at_once(tmp_path):
    code, printed = ended(tmp_path, "import atexit; atexit.register(print, 'freed')")

    assert code == 0
    assert printed.startswith("aether ")
    assert "freed" not in printed


def test_a_process_with_work_at_its_end_does_it(tmp_path):
    threads = (
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.3), print('sent'))).start()"
    )
    for work in (threads, "import atexit, tempfile; atexit.register(print, 'sent')"):
        code, printed = ended(tmp_path, work)

        assert code == 0
        assert "aether " in printed
        assert "sent" in printed, work


def test_an_output_that_cannot_be_written_at_the_end_is_reported(tmp_path, monkeypatch):
    class Full:
        def flush(self):
            raise OSError(28, "No space left on device")

    left = []
    monkeypatch.setattr(os, "_exit", left.append)
    monkeypatch.setattr(sys, "stdout", Full())
    monkeypatch.setattr("aether.cli.main.WORK_AT_EXIT", frozenset())
    with pytest.raises(SystemExit) as ending:
        leave(3, at_once=True)
    assert ending.value.code == 3
    assert left == []


# Sends SIGINT to the process itself at its nth import of a module, or by a thread at a moment by chance after the third;
# then runs an entry.
INTERRUPTED_AT = """
import os, random, runpy, signal, sys, threading, time
entry, when, *sys.argv[1:] = sys.argv[1:]
imports = 0
def at(event, arguments):
    global imports
    if event == "import":
        imports += 1
        if str(imports) == when:
            os.kill(os.getpid(), signal.SIGINT)
def by_chance():
    while imports < 3:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.1))
    os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
module, _, function = entry.partition(":")
package = __import__("aether")
runpy  # all that the interpreter itself would have imported
if not when.isdigit():
    threading.Thread(target=by_chance, daemon=True).start()
sys.addaudithook(at)
if function:
    import importlib
    sys.argv[0] = "aether"
    getattr(importlib.import_module(module), function)()
else:
    runpy.run_module(module, run_name="__main__")
"""
ENTRIES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]


def interrupted(directory, entry, when):
    event = {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup", "cwd": str(directory)}
    # Code that measures coverage would be interrupted as well, and swallow it.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    left = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, entry, when, *(["--help"] if "hook" not in entry else [])],
        cwd=directory, env={**plain, "PYTHONPATH": str(ROOT)}, input=json.dumps(event).encode(),
        capture_output=True, check=False,
    )  # fmt: skip
    said = left.stderr.decode()
    assert left.returncode in (0, INTERRUPTED), said
    assert said.strip() in ("", "Interrupted. What was acknowledged is stored.")
    return left.returncode


@pytest.mark.parametrize("entry", ["aether", *ENTRIES.values()])
def test_ctrl_c_at_any_early_import_ends_a_command_silently(tmp_path, entry):
    assert {interrupted(tmp_path, entry, str(nth)) for nth in (3, 30)} == {INTERRUPTED}


@pytest.mark.slow
@pytest.mark.parametrize("entry", ["aether", *ENTRIES.values()])
def test_ctrl_c_at_any_moment_ends_a_command_silently(tmp_path, entry):
    for nth in range(1, 160, 5):
        interrupted(tmp_path, entry, str(nth))
    for _ in range(40):
        interrupted(tmp_path, entry, "chance")
