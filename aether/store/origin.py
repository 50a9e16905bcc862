"""Origin: whether the content of a home is this user's, or came with a repository.

A home that git does not track is this user's own. One that git tracks came with a clone, unless this user made it or
confirmed it: then a random token is in the home, outside of git, and in a record below the user's own state directory under
the path of the home. So neither a clone nor another home at the same place can confirm itself. A home that an earlier
version of aether used here has session files that git does not track, and counts as confirmed; `MARK` distinguishes later session
files from those.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from aether import regular
from aether.errors import AetherError
from aether.project import index_of, state_directory
from aether.store import spool

# What a person should know of a home that git tracks.
PUBLISHED = (
    "git tracks .aether/, so what sessions note goes into tracked files, and a commit publishes it. "
    "To keep it to yourself: git rm -r --cached .aether"
)
TOKEN, MARK, SESSIONS = "hooks/confirmed", "hooks/unconfirmed", "hooks/sessions/"


def is_confirmed(home: str | os.PathLike[str]) -> bool:
    """Return whether what `home` holds counts as this user's own."""
    place = os.path.realpath(home)
    if _has_record(place):
        return True
    # Once met as another's, a home stays so: taking it out of git's index makes its words nobody else's.
    return not os.path.lexists(os.path.join(place, MARK)) and (
        not spool.holds_tracked(place) or bool(local_sessions(place))
    )


def is_tracked(home: str | os.PathLike[str]) -> bool:
    """Return whether git tracks a part of what `home` holds, so that a commit publishes it."""
    return spool.holds_tracked(os.path.realpath(home))


def observe(home: str | os.PathLike[str]) -> None:
    """Write down whose `home` is, before the first file of a session is written to it; no failure matters here."""
    place = os.path.realpath(home)
    if not index_of(place)[0] or _has_record(place):
        return
    with suppress(OSError, AetherError):
        if is_tracked(place):  # "git add" must not take the events that wait
            _create(place, "hooks/.gitignore", b"*\n")
        if is_confirmed(place):
            confirm(place)
        else:
            _create(place, MARK, b"")


def confirm(home: str | os.PathLike[str]) -> None:
    """Record that what `home` holds counts as this user's own.

    Raises:
        StorageFailed: the home or the user's state directory cannot be written.
    """
    import secrets
    from pathlib import Path

    from aether.store import files

    place, token = os.path.realpath(home), secrets.token_hex(16)
    path = Path(record_of(place))
    with files.storage_errors(path):
        for file, content in (
            (Path(place, TOKEN), token),
            (path, json.dumps({"home": place, "token": token})),
        ):
            files.make_directory(file.parent)
            files.write_whole(file, content.encode("utf-8", "surrogateescape") + b"\n")


def withdraw(home: str | os.PathLike[str]) -> bool:
    """Confirm `home` no longer, and return whether it was.

    Raises:
        StorageFailed: the home or the user's state directory cannot be written.
    """
    from pathlib import Path

    from aether.store import files

    place = os.path.realpath(home)
    was, path = is_confirmed(place), Path(record_of(place))
    with files.storage_errors(path, left="The home is still confirmed."):
        path.unlink(missing_ok=True)
        _create(place, MARK, b"")
    return was


def record_of(home: str) -> str:
    """Return the path of the record of `home`, whether or not it is there."""
    name = regular.digest(home.encode("utf-8", "surrogateescape"))
    return os.path.join(state_directory(), "homes", f"{name}.json")


def local_sessions(home: str | os.PathLike[str]) -> frozenset[str]:
    """Return the names of the session files in `home` that hooks wrote here; none if git does not say which it tracks."""
    place = os.path.realpath(home)
    try:
        names = frozenset(
            name for name in os.listdir(os.path.join(place, SESSIONS)) if name.endswith(".json")
        )
    except OSError:
        return frozenset()
    if not names or not spool.is_answered(place):
        return frozenset()
    return names - spool.tracked(place, SESSIONS)


def _has_record(home: str) -> bool:
    try:
        token = regular.read(os.path.join(home, TOKEN), regular.CONFIG_BYTES).decode("ascii").strip()
        record = json.loads(regular.read(record_of(home), regular.CONFIG_BYTES))
    except (OSError, AetherError, ValueError, RecursionError):
        return False
    is_same = isinstance(record, dict) and bool(token) and record.get("token") == token
    return is_same and not spool.tracked(home, TOKEN)


def _create(home: str, name: str, data: bytes) -> None:
    path = os.path.join(home, name)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    regular.create(path, data)
