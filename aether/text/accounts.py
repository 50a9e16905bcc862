"""Accounts: what an agent's account of its work says, by paragraph: what it changed, put off, asks, and will do next.

An account is cut into its paragraphs and list entries, which are shown whole or not at all: no headings, code, tables,
questions, offers or options.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from aether.text.cleaning import without_emphasis
from aether.text.regex import lazy
from aether.text.words import CODE_SPAN, FENCED, sentences
from aether.tuples import NamedTuple

# Characters of one line: a longer paragraph is shown by its first whole sentences.
LINE_CHARS = 420
LEAST_WORDS = 3
# Fewer that name nothing ("All tests pass.") say no more than the last run of the tests.
NAMELESS_WORDS = 5
# Characters beyond the room, for the last entries of a list.
LIST_CHARS = 400
SHORT_CHARS = 300
PIECE_SENTENCES = 12
LEAST_RATE = 1.0
# Fewer below an entry that opens a list are names of what it says.
NESTED_WORDS = 4
# An account of earlier work is shown by what it changed, and not by how it was checked.
LEAST_CHANGE = 2.0
OPENING_WORDS = 8
MOST_LEFT = 3

# What is not shown of a list.
_MORE = " …"
_ENTRY = lazy(r"[ \t]*(?:[-*•+]|\d{1,3}[.)]|✅|❌|[a-z]\))[ \t]+")
# A bold line that ends like a sentence is one.
HEADING = lazy(r"\s*(?:#+ .*|\*\*[^*]*[^*.!]\*\*[^.!?]{0,40}|[^.!?]{1,80}:\s*|-{3,}\s*|={3,}\s*)\Z")
_TABLE = lazy(r"\s*[|│┌└├+>]")
# What a host's window acts on and shows as a button: `::git-commit{cwd="…"}`.
_DIRECTIVE = lazy(r"\s*::[a-z][\w-]*\{")
# A row of an assessment with such a cell is the agent's advice, and not what was done.
_VERDICT = lazy(
    r"\W*(?:skip|ignore|reject|decline|defer|won't fix|no change|not needed|optional)\W*", re.IGNORECASE
)
# Below the head of a table.
_RULE = lazy(r"[|:\s-]*--[|:\s-]*")
_SHORTENED = "characters left out …]"
# Entries below these say how something was tested, or what was wrong before it was fixed.
_DETAIL_HEADING = lazy(
    r"\b(?:what it tests?|tests?|verif\w*|verification|failure|bugs?|problems?|issues?|root cause|output|findings?|before|background|context|why)\b",
    re.IGNORECASE,
)
_WAS_WRONG = lazy(
    r"^\W*(?:bug|problem|issue|failure|error|before|old)\b[^:]{0,20}:",
    re.IGNORECASE,
    needs=("bug", "problem", "issue", "failure", "error", "before", "old"),
)
# "Next", but no Next.js; "to do", but no TODO app.
NEXT = r"next(?!\.?js\b|-(?!steps?\b|up\b)\w)"
TO_DO = r"to[ -]?dos?(?: (?:list|items?))?(?=\W*\Z|\s*[:(—–.,#]|\s-\s| (?:next|later|now|before|after|for|in|on|still|by|manually)\b)"
_NEXT_HEADING = lazy(
    rf"\b(?:{NEXT}(?: steps?)?|remaining|{TO_DO}|pending|follow[- ]?ups?|left|not (?:yet )?(?:done|covered|handled|implemented|tested)|outstanding|unresolved|when ready)\b"
    r"|\bstill (?:\w+ ){0,2}(?:open|missing|incomplete|undone)\b|^\W*open(?: (?:issues?|items?|points?|questions?|tasks?|work))?\W*\Z",
    re.IGNORECASE,
    needs=(
        "open", "missing", "incomplete", "undone", "outstanding", "unresolved", "not ", "next", "remaining", "todo", "to do", "to-do", "pending",
        "follow", "left", "when ready",
    ),
)  # fmt: skip
# What is left as it is on purpose.
_LEFT_ALONE = lazy(
    r"\b(?:intentional\w*|on purpose|as[- ]is|as it is|by design|unchanged|already|not needed|correct\w*)\b",
    re.IGNORECASE,
)
_OPTION_HEADING = lazy(
    r"\b(?:options?|alternatives?|proposals?|approach(?:es)?|suggest\w*|recommend\w*|possible|could|would|should|pros|cons|example|questions?|how (?:it|to)|what (?:it|this|that|each) do(?:es)?|when (?:it|this|to)|before|closed|if you|not changed|trade-?offs?|steps?|test(?:ing)? plan|walk\w*|use cases?)\b",
    re.IGNORECASE,
    needs=(
        "use case", "option", "alternative", "proposal", "approach", "suggest", "recommend", "possible", "could", "would", "should", "pros", "cons",
        "example", "question", "how ", "what ", "when ", "before", "closed", "if you", "not changed", "trade", "step", "plan", "walk",
    ),
)  # fmt: skip
OPTION = lazy(r"(?:option|approach|alternative|variant)\W+\w{1,2}\b|\(?[a-d1-9][.)]", re.IGNORECASE)
# An entry below a line that breaks off is half of a sentence.
_BREAKS_OFF = lazy(
    r"\b(?:which|that|when|where|while|if|to|would|will|should|must|can|and|or|by|with|for|because|the|an?|of|in|on|from)\W*\Z",
    re.IGNORECASE,
)
_ANNOUNCES = lazy(
    r"^\W*(?:now,? |so,? |next,? |then,? |first,? |right\W+|ok\W+)*(?:let me|let's|i'll|i will|i need to|i'm going to)\b",
    re.IGNORECASE,
    needs=("let me", "let's", "i'll", "i will", "i need to", "i'm going to"),
)
_IS_DOING = lazy(
    r"^\W*(?:now,? |so,? |next,? |then,? |first,? |ok\W+)*(?:let me(?! know\b)|i'll (?!be\b|wait\b)|i(?:'m| am) (?:now |just |also )?(?!waiting\b)\w+ing\b)(?!.*\bif you\b)",
    re.IGNORECASE,
)
_LET_ME = lazy(r"\W*(?:now,? |so,? |ok\W+)*let me (?!know\b)", re.IGNORECASE)
_NEXT = lazy(
    rf"^\W*(?:the )?(?:{NEXT}(?: steps?| up| i'll)?\b|remaining\b|{TO_DO}|still (?:open|to do|missing|left|needs?)\b|not yet\b|after that\b(?!,? (?:i|we) (?!will\b))|when ready\b|pending\b)"
    r"|\bnext steps?\b|\bremains? (?:open|pending|unresolved|untested)\b|\b(?:is|are) still (?:open|pending|running|in progress|outstanding)\b|\b(?:remains?|still has|still needs?|is left) to\b|\bnot (?:yet )?(?:committed|pushed|merged|tested)\b|\bwhen (?:you're )?ready\b",
    re.IGNORECASE,
    needs=(
        "next", "remain", "to do", "to-do", "todo", "still ", "not ", "after that", "ready", "pending", "is left to",
    ),
)  # fmt: skip
# A sentence of its own about what comes next, in any place of a paragraph.
_STEP = lazy(
    rf"^\W*(?:(?:the )?{NEXT}(?: steps?| up)?\W*[:,—–-]|next,? (?:i|we)(?:'ll| will|'m going to| am going to|'re going to)\b"
    r"|(?:remaining|still (?:open|to do|missing|left)|to ?do|left to do|pending|not (?:yet )?done)\W*[:—–-])(?!\W*(?:nothing|none|n/a|-)\b)",
    re.IGNORECASE,
    needs=("next", "remaining", "still", "todo", "to do", "pending", "done"),
)
_SUPPOSES = lazy(
    r"^\W*you (?:can|should)|\b(?:(?:this|that|it|you|we|i|there|they|which|one|each|fix|\w+s) (?:would|could|might|may)|maybe|perhaps|should (?:i|we)|if you|you(?:'d| could| may)|i'd|let me|i'll|i will|let's|want me|want to|options?|alternatively|consider|recommend|suggest\w*|my take|"
    r"either|one way|in theory|ideally|e\.g\. if|i(?:'m| am) (?:going|about) to|i(?:'m| am) (?:now |also |just |still )?(?:reading|checking|(?:re-?)?running|looking|waiting|confirming|verifying|inspecting|reviewing|tracing|searching|validating)|now (?:i|let|update|add|fix|check|run)|the fix (?:is|would be) to|i need to|we need to|i should)\b",
    re.IGNORECASE,
    needs=(
        "you can", "you should", " would", " could", " might", " may", "maybe", "perhaps", "should", "if you", "you'd",
        "i'd", "let me", "i'll", "i will", "let's", "want ", "option", "alternatively", "consider", "recommend",
        "suggest", "my take", "either", "one way", "in theory", "ideally", "e.g. if", "i'm ", "i am ", "now ",
        "the fix ", "need to",
    ),
)  # fmt: skip
_RECOMMENDS = lazy(
    r"^(?!\W*if you\b).*?(?:\b(?:i'd|i would) (?:\w+ly |just |also |still |rather )?(?:go (?:with|for|after)|suggest|recommend|keep|use|pick|choose|prefer|leave|drop|add|start with|tackle|focus on)\b|\bi (?:strongly )?(?:recommend|suggest|propose)\b)"
    r"|^\W*(?:my |the )?(?:recommendation|lean|take|suggestion|verdict|preference)\b[^:?.]{0,20}:|^\W*(?:basically|in short|bottom line)\b[^:?.]{0,20}:|^\W*(?:approved? (?:with|once|after|as|this|the|pr)|request(?:ing)? changes|(?:not )?ready to merge|(?:do not|don't|safe to) merge)\b",
    re.IGNORECASE,
    needs=(
        "approve", "changes", "merge", "i'd", "i would", "recommend", "suggest", "propose", "lean", "take",
        "verdict", "preference", "basically", "in short", "bottom line",
    ),
)  # fmt: skip
# "Done." before what was done leans on nothing.
_EXCLAIMS = lazy(
    r"^\W*(?:(?:done|yes|yeah|great|good|perfect|right|correct|exactly|ok(?:ay)?)[.!]+\W+)+(?=\w|`)",
    re.IGNORECASE,
)
_LEANS = lazy(
    r"^\W*(?:this|that|these|those|it|they|he|she|here|so|yes|no|yeah|nope|right|correct|exactly|good|great|ok(?:ay)?|done|perfect|both|however|but|and|then|also|the same)\b",
    re.IGNORECASE,
)
_CHANGED = lazy(
    r"\b(?:add(?:s|ed)|chang(?:es|ed)|remov(?:es|ed)|replac(?:es|ed)|renam(?:es|ed)|mov(?:es|ed)|fix(?:es|ed)|now|instead|no longer|kept|keeps|stays|uses|returns|skips?|skipped|gated|"
    r"extract(?:s|ed)|creat(?:es|ed)|defaults?|only|separate|avoid(?:s|ed)|left|drop(?:s|ped)|split|merged|rolled back|reverted|confirmed|verified|"
    r"root cause|because|so that|rather than|implemented|updated|introduced|filed|stored|switched|converted|written|wrote|saved|wired|route[sd]?|filters?)\b",
    re.IGNORECASE,
    needs=(
        "add", "chang", "remov", "replac", "renam", "mov", "fix", "now", "instead", "no longer", "kept", "keeps",
        "stays", "uses", "returns", "skip", "gated", "extract", "creat", "default", "only", "separate", "avoid", "left",
        "drop", "split", "merged", "rolled back", "reverted", "confirmed", "verified", "root cause", "because",
        "so that", "rather than", "implemented", "updated", "introduced", "filed", "stored", "switched", "converted", "wr", "saved", "wired", "route", "filter",
    ),
)  # fmt: skip
_PROVEN = lazy(
    r"\b(?:pass(?:es|ed|ing)?|green|clean|lint|tests?|committed|commit|pushed|push|merged|pr ?#\d+|#\d+|0 issues|build|fail(?:s|ed|ing)?|uncommitted)\b",
    re.IGNORECASE,
    needs=(
        "pass", "green", "clean", "lint", "test", "commit", "push", "merged", "#", "build", "fail", "0 issues",
    ),
)  # fmt: skip
# What an account leaves undone stays so until it is named again.
_PUT_OFF = lazy(
    r"(?:\b(?:is|was|are|were|been|minor,)|[-–—:])\s*(?:deferred|skipped|postponed)\b|\b(?:looks?|is|are|still) untested\b|\bleft (?:unaddressed|for later)\b"
    r"|\bthere(?:'s| is| are) (?:still )?no\b[^.?]*\btests?\b(?! (?:is|are) needed)",
    re.IGNORECASE,
)
# What an account of work says below it is open as long as nobody works on it.
_LIMIT_HEADING = lazy(
    r"\W*(?:known |current |remaining |other )*(?:limitations?|caveats?|gaps?|not (?:yet )?(?:covered|handled|supported))\W*",
    re.IGNORECASE,
)
# A finding of a review, or what is said to be wrong with the code.
_DEFECT = lazy(
    r"^\W*(?:\[?P[0-4]\b|(?:critical|high|medium|low|major|minor|blocker|bug|finding)(?: (?:priority|severity))?\W*(?:#?\d+\W*)?[:\])—–-])"
    r"|\bis (?:also )?a bug\b|\binsufficient\b|\bfails? to\b|\b(?:is|are) (?:still )?(?:missing|broken|wrong|incorrect|unsafe)\b|\bcan still\b|\bincorrectly\b|\bwrongly\b",
    re.IGNORECASE,
    needs=(
        "can still",
        *"p0 p1 p2 p3 p4 critical high medium low major minor blocker bug finding insufficient fail missing".split(),
        *"broken wrong incorrect unsafe".split(),
    ),
)
# Of a branch as a whole, as a sentence of its own.
_WAS_READY = lazy(
    r"\W*(?:the |this )?(?:PR|pull request|branch|work(?:ing )?tree)(?: #?\d+)? (?:is (?:now )?(?:ready(?: to merge| for (?:merge|review))?|clean|up to date)"
    r"(?: (?:on|with|to) \S+)?|now sits on (?:top of )?\S+(?: at \S+)?)\W*",
    re.IGNORECASE,
    needs=("ready", "clean", "up to date", "now sits"),
)
# What is under way when it is said.
_PASSES_SOON = lazy(
    r"\bETA\b|\b(?:expected|expects?|should|will)(?: to)?(?: be)? (?:finish|complet\w+)|\b(?:still|currently|now) (?:running|building|waiting)\b"
    r"|\b(?:am|'m) (?:\w+ )?(?:running|waiting)\b|(?:^|[:,;–—-] ?|\b(?:still|now|am|'m) )waiting (?:on|for)\b|\brunning in (?:parallel|the background)\b|\bin flight\b"
    r"|\bproject(?:ed|ing) completion\b",
    re.IGNORECASE,
    needs=("eta", "finish", "complet", "running", "waiting", "building", "in flight"),
)
_FIXES_ALL = lazy(
    r"^\W*(?:(?:done|yes|ok(?:ay)?)\W+)?(?:i(?:'ve| have)? )?(?:fixed|addressed|resolved|handled|closed)\b.{0,40}?\b(?:all|both|every|each|the (?:two|three|four|five|\d+))\b.{0,30}?\b(?:findings?|issues?|comments?|bugs?|problems?|points?|concerns?|threads?|of (?:them|these|those)|\d+)\b"
    r"|\b(?:all|both|every|each)\b.{0,60}?\b(?:findings?|issues?|comments?|bugs?|problems?|points?|concerns?|threads?|items?|of (?:them|these|those))\b"
    r".{0,20}?\b(?:(?:is|are|were|was|have been|has been) (?:now )?|now )?(?:fixed|addressed|resolved|handled|closed)\b",
    re.IGNORECASE,
    needs=("fixed", "addressed", "resolved", "handled", "closed"),
)
_NOT_ALL = lazy(r"\b(?:not|n't|never|except|but|only|unless|once|until|if)\b", re.IGNORECASE)
_OF_TREE = lazy(
    r"\b(?:unstaged|uncommitted|unpushed|untracked|diverged)\b|\bcommits (?:ahead|behind)\b|\bahead \d+\b|\b(?:did(?:n't| not)|have(?:n't| not)|has(?:n't| not)|not(?: yet)?) (?:been )?(?:push|commit|stag)\w*",
    re.IGNORECASE,
)
# An entry of a checklist was the state when it was ticked.
_TICKED = lazy(r"\W*[✅✓✔☑]|[^.!]*[✅✓✔☑]\Z", needs=("✅", "✓", "✔", "☑"))
# How an account was checked, below it or at the start of a line, is old when there is a newer one.
_CHECKED = lazy(r"\W*(?:verif\w+|validat\w+|checks?|tests?)\b[^:.]{0,20}:", re.IGNORECASE)
# How a check came out.
_RESULT = lazy(
    r"\b(?:pass\w*|green|clean|ok|fail\w*|error\w*|no|0|succe\w+|confirm\w*|match\w*|\d+)\b|✅|✓",
    re.IGNORECASE,
)
# What tests were written says less than that they pass, and the list of changed files names them.
_OF_TESTS = lazy(
    r"^\W*(?:(?:i(?:'ve|'m| am)?|also|let me|now)\s+)*(?:add(?:ed|ing|s)?|wrote|writ\w+|updat\w+|extend\w*|modif\w+)\b(?:[^.;:]{0,60}?\b(?:tests?|coverage|regressions?|fixtures?)\b|\s[`\[]?\S*(?:_test\.|\btest_\w+\.|\.(?:test|spec)\.)\w)"
    r"|^\W*tests? (?:are |were )?(?:updated|added)\b|^[`\[]?\S*(?:_test\.\w+|\btest_\w+\.\w+|\.(?:test|spec)\.\w+)\S*\s*[-–—:]",
    re.IGNORECASE,
    needs=("test", "coverage", "regression", "fixture", ".spec."),
)
_REASON = lazy(
    r"\b(?:instead|rather than|should|so that|because|for consistency|best place|keep(?:s|ing)?|without|only|separate|shared|while keeping|preserv\w+|match(?:es|ing)?|to avoid|from .{3,40} only|unchanged|the fix is|both sides|explicit(?:ly)?)\b",
    re.IGNORECASE,
)
_OPENS_LOOK = lazy(
    r"^\W*(?:now |ok\W+|good\W+|next,? )*(?:let me (?:check|look|see|verify|read|run|find|trace|explore|investigate|search|understand|examine|inspect)|i see|looking|checking|the (?:test|lint|error|issue)\b.{0,30}\bfail|wait)|\bfound\b|\breview\b|\bi think\b",
    re.IGNORECASE,
    needs=(
        "let me", "i see", "looking", "checking", "fail", "wait", "found", "review", "i think",
    ),
)  # fmt: skip
LEAST_REASON, MOST_REASON = 40, 300
_CHOOSES = lazy(
    r"\b(?:i'm|i am|we're) (?:going to |now )?(?:add|keep|mak|mov|us|restor|chang|replac|remov|plac|put|stor|renam|switch|leav|reject|register|edit)(?:ing|e)?\b"
    r"|\bshould\b(?! be (?:green|fine|good))|\blet me (?:add|fix|use|keep|update|create|take|move|make|put|inline|extract|drop|remove|replace|rename)\b",
    re.IGNORECASE,
)
# What is made or changed, also without a name if enough words say what.
_MAKES = lazy(
    r"\b(?:i'm|i am|we're) (?:going to |now )?(?:add|build|chang|convert|edit|encod|emit|extract|introduc|keep|mak|mov|plac|put|remov|renam|replac|restor|split|stor|switch|tighten|turn|vendor|wir)(?:t?ing|e)?\b",
    re.IGNORECASE,
)
CHANGE_WORDS = 10
_HEDGES = lazy(r"\b(?:presumably|probably|maybe|perhaps|might|whether|not sure|i wonder)\b", re.IGNORECASE)
_ASIDE = lazy(
    r"^\W*(?:now,? let me|(?:now,? |then,? |next,? )*(?:i need to|i have to|i should)|it|this|that)\b",
    re.IGNORECASE,
)
# What is in the code only for a while, what is announced, and what "it" is only the text around it says.
_PASSING = lazy(
    r"\btemporar(?:y|ily)\b(?! (?:dir|file|folder|path|table))|\bdebug (?:hook|print|test|code|output|statement|line)s?\b|\bbriefly\b|\bnext(?:[.,:;]|\Z)"
    r"|\b(?:i'm|i am|we're|let me) (?:now |just |also )?\w+ (?:them|(?:that|this|these|those) \w+ now|(?:that|this)(?= (?:with|so|to|by|and|for|in|into|from|because|rather|instead)\b))(?! \w+ly\b)\b",
    re.IGNORECASE,
)
_INTRODUCES = lazy(
    r"\b(?:i'm|i am|i'll|we're|let me)(?: now| just| also| going to)* (?:add|creat|introduc|keep|switch|convert|us|vendor|restor|register)(?:e|ing)?\b|\bshould\b",
    re.IGNORECASE,
)
_NO_SUBJECT = lazy(r"^\W*(?:should|must|needs? to)\b", re.IGNORECASE)
_REFERS = lazy(r"\b(?:that|this|it|these|those|them|there|so|either|both|change|fix|commit)\b", re.IGNORECASE)
_OFFERS_WAY = lazy(
    r"\W*(?:(?:alternatively|instead),? )?(?:if \w[^,]{0,80}, )?(?:(?:i|we) (?:could|can|would|might)|one option)\b",
    re.IGNORECASE,
)
# Where something is, in a report on the code: what it is, the text around it says.
_ONLY_PLACE = lazy(
    r"(?:\w+ )?(?:file|path|function|method|location|located in|defined in)s?(?: \w+)?: *`[^`]+`(?: *\(lines? [\d, –-]+\))?\.?",
    re.IGNORECASE,
)
_LEADS_IN = lazy(r"based on (?:my|the|our) [^,;:]*, here(?:'s|’s| is| are)\b[^:;]*:?\s*", re.IGNORECASE)
# The agent speaks to itself: it looks around, understands, or announces.
_NARRATES = lazy(
    r"^\W*(?:now |so |ok(?:ay)?\W+|good\W+|great\W+|perfect\W+|next,? |then |first,? |and )*(?:let me|let's|i'll|i will|i'm going to|looking|checking|wait|hmm|interesting|(?<=now )\w+ing\b"
    r"|(?:i|we)(?:'ve| have)? (?:now |can |also |just )?(?:see|notice|understand|need|want|have (?:a |the |all|enough|what))\b)",
    re.IGNORECASE,
)
_NAMES = lazy(r"`[^`]+`|\w/\w|\w\.\w|[a-z][A-Z]|\d|_")
# At the end of an account, the lead of the choices that a person has.
_OFFERS = lazy(
    r"\b(?:(?:would you like|do you want|want|prefer) (?:me|us) to|(?:should|shall) (?:i|we)|would you (?:like|prefer|rather)|which (?:of|one|option|approach|would|do|should)|"
    r"how (?:would|should|do) (?:you|we|i))\b",
    re.IGNORECASE,
    needs=("want", "should", "shall", "would", "prefer", "which", "how "),
)
# The offer of an agent that asks no question.
_OFFERS_MORE = lazy(
    r"^\W*(?:if (?:you(?:'d| would)? (?:like|want|prefer)|that helps|useful|helpful)\b[^.?!]*?,? (?:i|we) (?:can|could)\b|(?:i|we) (?:can|could)\b[^.?!]*\bif you(?:'d| would)? (?:like|want|prefer)\b|let me know if you(?:'d| would)? (?:like|want)\b)",
    re.IGNORECASE,
    needs=("if ",),
)
_PICKS = lazy(r"\b(?:which|prefer\w*|options?|choose|pick|or [a-d1-9]\b|either|one of)\b", re.IGNORECASE)
# Whether the person follows or agrees: it says nothing about what.
_CHECKS_IN = lazy(
    r"\W*(?:(?:any )?(?:other )?(?:thoughts|questions|preferences?)|what do you think|what's your (?:take|view)|agreed?|(?:does|did) (?:that|this|it)(?: all)? (?:make sense|clarify|help|answer|track)\b.*|"
    r"makes? sense|sounds? (?:good|right|ok(?:ay)?)|(?:is )?(?:that|this|it) clear(?:er)?|clear|right|ok(?:ay)?)\W*",
    re.IGNORECASE,
)
# What is to be undone in part is not named by that: which part of the work is left, nobody knows.
_PARTLY = lazy(r"\b(?:only|except|but|keep|though|apart from)\b", re.IGNORECASE)
_TAKES_BACK = lazy(r"revert|undo|roll", re.IGNORECASE)
_UNDOES = lazy(
    r"(?:(?:nah|no|nope|hm+|ok(?:ay)?|actually|please|sorry|wait|then|yeah|yes|so|let's|lets|we should|can you|could you|just)\W+)*"
    r"(?:revert|undo|roll(?:ed)?(?: it| this| that)? ?back)(?:\W+(?:it|this|that|those|these|them|all|everything|the (?:last |whole )?(?:change|edit|fix|commit)s?|(?:last |whole )?changes?|please|again|then))*\W*(?:\Z|[.,;])",
    re.IGNORECASE,
)
_DID = lazy(
    r"\W*(?:(?:done|yes|ok(?:ay)?|confirmed(?: and)?)\W+)*(?:i(?:'ve| have)? |we(?:'ve| have)? )?(?:now |also )?"
    r"(?:added|changed|removed|replaced|renamed|moved|fixed|implemented|updated|extracted|created|switched|wired|rewrote|wrote|deleted|built|made)\b",
    re.IGNORECASE,
)
_WRONG_HEADING = lazy(
    r"\W*(?:what (?:was|went)(?: \w+)? wrong\b.*|(?:the )?(?:problem|bug|issue|root cause|cause|background|before)s?)\W*",
    re.IGNORECASE,
)
_ASKS_BACK = lazy(
    r"\W*(?:(?:ok(?:ay)?|hm+|so|and|but|wait|sorry)\W+)*(?:(?:what|why|how|where|when|which|who|is|are|was|were|does|do|did|would|wouldn't|isn't|don't|doesn't)\b(?! about we\b)|"
    r"(?:can|could|would|will) you (?:please )?(?:explain|clarify|elaborate|show|tell|remind|expand|walk|describe|compare)\b)",
    re.IGNORECASE,
)
# How a person turns down what an agent said.
_NO = lazy(
    r"^\W*(?:no|nah|nope|na|don't|do not|not really|stop|wait|hmm+|hold on|nein|revert|undo|roll(?:ed)? ?back)\b",
    re.IGNORECASE,
)


class Paragraph(NamedTuple):
    """A paragraph or list entry of an account, and the heading above it."""

    text: str
    heading: str
    entry: bool = False
    mark: str = "-"
    """Of an entry, its number or letter."""
    lead: str = ""
    """The line that opens its list, or the entry that it is below: without it, it may say nothing."""


class Sentence(NamedTuple):
    """A whole sentence of an account that reports something, or says what comes next."""

    text: str
    leans: bool = False
    """Whether it says nothing without the one before it."""
    is_ahead: bool = False
    """Whether it says what comes next, or asks at the end."""
    is_bare: bool = False
    """Whether it names and proves nothing ("The issue is clear now.")."""


def reports(text: str) -> list[Sentence]:
    r"""Return the sentences of an account that report, and those that say what comes next, in their order.

    Each is a whole sentence of one paragraph, without emphasis. Narration, options, offers and headings are left out.

    >>> [one.text for one in reports("Let me look.\n\nI see the issue. Moved `lock()` into **store.py**.\n\nShall I push it?")]
    ['Moved `lock()` into store.py.', 'Shall I push it?']
    """
    said = paragraphs(text)
    asking = closes_asking(said)
    found: list[Sentence] = []
    for at, one in enumerate(said):
        plain = without_emphasis(one.text)
        closes = asking and at >= len(said) - 2 and asks(one)
        if not closes and (OPTION.match(one.heading) or _WAS_WRONG.match(plain)):
            continue
        if asking and OPTION.match(plain):
            continue
        if closes or is_ahead(one):
            text = whole(one.text)
            found += [Sentence(text, is_ahead=True)] if _NEXT.search(text) or not is_narration(text) else []
        else:
            found += _reporting(sentences(reported(one, LINE_CHARS)))
    return [one for one in found if one.text]


def _reporting(said: Sequence[str]) -> Iterator[Sentence]:
    """Yield the sentences of one paragraph without narration, and without those that lean on narration."""
    dropped = False
    for at, text in enumerate(said):
        leans = at > 0 and bool(_LEANS.match(text))
        dropped = is_narration(text) or (leans and dropped)
        dropped = dropped or (text.endswith(":") and ("?" in text or rate_change(text) < LEAST_CHANGE))
        if not dropped:
            yield Sentence(text, leans=leans, is_bare=_is_bare(text))


def _is_bare(text: str) -> bool:
    if not text.rstrip("`\"')").endswith((".", "!")) and not (_CHANGED.search(text) or _PROVEN.search(text)):
        return True  # an entry of a list that is not a sentence
    names = _NAMES.search(text) or _PROVEN.search(text)
    return rate(text) < LEAST_RATE or not (names or len(text.split()) >= OPENING_WORDS)


def is_narration(sentence: str) -> bool:
    """Return whether in `sentence` an agent only says what it looks at, sees or does next.

    >>> is_narration("Now I see the issue in `a.py`."), is_narration("I moved the lock into `a.py`.")
    (True, False)
    """
    said = sentence.replace("’", "'")
    return bool(_NARRATES.match(said) or _OPENS_LOOK.match(said))


def paragraphs(text: str, *, tables: bool = False) -> list[Paragraph]:
    r"""Return the paragraphs and list entries of `text` in order, without headings and code.

    Names below an entry that opens a list of them belong to it. The heading of a list is the line above it that opens it ("Next:"), else that of its part. With `tables`, each row of
    a table that is more than names and numbers is an entry, without the bars at its ends.

    >>> said = paragraphs("## Done\n\n- added `a.py`\n\n```\nx = 1\n```\nAll tests pass. Next:\n- **push** it")
    >>> [(one.text, one.heading, one.lead) for one in said]
    [('added `a.py`', 'Done', ''), ('All tests pass. Next:', 'Done', ''), ('**push** it', 'All tests pass. Next', 'All tests pass. Next:')]
    """
    found: list[Paragraph] = []
    heading = opening = lead = mark = ""
    listed, open_lines, level = False, list[str](), 0
    above: list[tuple[int, str]] = []  # the entries that the next may be below, with their depths

    def close() -> None:
        nonlocal opening, lead
        if open_lines:
            whole = " ".join(open_lines)
            if listed:
                while above and above[-1][0] >= level:
                    above.pop()
                leads = above[-1][1] if above else lead
                above.append((level, whole))
                found.append(Paragraph(whole, opening or heading, True, mark, leads))
            else:
                lead = _lead(whole)
                opening = lead.rstrip(":*_ ")
                above.clear()
                found.append(Paragraph(whole, heading))
            open_lines.clear()

    lines = FENCED.sub("\n\n", text).split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        bare = line.strip()
        if not bare or _TABLE.match(line) or _DIRECTIVE.match(line) or _SHORTENED in line:
            close()
            found += _row(bare, after, opening or heading) if tables else []
        elif not open_lines and HEADING.fullmatch(line) and not _ENTRY.match(line):
            heading, opening = bare.strip("#*: "), ""
            lead = _lead(bare)
            above.clear()
            found += [Paragraph(bare, heading)] if _reports_change(bare) else []
        elif entry := _ENTRY.match(line):
            said, depth = line[entry.end() :].strip(), len(line) - len(line.lstrip())
            if listed and depth > level and _is_name_below(open_lines, said):
                open_lines.append(f"- {said}")
                continue
            close()
            listed, level = True, depth
            mark = _mark(entry[0].strip())
            open_lines.append(said)
        else:
            listed = listed and bool(open_lines)
            open_lines.append(bare)
    close()
    return found


def _lead(line: str) -> str:
    return line if line.rstrip("*_ ").endswith(":") and not line.startswith("#") else ""


def _mark(written: str) -> str:
    return written if written[0].isalnum() else "-"


def blocks(said: Sequence[Paragraph], most: int = LINE_CHARS) -> list[Paragraph]:
    r"""Return the paragraphs `said`, each list of at most `most` characters joined to the line or entry that it is below.

    >>> [one.text for one in blocks(paragraphs("Two tests are missing:\n- one for `load()`\n- one for `save()`\n\nDone."))]
    ['Two tests are missing: - one for `load()` - one for `save()`', 'Done.']
    """
    found: list[Paragraph] = []
    for lead, group in groupby(_with_nested(said, most), key=lambda each: each[1].lead):
        pairs = list(group)
        forms = [
            " ".join([lead, *(f"{one.mark} {one.text}" for one in form)]) for form in zip(*pairs, strict=True)
        ]
        # Without what is below its entries, a list may be short enough.
        joins = lead and _needs(lead, [one for one, _ in pairs])
        short = next((text for text in forms[::-1] if joins and len(text) <= most), "")
        if not short:
            found += [one for _, one in pairs]
            continue
        if found and found[-1].text == lead:
            found.pop()
        found.append(pairs[0][0]._replace(text=short))
    return found


def _needs(lead: str, entries: Sequence[Paragraph]) -> bool:
    """Return whether entries say little without the line above them: it says something itself, or they are mere names."""
    words = sum(len(one.text.split()) for one in entries)
    return len(lead.split()) >= NAMELESS_WORDS or words < OPENING_WORDS * len(entries)


def _with_nested(said: Iterable[Paragraph], most: int) -> list[tuple[Paragraph, Paragraph]]:
    """Return the paragraphs, but for entries below others; each alone, and with as many of those as fit.

    What is left out of an entry shows as "…".
    """
    found: list[tuple[Paragraph, Paragraph]] = []
    texts: set[str] = set()
    for one in said:
        if one.entry and one.lead in texts:
            alone, held = found[-1]
            texts.add(one.text)
            if not alone.text.endswith(_MORE):
                alone = alone._replace(text=f"{alone.text.rstrip(':')}{_MORE}")
            joined = f"{held.text} {one.mark} {one.text}"
            if len(joined) > most:
                joined = held.text if held.text.endswith(_MORE) else f"{held.text}{_MORE}"
            found[-1] = alone, held if held.text.endswith(_MORE) else held._replace(text=joined)
        else:
            texts = {one.text} if one.entry else set()
            found.append((one, one))
    return found


def _is_name_below(entry: Sequence[str], said: str) -> bool:
    """Return whether `said` is short and belongs to the lines of an `entry` that opens a list."""
    return bool(entry) and entry[0].rstrip("*_ ").endswith(":") and len(said.split()) <= NESTED_WORDS


def _reports_change(line: str) -> bool:
    """Return whether a line that opens a list or code says by itself what was changed."""
    opens = line.endswith(":") and not line.startswith("#") and len(line.split()) >= OPENING_WORDS
    return opens and rate_change(line) >= LEAST_CHANGE


def _row(line: str, after: str, heading: str) -> list[Paragraph]:
    """Return a row of a table as an entry; none if it is its head, or if no cell says anything."""
    if not line.startswith("|") or _RULE.fullmatch(after.strip() or "x"):
        return []
    cells = [one.strip() for one in line.strip("|").split("|")]
    says = any(len(one.split()) > LEAST_WORDS for one in cells) and _SHORTENED not in line
    says = says and not any(_VERDICT.fullmatch(one.replace("’", "'")) for one in cells)
    return [Paragraph(" | ".join(filter(None, cells)), heading, True)] if says and len(cells) > 1 else []


def gives_reason(sentence: str) -> bool:
    """Return whether an agent's `sentence` chooses how something is done, or says why.

    >>> gives_reason("I'm adding the flag to `load()`, while keeping the default as it is."), gives_reason("Let me look at `a.py`.")
    (True, False)
    """
    said = sentence.replace("’", "'")
    if not LEAST_REASON <= len(said) <= MOST_REASON or said.rstrip().endswith("?"):
        return False
    if _OPENS_LOOK.match(said) or _HEDGES.search(said) or said.lstrip().startswith("<"):
        return False
    if said.rstrip().endswith(":"):  # the edit follows
        return bool(_CHOOSES.search(said) and _NAMES.search(said))
    if _REASON.search(said):
        return bool(_CHOOSES.search(said) or _NAMES.search(said))
    return bool(_CHOOSES.search(said) and _NAMES.search(said)) and not _NO_SUBJECT.match(said)


def reason_of(text: str) -> str:
    """Return the last sentence of an agent's `text` that chooses how something is done, else that says why, or ""."""
    said = [one for each in paragraphs(text) for one in sentences(without_emphasis(each.text))]
    chosen = [one for one in said if gives_reason(one)]
    best = max(reversed(chosen), key=lambda one: bool(_CHOOSES.search(one.replace("’", "'"))), default="")
    return best.rstrip(":")


def change_of(text: str) -> str:
    """Return the last sentence of an agent's `text` that says by name, or in many words, what is changed, or "".

    >>> change_of("The fault is clear. I'm moving the retry loop into a package `internal/backoff`.")
    "I'm moving the retry loop into a package `internal/backoff`."
    >>> change_of("I'm adding a narrow interface layer across all of the strategy packages now.")
    "I'm adding a narrow interface layer across all of the strategy packages now."
    >>> change_of("Let me look at the retry loop in `sync.go`, and at the tests of it, first.")
    ''
    """
    said = [one for each in paragraphs(text) for one in sentences(without_emphasis(each.text))]
    return next((one for one in reversed(said) if _names_change(one.replace("’", "'"))), "")


def _names_change(said: str) -> bool:
    if not LEAST_REASON <= len(said) <= LINE_CHARS or said.rstrip().endswith(("?", ":")):
        return False
    if _OPENS_LOOK.match(said):
        return False
    if _CHOOSES.search(said) and _NAMES.search(said):
        return True
    return len(said.split()) >= CHANGE_WORDS and bool(_MAKES.search(said)) and not _HEDGES.search(said)


def is_aside(sentence: str) -> bool:
    """Return whether a reason says nothing without the text around it, is of a test, or only announces the next step.

    >>> is_aside("Both should use `split()` instead."), is_aside("The readers should share `split()`, because they agree.")
    (True, False)
    """
    said = sentence.replace("’", "'")
    says_nothing = (_ASIDE.match(said), _LEANS.match(said), _NO_SUBJECT.match(said), _OF_TESTS.match(said))
    return any(says_nothing) or bool(_PASSING.search(said))


def leans(sentence: str) -> bool:
    """Return whether a `sentence` says nothing without the one before it.

    >>> leans("That should close the gap."), leans("The cache should close the gap.")
    (True, False)
    """
    said = sentence.replace("’", "'")
    return bool(_LEANS.match(said) or _NO_SUBJECT.match(said))


def says_why(sentence: str) -> bool:
    """Return whether a `sentence` says why, or what something is done instead of."""
    return bool(_REASON.search(sentence))


def introduces(sentence: str) -> bool:
    """Return whether a reason says what is made or kept, rather than what is adjusted or tested.

    >>> introduces("I'm adding a `Retry` type that both clients share."), introduces("I'm moving the check to the end of `run()`.")
    (True, False)
    """
    said = sentence.replace("’", "'")
    return bool(_INTRODUCES.search(said)) and not _OF_TESTS.match(said)


def asks_leave(one: Paragraph) -> bool:
    """Return whether a paragraph asks whether to do something ("Want me to push?"), rather than a question that it answers.

    >>> asks_leave(Paragraph("Ready. Want me to push?", "")), asks_leave(Paragraph("Need it? No.", ""))
    (True, False)
    """
    return asks(one) and bool(_OFFERS.search(one.text))


def closes_asking(said: Sequence[Paragraph]) -> bool:
    """Return whether an account ends with a question, or with choices."""
    return any(map(asks, said[-2:])) or any(map(is_offer, said[-2:]))


def is_offer(one: Paragraph) -> bool:
    r"""Return whether an entry is one of the choices that a person is offered.

    >>> [is_offer(one) for one in paragraphs("Should I:\n1. keep it\n\nChanged:\n- the lock")]
    [True, False]
    """
    return one.entry and one.lead.rstrip("*_ ").endswith((":", "?")) and bool(_OFFERS.search(one.lead))


def checks_in(question: str) -> bool:
    """Return whether a `question` only asks whether the person follows or agrees, without saying to what.

    >>> checks_in("Thoughts?"), checks_in("Does that make sense?"), checks_in("Does the plan make sense to you?")
    (True, True, False)
    """
    return bool(_CHECKS_IN.fullmatch(question.replace("’", "'")))


def picks(question: str) -> bool:
    """Return whether a `question` asks for one of several choices.

    >>> picks("Which do you prefer?"), picks("1, 2 or 3?"), picks("Shall I start?")
    (True, True, False)
    """
    return bool(_PICKS.search(question))


def supposes(text: str) -> bool:
    """Return whether `text` offers, supposes or announces something, rather than reporting it."""
    return bool(_SUPPOSES.search(text.replace("’", "'")))


def refuses(reply: str) -> bool:
    """Return whether a person's `reply` turns down the message before it.

    >>> refuses("nah let's roll back"), refuses("no tests are needed there?"), refuses("yes, do it")
    (True, False, False)
    """
    said = reply.replace("’", "'").strip()
    found = _NO.match(said)
    part = found and _TAKES_BACK.search(found[0]) and _PARTLY.search(said)
    return bool(found) and not part and not said.endswith("?")


def undoes(reply: str) -> bool:
    """Return whether a person's `reply` demands that the work before it is undone.

    >>> undoes("can you revert this change?"), undoes("nah, roll it back"), undoes("should we revert to polling?")
    (True, True, False)
    """
    return bool(_UNDOES.match(reply.replace("’", "'").strip())) and not _PARTLY.search(reply)


def reports_work(said: Sequence[Paragraph]) -> bool:
    """Return whether an account says that something was made or changed.

    >>> reports_work(paragraphs("Done. I added `a.py`.")), reports_work(paragraphs("There are three ways to add it."))
    (True, False)
    """
    return any(_DID.match(one.text.replace("’", "'")) for one in said)


def was_wrong(one: Paragraph) -> bool:
    """Return whether a paragraph of an account of work is below a heading of what was wrong before it."""
    return bool(_WRONG_HEADING.fullmatch(one.heading))


def asks_back(reply: str) -> bool:
    """Return whether a person's `reply` to a question is a question about it.

    >>> asks_back("can you explain the second one? I don't follow"), asks_back("can you revert it?"), asks_back("yes, why not?")
    (True, False, False)
    """
    first = next(iter(sentences(reply.replace("’", "'").strip())), "")
    return first.rstrip("*_ )").endswith("?") and bool(_ASKS_BACK.match(first))


def asks(one: Paragraph) -> bool:
    """Return whether a paragraph asks something, or offers what a person may want.

    >>> asks(Paragraph("Done. Shall I push it?", "")), asks(Paragraph("Done. If you want, I can push it.", ""))
    (True, True)
    """
    may_ask = "?" in one.text or "if " in one.text.casefold()
    return may_ask and any(map(_awaits, sentences(one.text)))


def _awaits(sentence: str) -> bool:
    """Return whether a person may answer to `sentence`: it is a question, or offers more."""
    return sentence.rstrip("*_ )").endswith("?") or bool(_OFFERS_MORE.match(sentence.replace("’", "'")))


def is_ahead(one: Paragraph) -> bool:
    """Return whether a paragraph says what comes next."""
    said = one.text.replace("’", "'")
    if said.rstrip("*_ ").endswith(":") or _is_left_alone(one):
        return False
    if _OPENS_LOOK.match(said) and not _NEXT.search(said):
        return False
    return bool(_NEXT.search(said) or _opens_next(one) or _announced(one) or announces(said))


def announces(sentence: str) -> bool:
    """Return whether a `sentence` says what its author will do next.

    >>> announces("Next, I will add the metric."), announces("The next release has it.")
    (True, False)
    """
    return bool(_ANNOUNCES.match(sentence.replace("’", "'")))


def leads_in(text: str) -> bool:
    """Return whether `text` only leads to what is below it.

    >>> leads_in("Based on my search, here's where it is used."), leads_in("Based on the log, here's the lock: it moved.")
    (True, False)
    """
    return len(text) <= LINE_CHARS and bool(_LEADS_IN.fullmatch(text)) and len(sentences(text)) == 1


def goes_on(text: str) -> bool:
    """Return whether an agent's message ends with what it does or is about to do.

    >>> goes_on("The tests pass. I'm committing this now."), goes_on("Step 2, the caller:"), goes_on("It is pushed. Let me know.")
    (True, True, False)
    """
    return text.rstrip("*_ \n").endswith(":") or _ends_so(text, _IS_DOING)


def looks_on(text: str) -> bool:
    """Return whether an agent's message ends with what it does at once, so that whoever wrote next stopped it.

    >>> looks_on("Two tests fail. Let me see why."), looks_on("Two tests fail. I'll fix them when you say so.")
    (True, False)
    """
    return _ends_so(text, _LET_ME)


def _ends_so(text: str, pattern: re.Pattern[str]) -> bool:
    return any(pattern.match(one.replace("’", "'")) for one in sentences(text.strip())[-1:])


def names_step(sentence: str) -> bool:
    """Return whether a `sentence` of an account says what comes next.

    >>> names_step("**Next I will run the load test.**"), names_step("Next:"), names_step("The next release has it.")
    (True, False, False)
    """
    said = sentence.replace("’", "'").rstrip("*_ ")
    return bool(_STEP.match(said)) and not said.endswith(":")


def step_of(one: Paragraph) -> str:
    """Return the sentences at the end of a paragraph that say what comes next, or ""."""
    said = [] if _is_left_alone(one) else sentences(without_emphasis(one.text))
    first = next((at for at, sentence in enumerate(said) if names_step(sentence)), len(said))
    return whole(" ".join(said[first:]))


def _is_left_alone(one: Paragraph) -> bool:
    return one.entry and bool(_LEFT_ALONE.search(one.heading))


def question_of(one: Paragraph, *, alone: bool = False) -> str:
    """Return a paragraph from its first question on, with what it refers to or the way that it offers before it; or "".

    Of a long one the offer and the question are left.

    >>> question_of(Paragraph("It is free. Does that help?", "")), question_of(Paragraph("It is free. Does that help?", ""), alone=True)
    ('It is free. Does that help?', 'Does that help?')
    """
    said = sentences(without_emphasis(one.text))
    first = asked = next((at for at, each in enumerate(said) if _awaits(each)), len(said))
    if asked and asked < len(said) and not alone:
        offers = (at for at in range(max(0, asked - 2), asked) if _OFFERS_WAY.match(said[at]))
        first = next(offers, asked - bool(refers(said[asked])))
    text = " ".join(said[first:])
    if first < asked - 1 and len(text) > LINE_CHARS:
        text = f"{said[first]} … {said[asked]}"
    return whole(text, tail=True)


def refers(question: str) -> bool:
    """Return whether a `question` does not say by itself what it asks."""
    return bool(_REFERS.search(question)) and len(question.split()) <= OPENING_WORDS


def proposes(one: Paragraph) -> bool:
    """Return whether a paragraph is below a heading of options, of open work, or of what is announced."""
    return bool(_OPTION_HEADING.search(one.heading)) or _opens_next(one) or _announced(one)


def _opens_next(one: Paragraph) -> bool:
    """Return whether a paragraph is below a heading of open work; a whole sentence above a list reports."""
    opens = _NEXT_HEADING.search(one.heading)
    return bool(opens) and len(one.heading.split()) <= OPENING_WORDS


def _announced(one: Paragraph) -> bool:
    """Return whether the opening of a list announces what its entries name."""
    return bool(_ANNOUNCES.search(one.heading.replace("’", "'")))


def claims(said: Sequence[Paragraph], room: int) -> list[str]:
    """Return the paragraphs `said` in an account that say most within `room` characters, whole and in their order.

    One that is longer than LINE_CHARS is shown by its first whole sentences.
    """
    rated = []
    asking = closes_asking(said) or offers_choice(said)
    said = blocks([one for one in said if not _WAS_WRONG.match(without_emphasis(one.text))])
    for at, one in enumerate(said):
        plain = without_emphasis(one.text)
        if is_offer(one) or (asking and (OPTION.match(plain) or _RECOMMENDS.match(plain))):
            continue  # one of the options of the question at its end
        text = reported(one, LINE_CHARS)
        if not CODE_SPAN.sub("", text).strip(" .,;-") or not (
            _NAMES.search(text)
            or _DID.match(text)
            or any(len(one.split()) >= NAMELESS_WORDS for one in sentences(text))
        ):
            continue
        if _CHECKED.match(text) and not _RESULT.search(CODE_SPAN.sub("", text)):
            continue  # what was run, without how it came out
        if text and not _TICKED.match(text) and (value := rate(text)) >= LEAST_RATE:
            rated.append((value - at / 50, at, text))
    rated = [one for one in rated if not _OF_TESTS.match(one[2])] or rated
    kept: list[tuple[int, str]] = []
    for _, at, text in sorted(rated, reverse=True):
        if len(text) <= room:
            kept.append((at, text))
            room -= len(text)
    kept += _rest_of_lists(said, kept, room + LIST_CHARS)
    kept += [(at, text) for at, text in _openings(said, {at for at, _ in kept}) if len(text) <= room]
    headings = {said[at].heading for at, _ in kept if said[at].entry}
    # Without what it opens, a line ends where its words do.
    return [
        text if said[at].text.rstrip(":*_ ") in headings else text.rstrip(":") for at, text in sorted(kept)
    ]


def _rest_of_lists(
    said: Sequence[Paragraph], kept: Sequence[tuple[int, str]], room: int
) -> list[tuple[int, str]]:
    """Return the other entries of the lists of which most are `kept`, if they fit: one that is missing would mislead."""
    chosen = {at for at, _ in kept}
    rest: list[tuple[int, str]] = []
    for _, group in groupby(
        range(len(said)), key=lambda at: (said[at].entry, said[at].heading, said[at].lead)
    ):
        places = list(group)
        missing = [at for at in places if at not in chosen]
        if not said[places[0]].entry or len(missing) >= len(places) / 2:
            continue
        texts = [(at, reported(said[at], LINE_CHARS)) for at in missing]
        if sum(len(text) for _, text in texts) <= room:
            room -= sum(len(text) for _, text in texts)
            rest += [(at, text) for at, text in texts if text and not _TICKED.match(text)]
    return rest


def offers_choice(said: Sequence[Paragraph]) -> bool:
    """Return whether an account asks which of several options a person wants."""
    return any(map(asks, said)) and sum(map(is_option, said)) > 1


def is_option(one: Paragraph) -> bool:
    """Return whether an entry of a list or table has the letter or number of an option."""
    return one.entry and bool(OPTION.match(without_emphasis(one.text)))


def _openings(said: Sequence[Paragraph], chosen: Collection[int]) -> Iterator[tuple[int, str]]:
    """Yield the places and texts of the paragraphs that open a list, of which an entry is `chosen`, and say what it shows."""
    headings = {said[at].heading for at in chosen}
    for at, one in enumerate(said):
        opens = not one.entry and one.text.rstrip("*_ ").endswith(":") and one.text.rstrip(":*_ ") in headings
        if not opens or at in chosen or HEADING.fullmatch(CODE_SPAN.sub("x", one.text)):
            continue
        for text in sentences(without_emphasis(one.text).strip())[-1:]:
            if len(text.split()) >= NAMELESS_WORDS and _NAMES.search(text) and not supposes(text):
                yield at, text


def changes(said: Sequence[Paragraph], room: int, *, below_changes: bool = False) -> list[str]:
    """Return what an earlier account says that its work changed, in its order, within `room` characters.

    One that says that all was fixed says in each paragraph how it is now. With `below_changes` an entry below a heading that
    says so ("Two paths fixed:") need not say again that it is a change.
    """
    found: list[str] = []
    least = LEAST_RATE if fixes_all(said) else LEAST_CHANGE
    said = [one for one in said if not is_option(one)] if offers_choice(said) else said
    for one in blocks(said, SHORT_CHARS):
        left = _puts_off(one) or _LIMIT_HEADING.fullmatch(one.heading)
        if left and (text := whole(one.text, SHORT_CHARS)):
            found.append(text)
            continue
        if _DETAIL_HEADING.search(one.heading):
            continue
        is_below = below_changes and _CHANGED.search(one.heading)
        for text in _pieces(one, SHORT_CHARS):
            if any(pattern.match(text) for pattern in (_TICKED, _WAS_WRONG, _OF_TESTS, _CHECKED)):
                continue
            if _NEXT.search(text) or _OF_TREE.search(text):
                continue
            if rate_change(text) >= (LEAST_RATE if is_below else least):
                found.append(text)
            is_below = None  # the heading is about the opening of the paragraph
    best: list[str] = []
    for text in sorted(found, key=rate_change, reverse=True):
        if len(text) <= room:
            best.append(text)
            room -= len(text)
    return [text for text in found if text in best]


def _pieces(one: Paragraph, most: int) -> Iterator[str]:
    """Yield what a paragraph reports in pieces of at most `most` characters: of a long one, the end may say what was chosen."""
    said, at = sentences(without_emphasis(one.text)), 0
    while at < len(said):
        piece = reported(one._replace(text=" ".join(said[at : at + PIECE_SENTENCES])), most)
        yield from filter(None, [piece])
        at += len(sentences(piece)) or 1


def names_defect(text: str) -> bool:
    """Return whether `text` says what is wrong, as a finding of a review does.

    >>> names_defect("[P1] Links are followed."), names_defect("The check is insufficient."), names_defect("Added a check.")
    (True, True, False)
    """
    return bool(_DEFECT.search(without_emphasis(text)))


def passes_soon(text: str) -> bool:
    """Return whether `text` says what is running, or when something is expected: it holds only until something else happens.

    >>> passes_soon("Still waiting for the full suite."), passes_soon("ETA: it should finish at 12:30."), passes_soon("It waits for the lock.")
    (True, True, False)
    """
    return bool(_PASSES_SOON.search(text.replace("’", "'")))


def lasting(one: Paragraph) -> Paragraph:
    """Return a paragraph without what it says at its start or end of a branch that was ready then; its text may be empty.

    >>> lasting(Paragraph("Added `a.py`. The PR is ready for review.", "")).text, lasting(Paragraph("The branch is clean.", "")).text
    ('Added `a.py`.', '')
    >>> lasting(Paragraph("The branch is ready except for the docs.", "")).text
    'The branch is ready except for the docs.'
    """
    if not _WAS_READY.search(one.text):  # nearly always: the sentences need not be found
        return one
    said = sentences(one.text)
    start, end = 0, len(said)
    while start < end and _WAS_READY.fullmatch(said[start]):
        start += 1
    while start < end and _WAS_READY.fullmatch(said[end - 1]):
        end -= 1
    return one if end - start == len(said) else one._replace(text=" ".join(said[start:end]))


def fixes_all(said: Sequence[Paragraph]) -> bool:
    """Return whether an account says that all that was found, or named in it, is fixed."""
    return any(
        _FIXES_ALL.search(plain) and not _NOT_ALL.search(plain)
        for one in said
        for plain in sentences(without_emphasis(one.text).replace("’", "'"))
    )


def recommended(said: Sequence[Paragraph]) -> list[str]:
    r"""Return the sentences in which an account recommends something; a person who goes on without a word against it takes it.

    >>> recommended(paragraphs("Both work. I'd go with the first, because it has no state.\n\nShould I start?"))
    ["I'd go with the first, because it has no state."]
    """
    every = dict.fromkeys(
        one for each in said for one in (each.heading, *sentences(without_emphasis(each.text)))
    )
    return [one.rstrip(":") for one in every if _recommends(one.replace("’", "'")) and len(one) <= LINE_CHARS]


def _recommends(said: str) -> bool:
    return (
        bool(_RECOMMENDS.search(said))
        and not said.rstrip().endswith("?")
        and len(said.split()) >= NAMELESS_WORDS
    )


def _puts_off(one: Paragraph) -> bool:
    if one.entry and _BREAKS_OFF.search(one.heading):
        return False
    return bool(_PUT_OFF.search(CODE_SPAN.sub("``", one.text)))


def left_open(said: Sequence[Paragraph]) -> list[str]:
    """Return what an account says was put off, or has no test; the first few."""
    left = (whole(one.text, SHORT_CHARS) for one in said if _puts_off(one))
    return [text for text in left if text][:MOST_LEFT]


def reported(one: Paragraph, most: int) -> str:
    """Return the sentences at the start of a paragraph that report, rather than ask, offer, suppose or announce.

    >>> [reported(Paragraph(one, ""), 200) for one in ("I'd move it.", "Should I move it?", "Moved `x` to `a.py`.")]
    ['', '', 'Moved `x` to `a.py`.']
    """
    if proposes(one):
        return ""
    if one.entry and _BREAKS_OFF.search(one.heading):
        return ""
    if not one.entry and one.text[:1].islower():
        return ""  # the rest of a sentence before a block of code
    plain = without_emphasis(one.text)
    if _ONLY_PLACE.fullmatch(plain) or leads_in(one.text):
        return ""
    kept: list[str] = []
    for sentence in _that_fit(plain, most):
        too_long = sum(map(len, kept)) + len(kept) + len(sentence) > most
        if too_long or sentence.rstrip("*_ )").endswith("?") or _SUPPOSES.search(sentence.replace("’", "'")):
            break
        if kept and names_step(sentence):
            break
        kept.append(sentence)
    if len(kept) > 1 and kept[-1].endswith(":"):
        # Where only the opening of the list names something ("Yes, fixed. I changed `a` in two places:"), it says more.
        kept = kept[:-1] if _NAMES.search(" ".join(kept[:-1])) or not _NAMES.search(kept[-1]) else kept[-1:]
    text = " ".join(kept)
    if text.endswith(":") and (len(text.split()) < OPENING_WORDS or not _CHANGED.search(text) or "?" in text):
        return ""  # the opening of a list says nothing without it
    return text if len(text.split()) >= LEAST_WORDS and text in " ".join(plain.split()) else ""


def _that_fit(text: str, most: int) -> list[str]:
    """Return the sentences of `text`; of a first one that is longer than `most` the first clauses, which end with ";"."""
    said = sentences(text)
    if not said or len(said[0]) <= most or ";" not in said[0][:most]:
        return said
    return [said[0][: said[0].rindex(";", 0, most)]]


def rate(text: str) -> float:
    """Return how much a paragraph says: names, changes and proofs count, words that lean on others do not."""
    names = min(len(_NAMES.findall(text)), 6) / 2
    changed = min(len(_CHANGED.findall(text)), 4)
    proven = min(len(_PROVEN.findall(text)), 3)
    return names + changed + proven - (2 if _LEANS.match(_EXCLAIMS.sub("", text)) else 0)


def rate_change(text: str) -> float:
    """Return how much a paragraph says about what was changed, and why."""
    names = min(len(_NAMES.findall(text)), 4) / 2
    changed = min(len(_CHANGED.findall(text)), 4)
    return names + changed * 1.2 - (2 if _LEANS.match(_EXCLAIMS.sub("", text)) else 0)


def whole(text: str, most: int = LINE_CHARS, *, tail: bool = False) -> str:
    """Return `text` if it is short, else its first whole sentences, or with `tail` its last; "" if none is short enough."""
    text = without_emphasis(text).strip()
    if len(text) <= most:
        return text
    said = sentences(text) if tail else _that_fit(text, most)
    kept: list[str] = []
    for one in reversed(said) if tail else said:
        if sum(map(len, kept)) + len(kept) + len(one) > most:
            break
        kept.append(one)
    return " ".join(reversed(kept) if tail else kept)
