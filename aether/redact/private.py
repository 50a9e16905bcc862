"""Private: what a person said is not to be remembered, in a text and by its path.

Hooks and imports ask the same functions, so that what the one leaves out the other does not bring.
"""

from __future__ import annotations

import os
import re
from fnmatch import translate
from functools import lru_cache

# `<private>` is a person's; `<aether-memory …>` is what aether told the model, and is not remembered anew.
INJECTED = "aether-memory"
_BLOCKS = ("private", INJECTED)
_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "filename", "target_file")
_COMMAND_KEYS = ("command", "cmd", "script", "code")
_PATCH_KEYS = ("input", "patch")
_PATCHED = r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to):(.+)$"
# No system has a longer path, and a shell takes no longer command.
_PATH_CHARS = 4_096
_COMMAND_CHARS = 1 << 17
# A hundred thousand blocks take a tenth of a second; what is kept of any text is far less.
_SEARCHED_CHARS = 1 << 21
_BETWEEN_WORDS = r"[\s\"'`=;|&<>(){},:]+"


def without_blocks(text: str, names: tuple[str, ...] = _BLOCKS) -> str:
    """Return `text` without its private blocks and those of aether; one that is never closed ends with the text.

    Of a very long text that has any, only the beginning is looked through, and left.

    >>> without_blocks("a <private>b <private>c</private> d</private> e")
    'a  e'
    """
    folded = text.lower()
    if not any(f"<{name}" in folded or f"</{name}" in folded for name in names):
        return text
    text = text[:_SEARCHED_CHARS]
    kept, at = [], 0
    depth = dict.fromkeys(names, 0)  # the end of the one kind is not that of the other
    for tag in re.finditer(rf"<(/?)({'|'.join(names)})\b[^>]*?(?:(/?)>|\Z)", text, re.IGNORECASE):
        if not any(depth.values()):
            kept.append(text[at : tag.start()])
        name = tag[2].lower()
        if not tag[3]:
            depth[name] = max(0, depth[name] - 1) if tag[1] else depth[name] + 1
        at = tag.end()
    return "".join(kept if any(depth.values()) else [*kept, text[at:]])


def without_whole_blocks(text: str) -> str:
    """Return `text`, a statement, without its blocks that are closed; a tag that has no partner is a word of it.

    One of aether's own that is left is written so that nobody takes it for the beginning of a block later.

    >>> without_whole_blocks("Use `<private>` there. <private>mine</private>Never <aether-memory> here.")
    'Use `<private>` there. Never ‹aether-memory> here.'
    """
    while (kept := _without_pairs(text)) != text:
        text = kept
    return re.sub(rf"<(?=/?{INJECTED}\b)", "‹", text, flags=re.IGNORECASE)


def _without_pairs(text: str) -> str:
    opened: list[tuple[str, int]] = []
    waiting = dict.fromkeys(_BLOCKS, 0)
    pairs: list[tuple[int, int]] = []
    for tag in re.finditer(rf"<(/?)({'|'.join(_BLOCKS)})\b[^>]*(?:>|\Z)", text, re.IGNORECASE):
        name = tag[2].lower()
        if not tag[1]:
            opened.append((name, tag.start()))
            waiting[name] += 1
        elif waiting[name]:
            begun = ("", 0)
            while begun[0] != name:
                begun = opened.pop()
                waiting[begun[0]] -= 1
            while pairs and pairs[-1][0] > begun[1]:
                pairs.pop()
            pairs.append((begun[1], tag.end()))
    ends = [0, *(end for _, end in pairs)]
    starts = [*(start for start, _ in pairs), len(text)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def is_private(given: dict[str, object], patterns: str, cwd: str) -> bool:
    """Return whether the arguments of a call name a path that one of the `patterns` is about, also within a command.

    A command that is too long to be looked through counts as private where any pattern is set.

    >>> is_private({"file_path": "/app/secrets/a.txt"}, ".env*, secrets/**", "/app")
    True
    >>> is_private({"command": "cat ./.env.local | wc"}, ".env*, secrets/**", "/app")
    True
    """
    wanted = _wanted(patterns)
    named = [value for key in _PATH_KEYS if isinstance(value := given.get(key), str)]
    for key in _COMMAND_KEYS:
        value = given.get(key)
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                continue
            if len(text) > _COMMAND_CHARS:
                return bool(patterns.strip(" ,"))
            named += re.split(_BETWEEN_WORDS, text)
    for key in _PATCH_KEYS:
        if isinstance(value := given.get(key), str):
            named += (path.strip() for path in re.findall(_PATCHED, value, re.MULTILINE))
    return any(wanted.match(_whole(path, cwd)) for path in {*named} if 0 < len(path) <= _PATH_CHARS)


def _whole(path: str, cwd: str) -> str:
    return os.path.normcase(os.path.normpath(os.path.join(cwd, os.path.expanduser(path))))


@lru_cache(maxsize=4)
def _wanted(patterns: str) -> re.Pattern[str]:
    """Return what finds that a whole path, or a directory that holds it, is what one of the `patterns` means.

    As in .gitignore, a name alone is meant wherever it stands. All are one expression: a command has many words.
    """
    separator = re.escape(os.sep)
    ways = []
    for pattern in filter(
        None, (os.path.expanduser(each.strip()).rstrip("/") for each in patterns.split(","))
    ):
        meant = os.path.normcase(pattern.removesuffix("/**").removeprefix("**/"))
        # What `translate` makes ends with the two signs that mean the end of the text.
        ways.append(("" if os.path.isabs(meant) else f"(?s:.*){separator}") + translate(meant)[:-2])
    return re.compile(rf"(?:{'|'.join(ways)})(?:{separator}|\Z)" if ways else r"(?!)")
