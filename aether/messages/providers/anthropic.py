"""Anthropic Messages: content blocks, results inside user messages, thinking with signatures.

Reading gives a user message of nothing but tool results the role `tool`; the result of a server tool is in the
assistant message that called it. `findings` names what the API refuses: it joins adjacent messages of one role into
one turn, so the calls of a turn must be answered by the first blocks of the next turn. `repaired` changes the messages
until the API refuses nothing. Rules about system prompts and tools are in `aether.messages.validate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages import findings as note
from aether.messages.content import (
    MEDIA,
    Place,
    block_type,
    call_block,
    is_text_block,
    media_block,
    media_fault,
    other_block,
    result_blocks,
    rewritten_media,
)
from aether.messages.findings import RepairedRaws
from aether.messages.model import Block, Message, Role, as_arguments, as_text, is_failure_text
from aether.messages.turns import Answer, Turn
from aether.text.regex import lazy
from aether.types import Finding, JsonObject

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
THINKING = frozenset({"thinking", "redacted_thinking"})
FIELDS = frozenset({"role", "content"})
ROLES = frozenset({"user", "assistant", "system"})
# Of the other types each role may use; assistant messages hold what the model's own servers run.
USER_ONLY = frozenset({"image", "document", "tool_result", "search_result", "container_upload"})
ASSISTANT_ONLY = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_result"}) | THINKING
KNOWN = (
    USER_ONLY
    | ASSISTANT_ONLY
    | {"text", "compaction", "fallback", "mcp_tool_listing", "tool_addition", "tool_removal"}
)
IN_RESULTS = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
_MEDIA = frozenset({"image", "document", "container_upload"})
# What blocks without a check of their own cannot do without.
_TEXT_FIELDS = {
    "server_tool_use": ("id", "name"), "mcp_tool_use": ("id", "name", "server_name"),
    "search_result": ("source", "title"), "tool_reference": ("tool_name",), "mcp_tool_result": ("tool_use_id",),
}  # fmt: skip
# The API's own pattern for ids and names, and its length of names.
ID = lazy(r"[a-zA-Z0-9_-]+")
NAME = lazy(r"[a-zA-Z0-9_-]{1,128}")
_NAME_CHARS = 128
_ID_FIX = "Use letters, digits, _ and -."
# The API sets no length for ids; this is far beyond any that programs make.
_ID_CHARS = 256


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
    return [found for at, block in enumerate(content) for found in block_of(block, ("content", at))]


def block_of(block: Any, at: Place) -> list[Block]:
    """Return the blocks of one content block: itself, and the media inside of a result."""
    if not isinstance(block, dict):
        return [other_block(block)]
    kind = block_type(block)
    if is_text_block(block):
        return [Block("text", block["text"], (*at, "text"))]
    if kind in CALLS:
        return [call_block(block.get("name"), block.get("input"), (*at, "input"), block.get("id"))]
    if is_result(block):
        key, broken = block.get("tool_use_id"), block.get("is_error")
        return result_blocks(block.get("content"), (*at, "content"), key, broken=broken)
    if kind in THINKING:
        return [Block("reasoning", as_text(block.get("thinking")))]
    return [media_block(block, at)] if kind in MEDIA else [other_block(block)]


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its thinking; the message itself if nothing else would be left."""
    content = raw.get("content")
    if not isinstance(content, list):
        return raw
    kept = [block for block in content if not (isinstance(block, dict) and block_type(block) in THINKING)]
    return {**raw, "content": kept} if kept and len(kept) < len(content) else raw


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


class _Located(NamedTuple):
    """One block and its place in the conversation."""

    where: str
    block: JsonObject


class _Joined(NamedTuple):
    """Adjacent messages of one role, as the API sees them."""

    role: str
    blocks: list[_Located]
    first: str
    """The place of its first message."""

    def of(self, kind: str) -> list[_Located]:
        """Return its blocks of one type."""
        return [located for located in self.blocks if located.block.get("type") == kind]

    def calls(self) -> dict[str, _Located]:
        """Return its calls by their ids."""
        return {
            each.block["id"]: each for each in self.of("tool_use") if isinstance(each.block.get("id"), str)
        }


def findings(raws: Sequence[JsonObject], known: int = 0) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, message by message and then turn by turn."""
    for at, raw in enumerate(raws[known:], known):
        yield from _check_message(raw, f"messages[{at}]", last=at == len(raws) - 1)
    turns = []
    for role, run in groupby(enumerate(raws), key=lambda one: one[1].get("role")):
        members = list(run)
        located = [
            _Located(f"messages[{at}].content[{number}]", block)
            for at, raw in members
            for number, block in enumerate(_listed(raw))
            if isinstance(block, dict)
        ]
        turns.append(_Joined(str(role), located, f"messages[{members[0][0]}]"))
    first = next((turn for turn in turns if turn.role != "system"), None)
    if first is not None and first.role == "assistant":
        what = "The first message is the assistant's."
        yield note.error("first-role", first.first, what, "Start with a user message.")
    seen: set[str] = set()
    for where, block in (located for turn in turns for located in turn.of("tool_use")):
        key = str(block.get("id"))
        if key in seen:
            fix = "Rename one, and its result."
            yield note.error("repeated-id", where, f"Another call has the id {shown(key)}.", fix)
        seen.add(key)
    yield from _check_pairs(turns)
    for turn in turns:
        yield from _check_thinking(turn)
    if not turns or turns[-1].role != "assistant" or turns[-1].of("tool_use"):
        return
    where, block = turns[-1].blocks[-1] if turns[-1].blocks else _Located(turns[-1].first, {})
    text = block.get("text")
    if isinstance(text, str) and text != text.rstrip():
        yield note.error("trailing-whitespace", where, "The last text ends with white space.", "Strip it.")
    what = "New models refuse a conversation that ends with the assistant."
    yield note.warning("trailing-assistant", where, what, "End with a user message.")


def _listed(raw: JsonObject) -> list[Any]:
    """Return the content of a message as blocks; a text is one text block."""
    content = raw.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _check_message(raw: JsonObject, where: str, *, last: bool) -> Iterator[Finding]:
    role, content = raw.get("role"), raw.get("content")
    if not isinstance(role, str) or role not in ROLES:
        yield note.bad_role(role, where, "Use user or assistant.")
    elif role == "system":
        what = "Only the newest models accept a system message among the messages."
        yield note.warning("system-role", where, what, "Pass it as `system`.")
    yield from note.unknown_fields(raw, FIELDS, where)
    if not isinstance(content, (str, list)):
        yield note.bad_content(content, where, "Give text or blocks.")
    elif not content and not (last and role == "assistant"):
        yield note.error("empty-content", where, "The message is empty.", "Drop it.")
    for number, block in enumerate(_listed(raw) if content else []):
        yield from _check_block(block, role, f"{where}.content[{number}]")


def _check_block(block: Any, role: Any, where: str) -> Iterator[Finding]:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        yield note.untyped(block, where)
        return
    if _is_misplaced(kind, role):
        yield note.wrong_role(kind, where, role)
    if not _is_known(kind):
        yield note.unknown_type(kind, where)
    yield from _check_rest(block, kind, where)
    match kind:
        case "text":
            yield from _check_text(block, where)
        case "tool_use":
            yield from _check_call(block, where)
        case "tool_result":
            yield from _check_result(block, where)
        case "thinking" | "redacted_thinking" if not _is_signed(block):
            yield note.error("unsigned-thinking", where, "Thinking without its signature.", "Drop the block.")


def _is_known(kind: str) -> bool:
    return kind in KNOWN or kind.endswith("_tool_result")


def _check_rest(block: JsonObject, kind: str, where: str) -> Iterator[Finding]:
    """Yield the faults of blocks that may be in a message and in a result, and of those of the model's own servers."""
    if kind in _MEDIA and (fault := media_fault(block, "anthropic")):
        yield note.bad_media(fault, where)
    lacking = [key for key in _needed(kind) if not as_text(block.get(key)).strip()]
    if kind in ("server_tool_use", "mcp_tool_use") and not isinstance(block.get("input"), dict):
        lacking.append("input")
    if kind == "search_result" and not _is_list_of_texts(block.get("content")):
        lacking.append("content")
    if kind.endswith("_tool_result") and kind != "mcp_tool_result" and block.get("content") is None:
        lacking.append("content")
    if lacking:
        yield note.error("bad-block", where, f"A {kind} without its {', '.join(lacking)}.", "Drop the block.")


def _needed(kind: str) -> tuple[str, ...]:
    """Return the keys of a block of this type whose values have to be texts."""
    if kind in _TEXT_FIELDS or not kind.endswith("_tool_result"):
        return _TEXT_FIELDS.get(kind, ())
    return ("tool_use_id",)


def _is_list_of_texts(content: Any) -> bool:
    return isinstance(content, list) and all(is_text_block(one) and one["text"].strip() for one in content)


def _is_misplaced(kind: str, role: Any) -> bool:
    """Return whether a message of `role` cannot hold a block of this type."""
    return (kind in USER_ONLY and role in ("assistant", "system")) or (
        kind in ASSISTANT_ONLY and role in ("user", "system")
    )


def _is_signed(thought: JsonObject) -> bool:
    wanted = ("data",) if thought["type"] == "redacted_thinking" else ("thinking", "signature")
    return all(isinstance(thought.get(key), str) for key in wanted) and bool(thought[wanted[-1]])


def _check_text(block: JsonObject, where: str) -> Iterator[Finding]:
    text = block.get("text")
    if not isinstance(text, str):
        yield note.bad_text(text, where)
    elif not text.strip():
        yield note.error("empty-content", where, "The text is blank.", "Drop the block.")


def _check_call(block: JsonObject, where: str) -> Iterator[Finding]:
    key, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(key, str) or not ID.fullmatch(key):
        yield note.bad_id(key, where, _ID_FIX)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield note.bad_name(name, where)
    if not isinstance(arguments, dict):
        yield note.error("bad-arguments", where, f"The input is {shown(arguments)}.", "Give an object.")


def _check_result(block: JsonObject, where: str) -> Iterator[Finding]:
    key, content = block.get("tool_use_id"), block.get("content")
    if not isinstance(key, str) or not ID.fullmatch(key):
        yield note.bad_id(key, where, _ID_FIX)
    if content is not None and not isinstance(content, (str, list)):
        yield note.error("bad-block", where, f"Content is {shown(content)}.", "Give text or blocks.")
    for number, inner in enumerate(content if isinstance(content, list) else []):
        place = f"{where}.content[{number}]"
        if not _is_typed(inner):
            yield note.untyped(inner, place)
        elif inner["type"] == "text":
            yield from _check_text(inner, place)
        elif inner["type"] not in IN_RESULTS:
            yield note.unknown_type(inner["type"], place)
        else:
            yield from _check_rest(inner, inner["type"], place)


def _is_typed(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("type"), str)


def _check_pairs(turns: list[_Joined]) -> Iterator[Finding]:
    known = {key for turn in turns for key in turn.calls()}
    asked: dict[str, _Located] = {}
    for number, turn in enumerate(turns):
        answered: set[str] = set()
        if turn.role == "user":
            yield from _check_results(turn, asked, answered, known)
        # At the very end, after nothing but results of some of the calls, the others may still be run.
        only_results = turn.role == "user" and 0 < len(turn.blocks) == len(turn.of("tool_result"))
        waiting = number == len(turns) - 1 and only_results
        yield from _unanswered(asked, answered, waiting=waiting)
        asked = turn.calls() if turn.role == "assistant" else {}
    yield from _unanswered(asked, set(), waiting=True)


def _unanswered(asked: dict[str, _Located], answered: set[str], *, waiting: bool) -> Iterator[Finding]:
    for key, (where, block) in asked.items():
        if key not in answered:
            call = f"The call {shown(key)} of {shown(block.get('name'))}"
            yield note.without_result(call, where, waiting=waiting)


def _check_results(
    turn: _Joined, asked: dict[str, _Located], answered: set[str], known: set[str]
) -> Iterator[Finding]:
    """Yield the faults of the results of a user turn, and add to `answered` the ids that it answers."""
    other = ""
    messages = set()
    for where, block in turn.blocks:
        if block.get("type") != "tool_result":
            other = where
            continue
        key = block.get("tool_use_id")
        if not isinstance(key, str):
            continue
        messages.add(where.partition(".")[0])
        if key in answered and key in asked:
            yield note.repeated_result(key, where)
        elif key in known and key not in asked:
            what = f"The call {shown(key)} is not in the turn before."
            yield note.error("interleaved-result", where, what, "Put it after its call.")
        elif key not in asked:
            yield note.orphan_result(key, where)
        answered.add(key)
        if other:
            what = f"The result comes after {other}."
            yield note.error("result-order", where, what, "Put results before other content.")
    if len(messages) > 1:
        what = "The results of one turn are in several messages."
        yield note.warning("split-results", turn.first, what, "Put them into one.")


def _check_thinking(turn: _Joined) -> Iterator[Finding]:
    if turn.role != "assistant" or not turn.blocks:
        return
    kinds = [str(located.block.get("type")) for located in turn.blocks]
    if kinds[-1] in THINKING:
        what = "The turn ends with thinking."
        yield note.error("thinking-order", turn.blocks[-1].where, what, "Drop the block.")
    calls = [at for at, kind in enumerate(kinds) if kind == "tool_use"]
    thoughts = [at for at, kind in enumerate(kinds) if kind in THINKING]
    if calls and thoughts and thoughts[0] > calls[0]:
        what = "Thinking comes after the call it led to."
        yield note.error("thinking-order", turn.blocks[thoughts[0]].where, what, "Drop the block.")


class _Cell(NamedTuple):
    """One block under repair, its original place, and the number of the call that it is or answers."""

    block: JsonObject
    where: str
    pair: int = -1

    @property
    def kind(self) -> str:
        """Return the type of the block."""
        return str(self.block["type"])


class _Entry(NamedTuple):
    """One message under repair."""

    at: int
    raw: JsonObject
    role: str
    cells: list[_Cell]

    def finished(self) -> JsonObject:
        """Return the repaired message; the original one if nothing changed."""
        content = [cell.block for cell in self.cells]
        if content == _listed(self.raw) and self.role == self.raw.get("role"):
            unknown = self.raw.keys() - FIELDS
            return {key: self.raw[key] for key in self.raw if key in FIELDS} if unknown else self.raw
        return {"role": self.role, "content": content}


def repaired(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` as the API accepts them, with a finding for each change."""
    found: list[Finding] = []
    entries = _filled(_user_first([_cleaned(at, raw, found) for at, raw in enumerate(raws)], found))
    entries = _without_unanswered(_paired(entries, found), found)
    entries = _renamed(_without_stray_thinking(_placed(entries, found), found), found)
    if entries and entries[-1].role == "assistant":
        *before, cell = entries[-1].cells
        text = cell.block.get("text")
        if isinstance(text, str) and text != text.rstrip():
            what = "Stripped the white space at the end."
            found.append(note.changed("trailing-whitespace", cell.where, what))
            stripped = cell._replace(block={**cell.block, "text": text.rstrip()})
            entries[-1] = entries[-1]._replace(cells=[*before, stripped])
    return RepairedRaws([entry.finished() for entry in entries], found, [entry.at for entry in entries])


def _filled(entries: Iterable[_Entry]) -> list[_Entry]:
    return [entry for entry in entries if entry.cells]


def _cleaned(at: int, raw: JsonObject, found: list[Finding]) -> _Entry:
    """Return a message without what cannot be sent, whatever is around it."""
    where, role = f"messages[{at}]", note.known_role(raw.get("role"), ROLES)
    found.extend(note.new_role(raw, role, where))
    if unknown := sorted(map(str, raw.keys() - FIELDS)):
        found.append(note.changed("unknown-field", where, f"Left out {', '.join(unknown)}."))
    content = raw.get("content")
    listed = [content] if isinstance(content, dict) else _listed(raw)
    cells = [
        _Cell(good, place)
        for place, block in ((f"{where}.content[{at}]", block) for at, block in enumerate(listed))
        if (good := _cleaned_block(block, role, place, found)) is not None
    ]
    if isinstance(content, dict) or not all(map(_is_typed, listed)):
        found.append(note.changed("bad-block", where, "Rewrote the content as a list of blocks."))
    if not cells:
        found.append(note.lost("empty-content", where, "Dropped the message, which is empty."))
    return _Entry(at, raw, role, cells)


def _cleaned_block(block: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
    """Return a block that a message of `role` can hold; None, with a finding, if it cannot be sent."""
    if isinstance(block, str):
        block = {"type": "text", "text": block}
    if isinstance(block, dict) and not _is_typed(block) and isinstance(block.get("text"), str):
        block = {**block, "type": "text"}
    if not _is_typed(block):
        found.append(note.lost("bad-block", where, f"Dropped {shown(block)}, which is not a block."))
        return None
    block = _of_known_type(block, where, found, known=_is_known)
    kind = block["type"] if block else ""
    if not block:
        return None
    if _is_misplaced(kind, role):
        found.append(note.dropped_content(kind, where, role))
    elif kind == "text" and not (isinstance(block.get("text"), str) and block["text"].strip()):
        found.append(note.lost("empty-content", where, f"Dropped a text that is {shown(block.get('text'))}."))
    elif kind in THINKING and not _is_signed(block):
        found.append(note.lost("unsigned-thinking", where, "Dropped thinking without its signature."))
    elif kind == "tool_use":
        return _cleaned_call(block, where, found)
    elif kind == "tool_result":
        return _cleaned_result(block, where, found)
    else:
        return dict(block)
    return None


def _of_known_type(
    block: JsonObject, where: str, found: list[Finding], *, known: Callable[[str], bool]
) -> JsonObject | None:
    """Return a block of a type that is `known`, with all that it needs; None, with a finding, if it cannot be made.

    Media and texts of other formats are rewritten.
    """
    kind = block["type"]
    if known(kind) and kind not in _MEDIA:
        faults = list(_check_rest(block, kind, where))
        found.extend(note.lost("bad-block", where, f"Dropped it. {fault.message}") for fault in faults)
        return None if faults else block
    if kind in MEDIA:
        fault = media_fault(block, "anthropic")
        made = rewritten_media(block, "anthropic") if fault else block
        if fault and made:
            found.append(note.as_other_type(kind, str(made["type"]), where))
        elif fault:
            found.append(note.dropped_media(fault, where))
        return made
    text = next((block[key] for key in ("text", "refusal") if isinstance(block.get(key), str)), "")
    if not text.strip():
        found.append(note.dropped_unknown(kind, where))
        return None
    found.append(note.as_other_type(kind, "text", where))
    return {"type": "text", "text": text}


def _cleaned_call(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    name, arguments = block.get("name"), block.get("input")
    if isinstance(arguments, str) and as_arguments(arguments):
        arguments = as_arguments(arguments)
        found.append(note.changed("bad-arguments", where, "Read the arguments from their text."))
    for code, wrong in (
        ("bad-id", not block.get("id") or not isinstance(block["id"], str)),
        ("bad-name", not name or not isinstance(name, str)),
        ("bad-arguments", not isinstance(arguments, dict)),
    ):
        if wrong:
            found.append(note.lost(code, where, f"Dropped a call of {shown(name)} that cannot be sent."))
            return None
    good = re.sub(r"[^a-zA-Z0-9_-]", "_", str(name))[:_NAME_CHARS]
    if good != name:
        found.append(note.changed("bad-name", where, f"The tool {shown(name)} became {good}."))
    return {**block, "name": good, "input": arguments}


def _cleaned_result(block: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    if not block.get("tool_use_id") or not isinstance(block["tool_use_id"], str):
        found.append(note.lost("bad-id", where, "Dropped a result without the id of its call."))
        return None
    content = block.get("content")
    if content is None or isinstance(content, str):
        return block
    kept = []
    blank = not isinstance(content, list)
    for number, inner in enumerate(content if isinstance(content, list) else []):
        good = None
        if not _is_typed(inner) or (inner["type"] == "text" and list(_check_text(inner, where))):
            blank = True
        else:
            good = _of_known_type(inner, f"{where}.content[{number}]", found, known=IN_RESULTS.__contains__)
        kept += [good] if good else []
    if blank:
        what = "Dropped the parts of the result that are blank or not blocks."
        found.append(note.lost("bad-block", where, what))
    return block if kept == content else {**block, "content": kept}


def _user_first(entries: Sequence[_Entry], found: list[Finding]) -> Iterator[_Entry]:
    """Yield `entries` with a user message first, made of what the assistant wrote if it came first."""
    opened = False
    for entry in entries:
        if opened or entry.role == "system" or not entry.cells:
            yield entry
            continue
        other = entry.role == "user"
        kept = [cell for cell in entry.cells if cell.kind == "text" or (other and cell.kind != "tool_result")]
        opened = bool(kept)
        for cell in entry.cells:
            if cell.kind == "tool_result":
                what = "Dropped a result before the first call."
                found.append(note.lost("orphan-result", cell.where, what))
            elif entry.role == "assistant" and cell.kind != "text":
                what = f"Dropped a {cell.kind} before the first user message."
                found.append(note.lost("first-role", cell.where, what))
        if entry.role == "assistant" and kept:
            what = "The assistant's first text became a user message."
            found.append(note.changed("first-role", f"messages[{entry.at}]", what))
        yield entry._replace(role="user", cells=kept)


def _paired(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
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
                    found.append(note.dropped_orphan(shown(key), cell.where))
                    continue
                pair = waiting[key].pop()
            cells.append(cell._replace(pair=pair))
        paired.append(entry._replace(cells=cells))
    return _filled(paired)


def _without_unanswered(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` without calls that have no result, except in the last response, which may be answered yet."""
    results = {cell.pair for entry in entries for cell in entry.cells if cell.kind == "tool_result"}
    tail = _last_response(entries)
    kept = []
    for number, entry in enumerate(entries):
        cells = []
        for cell in entry.cells:
            if cell.kind == "tool_use" and cell.pair not in results and number < tail:
                found.append(note.dropped_call(shown(cell.block["id"]), cell.where))
            else:
                cells.append(cell)
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _last_response(entries: Sequence[_Entry]) -> int:
    """Return the start of the last response if only its results come after it; else the number of entries."""
    start = len(entries)
    while start and entries[start - 1].role == "user":
        if any(cell.kind != "tool_result" for cell in entries[start - 1].cells):
            break
        start -= 1
    after = start
    while start and entries[start - 1].role == "assistant":
        start -= 1
    calls = {cell.pair for entry in entries[start:after] for cell in entry.cells if cell.kind == "tool_use"}
    own = all(cell.pair in calls for entry in entries[after:] for cell in entry.cells)
    return start if own else len(entries)


def _placed(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` with the results of each response first in the user message after it."""
    results = {cell.pair: cell for entry in entries for cell in entry.cells if cell.kind == "tool_result"}
    order = {pair: position for position, pair in enumerate(results)}
    placed: list[_Entry] = []
    wanted: list[int] = []

    def place(entry: _Entry) -> None:
        rest = [cell for cell in entry.cells if cell.kind != "tool_result"]
        cells = [results[pair] for pair in sorted(wanted, key=order.__getitem__)] + rest
        wanted.clear()
        placed.append(entry._replace(cells=cells))
        here = {cell.where for cell in entry.cells}
        moved = [cell for cell in cells if cell.where not in here]
        what = f"Moved the result to after its call, messages[{entry.at}]."
        found.extend(note.changed("interleaved-result", cell.where, what) for cell in moved)
        stayed = [cell for cell in entry.cells if cell in cells]
        if not moved and cells[: len(stayed)] != stayed:
            what = "Put the results before other content."
            found.append(note.changed("result-order", f"messages[{entry.at}]", what))

    for entry in entries:
        if entry.role == "assistant":
            wanted += [cell.pair for cell in entry.cells if cell.kind == "tool_use" and cell.pair in results]
            placed.append(entry)
            continue
        if wanted and entry.role != "user":
            place(_Entry(placed[-1].at, {}, "user", []))
        place(entry)
    if wanted:
        place(_Entry(placed[-1].at, {}, "user", []))
    return _filled(placed)


def _without_stray_thinking(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` without thinking that ends a response, or that first comes after a call."""
    ended: list[_Entry] = []
    for entry in reversed(entries):
        cells = entry.cells
        if entry.role == "assistant" and (not ended or ended[-1].role != "assistant"):
            while cells and cells[-1].kind in THINKING:
                what = "Dropped thinking that ends a response."
                found.append(note.lost("thinking-order", cells[-1].where, what))
                cells = cells[:-1]
        if cells:
            ended.append(entry._replace(cells=cells))
    kept = []
    thought = called = False
    for entry in reversed(ended):
        cells = []
        for cell in entry.cells:
            called = called or cell.kind == "tool_use"
            if cell.kind in THINKING and called and not thought:
                what = "Dropped thinking that comes after its call."
                found.append(note.lost("thinking-order", cell.where, what))
                continue
            thought = thought or cell.kind in THINKING
            cells.append(cell)
        if entry.role != "assistant":
            thought = called = False
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _renamed(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` with an id of its own, in the letters of the API, for each call and its result."""
    names: dict[int, str] = {}
    used: set[str] = set()
    for cell in (cell for entry in entries for cell in entry.cells if cell.kind == "tool_use"):
        old = cell.block["id"]
        new = names[cell.pair] = note.unused_name(re.sub(r"[^a-zA-Z0-9_-]", "_", old), used, most=_ID_CHARS)
        used.add(new)
        if new != old:
            code = "repeated-id" if ID.fullmatch(old) else "bad-id"
            what = f"The call {shown(old)} became {new}, with its result."
            found.append(note.changed(code, cell.where, what))
    keys = {"tool_use": "id", "tool_result": "tool_use_id"}

    def renamed(cell: _Cell) -> _Cell:
        key = keys.get(cell.kind)
        return cell._replace(block={**cell.block, key: names[cell.pair]}) if key else cell

    return [entry._replace(cells=list(map(renamed, entry.cells))) for entry in entries]
