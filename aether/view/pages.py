"""Pages about what memory holds: the overview, the brief, search, one entry, the log, review and health.

Their actions are here as well, each one function of `api`, and the page of a conflict.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from aether import regular
from aether.api import admin, entries, patterns, review
from aether.api import forget as forget_api
from aether.api.briefing import SUBAGENT, brief
from aether.api.home import now, read
from aether.api.overview import overview as overview_of
from aether.api.recall import search_memory
from aether.api.review import Answer
from aether.api.status import get_compression_stats, get_memory_status
from aether.api.working import update_working_memory_item
from aether.conversation import goals
from aether.errors import AetherError, InvalidInput
from aether.memory import gate
from aether.memory.items import items_of
from aether.memory.layers import excerpt
from aether.memory.patterns import LINK_TYPES
from aether.memory.sessions import sessions_of
from aether.store import documents, spool
from aether.store.snapshot import load
from aether.store.undo import EntryChange
from aether.text.words import strings_in
from aether.types import RELEVANCE_OF_TYPE, JsonObject
from aether.view import markup
from aether.view.frame import (
    BY,
    PAGE_LINES,
    Action,
    Asked,
    Frame,
    Page,
    Part,
    Shown,
    Stale,
    form_number,
    form_share,
    later,
    live_entries,
    live_entry,
    marked,
    part,
    plural,
    visible,
    when,
)

NEXT_SESSION = "No session gets this any more."
# How a session starts, in the words of the page.
OCCASIONS = {
    "startup": "A new session", "compact": "After a compaction", "resume": "A resumed session", SUBAGENT: "A sub-agent",
}  # fmt: skip
LAYER_NAMES = {
    "working_memory": "working memory", "short_term_memory": "short-term memory", "long_term_memory": "long-term memory",
    "archive": "archive",
}  # fmt: skip
# Sections of the overview, by the kind of a brief's lines.
STANDING = {"state": "State of the work", "next": "Next", "rule": "Rules in force", "open": "Open"}
# Lines of the hooks' log that are shown; failures of hooks are rare.
LOG_LINES = 100
# The newest doubts are not the first to look at, so there is no second page: each answer makes room for the next.
DOUBTS = 25
# Characters of a text that are shown whole; conversations of the archive are longer. And of a field in a change.
MOST_TEXT, MOST_FIELD = 20_000, 500
# Findings of the check that are shown; of a home with many the first say what to do.
MOST_FINDINGS = 50
# Links of one entry that are shown; a session may be the evidence of every pattern.
MOST_LINKS = 100
# Briefs that are kept: those of each occasion for the overview and the page of the brief.
KEPT_BRIEFS = 8


def overview(frame: Frame, asked: Asked) -> Shown:  # noqa: ARG001 - every page has the same parameters
    """Return where the work is, what is next and in force, how full memory is, and what is wrong."""
    snapshot = read(frame.home)

    def standing() -> list[tuple[str, list[JsonObject]]]:
        lines = _traced(snapshot, _brief(frame)["lines"])
        return [(title, [line for line in lines if line["kind"] == kind]) for kind, title in STANDING.items()]

    stats = get_compression_stats(home=frame.home)
    saved = sum(
        max(0, session["original_tokens"] - session["compressed_tokens"]) for session in stats["sessions"]
    )
    goal_document = snapshot.documents["goals"]
    return Shown(
        "overview.html",
        {
            "found": later(frame, lambda: overview_of(home=snapshot.home)), "status": get_memory_status(home=frame.home), "saved": saved,
            "compressed": len(stats["sessions"]),
            "standing": later(frame, standing),
            "goals": [goals.view(goal_document, goal) for goal in goal_document["goals"] if not goal.get("outcome")],
        },
        later=True,
    )  # fmt: skip


def brief_page(frame: Frame, asked: Asked) -> Shown:
    """Return exactly what a session would get, each line with its source, age and cost."""
    occasion = asked.query.get("occasion", "")
    occasion = occasion if occasion in OCCASIONS else "startup"
    snapshot = read(frame.home)
    castes = sorted(snapshot.documents["pheromones"]["caste_sensitivities"])
    caste = asked.query.get("caste", "") or next(iter(castes), "")
    session = asked.query.get("session", "")

    def made() -> tuple[JsonObject, list[JsonObject]]:
        result = _brief(frame, occasion=occasion, session=session, caste=caste)
        return result, _traced(snapshot, result["lines"])

    return Shown(
        "brief.html",
        {
            "made": later(frame, made), "occasions": OCCASIONS, "occasion": occasion, "castes": castes, "caste": caste,
        },
        later=True,
    )  # fmt: skip


def _brief(frame: Frame, **options: str) -> JsonObject:
    """Return a brief; that of the same state of the home in the same minute is not made again."""
    return _made_brief(frame.home, read(frame.home).files, f"{now():%Y-%m-%d %H:%M}", **options)


@lru_cache(maxsize=KEPT_BRIEFS)
def _made_brief(home: Path, state: object, minute: str, **options: str) -> JsonObject:  # noqa: ARG001 - they name the state
    return brief(home, **options)


def _traced(snapshot: Any, lines: list[JsonObject]) -> list[JsonObject]:
    """Return the lines of a brief, each with the live entry that it comes from, or the session that holds its words."""
    memory = snapshot.documents["memory"]
    live = live_entries(snapshot.documents, {name for line in lines for name in line["ids"][:1]})
    # Lines of a brief have single blanks; texts of the metadata of a session are shown in a brief as well.
    sessions = [
        (candidate, "\n".join(" ".join(text.split()) for text in strings_in(candidate)).casefold())
        for candidate in reversed(sessions_of(memory))
    ]
    traced = []
    for line in lines:
        name = next(iter(line["ids"]), "")
        entry, words = live.get(name), line["text"].rstrip("…").casefold()
        source = next((session for session, text in sessions if not name and words in text), None)
        statement = next(
            (candidate for candidate in _statements(source) if " ".join(candidate.split()) == line["text"]),
            "",
        )
        kind = _kind_of(entry)
        traced.append(
            {
                **line, "kind": kind if kind == "signal" else line["kind"], "id": name, "entry": entry, "type": kind,
                "session": source and source["session_id"], "statement": statement,
            }
        )  # fmt: skip
    return traced


def _kind_of(entry: Mapping[str, Any] | None) -> str:
    """Return which entry of which document it is; empty without one."""
    if entry is None:
        return ""
    for field, kind in (
        ("session_id", "session"),
        ("pattern", "pattern"),
        ("strength", "signal"),
        ("subtasks", "goal"),
    ):
        if field in entry:
            return kind
    return "item"


def _statements(session: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the statements of a session, each of which can be forgotten or promoted by itself."""
    if session is not None:
        for field, name in (
            ("key_decisions", "decision"),
            ("outcomes", "result"),
            ("high_value_items", "content"),
        ):
            yield from (statement[name] for statement in session[field] if statement.get(name))


def search(frame: Frame, asked: Asked) -> Shown:
    """Return the entries that answer a query, with the matching part marked; without a query the newest entries."""
    query, layer, kind = (asked.query.get(name, "").strip() for name in ("q", "layer", "type"))
    layer = layer if layer in LAYER_NAMES else ""
    page = asked.number("page")
    values: dict[str, Any] = {
        "q": query, "layer": layer, "layers": LAYER_NAMES, "type": kind,
        "since": asked.query.get("since", ""), "until": asked.query.get("until", ""),
        "types": sorted({*entries.known_types(home=frame.home), *RELEVANCE_OF_TYPE, kind} - {""}),
    }  # fmt: skip
    if not query:
        listing = entries.newest(
            layer=layer, types=[kind] if kind else [], since=values["since"], until=values["until"],
            start=(page - 1) * PAGE_LINES, limit=PAGE_LINES, home=frame.home,
        )  # fmt: skip
        return Shown(
            "search.html",
            {**values, "part": part(listing.lines, page, total=listing.total, more=not listing.complete), "hits": None},
        )  # fmt: skip
    most = page * PAGE_LINES + 1
    hits = search_memory(
        query, most, layers=[layer] if layer else [], types=[kind] if kind else [], since=values["since"] or None,
        until=values["until"] or None, access=False, home=frame.home,
    )  # fmt: skip
    page_hits = hits[(page - 1) * PAGE_LINES : page * PAGE_LINES]
    lines = [
        {**hit, "parts": marked(markup.gist(hit["passage"], MOST_FIELD).replace("`", ""), hit["matched"])}
        for hit in page_hits
    ]
    # How many there are beyond this page is not known: only that there are more.
    return Shown(
        "search.html",
        {**values, "hits": lines, "part": Part(lines, page, page + (len(hits) == most), len(hits), more=len(hits) == most)},
    )  # fmt: skip


def entry(frame: Frame, asked: Asked) -> Shown:
    """Return one entry: text, state, evidence, links both ways, and every change of it."""
    snapshot = read(frame.home)
    details = entries.about(asked.path["id"], home=frame.home)
    live = live_entry(snapshot.documents, details.id)
    statements = _statements(details.entry) if "session_id" in details.entry else ()

    def changed() -> tuple[list[JsonObject], bool]:
        history, complete = entries.changes(details.id, home=frame.home)
        return [
            {
                **change._asdict(),
                "fields": list(_differences(change.before, change.after)),
                "also": _also(change),
            }
            for change in history
        ], complete

    return Shown(
        "entry.html",
        {
            "found": details, "live": live, "kind": _kind_of(live), "changed": later(frame, changed), "layers": LAYER_NAMES,
            "types": sorted({*RELEVANCE_OF_TYPE, details.type}), "link_types": LINK_TYPES,
            "part": part(statements, asked.number("page")), "most_text": MOST_TEXT, "most_links": MOST_LINKS,
        },
        details.type.replace("_", " ").capitalize(),
        later=True,
    )  # fmt: skip


# Fields that say nothing to a person, or follow from others.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_SILENT = frozenset({"id", "session_id", "token_count", "associative_links", "access_count", "last_accessed"})


def _differences(before: JsonObject | None, after: JsonObject | None) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each field that a change set, as it was and as it became."""
    if before is None or after is None:
        return
    old, new = ({**version, **(version.get("metadata") or {})} for version in (before, after))
    for name in sorted({*old, *new} - _SILENT - {"metadata"}):
        was, became = old.get(name), new.get(name)
        if was != became and not isinstance(was or became, list | dict):
            yield name, _short(was), _short(became)
    for name in ("associative_links", "evidence"):
        was, became = old.get(name) or [], new.get(name) or []
        if isinstance(was, list) and isinstance(became, list) and len(was) != len(became):
            yield name.replace("associative_", ""), str(len(was)), str(len(became))


def _also(change: EntryChange) -> str:
    """Return what an undo of a change takes back beside it; empty if the change is all that its revision made."""
    if not change.extent:
        return "all that it changed"
    if sum(change.extent.values()) == 1 and not change.part:
        return ""
    return ", ".join(plural(many, noun) for noun, many in change.extent.items())


def _short(value: Any) -> str:
    """Return the value of a field as a person reads it."""
    if value is None or value is True or value is False:
        return {None: "", True: "yes", False: "no"}[value]
    return when(value) if _TIME.fullmatch(str(value)) else excerpt(str(value), MOST_FIELD)


def log(frame: Frame, asked: Asked) -> Shown:
    """Return the journal, newest first: who changed what, when and why; each change that can be undone with its button."""
    page, everything = asked.number("page"), bool(asked.query.get("all"))
    values = {"log": later(frame, lambda: _log(frame, page, everything=everything)), "everything": everything}
    return Shown("log.html", values, later=True)


def _log(frame: Frame, page: int, *, everything: bool) -> dict[str, Any]:
    """Return a part of the journal, and the revisions in it that are undone."""
    lines = admin.log(limit=page * PAGE_LINES + 1, everything=everything, home=frame.home)
    undone: set[int] = set()
    for line in lines:  # newest first: an undo comes before what it undoes
        number = line.reason.rpartition(" ")[2]
        if line.operation == "undo" and line.revision not in undone and number.isdigit():
            undone.add(int(number))
    page_lines = lines[(page - 1) * PAGE_LINES : page * PAGE_LINES]
    has_more = len(lines) > page * PAGE_LINES
    return {"part": Part(page_lines, page, page + has_more, len(lines), more=has_more), "undone": undone}


def review_page(frame: Frame, asked: Asked) -> Shown:  # noqa: ARG001 - every page has the same parameters
    """Return what is doubtful in memory, the most serious first."""

    def found() -> tuple[list[Any], int]:
        documents_before = read(
            frame.home
        ).documents  # before the doubts: what changes in between is a conflict, and no surprise
        doubts = review.review(home=frame.home)
        first_doubts = doubts[:DOUBTS]
        live = live_entries(documents_before, {entry.id for doubt in first_doubts for entry in doubt.entries})
        return [(doubt, [live.get(entry.id) for entry in doubt.entries]) for doubt in first_doubts], len(
            doubts
        )

    values = {
        "found": later(frame, found), "most": DOUBTS, "shorten": excerpt, "layers": {**LAYER_NAMES, gate.DOCUMENT: "waiting"},
        "sources": later(frame, lambda: Tally(doubt_source(item) for item in review.waiting(home=frame.home))),
    }  # fmt: skip
    return Shown("review.html", values, later=True)


def health(frame: Frame, asked: Asked) -> Shown:
    """Return what is wrong with the home, the log of its hooks, and edits that wait; the whole home is checked when asked."""

    def status() -> JsonObject:
        try:
            return overview_of(home=frame.home)
        except AetherError as reason:  # the page of a damaged home says what can be repaired
            return {"problems": [str(reason)], "hooks": {"paused": False, "waiting": 0, "last_event": ""}}

    try:
        text = regular.read(frame.home / spool.NAME).decode("utf-8", "replace")
    except (OSError, AetherError):
        text = ""
    checked = bool(asked.query.get("check"))
    return Shown(
        "health.html",
        {
            "found": later(frame, status), "log": text.splitlines()[-LOG_LINES:][::-1], "checked": checked,
            "findings": later(frame, lambda: admin.examine(home=frame.home)),
            "most": MOST_FINDINGS,
            "edits": [edit.path.name for edit in documents.kept_edits(frame.home)],
        },
        later=True,
    )  # fmt: skip


def forget(frame: Frame, form: Mapping[str, str]) -> str:
    """Forget an entry, with all that repeats its text."""
    result = forget_api.forget([form["entry"]], home=frame.home)
    return f"{plural(len(result.targets), 'entries')} forgotten. {NEXT_SESSION}"


def forget_text(frame: Frame, form: Mapping[str, str]) -> str:
    """Forget every entry, and every statement of a session, that repeats a text."""
    result = forget_api.forget(match=form.get("text", ""), repeated=True, home=frame.home)
    return f"{plural(len(result.targets), 'entries')} with this text forgotten. {NEXT_SESSION}"


def correct(frame: Frame, form: Mapping[str, str]) -> str:
    """Change the text and the type of an item; an entry of another layer is superseded by a new item."""
    old, text = form["entry"], form.get("text", "")
    if not text.strip():
        raise InvalidInput("the text is empty.", fix="Write the correct text, or forget the entry.", where=BY)
    before = _text_of(frame, old)
    if text == visible(before).replace("\r\n", "\n"):
        text = before  # what cannot be shown was not typed away
    changes: dict[str, Any] = {"content": text} | ({"type": form["type"]} if form.get("type") else {})
    if "relevance" in form:
        changes["relevance_score"] = form_share(form["relevance"], "relevance")
    if _is_item(frame, old):
        update_working_memory_item(old, changes, home=frame.home)
        return "Corrected. The next session gets the new text."
    changes.pop("relevance_score", None)
    successor = forget_api.supersede(old, changes, home=frame.home)
    return f"Corrected: {successor.item['id']} takes the place of {old}."


def _text_of(frame: Frame, id: str) -> str:
    live = live_entry(load(frame.home).documents, id) or {}
    return str(live.get("content") or live.get("pattern") or "")


def protect(frame: Frame, form: Mapping[str, str]) -> str:
    """Protect an item from every shortening, or end that."""
    on = form.get("on") == "1"
    update_working_memory_item(form["entry"], {"metadata": {"protected": on or None}}, home=frame.home)
    return "Protected: no step may change or drop it." if on else "It is protected no longer."


def link(frame: Frame, form: Mapping[str, str]) -> str:
    """Link an entry to another."""
    target = form.get("target", "").strip()
    patterns.create_associative_link(form["entry"], target, form.get("type", ""), home=frame.home)
    return f"Linked to {target}."


def promote(frame: Frame, form: Mapping[str, str]) -> str:
    """Make a pattern of an item, or of a statement of a session."""
    if _is_item(frame, form["entry"]):
        result = patterns.promote_item(form["entry"], home=frame.home)
        created_text, supported_text = (
            "Promoted to long-term memory as",
            "Long-term memory has it already; linked with",
        )
        return (
            f"{created_text if result.created else supported_text} {(result.created or result.supported)[0]}."
        )
    kind = cast("Any", form.get("type") or None)
    created_text = patterns.extract_pattern_to_long_term(
        form.get("text", ""), session_id=form["entry"], type=kind, home=frame.home
    )
    return f"Promoted to long-term memory as {created_text}."


def promote_repeated(frame: Frame, form: Mapping[str, str]) -> str:  # noqa: ARG001 - every action has the same parameters
    """Promote what repeats, and what matters much."""
    result = patterns.promote(home=frame.home)
    return f"{plural(len(result.created), 'new patterns')}, {len(result.supported):,} with more evidence."


def answer(frame: Frame, form: Mapping[str, str]) -> str:
    """Settle a doubt: keep everything, correct its first entry, or forget one."""
    choice = cast("Answer", form.get("answer", ""))
    settled = review.settle(
        form.get("doubt", ""), choice, form.get("text", ""), newer=bool(form.get("newer")), home=frame.home
    )
    return {
        "keep": "Kept. It is not raised again, unless the text changes.",
        "forget": f"Forgotten. {NEXT_SESSION}",
        "correct": "Corrected.",
    }[settled.answer]


def decide_all(frame: Frame, form: Mapping[str, str]) -> str:
    """Accept or reject all that waits of one source."""
    source, accept = form.get("source", ""), form.get("answer") == "accept"
    ids = [item["id"] for item in review.waiting(home=frame.home) if doubt_source(item) == source]
    decided = review.decide(ids, accept, home=frame.home)
    return f"{plural(len(decided.ids), 'entries')} {'accepted' if accept else 'rejected'}."


def doubt_source(item: Mapping[str, Any]) -> str:
    """Return the conversation or file of an entry that waits, else who states it."""
    metadata = item["metadata"]
    file = (metadata.get("pointer") or {}).get("file")
    return str(metadata.get("conversation") or file or metadata["proposal"]["by"])


def undo(frame: Frame, form: Mapping[str, str]) -> str:
    """Undo one revision."""
    revision = form_number(form.get("revision", ""), "revision", "Choose one of the log.")
    line = admin.undo(revision, home=frame.home)
    return f"Revision {line.revision} ({line.operation}) is undone."


def repair(frame: Frame, form: Mapping[str, str]) -> str:  # noqa: ARG001 - every action has the same parameters
    """Repair the home as far as possible."""
    repairs = admin.repair(home=frame.home)
    return " ".join(repairs) or "Nothing had to be repaired."


def accept(frame: Frame, form: Mapping[str, str]) -> str:
    """Accept a hand edit that waits in quarantine."""
    documents_changed = admin.accept_edit(form.get("edit", ""), home=frame.home)
    return f"Accepted: {', '.join(documents_changed) or 'nothing differed'}."


def _is_item(frame: Frame, id: str) -> bool:
    return any(item["id"] == id for item in items_of(load(frame.home).documents["memory"]))


def conflict(frame: Frame, reason: Stale, form: Mapping[str, Any]) -> Shown:
    """Return the page of an entry that was changed meanwhile: both versions, and the form again."""
    entry = live_entry(load(frame.home).documents, reason.entry)
    hidden_fields = {"csrf", "once", "back", "state", "entry", "other", "other_state", "action"}
    fields = {name: value for name, value in form.items() if name not in hidden_fields}
    values = {
        "error": reason,
        "entry": entry,
        "id": reason.entry,
        "action": form["action"],
        "form": form,
        "given": fields,
        # A doubt is about the texts that were shown: about others it is raised again, or not at all.
        "again": form["action"] != "review",
    }
    return Shown("conflict.html", values, "Changed meanwhile", 409)


PAGES = [
    Page("/", "Overview", overview), Page("/brief", "Brief", brief_page), Page("/search", "Search", search),
    Page("/entry/{id:path}", "Entry", entry, in_menu=False), Page("/log", "Log", log),
    Page("/review", "Review", review_page), Page("/health", "Health", health),
]  # fmt: skip
ACTIONS = [
    Action("forget", forget), Action("forget-text", forget_text), Action("correct", correct),
    Action("protect", protect), Action("link", link), Action("promote", promote),
    Action("promote-repeated", promote_repeated), Action("review", answer), Action("decide-all", decide_all), Action("undo", undo),
    Action("repair", repair), Action("accept", accept),
]  # fmt: skip
