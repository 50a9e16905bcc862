"""Phase numbers: what may name a phase at the API.

A phase is a whole number, 0 or more; everything else is refused, so that a phase is safe in a file name
and equal phases compare equal. Files of the original also hold them as text: `number_in` reads those.
"""

from __future__ import annotations

from typing import Any

from aether.errors import InvalidInput, shown

# Largest whole number that every JSON reader gives back exactly (2**53 - 1, RFC 8259 section 6).
MAX_PHASE = 9_007_199_254_740_991


def check_phase(phase: object) -> int:
    """Return `phase` if it is a phase number.

    Raises:
        InvalidInput: it is not an int, is a bool, is negative, or is beyond `MAX_PHASE`.

    >>> check_phase(2)
    2
    """
    if isinstance(phase, bool) or not isinstance(phase, int) or not 0 <= phase <= MAX_PHASE:
        raise InvalidInput(
            f"{shown(phase)} is not a phase.", fix="Use a whole number, 0 or more.", where="phase"
        )
    return phase


def phase_number(value: Any) -> int | None:
    """Return the phase number that a document holds as `value`, be it number or text, or None.

    >>> number_in("7"), number_in(2), number_in(True), number_in("seven")
    (7, 2, None, None)
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MAX_PHASE)):
        value = int(value)
    try:
        return check_phase(value)
    except InvalidInput:
        return None
