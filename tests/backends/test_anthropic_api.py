import sys

import pytest

from aether.backends import anthropic
from aether.backends.base import Settings
from aether.backends.request import session_request
from aether.errors import BackendFailed, BackendUnavailable
from tests.backends import fakes

REQUEST = session_request(fakes.handoff(fakes.item(1, "We chose lines over whole files.")))


def complete(**settings):
    return anthropic.complete(
        REQUEST, settings=Settings(backoff_seconds=0.001, **settings), count=fakes.quarter
    )


def test_without_a_key_the_variable_and_the_way_out_are_named():
    with pytest.raises(BackendUnavailable, match=r"ANTHROPIC_API_KEY is not set\. .*the extractive backend"):
        complete()


def test_a_profile_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_PROFILE", "nobody")

    with pytest.raises(BackendUnavailable, match=r"profile cannot be used.*nobody.*Set ANTHROPIC_API_KEY"):
        complete()


def test_an_identity_that_cannot_be_read_at_the_call_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_IDENTITY_TOKEN_FILE", str(tmp_path / "missing"))
    monkeypatch.setenv("ANTHROPIC_FEDERATION_RULE_ID", "rule")
    monkeypatch.setenv("ANTHROPIC_ORGANIZATION_ID", "org")

    with pytest.raises(BackendUnavailable, match="profile cannot be used"):
        complete(base_url="http://127.0.0.1:1", max_retries=0)


def test_without_the_package_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "anthropic", None)

    with pytest.raises(BackendUnavailable, match="pip install aether-memory"):
        complete(api_key=fakes.KEY)


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_key_address_and_model_come_from_the_environment(monkeypatch, variable):
    with fakes.serving(fakes.ANTHROPIC, fakes.says("{}")) as fake:
        monkeypatch.setenv(variable, fakes.KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        monkeypatch.setenv("AETHER_MODEL", "claude-other")
        completion = complete()

    assert completion.model == fake.requests[0]["model"] == "claude-other"


def test_the_default_model_is_the_cheap_one():
    with fakes.serving(fakes.ANTHROPIC, fakes.says("{}")) as fake:
        complete(api_key=fakes.KEY, base_url=fake.url)

    assert fake.requests[0]["model"] == "claude-haiku-5-5"
    assert fake.requests[0]["max_tokens"] == 16_000


def test_text_is_picked_by_type_and_thinking_is_left_out():
    with fakes.serving(fakes.ANTHROPIC, fakes.says("the answer")) as fake:
        completion = complete(api_key=fakes.KEY, base_url=fake.url)

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
        complete(api_key=fakes.KEY, base_url=fake.url, max_output_tokens=64_000)

    assert fake.requests[1]["max_tokens"] == 128_000


def test_the_words_of_the_api_are_in_the_error():
    with (
        fakes.serving(fakes.ANTHROPIC, fakes.fails(400, "messages: at least one is required")) as fake,
        pytest.raises(BackendFailed, match="at least one is required"),
    ):
        complete(api_key=fakes.KEY, base_url=fake.url)
