"""Work: what was asked, decided, changed, tried and left open, as dated lines, the newest first.

Working memory tells of the stretch since the last compression, sessions of those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from aether.memory import brief_commands
from aether.memory.brief_lines import TOLD_CHARS, Line, flat
from aether.memory.brief_merge import topic
from aether.memory.notes import SOURCE_MAIN, SOURCE_WORKER, STANDING, noted_by, shorten
from aether.shapes import Item
from aether.text.patterns import lazy

# Looked through for each kind: far more than any budget holds, far less than a full memory.
LOOKED_AT = 60
LOOKED_AT_OPEN = 30
LOOKED_AT_COMMANDS = 100
# What is older has its share of the decisions and of the earlier work.
RESTED_SESSIONS = 3
# Of what a decision, request or result says, this many characters are told; of a summary, more.
SUMMARY_CHARS = 360
# A later result or solution that holds this share of a blocker's words is about it.
SOLVED_AT = 0.5
# Fewer words are narration ("Now I see the pattern.").
LEAST_WORDS = 4
# "1" answers a question whose options are gone.
LEAST_ANSWER_WORDS = 2
# A reply that is longer says something.
REPLY_CHARS = 80
# A question or a remark of so few words ("Ok, ETA?") is about the moment; a task of so few names something.
CHAT_WORDS = 9
LEAST_RESULT_WORDS = 12
# What a session keeps beside its text: the last requests and results, as they would be told.
MOST_ASKED = 4
MOST_FOUND = 6
MOST_OPEN = 20
# What tells which commands failed, and which of them worked later.
SETTLES = frozenset({"error", "command", "solution"})

_MANY = lazy(r"[;\n]\s*(?=(?:Created|Changed|Deleted) \S|Ran `)")
_CODE = lazy(r"`[^`]*`")
# What comes next was done long ago when this is read.
_NEXT = lazy(
    r"\s*(?:(?:Now|So|First),? )?(?:let me|let's|I'll|I will|I need to)\b[^.!?]*[.:]?\s*\Z", re.IGNORECASE
)
_MARKUP = lazy(r"^#+ |^-{3,}$|^```\w*$|^\|[-:| ]+\|$", re.MULTILINE)
_ASKED = lazy(r"Asked: (.*?)\s*Answered: (.*)", re.DOTALL)
_PLACEHOLDER = lazy(r"\[[^\]]*\]")
_TROUBLE = lazy(
    r"\b(?:fail\w*|errors?|cannot|can't|couldn't|unable|broken|breaks?|bugs?|missing|blocked|blocks?|wrong|crash\w*|"
    r"doesn't|don't work|not work\w*|stuck|denied|refused|unavailable|conflicts?|leaks?|hangs?|time[sd]? out|inconsistent)\b",
    re.IGNORECASE,
)
_WORD = lazy(r"[a-z']+")
# Words that spur on and say nothing of the work.
_SPURS = frozenset(
    "a ahead all alright and apply approve approved but cheers continue cool correct do done exactly fine for go going good "
    "great ha hi hello hmm i i'm is it it's keep lgtm like looks lovely me my nah next nice no nope now ok okay on one perfect "
    "please proceed really right same so sorry sounds super sure thank thanks that that's the then this try very wait "
    "well with wonderful works would y yeah yep yes you".split()
)
_CHATS = lazy(
    r"(?:ok(?:ay)?|sorry|thanks?|hm+|wow|any|progress|status|eta|what|how|why|when|where|who|which|is|are|was|did|does|do you|"
    r"can (?:you|i|we)|could you|should|would|will|have you|really|oops|never mind|nevermind|i (?:see|think|guess|meant)|still)\b",
    re.IGNORECASE,
)
# A path, a name, a number or code: a remark that has one is about something.
_NAMES = lazy(r"[`/_#\d]|\w\.\w|[a-z][A-Z]|https?:")


def rested(sessions: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Item]:
    """Yield what the newest sessions kept word for word as the items that it was, without rules.

    The extractive architect writes several items of one type into one entry: files and commands are told apart again;
    of requests the last words are kept, which are the newest. Of results it keeps details, which tell nothing alone.
    What a session says of itself goes before that: files, requests, results, and the errors it left open.
    """
    for at, session in sessions[:RESTED_SESSIONS]:
        known = session.get("metadata") or {}
        for name, kind in _KEPT.items():
            by = SOURCE_WORKER if name == "found" else SOURCE_MAIN
            kept = known.get(name, [])
            yield from (_item(kind, text, at, by) for text in (kept if name == "open" else reversed(kept)))
        # A session of a hand-off says of itself what it left open: its other errors are history.
        told = {kind for name, kind in _KEPT.items() if known.get(name)} | {"outcome"}
        told |= {"error"} if "compression_id" in known else set()
        for entry in reversed(session.get("high_value_items") or []):
            kind = entry.get("type", "")
            if entry.get("injected") or kind in STANDING or kind in told:
                continue
            content = _tail(entry["content"]) if kind == "user_input" else entry["content"]
            yield from (_item(kind, part.strip(), at) for part in reversed(_MANY.split(content)))


# The lists of a session's metadata, and what type of item they are made of.
_KEPT = {"files": "code_change", "open": "error", "asked": "user_input", "found": "outcome"}


def kept(held: Sequence[Item]) -> dict[str, list[str]]:
    """Return what a session should say of itself of the items it stands for: requests, results, errors left open.

    Requests and results are the newest, in the order in which they were said.
    """
    newest = held[::-1]
    settles = [item for item in newest if item["type"] in SETTLES]
    left = [line.text for line in still_open(settles) if line.text.startswith("`")]
    results = [line.text for line in stands(sorted(newest, key=lambda item: not noted_by(item)))]
    requests = [shorten(item["content"], SUMMARY_CHARS) for item in _requests(newest)]
    return {
        "open": left[:MOST_OPEN],
        "asked": requests[:MOST_ASKED][::-1],
        "found": results[:MOST_FOUND][::-1],
    }


def _item(type: str, content: str, at: str, source: str = SOURCE_MAIN) -> Item:
    metadata = {"timestamp": at, "caste": None, "source": source}
    return cast(Item, {"type": type, "content": content, "metadata": metadata})


def _tail(text: str) -> str:
    return text if len(text) <= TOLD_CHARS else "..." + text[3 - TOLD_CHARS :].partition(" ")[2]


def said(items: Iterable[Item], type: str) -> Iterator[Item]:
    """Yield the newest items of one type."""
    found = (item for item in items if item["type"] == type and not item["metadata"].get("protected"))
    yield from (item for item, _ in zip(found, range(LOOKED_AT), strict=False))


def asked(items: Sequence[Item]) -> Iterator[Line]:
    """Yield what the person asked for, the last request whatever it is; before it, no talk of the moment."""
    for item in _requests(items):
        yield Line("asked", _answer(item["content"]), item["metadata"]["timestamp"])


def _requests(items: Iterable[Item]) -> Iterator[Item]:
    last = True
    for item in said(items, "user_input"):
        if not noted_by(item) and _answer(item["content"]) and (last or not _is_chat(item["content"])):
            last = False
            yield item


def _answer(text: str) -> str:
    """Return what a person said, behind it the question where it answers one; "" where it says nothing."""
    dialogue = _ASKED.fullmatch(text) if text.startswith("Asked: ") else None
    answer = flat(dialogue[2] if dialogue else text, TOLD_CHARS).lstrip("-*• ")
    short = len(answer) <= REPLY_CHARS
    if short and (len(_PLACEHOLDER.sub("", answer).split()) < LEAST_ANSWER_WORDS or _spurs_on(answer)):
        return ""
    return f"{answer} (asked: {flat(dialogue[1], TOLD_CHARS // 2)})" if dialogue else answer


def _spurs_on(answer: str) -> bool:
    words = _WORD.findall(answer.casefold().replace("’", "'"))
    return bool(words) and not _NAMES.search(answer) and _SPURS.issuperset(words)


def _is_chat(text: str) -> bool:
    """Return whether `text` is a question or remark about the moment in which it was said."""
    dialogue = _ASKED.fullmatch(text) if text.startswith("Asked: ") else None
    bare = (dialogue[2] if dialogue else text).strip()
    if len(bare.split()) > CHAT_WORDS or _NAMES.search(bare):
        return False
    return bare.endswith("?") or _CHATS.match(bare) is not None


def decided(items: Sequence[Item], sessions: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Line]:
    """Yield the decisions with their reasons."""
    for item in said(items, "decision"):
        text = _answer(item["content"])
        if len(text.split()) >= LEAST_WORDS:
            yield Line("decided", text, item["metadata"]["timestamp"])
    for at, session in sessions:
        for entry in session.get("key_decisions") or []:
            what, why = flat(entry["decision"], TOLD_CHARS), flat(entry["rationale"], TOLD_CHARS // 2)
            text = " - ".join(filter(None, (what, why)))
            if _PLACEHOLDER.sub("", what).strip() and len(text.split()) >= LEAST_WORDS:
                yield Line("decided", text, at)


def still_open(items: Sequence[Item]) -> Iterator[Line]:
    """Yield the errors that nothing put right and the blockers that nothing speaks of as solved.

    Of what failed while looking around, nothing is open.
    """
    ran: set[str] = set()
    ends: list[frozenset[str]] = []
    settling = looked = 0
    for item in items:
        kind, content = item["type"], item["content"]
        if kind in ("command", "solution") and settling < LOOKED_AT_COMMANDS:
            settling += 1
            ran |= brief_commands.names_in(content)
        if kind in ("solution", "outcome") and len(ends) < LOOKED_AT:
            ends.append(topic(content[:SUMMARY_CHARS]))
        if kind not in ("error", "blocker") or item["metadata"].get("protected") or looked >= LOOKED_AT_OPEN:
            continue
        looked += 1
        text = _error(content, ran) if kind == "error" else _blocker(content, ends)
        if text:
            yield Line("open", text, item["metadata"]["timestamp"])


def _error(content: str, ran: set[str]) -> str:
    """Return an error as it is told, "" where all that failed has run since or was of no use."""
    known = brief_commands.failed(content)
    if known is None:
        return flat(content, TOLD_CHARS)
    return "" if brief_commands.names(known.parts) <= ran else brief_commands.failure(known)


def _blocker(content: str, ends: Sequence[frozenset[str]]) -> str:
    mine = topic(content)
    over = not _TROUBLE.search(_CODE.sub("", content)) or any(
        len(mine & end) >= SOLVED_AT * len(mine) for end in ends
    )
    return "" if over else flat(content, TOLD_CHARS)


def stands(items: Iterable[Item]) -> Iterator[Line]:
    """Yield the latest results; what an agent was sent to find out is one, however short."""
    for item in said(items, "outcome"):
        text = flat(_NEXT.sub("", _MARKUP.sub(" ", item["content"])), SUMMARY_CHARS)
        if len(text.split()) >= (LEAST_WORDS if noted_by(item) else LEAST_RESULT_WORDS):
            yield Line("stands", text, item["metadata"]["timestamp"])


def before(sessions: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Line]:
    """Yield what earlier sessions were about."""
    for at, session in sessions:
        yield Line("before", f"Phase {session['phase']}: {flat(session['summary'], SUMMARY_CHARS)}", at)


def done_by(items: Sequence[Item], caste: str) -> Iterator[Line]:
    """Yield what `caste` found, decided and solved last."""
    for item in items:
        if item["metadata"]["caste"] == caste and item["type"] in (
            "outcome",
            "decision",
            "solution",
            "blocker",
        ):
            yield Line("did", flat(item["content"], SUMMARY_CHARS), item["metadata"]["timestamp"])
