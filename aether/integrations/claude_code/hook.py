"""The hook process: reads one event, keeps it, and tells the model what it should know.

It never breaks, slows or floods its host: it ends with 0, within its deadline, and what went wrong is one line of
`hook.log`. First the event is put into the spool, durably, even on a machine that is very busy; all that comes after
may fail and loses nothing. An event of a tool ends there, and has imported next to nothing. Only what never lets go of
the interpreter is ended from outside of it, with 1 and without a line.

Contract: what a hook may print for which event, in which shape, and how much of it.

Three events give the model context, as JSON; PreCompact steers the summary with plain text; all others print nothing.
Claude Code puts a longer text into a file and shows the model its beginning only, so ours stay well below that.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from bisect import bisect_right

from aether.project import home_of, may_create_home, user_file
from aether.store import spool

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from aether.types import JsonObject

# Seconds until the event must be in the spool, which takes a tenth of one where nothing else goes on: a little less
# than the host waits, as aether.integrations.claude_code.install asks it to. Then claude.deadline_seconds count.
LIGHT_SECONDS, HEAVY_SECONDS, COMPACTION_SECONDS, SESSION_END_SECONDS = 4.0, 12.0, 27.0, 1.8
# Whatever a configuration says: the host waits no longer, and it may come with a repository.
MOST_SECONDS = 30.0
# So that an event that took very long to be kept is still answered where that is quick.
LEAST_SECONDS = 0.1
# The second clock is for code that holds the interpreter: it runs when the first had its chance.
GRACE_SECONDS = 1.0
# The events after which memory is read.
HEAVY_EVENTS = frozenset(
    "SessionStart UserPromptSubmit SubagentStart SubagentStop Stop PreCompact PostCompact".split()
)
# What compacting asks for takes a full home several seconds, and a person waits for a compaction in any case.
COMPACTION_EVENTS, COMPACTION_FACTOR = frozenset({"PreCompact", "PostCompact"}), 3
# Those that make a home where there is none.
HOME_EVENTS = frozenset({"SessionStart", "UserPromptSubmit"})
# Those that tell of paths.
TOOL_EVENTS = frozenset({"PostToolUse", "PostToolUseFailure", "PostToolBatch"})
# Those at which a turn, or its part before a compaction, is over.
TRANSCRIPT_EVENTS = frozenset({"Stop", "SubagentStop", "PreCompact"})
# No number that means anything has as many.
MOST_DIGITS = 100
# As in aether.store.config, which is too much to import for the event of a tool: whether events are kept, the
# private paths, and the deadline.
DEFAULT_SETTINGS = (True, ".env, .env.*, *.pem, *.key, id_rsa*, id_ed25519*, .ssh/**, .aws/**", 8.0)
USAGE = """aether-hook reads one event of Claude Code on its standard input. To see what it says:
  echo '{"hook_event_name": "SessionStart", "source": "startup"}' | aether-hook
To have Claude Code call it: aether claude install
"""


def run() -> NoReturn:
    """Answer the event on standard input as a process of its own, and end it."""
    import gc

    gc.disable()  # the process is over before there is garbage
    code = serve(sys.argv[1:])
    os._exit(code)  # what an interpreter does at its end takes as long as the event


def serve(arguments: list[str]) -> int:
    """Answer the event on standard input under the deadline, print what the model is told, return the exit code."""
    if sys.stdin is None or sys.stdin.isatty():
        if sys.stderr is not None:
            sys.stderr.write(USAGE)
            sys.stderr.flush()
        return 1
    set_deadline(MOST_SECONDS, "", arguments[0] if arguments else "", "")  # until the host has said all
    code, text = main(arguments, sys.stdin.buffer.read(), deadline=set_deadline)
    set_deadline(0, "", "", "")
    if sys.stdout is None:
        return code  # it was closed before we began
    try:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
    except OSError:
        return 0  # nobody reads what is told
    return code


def main(argv: list[str], stdin: bytes, *, deadline: Deadline | None = None) -> tuple[int, str]:
    """Return the exit code for the event in `stdin`, and what is printed; never raise.

    `deadline` is told how long what follows may take, and of which home, event and session it is.

    >>> main(["PostToolUse"], b'{"cwd": "/nowhere"}')
    (0, '')
    """
    event, session, home = (argv[0] if argv else ""), "", ""
    deadline = deadline or _no_deadline
    try:
        home = _home({})
        deadline(_seconds_to_keep(event), home, event, session)
        payload = _read(stdin)
        event, session = _word(payload, "hook_event_name") or event, _word(payload, "session_id")
        home = _home(payload)
        return 0, _answer(payload | {"hook_event_name": event}, home, deadline)
    except Exception as reason:  # noqa: BLE001 - whatever fails here must not fail there
        spool.log_failure(home, event, session, f"{type(reason).__name__}: {reason}")
        return 0, ""


def _answer(payload: JsonObject, home: str, deadline: Deadline) -> str:
    event, session, began = payload["hook_event_name"], _word(payload, "session_id"), time.monotonic()
    patience = _seconds_to_keep(event)
    deadline(patience, home, event, session)
    ready = os.path.isdir(os.path.join(home, "data"))
    if (
        not home
        or os.path.exists(os.path.join(home, "hooks", "paused"))
        or not (ready or _may_create(event, home))
    ):
        return ""
    capture, private, seconds, wrong = _settings(home)
    if wrong:
        spool.log_failure_once(home, event, session, wrong)
    if private is None and event in TOOL_EVENTS:
        return ""  # it may be about a path that is private
    entry = _keep(payload, home, (private or "") if capture else None)
    if entry is None or event not in HEAVY_EVENTS:
        return ""
    seconds = min(seconds * (COMPACTION_FACTOR if event in COMPACTION_EVENTS else 1), MOST_SECONDS)
    seconds = max(LEAST_SECONDS, min(seconds, began + max(seconds, patience) - time.monotonic()))
    deadline(seconds, home, event, session)
    return _reply(payload, entry, home, until=time.monotonic() + seconds, ready=ready)


def _reply(payload: JsonObject, entry: JsonObject, home: str, *, until: float, ready: bool) -> str:
    """Return what is printed for an event that was kept, having made the home where it is not `ready`."""
    event, session = payload["hook_event_name"], _word(payload, "session_id")
    if not ready:
        from pathlib import Path

        from aether.api.admin import init

        init(Path(home))
    from aether.integrations.claude_code.event import is_first

    if not is_first(home, payload):
        return ""
    pass
    from aether.integrations.claude_code.reply import reply

    told = reply(
        event, entry, home,
        left=until - time.monotonic(),
        note=lambda what: spool.log_failure(home, event, session, what),
    )  # fmt: skip
    return output(event, told)


def _keep(payload: JsonObject, home: str, private: str | None) -> JsonObject | None:
    """Return the entry of the event, having put it into the spool; nothing is put where `private` is None."""
    from aether.integrations.claude_code.event import entry_of

    told = _from_transcript(payload) if private is not None else {}
    entry = entry_of(payload | told, private=private or "")
    if entry is not None and private is not None:
        from aether.store import spool

        now = time.time_ns()
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
        entry["at"] = f"{at}.{now // 1000 % 10**6:06d}Z"
        spool.put(home, entry)
    return entry


def _from_transcript(payload: JsonObject) -> JsonObject:
    """Return what only the transcript tells: what a sub-agent was asked, and what was said before the last message."""
    event, last = payload["hook_event_name"], _word(payload, "last_assistant_message")
    if event not in TRANSCRIPT_EVENTS:
        return {}
    from aether.integrations.claude_code.transcript import agent_task, interim_texts

    own = _word(payload, "agent_transcript_path")
    if event == "SubagentStop":
        return {"task_text": agent_task(own), "said": interim_texts(own, message=last, agent=True)}
    return {"said": interim_texts(_word(payload, "transcript_path"), message=last)}


def _may_create(event: str, home: str) -> bool:
    """Return whether a home may be made with `event`, having made the place for it."""
    above = os.path.dirname(home)
    if event not in HOME_EVENTS or not may_create_home(above) or not os.path.isdir(above):
        return False
    _keep_from_git(home)
    return True


def _keep_from_git(home: str) -> None:
    """Make the home so that it is never committed by accident, before there is anything in it."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    try:
        with open(os.path.join(home, ".gitignore"), "x", encoding="utf-8") as file:
            file.write("*\n")
    except FileExistsError:
        return


def _settings(home: str) -> tuple[bool, str | None, float, str]:
    """Return whether events are kept, the private paths, the deadline, and what is wrong with the settings.

    What is wrong has its default; but the private paths are None where they may be set, and cannot be read.
    """
    files = (os.path.join(home, "config.toml"), user_file())
    if not any(map(_may_set, files)) and not any(name.startswith("AETHER_CLAUDE_") for name in os.environ):
        return (*DEFAULT_SETTINGS, "")
    from pathlib import Path

    from aether.store.config import load_with_errors

    settings, wrong = load_with_errors(Path(home))
    unread = not wrong.keys().isdisjoint(("", "claude", "claude.private_paths"))
    private = None if unread else settings.claude_private_paths
    said = "" if not unread else " Calls of tools are not kept, for claude.private_paths cannot be read."
    said = " ".join(wrong.values()) + said
    return settings.claude_capture, private, settings.claude_deadline_seconds, said


def _may_set(path: str) -> bool:
    """Return whether the file at `path` may hold a setting of hooks."""
    try:
        with open(path, "rb") as file:
            return b"claude" in file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _seconds_to_keep(event: str) -> float:
    """Return how many seconds `event` may take to be put into the spool."""
    if event in COMPACTION_EVENTS:
        return COMPACTION_SECONDS
    if event in HEAVY_EVENTS:
        return HEAVY_SECONDS
    return SESSION_END_SECONDS if event == "SessionEnd" else LIGHT_SECONDS


def _read(stdin: bytes) -> JsonObject:
    try:
        payload = json.loads(stdin, parse_int=_number)
    except UnicodeDecodeError:
        payload = json.loads(stdin.decode("utf-8", "replace"), parse_int=_number)
    if not isinstance(payload, dict):
        raise ValueError("the event is no JSON object")  # noqa: TRY004 - caught and logged above
    return payload


def _number(digits: str) -> int | str:
    """Return the number that `digits` write; the digits themselves where Python makes no number of so many."""
    return int(digits) if len(digits) <= MOST_DIGITS else digits


def _home(payload: JsonObject) -> str:
    cwd = _word(payload, "cwd")
    return home_of(cwd if cwd and "\0" not in cwd else os.getcwd(), os.environ.get("CLAUDE_PROJECT_DIR", ""))


def _word(payload: JsonObject, field: str) -> str:
    value = payload.get(field)
    return value if isinstance(value, str) else ""


def set_deadline(seconds: float, home: str, event: str, session: str) -> None:
    """Let the process end with 0 and a line in the log after `seconds` from now; 0: let it go on."""
    import faulthandler

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: _timed_out(home, event, session))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.cancel_dump_traceback_later()
    if seconds:
        faulthandler.dump_traceback_later(seconds + GRACE_SECONDS, exit=True, file=_null_file())


def _no_deadline(seconds: float, home: str, event: str, session: str) -> None:
    """Let what follows take its time: the caller is a process of its own."""


def _timed_out(home: str, event: str, session: str) -> NoReturn:
    spool.log_failure(home, event, session, "was not done in time")
    os._exit(0)


def _null_file() -> int:
    """Return where a traceback is not seen: one file for the life of the process, for a C thread writes to it."""
    if not _OPENED:
        _OPENED.append(os.open(os.devnull, os.O_WRONLY))
    return _OPENED[0]


_OPENED: list[int] = []

if TYPE_CHECKING:
    Deadline = Callable[[float, str, str, str], None]


CONTEXT_EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart"})
PLAIN_EVENTS = frozenset({"PreCompact"})
# Claude Code's limit, in the units of its language, and what we allow ourselves of it.
LIMIT_CHARS = 10_000
MOST_CHARS = 9_000


def output(event: str, text: str) -> str:
    """Return what is printed so that the model of `event` is told `text`; nothing where it may be told nothing.

    >>> output("SubagentStart", "Use SQLite.")
    '{"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Use SQLite."}}'
    >>> output("PreCompact", "Keep the plan."), output("PostToolUse", "Well done.")
    ('Keep the plan.', '')
    """
    # What is no UTF-8 would end the process while it prints.
    text = text.encode("utf-8", "replace").decode("utf-8")
    if event in CONTEXT_EVENTS:
        return _fitted(text, lambda kept: _context(event, kept))
    return _fitted(text, _plain) if event in PLAIN_EVENTS else ""


def _fitted(text: str, shape: Callable[[str], str]) -> str:
    """Return the shape of as many lines as fit; the last one, which closes what the first opened, is kept."""
    *lines, last = text.splitlines() or [""]

    def first(kept: int) -> str:
        return "\n".join([*lines[:kept], last])

    if length_of(shape(text)) > MOST_CHARS:
        fitting = bisect_right(range(len(lines)), MOST_CHARS, key=lambda kept: length_of(shape(first(kept))))
        text = first(fitting - 1) if fitting else ""
    return shape(text) if text.strip() else ""


def _context(event: str, text: str) -> str:
    said = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return json.dumps(said, ensure_ascii=False)


def _plain(text: str) -> str:
    # A text that begins with a brace would be read as JSON.
    return f"- {text}" if text.lstrip().startswith("{") else text


def length_of(text: str) -> int:
    """Return how long `text` is for Claude Code: characters beyond the first 65,536 count twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
