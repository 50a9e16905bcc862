"""Patterns: compiled when they are first needed, for a hook reads few texts and is over in milliseconds."""

from __future__ import annotations

import re
from functools import cache


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return the compiled `pattern`; only constants are asked for, so what is kept is bounded.

    >>> compiled("a+").sub("b", "caat")
    'cbt'
    """
    return re.compile(pattern)
