"""OLLM-CLI's context orchestrator for one conversation, with its method names.

It holds configuration only, and each method is one call of `api`. The names of the original's services are methods here:
storage (messages, snapshots, history), pipeline (`compress`), validation, lifecycle (`age_checkpoints`), emergency. What
was camelCase there is snake_case here. `AsyncContextOrchestrator` has the same methods as coroutines.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, Literal

from aether.api import chat, context, context_steps, conversations
from aether.api.chat import Chat, Turn
from aether.api.context import ContextStatus
from aether.api.home import Home
from aether.conversation.modes import Reliability
from aether.conversation.shapes import (
    Checkpoint,
    Compression,
    EmergencyResult,
    Overflow,
    Progress,
    Prompt,
    Purpose,
    Suggestion,
    Tier,
    Validation,
)
from aether.conversation.summarise import Summarizer
from aether.frameworks.recall_tool import recall_tool
from aether.store.history import Snapshot
from aether.types import JsonObject

__all__ = ["AsyncContextOrchestrator", "ContextOrchestrator"]


class ContextOrchestrator:
    """One conversation of any length in one window.

        orchestrator = ContextOrchestrator("talk", window=8192, system="Be brief.")
        orchestrator.add_message({"role": "user", "content": "Hello"})
        client.chat(messages=orchestrator.build_prompt().messages)

    Raises:
        InvalidInput: the window is too small, or there is no such mode.
        NotFound: the named home does not exist.
    """

    def __init__(
        self,
        session_id: str,
        *,
        window: int | None = None,
        model: str | None = None,
        mode: str = "assistant",
        system: str = "",
        tools: Sequence[JsonObject] | None = None,
        parts: Mapping[str, str] | None = None,
        backend: str | Summarizer | None = None,
        home: Home = None,
    ) -> None:
        self.session_id = session_id
        self.backend = backend
        """Who writes the summaries of `compress`."""
        self.home = home
        context.open_context(
            session_id, window=window, model=model, mode=mode, system=system, tools=tools, parts=parts, home=home
        )  # fmt: skip

    # Messages and the prompt

    def add_message(self, message: JsonObject, *, progress: Progress | None = None) -> Validation:
        """Append a message, and compress if the context asks for it; return its state."""
        return context.add_message(self.session_id, message, progress=progress, home=self.home)

    def build_prompt(self) -> Prompt:
        """Return what is to be sent now, never more than the limit.

        Raises:
            BudgetExceeded: it cannot be made to fit.
        """
        return context.build_prompt(self.session_id, home=self.home)

    def get_messages(self) -> list[JsonObject]:
        """Return the live messages, with the checkpoints as messages."""
        return conversations.context(self.session_id, home=self.home)

    def get_state(self) -> ContextStatus:
        """Return the context as it is now: settings, tier, tokens, limit, numbers of messages and checkpoints."""
        return context.context_status(self.session_id, home=self.home)

    def get_token_count(self) -> int:
        """Return the tokens of the context."""
        return self.get_state().tokens

    def get_available_tokens(self) -> int:
        """Return the tokens that may still be added."""
        state = self.get_state()
        return max(0, state.limit - state.tokens)

    def get_usage(self) -> float:
        """Return the used share of the limit, which may exceed 1."""
        return self.get_state().validation.ratio

    def clear(self) -> None:
        """Empty the context; the history keeps everything."""
        conversations.clear_context(self.session_id, home=self.home)

    # Settings

    def set_system_prompt(self, text: str) -> ContextStatus:
        """Change the system prompt, which is never compressed."""
        return context.open_context(self.session_id, system=text, home=self.home)

    def get_system_prompt(self) -> str:
        """Return the system prompt as it was set."""
        return self.get_state().settings.system

    def set_mode(self, mode: str) -> ContextStatus:
        """Change the mode; everything in the context stays.

        Raises:
            InvalidInput: there is no such mode.
        """
        return context.set_mode(self.session_id, mode, home=self.home)

    def get_mode(self) -> str:
        """Return the mode."""
        return self.get_state().settings.mode

    def set_model(self, model: str, *, window: int | None = None) -> ContextStatus:
        """Change the model, and the window to that of the model or the given one."""
        return context.set_model(self.session_id, model, window=window, home=self.home)

    def update_ollama_limit(self, window: int) -> ContextStatus:
        """Change the window; if the context does not fit, the next prompt makes it fit.

        Raises:
            InvalidInput: the window is too small.
        """
        return context.open_context(self.session_id, window=window, home=self.home)

    def get_tier(self) -> Tier:
        """Return the class of the window."""
        return self.get_state().tier

    def get_reliability(self) -> Reliability:
        """Return how far the summaries can be trusted after the compressions so far."""
        return self.get_state().reliability

    # Compression, checkpoints and their ageing

    def compress(self, *, progress: Progress | None = None) -> Compression:
        """Compress older messages into a checkpoint now, however full; older checkpoints age and are merged."""
        return context_steps.compress_context(
            self.session_id, backend=self.backend, progress=progress, home=self.home
        )

    def age_checkpoints(self) -> Compression:
        """Do the same as `compress`, of which ageing and merging are a part."""
        return self.compress()

    def get_checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints, oldest first."""
        return context.checkpoints(self.session_id, home=self.home)

    # Validation

    def validate(self) -> Validation:
        """Return whether the context can be sent as it is; nothing is changed."""
        return context.validate_context(self.session_id, home=self.home)

    def suggest_actions(self) -> tuple[Suggestion, ...]:
        """Return what would make the context smaller, the first to be tried first."""
        return self.validate().suggestions

    def validate_and_build_prompt(self) -> Prompt:
        """Do the same as `build_prompt`, which validates what it returns."""
        return self.build_prompt()

    # Emergencies

    def handle_error(self, error: BaseException | str) -> Overflow:
        """Make the context smaller if a provider's error says that the prompt was too long; return what to do."""
        return context.handle_overflow(self.session_id, error, home=self.home)

    def handle_emergency(self, *, most: int | None = None) -> tuple[EmergencyResult, ...]:
        """Make the context smaller by stronger and stronger actions, until it has at most `most` tokens."""
        return context_steps.emergency(self.session_id, most=most, home=self.home)

    def check_stream(self, streamed: str) -> bool:
        """Return whether an answer that is still streaming no longer fits; nothing is compressed meanwhile."""
        return context.stream_overflow(self.session_id, streamed, home=self.home)

    # Snapshots and history

    def create_snapshot(self, purpose: Purpose = "recovery") -> Snapshot:
        """Save the context as it is; the newest five are kept."""
        return context.take_snapshot(self.session_id, purpose=purpose, home=self.home)

    def list_snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first."""
        return context.snapshots(self.session_id, home=self.home)

    def restore_snapshot(self, snapshot_id: str | None = None) -> ContextStatus:
        """Make the context what it was at a snapshot, byte for byte.

        Raises:
            NotFound: there is no such snapshot.
        """
        return context.restore_context(self.session_id, snapshot_id, home=self.home)

    def get_history(self) -> list[JsonObject]:
        """Return every message that was ever added."""
        return conversations.full_history(self.session_id, home=self.home)

    def export_history(self, format: Literal["markdown", "json"] = "markdown") -> str:
        """Return the whole history as Markdown or JSON."""
        return context.export_history(self.session_id, format=format, home=self.home)

    def recall_history(self, query: str) -> str:
        """Return the removed messages that match `query` best, whole."""
        return recall_tool("openai", self.session_id, home=self.home).run({"query": query})

    # A chat

    def open_chat(self, *, backend: str | None = None, model: str | None = None) -> Chat:
        """Open the conversation as a chat over a backend.

        Raises:
            InvalidInput, BackendUnavailable, UnsafePath: as `aether.api.chat.open_chat`.
        """
        return chat.open_chat(self.session_id, backend=backend, model=model, home=self.home)

    def say(self, opened: Chat, text: str, *, on_text: Callable[[str], None] | None = None) -> Turn:
        """Say something in the chat, and return the turn that answers it.

        Raises:
            BackendUnavailable, BackendFailed, BudgetExceeded: as `aether.api.chat.say`.
        """
        return chat.say(opened, text, on_text=on_text or (lambda _: None))


def _in_thread(method: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    @wraps(method)
    async def twin(self: AsyncContextOrchestrator, *given: Any, **more: Any) -> Any:
        import asyncio

        return await asyncio.to_thread(method, await self._opened(), *given, **more)

    return twin


class AsyncContextOrchestrator:
    """The same methods as coroutines, each in a thread; the conversation is opened by the first one.

    A cancelled call that has started ends by itself: what it records is whole, and the next call sees it.
    """

    def __init__(self, session_id: str, *, home: Home = None, **options: Any) -> None:
        self.session_id = session_id
        self._options = {**options, "home": home}
        self._orchestrator: ContextOrchestrator | None = None

    async def _opened(self) -> ContextOrchestrator:
        import asyncio

        if self._orchestrator is None:
            self._orchestrator = await asyncio.to_thread(
                ContextOrchestrator, self.session_id, **self._options
            )
        return self._orchestrator


for _name, _method in list(vars(ContextOrchestrator).items()):
    if not _name.startswith("_"):
        setattr(AsyncContextOrchestrator, _name, _in_thread(_method))
