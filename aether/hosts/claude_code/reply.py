"""The reply to an event that reads memory: the text for the model, and the changes that the event asks for.

A reply comes after the event was put into the spool, so a failure here loses nothing. If aether is installed twice,
as a plugin and in the settings say, Claude Code starts both at the same time: both keep the event, which is drained
once, and `is_first` lets one of them answer. Heavy modules are imported by the event that needs them.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from aether.errors import AetherError
from aether.store import ledger
from aether.store.spool import is_real

# The most that is injected into a prompt.
RECALL_TOKENS = 400
TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from aether.hosts.claude_code.hook import Settings
    from aether.types import JsonObject

    Note = Callable[[str], object]

# These drain the spool; the others leave it to the next process that opens the home.
DRAINING_EVENTS = frozenset({"SessionStart", "SubagentStop", "Stop", "PreCompact"})
# In a shared home these start a process of their own, which waits for the server.
EXCHANGING_EVENTS = frozenset({"SessionStart", "Stop", "PreCompact"})
# Seconds of the deadline that compressing needs: a full home takes about one.
COMPRESS_SECONDS = 3.0
# Processes of one event start together; on a busy machine the last is ten seconds late. The same event again, such
# as a second compaction of one turn, comes later.
SAME_EVENT_SECONDS = 15.0
# The architect that a hook asks, and those for which it starts no process, as in aether.store.keys.
HOST, UNASKED = "host", frozenset({"host", "extractive", "manual"})
# Of a session's id: enough to distinguish those that are open.
ID_CHARS = 8
DIRECTORY_NAME = "answering"
DIRECTORY = os.path.join("hooks", DIRECTORY_NAME)
# The identity of an event; a session that is resumed again has another parent process.
_EVENT_FIELDS = (
    "hook_event_name",
    "session_id",
    "prompt_id",
    "prompt",
    "agent_id",
    "source",
    "trigger",
    "tool_use_id",
)


def reply(event: str, entry: JsonObject, home: str, settings: Settings, *, left: float, note: Note) -> str:
    """Return the text for the model, having made the changes of `event` in the name of a hook.

    `left` is the number of seconds that remain, `note` takes failures that do not concern the model. The server of a
    shared home is not asked, because a user waits for a hook: a process of its own exchanges news with it afterwards.
    """
    try:
        with ledger.staying_local():
            return _reply(event, entry, home, settings, left=left, note=note)
    finally:
        if event in EXCHANGING_EVENTS and ledger.shared(Path(home)):
            _exchange(home)


def _reply(event: str, entry: JsonObject, home: str, settings: Settings, *, left: float, note: Note) -> str:
    from aether.store.authors import HOOK

    session = str(entry.get("session", ""))
    if event == "Stop" and entry.get("stop_hook_active"):
        return ""  # another hook kept the turn going; the first stop was drained already
    shared = ledger.shared(Path(home)) is not None
    started = time.monotonic()
    if event in DRAINING_EVENTS and not shared:
        _drain(home, session if event == "SessionStart" else "", note)
    left -= time.monotonic() - started
    match event:
        case "SessionStart":
            start_architect(home, settings, ["--except", session])
            return _joined(_ask(home, session, settings), _brief(entry, home, settings, session))
        case "SubagentStart" if settings.claude_inject:
            from aether.api.briefing import subagent_brief

            return subagent_brief(home, str(entry.get("caste", "")), session)
        case "UserPromptSubmit":
            return _joined(_ask(home, session, settings), _recall(entry, home, settings, session))
        case "PreCompact":
            from aether.api.compress import prepare_for_summary

            _note_settled(home, session, settings, compacted=True)
            with suppress(AetherError, OSError):  # storing the summary prepares it itself
                prepare_for_summary(home, session, by=HOOK)
        case "PostCompact" if entry.get("summary") and not shared:
            from aether.api.compress import ingest_summary

            trigger = str(entry.get("trigger", ""))
            ingest_summary(home, entry["summary"], session=session, trigger=trigger, by=HOOK)
            # Not at PreCompact: the items would be archived before the model has answered.
            start_architect(home, settings, [session])
        case "Stop":
            _note_settled(home, session, settings)
            if settings.claude_auto_compress and not shared and left > COMPRESS_SECONDS:
                _compress(home, by=HOOK)
    return ""


def _joined(ask: str, block: str) -> str:
    """Return both texts; the block is last, because its last line is never cut."""
    return "\n".join(filter(None, (ask, block)))


def _brief(entry: JsonObject, home: str, settings: Settings, session: str) -> str:
    if not settings.claude_inject:
        return ""
    from aether.api.briefing import session_brief

    return session_brief(home, str(entry.get("source", "")), session)


def _recall(entry: JsonObject, home: str, settings: Settings, session: str) -> str:
    if not (settings.claude_recall and entry.get("prompt")):
        return ""
    from aether.api.prompt_recall import prompt_recall

    return prompt_recall(entry["prompt"], budget=RECALL_TOKENS, home=home, session=session)


def _note_settled(home: str, session: str, settings: Settings, *, compacted: bool = False) -> None:
    """Record what has settled, for the next prompt to ask about; nothing if the running agent is not the architect."""
    if settings.architect != HOST:
        return
    from aether.api.asks import note_settled
    from aether.store.snapshot import load

    with suppress(AetherError, OSError):  # at worst it is asked later
        note_settled(Path(home), session, load(Path(home)).documents["memory"], compacted=compacted)


def _ask(home: str, session: str, settings: Settings) -> str:
    """Return the request to close the conversation, if work has settled and was not asked about; one line."""
    if settings.architect != HOST or not session:
        return ""
    from aether.api.asks import take

    what = take(Path(home), session)
    if not what:
        return ""
    from aether.hosts.claude_code.install import ways_to_close

    tool, command = ways_to_close()
    way = f'the tool close_session (session="{session[:ID_CHARS]}")'
    if not tool:
        way = f"`{command} memory close - --session {session[:ID_CHARS]}` (JSON on stdin; see its --help)"
    if not (tool or command):
        return ""
    return (
        f"aether: after {what}, before you go on, record once where this conversation stands (state, next, rules, open, "
        f"decisions; each with a verbatim quote) by {way}."
    )


def start_architect(home: str, settings: Settings, words: Sequence[str]) -> None:
    """Start the process that asks the model that the user chose for sessions, if it is one; wait for nothing."""
    if settings.architect not in UNASKED and words[-1]:
        _start(home, ["-m", "aether.api.detached", home, *words], AETHER_NO_HOOKS="1")


def _exchange(home: str) -> None:
    """Start the command that exchanges news with the server of a shared home, and drains its spool; wait for nothing."""
    from aether.store.offline import tried_lately

    if not tried_lately(Path(home)):  # by another such process: the next event tries again
        _start(home, ["-m", "aether", "fold", "--quiet"])


def _start(home: str, words: Sequence[str], **variables: str) -> None:
    """Start Python with `words` as a process that outlives this one; one that cannot start is no failure."""
    import subprocess

    own: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":  # pragma: no cover - Windows starts it in another way
        own = {"creationflags": getattr(subprocess, "DETACHED_PROCESS", 0)}
    with suppress(OSError):  # the next command or start does it
        # The modules are those of this aether, whatever the directory of the project has.
        started = subprocess.Popen(  # noqa: S603 - the words are aether's own
            [sys.executable, "-P", *words],
            env={**os.environ, "AETHER_HOME": home, **variables}, cwd=home, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **own,
        )  # fmt: skip
        started.returncode = 0  # it may outlive this process, which does not look at it again


def about_file(payload: JsonObject, home: str, *, private: str) -> str:
    """Return what memory knows about the file that a tool has read, once in a session; nothing about a private one."""
    from aether.api.timeline import file_reminder
    from aether.redact.redact import is_private

    given, cwd = payload.get("tool_input"), str(payload.get("cwd") or "")
    if not isinstance(given, dict) or (private and is_private(given, private, cwd)):
        return ""
    path = given.get("file_path")
    if not isinstance(path, str):
        return ""
    return file_reminder(path, home=home, session=str(payload.get("session_id") or ""))


def _drain(home: str, started: str, note: Note) -> None:
    """Drain the spool; if only starts of sessions wait there, as that of `started`, nothing more is imported."""
    if started:
        from aether.api.hook_sessions import store_starts

        if store_starts(Path(home), started):
            return
    from aether.api.drain import drain

    if left := drain(Path(home), started=started).left:
        note(f"waits in the spool: {left}")


def _compress(home: str, *, by: str) -> None:
    """Compress the phase that fills working memory, without a model; nothing if it is not full."""
    from aether.memory.items import token_usage
    from aether.store.snapshot import load

    if not token_usage(load(Path(home)).documents["memory"]).needed:
        return  # nothing more is imported at most stops
    from aether.api.compress import FALLBACK, compress, prepare_current_phase

    if record := prepare_current_phase(home, by=by).record:
        compress(record["phase"], architect=FALLBACK, home=home, by=by)


def is_first(home: str, payload: dict[str, object]) -> bool:
    """Return whether no other process has answered the event of `payload` within the last seconds.

    If nothing can be written every process is the first: a text twice is better than none.
    """
    asking = os.environ.get("CLAUDE_PID") or os.getppid()
    words = "\0".join([str(payload.get(field)) for field in _EVENT_FIELDS] + [str(asking)])
    directory = os.path.join(home, DIRECTORY)
    name = os.path.join(directory, sha256(words.encode("utf-8", "replace")).hexdigest())
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if not is_real(home, DIRECTORY_NAME):
            return True  # a link leads elsewhere: nothing is created or removed there
        _remove_old(directory)
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return not os.path.isdir(directory)
    except OSError:
        return True
    return True


def _remove_old(directory: str) -> None:
    now = time.time()
    for entry in os.scandir(directory):
        try:
            # Also a file of the future: the clock was set back since.
            if abs(now - entry.stat(follow_symlinks=False).st_mtime) > SAME_EVENT_SECONDS:
                os.unlink(entry.path)
        except FileNotFoundError:
            continue  # another process removed it
