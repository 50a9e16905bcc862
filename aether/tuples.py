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
    _METHODS = ("__new__", "_make", "_replace", "_asdict", "__repr__", "__getnewargs__")
    _Getter = type(namedtuple("_Getter", "field").field)  # noqa: PYI024 - this makes them

    class _Unused(tuple):
        """A named tuple without an instance: most classes of a process never have one, so its methods wait for the first."""

        __slots__ = ()

        def __new__(cls, *given: object, **named: object) -> object:
            _finish(cls)
            return cls(*given, **named)

        @classmethod
        def _make(cls, given: object) -> object:
            _finish(cls)
            return cls._make(given)

    def _finish(cls: type) -> None:
        made = namedtuple(  # noqa: PYI024 - as above
            cls.__name__, cls._fields, defaults=cls._field_defaults.values(), module=cls.__module__
        )
        for name in _METHODS:
            if name not in cls._own:
                setattr(cls, name, vars(made)[name])

    class _Maker(type):
        """The class of `NamedTuple`: a class that is derived from it is a named tuple of the annotated fields."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = dict(body.get("__annotations__", {}))
            own = {key: value for key, value in body.items() if key not in fields}
            getters = {field: _Getter(at, f"Alias for field number {at}") for at, field in enumerate(fields)}
            about = {
                "__slots__": (), "__annotations__": fields, "__match_args__": (*fields,), "_fields": (*fields,),
                "_field_defaults": {field: body[field] for field in fields if field in body},
                "__doc__": f"{name}({', '.join(fields)})", "_own": frozenset(own),
            }  # fmt: skip
            return type(name, (_Unused,), {**about, **getters, **own, "__annotations__": fields})

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
