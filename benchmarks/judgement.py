"""How often the wishes of `aether.text.classify` find a rule that a reader found too.

Real transcripts with gold notes, made by reading. Each sentence of a person that a wish matches is a hit; it is right if it
says a rule in force, or a decision, of the notes. The data is not part of the repository: it is looked for beside it
(`shared/data/gold`), and without it nothing is measured.

Usage: python benchmarks/judgement.py
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from aether.messages.read import read_records
from aether.text.classify import WISHES, own_words, prose, rule, wish_of
from aether.text.cleaning import clean
from aether.text.words import stems

DATA = Path(__file__).parents[2] / "shared" / "data"
# Share of the words of the shorter text.
SAID = 0.5


def says(sentence: str, note: str) -> bool:
    """Return whether a sentence and a note share most of their words."""
    mine, theirs = {*stems(sentence)}, {*stems(note)}
    return len(mine & theirs) >= max(1, SAID * min(len(mine), len(theirs)))


def main() -> None:
    """Print the hits and the precision of each wish, and of all cues of rules together."""
    hits: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for path in sorted((DATA / "gold").glob("*.gold.json")):
        gold = json.loads(path.read_text(encoding="utf-8"))
        cuts = gold["cuts"]
        notes = [each["quote"] for cut in cuts for each in cut["rules_in_force"] + cut["current_decisions"]]
        found = next(DATA.glob(f"*/{gold['file']}"), None)
        for record in read_records(found) if found else ():
            if record.kind != "user" or record.agent:
                continue
            for sentence in prose(own_words(clean(record.text))):
                name = wish_of(sentence) or ("other cues" if rule(sentence) else "")
                if name:
                    hits[name] += 1
                    right[name] += any(says(sentence, re.sub(r"[“”]", "", note)) for note in notes)
    if not hits:
        print(f"nothing measured: no notes in {DATA / 'gold'}")
        return
    print("| cue | hits | right |\n|---|---|---|")
    for name in [*WISHES, "other cues"]:
        print(f"| {name} | {hits[name]} | {right[name]} |")


if __name__ == "__main__":
    main()
