"""The rules of OpenAI Chat Completions: roles, content, tool calls and their tool messages.

Servers that speak the same protocol differ in what else they take; what OpenAI itself answers with a 400
is an error here, what some of them refuse is a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from aether.errors import shown
from aether.shapes import Finding, JsonObject
from aether.text.patterns import lazy

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
FIELDS = frozenset(
    {
        "role",
        "content",
        "name",
        "tool_calls",
        "tool_call_id",
        "refusal",
        "audio",
        "function_call",
        "annotations",
    }
)
NAME = lazy(r"[a-zA-Z0-9_-]{1,64}")
# "Expected a string with maximum length 40."
ID_CHARS = 40
PARTS = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
}
ONLY_TEXT = frozenset({"text"})
KNOWN_PARTS = PARTS["user"] | PARTS["assistant"]


def findings(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, message by message and then calls with their answers."""
    for at, raw in enumerate(raws):
        yield from _message(raw, f"messages[{at}]")
    yield from _pairs(raws)


def calls(raw: JsonObject) -> list[tuple[int, JsonObject]]:
    """Return the calls of a message that are objects, each with its position."""
    found = raw.get("tool_calls") if raw.get("role") == "assistant" else None
    return [
        (at, call)
        for at, call in enumerate(found if isinstance(found, list) else [])
        if isinstance(call, dict)
    ]


def _message(raw: JsonObject, where: str) -> Iterator[Finding]:
    role = raw.get("role")
    if not isinstance(role, str) or role not in ROLES:
        yield Finding(
            "error", "bad-role", where, f"{shown(role)} is no role.", "Use system, user, assistant or tool."
        )
    yield from _fields(raw, where)
    yield from _content(raw, role, where)
    if role == "assistant" and "tool_calls" in raw:
        yield from _calls(raw["tool_calls"], f"{where}.tool_calls")


def _fields(raw: JsonObject, where: str) -> Iterator[Finding]:
    for key in sorted(map(str, raw.keys() - FIELDS)):
        level = "error" if key == "meta" else "warning"
        yield Finding(level, "unknown-field", where, f"{key}: no field of a message.", "Leave it out.")  # type: ignore[arg-type] # a literal of two
    if raw.get("tool_calls") and raw.get("role") != "assistant":
        yield Finding(
            "error", "wrong-role", where, "Only the assistant calls tools.", "Leave tool_calls out."
        )


def _content(raw: JsonObject, role: Any, where: str) -> Iterator[Finding]:
    content = raw.get("content")
    if content is None:
        if not (
            role == "assistant"
            and any(raw.get(key) for key in ("tool_calls", "refusal", "audio", "function_call"))
        ):
            yield Finding(
                "error", "empty-content", where, "Content is null.", "Give text, or drop the message."
            )
    elif isinstance(content, list):
        if not content:
            yield Finding("error", "empty-content", where, "Content is an empty list.", "Drop the message.")
        for number, part in enumerate(content):
            yield from _part(part, role, f"{where}.content[{number}]")
    elif not isinstance(content, str):
        yield Finding("error", "bad-block", where, f"Content is {shown(content)}.", "Give text or parts.")


def _part(part: Any, role: Any, where: str) -> Iterator[Finding]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        yield Finding("error", "bad-block", where, f"{shown(part)} is no content part.", "Give it a type.")
    elif kind not in KNOWN_PARTS:
        yield Finding(
            "warning", "unknown-block", where, f"{shown(kind)} is no known type of part.", "Check it."
        )
    elif isinstance(role, str) and role in ROLES and kind not in PARTS.get(role, ONLY_TEXT):
        yield Finding(
            "error",
            "wrong-role",
            where,
            f"{kind} cannot stand in a message of role {role}.",
            "Move or drop it.",
        )
    elif kind == "text" and not isinstance(part.get("text"), str):
        yield Finding("error", "bad-block", where, f"The text is {shown(part.get('text'))}.", "Give text.")


def _calls(found: Any, where: str) -> Iterator[Finding]:
    if not isinstance(found, list) or not found:
        yield Finding("error", "empty-calls", where, f"tool_calls is {shown(found)}.", "Leave it out.")
        return
    seen = set()
    for number, call in enumerate(found):
        place = f"{where}[{number}]"
        if not isinstance(call, dict):
            yield Finding("error", "bad-block", place, f"{shown(call)} is no call.", "Drop it.")
            continue
        key = call.get("id")
        if not isinstance(key, str) or not key or len(key) > ID_CHARS:
            yield Finding(
                "error",
                "bad-id",
                place,
                f"{shown(key)} is no id of a call.",
                f"Use 1 to {ID_CHARS} characters.",
            )
        elif key in seen:
            yield Finding(
                "error",
                "repeated-id",
                place,
                f"Another call of this message has the id {shown(key)}.",
                "Rename one.",
            )
        else:
            seen.add(key)
        yield from _function(call, place)


def _function(call: JsonObject, where: str) -> Iterator[Finding]:
    kind = call.get("type")
    if kind == "custom":
        return
    function = call.get("function")
    if kind != "function" or not isinstance(function, dict):
        yield Finding(
            "error", "bad-block", where, "The call is not of a function.", "Give type and function."
        )
        return
    yield from function_faults(function, where)


def function_faults(function: JsonObject, where: str) -> Iterator[Finding]:
    """Yield what is wrong with the name and the arguments of a call, which OpenAI's two interfaces share."""
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Finding(
            "error",
            "bad-name",
            where,
            f"{shown(name)} is no name of a function.",
            "Use letters, digits, _ and -.",
        )
    if not isinstance(arguments, str):
        yield Finding(
            "error", "bad-arguments", where, f"The arguments are {shown(arguments)}.", "Give JSON as text."
        )
    elif not parses(arguments):
        yield Finding("warning", "bad-arguments", where, "The arguments are not JSON.", "Check the call.")


def parses(text: str) -> bool:
    """Tell whether `text` is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _pairs(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    used: dict[Any, str] = {}
    asked: dict[str, str] = {}
    answered: set[str] = set()
    known = {call.get("id") for raw in raws for _, call in calls(raw) if isinstance(call.get("id"), str)}
    for at, raw in enumerate(raws):
        if raw.get("role") == "tool":
            yield from _answer(raw, f"messages[{at}]", asked, answered, known)
            continue
        yield from _missing(asked, answered, waiting=False)
        asked, answered = {}, set()
        for number, call in calls(raw):
            if isinstance(key := call.get("id"), str):
                asked[key] = f"messages[{at}].tool_calls[{number}]"
        for key, where in asked.items():
            if key in used:
                yield Finding(
                    "warning",
                    "repeated-id",
                    where,
                    f"{used[key]} has the id {shown(key)} too.",
                    "Rename one, and its result.",
                )
            used[key] = where
    yield from _missing(asked, answered, waiting=True)


def _answer(
    raw: JsonObject, where: str, asked: dict[str, str], answered: set[str], known: set[Any]
) -> Iterator[Finding]:
    key = raw.get("tool_call_id")
    if not isinstance(key, str):
        yield Finding("error", "bad-id", where, f"tool_call_id is {shown(key)}.", "Name the call.")
    elif key in answered:
        yield Finding(
            "error", "repeated-result", where, f"The call {shown(key)} has a result already.", "Drop one."
        )
    elif key in asked:
        answered.add(key)
    elif key in known:
        yield Finding(
            "error", "interleaved-result", where, f"Something stands between the call {shown(key)} and this.",
            "Put it after its call.",
        )  # fmt: skip
    else:
        yield Finding("error", "orphan-result", where, f"There is no call {shown(key)}.", "Drop it.")


def _missing(asked: dict[str, str], answered: set[str], *, waiting: bool) -> Iterator[Finding]:
    for key, where in asked.items():
        if key in answered:
            continue
        if waiting:
            yield Finding(
                "warning", "dangling-call", where, f"The call {shown(key)} waits for its result.",
                "Run it, and append the result.",
            )  # fmt: skip
        else:
            yield Finding(
                "error", "missing-result", where, f"The call {shown(key)} is not answered before the next message.",
                "Answer or drop it.",
            )  # fmt: skip
