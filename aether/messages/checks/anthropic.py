"""The rules of Anthropic Messages: roles, blocks, calls and results, thinking.

The API joins adjacent messages of one role into one turn before it looks, and so does this: calls of a turn
must be answered by the first blocks of the next one. `system` among the messages is for the newest models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from aether.errors import shown
from aether.shapes import Finding, JsonObject
from aether.text.patterns import lazy

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


def blocks(raw: JsonObject) -> list[Any]:
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
            for number, block in enumerate(blocks(raw))
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
    for number, block in enumerate(blocks(raw) if content else []):
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
