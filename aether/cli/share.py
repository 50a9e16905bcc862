"""Shared colonies on the command line: share a home, join a colony, see how far a replica is, leave, and who may do what."""

from __future__ import annotations

import click

from aether.cli.output import Ask, Group, Table, emit, note, pass_ask, plain


@click.group("share", cls=Group)
def share_command() -> None:
    """Share a colony between machines, by a PostgreSQL server.

    The server orders all changes. Each machine has a home of its own, a replica that a person can read. URL is the
    address of a database, such as postgresql://HOST/DATABASE; its password belongs in .pgpass. No home holds the address:
    set AETHER_SHARE_URL on each machine.

    \b
    Example:
      aether share init postgresql://db.example/memory harbour
      aether share status
    """


@share_command.command("init")
@click.argument("url")
@click.argument("colony")
@pass_ask
def init_command(ask: Ask, url: str, colony: str) -> None:
    """Share this home as COLONY at URL.

    The colony gets everything in the home. Its files are kept in the database, or in the directory or
    s3://bucket/prefix that AETHER_SHARE_FILES names, the same on every machine.

    \b
    Example:
      aether share init postgresql://db.example/memory harbour
    """
    from aether.api import share
    from aether.errors import InvalidInput

    if not colony.strip():  # a variable of the shell that is not set, perhaps
        raise InvalidInput("a colony needs a name.", fix="Name it.", where="COLONY")
    shared = share.share(ask.place(), url, colony)
    emit(ask, shared, f"Shared as {shared.colony}, revision {shared.revision}. Set AETHER_SHARE_URL here.")


@share_command.command("join")
@click.argument("url")
@click.argument("colony")
@click.argument("directory", default=".")
@pass_ask
def join_command(ask: Ask, url: str, colony: str, directory: str) -> None:
    """Make a home in DIRECTORY that is a replica of COLONY at URL.

    \b
    Example:
      aether share join postgresql://db.example/memory harbour replica
    """
    from aether.api import share

    shared = share.join(url, colony, directory)
    words = f"Joined {shared.colony} at revision {shared.revision}: {shared.home}. Set AETHER_SHARE_URL here."
    emit(ask, shared, words)


@share_command.command("status")
@pass_ask
def status_command(ask: Ask) -> int:
    """Show the state of this replica and of its server.

    Exits 1 if the server cannot be reached, refuses, or has another history of a conversation or the files.

    \b
    Example:
      aether share status
    """
    from aether.api import share

    status = share.share_status(home=ask.place())
    rows = [(name, value) for name, value in status.items() if not isinstance(value, (dict, list))]
    rows += [
        (name, value) for name, value in status.get("server", {}).items() if isinstance(value, (str, int))
    ]
    rows += [
        (
            "replica",
            f"{entry['replica']} of {entry['role']}: revision {entry['revision']}, seen {entry['seen_at']}",
        )
        for entry in status.get("server", {}).get("replicas", [])
    ]
    rows += [("unread", reason) for reason in status["unread"]]
    rows += [
        (
            "stream",
            f"{entry['stream']}: revision {entry['revision']}, head {entry['head']}, lag {entry['lag']}",
        )
        for entry in status.get("streams", [])
    ]
    rows += [
        ("fault", fault) for fault in [*status.get("faults", []), *status.get("server", {}).get("faults", [])]
    ]
    emit(ask, status, Table(rows))
    return int("server" not in status or any(entry["fault"] for entry in status["streams"]))


@share_command.command("leave")
@click.option("--force", is_flag=True, help="Leave even if something cannot be fetched")
@pass_ask
def leave_command(ask: Ask, force: bool) -> None:
    """Leave the colony, and keep everything that it has.

    The colony and its other replicas stay as they are. If something cannot be fetched, or the server cannot be reached,
    the home stays shared; with --force it leaves anyway, and what is missing is listed.

    \b
    Example:
      aether share leave
    """
    from aether.api import share

    shared = share.leave_share(home=ask.place(), force=force)
    name = shared.colony or "its colony"
    emit(ask, shared, f"This home has left {name} at revision {shared.revision}.")
    for part in shared.missing:
        note(ask, plain(f"Note: it lacks {part}."))


@share_command.command("members")
@click.argument("role", required=False)
@click.argument("right", required=False, type=click.Choice(["read", "write", "admin"]))
@click.option("--revoke", is_flag=True, help="Revoke the right of ROLE in this colony")
@pass_ask
def members_command(ask: Ask, role: str | None, right: str | None, *, revoke: bool) -> None:
    """List the roles that may use the colony, or change one.

    ROLE is a role of the database. With RIGHT, it gets this right in this colony.

    \b
    Example:
      aether share members
      aether share members ana write
      aether share members ana --revoke
    """
    from aether.api import share

    if role is None:
        if revoke:
            raise click.UsageError("Missing argument 'ROLE'.")
        members = share.share_members(home=ask.place())
        rows = [
            (member["role"], member["right"], member["replicas"], member["last_seen"]) for member in members
        ]
        emit(ask, members, Table(rows, head=("role", "right", "replicas", "last seen")))
        return
    if revoke == bool(right):
        raise click.UsageError("Name the RIGHT of the role, or pass --revoke.")
    if revoke:
        share.share_revoke(role, home=ask.place())
        emit(ask, {"role": role, "right": None}, f"{role} has no right here any more.")
    else:
        share.share_grant(role, str(right), home=ask.place())
        emit(ask, {"role": role, "right": right}, f"{role} may {right}.")


@share_command.command("remove")
@click.argument("revision", type=click.IntRange(1))
@pass_ask
def remove_command(ask: Ask, revision: int) -> None:
    """Remove from the server a line that no replica can read.

    The replicas have set it aside already: it has no effect in any of them. You must be an admin of the colony.

    \b
    Example:
      aether share remove 41
    """
    from aether.api import share

    share.share_remove(revision, home=ask.place())
    emit(ask, {"revision": revision}, f"Line {revision} is removed from the colony.")
