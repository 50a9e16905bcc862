"""Once: of several hook processes for one event, one answers.

Where aether is installed twice, as a plugin and in the settings say, Claude Code starts each at the same time. All
of them keep the event, which is then taken in once; but what each printed would stand before the model as often.
"""

from __future__ import annotations

import os
import time
from hashlib import sha256

from aether.store.spool import is_real

# Those of one event start together; on a busy machine the last is some seconds behind. The same event again, such
# as a second compaction of one turn, takes longer to come.
TOGETHER_SECONDS = 5.0
NAME = "answering"
DIRECTORY = os.path.join("hooks", NAME)
# What tells one event from another; the process that asks is another when a session is resumed once more.
_FIELDS = ("hook_event_name", "session_id", "prompt_id", "prompt", "agent_id", "source", "trigger")


def is_first(home: str, payload: dict[str, object]) -> bool:
    """Return whether no other process has said so for the event of `payload` within the last seconds.

    Where nothing can be written, all are: told twice is better than not at all.
    """
    asking = os.environ.get("CLAUDE_PID") or os.getppid()
    told = "\0".join([str(payload.get(field)) for field in _FIELDS] + [str(asking)])
    directory = os.path.join(home, DIRECTORY)
    name = os.path.join(directory, sha256(told.encode("utf-8", "replace")).hexdigest())
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if not is_real(home, NAME):
            return True  # elsewhere nothing is made, and nothing swept away
        _sweep(directory)
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return not os.path.isdir(directory)
    except OSError:
        return True
    return True


def _sweep(directory: str) -> None:
    """Remove what was said longer ago."""
    now = time.time()
    for entry in os.scandir(directory):
        try:
            # Also what the future says: the clock was set back since.
            if abs(now - entry.stat(follow_symlinks=False).st_mtime) > TOGETHER_SECONDS:
                os.unlink(entry.path)
        except FileNotFoundError:
            continue  # another removed it
