"""Cleaning: the text that a person or a model wrote, without the machinery around it.

Agents wrap what a person typed in reminders, environment blocks, command tags and caveats; aether itself
adds marked blocks. None of that was said by anyone. The law: text inside `<aether-memory …>` never
comes through, however the block is nested or torn; nor does what a person marked as `<private>`.

A model quotes lines of memory without those tags, and a person pastes them. ``without_echoes`` removes such lines,
because noted again they would be repeated with one more day in front each time. The law: a line that was not
injected, and bears no id of memory, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from aether.redact.redact import INJECTED, without_blocks
from aether.text.regex import lazy

# Blocks that a program writes into the conversation; the last group are those of Codex.
_MACHINERY = lazy(
    r"<(system-reminder|local-command-caveat|local-command-stdout|local-command-stderr|bash-stdout|bash-stderr|"
    r"command-contents|ide_selection|ide_opened_file|post-tool-use-hook|user-prompt-submit-hook|session-start-hook|"
    r"new-diagnostics|task-notification|tool_use_error|persisted-output|"
    r"environment_context|user_instructions|permissions instructions|collaboration_mode|turn_aborted|"
    r"subagent_notification|recommended_plugins|skills_instructions|apps_instructions|plugins_instructions|INSTRUCTIONS)"
    r"(?:\s[^>]*)?>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_COMMAND = lazy(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_COMMAND_ARGUMENTS = lazy(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_COMMAND_PARTS = lazy(r"<command-(?:name|message|args)>.*?</command-(?:name|message|args)>", re.DOTALL)
_TYPED = lazy(r"<bash-input>.*?(?:</bash-input>|\Z)", re.DOTALL)
_NOTICES = lazy(
    r"^(?:\[Request interrupted by user[^\]]*\]|# AGENTS\.md instructions.*|Caveat: The messages below.*|"
    r"No response requested\.|\(no content\)|###STOP###|API Error: .*|Prompt is too long)\s*$",
    re.MULTILINE,
)
_ESCAPES = lazy(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")


def clean(text: str) -> str:
    """Return what a person or a model said in `text`, and did not mark as private.

    >>> clean("<system-reminder>be brief</system-reminder>Use SQLite. <aether-memory>old</aether-memory>")
    'Use SQLite.'
    >>> clean("<command-name>/compact</command-name><command-args>keep the plan</command-args>")
    '/compact keep the plan'
    """
    if "<" in text:
        text = without_blocks(text)
        text = _MACHINERY.sub("", text)
        text = _TYPED.sub("", text)
        text = _slash_command(text)
    return _NOTICES.sub("", without_escapes(text)).strip()


def without_injected(text: str) -> str:
    """Return `text` without the blocks that aether added; one that is never closed ends with the text.

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


def _slash_command(text: str) -> str:
    """Write a slash command as it was typed; without arguments it asks for nothing worth a note."""
    if "<command-name>" not in text:
        return text
    name, arguments = _COMMAND.search(text), _COMMAND_ARGUMENTS.search(text)
    typed = f"{name[1]} {arguments[1]}" if name and arguments and arguments[1] else ""
    return typed + _COMMAND_PARTS.sub("", text)


# How reminders end a line, and what they say of the rest.
_IDENTIFIED = lazy(
    r"\s*[-*•+>]\s.*\[(?:wm|phase|pattern)_\w+\]\W*\Z|\W*In full: aether recall --full \S+\s*\Z",
    re.IGNORECASE,
)
_BULLET = lazy(r"\s*(?:>\s*)?[-*•+]\s+")
_DAY = lazy(r"\d{4}-\d\d-\d\d(?: \(\d+ days ago\))?:? ")


def without_echoes(text: str, told: Collection[str] = ()) -> str:
    r"""Return `text` without the lines that end in an id of memory, and those that are `told`, as a list or with a day.

    >>> without_echoes("I know:\n- 2026-11-21 Never retry.\nGo on.", ["- 2026-11-21 Never retry."])
    'Go on.'
    >>> without_echoes("Never retry.\nGo on.", ["- 2026-11-21 Never retry."])
    'Never retry.\nGo on.'
    """
    known = {_words(line) for line in told if _BULLET.match(line)}
    if not known and "[" not in text and "In full" not in text:
        return text
    kept: list[str] = []
    for line in text.split("\n"):
        if not _is_echo(line, known):
            kept.append(line)
        elif kept and kept[-1].rstrip(" *_").endswith(":"):
            kept.pop()  # it only announced them
    return "\n".join(kept)


def _is_echo(line: str, known: set[str]) -> bool:
    listed = _BULLET.match(line) or _DAY.match(line.lstrip())
    return bool(_IDENTIFIED.match(line)) or (bool(listed) and _words(line) in known)


def _words(line: str) -> str:
    bare = _BULLET.sub("", line, count=1)
    return " ".join(_DAY.sub("", bare.lstrip(), count=1).replace("**", "").split())
