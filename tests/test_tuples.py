"""Our named tuples do what those of `typing` do."""

from __future__ import annotations

import collections
import copy
import pickle
import typing

import pytest

from aether.tuples import NamedTuple


class Place(NamedTuple):
    """A place."""

    path: str
    line: int = 1
    note: str | None = None

    def words(self) -> str:
        """Return it in words."""
        return f"{self.path}:{self.line}"


class Marked(Place):
    """A place with a method more."""

    def words(self) -> str:
        """Return it in words, marked."""
        return f"* {super().words()}"


_Of_typing = collections.namedtuple("Place", "path line note", defaults=(1, None))  # noqa: PYI024 - compared


def test_a_tuple_is_that_of_typing():
    for values, named in ((("a",), {}), (("a", 2), {"note": "n"}), ((), {"line": 3, "path": "b"})):
        ours, theirs = Place(*values, **named), _Of_typing(*values, **named)

        assert ours == theirs
        assert repr(ours) == repr(theirs)
        assert ours._asdict() == theirs._asdict()
        assert ours._replace(line=9) == theirs._replace(line=9)
        assert copy.deepcopy(ours) == pickle.loads(pickle.dumps(ours)) == ours
        assert (ours.path, ours.line, ours.note) == tuple(ours)
    assert Place._fields == _Of_typing._fields
    assert typing.get_type_hints(Place) == {"path": str, "line": int, "note": str | None}


def test_what_extends_a_tuple_has_its_fields():
    marked = Marked("a", note="n")

    assert (marked.words(), type(marked._replace(line=2)), marked.note) == ("* a:1", Marked, "n")
    assert Place("a").words() == "a:1"


@pytest.mark.parametrize(("values", "named"), [((), {}), (("a", 1, None, 2), {}), (("a",), {"other": 1})])
def test_wrong_arguments_are_refused_by_the_name_of_the_class(values, named):
    with pytest.raises(TypeError, match=r"Place\.__new__\(\)"):
        Place(*values, **named)
