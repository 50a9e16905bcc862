"""Summaries of compactions and checkpoints: ask for one, judge the answer, ask for less, and fall back to the extractive backend.

The first try asks for the size of the policy; a rejected answer (too long, a refusal, an echo, the text of an error, empty)
is followed by tries for a brief one of half and of a quarter of the size. After that, or when the backend fails, the built-in
extractive backend writes the summary, and the record says so. A failing summariser raises no error here.
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
from aether.archive.forms import ARCHIVE, proven, writing_task, written_fault
from aether.conversation import levels
from aether.conversation.facts import removed_texts
from aether.conversation.partition import cut_prose
from aether.conversation.shapes import LEVEL_NAMES, Facts, SummaryTask
from aether.errors import AetherError, BackendFailed
from aether.messages.model import Message
from aether.redact.redact import DEFAULT, Rules, redacted
from aether.text.summary_checks import EMPTY, model_fault, proven_lines, without_quotes
from aether.types import Counter, JsonObject

FALLBACK = "extractive"
# Name in the receipt of a summariser that is a function of the caller.
CALLER = "caller"
# Of the wanted size: after an answer that is too long, or refused, a model is asked twice more.
SHARES = (0.5, 0.25)
# A smaller size cannot hold a summary.
LEAST_TOKENS = 32
# Of a checkpoint, for all tries together: the user waits for it.
CHECKPOINT_TRIES = 3
CHECKPOINT_TEMPERATURE = 0.3

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
    answer: str = ""
    """The words of a model in the text of a checkpoint."""


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
                texts = [{"role": each.role, "content": each.text} for each in wanted.said]
                if wanted.previous:
                    texts.insert(0, {"role": "assistant", "content": wanted.previous})
                answer = _ask_caller(backend, texts, wanted.max_tokens, wanted.strategy, settings)
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
        # The extractive backend selects from the input: an empty answer says that the facts hold all there is.
        fault = ""
        if name != FALLBACK:
            fault = model_fault(
                answer.text, given=[said.text for said in wanted.said], before=wanted.previous,
                most_tokens=wanted.max_tokens, count=count, about=_about(wanted.facts),
            )  # fmt: skip
        if not fault:
            return WrittenSummary(
                answer.text if answer.text.strip() else None,
                _record(spent, wanted.strategy, failures),
                _failures_for_receipt(failures),
            )
        reason_given = f"It {fault}."
        failures.append({**_failure(name, "Rejected", reason_given, final=False), "feedback": reason_given})
    return WrittenSummary(None, _record(spent, task.strategy, failures), _failures_for_receipt(failures))


def write_checkpoint(
    messages: Sequence[Message], *, level: int, mode: str, goal: str, backend: str | Summarizer, settings: Settings,
    count: Counter, most_tokens: int, previous: str = "",
) -> WrittenSummary:  # fmt: skip
    """Return the text of a checkpoint for `messages`, for earlier ones (`previous`), or for both, at a level.

    A model is asked within the seconds of `settings`; a rejected answer is followed by up to two tries at the level below, in half the
    room. Lines that the messages do not bear out are dropped (`text.support`); if they are more than half, the answer is
    rejected. What it leaves out of names, numbers and what the mode never compresses is added word for word. After that, or with the
    extractive backend, the text is selected from the input, which never fails. It has at most `most_tokens` tokens, and without
    messages at most those of `previous`.
    """
    said = removed_texts(messages, range(len(messages)))
    source = levels.Source(messages, said, previous, mode, goal)
    name = backend if isinstance(backend, str) else CALLER
    tries = _tries(level, most_tokens) if name != FALLBACK else []
    end = monotonic() + settings.timeout_seconds
    reach = settings._replace(temperature=CHECKPOINT_TEMPERATURE)
    spent: list[Completion] = []
    failures: list[JsonObject] = []
    for asked, most in tries:
        reach = reach._replace(timeout_seconds=end - monotonic())
        if reach.timeout_seconds <= 0:
            break
        task = levels.task(source, level=asked, most=most)
        answer = _answer(backend, task, settings=reach, rules=DEFAULT, count=count)
        if isinstance(answer, AetherError):
            failures.append(_failure(name, answer.code, answer.what, final=True))
            if "temperature" in answer.what:  # some models refuse any other than their own
                reach = reach._replace(temperature=None)
            elif "refused" not in answer.what:
                break
            continue
        spent.append(answer)
        checked = proven_lines(answer.text, [*(each.text for each in said), previous, goal])
        prose = cut_prose(checked.kept, most=most, count=count)
        fault = model_fault(
            without_quotes(answer.text), given=[each.text for each in said], before=previous, most_tokens=most, count=count,
            about=[goal] if goal else None,
        ) or checked.fault or levels.fault(prose, source, count=count)  # fmt: skip
        if prose and not fault:
            whole = levels.with_facts(prose, source, most=most_tokens, count=count)
            written = _checkpoint(whole, spent, failures, level=asked, mode=mode)
            return written._replace(answer=prose, record=written.record | {"unproven": len(checked.dropped)})
        failures.append(_failure(name, "Rejected", f"It {fault or EMPTY}.", final=False))
    text = levels.extract(source, level=level, most=most_tokens, count=count)
    return _checkpoint(text, [*spent, Completion(text, FALLBACK)], failures, level=level, mode=mode)


def write_archived(
    conversation: JsonObject, *, backend: str | Summarizer, settings: Settings, count: Counter
) -> WrittenSummary:  # fmt: skip
    """Return the summary that a model writes of a conversation for the archive, from its key points, with a record of the tries.

    A rejected answer is followed by one try in half the room. After that, and with the extractive backend, the prose is
    None: `archive.forms.form` then selects from the conversation, which never fails.
    """
    name = backend if isinstance(backend, str) else CALLER
    spent: list[Completion] = []
    failures: list[JsonObject] = []
    whole = writing_task(conversation, count=count)
    for most in (whole["max_tokens"], whole["max_tokens"] // 2) if name != FALLBACK else ():
        task = {**whole, "max_tokens": most}
        answer = (
            _answer(backend, task, settings=settings, rules=DEFAULT, count=count)
            if most >= LEAST_TOKENS
            else None
        )
        if answer is None or isinstance(answer, AetherError):
            failures += [_failure(name, answer.code, answer.what, final=True)] if answer else []
            break
        spent.append(answer)
        if not (fault := written_fault(answer.text, task, conversation, count=count)):
            checked = proven(answer.text, conversation)
            record = _record(spent, ARCHIVE, failures) | {"unproven": len(checked.dropped)}
            return WrittenSummary(checked.kept, record, _failures_for_receipt(failures))
        failures.append(_failure(name, "Rejected", f"It {fault}.", final=False))
    return WrittenSummary(None, _record(spent, ARCHIVE, failures), _failures_for_receipt(failures))


def _tries(level: int, most_tokens: int) -> list[tuple[int, int]]:
    """Return the level and the most tokens of each try, each one level below the last and half as large."""
    sizes = [int(most_tokens * levels.MODEL_SHARE / 2**nth) for nth in range(CHECKPOINT_TRIES)]
    return [(max(1, level - nth), most) for nth, most in enumerate(sizes) if most >= LEAST_TOKENS]


def _answer(
    backend: str | Summarizer, task: JsonObject, *, settings: Settings, rules: Rules | None, count: Counter
) -> Completion | AetherError:
    """Return the answer of a summariser, or its failure; one that hangs is abandoned after the timeout."""
    try:
        if callable(backend):
            said = [{"role": each["role"], "content": each["text"]} for each in task["said"]]
            said = [{"role": "assistant", "content": task["previous"]}, *said] if task["previous"] else said
            said = [{"role": "system", "content": task["goal"]}, *said] if task.get("goal") else said
            return _ask_caller(
                backend,
                said,
                task["max_tokens"],
                LEVEL_NAMES[task["level"]] if "level" in task else task["strategy"],
                settings,
            )
        module, overrides = backend_of(backend)
        request = summary_request(task if rules is None else redacted(task, rules))
        reach = settings._replace(**cast(Any, overrides))
        answer = _within(
            lambda: module.complete(request, settings=reach, count=count), settings.timeout_seconds
        )
    except AetherError as reason:
        return reason
    if isinstance(answer, AetherError):
        return answer
    if isinstance(answer, Completion):
        return answer
    return BackendFailed(f"{answer!r}.", fix="See what it raised or returned.", where=backend)


def _checkpoint(
    text: str, spent: list[Completion], failures: list[JsonObject], *, level: int, mode: str
) -> WrittenSummary:
    record = _record(spent, "checkpoint", failures, level=level) | {"level": level, "mode": mode}
    return WrittenSummary(text or None, record, _failures_for_receipt(failures))


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


def _ask_caller(
    own: Summarizer, said: list[JsonObject], most: int, strategy: str, settings: Settings
) -> Completion:
    """Return the answer of the caller's function; one that hangs is abandoned after the timeout."""
    found = _within(lambda: own(said, most, strategy), settings.timeout_seconds)
    if isinstance(found, BackendFailed):
        raise found
    if not isinstance(found, str):
        raise BackendFailed(f"{found!r}.", fix="See what it raised or returned.", where="summarizer")
    return Completion(text=found, backend=CALLER)


def _within(work: Callable[[], Any], seconds: float) -> Any:
    """Return what `work` returns, or the exception that it raises; a failure if neither happens within `seconds`."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as reason:  # noqa: BLE001 - any error of a summariser is its failure, not ours
            found.append(reason)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(min(seconds, TIMEOUT_MAX))
    if not found:
        return BackendFailed(f"no answer within {seconds:g} s.", fix="Raise the timeout.", where="summarizer")
    return found[0]


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


def _record(
    spent: list[Completion], strategy: str, failures: list[JsonObject], *, level: int = 0
) -> JsonObject:
    costs = [one.cost_usd for one in spent if one.cost_usd is not None]
    last = spent[-1] if spent else Completion("", "none")
    return {
        "strategy": strategy, "backend": last.backend, "model": last.model,
        "input_tokens": sum(one.input_tokens for one in spent),
        "output_tokens": sum(one.output_tokens for one in spent),
        "cost_usd": round(sum(costs), 6) if costs else None,
        "prompt_sha256": "" if last.backend in (FALLBACK, CALLER) else prompt_sha256(strategy, level),
        "tries": sum(one.calls for one in spent),
        "rejected": [f"{each['backend']}: {each['message']}" for each in failures],
    }  # fmt: skip
