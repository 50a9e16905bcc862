r"""Modes: what each kind of conversation never compresses, the statements it looks for, and what a summariser keeps.

A rule finds sentences, all of them, in any case. Statements of a category that a mode never compresses stay word for
word in a checkpoint, for as long as it has room for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, get_args

from aether.context.shapes import Mode
from aether.errors import InvalidInput, shown
from aether.text.regex import lazy
from aether.text.words import sentences

MODES: tuple[Mode, ...] = get_args(Mode)
# A longer sentence is pasted text.
MOST_CHARS = 400


class Rule(NamedTuple):
    """How statements of one category are found."""

    category: str
    pattern: re.Pattern[str]


class ModeRules(NamedTuple):
    """The rules of one mode."""

    never_compress: tuple[str, ...]
    """Categories that stay word for word."""
    rules: tuple[Rule, ...]
    guidance: str
    """What a summariser has to keep in this mode."""
    prompt: str = ""
    """What the mode adds to the system prompt."""


def _rule(category: str, pattern: str) -> Rule:
    return Rule(category, lazy(pattern, re.IGNORECASE))


_DECISION = _rule(
    "architecture_decisions",
    r"\b(?:decided|decision|chose|chosen|(?:we(?:'re| are|'ll| will)?|i(?:'m| am|'ll| will)?|let's) (?:going with|go with|use|using|implement|implementing)|"
    r"settled on|agreed (?:on|to)|(?:using|implementing) [\w.+#/-]+(?: [\w.+#/-]+){0,3} (?:because|for|to))\b",
)
_FILE = _rule(
    "code_changes",
    r"\b(?:created|modified|updated|changed|deleted|renamed)\s+(?:the (?:file )?)?[`'\"]?[\w./-]+\.\w{1,8}\b",
)
_API = _rule(
    "api_contracts",
    r"\b(?:interface|class|function|endpoint|route|signature)\s+[`'\"/]?[\w/.:{}-]+|\b(?:GET|POST|PUT|PATCH|DELETE) /[\w/{}:.-]*",
)
_MODEL = _rule("data_models", r"\b(?:schema|table|column|data model|entity|primary key|foreign key)\b")
_REQUIREMENT = _rule(
    "requirements", r"\b(?:must(?: not)?|should(?: not)?|needs? to|have to|has to|required to|requirement)\b"
)
_TASK = _rule("tasks", r"\b(?:task|step|action)(?: \d+)?\s*:")
_MILESTONE = _rule("timeline", r"\b(?:milestone|deadline|due(?: date)?)\b\s*(?::|is|by|on)")
_GOAL = _rule("goals", r"\b(?:goals?|objectives?|aims?)\b\s*(?::|is|are)|\[GOAL\]")
_CONSTRAINT = _rule(
    "constraints",
    r"\b(?:constraint|limit(?:ed)? to|at most|at least|no more than|never|always|budget (?:is|of))\b",
)
_PREFERENCE = _rule(
    "user_preferences",
    r"\b(?:i|we|user|users|they|he|she) (?:(?:really|would|'d|also|always|usually|do(?:n't| not)) )*(?:prefers?|likes?|loves?|hates?|wants?|needs?|dislikes?)\b|\bmy (?:\w+ )?(?:favou?rite|preference|name|email|address)\b",
)
_IMPORTANT = _rule(
    "conversation_context",
    r"\b(?:important|critical|crucial|essential)\b|\bmust remember\b|\b(?:please |always )?remember\b|\bdon't forget\b|\bkeep in mind\b",
)
_ERROR = _rule(
    "error_messages",
    r"\b(?:error|exception|failed|failure|fatal|panic)\b\s*(?:\[[\w-]+\])?\s*:|\b\w+(?:Error|Exception)\b",
)
_TRACE = _rule(
    "stack_traces", r"\btraceback \(most recent call last\)|^\s*at \S+ \(\S+:\d+|\bFile \"[^\"]+\", line \d+"
)  # fmt: skip
_FIX = _rule("fixes_attempted", r"\b(?:tried|attempted|fixed|reverted|worked around)\b")
_REPRODUCTION = _rule("reproduction_steps", r"\b(?:reproduce|replicate|repro|steps)\b")

_RULES: Mapping[Mode, ModeRules] = {
    "developer": ModeRules(
        ("architecture_decisions", "api_contracts", "data_models"),
        (_DECISION, _API, _MODEL, _FILE),
        "Keep decisions on the architecture with their reasons, interfaces and endpoints with their signatures, data models, "
        "files that were changed, and errors that are still open. Leave out discussion and exploration first.",
        "This is a conversation about software development.",
    ),
    "planning": ModeRules(
        ("goals", "requirements", "constraints"),
        (_GOAL, _REQUIREMENT, _CONSTRAINT, _TASK, _MILESTONE),
        "Keep goals, requirements and constraints in their own words, then tasks, owners and dates. Leave out brainstorming and "
        "rejected ideas first.",
        "This is a conversation about planning.",
    ),
    "assistant": ModeRules(
        ("user_preferences", "conversation_context"),
        (_PREFERENCE, _IMPORTANT),
        "Keep what the user prefers, what is to be remembered, names, numbers and dates, and open questions. Leave out small talk "
        "and explanations first.",
    ),
    "debugger": ModeRules(
        ("error_messages", "stack_traces", "reproduction_steps"),
        (_ERROR, _TRACE, _REPRODUCTION, _FIX),
        "Keep error messages and stack traces word for word, the steps that reproduce the fault, and each fix that was tried with "
        "its outcome. Leave out discussion and successful tests first.",
        "This is a conversation about finding a fault.",
    ),
    "user": ModeRules(
        ("user_preferences", "custom_context"),
        (_PREFERENCE, _IMPORTANT._replace(category="custom_context")),
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
    """Return the sentences of `text` that the rules of the mode find, by category, each once, in their order.

    >>> extracted("Hello. I prefer short answers. Important: remember the code 4711.", "assistant")
    {'user_preferences': ['I prefer short answers.'], 'conversation_context': ['Important: remember the code 4711.']}
    """
    found: dict[str, list[str]] = {}
    for sentence in dict.fromkeys(each.strip() for line in text.splitlines() for each in sentences(line)):
        for rule in mode_rules(mode).rules if 0 < len(sentence) <= MOST_CHARS else ():
            if rule.pattern.search(sentence):
                found.setdefault(rule.category, []).append(sentence)
                break
    return found


def never_compressed(texts: Iterable[str], mode: str) -> list[str]:
    """Return the sentences of `texts` that the mode never compresses, each once, in their order."""
    kept = set(mode_rules(mode).never_compress)
    found = dict[str, None]()
    for text in texts:
        for category, said in extracted(text, mode).items():
            if category in kept:
                found.update(dict.fromkeys(said))
    return list(found)
