"""Seams are called by several threads at once."""

from __future__ import annotations

import subprocess
import sys

from tests import homes

PROGRAM = """
import sys
from pathlib import Path
from threading import Barrier, Thread

from aether import seams

begin, failures = Barrier(8), []

def read():
    begin.wait()
    try:
        seams.call("drain", Path(sys.argv[1]))
    except Exception as reason:
        failures.append(repr(reason))

threads = [Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*failures, end="")
"""


def test_threads_that_need_a_module_at_once_wait_for_its_import(tmp_path):
    home = homes.fresh(tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home)], capture_output=True, text=True, check=True
    )

    assert done.stdout == ""
