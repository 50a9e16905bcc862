"""The answer to an event: the text for the model, and the changes that the event asks for, for any host.

The event was put into the spool before, so a failure here loses nothing. If aether is installed twice, as a plugin and
in the settings say, the host starts both at the same time: both keep the event, which is drained once, and `is_first`
lets one of them answer. Heavy modules are imported by the event that needs them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aether import regular
from aether.errors import AetherError
from aether.regular import checksum
from aether.store import ledger, places, spool
from aether.store.spool import is_real

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aether.hosts.hook import Settings
    from aether.types import JsonObject

# These drain the spool, the latter in a process of their own; the others leave it to the next process that opens the home.
DRAINING_EVENTS, LATE_EVENTS = frozenset({"SessionStart", "PreCompact"}), frozenset({"Stop", "SubagentStop"})
# Several sessions end turns at once, and nobody waits for what they yielded.
LATE_SECONDS = 30.0
# Processes of one event start together; on a busy machine the last is ten seconds late. The same event again, such
# as a second compaction of one turn, comes later.
SAME_EVENT_SECONDS = 15.0
# The architect that a hook asks, and those for which it starts no process, as in aether.store.keys.
HOST, UNASKED = "host", frozenset({"host", "extractive", "manual"})
# Of a session's id: enough to distinguish those that are open.
ID_CHARS = 8
DIRECTORY_NAME = "answering"
# The most that is injected into a prompt.
RECALL_TOKENS = 400


def answer(
    host: Any, entry: JsonObject, home: str, settings: Settings, *, note: Callable[[str], object]
) -> str:
    """Return the text for the model, having made the changes of the event in the name of a hook.

    `note` takes failures that do not concern the model. What the end of a turn asks for is left to a process of its own, for
    which nobody waits; so is the server of a shared home.
    """
    event, session = entry["event"], entry["session"]
    if event == "Stop" and entry.get("stop_hook_active"):
        return ""  # another hook kept the turn going; the first stop was drained already
    if event in LATE_EVENTS:
        work = ["settle"] * (settings.architect == HOST) + ["compress"] * settings.claude_auto_compress
        start_late(home, event, session, *(work if event == "Stop" else ()))
        return ""
    is_shared = ledger.is_shared(Path(home))
    try:
        with ledger.staying_local():
            if event in DRAINING_EVENTS and not is_shared:
                _drain(home, session if event == "SessionStart" else "", note)
            if event in DRAINING_EVENTS:
                keep_notes(home, event, session, note)
            if event == "SessionStart":
                places.remember(home)
                start_architect(home, settings, ["--except", session])
            text = _text(host, entry, home, settings)
            _change(entry, home, settings, is_shared=is_shared)
            return text
    finally:
        if event in DRAINING_EVENTS and is_shared:
            _exchange(home)


def _text(host: Any, entry: JsonObject, home: str, settings: Settings) -> str:
    """Return the text for the model; a block comes last, because the last line of a text is never cut."""
    session = entry["session"]
    match entry["event"]:
        case "SessionStart":
            from aether.api.briefing import session_brief

            brief = session_brief(home, entry.get("source", ""), session) if settings.claude_inject else ""
            return "\n".join(filter(None, (_ask(host, home, session, settings), brief)))
        case "SubagentStart" if settings.claude_inject:
            from aether.api.briefing import subagent_brief

            return subagent_brief(home, entry.get("caste", ""), session)
        case "UserPromptSubmit":
            ask = _ask(host, home, session, settings)
            if not (settings.claude_recall and entry.get("prompt")):
                return ask
            from aether.api.prompt_recall import prompt_recall

            late = partial(start_process, home, ["-m", "aether.search.archive", home])
            recalled = prompt_recall(
                entry["prompt"], budget=RECALL_TOKENS, home=home, session=session, late=late
            )
            return "\n".join(filter(None, (ask, recalled)))
    return ""


def main(home: str, event: str, session: str, *work: str) -> None:
    """Do what the end of a turn or a session asks for; a failure is a line of `hook.log`, for nobody reads this process."""

    def note(words: str) -> None:
        spool.log_failure(home, event, session, words)

    is_shared = ledger.is_shared(Path(home))
    try:
        with ledger.staying_local():
            if not is_shared:
                _drain(home, "", note, patience=LATE_SECONDS)
            keep_notes(home, event, session, note)
            if "settle" in work:
                _settle(home, session, compacted=False)
            if "compress" in work and not is_shared:
                _compress(home)
            if "brief" in work:
                from aether.api.briefing import session_brief

                session_brief(home, "startup")  # kept: the next session reads it
    except Exception as reason:  # noqa: BLE001 - there is no one to raise to
        note(f"{type(reason).__name__}: {reason}")
    if event == "Stop" and is_shared:
        _exchange(home)


def _change(entry: JsonObject, home: str, settings: Settings, *, is_shared: bool) -> None:
    """Make the changes that a compaction asks for."""
    from aether.store.authors import HOOK

    event, session = entry["event"], entry["session"]
    if event == "PreCompact":
        from aether.api.compress import prepare_for_summary

        if settings.architect == HOST:
            _settle(home, session, compacted=True)
        with suppress(AetherError, OSError):  # storing the summary prepares it itself
            prepare_for_summary(home, session, by=HOOK)
    elif event == "PostCompact" and entry.get("summary") and not is_shared:
        from aether.api.compress import ingest_summary

        ingest_summary(home, entry["summary"], session=session, trigger=entry.get("trigger", ""), by=HOOK)
        # Not at PreCompact: the items would be archived before the model has answered.
        start_architect(home, settings, [session])


def _settle(home: str, session: str, *, compacted: bool) -> None:
    """Note the work of a session that a turn or a compaction settled, so that the host is asked about it once."""
    from aether.api.asks import note_settled
    from aether.store.snapshot import load

    with suppress(AetherError, OSError):  # at worst it is asked later
        note_settled(Path(home), session, load(Path(home)).documents["memory"], compacted=compacted)


def _ask(host: Any, home: str, session: str, settings: Settings) -> str:
    """Return the request to close the conversation, if work has settled and was not asked about; one line."""
    if settings.architect != HOST or not session:
        return ""
    from aether.api.asks import take

    work = take(Path(home), session)
    if not work:
        return ""
    has_tool, command = host.ways_to_close()
    if not (has_tool or command):
        return ""
    way = f'the tool close_session (session="{session[:ID_CHARS]}")'
    if not has_tool:
        way = f"`{command} memory ingest - --session {session[:ID_CHARS]}` (JSON on stdin; see its --help)"
    return (
        f"aether: after {work}, before you go on, record once where this conversation stands (state, next, rules, open, "
        f"decisions; each with a verbatim quote) by {way}."
    )


def keep_notes(home: str, event: str, session: str, note: Callable[[str], object]) -> None:
    """Commit what the host wrote as its own memory, where that is kept in the home.

    In a shared home that is left to a process that nobody waits for: a hook asks no server.
    """
    if not os.path.isdir(os.path.join(home, "memories")):
        return
    from aether.hosts.claude_code import native_memory

    if not native_memory.is_installed(home):
        return
    if ledger.is_shared(Path(home)):
        start_process(home, ["-m", native_memory.__name__, home, event, session])
        return
    try:
        native_memory.keep_writes(home, event, session)
    except (AetherError, OSError) as reason:
        note(f"notes wait in memories/: {reason}")


def _drain(home: str, started: str, note: Callable[[str], object], *, patience: float = 1.0) -> None:
    """Drain the spool, waiting up to `patience` seconds for another drain or writer; if only starts of sessions wait there, as that of `started`, nothing more is imported."""
    if started:
        from aether.api.hook_sessions import store_starts

        if store_starts(Path(home), started):
            return
    from aether.api.drain import drain

    if reason := drain(Path(home), patience=patience, started=started).left:
        note(f"waits in the spool: {reason}")


def _compress(home: str) -> None:
    """Compress the phase that fills working memory, without a model; nothing if it is not full."""
    from aether.memory.items import token_usage
    from aether.store.snapshot import load

    if not token_usage(load(Path(home)).documents["memory"]).needed:
        return  # nothing more is imported at most stops
    from aether.api.compress import FALLBACK, compress, prepare_current_phase
    from aether.store.authors import HOOK

    if record := prepare_current_phase(home, by=HOOK).record:
        compress(record["phase"], architect=FALLBACK, home=home, by=HOOK)


def start_architect(home: str, settings: Settings, words: Sequence[str]) -> None:
    """Start the process that asks the model that the user chose for sessions, if it is one; wait for nothing."""
    if settings.architect not in UNASKED and words[-1]:
        start_process(home, ["-m", "aether.api.detached", home, *words], AETHER_NO_HOOKS="1")


def start_late(home: str, event: str, session: str, *work: str) -> None:
    """Start the process that does what the end of a turn or a session asks for, and this `work`; wait for nothing."""
    start_process(home, ["-m", __name__, home, event, session, *work])


def _exchange(home: str) -> None:
    """Start the command that exchanges news with the server of a shared home, and drains its spool; wait for nothing."""
    if not ledger.tried_lately(Path(home)):  # by another such process: the next event tries again
        start_process(home, ["-m", "aether", "fold", "--quiet"])


def start_process(home: str, words: Sequence[str], **variables: str) -> None:
    """Start Python with `words` as a process that outlives this one; one that cannot start is no failure."""
    import subprocess

    options: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":  # pragma: no cover - Windows starts it in another way
        options = {"creationflags": getattr(subprocess, "DETACHED_PROCESS", 0)}
    with suppress(OSError):  # the next command or start does it
        # The modules are those of this aether, whatever the directory of the project has.
        process = subprocess.Popen(  # noqa: S603 - the words are aether's own
            [sys.executable, "-P", *words],
            env={**os.environ, "AETHER_HOME": home, **variables}, cwd=home, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options,
        )  # fmt: skip
        process.returncode = 0  # it may outlive this process, which does not look at it again


def is_first(home: str, payload: JsonObject, asking: str = "") -> bool:
    """Return whether no other process has answered the event in `payload` within the last seconds.

    `asking` names the host's process, else it is the parent: a session that is resumed again has another. If nothing can
    be written every process is the first: a text twice is better than none.
    """
    words = json.dumps([payload, asking or os.getppid()], sort_keys=True)
    directory = os.path.join(home, "hooks", DIRECTORY_NAME)
    path = os.path.join(directory, checksum(words.encode()))
    try:
        if not os.path.isdir(directory):
            os.makedirs(directory, mode=0o700, exist_ok=True)
            regular.share(directory, os.path.dirname(directory))
        if not is_real(home, DIRECTORY_NAME):
            return True  # a link leads elsewhere: nothing is created or removed there
        _remove_old(directory)
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        regular.share(handle, directory)
        os.close(handle)
    except FileExistsError:
        return not os.path.isdir(directory)
    except OSError:
        return True
    return True


def _remove_old(directory: str) -> None:
    now = time.time()
    for file in os.scandir(directory):
        with suppress(FileNotFoundError):  # another process removed it
            # Also a file of the future: the clock was set back since.
            if abs(now - file.stat(follow_symlinks=False).st_mtime) > SAME_EVENT_SECONDS:
                os.unlink(file.path)


if __name__ == "__main__":
    main(*sys.argv[1:])
