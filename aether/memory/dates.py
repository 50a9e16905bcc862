"""Dates that a query asks for: "in May 2023", "on October 13", "2023-10-13".

English month names and ISO dates; what is found lifts what was noted then, and never excludes the rest.
"""

from __future__ import annotations

from typing import NamedTuple

from aether.text.patterns import lazy

_MONTHS = "january february march april may june july august september october november december".split()
_NAMED = lazy(
    r"\b(?:(?P<before>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?)?"
    rf"(?P<month>{'|'.join(name.capitalize() for name in _MONTHS)})\b"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?:of\s+)?(?P<year>\d{4})\b)?"
)
_ISO = lazy(r"\b(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b")


class Date(NamedTuple):
    """A day or a month, of any year where none is said."""

    year: str
    month: str
    day: str


def dates(query: str) -> list[Date]:
    """Return the dates that `query` names; months count only when capitalised ("May" is not "may").

    >>> dates("what did we decide on 13 October 2023, and in May?")
    [Date(year='2023', month='10', day='13'), Date(year='', month='05', day='')]
    """
    named = [
        Date(
            found["year"] or "",
            f"{_MONTHS.index(found['month'].lower()) + 1:02}",
            (found["before"] or found["after"] or "").rjust(2, "0")
            if found["before"] or found["after"]
            else "",
        )
        for found in _NAMED.finditer(query)
    ]
    return named + [Date(found["year"], found["month"], found["day"] or "") for found in _ISO.finditer(query)]


def nearness(date: Date, at: str) -> str:
    """Return "day" or "month" as the time `at` falls on the day or in the month of `date`, else nothing.

    >>> nearness(Date("2023", "10", "13"), "2023-10-13T08:00:00.000000Z")
    'day'
    """
    year, month, day = at[:4], at[5:7], at[8:10]
    if month != date.month or date.year not in ("", year):
        return ""
    return "month" if not date.day else "day" if day == date.day else ""
