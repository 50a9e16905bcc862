"""Threads: a captured conversation as a person reads it, made of the moments that memory keeps of it.

What a person and an agent wrote comes from passages where an import kept them, else from the requests and results that
were noted. Everything else of the conversation (calls, changed files, errors, decisions) is folded under the turn
that it follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from aether.memory.capture.passages import AGENT, ASKED, HOST
from aether.memory.items import HISTORY, PERSON, passage_place
from aether.memory.timeline import Moment

# Who speaks in a note of a conversation of which no passage is kept, by the kind of its moment.
_SPEAKER_OF_KIND = {"request": PERSON, "result": AGENT}


class Turn(NamedTuple):
    """One message of a thread, with the notes up to the next one."""

    speaker: str
    """`person`, `agent` or `host`; empty before the first message."""
    at: str
    text: str
    """Markdown, as it was written."""
    line: int
    """Line of the transcript; 0 if unknown."""
    ids: tuple[str, ...]
    """Of the passages, or of the item, that hold the text."""
    notes: tuple[Moment, ...]

    def holds(self, id: str) -> bool:
        """Return whether the item `id` is part of this turn."""
        return id in self.ids or any(note.id == id for note in self.notes)


class ThreadRow(NamedTuple):
    """One captured conversation in a list."""

    conversation: str
    title: str
    project: str
    first: str
    """Time of its first moment; empty if unknown."""
    last: str
    messages: int
    """Passages; requests and results if there are none."""
    notes: int


def thread(moments: Iterable[Moment]) -> list[Turn]:
    """Return the turns of one conversation, oldest first; every moment is in exactly one turn."""
    ordered = sorted(moments, key=_place)
    has_passages = any(moment.type == HISTORY for moment in ordered)
    groups: list[tuple[str, list[Moment], list[Moment]]] = []  # speaker, parts of the message, notes
    for moment in ordered:
        speaker = _speaker(moment, has_passages=has_passages)
        if groups and not speaker:
            groups[-1][2].append(moment)
        elif groups and _continues(groups[-1], moment, speaker):
            groups[-1][1].append(moment)
        else:
            groups.append((speaker, [moment], []) if speaker else ("", [], [moment]))
    return [_turn(speaker, parts, notes) for speaker, parts, notes in groups]


def _turn(speaker: str, parts: list[Moment], notes: list[Moment]) -> Turn:
    first, text = (parts or notes)[0], "\n\n".join(map(_words, parts))
    return Turn(
        speaker, first.at, text, _line(first) if parts else 0, tuple(part.id for part in parts), tuple(notes)
    )


def thread_rows(moments: Iterable[Moment]) -> list[ThreadRow]:
    """Return the conversations that `moments` name, the one that went on last first."""
    by_conversation: dict[str, list[Moment]] = {}
    for moment in moments:
        if moment.conversation:
            by_conversation.setdefault(moment.conversation, []).append(moment)
    rows = [_row(name, members) for name, members in by_conversation.items()]
    return sorted(rows, key=lambda row: (row.last, row.conversation), reverse=True)


def _row(conversation: str, members: Sequence[Moment]) -> ThreadRow:
    has_passages = any(moment.type == HISTORY for moment in members)
    times = sorted(moment.at for moment in members if moment.at) or [""]
    messages = sum(bool(_speaker(moment, has_passages=has_passages)) for moment in members)
    return ThreadRow(
        conversation,
        next((moment.title for moment in members if moment.title), ""),
        next((moment.project for moment in members if moment.project), ""),
        times[0], times[-1], messages, len(members) - messages,
    )  # fmt: skip


def _place(moment: Moment) -> tuple[str, int, bool, int]:
    """Return the place in the conversation; a message comes before the notes that were made of its line."""
    place = passage_place(moment.id) if moment.type == HISTORY else None
    return (moment.at, _line(moment), place is None, place.part if place else 0)


def _line(moment: Moment) -> int:
    line = moment.pointer.get("line")
    return line if isinstance(line, int) else 0


def _speaker(moment: Moment, *, has_passages: bool) -> str:
    if moment.type == HISTORY:
        return moment.speaker if moment.speaker in (PERSON, AGENT, HOST) else AGENT
    return "" if has_passages else _SPEAKER_OF_KIND.get(moment.kind, "")


def _continues(group: tuple[str, list[Moment], list[Moment]], moment: Moment, speaker: str) -> bool:
    """Return whether a passage is the next part of the message of `group`: a long message is kept in parts."""
    said_by, parts, notes = group
    return (
        moment.type == HISTORY and said_by == speaker and not notes
        and _line(moment) > 0 and (parts[0].at, _line(parts[0])) == (moment.at, _line(moment))
    )  # fmt: skip


def _words(moment: Moment) -> str:
    """Return the text without the request that a passage of an agent names in its first line."""
    if moment.type == HISTORY and moment.text.startswith(ASKED):
        return moment.text.partition("\n")[2] or moment.text
    return moment.text
