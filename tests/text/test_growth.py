"""No function over text is worse than linear: four times the text takes about four times the time."""

from __future__ import annotations

from time import process_time

import pytest

from aether.backends.extractive import clauses
from aether.memory.capture import notes
from aether.messages import shell
from aether.redact import assignments, commands, forms, redact
from aether.text import classify, cleaning, identifiers, model_faults, similarity, words
from aether.tokens import estimate

SEEDS = (
    "1. ", "a ", "- x\n", "you must not ", "because ", "https://a.b/", "`git x` ", "a.b.c/", "foo_bar ", "Error: x ",
    "\\n", "key=", "password ", "the token is ", "<private>", "</private>", "<aether-memory ", '{"a":', "[", "((",
    '"', "'", "```\n", "# h\n", "| a | b |\n", "1,2.", "we decided to use x instead of y. ", "no, ", "? ", "! ", "...",
    "é", "日本", "\t", "\r\n", "::", "--flag ", "sk-", "eyJ.", "AAAA", "://a:b@", "-----BEGIN " + "PRIVATE KEY-----\n",
    "curl -u a:", "$", "use x, not y; ", "echo x | ", "kind: Secret\ndata:\n a: b\n", "db:5432:a:b:", 'pass="', "login a/",
)  # fmt: skip
FUNCTIONS = {
    "redact": redact.redact, "shapes": forms.without_shapes, "assigned": assignments.without_assigned,
    "said": assignments.without_said, "commands": commands.without_commands, "blocks": redact.without_blocks,
    "whole blocks": redact.without_whole_blocks, "drawn": assignments.is_drawn, "template": assignments.is_template,
    "docker": commands.is_docker_auth, "escapes": forms.without_escapes,
    "estimate": estimate.estimate, "runs": words.runs, "query": words.query_terms, "sentences": words.sentences,
    "stems": lambda text: list(words.stems(text)), "parts": words.parts, "term": words.term,
    "fingerprint": similarity.fingerprint, "similarity": lambda text: similarity.similarity(text, text[1:]),
    "contradicts": lambda text: similarity.contradicts(text, "not " + text),
    "containment": lambda text: similarity.containment(text, text[1:]),
    **{name: getattr(classify, name) for name in (
        "states_choice", "without_lead_in", "rule", "statements_by_kind", "asserts", "message_by_kind", "kind_of_answer",
        "binding_kind", "kind_of_paragraph", "is_reply", "asks_for_decision", "is_empty_reply",
        "is_thanks", "closing_question", "prose",
    )},
    "rules": lambda text: classify.rules([], text), "clean": cleaning.clean, "injected": cleaning.without_injected,
    "terminal": cleaning.without_escapes, "echoes": cleaning.without_echoes, "identifiers": identifiers.identifiers,
    "shell": identifiers.commands, "faults": model_faults.model_fault, "trim": clauses.trim,
    "bullets": clauses.unbulleted, "machine": clauses.is_machine_text, "clauses": clauses.split_clauses,
    "shorten": lambda text: notes.shorten(text, 500), "notable": shell.is_notable, "reads": shell.only_reads,
    "signature": shell.command_signature, "target": shell.command_target, "short": shell.short_command,
    "outcome": shell.outcome_line, "excerpt": shell.error_excerpt,
}  # fmt: skip
# Below this a machine's other work hides the growth. Linear is four times the time; sixteen is quadratic.
LEAST_SECONDS, MOST_GROWTH = 0.03, 9


def _seconds(function, text):
    """Return the least processor time of three calls."""
    taken = []
    for _ in range(3):
        begun = process_time()
        function(text)
        taken.append(process_time() - begun)
        if taken[-1] > 1:
            break
    return min(taken)


def _text(seed, size):
    return (seed * (size // len(seed) + 1))[:size]


def _grows(function, seed, sizes):
    """Return the sizes and times between which the time grows too fast."""
    before = _seconds(function, _text(seed, sizes[0]))
    for size in sizes[1:]:
        after = _seconds(function, _text(seed, size))
        if after > LEAST_SECONDS and after > MOST_GROWTH * max(before, LEAST_SECONDS / MOST_GROWTH):
            return [(size, round(before, 4), round(after, 4))]
        before = after
    return []


def _too_fast(seeds, sizes):
    return {
        (name, seed): found
        for name, function in FUNCTIONS.items()
        for seed in seeds
        if (found := _grows(function, seed, sizes))
    }


def test_time_grows_with_the_length_of_the_text():
    """Two seeds at small sizes; the slow tier has all of them up to a megabyte."""
    assert not _too_fast(("1. ", "you must not "), (1 << 10, 1 << 12))


@pytest.mark.slow
def test_time_grows_with_the_length_of_the_text_up_to_a_megabyte():
    assert not _too_fast(SEEDS, (1 << 14, 1 << 16, 1 << 18, 1 << 20))
