"""Law: nothing that redaction removes from a message is in any file, event, export or request made of it.

Only `history.jsonl` of a conversation, the exact record from which a compaction is undone, holds it.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

import aether
from aether.api import admin, briefing, compact, compress, importing, recall
from aether.api.compact import Options
from aether.conversation.summary import is_summary
from aether.events.exporters import callback
from aether.hosts import hook
from aether.hosts.claude_code.event import event_of
from aether.messages.convert import read
from aether.redact.redact import redact
from aether.storage.adapter import FileStorage
from tests import effort
from tests.redact import corpus

# A round takes a quarter of a second.
ROUNDS = 2
_SAID = (
    "Deploy order 48213 to eu-west-1a with {}.",
    "We decided to call fetch_user instead, {} is used in src/app.py.",
    "Never print it: {}",
    "{}",
    "please note\n{}\nand go on",
)


def _entry(payload):
    return hook.entry_of(event_of(payload))


def _secrets(text):
    """Return what redaction removes from `text`."""
    kept = redact(text).split("<REDACTED>")
    at, removed = len(kept[0]), []
    for after in kept[1:]:
        end = text.find(after, at) if after else len(text)
        removed.append(text[at:end].strip())
        at = end + len(after)
    # The word is in what is said around the secrets, too.
    return [secret for secret in removed if len(secret) > 6 and secret != "password"]


def _messages(case, seed):
    """Return a conversation in which `case` is said, run, printed and planned."""
    drawn = random.Random(seed)
    text = drawn.choice(_SAID).format(case.text)
    messages = [{"role": "user", "content": f"Make the login work. {text}"}]
    for nth in range(6):
        call = {
            "id": f"call_{nth}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": f"run {nth}\n{case.text}"})},
        }
        messages += [
            {"role": "assistant", "content": f"I decided to use {text}", "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"call_{nth}",
                "content": f"Exit code 1\nError: no login with {text}\n" + "line of output " * 80,
            },
            {"role": "user", "content": f"Always use {text} Also look at part {nth} of tests/test_login.py."},
        ]
    return [
        *messages,
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks, go on."},
    ]


def _texts(directory):
    for path in sorted(Path(directory).rglob("*")):
        if path.is_file() and path.name != "history.jsonl":
            yield str(path), path.read_bytes().decode("utf-8", "replace")


def _leaks(texts, secrets):
    forms = {*secrets, *(json.dumps(secret)[1:-1] for secret in secrets)}
    return [(place, secret) for place, text in texts for secret in forms if secret in text]


def _cases():
    return [case for case in corpus.CASES if _secrets(case.text)]


def test_no_secret_of_a_message_leaves_through_anything_made_of_it(tmp_path):
    for nth, case in enumerate(random.Random(5).sample(_cases(), ROUNDS)):
        assert not _round(case, tmp_path / str(nth), nth), case.name


@pytest.mark.slow
def test_no_secret_of_the_corpus_leaves(tmp_path):
    found = {
        case.name: _round(case, tmp_path / str(nth), nth)
        for nth, case in enumerate(_cases()[:: 1 if effort.FULL_TRIALS else 3])
    }
    assert not {name: leaks for name, leaks in found.items() if leaks}


def test_no_secret_of_an_item_is_asked_of_an_architect_elsewhere(tmp_path):
    """An item that a person added is stored as it is; what leaves the machine is redacted."""
    cases = random.Random(6).sample(_cases(), 30)
    home, asked, program = tmp_path / ".aether", tmp_path / "asked.txt", tmp_path / "model.py"
    aether.init(home)
    for case in cases:
        aether.add_working_memory_item(f"{case.text}\nNever print that.", "constraint", 0.9, home=home)
    program.write_text("import sys; open(sys.argv[1], 'a').write(sys.stdin.read())")

    compress.compress(1, home=home, architect=f"command:{sys.executable} {program} {asked}")

    secrets = {secret for case in cases for secret in _secrets(case.text)}
    assert "Never print that." in asked.read_text()
    assert not _leaks([("asked", asked.read_text())], secrets)


def _round(case, place, seed):
    """Send one kind of secret through compaction, hooks, capture, compression, search, briefing and export."""
    messages, secrets = _messages(case, seed), _secrets(case.text)
    home, seen, program = place / ".aether", [], place / "model.py"
    aether.init(home)
    program.write_text(
        "import sys; open(sys.argv[1], 'a').write(sys.stdin.read()); print('The login was looked at.')"
    )
    done = compact.compact(
        "c1", messages, window=2_000, home=home,
        options=Options(
            backend=f"command:{sys.executable} {program} {place / 'asked.txt'}",
            storage=FileStorage(place / "copies"), exporter=callback(seen.append, rules=None),
        ),
    )  # fmt: skip
    assert done.triggered
    made = [one.raw for one in read(done.messages) if is_summary(one)]
    hooks = [
        _entry({"session_id": "s", "cwd": "/p", "hook_event_name": "UserPromptSubmit", "prompt": messages[0]["content"]}),
        _entry({
            "session_id": "s", "cwd": "/p", "hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_input": {"command": f"run\n{case.text}"}, "tool_response": {"stdout": messages[2]["content"], "stderr": ""},
        }),
    ]  # fmt: skip
    transcript = place / "chat.json"
    transcript.write_text(json.dumps(messages))
    importing.import_transcripts([transcript], home=home)
    transcript.unlink()
    views = [briefing.session_brief(home, "startup"), admin.export(home=home)]
    compress.compress(1, home=home)
    views += [briefing.session_brief(home, "startup"), admin.export(home=home)]
    views += [recall.recall("login decided use", home=home), recall.search_memory("login", home=home)]
    texts = [
        *_texts(place),
        ("summary", json.dumps(made)),
        ("events", repr(seen)),
        ("hooks", json.dumps(hooks)),
    ]
    return _leaks([*texts, ("views", json.dumps(views, default=str))], secrets)
