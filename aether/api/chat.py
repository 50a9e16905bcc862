"""A chat: what is said goes into a context, the prompt that fits goes to a backend, and its reply into the context.

Nothing is compressed while a reply streams. A message is stored before the model is asked, and a reply that was ended, or
whose connection broke, as far as it came. A prompt that the server refuses as too long makes the context smaller, and is
asked again; any other failure is raised, and the message stays: `answer` asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from aether.api import context, conversations, goals
from aether.api.context import ContextStatus
from aether.api.conversations import record_directory
from aether.api.home import Home
from aether.api.tokens import counting, served_model
from aether.architects import ChatBackend, ChatReply, Settings, chat_backend
from aether.conversation.goals import Applied
from aether.conversation.shapes import Progress, Prompt
from aether.errors import (
    AetherError,
    BackendFailed,
    BackendUnavailable,
    BudgetExceeded,
    ContextOverflow,
    InvalidInput,
)
from aether.messages import convert
from aether.store import config
from aether.store.conversations import load
from aether.store.keys import MIN_CONTEXT_WINDOW
from aether.tokens.count import tools_tokens
from aether.tokens.models import UNKNOWN_WINDOW
from aether.types import JsonObject

ECHO = "echo"
# The longest reply to ask for; a small window has less room.
ANSWER_TOKENS, LEAST_ANSWER_TOKENS = 4_096, 64
# The longest silence of a server, while it loads a model or answers.
SILENCE_SECONDS = 300.0
# A model that calls tools so often for one message has lost its way.
MOST_ROUNDS = 8
OVERFLOW_TRIES = 3
# A server that counts so much less than was sent has cut the prompt: no tokenizer differs as much from the estimate.
CUT_SHARE, LEAST_CUT_TOKENS = 0.6, 200
# In a window of which the schemas of the tools would take more than this, a chat goes on without them.
MOST_TOOLS_SHARE = 0.25
_NEED_A_MODEL = ("ollama", "openai")


class Tool(NamedTuple):
    """A tool that the model may call."""

    definition: JsonObject
    """In the form of chat completions."""
    run: Callable[[str], str]
    """From the arguments as JSON to the text of the result."""


class Chat(NamedTuple):
    """An open chat: its conversation, and how its backend is reached."""

    conversation: str
    backend: ChatBackend
    settings: Settings
    tools: tuple[Tool, ...] = ()
    home: Home = None


class Compressed(NamedTuple):
    """A compression that happened during a turn."""

    tokens_before: int
    tokens_after: int
    checkpoint: str
    """Id of the newest checkpoint that it wrote; empty if it wrote none."""
    level: int
    message_range: tuple[int, int]
    works: int
    """Checkpoints that it wrote: new, aged and merged ones."""


class Turn(NamedTuple):
    """One message, and all that answered it."""

    text: str
    interrupted: bool
    replies: tuple[ChatReply, ...]
    compressed: tuple[Compressed, ...]
    overflows: int
    """How often the server refused the prompt as too long."""
    read_tokens: int
    """What the server read of a prompt that it cut without a word; 0 if it read all of it."""
    applied: Applied
    """The markers of goals in the reply."""
    status: ContextStatus


def open_chat(
    conversation_id: str,
    *,
    backend: str | None = None,
    model: str | None = None,
    window: int | None = None,
    mode: str = "assistant",
    system: str = "",
    tools: Sequence[Tool] = (),
    home: Home = None,
) -> Chat:
    """Open a conversation as a chat, or resume it.

    `backend` is `echo`, `ollama`, `openai`, `anthropic` or `command:'…'`; by default that of the configuration, else
    `echo`. A home is data: the backend, model and server that its `config.toml` names count only if its user trusts it,
    and the model that its conversation names is never asked. The window is the given one, else that of the resumed
    conversation, `context.window`, that of the server, or of the model; never more than the server's. A window of which
    `tools` would take a quarter gets none.

    Raises:
        InvalidInput: there is no such backend or mode, or the window is too small.
        BackendUnavailable: the backend needs a model, and none is named.
        UnsafePath: the configuration of the home names the backend, and is not trusted.
        NotFound: the named home does not exist.
    """
    record = record_directory(home)
    settings = config.or_default(record)
    if backend is None:
        config.require_trusted(record, ["chat.backend"])
    chosen = backend or settings.chat_backend
    module, overrides = chat_backend(chosen)
    if module.NAME != ECHO and (backend is None or model is None):
        config.require_trusted(record, ["chat.model", "chat.base_url"])
    # The server and the model of one provider are not those of another: its key would go to the wrong one.
    same = settings.chat_backend == chosen
    reach = Settings(
        model=model or (settings.chat_model if same else ""), base_url=settings.chat_base_url if same else "",
        timeout_seconds=SILENCE_SECONDS, max_output_tokens=ANSWER_TOKENS, window_tokens=window or 0,
    )._replace(**cast("Any", overrides))  # fmt: skip
    stored_settings = load(record, conversation_id).settings
    if module.NAME in _NEED_A_MODEL:
        _require_model(reach, module.NAME, str(stored_settings.get("model", "")))
    served = module.served(reach)
    size = (
        window
        or stored_settings.get("window")
        or settings.context_window
        or served.window
        or min(served.most, UNKNOWN_WINDOW)
    )
    size = size or served_model(record, reach.model).window
    if not size:
        profile = counting(reach.model, place=record).profile
        size = profile.window if profile else UNKNOWN_WINDOW
    if served.most and module.NAME != ECHO:
        size = min(size, served.most)
    schemas = [tool.definition for tool in tools]
    if tools_tokens(schemas, counting(place=record).count) > MOST_TOOLS_SHARE * size:
        tools, schemas = (), []
    context.open_context(
        conversation_id, window=size, model=reach.model or None, mode=mode, system=system, provider=module.NAME,
        tools=schemas, home=home,
    )  # fmt: skip
    return Chat(conversation_id, module, reach, tuple(tools), home)


def _require_model(reach: Settings, name: str, last: str) -> None:
    from aether.architects.model_server import setting_or_environment

    if setting_or_environment(reach.model, "AETHER_MODEL"):
        return
    fix = f'The last one of this conversation was "{last}": pass --model {last}.' if last else "Pass --model, or set AETHER_MODEL."  # fmt: skip
    raise BackendUnavailable("no model is chosen.", fix=fix, where=name)


def with_model(chat: Chat, model: str, *, window: int | None = None) -> Chat:
    """Return the chat with another model, from the next message on; everything in its context stays.

    Raises:
        InvalidInput: the window is too small.
    """
    changed = chat._replace(settings=chat.settings._replace(model=model))
    served = chat.backend.served(changed.settings)
    size = window or served.window or min(served.most, UNKNOWN_WINDOW) or None
    if size and served.most and chat.backend.NAME != ECHO:
        size = min(size, served.most)
    context.set_model(chat.conversation, model, window=size, home=chat.home)
    return changed


def say(chat: Chat, text: str, *, on_text: Callable[[str], None], progress: Progress | None = None) -> Turn:
    """Store a message of the user, and return the turn that answers it; pieces of text go to `on_text`.

    `progress` gets the stages of each compression; none happens while text arrives.

    Raises:
        BackendUnavailable, BackendFailed: the backend failed; the message is stored, and `answer` asks again.
        BudgetExceeded: the context cannot be made to fit.
    """
    before = _steps(chat)
    context.add_message(
        chat.conversation, {"role": "user", "content": text}, progress=progress, home=chat.home
    )
    return answer(chat, on_text=on_text, progress=progress, since=before)


def answer(
    chat: Chat, *, on_text: Callable[[str], None], progress: Progress | None = None, since: int | None = None
) -> Turn:
    """Ask for the answer to what was said last, with the calls of tools that it takes.

    Raises:
        BackendUnavailable, BackendFailed, BudgetExceeded: as `say`.
    """
    since = _steps(chat) if since is None else since
    replies: list[ChatReply] = []
    overflows, read_tokens, interrupted = 0, 0, False
    heard: list[str] = []

    def listen(piece: str) -> None:
        heard.append(piece)
        on_text(piece)

    try:
        for _ in range(MOST_ROUNDS):
            heard.clear()
            reply, refused, sent_tokens = _asked(chat, listen, heard)
            overflows += refused
            read_tokens = _fitted_to(chat, reply.input_tokens, sent_tokens) or read_tokens
            replies.append(reply)
            if not _stored(chat, reply, progress):
                break
    except KeyboardInterrupt:
        interrupted = True
        _keep_part(chat, heard)
    except BackendFailed:
        _keep_part(chat, heard)
        raise
    text = "".join(reply.text for reply in replies)
    if interrupted and not (replies and _same(replies[-1].text, heard)):
        text += "".join(heard)
    return Turn(
        text, interrupted, tuple(replies), compressions_since(chat, since), overflows, read_tokens, _applied(chat, text),
        context.context_status(chat.conversation, home=chat.home),
    )  # fmt: skip


def answer_again(chat: Chat, *, on_text: Callable[[str], None], progress: Progress | None = None) -> Turn:
    """Take the last answer, if there is one, out of the context, and ask for another; the history keeps both.

    Raises:
        InvalidInput: nothing was said yet.
        BackendUnavailable, BackendFailed, BudgetExceeded: as `say`.
    """
    live = conversations.context(chat.conversation, home=chat.home)
    if not any(message.get("role") == "user" for message in live):
        raise InvalidInput("nothing was said yet.", fix="Say something first.", where=chat.conversation)
    last = live[-1]
    if (
        last.get("role") == "assistant"
        and not last.get("tool_calls")
        and "checkpoint" not in last.get("meta", {})
    ):
        conversations.pop_message(chat.conversation, home=chat.home)
    return answer(chat, on_text=on_text, progress=progress)


def _fitted_to(chat: Chat, read: int, sent: int) -> int:
    """Return the tokens that the server says it has `read` if it cut the prompt that was `sent`, else 0.

    From now on the window of the context is what the server read.
    """
    if not 0 < read < CUT_SHARE * sent or sent - read < LEAST_CUT_TOKENS:
        return 0
    context.open_context(chat.conversation, window=max(MIN_CONTEXT_WINDOW, read), home=chat.home)
    return read


def _asked(chat: Chat, listen: Callable[[str], None], heard: list[str]) -> tuple[ChatReply, int, int]:
    """Return the reply to the prompt as it is now, how often the server refused one as too long, and its tokens."""
    refused = 0
    while True:
        prompt = context.build_prompt(chat.conversation, home=chat.home)
        tools = list(chat.tools) if prompt.tools else []
        window = context.context_status(chat.conversation, home=chat.home).settings.window
        room = max(LEAST_ANSWER_TOKENS, min(chat.settings.max_output_tokens, window - prompt.tokens))
        try:
            reply = chat.backend.chat(
                _messages(prompt), system=prompt.system, on_text=listen, tools=[tool.definition for tool in tools],
                settings=chat.settings._replace(window_tokens=window, max_output_tokens=room),
            )  # fmt: skip
        except ContextOverflow as reason:
            refused += 1
            if heard or refused >= OVERFLOW_TRIES:
                raise
            _make_room(chat, reason, window)
        except BackendFailed as reason:
            if not tools or heard or "does not support tools" not in reason.what:
                raise
            # From now on: its calls and their results so far are sent as text.
            context.open_context(chat.conversation, tool_support=False, home=chat.home)
        else:
            return reply, refused, prompt.tokens


def _messages(prompt: Prompt) -> list[JsonObject]:
    """Return the messages of a prompt without its system prompt, in the format of chat completions."""
    raws = prompt.messages
    if raws and raws[0].get("role") == "system" and raws[0].get("content") == prompt.system:
        raws = raws[1:]
    parsed = convert.read(raws)
    if {message.format for message in parsed} <= {"plain", "openai"}:
        return raws
    return [convert.bare(message.raw) for message in convert.convert(parsed, "openai").messages]


def _make_room(chat: Chat, refused: ContextOverflow, window: int) -> None:
    """Make the context smaller than a prompt that was refused: by the window that the server has, if it says one.

    Raises:
        BudgetExceeded: nothing more can be taken out.
    """
    served = chat.backend.served(chat.settings._replace(window_tokens=window))
    smaller = served.most or served.window
    if 0 < smaller < window:
        context.open_context(chat.conversation, window=smaller, home=chat.home)
    elif not context.handle_overflow(chat.conversation, refused, home=chat.home).retry:
        raise BudgetExceeded(
            "the server refuses the prompt as too long, and nothing more can be taken out of the context.",
            fix="Use a model with a larger window, or name the real one with --window.",
            where=f"conversation {chat.conversation}",
        ) from refused


def _stored(chat: Chat, reply: ChatReply, progress: Progress | None) -> bool:
    """Store a reply, and the results of the calls in it; return whether the model goes on."""
    record = record_directory(chat.home)
    # An event; what follows handles it. Markers in the text are applied once, with those of the whole turn.
    context.stream_overflow(chat.conversation, reply.text, home=chat.home)
    if not reply.calls:
        if reply.text.strip():
            context.store_messages(chat.conversation, [{"role": "assistant", "content": reply.text}], record, progress)  # fmt: skip
        return False
    runs = {tool.definition["function"]["name"]: tool.run for tool in chat.tools}
    most = context.context_status(chat.conversation, home=chat.home).limit
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    results: list[JsonObject] = [
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": _result(runs.get(call.name), call.arguments, most=most)}
        for call in reply.calls
    ]  # fmt: skip
    request: JsonObject = {"role": "assistant", "content": reply.text, "tool_calls": calls}
    # A call is never alone in the context: it and its results come together.
    context.store_messages(chat.conversation, [request, *results], record, progress)
    return True


def _result(run: Callable[[str], str] | None, arguments: str, *, most: int) -> str:
    """Return what a tool answers, in at most so many characters: as many as tokens are a quarter of a prompt."""
    if run is None:
        return "Error: there is no such tool."
    try:
        text = run(arguments) or "(nothing)"
    except AetherError as reason:
        return f"Error: {reason}"
    return (
        text
        if len(text) <= most
        else f"{text[:most]}\n(cut: {most} of {len(text)} characters; go on with start={most})"
    )


def _keep_part(chat: Chat, heard: Sequence[str]) -> None:
    """Store what arrived of a reply that ended early."""
    text = "".join(heard)
    last = conversations.context(chat.conversation, home=chat.home)[-1:]
    # It may have ended behind the storing of the reply, while the context was compressed.
    is_stored = last and last[0].get("role") == "assistant" and _same(str(last[0].get("content")), heard)
    if text.strip() and not is_stored:
        raw = {"role": "assistant", "content": text, "meta": {"interrupted": True}}
        conversations.add_messages(chat.conversation, [raw], home=chat.home)


def _same(text: str, heard: Sequence[str]) -> bool:
    return text.strip() == "".join(heard).strip()


def _applied(chat: Chat, text: str) -> Applied:
    try:
        return goals.apply_markers(text, home=chat.home)
    except AetherError:  # without a home there are no goals
        return Applied("")


def _steps(chat: Chat) -> int:
    return len(load(record_directory(chat.home), chat.conversation).compactions)


def compressions_since(chat: Chat, steps: int) -> tuple[Compressed, ...]:
    """Return the compressions of the conversation after so many steps."""
    compressions = []
    for compaction in load(record_directory(chat.home), chat.conversation).compactions[steps:]:
        receipt = compaction.receipt
        if receipt.get("kind") != "context":
            continue
        works = receipt.get("works") or []
        last: JsonObject = next((work for work in works if work["kind"] in ("create", "roll")), works[-1] if works else {})  # fmt: skip
        first, end = last.get("range", (0, 0))
        checkpoint = (str(last.get("id", "")), last.get("level", 0), (first, end), len(works))
        compressions.append(Compressed(receipt["tokens_before"], receipt["tokens_after"], *checkpoint))
    return tuple(compressions)
