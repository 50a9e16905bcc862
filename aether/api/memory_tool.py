"""The memory tool of Anthropic (`memory_20250818`) over a home: its commands as one function.

Each command that changes something is one transaction of the home: in the log, undone by `undo`, safe at a crash.
What the model sees as files are files in `memories/` as well (`memory_directory`).

The directory `memories/` of a home: the files of the memory tool, as files.

The document `memories` is the truth; the directory shows it, and a person may edit what it shows. `data/memories/`
holds a lock of its own, and the checksum of every file as it was last shown: so an edit is told from a file that was
not written yet, whenever the process was killed. An edit becomes a change of the document, and is never written over.
What is no note (a picture, a link, a large file) is left alone.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aether.api.home import Home, change, find, read
from aether.errors import AetherError, UnsafePath
from aether.memory import memory_tool as memory_memory_tool
from aether.memory.memory_tool import (
    MAX_FILE_BYTES,
    ROOT,
    Files,
    apply_edits,
    checksum,
    compare,
    storable,
    writable,
)
from aether.store import config, files
from aether.store.commit import Author
from aether.store.files import (
    TEMP_SUFFIX,
    locked,
    make_directory,
    storage_errors,
    sync_directory,
    write_whole,
)
from aether.types import Change, Finding

# A person's edit is named in the log by its paths; more than this many say no more.
_NAMED_CHARS = 200
_OPEN = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)


class _Touched(Exception):
    """A person saved a file since it was looked at: it must not be written over."""


class DirectoryState(NamedTuple):
    """The directory as it stands."""

    files: Files
    """What the document says."""
    texts: dict[str, str]
    """The notes in the directory, by path."""
    others: dict[str, int]
    """Bytes of what else is there."""
    stamps: dict[str, str]
    """The checksum of every note as it was last shown."""


@contextlib.contextmanager
def directory_lock(home: Path) -> Iterator[None]:
    """Let no other process use the directory during the block.

    Raises:
        LockTimeout: another one used it for too long.
    """
    with storage_errors(home):
        make_directory(_data(home))
    with locked(_data(home), timeout=config.or_default(home).lock_timeout_seconds):
        yield


@contextlib.contextmanager
def directory_updated(home: Path) -> Iterator[None]:
    """Show afterwards what the block, which changes documents, did to the files; edits by hand are brought in before.

    What is amiss with the directory keeps nothing else from being done: the next command of the tool says it.
    """
    if not _data(home).is_dir():
        yield
        return
    with contextlib.suppress(AetherError), directory_lock(home):
        synchronize_directory(home)
    yield
    with contextlib.suppress(AetherError), directory_lock(home):
        synchronize_directory(home)


def synchronize_directory(home: Path) -> DirectoryState:
    """Return the directory after bringing in what a person edited, and showing what is due; the caller is `alone`.

    Raises:
        UnsafePath: the directory is a link.
        StorageFailed: it cannot be read or written.
    """
    files: Files = read(home).documents[memory_memory_tool.DOCUMENT]["files"]
    found = _scan(home)
    stamps = _stamps(home) if _directory(home).is_dir() else {}
    edited = compare(files, found.texts, others=found.others, stamps=stamps).edited
    if edited:
        author = Author("edited by hand", by="hand", reason=", ".join(edited)[:_NAMED_CHARS])
        change(
            home,
            lambda documents: apply_edits(documents[memory_memory_tool.DOCUMENT], edited),
            author,
        )
        files = read(home).documents[memory_memory_tool.DOCUMENT]["files"]
    return write_directory(home, DirectoryState(files, found.texts, found.others, stamps))


def preview_directory(home: Path) -> DirectoryState:
    """Return the directory with what a person edited, where nothing can be written: none of it is brought in.

    Raises:
        UnsafePath: the directory is a link.
        StorageFailed: it cannot be read.
    """
    document = read(home).documents[memory_memory_tool.DOCUMENT]
    found = _scan(home)
    stamps = _stamps(home) if _directory(home).is_dir() else {}
    edited = compare(document["files"], found.texts, others=found.others, stamps=stamps).edited
    files = {path: text for path, text in {**document["files"], **edited}.items() if text is not None}
    return DirectoryState(files, found.texts, found.others, stamps)


def write_directory(home: Path, shown: DirectoryState) -> DirectoryState:
    """Return `shown` after writing what the directory does not show yet; the caller is `alone`."""
    due = compare(shown.files, shown.texts, others=shown.others, stamps=shown.stamps).pending
    texts = dict(shown.texts)
    with storage_errors(home, left="What was changed is stored; the next command shows it."):
        for path, text in due.items():
            if _written(home, path, there=texts.get(path), text=text):
                texts.pop(path, None)
                texts |= {} if text is None else {path: text}
        stamps = {
            path: checksum(text) if text == shown.files.get(path) else shown.stamps[path]
            for path, text in texts.items()
            if text == shown.files.get(path) or path in shown.stamps
        }
        if stamps != _stamps(home):
            write_whole(_stamp_file(home), files.json_document(stamps))
    left = {path: len(text.encode()) for path, text in texts.items() if path not in shown.files}
    return DirectoryState(shown.files, texts, shown.others | left, stamps)


def _written(home: Path, path: str, *, there: str | None, text: str | None) -> bool:
    """Write or remove the file at `path`, and return whether that was done; not if a person is at it meanwhile."""
    target = _directory(home) / path[len(ROOT) + 1 :]
    if os.path.realpath(target) != str(target):
        return False  # below a link, which is the person's own

    def untouched() -> None:
        if _text(target, path) != there:
            raise _Touched

    try:
        untouched()
        if text is None:
            _remove(target, _directory(home))
        else:
            make_directory(target.parent)
            # Writing and syncing take milliseconds, in which an editor may save.
            write_whole(target, text.encode(), last_look=untouched)
    except (_Touched, FileExistsError, IsADirectoryError, NotADirectoryError):
        return False  # or a person made a file where a directory belongs, or the other way round
    return True


def _remove(target: Path, root: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        target.unlink()
    directory = target.parent
    with contextlib.suppress(OSError):  # something else is in it
        while directory != root:
            directory.rmdir()
            directory = directory.parent
    sync_directory(directory)


def _scan(home: Path) -> DirectoryState:
    root = _directory(home)
    found = DirectoryState({}, {}, {}, {})
    if root.is_symlink():
        raise UnsafePath(
            "the directory of the memory tool is a link.",
            fix="Put a directory in its place.",
            where=str(root),
        )
    with storage_errors(home):
        if root.exists():
            _walk(root, ROOT, found)
    return found


def _walk(directory: Path, path: str, found: DirectoryState) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            place = f"{path}/{entry.name}"
            if entry.name.endswith(TEMP_SUFFIX):
                continue
            if entry.is_dir(follow_symlinks=False):
                _walk(directory / entry.name, place, found)
                continue
            text = _text(directory / entry.name, place)
            if text is not None:
                found.texts[place] = text
            else:
                with contextlib.suppress(FileNotFoundError):
                    # A name that is not UTF-8 is shown as far as it is.
                    named = os.fsencode(place).decode("utf-8", "replace")
                    found.others[named] = entry.stat(follow_symlinks=False).st_size


def _text(file: Path, path: str) -> str | None:
    """Return the note in `file`; None where there is none, or what is there is no note."""
    if not writable(path, None):
        return None
    try:
        if not stat.S_ISREG(file.lstat().st_mode):
            return None
        handle = os.open(file, _OPEN)
    except FileNotFoundError:
        return None
    with open(handle, "rb") as opened:
        data = opened.read(MAX_FILE_BYTES + 1)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if len(data) <= MAX_FILE_BYTES and storable(text) else None


def _stamps(home: Path) -> dict[str, str]:
    try:
        found = files.parse_json(_stamp_file(home).read_bytes(), where="stamp.json")
    except (FileNotFoundError, AetherError):
        return {}
    return found if isinstance(found, dict) else {}


def _directory(home: Path) -> Path:
    return home / "memories"


def _data(home: Path) -> Path:
    return home / "data" / "memories"


def _stamp_file(home: Path) -> Path:
    return _data(home) / "stamp.json"


def examine_directory(home: Path) -> list[Finding]:
    """Return what stands in the directory and is no note, and which notes hold what looks like a secret."""
    if not _directory(home).is_dir():
        return []
    try:
        found = _scan(home)
    except AetherError as reason:
        return [Finding("error", reason.code, "memories/", reason.what, reason.fix)]
    what = f"no note: no text, a link, or more than {memory_memory_tool.format_size(MAX_FILE_BYTES)}. It is left alone."
    odd = [
        Finding("info", "no-note", path[1:], what, "Nothing to do, or move it away.") for path in found.others
    ]
    return odd + _secrets(found.texts)


def _secrets(texts: Files) -> list[Finding]:
    from aether.redact.redact import redact  # compiles patterns: not for a command's sake

    return [
        Finding(
            "warning", "secret", path[1:], "it holds what looks like a secret.",
            "Take it out of the file; earlier versions stay in the journal.",
        )
        for path, text in texts.items() if redact(text) != text
    ]  # fmt: skip


class ToolAnswer(NamedTuple):
    """What goes back to the model."""

    text: str
    is_error: bool


def memory_tool(command: Mapping[str, Any], *, home: Home = None) -> ToolAnswer:
    """Return the answer to `command`, the input of a call of the tool, after doing what it says.

    What the model got wrong is an answer, not an exception. A home that cannot be written can still be viewed.

    Raises:
        NotFound, LockTimeout, StorageFailed, UnsafePath: the home or its directory cannot be used.
    """
    name, path = command.get("command"), command.get("path", command.get("old_path"))
    author = Author(f"memory {name}", by="model", reason=str(path))

    def plan(documents: Mapping[str, Any]) -> Change:
        return memory_memory_tool.change(documents[memory_memory_tool.DOCUMENT], command, others=shown.others)

    place = find(home)
    if name == "view" and not os.access(place, os.W_OK):
        shown = preview_directory(place)
        return ToolAnswer(*memory_memory_tool.run(shown.files, command, others=shown.others)[:2])
    with directory_lock(place):
        shown = synchronize_directory(place)
        answer = memory_memory_tool.run(shown.files, command, others=shown.others)
        if answer.files is not None:
            # Once more with the home's own lock held: an undo may have been in between.
            answer = change(place, plan, author).result
        if answer.files is not None:
            write_directory(place, shown._replace(files=answer.files))
    return ToolAnswer(answer.text, answer.is_error)


def clear_memory_files(*, home: Home = None) -> int:
    """Remove every file of the memory tool and return how many there were; `undo` brings them back."""
    place = find(home)

    def plan(documents: Mapping[str, Any]) -> Change:
        document = documents[memory_memory_tool.DOCUMENT]
        return memory_memory_tool.replace_files(document, {})._replace(result=len(document["files"]))

    with directory_lock(place):
        shown = synchronize_directory(place)
        count: int = change(place, plan, Author("memory clear")).result
        write_directory(place, shown._replace(files={}))
    return count
