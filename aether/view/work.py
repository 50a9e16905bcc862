"""Pages about the work over time: the timeline, conversations and their compactions, the archive, signals and phases.

Their actions are here as well, each one function of `api`. Texts of conversations and transcripts are redacted: the
records in the home hold them as they were said.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from aether import clock
from aether.api import archive, colony, compact, compact_views, context, recall, report
from aether.api import timeline as api_timeline
from aether.api.conversations import record_directory
from aether.api.home import read, redaction_rules
from aether.api.removed import removed_from_context
from aether.conversation import goals
from aether.errors import AetherError, Conflict, InvalidInput, NotFound, require_one_of
from aether.hosts.claude_code.install import claude_directory
from aether.memory import phases
from aether.memory.signals import TYPES
from aether.messages.convert import read as read_messages
from aether.messages.model import Message
from aether.messages.read import read_records, without_private
from aether.messages.records import Record
from aether.redact.redact import Rules, redact
from aether.store import config, conversations, history
from aether.types import DETAILS, JsonObject, SignalName
from aether.view import charts, reading
from aether.view.frame import (
    BY,
    PAGE_LINES,
    Action,
    Asked,
    File,
    Frame,
    Page,
    Shown,
    digest,
    form_number,
    form_share,
    later,
    part,
    plural,
    state_of,
)

# The order of the menu; pages that are not in it come last.
ORDER = (
    "/", "/brief", "/live-sessions", "/timeline", "/search", "/conversations", "/graph", "/charts", "/archive",
    "/colony", "/log", "/review", "/health", "/homes",
)  # fmt: skip
KINDS = {
    "": "main kinds", "request": "requests", "decision": "decisions", "rule": "rules", "result": "results", "error": "errors",
    "fix": "fixes", "change": "changes of files", "command": "commands", "note": "notes", "compression": "compressions",
    "compaction": "compactions", "phase": "phases",
}  # fmt: skip
SPANS = {"": "all time", "24h": "24 hours", "7d": "7 days", "30d": "30 days", "1y": "a year"}
# Lines of a transcript, and entries in time, before and after the one that was asked for.
AROUND = 8
# Characters of a message; a longer one is in the export.
MESSAGE_CHARS = 2_000
_FROM_LIST = "Choose a compaction of the list."
_TRANSCRIPT = re.compile(r"[\w.-]+\.jsonl", re.ASCII)


def in_order(pages: Iterable[Page]) -> list[Page]:
    """Return `pages` in the order of the menu."""
    return sorted(pages, key=lambda page: ORDER.index(page.path) if page.path in ORDER else len(ORDER))


def timeline(frame: Frame, asked: Asked) -> Shown:
    """Return what happened, the newest day first, in the order of the day."""
    query = {name: asked.query.get(name, "").strip() for name in ("type", "project", "conversation", "since")}
    query["type"] = query["type"] if query["type"] in KINDS else ""
    day, page = asked.query.get("day", "").strip(), asked.number("page")
    for name, time in (("since", query["since"]), ("day", day)):  # before the start of the page is sent
        if time:
            clock.instant_of(time, at=clock.now(), where=name)

    def happened() -> dict[str, Any]:
        state = f"{state_of(frame.home)} {clock.stamp(clock.now())[:13]}"
        moments = _moments(frame.home, tuple(query.values()), state)
        weeks = reading.calendar(moments, clock.now().date())
        chosen = [moment for moment in moments if not day or moment.at[:10] == day]
        page_part = part(chosen, page)
        busy = sum(day["number"] > 0 for week in weeks for day in week["days"])
        return {
            "part": page_part, "days": _by_day(page_part.lines), "weeks": weeks if busy else [], "busy": busy,
        }  # fmt: skip

    return Shown(
        "timeline.html",
        {**query, "day": day, "kinds": KINDS, "spans": SPANS, "happened": later(frame, happened)},
        later=True,
    )  # fmt: skip


@lru_cache(maxsize=4)
def _moments(home: Path, query: tuple[str, ...], state: str) -> tuple[Any, ...]:  # noqa: ARG001 - the key of the cache
    """Return the moments that are asked for, the newest first; `state` changes with the home."""
    kind, project, conversation, since = query
    try:
        moments = api_timeline.timeline(
            types=[kind] if kind else [], project=project, conversation=conversation, since=since, home=home
        )
    except NotFound:  # of the conversation: the page says that nothing is there
        moments = []
    return tuple(reversed(moments))


def _by_day(lines: Sequence[Any]) -> list[tuple[str, list[tuple[str, str, list[Any]]]]]:
    """Return moments by day, and within it by conversation: its id, its title and its moments."""
    days: list[tuple[str, list[tuple[str, str, list[Any]]]]] = []
    for moment in lines:
        day = moment.at[:10]
        if not days or days[-1][0] != day:
            days.append((day, []))
        groups = days[-1][1]
        if not groups or groups[-1][:2] != (moment.conversation, moment.title):
            groups.append((moment.conversation, moment.title, []))
        groups[-1][2].append(moment)
    return days


def around(frame: Frame, asked: Asked) -> Shown:
    """Return what was said and noted around one entry: lines of its transcript if that is on this machine, and memory."""
    entry = asked.path["id"]
    (result,) = recall.full([entry], access=False, home=frame.home)
    pointer = (result["entry"].get("metadata") or {}).get("pointer") or {}
    return Shown(
        "around.html",
        {
            "found": result, "pointer": pointer, "said": _transcript_lines(frame, pointer, result["at"]),
            "near": later(frame, lambda: recall.timeline(entry, before=AROUND, after=AROUND, home=frame.home)),
        },
        later=True,
    )  # fmt: skip


def _transcript_lines(frame: Frame, pointer: Mapping[str, Any], since: str) -> list[JsonObject]:
    """Return the lines around a place in a transcript of Claude Code; none if it is not here any more.

    What a hook noted has no line: then the place is the first one that is not before the time `at`.
    """
    name, line = Path(str(pointer.get("file", ""))).name, pointer.get("line")
    if not _TRANSCRIPT.fullmatch(name):
        return []
    private, hidden = config.or_default(frame.home).claude_private_paths, redaction_rules(frame.home)
    for path in sorted((claude_directory() / "projects").glob(f"*/{name}"))[:1]:
        try:
            near, here = deque[Record](), 0
            for record in without_private(read_records(path), private):
                if not here and (
                    record.line >= line if isinstance(line, int) else _is_since(record.time, since)
                ):
                    here = record.line
                if here and record.line > here + AROUND:
                    break
                near.append(record)
                while near[0].line < (here or record.line) - AROUND:
                    near.popleft()
        except (AetherError, OSError):
            return []
        return [
            {
                "line": record.line, "at": record.time, "here": record.line == here,
                "who": record.kind if not record.tool else f"{record.kind} {record.tool}",
                "text": _short(record.text or str(record.arguments or ""), hidden),
            }
            for record in near if record.text or record.tool
        ]  # fmt: skip
    return []


def _is_since(time: str, since: str) -> bool:
    with suppress(AetherError):
        return bool(time and since) and clock.parse(time) >= clock.parse(since)
    return False


def _short(text: str, hidden: Rules) -> str:
    excerpt = redact(text[: MESSAGE_CHARS * 2], hidden)
    return excerpt if len(excerpt) <= MESSAGE_CHARS else excerpt[:MESSAGE_CHARS].rstrip() + " […]"


# --- Conversations


def conversation_list(frame: Frame, asked: Asked) -> Shown:
    """Return the captured conversations, those whose contexts this home keeps, and the tokens that were saved."""
    conversations = compact_views.conversation_list(home=frame.home)
    captured = reading.thread_rows(frame.home, state_of(frame.home))
    return Shown(
        "conversations.html",
        {"captured": part(captured, asked.number("page")), "part": part(conversations, asked.number("contexts"))},
    )  # fmt: skip


def conversation(frame: Frame, asked: Asked) -> Shown | File:
    """Return a conversation: its whole history beside what is in its context now, and its compactions."""
    name = asked.path["id"]
    if form := asked.query.get("export"):
        return _export(frame, name, form)
    log = conversations.load(record_directory(frame.home), name)
    if step := asked.query.get("step", ""):
        return _compaction(frame, name, form_number(step, "number", _FROM_LIST), asked)
    page_part, hidden = part(history.said(log), asked.number("page")), redaction_rules(frame.home)
    changed = {message.number: message.change for message in removed_from_context(name, home=frame.home)}
    live = set(log.context)
    rows = [
        {
            "number": number, "role": message.role, "text": _text(message, hidden),
            "state": changed.get(number, "kept" if number in live else "removed"),
        }
        for number, message in zip(page_part.lines, read_messages(history.messages(log, page_part.lines)), strict=True)
    ]  # fmt: skip
    added = [number for number in log.context if log.derived[number - 1]]
    summaries = [
        _text(message, hidden) for message in read_messages(history.messages(log, added[:PAGE_LINES]))
    ]
    return Shown(
        "conversation.html",
        {
            "id": name, "part": page_part, "rows": rows, "live": len(log.context), "summaries": summaries,
            "compactions": [_step(log, compaction) for compaction in reversed(log.compactions)], "last": log.open[-1] if log.open else 0,
        },
        f"Conversation {name}",
    )  # fmt: skip


def _text(message: Message, hidden: Rules) -> str:
    return _short("\n".join(f"{block.tool} {block.text}".strip() for block in message.blocks), hidden)


def _step(log: history.Log, compaction: history.Compaction) -> JsonObject:
    receipt = compaction.receipt
    return {
        "step": compaction.step, "at": compaction.at, "undone": compaction.step not in log.open, "before": receipt.get("tokens_before"),
        "after": receipt.get("tokens_after"), "messages": (len(compaction.before), len(compaction.after)),
        "trigger": redact(str(receipt.get("trigger") or "")), "by": (receipt.get("summary") or {}).get("backend") or "",
    }  # fmt: skip


def _compaction(frame: Frame, name: str, step: int, request: Asked) -> Shown:
    """Return one compaction side by side: what was kept, shortened, removed and added, with what is protected."""
    changes, hidden = (
        compact_views.compaction_diff(name, step=step, home=frame.home),
        redaction_rules(frame.home),
    )
    log = conversations.load(record_directory(frame.home), name)
    before = read_messages(changes.before)
    page_part = part(changes.rows, request.number("page"))
    rows = [
        {
            **row._asdict(), "text": _short(row.text, hidden),
            "old": _text(before[row.before], hidden) if row.before is not None else "",
        }
        for row in page_part.lines
    ]  # fmt: skip
    counts: dict[str, int] = {}
    for row in changes.rows:
        counts[row.change] = counts.get(row.change, 0) + 1
    return Shown(
        "compaction.html",
        {
            "id": name, "step": _step(log, log.compactions[step - 1]), "part": page_part, "rows": rows, "counts": counts,
            "protected": sum(row.protected for row in changes.rows), "last": log.open[-1] if log.open else 0,
        },
        f"Compaction {step} of {name}",
    )  # fmt: skip


def _export(frame: Frame, name: str, form: str) -> File:
    """Return the whole history of a conversation as a file, redacted."""
    kinds = {"markdown": ("md", "text/markdown; charset=utf-8"), "json": ("json", "application/json")}
    require_one_of(form, kinds, "a format", where=BY)
    text = context.export_history(name, format=form, redact=True, home=frame.home)  # type: ignore[arg-type]
    suffix, kind = kinds[form]
    safe = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:80] or "conversation"
    return File(f"{safe}.{suffix}", kind, text.encode("utf-8", "replace"))


def undo_compaction(frame: Frame, form: Mapping[str, str]) -> str:
    """Undo the newest compaction of a conversation, if it is still the one that was shown."""
    step = form_number(form["step"], "number", _FROM_LIST) or -1  # 0 would be any
    result = compact.undo_compaction(form["conversation"], step=step, home=frame.home)
    return f"Compaction {result.step} is undone: {plural(len(result.messages), 'messages')} are in the context again."


# --- Archive


def archive_page(frame: Frame, asked: Asked) -> Shown:
    """Return the archived conversations with the reason of each level, and the plan of the next ageing."""
    level = asked.query.get("level", "")
    level = level if level in DETAILS else ""
    page_part = part(archive.list_archived(level=level or None, home=frame.home), asked.number("page"))
    marked = set(read(frame.home).documents["retention"]["marked"])

    rows = later(frame, lambda: [_archived(frame, archived, marked) for archived in page_part.lines])
    return Shown(
        "archive.html",
        {
            "part": page_part, "rows": rows, "level": level, "levels": DETAILS, "most": PAGE_LINES, "state": _state,
            "ageing": later(frame, lambda: archive.age_archive(dry_run=True, home=frame.home)),
        },
        later=True,
    )  # fmt: skip


def _archived(frame: Frame, archived: archive.Archived, marked: set[str]) -> JsonObject:
    row: JsonObject = {
        **archived._asdict(), "title": redact(archived.title), "marked": archived.id in marked, "why": "", "grace": "",
    }  # fmt: skip
    try:
        about = archive.explain_retention(archived.id, home=frame.home)
        steps = archive.read_archived(archived.id, home=frame.home)["steps"]
    except AetherError as reason:
        return row | {"why": str(reason)}
    before = next((step["bytes_before"] for step in steps if step.get("bytes_before")), None)
    return row | {
        "why": about["reason"], "score": round(about["score"], 2), "next_level": about["next_level"],
        "next_at": about["next_at"], "grace": about["grace_until"], "before": before,
    }  # fmt: skip


def _state(plan: Iterable[archive.Planned]) -> str:
    """Return a short text that changes with the plan, except for the days that pass."""
    return digest({"steps": [[step.id, step.from_level, step.to_level] for step in plan]})


def mark(frame: Frame, form: Mapping[str, str]) -> str:
    """Mark a conversation as important, or take the mark back."""
    name, on = form.get("conversation", ""), form.get("on") == "1"
    if not archive.mark_conversation_important(name, on, home=frame.home):
        raise InvalidInput(f"there is no conversation {name!r}.", fix="Reload the page.", where=BY)
    return f"{name} is marked: it loses no more detail." if on else f"{name} ages by the rules again."


def restore(frame: Frame, form: Mapping[str, str]) -> str:
    """Bring an archived conversation back, as full as it still is."""
    name = form.get("conversation", "")
    result = archive.restore_conversation(name, home=frame.home)
    how = (
        "exactly as it was archived"
        if result.exact
        else f"at level {result.level}, the fullest form that is left"
    )
    if result.path:
        return f"{name} is a live conversation again, {how}."
    return f"{name} was added from a file and stays in the archive; it is there {how}."


def age(frame: Frame, form: Mapping[str, str]) -> str:
    """Age the archive by the plan that was shown."""
    plan = archive.age_archive(dry_run=True, home=frame.home).plan
    if _state(plan) != form.get("plan", ""):
        raise Conflict("the plan has changed since it was shown.", fix="Look at it again.", where=BY)
    result = archive.age_archive(ids={step.id for step in plan}, home=frame.home)
    failed = f" {plural(len(result.failed), 'conversations')} failed: see Health." if result.failed else ""
    return f"{plural(len(result.done), 'conversations')} aged.{failed} Their fuller forms rest for a while, and can be restored."


# --- Signals and phases


def colony_page(frame: Frame, asked: Asked) -> Shown:  # noqa: ARG001 - every page has the same parameters
    """Return the signals with their strength over time, the phases, and the open hand-offs."""
    documents = read(frame.home).documents
    strengths = report.signal_strengths(documents["pheromones"], now=clock.now())
    by_id = {signal["id"]: signal for signal in documents["pheromones"]["active_pheromones"]}
    state = documents["COLONY_STATE"]
    return Shown(
        "colony.html",
        {
            "signals": [{**signal, "entry": by_id[signal["id"]]} for signal in strengths], "queued": colony.queued_signals(home=frame.home),
            "chart": charts.signals_chart(strengths), "types": TYPES, "status": state["colony_status"],
            "phases": state["phases"]["roadmap"][::-1], "next": phases.current_phase(state) + 1,
            "handoffs": documents["memory"]["compression"]["open"], "goal": goals.current(documents["goals"]),
        },
    )  # fmt: skip


def emit(frame: Frame, form: Mapping[str, str]) -> str:
    """Emit a signal."""
    text = form.get("strength", "").strip()
    strength = form_share(text, "strength") if text else None
    result = colony.emit_signal(
        cast("SignalName", form.get("type", "")), form.get("context", ""), strength=strength, home=frame.home
    )
    return (
        f"{result['type']} waits for the end of the phase."
        if result["queued"]
        else f"{result['type']} is emitted."
    )


def start_phase(frame: Frame, form: Mapping[str, str]) -> str:
    """Start a phase."""
    number = _phase(form)
    options = {name: form.get(name, "").strip() or None for name in ("name", "goal")}
    colony.start_phase(number, name=options["name"], goal=options["goal"], home=frame.home)
    return f"Phase {number} is running."


def complete_phase(frame: Frame, form: Mapping[str, str]) -> str:
    """Complete a phase."""
    number = _phase(form)
    colony.complete_phase(number, home=frame.home)
    return f"Phase {number} is complete, and waits for your decision."


def decide(frame: Frame, form: Mapping[str, str]) -> str:
    """Record what the Queen decided about a phase."""
    note = form.get("note", "").strip() or None
    colony.decide(form.get("decision", ""), note=note, phase=_phase(form), home=frame.home)
    return "The decision is recorded."


def _phase(form: Mapping[str, str]) -> int:
    return form_number(form.get("phase", ""), "phase", "Use its number.")


PAGES = [
    Page("/timeline", "Timeline", timeline), Page("/around/{id:path}", "Around an entry", around, in_menu=False),
    *reading.PAGES, Page("/conversations", "Conversations", conversation_list),
    Page("/conversation/{id:path}", "Conversation", conversation, in_menu=False),
    Page("/archive", "Archive", archive_page), Page("/colony", "Signals and phases", colony_page),
]  # fmt: skip
ACTIONS = [
    *reading.ACTIONS, Action("undo-compaction", undo_compaction), Action("mark", mark), Action("restore", restore),
    Action("age", age), Action("emit", emit), Action("start-phase", start_phase),
    Action("complete-phase", complete_phase), Action("decide", decide),
]  # fmt: skip
