"""Failures of model servers are retried where that may help, and raised with advice where not."""

from datetime import timedelta
from email.utils import format_datetime

import pytest

from aether import clock
from aether.architects import model_server
from aether.architects.base import Settings
from aether.conversation import checks
from aether.errors import BackendFailed, BackendUnavailable, InvalidInput
from tests.architects import fakes
from tests.tables import rows

ECHO = fakes.Protocol(
    name="echo",
    path="/",
    base="/",
    flaw=lambda _headers, _body: (200, ""),
    answer=lambda body, _step: body,
    error=lambda _status, message: {"message": message},
    too_long="",
    forms=(),
)


@pytest.fixture
def naps(monkeypatch):
    """Return the list of pauses that would have been made."""
    taken = []
    monkeypatch.setattr(model_server.time, "sleep", taken.append)
    return taken


def attempts(*replies):
    script = list(replies)
    return lambda: script.pop(0)


def failed(reply, **more):
    chosen = {"where": "w", "server": "s", "settings": Settings(), "fixes": {0: "Start it."}}
    model_server.raise_failure(reply, **(chosen | more))


def test_a_posted_body_comes_back_as_a_reply():
    with fakes.serving(ECHO, fakes.says("")) as fake:
        found = model_server.post(fake.url, {"a": "é\ud800"}, headers={}, timeout_seconds=60)

    assert (found.status, found.body, found.failure) == (200, {"a": "é\ud800"}, "")


@rows("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status):
    with fakes.serving(ECHO, fakes.fails(status, "over there", Location="http://127.0.0.1:1/")) as fake:
        found = model_server.post(fake.url, {}, headers={}, timeout_seconds=60)

    assert (found.status, len(fake.requests)) == (status, 1)


def test_an_error_without_a_body_shows_its_status():
    with fakes.serving(ECHO, fakes.raw("", 503)) as fake:
        found = model_server.post(fake.url, {}, headers={}, timeout_seconds=60)

    assert (found.status, found.body, found.text) == (503, {}, "Service Unavailable")


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:80", "file:///etc/passwd", "http://", "http://a b", "http://h:port", "http://h\n"]
)
def test_an_invalid_web_address_is_refused(url):
    with pytest.raises(InvalidInput, match="not the address of a server, http or https"):
        model_server.post(url, {}, headers={}, timeout_seconds=1)


def test_pauses_double_and_end_with_the_last_try(naps):
    down = model_server.Reply(500, {})

    assert model_server.with_retries(attempts(down, down, down), Settings(backoff_seconds=0.5)) == down
    assert naps == [0.5, 1.0]


def test_a_pause_beyond_the_longest_is_not_made(naps):
    slow = model_server.Reply(429, {}, retry_after="61")

    assert model_server.with_retries(attempts(slow), Settings()) == slow
    assert naps == []


def test_no_retries_means_one_try(naps):
    assert (
        model_server.with_retries(attempts(model_server.Reply(500, {})), Settings(max_retries=0)).status
        == 500
    )
    assert naps == []


@pytest.mark.parametrize("asked", ["7", "7.0"])
def test_the_pause_that_the_server_asks_for_is_made(naps, asked):
    model_server.with_retries(
        attempts(model_server.Reply(429, {}, retry_after=asked), model_server.Reply(200, {})), Settings()
    )

    assert naps == [7.0]


def test_a_pause_may_be_asked_for_as_a_date(naps):
    when = format_datetime(clock.now() + timedelta(seconds=30), usegmt=True)

    model_server.with_retries(
        attempts(model_server.Reply(429, {}, retry_after=when), model_server.Reply(200, {})), Settings()
    )

    assert 25 < naps[0] <= 30


@pytest.mark.parametrize(
    "asked", ["soon", "-5", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 -0000"]
)
def test_a_pause_that_makes_no_sense_is_the_usual_one(naps, asked):
    model_server.with_retries(
        attempts(model_server.Reply(429, {}, retry_after=asked), model_server.Reply(200, {})), Settings()
    )

    assert naps == [0.5]


@pytest.mark.parametrize("status", [200, 400, 401, 404, 413])
def test_permanent_failures_are_not_retried(naps, status):
    assert model_server.with_retries(attempts(model_server.Reply(status, {})), Settings()).status == status
    assert naps == []


def test_a_server_error_about_the_length_is_not_retried(naps):
    words = {"error": "the input length exceeds the context length"}

    found = model_server.with_retries(attempts(model_server.Reply(500, words)), Settings())

    assert model_server.is_too_long(found)
    assert naps == []


@rows(
    "words",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "This model's maximum context length is 8192 tokens.",
        "the request exceeds the available context size",
        "request too large",
        "context_length_exceeded",
        "the input length exceeds the context length",
        "Requested tokens (9000) exceed context window of 4096",
        "prompts\nof this batch are too large",
        "maximum prompt length is 32768",
        "The decoder prompt (length 9000) is longer than the maximum model length of 4096.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Input tokens exceed the configured limit of 272000 tokens",
        "Input is too long for requested model.",
        "request_too_large",
        "exceed_context_size_error",
        "Please reduce the length of the messages",
        "too many input tokens",
        "n_ctx = 2048",
    ],
)
def test_words_about_the_length_are_understood_wherever_they_are_read(words):
    assert model_server.is_too_long(model_server.Reply(400, {"error": {"message": words}}))
    assert model_server.says_too_long(words)
    assert checks.classified(words).kind == "overflow"


@rows(
    ("status", "words"),
    [
        (400, "max_tokens is too large: 32000"),
        (400, "credit balance is too low"),
        (401, "no context for this key"),
        (429, "prompt too long for this rate"),
        (200, "prompt is too long"),
        (500, "context deadline exceeded"),
        (400, "context canceled"),
        (400, "Invalid request. The image is too large."),
    ],
)
def test_other_words_are_not_about_the_length(status, words):
    assert not model_server.is_too_long(model_server.Reply(status, {"error": {"message": words}}))


@rows(
    ("reply", "words"),
    [
        (model_server.Reply(400, {"error": {"message": "m"}}), "m"),
        (model_server.Reply(400, {"error": "e"}), "e"),
        (model_server.Reply(400, {"message": "v"}), "v"),
        (model_server.Reply(400, {"error": {"code": 1}}, "raw"), "raw"),
        (model_server.Reply(400, {}, "x" * 500), "x" * 299 + "…"),
    ],
)
def test_the_servers_own_words_are_found_and_shortened(reply, words):
    assert model_server.failure_text(reply) == words


def test_each_failure_says_what_to_do():
    with pytest.raises(BackendUnavailable, match=r"^w: no server answers at s \(refused\)\. Start it\."):
        failed(model_server.Reply(0, {}, "refused", failure="unreachable"))
    with pytest.raises(BackendFailed, match="Raise the timeout"):
        failed(model_server.Reply(0, {}, failure="timeout"))
    with pytest.raises(BackendFailed, match="Try again"):
        failed(model_server.Reply(0, {}, "gone", failure="dropped"))
    with pytest.raises(BackendFailed, match="Correct what it names"):
        failed(model_server.Reply(400, {}, "bad"))
    with pytest.raises(BackendFailed, match="wait a while"):
        failed(model_server.Reply(503, {}, "busy"))


def test_an_explicit_value_comes_before_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " from-env\n")

    assert model_server.setting_or_environment("", "OPENAI_API_KEY") == "from-env"
    assert model_server.setting_or_environment("mine", "OPENAI_API_KEY") == "mine"
    assert model_server.setting_or_environment("", "OPENAI_OTHER") == ""


@pytest.mark.parametrize("value", ["two\nlines", "ключ"])
def test_a_value_that_cannot_be_sent_is_refused_without_being_shown(value):
    with pytest.raises(InvalidInput) as caught:
        model_server.setting_or_environment(value)

    assert value not in str(caught.value)


def test_deep_nesting_is_no_reply_body():
    assert model_server.parsed_reply(200, b"[" * 100_000, {}).body == {}
