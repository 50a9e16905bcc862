"""Mai's context manager: whole conversations, and of each a context that fits a model's window.

From a share of the window on, old messages are summarised, important ones of the middle stay, and the recent ones, the
opening request and permanent messages stay word for word. The conversation itself is never shortened: each model's
context is made from the same messages. Conversations are those of a home, so that they outlive the process and several
processes may use one; each call first reads what the others have added. A message's importance is computed on demand, so that it fades
with time; metadata of the caller is never overwritten by a guess from the words.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
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


@public_methods
class ContextManager:
    """Conversations and their contexts.

    `compression_threshold` is a share of the window, or a percentage: 0.7 and 70 are the same. Without a `home` one is made
    that is removed with the manager. `exporter` gets the `window.*` events; by default they go where the configuration of
    the home sends events.

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
        if home is None:
            scratch = tempfile.mkdtemp(prefix="aether-contexts-")
            weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
            home = Path(scratch) / conversations.RECORD_NAME
        self.home = conversations.record_directory(home)
        self._count = count or counter(ESTIMATE)
        self._about: dict[str, ConversationMetadata] = {}
        self._readings: dict[str, conversations.LoadedConversation] = {}
        self._exporter = exporter or exporter_of(self.home)

    def create_conversation(
        self, conversation_id: str, model_context_size: int | None = None
    ) -> Conversation:
        """Return a new conversation for windows of `model_context_size` tokens.

        Raises:
            Conflict: there is one with that id; it stays as it is.
        """
        if conversation_id in self._about or self._find(conversation_id) is not None:
            what = f"there is a conversation {shown(conversation_id)}."
            raise Conflict(what, fix="Use it, or delete it first.", where="context")
        return Conversation(conversation_id, self._metadata(conversation_id, model_context_size))

    def add_message(
        self, conversation_id: str, role: str, content: str,
        metadata: Mapping[str, Any] | MessageMetadata | None = None,
    ) -> Message:  # fmt: skip
        """Return the new message, added to the conversation, which is created if it is missing.

        A context that reaches the threshold is compressed; the conversation keeps every message.

        Raises:
            InvalidInput: the role, the content or the metadata is invalid.
        """
        self._metadata(conversation_id)
        # Content that is no text is refused by `Message`, whose error names it.
        message = Message(
            role, content, metadata=classify(role, content if isinstance(content, str) else "", metadata)
        )
        raw = raw_of(message, self._now(conversation_id).whole)
        tokens = message_tokens(convert.message(raw, "plain"), self._count)
        message = replace(message, token_count=tokens)
        raw["meta"]["tokens"] = tokens
        conversations.add_messages(conversation_id, [raw], home=self.home)
        stored = self._now(conversation_id)
        self._emit(
            stored,
            partial(events.message_added, message_id=message.id, role=role, tokens=message.token_count),
        )
        self._emit(stored, partial(events.budget, should_compress=self._budget(stored).should_compress))
        with contextlib.suppress(BudgetExceeded):  # it is stored; get_context_for_model raises
            self._compress(stored, self._policy(), force=False)
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
        stored = self._find(conversation_id)
        if stored is None:
            return []
        window = max_tokens
        if window is None and model_key is not None:
            counting_of_model = counting(model_key, place=self.home)
            warn_once(counting_of_model.findings)
            window = counting_of_model.profile.window if counting_of_model.profile else None
        if model_key is not None and stored.metadata.model_history[-1:] != [model_key]:
            stored.metadata.model_history.append(model_key)
        return self._messages(self._view(stored, stored.size if window is None else window))

    def compress_conversation(self, conversation_id: str, target_ratio: float = 0.5) -> bool:
        """Return whether the context was compressed to at most `target_ratio` of its tokens.

        Raises:
            InvalidInput: the ratio is not between 0 and 1.
        """
        _require(0 < target_ratio < 1, "target_ratio", target_ratio, "between 0 and 1")
        stored = self._find(conversation_id)
        if stored is None:
            return False
        free = [raw for raw in stored.context if not raw.get("meta", {}).get("protected")]
        if len(free) < LEAST_MESSAGES:
            return False
        target = target_ratio * self._tally(stored.context).total / stored.size
        chosen = self._policy()
        chosen = chosen._replace(target=min(target, chosen.trigger * TARGET_OF_THRESHOLD))
        try:
            return self._compress(stored, chosen, force=True)
        except BudgetExceeded:
            return False

    def estimate_tokens(self, text: str) -> int:
        """Return an estimate of the tokens of `text`."""
        return self._count(text)

    def get_conversation_summary(self, conversation_id: str) -> str | None:
        """Return its summary and its newest messages as one text; None for an empty conversation."""
        stored = self._find(conversation_id)
        if stored is None or not stored.whole:
            return None
        summary = _summary(stored.context)
        number, chars = (RECENT, RECENT_CHARS) if summary else (PLAIN_RECENT, PLAIN_RECENT_CHARS)
        newest = map(message_of, stored.whole[-number:])
        recent = "; ".join(f"{message.role}: {message.content[:chars]}" for message in newest)
        return f"{summary} | Recent: {recent}" if summary else recent

    def get_window(self, conversation_id: str) -> ContextWindow | None:
        """Return the context, its budget and its summary; None for an unknown conversation."""
        stored = self._find(conversation_id)
        if stored is None:
            return None
        messages = tuple(self._messages(stored.context))
        total = stored.conversation.total_tokens
        return ContextWindow(messages, self._budget(stored), _summary(stored.context) or None, total)

    def clear_conversation(self, conversation_id: str, keep_system: bool = True) -> None:
        """Remove the messages of a conversation, except those of the system if `keep_system`."""
        stored = self._find(conversation_id)
        if stored is not None:
            remaining = [raw for raw in stored.whole if keep_system and raw["role"] == "system"]
            conversations.clear_context(conversation_id, home=self.home)
            conversations.add_messages(conversation_id, remaining, home=self.home)

    def delete_conversation(self, conversation_id: str) -> bool:
        """Drop a conversation, and return whether it existed; its history stays."""
        existed = self._find(conversation_id) is not None
        conversations.clear_context(conversation_id, home=self.home)
        self._about.pop(conversation_id, None)
        return existed

    def list_conversations(self) -> list[str]:
        """Return the ids of all conversations that have messages or were created here, sorted."""
        stored = conversations.conversation_ids(home=self.home)
        return sorted({*self._about, *(name for name in stored if self._find(name))})

    def get_conversation_stats(self, conversation_id: str) -> JsonObject:
        """Return the numbers of a conversation and its context; empty for an unknown one."""
        stored = self._find(conversation_id)
        if stored is None:
            return {}
        conversation, budget = stored.conversation, self._budget(stored)
        times = [message.timestamp for message in conversation.messages]
        roles = [message.role for message in conversation.messages]
        return {
            "conversation_id": conversation_id, "total_messages": len(conversation.messages),
            "total_tokens": conversation.total_tokens,
            "session_duration": (max(times) - min(times)).total_seconds() if times else 0.0,
            "messages_by_role": {role: roles.count(role) for role in dict.fromkeys(roles)},
            "context_usage_percentage": budget.usage_percentage,
            "context_should_compress": budget.should_compress, "context_compressed": bool(_summary(stored.context)),
            "context_tokens_used": budget.used_tokens, "context_tokens_max": budget.max_tokens,
            "context_tokens_over": budget.over_tokens,
        }  # fmt: skip

    def _metadata(self, conversation_id: str, size: int | None = None) -> ConversationMetadata:
        """Return what this manager knows of a conversation beside its messages; a new one gets this size."""
        valid = isinstance(conversation_id, str) and bool(conversation_id)
        _require(valid, "conversation_id", conversation_id, "a text that is not empty")
        size = self.default_context_size if size is None else size
        _require(size >= 1, "model_context_size", size, "at least 1")
        metadata = ConversationMetadata(conversation_id, context_window_size=size)
        return self._about.setdefault(conversation_id, metadata)

    def _find(self, conversation_id: str) -> _Stored | None:
        """Return a conversation as it is now; None if it has no messages and was not created here."""
        reading = conversations.follow(conversation_id, self._readings.get(conversation_id), home=self.home)
        self._readings[conversation_id] = reading
        if not reading.said and conversation_id not in self._about:
            return None
        metadata = self._metadata(conversation_id)
        return _Stored(metadata, [*reading.said.values()], [*reading.context.values()])

    def _now(self, conversation_id: str) -> _Stored:
        """Return a conversation as it is now, empty if it is new."""
        return self._find(conversation_id) or _Stored(self._metadata(conversation_id), [], [])

    def _policy(self) -> Policy:
        window = policy("window")
        target = min(window.target, TARGET_OF_THRESHOLD * self.compression_threshold)
        return window._replace(trigger=self.compression_threshold, target=target, reserve=SAFETY_MARGIN)

    def _tally(self, raws: Sequence[JsonObject]) -> Tally:
        return tally(raws, provider="plain", count=self._count)

    def _budget(self, stored: _Stored) -> ContextBudget:
        used = self._tally(stored.context).total
        return ContextBudget(stored.size, used, self.compression_threshold, SAFETY_MARGIN)

    def _compress(self, stored: _Stored, chosen: Policy, *, force: bool) -> bool:
        """Compress the context, and return whether it changed; another process may change it meanwhile."""
        name, ask = stored.metadata.session_id, compact.compact if force else compact.preflight
        for tries_left in reversed(range(CONFLICT_TRIES)):
            try:
                compaction = ask(
                    name, stored.context, window=stored.size, policy=chosen, wire="plain", home=self.home, repair=False,
                    options=Options(counter=self._count, exporter=self._exporter, unsaved=()),
                )  # fmt: skip
                break
            except Conflict:
                if not tries_left:
                    raise
                stored = self._now(name)
        if compaction.triggered:
            after = self._now(name)
            budget = self._budget(after)
            compressed = partial(
                events.compressed, tokens_before=compaction.tokens_before, tokens_after=budget.used_tokens,
                messages_before=len(stored.context), messages_after=len(after.context),
            )  # fmt: skip
            self._emit(after, compressed)
            self._emit(after, partial(events.budget, should_compress=budget.should_compress))
        return compaction.triggered

    def _emit(self, stored: _Stored, build: Callable[[events.Moment], events.Event]) -> None:
        """Hand the event that `build` makes to the exporter, if any; no failure of it reaches the caller."""
        if self._exporter is not None:
            used = self._tally(stored.context).total
            moment = events.Moment(
                clock.stamp(clock.now()), stored.metadata.session_id, t_est=used, max_tokens=stored.size
            )
            with contextlib.suppress(Exception):
                self._exporter.emit(build(moment))

    def _view(self, stored: _Stored, window: int) -> list[JsonObject]:
        """Return the largest part of the conversation that fits a window: all of it, else its context, else less."""
        limit = window - min(SAFETY_MARGIN, int(MOST_MARGIN * window))
        for raws in (stored.whole, stored.context):
            sums = self._tally(raws)
            if sums.total <= limit:
                return raws
        chosen = self._policy()._replace(reserve=window - limit)
        chosen = chosen._replace(trigger=min(chosen.trigger, limit / window))
        smaller = plan(sums.messages, chosen, self._count, window=window, tokens=sums.tokens)
        return [message.raw for message in apply(smaller, None).messages]

    def _messages(self, raws: Sequence[JsonObject]) -> list[Message]:
        """Return the messages of a context with their present tokens: some are shortened, one is the summary."""
        sizes = self._tally(raws).tokens
        return [
            _summary_message(raw, tokens)
            if _is_summary(raw)
            else replace(message_of(raw), token_count=tokens)
            for raw, tokens in zip(raws, sizes, strict=True)
        ]


class _Stored(NamedTuple):
    """A conversation as the home has it now."""

    metadata: ConversationMetadata
    whole: list[JsonObject]
    context: list[JsonObject]

    @property
    def size(self) -> int:
        return self.metadata.context_window_size

    @property
    def conversation(self) -> Conversation:
        return Conversation(self.metadata.session_id, self.metadata, [*map(message_of, self.whole)])


def _summary_message(raw: JsonObject, tokens: int) -> Message:
    metadata = MessageMetadata("compression", "system", priority=SUMMARY_PRIORITY, is_permanent=True)
    return Message("system", raw["content"], SUMMARY_ID, token_count=tokens, metadata=metadata)


def _summary(raws: Sequence[JsonObject]) -> str:
    """Return the text of the summary in a context; empty without one."""
    return next((str(raw["content"]) for raw in raws if _is_summary(raw)), "")


def _is_summary(raw: JsonObject) -> bool:
    return "meta" not in raw and is_summary(convert.message(raw, "plain"))
