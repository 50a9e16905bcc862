"""Is the needed memory injected into a prompt, and nothing else?

Real sessions of Claude Code, by project. Prompts of a later session are matched against the memory of the earlier
sessions of the same project; and all prompts against the memories of other projects, where any match is wrong. The data is not part of the repository: it is looked for beside it (`shared/data/claude_code`).

Usage: python benchmarks/prompt_recall.py
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import report

from aether.memory.capture.extract import capture
from aether.memory.layers import Record
from aether.messages.read import read_records
from aether.search.prompt_match import match_prompt, parse_prompt
from aether.text.cleaning import clean

DATA = Path(__file__).parents[2] / "shared" / "data" / "claude_code"
# Those with several sessions; every other file is a project of its own.
PROJECTS = ("cli", "entire-graph", "git-sync")
# A memory of fewer notes than this has nothing to be beside the point with.
LEAST_NOTES = 8


class Session(NamedTuple):
    began: str
    prompts: list[str]
    notes: list[Record]


def session(path: Path) -> Session:
    records = list(read_records(path))
    said = [one for one in records if one.kind == "user" and not one.agent and clean(one.text)]
    notes = [
        Record(
            f"{path.name}/{nth}",
            "working_memory",
            one["type"],
            one["metadata"].get("timestamp") or "",
            one["content"],
            1,
            {"metadata": one["metadata"]},
        )
        for nth, one in enumerate(capture(records, file=path.name))
    ]
    return Session(said[0].time if said else "", [clean(one.text) for one in said], notes)


def project(path: Path) -> str:
    name = path.stem.partition("_")[0]
    return name if name in PROJECTS else path.stem


def told(prompt: str, memory: list[Record]) -> bool:
    asked = parse_prompt(prompt)
    return bool(asked and match_prompt(asked, memory))


def main() -> None:
    projects: dict[str, list[Session]] = defaultdict(list)
    for path in sorted(DATA.glob("*.jsonl")):
        projects[project(path)].append(session(path))
    same, other = [], []
    for name, sessions in projects.items():
        memory: list[Record] = []
        for one in sorted(sessions):
            same += [told(prompt, memory) for prompt in one.prompts if memory]
            memory += one.notes
        if len(memory) >= LEAST_NOTES:
            other += [
                told(prompt, memory)
                for rival, found in projects.items()
                if rival != name
                for each in found
                for prompt in each.prompts
            ]
    assert len(same) > 200, "the real sessions are not there"
    assert not any(other), "a prompt was told of another project"
    report.write(__file__, {
        "same_project": {"prompts": len(same), "told": sum(same)},
        "other_projects": {"prompts": len(other), "told": sum(other)},
    })  # fmt: skip


if __name__ == "__main__":
    main()
