"""Importing from OLLM-CLI: its sessions and snapshots become conversations.

Each file becomes a conversation of its own, whole or not at all, and none that exists is changed. Transcripts, which become
items, are imported in `importing`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from aether import clock, regular
from aether.api.conversations import record_directory
from aether.api.home import Home, now
from aether.clock import new_id
from aether.conversation.checkpoints import checkpoint_message
from aether.conversation.shapes import Checkpoint, Receipt
from aether.errors import AetherError, NotFound
from aether.messages.sources import ollm
from aether.store import conversations, files
from aether.store.files import make_directory
from aether.tokens.models import UNKNOWN_WINDOW
from aether.tokens.models import profile as profile_of
from aether.types import JsonObject


class OllmFile(NamedTuple):
    """The report about one file of OLLM-CLI."""

    file: str
    state: Literal["imported", "known", "skipped", "bad", "undone", "changed"]
    """`known` was imported before; `skipped` is an index, or its conversation exists; `changed` has grown since."""
    kind: str = ""
    conversation: str = ""
    messages: int = 0
    checkpoints: int = 0
    notes: tuple[str, ...] = ()
    """Warnings, and why it is bad or skipped."""


class OllmImport(NamedTuple):
    """An import from OLLM-CLI, or its rollback."""

    id: str
    """By which `undo_ollm_import` knows it; empty if nothing was stored."""
    dry_run: bool
    backup: str
    files: list[OllmFile]


def import_ollm(
    sources: Iterable[str | os.PathLike[str]], *, dry_run: bool = False, backup: str | os.PathLike[str] | None = None, home: Home = None
) -> OllmImport:  # fmt: skip
    """Import sessions and snapshots of OLLM-CLI as conversations, each file whole or not at all.

    A directory is searched for `*.json`. The sources are never changed, and no conversation that exists is: its file is
    reported as skipped, or as known if it was imported before. `backup` gets a copy of each file that is read, under its
    own path, and one of each later state of it below `changed/`. Bad files, and those that cannot be copied, are reported,
    and the others imported.

    Raises:
        NotFound: a source, or the named home, does not exist.
    """
    place = record_directory(home)
    at = now()
    name = new_id("ollm", at)
    reports = []
    for path in _json_files(sources):
        copies = Path(backup) if backup is not None and not dry_run else None
        marked = {"from": "ollm-cli", "import": name}
        reports.append(_import_ollm_file(path, place, marked, copies, dry_run=dry_run))
    stored = any(report.state == "imported" for report in reports) and not dry_run
    return OllmImport(name if stored else "", dry_run, str(backup or ""), reports)


def undo_ollm_import(id: str, *, home: Home = None) -> OllmImport:
    """Roll an import back: move its conversations to quarantine, but for those that have grown or changed since.

    Raises:
        NotFound: no conversation is of that import.
    """
    place = record_directory(home)
    reports = []
    for stored in conversations.stored_conversations(place):
        marked = _origin(place, stored.id)
        if marked.get("import") != id:
            continue
        kept = conversations.set_aside(place, stored.id, lines=marked["lines"], now=now())
        notes = (f"kept in {kept}",) if kept else ("it was continued since, and stays",)
        state: Literal["undone", "changed"] = "undone" if kept else "changed"
        reports.append(OllmFile(str(marked.get("file", "")), state, "", stored.id, notes=notes))
    if not reports:
        raise NotFound(
            f"no conversation is of import {id}.", fix="The import printed its id.", where=str(place)
        )
    return OllmImport(id, False, "", reports)


def _json_files(sources: Iterable[str | os.PathLike[str]]) -> Iterator[Path]:
    for source in map(Path, sources):
        if source.is_dir():
            yield from sorted(path for path in source.rglob("*.json") if path.is_file())
        elif source.is_file():
            yield source
        else:
            raise NotFound(
                "there is no such file or directory.", fix="Name a directory of OLLM-CLI.", where=str(source)
            )


def _back_up(path: Path, data: bytes, backup: Path) -> None:
    """Copy the content of a file to its path below `backup`; another state of it, below `changed/` and its checksum."""
    own = Path(*path.resolve().parts[1:])
    for target in (backup / own, backup / "changed" / files.checksum(data) / own):
        with files.storage_errors(target, left="It could not be copied, and was not imported."):
            if not target.exists():
                make_directory(target.parent)
                files.write_whole(target, data)
            if regular.read(target, regular.LOG_BYTES) == data:
                return


def _import_ollm_file(
    path: Path, place: Path, marked: JsonObject, backup: Path | None, *, dry_run: bool
) -> OllmFile:
    name = str(path)
    try:
        data = regular.read(path, regular.LOG_BYTES)
        if backup is not None:
            _back_up(path, data, backup)
        value = files.parse_json(data, where=name)
        found = ollm.conversation(value)
        if found is None:
            return OllmFile(name, "skipped", notes=("an index of snapshots",))
        report = OllmFile(
            name, "imported", found.kind, found.id, len(found.messages), len(found.checkpoints), tuple(found.warnings),
        )  # fmt: skip
        if conversations.load(place, found.id).lines:
            known = _origin(place, found.id).get("file") == str(path.resolve())
            why = "imported before" if known else "a conversation of that id exists, and is not changed"
            return report._replace(state="known" if known else "skipped", notes=(*report.notes, why))
        if not dry_run:
            make_directory(place)
            _create(found, place, {**marked, "file": str(path.resolve())})
    except (AetherError, OSError) as reason:
        what = reason.what if isinstance(reason, AetherError) else reason.strerror or str(reason)
        return OllmFile(name, "bad", notes=(what,))
    return report


def _create(found: ollm.OllmConversation, place: Path, marked: JsonObject) -> None:
    """Write the conversation of a file: the text of each checkpoint is a message, and a first step makes it one."""
    at = clock.stamp(now())
    held = [*found.checkpoints, *found.messages]
    made: list[JsonObject] = []
    for n, (message, about) in enumerate(zip(found.checkpoints, found.about, strict=True), 1):
        known = {"created_at": at, **{key: value for key, value in about.items() if value}}
        made.append(
            checkpoint_message(
                Checkpoint(tokens=0, compression_number=0, message_range=(n, n), summary=message["content"], **known), "openai",
            )
        )  # fmt: skip
    # The header, the record of the import and the messages, then the checkpoints and their step.
    lines = len(held) + 2 + (len(made) + 1 if made else 0)
    known_model = profile_of(found.settings.get("model", ""))
    settings = {
        "window": known_model.window or UNKNOWN_WINDOW,
        **found.settings,
        "imported": {**marked, "lines": lines},
    }
    receipt = Receipt(
        conversation_id=found.id, step=1, at=at, policy={"name": "import"}, effective={}, trigger="imported from OLLM-CLI",
        note="", tokens_before=0, tokens_after=0, counter="", messages_before=len(held), messages_after=len(held), kept={},
        removed=list(range(len(made))), places=[*(None for _ in made), *range(len(made), len(held))], protected=[], cuts=[],
        steps=[], summary={}, sha256_before="", sha256_after="", findings=[],
    )._asdict()  # fmt: skip
    conversations.create(
        place, found.id, held, settings=settings, first=made, receipt=receipt if made else None, now=now()
    )


def _origin(place: Path, id: str) -> JsonObject:
    """Return what the log of a conversation says of its import; empty if it was not imported."""
    for record in conversations.records_of(place, id)[1:2]:
        imported = record.get("settings", {}).get("imported")
        return imported if isinstance(imported, dict) else {}
    return {}
