"""Hints: the names of `typing` for annotations; in a hook, which evaluates none, without the time that it takes to import.

There `Any` is any object, a `Literal` has its values in `__args__`, and the other names mean nothing. Modules that a hook
imports take these names from here.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # that of typing costs a hook milliseconds

if TYPE_CHECKING or "typing" in sys.modules or "aether.hosts.claude_code.hook" not in sys.modules:
    from typing import Any as Any  # noqa: PLC0414 - they are to be imported from here
    from typing import BinaryIO as BinaryIO  # noqa: PLC0414 - as above
    from typing import Literal as Literal  # noqa: PLC0414 - as above
    from typing import NotRequired as NotRequired  # noqa: PLC0414 - as above
    from typing import Protocol as Protocol  # noqa: PLC0414 - as above
    from typing import TypeVar as TypeVar  # noqa: PLC0414 - as above
    from typing import cast as cast  # noqa: PLC0414 - as above
    from typing import get_args as get_args  # noqa: PLC0414 - as above
else:
    from types import GenericAlias

    Any = BinaryIO = NotRequired = Protocol = object

    class Literal:
        """One of some values, which are its `__args__`."""

        __class_getitem__ = classmethod(GenericAlias)

    def TypeVar(_: str, **_bounds: object) -> object:  # noqa: N802 - as that of typing
        return object

    def cast(_: object, value: object) -> object:
        return value

    def get_args(hint: object) -> tuple[object, ...]:
        return hint.__args__
