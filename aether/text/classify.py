"""Classification: the kind of a statement, recognised by its words.

``classify`` names the kind of one sentence: the first kind in a table with a matching cue wins; cues are whole
words or phrases, never parts of words, so "prefix" is no fix. A sentence without any cue is a fact.

``rule`` recognises lasting demands on all future work: a rule commands, forbids or prefers without an end in sight
("never …", "… before every commit", "prefer …"). A momentary request ("I need a medium size", "don't push yet") is
no rule, however firm, nor is a complaint ("it never starts, I must restart it every time"). Rules are recognised in
English and, in fewer wordings, in German. The text of a rule is verbatim, without bullets and lead-ins.

``statements_by_kind`` and ``message_by_kind`` select the sentences of a conversation worth a note: a person's message
whole, an assistant's sentences that decide, find, solve or report a blocker, and none that only announce work.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from aether.hints import Literal
from aether.text.cues import Cue, by_head, cue, has, likely
from aether.text.cues import said as as_said
from aether.text.described import describes, is_otherwise, options
from aether.text.endings import ending
from aether.text.regex import lazy
from aether.text.words import FENCED, STOPWORDS, sentences, unquoted, with_apostrophes, words
from aether.tuples import NamedTuple

Kind = Literal[
    "decision", "outcome", "preference", "constraint", "solution", "blocker", "fact", "exploration", "chatter"
]

# A sentence of these words alone is not worth remembering.
CHATTER = frozenset(
    "ok okay yes yeah yep no nope sure thanks thank great good nice cool awesome amazing wow perfect excellent "
    "hello hi hey bye goodbye morning evening welcome please sorry oh ah haha lol hmm well right exactly absolutely "
    "totally definitely indeed cheers glad happy sounds let's let know see soon later talk catch take care luck hear "
    "hope going doing things everything today got really much all again true agree agreed you're i'm it's that's "
    "what's how's i'll understood done next now proceed proceeding continue continuing go ahead so like".split()
)
# A sentence with more words than this is about something, whatever its words.
CHATTER_WORDS = 12

# How a sentence starts that only announces a look around.
_EXPLORES = (
    r"^(?:ok(?:ay)?|now|so|first|next|then|good|great|hmm|alright)?[,.]? ?(?:let me|let's (?:see|look|check|try|start|explore|find|first)|"
    r"i'll (?:look|check|try|start|see|explore|examine|investigate|read|search|first|now|need)|i(?:'m going| am going| want| need) to (?:look|check|see|"
    r"understand|explore|examine|find|read)|i will (?:look|check|try|see|explore|examine|first)|looking (?:at|into|for)|checking|searching|trying to|"
    r"reading|exploring)\b"
)  # fmt: skip
# Of which it has one.
_EXPLORING = (
    "let me", "let's", "i'll", "i will", "i'm", "i am", "i want", "i need", "looking", "checking", "searching", "trying",
    "reading", "exploring",
)  # fmt: skip
# Order matters: a fix names the failure it ended, and a decision may mention limits.
_CUES: dict[Kind, str] = {
    "exploration": r"\b(?:i wonder|not sure|what if|maybe i|perhaps i|might be (?:because|that)|could it be|i suspect)\b",
    "solution": r"\b(?:fix(?:ed|es)|the fix|to fix|solv(?:ed|es)|solution|resolv(?:ed|es)|workaround|work around|root cause|patched|the (?:cause|reason) (?:is|was)|"
    r"turn(?:s|ed) out|works? (?:around|by)|corrected|repaired|mitigat(?:ed|es|ion))\b",
    "decision": r"\b(?:decid(?:e|ed|es|ing)|decisions?|chose|chosen|choose|opt(?:ed)? (?:for|to)|settled on|go(?:ing)? with|went with|we(?:'ll| will) (?:use|keep|go|store|"
    r"not|ship|make|add|drop|adopt|move)|let's (?:use|go with|keep|drop|adopt|make|not)|agreed (?:to|that|on)|adopt(?:ed)?|instead of|rather than|in favou?r of|"
    r"switch(?:ed)? (?:to|from)|the plan is|conclu(?:ded|sion)|approved|rejected)\b",
    "constraint": r"\b(?:must|never|mandatory|forbidden|prohibited|shall not|do not|don't (?:use|add|change|touch|edit|commit|push|modify|remove|delete|ever|forget|write|make|run)|should(?:n't| not)?"
    r"|may not|required?|requires?|requirements?|constraints?|limited to|at (?:least|most)|no (?:more|less|fewer|later|longer) than|avoid|ensure|make sure|only (?:use|if|when|after|the)|"
    r"not allowed|has to|have to|needs? to|deadline|always (?:use|run|keep|add|write|check|ask|make|ensure))\b",
    "blocker": r"\b(?:block(?:ed|er|ers|ing|s)|cannot|can't|unable|fail(?:s|ed|ing|ure|ures)?|errors?|exceptions?|crash(?:es|ed|ing)?|stuck|broken|breaks|broke|"
    r"timed? ?out|timeout|denied|refused|missing|not found|waiting (?:on|for)|does(?:n't| not) work|did(?:n't| not) work|won't|hangs?|leak(?:s|ed)?|bugs?|regress(?:ion|ed|es)|problem)\b"
    r"|(?:error|exception)\b",
    "preference": r"\b(?:prefer(?:s|red|ence|ences|ably)?|favou?rites?|(?:i|we|you|he|she|they)(?:'d| would) (?:like|love|rather)|(?:i|we|he|she|they) (?:really |always |also )?(?:like|likes|love|loves|hate|hates|dislike|"
    r"enjoy|enjoys|want|wants)|please (?:use|keep|don't|make|always|never|add|write|call)|dislikes?|would rather|fan of)\b",
    "outcome": r"\b(?:pass(?:es|ed)?|complet(?:ed|es|e)|finish(?:ed|es)|implement(?:ed|s)|add(?:ed|s)|creat(?:ed|es)|deploy(?:ed|s)|merged?|releas(?:ed|es)|succe(?:ss|eded|eds|ssful|ssfully)|"
    r"works now|now works|results?|reduc(?:ed|es)|increas(?:ed|es)|improv(?:ed|es)|shipped|measured|remov(?:ed|es)|renam(?:ed|es)|updat(?:ed|es)|wrote|written|built|migrat(?:ed|es)|"
    r"committed|pushed|published|refactored|replac(?:ed|es)|mov(?:ed|es)|launched|achieved|won|green|verified|confirmed|produc(?:ed|es)|return(?:ed|s)|edited|changed|deleted|installed)\b",
}  # fmt: skip


# The first three letters of words of which a text has one if it has the cue. To look for them takes a tenth of the time of
# the pattern, and one that is never searched for is never compiled.
_SIGNS: dict[Kind, str] = {
    "exploration": "won sur wha may per mig cou sus",
    "solution": "fix sol res wor roo pat tur cor rep mit cau rea",
    "decision": "dec cho opt set agr ado ins rat swi con app rej go goi wen ll wil let fav pla",
    "constraint": "mus nev man for pro not don sho may req con lim lea mos mor les few lat lon avo ens sur onl all has hav "
    "nee dea alw",
    "blocker": "blo can una fai err exc cra stu bro bre tim den ref mis fou wai wor won han lea bug reg pro",
    "preference": "pre fav lik lov rat hat dis enj wan ple fan",
    "outcome": "pas com fin imp add cre dep mer rel suc wor res red inc imp shi mea rem ren upd wri wro bui mig pus pub "
    "ref rep mov lau ach won gre ver con pro ret edi cha del ins",
}
# The speaker reports a choice already made: this decides the kind, however the sentence opens.
_CHOSE = cue(
    r"(?<!what )(?<!why )(?<!how )(?<!when )(?<!whether )(?<!if )(?<!once )(?<!that )"
    r"\b(?:i|we)(?:'ve| have)? (?:(?:now|therefore|thus|finally|also) )?(?:decided|chose|chosen|opted|settled on|agreed|went with)\b"
    r"|[,:;] (?:so )?(?:i|we)(?:'ll| will) (?:use|keep|store|go with|adopt|ship) [^?]*\b(?:instead of|rather than|because)\b",
    inside=("decided", "chose", "opted", "settled", "agreed", "went with", "'ll ", " will "),
)
_INSIDE: dict[Kind, tuple[str, ...]] = {"blocker": ("error", "exception")}
_TABLE: tuple[tuple[Kind, Cue], ...] = (
    ("exploration", cue(_EXPLORES, inside=_EXPLORING)),
    *((kind, cue(cues, _SIGNS[kind], _INSIDE.get(kind, ()))) for kind, cues in _CUES.items()),
)

# The cues of a sentence are near its start; the rest of a very long one is data.
_READ_CHARS = 2_000
# The number of sentences in a full memory: preparing, compressing and checking classify the same ones in turn.
CACHED_SENTENCES = 32_768


@lru_cache(maxsize=CACHED_SENTENCES)
def classify(sentence: str) -> Kind:
    """Return the kind of statement that `sentence` makes.

    >>> classify("We chose SQLite because it needs no server."), classify("Thanks, sounds good!")
    ('decision', 'chatter')
    >>> classify("Fixed the failing login test."), classify("The prefix holds the mustard.")
    ('solution', 'fact')
    """
    if is_chatter(sentence):
        return "chatter"
    sentence = _read(sentence)
    if states_choice(sentence):
        return "decision"
    said = as_said(sentence)
    for kind, one in _TABLE:
        if has(one, said):
            return kind
    return "fact"


def _read(sentence: str) -> str:
    return sentence[:_READ_CHARS].replace("’", "'").lstrip("-*+•># \t")


def is_chatter(sentence: str) -> bool:
    """Return whether `sentence` has few words, all of them of no weight: its kind is "chatter" then, and only then.

    >>> is_chatter("Thanks, sounds good!"), is_chatter("Thanks, push it")
    (True, False)
    """
    for number, word in enumerate(words(_read(sentence))):
        if number == CHATTER_WORDS or not (word in CHATTER or word in STOPWORDS):
            return False
    return True


def states_choice(sentence: str) -> bool:
    """Return whether the speaker reports a choice of their own, however the sentence opens.

    >>> states_choice("Checking the tables, we decided on pgloader."), states_choice("Let me see what we decided.")
    (True, False)
    """
    said = sentence.replace("’", "'")
    return not sentence.rstrip().endswith("?") and has(_CHOSE, as_said(said))


# A longer sentence explains; the rule in it has no clear end.
MOST_CHARS = 300
# A rule needs a subject and an action.
LEAST_WORDS = 3
# The subject of a sentence without one is in the sentence before it, if that is short.
SUBJECT_CHARS = 160
# "- ok. And please, note that …" has five; more is no introduction.
MOST_LEAD_INS = 8

_LEAD_IN = lazy(
    r"^\W*(?:[-*•+>]|\d{1,3}[.)]|[a-z]\))\s+|^/\w+[:-][\w:-]+\s+(?=[a-z])"
    r"|^(?:ok(?:ay)?|yes|yeah|no|good|great|perfect|right|thanks|thank you|again|reminder|important|note|rule|remember|please|and|also|so|but|"
    r"as (?:always|ever|before|usual|i said)|one (?:more|last) thing(?: for [^:,.]{1,30})?|(?:and )?(?:the )?same as (?:always|ever|before)|"
    r"(?:then|next|now|first|finally|and|also)(?: [\w-]+){1,3}(?=:))[,.:;!]+\s+"
    r"|^(?:and|also|so|but|please|pls|plz|kindly)\s+"
    r"|^(?:let me be clear|(?:just )?to be clear|for the record)[,:]\s+"
    r"|^(?:(?:as|like) )?i (?:already )?(?:said|told you|asked you)(?: before| already| earlier)?(?: to| that)?[,:]? (?=(?:never|always|don't|do not|no|not|to)\b)"
    r"|^(?:please )?(?:remember|note|keep in mind|bear in mind|be aware|don't forget|do not forget) that\s+",
    re.IGNORECASE,
)
# How it starts if not with a bullet: other sentences, which are most, compile nothing.
_LEADING = frozenset(
    "ok okay yes yeah no good great perfect right thanks thank again reminder important note rule remember please and also so but "
    "as one the same then next now first finally pls plz kindly let just to for like i keep bear be don do".split()
)
_PREFERS = cue(
    r"^(?:always |generally |strongly )?(?:prefer|favou?r)\s|^stick (?:to|with)\s"
    r"|^(?:use|write|keep)\b[^,;.]{0,40}\b(?:spelling|style|naming|conventions?|indentation|tense)\b"
    r"|\b(?:i|we) (?:always |generally |usually |strongly |much )?prefer\s"
    r"|^(?:i|we)(?:'d| would) rather (?:have|use|see|keep|not (?:have|use|see|mock|add))\s(?!it\b|this\b|that\b|the\b|my\b|them\b|you\b)\w"
    r"|^(?:i|we) (?:(?:really |just )?(?:do not|don't) (?:really )?like|dislike|hate)\s(?!it\b|this\b|that\b|the\b|my\b|your\b|them\b|you\b|how\b|what\b|when\b|where\b|to\b|not\b)\w",
    "pre fav sti use wri kee rat lik dis hat",
)
_WANTS = cue(
    r"^(?:use|write|name|store|format|indent|answer|reply|target)\s(?!it\b|this\b|that\b|them\b|these\b|those\b)[^,;.?]{1,60}?(?:, (?:and )?(?:not|never)| (?:instead of|rather than|and (?:not|never)))\s(?!it\b|this\b|that\b|yet\b)[\w`]"
    r"|^(?:make sure|ensure|see to it)(?: that)? (?:(?:all|every|each|any|no|nothing|nobody|none)\b(?! (?:of (?:them|these|those|it)|these|those|\d))|.*\b(?:never|always)\b)"
    r"|^only ever\s\w|^(?:in|for|on|with|at|inside|outside|under) (?!me\b|my\b|this\b|that\b)[\w/.` -]{1,40},? (?:always|never|don't|do not) (?!\w+s\b|\w+ed\b)\w"
    r"|^only (?:support|target|allow|accept|use|deploy|release|import|depend)\s(?!it\b|this\b|that\b|them\b|these\b|those\b)\w|^support only\s\w"
    r"|^(?:we )?(?:deploy|release|publish|merge|push|ship)\w* only (?:on|from|to|in|after|when|with|by)\s"
    r"|^(?:i|we) (?:really |just )?(?:do not|don't) want (?:any|you to (?!do (?:it|this|that)\b)\w+|(?!to\b|it\b|this\b|that\b|the\b|my\b|your\b|them\b|you\b|a\b|an\b)\w+ (?:in|on|for|at|anywhere)\b)"
    r"|\bplease (?:always|never)\s(?!mind\b)\w|, (?:always|never),? please\W*$",
    "not nev ins rat mak ens see onl alw don do wan",
)
# A statement to be remembered is meant to last.
_REMEMBER = lazy(r"^\W*(?:please )?(?:remember(?: this)?|rule)(?:\s*:|(?<=remember) that)\s", re.IGNORECASE)
_GERMAN_PREFERS = cue(
    r"^(?:ich |wir )?bevorzug\w+\s\w|^lieber\s.+\b(?:statt|als)\s\w|^(?:ich mag|wir mögen) keine?n?\s\w",
    "bev lie mag mög",
)
_GERMAN = cue(
    r"^(?:ab (?:jetzt|sofort)|von (?:nun|jetzt) an|künftig|zukünftig|in zukunft)\b"
    r"|^keine?n? \w.*\bbitte\W*$|^(?:bitte )?lass(?:t|e)? (?:die|den|das|alle)\s.*\b(?:in ruhe|unverändert|unangetastet)\b"
    r"|\bbitte (?:immer|nie|niemals|stets|nicht|nur|keine?n?)\s\w"
    r"|^(?:immer|nie|niemals|stets)\s.*\w(?:en|ern|eln)\W*$"
    r"|^(?:verwende|benutze|benutz|nutze|nimm|schreibe?|antworte|halte|speichere|committe|deploye|ändere|lösche|importiere)\s.*\b(?:nicht|nie|niemals|immer|stets|nur|statt|keine?n?)\b"
    r"|^nur\s.*\b(?:unterstützen|verwenden|benutzen|nutzen|erlauben|zulassen|akzeptieren)\W*$"
    r"|^(?:wir )?(?:deploy|release|commit|push|merg)\w* (?:\w+ ){0,2}nur (?:am|an|auf|aus|von|in|nach|mit)\s"
    r"|^(?:ich|wir) (?:will|wollen|möchte|möchten) keine?n?\s\w"
    r"|^(?!(?:ich|du|man|das|es|er|sie|hier|da|dann|dies\w*|ihr)\s)\w.*\b(?:darf|dürfen)\b.*\b(?:nicht|nie|niemals|nur|keine?n?)\b"
    r"|^(?!(?:ich|du|man|das|es|er|sie|hier|da|dann|dies\w*|ihr)\s)\w.*\b(?:muss|müssen)\s(?!.*\b(?:noch|wieder|neu|mal|erst)\b)\w",
    "jet sof nun kün zuk bit ruh unv una imm nie ste nic nur kei dür müs",
    inside=("statt", "darf", "muss"),
)
_FORBIDS = cue(
    r"^(?:under no circumstances|in no case|at no time)\s\w|^(?:stop|quit) (?!working|running|waiting|trying)\w+ing\s+(?!it\b|this\b|that\b)\w"
    r"|^(?:do not|don't|never|avoid|refrain from),?\s+(?!\w+ (?:it|that|this|them|those|these|him|her|me|us|so)\W*$)"
    r"(?!worry|forget|bother|spend|waste|give up|quit\b|rush|miss|let (?:anything|anyone|it|them|yourself)\b|mind|hesitate|know|think|care|have|need|want|see|understand|remember|believe|like|even|do|tell|get|be|ask)\w"
    r"|[,;:] (?:and |but )?(?:please )?(?:do not|don't|never|always) (?!(?:let it|let them|rush|forget|give up)\b|\w+ed\b|been\b|have\b|need\b|know\b|mind\b|want\b|do\b)\w"
    r"|^no (?:new|more|other|extra|additional|external)\s+(?!.*\b(?:needed|necessary|since)\b)\w|^no \w+, ever\b|\bplease no \w|\bno (?!problems?\b|worries\b|idea\b|doubt\b|clue\b|need\b|issues?\b)\w+ (?:anywhere|ever|at all)\b",
    "cir cas tim sto qui don do nev avo ref alw no",
)
_ALWAYS = cue(
    r"^always\s+\w|, always\W*$|\b(?:must|should|shall|may|(?:need|needs|have|has) to) (?:always|never)\b"
    r"|\b(?:i|we) (?:always|never) (?:want(?! to\b)|use|do|allow|accept|commit|write)\b"
    r"|^(?:keep|use|leave|name|start|end|sign)\b.*\b(?:every|each|always|whenever|by default)\b"
    # To add something to each file is work that ends; what is done at each commit is not.
    r"|^(?:run|write|store|put|ask|check|test|add|make|commit|document|log|send)\b.*\b(?:always|whenever|by default|(?:before|after) (?:every|each)(?! (?:other|line|word|character|item|entry|row|file|function|element|paragraph|field|column|argument)s?\b)|"
    r"(?:every|each) (?:single |new )?(?:commit|push|pull|pr|merge|release|deploy\w*|build|change|edit|time|session|step|day|week|new)\b)"
    r"|^(?:whenever|every time|each time|from now on|in (?:the )?future)\b"
    r"|\b(?:has to|have to|needs? to|must)\b.*\b(?:before|after|on|for|with) (?:each|every)\b",
    "alw nev eve eac def whe now fut",
)
_BINDS = cue(
    r"^\w.*?\b(?:must(?: not|n't)?|shall(?: not)?|(?:is|are) (?:not allowed|forbidden|mandatory)) (?!have\b(?! (?:an?|no|at (?:least|most)|its|their|exactly|one|two|both|the same|unique)\b)|\w+ (?:it|that) up)\w",
    "mus sha all for man",
)
# Reports of recurring events, and of the reaction they force on somebody, are no rules.
_HAPPENS = cue(
    r"\b(?:never|always) (?!as\b|has\b|is\b|was\b)\w+[^\Wsu]s\b(?!\W+(?:and|before|after)\b)|\bkeeps \w+ing\b|\w(?<!\band)(?<!\bplease)(?<!\bto)(?<!\byou) keep (?!going\b)\w+ing\b"
    r"|\bi (?:(?:always|still|then|now) )?(?:must|have to|had to|need to)\b(?! (?:be asked|approve|review|confirm|agree)\b)"
    r"|\b(?:have|has|had) to (?:restart|retry|repeat|redo|re-?run|wait|click|kill)\b.*\b(?:every|each) time\b"
    r"|^(?:whenever|every time|each time|in (?:the )?future)\b(?!.*\b(?:must|should|shall|has to|have to)\b).*?(?:, (?:it|i|the|this|that|they|he|she|there|we)\b|\b(?:could|might|would)\b)"
    r"|\b(?:fails?|failed|crash(?:es|ed)?|hangs?|breaks?|broke)\b(?: \w+){0,3} (?:every|each) (?:single )?time\b"
    r"|\b(?:ich|man) (?:muss|musste)\b|\b\w+t (?:nie|niemals|immer)(?:,|\W*$)",
    "nev alw kee mus tim whe fut nie imm",
    inside=("have to", "had to", "need to"),
)
# A demand that is put as a question: "can you always …?", "only use X, ok?".
_ALWAYS_ASKED = lazy(
    r"^(?:can|could) you (?:please )?always (?:run|use|write|ask|keep|add|check|put|commit|push|test|include|format|lint|update|document|explain|show|name|answer|reply|make|start|end)"
    r"\s(?!(?:it|this|that|them|into)\b)\w.*\?\W*$",
    re.IGNORECASE,
    needs=("always",),
)
_TAG = lazy(r", (?:ok|okay|alright|please)\?\W*$", re.IGNORECASE, needs=("?",))
# What is added in brackets is no part of the demand.
_BESIDE = lazy(r"\([^()]*\)", needs=("(",))
# "That must not happen" means nothing without its context; "I must have mixed it up" binds nobody.
_NEEDS_CONTEXT = lazy(r"^(?:that|this|these|those|it|they|he|she|i|here|there)\b", re.IGNORECASE)
_NO_SUBJECT = lazy(r"^(?:must|should|has to|have to|needs? to)\b", re.IGNORECASE)
# In a list: of what it describes, and of the entry above.
_IS_TO_BE = lazy(r"^must be\b(?!.*\b(?:always|never|only|every|each|all)\b)", re.IGNORECASE)
_OF_ABOVE = lazy(r"^(?:it|this|that) (?:should|must|shall|may) (?:not|never|only)\b", re.IGNORECASE)
_MOMENT = cue(
    r"\b(?:for now|right now|just now|now|this time|today|tonight|tomorrow|yet|at the moment|for the moment|go ahead|proceed|th(?:is|at) (?:one|pr|commit|branch|case)|"
    r"the (?:first|second|third|last|other|next) (?:one|option)|i'd|i would|i'll|i will|i need|i want to|i've|can you|could you|let's|let me|i think)\b|#\w*\d",
    "now thi tod ton tom yet mom ahe pro tha one opt i can cou let",
    inside=("#",),
)
_GERMAN_MOMENT = cue(
    r"\b(?:jetzt|gerade|heute|morgen|noch nicht|noch kein\w*|vorerst|erst ?mal|diesmal|dieses mal|momentan|im moment|ich (?:brauche|möchte|habe|hab|würde|glaube))\b(?! keine?n?\b)",
    "jet ger heu mor noc vor ers die mom ich",
)
# These contain momentary words, yet refer to the whole future.
_FOR_GOOD = lazy(
    r"\b(?:from now on|as of now|ab jetzt|von jetzt an|(?:i|we)(?:'d| would) rather)\b",
    re.IGNORECASE,
    needs=("now", "jetzt", "rather"),
)
_UNFINISHED_CHARS = 10  # of the end of a text, where it is looked for
_UNFINISHED = lazy(
    r"(?:[,:(]|\b(?:the|an?|of|to|and|or|in|for|with|by|at|(?<!now )(?<!here )on|is|are|that|which))$",
    re.IGNORECASE,
)
_CODE = lazy(
    r"[{}]|;$|^\S+\(|^\W*[\w.]+ = |^[|$>%]|::|=>|->",
    needs=("{", "}", ";", "(", " = ", "|", "$", "%", ">", "::"),
)


_POLITE = r"(?:please|pls|plz|thanks|thank you|thx)"
_POLITELY = "ple pls plz tha thx"
# "No problem, thanks" asks for nothing.
_NO_TROUBLE = (
    r"(?!(?:problems?|worries|idea|rush|hurry|need|questions?|further|thanks?|thank|big|biggie|clue|luck|doubt|way|changes|errors?|failures?|issues?|bugs?|warnings?)\b)"
    r"(?!.*\b(?:needed|necessary|found|required|left)\b)"
)
_CLAUSE_START = r"(?:^|[,;] (?:and |then |also |but )?|\band (?:also )?)(?:please )?"
# What an agent is asked to do again and again.
_ORDERS = (
    r"(?:run|re-?run|do|make|commit|push|write|update|test|document|log|note|record|spawn|start|launch|dispatch|kick off|have|get|use|ask|check|review|lint|"
    r"format|build|tag|verify|summari[sz]e|tick off|mark)\b"
)
# Wishes and half sentences that set a rule without a word of command; each is measured, see docs/judgement.md.
WISHES = {
    "a place of its own": cue(
        r"^(?!.*\b(?:was|were|been|already|went|i (?:opened|made|created|moved|put))\b).*\b(?:as|in|on|to|into|onto|via) (?:an? |its |their |our )?(?:own|separate|new|different|dedicated|follow[- ]?up)\s(?:\w+\s)?(?:pr|prs|pull requests?|mr|branch|commits?|worktree)\b"
        r"|^(?:on a )?branch (?:and|\+|&) (?:a |open a )?(?:pr|pull request)\b|^one (?:pr|commit|branch) (?:per|for each)\b",
        "pr prs pul mr bra com wor",
    ),
    "not if it were mine": cue(
        r"\b(?:i|we) (?:would not|wouldn't)\s(?!know\b|mind\b|say\b|have\b|expect\b|be\b|worry\b|think\b|call\b|understand\b|want to\b|necessarily\b)\w",
        "wou",
    ),
    "none, please": cue(
        rf"^(?:but |and |also |so )?no {_NO_TROUBLE}\w[^?]*\b{_POLITE}\b|^(?:but |and |also |so )?without (?:any |a |an |the )?\w[^?]*\b{_POLITE}\b",
        f"no wit | {_POLITELY}",
    ),
    "let's not": cue(
        r"^let's (?:please )?(?:(?:not|never)\s(?!worry\b|bother\b|forget\b|get\b|do (?:it|that|this)\b)\w|avoid\s\w|always\s\w)",
        "let",
    ),
    "not you": cue(r"\bnot you \w+ing\b", "not"),
    # An entry of a list that says of the entry above it what it may not do.
    "it should not": cue(
        r"\w\W*\s[-*•+]\s+(?:it|this|that) (?:should|must|shall|may) (?:not|never|only)\s\w",
        "sho mus sha may",
    ),
    "your notes": cue(
        r"^(?:please )?(?:write|keep|log|record|note|track) your (?:\w+ )?(?:progress|notes?|findings|status|plans?|reports?) (?:in|into|to|under|at)\s\S",
        "you",
    ),
    "don't do": cue(r"(?:^|[,;] (?:but |and )?)(?:please )?(?:don't|do not) do (?:an?|any|the) \w", "do"),
    "please keep": cue(
        rf"\b(?:keep (?:each|every|all|the|our|it)\b[^?]{{3,}}\b{_POLITE}\b|please keep (?:each|every|all|the|our)\b"
        r"|please keep (?:it|things|everything) (?!up\b|going\b|coming\b|open\b|running\b|as\b|in mind\b)\w)"
        r"|^keep (?!(?:it|this|that|me|us)\b)(?:[\w-]+ ){1,2}(?:small|short|simple|minimal|local|private|plain|flat|sorted|separate|in sync|up to date)(?:\W*$|, )",
        "kee",
    ),
    "ensure": cue(
        r"(?:^|[,;:] (?:and |but |also )?|\band )(?:please )?(?:ensure (?:we\b|that\b|`)|(?:ensure|make sure) (?:everything(?! (?:\w+ )?(?:works?|passes|builds|compiles|runs|is (?:still )?(?:fine|ok|okay|green|good|clean|up|working|done))\b)|every\b|all (?!\d)))\S*(?:\s\S+){2}",
        "ens sur",
    ),
    "only if": cue(
        r"^(?!.*\b(?:it|that|this|which|they|i|he|she) only\b)(?!.*\bhappen).*\bonly (?:if|when|where|once(?! or\b)|after|in case)\b",
        "onl",
    ),
    "if so, then": cue(
        r"^(?:but |and |so )*(?:(?:if|when|where|unless)(?! we\b)|for (?:all|any|each|every|\w+ with(?:out)?))\b[^?]*[, ](?:we (?:can|don't|do not|should|must|never|always|only|won't)\b|(?:do not|don't|emit|return|never|always|skip|fail|refuse)\s\S)",
        "if whe unl for",
    ),
    "I would just": cue(
        r"\b(?:i'd|i would) (?:just |always |only |simply |personally )+(?:use|keep|leave|stick|avoid|go without)\s\w",
        "jus alw onl sim per",
    ),
    "the directive": cue(
        r"^(?!.*\b(?:hit|hits|reached|exceed\w*|there (?:is|are|was))\b).*\b(?:(?:overriding|guiding|golden|hard|first) (?:directive|rule|principle|priority|constraint|requirement)s?\b|(?:hard|strict) (?:rule|limit|constraint|requirement)\b)",
        "dir rul pri con req lim",
    ),
    "we will": cue(
        r"^(?:and |but |so )?we(?:'ll| will) (?:take|put|move|keep|do|make|only|always|never)\s\w[^?]*\b(?:branch|pr|pull request|commit|repo|directory|worktree)\b",
        "ll wil | bra pr pul com rep dir wor",
    ),
    "from now on": cue(
        r"^(?!(?:it|this|that|there|they|he|she|i)\b)(?!.*\b(?:was|were|will|would|could|might|is|are|works?|fails?|crash\w*|hangs?|breaks?)\b.*\b(?:on|forward|henceforth|future)\b)"
        rf"\w.*\b(?:(?:from now on|going forward|from here on(?: out)?|henceforth)(?:\W*(?:{_POLITE})?\W*$|,? (?:and|but|so|because|since)\b)|in (?:the )?future,? {_POLITE}\W*$)",
        "fro goi hen fut",
    ),
    "always, without a verb": cue(
        r"^(?!(?:it|this|that|there|they|he|she|i|we|you|the|these|those|which|who|what)\b)"
        r"(?=(?:[\w-]+ ){1,3}(?:always|never) (?:in|on|before|after|with|without|by|via|through|as|from|into|to|at|under|inside|outside|against|for|during)\s\w)"
        r"(?!.*\b(?:fails?|crash\w*|breaks?|broke|hangs?|happens?|works?|goes|comes|is|are|was|were)\b)",
        "alw nev",
    ),
    "this over that, please": cue(
        r"^(?!(?:the|this|that|an?|it|option|only|just|one|first|second|yes|no|i|we|you)\b)[\w.-]+(?: [\w.-]+){0,3},? (?:not|instead of|over|rather than) "
        rf"(?!(?:the|this|that|it|sure|yet|now|really)\b)[\w.-]+(?: [\w.-]+){{0,3}},? {_POLITE}\W*$",
        f"not ins ove rat | {_POLITELY}",
    ),
    "leave alone": cue(
        r"^leave (?!(?:it|this|that|them|me|us|him|her)\b)\w[^?]* (?:alone|untouched|unchanged|as (?:it is|they are))\b"
        r"|^(?:keep )?(?:your )?hands off\s(?!(?:it|this|that)\b)\w|^(?:stay|keep) (?:out of|away from)\s(?!(?:it|this|that)\b)\w",
        "lea han sta kee",
    ),
    "ask before": cue(
        r"^(?:ask|(?:ask|tell|warn|ping|consult|check with) (?:me|us))(?: first)? before (?!.*\b(?:continu\w+|proceed\w*|start\w*)\b)\w",
        "bef",
    ),
    "before committing": cue(
        rf"^before (?:(?:you|we|anyone) |(?:each|every|any) |(?:an?|the) )?(?:commit|push|merg|releas|deploy|publish)\w*\b[^,?]*, (?:always |please )?(?:{_ORDERS}|(?:strip|squash|rebase|remove|rename|bump|add)\b)",
        "bef",
    ),
    "nothing without": cue(
        r"^(?:nothing|nobody|no ?one) (?:goes (?:to|into|out|live)|gets (?:merged|pushed|released|deployed|deleted|committed|shipped)|may|lands?|ships?|merges|touches|pushes|commits|leaves)\b"
        r"[^?]*\b(?:without|unless|until|before|except)\b",
        "wit unl unt bef exc",
    ),
    "not here": cue(
        r"^we (?:don't|do not|never) (?:do|use|allow|write|commit|push|merge|mock|accept|add|support|catch|throw|import|rebase|squash|deploy|edit|copy)\s\w[^?]*\b(?:here|in this (?:repo|repository|project|codebase|team))\W*$",
        "don do nev | her rep pro cod tea",
    ),
    "one of each": cue(
        rf"^one (?!(?:error|request|failure|row)s?\b)[\w-]+ per [\w-]+(?: [\w-]+){{0,2}}\W*(?:{_POLITE})?\W*$",
        "per",
    ),
    "as a rule": cue(
        r"^(?:as a (?:general )?rule|rule of thumb|general rule|as a (?:matter of )?(?:principle|policy))\b|^(?:make it a (?:habit|rule)|make a habit|get in(?:to)? the habit)\b",
        "rul pri pol hab",
    ),
    "try not to": cue(
        r"^try (?:not to|to (?:avoid|always|never))\s(?!(?:worry|panic|it|this|that)\b)\w", "try"
    ),
    "not every time": cue(
        r"^(?:there(?:'s| is) no need|no need|you (?:don't|do not) (?:need|have)) to \w[^?]*\b(?:every|each) (?:single )?time\b",
        "tim",
    ),
    "I hate it when": cue(
        r"^(?:i|we) (?:really )?(?:hate|dislike|(?:don't|do not) like) (?:it )?(?:when|that|if) you\s\w",
        "hat dis lik",
    ),
    "off limits": cue(
        r"\b(?:is|are) (?:off[- ]limits|taboo|a no-?go|non-negotiable|not negotiable)\b",
        "off tab no nog non not",
    ),
    "better not": cue(
        r"^(?:better|rather|preferably|ideally),? (?:not|no|never|avoid|without)\s(?!(?:it|this|that|now|sure)\b)(?!.*\byet\b)\w",
        "bet rat pre ide",
    ),
    "I want every": cue(
        rf"^(?:i|we) (?:really |just )?(?:want|expect) (?:every|each) (?!one\b|of\b)\w|^(?:i|we) (?:really |just )?want no {_NO_TROUBLE}(?!more\b|other\b)\w",
        "wan exp",
    ),
    "remember to always": cue(
        r"^(?:remember|don't forget|do not forget|be sure) to (?:always|never)\b", "alw nev"
    ),
    "everywhere, please": cue(
        rf"^(?!(?:it|this|that|there|i|we|you)\b)\w.*\b(?:everywhere|throughout|across the board|at all times|without exception),? {_POLITE}\W*$",
        f"{_POLITELY} | eve thr acr tim wit",
    ),
    "rather you didn't": cue(
        r"(?!.*\bthis (?:message|answer|reply|time|one)\b)\bi(?:'d| would) (?:(?:much |really )?rather|prefer(?: it)? if) you (?:didn't|did not|don't|never|always|only|left|kept|used)\s(?!(?:it|this|that|do (?:it|that|this))\b)\w",
        "rat pre | you | did don nev alw onl lef kep use",
    ),
    "for this repo": cue(
        r"^(?:for|in) (?:this|our|the whole) (?:repo(?:sitory)?|project|codebase|team|package)\s?:\s(?=.*\b(?:not|never|always|only|no|use|prefer|instead of|over)\b)\w",
        "rep pro cod tea pac | not nev alw onl no use pre ins ove",
    ),
    "after each": cue(
        rf"{_CLAUSE_START}{_ORDERS}(?!.*\b(?:what|why|how|whether)\b)[^,;?]*\b(?:before|after) (?:each|every)\s(?!(?:other|line|word|character|item|entry|row|file|function|element|paragraph|field|column|argument)s?\b)\w",
        "eac eve",
    ),
    "as you go": cue(
        rf"{_CLAUSE_START}(?!try\b){_ORDERS}(?!.*\b(?:what|why|how|whether)\b)[^,;?]*\b(?:as (?:you|we) go(?: along)?(?! (?:through|over|to)\b)|along the way|in the meantime)\b",
        "go way mea",
    ),
    "keep the present one": cue(
        r"^keep (?:\w+ing )?(?:the |our |all )?(?:current|existing|public|present)\s(?!one\b|session\b|work\b|branch\b)[\w`]",
        "kee",
    ),
    "not ever": cue(
        r"^(?:no|not|can't|don't|we (?:can't|cannot|don't|never)|you (?:can't|cannot|don't))\b.*, ever\W*$|^don't you (?:ever|dare)\b",
        "eve dar",
    ),
}
_WISHES_BY_HEAD = by_head(WISHES)
_FOR_NOW = cue(
    r"\b(?:for now|right now|just now|this time|today|tonight|tomorrow|at the moment|for the moment|can you|could you|would you|first)\b|\bnow\W*$",
    "now thi tod ton tom mom can cou wou fir",
)
_REJECTED = lazy(r", not you\b", re.IGNORECASE)
# What a person passes on, a review or a log, sets no rule of theirs; what comes before it may.
_PASSED_ON = lazy(
    r"\A[^\n]{0,300}?\b(?:feedback|reviews?|reviewed|comments?|reports?|reported|look at this|in context of|see below|the following|logs?|output|error|says?|said|wrote|this)\b[^\n]{0,120}(?::|!|\?|\.\.\.)?[ \t]*\n",
    re.IGNORECASE,
    needs=("\n",),
)
_PASTED_CHARS = 600
# A short one needs a clearer opening; "For the docs:" opens rules of their own.
_QUOTED_BELOW = lazy(
    r"\A(?![^\n]*\b(?:my|our|i said|i wrote|you)\b)(?:[^\n]{0,80}\b(?:wrote|writes|says|said|commented|replied|answered|posted|suggested|reported|complained|sent(?: me)?|told me)\b[^\n:]{0,40}"
    r"|(?:this is|here(?:'s| is| are)|below (?:is|are)|the following (?:is|are)|see|from|what (?:i|we) got|quot(?:e|ing)|excerpt|copied|pasted|got this|i got|i found|look at)\b[^\n:]{0,60}"
    r"\b(?:feedback|review(?:er)?s?|comments?|logs?|output|docs?|documentation|readme|guide|error|issue|ticket|e?mail|message|thread|skill|prompt|article|blog|paper|snippet)\b[^\n:]{0,40}"
    r"|(?:the )?(?:review(?: comments?)?|feedback|logs?|error|output|readme)(?: (?:from|of|by|on) [^\n:]{1,40})?):[ \t]*\n",
    re.IGNORECASE,
    needs=("\n",),
)
# The head of a document, such as a skill.
_FRONT_MATTER = lazy(
    r"\A---[ \t]*\n(?=(?:.*\n){0,9}?(?:name|description|title)[ \t]*:)(?=(?:.*\n){1,20}?---[ \t]*\n)",
    needs=("---",),
)
# A heading above rules makes each entry of its list one.
_RULE_HEADING = lazy(
    r"^\W*(?:[\w-]+ ){0,3}(?:rules|constraints|guidelines|conventions|principles|non-negotiables?)\b(?!.*\b(?:fail\w*|broken?|broke|violat\w*|conflicts?|missing|wrong|outdated|from|that|which)\b)[^.?!]{0,40}\Z|non-negotiable",
    re.IGNORECASE,
    needs=("rules", "constraints", "guidelines", "conventions", "principles", "non-negotiable"),
)
_LIST_ENTRY = lazy(r"(?:[-*•+]|\d{1,2}[.)])[ \t]+")
_ADOPTS = lazy(
    r"\A\W*(?:please |now |let's |ok(?:ay)?,? )*(?:implement|execute|carry out|follow|work (?:through|on)|start|do|build|realize|realise)\s"
    r"(?:with )?(?:the |this |that |our )?(?:following |attached |approved |below )?(?:implementation )?(?:plan|spec(?:ification)?|design|brief)\b[^\n]{0,80}\n",
    re.IGNORECASE,
    needs=("\n",),
)
_CONNECTED = lazy(r"(?:but|otherwise|if not|unless|except|then|else)\b", re.IGNORECASE)


class Rule(NamedTuple):
    """A rule in the words of the person who set it."""

    kind: Literal["constraint", "preference"]
    text: str


@lru_cache(maxsize=64)  # a sentence is asked several questions
def without_lead_in(sentence: str) -> str:
    """Return `sentence` without its bullet and introductory words.

    >>> without_lead_in("- Keep it short."), without_lead_in("And same as always: `make check` has to pass.")
    ('Keep it short.', '`make check` has to pass.')
    """
    text = sentence.strip()
    for _ in range(MOST_LEAD_INS):
        lead_in = _LEAD_IN.match(text) if _may_lead_in(text) else None
        if lead_in is None:
            break
        text = text[lead_in.end() :]
    return text or sentence.strip()


def _may_lead_in(text: str) -> bool:
    """Return whether `text` starts with a bullet, or with a word that an introduction starts with."""
    word = text.partition(" ")[0].lower()
    end = (
        len(word) if word.isalpha() else next(at for at, sign in enumerate(f"{word} ") if not sign.isalpha())
    )
    letters = word[:end]
    return not letters or not word.isascii() or word[1:2] == ")" or letters in _LEADING


def rule(sentence: str) -> Rule | None:
    """Return the rule that `sentence` sets, or None.

    >>> rule("Also, never use floats for money."), rule("I need a medium size.")
    (Rule(kind='constraint', text='never use floats for money.'), None)
    >>> rule("Remember: deploys only on Tuesdays."), rule("It never starts, I must restart it every time.")
    (Rule(kind='constraint', text='deploys only on Tuesdays.'), None)
    """
    text = without_lead_in(sentence)
    own = unquoted(with_apostrophes(text)).rstrip("*_ ")
    found = _demand(sentence, text, own)
    # Few sentences look like a rule, and only those are looked at more closely.
    if found is None or describes(own):
        return None
    end = ending(sentence)
    return found if end is None or end.only == "habit" else None


def _demand(sentence: str, text: str, own: str) -> Rule | None:
    """Return what the words of `sentence` demand: `text` is without its lead-in, `own` without quotations too."""
    asked = _ALWAYS_ASKED.match(own)
    own = _TAG.sub("", own)
    may_be = len(text.split()) >= LEAST_WORDS and (asked or not own.endswith(("?", "？")))
    if not may_be or not _may_demand(own):
        return None
    found = _demanded(sentence, text, own, asked=asked is not None)
    return found if found and _is_demand(own, _BESIDE.sub("", own)) else None


def _demanded(sentence: str, text: str, own: str, *, asked: bool) -> Rule | None:
    if wish := wish_of(sentence):
        return Rule("constraint", _clause(text, WISHES[wish].any_case) if wish in _CLAUSES else text)
    wanted = as_said(_FOR_GOOD.sub("", own))
    if not asked and (has(_MOMENT, wanted) or has(_GERMAN_MOMENT, wanted)):
        return None
    said = as_said(own)
    if has(_PREFERS, said) or has(_GERMAN_PREFERS, said):
        return Rule("preference", text)
    binds = has(_BINDS, said) and not _NEEDS_CONTEXT.match(own) and not _NO_SUBJECT.match(own)
    binds = binds or any(has(one, said) for one in (_FORBIDS, _ALWAYS, _WANTS, _GERMAN))
    return Rule("constraint", text) if binds or asked or _REMEMBER.match(sentence) else None


def _may_demand(own: str) -> bool:
    """Return False for code and for a text that is too long."""
    return len(own) <= MOST_CHARS and not _CODE.search(own)


def _is_demand(own: str, reported: str) -> bool:
    """Return False for a text without an end, and if what is `reported` in it happens again and again: asked last, since few demand."""
    is_whole = not _UNFINISHED.search(own, max(0, len(own) - _UNFINISHED_CHARS))
    return is_whole and not has(_HAPPENS, as_said(reported))


# A proposal, a thing that only the conversation names, one thing to be made or the place of this work.
_OF_TASK = lazy(
    r"let['’]?s\b|.*\b(?:this(?! (?:repo\w*|project|codebase|team|package|machine)\b)|these|those|it|them|here"
    r"|in the meantime|the (?:same )?(?:pr|pull request|issue|ticket)"
    r"|(?:separate|own|new|follow[- ]?up) (?:\w+ )?(?:pr|pull request|branch|commit)|branch (?:and|\+|&) (?:a )?pr)\b"
    r"|(?:please )?(?:don['’]?t |do not )?(?:do|make|create|open|post|send|write|file|push) (?:an?|the|your)\b"
    r"(?!.*\b(?:always|never|ever|every|each|all|any|when|whenever|before|after|must)\b)",
    re.IGNORECASE | re.DOTALL,
)


def is_of_task(statement: str) -> bool:
    """Return whether a statement is about the work at hand, so that it may end with that.

    >>> is_of_task("let's do this as a separate PR"), is_of_task("Never push to main.")
    (True, False)
    """
    return _OF_TASK.match(statement) is not None


def wish_of(sentence: str) -> str:
    """Return the name of the wish by which `sentence` sets a rule, "" without one.

    >>> wish_of("let's do this as a separate PR"), wish_of("I wouldn't do the connect fallback"), wish_of("let's not worry")
    ('a place of its own', 'not if it were mine', '')
    """
    own = _TAG.sub("", unquoted(with_apostrophes(sentence)).strip().rstrip("*_ "))
    if own.endswith(("?", "？")) or not _may_demand(own):
        return ""
    wordings = [*map(as_said, dict.fromkeys((without_lead_in(own), own)))]
    names = likely(WISHES, _WISHES_BY_HEAD, wordings)
    found = next((name for name in names if any(has(WISHES[name], one) for one in wordings)), "")
    # What is not wanted now is wanted otherwise for good.
    for_now = found and has(_FOR_NOW, as_said(_REJECTED.split(own, maxsplit=1)[0]))
    return found if found and not for_now and _is_demand(own, own) else ""


# These wishes are a clause of a sentence that may ask for more ("do 1, don't do a reply, but file an issue").
_CLAUSES = frozenset({"let's not", "don't do", "ensure", "after each", "as you go"})
_BETWEEN = lazy(r"[,;] (?:(?:and|but|then|so|also) )?|\. ")


def _clause(text: str, cue: re.Pattern[str]) -> str:
    """Return the clause of `text` with the cue, with those beside it that demand something too; all of `text` if it starts with the cue."""
    said = text.replace("’", "'")
    if cue.match(said):
        return text
    ends = [(0, 0), *(one.span() for one in _BETWEEN.finditer(text)), (len(text), len(text))]
    clauses = [(before[1], after[0]) for before, after in itertools.pairwise(ends)]
    first = next((at for at, (start, end) in enumerate(clauses) if cue.search(said[start:end])), 0)
    last = first
    while first and _demands(said[slice(*clauses[first - 1])]):
        first -= 1
    while last + 1 < len(clauses) and _demands(said[slice(*clauses[last + 1])]):
        last += 1
    held = text[clauses[first][0] : clauses[last][1]]
    return held if cue.search(held.replace("’", "'")) and len(held.split()) >= LEAST_WORDS else text


def _demands(clause: str) -> bool:
    return any(has(WISHES[name], as_said(clause)) for name in _CLAUSES)


def own_words(text: str) -> str:
    r"""Return the part of a person's message that is not a review, a log or a report that the person passes on.

    >>> own_words("feedback I got:\n\n" + "Never mutate the endpoint. " * 40)
    'feedback I got:\n'
    """
    if _FRONT_MATTER.match(text):
        return ""
    found = _QUOTED_BELOW.match(text) or (_PASSED_ON.match(text) if len(text) > _PASTED_CHARS else None)
    return found[0] if found else text


def headed_rules(text: str) -> list[Rule]:
    r"""Return the rules in the lists of `text` that have a heading of rules: the first sentence of each entry, and what else sets one.

    >>> [one.text for one in headed_rules("## Rules\n- Fix the tool only. Never edit\n  the tasks. They are old.\n\n## Steps\n- build it")]
    ['Fix the tool only.', 'Never edit the tasks.']
    """
    entries: list[list[str]] = []
    headed = listed = False
    indent = 0
    for whole in FENCED.sub("\n\n", text).splitlines():
        line, depth = whole.strip(), len(whole) - len(whole.lstrip())
        if not line:
            listed = False
        elif entry := _LIST_ENTRY.match(line):
            headed = headed or _heads_rules(line)
            listed, indent = headed and not _heads_rules(line), depth
            entries += [[line[entry.end() :]]] if listed else []
        elif listed and depth > indent:
            entries[-1].append(line)
        else:
            headed, listed = _heads_rules(line), False
    found: list[Rule] = []
    for lines in entries:
        for nth, one in enumerate(map(without_lead_in, sentences(" ".join(lines)))):
            held = rule(one) or (Rule("constraint", one) if not nth and len(one) <= MOST_CHARS else None)
            found += [held] if held else []
    return found


def _heads_rules(line: str) -> bool:
    return _RULE_HEADING.search(line.strip(" #*:")) is not None


def rules(said: list[str], text: str, headed: Sequence[Rule] = ()) -> list[Rule]:
    """Return the rules among the sentences `said` of `text` and the `headed` ones, each once.

    A sentence without a subject, or an entry of a list that speaks of the one above it, is joined to the one before it
    ("The backup runs nightly. Must not block writers."), and a rule to the condition after it ("If it asks we may. Otherwise fail.").
    """
    found: dict[str, Rule] = {one.text: one for one in headed}
    offered = options(said)
    for at, sentence in enumerate(said):
        if at in offered or (at + 1 < len(said) and is_otherwise(sentence, said[at + 1])):
            continue
        entry = sentence.lstrip()[:1] in "-*•+"
        bare = without_lead_in(sentence)
        if any(bare in one.text for one in headed):
            continue
        if entry and _IS_TO_BE.match(bare):  # what the thing that the list describes is to be like
            continue
        leans = _NO_SUBJECT.match(bare) or (entry and _OF_ABOVE.match(bare))
        if at and leans and len(said[at - 1]) <= SUBJECT_CHARS:
            joined = f"{said[at - 1]} {sentence}"
            verbatim = joined in text or (entry and joined in " ".join(text.split()))
            sentence = joined if verbatim else sentence  # noqa: PLW2901 - the same sentence, made whole
        if one := rule(sentence):
            after = said[at + 1] if at + 1 < len(said) else ""
            whole = f"{one.text} {after}"
            goes_on = _CONNECTED.match(after) and not after.rstrip().endswith(("?", "？"))
            if goes_on and whole in text and len(whole) <= MOST_CHARS:
                one = one._replace(text=whole)
            found.setdefault(one.text, one)
    held = " ".join(found)
    return [one for one in found.values() if held.count(one.text) == 1]


# Shorter sentences depend on their neighbours ("That fixed it.").
_LEAST_WORDS = 6
_MOST_CHARS = 600
# A binding statement can be short ("Login tests fail on Windows").
_BINDING_WORDS = 5
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
_REASONED = cue(r"\b(?:because|since|due to|decided|chose|settled)\b", "bec sin due dec cho set")
# Work in progress while the sentence is written has ended when it is read.
_NARRATION = cue(
    r"^(?:(?:while|once|as soon as|after|before|when)\b[^,]{3,80}, )?(?:(?:now|so|next|meanwhile|currently),? )?"
    r"(?:i'm|i am|we're|we are)(?: (?:now|still|also|just|currently))* \w+ing\b|^still \w+ing\b|\blet me\b|\bneed user\b",
    "i we sti let nee",
)
# So has the work of others in the meantime.
_UNDER_WAY = cue(
    r"\b(?:is|are) (?:(?:now|still|already|currently) )?(?:on (?:its|their|the|his|her) way|under ?way)\b"
    r"|\b(?:sub-?agents?|agents?|helpers?|workers?|explorers?|tests?|suite|build|search|tasks?|jobs?|it|they)\b.{0,40}"
    r"\b(?:is|are|has been|have been) (?:(?:now|still|already|currently) )?(?:in progress|running|working|looking|searching|checking|started|launched|dispatched)\b(?! (?:green|fine|again|well|correctly|as)\b)"
    r"|\b(?:i've|i have|i) (?:(?:just|now) )?(?:started|launched|spawned|dispatched|kicked off|sent|asked)\b.{0,40}\b(?:sub-?agents?|agents?|helpers?|workers?|background)\b"
    r"|^(?:(?:i'm|i am|we're|we are) )?still waiting\b|^(?:one moment|hold on|stand(?:ing)? by|just a (?:moment|second|minute))\b",
    "way und pro run wor loo sea che sta lau dis spa kic sen ask wai mom hol jus",
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
# An announcement with a number, or with a finding, is more than an announcement.
_SAYS_MORE = lazy(r"\d|\b(?:but|which|found|shows?|showed|so that|turns? out)\b|: \S", re.IGNORECASE)
_CHOICE = lazy(
    r"\b(?:prefer|rather|which|or|instead)\b"
    r"|\b(?:should|shall|want|would you like|okay? (?:to|if|with)|may)\b.{0,40}\b(?:use|stay|keep|stick|store|follow|choose|adopt|switch|support|drop|replace|call|default|allow|require)\b",
    re.IGNORECASE,
)
_ENQUIRY = lazy(
    r"\b(?:provide|share|tell me|help you|assist|thoughts|confirm|anything else|would you like (?:me )?to (?:proceed|do)|proceed|go ahead|let me know|what is your|who|when)\b",
    re.IGNORECASE,
)
# A failure that is denied or over blocks nobody.
_OVERCOME = lazy(
    r"\b(?:no|zero|0|without(?: any)?)\s+(?:\w+ )?(?:errors?|failures?|problems?|issues?|exceptions?)\b|"
    r"\b(?:pass(?:es|ed)?|succeed(?:s|ed)|succeeded|confirmed|verified|green)\b",
    re.IGNORECASE,
)
_SUPPOSED = lazy(r"(?:if|when|whenever|in case)\b", re.IGNORECASE)
_WAITING = lazy(r"^\W*waiting (?:on|for)\b", re.IGNORECASE)
# A wish for now decides nothing for later, nor does a decision still to be made.
_OF_THE_MOMENT = lazy(
    r"\b(?:i'd|i would|want to|need|if you|proceed|go ahead|(?:to|can|could|will|should|please) (?:decide|choose)|feel free|let me know|your (?:decision|call|choice))\b",
    re.IGNORECASE,
)
# Headings, questions, announcements and output state nothing; "feels like" introduces an opinion.
_NO_STATEMENT = lazy(
    r"[?:]\W*$|^(?:#|[|>]|FAIL\b|FAILED\b|ERROR\b|E  |---)|\bfeels? like\b|[{}]|;$|^\S*\w\(|^\S+:\d+:|\[(?:test|error|info)\]|^make: \*",
    re.IGNORECASE,
)
# A message is read for its rules, its statements and the question at its end, one after the other.
_CACHED_MESSAGES = 64
_LOG_LINE = lazy(
    r"^\s*(?:[|+>$#%]|│|├|└|\d+[:|\t]|\S+\.\w+:\d+|\[\w+\]|\w{3} +\d+ \d\d:|\d{4}-\d\d-\d\d[T ])"
)
_APPROVAL = lazy(
    r"^\s*(?:y|yes|yep|yeah|yup|sure|ok|okay|k|go|go ahead|go on|do it|do that|please do|sounds good|continue|proceed|lgtm|perfect|great|nice|thanks|thank you|no|nope)\b",
    re.IGNORECASE,
)
# Politeness: thanks for work done, and offers of help.
_THANKS = lazy(
    r"\W*(?:(?:(?:many |ok,? |great,? )?thanks(?: a lot| so much| again| a ton)?|thank you(?: (?:very|so) much)?|thx|ty|cheers|"
    r"(?:(?:that|this|it|all)(?:'s| is)? )?(?:looks?|looking|sounds?|seems) (?:\w+ )?(?:good|great|fine|right|nice|ok|perfect)(?: to me| now)?|"
    r"lgtm|(?:(?:that|this|it)(?:'s| is) )?(?:perfect|great|good|nice|awesome|excellent|wonderful|brilliant)|"
    r"(?:good|great|nice|well) (?:job|work|one|done)|all good|i like it|love it|"
    r"danke(?: schön| dir| sehr)?|vielen dank|(?:das )?(?:passt|sieht gut aus)|super|prima|perfekt|sehr gut|toll|(?:ok(?:ay)?|so|very|and|und)(?=\W+\w))"
    r"\b\W*)+\Z",
    re.IGNORECASE,
)
# The words that such a message starts with: a hook reads one prompt, and compiling the pattern takes as long as all else.
_THANKS_START = lazy(r"[^A-Za-z]*([A-Za-z]+)")
_THANKING = frozenset(
    "many ok okay great thanks thank thx ty cheers that this it all look looks looking sound sounds seems lgtm "
    "perfect good nice awesome excellent wonderful brilliant well i love danke vielen das passt sieht super prima "
    "perfekt sehr toll so very and und".split()
)
_OFFERS = lazy(
    r"\b(?:how (?:can|may) i (?:help|assist)|what (?:can i|would you like(?: me)? to) (?:do|help|work)|(?:happy|glad|here) to help|anything else|"
    r"(?:wie|womit) kann ich (?:\w+ )?helfen)\b",
    re.IGNORECASE,
    needs=("how ", "what ", "to help", "anything else", "kann ich"),
)
# A shorter remark that names nothing ("It is noon.") is of no use later.
_LEAST_NAMELESS_WORDS = 4
_NAMES = lazy(r"\b(?:[Nn]o(?:t|ne|thing)?|[Aa]ll|[Bb]oth)\b|\d|`|\w[/_.:-]\w|\w[A-Z]|(?<=\s)[A-Z]")
NOTED_KINDS = ("decision", "solution", "blocker", "outcome", "constraint", "preference")
# A constraint stated by an assistant is a finding about the work; only people demand.
_NOTED_AS = {
    "decision": "decision",
    "solution": "solution",
    "blocker": "blocker",
    "outcome": "outcome",
    "constraint": "observation",
}


def statements(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the words of each sentence of an assistant's `text` that is worth a note."""
    for sentence in prose(text):
        kind = _NOTED_AS.get(_kind(sentence))
        supposed = kind == "blocker" and _SUPPOSED.match(without_lead_in(sentence))
        if kind and _is_self_contained(sentence) and not supposed:
            yield "outcome" if kind == "blocker" and _OVERCOME.search(sentence) else kind, sentence


def statements_by_kind(text: str) -> dict[str, list[str]]:
    """Return the `statements` of an assistant's `text` by kind.

    >>> statements_by_kind("Let me look. The build failed because the Go version in CI is 1.19. We went with SQLite instead of Postgres.")
    {'blocker': ['The build failed because the Go version in CI is 1.19.'], 'decision': ['We went with SQLite instead of Postgres.']}
    """
    found: dict[str, list[str]] = {}
    for kind, sentence in statements(text):
        found.setdefault(kind, []).append(sentence)
    return found


def asserts(text: str) -> bool:
    """Return whether an assistant's `text` states a fact, rather than only its next step.

    >>> asserts("There it is. The list returns all sessions, not the newest."), asserts("Let me look at the list of sessions.")
    (True, False)
    """
    return any(
        _is_self_contained(sentence) and classify(sentence) not in ("exploration", "chatter")
        for sentence in prose(text)
    )


# A person who types fast starts a sentence with a small letter: "branch and PR. but is there another way?"
_TYPED_ON = lazy(
    r"(?<=[A-Za-z]{2}[.!?])(?<!etc\.)\s+(?=(?:but|and|also|so|can|could|would|then|please|is|are|do|does|what|how|why|where|maybe|or|let's|lets)\b)"
)


def message_by_kind(text: str) -> list[tuple[str, str]]:
    """Return the item types and texts of a person's message: the message itself, then its rules.

    A message of nothing but rules gives those rules alone.

    >>> message_by_kind("Never commit to main."), message_by_kind("Add a page. Never commit to main.")
    ([('constraint', 'Never commit to main.')], [('user_input', 'Add a page. Never commit to main.'), ('constraint', 'Never commit to main.')])
    >>> message_by_kind("branch and PR. but is there another way?")[1:]
    [('constraint', 'branch and PR.')]
    """
    own = own_words(text)
    said = [part for one in prose(own) for part in _TYPED_ON.split(one)]
    # A plan that is to be carried out may be pasted: what it calls rules holds, the rest describes the work.
    headed = headed_rules(text if _ADOPTS.match(text) else own)
    found = [(one.kind, one.text) for one in rules(said, text, headed)]
    rest = text
    for _, wording in found:
        rest = rest.replace(wording, " ", 1)
    if found and not any(map(_has_more, rest.splitlines())):
        return [*found]
    return [("user_input", text), *found]


def _has_more(line: str) -> bool:
    return bool(
        without_lead_in(f"{line.strip()} x").removesuffix("x").strip(" -*•+.,:;!")
    ) and not is_chatter(line)


def _settles(sentence: str) -> bool:
    return (
        classify(sentence) == "decision"
        and not sentence.rstrip().endswith("?")
        and not _OF_THE_MOMENT.search(sentence.replace("’", "'"))
    )


def is_account(text: str) -> bool:
    """Return whether an assistant's last message in a turn says more than that work is in progress.

    >>> is_account("A helper is on its way. I'll report what it finds."), is_account("Added the page.")
    (False, True)
    """
    return not all(map(_is_transient, prose(text)))


def _is_transient(sentence: str) -> bool:
    """Return whether `sentence` is outdated once it is read: a greeting, a look around, work in progress."""
    said = without_lead_in(sentence).replace("’", "'")
    kind = _kind(sentence)
    if kind in ("chatter", "exploration") or _OFFERS.search(said):
        return True
    if states_choice(said) or kind in ("decision", "solution"):
        return False
    if has(_REASONED, as_said(said)) or _SAYS_MORE.search(said):
        return False
    if has(_UNDER_WAY, as_said(said)) or _WAITING.match(said):
        return True
    if kind == "outcome":
        return False
    says_little = len(said.split()) < _LEAST_NAMELESS_WORDS and not _NAMES.search(said)
    return bool(_ANNOUNCED.match(said)) or (kind == "fact" and (says_little or bool(_DOING.match(said))))


def _kind(sentence: str) -> str:
    """Return the kind of an assistant's sentence: an offer to decide is no decision, nor is a question."""
    kind = classify(sentence)
    return kind if kind != "decision" or _settles(sentence) else "fact"


def binding_kind(sentence: str) -> str:
    """Return "decision", "constraint" or "blocker" if `sentence` is one that holds by itself, else nothing.

    >>> binding_kind("We decided to rewrite the lexer by hand."), binding_kind("Want me to go ahead?"), binding_kind("FAILED t.py::test_a")
    ('decision', '', '')
    """
    said = without_lead_in(sentence)
    if len(said.split()) < _BINDING_WORDS or _NO_STATEMENT.search(said) or not prose(sentence):
        return ""
    kind = classify(sentence)
    if kind == "decision":
        return kind if _settles(sentence) else ""
    if kind in ("constraint", "preference"):
        return "constraint" if rule(sentence) else ""
    open_still = not (_OVERCOME.search(sentence) or _SUPPOSED.match(said) or _intends(said))
    return kind if kind == "blocker" and open_still else ""


def kind_of_paragraph(text: str) -> str:
    """Return the item type of a paragraph of plain text; empty if it is only chatter."""
    kinds: list[str] = []
    for sentence in prose(text):
        kind = _kind(sentence)
        if kind in ("constraint", "preference"):  # the description of a need is no rule
            found = rule(sentence)
            kind = found.kind if found else "fact"
        kinds.append(kind)
    if kinds and all(kind == "chatter" for kind in kinds):
        return ""
    return next((kind for kind in NOTED_KINDS if kind in kinds), "observation")


def is_reply(text: str) -> bool:
    """Return whether a person's message needs the question that it answers to make sense.

    >>> is_reply("yes, both"), is_reply("What does it cost?")
    (True, False)
    """
    if text.rstrip().endswith("?"):
        return False
    return len(text) <= _REPLY_CHARS or bool(_APPROVAL.match(text) and len(text) <= 2 * _REPLY_CHARS)


def is_approval(reply: str) -> bool:
    """Return whether a person's `reply` starts with a yes, a no or a go."""
    return bool(_APPROVAL.match(reply))


def asks_for_decision(asked: str) -> bool:
    """Return whether the answer to `asked` is a decision, rather than information.

    >>> asks_for_decision("Shall I use SQLite?"), asks_for_decision("Could you provide your user id?")
    (True, False)
    """
    return bool(_CHOICE.search(asked)) and not _ENQUIRY.search(asked)


def is_empty_reply(text: str) -> bool:
    """Return whether a message is only encouragement or thanks, without a request.

    >>> is_empty_reply("looks good, thanks"), is_empty_reply("looks good, ship it")
    (True, False)
    """
    return is_thanks(text) or (len(text) <= _REPLY_CHARS and is_chatter(text))


def is_thanks(text: str) -> bool:
    """Return whether a message only thanks or praises, whatever question came before it."""
    if len(text) > _REPLY_CHARS:
        return False
    start = _THANKS_START.match(text)
    may_be = not text.isascii() or (start is not None and start[1].lower() in _THANKING)
    return may_be and bool(_THANKS.match(text.replace("’", "'")))


def closing_question(text: str) -> str:
    """Return the question at the end of an assistant's `text`, else an empty text.

    >>> closing_question("Done. Shall I also update the README?")
    'Shall I also update the README?'
    """
    asked = [sentence for sentence in prose(text)[-6:] if sentence.rstrip("*_ ").endswith("?")]
    return " ".join(asked)[-_QUESTION_CHARS:]


def _is_self_contained(sentence: str) -> bool:
    if len(sentence.split()) < _LEAST_WORDS or len(sentence) > _MOST_CHARS:
        return False
    if sentence.rstrip("*_ ")[-1:] in "?:" or sentence.lstrip().startswith(("|", "#")):
        return False
    said = sentence.lstrip("-*•# ").replace("’", "'")
    return not _intends(said)


def _intends(said: str) -> bool:
    """Return whether `said` only reports work in progress or about to start."""
    if states_choice(said):
        return False
    if has(_NARRATION, as_said(said)) or _WAITING.match(said):
        return True
    return bool(_INTENTION.match(said)) and not has(_REASONED, as_said(said))


def prose(text: str) -> list[str]:
    """Return the sentences of `text` without code, logs and tables."""
    return [*_prose(text)]


@lru_cache(maxsize=_CACHED_MESSAGES)
def _prose(text: str) -> tuple[str, ...]:
    plain = FENCED.sub("\n", text)
    lines = (line for line in plain.split("\n") if not _LOG_LINE.match(line) or line.lstrip().startswith("#"))
    return tuple(sentences("\n".join(lines))[:_READ_SENTENCES])
