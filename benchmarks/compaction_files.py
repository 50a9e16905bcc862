"""Are the files that were edited before a compaction named after it?

Data: the real compactions of Claude Code transcripts in ../shared/data/claude_code, with the summaries that its model
wrote, as listed in _compaction_index.json. For each: the files that calls of its editing tools name in the segment
before the boundary, and how many of them the model's summary names (by file name: it never gives a whole path), against
our summary of the same messages, facts and extractive prose together, in as many tokens as the model's has. The model's
summary of the segment before is not among these messages. Compactions whose transcript is not in the folder are counted and left out.

Usage: python benchmarks/compaction_files.py
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import NamedTuple

import report

from aether.architects import backend
from aether.architects.base import Settings
from aether.architects.request import summary_request
from aether.conversation.facts import FACTS_SHARE, facts_in, removed_texts
from aether.conversation.progress import Conversation
from aether.conversation.readings import Reading
from aether.conversation.room import Sizes, fit_facts
from aether.conversation.shapes import Summary, SummaryTask, task_as_json
from aether.conversation.summary import parsed, rendered
from aether.messages.transcripts import load_conversation
from aether.tokens.estimate import estimate

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "claude_code"
EDITORS = ("Edit", "Write", "MultiEdit", "NotebookEdit")


class Compaction(NamedTuple):
    """One real compaction: the messages before it and what the model made of them."""

    name: str
    lines: list[str]
    """Of the transcript."""
    raws: list[dict]
    """The messages in them, one a line: neither of sub-agents, nor of the program in the user's place."""
    summary: str


def compactions() -> tuple[list[Compaction], int]:
    """Return the compactions whose transcripts are here, and how many are not."""
    if not DATA.is_dir():
        raise SystemExit(f"Nothing is measured: the transcripts are not in {DATA}.")
    index = json.loads((DATA / "_compaction_index.json").read_text(encoding="utf-8"))
    listed = [entry for entry in index["compactions"] if entry.get("segment_starts_line")]
    found = []
    for entry in listed:
        path = DATA / Path(entry["file"]).name
        if path.exists():
            # Not splitlines(): the JSON has characters that it takes for line ends.
            lines = path.read_text(encoding="utf-8").split("\n")
            segment = lines[entry["segment_starts_line"] - 1 : entry["boundary_line"] - 1]
            segment = [
                line for line in segment if line.strip() and not json.loads(line).get("isCompactSummary")
            ]
            summary = json.loads(lines[entry["summary_line"] - 1])["message"]["content"]
            text = (
                summary if isinstance(summary, str) else "\n".join(block.get("text", "") for block in summary)
            )
            name = f"{path.stem}:{entry['boundary_line']}"
            found.append(Compaction(name, segment, messages_in(segment), text))
    return found, len(listed) - len(found)


def messages_in(lines: list[str]) -> list[dict]:
    spoken = [
        record
        for record in map(json.loads, lines)
        if record.get("type") in {"user", "assistant"}
        and not record.get("isSidechain")
        and not record.get("isMeta")
    ]
    return [{"role": record["message"]["role"], "content": record["message"]["content"]} for record in spoken]


def edited(raws: list[dict]) -> list[str]:
    """Return the paths in the calls of editing tools, each once."""
    blocks = [block for raw in raws if isinstance(raw["content"], list) for block in raw["content"]]
    calls = [
        block["input"] for block in blocks if block.get("type") == "tool_use" and block["name"] in EDITORS
    ]
    paths = (call.get("file_path") or call.get("notebook_path") for call in calls)
    return list(dict.fromkeys(path for path in paths if path))


def summarised(lines: list[str], most: int) -> str:
    """Return our summary of the messages in lines of a transcript, in at most so many tokens."""
    messages = load_conversation(io.BytesIO("\n".join(lines).encode())).messages
    places = range(len(messages))
    facts, _ = fit_facts(
        facts_in(Conversation([Reading(message) for message in messages]), places),
        sizes=Sizes(estimate),
        most=int(most * FACTS_SHARE),
    )
    # Lines are joined again within the message, which costs a token or two.
    room = most - estimate(rendered(Summary(1, facts, "Done."))) - 4
    task = SummaryTask("task_state", 1, removed_texts(messages, places), "", facts, room)
    asked = summary_request(task_as_json(task))
    prose = backend("extractive")[0].complete(asked, settings=Settings(), count=estimate).text
    return rendered(Summary(1, facts, prose))


def named(paths: list[str], text: str) -> int:
    return sum(path.rpartition("/")[2] in text for path in paths)


def main() -> None:
    found, absent = compactions()
    rows = []
    for each in found:
        paths = edited(each.raws)
        budget = estimate(each.summary)
        ours = summarised(each.lines, budget)
        read_back = parsed(ours)
        listed = {fact.path for fact in read_back.facts.files} if read_back else set()
        rows.append(
            {
                "compaction": each.name,
                "edited": len(paths),
                "model_names": named(paths, each.summary),
                "we_name": named(paths, ours),
                "we_name_with_path": sum(path in listed for path in paths),
                "model_tokens": budget,
                "our_tokens": estimate(ours),
            }
        )
        assert rows[-1]["our_tokens"] <= budget, "the same room for both"
    sums = {
        key: sum(row[key] for row in rows)
        for key in ("edited", "model_names", "we_name", "we_name_with_path")
    }
    assert sums["edited"] >= 50, "the real data is here"
    assert any(row["edited"] == 7 and row["model_names"] == 0 for row in rows), "counted as the index implies"
    report.write(__file__, {"compactions": len(rows), "transcripts_absent": absent, **sums, "each": rows})


if __name__ == "__main__":
    main()
