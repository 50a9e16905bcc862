"""Origins: where an item of memory came from, and the names by which a person may mean its source.

A source is a conversation, a transcript or another file, an agent, a host (the program whose hooks captured it, or a member
of a shared colony), or one entry by its id. What is not recorded is empty, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from aether.memory.items import DEFAULT_SOURCE, items_of
from aether.memory.sessions import sessions_of
from aether.messages.model import as_text

SourceKind = Literal["entry", "conversation", "file", "agent", "host"]
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
# The mark of an item that hooks captured, and the host of one that names none: the first that had hooks.
HOOKS, FIRST_HOST = "hooks", "claude-code"


class Origin(NamedTuple):
    """Where an item came from; a field is empty, and a number 0, if it is not recorded."""

    conversation: str
    title: str
    """Of the conversation."""
    file: str
    line: int
    part: int
    """Number of the text on its line, from 1."""
    message: str
    """The id that the transcript gives the message."""
    host: str
    agent: str
    """The caste of a sub-agent, or the name under which it was added; empty for the main conversation and the person."""
    project: str


def origin_of(item: Mapping[str, Any]) -> Origin:
    """Return the origin of an item.

    >>> origin_of({"metadata": {"source": "mcp", "conversation": "c1", "pointer": {"via": "hooks"}}})[6:8]
    ('claude-code', 'mcp')
    """
    metadata = item["metadata"]
    pointer = metadata.get("pointer")
    pointer = pointer if isinstance(pointer, Mapping) else {}
    source = as_text(metadata.get("source"))
    return Origin(
        conversation=as_text(metadata.get("conversation")),
        title=as_text(metadata.get("title")),
        file=as_text(pointer.get("file")),
        line=_number(pointer.get("line")),
        part=_number(pointer.get("part")),
        message=as_text(pointer.get("uuid")),
        host=as_text(pointer.get("host")) or (FIRST_HOST if pointer.get("via") == HOOKS else ""),
        agent=as_text(metadata.get("caste")) or ("" if source == DEFAULT_SOURCE else source),
        project=as_text(metadata.get("project")),
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def names_of(item: Mapping[str, Any], member: str = "") -> Iterator[tuple[SourceKind, str]]:
    """Yield the names of the sources of an item; `member` of a shared colony sent it."""
    origin = origin_of(item)
    yield "entry", str(item["id"])
    yield "conversation", origin.conversation
    yield "file", file_name(origin.file)
    yield "agent", origin.agent
    yield "agent", as_text(item["metadata"].get("source"))
    yield "host", origin.host
    yield "host", member


def file_name(path: str) -> str:
    r"""Return the last part of a path, by which imports know a file.

    >>> file_name("/tmp/a.jsonl"), file_name("C:\\logs\\a.jsonl"), file_name("a.jsonl")
    ('a.jsonl', 'a.jsonl', 'a.jsonl')
    """
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def is_from(item: Mapping[str, Any], source: str, *, since: str = "", member: str = "") -> bool:
    """Return whether an item came from `source`, a name as `names_of` yields it or the path of a file, at or after the time `since`.

    The person's own name is no source: it is also that of the main conversation.
    """
    metadata = item["metadata"]
    if source == DEFAULT_SOURCE or (since and as_text(metadata.get("timestamp")) < since):
        return False
    names = [name for kind, name in names_of(item, member) if kind != "file"]
    return source in filter(None, names) or _is_file(origin_of(item).file, source)


def _is_file(recorded: str, path: str) -> bool:
    """Return whether `path` names the recorded file: by its whole path where both have one, else by its name."""
    whole = file_name(recorded) != recorded and file_name(path) != path
    return bool(recorded) and (recorded == path if whole else file_name(recorded) == file_name(path))


def every_item(
    memory: Mapping[str, Any], archived: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the items of working memory, those that sessions keep, and those of the archive records; some several times."""
    yield from items_of(memory)
    for session in sessions_of(memory):
        yield from session["metadata"].get("items", [])
    for record in archived:
        if not record.get("session"):
            yield record["item"]


def source_names(
    items: Iterable[Mapping[str, Any]], members: Mapping[str, str]
) -> dict[SourceKind, dict[str, int]]:
    """Return the names of all sources but single entries, by kind, each with the number of its items."""
    sources: dict[SourceKind, dict[str, set[str]]] = {kind: {} for kind in SOURCE_KINDS[1:]}
    for item in items:
        for kind, name in names_of(item, members.get(item["id"], "")):
            if kind in sources and name not in ("", DEFAULT_SOURCE):
                sources[kind].setdefault(name, set()).add(item["id"])
    return {kind: {name: len(ids) for name, ids in names.items()} for kind, names in sources.items()}


def nearest_names(source: str, names: Iterable[str], *, most: int = 3) -> list[str]:
    """Return those of `names` that a person may have meant by `source`, the nearest first.

    >>> nearest_names("sesion-1", ["session-1", "other", "session-22"])
    ['session-1', 'session-22']
    """
    from difflib import get_close_matches  # only an error needs it

    every = list(dict.fromkeys(names))
    starts = [name for name in every if source and name.casefold().startswith(source.casefold())]
    return list(dict.fromkeys([*starts, *get_close_matches(source, every, n=most)]))[:most]
