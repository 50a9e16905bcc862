"""Laws of conversations that several processes hold: what one of them added is in no view of another lost.

Each writer keeps what it last saw, as a process does, and acts on it however stale it is; some acts happen in the middle
of another's compaction. Whatever their order, every added message is live or comes back by an undo.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aether.api import compact, conversations
from aether.compat.compact_manager import CompactManager
from aether.compat.context_manager import ContextManager
from aether.conversation.policy import CompactConfig, CompactPolicy
from aether.frameworks.openai_agents import AetherSession, compaction_filter
from aether.store import conversations as store
from aether.store import doctor, history
from tests import homes

ID = "shared"
WINDOW = 1200


def text_of(number):
    return f"<{number}> " + f"the parser reads part {number} of the input again; " * 4


class Managed:
    """A process with a `ContextManager`."""

    def __init__(self, home):
        self.manager = ContextManager(WINDOW, home=home)

    def add(self, number):
        self.manager.add_message(ID, "user", text_of(number))

    def compact(self):
        self.manager.compress_conversation(ID)

    def read(self):
        self.manager.get_window(ID)


class Held:
    """A process that holds its own list, adds to both, and compacts its list by `compact` of the api."""

    def __init__(self, home):
        self.home, self.messages = home, []
        self.read()

    def add(self, number):
        raw = {"role": "user", "content": text_of(number)}
        conversations.add_messages(ID, [raw], home=self.home)
        self.messages.append(raw)

    def compact(self):
        self.messages = list(self.fitted())

    def fitted(self):
        return compact.compact(ID, self.messages, window=WINDOW, home=self.home).messages

    def read(self):
        self.messages = conversations.context(ID, home=self.home)


class Preflighted(Held):
    def fitted(self):
        return compact.preflight(ID, self.messages, window=WINDOW, home=self.home).messages


class Filed(Held):
    """The same with a file that `aether compact run` compacts."""

    def fitted(self):
        return compact.preflight(ID, self.messages, window=WINDOW, resume=False, home=self.home).messages


class Compacted(Held):
    def fitted(self):
        manager = CompactManager(
            CompactConfig(max_context_tokens=WINDOW, policy=CompactPolicy(hard_cap_buffer=100)),
            home=self.home,
        )
        return manager.manual_compact(ID, self.messages).messages


@dataclasses.dataclass
class ModelData:
    input: list[Any]
    instructions: str = ""


class Session:
    """A process with an `AetherSession` and its filter."""

    def __init__(self, home):
        self.session = AetherSession(ID, home=home)
        self.filter = compaction_filter(self.session, window=WINDOW)
        self.read()

    def add(self, number):
        item = {"type": "message", "role": "user", "content": text_of(number)}
        asyncio.run(self.session.add_items([item]))
        self.items.append(item)

    def compact(self):
        data = SimpleNamespace(agent=SimpleNamespace(model="x", tools=()), model_data=ModelData(self.items))
        self.items = list(asyncio.run(self.filter(data)).input)

    def read(self):
        self.items = asyncio.run(self.session.get_items())


def numbers(messages):
    """Return how often each added message is in `messages`, outside of summaries."""
    found = Counter()
    for message in messages:
        said = str(message.get("content"))
        if said.startswith("<") and said[1].isdigit():
            found[int(said[1 : said.index(">")])] += 1
    return found


def require_all(home, added):
    """Check that every added message is in a view and in none of them twice."""
    live = numbers(conversations.context(ID, home=home))
    views = live | numbers(conversations.follow(ID, None, home=home).said.values())
    assert set(added) <= set(views), f"gone: {sorted(set(added) - set(views))}"
    assert max(live.values(), default=1) == 1, f"twice: {live}"
    assert history.unseen(store.load(home, ID)) == []


def interleaved(kinds, seed, monkeypatch):
    """Let three writers act in the order of `seed`, some of them in the middle of a compaction of another."""
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory, monkeypatch.context() as patch:
        home = homes.fresh(Path(directory))
        writers = [choose.choice(kinds)(home) for _ in range(3)]
        added = []

        def add():
            added.append(len(added))
            choose.choice(writers).add(added[-1])

        real = compact.step_receipt

        def interrupted(*args, **named):
            if choose.random() < 0.3:
                number = len(added)
                added.append(number)
                conversations.add_messages(ID, [{"role": "user", "content": text_of(number)}], home=home)
            return real(*args, **named)

        patch.setattr(compact, "step_receipt", interrupted)
        for _ in range(24):
            act = choose.choices(("add", "compact", "read", "undo"), (10, 4, 2, 1))[0]
            if act == "add":
                add()
            elif act == "undo" and store.load(home, ID).open:
                compact.undo_compaction(ID, home=home)
            elif act != "undo":
                getattr(choose.choice(writers), act)()
            require_all(home, added)
        while store.load(home, ID).open:
            compact.undo_compaction(ID, home=home)
        assert set(numbers(conversations.context(ID, home=home))) == set(added)
        assert doctor.examine(home) == []


SURFACES = (Managed, Held, Preflighted, Filed, Compacted)


@pytest.mark.parametrize("kinds", [(Managed,), SURFACES, (Session,)])
def test_no_message_of_one_writer_is_lost_by_another(kinds, monkeypatch):
    for seed in range(3):
        interleaved(kinds, seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [(Managed,), SURFACES, (Session,)])
def test_no_message_is_lost_in_hundreds_of_orders(kinds, monkeypatch):
    for seed in range(100, 160):
        interleaved(kinds, seed, monkeypatch)


def test_what_another_process_added_stays_in_the_context(tmp_path):
    """A holds the conversation, B adds to it, A compresses."""
    home = homes.fresh(tmp_path)
    one, two = ContextManager(1000, home=home), ContextManager(1000, home=home)
    for number in range(12):
        one.add_message(ID, "user", text_of(number))
    two.add_message(ID, "user", "FROM-B please keep the port 8123.")

    assert one.compress_conversation(ID)

    for manager in (one, two, ContextManager(1000, home=home)):
        assert "FROM-B please keep the port 8123." in [
            message.content for message in manager.get_window(ID).messages
        ]


def test_doctor_names_messages_that_an_older_version_left_in_no_view(tmp_path, monkeypatch):
    home = homes.fresh(tmp_path)
    both = Held(home), Held(home)
    both[0].add(1)
    both[1].add(2)
    real = history.record_line
    monkeypatch.setattr(
        history, "record_line", lambda record, at: real({k: v for k, v in record.items() if k != "late"}, at)
    )
    compact.compact(ID, both[0].messages * 9, window=WINDOW, home=home)

    found = [one for one in doctor.examine(home) if one.code == "unseen-message"]

    assert [(one.level, one.where) for one in found] == [("warning", "conversations/shared/history.jsonl")]
    assert "1 added message," in found[0].message
