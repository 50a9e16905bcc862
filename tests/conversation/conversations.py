"""Conversations for the tests of facts, written the way a reader takes them in: one short call per message."""

from __future__ import annotations

from itertools import count

from aether.conversation.facts import facts_in
from aether.conversation.progress import Conversation
from aether.conversation.readings import Reading
from aether.messages.convert import read
from aether.messages.model import Message

_IDS = count()


def user(text: str) -> list[dict]:
    return [{"role": "user", "content": text}]


def model(text: str) -> list[dict]:
    return [{"role": "assistant", "content": text}]


def tool(name: str, answer: str | None = "ok", *, failed: bool = False, **arguments: object) -> list[dict]:
    """Return a call and its result; without an answer only the call."""
    call = f"call_{next(_IDS)}"
    use = {"type": "tool_use", "id": call, "name": name, "input": arguments}
    messages = [{"role": "assistant", "content": [use]}]
    if answer is None:
        return messages
    result = {"type": "tool_result", "tool_use_id": call, "content": answer, "is_error": failed}
    return [*messages, {"role": "user", "content": [result]}]


def bash(command: str, answer: str | None = "ok", *, failed: bool = False) -> list[dict]:
    return tool("Bash", answer, failed=failed, command=command)


def conversation(*parts: list[dict]) -> list[Message]:
    return read([raw for part in parts for raw in part], "anthropic")


def conversation_of(messages):
    """Return the messages as read once, without redaction."""
    return Conversation([Reading(message, None) for message in messages])


def facts_of(messages, positions):
    return facts_in(conversation_of(messages), positions)
