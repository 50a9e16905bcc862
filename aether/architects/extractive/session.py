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


_Place = tuple[int, int]
"""The place of a part, and that of a unit in it."""
_Entry = tuple[Mapping[str, Any], str]
"""An item, and the words of it that the session holds."""


def write_session(handoff: Mapping[str, Any], *, most: int, count: Counter) -> JsonObject:
    """Return the session of `handoff` in at most `most` tokens, and never in more than its items and protected texts have."""
    parts = _parts(handoff)
    if sum(count(part.text) for part in parts) <= most:
        return _session(handoff, parts, [(part.item, part.text) for part in parts], [])
    places = [(index, place) for index, part in enumerate(parts) for place in range(len(part.units))]
    lead = _chosen(parts, _lead(parts), most=int(SUMMARY_SHARE * most), count=count)
    spoken = [place for place in places if parts[place[0]].item["metadata"].get("evidence") == "person"]
    first = lead | _chosen(parts, spoken, most=int(PERSON_SHARE * most), count=count)
    room = max(0, most - sum(count(part.text) for part in parts if not part.units))
    while True:
        chosen = _chosen(parts, places, most=room, count=count, first=first)
        summary = [parts[index].units[place].text for index, place in sorted(chosen & lead)]
        session = _session(handoff, parts, _entries(parts, chosen - lead), summary)
        # The names of speakers cost something, too.
        excess = session_tokens(session, count) - most
        if excess <= 0 or not room:
            return session
        room = max(0, room - max(excess, most // STEPS))


def _parts(handoff: Mapping[str, Any]) -> list[_Part]:
    """Return the items that are in force, without injected text, each text once; protected texts without an item, too."""
    protected = {entry.get("id", ""): entry["content"] for entry in handoff["protected"]}
    ids = {item["id"] for item in handoff["items"]}
    added = [
        {"id": name, "type": "constraint", "content": text, "metadata": {"relevance_score": 1.0}}
        for name, text in protected.items()
        if name not in ids
    ]
    items = [*handoff["items"], *added]
    newest = {_state(item): index for index, item in enumerate(items)}
    heads = Tally(item["content"].partition(": ")[0] for item in items if ": " in item["content"])
    signals = [signal for signal in handoff.get("signals", ()) if signal["metadata"].get("context")]
    parts: dict[str, _Part] = {}
    before = _Part({}, "", "", [])
    for index, item in enumerate(items):
        metadata = item["metadata"]
        guarded = item["id"] in protected
        stale = metadata.get("ended_at") or metadata.get("injected") or newest[_state(item)] != index
        # The neighbours of an injected text stay apart.
        text = without_injected(item["content"].replace(f"<{INJECTED}", f"\n\n<{INJECTED}")).strip()
        text = item["content"] if guarded else text
        if (stale and not guarded) or not text.strip() or (text in parts and not guarded):
            continue
        parts.pop(text, None)  # a protected item takes the place of another one with its words
        head, _, words = text.partition(": ")
        speaker = head if heads[head] > 1 and _names(head) and words.strip() else ""
        is_whole = guarded or (item["type"] in BINDING_TYPES and len(text) <= WHOLE_CHARS)
        weight = RELEVANCE_AT_ZERO + float(metadata.get("relevance_score", 0.5))
        weight *= WEIGHTS.get(metadata.get("evidence", ""), 1.0)
        if before.speaker != speaker and any(asks(unit.text) for unit in before.units):
            weight *= ANSWER_WEIGHT
        units = [] if is_whole else _units(item, words.strip() if speaker else text)
        steered = [
            unit._replace(weight=unit.weight * weight * _steering(unit.text, signals)) for unit in units
        ]
        before = parts[text] = _Part(item, text, speaker, steered)
    return list(parts.values())


def _state(item: Mapping[str, Any]) -> str:
    """Return which state of the work an item shows; an item that shows none has a name of its own."""
    role = item["metadata"].get("role", "")
    return role if item["type"] == "observation" and role in STATES else f"item {item['id']}"


def _names(head: str) -> bool:
    return len(head) <= SPEAKER_CHARS and "\n" not in head


def _units(item: Mapping[str, Any], text: str) -> list[Unit]:
    """Return the units of an item; of a changed file the first line, which names it, is required."""
    changed = item["type"] == "code_change"
    if item["metadata"].get("evidence") != "machine" and not changed:
        return units_of(text)
    lines = [line for line in text.splitlines() if any(map(str.isalnum, line))] or [text]
    if len(text) <= SHOWN_CHARS and not changed:
        return [Unit(text)]
    return [Unit(line, required=changed and place == 0) for place, line in enumerate(lines)]


def _steering(text: str, signals: Sequence[Mapping[str, Any]]) -> float:
    """Return how much the active signals raise a unit: by the share of their words that it has."""
    raised = 1.0
    unit_words = set(stems(text)) if signals else set()
    for signal in signals:
        signal_words = set(stems(str(signal["metadata"]["context"])))
        strength = float(signal.get("effective_strength", signal["strength"]))
        raised += STEERED * strength * len(unit_words & signal_words) / max(1, len(signal_words))
    return raised


def _lead(parts: Sequence[_Part]) -> list[_Place]:
    """Return the places of the units that a summary is made of: the newest request, and the ends of the last message."""
    requests = [
        index for index, part in enumerate(parts) if part.item["type"] in REQUEST_TYPES and part.units
    ]
    results = [index for index, part in enumerate(parts) if _is_account(part.item) and part.units]
    places = [(index, place) for index in requests[-1:] for place in range(len(parts[index].units))]
    for index in results[-1:]:
        paragraphs = [paragraph for paragraph in parts[index].text.split("\n\n") if paragraph.strip()]
        end_texts = {
            unit.text for paragraph in (paragraphs[0], paragraphs[-1]) for unit in units_of(paragraph)
        }
        places += [(index, place) for place, unit in enumerate(parts[index].units) if unit.text in end_texts]
    return places


def _chosen(
    parts: Sequence[_Part], places: Sequence[_Place], *, most: int, count: Counter, first: Collection[_Place] = ()
) -> set[_Place]:  # fmt: skip
    """Return the places of the units chosen among those at `places`, those at `first` before the others."""
    units = [parts[index].units[place] for index, place in places]
    units = [
        unit._replace(required=unit.required or where in first)
        for unit, where in zip(units, places, strict=True)
    ]
    return {places[index] for index in choose(units, most=most, count=count)}


def _entries(parts: Sequence[_Part], chosen: Collection[_Place]) -> list[_Entry]:
    """Return what the session holds of each item; turns of a talk share entries, each change of the speaker named."""
    entries: list[_Entry] = []
    before = ""
    for index, part in enumerate(parts):
        words = "\n".join(unit.text for place, unit in enumerate(part.units) if (index, place) in chosen)
        words_with_speaker = f"{part.speaker}: {words}" if part.speaker else words
        if part.units and not words:
            continue
        if (
            part.speaker
            and before
            and entries[-1][0]["type"] == part.item["type"]
            and len(entries[-1][1]) < SHARED_CHARS
        ):
            entries[-1] = (
                part.item,
                f"{entries[-1][1]}\n{words if before == part.speaker else words_with_speaker}",
            )
        else:
            entries.append((part.item, words_with_speaker if part.units else part.text))
        before = part.speaker if part.units else ""
    return entries


def _session(
    handoff: Mapping[str, Any], parts: Sequence[_Part], entries: Sequence[_Entry], summary: Sequence[str]
) -> JsonObject:
    """Return the session of `entries`; without a `summary`, the entry that says most about the work becomes it."""
    protected = {entry.get("id") for entry in handoff["protected"]}
    fields: dict[str, list[_Entry]] = {"decision": [], "result": [], "content": []}
    for entry in entries:
        fields[_field(entry[0], protected)].append(entry)
    if not summary and not handoff.get("summarised"):
        free = [entry for entry in entries if not _binds(entry[0], protected)]
        requests = [entry for entry in free if entry[0]["type"] in REQUEST_TYPES]
        results = [entry for entry in free if _is_account(entry[0])]
        longest = sorted(free, key=lambda entry: len(entry[1]))
        for best in [*requests[-1:], *results[-1:], *longest[-1:]][:1]:
            of_field = fields[_field(best[0], protected)]
            of_field[:] = [entry for entry in of_field if entry is not best]
            summary = [best[1]]
    # If nothing is left for it, the summary repeats a whole text.
    texts = [text for _, text in entries] or [part.text for part in parts]
    fields["content"].sort(key=lambda entry: not _binds(entry[0], protected))
    name = handoff["compression_id"]
    return {
        "id": name, "session_id": name, "compressed_at": handoff["prepared_at"], "phase": handoff["phase"],
        "summary": "\n".join(summary) or min(texts, key=len, default=NOTHING),
        "key_decisions": [{"decision": text, "rationale": ""} for _, text in fields["decision"]],
        "outcomes": [{"result": text, "impact": ""} for _, text in fields["result"]],
        "high_value_items": [
            {"content": text, "relevance_score": item["metadata"].get("relevance_score", 0.5), "type": item["type"]}
            | ({"injected": True} if item["metadata"].get("injected") else {})
            for item, text in fields["content"]
        ],
    }  # fmt: skip


def _field(item: Mapping[str, Any], protected: Collection[str]) -> str:
    if item["type"] in ("decision", *OUTCOME_TYPES) and item["id"] not in protected:
        return "decision" if item["type"] == "decision" else "result"
    return "content"


def _binds(item: Mapping[str, Any], protected: Collection[str]) -> bool:
    return item["type"] in BINDING_TYPES or item["id"] in protected


def _is_account(item: Mapping[str, Any]) -> bool:
    return item["type"] in RESULT_TYPES and item["metadata"].get("evidence") != "machine"
