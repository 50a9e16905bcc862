"""What is compiled when it is first used: regular expressions, and the constructors of named tuples.

A hook runs for milliseconds; compiling every pattern of the modules it imports took a third of that time, and so did
`typing.NamedTuple`, which compiles a line for each class and field. The result of `lazy` is used like that of `re.compile`, and
`NamedTuple` like that of `typing`, which checkers see. Nearly every module imports this one, so it imports nothing but `re`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from typing import Any, AnyStr, Self
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - for other modules


class _Lazy:
    """A proxy for a compiled pattern: each attribute is taken from the pattern once, and kept."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._given: tuple[Any, int] = pattern, flags

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(re.compile(*self._given), name)
        setattr(self, name, attribute)
        return attribute


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return `pattern`, to be compiled with `flags` at its first use.

    >>> lazy("a+", re.IGNORECASE).sub("b", "cAat")
    'cbt'
    """
    return _Lazy(pattern, flags)  # type: ignore[return-value]  # it is used as one


# Control characters but tab and line feed, marks that change the direction of the text after them, and halves of
# surrogate pairs: they steer a terminal or hide words from a reader, so foreign text is shown and quoted without them.
UNPRINTABLE = lazy("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


if not TYPE_CHECKING:
    from _collections import _tuplegetter  # as in collections.namedtuple

    class _Named(type):
        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            if fields := tuple(namespace.get("__annotations__", ())):
                defaults = {field: namespace[field] for field in fields if field in namespace}
                namespace |= {field: _tuplegetter(place, None) for place, field in enumerate(fields)}
                namespace |= {"_fields": fields, "__match_args__": fields, "_field_defaults": defaults}
            return super().__new__(cls, name, bases, {"__slots__": (), **namespace})

    class NamedTuple(tuple, metaclass=_Named):  # noqa: SLOT001 - it has them
        """A tuple with a name for each place: the annotations of the subclass."""

        def __new__(cls, *values: Any, **named: Any) -> Self:
            names = ", ".join(cls._fields)
            make = eval(f"lambda cls, {names}: new(cls, ({names},))", {"new": tuple.__new__})  # noqa: S307 - its own fields
            make.__defaults__ = tuple(cls._field_defaults.values())
            cls.__new__ = staticmethod(make)
            return make(cls, *values, **named)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(map('{}={!r}'.format, self._fields, self))})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, /, **changes: Any) -> Self:
            return type(self)(**self._asdict() | changes)
