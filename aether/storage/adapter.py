"""The storage adapter: the interface of places for pre-compaction transcripts, summaries and events, and for named files.

The layout is the same everywhere: `<session>/transcript-pre-compact-<step>.jsonl`, `<session>/summary-<step>.json`,
`<session>/events.jsonl`, with the step in three digits. A step is written once and never overwritten. The copies are
redacted before they come here. `FileStorage` makes each file of a directory once and whole.

`NamedFiles` is what backups are made of, and the files of shared colonies: files by their names, in the same places.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from aether import regular
from aether.errors import Conflict, InvalidInput, NotFound
from aether.paths import directory_name, inside
from aether.store import files
from aether.store.files import (
    ignore,
    locked,
    make_directory,
    save,
    storage_errors,
    sync_directory,
    write_all,
    write_whole,
)
from aether.store.log import append, cut_torn_end
from aether.types import JsonObject

EVENTS = "events.jsonl"
_STEP = re.compile(r"(?:transcript-pre-compact|summary)-([0-9]{3,})\.jsonl?")


class StorageAdapter(Protocol):
    """A place for copies; every method returns where it wrote, as a path or URL.

    Raises (each method):
        InvalidInput: the session id cannot be a name.
        Conflict: that step was written before, with other content.
        StorageFailed: nothing was written.
    """

    name: str
    """`fs`, `s3` or the caller's own word, as events and receipts show it."""

    def save_transcript(self, session_id: str, messages: Sequence[JsonObject], step: int) -> str:
        """Keep the messages as they were before compaction `step`."""
        ...

    def save_summary(self, session_id: str, summary: JsonObject, step: int) -> str:
        """Keep the summary of compaction `step`."""
        ...

    def save_event(self, session_id: str, event: JsonObject) -> str:
        """Append one event."""
        ...


class NamedFiles(Protocol):
    """A place for files by their names, which are relative paths of letters, digits, `.`, `_`, `-` and `/`.

    Raises (each method):
        StorageFailed: the place refused, or could not be reached.
        UnsafePath: a link leads out of it.
    """

    def where(self, name: str = "") -> str:
        """Return the path or URL of a file, or of the place."""
        ...

    def names(self, below: str) -> dict[str, int]:
        """Return the names of the files in the directory `below`, at any depth, with their sizes in bytes."""
        ...

    def get(self, name: str, most: int) -> bytes:
        """Return the content of a file of at most so many bytes.

        Raises:
            NotFound: there is no such file.
            InvalidDocument: it is larger.
        """
        ...

    def put(self, name: str, data: bytes) -> None:
        """Write a file, whole and durably or not at all."""
        ...

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...


def transcript_file(step: int) -> str:
    """Return the name of the transcript before compaction `step`.

    Raises:
        InvalidInput: the step is negative.

    >>> transcript_file(7), summary_file(1000)
    ('transcript-pre-compact-007.jsonl', 'summary-1000.json')
    """
    return f"transcript-pre-compact-{_step(step)}.jsonl"


def summary_file(step: int) -> str:
    """Return the name of the summary of compaction `step`.

    Raises:
        InvalidInput: the step is negative.
    """
    return f"summary-{_step(step)}.json"


def _step(step: int) -> str:
    if step < 0:
        raise InvalidInput(f"{step} is not a step.", fix="Count compactions from 1.", where="step")
    return f"{step:03d}"


def next_free_step(names: Iterable[str]) -> int:
    """Return the first step that is later than all whose files are among `names`.

    >>> next_free_step(["events.jsonl", "summary-002.json", "transcript-pre-compact-003.jsonl"])
    4
    """
    steps = [int(found[1]) for found in map(_STEP.fullmatch, names) if found]
    return max(steps, default=0) + 1


def message_lines(messages: Sequence[JsonObject]) -> bytes:
    """Return messages as JSON, one line each."""
    return b"".join(files.json_line(message) + b"\n" for message in messages)


def step_conflict(where: str) -> Conflict:
    """Return the error for a step with other content."""
    return Conflict(
        "this step was written before, with other content.",
        fix="Use the next step: a step is never overwritten.",
        where=where,
    )


def no_such_file(where: str) -> NotFound:
    """Return the error for a file that is not there."""
    return NotFound("there is no such file.", fix="Restore it from a copy, or name another.", where=where)


ROOT = "./.compact/archive"
# An event is one short write: a lock held for longer is stuck.
LOCK_SECONDS = 5.0


class FileStorage:
    """A `StorageAdapter` below the directory `root`."""

    name = "fs"

    def __init__(self, root: str | os.PathLike[str] = ROOT) -> None:
        if root == ROOT:  # it may be a link that came with a repository; other places are named by somebody
            inside(Path.cwd(), ROOT)
        # Absolute now: the program may change its directory between two copies.
        self.root = Path(os.path.abspath(Path(root).expanduser()))

    def save_transcript(self, session_id: str, messages: Sequence[JsonObject], step: int) -> str:
        """Keep the messages as they were before compaction `step`, and return the path."""
        return self._once(session_id, transcript_file(step), message_lines(messages))

    def save_summary(self, session_id: str, summary: JsonObject, step: int) -> str:
        """Keep the summary of compaction `step`, and return the path."""
        return self._once(session_id, summary_file(step), files.json_document(summary))

    def save_event(self, session_id: str, event: JsonObject) -> str:
        """Append one event, and return the path."""
        path = self._directory(session_id) / EVENTS
        with storage_errors(path):
            self._make(path.parent)
        with locked(path.parent, timeout=LOCK_SECONDS), storage_errors(path):
            append(path, files.json_line(event) + b"\n", at=cut_torn_end(path))
        return str(path)

    def next_step(self, session_id: str) -> int:
        """Return the first step after all that are kept."""
        directory = self._directory(session_id)
        with storage_errors(directory, left="Nothing was read."):
            return next_free_step(os.listdir(directory) if directory.is_dir() else ())

    def where(self, name: str = "") -> str:
        """Return the path of a file, or of the directory."""
        return str(self.root / name)

    def names(self, below: str) -> dict[str, int]:
        """Return the files in the directory `below`, at any depth, with their sizes; links and hidden files are left out."""
        found: dict[str, int] = {}
        left = [below]
        while left:
            at = left.pop()
            with storage_errors(self.root / at, left="Nothing was read."), suppress(FileNotFoundError):
                for one in os.scandir(inside(self.root, at)):
                    if one.name.startswith("."):
                        continue  # what is being written, or was when a process was killed
                    if one.is_dir(follow_symlinks=False):
                        left.append(f"{at}/{one.name}")
                    elif one.is_file(follow_symlinks=False):
                        found[f"{at}/{one.name}"] = one.stat(follow_symlinks=False).st_size
        return found

    def get(self, name: str, most: int) -> bytes:
        """Return the content of the file `name`, which has at most so many bytes.

        Raises:
            NotFound: there is no such file.
            InvalidDocument: it is larger.
            UnsafePath: it is a link, or a link leads out of the directory.
        """
        path = self._place(name)
        with storage_errors(path, left="Nothing was read."):
            try:
                return regular.read(path, most)
            except FileNotFoundError:
                raise no_such_file(str(path)) from None

    def put(self, name: str, data: bytes) -> None:
        """Write the file `name`, whole and durably or not at all."""
        path = self._place(name)
        save(path, data)

    def has(self, name: str) -> bool:
        """Return whether there is a file `name`."""
        return self._place(name).is_file()

    def remove(self, name: str) -> None:
        """Remove the file `name`, if it is there."""
        path = self._place(name)
        with storage_errors(path, left="It is still there."), suppress(FileNotFoundError):
            path.unlink()
            sync_directory(path.parent)

    def _place(self, name: str) -> Path:
        return inside(self.root, os.path.dirname(name)) / os.path.basename(name)

    def _directory(self, session_id: str) -> Path:
        return inside(self.root, directory_name(session_id, what="session"))

    def _make(self, directory: Path) -> None:
        make_directory(directory)
        if self.root.match(ROOT.removeprefix("./")):
            ignore(self.root.parent)

    def _once(self, session_id: str, name: str, data: bytes) -> str:
        path = self._directory(session_id) / name
        with storage_errors(path):
            self._make(path.parent)
            try:
                _create(path, data)
            except FileExistsError:
                if path.read_bytes() != data:
                    raise step_conflict(str(path)) from None
        return str(path)


def _create(path: Path, data: bytes) -> None:
    """Make the file at `path`, whole or not at all; never write over one."""
    whole = path.with_name(f".{path.name}.{os.urandom(6).hex()}.new")
    write_whole(whole, data)
    try:
        os.link(whole, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without second names
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            write_all(handle, data)
            os.fsync(handle)
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        finally:
            os.close(handle)
    finally:
        with suppress(OSError):
            os.unlink(whole)
    sync_directory(path.parent)
