"""Cleaning: the text that a person or a model wrote, without the machinery around it.

Agents wrap a person's text in reminders, environment blocks, command tags and caveats; aether adds marked blocks.
Guaranteed: no text inside `<aether-memory …>` comes through, however the block is nested or torn, nor does text
marked as `<private>`.

A model quotes lines of memory without those tags, and a person pastes them. ``without_echoes`` removes such lines:
noted again, they would be repeated with one more day in front each time. A line that was not injected, and has no id
of memory, is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from aether.redact.redact import INJECTED, without_blocks
from aether.text.elements import Piece, pieces_of
from aether.text.regex import lazy

# Elements that hosts write into a conversation; of a message of a person `messages.speakers` knows more than names.
_MACHINERY = frozenset(
    "system-reminder local-command-caveat local-command-stdout local-command-stderr bash-input bash-stdout bash-stderr "
    "command-contents command-name command-message command-args ide_selection ide_opened_file post-tool-use-hook "
    "user-prompt-submit-hook session-start-hook new-diagnostics task-notification tool_use_error persisted-output "
    "cross-session-message agent-message teammate-message ci-monitor-event scheduled-task environment_context "
    "environment_details user_instructions permissions collaboration_mode turn_aborted subagent_notification "
    "recommended_plugins skills_instructions apps_instructions plugins_instructions INSTRUCTIONS skill hook_prompt "
    "codex_internal_context send_user_message_question_reply".split()
)
_NOTICES = lazy(
    r"^(?:\[Request interrupted by user[^\]]*\]|# AGENTS\.md instructions.*|Caveat: The messages below.*|"
    r"No response requested\.|\(no content\)|###STOP###|API Error: .*|Prompt is too long)\s*$",
    re.MULTILINE,
)  # fmt: skip
_ESCAPES = lazy(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_THOUGHTS = lazy(r"<analysis\b", re.IGNORECASE)
_THOUGHTS_END = lazy(r"</analysis\s*>", re.IGNORECASE)
_SUMMARY = lazy(r"<summary\s*>(.*?)(?:</summary\s*>|\Z)", re.IGNORECASE | re.DOTALL)


def clean(text: str) -> str:
    """Return the words of a person or a model in `text`, without those marked as private.

    >>> clean("<system-reminder>be brief</system-reminder>Use SQLite. <aether-memory>old</aether-memory>")
    'Use SQLite.'
    >>> clean("<command-name>/compact</command-name><command-args>keep the plan</command-args>")
    '/compact keep the plan'
    """
    if "<" in text:
        pieces = list(pieces_of(without_blocks(text)))
        typed = typed_command(pieces)
        text = typed + "".join(piece.text for piece in pieces if piece.name not in _MACHINERY)
    return _NOTICES.sub("", without_escapes(text)).strip()


def typed_command(pieces: Iterable[Piece]) -> str:
    """Return a slash command as it was typed; empty without arguments, when it says nothing."""
    parts = {piece.name: piece.inner.strip() for piece in pieces}
    arguments = parts.get("command-args", "")
    return f"{parts.get('command-name', '')} {arguments}" if arguments else ""


def without_thoughts(summary: str) -> str:
    """Return what a host's own `summary` says, without the analysis that was written before it and the marks around it.

    >>> without_thoughts("<analysis>Let me see.</analysis><summary>Chose SQLite.</summary>")
    'Chose SQLite.'
    """
    thoughts = [*_THOUGHTS_END.finditer(summary)]
    text = summary[thoughts[-1].end() :] if thoughts else summary
    if summary_ := _SUMMARY.search(text):
        return summary_[1]
    return "" if not thoughts and _THOUGHTS.search(text) else text  # "" if it was cut before the summary


def without_injected(text: str) -> str:
    """Return `text` without the blocks that aether added; an unclosed one ends with the text.

    >>> without_injected("a <aether-memory layer='x'>b <aether-memory>c</aether-memory> d</aether-memory> e")
    'a  e'
    """
    return without_blocks(text, (INJECTED,))


def without_escapes(text: str) -> str:
    r"""Return `text` without terminal escapes and with plain line ends.

    >>> without_escapes("\x1b[31mred\x1b[0m\r\n")
    'red\n'
    """
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return text.replace("\r\n", "\n").replace("\r", "\n")


# The end of a line of prompt recall, and its reference to the full text.
_IDENTIFIED = lazy(
    r"\s*[-*•+>]\s.*\[(?:wm|phase|pattern)_\w+\]\W*\Z|\W*In full: aether recall --full \S+\s*\Z",
    re.IGNORECASE,
)
# Marks of bold print outside of code, where they are something else.
_EMPHASIS = lazy(r"(`[^`\n]*`)|\*\*")
_BULLET = lazy(r"\s*(?:>\s*)?[-*•+]\s+")
_DAY = lazy(r"\d{4}-\d\d-\d\d(?: \(\d+ days ago\))?:? ")


def without_echoes(text: str, injected: Collection[str] = ()) -> str:
    r"""Return `text` without lines that end in an id of memory or repeat `injected` ones, as a list or with a day.

    >>> without_echoes("I know:\n- 2026-11-21 Never retry.\nGo on.", ["- 2026-11-21 Never retry."])
    'Go on.'
    >>> without_echoes("Never retry.\nGo on.", ["- 2026-11-21 Never retry."])
    'Never retry.\nGo on.'
    """
    lines = text.split("\n")
    may_repeat = bool(injected) and any(map(_may_be_listed, lines))
    if not may_repeat and "[" not in text and "in full" not in text.lower():
        return text
    injected_words = {_words(line) for line in injected if _BULLET.match(line)} if may_repeat else set()
    remaining: list[str] = []
    for line in lines:
        listed = injected_words and (_BULLET.match(line) or _DAY.match(line.lstrip()))
        if not (_IDENTIFIED.match(line) or (listed and _words(line) in injected_words)):
            remaining.append(line)
        elif remaining and remaining[-1].rstrip(" *_").endswith(":"):
            remaining.pop()  # it only announced them
    return "\n".join(remaining)


def _may_be_listed(line: str) -> bool:
    """Return whether a line starts as an entry of a list or a day does."""
    first = line.lstrip()[:1]
    return first.isdecimal() or (bool(first) and first in "-*•+>")


def _words(line: str) -> str:
    bare = _BULLET.sub("", line, count=1)
    return " ".join(_DAY.sub("", bare.lstrip(), count=1).replace("**", "").split())


def without_emphasis(text: str) -> str:
    """Return `text` without the marks of bold print; code is left as it is.

    >>> without_emphasis("**Fixed:** `load(**options)` reads `a ** b`.")
    'Fixed: `load(**options)` reads `a ** b`.'
    """
    return _EMPHASIS.sub(lambda match: match[1] or "", text) if "**" in text else text
