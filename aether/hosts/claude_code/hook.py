"""The hook process: one event of Claude Code on standard input, kept in the spool and answered.

It never breaks, slows or floods its host: it exits with 0, within its deadline, and a failure is one line of
`hook.log`. The event is in the spool, durably, before anything that may fail is tried. An event of a tool ends there
and imports next to nothing. Code that holds the interpreter is ended from outside, with 1 and without a line.
What is kept of an event is decided in `event`, the text for the model in `reply`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from types import ModuleType

from aether import regular
from aether.errors import AetherError, StorageFailed
from aether.project import home_of, may_create_home, user_file
from aether.store import spool

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import NoReturn

    from aether.store.keys import Config
    from aether.types import JsonObject

    Deadline = Callable[[float, str, str, str], None]
    Settings = Config | type["Usual"]
else:
    import _signal as signal  # without the enumerations that `signal` makes of its numbers

# Seconds until the event must be in the spool, which takes a tenth of one on an idle machine: a little less than the
# host waits, see aether.hosts.claude_code.install. Only then claude.deadline_seconds are counted.
LIGHT_DEADLINE, HEAVY_DEADLINE, COMPACTION_DEADLINE, SESSION_END_DEADLINE = 4.0, 12.0, 27.0, 1.8
# Whatever a configuration says: the host waits no longer, and the configuration may come with a repository.
MOST_SECONDS = 30.0
# For an event whose storing took very long: it is still answered if the answer is quick.
LEAST_SECONDS = 0.1
# The second clock ends code that holds the interpreter, after the first had its chance.
GRACE_SECONDS = 1.0
# The events after which memory is read.
HEAVY_EVENTS = frozenset(
    "SessionStart UserPromptSubmit SubagentStart SubagentStop Stop PreCompact PostCompact".split()
)
# A full home takes several seconds around a compaction, and a person waits for a compaction in any case.
COMPACTION_EVENTS, COMPACTION_FACTOR = frozenset({"PreCompact", "PostCompact"}), 3
# The events that create a missing home.
HOME_EVENTS = frozenset({"SessionStart", "UserPromptSubmit"})
# The events that name paths.
TOOL_EVENTS = frozenset({"PostToolUse", "PostToolUseFailure", "PostToolBatch"})
# The events that end a turn, or its part before a compaction: the transcript holds more than their payload.
TRANSCRIPT_EVENTS = frozenset({"Stop", "SubagentStop", "PreCompact"})
# The events whose output Claude Code gives to the model; others print nothing.
CONTEXT_EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart"})
# As in aether.api.asks.
ASKS = os.path.join("hooks", "asks")
# Set for the model that aether starts itself: what that does is no session.
OFF = "AETHER_NO_HOOKS"
# Claude Code's limit in its own units: of a longer text it shows only the start. MOST_CHARS stays well below.
LIMIT_CHARS = 10_000
MOST_CHARS = 9_000
# No meaningful number has as many.
MOST_DIGITS = 100
# Sent only if `claude.file_history` was on when aether was installed; nothing is kept of it.
READ_EVENT, READ_TOOL = "PostToolUse", "Read"
USAGE = """aether-hook reads one event of Claude Code on its standard input. To see what it says:
  echo '{"hook_event_name": "SessionStart", "source": "startup"}' | aether-hook
To have Claude Code call it: aether claude install
"""
_OPENED: list[int] = []


class Usual:
    """The settings where none of hooks is set: as in aether.store.keys, which takes too long to import."""

    claude_capture = claude_inject = claude_recall = claude_auto_compress = True
    claude_private_paths = ".env, .env.*, *.pem, *.key, id_rsa*, id_ed25519*, .ssh/**, .aws/**"
    claude_deadline_seconds, claude_file_history = 8.0, False
    architect = "extractive"


def run() -> NoReturn:
    """Answer the event on standard input as a process of its own, and end it."""
    import gc

    gc.disable()  # the process is over before there is garbage
    os._exit(serve(sys.argv[1:]))  # the interpreter's own end takes as long as the event


def serve(arguments: list[str]) -> int:
    """Answer the event on standard input under the deadline, print the text for the model, return the exit code."""
    helps = not {"--help", "-h"}.isdisjoint(arguments)
    if helps or sys.stdin is None or sys.stdin.isatty():
        stream = sys.stdout if helps else sys.stderr
        if stream is not None:
            stream.write(USAGE)
            stream.flush()
        return 0 if helps else 1
    set_deadline(MOST_SECONDS, "", arguments[0] if arguments else "", "")  # while the host still writes
    code, text = main(arguments, sys.stdin.buffer.read(), deadline=set_deadline)
    set_deadline(0, "", "", "")
    if sys.stdout is None:
        return code  # it was closed before the process started
    try:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
    except OSError:
        return 0  # nobody reads it
    return code


def main(argv: list[str], stdin: bytes, *, deadline: Deadline | None = None) -> tuple[int, str]:
    """Return the exit code for the event in `stdin`, and the text to print; never raise.

    `deadline` is called with the seconds that the next step may take, and with home, event and session.

    >>> main(["PostToolUse"], b'{"cwd": "/nowhere"}')
    (0, '')
    """
    event, session, home = (argv[0] if argv else ""), "", ""
    deadline = deadline or (lambda *_: None)
    try:
        home = _home({})
        deadline(_seconds_to_keep(event), home, event, session)
        payload = _parse(stdin)
        event, session = _text(payload, "hook_event_name") or event, _text(payload, "session_id")
        home = _home(payload)
        return 0, _answer(payload | {"hook_event_name": event}, home, deadline)
    except Exception as reason:  # noqa: BLE001 - a failure here must not fail the host
        logged = spool.log_failure(home, event, session, f"{type(reason).__name__}: {reason}")
        return 0, "" if logged or event not in HOME_EVENTS else _not_stored(home, reason)


def _answer(payload: JsonObject, home: str, deadline: Deadline) -> str:
    event, session, started = payload["hook_event_name"], _text(payload, "session_id"), time.monotonic()
    to_keep = _seconds_to_keep(event)
    deadline(to_keep, home, event, session)
    ready = os.path.isdir(os.path.join(home, "data"))
    paused = os.path.exists(os.path.join(home, "hooks", "paused"))
    if not home or paused or os.environ.get(OFF) or not (ready or _make_place(event, home)):
        return ""
    if event in HEAVY_EVENTS:
        import_less()
    settings, private, wrong = _settings(home, event, session)
    if wrong:
        spool.log_failure_once(home, event, session, wrong)
    if private is None and event in TOOL_EVENTS:
        return ""  # it may name a private path
    if event == READ_EVENT and _text(payload, "tool_name") == READ_TOOL:
        return _about_file(payload, home, private or "") if settings.claude_file_history and ready else ""
    entry, lost = _keep(payload, home, (private or "") if settings.claude_capture else None)
    if lost and not (ready and event in CONTEXT_EVENTS):
        raise lost
    if event == "SessionEnd" and ready and settings.architect != Usual.architect:
        from aether.hosts.claude_code.reply import start_architect

        start_architect(home, settings, [session])
    if entry is None or event not in HEAVY_EVENTS:
        return ""
    seconds = settings.claude_deadline_seconds
    seconds = min(seconds * (COMPACTION_FACTOR if event in COMPACTION_EVENTS else 1), MOST_SECONDS)
    seconds = max(LEAST_SECONDS, min(seconds, started + max(seconds, to_keep) - time.monotonic()))
    deadline(seconds, home, event, session)
    said = _reply(payload, entry, home, settings, until=time.monotonic() + seconds, ready=ready)
    if lost is None or spool.log_failure(home, event, session, str(lost)) or event not in HOME_EVENTS:
        return said
    shown = _not_stored(home, lost, "What memory holds is still read.")
    return json.dumps({**json.loads(said or "{}"), **json.loads(shown)}, ensure_ascii=False)


def import_less() -> None:
    """Import `datetime` and `pathlib`, which all that reads memory needs, without what takes longest and is never used.

    The one, before Python 3.12, makes its classes in Python, and replaces them by those of `_datetime`. The other imports
    all of `urllib.parse` for a function that it seldom calls: it gets a placeholder, which is removed again.
    """
    if sys.implementation.name == "cpython":
        sys.modules.setdefault("datetime", __import__("_datetime"))
    name = "urllib.parse"
    if not {"pathlib", name} & sys.modules.keys():
        part = sys.modules[name] = ModuleType(name)
        part.__dict__["quote_from_bytes"] = lambda data: __import__(name, fromlist="*").quote_from_bytes(data)
        try:
            __import__("pathlib")
        finally:
            del sys.modules[name]


def _make_place(event: str, home: str) -> bool:
    """Return whether a home may be created with `event`; if so, its directory exists and git ignores it."""
    above = os.path.dirname(home)
    if event not in HOME_EVENTS or not may_create_home(above) or not os.path.isdir(above):
        return False
    os.makedirs(home, mode=0o700, exist_ok=True)
    regular.create(os.path.join(home, ".gitignore"), b"*\n")
    return True


def _keep(
    payload: JsonObject, home: str, private: str | None
) -> tuple[JsonObject | None, StorageFailed | None]:
    """Return the entry of the event, having put it into the spool, and why it is not there.

    With `private` None nothing is put there.
    """
    from aether.hosts.claude_code.event import entry_of

    found = {} if private is None else from_transcript(payload)
    entry = entry_of(payload | found, private=private or "")
    if entry is not None and private is not None:
        now = time.time_ns()
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
        entry["at"] = f"{at}.{now // 1000 % 10**6:06d}Z"
        try:
            spool.put(home, entry)
        except StorageFailed as reason:
            return entry, reason
    return entry, None


def from_transcript(payload: JsonObject) -> JsonObject:
    """Return the fields of an event that only the transcript of its session holds."""
    if payload["hook_event_name"] not in TRANSCRIPT_EVENTS:
        return {}
    from aether.hosts.claude_code.transcript import agent_task, interim_texts

    last, own = _text(payload, "last_assistant_message"), _text(payload, "agent_transcript_path")
    if payload["hook_event_name"] == "SubagentStop":
        return {"task_text": agent_task(own), "said": interim_texts(own, message=last, agent=True)}
    return {"said": interim_texts(_text(payload, "transcript_path"), message=last)}


def _reply(
    payload: JsonObject, entry: JsonObject, home: str, settings: Settings, *, until: float, ready: bool
) -> str:
    """Return the output for an event that was kept; a home that is not `ready` is created first."""
    from aether.hosts.claude_code.reply import is_first, reply

    event, session = payload["hook_event_name"], _text(payload, "session_id")
    if not ready:
        from pathlib import Path

        from aether.api.admin import init

        init(Path(home))
    if not is_first(home, payload):
        return ""
    text = reply(
        event, entry, home, settings,
        left=until - time.monotonic(),
        note=lambda words: spool.log_failure(home, event, session, words),
    )  # fmt: skip
    return output(event, text)


def _about_file(payload: JsonObject, home: str, private: str) -> str:
    """Return the output for a file that was read: what memory knows about it, nothing about a private one."""
    from aether.hosts.claude_code.reply import about_file, is_first

    text = about_file(payload, home, private=private) if is_first(home, payload) else ""
    return _fitted(text, lambda kept: _context(READ_EVENT, kept)) if text else ""


def output(event: str, text: str) -> str:
    """Return the output that gives `text` to the model of `event`; nothing if the event takes no text.

    >>> output("SubagentStart", "Use SQLite.")
    '{"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Use SQLite."}}'
    >>> output("PreCompact", "Keep the plan.")
    ''
    """
    text = _printable(text)
    if event in CONTEXT_EVENTS:
        return _fitted(text, lambda kept: _context(event, kept))
    return ""


def _not_stored(home: str, reason: Exception, left: str = "The session goes on without its memory.") -> str:
    """Return the output by which the user learns of a failure that no log could take, and what is `left`."""
    what = str(reason) if isinstance(reason, AetherError) else f"{home}: {reason}"
    return _for_user(_printable(f"aether: {what.rstrip('.')}. {left}"))


def _for_user(text: str) -> str:
    return json.dumps({"systemMessage": text}, ensure_ascii=False)


def _printable(text: str) -> str:
    """Return `text` without lone surrogates, which would end the process while it prints."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _context(event: str, text: str) -> str:
    context = {"hookEventName": event, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": context}, ensure_ascii=False)


def _fitted(text: str, shape: Callable[[str], str]) -> str:
    """Return the shape of as many lines as fit; the last line, which closes the block, always stays."""
    *lines, last = text.splitlines() or [""]

    def first(kept: int) -> str:
        return "\n".join([*lines[:kept], last])

    if length_of(shape(text)) > MOST_CHARS:
        from bisect import bisect_right  # few texts are cut

        fitting = bisect_right(range(len(lines)), MOST_CHARS, key=lambda kept: length_of(shape(first(kept))))
        text = first(fitting - 1) if fitting else ""
    return shape(text) if text.strip() else ""


def length_of(text: str) -> int:
    """Return the length of `text` for Claude Code: characters beyond the first 65,536 count twice."""
    if text.isascii():
        return len(text)  # to look for the other encoding takes longer
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _settings(home: str, event: str, session: str) -> tuple[Settings, str | None, str]:
    """Return the settings, the private paths, and the errors of the settings.

    A wrong setting has its default; but the private paths are None if they may be set and cannot be read. Events of
    tools, and prompts before any work has settled, need no architect: a home that names one costs them nothing.
    """
    asks = os.path.join(
        home, ASKS, f"{session}.json"
    )  # the name of a session that is a UUID, as those of the host are
    needs_none = event in TOOL_EVENTS or (event == "UserPromptSubmit" and not os.path.exists(asks))
    tables = ("claude",) if needs_none else ("claude", "architect")
    mentioned = any(
        name.startswith(tuple(f"AETHER_{table.upper()}_" for table in tables)) for name in os.environ
    )
    for path in (os.path.join(home, "config.toml"), user_file()):
        try:
            own = os.path.realpath(path) if path == user_file() else path
            # An architect may be called so.
            text = regular.read(own, regular.CONFIG_BYTES).replace(b"claude-code", b"")
            mentioned = mentioned or any(table.encode() in text for table in tables)
        except FileNotFoundError:
            continue
        except (OSError, AetherError):
            mentioned = True  # an unreadable file may hold a setting of hooks
    if not mentioned:
        return Usual, Usual.claude_private_paths, ""
    from pathlib import Path

    from aether.store.config import hides_private_paths, load_with_errors

    settings, wrong = load_with_errors(Path(home))
    private: str | None = settings.claude_private_paths
    words = " ".join(wrong.values())
    if hides_private_paths(wrong):
        words += " Calls of tools are not kept, for claude.private_paths cannot be read."
        private = None
    return settings, private, words


def _seconds_to_keep(event: str) -> float:
    if event in COMPACTION_EVENTS:
        return COMPACTION_DEADLINE
    if event in HEAVY_EVENTS:
        return HEAVY_DEADLINE
    return SESSION_END_DEADLINE if event == "SessionEnd" else LIGHT_DEADLINE


def _parse(stdin: bytes) -> JsonObject:
    def number(digits: str) -> int | str:
        # Python refuses to make a number of some thousand digits.
        return int(digits) if len(digits) <= MOST_DIGITS else digits

    try:
        payload = json.loads(stdin, parse_int=number)
    except UnicodeDecodeError:
        payload = json.loads(stdin.decode("utf-8", "replace"), parse_int=number)
    if not isinstance(payload, dict):
        raise ValueError("the event is no JSON object")  # noqa: TRY004 - caught and logged above
    return payload


def _home(payload: JsonObject) -> str:
    cwd = _text(payload, "cwd")
    return home_of(cwd if cwd and "\0" not in cwd else os.getcwd(), os.environ.get("CLAUDE_PROJECT_DIR", ""))


def _text(payload: JsonObject, field: str) -> str:
    value = payload.get(field)
    return value if isinstance(value, str) else ""


def set_deadline(seconds: float, home: str, event: str, session: str) -> None:
    """Let the process exit with 0 and a line in the log after `seconds`; 0 removes the deadline."""
    import faulthandler

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: _time_out(home, event, session))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.cancel_dump_traceback_later()
    if seconds:
        # One file for the life of the process: a C thread writes the traceback, which nobody reads.
        if not _OPENED:
            _OPENED.append(os.open(os.devnull, os.O_WRONLY))
        faulthandler.dump_traceback_later(seconds + GRACE_SECONDS, exit=True, file=_OPENED[0])


def _time_out(home: str, event: str, session: str) -> NoReturn:
    spool.log_failure(home, event, session, "was not done in time")
    os._exit(0)
