"""How much of the evidence for a question does search find?

Three corpora, each question asked of one home by `aether.search.rank.search`, beside plain BM25 over the same texts.

- LoCoMo, six conversations (../shared/data/locomo): every utterance is one item ("Speaker: text", with the caption of a
  shared picture), its session is the phase and the time; "notes" leaves both out. Questions of categories 1 to 4.
- BEAM, ten long chats of a person and an assistant (../shared/data/beam): every message is one item.
- LongMemEval, S or M, brought by the user: every user turn is one item, as in table 9 of the paper. Questions without
  an answer in a user turn are left out, and so are those of abstention.

`recall@k` is the share of the evidence among the first k hits, `any@k` and `all@k` whether any or all of it is there. A
session ranks by its first hit among 200. The constants of the ranking were chosen with LoCoMo and BEAM at hand; docs/benchmarks.md has the
figures of each corpus with constants chosen without it.

Usage: python benchmarks/search_recall.py [--longmemeval FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import report

from aether import clock
from aether.search.rank import search
from aether.text.words import stems

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CATEGORIES = (1, 2, 3, 4)
NOW = datetime(2024, 6, 1, tzinfo=UTC)
HITS = 200
# Session level on all ten conversations, as others publish it: hit@1, hit@5, MRR.
PUBLISHED = {"deja-vu 0.18, by its author": (0.696, 0.857, 0.766)}


class Question(NamedTuple):
    text: str
    evidence: frozenset[str]
    now: datetime


class Home(NamedTuple):
    """Items to search, and the questions asked of them."""

    items: list[dict[str, Any]]
    questions: list[Question]
    session_of: Callable[[str], str]


Ranker = Callable[[str, datetime], list[str]]


def item(id: str, text: str, kind: str, at: datetime, **metadata: Any) -> dict[str, Any]:
    return {"id": id, "type": kind, "content": text, "metadata": {"timestamp": clock.stamp(at), **metadata}}


def locomo(*, bare: bool = False) -> Iterator[Home]:
    for sample in json.loads((DATA / "locomo" / "locomo_dev6.json").read_text(encoding="utf-8")):
        items = [*utterances(sample["conversation"], bare=bare)]
        ids = {each["id"] for each in items}
        questions = []
        for entry in sample["qa"]:
            names = re.findall(r"D(\d+):(\d+)", " ".join(entry["evidence"]))
            evidence = frozenset(f"D{int(session)}:{int(line)}" for session, line in names) & ids
            if entry["category"] in CATEGORIES and evidence:
                questions.append(Question(entry["question"], evidence, NOW))
        yield Home(items, questions, lambda name: name.partition(":")[0])


def utterances(conversation: dict[str, Any], *, bare: bool) -> Iterator[dict[str, Any]]:
    sessions = [key for key in conversation if re.fullmatch(r"session_\d+", key)]
    for number, key in enumerate(sessions, start=1):
        at = datetime.strptime(f"{conversation[f'{key}_date_time']} +0000", "%I:%M %p on %d %B, %Y %z")
        for said in conversation[key]:
            picture = f" [picture: {said['blip_caption']}]" if said.get("blip_caption") else ""
            text = f"{said['speaker']}: {said['text']}{picture}"
            place = {} if bare else {"phase": number}
            yield item(said["dia_id"], text, "observation", NOW if bare else at, **place)


def beam() -> Iterator[Home]:
    for path in sorted((DATA / "beam").glob("*_chat.json"), key=lambda path: int(path.name.split("_")[0])):
        chat = json.loads(path.read_text(encoding="utf-8"))
        asked = json.loads(
            path.with_name(path.name.replace("_chat", "_questions")).read_text(encoding="utf-8")
        )
        messages = [message for batch in chat for turn in batch["turns"] for message in turn]
        items = [
            item(
                str(message["id"]), re.sub(r"\s*->->.*$", "", message["content"], flags=re.DOTALL),
                "user_input" if message["role"] == "user" else "observation", NOW,
            )
            for message in messages
        ]  # fmt: skip
        ids = {each["id"] for each in items}
        questions = [
            Question(entry["question"], frozenset(map(str, numbers(entry.get("source_chat_ids")))) & ids, NOW)
            for kind in asked.values()
            for entry in kind
        ]
        yield Home(items, [question for question in questions if question.evidence], lambda name: name)


def numbers(value: Any) -> list[int]:
    if isinstance(value, int):
        return [value]
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value or []
    return [number for each in inner for number in numbers(each)]


def long_mem_eval(path: Path) -> Iterator[Home]:
    """Yield one home for each question of a file of LongMemEval."""
    for entry in json.loads(path.read_text(encoding="utf-8")):
        items, evidence = [], set()
        sessions = zip(
            entry["haystack_session_ids"], entry["haystack_dates"], entry["haystack_sessions"], strict=True
        )
        for number, (session, date, turns) in enumerate(sessions, start=1):
            for place, turn in enumerate(turns):
                if turn["role"] == "user":
                    name = f"{number} {session}#{place}"
                    items.append(
                        item(
                            name, turn["content"], "user_input", day(date), conversation=session, phase=number
                        )
                    )
                    evidence.update([name] if turn.get("has_answer") else [])
        if evidence and not entry["question_id"].endswith("_abs"):
            question = Question(entry["question"], frozenset(evidence), day(entry["question_date"]))
            yield Home(items, [question], lambda name: name.partition("#")[0])


def day(text: str) -> datetime:
    return datetime.strptime(f"{text} +0000", "%Y/%m/%d (%a) %H:%M %z")


def ours(items: list[dict[str, Any]]) -> Ranker:
    memory = {"working_memory": {"items": items}}
    return lambda question, now: [hit["id"] for hit in search(memory, question, now=now, limit=HITS)]


def plain_bm25(items: list[dict[str, Any]]) -> Ranker:
    counts = {each["id"]: Counter(stems(each["content"])) for each in items}
    lengths = {name: count.total() for name, count in counts.items()}
    average = sum(lengths.values()) / len(lengths)
    number = Counter(stem for count in counts.values() for stem in count)

    def ranked(question: str, now: datetime) -> list[str]:  # noqa: ARG001 - the other ranker needs the time
        scores: Counter[str] = Counter()
        for stem in dict.fromkeys(stems(question)):
            idf = math.log(1 + (len(items) - number[stem] + 0.5) / (number[stem] + 0.5))
            for name, count in counts.items():
                if times := count[stem]:
                    norm = 1.2 * (0.25 + 0.75 * lengths[name] / average)
                    scores[name] += idf * times * 2.2 / (times + norm)
        return [name for name, _ in scores.most_common(HITS)]

    return ranked


def figures(homes: Iterable[Home], method: Callable[[list[dict[str, Any]]], Ranker]) -> dict[str, float]:
    """Return the average of each figure over all questions, and the number of questions."""
    totals: Counter[str] = Counter()
    for home in homes:
        ranker = method(home.items)
        for question in home.questions:
            hits = ranker(question.text, question.now)
            totals["questions"] += 1
            totals.update(
                {f"turn {name}": value for name, value in of_ranking(hits, question.evidence).items()}
            )
            sessions = [*dict.fromkeys(map(home.session_of, hits))]
            evidence = {*map(home.session_of, question.evidence)}
            totals.update(
                {f"session {name}": value for name, value in of_ranking(sessions, evidence).items()}
            )
    return {
        name: round(value / totals["questions"], 4) for name, value in totals.items() if name != "questions"
    } | {"questions": totals["questions"]}


def of_ranking(hits: Sequence[str], evidence: Iterable[str]) -> dict[str, float]:
    wanted = {*evidence}
    ranks = [rank for rank, hit in enumerate(hits, start=1) if hit in wanted]
    values = {"hit@1": float(1 in ranks), "MRR": 1 / ranks[0] if ranks else 0.0}
    for k in (5, 10):
        within = [rank for rank in ranks if rank <= k]
        ideal = sum(map(discount, range(1, min(k, len(wanted)) + 1)))
        values |= {
            f"recall@{k}": len(within) / len(wanted), f"any@{k}": float(bool(within)),
            f"all@{k}": float(len(within) == len(wanted)), f"NDCG@{k}": sum(map(discount, within)) / ideal,
        }  # fmt: skip
    return values


def discount(rank: int) -> float:
    """Return the gain of a rank as the code of LongMemEval counts it: the first two count whole."""
    return 1.0 if rank == 1 else 1 / math.log2(rank)


def table(title: str, rows: dict[str, dict[str, float]], columns: Sequence[str]) -> None:
    print(f"\n{title}: {next(iter(rows.values()))['questions']} questions")
    for name, found in rows.items():
        print(f"  {name:28}", "  ".join(f"{column} {found[column]:.3f}" for column in columns))


TURNS = ("turn recall@5", "turn recall@10", "turn any@10")
SESSIONS = ("session hit@1", "session any@5", "session MRR")
PAPER = ("all@5", "NDCG@5", "all@10", "NDCG@10")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--longmemeval",
        type=Path,
        metavar="FILE",
        help="longmemeval_s.json or longmemeval_m.json, and nothing else",
    )
    options = parser.parse_args(arguments)
    methods = {"plain BM25": plain_bm25, "aether": ours}
    if options.longmemeval:
        rows = {name: figures(long_mem_eval(options.longmemeval), method) for name, method in methods.items()}
        for level in ("session", "turn"):
            table(f"LongMemEval, {level} level", rows, [f"{level} {name}" for name in PAPER])
        return
    talks = {name: figures(locomo(), method) for name, method in methods.items()}
    talks["aether, notes without session"] = figures(locomo(bare=True), ours)
    chats = {name: figures(beam(), method) for name, method in methods.items()}
    table("LoCoMo, six conversations", talks, TURNS)
    table("LoCoMo, sessions", talks, SESSIONS)
    for name, values in PUBLISHED.items():
        print(
            f"  {name:28}",
            "  ".join(f"{column} {value:.3f}" for column, value in zip(SESSIONS, values, strict=True)),
            "(ten conversations)",
        )
    table("BEAM, ten chats, messages noted", chats, TURNS)
    for rows in (talks, chats):
        assert rows["aether"]["turn recall@10"] > rows["plain BM25"]["turn recall@10"]
    report.write(__file__, {"locomo": talks, "beam": chats})


if __name__ == "__main__":
    main()
