"""Snapshots on the command line."""

from __future__ import annotations

import click

from aether.cli.output import Ask, Group, confirmed, emit, note, pass_ask, table, when


@click.group("snapshot", cls=Group)
def snapshot_command() -> None:
    """Save the whole colony and restore it.

    \b
    Example:
      aether snapshot list
    """


@snapshot_command.command("create")
@click.option("--label", default="", help="What to remember it by")
@pass_ask
def create(ask: Ask, label: str) -> None:
    """Save the whole colony as it is, and print the snapshot's id.

    \b
    Example:
      aether snapshot create --label "before the rewrite"
    """
    from aether.operations import snapshots

    made = snapshots.create_snapshot(label, home=ask.place())
    emit(ask, made, str(made["snapshot_id"]))


@snapshot_command.command("list")
@pass_ask
def list_(ask: Ask) -> None:
    """List the snapshots, newest first.

    \b
    Example:
      aether snapshot list
    """
    from aether.operations import snapshots

    found = snapshots.list_snapshots(home=ask.place())
    rows = [
        (
            made["snapshot_id"],
            when(made["timestamp"]),
            made["revision"],
            "automatic" if made["automatic"] else "by hand",
            made["label"],
        )
        for made in found
    ]
    emit(ask, found, table(rows, head=("id", "when (UTC)", "revision", "taken", "label"), right=[2]))
    if not found:
        note(ask, "No snapshot was taken yet.")


@snapshot_command.command("restore")
@click.argument("snapshot_id", default="latest")
@click.option("--yes", is_flag=True, help="Do not ask")
@pass_ask
def restore(ask: Ask, snapshot_id: str, yes: bool) -> int:
    """Take the colony back to a snapshot; undo takes that back.

    \b
    Example:
      aether snapshot restore latest --yes
    """
    from aether.operations import snapshots

    if not confirmed(f"The colony will go back to snapshot {snapshot_id}.", yes=yes):
        emit(ask, {"changed": []}, [])
        return 1
    changed = snapshots.restore_snapshot(snapshot_id, home=ask.place())
    emit(ask, {"changed": changed}, f"Restored: {', '.join(changed) or 'nothing differed'}.")
    return 0
