"""Checking a conversation by hand."""

from __future__ import annotations

import io
import json
import sys

import pytest

from aether.cli.main import main
from tests.cli import stage

ORPHAN = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "ghost"}, {"type": "text", "text": "Hi."}],
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a good request, a broken one, and no home."""
    monkeypatch.chdir(tmp_path)
    request = stage.request()
    (tmp_path / "request.json").write_text(json.dumps(request))
    (tmp_path / "broken.json").write_text(json.dumps({**request, "messages": [ORPHAN]}))
    return tmp_path


def shown(capsys, *words, code=0):
    capsys.readouterr()
    assert main(["messages", "check", *words]) == code
    return capsys.readouterr()


def test_a_good_request_is_said_to_be_good(place, capsys):
    assert shown(capsys, "request.json", "--for", "anthropic").out == "anthropic takes these 3 messages.\n"


def test_what_is_wrong_is_one_line_each_and_ends_with_1(place, capsys):
    assert shown(capsys, "broken.json", "--for", "anthropic", code=1).out == (
        "error orphan-result: messages[0].content[0]: There is no call 'ghost'. Drop it.\n"
    )


def test_a_repair_tells_what_it_did_and_writes_only_where_asked(place, capsys):
    done = shown(capsys, "broken.json", "--for", "anthropic", "--repair")
    assert done.out.startswith("repaired orphan-result: messages[0].content[0]: Dropped a result")
    assert done.err == "Nothing was written: name a file with --output.\n"

    shown(capsys, "broken.json", "--for", "anthropic", "--repair", "--output", "mended.json")

    mended = json.loads((place / "mended.json").read_text())
    assert mended["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}]
    assert mended["system"] == "You fix bugs."


def test_standard_input_is_converted_for_another_provider(place, capsys, monkeypatch):
    text = io.TextIOWrapper(io.BytesIO((place / "request.json").read_bytes()))
    monkeypatch.setattr(sys, "stdin", text)

    found = json.loads(shown(capsys, "-", "--for", "gemini", "--json").out)

    assert (found["file"], found["wire"], found["provider"], found["output"]) == (
        "-",
        "anthropic",
        "gemini",
        "",
    )
    assert all(finding["level"] == "warning" for finding in found["findings"])


def test_more_conversations_in_a_file_are_mentioned(place, capsys):
    line = json.dumps({"messages": [{"role": "user", "content": "Hi."}]}) + "\n"
    (place / "many.jsonl").write_text(3 * line)

    assert shown(capsys, "many.jsonl", "--for", "openai", "--nth", "2").err == (
        "2 more conversation(s) in the file: choose with --nth.\n"
    )


def test_an_output_needs_a_repair_and_a_directory(place, capsys):
    assert (
        "--output needs --repair"
        in shown(capsys, "request.json", "--for", "openai", "--output", "x", code=2).err
    )
    words = ["request.json", "--for", "openai", "--repair", "--output", "none/x.json"]
    assert "there is no such directory" in shown(capsys, *words, code=3).err


def test_without_a_provider_the_files_own_words_say_whose_rules_hold(place, capsys):
    assert shown(capsys, "broken.json", code=1).out.startswith("error orphan-result")
    assert shown(capsys, "request.json").out == "anthropic takes these 3 messages.\n"


def test_words_of_no_provider_need_one_to_be_named(place, capsys):
    (place / "plain.json").write_text(json.dumps([{"role": "user", "content": "Hi."}]))

    assert "--for" in shown(capsys, "plain.json", code=2).err


def test_what_was_converted_is_said_to_be(place, capsys):
    found = shown(capsys, "request.json", "--for", "openai")

    assert "openai takes these" in found.out
    assert ", converted from anthropic." in found.out
    assert "--for anthropic checks the file as it stands" in found.err


def test_what_is_said_of_many_messages_is_one_line(place, capsys):
    thought = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Yes."},
        ],
    }
    talk = [one for _ in range(9) for one in ({"role": "user", "content": "And?"}, thought)]
    (place / "thoughts.json").write_text(json.dumps({"model": "claude", "messages": talk}))

    lines = shown(capsys, "thoughts.json", "--for", "openai").out.splitlines()

    assert len(lines) == 2
    assert " and 8 more: " in lines[0]
