"""Modes: what each kind of conversation never compresses, by a table of words, and what a summariser keeps.

The words are those of the original requirement; a person chooses the mode. Sentences of a category that a mode never
compresses stay word for word in a checkpoint, for as long as it has room for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, get_args

from aether.conversation.shapes import Mode
from aether.errors import InvalidInput, shown
from aether.text.words import sentences, stem, stems

MODES: tuple[Mode, ...] = get_args(Mode)
# A longer sentence is pasted text.
MOST_CHARS = 400


class ModeRules(NamedTuple):
    """The rules of one mode."""

    never_compress: tuple[str, ...]
    """Categories that stay word for word."""
    rules: Mapping[str, frozenset[str]]
    """The stems of which a sentence of each category has one."""
    guidance: str
    """What a summariser has to keep in this mode."""
    prompt: str = ""
    """What the mode adds to the system prompt."""


def _rules(**words: str) -> dict[str, frozenset[str]]:
    return {category: frozenset(map(stem, listed.split())) for category, listed in words.items()}


_PREFERENCES = "prefer like want need favourite favorite"
_IMPORTANT = "important critical must remember"
_RULES: Mapping[Mode, ModeRules] = {
    "developer": ModeRules(
        ("architecture_decisions", "api_contracts", "data_models"),
        _rules(
            architecture_decisions="decided decision chose chosen using implementing",
            api_contracts="interface class function endpoint",
            data_models="schema table entity",
            code_changes="created modified updated changed",
        ),
        "Keep decisions on the architecture with their reasons, interfaces and endpoints with their signatures, data models, "
        "files that were changed, and errors that are still open. Leave out discussion and exploration first.",
        "This is a conversation about software development.",
    ),
    "planning": ModeRules(
        ("goals", "requirements", "constraints"),
        _rules(
            goals="goal objective",
            requirements="must should need required requirement",
            constraints="constraint limit budget",
            tasks="task step action",
            timeline="milestone deadline due",
        ),
        "Keep goals, requirements and constraints in their own words, then tasks, owners and dates. Leave out brainstorming and "
        "rejected ideas first.",
        "This is a conversation about planning.",
    ),
    "assistant": ModeRules(
        ("user_preferences", "conversation_context"),
        _rules(user_preferences=_PREFERENCES, conversation_context=_IMPORTANT),
        "Keep what the user prefers, what is to be remembered, names, numbers and dates, and open questions. Leave out small talk "
        "and explanations first.",
    ),
    "debugger": ModeRules(
        ("error_messages", "stack_traces", "reproduction_steps"),
        _rules(
            error_messages="error exception failed",
            stack_traces="traceback",
            reproduction_steps="reproduce replicate steps",
            fixes_attempted="tried attempted fixed",
        ),
        "Keep error messages and stack traces word for word, the steps that reproduce the fault, and each fix that was tried with "
        "its outcome. Leave out discussion and successful tests first.",
        "This is a conversation about finding a fault.",
    ),
    "user": ModeRules(
        ("user_preferences", "custom_context"),
        _rules(user_preferences=_PREFERENCES, custom_context=_IMPORTANT),
        "Keep what the user wrote about themselves and asked to be remembered, in their words. Leave out discussion first.",
    ),
}  # fmt: skip


def mode_rules(mode: str) -> ModeRules:
    """Return the rules of a mode.

    Raises:
        InvalidInput: there is no such mode.
    """
    if mode not in MODES:
        raise InvalidInput(
            f"{shown(mode)} is not a mode.", fix=f"Use one of {', '.join(MODES)}.", where="mode"
        )
    return _RULES[mode]


def extracted(text: str, mode: str) -> dict[str, list[str]]:
    """Return the sentences of `text` that have a word of a category of the mode, by category, each once, in their order.

    >>> extracted("Hello. I prefer short answers. Important: remember the code 4711.", "assistant")
    {'user_preferences': ['I prefer short answers.'], 'conversation_context': ['Important: remember the code 4711.']}
    """
    rules = mode_rules(mode).rules
    listed: dict[str, list[str]] = {}
    for sentence in dict.fromkeys(
        sentence.strip() for line in text.splitlines() for sentence in sentences(line)
    ):
        carried = set(stems(sentence)) if 0 < len(sentence) <= MOST_CHARS else set()
        category = next((name for name, wanted in rules.items() if wanted & carried), "")
        if category:
            listed.setdefault(category, []).append(sentence)
    return listed


def never_compressed(texts: Iterable[str], mode: str) -> list[str]:
    """Return the sentences of `texts` that the mode never compresses, each once, in their order."""
    never = mode_rules(mode).never_compress
    by_category = [extracted(text, mode) for text in texts]
    return list(
        dict.fromkeys(
            sentence
            for listed in by_category
            for name in listed
            if name in never
            for sentence in listed[name]
        )
    )
