"""Progress: who said what in a conversation, and where its work is, by structure alone.

A person's words are what the person typed, answered or refused. The newest request is the newest message, with the ones
before it as long as all are shorter than a line, because "continue" does not say what. The state is the ends of the
newest answers, the plan, and the last run of each command with its outcome. No sentence is judged, in any language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, NamedTuple

from aether.conversation.partition import BRIEF_CHARS, is_brief
from aether.conversation.readings import Reading
from aether.messages.model import Message
from aether.messages.shell import command_target, git_step, is_notable, outcome_of, parts_of, short_command
from aether.messages.speakers import CONTINUED
from aether.messages.tool_calls import (
    Call,
    answers_in,
    calls_of,
    commits_in,
    file_changes,
    is_refusal,
    words_of_refusal,
)
from aether.text.cleaning import clean, without_injected
from aether.text.words import sentences
from aether.types import JsonObject

# Of a message of a person: the request that holds now, and others. A rule may be in the last sentence, so the middle is cut.
PAGE_CHARS, REQUEST_CHARS = 4_000, 1_000
# Of the newest answer, of each answer before it, and of all in the state.
ANSWER_CHARS, OLDER_ANSWER_CHARS, ANSWERS_CHARS = 2_400, 800, 4_800
PARAGRAPH_CHARS = 900
# Of the two ends of an earlier answer, and of all of them.
EARLIER_PART_CHARS, EARLIER_CHARS = 300, 12_000
# A shorter text of an agent announces the next call, or says that it is done.
LEAST_ANSWER = 4 * BRIEF_CHARS
# So many messages shorter than a line are shown beside the one that says what they are about.
MOST_BRIEF = 3
PLAN_ENTRIES = 12
MOST_RAN = 12
ARGUMENT_CHARS = 120
NOTHING_LEFT = "Every step of the plan is done."
_QUESTION_MARKS = ("?", "？", "؟")
ASKED = "Asked: "
_GAP = " […] "
_PLAN_KEYS = ("todos", "plan", "tasks", "items")
# A whole plan can be emptied; other tools have empty lists as well.
_WHOLE_PLANS = _PLAN_KEYS[:2]
_TEXT_KEYS = ("content", "step", "subject", "title", "description", "text")
_TASK_KEYS = ("taskId", "task_id", "id")
_OVER = frozenset({"completed", "complete", "done", "cancelled", "canceled", "deleted", "skipped"})


class Said(NamedTuple):
    """One text of a person or of the agent, without what programs put around it."""

    at: int
    by: Literal["person", "agent"]
    text: str
    brief: bool = False
    """Whether the words are shorter than a line."""
    asked: str = ""
    """The question that a brief reply follows, or that it answers."""
    acts: bool = False
    """Whether the next call of the agent changes a file: then it says why."""

    @property
    def shown(self) -> str:
        """Return the text with the question that it answers."""
        return f"{ASKED}{self.asked}\nAnswered: {self.text}" if self.asked else self.text


class Conversation:
    """A conversation, read once for all facts that are taken from it."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        """Read the messages in their order."""
        self.readings = readings
        self.messages: list[Message] = [reading.message for reading in readings]
        self.calls = calls_of(self.messages)
        self.summaries = tuple(index for index, reading in enumerate(readings) if reading.is_summary)
        """Positions of the summaries of earlier compactions."""
        self.said: list[Said] = _said(self)

    @cached_property
    def opening(self) -> Said | None:
        """Return the request that opened the conversation; None if a summary replaced it."""
        end = self.summaries[0] if self.summaries else len(self.messages)
        return next((text for text in self.said if text.by == "person" and text.at < end), None)

    @cached_property
    def plan(self) -> list[tuple[str, str]] | None:
        """Return the steps of the newest plan or task list with their status; None without one."""
        return _plan(self.calls)

    @cached_property
    def ran(self) -> tuple[str, ...]:
        """Return the last run of each command that matters."""
        return merged_ran((), _ran(self.calls))


class Progress(NamedTuple):
    """The present of a conversation; every text is from it but for the words that name a status."""

    current: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()


def _said(conversation: Conversation) -> list[Said]:
    """Return what was said in a conversation, without its earlier summaries."""
    by_message = {index: list(some) for index, some in groupby(conversation.calls, lambda call: call.at)}
    texts: list[Said] = []
    for index, reading in enumerate(conversation.readings):
        message, text = reading.message, reading.words
        if reading.is_summary or message.role not in ("user", "assistant"):
            continue
        if text and (message.role == "assistant" or text.startswith(CONTINUED)):
            texts.append(Said(index, "agent", with_speaker(message, text)))
        elif text:
            question = _question_before(texts) if is_brief(text) else ""
            texts.append(Said(index, "person", with_speaker(message, text), is_brief(text), question))
        called = by_message.get(index, ())
        if texts and texts[-1].by == "agent" and any(map(_changes_file, called)):
            texts[-1] = texts[-1]._replace(acts=True)
        texts += (words for call in called for words in _said_to_call(call))
    return texts


def _changes_file(call: Call) -> bool:
    return next(file_changes(call.arguments, call.command), None) is not None


def with_speaker(message: Message, text: str) -> str:
    """Return `text` after the name of its speaker, if the message has one: a chat may have more than two."""
    name = message.raw.get("name")
    name = " ".join(name.split()) if isinstance(name, str) else ""
    return f"{name}: {text}" if name and not text.startswith(f"{name}:") else text


def _said_to_call(call: Call) -> Iterator[Said]:
    """Yield what a person said in place of a result: a refusal with its reason, or answers to questions."""
    if call.result is None:
        return
    text = call.result.text
    if is_refusal(text):
        reason = clean(words_of_refusal(text))
        refused = f"Refused {call_label(call)}"
        yield Said(call.at, "person", f"{refused}: {reason}" if reason else refused, is_brief(reason))
    for answer in answers_in(text):
        question, parted, choice = answer.partition('"="')
        question_text, choice = (question.strip('"'), f'"{choice}') if parted else (call.tool, answer)
        yield Said(call.at, "person", choice, brief=True, asked=question_text)


def call_label(call: Call) -> str:
    """Return the tool of a call with its command, or its first text."""
    if call.command:
        about = short_command(call.command)
    else:
        texts = (text for text in call.arguments.values() if isinstance(text, str) and text.strip())
        about = next(texts, "").strip().partition("\n")[0]
        about = about if len(about) <= ARGUMENT_CHARS else about[: ARGUMENT_CHARS - 1] + "…"
    return f"{call.tool}: {about}".strip(": ")


def _question_before(statements: Sequence[Said]) -> str:
    """Return the question with which the agent ended its turn, by its question mark; "" without one."""
    if not statements or statements[-1].by == "person":
        return ""
    last = (sentences(statements[-1].text) or [""])[-1]
    return last if last.rstrip('*_ )）"”').endswith(_QUESTION_MARKS) else ""


def progress_of(conversation: Conversation, *, stays: Callable[[int], bool] = lambda _: False) -> Progress:
    """Return the requests, the state and the next steps of a conversation.

    What was done earlier is the older answers, and what was said before a file was changed; it is not repeated from a
    message of which `stays`, given its position, says that it stays.
    """
    older = list(_answers(conversation.said))
    state, present = list[str](), set[int]()
    while older and sum(map(len, state)) < ANSWERS_CHARS:
        answer = older.pop()
        most = OLDER_ANSWER_CHARS if state else ANSWER_CHARS
        state[:0] = [part for text in answer for part in ends_of(paragraphs(text.text), most=most)]
        present.update(text.at for text in answer)
    answered = {text.at for answer in older for text in answer}
    earlier = (
        text
        for text in conversation.said
        if text.by == "agent" and text.at not in present and (text.acts or text.at in answered)
    )
    plan = conversation.plan
    ahead = [f"{status}: {text}" for text, status in plan or () if status not in _OVER]
    return Progress(
        current=_current(conversation.said),
        state=(
            *dict.fromkeys(state),
            *[f"{status}: {text}" for text, status in plan or () if status in _OVER][-PLAN_ENTRIES:],
        ),
        next=tuple(ahead[:PLAN_ENTRIES]) if ahead or plan is None else (NOTHING_LEFT,),
        earlier=_earlier([text for text in earlier if not stays(text.at)]),
        ran=conversation.ran,
    )


def _current(statements: Sequence[Said]) -> tuple[str, ...]:
    """Return the newest message of a person, and those before it as long as all are brief; each once."""
    newest: dict[str, None] = {}
    for text in reversed([text for text in statements if text.by == "person"]):
        if text.brief and len(newest) >= MOST_BRIEF:
            continue
        newest[middle_cut(text.shown, PAGE_CHARS)] = None
        if not text.brief:
            break
    return tuple(reversed(newest))


def _answers(statements: Sequence[Said]) -> Iterator[list[Said]]:
    """Yield for each turn its last text, with those before it as long as all are short."""
    for speaker, texts in groupby(statements, lambda text: text.by):
        answer: list[Said] = []
        for text in reversed([*texts]) if speaker == "agent" else ():
            answer.insert(0, text)
            if not is_brief(text.text, LEAST_ANSWER) or len(answer) > MOST_BRIEF:
                break
        if answer:
            yield answer


def _earlier(texts: Sequence[Said]) -> tuple[str, ...]:
    """Return the first and the last paragraph of earlier texts, the newest as far as there is room, in order."""
    newest: list[str] = []
    room = EARLIER_CHARS
    for text in reversed(texts):
        parts = paragraphs(text.text)
        for part in dict.fromkeys([*parts[-1:], *parts[:1]]):
            newest.append(middle_cut(part, EARLIER_PART_CHARS))
            room -= len(newest[-1])
        if room < 0:
            break
    return tuple(reversed(dict.fromkeys(newest)))


def paragraphs(text: str) -> list[str]:
    r"""Return the paragraphs of `text`, each below the heading or the line that opens it; code is not parted.

    >>> paragraphs("## Fixed\n\nThe reader.\n\n---\nOpen:\n\n- the writer")
    ['## Fixed\nThe reader.', 'Open:\n- the writer']
    """
    parts: list[str] = []
    lines: list[str] = []
    fenced = False
    for line in [*text.split("\n"), ""]:
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if fence or fenced or any(map(str.isalnum, line)):
            lines.append(line.rstrip())
        elif lines and not line.strip() and not _opens(lines[-1]):
            parts.append("\n".join(lines).strip())
            lines = []
    # What opens nothing is left out, unless it is all that there is.
    return [*parts, "\n".join(lines).strip()] if lines and (fenced or not parts) else parts


def _opens(line: str) -> bool:
    """Return whether a line introduces what follows: a heading, a line in bold, or one that ends in a colon."""
    bare = line.strip()
    return bare.startswith("#") or bare.endswith((":", "：")) or (bare[:2] == "**" == bare[-2:])


def ends_of(parts: Sequence[str], *, most: int) -> list[str]:
    """Return the first and the last of `parts`, then those between from both ends, as far as `most` characters reach."""
    chosen: set[int] = set()
    for nth in range(len(parts)):
        place = nth // 2 if nth % 2 else len(parts) - 1 - nth // 2
        most -= min(len(parts[place]), PARAGRAPH_CHARS)
        if most < 0 and len(chosen) > 1:
            break
        chosen.add(place)
    return [middle_cut(parts[place], PARAGRAPH_CHARS) for place in sorted(chosen)]


def middle_cut(text: str, most: int) -> str:
    """Return `text` with at most about `most` characters; of a longer one the middle is left out.

    >>> middle_cut("Write a parser. Read the examples first. Use no library.", 30)
    'Write a parser. Read […] library.'
    """
    if len(text) <= most:
        return text
    ahead = most * 2 // 3
    head, tail = text[:ahead].rstrip(), text[len(text) - (most - ahead) :].lstrip()
    # Scripts without blanks are cut between any two characters.
    head = head.rpartition(" ")[0] if " " in head[ahead // 2 :] and not text[ahead].isspace() else head
    tail = tail.partition(" ")[2] if " " in tail[: len(tail) // 2] else tail
    return f"{head}{_GAP}{tail}"


def _plan(calls: Iterable[Call]) -> list[tuple[str, str]] | None:
    """Return the steps of the newest plan or task list with their status, in order; None without one."""
    plan: list[tuple[str, str]] | None = None
    tasks: dict[str, tuple[str, str]] = {}
    for call in calls:
        key = next((key for key in _PLAN_KEYS if isinstance(call.arguments.get(key), list)), "")
        listed: list[Any] = call.arguments[key] if key else []
        steps = [
            (_text_of(step), step["status"])
            for step in listed
            if isinstance(step, dict) and isinstance(step.get("status"), str)
        ]
        if steps or (not listed and key in _WHOLE_PLANS):
            plan = [(text, status) for text, status in steps if text]
        elif call.tool.lower().startswith("task"):
            _count_task(tasks, call)
    return plan or list(tasks.values()) or plan


def _text_of(step: JsonObject) -> str:
    return next((" ".join(step[key].split()) for key in _TEXT_KEYS if isinstance(step.get(key), str)), "")


def _count_task(tasks: dict[str, tuple[str, str]], call: Call) -> None:
    """Add or update the task of one call; one that is made gets the number that its result names, else the next."""
    task = next((str(call.arguments[key]) for key in _TASK_KEYS if call.arguments.get(key)), "")
    status = call.arguments.get("status")
    if task in tasks and isinstance(status, str):
        tasks[task] = (tasks[task][0], status)
    elif not task and isinstance(call.arguments.get("subject"), str) and call.result is not None:
        numbers = [word.strip("#:.,") for word in call.result.text.split() if word.strip("#:.,").isdecimal()]
        tasks[(numbers or [str(len(tasks) + 1)])[0]] = (_text_of(call.arguments), "pending")


def _ran(calls: Iterable[Call]) -> Iterator[str]:
    """Yield the commits that calls made, and the runs of commands that test, build, push or change something."""
    for call in calls:
        if call.result is None or not call.command or is_refusal(call.result.text):
            continue
        output = without_injected(call.result.text)
        commits = commits_in(call.command, output)
        yield from (f"Committed `{commit.id}`: {commit.subject}" for commit in commits)
        steps = map(git_step, parts_of(call.command) if commits else ())
        pushed = any(step is not None and step[0] == "push" for step in steps)
        if (pushed or not commits) and is_notable(call.command):
            outcome = outcome_of(call.command, output)
            yield f"`{short_command(call.command)}`" + (f": {outcome}" if outcome else "")


def merged_ran(older: Iterable[str], newer: Iterable[str]) -> tuple[str, ...]:
    """Return the last run of each command, the newest at the end, of a bounded number.

    >>> merged_ran(["`make`: failed", "`tox`"], ["`make`: ok"])
    ('`tox`', '`make`: ok')
    """
    last: dict[str, str] = {}
    for line in (*older, *newer):
        command = line.rpartition("`: ")[0].strip("`") or line.strip("`")
        target = line if line.startswith("Committed") else command_target(command)
        last.pop(target, None)
        last[target] = line
    return tuple(last.values())[-MOST_RAN:]
