"""Forms: the content of a conversation at each level, and how much of it that keeps.

Key points and summaries are whole sentences of the conversation, in their order, chosen by what they carry
(`text.selection`): names, numbers, rare words; more of a person, at both ends, and in a question with its answer. What must
be kept is in every level: protected messages, goals and locked decisions. Deterministic; the numbers are measured, never
assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import groupby, pairwise
from typing import NamedTuple

from aether import clock
from aether.archive.retention import TOPIC_HITS, last_used, score, topic_hits
from aether.archive.shapes import Conversation, Level, Said, said, times_are_inside
from aether.archive.shapes import level as level_named
from aether.errors import InvalidInput, shown
from aether.messages.content import as_json
from aether.messages.convert import META
from aether.messages.model import as_arguments
from aether.messages.shell import is_notable, outcome_line, short_command
from aether.messages.tool_calls import file_changes, shell_command
from aether.text.identifiers import identifiers
from aether.text.regex import lazy
from aether.text.selection import Unit, asks, choose, contents, units_of
from aether.text.summary_checks import Proven, model_fault, proven_lines, without_quotes
from aether.text.words import sentences, stems, words
from aether.types import Counter as TokenCounter
from aether.types import JsonObject

# Of the characters of speech. Beside it, of those of tools, but never more than a part of what is kept of speech, or a page.
SHARES: dict[Level, float] = {"key_points": 0.70, "summary": 0.40}
TOOL_SHARES: dict[Level, float] = {"key_points": 0.10, "summary": 0.03}
TOOLS_OF_SPEECH: dict[Level, float] = {"key_points": 0.50, "summary": 0.25}
PAGE_CHARS = 2_000
# Factors of the weight of a sentence: of a person, with a quotation, that asks.
USER_WEIGHT, QUOTE_WEIGHT, QUESTION_WEIGHT = 2.0, 1.3, 1.3
# What a person answered through a tool holds by itself; a question and its answer say nothing without each other.
CHOICE_WEIGHT, ANSWER_WEIGHT, LAST_SENTENCES = 8.0, 4.0, 6
# The messages that open and end it say what it was for and what came of it; the first sentence of one what it is about.
END_WEIGHT, LEAD_WEIGHT = 1.3, 1.2
# So much of the words of a sentence on the matter come up in others.
MATTER_SHARE = 1 / 3
# Of the weight of a sentence: code and tables.
MACHINE_SHARE = 0.5
# A sentence costs its length and this, so that very short ones do not win by being short.
OVERHEAD_CHARS = 100
# The share of the room that a person's words may take before all others.
PERSON_SHARE = 0.4
# In at most so many steps room is made for the names of speakers.
STEPS = 50
# Arguments of tools that look something up.
READ_KEYS = frozenset({"file_path", "path", "pattern", "glob", "notebook_path"})
_TOOLS = ("tool_call", "tool_result")
LABELS = {
    "user": "User: ",
    "assistant": "Assistant: ",
    "system": "System: ",
    "tool_call": "Ran: ",
    "tool_result": "Got: ",
}
WHOLE_SENTENCES = 3
# A shorter name may be a part of other words.
LONG_NAME = 6
# So much of the words of a statement in one sentence repeat it.
SAME_WORDS = 0.75
# Bounds of the description: so many topics and entities, and characters of an entity.
MOST_TOPICS, MOST_ENTITIES, ENTITY_CHARS = 6, 20, 120
LINE_CHARS = 300
_QUOTE = lazy(r"[\"“„«][^\"”“»\n]{8,}[\"”“»]|^>")
_EMAIL = lazy(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# The strategy of a request for a model (prompts/archive/summary.md); a longer answer is no summary to be read.
ARCHIVE = "archive"
MOST_WRITTEN = 1_500


class Sentence(NamedTuple):
    """One sentence that a form may hold."""

    order: int
    at: int
    speaker: str
    text: str
    must: bool
    concepts: frozenset[str]
    """Its words and names."""
    weight: float


class Facts(NamedTuple):
    """The facts of a conversation, to be looked for in a text."""

    identifiers: frozenset[str]
    numbers: frozenset[str]
    decisions: tuple[str, ...]
    """What a person chose where the agent asked through a tool."""
    questions: tuple[str, ...]


def form(
    conversation: Conversation, level: Level, *, written: str | None = None, share: float | None = None
) -> JsonObject:
    """Return the content of `conversation` at `level`, which shares nothing with it.

    `written` is the summary that a model wrote of it, judged by `written_fault` before: the decisions and rules that it lacks
    follow it. What is kept in every level is in `kept`, unless the rest has it word for word.

    Raises:
        InvalidInput: no level has that name, or `written` is given for another one than a summary.
    """
    if share is not None and not 0 < share <= 1:
        raise InvalidInput(
            f"{shown(share)} is not a share.", fix="Give one above 0 and at most 1.", where="share"
        )
    level_named(level)
    if written is not None and level != "summary":
        raise InvalidInput(
            f"a model writes no {level}.", fix="Give `written` for a summary.", where="written"
        )
    if level == "full":
        full = {key: deepcopy(conversation[key]) for key in ("messages", "given")}
        return full if times_are_inside(conversation) else full | {"times": [*conversation["times"]]}
    content: JsonObject
    if level == "metadata":
        content = {"metadata": metadata(conversation)}
    elif level == "summary":
        content = {
            "summary": _with_facts(written, conversation)
            if written
            else _prose(chosen(conversation, level, share))
        }
    else:
        content = {"messages": _messages(chosen(conversation, level, share), conversation)}
    text = text_of(content)
    kept = [one for one in conversation["kept"] if one not in text]
    return content | ({"kept": kept} if kept else {})


def text_of(content: JsonObject) -> str:
    """Return all text of a content, for search and measures."""
    said_in = [one.text for one in said({"messages": content.get("messages", [])})]
    description = as_json(content["metadata"]) if "metadata" in content else ""
    return "\n".join(
        filter(None, [*said_in, content.get("summary", ""), description, *content.get("kept", ())])
    )


def metadata(conversation: Conversation) -> JsonObject:
    """Return the nine keys that describe a conversation, bounded however long it is.

    Of one that has lost detail, they are those that were measured when it was whole.
    """
    known = conversation.get("known", {}).get("metadata")
    if known:
        return deepcopy(known)
    texts = spoken(conversation)
    hits = topic_hits(word for one in texts for word in words(one.text))
    topics = [topic for topic, number in hits.items() if number >= TOPIC_HITS] or list(hits)[:1]
    return {
        **{
            key: conversation[key]
            for key in ("id", "title", "created_at", "updated_at", "total_messages", "session_id")
        },
        "topics": topics[:MOST_TOPICS],
        "key_entities": _entities(texts),
        "summary_stats": _stats(conversation, texts),
    }


def spoken(conversation: Conversation) -> list[Said]:
    """Return what people and models said in a conversation, without tools."""
    return [one for one in said(conversation) if one.speaker in ("user", "assistant")]


def measure(conversation: Conversation, content: JsonObject) -> JsonObject:
    """Return how much of `conversation` its form `content` keeps, each number counted.

    `ratio` is of the characters of all text; `retention` has the shares of its identifiers, numbers, decisions and questions
    that the content has; `facts` are their numbers in the whole, `importance` the parts of its score, `since` the time its age counts from. Of a conversation that
    has lost detail, all are of what it was when it was whole.
    """
    known = conversation.get("known", {})
    facts = facts_of(spoken(conversation))
    present = (
        facts_in(facts, text_of(content))
        if content.keys() != {"messages", "given"}
        else Counter(_numbers(facts))
    )
    of = known.get("facts") or _numbers(facts)
    whole = known.get("text_chars") or sum(len(one.text) for one in said(conversation))
    chars = sum(len(one.text) for one in said(conversation)) if "given" in content else len(text_of(content))
    return {
        "ratio": round(chars / whole, 4) if whole else 1.0,
        "chars": chars,
        "text_chars": whole,
        "speech_chars": _sizes(conversation)[0],
        "retention": {
            name: round(present[name] / of[name], 4) if of[name] else 1.0 for name in Facts._fields
        },
        "facts": of,
        "importance": known.get("importance") or dict(score(conversation).parts),
        "since": last_used(conversation)[0],
    }


def facts_of(texts: Sequence[Said]) -> Facts:
    """Return the identifiers, numbers, choices of a person, and questions of texts."""
    found = identifiers("\n".join(one.text for one in texts))
    return Facts(
        frozenset((*found.paths, *found.commands, *found.errors, *found.identifiers, *found.urls)),
        frozenset(found.numbers),
        tuple(dict.fromkeys(line for one in texts if one.is_choice for line in one.text.split("\n"))),
        tuple(dict.fromkeys(line for one in texts for line in sentences(one.text) if asks(line))),
    )


def facts_in(facts: Facts, text: str) -> Counter[str]:
    """Return how many of `facts` are in `text`, of statements word for word or in nearly the same words."""
    found = identifiers(text)
    names = {*found.paths, *found.commands, *found.errors, *found.identifiers, *found.urls}
    lines = [frozenset(stems(one)) for one in sentences(text)]
    plain = " ".join(text.split())
    number: Counter[str] = Counter()
    number["identifiers"] = sum(
        one in names or (len(one) >= LONG_NAME and one in text) for one in facts.identifiers
    )
    number["numbers"] = len(facts.numbers & set(found.numbers))
    for field in ("decisions", "questions"):
        number[field] = sum(one in plain or _is_said(one, lines) for one in getattr(facts, field))
    return number


def _is_said(statement: str, lines: Sequence[frozenset[str]]) -> bool:
    wanted = frozenset(stems(statement))
    return any(len(wanted & line) >= SAME_WORDS * len(wanted) for line in lines) if wanted else True


def _numbers(facts: Facts) -> dict[str, int]:
    return {name: len(getattr(facts, name)) for name in Facts._fields}


def chosen(conversation: Conversation, level: Level, share: float | None = None) -> list[Sentence]:
    """Return the sentences of a conversation that a level keeps, in order.

    Of three sentences or fewer, key points are the whole; a summary has one sentence at least.
    """
    every = candidates(conversation)
    # Beside a summary, what must be kept is on its own, word for word.
    every = [one for one in every if not one.must] if level == "summary" else every
    by_people = [one for one in every if one.speaker not in _TOOLS]
    by_tools = [one for one in every if one.speaker in _TOOLS]
    of_speech, of_tools = _room(conversation, every, level, share)
    labels = level == "summary"
    if level == "key_points" and len(by_people) <= WHOLE_SENTENCES:
        picked = by_people
    else:
        picked = _picked(by_people, of_speech, labels=labels)
        if not picked and by_people:
            picked = [max(by_people, key=lambda one: (one.weight, -one.order))]
    return sorted([*picked, *_picked(by_tools, of_tools, labels=labels)])


def _sizes(conversation: Conversation) -> tuple[int, int]:
    """Return the characters of speech and of tools, in the conversation when it was whole."""
    known = conversation.get("known", {})
    if known.get("text_chars"):
        return known["speech_chars"], known["text_chars"] - known["speech_chars"]
    speech = sum(len(one.text) for one in spoken(conversation))
    return speech, sum(len(one.text) for one in said(conversation)) - speech


def _room(
    conversation: Conversation, every: Sequence[Sentence], level: Level, share: float | None
) -> tuple[int, int]:
    """Return the most characters of speech and of tools at a level; a statement that was repeated makes no room."""
    speech, tools = _sizes(conversation)
    distinct = sum(map(len, {one.text for one in every if one.speaker not in _TOOLS}))
    if "known" in conversation:
        distinct = int(distinct / SHARES["key_points"])
    of_speech = int((SHARES[level] if share is None else share) * min(speech, distinct))
    return of_speech, int(
        min(TOOL_SHARES[level] * tools, max(PAGE_CHARS, TOOLS_OF_SPEECH[level] * of_speech))
    )


def candidates(conversation: Conversation) -> list[Sentence]:
    """Return every sentence that people or models said, and the lines of tools that show work and its outcome, in order."""
    texts = [one for one in said(conversation) if one.speaker != "system" or one.protected]
    speech = [one for one in texts if one.speaker in ("user", "assistant")]
    ends = {speech[0].at, speech[-1].at} if speech else set[int]()
    answered = _answered(speech)
    found: list[Sentence] = []
    placed: list[float] = []
    for one, lines in _lines(texts):
        code = {
            line
            for unit in units_of(one.text)
            if unit.text.startswith("```")
            for line in sentences(unit.text)
        }
        for nth, text in enumerate(lines):
            weight = (
                (USER_WEIGHT if one.speaker == "user" else 1.0)
                * (QUOTE_WEIGHT if _QUOTE.search(text) else 1.0)
                * (QUESTION_WEIGHT if asks(text) else 1.0)
                * (CHOICE_WEIGHT if one.is_choice else ANSWER_WEIGHT if (one.at, text) in answered else 1.0)
                * (MACHINE_SHARE if text in code else 1.0)
            )
            must = one.protected or text in conversation["kept"]
            found.append(
                Sentence(len(found), one.at, one.speaker, text, must, frozenset(contents(text)), weight)
            )
            placed.append((END_WEIGHT if one.at in ends else 1.0) * (LEAD_WEIGHT if nth == 0 else 1.0))
    # A greeting at the end is no conclusion: its words are nowhere else, and it names nothing.
    number = Counter(concept for one in found for concept in one.concepts)
    return [
        one._replace(weight=one.weight * (factor if _is_on_the_matter(one, number) else 1.0))
        for one, factor in zip(found, placed, strict=True)
    ]


def _is_on_the_matter(one: Sentence, number: Mapping[str, int]) -> bool:
    """Return whether a sentence has a name or a number, or enough of its words come up in others."""
    again = sum(number[concept] > 1 for concept in one.concepts)
    return again >= MATTER_SHARE * len(one.concepts) or any(
        concept.startswith("=") or any(map(str.isdigit, concept)) for concept in one.concepts
    )


def _answered(speech: Sequence[Said]) -> set[tuple[int, str]]:
    """Return the questions that a person answered, and the first sentences of the answers, with their messages."""
    found: set[tuple[int, str]] = set()
    for asked, reply in pairwise(speech):
        if (asked.speaker, reply.speaker) != ("assistant", "user"):
            continue
        questions = [one for one in sentences(asked.text)[-LAST_SENTENCES:] if asks(one.rstrip("*_ "))]
        if questions:
            found.update((asked.at, one) for one in questions)
            found.update((reply.at, one) for one in sentences(reply.text)[:1])
    return found


def _lines(texts: Sequence[Said]) -> Iterator[tuple[Said, list[str]]]:
    """Yield each text with its lines that a form may hold; of tools those of work, without what they only read."""
    shown: dict[str, bool] = {}
    refused = {one.call_id for one in texts if one.refused} - {""}
    for one in texts:
        if one.protected:
            yield one, [one.text]
        elif one.call_id in refused and one.speaker in _TOOLS:
            yield one, []  # it was not done
        elif one.speaker == "tool_call":
            line, is_command = _call_line(one)
            shown[one.call_id] = is_command or (bool(line) and not _changes(one))
            yield one, [line] if line else []
        elif one.speaker == "tool_result":
            short = one.text if len(one.text) <= LINE_CHARS and "\n" not in one.text else ""
            line = short or outcome_line(one.text)
            yield one, [line] if line and shown.get(one.call_id, bool(short)) else []
        elif one.is_choice:
            yield one, one.text.split("\n")
        else:
            yield one, sentences(one.text)


def _call_line(one: Said) -> tuple[str, bool]:
    """Return a call as one line, "" if it only reads, and whether that is a command."""
    arguments = as_arguments(one.text)
    ran = shell_command(arguments)
    if ran:
        return (short_command(ran), True) if is_notable(ran) or _changes(one) else ("", False)
    changed = _changes(one)
    given = (
        changed[0]
        if changed
        else next((text for text in arguments.values() if isinstance(text, str)), "").strip()
    )
    if (
        not given
        or "\n" in given
        or len(given) > LINE_CHARS
        or (not changed and READ_KEYS & arguments.keys())
    ):
        return "", False
    return (f"{one.tool}: {given}" if one.tool and arguments.keys() != {"input"} else given), False


def _changes(one: Said) -> list[str]:
    arguments = as_arguments(one.text)
    return [change.path for change in file_changes(arguments, shell_command(arguments))]


def _picked(every: Sequence[Sentence], most: int, *, labels: bool) -> list[Sentence]:
    """Return the sentences that carry most in `most` characters, and all that must stay.

    With `labels`, the first one of each message costs the name of its speaker, too.
    """
    must = [one for one in every if one.must]
    others = [one for one in every if not one.must]
    most -= sum(len(one.text) + 1 for one in must)
    said = [at for at, one in enumerate(others) if one.speaker == "user"]
    first = choose(
        [_unit(others[at]) for at in said], most=int(PERSON_SHARE * most), count=len, overhead=OVERHEAD_CHARS
    )
    by_person = {said[at] for at in first}
    units = [_unit(one)._replace(required=at in by_person) for at, one in enumerate(others)]
    room = max(0, most)
    while True:
        picked = sorted(
            [*must, *(others[at] for at in choose(units, most=room, count=len, overhead=OVERHEAD_CHARS))]
        )
        over = len(_prose(picked)) - most if labels else 0
        if over <= 0 or not room:
            return picked
        room = max(0, room - max(over, most // STEPS))


def _unit(one: Sentence) -> Unit:
    return Unit(one.text, one.weight)


def _messages(picked: Sequence[Sentence], conversation: Conversation) -> list[JsonObject]:
    kept = frozenset(conversation["kept"])
    return [
        {
            "role": some[0].speaker, "timestamp": conversation["times"][some[0].at], "content": text,
            **({META: {"protected": True}} if text in kept else {}),
        }
        for some, text in _paragraphs(picked)
    ]  # fmt: skip


def _prose(picked: Sequence[Sentence]) -> str:
    """Return sentences as lines that name their speakers."""
    return "\n".join(f"{LABELS[some[0].speaker]}{text}" for some, text in _paragraphs(picked))


def _paragraphs(picked: Sequence[Sentence]) -> Iterator[tuple[list[Sentence], str]]:
    """Yield the sentences of each message, and their text: each on a line of its own, for they were not written together."""
    for _, group in groupby(picked, key=lambda one: (one.at, one.speaker)):
        some = list(group)
        yield some, "\n".join(one.text for one in some)


def _stats(conversation: Conversation, texts: Sequence[Said]) -> JsonObject:
    scores = [raw.get("importance_score", 0.5) for raw in conversation["messages"]]
    numbers = [one for one in scores if isinstance(one, (int, float)) and not isinstance(one, bool)]
    times = [clock.parse(one) for one in conversation["times"] if one]
    return {
        "user_message_count": len({one.at for one in texts if one.speaker == "user" and not one.call_id}),
        "assistant_message_count": len({one.at for one in texts if one.speaker == "assistant"}),
        "total_tokens": conversation["total_tokens"],
        "average_importance_score": round(sum(numbers) / len(numbers), 4) if numbers else 0.5,
        "duration_days": (max(times) - min(times)).days if times else 0,
    }


def _entities(texts: Sequence[Said]) -> list[str]:
    """Return the addresses, URLs and paths that most messages name."""
    number: Counter[str] = Counter()
    for one in texts:
        found = identifiers(one.text)
        addresses = [name for name in found.identifiers if _EMAIL.fullmatch(name)]
        paths = [name for name in found.paths if name.strip("/").count("/") or "." in name]
        number.update({name for name in (*addresses, *found.urls, *paths) if len(name) <= ENTITY_CHARS})
    return [name for name, _ in sorted(number.items(), key=lambda one: (-one[1], one[0]))[:MOST_ENTITIES]]


def writing_task(conversation: Conversation, *, count: TokenCounter) -> JsonObject:
    """Return what a model is asked for: the summary of the key points of `conversation`, as the data of a request."""
    lines = chosen(conversation, "key_points")
    speech = sum(count(one.text) for one in spoken(conversation))
    return {
        "strategy": ARCHIVE, "version": 1, "previous": "",
        "said": [
            {"at": some[0].at, "role": some[0].speaker, "tool": "", "text": text} for some, text in _paragraphs(lines)
        ],
        "facts": {"goals": conversation["kept"]},
        "max_tokens": min(MOST_WRITTEN, int(SHARES["summary"] * speech)),
    }  # fmt: skip


def written_fault(written: str, task: JsonObject, conversation: Conversation, *, count: TokenCounter) -> str:
    """Return why `written` cannot be the summary that `task` asks for, in words that follow "It"; "" if it can.

    Beside the faults that every summary can have, it is refused if the conversation does not bear out half of it.
    """
    fault = model_fault(
        without_quotes(written), given=[one["text"] for one in task["said"]], most_tokens=task["max_tokens"], count=count,
        about=[conversation["title"], *conversation["kept"]],
    )  # fmt: skip
    return fault or proven(written, conversation).fault


def proven(written: str, conversation: Conversation) -> Proven:
    """Return what a model wrote as far as the conversation bears it out, without its quotes."""
    texts = [one.text for one in said(conversation)]
    return proven_lines(written, [conversation["title"], *conversation["kept"], *texts])


def _with_facts(written: str, conversation: Conversation) -> str:
    """Return a model's summary with what a person said, and names, that it lacks, as far as its size allows."""
    most = int(SHARES["summary"] * _sizes(conversation)[0])
    text = written.strip()
    lines = [frozenset(stems(one)) for one in sentences(text)]
    lacking = [
        one
        for one in candidates(conversation)
        if (
            one.speaker == "user"
            or (one.speaker == "assistant" and any(name.startswith("=") for name in one.concepts))
        )
        and not asks(one.text)
        and not _is_said(one.text, lines)
    ]
    return "\n".join(filter(None, (text, _prose(_picked(lacking, most - len(text) - 1, labels=True)))))
