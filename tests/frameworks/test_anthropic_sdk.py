"""The arguments of `messages.create`, with the real SDK against a server on this machine."""

from __future__ import annotations

import copy
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from aether.api import compact, conversations, tokens
from aether.errors import BudgetExceeded
from aether.frameworks.anthropic_sdk import answered, compacted
from aether.messages import convert
from aether.messages.validate import check
from aether.store.conversations import load

MODEL = "claude-haiku-5-5"
WINDOW = 6_000
# What the server's count is of the length of a request in characters.
CHARS_PER_TOKEN = 1
# A server notices that it is to end after so long.
POLL_SECONDS = 0.01


class Fake(BaseHTTPRequestHandler):
    """Counts a request by its length, refuses one that a provider would refuse, and answers `ok`."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        if self.path.endswith("count_tokens"):
            answer = {"input_tokens": tokens_of(body)}
        else:
            answer = {
                "id": "msg", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": "end_turn",
                "stop_sequence": None, "content": [{"type": "text", "text": "ok"}],
                "usage": {"input_tokens": tokens_of(body), "output_tokens": 1},
            }  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def tokens_of(body):
    counted = {key: body[key] for key in ("messages", "system", "tools") if key in body}
    return len(json.dumps(counted)) // CHARS_PER_TOKEN


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Fake) as running:
        running.asked = []
        thread = threading.Thread(target=running.serve_forever, args=(POLL_SECONDS,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def client(server):
    anthropic = pytest.importorskip("anthropic", reason="needs the package anthropic")
    with anthropic.Anthropic(
        base_url=f"http://127.0.0.1:{server.server_port}", api_key="x", max_retries=0
    ) as made:
        yield made


def turn(nth):
    call = {"type": "tool_use", "id": f"c{nth}", "name": "read", "input": {"part": nth}}
    answer = {"type": "tool_result", "tool_use_id": f"c{nth}", "content": f"part {nth} says; " * 40}
    return [
        {"role": "user", "content": f"Look at part {nth}."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": f"Part {nth} is fine."},
    ]


def request(messages, **given):
    return {"model": MODEL, "max_tokens": 500, "messages": messages, "system": "You are kind.", **given}


def test_a_request_that_fits_is_sent_unchanged(home):
    asked = request(turn(0)[:3], temperature=1)

    assert compacted("s", asked, window=WINDOW, home=home) == asked


def test_a_caller_who_keeps_the_whole_list_is_compacted_once_and_goes_on(home, client, server):
    messages = []
    for nth in range(40):
        messages += turn(nth)[:3]
        before = copy.deepcopy(messages)
        answer = client.messages.create(**compacted("s", request(messages), window=WINDOW, home=home))
        assert messages == before
        messages.append({"role": "assistant", "content": answer.content[0].text})

    for _, body in server.asked:
        assert [
            one
            for one in check(convert.read(body["messages"], "anthropic"), "anthropic")
            if one.level == "error"
        ] == []
        assert body["messages"][0]["content"] == "Look at part 0."
    assert 3 <= len(load(home, "s").compactions) <= 15
    whole = conversations.full_history("s", home=home)
    assert whole == messages[: len(whole)]


def test_the_answer_has_its_room(home):
    messages = [message for nth in range(8) for message in turn(nth)]

    little = compacted("s", request(messages, max_tokens=100), window=3_000, policy="compact", home=home)
    much = compacted("t", request(messages, max_tokens=1_400), window=3_000, policy="compact", home=home)

    assert len(json.dumps(much["messages"])) <= len(json.dumps(little["messages"]))
    assert load(home, "t").compactions[0].receipt["effective"]["reserve"] >= 1_400


def test_system_and_tools_count(home):
    tools = [
        {"name": f"t{nth}", "description": "does much " * 40, "input_schema": {"type": "object"}}
        for nth in range(15)
    ]
    messages = [message for nth in range(10) for message in turn(nth)]

    assert compacted("s", request(messages), window=WINDOW, home=home)["messages"] == messages
    assert compacted("t", request(messages, tools=tools), window=WINDOW, home=home)["messages"] != messages


def test_online_the_provider_counts(home, client, server):
    """The estimate says that it fits; the provider, which counts more, is believed."""
    messages = [message for nth in range(10) for message in turn(nth)]
    asked = request(messages)
    assert tokens_of(asked) > WINDOW
    assert compacted("offline", asked, window=WINDOW, home=home)["messages"] == messages

    sent = compacted("online", asked, client=client, window=WINDOW, home=home)

    assert tokens_of(sent) <= WINDOW
    assert load(home, "online").compactions[0].receipt["counter"] == "count_tokens"
    assert [path.rpartition("/")[2] for path, _ in server.asked] == ["count_tokens"]
    assert server.asked[0][1].keys() == {"model", "messages", "system"}


def test_open_calls_and_metadata_of_aether_are_not_sent(home):
    law = {"role": "user", "content": "Never on a Friday.", "meta": {"protected": True}}
    messages = [law, turn(0)[1], {"role": "user", "content": "Go on."}]

    sent = compacted("s", request(messages), window=WINDOW, home=home)["messages"]

    assert "meta" not in json.dumps(sent)
    assert "tool_use" not in json.dumps(sent)
    assert [one for one in check(convert.read(sent, "anthropic"), "anthropic") if one.level == "error"] == []


def test_a_request_that_cannot_fit_raises(home):
    with pytest.raises(BudgetExceeded):
        compacted("s", request([{"role": "user", "content": "word " * 20_000}]), window=WINDOW, home=home)


def test_without_a_home_and_a_window_it_works_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    sent = compacted("s", request(turn(0)[:1]))

    assert sent["messages"] == turn(0)[:1]


def test_the_usage_of_the_provider_corrects_the_next_count(home, client):
    sent = compacted("s", request(turn(0)[:3]), home=home)
    before = tokens.counting(MODEL, place=home).factor

    assert answered("s", client.messages.create(**sent), home=home)

    (listed,) = tokens.models(MODEL, home=home)
    assert listed.reports == 1
    assert listed.factor > before


def test_cached_tokens_were_sent_too(home):
    compacted("s", request(turn(0)[:3]), home=home)
    counted = compact.preflight(
        "t", turn(0)[:3], model=MODEL, system="You are kind.", wire="anthropic", home=home
    ).tokens_after
    factor = tokens.counting(MODEL, place=home).factor
    cost = SimpleNamespace(
        input_tokens=2, cache_creation_input_tokens=None, cache_read_input_tokens=2 * counted - 2
    )

    assert answered("s", SimpleNamespace(usage=cost), home=home)

    assert tokens.counting(MODEL, place=home).factor == pytest.approx(min(3.0, 2 * factor), rel=0.01)


def test_an_answer_without_usage_or_a_home_teaches_nothing(home, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    compacted("s", request(turn(0)[:3]))
    compacted("s", request(turn(0)[:3]), home=home)

    assert not answered("s", SimpleNamespace(usage=SimpleNamespace(input_tokens=900)))
    assert not answered("s", SimpleNamespace(), home=home)
