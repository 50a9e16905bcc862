"""Briefings: the memory that hooks inject at the start of a session or a sub-agent, and instructions for summarisers.

The text is made by `memory.briefing`; here the home is read, and the injected log of the session is started.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from aether.api import hook_sessions, kept_briefs
from aether.api.home import Home, counter_of, drained, find, now, read
from aether.clock import stamp
from aether.errors import AetherError
from aether.hints import Any
from aether.paths import project_root
from aether.store import config
from aether.store.snapshot import Snapshot, load
from aether.types import JsonObject

# Of the budget: a sub-agent has a task of its own, and needs little beside it.
AGENT_SHARE = 1 / 3
# The occasion of a sub-agent's start.
SUBAGENT = "subagent"


def session_brief(home: Home, source: str, session: str = "") -> str:
    """Return the block for a session that starts by `source`, or "".

    The block for a resumed session has the changes since it was last active. Of the same state of the home the block of
    another start is read, not made.
    """
    place, wide = drained(find(home)), _wide_home(home)
    brief = kept_briefs.find(place, source, session, at=stamp(now()), wide=wide)
    if brief is None:
        brief = _made_brief(place, source, session, wide)
    if session and source not in kept_briefs.RESUMED:
        hook_sessions.start_injected(place, session, brief.split("\n"))
    return brief


def brief(home: Home, *, occasion: str = "startup", session: str = "", caste: str = "") -> JsonObject:
    """Return exactly what a session would get: its lines by kind with their sources, and the block.

    Each line has its `kind`, `text`, the `ids` of the entries that it comes from, its `evidence`: a person said it,
    a machine showed it, or an agent wrote it ("" if unknown), and its cost in `tokens`; it is `correctable` unless its
    entry is a session of several statements. The occasion `subagent` is that of a sub-agent of `caste`.
    """
    from aether.memory.briefing import briefing
    from aether.memory.briefing.block import HEADINGS, KINDS
    from aether.memory.sessions import sessions_of

    asked = _asked(read(home), occasion, session, _wide_home(home))
    count = asked["count"]
    if occasion == SUBAGENT:
        given = {name: asked[name] for name in ("documents", "now", "count", "root")}
        given |= {"caste": caste, "session": session, "budget": int(asked["budget"] * AGENT_SHARE)}
        lines, block = briefing.agent_lines(**given), briefing.agent_brief(**given)
    else:
        lines, block = briefing.brief_lines(**asked), briefing.briefing(**asked)
    order = {section: at for at, section in enumerate(HEADINGS)}
    several = {session["session_id"] for session in sessions_of(asked["documents"]["memory"])}
    return {
        "occasion": occasion,
        "lines": [
            {"kind": KINDS[line.section], "text": line.text, "ids": [*line.ids], "evidence": line.evidence, "at": line.at, "note": line.note,
             "tokens": count(line.text), "correctable": bool(line.ids) and several.isdisjoint(line.ids)}
            for line in sorted(lines, key=lambda line: order[line.section])
        ],
        "block": block,
        "tokens": count(block) if block else 0,
    }  # fmt: skip


def _wide_home(home: Home) -> Path | None:
    """Return the user's own home, if there is one other than `home`."""
    with contextlib.suppress(AetherError):  # the briefing of the project works without it
        if named := os.environ.get(kept_briefs.USER_HOME):
            wide = find(named)
            return None if wide == find(home) else wide
    return None


def _made_brief(place: Path, source: str, session: str, wide: Path | None) -> str:
    # The modules that read memory are imported only where no kept brief is of use.
    from aether.memory import signals
    from aether.memory.briefing import block, briefing

    kept_briefs.load_answers(place, block.JUDGED, block.FATES)
    answered, compared, snapshot = len(block.JUDGED), len(block.FATES), load(place)
    state = kept_briefs.state_of(place, snapshot.files, wide=wide)
    brief = briefing.briefing(**_asked(snapshot, source, session, wide))
    # Signals fade by the minute.
    if not signals.active_signals(snapshot.documents["pheromones"], now=now()):
        kept_briefs.keep(place, source, session, brief, state=state)
    if len(block.JUDGED) > answered:
        kept_briefs.keep_answers(place, block.JUDGED, block.ASKED)
    if len(block.FATES) > compared:
        kept_briefs.keep_fates(place, block.FATES)
    return brief


def _asked(snapshot: Snapshot, source: str, session: str, wide: Path | None) -> dict[str, Any]:
    """Return the arguments of the briefing for a session that starts by `source`."""
    from aether.memory.sessions import sessions_of

    place = snapshot.home
    since = ""
    if session and source in kept_briefs.RESUMED and (known := hook_sessions.find_session(place, session)):
        # The last event of the session, or the last summary of its own conversation.
        own = (
            stored["compressed_at"]
            for stored in sessions_of(snapshot.documents["memory"])
            if (stored["metadata"].get("architect") or {}).get("session") == session
        )
        since = max(str(known["at"]), *own, "")
    others = None
    with contextlib.suppress(AetherError):
        others = load(wide).documents if wide else None
    return {
        "documents": snapshot.documents, "occasion": source, "now": now(),
        "count": counter_of(snapshot.documents["memory"]),
        "budget": config.or_default(place).claude_brief_tokens, "since": since,
        "root": project_root(place), "wide": others, "session": session,
    }  # fmt: skip


def subagent_brief(home: Home, caste: str, session: str = "") -> str:
    """Return the block for a sub-agent of `caste` that the conversation `session` starts, or ""."""
    from aether.memory.briefing import briefing

    place = find(home)
    documents = read(place).documents
    budget = int(config.or_default(place).claude_brief_tokens * AGENT_SHARE)
    count = counter_of(documents["memory"])
    return briefing.agent_brief(
        documents, caste, now=now(), count=count, budget=budget, root=project_root(place), session=session
    )


def compaction_steering(home: Home, session: str = "", *, by: str = "queen") -> str:
    """Prepare the hand-off for the next summary of a host, and return the instructions for its summariser.

    A home that is locked, full or broken raises no error: the instructions are shorter then, and storing the summary
    prepares the hand-off itself. `session` is the host's; `by` is the author in the log.
    """
    from aether.memory.briefing import briefing

    try:
        place = find(home)
        documents = read(place).documents
    except (AetherError, OSError):
        return ""
    plain = briefing.steering(documents, now=now(), root=project_root(place), session=session)
    with contextlib.suppress(AetherError, OSError):
        from aether.api.compress import prepare_for_summary  # half of the start-up time of this call

        prepare_for_summary(home, session, by=by)
    return plain
