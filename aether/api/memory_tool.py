"""The memory tool of Anthropic (`memory_20250818`) over a home, and the directory `memories/` that shows its files.

Each command that changes something is one transaction of the home: in the log, reversed by `undo`, safe in a crash. The
document `memories` is the truth; the directory shows it, and a person may edit its files. `data/memories/` holds a lock of
its own, and the checksum of every file as it was last written: so an edit differs from a file that was not written yet,
even after a crash. An edit becomes a change of the document and is never overwritten. Other files (a picture, a link, a
large file) are left unchanged. The commands themselves are in `memory.memory_tool`.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.api.home import Home, change, find, read
from aether.errors import AetherError, UnsafePath, public
from aether.memory import memory_tool as tool
from aether.memory.memory_tool import MAX_FILE_BYTES, ROOT, Files, checksum, compare
from aether.store import config, files
from aether.store.authors import Author
from aether.store.files import locked, make_directory, storage_errors, write_whole
from aether.types import Change, Finding

# Characters: the log names a person's edit by its paths, up to this length.
_NAMED_CHARS = 200
_OPEN = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
)


class _Touched(Exception):
    """A person saved a file since it was read: it must not be overwritten."""


class DirectoryState(NamedTuple):
    """The directory and the document, as they were read."""

    files: Files
    """Notes of the document, by path."""
    texts: dict[str, str]
    """Notes in the directory, by path."""
    others: dict[str, int]
    """Sizes in bytes of the other files."""
    stamps: dict[str, str]
    """Checksum of every note as it was last written."""


@contextlib.contextmanager
def directory_lock(home: Path) -> Iterator[None]:
    """Exclude other processes from the directory during the block.

    Raises:
        LockTimeout: another one used it for too long.
    """
    with storage_errors(home):
        make_directory(_data(home))
    with locked(_data(home), timeout=config.or_default(home).lock_timeout_seconds):
        yield


@contextlib.contextmanager
def directory_updated(home: Path) -> Iterator[None]:
    """Store edits by hand before the block, which changes documents, and write its changes to the directory after it.

    A damaged directory stops nothing else: the next command of the tool reports it.
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
    """Store the edits of a person, write the missing changes, and return the directory; under `directory_lock`.

    Raises:
        UnsafePath: the directory is a link.
        StorageFailed: it cannot be read or written.
    """
    state, edits = _read_directory(home)
    if edits:
        author = Author("edited by hand", by="hand", reason=", ".join(edits)[:_NAMED_CHARS])
        change(home, lambda documents: tool.apply_edits(documents[tool.DOCUMENT], edits), author)
        state = state._replace(files=read(home).documents[tool.DOCUMENT]["files"])
    return write_directory(home, state)


def preview_directory(home: Path) -> DirectoryState:
    """Return the directory with the edits of a person, none of them stored: for a home that cannot be written.

    Raises:
        UnsafePath: the directory is a link.
        StorageFailed: it cannot be read.
    """
    state, edits = _read_directory(home)
    merged = {path: text for path, text in {**state.files, **edits}.items() if text is not None}
    return state._replace(files=merged)


def _read_directory(home: Path) -> tuple[DirectoryState, dict[str, str | None]]:
    """Return the document and the directory as they are, and the edits of a person: None for a removed file."""
    state = _scan(home)._replace(files=read(home).documents[tool.DOCUMENT]["files"])
    if _directory(home).is_dir():
        state = state._replace(stamps=_stamps(home))
    return state, compare(state.files, state.texts, others=state.others, stamps=state.stamps).edited


def write_directory(home: Path, shown: DirectoryState) -> DirectoryState:
    """Write the changes that the directory lacks, and return its new state; under `directory_lock`."""
    missing = compare(shown.files, shown.texts, others=shown.others, stamps=shown.stamps).pending
    texts = dict(shown.texts)
    with storage_errors(home, left="The change is stored; the next command writes it to the directory."):
        for path, text in missing.items():
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
    remaining = {path: len(text.encode()) for path, text in texts.items() if path not in shown.files}
    return DirectoryState(shown.files, texts, shown.others | remaining, stamps)


def _written(home: Path, path: str, *, there: str | None, text: str | None) -> bool:
    """Write or remove the file at `path` and return whether that was done; not if a person changes it meanwhile."""
    target = _directory(home) / path[len(ROOT) + 1 :]
    if os.path.realpath(target) != str(target):
        return False  # below a link, which belongs to the person

    def untouched() -> None:
        if _text(target, path) != there:
            raise _Touched

    try:
        untouched()
        if text is None:
            target.unlink(missing_ok=True)
            directory = target.parent
            with contextlib.suppress(OSError):  # it holds other files
                while directory != _directory(home):
                    directory.rmdir()
                    directory = directory.parent
            files.sync_directory(directory)
        else:
            make_directory(target.parent)
            # An editor may save during the milliseconds of writing and syncing.
            write_whole(target, text.encode(), last_look=untouched)
    except (_Touched, FileExistsError, IsADirectoryError, NotADirectoryError):
        return False  # or a person put a file in the place of a directory, or the reverse
    return True


def _scan(home: Path) -> DirectoryState:
    root = _directory(home)
    state = DirectoryState({}, {}, {}, {})
    if root.is_symlink():
        raise UnsafePath(
            "the directory of the memory tool is a link.",
            fix="Put a directory in its place.",
            where=str(root),
        )
    with storage_errors(home):
        if root.exists():
            _walk(root, ROOT, state)
    return state


def _walk(directory: Path, path: str, state: DirectoryState) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            place = f"{path}/{entry.name}"
            if entry.name.endswith(files.TEMP_SUFFIX):
                continue
            if entry.is_dir(follow_symlinks=False):
                _walk(directory / entry.name, place, state)
                continue
            text = _text(directory / entry.name, place)
            if text is not None:
                state.texts[place] = text
            else:
                with contextlib.suppress(FileNotFoundError):
                    # Bytes of a name that are not UTF-8 are replaced.
                    name = os.fsencode(place).decode("utf-8", "replace")
                    state.others[name] = entry.stat(follow_symlinks=False).st_size


def _text(file: Path, path: str) -> str | None:
    """Return the note in `file`; None if there is no file, or it is not a note."""
    if not tool.writable(path, None):
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
    return text if len(data) <= MAX_FILE_BYTES and tool.storable(text) else None


def _stamps(home: Path) -> dict[str, str]:
    try:
        stamps = files.parse_json(regular.read(_stamp_file(home)), where="stamp.json")
    except (FileNotFoundError, AetherError):
        return {}
    return stamps if isinstance(stamps, dict) else {}


def _directory(home: Path) -> Path:
    return home / "memories"


def _data(home: Path) -> Path:
    return home / "data" / "memories"


def _stamp_file(home: Path) -> Path:
    return _data(home) / "stamp.json"


def examine_directory(home: Path) -> list[Finding]:
    """Return findings: files that are not notes, and notes that seem to hold a secret."""
    if not _directory(home).is_dir():
        return []
    try:
        scan = _scan(home)
    except AetherError as reason:
        return [Finding("error", reason.code, "memories/", reason.what, reason.fix)]
    from aether.redact.redact import redact  # it compiles patterns, which commands do not need

    size = tool.format_size(MAX_FILE_BYTES)
    what = f"not a note: not text, a link, or more than {size}. It is left unchanged."
    return [
        *(Finding("info", "no-note", path[1:], what, "Nothing to do, or move it away.") for path in scan.others),
        *(
            Finding(
                "warning", "secret", path[1:], "seems to hold a secret.",
                "Remove it from the file; earlier versions stay in the journal.",
            )
            for path, text in scan.texts.items() if redact(text) != text
        ),
    ]  # fmt: skip


class ToolAnswer(NamedTuple):
    """Answer to the model."""

    text: str
    is_error: bool


@public
def memory_tool(command: Mapping[str, Any], *, home: Home = None) -> ToolAnswer:
    """Run `command`, the input of a call of the tool, and return the answer.

    A mistake of the model yields an answer, not an exception. A home that cannot be written can still be viewed.

    Raises:
        NotFound, LockTimeout, StorageFailed, UnsafePath: the home or its directory cannot be used.
    """
    name, path = command.get("command"), command.get("path", command.get("old_path"))
    author = Author(f"memory {name}", by="model", reason=str(path))

    def plan(documents: Mapping[str, Any]) -> Change:
        return tool.change(documents[tool.DOCUMENT], command, others=directory.others)

    place = find(home)
    if name == "view" and not os.access(place, os.W_OK):
        directory = preview_directory(place)
        return ToolAnswer(*tool.run(directory.files, command, others=directory.others)[:2])
    with directory_lock(place):
        directory = synchronize_directory(place)
        answer = tool.run(directory.files, command, others=directory.others)
        if answer.files is not None:
            # Again under the lock of the home: an undo may have changed the document since.
            answer = change(place, plan, author).result
        if answer.files is not None:
            write_directory(place, directory._replace(files=answer.files))
    return ToolAnswer(answer.text, answer.is_error)


@public
def clear_memory_files(*, home: Home = None) -> int:
    """Remove every file of the memory tool and return how many there were; `undo` brings them back."""
    place = find(home)

    def plan(documents: Mapping[str, Any]) -> Change:
        document = documents[tool.DOCUMENT]
        return tool.replace_files(document, {})._replace(result=len(document["files"]))

    with directory_lock(place):
        directory = synchronize_directory(place)
        count: int = change(place, plan, Author("memory clear")).result
        write_directory(place, directory._replace(files={}))
    return count
