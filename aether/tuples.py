"""Named tuples as `typing` has them, made in a third of the time: a hook makes sixty classes before it does anything.

`typing.NamedTuple` compiles each annotation to see whether it is a type; the type checker does that without us.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # that of typing costs a hook milliseconds

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - it is to be imported from here
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
