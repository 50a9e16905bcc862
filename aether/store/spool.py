"""The spool and the log of the hooks: events wait here, one file each, until the next reader of the home drains them.

Putting an entry takes no lock and reads nothing of the home; it is stored whole once `put` has returned. A process that
is killed before leaves a temp file, which is ignored and which `remove` deletes. An entry ends in its checksum; a damaged
one goes to `quarantine/`. Links that lead elsewhere, as a
repository with a home in it may have them, are neither written nor read. Every tool call of a session pays for the
imports of this module: it needs only `json`, `os`, `stat` and `time`.

A failure is one line in `hook.log`, because a hook has no screen. Logging never raises; at its limit the log replaces
`hook.log.1`.
"""

from __future__ import annotations

import json
import os
import stat
import time

from aether import regular
from aether.errors import AetherError, StorageFailed
from aether.project import index_of

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from aether.types import JsonObject

SUFFIX = ".json"
# An event is kept in parts of some thousand characters; this is hundreds of them.
MOST_ENTRY_BYTES = 8 * 1024 * 1024
# That of aether.store.files, whose imports are too many for this path: doctor removes what ends so.
TEMP_SUFFIX = ".aether-tmp"
# A hook's deadline is seconds: a temp file of this age belongs to a process that was killed.
STALE_TEMP_NS = 3_600 * 10**9
INDEX_NAME = "git-index.json"
# What a home stores or sends without being asked, and what says whose it is; that of a repository counts for nothing.
SENT = (
    "hooks/spool/",
    "hooks/sessions/",
    "hooks/confirmed",
    "share/queue/",
    "share/waiting/",
    "data/share.json",
)
# A home that has no other file in git holds nothing of others.
_SETTINGS = (".gitignore", "config.toml", "models.json", "hooks/", "share/", "quarantine/", "data/share.json")
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def put(home: str, entry: JsonObject) -> str:
    """Keep `entry` durably and return its name; names sort by the time they were put.

    Raises:
        StorageFailed: the home does not exist, is read-only or full; nothing was kept.
    """
    directory = _directory(home)
    name = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
    # ASCII: a lone surrogate, which cannot be UTF-8, stays what it is.
    data = regular.seal(json.dumps(entry, separators=(",", ":")).encode("ascii"))
    try:
        if not os.path.isdir(directory):
            for path in (os.path.dirname(directory), directory):
                try:
                    os.mkdir(path, 0o700)
                except FileExistsError:
                    continue
                if os.path.exists(os.path.join(home, "data", "memory.json")):  # a new home is its owner's
                    regular.share(path, os.path.dirname(path))
                _sync_directory(os.path.dirname(path))
        require_real(home)
        _write(directory, name, data)
    except OSError as reason:
        raise StorageFailed(
            f"{reason.strerror or reason}. The entry was not kept.",
            fix="Make the home writable, and see that the disk has space.",
            where=directory,
        ) from reason
    return name


def waiting(home: str) -> list[str]:
    """Return the names of the waiting entries, oldest first; not of those that git tracks, which others wrote."""
    try:
        names = os.listdir(_directory(home))
        if not is_real(home):
            return []
    except OSError:
        return []
    entries = sorted(name for name in names if name.endswith(SUFFIX) and not name.startswith("."))
    foreign = tracked(home) if entries else frozenset()
    return [name for name in entries if name not in foreign]


def tracked(home: str, start: str = "hooks/spool/") -> frozenset[str]:
    """Return the paths in `home` that start with `start`, one of `SENT`, and that the index of git holds, without it.

    They came with the repository: others may have written them. By default they are the entries of the spool.
    """
    names = (_tracked(home) or {}).get("names", ())
    return frozenset(path.removeprefix(start) for path in names if path.startswith(start))


def holds_tracked(home: str) -> bool:
    """Return whether the index of git holds memory of `home`: a document, a conversation, an archive, a note."""
    tracked = _tracked(home)
    if tracked is not None:
        return bool(tracked.get("holds"))
    # Git does not answer: most forms of an index hold the whole path.
    index, place = index_of(home)
    with open(index, "rb") as file:
        return os.fsencode(f"{place}/data/") in file.read()


def is_answered(home: str) -> bool:
    """Return whether it is known which files of `home` the index of git holds."""
    return _tracked(home) is not None


def _tracked(home: str) -> JsonObject | None:
    """Return the paths below `SENT` that the index of git holds, and whether it `holds` memory; None if git does not answer.

    It is remembered in `hooks/` until the index changes.
    """
    index, place = index_of(home)
    if not index:
        return {}
    try:
        now = [f"{place}/", *SENT, *_SETTINGS, *_identity(index)]
    except OSError:
        return {}  # no index yet
    remembered = _remembered(home)
    if remembered.get("index") == now:
        return remembered
    from aether import git  # an event of a tool asks nothing

    paths = git.tracked(home)
    if paths is None:
        return None
    names = sorted(path for path in paths if path.startswith(SENT))
    answer = {"index": now, "names": names, "holds": any(not path.startswith(_SETTINGS) for path in paths)}
    try:
        _write(os.path.join(home, "hooks"), INDEX_NAME, json.dumps(answer).encode("ascii"))
    except OSError:
        return answer  # git is asked again
    return answer


def in_index(home: str, below: str = "") -> frozenset[str]:
    """Return the paths below the home, or its directory `below`, that the index of git holds, without it."""
    if not index_of(home)[0]:
        return frozenset()
    from aether import git

    return git.tracked(home, below) or frozenset()


def is_paused(home: str) -> bool:
    """Return whether the hooks of `home` are paused; a mark that git tracks came with the repository, and pauses nothing."""
    return os.path.exists(os.path.join(home, "hooks", "paused")) and "paused" not in in_index(home, "hooks")


def _identity(path: str) -> list[int]:
    """Return what changes with the file at `path`; nobody can choose it for another machine."""
    status = os.stat(path)
    return [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]


def _remembered(home: str) -> JsonObject:
    """Return what is remembered of the index of git, nothing if that is damaged."""
    try:
        value = json.loads(regular.read(os.path.join(home, "hooks", INDEX_NAME), MOST_ENTRY_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    names = value.get("names") if isinstance(value, dict) else None
    is_whole = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return value if is_whole else {}


def is_real(home: str, name: str = "spool") -> bool:
    """Return whether `<home>/hooks/<name>` is a directory in the home, and its owner's or ours.

    Raises:
        OSError: it does not exist.
    """
    owners = {os.stat(home).st_uid, os.geteuid() if hasattr(os, "geteuid") else 0}
    hooks = os.path.join(home, "hooks")
    statuses = [os.lstat(path) for path in (hooks, os.path.join(hooks, name))]
    return all(stat.S_ISDIR(status.st_mode) and status.st_uid in owners for status in statuses)


def require_real(home: str, name: str = "spool") -> None:
    """Raise unless `is_real`.

    Raises:
        OSError: it is not.
    """
    if not is_real(home, name):
        raise OSError(f"hooks/{name}/ leads elsewhere, or is another user's")


def get(home: str, name: str) -> JsonObject | None:
    """Return the entry of that name, or None; a damaged one, and what is no entry, is moved into `quarantine/`."""
    path = os.path.join(_directory(home), name)
    entry = None
    try:
        if stat.S_ISREG(os.lstat(path).st_mode):
            entry = entry_of(regular.read(path, MOST_ENTRY_BYTES))
    except OSError:
        return None
    except AetherError:
        pass  # not an entry
    if entry is None:
        set_aside(home, name)
    return entry


def entry_of(data: bytes) -> JsonObject | None:
    """Return the entry that is stored as `data`, or None if it is damaged; those of earlier releases have no checksum."""
    body = regular.sealed_body(data) if data.endswith(b"\n") else data
    try:
        entry = None if body is None else json.loads(body)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def remove(home: str, names: list[str]) -> None:
    """Remove the entries of those names, and the temp files of processes that were killed long ago."""
    directory = _directory(home)
    for name in names:
        _unlink(os.path.join(directory, name))
    stale = f".{max(0, time.time_ns() - STALE_TEMP_NS):020d}"
    try:
        files = os.listdir(directory)
    except OSError:
        return
    for name in files:
        if name.endswith(TEMP_SUFFIX) and name < stale:
            _unlink(os.path.join(directory, name))


def _directory(home: str) -> str:
    return os.path.join(home, "hooks", "spool")


def _write(directory: str, name: str, data: bytes) -> None:
    temp, path = os.path.join(directory, f".{name}{TEMP_SUFFIX}"), os.path.join(directory, name)
    try:
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600)
        try:
            regular.share(handle, directory)
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temp, path)
        _sync_directory(directory)
    except BaseException:
        _unlink(temp)
        raise


def _sync_directory(directory: str) -> None:
    if os.name != "posix":
        return  # pragma: no cover - Windows has no handle to a directory
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(home: str, name: str) -> str:
    """Move the entry of that name into `quarantine/`, and return where it is now; empty if it stays."""
    target = f"quarantine/spool-{name}"
    try:
        os.makedirs(os.path.join(home, "quarantine"), mode=0o700, exist_ok=True)
        os.replace(os.path.join(_directory(home), name), os.path.join(home, target))
    except OSError:
        return ""  # it is tried again later
    log_failure(home, "drain", "", f"a damaged event was not drained. Kept in {target}")
    return target


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


NAME = "hook.log"
MOST_BYTES = 256 * 1024
# Longer messages hide their meaning.
LINE_CHARS = 400


def log_failure(home: str, event: str, session: str, what: str) -> bool:
    """Add a line with the time, the event, the session and the failure; do nothing without a home.

    Return whether the line was written, if there is a home to write it in.
    """
    try:
        if not os.path.isdir(home):
            return True
        path = os.path.join(home, NAME)
        if os.path.islink(path):
            return False
        regular.append_line(path, _line(event, session, what).encode("utf-8", "replace"), MOST_BYTES)
    except Exception:  # noqa: BLE001 - a log that fails must not be what fails
        return False
    return True


def log_failure_once(home: str, event: str, session: str, what: str) -> None:
    """Add a line as `log_failure` does, unless the log has the same one of that session."""
    text = _line(event, session, what).split(" ", 2)[2]  # without the time and the event
    path = os.path.join(home, NAME)
    try:
        if text.encode("utf-8", "replace") in regular.read(path, 2 * MOST_BYTES):
            return
    except (OSError, AetherError):
        pass  # no log yet
    log_failure(home, event, session, what)


def _line(event: str, session: str, what: str) -> str:
    from aether.redact.redact import redact

    time_text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = " ".join(redact(what[: 2 * LINE_CHARS]).split())
    words = [" ".join(redact(word[: 2 * LINE_CHARS]).split())[:80] or "-" for word in (event, session)]
    return f"{time_text} {' '.join(words)} {text[:LINE_CHARS]}\n"
