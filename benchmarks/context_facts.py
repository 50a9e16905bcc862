"""How many of the facts that were said are still in a context, and how many does one call of the recall tool find?

A conversation goes on in one window. Between two compressions facts are planted, some by the user and some by the
model, each a sentence with a value of its own ("The retry limit of the billing service is 48213 ms."), among filler:
small talk, explanations, and the output of tools. A fact is in the context if its value and the words that say what it is
of are in one line of the messages that would be sent. A fact is answered by recall if one call, with the words of
the question and without the value, gives a text with the value. Compressions happen when the context asks for them,
with the built-in summariser or with a scripted model that retells the first half of what it gets. A sliding window of the
same size is beside it: the newest messages that fit. So is LangChain's `SummarizationMiddleware`, if it is installed: the
same messages, the same scripted model, which may fill as much of the window as all checkpoints of aether together, the same
trigger and the same target.

Usage: python benchmarks/context_facts.py
"""

from __future__ import annotations

import random
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import report

import aether
from aether.api import context, context_steps
from aether.api.conversations import add_messages
from aether.frameworks.recall_tool import recall_tool
from aether.store.commit import fold_home
from aether.tokens.estimate import estimate

SEEDS = (1, 2)
WINDOWS = (8_192, 12_000)
AFTER = (1, 5, 10, 20)
PER_STRETCH = 10
NEWEST = 5
THINGS = (
    "billing service", "search index", "staging cluster", "export job", "login page", "mail queue", "report builder",
    "image cache", "audit log", "price list", "order table", "backup disk",
)  # fmt: skip
PLACES = "Oslo Lyon Porto Graz Turin Basel Ghent Malmo Brno Split Cork Bergen".split()
FILLER = (
    "That sounds reasonable, let me think about how the {thing} fits together with the rest before we go on.",
    "In general there are several ways to look at the {thing}, and each of them has advantages and disadvantages.",
    "I had a long weekend and the weather was lovely, so I am in a good mood today.",
    "Let me explain the background of the {thing} a little more, because it helps to see the whole picture first.",
    "Caching means keeping a copy of something close to where it is needed, so that it is found faster.",
    "We can come back to the {thing} later, there is no hurry and nothing depends on it right now.",
    "Thanks, that makes sense to me, please go on with the next part when you are ready.",
)


class Fact(NamedTuple):
    stretch: int
    sentence: str
    value: str
    subject: tuple[str, ...]
    """Words that a line must have beside the value."""
    question: str


def planted(chance: random.Random, stretch: int, nth: int, subject: str) -> Fact:
    """Return a fact about a subject that nothing else is said of, but in filler."""
    number = str(chance.randint(10_000, 99_999))
    word = f"{chance.choice(PLACES).lower()}{chance.randint(100, 999)}"
    kinds = (
        (f"The retry limit of the {subject} is {number} ms.", number, "limit", f"retry limit of the {subject}"),
        (f"We decided to move the {subject} to host-{number} because the old one is too slow.", f"host-{number}", "move", f"where do we move the {subject}"),
        (f"Never delete {word} from the {subject} without asking.", word, "Never", f"what must never be deleted from the {subject}"),
        (f"For the {subject} I prefer {word} over everything else.", word, "prefer", f"what do I prefer for the {subject}"),
        (f"The ticket for the {subject} is OPS-{number}.", f"OPS-{number}", "ticket", f"ticket for the {subject}"),
    )  # fmt: skip
    sentence, value, word_beside, question = kinds[nth % len(kinds)]
    return Fact(stretch, sentence, value, (word_beside,), question)


class Conversation:
    """A conversation that grows by stretches, each with its facts; what is random depends on the seed alone."""

    def __init__(self, seed: int, window: int, home: Path, *, scripted: bool) -> None:
        self.chance, self.window, self.home, self.scripted = random.Random(seed), window, home, scripted
        self.facts: list[Fact] = []
        self.subjects = [f"{thing} in {place}" for thing in THINGS for place in PLACES]
        self.chance.shuffle(self.subjects)
        self.sent: list[str] = []
        self.peer = LangChain(window) if scripted and find_spec("langchain") else None
        self.id = f"c{seed}-{window}-{scripted}"
        context.open_context(self.id, window=window, home=home, system="You help with a project.")

    def add(self, role: str, text: str) -> None:
        self.sent.append(text)
        if self.peer:
            self.peer.add(role, text)
        context.add_message(self.id, {"role": role, "content": text}, home=self.home)

    def filler(self, sentences: int) -> str:
        return " ".join(
            self.chance.choice(FILLER).format(thing=self.chance.choice(THINGS)) for _ in range(sentences)
        )

    def stretch(self, number: int) -> None:
        """Go on until the next compression has happened, with the facts of this stretch in the messages before it."""
        room = int(self.window * 0.2 / PER_STRETCH)
        before = context.context_status(self.id, home=self.home).compressions
        for nth in range(PER_STRETCH):
            at = (len(self.facts) // 5 * 7 + nth * 29) % len(self.subjects)
            fact = planted(self.chance, number, nth, self.subjects[at])
            self.facts.append(fact)
            self.add("user", f"{self.filler(1)} {fact.sentence if nth % 2 == 0 else ''} {self.filler(1)}")
            text = f"{fact.sentence if nth % 2 else ''} {self.filler(2)}"
            self.add("assistant", text + " " + self.filler(max(0, (room - 90) // 20)))
        if self.scripted:
            done = context.compress_context(self.id, backend=retell, home=self.home)
            assert done.success, done
        while not self.scripted and context.context_status(self.id, home=self.home).compressions == before:
            self.add("user", self.filler(3))
            self.add("assistant", self.filler(6))

    def live(self) -> list[str]:
        prompt = context.build_prompt(self.id, home=self.home)
        assert prompt.tokens <= prompt.limit
        return [line for message in prompt.messages for line in str(message["content"]).splitlines()]

    def window_lines(self) -> list[str]:
        kept, room = [], int(self.window * 0.85)
        for text in reversed(self.sent):
            room -= estimate(text) + 4
            if room < 0:
                break
            kept.append(text)
        return [line for text in kept for line in text.splitlines()]


class LangChain:
    """A conversation that LangChain's middleware summarises."""

    def __init__(self, window: int) -> None:
        from langchain.agents.middleware import SummarizationMiddleware

        self.times = 0
        limit = int(window * 0.85)
        self.live: list = []
        self.middleware = SummarizationMiddleware(
            model=chat_model(int(0.3 * limit)),
            trigger=("tokens", int(0.8 * limit)), keep=("tokens", int(0.6 * 0.7 * limit)),
            token_counter=lambda found: sum(estimate(str(one.content)) + 4 for one in found), trim_tokens_to_summarize=None,
        )  # fmt: skip

    def add(self, role: str, text: str) -> None:
        from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage

        self.live.append(HumanMessage(text) if role == "user" else AIMessage(text))
        update = self.middleware.before_model({"messages": self.live}, None)
        if update:
            self.times += 1
            self.live = [one for one in update["messages"] if not isinstance(one, RemoveMessage)]

    def lines(self) -> list[str]:
        return [line for one in self.live for line in str(one.content).splitlines()]


def chat_model(most: int):
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def _generate(self, messages, *_, **__) -> ChatResult:
            said = str(messages[-1].content).rpartition("<messages>")[2]
            half = said.split()[: len(said.split()) // 2 + 1]
            text = " ".join(("The conversation was about this:", *half[: int(most * 0.6)]))
            return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    return Model()


def retell(said: list[dict], most: int, _level: str) -> str:
    """Answer as a model that retells the first half of what it gets, in as many words as it may."""
    text = " ".join(one["content"] for one in said[: len(said) // 2 + 1] if one["role"] != "system")
    return " ".join(("The conversation was about this:", *text.split()[: int(most * 0.6)]))


def held(fact: Fact, lines: list[str]) -> bool:
    """Return whether a line has the value with the words that say what it is of."""
    return any(fact.value in line and all(word in line for word in fact.subject) for line in lines)


def answered(fact: Fact, run) -> bool:
    """Return whether one call of the recall tool answers the question of a fact."""
    return fact.value in run({"query": fact.question})


def measure(seed: int, window: int, *, scripted: bool) -> dict[int, dict[str, float]]:
    """Return the shares after each number of compressions."""
    found: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / ".aether"
        (home / "data").mkdir(parents=True)
        fold_home(home, now=aether.clock.now())
        talk = Conversation(seed, window, home, scripted=scripted)
        for number in range(1, max(AFTER) + 1):
            talk.stretch(number)
            if number not in AFTER:
                continue
            lines, slid = talk.live(), talk.window_lines()
            newest = [fact for fact in talk.facts if fact.stretch > number - NEWEST]
            run = recall_tool("anthropic", talk.id, home=home).run
            found[number] = {
                "last five": share(held(fact, lines) for fact in newest),
                "all": share(held(fact, lines) for fact in talk.facts),
                "window, last five": share(held(fact, slid) for fact in newest),
                "window, all": share(held(fact, slid) for fact in talk.facts),
                **(langchain(talk, newest) if talk.peer else {}),
                "context or one recall": share(held(fact, lines) or answered(fact, run) for fact in talk.facts),
                "one recall, of those that left": share(
                    answered(fact, run) for fact in talk.facts if not held(fact, lines)
                ),
            }  # fmt: skip
    return found


def langchain(talk: Conversation, newest: list[Fact]) -> dict[str, float]:
    """Return the shares in what LangChain would send, and how often it summarised."""
    lines = talk.peer.lines()
    return {
        "langchain, last five": share(held(fact, lines) for fact in newest),
        "langchain, all": share(held(fact, lines) for fact in talk.facts),
        "langchain, summaries": float(talk.peer.times),
    }


def share(found) -> float:
    """Return the share of what is true."""
    every = list(found)
    return sum(every) / len(every) if every else 1.0


def times() -> dict[str, float]:
    """Return the seconds of a compression at 32K without a model, of one that ages checkpoints too, and of a validation.

    The validation is that of 10,000 messages, the first one in a process and the next.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / ".aether"
        (home / "data").mkdir(parents=True)
        fold_home(home, now=aether.clock.now())
        talk = Conversation(9, 32_768, home, scripted=False)

        def seconds(act) -> float:
            start = time.perf_counter()
            act()
            return round(time.perf_counter() - start, 4)

        found = []
        for _ in range(4):
            for _ in range(60):
                talk.add("user", talk.filler(4))
                talk.add("assistant", talk.filler(12))
            found.append(seconds(lambda: context.compress_context(talk.id, home=home)))
        context.open_context("large", window=4_000_000, home=home)
        add_messages("large", [{"role": "user", "content": talk.filler(3)} for _ in range(10_000)], home=home)
        context_steps._COUNTED.clear()  # noqa: SLF001 - what a new process does not know
        return {
            "compression_at_32k": found[0], "compression_with_ageing_at_32k": found[3],
            "first_validation_of_10000_messages": seconds(lambda: context.validate_context("large", home=home)),
            "next_validation": seconds(lambda: context.validate_context("large", home=home)),
        }  # fmt: skip


def main() -> None:
    """Measure and write the report."""
    result = {}
    for window in WINDOWS:
        for scripted in (False, True):
            runs = [measure(seed, window, scripted=scripted) for seed in SEEDS]
            who = "model_that_retells_half" if scripted else "built_in"
            for after in AFTER:
                means = {
                    name: round(sum(run[after][name] for run in runs) / len(runs), 3)
                    for name in runs[0][after]
                }
                result[f"window_{window}_{who}_after_{after}"] = means
                print(window, who, after, means, flush=True)
    report.write(
        __file__,
        {"seconds": times(), "seeds": len(SEEDS), "facts_a_stretch": PER_STRETCH, "share_of_facts": result},
    )
    for case, means in result.items():
        assert means["last five"] > 0.9, (case, means)
        assert means["context or one recall"] >= 0.95, (case, means)


if __name__ == "__main__":
    main()
