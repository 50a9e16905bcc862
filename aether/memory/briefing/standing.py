"""The state of the work and its next step, from the last messages of the last conversation.

The last message of a turn is an agent's account to a person, so it is shown automatically; what was said on the way is not. An
account is cut into its paragraphs and list entries, which are shown whole or not at all: no headings, code, tables,
questions, offers or options. The newest account says most; an account that the person turned down says nothing. The
next step is what the last account asks or announces, the tasks that are not done, and what the host's own summary names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from aether.memory.briefing.block import Line
from aether.text.choices import refuses
from aether.text.regex import lazy
from aether.text.words import sentences
from aether.tuples import NamedTuple
from aether.types import Item

# Characters of one line: a longer paragraph is shown by its first whole sentences.
LINE_CHARS = 420
LEAST_WORDS = 3
# Fewer that name nothing ("All tests pass.") say no more than the last run of the tests.
NAMELESS_WORDS = 5
# Characters shown of the newest account, of the one before it, and of each earlier one.
SHARES = (1300, 400, 260)
SHORT_CHARS = 300
# Characters of all accounts of earlier work together.
EARLIER_CHARS = 2_400
LEAST_RATE = 1.0
# An account of earlier work is shown by what it changed, and not by how it was checked.
LEAST_CHANGE = 2.0
OPENING_WORDS = 8
MOST_ACCOUNTS = 60
MOST_TASKS = 4
MOST_LEFT = 3

_FENCE = lazy(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_ENTRY = lazy(r"[ \t]*(?:[-*•+]|\d{1,3}[.)]|✅|❌|[a-z]\))[ \t]+")
_HEADING = lazy(r"\s*(?:#+ .*|\*\*[^*]+\*\*[^.!?]{0,40}|[^.!?]{1,80}:\s*|-{3,}\s*|={3,}\s*)\Z")
_TABLE = lazy(r"\s*[|│┌└├+>]")
_SHORTENED = "characters left out …]"
# Entries below these say how something was tested, or what was wrong before it was fixed.
_DETAIL_HEADING = lazy(
    r"\b(?:what it tests?|tests?|verif\w*|verification|failure|bugs?|problems?|issues?|root cause|output|findings?|before|background|context|why)\b",
    re.IGNORECASE,
)
_WAS_WRONG = lazy(r"^\W*(?:bug|problem|issue|failure|error|before|old)\b[^:]{0,20}:", re.IGNORECASE)
_NEXT_HEADING = lazy(
    r"\b(?:next(?: steps?)?|remaining|to ?do|pending|follow[- ]?ups?|left|not done|still open|when ready)\b",
    re.IGNORECASE,
)
_OPTION_HEADING = lazy(
    r"\b(?:options?|alternatives?|proposals?|approach(?:es)?|suggest\w*|recommend\w*|possible|could|would|pros|cons|example|questions?|how (?:it|to)|before|closed|if you|not changed|trade-?offs?|steps?|test(?:ing)? plan|walk\w*)\b",
    re.IGNORECASE,
)
_OPTION = lazy(r"(?:option|approach|alternative|variant)\W+\w{1,2}\b|\(?[a-d1-9][.)]", re.IGNORECASE)
_ANNOUNCES = lazy(
    r"^\W*(?:now |next,? |then |first,? |right\W+|ok\W+)*(?:let me|i'll|i will|i need to|i'm going to)\b",
    re.IGNORECASE,
)
_NEXT = lazy(
    r"^\W*(?:the )?(?:next(?: steps?| up| i'll)?\b|remaining\b|to ?do\b|still (?:open|to do|missing|left|needs?)\b|not yet\b|after that\b|when ready\b|pending\b)"
    r"|\bnext steps?\b|\b(?:remains?|still has|still needs?|is left) to\b|\bnot (?:yet )?(?:committed|pushed|merged|tested)\b|\bwhen (?:you're )?ready\b",
    re.IGNORECASE,
)
_SUPPOSES = lazy(
    r"^\W*you (?:can|should)|\b(?:(?:this|that|it|you|we|i|there|they|which|one|each|fix|\w+s) (?:would|could|might|may)|maybe|perhaps|should (?:i|we)|if you|you(?:'d| could| may)|i'd|let me|i'll|i will|let's|want me|want to|options?|alternatively|consider|recommend|suggest\w*|my take|"
    r"either|one way|in theory|ideally|e\.g\. if|i(?:'m| am) (?:going|about) to|now (?:i|let|update|add|fix|check|run)|the fix (?:is|would be) to|i need to|we need to|i should)\b",
    re.IGNORECASE,
)
_LEANS = lazy(
    r"^\W*(?:this|that|these|those|it|they|he|she|here|so|yes|no|yeah|nope|right|correct|exactly|good|great|ok(?:ay)?|done|perfect|both|however|but|and|then|also|the same)\b",
    re.IGNORECASE,
)
_CHANGED = lazy(
    r"\b(?:add(?:s|ed)|chang(?:es|ed)|remov(?:es|ed)|replac(?:es|ed)|renam(?:es|ed)|mov(?:es|ed)|fix(?:es|ed)|now|instead|no longer|kept|keeps|stays|uses|returns|skips?|skipped|gated|"
    r"extract(?:s|ed)|creat(?:es|ed)|defaults?|only|separate|avoid(?:s|ed)|left|drop(?:s|ped)|split|merged|rolled back|reverted|confirmed|verified|"
    r"root cause|because|so that|rather than|implemented|updated|introduced|filed|stored|wired|route[sd]?|filters?)\b",
    re.IGNORECASE,
)
_PROVEN = lazy(
    r"\b(?:pass(?:es|ed|ing)?|green|clean|lint|tests?|committed|commit|pushed|push|merged|pr ?#\d+|#\d+|0 issues|build|fail(?:s|ed|ing)?|uncommitted)\b",
    re.IGNORECASE,
)
# What an account leaves undone stays so until it is named again.
_PUT_OFF = lazy(
    r"(?:\b(?:is|was|are|were|been|minor,)|[-–—:])\s*(?:deferred|skipped|postponed)\b|\b(?:looks?|is|are|still) untested\b|\bleft (?:unaddressed|for later)\b"
    r"|\bthere(?:'s| is| are) (?:still )?no\b[^.?]*\btests?\b(?! (?:is|are) needed)",
    re.IGNORECASE,
)
# An entry of a checklist was the state when it was ticked.
_TICKED = lazy(r"\W*[✅✓✔☑]")
_REASON = lazy(
    r"\b(?:instead|rather than|should|so that|because|for consistency|best place|keep(?:s|ing)?|without|only|separate|shared|while keeping|preserv\w+|match(?:es|ing)?|to avoid|from .{3,40} only|unchanged|the fix is|both sides|explicit(?:ly)?)\b",
    re.IGNORECASE,
)
_OPENS_LOOK = lazy(
    r"^\W*(?:now |ok\W+|good\W+|next,? )*(?:let me (?:check|look|see|verify|read|run|find|trace)|i see|looking|checking|the (?:test|lint|error|issue)\b.{0,30}\bfail|wait)|\bfound\b|\breview\b|\bi think\b",
    re.IGNORECASE,
)
LEAST_REASON, MOST_REASON = 60, 260
_CHOOSES = lazy(
    r"\b(?:i'm|i am|we're) (?:going to |now )?(?:add|keep|mak|mov|us|restor|chang|replac|remov|plac|put|stor|renam|switch|leav|reject|register|edit)(?:ing|e)?\b"
    r"|\bshould\b(?! be (?:green|fine|good))|\blet me (?:add|fix|use|keep|update|create|take|move|make|put|inline|extract|drop|remove|replace|rename)\b",
    re.IGNORECASE,
)
_COMMIT_NAME = lazy(r"\[\S+ ([0-9a-f]{7,})\]|([0-9a-f]{7,}) |https://\S+/(?:pull|issues)/(\d+)")
_REFERS = lazy(r"\b(?:that|this|it|these|those|them|so|either|both|change|fix|commit)\b", re.IGNORECASE)
_NAMES = lazy(r"`[^`]+`|\w/\w|\w\.\w|[a-z][A-Z]|\d|_")


class Paragraph(NamedTuple):
    """A paragraph or list entry of an account, and the heading above it."""

    text: str
    heading: str
    entry: bool = False


class Account(NamedTuple):
    """The last message of a turn, or the message of a commit: its paragraphs, and whether its turn changed anything."""

    item: Item
    paragraphs: tuple[Paragraph, ...]
    worked: bool
    published: bool = False
    """Whether it is the message of a commit or pull request."""

    @property
    def at(self) -> str:
        """Return its time."""
        return self.item["metadata"]["timestamp"]

    @property
    def asks(self) -> bool:
        """Return whether it ends with a question."""
        return any(map(_asks, self.paragraphs[-2:]))


def paragraphs(text: str) -> list[Paragraph]:
    r"""Return the paragraphs and list entries of `text` in order, without headings, code and tables.

    The heading of a list is the line above it that opens it ("Next:"), else that of its part.

    >>> paragraphs("## Done\n\n- added `a.py`\n\n```\nx = 1\n```\nAll tests pass. Next:\n- **push** it")[1:]
    [Paragraph(text='All tests pass. Next:', heading='Done', entry=False), Paragraph(text='**push** it', heading='All tests pass. Next', entry=True)]
    """
    found: list[Paragraph] = []
    heading = opening = ""
    listed, open_lines = False, list[str]()

    def close() -> None:
        nonlocal opening
        if open_lines:
            whole = " ".join(open_lines)
            if not listed:
                opening = whole.rstrip(":*_ ") if whole.rstrip("*_ ").endswith(":") else ""
            found.append(Paragraph(whole, opening or heading if listed else heading, listed))
            open_lines.clear()

    for line in _FENCE.sub("\n\n", text).split("\n"):
        bare = line.strip()
        if not bare or _TABLE.match(line) or _SHORTENED in line:
            close()
        elif not open_lines and _HEADING.fullmatch(line) and not _ENTRY.match(line):
            heading, opening = bare.strip("#*: "), ""
        elif entry := _ENTRY.match(line):
            close()
            listed = True
            open_lines.append(line[entry.end() :].strip())
        else:
            listed = listed and bool(open_lines)
            open_lines.append(bare)
    close()
    return found


def accounts(items: Sequence[Item]) -> list[Account]:
    """Return the accounts of one conversation, the newest first, without those that the person turned down.

    `items` are those of the conversation, the newest first.
    """
    found: list[Account] = []
    turned_down = False
    for item in items:
        role = item["metadata"].get("role", "")
        if role == "request" or (not role and item["type"] == "user_input"):
            turned_down = refuses(item["metadata"].get("reply") or _words(item["content"]))
        elif item["type"] == "code_change" or role == "commit":
            if found and not found[-1].worked:
                found[-1] = found[-1]._replace(worked=True)
            if role == "commit" and not turned_down:
                found.append(Account(item, _published(item["content"]), worked=True, published=True))
        elif _is_account(item):
            if not turned_down:
                found.append(Account(item, tuple(paragraphs(item["content"])), worked=False))
            turned_down = False
        if len(found) == MOST_ACCOUNTS:
            break
    return found


def _is_account(item: Item) -> bool:
    metadata = item["metadata"]
    role = metadata.get("role", "")
    # Captured before items had roles, an outcome was the last message of a turn.
    before_roles = not role and item["type"] == "outcome" and "pointer" in metadata
    return not metadata["caste"] and (role == "answer" or before_roles)


def _words(content: str) -> str:
    """Return the person's words of an item, without the question that they answer."""
    return content.rpartition("\nAnswered: ")[2]


def reports(found: Sequence[Account], on_the_way: Iterable[Line] = ()) -> dict[str, list[Line]]:
    """Return the lines of `state` and `results`: what the newest accounts say, and the best of each earlier one.

    First comes the best line of each account, then what was said `on_the_way`, then the rest.

    The newest account of work says most; an answer that changed nothing says little beside it.
    """
    state: list[Line] = []
    rounds: list[tuple[int, int, Line]] = []
    says = [at for at, account in enumerate(found) if not account.published and claims(account, SHARES[0])]
    newest = next((at for at in says if found[at].worked), says[0] if says else 0)
    room = SHARES[0]
    # In a short conversation each account has more room.
    most = max(SHARES[1], EARLIER_CHARS // max(1, sum(one.worked for one in found)))
    for at, account in enumerate(found):
        # A commit before the newest account's own may have been changed since.
        recent = account.worked and (at == newest + 1 or not account.published)
        if at == newest or (at < newest and account.published) or (recent and room > SHARES[0] // 2):
            said = claims(account, room if at else SHARES[0])
            state += [_line("state", text, account) for text in said]
            room -= sum(map(len, said)) if at >= newest else 0
        elif at < min(newest, 2):
            state += [_line("state", text, account) for text in claims(account, SHARES[2])]
        elif account.worked and not account.published:  # an old commit may have been changed since
            chosen = changes(account, most)
            by_value = sorted(chosen, key=rate_change, reverse=True)
            rounds += [(by_value.index(text), at, _line("results", text, account)) for text in chosen]
        if at > newest and not account.published:
            rounds += [(-1, at, _line("results", text, account)) for text in left_open(account)]
    rounds += [(0, len(found), line) for line in on_the_way]
    return {"state": state, "results": [line for *_, line in sorted(rounds, key=lambda each: each[:2])]}


def reasons(items: Sequence[Item]) -> Iterator[Line]:
    """Yield the reasons that an agent gave on the way for edits that followed, the newest first.

    `items` are those of one conversation. Only a sentence that chooses is one ("both should go through the log"): an edit
    that followed it shows that it was carried out.
    """
    for item in items:
        if item["metadata"].get("role") != "change" or item["metadata"]["caste"]:
            continue
        said = [one for each in paragraphs(item["content"]) for one in sentences(each.text.replace("**", ""))]
        chosen = [one for one in said if gives_reason(one)]
        for text in sorted(chosen, key=lambda one: bool(_CHOOSES.search(one.replace("’", "'"))))[-1:]:
            yield Line(
                "results", text, item["metadata"]["timestamp"], "", (str(item.get("id", "")),), "agent"
            )


def gives_reason(sentence: str) -> bool:
    """Return whether an agent's `sentence` chooses how something is done, or says why.

    >>> gives_reason("I'm adding the flag to `load()`, while keeping the default as it is."), gives_reason("Let me look at `a.py`.")
    (True, False)
    """
    said = sentence.replace("’", "'")
    if not LEAST_REASON <= len(said) <= MOST_REASON or said.rstrip().endswith(("?", ":")):
        return False
    if _OPENS_LOOK.match(said) or not _REASON.search(said):
        return False
    return bool(_CHOOSES.search(said) or _NAMES.search(said))


def work_tree(items: Sequence[Item]) -> Iterator[Line]:
    """Yield what is uncommitted, unpushed or unchecked, as the calls of one conversation show it."""
    for item in [one for one in items if one["metadata"].get("role") == "tree"][:1]:
        yield Line(
            "commands",
            item["content"],
            item["metadata"]["timestamp"],
            "",
            (str(item.get("id", "")),),
            "machine",
        )


def next_steps(found: Sequence[Account], items: Sequence[Item]) -> Iterator[Line]:
    """Yield the next steps: the last account's question with its options, its announcements, then the open tasks."""
    for last in [one for one in found if not one.published][:1]:
        asked = [one for one in last.paragraphs[-2:] if _asks(one)][-1:]
        ahead = [one for one in last.paragraphs if one not in asked and _is_ahead(one)]
        for one in [*_proposed(last, asked), *asked, *ahead[:MOST_TASKS]]:
            if text := whole(one.text, tail=one in asked):
                yield _line("next", text, last)
        if asked:
            lines = (
                one.strip("#* \t") for one in last.item["content"].split("\n") if _HEADING.fullmatch(one)
            )
            for option in dict.fromkeys(one.replace("**", "") for one in lines if _OPTION.match(one)):
                yield _line("next", option, last)
    plans = (
        item for item in items if item["metadata"].get("role") == "plan" and item["type"] == "observation"
    )
    # A plan that was not touched since the last commit was left behind.
    since = max((one.at for one in found if one.published), default="")
    for plan in [one for one in [*plans][:1] if one["metadata"]["timestamp"] >= since]:
        for text in open_tasks(plan["content"])[:MOST_TASKS]:
            yield Line(
                "next",
                whole(text) or text[:LINE_CHARS],
                plan["metadata"]["timestamp"],
                "",
                (str(plan.get("id", "")),),
                "machine",
            )


def _proposed(last: Account, asked: Sequence[Paragraph]) -> list[Paragraph]:
    """Return the paragraph that a closing question refers to, if it does not say by itself what it asks."""
    if not asked or not _REFERS.search(asked[0].text) or len(asked[0].text.split()) > OPENING_WORDS:
        return []
    before = last.paragraphs[: last.paragraphs.index(asked[0])]
    return [one for one in before[-3:] if _SUPPOSES.search(one.text.replace("’", "'")) and not _asks(one)][
        -1:
    ]


def _asks(one: Paragraph) -> bool:
    return "?" in one.text and any(each.rstrip("*_ )").endswith("?") for each in sentences(one.text))


def _is_ahead(one: Paragraph) -> bool:
    said = one.text.replace("’", "'")
    if said.rstrip("*_ ").endswith(":"):
        return False
    if _OPENS_LOOK.match(said) and not _NEXT.search(said):
        return False
    return bool(
        _NEXT.search(said) or _NEXT_HEADING.search(one.heading) or _announced(one) or _ANNOUNCES.match(said)
    )


def _announced(one: Paragraph) -> bool:
    """Return whether the opening of a list announces what its entries name."""
    return bool(_ANNOUNCES.search(one.heading.replace("’", "'")))


def from_summary(found: Sequence[Account], items: Sequence[Item], *roles: str) -> Iterator[Line]:
    """Yield the parts of the host's own summary with one of `roles`, unless an account is newer than the summary."""
    since = max((account.at for account in found), default="")
    for item in items:
        at = item["metadata"]["timestamp"]
        if item["metadata"].get("role") not in roles or at <= since:
            continue
        for one in paragraphs(item["content"])[:MOST_TASKS]:
            if text := whole(one.text):
                section = "state" if item["metadata"].get("role") == "current" else "next"
                yield Line(section, text, at, "", (str(item.get("id", "")),), "agent")


def open_tasks(plan: str) -> list[str]:
    r"""Return the tasks of a plan that are not done, those in progress first.

    >>> open_tasks("[completed] write it\n[pending] push it\n[in_progress] test it")
    ['test it', 'push it']
    """
    found = [line[1:].partition("] ")[::2] for line in plan.split("\n") if line.startswith("[")]
    current = [text for how, text in found if how == "in_progress"]
    return current + [text for how, text in found if how in ("pending", "open", "todo")]


def claims(account: Account, room: int, most: int = LINE_CHARS) -> list[str]:
    """Return the paragraphs of an account that say most within `room` characters, whole and in their order.

    One that is longer than `most` is shown by its first whole sentences.
    """
    rated = []
    asks = account.asks
    for at, one in enumerate(account.paragraphs):
        if asks and _OPTION.match(one.text.replace("**", "")):
            continue  # one of the options of the question at its end
        text = reported(one, most)
        if len(text.split()) < NAMELESS_WORDS and not _NAMES.search(text):
            continue
        if text and (value := rate(text)) >= LEAST_RATE:
            rated.append((value - at / 50, at, text))
    kept: list[tuple[int, str]] = []
    for _, at, text in sorted(rated, reverse=True):
        if len(text) <= room:
            kept.append((at, text))
            room -= len(text)
    return [text for _, text in sorted(kept)]


def _published(content: str) -> tuple[Paragraph, ...]:
    """Return the name of a commit or pull request with its subject, and the paragraphs of its text."""
    named, _, said = content.partition("\n\n")
    subject, _, body = said.partition("\n")
    commit = _COMMIT_NAME.match(named)
    shown = f"{(commit and commit[1]) or named} {subject.strip()}"
    return Paragraph(shown, ""), *paragraphs(body)


def changes(account: Account, room: int = SHARES[1]) -> list[str]:
    """Return what an earlier account says that its work changed, in its order, within `room` characters."""
    found: list[str] = []
    # The first paragraph of a commit is its subject.
    for one in account.paragraphs[1 if account.published else 0 :]:
        if _PUT_OFF.search(one.text) and (text := whole(one.text, SHORT_CHARS)):
            found.append(text)
            continue
        text = reported(one, SHORT_CHARS)
        if (
            not text
            or _TICKED.match(text)
            or _DETAIL_HEADING.search(one.heading)
            or _WAS_WRONG.match(text)
            or _NEXT.search(text)
        ):
            continue
        if rate_change(text) >= LEAST_CHANGE:
            found.append(text)
    best: list[str] = []
    for text in sorted(found, key=rate_change, reverse=True):
        if len(text) <= room:
            best.append(text)
            room -= len(text)
    return [text for text in found if text in best]


def left_open(account: Account) -> list[str]:
    """Return what an account says was put off, or has no test; the first few."""
    left = (whole(one.text, SHORT_CHARS) for one in account.paragraphs if _PUT_OFF.search(one.text))
    return [text for text in left if text][:MOST_LEFT]


def reported(one: Paragraph, most: int) -> str:
    """Return the sentences at the start of a paragraph that report, rather than ask, offer, suppose or announce."""
    if _OPTION_HEADING.search(one.heading) or _NEXT_HEADING.search(one.heading) or _announced(one):
        return ""
    if not one.entry and one.text[:1].islower():
        return ""  # the rest of a sentence before a block of code
    kept: list[str] = []
    for sentence in sentences(one.text.replace("**", "")):
        too_long = sum(map(len, kept)) + len(kept) + len(sentence) > most
        if too_long or sentence.rstrip("*_ )").endswith("?") or _SUPPOSES.search(sentence.replace("’", "'")):
            break
        kept.append(sentence)
    if len(kept) > 1 and kept[-1].endswith(":"):
        del kept[-1]
    text = " ".join(kept)
    if text.endswith(":") and (len(text.split()) < OPENING_WORDS or not _CHANGED.search(text)):
        return ""  # the opening of a list says nothing without it
    return (
        text
        if len(text.split()) >= LEAST_WORDS and text in " ".join(one.text.replace("**", "").split())
        else ""
    )


def rate(text: str) -> float:
    """Return how much a paragraph says: names, changes and proofs count, words that lean on others do not."""
    names = min(len(_NAMES.findall(text)), 6) / 2
    changed = min(len(_CHANGED.findall(text)), 4)
    proven = min(len(_PROVEN.findall(text)), 3)
    return names + changed + proven - (2 if _LEANS.match(text) else 0)


def rate_change(text: str) -> float:
    """Return how much a paragraph says about what was changed, and why."""
    names = min(len(_NAMES.findall(text)), 4) / 2
    changed = min(len(_CHANGED.findall(text)), 4)
    return names + changed * 1.2 - (2 if _LEANS.match(text) else 0)


def whole(text: str, most: int = LINE_CHARS, *, tail: bool = False) -> str:
    """Return `text` if it is short, else its first whole sentences, or with `tail` its last; "" if none is short enough."""
    text = text.replace("**", "").strip()
    if len(text) <= most:
        return text
    said = sentences(text)
    kept: list[str] = []
    for one in reversed(said) if tail else said:
        if sum(map(len, kept)) + len(kept) + len(one) > most:
            break
        kept.append(one)
    return " ".join(reversed(kept) if tail else kept)


def of_conversation(items: Iterable[Item], session: str = "") -> list[Item]:
    """Return the items of the conversation `session`, or of the newest one with an account; items keep their order."""
    held = list(items)
    known = session if any(item["metadata"].get("conversation") == session for item in held) else ""
    if not known:
        answers = (
            item for item in held if item["metadata"].get("role") == "answer" or item["type"] == "outcome"
        )
        newest = next(answers, None)
        if newest is None:
            return held
        known = str(newest["metadata"].get("conversation", ""))
    return [item for item in held if item["metadata"].get("conversation", "") == known]


def _line(section: str, text: str, account: Account) -> Line:
    return Line(
        section,
        text,
        account.at,
        ids=(account.item["id"],),
        evidence="machine" if account.published else "agent",
    )
