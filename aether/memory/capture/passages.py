"""Passages: the words of an imported conversation itself, kept for search and never injected.

A passage is what a person wrote, or what an agent wrote between two of its tool calls and after them, up to
`PASSAGE_CHARS`; calls and their output are left out. It names its speaker, project, conversation with its title, file, line and the request that it belongs to.
Passages are records of the archive, so erasing, forgetting and exporting reach them. `memory.history` says up to which place
a conversation is kept: passages beyond it belong to an import that was undone, and are not found. A place is a line and
the number of a text on it, since a whole conversation may be one line. Two conversations may start with the same words
in files of the same name: unless the source names them uniquely, one is known only if all its words up to that place are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from aether import clock
from aether.memory.capture.notes import is_unique, title_of, words_of
from aether.memory.items import COPY_PREFIX, HISTORY, PASSAGE_PREFIX, PERSON, Place, passage_place
from aether.memory.layers import instant_text
from aether.types import Change

if TYPE_CHECKING:
    from aether.messages.records import Record
    from aether.types import JsonObject, Patch

# The reason in the archive records.
WHY = HISTORY
# Long enough for an answer with its reasons: on labelled questions 600 found a fifth fewer answers first.
PASSAGE_CHARS = 2_000
# A longer message is a pasted file or log: its start says what it is.
MESSAGE_CHARS = 16_000
# Of the request, at the head of each answer to it.
REQUEST_CHARS = 120
# Of one conversation. The longest of forty real ones had 110,000.
CONVERSATION_CHARS = 4_000_000
ASKED = "Asked: "
RELEVANCE = 0.5
AGENT, HOST = "agent", "host"
_SPEAKERS = {"user": PERSON, "answer": PERSON, "refusal": PERSON, "assistant": AGENT, "summary": HOST}


class _Piece(NamedTuple):
    """A part of what one record says."""

    text: str
    record: Record
    place: Place
    digest: str
    """Of all words of the conversation up to the end of the record."""
    copy_key: str
    """The same in every copy of the conversation, whatever its lines."""


class _Passage(NamedTuple):
    """A complete passage: its end, its number in the file, and the item without an id."""

    end: _Piece
    number: int
    item: JsonObject


class Collector:
    """Collects the passages of one transcript while its records are read for another purpose."""

    def __init__(self, file: str, kept: Iterable[Mapping[str, Any]], known: Collection[str] = ()) -> None:
        """Collect from `file`; `kept` is `memory.history`, `known` the keys of the passages that copies brought, which are left out."""
        self.file = file
        self._known = known
        self.id = ""
        """The start of the ids of its passages, once some are returned."""
        self.digest = ""
        """Of the words up to the last passage that was returned; empty if the source has a unique name for them."""
        self.phases: set[int] = set()
        """The phases that notes were given while its records were read."""
        self._kept = [*kept]
        self._named = any(entry["file"] == file for entry in self._kept)
        self._entry: Mapping[str, Any] | None = None
        self._similar: dict[tuple[Place, str], Mapping[str, Any]] = {}
        self._start = ""
        self._is_unique = False
        self._words = sha256(b"")
        self._place = Place(0, 0)
        self._conversation = ""
        self._title = ""
        self._request = ""
        self._said: list[_Piece] = []
        self._is_read = False
        self._chars = 0
        self._made = 0
        self._ready: list[_Passage] = []

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield `records` unchanged and keep their words."""
        for record in records:
            self._observe(record)
            yield record
        self._flush()
        self._is_read = True

    def drain(self) -> list[JsonObject]:
        """Return the items of the passages that are complete, not kept yet, and were not returned before."""
        if self._similar and not (self.id or self._entry or self._is_read):
            return []  # it may still turn out to be a kept conversation
        ready, self._ready = self._ready, []
        if ready and not self.id:
            # What has not turned out to be a kept conversation by now is another one.
            self._similar = {}
            start = self._start if self._is_unique else f"{self._start}_{ready[-1].end.digest}"
            self.id = self._entry["id"] if self._entry else start
        if ready and not self._is_unique:
            self.digest = ready[-1].end.digest
        return [
            {
                "id": f"{self.id}.{end.place.line}-{end.place.part}.{item['metadata']['pointer']['line']}",
                **item,
            }
            for end, _, item in ready
        ]

    @property
    def kept_phases(self) -> set[int]:
        """The phases that are kept with the conversation: none if nothing of it is."""
        return self.phases if self.id else set()

    def known_phases(self, of_file: Iterable[int]) -> list[int]:
        """Return the phases that the notes of this conversation have; `of_file` are those of all files of this name."""
        if self._entry is None and self._start and self._named:
            return []  # as far as it is read, it is another conversation in a file of the same name
        return sorted((self._entry or {}).get("phases") or of_file)

    def _observe(self, record: Record) -> None:
        is_task = record.agent and record.kind == "user"
        words = "" if is_task or record.kind not in _SPEAKERS else record.text
        text = words and words_of(words)[:MESSAGE_CHARS]
        if not text:
            return
        if not self._start:
            self._recognise(record, text)
        if record.session != self._conversation or record.kind != "assistant":
            self._flush()
        self._enter(record, text)
        self._words.update(f"{record.kind}\0{text}\0".encode("utf-8", "surrogatepass"))
        self._add(record, text, self._words.hexdigest()[:12])
        if record.kind == "user":
            self._request = " ".join(text.split())[:REQUEST_CHARS]

    def _add(self, record: Record, text: str, digest: str) -> None:
        """Add what a record says to the passage that is being made, and end that where it is full or another speaks."""
        for nth, piece in enumerate(_pieces(text)):
            if self._said and sum(len(passage.text) for passage in self._said) + len(piece) > PASSAGE_CHARS:
                self._flush()
            line = max(record.line, self._place.line)
            self._place = Place(line, self._place.part + 1 if line == self._place.line else 1)
            key = f"{COPY_PREFIX}{record.session}/{digest}.{nth}"
            self._said.append(_Piece(piece, record, self._place, digest, key))
            if entry := self._similar.get((self._place, digest)):
                self._continue(entry)
            if key in self._known:
                self._said.clear()
            if record.kind != "assistant":
                self._flush()

    def _recognise(self, record: Record, text: str) -> None:
        """Find the kept conversations that this one may be, by its file, its name and its first words."""
        beginning = f"{self.file}\0{record.session}\0{text}"
        self._start = PASSAGE_PREFIX + sha256(beginning.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self._is_unique = is_unique(record.session)
        self.phases.clear()
        for entry in self._kept:
            if entry["id"].partition("_")[2].partition("_")[0] != self._start.removeprefix(PASSAGE_PREFIX):
                continue
            if "digest" in entry:
                self._similar[Place(entry["line"], entry["part"]), entry["digest"]] = entry
            else:
                self._continue(entry)

    def _continue(self, entry: Mapping[str, Any]) -> None:
        """Go on with the kept conversation of `entry`: forget the passages that it has."""
        self._entry = entry
        self.phases.clear()
        self._ready = [
            passage for passage in self._ready if not _has(entry, passage.end.place, passage.number)
        ]
        self._chars = sum(len(passage.item["content"]) for passage in self._ready)

    def _enter(self, record: Record, text: str) -> None:
        """Keep the conversation of `record`, and its title by its first request."""
        if record.session and record.session != self._conversation:
            self._conversation, self._title, self._request = record.session, "", ""
        if record.kind == "user":
            self._title = self._title or title_of(text)

    def _flush(self) -> None:
        pieces, self._said = self._said, []
        if not pieces:
            return
        self._made += 1
        if self._entry and _has(self._entry, pieces[-1].place, self._made):
            return
        first = pieces[0].record
        speaker = _SPEAKERS[first.kind]
        text = "\n\n".join(piece.text for piece in pieces)
        if speaker == AGENT and self._request:
            text = f"{ASKED}{self._request}\n{text}"
        self._chars += len(text)
        if self._chars > CONVERSATION_CHARS:
            return
        time = instant_text(first.time) or None
        metadata: JsonObject = {
            "timestamp": time, "relevance_score": RELEVANCE, "access_count": 0, "last_accessed": time, "speaker": speaker, "source": "queen" if speaker == PERSON else "worker_ant", "caste": first.caste or None,
            "pointer": {"file": self.file, "line": first.line} | ({"key": pieces[-1].copy_key} if first.copied else {}),
        }  # fmt: skip
        place = {"conversation": self._conversation, "title": self._title, "project": first.directory}
        metadata |= {name: text for name, text in place.items() if text}
        item: JsonObject = {
            "type": HISTORY,
            "content": text,
            "token_count": 0,
            "metadata": metadata,
            "associative_links": [],
        }
        self._ready.append(_Passage(pieces[-1], self._made, item))


def _has(entry: Mapping[str, Any], place: Place, number: int) -> bool:
    """Return whether the words up to `place`, where the passage of this number ends, are kept."""
    if "part" in entry:
        return place <= (entry["line"], entry["part"])
    # An earlier release kept lines. A file of one line, which it took for complete, may have more than it kept.
    return place.line < entry["line"] or (
        place.line == entry["line"] and (place.line > 1 or number <= entry["passages"])
    )


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of at most `PASSAGE_CHARS`, cut between paragraphs where possible."""
    piece = ""
    for paragraph in text.split("\n\n"):
        if piece and len(piece) + len(paragraph) > PASSAGE_CHARS:
            yield piece
            piece = ""
        piece = f"{piece}\n\n{paragraph}" if piece else paragraph
        while len(piece) > PASSAGE_CHARS:
            cut = max(piece.rfind("\n", 0, PASSAGE_CHARS), piece.rfind(" ", 0, PASSAGE_CHARS))
            cut = cut if cut > PASSAGE_CHARS // 2 else PASSAGE_CHARS
            yield piece[:cut]
            piece = piece[cut:].lstrip()
    if piece.strip():
        yield piece


def request_in(item: Mapping[str, Any]) -> str:
    r"""Return the start of the request that a passage quotes, with "…" for the rest, or ""; its first line is this quotation.

    >>> request_in({"type": "history", "content": "Asked: why?\nBecause."}), request_in({"type": "outcome", "content": "Asked: why?"})
    ('why?', '')
    """
    content = item.get("content")
    if item.get("type") != HISTORY or not isinstance(content, str) or not content.startswith(ASKED):
        return ""
    request = content.partition("\n")[0].removeprefix(ASKED)
    return request if len(request) < REQUEST_CHARS else f"{request}…"


def keep(
    memory: Mapping[str, Any], collector: Collector, passages: list[JsonObject], now: datetime
) -> Change:
    """Return the change that archives `passages`, and records up to which place their conversation is kept."""
    if not passages:
        return Change({})
    time = clock.stamp(now)
    conversations = memory.get("history", [])
    nth = next((nth for nth, passage in enumerate(conversations) if passage["id"] == collector.id), None)
    before = conversations[nth] if nth is not None else {}
    end = max(filter(None, (passage_place(passage["id"]) for passage in passages)))
    entry: JsonObject = {
        **before, "id": collector.id, "file": collector.file, "passages": before.get("passages", 0) + len(passages), "at": time,
    }  # fmt: skip
    if end > (before.get("line", 0), before.get("part", 0)):
        entry |= {"line": end.line, "part": end.part}
        entry |= {"digest": collector.digest} if collector.digest else {}
    if phases := collector.phases | {*before.get("phases", ())}:
        entry["phases"] = sorted(phases)
    if nth is not None:
        patch: Patch = [{"op": "replace", "path": f"/history/{nth}", "value": entry}]
    elif "history" in memory:
        patch = [{"op": "add", "path": "/history/-", "value": entry}]
    else:
        patch = [{"op": "add", "path": "/history", "value": [entry]}]
    records = [
        {"item": {**passage, "metadata": {**passage["metadata"], "timestamp": passage["metadata"]["timestamp"] or time, "last_accessed": passage["metadata"]["last_accessed"] or time}},
         "left_at": time, "why": WHY, "session_id": None, "compression_id": collector.id}
        for passage in passages
    ]  # fmt: skip
    return Change({"memory": patch}, {"items": records})
