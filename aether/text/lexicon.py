"""Lexicon: which words negate, oppose, or mean the same, for `gist`.

Small on purpose: function words of the languages that notes are mostly written in, and the verbs and
adjectives that instructions are made of. A word that is missing makes two statements different, which
loses a repetition; a wrong one would merge statements that differ.
"""

from __future__ import annotations

import re

from aether.text.patterns import lazy

NOT = frozenset(
    "not never no none nothing nobody neither nor cannot cant dont doesnt wont nicht kein keine keinen keiner "
    "keinem nie niemals pas jamais aucun aucune nunca jamás nada ningún ninguna non mai não nao нет не нельзя "
    "никогда ни nie nigdy nein niet geen nooit inte aldrig ingen ikke değil asla لا لم لن ليس לא אין नहीं मत "
    "không đừng chớ tidak jangan 않는다 않습니다 않는 마세요 마라 말것 없다".split()
)
# These can also reject a noun ("tabs, not spaces").
NOUN_NOT = frozenset("not nicht pas non no não не niet inte ikke không".split())
WITHOUT = frozenset("without ohne sans sin senza sem без bez zonder utan 없이".split())
BUT = frozenset("but however yet whereas aber mais pero ma но maar men".split())
BECAUSE = frozenset("because since weil denn da parce car porque perché потому omdat eftersom".split())
PREFER = frozenset(
    "prefer prefers preferred choose chose chosen pick picked favor favour favored favoured select".split()
)
# Words after which "not" negates the clause; elsewhere it rejects the noun behind it ("spaces, not tabs").
BEFORE_NOT = frozenset(
    "do does did is are was were be been being am must should shall will would can could may might has have had "
    "to please we it they you i and or need ought".split()
)

# Carry little: any two instructions share them.
LIGHT = frozenset(
    "use make do set get put let keep go ensur need want chang updat add one new now current alway ever everi each "
    "all any onli still also must should requir have system way thing type kind good run work instead prefer choos favor".split()
)
# Carry nothing: how a statement is introduced, not what it says.
EMPTY = frozenset(
    "decid decis agre note rememb rememb remember pleas team user must should alway ever need ought ensur sure want "
    "everi each all any anywher as well same actual realli simpli howev therefor thus hence conclus rule polici der within via per onto upon across among while until such like please die das den dem des "
    "ein eine einen le la les un une el los las il lo o os as para pour für per и в на для".split()
)

# Opposites: stem -> (the stem it is folded into, -1 where it turns the meaning around).
_OPPOSITE_PAIRS = """
enable/activate/switchon : disable/deactivate/switchoff
allow/permit/accept/approve : forbid/prohibit/ban/disallow/deny/block/reject/refuse
pass/succeed/success/successful/successfully : fail/failure/break/broke/broken
keep/kept/retain/preserve : remove/delete/drop/discard/erase
include : exclude/omit/skip/ignore
increase/raise/grow : decrease/reduce/lower/shrink
start/begin : stop/halt
open : close
show/display : hide/conceal
lock : unlock
fast/quick/quickly : slow/slowly
safe/safely : unsafe/unsafely
secure/securely : insecure/insecurely
stable : unstable
valid : invalid
required/mandatory/compulsory : optional
possible : impossible
public : private
mutable : immutable
sync/synchronous/synchronously : async/asynchronous/asynchronously
online : offline
present/exist : absent/missing
true : false
automatic/automatically : manual/manually
strict/strictly : lenient/leniently
reliable/reliably : unreliable/flaky/flakily
more : less/fewer
maximum/max : minimum/min
first : last
like/love : dislike/hate
erlauben/erlaubt : verboten/verbieten
aktivieren/aktiviert : deaktivieren/deaktiviert
activer/activez : désactiver/désactivez
activar/activa : desactivar/desactiva
включить/включай/включайте : отключить/отключай/отключайте/выключить
"""
# These turn a clause around and leave no word of their own behind.
TURNS = frozenset(
    "avoid prevent non vermeide vermeiden évite évitez éviter evita evitar evite избегай избегайте".split()
)

_EQUAL = """
use/utilize/employ/adopt/leverage
choose/chose/chosen/select/pick/opt
verify/check/validate
fix/repair/resolve/solve
complete/finish/done
create/generate
store/save/persist
write/written/wrote
fetch/retrieve
send/sent
run/ran/execute
build/built
make/made
find/found
lose/lost
throw/threw/thrown/raise
take/took/taken
give/gave/given
hold/held
know/known/knew
freeze/froze/frozen
config/configuration/configure
repo/repository
database/db
auth/authentication/authenticate
directory/dir/folder
documentation/docs/doc
environment/env
parameter/param/argument
function/func
limit/cap/restrict
big/large
small/tiny
postgres/postgresql
javascript/js
typescript/ts
python/py
kubernetes/k8s
twice/2x
"""

PHRASES = tuple(
    (lazy(pattern, re.IGNORECASE), written)
    for pattern, written in (
        (r"\b(?:turn|switch)(?:ed|es|ing|s)?[ -]off\b", "disable"),
        (r"\b(?:turn|switch)(?:ed|es|ing|s)?[ -]on\b", "enable"),
        (r"\b(?:instead of|rather than|in favou?r of not|anstatt|statt|au lieu de|en lugar de|en vez de|вместо)\b", "⊖"),
        (r"\b(?:in order (?:not )?to|so that|so as to|to (?:avoid|prevent|not)|due to|thanks to|for the sake of|damit|pour éviter|чтобы)\b", "∵"),
        (r"\b(?:no longer|not any ?more)\b", "never"),
        (r"\bnot only\b", " "),
        (r"\b(?:stays?|remains?) (?:exactly |just )?as (?:it|they) (?:is|are|was|were)\b", "never changes"),
        (r"\b(?:has|have|needs?) to pass\b|\bmust pass\b", "must run"),
        (r"\bstick(?:s|ing)? (?:to|with)\b", "prefer"),
        (r"\bwhole (?=cents?\b|numbers?\b|euros?\b)", "integer "),
        (r", (?:but )?please (?=no\b|not\b)", ", "),
        (r"\b(?:under no circumstances|by no means|in no case|at no time)\b", "never"),
        (r"\b(?:(?:it (?:has been|is|was) |we(?:'ve| have)? |they |the team )?(?:decided|agreed)(?: to| that| on)?|decision|entscheidung|décision|decisión|решение|决定|決定)\s*:", " "),
        (r"\bgo(?:es|ing)? with\b|\bsettled? on\b|\bopt(?:ed)? for\b", "use"),
        (r"\b(?:fall|fell|falls) back\b", "fallback"),
        (r"\btime[- ]?outs?\b|\btimed out\b", "timeout"),
        (r"因为|由于|以便|为了|ので|ため", "∵"),
        (r"代替|而不是|ではなく|の代わりに", "⊖"),
        (r"禁止|不允许|不要|不得|不能|不可|不应|切勿|请勿|没有|避免|不|没|勿|别|してはいけない|してはならない|しないでください|しないで|しない|しません|ません|ではない|ない|ไม่|อย่า|ห้าม", "¬"),
        (r"하지\s*(?:마|않|말)\S*", " ¬ "),
        (r"(?:하세요|하십시오|합니다|해야 한다|한다|하기)(?=\s|[.,!]|$)", " "),
        (r"(?<=\d)\s*(?:秒鐘|秒钟|秒間|秒|초)", " seconds "),
        (r"(?<=\d)\s*(?:分钟|分鐘|分間|分|분)", " minutes "),
        (r"(?<=\d)\s*(?:小时|小時|時間|시간)", " hours "),
    )
)  # fmt: skip

# Units, scaled so that "1 minute" is "60 seconds"; 1 for what merely counts.
UNITS = {
    **dict.fromkeys("ms msec millisecond milliseconds".split(), 0.001),
    **dict.fromkeys(
        "s sec secs second seconds sekunde sekunden secondes segundos секунд times x".split(), 1.0
    ),
    **dict.fromkeys("min mins minute minutes minuten minutos минут".split(), 60.0),
    **dict.fromkeys("h hr hrs hour hours stunden heures horas часов".split(), 3600.0),
    **dict.fromkeys("day days tage jours días дней".split(), 86_400.0),
    **dict.fromkeys("kb kib k".split(), 1e3),
    **dict.fromkeys("mb mib".split(), 1e6),
    **dict.fromkeys("gb gib".split(), 1e9),
    **dict.fromkeys("percent nd rd th st".split(), 1.0),
}
NUMBER_WORDS = {
    word: number
    for number, word in enumerate("zero - two three four five six seven eight nine ten eleven twelve".split())
    if word != "-"
} | {
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "hundred": 100,
    "twice": 2,
}
# A number behind one of these is a name: phase 1 and phase 2 are two things, not two values of one.
LABELS = frozenset(
    "phase step issue task ticket pr line section chapter rfc item bug story sprint milestone level stage part "
    "option test case day week".split()
)


def _groups(table: str) -> list[list[str]]:
    return [line.split("/") for line in table.split("\n") if line]


EQUAL = {word: group[0] for group in _groups(_EQUAL) for word in group}
OPPOSITES = {
    word.strip(): (side.split("/")[0].strip() if turn > 0 else line.split(":")[0].split("/")[0].strip(), turn)
    for line in _OPPOSITE_PAIRS.split("\n")
    if line
    for side, turn in zip(line.split(":"), (1, -1), strict=True)
    for word in side.split("/")
}
