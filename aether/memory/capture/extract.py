"""Capture: from the records of a conversation to the notes that a colleague would have taken.

Noted are requests and demands, decisions and their results, errors together with their fixes, the changed files and
the relevant commands of each stretch of work, and the answer at the end of a turn. Not noted are looking around, file
dumps, machinery, text that aether added, and text marked as private. Secrets are redacted, whatever the source of the
records; the key of a note does not reveal whether there was one.

The rules work record by record: `new_state` gives a state, `observe` advances it in place and returns the ready notes,
`finish` returns the notes that were still open. The state is plain JSON of bounded size, so a hook can keep it between
two events. `capture` does all three for a whole transcript. A host that reports the end of a turn or of a sub-agent
need not wait for the next request: `end_turn` and `end_agent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from aether.hints import NotRequired
from aether.memory.capture.notes import (
    CUT,
    INTERRUPTED,
    RULE_TYPES,
    STATEMENT_CHARS,
    Draft,
    Note,
    Origin,
    Role,
    draft,
    origin,
    person_notes,
    shorten,
    title_of,
)
from aether.memory.capture.tool_work import (
    Tree,
    Work,
    close_failures,
    close_stretch,
    close_tree,
    hand_on_plan,
    keeps_tasks,
    leave_steps,
    new_tree,
    new_work,
    record_call,
    record_result,
)
from aether.memory.items import STATES
from aether.messages.model import as_object, as_text
from aether.messages.records import Record
from aether.messages.tool_calls import words_of_refusal
from aether.redact.redact import redact, redacted, without_blocks
from aether.regular import sha256
from aether.text.accounts import goes_on, looks_on, names_step
from aether.text.choices import settled
from aether.text.classify import (
    asks_for_decision,
    closing_question,
    is_account,
    is_empty_reply,
    is_reply,
    is_thanks,
    kind_of_paragraph,
    message_by_kind,
    statements,
)
from aether.text.cleaning import SUMMARY_HEAD, clean, without_echoes, without_thoughts
from aether.text.regex import lazy
from aether.text.words import sentences
from aether.tuples import TypedDict

# Characters, at about four to a token: an answer of two pages.
ANSWER_CHARS = 4_000
SUMMARY_CHARS = 6_000
TASK_CHARS = 400
# A paragraph of the source has at most a quarter of it, unless it is one line: a dump, which could fill working memory.
PARAGRAPH_CHARS = 16_000
# Repetitions of one text (re-sent messages, a sub-agent's answer in the call that started it) come in the same turn.
_REMEMBERED_TEXTS = 64
_REMEMBERED_AGENTS = 64
DEFAULT_RELEVANCE = 0.5
# A request to memory itself is carried out; noted as well, it would be stored twice.
_AETHER_PROMPT = lazy(r"/aether(?::\S+)?(?:\s|\Z)", needs=("/aether",))
_SUMMARY_PARTS: tuple[tuple[str, Role], ...] = (
    ("pending", "pending"), ("current work", "current"), ("next step", "next"),
)  # fmt: skip
# The host closes its summary with instructions.
_SUMMARY_TAIL = lazy(
    r"\n\s*(?:If you need specific details from before compaction|Please continue the conversation|Continue the conversation|</summary>)"
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
    """Its turn has ended and its note is written; it is kept for the question in it."""


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
    spoken: bool
    turns: dict[str, Turn]
    """By agent; the main conversation is the empty one."""
    texts: list[str]
    """Digests of the texts noted lately."""
    tree: NotRequired[Tree]
    """The files under version control."""
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
        file=file, first_phase=1, fixed_phase=phase, boundaries=0, session="", opening="",
        spoken=False, turns={}, texts=[],
    )  # fmt: skip


def observe(state: State, record: Record) -> list[Draft]:
    """Advance `state` by one record and return the notes that are ready."""
    notes: list[Draft] = []
    if not state["opening"] and record.text:
        state["opening"] = sha256(record.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    if record.session != state["session"]:
        if state["session"]:  # another conversation in the same file
            notes += finish(state)
            state["spoken"], state["title"], state["tree"] = False, "", new_tree()
        state["session"] = record.session
    if record.kind == "boundary":
        work = _turn(state, "")["work"]
        notes += finish(state)
        state["boundaries"] += 1
        hand_on_plan(work, _turn(state, "")["work"])  # the list of tasks outlives the compaction
    elif record.kind == "result":
        notes += _result(state, record)
    elif record.kind in _HANDLERS:
        notes += _HANDLERS[record.kind](state, record, origin(record, state["opening"]))
    if len(state["turns"]) > _REMEMBERED_AGENTS:
        notes += _end_of_agents(state)
    state["spoken"] = state["spoken"] or record.kind in {"user", "assistant", "call"}
    return notes


def finish(state: State) -> list[Draft]:
    """Close every open stretch of work and return the notes that were waiting for more."""
    notes = _end_of_agents(state) + _end_of_turn(state, "", cut=True)
    main = state["turns"].pop("", None)
    return notes + (_new_items(state, close_failures(main["work"])) if main else [])


def end_turn(state: State) -> list[Draft]:
    """Return the notes of the main conversation's turn that has just ended.

    Failures stay open, because the next turn may fix them, and so does a question, because the next request may answer
    it.
    """
    answer = _turn(state, "")["answer"]
    notes = _end_of_turn(state, "")
    if answer:
        _turn(state, "")["answer"] = Answer(**{**answer, "noted": True})
    return notes


def end_agent(state: State, agent: str) -> list[Draft]:
    """Return the notes of a sub-agent that has just ended."""
    return _end_of_agent(state, agent) if agent in state["turns"] else []


_NOTIFICATION = "<task-notification>"


def _request(state: State, record: Record, at: Origin) -> list[Draft]:
    text = _cleaned(record)
    if record.agent:
        notes = _end_of_agent(state, record.agent) if record.agent in state["turns"] else []
        task = Note(at, f"Task: {shorten(text, TASK_CHARS)}", "observation", "task")
        return notes + (_new_items(state, [task]) if text else [])
    if not text:
        # The host reports to an agent that waits: the message before ended a turn.
        return end_turn(state) if record.text.lstrip().startswith(_NOTIFICATION) else []
    before = _turn(state, "")["answer"]
    notes = _end_of_agents(state) + _end_of_turn(state, "")
    work = _turn(state, "")["work"]
    if "reported" in work and before and _is_final(before):
        notes += _new_items(state, leave_steps(work, at))
    state["title"] = state.get("title") or title_of(text)
    return notes + _new_items(state, words_of_person(text, before["text"] if before else "", at))


def words_of_person(text: str, before: str, at: Origin) -> list[Note]:
    """Return the notes of a person's message: what it settles of the message `before` it, itself, and its rules."""
    if _AETHER_PROMPT.match(text):
        return []
    choice, parts = settled(text, before), message_by_kind(text)
    chosen = []
    rules = [part for part in parts if part[0] in RULE_TYPES]
    own = choice.text if choice and choice.own else ""
    if choice and not any(own and (own in rule or rule in own) for _, rule in rules):
        said = "" if choice.own else shorten(text, STATEMENT_CHARS)
        alone = not choice.own or choice.text == text.strip()
        chosen = [
            Note(
                at, choice.with_answer(said), "decision", "settled", by_person=True, reply=said,
                role="request" if alone else "",
            )
        ]  # fmt: skip
        if alone:
            return chosen + person_notes(at, rules)
    asked = closing_question(before) if is_reply(text) else ""
    if asked and (asks_for_decision(asked) or not is_thanks(text)):
        dialogue = f"Asked: {asked}\nAnswered: {text}"
        parts = [("user_input", dialogue), *rules]
    elif is_empty_reply(text):
        return chosen
    return chosen + person_notes(at, parts)


def _statement(state: State, record: Record, at: Origin) -> list[Draft]:
    text = _cleaned(record)
    if not text:
        return []
    turn = _turn(state, record.agent)
    before = turn["answer"]
    if before and record.message_id and before["message_id"] == record.message_id:
        whole = f"{before['text']}\n\n{text}"
        turn["answer"] = Answer(text=whole, message_id=record.message_id, at=before["at"])
        return []
    turn["answer"] = Answer(text=text, message_id=record.message_id, at=at)
    if not before or before.get("noted"):
        return []
    # The message before did not end the turn: it is noted for search, and as the reason of an edit that followed.
    edited = turn["work"].pop("edited", False)
    if not edited and next(statements(before["text"]), None) is None:
        return []
    role: Role = "change" if edited else "said"
    said = shorten(before["text"], STATEMENT_CHARS)
    return _new_items(state, [Note(before["at"], said, "observation", "stated", role=role)])


def _end_of_turn(state: State, agent: str, *, cut: bool = False) -> list[Draft]:
    turn = state["turns"].get(agent)
    if turn is None:
        return []
    notes = close_stretch(turn["work"])
    if not agent and "tree" in state:
        notes += close_tree(state["tree"], turn["work"]["calls"].values())
    answer, turn["answer"] = turn["answer"], None
    return _new_items(state, notes + _account(answer, cut=cut))


def _account(answer: Answer | None, *, cut: bool = False) -> list[Note]:
    """Return the note of the last message of a turn, none if it says nothing that lasts.

    With `cut` the conversation was cut off there, if the work went on after it.
    """
    if not answer or answer.get("noted"):
        return []
    says = is_account(answer["text"]) or any(map(names_step, sentences(answer["text"])))
    if not says and not answer.get("going_on"):
        return []
    said = shorten(answer["text"], ANSWER_CHARS)
    stopped = cut and (answer.get("going_on") or goes_on(answer["text"]))
    fate = CUT if stopped or looks_on(answer["text"]) else INTERRUPTED if answer.get("going_on") else ""
    return [Note(answer["at"], said, "outcome", "answered", role="answer", fate=fate)]


def _is_final(answer: Answer) -> bool:
    """Return whether an answer ended its turn as a report, and asks nothing."""
    said = answer["text"]
    return not answer.get("going_on") and is_account(said) and not closing_question(said)


def _end_of_agents(state: State) -> list[Draft]:
    """Close the stretches of all sub-agents: their work is part of the turn that ends."""
    return [note for agent in [*filter(None, state["turns"])] for note in _end_of_agent(state, agent)]


def _end_of_agent(state: State, agent: str) -> list[Draft]:
    notes = _end_of_turn(state, agent)
    return notes + _new_items(state, close_failures(state["turns"].pop(agent)["work"]))


def _summary(state: State, record: Record, at: Origin) -> list[Draft]:
    # The content of a summary has been noted already, unless the transcript starts with it; not so its account of the
    # work in progress.
    text = _cleaned(record._replace(text=without_thoughts(record.text)))
    if not text:
        return []
    notes = [
        Note(at, shorten(body, SUMMARY_CHARS), "observation", f"summary {role}", role=role)
        for role, body in sections_of_summary(text).items()
    ]
    if not state["spoken"]:
        state.setdefault("tree", new_tree())["partial"] = True
        notes.insert(0, Note(at, shorten(text, SUMMARY_CHARS), "observation", "summary", role="summary"))
    return _new_items(state, notes)


def sections_of_summary(text: str) -> dict[Role, str]:
    r"""Return what a host's own summary says about the work in progress, the open tasks, and the next step.

    >>> sections_of_summary("6. Pending Tasks:\n   - push\n\n7. Current Work:\n   Fixed a.py.\n")
    {'pending': '- push', 'current': 'Fixed a.py.'}
    """
    found: dict[Role, str] = {}
    heads = [*SUMMARY_HEAD.finditer(text)]
    for at, head in enumerate(heads):
        end = heads[at + 1].start() if at + 1 < len(heads) else len(text)
        name = head[1].casefold()
        role = next((role for words, role in _SUMMARY_PARTS if words in name), None)
        body = _SUMMARY_TAIL.split(text[head.end() : end], maxsplit=1)[0].strip()
        if role and body:
            found[role] = body
    return found


def _paragraph(state: State, record: Record, at: Origin) -> list[Draft]:
    text = _cleaned(record)
    kind = kind_of_paragraph(text) if text else ""
    said = shorten(text, PARAGRAPH_CHARS)
    return _new_items(state, [Note(at, said, kind, "paragraph")]) if kind else []


def _item(state: State, record: Record, at: Origin) -> list[Draft]:
    """Return an item as written, with its origin added."""
    given = record.arguments
    metadata = as_object(given.get("metadata"))
    text = redact(without_blocks(record.text))
    if metadata.get("injected") or given.get("injected") or not text.strip():
        return []
    score = given.get("relevance_score", metadata.get("relevance_score", DEFAULT_RELEVANCE))
    phase = metadata.get("phase") if state["fixed_phase"] is None else None
    found = draft(
        Note(at, text, given["type"], "item"),
        file=state["file"],
        phase=phase if isinstance(phase, int) else _phase(state),
        relevance=score if isinstance(score, (int, float)) else DEFAULT_RELEVANCE,
    )
    found["source"] = as_text(given.get("source", metadata.get("source"))) or found["source"]
    found["caste"] = as_text(given.get("caste", metadata.get("caste"))) or None
    own = {name: value for name, value in metadata.items() if name not in _KEPT_BY_STORE}
    found["metadata"] = {**redacted(own), **found["metadata"]}
    return [found]


def _call(state: State, record: Record, at: Origin) -> list[Draft]:
    turn = _turn(state, record.agent)
    if turn["answer"] and not keeps_tasks(record.tool):
        turn["answer"]["going_on"] = True
    record_call(turn["work"], record, at)
    return []


def _result(state: State, record: Record) -> list[Draft]:
    turn = _turn(state, record.agent)
    notes = record_result(turn["work"], record, state.setdefault("tree", new_tree()))
    if words := words_of_refusal(record.text):
        before, turn["answer"] = turn["answer"], None
        # What the person refused with words is what the person read last.
        notes += _account(before)
        at = origin(record, state["opening"])
        notes += words_of_person(redact(clean(words)), before["text"] if before else "", at)
    return _new_items(state, notes)


_HANDLERS: dict[str, Callable[[State, Record, Origin], list[Draft]]] = {
    "user": _request, "assistant": _statement, "call": _call, "summary": _summary, "text": _paragraph, "item": _item,
}  # fmt: skip


def _cleaned(record: Record) -> str:
    """Return the text of a record without machinery, private parts and secrets, before it is shortened."""
    return redact(without_echoes(clean(record.text)).strip())


def _new_items(state: State, notes: list[Note]) -> list[Draft]:
    """Return the items of `notes`, without texts that were noted since the person's last message: a host repeats itself.

    What is said again after another message of the person is noted again, because the later words count. A state that comes back is noted again: the newest note of a plan or work tree is the one that holds.
    """
    made = []
    digests = [_digest_of(note) for note in notes]
    said = [digest for note, digest in zip(notes, digests, strict=True) if note.by_person]
    for note, digest in zip(notes, digests, strict=True):
        if note.by_person and said:
            if state["texts"][-len(said) :] != said:  # not the same message, sent again
                state["texts"] = []
            said = []
        if digest in state["texts"] and note.role not in STATES:
            continue
        state["texts"] = [*state["texts"][1 - _REMEMBERED_TEXTS :], digest]
        made.append(draft(note, file=state["file"], phase=_phase(state), title=state.get("title", "")))
    return made


def _digest_of(note: Note) -> str:
    return sha256(f"{note.kind}\0{note.content}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _phase(state: State) -> int:
    fixed = state["fixed_phase"]
    return state["first_phase"] + state["boundaries"] if fixed is None else fixed


def _turn(state: State, agent: str) -> Turn:
    return state["turns"].setdefault(agent, Turn(work=new_work(), answer=None))
