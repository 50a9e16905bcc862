"""Ids: unique even for equal content in the same microsecond, made only at the edge.

An id reads `<kind>_<epoch microseconds>_<8 hex digits>`; the digits are random, so two processes
that never met do not meet in an id either. Hand-offs have shorter ones.
"""

from __future__ import annotations

import os
from datetime import datetime


def new_id(kind: str, now: datetime, nth: int = 0) -> str:
    """Return a fresh id such as `wm_1772359200000000_9f86d081`.

    `nth` counts the ids made for one instant: it is added to the microseconds, because eight random
    digits alone would meet among the tens of thousands of items of one import.
    """
    micros = int(now.timestamp()) * 1_000_000 + now.microsecond + nth
    return f"{kind}_{micros}_{os.urandom(4).hex()}"


def short_id(kind: str) -> str:
    """Return a fresh id such as `phase_3_9f86d081`, for the few things whose id a model must copy.

    Every token of it is paid for in the answer; the caller sees to it that it is not taken.
    """
    return f"{kind}_{os.urandom(4).hex()}"
