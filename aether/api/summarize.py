"""Summaries of compactions: ask for one, judge the answer, ask for less, and fall back to the extractive backend.

The first try asks for the size of the policy; a rejected answer (too long, a refusal, an echo, the text of an error, empty)
is followed by tries for a brief one of half and of a quarter of the size. After that, or when the backend fails, the built-in
extractive backend writes the summary, and the record says so. A failing summariser raises no error here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from threading import TIMEOUT_MAX, Thread
from typing import Any, NamedTuple, cast

from aether.backends import backend as backend_of
from aether.backends.base import Completion, Settings
from aether.backends.request import prompt_sha256, summary_request
from aether.compaction.facts import removed_texts
from aether.compaction.shapes import Facts, SummaryTask
from aether.errors import AetherError, BackendFailed
from aether.messages.model import Message
from aether.redact.redact import DEFAULT, Rules, redacted
from aether.text.model_faults import EMPTY, model_fault
from aether.types import Counter, JsonObject

FALLBACK = "extractive"
# Name in the receipt of a summariser that is a function of the caller.
CALLER = "caller"
# Of the wanted size: after an answer that is too long, or refused, a model is asked twice more.
SHARES = (0.5, 0.25)
# A smaller size cannot hold a summary.
LEAST_TOKENS = 32

Summarizer = Callable[[list[JsonObject], int, str], str]
"""A function of the caller: gets removed messages as `{role, content}`, most tokens, strategy; returns the prose."""


class WrittenSummary(NamedTuple):
    """A summary, and the tries that it took."""

    prose: str | None
    """None if every try failed; the summary then consists of the facts."""
    record: JsonObject
    """The author and the cost of all tries, for the receipt."""
    failures: list[JsonObject]
    """Each failed try: `backend`, `error_type`, `message`."""


def write_summary(
    task: SummaryTask, *, backend: str | Summarizer, settings: Settings, count: Counter, rules: Rules | None = DEFAULT
) -> WrittenSummary:  # fmt: skip
    """Return the prose for `task` by `backend`, else by the extractive one, with a record of the tries.

    Requests to a backend other than the extractive one leave this machine, so they are redacted by `rules`.
    """
    spent: list[Completion] = []
    failures: list[JsonObject] = []
    first = backend if isinstance(backend, str) else CALLER
    smaller = [most for share in SHARES if (most := int(task.max_tokens * share)) >= LEAST_TOKENS]
    briefs = [task._replace(strategy="brief", max_tokens=most) for most in smaller]
    tries = [] if first == FALLBACK else [(first, wanted) for wanted in (task, *briefs)]
    for name, wanted in [*tries, (FALLBACK, task)]:
        last = failures[-1] if failures else {}
        if last.get("backend") == name and last["final"]:
            continue
        try:
            if name == CALLER and callable(backend):
                answer = _ask_caller(backend, wanted, settings)
            else:
                module, overrides = backend_of(name)
                data = task_as_json(wanted)
                data = data if name == FALLBACK or rules is None else redacted(data, rules)
                request = summary_request(data, feedback=last.get("feedback", ""))
                reach = settings._replace(**cast(Any, overrides))
                answer = module.complete(request, settings=reach, count=count)
        except AetherError as reason:
            refused = isinstance(reason, BackendFailed) and "refused" in reason.what
            failures.append(_failure(name, reason.code, reason.what, final=not refused))
            continue
        spent.append(answer)
        # The extractive backend selects from the input, so only an empty answer of it is rejected.
        if name == FALLBACK:
            fault = "" if answer.text.strip() else EMPTY
        else:
            fault = model_fault(
                answer.text, given=[said.text for said in wanted.said], before=wanted.previous,
                most_tokens=wanted.max_tokens, count=count, about=_about(wanted.facts),
            )  # fmt: skip
        if not fault:
            return WrittenSummary(
                answer.text, _record(spent, wanted, failures), _failures_for_receipt(failures)
            )
        reason_given = f"It {fault}."
        failures.append({**_failure(name, "Rejected", reason_given, final=False), "feedback": reason_given})
    return WrittenSummary(None, _record(spent, task, failures), _failures_for_receipt(failures))


def write_checkpoint(
    messages: Sequence[Message], *, level: int, mode: str, goal: str, backend: str | Summarizer, settings: Settings,
    count: Counter, most_tokens: int, previous: str = "", rules: Rules | None = DEFAULT,
) -> WrittenSummary:  # fmt: skip
    """Return the prose of a checkpoint for `messages`, or of `previous` written again, at a level."""
    del level, mode
    facts = Facts(goals=(goal,) if goal else ())
    said = removed_texts(messages, range(len(messages)))
    task = SummaryTask("task_state", 1, said, previous, facts, most_tokens)
    return write_summary(task, backend=backend, settings=settings, count=count, rules=rules)


def _about(facts: Facts) -> list[str]:
    """Return what a summary has to be about: goals, requests, decisions, files, open calls and names."""
    said = (
        facts.goals,
        facts.state,
        facts.next,
        facts.constraints,
        facts.decisions,
        facts.requests,
        facts.open_calls,
        facts.names,
    )
    paths = [PurePath(file.path).name for file in facts.files]
    return [*(text for texts in said for text in texts), *paths]


def _ask_caller(own: Summarizer, task: SummaryTask, settings: Settings) -> Completion:
    """Return the answer of the caller's function; one that hangs is abandoned after the timeout."""
    said = [{"role": each.role, "content": each.text} for each in task.said]
    if task.previous:
        said.insert(0, {"role": "assistant", "content": task.previous})
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(own(said, task.max_tokens, task.strategy))
        except Exception as reason:  # noqa: BLE001 - any error of the function is its failure, not ours
            found.append(reason)

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(min(settings.timeout_seconds, TIMEOUT_MAX))
    if not found:
        raise BackendFailed(
            f"no answer within {settings.timeout_seconds:g} s.", fix="Raise the timeout.", where="summarizer"
        )
    if not isinstance(found[0], str):
        raise BackendFailed(f"{found[0]!r}.", fix="See what it raised or returned.", where="summarizer")
    return Completion(text=found[0], backend=CALLER)


def task_as_json(task: SummaryTask) -> JsonObject:
    """Return a summary task as the data of a request."""
    return {
        **task._asdict(),
        "said": [each._asdict() for each in task.said],
        "facts": {
            **task.facts._asdict(),
            "files": [each._asdict() for each in task.facts.files],
            "errors": [each._asdict() for each in task.facts.errors],
        },
    }


def _failure(backend: str, kind: str, message: str, *, final: bool) -> JsonObject:
    return {"backend": backend, "error_type": kind, "message": message, "final": final}


def _failures_for_receipt(failures: list[JsonObject]) -> list[JsonObject]:
    return [{key: each[key] for key in ("backend", "error_type", "message")} for each in failures]


def _record(spent: list[Completion], task: SummaryTask, failures: list[JsonObject]) -> JsonObject:
    costs = [one.cost_usd for one in spent if one.cost_usd is not None]
    last = spent[-1] if spent else Completion("", "none")
    return {
        "strategy": task.strategy, "backend": last.backend, "model": last.model,
        "input_tokens": sum(one.input_tokens for one in spent),
        "output_tokens": sum(one.output_tokens for one in spent),
        "cost_usd": round(sum(costs), 6) if costs else None,
        "prompt_sha256": "" if last.backend in (FALLBACK, CALLER) else prompt_sha256(task.strategy),
        "tries": sum(one.calls for one in spent),
        "rejected": [f"{each['backend']}: {each['message']}" for each in failures],
    }  # fmt: skip
