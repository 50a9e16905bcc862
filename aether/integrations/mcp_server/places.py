"""Places: which home a call is about, found anew for each call, and made where that is allowed.

Whoever has started the server wants to remember; so a home that is not there yet is made, but never in one's home
directory or at the top of the disk unless it is named, and not at all with AETHER_AUTO_INIT=0.
"""

from __future__ import annotations

import os
from pathlib import Path

from aether import paths, project
from aether.operations.home import init

# Claude Code tells the servers it starts which project they are for.
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


def place(home: str | None) -> Path:
    """Return the home that is named, by `home` or AETHER_HOME, else that of the project.

    Raises:
        NotFound: there is none, and none may be made.
        UnsafePath: that of the project leads out of it.
        StorageFailed: it cannot be made.
    """
    named = home or os.environ.get("AETHER_HOME", "")
    cwd, started = os.getcwd(), os.environ.get(PROJECT_VARIABLE, "")
    found = paths.find_home(named or paths.home_of_project(cwd, started))
    if _is_free(found) and _may_make(named, cwd, started):
        return init(found)
    return found


def _is_free(home: Path) -> bool:
    """Return whether a home may stand there: nothing does, or what hooks put into one that is not made yet."""
    return not home.exists() or (home.name == paths.HOME_NAME and not (home / "data").exists())


def _may_make(named: str, cwd: str, started: str) -> bool:
    if named:
        return os.environ.get("AETHER_AUTO_INIT") != project.OFF
    return project.may_make(project.root_of(cwd, started))
