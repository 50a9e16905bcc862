"""Names inside a home, shipped files, the project of a directory and its home."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether import paths, project
from aether.errors import InvalidInput, NotFound, UnsafePath
from tests.tables import rows


@pytest.fixture
def home(tmp_path):
    """Return a resolved home that holds its data."""
    home = tmp_path / "project" / ".aether"
    (home / "data").mkdir(parents=True)
    return home


def test_a_home_may_be_named_by_itself_or_by_what_holds_it(home):
    assert paths.find_home(home) == paths.find_home(home.parent) == paths.find_home(str(home)) == home


def test_a_named_home_wins_over_the_environment(home, tmp_path, monkeypatch):
    monkeypatch.setenv("AETHER_HOME", str(tmp_path))

    assert paths.find_home(home) == home


def test_the_nearest_home_above_is_found(home, monkeypatch):
    (home.parent / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(home.parent / "src" / "deep")

    assert paths.find_home() == home


def test_without_a_home_the_error_says_where_it_looked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(NotFound, match=f"^{tmp_path}: no .aether/ here or above"):
        paths.find_home()


def test_two_names_of_one_directory_are_one_home(home, tmp_path):
    (tmp_path / "link").symlink_to(home)

    assert paths.find_home(tmp_path / "link") == home


@rows("name", ["a\0b", "a\ud800b", "~nobody-of-this-name/x"])
def test_a_name_that_cannot_be_a_path_is_refused(name):
    with pytest.raises(InvalidInput, match="cannot be a path"):
        paths.find_home(name)


@pytest.mark.parametrize("relative", ["a", "a/b.json", "", ".", "a/../b", "compressions/x.json"])
def test_what_lies_inside_is_given_resolved(home, relative):
    assert paths.inside(home, relative) == (home / relative).resolve()


@pytest.mark.parametrize(
    "relative", ["..", "../x", "a/../../x", "/etc/passwd", "../.aether-other/x", "a\0b", "\ud800", "link/x"]
)
def test_what_leads_out_is_refused(home, relative):
    (home / "link").symlink_to(home.parent)

    with pytest.raises(UnsafePath, match="leads out of the home"):
        paths.inside(home, relative)


@rows(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "con",
        "CON.txt",
        "nul",
        "lpt1",
        "-a",
        ".a",
        "a.",
        "a b",
        "ä",
        "a\0",
        "a\n",
        "x" * 300,
    ],
)
def test_an_unsafe_name_is_refused(name):
    with pytest.raises(InvalidInput, match="cannot be the name of a phase"):
        paths.file_name(name, what="phase")


@rows("name", ["data/memory.json", "data/schemas/memory.schema.json", "prompts/architect.md"])
def test_shipped_files_are_found(name):
    assert paths.resource(name).is_file()


def test_an_installed_package_finds_its_own_copy(tmp_path, monkeypatch):
    (tmp_path / "aether" / "_files" / "data").mkdir(parents=True)
    (tmp_path / "aether" / "_files" / "data" / "memory.json").touch()
    monkeypatch.setattr(project, "__file__", str(tmp_path / "aether" / "project.py"))

    assert paths.resource("data/memory.json") == tmp_path / "aether" / "_files" / "data" / "memory.json"


@pytest.mark.parametrize(
    "text",
    ["user:42/α", "../evil", "..", ".", "/etc/passwd", "a/../b", "con", "NUL.txt", "a.", "-rf", "~", "a b", "%41", "\x00", "\ud800",
     "x" * 500, "é" * 100, "C:\\evil"],
)  # fmt: skip
def test_any_text_becomes_one_safe_directory(home, text):
    name = paths.directory_name(text, what="conversation")

    assert re.fullmatch(r"[A-Za-z0-9_%][A-Za-z0-9._%~-]*", name)
    assert len(name) <= paths.MAX_NAME_CHARS
    assert paths.inside(home, name).parent == home
    assert not name.endswith(".")
    assert name.partition(".")[0].lower() not in ("con", "nul")


@given(
    st.lists(
        st.text(st.characters(exclude_categories=[]), min_size=1)
        | st.sampled_from(["%2e", ".", "%", "a.", "a%2e", "con", "%63on"]),
        unique=True,
    )
)
def test_no_two_texts_share_a_directory(texts):
    assert len({paths.directory_name(text, what="conversation") for text in texts}) == len(texts)


@rows("text", ["", None, 7])
def test_what_is_no_text_names_no_directory(text):
    with pytest.raises(InvalidInput, match="cannot be the id of a conversation"):
        paths.directory_name(text, what="conversation")


@pytest.fixture
def top(tmp_path, monkeypatch):
    """A directory, resolved, that holds projects; the user's own directory is elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    return tmp_path.resolve()


def made(path):
    path.mkdir(parents=True, exist_ok=True)
    return path


def git(directory, *words):
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", *words],
        cwd=directory, check=True, capture_output=True, env={"PATH": os.environ["PATH"], "HOME": str(directory)},
    )  # fmt: skip


def repository(path):
    git(made(path), "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "a")
    return path


def test_all_directories_of_a_repository_share_the_home_of_its_top(top):
    made(top / "app" / ".git")
    below = made(top / "app" / "src" / "deep")

    assert project.root_of(str(below)) == str(top / "app")
    assert project.home_of(str(below)) == str(top / "app" / ".aether")


def test_the_nearest_home_within_the_repository_comes_first(top):
    made(top / "app" / ".git")
    made(top / "app" / ".aether")
    nested = made(top / "app" / "tool" / ".aether")

    assert project.home_of(str(made(top / "app" / "tool" / "src"))) == str(nested)


def test_a_home_above_the_repository_is_another_projects(top):
    made(top / ".aether")
    made(top / "app" / ".git")

    assert project.home_of(str(top / "app")) == str(top / "app" / ".aether")


def test_a_worktree_has_the_home_of_its_main_repository(top):
    main = repository(top / "app")
    git(main, "worktree", "add", "-q", str(top / "elsewhere" / "tree"), "-b", "b")
    below = made(top / "elsewhere" / "tree" / "src")

    assert project.root_of(str(below)) == str(main)
    assert project.home_of(str(below)) == str(main / ".aether")
    assert project.home_of(str(below), str(main)) == str(main / ".aether")


def test_the_commands_find_the_home_of_the_main_repository_too(top, monkeypatch):
    main = repository(top / "app")
    git(main, "worktree", "add", "-q", str(top / "elsewhere" / "tree"), "-b", "b")
    made(top / ".aether")
    home = made(main / ".aether")

    monkeypatch.chdir(top / "elsewhere" / "tree")

    assert paths.find_home() == home


def test_a_submodule_is_a_project_of_its_own(top):
    inner, outer = repository(top / "inner"), repository(top / "outer")
    git(outer, "submodule", "--quiet", "add", str(inner), "part")

    assert project.root_of(str(outer / "part")) == str(outer / "part")
    assert project.home_of(str(outer / "part")) == str(outer / "part" / ".aether")


def test_a_worktree_of_a_bare_repository_is_its_own_root(top):
    bare = top / "app.git"
    git(top, "clone", "-q", "--bare", str(repository(top / "app")), str(bare))
    git(bare, "worktree", "add", "-q", str(top / "tree"), "-b", "b")

    assert project.root_of(str(top / "tree")) == str(top / "tree")


@pytest.mark.parametrize(
    "said", [b"", b"nonsense", b"gitdir: /nowhere/at/all", b"gitdir:", b"\xff\xfe\x00", b"gitdir: \x00"]
)
def test_a_broken_git_file_makes_the_directory_its_own_root(top, said):
    (made(top / "app") / ".git").write_bytes(said)

    assert project.root_of(str(made(top / "app" / "src"))) == str(top / "app")


def test_without_git_the_project_is_where_the_session_began(top):
    below = made(top / "notes" / "deep")

    assert project.root_of(str(below)) == str(below)
    assert project.root_of(str(below), str(top / "notes")) == str(top / "notes")
    assert project.home_of(str(below), str(top / "notes")) == str(top / "notes" / ".aether")


def test_without_git_the_nearest_home_above_counts(top):
    home = made(top / "notes" / ".aether")

    assert project.home_of(str(made(top / "notes" / "deep" / "er"))) == str(home)


def test_the_home_in_ones_own_directory_is_no_projects(top):
    made(top / "user" / ".aether")

    assert project.home_of(str(made(top / "user" / "notes"))) == str(top / "user" / "notes" / ".aether")


def test_a_home_directory_that_is_a_repository_is_no_project(top):
    made(top / "user" / ".git")
    notes = made(top / "user" / "notes")

    assert project.root_of(str(notes)) == str(notes)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files here")
def test_a_home_above_that_another_user_made_is_not_read(top, monkeypatch):
    made(top / ".aether")
    notes = made(top / "notes")
    own = os.getuid()

    monkeypatch.setattr(os, "getuid", lambda: own + 1)

    assert project.home_of(str(notes)) == str(notes / ".aether")


def test_a_session_that_went_elsewhere_is_still_its_projects(top):
    for name in ("app", "other"):
        made(top / name / ".git")
        made(top / name / ".aether")

    assert project.root_of(str(top / "other"), str(top / "app")) == str(top / "app")
    assert project.home_of(str(top / "other"), str(top / "app")) == str(top / "app" / ".aether")


def test_a_file_in_the_place_of_a_home_is_no_home(top):
    made(top / "app" / ".git")
    (made(top / "app" / "src") / ".aether").write_text("")

    assert project.home_of(str(top / "app" / "src")) == str(top / "app" / ".aether")


@pytest.mark.parametrize("named", ["{}/box", "{}/box/.aether"])
def test_a_home_that_is_named_wins(top, monkeypatch, named):
    made(top / "box" / ".aether")
    made(top / "app" / ".aether")

    monkeypatch.setenv("AETHER_HOME", named.format(top))

    assert project.home_of(str(top / "app")) == str(top / "box" / ".aether")


def test_a_home_is_made_in_a_project_and_not_in_ones_own_directory_or_at_the_top(top, monkeypatch):
    assert project.may_create_home(str(top / "app"))
    assert not project.may_create_home(str(top / "user"))
    assert not project.may_create_home(os.path.abspath(os.sep))

    monkeypatch.setenv("AETHER_AUTO_INIT", "0")

    assert not project.may_create_home(str(top / "app"))


def test_a_session_in_a_repository_below_stays_with_its_project(top):
    made(top / "app" / ".git")
    home, nested = made(top / "app" / ".aether"), made(top / "app" / "vendor" / "b")
    made(nested / ".git")
    made(nested / ".aether")

    assert project.home_of(str(nested), str(top / "app")) == str(home)
    assert project.home_of(str(nested)) == str(nested / ".aether")
    assert project.root_of(str(nested), str(top / "app")) == str(top / "app")


def test_a_session_without_git_stays_with_its_project_in_a_repository_below(top):
    nested = made(top / "notes" / "b")
    made(nested / ".git")
    made(nested / ".aether")

    assert project.home_of(str(nested), str(top / "notes")) == str(top / "notes" / ".aether")


def linked(path, target):
    made(path.parent)
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("no links here")


@pytest.mark.parametrize("repository", [True, False])
@pytest.mark.parametrize("there", [True, False])
def test_a_home_that_leads_out_of_its_project_is_none(top, repository, there, monkeypatch):
    other = top / "other" / ".aether"
    if there:
        made(other)
    made(top / "app" / ".git") if repository else made(top / "app")
    linked(top / "app" / ".aether", other)

    assert project.home_of(str(top / "app")) == ""
    monkeypatch.chdir(top / "app")
    with pytest.raises(UnsafePath, match="leads elsewhere"):
        paths.find_home()
    monkeypatch.setenv("AETHER_HOME", str(top / "app" / ".aether"))
    assert project.home_of(str(top / "app")) == str(other)


def test_a_home_that_is_a_link_within_its_project_is_followed(top):
    made(top / "app" / ".git")
    home = made(top / "app" / "memory")
    linked(top / "app" / ".aether", home)

    assert project.home_of(str(top / "app")) == str(home)


@pytest.mark.parametrize(
    "name", ["hook.log", "data", "data/memory.json", "hooks", "hooks/spool", "config.toml"]
)
def test_a_home_in_which_something_leads_out_is_none(top, name):
    made(top / "app" / ".git")
    made(top / "app" / ".aether")
    linked(top / "app" / ".aether" / name, made(top / "other"))

    assert project.home_of(str(top / "app")) == ""
    assert project.link_out_of(str(top / "app" / ".aether")) == str(top / "app" / ".aether" / name)


def test_a_link_within_a_home_is_followed(top):
    made(top / "app" / ".git")
    home = made(top / "app" / ".aether")
    linked(home / "hook.log", home / "logs")

    assert project.home_of(str(top / "app")) == str(home)


@rows(
    "name",
    ["", "/etc/passwd", "..", "a/../b", "./a", "a//b", "a/", "a\0b", "link/a", "link/below/a", None, 1],
)
def test_a_record_of_a_home_names_no_file_outside_of_it_nor_behind_a_link(tmp_path, name):
    (tmp_path / "outside" / "below").mkdir(parents=True)
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(tmp_path / "outside")

    with pytest.raises(UnsafePath):
        paths.own_file(home, name)


def test_a_record_of_a_home_names_its_files_and_what_a_link_has_the_place_of(tmp_path):
    home, away = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    away.symlink_to(home)
    (home / "link").symlink_to("/etc/passwd")

    for name in ("a", "data/a..b/[ERASED-2].json", "link"):
        assert paths.own_file(away, name) == home / name


def test_a_git_file_to_which_the_repository_does_not_point_back_opens_no_other_project(top):
    main = repository(top / "app")
    git(main, "worktree", "add", "-q", str(top / "tree"), "-b", "b")
    forged = made(top / "clone")
    shutil.copy(top / "tree" / ".git", forged / ".git")
    beside = made(top / "other")
    (made(beside / "fake") / "commondir").write_text(f"{main}/.git\n")
    (beside / ".git").write_text(f"gitdir: {beside}/fake\n")

    assert [project.root_of(str(place)) for place in (forged, beside)] == [str(forged), str(beside)]
    assert project.root_of(str(top / "tree")) == str(main)
