"""No function over text is worse than linear: eight times the text takes about eight times the time."""

from __future__ import annotations

import json
from time import process_time

import pytest

from aether.architects.base import Request, Settings
from aether.architects.extractive import complete
from aether.memory.capture import notes
from aether.memory.capture.extract import capture
from aether.messages import shell
from aether.messages.records import Record
from aether.redact import assignments, redact, rules, values
from aether.text import (
    cleaning,
    identifiers,
    json_edit,
    selection,
    similarity,
    summary_checks,
    tags,
    words,
)
from aether.tokens import estimate
from tests import effort
from tests.architects.extractive.handoffs import count, handoff, item

SEEDS = (
    "1. ", "a ", "- x\n", "you must not ", "because ", "https://a.b/", "`git x` ", "a.b.c/", "foo_bar ", "Error: x ",
    "\\n", "key=", "password ", "the token is ", "<private>", "</private>", "<aether-memory ", '{"a":', "[", "((",
    '"', "'", "```\n", "# h\n", "| a | b |\n", "1,2.", "we decided to use x instead of y. ", "no, ", "? ", "! ", "...",
    "é", "日本", "\t", "\r\n", "::", "--flag ", "sk-", "eyJ.", "AAAA", "://a:b@", "-----BEGIN " + "PRIVATE KEY-----\n",
    "curl -u a:", "$", "use x, not y; ", "echo x | ", "kind: Secret\ndata:\n a: b\n", "db:5432:a:b:", 'pass="', "login a/",
)  # fmt: skip


def _capture(kind):
    """Return a function that notes what a person or a model says, or what a command puts out."""
    call = Record("call", tool="Bash", arguments={"command": "make"}, call_id="c")
    return lambda text: list(capture([call, Record(kind, text, call_id="c", is_error=True)]))


def _complete(text):
    complete(
        Request("session", handoff(item(text[:-5]), item(text)), "", {}, 100),
        settings=Settings(),
        count=count,
    )


def _edit(text):
    whole = json.dumps([text, {"a": text, "b": []}, *text[: len(text) // 8]], indent=1)
    json_edit.put(whole, [1, "a"], 1)
    json_edit.add(whole, [1, "b"], [(None, text)])
    json_edit.drop(whole, [], 2)


FUNCTIONS = {
    "redact": redact.redact, "ruled": rules.without_ruled, "assigned": assignments.without_assigned,
    "said": assignments.without_said, "blocks": redact.without_blocks,
    "whole blocks": redact.without_whole_blocks, "drawn": values.is_drawn, "template": values.is_template,
    "password": values.is_password, "docker": values.is_docker_auth, "escapes": rules.without_escapes,
    "estimate": estimate.estimate, "runs": words.runs, "query": words.query_terms, "sentences": words.sentences,
    "stems": lambda text: list(words.stems(text)), "parts": words.parts, "term": words.term,
    "meaning": similarity.meaning, "similarity": lambda text: similarity.similarity(text, text[1:]),
    "contradicts": lambda text: similarity.contradicts(text, "not " + text),
    "quote": lambda text: words.find_quote(text[1:], [text]),
    "clean": cleaning.clean, "injected": cleaning.without_injected,
    "terminal": cleaning.without_escapes, "echoes": cleaning.without_echoes, "identifiers": identifiers.identifiers,
    "shell": identifiers.commands, "faults": summary_checks.model_fault, "units": selection.units_of,
    "choose": lambda text: selection.choose(selection.units_of(text), most=100, count=len),
    "support": lambda text: summary_checks.proven_lines(text, [text[1:]]),
    "shorten": lambda text: notes.shorten(text, 500), "notable": shell.is_notable, "reads": shell.only_reads,
    "signature": shell.command_signature, "target": shell.command_target, "short": shell.short_command,
    "outcome": shell.outcome_line, "excerpt": shell.error_excerpt, "tags": tags.neutralize, "terms": words.terms,
    "failure": lambda text: shell.reports_failure("make", text), "score": _complete, "edit": _edit,
    "call": lambda text: list(capture([Record("call", tool="Bash", arguments={"command": text}, call_id="c")])),
    **{f"capture {kind}": _capture(kind) for kind in ("user", "assistant", "result")},
}  # fmt: skip
# Below this a machine's other work hides the growth. Linear is eight times the time, quadratic 64 times.
# All seeds to a megabyte take an hour.
SIZES = (1 << 14, 1 << 17, 1 << 20) if effort.FULL_TRIALS else (1 << 12, 1 << 15)
LEAST_SECONDS, MOST_GROWTH, TRIES = 0.1, 24, 3


def _seconds(function, text):
    """Return the processor time of one call: a second might be answered from a cache."""
    started = process_time()
    function(text)
    return process_time() - started


def _text(seed, size, *, first=0):
    return (seed * ((size + first) // len(seed) + 1))[first : first + size]


def _least_seconds(function, seed, size):
    """Return the least time of a few texts: each is another one, so that no cache answers."""
    return min(_seconds(function, _text(seed, size, first=first)) for first in range(TRIES))


def _grows(function, seed):
    """Return the sizes and times between which the time grows too fast."""
    before = _seconds(function, _text(seed, SIZES[0]))
    for size in SIZES[1:]:
        after = _seconds(function, _text(seed, size))
        if after > LEAST_SECONDS and after > MOST_GROWTH * max(before, LEAST_SECONDS / MOST_GROWTH):
            # Other work of the machine costs this process time as well, now and then.
            after = _least_seconds(function, seed, size)
            if after > MOST_GROWTH * max(before, LEAST_SECONDS / MOST_GROWTH):
                return [(size, round(before, 4), round(after, 4))]
        before = after
    return []


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_time_grows_with_the_length_of_the_text(name):
    seeds = SEEDS if effort.FULL_TRIALS else SEEDS[::4]
    assert not {seed: found for seed in seeds if (found := _grows(FUNCTIONS[name], seed))}
