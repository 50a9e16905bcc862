"""Real conversations, replayed message by message as contexts of 8K and 32K: no error, and every prompt within its limit."""

from __future__ import annotations

import pytest

import aether
from aether.api import context_steps
from aether.api.conversations import add_messages, full_history
from aether.errors import BudgetExceeded
from aether.messages.transcripts import load_conversation
from aether.messages.validate import is_sendable
from aether.store import conversations, doctor, files
from tests import homes
from tests.effort import FULL_TRIALS
from tests.soak.conversing import steps
from tests.soak.test_replay import CODEX, CONVERTED, DATA

WINDOWS = (8_192, 32_768)
CLAUDE = sorted(DATA.glob("claude_code/cli_*.jsonl"))
# Of the conversation in the default tier.
SAMPLE = 50

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not CONVERTED, reason="the real conversations are not on this machine"),
]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(files, "sync_data", lambda handle: None)  # costs 4 ms each and changes nothing here
    yield
    context_steps._READINGS.clear()
    conversations._CACHE.clear()


def replayed(path, window, home, most=None):
    """Replay a conversation, with a prompt each time its model was asked; return how many, and how many were refused."""
    found = load_conversation(path)
    raws = [message.raw for message in found.messages][:most]
    aether.open_context(path.stem, window=window, provider=found.format, home=home)
    asked = refused = 0
    for portion in steps(raws, found.format):
        add_messages(path.stem, portion[:-1], home=home)
        aether.add_message(path.stem, portion[-1], home=home)
        asked += 1
        try:
            prompt = aether.build_prompt(path.stem, home=home)
        except BudgetExceeded:
            case = context_steps.case_of(path.stem, home)
            assert case.room.beside + case.view.tokens(case.view.fixed) >= case.limit, (
                "it could have been made to fit"
            )
            refused += 1
            continue
        assert prompt.tokens <= prompt.limit
        assert is_sendable(prompt.messages, found.format)
    assert full_history(path.stem, home=home) == raws
    assert [one for one in doctor.examine(home) if one.level == "error"] == []
    return asked, refused


def test_the_head_of_a_real_conversation_is_sent_in_a_small_window(tmp_path):
    asked, refused = replayed(CONVERTED[0], 8_192, homes.fresh(tmp_path), SAMPLE)
    assert (asked > 5, refused) == (True, 0)


EVERY = [*CONVERTED, *CODEX, *CLAUDE]


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("path", EVERY if FULL_TRIALS else EVERY[::5], ids=lambda path: path.name[:40])
def test_real_conversations_are_sent_whatever_the_window(path, window, tmp_path):
    asked, refused = replayed(path, window, homes.fresh(tmp_path))
    assert asked
    assert not refused or window == WINDOWS[0]
