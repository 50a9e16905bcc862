"""Regular expressions and named tuples are compiled once, and not before their first use."""

from __future__ import annotations

import copy
import pickle
import pkgutil
import re
import subprocess
import sys
import typing
import unicodedata
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aether.redact
import aether.text
from aether.lazy import UNPRINTABLE, NamedTuple, lazy
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


class Ours(NamedTuple):
    """Three fields."""

    first: int
    second: str = "b"
    third: tuple[str, ...] = ()

    @property
    def both(self):
        return f"{self.first}{self.second}"


class Theirs(typing.NamedTuple):
    """Three fields."""

    first: int
    second: str = "b"
    third: tuple[str, ...] = ()

    @property
    def both(self):
        return f"{self.first}{self.second}"


class Below(Ours):
    """No fields of its own."""


VALUES = st.lists(st.integers() | st.text(max_size=3), max_size=4)
NAMED = st.dictionaries(st.sampled_from(["first", "second", "third", "fourth"]), st.integers(), max_size=3)


def outcome(make, kind):
    """Return what a call of a named tuple gives, in words that do not name its class."""
    try:
        made = make(kind)
    except (TypeError, ValueError):  # which of them depends on the version of Python
        return "refused"
    names = [*made._asdict().items(), made.both, made._fields, made._field_defaults, made.__match_args__]
    return tuple(made), repr(made).replace(kind.__name__, ""), names, type(made) is kind


@given(VALUES, NAMED, NAMED)
def test_a_named_tuple_is_that_of_typing(values, named, changes):
    for make in (
        lambda kind: kind(*values, **named),
        lambda kind: kind(1)._replace(**changes),
    ):
        assert outcome(make, Ours) == outcome(make, Theirs)
        assert outcome(make, Below) == outcome(make, Theirs)


def test_a_named_tuple_is_a_plain_value():
    one = Ours(1, third=("x",))

    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == (1, "b", ("x",))
    assert (one.first, one.second, one.third, Ours.__doc__) == (1, "b", ("x",), "Three fields.")
    with pytest.raises(AttributeError):
        one.first = 2
    with pytest.raises(AttributeError):
        one.other = 2


def test_the_constructor_of_a_named_tuple_is_compiled_when_the_first_is_made():
    class Late(NamedTuple):
        one: int

    assert "__new__" not in vars(Late)
    assert Late(3).one == 3
    assert "__new__" in vars(Late)
