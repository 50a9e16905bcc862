"""What does a change cost that waits for a server, after how many that wait, and what a search beside them?

A shared home without its server, whose changes wait (`share.offline = "queue"`): items are added one after the other by
`aether.add_working_memory_item`, in one process. `cpu_ms` is processor time of an addition; `search_ms` is that of one
search by a process that has read nothing yet. Neither reads the queue again: what grows is the document that they add to
and read, whose checksum each change has.

Usage: python benchmarks/shared_queue.py [CHANGES]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import report

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import aether  # noqa: E402 - found beside this directory
from aether.api import share as sharing  # noqa: E402
from aether.sharing import ledgers, offline  # noqa: E402
from tests import directory_ledger, homes  # noqa: E402

MOST = int(sys.argv[1]) if len(sys.argv) > 1 else 800
STEPS = 8


def main() -> None:
    ledgers.MODULES[directory_ledger.START] = directory_ledger.__name__
    measured = {}
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "server").mkdir()
        home = homes.fresh(place / "home")
        os.environ[ledgers.URL] = f"{directory_ledger.START}{place / 'server'}"
        sharing.share(home, colony="c")
        os.environ["AETHER_SHARE_OFFLINE"] = "queue"
        del os.environ[ledgers.URL]
        for step in range(STEPS):
            started = time.process_time()
            for number in range(MOST // STEPS):
                content = f"{step} {number}: the importer reads 41 MB/s with flat memory."
                aether.add_working_memory_item(content, "note", home=home)
            added = time.process_time()
            offline._MADE.clear()  # noqa: SLF001 - as in another process
            aether.search_memory("importer", home=home)
            searched = time.process_time()
            measured[str(len(offline.names(home)))] = {
                "cpu_ms": round((added - started) * 1000 / (MOST // STEPS), 2),
                "search_ms": round((searched - added) * 1000, 1),
            }
    report.write(__file__, {"waiting": measured})


if __name__ == "__main__":
    main()
