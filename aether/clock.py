"""Time: aware UTC, microseconds, read only at the edge and handed inward as `now`.

Instants are written as ISO 8601 with `Z` and six decimals, so their text order is their time order.
"""

from __future__ import annotations

from datetime import UTC, datetime

from aether.errors import InvalidInput, shown


def now() -> datetime:
    """Return the present instant, aware, in UTC."""
    return datetime.now(UTC)


def stamp(instant: datetime) -> str:
    """Return `instant` as text that sorts by time.

    >>> stamp(datetime(2026, 3, 1, 10, 15, tzinfo=UTC))
    '2026-03-01T10:15:00.000000Z'
    """
    # Not strftime: it does not pad years before 1000 everywhere, and then text order is not time order.
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse(text: str, *, where: str = "time") -> datetime:
    """Return the instant that ISO 8601 `text` names; a time without a zone is taken as UTC.

    Raises:
        InvalidInput: the text is not an ISO 8601 date or time.

    >>> parse("2026-02-01T01:00:00-05:00") == parse("2026-02-01T06:00:00Z")
    True
    """
    try:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as reason:
        raise InvalidInput(
            f"{shown(text)} is not a time.", fix="Write it as 2026-03-01T10:15:00Z.", where=where
        ) from reason
