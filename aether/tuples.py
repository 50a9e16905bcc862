"""Named tuples: those of `typing` to the type checker, at a tenth of its price where a process defines them.

That of `typing` compiles each annotation and a constructor for each class: of the dozens that a start defines, few are made.
"""

from __future__ import annotations

from _collections import _tuplegetter  # type: ignore[import-not-found]  # that of collections.namedtuple

__all__ = ["NamedTuple"]
TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:

    class _Definition(type):
        """Makes the fields of a class from its annotations."""

        def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
            if tuple in bases or NamedTuple not in bases:
                return super().__new__(cls, name, bases, space)
            fields = tuple(space.get("__annotations__", ()))
            defaults = {field: space[field] for field in fields if field in space}
            getters = {field: _tuplegetter(place, "") for place, field in enumerate(fields)}
            own = {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return super().__new__(cls, name, bases, {**space, **own, **getters})

    class NamedTuple(tuple, metaclass=_Definition):
        """A tuple whose places have names."""

        __slots__ = ()

        def __new__(cls, /, *values: Any, **named: Any) -> Any:
            # The constructor is compiled for the first tuple of a class.
            owner = next(each for each in cls.__mro__ if "_fields" in each.__dict__)
            names = "".join(f"{field}, " for field in owner._fields)
            new = eval(f"lambda cls, {names}: make(cls, ({names}))", {"make": tuple.__new__})  # noqa: S307 - of names of fields
            new.__defaults__ = tuple(owner._field_defaults.values())
            new.__qualname__ = f"{owner.__name__}.__new__"
            owner.__new__ = staticmethod(new)
            return new(cls, *values, **named)

        def _replace(self, /, **named: Any) -> Any:
            return type(self)(**{**self._asdict(), **named})

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)
