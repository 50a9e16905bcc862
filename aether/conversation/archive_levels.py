"""Forms: the content of a conversation at each level, and the share of its facts that remains.

Key points and summaries are whole sentences of the conversation, in their order, chosen by what they carry
(`text.selection`); a person's words, both ends, and a question with its answer weigh more. Protected messages, goals and
locked decisions are in every level. Deterministic; all numbers are measured.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import groupby, pairwise
from typing import NamedTuple

from aether import clock
from aether.conversation.archive_retention import TOPIC_HITS, last_used, score, topic_hits
from aether.conversation.archived import Conversation, Level, Said, said, times_are_inside
from aether.conversation.archived import level as level_named
from aether.errors import InvalidInput, shown
from aether.messages.content import as_json
from aether.messages.convert import META
from aether.messages.model import as_arguments
from aether.messages.shell import is_notable, outcome_line, short_command
from aether.messages.tool_calls import file_changes, shell_command
from aether.text.identifiers import identifiers
from aether.text.selection import Unit, asks, choose, contents
from aether.text.words import sentences, stems, words
from aether.types import Counter as TokenCounter
from aether.types import JsonObject

# Shares of the characters of speech, and of those of tools, which never exceed a part of the kept speech, or a page.
SHARES: dict[Level, float] = {"key_points": 0.70, "summary": 0.40}
TOOL_SHARES: dict[Level, float] = {"key_points": 0.10, "summary": 0.03}
TOOLS_OF_SPEECH: dict[Level, float] = {"key_points": 0.50, "summary": 0.25}
PAGE_CHARS = 2_000
# Factors of the weight of a sentence. An answer through a tool is complete by itself; a question and its answer need each other.
USER_WEIGHT, CHOICE_WEIGHT, ANSWER_WEIGHT, LAST_SENTENCES = 2.0, 8.0, 4.0, 6
QUESTION_WEIGHT = 1.3
# The messages that open and end it say what it was for and how it ended.
END_WEIGHT = 1.3
# A greeting at the end is not a conclusion: enough words of a sentence on the matter come up in others.
MATTER_SHARE = 1 / 3
# A sentence costs its length and this, so that very short ones do not win by being short.
OVERHEAD_CHARS = 100
# The share of the room that a person's words may take before all others.
PERSON_SHARE = 0.4
# Steps in which room is made for the names of speakers.
STEPS = 50
# Arguments of tools that only read.
READ_KEYS = frozenset({"file_path", "path", "pattern", "glob", "notebook_path"})
TOOLS = ("tool_call", "tool_result")
LABELS = {
    "user": "User: ", "assistant": "Assistant: ", "system": "System: ", "tool_call": "Ran: ", "tool_result": "Got: ",
}  # fmt: skip
WHOLE_SENTENCES = 3
# A shorter name may be a part of other words.
LONG_NAME = 6
# The share of the words of a statement by which one sentence repeats it.
SAME_WORDS = 0.75
MOST_TOPICS, MOST_ENTITIES, ENTITY_CHARS = 6, 20, 120
LINE_CHARS = 300
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# The strategy of a request for a model (prompts/archive/summary.md); nobody reads a longer summary.
ARCHIVE = "archive"
MOST_WRITTEN = 1_500


class Sentence(NamedTuple):
    """One sentence that a form may contain."""

    order: int
    at: int
    speaker: str
    text: str
    must: bool
    weight: float


class Facts(NamedTuple):
    """The facts of a conversation, to be searched in a text."""

    identifiers: frozenset[str]
    numbers: frozenset[str]
    decisions: tuple[str, ...]
    """A person's answers to the questions of tools."""
    questions: tuple[str, ...]


# --- Forms


def form(
    conversation: Conversation, level: Level, *, written: str | None = None, share: float | None = None
) -> JsonObject:
    """Return the content of `conversation` at `level`, which shares nothing with it.

    `written` is the summary by a model that passed the gate (`summarise`): a person's statements and names that it lacks follow
    it. Texts of every level are in `kept`, unless the content has them word for word.

    Raises:
        InvalidInput: no level has that name, or `written` is given for another one than a summary.
    """
    if share is not None and not 0 < share <= 1:
        raise InvalidInput(f"{shown(share)} is not a share.", fix="Give one above 0 and at most 1.", where="share")  # fmt: skip
    level_named(level)
    if written is not None and level != "summary":
        raise InvalidInput(f"a model writes no {level}.", fix="Give `written` for a summary.", where="written")  # fmt: skip
    if level == "full":
        full = {key: deepcopy(conversation[key]) for key in ("messages", "given")}
        return full if times_are_inside(conversation) else full | {"times": [*conversation["times"]]}
    content: JsonObject
    if level == "metadata":
        content = {"metadata": metadata(conversation)}
    elif level == "summary":
        selected = written is None and chosen(conversation, level, share)
        content = {"summary": _prose(selected or []) if written is None else _completed(written, conversation)}  # fmt: skip
    else:
        content = {"messages": _messages(chosen(conversation, level, share), conversation)}
    text = text_of(content)
    missing_lines = [line for line in conversation["kept"] if line not in text]
    return content | ({"kept": missing_lines} if missing_lines else {})


def _messages(selected: Sequence[Sentence], conversation: Conversation) -> list[JsonObject]:
    protected_texts = frozenset(conversation["kept"])
    return [
        {
            "role": first.speaker, "timestamp": conversation["times"][first.at], "content": text,
            **({META: {"protected": True}} if text in protected_texts else {}),
        }
        for first, text in _paragraphs(selected)
    ]  # fmt: skip


def _prose(selected: Sequence[Sentence]) -> str:
    """Return sentences as lines that name their speakers."""
    return "\n".join(f"{LABELS[first.speaker]}{text}" for first, text in _paragraphs(selected))


def _paragraphs(selected: Sequence[Sentence]) -> Iterator[tuple[Sentence, str]]:
    """Yield the first sentence of each message, and the text of all: a line each, since others were between them."""
    for _, group in groupby(selected, key=lambda sentence: (sentence.at, sentence.speaker)):
        lines = list(group)
        yield lines[0], "\n".join(sentence.text for sentence in lines)


def _completed(written: str, conversation: Conversation) -> str:
    """Return a model's summary with a person's statements, and names, that it lacks, as far as its size allows."""
    most, text = int(SHARES["summary"] * _sizes(conversation)[0]), written.strip()
    lines = [frozenset(stems(line)) for line in sentences(text)]
    lacking = [
        sentence
        for sentence in candidates(conversation)
        if (sentence.speaker == "user" or (sentence.speaker == "assistant" and _has_names(sentence.text)))
        and not asks(sentence.text)
        and not _is_repeated(sentence.text, lines)
    ]
    return "\n".join(filter(None, (text, _prose(_selected(lacking, most - len(text) - 1, labels=True)))))


def _has_names(text: str) -> bool:
    return any(concept.startswith("=") for concept in contents(text))


def text_of(content: JsonObject) -> str:
    """Return all text of a content, for search and measures."""
    texts = [text.text for text in said({"messages": content.get("messages", [])})]
    texts += [content.get("summary", ""), as_json(content["metadata"]) if "metadata" in content else ""]
    return "\n".join(filter(None, [*texts, *content.get("kept", ())]))


def spoken(conversation: Conversation) -> list[Said]:
    """Return the texts of people and models in a conversation, without tools."""
    return [text for text in said(conversation) if text.speaker in ("user", "assistant")]


# --- Selection


def chosen(conversation: Conversation, level: Level, share: float | None = None) -> list[Sentence]:
    """Return the sentences of a conversation that a level keeps, in order.

    Of three sentences or fewer, key points are the whole; a summary has at least one sentence.
    """
    # Beside a summary, texts of every level are listed by themselves, word for word.
    all_sentences = [
        sentence for sentence in candidates(conversation) if level != "summary" or not sentence.must
    ]
    speech = [sentence for sentence in all_sentences if sentence.speaker not in TOOLS]
    tools = [sentence for sentence in all_sentences if sentence.speaker in TOOLS]
    speech_chars, tool_chars = _sizes(conversation)
    # A repeated statement makes no room.
    distinct = sum(map(len, {sentence.text for sentence in speech}))
    if "known" in conversation:
        distinct = int(distinct / SHARES["key_points"])
    room = int((SHARES[level] if share is None else share) * min(speech_chars, distinct))
    tool_room = int(min(TOOL_SHARES[level] * tool_chars, max(PAGE_CHARS, TOOLS_OF_SPEECH[level] * room)))
    labels = level == "summary"
    selected = speech
    if level != "key_points" or len(speech) > WHOLE_SENTENCES:
        selected = _selected(speech, room, labels=labels)
    if not selected and speech:
        selected = [max(speech, key=lambda sentence: (sentence.weight, -sentence.order))]
    return sorted([*selected, *_selected(tools, tool_room, labels=labels)])


def _selected(candidates: Sequence[Sentence], most: int, *, labels: bool) -> list[Sentence]:
    """Return the sentences that carry most in `most` characters, and all that must stay; with `labels`, their speakers count."""
    must = [candidate for candidate in candidates if candidate.must]
    optional = [candidate for candidate in candidates if not candidate.must]
    most -= sum(len(candidate.text) + 1 for candidate in must)
    units = [Unit(candidate.text, candidate.weight) for candidate in optional]
    of_person = [nth for nth, candidate in enumerate(optional) if candidate.speaker == "user"]
    first = choose([units[nth] for nth in of_person], most=int(PERSON_SHARE * most), count=len, overhead=OVERHEAD_CHARS)  # fmt: skip
    for nth in first:
        units[of_person[nth]] = units[of_person[nth]]._replace(required=True)
    room = max(0, most)
    while True:
        places = choose(units, most=room, count=len, overhead=OVERHEAD_CHARS)
        selected = sorted([*must, *(optional[nth] for nth in places)])
        excess = len(_prose(selected)) - most if labels else 0
        if excess <= 0 or not room:
            return selected
        room = max(0, room - max(excess, most // STEPS))


def _sizes(conversation: Conversation) -> tuple[int, int]:
    """Return the characters of speech and of tools, in the full form of the conversation."""
    known_sizes = conversation.get("known", {})
    if known_sizes.get("text_chars"):
        return known_sizes["speech_chars"], known_sizes["text_chars"] - known_sizes["speech_chars"]
    speech = sum(len(text.text) for text in spoken(conversation))
    return speech, sum(len(text.text) for text in said(conversation)) - speech


def candidates(conversation: Conversation) -> list[Sentence]:
    """Return every sentence of people and models, and the lines of tools that show work and its outcome, in order."""
    texts = [text for text in said(conversation) if text.speaker != "system" or text.protected]
    speech = [text for text in texts if text.speaker in ("user", "assistant")]
    end_places = {speech[0].at, speech[-1].at} if speech else set[int]()
    answered = _answered(speech)
    listed: list[Sentence] = []
    for text, lines in _lines(texts):
        for line in lines:
            weight = USER_WEIGHT if text.speaker == "user" else 1.0
            weight *= QUESTION_WEIGHT if asks(line) else 1.0
            if text.is_choice:
                weight *= CHOICE_WEIGHT
            elif (text.at, line) in answered:
                weight *= ANSWER_WEIGHT
            must = text.protected or line in conversation["kept"]
            listed.append(Sentence(len(listed), text.at, text.speaker, line, must, weight))
    uses = Counter(concept for sentence in listed for concept in contents(sentence.text))

    def is_on_the_matter(sentence: Sentence) -> bool:
        concepts = contents(sentence.text)
        has_name = any(concept[0] == "=" or any(map(str.isdigit, concept)) for concept in concepts)
        return has_name or sum(uses[concept] > 1 for concept in concepts) >= MATTER_SHARE * len(concepts)

    return [
        candidate._replace(
            weight=candidate.weight
            * (END_WEIGHT if candidate.at in end_places and is_on_the_matter(candidate) else 1.0)
        )
        for candidate in listed
    ]


def _answered(speech: Sequence[Said]) -> set[tuple[int, str]]:
    """Return the questions that a person answered, and the first sentences of the answers, with their messages."""
    pairs: set[tuple[int, str]] = set()
    for question, reply in pairwise(speech):
        if (question.speaker, reply.speaker) == ("assistant", "user"):
            questions = [
                sentence
                for sentence in sentences(question.text)[-LAST_SENTENCES:]
                if asks(sentence.rstrip("*_ "))
            ]
            pairs.update((question.at, sentence) for sentence in questions)
            pairs.update((reply.at, sentence) for sentence in sentences(reply.text)[:1] if questions)
    return pairs


def _lines(texts: Sequence[Said]) -> Iterator[tuple[Said, list[str]]]:
    """Yield each text with its lines that a form may contain; of tools the work, without what they only read."""
    shows_result: dict[str, bool] = {}
    refused = {text.call_id for text in texts if text.refused} - {""}
    for text in texts:
        if text.protected:
            yield text, [text.text]
        elif text.call_id in refused and text.speaker in TOOLS:
            yield text, []  # it was not done
        elif text.speaker == "tool_call":
            line, is_command = _call_line(text)
            shows_result[text.call_id] = is_command or (bool(line) and not _changes(text))
            yield text, [line] if line else []
        elif text.speaker == "tool_result":
            short = text.text if len(text.text) <= LINE_CHARS and "\n" not in text.text else ""
            line = short or outcome_line(text.text)
            yield text, [line] if line and shows_result.get(text.call_id, bool(short)) else []
        else:
            yield text, text.text.split("\n") if text.is_choice else sentences(text.text)


def _call_line(call: Said) -> tuple[str, bool]:
    """Return a call as one line, "" if it only reads, and whether that is a command."""
    arguments = as_arguments(call.text)
    if command := shell_command(arguments):
        is_work = is_notable(command) or bool(_changes(call))
        return (short_command(command), True) if is_work else ("", False)
    changed = _changes(call)
    first = next((value for value in arguments.values() if isinstance(value, str)), "").strip()
    line = changed[0] if changed else first
    only_reads = not changed and bool(READ_KEYS & arguments.keys())
    if not line or "\n" in line or len(line) > LINE_CHARS or only_reads:
        return "", False
    return (f"{call.tool}: {line}" if call.tool and arguments.keys() != {"input"} else line), False


def _changes(call: Said) -> list[str]:
    arguments = as_arguments(call.text)
    return [change.path for change in file_changes(arguments, shell_command(arguments))]


# --- Description and measures


def metadata(conversation: Conversation) -> JsonObject:
    """Return the nine keys that describe a conversation, bounded however long it is.

    Those of one that has lost detail describe its full form.
    """
    if known_metadata := conversation.get("known", {}).get("metadata"):
        return deepcopy(known_metadata)
    texts = spoken(conversation)
    hits = topic_hits(word for text in texts for word in words(text.text))
    topics = [topic for topic, number in hits.items() if number >= TOPIC_HITS] or list(hits)[:1]
    fields = ("id", "title", "created_at", "updated_at", "total_messages", "session_id")
    return {
        **{key: conversation[key] for key in fields}, "topics": topics[:MOST_TOPICS], "key_entities": _entities(texts),
        "summary_stats": _stats(conversation, texts),
    }  # fmt: skip


def _stats(conversation: Conversation, texts: Sequence[Said]) -> JsonObject:
    scores = [raw.get("importance_score", 0.5) for raw in conversation["messages"]]
    numbers = [score for score in scores if isinstance(score, (int, float)) and not isinstance(score, bool)]
    times = [clock.parse(time) for time in conversation["times"] if time]
    by_user = {text.at for text in texts if text.speaker == "user" and not text.call_id}
    return {
        "user_message_count": len(by_user),
        "assistant_message_count": len({text.at for text in texts if text.speaker == "assistant"}),
        "total_tokens": conversation["total_tokens"],
        "average_importance_score": round(sum(numbers) / len(numbers), 4) if numbers else 0.5,
        "duration_days": (max(times) - min(times)).days if times else 0,
    }


def _entities(texts: Sequence[Said]) -> list[str]:
    """Return the addresses, URLs and paths that most messages name."""
    uses: Counter[str] = Counter()
    for text in texts:
        names = identifiers(text.text)
        addresses = [name for name in names.identifiers if _EMAIL.fullmatch(name)]
        paths = [name for name in names.paths if name.strip("/").count("/") or "." in name]
        uses.update({name for name in (*addresses, *names.urls, *paths) if len(name) <= ENTITY_CHARS})
    return sorted(uses, key=lambda name: (-uses[name], name))[:MOST_ENTITIES]


def measure(conversation: Conversation, content: JsonObject) -> JsonObject:
    """Return the measures of the form `content` of `conversation`.

    `ratio` is of the characters of all text; `retention` has the shares of its identifiers, numbers, decisions and questions
    that the content has; `facts` are their numbers in the full form, `importance` the parts of its score, `since` the time
    its age counts from. For a conversation that has lost detail, the full form is that before the loss.
    """
    known_numbers = conversation.get("known", {})
    facts = facts_of(spoken(conversation))
    numbers = {name: len(getattr(facts, name)) for name in Facts._fields}
    is_full = content.keys() == {"messages", "given"}
    present = Counter(numbers) if is_full else facts_in(facts, text_of(content))
    original = known_numbers.get("facts") or numbers
    size = sum(len(text.text) for text in said(conversation))
    chars, whole_chars = (
        size if "given" in content else len(text_of(content)),
        known_numbers.get("text_chars") or size,
    )
    return {
        "ratio": round(chars / whole_chars, 4) if whole_chars else 1.0,
        "chars": chars,
        "text_chars": whole_chars,
        "speech_chars": _sizes(conversation)[0],
        "retention": {
            name: round(present[name] / original[name], 4) if original[name] else 1.0
            for name in Facts._fields
        },
        "facts": original,
        "importance": known_numbers.get("importance") or dict(score(conversation).parts),
        "since": last_used(conversation)[0],
    }


def facts_of(texts: Sequence[Said]) -> Facts:
    """Return the identifiers, numbers, choices of a person, and questions of texts."""
    names = identifiers("\n".join(text.text for text in texts))
    return Facts(
        frozenset((*names.paths, *names.commands, *names.errors, *names.identifiers, *names.urls)),
        frozenset(names.numbers),
        tuple(dict.fromkeys(line for text in texts if text.is_choice for line in text.text.split("\n"))),
        tuple(dict.fromkeys(line for text in texts for line in sentences(text.text) if asks(line))),
    )


def facts_in(facts: Facts, text: str) -> Counter[str]:
    """Return how many of `facts` are in `text`, statements word for word or in nearly the same words."""
    listed = identifiers(text)
    names = {*listed.paths, *listed.commands, *listed.errors, *listed.identifiers, *listed.urls}
    lines = [frozenset(stems(line)) for line in sentences(text)]
    plain = " ".join(text.split())
    counts: Counter[str] = Counter()
    counts["identifiers"] = sum(
        name in names or (len(name) >= LONG_NAME and name in text) for name in facts.identifiers
    )
    counts["numbers"] = len(facts.numbers & set(listed.numbers))
    for field in ("decisions", "questions"):
        statements = getattr(facts, field)
        counts[field] = sum(line in plain or _is_repeated(line, lines) for line in statements)
    return counts


def _is_repeated(statement: str, lines: Sequence[frozenset[str]]) -> bool:
    parts = frozenset(stems(statement))
    return any(len(parts & line) >= SAME_WORDS * len(parts) for line in lines) if parts else True


# --- Summaries by a model


def writing_task(conversation: Conversation, *, count: TokenCounter) -> JsonObject:
    """Return the data of a request for the summary of `conversation`, from its key points."""
    lines = _paragraphs(chosen(conversation, "key_points"))
    speech = sum(count(text.text) for text in spoken(conversation))
    return {
        "strategy": ARCHIVE, "version": 1, "previous": "",
        "said": [{"at": first.at, "role": first.speaker, "tool": "", "text": text} for first, text in lines],
        "facts": {"goals": conversation["kept"]},
        "max_tokens": min(MOST_WRITTEN, int(SHARES["summary"] * speech)),
    }  # fmt: skip
