"""Conversations for the tests of the archive: written ones, and random ones in the formats of all providers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from random import Random

from aether.conversation.archived import read_conversation
from aether.messages.model import PROVIDER_FORMATS
from tests.laws.histories import history

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
TALK = (
    ("user", "Our nightly export of the ledger takes four hours. Can you find out why? Never write to the live table."),
    (
        "assistant",
        ("Let me look at the export. The cause is a missing index on ledger_rows.account_id: each of the 48,213 accounts "
        "scans the whole table. There are two ways to go about it. One can add the index, or one can copy the table first. "
        "Adding an index locks the table for a while, which may matter to people who work late. "
        "Which one do you prefer?"),
    ),
    ("user", "The index, please. It was a rainy weekend here and nobody worked late anyway."),
    (
        "assistant",
        ("Great! I added the index in migrations/0042_ledger.sql. We decided to run it on Sundays at 03:00 because the "
        "shop is closed then. The export now takes 11 minutes instead of four hours. "
        "Indexes are kept by the database itself, so nothing else has to be done. Let me know whether anything else comes up."),
    ),
    ("user", "Thanks, that is great!"),
)  # fmt: skip


def given(texts=TALK, *, days=0, now=NOW, **fields):
    """Return a conversation dict whose newest message is so many days old."""
    end = now - timedelta(days=days)
    start = end - timedelta(minutes=len(texts) - 1)
    messages = [
        {
            "id": f"m{at}",
            "role": role,
            "content": text,
            "timestamp": (start + timedelta(minutes=at)).isoformat(),
        }
        for at, (role, text) in enumerate(texts)
    ]
    return {
        "id": "talk", "title": "The export of the ledger", "created_at": start.isoformat(), "updated_at": end.isoformat(),
        "metadata": {}, "messages": messages, **fields,
    }  # fmt: skip


def conversation(texts=TALK, **fields):
    """Return the same as read; none of its fields is at fault."""
    found, findings = read_conversation(given(texts, **fields))
    assert findings == []
    return found


def random_given(seed, *, turns=3, words=25):
    """Return a random conversation dict in the format of any provider, with times in any zone, or without."""
    random = Random(seed)
    messages = history(seed, random.choice(PROVIDER_FORMATS), turns=turns, words=words, images=0)
    now = NOW - timedelta(days=random.randint(0, 800), seconds=random.randint(0, 86_400))
    times = sorted(now - timedelta(minutes=random.randint(0, 9_000)) for _ in messages)
    if random.random() < 0.7:
        messages = [
            {**one, "timestamp": written(random, time)} for one, time in zip(messages, times, strict=True)
        ]
    if random.random() < 0.3:
        messages.insert(
            random.randrange(len(messages)),
            {"role": "user", "content": "Keep: the key is under 7.", "meta": {"protected": True}},
        )
    return {
        "id": f"random-{seed}", "title": random.choice((None, "Émile's plan / 東京", "a" * 300)),
        "created_at": written(random, times[0]), "updated_at": random.choice((None, written(random, now))),
        "goals": random.choice(([], ["Ship it by May."], [{"description": "Ship it.", "decisions": [{"description": "Use one table.", "locked": True}]}])),
        "messages": messages,
    }  # fmt: skip


def written(random, time):
    """Return a time as any program might write it."""
    zone = timezone(timedelta(minutes=random.randint(-720, 840)))
    return random.choice(
        (
            time.isoformat(), time.replace(tzinfo=None).isoformat(), time.astimezone(zone).isoformat(),
            time.strftime("%Y-%m-%dT%H:%M:%SZ"), time.strftime("%Y-%m-%d %H:%M:%S"),
        )
    )  # fmt: skip
