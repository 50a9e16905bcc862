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
        value and "sessionId" not in value and all(isinstance(entry, str) for entry in value.values())
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
    moments, system = _said(_listed(value, "messages"), warnings)
    moments += _calls(value.get("toolCalls") or [], len(moments), warnings)
    metadata = as_object(value.get("metadata"))
    records = value.get("checkpointRecords") or []
    if records:
        warnings.append(
            f"{pluralize(len(records), 'checkpoint records')} left out: the messages they stood for are there"
        )
    settings = _settings({**metadata, **value}, metadata.get("modeHistory"), system)
    return OllmConversation("session", session, _in_order(moments), settings, warnings)


def _snapshot(value: JsonObject, state: JsonObject) -> OllmConversation:
    session, name = _required_id(value, "sessionId"), _required_id(value, "id")
    warnings: list[str] = []
    messages = {str(message.get("id")): message for message in map(as_object, _listed(state, "messages"))}
    for message in map(as_object, [*(value.get("userMessages") or []), *(state.get("userMessages") or [])]):
        messages.setdefault(str(message.get("id")), {"role": "user", **message})
    cut = 0
    for message in map(as_object, value.get("archivedUserMessages") or []):
        if str(message.get("id")) not in messages:
            messages[str(message.get("id"))] = {"role": "user", "content": message.get("summary"), **message}
            cut += 1
    if cut:
        warnings.append(f"{pluralize(cut, 'messages')} are there by their first words only")
    if state.get("goals"):
        warnings.append('its goals are left out; add those that matter with "aether goal add"')
    moments, system = _said(list(messages.values()), warnings, by_time=True)
    checkpoints = list(_checkpoints(state.get("checkpoints") or [], messages, warnings))
    metadata = {**as_object(state.get("metadata")), **as_object(value.get("metadata"))}
    settings = _settings({**metadata, **value}, metadata.get("modeHistory"), system)
    summaries = [{"role": "assistant", "content": text} for text, _ in checkpoints]
    about = [details for _, details in checkpoints]
    return OllmConversation(
        "snapshot", f"{session}-{name}", _in_order(moments), settings, warnings, summaries, about
    )


def _checkpoints(
    listed: Any, messages: Mapping[str, Any], warnings: list[str]
) -> Iterator[tuple[str, JsonObject]]:
    """Yield the text of each checkpoint and what is known of it, but for those whose messages are all there."""
    for nth, checkpoint in enumerate(map(as_object, listed if isinstance(listed, list) else []), 1):
        name = str(checkpoint.get("id") or f"ckpt_{nth}")
        originals = [str(original) for original in checkpoint.get("originalMessageIds") or []]
        if originals and messages.keys() >= set(originals):
            warnings.append(f"checkpoint {name} left out: its messages are there")
            continue
        text = content_text(checkpoint.get("summary")) or content_text(checkpoint.get("content"))
        if not text.strip():
            warnings.append(f"checkpoint {name} has no summary")
        level = checkpoint.get("compressionLevel", checkpoint.get("level"))
        metadata = as_object(checkpoint.get("metadata"))
        about: JsonObject = {
            "id": name, "level": level if level in LEVELS else 3, "model": str(metadata.get("model") or ""),
            "created_at": _time(metadata.get("createdAt") or checkpoint.get("timestamp")),
            "compressed_at": _time(metadata.get("compressedAt")), "messages": len(originals),
            "tokens_before": _whole(checkpoint.get("originalTokens")),
        }  # fmt: skip
        yield text if text.strip() else NO_SUMMARY, about


def _said(listed: Sequence[Any], warnings: list[str], *, by_time: bool = False) -> tuple[list[_Moment], str]:
    """Return the messages, and the system prompt, which is the first of them if its role says so."""
    moments: list[_Moment] = []
    system, last, blank = "", 0.0, 0
    for order, message in enumerate(listed):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            role = message.get("role") if isinstance(message, dict) else message
            raise _bad(f"message {order} has no role that is known: {shown(role)}")
        text = content_text(message.get("content")) or content_text(message.get("parts"))
        calls = [
            _call(call, nth)
            for nth, call in enumerate(message.get("toolCalls") or message.get("tool_calls") or [])
        ]
        if message["role"] == "system" and not moments and not system:
            system = text
            continue
        if not text.strip() and not calls:
            blank += 1
            continue
        meta = {"at": _time(message.get("timestamp")), "id": str(message.get("id") or "")}
        raw: JsonObject = {"role": message["role"], "content": text}
        if calls:
            raw["tool_calls"] = calls
        if message["role"] == "tool":
            raw["tool_call_id"] = str(
                message.get("toolCallId") or message.get("tool_call_id") or f"call_{order}"
            )
        if meta := {key: value for key, value in meta.items() if value}:
            raw["meta"] = meta
        # A history is in the order of its list, whatever the clock said.
        seconds = _seconds(message.get("timestamp")) or last
        last = seconds if by_time else max(last, seconds)
        moments.append(_Moment(last, order, [raw]))
    if blank:
        warnings.append(f"{pluralize(blank, 'blank messages')} left out")
    return moments, system


def _calls(listed: Any, first: int, warnings: list[str]) -> list[_Moment]:
    """Return the calls that a session lists beside its messages, each with its result."""
    moments = []
    for nth, entry in enumerate(map(as_object, listed if isinstance(listed, list) else [])):
        if not entry.get("name"):
            warnings.append(f"call {nth} left out: it has no name")
            continue
        call = _call(entry, nth)
        result = as_object(entry.get("result"))
        text = content_text(result.get("llmContent")) or content_text(result.get("returnDisplay"))
        raws = [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "tool_call_id": call["id"], "content": text}]  # fmt: skip
        moments.append(_Moment(_seconds(entry.get("timestamp")) or float("inf"), first + nth, raws))
    return moments


def _call(entry: Any, nth: int) -> JsonObject:
    call = as_object(entry)
    function = as_object(call.get("function")) or call
    arguments = function.get("args", function.get("arguments")) or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    described = {"name": str(function.get("name") or "tool"), "arguments": text}
    return {"id": str(call.get("id") or f"call_{nth}"), "type": "function", "function": described}


def _in_order(moments: list[_Moment]) -> list[JsonObject]:
    ordered = sorted(moments, key=lambda moment: (moment.at, moment.order))
    return [message for moment in ordered for message in moment.made]


def _settings(about: JsonObject, modes: Any, system: str) -> JsonObject:
    last = modes[-1] if isinstance(modes, list) and modes else about.get("mode")
    mode = as_object(last).get("to") or as_object(last).get("mode") or last
    settings: JsonObject = {
        "window": _whole(about.get("contextSize")), "model": about.get("model"), "system": system,
        "mode": mode if mode in MODES else "",
    }  # fmt: skip
    return {key: value for key, value in settings.items() if value and isinstance(value, (str, int))}


def _required_id(value: JsonObject, key: str) -> str:
    id_ = value.get(key)
    if not isinstance(id_, str) or not id_.strip():
        raise _bad(f"{key} is missing")
    return id_


def _listed(value: JsonObject, key: str) -> list[Any]:
    entries = value.get(key)
    if not isinstance(entries, list):
        raise _bad(f"{key} is missing")
    return entries


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
