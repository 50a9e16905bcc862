"""Notes: drafts of items, each with the place it came from and a key that never changes.

The key is made of the source's name for the record (or, without a unique name, of its place and content), not of the
path of the file or the wording of the note: reading the same transcript again, moved or grown, gives the same keys.
Long text is shortened to head and tail and says so; `pointer` leads to the rest.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict

from aether import regular
from aether.memory.facts import fact_text
from aether.redact.redact import redact, redacted
from aether.text.cleaning import clean, without_echoes
from aether.text.regex import lazy
from aether.types import RELEVANCE_OF_TYPE

if TYPE_CHECKING:
    from aether.messages.records import Record
    from aether.types import Evidence, Fact, JsonObject

SOURCE_MAIN = "queen"
SOURCE_WORKER = "worker_ant"

# What the part in the conversation adds to the relevance of a type: small enough that types keep their order.
_BY_ROLE = {"commit": 0.1, "plan": 0.1, "said": -0.1}
# What only an agent wrote, and nobody and nothing confirmed.
UNCONFIRMED = -0.1
# Above 0.8 one sighting is enough for long-term memory, which is for what a person says on purpose.
MOST_RELEVANCE = 0.8
# A longer text keeps its head and its tail: a message of a page, what an agent says on the way of a paragraph.
REQUEST_CHARS = 4_000
STATEMENT_CHARS = 900
TITLE_CHARS = 80
# Three quarters of a shortened text are its head, where people state their request.
HEAD_SHARE = 0.75
# Made once: a third of the time of a short text goes into making an encoder.
_SORTED = json.JSONEncoder(sort_keys=True, check_circular=False).encode
# Ids of this form are unique by themselves; others only within their session.
_UUID = lazy(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Draft(TypedDict):
    """An item before it has an id and a token count."""

    content: str
    type: str
    relevance_score: float
    source: str
    caste: str | None
    metadata: JsonObject


class Origin(TypedDict):
    """The place of a record, kept as long as a note about it may still be written."""

    line: int
    part: int
    uuid: str
    time: str
    session: str
    digest: str
    """Digest of the record's content, if its id alone is not unique across files."""
    caste: str
    directory: NotRequired[str]
    """The directory of the conversation, if the source names one."""
    named: NotRequired[bool]
    """Whether the source names its session; else `session` is made of the first text."""


# The fates of an answer after which the work went on: the conversation was cut off before the next one, or the person
# stopped the work or wrote meanwhile. Neither is a report on it.
CUT = "cut"
INTERRUPTED = "interrupted"
Role = Literal["", "request", "answer", "said", "plan", "commit", "tree", "summary"]


class Note(NamedTuple):
    """Something worth noting about the record at `at`; `slot` distinguishes the notes of one record."""

    at: Origin
    content: str
    kind: str
    slot: str
    evidence: Evidence = "agent"
    role: Role = ""
    """Its part in the conversation: a person's words, the last message of a turn, what was said on the way, the list of
    tasks, a commit, the files under version control, the host's own summary."""
    fact: Fact | None = None
    """The fields that `content` is made of."""
    confirmed: bool = False
    """Whether a person approved it, in the words of an agent."""
    fate: str = ""
    """Of the last message of a turn after which the work went on: `CUT` or `INTERRUPTED`."""


def fact_note(
    place: Origin, fact: Fact, kind: str, slot: str, *, evidence: Evidence = "machine", role: Role = ""
) -> Note:
    """Return the note of a fact, without secrets: neither its fields nor their joined text shows one."""
    fields: Any = redacted(fact)
    while redact(text := fact_text(fields)) != text:
        fields.popitem()  # the last of those that together look like a secret
    return Note(place, text, kind, slot, evidence, role, fields)


def origin(record: Record, session: str) -> Origin:
    """Return the place of `record`; `session` replaces a missing id of its session."""
    return Origin(
        line=record.line, part=record.part, uuid=record.uuid, time=record.time,
        session=record.session or session,
        digest="" if is_unique(record.uuid) else _digest(record), caste=record.caste,
        directory=record.directory, named=bool(record.session),
    )  # fmt: skip


@lru_cache(maxsize=1)
def words_of(text: str) -> str:
    """Return `text` of a record without machinery, private parts and secrets: once for its passages and its notes."""
    return redact(without_echoes(clean(text)).strip())


def is_unique(name: str) -> bool:
    """Return whether a source's `name` of a record or a conversation is like no other's.

    >>> is_unique("0b5c7a1e-2f3d-4c5b-8a9e-1f2d3c4b5a69"), is_unique("task 3")
    (True, False)
    """
    return bool(_UUID.fullmatch(name))


def _digest(record: Record) -> str:
    try:
        content = _SORTED([record.text, record.tool, dict(record.arguments)])
    except RecursionError:  # nested too deep for JSON: the text has to distinguish it
        content = _SORTED([record.text, record.tool])
    return regular.digest(content.encode())[:16]


def note_key(place: Origin, slot: str) -> str:
    """Return the key of the note that fills `slot` of a record.

    >>> here = Origin(line=3, part=0, uuid="m1", time="", session="s", digest="d", caste="")
    >>> note_key(here, "said") == note_key(here | {"line": 99}, "said"), note_key(here, "said") == note_key(here, "fixed")
    (True, False)
    """
    name = place["uuid"]
    if not is_unique(name):
        # Many conversations open with the same words, and have the same line numbers.
        name = f"{place['session']}/{name or place['line']}/{place['digest']}"
    return regular.digest(f"{name}/{place['part']}/{slot}".encode("utf-8", "surrogatepass"))[:32]


def draft(note: Note, *, file: str, phase: int, relevance: float | None = None, title: str = "") -> Draft:
    """Return the item of `note`, without secrets: the joined text may show one that its parts did not.

    `title` names its conversation.
    """
    place = note.at
    pointer: JsonObject = {"file": file, "line": place["line"], "key": note_key(place, note.slot)}
    if place["uuid"]:
        pointer["uuid"] = place["uuid"]
    if place["part"]:
        pointer["part"] = place["part"]
    metadata: JsonObject = {"phase": phase, "pointer": pointer, "evidence": note.evidence}
    fields: JsonObject = {
        "role": note.role, "fact": note.fact, "conversation": place["session"] if place.get("named") else "",
        "title": title, "project": place.get("directory", ""), "confirmed_by": "person" if note.confirmed else "",
        "fate": note.fate, "timestamp": place["time"],
    }  # fmt: skip
    metadata |= {name: value for name, value in fields.items() if value}
    return Draft(
        content=redact(note.content), type=note.kind,
        relevance_score=relevance_of(note) if relevance is None else relevance,
        source=SOURCE_WORKER if place["caste"] else SOURCE_MAIN, caste=place["caste"] or None,
        metadata=metadata,
    )  # fmt: skip


def relevance_of(note: Note) -> float:
    """Return how much a note matters, 0 to 1, by its type, who vouches for it, and its part in the conversation.

    >>> here = Origin(line=1, part=0, uuid="", time="", session="s", digest="d", caste="")
    >>> [relevance_of(Note(here, "It passes.", "outcome", "x", role=role)) for role in ("answer", "commit", "said")]
    [0.6, 0.7, 0.5]
    """
    worth = RELEVANCE_OF_TYPE.get(note.kind, 0.5) + _BY_ROLE.get(note.role, 0.0)
    worth += UNCONFIRMED if note.evidence == "agent" and not note.confirmed else 0.0
    return round(min(worth, MOST_RELEVANCE), 2)


def title_of(text: str) -> str:
    """Return the start of a first request as the name of its conversation.

    >>> title_of("修" * 100) == "修" * 80 + "…"
    True
    """
    line = " ".join(text.split())
    if len(line) <= TITLE_CHARS:
        return line
    blank = line.rfind(" ", TITLE_CHARS // 2, TITLE_CHARS)
    return line[: blank if blank > 0 else TITLE_CHARS].rstrip(" ,;:.") + "…"


def shorten(text: str, most: int) -> str:
    """Return `text`, or its head and tail with the number of characters left out between them.

    >>> shorten("a" * 50 + " " + "b" * 70, 40)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa [… 81 characters left out …] bbbbbbbbbb'
    """
    if len(text) <= most:
        return text
    head_end = int(most * HEAD_SHARE)
    tail_start = len(text) - (most - head_end)
    # Cut between words where one ends nearby, so that no name is torn.
    space = max(text.rfind(" ", head_end - 40, head_end), text.rfind("\n", head_end - 40, head_end))
    head_end = space if space > 0 else head_end
    space = text.find(" ", tail_start, tail_start + 40)
    tail_start = space + 1 if space > 0 else tail_start
    return f"{text[:head_end].rstrip()} [… {tail_start - head_end} characters left out …] {text[tail_start:].lstrip()}"
