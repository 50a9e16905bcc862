"""Choices: what a person settled, in the words of whoever put it: the proposal that a reply takes up, or the reply itself.

A proposal of an agent is no decision until a person takes it up. "yes" takes up the recommendation of the message
before, or what its closing question offers; "b", "do 1" and "3" take up that entry of its last list. What is stored is
one verbatim statement, never a reply without what it answers. A person's own choice ("let's keep it in metadata",
"nah, roll it back") is complete by itself. Questions, doubts and orders for the moment settle nothing.
"""

from __future__ import annotations

import re

from aether.text.accounts import OPTION, Paragraph, asks_leave, claims, paragraphs, refuses, whole
from aether.text.classify import asks_for_decision, closing_question, prose
from aether.text.cues import by_head, cue, has, likely
from aether.text.cues import said as as_said
from aether.text.described import regrets
from aether.text.regex import lazy
from aether.text.words import sentences, stems
from aether.tuples import NamedTuple

# A longer reply is a request of its own, and what it takes up is not its whole content.
REPLY_CHARS = 240
# A longer message describes work to be done.
MESSAGE_CHARS = 600
# A longer sentence explains.
CHOICE_CHARS = 300
# Shorter ones say nothing without their neighbours.
CHOICE_WORDS = 4
_OPTION_CHARS = 600
# A message recommends in its last sentences; what is recommended further up is reported.
_CLOSING = 8
# Fewer beside a pick are "then", "please", "is fine".
MORE_WORDS = 3

# An own choice whose first words are "it" or "this".
_POINTS_BACK = lazy(r"(?:\W*\w[\w'’-]*\W+){0,3}(?:it|its|them|they|these|those|this|that)\b", re.IGNORECASE)
SUBJECT_CHARS = 160
# A choice in so few words, without a name, needs the question that it answers; a shorter question says nothing either.
SHORT_CHOICE, QUESTION_WORDS = 8, 6
_NAMES = lazy(r"`|\w[/_.]\w|[a-z][A-Z]|\d")
SHORT_MESSAGE = 1_200
_YES = lazy(
    r"^\W*(?:y|yes|yep|yup|yeah|ye|sure|ok(?:ay)?|agreed|correct|exactly|right|lgtm|perfect|great|good idea|sounds good|makes sense|go ahead|go for it|"
    r"do it|do that|please do|let's do (?:it|that|this)|works for me|fine|approved|ja|genau|passt|gerne)\b(?! ?\?)",
    re.IGNORECASE,
)
_BACK = lazy(r"\blet's (?:go back|revert|roll back|undo)\W*\Z", re.IGNORECASE)
_BUT = lazy(r"\b(?:but|however|except|instead|rather|not yet|wait|hold on|first)\b", re.IGNORECASE)
_LABEL = r"(?:option |number |variant |approach |#)?\(?(?P<label>[a-h]|\d{1,2})\)?"
# "b", "do 1", "option 2", "let's go with A", "B seems like a good idea": what is taken up of a list.
_PICKED = lazy(
    r"^\W*(?:(?:yes|yeah|yep|ok(?:ay)?|sure|but|and|so|to answer (?:your|the) question)\W+)*(?:(?:i think|i'd say|i'd|i would|let's|lets|please|do|go with|take|use|pick|choose|just)\W+)*(?:do |go with |take |use )?(?:the )?"
    rf"{_LABEL}(?=\W|\Z)(?!\s?(?:%|ms|s\b|x\b|of\b|files?|tests?|lot|bit|few|new|separate|[a-z]+ing\b)|(?<=\ba)\s+(?!then\b|is\b|seems\b|sounds\b|looks\b|please\b)\w)",
    re.IGNORECASE,
)
# "we do B after all", "no, 2", "back to A": an entry in so many words and no more, since "no, 2 is broken" picks nothing.
_PICKED_AGAIN = lazy(
    r"^\W*(?:(?:no|nope|nah|actually|hmm+|ok(?:ay)?|wait|sorry|then|so)\W+)*(?:(?:we(?:'ll| will)?|i(?:'ll| will)?|i want|i'd like|let's|(?:switch |go )?back to|switch to)\W+)?(?:do |go with |take |use |keep |want )?"
    rf"{_LABEL}(?:\W+(?:after all|instead|then|please|again))*\W*\Z",
    re.IGNORECASE,
)
_ANSWERS = lazy(r"\bto answer (?:your|the) question\b", re.IGNORECASE)
# An answer to the first of several questions.
_PART = lazy(r"[A-Za-z]\) ")
_LABELS = (
    r"^[ \t]*(?:[-*•] +)?(?:#+ *)?(?:\*\*)?(?:option|variant|approach|alternative) \(?{label}\)?(?=\W{{0,4}}(?:[—–:.-]|\*\*))",
    r"^[ \t]*(?:[-*•] +)?(?:#+ *)?(?:\*\*)?\(?{label}[.):]\)?(?:\*\*)?[ \t—–:-]*\S",
    r"^[ \t]*\({label}\) ",
)
# A sentence with two labels in it offers ("jitter (a) or a fixed step (b)?"); where its options start and end is not sure.
_IN_SENTENCE = lazy(r"\(([a-h]|\d{1,2})\)", re.IGNORECASE)
_ROW = (
    r"^[ \t]*\|[ \t]*(?:\*\*)?(?:option )?\(?{label}(?:[.):]\)?(?:\*\*)?|\)?(?:\*\*)?[ \t]*\|)[ \t]+[^|\n]*\S"
)
# "jitter" takes one of two up.
OFFERED_WORDS = 4
# What is done next decides nothing for later.
_ACTS = lazy(r"\b(?:commit|push|merge|run|tests?|open|next|first|now|start|review)\b", re.IGNORECASE)
_ASKS_BACK = lazy(r"\W*(?:why|what|how|which|when|where|who)\b", re.IGNORECASE)
_BETWEEN_TWO = lazy(r",? \bor\b ", re.IGNORECASE)
_POLITE = "yes ok please the a use go with then take thanks"
# Between two choices "yes" says nothing, and to an act it says: now.
_OFFERS = lazy(
    r"\bor\b|\b(?:want|like|ready|proceed|go ahead|push|commit|merge|open|create|run|fix|continue)\b",
    re.IGNORECASE,
)
# The rest of a message that offers to do something says how: "Shall I? The fix would hold the lock until the file is closed."
_HOW = lazy(
    r"(?:the|this|that|my) (?:fix|change|idea|approach|plan) would (?!be\b|take\b|need\b|require\b|also\b)(?:\S+ ){6}[^?\n]*[.!]\Z",
    re.IGNORECASE,
)
# A way back, or one act instead of another.
_MANNER = lazy(
    r"^(?=(?:\S+\s+){5})[^?]*\b(?:without|instead of|rather than|revert|roll(?:ed)? back|go back|only|as a separate|as its own)\b(?![^?]* or\b)",
    re.IGNORECASE,
)
_RECOMMENDS = lazy(
    r"\b(?:my (?:take|recommendation|suggestion|preference|vote)|i(?:'d| would) (?:recommend|suggest|lean|go with|pick|vote|prefer|keep)|i recommend|i suggest|recommended|(?:the )?recommendation:)",
    re.IGNORECASE,
)
_LEADS = r"^\W*(?:\w+ [-–—] )?(?:(?:i (?:think|feel like|guess)|so|and|but|then|ok(?:ay)?|yes|yeah|no|nah|actually|hmm|for now|also|please|q),?\W+)*"
_LETS_ASKED = "let's, with a question mark"
# A person's own choice for the work, by name; each is measured, see docs/judgement.md.
OWN_CHOICES = {
    # One of two ways, and not the other, is chosen, whatever else is said.
    "this, not that": cue(
        r"\b(?:should|shouldn't|would be good to|must|wants? to|has to|needs? to)\b[^?]*, (?:and |but )?not\b(?! sure| yet| now| really)",
        "not",
    ),
    "let's": cue(rf"{_LEADS}(?:let's|lets)\b", "let"),
    # A proposal of the person, who need not wait for an answer; between two ways it asks.
    _LETS_ASKED: cue(rf"{_LEADS}(?:let's|lets)\b(?!.*\b(?:or|right|ok(?:ay)?)\b)", "let"),
    "we will": cue(rf"{_LEADS}we(?:'ll| will| should)\b", "ll wil sho"),
    "we decided": cue(
        rf"{_LEADS}(?:i|we)(?:'ve| have)? (?:now |just |finally |already )?(?:decided|agreed|settled|opted|chose)\b(?! (?:if|whether|when|not yet)\b)",
        "dec agr set opt cho",
    ),
    "I'll handle it": cue(
        rf"{_LEADS}i(?:'ll| will) (?:handle|take|do (?:it|that)|fix)\b|, i(?:'ll| will) (?:handle|take care of|do) (?:it|that|this|them)\b",
        "ll wil",
    ),
    "go with, keep": cue(rf"{_LEADS}(?:go with|stick (?:to|with)|keep(?! in mind| going))\b", "go sti kee"),
    "after all": cue(
        rf"{_LEADS}(?:we(?:'ll| will)? )?(?:use|take(?! a look)|keep(?! in mind| \w+ing\b)|go (?:with|back to))\b(?! (?:it|this|that|not|only)\b)\s[^?]*\bafter all(?=\W*\Z|[,;:.!–—])",
        "aft",
    ),
    "just do": cue(
        rf"{_LEADS}just (?:define|use|keep(?! going)|drop|leave|make|put|store|skip|remove|append)\b(?! it\b| this\b| that\b)",
        "jus",
    ),
    "back to": cue(
        rf"(?:{_LEADS}|[,;:–-] )(?:drop|scrap|ditch)\s(?!(?:the|an?|it|this|that|my|our)\b)\S+(?: \S+){{0,2}}[,;:.–-]* .{{0,20}}\bback to (?!(?:the (?:drawing board|start|beginning|tests?|issue|question|code|plan|top)|this|that|it|work)\b)\w",
        "bac",
    ),
    # A way that is turned down with its reason; "to big" is written as often.
    "too much": cue(
        r"^\W*(?:i (?:think|feel like)|no|nah|nope)\b(?!.*\b(?:was|were|not|isn't|if|when)\b).*\b(?:is|are|seems?|feels?|sounds?|would be)(?: a bit| a little| way| far)? too? (?:much|big|risky|complex|complicated|clever|heavy)\W*$",
        "muc big ris com cle hea|to too",
    ),
    "a feature of its own": cue(
        r"^(?:\W*[a-d\d]\W+)?(?:i|we) (?:want|would like|prefer)(?: to)?\b[^?]*\bas (?:an? |its )?(?:own|separate|follow[- ]?up)\s(?:\w+ )?(?:feature|issue|ticket|task|change|pr|package|module|command|step)\b",
        "own sep fol|wan wou pre",
    ),
    "so let's drop it": cue(r"[,;–-] (?:so )?let's (?:remove|drop|keep|use|skip|leave|avoid)\b", "let"),
}
_BY_HEAD = by_head(OWN_CHOICES)
# What is started or looked at now decides nothing.
_MOMENT = lazy(
    r"\b(?:let's|lets|we(?:'ll| will| should)|i(?:'ll| will))\W+(?:first |also |now |just |please )*(?:see|look|check|review|examine|discuss|chat|talk|test|try|start|begin|continue|proceed|"
    r"go\b(?! with)|get|focus|move|read|debug|investigate|explore|find|wait|think|implement|fix|write|run|commit|push|merge|rebase|update|ship|create|do (?:it|that|this|option|[a-h\d])\b(?! as | in | for )|finish|brainstorm|tackle|not worry|be|turn|go with \(?\w\)?\W*$)\b",
    re.IGNORECASE,
)


_THEN = lazy(r",? and then\b", re.IGNORECASE)
# What will happen is not chosen.
_FORESEES = lazy(
    r"\bwe(?:'ll| will| won't| would| should)(?: (?:not|never|probably|definitely|surely|soon|all|then|still|also|only))* "
    r"(?:lose|miss|see|get|run (?:into|out)|break|fail|crash|end up|find out|notice|hit|suffer|regret|know|be (?:late|stuck|able|in trouble|fine|ok|okay|done|happy|sorry))\b",
    re.IGNORECASE,
)
# Who wonders has not decided.
_DOUBTS = lazy(
    r"\b(?:i(?:'m| am)? wonder(?:ing)?|(?:i'm |i am )?not sure|i don't know|what if)\b", re.IGNORECASE
)


class Choice(NamedTuple):
    """A settled matter: the statement, and whether it is the person's own or an agent's that the person took up."""

    text: str
    own: bool
    more: bool = False
    """Whether the reply that takes it up adds something."""
    about: str = ""
    """Of an entry of a list: what the list answers, or what is said below the entry."""

    @property
    def asked(self) -> bool:
        """Return whether it has to be read with its answer: it is a question, or the answer adds something."""
        return self.more or (not self.own and self.text.rstrip("*_ ").endswith("?"))

    def with_answer(self, said: str) -> str:
        """Return the statement with the answer `said` if it is asked, else with what it is about, if that is known."""
        if self.asked:
            return f"Asked: {self.text}\nAnswered: {said}"
        return f"Asked: {self.about}\nAnswered: {self.text}" if self.about else self.text


def settled(reply: str, before: str) -> Choice | None:
    r"""Return what a person's `reply` settles, given the agent's message `before` it, or None.

    >>> settled("let's do b then", "Two ways:\n\n(a) gate it on the flag\n\n(b) keep the endpoint in a field of its own")
    Choice(text='keep the endpoint in a field of its own', own=False, more=False, about='')
    >>> settled("yes", "I'd recommend SQLite, because it needs no server. Shall I use it?")
    Choice(text="I'd recommend SQLite, because it needs no server.", own=False, more=False, about='')
    >>> settled("yes", "All tests pass. Want me to push?") is None
    True
    """
    said = reply.replace("’", "'").strip()
    if len(said) <= REPLY_CHARS and not said.endswith("?"):
        to_question = _ANSWERS.search(said)
        picked = _PICKED.match(said[to_question.start() :] if to_question else said) or _PICKED_AGAIN.match(
            said
        )
        if picked and (option := option_of(before, picked["label"])) and not _opens_list(option):
            return Choice(option, own=False, more=_says_more(said, picked), about=about_of(before, option))
        offer = _offer_with(before, picked["label"]) if picked else _offer_of_words(before, said)
        if offer:
            return Choice(offer, own=False, more=True)
        back = _BACK.search(said)
        agrees = _YES.match(said) or back
        taken = proposal_of(before, back=bool(back)) if agrees and not _BUT.search(said) else ""
        if agrees and taken and not _opens_list(taken):
            return Choice(taken, own=False, more=_says_more(said, agrees))
    if len(reply) > MESSAGE_CHARS:
        return None
    own = next(filter(chooses, prose(reply)), "")
    if _PART.match(own) and len(reply) <= REPLY_CHARS:  # the answers to several questions belong together
        own = reply.strip()
    return Choice(own, own=True, about=_matter_of(own, before)) if own else None


def _matter_of(own: str, before: str) -> str:
    """Return what a person's choice is about, from the agent's message `before` it, if it does not say so; else "".

    >>> _matter_of("let's leave that out for now", "For sessions that share a commit, what should the summary hold? Which form?")
    'For sessions that share a commit, what should the summary hold?'
    """
    if _POINTS_BACK.match(own) and (subject := _subject(before)):
        return subject
    if len(own.split()) > SHORT_CHOICE or _NAMES.search(own) or refuses(own):
        return ""
    asked = [
        one for one in prose(before) if one.rstrip("*_ ").endswith("?") and not asks_leave(Paragraph(one, ""))
    ]
    return next((one for one in reversed(asked) if len(one.split()) >= QUESTION_WORDS), "")


def _subject(before: str) -> str:
    """Return what the agent's message `before` reports first, unless it reports much: what "this" is in the person's reply.

    >>> _subject("Added `commit_sha` to the metadata of each checkpoint. All tests pass.")
    'Added `commit_sha` to the metadata of each checkpoint. All tests pass.'
    """
    return next(iter(claims(paragraphs(before), SUBJECT_CHARS)), "") if len(before) <= SHORT_MESSAGE else ""


def _says_more(said: str, taken: re.Match[str]) -> bool:
    """Return whether a reply has more words than those that take something up."""
    return len(said.split()) - len(taken[0].split()) >= MORE_WORDS


def _opens_list(text: str) -> bool:
    """Return whether `text` says nothing without the list below it ("Given that, I'd suggest:")."""
    return text.rstrip("*_ ").endswith(":")


def chooses(sentence: str) -> bool:
    """Return whether a person's `sentence` settles how the work is done, by itself.

    >>> chooses("I think let's have one log per worktree"), chooses("let's look at the tests"), chooses("should we keep it?")
    (True, False, False)
    """
    return bool(own_choice(sentence))


def own_choice(sentence: str) -> str:
    """Return the name of the cue by which a person's `sentence` settles how the work is done, "" without one.

    >>> own_choice("we should log the scope, not the whole transcript"), own_choice("let's start")
    ('this, not that', '')
    >>> own_choice("let's note on the ticket that it is obsolete?"), own_choice("let's keep the flag or drop it?")
    ("let's, with a question mark", '')
    """
    said = sentence.replace("’", "'").strip()
    if said.endswith(":") or not len(said.split()) >= CHOICE_WORDS or len(said) > CHOICE_CHARS:
        return ""
    asked = said.endswith("?")
    searched = as_said(said)
    names = (name for name in likely(OWN_CHOICES, _BY_HEAD, [searched]) if (name == _LETS_ASKED) == asked)
    name = next((name for name in names if has(OWN_CHOICES[name], searched)), "")
    if not name:
        return ""
    momentary = name != "this, not that" and _MOMENT.search(_THEN.split(said, maxsplit=1)[0])
    open_ = _DOUBTS.search(said) or _FORESEES.search(said) or regrets(said)
    return "" if momentary or open_ else name


def option_of(text: str, label: str) -> str:
    r"""Return the first statement of the entry `label` of the last list in `text`, "" without one.

    >>> option_of("1. Keep it.\n2. **Drop it** and say so.\n", "2")
    '**Drop it** and say so.'
    """
    for shape in _LABELS:
        found = [*re.finditer(shape.format(label=re.escape(label)), text, re.IGNORECASE | re.MULTILINE)]
        if found:
            start = found[-1]
            head = re.match(
                r"\s*(?:[-*•] +)?(?:#+ *)?(?:\*\*)?(?:(?:option|variant|approach|alternative) *)?\(?" + re.escape(label) + r"[.):]?\)?(?:\*\*)?[ \t—–:-]*",
                text[start.start() :], re.IGNORECASE,
            )  # fmt: skip
            at = start.start() + (head.end() if head else 0)
            return first_statement(text[at : at + _OPTION_CHARS])
    rows = [*re.finditer(_ROW.format(label=re.escape(label)), text, re.IGNORECASE | re.MULTILINE)]
    return first_statement(text[rows[-1].start() :][:_OPTION_CHARS]).strip("| ") if rows else ""


def _offer_with(text: str, label: str) -> str:
    """Return the last sentence of `text` that offers options in itself, `label` one of them; "" without one."""
    for one in reversed(sentences(text)):
        labels = [each.casefold() for each in _IN_SENTENCE.findall(one)]
        offers = one.rstrip().endswith("?") or _BETWEEN_TWO.search(one)
        if offers and len(set(labels)) > 1 and label.casefold() in labels:
            return one if len(one) <= _OPTION_CHARS else ""
    return ""


def _offer_of_words(text: str, reply: str) -> str:
    """Return the closing question of `text` if it asks which of two, and `reply` only repeats one in its words."""
    asked = closing_question(text)
    if len(reply.split()) > OFFERED_WORDS or not _BETWEEN_TWO.search(asked):
        return ""
    if _ACTS.search(asked) or _ASKS_BACK.match(reply):
        return ""
    said = {*stems(reply)}.difference(stems(_POLITE))
    takes = [side for side in _BETWEEN_TWO.split(asked) if said and said <= {*stems(side)}]
    return asked if len(takes) == 1 else ""


def about_of(text: str, option: str) -> str:
    r"""Return what the entry `option` of a list in `text` is about: what is said below it, else what is said above the list.

    >>> about_of("The reason is never shown.\n\n**Options:**\n1. Drop it\n2. Log it\n\nWhich?", "Log it")
    'The reason is never shown.'
    >>> about_of("## (b) a field of its own\n\nThe URL stays as it was typed.", "a field of its own")
    'The URL stays as it was typed.'
    """
    before, _, after = text.rpartition(option)
    line = before.rpartition("\n")[2]
    if line.lstrip().startswith("#"):
        said = [one for one in paragraphs(after)[:1] if not one.entry]
    else:
        above = paragraphs(before.removesuffix(line))
        said = [one for one in above if not one.entry and not OPTION.match(one.text)][-1:]
    found = whole(said[0].text, CHOICE_CHARS) if said else ""
    kept = sentences(found)
    if kept and kept[-1].endswith(":"):
        found = " ".join(kept[:-1])
    return (
        found
        if len(found.split()) >= CHOICE_WORDS and found in " ".join(text.replace("**", "").split())
        else ""
    )


def proposal_of(text: str, *, back: bool = False) -> str:
    """Return what an agent's message `text` proposes: its recommendation, what it says after an offer of how, or the choice of its closing question.

    With `back`, the closing question may offer the way back that the person takes.
    """
    said = prose(text)[-_CLOSING:]
    found = [one for one in said if _RECOMMENDS.search(one) and not one.rstrip("*_ ").endswith(("?", ":"))]
    if found and len(found[-1].split()) >= CHOICE_WORDS:
        return found[-1]
    asked = closing_question(text)
    if found and asked and (both := f"{asked} {found[-1]}") in text:
        return both  # "Jitter or a fixed step? I recommend jitter."
    after = text.rpartition(asked)[2].strip() if asked and asked in text else ""
    if len(after) <= CHOICE_CHARS and _HOW.match(after):
        return after
    way = back and _MANNER.search(asked)
    if not asked or (not way and (_OFFERS.search(asked) or not asks_for_decision(asked))):
        return ""
    both = f"{asked} {after}"
    return both if after and both in text and len(both) <= CHOICE_CHARS else asked


def first_statement(text: str) -> str:
    """Return the first line of `text` that says something, whole."""
    line = next((one.strip() for one in text.split("\n") if one.strip()), "")
    if line.count("**") % 2:
        line = line.replace("**", "", 1)  # the opening one was before the label
    return line if len(line) < _OPTION_CHARS else ""
