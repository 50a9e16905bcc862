"""The benchmark of search on a file of LongMemEval, which users bring themselves."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.sources import ROOT


def entry(name, sessions, *, question="Where did I leave the blue umbrella?"):
    return {
        "question_id": name, "question": question, "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": [f"s{nth}" for nth in range(len(sessions))],
        "haystack_dates": ["2023/05/20 (Sat) 02:21"] * len(sessions),
        "haystack_sessions": [
            [{"role": role, "content": text, "has_answer": answers} for role, text, answers in turns] for turns in sessions
        ],
    }  # fmt: skip


def test_a_file_of_longmemeval_is_scored_as_in_its_paper(tmp_path):
    filler = [[("user", f"Tell me about topic {nth}", False)] for nth in range(12)]
    answers = [[("user", "My blue umbrella is at the office", True), ("assistant", "The umbrella!", True)]]
    lost = [[("user", "Green parrots sing", True), ("user", "I left the blue umbrella", False)]]
    entries = [
        entry("found", [*filler, *answers]),
        entry("half", [*filler, *answers, *lost]),
        entry("unanswerable_abs", answers),
        entry("by the assistant", [[("user", "Hello", False), ("assistant", "The umbrella is here", True)]]),
    ]
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(entries), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/search_recall.py", "--longmemeval", file],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert "LongMemEval, session level: 2 questions" in done.stdout
    assert "LongMemEval, turn level: 2 questions" in done.stdout
    session, turn = (line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["aether"])
    assert (
        session
        == "aether session all@5 1.000 session NDCG@5 1.000 session all@10 1.000 session NDCG@10 1.000".split()
    )
    assert turn[:4] == ["aether", "turn", "all@5", "0.500"]
    assert 0.5 < float(turn[6]) < 1
