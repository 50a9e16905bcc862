"""Summarising: whom is asked, how often, for how much, and what is made of the answers."""

from __future__ import annotations

import threading

from aether.architects.base import Completion, Settings
from aether.conversation import summarise
from aether.conversation.shapes import Facts, RemovedText, SummaryTask
from aether.conversation.summarise import write_summary
from aether.tokens.estimate import estimate
from tests.tables import rows

GOOD = "The parser was rewritten by hand, because generated ones hid the errors. Tests pass on three systems."


def task(most=200, words=400):
    said = tuple(
        RemovedText(
            nth, "assistant", "", f"Step {nth}: the parser read file {nth}.py and found {nth} errors in it."
        )
        for nth in range(words // 10)
    )
    return SummaryTask("task_state", 1, said, "Before that, the lexer was chosen.", Facts(), most)


def ask(backend, *, timeout=60.0, most=200):
    return write_summary(
        task(most), backend=backend, settings=Settings(timeout_seconds=timeout), count=estimate
    )


def test_a_good_answer_is_accepted_at_once():
    asked = []

    found = ask(lambda said, most, strategy: asked.append((said, most, strategy)) or GOOD)

    assert found.prose == GOOD
    assert found.failures == []
    ((said, most, strategy),) = asked
    assert (most, strategy) == (200, "task_state")
    assert said[0] == {"role": "assistant", "content": "Before that, the lexer was chosen."}
    assert found.record["backend"] == "caller"


def test_a_rejected_answer_leaves_it_to_the_built_in_summariser():
    asked = []

    found = ask(lambda said, most, strategy: asked.append((most, strategy)) or "")

    assert asked == [(200, "task_state")]
    assert (found.prose, found.record["backend"]) == (None, "extractive")
    assert [one["message"] for one in found.failures] == ["It is empty."]


def test_a_summariser_that_raises_is_not_asked_again():
    asked = []

    def fails(said, most, strategy):
        asked.append(most)
        raise RuntimeError("no network")

    found = ask(fails)

    assert asked == [200]
    assert found.record["backend"] == "extractive"
    assert "no network" in found.failures[0]["message"]


def test_a_summariser_that_hangs_is_abandoned():
    release = threading.Event()

    found = ask(lambda said, most, strategy: release.wait(30) or GOOD, timeout=0.05)
    release.set()

    assert found.record["backend"] == "extractive"
    assert "no answer" in found.failures[0]["message"]


@rows("answer", [None, 7, b"bytes"])
def test_an_answer_that_is_not_text_is_a_failure(answer):
    assert ask(lambda said, most, strategy: answer).record["backend"] == "extractive"


def test_a_backend_that_is_not_there_leaves_it_to_the_extractive_one():
    found = ask("command:/nowhere/at-all")

    assert found.record["backend"] == "extractive"
    assert found.failures[0]["error_type"] in {"BackendUnavailable", "BackendFailed"}


def test_a_model_never_gets_a_secret(monkeypatch):
    asked = []

    class Model:
        NAME = "openai"

        @staticmethod
        def complete(request, *, settings, count):
            asked.append(request)
            return Completion(text=GOOD, backend="openai", model="m", input_tokens=9)

    secret = "hunter2" * 3
    said = (RemovedText(0, "user", "", f"password={secret} is what the server takes."), *task().said)
    monkeypatch.setattr(summarise, "backend_of", lambda name: (Model, {}))

    found = write_summary(task()._replace(said=said), backend="openai", settings=Settings(), count=estimate)

    assert len(asked) == 1
    assert secret not in str(asked)
    assert found.record["input_tokens"] == 9
    assert len(found.record["prompt_sha256"]) == 64
