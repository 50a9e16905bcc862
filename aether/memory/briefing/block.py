"""Block: the lines of a briefing, how they are merged, ranked, laid out, and fitted into its budget.

Lines are ranked once, whatever the budget, and the longest front of that order that fits is shown: a higher budget
never loses a line, and no line is left out for a less important one. Of several lines that say the same, or cannot
both hold, the newest is kept. The lines of each section are made in `sections`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from aether import clock
from aether.errors import InvalidInput
from aether.regular import sha256
from aether.text.cleaning import without_emphasis, without_injected
from aether.text.regex import lazy
from aether.text.words import CODE_SPAN, STOPWORDS
from aether.tuples import NamedTuple

# A day this long ago is followed by its age.
OLD_DAYS = 30
# The length of a stamp of `clock.stamp`.
_STAMP_CHARS = 27
# Two lines that share less of the words of the longer one are about two things.
SHARED_AT = 0.5
_TOPIC_WORD = lazy(r"[^\W_][\w./:+#-]*[\w+#]|[^\W_]")
_URL = lazy(r"https?://[^\s)\]>]+")
_NUMBER = lazy(r"\d+(?:[.,]\d+)*%?")
# Kinds of checks, and the words of a line that only says that they passed.
_CHECKS = lazy(
    r"(?<![a-z])(?:py)?(test|lint|build|vet|integration|e2e|unit|type|format|fmt|race)(?:s|ing|ers?|ting)?(?![a-z])"
)
_PASSED = frozenset("pass passes passed passing green clean succeed succeeds succeeded ok".split())
_OF_CHECKS = _PASSED | frozenset(
    "all the full unit integration e2e existing new test tests suite ci lint linting linter vet build builds format formatting type types "
    "check checks and are is now still".split()
)
_NO_FINDINGS = lazy(r"\b(?:no|0) (?:issues?|errors?|warnings?|failures?)\b")
_RAN = lazy(r"ran `([^`]*)`(.*)", re.DOTALL)
_FAILS = lazy(r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bfail\b")
_LETTERS = lazy(r"[^\W\d_]+|\d+")

# 64 bits: two of some thousand lines are never alike by accident.
_DIGEST_CHARS = 16
# Answers of `judged` by question and digests of the texts, and those of them that were asked for: who makes briefs in
# many processes keeps them, and with them what became of the lines of each long section, by the digest of all.
JUDGED: dict[str, bool] = {}
ASKED: dict[str, bool] = {}
FATES: dict[str, list[int]] = {}
# What becomes of a line; from 0, it is left out for the kept line of that number, which contradicts it.
_KEPT, _REPEATED = -1, -2
# A section that shows so many lines reads all of them, and compares thousands of pairs.
_LONG_SECTION = 100
_MOST_FATES = 64

# In the order of the block.
HEADINGS = {
    "goal": "",
    "protected": "Protected, to be kept word for word:",
    "state": "State of the work, by the agent's last reports:",
    "published": "From the messages of the last commits and pull requests:",
    "answers": "Answered last, without an edit or check:",
    "next": "Next:",
    "rules": "Constraints and preferences of this project:",
    "signals": "Active signals:",
    "decisions": "Decisions:",
    "elsewhere": "Decisions of other sessions of this project:",
    "open": "Open errors and blockers:",
    "requests": "Requests of the user:",
    "results": "Earlier results:",
    "reasons": "Why edits were made, said before each:",
    "asked": "Asked earlier:",
    "files": "Files changed:",
    "commands": "Commits and commands, the last of each:",
    "caste": "What this caste did last in this project:",
    "noted": "Notes of agents, not confirmed by a person:",
    "learned": "Learned over sessions:",
    "earlier": "Earlier work:",
}
# A line of these sections says nothing where a more important one of another section says the same.
_ECHOES = frozenset(
    {"state", "published", "answers", "next", "requests", "asked", "results", "reasons", "earlier"}
)
# The word for the lines of a section to programs.
KINDS = {
    "goal": "state", "protected": "rule", "state": "state", "published": "state", "answers": "state", "next": "next", "rules": "rule", "signals": "rule",
    "decisions": "decision", "elsewhere": "decision", "open": "open", "requests": "request", "asked": "request", "results": "outcome",
    "reasons": "outcome", "files": "file",
    "commands": "command", "caste": "outcome", "noted": "lesson", "learned": "lesson",
    "earlier": "outcome",
}  # fmt: skip


class Line(NamedTuple):
    """One line of a briefing."""

    section: str
    text: str
    at: str = ""
    """Its time in the form of `clock.stamp`; empty if unknown."""
    note: str = ""
    ids: tuple[str, ...] = ()
    """The entries that it comes from."""
    evidence: str = ""
    """Who vouches for it: person, machine or agent; empty if unknown."""


class Share(NamedTuple):
    """The rank of a section's lines: that of the first, the step to each further one, and the most lines."""

    first: float
    step: float
    most: int


def rank(lines: Mapping[str, Sequence[Line]], shares: Mapping[str, Share]) -> list[Line]:
    """Return the lines of all sections in order of importance."""
    places = {section: at for at, section in enumerate(HEADINGS)}
    numbered = [
        (share.first + share.step * at, places[section], at, line)
        for section, share in shares.items()
        for at, line in enumerate(lines.get(section, ())[: share.most])
    ]
    return [line for *_, line in sorted(numbered, key=lambda each: each[:3])]


def without_shown_checks(lines: Sequence[Line], shown: Iterable[Line]) -> list[Line]:
    """Return `lines` without those that only report that checks passed which a command that is `shown` says, too."""
    ran = [line.text.casefold() for line in shown if line.section == "commands" and not line.note]
    passed = [run[1] for text in ran if (run := _RAN.match(text)) and not _FAILS.search(run[2])]
    # What a path names was not what was run.
    kinds = {
        kind for run in passed for word in run.split() if "/" not in word for kind in _CHECKS.findall(word)
    }

    def is_shown(line: Line) -> bool:
        said = line.text.casefold()
        words = {*_LETTERS.findall(_NO_FINDINGS.sub(" ok ", CODE_SPAN.sub(" ", said)))}
        named = {*_CHECKS.findall(said)}
        return bool(named) and named <= kinds and words <= _OF_CHECKS and not words.isdisjoint(_PASSED)

    return [line for line in lines if line.section not in ("state", "results") or not is_shown(line)]


def said_once(lines: Iterable[Line]) -> list[Line]:
    """Return `lines`, the most important first, without those of the work and requests that a more important one says whole.

    A decision that is shortened is left out if the request that it was taken from is shown, and a request that says little
    more than a decision taken from it.
    """
    kept: list[Line] = []
    said: list[str] = []
    decided: list[str] = []
    lines = [*lines]
    asked = next((line.text.casefold() for line in lines if line.section == "requests"), "")
    for line in lines:
        folded = line.text.casefold()
        if line.section in _ECHOES and any(folded in one for one in said):
            continue
        # The address of a pull request that the state names, too.
        if line.section == "commands" and any(
            line.text.endswith(f": {url}") for url in _URL.findall(" ".join(said))
        ):
            continue
        cut = line.section == "decisions" and folded.endswith("...")
        if cut and asked.startswith(folded.removesuffix("...")):
            continue
        if line.section in ("requests", "asked") and any(
            one in folded and 2 * len(one) > len(folded) for one in decided
        ):
            continue
        kept.append(line)
        said.append(folded)
        if line.section == "decisions":
            decided.append(folded.removesuffix("..."))
    return kept


def lay_out(lines: Sequence[Line], *, now: datetime, root: str = "") -> list[str]:
    """Return `lines` as text by section; file paths are relative to `root`.

    The day of several lines is in their heading; a line of another day has its own. The first old day says its age.
    """
    text: list[str] = []
    dated = False
    for section, heading in HEADINGS.items():
        mine = [line for line in lines if line.section == section]
        days = [day_of(line.at) for line in mine]
        about = [f"below {root}"] if section == "files" and root else []
        common = days[0] if heading and len(mine) > 1 and days[0] and days.count(days[0]) > 1 else ""
        if common:
            day_and_age = date_and_age(mine[0].at, now=now)
            about += day_and_age[:1] if dated else day_and_age
            dated = dated or len(day_and_age) > 1
        notes = {line.note for line in mine}
        if heading and len(mine) > 1 and len(notes) == 1 and section == "state":
            about += filter(None, notes)
            mine = [line._replace(note="") for line in mine]
        if mine and heading:
            text.append(heading.removesuffix(":") + (f" ({', '.join(about)})" if about else "") + ":")
        for line in mine:
            shown = line._replace(text=line.text.removeprefix(root)) if section == "files" else line
            shown = shown._replace(at="") if common and day_of(line.at) == common else shown
            formatted = format_line(shown, now=now, age=not dated)
            dated = dated or len(date_and_age(shown.at, now=now)) > 1
            text.append(formatted if heading else formatted.removeprefix("- "))
    return text


def topic_words(text: str) -> frozenset[str]:
    """Return the words of `text` that make its topic, unstemmed.

    >>> sorted(topic_words("Never use more than 4 workers"))
    ['more', 'never', 'use', 'worker']
    """
    found = _TOPIC_WORD.findall(text.casefold().replace("’", "'"))
    return frozenset(
        word.rstrip("s") if len(word) > 3 else word
        for word in found
        if word not in STOPWORDS and not (word[0].isdecimal() and _NUMBER.fullmatch(word))
    )


def without_repeats(lines: Iterable[Line], *, most: int, replacing: bool = False) -> list[Line]:
    """Return the first `most` of `lines`, newest first, without those that a newer one repeats.

    With `replacing`, an older line that contradicts a newer one is left out too, and the newer one says so. Only lines
    that share most of their words are compared: a briefing is made while somebody waits, and most hold no such lines.
    """
    kept: list[Line] = []
    for line, fate in _with_fates(lines, most=most, replacing=replacing):
        if fate == _KEPT:
            kept.append(line)
            if len(kept) == most:
                break
        elif 0 <= fate < len(kept) and not kept[fate].note:
            since = f"on {day_of(line.at)}" if line.at else "before"
            kept[fate] = kept[fate]._replace(note=f"replaces what was said {since}")
    return kept


def _with_fates(lines: Iterable[Line], *, most: int, replacing: bool) -> Iterable[tuple[Line, int]]:
    """Return `lines` with what becomes of each; that of a long section is known as long as its lines are the same."""
    if most < _LONG_SECTION:
        return _compared(lines, replacing=replacing)
    read = [*lines]
    key = _digest("\n".join([str(replacing), *(line.text for line in read)]))
    fates = FATES.pop(key, [])
    if len(fates) != len(read):
        fates = [fate for _, fate in _compared(read, replacing=replacing)]
    FATES[key] = fates  # the last of them is what was asked for last
    if len(FATES) > _MOST_FATES:  # of a process that lives long
        del FATES[next(iter(FATES))]
    return zip(read, fates, strict=True)


def _compared(lines: Iterable[Line], *, replacing: bool) -> Iterator[tuple[Line, int]]:
    """Yield each of `lines` with what becomes of it beside those before it."""
    kept: list[str] = []
    topics: list[tuple[int, int]] = []
    places: dict[str, int] = {}
    seen: list[tuple[str, str]] = []
    for line in lines:
        words, folded, digest = topic_words(line.text), line.text.casefold(), _digest(line.text)
        # As bits: thousands of pairs are compared, in a fifth of the time that sets take.
        size, mine = len(words), sum(1 << places.setdefault(word, len(places)) for word in words)
        near = [
            at
            for at, (other, held) in enumerate(topics)
            if (mine & other).bit_count() >= SHARED_AT * max(size, held)
        ]
        pairs = [(at, (line.text, kept[at]), digest + seen[at][1]) for at in near]
        if any(folded == seen[at][0] or _judged("same", texts, digests) for at, texts, digests in pairs):
            yield line, _REPEATED
            continue
        opposed = (at for at, texts, digests in pairs if _judged("contradicts", texts, digests))
        against = next(opposed, _KEPT) if replacing else _KEPT
        if against == _KEPT:
            kept.append(line.text)
            topics.append((mine, size))
            seen.append((folded, digest))
        yield line, against


def judged(question: str, *texts: str) -> bool:
    """Return the answer to one of the slow questions about texts: from JUDGED, where all answers are kept.

    >>> judged("rule", "Never push to main."), judged("same", "Use tabs", "Use locks")
    (True, False)
    """
    return _judged(question, texts, "".join(map(_digest, texts)))


def _judged(question: str, texts: tuple[str, ...], digests: str) -> bool:
    key = question + digests
    known = JUDGED.get(key)
    if known is None:
        # The word lists of these modules cost a hook more than the rest of a briefing.
        from aether.text import classify, similarity

        questions: dict[str, Callable[..., object]] = {
            "same": similarity.same, "contradicts": similarity.contradicts, "rule": classify.rule,
        }  # fmt: skip
        known = JUDGED[key] = bool(questions[question](*texts))
    ASKED[key] = known = known is True  # kept answers come from a file
    return known


@lru_cache(maxsize=10_000)
def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]


def one_line(text: str, most: int) -> str:
    """Return `text` in one line of at most `most` characters, without blocks that aether injected.

    >>> one_line("Use **SQLite**  for now", 100), one_line("Use SQLite for now", 14)
    ('Use SQLite for now', 'Use SQLite...')
    """
    whole = " ".join(without_emphasis(without_injected(text)).split())
    if len(whole) <= most:
        return whole
    # Cut between words if possible, so that no name is torn.
    space = whole.rfind(" ", most // 3, most - 2)
    shown = whole[: space if space > 0 else most - 3]
    opened = shown.rfind("(")
    if opened > max(shown.rfind(")"), most // 2):  # no parenthesis is cut
        shown = shown[:opened]
    # The counter handles ASCII dots ten times faster than an ellipsis.
    return shown.rstrip(" ,;:.") + "..."


def timestamp(text: object) -> str:
    """Return the time in `text` in the form of `clock.stamp`, or "" if it is not a time."""
    if isinstance(text, str) and len(text) == _STAMP_CHARS and text.endswith("Z"):
        return text
    try:
        return clock.stamp(clock.parse(str(text)))
    except InvalidInput:
        return ""


def day_of(at: str) -> str:
    """Return the day of a stamp."""
    return at[:10]


def date_and_age(at: str, *, now: datetime) -> list[str]:
    """Return the day of a stamp and, if it is old, its age; nothing for an unknown time."""
    if not at:
        return []
    age = (now - clock.parse(at)).days
    return [day_of(at), f"{age} days ago"] if age > OLD_DAYS else [day_of(at)]


def format_line(line: Line, *, now: datetime, age: bool = True) -> str:
    """Return `line` as text: its day, with `age` its age if it is old, its text and note.

    >>> format_line(Line("rules", "Never push.", "2026-01-01T00:00:00.000000Z"), now=datetime(2026, 3, 1, tzinfo=clock.parse("2026-01-01").tzinfo))
    '- 2026-01-01 (59 days ago) Never push.'
    """
    day, *ago = date_and_age(line.at, now=now) or [""]
    note = f" ({line.note})" if line.note else ""
    ages = [f"({each})" for each in ago] if age else []
    return " ".join(filter(None, ["-", day, *ages, line.text])) + note
