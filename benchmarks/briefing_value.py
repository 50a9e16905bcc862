"""Does a session that was compacted still know its requests, its changes and its open errors?

Real sessions of Claude Code are played through the hooks until the host compacted them. At each compaction, the
facts since the one before are read from the payloads themselves: sentences of the person that demand something,
files edited, commands that failed and never worked again. Found are the facts that the instructions
for the summariser or the briefing of the compacted session contain. Then the compaction is drained, and a new session starts. The data
is not part of the repository: it is looked for beside it (`shared/data/claude_code`); without it nothing is measured.

Usage: python benchmarks/briefing_value.py
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import report

sys.path.insert(0, str(Path(__file__).parents[1]))

import aether
from aether.api.compress import ingest_summary
from aether.api.drain import drain
from aether.api.home import counter_of, now, read
from aether.hosts.claude_code.event import event_of
from aether.hosts.hook import entry_of
from aether.memory.briefing.briefing import MOST_CHARS, STEERING_CHARS, briefing, steering
from aether.messages.shell import command_signature, is_notable, only_reads
from aether.store import spool
from aether.store.keys import Config
from aether.text.cleaning import clean
from tests.hook_player import payloads

DATA = Path(__file__).parents[2] / "shared" / "data" / "claude_code"
BUDGET = Config().claude_brief_tokens
LEAST_COMPACTIONS = 8
# Compactions with fewer edits and failures than these have nothing to lose.
LEAST_WORK = 3
EDITS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
# A sentence that demands something for longer than this moment, in words as plain as a reader would look for.
DEMANDS = re.compile(r"\b(?:always|never|must not|must|prefer)\b|^(?:do not|don't) \w", re.IGNORECASE)
SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]?")
SENTENCE_WORDS = (4, 40)
# Of the words of a demand, that many must be in the briefing.
SAID_AT = 0.8


class Stretch(NamedTuple):
    """What happened between two compactions."""

    demands: list[str]
    edited: dict[str, int]
    """Files with how often they were edited."""
    broken: dict[str, None]
    """Commands that failed and did not work since."""


def stretch(played: list[dict[str, Any]], root: str) -> Stretch:
    found = Stretch([], {}, {})
    for payload in played:
        event, given = payload["hook_event_name"], payload.get("tool_input") or {}
        if event == "UserPromptSubmit":
            found.demands.extend(demands(payload["prompt"]))
        if event == "PostToolUse" and payload["tool_name"] in EDITS:
            path = str(given.get("file_path") or given.get("notebook_path")).removeprefix(f"{root}/")
            if not path.startswith(("/tmp/", "/private/tmp/", "/var/")):
                found.edited[path] = found.edited.get(path, 0) + 1
        command = str(given.get("command", ""))
        if payload.get("tool_name") == "Bash" and is_notable(command) and not only_reads(command):
            if event == "PostToolUseFailure":
                found.broken[command_signature(command)] = None
            elif event == "PostToolUse":
                found.broken.pop(command_signature(command), None)
    return found


def demands(prompt: str) -> Iterator[str]:
    least, most = SENTENCE_WORDS
    for sentence in SENTENCE.findall(clean(prompt)):
        said = sentence.strip(" -*•")
        if least <= len(said.split()) <= most and DEMANDS.search(said) and not said.endswith("?"):
            yield said


def compactions(path: Path, place: Path, root: str) -> Iterator[tuple[Path, Stretch]]:
    """Yield the home and the stretch before each compaction; it is drained when the next one is requested."""
    home = aether.init(place / path.stem / ".aether")
    played: list[dict[str, Any]] = []
    for payload in payloads(path):
        played.append(payload)
        entry = entry_of(event_of(payload))
        if entry:
            spool.put(str(home), entry)
        if payload["hook_event_name"] == "PreCompact":
            assert not drain(home).left
            yield home, stretch(played, root)
            assert ingest_summary(home, "Summary.", session=payload["session_id"]) is not None
            played = []


def told(home: Path, occasion: str, root: str) -> str:
    documents = read(home).documents
    count = counter_of(documents["memory"])
    return briefing(documents, occasion=occasion, now=now(), count=count, budget=BUDGET, root=root)


def is_said(demand: str, text: str) -> bool:
    words = set(re.findall(r"\w+", demand.casefold()))
    return any(
        len(words & set(re.findall(r"\w+", line.casefold()))) >= SAID_AT * len(words)
        for line in text.splitlines()
    )


def is_named(path: str, text: str) -> bool:
    """Return whether `text` names `path`, perhaps from a directory that it names once."""
    below = re.search(r"\(below ([^),]+)", text)
    return path in text or (
        below is not None and path.startswith(below[1]) and path.removeprefix(below[1]) in text
    )


def shares(before: Stretch, text: str) -> dict[str, list[bool]]:
    foremost = sorted(before.edited, key=lambda path: -before.edited[path])[:5]
    return {
        "demands": [is_said(demand, text) for demand in before.demands],
        "edited_files": [is_named(path, text) for path in before.edited],
        "five_most_edited_files": [is_named(path, text) for path in foremost],
        "open_errors": [command in text for command in before.broken],
    }


def share(found: list[bool]) -> dict[str, Any]:
    return {
        "of": len(found),
        "told": sum(found),
        "share": round(sum(found) / len(found), 3) if found else None,
    }


def measured(place: Path) -> dict[str, Any]:
    compacted: dict[str, list[bool]] = {}
    anew: dict[str, list[bool]] = {}
    sizes: dict[str, list[int]] = {"startup": [], "compact": [], "startup after compaction": []}
    steered: list[int] = []
    met = 0
    for path in sorted(DATA.glob("*.jsonl")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "compact_boundary" not in text and '"isCompactSummary":true' not in text:
            continue
        root = (re.search(r'"cwd":"([^"]+)"', text) or ["", ""])[1]
        for home, before in compactions(path, place, root):
            if len(before.edited) + len(before.broken) < LEAST_WORK:
                continue
            met += 1
            documents = read(home).documents
            count = counter_of(documents["memory"])
            plain, brief = steering(documents, now=now(), root=root), told(home, "compact", root)
            assert len(plain) < STEERING_CHARS
            assert len(json.dumps(brief)) <= MOST_CHARS
            assert count(brief) <= BUDGET
            for name, found in shares(before, f"{plain}\n{brief}").items():
                compacted.setdefault(name, []).extend(found)
            steered.append(len(plain))
            sizes["compact"].append(count(brief))
            sizes["startup"].append(count(told(home, "startup", root)))
            # The briefing of a new session after the compaction is drained.
            later = place / f"later-{met}"
            shutil.copytree(home.parent, later)
            assert ingest_summary(later / ".aether", "Summary.", session="later") is not None
            new = told(later / ".aether", "startup", root)
            sizes["startup after compaction"].append(count(new))
            for name, found in shares(before, new).items():
                anew.setdefault(name, []).extend(found)
            shutil.rmtree(later)
    assert met >= LEAST_COMPACTIONS, f"only {met} compactions: the real sessions are not there"
    assert all(compacted.values()), "there was nothing to lose"
    return {
        "compactions": met,
        "told_of_a_compaction": {name: share(found) for name, found in compacted.items()},
        "told_to_a_new_session_after_it": {name: share(found) for name, found in anew.items()},
        "tokens": {
            name: {"median": statistics.median(each), "most": max(each)} for name, each in sizes.items()
        },
        "startup_over_compact": round(statistics.median(sizes["startup"]) / statistics.median(sizes["compact"]), 2),
        "steering_characters": {"median": statistics.median(steered), "most": max(steered)},
    }  # fmt: skip


def main() -> None:
    if not DATA.is_dir():
        print(f"skipped: the real sessions are not at {DATA}")
        return
    place = Path(tempfile.mkdtemp(prefix="aether-briefing-"))
    try:
        found = measured(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    report.write(__file__, {"budget_tokens": BUDGET, **found})


if __name__ == "__main__":
    main()
