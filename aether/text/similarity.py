"""Similarity: whether two statements say the same thing, or opposite things, without a model.

A statement is reduced to its *meaning*: the stems of its content words, each with the sign of its clause, and its numbers and
names. Words match by equality or, for typing errors and inflections, by a ratio of `rapidfuzz`.

    topic = shared / (shared + (only_a + only_b) / 2 + min(only_a, only_b))

The last term separates a word that was *replaced* (another thing) from one that was *added* (more detail). Statements are
the same if their topics are and no sign, number or name differs, so that "use X" never equals "do not use X", nor "timeout 30"
"timeout 60". They contradict each other if their topics are close and exactly one of sign and number differs. Symmetric and
reflexive. "Never", "avoid" and "disable" turn the sign of a clause, two turns cancel; numbers are scaled by their unit.

The word lists at the end are short on purpose: a missing word makes two statements different, which loses a repetition; a
wrong one would merge statements that differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz import fuzz, process

from aether.text.regex import lazy
from aether.text.words import STOPWORDS, UNSPACED, stem, words

# Tuned on the even half of tests/text/similarity_pairs.json, reported on the odd half.
SAME_AT = 0.72
# Opposites share less: "enable" and "remove" are words of their own beside the topic.
CONTRADICTS_AT = 0.5
# Share of the common words that must have the opposite sign; below it only an aside is negated.
OPPOSED_SHARE = 0.4
# Share of a statement that a longer one must contain to say the same among other things, how many times longer it may be,
# and how many words the statement needs: a long text contains any few words by chance.
SUPPORT_AT, SUPPORT_SPAN, LEAST_SUPPORT_WORDS = 0.85, 3, 2
# Ratio of two words that count as one: "rewritten" and "rewriten", not "encode" and "decode".
WORD_RATIO = 88
# Most pairs compared when all statements of an index are compared with all: about a second.
MOST_PAIRS = 200_000
# Score of a pair whose topics are equal but whose signs, numbers or names are not.
DISAGREEMENT = 0.5
# Longer texts are not cached: 8,192 of them could hold gigabytes.
CACHED_CHARS = 1_000


class Meaning(NamedTuple):
    """The comparable parts of a statement."""

    signs: dict[str, int]
    """Each stem with the sign of its clause."""
    numbers: frozenset[str]
    names: frozenset[str]
    question: bool
    plain: str
    """The case-folded text: equal if only case, spacing and punctuation at the ends differ."""
    rejected: frozenset[str]
    """Stems of an option that is rejected for another one: "tabs, not spaces"."""
    condition: frozenset[str]
    """Stems of what must not be missing: "never push without a review"."""


class Index(NamedTuple):
    """Statements prepared by `index` for `nearest` and the other searches."""

    meanings: list[Meaning]
    postings: dict[str, list[int]]
    """Positions of the statements with each stem."""


class Near(NamedTuple):
    """A statement of an index that is similar to the query."""

    at: int
    similarity: float


def similarity(a: str, b: str) -> float:
    """Return how much `a` and `b` say the same, from 0 to 1; at least ``SAME_AT`` counts as the same.

    >>> similarity("Use atomic writes for state files", "State files must be written atomically") > 0.9
    True
    """
    return _similarity(meaning(a), meaning(b))


def same(a: str, b: str) -> bool:
    """Return whether `a` and `b` say the same thing.

    >>> same("timeout 30", "timeout 60"), same("Retry three times", "retry 3 times")
    (False, True)
    """
    return similarity(a, b) >= SAME_AT


def contradicts(a: str, b: str) -> bool:
    """Return whether `a` and `b` are about one thing and cannot both hold.

    >>> contradicts("Use tabs", "Never use tabs"), contradicts("Use tabs", "Use locks")
    (True, False)
    """
    return _contradict(meaning(a), meaning(b))


def index(statements: Iterable[str]) -> Index:
    """Return `statements` as an index for `nearest` and the other searches."""
    meanings = [meaning(statement) for statement in statements]
    postings: dict[str, list[int]] = defaultdict(list)
    for position, entry in enumerate(meanings):
        for term in entry.signs.keys() | entry.rejected or (entry.plain,):
            postings[term].append(position)
    return Index(meanings, dict(postings))


def nearest(statement: str, among: Index | Sequence[str], *, at_least: float = SAME_AT) -> list[Near]:
    """Return the statements in `among` with a similarity of `at_least`, the most similar first.

    Only statements that share one of the rarest stems are compared.
    """
    among = among if isinstance(among, Index) else index(among)
    query = meaning(statement)
    scores = [
        Near(position, _similarity(query, among.meanings[position]))
        for position in _candidates(query, among, at_least / (2 - at_least))
    ]
    return sorted(
        (near for near in scores if near.similarity >= at_least), key=lambda near: (-near.similarity, near.at)
    )


def opposites(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of the statements that contradict `statement`, in order."""
    among = among if isinstance(among, Index) else index(among)
    query = meaning(statement)
    candidates = _candidates(query, among, CONTRADICTS_AT / (2 - CONTRADICTS_AT))
    return sorted(position for position in candidates if _contradict(query, among.meanings[position]))


def supporting(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of the statements that say `statement`, alone or among other things.

    >>> supporting("Amounts are integer cents", ["VAT amounts are integer cents too, no floats", "Amounts are floats"])
    [0]
    """
    among = among if isinstance(among, Index) else index(among)
    query = meaning(statement)
    longer = {
        position
        for position in _candidates(query, among, SUPPORT_AT)
        if _supports(among.meanings[position], query)
    }
    return sorted(longer | {near.at for near in nearest(statement, among)})


def implied_by(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of what `statement` says, alone or among other things, the most similar first."""
    among = among if isinstance(among, Index) else index(among)
    query = meaning(statement)
    equal = [near.at for near in nearest(statement, among)]
    # A shorter statement may share any of the words.
    shorter = {
        position
        for position in _candidates(query, among, 0)
        if position not in equal and _supports(query, among.meanings[position])
    }
    return equal + sorted(shorter, key=lambda position: (-len(among.meanings[position].signs), position))


def _candidates(query: Meaning, among: Index, share: float) -> set[int]:
    """Return positions with one of the rarest stems of `query`, of which all others together are less than `share`."""
    terms = sorted(query.signs or (query.plain,), key=lambda term: (len(among.postings.get(term, ())), term))
    most = max(1, MOST_PAIRS // max(1, len(among.meanings)))
    positions: set[int] = set()
    for place, term in enumerate(terms):
        if len(terms) - place < share * len(terms) or len(positions) >= most:
            break
        positions.update(among.postings.get(term, ())[: most - len(positions)])
    return positions


def _similarity(a: Meaning, b: Meaning) -> float:
    if a.plain == b.plain:
        return 1.0
    topic = _topic(a, b)
    agree = a.numbers == b.numbers and a.question == b.question and not _other_condition(a, b)
    return topic if agree and not _other_names(a, b) and not _opposed(a, b) else topic * DISAGREEMENT


def _contradict(a: Meaning, b: Meaning) -> bool:
    if a.plain == b.plain or a.question or b.question or _other_names(a, b) or _other_condition(a, b):
        return False
    if a.rejected & b.signs.keys() and b.rejected & a.signs.keys():
        return True
    if _topic(a, b) < CONTRADICTS_AT:
        return False
    # The port of the API and that of the site are two values.
    replaced = bool(a.signs.keys() - b.signs.keys()) and bool(b.signs.keys() - a.signs.keys())
    other_number = bool(a.numbers - b.numbers) and bool(b.numbers - a.numbers) and not replaced
    # Two prohibitions are not opposites, though "never delete" reads as "keep"; "not 30" and "60" agree.
    opposed = _opposed(a, b) and not (_FORBIDS.match(a.plain) and _FORBIDS.match(b.plain))
    return opposed != other_number


def _topic(a: Meaning, b: Meaning) -> float:
    only_a, only_b = a.signs.keys() - b.signs.keys(), b.signs.keys() - a.signs.keys()
    shared = len(a.signs) - len(only_a)
    if not shared:
        return 0.0
    likewise = len(_likewise(only_a, only_b))
    shared, extra_a, extra_b = shared + likewise, len(only_a) - likewise, len(only_b) - likewise
    return shared / (shared + (extra_a + extra_b) / 2 + min(extra_a, extra_b))


def _likewise(only_a: Iterable[str], only_b: Iterable[str]) -> set[str]:
    """Return the words of one statement that are a word of the other with another ending or a typing error."""
    shorter, longer = sorted((sorted(only_a), sorted(only_b)), key=len)
    matched: set[str] = set()
    for word in shorter:
        free = [other for other in longer if other not in matched]
        match = process.extractOne(word, free, scorer=fuzz.ratio, score_cutoff=WORD_RATIO)
        if match and len(word) > 4:
            matched.add(match[0])
    return matched


def _supports(longer: Meaning, a: Meaning) -> bool:
    """Return whether `longer` says `a` among a few other things."""
    shared = a.signs.keys() & longer.signs.keys()
    return (
        len(a.signs) >= LEAST_SUPPORT_WORDS
        and len(longer.signs) <= SUPPORT_SPAN * len(a.signs)
        and len(shared) >= SUPPORT_AT * len(a.signs)
        and not (a.question or longer.question or _opposed(a, longer))
        and a.numbers <= longer.numbers
        and a.names <= longer.names
        and longer.condition <= a.signs.keys()
    )


def _opposed(a: Meaning, b: Meaning) -> bool:
    shared = a.signs.keys() & b.signs.keys()
    turned = sum(a.signs[term] != b.signs[term] for term in shared)
    return turned > 0 and turned >= OPPOSED_SHARE * len(shared)


def _other_names(a: Meaning, b: Meaning) -> bool:
    return bool(a.names - b.names) and bool(b.names - a.names)


def _other_condition(a: Meaning, b: Meaning) -> bool:
    """Return whether one statement depends on something that the other does not mention."""
    return any(
        entry.condition and entry.condition.isdisjoint(other.signs) for entry, other in ((a, b), (b, a))
    )


# "One" is an article too.
NUMBER_WORDS = {
    **dict(zip("two three four five six seven eight nine ten eleven twelve".split(), map(str, range(2, 13)), strict=True)),
    "zero": "0", "fifteen": "15", "twenty": "20", "thirty": "30", "hundred": "100", "twice": "2",
}  # fmt: skip
_SCAN = lazy(
    r"""(?P<name>\b[a-z][a-z0-9+.-]{1,20}://[^\s<>"'`)\]]+
        |\b\d{4}-\d\d-\d\d\b
        |(?<![^\s(\[,;:])--?[a-z][\w-]*
        |\#\d+\b
        |\b(?:phase|step|issue|task|ticket|pr|line|section|version|node|shard|host|server|replica|zone)\s\d+\b
        |\b(?:[a-z]+-){0,3}(?:eu|us|ap|ca|sa|me|af|(?:north|south)?(?:east|west)|north|south|central|node|host|server|shard|zone)-\d+\b
        |\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b
        |\b[a-z](?:\+\+|\#)
        |\bv?\d+(?:\.\d+){2,}(?:[-+]?[a-z]\w*)?\b
        |(?<![\w.@*/-])(?:(?:~|\.{1,2})?/(?:[\w.@*-]+/?)+|[\w.@*-]+(?:/[\w.@*-]+)*/[\w@*-]*\.[a-z]\w*)
        |\b[^\W\d][\w-]{0,80}(?:\.[^\W\d]\w{0,80})+\b
        |\b(?=\w*[a-z])(?=\w*_)\w+\b|\b(?!v\d+\b)[a-z]+\d\w*\b|(?-i:\b[a-z]+[A-Z]\w*)
        |(?<!limit\s)(?<!budget\s)(?<!size\s)\b(?:of|in|since|until)\s(?:19|20)\d\d\b)
    |(?P<number>(?:(?<![\w)\]])-)?(?<![^\W\d_])v?\d+(?:[,_]\d{3}\b)*(?:\.\d+)?|\b(?:NUMBER_WORDS)\b)
        (?:\s?(?P<unit>%|[^\W\d_]+))?
    |(?P<stop>[.;!?\n。;!?]+|\bbut\b|\baber\b)
    |(?P<word>[^\W\d_](?:[\w'’]*\w)?)""".replace("NUMBER_WORDS", "|".join(NUMBER_WORDS)),
    re.VERBOSE | re.IGNORECASE,
)
_VERSION = lazy(r"^v(?=\d)")
_UNSPACED_RUN = lazy(f"([{UNSPACED}]+)")
_PREFERRED = lazy(
    r"\bprefer(?:s|red)?\s+(?P<chosen>.*?)\s+(?:over|to)\s+(?P<rejected>[^.;,]*)", re.IGNORECASE
)
_REJECTED = lazy(
    r"(?:\b(?:instead of|rather than|anstatt|statt|au lieu de|en lugar de|en vez de|вместо)|,\s*(?:and |but |please )*(?:not?|nicht|non|pas|не))"
    r"\s+(?P<rejected>[^.;,]*)",
    re.IGNORECASE,
)
_FORBIDS = lazy(r"(?:please )?(?:never|do not|don't|must not|no)\b")
_REASON = lazy(
    r"\b(?:because|since|so that|in order to|due to|weil|damit|parce que|porque|потому)\b[^.;,\n]*,?",
    re.IGNORECASE,
)


def meaning(statement: str) -> Meaning:
    """Return the meaning of `statement`; linear in its length.

    >>> parts = meaning("Never use more than 4 workers")
    >>> parts.signs["worker"], parts.numbers
    (-1, frozenset({'4'}))
    """
    return _meaning(statement) if len(statement) <= CACHED_CHARS else _meaning.__wrapped__(statement)


@lru_cache(maxsize=8_192)
def _meaning(statement: str) -> Meaning:
    text = unicodedata.normalize("NFKC", statement).replace("’", "'")
    plain = " ".join(text.casefold().split()).strip(" .!;:,") or text
    question = text.rstrip(" \"')*_`").endswith("?")
    for pattern, replacement in PHRASES:
        text = pattern.sub(replacement, text)
    rejected: set[str] = set()

    def reject(match: re.Match[str]) -> str:
        rejected.update(_term(word)[0] for word in words(match["rejected"]))
        return f" {match.groupdict().get('chosen', '')} "

    text = _UNSPACED_RUN.sub(r" \1 ", text.replace("`", " "))
    text = _REASON.sub(" ", _REJECTED.sub(reject, _PREFERRED.sub(reject, text)))
    tokens = [*_tokens(text)]
    signs: dict[str, int] = {}
    condition: set[str] = set()
    for clause in _clauses(tokens):
        # "Never push without a review": with two turns, what comes after "without" must not be missing.
        terms = [(term, without) for term, without, _ in clause if term]
        turns = sum(turn < 0 for _, _, turn in clause)
        for term, _ in terms:
            signs.setdefault(term, -1 if turns % 2 else 1)
        condition.update(term for term, without in terms if without and turns > 1)
    numbers = frozenset(_scaled(*text.split()) for kind, text in tokens if kind == "number")
    names = frozenset(_VERSION.sub("", text.casefold()) for kind, text in tokens if kind == "name")
    return Meaning(
        signs, numbers, names, question, plain, frozenset(rejected - signs.keys()), frozenset(condition)
    )


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each token: name, number with its unit, stop or word."""
    for match in _SCAN.finditer(text):
        kind = next(name for name in ("name", "number", "stop", "word") if match[name])
        value, unit = match[kind], (match["unit"] or "").casefold()
        if kind == "number":
            number = NUMBER_WORDS.get(value.casefold(), value.lstrip("v"))
            yield kind, f"{number} {unit if unit in UNITS else 's'}"
            if unit not in UNITS:
                yield "word", unit
        else:
            yield kind, value if kind == "name" else value.casefold()


def _clauses(tokens: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, bool, int]]]:
    """Yield the terms of each clause: the term, whether it comes after "without", and -1 if it turns the clause."""
    clause: list[tuple[str, bool, int]] = []
    without = False
    for kind, text in tokens:
        if kind == "stop":
            yield clause
            clause, without = [], False
        elif kind == "name":
            clause += [(stem(piece), without, 1) for piece in words(text)]
        elif text in NOT or text.endswith("n't") or text in WITHOUT:
            without = without or text in WITHOUT
            clause.append(("", without, -1))
        elif kind == "word":
            terms = [(word, *_term(word)) for word in words(text)]
            clause += [("" if word in STOPWORDS else term, without, turn) for word, term, turn in terms]
    yield clause


@lru_cache(maxsize=100_000)
def _term(word: str) -> tuple[str, int]:
    """Return the term by which `word` is compared, and -1 if the word turns its clause, else 1; a weak word has no term."""
    if word in TURNS:
        return "", -1
    root = stem(re.sub("(?<=.{3})is(?=e[ds]?$|ation)", "iz", word))
    tables = _tables()
    head, turn = tables.opposites.get(root) or tables.opposites.get(tables.equal.get(root, root), ("", 1))
    term = head or tables.equal.get(root, root)
    return ("" if term in tables.weak else term), turn


def _scaled(number: str, unit: str) -> str:
    """Return `number` times its unit; as text, because long ids are numbers too and may not be rounded."""
    plain = number.replace(",", "").replace("_", "")
    return plain if len(plain) > 15 else f"{float(plain) * UNITS.get(unit, 1.0):.15g}"


class _Tables(NamedTuple):
    """The word lists by stems."""

    equal: dict[str, str]
    opposites: dict[str, tuple[str, int]]
    weak: frozenset[str]


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    # Stemmed on first use: the stemmer is an import that not every caller pays for.
    equal = {stem(word): stem(group.split("/")[0]) for group in EQUAL.split() for word in group.split("/")}
    opposites = {}
    for pair in OPPOSITES.replace("\n", "|").strip("|").split("|"):
        for side, turn in zip(pair.split(":"), (1, -1), strict=True):
            for word in side.strip().split("/"):
                opposites[stem(word)] = (stem(pair.split("/")[0].split(":")[0].strip()), turn)
    return _Tables(equal, opposites, frozenset(map(stem, WEAK.split())))


NOT = frozenset(
    "not never no none nothing nobody neither nor cannot cant dont doesnt wont nicht kein keine keinen keiner "
    "keinem nie niemals pas jamais aucun aucune nunca jamás nada ningún ninguna non mai não nao нет не нельзя никогда "
    "ни nigdy nein niet geen nooit inte aldrig ingen ikke değil لا لم لن ليس לא אין नहीं मत không đừng tidak jangan 않습니다 마세요 없다".split()
)
WITHOUT = frozenset("without ohne sans sin senza sem без bez zonder utan 없이".split())
# These turn a clause and are not terms themselves.
TURNS = frozenset(
    "avoid prevent non vermeide vermeiden évite évitez éviter evita evitar evite избегай избегайте".split()
)

# Any two instructions share these.
WEAK = (
    "use make do set get put let keep go ensure need want change update add one new now current always ever every each all "
    "any only still also must should require have way thing instead prefer choose decide decision agree note remember "
    "please team user ought sure same very such policy die das den dem des ein eine einen le la les un une el los las il "
    "lo o os as para pour für per и в на для not"
)

# Words with one meaning : words with the opposite one; all count as the first word.
OPPOSITES = """
enable/activate : disable/deactivate | allow/permit/accept/approve : forbid/prohibit/ban/disallow/deny/block/reject/refuse
pass/succeed/success/successful : fail/failure/break/broke/broken | retain/kept/preserve : remove/delete/drop/discard/erase
include : exclude/omit/skip/ignore | increase/raise/grow : decrease/reduce/lower/shrink | start/begin : stop/halt
open : close | show/display : hide/conceal | lock : unlock | fast/quick : slow | safe : unsafe | secure : insecure
stable : unstable | valid : invalid | mandatory/required/compulsory : optional | possible : impossible | public : private
mutable : immutable | sync/synchronous : async/asynchronous | online : offline | present/exist : absent/missing/lack
true : false | automatic/automatically : manual/manually | strict : lenient | reliable : unreliable/flaky
more : less/fewer | maximum/max : minimum/min | first : last | like/love : dislike/hate | aktivieren : deaktivieren
activer : désactiver | activar : desactivar | включить/включай : отключить/отключай/выключить
"""

EQUAL = """
use/utilize/employ/adopt/leverage choose/chose/chosen/select/pick/opt verify/check/validate fix/repair/resolve/solve
complete/finish/done create/generate store/save/persist write/written/wrote rewrite/rewritten fetch/retrieve send/sent
run/ran/execute build/built find/found lose/lost throw/threw/thrown/raise take/took/taken hold/held know/known/knew
config/configuration/configure repo/repository database/db auth/authentication/authenticate directory/dir/folder
documentation/docs/doc environment/env parameter/param/argument function/func limit/cap/restrict big/large small/tiny
postgres/postgresql javascript/js typescript/ts python/py kubernetes/k8s integer/whole
"""

PHRASES = tuple(
    (lazy(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\b(?:turn|switch)(?:ed|es|ing|s)?[ -]off\b", "disable"),
        (r"\b(?:turn|switch)(?:ed|es|ing|s)?[ -]on\b", "enable"),
        (r"\b(?:no longer|not any ?more|under no circumstances|by no means)\b", "never"),
        (r"\bnot only\b", " "),
        (r"\b(?:stays?|remains?) as (?:it|they) (?:is|are)\b", "never changes"),
        (r"\b(?:has|have|needs?) to pass\b|\bmust pass\b", "must run"),
        (r"\bgo(?:es|ing)? with\b|\bsettled? on\b|\bopt(?:ed)? for\b", "use"),
        (r"\b(fall|fell|falls) back\b", "fallback"),
        (r"\btime[- ]?outs?\b|\btimed out\b", "timeout"),
        (r"禁止|不允许|不要|不得|不能|不可|不应|切勿|请勿|没有|避免|不|没|勿|别", " never "),
        (r"してはいけない|してはならない|しないで(?:ください)?|しない|しません|ません|ではない|ない|ไม่|อย่า|ห้าม", " never "),
        (r"하지\s*(?:마|않|말)\S*", " never "),
        (r"(?:하세요|하십시오|합니다|해야 한다|한다|하기)(?=\s|[.,!]|$)", " "),
        (r"(?<=\d)\s*(?:秒鐘|秒钟|秒間|秒|초)\S*", " seconds "),
        (r"(?<=\d)\s*(?:分钟|分鐘|分間|分|분)\S*", " minutes "),
    )
)  # fmt: skip

# Units, scaled so that "1 minute" is "60 seconds"; 1 for plain counts.
UNITS = {
    unit: scale
    for scale, units in (
        (0.001, "ms msec millisecond milliseconds"),
        (1.0, "s sec secs second seconds sekunde sekunden secondes segundos секунд times x % percent"),
        (60.0, "min mins minute minutes minuten minutos минут"), (3600.0, "h hr hrs hour hours stunden heures horas часов"),
        (86_400.0, "day days tage jours días дней"), (1e3, "kb kib k"), (1e6, "mb mib"), (1e9, "gb gib"),
    )
    for unit in units.split()
}  # fmt: skip
