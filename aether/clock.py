"""Time and ids, both made only in `aether.api` and passed down: aware UTC in microseconds, and unique names.

Instants are written as ISO 8601 with `Z` and six decimals, so their text order is their time order. An id is
`<kind>_<epoch microseconds>_<8 random hex digits>`, unique across processes even for equal content in one microsecond.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from aether.errors import InvalidInput, shown

NewId = Callable[[str, datetime, int], str]
"""As `new_id`."""
# What a person who watches is given of a wait: the command line adds a function on a terminal. After so many seconds.
NOTICES: list[Callable[[str], None]] = []
NOTICE_SECONDS = 1.0
# A time before now, such as `7d`: hours of each unit, and the most digits before it.
_UNIT_HOURS = {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30, "y": 24 * 365}
_MOST_DIGITS = 5


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


def of_file(seconds: float) -> datetime:
    """Return the instant of a file's time, aware, in UTC.

    >>> stamp(of_file(0))
    '1970-01-01T00:00:00.000000Z'
    """
    return datetime.fromtimestamp(seconds, UTC)


@contextmanager
def waiting_for(what: Callable[[], str]) -> Iterator[None]:
    """Say what is waited for, which `what` returns, if the block takes longer than a second and a person watches."""
    if not NOTICES:
        yield
        return
    from threading import Timer  # seldom needed, and slow to import

    timer = Timer(NOTICE_SECONDS, lambda: NOTICES[-1](f"Waiting for {what()} ..."))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


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


def instant_of(text: str, *, at: datetime, where: str) -> datetime:
    """Return the instant that `text` names: an ISO 8601 time, or a time before `at` such as `36h`, `7d`, `2w`, `3m`, `1y`.

    Raises:
        InvalidInput: it is neither.

    >>> instant_of("7d", at=datetime(2026, 3, 8, tzinfo=UTC), where="since").isoformat()
    '2026-03-01T00:00:00+00:00'
    """
    number, unit = (text.strip()[:-1], text.strip()[-1:]) if isinstance(text, str) else ("", "")
    try:
        if number.isdecimal() and len(number) <= _MOST_DIGITS and unit in _UNIT_HOURS:
            return at - timedelta(hours=int(number) * _UNIT_HOURS[unit])
        return parse(text, where=where)
    except (InvalidInput, OverflowError) as reason:
        raise InvalidInput(
            f"{shown(text)} is not a time.",
            fix="Write it as 2026-03-01T10:15:00Z, or as a time before now: 36h, 7d, 2w, 3m, 1y.",
            where=where,
        ) from reason


def new_id(kind: str, now: datetime, nth: int = 0) -> str:
    """Return a fresh id such as `wm_1772359200000000_9f86d081`.

    `nth` counts the ids made for one instant: it is added to the microseconds, because eight random
    digits alone would meet among the tens of thousands of items of one import.
    """
    micros = int(now.timestamp()) * 1_000_000 + now.microsecond + nth
    return f"{kind}_{micros}_{os.urandom(4).hex()}"


def short_id(kind: str) -> str:
    """Return a fresh id such as `phase_3_9f86d081`, for the few things whose id a model must copy.

    Every token of it is paid for in the answer; the caller makes sure that it is not in use.
    """
    return f"{kind}_{os.urandom(4).hex()}"
