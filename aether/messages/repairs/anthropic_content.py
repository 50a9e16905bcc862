"""Contents of Anthropic messages: each message, by itself, as the API takes it.

What concerns several messages is mended in `aether.messages.repairs.anthropic`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.blocks import given
from aether.messages.checks.anthropic import FIELDS, NAME, ROLES, blocks, misplaced
from aether.messages.repairs.notes import changed, lost, speaker
from aether.shapes import Finding, JsonObject

_NAME_CHARS = 128


class Cell(NamedTuple):
    """One block, where it stood, and the number of the call that it is or answers."""

    block: JsonObject
    where: str
    pair: int = -1

    @property
    def kind(self) -> str:
        """Return the type of the block."""
        return str(self.block["type"])


class Entry(NamedTuple):
    """One message at work."""

    at: int
    raw: JsonObject
    role: str
    cells: list[Cell]


def cleaned(at: int, raw: JsonObject, found: list[Finding]) -> Entry:
    """Return a message as far as it alone may be sent; without cells where nothing of it may."""
    where, role = f"messages[{at}]", speaker(raw.get("role"), ROLES)
    if role != raw.get("role"):
        found.append(changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}."))
    if unknown := sorted(map(str, raw.keys() - FIELDS)):
        found.append(changed("unknown-field", where, f"Left out {', '.join(unknown)}."))
    content = raw.get("content")
    listed = [content] if isinstance(content, dict) else blocks(raw)
    cells = []
    for number, block in enumerate(listed):
        place = f"{where}.content[{number}]"
        good = _block(block, role, place, found)
        if good is not None:
            cells.append(Cell(good, place))
    if isinstance(content, dict) or not all(map(_is_typed, listed)):
        found.append(changed("bad-block", where, "Respelt the content, as a list of blocks."))
    if not cells:
        found.append(lost("empty-content", where, "Dropped the message, which holds nothing."))
    return Entry(at, raw, role, cells)


def _block(block: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
    """Return a block that may stand in a message of `role`; None, and a note, where it cannot."""
    if isinstance(block, str):
        block = {"type": "text", "text": block}
    if isinstance(block, dict) and not _is_typed(block) and isinstance(block.get("text"), str):
        block = {**block, "type": "text"}
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        found.append(lost("bad-block", where, f"Dropped {shown(block)}, which is no block."))
        return None
    if misplaced(kind, role):
        found.append(
            lost("wrong-role", where, f"Dropped a {kind}, which cannot stand in a message of role {role}.")
        )
        return None
    mender = _MENDERS.get(kind)
    return mender(block, where, found) if mender else dict(block)


def _text(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    if isinstance(block.get("text"), str) and block["text"].strip():
        return block
    found.append(lost("empty-content", where, f"Dropped a text that is {shown(block.get('text'))}."))
    return None


def _call(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    name, held = block.get("name"), block.get("input")
    if isinstance(held, str) and given(held):
        held = given(held)
        found.append(changed("bad-arguments", where, "Read the arguments from their text."))
    for code, wrong in (
        ("bad-id", not block.get("id") or not isinstance(block["id"], str)),
        ("bad-name", not name or not isinstance(name, str)),
        ("bad-arguments", not isinstance(held, dict)),
    ):
        if wrong:
            found.append(lost(code, where, f"Dropped a call of {shown(name)} that cannot be sent."))
            return None
    good = re.sub(r"[^a-zA-Z0-9_-]", "_", str(name))[:_NAME_CHARS]
    if not NAME.fullmatch(str(name)):
        found.append(changed("bad-name", where, f"The tool {shown(name)} became {good}."))
    return block if (good, held) == (name, block["input"]) else {**block, "name": good, "input": held}


def _result(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    if not block.get("tool_use_id") or not isinstance(block["tool_use_id"], str):
        found.append(lost("bad-id", where, "Dropped a result that names no call."))
        return None
    content = block.get("content")
    if content is None or isinstance(content, str):
        return block
    kept = [inner for inner in content if _is_sound(inner)] if isinstance(content, list) else []
    if kept == content:
        return block
    found.append(lost("bad-block", where, "Dropped the parts of the result that are blank or no blocks."))
    return {**block, "content": kept}


def _is_sound(inner: Any) -> bool:
    if not isinstance(inner, dict) or not isinstance(inner.get("type"), str):
        return False
    return inner["type"] != "text" or (isinstance(inner.get("text"), str) and bool(inner["text"].strip()))


def _thought(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    wanted = ("data",) if block["type"] == "redacted_thinking" else ("thinking", "signature")
    if all(isinstance(block.get(key), str) for key in wanted) and block[wanted[-1]]:
        return block
    found.append(lost("unsigned-thinking", where, "Dropped thinking without its signature."))
    return None


_MENDERS: dict[str, Callable[[JsonObject, str, list[Finding]], JsonObject | None]] = {
    "text": _text,
    "tool_use": _call,
    "tool_result": _result,
    "thinking": _thought,
    "redacted_thinking": _thought,
}


def _is_typed(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("type"), str)


def raw_of(entry: Entry) -> JsonObject:
    """Return the message, the one that came where nothing changed."""
    raw, content = entry.raw, [cell.block for cell in entry.cells]
    if content == blocks(raw) and entry.role == raw.get("role"):
        return raw if raw.keys() <= FIELDS else {key: raw[key] for key in raw if key in FIELDS}
    return {"role": entry.role, "content": content}
