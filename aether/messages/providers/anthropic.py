"""Anthropic Messages: content blocks, results inside user messages, thinking with signatures.

Reading gives a user message of nothing but tool results the role `tool`; the result of a server tool is in the
assistant message that called it. The API joins adjacent messages of one role into one turn, so the calls of a turn must
be answered by the first blocks of the next turn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from aether.errors import shown
from aether.messages.content import (
    MEDIA,
    PDF,
    Media,
    Place,
    block_type,
    call_block,
    is_base64,
    is_text_block,
    is_web_address,
    media_block,
    other_block,
    read_media,
    result_blocks,
    rewritten_media,
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
    results_first,
    without_unanswered,
)
from aether.messages.model import Block, Message, Role, as_arguments, as_object, as_text, is_failure_text
from aether.messages.turns import Answer, Traits, Turn
from aether.text.regex import lazy
from aether.types import JsonObject

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_SERVED = CALLS - {"tool_use"}
THINKING = frozenset({"thinking", "redacted_thinking"})
FIELDS = frozenset({"role", "content"})
ROLES = frozenset({"user", "assistant", "system"})
# Types of blocks that no other format has.
_OWN = THINKING | {"tool_use", "tool_result", "document", "server_tool_use"}
# Of the other types each role may use; assistant messages hold what the model's own servers run.
_USER_ONLY = frozenset({"image", "document", "tool_result", "search_result", "container_upload"})
_ASSISTANT_ONLY = CALLS | THINKING | {"mcp_tool_result"}
_KNOWN = (
    _USER_ONLY
    | _ASSISTANT_ONLY
    | {"text", "compaction", "fallback", "mcp_tool_listing", "tool_addition", "tool_removal"}
)
_IN_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
# Keys of blocks without a check of their own whose values have to be texts.
_TEXT_FIELDS = {
    "server_tool_use": ("id", "name"), "mcp_tool_use": ("id", "name", "server_name"),
    "search_result": ("source", "title"), "tool_reference": ("tool_name",), "mcp_tool_result": ("tool_use_id",),
}  # fmt: skip
TOOL_NAME = lazy(r"[a-zA-Z0-9_-]{1,128}")
TOOL_NAME_FIX = "Use letters, digits, _ and -."
_NAME_CHARS = 128
# The API sets no length for ids; this is far beyond any that programs make.
_ID_CHARS = 256

# Pictures: width x height / 750, scaled to this edge, never dearer than this (vision guide, models from 4.7 on).
_PIXELS_PER_TOKEN, _EDGE_PIXELS, _MOST_TOKENS = 750, 2576, 4784

TRAITS = Traits(
    list="messages", system="system", system_messages="later", sent=("content",), tool_name=TOOL_NAME,
    user_first=True, media_in_results=True, failure_flag=True,
)  # fmt: skip


def signs(raw: JsonObject) -> bool:
    """Return whether a message can only be one of this format."""
    listed = [block for block in _listed(raw) if isinstance(block, dict)]
    return any(block_type(block) in _OWN or isinstance(block.get("source"), dict) for block in listed)


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    content = raw.get("content")
    name = as_text(raw.get("role"))
    role: Role = "assistant" if name == "assistant" else "system" if name == "system" else "user"
    if role == "user" and isinstance(content, list) and content and all(map(is_result, content)):
        role = "tool"
    return Message(role, tuple(blocks(content)), raw, "anthropic")


def is_result(block: Any) -> bool:
    """Return whether a content block is the result of a tool."""
    return isinstance(block, dict) and block_type(block).endswith("tool_result")


def blocks(content: Any) -> list[Block]:
    """Return the blocks that the content of a message holds, in order."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Block("text", content, ("content",))]
    if not isinstance(content, list):
        return [other_block(content)]
    return [block for index, raw in enumerate(content) for block in block_of(raw, ("content", index))]


def block_of(block: Any, at: Place) -> list[Block]:
    """Return the blocks of one content block: itself, and the media inside of a result."""
    if not isinstance(block, dict):
        return [other_block(block)]
    kind = block_type(block)
    if is_text_block(block) or kind == "compaction":
        field = "content" if kind == "compaction" else "text"
        return [Block("text", as_text(block.get(field)), (*at, field), replaces_history=kind == "compaction")]
    if kind in CALLS:
        return [call_block(block.get("name"), block.get("input"), (*at, "input"), block.get("id"))]
    if is_result(block):
        key, broken = block.get("tool_use_id"), block.get("is_error")
        return result_blocks(block.get("content"), (*at, "content"), key, broken=broken)
    if kind in THINKING:
        return [Block("reasoning", as_text(block.get("thinking")))]
    return [media_block(block, at)] if kind in MEDIA else [other_block(block)]


def new_raw(role: str, text: str) -> JsonObject:
    """Return a message that is only `text`."""
    return {"role": role, "content": text}


def system_prompt(text: str) -> Any:
    """Return a system prompt as the request has it."""
    return text


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its thinking; the message itself if nothing else would be left."""
    content = raw.get("content")
    if not isinstance(content, list):
        return raw
    remaining = [
        block for block in content if not (isinstance(block, dict) and block_type(block) in THINKING)
    ]
    return {**raw, "content": remaining} if remaining and len(remaining) < len(content) else raw


def write(turn: Turn) -> list[JsonObject]:
    """Return a turn as messages: its texts and calls, then the answers to all of its calls."""
    meta = {"meta": turn.meta} if turn.meta else {}
    pieces = turn.pieces
    alone = len(pieces) == 1 and isinstance(pieces[0], Block) and pieces[0].kind == "text"
    content: Any = pieces[0].text if alone else [_written(piece) for piece in pieces]  # type: ignore[union-attr]
    raw = {"role": turn.role, "content": content, **meta}
    answers = [_tool_result(answer) for answer in turn.answers]
    return [raw, {"role": "user", "content": answers, **meta}] if answers else [raw]


def _written(piece: Block | JsonObject) -> JsonObject:
    if isinstance(piece, dict):
        return piece
    if piece.kind == "text":
        return {"type": "text", "text": piece.text}
    return {"type": "tool_use", "id": piece.call_id, "name": piece.tool, "input": dict(piece.arguments)}


def _tool_result(answer: Answer) -> JsonObject:
    block = answer.block
    raw: JsonObject = {"type": "tool_result", "tool_use_id": block.call_id, "content": block.text}
    if answer.shown:
        text: list[JsonObject] = [{"type": "text", "text": block.text}] if block.text.strip() else []
        raw["content"] = [*text, *answer.shown]
    # A text that reports the failure needs no flag: readers see it without.
    return {**raw, "is_error": block.is_error} if block.is_error != is_failure_text(block.text) else raw


def write_media(media: Media) -> JsonObject | None:
    """Return the block of a picture or a PDF; None for other media."""
    is_image = media.mime.startswith("image/")
    if not is_image and media.mime != PDF:
        return None
    source: JsonObject = {"type": "url", "url": media.url}
    if media.data:
        source = {"type": "base64", "media_type": media.mime, "data": media.data}
    return {"type": "image" if is_image else "document", "source": source}


def media_fault(block: JsonObject) -> str:
    """Return why the API refuses a picture, a document or an uploaded file; empty if it does not.

    >>> media_fault({"type": "image", "source": None})
    'The source is None.'
    """
    kind = block_type(block)
    source = block if kind == "container_upload" else as_object(block.get("source"))
    form = "file" if kind == "container_upload" else source.get("type")
    is_document = kind == "document"
    mime, text = source.get("media_type"), as_text(source.get("data"))
    media = read_media(block) if form == "base64" else None
    if media and media.mime != mime and mime in _PICTURES | {PDF}:
        return f"The media type says {shown(mime)}, the data is {media.mime}."
    if form == "base64" and mime not in ((PDF,) if is_document else _PICTURES):
        return f"{shown(mime)} is not a media type of {kind}."
    good = {
        "base64": is_base64(source.get("data")),
        "url": is_web_address(source.get("url")),
        "file": bool(as_text(source.get("file_id"))),
        "text": is_document and mime == "text/plain" and bool(text.strip()),
        "content": is_document and _is_document_content(source.get("content")),
    }
    return "" if good.get(as_text(form)) else f"The source is {shown(block.get('source'))}."


def _is_document_content(content: Any) -> bool:
    """Return whether `content` of a document is a text, or texts and pictures."""
    listed = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return (
        isinstance(listed, list)
        and bool(listed)
        and all(
            bool(as_text(block.get("text")).strip())
            if block_type(block) == "text"
            else block_type(block) == "image" and not media_fault(block)
            for block in map(as_object, listed)
        )
    )


def picture_tokens(width: int, height: int, _detail: str) -> int:
    """Return the tokens of a picture of so many pixels."""
    scale = min(1.0, _EDGE_PIXELS / max(width, height))
    return min(_MOST_TOKENS, math.ceil(width * height * scale * scale / _PIXELS_PER_TOKEN))


def valid_tool_name(name: str) -> str:
    """Return the name of a tool in the letters that the API accepts."""
    return _valid(name)[:_NAME_CHARS] or "tool"


def _valid(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)


def tool_names(tools: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the place and the name of each tool of a request."""
    return ((f"tools[{index}]", as_object(tool).get("name")) for index, tool in enumerate(tools))


def repaired(raws: Sequence[JsonObject], faults: Faults) -> list[tuple[int, JsonObject]]:
    """Return `raws` as the API accepts them, each with its original position; `faults` gets each change."""
    entries = _user_first([_cleaned(index, raw, faults) for index, raw in enumerate(raws)], faults)
    entries = paired(_without_orphans_of_servers(filled(entries), faults), faults)
    entries = without_unanswered(entries, faults, last_response(entries))
    entries = _without_stray_thinking(results_first(entries, faults, joined=True), faults)
    ids = new_ids(entries, faults, valid=_valid, most=_ID_CHARS, unique="always")
    if entries and entries[-1].role == "assistant":
        last = entries[-1].cells[-1]
        text = last.value.get("text")
        if isinstance(text, str) and text != text.rstrip():
            faults.changed(
                "trailing-whitespace", last.where, "The last text ends with white space.", "Strip it."
            )
            entries[-1].cells[-1] = last._replace(value={**last.value, "text": text.rstrip()})
        if last.kind != "call":
            what = "New models refuse a conversation that ends with the assistant."
            faults.hint("trailing-assistant", last.where, what, "End with a user message.")
    return [(entry.at, _sent(entry, ids)) for entry in entries]


def _sent(entry: Entry, ids: dict[int, str]) -> JsonObject:
    """Return the message of an entry; the original one if nothing changed."""
    content = [cell.value for cell in entry.cells]
    for index, cell in enumerate(entry.cells):
        if cell.pair >= 0 and ids[cell.pair] != cell.key:
            content[index] = {**cell.value, "id" if cell.kind == "call" else "tool_use_id": ids[cell.pair]}
    raw = entry.raw
    if content == _listed(raw) and entry.role == raw.get("role"):
        return raw if raw.keys() <= FIELDS else {key: raw[key] for key in raw if key in FIELDS}
    return {"role": entry.role, "content": content}


def _listed(raw: JsonObject) -> list[Any]:
    """Return the content of a message as blocks; a text is one text block."""
    content = raw.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _cleaned(index: int, raw: JsonObject, faults: Faults) -> Entry:
    """Return a message without what cannot be sent, whatever is around it."""
    where, role = f"messages[{index}]", known_role(raw.get("role"), ROLES)
    faults.role(raw, role, where)
    faults.unknown_fields(raw, FIELDS, where)
    if role == "system":
        what = "Only the newest models accept a system message among the messages."
        faults.hint("system-role", where, what, "Pass it as `system`.")
    content = raw.get("content")
    listed = [content] if isinstance(content, dict) else _listed(raw)
    if isinstance(content, dict):
        faults.changed("bad-block", where, "The content is a block.", "Give a list of blocks.")
    elif not listed:
        faults.lost(
            "empty-content", where, f"Content is {shown(content)}.", "Give text or blocks, or drop it."
        )
    cells = []
    for number, block in enumerate(listed):
        place = f"{where}.content[{number}]"
        if (good := _cleaned_block(block, role, place, faults)) is not None:
            key = "id" if good["type"] == "tool_use" else "tool_use_id"
            cells.append(Cell(good, place, _KINDS.get(good["type"], "other"), as_text(good.get(key))))
    return Entry(index, raw, role, cells)


_KINDS: dict[str, Any] = {"tool_use": "call", "tool_result": "result"} | dict.fromkeys(THINKING, "reasoning")


def _cleaned_block(block: Any, role: str, where: str, faults: Faults) -> JsonObject | None:
    """Return a block that a message of `role` can hold; None if it cannot be sent."""
    typed = _with_type(block)
    if typed is None:
        faults.lost("bad-block", where, f"{shown(block)} has no type.", "Give it a type, or drop it.")
        return None
    if typed is not block:
        faults.changed("bad-block", where, f"{shown(block)} has no type.", "Give it a type.")
    good = _of_known_type(typed, where, faults, _KNOWN)
    if good is None:
        return None
    kind = good["type"]
    if (kind in _USER_ONLY and role != "user") or (kind in _ASSISTANT_ONLY and role != "assistant"):
        faults.lost("wrong-role", where, f"A message of role {role} cannot hold {kind}.")
    elif kind in THINKING and not _is_signed(good):
        faults.lost("unsigned-thinking", where, "Thinking without its signature.")
    elif kind == "tool_use":
        return _cleaned_call(good, where, faults)
    elif kind == "tool_result":
        return _cleaned_result(good, where, faults)
    else:
        return good
    return None


def _with_type(block: Any) -> JsonObject | None:
    """Return a block with a type: a text without one gets it; None for anything else."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, dict) or isinstance(block.get("type"), str):
        return block if isinstance(block, dict) else None
    return {**block, "type": "text"} if isinstance(block.get("text"), str) else None


def _of_known_type(
    block: JsonObject, where: str, faults: Faults, known_types: frozenset[str]
) -> JsonObject | None:
    """Return a block of one of the `known_types`, with all that it needs; None if it cannot be made.

    Media and texts of other formats are rewritten.
    """
    kind = block["type"]
    if kind in MEDIA:
        fault = media_fault(block)
        media = rewritten_media(block, write_media, media_fault) if fault else block
        if fault and media:
            faults.changed("unknown-block", where, fault, f"Write it as {media['type']}.")
        elif fault:
            faults.lost("bad-media", where, fault, "Give a source with its type and data, or drop it.")
        return media
    if kind in known_types or (known_types is _KNOWN and kind.endswith("_tool_result")):
        code, problem = _missing(block, kind)
        if problem:
            faults.lost(code, where, problem, "Drop the block.")
        return None if problem else block
    text = next((block[key] for key in ("text", "refusal") if isinstance(block.get(key), str)), "")
    if not text.strip():
        faults.lost("unknown-block", where, f"{shown(kind)} is not a known type.")
        return None
    faults.changed("unknown-block", where, f"{shown(kind)} is not a known type.", "Write it as text.")
    return {"type": "text", "text": text}


def _missing(block: JsonObject, kind: str) -> tuple[str, str]:
    """Return the code and the description of what a block lacks; empty if nothing."""
    if kind == "text":
        text = block.get("text")
        return (
            "empty-content",
            "" if isinstance(text, str) and text.strip() else f"The text is {shown(text)}.",
        )
    is_result = kind.endswith("_tool_result")
    needed = _TEXT_FIELDS.get(kind, ("tool_use_id",) if is_result else ())
    lacking = [key for key in needed if not as_text(block.get(key)).strip()]
    content = block.get("content")
    if kind in ("server_tool_use", "mcp_tool_use") and not isinstance(block.get("input"), dict):
        lacking.append("input")
    elif kind == "search_result":
        texts = isinstance(content, list) and all(
            is_text_block(inner) and inner["text"].strip() for inner in content
        )
        lacking += [] if texts else ["content"]
    elif is_result and kind != "mcp_tool_result" and content is None:
        lacking.append("content")
    return "bad-block", f"A {kind} without its {', '.join(lacking)}." if lacking else ""


def _is_signed(thought: JsonObject) -> bool:
    fields = ("data",) if thought["type"] == "redacted_thinking" else ("thinking", "signature")
    return all(isinstance(thought.get(key), str) for key in fields) and bool(thought[fields[-1]])


def _cleaned_call(block: JsonObject, where: str, faults: Faults) -> JsonObject | None:
    key, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if isinstance(arguments, str) and as_arguments(arguments):
        faults.changed("bad-arguments", where, f"The input is {shown(arguments)}.", "Give an object.")
        arguments = as_arguments(arguments)
    if not isinstance(key, str) or not key:
        faults.lost("bad-id", where, f"{shown(key)} is not the id of a call.", TOOL_NAME_FIX)
    elif not isinstance(name, str) or not name:
        faults.lost("bad-name", where, f"{shown(name)} is not the name of a tool.", TOOL_NAME_FIX)
    elif not isinstance(arguments, dict):
        faults.lost("bad-arguments", where, f"The input is {shown(arguments)}.", "Give an object.")
    else:
        if (valid := valid_tool_name(name)) != name:
            faults.changed(
                "bad-name", where, f"{shown(name)} is not the name of a tool.", f"Call it {valid}."
            )
        same = valid == name and arguments is block.get("input")
        return block if same else {**block, "name": valid, "input": arguments}
    return None


def _cleaned_result(block: JsonObject, where: str, faults: Faults) -> JsonObject | None:
    key, content = block.get("tool_use_id"), block.get("content")
    if not isinstance(key, str) or not key:
        faults.lost("bad-id", where, f"{shown(key)} is not the id of a call.")
        return None
    if content is None or isinstance(content, str):
        return block
    if not isinstance(content, list):
        faults.lost("bad-block", where, f"Content is {shown(content)}.", "Give text or blocks.")
        return {**block, "content": []}
    cleaned = []
    for number, inner in enumerate(content):
        place = f"{where}.content[{number}]"
        if not isinstance(inner, dict) or not isinstance(inner.get("type"), str):
            faults.lost("bad-block", place, f"{shown(inner)} has no type.", "Give it a type, or drop it.")
        elif good := _of_known_type(inner, place, faults, _IN_RESULTS):
            cleaned.append(good)
    return block if cleaned == content else {**block, "content": cleaned}


def _user_first(entries: Sequence[Entry], faults: Faults) -> list[Entry]:
    """Return `entries` with a user message first, made of what the assistant wrote if it came first."""
    ordered: list[Entry] = []
    opened = False
    for entry in entries:
        if opened or entry.role == "system" or not entry.cells:
            ordered.append(entry)
            continue
        if entry.role == "assistant":
            what, fix = "The first message is the assistant's.", "Start with a user message."
            faults.changed("first-role", f"messages[{entry.at}]", what, fix)
        cells = []
        for cell in entry.cells:
            if cell.kind == "result":
                faults.lost("orphan-result", cell.where, f"There is no call {shown(cell.key)}.")
            elif entry.role == "assistant" and cell.value["type"] != "text":
                faults.lost(
                    "first-role", cell.where, f"A {cell.value['type']} before the first user message."
                )
            else:
                cells.append(cell)
        opened = bool(cells)
        ordered.append(entry._replace(role="user", cells=cells))
    return ordered


def _without_orphans_of_servers(entries: Sequence[Entry], faults: Faults) -> list[Entry]:
    """Return `entries` without calls that a server ran and never answered, and without the answers to no such call.

    The answer is in the same response; only results of other calls may come between. A call of the last response may
    still be answered: the API goes on with it.
    """
    waiting: dict[str, Cell] = {}
    orphans: list[Cell] = []
    for entry in entries:
        if entry.role == "user" and any(cell.kind != "result" for cell in entry.cells):
            orphans += waiting.values()
            waiting.clear()
        for cell in entry.cells if entry.role == "assistant" else ():
            if cell.value["type"] in _SERVED:
                waiting[cell.value["id"]] = cell
            elif is_result(cell.value) and not waiting.pop(cell.key, None):
                orphans.append(cell)
    for cell in orphans:
        if is_result(cell.value):
            faults.lost("orphan-result", cell.where, f"There is no call {shown(cell.key)} of the server.")
        else:
            what = f"The call {shown(cell.value['id'])} of the server has no result."
            faults.lost("missing-result", cell.where, what)
    places = {cell.where for cell in orphans}
    return filled(
        entry._replace(cells=[cell for cell in entry.cells if cell.where not in places]) for entry in entries
    )


def _without_stray_thinking(entries: Sequence[Entry], faults: Faults) -> list[Entry]:
    """Return `entries` without thinking that ends a response, or that first comes after a call."""
    ended: list[Entry] = []
    for entry in reversed(entries):
        cells = entry.cells
        if entry.role == "assistant" and (not ended or ended[-1].role != "assistant"):
            while cells and cells[-1].kind == "reasoning":
                faults.lost("thinking-order", cells[-1].where, "The turn ends with thinking.")
                cells = cells[:-1]
        if cells:
            ended.append(entry._replace(cells=cells))
    ordered = []
    thought = called = False
    for entry in reversed(ended):
        if entry.role != "assistant":
            thought = called = False
        cells = []
        for cell in entry.cells:
            called = called or cell.kind == "call"
            if cell.kind == "reasoning" and called and not thought:
                faults.lost("thinking-order", cell.where, "Thinking comes after the call it led to.")
                continue
            thought = thought or cell.kind == "reasoning"
            cells.append(cell)
        ordered.append(entry._replace(cells=cells))
    return filled(ordered)
