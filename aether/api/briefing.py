"""Briefings: the memory that hooks inject at the start of a session or a sub-agent, and instructions for summarisers.

The text is made by `memory.briefing`; here the home is read, and the injected log of the session is started.

A person waits for the block of a session's start, and most of its time goes into reading memory: its lines are kept in
`<home>/hooks/briefs/` until the home changes. A kept brief is derived: one that is missing, or of another state, day,
setting or program, is made again. Its lines are marked as a block when they are read: a home may come with a repository,
and its files say no more than its memory could.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aether
from aether import regular
from aether.api import hook_sessions
from aether.api.confirming import own_entries
from aether.api.home import Home, counter_of, drained, find, now, read
from aether.clock import stamp
from aether.errors import AetherError, public
from aether.paths import project_root
from aether.project import checks_facts
from aether.store import config, ledger, origin
from aether.store.files import files_ending, locked, make_directory, write_whole
from aether.store.journal import journal_path
from aether.store.snapshot import Snapshot, document_ids, file_id, load
from aether.store.spool import is_real, require_real
from aether.text.tags import memory_block
from aether.types import JsonObject

if TYPE_CHECKING:
    from aether.api.checking import Checker

# Of the budget: a sub-agent has a task of its own, and needs little beside it.
AGENT_SHARE = 2 / 3
# The occasion of a sub-agent's start.
SUBAGENT = "subagent"
DIRECTORY = "briefs"
# Names a home whose preferences and constraints every session is given. It is a variable of the user, not a setting of a
# home: a home may come with a repository, which must not choose whose memory is read.
USER_HOME = "AETHER_USER_HOME"
# The starts whose brief follows from the home alone, and, for a compaction, from the session; and those that go on with
# a context.
KEPT_SOURCES, RESUMED = frozenset({"startup", "clear", "compact"}), frozenset({"resume", "fork"})
# Files: two kinds of start, and the sessions that were compacted last.
MOST_KEPT = 8
# The lines of a block before and after those that are kept.
_HEAD_LINES, _TAIL_LINES = 2, 1
# Directories of the package that decide what a brief says: a checkout changes without its version.
_CODE = ("memory/briefing", "memory", "text")


@public
def session_brief(home: Home, source: str, session: str = "") -> str:
    """Return the block for a session that starts by `source`, or "".

    The block for a resumed session has the changes since it was last active. Of the same state of the home the block of
    another start is read, not made.
    """
    place, wide = drained(find(home)), _wide_home(home)
    brief = _kept_brief(place, source, session, wide)
    if brief is None:
        # The modules that read memory are imported only where no kept brief is of use.
        from aether.memory import signals
        from aether.memory.briefing import briefing

        ids = document_ids(place)
        snapshot = load(place)
        state = _state_of(place, snapshot.files[0], ids, wide)
        checker = _checker(snapshot)
        brief = briefing.briefing(**_arguments(snapshot, source, session, wide), check=checker)
        # Signals fade by the minute, and claims end.
        fades = signals.active_signals(snapshot.documents["pheromones"], now=now())
        if not fades and not snapshot.documents["teamwork"]["claims"]:
            seen: JsonObject = {"state": state, "watched": {}, "refs": ""}
            seen |= {"watched": checker.watched, "refs": checker.state} if checker else {}
            _keep(place, source, session, brief, seen)
    if session and source not in RESUMED:
        hook_sessions.start_injected(place, session, brief.split("\n"))
    return brief


def subagent_brief(home: Home, caste: str, session: str = "") -> str:
    """Return the block for a sub-agent of `caste` that the conversation `session` starts, or ""."""
    from aether.memory.briefing import briefing

    snapshot = read(home)
    return briefing.agent_brief(**_agent_arguments(snapshot, caste, session), check=_checker(snapshot))


def brief(home: Home, *, occasion: str = "startup", session: str = "", caste: str = "") -> JsonObject:
    """Return exactly what a session would get: its lines by kind with their sources, and the block.

    Each line has its `kind`, the `heading` of a group within it, `text`, the `ids` of the entries that it comes from, its `evidence`: a person said it,
    a machine showed it, or an agent wrote it ("" if unknown), or `corrected` it, its cost in `tokens`, and `checks`, what the repository says
    of the files, commits and branches that it names; `left_out` are lines that such a check left out. A line is `correctable` unless its
    entry is a session or a statement of one, which has the `quote` that proves it. The occasion `subagent` is that of a
    sub-agent of `caste`.
    """
    from aether.memory.briefing import briefing
    from aether.memory.sessions import sessions_of
    from aether.memory.statements import is_statement

    snapshot = read(home)
    count = counter_of(snapshot.documents["memory"])
    checker = _checker(snapshot)
    if occasion == SUBAGENT:
        arguments = _agent_arguments(snapshot, caste, session)
        lines = briefing.agent_lines(**arguments, check=checker)
    else:
        arguments = _arguments(snapshot, occasion, session, _wide_home(home))
        lines = briefing.brief_lines(**arguments, check=checker)
    block = briefing.block_of(lines, occasion=occasion, now=arguments["now"])
    verdicts, left_out = (checker.verdicts, checker.left_out) if checker else ({}, [])
    session_ids = {stored["session_id"] for stored in sessions_of(snapshot.documents["memory"])}
    return {
        "occasion": occasion,
        "lines": [
            {"kind": line.kind, "heading": line.heading, "text": line.text, "ids": [*line.ids], "evidence": line.evidence, "corrected": line.corrected, "at": line.at, "note": line.note,
             "tokens": count(line.text), **({"quote": line.quote} if line.quote else {}),
             "checks": [verdict.words() for verdict in verdicts.get(line, ())],
             "correctable": bool(line.ids) and session_ids.isdisjoint(line.ids) and not is_statement(line.ids[0])}
            for group in briefing.grouped(lines).values()
            for line in group
        ],
        "left_out": [
            {"text": line.text, "ids": [*line.ids], "checks": [verdict.words() for verdict in reasons]}
            for line, reasons in left_out
        ],
        "block": block,
        "tokens": count(block) if block else 0,
    }  # fmt: skip


def in_force(snapshot: Snapshot) -> JsonObject:
    """Return how many rules and decisions are in force: those of a brief without bounds."""
    from aether.memory.briefing import briefing

    arguments = _arguments(snapshot, "startup", "", _wide_home(snapshot.home))
    return {**briefing.in_force(arguments["documents"], now=arguments["now"], wide=arguments["wide"])}


def _checker(snapshot: Snapshot) -> Checker | None:
    """Return the check of the lines of a brief against the project; None without a project, or if it is switched off."""
    root = project_root(snapshot.home)
    if not root or not checks_facts():
        return None
    from aether.api import checking
    from aether.memory.briefing.kept import facts_in

    return checking.Checker(root, facts_in(snapshot.documents["memory"]), checking.SECONDS)


def _wide_home(home: Home) -> Path | None:
    """Return the user's own home, if there is one other than `home`."""
    with suppress(AetherError):  # the briefing of the project works without it
        if directory := os.environ.get(USER_HOME):
            wide = find(directory)
            return None if wide == find(home) else wide
    return None


def _arguments(snapshot: Snapshot, source: str, session: str, wide: Path | None) -> dict[str, Any]:
    """Return the arguments of the briefing for a session that starts by `source`."""
    from aether.memory.sessions import sessions_of

    place, memory = snapshot.home, snapshot.documents["memory"]
    since = ""
    if session and source in RESUMED and (state := hook_sessions.find_session(place, session)):
        # The last event of the session, or the last summary of its own conversation.
        summaries = (
            stored["compressed_at"]
            for stored in sessions_of(memory)
            if (stored["metadata"].get("architect") or {}).get("session") == session
        )
        since = max(str(state["at"]), *summaries, "")
    wide_documents = None
    with suppress(AetherError):
        wide_documents = load(wide).documents if wide else None
    return {
        "documents": {**snapshot.documents, **own_entries(snapshot), "senders": ledger.senders(snapshot)}, "occasion": source, "now": now(), "count": counter_of(memory),
        "budget": config.or_default(place).claude_brief_tokens, "since": since, "root": project_root(place),
        # A session that starts has no work of its own, though some hosts report its first prompt before it.
        "wide": wide_documents, "session": "" if source in hook_sessions.NEW_SOURCES else session,
    }  # fmt: skip


def _agent_arguments(snapshot: Snapshot, caste: str, session: str) -> dict[str, Any]:
    """Return the arguments of the briefing for a sub-agent of `caste`."""
    budget = int(config.or_default(snapshot.home).claude_brief_tokens * AGENT_SHARE)
    return {
        "documents": {**snapshot.documents, **own_entries(snapshot), "senders": ledger.senders(snapshot)}, "caste": caste, "now": now(), "count": counter_of(snapshot.documents["memory"]),
        "budget": budget, "root": project_root(snapshot.home), "session": session,
    }  # fmt: skip


# --- Kept briefs


def _kept_brief(home: Path, source: str, session: str, wide: Path | None) -> str | None:
    """Return the kept brief of a session that starts by `source`; None without one of today's state."""
    if source not in KEPT_SOURCES:
        return None
    try:
        path = _file(home, source, session)
        if path.is_symlink() or not is_real(str(home), DIRECTORY):
            return None
        stored = json.loads(regular.read(path))
        state = _state_of(home, file_id(str(journal_path(home))), document_ids(home), wide)
        if not state or stored["state"] != state:
            return None
        if stored["refs"] and not _is_current(project_root(home), stored["watched"], stored["refs"]):
            return None
        return memory_block([str(line) for line in stored["lines"]], occasion=source, at=stamp(now()))
    except (OSError, AetherError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _is_current(root: str, watched: JsonObject, refs: str) -> bool:
    from aether.api.checking import is_current  # most kept briefs name nothing that can change

    return is_current(root, watched, refs)


def _keep(home: Path, source: str, session: str, brief: str, seen: JsonObject) -> None:
    """Keep `brief`, made of the home and the project as they were `seen`; what cannot be written is made again the next time."""
    if source not in KEPT_SOURCES or not seen["state"]:
        return
    lines = brief.split("\n")[_HEAD_LINES:-_TAIL_LINES]
    with suppress(OSError, AetherError):
        path = _file(home, source, session)
        make_directory(path.parent)
        require_real(str(home), DIRECTORY)
        with locked(home / "hooks", timeout=0):  # that of an erasure, too
            write_whole(path, json.dumps({**seen, "lines": lines}).encode("ascii"))
        files = sorted(files_ending(path.parent, ".json"), key=lambda file: file.stat().st_mtime)
        for file in files[:-MOST_KEPT]:
            file.unlink(missing_ok=True)


def _state_of(home: Path, journal: Any, ids: Any, wide: Path | None) -> str:
    """Return what a brief of `home` with this journal and these documents depends on; "" if they were not read as a whole."""
    # The brief of an unconfirmed home depends on more: on the sessions that were here.
    if journal is None or not origin.is_confirmed(home):
        return ""
    package = Path(aether.__file__).parent
    code = max(file.stat().st_mtime_ns for name in _CODE for file in os.scandir(package / name))
    wide_state = wide and (file_id(str(journal_path(wide))), document_ids(wide))
    configured = config.or_default(home)
    settings = (configured.claude_brief_tokens, checks_facts(), project_root(home))
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return json.dumps([aether.__version__, code, day, *settings, journal, ids, wide_state])


def _file(home: Path, source: str, session: str) -> Path:
    name = f"{source}-{session}" if source == "compact" else source
    return hook_sessions.session_file(home, DIRECTORY, name)
