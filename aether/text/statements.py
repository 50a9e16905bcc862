"""Statements: which sentences of a conversation a colleague would write down.

A person's message is kept whole; what an assistant says on the way is kept where it decides, finds,
solves or is stuck, and dropped where it announces what it will do next.
"""

from __future__ import annotations

import re
from collections import Counter

from aether.text.classify import classify, tells_choice
from aether.text.patterns import lazy
from aether.text.rules import bare, rule, rules
from aether.text.sentences import sentences

# Shorter sentences lean on their neighbours ("That fixed it.").
_LEAST_WORDS = 6
_MOST_CHARS = 600
# What binds can be said shortly ("Login tests fail on Windows").
_BINDING_WORDS = 5
# A person who writes more than this asks for something; what is demanded stands inside.
_SHORT_SENTENCES = 3
_SHORT_CHARS = 300
# Sentences beyond this in one message are data.
_READ_SENTENCES = 400
_REPLY_CHARS = 80
_QUESTION_CHARS = 500

_INTENTION = lazy(
    r"^(?:(?:ok(?:ay)?|now|so|first|next|then|finally|good|great|perfect|alright|excellent|actually|wait|hmm|also|and|but|yes|right)[,.!:]? +){0,3}"
    r"(?:i'll|i will|i am going|i'm going|i'm (?:now|about|also)|let me|let's|i need to|i should|i want to|i can|we need to|need to|time to|going to|"
    r"(?:running|updating|adding|fixing|checking|creating|writing|looking|reading|committing|pushing|testing|verifying|moving|starting|continuing)\b|"
    r"(?:update|add|fix|check|create|write|run|commit|verify|test|look|read)\b)",
    re.IGNORECASE,
)
_REASONED = lazy(r"\b(?:because|since|due to|decided|chose|settled)\b", re.IGNORECASE)
# What is going on while it is said is over when it is read.
_NARRATION = lazy(
    r"^(?:(?:while|once|as soon as|after|before|when)\b[^,]{3,80}, )?(?:(?:now|so|next|meanwhile|currently),? )?"
    r"(?:i'm|i am|we're|we are)(?: (?:now|still|also|just|currently))* \w+ing\b|^still \w+ing\b|\blet me\b|\bneed user\b",
    re.IGNORECASE,
)
# So is what others are doing meanwhile, and that it will be told what came of it.
_UNDER_WAY = lazy(
    r"\b(?:is|are) (?:(?:now|still|already|currently) )?(?:on (?:its|their|the|his|her) way|under ?way)\b"
    r"|\b(?:sub-?agents?|agents?|helpers?|workers?|explorers?|tests?|suite|build|search|tasks?|jobs?|it|they)\b.{0,40}"
    r"\b(?:is|are|has been|have been) (?:(?:now|still|already|currently) )?(?:in progress|running|working|looking|searching|checking|started|launched|dispatched)\b(?! (?:green|fine|again|well|correctly|as)\b)"
    r"|\b(?:i've|i have|i) (?:(?:just|now) )?(?:started|launched|spawned|dispatched|kicked off|sent|asked)\b.{0,40}\b(?:sub-?agents?|agents?|helpers?|workers?|background)\b"
    r"|^(?:(?:i'm|i am|we're|we are) )?still waiting\b|^(?:one moment|hold on|stand(?:ing)? by|just a (?:moment|second|minute))\b",
    re.IGNORECASE,
)
_ANNOUNCED = lazy(
    r"^(?:\S+[,.!:]? +){0,3}?(?:(?:i'll|i will)(?! (?:not|never|keep|use|leave|stick|store|skip|go with)\b)|let me|let's)\b",
    re.IGNORECASE,
)
_DOING = lazy(
    r"^(?:(?:ok(?:ay)?|now|so|first|next|then|still|just),? )?(?:(?:i'm|i am|we're|we are)(?: (?:now|still|also|just|currently|going to))* )?"
    r"(?:running|updating|adding|fixing|checking|creating|writing|looking|reading|committing|pushing|testing|verifying|starting|launching|waiting|"
    r"searching|exploring|investigating|continuing|working|collecting|turning)\b",
    re.IGNORECASE,
)
# What is announced with a number, or goes on to tell what was seen, is more than an announcement.
_TELLS_MORE = lazy(r"\d|\b(?:but|which|found|shows?|showed|so that|turns? out)\b|: \S", re.IGNORECASE)
_CHOICE = lazy(
    r"\b(?:prefer|rather|which|or|instead)\b"
    r"|\b(?:should|shall|want|would you like|okay? (?:to|if|with)|may)\b.{0,40}\b(?:use|stay|keep|stick|store|follow|choose|adopt|switch|support|drop|replace|call|default|allow|require)\b",
    re.IGNORECASE,
)
_ENQUIRY = lazy(
    r"\b(?:provide|share|tell me|help you|assist|thoughts|confirm|anything else|would you like (?:me )?to (?:proceed|do)|proceed|go ahead|let me know|what is your|who|when)\b",
    re.IGNORECASE,
)
# A failure that is denied or over stands in nobody's way.
_OVERCOME = lazy(
    r"\b(?:no|zero|0|without(?: any)?)\s+(?:\w+ )?(?:errors?|failures?|problems?|issues?|exceptions?)\b|"
    r"\b(?:pass(?:es|ed)?|succeed(?:s|ed)|succeeded|confirmed|verified|green)\b",
    re.IGNORECASE,
)
_SUPPOSED = lazy(r"(?:if|when|whenever|in case)\b", re.IGNORECASE)
_WAITING = lazy(r"^\W*waiting (?:on|for)\b", re.IGNORECASE)
# Who would like something now decides nothing for later, nor does who still has to decide.
_OF_THE_MOMENT = lazy(
    r"\b(?:i'd|i would|want to|need|if you|proceed|go ahead|(?:to|can|could|will|should|please) (?:decide|choose)|feel free|let me know|your (?:decision|call|choice))\b",
    re.IGNORECASE,
)
# Headings, questions, announcements and output state nothing; what feels like something is an opinion.
_UNSTATED = lazy(
    r"[?:]\W*$|^(?:#|[|>]|FAIL\b|FAILED\b|ERROR\b|E  |---)|\bfeels? like\b|[{}]|;$|^\S*\w\(|^\S+:\d+:|\[(?:test|error|info)\]|^make: \*",
    re.IGNORECASE,
)
_FENCE = lazy(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_LOG_LINE = lazy(r"^\s*(?:[|+│├└>$#%]|\d+[:|\t]|\S+\.\w+:\d+|\[\w+\]|\w{3} +\d+ \d\d:|\d{4}-\d\d-\d\d[T ])")
_APPROVAL = lazy(
    r"^\s*(?:y|yes|yep|yeah|yup|sure|ok|okay|k|go|go ahead|go on|do it|do that|please do|sounds good|continue|proceed|lgtm|perfect|great|nice|thanks|thank you|no|nope)\b",
    re.IGNORECASE,
)
# What is said for politeness: to whoever did something, and to whoever may ask for something.
_THANKS = lazy(
    r"\W*(?:(?:(?:many |ok,? |great,? )?thanks(?: a lot| so much| again| a ton)?|thank you(?: (?:very|so) much)?|thx|ty|cheers|"
    r"(?:(?:that|this|it|all)(?:'s| is)? )?(?:looks?|looking|sounds?|seems) (?:\w+ )?(?:good|great|fine|right|nice|ok|perfect)(?: to me| now)?|"
    r"lgtm|ship it|(?:(?:that|this|it)(?:'s| is) )?(?:perfect|great|good|nice|awesome|excellent|wonderful|brilliant)|"
    r"(?:good|great|nice|well) (?:job|work|one|done)|all good|i like it|love it|"
    r"danke(?: schön| dir| sehr)?|vielen dank|(?:das )?(?:passt|sieht gut aus)|super|prima|perfekt|sehr gut|toll|(?:ok(?:ay)?|so|very|and|und)(?=\W+\w))"
    r"\b\W*)+\Z",
    re.IGNORECASE,
)
_OFFERS = lazy(
    r"\b(?:how (?:can|may) i (?:help|assist)|what (?:can i|would you like(?: me)? to) (?:do|help|work)|(?:happy|glad|here) to help|anything else|"
    r"(?:wie|womit) kann ich (?:\w+ )?helfen)\b",
    re.IGNORECASE,
)
# A remark of fewer words that names nothing ("It is noon.") tells nobody anything later.
_TELLING_WORDS = 4
_NAMES = lazy(r"\b(?:[Nn]o(?:t|ne|thing)?|[Aa]ll|[Bb]oth)\b|\d|`|\w[/_.:-]\w|\w[A-Z]|(?<=\s)[A-Z]")
KEPT = ("decision", "solution", "blocker", "outcome", "constraint", "preference")
# What an assistant says must be so is a finding about the work; only people demand.
_STATED = {
    "decision": "decision",
    "solution": "solution",
    "blocker": "blocker",
    "outcome": "outcome",
    "constraint": "observation",
}


def stated(text: str) -> dict[str, list[str]]:
    """Return the sentences of an assistant's `text` worth a note, by kind.

    >>> stated("Let me look. The build failed because the Go version in CI is 1.19. We went with SQLite instead of Postgres.")
    {'blocker': ['The build failed because the Go version in CI is 1.19.'], 'decision': ['We went with SQLite instead of Postgres.']}
    """
    found: dict[str, list[str]] = {}
    for sentence in prose(text):
        kind = _STATED.get(_kind(sentence))
        supposed = kind == "blocker" and _SUPPOSED.match(bare(sentence))
        if kind and _stands_alone(sentence) and not supposed:
            if kind == "blocker" and _OVERCOME.search(sentence):
                kind = "outcome"
            found.setdefault(kind, []).append(sentence)
    return found


def asserts(text: str) -> bool:
    """Tell whether an assistant's `text` says how something is, rather than what it looks at next.

    >>> asserts("There it is. The list returns all sessions, not the newest."), asserts("Let me look at the list of sessions.")
    (True, False)
    """
    return any(
        _stands_alone(sentence) and classify(sentence) not in ("exploration", "chatter")
        for sentence in prose(text)
    )


def told(text: str) -> list[tuple[str, str]]:
    """Return what a person's message says, as item types with their texts: the message, then its rules.

    A message that holds nothing but rules is those rules.

    >>> told("Never commit to main."), told("Add a page. Never commit to main.")
    ([('constraint', 'Never commit to main.')], [('user_input', 'Add a page. Never commit to main.'), ('constraint', 'Never commit to main.')])
    """
    said = prose(text)
    found = [(one.kind, one.text) for one in rules(said, text)]
    rest = text
    for _, wording in found:
        rest = rest.replace(wording, " ", 1)
    if found and not any(map(_says_more, rest.splitlines())):
        return [*found]
    return [(_kind_of_request(said, text), text), *found]


def _says_more(line: str) -> bool:
    return (
        bool(bare(f"{line.strip()} x").removesuffix("x").strip(" -*•+.,:;!")) and classify(line) != "chatter"
    )


def _kind_of_request(said: list[str], text: str) -> str:
    """Return the item type of a message beside its rules: a decision where it settles something in a few words."""
    if len(said) > _SHORT_SENTENCES or len(text) > _SHORT_CHARS:
        return "user_input"
    return "decision" if any(map(_settles, said)) else "user_input"


def _settles(sentence: str) -> bool:
    return (
        classify(sentence) == "decision"
        and not sentence.rstrip().endswith("?")
        and not _OF_THE_MOMENT.search(sentence.replace("’", "'"))
    )


def kind_of_answer(text: str) -> str:
    """Return the item type of what an assistant said last in a turn; empty where it only tells what is being done.

    >>> kind_of_answer("A helper is on its way. I'll report what it finds."), kind_of_answer("Added the page.")
    ('', 'outcome')
    """
    said = prose(text)
    if all(map(_passes, said)):
        return ""
    kinds = Counter(_kind(sentence) for sentence in said)
    decided, solved, done = kinds["decision"], kinds["solution"], kinds["outcome"]
    if solved > max(decided, done):
        return "solution"
    return "decision" if decided > done else "outcome"


def choices(text: str) -> tuple[str, str]:
    """Return the sentences of an assistant's last message that tell what was chosen, and the rest of it.

    >>> choices("Added the limiter. I decided to key it by customer rather than IP. All tests pass.")
    ('I decided to key it by customer rather than IP.', 'Added the limiter. All tests pass.')
    """
    found = [
        sentence
        for sentence in prose(text)
        if _stands_alone(sentence)
        and _kind(sentence) == "decision"
        and (tells_choice(sentence) or _REASONED.search(sentence))
    ]
    rest = text
    for sentence in found:
        alone = rf"^[ \t]*(?:[-*•+>] *)?{re.escape(sentence)}[ \t]*(?:\n|\Z)|{re.escape(sentence)}[ \t]*"
        rest = re.sub(alone, "", rest, count=1, flags=re.MULTILINE)
    return " ".join(map(bare, found)), rest.strip() if found else text


def _passes(sentence: str) -> bool:
    """Return whether `sentence` is over when it is read: it greets, looks around, or tells what is being done."""
    said = bare(sentence).replace("’", "'")
    kind = _kind(sentence)
    if kind in ("chatter", "exploration") or _OFFERS.search(said):
        return True
    if tells_choice(said) or kind in ("decision", "solution"):
        return False
    if _REASONED.search(said) or _TELLS_MORE.search(said):
        return False
    if _UNDER_WAY.search(said) or _WAITING.match(said):
        return True
    if kind == "outcome":
        return False
    says_little = len(said.split()) < _TELLING_WORDS and not _NAMES.search(said)
    return bool(_ANNOUNCED.match(said)) or (kind == "fact" and (says_little or bool(_DOING.match(said))))


def _kind(sentence: str) -> str:
    """Return what an assistant's sentence is: what it leaves to others is no decision, nor is a question."""
    kind = classify(sentence)
    return kind if kind != "decision" or _settles(sentence) else "fact"


def binding(sentence: str) -> str:
    """Return whether `sentence` is a decision, constraint or blocker that holds by itself; empty where it is none.

    >>> binding("We decided to rewrite the lexer by hand."), binding("Want me to go ahead?"), binding("FAILED t.py::test_a")
    ('decision', '', '')
    """
    said = bare(sentence)
    if len(said.split()) < _BINDING_WORDS or _UNSTATED.search(said) or not prose(sentence):
        return ""
    kind = classify(sentence)
    if kind == "decision":
        return kind if _settles(sentence) else ""
    if kind in ("constraint", "preference"):
        return "constraint" if rule(sentence) else ""
    open_still = not (_OVERCOME.search(sentence) or _SUPPOSED.match(said) or _intends(said))
    return kind if kind == "blocker" and open_still else ""


def kind_of_paragraph(text: str) -> str:
    """Return the item type of a paragraph of plain text; empty where it says nothing."""
    kinds: list[str] = [_kind_in_prose(sentence) for sentence in prose(text)]
    if kinds and all(kind == "chatter" for kind in kinds):
        return ""
    return next((kind for kind in KEPT if kind in kinds), "observation")


def _kind_in_prose(sentence: str) -> str:
    """Return what a sentence of plain text is: what describes a need is no rule."""
    kind = _kind(sentence)
    if kind not in ("constraint", "preference"):
        return kind
    found = rule(sentence)
    return found.kind if found else "fact"


def is_reply(text: str) -> bool:
    """Tell whether a person's message says little without the question that it answers.

    >>> is_reply("yes, both"), is_reply("What does it cost?")
    (True, False)
    """
    if text.rstrip().endswith("?"):
        return False
    return len(text) <= _REPLY_CHARS or bool(_APPROVAL.match(text) and len(text) <= 2 * _REPLY_CHARS)


def decides(asked: str) -> bool:
    """Tell whether the answer to `asked` settles something, rather than tells something.

    >>> decides("Shall I use SQLite?"), decides("Could you provide your user id?")
    (True, False)
    """
    return bool(_CHOICE.search(asked)) and not _ENQUIRY.search(asked)


def is_empty_reply(text: str) -> bool:
    """Tell whether a message only spurs on or thanks, which asks for nothing.

    >>> is_empty_reply("looks good, ship it"), is_empty_reply("looks good, now push it")
    (True, False)
    """
    return is_thanks(text) or (classify(text) == "chatter" and len(text) <= _REPLY_CHARS)


def is_thanks(text: str) -> bool:
    """Tell whether a message only thanks or praises, whatever it was asked."""
    return len(text) <= _REPLY_CHARS and bool(_THANKS.match(text.replace("’", "'")))


def question(text: str) -> str:
    """Return what an assistant's `text` asks at its end, empty where it asks nothing.

    >>> question("Done. Shall I also update the README?")
    'Shall I also update the README?'
    """
    asked = [sentence for sentence in prose(text)[-6:] if sentence.rstrip("*_ ").endswith("?")]
    return " ".join(asked)[-_QUESTION_CHARS:]


def _stands_alone(sentence: str) -> bool:
    if len(sentence.split()) < _LEAST_WORDS or len(sentence) > _MOST_CHARS:
        return False
    if sentence.rstrip("*_ ")[-1:] in "?:" or sentence.lstrip().startswith(("|", "#")):
        return False
    said = sentence.lstrip("-*•# ").replace("’", "'")
    return not _intends(said)


def _intends(said: str) -> bool:
    """Return whether `said` only tells what is being done or about to be."""
    if tells_choice(said):
        return False
    if _NARRATION.search(said) or _WAITING.match(said):
        return True
    return bool(_INTENTION.match(said)) and not _REASONED.search(said)


def prose(text: str) -> list[str]:
    """Return the sentences of `text` without code, logs and tables."""
    plain = _FENCE.sub("\n", text) if "```" in text or "~~~" in text else text
    lines = (line for line in plain.split("\n") if not _LOG_LINE.match(line) or line.lstrip().startswith("#"))
    return sentences("\n".join(lines))[:_READ_SENTENCES]
