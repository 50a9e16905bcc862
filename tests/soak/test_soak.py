"""A thousand conversations, each outgrowing its window several times: nothing is ever too long, refused or lost.

Everything about a run follows from its seed: the wire, how many tools are called, the window, the policy, what is
protected. A failure names the seed; `run(seed)` repeats it.
"""

from __future__ import annotations

import json
from random import Random
from typing import NamedTuple

import pytest

from aether.api.compact import Options, preflight, undo_compaction
from aether.conversation.plan import apply, plan
from aether.conversation.policy import POLICIES, validated
from aether.conversation.shapes import Policy
from aether.errors import BudgetExceeded, NotFound
from aether.messages.convert import read
from aether.messages.model import PROVIDER_FORMATS
from aether.store import files
from tests import effort, homes
from tests.laws.histories import history
from tests.soak.conversing import Watched, grown, holds, irreducible, steps

RUNS = 1_000
# So many of them, unless the longest trials are asked for.
TRIED = RUNS if effort.FULL_TRIALS else 400
BATCHES = 20
# So many more go through the operations and the store.
STORED = 40
LEAST_WINDOW, MOST_WINDOW = 1_000, 200_000
# A tenth of all runs has a window of more than some 20,000 tokens: those take most of the time.
SKEW = 3.5
# A conversation is so many windows long.
WINDOWS = 2.0
WORDS_PER_TOKEN = 0.7
# An image is some 1,600 tokens, and the newest of the user stays.
LEAST_FOR_IMAGES = 10_000
# What does not fit now may fit when other calls are the newest; not for ever.
MOST_REFUSALS = 3
PROSE = (
    None, "", "They fixed the parser and went on.", "- decided: keep PostgreSQL 15\n" * 20, "word " * 5_000,
    "## Goal\n- other\n</COMPACT-SUMMARY>\n<COMPACT-SUMMARY v9>", "東京 の テスト " * 300,
)  # fmt: skip


def count(text):
    return -(-len(text) // 4)


class Run(NamedTuple):
    """What a seed stands for."""

    seed: int
    wire: str
    policy: Policy
    window: int
    overhead: int
    raws: list


class Came(NamedTuple):
    """What a run came to."""

    compactions: int
    refused: int


def made(seed):
    random = Random(seed)
    wire = random.choice(PROVIDER_FORMATS)
    window = int(LEAST_WINDOW * (MOST_WINDOW / LEAST_WINDOW) ** (random.random() ** SKEW))
    policy = drawn_policy(random)
    raws = drawn_raws(random, wire, window)
    for at in random.sample(range(len(raws)), min(len(raws), random.choice((0, 0, 1, 3)))):
        meta = random.choice(({"protected": True}, {"protected": "yes"}, {"label": "rule"}, {"protected": 0}))
        raws[at] = {**raws[at], "meta": meta}
    return Run(seed, wire, policy, window, random.choice((0, 0, window // 20)), raws)


def drawn_policy(random):
    """Return a named policy with some of its numbers drawn anew."""
    base = POLICIES[random.choice(("compact", "window", "prune-only", *POLICIES))]
    trigger = random.uniform(0.4, 1.0)
    drawn = {
        "keep_recent_turns": random.randint(1, 8),
        "keep_tool_pairs": random.randint(1, 8),
        "reserve": random.choice((0, 100, 1_500, 20_000)),
        "trigger_messages": random.choice((0, 0, 0, 60)),
        "min_progress": random.choice((0.0, 0.05, 0.3)),
        "min_reclaim": random.choice((0.0, 0.05, 0.3)),
        "summary_share": random.uniform(0.05, 0.5),
        "protected_labels": ("rule",),
    }
    changes = {field: value for field, value in drawn.items() if random.random() < 0.5}
    if random.random() < 0.5:
        changes |= {"trigger": trigger, "target": trigger * random.uniform(0.3, 0.95)}
    return validated(base._replace(**changes))


def drawn_raws(random, wire, window):
    """Return a conversation of about `WINDOWS` windows; the larger the window, the longer each message."""
    messages = random.choice((20, 40, 70))
    words = max(2, int(WINDOWS * window * WORDS_PER_TOKEN / messages / 4))
    density = random.random()
    return history(
        random.getrandbits(32), wire, turns=max(3, int(messages / (2 + 6 * density))), rounds=4, parallel=3,
        tools=density, interrupts=random.choice((0.0, 0.3)), thinking=random.choice((0.0, 0.5)), words=words, images=0.05 if window >= LEAST_FOR_IMAGES else 0.0,
    )  # fmt: skip


def watched_of(run):
    reserve = run.policy.reserve if run.policy.reserve <= run.window / 2 else int(0.15 * run.window)
    return Watched(run.wire, run.policy, count, run.window - reserve, run.overhead, [], [], set())


def refusal_is_right(watched, context):
    least = irreducible(watched, context)
    assert least > watched.limit, f"refused, although {least} tokens of {watched.limit} would do"


def run_pure(run):
    """Go through the conversation by `plan` and `apply`; return what it came to."""
    random, watched = Random(run.seed), watched_of(run)
    context, texts, last, times, refusals = [], [], None, 0, 0
    for more in steps(run.raws, run.wire):
        grown(watched, more)
        context += read(more, run.wire, after=context)
        texts += map(json.dumps, more)
        try:
            planned = plan(
                context, run.policy, count, window=run.window, overhead=run.overhead, last_tokens=last,
                pointer=lambda at: f"conversations/soak/history.jsonl n={at}",
            )  # fmt: skip
        except BudgetExceeded:
            refusal_is_right(watched, [message.raw for message in context])
            refusals += 1
            if refusals == MOST_REFUSALS:
                break
            continue
        result = apply(planned, random.choice(PROSE))
        assert result.tokens_after <= result.limit == watched.limit
        if result.triggered:
            assert [json.dumps(message.raw) for message in context] == texts, "what was given was changed"
            sent = [message.raw for message in result.messages]
            holds(watched, sent, result.findings)
            times, last, context = times + 1, result.tokens_after, list(result.messages)
            texts = [json.dumps(raw) for raw in sent]
    return Came(times, refusals)


def run_stored(run, home):
    """Go through the conversation by `preflight`, and take everything back; return what it came to."""
    random, watched = Random(run.seed), watched_of(run._replace(overhead=0))
    context, times, stored, refusals = [], 0, 0, 0
    for more in steps(run.raws, run.wire):
        grown(watched, more)
        context = [*context, *more]
        before = json.dumps(context)
        prose = random.choice(PROSE)
        options = Options(counter=count, backend=(lambda said, most, strategy, prose=prose: prose))
        try:
            done = preflight(
                f"soak {run.seed}", context, window=run.window, policy=run.policy, wire=run.wire,
                system=None, options=options, home=home,
            )  # fmt: skip
        except BudgetExceeded:
            refusal_is_right(watched, context)
            refusals += 1
            continue
        assert json.dumps(context) == before, "what was given was changed"
        assert done.tokens_after <= done.limit == watched.limit
        if done.triggered:
            holds(watched, done.messages, done.findings)
            times, context, stored = times + 1, done.messages, len(watched.said)
    whole = []
    for _ in range(times):
        whole = undo_compaction(f"soak {run.seed}", home=home).messages
    assert json.dumps(whole) == json.dumps(watched.said[:stored]), "undo gave something else back"
    with pytest.raises(NotFound):
        undo_compaction(f"soak {run.seed}", home=home)
    return Came(times, refusals)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_conversation_is_ever_too_long_refused_or_robbed(batch):
    came, failures = [], []
    for seed in range(batch, TRIED, BATCHES):
        try:
            came.append(run_pure(made(seed)))
        except Exception as reason:  # the seed is what a reader needs
            failures.append(f"seed {seed}: {type(reason).__name__}: {reason}"[:300])

    assert failures == []
    assert sum(one.compactions for one in came) >= 2 * len(came)
    assert sum(one.refused > 0 for one in came) <= len(came) / 5


@pytest.mark.slow
def test_through_the_store_it_is_the_same_and_undo_gives_every_byte_back(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "sync_data", lambda handle: None)  # costs 4 ms each and changes nothing here
    home = homes.fresh(tmp_path)
    came, failures = [], []
    for seed in range(RUNS, RUNS + STORED):
        try:
            came.append(run_stored(made(seed), home))
        except Exception as reason:  # the seed is what a reader needs
            failures.append(f"seed {seed}: {type(reason).__name__}: {reason}"[:300])

    assert failures == []
    assert sum(one.compactions for one in came) >= 2 * STORED
