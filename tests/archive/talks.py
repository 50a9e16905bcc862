"""Short conversations for the tests of the archive of a home, and their way into it."""

from __future__ import annotations

import aether

WORDS = [
    "Let us choose a database. Which one stores JSON well?",
    "Decision: we use Postgres 16 on port 5432, because it stores JSON. I looked at several others for a while.",
    "Thanks. The settings are in src/db/main.py. Nothing else is open today. The weather is nice.",
]
SECRET = "sk-" + "abcdef1234567890" * 2


def said(*words):
    return [{"role": ("user", "assistant")[at % 2], "content": word} for at, word in enumerate(words)]


def talk(name="given", created_at="2026-03-01T10:15:00Z", words=WORDS, **fields):
    return {"id": name, "title": "Database", "created_at": created_at, "messages": said(*words), **fields}


def add(home, *given):
    done = aether.archive_conversations(given, home=home)
    assert done.failed == []
    return done.added


def levels(home):
    return {one.id: one.level for one in aether.list_archived(home=home)}
