"""Endings: what a person's words end: a rule or decision that they name, or what was settled just before.

Only the words that name the matter count: in "the rule about retries is dropped, retry as often as you like" they are
"retries". "You can use mocks after all" ends what forbids mocks, "we don't need a changelog any more" what demands
one. A question, a condition, a report, a quotation and an exception for the moment end nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aether.hints import Literal
from aether.text.regex import lazy
from aether.text.words import sentences, stems, unquoted, with_apostrophes, words
from aether.tuples import NamedTuple

# A longer message is a report.
MESSAGE_CHARS = 600
# A longer sentence explains.
_MOST_CHARS = 300

_NOUN = r"(?:rule|constraint|convention|requirement|restriction|decision|guideline|policy|prohibition|ban)s?"
_THE = r"(?:the|that|this|my|our|your|those|these|all)"
_ABOUT = r"(?:about|on|for|of|that|against|to|not to|never to|with|regarding|concerning|around)"
# The rest of a name ends with its clause.
_REST = r"[^.,;:!?]{1,80}?"
_END = r"(?=\s*(?:[.,;:!?]|$)| (?:but|because|since|please|now|then)\b| and (?:just |please |simply )?(?:use|do|go|start|keep|feel|let|allow|make|write|run|try)\b)"
_OVER = (
    r"(?:(?:is|are|was|were|has been|have been) (?:now |officially |hereby |all )*"
    r"(?:gone|dropped|lifted|void|obsolete|off the table|history|dead|over|cancell?ed|revoked|withdrawn|scrapped|abandoned|outdated|moot)"
    r"|(?:is|are) (?:no longer|not) (?:valid|in force|needed|required|necessary)(?: any ?(?:more|longer))?"
    r"|(?:no longer|doesn't|don't|does not|do not) (?:appl(?:y|ies)|holds?|counts?|matters?)(?: any ?(?:more|longer))?"
    r"|can go)\b(?! (?:from|in|on|at|to|with|outside|over)\b)"
)
_DROP = (
    r"(?:^\W*|[,;:–—-]\s*|\b(?:please|pls|let's|lets|let us|just|can|may|to|and|so|then|now|also|actually|simply|hereby|we|i|i'll|we'll) )"
    r"(?:forget(?: about)?|drop|ignore|scrap|scratch|lift|revoke|cancel|disregard|abandon|ditch|discard|withdraw|retract|remove|delete|take back|never ?mind|get rid of|do away with)"
)
_NOUNS = ("rule", "constraint", "convention", "requirement", "restriction", "decision", "guideline", "policy", "prohibition", "ban")  # fmt: skip
_CALM = r"(?:needed|required|necessary|mandatory|compulsory)"
# Each has the words of the matter in `of` or `about`.
_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("", lazy(rf"\b{_THE} (?P<of>(?:[\w'.-]+ ){{0,4}}?){_NOUN}(?: {_ABOUT} (?P<about>{_REST}))? {_OVER}", re.IGNORECASE, needs=_NOUNS)),
    ("", lazy(rf"^(?P<of>(?:[\w'.-]+ ){{1,3}}?){_NOUN}(?: {_ABOUT} (?P<about>{_REST}))? {_OVER}", re.IGNORECASE, needs=_NOUNS)),
    ("", lazy(rf"{_DROP} {_THE} (?P<of>(?:[\w'.-]+ ){{0,4}}?)(?:{_NOUN}|thing)(?: {_ABOUT} (?P<about>{_REST}))?{_END}", re.IGNORECASE, needs=(*_NOUNS, "thing"))),
    ("", lazy(
        rf"{_DROP} (?:(?:what|everything|anything|whatever|all) (?:that )?)?(?:i|we)(?:'ve| have)? (?:ever )?(?:said|told you|wrote|asked|demanded|wanted)(?: earlier| before| above| yesterday)? {_ABOUT} (?P<about>{_REST}){_END}",
        re.IGNORECASE, needs=("said", "told", "wrote", "asked", "demanded", "wanted"),
    )),
    ("", lazy(rf"\bi(?:'ve| have)? changed my mind (?:about|on|regarding) (?P<about>{_REST}){_END}", re.IGNORECASE, needs=("changed my mind",))),
    ("", lazy(rf"\b(?:we|you|i) (?:don't|do not|no longer) need {_THE} (?P<of>(?:[\w'.-]+ ){{0,4}}?){_NOUN}(?: {_ABOUT} (?P<about>{_REST}))?(?: any ?(?:more|longer))?{_END}", re.IGNORECASE, needs=_NOUNS)),
    # What something else takes the place of: "drop X: we go back to Y", "drop X and use Y instead".
    ("", lazy(rf"{_DROP} (?P<about>(?!(?:it|this|that|them|everything|all|the|an?|my|our|your)\b)[\w'./-]+(?: [\w'./-]+){{0,2}})(?:[,;:.–—-]+| and| then)+ (?:(?:we|let's|lets|please|just|then|and|i) )*(?:(?:'ll|will|are|go|going|switch|move|return) )*(?:back to|use \S+(?: \S+){{0,3}} instead)\b", re.IGNORECASE, needs=("back to", "instead"))),
    ("habit", lazy(rf"^\W*(?:(?:ok(?:ay)?|so|and|please|from now on),? )*no more (?!.*\b(?:needed|necessary|since|today|look)\b)(?P<about>\w{{3,}}ing(?: [\w'./-]+){{0,3}}?){_END}", re.IGNORECASE, needs=("no more",))),
    # What is allowed again.
    ("forbidden", lazy(rf"\b(?:you|we|everyone|everybody|anyone) (?:can|may|are (?:allowed|free|welcome) to) (?:now )?(?P<about>{_REST}) after all\b", re.IGNORECASE, needs=("after all",))),
    ("forbidden", lazy(rf"\b(?:you|we|everyone|everybody|anyone) (?:(?:can|may) (?:now )?(?:use|have)|are (?:now )?(?:allowed|free|welcome) to) (?P<about>{_REST}) (?:again|from now on)\b", re.IGNORECASE, needs=("again", "from now on"))),
    ("forbidden", lazy(rf"\bfeel free to (?P<about>{_REST}) (?:after all|again|from now on)\b", re.IGNORECASE, needs=("feel free",))),
    ("forbidden", lazy(
        rf"(?:^|[,;:] )(?:and |but |so |ok(?:ay)? |actually )?(?P<about>{_REST}) (?:is|are) (?:(?:now |again )(?:allowed|permitted)|(?:allowed|permitted) (?:again|now|after all|from now on)|(?:ok|okay|fine) after all)\b",
        re.IGNORECASE, needs=("allowed", "permitted", "after all"),
    )),
    # What is needed no more.
    ("demanded", lazy(rf"\b(?:we|you|i) (?:don't|do not|needn't) (?:really )?(?:need|require|have)? ?(?:to )?(?P<about>{_REST}) any ?(?:more|longer){_END}", re.IGNORECASE, needs=("more", "longer"))),
    ("demanded", lazy(rf"\b(?:we|you|i) no longer (?:need|require|have to)(?: to)? (?P<about>{_REST}){_END}", re.IGNORECASE, needs=("no longer",))),
    ("demanded", lazy(rf"\bno (?:more |longer )?need (?:for|to) (?P<about>{_REST}) any ?(?:more|longer){_END}", re.IGNORECASE, needs=("need",))),
    ("demanded", lazy(rf"(?:^|[,;:] )(?:and |but |so |ok(?:ay)? |actually )?(?P<about>{_REST}) (?:(?:is|are) no longer {_CALM}|(?:is not|are not|isn't|aren't) {_CALM} any ?(?:more|longer)){_END}", re.IGNORECASE, needs=("longer", "more"))),
    ("", lazy(rf"\b(?:die|diese) (?P<of>[\w-]*?)(?:-)?regel(?: (?:mit|zu|zum|zur|über|für|von|gegen) (?P<about>{_REST}))? (?:gilt nicht mehr|ist (?:jetzt )?(?:weg|hinfällig|aufgehoben|gestrichen))\b", re.IGNORECASE, needs=("regel",))),
    ("", lazy(rf"^\W*(?:bitte )?(?:vergiss|streiche?|ignoriere?) die (?P<of>[\w-]*?)(?:-)?regel(?: (?:mit|zu|zum|zur|über|für|von|gegen) (?P<about>{_REST}))?{_END}", re.IGNORECASE, needs=("regel",))),
)  # fmt: skip
# Before the cue: who doubts, asks, supposes, forbids or reports ends nothing.
_UNSURE = lazy(
    r"\b(?:don't|do not|doesn't|didn't|never(?! mind)|not|can't|cannot|won't|wouldn't|shouldn't|mustn't|isn't|aren't|if|whether|when|once|unless|until|as soon as|"
    r"why|how|what(?! i| we)|who|should|could|would|might|maybe|perhaps|probably|wish|hope|pretend|imagine|suppose|assum\w+|says?|said|saying|claims?|claimed|told|tells|asks?|asked|"
    r"wrote|writes|reads|thinks?|thought|believes?|heard|wonder\w*|sure|did|have you|do you|forgot|forgotten|tried|trying|plan|planned|promised?|looks like|seems?|apparently)\b",
    re.IGNORECASE,
)
_I_SAID = lazy(
    r"\b(?:as |like )?i (?:already |just )?(?:said|told you)\b(?: before| earlier)?,?", re.IGNORECASE
)
# After it: an exception, a condition, or a question.
_PARTLY = lazy(
    r"\b(?:for now|right now|just now|this time|today|tonight|tomorrow|just once|for (?:this|that|the moment|these|those|a)|(?:in|on|to|with) (?:this|that|these|those)|here|there|temporarily|"
    r"at the moment|until|unless|if|when|once|as soon as|except|yet|right\W*$|correct\W*$|or not|or is it|isn't it|aren't they)\b",
    re.IGNORECASE,
)
_NEXT = lazy(r"[,;:–—](?! ?(?:unless|until|except|if|when|once|right|correct|or|isn't|aren't)\b)")
_OF_THE_MOMENT = lazy(r"\b(?:this|that|these|those|it|them|him|her|us|me)\b", re.IGNORECASE)
# Without a name, these mean the only rule of the conversation; a "constraint" may be one of a database.
_UNNAMED = lazy(r"\b(?:rule|restriction|guideline|ban)s?\b", re.IGNORECASE)
# A whole sentence that takes back what was settled just before; with an object it is an order.
_UNDOES = lazy(
    r"\W*(?:(?:nah|no|nope|na|actually|hmm+|ok(?:ay)?|wait|sorry|then)\W+)*(?:let's |lets |please |we )?(?:roll(?:ed)? (?:it |this |that )?back|revert(?: it| this| that)?|undo (?:it|this|that)|go back)(?:\W+(?:please|then|again))*\W*",
    re.IGNORECASE,
)
_AFTER_ALL = lazy(
    r"^\W*(?:(?:ok(?:ay)?|actually|no|nah|hmm+|sorry|wait|then|so)\W+)*(?:(?:let's|lets|we(?:'ll| will)?) (?:do|take|use|go with)|go with|take|use) \S.*\bafter all\b",
    re.IGNORECASE,
    needs=("after all",),
)
# Every sentence that ends a matter has one of these; most texts have none, and are not cut into sentences.
_SIGNS = (
    "rule constraint convention requirement restriction decision guideline policy prohibition ban thing back revert undo "
    "after again instead allowed permitted from more longer said told wrote asked demanded wanted mind regel"
).split()
# These do not name a matter.
_NAMELESS = frozenset(
    "the that this my our your their old earlier previous new silly stupid whole other same one of on for about to in with at by we i you it a an and or any all no not never always"
    " don't doesn't use using used have having do doing be being make making put take get write writing add adding run running keep keeping follow following must should only rule rules thing things der die das den dem mit und".split()
)
_FORBIDS = lazy(
    r"\b(?:no|not|never|without|avoid|stop|forbidden|prohibited|refrain|nothing|nobody|instead|kein\w*|nie|niemals|nicht)\b|n't\b",
    re.IGNORECASE,
)


class Ending(NamedTuple):
    """What a person's sentence ends: the matter that its `words` name, the choice just made, or an earlier pick."""

    kind: Literal["named", "last", "picked"]
    words: frozenset[str] = frozenset()
    only: str = ""
    """`forbidden` if only a matter that forbids is ended, `demanded` if only one that demands; `habit` is the same where the
    words set a rule as well: "no more squashing" forbids what it ends."""

    def concerns(self, text: str) -> bool:
        """Return whether the rule or decision `text` is what the words name."""
        if self.only and (self.only == "forbidden") != bool(_FORBIDS.search(with_apostrophes(text))):
            return False
        return self.words <= _stems(text)


@lru_cache(maxsize=2_000)  # each ending is compared with all rules and decisions
def _stems(text: str) -> frozenset[str]:
    return frozenset(stems(text))


def ending(sentence: str) -> Ending | None:
    """Return what a person's `sentence` ends, or None.

    >>> ending("The rule about mocks no longer applies."), ending("nah, roll back"), ending("roll back the migration")
    (Ending(kind='named', words=frozenset({'mock'}), only=''), Ending(kind='last', words=frozenset(), only=''), None)
    >>> ending("We do B after all").kind, ending("Is the old rule dropped?")
    ('picked', None)
    >>> ending("You can use mocks after all."), ending("The rule does not apply to this file.")
    (Ending(kind='named', words=frozenset({'mock'}), only='forbidden'), None)
    """
    if not _may_end(sentence):
        return None
    said = unquoted(with_apostrophes(sentence)).strip()
    if said.endswith("?") or len(said) > _MOST_CHARS:
        return None
    for only, pattern in _NAMES:
        if found := pattern.search(said):
            return _named(found, said, only)
    if _UNDOES.fullmatch(said):
        return Ending("last")
    return Ending("picked") if _AFTER_ALL.match(said) else None


def _named(found: re.Match[str], said: str, only: str) -> Ending | None:
    """Return the ending of the matter that a match of `said` names, None if the sentence ends nothing."""
    given = found.groupdict()
    named = f"{given.get('of') or ''} {given.get('about') or ''}"
    before = _I_SAID.sub(" ", said[: found.start()])
    after = _NEXT.search(said, found.end())
    if _UNSURE.search(before) or _PARTLY.search(said, found.start(), after.start() if after else len(said)):
        return None
    if only and _OF_THE_MOMENT.search(named):
        return None
    name = frozenset(stems(" ".join(one for one in words(named) if one not in _NAMELESS)))
    if not name and (only or not _UNNAMED.search(found[0])):
        return None
    return Ending("named", name, only)


def endings(text: str) -> list[Ending]:
    """Return what the sentences of a person's `text` end; a long text is a report."""
    if len(text) > MESSAGE_CHARS or not _may_end(text):
        return []
    return [found for one in sentences(text) if (found := ending(one))]


def _may_end(text: str) -> bool:
    # Beyond ASCII, letters have more than one small form.
    return not text.isascii() or any(map(text.lower().__contains__, _SIGNS))
