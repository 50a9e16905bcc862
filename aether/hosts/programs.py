"""The programs of this environment: which commands hooks start, and whether every shell has them."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from aether.errors import Conflict, InvalidInput
from aether.hosts.settings import FileChange, storage_of

PROGRAM, COMMAND = "aether-hook", "aether"


# How to start the package without scripts. -P: the files of the session's project must not be imported.
MODULE_ARGUMENTS = ("-P", "-m", "aether")


def own_script(name: str) -> str:
    """Return the path of a script of this environment, or nothing if it has none of that name."""
    path = os.path.join(sysconfig.get_path("scripts"), f"{name}.exe" if os.name == "nt" else name)
    return path if os.path.isfile(path) else ""


def is_on_path(name: str) -> bool:
    """Return whether the bare `name` starts this environment's script in every shell.

    A program that is on PATH only while a virtual environment is active is missing in the next session.
    """
    script, program = own_script(name), shutil.which(name)
    if not script or not program:
        return False
    everywhere = sys.prefix == sys.base_prefix or os.path.abspath(program) != script
    return everywhere and os.path.samefile(program, script)


def own_program() -> list[str]:
    """Return the command of this environment's hook program: its own script, else the one on PATH."""
    script = own_script(PROGRAM) or shutil.which(PROGRAM)
    return [os.path.abspath(script)] if script else [sys.executable, *MODULE_ARGUMENTS, "hook"]


def path_advice() -> str:
    """Return what fails because the programs are not on PATH in every shell, and the fix; empty if they are."""
    missing = [name for name in (COMMAND, PROGRAM) if not is_on_path(name)]
    if not missing:
        return ""
    scripts = [script for script in map(own_script, missing) if script]
    directory = link_directory()
    link = ""
    if scripts and os.name != "nt":
        linked = all((directory / name).exists() for name in missing)
        link = f", or {directory}" if linked else ", or let aether link them: aether claude install --link"
    return (
        f"{' and '.join(missing)} of this environment {'are' if missing[1:] else 'is'} not on PATH in every shell. "
        "Without that, these do not work in Claude Code: the plugin, the slash commands, the status line, the hooks of "
        '--project, and the command "aether recall", which the model is shown in its memory. '
        f"Add {sysconfig.get_path('scripts')} to PATH{link}"
    )


def link_directory() -> Path:
    """Return the directory of a user's own programs, which most systems have on PATH."""
    return Path("~/.local/bin").expanduser()


def link_programs(*, dry_run: bool = False) -> list[FileChange]:
    """Link the programs of this environment into `~/.local/bin`, and return the changes.

    A link that leads nowhere, as of an environment that was removed, is replaced; a program of another is left alone.

    Raises:
        InvalidInput: this environment has no such programs, or this system has no links of this kind.
        Conflict: another program of that name is there; nothing was changed.
        StorageFailed: the directory cannot be written.
    """
    scripts = {name: own_script(name) for name in (COMMAND, PROGRAM)}
    if os.name == "nt" or not all(scripts.values()):
        raise InvalidInput(
            "there are no programs to link.",
            fix=f"Add {sysconfig.get_path('scripts')} to PATH.",
            where=sysconfig.get_path("scripts"),
        )
    directory = link_directory()
    changes: dict[str, str] = {}
    for name, script in scripts.items():
        link = directory / name
        if link.exists() and os.path.samefile(link, script):
            changes[name] = "unchanged"
        elif link.exists() or (link.is_symlink() and Path(os.readlink(link)).name != name):
            raise Conflict(
                "is another program. Nothing was changed.",
                fix=f"Remove it, or add {sysconfig.get_path('scripts')} to PATH.",
                where=str(link),
            )
        else:
            changes[name] = "changed" if link.is_symlink() else "created"
    for name, script in scripts.items():
        if not dry_run and changes[name] != "unchanged":
            link = directory / name
            with storage_of(link):
                directory.mkdir(parents=True, exist_ok=True)
                link.unlink(missing_ok=True)
                link.symlink_to(script)
    return [FileChange(str(directory / name), change, "", "") for name, change in changes.items()]
