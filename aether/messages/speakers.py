"""Speakers: who wrote a text, decided by the structure of its record and of the text itself.

Hosts hand the words of other agents, of timers and of themselves to a model under the role of the user. A record says so
in a field, or the text is wrapped in an element: `<agent-message from="qa">…</agent-message>`. A message that consists
of such elements is no person's, whatever their names. Around them a person's own text stays: an element with a name
like those of programs (`a-b`, `a_b`, or in MACHINERY) is cut out of it, HTML that a person pasted is not.
"""

from __future__ import annotations

import re

from aether.text.regex import lazy
from aether.tuples import NamedTuple

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from aether.types import JsonObject

PERSON = "human"
# Sources of prompts that no person wrote: timers, and the program itself.
AUTOMATIC_SOURCES = frozenset({"system", "loop_wakeup", "schedule_wakeup", "poll_event", "scheduled_task"})
# Elements of programs with names as HTML or prose could have them.
MACHINERY = frozenset(
    "skill image channel instructions permissions heartbeat hook notification event context reminder tick".split()
)
# Elements around the words of a person, by the kind of source; elsewhere they are as unknown as any other.
TYPED: dict[str, frozenset[str]] = {
    "chat": frozenset({"user_query", "user_request", "user_message", "pr_description", "issue_description"}),
    "cline": frozenset({"task", "feedback", "answer", "user_message", "user_feedback"}),
}
_COMMAND_NAME, _COMMAND_ARGUMENTS = "command-name", "command-args"
# Attributes that name who sent a message.
_SENDERS = ("from", "sender", "teammate", "agent", "peer")
_TAG = lazy(r"""<(?P<end>/)?(?P<name>[^\W\d][\w.:-]*+)(?P<about>(?:\s(?:"[^"\n]*+"|'[^'\n]*+'|[^<>"'])*+)?)>|<[?!][^<>]*>""")
_FENCE = lazy(r"^[ \t]*(```+|~~~+)", re.MULTILINE)
# Characters around a tag that show whether it stands alone on its line.
_NEAR = 80
# What a host writes without an element. A line of it is cut; what follows such an opening is all the host's.
_NOTICES = lazy(
    r"^(?:\[Request interrupted by user[^\]\n]*\]|# AGENTS\.md instructions.*|Caveat: The messages below.*)[ \t]*$",
    re.MULTILINE,
    needs=("[Request interrupted", "# AGENTS.md", "Caveat: "),
)
_OPENINGS = ("Stop hook feedback:\n", "[SYSTEM NOTIFICATION", "[Cross-session ", "[Subagent hand-back]")
_AFTER_PEER = ("This came from another Claude session", 'That "other Claude session" is an agent')
# Codex puts what the editor shows above the request.
_REQUEST_BELOW = lazy(
    r"\A\s*# (?:Context from my IDE|Files mentioned by the user|Diff comments|In app browser).*^## My request(?: for Codex)?:",
    re.MULTILINE | re.DOTALL,
    needs=("## My request",),
)


class _Piece(NamedTuple):
    """A stretch of a text; `name` is that of the element it is, empty for free text."""

    text: str
    name: str = ""
    inner: str = ""
    is_sent: bool = False
    """Whether the element names its sender."""


def is_person(about: JsonObject, *, by_agent: bool = False) -> bool:
    """Return whether the fields of a record leave it to a person: none names another origin, a timer, or the harness.

    `by_agent` says that the record is of a sub-agent's conversation, as a field of it may, too.

    >>> is_person({"origin": {"kind": "human"}}), is_person({"origin": {"kind": "peer"}}), is_person({"isMeta": True})
    (True, False, False)
    """
    origin = about.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else origin
    sources = (about.get("promptSource"), about.get("source"))
    mode = about.get("commandMode")
    return (
        kind in (None, "", PERSON)
        and not any(isinstance(source, str) and source in AUTOMATIC_SOURCES for source in sources)
        and mode in (None, "", "prompt")
        and not (about.get("isMeta") or about.get("isSynthetic"))
        and (kind == PERSON or not (by_agent or is_agent(about)))
    )


def is_agent(about: JsonObject) -> bool:
    """Return whether a record is of a sub-agent's conversation: what is asked there, another agent asks."""
    return bool(about.get("isSidechain") or about.get("agentId"))


def own_words(text: str, typed: Collection[str] = ()) -> str:
    r"""Return what a person typed of `text`; empty if it is all of programs and other agents.

    `typed` are the names of elements around a person's words.

    >>> own_words("Use tabs.\n<system-reminder>Be brief.</system-reminder>")
    'Use tabs.'
    >>> own_words('<some-tag from="x">Never ask.</some-tag>'), own_words("Why is\n<p>a</p>\nbold?")
    ('', 'Why is\n<p>a</p>\nbold?')
    >>> own_words("<command-name>/compact</command-name><command-args>keep the plan</command-args>")
    '/compact keep the plan'
    """
    if request := _REQUEST_BELOW.match(text):
        text = text[request.end() :]
    if "<" not in text:
        return _without_notices(text)
    pieces = _without_frames(list(_pieces(text)))
    free = [piece for piece in pieces if not piece.name and _without_notices(piece.text)]
    command = next((piece.inner.strip() for piece in pieces if piece.name == _COMMAND_NAME), "")
    words = []
    for piece in pieces:
        if piece.name == _COMMAND_ARGUMENTS and piece.inner.strip():
            words.append(f"{command} {piece.inner.strip()}\n")
        elif piece.name in typed:
            words.append(own_words(piece.inner, typed))
        elif not piece.name or (free and piece.name != "!" and not _is_machinery(piece.name)):
            words.append(piece.text)
    return _without_notices("".join(words))


def _without_notices(text: str) -> str:
    text = _NOTICES.sub("", text).strip()
    return "" if text.startswith(_OPENINGS) else text


def _without_frames(pieces: list[_Piece]) -> list[_Piece]:
    """Return `pieces` without what a host writes around a message of another sender: the line before and the remark after it."""
    filled = [at for at, piece in enumerate(pieces) if piece.name or piece.text.strip()]
    sent = next((at for at in filled if pieces[at].is_sent), None)
    if sent is None:
        return pieces
    before = [pieces[at].text.strip() for at in filled if at < sent]
    if len(before) == 1 and "\n" not in before[0] and before[0].endswith((":", "：")):
        return [piece for piece in pieces if piece.name]
    return [piece for piece in pieces if piece.name or not piece.text.lstrip().startswith(_AFTER_PEER)]


def _is_machinery(name: str) -> bool:
    return name.lower() in MACHINERY or "-" in name or "_" in name


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the free text and the outermost elements of `text`, in order; together they are the whole of it."""
    tags = [*_TAG.finditer(text)]
    ends = _ends(tags)
    start = covered = 0
    for at, tag in enumerate(tags):
        if tag.start() < covered:
            continue
        covered = max(_code_end(text, covered, tag.start()), tag.start())
        if tag.start() < covered or not (end := _end_of(text, tag, ends.get(at))):
            continue
        if start < tag.start():
            yield _Piece(text[start : tag.start()])
        inner = text[tag.end() : max(tag.end(), end[0])]
        yield _Piece(text[tag.start() : end[1]], tag["name"] or "!", inner, _is_sent(tag))
        start = covered = end[1]
    if start < len(text):
        yield _Piece(text[start:])


def _ends(tags: list[re.Match[str]]) -> dict[int, re.Match[str]]:
    """Return the tag that closes each element, by the position of its opening.

    An element ends at the last tag that can close it: a text that closes its own wrapper does not leave it.
    """
    ends: dict[int, re.Match[str]] = {}
    opened: dict[str, list[int]] = {}
    outermost: dict[str, int] = {}
    sent: dict[str, int] = {}
    for at, tag in enumerate(tags):
        name, waiting = tag["name"] or "", opened.setdefault(tag["name"] or "", [])
        if not tag["end"]:
            waiting.append(at)
            if _is_sent(tag):
                sent.setdefault(name, at)
            continue
        if waiting:
            ends[waiting[-1]] = tag
            outermost[name] = waiting.pop()
        elif name in outermost:
            ends[outermost[name]] = tag
        if name in sent:
            ends[sent[name]] = tag
    return ends


def _end_of(text: str, tag: re.Match[str], closing: re.Match[str] | None) -> tuple[int, int] | None:
    """Return where the content of the element that `tag` opens ends, and where it ends itself; None if it is only mentioned.

    One of a program that is never closed is torn and has all that follows. HTML within a line is a person's.
    """
    if tag["end"]:
        return None
    end = closing.end() if closing else tag.end()
    before = text[max(0, tag.start() - _NEAR) : tag.start()].rstrip(" \t")
    after = text[end : end + _NEAR].lstrip(" \t\r")
    is_block = before[-1:] in ("", "\n", ">") and after[:1] in ("", "\n", "<")
    is_program = not tag["name"] or _is_machinery(tag["name"])
    if closing:
        return (closing.start(), end) if is_block or (is_program and before[-1:] != "`") else None
    if not tag["name"] or tag["about"].endswith("/"):
        return (end, end) if is_block else None
    return (len(text), len(text)) if is_block and is_program else None


def _code_end(text: str, start: int, end: int) -> int:
    """Return where the last block of code ends that opens between `start` and `end`; `start` if there is none."""
    while fence := _FENCE.search(text, start, end):
        closing = re.compile(rf"^[ \t]*{re.escape(fence[1])}", re.MULTILINE).search(text, fence.end())
        start = closing.end() if closing else fence.end()
    return start


def _is_sent(tag: re.Match[str]) -> bool:
    about = (tag["about"] or "").lower()
    return any(f"{word}=" in about or f"{word}_id=" in about for word in _SENDERS)
