import json
import os
import sys
from pathlib import Path

import pytest

from aether.errors import Conflict, InvalidDocument, InvalidInput, StorageFailed
from aether.integrations.claude_code import install
from aether.integrations.claude_code.install import install as install_install
from aether.integrations.claude_code.install import uninstall

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
def test_taking_out_gives_the_bytes_from_before(project, tmp_path, scope, data):
    if data is not None:
        path = install.settings_path(scope, project=project)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    before = everything(tmp_path)

    install_install(scope, project=project)
    assert everything(tmp_path) != before
    uninstall(scope, project=project)

    assert everything(tmp_path) == before


def test_installing_keeps_what_it_was_and_the_second_time_changes_nothing(project):
    path = settings(project, SETTINGS)

    (first,) = install_install(project=project)
    installed = everything(project)
    (second,) = install_install(project=project)

    assert (first.change, second.change, second.backup, second.diff) == ("changed", "unchanged", "", "")
    assert Path(first.backup).read_bytes() == SETTINGS
    assert list(path.parent.iterdir()) == [path]
    assert everything(project) == installed
    assert b"\r\n\t\t" in path.read_bytes()


def test_a_mark_of_byte_order_stays(project):
    path = settings(project, b"\xef\xbb\xbf{}")

    install_install(project=project)

    assert path.read_bytes().startswith(b"\xef\xbb\xbf{")


def test_a_dry_run_shows_the_change_and_makes_none(project):
    settings(project, SETTINGS)
    before = everything(project)

    (put_in,) = install_install(project=project, dry_run=True)
    assert everything(project) == before
    install_install(project=project)
    (taken_out,) = uninstall(project=project, dry_run=True)

    assert '+\t\t"Stop": [' in put_in.diff.replace("\r", "")
    assert (put_in.change, taken_out.change) == ("changed", "changed")
    assert "-" in taken_out.diff


def test_taking_out_where_nothing_is_changes_nothing(project):
    assert uninstall(project=project)[0].change == "unchanged"
    settings(project, b'{"hooks": {"Stop": []}}')
    assert uninstall(project=project)[0].change == "unchanged"


def test_what_was_edited_since_is_kept_when_ours_is_taken_out(project):
    path = settings(project, SETTINGS)
    install_install(project=project)
    path.write_bytes(path.read_bytes().replace(b'"opus"', b'"sonnet"'))

    (done,) = uninstall(project=project)

    assert path.read_bytes() == SETTINGS.replace(b'"opus"', b'"sonnet"')
    assert done.backup


def test_a_file_that_we_made_and_others_use_now_stays(project):
    install_install(project=project)
    path = settings(project)
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": "opus"}))

    uninstall(project=project)

    assert json.loads(path.read_text()) == {"model": "opus"}


def test_a_file_that_holds_only_ours_goes_even_if_it_was_rewritten(project):
    install_install(project=project)
    path = settings(project)
    path.write_text(json.dumps(json.loads(path.read_text())))

    (done,) = uninstall(project=project)

    assert done.change == "removed"
    assert not path.parent.exists()


def test_after_an_upgrade_taking_out_still_gives_the_bytes_from_before(project, monkeypatch):
    path = install.settings_path("local", project=project)
    path.parent.mkdir()
    path.write_bytes(SETTINGS)
    install_install("local", project=project)
    monkeypatch.setattr(install, "own_program", lambda: ["/new/aether-hook"])

    (done,) = install_install("local", project=project)
    upgraded = path.read_text()
    uninstall("local", project=project)

    assert done.change == "changed"
    assert "/new/aether-hook" in upgraded
    assert "/venv/bin" not in upgraded
    assert path.read_bytes() == SETTINGS


def test_a_backup_is_its_owners_alone_and_that_of_another_project_is_not_taken(project, tmp_path):
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    settings(other, b'{"hooks": {}, "model": "haiku"}')
    path = settings(project, SETTINGS)
    backups = [Path(install_install(project=at)[0].backup) for at in (project, other)]

    uninstall(project=project)

    assert path.read_bytes() == SETTINGS
    assert [backup.exists() for backup in backups] == [False, True]
    if os.name != "nt":
        assert backups[1].stat().st_mode & 0o777 == 0o600
        assert backups[1].parent.stat().st_mode & 0o777 == 0o700


@needs_posix
def test_a_link_to_nothing_is_one_again_when_ours_is_taken_out(project, tmp_path):
    path = settings(project)
    path.parent.mkdir()
    path.symlink_to(tmp_path / "dotfiles.json")

    install_install(project=project)
    assert b"aether-hook" in (tmp_path / "dotfiles.json").read_bytes()
    uninstall(project=project)

    assert path.is_symlink()
    assert not path.exists()


def test_a_backup_that_is_broken_is_passed_over(project, tmp_path):
    path = settings(project, SETTINGS)
    install_install(project=project)
    (backup,) = (tmp_path / "config" / "aether-backups").iterdir()
    backup.with_name(f"{backup.name}Z").write_bytes(b"\xff")

    uninstall(project=project)

    assert path.read_bytes() == SETTINGS


@needs_posix
def test_a_link_stays_one_and_the_mode_stays(project, tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_bytes(SETTINGS)
    real.chmod(0o640)
    path = settings(project)
    path.parent.mkdir()
    path.symlink_to(real)

    install_install(project=project)

    assert path.is_symlink()
    assert b"aether-hook" in real.read_bytes()
    assert real.stat().st_mode & 0o777 == 0o640
    uninstall(project=project)
    assert (path.is_symlink(), real.read_bytes()) == (True, SETTINGS)


@needs_posix
def test_settings_of_one_person_are_theirs_alone(project):
    for scope, mode in (("project", 0o644), ("local", 0o600), ("user", 0o600)):
        (done,) = install_install(scope, project=project)
        assert Path(done.path).stat().st_mode & 0o777 == mode


def test_the_lines_of_a_project_are_for_others_too_and_ones_own_are_not(project):
    for scope, guarded in (("project", True), ("local", False), ("user", False)):
        (done,) = install_install(scope, project=project)
        handler = json.loads(Path(done.path).read_text())["hooks"]["Stop"][0]["hooks"][0]
        assert ("args" not in handler) == guarded


@pytest.mark.parametrize("data", [b"// mine\n{}", b"[]", b'{"hooks": 3}', b"\xff\xfe{}"])
@pytest.mark.parametrize("do", [install_install, uninstall])
def test_settings_that_cannot_be_read_are_left_and_named(project, data, do):
    path = settings(project, data)
    if do is uninstall and data == b"[]":
        do = install_install

    with pytest.raises(InvalidDocument) as refused:
        do(project=project)

    assert refused.value.where == str(path)
    assert everything(path.parent) == {"settings.json": data}


def test_a_directory_in_the_place_of_the_file_is_named(project):
    settings(project).mkdir(parents=True)

    with pytest.raises(StorageFailed, match="left as it is"):
        install_install(project=project)


def test_a_file_that_somebody_else_changes_meanwhile_is_left_to_them(project, monkeypatch):
    path = settings(project, SETTINGS)
    merged = install.claude_merging.merge

    def and_meanwhile(*arguments, **options):
        path.write_bytes(b'{"model": "haiku"}')
        return merged(*arguments, **options)

    monkeypatch.setattr(install.claude_merging, "merge", and_meanwhile)

    with pytest.raises(Conflict):
        install_install(project=project)

    assert everything(path.parent) == {"settings.json": b'{"model": "haiku"}'}


def test_the_server_comes_with_a_project_where_its_package_is(project, monkeypatch):
    monkeypatch.setattr(install, "can_serve", lambda: True)

    done = install_install(project=project)

    assert [Path(one.path).name for one in done] == ["settings.json", ".mcp.json"]
    server = json.loads((project / ".mcp.json").read_text())["mcpServers"]["aether"]
    assert server["args"][-1] == "mcp"
    monkeypatch.setattr(install, "can_serve", lambda: False)
    uninstall(project=project)
    assert not (project / ".mcp.json").exists()


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
    monkeypatch.setattr(install, "path_advice", lambda: advice)

    assert install.default_scope() == ("local" if advice else "project")


def test_what_is_shared_by_committing_says_nothing_of_this_machine(project, monkeypatch):
    monkeypatch.setattr(install, "can_serve", lambda: True)
    monkeypatch.setattr(install, "own_script", lambda name: f"/venv/{name}")

    hooks, server = (Path(one.path).read_text() for one in install_install("project", project=project))

    assert "venv" not in hooks + server
    assert json.loads(server) == {"mcpServers": {"aether": {"command": "aether", "args": ["mcp"]}}}


def test_a_server_elsewhere_on_path_is_named_by_its_place(monkeypatch, tmp_path):
    monkeypatch.setattr(install.shutil, "which", lambda _: str(tmp_path / "aether"))
    monkeypatch.setattr(install, "own_script", lambda _: "")

    assert install.own_server()["command"] == str(tmp_path / "aether")


def test_without_scripts_the_server_is_started_by_its_module(monkeypatch):
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setattr(install, "own_script", lambda name: "")

    assert install.own_server() == {
        "command": sys.executable,
        "args": ["-P", "-m", "aether", "mcp"],
    }


def test_an_unknown_scope_is_refused():
    with pytest.raises(InvalidInput, match="not a scope"):
        install_install("everywhere")


def test_the_users_own_directory_is_no_project(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    (tmp_path / ".claude").mkdir()

    with pytest.raises(InvalidInput, match="of the user"):
        install_install(project=tmp_path)


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


def test_what_git_is_told_to_ignore_already_stays(project, monkeypatch):
    monkeypatch.chdir(project)
    (project / ".aether").mkdir()
    (project / ".aether" / ".gitignore").write_text("lock\n")

    place, made = install.make_home()

    assert made
    assert (place / ".gitignore").read_text() == "lock\n"


def test_whether_the_server_can_run_is_whether_its_package_is_there(monkeypatch):
    monkeypatch.undo()

    assert install.can_serve() == bool(install.importlib.util.find_spec("mcp"))


def test_the_plugin_is_where_it_is_said_to_be():
    assert (install.plugin_directory() / ".claude-plugin" / "plugin.json").is_file()
