"""Paths: the place of a home, of shipped files, and of files inside a home.

Every name that comes from outside (an id, a phase, an argument) passes `inside` or `file_name` before
it touches the disk; comparison is by path components with symlinks resolved, never by string prefix.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from aether import project, regular
from aether.errors import InvalidInput, NotFound, UnsafePath, shown

HOME_NAME = project.HOME_NAME
# 255 bytes is the limit of common file systems; suffixes such as `.json` and temp names need room.
MAX_NAME_CHARS = 120
_SAFE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
# Windows keeps these for devices, with any extension.
RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10))})


def resource(relative: str) -> Path:
    """Return the path of a shipped file, such as `data/memory.json` or `prompts/architect.md`.

    Raises:
        NotFound: the file is not part of this installation.
    """
    return Path(project.shipped(relative))


def project_root(home: Path) -> str:
    """Return the directory of the project whose home this is; empty where the home lies elsewhere."""
    return str(home.parent) if home.name == HOME_NAME else ""


def find_home(home: str | os.PathLike[str] | None = None) -> Path:
    """Return the resolved home: `home`, else `AETHER_HOME`, else that of the project, else the nearest `.aether/` above.

    `home` may name the home itself or the directory that holds it. Two names of one directory give
    one answer, so that a symlinked home has one lock. All worktrees of a git repository have one home.

    Raises:
        NotFound: no home was named, and there is no home at or above the current directory.
        UnsafePath: the home of this project leads out of it.
        InvalidInput: the name cannot be that of a directory.
    """
    given_path = os.fspath(home) if home is not None else os.environ.get("AETHER_HOME", "")
    if given_path:
        return _resolved(given_path)
    here = Path.cwd()
    of_project = home_of_project(str(here))
    if os.path.isdir(of_project):
        return Path(of_project)
    for directory in here.parents:
        if (directory / HOME_NAME).is_dir():
            return Path(os.path.realpath(directory / HOME_NAME))
    raise NotFound(
        "no .aether/ here or above.", fix='Run "aether init", or name one with --home.', where=str(here)
    )


def home_of_project(cwd: str, project_dir: str = "") -> str:
    """Return the resolved path of the home of a project, whether or not it is there.

    Raises:
        UnsafePath: it leads out of the project.
    """
    home = project.home_of(cwd, project_dir)
    if not home:
        raise UnsafePath(
            f"the {HOME_NAME} of this project, or something in it, is a link that leads elsewhere.",
            fix="Remove the link. If it is yours, name the home it leads to with --home or AETHER_HOME.",
            where=cwd,
        )
    return home


def _resolved(directory: str) -> Path:
    try:
        return Path(os.path.realpath(home_in(Path(directory).expanduser())))
    except (OSError, ValueError, RuntimeError) as reason:  # too long, NUL, a lone surrogate, an unknown ~user
        raise InvalidInput(
            f"{shown(directory)} cannot be a path.", fix="Name a directory with --home.", where="home"
        ) from reason


def home_in(path: Path) -> Path:
    """Return the home that `path` names: itself, or the `.aether/` in it."""
    nested = path / HOME_NAME
    return nested if path.name != HOME_NAME and nested.is_dir() else path


def inside(home: Path, relative: str) -> Path:
    """Return `home / relative`, resolved, after checking that it is inside `home`.

    Raises:
        UnsafePath: it is absolute, or leads out of the home.
    """
    root = os.path.realpath(home)
    try:
        path = os.path.realpath(os.path.join(root, relative))
    except ValueError:  # NUL, a lone surrogate
        path = ""
    if not path or os.path.isabs(relative) or os.path.commonpath([root, path]) != root:
        raise UnsafePath(
            f"{shown(relative)} leads out of the home.", fix="Use a path below the home.", where=root
        )
    return Path(path)


def is_plain(name: object) -> bool:
    """Return whether `name` has the form of a path below a directory: names between `/`, and nothing else.

    >>> is_plain("data/memory.json"), is_plain("../memory.json"), is_plain("/etc/passwd"), is_plain("data//x")
    (True, False, False, False)
    """
    if not isinstance(name, str) or "\0" in name or not {"", ".", ".."}.isdisjoint(name.split("/")):
        return False
    return os.name != "nt" or not any(sign in name for sign in ":\\")


def own_file(home: Path, name: object) -> Path:
    """Return the path of the file that a record of the home calls `name`, in a directory that no link leads to.

    The record may have come with a repository, or be damaged. What is at the path may still be a link.

    Raises:
        UnsafePath: it is not the name of a file below the home.
    """
    if is_plain(name) and isinstance(name, str):
        directory, _, last = name.rpartition("/")
        root = os.path.realpath(home)
        if str(inside(home, directory)) == os.path.normpath(os.path.join(root, directory)):
            return Path(root, directory, last)
    what = f"{shown(name)} is not the name of a file of the home."
    raise UnsafePath(what, fix='Run "aether doctor".', where=str(home))


def directory_name(text: str, *, what: str) -> str:
    """Return the name of the directory of `text`, whatever it is: no two texts have the same one.

    Letters, digits, `_`, `-` and dots inside stay; the bytes of anything else are written `%2f`; a long text is cut
    and ends in its hash.

    Raises:
        InvalidInput: it is empty, or no text.

    >>> directory_name("user:42", what="conversation"), directory_name("../evil", what="conversation")
    ('user%3a42', '%2e.%2fevil')
    """
    if not isinstance(text, str) or not text:
        raise InvalidInput(
            f"{shown(text)} cannot be the id of a {what}.", fix="Use a text that is not empty.", where=what
        )
    data = text.encode("utf-8", "surrogatepass")
    name = text
    if not _PLAIN.issuperset(text):
        name = "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02x}" for byte in data)
    if name[0] in ".-" or name.partition(".")[0].lower() in RESERVED:
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if name[-1] == ".":
        name = f"{name[:-1]}%2e"
    return name if len(name) <= MAX_NAME_CHARS else f"{name[:80]}~{regular.digest(data)[:32]}"


def file_name(text: str, *, what: str) -> str:
    """Return `text` unchanged if it is safe as a file name on every system.

    Raises:
        InvalidInput: it is empty, too long, a device name, or has other than letters, digits, `.`, `_`, `-`.
    """
    safe = (
        re.fullmatch(_SAFE_NAME, text)
        and not text.endswith(".")
        and text.partition(".")[0].lower() not in RESERVED
    )
    if not safe or len(text) > MAX_NAME_CHARS:
        raise InvalidInput(
            f"{shown(text)} cannot be the name of a {what}.",
            fix=f"Use letters, digits, '.', '_' and '-', at most {MAX_NAME_CHARS} characters.",
            where=what,
        )
    return text
