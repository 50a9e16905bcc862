"""What survives the extractive architect at ratio 2.5?

Conversations: LoCoMo, each session compressed alone; the share of the stems of a gold answer present in its evidence
that are still present afterwards (question categories 1 and 4). Beside it, in the same run, selections of whole
sentences by simpler rules at the same budget; sessions are counted by what they say, as items are by their content. The weights
were chosen on three conversations (`developed`); the other three (`held_out`) were looked at only for the report.

Transcripts: real agent sessions as captured notes; the share of the files edited, commands, error messages,
identifiers, rules and sentences of a person in the notes that are still there, word for word.

The data lies beside the checkout; without it there is nothing to measure.

Usage: python benchmarks/architect_fidelity.py
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import report

from aether.architects.base import Request, Settings
from aether.architects.extractive import complete
from aether.memory import fidelity as gate
from aether.memory.capture.extract import capture
from aether.memory.handoff import protected_items
from aether.messages.read import read_records
from aether.text.identifiers import identifiers
from aether.text.words import sentences, stems
from aether.tokens.counters import session_tokens
from aether.tokens.estimate import estimate

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DEVELOPED = (0, 2, 4)
RATIO = 2.5
RATIO_WITHIN = 0.1
# Below this the envelope of a session is most of it.
LEAST_TOKENS = 500
SEED = 7
# TextRank: the damping and rounds of the original PageRank papers.
DAMPING, RANK_ROUNDS = 0.85, 30
Compress = Callable[[dict], dict]


def main() -> None:
    if not (DATA / "locomo").is_dir():
        sys.exit("The data sets are not beside the checkout; nothing was measured.")
    conversations = json.loads(next((DATA / "locomo").glob("*.json")).read_text())
    parts = {
        "developed": [conversations[at] for at in DEVELOPED],
        "held_out": [conversation for at, conversation in enumerate(conversations) if at not in DEVELOPED],
    }
    talks = {
        name: {part: fidelity(part_of, way) for part, part_of in parts.items()} for name, way in WAYS.items()
    }
    check(talks)
    tell(talks, transcripts())


def utterances(conversation: dict) -> Iterator[tuple[int, list[dict]]]:
    for key, said in conversation["conversation"].items():
        if found := re.fullmatch(r"session_(\d+)", key):
            yield int(found[1]), said


def handoff(texts: list[str], *, types: list[str] | None = None, metadata: list[dict] | None = None) -> dict:
    items = [
        {
            "id": f"wm_{at}",
            "type": types[at] if types else "observation",
            "content": text,
            "token_count": estimate(text),
            "metadata": {"relevance_score": 0.5, **(metadata[at] if metadata else {})},
        }
        for at, text in enumerate(texts)
    ]
    total = sum(item["token_count"] for item in items)
    return {
        "compression_id": "phase_1_9f86d081",
        "phase": 1,
        "prepared_at": "2026-03-01T10:15:00.000000Z",
        "items": items,
        "total_tokens": total,
        "target_tokens": int(total / RATIO),
        "protected": protected_items(items),
        "signals": [],
    }


def fidelity(conversations: list[dict], way: Compress) -> dict:
    there = kept = questions = 0
    ratios = []
    for conversation in conversations:
        said = {turn["dia_id"]: turn["text"] for _, turns in utterances(conversation) for turn in turns}
        compressed = {}
        for number, turns in utterances(conversation):
            data = handoff([f"{turn['speaker']}: {turn['text']}" for turn in turns])
            session = way(data)
            compressed[number] = set(stems(text_of(session)))
            ratios.append(data["total_tokens"] / session_tokens(session, estimate))
        for answer, ids in asked(conversation):
            evidence = [(int(name[1:].split(":")[0]), set(stems(said[name]))) for name in ids if name in said]
            wanted = answer & {stem for _, held in evidence for stem in held}
            there += len(wanted)
            kept += sum(
                any(stem in held and stem in compressed[number] for number, held in evidence)
                for stem in wanted
            )
            questions += 1
    assert questions > 100, "there are almost no questions"
    return {
        "kept": round(kept / there, 3),
        "stems": there,
        "questions": questions,
        "mean_ratio": round(sum(ratios) / len(ratios), 2),
    }


def asked(conversation: dict) -> Iterator[tuple[set[str], list[str]]]:
    for question in conversation["qa"]:
        if question["category"] in (1, 4) and "answer" in question:
            yield set(stems(str(question["answer"]))), re.findall(r"D\d+:\d+", " ".join(question["evidence"]))


def text_of(session: dict) -> str:
    parts = [session["summary"]]
    parts += [f"{entry['decision']} {entry['rationale']}" for entry in session["key_decisions"]]
    parts += [f"{entry['result']} {entry['impact']}" for entry in session["outcomes"]]
    parts += [entry["content"] for entry in session["high_value_items"]]
    return " ".join(parts)


def extractive(data: dict) -> dict:
    request = Request("session", data, "", {}, data["target_tokens"])
    return json.loads(complete(request, settings=Settings(), count=estimate).text)


def spoken(data: dict) -> list[str]:
    return [sentence for item in data["items"] for sentence in sentences(item["content"].split(": ", 1)[1])]


def filled(data: dict, units: list[str], order: list[int]) -> dict:
    """Return the session of as many `units` as fit, in `order`, with unchanged texts."""
    session = extractive(data | {"items": [], "protected": []}) | {"summary": ""}
    room = data["target_tokens"] - session_tokens(session, estimate)
    taken = []
    for at in order:
        cost = estimate(" " + units[at])
        if cost <= room:
            taken.append(at)
            room -= cost
    return session | {"summary": " ".join(units[at] for at in sorted(taken))}


def head(data: dict) -> dict:
    units = spoken(data)
    return filled(data, units, list(range(len(units))))


def tail(data: dict) -> dict:
    units = spoken(data)
    return filled(data, units, list(reversed(range(len(units)))))


def at_random(data: dict) -> dict:
    units = spoken(data)
    return filled(data, units, random.Random(SEED).sample(range(len(units)), len(units)))


def longest(data: dict) -> dict:
    units = spoken(data)
    return filled(data, units, sorted(range(len(units)), key=lambda at: -len(units[at])))


def textrank(data: dict) -> dict:
    units = spoken(data)
    held = [set(stems(unit)) for unit in units]
    like = [
        [len(a & b) / (1 + len(a) + len(b)) if a is not b else 0.0 for b in held] for a in held
    ]  # shared words over length, as TextRank has it but without its logarithms of one
    out = [sum(row) or 1.0 for row in like]
    rank = [1.0] * len(units)
    for _ in range(RANK_ROUNDS):
        rank = [
            1 - DAMPING + DAMPING * sum(like[j][i] / out[j] * rank[j] for j in range(len(units)))
            for i in range(len(units))
        ]
    return filled(data, units, sorted(range(len(units)), key=lambda at: -rank[at]))


def greedy(data: dict) -> dict:
    """Whole sentences by new stems per token, rare ones first."""
    units = spoken(data)
    held = [set(stems(unit)) for unit in units]
    spread = Counter(stem for stems_of in held for stem in stems_of)
    cost = [estimate(" " + unit) + 2 for unit in units]
    left, known, order = set(range(len(units))), set(), []
    while left:
        best = max(left, key=lambda at: (sum(1 / spread[stem] for stem in held[at] - known) / cost[at], -at))
        left.remove(best)
        order.append(best)
        known |= held[best]
    return filled(data, units, order)


WAYS: dict[str, Compress] = {
    "extractive": extractive,
    "head": head,
    "tail": tail,
    "random": at_random,
    "longest": longest,
    "textrank": textrank,
    "greedy_sentences": greedy,
}


def transcripts() -> dict:
    files = sorted([*(DATA / "claude_code").glob("*.jsonl"), *(DATA / "codex").glob("*.jsonl")])
    totals: dict[str, Counter[str]] = {"there": Counter(), "kept": Counter()}
    rows = []
    for path in files:
        drafts = list(capture(read_records(path), file=path.name))
        data = handoff(
            [draft["content"] for draft in drafts],
            types=[draft["type"] for draft in drafts],
            metadata=[{"relevance_score": draft["relevance_score"], **draft["metadata"]} for draft in drafts],
        )
        if data["total_tokens"] < LEAST_TOKENS:
            continue
        session = extractive(data | {"required": gate.required_entries(data)})
        text = " ".join(text_of(session).split())
        row: dict = {"file": path.name, "tokens": data["total_tokens"]}
        row["ratio"] = round(data["total_tokens"] / session_tokens(session, estimate), 2)
        wanted = named(data)
        everything = {name for names in wanted.values() for name in names}
        row["named_tokens"] = sum(estimate(" " + name) for name in everything)
        row["target_tokens"] = data["target_tokens"]
        for kind, names in wanted.items():
            kept = sum(" ".join(name.split()) in text for name in names)
            totals["there"][kind] += len(names)
            totals["kept"][kind] += kept
            row[kind] = f"{kept}/{len(names)}"
        rows.append(row)
    assert len(rows) > 10, "there are almost no transcripts"
    shares = {
        kind: round(totals["kept"][kind] / there, 3) for kind, there in totals["there"].items() if there
    }
    return {"kept": shares, "there": dict(totals["there"]), "files": rows}


def named(data: dict) -> dict[str, set[str]]:
    """Return what the notes name, by kind."""
    found: dict[str, set[str]] = {
        kind: set()
        for kind in (
            "files_edited",
            "rules",
            "person_sentences",
            "paths",
            "commands",
            "errors",
            "identifiers",
        )
    }
    for item in data["items"]:
        text = item["content"]
        its = identifiers(text)
        found["paths"] |= set(its.paths)
        found["commands"] |= set(its.commands)
        found["errors"] |= set(its.errors)
        found["identifiers"] |= set(its.identifiers)
        if item["type"] == "code_change" and (edited := re.match(r"\w+ (\S+?)(?=:? |:?$)", text)):
            found["files_edited"].add(edited[1])
        if item["type"] in ("constraint", "preference"):
            found["rules"].add(text)
        if item["type"] == "user_input":
            found["person_sentences"] |= set(sentences(text))
    return found


def check(talks: dict) -> None:
    for name, parts in talks.items():
        for part in parts.values():
            assert part["stems"] > 300, "there are almost no answers to find"
            assert part["mean_ratio"] > RATIO * (1 - RATIO_WITHIN), f"{name} keeps more than the others may"


def tell(talks: dict, traces: dict) -> None:
    question = "what survives the extractive architect at ratio 2.5"
    report.write(__file__, {"question": question, "conversations": talks, "transcripts": traces})
    for name, parts in talks.items():
        print(f"{name:18}", {part: (row["kept"], row["mean_ratio"]) for part, row in parts.items()})
    print(traces["kept"])


if __name__ == "__main__":
    main()
