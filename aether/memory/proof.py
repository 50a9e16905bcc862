"""Proof: which statements of an architect's answer the items of its hand-off bear out.

A statement is proven if its quote (or its text, without a quote) is in an item, and its names, numbers and paths be in
the hand-off. Its evidence is that of the words in which the quote is: a person's, a machine's or an agent's. A rule needs a
person's words; other rules become proposals. A text that says the opposite of its quote, or of what a person noted, is no
statement. Injected items prove nothing. `ingest` stores what is proven; which earlier statements end is in `statements`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from aether.memory.statements import STATED_FIELDS, evidence_of
from aether.redact.redact import redact
from aether.text.cleaning import without_injected
from aether.text.identifiers import identifiers
from aether.text.similarity import contradicts, nearest, opposites
from aether.text.words import is_quoted, missing_name, normalized, sentences, stems, strings_in
from aether.types import RULE_TYPES, Evidence, Item, JsonObject

# Where models write the text of a statement, and the earlier one that it ends.
_TEXTS = ("text", "statement", "rule", "content", "description", "decision")
_TARGETS = ("target", "id", "resolves", "ends")
# High-value items of these types count as statements.
RULE_KINDS = RULE_TYPES | {"rule"}
BINDING_TYPES = RULE_KINDS | {"decision", "blocker"}
# "e.g" and "U.S" have the form of names.
LEAST_NAME_CHARS = 4
# A statement is a sentence or two.
MOST_CHARS = 600

NO_QUOTE = "its quote is in no item: copy a few words of one item exactly"
TOO_LONG = f"it has more than {MOST_CHARS} characters: write one sentence"
NO_PERSON = "a rule needs the words of a person, and its quote is not of one"
OPPOSITE = "it says the opposite of its quote"
AGAINST_NOTE = "it contradicts what a person noted on purpose"
MOST_REASONS = 8
HOW_TO_QUOTE = (
    'Give each statement "items", the numbers of the items that it rests on, and "quote", a few words of one of them exactly '
    "as they stand there; leave out what nothing proves. Answer again with the whole JSON object and nothing else."
)


class End(NamedTuple):
    """An earlier statement that a proven one ends."""

    kind: Literal["resolve", "supersede"]
    references: tuple[str, ...]
    """Ids, numbers or words of the earlier one, the surest first."""
    by: str
    """The place of the new statement in its session, such as `resolved/0`."""
    text: str
    quote: str
    items: list[str]
    evidence: Evidence


class Proven(NamedTuple):
    """The fields of an answer with proven statements only, and what became of the others."""

    fields: JsonObject
    dropped: list[JsonObject]
    """Each with `field`, `text` and `why`."""
    proposals: list[JsonObject]
    """What only a person can confirm, each with `kind`, `text`, `quote`, `items` and `target`."""
    ends: list[End] = []  # noqa: RUF012 - a NamedTuple default, never mutated


class _Words(NamedTuple):
    """Words of an item, and who vouches for them."""

    item: str
    text: str
    """Normalized."""
    evidence: Evidence


class _Sources(NamedTuple):
    words: list[_Words]
    names: str
    """All texts of the hand-off, normalized: names and numbers have to be in it."""
    numbered: list[str]
    """The ids of the items, in their order in the hand-off."""
    notes: Sequence[Mapping[str, Any]]


def read_statements(value: Any) -> list[JsonObject]:
    """Return the statements in `value`, a list or a single one, each with `text`, `quote`, `items` and perhaps `target`.

    >>> read_statements("Ship it.")
    [{'text': 'Ship it.', 'quote': '', 'items': []}]
    >>> read_statements([{"rule": "No tabs.", "quote": "no tabs", "items": 3}, {"quote": ""}])
    [{'text': 'No tabs.', 'quote': 'no tabs', 'items': ['3']}]
    """
    entries = value if isinstance(value, list) else [] if value is None else [value]
    statements = [_statement(entry) for entry in entries]
    return [statement for statement in statements if statement["text"]]


def _statement(entry: Any) -> JsonObject:
    fields = entry if isinstance(entry, Mapping) else {"text": entry}
    quote, items = _text(fields.get("quote")), fields.get("items")
    text = next((_text(fields.get(name)) for name in _TEXTS if _text(fields.get(name))), quote)
    target = next((str(fields[name]) for name in _TARGETS if fields.get(name)), "")
    refs = items if isinstance(items, list) else [] if items is None else [items]
    statement = {
        "text": text,
        "quote": quote,
        "items": [str(ref) for ref in refs if isinstance(ref, str | int)],
    }
    return {**statement, "target": target} if target else statement


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def prove(
    answer_fields: Mapping[str, Any],
    items: Sequence[Item],
    explicit_notes: Sequence[Mapping[str, Any]] = (),
    *,
    context: Sequence[str] = (),
) -> Proven:
    """Return the statements of a checked answer that `items`, those of the hand-off in its order, prove.

    `explicit_notes` are what a person noted on purpose, each with `id` and `content`; `context` are further texts that the
    architect was shown.
    """
    sources = _sources(items, explicit_notes, context)
    fields, proven = {**answer_fields}, Proven({}, [], [], [])
    for field in STATED_FIELDS:
        fields[field] = []
        for entry in read_statements(answer_fields.get(field)):
            checked = _checked(field, entry, sources, proven)
            if checked:
                fields[field].append(checked)
                if field == "resolved":
                    target = entry.get("target", "")
                    refs = [ref for ref in entry["items"] if "/" in ref]  # the ids of statements
                    references = (item_id(target, sources.numbered) or target, *refs, entry["text"])
                    proven.ends.append(
                        _end("resolve", references, f"resolved/{len(fields[field]) - 1}", checked)
                    )
    fields["key_decisions"] = list(_decisions(answer_fields.get("key_decisions") or [], sources, proven))
    fields["high_value_items"] = [
        entry
        for entry in answer_fields.get("high_value_items") or []
        if entry["type"] not in BINDING_TYPES
        or _checked(
            "rules" if entry["type"] in RULE_KINDS else "high_value_items", _statement(entry), sources, proven
        )
    ]
    return proven._replace(fields=fields)


def _sources(items: Sequence[Item], notes: Sequence[Mapping[str, Any]], context: Sequence[str]) -> _Sources:
    words = [
        _Words(item["id"], normalized(text), evidence)
        for item in items
        if not item["metadata"].get("injected")
        for text, evidence in _words_of(item)
    ]
    # Rendered facts may be shortened: their fields hold all names.
    texts = [
        text
        for item in items
        for times in [str(item["metadata"].get("timestamp", ""))]
        for text in (
            item["content"],
            f"{times[:10]} {times[11:16]}",
            *strings_in(item["metadata"].get("fact")),
        )
    ]
    return _Sources(words, normalized("\n".join([*texts, *context])), [item["id"] for item in items], notes)


def _words_of(item: Item) -> Iterator[tuple[str, Evidence]]:
    """Yield the words of `item`: of an answer to a question only the choice is the person's."""
    content, evidence = without_injected(item["content"]), evidence_of(item)
    corrected = item["metadata"].get("corrected_at")
    choice = "" if corrected else item["metadata"].get("fact", {}).get("choice", "")
    if choice and evidence == "person":
        yield choice, "person"
        evidence = "agent"
    yield content, evidence
    # A model that is not on this machine saw it without secrets.
    if (redacted := redact(content)) != content:
        yield redacted, evidence


def _decisions(entries: Sequence[JsonObject], sources: _Sources, proven: Proven) -> Iterator[JsonObject]:
    stored = 0
    for entry in entries:
        checked = _checked("key_decisions", _statement(entry), sources, proven)
        if not checked:
            continue
        text, rationale = checked.pop("text"), redact(entry.get("rationale", ""))
        supersedes = redact(_text(entry.get("supersedes")))
        supersedes = item_id(supersedes, sources.numbered) or supersedes
        if missing_name(_names(rationale), sources.names):
            rationale = ""
        if supersedes:
            proven.ends.append(
                _end("supersede", (supersedes,), f"key_decisions/{stored}", {**checked, "text": text})
            )
        yield {
            "decision": text,
            "rationale": rationale,
            **checked,
            **({"supersedes": supersedes} if supersedes else {}),
        }
        stored += 1


def _end(
    kind: Literal["resolve", "supersede"], references: Sequence[str], author: str, preserved: JsonObject
) -> End:
    given_references = tuple(reference for reference in references if reference)
    return End(
        kind, given_references, author, preserved["text"], preserved["quote"], preserved["items"],
        preserved["evidence"],
    )  # fmt: skip


def _checked(field: str, entry: JsonObject, sources: _Sources, proven: Proven) -> JsonObject | None:
    """Return `entry` as a statement with its proof; None, with the reason added to `proven`, if it has none."""
    text, quote = redact(entry["text"]), redact(entry["quote"] or entry["text"])
    source = _source(entry, quote, sources, of_person=field == "rules")
    why = _fault(field, text, quote, sources) if source else NO_QUOTE
    against = opposites(text, [note["content"] for note in sources.notes])
    if source and not why and against:
        why = AGAINST_NOTE
    elif (
        source
        and not why
        and field == "rules"
        and (source.evidence != "person" or _is_of_others(text, quote, sources))
    ):
        why = NO_PERSON
    if source and not why:
        text = _in_words_of(quote, text) if field == "rules" else text
        return {"text": text, "items": [source.item], "quote": quote, "evidence": source.evidence}
    proven.dropped.append({"field": field, "text": text, "why": why})
    proposed = {"text": text, "quote": quote, "items": [source.item] if source else []}
    if why == NO_PERSON:
        proven.proposals.append({"kind": "rule", **proposed, "target": ""})
    elif why == AGAINST_NOTE and source and source.evidence == "person":
        target = sources.notes[against[0]]["id"]
        proven.proposals.append({"kind": "supersede", **proposed, "target": target})
    return None


def _fault(field: str, text: str, quote: str, sources: _Sources) -> str:
    """Return why `text` says what its quote and the hand-off do not; "" if nothing is wrong with it."""
    if len(text) > MOST_CHARS:
        return TOO_LONG
    if name := missing_name(_names(text), sources.names):
        return f"{name} is in no item"
    # What is resolved may be named by the words of the problem, the opposite of its end.
    return OPPOSITE if field != "resolved" and contradicts(text, quote) else ""


def _source(entry: JsonObject, quote: str, sources: _Sources, *, of_person: bool) -> _Words | None:
    """Return the words that contain `quote`: of the items that the entry names before others, for a rule a person's first."""
    refs = {item for ref in entry["items"] if (item := item_id(ref, sources.numbered))}
    holding = [words for words in sources.words if is_quoted(quote, words.text)]
    return min(
        holding,
        key=lambda words: (of_person and words.evidence != "person", words.item not in refs),
        default=None,
    )


def item_id(reference: str, numbered: Sequence[str]) -> str:
    """Return the id that `reference` names: an id in `numbered`, or a number of the rendering; "" for neither.

    >>> item_id("#2", ["a", "b"]), item_id("[1]", ["a"]), item_id("b", ["a", "b"]), item_id("7", ["a"])
    ('b', 'a', 'b', '')
    """
    if reference in numbered:
        return reference
    number = reference.strip().lstrip("#[").rstrip("]")
    if number.isdecimal() and 0 < int(number) <= len(numbered):
        return numbered[int(number) - 1]
    return ""


def _names(text: str) -> Iterator[str]:
    """Yield the paths, identifiers, addresses and numbers in `text`, without signs around them."""
    names = identifiers(text)
    for name in (*names.paths, *names.identifiers, *names.urls):
        if len(name) >= LEAST_NAME_CHARS:
            yield name.lstrip("#@-").rstrip("/")
    for number in names.numbers:
        digits = [place for place, char in enumerate(number) if char.isdigit()]
        yield number[digits[0] : digits[-1] + 1]


def _is_of_others(text: str, quote: str, sources: _Sources) -> bool:
    """Return whether a rule says what items say, but no person: word for word, or alike if its quote shares no word with it."""
    speakers = {words.evidence for words in sources.words if is_quoted(text, words.text)}
    if speakers or _shares_words(text, quote):
        return bool(speakers) and "person" not in speakers
    texts = [words.text for words in sources.words if words.evidence != "person"]
    return bool(nearest(text, [sentence for other in texts for sentence in sentences(other)]))


def _in_words_of(quote: str, text: str) -> str:
    """Return the text of a rule: where its words are others than those of its quote, the person's own hold.

    In another script the two share no words, and the text is kept.
    """
    return text if _shares_words(text, quote) or text.isascii() != quote.isascii() else quote


def _shares_words(text: str, quote: str) -> bool:
    return not {*stems(text)}.isdisjoint(stems(quote))


def dropped_counts(dropped: Sequence[JsonObject]) -> dict[str, int]:
    """Return how many statements of each field were dropped.

    >>> dropped_counts([{"field": "rules"}, {"field": "open"}, {"field": "rules"}])
    {'rules': 2, 'open': 1}
    """
    counts: dict[str, int] = {}
    for entry in dropped:
        counts[entry["field"]] = counts.get(entry["field"], 0) + 1
    return counts


def rejection(proven: Proven) -> str:
    """Return why an answer is rejected, for its author: it has statements, and none of them is proven; "" if it is not."""
    fields = proven.fields
    stored = any(fields[name] for name in (*STATED_FIELDS, "key_decisions")) or any(
        entry["type"] in BINDING_TYPES for entry in fields["high_value_items"]
    )
    if stored or proven.proposals or not proven.dropped:
        return ""
    reasons = [f'{entry["field"]}: "{entry["text"]}": {entry["why"]}.' for entry in proven.dropped]
    return "\n".join(["None of the statements is proven by the items:", *reasons[:MOST_REASONS], ""])
