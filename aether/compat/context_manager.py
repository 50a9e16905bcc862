"""Mai's context manager: whole conversations, and of each a context that fits a model's window.

From a share of the window on, old messages are summarised, important ones of the middle stay, and the recent ones, the
opening request and permanent messages stay word for word. The conversation itself is never shortened: each model's
context is made from the same messages. With a home, conversations outlive the process, and several processes may use
one: each call first reads what the others have added. A message's importance is computed on demand, so that it fades
with time; metadata of the caller is never overwritten by a guess from the words.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from typing import Any, Literal, NamedTuple, get_args

from aether import clock
from aether.api import compact, conversations
from aether.api.compact import Options
from aether.api.telemetry import exporter_of
from aether.api.tokens import counting, warn_once
from aether.clock import new_id
from aether.conversation.plan import apply, plan
from aether.conversation.policy import policy
from aether.conversation.shapes import Policy
from aether.conversation.summary import is_summary
from aether.errors import BudgetExceeded, Conflict, InvalidInput, public_methods, shown
from aether.events import events
from aether.events.events import Exporter
from aether.messages import convert
from aether.tokens.count import Tally, message_tokens, tally
from aether.tokens.counters import ESTIMATE, counter
from aether.types import Counter, JsonObject

MessageRole = Literal["user", "assistant", "system", "tool_call", "tool_result"]
MessageType = Literal["instruction", "question", "response", "system", "context", "error"]
ROLES: tuple[str, ...] = get_args(MessageRole)
KINDS: tuple[str, ...] = get_args(MessageType)
SUMMARY_ID = "compressed_summary"

# Words that make a message of a user an instruction (as Mai has them), as whole words: not "prefix".
_INSTRUCTION = re.compile(r"\b(?:please|help|create|implement|fix)\b", re.IGNORECASE)
_CODE = re.compile(r"```|\b(?:def|class) ")
# Priorities by kind, and what is added for it; importance fades to a tenth over a day (as Mai has them).
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
        text = self.content.strip() if isinstance(self.content, str) else ""
        if not text:
            raise InvalidInput(
                f"Message content cannot be empty, got {shown(self.content)}.",
                fix="Give it text.",
                where="content",
            )
        object.__setattr__(self, "content", text)
        if self.timestamp.tzinfo is None:
            object.__setattr__(self, "timestamp", self.timestamp.replace(tzinfo=UTC))
        _require(self.role in ROLES, "role", self.role, f"one of {', '.join(ROLES)}")
        _require(
            self.metadata.message_type in KINDS, "message_type", self.metadata.message_type, f"one of {', '.join(KINDS)}"
        )  # fmt: skip
        _require(0 <= self.metadata.priority <= 1, "priority", self.metadata.priority, "from 0 to 1")

    @property
    def importance_score(self) -> float:
        """Return its present importance."""
        return importance(self, now=clock.now())


def _require(holds: bool, name: str, value: Any, wanted: str) -> None:
    if not holds:
        raise InvalidInput(f"{name} must be {wanted}, got {shown(value)}.", fix="Correct it.", where=name)


def classify(
    role: str, content: str, given: Mapping[str, Any] | MessageMetadata | None = None
) -> MessageMetadata:
    """Return the metadata of a new message: the caller's values, and guesses from role and words for the rest.

    Raises:
        InvalidInput: the caller gave an unknown field.

    >>> classify("user", "The helper crashed").message_type, classify("user", "Fix it?").message_type
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
    """Return the importance of a message at `now`, from 0 to 1."""
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
    """Tokens that a context may have, and those that it has."""

    max_tokens: int
    used_tokens: int = 0
    compression_threshold: float = 0.7
    safety_margin: int = 100

    @property
    def available_tokens(self) -> int:
        """Return the number of free tokens."""
        return max(0, self.max_tokens - self.used_tokens - self.safety_margin)

    @property
    def over_tokens(self) -> int:
        """Return the number of tokens above the maximum."""
        return max(0, self.used_tokens - self.max_tokens)

    @property
    def usage_percentage(self) -> float:
        """Return the used share, at most 1; `over_tokens` has the rest."""
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
    """The messages for a model, and how far they fill its window."""

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
    """All messages under one id, the oldest first; compression removes none of them."""

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
        """Remove all messages, except those of the system if `keep_system`."""
        self.messages = self.get_messages_by_role("system") if keep_system else []

    @property
    def total_tokens(self) -> int:
        """Return the tokens of all its messages."""
        return sum(message.token_count for message in self.messages)


def raw_of(message: Message, earlier: Sequence[JsonObject] = ()) -> JsonObject:
    """Return a message in the plain format, with its metadata under `meta`.

    A `tool_call` has its text as arguments; a `tool_result` answers the oldest open call of its tool in `earlier`.

    Raises:
        InvalidInput: it is a result and no call is open.
    """
    meta = {
        "id": message.id, "at": clock.stamp(message.timestamp), "tokens": message.token_count,
        **message.metadata._asdict(), "context_tags": list(message.metadata.context_tags),
    }  # fmt: skip
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
    """Return the message that `raw_of` has turned into `raw`, with its present text, or one that others added."""
    meta = raw.get("meta")
    if not isinstance(meta, dict) or not {"id", "at", "tokens"} <= meta.keys():
        return _foreign(raw)
    calls = raw.get("tool_calls")
    content = calls[0]["function"]["arguments"] if calls else raw["content"]
    values = {name: meta[name] for name in MessageMetadata._fields}
    metadata = MessageMetadata(**{**values, "context_tags": tuple(meta["context_tags"])})
    role = "tool_call" if calls else "tool_result" if raw["role"] == "tool" else raw["role"]
    return Message(role, content, meta["id"], clock.parse(meta["at"]), meta["tokens"], metadata)


def _foreign(raw: JsonObject) -> Message:
    """Return a message that another surface of the home added."""
    text = "\n".join(block.text for block in convert.message(raw, "plain").blocks if block.text)
    text = text.strip() or json.dumps(raw, ensure_ascii=False)
    role = "tool_result" if raw.get("role") == "tool" else raw.get("role")
    role = role if role in ROLES else "user"
    digest = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).hexdigest()[:16]
    return Message(role, text, f"msg_{digest}", metadata=classify(role, text))


# How often a context is compressed again because another process changed the conversation meanwhile.
CONFLICT_TRIES = 8
# Mai writes thresholds as percentages, too.
MOST_PERCENT = 100
# Tokens that stay free beside a context (as Mai has them), and the largest share of a small window for them.
SAFETY_MARGIN, MOST_MARGIN = 100, 0.1
SUMMARY_PRIORITY = 0.8
# Where a threshold is lowered, the target must follow, or every message would compress again.
TARGET_OF_THRESHOLD = 0.7
# With fewer removable messages nothing is compressed (as Mai has them).
LEAST_MESSAGES = 3
# The messages that a summary in words shows, and the characters of each (as Mai has them).
RECENT, RECENT_CHARS = 3, 100
PLAIN_RECENT, PLAIN_RECENT_CHARS = 5, 80


@dataclass
class _Raws:
    """Messages in the sent form, and their tokens."""

    raws: list[JsonObject]
    sums: Tally


@dataclass
class _Held:
    """One conversation: all of it, and its context since the last compression."""

    conversation: Conversation
    whole: _Raws
    context: _Raws
    read: conversations.Reading | None = None
    """The state of the home that this is; None without a home."""


@public_methods
class ContextManager:
    """Conversations and their contexts.

    `compression_threshold` is a share of the window, or a percentage: 0.7 and 70 are the same. `exporter` gets the
    `window.*` events; by default they go where the configuration of the home sends events.

    Raises:
        InvalidInput: the size or the threshold is out of range.
    """

    def __init__(
        self, default_context_size: int = 4096, compression_threshold: float = 0.7, *,
        home: str | PathLike[str] | None = None, count: Counter | None = None, exporter: Exporter | None = None,
    ) -> None:  # fmt: skip
        if 1 < compression_threshold <= MOST_PERCENT:
            compression_threshold /= MOST_PERCENT
        _require(default_context_size >= 1, "default_context_size", default_context_size, "at least 1")
        _require(
            0 < compression_threshold <= 1, "compression_threshold", compression_threshold, "above 0 and at most 1"
        )  # fmt: skip
        self.default_context_size = default_context_size
        self.compression_threshold = compression_threshold
        self._home = home
        self._count = count or counter(ESTIMATE)
        self._conversations: dict[str, _Held] = {}
        self._exporter = exporter
        if exporter is None and home is not None:
            self._exporter = exporter_of(conversations.record_directory(home))

    def create_conversation(
        self, conversation_id: str, model_context_size: int | None = None
    ) -> Conversation:
        """Return a new conversation for windows of `model_context_size` tokens.

        Raises:
            Conflict: there is one with that id; it stays as it is.
        """
        if self._find(conversation_id) is not None:
            raise Conflict(
                f"there is a conversation {shown(conversation_id)}.",
                fix="Use it, or delete it first.",
                where="context",
            )
        return self._create(conversation_id, model_context_size).conversation

    def add_message(
        self, conversation_id: str, role: str, content: str,
        metadata: Mapping[str, Any] | MessageMetadata | None = None,
    ) -> Message:  # fmt: skip
        """Return the new message, added to the conversation, which is created if it is missing.

        A context that reaches the threshold is compressed; the conversation keeps every message.

        Raises:
            InvalidInput: the role, the content or the metadata is invalid.
        """
        # Content that is no text is refused by `Message`, whose error names it.
        message = Message(
            role, content, metadata=classify(role, content if isinstance(content, str) else "", metadata)
        )
        entry = self._find(conversation_id)
        raw = raw_of(message, entry.whole.raws if entry else ())
        tokens = message_tokens(convert.message(raw, "plain"), self._count)
        message = replace(message, token_count=tokens)
        raw["meta"]["tokens"] = tokens
        entry = entry or self._create(conversation_id, None)
        if self._home is not None:
            self._store(conversation_id, [raw])
            entry = self._find(conversation_id) or entry
        else:
            entry.conversation.add_message(message)
            entry.whole.raws.append(raw)
            entry.context.raws.append(raw)
        before = self._budget(entry)
        self._emit(
            entry, partial(events.message_added, message_id=message.id, role=role, tokens=message.token_count)
        )
        self._emit(entry, partial(events.budget, should_compress=before.should_compress))
        with contextlib.suppress(BudgetExceeded):  # it is stored; get_context_for_model raises
            self._compress(entry, self._policy(), force=False)
        return message

    def get_context_for_model(
        self, conversation_id: str, model_key: str | None = None, max_tokens: int | None = None
    ) -> list[Message]:
        """Return messages that fit the window of a model, in order: the whole conversation, or the context, or less.

        `max_tokens` overrides the known window of the model; without both it is the conversation's own. Add the message
        to be answered first, so that it is counted.

        Raises:
            BudgetExceeded: the protected messages do not fit; nothing too large is ever returned.
        """
        entry = self._find(conversation_id)
        if entry is None:
            return []
        window = max_tokens
        if window is None and model_key is not None:
            counting_of_model = counting(model_key, place=conversations.record_directory(self._home))
            warn_once(counting_of_model.findings)
            window = counting_of_model.profile.window if counting_of_model.profile else None
        window = _size(entry) if window is None else window
        if model_key is not None and entry.conversation.metadata.model_history[-1:] != [model_key]:
            entry.conversation.metadata.model_history.append(model_key)
        return self._messages(self._view(entry, window), entry.context.sums)

    def compress_conversation(self, conversation_id: str, target_ratio: float = 0.5) -> bool:
        """Return whether the context was compressed to at most `target_ratio` of its tokens.

        Raises:
            InvalidInput: the ratio is not between 0 and 1.
        """
        _require(0 < target_ratio < 1, "target_ratio", target_ratio, "between 0 and 1")
        entry = self._find(conversation_id)
        if entry is None:
            return False
        free = [raw for raw in entry.context.raws if not raw.get("meta", {}).get("protected")]
        if len(free) < LEAST_MESSAGES:
            return False
        target = target_ratio * self._tally(entry.context).total / _size(entry)
        chosen = self._policy()
        chosen = chosen._replace(target=min(target, chosen.trigger * TARGET_OF_THRESHOLD))
        try:
            return self._compress(entry, chosen, force=True)
        except BudgetExceeded:
            return False

    def estimate_tokens(self, text: str) -> int:
        """Return an estimate of the tokens of `text`."""
        return self._count(text)

    def get_conversation_summary(self, conversation_id: str) -> str | None:
        """Return its summary and its newest messages as one text; None for an empty conversation."""
        entry = self._find(conversation_id)
        if entry is None or not entry.conversation.messages:
            return None
        summary = _summary(entry)
        count, chars = (RECENT, RECENT_CHARS) if summary else (PLAIN_RECENT, PLAIN_RECENT_CHARS)
        recent = "; ".join(
            f"{message.role}: {message.content[:chars]}"
            for message in entry.conversation.get_recent_messages(count)
        )
        return f"{summary} | Recent: {recent}" if summary else recent

    def get_window(self, conversation_id: str) -> ContextWindow | None:
        """Return the context, its budget and its summary; None for an unknown conversation."""
        entry = self._find(conversation_id)
        if entry is None:
            return None
        messages = tuple(self._messages(entry.context.raws, entry.context.sums))
        summary = _summary(entry)
        total = entry.conversation.total_tokens
        return ContextWindow(messages, self._budget(entry), summary or None, total)

    def clear_conversation(self, conversation_id: str, keep_system: bool = True) -> None:
        """Remove the messages of a conversation, except those of the system if `keep_system`."""
        entry = self._find(conversation_id)
        if entry is None:
            return
        remaining = [raw for raw in entry.whole.raws if keep_system and raw["role"] == "system"]
        if self._home is not None:
            conversations.clear_context(conversation_id, home=self._home)
            self._store(conversation_id, remaining)
            self._find(conversation_id)
        else:
            entry.conversation.clear_messages(keep_system)
            entry.whole.raws[:] = entry.context.raws[:] = remaining

    def delete_conversation(self, conversation_id: str) -> bool:
        """Drop a conversation, and return whether it existed; its history in a home stays."""
        existed = self._find(conversation_id) is not None
        if existed and self._home is not None:
            conversations.clear_context(conversation_id, home=self._home)
        self._conversations.pop(conversation_id, None)
        return existed

    def list_conversations(self) -> list[str]:
        """Return the ids of all conversations that have messages or were created here, sorted."""
        stored = conversations.conversation_ids(home=self._home) if self._home is not None else []
        return sorted({*self._conversations, *(name for name in stored if self._find(name))})

    def get_conversation_stats(self, conversation_id: str) -> JsonObject:
        """Return the numbers of a conversation and its context; empty for an unknown one."""
        entry = self._find(conversation_id)
        if entry is None:
            return {}
        conversation, budget = entry.conversation, self._budget(entry)
        times = [message.timestamp for message in conversation.messages]
        roles = [message.role for message in conversation.messages]
        return {
            "conversation_id": conversation_id, "total_messages": len(conversation.messages),
            "total_tokens": conversation.total_tokens,
            "session_duration": (max(times) - min(times)).total_seconds() if times else 0.0,
            "messages_by_role": {role: roles.count(role) for role in dict.fromkeys(roles)},
            "context_usage_percentage": budget.usage_percentage,
            "context_should_compress": budget.should_compress, "context_compressed": bool(_summary(entry)),
            "context_tokens_used": budget.used_tokens, "context_tokens_max": budget.max_tokens,
            "context_tokens_over": budget.over_tokens,
        }  # fmt: skip

    def _create(self, conversation_id: str, size: int | None) -> _Held:
        valid = isinstance(conversation_id, str) and bool(conversation_id)
        _require(valid, "conversation_id", conversation_id, "a text that is not empty")
        size = self.default_context_size if size is None else size
        _require(size >= 1, "model_context_size", size, "at least 1")
        nothing = tally([], provider="plain", count=self._count)
        metadata = ConversationMetadata(conversation_id, context_window_size=size)
        entry = _Held(Conversation(conversation_id, metadata), _Raws([], nothing), _Raws([], nothing))
        self._conversations[conversation_id] = entry
        return entry

    def _find(self, conversation_id: str) -> _Held | None:
        """Return a conversation as it is now: in memory, or in the home, where other processes may have changed it."""
        entry = self._conversations.get(conversation_id)
        if self._home is None:
            return entry
        before = entry.read if entry else None
        reading = conversations.follow(conversation_id, before, home=self._home)
        if entry and reading is before:
            return entry
        if entry is None:
            if not reading.context:
                return None
            entry = self._create(conversation_id, None)
        entry.read = reading
        added = list(reading.said.values())
        same = 0  # messages that are known already stay the same objects
        for old, new in zip(entry.whole.raws, added, strict=False):
            if old is not new:
                break
            same += 1
        del entry.conversation.messages[same:]
        for raw in added[same:]:
            entry.conversation.add_message(message_of(raw))
        entry.whole.raws[:], entry.context.raws[:] = added, list(reading.context.values())
        return entry

    def _store(self, conversation_id: str, raws: Sequence[JsonObject]) -> None:
        if self._home is not None:
            conversations.add_messages(conversation_id, raws, home=self._home)

    def _policy(self) -> Policy:
        window = policy("window")
        target = min(window.target, TARGET_OF_THRESHOLD * self.compression_threshold)
        return window._replace(trigger=self.compression_threshold, target=target, reserve=SAFETY_MARGIN)

    def _tally(self, held: _Raws) -> Tally:
        held.sums = tally(held.raws, provider="plain", count=self._count, before=held.sums)
        return held.sums

    def _budget(self, held: _Held) -> ContextBudget:
        used = self._tally(held.context).total
        return ContextBudget(_size(held), used, self.compression_threshold, SAFETY_MARGIN)

    def _compress(self, held: _Held, chosen: Policy, *, force: bool) -> bool:
        """Replace the context by a compressed one, and return whether it changed."""
        before, size = list(held.context.raws), self._tally(held.context).total
        if self._home is None:
            held.context.raws[:] = self._smaller(held.context, chosen, _size(held), force=force)
            self._emit_compression(held, before, size)
            return held.context.raws != before
        ask = compact.compact if force else compact.preflight
        for tries_left in reversed(range(CONFLICT_TRIES)):
            try:
                compaction = ask(
                    held.conversation.id, held.context.raws, window=_size(held), policy=chosen, wire="plain",
                    home=self._home, repair=False, options=Options(counter=self._count, exporter=self._exporter, unsaved=()),
                )  # fmt: skip
            except Conflict:  # another process removed or compressed messages: what is left is compressed
                self._find(held.conversation.id)
                if not tries_left:
                    raise
            else:
                break
        self._find(held.conversation.id)
        self._emit_compression(held, before, size)
        return compaction.triggered

    def _emit_compression(self, held: _Held, before: Sequence[JsonObject], tokens: int) -> None:
        """Emit the events of a compression from `before`, of so many tokens, if it changed anything."""
        if held.context.raws == before:
            return
        budget = self._budget(held)
        self._emit(
            held,
            partial(
                events.compressed, tokens_before=tokens, tokens_after=budget.used_tokens, messages_before=len(before),
                messages_after=len(held.context.raws),
            ),
        )  # fmt: skip
        self._emit(held, partial(events.budget, should_compress=budget.should_compress))

    def _emit(self, held: _Held, build: Callable[[events.Moment], events.Event]) -> None:
        """Hand the event that `build` makes to the exporter, if any; no failure of it reaches the caller."""
        if self._exporter is not None:
            used, size = self._tally(held.context).total, _size(held)
            at = events.Moment(clock.stamp(clock.now()), held.conversation.id, t_est=used, max_tokens=size)
            with contextlib.suppress(Exception):
                self._exporter.emit(build(at))

    def _smaller(self, held: _Raws, chosen: Policy, window: int, *, force: bool = False) -> list[JsonObject]:
        sums = self._tally(held)
        made = plan(sums.messages, chosen, self._count, window=window, tokens=sums.tokens, force=force)
        if not made.triggered:
            return held.raws
        return [message.raw for message in apply(made, None).messages]

    def _view(self, held: _Held, window: int) -> list[JsonObject]:
        """Return the largest part of the conversation that fits a window: all of it, else its context, else less."""
        limit = window - min(SAFETY_MARGIN, int(MOST_MARGIN * window))
        for candidate in (held.whole, held.context):
            if self._tally(candidate).total <= limit:
                return candidate.raws
        chosen = self._policy()._replace(reserve=window - limit)
        chosen = chosen._replace(trigger=min(chosen.trigger, limit / window))
        return self._smaller(held.context, chosen, window)

    def _messages(self, raws: Sequence[JsonObject], known: Tally) -> list[Message]:
        """Return the messages of a context with their present tokens: some are shortened, one is the summary."""
        sums = tally(raws, provider="plain", count=self._count, before=known).tokens
        return [self._message(raw, tokens) for raw, tokens in zip(raws, sums, strict=True)]

    def _message(self, raw: JsonObject, tokens: int) -> Message:
        """Return a message of a context; its summary as a system message."""
        if not _is_summary(raw):
            return replace(message_of(raw), token_count=tokens)
        metadata = MessageMetadata("compression", "system", priority=SUMMARY_PRIORITY, is_permanent=True)
        return Message("system", raw["content"], SUMMARY_ID, token_count=tokens, metadata=metadata)


def _size(held: _Held) -> int:
    return held.conversation.metadata.context_window_size


def _summary(held: _Held) -> str:
    """Return the text of the summary in the context; empty without one."""
    return next((str(raw["content"]) for raw in held.context.raws if _is_summary(raw)), "")


def _is_summary(raw: JsonObject) -> bool:
    return "meta" not in raw and is_summary(convert.message(raw, "plain"))
