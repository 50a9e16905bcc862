"""Modes and tiers: what each kind of conversation never compresses, and what each size of window allows.

The words of a mode are those of the original requirement; a person chooses the mode. Sentences of a category that a mode never
compresses stay word for word in a checkpoint, for as long as it has room for them. A tier is a class of window sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import floor
from typing import NamedTuple, get_args

from aether.conversation.shapes import Mode, Tier
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
        category = next(
            (name for name, stems_of_category in rules.items() if stems_of_category & carried), ""
        )
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


# OLLM-CLI allows 0, 1, 5, 10 and 15 checkpoints. With fewer than ten the oldest would be merged before they age at
# 3, 6 and 10 compressions; a rollover leaves one.
TIERS = (
    Tier(1, "minimal", 4_096, 200, 1, is_rollover=True),
    Tier(2, "basic", 8_192, 500, 10),
    Tier(3, "standard", 16_384, 1_000, 10),
    Tier(4, "premium", 32_768, 1_500, 10),
    Tier(5, "ultra", 0, 1_500, 15),
)
# Of a window whose limit no profile names; the rest is for the answer.
LIMIT_SHARE = 0.85
# Billions of parameters where the name of a model has none.
UNKNOWN_BILLIONS = 7.0
LOSS = 0.9
"""What is left of the reliability after one more compression."""
_BILLIONS = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b(?![a-z])", re.IGNORECASE)
_FACTORS = ((70, 0.95), (30, 0.85), (13, 0.7), (7, 0.5))
_WORDS = ((0.85, "excellent"), (0.7, "good"), (0.5, "moderate"), (0.4, "low"))
_WARN_AFTER = ((3, 3), (7, 5), (13, 7))


class Reliability(NamedTuple):
    """How far the summaries of a model can be trusted after some compressions."""

    value: float
    level: str
    warn: bool
    """Whether a new conversation, or a larger model, is advisable."""


def tier(window: int) -> Tier:
    """Return the tier of a window; the bounds are inclusive, and there is no gap.

    >>> [tier(size).number for size in (2_048, 4_096, 4_097, 8_192, 16_384, 32_768, 40_000, 1_000_000)]
    [1, 1, 2, 2, 3, 4, 5, 5]
    """
    return next(tier for tier in TIERS if not tier.most_window or window <= tier.most_window)


def prompt_limit(window: int, profiles: Mapping[int, int]) -> int:
    """Return the most tokens of a prompt in this window: the value of its profile, else 85 %.

    >>> prompt_limit(4_096, {4_096: 3_482}), prompt_limit(8_000, {})
    (3482, 6800)
    """
    return max(1, min(window, profiles.get(window) or floor(window * LIMIT_SHARE)))


def billions(model: str) -> float:
    """Return the size of a model in billions of parameters, read from its name.

    >>> billions("qwen2.5-coder:0.5b"), billions("llama3.1:70B-instruct"), billions("gpt-4")
    (0.5, 70.0, 7.0)
    """
    match = _BILLIONS.search(model)
    return float(match[1]) if match else UNKNOWN_BILLIONS


def reliability(model: str, compressions: int) -> Reliability:
    """Return how far to trust the context after so many compressions by `model`.

    >>> reliability("llama3:8b", 0).value, reliability("llama3:70b", 2).level, reliability("phi:3b", 4).warn
    (0.5, 'good', True)
    """
    size = billions(model)
    factor = next((factor for least, factor in _FACTORS if size >= least), 0.3)
    value = factor * LOSS**compressions
    level = next((word for least, word in _WORDS if value >= least), "critical")
    after = next((most for largest, most in _WARN_AFTER if size <= largest), 10)
    return Reliability(round(value, 4), level, compressions >= after)
