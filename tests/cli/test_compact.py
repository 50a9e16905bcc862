"""Compaction and the check of messages on the command line."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys

import pytest

from aether.cli.main import main
from aether.messages.convert import read
from aether.messages.validate import check
from tests.cli import stage
from tests.cli.stage import shown
from tests.laws.histories import history


@pytest.fixture
def talk(here, tmp_path):
    """Return a conversation of OpenAI messages that stands in `talk.json`."""
    messages = history(5, "openai", turns=20)
    (tmp_path / "talk.json").write_text(json.dumps({"model": "m", "messages": messages}), encoding="utf-8")
    return messages


def test_a_plan_says_what_would_happen_and_changes_nothing(talk, tmp_path, capsys):
    out = shown(capsys, "compact", "run", "--dry-run", "talk.json", "--window", "8000").out

    assert "kept:" in out
    assert "removed:" in out
    assert not (tmp_path / ".aether" / "conversations").exists()


def test_a_plan_of_what_fits_says_so(talk, capsys):
    assert (
        "Nothing to do" in shown(capsys, "compact", "run", "--dry-run", "talk.json", "--window", "900000").out
    )


def test_run_diff_undo_gives_the_file_back(talk, tmp_path, capsys):
    said = shown(capsys, "compact", "run", "talk.json", "--window", "8000", "--output", "small.json").err
    body = json.loads((tmp_path / "small.json").read_text(encoding="utf-8"))
    changes = shown(capsys, "compact", "show", "--diff", "talk").out
    shown(capsys, "undo", "--conversation", "talk", "--output", "whole.json")

    assert "% less" in said
    assert body["model"] == "m"
    assert [one for one in check(read(body["messages"], "openai"), "openai") if one.level == "error"] == []
    assert "<COMPACT-SUMMARY v1>" in json.dumps(body)
    assert "+" in changes
    whole = json.loads((tmp_path / "whole.json").read_text(encoding="utf-8"))
    assert whole == json.loads((tmp_path / "talk.json").read_text(encoding="utf-8"))
    assert whole["messages"] == talk


@pytest.mark.parametrize("name", ["-home-ada-shop", "a talk", "talk"])
def test_the_commands_that_are_named_work_as_they_are_printed(talk, capsys, name):
    said = shown(
        capsys,
        "compact",
        "run",
        "talk.json",
        "--window",
        "8000",
        "--output",
        "s.json",
        "--conversation",
        name,
    ).err
    commands = re.findall("^To [a-z]+ it: aether (.*)$", said, flags=re.MULTILINE)

    assert len(commands) == 2
    for command in commands:
        shown(capsys, *shlex.split(command))


def test_equal_findings_are_one_line_with_the_first_place_and_their_number(talk, tmp_path, capsys):
    halves = [{"role": "tool", "tool_call_id": "never", "content": "ok"}] * 3
    (tmp_path / "talk.json").write_text(json.dumps([*halves, *talk]), encoding="utf-8")

    said = shown(capsys, "compact", "run", "talk.json", "--window", "8000", "--output", "small.json").err

    assert "\nwarning: messages[0] and 2 more: Dropped: There is no call " in said
    assert said.count("Dropped: ") == 1


def test_without_output_the_messages_go_to_stdout(talk, capsys):
    out = shown(capsys, "compact", "run", "talk.json", "--window", "8000").out

    assert len(json.loads(out)["messages"]) < len(talk)
    assert json.loads(shown(capsys, "undo", "--conversation", "talk").out) == talk


def test_standard_input_will_do(talk, capsys, monkeypatch):
    data = json.dumps(talk).encode()
    monkeypatch.setattr(
        sys, "stdin", type("In", (), {"buffer": io.BytesIO(data), "isatty": lambda self: False})()
    )

    shown(capsys, "compact", "run", "-", "--window", "8000")

    assert "input" in shown(capsys, "compact", "show").out


def test_another_providers_words_are_valid_there(talk, capsys):
    out = shown(capsys, "compact", "run", "talk.json", "--window", "8000", "--for", "anthropic").out

    body = json.loads(out)
    errors = [one for one in check(read(body["messages"], "anthropic"), "anthropic") if one.level == "error"]
    assert errors == []


def test_below_the_trigger_nothing_is_done_unless_it_is_forced(talk, capsys):
    quiet = shown(capsys, "compact", "run", "talk.json", "--window", "900000")
    forced = shown(capsys, "compact", "run", "talk.json", "--window", "900000", "--force", "--json")

    assert "Nothing to do" in quiet.err
    assert json.loads(quiet.out)["messages"] == talk
    assert json.loads(forced.out)["triggered"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "talk.json"], 2, "no window and no model"),
        (["run", "none.json", "--window", "8000"], 3, "none.json"),
        (["run", "none.json"], 3, "none.json: cannot be read"),
        (["run", "."], 3, "Is a directory"),
        (["run", "README.md", "--dry-run", "--window", "8000"], 2, "README.md"),
        (["run", "talk.json", "--window", "8000", "--backend", "nonsense"], 2, "nonsense"),
        (["run", "talk.json", "--window", "8000", "--output", "no/such/place.json"], 3, "no such directory"),
        (["run", "talk.json", "--window", "40"], 7, ""),
        (
            ["run", "talk.json", "--window", "8000", "--backend", "nonsense"],
            2,
            "--backend must be one of extractive",
        ),
        (
            ["show", "never", "--diff"],
            3,
            "conversation 'never' is not kept here. See what is kept with \"aether compact show\"",
        ),
        (["show", "../../evil"], 3, "evil"),
    ],
)
def test_what_cannot_be_done_is_said_on_one_line(talk, capsys, words, code, said):
    shown_ = shown(capsys, "compact", *words, code=code)

    assert said in shown_.err
    assert shown_.err.startswith("Error: ")
    assert shown_.err.count("\n") == 1


def test_a_file_of_several_conversations_says_so(here, tmp_path, capsys):
    lines = [json.dumps({"messages": history(seed, "openai", turns=2)}) for seed in (1, 2)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines), encoding="utf-8")

    assert "1 more" in shown(capsys, "compact", "run", "--dry-run", "many.jsonl", "--window", "8000").err


def test_the_list_of_no_conversations_says_how_there_come_to_be_some(here, capsys):
    assert "No conversation yet" in shown(capsys, "compact", "show").err


def test_what_is_undone_is_shown_where_its_file_cannot_be_written(talk, tmp_path, capsys):
    shown(capsys, "compact", "run", "talk.json", "--window", "8000", "--output", "small.json")

    reported = shown(capsys, "undo", "--conversation", "talk", "--output", "nowhere/whole.json", code=3)

    assert json.loads(reported.out) == talk
    assert "the compaction is undone" in reported.err


def test_a_conversation_that_is_damaged_is_named_in_the_list(talk, tmp_path, capsys):
    shown(capsys, "compact", "run", "talk.json", "--window", "8000", "--output", "small.json")
    (log,) = tmp_path.rglob("history.jsonl")
    log.write_bytes(log.read_bytes().replace(b'"role":"user"', b'"role":"loser"', 1))

    assert "talk: it is damaged in 1 place" in shown(capsys, "compact", "show").err


def test_the_lines_that_are_reported_can_be_pasted(talk, tmp_path, capsys):
    (tmp_path / "my talk.json").write_text(json.dumps(talk), encoding="utf-8")

    reported = shown(capsys, "compact", "run", "my talk.json", "--window", "8000", "--output", "o.json").err
    lines = [
        shlex.split(line.partition(": aether ")[2]) for line in reported.splitlines() if ": aether " in line
    ]

    assert [words[:2] for words in lines] == [["compact", "show"], ["undo", "--conversation=my talk"]]
    for words in lines:
        shown(capsys, *words)


def test_a_window_that_is_assumed_is_said_to_be(talk, capsys):
    assert (
        "128000 tokens are assumed"
        in shown(capsys, "compact", "run", "--dry-run", "talk.json", "--model", "gpt-9-foo").out
    )
    assert "assumed" not in shown(capsys, "compact", "run", "--dry-run", "talk.json", "--model", "gpt-4o").out


@pytest.mark.parametrize(
    "words", [["compact", "run", "talk.json", "--window", "8000"], ["undo", "--conversation", "talk"]]
)
def test_a_terminal_is_not_filled_with_json(talk, capsys, monkeypatch, words):
    shown(capsys, "compact", "run", "talk.json", "--window", "8000")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    reported = shown(capsys, *words, code=2)

    assert reported.out == ""
    assert "--output" in reported.err
    assert json.loads(shown(capsys, "undo", "--conversation", "talk", "--json").out)["step"] == 1


def test_two_files_of_one_name_are_two_conversations(talk, tmp_path, capsys):
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "talk.json").write_text(json.dumps(talk), encoding="utf-8")
        shown(capsys, "compact", "run", f"{directory}/talk.json", "--window", "8000", "--output", "o.json")

    kept = json.loads(shown(capsys, "compact", "show", "--json").out)

    assert [one["conversation"] for one in kept] == ["a-talk", "b-talk"]


def test_the_removed_text_and_the_whole_summary_can_be_read(talk, capsys):
    shown(capsys, "compact", "run", "talk.json", "--window", "8000")

    removed = shown(capsys, "compact", "show", "talk").out
    data = json.loads(shown(capsys, "compact", "show", "talk", "1", "--json").out)
    difference = shown(capsys, "compact", "show", "--diff", "talk").out

    assert (data["conversation"], data["step"]) == ("talk", 1)
    calls = [part for one in data["messages"] for part in one["parts"] if part["kind"] == "result"]
    assert calls
    assert all(part["tool"] for part in calls)
    for one in data["messages"]:
        assert f"[{one['number']}] {one['role']}" in removed
        assert re.search(rf"^[-~]\s+{one['number']}\s+{one['role']}", difference, re.MULTILINE)
        assert all(line in removed for part in one["parts"] for line in part["text"].splitlines())
    summary = re.search(r"<COMPACT-SUMMARY v1>.*</COMPACT-SUMMARY>", difference, re.DOTALL)
    assert summary
    assert summary[0].count("\n") > 5
    assert "no compaction 2" in shown(capsys, "compact", "show", "talk", "2", code=3).err


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


def checked(capsys, *words, code=0):
    capsys.readouterr()
    assert main(["compact", "check", *words]) == code
    return capsys.readouterr()


def test_a_good_request_is_said_to_be_good(place, capsys):
    assert (
        checked(capsys, "request.json", "--for", "anthropic").out == "anthropic accepts these 3 messages.\n"
    )


def test_what_is_wrong_is_one_line_each_and_ends_with_1(place, capsys):
    assert checked(capsys, "broken.json", "--for", "anthropic", code=1).out == (
        "error orphan-result: messages[0].content[0]: There is no call 'ghost'. Drop it.\n"
    )


def test_a_repair_reports_what_it_did_and_writes_only_where_asked(place, capsys):
    done = checked(capsys, "broken.json", "--for", "anthropic", "--repair")
    assert done.out.startswith("repaired orphan-result: messages[0].content[0]: Dropped: There is no call")
    assert done.err == "Nothing was written: name a file with --output.\n"

    checked(capsys, "broken.json", "--for", "anthropic", "--repair", "--output", "repaired.json")

    repaired = json.loads((place / "repaired.json").read_text())
    assert repaired["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}]
    assert repaired["system"] == "You fix bugs."


def test_standard_input_is_converted_for_another_provider(place, capsys, monkeypatch):
    text = io.TextIOWrapper(io.BytesIO((place / "request.json").read_bytes()))
    monkeypatch.setattr(sys, "stdin", text)

    found = json.loads(checked(capsys, "-", "--for", "gemini", "--json").out)

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

    assert checked(capsys, "many.jsonl", "--for", "openai", "--nth", "2").err == (
        "2 more conversations in the file: choose with --nth.\n"
    )


def test_an_output_needs_a_repair_and_a_directory(place, capsys):
    assert (
        "--output needs --repair"
        in checked(capsys, "request.json", "--for", "openai", "--output", "x", code=2).err
    )
    words = ["request.json", "--for", "openai", "--repair", "--output", "none/x.json"]
    assert "there is no such directory" in checked(capsys, *words, code=3).err


def test_without_a_provider_the_files_own_words_say_whose_rules_hold(place, capsys):
    assert checked(capsys, "broken.json", code=1).out.startswith("error orphan-result")
    assert checked(capsys, "request.json").out == "anthropic accepts these 3 messages.\n"


def test_a_value_that_is_no_message_is_named_with_its_file(place, capsys):
    (place / "stray.json").write_text(json.dumps([{"role": "user", "content": "Hi."}, 5]))

    assert "Error: stray.json: messages[1]: it is 5" in checked(capsys, "stray.json", code=2).err


def test_words_of_no_provider_need_one_to_be_named(place, capsys):
    (place / "plain.json").write_text(json.dumps([{"role": "user", "content": "Hi."}]))

    assert "--for" in checked(capsys, "plain.json", code=2).err


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

    lines = checked(capsys, "thoughts.json", "--for", "openai").out.splitlines()

    assert len(lines) == 2
    assert " and 8 more: " in lines[0]
