"""The gate: whether what a summariser wrote is a summary of what it was given.

Not a summary is what is empty, longer than asked for or than what it stands for, a copy of one message, a refusal,
the text of an error, or only markup. A summary that speaks of errors and refusals is one: only an answer
that begins as one, and says little else, counts. What a summary may have left out is no matter for the gate:
the machine fields stand beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from aether.compaction.shapes import SummaryTask
from aether.shapes import Counter
from aether.text.words import words

# A model counts by another tokenizer, up to a third more than ours; `apply` cuts what is a little too long.
SLACK = 1.35
# A summary of a few words may stand for a few words; only from here on must it be shorter than its input.
LEAST_COMPARED_TOKENS = 60
# Runs of this many words are not repeated by accident, nor by quoting names and numbers.
RUN_WORDS = 8
# An echo holds hardly anything else; a good summary quotes less than half of itself from any single place.
ECHOED_SHARE = 0.8
# A shorter summary may well be one sentence of the input.
LEAST_ECHO_WORDS = 40
# Refusals and errors say why in a few sentences; what goes on after them is about the conversation.
REFUSAL_CHARS = 600
ERROR_CHARS = 800

_REFUSES = re.compile(
    r"\W*(?:(?:i'm|i am|we're)(?: (?:so|very|really|truly))? (?:sorry|afraid)|(?:my )?apologies|i apologi[sz]e|sorry|unfortunately)\b[^.!?\n]{0,80}\b"
    r"(?:can't|cannot|can not|unable|not able|won't|not allowed|no access|don't have)\b"
    r"|\W*(?:sorry[,.]? )?(?:i|we) (?:can't|cannot|can not|am unable to|am not able to|won't|will not|must (?:decline|refuse)|have to decline|decline to|refuse to|do not feel comfortable|don't feel comfortable)\b"
    r"[^.!?\n]{0,60}\b(?:help|assist|summari[sz]e|provide|comply|continue|do that|fulfil|fulfill|complete|create|generate|process|access|with (?:that|this)|this (?:request|conversation|content|task))"
    r"|\W*as an? (?:ai|large|language)\b[^.!?\n]{0,60}\b(?:can't|cannot|unable|not able|don't)\b"
    r"|\W*(?:this|that|the|your) (?:request|content|conversation|prompt) (?:violates|was flagged|has been flagged|goes against|is against)\b"
    r"|\W*(?:i|we) (?:don't|do not) (?:see|have) (?:any|a|the|enough|access to)[^.!?\n]{0,60}\b(?:conversation|messages?|context|transcript|content|data|text)\b"
    r"|\W*(?:please|could you|can you) (?:please )?(?:provide|share|paste|send)\b[^.!?\n]{0,60}\b(?:conversation|messages?|transcript|text|content)\b"
    r"|\W*(?:there is|there's|i see) (?:no|nothing)\b[^.!?\n]{0,30}\b(?:conversation|messages?|content|to summari[sz]e)\b",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"\W*(?:traceback \(most recent call last\)|(?:api |http |server |internal |fatal |unexpected |request )*(?:error|exception)\b(?: code)?\s*[:\d(]|"
    r"(?:http/\d(?:\.\d)? )?[45]\d\d[ :,-]+(?:bad request|unauthori[sz]ed|payment required|forbidden|not found|request time-?out|payload too large|too many requests|internal server error|bad gateway|service unavailable|gateway time-?out)\W*(?:$|[.:,{-])|(?:error|status)(?: code)?:? [45]\d\d\b|\w+(?:Error|Exception)\b[:(]|"
    r"(?:internal server error|bad gateway|service unavailable|gateway time-?out|too many requests|rate[ -]?limit(?:ed)?(?: exceeded| reached)?\W*(?:$|for|please|try|retry|on)|overloaded(?:_error)?\W*(?:$|please|try)|"
    r"quota exceeded|insufficient (?:quota|credits?)|request timed out|connection (?:error|refused|reset|timed out)\b|(?:invalid|incorrect|missing) api[ _-]?key|unauthori[sz]ed\W*$|"
    r"(?:the )?(?:model|server|service) is (?:currently )?(?:overloaded|unavailable|not available|busy)|prompt is too long|context[_ ]length[_ ]exceeded|maximum context length|"
    r"an error occurred|something went wrong|no response from|upstream (?:error|connect)))",
    re.IGNORECASE | re.MULTILINE,
)
_TRACE = re.compile(
    r"Traceback \(most recent call last\):\s*\n\s+File |^\s+at [\w.$<>]+\([^()\n]*:\d+(?::\d+)?\)$",
    re.MULTILINE,
)
_HTML = re.compile(r"\W*<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_MARKUP = re.compile(r"<[^<>]{0,200}>|\{\{[^{}]*\}\}|\[[^\[\]\n]{0,60}\](?!\()|[#*_`>|~=-]+")
_PLACEHOLDER = re.compile(
    r"\W*(?:n/?a|none|null|nil|undefined|todo|tbd|empty|no (?:summary|content|response|answer|output)(?: (?:requested|available|provided))?|"
    r"(?:insert |your |the )?summary(?: (?:goes )?here)?|lorem ipsum.*|ok(?:ay)?|sure|done|test|placeholder|understood|got it|i understand|\.+|"
    r"(?:sure|certainly|of course|here(?: is|'s))[^.\n]{0,60}summary[^.\n]{0,60}[:.!]?)\W*",
    re.IGNORECASE | re.DOTALL,
)
_ERROR_KEYS = frozenset({"error", "errors", "detail", "exception", "traceback"})
_FENCED = re.compile(r"\A\s*```\w*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)


def rejected(prose: str, task: SummaryTask, *, count: Counter) -> str:
    """Return why `prose` is no summary for `task`, in words; empty where it is accepted."""
    text = prose.strip()
    return unfit(text) or _too_long(text, task, count) or _echo(text, [each.text for each in task.said])


def unfit(prose: str, said: Iterable[str] = ()) -> str:
    """Return why `prose` is no summary of anything, nor of the messages `said`, however long it is; empty where it may be one.

    >>> unfit("I'm sorry, I can't help with that."), unfit("Chose SQLite; the tests pass.")
    ('It is a refusal.', '')
    """
    text = prose.strip()
    if not text:
        return "It is empty."
    return _nothing(text) or _error(text) or _refusal(text) or _echo(text, said)


def _nothing(text: str) -> str:
    if _PLACEHOLDER.fullmatch(text) or not any(map(str.isalnum, _MARKUP.sub(" ", text))):
        return "It says nothing."
    return ""


def _error(text: str) -> str:
    if _HTML.match(text):
        return "It is an HTML page."
    fenced = _FENCED.match(text)
    bare = fenced[1] if fenced else text
    if bare.lstrip().startswith("{") and _is_error_object(bare):
        return "It is the text of an error."
    trace = _TRACE.search(text[:ERROR_CHARS])
    if trace and len(text[: trace.start()].split()) < RUN_WORDS:
        return "It is a stack trace."
    return "It is the text of an error." if len(text) <= ERROR_CHARS and _only(_FAILED, text) else ""


def _is_error_object(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and bool(_ERROR_KEYS & found.keys() or found.get("type") == "error")


def _only(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether `text` begins like that, and does not go on to tell of a conversation."""
    return bool(pattern.match(text)) and not _TELLS.search(text)


# A message of a server, or of a model that refuses, lists nothing and has no headings.
_TELLS = re.compile(
    r"^\s*(?:[-*•] |\d{1,2}[.)] |#{1,6} )|\b(?:we|the (?:user|agent|assistant|team)|they) \w+ed\b",
    re.MULTILINE,
)


def _refusal(text: str) -> str:
    return "It is a refusal." if len(text) <= REFUSAL_CHARS and _only(_REFUSES, text) else ""


def _too_long(text: str, task: SummaryTask, count: Counter) -> str:
    tokens = count(text)
    most = int(task.max_tokens * SLACK)
    if tokens > most:
        return f"It has {tokens} tokens; {task.max_tokens} were asked for."
    if tokens <= LEAST_COMPARED_TOKENS:
        return ""
    given = 0
    for told in (task.previous, *(said.text for said in task.said)):
        given += count(told)
        if given > tokens:
            # The rest need not be counted, which takes long after thousands of messages.
            return ""
    return f"It has {tokens} tokens, no fewer than the {given} that it stands for."


def _echo(text: str, said: Iterable[str]) -> str:
    written = list(words(text))
    if len(written) < LEAST_ECHO_WORDS:
        return ""
    mine = _runs(written)
    least = ECHOED_SHARE * len(mine)
    # A message with fewer characters than that has fewer words, too.
    copies = (len(mine & _runs(words(each))) >= least for each in said if len(each) >= least)
    return "It copies one message." if any(copies) else ""


def _runs(said: Iterable[str]) -> set[tuple[str, ...]]:
    listed = list(said)
    return set(zip(*(listed[at:] for at in range(RUN_WORDS)), strict=False))
