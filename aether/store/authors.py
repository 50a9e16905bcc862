"""Authors: who changes a home, as its log names them, and the surface through which a person acts.

`commit` writes the name of the author into each line of the journal; this module knows nothing of how that is done, so
that who only reads pays for none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from aether.store.snapshot import Snapshot

# Authors of automatic changes: a hook, and aether (a new home, a hand-off prepared for a full memory).
HOOK, AETHER = "hook", "aether"
# The author of steps of the archive, which change no document.
ARCHIVE = "archive"
# The author of edits that a person made in a file.
HAND = "hand"
# The operation that makes the documents: there is nothing before it to restore.
INIT = "init"
# The author where nobody else is named: the person whose colony it is.
QUEEN = "queen"

# Surfaces through which a model acts, and the name of one that runs a command.
MCP, MODEL, AGENT = "mcp", "model", "agent"
_AGENTS = frozenset({MCP, MODEL, AGENT})

_PROGRAMS = frozenset({HOOK, AETHER, ARCHIVE, HAND})

# The name under which changes of the Queen are committed: that of the user, on the command line.
PERSON: ContextVar[str] = ContextVar("person", default=QUEEN)


class Author(NamedTuple):
    """Who changes what, and why, as `aether log` shows it."""

    operation: str
    by: str = QUEEN
    reason: str = ""
    part: str = ""
    """See `journal.Entry`."""
    member: str = ""
    """See `journal.Entry`."""


class Acting(NamedTuple):
    """A surface through which a person acts: what it commits in place of the Queen, and under which condition."""

    by: str
    revisions: list[int]
    """The revisions that were made, in their order; it grows."""
    require: Callable[[Snapshot], None] = lambda snapshot: None
    """Raises an error if what the person saw has changed; asked under the lock, of the first change."""
    read_only: bool = False


ACTING: ContextVar[Acting | None] = ContextVar("acting", default=None)


@contextmanager
def acting(
    by: str, require: Callable[[Snapshot], None] | None = None, *, read_only: bool = False
) -> Iterator[Acting]:
    """Commit changes of the Queen under the name `by` during the block, in this thread or task only.

    `read_only` refuses all of them, and leaves the spool and the indexes as they are.
    """
    actor = Acting(by, [], read_only=read_only)
    token = ACTING.set(actor._replace(require=require) if require else actor)
    try:
        yield actor
    finally:
        ACTING.reset(token)


def acting_name() -> str:
    """Return the name under which changes of the Queen are committed here."""
    actor = ACTING.get()
    return actor.by if actor else PERSON.get()


def is_agent(by: str = QUEEN, *, named: bool = False) -> bool:
    """Return whether a change by `by` is one of a model: of a surface of models, or of whoever lets a model act.

    Where agents are `named`, another name than the Queen's is one of an agent, unless a person types the command.
    """
    acting_by = acting_name()
    if by in _AGENTS or (by not in _PROGRAMS and acting_by in _AGENTS):
        return True
    return named and by != QUEEN and acting_by == QUEEN


def only_looks() -> bool:
    """Return whether the surface that acts here may change nothing, not even what is derived."""
    acts = ACTING.get()
    return bool(acts and acts.read_only)
