"""JSON Schemas derived from types: a `TypedDict` or `NamedTuple` becomes an object, its docstrings descriptions."""

from __future__ import annotations

import ast
import inspect
import types
import typing
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NotRequired, get_args, get_origin

SCALARS = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", Path: "string",
}  # fmt: skip


def json_schema(hint: Any, title: str) -> dict[str, Any]:
    """Return the JSON Schema of values of type `hint`; each class is a definition of its own.

    >>> json_schema(list[int], "numbers")["items"]
    {'type': 'integer'}
    """
    definitions: dict[str, Any] = {}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **_schema(hint, definitions),
    }  # fmt: skip
    return {**schema, "$defs": definitions} if definitions else schema


def adapted(name: str, result: Any, /, *, without: Iterable[str] = (), **fields: Any) -> Any:
    """Return the shape of a `result` that is printed without some of its fields and with others.

    >>> class Point(typing.NamedTuple):
    ...     x: int
    ...     y: int
    >>> typing.get_type_hints(adapted("Named", Point, without=["y"], label=str))
    {'x': <class 'int'>, 'label': <class 'str'>}
    """
    hints = typing.get_type_hints(result, include_extras=True)
    kept = {field: hint for field, hint in hints.items() if field not in {*without}}
    typed_dict: Any = typing.TypedDict
    shape = typed_dict(name, {**kept, **fields})
    shape.__doc__, shape.adapts = result.__doc__, result
    return shape


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return {"type": SCALARS[hint]}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(argument, definitions) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(hint, type) and getattr(hint, "__annotations__", None):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # a shape may contain itself
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return _container(origin or hint, arguments, definitions)


def _container(kind: Any, arguments: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, Mapping):
        values = _schema(arguments[1], definitions) if arguments else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if isinstance(kind, type) and issubclass(kind, (list, tuple, frozenset)):
        kinds = set(arguments) - {...}
        return {"type": "array", **({"items": _schema(kinds.pop(), definitions)} if len(kinds) == 1 else {})}
    return {}


def _object(shape: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(shape, include_extras=True)
    meanings = field_docs(getattr(shape, "adapts", shape))
    properties = {}
    for name, hint in hints.items():
        optional = get_origin(hint) is NotRequired
        schema = _schema(get_args(hint)[0] if optional else hint, definitions)
        properties[name] = {**schema, **({"description": meanings[name]} if name in meanings else {})}
    required = [name for name, hint in hints.items() if get_origin(hint) is not NotRequired]
    description = {"description": shape.__doc__.splitlines()[0]} if shape.__doc__ else {}
    return {
        "type": "object", **description, "properties": properties, "required": required,
        "additionalProperties": False,
    }  # fmt: skip


def field_docs(shape: type) -> dict[str, str]:
    """Return the docstring below each field of a class, on one line."""
    try:
        tree = ast.parse(inspect.getsource(shape))
    except (OSError, TypeError, SyntaxError):  # made by a call, or without source
        return {}
    body = getattr(tree.body[0], "body", [])
    return {
        field.target.id: " ".join(ast.literal_eval(text.value).split()) for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr)
    }  # fmt: skip
