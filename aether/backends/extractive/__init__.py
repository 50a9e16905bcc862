"""The built-in architect and summariser: selects statements from the input, without a model.

Deterministic, offline, and linear in the input. Every statement of the answer is in the hand-off, shortened at most by
fillers and whole clauses; protected content is kept word for word.

    hand-off → clauses (cut and trimmed) → score (worth per token) → session; removed messages → digest
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from aether.backends.base import Completion, Request, Settings
from aether.backends.extractive.clauses import read_clauses
from aether.backends.extractive.digest import write_summary
from aether.backends.extractive.score import ordered, weigh_clauses
from aether.backends.extractive.session import compose_session
from aether.text.picking import longest_fitting
from aether.tokens.counters import session_tokens
from aether.types import Counter, JsonObject

NAME = "extractive"
# The search ends within a hundredth of the target; the guarantee is a tenth.
CLOSE = 0.01
# If the next clause is too long, one of these many behind it may still fit.
TRIED = 40
# A clause of a larger share of the target is data: it would displace everything else.
LARGEST_SHARE = 0.4


def complete(request: Request, *, settings: Settings, count: Counter) -> Completion:
    """Return the session or summary that fits the request's target: the most informative statements per token.

    Protected content of a hand-off is kept even if it alone is larger than the target.
    """
    del settings  # nothing to reach
    if request.task == "summary":
        return Completion(text=write_summary(request.data, count=count), backend=NAME)
    handoff = request.data
    clauses = read_clauses(handoff)
    weights = weigh_clauses(clauses, handoff, count=count)
    data = {
        clause.place
        for clause, weight in zip(clauses, weights, strict=True)
        if not clause.required and weight.cost > LARGEST_SHARE * request.target_tokens
    }
    for clause in clauses:
        if clause.leans_on in data:
            data.add(clause.place)
    ranking = [place for place in ordered(weights) if place not in data]

    def session(places: Sequence[int]) -> JsonObject:
        return compose_session(handoff, clauses, places, target_tokens=request.target_tokens)

    chosen = longest_fitting(
        ranking,
        lambda places: session_tokens(session(places), count),
        most=request.target_tokens, tried=TRIED, close=CLOSE,
        depends_on={clause.place: clause.leans_on for clause in clauses},
    )  # fmt: skip
    return Completion(text=json.dumps(session(chosen), ensure_ascii=False), backend=NAME)
