"""Speakers: who wrote a text, decided by the structure of its record and of the text itself.

Hosts hand the words of other agents, of timers and of themselves to a model under the role of the user. A record says so
in a field, or the text is wrapped in an element: `<agent-message from="qa">…</agent-message>`. A message that consists
of such elements is no person's, whatever their names. Around them a person's own text stays: an element with a name
like those of programs (`a-b`, `a_b`, or one of few others) is cut out of it, HTML that a person pasted is not.
"""

from __future__ import annotations

import re

from aether.text.cleaning import typed_command
from aether.text.elements import Piece, is_program, pieces_of
from aether.text.regex import lazy

TYPE_CHECKING = False  # that of typing costs a hook milliseconds
if TYPE_CHECKING:
    from collections.abc import Collection

    from aether.types import JsonObject

PERSON = "human"
# Sources of prompts that no person wrote: timers, and the program itself.
AUTOMATIC_SOURCES = frozenset({"system", "loop_wakeup", "schedule_wakeup", "poll_event", "scheduled_task"})
# Elements around the words of a person, by the kind of source; elsewhere they are as unknown as any other.
TYPED: dict[str, frozenset[str]] = {
    "chat": frozenset({"user_query", "user_request", "user_message", "pr_description", "issue_description"}),
    "cline": frozenset({"task", "feedback", "answer", "user_message", "user_feedback"}),
}
# What a host writes without an element. A line of it is cut; what follows such an opening is all the host's.
_NOTICES = lazy(
    r"^(?:\[Request interrupted by user[^\]\n]*\]|# AGENTS\.md instructions.*|Caveat: The messages below.*)[ \t]*$",
    re.MULTILINE,
)
# How a host starts the summary that it puts in the place of an earlier conversation.
CONTINUED = "This session is being continued from a previous conversation"
_OPENINGS = (
    "Stop hook feedback:\n", "[SYSTEM NOTIFICATION", "[Cross-session ", "[Subagent hand-back]", CONTINUED,
)  # fmt: skip
_AFTER_PEER = ("This came from another Claude session", 'That "other Claude session" is an agent')
# Codex puts what the editor shows above the request.
_REQUEST_BELOW = lazy(
    r"\A\s*# (?:Context from my IDE|Files mentioned by the user|Diff comments|In app browser).*^## My request(?: for Codex)?:",
    re.MULTILINE | re.DOTALL,
)


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
    pieces = _without_frames(list(pieces_of(text)))
    free = [piece for piece in pieces if not piece.name and _without_notices(piece.text)]
    words = [typed_command(pieces)]
    for piece in pieces:
        if piece.name in typed:
            words.append(own_words(piece.inner, typed))
        elif not piece.name or (free and piece.name != "!" and not is_program(piece.name)):
            words.append(piece.text)
    return _without_notices("".join(words))


def _without_notices(text: str) -> str:
    text = _NOTICES.sub("", text).strip()
    return "" if text.startswith(_OPENINGS) else text


def _without_frames(pieces: list[Piece]) -> list[Piece]:
    """Return `pieces` without what a host writes around a message of another sender: the line before and the remark after it."""
    sent = next((index for index, piece in enumerate(pieces) if piece.is_sent), None)
    if sent is None:
        return pieces
    texts = [piece.text.strip() for piece in pieces[:sent] if piece.name or piece.text.strip()]
    if len(texts) == 1 and "\n" not in texts[0] and texts[0].endswith((":", "：")):
        return []
    # Up to the last tag of its name all may be a message that closes its wrapper and opens it again.
    closing = f"</{pieces[sent].name}"
    last = max((index for index, piece in enumerate(pieces) if closing in piece.text), default=sent)
    remark = "" if pieces[last].name else pieces[last].text.rpartition(closing)[2].partition(">")[2]
    following = [Piece(remark), *pieces[last + 1 :]]
    return pieces[:sent] + [piece for piece in following if not piece.text.lstrip().startswith(_AFTER_PEER)]
