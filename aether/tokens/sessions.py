"""Session tokens: what a compressed session costs when a model is given it.

The whole JSON that an architect returns is counted, compactly written; the bookkeeping that aether
adds later (token counts, ratio, metadata) is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aether.shapes import Counter

ANSWER_FIELDS = (
    "id", "session_id", "compressed_at", "phase", "summary", "key_decisions", "outcomes", "high_value_items",
)  # fmt: skip


def session_tokens(session: Mapping[str, Any], count: Counter) -> int:
    """Return the tokens of the answer fields of `session` as compact JSON."""
    answer = {field: session[field] for field in ANSWER_FIELDS if field in session}
    return count(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))
