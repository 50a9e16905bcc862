"""The tools of aether's own memory: what each does with its arguments, and the text it answers with.

Recalling has three steps, so that a model pays only for what it reads: `recall` gives an index with the cost of each
entry, `timeline` what happened around one, `get` full texts. What is recalled is marked as memory, so that aether
never remembers its own words. Texts that are given lose such blocks, `<private>` ones and
their secrets, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Literal

from aether import clock
from aether.errors import InvalidInput, NotFound
from aether.integrations.mcp_server.answers import RESULT_CHARS, Answer, as_json, part_of
from aether.integrations.mcp_server.statements import stated
from aether.memory import phases
from aether.memory.items import items_of
from aether.memory.marking import block
from aether.memory.notes import RELEVANCE
from aether.memory.recall import gist, printed
from aether.operations import colony, edge, graph, recalling, working
from aether.operations import home as homes
from aether.operations.status import get_memory_status
from aether.shapes import JsonObject
from aether.store.documents import NAMES
from aether.text.words import counted

SOURCE = "mcp"
# An index of more lines is not read; a better query is.
MOST_LINES = 50
# Before the name of an entity of the knowledge graph, where an id is asked for.
ENTITY = "entity:"
# Entities in an index: they are few and short, and must not crowd out what happened.
MOST_ENTITIES = 3
# A name, or what a signal is about, in a list: what is longer is read elsewhere.
MOST_NAME_CHARS = 2_000
# Of the signals of a colony a dozen are felt at once.
MOST_SIGNALS_CHARS = RESULT_CHARS - 1_000


def remember(
    content: str, type: str = "observation", relevance: float | None = None, protected: bool = False,
    caste: str | None = None, *, home: Path,
) -> Answer:  # fmt: skip
    """Store one item and answer with its id; one that is held just so is not stored again.

    Raises:
        InvalidInput: nothing is left to remember, or an argument is impossible.
    """
    kept, note = stated(content)
    if not kept.strip() and content.strip():
        raise InvalidInput(
            "only what is private, or aether's own memory, was given.",
            fix="Say it in words of your own.",
            where="content",
        )
    left_out = f" {note}" if note else ""
    if held := _held(kept, type, protected, home):
        return Answer(f"Remembered already, as {held}; nothing was stored.{left_out}")
    worth = RELEVANCE.get(type, RELEVANCE["observation"]) if relevance is None else relevance
    added = working.add_working_memory_item(
        kept, type, worth, source=SOURCE, caste=caste, metadata={"protected": True} if protected else None, home=home
    )  # fmt: skip
    text = f"Remembered as {added}.{left_out}"
    if added.compression_needed:
        text += " Working memory is nearly full: call compress."
    return Answer(text)


def _held(content: str, type: str, protected: bool, home: Path) -> str:
    """Return the id of an item of a model's that says just this, and is protected if this shall be; else nothing."""
    for item in items_of(edge.read(home).documents["memory"]):
        own = item["metadata"].get("source") == SOURCE and (item["content"], item["type"]) == (content, type)
        if own and (item["metadata"].get("protected") or not protected):
            return item["id"]
    return ""


def recall(query: str, limit: int = 10, *, home: Path) -> Answer:
    """Answer with an index of what memory knows about `query`, best first.

    Raises:
        InvalidInput: the query is blank, or the limit is not from 1 to 50.
    """
    if not 1 <= limit <= MOST_LINES:
        raise InvalidInput(f"limit is {limit}.", fix=f"Use 1 to {MOST_LINES}.", where="recall")
    lines = [printed(line) for line in recalling.recall(query, limit=limit, home=home)]
    count = edge.counter_of(edge.read(home).documents["memory"])
    for match in graph.recall_entities(query, limit=MOST_ENTITIES, home=home):
        cost = count(match.text)
        lines.append(
            f"{ENTITY}{gist(match.name, MOST_NAME_CHARS)} · {gist(match.type)} · {match.at[:10] or 'undated'} · {cost} tokens · {gist(match.text)}"
        )
    if not lines:
        return Answer("Nothing in memory has these words. Others that stand in it may.")
    return _marked(lines, "Full text: get with ids. What happened around one: timeline with its id.")


def timeline(id: str, before: int = 3, after: int = 3, *, home: Path) -> Answer:
    """Answer with the entry `id` among its neighbours in time.

    Raises:
        NotFound: nothing has this id.
        InvalidInput: a number of neighbours is not from 0 to 50.
    """
    if max(before, after) > MOST_LINES:
        raise InvalidInput("that is too many.", fix=f"Use at most {MOST_LINES}.", where="timeline")
    found = recalling.timeline(id, before=before, after=after, home=home)
    lines = [f"{'> ' if line.id == id else '  '}{line.at[11:16]} {printed(line)}" for line in found]
    return _marked(lines, "Full text: get with ids.")


def get(ids: list[str], part: int = 1, *, home: Path) -> Answer:
    """Answer with entries, entities or whole documents in full.

    Raises:
        NotFound: nothing has one of these ids.
        InvalidInput: no id is given, or there is no such part.
    """
    if not ids:
        raise InvalidInput("no id is given.", fix="Take ids from recall.", where="ids")
    whole = "\n\n".join(_full(each, home) for each in ids)
    return _marked([part_of(whole, part, ask="the same ids")], "")


def _full(id: str, home: Path) -> str:
    if id in NAMES:
        return f"# {id}\n{as_json(homes.show(id, home=home))}"
    if id.startswith(ENTITY):
        return f"# {id}\n{graph.entity(id.removeprefix(ENTITY), home=home).text}"
    try:
        (entry,) = recalling.full([id], home=home)
    except NotFound as reason:
        raise NotFound(reason.what, fix="Take ids from recall.", where=reason.where) from reason
    return f"# {id} · {entry['layer']} · {entry['type']} · {entry['at'][:16]}\n{entry['text']}"


def signals(
    action: Literal["list", "emit"] = "list", type: str = "FOCUS", context: str = "", strength: float | None = None,
    caste: str | None = None, *, home: Path,
) -> Answer:  # fmt: skip
    """Answer with the signals that are felt, or deposit one.

    Raises:
        InvalidInput: there is nothing to say with it, no such type, or it may not be deposited now.
    """
    if action == "emit":
        if not context.strip():
            raise InvalidInput("context is missing.", fix="Say what the signal is about.", where="signals")
        kept, note = stated(context)
        if not kept.strip():
            raise InvalidInput(
                "only what is private, or aether's own memory, was given.",
                fix="Say it in words of your own.",
                where="context",
            )
        made = colony.emit_signal(type, kept, strength=strength, caste=caste, source=SOURCE, home=home)
        return Answer(f"{made['type']} at strength {made['strength']:g}: {made['id']}. {note}".rstrip())
    lines = [_signal_line(signal) for signal in colony.active_signals(caste=caste, home=home)]
    fitting = sum(end <= MOST_SIGNALS_CHARS for end in accumulate(len(line) + 1 for line in lines))
    others = f"{len(lines) - fitting} weaker ones are felt besides." if fitting < len(lines) else ""
    return _marked(lines[:fitting], others) if lines else Answer("No signal is felt.")


def _signal_line(signal: JsonObject) -> str:
    context = gist(signal["metadata"].get("context") or "", MOST_NAME_CHARS)
    return f"{signal['type']} {signal['effective_strength']:.2f}: {context} ({signal['created_at'][:16]})"


def phase(
    action: Literal["show", "start", "complete", "decide"] = "show", number: int | None = None, *,
    name: str | None = None, goal: str | None = None,
    decision: Literal["continue", "adjust", "redo"] | None = None, note: str | None = None, home: Path,
) -> Answer:  # fmt: skip
    """Answer with the phase of the colony's work, having done the action.

    Raises:
        InvalidInput: that cannot be done now, or the decision is missing.
    """
    current = phases.current_phase(colony.colony(home=home))
    chosen = current if number is None else number
    did = ""
    if action == "start":
        done = colony.start_phase(chosen, name=name, goal=goal, home=home)
        did = f"Phase {chosen} {'is started' if done.changed else 'was running already'}. "
    elif action == "complete":
        done = colony.complete_phase(chosen, home=home)
        did = f"Phase {chosen} {'is complete' if done.changed else 'was complete already'}. "
    elif action == "decide":
        if decision is None:
            raise InvalidInput("decision is missing.", fix="Use continue, adjust or redo.", where="phase")
        colony.decide(decision, note=note, home=home)
        did = f"Decided: {decision}. "
    return Answer(did + _phase_words(colony.colony(home=home)))


def _phase_words(state: JsonObject) -> str:
    now = state["colony_status"]
    phase = "none yet" if now["current_phase"] is None else now["current_phase"]
    text = f"State {now['state']}, phase {phase}."
    waiting = now["queen_checkin"]
    if waiting and waiting["status"] == "awaiting_review":
        text += f" Phase {waiting['phase']} awaits a decision: continue, adjust or redo."
    return text


def status(*, home: Path) -> Answer:
    """Answer with how full memory is, and where it is."""
    found = get_memory_status(home=home)
    held, short, long = found["working_memory"], found["short_term_memory"], found["long_term_memory"]
    known = graph.read_graph(home=home)
    lines = [
        f"home: {found['home']} (revision {found['revision']})",
        f"working memory: {counted(held['items'], 'items')}, {held['tokens']} of {held['max_capacity_tokens']} tokens"
        + (", compression needed: call compress" if held["compression_needed"] else ""),
        f"short-term memory: {short['sessions']} of {short['max_sessions']} sessions",
        f"long-term memory: {counted(long['patterns'], 'patterns')}",
        f"knowledge graph: {counted(len(known['entities']), 'entities')}, {counted(len(known['relations']), 'relations')}",
        f"hand-offs open: {', '.join(found['open_handoffs']) or 'none'}",
        _phase_words(colony.colony(home=home)),
    ]
    return Answer("\n".join(lines))


def _marked(lines: Sequence[str], how: str) -> Answer:
    text = block(lines, occasion="recall", at=clock.stamp(clock.now()))
    return Answer(f"{text}\n{how}" if how else text)
