"""How much of the evidence for a question does search find?

Data: LoCoMo conversations in ../shared/data/locomo. Every utterance is one item ("Speaker: text", with the
caption of a shared picture), its session is the phase and the time. For each question of categories 1 to 4,
recall@k is the share of its evidence utterances among the first k hits of `aether.search.rank.search`
with its default settings. Three conversations were used to choose constants, three were held out.

Usage: python benchmarks/search_recall.py
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import report

from aether import clock
from aether.search.rank import search
from aether.text.words import stems

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "locomo" / "locomo_dev6.json"
CATEGORIES = (1, 2, 3, 4)
DEVELOPED_ON = 3
NOW = datetime(2024, 6, 1, tzinfo=UTC)


def items_of(conversation: dict, *, bare: bool = False) -> list[dict]:
    """Return the utterances as items; `bare` leaves out session and time, as in notes added at once."""
    items = []
    for number in range(1, 100):
        said = conversation.get(f"session_{number}") or []
        if said:
            written = f"{conversation[f'session_{number}_date_time']} +0000"
            at = NOW if bare else datetime.strptime(written, "%I:%M %p on %d %B, %Y %z")
        for utterance in said:
            picture = f" [picture: {utterance['blip_caption']}]" if utterance.get("blip_caption") else ""
            metadata = {"timestamp": clock.stamp(at)}
            items.append(
                {
                    "id": utterance["dia_id"],
                    "type": "user_input",
                    "content": f"{utterance['speaker']}: {utterance['text']}{picture}",
                    "metadata": metadata if bare else metadata | {"phase": number},
                }
            )
    return items


def questions_of(sample: dict, ids: set[str]) -> list[tuple[str, set[str], int]]:
    found = []
    for entry in sample["qa"]:
        names = [
            f"D{int(session)}:{int(line)}"
            for text in entry["evidence"]
            for session, line in re.findall(r"D(\d+):(\d+)", text)
        ]
        evidence = set(names) & ids
        if entry["category"] in CATEGORIES and evidence:
            found.append((entry["question"], evidence, entry["category"]))
    return found


def by_substrings(items: list[dict], question: str) -> list[str]:
    wanted = set(re.findall(r"\w+", question.lower()))
    scored = [(sum(word in item["content"].lower() for word in wanted), item["id"]) for item in items]
    return [name for score, name in sorted(scored, key=lambda pair: -pair[0]) if score]


def plain_bm25(items: list[dict]) -> object:
    said = [Counter(stems(item["content"])) for item in items]
    lengths = [sum(counts.values()) for counts in said]
    average = sum(lengths) / len(lengths)
    held = Counter(stem for counts in said for stem in counts)

    def ranked(items: list[dict], question: str) -> list[str]:
        scored = []
        for item, counts, length in zip(items, said, lengths, strict=True):
            score = 0.0
            for stem in dict.fromkeys(stems(question)):
                if counts[stem]:
                    idf = math.log(1 + (len(items) - held[stem] + 0.5) / (held[stem] + 0.5))
                    norm = 1.2 * (0.25 + 0.75 * length / average)
                    score += idf * counts[stem] * 2.2 / (counts[stem] + norm)
            scored.append((score, item["id"]))
        return [name for score, name in sorted(scored, key=lambda pair: -pair[0]) if score]

    return ranked


def ours(items: list[dict], question: str) -> list[str]:
    memory = {"working_memory": {"items": items}}
    return [hit["id"] for hit in search(memory, question, now=NOW)]


def recall(samples: list[dict], method: object, *, bare: bool = False) -> dict:
    totals: dict[str, list[float]] = {"recall@5": [], "recall@10": []}
    by_category: dict[int, list[float]] = {category: [] for category in CATEGORIES}
    for sample in samples:
        items = items_of(sample["conversation"], bare=bare)
        assert len(items) > 300
        ranked = plain_bm25(items) if method is plain_bm25 else method
        for question, evidence, category in questions_of(sample, {item["id"] for item in items}):
            found = ranked(items, question)
            assert len(found) == len(set(found))
            for name, k in (("recall@5", 5), ("recall@10", 10)):
                totals[name].append(len(evidence & set(found[:k])) / len(evidence))
            by_category[category].append(totals["recall@10"][-1])
    return {
        "questions": len(totals["recall@5"]),
        **{name: round(sum(values) / len(values), 4) for name, values in totals.items()},
        "recall@10 by category": {
            str(category): round(sum(values) / len(values), 3) for category, values in by_category.items()
        },
    }


def main() -> None:
    samples = json.loads(DATA.read_text(encoding="utf-8"))
    assert len(samples) == 2 * DEVELOPED_ON
    halves = {"developed on": samples[:DEVELOPED_ON], "held out": samples[DEVELOPED_ON:]}
    methods = {
        "substring counting": (by_substrings, False),
        "plain BM25": (plain_bm25, False),
        "aether": (ours, False),
        "aether, without session and time": (ours, True),
    }
    table = {}
    for half, some in halves.items():
        for name, (method, bare) in methods.items():
            table[f"{half}: {name}"] = one = recall(some, method, bare=bare)
            print(
                f"{half:13} {name:34} R@5 {one['recall@5']:.3f}  R@10 {one['recall@10']:.3f}  {one['questions']} questions"
            )
        assert table[f"{half}: aether"]["recall@10"] > table[f"{half}: plain BM25"]["recall@10"]
    report.write(__file__, {"results": table})


if __name__ == "__main__":
    main()
