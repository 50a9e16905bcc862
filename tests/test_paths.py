import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether import paths
from aether.errors import InvalidInput, NotFound, UnsafePath
from tests.tables import rows


@pytest.fixture
def made(tmp_path):
    """Return a resolved home that holds its data."""
    home = tmp_path / "project" / ".aether"
    (home / "data").mkdir(parents=True)
    return home


def test_a_home_may_be_named_by_itself_or_by_what_holds_it(made):
    assert paths.find_home(made) == paths.find_home(made.parent) == paths.find_home(str(made)) == made


def test_a_home_that_holds_another_is_itself(made):
    (made / ".aether").mkdir()

    assert paths.find_home(made) == made


def test_the_environment_names_a_home(made, monkeypatch):
    monkeypatch.setenv("AETHER_HOME", str(made))

    assert paths.find_home() == made


def test_a_named_home_wins_over_the_environment(made, tmp_path, monkeypatch):
    monkeypatch.setenv("AETHER_HOME", str(tmp_path))

    assert paths.find_home(made) == made


def test_the_nearest_home_above_is_found(made, monkeypatch):
    (made.parent / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(made.parent / "src" / "deep")

    assert paths.find_home() == made


def test_without_a_home_the_error_says_where_it_looked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(NotFound, match=f"^{tmp_path}: no .aether/ here or above"):
        paths.find_home()


def test_two_names_of_one_directory_are_one_home(made, tmp_path):
    (tmp_path / "link").symlink_to(made)

    assert paths.find_home(tmp_path / "link") == made


@rows("name", ["a\0b", "a\ud800b", "~nobody-of-this-name/x"])
def test_a_name_that_cannot_be_a_path_is_refused(name):
    with pytest.raises(InvalidInput, match="cannot be a path"):
        paths.find_home(name)


@pytest.mark.parametrize("relative", ["a", "a/b.json", "", ".", "a/../b", "compressions/x.json"])
def test_what_lies_inside_is_given_resolved(made, relative):
    assert paths.inside(made, relative) == (made / relative).resolve()


@pytest.mark.parametrize(
    "relative", ["..", "../x", "a/../../x", "/etc/passwd", "../.aether-other/x", "a\0b", "\ud800", "link/x"]
)
def test_what_leads_out_is_refused(made, relative):
    (made / "link").symlink_to(made.parent)

    with pytest.raises(UnsafePath, match="leads out of the home"):
        paths.inside(made, relative)


@rows("name", ["a", "phase_1", "A-b.c", "x" * paths.MAX_NAME_CHARS, "console", "com10"])
def test_a_safe_name_is_given_unchanged(name):
    assert paths.file_name(name, what="phase") == name


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
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "aether" / "paths.py"))

    assert paths.resource("data/memory.json") == tmp_path / "aether" / "_files" / "data" / "memory.json"


def test_what_is_not_shipped_is_said_to_be_so():
    with pytest.raises(NotFound, match=r"'data/nothing\.json' is not shipped"):
        paths.resource("data/nothing.json")


def test_finding_a_home_makes_nothing(tmp_path):
    paths.find_home(tmp_path / "new")

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    ["user:42/α", "../evil", "..", ".", "/etc/passwd", "a/../b", "con", "NUL.txt", "a.", "-rf", "~", "a b", "%41", "\x00", "\ud800",
     "x" * 500, "é" * 100, "C:\\evil"],
)  # fmt: skip
def test_any_text_becomes_one_safe_directory(made, text):
    name = paths.directory_name(text, what="conversation")

    assert re.fullmatch(r"[A-Za-z0-9_%][A-Za-z0-9._%~-]*", name)
    assert len(name) <= paths.MAX_NAME_CHARS
    assert paths.inside(made, name).parent == made
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


def test_a_plain_id_is_its_own_directory():
    for text in ("0f9c1b7e-6a59-4c0e-8d57-1f2f4a6e7d10", "Session_7", "run.2026-03-01"):
        assert paths.directory_name(text, what="conversation") == text


@rows("text", ["", None, 7])
def test_what_is_no_text_names_no_directory(text):
    with pytest.raises(InvalidInput, match="cannot be the id of a conversation"):
        paths.directory_name(text, what="conversation")
