"""Named tuples, typed dictionaries and `cast` as `typing` has them, at a third of their time: a hook makes sixty classes.

`typing` compiles each annotation to see whether it is a type; the type checker does that without us. To import it takes a
third of the time in which a bare interpreter starts.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # that of typing costs a hook milliseconds

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - it is to be imported from here
    from typing import TypedDict as TypedDict  # noqa: PLC0414 - as above
    from typing import cast as cast  # noqa: PLC0414 - as above
else:
    _GIVEN = frozenset({"__module__", "__annotations__"})

    class _Maker(type):
        """The class of `NamedTuple`: a class that is derived from it is a named tuple of the annotated fields."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024 - this makes it
            made.__annotations__ = dict(fields)
            for key, value in body.items():
                if key not in _GIVEN and key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Maker):
        """The base of a class whose annotations are the fields of a tuple."""

    class _Shape(type):
        """The class of `TypedDict`: to call a class that is derived from it makes a plain dictionary."""

        def __call__(cls, **given: object) -> dict[str, object]:
            return given

    class TypedDict(metaclass=_Shape):
        """The base of a class whose annotations are the keys of a dictionary."""

    def cast(_kind: object, value: object) -> object:
        """Return `value`, which the type checker takes to be of another type."""
        return value
