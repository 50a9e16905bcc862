"""Named tuples and typed dictionaries as `typing` has them, made in a fraction of the time: a hook makes a hundred classes.

`typing` compiles each annotation to see whether it is a type; the type checker does that without us.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # that of typing costs a hook milliseconds

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - it is to be imported from here
    from typing import TypedDict as TypedDict  # noqa: PLC0414 - as above
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
        """The class of `TypedDict`: a class that is derived from it makes dictionaries, and names their keys."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            made = super().__new__(cls, name, (dict,), body)
            inherited = {key: hint for base in bases for key, hint in base.__annotations__.items()}
            made.__annotations__ = {**inherited, **body.get("__annotations__", {})}
            return made

        __call__ = dict

    class TypedDict(metaclass=_Shape):
        """The base of a class whose annotations are the keys of a dictionary."""
