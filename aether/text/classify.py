"""Classification: what kind of statement a sentence is, told by its words.

The first kind of the table below that a cue speaks for wins; cues are whole words or phrases, never
parts of words, so "prefix" is no fix. What nothing speaks for is a fact.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from aether.text.patterns import lazy
from aether.text.words import STOPWORDS, words

Kind = Literal[
    "decision", "outcome", "preference", "constraint", "solution", "blocker", "fact", "exploration", "chatter"
]

# Words that, with nothing else beside them, say nothing that anyone must remember.
CHATTER = frozenset(
    "ok okay yes yeah yep no nope sure thanks thank great good nice cool awesome amazing wow perfect excellent "
    "hello hi hey bye goodbye morning evening welcome please sorry oh ah haha lol hmm well right exactly absolutely "
    "totally definitely indeed cheers glad happy sounds let's let know see soon later talk catch take care luck hear "
    "hope going doing things everything today got really much all again true agree agreed you're i'm it's that's "
    "what's how's i'll understood done next now proceed proceeding continue continuing go ahead so like".split()
)
# A sentence with more words than this is about something, whatever its words.
CHATTER_WORDS = 12

# Order matters: what was fixed names what had failed, and a decision may speak of limits.
_CUES: tuple[tuple[Kind, str], ...] = (
    (
        "exploration",
        (
            r"^(?:ok(?:ay)?|now|so|first|next|then|good|great|hmm|alright)?[,.]? ?(?:let me|let's (?:see|look|check|try|start|explore|find|first)|"
            r"i'll (?:look|check|try|start|see|explore|examine|investigate|read|search|first|now|need)|i(?:'m going| am going| want| need) to (?:look|check|see|"
            r"understand|explore|examine|find|read)|i will (?:look|check|try|see|explore|examine|first)|looking (?:at|into|for)|checking|searching|trying to|"
            r"reading|exploring)\b|\b(?:i wonder|not sure|what if|maybe i|perhaps i|might be (?:because|that)|could it be|i suspect)\b"
        ),
    ),
    (
        "solution",
        (
            r"\b(?:fix(?:ed|es)|the fix|to fix|solv(?:ed|es)|solution|resolv(?:ed|es)|workaround|work around|root cause|patched|the (?:cause|reason) (?:is|was)|"
            r"turn(?:s|ed) out|works? (?:around|by)|corrected|repaired|mitigat(?:ed|es|ion))\b"
        ),
    ),
    (
        "decision",
        (
            r"\b(?:decid(?:e|ed|es|ing)|decisions?|chose|chosen|choose|opt(?:ed)? (?:for|to)|settled on|go(?:ing)? with|went with|we(?:'ll| will) (?:use|keep|go|store|"
            r"not|ship|make|add|drop|adopt|move)|let's (?:use|go with|keep|drop|adopt|make|not)|agreed (?:to|that|on)|adopt(?:ed)?|instead of|rather than|in favou?r of|"
            r"switch(?:ed)? (?:to|from)|the plan is|conclu(?:ded|sion)|approved|rejected)\b"
        ),
    ),
    (
        "constraint",
        (
            r"\b(?:must|never|mandatory|forbidden|prohibited|shall not|do not|don't (?:use|add|change|touch|edit|commit|push|modify|remove|delete|ever|forget|write|make|run)|should(?:n't| not)?"
            r"|may not|required?|requires?|requirements?|constraints?|limited to|at (?:least|most)|no (?:more|less|fewer|later|longer) than|avoid|ensure|make sure|only (?:use|if|when|after|the)|"
            r"not allowed|has to|have to|needs? to|deadline|always (?:use|run|keep|add|write|check|ask|make|ensure))\b"
        ),
    ),
    (
        "blocker",
        (
            r"\b(?:block(?:ed|er|ers|ing|s)|cannot|can't|unable|fail(?:s|ed|ing|ure|ures)?|errors?|exceptions?|crash(?:es|ed|ing)?|stuck|broken|breaks|broke|"
            r"timed? ?out|timeout|denied|refused|missing|not found|waiting (?:on|for)|does(?:n't| not) work|did(?:n't| not) work|won't|hangs?|leak(?:s|ed)?|bugs?|regress(?:ion|ed|es)|problem)\b"
            r"|\b\w*(?:Error|Exception)\b"
        ),
    ),
    (
        "preference",
        (
            r"\b(?:prefer(?:s|red|ence|ences|ably)?|favou?rites?|(?:i|we|you|he|she|they)(?:'d| would) (?:like|love|rather)|(?:i|we|he|she|they) (?:really |always |also )?(?:like|likes|love|loves|hate|hates|dislike|"
            r"enjoy|enjoys|want|wants)|please (?:use|keep|don't|make|always|never|add|write|call)|dislikes?|would rather|fan of)\b"
        ),
    ),
    (
        "outcome",
        (
            r"\b(?:pass(?:es|ed)?|complet(?:ed|es|e)|finish(?:ed|es)|implement(?:ed|s)|add(?:ed|s)|creat(?:ed|es)|deploy(?:ed|s)|merged?|releas(?:ed|es)|succe(?:ss|eded|eds|ssful|ssfully)|"
            r"works now|now works|results?|reduc(?:ed|es)|increas(?:ed|es)|improv(?:ed|es)|shipped|measured|remov(?:ed|es)|renam(?:ed|es)|updat(?:ed|es)|wrote|written|built|migrat(?:ed|es)|"
            r"committed|pushed|published|refactored|replac(?:ed|es)|mov(?:ed|es)|launched|achieved|won|green|verified|confirmed|produc(?:ed|es)|return(?:ed|s)|edited|changed|deleted|installed)\b"
        ),
    ),
)
# Said of oneself and done: whatever the sentence opens with, this is what it tells.
_TAKEN = lazy(
    r"(?<!what )(?<!why )(?<!how )(?<!when )(?<!whether )(?<!if )(?<!once )(?<!that )"
    r"\b(?:i|we)(?:'ve| have)? (?:(?:now|therefore|thus|finally|also) )?(?:decided|chose|chosen|opted|settled on|agreed|went with)\b"
    r"|[,:;] (?:so )?(?:i|we)(?:'ll| will) (?:use|keep|store|go with|adopt|ship) [^?]*\b(?:instead of|rather than|because)\b",
    re.IGNORECASE,
)
_TABLE = tuple((kind, lazy(cues, re.IGNORECASE)) for kind, cues in _CUES)

# A sentence says what it is near its beginning; the rest of a very long one is data.
_READ_CHARS = 2_000


# As many as a full memory has sentences: what prepares, compresses and judges asks for the same ones in turn.
CACHED_SENTENCES = 32_768


@lru_cache(maxsize=CACHED_SENTENCES)
def classify(sentence: str) -> Kind:
    """Return the kind of statement that `sentence` makes.

    >>> classify("We chose SQLite because it needs no server."), classify("Thanks, sounds good!")
    ('decision', 'chatter')
    >>> classify("Fixed the failing login test."), classify("The prefix holds the mustard.")
    ('solution', 'fact')
    """
    sentence = sentence[:_READ_CHARS].replace("’", "'").lstrip("-*+•># \t")
    if _is_chatter(sentence):
        return "chatter"
    if tells_choice(sentence):
        return "decision"
    for kind, cues in _TABLE:
        if cues.search(sentence):
            return kind
    return "fact"


def tells_choice(sentence: str) -> bool:
    """Tell whether whoever speaks says what they chose, however the sentence opens.

    >>> tells_choice("Checking the tables, we decided on pgloader."), tells_choice("Let me see what we decided.")
    (True, False)
    """
    return not sentence.rstrip().endswith("?") and bool(_TAKEN.search(sentence.replace("’", "'")))


def _is_chatter(sentence: str) -> bool:
    said = list(words(sentence))
    if len(said) > CHATTER_WORDS:
        return False
    return all(word in CHATTER or word in STOPWORDS for word in said)
