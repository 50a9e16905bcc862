"""The rules of OpenAI Responses items: calls and outputs by `call_id`, reasoning and what it led to, item ids.

Any type that ends in `_call` or `_output` and has a `call_id` is one side of a pair: there are many, and
more come. Items that the provider runs itself have no `call_id` and stand alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aether.errors import shown
from aether.messages.checks.openai import function_faults
from aether.shapes import Finding, JsonObject

ROLES = frozenset({"user", "assistant", "system", "developer"})
# Types of an item that have to name the call they are or answer.
PAIRED = frozenset({"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"})
KNOWN = PAIRED | {"message", "reasoning", "item_reference", "compaction", "compaction_trigger"}
GIVEN = frozenset({"input_text", "input_image", "input_file", "input_audio"})
SAID = frozenset({"output_text", "refusal"})
ID_CHARS = 64


def findings(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, item by item, then pairs, reasoning and ids."""
    for at, raw in enumerate(raws):
        yield from _item(raw, f"input[{at}]")
    yield from _pairs(raws)
    yield from _reasoning(raws)
    yield from _ids(raws)


def kind_of(raw: JsonObject) -> str:
    """Return the type of an item; a message need not name it."""
    kind = raw.get("type", "message" if "role" in raw else None)
    return kind if isinstance(kind, str) else ""


def is_call(raw: JsonObject) -> bool:
    """Tell whether an item is a call that the caller has to answer."""
    return kind_of(raw).endswith("_call") and isinstance(raw.get("call_id"), str)


def is_output(raw: JsonObject) -> bool:
    """Tell whether an item answers a call."""
    return kind_of(raw).endswith("_output") and isinstance(raw.get("call_id"), str)


def is_said(raw: JsonObject) -> bool:
    """Tell whether an item came from the model."""
    kind = kind_of(raw)
    if kind == "message":
        return raw.get("role") == "assistant"
    return (
        bool(kind) and not kind.endswith("_output") and kind not in ("compaction_trigger", "item_reference")
    )


def _item(raw: JsonObject, where: str) -> Iterator[Finding]:
    kind = kind_of(raw)
    if "meta" in raw:
        yield Finding("error", "unknown-field", where, "meta: no field of an item.", "Leave it out.")
    if not kind:
        yield Finding("error", "bad-block", where, f"{shown(raw)} is no item.", "Give it a type or a role.")
    elif kind not in KNOWN and not kind.endswith(("_call", "_output")):
        yield Finding(
            "warning", "unknown-block", where, f"{shown(kind)} is no known type of item.", "Check it."
        )
    match kind:
        case "message":
            yield from _message(raw, where)
        case "reasoning" if not isinstance(raw.get("summary"), list):
            yield Finding("error", "bad-block", where, "Reasoning without its summary.", "Give a list.")
        case "item_reference" if not isinstance(raw.get("id"), str):
            yield Finding("error", "bad-id", where, "A reference without an id.", "Drop it.")
        case "function_call":
            yield from function_faults(raw, where)
        case "function_call_output" if not isinstance(raw.get("output"), (str, list)):
            yield Finding(
                "error",
                "empty-content",
                where,
                f"The output is {shown(raw.get('output'))}.",
                "Give text or parts.",
            )
    if kind in PAIRED and (
        not isinstance(raw.get("call_id"), str) or not 0 < len(raw["call_id"]) <= ID_CHARS
    ):
        yield Finding(
            "error",
            "bad-id",
            where,
            f"{shown(raw.get('call_id'))} is no call_id.",
            f"Use 1 to {ID_CHARS} characters.",
        )


def _message(raw: JsonObject, where: str) -> Iterator[Finding]:
    role, content = raw.get("role"), raw.get("content")
    if not isinstance(role, str) or role not in ROLES:
        yield Finding(
            "error",
            "bad-role",
            where,
            f"{shown(role)} is no role.",
            "Use user, assistant, system or developer.",
        )
    if not isinstance(content, (str, list)):
        yield Finding("error", "empty-content", where, f"Content is {shown(content)}.", "Give text or parts.")
    elif not content and isinstance(content, list):
        yield Finding("warning", "empty-content", where, "Content is an empty list.", "Drop the message.")
    for number, part in enumerate(content if isinstance(content, list) else []):
        yield from _part(part, role, f"{where}.content[{number}]")


def _part(part: Any, role: Any, where: str) -> Iterator[Finding]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        yield Finding("error", "bad-block", where, f"{shown(part)} is no content part.", "Give it a type.")
    elif kind not in GIVEN | SAID:
        yield Finding(
            "warning", "unknown-block", where, f"{shown(kind)} is no known type of part.", "Check it."
        )
    elif kind in (GIVEN if role == "assistant" else SAID):
        yield Finding(
            "error", "wrong-role", where, f"{kind} cannot stand in a message of role {shown(role)}.",
            "Use output_text for the assistant, input_text else.",
        )  # fmt: skip
    elif kind.endswith("_text") and not isinstance(part.get("text"), str):
        yield Finding("error", "bad-block", where, f"The text is {shown(part.get('text'))}.", "Give text.")


def _pairs(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    waiting: dict[str, list[int]] = {}
    answered: set[str] = set()
    later = {raw["call_id"]: at for at, raw in enumerate(raws) if is_call(raw)}
    for at, raw in enumerate(raws):
        if is_call(raw):
            yield from _repeated(raw["call_id"], f"input[{at}]", waiting, answered)
            waiting.setdefault(raw["call_id"], []).append(at)
        elif is_output(raw):
            key = raw["call_id"]
            if waiting.get(key):
                waiting[key].pop()
                answered.add(key)
            else:
                yield _unexpected(
                    key, f"input[{at}]", known=later.get(key, -1) > at, answered=key in answered
                )
    tail = response_at_the_end(raws)
    for at in sorted(at for found in waiting.values() for at in found):
        yield _unanswered(raws[at]["call_id"], f"input[{at}]", waiting=at >= tail)


def response_at_the_end(raws: Sequence[JsonObject]) -> int:
    """Return where the last response begins, if nothing but outputs comes after it; else the length."""
    at = len(raws)
    while at and is_output(raws[at - 1]):
        at -= 1
    after = at
    while at and is_said(raws[at - 1]):
        at -= 1
    return at if at < after else len(raws)


def _repeated(key: str, where: str, waiting: dict[str, list[int]], answered: set[str]) -> Iterator[Finding]:
    if waiting.get(key):
        yield Finding(
            "error",
            "repeated-id",
            where,
            f"Another call with the call_id {shown(key)} waits for its output.",
            "Rename one.",
        )
    elif key in answered:
        yield Finding(
            "warning",
            "repeated-id",
            where,
            f"An earlier call has the call_id {shown(key)}.",
            "Rename it, and its output.",
        )


def _unexpected(key: str, where: str, *, known: bool, answered: bool) -> Finding:
    if known:
        return Finding(
            "error",
            "interleaved-result",
            where,
            f"The output comes before its call {shown(key)}.",
            "Put it after its call.",
        )
    if answered:
        return Finding(
            "error", "repeated-result", where, f"The call {shown(key)} has an output already.", "Drop one."
        )
    return Finding("error", "orphan-result", where, f"There is no call {shown(key)}.", "Drop it.")


def _unanswered(key: str, where: str, *, waiting: bool) -> Finding:
    if waiting:
        return Finding(
            "warning",
            "dangling-call",
            where,
            f"The call {shown(key)} waits for its output.",
            "Run it, and append the output.",
        )
    return Finding(
        "error", "missing-result", where, f"The call {shown(key)} has no output.", "Answer or drop it."
    )


def _reasoning(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    for at, raw in enumerate(raws):
        if kind_of(raw) == "reasoning" and not (at + 1 < len(raws) and is_said(raws[at + 1])):
            yield Finding(
                "error",
                "dangling-reasoning",
                f"input[{at}]",
                "Reasoning without the item it led to.",
                "Drop it.",
            )


def _ids(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    seen: set[str] = set()
    for at, raw in enumerate(raws):
        key = raw.get("id")
        if isinstance(key, str) and key in seen:
            yield Finding(
                "error",
                "repeated-id",
                f"input[{at}]",
                f"Another item has the id {shown(key)}.",
                "Leave the id out.",
            )
        elif isinstance(key, str):
            seen.add(key)
