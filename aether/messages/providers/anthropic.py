"""Anthropic Messages: content blocks, results inside user messages, thinking with signatures.

A user message that holds nothing but tool results has the role `tool`. What a server tool answered stands in
the assistant message that called it.

The rules of Anthropic Messages: roles, blocks, calls and results, thinking.

The API joins adjacent messages of one role into one turn before it looks, and so does this: calls of a turn
must be answered by the first blocks of the next one. `system` among the messages is for the newest models.

Repairs of Anthropic Messages: the opening, results moved to their calls, thinking, ids.

Contents of Anthropic messages: each message, by itself, as the API takes it.

What concerns several messages is mended in `aether.messages.providers.anthropic`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from aether.errors import InvalidInput, shown
from aether.messages.content import (
    MEDIA,
    RepairedRaws,
    block_type,
    call_block,
    changed,
    is_text_block,
    known_role,
    lost,
    media_block,
    other_block,
    result_blocks,
    unused_name,
)
from aether.messages.content import Place as content_Place
from aether.messages.model import Block, Message, Role, as_arguments, as_text, is_failure_text
from aether.messages.turns import Answer
from aether.messages.turns import Turn as turns_Turn
from aether.text.regex import lazy
from aether.types import Finding, JsonObject

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    content = raw.get("content")
    role = _ROLES.get(as_text(raw.get("role")), "user")
    if role == "user" and isinstance(content, list) and content and all(map(is_result, content)):
        role = "tool"
    return Message(role, tuple(blocks(content)), raw, "anthropic")


def is_result(block: Any) -> bool:
    """Tell whether a content block is what a tool answered."""
    return isinstance(block, dict) and block_type(block).endswith("tool_result")


def blocks(content: Any) -> list[Block]:
    """Return what the content of a message holds, in order."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Block("text", content, ("content",))]
    if not isinstance(content, list):
        return [other_block(content)]
    return [
        found for position, block in enumerate(content) for found in block_of(block, ("content", position))
    ]


def block_of(block: Any, at: content_Place) -> list[Block]:
    """Return what one content block holds: itself, and the media inside of a result."""
    if not isinstance(block, dict):
        return [other_block(block)]
    kind = block_type(block)
    if is_text_block(block):
        return [Block("text", block["text"], (*at, "text"))]
    if kind in CALLS:
        return [call_block(block.get("name"), block.get("input"), (*at, "input"), block.get("id"))]
    if is_result(block):
        broken = block.get("is_error")
        return result_blocks(block.get("content"), (*at, "content"), block.get("tool_use_id"), broken=broken)
    if kind in THOUGHTS:
        return [Block("reasoning", as_text(block.get("thinking")))]
    return [media_block(block, at)] if kind in MEDIA else [other_block(block)]


def said(role: Role, text: str) -> JsonObject:
    """Return a new message that says `text`.

    Raises:
        InvalidInput: a tool cannot say anything without a call.
    """
    if role == "tool":
        raise InvalidInput("a tool message needs a call.", fix="Say it as user or assistant.", where="role")
    return {"role": role, "content": text}


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its thinking; itself where nothing else would be left."""
    content = raw.get("content")
    if not isinstance(content, list):
        return raw
    kept = [block for block in content if not (isinstance(block, dict) and block_type(block) in THOUGHTS)]
    return {**raw, "content": kept} if kept and len(kept) < len(content) else raw


def written(turn: turns_Turn) -> list[JsonObject]:
    """Return a turn as messages: what is said, and the answers to its calls in one after it."""
    meta = {"meta": turn.meta} if turn.meta else {}
    if len(turn.pieces) == 1 and isinstance(turn.pieces[0], Block) and turn.pieces[0].kind == "text":
        raw: JsonObject = {"role": turn.role, "content": turn.pieces[0].text, **meta}
    else:
        raw = {"role": turn.role, "content": [_written(piece) for piece in turn.pieces], **meta}
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
        told: list[JsonObject] = [{"type": "text", "text": block.text}] if block.text.strip() else []
        raw["content"] = [*told, *answer.shown]
    # Where the text says it already, readers see it without the flag.
    return {**raw, "is_error": block.is_error} if block.is_error != is_failure_text(block.text) else raw


FIELDS = frozenset({"role", "content"})
ROLES = frozenset({"user", "assistant", "system"})
# The API's own pattern for ids and names, and its length of names.
ID = lazy(r"[a-zA-Z0-9_-]+")
NAME = lazy(r"[a-zA-Z0-9_-]{1,128}")
THINKING = frozenset({"thinking", "redacted_thinking"})
# Of the other types each role may use; what the model's own servers run stands in assistant messages.
USER_ONLY = frozenset({"image", "document", "tool_result", "search_result", "container_upload"})
ASSISTANT_ONLY = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_result"}) | THINKING
KNOWN = USER_ONLY | ASSISTANT_ONLY | {"text", "compaction"}


class Place(NamedTuple):
    """One block and where it stands."""

    where: str
    block: JsonObject


class Turn(NamedTuple):
    """Adjacent messages of one role, as the API sees them."""

    role: str
    places: list[Place]
    first: str
    """Where it begins."""
    messages: int

    def of(self, kind: str) -> list[Place]:
        """Return its blocks of one type."""
        return [place for place in self.places if place.block.get("type") == kind]


def findings(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, message by message and then turn by turn."""
    for at, raw in enumerate(raws):
        yield from _message(raw, f"messages[{at}]", last=at == len(raws) - 1)
    turns = _turns(raws)
    yield from _order(turns)
    yield from _ids(turns)
    yield from _pairs(turns)
    for turn in turns:
        yield from _thinking(turn)
    yield from _end(turns)


def check_blocks(raw: JsonObject) -> list[Any]:
    """Return the content of a message as blocks; a text is one text block."""
    content = raw.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _turns(raws: Sequence[JsonObject]) -> list[Turn]:
    turns = []
    for role, run in groupby(enumerate(raws), key=lambda one: one[1].get("role")):
        members = list(run)
        places = [
            Place(f"messages[{at}].content[{number}]", block)
            for at, raw in members
            for number, block in enumerate(check_blocks(raw))
            if isinstance(block, dict)
        ]
        turns.append(Turn(str(role), places, f"messages[{members[0][0]}]", len(members)))
    return turns


def _message(raw: JsonObject, where: str, *, last: bool) -> Iterator[Finding]:
    role, content = raw.get("role"), raw.get("content")
    if not isinstance(role, str) or role not in ROLES:
        yield Finding("error", "bad-role", where, f"{shown(role)} is no role.", "Use user or assistant.")
    elif role == "system":
        yield Finding(
            "warning", "system-role", where, "Only the newest models take a system message among the messages.",
            "Pass it as `system`.",
        )  # fmt: skip
    if unknown := sorted(map(str, raw.keys() - FIELDS)):
        yield Finding(
            "error", "unknown-field", where, f"{', '.join(unknown)}: no field of a message.", "Leave it out."
        )
    if not isinstance(content, (str, list)):
        yield Finding(
            "error", "empty-content", where, f"Content is {shown(content)}.", "Give text or blocks."
        )
    elif not content and not (last and role == "assistant"):
        yield Finding("error", "empty-content", where, "The message is empty.", "Drop it.")
    for number, block in enumerate(check_blocks(raw) if content else []):
        yield from _block(block, role, f"{where}.content[{number}]")


def _block(block: Any, role: Any, where: str) -> Iterator[Finding]:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        yield Finding("error", "bad-block", where, f"{shown(block)} is no block.", "Give it a type.")
        return
    if misplaced(kind, role):
        yield Finding(
            "error",
            "wrong-role",
            where,
            f"{kind} cannot stand in a message of role {role}.",
            "Move or drop it.",
        )
    if kind not in KNOWN and not kind.endswith("_tool_result"):
        yield Finding(
            "warning", "unknown-block", where, f"{shown(kind)} is no known type of block.", "Check it."
        )
    match kind:
        case "text":
            yield from _text(block, where)
        case "tool_use":
            yield from _call(block, where)
        case "tool_result":
            yield from _result(block, where)
        case "thinking" | "redacted_thinking":
            yield from _thought(block, where)


def misplaced(kind: str, role: Any) -> bool:
    """Tell whether a block of this type cannot stand in a message of `role`."""
    return (kind in USER_ONLY and role in ("assistant", "system")) or (
        kind in ASSISTANT_ONLY and role in ("user", "system")
    )


def _text(block: JsonObject, where: str) -> Iterator[Finding]:
    text = block.get("text")
    if not isinstance(text, str):
        yield Finding("error", "bad-block", where, f"The text is {shown(text)}.", "Give text.")
    elif not text.strip():
        yield Finding("error", "empty-content", where, "The text is blank.", "Drop the block.")


def _call(block: JsonObject, where: str) -> Iterator[Finding]:
    key, name, given = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(key, str) or not ID.fullmatch(key):
        yield Finding(
            "error", "bad-id", where, f"{shown(key)} is no id of a call.", "Use letters, digits, _ and -."
        )
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Finding(
            "error",
            "bad-name",
            where,
            f"{shown(name)} is no name of a tool.",
            "Use letters, digits, _ and -.",
        )
    if not isinstance(given, dict):
        yield Finding("error", "bad-arguments", where, f"The input is {shown(given)}.", "Give an object.")


def _result(block: JsonObject, where: str) -> Iterator[Finding]:
    key, content = block.get("tool_use_id"), block.get("content")
    if not isinstance(key, str) or not ID.fullmatch(key):
        yield Finding(
            "error", "bad-id", where, f"{shown(key)} is no id of a call.", "Use letters, digits, _ and -."
        )
    if content is not None and not isinstance(content, (str, list)):
        yield Finding("error", "bad-block", where, f"Content is {shown(content)}.", "Give text or blocks.")
    for number, inner in enumerate(content if isinstance(content, list) else []):
        place = f"{where}.content[{number}]"
        if not isinstance(inner, dict) or not isinstance(inner.get("type"), str):
            yield Finding("error", "bad-block", place, f"{shown(inner)} is no block.", "Give it a type.")
        elif inner["type"] == "text":
            yield from _text(inner, place)


def _thought(block: JsonObject, where: str) -> Iterator[Finding]:
    if block["type"] == "redacted_thinking":
        sound = isinstance(block.get("data"), str) and block["data"]
    else:
        sound = isinstance(block.get("thinking"), str) and isinstance(block.get("signature"), str)
        sound = sound and block["signature"]
    if not sound:
        yield Finding(
            "error", "unsigned-thinking", where, "Thinking without its signature.", "Drop the block."
        )


def _order(turns: list[Turn]) -> Iterator[Finding]:
    first = next((turn for turn in turns if turn.role != "system"), None)
    if first is not None and first.role == "assistant":
        yield Finding(
            "error",
            "first-role",
            first.first,
            "The first message is the assistant's.",
            "Begin with a user message.",
        )


def _ids(turns: list[Turn]) -> Iterator[Finding]:
    seen: set[str] = set()
    for turn in turns:
        for where, block in turn.of("tool_use"):
            key = str(block.get("id"))
            if key in seen:
                yield Finding(
                    "error",
                    "repeated-id",
                    where,
                    f"Another call has the id {shown(key)}.",
                    "Rename one, and its result.",
                )
            seen.add(key)


def _pairs(turns: list[Turn]) -> Iterator[Finding]:
    known = {
        place.block.get("id")
        for turn in turns
        for place in turn.of("tool_use")
        if _is_id(place.block.get("id"))
    }
    asked: dict[Any, Place] = {}
    for number, turn in enumerate(turns):
        answered: set[Any] = set()
        if turn.role == "user":
            yield from _results(turn, asked, answered, known)
        missing = [place for key, place in asked.items() if key not in answered]
        if asked and missing:
            yield from _missing(missing, waiting=_waits(turns, number))
        asked = {}
        if turn.role == "assistant":
            asked = {
                place.block.get("id"): place for place in turn.of("tool_use") if _is_id(place.block.get("id"))
            }
    yield from _missing(list(asked.values()), waiting=True)


def _is_id(value: Any) -> bool:
    return isinstance(value, str)


def _waits(turns: list[Turn], number: int) -> bool:
    """Tell whether the turn at `number` ends the conversation with nothing but results of some of the calls."""
    last = turns[number]
    return (
        number == len(turns) - 1
        and last.role == "user"
        and bool(last.places)
        and all(place.block.get("type") == "tool_result" for place in last.places)
    )


def _missing(places: list[Place], *, waiting: bool) -> Iterator[Finding]:
    for where, block in places:
        name = f"The call {shown(block.get('id'))} of {shown(block.get('name'))}"
        if waiting:
            yield Finding(
                "warning",
                "dangling-call",
                where,
                f"{name} waits for its result.",
                "Run it, and append the result.",
            )
        else:
            yield Finding(
                "error",
                "missing-result",
                where,
                f"{name} is not answered in the next user message.",
                "Answer or drop it.",
            )


def _results(turn: Turn, asked: dict[Any, Place], answered: set[Any], known: set[Any]) -> Iterator[Finding]:
    """Yield what is wrong with the results of a user turn, and add to `answered` the ids that it answers."""
    other = ""
    messages = set()
    for where, block in turn.places:
        if block.get("type") != "tool_result":
            other = where
            continue
        key = block.get("tool_use_id")
        if not _is_id(key):
            continue
        messages.add(where.partition(".")[0])
        yield from _one_result(where, key, asked, answered, known)
        answered.add(key)
        if other:
            yield Finding(
                "error",
                "result-order",
                where,
                f"The result comes after {other}.",
                "Put results before other content.",
            )
    if len(messages) > 1:
        yield Finding(
            "warning",
            "split-results",
            turn.first,
            "Results of one turn stand in several messages.",
            "Put them into one.",
        )


def _one_result(
    where: str, key: Any, asked: dict[Any, Place], answered: set[Any], known: set[Any]
) -> Iterator[Finding]:
    if key in answered and key in asked:
        yield Finding(
            "error", "repeated-result", where, f"The call {shown(key)} has a result already.", "Drop one."
        )
    elif key in asked:
        return
    elif key in known:
        yield Finding(
            "error",
            "interleaved-result",
            where,
            f"The call {shown(key)} is not in the turn before.",
            "Put it after its call.",
        )
    else:
        yield Finding("error", "orphan-result", where, f"There is no call {shown(key)}.", "Drop it.")


def _thinking(turn: Turn) -> Iterator[Finding]:
    if turn.role != "assistant" or not turn.places:
        return
    kinds = [str(place.block.get("type")) for place in turn.places]
    if kinds[-1] in THINKING:
        yield Finding(
            "error",
            "thinking-order",
            turn.places[-1].where,
            "The turn ends with thinking.",
            "Drop the block.",
        )
    calls = [at for at, kind in enumerate(kinds) if kind == "tool_use"]
    thoughts = [at for at, kind in enumerate(kinds) if kind in THINKING]
    if calls and thoughts and thoughts[0] > calls[0]:
        yield Finding(
            "error", "thinking-order", turn.places[thoughts[0]].where, "Thinking comes after the call it led to.",
            "Drop the block.",
        )  # fmt: skip


def _end(turns: list[Turn]) -> Iterator[Finding]:
    if not turns or turns[-1].role != "assistant" or turns[-1].of("tool_use"):
        return
    places = turns[-1].places
    where = places[-1].where if places else turns[-1].first
    text = places[-1].block.get("text") if places else None
    if isinstance(text, str) and text != text.rstrip():
        yield Finding(
            "error", "trailing-whitespace", where, "The last text ends with white space.", "Strip it."
        )
    yield Finding(
        "warning", "trailing-assistant", where, "New models refuse a conversation that ends with the assistant.",
        "End with a user message.",
    )  # fmt: skip


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
    where, role = f"messages[{at}]", known_role(raw.get("role"), ROLES)
    if role != raw.get("role"):
        found.append(changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}."))
    if unknown := sorted(map(str, raw.keys() - FIELDS)):
        found.append(changed("unknown-field", where, f"Left out {', '.join(unknown)}."))
    content = raw.get("content")
    listed = [content] if isinstance(content, dict) else check_blocks(raw)
    cells = []
    for number, block in enumerate(listed):
        place = f"{where}.content[{number}]"
        good = _repair_content_block(block, role, place, found)
        if good is not None:
            cells.append(Cell(good, place))
    if isinstance(content, dict) or not all(map(_is_typed, listed)):
        found.append(changed("bad-block", where, "Respelt the content, as a list of blocks."))
    if not cells:
        found.append(lost("empty-content", where, "Dropped the message, which holds nothing."))
    return Entry(at, raw, role, cells)


def _repair_content_block(block: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
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


def _repair_content_text(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    if isinstance(block.get("text"), str) and block["text"].strip():
        return block
    found.append(lost("empty-content", where, f"Dropped a text that is {shown(block.get('text'))}."))
    return None


def _repair_content_call(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    name, held = block.get("name"), block.get("input")
    if isinstance(held, str) and as_arguments(held):
        held = as_arguments(held)
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


def _repair_content_result(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
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


def _repair_content_thought(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    wanted = ("data",) if block["type"] == "redacted_thinking" else ("thinking", "signature")
    if all(isinstance(block.get(key), str) for key in wanted) and block[wanted[-1]]:
        return block
    found.append(lost("unsigned-thinking", where, "Dropped thinking without its signature."))
    return None


_MENDERS: dict[str, Callable[[JsonObject, str, list[Finding]], JsonObject | None]] = {
    "text": _repair_content_text,
    "tool_use": _repair_content_call,
    "tool_result": _repair_content_result,
    "thinking": _repair_content_thought,
    "redacted_thinking": _repair_content_thought,
}


def _is_typed(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("type"), str)


def raw_of(entry: Entry) -> JsonObject:
    """Return the message, the one that came where nothing changed."""
    raw, content = entry.raw, [cell.block for cell in entry.cells]
    if content == check_blocks(raw) and entry.role == raw.get("role"):
        return raw if raw.keys() <= FIELDS else {key: raw[key] for key in raw if key in FIELDS}
    return {"role": entry.role, "content": content}


# The API sets no length for ids; this is far beyond what anyone makes.
_ID_CHARS = 256


def mended(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` as the API takes them, and what was done."""
    found: list[Finding] = []
    entries = [cleaned(at, raw, found) for at, raw in enumerate(raws)]
    entries = _filled(_opened(entries, found))
    entries = _paired(entries, found)
    entries = _placed(_answered(entries, found), found)
    entries = _without_loose_thinking(entries, found)
    entries = _ended(_named(entries, found), found)
    return RepairedRaws([raw_of(entry) for entry in entries], found)


def _filled(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.cells]


def _opened(entries: Sequence[Entry], found: list[Finding]) -> Iterator[Entry]:
    """Yield `entries` so that a user message comes first: what the assistant said before it becomes one."""
    begun = False
    for entry in entries:
        if begun or entry.role == "system" or not entry.cells:
            yield entry
            continue
        kept = [
            cell
            for cell in entry.cells
            if cell.kind == "text" or (entry.role == "user" and cell.kind != "tool_result")
        ]
        begun = bool(kept)
        for cell in entry.cells:
            if cell.kind == "tool_result":
                found.append(lost("orphan-result", cell.where, "Dropped a result that no call comes before."))
            elif entry.role == "assistant" and cell.kind != "text":
                found.append(
                    lost("first-role", cell.where, f"Dropped a {cell.kind} before the first user message.")
                )
        if entry.role == "assistant" and kept:
            found.append(
                changed(
                    "first-role",
                    f"messages[{entry.at}]",
                    "What the assistant said first is a user message now.",
                )
            )
        yield entry._replace(role="user", cells=kept)


def _paired(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with calls and results numbered, without the results that no call waits for."""
    waiting: dict[str, list[int]] = {}
    number = 0
    paired = []
    for entry in entries:
        cells = []
        for cell in entry.cells:
            pair = -1
            if cell.kind == "tool_use":
                pair, number = number, number + 1
                waiting.setdefault(cell.block["id"], []).append(pair)
            elif cell.kind == "tool_result":
                key = cell.block["tool_use_id"]
                if not waiting.get(key):
                    found.append(
                        lost(
                            "orphan-result",
                            cell.where,
                            f"Dropped a result: no call {shown(key)} waits for it.",
                        )
                    )
                    continue
                pair = waiting[key].pop()
            cells.append(cell._replace(pair=pair))
        paired.append(entry._replace(cells=cells))
    return _filled(paired)


def _answered(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without the calls that were never answered; those of the last response may be yet."""
    results = {cell.pair for entry in entries for cell in entry.cells if cell.kind == "tool_result"}
    tail = _tail(entries)
    kept = []
    for number, entry in enumerate(entries):
        cells = []
        for cell in entry.cells:
            if cell.kind == "tool_use" and cell.pair not in results and number < tail:
                found.append(
                    lost(
                        "missing-result",
                        cell.where,
                        f"Dropped the call {shown(cell.block['id'])}, which was never answered.",
                    )
                )
            else:
                cells.append(cell)
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _tail(entries: Sequence[Entry]) -> int:
    """Return where the last response begins, if nothing but its results comes after it; else the length."""
    start = len(entries)
    while (
        start
        and entries[start - 1].role == "user"
        and all(cell.kind == "tool_result" for cell in entries[start - 1].cells)
    ):
        start -= 1
    after = start
    while start and entries[start - 1].role == "assistant":
        start -= 1
    calls = {cell.pair for entry in entries[start:after] for cell in entry.cells if cell.kind == "tool_use"}
    own = all(cell.pair in calls for entry in entries[after:] for cell in entry.cells)
    return start if own else len(entries)


def _placed(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with the results of each response first in the user message after it."""
    results = {cell.pair: cell for entry in entries for cell in entry.cells if cell.kind == "tool_result"}
    order = {pair: position for position, pair in enumerate(results)}
    placed: list[Entry] = []
    wanted: list[int] = []
    for entry in entries:
        if entry.role == "assistant":
            wanted += [cell.pair for cell in entry.cells if cell.kind == "tool_use" and cell.pair in results]
            placed.append(entry)
            continue
        if wanted and entry.role != "user":
            placed.append(_repair_results(placed[-1].at, wanted, results, order, found))
            wanted = []
        rest = [cell for cell in entry.cells if cell.kind != "tool_result"]
        cells = [results[pair] for pair in sorted(wanted, key=order.__getitem__)] + rest
        wanted = []
        _tell_moves(entry, cells, found)
        placed.append(entry._replace(cells=cells))
    if wanted:
        placed.append(_repair_results(placed[-1].at, wanted, results, order, found))
    return _filled(placed)


def _repair_results(
    at: int, wanted: Sequence[int], results: dict[int, Cell], order: dict[int, int], found: list[Finding]
) -> Entry:
    """Return a message for results that have none to stand in."""
    entry = Entry(at, {}, "user", [])
    cells = [results[pair] for pair in sorted(wanted, key=order.__getitem__)]
    _tell_moves(entry, cells, found)
    return entry._replace(cells=cells)


def _tell_moves(entry: Entry, cells: list[Cell], found: list[Finding]) -> None:
    here = {cell.where for cell in entry.cells}
    moved = [cell for cell in cells if cell.where not in here]
    found.extend(
        changed(
            "interleaved-result", cell.where, f"Moved the result to after its call, messages[{entry.at}]."
        )
        for cell in moved
    )
    stayed = [cell for cell in entry.cells if cell in cells]
    if not moved and cells[: len(stayed)] != stayed:
        found.append(
            changed("result-order", f"messages[{entry.at}]", "Put the results before other content.")
        )


def _without_loose_thinking(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without thinking that ends a response."""
    kept: list[Entry] = []
    for entry in reversed(entries):
        cells = entry.cells
        if entry.role == "assistant" and (not kept or kept[-1].role != "assistant"):
            while cells and cells[-1].kind in THINKING:
                found.append(
                    lost("thinking-order", cells[-1].where, "Dropped thinking that ends a response.")
                )
                cells = cells[:-1]
        if cells:
            kept.append(entry._replace(cells=cells))
    kept.reverse()
    return _without_late_thinking(kept, found)


def _without_late_thinking(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without thinking that comes after a call, where a response does not begin with any."""
    kept = []
    thought = called = False
    for entry in entries:
        cells = []
        for cell in entry.cells:
            called = called or cell.kind == "tool_use"
            if cell.kind in THINKING and called and not thought:
                found.append(
                    lost("thinking-order", cell.where, "Dropped thinking that comes after its call.")
                )
                continue
            thought = thought or cell.kind in THINKING
            cells.append(cell)
        if entry.role != "assistant":
            thought = called = False
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _named(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with an id of its own, as the API spells them, for each call and its result."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for cell in (cell for entry in entries for cell in entry.cells if cell.kind == "tool_use"):
        old = cell.block["id"]
        new = names[cell.pair] = unused_name(re.sub(r"[^a-zA-Z0-9_-]", "_", old), taken, most=_ID_CHARS)
        taken.add(new)
        if new != old:
            code = "repeated-id" if ID.fullmatch(old) else "bad-id"
            found.append(changed(code, cell.where, f"The call {shown(old)} is {new} now, on both sides."))
    return [entry._replace(cells=[_renamed(cell, names) for cell in entry.cells]) for entry in entries]


def _renamed(cell: Cell, names: dict[int, str]) -> Cell:
    key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(cell.kind)
    if key is None or cell.block[key] == names[cell.pair]:
        return cell
    return cell._replace(block={**cell.block, key: names[cell.pair]})


def _ended(entries: list[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without white space at the very end of what the assistant says last."""
    last = entries[-1] if entries else None
    text = last.cells[-1].block.get("text") if last and last.role == "assistant" else None
    if last and isinstance(text, str) and text != text.rstrip():
        cell = last.cells[-1]
        found.append(changed("trailing-whitespace", cell.where, "Stripped the white space at the end."))
        cells = [*last.cells[:-1], cell._replace(block={**cell.block, "text": text.rstrip()})]
        return [*entries[:-1], last._replace(cells=cells)]
    return entries
