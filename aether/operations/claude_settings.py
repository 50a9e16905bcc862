"""Claude Code's settings: our hooks and MCP server put into files that people keep, and taken out again.

Before a file is changed, what it was is kept in the directory of the user; writing is atomic and goes through symlinks; a file that
somebody else changes meanwhile is left to them. Putting in twice changes nothing the second time, and taking out
gives the bytes from before (`claude_merging` holds what makes that so).
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from aether import clock
from aether import project as project_of
from aether.errors import AetherError, Conflict, InvalidDocument, InvalidInput, StorageFailed, shown
from aether.operations import claude_handlers, claude_merging
from aether.operations.edge import Home
from aether.operations.home import init
from aether.paths import find_home
from aether.shapes import JsonObject
from aether.store.files import write_whole

SCOPES = ("project", "local", "user")
# Of the digest of a path: enough to tell some thousand projects apart.
PLACE_CHARS = 12
# What others of the project read too; settings of one person are its owner's alone, as Claude Code makes them.
SHARED_MODE = 0o644
# Others get it too: it says nothing of this machine.
SHARED_SERVER: JsonObject = {"command": claude_handlers.COMMAND, "args": ["mcp"]}
BOM = "\ufeff"
# What is remembered of a project is not part of it: it shall not be committed by accident.
IGNORE_ALL = b"*\n"
_Merge = Callable[[str], str]
_Unmerge = Callable[[str, str], str]


class FileChange(NamedTuple):
    """What was done to one file; in a dry run, what would be."""

    path: str
    change: str
    """`created`, `changed`, `removed` or `unchanged`."""
    backup: str
    """Where what it was is kept; empty where nothing was kept."""
    diff: str


class _Plan(NamedTuple):
    """A file's bytes as they are and as they shall be; `None` where there is no file."""

    path: Path
    before: bytes | None
    after: bytes | None
    obsolete: tuple[Path, ...] = ()
    """Backups that say no more than the file itself will."""


def claude_directory() -> Path:
    """Return the directory in which Claude Code keeps its settings and transcripts."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path("~/.claude").expanduser())


def project_directory(start: Path | None = None) -> Path:
    """Return the directory whose `.claude/` counts for sessions that are started in `start`, else here.

    Claude Code reads only that of the directory it is started in. Seen from below, that is most likely the nearest
    with a `.claude/`, up to the top of the checkout; else that top.
    """
    here = Path(os.path.realpath(start or Path.cwd()))
    above = [here, *here.parents]
    tops = [at for at, path in enumerate(above) if (path / ".git").exists()]
    within = above[: tops[0] + 1] if tops else [here]
    user = os.path.realpath(claude_directory())
    return next(
        (path for path in within if (path / ".claude").is_dir() and str(path / ".claude") != user), within[-1]
    )


def default_scope() -> str:
    """Return the scope that works on this machine: the project's where our programs are on PATH, else one's own."""
    return "local" if claude_handlers.path_advice() else "project"


def settings_path(scope: str, *, project: Path | None = None) -> Path:
    """Return the settings file of a scope: project, local or user.

    Raises:
        InvalidInput: there is no such scope.
    """
    if scope not in SCOPES:
        raise InvalidInput(
            f"{shown(scope)} is not a scope.", fix=f"Use one of {', '.join(SCOPES)}.", where="scope"
        )
    if scope == "user":
        return claude_directory() / "settings.json"
    name = "settings.local.json" if scope == "local" else "settings.json"
    return (project or project_directory()) / ".claude" / name


def is_users(path: Path) -> bool:
    """Return whether a settings file stands in the directory of the user's own: a project there is none."""
    return os.path.realpath(path.parent) == os.path.realpath(claude_directory())


def server_path(scope: str, *, project: Path | None = None) -> Path:
    """Return the file in which Claude Code keeps the MCP servers of a scope."""
    if scope == "project":
        return (project or project_directory()) / ".mcp.json"
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path("~").expanduser()) / ".claude.json"


def wanted_groups(scope: str) -> JsonObject:
    """Return the group of handlers that installing puts into the settings of `scope` for each event."""
    if scope == "project":
        return claude_handlers.shared_groups()
    return claude_handlers.own_groups(claude_handlers.program())


def own_server() -> JsonObject:
    """Return the entry of the MCP server for one person: its bare name only where that is ours in every shell."""
    name = claude_handlers.COMMAND
    script = claude_handlers.own_script(name) or shutil.which(name)
    words = [os.path.abspath(script)] if script else [sys.executable, *claude_handlers.MODULE]
    if claude_handlers.is_on_path(name):
        words = [name]
    return {"command": words[0], "args": [*words[1:], "mcp"]}


def plugin_directory() -> Path:
    """Return the directory of the plugin, which is a marketplace of itself as well."""
    return Path(__file__).parents[1] / "integrations" / "claude_code" / "plugin"


def make_home(named: Home = None) -> tuple[Path, bool]:
    """Return the home of this project and whether it was made just now; git ignores one that was.

    Raises:
        StorageFailed: the directory cannot be written.
    """
    place = find_home(named or project_of.home_of(os.getcwd()))
    made = not (place / "data").is_dir()
    init(place)
    ignore = place / ".gitignore"
    if made and not ignore.exists():
        with _disk(ignore):
            write_whole(ignore, IGNORE_ALL)
    return place, made


def can_serve() -> bool:
    """Return whether the package that the MCP server needs is installed."""
    return importlib.util.find_spec("mcp") is not None


def install(
    scope: str = "project", *, project: Path | None = None, dry_run: bool = False
) -> list[FileChange]:
    """Put our hooks into the settings of `scope`, with the MCP server for a project, and return what that did.

    The servers of a user stand in a file that Claude Code rewrites all the time; they are its own to add.

    Raises:
        InvalidDocument: a file is not JSON, or not of the form that Claude Code reads; nothing was changed.
        Conflict: somebody else changed a file meanwhile.
        StorageFailed: a file cannot be read or written.
    """
    plans = []
    for path, merge, _ in _files(scope, project):
        before = _read(path)
        text = _text(path, before)
        plans.append(_Plan(path, before, _bytes(merge(text), like=before)))
    return [_applied(plan, shared=scope == "project", dry_run=dry_run) for plan in plans]


def uninstall(
    scope: str = "project", *, project: Path | None = None, dry_run: bool = False
) -> list[FileChange]:
    """Take our hooks and our MCP server out of the files of `scope`, wherever in them they are now.

    Raises:
        InvalidDocument: a file is not JSON; nothing was changed.
        Conflict: somebody else changed a file meanwhile.
        StorageFailed: a file cannot be read or written.
    """
    plans = [_plan_out(path, merge, unmerge) for path, merge, unmerge in _files(scope, project)]
    return [_applied(plan, shared=scope == "project", dry_run=dry_run) for plan in plans]


def settings(path: Path) -> JsonObject:
    """Return the settings in a file; none where there is no file.

    Raises:
        InvalidDocument: it is not JSON.
        StorageFailed: it cannot be read.
    """
    text = _text(path, _read(path))
    return claude_merging.value_of(text, where=str(path)) if text.strip() else {}


def _files(scope: str, project: Path | None) -> list[tuple[Path, _Merge, _Unmerge]]:
    path = settings_path(scope, project=project)
    if scope != "user" and is_users(path):
        raise InvalidInput(
            "here that would be the settings of the user.",
            fix="Use --user, or go into a project.",
            where=str(path),
        )
    groups = wanted_groups(scope)
    files: list[tuple[Path, _Merge, _Unmerge]] = [
        (
            path,
            lambda text: claude_merging.merge(text, groups, where=str(path)),
            lambda text, before: claude_merging.unmerge(text, before, where=str(path)),
        )
    ]
    servers = server_path(scope, project=project)
    if scope == "project" and (can_serve() or servers.exists()):
        files.append(
            (
                servers,
                lambda text: claude_merging.merge_server(text, SHARED_SERVER, where=str(servers)),
                lambda text, before: claude_merging.unmerge_server(text, before, where=str(servers)),
            )
        )
    return files


def _plan_out(path: Path, merge: _Merge, unmerge: _Unmerge) -> _Plan:
    present = _read(path)
    text = _text(path, present)
    if not text.strip() or unmerge(text, "") == text:
        return _Plan(path, present, present)
    earlier, copies = _earlier(path, unmerge)
    before = _text(path, earlier)
    if merge(before) == text:
        after = earlier
    else:
        without = unmerge(text, before)
        # A file that we made holds nothing of anybody's now.
        after = (
            None
            if earlier is None and not claude_merging.value_of(without)
            else _bytes(without, like=present)
        )
    return _Plan(path, present, after, tuple(copy for copy, data in copies if data == after))


def _earlier(path: Path, unmerge: _Unmerge) -> tuple[bytes | None, list[tuple[Path, bytes]]]:
    """Return the newest backup with nothing of ours in it, if there is one, and all backups."""
    names = sorted(_backups().glob(f"{_named(path)}*"), reverse=True)
    copies = [(name, name.read_bytes()) for name in names]
    for name, data in copies:
        with contextlib.suppress(InvalidDocument):
            text = _text(name, data)
            if not text.strip() or unmerge(text, "") == text:
                return data, copies
    return None, copies


def _applied(plan: _Plan, *, shared: bool, dry_run: bool) -> FileChange:
    path, before, after = plan.path, plan.before, plan.after
    if before == after:
        return FileChange(str(path), "unchanged", "", "")
    change = "created" if before is None else "removed" if after is None else "changed"
    done = FileChange(str(path), change, "", _diff(plan))
    if dry_run:
        return done
    with _disk(path):
        if _read(path) != before:
            raise Conflict(
                "was changed by somebody else meanwhile. Nothing was written.",
                fix="Try again.",
                where=str(path),
            )
        kept = _kept(path, before) if before is not None and after is not None and not plan.obsolete else ""
        _write(path, after, shared=shared)
        for copy in plan.obsolete:
            copy.unlink()
        with contextlib.suppress(OSError):  # it holds others, or was never made
            _backups().rmdir()
    return done._replace(backup=kept)


def _kept(path: Path, data: bytes) -> str:
    """Keep `data`, which the file at `path` holds, and return where: in no project, or it would be committed."""
    backup = _backups() / f"{_named(path)}{clock.now():%Y%m%dT%H%M%S%fZ}"
    backup.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(backup, data)
    return str(backup)


def _backups() -> Path:
    return claude_directory() / "aether-backups"


def _named(path: Path) -> str:
    """Return what the names of the backups of a file begin with."""
    place = hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()[:PLACE_CHARS]
    return f"{path.name}-{place}-"


def _write(path: Path, data: bytes | None, *, shared: bool) -> None:
    target = Path(os.path.realpath(path))  # a link of those who keep their settings elsewhere stays one
    if data is None:
        target.unlink()
        with contextlib.suppress(OSError):  # it holds other things, or is the project's own
            if path.parent.name == ".claude" and path.parent != claude_directory():
                path.parent.rmdir()
        return
    mode = target.stat().st_mode & 0o7777 if target.exists() else SHARED_MODE if shared else None
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, data)
    if mode is not None:
        target.chmod(mode)


def _read(path: Path) -> bytes | None:
    with _disk(path):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except AetherError:
        raise
    except OSError as reason:
        raise StorageFailed(
            f"{reason.strerror or reason}. It was left as it is.",
            fix="Make it a file that you may read and write, then try again.",
            where=str(path),
        ) from reason


def _text(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as reason:
        raise InvalidDocument(
            "is not UTF-8 text. Nothing was changed.", fix="Convert it to UTF-8.", where=str(path)
        ) from reason


def _bytes(text: str, *, like: bytes | None) -> bytes:
    mark = BOM if (like or b"").startswith(BOM.encode()) else ""
    return f"{mark}{text}".encode()


def _diff(plan: _Plan) -> str:
    old, new = (_text(plan.path, data).splitlines(keepends=True) for data in (plan.before, plan.after))
    lines = difflib.unified_diff(old, new, f"{plan.path} (now)", f"{plan.path} (then)")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
