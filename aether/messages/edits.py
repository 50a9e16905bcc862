"""File changes: which files a tool call changed, and what is new in them, told from its arguments.

Tools are told apart by what they are given, not by their names: a path with new text is an edit in every
agent. Patches and files written by the shell count as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from aether.messages.blocks import word
from aether.redact.private import without_blocks
from aether.redact.redaction import redact
from aether.shapes import JsonObject
from aether.text.patterns import lazy

_PATH_KEYS = ("file_path", "path", "filename", "notebook_path", "target_file", "filePath")
_TEXT_KEYS = (
    "content",
    "file_text",
    "new_string",
    "new_str",
    "newText",
    "new_source",
    "contents",
    "code_edit",
    "insert_text",
)
_OLD_KEYS = ("old_string", "old_str", "oldText")
_VIEWING = {"view", "read", "undo_edit"}
# Enough to recognise a change by; the file itself is the record of it.
_NAMES = 8
_READ_CHARS = 20_000
LINE_CHARS = 100

_PATCHED = lazy(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_WRITTEN = lazy(r"(?:^|[;&|\n]\s*)(?:cat|tee)\b[^\n|;&]*?(?:>{1,2}\s*)?([\w./~@+-]+)\s*<<")
_REDIRECTED = lazy(r"(?:^|[;&|\n]\s*)cat\s*>{1,2}\s*([\w./~@+-]+)")
_IN_PLACE = lazy(r"\bsed\s+-i\S*\s+(?:-e\s+)?(?:'[^']*'|\"[^\"]*\")\s+([\w./~@+-]+)")
_DEFINED = lazy(
    r"^\+?\s*(?:(?:export|default|async|pub|public|private|protected|static|abstract|final|override)\s+)*"
    r"(?:def|func|function|class|type|interface|struct|enum|fn|trait|const)\s+(?:\([^)]{0,80}\)\s*)?([A-Za-z_]\w*)",
    re.MULTILINE,
)


class FileChange(NamedTuple):
    """A file that a call changed; `action` is `created`, `changed` or `deleted`."""

    path: str
    action: str
    lines: int = 0
    names: tuple[str, ...] = ()
    """What the new text defines."""
    first: str = ""
    """The first new line, where nothing is defined."""


def file_changes(arguments: JsonObject, command: str = "") -> Iterator[FileChange]:
    """Yield the files that a call with these arguments changes.

    >>> [change.path for change in file_changes({"file_path": "a.py", "old_string": "x", "new_string": "def y(): ..."})]
    ['a.py']
    """
    patch = next(
        (arguments[key] for key in ("input", "patch") if isinstance(arguments.get(key), str)), command
    )
    if "*** Begin Patch" in patch:
        yield from _patched(patch)
    elif command:
        yield from _by_shell(command)
    else:
        yield from _by_tool(arguments)


def _by_tool(arguments: JsonObject) -> Iterator[FileChange]:
    path = next(
        (arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str) and arguments[key]), None
    )
    if path is None or word(arguments.get("command")) in _VIEWING:
        return
    edits = arguments.get("edits")
    listed = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else [arguments]
    new = [edit[key] for edit in listed for key in _TEXT_KEYS if isinstance(edit.get(key), str)]
    old = [edit[key] for edit in listed for key in _OLD_KEYS if isinstance(edit.get(key), str)]
    if not new:
        return
    whole = not old and any(key in arguments for key in ("content", "file_text", "contents"))
    yield _described(path, "created" if whole else "changed", "\n".join(new), "\n".join(old))


def _patched(patch: str) -> Iterator[FileChange]:
    heads = list(_PATCHED.finditer(patch))
    ends = [*(head.start() for head in heads[1:]), len(patch)]
    for head, end in zip(heads, ends, strict=False):
        body = patch[head.end() : end].partition("*** End Patch")[0]
        added = "\n".join(line[1:] for line in body.split("\n") if line.startswith("+"))
        removed = "\n".join(line[1:] for line in body.split("\n") if line.startswith("-"))
        action = {"Add": "created", "Delete": "deleted"}.get(head[1], "changed")
        yield _described(head[2], action, added, removed)


def _by_shell(command: str) -> Iterator[FileChange]:
    read = command[:_READ_CHARS]
    written = [found[1] for pattern in (_WRITTEN, _REDIRECTED) for found in pattern.finditer(read)]
    for path in dict.fromkeys(written):
        text = read.partition("\n")[2]
        yield _described(
            path, "changed" if ">>" in read else "created", text if len(written) == 1 else "", ""
        )
    for found in _IN_PLACE.finditer(read):
        yield FileChange(found[1], "changed")


def _described(path: str, action: str, new: str, old: str) -> FileChange:
    new, old = without_blocks(new)[:_READ_CHARS], old[:_READ_CHARS]
    known = set(_DEFINED.findall(old))
    names = tuple(dict.fromkeys(name for name in _DEFINED.findall(new) if name not in known))[:_NAMES]
    lines = new.count("\n") + 1 if new else 0
    return FileChange(path, action, lines, names, "" if names else _first_new_line(new, old))


def _first_new_line(new: str, old: str) -> str:
    before = {line.strip() for line in old.split("\n")}
    for line in new.split("\n"):
        bare = line.strip()
        if len(bare) > 3 and bare not in before:
            bare = redact(bare)  # before it is cut: half a secret does not look like one
            return bare if len(bare) <= LINE_CHARS else bare[: LINE_CHARS - 1] + "…"
    return ""
