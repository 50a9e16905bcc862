"""ShareGPT: conversations of a training set, each turn with `from` and `value`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text, is_failure_text
from aether.messages.records import Record
from aether.messages.sources.reader import Skip, call, first_text, objects, of_values, result, said

_ROLES = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant", "bard": "assistant",
    "bing": "assistant", "system": "system", "function_call": "call", "observation": "result", "tool": "result",
    "function_response": "result",
}  # fmt: skip
_LISTS = ("conversations", "conversation", "items")


def holds(value: Any) -> bool:
    """Return whether `value` is a conversation, or a list of conversations or of turns."""
    return bool(_turns(value)) or (isinstance(value, list) and any(map(_turns, value)))


def _turns(value: Any) -> list[Any]:
    """Return the turns of a conversation; none if it is no such."""
    listed = value if isinstance(value, list) else next(
        (value[key] for key in _LISTS if isinstance(value.get(key), list)), None
    ) if isinstance(value, dict) else None  # fmt: skip
    turns = objects(listed)
    is_turn = bool(turns) and {"from", "value"} <= turns[0].keys() and as_text(turns[0]["from"]) in _ROLES
    return turns if is_turn else []


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of each conversation."""
    conversations = [value] if _turns(value) else value
    for index, entry in enumerate(conversations):
        about = as_object(entry)
        name = first_text(about.get("id"), about.get("conversation_id")) or f"conversation {index + 1}"
        head = Record("system", session=name)
        if as_text(about.get("system")):
            yield head._replace(text=about["system"])
        call_id = ""
        for number, turn in enumerate(_turns(entry)):
            role, text = _ROLES.get(as_text(turn.get("from")), ""), as_text(turn.get("value"))
            if role == "call":
                wanted, call_id = as_arguments(text), f"{name}/{number}"
                arguments = as_arguments(wanted.get("arguments", wanted))
                yield call(head, wanted.get("name"), arguments, call_id)
            elif role == "result":
                yield result(head, call_id, text, is_error=is_failure_text(text))
            elif role:
                yield from said(head, role, text)
            else:
                skip(f"turns of {turn.get('from')}")


records = of_values(read, holds)
