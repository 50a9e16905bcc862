"""OpenAI Responses: items, of which only some have a role; calls, outputs and reasoning are items of their own.

There are many types and more come: every item with a `call_id` is one side of a pair, its output if the type ends in
`_output`. Items that the provider runs itself have no `call_id` and need no output. `findings` names what the API
refuses, and `repaired` changes the items until it refuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages import findings as note
from aether.messages.content import (
    as_json,
    block_type,
    call_block,
    media_block,
    media_fault,
    other_block,
    result_blocks,
)
from aether.messages.findings import RepairedRaws
from aether.messages.model import Block, Message, as_text, content_text
from aether.messages.providers.openai import ROLES as OPENAI_ROLES
from aether.messages.providers.openai import (
    cleaned_custom,
    cleaned_function,
    custom_faults,
    function_faults,
    known_part,
    part_of,
    rewritten_call,
)
from aether.messages.turns import Turn
from aether.types import Finding, JsonObject

ROLES = frozenset({"user", "assistant", "system", "developer"})
# Types of an item that must have the id of the call that they are or answer.
PAIRED = frozenset({"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"})
KNOWN = PAIRED | {
    "message", "reasoning", "item_reference", "compaction", "compaction_trigger", "additional_tools", "program",
    "configuration_update", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response",
}  # fmt: skip
INPUT_PARTS = frozenset({"input_text", "input_image", "input_file", "input_audio"})
OUTPUT_PARTS = frozenset({"output_text", "refusal"})
ID_CHARS = 64
# The keys of the arguments in the several kinds of call.
_ARGUMENT_KEYS = ("arguments", "input", "action", "operation", "code")


def message(raw: JsonObject) -> Message:
    """Return one item as read."""
    kind = block_type(raw)
    if kind in {"", "message"} and "role" in raw:
        role = OPENAI_ROLES.get(as_text(raw["role"]), "user") if raw["role"] != "function" else "user"
        return Message(role, tuple(_blocks(raw.get("content"))), raw, "responses")
    if kind == "reasoning":
        texts = (content_text(raw.get("summary")), content_text(raw.get("content")))
        return Message("assistant", (Block("reasoning", "\n".join(filter(None, texts))),), raw, "responses")
    if "call_id" in raw and kind.endswith("_output"):
        return Message("tool", tuple(_result(raw, raw["call_id"])), raw, "responses")
    if "call_id" not in raw and not (kind.endswith("_call") and isinstance(raw.get("arguments"), str)):
        return Message("assistant", (other_block(raw),), raw, "responses")
    key = next((key for key in _ARGUMENT_KEYS if raw.get(key) is not None), "arguments")
    call_id = raw.get("call_id", raw.get("id"))
    tool = as_text(raw.get("name")) or kind.removesuffix("_call")
    found = [call_block(tool, raw.get(key), (key,), call_id)]
    if isinstance(raw.get("output"), str):  # a call that a server ran has its output in the same item
        found += _result(raw, call_id)
    return Message("assistant", tuple(found), raw, "responses")


def _blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [Block("text", content, ("content",))]
    if isinstance(content, list):
        return [part_of(part, ("content", position)) for position, part in enumerate(content)]
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


def findings(raws: Sequence[JsonObject], known: int = 0) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, item by item, then pairs, reasoning and ids."""
    for at, raw in enumerate(raws[known:], known):
        yield from _check_item(raw, f"input[{at}]")
    yield from _check_pairs(raws)
    seen: set[str] = set()
    for at, raw in enumerate(raws):
        if item_type(raw) == "reasoning" and not (at + 1 < len(raws) and _is_from_model(raws[at + 1])):
            what = "Reasoning without the item it led to."
            yield note.error("dangling-reasoning", f"input[{at}]", what, "Drop it.")
    for at, raw in enumerate(raws):
        key = raw.get("id")
        if isinstance(key, str):
            if key in seen:
                what = f"Another item has the id {shown(key)}."
                yield note.error("repeated-id", f"input[{at}]", what, "Leave the id out.")
            seen.add(key)


def item_type(raw: JsonObject) -> str:
    """Return the type of an item, which a message may leave out."""
    kind = raw.get("type", "message" if "role" in raw else None)
    return kind if isinstance(kind, str) else ""


def _is_call(raw: JsonObject) -> bool:
    """Return whether an item is a call that the caller has to answer."""
    return item_type(raw).endswith("_call") and isinstance(raw.get("call_id"), str)


def _is_output(raw: JsonObject) -> bool:
    return item_type(raw).endswith("_output") and isinstance(raw.get("call_id"), str)


def _is_from_model(raw: JsonObject) -> bool:
    kind = item_type(raw)
    if kind == "message":
        return raw.get("role") == "assistant"
    others = ("", "compaction_trigger", "item_reference")
    return kind not in others and not kind.endswith("_output")


def _check_item(raw: JsonObject, where: str) -> Iterator[Finding]:
    kind, key, own = item_type(raw), raw.get("call_id"), raw.get("id")
    if own is not None and not isinstance(own, str):
        yield note.error("bad-id", where, f"{shown(own)} is not an id.", "Leave it out.")
    if "meta" in raw:
        yield note.error("unknown-field", where, "meta: not a field of an item.", "Leave it out.")
    if not kind:
        yield note.error("bad-block", where, f"{shown(raw)} is not an item.", "Give it a type or a role.")
    elif not _is_known(raw, kind):
        yield note.unknown_type(kind, where)
    elif kind not in KNOWN and not kind.endswith(("_call", "_output")):
        yield note.warning("unknown-block", where, f"{shown(kind)} is not a known type.", "Check it.")
    yield from _check_fields(raw, kind, where)
    if kind in PAIRED and (not isinstance(key, str) or not 0 < len(key) <= ID_CHARS):
        what = f"{shown(key)} is not a call_id."
        yield note.error("bad-id", where, what, f"Use 1 to {ID_CHARS} characters.")


def _check_fields(raw: JsonObject, kind: str, where: str) -> Iterator[Finding]:
    """Yield the faults of an item's content."""
    match kind:
        case "message":
            yield from _check_message(raw, where)
        case "reasoning" if not _is_summary(raw.get("summary")):
            yield note.error("bad-block", where, "Reasoning without its summary.", "Give a list of texts.")
        case "item_reference" if not isinstance(raw.get("id"), str):
            yield note.error("bad-id", where, "A reference without an id.", "Drop it.")
        case "function_call":
            yield from function_faults(raw, where)
        case "custom_tool_call":
            yield from custom_faults(raw, where)
        case "function_call_output" | "custom_tool_call_output":
            output = raw.get("output")
            if not isinstance(output, (str, list)):
                what = f"The output is {shown(output)}."
                yield note.error("empty-content", where, what, "Give text or parts.")
            for number, part in enumerate(output if isinstance(output, list) else []):
                yield from _check_part(part, "user", f"{where}.output[{number}]")


def _is_known(raw: JsonObject, kind: str) -> bool:
    """Return whether an item may be one of the API's own: new types come, and the API gives each of its items an id."""
    api_own = bool(as_text(raw.get("id"))) and "role" not in raw
    return kind in KNOWN or kind.endswith(("_call", "_output")) or api_own


def _is_summary(summary: Any) -> bool:
    return isinstance(summary, list) and all(map(_is_summary_text, summary))


def _is_summary_text(one: Any) -> bool:
    return isinstance(one, dict) and one.get("type") == "summary_text" and isinstance(one.get("text"), str)


def _check_message(raw: JsonObject, where: str) -> Iterator[Finding]:
    role, content = raw.get("role"), raw.get("content")
    if not isinstance(role, str) or role not in ROLES:
        yield note.bad_role(role, where, "Use user, assistant, system or developer.")
    if not isinstance(content, (str, list)):
        yield note.bad_content(content, where, "Give text or parts.")
    elif not content and isinstance(content, list):
        yield note.warning("empty-content", where, "Content is an empty list.", "Drop the message.")
    for number, part in enumerate(content if isinstance(content, list) else []):
        yield from _check_part(part, role, f"{where}.content[{number}]")


def _check_part(part: Any, role: Any, where: str) -> Iterator[Finding]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        yield note.untyped(part, where)
    elif kind not in INPUT_PARTS | OUTPUT_PARTS:
        yield note.unknown_type(kind, where)
    elif kind in (INPUT_PARTS if role == "assistant" else OUTPUT_PARTS):
        yield note.wrong_role(kind, where, shown(role), "Use output_text for the assistant, input_text else.")
    elif kind.endswith("_text") or kind == "refusal":
        text = part.get("refusal" if kind == "refusal" else "text")
        if not isinstance(text, str):
            yield note.bad_text(text, where)
    elif fault := media_fault(part, "responses"):
        yield note.bad_media(fault, where)


def _check_pairs(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    waiting: dict[str, list[int]] = {}
    answered: set[str] = set()
    last = {raw["call_id"]: at for at, raw in enumerate(raws) if _is_call(raw)}
    for at, raw in enumerate(raws):
        where, key = f"input[{at}]", raw.get("call_id", "")
        if _is_call(raw):
            if waiting.get(key):
                what = f"Another call with the call_id {shown(key)} waits for its output."
                yield note.error("repeated-id", where, what, "Rename one.")
            elif key in answered:
                what = f"An earlier call has the call_id {shown(key)}."
                yield note.warning("repeated-id", where, what, "Rename it, and its output.")
            waiting.setdefault(key, []).append(at)
        elif not _is_output(raw):
            continue
        elif waiting.get(key):
            waiting[key].pop()
            answered.add(key)
        elif last.get(key, -1) > at:
            what = f"The output comes before its call {shown(key)}."
            yield note.error("interleaved-result", where, what, "Put it after its call.")
        else:
            yield note.repeated_result(key, where) if key in answered else note.orphan_result(key, where)
    tail = _last_response(raws)
    for at in sorted(at for found in waiting.values() for at in found):
        call = f"The call {shown(raws[at]['call_id'])}"
        yield note.without_result(call, f"input[{at}]", waiting=at >= tail)


def _last_response(raws: Sequence[JsonObject]) -> int:
    """Return the start of the last response if only outputs come after it; else the number of items."""
    at = len(raws)
    while at and _is_output(raws[at - 1]):
        at -= 1
    after = at
    while at and _is_from_model(raws[at - 1]):
        at -= 1
    return at if at < after else len(raws)


class _Entry(NamedTuple):
    """One item under repair, and the number of the call that it is or answers."""

    at: int
    raw: JsonObject
    pair: int = -1

    @property
    def where(self) -> str:
        """Return the original place of the item."""
        return f"input[{self.at}]"


def repaired(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` as the API accepts them, with a finding for each change."""
    found: list[Finding] = []
    cleaned = ((at, _cleaned(raw, f"input[{at}]", found)) for at, raw in enumerate(raws))
    entries = _with_own_ids([_Entry(at, raw) for at, raw in cleaned if raw is not None], found)
    entries = _without_unanswered(_paired(entries, found), found)
    kept: list[_Entry] = []
    for entry in reversed(entries):
        if item_type(entry.raw) == "reasoning" and not (kept and _is_from_model(kept[-1].raw)):
            what = "Dropped reasoning without the item it led to."
            found.append(note.lost("dangling-reasoning", entry.where, what))
        else:
            kept.append(entry)
    entries = _renamed(kept[::-1], found)
    return RepairedRaws([entry.raw for entry in entries], found, [entry.at for entry in entries])


def _cleaned(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    """Return an item without what cannot be sent, whatever is around it; None if nothing is left."""
    raw = _without_odd_fields(raw, where, found)
    kind = item_type(raw)
    if kind and "role" in raw and not _is_known(raw, kind):
        found.append(note.as_other_type(kind, "message", where))
        raw, kind = {**raw, "type": "message"}, "message"
    if kind == "message":
        return _cleaned_message(raw, where, found)
    if kind in PAIRED and not (isinstance(raw.get("call_id"), str) and raw["call_id"]):
        found.append(note.lost("bad-id", where, f"Dropped a {kind} without a call_id."))
    elif kind in ("function_call", "custom_tool_call"):
        return _cleaned_call(raw, where, found)
    elif kind and not _is_known(raw, kind):
        found.append(note.dropped_unknown(kind, where))
    elif not kind:
        found.append(note.lost("bad-block", where, f"Dropped {shown(raw)}, which is not an item."))
    elif kind == "item_reference" and not isinstance(raw.get("id"), str):
        found.append(note.lost("bad-id", where, "Dropped a reference without an id."))
    else:
        return _completed(raw, kind, where, found)
    return None


def _without_odd_fields(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject:
    odd = {
        "meta": ("unknown-field", "meta" in raw),
        "id": ("bad-id", raw.get("id") is not None and not isinstance(raw["id"], str)),
        "type": ("bad-block", not item_type(raw) and "role" in raw),
    }
    for key, (code, wrong) in odd.items():
        if wrong:
            what = f"Left out {key}." if key == "meta" else f"Left out the {key} {shown(raw.get(key))}."
            found.append(note.changed(code, where, what))
    odd_keys = {key for key, (_, wrong) in odd.items() if wrong}
    return {key: value for key, value in raw.items() if key not in odd_keys} if odd_keys else raw


def _completed(raw: JsonObject, kind: str, where: str, found: list[Finding]) -> JsonObject:
    """Return an item with the summary or the output that its type needs."""
    output = raw.get("output")
    if kind == "reasoning" and not _is_summary(raw.get("summary")):
        what = "Left out of the summary of reasoning what is not text."
        found.append(note.changed("bad-block", where, what))
        summary = raw.get("summary")
        kept = filter(_is_summary_text, summary if isinstance(summary, list) else [])
        return {**raw, "summary": list(kept)}
    if kind not in ("function_call_output", "custom_tool_call_output"):
        return raw
    if not isinstance(output, (str, list)):
        found.append(note.changed("empty-content", where, f"Rewrote the output {shown(output)} as text."))
        return {**raw, "output": "" if output is None else as_json(output)}
    if isinstance(output, str):
        return raw
    parts = [
        part
        for number, one in enumerate(output)
        if (part := _cleaned_part(one, "user", f"{where}.output[{number}]", found)) is not None
    ]
    if parts == output:
        return raw
    found.append(note.changed("bad-block", where, "Rewrote the output as parts that it can hold."))
    return {**raw, "output": parts}


def _cleaned_call(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    cleaned = cleaned_function(raw) if item_type(raw) == "function_call" else cleaned_custom(raw)
    if cleaned is None:
        name = shown(raw.get("name"))
        found.append(note.lost("bad-name", where, f"Dropped a call of {name} that cannot be sent."))
    elif cleaned == raw:
        return raw
    else:
        found.append(rewritten_call(raw, cleaned, where))
    return cleaned


def _cleaned_message(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    role, content = raw.get("role"), raw.get("content")
    listed = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    if not isinstance(role, str) or role not in ROLES:
        answered = any(isinstance(part, dict) and part.get("type") == "output_text" for part in listed)
        role = "assistant" if answered else note.known_role(role, ROLES)
        found.extend(note.new_role(raw, role, where))
        raw = {**raw, "role": role}
    if isinstance(content, str) or content == []:
        return raw
    kept = [
        part
        for number, one in enumerate(listed)
        if (part := _cleaned_part(one, role, f"{where}.content[{number}]", found)) is not None
    ]
    if not kept:
        found.append(note.lost("empty-content", where, "Dropped the message, which is empty."))
        return None
    if kept == content:
        return raw
    found.append(note.changed("bad-block", where, "Rewrote the content as parts that the role can hold."))
    return {**raw, "content": kept}


def _cleaned_part(part: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
    right = "output_text" if role == "assistant" else "input_text"
    if isinstance(part, str):
        part = {"type": right, "text": part}
    text = part.get("text") if isinstance(part, dict) else None
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(text, str) and kind in ("input_text", "output_text"):
        kind = None
    elif isinstance(text, str) and (kind in ("input_text", "output_text") or not isinstance(kind, str)):
        return part if kind == right else {**part, "type": right}
    if not isinstance(kind, str) or (kind == "refusal" and not isinstance(part.get("refusal"), str)):
        found.append(note.lost("bad-block", where, f"Dropped {shown(part)}, which is not a content part."))
        return None
    good: JsonObject | None = part
    if kind != "refusal" and media_fault(part, "responses"):
        good = known_part(part, "responses", where, found, text_type=right)
    if good and good["type"] in (INPUT_PARTS if role == "assistant" else OUTPUT_PARTS):
        found.append(note.dropped_content(good["type"], where, role))
        return None
    return good


def _with_own_ids(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` in which no two items have one id."""
    seen: set[str] = set()
    kept = []
    for entry in entries:
        key = entry.raw.get("id")
        if not isinstance(key, str) or key not in seen:
            kept.append(entry)
        elif item_type(entry.raw) in ("reasoning", "item_reference"):
            found.append(note.lost("repeated-id", entry.where, f"Dropped the second item {shown(key)}."))
        else:
            what = f"Left out the id {shown(key)}, which another item has."
            found.append(note.changed("repeated-id", entry.where, what))
            raw = {name: value for name, value in entry.raw.items() if name != "id"}
            kept.append(entry._replace(raw=raw))
        if isinstance(key, str):
            seen.add(key)
    return kept


def _paired(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` with calls and outputs numbered: early outputs after their calls, others without call dropped."""
    calls: list[_Entry] = []
    waiting: dict[str, list[int]] = {}
    early: list[_Entry] = []
    pairs: dict[int, int] = {}
    for entry in entries:
        if _is_call(entry.raw):
            waiting.setdefault(entry.raw["call_id"], []).append(len(calls))
            pairs[entry.at] = len(calls)
            calls.append(entry)
        elif _is_output(entry.raw):
            if waiting.get(entry.raw["call_id"]):
                pairs[entry.at] = waiting[entry.raw["call_id"]].pop()
            else:
                early.append(entry)
    moved: dict[int, list[_Entry]] = {}
    for entry in early:
        key = entry.raw["call_id"]
        later = [pair for pair in waiting.get(key, ()) if calls[pair].at > entry.at]
        if later:
            waiting[key].remove(later[0])
            moved[calls[later[0]].at] = [entry._replace(pair=later[0])]
            what = "Moved the output to after its call."
            found.append(note.changed("interleaved-result", entry.where, what))
        else:
            found.append(note.dropped_orphan(shown(key), entry.where))
    left = {entry.at for entry in early}
    return [
        one
        for entry in entries
        if entry.at not in left
        for one in (entry._replace(pair=pairs.get(entry.at, -1)), *moved.get(entry.at, []))
    ]


def _without_unanswered(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` without calls that have no output, except in the last response, which may be answered yet."""
    results = {entry.pair for entry in entries if _is_output(entry.raw)}
    tail = _last_response([entry.raw for entry in entries])
    kept = []
    for number, entry in enumerate(entries):
        if _is_call(entry.raw) and entry.pair not in results and number < tail:
            found.append(note.dropped_call(shown(entry.raw["call_id"]), entry.where))
        else:
            kept.append(entry)
    return kept


def _renamed(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` without two calls waiting under one call_id, and without call_ids that are too long."""
    names: dict[int, str] = {}
    waiting: set[str] = set()
    renamed = []
    for entry in entries:
        if entry.pair < 0:
            renamed.append(entry)
            continue
        old = entry.raw["call_id"]
        if _is_call(entry.raw):
            new = names[entry.pair] = note.unused_name(old, waiting, most=ID_CHARS)
            waiting.add(new)
            if new != old:
                what = f"The call {shown(old)} became {new}, with its output."
                found.append(note.changed("repeated-id", entry.where, what))
        else:
            new = names[entry.pair]
            waiting.discard(new)
        renamed.append(entry if new == old else entry._replace(raw={**entry.raw, "call_id": new}))
    return renamed
