"""The architect that hooks start: a process of its own asks a model for the session of a conversation that has ended.

    python -P -m aether.api.detached HOME SESSION            that conversation
    python -P -m aether.api.detached HOME --except SESSION   those that ended without one, while SESSION starts

It runs only for an architect that the user chose (`architect.default`), never more than one at a time in a home, and no
further than `architect.daily_tokens`. What fails, is late, rejected or killed changes nothing, and `aether status` says so.
Its state is in `<home>/hooks/architect/`: the tokens of today, the work at hand, the last failure, and what was tried.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from aether import clock
from aether.api import closing, hook_sessions
from aether.api.architects import DIRECTORY, UNASKED, patience, read_state, spent_today, today, write_state
from aether.api.compress import ask_until_stored, reach_of
from aether.api.home import counter_of, find, read
from aether.architects import backend
from aether.architects.base import Completion
from aether.errors import AetherError, BackendFailed, public
from aether.memory.handoff import PAGE_TOKENS
from aether.memory.ingest import IngestResult
from aether.memory.items import items_of
from aether.memory.sessions import sessions_of
from aether.store import config
from aether.store.files import locked, make_directory, storage_errors
from aether.store.keys import Config
from aether.store.snapshot import Snapshot
from aether.store.spool import require_real
from aether.types import JsonObject

# A conversation that is quiet for this long has ended, or waits for a person.
QUIET = timedelta(minutes=30)
# Conversations of one start: the others wait for the next.
MOST_CONVERSATIONS = 3
# Of the same items: a server that is away now may be there tomorrow, a model that fails keeps failing.
MOST_TRIES = 2
# Conversations whose tries are remembered.
TRIED_KEPT = 64


def run(home: Path, session: str = "", *, leave_out: str = "") -> list[IngestResult]:
    """Ask the chosen model for the session of one conversation, else of those that ended, and return what was stored."""
    place = find(home)
    settings = config.or_default(place)
    if settings.architect in UNASKED:
        return []
    directory = place / "hooks" / DIRECTORY
    with storage_errors(directory):
        make_directory(directory)
        require_real(str(place), DIRECTORY)
    with locked(directory, timeout=patience(settings).total_seconds()):
        conversations = [session] if session else _ended(read(place), leave_out)[:MOST_CONVERSATIONS]
        results = [_closed(place, name, settings) for name in conversations]
    return [result for result in results if result]


@public
def _closed(place: Path, conversation: str, settings: Config) -> IngestResult | None:
    """Return the stored session of a conversation; a failure is recorded, and changes nothing else."""
    snapshot, state = read(place), read_state(place)
    work = closing.unclosed(snapshot, conversation)
    if work is None or work.conversation != conversation:
        return None
    items = [*work.live, *work.archived]
    tokens, ids = sum(item["token_count"] for item in items), sorted(item["id"] for item in items)
    tries = state.get("tried", {}).get(conversation)
    tried = int(tries["times"]) if isinstance(tries, dict) and tries.get("items") == ids else 0
    # A session of less than a page is no smaller than its items, which are shown as they are.
    if tokens < PAGE_TOKENS or tried >= MOST_TRIES:
        return None
    before = spent_today(state)
    if before + tokens > settings.architect_daily_tokens:
        limit = f"{settings.architect_daily_tokens} tokens a day are the limit (architect.daily_tokens): off until tomorrow"
        write_state(place, {**state, "failure": _failure(limit)})
        return None
    earlier = dict([*state.get("tried", {}).items()][-TRIED_KEPT:])
    state |= {
        "tried": {**earlier, conversation: {"items": ids, "times": tried + 1}},
        "running": {"session": conversation, "at": clock.stamp(clock.now())},
        "spent": {"day": today(), "tokens": before + tokens},  # of a process that is killed
    }
    write_state(place, state)
    spent: list[Completion] = []
    notes: list[str] = []
    result = None
    try:
        result = _asked(snapshot, work, settings, notes=notes, spent=spent)
    except AetherError as reason:
        notes.append(str(reason))
    finally:
        # A server that does not count its tokens still got them.
        used = sum(completion.input_tokens + completion.output_tokens or tokens for completion in spent)
        failure = {} if result else _failure(f"{notes[-1] if notes else 'it failed.'} Nothing changed.")
        state |= {"running": {}, "failure": failure, "spent": {"day": today(), "tokens": before + used}}
        write_state(place, state)
    return result


def _failure(what: str) -> JsonObject:
    return {"at": clock.stamp(clock.now()), "what": what}


def _asked(
    snapshot: Snapshot, work: closing.Work, settings: Config, *, notes: list[str], spent: list[Completion]
) -> IngestResult | None:
    module, overrides = backend(settings.architect)

    def store(answer: str, architect: JsonObject) -> IngestResult:
        closed = closing.close_session(
            answer, home=snapshot.home, session=work.conversation, architect={**architect, "task": "closing"},
            only={item["id"] for item in work.live},
        )  # fmt: skip
        if closed.ingested is None:
            raise BackendFailed(
                f"came too late: {closed.reason}", fix="Nothing to do.", where=settings.architect
            )
        return closed.ingested

    return ask_until_stored(
        closing.handoff_of(snapshot, work), module, reach_of(settings, settings.architect, overrides), store=store,
        count=counter_of(snapshot.documents["memory"]), notes=notes, spent=spent,
    )  # fmt: skip


def _ended(snapshot: Snapshot, leave_out: str) -> list[str]:
    """Return the conversations that hooks heard, that are quiet by now, and that nobody judged, the oldest first."""
    memory, before = snapshot.documents["memory"], clock.stamp(clock.now() - QUIET)
    heard: dict[str, str] = {}
    for item in items_of(memory):
        name = item["metadata"].get("conversation", "")
        heard[name] = max(heard.get(name, ""), item["metadata"]["timestamp"])
    for session in sessions_of(memory):
        if name := closing.conversation_of(session):
            heard[name] = max(heard.get(name, ""), session["compressed_at"])
    return [
        name
        for name, time in sorted(heard.items(), key=lambda pair: pair[1])
        if name and name != leave_out and time < before and hook_sessions.find_session(snapshot.home, name)
    ]


def main(words: list[str]) -> int:
    """Do what the words of the command line say; a failure is a line of `hook.log`, for nobody reads this process."""
    from aether.store import spool

    home, *words_left = words
    try:
        run(
            Path(home),
            **({"leave_out": words_left[1]} if words_left[0] == "--except" else {"session": words_left[0]}),
        )
    except Exception as reason:  # noqa: BLE001 - there is no one to raise to
        spool.log_failure(home, "architect", words_left[-1], f"{type(reason).__name__}: {reason}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
