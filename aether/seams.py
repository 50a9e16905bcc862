"""Seams: functions of a higher layer that a lower one calls, each imported when it is first needed.

Imports point down. Where reading or writing a home causes work of another subject, the lower layer names that work here and
knows nothing else about it: a home without hooks never drains, one without an exporter exports nothing.
"""

from __future__ import annotations

import sys

from aether.errors import own_call

TYPE_CHECKING = False  # that of typing costs a hook milliseconds; checkers go by the name
if TYPE_CHECKING:
    from typing import Any

# The work, and the function that does it.
_FUNCTIONS = {
    # Before a home is read: store what its hooks have spooled.
    "drain": "aether.api.drain:drain",
    # After a commit: export its events.
    "export": "aether.api.telemetry:export",
    # After an addition that filled working memory: prepare the hand-off for an architect.
    "prepare handoff": "aether.api.compress:prepare_current_phase",
    # Before a call that an erasure overtook is repeated: wait for its end.
    "wait for an erasure": "aether.store.commit:await_erasure",
    # Before a change that waited for its server is sent: plan a goal again.
    "add goal again": "aether.conversation.goals:added_again",
}


def call(work: str, *args: Any, **options: Any) -> Any:
    """Return the result of the function that does `work`, called with the arguments."""
    module, _, function = _FUNCTIONS[work].partition(":")
    __import__(module)  # also where it is in sys.modules: another thread may still be importing it
    with own_call():
        return getattr(sys.modules[module], function)(*args, **options)
