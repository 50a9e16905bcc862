"""Installing in the hosts of this machine: one list, and for each host the change of its settings."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aether.errors import require_one_of
from aether.hosts import DEFAULT_HOST, HOSTS, programs, settings
from aether.hosts.programs import own_program
from aether.hosts.settings import FileChange
from aether.project import root_of

Scope = Literal["project", "local", "user"]
"""Whose settings: those of a project, of one person in it, as Claude Code has them, or of the user."""


class HostState(NamedTuple):
    """A host, and whether it is on this machine."""

    host: str
    label: str
    present: bool
    """Whether its program is on PATH, or the user has settings of it."""


class HostChange(NamedTuple):
    """What installing in a host, or removing from it, has changed; in a dry run, would change."""

    host: str
    label: str
    files: list[FileChange]
    advice: str
    """What a person has to do in the host; empty if nothing."""


class NativeMemory(NamedTuple):
    """What installing or uninstalling native memory did; in a dry run, what it would do."""

    settings: FileChange
    directory: str
    """The directory that Claude Code used before, and uses again afterwards."""
    files: list[str]
    """The notes that were brought in, or given back."""
    left: list[str]
    """Files that stay where they are: no text, too large, or written by somebody else meanwhile."""


def hosts() -> list[HostState]:
    """Return every host that aether knows, Claude Code first."""
    return [_state(host) for host in HOSTS]


def _state(host: str) -> HostState:
    module = import_module(HOSTS[host])
    is_present = any(map(shutil.which, module.PROGRAMS)) or module.directory().is_dir()
    return HostState(host, module.LABEL, is_present)


def default_scope(own: Scope = "user") -> Scope:
    """Return the scope that works on this machine: project if the programs are on PATH in every shell, else one's `own`."""
    return own if programs.path_advice() else "project"


def install(host: str, scope: Scope, *, project: Path | None = None, dry_run: bool = False) -> HostChange:
    """Put aether's hooks into the settings of `host`, and return the changes.

    The settings of a project are shared: they start the program on PATH, and nothing where it is missing.

    Raises:
        InvalidInput: the host is unknown.
        InvalidDocument: a file does not have the form of the host; nothing was changed.
        Conflict: the file is somebody else's, or somebody changed it meanwhile.
        StorageFailed: a file cannot be read or written.
    """
    module, edits = _edits(host, scope, project)
    files = settings.install(edits, module.directory(), shared=scope == "project", dry_run=dry_run)
    return HostChange(host, module.LABEL, files, module.ADVICE)


def uninstall(host: str, scope: Scope, *, project: Path | None = None, dry_run: bool = False) -> HostChange:
    """Remove aether's hooks from the settings of `host`, and return the changes; the memory stays.

    Raises:
        InvalidInput: the host is unknown.
        InvalidDocument: a file does not have the form of the host; nothing was changed.
        Conflict: somebody else changed a file meanwhile.
        StorageFailed: a file cannot be read or written.
    """
    module, edits = _edits(host, scope, project, removes=True)
    files = settings.uninstall(edits, module.directory(), dry_run=dry_run)
    return HostChange(host, module.LABEL, files, "")


def _edits(
    host: str, scope: Scope, project: Path | None, *, removes: bool = False
) -> tuple[Any, list[settings.Edit]]:
    require_one_of(host, HOSTS, "a host", where="host")
    module = import_module(HOSTS[host])
    if host == DEFAULT_HOST:  # it has several files, and settings of one person in a project
        scopes = ("project", "local") if removes and scope == "project" else (scope,)
        return module, [edit for name in scopes for edit in module.edits(name, project)]
    is_user = scope == "user"
    root = module.directory() if is_user else project or Path(root_of(str(Path.cwd())))
    return module, [module.edit(own_program() if is_user else None, root, is_user=is_user)]
