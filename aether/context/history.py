"""History: the complete record of a conversation for people, as Markdown, and for programs, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from aether.context.shapes import LEVEL_NAMES, ExportFormat
from aether.messages import convert
from aether.messages.model import Message
from aether.types import JsonObject

FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)


def history_of(
    conversation_id: str, records: Sequence[JsonObject], tokens: Mapping[int, int], settings: JsonObject, *, compressions: int
) -> JsonObject:  # fmt: skip
    """Return the history in the records of a log: its messages in order, its checkpoints, and totals.

    `tokens` are those of each message, by number. Messages that compactions made are left out.
    """
    messages = [
        {"n": record["n"], "at": record["at"], "message": record["message"]}
        for record in records if "n" in record and record["n"] in tokens
    ]  # fmt: skip
    made = [
        _checkpoint(work, record["at"])
        for record in records if record.get("receipt", {}).get("kind") == "context"
        for work in record["receipt"]["works"]
    ]  # fmt: skip
    times = [record["at"] for record in records if "at" in record]
    return {
        "sessionId": conversation_id,
        "messages": messages,
        "checkpointRecords": made,
        "settings": settings,
        "metadata": {
            "startTime": times[0] if times else "", "lastUpdate": times[-1] if times else "",
            "totalMessages": len(messages), "totalTokens": sum(tokens[one["n"]] for one in messages),
            "compressionCount": compressions,
        },
    }  # fmt: skip


def _checkpoint(work: JsonObject, at: str) -> JsonObject:
    before, after = work["tokens_before"], work["tokens"]
    return {
        "id": work["id"], "timestamp": at, "messageRange": work["range"], "originalTokens": before,
        "compressedTokens": after, "compressionRatio": round(min(1.0, after / before), 4) if before else 1.0,
        "level": work["level"], "kind": work["kind"],
    }  # fmt: skip


def as_json(history: JsonObject) -> str:
    """Return the history as JSON, indented."""
    return json.dumps(history, ensure_ascii=False, indent=2)


def as_markdown(history: JsonObject) -> str:
    """Return the history as Markdown: information, the compressions, and the whole conversation."""
    about: dict[str, Any] = history["metadata"]
    lines = [
        f"# Session {history['sessionId']}", "", "## Session Information", "",
        f"- **Started:** {about['startTime']}", f"- **Last Updated:** {about['lastUpdate']}",
        f"- **Total Messages:** {about['totalMessages']}", f"- **Total Tokens:** {about['totalTokens']}",
        f"- **Compressions:** {about['compressionCount']}", "",
    ]  # fmt: skip
    if history["checkpointRecords"]:
        lines += ["## Compression History", ""]
    for made in history["checkpointRecords"]:
        first, last = made["messageRange"]
        lines += [
            f"### Checkpoint {made['id']}", "", f"- **Time:** {made['timestamp']}", f"- **Message Range:** {first}-{last}",
            f"- **Original Tokens:** {made['originalTokens']}", f"- **Compressed Tokens:** {made['compressedTokens']}",
            f"- **Compression Ratio:** {100 * made['compressionRatio']:.1f}%",
            f"- **Level:** {made['level']} ({LEVEL_NAMES[made['level']].capitalize()})", "",
        ]  # fmt: skip
    lines += ["## Conversation", ""]
    read = convert.read([one["message"] for one in history["messages"]])
    for one, message in zip(history["messages"], read, strict=True):
        lines += [f"### {message.role.capitalize()} ({one['at']})", "", _text(message), "", "---", ""]
    return "\n".join(lines)


def _text(message: Message) -> str:
    """Return all that a message says, with its calls and results in code blocks."""
    parts = []
    for block in message.blocks:
        if block.kind == "text":
            parts.append(block.text)
        elif block.kind in ("call", "result"):
            fence = "`" * max(3, 1 + max((len(run) for run in _runs(block.text)), default=0))
            parts.append(
                f"{block.kind.capitalize()} {block.tool}".rstrip() + f"\n\n{fence}\n{block.text}\n{fence}"
            )
        else:
            parts.append(f"[{block.kind}] {block.text}".rstrip())
    return "\n\n".join(parts)


def _runs(text: str) -> list[str]:
    return [run for run in "".join(char if char == "`" else " " for char in text).split() if len(run) >= 3]
