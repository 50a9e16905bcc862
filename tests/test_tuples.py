"""Our named tuples are those of `typing`, and a hook makes no others."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import typing

import pytest

from aether import tuples

BODY = '''
class Made(NamedTuple):
    """Words."""

    first: int
    second: tuple[str, ...] = ()
    """Of the second."""

    @property
    def both(self) -> str:
        """Return both."""
        return f"{self.first} {self.second}"

    def more(self) -> Made:
        """Return one more."""
        return self._replace(first=self.first + 1)
'''


def made_by(base):
    names = {"NamedTuple": base, "__name__": __name__}
    exec("from __future__ import annotations\n" + BODY, names)
    return names["Made"]


Made = made_by(tuples.NamedTuple)


def test_a_named_tuple_is_that_of_typing():
    theirs = made_by(typing.NamedTuple)
    for of in (
        "_fields",
        "_field_defaults",
        "__doc__",
        "__module__",
        "__name__",
        "__qualname__",
        "__match_args__",
    ):
        assert getattr(Made, of) == getattr(theirs, of), of
    assert [*Made.__annotations__] == [*theirs.__annotations__]
    ours, other = Made(1), theirs(1)
    assert (ours, repr(ours), ours.both, ours._asdict()) == (other, repr(other), other.both, other._asdict())
    assert ours.more() == Made(2, ()) == tuple(other.more())
    assert type(pickle.loads(pickle.dumps(ours))) is type(copy.deepcopy(ours)) is Made


def test_a_class_of_many_instances_takes_what_one_of_few_takes():
    made = made_by(tuples.NamedTuple)
    for many in (False, True):
        assert made(second=("b",), first=1) == made(1, ("b",)) == made._make([1, ("b",)]) == (1, ("b",))
        assert (made(1), made(first=1)) == ((1, ()), (1, ()))
        for given, named in [
            ((), {}),
            ((), {"first": 1, "third": 2}),
            ((1, (), 2), {}),
            ((1,), {"first": 1}),
        ]:
            with pytest.raises(TypeError):
                made(*given, **named)
        with pytest.raises(TypeError):
            made._make([1])
        with pytest.raises(ValueError, match="third"):
            made(1)._replace(third=2)
        assert type(made(1)) is type(made(1)._replace(first=2)) is made
        assert ("__new__" in vars(made)) == many
        for nth in range(100):
            made(nth)


def test_a_typed_dictionary_is_that_of_typing():
    class Named(tuples.TypedDict):
        """Words."""

        name: str

    class Aged(Named):
        age: typing.NotRequired[int]

    made = Aged(name="a", age=3)
    assert (made, type(made), Aged.__mro__[1], Named.__doc__) == (
        {"name": "a", "age": 3},
        dict,
        dict,
        "Words.",
    )
    assert typing.get_type_hints(Aged) == {"name": str, "age": int}
    assert typing.get_type_hints(Aged, include_extras=True)["age"] == typing.NotRequired[int]


def test_a_hook_makes_no_named_tuple_of_typing():
    heavy = "api.drain api.recall api.prompt_recall api.briefing api.working memory.capture.extract memory.briefing.briefing"
    imports = "\n".join(f"import aether.{name}" for name in ("hosts.claude_code.reply", *heavy.split()))
    # A class cannot be derived from a function; a key that is no name still asks for the call.
    called = "made = typing.TypedDict\ntyping.TypedDict = lambda name, keys: made(name, keys)"
    code = f"import typing\ndel typing.NamedTuple\n{called}\n{imports}"

    subprocess.run([sys.executable, "-c", code], check=True)
