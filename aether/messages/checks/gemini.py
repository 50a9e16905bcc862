"""The rules of Gemini contents: two roles, parts with one datum each, function calls and responses by count.

The API does not join contents: the responses to a content's calls all stand in the very next content. Keys
come in the spelling of the wire (`functionCall`) and in that of the Python SDK (`function_call`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from aether.errors import shown
from aether.shapes import Finding, JsonObject

FIELDS = frozenset({"role", "parts"})
ROLES = frozenset({"user", "model", "function"})
CALL, RESPONSE = ("functionCall", "function_call"), ("functionResponse", "function_response")
DATA = (
    *CALL, *RESPONSE, "text", "inlineData", "inline_data", "fileData", "file_data", "executableCode", "executable_code",
    "codeExecutionResult", "code_execution_result", "toolCall", "tool_call", "toolResponse", "tool_response",
)  # fmt: skip
SIGNATURE = ("thoughtSignature", "thought_signature")


def findings(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, content by content, then turns of calls and responses."""
    for at, raw in enumerate(raws):
        yield from _content(raw, f"contents[{at}]")
    yield from _turns(raws)
    yield from _signatures(raws)
    if raws and raws[0].get("role") == "model":
        yield Finding(
            "warning",
            "first-role",
            "contents[0]",
            "The first content is the model's.",
            "Begin with the user's.",
        )
    if raws and raws[-1].get("role") == "model" and not of(raws[-1], CALL):
        yield Finding(
            "warning", "trailing-assistant", f"contents[{len(raws) - 1}]", "The last content is the model's.",
            "End with the user's.",
        )  # fmt: skip


def of(raw: JsonObject, keys: tuple[str, ...]) -> list[JsonObject]:
    """Return the calls, or the responses, that stand in the parts of a content."""
    parts = raw.get("parts")
    return [
        part[key]
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict)
        for key in keys
        if isinstance(part.get(key), dict)
    ]


def _content(raw: JsonObject, where: str) -> Iterator[Finding]:
    role, parts = raw.get("role"), raw.get("parts")
    if not isinstance(role, str) or role not in ROLES:
        yield Finding("error", "bad-role", where, f"{shown(role)} is no role.", "Use user or model.")
    if unknown := sorted(map(str, raw.keys() - FIELDS)):
        yield Finding(
            "error", "unknown-field", where, f"{', '.join(unknown)}: no field of a content.", "Leave it out."
        )
    if not isinstance(parts, list) or not parts:
        yield Finding("error", "empty-content", where, "The content has no parts.", "Drop it.")
    for number, part in enumerate(parts if isinstance(parts, list) else []):
        yield from _part(part, role, f"{where}.parts[{number}]")


def _part(part: Any, role: Any, where: str) -> Iterator[Finding]:
    data = [key for key in DATA if key in part] if isinstance(part, dict) else []
    if len(data) != 1 or part[data[0]] is None:
        yield Finding("error", "bad-block", where, f"{shown(part)} has not exactly one datum.", "Drop it.")
        return
    value = part[data[0]]
    if data[0] == "text":
        if not isinstance(value, str):
            yield Finding("error", "bad-block", where, f"The text is {shown(value)}.", "Give text.")
        elif not value:
            yield Finding("error", "empty-content", where, "The text is empty.", "Drop the part.")
    elif not isinstance(value, dict):
        yield Finding("error", "bad-block", where, f"{data[0]} is {shown(value)}.", "Give an object.")
    elif data[0] in CALL + RESPONSE:
        yield from _function(data[0], value, role, where)


def _function(key: str, value: JsonObject, role: Any, where: str) -> Iterator[Finding]:
    call = key in CALL
    if role == ("user" if call else "model"):
        yield Finding(
            "error", "wrong-role", where, f"{key} cannot stand in a content of role {role}.", "Drop it."
        )
    if not isinstance(value.get("name"), str) or not value["name"]:
        yield Finding(
            "error", "bad-name", where, f"{shown(value.get('name'))} is no name of a function.", "Name it."
        )
    given = value.get("args" if call else "response", {})
    if not isinstance(given, dict) and not (call and given is None):
        yield Finding("error", "bad-arguments", where, f"{shown(given)} is no object.", "Give an object.")


def _turns(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    asked: list[JsonObject] = []
    for at, raw in enumerate(raws):
        where = f"contents[{at}]"
        yield from _answers(asked, of(raw, RESPONSE), f"contents[{at - 1}]", where)
        asked = of(raw, CALL)
        if asked and (at == 0 or raws[at - 1].get("role") == "model"):
            yield Finding(
                "error", "role-order", where, "A content with calls comes first, or after one of the model.",
                "Put it after a content of the user.",
            )  # fmt: skip
    for call in asked:
        yield Finding(
            "warning", "dangling-call", f"contents[{len(raws) - 1}]", f"The call of {shown(call.get('name'))} waits for its response.",
            "Run it, and append the response.",
        )  # fmt: skip


def _answers(asked: list[JsonObject], given: list[JsonObject], before: str, where: str) -> Iterator[Finding]:
    """Yield what differs between the calls of a content and the responses of the next one."""
    wanted, found = Counter(map(identity, asked)), Counter(map(identity, given))
    for name, number in sorted((wanted - found).items()):
        yield Finding(
            "error", "missing-result", before, f"{number} call(s) of {shown(name)} have no response in the next content.",
            "Answer or drop them.",
        )  # fmt: skip
    for name, number in sorted((found - wanted).items()):
        yield Finding(
            "error", "orphan-result", where, f"{number} response(s) of {shown(name)} have no call in the content before.",
            "Put them after their call, or drop them.",
        )  # fmt: skip


def identity(value: JsonObject) -> str:
    """Return what a call and its response have in common: the id where there is one, and the name."""
    key = value.get("id")
    return f"{value.get('name')} {key}" if isinstance(key, str) and key else f"{value.get('name')}"


def _signatures(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield the calls of the current turn that lack the signature which thinking models want of the first."""
    for at in range(len(raws) - 1, -1, -1):
        parts = raws[at].get("parts")
        if not isinstance(parts, list) or (raws[at].get("role") == "user" and not of(raws[at], RESPONSE)):
            return
        calls = [part for part in parts if isinstance(part, dict) and any(key in part for key in CALL)]
        if calls and not any(calls[0].get(key) for key in SIGNATURE):
            yield Finding(
                "warning", "unsigned-thinking", f"contents[{at}]", "The first call has no thoughtSignature.",
                "Keep the part as the model sent it.",
            )  # fmt: skip
