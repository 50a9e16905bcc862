"""Conversations as objects: what callers give, the texts in it, and the archive file.

The messages are the very objects that were given, in the format of any provider, and `given` has every other field, so that
`given_conversation` returns the object that was read. Reading never refuses a conversation because of a time, a title or a
message: each such fault is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from hashlib import sha256
from textwrap import shorten
from typing import Any, Literal, NamedTuple, TypedDict

from aether import clock
from aether.errors import InvalidInput, shown
from aether.messages.content import as_json, encodable
from aether.messages.convert import META, read
from aether.messages.model import Message, as_object, as_text
from aether.messages.tool_calls import answers_in, is_refusal, words_of_refusal
from aether.text.cleaning import clean, without_escapes
from aether.types import DETAILS, Detail, Finding, JsonObject

Level = Detail
LEVELS = DETAILS

Speaker = Literal["user", "assistant", "system", "tool_call", "tool_result"]
Conversation = JsonObject
"""`id`, `title`, `created_at`, `updated_at`, `session_id`, `total_messages`, `total_tokens`, `metadata`, `messages`,
`times` (one for each message, "" if it has none), `kept` (texts that are in every level) and `given`. One that was
read from the archive has `known`, too: its metadata and the measures of its full form."""

UNTITLED = "untitled"
# A title is one line of a list.
TITLE_CHARS = 200
FIRST_CHARS = 80
_TIME_KEYS = ("timestamp", "created_at", "at", "time")
_TOOL_ROLES: dict[str, Speaker] = {"tool_call": "tool_call", "tool_result": "tool_result"}
_YES = frozenset({"1", "on", "true", "y", "yes"})
# The line by which a decision is locked, or a goal is named (prompts/goal.md).
_MARKED = re.compile(
    r"^.{0,20}\[\s*(?:DECISION\s*\].*[-–—:(\s]LOCKED\b|GOAL\s*\]).*$", re.IGNORECASE | re.MULTILINE
)


class Said(NamedTuple):
    """One text of a conversation, without additions of programs.

    A person's answers to the questions of a tool, a line for each, and their words in refusing a call are theirs; these
    have a `call_id`.
    """

    at: int
    """The position of its message."""
    speaker: Speaker
    text: str
    tool: str = ""
    protected: bool = False
    call_id: str = ""
    refused: bool = False
    """Whether it is the refusal of a call, or the person's words in it."""

    @property
    def is_choice(self) -> bool:
        """Return whether a person answered it through a tool."""
        return self.speaker == "user" and bool(self.call_id) and not self.refused


class Source(TypedDict):
    """The origin of an archived conversation."""

    kind: Literal["conversation", "file", "dict"]
    name: str


class Grace(TypedDict):
    """The fuller form that can be restored exactly until the given time."""

    file: str
    level: Level
    sha256: str
    bytes: int
    until: str


class ArchivedConversation(TypedDict):
    """The archive file of one conversation, version 1 (data/schemas/archived_conversation.schema.json)."""

    version: int
    id: str
    title: str
    created_at: str
    updated_at: str
    archived_at: str
    level: Level
    marked: bool
    source: Source
    content: JsonObject
    metadata: JsonObject
    metrics: JsonObject
    steps: list[JsonObject]
    grace: Grace | None
    checksum: str


def fuller(a: Level, b: Level) -> Level:
    """Return the level that keeps more.

    >>> fuller("summary", "key_points")
    'key_points'
    """
    return a if LEVELS.index(a) <= LEVELS.index(b) else b


def level(name: str) -> Level:
    """Return the level of that name.

    Raises:
        InvalidInput: no level has that name.
    """
    for member in LEVELS:
        if member == name:
            return member
    raise InvalidInput(f"{shown(name)} is not a level.", fix=f"Use one of {', '.join(LEVELS)}.", where="level")  # fmt: skip


# --- Reading


def read_conversation(
    raw: JsonObject, *, where: str = "conversation", times: Sequence[str] | None = None
) -> tuple[Conversation, list[Finding]]:
    """Return the conversation in `raw`, and a finding for each field of it that cannot be used.

    `raw` has the keys of a `Conversation`, of which only `messages` are required, or those of a request body. `times` are
    those of its messages, if they are not in them. `raw` is neither changed nor shared with the result.

    Raises:
        InvalidInput: it is not an object, or its messages are not a list.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("messages"), (list, tuple)):
        what = f"{shown(raw)} is not a conversation."
        raise InvalidInput(what, fix='Give an object with a list "messages".', where=where)
    findings: list[Finding] = []
    content = encodable(_as_json(encodable(raw), where, findings))
    messages = [_message(entry, f"{where}.messages[{nth}]", findings) for nth, entry in enumerate(content["messages"])]  # fmt: skip
    content["messages"] = None  # keeps its place among the keys
    if times is None:
        raw_times = [next((entry[key] for key in _TIME_KEYS if entry.get(key)), None) for entry in messages]
    else:
        raw_times = [times[nth] if nth < len(times) else None for nth in range(len(messages))]
    read_times = [_time(time, f"{where}.messages[{nth}].timestamp", findings) for nth, time in enumerate(raw_times)]  # fmt: skip
    created = _time(content.get("created_at"), f"{where}.created_at", findings) or min(filter(None, read_times), default="")  # fmt: skip
    updated = _time(content.get("updated_at"), f"{where}.updated_at", findings)
    if not (created or updated):
        findings.append(
            Finding("warning", "no-time", where, "No time in it can be read.", "Give it a created_at.")
        )
    digest = sha256(as_json(content | {"messages": messages}).encode()).hexdigest()[:16]
    name = _name(content.get("id")) or f"conversation_{digest}"
    conversation: Conversation = {
        "id": name,
        "title": " ".join(as_text(content.get("title")).split())[:TITLE_CHARS],
        "created_at": created,
        "updated_at": updated,
        "session_id": _name(content.get("session_id")) or name,
        "total_messages": len(messages),
        "total_tokens": _count(content.get("total_tokens")) or sum(_count(entry.get("token_count")) for entry in messages),
        "metadata": as_object(content.get("metadata")),
        "messages": messages,
        "times": read_times,
        "kept": [],
        "given": content,
    }  # fmt: skip
    conversation["kept"] = kept_texts(conversation)
    if not conversation["title"]:
        first = next((text.text for text in said(conversation) if text.speaker == "user"), "")
        conversation["title"] = shorten(first[:TITLE_CHARS], FIRST_CHARS, placeholder="…") or UNTITLED
    return conversation, findings


def given_conversation(content: JsonObject) -> JsonObject:
    """Return the object that was read, from the content of an archive file at level `full`."""
    return {
        key: content["messages"] if key == "messages" else field for key, field in content["given"].items()
    }


def conversation_of(archived: ArchivedConversation | JsonObject) -> Conversation:
    """Return the conversation in an archive file, as far as its level has it."""
    content = archived["content"]
    if "given" in content:
        raw = given_conversation(content)
    else:
        summary = [{"role": "assistant", "content": content["summary"]}] if content.get("summary") else []
        raw = {"messages": content.get("messages", summary)}
    fields = {key: archived[key] for key in ("id", "title", "created_at", "updated_at")}
    conversation, _ = read_conversation(fields | raw, where=archived["id"], times=content.get("times"))
    kept_texts = [*content.get("kept", []), *conversation["kept"]]
    known_numbers = {"metadata": archived["metadata"], **archived["metrics"]}
    return conversation | fields | {"kept": list(dict.fromkeys(kept_texts)), "known": known_numbers}


def times_are_inside(conversation: Conversation) -> bool:
    """Return whether the messages themselves have the times of a conversation."""
    timed = all(any(entry.get(key) for key in _TIME_KEYS) for entry in conversation["messages"])
    return timed or not any(conversation["times"])


def _as_json(value: Any, where: str, findings: list[Finding]) -> Any:
    """Return a copy of `value` that can be written as JSON; other values become text, and a finding."""
    if isinstance(value, dict):
        return {str(key): _as_json(field, f"{where}.{key}", findings) for key, field in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(entry, f"{where}[{nth}]", findings) for nth, entry in enumerate(value)]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, date):
        return value.isoformat()
    findings.append(
        Finding("warning", "no-json", where, f"{shown(value)} is not JSON.", "It was kept as text.")
    )
    return str(value)


def _message(entry: Any, where: str, findings: list[Finding]) -> JsonObject:
    if isinstance(entry, dict):
        return entry
    what = f"{shown(entry)} is not a message."
    findings.append(Finding("warning", "no-message", where, what, "It became a text of the user."))
    return {"role": "user", "content": entry if isinstance(entry, str) else as_json(entry)}


def _time(time: Any, where: str, findings: list[Finding]) -> str:
    """Return a time as `clock.stamp` writes it, "" without one; anything else is a finding."""
    if time is None or time == "":
        return ""
    try:
        is_number = isinstance(time, (int, float)) and not isinstance(time, bool)
        return clock.stamp(clock.of_file(time) if is_number else clock.parse(time))
    except (InvalidInput, ValueError, OverflowError, OSError):
        what = f"{shown(time)} is not a time; it was left out."
        findings.append(Finding("warning", "bad-time", where, what, "Write it as 2026-03-01T10:15:00Z."))
        return ""


def _name(value: Any) -> str:
    """Return an id; that of a database may be a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else as_text(value).strip()


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


# --- Texts


def said(conversation: Conversation) -> Iterator[Said]:
    """Yield the texts of a conversation in order: speech, calls of tools and their results."""
    raws = conversation["messages"]
    of_providers = [(index, raw) for index, raw in enumerate(raws) if raw.get("role") not in _TOOL_ROLES]
    messages = dict(
        zip((index for index, _ in of_providers), read([raw for _, raw in of_providers]), strict=True)
    )
    for index, raw in enumerate(raws):
        if index in messages:
            yield from _texts(index, messages[index])
        elif text := without_escapes(as_text(raw.get("content"))).strip():
            tool = as_text(as_object(raw.get("metadata")).get("tool_name"))
            yield Said(index, _TOOL_ROLES[raw["role"]], text, tool, is_protected(raw))


def _texts(index: int, message: Message) -> Iterator[Said]:
    protected = is_protected(message.raw)
    for block in message.blocks:
        if block.kind == "text" and block.text.strip():
            speaker: Speaker = message.role if message.role != "tool" else "tool_result"
            text = block.text if protected else clean(block.text)
            if text:
                yield Said(index, speaker, text, "", protected)
        elif block.kind == "call" and block.text.strip():
            text = without_escapes(block.text).strip()
            yield Said(index, "tool_call", text, block.tool, protected, block.call_id)
        elif block.kind == "result" and block.text.strip():
            text = without_escapes(block.text).strip()
            answers = [] if protected else answers_in(text)
            refused = block.is_error and is_refusal(text)
            speaker_of_result: Speaker = "user" if answers else "tool_result"
            text = "\n".join(" ".join(answer.split()) for answer in answers) or text
            yield Said(index, speaker_of_result, text, block.tool, protected, block.call_id, refused)
            if refused and (words := words_of_refusal(text)):
                yield Said(index, "user", words, block.tool, protected, block.call_id, refused)


def is_protected(raw: JsonObject) -> bool:
    """Return whether the flag of a message protects it, in `meta` or in `metadata`."""
    flags = [as_object(raw.get(key)).get("protected") for key in (META, "metadata")]
    return any(flag.strip().lower() in _YES if isinstance(flag, str) else bool(flag) for flag in flags)


def kept_texts(conversation: Conversation) -> list[str]:
    """Return the texts that are in every level: protected messages, goals and locked decisions, each once.

    Goals are those of `goals` or `metadata.goals`: texts, or objects as in the document `goals`.
    """
    texts: list[str] = []
    for listed in (conversation["given"].get("goals"), conversation["metadata"].get("goals")):
        for goal in _as_list(listed):
            fields = as_object(goal)
            texts.append(goal if isinstance(goal, str) else as_text(fields.get("description")))
            decisions = map(as_object, _as_list(fields.get("decisions")))
            texts += [
                as_text(decision.get("description")) for decision in decisions if decision.get("locked")
            ]
    for text in said(conversation):
        if text.protected:
            texts.append(text.text)
        elif text.speaker in ("user", "assistant"):
            texts += [match[0].strip() for match in _MARKED.finditer(text.text)]
    return list(dict.fromkeys(filter(None, texts)))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []
