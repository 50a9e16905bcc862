"""The dialog with a model: one request becomes as many calls as it takes, and one completion.

All model backends share it: the correction after a rejected answer, the weaker form for a server without structured
output, one more try with more room after a cut answer, refusals, parts if the whole does not fit, and the sum of tokens
and cost over all calls. A backend adds how its server is called and how its reply is read; retries and failures of
servers are in `model_server`. Each item or text of a hand-off or task that is too large for one prompt goes to exactly
one part, in order; one that is too large for a part is cut at a line or a blank, and nothing of it is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from aether.architects import model_server
from aether.architects.base import Completion, Request, Settings
from aether.architects.request import (
    MOST_ANSWER_TOKENS,
    item_line,
    numbered,
    session_request,
    summary_request,
    whole_prompt,
)
from aether.errors import BackendFailed
from aether.types import Counter, JsonObject

# Hosted models write 50 to 100 tokens a second: an answer of this size ends within the default timeout.
HOSTED_ANSWER_TOKENS = 6_000
# Half of the 200k window of the smallest current hosted models: their tokenizers count up to a third
# more than ours, and the answer needs room too.
HOSTED_INPUT_TOKENS = 100_000
# So many halvings turn the largest default part into one that fits the smallest window in use.
MOST_HALVINGS = 5
# Below this the instruction outweighs the part, and smaller parts no longer help.
SMALLEST_PART_TOKENS = 200
# As long as the number of an item gets.
MOST_NUMBER = 9_999
NOT_A_SESSION = "The answer was not one JSON object with a summary."

Outcome = Literal["whole", "cut", "refused", "too long"]


class Answer(NamedTuple):
    """The outcome of one call; `detail` is the server's own word for an outcome other than whole."""

    outcome: Outcome
    text: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    detail: str = ""


class Model(NamedTuple):
    """Everything in which the backends differ: how one server is called and its limits, which settings may lower."""

    name: str
    server: str
    exchange: Callable[[str, int, JsonObject], model_server.Reply]
    """Prompt, most output tokens and form to one reply, without retries."""
    read: Callable[[JsonObject], Answer]
    """The body of a reply of status 200 to an answer."""
    forms: tuple[JsonObject, ...]
    """Additions to the request for structured output, strictest first, nothing last."""
    fixes: Mapping[int, str]
    """Advice by HTTP status; 0 is for a server that does not answer."""
    input_tokens: int = HOSTED_INPUT_TOKENS
    """Largest prompt, by the counter of the home."""
    answer_tokens: int = HOSTED_ANSWER_TOKENS
    """Largest answer to aim for in one call; longer ones are requested in parts."""
    room: int = 0
    """Most output tokens of the first try; 0: as many as the settings allow."""


class _Dialog(NamedTuple):
    model: Model
    settings: Settings
    count: Counter
    forms: list[JsonObject]
    """The forms not yet refused; the first one is in use."""
    spent: list[Answer]
    """Every answer that was paid for, useless ones included."""


def converse(request: Request, model: Model, *, settings: Settings, count: Counter) -> Completion:
    """Return the answer of `model` to `request`, in one call or in parts.

    Raises:
        BackendUnavailable: the server, its key or its model is missing.
        BackendFailed: it failed, refused, was cut off twice, or rejects even small parts.
    """
    model = model._replace(
        input_tokens=settings.window_tokens or model.input_tokens,
        answer_tokens=min(model.answer_tokens, settings.max_output_tokens),
        room=min(model.room or settings.max_output_tokens, settings.max_output_tokens),
    )
    # Without a schema the answer is plain text.
    dialog = _Dialog(model, settings, count, list(model.forms) if request.schema else [{}], [])
    if request.task == "summary":
        attempt = _summary_in_turn
        size = task_tokens(request.data, count)
        empty = summary_request({**request.data, "said": []}, feedback=request.feedback)
        most = model.input_tokens - count(whole_prompt(empty))
    else:
        attempt = _session
        size = sum(count(item["content"]) for item in request.data["items"])
        empty = session_request({**request.data, "items": []}, feedback=request.feedback)
        target = min(request.target_tokens, MOST_ANSWER_TOKENS)
        ratio = max(1.0, request.data["total_tokens"] / max(1, target))
        most = min(model.input_tokens - count(whole_prompt(empty)), int(model.answer_tokens * ratio))
    most, spent = max(SMALLEST_PART_TOKENS, most), dialog.spent
    for _ in range(MOST_HALVINGS + 1):
        text = attempt(request, most, dialog)
        if text is not None or most <= SMALLEST_PART_TOKENS:
            break
        most = max(SMALLEST_PART_TOKENS, min(most, size) // 2)
    if text is None:
        raise BackendFailed(
            f"the prompt is too long for the model, even in parts of {most} tokens ({spent[-1].detail}).",
            fix="Use a model with a larger window, or use the extractive backend.",
            where=model.name,
        )
    input_tokens = sum(answer.input_tokens for answer in spent)
    written = sum(answer.output_tokens for answer in spent)
    cost = None
    if settings.input_usd_per_million is not None and settings.output_usd_per_million is not None:
        cost = (
            input_tokens * settings.input_usd_per_million + written * settings.output_usd_per_million
        ) / 1e6
    return Completion(text, model.name, spent[-1].model, input_tokens, written, cost, calls=len(spent))


def _summary_in_turn(request: Request, most: int, dialog: _Dialog) -> str | None:
    """Return the summary of all parts, each the previous summary of the next; None if a part is too long."""
    previous = request.data["previous"]
    for part in split_task(request.data, most_tokens=most, count=dialog.count):
        part_request = summary_request({**part, "previous": previous}, feedback=request.feedback)
        answer = _ask(whole_prompt(part_request), dialog)
        if answer.outcome == "too long":
            return None
        previous = answer.text
    return str(previous)


def _session(request: Request, most: int, dialog: _Dialog) -> str | None:
    """Return the session of all parts, merged; None if a part is too long."""
    handoffs = split_handoff(request.data, most_tokens=most, count=dialog.count)
    if len(handoffs) == 1:
        answer = _ask(whole_prompt(request), dialog)
        return None if answer.outcome == "too long" else answer.text
    sessions: list[JsonObject] = []
    for nth, handoff in enumerate(handoffs, start=1):
        # A later part resolves and supersedes statements of the parts before it.
        earlier = [*handoff.get("earlier", []), *_stated(sessions)]
        part = session_request({**handoff, "earlier": earlier}, feedback=request.feedback)
        answer = _ask(whole_prompt(part), dialog)
        session = find_session(answer.text)
        if answer.outcome == "whole" and session is None:
            answer = _ask(whole_prompt(part._replace(feedback=NOT_A_SESSION)), dialog)
            session = find_session(answer.text)
        if answer.outcome == "too long":
            return None
        if session is None:
            raise BackendFailed(
                f"the answer to part {nth} of {len(handoffs)} was not a session, twice.",
                fix="Try again, use a stronger model, or use the extractive backend.",
                where=dialog.model.name,
            )
        sessions.append(session)
    return json.dumps(merge_sessions(request.data, sessions), ensure_ascii=False)


def _ask(prompt: str, dialog: _Dialog) -> Answer:
    room = dialog.model.room
    answer = _call(prompt, room, dialog)
    if answer.outcome == "cut":
        answer = _call(prompt, 2 * room, dialog)
    fault, fix = "", "Take another model, or use the extractive backend."
    if answer.outcome == "cut":
        fault = f"the answer was cut off at {2 * room} tokens ({answer.detail})."
        fix = "Raise max_output_tokens, compress less at once, or use the extractive backend."
    elif answer.outcome == "refused":
        fault = f"the model refused to answer ({answer.detail})."
    elif answer.outcome == "whole" and not answer.text.strip():
        fault = "the answer was empty."
        fix = "Try again, take another model, or use the extractive backend."
    if fault:
        raise BackendFailed(fault, fix=fix, where=dialog.model.name)
    return answer


def _call(prompt: str, room: int, dialog: _Dialog) -> Answer:
    model, settings = dialog.model, dialog.settings
    reply = model_server.with_retries(lambda: model.exchange(prompt, room, dialog.forms[0]), settings)
    if reply.status in {400, 422} and len(dialog.forms) > 1 and not model_server.is_too_long(reply):
        dialog.forms.pop(0)
        return _call(prompt, room, dialog)
    answer = _read(reply, dialog)
    dialog.spent.append(answer)
    return answer


def _read(reply: model_server.Reply, dialog: _Dialog) -> Answer:
    model = dialog.model
    if model_server.is_too_long(reply):
        return Answer("too long", detail=model_server.failure_text(reply))
    if reply.status != 200 or reply.body.get("error"):
        model_server.raise_failure(
            reply, where=model.name, server=model.server, settings=dialog.settings, fixes=model.fixes
        )
    try:
        if reply.body:
            return model.read(reply.body)
    except (AttributeError, TypeError, LookupError):
        pass
    raise BackendFailed(
        f"the server at {model.server} did not answer in the form of {model.name}: "
        f"{model_server.failure_text(reply)}",
        fix="Check the base URL.",
        where=model.name,
    )


# A blank within this share of a cut is preferred to a cut inside a word.
_LOOK_BACK_SHARE = 0.2
# The lists of a session that parts add to, and the text of an entry; the last part says the state and what is next.
_LISTS = {
    "rules": "text", "key_decisions": "decision", "open": "text", "resolved": "text", "outcomes": "result",
    "high_value_items": "content",
}  # fmt: skip
_LAST = ("state", "next")


def split_handoff(handoff: JsonObject, *, most_tokens: int, count: Counter) -> list[JsonObject]:
    """Return hand-offs that share the items of `handoff`, each of at most `most_tokens` of items.

    The target is shared by size; a protected statement goes with its item.
    """

    def size(item: JsonObject) -> int:
        return count(item_line(item, MOST_NUMBER))

    turns: list[list[JsonObject]] = []
    for item in handoff["items"]:
        if not turns or item["metadata"].get("evidence") == "person":
            turns.append([])
        turns[-1].append(item)
    groups: list[list[JsonObject]] = [[]]
    filled = 0
    for turn in turns:
        tokens = sum(map(size, turn))
        if filled + tokens <= most_tokens:
            groups[-1] += turn
            filled += tokens
            continue
        # A turn goes to one part, unless it alone is too long.
        groups += _grouped(turn, "content", size, most_tokens)
        filled = sum(map(size, groups[-1]))
    groups = [group for group in groups if group] or [[]]
    numbers = numbered(handoff)
    if len(groups) == 1:
        return [{**handoff, "items": groups[0], "item_count": len(groups[0])}]
    return [{**_part(handoff, group, nth, count), "numbers": numbers} for nth, group in enumerate(groups)]


def split_task(task: JsonObject, *, most_tokens: int, count: Counter) -> list[JsonObject]:
    """Return tasks that share the messages of `task`, each of at most `most_tokens` of messages.

    >>> task = {"said": [{"at": 0, "text": "one two"}, {"at": 1, "text": "three"}]}
    >>> [part["said"] for part in split_task(task, most_tokens=9, count=lambda text: len(text) // 4)]
    [[{'at': 0, 'text': 'one two'}], [{'at': 1, 'text': 'three'}]]
    """
    groups = _grouped(task["said"], "text", lambda said: _json_tokens(said, count), most_tokens)
    return [{**task, "said": group} for group in groups]


def task_tokens(task: JsonObject, count: Counter) -> int:
    """Return the tokens of all messages of `task`, as a model is shown them."""
    return sum(_json_tokens(message, count) for message in task["said"])


def _json_tokens(value: JsonObject, count: Counter) -> int:
    return count(json.dumps(value, ensure_ascii=False))


def _grouped(
    entries: Iterable[JsonObject], field: str, size: Callable[[JsonObject], int], most: int
) -> list[list[JsonObject]]:
    """Return the entries in groups of at most `most` tokens; the text in `field` of a larger one is cut."""
    groups: list[list[JsonObject]] = [[]]
    filled = 0
    for entry in entries:
        pieces, tokens = [entry], size(entry)
        if tokens > most and entry[field]:
            frame = size({**entry, field: ""})
            share = max(1, most - frame) / max(1, tokens - frame)
            texts = cut_text(entry[field], int(len(entry[field]) * share))
            pieces = [{**entry, field: text} for text in texts]
        for piece in pieces:
            tokens = size(piece)
            if filled and filled + tokens > most:
                groups.append([])
                filled = 0
            groups[-1].append(piece)
            filled += tokens
    return groups


def _part(handoff: JsonObject, items: list[JsonObject], nth: int, count: Counter) -> JsonObject:
    tokens = sum(count(item["content"]) for item in items)
    ids = {item["id"] for item in items}
    all_ids = {item["id"] for item in handoff["items"]}
    share = tokens / max(1, sum(count(item["content"]) for item in handoff["items"]))
    return {
        **handoff, "items": items, "item_count": len(items), "total_tokens": tokens,
        "target_tokens": max(1, round(handoff["target_tokens"] * share)),
        "protected": [
            statement for statement in handoff.get("protected", [])
            if statement.get("id") in ids or (nth == 0 and statement.get("id") not in all_ids)
        ],
    }  # fmt: skip


def cut_text(text: str, chars: int) -> list[str]:
    """Return `text` in pieces of about `chars` characters, cut at a line or a blank if one is near.

    >>> cut_text("one two three", 8)
    ['one two ', 'three']
    """
    pieces = []
    start, step = 0, max(1, chars)
    while start < len(text):
        end = start + step
        if end < len(text):
            near = max(start, end - int(step * _LOOK_BACK_SHARE))
            blank = max(text.rfind("\n", near, end), text.rfind(" ", near, end))
            end = blank + 1 if blank >= 0 else end
        pieces.append(text[start:end])
        start = end
    return pieces


def merge_sessions(handoff: JsonObject, sessions: list[JsonObject]) -> JsonObject:
    """Return one session from those of the parts: summaries in order, lists without exact repeats and without what a later part ended.

    >>> merge_sessions({"compression_id": "c", "prepared_at": "t", "phase": 1}, [
    ...     {"summary": "A.", "open": [{"text": "x"}]},
    ...     {"summary": "B.", "resolved": [{"target": "part_1/open/0", "text": "x works"}]}])["open"]
    []
    """
    summaries = (session.get("summary") for session in sessions)
    ended_places = {
        str(entry.get(name))
        for session in sessions
        for field, name in (("resolved", "target"), ("key_decisions", "supersedes"))
        for entry in _objects(session, field)
    }
    merged: JsonObject = {
        "id": handoff["compression_id"], "session_id": handoff["compression_id"],
        "compressed_at": handoff["prepared_at"], "phase": handoff["phase"],
        "summary": " ".join(text.strip() for text in summaries if isinstance(text, str) and text.strip()),
        **{name: sessions[-1].get(name) or [] for name in _LAST},
    }  # fmt: skip
    for name, key in _LISTS.items():
        entries: dict[str, JsonObject] = {}
        for number, session in enumerate(sessions, start=1):
            for place, entry in enumerate(_objects(session, name)):
                ended = f"part_{number}/{name}/{place}" in ended_places or str(
                    entry.get("target")
                ).startswith("part_")
                if isinstance(entry.get(key), str) and not ended:
                    entries.setdefault(entry[key], entry)
        merged[name] = list(entries.values())
    return merged


def _stated(sessions: list[JsonObject]) -> Iterator[JsonObject]:
    """Yield the rules, decisions and open points of the parts before, as a hand-off lists those of earlier sessions."""
    for number, session in enumerate(sessions, start=1):
        for name, kind in (("rules", "rule"), ("key_decisions", "decision"), ("open", "open")):
            for place, entry in enumerate(_objects(session, name)):
                yield {
                    "id": f"part_{number}/{name}/{place}",
                    "kind": kind,
                    "text": str(entry.get(_LISTS[name], "")),
                }


def _objects(session: JsonObject, name: str) -> list[JsonObject]:
    entries = session.get(name)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def find_session(text: str) -> JsonObject | None:
    """Return the first JSON object with a summary in `text`, fenced or among words.

    >>> find_session('Here it is: {"summary": "Done."} Bye')
    {'summary': 'Done.'}
    """
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if isinstance(value.get("summary"), str):
                return dict(value)
        start = text.find("{", end)
    return None
