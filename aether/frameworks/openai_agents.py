"""The OpenAI Agents SDK: a session with a durable history, and a filter that sends messages that fit.

    session = AetherSession("user-42")
    run_config = RunConfig(call_model_input_filter=compaction_filter(session))
    await Runner.run(agent, "Hello", session=session, run_config=run_config)

The session keeps every item in `conversations/<id>/history.jsonl`; the filter compacts the input of a call and leaves
the history whole. A call without its output, or an output without its call, as a killed run leaves them, is kept and
never sent. Disk and summariser work in a thread, so that the event loop goes on. The SDK itself is not imported: its
session is a protocol, and the filter gets the objects that it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from aether.api import compact, conversations
from aether.api.compact import DEFAULT_OPTIONS, UNNAMED_MODEL, Options
from aether.api.home import Home
from aether.clock import short_id
from aether.conversation.shapes import Policy
from aether.errors import BudgetExceeded, Conflict, packages_of
from aether.messages.convert import bare
from aether.messages.validate import sendable
from aether.types import JsonObject

Filter = Callable[[Any], Awaitable[Any]]
# Suffix of the conversation that records sent items which differ from those of the session.
AS_SENT = " (as sent)"


class AetherSession:
    """The SDK's `Session`: a conversation of the home, or of `.compact/` without a home.

    Several processes may use one session at once. With `compaction_filter` no `limit` is needed: the items that it cuts
    off are not in the summary. `session_settings` are the SDK's: an object of its class, a dict of the same fields, or
    empty by default.

    Raises:
        TypeError: the settings are neither, or have an unknown field, as the SDK's sessions raise it.
    """

    def __init__(self, session_id: str, *, home: Home = None, session_settings: Any = None) -> None:
        self.session_id = session_id
        self.session_settings = _settings(session_settings)
        self.home = conversations.record_directory(home)

    async def get_items(self, limit: int | None = None) -> list[JsonObject]:
        """Return the context: the newest summary and the items since; with `limit` the newest items of it.

        A negative limit is none, as in the SDK's own sessions.
        """
        if limit is None and self.session_settings is not None:
            limit = _settings(self.session_settings).limit
        items = await asyncio.to_thread(conversations.context, self.session_id, home=self.home)
        if limit is None or limit < 0:
            return items
        # The SDK would send an output whose call was cut off, and the server rejects it.
        return _sendable(items[-limit:] if limit else [])

    async def add_items(self, items: Sequence[Any]) -> None:
        """Append items; all or none of them are stored."""
        await asyncio.to_thread(conversations.add_messages, self.session_id, list(items), home=self.home)

    async def pop_item(self) -> JsonObject | None:
        """Remove the newest item and return it; the history keeps it."""
        return await asyncio.to_thread(conversations.pop_message, self.session_id, home=self.home)

    async def clear_session(self) -> None:
        """Start again without items; the history keeps everything."""
        await asyncio.to_thread(conversations.clear_context, self.session_id, home=self.home)

    async def get_history(self) -> list[JsonObject]:
        """Return every item that was ever added."""
        return await asyncio.to_thread(conversations.full_history, self.session_id, home=self.home)


def compaction_filter(
    session: AetherSession | str, *, model: str | None = None, window: int | None = None,
    policy: str | Policy = "compact", options: Options = DEFAULT_OPTIONS, home: Home = None,
) -> Filter:  # fmt: skip
    """Return the `call_model_input_filter` of a run that keeps each input within the model's window.

    `session` is the run's own, or, without one, an id to record compactions under. `model` is the agent's unless
    given, `window` that model's. Input that differs from the session's items, as with a `session_input_callback`, a
    limit, or a nested hand-off, is compacted beside the session, which stays as it is. If the protected items do not
    fit, the run ends with `BudgetExceeded` and nothing is sent.
    """
    own = session if isinstance(session, str) else session.session_id
    beside = own if isinstance(session, str) else own + AS_SENT
    record = options.record or conversations.record_directory(
        home if isinstance(session, str) else session.home
    )
    seen: list[tuple[list[Any], list[JsonObject]]] = []

    def preflight(
        data: Any, name: str, items: list[JsonObject], unsaved: list[JsonObject] | None = None
    ) -> list[JsonObject]:
        named = getattr(data.agent, "model", None)
        named = named if isinstance(named, str) else getattr(named, "model", None)
        named = named if isinstance(named, str) and named else UNNAMED_MODEL
        done = compact.preflight(
            name, items, model=model or named, window=window, policy=policy,
            system=data.model_data.instructions, tools=_tools(data.agent), wire="responses",
            repair=False, options=options._replace(record=record, unsaved=unsaved),
        )  # fmt: skip
        fitting = [*done.messages, *(unsaved or ())]
        if done.triggered:
            seen[:] = [(list(data.model_data.input), fitting)]
        sent = sendable(fitting, "responses")
        compact.report_findings(name, [*done.findings, *sent.findings], options)
        return list(map(bare, sent.raws))

    def compacted(data: Any) -> list[JsonObject]:
        items = list(data.model_data.input)
        for before, after in seen:  # items that were compacted earlier in the same run
            if items[: len(before)] == before:
                items = [*after, *items[len(before) :]]
        stored = [] if own == beside else conversations.context(own, home=record)
        # The SDK leaves out open calls of a killed run, and stores some items only after the model's answer.
        pairs = ((stored, items), (_sendable(stored), _sendable(items))) if stored else ()
        unsaved = next((given[len(known) :] for known, given in pairs if given[: len(known)] == known), None)
        if unsaved is not None:
            # Another process may have compacted it just now; or the unsaved items are too large to stay.
            with contextlib.suppress(Conflict, BudgetExceeded):
                return preflight(data, own, stored, unsaved)
        with contextlib.suppress(Conflict):
            return preflight(data, beside, conversations.resume(beside, items, home=record))
        # Many runs at once conflict: this one is recorded by itself.
        return preflight(data, f"{beside} {short_id('run')}", items)

    async def call(data: Any) -> Any:
        items = await asyncio.to_thread(compacted, data)
        return dataclasses.replace(data.model_data, input=items)

    return call


def usage_hooks(session: AetherSession | str, *, home: Home = None) -> Any:
    """Return `RunHooks` that correct the counts of this session's models by the usage in their answers.

    Without a home nothing is corrected.

    Raises:
        BackendUnavailable: openai-agents is not installed.
    """
    with packages_of("agents", where="agents"):
        from agents import RunHooks
    own, record = (session, home) if isinstance(session, str) else (session.session_id, session.home)

    def learned(tokens: int) -> None:
        if not compact.answered(own + AS_SENT, tokens, home=record):
            compact.answered(own, tokens, home=record)

    class Usage(RunHooks):
        """Corrects the count after each call of a model; it holds configuration only."""

        async def on_llm_end(self, _context: Any, _agent: Any, response: Any) -> None:
            await asyncio.to_thread(learned, response.usage.input_tokens)

    return Usage()


def _tools(agent: Any) -> list[JsonObject]:
    """Return the schemas of the agent's own tools in the sent form."""
    return [
        {
            "type": "function", "name": tool.name, "description": getattr(tool, "description", ""),
            "parameters": tool.params_json_schema,
        }
        for tool in getattr(agent, "tools", ())
        if hasattr(tool, "params_json_schema")
    ]  # fmt: skip


class _Settings(NamedTuple):
    """The SDK's session settings where the SDK is not installed."""

    limit: int | None = None


def _settings(given: Any) -> Any:
    """Return `given` as the SDK's session settings."""
    kind: Any = _Settings
    # Only a limit is needed without the SDK, and a program that runs agents has imported it.
    with contextlib.suppress(ImportError):
        from agents.memory import SessionSettings as kind  # noqa: N813
    if given is None:
        return kind()
    if not isinstance(given, dict):
        if not hasattr(given, "limit"):
            raise TypeError(f"session settings must be SessionSettings or a dict, not {type(given).__name__}")
        return given
    unknown = sorted(
        str(name) for name in given if name not in ("limit", *getattr(kind, "__dataclass_fields__", ()))
    )
    if unknown:
        raise TypeError(f"Unknown session settings: {', '.join(unknown)}")
    return kind(**given)


def _sendable(items: Sequence[JsonObject]) -> list[JsonObject]:
    """Return what the SDK may send of `items`."""
    return list(map(bare, sendable(items, "responses").raws))
