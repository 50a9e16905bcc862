"""Regular expressions are compiled once, and not before their first use."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
import unicodedata
from importlib import import_module

import pytest
from hypothesis import HealthCheck, given, settings, strategies

import aether.redact
import aether.text
from aether.text.regex import UNPRINTABLE, lazy
from tests import homes


@pytest.fixture
def compilations(monkeypatch):
    """What has been compiled since the test began."""
    seen, compiling = [], re.compile
    monkeypatch.setattr(re, "compile", lambda *given: seen.append(given) or compiling(*given))
    return seen


def test_a_pattern_is_compiled_when_it_is_used(compilations):
    letters = lazy("a+", re.IGNORECASE)
    assert compilations == []

    assert letters.search("cAat")[0] == "Aa"

    assert compilations == [("a+", re.IGNORECASE)]


def test_a_pattern_is_compiled_once(compilations):
    letters = lazy("a+")

    assert [letters.sub("b", text) for text in ("caat", "cat", "ct")] == ["cbt", "cbt", "ct"]

    assert len(compilations) == 1


def test_a_pattern_has_nothing_that_a_compiled_one_has_not():
    with pytest.raises(AttributeError):
        lazy("a+").searches("caat")


@pytest.mark.parametrize("package", [aether.text, aether.redact], ids=lambda package: package.__name__)
def test_every_pattern_can_be_compiled(package):
    modules = [
        import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)
    ]
    kind = type(lazy(""))

    found = [value for module in modules for value in vars(module).values() if isinstance(value, kind)]

    assert found
    for one in found:
        assert re.compile(one.pattern, one.flags)


def test_a_text_without_a_secret_compiles_nothing():
    code = (
        "import re\n"
        "from aether.redact.redact import redact\n"
        "seen, compiling = [], re.compile\n"
        "re.compile = lambda *given: seen.append(given) or compiling(*given)\n"
        "assert redact('12 tests ok in 0.4s') == '12 tests ok in 0.4s'\n"
        "print(len(seen))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=homes.plain_environment(),
    )

    assert int(found.stdout) == 0


def test_controls_marks_of_direction_and_lone_surrogates_are_unprintable_and_nothing_else():
    marks = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}

    def steers(sign):
        return unicodedata.category(sign) in ("Cc", "Cs") or unicodedata.bidirectional(sign) in marks

    expected = {sign for sign in map(chr, range(0x10000)) if steers(sign)} - {"\t", "\n"} | {
        "\u200e",
        "\u200f",
    }

    assert {sign for sign in map(chr, range(0x10000)) if UNPRINTABLE.fullmatch(sign)} == expected


def test_a_text_without_the_words_that_a_pattern_needs_compiles_nothing(compilations):
    commits = lazy(r"git\s+(commit|push)", re.IGNORECASE, needs=("git",))

    assert commits.search("make all") is commits.match("make all", 2) is None
    assert (commits.sub("x", "make all"), commits.findall("make"), [*commits.finditer("make")]) == (
        "make all",
        [],
        [],
    )
    assert compilations == []

    assert commits.search("sudo GIT push")[1] == commits.match("sudo GIT push", 5)[1] == "push"
    assert commits.sub("done", "gıt push, git push", 1) == "done, git push"
    assert commits.findall("git commit") == [one[1] for one in commits.finditer("git commit")] == ["commit"]


def test_a_text_without_the_words_that_a_pattern_needs_is_not_searched_after_its_first_use_either():
    commits = lazy("commit", needs=("git",))

    assert commits.search("git commit")
    assert (commits.search("commit"), commits.sub("x", "commit"), commits.findall("commit")) == (
        None,
        "commit",
        [],
    )


def _needing():
    modules = [
        import_module(found.name) for found in pkgutil.walk_packages(aether.text.__path__, "aether.text.")
    ]
    modules += [
        import_module(f"aether.{name}")
        for name in ("messages.shell", "messages.tool_calls", "memory.capture.tool_work", "search.rank")
    ]
    kind = type(lazy("", needs=("a",)))
    held = [
        (module, name, value)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, kind)
    ]
    return {f"{module.__name__}.{name}": value for module, name, value in held}


@pytest.mark.parametrize("name", sorted(_needing()))
def test_what_a_pattern_matches_holds_one_of_the_words_it_needs(name):
    pattern = _needing()[name]
    compiled = re.compile(*pattern._given)

    @settings(max_examples=15, deadline=None, suppress_health_check=[*HealthCheck])
    @given(strategies.from_regex(compiled))
    def holds(text):
        assert pattern._may_match(text), text

    holds()
