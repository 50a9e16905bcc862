"""Gemini contents: parts under `user` and `model`, in camel or in snake case; ids of calls are optional.

A thought signature belongs to its part and is never moved. `findings` names what the API refuses: it does not join
contents, so all responses to the calls of one content are in the very next content. `repaired` changes the contents
until the API refuses nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages import findings as note
from aether.messages.content import (
    Place,
    as_json,
    call_block,
    media_block,
    media_fault,
    other_block,
    result_blocks,
    rewritten_media,
)
from aether.messages.findings import RepairedRaws
from aether.messages.model import Block, Message, Role, as_object, as_text, is_failure_text
from aether.messages.turns import Turn
from aether.text.regex import lazy
from aether.text.words import pluralize
from aether.types import Finding, JsonObject

# The key of a function's answer, as the SDKs choose it; any other object is read as JSON.
_ANSWER_KEYS = ("output", "result", "error", "content")
CODE = "code_execution"
FIELDS = frozenset({"role", "parts"})
ROLES = frozenset({"user", "model", "function"})
CALL, RESPONSE = ("functionCall", "function_call"), ("functionResponse", "function_response")
DATA = (
    *CALL, *RESPONSE, "text", "inlineData", "inline_data", "fileData", "file_data", "executableCode", "executable_code",
    "codeExecutionResult", "code_execution_result", "toolCall", "tool_call", "toolResponse", "tool_response",
)  # fmt: skip
SIGNATURE = ("thoughtSignature", "thought_signature")
# What may be beside the datum of a part; the API refuses every other key.
BESIDE = (
    *SIGNATURE, "thought", "videoMetadata", "video_metadata", "mediaResolution", "media_resolution", "partMetadata",
    "part_metadata",
)  # fmt: skip
MEDIA_KEYS = ("inlineData", "inline_data", "fileData", "file_data")
# "Must start with a letter or an underscore … with a maximum length of 64."
NAME = lazy(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
NAME_FIX = "Use up to 64 letters, digits, _ . : and -, the first a letter or _."
_NAME_CHARS = 64


def message(raw: JsonObject) -> Message:
    """Return one content as read."""
    parts = raw.get("parts")
    role: Role = "assistant" if as_text(raw.get("role")) in {"model", "assistant"} else "user"
    if not isinstance(parts, list):
        return Message(role, () if parts is None else (other_block(parts),), raw, "gemini")
    found = tuple(block for at, part in enumerate(parts) for block in _blocks(part, ("parts", at)))
    if role == "user" and parts and all(named(part, "functionResponse") for part in parts):
        role = "tool"
    return Message(role, found, raw, "gemini")


def named(part: Any, name: str) -> str:
    """Return the key under which a part has `name`, in either case; empty if it has none.

    >>> named({"function_call": {}}, "functionCall"), named({"text": "hi"}, "functionCall")
    ('function_call', '')
    """
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return next((key for key in (name, snake) if isinstance(as_object(part).get(key), dict)), "")


def _blocks(part: Any, at: Place) -> list[Block]:
    if key := named(part, "functionCall"):
        inner = part[key]
        return [call_block(inner.get("name"), inner.get("args"), (*at, key, "args"), inner.get("id"))]
    if key := named(part, "functionResponse"):
        return _response_blocks(part[key], (*at, key))
    if key := named(part, "executableCode"):
        return [call_block(CODE, part[key].get("code"), (*at, key, "code"), part[key].get("id"))]
    if key := named(part, "codeExecutionResult"):
        inner, place = part[key], (*at, key, "output")
        broken = "OUTCOME_OK" not in as_text(inner.get("outcome"))
        return result_blocks(inner.get("output"), place, inner.get("id"), tool=CODE, broken=broken)
    if _is_media(part) or not isinstance(as_object(part).get("text"), str):
        return [media_block(part, at) if _is_media(part) else other_block(part)]
    thought = part.get("thought")
    return [Block("reasoning", part["text"]) if thought else Block("text", part["text"], (*at, "text"))]


def _is_media(part: Any) -> bool:
    return bool(named(part, "inlineData") or named(part, "fileData"))


def _response_blocks(inner: JsonObject, at: Place) -> list[Block]:
    response, parts = inner.get("response"), inner.get("parts")
    answered = as_object(response)
    media = [
        media_block(part, (*at, "parts", position))
        for position, part in enumerate(parts if isinstance(parts, list) else [])
        if _is_media(part)
    ]
    alone = len(answered) == 1
    key = next((key for key in _ANSWER_KEYS if alone and isinstance(answered.get(key), str)), "")
    answer: Any = answered[key] if key else as_json(response) if response is not None else None
    found = result_blocks(
        answer, (*at, "response", key), inner.get("id"), tool=inner.get("name"), also=tuple(media),
        broken=True if "error" in answered else None,
    )  # fmt: skip
    return found if key else [found[0]._replace(at=(*at, "response") if answered else ()), *found[1:]]


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the content without its thoughts; the content itself if nothing else would be left."""
    parts = raw.get("parts")
    if not isinstance(parts, list):
        return raw
    kept = [part for part in parts if not as_object(part).get("thought")]
    return {**raw, "parts": kept} if kept and len(kept) < len(parts) else raw


def write(turn: Turn) -> list[JsonObject]:
    """Return a turn as contents: its texts and calls, then all responses in the order of the calls."""
    meta = {"meta": turn.meta} if turn.meta else {}
    role = "model" if turn.role == "assistant" else "user"
    raw = {"role": role, "parts": [_written(piece) for piece in turn.pieces], **meta}
    calls = [piece.call_id for piece in turn.pieces if isinstance(piece, Block)]
    ordered = sorted(turn.answers, key=lambda answer: calls.index(answer.block.call_id))
    answers = []
    for block in (answer.block for answer in ordered):
        # A text that reports the failure needs no other key: readers see it under any.
        key = "error" if block.is_error and not is_failure_text(block.text) else "result"
        response = {"id": block.call_id, "name": block.tool, "response": {key: block.text}}
        answers.append({"functionResponse": response})
    return [raw, {"role": "user", "parts": answers, **meta}] if answers else [raw]


def _written(piece: Block | JsonObject) -> JsonObject:
    if isinstance(piece, dict):
        return piece
    if piece.kind == "text":
        return {"text": piece.text}
    return {"functionCall": {"id": piece.call_id, "name": piece.tool, "args": dict(piece.arguments)}}


def findings(raws: Sequence[JsonObject], known: int = 0) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, content by content, then calls with their responses."""
    for at, raw in enumerate(raws[known:], known):
        yield from _check_content(raw, f"contents[{at}]")
    yield from _check_pairs(raws)
    # In the current turn thinking models need the signature of each first call.
    for at in range(len(raws) - 1, -1, -1):
        parts = raws[at].get("parts")
        by_user = raws[at].get("role") == "user" and not _data_of(raws[at], RESPONSE)
        if by_user or not isinstance(parts, list):
            break
        calls = [part for part in parts if isinstance(part, dict) and any(key in part for key in CALL)]
        if calls and not any(calls[0].get(key) for key in SIGNATURE):
            what, fix = "The first call has no thoughtSignature.", "Keep the part as the model sent it."
            yield note.warning("unsigned-thinking", f"contents[{at}]", what, fix)
    if raws and raws[0].get("role") == "model":
        what = "The first content is the model's."
        yield note.warning("first-role", "contents[0]", what, "Start with the user's.")
    if raws and raws[-1].get("role") == "model" and not _data_of(raws[-1], CALL):
        what = "The last content is the model's."
        yield note.warning("trailing-assistant", f"contents[{len(raws) - 1}]", what, "End with the user's.")


def _data_of(raw: JsonObject, keys: tuple[str, ...]) -> list[JsonObject]:
    """Return the calls, or the responses, in the parts of a content."""
    parts = raw.get("parts")
    return [
        part[key]
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict)
        for key in keys
        if isinstance(part.get(key), dict)
    ]


def _check_content(raw: JsonObject, where: str) -> Iterator[Finding]:
    role, parts = raw.get("role"), raw.get("parts")
    if not isinstance(role, str) or role not in ROLES:
        yield note.bad_role(role, where, "Use user or model.")
    yield from note.unknown_fields(raw, FIELDS, where)
    if not isinstance(parts, list) or not parts:
        yield note.error("empty-content", where, "The content has no parts.", "Drop it.")
    for number, part in enumerate(parts if isinstance(parts, list) else []):
        yield from _check_part(part, role, f"{where}.parts[{number}]")


def _check_part(part: Any, role: Any, where: str) -> Iterator[Finding]:
    data = [key for key in DATA if key in part] if isinstance(part, dict) else []
    if len(data) != 1 or part[data[0]] is None:
        yield note.error("bad-block", where, f"{shown(part)} has not exactly one datum.", "Drop it.")
        return
    key, value = data[0], part[data[0]]
    if unknown := sorted(map(str, part.keys() - {*DATA, *BESIDE})):
        yield note.error("unknown-field", where, f"Unknown: {', '.join(unknown)}.", "Leave it out.")
    if key == "text":
        if not isinstance(value, str):
            yield note.bad_text(value, where)
        elif not value:
            yield note.error("empty-content", where, "The text is empty.", "Drop the part.")
    elif not isinstance(value, dict):
        yield note.error("bad-block", where, f"{key} is {shown(value)}.", "Give an object.")
    elif key in CALL + RESPONSE:
        yield from _check_call(key, value, role, where)
    elif fault := _fault(key, value):
        yield note.bad_media(fault, where)


def _check_call(key: str, value: JsonObject, role: Any, where: str) -> Iterator[Finding]:
    """Yield the faults of a call or a response."""
    name, arguments = value.get("name"), _arguments(key, value)
    if _is_misplaced(key, role):
        yield note.wrong_role(key, where, role, "Drop it.")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield note.bad_name(name, where, NAME_FIX)
    if not isinstance(arguments, dict) and not (key in CALL and arguments is None):
        yield note.error("bad-arguments", where, f"{shown(arguments)} is not an object.", "Give an object.")
    media = value.get("parts") if key in RESPONSE else None
    if media is not None and _good_media(media) != media:
        yield note.bad_media("A response holds parts that are not media.", where)


def _fault(key: str, value: JsonObject) -> str:
    """Return what a datum other than text, a call or a response lacks; empty if nothing."""
    if key in MEDIA_KEYS:
        return media_fault({key: value}, "gemini")
    is_code = bool(named({key: {}}, "executableCode"))
    return f"{key} without its code." if is_code and not as_text(value.get("code")) else ""


def _good_media(parts: Any) -> list[Any]:
    """Return the parts of a response that are media which the API accepts."""
    return [
        one
        for one in (parts if isinstance(parts, list) else [])
        if _is_media(one) and not media_fault(one, "gemini")
    ]


def _is_misplaced(key: str, role: Any) -> bool:
    """Return whether a content of `role` cannot hold a call, or a response."""
    return bool(role == ("user" if key in CALL else "model"))


def _arguments(key: str, value: JsonObject) -> Any:
    """Return the arguments of a call, or the answer in a response."""
    return value.get("args" if key in CALL else "response", {})


def _check_pairs(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    asked: list[JsonObject] = []
    for at, raw in enumerate(raws):
        where = f"contents[{at}]"
        wanted = Counter(map(_identity, asked))
        given = Counter(map(_identity, _data_of(raw, RESPONSE)))
        for name, number in sorted((wanted - given).items()):
            what = f"{pluralize(number, 'calls')} of {shown(name)} without a response in the next content."
            yield note.error("missing-result", f"contents[{at - 1}]", what, "Answer or drop them.")
        for name, number in sorted((given - wanted).items()):
            what = f"{pluralize(number, 'responses')} of {shown(name)} without a call in the content before."
            yield note.error("orphan-result", where, what, "Put them after their call, or drop them.")
        asked = _data_of(raw, CALL)
        if asked and (at == 0 or raws[at - 1].get("role") == "model"):
            what = "A content with calls comes first, or after one of the model."
            yield note.error("role-order", where, what, "Put it after a content of the user.")
    for call in asked:
        what = f"The call of {shown(call.get('name'))} waits for its response."
        where = f"contents[{len(raws) - 1}]"
        yield note.warning("dangling-call", where, what, "Run it, and append the response.")


def _identity(value: JsonObject) -> str:
    """Return the name of a call or response, with its id if it has one: both have the same."""
    key = value.get("id")
    return f"{value.get('name')} {key}" if isinstance(key, str) and key else f"{value.get('name')}"


class _Cell(NamedTuple):
    """One part under repair, its original place, and the number of the call that it is or answers."""

    part: JsonObject
    where: str
    pair: int = -1

    def of(self, keys: tuple[str, ...]) -> JsonObject | None:
        """Return the call, or the response, that the part is."""
        return next((self.part[key] for key in keys if key in self.part), None)


class _Entry(NamedTuple):
    """One content under repair."""

    at: int
    raw: JsonObject
    role: str
    cells: list[_Cell]

    @property
    def where(self) -> str:
        """Return the original place of the content."""
        return f"contents[{self.at}]"

    def finished(self) -> JsonObject:
        """Return the repaired content; the original one if nothing changed."""
        raw, parts = self.raw, [cell.part for cell in self.cells]
        same = parts == raw.get("parts") and self.role == raw.get("role") and raw.keys() <= FIELDS
        return raw if same else {"role": self.role, "parts": parts}


def repaired(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` as the API accepts them, with a finding for each change."""
    found: list[Finding] = []
    entries = _filled([_cleaned(at, raw, found) for at, raw in enumerate(raws)])
    entries = _paired(_user_first(entries, found), found)
    entries = _joined(_placed(_without_unanswered(entries, found), found), found)
    return RepairedRaws([entry.finished() for entry in entries], found, [entry.at for entry in entries])


def _filled(entries: Iterable[_Entry]) -> list[_Entry]:
    return [entry for entry in entries if entry.cells]


def _cleaned(at: int, raw: JsonObject, found: list[Finding]) -> _Entry:
    """Return a content without what cannot be sent, whatever is around it."""
    where, role, parts = f"contents[{at}]", raw.get("role"), raw.get("parts")
    if not isinstance(role, str) or role not in ROLES:
        role = "model" if role in ("assistant", "ai") else "user"
    found.extend(note.new_role(raw, role, where))
    if unknown := sorted(map(str, raw.keys() - FIELDS)):
        found.append(note.changed("unknown-field", where, f"Left out {', '.join(unknown)}."))
    listed = parts if isinstance(parts, list) else [parts] if isinstance(parts, dict) else []
    cells = [
        _Cell(good, f"{where}.parts[{number}]")
        for number, part in enumerate(listed)
        for good in _cleaned_parts(part, role, f"{where}.parts[{number}]", found)
    ]
    if not cells:
        found.append(note.lost("empty-content", where, "Dropped the content, which is empty."))
    return _Entry(at, raw, role, cells)


def _cleaned_parts(part: Any, role: str, where: str, found: list[Finding]) -> list[JsonObject]:
    """Return the parts in a part, each with one datum; other keys stay with the last."""
    old = {"text": part} if isinstance(part, str) else as_object(part)
    if foreign := rewritten_media(old, "gemini") if not any(key in old for key in DATA) else None:
        found.append(note.as_other_type(as_text(old.get("type")) or "part", next(iter(foreign)), where))
        return [foreign]
    data = {key: _cleaned_datum(key, old[key], role) for key in DATA if key in old}
    kept: list[JsonObject] = [{key: value} for key, value in data.items() if value is not None]
    if kept:
        kept[-1].update((key, value) for key, value in old.items() if key in BESIDE)
    if kept == [part]:
        return [part]
    unknown = sorted(map(str, old.keys() - {*DATA, *BESIDE}))
    if unknown and kept == [{key: value for key, value in old.items() if key in (*DATA, *BESIDE)}]:
        found.append(note.changed("unknown-field", where, f"Left out {', '.join(unknown)}."))
    elif any(value is None and old[key] is not None for key, value in data.items()) or not kept:
        what = f"Dropped the data of {shown(part)} that a {role} content cannot hold."
        found.append(note.lost("bad-block", where, what))
    else:
        renamed = any(
            as_object(value).get("name") != as_object(old[key]).get("name") for key, value in data.items()
        )
        what = "Rewrote the part as the API takes it, with one datum."
        found.append(note.changed("bad-name" if renamed else "bad-block", where, what))
    return kept


def _cleaned_datum(key: str, value: Any, role: str) -> Any:
    """Return the datum of a part as it may be sent; None if it may not."""
    if key == "text":
        return value if isinstance(value, str) and value else None
    if not isinstance(value, dict):
        return None
    if key not in CALL + RESPONSE:
        fault = _fault(key, value)
        return as_object(rewritten_media({key: value}, "gemini")).get(key) if fault else value
    if _is_misplaced(key, role) or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    if not NAME.fullmatch(value["name"]):
        value = {**value, "name": valid_name(value["name"])}
    if key in RESPONSE and value.get("parts") is not None:
        media = _good_media(value["parts"])
        value = value if media == value["parts"] else {**value, "parts": media}
    arguments = _arguments(key, value)
    if isinstance(arguments, dict) or (key in CALL and arguments is None):
        return value
    answer = {} if arguments is None else {"result": arguments}
    return None if key in CALL else {**value, "response": answer}


def valid_name(name: str) -> str:
    """Return the name of a function in the letters that Gemini accepts.

    >>> valid_name("2nd look")
    '_2nd_look'
    """
    letters = re.sub(r"[^a-zA-Z0-9_.:-]", "_", name)
    return (letters if NAME.match(letters) else f"_{letters}")[:_NAME_CHARS]


def _user_first(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` without calls and responses before the first content of the user."""
    opened = False
    kept = []
    for entry in entries:
        opened = opened or (entry.role != "model" and any(cell.of(RESPONSE) is None for cell in entry.cells))
        cells = entry.cells if opened else [cell for cell in entry.cells if cell.of(CALL + RESPONSE) is None]
        if len(cells) < len(entry.cells):
            what = "Dropped calls or responses before the first user content."
            found.append(note.lost("role-order", entry.where, what))
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _paired(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` with calls and responses numbered, without the responses that no call waits for.

    A response answers the first call that waits in the nearest content with such a call.
    """
    waiting: dict[str, list[list[int]]] = {}
    number = 0
    paired = []
    for entry in entries:
        cells = []
        own: dict[str, list[int]] = {}
        for cell in entry.cells:
            call, response, pair = cell.of(CALL), cell.of(RESPONSE), -1
            if call is not None:
                own.setdefault(_identity(call), []).append(number)
                pair, number = number, number + 1
            elif response is not None:
                open_calls = waiting.get(_identity(response))
                if not open_calls:
                    found.append(note.dropped_orphan(f"of {shown(response['name'])}", cell.where))
                    continue
                pair = open_calls[-1].pop(0)
                if not open_calls[-1]:
                    open_calls.pop()
            cells.append(cell._replace(pair=pair))
        for name, calls in own.items():
            waiting.setdefault(name, []).append(calls)
        paired.append(entry._replace(cells=cells))
    return _filled(paired)


def _without_unanswered(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` without calls that have no response, except in the last content, which may be answered yet."""
    results = {cell.pair for entry in entries for cell in entry.cells if cell.of(RESPONSE) is not None}
    kept = []
    for number, entry in enumerate(entries):
        cells = []
        for cell in entry.cells:
            call = cell.of(CALL)
            if call is not None and cell.pair not in results and number < len(entries) - 1:
                what = f"Dropped a call of {shown(call['name'])}, which was never answered."
                found.append(note.lost("missing-result", cell.where, what))
            else:
                cells.append(cell)
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _placed(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` with the responses to the calls of each content first in the content after it."""
    results = {cell.pair: cell for entry in entries for cell in entry.cells if cell.of(RESPONSE) is not None}
    order = {pair: position for position, pair in enumerate(results)}
    placed: list[_Entry] = []
    wanted: list[_Cell] = []
    for entry in entries:
        if wanted and entry.role == "model":
            placed.append(_with_responses(_Entry(placed[-1].at, {}, "user", []), wanted, found))
            wanted = []
        if entry.role == "model":
            placed.append(entry)
            calls = [cell.pair for cell in entry.cells if cell.of(CALL) is not None and cell.pair in results]
            wanted = [results[pair] for pair in sorted(calls, key=order.__getitem__)]
        else:
            placed.append(_with_responses(entry, wanted, found))
            wanted = []
    if wanted:
        placed.append(_with_responses(_Entry(placed[-1].at, {}, "user", []), wanted, found))
    return _filled(placed)


def _with_responses(entry: _Entry, wanted: Sequence[_Cell], found: list[Finding]) -> _Entry:
    """Return a content of the user with just these responses; the content itself if it has just these."""
    here = {cell.pair for cell in entry.cells if cell.of(RESPONSE) is not None}
    if here == {cell.pair for cell in wanted}:
        return entry
    what = f"Moved the response to after its call, {entry.where}."
    moved = (cell for cell in wanted if cell.pair not in here)
    found.extend(note.changed("interleaved-result", cell.where, what) for cell in moved)
    return entry._replace(cells=[*wanted, *(cell for cell in entry.cells if cell.of(RESPONSE) is None)])


def _joined(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` in which calls of the model never follow another content of the model."""
    joined: list[_Entry] = []
    for following in entries:
        entry = following
        calls = entry.role == "model" and any(cell.of(CALL) is not None for cell in entry.cells)
        while calls and joined and joined[-1].role == "model":
            found.append(note.changed("role-order", entry.where, "Joined the content to the one before."))
            before = joined.pop()
            entry = before._replace(cells=[*before.cells, *entry.cells])
        joined.append(entry)
    return joined
