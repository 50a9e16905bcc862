"""Projects: which project a directory belongs to, and where that project's home is.

One project's memory never shows in another's. A project is a git repository: all its sub-directories and all its
worktrees share one home; a submodule is a project of its own. Where there is no git, it is the directory in which
a session was started, or the nearest above that has a home. A session stays with the project in which it was started,
in any directory. A repository comes from others, and cannot name another's memory: a home in it that leads out of it
is ignored. Only the disk is asked, never git: hooks run on this path.
"""

from __future__ import annotations

import os
import sys

from aether import regular
from aether.errors import NotFound, UnsafePath, shown

HOME_NAME = ".aether"
# The value of AETHER_AUTO_INIT by which no home is made automatically, and of AETHER_CHECK_FACTS without checks.
OFF = "0"
# Whether two names that differ in capitals are usually one file.
IGNORES_CASE = os.name == "nt" or sys.platform == "darwin"


def root_of(cwd: str, project_dir: str = "") -> str:
    """Return the resolved root of the project of a session that was started in `project_dir`, else in `cwd`.

    A session that is now in another directory is still that project's.
    """
    started = project_dir or cwd
    return repository_of(started)[1] or os.path.realpath(started)


def home_of(cwd: str, project_dir: str = "") -> str:
    """Return the resolved path of the project's home, whether or not it is there; empty if it leads elsewhere.

    `AETHER_HOME`, else the nearest `.aether` from `cwd` up to the top of the repository, else that of the project's
    root. Without git the nearest above the root counts too, if it is one's own and not in one's home directory.
    A `cwd` outside of the project in which the session was started, or in another repository below it, changes nothing.
    """
    if directory_name := os.environ.get("AETHER_HOME", ""):
        return _named(os.path.expanduser(directory_name))
    root = root_of(cwd, project_dir)
    start = os.path.realpath(cwd)
    if (repository_of(start)[1] or (root if _is_within(start, root) else "")) != root:
        start = os.path.realpath(project_dir)
    top = repository_of(start)[0]
    for directory in _upward(start):
        path = os.path.join(directory, HOME_NAME)
        if os.path.isdir(path):
            # Above the project, another user's home could be there to be read to us.
            is_own = not hasattr(os, "getuid") or os.stat(path).st_uid == os.getuid()
            if _is_within(directory, root) or top or (is_own and directory != _user_directory()):
                return _kept_within(path, root, top or directory)
        if directory == top:
            break
    return _kept_within(os.path.join(root, HOME_NAME), root, top)


def homes_above(directory: str) -> list[str]:
    """Return where the homes of a directory and of those above it in its repository would be: rules of all of them act there."""
    start = os.path.realpath(directory)
    top = repository_of(start)[0]
    return [os.path.join(path, HOME_NAME) for path in _upward(start) if top and _is_within(path, top)]


def link_out_of(home: str) -> str:
    """Return the first link in `home` that leads out of it, else an empty text.

    The directories that are written without asking are searched: the home itself, its documents with their journal and
    archive, `hooks/`, and `share/`.
    """
    for name in ("", "data", "data/journal", "data/archive", "hooks", "share"):
        directory = os.path.join(home, name) if name else home
        try:
            links = [entry.path for entry in os.scandir(directory) if entry.is_symlink()]
        except OSError:
            continue  # it does not exist yet, or cannot be read
        for path in sorted(links):
            if not _is_within(os.path.realpath(path), home):
                return path
    return ""


def checks_facts() -> bool:
    """Return whether what a brief names is looked up in the project: `AETHER_CHECK_FACTS=0` in the environment switches it off."""
    return os.environ.get("AETHER_CHECK_FACTS") != OFF


def may_create_home(root: str) -> bool:
    """Return whether a home may be made at `root` automatically: not in one's home directory, not at the top of the disk."""
    if os.environ.get("AETHER_AUTO_INIT") == OFF:
        return False
    return root not in (_user_directory(), os.path.dirname(root))


def shipped(relative: str) -> str:
    """Return the path of a shipped file, such as `data/memory.json`.

    Raises:
        NotFound: the file is not part of this installation.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    for root in (os.path.join(package, "_files"), os.path.dirname(package)):
        path = os.path.join(root, relative)
        if os.path.exists(path):
            return path
    raise NotFound(
        f"{shown(relative)} is not shipped with this aether.", fix="Reinstall aether.", where="package"
    )


def user_file() -> str:
    """Return the path of the user's own `config.toml`, whether or not it is there."""
    if sys.platform == "win32":
        base = os.environ.get("APPDATA") or os.path.join("~", "AppData", "Roaming")
    elif sys.platform == "darwin":
        base = os.path.join("~", "Library", "Application Support")
    else:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join("~", ".config")
    return os.path.join(os.path.expanduser(base), "aether", "config.toml")


def state_directory() -> str:
    """Return the directory of what aether remembers about this user, whether or not it is there."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join("~", "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join("~", "Library", "Application Support")
    else:
        base = os.environ.get("XDG_STATE_HOME") or os.path.join("~", ".local", "state")
    return os.path.join(os.path.expanduser(base), "aether")


def index_of(home: str) -> tuple[str, str]:
    """Return the path of the git index of the repository that holds `home`, and that of `home` in it; empty without git."""
    directory = os.path.realpath(home)
    for top in _upward(os.path.dirname(directory)):
        marker = os.path.join(top, ".git")
        if os.path.exists(marker):
            pointer = _read(marker)  # a directory reads as nothing
            if pointer.startswith("gitdir:"):
                marker = os.path.join(top, pointer.removeprefix("gitdir:").strip())
            return os.path.join(marker, "index"), os.path.relpath(directory, top).replace(os.sep, "/")
    return "", ""


def _named(directory: str) -> str:
    """Return the home that `directory` names: itself, or the one in it."""
    within = os.path.join(directory, HOME_NAME)
    holds = os.path.basename(os.path.normpath(directory)) != HOME_NAME and os.path.isdir(within)
    return os.path.realpath(within if holds else directory)


def _kept_within(path: str, root: str, top: str) -> str:
    """Return the resolved home `path`; empty if it, or something in it, leads out of the project."""
    home = os.path.realpath(path)
    inside = _is_within(home, root) or bool(top and _is_within(home, top))
    return home if inside and not link_out_of(home) else ""


def _upward(directory: str) -> list[str]:
    directories = [directory]
    while os.path.dirname(directories[-1]) != directories[-1]:
        directories.append(os.path.dirname(directories[-1]))
    return directories


def _is_within(directory: str, root: str) -> bool:
    return directory == root or directory.startswith(os.path.join(root, ""))


def _user_directory() -> str:
    return os.path.realpath(os.path.expanduser("~"))


def repository_of(directory: str) -> tuple[str, str]:
    """Return the top level of the repository that holds `directory`, and of its main worktree; empty without git.

    A home directory that is a repository, as those who version their settings have it, is no project.
    """
    for path in _upward(os.path.realpath(directory)):
        marker = os.path.join(path, ".git")
        if os.path.exists(marker) and path != _user_directory():
            return path, _main(path, marker)
    return "", ""


def _main(top: str, marker: str) -> str:
    """Return the top level of the main worktree; `top` itself if there is no other.

    The repository must point back to `top`, as it does to each of its worktrees: a `.git` file comes with a clone, and
    could name any project.
    """
    pointer = _read(marker)  # a directory reads as nothing
    if not pointer.startswith("gitdir:"):
        return top
    directory = os.path.join(top, pointer.removeprefix("gitdir:").strip())
    common = _read(os.path.join(directory, "commondir")).strip()
    repository = os.path.realpath(os.path.join(directory, common))
    back = _read(os.path.join(directory, "gitdir")).strip()
    points_back = bool(back) and os.path.realpath(os.path.join(directory, back)) == os.path.realpath(marker)
    of_main = common and points_back and os.path.basename(repository) == ".git" and os.path.isdir(repository)
    return os.path.dirname(repository) if of_main else top


def _read(path: str) -> str:
    try:
        with regular.opened(path) as file:
            return file.read(4096).decode("utf-8", "surrogateescape").replace("\0", "")
    except (OSError, UnsafePath):
        return ""
