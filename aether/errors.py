"""Errors of aether: one tree, each with an exit code, each with advice.

    AetherError                     .code  .exit_code  .where  .fix          exit 1
      InvalidInput (ValueError)     the caller passed something impossible   exit 2
      NotFound (LookupError)        no such home, entry, document, revision  exit 3
      InvalidDocument (ValueError)  parses, breaks its schema                exit 4
      CorruptDocument (ValueError)  does not parse; quarantined              exit 5
      LockTimeout (TimeoutError)    someone else is writing                  exit 6
      BudgetExceeded                cannot be made to fit                    exit 7
      BackendUnavailable            package, key or server missing           exit 8
      BackendFailed                 it answered with a failure               exit 9
      UnsafePath (ValueError)       a home's own word for what is outside    exit 10
      Conflict                      later changes prevent it                 exit 11
      StorageFailed (OSError)       the disk refused; it says what is stored exit 12
      ContextOverflow (BackendFailed) the prompt is larger than the window   exit 13
      Refused                       an agent may not state this here         exit 14

A message has three parts: where, what, with the value, and what to do. `fix` is required, so every error has advice.
"""

from __future__ import annotations

import errno
from contextvars import ContextVar
from functools import partial, wraps

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    C = TypeVar("C", bound=type)

CHECK_DISK = "Check the disk, then try again."
_FREE_SPACE = "Free some space, then try again."
_GIVE_RIGHTS = "Let this user read and write the home, or use another with --home."
# What to do about the failures of a disk.
DISK_FAILS = {
    errno.EIO: CHECK_DISK, errno.ESTALE: CHECK_DISK, errno.ENOLCK: CHECK_DISK,
    errno.ENOSPC: _FREE_SPACE, errno.EDQUOT: _FREE_SPACE,
    errno.EROFS: "Make the home writable, or use another with --home.",
    errno.EACCES: _GIVE_RIGHTS, errno.EPERM: _GIVE_RIGHTS,
    errno.EISDIR: 'Move it away, or run "aether doctor --repair".',
}  # fmt: skip
# Longer values hide the sentence that explains them.
SHOWN_CHARS = 80


class AetherError(Exception):
    """A failure that the caller can act on."""

    exit_code = 1

    def __init__(self, what: str, *, fix: str, where: str = "") -> None:
        self.what = what
        self.fix = fix
        self.where = where
        super().__init__(f"{where}: {what} {fix}" if where else f"{what} {fix}")

    @property
    def code(self) -> str:
        """Return the class name, the stable word that programs match on."""
        return type(self).__name__

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling of exceptions.
        return partial(type(self), fix=self.fix, where=self.where), (self.what,)


class InvalidInput(AetherError, ValueError):
    """The caller passed something impossible."""

    exit_code = 2


class NotFound(AetherError, LookupError):
    """There is no such home, entry, document or revision."""

    exit_code = 3


class InvalidDocument(AetherError, ValueError):
    """A document parses but breaks its schema."""

    exit_code = 4


class CorruptDocument(AetherError, ValueError):
    """A document or journal line does not parse; it was set aside, not deleted."""

    exit_code = 5


class LockTimeout(AetherError, TimeoutError):
    """Someone else is writing and did not finish in time."""

    exit_code = 6


class BudgetExceeded(AetherError):
    """The content cannot be made to fit its budget."""

    exit_code = 7


class BackendUnavailable(AetherError):
    """A package, key, program or server that the backend needs is missing."""

    exit_code = 8


class BackendFailed(AetherError):
    """The backend was reached and answered with a failure."""

    exit_code = 9


class UnsafePath(AetherError, ValueError):
    """A path leads out of the home or is not a regular file, or a home sets what only its user may set."""

    exit_code = 10


class Conflict(AetherError):
    """Later changes, or another writer, prevent the operation."""

    exit_code = 11
    overtaken_by: Callable[[], object] | None = None
    """If an erasure ran meanwhile, a function that waits for its end; a public function that stored nothing is repeated then."""


class StorageFailed(AetherError, OSError):
    """The disk failed; the error states what is stored."""

    exit_code = 12
    left = ""
    """What the error says of what is stored, at the end of `what`."""


class ContextOverflow(BackendFailed):
    """The backend refused the prompt as larger than the window of its model."""

    exit_code = 13


class Refused(AetherError):
    """The owner of the home lets no agent do this."""

    exit_code = 14


def disk_failure(reason: OSError, left: str = "", *, where: str = "") -> StorageFailed:
    """Return the error for a disk that failed: the file that the system names, or `where`; what is `left`; what to do."""
    what = f"{reason.strerror or reason}.{left and f' {left}'}"
    fix = DISK_FAILS.get(reason.errno or 0, CHECK_DISK)
    failure = StorageFailed(what, fix=fix, where=where or str(reason.filename or ""))
    failure.left = left
    return failure


class Call:
    """A call of a public function, with all that it calls."""

    __slots__ = ("erasures", "has_stored")

    def __init__(self) -> None:
        self.has_stored = False
        """Whether a change of it is stored."""
        self.erasures: dict[str, str] = {}
        """By home, its last erasure before the call read anything of it (`store.files`)."""


CALL: ContextVar[Call | None] = ContextVar("call", default=None)
# An erasure is rare, and a call that is repeated after one has seconds until the next.
CALL_TRIES = 4


class own_call:  # noqa: N801 - a context manager without the cost of contextlib
    """Let the block be a call of its own, which itself reads all that it writes."""

    def __enter__(self) -> Call:
        call = Call()
        self.token = CALL.set(call)
        return call

    def __exit__(self, *reason: object) -> None:
        CALL.reset(self.token)


class packages_of:  # noqa: N801 - as `own_call`
    """Let a package that cannot be imported in the block be an error that says how to install the `extra` with it."""

    def __init__(self, extra: str, *, where: str, otherwise: str = "") -> None:
        self.extra, self.where, self.otherwise = extra, where, otherwise

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, reason: object, trace: object) -> None:
        if isinstance(reason, ImportError):
            clone = f"'.[{self.extra}]'" if self.extra else "."
            fix = f"Run: pip install {clone} in a clone of aether{self.otherwise}"
            what = f"a package cannot be imported ({reason})."
            raise BackendUnavailable(what, fix=fix, where=self.where) from reason


def note_stored() -> None:
    """Note that the public function that runs has stored a change: an error of a later step must not deny it."""
    if call := CALL.get():
        call.has_stored = True


def with_stored(reason: AetherError) -> AetherError:
    """Return the error of a step of a public function, with what earlier steps stored, unless it says what is stored."""
    call = CALL.get()
    if not isinstance(reason, StorageFailed) or not call or not call.has_stored:
        return reason
    if reason.left and not reason.left.startswith("Nothing"):
        return reason
    what = f"{reason.what.removesuffix(reason.left).strip()} The change, or a part of it, is stored."
    return StorageFailed(what, fix=f"Look at what is stored first. {reason.fix}", where=reason.where)


def warn(words: str) -> None:
    """Warn the program that called aether, at the line of its call, however deep in aether the reason was seen."""
    import os
    import sys
    import warnings

    package, level = os.path.dirname(__file__), 1
    frame = sys._getframe(1)  # noqa: SLF001 - documented, and what warnings itself uses
    while frame.f_back and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, UserWarning, stacklevel=level + 1)


def shown(value: object) -> str:
    """Return `value` for a message: its repr, shortened.

    >>> shown("panic")
    "'panic'"
    """
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


def resembling(word: str, known: Iterable[str]) -> str:
    """Return the known word that another is probably misspelt for; empty for a known word, and for any other.

    >>> resembling("decison", ["decision", "error"]), resembling("decision", ["decision"]), resembling("joke", ["error"])
    ('decision', '', '')
    """
    names = list(known)
    if word in names:
        return ""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower(), names, 1, 0.8)), "")


def one_of(value: object, known: Iterable[str]) -> str:
    """Return the fix for an unknown word: the known word that it resembles, or all of them.

    >>> one_of("EXECUTNG", ["IDLE", "EXECUTING"]), one_of("x", ["a", "b"])
    ("Did you mean 'EXECUTING'? Use one of IDLE, EXECUTING.", 'Use one of a, b.')
    """
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(str(value).upper(), names, 1, 0.7) or get_close_matches(
        str(value), names, 1, 0.7
    )
    return f"{f'Did you mean {near[0]!r}? ' if near else ''}Use one of {', '.join(names)}."


def require_one_of(word: object, known: Iterable[str], what: str, *, where: str = "") -> None:
    """Check that `word` is one of the known ones; `what` says what they are.

    Raises:
        InvalidInput: it is another one.
    """
    names = list(known)
    if word not in names:
        raise InvalidInput(f"{shown(word)} is not {what}.", fix=one_of(word, names), where=where)


def public(function: F) -> F:
    """Return `function` so that a call that fails because of the type of an argument says which one, and what is wanted.

    A call that works is not checked: whatever can be used as an argument may be given.

    Raises:
        InvalidInput: an argument has another type than the signature says, and the call failed in the middle.
        StorageFailed: the disk failed where no error of ours was made of it.
    """

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if CALL.get():
            return _converted(function, args, named)
        tries = 1 if any(hasattr(value, "__next__") for value in (*args, *named.values())) else CALL_TRIES
        for left in range(tries - 1, -1, -1):
            with own_call() as own:
                try:
                    return _converted(function, args, named, is_outermost=True)
                except Conflict as reason:
                    if not reason.overtaken_by:
                        raise
                    if own.has_stored or not left:
                        raise _overtaken(reason, own) from None
                    wait = reason.overtaken_by
            wait()
        raise AssertionError("unreachable")

    return call  # type: ignore[return-value]


def _overtaken(reason: Conflict, call: Call) -> Conflict:
    stored = "The change, or a part of it, is stored." if call.has_stored else "Nothing was stored."
    return Conflict(f"{reason.what} {stored}", fix=reason.fix, where=reason.where)


def _converted(function: Any, args: Any, named: Any, *, is_outermost: bool = False) -> Any:
    """Return the result of `function`, with an error of ours for what `public` names."""
    try:
        return function(*args, **named)
    except StorageFailed as reason:
        if not is_outermost or (failure := with_stored(reason)) is reason:
            raise
        raise failure from reason
    except AetherError:
        raise
    except OSError as reason:
        if reason.errno not in DISK_FAILS:
            raise
        raise with_stored(disk_failure(reason)) from reason
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError) as reason:
        wrong = _misfit(function, args, named)
        if wrong is None:
            raise
        raise wrong from reason


def strict(function: F) -> F:
    """Return `function` so that its arguments are checked before it runs: for what stores them as they are.

    Raises:
        InvalidInput: an argument has another type than the signature says.
    """

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        wrong = _misfit(function, args, named)
        if wrong is not None:
            raise wrong
        return function(*args, **named)

    return call  # type: ignore[return-value]


def public_methods(kind: C) -> C:
    """Return a class with each of its public methods, and its constructor, made `public`."""
    for name, value in list(vars(kind).items()):
        if type(value) is type(public) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, public(value))
    return kind


def _misfit(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> InvalidInput | None:
    """Return the error of the first argument that has another type than the signature says; None if all fit."""
    import inspect
    import typing  # only a failure pays for these

    from aether import document_types, types  # a module may import shapes for the type checker only

    signature = inspect.signature(function)
    names = {**vars(types), **vars(document_types), **inspect.unwrap(function).__globals__}
    try:
        given = signature.bind(*args, **named).arguments
        hints = typing.get_type_hints(function, names)
    except (TypeError, NameError):
        return None
    for name, value in given.items():
        if name in hints and not _fits(value, hints[name]):
            words = typing.get_args(hints[name]) if typing.get_origin(hints[name]) is typing.Literal else ()
            wanted = f"str, one of {', '.join(words)}" if words else signature.parameters[name].annotation
            what = f"{shown(value)} is not {wanted}."
            return InvalidInput(what, fix=f"See help on {function.__name__}.", where=name)
    return None


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value has the type of a hint, as far as a program can see it."""
    import typing
    from types import NoneType, UnionType

    kind, inner = typing.get_origin(hint), typing.get_args(hint)
    if kind in (typing.Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if kind is typing.Literal:
        return value in inner
    shaped = isinstance(hint, type) and issubclass(hint, dict)  # a typed dictionary is one
    of: Any = dict if shaped else NoneType if hint is None else kind or hint
    if of is typing.Any or not isinstance(of, type) or getattr(of, "_is_protocol", False):
        return True
    if of.__name__ == "Callable":
        return callable(value)
    of = {float: (float, int), int: int}.get(of, of)
    if not isinstance(value, of) or (isinstance(value, bool) and of in (int, (float, int))):
        return False
    return _fit_inside(value, of, inner)


def _fit_inside(value: Any, of: Any, inner: Sequence[Any]) -> bool:
    """Return whether what a collection holds has the types of its hint; a text is a sequence of texts only by accident."""
    if isinstance(value, (str, bytes)):
        return not inner
    members = value.values() if isinstance(value, dict) else value
    if not inner or not isinstance(value, (dict, list, tuple, set, frozenset)) or of is tuple:
        return True
    return all(_fits(member, inner[-1]) for member in members)
