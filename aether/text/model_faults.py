"""Model faults: the reasons for which a model's answer is not the requested summary.

A fault is an empty text, a placeholder, a refusal, the text of an error, an echo of the instruction or of the input,
a text longer than requested or than its input, or one without a word of its own about the input: "discussed some
code" fits any conversation. A summary that mentions errors and refusals is fine: only an answer that opens as one, and
says little else, is a fault. Omissions are checked by `memory.fidelity`.
"""

from __future__ import annotations

import json
import re
from collections import Counter as Tally
from collections.abc import Collection, Iterable

from aether.text.regex import lazy
from aether.text.words import stems, words
from aether.types import Counter

# A model counts by another tokenizer, up to a third more than ours; the caller cuts a small excess.
SLACK = 1.35
# A summary of a few words may replace a few words; only from here on must it be shorter than its input.
LEAST_COMPARED_TOKENS = 60
# Runs of this many words are not repeated by chance, nor by quoting names and numbers.
RUN_WORDS = 8
# An echo contains hardly anything else; a good summary quotes less than half of itself from any single place.
ECHOED_SHARE = 0.8
# A shorter summary may well be one sentence of the input.
LEAST_ECHO_WORDS = 40
# Shorter inputs cannot be selected from.
LEAST_INPUT_WORDS = 120
# Too long to be part of an instruction by chance.
LEAST_INSTRUCTION_CHARS = 40
# Refusals and errors give their reason in a few sentences; a longer text is about the conversation.
REFUSAL_CHARS = 600
ERROR_CHARS = 800
# So much of the input shows the script that it is in.
_SAMPLE_TEXTS, _SAMPLE_CHARS = 50, 200

# So many words of any part of the input show that an answer is about it; one of its goal or its files does, too.
LEAST_SHARED = 2
# And a longer answer shares at least this part of its words with it, also in another language.
LEAST_SHARED_PART = 0.1
# In a span of so few words "the bug was fixed" can be all that there is to say.
SMALL_SPAN_WORDS = 30

EMPTY = "is empty"
UNSPECIFIC = "says nothing specific: name the goal, the files, the results"
UNRELATED = "has no word of the goal, the files or the rest of its input"

# Words that a text about any conversation consists of.
_TALK = frozenset(
    "please summarize summarise summarized summarised summary summaries short shorter long longer brief briefly discuss "
    "discussed discusses discussion talk talked chat conversation dialogue transcript message messages text content context "
    "user users assistant agent agents model models llm ai language service unavailable available overloaded busy try again "
    "later retry wait moment compaction compacted compressed history above below following previous earlier prior "
    "provided provide given input output response answer answered reply request requested asked ask asks help helped wanted "
    "some several various many multiple different certain general generally specific few lot lots thing things stuff "
    "something anything everything nothing topic topics subject subjects point points detail details information matter "
    "matters aspect aspects item items part parts step steps continue continued continues continuing proceed progress "
    "ongoing yes no not ok okay fine good great sure well ready done finished complete completed completes happened occurred "
    "went go going make made makes making use used using get got need needed needs want wants let look looked looking see "
    "seen know say said says told first then next finally also etc here like cannot can't couldn't don't didn't won't unable "
    "enough more less much most only still already now so too very really it's that's there's i'm i'll i've you're we're "
    "failed fail fails failure retries maximum reached technical successful successfully relevant important main key current currently temporarily end ended start started".split()
)
# Words about any work on programs: they say something of a small span only.
_TOPIC = frozenset(
    "code coding codebase program programs programming software file files function functions module modules class classes "
    "script scripts project projects repository repo bug bugs error errors issue issues problem problems fix fixed fixes "
    "fixing change changed changes changing update updated updates edit edited edits modify modified modification "
    "modifications improve improved improvement improvements implement implemented implementation feature features task "
    "tasks work worked works working write wrote written add added adds remove removed create created run ran command "
    "commands tool tools call calls test tests tested testing debug debugged debugging result results data solution "
    "solutions solve solved resolve resolved handle handled review reviewed check checked development developer refactor "
    "refactored refactoring support supported".split()
)

_REFUSES = lazy(
    r"\W*(?:(?:i'm|i am|we're)(?: (?:so|very|really|truly))? (?:sorry|afraid)|(?:my )?apologies|i apologi[sz]e|sorry|unfortunately)\b[^.!?\n]{0,80}\b"
    r"(?:can't|cannot|can not|unable|not able|won't|not allowed|no access|don't have)\b"
    r"|\W*(?:sorry[,.]? )?(?:i'm|we're|i am|we are) (?:unable|not able) to (?:help|assist|summari[sz]e|provide|comply|continue|do that|complete|process|access)\b"
    r"|\W*(?:sorry[,.]? )?(?:i|we) (?:can't|cannot|can not|am unable to|am not able to|won't|will not|must (?:decline|refuse)|have to decline|decline to|refuse to|do not feel comfortable|don't feel comfortable)\b"
    r"[^.!?\n]{0,60}\b(?:help|assist|summari[sz]e|provide|comply|continue|do that|fulfil|fulfill|complete|create|generate|process|access|with (?:that|this)|this (?:request|conversation|content|task))"
    r"|\W*as an? (?:ai|(?:large )?language)(?: language)? (?:model|assistant),? i\b"
    r"|\W*as an? (?:ai|large|language)\b[^.!?\n]{0,60}\b(?:can't|cannot|unable|not able|don't)\b"
    r"|\W*(?:this|that|the|your) (?:request|content|conversation|prompt) (?:violates|was flagged|has been flagged|goes against|is against)\b"
    r"|\W*(?:i|we) (?:don't|do not) (?:see|have) (?:any|a|the|enough|access to)[^.!?\n]{0,60}\b(?:conversation|messages?|context|transcript|content|data|text|items?|input)\b"
    r"|\W*(?:please|could you|can you) (?:please )?(?:provide|share|paste|send)\b[^.!?\n]{0,60}\b(?:conversation|messages?|transcript|text|content)\b"
    r"|\W*(?:there is|there's|i see) (?:no|nothing)\b[^.!?\n]{0,30}\b(?:conversation|messages?|content|to summari[sz]e)\b",
    re.IGNORECASE,
)
_FAILED = lazy(
    r"\W*(?:traceback \(most recent call last\)|(?:api |http |server |internal |fatal |unexpected |request )*(?:error|exception)\b(?: code)?\s*[:\d(]|"
    r"(?:http(?:/\d(?:\.\d)?)? )?[45]\d\d[ :,-]+(?:bad request|unauthori[sz]ed|payment required|forbidden|not found|request time-?out|payload too large|too many requests|internal server error|bad gateway|service unavailable|gateway time-?out)\W*(?:$|[.:,{-])|(?:error|status)(?: code)?:? [45]\d\d\b|\w+(?:Error|Exception)\b[:(]|"
    r"(?:internal server error|bad gateway|service unavailable|gateway time-?out|too many requests|rate[ -]?limit(?:ed)?(?: exceeded| reached)?\W*(?:$|for|please|try|retry|on)|overloaded(?:_error)?\W*(?:$|please|try)|"
    r"quota exceeded|insufficient (?:quota|credits?)|request timed out|connection (?:error|refused|reset|timed out)\b|(?:invalid|incorrect|missing) api[ _-]?key|unauthori[sz]ed\W*$|"
    r"(?:the )?(?:\w+ ){0,3}(?:model|server|service|api|backend|endpoint|llm|provider)s? (?:(?:is|are|was|were) )?(?:currently |temporarily |now )?(?:unavailable|overloaded|unreachable|offline|down|not (?:available|responding|reachable))\W*(?:$|please|try|retry|for now|at the moment)|"
    r"(?:the )?(?:model|server|service) is (?:currently )?(?:overloaded|unavailable|not available|busy)|prompt is too long|context[_ ]length[_ ]exceeded|maximum context length|"
    r"an error occurred|something went wrong|no response from|upstream (?:error|connect)))",
    re.IGNORECASE | re.MULTILINE,
)
_TRACE = lazy(
    r"Traceback \(most recent call last\):\s*\n\s+File |^\s+at [\w.$<>]+\([^()\n]*:\d+(?::\d+)?\)$",
    re.MULTILINE,
)
_HTML = lazy(r"\W*<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_MARKUP = lazy(r"<[^<>]{0,200}>|\{\{[^{}]*\}\}|\[[^\[\]\n]{0,60}\](?!\()|[#*_`>|~=-]+")
_PLACEHOLDER = lazy(
    r"\W*(?:(?:please |kindly |can you |could you )*(?:summari[sz]e|shorten|condense|compress)\b[^.\n]{0,80}|too (?:short|long|brief|large|small|little|much)\b[^.\n]{0,40}|"
    r"n/?a|none|null|nil|undefined|todo|tbd|empty|no (?:summary|content|response|answer|output)(?: (?:requested|available|provided))?|"
    r"(?:insert |your |the )?summary(?: (?:goes )?here)?|lorem ipsum.*|ok(?:ay)?|sure|done|test|placeholder|understood|got it|i understand|\.+|"
    r"(?:sure|certainly|of course|here(?: is|'s))[^.\n]{0,60}summary[^.\n]{0,60}[:.!]?)\W*",
    re.IGNORECASE | re.DOTALL,
)
_ERROR_KEYS = frozenset({"error", "errors", "detail", "exception", "traceback"})
_FENCED = lazy(r"\A\s*```\w*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
# The message of a server, or a model's refusal, has no lists and no headings.
_REPORTS = lazy(
    r"^\s*(?:[-*•] |\d{1,2}[.)] |#{1,6} )|\b(?:we|the (?:user|agent|assistant|team)|they) \w+ed\b|"
    r"\b(?:(?:is|are|was|were|gets?|got) (?:now |also )?(?:retried|fixed|handled|caught|resolved|logged|skipped|ignored)|came from)\b",
    re.MULTILINE,
)


def model_fault(
    answer: str, *, given: Collection[str] = (), before: str = "", instruction: str = "",
    most_tokens: int = 0, count: Counter | None = None, about: Collection[str] | None = None,
) -> str:  # fmt: skip
    """Return why `answer` cannot be the summary of the texts `given`, in words that follow "It"; empty if it can.

    `before` is the summary that the new one replaces: it may be repeated, and counts as input. Lengths are compared
    only if a `count` is given; an `instruction` may contain the texts, too. With `about`, the goals, files, open calls and
    names of the input, an answer also has to share a word with these, or a few with the rest of the input.

    >>> model_fault("I'm sorry, I can't help with that."), model_fault("Chose SQLite; the tests pass.")
    ('is a refusal', '')
    """
    text = answer.strip()
    if not text:
        return EMPTY
    plain = text.replace("’", "'")
    if _PLACEHOLDER.fullmatch(plain) or not any(map(str.isalnum, _MARKUP.sub(" ", plain))):
        return "says nothing"
    said = " ".join(text.split())
    instructs = len(said) >= LEAST_INSTRUCTION_CHARS and said in " ".join(instruction.split())
    return (
        _error(plain)
        or ("is a refusal" if len(plain) <= REFUSAL_CHARS and _only(_REFUSES, plain) else "")
        # The instruction may contain the input too, and extraction repeats sentences of that.
        or (
            "repeats the instruction"
            if instructs and not any(said in " ".join(each.split()) for each in given)
            else ""
        )
        or (_length(text, (before, *given), most_tokens, count) if count else "")
        or _echo(text, given)
        or _unspecific(plain, (before, *given), about)
    )


def _error(text: str) -> str:
    if _HTML.match(text):
        return "is an HTML page"
    fenced = _FENCED.match(text)
    bare = fenced[1] if fenced else text
    if bare.lstrip().startswith("{"):
        try:
            found = json.loads(bare)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and (_ERROR_KEYS & found.keys() or found.get("type") == "error"):
            return "is the text of an error"
    trace = _TRACE.search(text[:ERROR_CHARS])
    if trace and len(text[: trace.start()].split()) < RUN_WORDS:
        return "is a stack trace"
    return "is the text of an error" if len(text) <= ERROR_CHARS and _only(_FAILED, text) else ""


def _only(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether `text` opens with `pattern` and does not report on a conversation after it."""
    return bool(pattern.match(text)) and not _REPORTS.search(text)


def _length(text: str, given: Iterable[str], most_tokens: int, count: Counter) -> str:
    tokens = count(text)
    if most_tokens and tokens > int(most_tokens * SLACK):
        return f"has {tokens} tokens; {most_tokens} were asked for"
    if tokens <= LEAST_COMPARED_TOKENS:
        return ""
    total = 0
    for each in given:
        total += count(each)
        if total > tokens:
            # The rest need not be counted, which takes long after thousands of messages.
            return ""
    return f"has {tokens} tokens, no fewer than the {total} that it replaces"


def _unspecific(text: str, given: Collection[str], about: Collection[str] | None) -> str:
    """Return the fault of a text that could be about any conversation, or that is not about this one."""
    said = set(words(text))
    small = sum(len(each.split()) for each in given) <= SMALL_SPAN_WORDS
    topics = said & _TOPIC & {word for each in given for word in words(each)} if small else frozenset()
    own = set(stems(" ".join((said - _TALK - _TOPIC) | topics)))
    if not own:
        # Of a greeting there is nothing specific to say.
        empty = small and any(given) and all(_TALK.issuperset(words(each)) for each in given)
        return "" if empty else UNSPECIFIC
    if about is None or not any(given) or _other_script(text, given):
        return ""
    if not own.isdisjoint(stem for each in about for stem in stems(each)):
        return ""
    own |= set(stems(" ".join(said & _TOPIC)))
    shared: set[str] = set()
    need = 1 if small or len(own) < 2 * LEAST_SHARED else max(LEAST_SHARED, int(LEAST_SHARED_PART * len(own)))
    for each in given:
        shared.update(own.intersection(stems(each)))
        # A number is not shared by chance, and is the same in every language.
        if len(shared) + sum(len(word) > 1 and word.isdecimal() for word in shared) >= need:
            return ""
    return UNRELATED


def _other_script(text: str, given: Collection[str]) -> bool:
    """Return whether `text` and what was `given` are mostly in two alphabets, so that they share no words."""
    sample = " ".join(each[:_SAMPLE_CHARS] for each in list(given)[:_SAMPLE_TEXTS])
    return _is_latin(text) != _is_latin(sample)


def _is_latin(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return 2 * sum(char < "\u0250" for char in letters) >= len(letters)


def _echo(text: str, given: Collection[str]) -> str:
    written = list(words(text))
    if len(written) < LEAST_ECHO_WORDS:
        return ""
    mine = _runs(written)
    # Each time counts: a message that is copied twice is a copy.
    times = Tally(zip(*(written[at:] for at in range(RUN_WORDS)), strict=False))
    least = ECHOED_SHARE * times.total()
    for each in given:
        if len(each) >= LEAST_ECHO_WORDS and sum(times[run] for run in mine & _runs(words(each))) >= least:
            return "copies one message"
    if len(text) < ECHOED_SHARE * sum(map(len, given)):
        return ""
    said = [word for each in given for word in words(each)]
    runs = _runs(said)
    repeats = len(said) >= LEAST_INPUT_WORDS and len(runs & mine) >= ECHOED_SHARE * len(runs)
    return "repeats the whole input" if repeats else ""


def _runs(said: Iterable[str]) -> set[tuple[str, ...]]:
    """Return all runs of `RUN_WORDS` consecutive words."""
    listed = list(said)
    return set(zip(*(listed[at:] for at in range(RUN_WORDS)), strict=False))
