"""Private: what a person said is not to be remembered, in a text and by its path.

Hooks and imports ask the same functions, so that what the one leaves out the other does not bring.
"""

from __future__ import annotations

import os
import re

# `<private>` is a person's; `<aether-memory …>` is what aether told the model, and is not remembered anew.
INJECTED = "aether-memory"
_BLOCKS = ("private", INJECTED)
_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "filename", "target_file")
_COMMAND_KEYS = ("command", "cmd", "script", "code")
_PATCH_KEYS = ("input", "patch")
_PATCHED = r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): *(.+?)\s*$"
_BETWEEN_WORDS = r"[\s\"'`=;|&<>(){},:]+"


def without_blocks(text: str, names: tuple[str, ...] = _BLOCKS) -> str:
    """Return `text` without its private blocks and those of aether; one that is never closed ends with the text.

    >>> without_blocks("a <private>b <private>c</private> d</private> e")
    'a  e'
    """
    folded = text.lower()
    if not any(f"<{name}" in folded or f"</{name}" in folded for name in names):
        return text
    kept, depth, at = [], 0, 0
    for tag in re.finditer(rf"<(/?)(?:{'|'.join(names)})\b[^>]*(?:>|\Z)", text, re.IGNORECASE):
        if depth == 0:
            kept.append(text[at : tag.start()])
        depth = max(0, depth - 1) if tag[1] else depth + 1
        at = tag.end()
    return "".join([*kept, text[at:]]) if depth == 0 else "".join(kept)


def is_private(given: dict[str, object], patterns: str, cwd: str) -> bool:
    """Return whether the arguments of a call name a path that one of the `patterns` is about, also within a command.

    >>> is_private({"file_path": "/app/secrets/a.txt"}, ".env*, secrets/**", "/app")
    True
    >>> is_private({"command": "cat ./.env.local | wc"}, ".env*, secrets/**", "/app")
    True
    """
    wanted = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
    named = [value for key in _PATH_KEYS if isinstance(value := given.get(key), str)]
    for key in _COMMAND_KEYS:
        value = given.get(key)
        for text in value if isinstance(value, list) else [value]:
            named += re.split(_BETWEEN_WORDS, text) if isinstance(text, str) else []
    for key in _PATCH_KEYS:
        if isinstance(value := given.get(key), str):
            named += re.findall(_PATCHED, value, re.MULTILINE)
    return any(_matches(path, pattern, cwd) for path in named if path for pattern in wanted)


def _matches(path: str, pattern: str, cwd: str) -> bool:
    """Return whether `path`, or a directory that holds it, is what `pattern` means, from `cwd` or from the top."""
    from fnmatch import fnmatch

    whole = os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))
    pattern = os.path.expanduser(pattern).rstrip("/")
    pattern = pattern.removesuffix("/**").removeprefix("**/")
    if os.path.isabs(pattern):
        return any(fnmatch(above, pattern) for above in _above(whole))
    # As in .gitignore: a name alone is meant wherever it stands.
    return any(fnmatch(above, f"*{os.sep}{pattern}") for above in _above(whole))


def _above(path: str) -> list[str]:
    found = [path]
    while os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found
