"""Capture: from the records of a conversation to notes, by its structure alone.

Who said something, when, and what followed decides; no text is judged by its words. Noted are a person's messages and
answers as they were, the last message of each turn of an agent and the longer ones on the way, and what the machine
showed (`tool_work`). Not noted are looking around, machinery, text that aether added, and text marked as private.
Secrets are redacted, whatever the source of the records; the key of a note does not reveal whether there was one.

`new_state` gives a state, `observe` advances it in place by one record and returns the ready notes, `finish` returns the
notes that were still open. The state is plain JSON of bounded size, so a hook can keep it between two events. `capture`
does all three for a whole transcript. A host that reports the end of a turn or of a sub-agent need not wait for the next
request: `end_turn` and `end_agent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NotRequired, TypedDict

from aether import regular
from aether.memory.capture.notes import (
    CUT,
    INTERRUPTED,
    REQUEST_CHARS,
    STATEMENT_CHARS,
    Note,
    draft,
    fact_note,
    origin,
    shorten,
    title_of,
    words_of,
)
from aether.memory.capture.tool_work import (
    close_failures,
    close_stretch,
    hand_on_plan,
    keeps_tasks,
    new_work,
    record_call,
    record_result,
    refused_call,
)
from aether.memory.items import STATES
from aether.messages.model import as_object, as_text
from aether.redact.redact import redact, redacted, without_blocks
from aether.text.cleaning import clean, without_thoughts
from aether.text.regex import lazy
from aether.types import Fact

if TYPE_CHECKING:
    from aether.memory.capture.notes import Draft, Origin
    from aether.memory.capture.tool_work import Work
    from aether.messages.records import Record

# Characters, at about four to a token: an answer of two pages, a host's summary of four.
ANSWER_CHARS = 8_000
SUMMARY_CHARS = 16_000
TASK_CHARS = 400
# A paragraph of the source has at most a quarter of it, unless it is one line: a dump, which could fill working memory.
PARAGRAPH_CHARS = 16_000
# Repetitions of one text (re-sent messages, a sub-agent's answer in the call that started it) come in the same turn.
_REMEMBERED_TEXTS = 64
_REMEMBERED_AGENTS = 64
DEFAULT_RELEVANCE = 0.5
# A request to memory itself is carried out; noted as well, it would be stored twice.
_AETHER_PROMPT = "/aether"
# The host's report to an agent that waits: the message before it ended a turn.
_NOTIFICATION = "<task-notification>"
# The host closes its summary with instructions to the model.
_SUMMARY_TAIL = lazy(
    r"\n\s*(?:If you need specific details from before compaction|(?:Please c|C)ontinue the conversation|</summary>)"
)
# Fields that the store maintains itself; an imported item starts with new ones.
_KEPT_BY_STORE = frozenset("relevance_score access_count last_accessed source caste pointer".split())


class Answer(TypedDict):
    """The last message of an agent, until it is known whether it ends the turn."""

    text: str
    message_id: str
    at: Origin
    going_on: NotRequired[bool]
    """A call came after it: what it announces was under way when the conversation was cut."""
    noted: NotRequired[bool]
    """Its turn has ended and its note is written."""


class Turn(TypedDict):
    """The stretch of work that one agent is in."""

    work: Work
    answer: Answer | None


class State(TypedDict):
    """The part of the past that the next record depends on."""

    file: str
    first_phase: int
    fixed_phase: int | None
    boundaries: int
    session: str
    opening: str
    """Digest of the first text, used if the source names no session."""
    turns: dict[str, Turn]
    """By agent; the main conversation is the empty one."""
    texts: list[str]
    """Digests of the texts noted lately."""
    title: NotRequired[str]
    """The start of the first request: the name of the conversation."""
    directory: NotRequired[str]
    """Of a session that hooks report, that of its last prompt."""


def capture(
    records: Iterable[Record], *, file: str = "", phase: int | None = None,
    phases: Callable[[int], int] = lambda segment: 1 + segment,
) -> Iterator[Draft]:  # fmt: skip
    """Yield the notes of `records`.

    The phase of a note is `phase`, or that of its stretch by `phases`: a new one starts at every compaction boundary.
    """
    state = new_state(file=file, phase=phase)
    for record in records:
        state["first_phase"] = phases(state["boundaries"]) - state["boundaries"]
        yield from observe(state, record)
    state["first_phase"] = phases(state["boundaries"]) - state["boundaries"]
    yield from finish(state)


def new_state(*, file: str = "", phase: int | None = None) -> State:
    """Return the state before the first record."""
    return State(
        file=file, first_phase=1, fixed_phase=phase, boundaries=0, session="", opening="", turns={}, texts=[]
    )


def observe(state: State, record: Record) -> list[Draft]:
    """Advance `state` by one record and return the notes that are ready."""
    notes: list[Draft] = []
    if not state["opening"] and record.text:
        state["opening"] = regular.digest(record.text.encode("utf-8", "surrogatepass"))[:16]
    if record.session != state["session"]:
        if state["session"]:  # another conversation in the same file
            notes += finish(state)
            state["title"] = ""
        state["session"] = record.session
    if record.kind == "boundary":
        work = _turn(state, "")["work"]
        notes += finish(state)
        state["boundaries"] += 1
        hand_on_plan(work, _turn(state, "")["work"])  # the list of tasks outlives the compaction
    elif record.kind == "system":
        notes += _notice(state, record)
    elif record.kind == "result":
        notes += _new_items(state, record_result(_turn(state, record.agent)["work"], record))
    elif record.kind in _HANDLERS:
        notes += _HANDLERS[record.kind](state, record, origin(record, state["opening"]))
    if len(state["turns"]) > _REMEMBERED_AGENTS:
        notes += _end_of_agents(state)
    return notes


def finish(state: State) -> list[Draft]:
    """Close every open stretch of work and return the notes that were waiting for more."""
    notes = _end_of_agents(state) + _end_of_turn(state, "", cut=True)
    main = state["turns"].pop("", None)
    return notes + (_new_items(state, close_failures(main["work"])) if main else [])


def end_turn(state: State) -> list[Draft]:
    """Return the notes of the main conversation's turn that has just ended.

    Failures stay open, because the next turn may fix them.
    """
    answer = _turn(state, "")["answer"]
    notes = _end_of_turn(state, "")
    if answer:
        _turn(state, "")["answer"] = Answer(**{**answer, "noted": True})
    return notes


def end_agent(state: State, agent: str) -> list[Draft]:
    """Return the notes of a sub-agent that has just ended."""
    return _end_of_agent(state, agent) if agent in state["turns"] else []


def _request(state: State, record: Record, place: Origin) -> list[Draft]:
    text = words_of(record.text)
    if record.agent:
        notes = end_agent(state, record.agent)
        task = Note(place, shorten(text, TASK_CHARS), "observation", "task", role="said")
        return notes + (_new_items(state, [task]) if text else [])
    if not text:
        return _notice(state, record)
    notes = _end_of_agents(state) + _end_of_turn(state, "")
    _turn(state, "")  # which answers it
    state["title"] = state.get("title") or title_of(text)
    command = text.split(maxsplit=1)[0]
    if command == _AETHER_PROMPT or command.startswith(f"{_AETHER_PROMPT}:"):
        return notes
    request = shorten(text, REQUEST_CHARS)
    return notes + _new_items(state, [Note(place, request, "user_input", "said", "person", "request")])


def _notice(state: State, record: Record) -> list[Draft]:
    return end_turn(state) if record.text.lstrip().startswith(_NOTIFICATION) else []


def _answered(state: State, record: Record, place: Origin) -> list[Draft]:
    """Note a person's answer with its question and options."""
    choice = words_of(record.text)
    if not choice:
        return []
    arguments, options = record.arguments, record.arguments.get("options")
    question = redact(clean(as_text(arguments.get("question"))))
    answer = Fact(
        kind="answer", question=shorten(question, REQUEST_CHARS),
        options=[*filter(None, map(_option, options if isinstance(options, list) else []))],
        choice=shorten(choice, REQUEST_CHARS),
    )  # fmt: skip
    note = fact_note(place, answer, "decision", f"answered {question}", evidence="person", role="request")
    return _new_items(state, [note])


def _option(option: object) -> str:
    return as_text(option) or as_text(as_object(option).get("label"))


def _refused(state: State, record: Record, place: Origin) -> list[Draft]:
    """Note the reason for which a person refused a call, with that call; the message before is what the person read last."""
    turn = _turn(state, record.agent)
    call = refused_call(turn["work"], record.call_id)
    reason = words_of(record.text)
    if not reason:
        return []
    before, turn["answer"] = turn["answer"], None
    refusal = Fact(kind="answer", choice=shorten(reason, REQUEST_CHARS)) | call
    note = fact_note(place, refusal, "user_input", "refused", evidence="person", role="request")
    return _new_items(state, [*_last_message(before), note])


def _statement(state: State, record: Record, place: Origin) -> list[Draft]:
    text = words_of(record.text)
    if not text:
        return []
    turn = _turn(state, record.agent)
    before = turn["answer"]
    if before and record.message_id and before["message_id"] == record.message_id:
        joined = f"{before['text']}\n\n{text}"
        turn["answer"] = Answer(text=joined, message_id=record.message_id, at=before["at"])
        return []
    turn["answer"] = Answer(text=text, message_id=record.message_id, at=place)
    if not before or before.get("noted"):
        return []
    # The message before did not end the turn. An architect needs it: decisions often are in half a sentence before an edit.
    statement = shorten(before["text"], STATEMENT_CHARS)
    return _new_items(state, [Note(before["at"], statement, "observation", "stated", role="said")])


def _end_of_turn(state: State, agent: str, *, cut: bool = False) -> list[Draft]:
    turn = state["turns"].get(agent)
    if turn is None:
        return []
    answer, turn["answer"] = turn["answer"], None
    return _new_items(state, close_stretch(turn["work"]) + _last_message(answer, cut=cut))


def _last_message(answer: Answer | None, *, cut: bool = False) -> list[Note]:
    """Return the note of the last message of a turn; with `cut` the conversation was cut off there, if work followed it."""
    if not answer or answer.get("noted"):
        return []
    fate = (CUT if cut else INTERRUPTED) if answer.get("going_on") else ""
    message = shorten(answer["text"], ANSWER_CHARS)
    return [Note(answer["at"], message, "outcome", "answered", role="answer", fate=fate)]


def _end_of_agents(state: State) -> list[Draft]:
    """Close the stretches of all sub-agents: their work is part of the turn that ends."""
    return [note for agent in [*filter(None, state["turns"])] for note in _end_of_agent(state, agent)]


def _end_of_agent(state: State, agent: str) -> list[Draft]:
    notes = _end_of_turn(state, agent)
    return notes + _new_items(state, close_failures(state["turns"].pop(agent)["work"]))


def _summary(state: State, record: Record, place: Origin) -> list[Draft]:
    text = words_of(without_thoughts(record.text))
    text = shorten(_SUMMARY_TAIL.split(text, maxsplit=1)[0].strip(), SUMMARY_CHARS)
    return _new_items(state, [Note(place, text, "observation", "summary", role="summary")]) if text else []


def _paragraph(state: State, record: Record, place: Origin) -> list[Draft]:
    text = shorten(words_of(record.text), PARAGRAPH_CHARS)
    return _new_items(state, [Note(place, text, "observation", "paragraph")]) if text else []


def _item(state: State, record: Record, place: Origin) -> list[Draft]:
    """Return an item as written, with its origin added."""
    arguments = record.arguments
    metadata = as_object(arguments.get("metadata"))
    text = redact(without_blocks(record.text))
    if metadata.get("injected") or arguments.get("injected") or not text.strip():
        return []
    score = arguments.get("relevance_score", metadata.get("relevance_score", DEFAULT_RELEVANCE))
    phase = metadata.get("phase") if state["fixed_phase"] is None else None
    item = draft(
        Note(place, text, arguments["type"], "item"),
        file=state["file"],
        phase=phase if isinstance(phase, int) else _phase(state),
        relevance=score if isinstance(score, (int, float)) else DEFAULT_RELEVANCE,
    )
    item["source"] = as_text(arguments.get("source", metadata.get("source"))) or item["source"]
    item["caste"] = as_text(arguments.get("caste", metadata.get("caste"))) or None
    metadata_of_source = {name: value for name, value in metadata.items() if name not in _KEPT_BY_STORE}
    item["metadata"] = {**redacted(metadata_of_source), **item["metadata"]}
    return [item]


def _call(state: State, record: Record, place: Origin) -> list[Draft]:
    turn = _turn(state, record.agent)
    if turn["answer"] and not keeps_tasks(record.tool):
        turn["answer"]["going_on"] = True
    record_call(turn["work"], record, place)
    return []


_HANDLERS: dict[str, Callable[[State, Record, Origin], list[Draft]]] = {
    "user": _request, "answer": _answered, "refusal": _refused, "assistant": _statement, "call": _call,
    "summary": _summary, "text": _paragraph, "item": _item,
}  # fmt: skip


def _new_items(state: State, notes: list[Note]) -> list[Draft]:
    """Return the items of `notes`, without texts that were noted since the person's last message: a host repeats itself.

    What is said again after another message of the person is noted again, because the later words count. A state that comes back is noted again: the newest note of a plan or work tree is the one that holds.
    """
    items = []
    for note in notes:
        digest = regular.digest(f"{note.kind}\0{note.content}".encode("utf-8", "surrogatepass"))[:16]
        if note.evidence == "person" and state["texts"][-1:] != [digest]:  # not the same message, sent again
            state["texts"] = []
        if digest in state["texts"] and note.role not in STATES:
            continue
        state["texts"] = [*state["texts"][1 - _REMEMBERED_TEXTS :], digest]
        items.append(draft(note, file=state["file"], phase=_phase(state), title=state.get("title", "")))
    return items


def _phase(state: State) -> int:
    fixed = state["fixed_phase"]
    return state["first_phase"] + state["boundaries"] if fixed is None else fixed


def _turn(state: State, agent: str) -> Turn:
    return state["turns"].setdefault(agent, Turn(work=new_work(), answer=None))
