"""Gemini contents: parts under `user` and `model`, in camel or in snake case; ids of calls are optional.

A thought signature belongs to the part it stands in and stays with it.

The rules of Gemini contents: two roles, parts with one datum each, function calls and responses by count.

The API does not join contents: the responses to a content's calls all stand in the very next content. Keys
come in the spelling of the wire (`functionCall`) and in that of the Python SDK (`function_call`).

Repairs of Gemini contents: parts with one datum, responses moved to the content after their calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import InvalidInput, shown
from aether.messages.content import (
    Place,
    RepairedRaws,
    as_json,
    call_block,
    changed,
    lost,
    media_block,
    other_block,
    result_blocks,
)
from aether.messages.model import Block, Message, Role, as_object, as_text, is_failure_text
from aether.messages.turns import Turn
from aether.types import Finding, JsonObject

# Where a function puts what it answered, as the SDKs do it; any other object is read as JSON.
_ANSWERS = ("output", "result", "error", "content")
CODE = "code_execution"


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
    """Return the key under which a part keeps `name`, in either case; empty where it does not.

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
        return _response(part[key], (*at, key))
    return _code(part, at) or [_shown(part, at)]


def _code(part: Any, at: Place) -> list[Block]:
    """Return what the model ran on the server, or what came of it."""
    if key := named(part, "executableCode"):
        return [call_block(CODE, part[key].get("code"), (*at, key, "code"), part[key].get("id"))]
    if key := named(part, "codeExecutionResult"):
        broken = "OUTCOME_OK" not in as_text(part[key].get("outcome"))
        inner = part[key]
        return result_blocks(
            inner.get("output"), (*at, key, "output"), inner.get("id"), tool=CODE, broken=broken
        )
    return []


def _shown(part: Any, at: Place) -> Block:
    if named(part, "inlineData") or named(part, "fileData"):
        return media_block(part, at)
    if isinstance(as_object(part).get("text"), str):
        thought = bool(part.get("thought"))
        return Block("reasoning", part["text"]) if thought else Block("text", part["text"], (*at, "text"))
    return other_block(part)


def _response(inner: JsonObject, at: Place) -> list[Block]:
    response = inner.get("response")
    given = as_object(response)
    parts = inner.get("parts")
    shown = [
        media_block(part, (*at, "parts", position))
        for position, part in enumerate(parts if isinstance(parts, list) else [])
        if named(part, "inlineData") or named(part, "fileData")
    ]
    key = next((key for key in _ANSWERS if len(given) == 1 and isinstance(given.get(key), str)), "")
    answer: Any = given[key] if key else as_json(response) if response is not None else None
    found = result_blocks(
        answer, (*at, "response", key), inner.get("id"), tool=inner.get("name"), also=tuple(shown),
        broken=True if "error" in given else None,
    )  # fmt: skip
    return found if key else [found[0]._replace(at=(*at, "response") if given else ()), *found[1:]]


def said(role: Role, text: str) -> JsonObject:
    """Return a new content that says `text`.

    Raises:
        InvalidInput: contents have no system role, and a tool cannot say anything without a call.
    """
    if role in {"tool", "system"}:
        raise InvalidInput(
            f"Gemini contents have no message of role {role!r} that only says something.",
            fix="Say it as user or assistant, or put it into systemInstruction.",
            where="role",
        )
    return {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the content without its thoughts; itself where nothing else would be left."""
    parts = raw.get("parts")
    if not isinstance(parts, list):
        return raw
    kept = [part for part in parts if not as_object(part).get("thought")]
    return {**raw, "parts": kept} if kept and len(kept) < len(parts) else raw


def written(turn: Turn) -> list[JsonObject]:
    """Return a turn as contents: what is said with its calls, and all responses in the order of the calls."""
    meta = {"meta": turn.meta} if turn.meta else {}
    role = "model" if turn.role == "assistant" else "user"
    raw = {"role": role, "parts": [_part(piece) for piece in turn.pieces], **meta}
    calls = [piece.call_id for piece in turn.pieces if isinstance(piece, Block)]
    ordered = sorted(turn.answers, key=lambda answer: calls.index(answer.block.call_id))
    answers = [{"functionResponse": _answer(answer.block)} for answer in ordered]
    return [raw, {"role": "user", "parts": answers, **meta}] if answers else [raw]


def _part(piece: Block | JsonObject) -> JsonObject:
    if isinstance(piece, dict):
        return piece
    if piece.kind == "text":
        return {"text": piece.text}
    return {"functionCall": {"id": piece.call_id, "name": piece.tool, "args": dict(piece.arguments)}}


def _answer(block: Block) -> JsonObject:
    # Where the text says that it failed, readers see it under any key.
    key = "error" if block.is_error and not is_failure_text(block.text) else "result"
    return {"id": block.call_id, "name": block.tool, "response": {key: block.text}}


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
        yield from _check_part(part, role, f"{where}.parts[{number}]")


def _check_part(part: Any, role: Any, where: str) -> Iterator[Finding]:
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


_MODELS = frozenset({"assistant", "ai"})


class Cell(NamedTuple):
    """One part, where it stood, and the number of the call that it is or answers."""

    part: JsonObject
    where: str
    pair: int = -1

    def of(self, keys: tuple[str, ...]) -> JsonObject | None:
        """Return the call, or the response, that the part is."""
        return next((self.part[key] for key in keys if key in self.part), None)


class Entry(NamedTuple):
    """One content at work."""

    at: int
    raw: JsonObject
    role: str
    cells: list[Cell]


def mended(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` as the API takes them, and what was done."""
    found: list[Finding] = []
    entries = _filled([_cleaned(at, raw, found) for at, raw in enumerate(raws)])
    entries = _paired(_opened(entries, found), found)
    entries = _placed(_answered(entries, found), found)
    return RepairedRaws([_raw(entry) for entry in _joined(entries, found)], found)


def _filled(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.cells]


def _raw(entry: Entry) -> JsonObject:
    """Return the content, the one that came where nothing changed."""
    raw, parts = entry.raw, [cell.part for cell in entry.cells]
    if parts == raw.get("parts") and entry.role == raw.get("role") and raw.keys() <= FIELDS:
        return raw
    return {"role": entry.role, "parts": parts}


def _cleaned(at: int, raw: JsonObject, found: list[Finding]) -> Entry:
    where, role, parts = f"contents[{at}]", _role(raw.get("role")), raw.get("parts")
    if role != raw.get("role"):
        found.append(changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}."))
    if unknown := sorted(map(str, raw.keys() - FIELDS)):
        found.append(changed("unknown-field", where, f"Left out {', '.join(unknown)}."))
    listed = parts if isinstance(parts, list) else [parts] if isinstance(parts, dict) else []
    cells = [
        Cell(good, f"{where}.parts[{number}]")
        for number, part in enumerate(listed)
        for good in _parts(part, role, f"{where}.parts[{number}]", found)
    ]
    if not cells:
        found.append(lost("empty-content", where, "Dropped the content, which holds nothing."))
    return Entry(at, raw, role, cells)


def _role(role: Any) -> str:
    if isinstance(role, str) and role in ROLES:
        return role
    return "model" if isinstance(role, str) and role in _MODELS else "user"


def _parts(part: Any, role: str, where: str, found: list[Finding]) -> list[JsonObject]:
    """Return the parts that a part holds, each with one datum; what goes with it stays with the last."""
    held = {"text": part} if isinstance(part, str) else part if isinstance(part, dict) else {}
    data = {key: _datum(key, held[key], role) for key in DATA if key in held}
    kept: list[JsonObject] = [{key: value} for key, value in data.items() if value is not None]
    if kept:
        kept[-1].update((key, value) for key, value in held.items() if key not in DATA)
    if kept == [part]:
        return [part]
    if any(value is None and held[key] is not None for key, value in data.items()) or not kept:
        found.append(
            lost("bad-block", where, f"Dropped what cannot stand in a {role} content, of {shown(part)}.")
        )
    else:
        found.append(changed("bad-block", where, "Respelt the part, one datum to a part."))
    return kept


def _datum(key: str, value: Any, role: str) -> Any:
    """Return the datum of a part as it may be sent; None where it may not."""
    if key == "text":
        return value if isinstance(value, str) and value else None
    if not isinstance(value, dict):
        return None
    return _repair_function(key, value, role) if key in CALL + RESPONSE else value


def _repair_function(key: str, value: JsonObject, role: str) -> JsonObject | None:
    call = key in CALL
    if role == ("user" if call else "model") or not isinstance(value.get("name"), str) or not value["name"]:
        return None
    given = value.get("args" if call else "response", {})
    if isinstance(given, dict) or (call and given is None):
        return value
    if call:
        return None
    return {**value, "response": {} if given is None else {"result": given}}


def _opened(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without calls and responses before the first content of the user."""
    begun = False
    opened = []
    for entry in entries:
        begun = begun or (entry.role != "model" and any(cell.of(RESPONSE) is None for cell in entry.cells))
        cells = entry.cells if begun else [cell for cell in entry.cells if cell.of(CALL + RESPONSE) is None]
        if len(cells) < len(entry.cells):
            found.append(
                lost(
                    "role-order",
                    f"contents[{entry.at}]",
                    "Dropped calls or responses before the first user content.",
                )
            )
        opened.append(entry._replace(cells=cells))
    return _filled(opened)


def _paired(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with calls and responses numbered, without the responses that no call waits for."""
    waiting: dict[str, list[list[int]]] = {}
    number = 0
    paired = []
    for entry in entries:
        cells = []
        own: dict[str, list[int]] = {}
        for cell in entry.cells:
            call, response, pair = cell.of(CALL), cell.of(RESPONSE), -1
            if call is not None:
                own.setdefault(identity(call), []).append(number)
                pair, number = number, number + 1
            elif response is not None:
                pair = _taken(waiting.get(identity(response), []))
                if pair < 0:
                    name = shown(response["name"])
                    found.append(
                        lost(
                            "orphan-result",
                            cell.where,
                            f"Dropped a response: no call of {name} waits for it.",
                        )
                    )
                    continue
            cells.append(cell._replace(pair=pair))
        for name, calls in own.items():
            waiting.setdefault(name, []).append(calls)
        paired.append(entry._replace(cells=cells))
    return _filled(paired)


def _taken(waiting: list[list[int]]) -> int:
    """Take the first call of the nearest content that has one waiting; -1 where none has."""
    if not waiting:
        return -1
    pair = waiting[-1].pop(0)
    if not waiting[-1]:
        waiting.pop()
    return pair


def _answered(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without the calls that were never answered; those of the last content may be yet."""
    results = {cell.pair for entry in entries for cell in entry.cells if cell.of(RESPONSE) is not None}
    kept = []
    for number, entry in enumerate(entries):
        cells = []
        for cell in entry.cells:
            call = cell.of(CALL)
            if call is not None and cell.pair not in results and number < len(entries) - 1:
                name = shown(call["name"])
                found.append(
                    lost("missing-result", cell.where, f"Dropped a call of {name}, which was never answered.")
                )
            else:
                cells.append(cell)
        kept.append(entry._replace(cells=cells))
    return _filled(kept)


def _placed(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with the responses to the calls of each content first in the one after it."""
    results = {cell.pair: cell for entry in entries for cell in entry.cells if cell.of(RESPONSE) is not None}
    order = {pair: position for position, pair in enumerate(results)}
    placed: list[Entry] = []
    wanted: list[Cell] = []
    for entry in entries:
        if wanted and entry.role == "model":
            placed.append(_with(Entry(placed[-1].at, {}, "user", []), wanted, found))
            wanted = []
        if entry.role == "model":
            placed.append(entry)
            answered = [
                cell.pair for cell in entry.cells if cell.of(CALL) is not None and cell.pair in results
            ]
            wanted = [results[pair] for pair in sorted(answered, key=order.__getitem__)]
        else:
            placed.append(_with(entry, wanted, found))
            wanted = []
    if wanted:
        placed.append(_with(Entry(placed[-1].at, {}, "user", []), wanted, found))
    return _filled(placed)


def _with(entry: Entry, wanted: Sequence[Cell], found: list[Finding]) -> Entry:
    """Return a content of the user with just these responses, where it had them if it had them all."""
    own = [cell for cell in entry.cells if cell.of(RESPONSE) is not None]
    if {cell.pair for cell in own} == {cell.pair for cell in wanted}:
        return entry
    here = {cell.pair for cell in own}
    found.extend(
        changed(
            "interleaved-result", cell.where, f"Moved the response to after its call, contents[{entry.at}]."
        )
        for cell in wanted
        if cell.pair not in here
    )
    return entry._replace(cells=[*wanted, *(cell for cell in entry.cells if cell.of(RESPONSE) is None)])


def _joined(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` in which calls of the model never follow another content of the model."""
    joined: list[Entry] = []
    for following in entries:
        entry = following
        calls = entry.role == "model" and any(cell.of(CALL) is not None for cell in entry.cells)
        while calls and joined and joined[-1].role == "model":
            found.append(
                changed("role-order", f"contents[{entry.at}]", "Joined the content to the one before.")
            )
            before = joined.pop()
            entry = before._replace(cells=[*before.cells, *entry.cells])
        joined.append(entry)
    return joined
