"""The memory tool: notes that a model keeps in `/memories`, by six commands, and the directory that shows them.

The files are data, text by path; a command returns its answer and, if it changes something, the new files. The answers
are the sentences that models are trained on (Anthropic's `memory_20250818`). A directory exists as long as a file is
in it. Every path of a command passes `canonical`: it has one form, stays below `/memories`, and is a valid name on
every system; two paths that some system treats as equal never exist together. Every accepted text can be written to a
file and read back unchanged.

A person may edit the directory: a file with the checksum of its last export is unchanged, however the process ended;
any other difference from the document is a person's edit, and wins. The previous text remains in the journal. Reading
and writing the directory is `api.memory_tool`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate, islice
from types import MappingProxyType
from typing import Any, NamedTuple

from aether.errors import InvalidInput, UnsafePath, shown
from aether.paths import RESERVED
from aether.regular import digest
from aether.store.files import TEMP_SUFFIX
from aether.store.patch import diff
from aether.text.regex import lazy
from aether.text.words import stems
from aether.types import Change

ROOT = "/memories"
# 255 bytes is the limit of common file systems; the name of a temp file is 25 longer.
MAX_NAME_BYTES = 200
# Below the 4096 bytes that systems take, with room for the home.
MAX_PATH_BYTES = 1024
# Dots, slashes, backslashes, NUL and the percent sign itself, disguised.
_ENCODED = lazy(r"%(?:2e|2f|5c|25|00)", re.IGNORECASE)

Index = dict[str, tuple[str, bool]]
"""Case-folded path -> the existing path, and whether it is a file."""


def canonical(path: str) -> str:
    """Return `path` in its one form, without double slashes or one at its end.

    Raises:
        UnsafePath: it is not below `/memories`, or not a valid name on every system.

    >>> canonical("/memories//tasks/./today.md/")
    '/memories/tasks/today.md'
    """
    above, root, *remainder = [*path.split("/"), ""]
    if above or f"/{root}" != ROOT:
        raise _unsafe(path, f"does not begin with {ROOT}")
    if "\\" in path or _ENCODED.search(path):
        raise _unsafe(path, "holds a backslash or an encoded character")
    names = [name for name in remainder if name not in ("", ".")]
    for name in names:
        if name == "..":
            raise _unsafe(path, "leads up")
        if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in name):
            raise _unsafe(path, "holds a control character or half of a surrogate pair")
        if name.partition(".")[0].rstrip().lower() in RESERVED or name.endswith((TEMP_SUFFIX, ".", " ")):
            raise _unsafe(
                path, f"holds {shown(name)}, which a system or aether itself keeps for something else"
            )
        if len(name.encode()) > MAX_NAME_BYTES:
            raise _unsafe(path, f"holds a name of more than {MAX_NAME_BYTES} bytes")
    joined = "/".join([ROOT, *names])
    if len(joined.encode()) > MAX_PATH_BYTES:
        raise _unsafe(path, f"is longer than {MAX_PATH_BYTES} bytes")
    return joined


def _unsafe(path: str, why: str) -> UnsafePath:
    return UnsafePath(f"the path {why}.", fix=f"Use a plain path below {ROOT}.", where=shown(path))


def index(files: Iterable[str]) -> Index:
    """Return the paths of `files` and of their directories, for `blocking_path`."""
    paths: Index = {}
    for file in files:
        paths |= {_folded(place): (place, place == file) for place in _with_parents(file)}
    return paths


def blocking_path(known: Index, path: str) -> str:
    """Return the existing path that prevents a file or directory at `path`, or "".

    It is `path` itself, a file above it, or a name that some systems treat as equal.
    """
    for place in _with_parents(path):
        present, is_file = known.get(_folded(place), ("", False))
        if present and (present != place or place == path or is_file):
            return present
    return ROOT if path == ROOT else ""


def _with_parents(path: str) -> list[str]:
    """Return `path` and its parent directories below the root, the longest first."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(len(names), 2, -1)]


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


DOCUMENT = "memories"
# A note, not a data set; the whole text is in the journal at each of its changes.
MAX_FILE_BYTES = 1 << 20
# The document is written whole at each fold: this takes about thirty milliseconds.
MAX_TOTAL_BYTES = 16 << 20
# The tool's description for the model says that a view is cut here.
MAX_VIEW_CHARS = 16_000
MAX_VIEW_LINES = 999_999
_NUMBER_WIDTH = len(str(MAX_VIEW_LINES))
_LEVELS = 2
# A longer list of line numbers is no help: the model needs a longer old_str.
_MOST_NUMBERS = 20
# Lines shown above and below a change.
_CONTEXT_LINES = 2
Files = Mapping[str, str]
_NO_OTHERS: Mapping[str, int] = MappingProxyType({})
_NO_STAMPS: Mapping[str, str] = MappingProxyType({})


class Answer(NamedTuple):
    """The answer to the model, and the files after its command."""

    text: str
    is_error: bool = False
    files: Files | None = None
    """The new files; None if nothing changes."""


class _Tree(NamedTuple):
    files: Files
    others: Mapping[str, int]
    """Sizes in bytes of the other files in the directory, by path: they are no notes, and never touched."""

    def below(self, path: str) -> list[str]:
        """Return all files at `path` or below it."""
        return [file for file in (*self.files, *self.others) if file == path or file.startswith(f"{path}/")]


def change(
    document: Mapping[str, Any], command: Mapping[str, Any], *, others: Mapping[str, int] = _NO_OTHERS
) -> Change:
    """Return the change of `command` to the document `memories`; its result is the `Answer`."""
    answer = run(document["files"], command, others=others)
    if answer.files is None:
        return Change({}, result=answer)
    return replace_files(document, answer.files)._replace(result=answer)


def replace_files(document: Mapping[str, Any], files: Files) -> Change:
    """Return the change that replaces the files of the document by `files`."""
    return Change({DOCUMENT: diff(document, {**document, "files": dict(files)})})


def run(files: Files, command: Mapping[str, Any], *, others: Mapping[str, int] = _NO_OTHERS) -> Answer:
    """Return the answer to `command` as the model gave it; an invalid one is answered with an error, never raised.

    >>> run({}, {"command": "create", "path": "/memories/a.md", "file_text": "Ants."}).text
    'File created successfully at: /memories/a.md'
    >>> run({"/memories/a.md": "Ants."}, {"command": "view", "path": "/memories/b.md"})[:2]
    ('The path /memories/b.md does not exist. Please provide a valid path.', True)
    """
    name = command.get("command")
    if not isinstance(name, str) or name not in _COMMANDS:
        return _wrong(f"Unknown command {shown(name)}. Use one of {', '.join(_COMMANDS)}")
    act, fields = _COMMANDS[name]
    fields_given = {field: value for field, value in command.items() if value is not None}
    arguments = {"new_str": "", "view_range": None} | fields_given
    for field, kind in fields.items():
        if type(arguments.get(field)) is not kind:
            return _wrong(
                f"The `{field}` parameter of {name} is missing or not {_KINDS[kind]}: {shown(arguments.get(field))}"
            )
    try:
        paths = {field: canonical(arguments[field]) for field in fields if field.endswith("path")}
        new = paths.get("new_path") or (paths["path"] if name == "create" else "")
        if ":" in new:  # files of earlier releases may have one
            raise _unsafe(new, "holds a colon, which Windows takes for a drive or a stream")
    except UnsafePath as reason:
        return _wrong(str(reason))
    return act(_Tree(files, others), arguments | paths)


def _wrong(text: str) -> Answer:
    return Answer(f"Error: {text}", is_error=True)


def _missing(path: str) -> str:
    return f"The path {path} does not exist. Please provide a valid path."


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _view(tree: _Tree, fields: Mapping[str, Any]) -> Answer:
    path = fields["path"]
    if path in tree.files:
        return _view_file(path, _lines(tree.files[path]), fields["view_range"])
    if path in tree.others:
        return _wrong(f"{path} is not text that can be shown")
    if path != ROOT and not tree.below(path):
        return Answer(_missing(path), is_error=True)
    head = f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding hidden items and node_modules:"
    return Answer("\n".join([head, *_cut(_listed(tree, path))]))


def _listed(tree: _Tree, path: str) -> list[str]:
    """Return the lines of a directory: size and path of each entry, the directory itself first."""
    sizes = {path: 0}
    for entry in sorted(tree.below(path)):
        size = tree.others[entry] if entry in tree.others else len(_bytes(tree.files[entry]))
        names = entry[len(path) + 1 :].split("/")
        if any(name.startswith(".") or name == "node_modules" for name in names):
            continue
        for level in range(min(len(names), _LEVELS) + 1):
            place = "/".join([path, *names[:level]])
            sizes[place] = sizes.get(place, 0) + size
    return [
        f"{format_size(sizes[place])}\t{place}" for place in sorted(sizes, key=lambda place: place.split("/"))
    ]


def format_size(size: int) -> str:
    """Return `size`, in bytes, in readable units.

    >>> format_size(512), format_size(1536), format_size(5 << 20)
    ('512B', '1.5K', '5.0M')
    """
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}K" if size < 1 << 20 else f"{size / (1 << 20):.1f}M"


def _view_file(path: str, lines: list[str], view_range: Any) -> Answer:
    if len(lines) > MAX_VIEW_LINES:
        return Answer(f"File {path} exceeds maximum line limit of {MAX_VIEW_LINES:,} lines.", is_error=True)
    first, last = 1, len(lines)
    if view_range is not None:
        if not isinstance(view_range, list | tuple) or [type(entry) for entry in view_range] != [int, int]:
            return _wrong(f"Invalid `view_range` parameter: {shown(view_range)}. It should be [start, end]")
        first, last = (
            max(1, view_range[0]),
            len(lines) if view_range[1] == -1 else min(view_range[1], len(lines)),
        )
        # A model asks for all of an empty file after it emptied one.
        if first > last and (lines or first > 1):
            return _wrong(
                f"Invalid `view_range` parameter: {list(view_range)}. It should be within the lines of the file: "
                f"[1, {len(lines)}]"
            )
    head = f"Here's the content of {path} with line numbers:"
    return Answer("\n".join([head, *_cut(_numbered(lines, first, last), first=first, total=len(lines))]))


def _lines(text: str) -> list[str]:
    r"""Return the lines of `text`, separated by line feeds only; a final line feed starts no further line.

    >>> _lines("a\r\n\nb\n"), _lines("")
    (['a\r', '', 'b'], [])
    """
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _numbered(lines: list[str], first: int, last: int) -> list[str]:
    return [
        f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines[first - 1 : last], first)
    ]


def _cut(lines: list[str], *, first: int = 1, total: int = 0) -> list[str]:
    """Return as many of `lines` as one view may have, and how to see the others."""
    endings = accumulate(len(line) + 1 for line in lines)
    shown_lines = lines[: sum(end <= MAX_VIEW_CHARS + 1 for end in endings)]
    if len(shown_lines) == len(lines):
        return lines
    cut = f"[Cut at {MAX_VIEW_CHARS:,} characters"
    if not shown_lines:
        return [lines[0][:MAX_VIEW_CHARS], f"{cut}, within line {first} of {total}.]"]
    if not total:
        return [*shown_lines, f"{cut}. View a directory below to see more.]"]
    last = first + len(shown_lines) - 1
    return [*shown_lines, f"{cut}: lines {first} to {last} of {total}. Use view_range to see the others.]"]


def _create(tree: _Tree, fields: Mapping[str, Any]) -> Answer:
    path = fields["path"]
    occupied = blocking_path(index([*tree.files, *tree.others]), path)
    if occupied:
        return _wrong(f"File {path} already exists" if occupied == path else _clash(path, occupied))
    return _store(tree, path, fields["file_text"], f"File created successfully at: {path}")


def _clash(path: str, occupied: str) -> str:
    if path.startswith(f"{occupied}/"):
        return f"The path {occupied} is a file, not a directory"
    return f"{path} equals {occupied} on some systems; use another name"


def _store(tree: _Tree, path: str, text: str, answer: str) -> Answer:
    if not storable(text):
        return _wrong(f"The text of {path} holds a NUL or half of a surrogate pair, and was not stored")
    size = len(text.encode())
    if size > MAX_FILE_BYTES:
        most = format_size(MAX_FILE_BYTES)
        return _wrong(f"{path} would hold {format_size(size)}, the limit is {most}; nothing was changed")
    total = size + sum(len(_bytes(entry)) for place, entry in tree.files.items() if place != path)
    if total > MAX_TOTAL_BYTES:
        most = format_size(MAX_TOTAL_BYTES)
        return _wrong(f"All files would hold {format_size(total)}, the limit is {most}; delete some first")
    return Answer(answer, files={**tree.files, path: text})


def checked_files(files: Files) -> Files:
    """Return `files` if they can be stored together.

    Raises:
        InvalidInput: a text is no text or too long, or all together are.
    """
    sizes = {path: len(_bytes(text)) for path, text in files.items()}
    for path, text in files.items():
        if not storable(text) or sizes[path] > MAX_FILE_BYTES:
            most = format_size(MAX_FILE_BYTES)
            what = f"it has {format_size(sizes[path])} or holds a NUL or half a character; the limit is {most} of text."
            raise InvalidInput(what, fix="Store less.", where=path)
    if sum(sizes.values()) > MAX_TOTAL_BYTES:
        what = f"all files would hold more than {format_size(MAX_TOTAL_BYTES)}."
        raise InvalidInput(what, fix="Delete some first.", where=ROOT)
    return files


def storable(text: str) -> bool:
    """Return whether `text` can be written to a file and read back as text.

    >>> storable("ants"), storable(chr(0)), storable(chr(0xD800))
    (True, False, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _str_replace(tree: _Tree, fields: Mapping[str, Any]) -> Answer:
    path, old, new = fields["path"], fields["old_str"], fields["new_str"]
    text = tree.files.get(path)
    if text is None:
        return _wrong(_missing(path))
    if "\r\n" in text and (old not in text or _ends_in_crlf(text)):
        old, new = _in_crlf(old), _in_crlf(new)  # a view does not show how lines end
    if old not in text:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old or old not in text:
        return Answer(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.", is_error=True
        )
    if text.count(old) > 1:
        line_numbers = [str(number) for number in islice(_lines_with(text, old), _MOST_NUMBERS + 1)]
        numbers = ", ".join(line_numbers[:_MOST_NUMBERS]) + (
            " and others" if line_numbers[_MOST_NUMBERS:] else ""
        )
        return Answer(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {numbers}. "
            "Please ensure it is unique",
            is_error=True,
        )
    before, _, after = text.partition(old)
    edited = before + new + after
    lines = _lines(edited)
    first = max(1, before.count("\n") + 1 - _CONTEXT_LINES)
    last = min(len(lines), (before + new).count("\n") + 1 + _CONTEXT_LINES)
    head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    snippet = _cut(_numbered(lines, first, last), first=first, total=len(lines))
    return _store(tree, path, edited, "\n".join([head, *snippet]))


def _lines_with(text: str, part: str) -> Iterable[int]:
    r"""Yield the number of each line of `text` in which an occurrence of `part` starts, once, in one pass.

    >>> list(_lines_with("a a\nb\na", "a"))
    [1, 3]
    """
    number, start = 1, 0
    while (place := text.find(part, start)) >= 0:
        number += text.count("\n", start, place)
        yield number
        start = text.find("\n", place) + 1
        number += 1
        if not start:
            return


def _ends_in_crlf(text: str) -> bool:
    """Return whether every line of `text` ends as on Windows."""
    return text.count("\r\n") == text.count("\n") > 0


def _in_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _insert(tree: _Tree, fields: Mapping[str, Any]) -> Answer:
    path, position, added = fields["path"], fields["insert_line"], fields["insert_text"]
    if path not in tree.files:
        return _wrong(f"The path {path} does not exist")
    lines = re.findall(r"[^\n]*\n|[^\n]+", tree.files[path])
    if not 0 <= position <= len(lines):
        return _wrong(
            f"Invalid `insert_line` parameter: {position}. It should be within the range of lines of the file: [0, {len(lines)}]"
        )
    added = added if added.endswith("\n") else f"{added}\n"
    if position == len(lines) and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    lines.insert(position, added)
    edited = "".join(lines)
    return _store(
        tree,
        path,
        _in_crlf(edited) if _ends_in_crlf(tree.files[path]) else edited,
        f"The file {path} has been edited.",
    )


def _delete(tree: _Tree, fields: Mapping[str, Any]) -> Answer:
    path = fields["path"]
    if path == ROOT:
        return _wrong(f"Cannot delete the {ROOT} directory itself")
    deleted = tree.below(path)
    if not deleted:
        return _wrong(f"The path {path} does not exist")
    return _refuse_foreign(tree, deleted) or Answer(
        f"Successfully deleted {path}",
        files={place: text for place, text in tree.files.items() if place not in deleted},
    )


def _refuse_foreign(tree: _Tree, names: list[str]) -> Answer | None:
    places = [place for place in names if place in tree.others]
    return _wrong(f"{', '.join(places[:5])} is not a note of yours and is left alone") if places else None


def _rename(tree: _Tree, fields: Mapping[str, Any]) -> Answer:
    old, new = fields["old_path"], fields["new_path"]
    if ROOT in (old, new):
        return _wrong(f"Cannot rename the {ROOT} directory itself")
    moved, inside = tree.below(old), new.startswith(f"{old}/")
    # An existing destination comes first, as in `create`.
    if tree.below(new) and not inside:
        return _wrong(f"The destination {new} already exists")
    if not moved or inside:
        return _wrong(f"Cannot rename {old} into itself" if moved else f"The path {old} does not exist")
    if path := blocking_path(index({*tree.files, *tree.others} - set(moved)), new):
        return _wrong(_clash(new, path))
    to = {place: new + place[len(old) :] for place in moved}
    try:
        list(map(canonical, to.values()))
    except UnsafePath as reason:
        return _wrong(str(reason))
    return _refuse_foreign(tree, moved) or Answer(
        f"Successfully renamed {old} to {new}",
        files={to.get(place, place): text for place, text in tree.files.items()},
    )


_KINDS = {str: "text", int: "a whole number"}
_Act = Callable[[_Tree, Mapping[str, Any]], Answer]
_COMMANDS: dict[str, tuple[_Act, dict[str, type]]] = {
    "view": (_view, {"path": str}),
    "create": (_create, {"path": str, "file_text": str}),
    "str_replace": (_str_replace, {"path": str, "old_str": str, "new_str": str}),
    "insert": (_insert, {"path": str, "insert_line": int, "insert_text": str}),
    "delete": (_delete, {"path": str}),
    "rename": (_rename, {"old_path": str, "new_path": str}),
}


class Compared(NamedTuple):
    """The differences between directory and document: text by path, None for no file."""

    edited: dict[str, str | None]
    """Edits of a person since the last export."""
    pending: dict[str, str | None]
    """Changes of the document still to be exported: nobody edited the file in between."""


def compare(
    files: Files, texts: Files, *, others: Iterable[str] = (), stamps: Mapping[str, str] = _NO_STAMPS
) -> Compared:
    """Return how the `texts` in the directory differ from `files`; `stamps` are the checksums of the last export.

    >>> compare({"/memories/a": "new"}, {"/memories/a": "old"}, stamps={"/memories/a": checksum("old")}).pending
    {'/memories/a': 'new'}
    """
    edited: dict[str, str | None] = {}
    pending: dict[str, str | None] = {}
    foreign = set(others)
    for path in sorted({*files, *texts, *stamps}):
        stored, there = files.get(path), texts.get(path)
        if there == stored:
            continue
        if path in foreign or checksum(there) != stamps.get(path, ""):
            edited[path] = there
        elif writable(path, stored):
            pending[path] = stored
    return Compared(edited, pending)


def checksum(text: str | None) -> str:
    """Return the checksum of a text; that of no file is empty."""
    return "" if text is None else digest(text.encode("utf-8", "surrogatepass"))


def writable(path: str, text: str | None) -> bool:
    """Return whether `text` may be written to `path`; a hand edit may have put anything into the document."""
    try:
        return canonical(path) == path != ROOT and (text is None or storable(text))
    except UnsafePath:
        return False


class Match(NamedTuple):
    """A note that answers a query."""

    path: str
    passage: str
    """Its paragraph with the most words of the query."""
    share: float
    """The share of the query's words that it has."""


def matches(files: Files, query: str, *, at_least: float) -> list[Match]:
    r"""Return the notes with that share of the words of `query` in text or path, the highest share first.

    >>> matches({"/memories/a.md": "Ants carry.\n\nBees dance."}, "dancing bees", at_least=0.5)[0].passage
    'Bees dance.'
    """
    wanted = set(stems(query))
    answers = []
    for path, text in files.items() if wanted else ():
        share = len(wanted.intersection(stems(f"{path}\n{text}"))) / len(wanted)
        if share >= at_least:
            parts = [part.strip() for part in text.split("\n\n")]
            best = max(parts, key=lambda part: len(wanted.intersection(stems(part))))
            answers.append(Match(path, best, share))
    return sorted(answers, key=lambda match: (-match.share, match.path))


def apply_edits(document: Mapping[str, Any], edited: Mapping[str, str | None]) -> Change:
    """Return the change that stores the `edited` files; one without a place beside the others is left out."""
    files = {path: text for path, text in document["files"].items() if path not in edited}
    paths = index(files)
    for path, text in edited.items():
        if text is not None and not blocking_path(paths, path):
            files[path] = text
            paths |= index([path])
    return replace_files(document, files)
