"""Notes: drafts of items, each with the place it came from and a key that never changes.

The key is made of the source's name for the record (or, without a unique name, of its place and content), not of the
path of the file or the wording of the note: reading the same transcript again, moved or grown, gives the same keys.
Long text is shortened to head and tail and says so; `pointer` leads to the rest.
"""

from __future__ import annotations

import json
import re

from aether.hints import TYPE_CHECKING, Literal, NotRequired
from aether.redact.redact import redact
from aether.regular import sha256
from aether.text.regex import lazy
from aether.tuples import NamedTuple, TypedDict
from aether.types import RELEVANCE_OF_TYPE, Item, JsonObject

if TYPE_CHECKING:
    from aether.messages.records import Record

SOURCE_MAIN = "queen"
SOURCE_WORKER = "worker_ant"

# What a person demands of the agent is worth more than another note of the same type, unless it is about the work at hand.
RULE_RELEVANCE = {"constraint": 0.9, "preference": 0.85}
TASK_RULE_RELEVANCE = 0.75
_BINDING = 0.7
# What is added to the relevance of a type: small enough that types keep their order where it matters.
_BY_ROLE = {"commit": 0.1, "pending": 0.1, "next": 0.1, "current": 0.1, "said": -0.15}
# Only said by an agent, and by nobody and nothing confirmed.
UNCONFIRMED = -0.1
# It names a file, a command, a number or code.
NAMES_SOMETHING = 0.05
# It came again.
REPEATED = 0.05
# A character of its own first: what may match is found six times as fast.
_NAMED = lazy(r"[`\d/_.A-Z](?:(?<=`)|(?<=\d)\d|(?<=\w[/_.])\w|(?<=[a-z][A-Z]))")
_AGAIN = lazy(r"\(\d+ (?:runs|edits)\)|failed \d+ times", needs=(" runs)", " edits)", "failed "))
RULE_TYPES = frozenset({"constraint", "preference"})
# Characters, at about four to a token: a request of a page, a statement of a paragraph.
REQUEST_CHARS = 2_400
STATEMENT_CHARS = 900
TITLE_CHARS = 80
# More rules in one message are a pasted document.
MOST_RULES = 12
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


Evidence = Literal["person", "machine", "agent"]
# The fates of an answer after which the work went on: the conversation was cut off before the next one, or the person
# stopped the work or wrote meanwhile. Neither is a report on it.
CUT = "cut"
INTERRUPTED = "interrupted"
Role = Literal[
    "",
    "request",
    "answer",
    "said",
    "change",
    "plan",
    "commit",
    "tree",
    "summary",
    "pending",
    "current",
    "next",
]


class Note(NamedTuple):
    """A fact worth noting about the record at `at`; `slot` distinguishes the notes of one record."""

    at: Origin
    content: str
    kind: str
    slot: str
    by_person: bool = False
    role: Role = ""
    """Its part in the conversation: a person's request, the last message of a turn, what was said on the way, the reason
    of an edit that followed, the list of tasks, a commit, the files under version control, the host's own summary and its parts."""
    machine: bool = False
    """Whether a machine showed it: a result, a changed file, a list of tasks."""
    reply: str = ""
    """Of a proposal, the words with which a person took it up."""
    confirmed: bool = False
    """Whether a person approved it, in the words of an agent."""
    fate: str = ""
    """Of the last message of a turn after which the work went on: `CUT` or `INTERRUPTED`."""

    @property
    def evidence(self) -> Evidence:
        """Return who vouches for it."""
        return "person" if self.by_person else "machine" if self.machine else "agent"


def noting_agent(item: Item) -> str:
    """Return the caste or program that made `item`, "" if a person may have said it.

    Words of the Queen have the default source, as has text typed in a session.
    """
    metadata = item["metadata"]
    return metadata["caste"] or ("" if metadata["source"] == SOURCE_MAIN else metadata["source"])


def person_notes(at: Origin, parts: list[tuple[str, str]]) -> list[Note]:
    """Return the notes of a person's message and of its rules, which outlive it; `parts` are kinds and texts."""
    notes = []
    for number, (kind, text) in enumerate(parts[: MOST_RULES + 1]):
        rule = kind in RULE_TYPES
        slot = f"demand {number}" if rule else "said"
        notes.append(
            Note(
                at,
                shorten(text, STATEMENT_CHARS if rule else REQUEST_CHARS),
                kind,
                slot,
                by_person=True,
                role="" if rule else "request",
            )
        )
    return notes


def origin(record: Record, session: str) -> Origin:
    """Return the place of `record`; `session` replaces a missing id of its session."""
    return Origin(
        line=record.line, part=record.part, uuid=record.uuid, time=record.time,
        session=record.session or session,
        digest="" if is_unique(record.uuid) else _digest(record), caste=record.caste,
        directory=record.directory, named=bool(record.session),
    )  # fmt: skip


def is_unique(name: str) -> bool:
    """Return whether a source's `name` of a record or a conversation is like no other's.

    >>> is_unique("0b5c7a1e-2f3d-4c5b-8a9e-1f2d3c4b5a69"), is_unique("task 3")
    (True, False)
    """
    return bool(_UUID.fullmatch(name))


def _digest(record: Record) -> str:
    try:
        said = _SORTED([record.text, record.tool, dict(record.arguments)])
    except RecursionError:  # nested too deep for JSON: the text has to distinguish it
        said = _SORTED([record.text, record.tool])
    return sha256(said.encode()).hexdigest()[:16]


def note_key(at: Origin, slot: str) -> str:
    """Return the key of the note that fills `slot` of a record.

    >>> here = Origin(line=3, part=0, uuid="m1", time="", session="s", digest="d", caste="")
    >>> note_key(here, "said") == note_key(here | {"line": 99}, "said"), note_key(here, "said") == note_key(here, "fixed")
    (True, False)
    """
    name = at["uuid"]
    if not is_unique(name):
        # Many conversations open with the same words, and have the same line numbers.
        name = f"{at['session']}/{name or at['line']}/{at['digest']}"
    return sha256(f"{name}/{at['part']}/{slot}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def draft(note: Note, *, file: str, phase: int, relevance: float | None = None, title: str = "") -> Draft:
    """Return the item of `note`, without secrets: the joined text may show one that its parts did not.

    `title` names its conversation.
    """
    at = note.at
    pointer: JsonObject = {"file": file, "line": at["line"], "key": note_key(at, note.slot)}
    if at["uuid"]:
        pointer["uuid"] = at["uuid"]
    if at["part"]:
        pointer["part"] = at["part"]
    metadata: JsonObject = {"phase": phase, "pointer": pointer, "evidence": note.evidence}
    named = {
        "role": note.role, "reply": redact(note.reply), "conversation": at["session"] if at.get("named") else "",
        "title": title, "project": at.get("directory", ""), "confirmed_by": "person" if note.confirmed else "",
        "fate": note.fate,
    }  # fmt: skip
    metadata |= {name: text for name, text in named.items() if text}
    if at["time"]:
        metadata["timestamp"] = at["time"]
    return Draft(
        content=redact(note.content), type=note.kind,
        relevance_score=relevance_of(note) if relevance is None else relevance,
        source=SOURCE_WORKER if at["caste"] else SOURCE_MAIN, caste=at["caste"] or None,
        metadata=metadata,
    )  # fmt: skip


def relevance_of(note: Note) -> float:
    """Return how much a note matters, 0 to 1, by its type, who vouches for it, its part in the conversation and what it names.

    >>> here = Origin(line=1, part=0, uuid="", time="", session="s", digest="d", caste="")
    >>> [relevance_of(Note(here, text, "constraint", "demand", by_person=True)) for text in ("Never push to main.", "let's do this as a separate PR")]
    [0.9, 0.75]
    >>> [relevance_of(Note(here, "It passes.", "outcome", "x", role=role)) for role in ("answer", "said")]
    [0.6, 0.45]
    """
    worth = RELEVANCE_OF_TYPE.get(note.kind, 0.5)
    # Above 0.8 a statement is promoted at once, which is for rules; above 0.7 an architect takes it to bind later work.
    most = 0.8 if worth > _BINDING else _BINDING
    if note.by_person and note.kind in RULE_RELEVANCE:
        from aether.text.classify import is_of_task  # costs a hook, which only reads what is kept, its time

        return TASK_RULE_RELEVANCE if is_of_task(note.content) else RULE_RELEVANCE[note.kind]
    worth += _BY_ROLE.get(note.role, 0.0)
    worth += UNCONFIRMED if note.evidence == "agent" else 0.0
    worth += NAMES_SOMETHING if "`" in note.content or _NAMED.search(note.content) else 0.0
    worth += REPEATED if _AGAIN.search(note.content) else 0.0
    return round(min(worth, most), 2)


def title_of(text: str) -> str:
    """Return the start of a first request as the name of its conversation."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: line.rfind(" ", 1, TITLE_CHARS)].rstrip(" ,;:.") + "…"


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
