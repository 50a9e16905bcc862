"""Sentences: where one statement ends and the next begins, in prose, lists, logs and code.

Every sentence is a stretch of the text itself, without surrounding blanks; a soft line break inside
one is written as a space. Nothing but blanks and fence markers is lost. The cost is linear in the text.
"""

from __future__ import annotations

import re

from aether.text.patterns import lazy

# A hard-wrapped line is about this long; a shorter one was ended on purpose.
WRAPPED_LINE_CHARS = 50

_FENCE = lazy(r"^\s*(?:```|~~~)")
_OWN_LINE = lazy(r"\s*(?:[-*+•>#|$]|\d{1,3}[.)]\s|[A-Z][\w ]{0,30}:\s|\S+:\d+)")
_END = lazy(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_`]*+\s+|[。！？]+[」』”）]*\s*")
_NO_END = lazy(
    r"(?:^|[\s(\"'])(?:[A-Za-z]|e\.g|i\.e|cf|vs|etc|approx|resp|incl|mr|mrs|ms|dr|prof|st|no|fig|sec|al|\d{1,3})\.$",
    re.IGNORECASE,
)
# A number behind a word ends a sentence where another one opens ("step 3. We …"), unless it numbers a figure.
_COUNTED = lazy(r"(?<!\bno\.)(?<!\bfig\.)(?<!\bsec\.)(?<=[a-z][a-z.]) \d{1,3}\.$", re.IGNORECASE)
_PRONOUN = lazy(r"(?:I|We|It|The|This|That|There|They|You|Now|So|All|Then|Next|But|And)\b")
# What breaks off may go on.
_OPEN = lazy(r"(?:…|\.\.)\W*$")
_OPENERS = "\"'“‘(`["
# Long enough for the longest abbreviation with the space before it.
_LOOK_BACK_CHARS = 10


def sentences(text: str) -> list[str]:
    r"""Return the sentences of `text` in order; list entries, headings and lines of code are sentences too.

    >>> sentences("Tests pass. See e.g. app.py for why!\n- keep v1.2\n- drop it")
    ['Tests pass.', 'See e.g. app.py for why!', '- keep v1.2', '- drop it']
    >>> sentences("```\na = f(1. + x)\n```")
    ['a = f(1. + x)']
    """
    found: list[str] = []
    for block, is_code in _blocks(text):
        if is_code:
            found.append(block)
        else:
            found.extend(_split(block))
    return found


def _blocks(text: str) -> list[tuple[str, bool]]:
    """Return stretches without a hard break, and whether each is a line of code."""
    blocks: list[tuple[str, bool]] = []
    wrapped: list[str] = []
    fenced = False
    for line in text.splitlines():
        bare = line.strip()
        if _FENCE.match(line):
            _flush(wrapped, blocks)
            fenced = not fenced
        elif fenced:
            if bare:
                blocks.append((bare, True))
        elif not bare:
            _flush(wrapped, blocks)
        else:
            if wrapped and not _continues(wrapped[-1], bare):
                _flush(wrapped, blocks)
            wrapped.append(bare)
    _flush(wrapped, blocks)
    return blocks


def _flush(wrapped: list[str], blocks: list[tuple[str, bool]]) -> None:
    if wrapped:
        blocks.append((" ".join(wrapped), False))
        wrapped.clear()


def _continues(before: str, line: str) -> bool:
    return len(before) >= WRAPPED_LINE_CHARS and before[-1] not in ".!?:;。！？" and not _OWN_LINE.match(line)


def _split(block: str) -> list[str]:
    found: list[str] = []
    start = ticks = counted = 0
    last_tick = block.rfind("`")
    for end in _END.finditer(block):
        ticks += block.count("`", counted, end.end())
        counted = end.end()
        head = block[max(start, end.end() - _LOOK_BACK_CHARS) : end.end()].rstrip()
        after = block[end.end() : end.end() + 1]
        goes_on = _OPEN.search(head) and after and not (after.isupper() or after in _OPENERS)
        in_ticks = ticks % 2 and last_tick >= end.end()
        counted_up = _COUNTED.search(head) and _PRONOUN.match(block, end.end())
        if goes_on or in_ticks or (_NO_END.search(head) and not counted_up):
            continue
        found.append(block[start : end.end()].strip())
        start = end.end()
    if block[start:].strip():
        found.append(block[start:].strip())
    return found
