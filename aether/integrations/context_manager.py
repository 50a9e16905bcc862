"""The context manager of requirement 001: whole conversations, and of each what fits a model's window.

From a share of the window on, what is old is summarised, what matters of the middle stays, and all that is recent
stays word for word, as do the opening request and what is permanent. The conversation itself is never shortened: a
model with a larger window is sent more of it, one with a smaller window less, each time from the same messages. With
a home, conversations outlive the process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from aether.compaction.plan import apply, plan
from aether.compaction.policies import policy
from aether.compaction.shapes import Policy
from aether.errors import BudgetExceeded, Conflict, InvalidInput, shown
from aether.integrations.dialogue import (
    SUMMARY_ID,
    ContextBudget,
    ContextWindow,
    Conversation,
    ConversationMetadata,
    Message,
    MessageMetadata,
    classified,
    message_of,
    raw_of,
)
from aether.messages import formats
from aether.operations import compacting, conversing
from aether.operations.compaction_case import Options
from aether.shapes import Counter, JsonObject
from aether.tokens.counters import ESTIMATE, counter
from aether.tokens.messages import message_tokens
from aether.tokens.profiles import profile
from aether.tokens.tally import Tally, tally

__all__ = ["ContextBudget", "ContextManager", "ContextWindow", "Conversation", "Message", "MessageMetadata"]

# Tokens that stay free beside a context (requirement 001), and the most of a small window that they may be.
SAFETY_MARGIN, MOST_MARGIN = 100, 0.1
SUMMARY_PRIORITY = 0.8
# Where a threshold is lowered, the target must follow, or every message would compress again.
TARGET_OF_THRESHOLD = 0.7
# With fewer messages that may go there is nothing to compress (requirement 001).
LEAST_MESSAGES = 3
# How much of which messages a summary in words shows (requirement 001).
RECENT, RECENT_CHARS = 3, 100
PLAIN_RECENT, PLAIN_RECENT_CHARS = 5, 80


@dataclass
class _Raws:
    """Messages as they are sent, and what they cost."""

    raws: list[JsonObject]
    sums: Tally


@dataclass
class _Held:
    """One conversation: all of it, and the context as it was last compressed."""

    conversation: Conversation
    whole: _Raws
    context: _Raws


class ContextManager:
    """Conversations and what of them is sent.

    Raises:
        InvalidInput: the size or the threshold is out of range.
    """

    def __init__(
        self,
        default_context_size: int = 4096,
        compression_threshold: float = 0.7,
        *,
        home: str | PathLike[str] | None = None,
        count: Counter | None = None,
    ) -> None:
        if default_context_size < 1:
            raise _wrong("default_context_size", default_context_size, "at least 1")
        if not 0 < compression_threshold <= 1:
            raise _wrong("compression_threshold", compression_threshold, "above 0 and at most 1")
        self.default_context_size = default_context_size
        self.compression_threshold = compression_threshold
        self._home = home
        self._count = count or counter(ESTIMATE)
        self._conversations: dict[str, _Held] = {}

    def create_conversation(
        self, conversation_id: str, model_context_size: int | None = None
    ) -> Conversation:
        """Return a new conversation for windows of `model_context_size` tokens.

        Raises:
            Conflict: there is one of that id; it stays as it is.
        """
        if self._find(conversation_id) is not None:
            raise Conflict(
                f"there is a conversation {shown(conversation_id)}.",
                fix="Use it, or delete it first.",
                where="context",
            )
        return self._create(conversation_id, model_context_size).conversation

    def add_message(
        self,
        conversation_id: str,
        role: str,
        content: str,
        metadata: Mapping[str, Any] | MessageMetadata | None = None,
    ) -> Message:
        """Return the new message, added to the conversation, which is made where it is missing.

        Where the context reaches the threshold it is compressed; the conversation keeps every message.

        Raises:
            InvalidInput: the role, the content or the metadata cannot be.
        """
        message = Message(role, content, metadata=classified(role, content, metadata))
        held = self._find(conversation_id)
        raw = raw_of(message, held.whole.raws if held else ())
        tokens = message_tokens(formats.message(raw, "plain"), self._count)
        message = replace(message, token_count=tokens)
        raw["meta"]["tokens"] = tokens
        held = held or self._create(conversation_id, None)
        self._store(conversation_id, [raw])
        held.conversation.add_message(message)
        held.whole.raws.append(raw)
        held.context.raws.append(raw)
        with contextlib.suppress(BudgetExceeded):  # it is stored; whoever asks for the context is told
            self._compress(held, self._policy(), force=False)
        return message

    def get_context_for_model(
        self, conversation_id: str, model_key: str | None = None, max_tokens: int | None = None
    ) -> list[Message]:
        """Return what fits the window of a model, in order: the whole conversation, or the context, or less.

        `max_tokens` overrides the window that the model is known to have; without both it is the conversation's own.
        Add the message that is to be answered first: it is part of what is counted.

        Raises:
            BudgetExceeded: what must stay does not fit; nothing too large is ever returned.
        """
        held = self._find(conversation_id)
        if held is None:
            return []
        window = (
            max_tokens
            if max_tokens is not None
            else _size(held)
            if model_key is None
            else profile(model_key).window
        )
        if model_key is not None and held.conversation.metadata.model_history[-1:] != [model_key]:
            held.conversation.metadata.model_history.append(model_key)
        return [self._message(raw) for raw in self._view(held, window)]

    def compress_conversation(self, conversation_id: str, target_ratio: float = 0.5) -> bool:
        """Return whether the context was compressed to at most `target_ratio` of its tokens.

        Raises:
            InvalidInput: the ratio is not between 0 and 1.
        """
        if not 0 < target_ratio < 1:
            raise _wrong("target_ratio", target_ratio, "between 0 and 1")
        held = self._find(conversation_id)
        if held is None:
            return False
        free = [raw for raw in held.context.raws if not raw.get("meta", {}).get("protected")]
        if len(free) < LEAST_MESSAGES:
            return False
        target = target_ratio * self._counted(held.context).total / _size(held)
        chosen = self._policy()
        chosen = chosen._replace(target=min(target, chosen.trigger * TARGET_OF_THRESHOLD))
        try:
            return self._compress(held, chosen, force=True)
        except BudgetExceeded:
            return False

    def estimate_tokens(self, text: str) -> int:
        """Return about how many tokens `text` has."""
        return self._count(text)

    def get_conversation_summary(self, conversation_id: str) -> str | None:
        """Return what the conversation is about: its summary and its newest messages; None where it is empty."""
        held = self._find(conversation_id)
        if held is None or not held.conversation.messages:
            return None
        found = _summary(held)
        count, chars = (RECENT, RECENT_CHARS) if found else (PLAIN_RECENT, PLAIN_RECENT_CHARS)
        recent = "; ".join(
            f"{message.role}: {message.content[:chars]}"
            for message in held.conversation.get_recent_messages(count)
        )
        return f"{found} | Recent: {recent}" if found else recent

    def get_window(self, conversation_id: str) -> ContextWindow | None:
        """Return the context, its budget and its summary; None for an unknown conversation."""
        held = self._find(conversation_id)
        if held is None:
            return None
        messages = tuple(self._message(raw) for raw in held.context.raws)
        found = _summary(held)
        whole = held.conversation.total_tokens
        return ContextWindow(messages, self._budget(held), found or None, whole)

    def clear_conversation(self, conversation_id: str, keep_system: bool = True) -> None:
        """Take the messages of a conversation away, but those of the system if `keep_system`."""
        held = self._find(conversation_id)
        if held is None:
            return
        held.conversation.clear_messages(keep_system)
        kept = [raw for raw in held.whole.raws if keep_system and raw["role"] == "system"]
        held.whole.raws[:] = held.context.raws[:] = kept
        if self._home is not None:
            conversing.begin_anew(conversation_id, home=self._home)
            self._store(conversation_id, kept)

    def delete_conversation(self, conversation_id: str) -> bool:
        """Return whether there was such a conversation; it is no longer used. What is in a home stays there."""
        known = self._find(conversation_id) is not None
        if known and self._home is not None:
            conversing.begin_anew(conversation_id, home=self._home)
        self._conversations.pop(conversation_id, None)
        return known

    def list_conversations(self) -> list[str]:
        """Return the ids of all conversations that have messages or were created here, sorted."""
        stored = conversing.names(home=self._home) if self._home is not None else []
        return sorted({*self._conversations, *(name for name in stored if self._find(name))})

    def get_conversation_stats(self, conversation_id: str) -> JsonObject:
        """Return the numbers of a conversation and its context; nothing for an unknown one."""
        held = self._find(conversation_id)
        if held is None:
            return {}
        conversation, budget = held.conversation, self._budget(held)
        times = [message.timestamp for message in conversation.messages]
        roles = [message.role for message in conversation.messages]
        return {
            "conversation_id": conversation_id,
            "total_messages": len(conversation.messages),
            "total_tokens": conversation.total_tokens,
            "session_duration": (max(times) - min(times)).total_seconds() if times else 0.0,
            "messages_by_role": {role: roles.count(role) for role in dict.fromkeys(roles)},
            "context_usage_percentage": budget.usage_percentage,
            "context_should_compress": budget.should_compress,
            "context_compressed": bool(_summary(held)),
            "context_tokens_used": budget.used_tokens,
            "context_tokens_max": budget.max_tokens,
            "context_tokens_over": budget.over_tokens,
        }

    def _create(self, conversation_id: str, size: int | None) -> _Held:
        if not (isinstance(conversation_id, str) and conversation_id):
            raise _wrong("conversation_id", conversation_id, "a text that is not empty")
        size = self.default_context_size if size is None else size
        if size < 1:
            raise _wrong("model_context_size", size, "at least 1")
        nothing = tally([], wire="plain", count=self._count)
        metadata = ConversationMetadata(conversation_id, context_window_size=size)
        held = _Held(Conversation(conversation_id, metadata), _Raws([], nothing), _Raws([], nothing))
        self._conversations[conversation_id] = held
        return held

    def _find(self, conversation_id: str) -> _Held | None:
        """Return a conversation: the one held, else the one in the home."""
        if conversation_id in self._conversations or self._home is None:
            return self._conversations.get(conversation_id)
        context = conversing.context(conversation_id, home=self._home)
        if not context:
            return None
        held = self._create(conversation_id, None)
        held.context.raws[:] = context
        held.whole.raws[:] = conversing.since_begun(conversation_id, home=self._home)
        for raw in held.whole.raws:
            held.conversation.add_message(message_of(raw))
        return held

    def _store(self, conversation_id: str, raws: Sequence[JsonObject]) -> None:
        if self._home is not None:
            conversing.add(conversation_id, raws, home=self._home)

    def _policy(self) -> Policy:
        window = policy("window")
        target = min(window.target, TARGET_OF_THRESHOLD * self.compression_threshold)
        return window._replace(trigger=self.compression_threshold, target=target, reserve=SAFETY_MARGIN)

    def _counted(self, held: _Raws) -> Tally:
        held.sums = tally(held.raws, wire="plain", count=self._count, before=held.sums)
        return held.sums

    def _budget(self, held: _Held) -> ContextBudget:
        used = self._counted(held.context).total
        return ContextBudget(_size(held), used, self.compression_threshold, SAFETY_MARGIN)

    def _compress(self, held: _Held, chosen: Policy, *, force: bool) -> bool:
        """Put the compressed context in the place of the present one; return whether there is another one now."""
        raws = held.context.raws
        if self._home is None:
            raws = self._smaller(held.context, chosen, _size(held), force=force)
        else:
            ask = compacting.compact if force else compacting.preflight
            raws = ask(
                held.conversation.id, raws, window=_size(held), policy=chosen, wire="plain", home=self._home,
                options=Options(counter=self._count),
            ).messages  # fmt: skip
        changed = raws != held.context.raws
        held.context.raws[:] = raws
        return changed

    def _smaller(self, held: _Raws, chosen: Policy, window: int, *, force: bool = False) -> list[JsonObject]:
        sums = self._counted(held)
        done = plan(sums.messages, chosen, self._count, window=window, tokens=sums.tokens, force=force)
        if not done.triggered:
            return held.raws
        return [message.raw for message in apply(done, None).messages]

    def _view(self, held: _Held, window: int) -> list[JsonObject]:
        """Return the most of the conversation that fits a window: all of it, else its context, else less."""
        limit = window - min(SAFETY_MARGIN, int(MOST_MARGIN * window))
        for known in (held.whole, held.context):
            if self._counted(known).total <= limit:
                return known.raws
        chosen = self._policy()._replace(reserve=window - limit)
        chosen = chosen._replace(trigger=min(chosen.trigger, limit / window))
        return self._smaller(held.context, chosen, window)

    def _message(self, raw: JsonObject) -> Message:
        """Return a message of a context; its summary as one of the system's."""
        if "meta" in raw:
            return message_of(raw)
        metadata = MessageMetadata("compression", "system", priority=SUMMARY_PRIORITY, is_permanent=True)
        tokens = message_tokens(formats.message(raw, "plain"), self._count)
        return Message("system", raw["content"], SUMMARY_ID, token_count=tokens, metadata=metadata)


def _size(held: _Held) -> int:
    return held.conversation.metadata.context_window_size


def _summary(held: _Held) -> str:
    """Return the text of the summary in the context; empty where there is none."""
    return next((str(raw["content"]) for raw in held.context.raws if "meta" not in raw), "")


def _wrong(name: str, value: object, wanted: str) -> InvalidInput:
    return InvalidInput(f"{name} must be {wanted}, got {shown(value)}.", fix="Correct it.", where=name)
