"""Patterns: the regularities in long-term memory, their promotion from sessions, and links between entries.

Guaranteed: `occurrences` is the number of distinct sessions in `metadata.evidence`, so a session counts once, and a
pattern keeps its evidence word for word after the session is evicted. The wording of a pattern never changes,
because later statements are compared with it. Patterns that contradict each other are both kept, linked both ways.

A statement is promoted if it is a high-value item with a relevance above `pattern_extraction.high_relevance` of the home, or if at least
`repeated_success` distinct sessions state it among their high-value items, rules and decisions in force; outcomes are evidence only.
Requests, commands and changed files are never promoted. The type of a pattern follows from that of its entry; only for entries without
such a type its words decide, by the four rules of the original. A failure is evidence for failures only. Of several wordings the
one that most sessions agree with is kept, among equals the latest. Promoting twice changes nothing; text that aether injected
never counts; a pattern is created once, even if its sessions are removed.

Both ends of a link must exist in a layer. Items and patterns hold their links in `associative_links`, sessions in
`metadata.associative_links`; a session also lists its patterns in `metadata.related_patterns`. Linking twice
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import count
from typing import Any, Literal, NamedTuple

from aether import clock
from aether.clock import NewId
from aether.errors import InvalidInput, NotFound, shown
from aether.memory.sessions import ended_in, last_heard
from aether.text.cleaning import without_injected
from aether.text.similarity import Index, gist, implied_by, index, opposites, supporting
from aether.text.words import sentences, stem, words
from aether.types import Change, JsonObject, Link, Patch, Pattern

MakeId = Callable[[str], str]
"""Makes the next id of a kind."""
PatternType = Literal["success_pattern", "failure_pattern", "preference", "constraint"]
PATTERN_TYPES: tuple[PatternType, ...] = ("success_pattern", "failure_pattern", "preference", "constraint")

# Facts of the original colony: the confidence of a new pattern, of each further session, and the minimum from three
# sessions on.
NEW_CONFIDENCE = 0.7
CONFIDENCE_PER_SESSION = 0.1
REPEATED_SESSIONS = 3
REPEATED_BASE = 0.5

# Requests, changed files and commands are work, not a regularity of it.
WORK_TYPES = frozenset(
    {"code_change", "command", "code_snippet", "user_input", "user_request", "request", "message", "next"}
)
# The type of the pattern that is made of an entry of each type; a choice that holds on is a preference.
_TYPE_OF: Mapping[str, PatternType] = {
    "constraint": "constraint", "rule": "constraint", "preference": "preference", "decision": "preference",
    "solution": "success_pattern", "lesson": "success_pattern", "success_pattern": "success_pattern",
    "error": "failure_pattern", "blocker": "failure_pattern", "failure_pattern": "failure_pattern",
}  # fmt: skip
# Of other types: the first rule of the original with such a word or stem, else a preference.
_CUES: dict[PatternType, frozenset[str]] = {
    "failure_pattern": frozenset({"error", "fail", "failur", "bug"}),
    "success_pattern": frozenset({"success", "worked", "achiev"}),
    "constraint": frozenset({"must", "should", "constraint", "avoid"}),
}
# What such an entry says is the output of a run: a line of it says nothing alone.
_RUNS = frozenset({"solution", "error"})
# A longer entry is data.
MAX_SENTENCES = 40
# The first three are of the code of the original, the next four of its schema, the last two are ours.
LINK_TYPES = (
    "originated_from", "related_to", "extracted_from",
    "similar_context", "causal_relationship", "temporal_proximity", "caste_affinity",
    "contradicts", "supersedes",
)  # fmt: skip
# Links of these types are symmetric, so the other end gets one too.
_MUTUAL = frozenset(("related_to", "similar_context", "temporal_proximity", "caste_affinity", "contradicts"))


class Statement(NamedTuple):
    """A statement of a session."""

    text: str
    session_at: int
    """Position of the session in short-term memory."""
    session_id: str
    link_to: str
    """The `id` of the session, for links; sessions are counted by `session_id`."""
    phase: int | None
    castes: tuple[str, ...]
    relevance: float
    """Above 0 only for high-value items; the other statements have no relevance of their own."""
    order: int = 0
    """Position among all statements, oldest first."""
    type: str = ""
    """The type of its entry."""
    at: str = ""
    """When its session was last heard of."""


class Contradiction(NamedTuple):
    """Two patterns that cannot both hold; `pattern_id` is that of the new one."""

    pattern_id: str
    other_id: str
    pattern: str
    other: str


class Promotion(NamedTuple):
    """The effect of an extraction on long-term memory."""

    created: list[str]
    supported: list[str]
    """Ids of existing patterns that gained evidence."""
    contradictions: list[Contradiction]


class Support(NamedTuple):
    """Statements for one pattern: an existing one by its position, or a new wording."""

    statements: list[Statement]
    at: int | None = None
    wording: str = ""
    type: PatternType | None = None
    confidence: float = NEW_CONFIDENCE


def pattern_type(text: str) -> PatternType:
    """Return the type of pattern that the words of `text` indicate.

    >>> pattern_type("Two tests failed"), pattern_type("Debug logs go to stderr")
    ('failure_pattern', 'preference')
    """
    used = {form for word in words(text) for form in (word, stem(word))}
    return next((kind for kind, cues in _CUES.items() if used & cues), "preference")


def extract_pattern(
    memory: JsonObject, content: str, *, type: PatternType | None = None, session_id: str, now: datetime,
    new_id: NewId, confidence: float = NEW_CONFIDENCE,
) -> Change:  # fmt: skip
    """Return the change that records `content` of session `session_id` as a pattern; its result is the pattern's id.

    An existing pattern with the same meaning gains the session as evidence instead.

    Raises:
        InvalidInput: the content is empty without injected text, or type or confidence is invalid.
        NotFound: no session has that id.
    """
    text = _worded(content)
    if type is not None and type not in PATTERN_TYPES:
        raise InvalidInput(
            f"{shown(type)} is not a pattern type.", fix=f"Use one of {', '.join(PATTERN_TYPES)}."
        )
    if not 0 <= confidence <= 1:
        raise InvalidInput(f"{shown(confidence)} is not a confidence.", fix="Pass a number from 0 to 1.")
    seen = session_statement(memory, session_id, text)
    patterns = memory["long_term_memory"]["patterns"]
    at = matching_pattern(text, seen.session_id, patterns, index(pattern["pattern"] for pattern in patterns))
    support = Support([seen], at, text, type, confidence)
    change = apply_supports(memory, [support], now=now, new_id=new_id)
    return change._replace(result=change.result.created[0] if at is None else patterns[at]["id"])


def promote_item(memory: JsonObject, item_id: str, *, now: datetime, new_id: NewId) -> Change:
    """Return the change that records the text of an item as a pattern because a person says so.

    Its result is a `Promotion`. No session is its evidence until one repeats it. An existing pattern with the same meaning is linked with the item
    instead.

    Raises:
        InvalidInput: the entry is no item, or says nothing without injected text.
        NotFound: nothing has this id.
    """
    place = _endpoint(memory, item_id)
    if place.type != "working_memory_item":
        fix = "Name an item; of a session pass the text of a statement."
        raise InvalidInput(f"{shown(item_id)} is no item of working memory.", fix=fix)
    text, about = _worded(place.value["content"]), place.value["metadata"]
    patterns = memory["long_term_memory"]["patterns"]
    known = implied_by(text, index(pattern["pattern"] for pattern in patterns))
    if known:
        found = patterns[known[0]]["id"]
        linked = create_link(memory, found, item_id, "extracted_from", now=now, new_id=new_id)
        return linked._replace(result=Promotion([], [found], []))
    ids = count()

    def make(kind: str) -> str:
        return new_id(kind, now, next(ids))

    kind = next((one for one in PATTERN_TYPES if one == place.value["type"]), None)
    pattern = _new_pattern(Support([], None, text, kind), [], now, make)
    pattern |= {"occurrences": 1, "confidence": NEW_CONFIDENCE}
    pattern["associative_links"].append(
        new_link(make("link"), item_id, place.type, "extracted_from", now=now)
    )
    for field, given in (("related_castes", about.get("caste")), ("related_phases", about.get("phase"))):
        pattern["metadata"][field] += [] if given is None else [given]
    patch: Patch = []
    contradictions = _link_contradictions(patterns, [pattern], patch, now, make)
    total = memory["metrics"]["total_pattern_extractions"] + 1
    patch += [
        {"op": "add", "path": "/long_term_memory/patterns/-", "value": pattern},
        {"op": "replace", "path": "/metrics/total_pattern_extractions", "value": total},
    ]
    return Change({"memory": patch}, result=Promotion([pattern["id"]], [], contradictions))


def _worded(content: str) -> str:
    """Return a text without what was injected, if it has a word."""
    text = without_injected(content).strip()
    if not any(words(text)):
        raise InvalidInput(f"{shown(content)} says nothing to remember.", fix="Pass one statement in words.")
    return text


def session_statement(memory: JsonObject, session_id: str, text: str) -> Statement:
    """Return `text` as a statement of the session with that id.

    Raises:
        NotFound: no session has that id.
    """
    for at, session in enumerate(memory["short_term_memory"]["sessions"]):
        if session_id in (session["id"], session["session_id"]):
            return Statement(
                text,
                at,
                session["session_id"],
                session["id"],
                session.get("phase"),
                castes_of(session),
                0.0,
                at=last_heard(session),
            )
    raise NotFound(
        f"no session has the id {shown(session_id)}.", fix='List the sessions with "aether memory stats".'
    )


def castes_of(session: Mapping[str, Any], entry: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the caste of `entry` of `session`, else the castes of the whole session."""
    own = (entry or {}).get("caste")
    listed = (session.get("metadata") or {}).get("castes") or []
    return (own,) if isinstance(own, str) else tuple(caste for caste in listed if isinstance(caste, str))


def matching_pattern(text: str, session_id: str, patterns: list[Pattern], found: Index) -> int | None:
    """Return the position of the pattern that `text` is evidence for, or None.

    A pattern that counts the session already comes first: otherwise promoting the same session again could
    assign its statements to another pattern.
    """
    near = implied_by(text, found)
    for at in near:
        if session_id in session_ids(patterns[at]):
            return at
    return near[0] if near else None


def session_ids(pattern: Mapping[str, Any]) -> set[str]:
    """Return the ids of the sessions that `pattern` counts; a pattern of the original format names them in its links."""
    evidence = (pattern.get("metadata") or {}).get("evidence")
    if evidence is not None:
        return {each["session_id"] for each in evidence}
    links = pattern.get("associative_links") or []
    return {link["target_id"] for link in links if link["target_type"] == "short_term_session"}


def apply_supports(
    memory: JsonObject, supports: Iterable[Support], *, now: datetime, new_id: NewId
) -> Change:
    """Return the change that adds each support to its pattern, an existing or a new one; its result is a `Promotion`."""
    patterns: list[Pattern] = memory["long_term_memory"]["patterns"]
    ids = count()

    def make(kind: str) -> str:
        return new_id(kind, now, next(ids))

    patch: Patch = []
    fresh: list[Pattern] = []
    related: dict[int, list[str]] = {}
    gained: list[str] = []
    for support in supports:
        if support.at is None:
            new = _one_per_session(support.statements, set())
            pattern = _new_pattern(support, new, now, make)
            fresh.append(pattern)
        else:
            pattern = patterns[support.at]
            new = _one_per_session(support.statements, session_ids(pattern))
            if new:
                pointer = f"/long_term_memory/patterns/{support.at}"
                patch += _evidence_patch(pattern, pointer, new, now, make)
                gained.append(pattern["id"])
        for statement in new:
            related.setdefault(statement.session_at, []).append(pattern["id"])
    contradictions = _link_contradictions(patterns, fresh, patch, now, make)
    patch += [{"op": "add", "path": "/long_term_memory/patterns/-", "value": pattern} for pattern in fresh]
    sessions = memory["short_term_memory"]["sessions"]
    for at, pattern_ids in related.items():
        patch += relate_patterns(sessions[at], f"/short_term_memory/sessions/{at}", pattern_ids)
    if fresh:
        total = memory["metrics"]["total_pattern_extractions"] + len(fresh)
        patch.append({"op": "replace", "path": "/metrics/total_pattern_extractions", "value": total})
    result = Promotion([pattern["id"] for pattern in fresh], gained, contradictions)
    return Change({"memory": patch} if patch else {}, result=result)


def _one_per_session(statements: list[Statement], known: set[str]) -> list[Statement]:
    """Return the first statement of each session that is not in `known`."""
    first: dict[str, Statement] = {}
    for statement in statements:
        first.setdefault(statement.session_id, statement)
    return [statement for session_id, statement in first.items() if session_id not in known]


def _new_pattern(support: Support, statements: list[Statement], now: datetime, make: MakeId) -> Pattern:
    return {
        "id": make("pattern"), "type": support.type or pattern_type(support.wording), "pattern": support.wording,
        "confidence": _confidence(support.confidence, len(statements) - 1, len(statements)),
        "occurrences": len(statements), "created_at": clock.stamp(now), "last_seen": max((each.at for each in statements), default=clock.stamp(now)),
        "associative_links": [_session_link(each, now, make) for each in statements],
        "metadata": {
            "context": "",
            "related_castes": sorted({caste for each in statements for caste in each.castes}),
            "related_phases": sorted({each.phase for each in statements if each.phase is not None}),
            "evidence": [_evidence(each) for each in statements],
        },
    }  # fmt: skip


def _evidence_patch(
    pattern: Pattern, pointer: str, statements: list[Statement], now: datetime, make: MakeId
) -> Patch:
    """Return the patch that adds `statements`, one per new session, to the pattern at `pointer`."""
    occurrences = pattern["occurrences"] + len(statements)
    values = {
        "occurrences": occurrences,
        "confidence": _confidence(pattern["confidence"], len(statements), occurrences),
        "last_seen": max(pattern["last_seen"], *(each.at for each in statements)),
    }
    patch: Patch = [
        {"op": "replace", "path": f"{pointer}/{key}", "value": value} for key, value in values.items()
    ]
    links = [_session_link(each, now, make) for each in statements]
    patch += _append_patch(pattern, "associative_links", pointer, links)
    metadata, inner = pattern["metadata"], f"{pointer}/metadata"
    phases = sorted({each.phase for each in statements if each.phase is not None})
    castes = sorted({one for each in statements for one in each.castes})
    patch += _append_patch(metadata, "related_phases", inner, phases)
    patch += _append_patch(metadata, "related_castes", inner, castes)
    evidence = [_evidence(each) for each in statements]
    if "evidence" not in metadata:
        # A pattern of the original format names the sessions that it has counted in its links.
        text, linked = pattern["pattern"], sorted(session_ids(pattern))
        evidence = [*({"session_id": each, "phase": None, "text": text} for each in linked), *evidence]
    return patch + _append_patch(metadata, "evidence", inner, evidence)


def _append_patch(owner: Mapping[str, Any], key: str, pointer: str, values: list[Any]) -> Patch:
    held = owner.get(key)
    if not isinstance(held, list):
        return [{"op": "add", "path": f"{pointer}/{key}", "value": values}]
    return [
        {"op": "add", "path": f"{pointer}/{key}/-", "value": value} for value in values if value not in held
    ]


def _evidence(statement: Statement) -> JsonObject:
    return {"session_id": statement.session_id, "phase": statement.phase, "text": statement.text}


def _session_link(statement: Statement, now: datetime, make: MakeId) -> Link:
    return new_link(make("link"), statement.link_to, "short_term_session", "extracted_from", now=now)


def _confidence(before: float, further: int, occurrences: int) -> float:
    """Return the confidence after `further` sessions of `occurrences` in all; rounded, so that 0.1 adds up."""
    raised = before + CONFIDENCE_PER_SESSION * further
    if occurrences >= REPEATED_SESSIONS:
        raised = max(raised, REPEATED_BASE + CONFIDENCE_PER_SESSION * occurrences)
    return round(min(1.0, raised), 4)


def _link_contradictions(
    patterns: list[Pattern], fresh: list[Pattern], patch: Patch, now: datetime, make: MakeId
) -> list[Contradiction]:
    """Link each new pattern and those that it contradicts both ways, without a change of confidence."""
    every = [*patterns, *fresh]
    found = index(pattern["pattern"] for pattern in every if fresh)
    contradictions: list[Contradiction] = []
    for at, pattern in enumerate(fresh, start=len(patterns)):
        for other_at in opposites(pattern["pattern"], found):
            if other_at >= at:
                break
            other = every[other_at]
            back = _pattern_link(pattern, now, make)
            if other_at >= len(patterns):
                other["associative_links"].append(back)
            else:
                pointer = f"/long_term_memory/patterns/{other_at}"
                patch += _append_patch(other, "associative_links", pointer, [back])
            pattern["associative_links"].append(_pattern_link(other, now, make))
            pair = Contradiction(pattern["id"], other["id"], pattern["pattern"], other["pattern"])
            contradictions.append(pair)
    return contradictions


def _pattern_link(target: Pattern, now: datetime, make: MakeId) -> Link:
    return new_link(make("link"), target["id"], "long_term_pattern", "contradicts", now=now)


class Repeated(NamedTuple):
    """A statement that occurs in several sessions."""

    statement: str
    sessions: list[str]
    """Ids of the distinct sessions, oldest first."""
    wordings: list[str]


def promote(memory: JsonObject, *, now: datetime, new_id: NewId) -> Change:
    """Return the change that promotes weighty and repeated statements; its result is a `Promotion`."""
    patterns: list[Pattern] = memory["long_term_memory"]["patterns"]
    known = index(pattern["pattern"] for pattern in patterns)
    gains: dict[int, list[Statement]] = {}
    rest: list[Statement] = []
    for statement in _statements(memory):
        at = matching_pattern(statement.text, statement.session_id, patterns, known)
        if at is None:
            rest.append(statement)
        elif _may_support(statement, patterns[at]["type"]):
            gains.setdefault(at, []).append(statement)
    supports = [Support(gained, at) for at, gained in sorted(gains.items())]
    supports += [
        Support(sorted(group, key=_order), wording=group[0].text, type=_lasting_type(group[0]))
        for group in _groups(memory, rest)
    ]
    return apply_supports(memory, supports, now=now, new_id=new_id)


def repeated_statements(memory: JsonObject) -> list[Repeated]:
    """Return the statements of at least `repeated_success` distinct sessions, promoted or not, most repeated first."""
    found: list[Repeated] = []
    least = memory["pattern_extraction"]["repeated_success"]
    for group in _groups(memory, list(_statements(memory))):
        ordered = sorted(group, key=_order)
        sessions = list(dict.fromkeys(each.session_id for each in ordered))
        wordings = list(dict.fromkeys(each.text for each in ordered))
        if len(sessions) >= least:
            found.append(Repeated(group[0].text, sessions, wordings))
    return sorted(found, key=lambda each: -len(each.sessions))


def _statements(memory: JsonObject) -> Iterator[Statement]:
    """Yield the statements of the sessions, oldest session first, without injected text."""
    sessions = memory["short_term_memory"]["sessions"]
    by_time = sorted(enumerate(sessions), key=lambda numbered: (last_heard(numbered[1]), numbered[0]))
    high = memory["pattern_extraction"]["high_relevance"]
    order = 0
    for at, session in by_time:
        for entry, text, relevance, entry_type in _texts_of(session):
            # A result makes a pattern only by its relevance.
            kind = "" if entry_type == "outcome" and relevance > high else entry_type
            own = without_injected(text).strip()
            if kind not in WORK_TYPES and gist(own).signs and not ended_in(session, own):
                yield Statement(
                    own, at, session["session_id"], session["id"], session.get("phase"),
                    castes_of(session, entry), relevance, order, kind, last_heard(session),
                )  # fmt: skip
                order += 1


def _texts_of(session: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str, float, str]]:
    """Yield entry, text, relevance and type; a session of the original format may lack any of the lists."""
    for entry in session.get("high_value_items") or []:
        if not entry.get("injected"):
            kind = str(entry.get("type") or "")
            content = str(entry.get("content") or "")
            yield entry, content, float(entry.get("relevance_score") or 0.0), kind
            # Each sentence of an entry is evidence too, but the relevance is that of the whole entry.
            parts = [] if kind in _RUNS else sentences(content)
            yield from ((entry, part, 0.0, kind) for part in parts[:MAX_SENTENCES] if len(parts) > 1)
    for field, name, kind in (("key_decisions", "decision", "decision"), ("rules", "text", "rule")):
        for entry in session.get(field) or []:
            if not entry.get("ended"):
                yield entry, str(entry.get(name) or ""), 0.0, kind
    for entry in session.get("outcomes") or []:
        yield entry, str(entry.get("result") or ""), 0.0, "outcome"


def _order(statement: Statement) -> int:
    return statement.order


def _lasting_type(statement: Statement) -> PatternType | None:
    """Return the type of the pattern that a statement makes, None if it makes none: a result is only evidence."""
    if statement.type == "outcome":
        return None
    return _TYPE_OF.get(statement.type) or pattern_type(statement.text)


def _may_support(statement: Statement, type: str) -> bool:
    """Return whether a statement may be evidence for a pattern of this type: a failure proves no rule and no success."""
    own = _TYPE_OF.get(statement.type)
    return own is None or (own == "failure_pattern") == (type == "failure_pattern")


def _groups(memory: JsonObject, statements: list[Statement]) -> Iterator[list[Statement]]:
    """Yield each group of statements with one meaning that is promoted, the best wording first.

    A group has the statements similar to its first one, not those similar to another member, so that meaning
    cannot drift along a chain. Only a promoted group takes its members from other groups.
    """
    high, least = (memory["pattern_extraction"][name] for name in ("high_relevance", "repeated_success"))
    by_words: dict[str, list[Statement]] = {}
    for statement in statements:
        by_words.setdefault(gist(statement.text).plain, []).append(statement)
    units = list(by_words.values())
    found = index(unit[-1].text for unit in units)
    near = [supporting(unit[-1].text, found) for unit in units]
    agreeing = [len({one.session_id for at in ats for one in units[at]}) for ats in near]
    taken: set[int] = set()
    weighty = [any(each.relevance > high for each in unit) for unit in units]
    ranks = [(-n, not weighty[at], -units[at][-1].order) for at, n in enumerate(agreeing)]
    for at in sorted(range(len(units)), key=ranks.__getitem__):
        if at in taken:
            continue
        first = next(filter(_lasting_type, reversed(units[at])), None)
        if first is None:
            continue
        members = [other for other in near[at] if other not in taken]
        kind = _lasting_type(first) or ""
        others = (one for other in members for one in units[other] if _may_support(one, kind))
        group = [first, *(one for one in others if one is not first)]
        repeated = len({each.session_id for each in group}) >= least
        if repeated or weighty[at]:
            taken.update(members)
            yield group


class _Endpoint(NamedTuple):
    """One end of a link: its id, type, JSON pointer and value."""

    id: str
    type: str
    pointer: str
    value: Mapping[str, Any]


def create_link(
    memory: JsonObject, source_id: str, target_id: str, link_type: str, *, now: datetime, new_id: NewId
) -> Change:
    """Return the change that links `source_id` to `target_id`; its result is the id of the link.

    Raises:
        InvalidInput: the type is not one of ``LINK_TYPES``, or both ends are the same.
        NotFound: an end is in no layer.
    """
    if link_type not in LINK_TYPES:
        raise InvalidInput(
            f"{shown(link_type)} is not a link type.", fix=f"Use one of {', '.join(LINK_TYPES)}."
        )
    if source_id == target_id:
        raise InvalidInput(f"{shown(source_id)} cannot be linked to itself.", fix="Name two different ids.")
    source, target = _endpoint(memory, source_id), _endpoint(memory, target_id)
    patch: Patch = []
    link_id = _add_link(patch, source, target, link_type, link_id=new_id("link", now, 0), now=now)
    kinds = {source.type, target.type}
    both_ways = kinds == {"short_term_session", "long_term_pattern"}
    if both_ways or ("working_memory_item" not in kinds and link_type in _MUTUAL):
        back_id = _add_link(patch, target, source, link_type, link_id=new_id("link", now, 1), now=now)
        if both_ways and source.type == "short_term_session":
            # A session lists the ids of its patterns; the pattern holds the link itself.
            link_id = back_id
    return Change({"memory": patch} if patch else {}, result=link_id)


def new_link(link_id: str, target_id: str, target_type: str, link_type: str, *, now: datetime) -> Link:
    """Return a link as its holder stores it."""
    return {
        "link_id": link_id, "target_id": target_id, "target_type": target_type, "link_type": link_type,
        "created_at": clock.stamp(now),
    }  # fmt: skip


def relate_patterns(session: Mapping[str, Any], pointer: str, pattern_ids: list[str]) -> Patch:
    """Return the patch that lists `pattern_ids` in the session at `pointer`, except those listed already."""
    metadata = session.get("metadata")
    if not isinstance(metadata, dict):
        return [{"op": "add", "path": f"{pointer}/metadata", "value": {"related_patterns": pattern_ids}}]
    listed = metadata.get("related_patterns")
    if not isinstance(listed, list):
        return [{"op": "add", "path": f"{pointer}/metadata/related_patterns", "value": pattern_ids}]
    path = f"{pointer}/metadata/related_patterns/-"
    return [{"op": "add", "path": path, "value": each} for each in pattern_ids if each not in listed]


def _endpoint(memory: JsonObject, wanted: str) -> _Endpoint:
    layers = (
        ("working_memory", "items", "working_memory_item"),
        ("short_term_memory", "sessions", "short_term_session"),
        ("long_term_memory", "patterns", "long_term_pattern"),
    )
    for layer, entries, end_type in layers:
        for at, entry in enumerate(memory[layer][entries]):
            if entry["id"] == wanted:
                return _Endpoint(wanted, end_type, f"/{layer}/{entries}/{at}", entry)
    raise NotFound(
        f"no item, session or pattern has the id {shown(wanted)}.",
        fix='Find ids with "aether memory search" or "aether show memory".',
    )


def _add_link(
    patch: Patch, holder: _Endpoint, target: _Endpoint, link_type: str, *, link_id: str, now: datetime
) -> str:
    """Add to `patch` a link from `holder` to `target`; return the id of that link."""
    is_session = holder.type == "short_term_session"
    if is_session and target.type == "long_term_pattern":
        patch += relate_patterns(holder.value, holder.pointer, [target.id])
        return link_id
    pointer, owner = holder.pointer, holder.value
    if is_session:
        pointer, owner = f"{pointer}/metadata", owner.get("metadata")  # type: ignore[assignment]
        if not isinstance(owner, dict):
            patch.append({"op": "add", "path": pointer, "value": {}})
            owner = {}
    links = owner.get("associative_links")
    if not isinstance(links, list):
        patch.append({"op": "add", "path": f"{pointer}/associative_links", "value": []})
        links = []
    for held in links:
        if held["target_id"] == target.id and held["link_type"] == link_type:
            return str(held["link_id"])
    link = new_link(link_id, target.id, target.type, link_type, now=now)
    patch.append({"op": "add", "path": f"{pointer}/associative_links/-", "value": link})
    return link_id
