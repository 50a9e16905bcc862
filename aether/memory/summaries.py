"""Summaries: how a text is recognised that stands where a summary should, and is none.

Five kinds: it is *empty* (no word in it); it *refuses* (opens in the first person with what it cannot do, or
as a language model); it is an *error text* (opens as error messages of programs and providers do); it
*echoes* (repeats the instruction, or most of the input word for word); it is *longer* than the input.
The last two are judged only where the input is long enough to be shortened.
"""

from __future__ import annotations

import re

from aether.shapes import Handoff
from aether.text.patterns import lazy
from aether.text.words import words

# Two short items may well need a longer sentence to sum them up.
JUDGED_INPUT_CHARS = 400
JUDGED_INPUT_WORDS = 120
# An extractive summary repeats sentences; this share of the whole input is repetition, not selection.
ECHO_SHARE = 0.8
# Runs of words are compared: single words are shared by any two texts.
ECHO_RUN_WORDS = 5
# Long enough not to be met by accident in an instruction.
ECHO_INSTRUCTION_CHARS = 40

_REFUSAL = lazy(
    r"\W*(?:(?:i(?:'m| am) (?:very |really |so )?sorry|sorry|apologies|my apologies|unfortunately)\b[\s\S]{0,60}?\bi(?:'m| am)? "
    r"?(?:can(?:no|')t|could(?:n't| not)|unable|not able|do(?:n't| not)|won't|will not)"
    r"|i (?:can(?:no|')t|am unable to|am not able to|won't|will not|must decline|must refuse|do not have (?:access|enough))"
    r"|i'm (?:unable|not able)|as an? (?:ai|language model|large language|assistant)\b)",
    re.IGNORECASE,
)
_ERROR = lazy(
    r"\W*(?:(?:api |internal |internal server |server |fatal |unexpected |http |request )?error\s*(?::|\(|\d{3}|=)"
    r"|traceback \(most recent call last\)|http[ /]?[\d.]*\s*[45]\d\d\b|[45]\d\d (?:bad|unauthorized|payment|forbidden|not|request|too|internal|service|gateway)\b"
    r"|\{?\s*\"?(?:type\"?\s*:\s*\"error|error\"?\s*:)|(?:rate_limit|overloaded|invalid_request|authentication|permission|not_found|api)_error\b"
    r"|rate limit (?:exceeded|reached)|too many requests\b|connection (?:refused|reset|error|timed out)|prompt is too long|context length exceeded"
    r"|[a-z_.]*(?:error|exception):)",
    re.IGNORECASE,
)


def summary_faults(summary: str, handoff: Handoff | None) -> list[str]:
    """Return why `summary` is none, each in words that follow "summary"; empty where it is one.

    >>> summary_faults("I'm sorry, but I can't help with that.", None)
    ['is a refusal: write two or three sentences about what was done and decided.']
    """
    wanted = "write two or three sentences about what was done and decided."
    if not any(words(summary)):
        return [f"is empty: {wanted}"]
    if _REFUSAL.match(summary.replace("’", "'")):
        return [f"is a refusal: {wanted}"]
    if _ERROR.match(summary):
        return [f"is an error message: {wanted}"]
    return _faults_beside(summary, handoff) if handoff else []


def _faults_beside(summary: str, handoff: Handoff) -> list[str]:
    contents = [item["content"] for item in handoff["items"]]
    chars = sum(map(len, contents))
    if _repeats_instruction(summary, handoff, contents):
        return ["repeats the instruction: write what the items say, not what was asked."]
    if chars >= JUDGED_INPUT_CHARS and len(summary) > chars:
        return [f"has {len(summary)} characters, more than the items it stands for ({chars}): write less."]
    if _echoes(summary, contents):
        return ["repeats the items instead of summing them up: write two or three sentences."]
    return []


def _repeats_instruction(summary: str, handoff: Handoff, contents: list[str]) -> bool:
    said = " ".join(summary.split())
    if len(said) < ECHO_INSTRUCTION_CHARS or said not in " ".join(
        str(handoff.get("prompt", {}).get("text", "")).split()
    ):
        return False
    # The rendered prompt may hold the items too, and repeating a sentence of theirs is what extraction does.
    return not any(said in " ".join(content.split()) for content in contents)


def _echoes(summary: str, contents: list[str]) -> bool:
    given = [word for content in contents for word in words(content)]
    if len(given) < JUDGED_INPUT_WORDS:
        return False
    runs = _runs(given)
    return len(runs & _runs(list(words(summary)))) >= ECHO_SHARE * len(runs)


def _runs(said: list[str]) -> set[tuple[str, ...]]:
    return {tuple(said[at : at + ECHO_RUN_WORDS]) for at in range(len(said) - ECHO_RUN_WORDS + 1)}
