"""How much of what was said is still there, word for word, after many compactions?

A synthetic coding session goes on in one fixed window and is compacted whenever the policy `compact` says so, each time
with prose by the extractive backend (no model). In every stretch between two compactions facts are planted: goals,
constraints and decisions as sentences, paths, ids and numbers as names, said by the person, by the model, in
arguments and in the output of tools, among noise of the same forms. A fact counts as kept if it is
verbatim in the messages that would be sent. `first` are the facts from before the first compaction, `all`
those of all stretches so far.

Usage: python benchmarks/compaction_decay.py
"""

from __future__ import annotations

import hashlib
import random
from typing import NamedTuple

import report

from aether.architects import backend
from aether.architects.base import Settings
from aether.architects.request import summary_request
from aether.conversation.plan import apply, plan
from aether.conversation.policy import policy
from aether.conversation.shapes import task_as_json
from aether.messages.convert import read
from aether.tokens.count import message_tokens
from aether.tokens.estimate import estimate

SEEDS = (11, 12, 13)
WINDOWS = (16_000, 32_000)
COMPACTIONS = (1, 5, 10, 20)
# Turns of one stretch that hold a fact each; between them only noise.
PARTS = "ledger invoice cursor shard tenant webhook quota replica snapshot voucher digest token".split()
VERBS = "rebuild trim verify rotate merge split archive export index replay".split()
KINDS = ("goal", "constraint", "decision", "path", "id", "number")


class Fact(NamedTuple):
    kind: str
    text: str
    stretch: int


class Session:
    """A session that grows; what is random depends on the seed alone."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.raws: list[dict] = []
        self.facts: list[Fact] = []
        self.stretch = 0
        self.calls = 0
        self.todo: list = []

    def plant(self, kind: str, text: str) -> str:
        self.facts.append(Fact(kind, text, self.stretch))
        return text

    def part(self) -> str:
        return f"{self.random.choice(VERBS)}_{self.random.choice(PARTS)}"

    def hex(self, digits: int) -> str:
        return hashlib.sha256(str(self.random.random()).encode()).hexdigest()[:digits]

    def number(self) -> str:
        return str(self.random.randint(10_000, 99_999))

    def path(self) -> str:
        return f"src/{self.random.choice(PARTS)}/{self.part()}_{self.number()}.py"

    def begin(self) -> None:
        """Open a stretch: what it will plant, in a random order."""
        self.stretch += 1
        self.todo += [
            self.constraint, self.constraint, self.decided, self.decided, self.chosen, self.edited, self.edited,
            self.edited, self.viewed, self.named_by_person, self.named_by_model, self.printed,
        ]  # fmt: skip
        self.random.shuffle(self.todo)
        if self.stretch == 1:
            goal = f"Build the {self.part()} service so that tenant {self.number()} can {self.random.choice(VERBS)} its data."
            self.user(self.plant("goal", goal))
            self.model("Understood.")
            self.user(
                self.plant(
                    "goal", f"Actually, the goal is now to {self.part()} first and to ship {self.number()}."
                )
            )
            self.model("All right.")

    def turn(self) -> None:
        if self.todo:
            self.todo.pop()()
        self.noise()

    def constraint(self) -> None:
        part = self.part()
        text = self.random.choice((
            f"Never call {part} with more than {self.number()} rows.",
            f"Always run {part} before every release of {self.hex(8)}.",
            f"Do not touch the {part} table in schema s{self.number()}.",
        ))  # fmt: skip
        self.user(f"Please look at {self.part()} again. {self.plant('constraint', text)}")
        self.model("I looked at it, nothing to change there.")

    def decided(self) -> None:
        text = f"We decided to {self.part()} through queue q{self.number()} because the {self.random.choice(PARTS)} is slow."
        self.user(f"How does {self.part()} go on?")
        self.model(f"I compared both ways. {self.plant('decision', text)}")

    def chosen(self) -> None:
        asked = f"Should we store {self.part()} in bucket b{self.number()} or keep it local?"
        self.model(f"Both would do. {asked}")
        self.user(self.plant("decision", f"keep it local, in /var/{self.part()}/{self.number()}"))
        self.model("Good.")

    def edited(self) -> None:
        path = self.plant("path", self.path())
        self.tool(
            "Edit",
            {"file_path": path, "old_string": "a = 1", "new_string": f"def {self.part()}(): ..."},
            "ok",
        )

    def viewed(self) -> None:
        path = self.plant("path", self.path())
        self.tool("Write", {"file_path": path, "content": f"def {self.part()}(): ...\n"}, "ok")

    def named_by_person(self) -> None:
        ticket, limit = f"OPS-{self.number()}", self.number()
        self.user(
            f"The ticket for it is {self.plant('id', ticket)}, and the limit is {self.plant('number', limit)} ms per call."
        )
        self.model("Noted.")

    def named_by_model(self) -> None:
        run, size = f"run-{self.hex(8)}", f"{self.number()}"
        self.user(f"What about {self.part()}?")
        self.model(f"The nightly run {self.plant('id', run)} took {self.plant('number', size)} seconds.")

    def printed(self) -> None:
        commit, port = self.hex(12), self.number()
        self.plant("id", commit)
        self.plant("number", port)
        self.tool("Bash", {"command": "make deploy"}, f"[main {commit}] deploy\nlistening on port {port}\n")

    def noise(self) -> None:
        """Add reading, searching and talk in the same forms, as sessions have most of."""
        lines = [
            f"{nth:>5}  {self.part()}({self.random.randint(1, 99)})  # {self.part()}" for nth in range(40)
        ]
        path = f"src/{self.random.choice(PARTS)}/{self.part()}.py"
        self.tool("Read", {"file_path": path}, "\n".join(lines))
        self.tool("Bash", {"command": f"grep -rn {self.part()} src | head"}, "\n".join(lines[:12]))
        self.model(f"Let me look at {self.part()} next, then at {self.part()}.")
        self.user("go on")

    def user(self, text: str) -> None:
        self.raws.append({"role": "user", "content": text})

    def model(self, text: str) -> None:
        self.raws.append({"role": "assistant", "content": text})

    def tool(self, name: str, arguments: dict, answer: str) -> None:
        self.calls += 1
        call = f"c{self.calls}"
        self.raws += [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": call, "name": name, "input": arguments}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": answer}]},
        ]


def compacted(raws: list[dict], window: int, sizes: dict[int, tuple[dict, int]]) -> tuple[list[dict], bool]:
    """Return the messages, compacted by the extractive backend when a trigger fires, and whether a summary was written.

    A compaction that only shortens old output writes none; it does not count.
    """
    messages = read(raws, "anthropic")
    for message in messages:
        if sizes.get(id(message.raw), (None, 0))[0] is not message.raw:
            sizes[id(message.raw)] = (message.raw, message_tokens(message, estimate))
    tokens = [sizes[id(message.raw)][1] for message in messages]
    found = plan(messages, policy("compact"), estimate, window=window, tokens=tokens)
    if not found.triggered:
        return raws, False
    prose = None
    if found.task:
        asked = summary_request(task_as_json(found.task))
        prose = backend("extractive")[0].complete(asked, settings=Settings(), count=estimate).text
    result = apply(found, prose)
    assert result.tokens_after <= min(result.limit, result.tokens_before)
    return [message.raw for message in result.messages], result.summary is not None


def kept(facts: list[Fact], raws: list[dict]) -> dict[str, list[int]]:
    """Return for each kind how many of `facts` are in the messages, and how many there are."""
    blocks = (block.text for message in read(raws, "anthropic") for block in message.blocks)
    context = " ".join(" ".join(blocks).split())
    found = {}
    for kind in KINDS:
        texts = [fact.text for fact in facts if fact.kind == kind]
        found[kind] = [sum(" ".join(text.split()) in context for text in texts), len(texts)]
    return found


def run(seed: int, window: int) -> dict[int, dict]:
    session = Session(seed)
    sizes: dict[int, tuple[dict, int]] = {}
    measured = {}
    for nth in range(1, max(COMPACTIONS) + 1):
        session.begin()
        summed = False
        while not summed:
            session.turn()
            session.raws, summed = compacted(session.raws, window, sizes)
        if nth in COMPACTIONS:
            first = [fact for fact in session.facts if fact.stretch == 1]
            measured[nth] = {"first": kept(first, session.raws), "all": kept(session.facts, session.raws)}
    return measured


def shares(runs: list[dict[int, dict]], nth: int, which: str) -> dict[str, float]:
    sums = {kind: [sum(run[nth][which][kind][at] for run in runs) for at in (0, 1)] for kind in KINDS}
    every = [sum(pair[at] for pair in sums.values()) for at in (0, 1)]
    return {kind: round(pair[0] / pair[1], 4) for kind, pair in sums.items()} | {
        "together": round(every[0] / every[1], 4),
        "facts": every[1],
    }


def main() -> None:
    result = {}
    for window in WINDOWS:
        runs = [run(seed, window) for seed in SEEDS]
        for nth in COMPACTIONS:
            found = {which: shares(runs, nth, which) for which in ("first", "all")}
            result[f"window_{window}_after_{nth}"] = found
            assert found["all"]["goal"] == found["all"]["constraint"] == 1.0, (
                "goals and constraints may never go"
            )
            assert nth > 5 or found["first"]["together"] >= 0.95
    report.write(__file__, {"seeds": len(SEEDS), "kept_verbatim": result})


if __name__ == "__main__":
    main()
