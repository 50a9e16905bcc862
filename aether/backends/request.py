"""Requests: a hand-off, or a summary to be written, as a task for a backend, as data and as a prompt.

The instruction in a hand-off file refers to the file itself; the prompt of a request holds the same instruction, then
the contents as data between markers. The texts are files in `prompts/`, whose checksums are recorded.
"""

from __future__ import annotations

import json
from typing import Any

from aether import prompts
from aether.backends.base import Request
from aether.paths import resource
from aether.types import JsonObject

SCHEMA = "data/schemas/session_answer.schema.json"
# The prompt for each strategy of a summary.
SUMMARIES = {
    "task_state": "summaries/task_state",
    "brief": "summaries/brief",
    "decision_log": "summaries/decision_log",
    "code_delta": "summaries/code_delta",
    "step_ledger": "summaries/step_ledger",
    "requirements_ledger": "summaries/requirements_ledger",
}
# That, and the prompt for a conversation that is put into the archive.
_ASKED = SUMMARIES | {"archive": "archive/summary"}
# The prompt for each level of a checkpoint.
CHECKPOINTS = {1: "checkpoints/compact", 2: "checkpoints/moderate", 3: "checkpoints/detailed"}
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


def session_request(handoff: JsonObject, *, feedback: str = "") -> Request:
    """Return the request to turn `handoff` into session JSON; `feedback` says why the last answer was rejected."""
    contents = prompts.render(
        "handoff",
        items=prompts.quoted(map(item_line, handoff["items"])),
        protected=prompts.quoted(handoff.get("protected", [])),
        signals=prompts.quoted(map(_signal_line, handoff.get("signals", []))),
    )
    return Request(
        task="session",
        data=handoff,
        prompt=f"{instruction(handoff)['text']}\n{contents}",
        schema=json.loads(resource(SCHEMA).read_text(encoding="utf-8")),
        target_tokens=handoff["target_tokens"],
        feedback=feedback,
    )


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
        "summaries/removed",
        facts=prompts.quoted({field: entries} for field, entries in task["facts"].items() if entries),
        previous=prompts.quoted([{"text": task["previous"]}] if task["previous"] else []),
        messages=prompts.quoted(
            {field: value for field, value in said.items() if value != ""} for said in task["said"]
        ),
    )
    asked = {"name": name, "sha256": prompts.load(name).sha256, "text": text}
    return Request(
        task="summary",
        data={**task, "task": "summary", "prompt": asked},
        prompt=f"{text}\n{removed}",
        schema={},
        target_tokens=task["max_tokens"],
        feedback=feedback,
    )


def whole_prompt(request: Request) -> str:
    """Return the prompt of `request`, with the correction of its last answer if there is one, as text that can be sent."""
    text = request.prompt
    if request.feedback:
        text += "\n" + prompts.render("correction", feedback=request.feedback)
    # A lone surrogate cannot be sent; its escape in the data means the same.
    return text.encode("utf-8", "backslashreplace").decode()


def merge_prompt(handoff: JsonObject, sessions: list[JsonObject]) -> str:
    """Return the prompt that merges the sessions of the parts of `handoff` into one."""
    return prompts.render(
        "merge",
        **copied_fields(handoff),
        protected=prompts.quoted(handoff.get("protected", [])),
        sessions=prompts.quoted(sessions),
    )


def copied_fields(handoff: JsonObject) -> dict[str, str]:
    """Return the fields that every answer copies from its hand-off, as text for a prompt."""
    return {
        "session_id": handoff["compression_id"],
        "compressed_at": handoff["prepared_at"],
        "phase": str(handoff["phase"]),
        "target_tokens": str(handoff["target_tokens"]),
    }


def strict_schema(schema: JsonObject) -> JsonObject:
    """Return `schema` in the form that structured output takes: closed, everything required, no bounds.

    >>> strict_schema({"type": ["integer", "null"], "minimum": 1})
    {'type': 'integer'}
    """
    kept: dict[str, Any] = {word: schema[word] for word in _STRICT_KEYWORDS if word in schema}
    if isinstance(kept.get("type"), list):
        kept["type"] = kept["type"][0]
    if "properties" in kept:
        kept["properties"] = {name: strict_schema(inner) for name, inner in kept["properties"].items()}
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    if "items" in kept:
        kept["items"] = strict_schema(kept["items"])
    return kept


def item_line(item: JsonObject) -> JsonObject:
    """Return the fields of `item` that an architect is shown."""
    known = item.get("metadata", {})
    line = {
        "id": item["id"],
        "type": item["type"],
        "relevance_score": known.get("relevance_score", 0.5),
        "content": item["content"],
    }
    return line | {"injected": True} if known.get("injected") else line


def _signal_line(signal: JsonObject) -> JsonObject:
    return {
        "type": signal["type"],
        "strength": signal.get("effective_strength", signal["strength"]),
        "context": signal["metadata"].get("context", ""),
    }
