"""Words: how text becomes comparable words, terms and sentences, in any script.

Search, promotion and the extractive architect compare text through this module, so that the same words count as
the same everywhere. Scripts without spaces (Chinese, Japanese, Thai …) are cut into overlapping pairs of characters.

``terms`` are the words by which search compares texts: stems in order, stopwords included so that phrases can be
found, plus the parts of compound names and the single characters of scripts without spaces. A term consists of
letters and digits only, so that any full-text index accepts it.

``sentences`` are stretches of the text itself, without surrounding blanks; a soft line break inside one becomes a
space. Only blanks and fence markers are lost. The cost is linear in the text.
"""

from __future__ import annotations

import re
from _thread import allocate_lock  # threading takes a millisecond of a hook to import
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from aether.text.regex import lazy

# Runs written without spaces between words: Thai to Khmer, kana, Han, and the planes of rarer Han.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACED_WORD = lazy(r"\S+")
_RUN = lazy(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:['’][^\W\d_{UNSPACED}]+)*")
# The same for ASCII, which most texts are: to compile the tables of the other takes milliseconds.
_ASCII_RUN = lazy(r"[A-Za-z0-9]+(?:'[A-Za-z]+)*")
# Marks that only separate words, as a blank does.
_SEPARATORS = dict.fromkeys(map(ord, "–—“”„«»•·→←⇒✓✗│─§°±×≥≤≈"), " ")
_CAMEL = lazy(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED_START = lazy(rf"[{UNSPACED}]")

# Function words carry no topic. Negations and modals are not here: they decide the meaning of a sentence.
STOPWORDS = frozenset(
    "a an the this that these those there here and or but if then than so as of at by for with about into "
    "through during before after above below to from up down in out on off over under again further once "
    "i me my we our ours us you your yours he him his she her hers it its they them their theirs who whom "
    "which what when where why how am is are was were be been being have has had having do does did doing "
    "will would can could shall may might just also very too s t re ve ll d m".split()
)

# The library's stemmer keeps the current word in its state: two threads would mix their words.
_STEMMING = allocate_lock()


def runs(text: str) -> list[str]:
    """Return the unbroken runs of letters and digits of `text`, compatibility-normalised, in order.

    >>> runs("getUser(日本語)")
    ['getUser', '日本語']
    """
    plain = _plain(text)
    return (_ASCII_RUN if plain.isascii() else _RUN).findall(plain)


def _plain(text: str) -> str:
    """Return `text` compatibility-normalised, with blanks for what only separates words."""
    plain = text if text.isascii() else text.translate(_SEPARATORS)
    if plain.isascii():  # the one foreign character of many English texts is a dash
        return plain
    from unicodedata import normalize  # hooks read mostly ASCII

    return normalize("NFKC", text).translate(_SEPARATORS)


def strings_in(value: object) -> Iterator[str]:
    """Yield every string in a JSON value, but no key.

    >>> list(strings_in({"a": ["b", {"c": "d"}], "e": 1}))
    ['b', 'd']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from strings_in(inner)


def words(text: str) -> Iterator[str]:
    """Yield the words of `text`, case-folded and compatibility-normalised, in order.

    >>> list(words("Don't retry fetch_user: HTTP 404 日本語"))
    ["don't", 'retry', 'fetch', 'user', 'http', '404', '日本', '本語']
    """
    plain = _plain(text)
    if plain.isascii():
        yield from _ASCII_RUN.findall(plain.lower())
        return
    for run in _RUN.findall(plain):
        if run.isascii() or not _UNSPACED_START.match(run):
            yield run.casefold().replace("’", "'")
        elif len(run) == 1:
            yield run
        else:
            yield from (run[start : start + 2] for start in range(len(run) - 1))


def stems(text: str) -> Iterator[str]:
    """Yield the stems of the words of `text` without the stopwords.

    >>> list(stems("The tests were failing"))
    ['test', 'fail']
    """
    for word in words(text):
        if word not in STOPWORDS:
            yield stem(word)


def parts(identifier: str) -> list[str]:
    """Return the case-folded pieces of a name in camel case, empty where it is one piece.

    >>> parts("getUserName"), parts("plain")
    (['get', 'user', 'name'], [])
    """
    pieces = _CAMEL.split(identifier)
    return [piece.casefold() for piece in pieces] if len(pieces) > 1 else []


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return the English stem of a case-folded word; other scripts and numbers stay as they are."""
    if not word.isascii() or not word.isalpha() or len(word) < 3:
        return word.removesuffix("'s")
    with _STEMMING:
        return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import sys
    from _frozen_importlib_external import PathFinder  # that of importlib, which takes longer to import
    from types import ModuleType

    # The package imports the stemmers of thirty languages, for which a hook would wait: only one is loaded, from a
    # placeholder of the package that is removed again. Only callers that compare words pay even for that.
    name = "snowballstemmer"
    spec = None if name in sys.modules else PathFinder.find_spec(name)
    if spec is not None and spec.submodule_search_locations:
        package = ModuleType(name)
        package.__path__ = list(spec.submodule_search_locations)
        package.__spec__ = spec
        sys.modules[name] = package
        try:
            __import__(f"{name}.english_stemmer")
            return sys.modules[f"{name}.english_stemmer"].EnglishStemmer()
        except (ImportError, AttributeError):  # a version that is laid out in another way
            pass
        finally:
            for module_name in [
                module_name for module_name in sys.modules if module_name.partition(".")[0] == name
            ]:
                del sys.modules[module_name]
    return __import__(name).stemmer("english")


# Longer runs are encoded data: nobody types them, and their first characters identify them.
MAX_TERM_CHARS = 64
# A part of a compound name is weaker evidence than a separate word.
PART_WEIGHT = 0.5
# About the number of texts in a full working memory, so that repeated searches cut them up once.
CACHED_TEXTS = 16_384
_CACHED_RUNS = 100_000


class Terms(NamedTuple):
    """The terms of one text."""

    words: tuple[str, ...]
    parts: tuple[str, ...]
    length: int
    """The number of words that carry a topic."""


class QueryTerms(NamedTuple):
    """The terms of a query."""

    weights: dict[str, float]
    """Each term that counts, with its weight."""
    spelled: dict[str, str]
    """Each of these terms as it was written."""
    sequence: tuple[str, ...]
    """The words in order, stopwords included."""


class _Piece(NamedTuple):
    words: tuple[str, ...]
    content: tuple[bool, ...]
    names: tuple[str, ...]
    characters: tuple[str, ...]


def term(word: str) -> str:
    """Return the term by which a case-folded word is compared.

    >>> [term(word) for word in ("alice's", "bought", "don't", "retries")]
    ['alic', 'buy', 'dont', 'retri']
    """
    plain = word.removesuffix("'s").replace("'", "")[:MAX_TERM_CHARS]
    return stem(BASE_FORMS.get(plain, plain))


@lru_cache(maxsize=CACHED_TEXTS)
def terms(text: str) -> Terms:
    """Return the terms of a text.

    >>> terms("The getUser retries")
    Terms(words=('the', 'getus', 'retri'), parts=('get', 'user'), length=2)
    """
    pieces = [_piece(run) for run in runs(text)]
    return Terms(
        tuple(word for piece in pieces for word in piece.words),
        tuple(part for piece in pieces for part in (*piece.names, *piece.characters)),
        sum(sum(piece.content) for piece in pieces),
    )


def run_terms(run: str) -> Terms:
    """Return the terms of one of the `runs` of a text; those of the text are theirs, the words before the parts.

    >>> run_terms("getUser")
    Terms(words=('getus',), parts=('get', 'user'), length=1)
    """
    piece = _piece(run)
    return Terms(piece.words, (*piece.names, *piece.characters), sum(piece.content))


def query_terms(query: str) -> QueryTerms:
    """Return the terms of a query; stopwords count only if there is nothing else.

    >>> query_terms("Why does fetchUser fail?").weights
    {'fetchus': 1.0, 'fail': 1.0, 'fetch': 0.5, 'user': 0.5}
    """
    pieces = [(run, _piece(run)) for run in runs(query)]
    only_stopwords = not any(any(piece.content) for _, piece in pieces)
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for run, piece in pieces:
        for word, content in zip(piece.words, piece.content, strict=True):
            if content or only_stopwords:
                weights[word] = 1.0
                spelled.setdefault(word, run if len(piece.words) == 1 else word)
    for _, piece in pieces:
        for part in piece.names:
            weights.setdefault(part, PART_WEIGHT)
            spelled.setdefault(part, part)
    return QueryTerms(weights, spelled, tuple(word for _, piece in pieces for word in piece.words))


def is_question(query: str) -> bool:
    """Return whether a query asks for something, so that another question is no answer to it.

    >>> is_question("why did the login fail?"), is_question("login fails")
    (True, False)
    """
    return query.rstrip().endswith(("?", "？", "؟"))


def asks_for_commit(query: str) -> bool:
    """Return whether a query has the word of a commit.

    >>> asks_for_commit("did we commit load.py?"), asks_for_commit("Which commits have it?"), asks_for_commit("why does it fail?")
    (True, True, False)
    """
    return "commit" in query_terms(query).weights


def has_terms_beside(text: str, known: Collection[str], *, least: int) -> bool:
    """Return whether at least so many of the `query_terms` of `text` are not `known`; it is cut no further than needed.

    >>> [has_terms_beside("The fetchUser fails", {"fail"}, least=least) for least in (3, 4)]
    [True, False]
    """
    new: set[str] = set()
    for run in runs(text):
        piece = _piece(run)
        new.update(word for word, content in zip(piece.words, piece.content, strict=True) if content)
        new.update(piece.names)
        new.difference_update(known)
        if len(new) >= least:
            return True
    # Where there are only stopwords, these are the terms.
    return len(query_terms(text).weights.keys() - known) >= least


@lru_cache(maxsize=_CACHED_RUNS)
def _piece(run: str) -> _Piece:
    cut = list(words(run))
    return _Piece(
        tuple(term(word) for word in cut),
        tuple(word not in STOPWORDS for word in cut),
        () if _is_brand(run) else tuple(term(part) for part in parts(run)),
        # Words are cut into pairs, but a query may be a single character.
        tuple(run) if len(run) > 1 and not run.isascii() and _UNSPACED_START.match(run) else (),
    )


def _is_brand(run: str) -> bool:
    """Return whether `run` is a name of its own, as PostgreSQL is: a capitalized word, and capitals at the end."""
    word = run.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return (
        len(run) - len(word) > 1
        and word.isascii()
        and word.isalpha()
        and word[1:].islower()
        and word.istitle()
    )


_FAMILIES = """
begin began begun | bend bent | bind bound | bite bit bitten | blow blew blown | break broke broken
bring brought | build built | burn burnt | buy bought | catch caught | choose chose chosen | come came
deal dealt | dig dug | draw drew drawn | dream dreamt | drink drank drunk | drive drove driven
eat ate eaten | fall fell fallen | feed fed | feel felt | fight fought | find found | fly flew flown
forget forgot forgotten | forgive forgave forgiven | freeze froze frozen | get got gotten
give gave given | go went gone | grow grew grown | hang hung | hear heard | hide hid hidden
hold held | keep kept | know knew known | lay laid | lead led | learn learnt | leave left | lend lent
lose lost | make made | mean meant | meet met | pay paid | ride rode ridden | ring rang rung
rise rose risen | run ran | say said | see saw seen | seek sought | sell sold | send sent
shake shook shaken | shoot shot | show shown | shrink shrank shrunk | sing sang sung | sink sank sunk
sit sat | sleep slept | speak spoke spoken | spend spent | spin spun | stand stood | steal stole stolen
stick stuck | strike struck | sweep swept | swim swam swum | swing swung | take took taken
teach taught | tear tore torn | tell told | think thought | throw threw thrown
understand understood | wake woke woken | wear wore worn | win won | write wrote written
rewrite rewrote rewritten | rebuild rebuilt | withdraw withdrew withdrawn | overwrite overwrote overwritten
child children | man men | woman women | foot feet | mouse mice | person people | life lives
wife wives | knife knives | shelf shelves | leaf leaves | half halves | tooth teeth
analysis analyses | index indices | vertex vertices | criterion criteria | schema schemata
decide decision | good better best | bad worse worst
"""
BASE_FORMS = {
    form: family.split()[0]
    for line in _FAMILIES.strip().splitlines()
    for family in line.split("|")
    for form in family.split()[1:]
}
"""Irregular form -> the word whose stem it shares."""

# A question is seldom asked in the words of its answer: "Why was the helper done away with?" "We removed it." The groups
# hold plain words of software work, not the names of any project. A synonym counts this share of the asked word: enough
# to find the answer, too little to displace a text that has the word itself. On questions about eleven real sessions the
# answer is among the first five for 0.88 instead of 0.79; on conversations of everyday life nothing changes.
SYNONYM_WEIGHT = 0.5
_SYNONYMS = """
remove delete drop discard erase prune purge strip | add insert append introduce create
fix repair mend patch resolve solve remedy correct | break fail crash error broken red | bug defect fault problem issue
cause reason why because root behind | choose decide pick select option design alternative | reject refuse decline deny
login credential password auth authentication authorization token | redirect bounce forward | server host machine remote
download fetch pull clone | upload push publish ship release deliver | undo revert rollback roll discard
folder directory path dir | setting config configuration option flag switch preference | ignore skip exclude omit
save store persist write record keep | vanish disappear lose missing lost drop | change edit modify alter update adapt
test suite check spec | library package module dependency | function method helper routine func
command cli program tool binary | speed slow fast quick latency performance time | offline local network egress
merge conflict clash collide collision | duplicate same identical repeated | link symlink | identifier id name key symbol
review feedback comment reviewer | pr pull request | search query find lookup | cache cached index | rank ranking order score
user person people developer customer | start launch begin init initialise initialize | stop end finish exit quit terminate
wait pending remaining left open todo unfinished | trust enough confident sufficient | permission sandbox allowed access
number count version | list table | document doc readme documentation | log logging trace | commit committed sha hash
limit maximum cap max bound long length | address url uri endpoint | operating os platform linux darwin macos windows
format style lint linter | build compile | example sample corpus | weakness vulnerability security danger risk unsafe
cut truncate shorten short | split divide separate | run execute invoke call | allow permit accept | clean cleanup tidy
adopt accept use take apply | propose suggest recommend | wording text description message | relation edge link call
neighbour neighbor adjacent | bonus boost weight | miss overlook | manual hand manually
"""


@lru_cache(maxsize=1_000)
def _synonyms(query_term: str) -> tuple[str, ...]:
    """Return the other terms of the groups of a term."""
    synonyms: dict[str, None] = {}
    for group in _SYNONYMS.replace("\n", "|").split("|"):
        words = group.split()
        # A term starts as its words do.
        if any(word[0] == query_term[0] and term(word) == query_term for word in words):
            synonyms.update(dict.fromkeys(map(term, words)))
    synonyms.pop(query_term, None)
    return tuple(synonyms)


def with_synonyms(said: QueryTerms) -> tuple[QueryTerms, dict[str, str]]:
    """Return the terms of a query with their synonyms at a lesser weight, and the asked term of each synonym.

    >>> said, means = with_synonyms(query_terms("the slow build"))
    >>> said.weights["latenc"], means["latenc"]
    (0.5, 'slow')
    """
    weights, spelled = dict(said.weights), dict(said.spelled)
    means = {}
    for query_term, weight in said.weights.items():
        for other in _synonyms(query_term):
            if other not in weights:
                weights[other], spelled[other] = SYNONYM_WEIGHT * weight, spelled[query_term]
                means[other] = query_term
    return said._replace(weights=weights, spelled=spelled), means


# A hard-wrapped line is about this long; a shorter one was ended on purpose.
WRAPPED_LINE_CHARS = 50

_OWN_LINE = lazy(r"\s*(?:[-*+•>#|$]|\d{1,3}[.)]\s|[A-Z][\w ]{0,30}:\s|\S+:\d+)")
# It starts with a set of characters, for which the engine looks ten times as fast as for a condition.
_END = lazy(
    r"[.!?…。！？](?:(?<=[.!?…])(?<![.!?…]{2})[.!?…]*+[\"'”’)\]*_`]*+\s+|(?<=[。！？])[。！？]*[」』”）]*\s*)"
)
# The same for ASCII: to compile the tables of the other takes milliseconds.
_ASCII_END = lazy(r"[.!?](?<![.!?]{2})[.!?]*+[\"')\]*_`]*+\s+")
_NO_END = lazy(
    r"(?:^|[\s(\"'])(?:[A-Za-z]|e\.g|i\.e|cf|vs|etc|approx|resp|incl|mr|mrs|ms|dr|prof|st|no|fig|sec|al|\d{1,3})\.$",
    re.IGNORECASE,
)
_OPENERS, _CLOSERS = "\"'“‘(`[", "\"'”’)]*_`!? "
# A message is split for each question that capture asks about it.
_CACHED_BLOCKS = 256
# Long enough for the longest abbreviation with the space before it.
_LOOK_BACK_CHARS = 10


def sentences(text: str) -> list[str]:
    r"""Return the sentences of `text` in order; list entries, headings and lines of code are sentences too.

    >>> sentences("Tests pass. See e.g. app.py for why!\n- keep v1.2\n- drop it")
    ['Tests pass.', 'See e.g. app.py for why!', '- keep v1.2', '- drop it']
    >>> sentences("```\na = f(1. + x)\n```")
    ['a = f(1. + x)']
    """
    parts: list[str] = []
    for block, is_code in _blocks(text):
        if is_code:
            parts.append(block)
        else:
            parts.extend(_split(block))
    return parts


def _blocks(text: str) -> list[tuple[str, bool]]:
    """Return stretches without a hard break, and whether each is a line of code."""
    blocks: list[tuple[str, bool]] = []
    wrapped: list[str] = []
    fenced = False
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            _flush(wrapped, blocks)
            fenced = not fenced
        elif fenced:
            if bare:
                blocks.append((bare, True))
        elif not bare:
            _flush(wrapped, blocks)
        else:
            before = wrapped[-1] if wrapped else ""
            inside = before[-1:] in (":", ";") and before.count("(") > before.count(")")
            ended = len(before) < WRAPPED_LINE_CHARS or (before[-1] in ".!?:;。！？" and not inside)
            if ended or _OWN_LINE.match(bare):
                _flush(wrapped, blocks)
            wrapped.append(bare)
    _flush(wrapped, blocks)
    return blocks


def _flush(wrapped: list[str], blocks: list[tuple[str, bool]]) -> None:
    if wrapped:
        blocks.append((" ".join(wrapped), False))
        wrapped.clear()


@lru_cache(maxsize=_CACHED_BLOCKS)
def _split(block: str) -> tuple[str, ...]:
    parts: list[str] = []
    start = ticks = seen = 0
    last_tick = block.rfind("`")
    for end in (_ASCII_END if block.isascii() else _END).finditer(block):
        ticks += block.count("`", seen, end.end())
        seen = end.end()
        head = block[max(start, end.end() - _LOOK_BACK_CHARS) : end.end()].rstrip()
        after = block[end.end() : end.end() + 1]
        # An ellipsis may continue the sentence.
        is_open = head.rstrip(_CLOSERS).endswith(("…", ".."))
        goes_on = is_open and after and not (after.isupper() or after in _OPENERS)
        in_ticks = ticks % 2 and last_tick >= end.end()
        goes_on = goes_on or (head.endswith("`") and after.islower())  # the end of code: `src/*.tsx?` is
        if goes_on or in_ticks or (head[-1:] == "." and _NO_END.search(head)):
            continue
        parts.append(block[start : end.end()].strip())
        start = end.end()
    if block[start:].strip():
        parts.append(block[start:].strip())
    return tuple(parts)


# Plurals that differ by more than an "s" at the end.
_SINGULAR = {
    "entities": "entity", "entries": "entry", "waiting entries": "waiting entry", "summaries": "summary",
    "errors that are over": "error that is over", "parts of requests": "part of a request",
    "parts of opening requests": "part of an opening request", "parts of current requests": "part of a current request",
    "parts of older paragraphs": "part of an older paragraph", "paragraphs of the state": "paragraph of the state",
    "hashes of files that were read": "hash of a file that was read", "hashes of files": "hash of a file",
    "files that were read": "file that was read", "lines or files": "line or file",
    "revisions that only count reads": "revision that only counts reads",
    "results of tools without a call": "result of a tool without a call",
    "calls of tools without an answer": "call of a tool without an answer",
    "notes of Claude Code": "note of Claude Code", "observations of known ones": "observation of known ones",
}  # fmt: skip


def pluralize(number: int, plural: str) -> str:
    """Return `number` with the noun that is given as `plural`, in the singular for 1.

    >>> pluralize(2, "files that were read"), pluralize(1, "files that were read"), pluralize(1, "decisions")
    ('2 files that were read', '1 file that was read', '1 decision')
    """
    return f"{number} {plural}" if number != 1 else f"1 {_SINGULAR.get(plural, plural.removesuffix('s'))}"


def argument(name: str, option: str = "") -> str:
    """Return `name` as an argument, or as the value of an option, of a command in a shell; it may start like an option.

    >>> argument("a b"), argument("-home-ada"), argument("-home-ada", "--conversation")
    ("'a b'", '-- -home-ada', '--conversation=-home-ada')
    """
    from shlex import quote  # words are imported by hooks, which print no command

    if option:
        return f"{option}={quote(name)}"
    return f"{'-- ' if name.startswith('-') else ''}{quote(name)}"


def matching_part(text: str, matched: Iterable[str], most: int) -> str:
    """Return `text` on one line; of a longer one, at most `most` characters from the sentence on that holds most of the words `matched`.

    The start of the sentence is shown even where the words are further on.

    >>> matching_part("We met on Monday. Nobody knew why the ledger was locked so often.", ["ledger"], 32)
    'Nobody knew why the ledger was…'
    """
    flat_text = " ".join(text.split())
    if len(flat_text) <= most:
        return flat_text
    wanted_forms = {word_form for word in matched for word_form in _forms(word)}
    parts = [" ".join(part.split()) for part in sentences(text)] or [flat_text]
    numbers = [len(wanted_forms & _forms(part)) for part in parts]
    best = numbers.index(max(numbers))
    from_best = " ".join(parts[best:])
    if len(from_best) <= most:
        return from_best
    start = _start(from_best, most - 1)
    if len(wanted_forms & _forms(start)) >= numbers[best]:
        return f"{start}…"
    opening = _start(parts[best], most // 3)
    return (
        f"{opening} {_stretch(parts[best][len(opening) :].lstrip(), wanted_forms, most - len(opening) - 1)}"
    )


def _start(text: str, most: int) -> str:
    """Return at most `most` characters from the start of a text, whole words if there are blanks."""
    cut = text[:most]
    return (cut.rpartition(" ")[0] or cut).rstrip() if text[most : most + 1].strip() else cut.rstrip()


def _stretch(flat_text: str, wanted_forms: Collection[str], most: int) -> str:
    """Return the stretch of a line of text that holds most of the forms, in at most `most` characters with ellipses where it is cut."""
    words_ = (
        (word_match.start(), word_match.end(), _forms(word_match[0]).intersection(wanted_forms))
        for word_match in _SPACED_WORD.finditer(flat_text)
    )
    matching_words = [word for word in words_ if word[2]]
    room = most - len("… …")
    first, last, most_held = 0, 0, 0
    for start, end, _ in matching_words:
        inside = [
            neighbour
            for neighbour in matching_words
            if neighbour[0] == start or (neighbour[0] > start and neighbour[1] <= start + room)
        ]
        number = len({word_form for neighbour in inside for word_form in neighbour[2]})
        if number > most_held:
            first, last, most_held = start, max(end, inside[-1][1]), number
    # What is before and after the words says what they are about.
    before = max(0, room - (last - first)) // 2
    cut = max(0, min(first - before, len(flat_text) - room))
    cut = min(flat_text.find(" ", cut - 1) + 1, first) if cut else 0
    part = flat_text[cut : cut + room]
    if cut + len(part) < len(flat_text):
        part = (part[: part.rindex(" ")] if " " in part[last - cut :] else part).rstrip() + "…"
    return f"… {part}" if cut else part


def _forms(word: str) -> set[str]:
    word_terms = terms(word)
    return {*word_terms.words, *word_terms.parts}


# A quote of fewer characters is in almost any text by chance.
LEAST_QUOTE_CHARS = 4
_QUOTE_ENDS = " .,;:!?…\"'"
# Typographic signs that models replace when they copy.
_ALIKE = str.maketrans(
    {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " ", "…": "..."}
)


def normalized(text: str) -> str:
    r"""Return `text` in one Unicode form, with plain quotation marks and dashes, without emphasis and with single blanks.

    >>> normalized("“Never  push”\n**to** `main`")
    '"never push" to main'
    """
    from unicodedata import normalize  # hooks read mostly ASCII

    plain = normalize("NFKC", text).translate(_ALIKE).replace("**", "").replace("`", "")
    return " ".join(plain.split()).casefold()


def find_quote(quote: str, texts: Sequence[str]) -> int | None:
    r"""Return the position of the first of `texts` that contain `quote`; None if it is in none or too short.

    A short quote counts only if it is a whole text.

    >>> find_quote("never push", ["Hello.", "Never\npush to main."]), find_quote("a", ["a b"]), find_quote("Yes!", ["yes"])
    (1, None, 0)
    """
    return next((place for place, text in enumerate(texts) if is_quoted(quote, normalized(text))), None)


def is_quoted(quote: str, text: str) -> bool:
    """Return whether `quote` is in `text`, which is `normalized` already: many quotes are sought in one text."""
    bare_quote = normalized(quote).strip(_QUOTE_ENDS)
    if len(bare_quote) < LEAST_QUOTE_CHARS and not (len(bare_quote) >= 2 and not bare_quote.isascii()):
        return bool(bare_quote) and bare_quote == text.strip(_QUOTE_ENDS)
    return bare_quote in text


def missing_name(names: Iterable[str], text: str) -> str:
    """Return the first of `names` that is not in `text`, which is `normalized` already, as a whole; "" if all do.

    >>> missing_name(["30", "src/a.py"], "wait 300 s, see src/a.py")
    '30'
    """
    return next((name for name in names if not _is_whole_in(normalized(name), text)), "")


def _is_whole_in(name: str, text: str) -> bool:
    start = text.find(name)
    while name and start >= 0:
        before, after = text[start - 1 : start], text[start + len(name) : start + len(name) + 1]
        if not (_joins(before, name[0]) or _joins(name[-1], after)):
            return True
        start = text.find(name, start + 1)
    return not name


def _joins(before: str, after: str) -> bool:
    """Return whether two characters are of one word or of one number: of "10k" the number is 10."""
    if before.isdigit() or after.isdigit():
        return before.isdigit() and after.isdigit()
    return before.isascii() and after.isascii() and before.isalnum() and after.isalnum()
