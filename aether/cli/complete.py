"""Completion of the values of options and arguments, for the tab key of a shell.

Whatever goes wrong completes nothing: a shell has no place for an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aether.cli.output import Ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def types(home: str | None) -> Iterable[str]:
    """Return the types of items: those that aether knows, and those in the home."""
    from aether.types import RELEVANCE_OF_TYPE

    return {
        *RELEVANCE_OF_TYPE,
        *(item["type"] for item in _document("memory", home)["working_memory"]["items"]),
    }


def castes(home: str | None) -> Iterable[str]:
    """Return the castes of the colony."""
    return [*_document("pheromones", home)["caste_sensitivities"]]


def architects(home: str | None) -> Iterable[str]:  # noqa: ARG001 - the same in every home
    """Return the names of architects."""
    from aether.store import keys

    return keys.architects()


def backends(home: str | None) -> Iterable[str]:  # noqa: ARG001 - the same in every home
    """Return the names of backends that write summaries."""
    from aether.store.keys import summarisers

    return summarisers()


def documents(home: str | None) -> Iterable[str]:  # noqa: ARG001 - the same in every home
    """Return the names of the documents."""
    from aether.store.documents import NAMES

    return NAMES


def ids(home: str | None) -> Iterable[str]:
    """Return the ids of items, sessions and patterns."""
    memory = _document("memory", home)
    return [
        *(item["id"] for item in memory["working_memory"]["items"]),
        *(session["session_id"] for session in memory["short_term_memory"]["sessions"]),
        *(pattern["id"] for pattern in memory["long_term_memory"]["patterns"]),
    ]


def goal_ids(home: str | None) -> Iterable[str]:
    """Return the ids of goals."""
    return [goal["id"] for goal in _document("goals", home)["goals"]]


def signal_types(home: str | None) -> Iterable[str]:
    """Return the types of signals."""
    return [*_document("pheromones", home)["pheromone_types"]]


def conversation_names(home: str | None) -> Iterable[str]:
    """Return the names of the conversations whose contexts the home keeps."""
    from aether.api.compact_views import conversation_list

    return [row.conversation for row in conversation_list(home=home)]


def archived_names(home: str | None) -> Iterable[str]:
    """Return the names of the archived conversations."""
    from aether.api.archive import list_archived

    return [row.id for row in list_archived(home=home)]


def snapshot_ids(home: str | None) -> Iterable[str]:
    """Return the names of the snapshots."""
    from aether.api.admin import list_snapshots

    return [snapshot["snapshot_id"] for snapshot in list_snapshots(home=home)]


def completes(values: Callable[[str | None], Iterable[str]]) -> Complete:
    """Return the completion of a parameter that takes one of the `values` in a home."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's interface
        from aether.errors import AetherError

        ask = ctx.find_object(Ask)
        try:
            return sorted(
                value for value in values(ask.home if ask else None) if value.startswith(incomplete)
            )
        except AetherError:
            return []

    return complete


def _document(name: str, home: str | None) -> Any:
    from aether.api.home import find, read

    return read(find(home)).documents[name]
