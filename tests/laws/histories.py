"""Histories: generated conversations as providers spell them, valid ones and broken ones.

`history` and `broken` are fast and seeded (a soak test makes thousands); the strategies below give the same
to Hypothesis, which then can shrink the seed's settings but not the text. What is valid here is what the
providers accept: parallel calls, interrupted turns, results in another order, unicode, nulls.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, Literal, NamedTuple

from hypothesis import strategies as st

from aether.messages.model import PROVIDER_FORMATS, ProviderFormat
from aether.types import JsonObject

Ending = Literal["user", "results", "assistant", "calls"]
WORDS = (
    "the parser fails when src/store/lock.py reads 4,096 bytes and retries twice because ticket AET-1841 says so "
    "we decided to keep PostgreSQL 15 never force-push main naïve café 東京 の テスト λ→x 🐜 order #W2890441 "
    "https://example.org/a?b=1 `cargo build --release` error: E0308 mismatched types at line 88"
).split()
TOOLS = ("read_file", "search", "run_shell", "edit_file", "web-fetch")


class Call(NamedTuple):
    """One call with the answer it will get."""

    id: str
    tool: str
    arguments: JsonObject
    answer: str
    failed: bool


class Round(NamedTuple):
    """One response of the model: what it thinks, says and calls; no calls in the last one of a turn."""

    thought: str
    said: str
    calls: tuple[Call, ...]


class Turn(NamedTuple):
    """What the person asks, and the responses to it; interrupted, the last one was never answered."""

    asked: str
    shown: bool
    rounds: tuple[Round, ...]


def history(
    seed: int,
    wire: ProviderFormat,
    *,
    turns: int = 4,
    rounds: int = 3,
    parallel: int = 3,
    tools: float = 0.7,
    interrupts: float = 0.15,
    thinking: float = 0.3,
    images: float = 0.05,
    words: int = 30,
    repeat_ids: bool = False,
    ending: Ending | None = None,
) -> list[JsonObject]:
    """Return a valid conversation of so many turns, always the same for the same arguments.

    `rounds` and `parallel` are the most rounds of calls in a turn and the most calls in a round, `tools`
    `interrupts` `thinking` `images` are probabilities, `words` is the mean length of a text and a tenth of
    that of an answer. With `repeat_ids` each turn uses the ids of the one before (OpenAI takes that,
    Anthropic does not). `ending` says what stands last; `calls` leaves them unanswered.
    """
    random = Random(seed)
    made = [
        _turn(random, at, rounds=rounds, parallel=parallel, tools=tools, thinking=thinking, images=images, words=words,
              interrupts=interrupts, start=0 if repeat_ids else at * rounds * parallel)
        for at in range(turns)
    ]  # fmt: skip
    raws = _SPELLERS[wire](random, made)
    return _ended(raws, wire, ending, random) if ending else raws


def broken(
    seed: int, wire: ProviderFormat, *, turns: int = 3, faults: int = 3, **settings: Any
) -> list[JsonObject]:
    """Return a conversation that something went wrong with, so many times; not every fault is an error."""
    random = Random(seed)
    raws = json.loads(json.dumps(history(seed, wire, turns=turns, **settings)))
    for _ in range(faults):
        random.choice(_FAULTS)(random, raws)
    return raws


@cache
def histories(*wires: ProviderFormat) -> st.SearchStrategy[tuple[ProviderFormat, list[JsonObject]]]:
    """A wire and a valid conversation in it: up to five turns, few or many calls, sometimes open at the end."""
    return st.builds(
        lambda wire, seed, settings: (wire, history(seed, wire, **settings)),
        st.sampled_from(wires or PROVIDER_FORMATS),
        seeds(),
        settings(),
    )


@cache
def broken_histories(*wires: ProviderFormat) -> st.SearchStrategy[tuple[ProviderFormat, list[JsonObject]]]:
    """A wire and a conversation in it with up to six faults."""
    return st.builds(
        lambda wire, seed, faults, settings: (wire, broken(seed, wire, faults=faults, **settings)),
        st.sampled_from(wires or PROVIDER_FORMATS),
        seeds(),
        st.integers(0, 6),
        settings(),
    )


@cache
def seeds() -> st.SearchStrategy[int]:
    """A seed for the fast generators."""
    return st.integers(0, 2**32)


@cache
def settings() -> st.SearchStrategy[JsonObject]:
    """Keyword arguments of `history`."""
    return st.fixed_dictionaries(
        {
            "turns": st.integers(0, 5),
            "rounds": st.integers(1, 3),
            "parallel": st.integers(1, 4),
            "tools": st.sampled_from([0.0, 0.5, 1.0]),
            "interrupts": st.sampled_from([0.0, 0.5]),
            "thinking": st.sampled_from([0.0, 0.5, 1.0]),
            "words": st.integers(1, 12),
        },
        optional={"ending": st.sampled_from(["user", "results", "assistant", "calls"])},
    )


@cache
def junk() -> st.SearchStrategy[list[JsonObject]]:
    """Objects that use a provider's words in ways that make no sense."""
    words = st.sampled_from(
        ["user", "assistant", "model", "tool", "system", "developer", "text", "tool_use", "tool_result", "thinking",
         "function", "function_call", "function_call_output", "reasoning", "message", "image", "a", "b", "", " ", "{}",
         "image_url", "input_image", "document", "server_tool_use", "custom", "custom_tool_call", "base64", "url", "hologram",
         "image/png", "aGk=", "https://a.org/b", "read a file", "x" * 129, "\ud800", "\ud83d\ude00", "file", "refusal"]
    )  # fmt: skip
    keys = st.sampled_from(
        ["role", "type", "content", "parts", "text", "id", "call_id", "tool_use_id", "tool_call_id", "tool_calls", "name",
         "function", "arguments", "input", "output", "functionCall", "functionResponse", "thinking", "signature", "meta",
         "source", "media_type", "data", "url", "image_url", "inlineData", "mimeType", "file_id", "args", "summary", "custom",
         "function_call", "refusal", "\udc00"]
    )  # fmt: skip
    leaves = (
        words
        | st.none()
        | st.booleans()
        | st.integers(-2, 2)
        | st.floats()
        | st.builds(deep, st.integers(80, 120))
    )
    values = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=12,
    )
    entries = st.fixed_dictionaries(
        {}, optional={"role": words, "content": values, "type": words, "parts": values}
    )
    return st.lists(entries | st.dictionaries(keys, values, max_size=6), max_size=6)


def deep(levels: int) -> JsonObject:
    """Return an object that is nested so deep."""
    value: JsonObject = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def text(random: Random, words: int) -> str:
    """Return some words, at least one, never blank at either end."""
    chosen = random.choices(WORDS, k=random.randint(1, 2 * words - 1))
    return " ".join(word + "\n" if random.random() < 0.05 else word for word in chosen).strip()


def _turn(
    random: Random, at: int, *, rounds: int, parallel: int, tools: float, thinking: float, images: float, words: int,
    interrupts: float, start: int,
) -> Turn:  # fmt: skip
    made: list[Round] = []
    while len(made) < rounds and random.random() < tools:
        calls = []
        for _ in range(random.randint(1, parallel)):
            calls.append(
                _call(random, f"call_{start + sum(len(one.calls) for one in made) + len(calls):04d}", words)
            )
        said = text(random, words) if random.random() < 0.5 else ""
        made.append(Round(text(random, words) if random.random() < thinking else "", said, tuple(calls)))
    if not made or random.random() >= interrupts:
        thought = text(random, words) if random.random() < thinking else ""
        made.append(Round(thought, text(random, words), ()))
    return Turn(f"Request {at}: {text(random, words)}", random.random() < images, tuple(made))


def _call(random: Random, id: str, words: int) -> Call:
    arguments = {"path": f"src/{random.choice(('a', 'b', 'ü'))}{random.randint(0, 99)}.py", "limit": None}
    answer = text(random, 10 * words) if random.random() < 0.95 else ""
    return Call(id, random.choice(TOOLS), arguments, answer, random.random() < 0.1)


def _anthropic(random: Random, made: list[Turn]) -> list[JsonObject]:
    raws: list[JsonObject] = []
    for turn in made:
        asked: list[JsonObject] = [{"type": "text", "text": turn.asked}]
        if turn.shown:
            source = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
            asked.insert(0, {"type": "image", "source": source})
        if raws and raws[-1]["role"] == "user" and random.random() < 0.5:
            raws[-1]["content"] += asked
        else:
            short = len(asked) == 1 and random.random() < 0.5
            raws.append({"role": "user", "content": turn.asked if short else asked})
        for one in turn.rounds:
            content: list[JsonObject] = []
            if one.thought:
                content.append({"type": "thinking", "thinking": one.thought, "signature": "c2ln"})
            if one.said:
                content.append({"type": "text", "text": one.said, **random.choice(({}, {"citations": None}))})
            content += [
                {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}
                for call in one.calls
            ]
            raws.append({"role": "assistant", "content": content})
            if one.calls:
                answers = [_tool_result(random, call) for call in one.calls]
                random.shuffle(answers)
                raws.append({"role": "user", "content": answers})
    return raws


def _tool_result(random: Random, call: Call) -> JsonObject:
    raw: JsonObject = {"type": "tool_result", "tool_use_id": call.id}
    if call.failed:
        raw["is_error"] = True
    if call.answer:
        raw["content"] = call.answer if random.random() < 0.5 else [{"type": "text", "text": call.answer}]
    return raw


def _openai(random: Random, made: list[Turn]) -> list[JsonObject]:
    raws: list[JsonObject] = [{"role": random.choice(("system", "developer")), "content": "You fix bugs."}]
    for turn in made:
        shown = (
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}]
            if turn.shown
            else []
        )
        asked = [{"type": "text", "text": turn.asked}, *shown]
        raws.append({"role": "user", "content": asked if shown or random.random() < 0.3 else turn.asked})
        for one in turn.rounds:
            raw: JsonObject = {"role": "assistant", "content": one.said or None}
            if random.random() < 0.3:
                raw["refusal"] = None
            if one.calls:
                raw["tool_calls"] = [
                    {"id": call.id, "type": "function",
                     "function": {"name": call.tool, "arguments": json.dumps(call.arguments)}}
                    for call in one.calls
                ]  # fmt: skip
            answers = [
                {"role": "tool", "tool_call_id": call.id, "content": call.answer} for call in one.calls
            ]
            random.shuffle(answers)
            raws += [raw, *answers]
    return raws


def _responses(random: Random, made: list[Turn]) -> list[JsonObject]:
    raws: list[JsonObject] = [{"role": random.choice(("system", "developer")), "content": "You fix bugs."}]
    for turn in made:
        content: Any = turn.asked
        if turn.shown or random.random() < 0.3:
            content = [{"type": "input_text", "text": turn.asked}]
            content += (
                [{"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}]
                if turn.shown
                else []
            )
        raws.append({"type": "message", "role": "user", "content": content})
        for one in turn.rounds:
            if one.thought:
                summary = [{"type": "summary_text", "text": one.thought}]
                raws.append(
                    {
                        "type": "reasoning",
                        "id": f"rs_{random.getrandbits(48):012x}",
                        "summary": summary,
                        "status": None,
                    }
                )
            if one.said:
                said = [{"type": "output_text", "text": one.said, "annotations": []}]
                raws.append(
                    {
                        "type": "message",
                        "id": f"msg_{random.getrandbits(48):012x}",
                        "role": "assistant",
                        "content": said,
                    }
                )
            raws += _batch(random, one.calls)
    return raws


def _batch(random: Random, calls: tuple[Call, ...]) -> list[JsonObject]:
    asked = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.tool,
            "arguments": json.dumps(call.arguments),
        }
        for call in calls
    ]
    answers = [{"type": "function_call_output", "call_id": call.id, "output": call.answer} for call in calls]
    if random.random() < 0.5:
        return [item for pair in zip(asked, answers, strict=True) for item in pair]
    random.shuffle(answers)
    return [*asked, *answers]


def _gemini(random: Random, made: list[Turn]) -> list[JsonObject]:
    raws: list[JsonObject] = []
    ids = random.random() < 0.5
    for turn in made:
        shown = [{"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}] if turn.shown else []
        raws.append({"role": "user", "parts": [{"text": turn.asked}, *shown]})
        for one in turn.rounds:
            parts: list[JsonObject] = [{"text": one.thought, "thought": True}] if one.thought else []
            parts += [{"text": one.said}] if one.said else []
            named = [{"id": call.id} if ids else {} for call in one.calls]
            parts += [
                {
                    "functionCall": {**name, "name": call.tool, "args": call.arguments},
                    "thoughtSignature": "c2ln",
                }
                for call, name in zip(one.calls, named, strict=True)
            ]
            raws.append({"role": "model", "parts": parts})
            if one.calls:
                answers = [
                    {"functionResponse": {**name, "name": call.tool, "response": {"result": call.answer}}}
                    for call, name in zip(one.calls, named, strict=True)
                ]
                raws.append({"role": "user", "parts": answers})
    return raws


def _plain(random: Random, made: list[Turn]) -> list[JsonObject]:
    raws: list[JsonObject] = [{"role": "system", "content": "You fix bugs."}]
    for turn in made:
        raws.append({"role": "user", "content": turn.asked})
        for one in turn.rounds:
            if one.said:
                raws.append({"role": "assistant", "content": one.said})
            raws += [{"role": "tool", "content": f"{call.tool}: {call.answer}"} for call in one.calls]
        if random.random() < 0.2:
            raws.append(
                {
                    "role": "developer",
                    "content": text(random, 4),
                    "meta": {"protected": True, "label": "rule"},
                }
            )
    return raws


_SPELLERS: dict[ProviderFormat, Callable[[Random, list[Turn]], list[JsonObject]]] = {
    "anthropic": _anthropic, "openai": _openai, "responses": _responses, "gemini": _gemini, "plain": _plain,
}  # fmt: skip


def _ended(raws: list[JsonObject], wire: ProviderFormat, ending: Ending, random: Random) -> list[JsonObject]:
    """Return `raws` with one more turn that ends as asked."""
    call = Call(
        "call_last", TOOLS[0], {"path": "src/last.py", "limit": None}, "The last answer.", failed=False
    )
    rounds = {
        "user": (),
        "results": (Round("", "", (call,)),),
        "assistant": (Round("", "Done.", ()),),
        "calls": (Round("", "", (call,)),),
    }[ending]
    more = _SPELLERS[wire](random, [Turn("The last request.", shown=False, rounds=rounds)])
    while more[0].get("role") in ("system", "developer"):
        del more[0]
    if wire == "plain":
        more = more[:-1] if ending == "calls" else more
    elif ending == "calls":
        del more[-1]
    return raws + [raw for raw in more if raw.get("role") != "developer"]


def _at(random: Random, raws: list[JsonObject]) -> int:
    return random.randrange(len(raws)) if raws else -1


def _entries(raw: JsonObject) -> list[Any]:
    """Return the list of blocks, parts or calls that `raw` has, or an empty one."""
    found = [raw[key] for key in ("content", "parts", "tool_calls") if isinstance(raw.get(key), list)]
    return found[0] if found else []


def _lose(random: Random, raws: list[JsonObject]) -> None:
    if raws:
        del raws[_at(random, raws)]


def _lose_the_start(random: Random, raws: list[JsonObject]) -> None:
    del raws[: random.randint(0, len(raws) // 2)]


def _lose_the_end(random: Random, raws: list[JsonObject]) -> None:
    del raws[len(raws) - random.randint(0, len(raws) // 3) :]


def _repeat(random: Random, raws: list[JsonObject]) -> None:
    if raws:
        raws.insert(_at(random, raws), json.loads(json.dumps(raws[_at(random, raws)])))


def _swap(random: Random, raws: list[JsonObject]) -> None:
    if raws:
        raws.insert(_at(random, raws), raws.pop(_at(random, raws)))


def _interrupt(random: Random, raws: list[JsonObject]) -> None:
    said = "Stop, do this first."
    spelt = {"parts": [{"text": said}]} if any("parts" in raw for raw in raws) else {"content": said}
    raws.insert(random.randint(0, len(raws)), {"role": "user", **spelt})


def _lose_an_entry(random: Random, raws: list[JsonObject]) -> None:
    entries = _entries(raws[_at(random, raws)]) if raws else []
    if entries:
        del entries[random.randrange(len(entries))]


def _repeat_an_entry(random: Random, raws: list[JsonObject]) -> None:
    entries = _entries(raws[_at(random, raws)]) if raws else []
    if entries:
        entries.append(json.loads(json.dumps(random.choice(entries))))


def _shuffle_entries(random: Random, raws: list[JsonObject]) -> None:
    if raws:
        random.shuffle(_entries(raws[_at(random, raws)]))


def _wrong_value(random: Random, raws: list[JsonObject]) -> None:
    """Put a value that does not belong there into a message or one of its entries."""
    if not raws:
        return
    raw = raws[_at(random, raws)]
    entries = [raw, *(entry for entry in _entries(raw) if isinstance(entry, dict))]
    target = random.choice(entries)
    if target:
        key = random.choice(sorted(target))
        target[key] = random.choice([None, "", "  ", [], {}, 7, "robot", "call_0000", "not {json"])


def _lose_a_key(random: Random, raws: list[JsonObject]) -> None:
    if not raws:
        return
    raw = raws[_at(random, raws)]
    target = random.choice([raw, *(entry for entry in _entries(raw) if isinstance(entry, dict))])
    if target:
        del target[random.choice(sorted(target))]


# Blocks that one provider or all refuse, and values that JSON cannot hold.
_REFUSED: tuple[JsonObject, ...] = (
    {"type": "image", "source": None},
    {"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo="}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
    {"type": "document", "source": {"type": "url"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    {"type": "image_url", "image_url": "nowhere"},
    {"type": "input_image", "image_url": None},
    {"type": "input_text", "text": "Typed for another."},
    {"type": "hologram", "text": "Nobody knows this type."},
    {"type": "hologram"},
    {"inlineData": {"mimeType": "image/png"}},
    {"text": "Half a pair: \ud83d", "type": "text"},
)


def _refused_block(random: Random, raws: list[JsonObject]) -> None:
    raw = raws[_at(random, raws)] if raws else {}
    key = "parts" if "parts" in raw else "content"
    if raw and isinstance(raw.get(key), str):
        raw[key] = [{"type": "text", "text": raw[key]}]
    if isinstance(raw.get(key), list):
        raw[key].insert(random.randint(0, len(raw[key])), json.loads(json.dumps(random.choice(_REFUSED))))


def _refused_call(random: Random, raws: list[JsonObject]) -> None:
    """Give a call a name that providers refuse, or arguments that JSON cannot hold."""
    called = [
        one
        for raw in raws
        for entry in [raw, *(entry for entry in _entries(raw) if isinstance(entry, dict))]
        for one in (entry, entry.get("function"), entry.get("functionCall"))
        if isinstance(one, dict) and {"input", "arguments", "args"} & one.keys()
    ]
    if not called:
        return
    call = random.choice(called)
    key = next(key for key in ("input", "arguments", "args") if key in call)
    if random.random() < 0.5:
        call["name"] = random.choice(["read a file", "mcp.server.tool", "n" * 200, "lire/écrire", "7"])
    else:
        call[key] = random.choice([deep(120), {"a": float("nan")}, {"\udc00": "\ud800"}])


def _mark(random: Random, raws: list[JsonObject]) -> None:
    if raws:
        raws[_at(random, raws)]["meta"] = {"protected": True}


_FAULTS: tuple[Callable[[Random, list[JsonObject]], None], ...] = (
    _lose, _lose_the_start, _lose_the_end, _repeat, _swap, _interrupt, _lose_an_entry, _repeat_an_entry,
    _shuffle_entries, _wrong_value, _lose_a_key, _mark, _refused_block, _refused_call,
)  # fmt: skip
