"""How long does a new replica of a colony with 100,000 entries take, and how much memory?

A PostgreSQL of its own on a socket holds the colony: each entry adds an item of about 430 bytes to working memory and
removes the oldest, so that 200 are there at any time. `aether.join` runs in a process of its own; its replica must have
the revision, the items and the history that were sent, and doctor must find no error in it. Memory is the most that the
process had; that of a colony with a tenth of the entries beside it shows whether it grows with them. "lines" starts from the
base that `share init` made of an almost empty home, so that it reads every line; "base" from one that the first replica made
of all entries, as it does when they are `shared_base.LINES` more.

Usage: python benchmarks/shared_join.py [ENTRIES]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import report

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import aether  # noqa: E402 - found beside this directory
from aether.api import share as sharing  # noqa: E402
from aether.sharing import ledgers  # noqa: E402
from aether.store import doctor, snapshot  # noqa: E402
from aether.store import journal as journals  # noqa: E402
from aether.store.journal import Entry, entry_line  # noqa: E402
from aether.store.ledger import JOURNAL, Mark  # noqa: E402
from aether.store.patch import apply_with_inverse  # noqa: E402
from tests import postgres_server  # noqa: E402

ENTRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
HELD = 200
AT_ONCE = 1000
JOIN = """
import json, re, sys, time
from pathlib import Path
import aether
started, cpu = time.monotonic(), time.process_time()
made = aether.join(sys.argv[1], sys.argv[2], sys.argv[3])
print(json.dumps({
    "seconds": round(time.monotonic() - started, 2), "cpu_seconds": round(time.process_time() - cpu, 2),
    # Not what `getrusage` has: that starts from the process which started this one.
    "most_mb": int(re.search(r"VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) // 1024,
    "revision": made.revision,
}))
"""


def entries(home: Path, count: int) -> Iterator[bytes]:
    """Yield the lines of `count` transactions after the present state of `home`."""
    state = snapshot.load(home).documents["memory"]
    first = snapshot.load(home).revision + 1
    for revision in range(first, first + count):
        at = f"2026-{1 + revision * 9 // (first + count):02}-01T00:00:00.{revision % 1_000_000:06}Z"
        about = {
            "timestamp": at, "relevance_score": 0.5, "access_count": 0, "last_accessed": at, "source": "queen",
            "caste": None,
        }  # fmt: skip
        item = {
            "id": f"wm_{revision:016}", "type": "observation", "content": f"{revision}: {'text ' * 30}",
            "token_count": 40, "metadata": about, "associative_links": [],
        }  # fmt: skip
        part = state["working_memory"]
        full = len(part["items"]) >= HELD
        patch = [{"op": "remove", "path": "/working_memory/items/0"}] if full else []
        patch.append({"op": "add", "path": "/working_memory/items/-", "value": item})
        total = part["current_tokens"] + 40 * (not full)
        patch.append({"op": "replace", "path": "/working_memory/current_tokens", "value": total})
        state, inverse = apply_with_inverse(state, patch)
        yield entry_line(
            Entry(
                revision,
                at,
                "queen",
                "add",
                "",
                {"memory": patch},
                {"memory": inverse},
                {},
                member=postgres_server.OWNER,
            )
        )


def colony(directory: Path, url: str, name: str, count: int) -> Path:
    """Make a colony with `count` entries, and return its first replica, which has not read them."""
    home = aether.init(directory / name / ".aether")
    sharing.share(home, url, name)
    server = ledgers.opened(url, name, replica="maker")
    revision = server.head(JOURNAL)
    some: list[bytes] = []
    for nth, line in enumerate(entries(home, count), 1):
        some.append(line)
        if len(some) == AT_ONCE or nth == count:
            assert server.append_if(JOURNAL, Mark(revision, ""), some).done
            revision, some = revision + len(some), []
    server.close()
    return home


def joined(directory: Path, url: str, name: str, count: int) -> dict[str, float]:
    """Return what a join of a colony with `count` entries costs, after checking the replica."""
    place = directory / f"{name}-replica-{len([*directory.iterdir()])}"
    command = [sys.executable, "-c", JOIN, url, name, place]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    home = place / ".aether"
    assert found["revision"] == count + 1
    assert len(aether.list_working_memory_items(home=home)) == min(HELD, count)
    numbers = [entry.revision for entry in journals.folded_entries(home)]
    assert numbers == list(range(1, count + 2))
    assert not [finding for finding in doctor.examine(home) if finding.level == "error"]
    return found


def main() -> None:
    """Measure both colonies, and write the result."""
    directory = Path(tempfile.mkdtemp(prefix="aether-join"))
    try:
        with postgres_server.running(fsync="on", shared_buffers="128MB") as server:
            found: dict[str, dict[str, dict[str, float]]] = {}
            for name, count in (("tenth", ENTRIES // 10), ("whole", ENTRIES)):
                started = time.monotonic()
                home = colony(directory, server.url(), name, count)
                print(f"{count} entries sent in {time.monotonic() - started:.1f} s", flush=True)
                found[name] = {"lines": joined(directory, server.url(), name, count)}
                started = time.monotonic()
                os.environ[ledgers.URL] = server.url()
                sharing.update_share(home=home)
                print(f"base made in {time.monotonic() - started:.1f} s", flush=True)
                found[name]["base"] = joined(directory, server.url(), name, count)
                print(found[name], flush=True)
        report.write(__file__, {"entries": ENTRIES, **found})
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
