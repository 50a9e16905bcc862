"""Shapes of the archive: levels, conversations as they are given, what is said in them, and the archive file.

A conversation is a plain object. Its messages are the very objects that were given, in the format of any provider, and
`given` has every other field as it was, so that `given_conversation` returns the object that was read. Reading never
refuses a conversation because of a time, a title or a message: each such fault is a finding.
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
from aether.text.regex import lazy
from aether.types import DETAILS, Detail, Finding, JsonObject

Level = Detail
LEVELS = DETAILS

Speaker = Literal["user", "assistant", "system", "tool_call", "tool_result"]
Conversation = JsonObject
"""`id`, `title`, `created_at`, `updated_at`, `session_id`, `total_messages`, `total_tokens`, `metadata`, `messages`,
`times` (one for each message, "" if it has none), `kept` (texts that are in every level) and `given`. One that was
read back from the archive has `known`, too: the metadata and facts of it that were measured when there was more."""

UNTITLED = "untitled"
# A title is one line of a list.
TITLE_CHARS = 200
FIRST_CHARS = 80
_TIME_KEYS = ("timestamp", "created_at", "at", "time")
_BY_TOOL: dict[str, Speaker] = {"tool_call": "tool_call", "tool_result": "tool_result"}
_YES = frozenset({"1", "on", "true", "y", "yes"})
# The line by which a decision is locked, or a goal is named (prompts/goal.md).
_MARKED = lazy(
    r"^.{0,20}\[\s*(?:DECISION\s*\].*[-–—:(\s]LOCKED\b|GOAL\s*\]).*$", re.IGNORECASE | re.MULTILINE
)


class Said(NamedTuple):
    """One text of a conversation, without what programs wrote around it.

    What a person answered through a tool is theirs, a line for each question with its answer, and so are the words with
    which they refused a call; these have a `call_id`.
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
        """Return whether it is what a person answered through a tool."""
        return self.speaker == "user" and bool(self.call_id) and not self.refused


class Source(TypedDict):
    """Where an archived conversation came from."""

    kind: Literal["conversation", "file", "dict"]
    name: str


class Grace(TypedDict):
    """The fuller form that can still be restored exactly, until the given time."""

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
    found = next((one for one in LEVELS if one == name), None)
    if found is None:
        raise InvalidInput(
            f"{shown(name)} is not a level.", fix=f"Use one of {', '.join(LEVELS)}.", where="level"
        )
    return found


def read_conversation(
    raw: JsonObject, *, where: str = "conversation", times: Sequence[str] | None = None
) -> tuple[Conversation, list[Finding]]:
    """Return the conversation in `raw`, and a finding for each field of it that cannot be used.

    `raw` has the keys of a `Conversation`, of which only `messages` are needed, or those of a request body. `times` are
    those of its messages, if they are not in them. `raw` itself is never changed, nor shared with the result.

    Raises:
        InvalidInput: it is not an object, or its messages are not a list.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("messages"), (list, tuple)):
        what = f"{shown(raw)} is not a conversation."
        raise InvalidInput(what, fix='Give an object with a list "messages".', where=where)
    found: list[Finding] = []
    given = encodable(_as_json(encodable(raw), where, found))
    messages = [_message(one, f"{where}.messages[{at}]", found) for at, one in enumerate(given["messages"])]
    given["messages"] = None  # keeps its place among the keys
    read_times = [
        _time(given_at, f"{where}.messages[{at}].timestamp", found)
        for at, given_at in enumerate(_given_times(messages, times))
    ]
    known = [one for one in read_times if one]
    created = _time(given.get("created_at"), f"{where}.created_at", found) or min(known, default="")
    updated = _time(given.get("updated_at"), f"{where}.updated_at", found)
    if not (created or updated):
        found.append(
            Finding("warning", "no-time", where, "No time in it can be read.", "Give it a created_at.")
        )
    name = _name(given.get("id")) or f"conversation_{_digest(given | {'messages': messages})}"
    metadata = as_object(given.get("metadata"))
    conversation: Conversation = {
        "id": name,
        "title": " ".join(as_text(given.get("title")).split())[:TITLE_CHARS],
        "created_at": created,
        "updated_at": updated,
        "session_id": _name(given.get("session_id")) or name,
        "total_messages": len(messages),
        "total_tokens": _number(given.get("total_tokens"))
        or sum(_number(one.get("token_count")) for one in messages),
        "metadata": metadata,
        "messages": messages,
        "times": read_times,
        "kept": [],
        "given": given,
    }
    conversation["kept"] = kept_texts(conversation)
    conversation["title"] = conversation["title"] or _first_words(conversation)
    return conversation, found


def given_conversation(content: JsonObject) -> JsonObject:
    """Return the object that was read, of the content of an archive file at level `full`."""
    return {
        key: content["messages"] if key == "messages" else value for key, value in content["given"].items()
    }


def conversation_of(archived: ArchivedConversation | JsonObject) -> Conversation:
    """Return the conversation in an archive file, as far as its level has it."""
    content = archived["content"]
    if "given" in content:
        raw = given_conversation(content)
    else:
        texts = [{"role": "assistant", "content": content["summary"]}] if content.get("summary") else []
        raw = {"messages": content.get("messages", texts)}
    fields = {key: archived[key] for key in ("id", "title", "created_at", "updated_at")}
    conversation, _ = read_conversation(fields | raw, where=archived["id"], times=content.get("times"))
    kept = content.get("kept", [])
    conversation |= fields | {
        "kept": list(dict.fromkeys([*kept, *conversation["kept"]])),
        "known": {"metadata": archived["metadata"], **archived["metrics"]},
    }
    return conversation


def times_are_inside(conversation: Conversation) -> bool:
    """Return whether the messages themselves have the times of a conversation."""
    return all(any(one.get(key) for key in _TIME_KEYS) for one in conversation["messages"]) or not any(
        conversation["times"]
    )


def said(conversation: Conversation) -> Iterator[Said]:
    """Yield the texts of a conversation in order: speech, calls of tools and their results."""
    raws = conversation["messages"]
    others = [(at, raw) for at, raw in enumerate(raws) if raw.get("role") not in _BY_TOOL]
    messages = dict(zip((at for at, _ in others), read([raw for _, raw in others]), strict=True))
    for at, raw in enumerate(raws):
        if at in messages:
            yield from _texts(at, messages[at])
        elif text := without_escapes(as_text(raw.get("content"))).strip():
            name = as_text(as_object(raw.get("metadata")).get("tool_name"))
            yield Said(at, _BY_TOOL[raw["role"]], text, name, is_protected(raw))


def is_protected(raw: JsonObject) -> bool:
    """Return whether the flag of a message protects it, in `meta` or in `metadata`."""
    for key in (META, "metadata"):
        flag = as_object(raw.get(key)).get("protected")
        if flag.strip().lower() in _YES if isinstance(flag, str) else bool(flag):
            return True
    return False


def kept_texts(conversation: Conversation) -> list[str]:
    """Return the texts that are in every level: protected messages, goals and locked decisions, each once.

    Goals are those of `goals` or `metadata.goals`: texts, or objects as in the document `goals`.
    """
    found: list[str] = []
    for one in (
        *_listed(conversation["given"].get("goals")),
        *_listed(conversation["metadata"].get("goals")),
    ):
        fields = as_object(one)
        found.append(one if isinstance(one, str) else as_text(fields.get("description")))
        decided = (as_object(each) for each in _listed(fields.get("decisions")))
        found.extend(as_text(each.get("description")) for each in decided if each.get("locked"))
    for text in said(conversation):
        if text.protected:
            found.append(text.text)
        elif text.speaker in ("user", "assistant"):
            found.extend(marked[0].strip() for marked in _MARKED.finditer(text.text))
    return list(dict.fromkeys(filter(None, found)))


def _first_words(conversation: Conversation) -> str:
    """Return the first words of a person, as the title of a conversation without one."""
    first = next((one.text for one in said(conversation) if one.speaker == "user"), "")
    return shorten(first[:TITLE_CHARS], FIRST_CHARS, placeholder="…") or UNTITLED


def _texts(at: int, message: Message) -> Iterator[Said]:
    protected = is_protected(message.raw)
    for block in message.blocks:
        if block.kind == "text" and block.text.strip():
            speaker: Speaker = message.role if message.role != "tool" else "tool_result"
            text = block.text if protected else clean(block.text)
            if text:
                yield Said(at, speaker, text, "", protected)
        elif block.kind in ("call", "result") and block.text.strip():
            by: Speaker = "tool_call" if block.kind == "call" else "tool_result"
            text = without_escapes(block.text).strip()
            answers = answers_in(text) if by == "tool_result" and not protected else []
            refused = by == "tool_result" and block.is_error and is_refusal(text)
            if answers:
                by, text = "user", "\n".join(" ".join(one.split()) for one in answers)
            yield Said(at, by, text, block.tool, protected, block.call_id, refused)
            if refused and (words := words_of_refusal(text)):
                yield Said(at, "user", words, block.tool, protected, block.call_id, refused)


def _as_json(value: Any, where: str, found: list[Finding]) -> Any:
    """Return a copy of `value` that can be written as JSON; what cannot becomes text, and a finding."""
    if isinstance(value, dict):
        return {str(key): _as_json(one, f"{where}.{key}", found) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(one, f"{where}[{at}]", found) for at, one in enumerate(value)]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, date):
        return value.isoformat()
    found.append(Finding("warning", "no-json", where, f"{shown(value)} is no JSON.", "It was kept as text."))
    return str(value)


def _message(given: Any, where: str, found: list[Finding]) -> JsonObject:
    if isinstance(given, dict):
        return given
    found.append(
        Finding(
            "warning",
            "no-message",
            where,
            f"{shown(given)} is not a message.",
            "It became a text of the user.",
        )
    )
    return {"role": "user", "content": given if isinstance(given, str) else as_json(given)}


def _given_times(messages: Sequence[JsonObject], times: Sequence[str] | None) -> list[Any]:
    if times is not None:
        return [times[at] if at < len(times) else None for at in range(len(messages))]
    return [next((one[key] for key in _TIME_KEYS if one.get(key)), None) for one in messages]


def _time(given: Any, where: str, found: list[Finding]) -> str:
    """Return a time as `clock.stamp` writes it, "" without one; what is no time is a finding."""
    if given is None or given == "":
        return ""
    try:
        is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
        return clock.stamp(clock.of_file(given) if is_number else clock.parse(given))
    except (InvalidInput, ValueError, OverflowError, OSError):
        what = f"{shown(given)} is not a time; it was left out."
        found.append(Finding("warning", "bad-time", where, what, "Write it as 2026-03-01T10:15:00Z."))
        return ""


def _name(given: Any) -> str:
    """Return an id; that of a database may be a number."""
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else as_text(given).strip()


def _digest(given: JsonObject) -> str:
    return sha256(as_json(given).encode()).hexdigest()[:16]


def _number(given: Any) -> int:
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else 0


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given] if given else []
