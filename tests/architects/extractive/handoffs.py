"""Hand-offs for the tests of the extractive architect."""

import json

from aether.architects.base import Request, Settings
from aether.architects.extractive import complete

PREPARED_AT = "2026-03-01T10:15:00.000000Z"


def count(text):
    return -(-len(text) // 4)


def item(content, type="observation", relevance=0.5, **metadata):
    return {
        "type": type,
        "content": content,
        "token_count": count(content),
        "metadata": {"relevance_score": relevance, **metadata},
    }


def handoff(*items, target=None, protected=(), signals=(), required=None):
    """Return a hand-off of items or of plain texts; the items at the places `protected` are."""
    items = [
        {"id": f"wm_{at}", **(each if isinstance(each, dict) else item(each))}
        for at, each in enumerate(items)
    ]
    total = sum(each["token_count"] for each in items)
    return {
        "compression_id": "phase_3_1772359200000000_9f86d081",
        "phase": 3,
        "prepared_at": PREPARED_AT,
        "items": items,
        "total_tokens": total,
        "target_tokens": int(total / 2.5) if target is None else target,
        "protected": [{"id": items[at]["id"], "content": items[at]["content"], "why": "test"} for at in protected],
        "signals": list(signals),
        **({} if required is None else {"required": required}),
    }  # fmt: skip


def signal(type, context, strength=1.0):
    return {"id": "s", "type": type, "strength": strength, "metadata": {"context": context}}


def session(data, *, counter=count, **changes):
    request = Request("session", {**data, **changes}, "", {}, data["target_tokens"])
    return json.loads(complete(request, settings=Settings(), count=counter).text)


def texts(session):
    """Return every text of a session."""
    return [
        session["summary"],
        *(entry[key] for entry in session["key_decisions"] for key in ("decision", "rationale")),
        *(entry[key] for entry in session["outcomes"] for key in ("result", "impact")),
        *(entry["content"] for entry in session["high_value_items"]),
    ]


def unfounded(session, contents):
    """Return the lines of a session that are in none of `contents`, neither whole nor after the name of a speaker."""
    given = [" ".join(text.split()) for text in contents]
    lines = [" ".join(line.split()) for text in texts(session) for line in text.splitlines()]
    return [
        line for line in lines if not any(line in text or line.partition(": ")[2] in text for text in given)
    ]
