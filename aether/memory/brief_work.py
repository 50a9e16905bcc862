"""Work: what was asked, decided, changed, tried and left open, as dated lines, the newest first.

Working memory tells of the stretch since the last compression, sessions of those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from aether.memory.brief_lines import TOLD_CHARS, Line, flat
from aether.memory.brief_merge import sense
from aether.memory.notes import STANDING
from aether.shapes import Item
from aether.text.statements import is_empty_reply

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
LEAST_RESULT_WORDS = 12
# A root is told once and saves its length for each file; one below `/home/user` saves little.
ROOT_PARTS = 4
ROOT_SHARE = 0.6

_FILE = re.compile(r"(Created|Changed|Deleted) (.+?)(?: \((\d+) (edits|lines)\))?(?:: (.+))?", re.DOTALL)
_MANY = re.compile(r"[;\n]\s*(?=(?:Created|Changed|Deleted) \S|Ran `)")
_COMMAND = re.compile(r"`([^`]+)`")
_CODE = re.compile(r"`[^`]*`")
# What comes next was done long ago when this is read.
_NEXT = re.compile(
    r"\s*(?:(?:Now|So|First),? )?(?:let me|let's|I'll|I will|I need to)\b[^.!?]*[.:]?\s*\Z", re.IGNORECASE
)
_MARKUP = re.compile(r"^#+ |^-{3,}$|^```\w*$", re.MULTILINE)
_ASKED = re.compile(r"Asked: (.*?)\s*Answered: (.*)", re.DOTALL)
_HISTORY = re.compile(r"Ran `(?:git|gh) ")
_PLACEHOLDER = re.compile(r"\[[^\]]*\]")
_TROUBLE = re.compile(
    r"\b(?:fail\w*|errors?|cannot|can't|couldn't|unable|broken|breaks?|bugs?|missing|blocked|blocks?|wrong|crash\w*|"
    r"doesn't|don't work|not work\w*|stuck|denied|refused|unavailable|conflicts?|leaks?|hangs?|time[sd]? out|inconsistent)\b",
    re.IGNORECASE,
)


def rested(sessions: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Item]:
    """Yield what the newest sessions kept word for word as the items that it was, without rules and results.

    The extractive architect writes several items of one type into one entry: files and commands are told apart again;
    of requests the last words are kept, which are the newest. Of results it keeps details, which tell nothing alone.
    """
    for at, session in sessions[:RESTED_SESSIONS]:
        known = session.get("metadata") or {}
        files = known.get("files", [])
        yield from (_item("code_change", content, at) for content in reversed(files))
        yield from (_item("error", content, at) for content in known.get("open", []))
        # A session of a hand-off says of itself what it left open: its other errors are history.
        told = (
            {"outcome"}
            | ({"code_change"} if files else set())
            | ({"error"} if "compression_id" in known else set())
        )
        for entry in reversed(session.get("high_value_items") or []):
            kind = entry.get("type", "")
            if entry.get("injected") or kind in STANDING or kind in told:
                continue
            content = _tail(entry["content"]) if kind == "user_input" else entry["content"]
            yield from (_item(kind, part.strip(), at) for part in reversed(_MANY.split(content)))


def _item(type: str, content: str, at: str) -> Item:
    return cast(Item, {"type": type, "content": content, "metadata": {"timestamp": at, "caste": None}})


def _tail(text: str) -> str:
    return text if len(text) <= TOLD_CHARS else "..." + text[3 - TOLD_CHARS :].partition(" ")[2]


def said(items: Iterable[Item], type: str) -> Iterator[Item]:
    """Yield the newest items of one type."""
    found = (item for item in items if item["type"] == type and not item["metadata"].get("protected"))
    yield from (item for item, _ in zip(found, range(LOOKED_AT), strict=False))


def asked(items: Sequence[Item]) -> Iterator[Line]:
    """Yield what the person asked for; what only spurs on is left out."""
    for item in said(items, "user_input"):
        answer = _answer(item["content"])
        if answer:
            yield Line("asked", answer, item["metadata"]["timestamp"])


def _answer(text: str) -> str:
    """Return what a person said, behind it the question where it answers one; "" where it says nothing."""
    dialogue = _ASKED.fullmatch(text) if text.startswith("Asked: ") else None
    answer = flat(dialogue[2] if dialogue else text, TOLD_CHARS).lstrip("-*• ")
    short = len(answer) <= REPLY_CHARS
    if short and (len(_PLACEHOLDER.sub("", answer).split()) < LEAST_ANSWER_WORDS or is_empty_reply(answer)):
        return ""
    return f"{answer} (asked: {flat(dialogue[1], TOLD_CHARS // 2)})" if dialogue else answer


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
    """Yield the errors that nothing put right and the blockers that nothing speaks of as solved."""
    ran: set[str] = set()
    ends: list[frozenset[str]] = []
    looked = 0
    for item in items:
        if item["type"] in ("command", "solution") and len(ran) < LOOKED_AT_COMMANDS:
            ran |= _commands(item["content"])
        if item["type"] in ("solution", "outcome") and len(ends) < LOOKED_AT:
            ends.append(sense(item["content"][:SUMMARY_CHARS]).words)
        if (
            item["type"] not in ("error", "blocker")
            or item["metadata"].get("protected")
            or looked >= LOOKED_AT_OPEN
        ):
            continue
        looked += 1
        if item["type"] == "error":
            over = bool(_commands(item["content"]) & ran)
        else:
            mine = sense(item["content"]).words
            over = not _TROUBLE.search(_CODE.sub("", item["content"])) or any(
                len(mine & end) >= SOLVED_AT * len(mine) for end in ends
            )
        if not over:
            yield Line("open", flat(item["content"], TOLD_CHARS), item["metadata"]["timestamp"])


def _commands(text: str) -> set[str]:
    """Return the command that `text` names first, without its flags: a run with other flags is that command again."""
    found = _COMMAND.search(text)
    return {" ".join(word for word in found[1].split() if not word.startswith("-"))} if found else set()


def solved(items: Sequence[Item]) -> Iterator[Line]:
    """Yield the errors that were put right, with what did it."""
    for item in said(items, "solution"):
        failure, worked, way = item["content"].partition("\nWorked ")
        if worked:
            text = f"{flat(failure, TOLD_CHARS // 2)} -> worked {flat(way, TOLD_CHARS // 2)}"
            yield Line("solved", text, item["metadata"]["timestamp"])


def stands(items: Sequence[Item]) -> Iterator[Line]:
    """Yield the latest results."""
    for item in said(items, "outcome"):
        text = flat(_NEXT.sub("", _MARKUP.sub(" ", item["content"])), SUMMARY_CHARS)
        if len(text.split()) >= LEAST_RESULT_WORDS:
            yield Line("stands", text, item["metadata"]["timestamp"])


def ran(items: Sequence[Item]) -> list[Line]:
    """Return the commands that mattered, each as it was run last; how to build and test comes before what was committed."""
    found: list[Line] = []
    seen: set[str] = set()
    for item in said(items, "command"):
        names = _commands(item["content"])
        if not names & seen:
            seen |= names
            found.append(Line("ran", flat(item["content"], TOLD_CHARS), item["metadata"]["timestamp"]))
    return sorted(
        found, key=lambda line: not line.text.startswith("Ran `") or bool(_HISTORY.match(line.text))
    )


def files(items: Sequence[Item]) -> list[Line]:
    """Return the files that were changed, each once with all its edits, the last one first."""
    found: dict[str, list[Any]] = {}
    for item in items:
        match = _FILE.fullmatch(item["content"].strip()) if item["type"] == "code_change" else None
        if match:
            action, path, number, unit, about = match.groups()
            known = found.setdefault(path, [item["metadata"]["timestamp"], action, 0, ""])
            known[2] += int(number) if unit == "edits" else 1
            known[3] = known[3] or flat(about or "", TOLD_CHARS // 3)
    return [
        Line("files", f"{path} ({action.lower()}, {edits}x)" + (f": {about}" if about else ""), at)
        for path, (at, action, edits, about) in list(found.items())[:LOOKED_AT]
    ]


def root_of(lines: Sequence[Line]) -> str:
    """Return the deepest directory that holds most files of `lines`, "" where there is none worth a mention."""
    held: dict[str, int] = {}
    for line in lines:
        parts = line.text.split(" (")[0].split("/")[:-1]
        for depth in range(ROOT_PARTS, len(parts) + 1):
            directory = "/".join(parts[:depth]) + "/"
            held[directory] = held.get(directory, 0) + 1
    most = [
        root
        for root, files in held.items()
        if files >= max(2, ROOT_SHARE * len(lines)) and root.startswith("/")
    ]
    return max(most, key=lambda root: (len(root), root), default="")


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
