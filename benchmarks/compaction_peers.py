"""What do aether's, LangChain's, deepagents' and Microsoft Agent Framework's compaction make of the same histories?

Generated conversations in the shape of OpenAI chat (parallel calls, interrupted turns, ids that come again) grow by one
model call at a time through a window that they fill several times over. Before each model call every system
prepares what is sent, going on from what it kept itself, so that later summaries include earlier ones. All get the
same histories, the same counter of tokens through their own hook for one, the same point from which to compact, the
same summariser with the same words. A second scenario is the same with a summariser that fails in a fifth of
its calls: a third of those raise, a third are empty, a third are the text of a server's error.

Settings, meant to be the best that each system's documentation offers for a token budget:

aether                   policy `compact`; the record of each conversation is written to disk, and that is in the time
langchain                SummarizationMiddleware; keeps as many tokens as aether aims for. The system prompt is separate from
                         the messages, as `create_agent` has it, and its tokens are taken from the trigger. What is
                         summarised is not trimmed. A failing call is tried three times, without waiting.
langchain_keep_tenth     the same, keeping a tenth of the window
deepagents               its SummarizationMiddleware with the same settings and no limit of its own for arguments; it
                         writes what it removes to a file (FilesystemBackend), and that is in the time
agent_framework          TokenBudgetComposedStrategy of ToolResultCompactionStrategy, SummarizationStrategy and
                         SlidingWindowStrategy with the settings of its samples; its budget is its trigger and its target
agent_framework_window   ContextWindowCompactionStrategy with its default thresholds, keeping the first user message; it
                         asks no summariser

A third scenario, for the cost of one compaction, takes real sessions of coding agents in a window of 128,000 tokens,
where their transcripts are beside the repository (../shared/data/trajectories). The systems take turns, one session
each, after all have done a generated conversation unmeasured; each text is new to a system when it compacts it for
the first time. aether writes its summary itself there (`aether_extractive`), and that is in its time. There is no
rule in them. Times are of the clock and of the processor, which a busy machine changes less.

A fourth scenario is a thousand messages of text alone, 184,000 tokens, in a window of 200,000, which they fill to the
trigger; again aether writes its summary itself.

Only systems that are installed are measured; the result names the others.

The scripted summary restates no request; a model's may, in its own words, and no column is about those.

What the columns count, and who promises it: results that OpenAI's API would refuse (all promise to keep calls with
their results) and, by a check that shares no code with aether's, calls without results or the reverse; model calls
that would be sent with more tokens than the window less the reserve (aether promises never; agent_framework
and its window strategy to try, the last group may stay over; langchain promises to compact from the trigger on), and
how many of those although the system prompt and the newest group alone fit; conversations in which the opening
request, the newest request at some model call, or a message with a rule, are no longer verbatim in the request (the rule
is marked as protected for aether; the others have no way to mark a message and promise nothing, nor do they for
requests, except agent_framework_window for the opening one); errors raised to the caller (langchain promises to raise rather than to
go on without a summary); conversations in which the text of an error, or an empty summary, replaced history (nobody but
aether promises to notice). A conversation goes on after an error with what it had.

Usage: python benchmarks/compaction_peers.py [real_sessions] [text_messages]        (with one, the other results stay)
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import report  # noqa: E402 - runnable without an installation

from aether import __version__  # noqa: E402
from aether.api.compact import Options, preflight  # noqa: E402
from aether.conversation.policy import bounds, policy  # noqa: E402
from aether.conversation.shapes import Bounds  # noqa: E402
from aether.messages.convert import message, read  # noqa: E402
from aether.messages.validate import check, sendable  # noqa: E402
from aether.tokens.count import message_tokens  # noqa: E402
from aether.tokens.estimate import estimate  # noqa: E402
from tests.laws.histories import history  # noqa: E402

# Window in tokens: how many conversations. Most are small, so that the whole takes two minutes.
WINDOWS = {2_000: 130, 4_000: 50, 8_000: 16, 16_000: 4, 32_000: 2, 64_000: 1}
# How often a conversation would fill its window: enough for summaries of summaries.
FILLS = 2.2
# Mean words of a text; an answer of a tool has ten times as many, and a batch of three at most a third of the window.
TOKENS_PER_WORD = 350
MOST_WORDS = 40
# One history in seven has results so large that one batch may not fit; one in ten uses each turn's ids again.
LARGE_EVERY, LARGER = 7, 4
REPEATED_EVERY = 10
FAILING = 0.2
# Real sessions, where the transcripts are beside the repository, in the window of the smaller models of agents.
SESSIONS = ROOT.parent / "shared" / "data" / "trajectories"
SESSION_WINDOW = 128_000
# Messages of text alone: so many words are 184 tokens each.
TEXT_WINDOW, TEXT_TURNS, TEXT_MESSAGES, TEXT_WORDS, TEXT_CONVERSATIONS = 200_000, 540, 1_000, 90, 4
RULE = "Rule for all that follows: never force-push, and quote ticket AET-{nth} in every commit message."
SUMMARY = (
    "The person reported that the parser fails when the lock file is read in pieces. The agent searched the store, read "
    "the modules that take part, ran the tests, and edited the reader so that it retries. It was agreed to stay with "
    "the database that is in use. Two failures are still open, and the next step is to run the whole suite again."
)
ERROR = "Error code: 529 - {'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}"
ABSENT = "not installed"
SCENARIOS = {"summariser_works": 0.0, "summariser_fails_in_a_fifth": FAILING}
# What aether says never happens.
PROMISED = (
    "invalid_for_openai", "calls_without_results_or_reverse", "sent_over_budget", "raised", "opening_request_gone",
    "newest_request_gone", "rule_gone", "error_text_became_memory", "empty_summary_replaced_history",
)  # fmt: skip


class Conversation(NamedTuple):
    """One history with what is asked of its compaction."""

    name: str
    raws: list[dict]
    window: int
    limits: Bounds
    points: list[int]
    """Lengths at which a model is called."""
    rule: str
    opening: str


class Timer(NamedTuple):
    """Seconds since a start, or at it: of the clock, and of the processor."""

    wall: float
    cpu: float


class Sent(NamedTuple):
    """What a system would send, whether it compacted for that, and the seconds that took."""

    raws: list[dict]
    compacted: bool
    seconds: Timer


def started() -> Timer:
    return Timer(time.perf_counter(), time.process_time())


def since(start: Timer) -> Timer:
    return Timer(time.perf_counter() - start.wall, time.process_time() - start.cpu)


class Summariser:
    """The same words for everybody; in some of its calls it fails."""

    def __init__(self, seed: str, failing: float):
        self.random = Random(seed)
        self.failing = failing
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.random.random() >= self.failing:
            return SUMMARY
        kind = self.random.choice(("raise", "empty", "error"))
        if kind == "raise":
            raise ConnectionError("connection reset by peer")
        return "" if kind == "empty" else ERROR


def tokens_of(raw: dict) -> int:
    return message_tokens(message(raw, "openai"), estimate)


class Remembered:
    """What `work` says of a message, asked for once: counting costs nobody anything twice."""

    def __init__(self, work: Callable[[dict], Any]):
        self.work = work
        self.known: dict[int, tuple[dict, Any]] = {}

    def __call__(self, raw: dict) -> Any:
        found = self.known.get(id(raw))
        if found is None or found[0] is not raw:
            found = self.known[id(raw)] = (raw, self.work(raw))
        return found[1]


def conversations() -> list[Conversation]:
    found: list[Conversation] = []
    for window, number in WINDOWS.items():
        words = max(4, min(window // TOKENS_PER_WORD, MOST_WORDS))
        for _ in range(number):
            found.append(conversation(len(found), window, words))
    return found


def conversation(nth: int, window: int, words: int) -> Conversation:
    large = LARGER if nth % LARGE_EVERY == 0 else 1
    turns = 16
    while True:
        raws = history(
            nth, "openai", turns=turns, words=words * large, images=0.0, interrupts=0.3,
            repeat_ids=nth % REPEATED_EVERY == 0,
        )  # fmt: skip
        if sum(map(tokens_of, raws)) >= FILLS * window:
            break
        turns *= 2
    raws[0]["role"] = "system"  # what comes as `developer` is no system message to every system
    rule = RULE.format(nth=1_000 + nth)
    second = [at for at, raw in enumerate(raws) if raw["role"] == "user"][1]
    raws.insert(second, {"role": "user", "content": rule, "meta": {"protected": True, "label": "rule"}})
    total, end = 0, len(raws)
    for at, raw in enumerate(raws):
        total += tokens_of(raw)
        if total >= FILLS * window:
            end = at
            break
    points = [at for at in range(2, end) if raws[at]["role"] == "assistant"]
    return Conversation(
        f"c{nth}",
        raws[: points[-1]],
        window,
        bounds(policy("compact"), window),
        points,
        rule,
        text_of(raws[1]),
    )


def real_sessions() -> list[Conversation]:
    """Return the sessions of coding agents beside the repository, as OpenAI chat with what a provider would refuse repaired."""
    found = []
    for path in sorted(SESSIONS.glob("converted_*.json")):
        told = json.loads(path.read_text(encoding="utf-8"))["messages"]
        raws = [{"role": "system", "content": "You are a coding agent."}]
        raws += [{**raw, "role": "system"} if raw["role"] == "developer" else raw for raw in told]
        raws = sendable(raws, "openai").raws
        points = [at for at in range(2, len(raws)) if raws[at]["role"] == "assistant"]
        opening = next(text_of(raw) for raw in raws if raw["role"] == "user")
        limits = bounds(policy("compact"), SESSION_WINDOW)
        found.append(
            Conversation(path.stem, raws[: points[-1]], SESSION_WINDOW, limits, points, "(none)", opening)
        )
    return found


def text_messages() -> list[Conversation]:
    """Return conversations of a thousand messages without calls."""
    listed = []
    for nth in range(TEXT_CONVERSATIONS):
        raws = history(
            nth, "openai", turns=TEXT_TURNS, tools=0.0, thinking=0.0, images=0.0, interrupts=0.0, words=TEXT_WORDS
        )  # fmt: skip
        raws = [
            {**raw, "role": "system"} if raw["role"] == "developer" else raw for raw in raws[:TEXT_MESSAGES]
        ]
        points = [at for at in range(2, len(raws)) if raws[at]["role"] == "assistant"]
        opening = next(text_of(raw) for raw in raws if raw["role"] == "user")
        limits = bounds(policy("compact"), TEXT_WINDOW)
        listed.append(
            Conversation(f"text{nth}", raws, TEXT_WINDOW, limits, [*points, len(raws)], "(none)", opening)
        )
    return listed


def text_of(raw: dict) -> str:
    content = raw.get("content")
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    return " ".join(" ".join(part.get("text", "") for part in parts).split())


def own_key_removed(raw: dict) -> dict:
    return {key: value for key, value in raw.items() if key != "meta"}


# The systems. Each opens a conversation and returns a function: new messages in, what is sent out.
Step = Callable[[list[dict]], Sent]


def aether(talk: Conversation, summariser: Summariser, folder: Path) -> Step:
    return aether_with(talk, Options(record=folder, backend=lambda said, most, strategy: summariser()))


def aether_extractive(talk: Conversation, _summariser: Summariser, folder: Path) -> Step:
    return aether_with(talk, Options(record=folder, backend="extractive"))


def aether_with(talk: Conversation, options: Options) -> Step:
    live: list[dict] = []

    def step(new: list[dict]) -> Sent:
        live.extend(new)
        start = started()
        found = preflight(talk.name, live, window=talk.window, wire="openai", options=options)
        seconds = since(start)
        live[:] = found.messages
        return Sent(list(live), found.triggered, seconds)

    return step


class LangChainMessages:
    """The messages of LangChain for raw ones, and back; what LangChain writes itself is a message of the user."""

    def __init__(self) -> None:
        self.raw_of: dict[str, dict] = {}

    def raw(self, one: Any) -> dict:
        return self.raw_of.get(one.id) or {"role": "user", "content": one.text}

    def theirs(self, one: dict) -> Any:
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

        text = text_of(one) if isinstance(one.get("content"), list) else one.get("content") or ""
        if one["role"] == "user":
            made: Any = HumanMessage(text)
        elif one["role"] == "tool":
            made = ToolMessage(text, tool_call_id=one["tool_call_id"])
        else:
            calls = [
                {"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
                for call in one.get("tool_calls", ())
            ]  # fmt: skip
            made = AIMessage(text, tool_calls=calls)
        made.id = f"m{len(self.raw_of)}"
        self.raw_of[made.id] = own_key_removed(one)
        return made


def langchain(keep: Callable[[Conversation, int], int]) -> Callable[..., Step]:
    def opened(talk: Conversation, summariser: Summariser, _folder: Path) -> Step:
        from langchain.agents.middleware import SummarizationMiddleware
        from langchain_core.messages import RemoveMessage

        count, known = Remembered(tokens_of), LangChainMessages()
        system, live = talk.raws[0], []
        reserved = tokens_of(system)
        middleware = SummarizationMiddleware(
            model=chat_model(summariser),
            trigger=("tokens", talk.limits.ceiling + 1 - reserved),
            keep=("tokens", keep(talk, reserved)),
            token_counter=lambda found: sum(count(known.raw(one)) for one in found),
            trim_tokens_to_summarize=None,
        )
        # Its own retries, less the waiting between them.
        retrying = middleware.model.with_retry(wait_exponential_jitter=False)
        middleware._summary_model = retrying  # noqa: SLF001 - no argument of the middleware reaches the waiting

        def step(new: list[dict]) -> Sent:
            live.extend(known.theirs(one) for one in new if one is not system)
            start = started()
            update = middleware.before_model({"messages": live}, None)
            seconds = since(start)
            if update:
                live[:] = [one for one in update["messages"] if not isinstance(one, RemoveMessage)]
            return Sent([system, *map(known.raw, live)], bool(update), seconds)

        return step

    return opened


def deepagents(talk: Conversation, summariser: Summariser, folder: Path) -> Step:
    from deepagents.backends import FilesystemBackend
    from deepagents.middleware.summarization import SummarizationMiddleware
    from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage

    count, known = Remembered(tokens_of), LangChainMessages()
    system = talk.raws[0]
    reserved = tokens_of(system)
    middleware = SummarizationMiddleware(
        model=chat_model(summariser),
        backend=FilesystemBackend(root_dir=folder / talk.name, virtual_mode=True),
        trigger=("tokens", talk.limits.ceiling + 1 - reserved),
        keep=("tokens", to_the_same_target(talk, reserved)),
        token_counter=lambda found: sum(count(known.raw(one)) for one in found),
        trim_tokens_to_summarize=None,
    )
    state: dict[str, Any] = {"messages": []}
    sent: list[Any] = []

    def handler(request: Any) -> Any:
        sent[:] = request.messages
        return ModelResponse(result=[AIMessage("")])

    def step(new: list[dict]) -> Sent:
        state["messages"] += [known.theirs(one) for one in new if one is not system]
        request = ModelRequest(model=middleware.model, messages=state["messages"], state=state, tools=[])
        start = started()
        answer = middleware.wrap_model_call(request, handler)
        seconds = since(start)
        compacted = isinstance(answer, ExtendedModelResponse)
        if compacted:
            update = dict(answer.command.update)
            replaced = {one.id: one for one in update.pop("messages", ())}
            state["messages"] = [replaced.get(one.id, one) for one in state["messages"]]
            state.update(update)
        return Sent([system, *map(known.raw, sent)], compacted, seconds)

    return step


def chat_model(summariser: Summariser) -> Any:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "scripted"

        def _generate(self, *_: Any, **__: Any) -> Any:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(summariser()))])

    return Model()


def agent_framework(strategy_of: Callable[..., Any]) -> Callable[..., Step]:
    def opened(talk: Conversation, summariser: Summariser, _folder: Path) -> Step:
        from agent_framework import EXCLUDED_KEY, Content, Message, apply_compaction

        raw_of: dict[int, tuple[Any, dict]] = {}
        live: list[Any] = []
        tokenizer = Tokenizer()
        strategy = strategy_of(talk, client(summariser), tokenizer)

        def raw(one: Any) -> dict:
            if id(one) not in raw_of:
                raw_of[id(one)] = (one, {"role": one.role, "content": one.text})
            return raw_of[id(one)][1]

        def theirs(one: dict) -> Any:
            contents = [Content.from_text(text_of(one))] if text_of(one) and one["role"] != "tool" else []
            for call in one.get("tool_calls", ()):
                said = call["function"]
                contents.append(
                    Content.from_function_call(call["id"], said["name"], arguments=said["arguments"])
                )
            if one["role"] == "tool":
                contents = [Content.from_function_result(one["tool_call_id"], result=one["content"])]
            made = Message(role=one["role"], contents=contents)
            raw_of[id(made)] = (made, own_key_removed(one))
            return made

        async def prepared() -> tuple[list[Any], Timer]:
            start = started()
            found = await apply_compaction(live, strategy=strategy, tokenizer=tokenizer)
            return found, since(start)

        def step(new: list[dict]) -> Sent:
            live.extend(map(theirs, new))
            before = {id(one) for one in live if not one.additional_properties.get(EXCLUDED_KEY)}
            found, seconds = asyncio.run(prepared())
            return Sent([raw(one) for one in found], {id(one) for one in found} != before, seconds)

        return step

    return opened


class Tokenizer:
    """The shared estimate, in the form that Agent Framework asks for; it counts each message's own JSON once."""

    def count_tokens(self, text: str) -> int:
        return estimate(text)


def client(summariser: Summariser) -> Any:
    from agent_framework import ChatResponse, Message

    class Client:
        async def get_response(self, *_: Any, **__: Any) -> Any:
            return ChatResponse(messages=[Message(role="assistant", contents=[summariser()])])

    return Client()


def composed(talk: Conversation, client: Any, tokenizer: Tokenizer) -> Any:
    from agent_framework import (
        SlidingWindowStrategy,
        SummarizationStrategy,
        TokenBudgetComposedStrategy,
        ToolResultCompactionStrategy,
    )

    return TokenBudgetComposedStrategy(
        token_budget=talk.limits.ceiling,
        tokenizer=tokenizer,
        strategies=[
            ToolResultCompactionStrategy(keep_last_tool_call_groups=1),
            SummarizationStrategy(
                client=client, target_count=4, threshold=2, max_summary_input_tokens=talk.window, tokenizer=tokenizer
            ),
            SlidingWindowStrategy(keep_last_groups=20),
        ],
    )  # fmt: skip


def windowed(talk: Conversation, _client: Any, tokenizer: Tokenizer) -> Any:
    from agent_framework import ContextWindowCompactionStrategy

    return ContextWindowCompactionStrategy(
        max_context_window_tokens=talk.window, max_output_tokens=talk.limits.reserve, tokenizer=tokenizer,
        preserve_first_user_group=True,
    )  # fmt: skip


def to_the_same_target(talk: Conversation, reserved: int) -> int:
    return max(1, talk.limits.goal - reserved - estimate(SUMMARY))


SYSTEMS: dict[str, tuple[str, Callable[..., Step]]] = {
    "aether": ("aether-memory", aether),
    "aether_extractive": ("aether-memory", aether_extractive),
    "langchain": ("langchain", langchain(to_the_same_target)),
    "langchain_keep_tenth": ("langchain", langchain(lambda talk, reserved: talk.window // 10)),
    "deepagents": ("deepagents", deepagents),
    "agent_framework": ("agent-framework-core", agent_framework(composed)),
    "agent_framework_window": ("agent-framework-core", agent_framework(windowed)),
}

# The second scenario is the first one for these.
ASKS_NOBODY = ("agent_framework_window",)
# In real sessions aether is measured without a model; one of both, as they share what they remember of a text.
ONLY_REAL, NOT_REAL = "aether_extractive", "aether"
REAL, TEXT = "real_sessions", "text_messages"


class Record:
    """What is counted of one system in one scenario."""

    def __init__(self) -> None:
        self.calls = self.compactions = self.invalid = self.lonely = self.over = self.avoidable = 0
        self.worst = 0.0
        self.raised: dict[str, int] = {}
        self.raised_number = 0
        self.lost = {key: set() for key in ("opening", "newest", "rule", "error", "empty")}
        self.seconds: list[Timer] = []
        self.shares: list[float] = []
        self.codes: dict[str, int] = {}


def run(talk: Conversation, step: Step, record: Record) -> None:
    count, text, done = Remembered(tokens_of), Remembered(text_of), 0
    for point in talk.points:
        new, done = talk.raws[done:point], point
        record.calls += 1
        try:
            sent = step(new)
        except Exception as reason:  # noqa: BLE001 - whatever it is, the caller would have to deal with it
            record.raised_number += 1
            record.raised[type(reason).__name__] = record.raised.get(type(reason).__name__, 0) + 1
            continue
        _weigh(talk, sent, record, count, point)
        if sent.compacted:
            record.compactions += 1
            record.seconds.append(sent.seconds)
            record.shares.append(sum(map(count, sent.raws)) / talk.window)
            _judge(sent.raws, record)
        _miss(talk, sent.raws, record, text, point)


def _weigh(talk: Conversation, sent: Sent, record: Record, count: Remembered, point: int) -> None:
    total = sum(map(count, sent.raws))
    if total > talk.limits.limit:
        record.over += 1
        record.worst = max(record.worst, total / talk.limits.limit)
        newest = point - 1
        while talk.raws[newest]["role"] == "tool":
            newest -= 1
        least = tokens_of(talk.raws[0]) + sum(map(tokens_of, talk.raws[newest:point]))
        record.avoidable += least <= talk.limits.limit


def _judge(kept: list[dict], record: Record) -> None:
    raws = list(map(own_key_removed, kept))
    errors = [finding.code for finding in check(read(raws, "openai"), "openai") if finding.level == "error"]
    for code in set(errors):
        record.codes[code] = record.codes.get(code, 0) + 1
    record.invalid += bool(errors)
    record.lonely += not paired(raws)


def paired(raws: list[dict]) -> bool:
    """Return whether each batch of calls is followed by just its answers, and no answer is elsewhere."""
    at = 0
    while at < len(raws):
        asked = sorted(call["id"] for call in raws[at].get("tool_calls", ()))
        if raws[at]["role"] == "tool":
            return False
        at += 1
        answered = []
        while asked and at < len(raws) and raws[at]["role"] == "tool":
            answered.append(raws[at]["tool_call_id"])
            at += 1
        if sorted(answered) != asked:
            return False
    return True


def _miss(talk: Conversation, raws: list[dict], record: Record, text_of: Remembered, point: int) -> None:
    texts = list(map(text_of, raws))
    newest = next(raw for raw in reversed(talk.raws[:point]) if raw["role"] == "user")
    said = talk.raws[:point]
    here = {
        "opening": not any(talk.opening in text for text in texts),
        "newest": not any(text_of(newest) in text for text in texts),
        "rule": any(text_of(raw) == talk.rule for raw in said) and talk.rule not in texts,
        "error": any(ERROR[:40] in text for text in texts),
        "empty": any(text.endswith("conversation to date:") for text in texts),
    }
    for key, missed in here.items():
        if missed:
            record.lost[key].add(talk.name)


def shown(record: Record, number: int) -> dict:
    wall, cpu = ([1e3 * one for one in times] for times in zip(*record.seconds, strict=True))
    return {
        "model_calls": record.calls,
        "compactions": record.compactions,
        "tokens_after_share_of_window_median": round(statistics.median(record.shares), 2),
        "invalid_for_openai": record.invalid,
        "invalid_why": dict(sorted(record.codes.items())),
        "calls_without_results_or_reverse": record.lonely,
        "sent_over_budget": record.over,
        "of_these_avoidable": record.avoidable,
        "worst_over_budget": round(record.worst, 2),
        "raised": record.raised_number,
        "raised_what": dict(sorted(record.raised.items())),
        "conversations": number,
        "opening_request_gone": len(record.lost["opening"]),
        "newest_request_gone": len(record.lost["newest"]),
        "rule_gone": len(record.lost["rule"]),
        "error_text_became_memory": len(record.lost["error"]),
        "empty_summary_replaced_history": len(record.lost["empty"]),
        "median_ms": round(statistics.median(wall), 2),
        "p95_ms": round(statistics.quantiles(wall, n=20)[18], 2),
        "median_cpu_ms": round(statistics.median(cpu), 2),
        "p95_cpu_ms": round(statistics.quantiles(cpu, n=20)[18], 2),
    }


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return __version__ if package == "aether-memory" else ABSENT


def measure(talks: list[Conversation], names: list[str], failing: float) -> dict[str, dict]:
    """Return what each system made of the conversations; they take turns."""
    records = {name: Record() for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for talk in talks:
            for name, record in records.items():
                place = Path(folder) / name
                place.mkdir(exist_ok=True)
                run(talk, SYSTEMS[name][1](talk, Summariser(talk.name, failing), place), record)
    return {name: shown(record, len(talks)) for name, record in records.items()}


def main() -> None:
    """Measure, print and write."""
    logging.disable(logging.ERROR)  # Agent Framework warns of each summary that it skipped
    talks, real = conversations(), real_sessions()
    assert len(talks) >= 200
    for talk in [*talks, *real]:
        whole = list(map(own_key_removed, talk.raws))
        assert paired(whole)
        assert not any(found.level == "error" for found in check(read(whole, "openai"), "openai")), talk.name
    versions = {name: version(package) for name, (package, _) in SYSTEMS.items()}
    present = [name for name, found in versions.items() if found != ABSENT]
    on_real = [name for name in present if name != NOT_REAL]
    measure(talks[-1:], on_real, 0.0)
    wanted = sys.argv[1:] or [REAL, TEXT, *SCENARIOS]
    file = Path(__file__).parent / "results" / "compaction_peers.json"
    result: dict[str, dict] = (
        {} if not sys.argv[1:] else json.loads(file.read_text(encoding="utf-8"))["found"]
    )
    for scenario, sessions in ((REAL, real), (TEXT, text_messages())):
        if scenario in wanted and sessions:
            result[scenario] = measure(sessions, on_real, 0.0)
    for scenario, failing in SCENARIOS.items():
        if scenario not in wanted:
            continue
        names = [name for name in present if name != ONLY_REAL and not (failing and name in ASKS_NOBODY)]
        result[scenario] = measure(talks, names, failing)
        assert all(one["compactions"] > 2 * len(talks) for one in result[scenario].values()), "hardly needed"
    for scenario, found in result.items():
        ours = found[ONLY_REAL if scenario in (REAL, TEXT) else "aether"]
        assert not any(ours[promise] for promise in PROMISED), ours
    report.write(
        __file__,
        {
            "question": __doc__.splitlines()[0],
            "versions": versions,
            "windows": WINDOWS,
            "window_of_real_sessions": SESSION_WINDOW,
            "large_results_every": LARGE_EVERY,
            "ids_again_every": REPEATED_EVERY,
            "counter": "estimate",
            "found": result,
        },
    )


if __name__ == "__main__":
    main()
