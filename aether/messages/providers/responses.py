"""OpenAI Responses: items, of which only some have a role; calls and results are items of their own.

Every item with a `call_id` is a call, or a result where its type ends in `_output`, also of kinds that are not known.

The rules of OpenAI Responses items: calls and outputs by `call_id`, reasoning and what it led to, item ids.

Any type that ends in `_call` or `_output` and has a `call_id` is one side of a pair: there are many, and
more come. Items that the provider runs itself have no `call_id` and stand alone.

Repairs of OpenAI Responses items: parts, pairs, reasoning that lost what it led to, item ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import InvalidInput, shown
from aether.messages.content import (
    RepairedRaws,
    arguments_text,
    call_block,
    changed,
    known_role,
    lost,
    media_block,
    other_block,
    result_blocks,
    unused_name,
)
from aether.messages.content import block_type as content_kind_of
from aether.messages.model import Block, Message, Role, as_text, content_text
from aether.messages.providers.openai import NAME, function_faults, part_of
from aether.messages.turns import Turn
from aether.types import Finding, JsonObject

# Where the several kinds of call keep what they were called with.
_HELD = ("arguments", "input", "action", "operation", "code")
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def message(raw: JsonObject) -> Message:
    """Return one item as read."""
    kind = content_kind_of(raw)
    if kind in {"", "message"} and "role" in raw:
        role = _ROLES.get(as_text(raw["role"]), "user")
        return Message(role, tuple(_spoken(raw.get("content"))), raw, "responses")
    if kind == "reasoning":
        told = "\n".join(filter(None, (content_text(raw.get("summary")), content_text(raw.get("content")))))
        return Message("assistant", (Block("reasoning", told),), raw, "responses")
    if "call_id" in raw and kind.endswith("_output"):
        return Message("tool", tuple(_result(raw, raw["call_id"])), raw, "responses")
    if "call_id" in raw or (kind.endswith("_call") and isinstance(raw.get("arguments"), str)):
        return Message("assistant", tuple(_call(raw, kind)), raw, "responses")
    return Message("assistant", (other_block(raw),), raw, "responses")


def _spoken(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [Block("text", content, ("content",))]
    if isinstance(content, list):
        return [part_of(part, ("content", position)) for position, part in enumerate(content)]
    return [] if content is None else [other_block(content)]


def _call(raw: JsonObject, kind: str) -> list[Block]:
    held = next((key for key in _HELD if raw.get(key) is not None), "arguments")
    call_id = raw.get("call_id", raw.get("id"))
    tool = as_text(raw.get("name")) or kind.removesuffix("_call")
    found = [call_block(tool, raw.get(held), (held,), call_id)]
    # What a server ran, it answers in the same item.
    return [*found, *_result(raw, call_id)] if isinstance(raw.get("output"), str) else found


def _result(raw: JsonObject, call_id: Any) -> list[Block]:
    output = raw.get("output")
    if isinstance(output, dict) and content_kind_of(output) == "computer_screenshot":
        return [Block("result", "", (), as_text(call_id)), media_block(output, ("output",))]
    return result_blocks(output, ("output",), call_id)


def said(role: Role, text: str) -> JsonObject:
    """Return a new item that says `text`.

    Raises:
        InvalidInput: a tool cannot say anything without a call.
    """
    if role == "tool":
        raise InvalidInput("a tool message needs a call.", fix="Say it as user or assistant.", where="role")
    return {"role": role, "content": text}


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the item itself: reasoning is an item of its own, and goes as a whole."""
    return raw


def written(turn: Turn) -> list[JsonObject]:
    """Return a turn as items: a message for what is said in a row, one for each call and each answer."""
    meta = {"meta": turn.meta} if turn.meta else {}
    items: list[JsonObject] = []
    said: list[JsonObject] = []
    for piece in turn.pieces:
        if isinstance(piece, Block) and piece.kind == "call":
            items += _message(turn, said)
            said = []
            items.append(
                {
                    "type": "function_call",
                    "call_id": piece.call_id,
                    "name": piece.tool,
                    "arguments": piece.text or "{}",
                }
            )
        elif isinstance(piece, Block):
            said.append(
                {"type": "output_text" if turn.role == "assistant" else "input_text", "text": piece.text}
            )
        else:
            said.append(piece)
    items += _message(turn, said)
    for answer in turn.answers:
        told = [{"type": "input_text", "text": answer.block.text}] if answer.block.text else []
        output: Any = [*told, *answer.shown] if answer.shown else answer.block.text
        items.append({"type": "function_call_output", "call_id": answer.block.call_id, "output": output})
    return [{**item, **meta} for item in items]


def _message(turn: Turn, said: list[JsonObject]) -> list[JsonObject]:
    role = "developer" if turn.developer else turn.role
    if len(said) == 1 and "text" in said[0]:
        return [{"role": role, "content": said[0]["text"]}]
    return [{"role": role, "content": said}] if said else []


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
            yield from _check_message(raw, where)
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


def _check_message(raw: JsonObject, where: str) -> Iterator[Finding]:
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


_NAME_CHARS = 64


class Entry(NamedTuple):
    """One item at work, and the number of the call that it is or answers."""

    at: int
    raw: JsonObject
    pair: int = -1

    @property
    def where(self) -> str:
        """Return where the item stood."""
        return f"input[{self.at}]"


def mended(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` as the API takes them, and what was done."""
    found: list[Finding] = []
    cleaned = ((at, _cleaned(raw, f"input[{at}]", found)) for at, raw in enumerate(raws))
    entries = _identified([Entry(at, raw) for at, raw in cleaned if raw is not None], found)
    entries = _answered(_paired(entries, found), found)
    entries = _named(_reasoned(entries, found), found)
    return RepairedRaws([entry.raw for entry in entries], found)


def _cleaned(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    """Return an item that may be sent as far as it alone goes; None where nothing is left."""
    if "meta" in raw:
        found.append(changed("unknown-field", where, "Left out meta."))
        raw = {key: value for key, value in raw.items() if key != "meta"}
    if not kind_of(raw) and "role" in raw:
        found.append(changed("bad-block", where, f"Left out the type {shown(raw.get('type'))}."))
        raw = {key: value for key, value in raw.items() if key != "type"}
    kind = kind_of(raw)
    if kind in PAIRED and not (isinstance(raw.get("call_id"), str) and raw["call_id"]):
        found.append(lost("bad-id", where, f"Dropped a {kind} without a call_id."))
        return None
    if not kind:
        found.append(lost("bad-block", where, f"Dropped {shown(raw)}, which is no item."))
        return None
    mender = _MENDERS.get(kind)
    return mender(raw, where, found) if mender else raw


def _repair_reasoning(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject:
    if isinstance(raw.get("summary"), list):
        return raw
    found.append(changed("bad-block", where, "Reasoning without a summary has an empty one now."))
    return {**raw, "summary": []}


def _reference(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    if isinstance(raw.get("id"), str):
        return raw
    found.append(lost("bad-id", where, "Dropped a reference without an id."))
    return None


def _repair_call(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    name, text = raw.get("name"), arguments_text(raw.get("arguments"))
    if not isinstance(name, str) or not name or text is None:
        found.append(lost("bad-name", where, f"Dropped a call of {shown(name)} that cannot be sent."))
        return None
    if NAME.fullmatch(name) and text == raw["arguments"]:
        return raw
    good = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_NAME_CHARS]
    found.append(
        changed("bad-name" if good != name else "bad-arguments", where, f"Respelt the call of {shown(name)}.")
    )
    return {**raw, "name": good, "arguments": text}


def _output(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject:
    output = raw.get("output")
    if isinstance(output, (str, list)):
        return raw
    found.append(changed("empty-content", where, f"The output {shown(output)} is text now."))
    return {**raw, "output": "" if output is None else json.dumps(output, ensure_ascii=False)}


def _repair_message(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    content = raw.get("content")
    listed = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    role = _role(raw.get("role"), listed)
    if role != raw.get("role"):
        found.append(changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}."))
        raw = {**raw, "role": role}
    if isinstance(content, str) or content == []:
        return raw
    kept = [
        part
        for number, one in enumerate(listed)
        if (part := _repair_part(one, role, f"{where}.content[{number}]", found)) is not None
    ]
    if not kept:
        found.append(lost("empty-content", where, "Dropped the message, which holds nothing."))
        return None
    if kept == content:
        return raw
    found.append(changed("bad-block", where, "Respelt the content, as parts that may stand in it."))
    return {**raw, "content": kept}


def _role(role: Any, parts: Sequence[Any]) -> str:
    if not isinstance(role, str) or role not in ROLES:
        said = any(isinstance(part, dict) and part.get("type") == "output_text" for part in parts)
        return "assistant" if said else known_role(role, ROLES)
    return role


def _repair_part(part: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
    spelt = "output_text" if role == "assistant" else "input_text"
    if isinstance(part, str):
        part = {"type": spelt, "text": part}
    text = part.get("text") if isinstance(part, dict) else None
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(text, str) and kind in ("input_text", "output_text"):
        kind = None
    elif isinstance(text, str) and (kind in ("input_text", "output_text") or not isinstance(kind, str)):
        return part if kind == spelt else {**part, "type": spelt}
    if not isinstance(kind, str):
        found.append(lost("bad-block", where, f"Dropped {shown(part)}, which is no content part."))
        return None
    if kind in (GIVEN if role == "assistant" else SAID):
        found.append(
            lost("wrong-role", where, f"Dropped a {kind}, which cannot stand in a message of role {role}.")
        )
        return None
    good: JsonObject = part
    return good


_MENDERS: dict[str, Callable[[JsonObject, str, list[Finding]], JsonObject | None]] = {
    "message": _repair_message,
    "reasoning": _repair_reasoning,
    "item_reference": _reference,
    "function_call": _repair_call,
    "function_call_output": _output,
}


def _identified(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` in which no two items have one id."""
    seen: set[str] = set()
    kept = []
    for entry in entries:
        key = entry.raw.get("id")
        if not isinstance(key, str) or key not in seen:
            kept.append(entry)
        elif kind_of(entry.raw) in ("reasoning", "item_reference"):
            found.append(lost("repeated-id", entry.where, f"Dropped the second item {shown(key)}."))
        else:
            found.append(
                changed("repeated-id", entry.where, f"Left out the id {shown(key)}, which another item has.")
            )
            raw = {name: value for name, value in entry.raw.items() if name != "id"}
            kept.append(entry._replace(raw=raw))
        if isinstance(key, str):
            seen.add(key)
    return kept


def _paired(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with calls and outputs numbered; an early output after its call, one without call gone."""
    calls: list[Entry] = []
    waiting: dict[str, list[int]] = {}
    early: list[Entry] = []
    pairs: dict[int, int] = {}
    for entry in entries:
        if is_call(entry.raw):
            waiting.setdefault(entry.raw["call_id"], []).append(len(calls))
            pairs[entry.at] = len(calls)
            calls.append(entry)
        elif is_output(entry.raw):
            if waiting.get(entry.raw["call_id"]):
                pairs[entry.at] = waiting[entry.raw["call_id"]].pop()
            else:
                early.append(entry)
    moved: dict[int, Entry] = {}
    for entry in early:
        later = [pair for pair in waiting.get(entry.raw["call_id"], ()) if calls[pair].at > entry.at]
        if later:
            waiting[entry.raw["call_id"]].remove(later[0])
            moved[calls[later[0]].at] = entry._replace(pair=later[0])
            found.append(changed("interleaved-result", entry.where, "Moved the output to after its call."))
        else:
            found.append(
                lost(
                    "orphan-result",
                    entry.where,
                    f"Dropped an output: no call {shown(entry.raw['call_id'])} waits for it.",
                )
            )
    gone = {entry.at for entry in early}
    return [
        one
        for entry in entries
        if entry.at not in gone
        for one in (entry._replace(pair=pairs.get(entry.at, -1)), *_some(moved.get(entry.at)))
    ]


def _some(entry: Entry | None) -> Iterable[Entry]:
    return () if entry is None else (entry,)


def _answered(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without the calls that were never answered; those of the last response may be yet."""
    results = {entry.pair for entry in entries if is_output(entry.raw)}
    tail = response_at_the_end([entry.raw for entry in entries])
    kept = []
    for number, entry in enumerate(entries):
        if is_call(entry.raw) and entry.pair not in results and number < tail:
            key = shown(entry.raw["call_id"])
            found.append(
                lost("missing-result", entry.where, f"Dropped the call {key}, which was never answered.")
            )
        else:
            kept.append(entry)
    return kept


def _reasoned(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without reasoning that nothing of the same response follows."""
    kept: list[Entry] = []
    for entry in reversed(entries):
        if kind_of(entry.raw) == "reasoning" and not (kept and is_said(kept[-1].raw)):
            found.append(
                lost("dangling-reasoning", entry.where, "Dropped reasoning without the item it led to.")
            )
        else:
            kept.append(entry)
    kept.reverse()
    return kept


def _named(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` in which no two calls wait under one call_id, and no call_id is too long."""
    names: dict[int, str] = {}
    waiting: set[str] = set()
    named = []
    for entry in entries:
        if entry.pair < 0:
            named.append(entry)
            continue
        old = entry.raw["call_id"]
        if is_call(entry.raw):
            names[entry.pair] = unused_name(old, waiting, most=ID_CHARS)
            waiting.add(names[entry.pair])
            if names[entry.pair] != old:
                found.append(
                    changed(
                        "repeated-id",
                        entry.where,
                        f"The call {shown(old)} is {names[entry.pair]} now, on both sides.",
                    )
                )
        else:
            waiting.discard(names[entry.pair])
        new = names[entry.pair]
        named.append(entry if new == old else entry._replace(raw={**entry.raw, "call_id": new}))
    return named
