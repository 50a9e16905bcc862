"""Long-term memory: promote repeated statements to patterns, extract one by hand, detect candidates, link entries.

The rules of promotion are in `memory.patterns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aether.api.home import Home, change, now, read
from aether.clock import new_id
from aether.errors import public
from aether.memory import patterns
from aether.store.authors import Author
from aether.types import Change, JsonObject


@public
def trigger_pattern_extraction(*, home: Home = None) -> int:
    """Promote statements of high relevance or from several sessions, and return the number of new patterns."""
    return len(promote(home=home).created)


@public
def promote(*, home: Home = None) -> patterns.Promotion:
    """Promote statements of high relevance or from several sessions, and return the promotion."""
    moment = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        return patterns.promote(documents["memory"], now=moment, new_id=new_id)

    result: patterns.Promotion = change(home, plan, Author("promote")).result
    return result


@public
def detect_patterns_across_sessions(*, home: Home = None) -> list[JsonObject]:
    """Return the statements that occur in enough distinct sessions, without promoting them."""
    return [
        repeated_statement._asdict()
        for repeated_statement in patterns.repeated_statements(read(home).documents["memory"])
    ]


@public
def extract_pattern_to_long_term(
    content: str,
    *,
    session_id: str,
    type: patterns.PatternType | None = None,
    confidence: float | None = None,
    home: Home = None,
) -> str:
    """Store a pattern with a session as its evidence, or add the session to a stored one, and return its id.

    Raises:
        InvalidInput: the content is blank, or the type is unknown.
        NotFound: there is no such session.
    """
    moment = now()
    extra: dict[str, Any] = {} if confidence is None else {"confidence": confidence}

    def plan(documents: Mapping[str, Any]) -> Change:
        return patterns.extract_pattern(
            documents["memory"], content, type=type, session_id=session_id, now=moment, new_id=new_id, **extra
        )

    return str(change(home, plan, Author("extract pattern", reason=session_id)).result)


@public
def promote_item(item_id: str, *, home: Home = None) -> patterns.Promotion:
    """Make a pattern of the text of an item, and return the promotion; an equal pattern is linked with the item instead.

    Raises:
        InvalidInput: the entry is not an item of working memory.
        NotFound: nothing has this id.
    """
    moment = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        return patterns.promote_item(documents["memory"], item_id, now=moment, new_id=new_id)

    result: patterns.Promotion = change(home, plan, Author("promote", reason=item_id)).result
    return result


@public
def create_associative_link(
    source_id: str, target_id: str, link_type: str = "related_to", *, home: Home = None
) -> str:
    """Link two entries of any layers and return the link's id; linking twice has no further effect.

    Raises:
        NotFound: one of them is in no layer.
        InvalidInput: the type of link is unknown.
    """
    moment = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        return patterns.create_link(
            documents["memory"], source_id, target_id, link_type, now=moment, new_id=new_id
        )

    return str(change(home, plan, Author("link", reason=f"{source_id} {link_type} {target_id}")).result)
