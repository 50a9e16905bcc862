"""The dialog with a model: one request becomes as many calls as it takes, and one completion.

What every model backend shares is here: the correction after a rejected answer, the weaker form where
a server does not know structured output, one more try with more room after a cut answer, refusals,
parts where the whole does not fit, and the sum of tokens and cost over all calls. A backend adds how
its server is asked and how its reply is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from aether import prompts
from aether.backends import chunks
from aether.backends import model_server as backends_exchange
from aether.backends.base import Completion, Request, Settings
from aether.backends.chunks import split_task, task_tokens
from aether.backends.request import merge_prompt, session_request, summary_request
from aether.errors import BackendFailed
from aether.tokens.count import session_tokens
from aether.types import Counter, JsonObject

# At the 50 to 100 tokens a second of hosted models, an answer of this size ends within the default timeout.
HOSTED_ANSWER_TOKENS = 6_000
# Half of the 200k window of the smallest current hosted models: their tokenizers count up to a third
# more than ours, and the answer needs room too.
HOSTED_INPUT_TOKENS = 100_000
# Halving this often turns the largest default part into one that fits the smallest window in use.
MOST_HALVINGS = 5
# Below this the instruction outweighs the part, and smaller parts no longer help.
SMALLEST_PART_TOKENS = 200
# Parts each miss their target a little; only a larger excess is worth one more call.
MERGE_EXCESS = 1.25
NOT_A_SESSION = "The answer was not one JSON object with a summary."


Outcome = Literal["whole", "cut", "refused", "too long"]


class Answer(NamedTuple):
    """What one call brought; `detail` is the server's own word for an outcome other than whole."""

    outcome: Outcome
    text: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    detail: str = ""


class Model(NamedTuple):
    """How one server is asked: everything in which the backends differ."""

    name: str
    server: str
    exchange: Callable[[str, int, JsonObject], backends_exchange.Reply]
    """Prompt, most output tokens and form to one reply, without retries."""
    read: Callable[[JsonObject], Answer]
    """The body of a reply of status 200 to an answer."""
    forms: tuple[JsonObject, ...]
    """What to add to the request for structured output, strictest first, nothing last."""
    fixes: Mapping[int, str]
    """Advice by HTTP status; 0 is for a server that does not answer."""
    input_tokens: int
    """Largest prompt, by the counter of the home."""
    answer_tokens: int
    """Largest answer to aim for in one call; longer ones are asked for in parts."""
    room: int
    """Most output tokens of the first try."""


class _Talk(NamedTuple):
    model: Model
    settings: Settings
    count: Counter
    forms: list[JsonObject]
    """The forms not yet refused; the first one is in use."""
    spent: list[Answer]
    """Every answer that was paid for, also those that were of no use."""


def converse(request: Request, model: Model, *, settings: Settings, count: Counter) -> Completion:
    """Return the answer that `model` gives to `request`, in one call or in parts.

    Raises:
        BackendUnavailable: the server, its key or its model is missing.
        BackendFailed: it failed, refused, was cut off twice, or does not take even small parts.
    """
    # Where no schema is asked for, the answer is plain text.
    talk = _Talk(model, settings, count, list(model.forms) if request.schema else [{}], [])
    if request.task == "summary":
        size = task_tokens(request.data, count)
        text = _halving(
            lambda most: _in_turn(request, most, talk), _most_said_tokens(request, talk), size, talk
        )
    else:
        size = _item_tokens(request, count)
        text = _halving(
            lambda most: _session(request, most, talk), _most_item_tokens(request, model, count), size, talk
        )
    return _completion(text, talk)


def _halving(attempt: Callable[[int], str | None], most: int, size: int, talk: _Talk) -> str:
    """Return what `attempt` makes of parts of at most so many tokens, of fewer where they are too long."""
    for _ in range(MOST_HALVINGS + 1):
        text = attempt(most)
        if text is not None:
            return text
        if most <= SMALLEST_PART_TOKENS:
            break
        most = max(SMALLEST_PART_TOKENS, min(most, size) // 2)
    raise BackendFailed(
        f"the prompt is too long for the model, even in parts of {most} tokens ({talk.spent[-1].detail}).",
        fix="Take a model with a larger window, or use the extractive backend.",
        where=talk.model.name,
    )


def _session(request: Request, most: int, talk: _Talk) -> str | None:
    handoffs = chunks.split_handoff(request.data, most_tokens=most, count=talk.count)
    return _in_one(request, talk) if len(handoffs) == 1 else _in_parts(request, handoffs, talk)


def _most_said_tokens(request: Request, talk: _Talk) -> int:
    empty = summary_request({**request.data, "said": []}, feedback=request.feedback)
    return max(SMALLEST_PART_TOKENS, talk.model.input_tokens - talk.count(_words(empty)))


def _in_turn(request: Request, most: int, talk: _Talk) -> str | None:
    """Return the summary of all parts: that of each is given to the next one as the summary before."""
    previous = request.data["previous"]
    for part in split_task(request.data, most_tokens=most, count=talk.count):
        asked = summary_request({**part, "previous": previous}, feedback=request.feedback)
        answer = _ask(_words(asked), talk)
        if answer.outcome == "too long":
            return None
        previous = answer.text
    return str(previous)


def _most_item_tokens(request: Request, model: Model, count: Counter) -> int:
    empty = session_request({**request.data, "items": []}, feedback=request.feedback)
    room = model.input_tokens - count(_words(empty))
    ratio = request.data["total_tokens"] / max(1, request.target_tokens)
    return max(SMALLEST_PART_TOKENS, min(room, int(model.answer_tokens * max(1.0, ratio))))


def _item_tokens(request: Request, count: Counter) -> int:
    return sum(count(item["content"]) for item in request.data["items"])


def _in_one(request: Request, talk: _Talk) -> str | None:
    answer = _ask(_words(request), talk)
    return None if answer.outcome == "too long" else answer.text


def _in_parts(request: Request, handoffs: list[JsonObject], talk: _Talk) -> str | None:
    sessions = []
    for nth, handoff in enumerate(handoffs, start=1):
        part = session_request(handoff, feedback=request.feedback)
        answer = _ask(_words(part), talk)
        session = chunks.find_session(answer.text)
        if answer.outcome == "whole" and session is None:
            answer = _ask(_words(part._replace(feedback=NOT_A_SESSION)), talk)
            session = chunks.find_session(answer.text)
        if answer.outcome == "too long":
            return None
        if session is None:
            raise BackendFailed(
                f"the answer to part {nth} of {len(handoffs)} was not a session, twice.",
                fix="Try again, take a stronger model, or use the extractive backend.",
                where=talk.model.name,
            )
        sessions.append(session)
    merged = _shortened(request, chunks.merge_sessions(request.data, sessions), sessions, talk)
    return json.dumps(merged, ensure_ascii=False)


def _shortened(request: Request, merged: JsonObject, sessions: list[JsonObject], talk: _Talk) -> JsonObject:
    size = session_tokens(merged, talk.count)
    prompt = merge_prompt(request.data, sessions)
    fits = request.target_tokens <= talk.model.answer_tokens and talk.count(prompt) <= talk.model.input_tokens
    if size <= request.target_tokens * MERGE_EXCESS or not fits:
        return merged
    try:
        shorter = chunks.find_session(_ask(prompt, talk).text)
    except BackendFailed:
        # The parts are there already; a merge that fails only leaves them longer.
        return merged
    return shorter if shorter and session_tokens(shorter, talk.count) < size else merged


def _ask(prompt: str, talk: _Talk) -> Answer:
    answer = _call(prompt, talk.model.room, talk)
    if answer.outcome == "cut":
        answer = _call(prompt, 2 * talk.model.room, talk)
    if answer.outcome == "cut":
        raise BackendFailed(
            f"the answer was cut off at {2 * talk.model.room} tokens ({answer.detail}).",
            fix="Raise max_output_tokens, compress less at once, or use the extractive backend.",
            where=talk.model.name,
        )
    if answer.outcome == "refused":
        raise BackendFailed(
            f"the model refused to answer ({answer.detail}).",
            fix="Take another model, or use the extractive backend.",
            where=talk.model.name,
        )
    if answer.outcome == "whole" and not answer.text.strip():
        raise BackendFailed(
            "the answer was empty.",
            fix="Try again, take another model, or use the extractive backend.",
            where=talk.model.name,
        )
    return answer


def _call(prompt: str, room: int, talk: _Talk) -> Answer:
    model, settings = talk.model, talk.settings
    found = backends_exchange.with_retries(lambda: model.exchange(prompt, room, talk.forms[0]), settings)
    if found.status in {400, 422} and len(talk.forms) > 1 and not backends_exchange.is_too_long(found):
        talk.forms.pop(0)
        return _call(prompt, room, talk)
    answer = _read(found, talk)
    talk.spent.append(answer)
    return answer


def _read(found: backends_exchange.Reply, talk: _Talk) -> Answer:
    model = talk.model
    if backends_exchange.is_too_long(found):
        return Answer("too long", detail=backends_exchange.failure_text(found))
    if found.status != 200 or found.body.get("error"):
        backends_exchange.raise_failure(
            found, where=model.name, server=model.server, settings=talk.settings, fixes=model.fixes
        )
    try:
        if found.body:
            return model.read(found.body)
    except (AttributeError, TypeError, LookupError):
        pass
    raise BackendFailed(
        f"the server at {model.server} answered with something else than {model.name} does: "
        f"{backends_exchange.failure_text(found)}",
        fix="Check the base URL.",
        where=model.name,
    )


def _words(request: Request) -> str:
    text = request.prompt
    if request.feedback:
        text += "\n" + prompts.render("correction", feedback=request.feedback)
    # A lone surrogate cannot be sent; inside the data the escape still says the same.
    return text.encode("utf-8", "backslashreplace").decode()


def _completion(text: str, talk: _Talk) -> Completion:
    settings, spent = talk.settings, talk.spent
    read = sum(answer.input_tokens for answer in spent)
    written = sum(answer.output_tokens for answer in spent)
    cost = None
    if settings.input_usd_per_million is not None and settings.output_usd_per_million is not None:
        cost = (read * settings.input_usd_per_million + written * settings.output_usd_per_million) / 1e6
    return Completion(
        text=text,
        backend=talk.model.name,
        model=spent[-1].model,
        input_tokens=read,
        output_tokens=written,
        cost_usd=cost,
        calls=len(spent),
    )
