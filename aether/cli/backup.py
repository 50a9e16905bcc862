"""Backups on the command line: make one, list those in a place, check them, restore one."""

from __future__ import annotations

import click

from aether.cli.output import Ask, Group, Table, bar, emit, finding_line, pass_ask, plain, say, when
from aether.text.words import pluralize


@click.group("backup", cls=Group)
def backup_command() -> None:
    """Back the whole home up, and restore it elsewhere.

    A place of backups is a directory outside the home, or s3://BUCKET/PREFIX. Each backup is the whole home at one
    moment, and adds only what is new to the place.

    \b
    Example:
      aether backup create backups
    """


@backup_command.command("create")
@click.argument("destination")
@click.option("--adopt", is_flag=True, help="Continue in a place with backups of another home")
@pass_ask
def create_command(ask: Ask, destination: str, adopt: bool) -> None:
    """Back the home up to DESTINATION.

    Copies everything except locks and indexes: documents, journal, conversations, archive, memories, snapshots,
    quarantine, waiting events. Other processes may write meanwhile. If it fails, there is no new backup, and
    older ones are unchanged. A backup is not encrypted and holds everything in the home.

    \b
    Example:
      aether backup create backups
    """
    from aether.api import backup

    place = ask.place()
    with bar(ask, "Backing up…") as report:
        created = backup.create_backup(destination, adopt=adopt, progress=report, home=place)
    line = f"{created.id}: {pluralize(created.files, 'files')}, {size(created.bytes)}, of which {size(created.new_bytes)} were added."
    emit(ask, created, line)
    for path in created.left_out:
        say(plain(f"Note: {path} is a link, a pipe or a device, and is not in the backup."))


@backup_command.command("list")
@click.argument("destination")
@click.argument("id", required=False)
@click.option("--verify", is_flag=True, help="Compare them with their hashes, all or the one with this ID")
@pass_ask
def list_command(ask: Ask, destination: str, id: str | None, verify: bool) -> int:
    """List the backups in DESTINATION, newest first.

    A backup that cannot be read is not listed; --verify names it. --verify exits 1 if an object is missing or was changed.

    \b
    Example:
      aether backup list backups
      aether backup list backups --verify
    """
    import os

    from aether.api import backup
    from aether.errors import NotFound

    if verify:
        return _verify(ask, destination, id)
    listed = [entry for entry in backup.backups(destination) if id in (None, entry.id)]
    if not listed and "://" not in destination and not os.path.isdir(os.path.expanduser(destination)):
        raise NotFound("there is no such directory.", fix="Name the place of the backups.", where=destination)
    head = ("id", "when (UTC)", "files", "size", "added", "home")
    rows = [
        (entry.id, when(entry.at), entry.files, size(entry.bytes), size(entry.new_bytes), entry.home)
        for entry in listed
    ]
    table = Table(rows, head=head, right=[2, 3, 4])
    nothing = (
        f"There are no backups in {destination}."
        if id is None
        else f"There is no backup {id} in {destination}."
    )
    emit(ask, listed, table if listed else plain(nothing))
    return 0


def _verify(ask: Ask, destination: str, id: str | None) -> int:
    from aether.api import backup

    with bar(ask, "Checking…") as report:
        findings = backup.verify_backup(destination, id, progress=report)
    emit(ask, findings, [*map(finding_line, findings)] or "Everything is there, as it was written.")
    return int(bool(findings))


@backup_command.command("restore")
@click.argument("destination")
@click.argument("id", required=False)
@pass_ask
def restore_command(ask: Ask, destination: str, id: str | None) -> None:
    """Restore a backup in DESTINATION as a new home.

    Restores the newest backup, or the one with this ID, into the new or empty directory of --home, else of AETHER_HOME,
    else into .aether/ here. The files are compared with the backup before they become a home. A restored config.toml must
    be trusted again.

    \b
    Example:
      aether backup restore backups --home restored
    """
    from aether.api import backup

    with bar(ask, "Restoring…") as report:
        restored = backup.restore_backup(destination, id, progress=report, home=ask.home)
    source = restored.backup
    data = {**source._asdict(), "home": restored.home, "findings": restored.findings}
    of = f"{pluralize(source.files, 'files')}, {size(source.bytes)}, of {when(source.at)} UTC"
    emit(ask, data, plain(f"{restored.home}: {of}."))
    for finding in restored.findings:
        say(finding_line(finding, "Note: the home was damaged when it was backed up"))


def size(number: float) -> str:
    """Return a number of bytes as a person reads it.

    >>> size(0), size(2_048), size(3_500_000)
    ('0 B', '2.0 kB', '3.5 MB')
    """
    units = ["B", "kB", "MB", "GB"]
    while number >= 1_000 and len(units) > 1:
        number /= 1_000
        units.pop(0)
    return f"{number:.1f} {units[0]}" if units[0] != "B" else f"{number} B"
