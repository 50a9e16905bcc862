"""The built-in architect and summariser: selects from its input, without a model, and judges nothing.

Deterministic and offline. A session quotes its items word for word and is never larger than they are; a summary of removed
messages consists of their lines. What is chosen is decided by `aether.text.selection`.
"""

from __future__ import annotations

import json

from aether.architects.base import Completion, Request, Settings
from aether.architects.extractive.digest import write_summary
from aether.architects.extractive.session import write_session
from aether.types import Counter

NAME = "extractive"


def complete(request: Request, *, settings: Settings, count: Counter) -> Completion:
    """Return the session or the summary that `request` asks for, within its target.

    Items that bind are kept whole, even if they alone are larger than the target.
    """
    del settings  # there is nothing to reach
    if request.task == "summary":
        return Completion(text=write_summary(request.data, count=count), backend=NAME)
    session = write_session(request.data, most=request.target_tokens, count=count)
    return Completion(text=json.dumps(session, ensure_ascii=False), backend=NAME)
