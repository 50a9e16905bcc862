"""Responses items: the items of a session of the Agents SDK, of a `RunState`, of a response and of a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text, content_text, is_failure_text
from aether.messages.records import OnBad, RawConversation, Record, ignore_bad_line
from aether.messages.sources.reader import as_conversations, call, first_text, objects, report, result, said
from aether.types import JsonObject

_CALLS = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "mcp_call"}
)
_OWN = _CALLS | {
    "reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request", "computer_call",
}  # fmt: skip
_SILENT = frozenset(
    "reasoning item_reference mcp_list_tools mcp_approval_request mcp_approval_response additional_tools".split()
)
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_OUTPUT = "_output"
_ARGUMENTS = ("arguments", "input", "action", "operation")


def holds(value: Any) -> bool:
    """Return whether `value` has an item that no other format has."""
    entry = as_object(value)
    is_request = isinstance(entry.get("input"), list) and any(
        "role" in item for item in objects(entry["input"])
    )
    is_state = "original_input" in entry and "current_agent" in entry
    return is_request or is_state or any(map(_is_own, _items(value)))


def _is_own(item: JsonObject) -> bool:
    kind = as_text(item.get("type"))
    has_id = "call_id" in item or "id" in item
    parts = {as_text(part.get("type")) for part in objects(item.get("content"))}
    return (kind in _OWN and has_id and "role" not in item) or ("call_id" in item and kind.endswith(_OUTPUT)) or (
        bool(parts & {"output_text", "input_text"}) and as_text(item.get("role")) in _ROLES
    )  # fmt: skip


def _items(value: Any) -> list[JsonObject]:
    """Return the items in `value`: a list, an item of its own, a request, a response, a state of a run or a row of its session."""
    if isinstance(value, list):
        return objects(value)
    entry = as_object(value)
    if entry.get("table") == "agent_messages":
        return objects([as_arguments(as_object(entry.get("row")).get("message_data"))])
    if "type" in entry or "role" in entry:
        return [entry]
    if "original_input" in entry:
        opening = entry["original_input"]
        asked = [{"role": "user", "content": opening}] if isinstance(opening, str) else objects(opening)
        generated = [as_object(item.get("raw_item")) for item in objects(entry.get("generated_items"))]
        return [*asked, *filter(None, generated)]
    request = entry.get("input")
    first = (
        [{"role": "user", "content": request}]
        if isinstance(request, str) and "output" in entry
        else objects(request)
    )
    return [*first, *objects(entry.get("output")), *objects(entry.get("items"))]


def records(
    values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, **_: Any
) -> Iterator[Record]:
    """Yield the records of the items."""
    number, skipped = 1, Counter[str]()
    for number, value in values:
        row = as_object(as_object(value).get("row"))
        session, time = (
            first_text(row.get("session_id"), as_object(value).get("session_id")),
            as_text(row.get("created_at")),
        )
        head, part = Record("system", line=number, session=session, time=time), 0
        for item in _items(value):
            for record in _item(head, item, skipped):
                yield record._replace(part=part)
                part += 1
    report(skipped, number, on_bad)


def _item(head: Record, item: JsonObject, skipped: Counter[str]) -> Iterator[Record]:
    kind, call_id = as_text(item.get("type")), as_text(item.get("call_id")) or as_text(item.get("id"))
    if as_text(item.get("role")) in _ROLES and kind in ("", "message"):
        yield from said(head._replace(message_id=as_text(item.get("id"))), item["role"], item.get("content"))
    elif kind in _CALLS:
        arguments = next((item[key] for key in _ARGUMENTS if item.get(key)), None)
        name = as_text(item.get("name")) or kind.removesuffix("_call")
        yield call(head, name, as_arguments(arguments), call_id)
        if kind == "mcp_call" and (output := item.get("output") or item.get("error")):
            yield result(head, call_id, output, is_error=bool(item.get("error")), tool=name)
    elif kind.endswith(_OUTPUT) and "call_id" in item:
        output = item.get("output")
        text = content_text(output)
        codes = [as_object(entry.get("outcome")).get("exit_code") for entry in objects(output)]
        text = text or "\n".join(
            as_text(entry.get("stdout")) + as_text(entry.get("stderr")) for entry in objects(output)
        )
        failed = is_failure_text(text) or any(codes) or item.get("status") in ("failed", "incomplete")
        yield result(head, call_id, text, is_error=failed)
    elif kind == "compaction":
        yield head._replace(kind="boundary")
    elif kind and kind not in _SILENT:
        skipped[f"items of type {kind}"] += 1


def conversations(values: Iterable[tuple[int, Any]]) -> list[RawConversation]:
    """Return the items as they are; of a state or a database as messages."""
    listed = list(values)
    if any("table" in as_object(value) for _, value in listed):
        return as_conversations(records)(listed)
    return [RawConversation([item for _, value in listed for item in _items(value)], "responses")]
