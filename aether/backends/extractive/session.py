"""Session: the items of a hand-off as session JSON, each line word for word.

The summary is the newest request and the ends of the agent's last message. Decisions are items of that type, outcomes are
results and runs, and everything else is a high-value item of its own type. Rules, decisions and protected items are whole;
of the others the session holds the units that carry most. If there is room for everything, everything is kept as it is.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from aether.redact.redact import INJECTED
from aether.text.cleaning import without_injected
from aether.text.selection import Unit, asks, choose, units_of
from aether.text.words import stems
from aether.tokens.counters import session_tokens
from aether.types import Counter, JsonObject

BINDING_TYPES = frozenset({"constraint", "decision", "preference", "blocker"})
REQUEST_TYPES = frozenset({"user_input", "user_request", "request"})
RESULT_TYPES = frozenset({"outcome", "task_result"})
OUTCOME_TYPES = RESULT_TYPES | {"solution", "command"}
# Of these roles only the newest item shows how things are.
STATES = frozenset({"plan", "tree"})
# A longer item of a binding type is a document, of which units are chosen.
WHOLE_CHARS = 600
# A longer text of a machine is output, of which lines are chosen.
SHOWN_CHARS = 300
# A speaker is named before a colon, at the head of more than one item.
SPEAKER_CHARS = 40
# An entry for several turns of a talk is about a paragraph long.
SHARED_CHARS = 800
# The share of the room that the summary may take.
SUMMARY_SHARE = 0.2
# The share of the room that a person's words may take before all others.
PERSON_SHARE = 0.4
# Weight of a unit by who vouches for it.
WEIGHTS = {"person": 2.0, "machine": 1.2}
# What somebody says after the question of somebody else.
ANSWER_WEIGHT = 1.4
# Weight of an item of relevance 0; one of relevance 1 weighs this and one more.
RELEVANCE_AT_ZERO = 0.5
# A signal of full strength makes a unit with all of its words weigh this much more.
STEERED = 2.0
# In at most so many steps the words around the units are made room for.
STEPS = 50
NOTHING = "Nothing was said that is worth keeping."


class _Part(NamedTuple):
    """One item as far as a session may hold it."""

    item: Mapping[str, Any]
    text: str
    speaker: str
    units: list[Unit]
    """Empty for an item that is kept whole."""


Chosen = Collection[tuple[int, int]]
"""Places of parts, each with the place of one of its units."""


def write_session(handoff: Mapping[str, Any], *, most: int, count: Counter) -> JsonObject:
    """Return the session of `handoff` in at most `most` tokens, and never in more than its items and protected texts have."""
    parts = _parts(handoff)
    everything = {(at, place) for at, part in enumerate(parts) for place in range(len(part.units))}
    if sum(count(part.text) for part in parts) <= most:
        return _session(handoff, parts, everything, whole=True)
    places = sorted(everything)
    lead = _chosen_of(parts, _lead_places(parts), most=int(SUMMARY_SHARE * most), count=count)
    said = [(at, place) for at, place in places if parts[at].item["metadata"].get("evidence") == "person"]
    first = lead | _chosen_of(parts, said, most=int(PERSON_SHARE * most), count=count)
    units = [parts[at].units[place] for at, place in places]
    units = [
        unit._replace(required=unit.required or where in first)
        for unit, where in zip(units, places, strict=True)
    ]
    room = max(0, most - sum(count(part.text) for part in parts if not part.units))
    while True:
        chosen = {places[at] for at in choose(units, most=room, count=count)}
        session = _session(handoff, parts, chosen, lead=lead)
        # The names of speakers cost something, too.
        over = session_tokens(session, count) - most
        if over <= 0 or not room:
            return session
        room = max(0, room - max(over, most // STEPS))


def _parts(handoff: Mapping[str, Any]) -> list[_Part]:
    """Return the items that are in force, without injected text, each text once; protected texts without an item, too."""
    items = list(handoff["items"])
    protected = {entry.get("id", ""): entry["content"] for entry in handoff["protected"]}
    for name in protected.keys() - {item["id"] for item in items}:
        metadata = {"relevance_score": 1.0, "protected": True}
        items.append({"id": name, "type": "constraint", "content": protected[name], "metadata": metadata})
    newest = {_state(item): at for at, item in enumerate(items)}
    names = _speakers(items)
    signals = [signal for signal in handoff.get("signals", ()) if signal["metadata"].get("context")]
    parts: list[_Part] = []
    known = set[str]()
    for at, item in enumerate(items):
        metadata = item["metadata"]
        guarded = item["id"] in protected or metadata.get("protected")
        stale = metadata.get("ended_at") or metadata.get("injected") or newest[_state(item)] != at
        text = item["content"] if guarded else _own_text(item["content"])
        if (stale and not guarded) or not text.strip() or text in known:
            continue
        known.add(text)
        head, _, said = text.partition(": ")
        speaker = head if head in names and said.strip() else ""
        whole = guarded or (item["type"] in BINDING_TYPES and len(text) <= WHOLE_CHARS)
        before = parts[-1] if parts else None
        answers = before and before.speaker != speaker and any(asks(unit.text) for unit in before.units)
        units = [] if whole else _units(item, said.strip() if speaker else text)
        factor = (ANSWER_WEIGHT if answers else 1.0) * (
            RELEVANCE_AT_ZERO + float(metadata.get("relevance_score", 0.5))
        )
        factor *= WEIGHTS.get(metadata.get("evidence", ""), 1.0)
        steered = [
            unit._replace(weight=unit.weight * factor * _steering(unit.text, signals)) for unit in units
        ]
        parts.append(_Part(item, text, speaker, steered))
    return parts


def _own_text(content: str) -> str:
    """Return `content` without what aether injected; its neighbours stay apart."""
    return without_injected(content.replace(f"<{INJECTED}", f"\n\n<{INJECTED}")).strip()


def _state(item: Mapping[str, Any]) -> str:
    """Return which state of the work an item shows; an item that shows none has a name of its own."""
    role = item["metadata"].get("role", "")
    return role if item["type"] == "observation" and role in STATES else f"item {item['id']}"


def _speakers(items: Sequence[Mapping[str, Any]]) -> set[str]:
    heads = Tally(item["content"].partition(": ")[0] for item in items if ": " in item["content"])
    return {
        head for head, times in heads.items() if times > 1 and len(head) <= SPEAKER_CHARS and "\n" not in head
    }


def _units(item: Mapping[str, Any], text: str) -> list[Unit]:
    """Return the units of an item; of a changed file the first line, which names it, is required."""
    if item["metadata"].get("evidence") != "machine" and item["type"] != "code_change":
        return units_of(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if item["type"] == "code_change":
        return [Unit(line, required=place == 0) for place, line in enumerate(lines)]
    return [Unit(text)] if len(text) <= SHOWN_CHARS else [Unit(line) for line in lines]


def _steering(text: str, signals: Sequence[Mapping[str, Any]]) -> float:
    """Return how much the active signals raise a unit: by the share of their words that it has."""
    raised = 1.0
    own = set(stems(text)) if signals else set()
    for signal in signals:
        wanted = set(stems(str(signal["metadata"]["context"])))
        strength = float(signal.get("effective_strength", signal["strength"]))
        raised += STEERED * strength * len(own & wanted) / max(1, len(wanted))
    return raised


def _lead_places(parts: Sequence[_Part]) -> list[tuple[int, int]]:
    """Return the places of the units that a summary is made of: the newest request, and the ends of the last message."""
    requests = [at for at, part in enumerate(parts) if part.item["type"] in REQUEST_TYPES and part.units]
    results = [at for at, part in enumerate(parts) if _is_account(part.item) and part.units]
    places = [(at, place) for at in requests[-1:] for place in range(len(parts[at].units))]
    for at in results[-1:]:
        paragraphs = [paragraph for paragraph in parts[at].text.split("\n\n") if paragraph.strip()]
        ends = {unit.text for paragraph in (paragraphs[0], paragraphs[-1]) for unit in units_of(paragraph)}
        places += [(at, place) for place, unit in enumerate(parts[at].units) if unit.text in ends]
    return places


def _chosen_of(
    parts: Sequence[_Part], places: Sequence[tuple[int, int]], *, most: int, count: Counter
) -> set[tuple[int, int]]:
    return {
        places[at] for at in choose([parts[at].units[place] for at, place in places], most=most, count=count)
    }


def _is_account(item: Mapping[str, Any]) -> bool:
    return item["type"] in RESULT_TYPES and item["metadata"].get("evidence") != "machine"


def _session(
    handoff: Mapping[str, Any],
    parts: Sequence[_Part],
    chosen: Chosen,
    *,
    lead: Chosen = (),
    whole: bool = False,
) -> JsonObject:
    """Return the session of the parts that are whole and of the `chosen` units; the units of `lead` are its summary."""
    summary: list[str] = []
    entries: list[tuple[_Part, str]] = []
    for at, part in enumerate(parts):
        if whole or not part.units:
            entries.append((part, part.text))
            continue
        places = [place for place in range(len(part.units)) if (at, place) in chosen]
        summary += [part.units[place].text for place in places if (at, place) in lead]
        said = "\n".join(part.units[place].text for place in places if (at, place) not in lead)
        before = entries[-1] if entries else None
        if said and part.speaker and before and before[0].speaker and len(before[1]) < SHARED_CHARS:
            # Turns of a talk share entries, each change of the speaker named.
            entries[-1] = (
                part,
                f"{before[1]}\n{'' if before[0].speaker == part.speaker else part.speaker + ': '}{said}",
            )
        elif said:
            entries.append((part, f"{part.speaker}: {said}" if part.speaker else said))
    if not summary and not handoff.get("summarised"):
        entries, summary = _without_summary(entries)
    decisions = [text for part, text in entries if part.item["type"] == "decision"]
    outcomes = [text for part, text in entries if _is_outcome(part)]
    name = handoff["compression_id"]
    return {
        "id": name, "session_id": name, "compressed_at": handoff["prepared_at"], "phase": handoff["phase"],
        "summary": "\n".join(summary) or _shortest([text for _, text in entries] or [part.text for part in parts]),
        "key_decisions": [{"decision": text, "rationale": ""} for text in decisions],
        "outcomes": [{"result": text, "impact": ""} for text in outcomes],
        "high_value_items": [
            _entry(part, text)
            for part, text in sorted(entries, key=lambda entry: bool(entry[0].units))
            if part.item["type"] != "decision" and not _is_outcome(part)
        ],
    }  # fmt: skip


def _without_summary(entries: list[tuple[_Part, str]]) -> tuple[list[tuple[_Part, str]], list[str]]:
    """Return `entries` without one that becomes the summary: the newest request, result or, in a talk, the longest text."""
    free = [entry for entry in entries if entry[0].units]
    requests = [entry for entry in free if entry[0].item["type"] in REQUEST_TYPES]
    results = [entry for entry in free if _is_account(entry[0].item)]
    longest = sorted(free, key=lambda entry: len(entry[1]))
    for entry in [*requests[-1:], *results[-1:], *longest[-1:]][:1]:
        return [other for other in entries if other is not entry], [entry[1]]
    return entries, []


def _shortest(texts: Sequence[str]) -> str:
    """Return the text that a summary repeats if nothing else is left for it."""
    return min(texts, key=len, default=NOTHING)


def _is_outcome(part: _Part) -> bool:
    item = part.item
    return item["type"] in OUTCOME_TYPES and not item["metadata"].get("protected")


def _entry(part: _Part, text: str) -> JsonObject:
    metadata = part.item["metadata"]
    entry = {
        "content": text,
        "relevance_score": metadata.get("relevance_score", 0.5),
        "type": part.item["type"],
    }
    return entry | ({"injected": True} if metadata.get("injected") else {})
