"""The memory tool of Anthropic (`memory_20250818`) over a home, and the directory `memories/` that shows its files.

Each command that changes something is one transaction of the home: in the log, reversed by `undo`, safe in a crash. The
document `memories` is the truth; the directory shows it, and a person may edit its files. `data/memories/` holds a lock of
its own, and the checksum of every file as it was last written: so an edit differs from a file that was not written yet,
even after a crash. An edit becomes a change of the document. Other files (a picture, a link, a large file) are left
unchanged. The commands themselves are in `memory.memory_tool`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether.api.home import Home, change, find, read
from aether.errors import (
    AetherError,
    InvalidDocument,
    NotFound,
    Refused,
    StorageFailed,
    UnsafePath,
    public,
    shown,
)
from aether.memory import memory_tool as tool
from aether.memory.memory_tool import MAX_FILE_BYTES, ROOT, Files, checksum, compare
from aether.store import config, documents, files
from aether.store.authors import MODEL, Author
from aether.store.files import locked, make_directory, save, storage_errors, write_whole
from aether.types import Change, Finding

# Share of the words of a query, as for entities of the knowledge graph.
MATCH_SHARE = 0.6
# Characters: the log names a person's edit by its paths, up to this length.
_NAMED_CHARS = 200


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
    author = Author(f"memory {name}", by=MODEL, reason=str(path))

    def plan(documents: Mapping[str, Any]) -> Change:
        return tool.change(documents[tool.DOCUMENT], command, others=state.others)

    place = find(home)
    if name == "view" and not os.access(place, os.W_OK):
        state, edits = _read_directory(place)
        notes = {path: text for path, text in {**state.files, **edits}.items() if text is not None}
        return ToolAnswer(*tool.run(notes, command, others=state.others)[:2])
    with directory_lock(place):
        state = synchronize_directory(place)
        answer = tool.run(state.files, command, others=state.others)
        if answer.files is not None:
            # Again under the lock of the home: an undo may have changed the document since.
            try:
                answer = change(place, plan, author).result
            except Refused as reason:
                return ToolAnswer(str(reason), True)
        if answer.files is not None:
            _write_directory(place, state._replace(files=answer.files))
    return ToolAnswer(answer.text, answer.is_error)


@public
def edit_memory_files(edit: Callable[[Files], Files], *, reason: str, home: Home = None) -> None:
    """Commit what `edit` makes of the files as one change of a program.

    Raises:
        InvalidInput: a path would be a file and a directory, or there would be more text than the home takes.
        NotFound, LockTimeout, StorageFailed: the home or its directory cannot be used.
    """
    place = find(home)

    def plan(documents: Mapping[str, Any]) -> Change:
        edited = tool.checked_files(edit(documents[tool.DOCUMENT]["files"]))
        return tool.replace_files(documents[tool.DOCUMENT], edited)._replace(result=edited)

    with directory_lock(place):
        state = synchronize_directory(place)
        edited: Files = change(place, plan, Author("memory store", by=MODEL, reason=reason)).result
        _write_directory(place, state._replace(files=edited))


@public
def clear_memory_files(*, home: Home = None) -> int:
    """Remove every file of the memory tool and return how many there were; `undo` brings them back."""
    place = find(home)

    def plan(documents: Mapping[str, Any]) -> Change:
        document = documents[tool.DOCUMENT]
        return tool.replace_files(document, {})._replace(result=len(document["files"]))

    with directory_lock(place):
        state = synchronize_directory(place)
        count: int = change(place, plan, Author("memory clear")).result
        _write_directory(place, state._replace(files={}))
    return count


def recall_notes(query: str, *, limit: int, home: Home = None) -> list[tool.Match]:
    """Return the notes that have most of the words of `query`, best first."""
    return tool.matches(read(home).documents[tool.DOCUMENT]["files"], query, at_least=MATCH_SHARE)[:limit]


def read_note(path: str, *, home: Home = None) -> str:
    """Return the text of a note.

    Raises:
        NotFound: there is no such note.
    """
    notes: Files = read(home).documents[tool.DOCUMENT]["files"]
    if path not in notes:
        raise NotFound(f"there is no note {shown(path)}.", fix="Take paths from recall.", where="memories")
    return notes[path]


def keep_edits(home: Path, *, by: str, reason: str) -> None:
    """Commit what the program `by` wrote into the directory, in its name.

    Raises:
        Refused: `memory.agents` lets no agent write; the notes are as they were, and what was written is in quarantine.
        AetherError: it could not be stored; the files are left as they are, and are edits still.
    """
    with directory_lock(home):
        try:
            synchronize_directory(home, Author("memory write", by=by, reason=reason))
        except Refused:
            _put_back(home)
            raise


def _put_back(home: Path) -> None:
    """Move edited notes into quarantine, and write those of the document in their place; under `directory_lock`."""
    state, edits = _read_directory(home)
    texts = dict(state.texts)
    for path, text in edits.items():
        if text is not None:
            documents.quarantine(home, Path(path).name, text.encode(), at=clock.stamp(clock.now()))
        if _write(home, path, before=text, text=state.files.get(path)):
            texts.pop(path, None)
            texts |= {path: state.files[path]} if path in state.files else {}
    _write_directory(home, state._replace(texts=texts))


def notes_in(directory: Path) -> tuple[dict[str, str], list[str]]:
    """Return the notes in any directory, by the paths that they have in a home, and the names of its other files."""
    texts, others = _scan_directory(directory)
    return texts, [path[len(ROOT) + 1 :] for path in others]


def bring_in(home: Path, texts: Mapping[str, str], *, by: str, reason: str) -> None:
    """Add the notes of the program `by`; one whose place another text has goes into a directory of its name.

    Raises:
        InvalidInput: there would be more text than the home takes.
    """

    def plan(documents: Mapping[str, Any]) -> Change:
        present = documents[tool.DOCUMENT]["files"]
        places = {
            path: path if present.get(path, text) == text else f"{ROOT}/{by}{path[len(ROOT) :]}"
            for path, text in texts.items()
        }
        together = tool.checked_files({**present, **{places[path]: text for path, text in texts.items()}})
        return tool.replace_files(documents[tool.DOCUMENT], together)._replace(result=together)

    with directory_lock(home):
        state = synchronize_directory(home)
        together: Files = change(home, plan, Author("memory import", by=by, reason=reason)).result
        _write_directory(home, state._replace(files=together))


def give_back(
    home: Path, directory: Path, known: Mapping[str, str], *, dry_run: bool = False
) -> tuple[list[str], list[str]]:
    """Write all notes to `directory`, and return their names, and those of files that were kept beside them.

    `known` are the checksums of the notes that were brought in from there: one that was deleted since is deleted there, and
    a file that is not as it was then is kept under another name.
    """
    notes = read(home).documents[tool.DOCUMENT]["files"]
    present, _ = _scan_directory(directory)
    changed = {path: text for path, text in notes.items() if present.get(path) != text}
    changed |= {path: None for path in present if path in known and path not in notes}
    others = [path for path in changed if path in present and checksum(present[path]) != known.get(path)]
    with storage_errors(directory):
        for path, text in {} if dry_run else changed.items():
            target = directory / path[len(ROOT) + 1 :]
            if os.path.realpath(target) != os.path.join(os.path.realpath(directory), path[len(ROOT) + 1 :]):
                continue  # a link leads out of it
            if path in others and text is None:
                continue
            if path in others:
                os.replace(target, target.with_name(f"{target.name}.before-aether"))
            if text is None:
                target.unlink()
            else:
                save(target, text.encode())
    return sorted(path[len(ROOT) + 1 :] for path in notes), sorted(path[len(ROOT) + 1 :] for path in others)


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


def synchronize_directory(home: Path, author: Author | None = None) -> DirectoryState:
    """Store the edits of a person, write the missing changes, and return the directory; under `directory_lock`.

    `author` made the edits, if that was no person.

    Raises:
        UnsafePath: the directory is a link.
        StorageFailed: it cannot be read or written.
    """
    state, edits = _read_directory(home)
    if edits:
        author = author or Author("edited by hand", by="hand")
        about = " ".join(filter(None, (author.reason, ", ".join(edits))))
        author = author._replace(reason=about[:_NAMED_CHARS])
        change(home, lambda documents: tool.apply_edits(documents[tool.DOCUMENT], edits), author)
        state = state._replace(files=read(home).documents[tool.DOCUMENT]["files"])
    return _write_directory(home, state)


def examine_directory(home: Path) -> list[Finding]:
    """Return findings: files that are not notes, and notes that seem to hold a secret."""
    try:
        texts, other_files = _scan(home)
    except AetherError as reason:
        return [Finding("error", reason.code, "memories/", reason.what, reason.fix)]
    from aether.redact.redact import redact  # it compiles patterns, which commands do not need

    size = tool.format_size(MAX_FILE_BYTES)
    what = f"not a note: not text, a link, or more than {size}. It is left unchanged."
    fix = "Remove it from the file; earlier versions stay in the journal."
    return [
        *(Finding("info", "no-note", path[1:], what, "Nothing to do, or move it away.") for path in other_files),
        *(
            Finding("warning", "secret", path[1:], "seems to hold a secret.", fix)
            for path, text in texts.items() if redact(text) != text
        ),
    ]  # fmt: skip


def _read_directory(home: Path) -> tuple[DirectoryState, dict[str, str | None]]:
    """Return the document and the directory as they are, and the edits of a person: None for a removed file."""
    texts, other_files = _scan(home)
    stamps = _stamps(home) if _directory(home).is_dir() else {}
    state = DirectoryState(read(home).documents[tool.DOCUMENT]["files"], texts, other_files, stamps)
    return state, compare(state.files, texts, others=other_files, stamps=stamps).edited


def _write_directory(home: Path, state: DirectoryState) -> DirectoryState:
    """Write the changes that the directory lacks, and return its new state; under `directory_lock`."""
    missing = compare(state.files, state.texts, others=state.others, stamps=state.stamps).pending
    texts = dict(state.texts)
    with storage_errors(home, left="The change is stored; the next command writes it to the directory."):
        for path, text in missing.items():
            if _write(home, path, before=texts.get(path), text=text):
                texts.pop(path, None)
                texts |= {} if text is None else {path: text}
        stamps = {
            path: checksum(text) if text == state.files.get(path) else state.stamps[path]
            for path, text in texts.items()
            if text == state.files.get(path) or path in state.stamps
        }
        if stamps != _stamps(home):
            write_whole(_stamp_file(home), files.json_document(stamps))
    foreign = {path: len(text.encode()) for path, text in texts.items() if path not in state.files}
    return DirectoryState(state.files, texts, state.others | foreign, stamps)


def _write(home: Path, path: str, *, before: str | None, text: str | None) -> bool:
    """Write or remove the file at `path` and return whether that was done; not if a person has changed it since."""
    target = _directory(home) / path[len(ROOT) + 1 :]
    # Below a link, everything belongs to the person.
    if os.path.realpath(target) != str(target) or _text(target, path) != before:
        return False
    try:
        if text is not None:
            make_directory(target.parent)
            write_whole(target, text.encode())
            return True
        target.unlink(missing_ok=True)
        directory = target.parent
        with contextlib.suppress(OSError):  # it holds other files
            while directory != _directory(home):
                directory.rmdir()
                directory = directory.parent
        files.sync_directory(directory)
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        return False  # a person put a file in the place of a directory, or the reverse
    return True


def _scan(home: Path) -> tuple[dict[str, str], dict[str, int]]:
    """Return the texts of the notes in the directory, and the sizes of the other files, by path."""
    if _directory(home).is_symlink():
        raise UnsafePath(
            "the directory of the memory tool is a link.",
            fix="Put a directory in its place.",
            where=str(_directory(home)),
        )
    return _scan_directory(_directory(home))


def _scan_directory(root: Path) -> tuple[dict[str, str], dict[str, int]]:
    texts: dict[str, str] = {}
    other_files: dict[str, int] = {}
    with storage_errors(root):
        for directory, below, names in os.walk(root, onerror=_raise_unless_missing):
            links = [name for name in below if os.path.islink(f"{directory}/{name}")]
            for name in (name for name in (*names, *links) if not name.endswith(files.TEMP_SUFFIX)):
                file = Path(directory) / name
                path = f"{ROOT}/{file.relative_to(root)}"
                text = _text(file, path)
                if text is not None:
                    texts[path] = text
                    continue
                with contextlib.suppress(FileNotFoundError):
                    # Bytes of a name that are not UTF-8 are replaced.
                    other_files[os.fsencode(path).decode("utf-8", "replace")] = file.lstat().st_size
    return texts, other_files


def _raise_unless_missing(reason: OSError) -> None:
    """Raise the failure to list a directory: its notes must not seem to be deleted."""
    if not isinstance(reason, FileNotFoundError):
        raise reason


def _text(file: Path, path: str) -> str | None:
    """Return the note in `file`; None if there is no file, or it is not a note."""
    if not tool.writable(path, None):
        return None
    try:
        text = regular.read(file, most=MAX_FILE_BYTES).decode()
    except (FileNotFoundError, NotADirectoryError, UnsafePath, InvalidDocument, UnicodeDecodeError):
        return None
    return text if tool.storable(text) else None


def _stamps(home: Path) -> dict[str, str]:
    path = _stamp_file(home)
    try:
        with storage_errors(path):
            stamps = files.parse_json(regular.read(path), where="stamp.json")
    except StorageFailed:
        raise
    except AetherError:
        return {}
    return stamps if isinstance(stamps, dict) else {}


def _directory(home: Path) -> Path:
    return home / "memories"


def _data(home: Path) -> Path:
    return home / "data" / "memories"


def _stamp_file(home: Path) -> Path:
    return _data(home) / "stamp.json"
