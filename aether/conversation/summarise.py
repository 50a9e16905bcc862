"""Summarise: ask a summariser for a text at a level, accept its answer only through one gate, and record who wrote it.

A summariser is a backend, or a function of the caller. Its answer passes the gate if it is a summary, not an error or an
echo, and its sources bear it out as far as the gate demands. Else, and with the extractive backend, the prose is None, and
the caller selects from the input, which never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from threading import TIMEOUT_MAX, Thread
from time import monotonic
from typing import Any, NamedTuple, cast

from aether.architects import backend as backend_of
from aether.architects.base import Completion, Settings
from aether.architects.request import prompt_sha256, summary_request
from aether.conversation.archive_levels import writing_task
from aether.conversation.archived import said as said_in
from aether.conversation.shapes import LEVEL_NAMES, Facts, SummaryTask, task_as_json
from aether.errors import AetherError, BackendFailed
from aether.redact.redact import DEFAULT, Rules, redacted
from aether.text.summary_checks import model_fault, proven_lines, without_quotes
from aether.types import Counter, JsonObject

FALLBACK = "extractive"
# Name in the receipt of a summariser that is a function of the caller.
CALLER = "caller"
Summarizer = Callable[[list[JsonObject], int, str], str]
"""A function of the caller: gets removed messages as `{role, content}`, most tokens, strategy or level; returns the prose."""
# A person who waits learns how long after so many seconds, and again.
WAIT_SECONDS = 3.0


class Gate(NamedTuple):
    """What an answer is measured by."""

    texts: Sequence[str]
    """The texts that it summarises."""
    previous: str = ""
    about: Sequence[str] | None = None
    """An answer shares a word with these or with the texts; None: that is not asked."""
    sources: Sequence[str] | None = None
    """What bears out each line: other lines are dropped; None: no proof is asked."""
    accept: Callable[[str, int], tuple[str, str]] = lambda prose, _: (prose, "")
    """Returns the proven prose for a task of so many tokens, and why it is rejected, if it is."""


class Written(NamedTuple):
    """A summary, and the tries that it took."""

    prose: str | None
    """None if every try failed."""
    record: JsonObject
    """The author and the cost of all tries, for the receipt."""
    failures: list[JsonObject]
    """Each failed try: `backend`, `error_type`, `message`."""


def summarise(
    task: JsonObject, gate: Gate, *, backend: str | Summarizer, settings: Settings, count: Counter,
    rules: Rules | None = DEFAULT, waiting: Callable[[float], object] = lambda _: None,
) -> Written:  # fmt: skip
    """Return the answer to `task` if it passes the gate; it comes within the seconds of `settings`.

    A request to a backend leaves this machine, so it is redacted by `rules`. A model that refuses a temperature is asked
    without one. While there is no answer, `waiting` is called every few seconds with those that have passed.
    """
    name = backend if isinstance(backend, str) else CALLER
    end = monotonic() + settings.timeout_seconds
    spent: list[Completion] = []
    failures: list[JsonObject] = []
    for temperature in dict.fromkeys((settings.temperature, None)) if name != FALLBACK else ():
        reach = settings._replace(temperature=temperature, timeout_seconds=end - monotonic())
        try:
            answer = _ask(backend, task, settings=reach, count=count, rules=rules, waiting=waiting)
        except AetherError as reason:
            failures.append({"backend": name, "error_type": reason.code, "message": reason.what})
            if "temperature" in reason.what:
                continue
            break
        spent.append(answer)
        prose, unproven, fault = _pass(gate, answer.text, most=task["max_tokens"], count=count)
        if not fault:
            proof = {} if gate.sources is None else {"unproven": unproven}
            return Written(prose, _record(task, spent, failures) | proof, failures)
        failures.append({"backend": name, "error_type": "Rejected", "message": f"It {fault}."})
        break
    return Written(None, _record(task, [*spent, Completion("", FALLBACK)], failures), failures)


def _pass(gate: Gate, answer: str, *, most: int, count: Counter) -> tuple[str, int, str]:
    """Return the prose of an answer, how many of its lines are not proven, and why it is rejected, in words that follow "It"."""
    fault = model_fault(
        answer if gate.sources is None else without_quotes(answer), given=gate.texts, before=gate.previous,
        most_tokens=most, count=count, about=gate.about,
    )  # fmt: skip
    if fault:
        return "", 0, fault
    if gate.sources is None:
        return answer, 0, ""
    checked = proven_lines(answer, gate.sources)
    prose, refusal = gate.accept(checked.kept, most)
    return prose, len(checked.dropped), checked.fault or refusal


def _ask(
    backend: str | Summarizer, task: JsonObject, *, settings: Settings, count: Counter, rules: Rules | None,
    waiting: Callable[[float], object],
) -> Completion:  # fmt: skip
    """Return the answer of a summariser; one that hangs is abandoned after the timeout.

    Raises:
        AetherError: it failed.
    """
    if callable(backend):
        summarizer = backend
        messages = [{"role": text["role"], "content": text["text"]} for text in task["said"]]
        if task["previous"]:
            messages.insert(0, {"role": "assistant", "content": task["previous"]})
        if task.get("goal"):
            messages.insert(0, {"role": "system", "content": task["goal"]})
        kind = LEVEL_NAMES[task["level"]] if "level" in task else task["strategy"]
        text = _within(
            lambda: summarizer(messages, task["max_tokens"], kind), settings.timeout_seconds, waiting
        )
        if not isinstance(text, str):
            raise BackendFailed(f"{text!r}.", fix="Check what it raised or returned.", where="summarizer")
        return Completion(text=text, backend=CALLER)
    module, overrides = backend_of(backend)
    request = summary_request(task if rules is None else redacted(task, rules))
    reach = settings._replace(**cast(Any, overrides))
    answer = _within(
        lambda: module.complete(request, settings=reach, count=count), settings.timeout_seconds, waiting
    )
    if not isinstance(answer, Completion):
        raise BackendFailed(f"{answer!r}.", fix="Check what it raised or returned.", where=backend)
    return answer


def _within(work: Callable[[], Any], seconds: float, waiting: Callable[[float], object]) -> Any:
    """Return what `work` returns, or an exception of its own that is not ours.

    Raises:
        AetherError: it raised that, or did not return within `seconds`.
    """
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as reason:  # noqa: BLE001 - any error of a summariser is its failure, not ours
            results.append(reason)

    thread = Thread(target=run, daemon=True)
    thread.start()
    started, most = monotonic(), min(seconds, TIMEOUT_MAX)
    while (left := started + most - monotonic()) > 0:
        thread.join(min(left, WAIT_SECONDS))
        if not thread.is_alive():
            break
        waiting(monotonic() - started)
    if not results:
        raise BackendFailed(f"no answer within {seconds:g} s.", fix="Raise the timeout.", where="summarizer")
    if isinstance(results[0], AetherError):
        raise results[0]
    return results[0]


def _record(task: JsonObject, spent: list[Completion], failures: list[JsonObject]) -> JsonObject:
    costs = [answer.cost_usd for answer in spent if answer.cost_usd is not None]
    last, level = spent[-1], task.get("level", 0)
    record: JsonObject = {
        "strategy": "checkpoint" if level else task["strategy"], "backend": last.backend, "model": last.model,
        "input_tokens": sum(answer.input_tokens for answer in spent),
        "output_tokens": sum(answer.output_tokens for answer in spent),
        "cost_usd": round(sum(costs), 6) if costs else None,
        "prompt_sha256": "" if last.backend in (FALLBACK, CALLER) else prompt_sha256(task["strategy"], level),
        "tries": sum(answer.calls for answer in spent),
        "rejected": [f"{failure['backend']}: {failure['message']}" for failure in failures],
    }  # fmt: skip
    return record | ({"level": level, "mode": task["mode"]} if level else {})


def write_summary(
    task: SummaryTask, *, backend: str | Summarizer, settings: Settings, count: Counter, rules: Rules | None = DEFAULT
) -> Written:  # fmt: skip
    """Return the prose for the summary of a compaction."""
    gate = Gate([text.text for text in task.said], task.previous, about=_about(task.facts))
    return summarise(task_as_json(task), gate, backend=backend, settings=settings, count=count, rules=rules)


def _about(facts: Facts) -> list[str]:
    """Return what a summary has to be about: goals, requests, decisions, files, open calls and names."""
    texts = (
        *facts.goals, *facts.state, *facts.next, *facts.constraints, *facts.decisions, *facts.requests,
        *facts.open_calls, *facts.names,
    )  # fmt: skip
    return [*texts, *(PurePath(file.path).name for file in facts.files)]


def write_archived(
    conversation: JsonObject, *, backend: str | Summarizer, settings: Settings, count: Counter
) -> Written:  # fmt: skip
    """Return the summary of a conversation for the archive, from its key points."""
    task = writing_task(conversation, count=count)
    about = [conversation["title"], *conversation["kept"]]
    sources = [*about, *(speech.text for speech in said_in(conversation))]
    gate = Gate([text["text"] for text in task["said"]], about=about, sources=sources)
    return summarise(task, gate, backend=backend, settings=settings, count=count)
