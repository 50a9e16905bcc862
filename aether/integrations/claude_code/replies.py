"""Replies: what the events do that need the home, each one or two calls of operations.

They come after the event was put into the spool, so that whatever happens here loses nothing. Everything heavy is
imported by the one that needs it.
"""

from __future__ import annotations

from pathlib import Path

from aether.store import config

# After these the spool is drained; the others leave that to the next who reads the home.
DRAINING = frozenset({"SessionStart", "SubagentStop", "Stop", "PreCompact"})
# What must be left of the deadline, in seconds, so that compressing is begun: a full home takes about one.
COMPRESS_SECONDS = 3.0


def reply(event: str, entry: JsonObject, home: str, *, left: float, note: Callable[[str], None]) -> str:
    """Do what `event` asks for and return the text for the model; changes are made in the name of a hook.

    `left` is how many seconds remain, `note` takes failures that do not matter to the model.
    """
    from aether.store.commit import HOOK

    settings, session = config.or_default(Path(home)), str(entry.get("session", ""))
    if event == "Stop" and entry.get("stop_hook_active"):
        return ""  # another hook kept the turn going; it was taken in when it first stopped
    if event in DRAINING:
        left -= _drain(home, note)
    match event:
        case "SessionStart" if settings.claude_inject:
            from aether.operations.briefing import session_brief

            return session_brief(home, str(entry.get("source", "")), session)
        case "SubagentStart" if settings.claude_inject:
            from aether.operations.briefing import subagent_brief

            return subagent_brief(home, str(entry.get("caste", "")))
        case "UserPromptSubmit" if settings.claude_recall and entry.get("prompt"):
            from aether.operations.recalling import prompt_recall

            budget = settings.claude_recall_tokens
            return prompt_recall(entry["prompt"], budget=budget, home=home, session=session)
        case "PreCompact":
            from aether.operations.briefing import compaction_steering

            return compaction_steering(home, session, by=HOOK)
        case "PostCompact" if entry.get("summary"):
            from aether.operations.compaction_summaries import ingest_summary

            trigger = str(entry.get("trigger", ""))
            ingest_summary(home, entry["summary"], session=session, trigger=trigger, by=HOOK)
        case "Stop" if settings.claude_auto_compress and left > COMPRESS_SECONDS:
            _compress(home, by=HOOK)
    return ""


def _drain(home: str, note: Callable[[str], None]) -> float:
    """Drain the spool and return how many seconds that took."""
    import time

    from aether.operations.taking_in import drain

    began = time.monotonic()
    drained = drain(Path(home))
    if drained.left:
        note(f"waits in the spool: {drained.left}")
    return time.monotonic() - began


def _compress(home: str, *, by: str) -> None:
    """Compress the phase that working memory is full of, without a model; nothing where it is not full."""
    from aether.operations.working import auto_prepare, check_token_threshold

    record = auto_prepare(home, by=by).record if check_token_threshold(home=home) else None
    if record:
        from aether.operations.architects import FALLBACK, compress

        compress(record["phase"], architect=FALLBACK, home=home, by=by)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from aether.shapes import JsonObject
