"""Passages: the words of an imported conversation itself, kept for search and never injected.

A passage is what a person wrote, or what an agent wrote between two of its tool calls and after them, up to
`PASSAGE_CHARS`; calls and their output are left out. It names its speaker, project, conversation with its title, file, line and the request that it belongs to.
Passages are records of the archive, so erasing, forgetting and exporting reach them. `memory.history` says up to which line
a conversation is kept: passages beyond it belong to an import that was undone, and are not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from aether import clock
from aether.errors import InvalidInput
from aether.memory.capture.notes import title_of
from aether.memory.items import HISTORY, PASSAGE_PREFIX, PERSON
from aether.messages.records import Record
from aether.redact.redact import redact
from aether.regular import sha256
from aether.text.cleaning import clean, without_echoes
from aether.types import Change, JsonObject, Patch

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
RELEVANCE = 0.5
AGENT, HOST = "agent", "host"
_SPEAKERS = {"user": PERSON, "assistant": AGENT, "summary": HOST}


class Collector:
    """Collects the passages of one transcript while its records are read for another purpose."""

    def __init__(self, file: str, known: Mapping[str, int]) -> None:
        """Collect from `file`; `known` is the last kept line of each conversation that is kept already."""
        self.file = file
        self.id = ""
        self.line = 0
        self._known = known
        self._conversation = ""
        self._title = ""
        self._request = ""
        self._said: list[tuple[str, Record]] = []
        self._chars = 0
        self._numbers: dict[int, int] = {}
        self._ready: list[JsonObject] = []

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield `records` unchanged and keep their words."""
        for record in records:
            yield record
            self._observe(record)
        self._flush()

    def drain(self) -> list[JsonObject]:
        """Return the items of the passages that are complete and were not returned before."""
        ready, self._ready = self._ready, []
        return ready

    def _observe(self, record: Record) -> None:
        if record.kind not in _SPEAKERS or (record.agent and record.kind == "user"):
            return
        text = redact(without_echoes(clean(record.text)).strip())[:MESSAGE_CHARS]
        if not text:
            return
        if not self.id:
            named = f"{self.file}\0{record.session}\0{text}"
            self.id = PASSAGE_PREFIX + sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        if record.session != self._conversation or record.kind != "assistant":
            self._flush()
        self._enter(record, text)
        self.line = max(self.line, record.line)
        for piece in _pieces(text):
            if self._said and sum(len(said) for said, _ in self._said) + len(piece) > PASSAGE_CHARS:
                self._flush()
            self._said.append((piece, record))
            if record.kind != "assistant":
                self._flush()
        if record.kind == "user":
            self._request = " ".join(text.split())[:REQUEST_CHARS]

    def _enter(self, record: Record, text: str) -> None:
        """Keep the conversation of `record`, and its title by its first request."""
        if record.session and record.session != self._conversation:
            self._conversation, self._title = record.session, ""
        if record.kind == "user":
            self._title = self._title or title_of(text)

    def _flush(self) -> None:
        said, self._said = self._said, []
        if not said or said[-1][1].line <= self._known.get(self.id, 0):
            return
        first = said[0][1]
        speaker = _SPEAKERS[first.kind]
        text = "\n\n".join(piece for piece, _ in said)
        if speaker == AGENT and self._request:
            text = f"Asked: {self._request}\n{text}"
        self._chars += len(text)
        if self._chars > CONVERSATION_CHARS:
            return
        self._numbers[first.line] = number = self._numbers.get(first.line, 0) + 1
        metadata: JsonObject = {
            "timestamp": _time(first.time), "relevance_score": RELEVANCE, "access_count": 0,
            "last_accessed": _time(first.time), "speaker": speaker, "source": "queen" if speaker == PERSON else "worker_ant", "caste": first.caste or None,
            "pointer": {"file": self.file, "line": first.line},
        }  # fmt: skip
        place = {"conversation": self._conversation, "title": self._title, "project": first.directory}
        metadata |= {name: text for name, text in place.items() if text}
        self._ready.append(
            {
                "id": f"{self.id}.{said[-1][1].line}.{first.line}.{number}", "type": HISTORY, "content": text,
                "token_count": 0, "metadata": metadata, "associative_links": [],
            }
        )  # fmt: skip


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


def _time(given: str) -> str | None:
    try:
        return clock.stamp(clock.parse(given))
    except InvalidInput:
        return None


def keep(
    memory: Mapping[str, Any], collector: Collector, passages: list[JsonObject], now: datetime
) -> Change:
    """Return the change that archives `passages`, and records up to which line their conversation is kept."""
    if not passages:
        return Change({})
    at = clock.stamp(now)
    kept = memory.get("history", [])
    line = max(int(each["id"].split(".")[1]) for each in passages)
    entry: JsonObject = {
        "id": collector.id,
        "file": collector.file,
        "line": line,
        "passages": len(passages),
        "at": at,
    }
    place = next((nth for nth, each in enumerate(kept) if each["id"] == collector.id), None)
    if place is not None:
        entry["passages"] += kept[place]["passages"]
        entry["line"] = max(line, kept[place]["line"])
        patch: Patch = [{"op": "replace", "path": f"/history/{place}", "value": entry}]
    elif "history" in memory:
        patch = [{"op": "add", "path": "/history/-", "value": entry}]
    else:
        patch = [{"op": "add", "path": "/history", "value": [entry]}]
    records = [
        {"item": {**each, "metadata": {**each["metadata"], "timestamp": each["metadata"]["timestamp"] or at, "last_accessed": each["metadata"]["last_accessed"] or at}},
         "left_at": at, "why": WHY, "session_id": None, "compression_id": collector.id}
        for each in passages
    ]  # fmt: skip
    return Change({"memory": patch}, {"items": records})
