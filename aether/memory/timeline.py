"""Timeline: what happened in a colony and when, and what memory knows about one source file.

Both are views of records that exist: items of every layer and the archive, compressions, compactions and phases. A
moment of the timeline is one of them with its place (project, conversation, agent, caste). A file is known by its path,
compared by whole components, so that `a.py` never finds `data.py`; a name alone counts only where no other file of
that name is known. Neighbours of one entry in time are in `recall`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from aether.memory.layers import Filter, Record, instant_text
from aether.text.words import pluralize
from aether.types import KIND_OF_TYPE, JsonObject, Kind

# Shown if no type is asked for: each changed file and each command would hide them.
MAIN_KINDS = frozenset(
    {"request", "decision", "rule", "result", "error", "fix", "compression", "compaction", "phase"}
)


class Moment(NamedTuple):
    """Something that happened at one time."""

    at: str
    """ISO 8601 in UTC; empty if unknown."""
    kind: Kind
    type: str
    """The type of the item; for others the kind."""
    text: str
    id: str
    """Of an item, session or conversation; empty for a phase."""
    conversation: str = ""
    title: str = ""
    project: str = ""
    agent: str = ""
    """The source of an item."""
    caste: str = ""
    phase: int | None = None
    evidence: str = ""
    pointer: JsonObject = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """The line of the transcript that it was made of."""
    speaker: str = ""
    """Of a passage: `person`, `agent` or `host`."""


def moments(
    items: Iterable[Moment],
    receipts: Iterable[JsonObject],
    compactions: Iterable[Moment],
    colony: Mapping[str, Any],
    keep: Filter,
) -> list[Moment]:
    """Return the moments that a filter keeps, oldest first.

    `items` are those of working memory and the archive (`item_moment`), `receipts` those of compressions, `compactions` those of conversations, and
    `colony` is the document with the phases.
    """
    all_moments = [*items, *_compressions(receipts), *compactions, *_phases(colony)]
    return sorted((entry for entry in all_moments if is_wanted(entry, keep)), key=itemgetter(0))


def item_moment(record: Record) -> Moment:
    """Return the moment that an item, live or archived, is about."""
    metadata = record.value.get("metadata") or {}
    return Moment(
        record.at, KIND_OF_TYPE.get(record.type, "note"), record.type, record.text, record.id,
        **{field: str(metadata.get(field) or "") for field in ("conversation", "title", "project", "caste", "evidence", "speaker")},
        agent=str(metadata.get("source") or ""), phase=metadata.get("phase"), pointer=metadata.get("pointer") or {},
    )  # fmt: skip


def _compressions(receipts: Iterable[JsonObject]) -> Iterator[Moment]:
    for receipt in receipts:
        if receipt.get("kind") == "compression":
            sizes = f"{receipt['tokens_before']} to {receipt['tokens_after']} tokens"
            text = (
                f"Compressed phase {receipt['phase']}: {pluralize(len(receipt['items']), 'items')}, {sizes}"
            )
            moment = instant_text(receipt["at"])
            author = str((receipt.get("architect") or {}).get("backend") or "")
            yield Moment(
                moment, "compression", "compression", text, receipt["session_id"], agent=author,
                phase=receipt["phase"],
            )  # fmt: skip


def _phases(colony: Mapping[str, Any]) -> Iterator[Moment]:
    for entry in colony["phases"]["roadmap"]:
        label = ": ".join(str(part) for part in (entry.get("name"), entry.get("goal")) if part)
        for field, what in (("started_at", "started"), ("completed_at", "completed")):
            if entry.get(field):
                text = f"Phase {entry['phase']} {what}" + (f": {label}" if label else "")
                yield Moment(instant_text(entry[field]), "phase", "phase", text, "", phase=entry["phase"])


def is_wanted(moment: Moment, keep: Filter) -> bool:
    """Return whether a filter keeps a moment."""
    return (
        (moment.kind in keep.kinds or moment.type in keep.types)
        and moment.at >= keep.since
        and (not keep.until or moment.at < keep.until)
        and keep.has(
            "conversation", f"{moment.conversation}\n{moment.title}\n{moment.pointer.get('file', '')}"
        )
        and keep.has("project", moment.project)
    )


class Known(NamedTuple):
    """One statement of memory about a file."""

    at: str
    type: str
    text: str
    id: str
    """Of the item, session or pattern that holds it."""
    layer: str
    evidence: str = ""
    revoked: bool = False
    """Whether it was ended: resolved, superseded or revoked."""


class FileHistory(NamedTuple):
    """What memory knows about one file, each part oldest first."""

    path: str
    changes: list[Known]
    errors: list[Known]
    """Errors, and what solved them."""
    decisions: list[Known]
    """Decisions, rules and learned patterns."""
    others: list[Known]
    """Requests and results that name it."""


_PARTS = {
    "code_change": "changes", "error": "errors", "blocker": "errors", "solution": "errors", "failure_pattern": "errors",
    "decision": "decisions", "constraint": "decisions", "preference": "decisions", "success_pattern": "decisions",
    "user_input": "others", "outcome": "others",
}  # fmt: skip
_BEFORE_A_NAME = r"(?<![\w.@+~-])"
_DIRECTORIES = r"(?:(?:[A-Za-z]:)?[\\/])?(?:[\w.@+~-]+[\\/])*"
# A word that could be a name is one only if no other letter or part of a path follows.
_AFTER_A_NAME = r"(?![\w@+~\\/-]|\.\w)"
_CHANGED = re.compile(r"(?:Created|Changed|Deleted) (.+?)(?: \(\d+ (?:edits|lines)\))?(?:: .+)?", re.DOTALL)


def components(path: str) -> tuple[str, ...]:
    r"""Return the parts of a path, the empty text first if it starts at a root.

    >>> components("./src//a.py"), components("/srv/../a.py"), components("src\\a.py")
    (('src', 'a.py'), ('', 'a.py'), ('src', 'a.py'))
    """
    rooted = path.startswith(("/", "\\")) or path[1:3] in (":\\", ":/")
    parts: list[str] = []
    for part in re.split(r"[\\/]+", path):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return ("", *parts) if rooted else tuple(parts)


def _ends_in(path: Sequence[str], end: Sequence[str]) -> bool:
    return len(end) <= len(path) and tuple(path[len(path) - len(end) :]) == tuple(end)


@lru_cache(maxsize=8)
def _naming(name: str) -> re.Pattern[str]:
    return re.compile(f"{_BEFORE_A_NAME}({_DIRECTORIES}){re.escape(name)}{_AFTER_A_NAME}")


def _mentions(text: str, type: str, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths in `text` whose last component is `name`."""
    if name not in text:
        return
    change = _CHANGED.fullmatch(text.strip()) if type == "code_change" else None
    if change:  # its path may hold any character
        yield from filter(lambda path: path[-1:] == (name,), [components(change[1])])
        return
    for mention in _naming(name).finditer(text):
        # A word without a suffix ("run", "README") is a file only in a path or in backquotes.
        quoted = text[mention.start() - 1 : mention.start()] == text[mention.end() : mention.end() + 1] == "`"
        if mention[1] or "." in name or quoted:
            yield components(mention[1] + name)


def about_file(records: Iterable[Record], path: str, *, ended: Collection[str] = frozenset()) -> FileHistory:
    """Return what `records`, of every layer, say about the file at `path`: a name, the end of a path, or a whole path.

    `ended` are the ids of entries that ended.
    A path of memory is the same file if one of both ends in the other, by components, and not both start at a root.
    A shorter one counts only if all longer ones that end in it are this file, too.
    """
    wanted_path = components(path)
    if not wanted_path[-1:] or not wanted_path[-1]:
        return FileHistory(path, [], [], [], [])
    statements = [
        (statement, places)
        for record in records
        for project in [components(str((record.value.get("metadata") or {}).get("project") or ""))]
        for statement in _statements(record)
        if (places := {*_places(statement, wanted_path, project)})
    ]
    paths = {place for _, places in statements for place in places}
    same = {place for place in paths if _is_same(place, wanted_path, paths)}
    parts: dict[str, dict[str, Known]] = {name: {} for name in FileHistory._fields[1:]}
    for entry, places in sorted(statements, key=lambda pair: pair[0].at):
        if places & same:
            parts[_PARTS[entry.type]].setdefault(entry.text, entry._replace(revoked=entry.id in ended))
    return FileHistory(path, *(list(parts[name].values()) for name in FileHistory._fields[1:]))


def _places(
    entry: Known, wanted_path: tuple[str, ...], project: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield the paths in a statement with the name of the file; a relative one of another project is another file."""
    elsewhere = not wanted_path[0] and project[:1] == ("",) and wanted_path[: len(project)] != project
    for place in _mentions(entry.text, entry.type, wanted_path[-1]):
        if not (elsewhere and place[0]):
            yield place


def _is_same(place: tuple[str, ...], wanted_path: tuple[str, ...], paths: Iterable[tuple[str, ...]]) -> bool:
    if len(place) >= len(wanted_path):
        return _ends_in(place, wanted_path)
    longer = [other for other in paths if len(other) > len(place) and _ends_in(other, place)]
    return _ends_in(wanted_path, place) and all(
        _ends_in(other, wanted_path) or _ends_in(wanted_path, other) for other in longer
    )


def _statements(record: Record) -> Iterator[Known]:
    """Yield the statements of an entry: a session has several, each with its type."""
    metadata = record.value.get("metadata") or {}
    if record.layer != "short_term_memory":
        if record.type in _PARTS:
            evidence = str(metadata.get("evidence") or "") if isinstance(metadata, Mapping) else ""
            yield Known(record.at, record.type, record.text, record.id, record.layer, evidence)
        return
    typed_texts = [
        *(("decision", f"{key_decision['decision']} ({key_decision['rationale']})" if key_decision["rationale"] else key_decision["decision"]) for key_decision in record.value["key_decisions"]),
        *(("outcome", outcome["result"]) for outcome in record.value["outcomes"]),
        *((high_value_item["type"], high_value_item["content"]) for high_value_item in record.value["high_value_items"]),
    ]  # fmt: skip
    # Changes in a session are those of its items, which are in the archive one by one.
    yield from (
        Known(record.at, kind, text, record.id, record.layer)
        for kind, text in typed_texts
        if kind in _PARTS and kind != "code_change"
    )
