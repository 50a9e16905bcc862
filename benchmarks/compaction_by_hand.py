"""How much smaller does a compaction by hand make a coding session that is far from its trigger?

The session is generated: sixty turns of reading, searching, editing and talk with planted requests, as in
`compaction_decay.py`. It is compacted by hand (`compact`) in a window of 200,000 tokens under every policy, and so with
every strategy of summaries, with the extractive backend; requirements/002 asks for at least 40 % less. That the
opening request is there verbatim afterwards, that a provider would take the result, and that the compaction can be taken
back byte for byte is asserted.

Usage: python benchmarks/compaction_by_hand.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import report  # noqa: E402 - runnable without an installation
from compaction_decay import Session  # noqa: E402

from aether.api.admin import init  # noqa: E402
from aether.api.compact import compact, undo_compaction  # noqa: E402
from aether.conversation.policy import POLICIES  # noqa: E402
from aether.messages.convert import bare, read  # noqa: E402
from aether.messages.validate import check, has_errors  # noqa: E402

SEED = 60
TURNS = 60
# Turns between two stretches; each starts with requests, constraints and decisions of its own.
STRETCH = 20
WINDOW = 200_000
LEAST = 0.40


def session() -> list[dict]:
    made = Session(SEED)
    for turn in range(TURNS):
        if turn % STRETCH == 0:
            made.begin()
        made.turn()
    return made.raws


def by_hand(raws: list[dict], policy: str, home: Path) -> dict:
    found = compact(policy, raws, window=WINDOW, policy=policy, wire="anthropic", home=home)
    assert found.tokens_before < 0.5 * WINDOW, "no trigger would fire"
    assert not has_errors(check(read([bare(raw) for raw in found.messages], "anthropic"), "anthropic"))
    assert raws[0]["content"] in json.dumps(found.messages, ensure_ascii=False)
    return {
        "tokens_before": found.tokens_before,
        "tokens_after": found.tokens_after,
        "messages_after": len(found.messages),
        "smaller_by": round(1 - found.tokens_after / found.tokens_before, 3),
    }


def main() -> None:
    """Measure, print and write."""
    raws = session()
    with tempfile.TemporaryDirectory() as name:
        home = init(Path(name) / ".aether")
        found = {policy: by_hand(raws, policy, home) for policy in POLICIES}
        for policy in POLICIES:
            assert undo_compaction(policy, home=home).messages == raws
    assert min(one["smaller_by"] for one in found.values()) >= LEAST, found
    report.write(
        __file__,
        {"turns": TURNS, "messages": len(raws), "window": WINDOW, "required": LEAST, "policies": found},
    )


if __name__ == "__main__":
    main()
