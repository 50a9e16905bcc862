"""Provider formats: each is one module with the names of `Provider`, and one row of `PROVIDERS`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from aether.errors import InvalidInput, shown
from aether.messages.content import Media
from aether.messages.faults import Faults
from aether.messages.model import Message, ProviderFormat
from aether.messages.providers import anthropic, gemini, openai, plain, responses
from aether.messages.turns import Traits, Turn
from aether.types import JsonObject


class Provider(Protocol):
    """A provider's format of messages."""

    TRAITS: Traits

    def signs(self, raw: JsonObject) -> bool: ...
    def message(self, raw: JsonObject) -> Message: ...
    def new_raw(self, role: str, text: str) -> JsonObject: ...
    def system_prompt(self, text: str) -> Any: ...
    def without_reasoning(self, raw: JsonObject) -> JsonObject: ...
    def write(self, turn: Turn) -> list[JsonObject]: ...
    def write_media(self, media: Media) -> JsonObject | None: ...
    def media_fault(self, block: JsonObject) -> str: ...
    def picture_tokens(self, width: int, height: int, detail: str, /) -> int: ...
    def valid_tool_name(self, name: str) -> str: ...
    def tool_names(self, tools: Sequence[Any]) -> Iterable[tuple[str, Any]]: ...
    def repaired(self, raws: Sequence[JsonObject], faults: Faults) -> list[tuple[int, JsonObject]]: ...


PROVIDERS: dict[ProviderFormat, Provider] = {
    "anthropic": anthropic, "openai": openai, "responses": responses, "gemini": gemini, "plain": plain,
}  # fmt: skip


def provider(format: str) -> Provider:
    """Return the module of a provider's format.

    Raises:
        InvalidInput: the format is unknown.
    """
    for name, module in PROVIDERS.items():
        if name == format:
            return module
    fix = f"Use one of {', '.join(PROVIDERS)}."
    raise InvalidInput(f"{shown(format)} is not a provider format.", fix=fix, where="format")
