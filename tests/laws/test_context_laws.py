"""Laws of contexts, over random windows, modes, models, formats, sizes of messages, summarisers and orders of events."""

from __future__ import annotations

import json
from random import Random

import pytest

import aether
from aether.api import context, context_steps
from aether.conversation.checkpoints import faults
from aether.conversation.modes import MODES
from aether.errors import BudgetExceeded
from aether.messages import convert
from aether.messages.model import PROVIDER_FORMATS
from aether.messages.providers import provider
from aether.messages.validate import is_sendable
from aether.store import conversations, doctor
from aether.store import history as store_history
from aether.tokens.count import message_tokens, system_tokens, tools_tokens
from tests import effort, homes
from tests.laws.histories import WORDS, history

ID = "talk"
MODELS = (None, "llama3:8b", "phi:3b", "qwen2.5:72b", "claude-opus-4-5", "gpt-4")
SEEDS = 3
# Two minutes of one test would be the end of a run that others wait for.
BATCHES = 6
STEPS = 14
SYSTEM = "You are a careful colleague.\n\nNever force-push.  Two spaces stay."


def words(random, number):
    return " ".join(random.choice(WORDS) for _ in range(number))


class Talk:
    """One conversation, what was said in it, and what its prompts must begin with."""

    def __init__(self, seed, home):
        self.random = Random(seed)
        self.home = home
        self.wire = self.random.choice(PROVIDER_FORMATS)
        self.window = self.random.choice((400, 1_000, 2_048, 4_096, 8_192, 20_000))
        self.waiting = history(seed, self.wire, turns=20, images=0, words=self.random.choice((5, 40, 200)))
        self.said = []
        self.levels = {}
        aether.open_context(
            ID, window=self.window, model=self.random.choice(MODELS), system=SYSTEM, mode=self.random.choice(MODES),
            home=home,
        )  # fmt: skip

    def step(self):
        act = self.random.choices(
            (self.say, self.say_much, self.compress, self.change, self.roll_back, self.undo, self.urgent),
            (30, 2, 3, 2, 1, 1, 1),
        )[0]
        act()
        self.check()

    def say(self):
        for _ in range(self.random.randint(1, 4)):
            if self.waiting:
                self._add(self.waiting.pop(0))

    def say_much(self):
        many = int(self.window * self.random.uniform(0.2, 2.5))
        self._add(convert.new_message("user", words(self.random, many), self.wire).raw)

    def _add(self, message):
        aether.add_message(ID, message, home=self.home)
        self.said.append(message)

    def compress(self):
        before = {one.id: one for one in aether.checkpoints(ID, home=self.home)}
        done = aether.compress_context(
            ID, backend=self.random.choice(list(SUMMARISERS.values())), home=self.home
        )
        assert done.tokens_after <= done.tokens_before
        for one in aether.checkpoints(ID, home=self.home):
            if old := before.get(one.id):
                assert one.tokens <= old.tokens
                assert one.level <= old.level
                assert one.message_range == old.message_range

    def change(self):
        if self.random.random() < 0.5:
            aether.set_mode(ID, self.random.choice(MODES), home=self.home)
        else:
            self.window = self.random.choice((400, 1_500, 8_192, 40_000))
            aether.set_model(ID, self.random.choice(MODELS[1:]), window=self.window, home=self.home)

    def roll_back(self):
        taken = aether.take_snapshot(ID, purpose="rollback", home=self.home)
        live = store_history.context(conversations.load(self.home, ID))
        self.say()
        aether.restore_context(ID, taken.id, home=self.home)
        log = conversations.load(self.home, ID)
        assert json.dumps(store_history.context(log)) == json.dumps(live)
        assert log.settings == taken.settings
        self.window = log.settings["window"]

    def undo(self):
        if conversations.load(self.home, ID).open:
            aether.undo_compaction(ID, home=self.home)
            self.window = conversations.load(self.home, ID).settings["window"]

    def urgent(self):
        for done in aether.emergency(ID, home=self.home):
            assert done.tokens_freed >= 0

    def check(self):
        try:
            prompt = aether.build_prompt(ID, home=self.home)
        except BudgetExceeded as refused:
            with pytest.raises(BudgetExceeded, match=r"limit is"):
                aether.build_prompt(ID, home=self.home)
            if self.window > 400:
                raise AssertionError(f"{self.window} tokens are enough") from refused
            return
        log = conversations.load(self.home, ID)
        case = context_steps.case_of(ID, self.home)
        read = convert.read(prompt.messages, case.provider)
        beside = system_tokens(prompt.system, case.count) if provider(case.provider).TRAITS.system else 0
        counted = sum(message_tokens(one, case.count) for one in read) + beside
        assert counted + tools_tokens(list(prompt.tools), case.count) == prompt.tokens <= prompt.limit
        assert prompt.system.startswith(SYSTEM)
        assert prompt == aether.build_prompt(ID, home=self.home)
        assert is_sendable(prompt.messages, case.provider) or not prompt.messages
        marked = aether.checkpoints(ID, home=self.home)
        assert faults(marked) == ""
        assert [one.compression_number for one in marked] == sorted(one.compression_number for one in marked)
        said = store_history.history(log)
        assert said == self.said
        assert store_history.unseen(log) == []


def lying(messages, most, strategy):
    return "I'm sorry, but I can't help with that."


def raising(messages, most, strategy):
    raise RuntimeError("the model is on fire")


def endless(messages, most, strategy):
    return "word " * 20_000


def empty(messages, most, strategy):
    return "  "


def not_text(messages, most, strategy):
    return {"summary": 1}


SUMMARISERS = {
    "extractive": "extractive", "lying": lying, "raising": raising, "endless": endless, "empty": empty, "not text": not_text,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _forget():
    yield
    context_steps._READINGS.clear()
    context._FAILED_AT.clear()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_conversation_holds_all_laws_whatever_happens(seed, tmp_path):
    drive(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + BATCHES))
def test_many_conversations_hold_them(first, tmp_path):
    for seed in range(first, 200 if effort.FULL_TRIALS else 40, BATCHES):
        drive(seed, tmp_path / str(seed), 45)
        context_steps._READINGS.clear()
        conversations._CACHE.clear()


def drive(seed, directory, number=STEPS):
    home = homes.fresh(directory)
    talk = Talk(seed, home)
    for _ in range(number):
        talk.step()
    assert [one for one in doctor.examine(home) if one.level == "error"] == []
