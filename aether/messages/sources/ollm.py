"""OLLM-CLI: its sessions and snapshots, as conversations.

A session is a whole history (`~/.ollm/sessions`, `session-data`, `session-history`); a snapshot is the messages of one
moment, with the checkpoints in the place of earlier ones. Times are milliseconds or ISO 8601, text is a string or parts,
calls of tools are in the messages or in a list of their own. What another version left out has the default of the
original: level 3, `recovery`, and a text that says that a summary is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from aether.clock import parse, stamp
from aether.errors import AetherError, InvalidInput, shown
from aether.messages.model import as_object, content_text
from aether.text.words import pluralize
from aether.types import JsonObject

Kind = Literal["session", "snapshot"]
ROLES = frozenset({"system", "user", "assistant", "tool"})
MODES = frozenset({"developer", "planning", "assistant", "debugger", "user"})
LEVELS = frozenset({1, 2, 3})
NO_SUMMARY = "[Migrated checkpoint - summary unavailable]"
# Below ten digits a number of milliseconds would be in January 1970: then it is one of seconds.
_LEAST_MILLISECONDS = 10_000_000_000


class OllmConversation(NamedTuple):
    """One file of OLLM-CLI as a conversation."""

    kind: Kind
    id: str
    messages: list[JsonObject]
    """In the format of chat completions; `meta` has the time and the id."""
    settings: JsonObject
    """`window`, `model`, `mode` and `system`, as far as the file has them."""
    warnings: list[str]
    checkpoints: list[JsonObject] = []  # noqa: RUF012 - a NamedTuple default, never mutated
    """The summaries as messages, which are before the others."""
    about: list[JsonObject] = []  # noqa: RUF012 - as above
    """Of each checkpoint its id, level, author and times."""


class _Moment(NamedTuple):
    """A message, and when it was said: messages without a time stay behind the one before them."""

    at: float
    order: int
    made: list[JsonObject]


def conversation(value: Any) -> OllmConversation | None:
    """Return the conversation in a parsed file; None for an index of snapshots, which has none.

    Raises:
        InvalidInput: it is no session and no snapshot, or a required field of it is missing.
    """
    if not isinstance(value, dict):
        raise _bad("it is not an object")
    if isinstance(value.get("snapshots"), list) or (
        value and "sessionId" not in value and all(isinstance(one, str) for one in value.values())
    ):
        return None
    state = as_object(value.get("conversationState"))
    try:
        if state or any(key in value for key in ("userMessages", "checkpoints", "purpose")):
            return _snapshot(value, state or value)
        return _session(value)
    except (TypeError, AttributeError, KeyError) as reason:
        raise _bad(f"a field has another type than it should ({reason})") from reason


def _session(value: JsonObject) -> OllmConversation:
    session, warnings = _required_id(value, "sessionId"), list[str]()
    said, system = _said(_listed(value, "messages"), warnings)
    said += _calls(value.get("toolCalls") or [], len(said), warnings)
    metadata = as_object(value.get("metadata"))
    records = value.get("checkpointRecords") or []
    if records:
        warnings.append(
            f"{pluralize(len(records), 'checkpoint records')} left out: the messages they stood for are there"
        )
    settings = _settings({**metadata, **value}, metadata.get("modeHistory"), system)
    return OllmConversation("session", session, _in_order(said), settings, warnings)


def _snapshot(value: JsonObject, state: JsonObject) -> OllmConversation:
    session, name = _required_id(value, "sessionId"), _required_id(value, "id")
    warnings: list[str] = []
    known = {str(one.get("id")): one for one in map(as_object, _listed(state, "messages"))}
    for one in map(as_object, [*(value.get("userMessages") or []), *(state.get("userMessages") or [])]):
        known.setdefault(str(one.get("id")), {"role": "user", **one})
    cut = 0
    for one in map(as_object, value.get("archivedUserMessages") or []):
        if str(one.get("id")) not in known:
            known[str(one.get("id"))] = {"role": "user", "content": one.get("summary"), **one}
            cut += 1
    if cut:
        warnings.append(f"{pluralize(cut, 'messages')} are there by their first words only")
    if state.get("goals"):
        warnings.append('its goals are left out; add those that matter with "aether goal add"')
    said, system = _said(list(known.values()), warnings, by_time=True)
    found = list(_checkpoints(state.get("checkpoints") or [], known, warnings))
    metadata = {**as_object(state.get("metadata")), **as_object(value.get("metadata"))}
    settings = _settings({**metadata, **value}, metadata.get("modeHistory"), system)
    summaries = [{"role": "assistant", "content": text} for text, _ in found]
    about = [each for _, each in found]
    return OllmConversation(
        "snapshot", f"{session}-{name}", _in_order(said), settings, warnings, summaries, about
    )


def _checkpoints(
    listed: Any, known: Mapping[str, Any], warnings: list[str]
) -> Iterator[tuple[str, JsonObject]]:
    """Yield the text of each checkpoint and what is known of it, but for those whose messages are all there."""
    for nth, one in enumerate(map(as_object, listed if isinstance(listed, list) else []), 1):
        name = str(one.get("id") or f"ckpt_{nth}")
        originals = [str(original) for original in one.get("originalMessageIds") or []]
        if originals and known.keys() >= set(originals):
            warnings.append(f"checkpoint {name} left out: its messages are there")
            continue
        text = content_text(one.get("summary")) or content_text(one.get("content"))
        if not text.strip():
            warnings.append(f"checkpoint {name} has no summary")
        level = one.get("compressionLevel", one.get("level"))
        metadata = as_object(one.get("metadata"))
        about: JsonObject = {
            "id": name, "level": level if level in LEVELS else 3, "model": str(metadata.get("model") or ""),
            "created_at": _time(metadata.get("createdAt") or one.get("timestamp")),
            "compressed_at": _time(metadata.get("compressedAt")), "messages": len(originals),
            "tokens_before": _whole(one.get("originalTokens")),
        }  # fmt: skip
        yield text if text.strip() else NO_SUMMARY, about


def _said(listed: Sequence[Any], warnings: list[str], *, by_time: bool = False) -> tuple[list[_Moment], str]:
    """Return the messages, and the system prompt, which is the first of them if its role says so."""
    said: list[_Moment] = []
    system, last, blank = "", 0.0, 0
    for order, one in enumerate(listed):
        if not isinstance(one, dict) or one.get("role") not in ROLES:
            role = one.get("role") if isinstance(one, dict) else one
            raise _bad(f"message {order} has no role that is known: {shown(role)}")
        text = content_text(one.get("content")) or content_text(one.get("parts"))
        calls = [
            _call(call, nth) for nth, call in enumerate(one.get("toolCalls") or one.get("tool_calls") or [])
        ]
        if one["role"] == "system" and not said and not system:
            system = text
            continue
        if not text.strip() and not calls:
            blank += 1
            continue
        meta = {"at": _time(one.get("timestamp")), "id": str(one.get("id") or "")}
        made: JsonObject = {"role": one["role"], "content": text}
        if calls:
            made["tool_calls"] = calls
        if one["role"] == "tool":
            made["tool_call_id"] = str(one.get("toolCallId") or one.get("tool_call_id") or f"call_{order}")
        if meta := {key: known for key, known in meta.items() if known}:
            made["meta"] = meta
        # A history is in the order of its list, whatever the clock said.
        own = _seconds(one.get("timestamp")) or last
        last = own if by_time else max(last, own)
        said.append(_Moment(last, order, [made]))
    if blank:
        warnings.append(f"{pluralize(blank, 'blank messages')} left out")
    return said, system


def _calls(listed: Any, first: int, warnings: list[str]) -> list[_Moment]:
    """Return the calls that a session lists beside its messages, each with its result."""
    found = []
    for nth, one in enumerate(map(as_object, listed if isinstance(listed, list) else [])):
        if not one.get("name"):
            warnings.append(f"call {nth} left out: it has no name")
            continue
        call = _call(one, nth)
        result = as_object(one.get("result"))
        text = content_text(result.get("llmContent")) or content_text(result.get("returnDisplay"))
        made = [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "tool_call_id": call["id"], "content": text}]  # fmt: skip
        found.append(_Moment(_seconds(one.get("timestamp")) or float("inf"), first + nth, made))
    return found


def _call(one: Any, nth: int) -> JsonObject:
    call = as_object(one)
    function = as_object(call.get("function")) or call
    arguments = function.get("args", function.get("arguments")) or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    described = {"name": str(function.get("name") or "tool"), "arguments": text}
    return {"id": str(call.get("id") or f"call_{nth}"), "type": "function", "function": described}


def _in_order(said: list[_Moment]) -> list[JsonObject]:
    ordered = sorted(said, key=lambda one: (one.at, one.order))
    return [message for one in ordered for message in one.made]


def _settings(about: JsonObject, modes: Any, system: str) -> JsonObject:
    last = modes[-1] if isinstance(modes, list) and modes else about.get("mode")
    mode = as_object(last).get("to") or as_object(last).get("mode") or last
    found: JsonObject = {
        "window": _whole(about.get("contextSize")), "model": about.get("model"), "system": system,
        "mode": mode if mode in MODES else "",
    }  # fmt: skip
    return {key: value for key, value in found.items() if value and isinstance(value, (str, int))}


def _required_id(value: JsonObject, key: str) -> str:
    found = value.get(key)
    if not isinstance(found, str) or not found.strip():
        raise _bad(f"{key} is missing")
    return found


def _listed(value: JsonObject, key: str) -> list[Any]:
    found = value.get(key)
    if not isinstance(found, list):
        raise _bad(f"{key} is missing")
    return found


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _seconds(value: Any) -> float:
    """Return a time in seconds since 1970; 0 if it is no time."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value / 1000 if value >= _LEAST_MILLISECONDS else float(value)
    try:
        return parse(value).timestamp() if isinstance(value, str) else 0.0
    except (AetherError, ValueError, OverflowError):
        return 0.0


def _time(value: Any) -> str:
    try:
        seconds = _seconds(value)
        return stamp(datetime.fromtimestamp(seconds, UTC)) if seconds else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _bad(what: str) -> InvalidInput:
    return InvalidInput(f"{what}.", fix="Name a file of sessions or snapshots of OLLM-CLI.", where="OLLM-CLI")
