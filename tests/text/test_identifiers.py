"""The paths, commands, errors, names, numbers and URLs in a text."""

from __future__ import annotations

from aether.text.identifiers import Identifiers, identifiers
from tests.tables import rows


@rows(
    "path",
    ["src/app.py", "/etc/hosts", "~/notes/x.md", "./run", "../up/one.txt", "Makefile", "a/b/c", "docs/", "app.tar.gz", r"C:\temp\x.txt"],
)  # fmt: skip
def test_paths_are_found(path):
    assert identifiers(f"Open {path}, please").paths == (path,)


def test_a_line_reference_is_not_part_of_the_path():
    assert identifiers("at src/app.py:42:7 and app.py:9").paths == ("src/app.py", "app.py")


@rows("text", ["and/or", "1/2", "w/o", "input/output", "24/7"])
def test_a_slash_alone_makes_no_path(text):
    assert identifiers(f"It is {text} here").paths == ()


@rows(
    "text",
    ["Ran `git push -u origin main`", "$ git push -u origin main", "git push -u origin main", "I ran git push -u origin main"],
)  # fmt: skip
def test_commands_are_found_in_ticks_behind_a_prompt_and_bare(text):
    assert identifiers(text).commands == ("git push -u origin main",)


@rows("text", ["git is good", "make sure it works", "find out why", "`go`", "the cat -- a tabby"])
def test_a_program_without_arguments_is_no_command(text):
    assert identifiers(text).commands == ()


@rows(
    "error",
    ["KeyError: 'id'", "error[E0308]: mismatched types", "exit code 137", "HTTP 503", "404 Not Found", "FAILED: tests/x.py"],
)  # fmt: skip
def test_errors_are_found_with_their_message(error):
    assert identifiers(f"It said {error}").errors == (error,)


def test_the_name_of_an_error_alone_is_one_and_not_said_twice():
    assert identifiers("a ValueError or ENOENT came").errors == ("ValueError", "ENOENT")
    assert identifiers("ValueError: bad\nagain ValueError").errors == ("ValueError: bad",)


@rows(
    "name",
    ["fetch_user", "fetchUser", "FetchUser", "os.path.join", "MAX_SIZE", "std::vec", "--dry-run", "#123", "ABC-123", "a1b2c3d", "@lee", "x@example.org"],
)  # fmt: skip
def test_identifiers_are_found(name):
    assert identifiers(f"see {name}.").identifiers == (name,)


def test_plain_words_and_names_of_people_are_no_identifiers():
    assert identifiers("Caroline went home, then Bob slept well") == Identifiers()


def test_numbers_keep_their_units_and_urls_stay_whole():
    found = identifiers("On 2026-03-01 it took 30ms (45%) for $1,200: https://example.org/a_b?c=1.")

    assert found.numbers == ("2026-03-01", "30ms", "45%", "$1,200")
    assert found.urls == ("https://example.org/a_b?c=1",)
    assert found.paths == found.identifiers == ()


def test_every_identifier_is_listed_once_in_order():
    assert identifiers("b.py a.py b.py").paths == ("b.py", "a.py")


def test_data_is_no_name():
    assert identifiers("x" + "_y" * 5_000) == Identifiers()
