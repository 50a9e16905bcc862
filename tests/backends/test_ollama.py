import pytest

from aether.backends import ollama
from aether.backends.base import Settings
from aether.backends.request import session_request
from aether.errors import BackendFailed, BackendUnavailable
from tests.backends import fakes
from tests.tables import rows

REQUEST = session_request(fakes.handoff(fakes.item(1, "We chose lines over whole files.")))


def complete(request=REQUEST, **settings):
    return ollama.complete(request, settings=Settings(backoff_seconds=0.001, **settings), count=fakes.quarter)


def test_without_a_model_the_variable_and_the_list_are_named():
    with pytest.raises(BackendUnavailable, match=r"ollama list.*AETHER_MODEL"):
        complete()


def test_the_address_comes_from_the_environment(monkeypatch):
    with fakes.serving(fakes.OLLAMA, fakes.says("{}")) as fake:
        monkeypatch.setenv("OLLAMA_HOST", fake.root.removeprefix("http://"))
        monkeypatch.setenv("AETHER_MODEL", "small")
        completion = complete()

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
        complete(model="m", base_url=fake.root)

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
        complete(model="m", base_url=fake.root)


def test_a_prompt_that_the_server_cut_silently_is_noticed():
    cutting = fakes.OLLAMA._replace(
        answer=lambda body, step: fakes._ollama_answer(body, step) | {"prompt_eval_count": 40}
    )
    with (
        fakes.serving(cutting, fakes.says("{}")) as fake,
        pytest.raises(BackendFailed, match=r"too long.*the server read 40 of about \d+ tokens"),
    ):
        complete(model="m", base_url=fake.root)


@pytest.mark.parametrize("reported", [None, 0])
def test_a_server_that_reports_nothing_is_believed(reported):
    silent = fakes.OLLAMA._replace(
        answer=lambda body, step: fakes._ollama_answer(body, step) | {"prompt_eval_count": reported}
    )
    with fakes.serving(silent, fakes.says("{}")) as fake:
        assert complete(model="m", base_url=fake.root).input_tokens == 0


def test_a_long_stretch_is_sent_in_small_parts():
    notes = [fakes.item(nth, f"Note {nth}. " + "word " * 800) for nth in range(12)]
    with fakes.serving(fakes.OLLAMA, fakes.says(fakes.session())) as fake:
        complete(session_request(fakes.handoff(*notes)), model="m", base_url=fake.root)

    assert len(fake.requests) >= 3
    assert all(body["options"]["num_ctx"] <= 16_384 for body in fake.requests)
