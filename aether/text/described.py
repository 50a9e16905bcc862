"""Described: sentences with the words of a rule that only speak of one.

An option of a choice, a supposition ("the parser must be broken"), a bug ("it should never be empty, but it is"), a
question without its mark, the reason of something, and what somebody else says: none of them demands anything.
"""

from __future__ import annotations

import re
from itertools import pairwise

from aether.text.regex import lazy

_CUE = r"\b(?:never|always|must(?:n't)?|don't|do not|not|no|avoid|should(?:n't)?|shall|only|every|each|nie|niemals|immer)\b"
_OPTION = lazy(
    r"^\W*(?:the )?(?:option|variante?|approach|alternative|plan|choice|proposal|scenario|möglichkeit|vorschlag) (?:\(?(?:[a-h]|\d{1,2})\)?|one|two|three|four)\s*(?:[:.)–—-]|(?:is|would|could|says)\b)"
    r"|^\W*(?:one|another|a(?:n other)?|the (?:first|second|third|fourth|other|last|only|simplest)) (?:\w+ )?(?:option|way|idea|possibility|approach|alternative|solution)\b[^,;:]{0,30} (?:is|would|could|might|may)\b"
    r"|^\W*either\b.*\bor\b|^(?:we|you|i|one) (?:could|might)\b|^(?:we|you|i) can either\b",
    re.IGNORECASE,
    needs=tuple(
        "option variant approach alternativ plan choice proposal scenario möglichkeit vorschlag way idea possibility solution either could might".split()
    ),
)
_TROUBLE = r"(?:bugs?|race|problems?|issues?|mistakes?|typos?|leaks?|glitch(?:es)?|regressions?|mismatch(?:es)?|misunderstandings?|reasons?|conflicts?)"
_SUPPOSES = lazy(
    # "must have been", "must have changed the port"; not "must have a docstring".
    r"\bmust(?:'ve| have) (?:\w+ly |also |just |somehow )?(?:been|gone|got|gotten|done|lost|made|set|run|come|had|become|broken|forgotten|taken|\w+ed)\b(?! (?:fields?|columns?|names?|keys?|values?)\b)"
    r"|\bmust (?:(?:still|just|simply|really|somehow|actually|already|all|also|surely|clearly) )*be (?:(?:still|just|simply|really|somehow|actually|already|completely|totally) )*"
    r"(?:broken|wrong|stale|outdated|corrupt(?:ed)?|buggy|faulty|flaky|misconfigured|misread\w*|confused|mistaken|kidding|joking|tired|crazy|lying|out of (?:date|sync|memory|space|range|order)|due to|because|caused|something|somewhere|somehow|someone|some (?:kind|sort)"
    rf"|(?:(?:down|off|old|full|dead|slow|right|lost|stuck|low|asleep|missing|there|it|gone)\W*$)|an? (?:\w+ ){{0,2}}{_TROUBLE}\b)"
    r"|^(?!(?:every|each|all|any|no)\b).*\bmust (?:not )?(?:(?:still|just|simply|really|somehow|actually|already|all|also) )*be (?:(?:still|just|somehow) )*(?!string|nothing|during|bring|spring|something|everything)\w+ing\b(?!.*\b(?:before|whenever|while|during|at all times|in order)\b)"
    # Of feelings and strangers' lives one can only guess.
    r"|\bmust (?:\w+ly )?(?:feel|bring|love|enjoy|miss|hate|like|know)\b|\bmust have (?:a lot|lots|so much|so many|plenty)\b|\bmust be (?:so|such|quite|really|super|pretty|truly|a (?:good|great|nice|big|huge|lot|blast|pain|relief|challenge))\b"
    r"|\bmust be (?:\w+ly )?(?:great|awesome|amazing|nice|fun|hard|tough|exciting|excited|wonderful|incredible|rewarding|frustrating|frustrated|satisfying|fulfilling|interesting|proud|happy|thrilled|stoked|lovely|cool|annoying|annoyed|exhausted|exhausting|busy|fascinating)\b"
    r"|^(?:the |its |my |our )?(?:\w+ )?(?:reason|cause|culprit|problem|issue|bug|fault|explanation|difference) must be (?:the|an?|in|that|some|with|related|due|my|our|your)\b"
    rf"|^(?:some(?:body|one|thing)|there) must\b|^there (?:must|should) be (?:an? )?(?:\w+ )?{_TROUBLE}\b"
    r"|\b(?:muss|müssen)\b.*\b(?:kaputt|falsch|defekt|veraltet|schuld|fehlerhaft|(?:ein|der) (?:fehler|bug)|gewesen|geworden|liegen)\b(?: \w+)?\W*$"
    r"|\bmust be \w+ (?:somewhere|somehow|by (?:something|someone|somebody|another|some))\b"
    r"|^(?:as far as i know|afaik|iirc|if i recall|in my experience|in theory)\b"
    r"|^(?:so |and |but )?(?:i|we) (?:guess|suspect|assume|believe|bet|wonder(?:ed)?|doubt|suppose|imagine|fear|thought|heard|noticed|realis\w+|realiz\w+|see|saw|know|knew|learned|found)\b"
    r"|\b(?:probably|apparently|presumably|supposedly|allegedly|maybe|it (?:seems|looks|appears)|seems (?:to|like|that)|looks like|vermutlich|wahrscheinlich)\b",
    re.IGNORECASE,
    needs=tuple(
        "must|muss|müss|there should|as far as i know|afaik|iirc|i recall|in my experience|in theory|guess|suspect|assume|believe|bet|wonder|doubt|suppose|imagine|fear|thought|heard|noticed|reali|see|saw|know|knew|learned|found|probably|apparently|presumably|allegedly|maybe|it looks|it appears|looks like|vermutlich|wahrscheinlich".split(
            "|"
        )
    ),
)
# "We should never have used it" regrets.
_REGRETS = lazy(
    r"\b(?:i|we|you|they|he|she|it|that|this|there) (?:should|shouldn't|could|would|must|ought to)(?: (?:never|always|not|only|probably|really))* have "
    r"(?:been|gone|got|done|made|had|kept|left|seen|known|said|told|written|taken|put|run|\w+(?:ed|en))\b",
    re.IGNORECASE,
    needs=(" have ",),
)


def regrets(said: str) -> bool:
    """Return whether `said` is about what was not done.

    >>> regrets("We should never have used it."), regrets("We should have one log per worktree.")
    (True, False)
    """
    return _REGRETS.search(said) is not None


# What is demanded of a thing, and then seen to be otherwise.
_DEMANDS = r"\b(?:must(?:n't)?|should(?:n't)?|shall|may|has to|have to|needs? to|(?:is|are) (?:supposed|meant|expected) to|darf|muss|sollte)\b"
_ALLOWS = r"(?!.*\b(?:may|can|could|should|must|shall|needs? not|allowed|fine|ok|okay|darf|dürfen|kann)\b)"
_SEEN = (
    rf"(?:but|yet|and yet|however|although|whereas|instead|except that|aber|doch),? {_ALLOWS}"
    r"(?:(?:now|right now|currently|still|somehow|sometimes|often|here|today|for me|in (?:\w+ ){1,3}|on (?:\w+ ){1,3}|at (?:\w+ ){1,3}|with (?:\w+ ){1,3}|after (?:\w+ ){1,3}|since (?:\w+ ){1,3}|when(?:ever)? [^,]{1,40},),? ?)*"
    r"(?:it|they|we|i|he|she|this|that|there|the|some|one|mine|ours|nothing|everything|is|are|was|were|does|do|did|has|have|hasn't|haven't|isn't|aren't|doesn't|don't|didn't|wasn't|still|keeps?|er|sie|es|ist|sind)\b"
)
# "…, it doesn't", "… and it isn't": the denial is the end of its clause.
_DENIED = (
    r"(?:and |which |that )?(?:it|they|this|that|he|she)? ?(?:(?:still|currently|just|now) )?"
    r"(?:isn't|aren't|doesn't|don't|didn't|hasn't|haven't|wasn't|weren't|is not|are not|does not|do not|did not)(?: (?:now|today|currently|yet|here|for me|at the moment|right now))?\W*(?:$|[,;.!] )"
)
_OTHERWISE = lazy(
    rf"{_DEMANDS}.*[,;:.–—-]? ?\b{_SEEN}|{_DEMANDS}.*(?:[,;:.–—-]| and) {_DENIED}|{_DEMANDS}.*, (?:ist|sind|tut|wird|hat) (?:er|sie|es) aber\b"
    r"|^\W*(?:expected|actual|observed|symptoms?|bug|steps to reproduce|erwartet|tatsächlich)\b[^:]{0,30}:",
    re.IGNORECASE,
    needs=tuple(
        "but|yet|however|although|whereas|instead|except that|aber|doch|n't|not|expected|actual|observed|symptom|bug|steps to|erwartet|tatsächlich".split(
            "|"
        )
    ),
)
_SEEN_NEXT = lazy(
    rf"^\W*{_SEEN}",
    re.IGNORECASE,
    needs=("but", "yet", "however", "although", "whereas", "instead", "except that", "aber", "doch"),
)
_IT_DOES = lazy(
    r"^\W*(?:right now |currently |now |still |today )?(?:it|they|that|this) (?:is|are|was|were|does|do|did|has|have|isn't|aren't|doesn't|didn't|hasn't)\W*$",
    re.IGNORECASE,
)
_DEMANDED = lazy(_DEMANDS, re.IGNORECASE)
_HAPPENED = lazy(
    r"^(?:always|never) (?:the|an?|had|here|there|great|nice|happy|glad|up for|down for|done|say never|give up|(?!string|bring|ping)\w+ing|seen|been|got|saw|heard|worked|happened|mind|again|once|any)\b(?!.*\bplease\b)"
    rf"|^no (?:new|more|other) (?:\w+ )?(?:errors?|failures?|warnings?|crash(?:es)?|findings?|complaints?|luck|space|room|memory|time|credits|ideas?|reasons?|{_TROUBLE})\b(?!.*\b(?:please|allowed)\b)"
    r"|^always (?:on|in|at|with|for) (?:my|our|this|the|your)\b(?!.*\b(?:if|when|whenever|before|after|until|unless)\b).*\b(?:fails?|crash(?:es)?|breaks?|hangs?|times out)\W*$"
    r"|, (?:(?:so|very|really|which is|it's) )?(?:annoying|annoyingly|frustrating|painful|weird|strange|ugh|sigh)\W*$"
    r"|^(?:always|never) (?:green|red|slow|fast|broken|empty|flaky|wrong|late|right|true|false|good|bad|available|there)\b(?!.*\bplease\b)"
    r"|^(?:the|my|our|these|those|both|most|some) (?:[\w-]+ ){1,3}(?:always|never) (?:pass|fail|work|run|start|end|show|look|come|go|get|return|load|finish|crash|hang|break|happen|take|have|do|seem|appear|stop)\b"
    r"|, always (?:here|there|\w+ing)\b"
    r"|\bonly (?:if|when|once|after) i (?!say|ask|tell|confirm|approve|agree|want|request)\w"
    r"|[,;:] (?:and |but )?never (?:got|had|saw|ran|was|were|went|came|made|found|heard|did|took|gave|lost|broke|wrote|said|knew|thought|felt|left|kept|seen|been)\b"
    r"|^(?:if|when|whenever|once|after|every time|as soon as) .*\b(?:always|never|don't|can|can't|still|only) (?:get|gets|see|sees|end up|ends up|have|has|lose|loses|hit|hits|happens?|crash\w*|fails?)\b"
    r"|\b(?:crash(?:es|ed)?|fails?|failed|breaks?|broke|hangs?|happens?|happened|occurs?|appears?|shows? up|reproduces?|freezes?|flickers?)\b.*\bonly (?:if|when|where|once|after)\b"
    r"|\bonly (?:crash(?:es|ed)?|fails?|failed|breaks?|broke|hangs?|happens?|happened|occurs?|appears?|shows? up)\b",
    re.IGNORECASE,
)
_ASKS = lazy(
    r"^(?:and |but |so |or )?(?:why|how (?:come|do|does|is|are|can|should|would|must)|which|who|whose|whether|what (?:if|is|are|does|do|about|should|must)|do (?:we|you|i|they)|does|did|is (?:it|there|this|that|the)|"
    r"are (?:we|you|there|these|they)|can (?:we|i|it|they)|could (?:we|i|it|they)|should (?:we|i|it|the|there|they|this|that)|shall (?:we|i)|must (?:we|i|it|the)|wondering|not sure|no idea|unsure|unclear|curious)\b",
    re.IGNORECASE,
)
# In words of one's own these introduce a rule.
_OWN = lazy(
    r"\b(?:i|we) (?:already |just |also |have |really )?(?:said|told you|asked you|asked for|want|mean|demand|insist|require|recommend|suggest)\b",
    re.IGNORECASE,
)
_SAID_BY_OTHERS = lazy(
    rf"^(?:(?!{_CUE}).)*?(?:\b(?:says|said|told (?:me|us|him|her|them)|asked (?:me|us|him|her|them)|(?:was|were|been) told|(?:read|heard|never said|didn't say) that|why|whether|claim(?:s|ed) that|wrote|writes|states that|stated|demands that|insists|complain(?:s|ed)|"
    r"suggests|suggested|recommends|recommended|according to|mentions|mentioned|explains|explained|reported that|requires that|wants|thinks|believes|commented|(?:i|we|they|you|he|she|it|team) used to|"
    r"(?:they|docs?|people|some|guides?|guidelines?|comments?|reviewers?|others) say|(?:that|which|this|it) (?:just |only |also )?means|meaning)\b"
    rf"|\S.*\b(?:because|since|even though)\b(?=[^,;]*{_CUE}))",
    re.IGNORECASE,
)
_CONDITION = lazy(
    rf"^(?:if|when|whenever|unless|before|after|while|once|in case)\b[^,]*, (?=.*{_CUE})",
    re.IGNORECASE,
    needs=(", ",),
)


def describes(said: str) -> bool:
    """Return whether `said`, unquoted and with apostrophes, only speaks of a rule.

    >>> describes("Option A: never cache"), describes("the parser must be broken"), describes("The parser must be fast.")
    (True, True, False)
    >>> describes("It should never be empty, but it is."), describes("It must not be empty, but it may be short.")
    (True, False)
    """
    said = said.lstrip("-*•+> \t")
    cues = (_OPTION, _SUPPOSES, _REGRETS, _OTHERWISE, _HAPPENED)
    if any(cue.search(said) for cue in cues) or _ASKS.match(said):
        return True
    return bool(_SAID_BY_OTHERS.match(_OWN.sub("", _CONDITION.sub("", said))))


def is_otherwise(demand: str, after: str) -> bool:
    """Return whether the sentence `after` a demand on a thing says that it is not met ("It should never fail. But it does.")."""
    return bool(_DEMANDED.search(demand) and (_SEEN_NEXT.match(after) or _IT_DOES.match(after)))


_ENTRY = lazy(r"^\s*(?:[-*+]|•|\d{1,2}[.)]|\(?[a-hA-H][.)])\s")
_CHOOSES = lazy(
    r"\b(?:which|prefer|better|best|or|thoughts|pick|choose|recommend|opinion)\b|^\W*(?:and )?what (?:do you think|would you|should we|now)\b",
    re.IGNORECASE,
)
_OR = lazy(r"\bor\b", re.IGNORECASE)
_ASKING_WORDS = 12


def options(said: list[str]) -> frozenset[int]:
    r"""Return the places in `said`, the sentences of a message, of the entries of lists that a question offers.

    >>> sorted(options(["- never cache", "- always cache", "which one?"])), sorted(options(["- never cache", "ok?"]))
    ([0, 1], [])
    """
    found: set[int] = set()
    for place, (one, after) in enumerate(pairwise(said)):
        if _OR.search(one) and _offers(after):
            found.add(place)
    at = 0
    while at < len(said):
        end = at
        while end < len(said) and _ENTRY.match(said[end]):
            end += 1
        if end - at > 1 and any(map(_offers, (*said[max(0, at - 1) : at], *said[end : end + 1]))):
            found |= {*range(at, end)}
        at = max(end, at + 1)
    return frozenset(found)


def _offers(sentence: str) -> bool:
    short = len(sentence.split()) <= _ASKING_WORDS
    return short and sentence.rstrip("*_ ").endswith("?") and bool(_CHOOSES.search(sentence))
