"""How much of real conversations is kept at each level of the archive, against three other ways to take as many characters?

Data: the sessions of coding agents, the tau-bench conversations and the gold notes in ../shared/data, which is not part
of the repository. Each conversation is given the form of each level without a model. Beside each form are selections of
sentences of the same length from the same conversation: its start, a random choice, and TextRank (PageRank over the
cosine of stems). Measured are the characters, the identifiers, numbers, decisions and questions of what people and models
said that are still there, and the questions of the gold notes that are still answered: `anywhere`, if the pattern of the
answer fits somewhere in the text, and `in ten lines`, if it fits in the ten lines that match the question best (BM25). Of
full conversations that finds less, because the output of tools hides what was said.

Usage: python benchmarks/archive_levels.py
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import log, sqrt
from pathlib import Path
from typing import NamedTuple

import report

from aether.conversation.archive_levels import Facts, candidates, facts_in, facts_of, form, spoken, text_of
from aether.conversation.archived import Conversation, Level, read_conversation, said
from aether.errors import AetherError
from aether.messages.transcripts import load_conversation
from aether.text.words import sentences, stems

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LEVELS: tuple[Level, ...] = ("key_points", "summary")
SEED, ROUNDS, DAMPING = 7, 25, 0.85
LINES = 10
MOST_RANKED = 4_000


class Asked(NamedTuple):
    question: str
    pattern: re.Pattern[str]


def conversations() -> Iterable[tuple[str, str, Conversation]]:
    """Yield the kind, the name and the conversation of each file."""
    for path in sorted((DATA / "claude_code").glob("*.jsonl")) + sorted((DATA / "codex").glob("*.jsonl")):
        yield from ((path.parent.name, name, one) for name, one in of_file(path))
    for path in sorted((DATA / "trajectories").glob("taubench*")):
        yield from (("tau-bench", name, one) for name, one in of_file(path))


def of_file(path: Path) -> Iterable[tuple[str, Conversation]]:
    nth, others = 0, 1
    while nth < others:
        try:
            found = load_conversation(path, nth=nth)
        except AetherError:
            return
        others, name = found.others + 1, f"{path.stem}#{nth}"
        yield name, read_conversation({"id": name, "messages": [one.raw for one in found.messages]})[0]
        nth += 1


def head(lines: Sequence[str], _most: int) -> list[int]:
    return list(range(len(lines)))


def chance(lines: Sequence[str], _most: int) -> list[int]:
    places = list(range(len(lines)))
    random.Random(SEED).shuffle(places)
    return places


def textrank(lines: Sequence[str], _most: int) -> list[int]:
    """Return the places of `lines`, the best first; the graph has an edge for each pair that shares a stem."""
    bags = [Counter(stems(line)) for line in lines]
    norms = [sqrt(sum(times * times for times in bag.values())) or 1.0 for bag in bags]
    unit = [
        {word: times / norm for word, times in bag.items()} for bag, norm in zip(bags, norms, strict=True)
    ]

    def spread(ranks: Sequence[float]) -> list[float]:
        # The product with the matrix of cosines, by way of the words; without the cosine of a line with itself.
        words: Counter[str] = Counter()
        for rank, bag in zip(ranks, unit, strict=True):
            for word, share in bag.items():
                words[word] += rank * share
        return [
            sum(words[word] * share for word, share in bag.items()) - rank * (1.0 if bag else 0.0)
            for rank, bag in zip(ranks, unit, strict=True)
        ]

    degrees = [max(degree, 1e-9) for degree in spread([1.0] * len(lines))]
    ranks = [1.0 / len(lines)] * len(lines)
    for _ in range(ROUNDS):
        arrived = spread([rank / degree for rank, degree in zip(ranks, degrees, strict=True)])
        ranks = [(1 - DAMPING) / len(lines) + DAMPING * one for one in arrived]
    return sorted(range(len(lines)), key=lambda at: -ranks[at])


WAYS: dict[str, Callable[[Sequence[str], int], list[int]]] = {
    "head": head,
    "random": chance,
    "TextRank": textrank,
}


def cut(lines: Sequence[str], ranking: Sequence[int], most: int) -> str:
    """Return as much of a ranking as fits into `most` characters, in the order of the lines."""
    kept: list[int] = []
    for at in ranking:
        if len(lines[at]) + 1 <= most:
            kept.append(at)
            most -= len(lines[at]) + 1
    return "\n".join(lines[at] for at in sorted(kept))


def questions() -> dict[str, list[Asked]]:
    found = {}
    for path in sorted((DATA / "gold").glob("*.gold.json")):
        notes = json.loads(path.read_text(encoding="utf-8"))
        found[Path(notes["file"]).stem] = [
            Asked(one["question"], re.compile(one["answer_regex"], re.IGNORECASE))
            for one in notes["questions"]
        ]
    return found


def best_lines(text: str, question: str) -> str:
    """Return the lines of `text` that match a question best, by BM25."""
    lines = [(line, Counter(stems(line))) for line in sentences(text)]
    number = Counter(word for _, bag in lines for word in bag)
    mean = sum(bag.total() for _, bag in lines) / max(1, len(lines)) or 1

    def worth(bag: Counter[str]) -> float:
        return sum(
            log(1 + (len(lines) - number[word] + 0.5) / (number[word] + 0.5))
            * bag[word] * 2.2 / (bag[word] + 1.2 * (0.25 + 0.75 * bag.total() / mean))
            for word in set(stems(question)) if bag[word]
        )  # fmt: skip

    ranked = sorted(range(len(lines)), key=lambda at: (-worth(lines[at][1]), at))[:LINES]
    return "\n".join(lines[at][0] for at in sorted(ranked))


class Tally:
    """The sums for one way at one level."""

    def __init__(self) -> None:
        self.number: Counter[str] = Counter()

    def add(self, text: str, facts: Facts, asked: Sequence[Asked]) -> None:
        present = facts_in(facts, text)
        for name in Facts._fields:
            self.number[name] += present[name]
            self.number[f"{name}.of"] += len(getattr(facts, name))
        self.number["chars"] += len(text)
        for one in asked:
            self.number["anywhere"] += bool(one.pattern.search(text))
            self.number["in ten lines"] += bool(one.pattern.search(best_lines(text, one.question)))

    def result(self, *, chars: int, speech: int) -> dict:
        shares = {name: self.number[name] / max(1, self.number[f"{name}.of"]) for name in Facts._fields}
        return {
            "of_all_text": round(self.number["chars"] / chars, 4),
            "of_speech": round(self.number["chars"] / speech, 4),
            **{name: round(share, 3) for name, share in shares.items()},
        }


def run(only: str = "") -> dict:
    tallies: dict[tuple[str, str, str], Tally] = {}
    sizes: Counter[str] = Counter()
    full: Counter[str] = Counter()
    gold = questions()
    for kind, name, conversation in conversations():
        asked = gold.get(name.rpartition("#")[0], []) if name.endswith("#0") else []
        if only and not (only == "gold" and asked) and only not in name:
            continue
        texts = [one.text for one in said(conversation)]
        whole = "\n".join(texts)
        facts = facts_of(spoken(conversation))
        sizes[f"{kind}.conversations"] += 1
        sizes[f"{kind}.chars"] += sum(map(len, texts))
        sizes[f"{kind}.speech"] += sum(len(one.text) for one in spoken(conversation))
        sizes[f"{kind}.bytes.full"] += len(
            json.dumps(form(conversation, "full"), ensure_ascii=False).encode()
        )
        for one in asked:
            full["questions"] += 1
            full["anywhere"] += bool(one.pattern.search(whole))
            full["in ten lines"] += bool(one.pattern.search(best_lines(whole, one.question)))
        lines = [one.text for one in candidates(conversation)]
        rankings = {way: rank(lines, 0) for way, rank in WAYS.items()} if lines else {}
        for level in LEVELS:
            content = form(conversation, level)
            text = text_of(content)
            sizes[f"{kind}.bytes.{level}"] += len(json.dumps(content, ensure_ascii=False).encode())
            rows = {
                "aether": text,
                **{way: cut(lines, ranking, len(text)) for way, ranking in rankings.items()},
            }
            for way, kept in rows.items():
                tallies.setdefault((kind, level, way), Tally()).add(kept, facts, asked)
        content = form(conversation, "metadata")
        sizes[f"{kind}.bytes.metadata"] += len(json.dumps(content, ensure_ascii=False).encode())
    return results(tallies, sizes, full)


def results(tallies: dict[tuple[str, str, str], Tally], sizes: Counter[str], full: Counter[str]) -> dict:
    found: dict = {"answered_at_full": dict(full), "answered_of_those_at_full": {}, "kinds": {}}
    for (kind, level, way), tally in tallies.items():
        row = found["kinds"].setdefault(
            kind,
            {
                "conversations": sizes[f"{kind}.conversations"],
                "chars": sizes[f"{kind}.chars"],
                "chars_of_speech": sizes[f"{kind}.speech"],
                "bytes": {level: sizes[f"{kind}.bytes.{level}"] for level in ("full", *LEVELS, "metadata")},
            },
        )
        size = {"chars": sizes[f"{kind}.chars"], "speech": sizes[f"{kind}.speech"]}
        row.setdefault(level, {})[way] = tally.result(**size)
    of_gold = {}
    for level in LEVELS:
        for way in ("aether", *WAYS):
            every = [tally.number for (_, of, by), tally in tallies.items() if (of, by) == (level, way)]
            of_gold[f"{level}, {way}"] = {
                name: f"{(number := sum(one[name] for one in every))} = {number / full[name]:.3f}"
                for name in ("anywhere", "in ten lines")
            }
    found["answered_of_those_at_full"] = of_gold
    return found


if __name__ == "__main__":
    report.write(__file__, run())
