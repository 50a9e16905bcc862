"""How often the cues of `aether.text` that decide what is injected find a rule or decision that a reader found too.

Real transcripts with gold notes, made by reading. Each sentence of a person with a cue of a rule, and each reply with a cue
of a decision, is a hit; it is right if it says a rule in force, or a decision, of the notes, in its words or in those that
explain it ("A." says nothing by itself). The recall of a cue is its share of those notes. The data is not part of the
repository: it is looked for beside it (`shared/data`), and without it nothing is measured. With `--write`, the table goes to docs/judgement.md.

Usage: python benchmarks/judgement.py [--write] [GOLD_DIR...]
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from aether.memory.capture import extract
from aether.messages.read import read_records
from aether.text import choices, classify
from aether.text.words import stems

DATA = Path(__file__).parents[2] / "shared" / "data"
PAGE = Path(__file__).parents[1] / "docs" / "judgement.md"
START, END = "<!-- cues: generated -->\n", "<!-- end -->"
# Share of the words of the shorter text.
SAID = 0.5
OTHER_RULES = "rule: never, always, must, prefer"
TAKEN = ("choice: an entry of a list", "choice: yes to a recommendation", "choice: yes to a question")
CUES = (
    *(f"rule: {name}" for name in classify.WISHES), OTHER_RULES,
    *(f"choice: {name}" for name in choices.OWN_CHOICES), *TAKEN,
)  # fmt: skip


class Hit(NamedTuple):
    """A statement with a cue."""

    cue: str
    said: str


def says(statement: str, note: str) -> bool:
    """Return whether a statement and a note share most of their words."""
    mine, theirs = {*stems(statement)}, {*stems(note)}
    return len(mine & theirs) >= max(1, SAID * min(len(mine), len(theirs)))


def replies(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the messages of persons in a transcript, each with the agent's message before it."""
    found: list[tuple[str, str]] = []
    noted = extract.words_of_person

    def seen(text: str, before: str, at: Any) -> Any:
        found.append((text, before))
        return noted(text, before, at)

    extract.words_of_person = seen
    try:
        for _ in extract.capture(read_records(path)):
            pass
    finally:
        extract.words_of_person = noted
    yield from found


def hits_in(reply: str, before: str) -> Iterator[Hit]:
    """Yield the statements with a cue in a person's `reply`."""
    own = classify.own_words(reply)
    for found in classify.rules(classify.prose(own), own, classify.headed_rules(own)):
        # A rule of several sentences may have a cue in each.
        wishes = map(classify.wish_of, (found.text, *classify.prose(found.text)))
        for name in dict.fromkeys(filter(None, wishes)) or [""]:
            yield Hit(f"rule: {name}" if name else OTHER_RULES, found.text)
    if choice := choices.settled(reply, before):
        if choice.own:
            yield Hit(f"choice: {choices.own_choice(choice.text)}", choice.text)
        else:
            of_list = choices.proposal_of(before, back=True) != choice.text
            question = choice.text.rstrip("*_ ").endswith("?")
            yield Hit(
                TAKEN[0 if of_list and not question else 2 if question else 1], f"{choice.text} {reply}"
            )


def main(directories: list[Path], *, write: bool) -> None:
    """Print the hits, precision and recall of each cue."""
    known: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(path for directory in directories for path in directory.glob("*.gold.json")):
        gold = json.loads(path.read_text(encoding="utf-8"))
        entries = [each for cut in gold["cuts"] for each in cut["rules_in_force"] + cut["current_decisions"]]
        known[Path(gold["file"]).name] = [
            *dict.fromkeys((re.sub(r"[“”]", "", each["quote"]), each.get("note") or "") for each in entries)
        ]
    counted = {cue: [0, 0, 0, 0] for cue in CUES}
    for path in sorted(DATA.glob("c*/*.jsonl")):
        notes = known.get(path.name)
        for hit in (hit for pair in replies(path) for hit in hits_in(*pair)):
            row = counted[hit.cue]
            if notes is None:
                row[3] += 1
                continue
            matched = [texts for texts in notes if any(text and says(hit.said, text) for text in texts)]
            row[0] += 1
            row[1] += bool(matched)
            row[2] += len(matched)
    total = sum(map(len, known.values()))
    if not total:
        print(f"nothing measured: no notes in {', '.join(map(str, directories))}")
        return
    lines = ["| cue | hits | right | precision | recall | hits without notes |", "|---|---|---|---|---|---|"]
    for cue, (hits, right, found, others) in counted.items():
        precision = f"{right / hits:.2f}" if hits else "-"
        lines.append(f"| {cue} | {hits} | {right} | {precision} | {found / total:.2f} | {others} |")
    table = "\n".join(lines) + "\n"
    print(table, end="")
    if write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.split(START)[0], page.split(END)[1]
        PAGE.write_text(f"{before}{START}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    given = [Path(each) for each in sys.argv[1:] if not each.startswith("-")]
    main([DATA / "gold", *given], write="--write" in sys.argv)
