"""Regular expressions are compiled once, and not before their first use."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
import unicodedata
from importlib import import_module

import pytest

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
