"""Files: which files the calls of a conversation read, changed, created and deleted, and how often.

Told from the arguments of editors, patches and shell commands; only calls that did not fail count. A hash
stands beside a file where its whole content stood in the messages, and goes when it is changed in part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Literal, NamedTuple, cast

from aether.compaction.calls import Call
from aether.compaction.shapes import FileFact
from aether.messages.edits import file_changes

Action = Literal["read", "changed", "created", "deleted"]
HASH_DIGITS = 12
# A command longer than this holds a file; its beginning tells what is done.
_READ_CHARS = 2_000
_WHOLE_KEYS = ("content", "file_text", "contents")
_PATH_KEYS = ("file_path", "path", "filename", "notebook_path", "target_file", "filePath", "file")
_PARTS = frozenset({"offset", "limit", "view_range", "start_line", "end_line", "pages"})
# Tools that look for files or list them name a folder, not a file that was read.
_READERS = re.compile(r"read|view|open|cat|show|get_?file|fetch_?file", re.IGNORECASE)
_SEARCHERS = re.compile(r"grep|glob|search|find|list|\bls\b|tree", re.IGNORECASE)
_NUMBERED = re.compile(r"\s*1(?:→|\t|: |\|)")
_SEGMENTS = re.compile(r"&&|\|\||[;|\n]")
_SHOWS = frozenset({"cat", "head", "tail", "less", "more", "nl", "bat"})
_PRINTS = re.compile(r"sed\s+-n\s+\S+\s+(?P<path>[\w./~@+-]+)\s*$")
_REDIRECTED = re.compile(r"(?<![0-9&>=-])>{1,2}\s*([\w./~@+-]*[\w~@+-])(?=\s|$)")
_WORD = re.compile(r"[\w./~@+-]+")
_LOOKS_LIKE_FILE = re.compile(r"(?:[\w~.@+-]*/)*[\w~.@+-]*(?:\.\w+|[A-Z]\w+)")


class _Touch(NamedTuple):
    path: str
    action: Action
    sha256: str = ""


def files_of(calls: Iterable[Call]) -> tuple[FileFact, ...]:
    """Return the files that `calls` touched, what was touched last at the end.

    What was done counts over what was read: a file that was changed is not listed as read.
    """
    found: dict[str, FileFact] = {}
    for call in calls:
        if call.result is not None and not call.result.is_error:
            for touch in _touches(call):
                _count(found, FileFact(touch.path, touch.action, 1, touch.sha256))
    return tuple(found.values())


def merged_files(older: Iterable[FileFact], newer: Iterable[FileFact]) -> tuple[FileFact, ...]:
    """Return one entry for each path, counts added, what is newest at the end.

    >>> merged_files([FileFact("a", "created", 1, "0f")], [FileFact("b", "read", 1), FileFact("a", "changed", 2)])
    (FileFact(path='b', action='read', times=1, sha256=''), FileFact(path='a', action='created', times=3, sha256=''))
    """
    found = {fact.path: fact for fact in older}
    for fact in newer:
        _count(found, fact)
    return tuple(found.values())


def _count(found: dict[str, FileFact], fact: FileFact) -> None:
    before = found.get(fact.path)
    if before is None:
        found[fact.path] = fact
    elif fact.action == "read" and before.action != "read":
        # Reading changes nothing; whole contents seen again are those that stand there now.
        found[fact.path] = before._replace(sha256=fact.sha256 or before.sha256)
    else:
        found.pop(fact.path)
        counted = before.times if before.action != "read" or fact.action == "read" else 0
        found[fact.path] = fact._replace(
            action=_action(before.action, fact.action), times=counted + fact.times
        )


def _action(before: Action, after: Action) -> Action:
    """Return what became of a file in all: what was created and then changed was created."""
    if after == "changed" and before == "created":
        return "created"
    if after == "created" and before in {"read", "changed"}:
        return "changed"
    return after


def _touches(call: Call) -> Iterator[_Touch]:
    changed = False
    for change in file_changes(call.arguments, call.command):
        changed = True
        yield _Touch(change.path, cast(Action, change.action), _whole_hash(call))
    if call.command:
        yield from _by_shell(call.command[:_READ_CHARS].split("<<", 1)[0])
    elif not changed:
        yield from _reading(call)


def _whole_hash(call: Call) -> str:
    """Return the hash of the content that the call wrote, where it wrote a whole file."""
    texts = [call.arguments[key] for key in _WHOLE_KEYS if isinstance(call.arguments.get(key), str)]
    return digest(texts[0]) if texts and not call.command else ""


def digest(text: str) -> str:
    """Return the first digits of the SHA-256 of `text`, as `sha256sum` says of a file that holds it."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def _reading(call: Call) -> Iterator[_Touch]:
    given = call.arguments
    path = next((given[key] for key in _PATH_KEYS if isinstance(given.get(key), str) and given[key]), "")
    verb = given.get("command")
    reads = verb == "view" or (_READERS.search(call.tool) and not _SEARCHERS.search(call.tool))
    if path and reads and not path.endswith("/"):
        text = call.result.text if call.result else ""
        whole = text and not _PARTS & given.keys() and not _NUMBERED.match(text)
        yield _Touch(path, "read", digest(text) if whole else "")


def _by_shell(command: str) -> Iterator[_Touch]:
    for part in _SEGMENTS.split(command):
        words = part.split()
        program = words[0] if words else ""
        named = [word.strip("'\"") for word in words[1:] if not word.startswith("-")]
        if program in _SHOWS and ">" not in part:
            yield from (_Touch(path, "read") for path in named if _LOOKS_LIKE_FILE.fullmatch(path))
        elif program == "sed" and (printed := _PRINTS.search(part)):
            yield _Touch(printed["path"], "read")
        elif program == "rm" or words[:2] == ["git", "rm"]:
            gone = named if program == "rm" else named[1:]
            yield from (_Touch(path, "deleted") for path in gone if _LOOKS_LIKE_FILE.fullmatch(path))
        elif program == "mv" or words[:2] == ["git", "mv"]:
            yield from _moved(named if program == "mv" else named[1:])
        elif program != "cat" and (written := _REDIRECTED.search(part)) and written[1] != "/dev/null":
            yield _Touch(written[1], "changed" if ">>" in part else "created")


def _moved(named: list[str]) -> Iterator[_Touch]:
    if len(named) == 2 and all(map(_LOOKS_LIKE_FILE.fullmatch, named)):
        yield _Touch(named[0], "deleted")
        yield _Touch(named[1], "created")
