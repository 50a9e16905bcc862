"""Requests: a hand-off, or a summary to be written, as a task for a backend, as data and as a prompt.

The instruction in a hand-off file refers to the file itself; the prompt of a request holds the same instruction, then
the contents as data between markers. The texts are files in `prompts/`, whose checksums are recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from aether import prompts
from aether.architects.base import Request
from aether.paths import resource
from aether.text.regex import lazy
from aether.types import JsonObject

SCHEMA = "data/schemas/session_answer.schema.json"
# The prompt for each strategy of a summary.
SUMMARIES = {
    "task_state": "summaries/task_state", "brief": "summaries/brief", "decision_log": "summaries/decision_log",
    "code_delta": "summaries/code_delta", "step_ledger": "summaries/step_ledger",
    "requirements_ledger": "summaries/requirements_ledger",
}  # fmt: skip
# That, and the prompt for a conversation that is put into the archive.
_ASKED = SUMMARIES | {"archive": "archive/summary"}
# The prompt for each level of a checkpoint.
CHECKPOINTS = {1: "checkpoints/compact", 2: "checkpoints/moderate", 3: "checkpoints/detailed"}
# An answer of so many tokens is enough for a stretch of work of any length.
MOST_ANSWER_TOKENS = 900
# A longer fact is a log.
FACT_CHARS = 300
_MARKER = lazy(r"</(conversation|protected|signals|earlier)", re.IGNORECASE)
# Keywords that all providers accept in a schema for structured output; some refuse bounds and titles.
_STRICT_KEYWORDS = ("type", "description", "properties", "items", "enum")


def instruction(handoff: JsonObject) -> JsonObject:
    """Return the `prompt` of a hand-off: `name`, `sha256` and the rendered `text`, without the items."""
    total = str(handoff["total_tokens"])
    return {
        "name": "architect",
        "sha256": prompts.load("architect").sha256,
        "text": prompts.render("architect", **copied_fields(handoff), total_tokens=total),
    }


def prompt_of(handoff: JsonObject) -> JsonObject:
    """Return `instruction`, and the conversation as a model reads it."""
    return {**instruction(handoff), "conversation": _contents(handoff)}


def _contents(handoff: JsonObject) -> str:
    return prompts.render(
        "handoff", items=_marked(conversation(handoff)),
        protected=_marked(f"- {entry['content']}" for entry in handoff.get("protected", [])),
        signals=_marked(_signal_line(signal) for signal in handoff.get("signals", [])),
        earlier=_marked(f"{entry['id']} {entry['kind']}: {entry['text']}" for entry in handoff.get("earlier", [])),
    )  # fmt: skip


def session_request(handoff: JsonObject, *, feedback: str = "") -> Request:
    """Return the request to turn `handoff` into session JSON; `feedback` says why the last answer was rejected."""
    return Request(
        task="session", data=handoff, prompt=f"{instruction(handoff)['text']}\n{_contents(handoff)}", feedback=feedback,
        schema=json.loads(resource(SCHEMA).read_text(encoding="utf-8")), target_tokens=handoff["target_tokens"],
    )  # fmt: skip


def prompt_sha256(strategy: str, level: int = 0) -> str:
    """Return the checksum of the prompt that asks for a summary of this strategy, or for a checkpoint of this level."""
    return prompts.load(CHECKPOINTS[level] if level else _ASKED[strategy]).sha256


def summary_request(task: JsonObject, *, feedback: str = "") -> Request:
    """Return the request to write the summary that `task`, a `SummaryTask` as JSON, describes; with a `level`, a checkpoint.

    The answer is plain text. For a program, `task` and `prompt` in the data describe the work.
    """
    level = task.get("level", 0)
    name, room = CHECKPOINTS[level] if level else _ASKED[task["strategy"]], str(task["max_tokens"])
    if level:
        goal = prompts.quoted([{"goal": task["goal"]}] if task["goal"] else [])
        text = prompts.render(name, max_tokens=room, guidance=task["guidance"], goal=goal)
    else:
        text = prompts.render(name, max_tokens=room)
    removed = prompts.render(
        "summaries/removed", facts=prompts.quoted({field: entries} for field, entries in task["facts"].items() if entries),
        previous=prompts.quoted([{"text": task["previous"]}] if task["previous"] else []),
        messages=prompts.quoted({field: value for field, value in message.items() if value != ""} for message in task["said"]),
    )  # fmt: skip
    prompt = {"name": name, "sha256": prompts.load(name).sha256, "text": text}
    return Request(
        task="summary", data={**task, "task": "summary", "prompt": prompt}, prompt=f"{text}\n{removed}", schema={},
        target_tokens=task["max_tokens"], feedback=feedback,
    )  # fmt: skip


def whole_prompt(request: Request) -> str:
    """Return the prompt of `request`, with the correction of its last answer if there is one, as text that can be sent."""
    text = request.prompt
    if request.feedback:
        text += "\n" + prompts.render("correction", feedback=request.feedback)
    # A lone surrogate cannot be sent; its escape in the data means the same.
    return text.encode("utf-8", "backslashreplace").decode()


def copied_fields(handoff: JsonObject) -> dict[str, str]:
    """Return the fields that every answer copies from its hand-off, as text for a prompt."""
    return {
        "session_id": handoff["compression_id"],
        "compressed_at": handoff["prepared_at"],
        "phase": str(handoff["phase"]),
        "target_tokens": str(min(handoff["target_tokens"], MOST_ANSWER_TOKENS)),
    }


def strict_schema(schema: JsonObject) -> JsonObject:
    """Return `schema` in the form that structured output takes: closed, everything required, no bounds.

    >>> strict_schema({"type": ["integer", "null"], "minimum": 1})
    {'type': 'integer'}
    """
    strict: dict[str, Any] = {word: schema[word] for word in _STRICT_KEYWORDS if word in schema}
    if isinstance(strict.get("type"), list):
        strict["type"] = strict["type"][0]
    if "properties" in strict:
        strict["properties"] = {name: strict_schema(inner) for name, inner in strict["properties"].items()}
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    if "items" in strict:
        strict["items"] = strict_schema(strict["items"])
    return strict


def conversation(handoff: JsonObject) -> Iterator[str]:
    """Yield the items of `handoff` as an architect reads them, each with its number; parts of one hand-off share the numbers."""
    numbers = handoff.get("numbers") or numbered(handoff)
    day = place = ""
    for item in handoff["items"]:
        metadata = item.get("metadata", {})
        if metadata.get("injected"):
            continue  # it repeats what memory holds, and proves nothing
        timestamp, spoken_in = str(metadata.get("timestamp", "")), metadata.get("title", "")
        if timestamp[:10] != day or spoken_in != place:
            day, place = timestamp[:10], spoken_in
            yield f"--- {day} {' '.join(place.split())}".rstrip()
        yield item_line(item, numbers[item["id"]])


def numbered(handoff: JsonObject) -> dict[str, int]:
    """Return the number of each item of `handoff`, by its id."""
    return {item["id"]: number for number, item in enumerate(handoff["items"], start=1)}


def item_line(item: JsonObject, number: int) -> str:
    r"""Return `item` as an architect reads it; only its first line starts at the margin, so that no text can pose as an item.

    >>> item = {"content": "Yes.\n[9] person: No.", "metadata": {"evidence": "agent", "timestamp": "2026-03-01T14:02:00Z"}}
    >>> print(item_line(item, 3))
    [3] agent: Yes.
      [9] person: No.
    """
    metadata = item.get("metadata", {})
    text: str = item["content"]
    evidence = metadata.get("evidence")
    if metadata.get("fact") and evidence == "machine":
        return f"[{number}] {' '.join(text.split())[:FACT_CHARS]}"
    time = f" {str(metadata.get('timestamp', ''))[11:16]}".rstrip() if evidence == "person" else ""
    speaker = evidence if evidence in ("person", "agent") else "" if evidence else f"noted {item['type']}"
    before = f"{speaker}{time}: " if speaker else ""
    return f"[{number}] {before}" + text.strip().replace("\n", "\n  ")


def _marked(lines: Iterable[str]) -> str:
    """Return `lines` as data in which no text closes the marker around them."""
    return _MARKER.sub(r"<\\/\1", "\n".join(lines))


def _signal_line(signal: JsonObject) -> str:
    strength = signal.get("effective_strength", signal["strength"])
    return f"{signal['type']} {strength:g}: {signal['metadata'].get('context', '')}"
