"""Every provider is found by its name and configured by settings or environment, and its replies are read."""

from __future__ import annotations

import inspect
import sys

import pytest

from aether.architects import anthropic, backend, ollama, openai
from aether.architects.base import Backend, Settings
from aether.architects.request import session_request
from aether.errors import BackendFailed, BackendUnavailable, InvalidInput
from tests.architects import fakes
from tests.tables import rows


@rows("name", ["anthropic", "openai", "ollama"])
def test_a_name_gives_its_module_and_no_overrides(name):
    module, overrides = backend(name)

    assert (module.NAME, overrides) == (name, {})


def test_a_command_gives_its_module_and_the_program():
    module, overrides = backend("command: jq '.a:b' ")

    assert module.NAME == "command"
    assert overrides == {"command": "jq '.a:b'"}


@rows("spec", ["", "gpt", "manual", "command", "command: ", "ollama:llama", "Anthropic"])
def test_anything_else_is_refused_with_the_names(spec):
    with pytest.raises(
        InvalidInput, match="extractive, claude-code, anthropic, openai, ollama, manual, command"
    ):
        backend(spec)


@rows("spec", ["anthropic", "openai", "ollama", "command:true"])
def test_a_backend_module_offers_what_the_protocol_says(spec):
    module, _ = backend(spec)

    promised = inspect.signature(Backend.complete).parameters
    assert list(inspect.signature(module.complete).parameters) == list(promised)[1:]
    assert isinstance(module.NAME, str)


REQUEST = session_request(fakes.handoff(fakes.item(1, "We chose lines over whole files.")))


def ask_anthropic(**settings):
    return anthropic.complete(
        REQUEST, settings=Settings(backoff_seconds=0.001, **settings), count=fakes.quarter
    )


def test_without_a_key_the_variable_and_the_way_out_are_named():
    with pytest.raises(BackendUnavailable, match=r"ANTHROPIC_API_KEY is not set\. .*the extractive backend"):
        ask_anthropic()


def test_a_missing_profile_is_reported(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_PROFILE", "nobody")

    with pytest.raises(BackendUnavailable, match=r"profile cannot be used.*nobody.*Set ANTHROPIC_API_KEY"):
        ask_anthropic()


def test_an_unreadable_identity_is_reported_at_the_call(monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_IDENTITY_TOKEN_FILE", str(tmp_path / "missing"))
    monkeypatch.setenv("ANTHROPIC_FEDERATION_RULE_ID", "rule")
    monkeypatch.setenv("ANTHROPIC_ORGANIZATION_ID", "org")

    with pytest.raises(BackendUnavailable, match="profile cannot be used"):
        ask_anthropic(base_url="http://127.0.0.1:1", max_retries=0)


def test_without_the_package_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "anthropic", None)

    with pytest.raises(BackendUnavailable, match="pip install "):
        ask_anthropic(api_key=fakes.KEY)


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_key_address_and_model_come_from_the_environment(monkeypatch, variable):
    with fakes.serving(fakes.ANTHROPIC, fakes.says("{}")) as fake:
        monkeypatch.setenv(variable, fakes.KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        monkeypatch.setenv("AETHER_MODEL", "claude-other")
        completion = ask_anthropic()

    assert completion.model == fake.requests[0]["model"] == "claude-other"


def test_a_redirect_takes_the_key_to_nobody_else():
    with (
        fakes.serving(fakes.ANTHROPIC, fakes.says("{}")) as other,
        fakes.serving(
            fakes.ANTHROPIC, fakes.fails(307, "over there", Location=f"{other.url}/v1/messages")
        ) as fake,
        pytest.raises(BackendFailed, match="307"),
    ):
        ask_anthropic(api_key=fakes.KEY, base_url=fake.url, max_retries=0)

    assert other.requests == []


def test_the_default_model_is_the_cheap_one():
    with fakes.serving(fakes.ANTHROPIC, fakes.says("{}")) as fake:
        ask_anthropic(api_key=fakes.KEY, base_url=fake.url)

    assert fake.requests[0]["model"] == "claude-haiku-5-5"
    assert fake.requests[0]["max_tokens"] == 16_000


def test_text_is_picked_by_type_and_thinking_is_left_out():
    with fakes.serving(fakes.ANTHROPIC, fakes.says("the answer")) as fake:
        completion = ask_anthropic(api_key=fakes.KEY, base_url=fake.url)

    assert completion.text == "the answer"


def test_a_block_of_another_kind_is_left_out_even_if_it_has_text():
    content = [
        {"type": "future", "text": "no"},
        {"type": "text", "text": "one "},
        {"type": "text", "text": "two"},
    ]

    assert anthropic._read({"content": content}).text == "one two"


def test_tokens_read_from_and_written_to_the_cache_count_as_input():
    usage = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": 4,
        "output_tokens": 8,
    }

    answer = anthropic._read({"content": [], "usage": usage})

    assert (answer.input_tokens, answer.output_tokens) == (7, 8)


def test_a_window_that_was_exceeded_means_too_long():
    assert anthropic._read({"stop_reason": "model_context_window_exceeded"}).outcome == "too long"


def test_a_large_room_is_not_refused_by_the_package():
    with fakes.serving(fakes.ANTHROPIC, fakes.cuts(), fakes.says("{}")) as fake:
        ask_anthropic(api_key=fakes.KEY, base_url=fake.url, max_output_tokens=64_000)

    assert fake.requests[1]["max_tokens"] == 128_000


def test_the_words_of_the_api_are_in_the_error():
    with (
        fakes.serving(fakes.ANTHROPIC, fakes.fails(400, "messages: at least one is required")) as fake,
        pytest.raises(BackendFailed, match="at least one is required"),
    ):
        ask_anthropic(api_key=fakes.KEY, base_url=fake.url)


OPEN = fakes.OPENAI._replace(
    flaw=lambda headers, _body: (400, "a key was sent" if "Authorization" in headers else "")
)


def ask_openai(**settings):
    return openai.complete(REQUEST, settings=Settings(backoff_seconds=0.001, **settings), count=fakes.quarter)


def test_without_a_key_openai_itself_is_not_asked():
    with pytest.raises(BackendUnavailable, match=r"OPENAI_API_KEY is not set\. .*the extractive backend"):
        ask_openai(model="m")


def test_without_a_model_the_variable_is_named():
    with pytest.raises(BackendUnavailable, match="AETHER_MODEL"):
        ask_openai(api_key=fakes.KEY)


def test_a_local_server_needs_no_key(monkeypatch):
    with fakes.serving(OPEN, fakes.says("{}")) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        monkeypatch.setenv("AETHER_MODEL", "local")
        completion = ask_openai()

    assert completion.model == "local"


@rows("tail", ["", "/", "/v1", "/v1/"])
def test_the_address_may_be_written_with_or_without_the_version(tail):
    with fakes.serving(OPEN, fakes.says("{}")) as fake:
        assert ask_openai(model="m", base_url=fake.root + tail).text == "{}"


def test_openai_itself_gets_the_limit_in_its_own_parameter(monkeypatch):
    sent = []

    def post(url, body, **_more):
        sent.append((url, body))
        return openai.model_server.parsed_reply(200, b'{"choices": [{"message": {"content": "{}"}}]}', {})

    monkeypatch.setattr(openai.model_server, "post", post)
    ask_openai(model="m", api_key=fakes.KEY, max_output_tokens=700)

    ((url, body),) = sent
    assert url == "https://api.openai.com/v1/chat/completions"
    assert body["max_completion_tokens"] == 700
    assert "max_tokens" not in body


def test_a_refusal_is_reported_in_its_own_words():
    with (
        fakes.serving(fakes.OPENAI, fakes.refuses()) as fake,
        pytest.raises(BackendFailed, match="I cannot help with that"),
    ):
        ask_openai(model="m", api_key=fakes.KEY, base_url=fake.url)


def test_filtered_content_is_a_refusal():
    assert openai._read({"choices": [{"finish_reason": "content_filter"}]}).outcome == "refused"


def test_structured_output_is_given_up_step_by_step():
    with fakes.serving(fakes.OPENAI, fakes.fails(400), fakes.fails(422), fakes.says("{}")) as fake:
        ask_openai(model="m", api_key=fakes.KEY, base_url=fake.url)

    forms = [body.get("response_format", {}).get("type") for body in fake.requests]
    assert forms == ["json_schema", "json_object", None]


def ask_ollama(request=REQUEST, **settings):
    return ollama.complete(request, settings=Settings(backoff_seconds=0.001, **settings), count=fakes.quarter)


def test_without_a_model_the_variable_and_the_list_are_named():
    with pytest.raises(BackendUnavailable, match=r"ollama list.*AETHER_MODEL"):
        ask_ollama()


def test_the_address_comes_from_the_environment(monkeypatch):
    with fakes.serving(fakes.OLLAMA, fakes.says("{}")) as fake:
        monkeypatch.setenv("OLLAMA_HOST", fake.root.removeprefix("http://"))
        monkeypatch.setenv("AETHER_MODEL", "small")
        completion = ask_ollama()

    assert completion.model == "small"


@rows(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0:9000", "http://127.0.0.1:9000"),
        (":9000", "http://127.0.0.1:9000"),
        ("box", "http://box:11434"),
        ("http://box", "http://box:80"),
        ("https://box/", "https://box:443"),
        ("http://[::1]:9000", "http://[::1]:9000"),
        ("[::1]", "http://[::1]:11434"),
        ("box:9000/api-root/", "http://box:9000/api-root"),
    ],
)
def test_every_way_of_writing_the_host_gives_an_address(host, address):
    assert ollama._server(host) == address


def test_the_window_holds_the_prompt_with_a_margin_and_the_answer():
    with fakes.serving(fakes.OLLAMA, fakes.says("{}")) as fake:
        ask_ollama(model="m", base_url=fake.root)

    options = fake.requests[0]["options"]
    prompt = fakes.quarter(fake.requests[0]["messages"][0]["content"])
    assert options["num_ctx"] >= prompt * 1.3 + options["num_predict"]
    assert options["num_ctx"] % ollama.WINDOW_STEP_TOKENS == 0
    assert options["num_ctx"] < prompt * 1.3 + options["num_predict"] + ollama.WINDOW_STEP_TOKENS


def test_a_model_that_is_not_there_is_to_be_pulled():
    with (
        fakes.serving(fakes.OLLAMA, fakes.fails(404, "model 'm' not found")) as fake,
        pytest.raises(BackendUnavailable, match='Run "ollama pull m"'),
    ):
        ask_ollama(model="m", base_url=fake.root)


def test_a_prompt_that_the_server_cut_silently_is_noticed():
    cutting = fakes.OLLAMA._replace(
        answer=lambda body, step: fakes._ollama_answer(body, step) | {"prompt_eval_count": 40}
    )
    with (
        fakes.serving(cutting, fakes.says("{}")) as fake,
        pytest.raises(BackendFailed, match=r"too long.*the server read 40 of about \d+ tokens"),
    ):
        ask_ollama(model="m", base_url=fake.root)


@pytest.mark.parametrize("reported", [None, 0])
def test_a_server_that_reports_nothing_is_believed(reported):
    silent = fakes.OLLAMA._replace(
        answer=lambda body, step: fakes._ollama_answer(body, step) | {"prompt_eval_count": reported}
    )
    with fakes.serving(silent, fakes.says("{}")) as fake:
        assert ask_ollama(model="m", base_url=fake.root).input_tokens == 0


def test_a_long_stretch_is_sent_in_small_parts():
    notes = [fakes.item(nth, f"Note {nth}. " + "word " * 800) for nth in range(12)]
    with fakes.serving(fakes.OLLAMA, fakes.says(fakes.session())) as fake:
        ask_ollama(session_request(fakes.handoff(*notes)), model="m", base_url=fake.root)

    assert len(fake.requests) >= 2
    assert all(body["options"]["num_ctx"] <= 20_480 for body in fake.requests)
