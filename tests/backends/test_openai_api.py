import pytest

from aether.backends import openai
from aether.backends.base import Settings
from aether.backends.request import session_request
from aether.errors import BackendFailed, BackendUnavailable
from tests.backends import fakes
from tests.tables import rows

REQUEST = session_request(fakes.handoff(fakes.item(1, "We chose lines over whole files.")))
OPEN = fakes.OPENAI._replace(
    flaw=lambda headers, _body: (400, "a key was sent" if "Authorization" in headers else "")
)


def complete(**settings):
    return openai.complete(REQUEST, settings=Settings(backoff_seconds=0.001, **settings), count=fakes.quarter)


def test_without_a_key_openai_itself_is_not_asked():
    with pytest.raises(BackendUnavailable, match=r"OPENAI_API_KEY is not set\. .*the extractive backend"):
        complete(model="m")


def test_without_a_model_the_variable_is_named():
    with pytest.raises(BackendUnavailable, match="AETHER_MODEL"):
        complete(api_key=fakes.KEY)


def test_a_local_server_needs_no_key(monkeypatch):
    with fakes.serving(OPEN, fakes.says("{}")) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        monkeypatch.setenv("AETHER_MODEL", "local")
        completion = complete()

    assert completion.model == "local"


@rows("tail", ["", "/", "/v1", "/v1/"])
def test_the_address_may_be_written_with_or_without_the_version(tail):
    with fakes.serving(OPEN, fakes.says("{}")) as fake:
        assert complete(model="m", base_url=fake.root + tail).text == "{}"


def test_openai_itself_is_told_the_room_in_its_own_word(monkeypatch):
    sent = []

    def post(url, body, **_more):
        sent.append((url, body))
        return openai.wire.reply(200, b'{"choices": [{"message": {"content": "{}"}}]}', {})

    monkeypatch.setattr(openai.wire, "post", post)
    complete(model="m", api_key=fakes.KEY, max_output_tokens=700)

    ((url, body),) = sent
    assert url == "https://api.openai.com/v1/chat/completions"
    assert body["max_completion_tokens"] == 700
    assert "max_tokens" not in body


def test_a_refusal_is_reported_in_its_own_words():
    with (
        fakes.serving(fakes.OPENAI, fakes.refuses()) as fake,
        pytest.raises(BackendFailed, match="I cannot help with that"),
    ):
        complete(model="m", api_key=fakes.KEY, base_url=fake.url)


def test_filtered_content_is_a_refusal():
    assert openai._read({"choices": [{"finish_reason": "content_filter"}]}).outcome == "refused"


def test_structured_output_is_given_up_step_by_step():
    with fakes.serving(fakes.OPENAI, fakes.fails(400), fakes.fails(422), fakes.says("{}")) as fake:
        complete(model="m", api_key=fakes.KEY, base_url=fake.url)

    forms = [body.get("response_format", {}).get("type") for body in fake.requests]
    assert forms == ["json_schema", "json_object", None]
