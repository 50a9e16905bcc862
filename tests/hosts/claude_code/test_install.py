"""Installing in Claude Code: hooks and MCP server in settings files, out again to the byte, and the plugin."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from aether import __version__
from aether.cli.main import cli
from aether.errors import Conflict, InvalidDocument, InvalidInput
from aether.hosts import handlers as settings_handlers
from aether.hosts import hook, installing, programs
from aether.hosts.claude_code import install
from aether.hosts.claude_code.install import (
    EVENTS,
    TOOLS,
    is_own_server,
    merge_server,
    own_groups,
    plugin_directory,
    shared_groups,
    unmerge_server,
)
from aether.hosts.handlers import is_own_handler, merge, parse_settings, program_of, unmerge
from aether.hosts.programs import is_on_path, path_advice
from aether.memory.capture.tool_work import close_stretch, new_work, record_call, record_result
from aether.messages.records import Record
from aether.store import config
from tests import homes
from tests.hosts.claude_code import installs
from tests.tables import rows

SETTINGS = b'{\r\n\t"model": "opus",\r\n\t"hooks": {}\r\n}'
needs_posix = pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")


@pytest.fixture(autouse=True)
def _user(monkeypatch, tmp_path):
    """Give the test a user's own directory and an environment with the hook's program."""
    (tmp_path / "config").mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(install, "own_program", lambda: ["/venv/bin/aether-hook"])
    monkeypatch.setattr(install, "can_serve", lambda: False)


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "project"
    (path / ".git").mkdir(parents=True)
    return path


def settings(project, data=None):
    path = project / ".claude" / "settings.json"
    if data is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return path


def everything(directory):
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


@pytest.mark.parametrize(
    "data", [None, b"", b" \n", b"{}", b"{ }\n", SETTINGS, b"\xef\xbb\xbf{}", b'{"hooks":{"Stop":[]}}\n']
)
@pytest.mark.parametrize("scope", install.SCOPES)
def test_removing_gives_the_bytes_from_before(project, tmp_path, scope, data):
    if data is not None:
        path = install.settings_path(scope, project=project)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    before = everything(tmp_path)

    installs.install(scope, project=project)
    assert everything(tmp_path) != before
    installs.uninstall(scope, project=project)

    assert everything(tmp_path) == before


def test_installing_keeps_what_it_was_and_the_second_time_changes_nothing(project):
    path = settings(project, SETTINGS)

    (first,) = installs.install(project=project)
    installed = everything(project)
    (second,) = installs.install(project=project)

    assert (first.change, second.change, second.backup, second.diff) == ("changed", "unchanged", "", "")
    assert Path(first.backup).read_bytes() == SETTINGS
    assert list(path.parent.iterdir()) == [path]
    assert everything(project) == installed
    assert b"\r\n\t\t" in path.read_bytes()


def test_a_mark_of_byte_order_stays(project):
    path = settings(project, b"\xef\xbb\xbf{}")

    installs.install(project=project)

    assert path.read_bytes().startswith(b"\xef\xbb\xbf{")


def test_a_dry_run_shows_the_change_and_makes_none(project):
    settings(project, SETTINGS)
    before = everything(project)

    (put_in,) = installs.install(project=project, dry_run=True)
    assert everything(project) == before
    installs.install(project=project)
    (taken_out,) = installs.uninstall(project=project, dry_run=True)

    assert '+\t\t"Stop": [' in put_in.diff.replace("\r", "")
    assert (put_in.change, taken_out.change) == ("changed", "changed")
    assert "-" in taken_out.diff


def test_removing_without_an_installation_changes_nothing(project):
    assert installs.uninstall(project=project)[0].change == "unchanged"
    settings(project, b'{"hooks": {"Stop": []}}')
    assert installs.uninstall(project=project)[0].change == "unchanged"


def test_later_edits_stay_when_ours_is_removed(project):
    path = settings(project, SETTINGS)
    installs.install(project=project)
    path.write_bytes(path.read_bytes().replace(b'"opus"', b'"sonnet"'))

    (done,) = installs.uninstall(project=project)

    assert path.read_bytes() == SETTINGS.replace(b'"opus"', b'"sonnet"')
    assert done.backup


def test_a_file_that_we_made_and_others_use_now_stays(project):
    installs.install(project=project)
    path = settings(project)
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": "opus"}))

    installs.uninstall(project=project)

    assert json.loads(path.read_text()) == {"model": "opus"}


def test_a_file_that_holds_only_ours_goes_even_if_it_was_rewritten(project):
    installs.install(project=project)
    path = settings(project)
    path.write_text(json.dumps(json.loads(path.read_text())))

    (done,) = installs.uninstall(project=project)

    assert done.change == "removed"
    assert not path.parent.exists()


def test_after_an_upgrade_removing_still_gives_the_bytes_from_before(project, monkeypatch):
    path = install.settings_path("local", project=project)
    path.parent.mkdir()
    path.write_bytes(SETTINGS)
    installs.install("local", project=project)
    monkeypatch.setattr(install, "own_program", lambda: ["/new/aether-hook"])

    (done,) = installs.install("local", project=project)
    upgraded = path.read_text()
    installs.uninstall("local", project=project)

    assert done.change == "changed"
    assert "/new/aether-hook" in upgraded
    assert "/venv/bin" not in upgraded
    assert path.read_bytes() == SETTINGS


def test_a_backup_is_its_owners_alone_and_that_of_another_project_is_not_used(project, tmp_path):
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    settings(other, b'{"hooks": {}, "model": "haiku"}')
    path = settings(project, SETTINGS)
    backups = [Path(installs.install(project=at)[0].backup) for at in (project, other)]

    installs.uninstall(project=project)

    assert path.read_bytes() == SETTINGS
    assert [backup.exists() for backup in backups] == [False, True]
    if os.name != "nt":
        assert backups[1].stat().st_mode & 0o777 == 0o600
        assert backups[1].parent.stat().st_mode & 0o777 == 0o700


@needs_posix
def test_a_dangling_link_is_one_again_when_ours_is_removed(project, tmp_path):
    path = settings(project)
    path.parent.mkdir()
    path.symlink_to(tmp_path / "dotfiles.json")

    installs.install(project=project)
    assert b"aether-hook" in (tmp_path / "dotfiles.json").read_bytes()
    installs.uninstall(project=project)

    assert path.is_symlink()
    assert not path.exists()


def test_a_backup_that_is_broken_is_passed_over(project, tmp_path):
    path = settings(project, SETTINGS)
    installs.install(project=project)
    (backup,) = (tmp_path / "config" / "aether-backups").iterdir()
    backup.with_name(f"{backup.name}Z").write_bytes(b"\xff")

    installs.uninstall(project=project)

    assert path.read_bytes() == SETTINGS


@needs_posix
def test_a_link_stays_one_and_the_mode_stays(project, tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_bytes(SETTINGS)
    real.chmod(0o640)
    path = settings(project)
    path.parent.mkdir()
    path.symlink_to(real)

    installs.install(project=project)

    assert path.is_symlink()
    assert b"aether-hook" in real.read_bytes()
    assert real.stat().st_mode & 0o777 == 0o640
    installs.uninstall(project=project)
    assert (path.is_symlink(), real.read_bytes()) == (True, SETTINGS)


@needs_posix
def test_settings_of_one_person_are_theirs_alone(project):
    for scope, mode in (("project", 0o644), ("local", 0o600), ("user", 0o600)):
        (done,) = installs.install(scope, project=project)
        assert Path(done.path).stat().st_mode & 0o777 == mode


def test_the_lines_of_a_project_are_for_others_too_and_ones_own_are_not(project):
    for scope, guarded in (("project", True), ("local", False), ("user", False)):
        (done,) = installs.install(scope, project=project)
        handler = json.loads(Path(done.path).read_text())["hooks"]["Stop"][0]["hooks"][0]
        assert ("args" not in handler) == guarded


@pytest.mark.parametrize("data", [b"// mine\n{}", b"[]", b'{"hooks": 3}', b"\xff\xfe{}"])
@pytest.mark.parametrize("do", [installs.install, installs.uninstall])
def test_settings_that_cannot_be_read_are_left_and_named(project, data, do):
    path = settings(project, data)
    if do is installs.uninstall and data == b"[]":
        do = installs.install

    with pytest.raises(InvalidDocument) as refused:
        do(project=project)

    assert refused.value.where == str(path)
    assert everything(path.parent) == {"settings.json": data}


def test_a_file_that_somebody_else_changes_meanwhile_is_left_to_them(project, monkeypatch):
    path = settings(project, SETTINGS)
    merged = settings_handlers.merge

    def and_meanwhile(*arguments, **options):
        path.write_bytes(b'{"model": "haiku"}')
        return merged(*arguments, **options)

    monkeypatch.setattr(settings_handlers, "merge", and_meanwhile)

    with pytest.raises(Conflict):
        installs.install(project=project)

    assert everything(path.parent) == {"settings.json": b'{"model": "haiku"}'}


def test_the_server_comes_with_a_project_where_its_package_is(project, monkeypatch):
    monkeypatch.setattr(install, "can_serve", lambda: True)

    done = installs.install(project=project)

    assert [Path(one.path).name for one in done] == ["settings.json", ".mcp.json"]
    server = json.loads((project / ".mcp.json").read_text())["mcpServers"]["aether"]
    assert server["args"][-1] == "mcp"
    monkeypatch.setattr(install, "can_serve", lambda: False)
    installs.uninstall(project=project)
    assert not (project / ".mcp.json").exists()


@pytest.mark.parametrize("scope", ["project", "local", "user"])
def test_no_server_is_put_into_a_file_where_its_package_is_missing(project, tmp_path, scope):
    own = project / ".mcp.json" if scope == "project" else tmp_path / "config" / ".claude.json"
    own.write_bytes(b'{\r\n"numStartups": 3}')

    installs.install(scope, project=project)

    assert own.read_bytes() == b'{\r\n"numStartups": 3}'
    assert install.installed_servers(project) == []


OWN_FILES = [
    None,
    b"{}",
    b'{"numStartups": 3}\n',
    b'{\r\n\t"numStartups": 3,\r\n\t"mcpServers": {}\r\n}',
    b'{\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  },\n  "a": "\xe6\xbc\xa2"\n}',
    b'{"projects": {"/elsewhere": {"mcpServers": {"aether": {"command": "aether", "args": ["mcp"]}}}}}',
    b'{"projects": {"@": {"allowedTools": []}}}',
    b'{"projects": {"@": {"mcpServers": {}}}, "z": [1, 2]}',
]


@pytest.mark.parametrize("scope", ["local", "user"])
@pytest.mark.parametrize("data", OWN_FILES)
def test_the_server_of_one_person_is_in_their_own_file_and_out_again_to_the_byte(
    project, tmp_path, monkeypatch, scope, data
):
    monkeypatch.setattr(install, "can_serve", lambda: True)
    path = tmp_path / "config" / ".claude.json"
    if data is not None:
        data = data.replace(b"@", json.dumps(str(project))[1:-1].encode())
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)

    installs.install(scope, project=project)
    value = json.loads(path.read_bytes())
    place = value["projects"][str(project)] if scope == "local" else value
    assert place["mcpServers"]["aether"] == install.own_server()
    assert scope in install.installed_servers(project)
    assert [one.change for one in installs.install(scope, project=project)] == ["unchanged"] * 2
    installs.uninstall(scope, project=project)

    assert (path.read_bytes() if path.exists() else None) == data


@pytest.mark.parametrize("scope", ["local", "user"])
def test_what_claude_code_wrote_meanwhile_stays(project, tmp_path, monkeypatch, scope):
    monkeypatch.setattr(install, "can_serve", lambda: True)
    path = tmp_path / "config" / ".claude.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"numStartups": 3, "projects": {}}')
    installs.install(scope, project=project)
    value = {**json.loads(path.read_text()), "numStartups": 4}
    path.write_text(json.dumps(value, indent=2))

    installs.uninstall(scope, project=project)

    assert json.loads(path.read_text()) == {"numStartups": 4, "projects": {}}


@pytest.mark.parametrize("text", ['{"projects": 3}', '{"mcpServers": []}', "{"])
def test_a_file_of_claude_code_that_cannot_be_read_is_left(project, tmp_path, monkeypatch, text):
    monkeypatch.setattr(install, "can_serve", lambda: True)
    path = tmp_path / "config" / ".claude.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    scope = "local" if "projects" in text else "user"

    with pytest.raises(InvalidDocument):
        installs.install(scope, project=project)

    assert path.read_text() == text
    assert not settings(project).exists()
    assert install.installed_servers(project) == []


@pytest.mark.parametrize("on_path", [True, False])
def test_ones_own_server_has_a_bare_name_where_that_is_ours_in_every_shell(monkeypatch, on_path):
    monkeypatch.setattr(install, "is_on_path", lambda _: on_path)
    monkeypatch.setattr(install, "own_script", lambda name: f"/venv/{name}")

    assert install.own_server() == {
        "command": "aether" if on_path else os.path.abspath("/venv/aether"),
        "args": ["mcp"],
    }


@pytest.mark.parametrize("advice", ["", "not on PATH"])
def test_the_scope_is_the_one_that_works_on_this_machine(monkeypatch, advice):
    monkeypatch.setattr(programs, "path_advice", lambda: advice)

    assert installing.default_scope() == ("user" if advice else "project")
    assert installing.default_scope("local") == ("local" if advice else "project")


def test_shared_files_name_nothing_of_this_machine(project, monkeypatch):
    monkeypatch.setattr(install, "can_serve", lambda: True)
    monkeypatch.setattr(install, "own_script", lambda name: f"/venv/{name}")

    hooks, server = (Path(one.path).read_text() for one in installs.install("project", project=project))

    assert "venv" not in hooks + server
    assert json.loads(server) == {"mcpServers": {"aether": {"command": "aether", "args": ["mcp"]}}}


def test_a_server_elsewhere_on_path_is_named_by_its_place(monkeypatch, tmp_path):
    monkeypatch.setattr(install.shutil, "which", lambda _: str(tmp_path / "aether"))
    monkeypatch.setattr(install, "own_script", lambda _: "")
    monkeypatch.setattr(programs, "own_script", lambda _: "")

    assert install.own_server()["command"] == str(tmp_path / "aether")


def test_without_scripts_the_server_is_started_by_its_module(monkeypatch):
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setattr(install, "own_script", lambda name: "")

    assert install.own_server() == {
        "command": sys.executable,
        "args": ["-P", "-m", "aether", "mcp"],
    }


def test_the_users_own_directory_is_no_project(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    (tmp_path / ".claude").mkdir()

    with pytest.raises(InvalidInput, match="of the user"):
        installs.install(project=tmp_path)


def test_the_settings_that_count_are_the_nearest_below_the_top_of_the_checkout(project, tmp_path):
    below = project / "a" / "b"
    below.mkdir(parents=True)
    assert install.project_directory(below) == project
    (project / "a" / ".claude").mkdir()
    assert install.project_directory(below) == project / "a"
    assert install.project_directory(tmp_path) == tmp_path


def test_where_claude_code_keeps_things_can_be_chosen(monkeypatch, tmp_path):
    assert install.server_path("user") == tmp_path / "config" / ".claude.json"
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert install.settings_path("user") == tmp_path / ".claude" / "settings.json"
    assert install.server_path("user") == tmp_path / ".claude.json"


def test_a_home_that_was_made_is_kept_out_of_commits(project, monkeypatch):
    monkeypatch.chdir(project)

    place, made = install.make_home()
    again = install.make_home(place)

    assert (place, made, again) == (project / ".aether", True, (place, False))
    assert (place / ".gitignore").read_text() == "*\n"


PLUGIN = plugin_directory()
WORDS = [
    ["/venv/bin/aether-hook"],
    ["/a b/it's/aether-hook"],
    ["/usr/bin/python3", "-P", "-m", "aether", "hook"],
]


def handlers(groups):
    return {event: group["hooks"][0] for event, group in groups.items()}


# Whether a configuration may switch `claude.file_history` on, in words of a shell: of the home, the project, the user.
READS = (
    '{ d=$PWD; while [ "$d" ] && [ ! -e "$d/.aether" ]; do d=${d%/*}; done; [ "$AETHER_CLAUDE_FILE_HISTORY" ] || '
    'grep -qs "file_history.*true" "${AETHER_HOME:-/dev/null}/config.toml" "$d/.aether/config.toml" '
    '"$CLAUDE_PROJECT_DIR/.aether/config.toml" "${XDG_CONFIG_HOME:-$HOME/.config}/aether/config.toml" '
    '"$HOME/Library/Application Support/aether/config.toml"; }'
)


def test_the_plugins_hooks_are_the_table():
    """A file of a plugin is the same for everybody, so a shell looks whether `claude.file_history` is on: while it is
    off, no program of ours is started for a file that is read."""
    groups = {event: [group] for event, group in shared_groups().items()}
    line = f"command -v {install.PROGRAM} >/dev/null 2>&1 && {READS} && exec {install.PROGRAM} PostToolUse; exit 0"
    handler = {"type": "command", "command": line, "timeout": install.LIGHT_TIMEOUT}
    groups["PostToolUse"].append({"matcher": "^Read$", "hooks": [handler]})
    held = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]

    assert held == groups
    assert {event: groups[:1] for event, groups in held.items()} == {
        event: [group] for event, group in shared_groups().items()
    }


@pytest.mark.skipif(os.name == "nt", reason="a line of a shell")
def test_the_plugin_starts_a_program_for_a_file_that_is_read_only_if_that_is_switched_on(tmp_path):
    held = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]["PostToolUse"]
    (line,) = [group["hooks"][0]["command"] for group in held if re.search(group["matcher"], "Read")]
    programs, deep = tmp_path / "bin", tmp_path / "work" / "src" / "deep"
    for directory in (
        programs,
        deep,
        tmp_path / "work" / ".aether",
        tmp_path / "user" / "aether",
        tmp_path / "h",
    ):
        directory.mkdir(parents=True)
    program = programs / "aether-hook"
    program.write_text("#!/bin/sh\necho started $1\n")
    program.chmod(0o755)

    def started(**more):
        names = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(tmp_path / "user"),
            "HOME": str(tmp_path),
        }
        done = subprocess.run(
            ["sh", "-c", line], cwd=deep, env=names | more, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout.strip()

    assert started() == ""
    assert started(AETHER_CLAUDE_FILE_HISTORY="true") == "started PostToolUse"
    for file, named in (("work/.aether", ""), ("user/aether", ""), ("h", str(tmp_path / "h"))):
        config_file = tmp_path / file / "config.toml"
        for text, wanted in (
            ("[claude]\nfile_history = false\n", ""),
            ("[claude]\nfile_history = true\n", "started PostToolUse"),
        ):
            config_file.write_text(text)
            assert started(**({"AETHER_HOME": named} if named else {})) == wanted, (file, text)
        config_file.unlink()
    assert program_of({"command": line}) == ["aether-hook"]


def test_no_event_of_ours_can_hold_up_a_session_for_long():
    assert max(EVENTS[event].seconds for event in EVENTS.keys() - {"PreCompact", "PostCompact"}) <= 15
    assert max(asked.seconds for asked in EVENTS.values()) <= 30
    assert EVENTS["SessionEnd"].seconds <= 2
    assert "PostToolBatch" not in EVENTS


@rows("event", sorted(EVENTS.keys() - {"SessionEnd"}))
def test_a_process_ends_itself_before_claude_code_ends_it(event):
    kind = hook.EVENTS[event]
    heavy = config.Config().claude_deadline_seconds * kind.patience

    own = heavy if kind.answers else kind.seconds
    assert EVENTS[event].seconds > own
    assert EVENTS[event].seconds >= own + hook.GRACE_SECONDS


@rows("words", WORDS, ids=lambda words: words[0])
def test_a_handler_of_aether_is_recognised_with_its_program(words):
    assert {tuple(program_of(handler)) for handler in handlers(own_groups(words)).values()} == {tuple(words)}


def test_a_line_for_all_is_known_as_ours_and_names_no_place_of_this_machine():
    assert {tuple(program_of(handler)) for handler in handlers(shared_groups()).values()} == {
        ("aether-hook",)
    }
    assert os.sep not in json.dumps(shared_groups()).replace("/dev/null", "").replace("\\\\", "")


def test_a_program_of_windows_is_known():
    assert program_of({"command": r"C:\venv\Scripts\aether-hook.exe", "args": ["Stop"]})


@rows(
    "handler",
    [
        None, "aether-hook Stop", {}, {"command": 3}, {"command": "echo aether-hook"}, {"command": "aether-hook"},
        {"command": "other", "args": ["Stop"]}, {"command": "aether-hook 'open"}, {"command": "aether-hook", "args": [1]},
        {"command": "command -v x >/dev/null 2>&1 && exec x aether-hook Stop; exit 0"},
        {"command": "timeout 5 aether-hook Stop"}, {"command": "aether", "args": ["status", "Stop"]}, {"command": ""},
    ],
)  # fmt: skip
def test_a_foreign_handler_is_not_ours(handler):
    assert not is_own_handler(handler)


def test_a_line_by_hand_that_only_starts_the_program_is_ours():
    assert program_of({"type": "command", "command": "/old/place/aether-hook Stop"}) == [
        "/old/place/aether-hook"
    ]


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_shared_line_is_silent_where_the_program_is_missing():
    line = handlers(shared_groups())["Stop"]["command"]

    done = subprocess.run(line, shell=True, env={"PATH": "/nowhere"}, capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_shared_line_hands_over_event_input_and_exit_code(tmp_path):
    there = tmp_path / "it's here"
    there.mkdir()
    script = there / "aether-hook"
    script.write_text('#!/bin/sh\nread line\necho "$1 $line"\nexit 3\n')
    script.chmod(0o755)
    line = handlers(shared_groups())["Stop"]["command"]

    done = subprocess.run(
        line, shell=True, env={"PATH": str(there)}, input=b"payload\n", capture_output=True, check=False
    )

    assert (done.returncode, done.stdout) == (3, b"Stop payload\n")


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
@rows(
    ("found", "everywhere"),
    [("link", True), ("own", False), ("system", True), ("other", False), ("", False), ("no script", False)],
)
def test_a_program_is_on_path_where_its_bare_name_is_ours_in_every_shell(
    found, everywhere, monkeypatch, tmp_path
):
    own = tmp_path / "own"
    own.touch()
    (tmp_path / "other").touch()
    (tmp_path / "link").symlink_to(own)
    name = "own" if found == "system" else "link" if found == "no script" else found
    monkeypatch.setattr(sys, "prefix", sys.base_prefix if found == "system" else "/venv")
    monkeypatch.setattr(install.shutil, "which", lambda _: str(tmp_path / name) if name else None)
    monkeypatch.setattr(programs, "own_script", lambda _: "" if found == "no script" else str(own))

    assert is_on_path("aether") == everywhere


def test_programs_missing_on_path_are_reported_with_the_fix(monkeypatch):
    there = {"aether", "aether-hook"}
    monkeypatch.setattr(programs, "is_on_path", lambda name: name in there)
    monkeypatch.setattr(programs, "own_script", lambda name: f"/a venv/{name}")
    assert path_advice() == ""

    there.remove("aether-hook")
    assert path_advice().startswith("aether-hook of this environment is not on PATH")
    there.clear()

    assert path_advice().startswith("aether and aether-hook of this environment are not on PATH")
    assert "these do not work in Claude Code: the plugin, " in path_advice()
    assert '"aether recall"' in path_advice()
    if os.name != "nt":
        assert path_advice().endswith("aether claude install --link")


def test_without_a_script_no_link_is_proposed(monkeypatch):
    monkeypatch.setattr(programs, "own_script", lambda name: "")

    assert "--link" not in path_advice()


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_the_programs_are_linked_once_and_nobody_elses_are_replaced(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    scripts, links = tmp_path / "venv", tmp_path / ".local" / "bin"
    scripts.mkdir()
    for name in ("aether", "aether-hook"):
        (scripts / name).write_text(name)
    monkeypatch.setattr(programs, "own_script", lambda name: str(scripts / name))
    monkeypatch.setattr(programs, "is_on_path", lambda name: False)

    def changes(**options):
        return [one.change for one in programs.link_programs(**options)]

    assert changes(dry_run=True) == ["created", "created"]
    assert not links.exists()
    assert changes() == ["created", "created"]
    assert (links / "aether-hook").read_text() == "aether-hook"
    assert changes() == ["unchanged", "unchanged"]
    assert path_advice().endswith(f", or {links}")

    (links / "aether").unlink()
    (links / "aether").symlink_to(tmp_path / "removed" / "aether")
    assert changes() == ["changed", "unchanged"]
    (links / "aether").unlink()
    (links / "aether").write_text("another program")
    (links / "aether-hook").unlink()
    with pytest.raises(Conflict, match="another program"):
        programs.link_programs()
    assert not (links / "aether-hook").exists()
    monkeypatch.setattr(programs, "own_script", lambda name: "")
    with pytest.raises(InvalidInput, match="no programs to link"):
        programs.link_programs()


@rows(
    ("tool", "arguments"),
    [
        ("Bash", {"command": "make test"}), ("PowerShell", {"command": "make test"}), ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}),
        ("Write", {"file_path": "a", "content": "x"}), ("MultiEdit", {"file_path": "a", "edits": [{"new_string": "y"}]}),
        ("NotebookEdit", {"notebook_path": "a", "new_source": "x"}), ("Task", {"prompt": "x"}), ("Agent", {"prompt": "x"}),
        ("ExitPlanMode", {"plan": "Do it."}), ("mcp__tickets__create_ticket", {"title": "x"}), ("SendMessage", {"to": "x"}),
        ("TodoWrite", {"todos": [{"content": "Test it", "status": "pending"}]}), ("TaskCreate", {"subject": "Test it"}),
    ],
)  # fmt: skip
def test_a_tool_that_can_give_a_note_is_asked_for(tool, arguments):
    assert re.search(TOOLS, tool)
    assert noted(tool, arguments)


@rows(
    "tool",
    ["Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "TodoRead", "BashOutput", "KillShell", "ToolSearch", "TaskList"],
)  # fmt: skip
def test_a_tool_that_merely_reads_starts_no_process(tool):
    assert not re.search(TOOLS, tool)
    assert not noted(tool, {"path": "a", "pattern": "x", "query": "y", "url": "z"})


@pytest.mark.parametrize("tool", ["mcp__aether__remember", "mcp__plugin_aether_aether__recall"])
def test_our_own_server_is_no_news(tool):
    assert not re.search(TOOLS, tool)


def noted(tool, arguments):
    work = new_work()
    record = Record(kind="call", tool=tool, arguments=arguments, call_id="1")
    at = {"line": 1, "part": 0, "uuid": "", "time": "", "session": "", "digest": "", "caste": ""}
    record_call(work, record, at)
    return record_result(work, Record(kind="result", call_id="1", text="It worked.")) + close_stretch(work)


def test_the_program_of_this_environment_comes_before_that_of_another(monkeypatch, tmp_path):
    monkeypatch.undo()  # of what stands for the program in the other tests
    monkeypatch.setattr(programs.sysconfig, "get_path", lambda name: str(tmp_path / "own"))
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert programs.own_program() == [sys.executable, "-P", "-m", "aether", "hook"]

    for place in ("other", "own"):
        (tmp_path / place).mkdir()
        script = tmp_path / place / ("aether-hook.exe" if os.name == "nt" else "aether-hook")
        script.touch(mode=0o755)
        assert programs.own_program() == [str(script)]


WANTED = own_groups(["/venv/bin/aether-hook"])
FOREIGN = {"type": "command", "command": "say done"}
TEXT = """{
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]}
        ]
    },
    "model": "opus"
}
"""
SERVER = {"command": "aether", "args": ["mcp"]}


def edited(text, change):
    value = json.loads(text)
    change(value)
    return json.dumps(value, indent=4)


def test_an_object_that_was_empty_before_stays_empty_if_that_is_known():
    before = '{"hooks": {"Stop": []}}'

    assert unmerge(merge(before, WANTED), before) == before
    assert unmerge(merge(before, WANTED)) == ""


def test_an_older_entry_is_updated_in_its_place():
    older = merge(TEXT, own_groups(["/old/aether-hook"]))
    older = older.replace('"timeout": 5', '"timeout": 50')

    text = merge(older, WANTED)

    assert text == merge(TEXT, WANTED)


def test_an_event_that_is_no_longer_asked_for_goes():
    older = merge(TEXT, {**WANTED, "PostToolBatch": WANTED["Stop"]})

    assert merge(older, WANTED) == merge(TEXT, WANTED)


@rows("matcher", [None, "Bash", ""])
def test_a_matcher_of_before_is_corrected(matcher):
    def change(value):
        value["hooks"]["PostToolUse"][0].pop("matcher")
        if matcher is not None:
            value["hooks"]["PostToolUse"][0]["matcher"] = matcher
        value["hooks"]["Stop"][0]["matcher"] = "x"

    text = merge(edited(merge("", WANTED), change), WANTED)

    assert json.loads(text) == json.loads(merge("", WANTED))


def test_a_handler_that_was_moved_among_others_is_renewed_there_and_found_again():
    def change(value):
        groups = value["hooks"]["Stop"]
        groups[0]["hooks"].append(groups.pop()["hooks"][0] | {"timeout": 99})

    moved = edited(merge(TEXT, WANTED), change)

    assert json.loads(merge(moved, WANTED))["hooks"]["Stop"] == [
        {"hooks": [FOREIGN, WANTED["Stop"]["hooks"][0]]}
    ]
    assert json.loads(unmerge(moved)) == json.loads(TEXT)


def test_a_handler_among_others_of_another_matcher_gets_its_own_group():
    def change(value):
        value["hooks"]["PostToolUse"] = [
            {"matcher": "Read", "hooks": [FOREIGN, WANTED["PostToolUse"]["hooks"][0]]}
        ]

    text = merge(edited(merge("", WANTED), change), WANTED)

    assert json.loads(text)["hooks"]["PostToolUse"] == [
        {"matcher": "Read", "hooks": [FOREIGN]}, WANTED["PostToolUse"],
    ]  # fmt: skip


def test_odd_entries_of_others_stay():
    text = '{"hooks": {"Odd": "no list", "Stop": [3, {"hooks": 4}, {"matcher": "x"}]}}'

    assert unmerge(merge(text, WANTED)) == text


@rows(
    ("text", "words"),
    [
        ("// mine\n{}", "not JSON"), ('{"a": 1,}', "not JSON"), ("[]", "not an object"), ('{"hooks": []}', "hooks is"),
        ('{"hooks": null}', "hooks is"), ('{"hooks": {"Stop": {}}}', "hooks.Stop is"),
    ],
)  # fmt: skip
def test_settings_that_claude_code_cannot_read_are_rejected(text, words):
    with pytest.raises(InvalidDocument, match=words) as refused:
        merge(text, WANTED, where="settings.json")

    assert refused.value.where == "settings.json"


def test_our_server_is_renewed_with_what_was_added_to_it():
    text = '{"mcpServers": {"aether": {"command": "/old/aether", "args": ["mcp"], "env": {"A": "1"}}}}'

    assert parse_settings(merge_server(text, SERVER))["mcpServers"]["aether"] == {**SERVER, "env": {"A": "1"}}


def test_a_server_of_that_name_that_is_not_ours_is_its_owners():
    text = '{"mcpServers": {"aether": {"type": "http", "url": "https://example.org"}}}'

    assert merge_server(text, SERVER) == text
    assert unmerge_server(text) == text


def test_our_server_is_removed_under_another_name():
    text = '{"mcpServers": {"mem": {"command": "/x/python", "args": ["-P", "-m", "aether", "mcp"]}}}'

    assert unmerge_server(text) == ""


@rows("server", [None, {}, {"command": 3}, {"command": "aether"}, {"command": "aether", "args": 3}])
def test_foreign_servers_are_not_ours(server):
    assert not is_own_server(server)


def test_additions_of_a_person_to_a_handler_stay():
    value = json.loads(merge("", WANTED))
    mine = value["hooks"]["Stop"][0]["hooks"][0]
    mine |= {"command": "/old/aether-hook", "timeout": 99, "statusMessage": "Remembering", "async": True}

    (done,) = json.loads(merge(json.dumps(value), WANTED))["hooks"]["Stop"][0]["hooks"]

    assert done == {**WANTED["Stop"]["hooks"][0], "statusMessage": "Remembering", "async": True}


PAGES = sorted(PLUGIN.rglob("*.md"))
COMMANDS = sorted((PLUGIN / "commands").glob("*.md"))
COMMAND_LINE = re.compile(r"`(aether [^`]+)`")
CLAUDE = os.environ.get("AETHER_TEST_CLAUDE") or shutil.which("claude")


def parts(path):
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines()), body


def command_of(words):
    """Return the longest run of `words` that names a command."""
    found = cli
    while isinstance(found, click.Group) and words:
        below = found.get_command(click.Context(found), words[0])
        if below is None:
            return None
        found, words = below, words[1:]
    return found


def test_the_manifests_name_the_plugin_and_its_version():
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())

    assert (manifest["name"], manifest["version"]) == ("aether", __version__)
    assert [(one["name"], one["source"]) for one in market["plugins"]] == [("aether", "./")]
    assert json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["aether"]["args"] == ["mcp"]


def test_the_skill_asks_to_remember_what_the_user_decides_and_demands_at_once():
    """A model that believes that all is captured stores nothing, and capture knows rules by their wording only."""
    _, body = parts(PLUGIN / "skills" / "using-memory" / "SKILL.md")
    asked = next(
        part for part in body.split("## ") if part.startswith("Remember what the user decides or demands")
    )

    assert "remember it at once" in asked
    assert "aether add '" in asked
    assert "`remember`" in asked


@rows("path", PAGES, ids=lambda path: path.stem)
def test_every_page_says_what_it_is_for(path):
    head, body = parts(path)

    assert len(head["description"]) > 20
    assert body.strip()


@rows("path", PAGES, ids=lambda path: path.stem)
def test_every_command_line_is_one_that_aether_has(path):
    lines = COMMAND_LINE.findall(path.read_text(encoding="utf-8"))

    for line in lines:
        words = shlex.split(line)[1:]
        command = command_of(words)
        assert command is not None, line
        assert not isinstance(command, click.Group), line
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert {word for word in words if word.startswith("--")} <= known, line


@rows("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_may_run_its_command_lines_and_no_others(path):
    head, body = parts(path)
    allowed = re.findall(r"Bash\((aether [^:)]+)", head["allowed-tools"])

    assert head["allowed-tools"].count("Bash(") == len(allowed)
    for line in COMMAND_LINE.findall(body):
        assert any(line.startswith(words) for words in allowed), line
    assert all(words in body for words in allowed)


@rows("path", COMMANDS, ids=lambda path: path.stem)
def test_the_arguments_of_a_command_never_reach_a_shell(path):
    """Claude Code runs lines with `!` itself, arguments pasted in: quotes and $() in them would be run."""
    head, body = parts(path)

    assert "argument-hint" in head
    assert not re.search(r"!`|```!", body)
    assert "@$" not in body
    assert body.count("$ARGUMENTS") == 1
    assert re.search(r"<words>\n\$ARGUMENTS\n</words>", body)
    assert not re.search(r"\$[0-9]", body)
    assert r"`'` in it written as `'\''`" in body


@pytest.mark.slow  # continuous integration has the program in that tier
@pytest.mark.skipif(
    not CLAUDE, reason="the real Claude Code is not here (AETHER_TEST_CLAUDE, or claude on PATH)"
)
def test_the_real_claude_code_accepts_the_plugin(tmp_path):
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1", "HTTPS_PROXY": "http://127.0.0.1:9",
    }  # fmt: skip

    done = subprocess.run(
        [str(CLAUDE), "plugin", "validate", str(PLUGIN), "--strict"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def test_reading_is_an_event_only_if_it_is_switched_on(project, monkeypatch):
    monkeypatch.chdir(project)
    home = homes.fresh(project)

    assert not re.search(install.wanted_groups("local")["PostToolUse"]["matcher"], "Read")
    homes.configure(home, "[claude]\nfile_history = true\n")

    for scope in install.SCOPES:
        matcher = install.wanted_groups(scope)["PostToolUse"]["matcher"]
        assert re.search(matcher, "Read")
        assert re.search(matcher, "Bash")
        assert not re.search(matcher, "ReadMcpResourceTool")
