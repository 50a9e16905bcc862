"""Mutated inputs: whatever comes from outside, it is accepted, or rejected with an error of ours that says what to do."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import aether
from aether.api import admin, importing
from aether.errors import AetherError
from aether.hosts import hook
from aether.store import config
from tests import effort, homes

SAMPLE = Path(__file__).parents[2] / "data" / "samples" / "colony.jsonl"
ODD = (None, True, 0, -1, 1e308, 9**99, "", "\ud800", "x" * 5000, [], {}, [[[]]], {"": None}, "../../etc/passwd", "\x00", "-")  # fmt: skip
EVENT = {
    "hook_event_name": "PostToolUse", "session_id": "s", "transcript_path": "t.jsonl", "tool_name": "Bash",
    "tool_input": {"command": "make test"}, "tool_response": {"stdout": "3 passed", "stderr": ""}, "prompt": "Use SQLite.",
    "source": "startup", "last_assistant_message": "Done.", "trigger": "auto",
}  # fmt: skip
MESSAGES = [
    {"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Read a.py"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "print(1)"}, {"role": "assistant", "content": "It prints 1."},
]  # fmt: skip
CONFIG = (
    '[claude]\ncapture = true\nrecall_tokens = 400\n[policy]\nsteps = ["select"]\n[store]\nfold_bytes = 9\n'
)


def places(value, path=()):
    """Yield the path of every value in `value`."""
    yield path
    for name, below in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(below, (*path, name))


def mutated(value, random):
    """Return a copy of `value` in which one value, chosen by `random`, is odd, missing or twice there."""
    copy = json.loads(json.dumps(value))
    path = random.choice([path for path in places(copy) if path])
    parent = copy
    for name in path[:-1]:
        parent = parent[name]
    how = random.randrange(4)
    if how == 0:
        del parent[path[-1]]
    elif how == 1 and isinstance(parent, list):
        parent.insert(path[-1], parent[path[-1]])
    else:
        parent[path[-1]] = random.choice(ODD)
    return copy


def damaged(data, random):
    """Return `data` with some bytes changed, cut or repeated."""
    made = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(made))
        match random.randrange(4):
            case 0:
                made[at] = random.randrange(256)
            case 1:
                del made[at : at + random.randrange(1, 40)]
            case 2:
                made[at:at] = made[at : at + random.randrange(1, 40)]
            case _:
                made[at:at] = random.choice(
                    (b"\x00", b'"', b"{", b"]", b"\xff", b"\n", b"\\u", b"\xed\xa0\x80")
                )
        made = made or bytearray(b" ")
    return bytes(made)


def either(value, random):
    """Return `value` as JSON, mutated as a value or as bytes."""
    return json.dumps(mutated(value, random)).encode() if random.random() < 0.5 else damaged(json.dumps(value).encode(), random)  # fmt: skip


@pytest.fixture
def tries(tmp_path, monkeypatch):
    """Return the kinds of input: each takes a source of randomness and meets one mutant of its own."""
    home, fresh = homes.fresh(tmp_path / "used"), homes.fresh(tmp_path / "new")
    homes.add(home, "one")
    aether.add_working_memory_item("Use SQLite.", "decision", 0.9, home=home)
    aether.preflight("talk", MESSAGES, window=8000, home=home)
    export = admin.export(home=home)
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(hook, "_reply", lambda *_, **__: "")  # memory is read by the laws of hooks
    file, settings = tmp_path / "transcript.jsonl", tmp_path / "c"
    settings.mkdir()

    def event(random):
        name = random.choice(("PostToolUse", "UserPromptSubmit", "SessionStart", "Stop", "PreCompact"))
        data = either({**EVENT, "hook_event_name": name, "cwd": str(home.parent)}, random)
        assert hook.main([name], data)[0] == 0

    def transcript(random):
        start = random.randrange(len(lines) - 5)
        file.write_bytes(damaged(b"".join(lines[start : start + 5]), random))
        importing.import_transcripts([file], dry_run=True, home=home)

    def messages(random):
        given = mutated(MESSAGES, random)
        aether.preflight("talk", given, window=8000, home=home)

    def exported(random):
        admin.import_export(mutated(export, random), dry_run=True, home=fresh)

    def configured(random):
        (settings / "config.toml").write_bytes(damaged(CONFIG.encode(), random))
        config._FILES.clear()
        config.or_default(settings)
        config.load(settings)

    return event, transcript, messages, exported, configured


def test_no_mutant_of_an_input_is_met_with_anything_but_words(tries):
    check(tries, 8)


@pytest.mark.slow
def test_thousands_of_mutants_are_met_with_words(tries):
    check(tries, 680 if effort.FULL_TRIALS else 100)


def check(tries, times):
    """Meet `times` mutants of each kind, and print how many were accepted and rejected."""
    counts: Counter[str] = Counter()
    for meet in tries:
        for seed in range(times):
            try:
                meet(Random(f"{meet.__name__} {seed}"))
                counts["accepted"] += 1
            except AetherError:  # it has its advice: no error of ours is made without
                counts["rejected"] += 1
            except Exception as reason:
                raise AssertionError(f"{meet.__name__} {seed}") from reason
    print(f"{sum(counts.values())} mutants: {dict(counts)}")
    assert counts.keys() == {"accepted", "rejected"}
