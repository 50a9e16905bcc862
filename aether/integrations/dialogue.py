"""What a conversation of the context manager is made of: messages with a type and a weight, and budgets.

The names and numbers are those of requirement 001. A message's importance is worked out when it is asked for, so
that it fades with time; what a caller says about a message is never overwritten by what its words look like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, get_args

from aether import clock
from aether.errors import InvalidInput, shown
from aether.ids import new_id
from aether.shapes import JsonObject

MessageRole = Literal["user", "assistant", "system", "tool_call", "tool_result"]
MessageType = Literal["instruction", "question", "response", "system", "context", "error"]
ROLES: tuple[str, ...] = get_args(MessageRole)
KINDS: tuple[str, ...] = get_args(MessageType)
SUMMARY_ID = "compressed_summary"

# Words that make a message of a user an instruction (requirement 001), as words: "prefix" is none.
_INSTRUCTION = re.compile(r"\b(?:please|help|create|implement|fix)\b", re.IGNORECASE)
_CODE = re.compile(r"```|\b(?:def|class) ")
# Priorities by kind, and what is added for it; importance fades to a tenth over a day (requirement 001).
_PRIORITY: dict[str, float] = {"instruction": 0.8, "question": 0.6, "context": 0.4, "system": 0.9, "response": 0.5, "error": 0.5}  # fmt: skip
_ADDED: dict[str, float] = {"instruction": 0.3, "system": 0.3, "question": 0.2}
PERMANENT, LONG, LONG_TOKENS = 0.4, 0.1, 100
DAY_SECONDS, LEAST_RECENCY = 86_400, 0.1
TELLING_CHARS, TELLING_FACTOR, CODE_FACTOR = 50, 1.2, 1.3


class MessageMetadata(NamedTuple):
    """What is known about a message beside its text."""

    source: str = "conversation"
    message_type: MessageType = "context"
    priority: float = 0.5
    context_tags: tuple[str, ...] = ()
    is_permanent: bool = False
    """Whether no compression may change it."""
    tool_name: str | None = None
    model_used: str | None = None


_NOTHING_SAID = MessageMetadata()


def _stripped(content: Any) -> str:
    text = content.strip() if isinstance(content, str) else ""
    if not text:
        raise InvalidInput(
            f"Message content cannot be empty, got {shown(content)}.", fix="Give it text.", where="content"
        )
    return text


@dataclass(frozen=True)
class Message:
    """One message; `Message(role="user", content="test")` is enough.

    Raises:
        InvalidInput: the content is empty, or a value is out of range.
    """

    role: str
    content: str
    id: str = field(default_factory=lambda: new_id("msg", clock.now()))
    timestamp: datetime = field(default_factory=clock.now)
    token_count: int = 0
    metadata: MessageMetadata = _NOTHING_SAID

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", _stripped(self.content))
        if self.timestamp.tzinfo is None:
            object.__setattr__(self, "timestamp", self.timestamp.replace(tzinfo=UTC))
        _require(self.role in ROLES, "role", self.role, f"one of {', '.join(ROLES)}")
        _require(
            self.metadata.message_type in KINDS, "message_type", self.metadata.message_type, f"one of {', '.join(KINDS)}"
        )  # fmt: skip
        _require(0 <= self.metadata.priority <= 1, "priority", self.metadata.priority, "from 0 to 1")

    @property
    def importance_score(self) -> float:
        """Return its importance now."""
        return importance(self, now=clock.now())


def _require(holds: bool, name: str, value: Any, wanted: str) -> None:
    if not holds:
        raise InvalidInput(f"{name} must be {wanted}, got {shown(value)}.", fix="Correct it.", where=name)


def classified(
    role: str, content: str, given: Mapping[str, Any] | MessageMetadata | None = None
) -> MessageMetadata:
    """Return the metadata of a new message: what its role and words say, under what the caller gave.

    Raises:
        InvalidInput: the caller gave an unknown field.

    >>> classified("user", "The helper crashed").message_type, classified("user", "Fix it?").message_type
    ('context', 'instruction')
    """
    if isinstance(given, MessageMetadata):
        return given
    values = dict(given or {})
    unknown = values.keys() - set(MessageMetadata._fields)
    _require(not unknown, "metadata", sorted(unknown), f"of {', '.join(MessageMetadata._fields)}")
    kind = values.setdefault("message_type", _kind(role, content))
    if role not in ("tool_call", "tool_result"):
        values.setdefault("priority", _PRIORITY.get(kind, 0.5))
    values.setdefault("is_permanent", role == "system")
    return MessageMetadata(**{**values, "context_tags": tuple(values.get("context_tags", ()))})


def _kind(role: str, content: str) -> MessageType:
    if role == "system":
        return "system"
    if role == "assistant":
        return "response"
    if role == "user":
        return "instruction" if _INSTRUCTION.search(content) else "question" if "?" in content else "context"
    return "context"


def importance(message: Message, *, now: datetime) -> float:
    """Return how much a message matters at `now`, from 0 to 1."""
    metadata = message.metadata
    score = min(1.0, metadata.priority + _ADDED.get(metadata.message_type, 0.0))
    if metadata.is_permanent:
        score = min(1.0, score + PERMANENT)
    if message.token_count > LONG_TOKENS:
        score = min(1.0, score + LONG)
    # A clock that runs ahead must not make a message more than new.
    age = max(0.0, (now - message.timestamp).total_seconds())
    score *= max(LEAST_RECENCY, 1 - age / DAY_SECONDS)
    if message.role == "user" and len(message.content) > TELLING_CHARS:
        score *= TELLING_FACTOR
    if message.role == "assistant" and _CODE.search(message.content):
        score *= CODE_FACTOR
    return min(1.0, score)


@dataclass
class ContextBudget:
    """Tokens that a context may have, and how many it has."""

    max_tokens: int
    used_tokens: int = 0
    compression_threshold: float = 0.7
    safety_margin: int = 100

    @property
    def available_tokens(self) -> int:
        """Return how many more tokens there is room for."""
        return max(0, self.max_tokens - self.used_tokens - self.safety_margin)

    @property
    def over_tokens(self) -> int:
        """Return by how many tokens it is over."""
        return max(0, self.used_tokens - self.max_tokens)

    @property
    def usage_percentage(self) -> float:
        """Return the share that is used, at most 1; `over_tokens` says what is beyond."""
        return min(1.0, self.used_tokens / self.max_tokens) if self.max_tokens else 0.0

    @property
    def should_compress(self) -> bool:
        """Return whether the threshold is reached."""
        return self.usage_percentage >= self.compression_threshold

    def add_tokens(self, tokens: int) -> None:
        """Count `tokens` as used."""
        self.used_tokens += max(0, tokens)

    def remove_tokens(self, tokens: int) -> None:
        """Count `tokens` as free again."""
        self.used_tokens = max(0, self.used_tokens - tokens)

    def reset(self) -> None:
        """Count nothing as used."""
        self.used_tokens = 0


class ContextWindow(NamedTuple):
    """What a model is sent, and how full it makes the window."""

    messages: tuple[Message, ...]
    budget: ContextBudget
    compressed_summary: str | None = None
    original_token_count: int = 0
    """Tokens of the whole conversation."""


@dataclass
class ConversationMetadata:
    """What is known about a conversation beside its messages."""

    session_id: str
    title: str | None = None
    created_at: datetime = field(default_factory=clock.now)
    last_active: datetime = field(default_factory=clock.now)
    model_history: list[str] = field(default_factory=list)
    context_window_size: int = 4096


@dataclass
class Conversation:
    """All messages under one id, the oldest first; compression takes none of them away."""

    id: str
    metadata: ConversationMetadata
    messages: list[Message] = field(default_factory=list)

    def add_message(self, message: Message) -> None:
        """Append a message."""
        self.messages.append(message)
        self.metadata.last_active = message.timestamp

    def get_messages_by_role(self, role: str) -> list[Message]:
        """Return the messages of a role."""
        return [message for message in self.messages if message.role == role]

    def get_recent_messages(self, count: int = 10) -> list[Message]:
        """Return the newest `count` messages in order."""
        return self.messages[-count:] if count > 0 else []

    def get_message_range(self, start: int, end: int) -> list[Message]:
        """Return the messages from `start` up to `end`, which is left out."""
        return self.messages[start:end]

    def clear_messages(self, keep_system: bool = True) -> None:
        """Take all messages away, but those of the system if `keep_system`."""
        self.messages = self.get_messages_by_role("system") if keep_system else []

    @property
    def total_tokens(self) -> int:
        """Return the tokens of all its messages."""
        return sum(message.token_count for message in self.messages)


def raw_of(message: Message, earlier: Sequence[JsonObject] = ()) -> JsonObject:
    """Return a message as a plain one, with what is known about it under `meta`.

    A `tool_call` has its text as arguments; a `tool_result` answers the oldest open call of its tool in `earlier`.

    Raises:
        InvalidInput: it is a result and no call is open.
    """
    meta = {
        "id": message.id,
        "at": clock.stamp(message.timestamp),
        "tokens": message.token_count,
        **message.metadata._asdict(),
        "context_tags": list(message.metadata.context_tags),
    }
    if message.metadata.is_permanent:
        meta["protected"] = True
    if message.role == "tool_call":
        function = {"name": message.metadata.tool_name or "tool", "arguments": message.content}
        call = {"id": message.id, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call], "meta": meta}
    if message.role == "tool_result":
        call_id = _answered(message, earlier)
        return {"role": "tool", "tool_call_id": call_id, "content": message.content, "meta": meta}
    return {"role": message.role, "content": message.content, "meta": meta}


def _answered(message: Message, earlier: Sequence[JsonObject]) -> str:
    closed = {raw["tool_call_id"] for raw in earlier if raw["role"] == "tool"}
    calls = [raw["tool_calls"][0] for raw in earlier if raw.get("tool_calls")]
    tool = message.metadata.tool_name
    for call in calls:
        if call["id"] not in closed and tool in (None, call["function"]["name"]):
            return str(call["id"])
    raise InvalidInput(
        "a tool_result answers a tool_call, and none is open.", fix="Add the call first.", where=message.id
    )


def message_of(raw: JsonObject) -> Message:
    """Return the message that `raw_of` made `raw` of, with the text that stands there now."""
    meta = raw["meta"]
    calls = raw.get("tool_calls")
    content = calls[0]["function"]["arguments"] if calls else raw["content"]
    values = {name: meta[name] for name in MessageMetadata._fields}
    metadata = MessageMetadata(**{**values, "context_tags": tuple(meta["context_tags"])})
    role = "tool_call" if calls else "tool_result" if raw["role"] == "tool" else raw["role"]
    return Message(role, content, meta["id"], clock.parse(meta["at"]), meta["tokens"], metadata)
