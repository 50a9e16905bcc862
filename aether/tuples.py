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
    # With its instance of this number a class gets a `__new__` of its own, which takes as long to make as some thirty
    # instances gain by it.
    _OWN_NEW = 30
    _tuple_new = tuple.__new__
    _Getter = type(namedtuple("_Getter", "field").field)  # noqa: PYI024 - this makes them
    _GETTERS = []

    class _Tuple(tuple):
        """A named tuple: its methods are shared by all classes, because most classes of a process have few instances."""

        __slots__ = ()

        def __new__(cls, *given: object, **named: object) -> object:
            rest = cls._fields[len(given) :]
            try:
                values = (
                    *given,
                    *[named.pop(name) if name in named else cls._field_defaults[name] for name in rest],
                )
            except KeyError as missing:
                raise TypeError(f"{cls.__name__}() has no {missing}") from None
            if named or len(values) != len(cls._fields):
                raise TypeError(f"{cls.__name__}() takes {', '.join(cls._fields)}, each once")
            cls._made += 1
            if cls._made == _OWN_NEW:
                fields = ", ".join(cls._fields)
                own = eval(f"lambda cls, {fields}: new(cls, ({fields},))", {"new": _tuple_new})  # noqa: S307 - as `namedtuple`
                own.__defaults__ = (*cls._field_defaults.values(),)
                cls.__new__ = own
            return _tuple_new(cls, values)

        @classmethod
        def _make(cls, given: object) -> object:
            made = _tuple_new(cls, given)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **new: object) -> object:
            made = self._make(map(new.pop, self._fields, self))
            if new:
                raise ValueError(f"Got unexpected field names: {[*new]}")
            return made

        def _asdict(self) -> dict[str, object]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def __getnewargs__(self) -> tuple[object, ...]:
            return tuple(self)

    class _Maker(type):
        """The class of `NamedTuple`: a class that is derived from it is a named tuple of the annotated fields."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            while len(_GETTERS) < len(fields):
                _GETTERS.append(_Getter(len(_GETTERS), f"Alias for field number {len(_GETTERS)}"))
            about = {
                "__slots__": (), "__match_args__": (*fields,), "_fields": (*fields,), "_made": 0,
                "_field_defaults": {field: body[field] for field in fields if field in body},
                "__doc__": f"{name}({', '.join(fields)})",
            }  # fmt: skip
            return type(name, (_Tuple,), {**about, **body, **dict(zip(fields, _GETTERS, strict=False))})

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

        def __call__(cls, *given: object, **named: object) -> object:
            if cls is TypedDict:  # by a name and its fields: not all keys are names
                name, fields = given
                return _Shape(name, (cls,), {"__annotations__": fields})
            return dict(*given, **named)

    class TypedDict(metaclass=_Shape):
        """The base of a class whose annotations are the keys of a dictionary."""
