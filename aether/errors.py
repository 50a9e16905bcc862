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
      StorageFailed (OSError)       the disk refused; nothing was stored     exit 12
      ContextOverflow (BackendFailed) the prompt is larger than the window   exit 13

A message has three parts: where, what, with the value, and what to do. `fix` is required, so every error has advice.
"""

from __future__ import annotations

from functools import partial

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
    """A document or journal line does not parse; it was kept aside, not deleted."""

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
    """A path leads out of the home, it is no regular file, or a home names what only its user may name."""

    exit_code = 10


class Conflict(AetherError):
    """Later changes, or another writer, prevent the operation."""

    exit_code = 11


class StorageFailed(AetherError, OSError):
    """The disk refused; nothing was stored."""

    exit_code = 12


class ContextOverflow(BackendFailed):
    """The backend refused the prompt as larger than the window of its model."""

    exit_code = 13


def shown(value: object) -> str:
    """Return `value` for a message: its repr, shortened.

    >>> shown("panic")
    "'panic'"
    """
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
