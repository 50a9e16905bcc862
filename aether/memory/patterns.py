"""Patterns: the regularities in long-term memory, their promotion from sessions, and links between entries.

Guaranteed: `occurrences` is the number of distinct sessions in `metadata.evidence`, so a session counts once, and a
pattern keeps its evidence word for word after the session is evicted. The wording of a pattern never changes,
because later statements are compared with it. Patterns that contradict each other are both kept, linked both ways.

A statement is promoted if it is a high-value item with a relevance above `pattern_extraction.high_relevance` of the home, or if
at least `repeated_success` distinct sessions state it among their high-value items, rules and decisions in force; outcomes are
evidence only. Requests, commands and changed files are never promoted. The type of a pattern follows from that of its entry;
only for entries without such a type its words decide, by the four rules of the original. A failure is evidence for failures only.
Of several wordings the one that most sessions agree with is kept, among equals the latest. Promoting twice changes nothing;
text that aether injected never counts; a pattern is created once, even if its sessions are removed.

Both ends of a link must exist in a layer. Items and patterns hold their links in `associative_links`, sessions in
`metadata.associative_links`; a session also lists its patterns in `metadata.related_patterns`. Linking twice changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from datetime import datetime
from itertools import count
from typing import Any, Literal, NamedTuple, cast, get_args

from aether import clock
from aether.clock import NewId
from aether.errors import InvalidInput, NotFound, require_one_of, shown
from aether.memory.sessions import ended_in, last_heard
from aether.store.patch import diff
from aether.text.cleaning import without_injected
from aether.text.similarity import Index, implied_by, index, meaning, opposites, supporting
from aether.text.words import sentences, stem, words
from aether.types import Change, JsonObject, Link, Pattern

PatternType = Literal["success_pattern", "failure_pattern", "preference", "constraint"]
PATTERN_TYPES: tuple[PatternType, ...] = get_args(PatternType)
# Facts of the original colony: the confidence of a new pattern, of each further session, and the minimum from three
# sessions on.
NEW_CONFIDENCE = 0.7
CONFIDENCE_PER_SESSION = 0.1
REPEATED_SESSIONS = 3
REPEATED_BASE = 0.5
# Requests, changed files and commands are work, not a regularity of it.
WORK_TYPES = frozenset(
    "code_change command code_snippet user_input user_request request message next".split()
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
# Such an entry is the output of a run: a line of it says nothing alone.
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
MUTUAL = frozenset({"related_to", "similar_context", "temporal_proximity", "caste_affinity", "contradicts"})


class Statement(NamedTuple):
    """A statement of a session."""

    text: str
    session: Mapping[str, Any]
    castes: tuple[str, ...]
    relevance: float = 0.0
    """Above 0 only for high-value items; the other statements have no relevance of their own."""
    type: str = ""
    """The type of its entry."""
    order: int = 0
    """Position among all statements, oldest first."""

    @property
    def session_id(self) -> str:
        """The id of its session, by which it is counted."""
        return str(self.session["session_id"])


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


class Repeated(NamedTuple):
    """A statement that occurs in several sessions."""

    statement: str
    sessions: list[str]
    """Ids of the distinct sessions, oldest first."""
    wordings: list[str]


class _Draft:
    """Memory with copies of the entries that change; `change` compares it with the original."""

    def __init__(self, memory: JsonObject, now: datetime, new_id: NewId) -> None:
        self.memory, self.now = memory, now
        self.items = [*memory["working_memory"]["items"]]
        self.sessions = [*memory["short_term_memory"]["sessions"]]
        self.patterns: list[Any] = [*memory["long_term_memory"]["patterns"]]
        self.supported: list[str] = []
        numbers = count()
        self.make_id: Callable[[str], str] = lambda kind: new_id(kind, now, next(numbers))

    def link(self, target: str, target_type: str, link_type: str) -> Link:
        """Return a new link, to be stored by its holder."""
        return {
            "link_id": self.make_id("link"), "target_id": target, "target_type": target_type, "link_type": link_type,
            "created_at": clock.stamp(self.now),
        }  # fmt: skip

    def created(self) -> list[Any]:
        """Return the patterns that are new."""
        return self.patterns[len(self.memory["long_term_memory"]["patterns"]) :]

    def change(self, result: Any) -> Change:
        """Return the change from the original to the draft."""
        parts = (
            ("working_memory", "items"),
            ("short_term_memory", "sessions"),
            ("long_term_memory", "patterns"),
        )
        after = {
            **self.memory,
            **{layer: {**self.memory[layer], field: getattr(self, field)} for layer, field in parts},
        }
        if new := len(self.created()):
            metrics = self.memory["metrics"]
            after["metrics"] = {
                **metrics, "total_pattern_extractions": metrics["total_pattern_extractions"] + new,
            }  # fmt: skip
        patch = diff(self.memory, after)
        return Change({"memory": patch} if patch else {}, result=result)


def _copied(entries: list[Any], position: int) -> Any:
    """Return the entry at this position, replaced by a copy that may be changed."""
    entries[position] = deepcopy(entries[position])
    return entries[position]


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
    if type is not None:
        require_one_of(type, PATTERN_TYPES, "a pattern type")
    if not 0 <= confidence <= 1:
        raise InvalidInput(f"{shown(confidence)} is not a confidence.", fix="Pass a number from 0 to 1.")
    draft = _Draft(memory, now, new_id)
    session = next(
        (session for session in draft.sessions if session_id in (session["id"], session["session_id"])), None
    )
    if session is None:
        fix = 'List the sessions with "aether status --compressions".'
        raise NotFound(f"no session has the id {shown(session_id)}.", fix=fix)
    statement = Statement(text, session, _castes_of(session))
    position = _matching_pattern(statement, draft.patterns, _pattern_index(memory))
    if position is None:
        position = _new_pattern(draft, text, type or pattern_type(text), confidence)
    _add_evidence(draft, position, [statement])
    _link_contradictions(draft)
    return draft.change(draft.patterns[position]["id"])


def promote_item(memory: JsonObject, item_id: str, *, now: datetime, new_id: NewId) -> Change:
    """Return the change that records the text of an item as a pattern because a person says so; its result is a `Promotion`.

    No session is its evidence until one repeats it. An existing pattern with the same meaning is linked with the item instead.

    Raises:
        InvalidInput: the entry is no item, or says nothing without injected text.
        NotFound: nothing has this id.
    """
    draft = _Draft(memory, now, new_id)
    item, kind = _find_entry(draft, item_id)
    if kind != "working_memory_item":
        fix = "Name an item; of a session pass the text of a statement."
        raise InvalidInput(f"{shown(item_id)} is not an item of working memory.", fix=fix)
    text, metadata = _worded(item["content"]), item["metadata"]
    if equal := implied_by(text, _pattern_index(memory)):
        known_id = draft.patterns[equal[0]]["id"]
        linked = create_link(memory, known_id, item_id, "extracted_from", now=now, new_id=new_id)
        return linked._replace(result=Promotion([], [known_id], []))
    own_type = next((kind for kind in PATTERN_TYPES if kind == item["type"]), None)
    pattern = draft.patterns[_new_pattern(draft, text, own_type or pattern_type(text), NEW_CONFIDENCE)]
    pattern |= {"occurrences": 1, "confidence": NEW_CONFIDENCE}
    pattern["associative_links"].append(draft.link(item_id, kind, "extracted_from"))
    for field, value in (
        ("related_castes", metadata.get("caste")),
        ("related_phases", metadata.get("phase")),
    ):
        pattern["metadata"][field] += [] if value is None else [value]
    return draft.change(Promotion([pattern["id"]], [], _link_contradictions(draft)))


def promote(memory: JsonObject, *, now: datetime, new_id: NewId) -> Change:
    """Return the change that promotes weighty and repeated statements; its result is a `Promotion`."""
    draft, among = _Draft(memory, now, new_id), _pattern_index(memory)
    gains: dict[int, list[Statement]] = defaultdict(list)
    unmatched: list[Statement] = []
    for statement in _statements(memory):
        position = _matching_pattern(statement, draft.patterns, among)
        if position is None:
            unmatched.append(statement)
        elif _may_support(statement, draft.patterns[position]["type"]):
            gains[position].append(statement)
    for position, statements in sorted(gains.items()):
        _add_evidence(draft, position, statements)
    for group in _groups(memory, unmatched):
        position = _new_pattern(draft, group[0].text, _lasting_type(group[0]) or "preference", NEW_CONFIDENCE)
        _add_evidence(draft, position, sorted(group, key=lambda statement: statement.order))
    contradictions = _link_contradictions(draft)
    return draft.change(
        Promotion([pattern["id"] for pattern in draft.created()], draft.supported, contradictions)
    )


def repeated_statements(memory: JsonObject) -> list[Repeated]:
    """Return the statements of at least `repeated_success` distinct sessions, promoted or not, most repeated first."""
    repeated: list[Repeated] = []
    for group in _groups(memory, list(_statements(memory))):
        ordered = sorted(group, key=lambda statement: statement.order)
        session_ids = list(dict.fromkeys(statement.session_id for statement in ordered))
        if len(session_ids) >= memory["pattern_extraction"]["repeated_success"]:
            wordings = list(dict.fromkeys(statement.text for statement in ordered))
            repeated.append(Repeated(group[0].text, session_ids, wordings))
    return sorted(repeated, key=lambda entry: -len(entry.sessions))


def _worded(content: str) -> str:
    """Return a text without what was injected, if it has a word."""
    text = without_injected(content).strip()
    if not any(words(text)):
        raise InvalidInput(f"{shown(content)} says nothing to remember.", fix="Pass one statement in words.")
    return text


def _castes_of(session: Mapping[str, Any], entry: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the caste of `entry` of `session`, else the castes of the whole session."""
    caste = (entry or {}).get("caste")
    listed = (session.get("metadata") or {}).get("castes") or []
    return (caste,) if isinstance(caste, str) else tuple(caste for caste in listed if isinstance(caste, str))


def _pattern_index(memory: JsonObject) -> Index:
    return index(pattern["pattern"] for pattern in memory["long_term_memory"]["patterns"])


def _matching_pattern(statement: Statement, patterns: list[Pattern], among: Index) -> int | None:
    """Return the position of the pattern that `statement` is evidence for, or None.

    A pattern that counts the session already comes first: otherwise promoting the same session again could
    assign its statements to another pattern.
    """
    near = implied_by(statement.text, among)
    supported = (position for position in near if statement.session_id in _session_ids(patterns[position]))
    return next(supported, near[0] if near else None)


def _session_ids(pattern: Mapping[str, Any]) -> set[str]:
    """Return the ids of the sessions that `pattern` counts; a pattern of the original format names them in its links."""
    evidence = (pattern.get("metadata") or {}).get("evidence")
    if evidence is not None:
        return {entry["session_id"] for entry in evidence}
    links = pattern.get("associative_links") or []
    return {link["target_id"] for link in links if link["target_type"] == "short_term_session"}


def _new_pattern(draft: _Draft, text: str, type: PatternType, confidence: float) -> int:
    """Add a pattern without evidence to the draft, and return its position."""
    stamp = clock.stamp(draft.now)
    metadata = {"context": "", "related_castes": [], "related_phases": [], "evidence": []}
    draft.patterns.append({
        "id": draft.make_id("pattern"), "type": type, "pattern": text, "confidence": confidence, "occurrences": 0,
        "created_at": stamp, "last_seen": stamp, "associative_links": [], "metadata": metadata,
    })  # fmt: skip
    return len(draft.patterns) - 1


def _add_evidence(draft: _Draft, position: int, statements: Iterable[Statement]) -> None:
    """Count the first statement of each session that the pattern at this position does not count yet."""
    session_ids = _session_ids(draft.patterns[position])
    first: dict[str, Statement] = {}
    for statement in statements:
        if statement.session_id not in session_ids:
            first.setdefault(statement.session_id, statement)
    if not first:
        return
    pattern = _copied(draft.patterns, position)
    metadata, is_new = pattern["metadata"], not pattern["occurrences"]
    if "evidence" not in metadata:
        original = (
            {"session_id": name, "phase": None, "text": pattern["pattern"]} for name in sorted(session_ids)
        )
        metadata["evidence"] = list(original)
    latest = max(last_heard(statement.session) for statement in first.values())
    pattern["last_seen"] = latest if is_new else max(pattern["last_seen"], latest)
    pattern["occurrences"] += len(first)
    raised = pattern["confidence"] + CONFIDENCE_PER_SESSION * (len(first) - is_new)
    if pattern["occurrences"] >= REPEATED_SESSIONS:
        raised = max(raised, REPEATED_BASE + CONFIDENCE_PER_SESSION * pattern["occurrences"])
    # Rounded, so that 0.1 adds up.
    pattern["confidence"] = round(min(1.0, raised), 4)
    for statement in first.values():
        session = statement.session
        metadata["evidence"].append(
            {"session_id": statement.session_id, "phase": session.get("phase"), "text": statement.text}
        )
        _listed(pattern, "associative_links").append(
            draft.link(session["id"], "short_term_session", "extracted_from")
        )
        _relate_pattern(draft, session["id"], pattern["id"])
    phases = {phase for statement in first.values() if (phase := statement.session.get("phase")) is not None}
    castes = {caste for statement in first.values() for caste in statement.castes}
    for field, values in (("related_phases", phases), ("related_castes", castes)):
        listed = _listed(metadata, field)
        listed += sorted(values.difference(listed))
    if not is_new:
        draft.supported.append(pattern["id"])


def _listed(owner: JsonObject, field: str) -> list[Any]:
    """Return the list in `field` of `owner`; an empty list is added where it is missing."""
    if not isinstance(owner.get(field), list):
        owner[field] = []
    return cast("list[Any]", owner[field])


def _relate_pattern(draft: _Draft, session_id: str, pattern_id: str) -> None:
    position = next(place for place, session in enumerate(draft.sessions) if session["id"] == session_id)
    session = _copied(draft.sessions, position)
    if not isinstance(session.get("metadata"), dict):
        session["metadata"] = {}
    related = _listed(session["metadata"], "related_patterns")
    if pattern_id not in related:
        related.append(pattern_id)


def _link_contradictions(draft: _Draft) -> list[Contradiction]:
    """Link each new pattern and those that it contradicts both ways, without a change of confidence."""
    new = draft.created()
    among = index(pattern["pattern"] for pattern in draft.patterns if new)
    contradictions: list[Contradiction] = []
    for position in range(len(draft.patterns) - len(new), len(draft.patterns)):
        pattern = draft.patterns[position]
        for place in opposites(pattern["pattern"], among):
            if place < position:
                other = _copied(draft.patterns, place)
                _listed(other, "associative_links").append(
                    draft.link(pattern["id"], "long_term_pattern", "contradicts")
                )
                pattern["associative_links"].append(
                    draft.link(other["id"], "long_term_pattern", "contradicts")
                )
                contradictions.append(
                    Contradiction(pattern["id"], other["id"], pattern["pattern"], other["pattern"])
                )
    return contradictions


def _statements(memory: JsonObject) -> Iterator[Statement]:
    """Yield the statements of the sessions, oldest session first, without injected text."""
    high = memory["pattern_extraction"]["high_relevance"]
    order = count()
    for session in sorted(memory["short_term_memory"]["sessions"], key=last_heard):
        for entry, text, relevance, entry_type in _texts_of(session):
            # A result makes a pattern only by its relevance.
            kind = "" if entry_type == "outcome" and relevance > high else entry_type
            text_without_injected = without_injected(text).strip()
            if (
                kind not in WORK_TYPES
                and meaning(text_without_injected).signs
                and not ended_in(session, text_without_injected)
            ):
                yield Statement(
                    text_without_injected, session, _castes_of(session, entry), relevance, kind, next(order)
                )


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


def _lasting_type(statement: Statement) -> PatternType | None:
    """Return the type of the pattern that a statement makes, None if it makes none: a result is only evidence."""
    if statement.type == "outcome":
        return None
    return _TYPE_OF.get(statement.type) or pattern_type(statement.text)


def _may_support(statement: Statement, type: str) -> bool:
    """Return whether a statement may be evidence for a pattern of this type: a failure proves no rule and no success."""
    own_type = _TYPE_OF.get(statement.type)
    return own_type is None or (own_type == "failure_pattern") == (type == "failure_pattern")


def _groups(memory: JsonObject, statements: list[Statement]) -> Iterator[list[Statement]]:
    """Yield each group of statements with one meaning that is promoted, the best wording first.

    A group has the statements similar to its first one, not those similar to another member, so that meaning
    cannot drift along a chain. Only a promoted group takes its members from other groups.
    """
    high, least = (memory["pattern_extraction"][name] for name in ("high_relevance", "repeated_success"))
    by_words: dict[str, list[Statement]] = defaultdict(list)
    for statement in statements:
        by_words[meaning(statement.text).plain].append(statement)
    units = list(by_words.values())
    among = index(unit[-1].text for unit in units)
    near = [supporting(unit[-1].text, among) for unit in units]
    agreeing = [
        len({statement.session_id for place in places for statement in units[place]}) for places in near
    ]
    weighty = [any(statement.relevance > high for statement in unit) for unit in units]
    ranks = [(-number, not weighty[place], -units[place][-1].order) for place, number in enumerate(agreeing)]
    grouped: set[int] = set()
    for position in sorted(range(len(units)), key=ranks.__getitem__):
        first = next(filter(_lasting_type, reversed(units[position])), None)
        if position in grouped or first is None:
            continue
        members = [place for place in near[position] if place not in grouped]
        kind = _lasting_type(first) or ""
        other_statements = (
            statement for place in members for statement in units[place] if _may_support(statement, kind)
        )
        group = [first, *(statement for statement in other_statements if statement is not first)]
        if weighty[position] or len({statement.session_id for statement in group}) >= least:
            grouped.update(members)
            yield group


def create_link(
    memory: JsonObject, source_id: str, target_id: str, link_type: str, *, now: datetime, new_id: NewId
) -> Change:
    """Return the change that links `source_id` to `target_id`; its result is the id of the link.

    Raises:
        InvalidInput: the type is not one of ``LINK_TYPES``, or both ends are the same.
        NotFound: an end is in no layer.
    """
    require_one_of(link_type, LINK_TYPES, "a link type")
    if source_id == target_id:
        raise InvalidInput(f"{shown(source_id)} cannot be linked to itself.", fix="Name two different ids.")
    draft = _Draft(memory, now, new_id)
    source, source_type = _find_entry(draft, source_id)
    target, target_type = _find_entry(draft, target_id)
    link_id = _add_link(draft, source, source_type, target=(target_id, target_type), link_type=link_type)
    kinds = {source_type, target_type}
    both_ways = kinds == {"short_term_session", "long_term_pattern"}
    if both_ways or ("working_memory_item" not in kinds and link_type in MUTUAL):
        back_id = _add_link(draft, target, target_type, target=(source_id, source_type), link_type=link_type)
        # A session lists the ids of its patterns; the pattern holds the link itself.
        link_id = back_id if both_ways and source_type == "short_term_session" else link_id
    return draft.change(link_id)


def _find_entry(draft: _Draft, id: str) -> tuple[Any, str]:
    """Return the item, session or pattern with this id, copied into the draft, and its type as the end of a link."""
    for entries, kind in (
        (draft.items, "working_memory_item"), (draft.sessions, "short_term_session"), (draft.patterns, "long_term_pattern"),
    ):  # fmt: skip
        for place, entry in enumerate(entries):
            if entry["id"] == id:
                return _copied(entries, place), kind
    raise NotFound(
        f"no item, session or pattern has the id {shown(id)}.",
        fix='Find ids with "aether memory search" or "aether show memory".',
    )


def _add_link(draft: _Draft, holder: Any, kind: str, *, target: tuple[str, str], link_type: str) -> str:
    """Add a link to `target`, an id and its type, to `holder` of this `kind`, unless it has it; return the id of the link."""
    target_id, target_type = target
    if kind == "short_term_session":
        if target_type == "long_term_pattern":
            _relate_pattern(draft, holder["id"], target_id)
            return ""
        if not isinstance(holder.get("metadata"), dict):
            holder["metadata"] = {}
        holder = holder["metadata"]
    links = _listed(holder, "associative_links")
    same = (link for link in links if (link["target_id"], link["link_type"]) == (target_id, link_type))
    link = next(same, None)
    if link is None:
        link = draft.link(target_id, target_type, link_type)
        links.append(link)
    return str(link["link_id"])
