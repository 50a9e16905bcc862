"""History: every transaction that ever was, newest or oldest first, and the state at any of them.

Folded lines rest in `data/journal/YYYY-MM.jsonl`; each line holds its own inverse, so a past state is
reached by walking back from the present one, without any backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aether.store import journal
from aether.store.files import lines_backwards
from aether.store.journal import Entry


def folded(home: Path, *, after: int = 0, newest_first: bool = False) -> Iterator[Entry]:
    """Yield the folded transactions with revision > `after`.

    A damaged line is passed over: what needs an unbroken row notices the missing revision.
    """
    months = journal.months(home)
    for path in reversed(months) if newest_first else months:
        for line in lines_backwards(path) if newest_first else path.read_bytes().splitlines(keepends=True):
            fields = journal.unsealed(line)
            if fields is None:
                continue
            if newest_first and fields["revision"] <= after:
                return
            if fields["revision"] > after:
                yield journal.entry_of(fields)
