"""Recounting: another token counter for a home, with every count made anew in one change.

Guaranteed: afterwards each item, each session and the totals are counted by the recorded counter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aether.memory.items import items_of
from aether.memory.sessions import ratio, sessions_of
from aether.shapes import Change, Counter, JsonObject, Patch
from aether.tokens.sessions import session_tokens


def recounted(memory: Mapping[str, Any], settings: JsonObject, count: Counter) -> Change:
    """Return the change that records `settings` as the counter and counts everything by `count`.

    What a session stands for was counted when its items were there; that number is scaled with its own.
    """
    patch: Patch = [{"op": "replace", "path": "/token_counter", "value": settings}]
    total = 0
    for place, item in enumerate(items_of(memory)):
        tokens = count(item["content"])
        total += tokens
        if tokens != item["token_count"]:
            patch.append(
                {"op": "replace", "path": f"/working_memory/items/{place}/token_count", "value": tokens}
            )
    patch.append({"op": "replace", "path": "/working_memory/current_tokens", "value": total})
    for place, session in enumerate(sessions_of(memory)):
        after = session_tokens(session, count)
        before = session["compressed_tokens"]
        original = (
            round(session["original_tokens"] * after / before) if before else session["original_tokens"]
        )
        path = f"/short_term_memory/sessions/{place}"
        patch += [
            {"op": "replace", "path": f"{path}/original_tokens", "value": original},
            {"op": "replace", "path": f"{path}/compressed_tokens", "value": after},
            {"op": "replace", "path": f"{path}/compression_ratio", "value": ratio(original, after)},
        ]
    return Change({"memory": patch})
