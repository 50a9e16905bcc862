"""OpenAI Responses: items, of which only some have a role; calls, outputs and reasoning are items of their own.

There are many types and more come: every item with a `call_id` is one side of a pair, its output if the type ends in
`_output`. Items that the provider runs itself have no `call_id` and need no output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aether.errors import shown
from aether.messages.content import (
    PDF,
    Media,
    as_json,
    block_type,
    call_block,
    is_link,
    media_block,
    other_block,
    result_blocks,
)
from aether.messages.faults import (
    Cell,
    Entry,
    Faults,
    filled,
    known_role,
    last_response,
    new_ids,
    paired,
    results_after_calls,
    without_unanswered,
)
from aether.messages.model import Block, Message, as_object, as_text, content_text
from aether.messages.providers import openai
from aether.messages.providers.openai import (
    cleaned_custom,
    cleaned_function,
    file_fault,
    known_part,
    part_of,
    sound_fault,
    typed_part,
)
from aether.messages.turns import Traits, Turn
from aether.types import JsonObject

valid_tool_name, picture_tokens = openai.valid_tool_name, openai.picture_tokens
new_raw, system_prompt, tool_names = openai.new_raw, openai.system_prompt, openai.tool_names

ROLES = frozenset({"user", "assistant", "system", "developer"})
# Types of an item that must have the id of the call that they are or answer.
_PAIRED = frozenset({"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"})
_KNOWN = _PAIRED | {
    "message", "reasoning", "item_reference", "compaction", "compaction_trigger", "additional_tools", "program",
    "configuration_update", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
}  # fmt: skip
_INPUT_PARTS = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_OUTPUT_PARTS = frozenset({"output_text", "refusal"})
_ID_CHARS = 64
# The keys of the arguments in the several kinds of call.
_ARGUMENT_KEYS = ("arguments", "input", "action", "operation", "code")

TRAITS = Traits(
    list="input", system="instructions", system_messages="anywhere", sent=(), tool_name=openai.TOOL_NAME,
    signs_decide=True, media_in_results=True,
)  # fmt: skip


def signs(raw: JsonObject) -> bool:
    """Return whether an item can only be one of this format."""
    kind, content = block_type(raw), raw.get("content")
    is_item = (
        kind in ("reasoning", "item_reference", "compaction") or "call_id" in raw or kind.endswith("_call")
    )
    parts = ("input_text", "output_text", "input_image", "input_file")
    listed = content if isinstance(content, list) else []
    return (is_item and "role" not in raw) or any(block_type(as_object(part)) in parts for part in listed)


def message(raw: JsonObject) -> Message:
    """Return one item as read."""
    kind = block_type(raw)
    if kind in {"", "message"} and "role" in raw:
        role = openai.ROLES.get(as_text(raw["role"]), "user") if raw["role"] != "function" else "user"
        return Message(role, tuple(_blocks(raw.get("content"))), raw, "responses")
    if kind == "reasoning":
        texts = (content_text(raw.get("summary")), content_text(raw.get("content")))
        return Message("assistant", (Block("reasoning", "\n".join(filter(None, texts))),), raw, "responses")
    if "call_id" in raw and kind.endswith("_output"):
        return Message("tool", tuple(_result(raw, raw["call_id"])), raw, "responses")
    if "call_id" not in raw and not (kind.endswith("_call") and isinstance(raw.get("arguments"), str)):
        item = other_block(raw)._replace(replaces_history=kind == "compaction")
        return Message("assistant", (item,), raw, "responses")
    key = next((key for key in _ARGUMENT_KEYS if raw.get(key) is not None), "arguments")
    call_id = raw.get("call_id", raw.get("id"))
    tool = as_text(raw.get("name")) or kind.removesuffix("_call")
    blocks = [call_block(tool, raw.get(key), (key,), call_id)]
    if isinstance(raw.get("output"), str):  # a call that a server ran has its output in the same item
        blocks += _result(raw, call_id)
    return Message("assistant", tuple(blocks), raw, "responses")


def _blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [Block("text", content, ("content",))]
    if isinstance(content, list):
        return [part_of(part, ("content", index)) for index, part in enumerate(content)]
    return [] if content is None else [other_block(content)]


def _result(raw: JsonObject, call_id: Any) -> list[Block]:
    output = raw.get("output")
    if isinstance(output, dict) and block_type(output) == "computer_screenshot":
        return [Block("result", "", (), as_text(call_id)), media_block(output, ("output",))]
    return result_blocks(output, ("output",), call_id)


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the item itself: reasoning is an item of its own, and is dropped as a whole."""
    return raw


def write(turn: Turn) -> list[JsonObject]:
    """Return a turn as items: a message for texts and media in a row, one item for each call and each answer."""
    meta = {"meta": turn.meta} if turn.meta else {}
    items: list[JsonObject] = []
    parts: list[JsonObject] = []

    def end_message() -> None:
        alone = len(parts) == 1 and "text" in parts[0]
        if parts:
            content: Any = parts[0]["text"] if alone else parts.copy()
            items.append({"role": "developer" if turn.developer else turn.role, "content": content})
        parts.clear()

    for piece in turn.pieces:
        if not isinstance(piece, Block):
            parts.append(piece)
        elif piece.kind == "call":
            end_message()
            called = {"call_id": piece.call_id, "name": piece.tool, "arguments": piece.text or "{}"}
            items.append({"type": "function_call", **called})
        else:
            kind = "output_text" if turn.role == "assistant" else "input_text"
            parts.append({"type": kind, "text": piece.text})
    end_message()
    for answer in turn.answers:
        text = [{"type": "input_text", "text": answer.block.text}] if answer.block.text else []
        output: Any = [*text, *answer.shown] if answer.shown else answer.block.text
        items.append({"type": "function_call_output", "call_id": answer.block.call_id, "output": output})
    return [{**item, **meta} for item in items]


def write_media(media: Media) -> JsonObject | None:
    """Return the part of a picture or a PDF; None for other media."""
    link = f"data:{media.mime};base64,{media.data}" if media.data else media.url
    if media.mime.startswith("image/"):
        return {"type": "input_image", "image_url": link, "detail": "auto"}
    if media.mime != PDF:
        return None
    file = {"filename": "file.pdf", "file_data": link} if media.data else {"file_url": media.url}
    return {"type": "input_file", **file}


def media_fault(part: JsonObject) -> str:
    """Return why the API refuses a part of media; empty if it does not."""
    kind, link = block_type(part), part.get("image_url")
    if kind in ("input_image", "computer_screenshot"):
        good = as_text(part.get("file_id")) or is_link(link, "image/")
        return "" if good else f"{shown(link)} is not the address of a picture."
    if kind == "input_file":
        return file_fault(part)
    return sound_fault(part) if kind == "input_audio" else f"{shown(kind)} is not a medium."


def repaired(raws: Sequence[JsonObject], faults: Faults) -> list[tuple[int, JsonObject]]:
    """Return `raws` as the API accepts them, each with its original position; `faults` gets each change."""
    entries = filled(_cleaned(index, raw, faults) for index, raw in enumerate(raws))
    entries = paired(_with_own_ids(entries, faults), faults)
    entries = without_unanswered(entries, faults, last_response(entries))
    entries = results_after_calls(entries, faults, next_to=False)
    led: list[Entry] = []
    for entry in reversed(entries):
        if entry.cells[0].kind == "reasoning" and not (led and led[-1].role == "assistant"):
            faults.lost("dangling-reasoning", f"input[{entry.at}]", "Reasoning without the item it led to.")
        else:
            led.append(entry)
    ids = new_ids(led[::-1], faults, valid=str, most=_ID_CHARS, unique="while waiting")
    return [
        (
            entry.at,
            cell.value
            if ids.get(cell.pair, cell.key) == cell.key
            else {**cell.value, "call_id": ids[cell.pair]},
        )
        for entry in led[::-1]
        for cell in entry.cells
    ]


def _with_own_ids(entries: Sequence[Entry], faults: Faults) -> list[Entry]:
    """Return `entries` in which no two items have one id."""
    seen: set[str] = set()
    unique = []
    for entry in entries:
        [cell] = entry.cells
        key = cell.value.get("id")
        if isinstance(key, str) and key in seen:
            what = f"Another item has the id {shown(key)}."
            if _item_type(cell.value) in ("reasoning", "item_reference"):
                faults.lost("repeated-id", cell.where, what)
                continue
            faults.changed("repeated-id", cell.where, what, "Leave the id out.")
            value = {name: field for name, field in cell.value.items() if name != "id"}
            unique.append(entry._replace(cells=[cell._replace(value=value)]))
        else:
            unique.append(entry)
        seen.update([key] if isinstance(key, str) else [])
    return unique


def _item_type(raw: JsonObject) -> str:
    """Return the type of an item, which a message may leave out."""
    kind = raw.get("type", "message" if "role" in raw else None)
    return kind if isinstance(kind, str) else ""


def _is_from_model(raw: JsonObject) -> bool:
    kind = _item_type(raw)
    if kind == "message":
        return raw.get("role") == "assistant"
    return kind not in ("compaction_trigger", "item_reference") and not kind.endswith("_output")


def _is_known(raw: JsonObject, kind: str) -> bool:
    """Return whether an item may be one of the API's own: new types come, and the API gives each of its items an id."""
    api_own = bool(as_text(raw.get("id"))) and "role" not in raw
    return kind in _KNOWN or kind.endswith(("_call", "_output")) or api_own


def _cleaned(index: int, raw: JsonObject, faults: Faults) -> Entry:
    """Return an item without what cannot be sent, whatever is around it."""
    where = f"input[{index}]"
    item = _cleaned_item(_without_odd_fields(raw, where, faults), where, faults)
    if item is None:
        return Entry(index, raw, "", [])
    kind, key = _item_type(item), as_text(item.get("call_id"))
    cell = Cell(item, where, "reasoning" if kind == "reasoning" else "other", key)
    if key and kind.endswith("_output"):
        return Entry(index, item, "tool", [cell._replace(kind="result")])
    if "call_id" in item and kind.endswith("_call") and isinstance(item["call_id"], str):
        cell = cell._replace(kind="call")
    return Entry(index, item, "assistant" if _is_from_model(item) else "user", [cell])


def _without_odd_fields(raw: JsonObject, where: str, faults: Faults) -> JsonObject:
    odd = {
        "meta": ("unknown-field", "meta" in raw, "meta: not a field of an item."),
        "id": (
            "bad-id",
            not isinstance(raw.get("id", ""), str | None),
            f"{shown(raw.get('id'))} is not an id.",
        ),
        "type": (
            "bad-block",
            not _item_type(raw) and "role" in raw,
            f"{shown(raw.get('type'))} is not a type.",
        ),
    }
    for key, (code, wrong, problem) in odd.items():
        if wrong:
            faults.changed(code, where, problem, "Leave it out.")
            raw = {name: value for name, value in raw.items() if name != key}
    return raw


def _cleaned_item(raw: JsonObject, where: str, faults: Faults) -> JsonObject | None:
    kind, key = _item_type(raw), raw.get("call_id")
    if not kind:
        faults.lost("bad-block", where, f"{shown(raw)} is not an item.", "Give it a type or a role.")
        return None
    if not _is_known(raw, kind):
        if "role" not in raw:
            faults.lost("unknown-block", where, f"{shown(kind)} is not a known type.")
            return None
        faults.changed("unknown-block", where, f"{shown(kind)} is not a known type.", "Write it as message.")
        raw, kind = {**raw, "type": "message"}, "message"
    if kind not in _KNOWN and not kind.endswith(("_call", "_output")):
        faults.hint("unknown-block", where, f"{shown(kind)} is not a known type.", "Check it.")
    if kind in _PAIRED and not (isinstance(key, str) and key):
        faults.lost("bad-id", where, f"{shown(key)} is not a call_id.", f"Use 1 to {_ID_CHARS} characters.")
        return None
    if kind == "item_reference" and not isinstance(raw.get("id"), str):
        faults.lost("bad-id", where, "A reference without an id.")
        return None
    clean = _CLEAN.get(kind)
    return clean(raw, where, faults) if clean else raw


def _with_summary(raw: JsonObject, where: str, faults: Faults) -> JsonObject:
    summary = raw.get("summary")
    listed = summary if isinstance(summary, list) else []
    texts = [
        part
        for part in map(as_object, listed)
        if part.get("type") == "summary_text" and isinstance(part.get("text"), str)
    ]
    if texts == summary:
        return raw
    faults.changed("bad-block", where, "Reasoning without its summary.", "Give a list of texts.")
    return {**raw, "summary": texts}


def _with_output(raw: JsonObject, where: str, faults: Faults) -> JsonObject:
    output = raw.get("output")
    if isinstance(output, str):
        return raw
    if not isinstance(output, list):
        faults.changed("empty-content", where, f"The output is {shown(output)}.", "Give text or parts.")
        return {**raw, "output": "" if output is None else as_json(output)}
    parts = _cleaned_parts(output, "user", f"{where}.output", faults)
    return raw if parts == output else {**raw, "output": parts}


def _cleaned_message(raw: JsonObject, where: str, faults: Faults) -> JsonObject | None:
    role, content = raw.get("role"), raw.get("content")
    listed = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    if not isinstance(role, str) or role not in ROLES:
        answered = any(as_object(part).get("type") == "output_text" for part in listed)
        role = "assistant" if answered else known_role(role, ROLES)
        faults.role(raw, role, where)
        raw = {**raw, "role": role}
    if content == []:
        faults.hint("empty-content", where, "Content is an empty list.", "Drop the message.")
    if isinstance(content, str) or content == []:
        return raw
    parts = _cleaned_parts(listed, role, f"{where}.content", faults)
    if not parts:
        faults.lost("empty-content", where, f"Content is {shown(content)}.", "Give text or parts.")
        return None
    if isinstance(content, dict):
        faults.changed("bad-block", where, f"Content is {shown(content)}.", "Give text or parts.")
    return raw if parts == content else {**raw, "content": parts}


def _cleaned_parts(parts: Sequence[Any], role: str, where: str, faults: Faults) -> list[JsonObject]:
    cleaned = (_cleaned_part(part, role, f"{where}[{number}]", faults) for number, part in enumerate(parts))
    return [part for part in cleaned if part is not None]


def _cleaned_part(part: Any, role: str, where: str, faults: Faults) -> JsonObject | None:
    allowed, text_type = (
        (_OUTPUT_PARTS, "output_text") if role == "assistant" else (_INPUT_PARTS, "input_text")
    )
    typed = typed_part(part, text_type, where, faults)
    if typed is None:
        return None
    kind = typed["type"]
    if kind in ("input_text", "output_text", "refusal"):
        text = typed.get("refusal" if kind == "refusal" else "text")
        if not isinstance(text, str):
            faults.lost("bad-block", where, f"The text is {shown(text)}.", "Give text.")
            return None
        if kind not in allowed and kind != "refusal":
            what, fix = f"A message of role {role} cannot hold {kind}.", f"Use {text_type}."
            faults.changed("wrong-role", where, what, fix)
            return {**typed, "type": text_type}
    elif media_fault(typed):
        rewritten = known_part(typed, text_type, where, faults, write=write_media, fault=media_fault)
        if rewritten is None:
            return None
        typed = rewritten
    if typed["type"] not in allowed:
        faults.lost("wrong-role", where, f"A message of role {role} cannot hold {typed['type']}.")
        return None
    return typed


_CLEAN: dict[str, Callable[[JsonObject, str, Faults], JsonObject | None]] = {
    "message": _cleaned_message,
    "reasoning": _with_summary,
    "function_call": cleaned_function,
    "custom_tool_call": cleaned_custom,
    "function_call_output": _with_output,
    "custom_tool_call_output": _with_output,
}
