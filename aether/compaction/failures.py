"""Failures: what failed in the calls of a conversation, and whether it worked later.

A failure is closed when the same command (with other flags, too) or the same tool on the same file succeeds
later. Looking around that finds nothing, and slips of a tool's own protocol, are no failures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from aether.compaction.calls import Call
from aether.compaction.shapes import ErrorFact
from aether.messages.edits import file_changes
from aether.messages.shell import (
    complaint,
    finds_nothing,
    looks_around,
    reports_failure,
    shown_command,
    signature,
)
from aether.text.cleaning import without_injected

# Enough to recognise an error by; the full text is in the archive.
COMPLAINT_CHARS = 300
_SHELL = "$ "
_PATH_KEYS = ("file_path", "path", "notebook_path", "url")
# Mended in the next call; nobody needs to know of them later.
_SLIP = re.compile(
    r"\s*(?:<tool_use_error>|File has (?:not been read|been modified)|String to replace not found|"
    r"Found \d+ matches of the string|No changes to make|InputValidationError|\[Request interrupted|Cancelled|"
    r"The user doesn't want to|Permission to use)"
)


def failures_of(
    calls: Iterable[Call], *, removed: Callable[[int], bool], before: Iterable[ErrorFact] = ()
) -> tuple[ErrorFact, ...]:
    """Return the failures among the calls at `removed` positions, and those of `before` that are closed by now.

    Whether a failure is closed is told by all `calls`, also those that stay.
    """
    known = {_key(error.text): error for error in before if error.open}
    found: dict[str, ErrorFact] = {}
    for call in calls:
        if call.result is None:
            continue
        label = _label(call)
        key = _key(label)
        if not _failed(call):
            if key in found or key in known:
                found[key] = (found.get(key) or known[key])._replace(open=False)
        elif removed(call.at) and not _harmless(call):
            found.pop(key, None)
            found[key] = ErrorFact(f"{label}\n{_complaint(call)}".rstrip("\n"), open=True)
    return tuple(found.values())


def merged_failures(older: Iterable[ErrorFact], newer: Iterable[ErrorFact]) -> tuple[ErrorFact, ...]:
    r"""Return one entry for each thing that failed, as it stands now, what is newest at the end.

    >>> merged_failures([ErrorFact("$ make\nno rule", open=True)], [ErrorFact("$ make -j2\nno rule", open=False)])
    (ErrorFact(text='$ make -j2\nno rule', open=False),)
    """
    found: dict[str, ErrorFact] = {}
    for error in (*older, *newer):
        key = _key(error.text)
        found.pop(key, None)
        found[key] = error
    return tuple(found.values())


def _failed(call: Call) -> bool:
    """Tell whether a call failed: by its flag, else by what the command printed."""
    if call.result is None or call.result.is_error:
        return call.result is not None
    return bool(call.command) and reports_failure(call.command, without_injected(call.result.text))


def _label(call: Call) -> str:
    if call.command:
        return f"{_SHELL}{shown_command(call.command)}"
    path = next((call.arguments[key] for key in _PATH_KEYS if isinstance(call.arguments.get(key), str)), "")
    path = path or next((change.path for change in file_changes(call.arguments)), "")
    return f"{call.tool} {path}".strip().partition("\n")[0]


def _key(text: str) -> str:
    label = text.partition("\n")[0]
    return f"{_SHELL}{signature(label[len(_SHELL) :])}" if label.startswith(_SHELL) else label


def _harmless(call: Call) -> bool:
    text = call.result.text if call.result else ""
    searched = looks_around(call.command) or finds_nothing(call.command, text)
    return bool(_SLIP.match(text)) or (bool(call.command) and searched)


def _complaint(call: Call) -> str:
    text = complaint(without_injected(call.result.text)) if call.result else ""
    return text if len(text) <= COMPLAINT_CHARS else text[: COMPLAINT_CHARS - 1] + "…"
