"""Token counts of messages, tool schemas, system prompts and whole conversations.

A message costs the tokens that a model reads: text, names, arguments, answers with the id of their call, reasoning,
the JSON of unknown blocks, media by its size (`images`), sealed reasoning by its length, and the overhead of the
provider. Keys that are never sent, or never read, cost nothing. The functions that count one text are in `counters`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from operator import eq
from typing import Any, NamedTuple

from aether.errors import InvalidInput, shown
from aether.messages import convert, providers
from aether.messages.model import Message, ProviderFormat
from aether.tokens.images import media_tokens, medium
from aether.types import Counter, JsonObject

# The overhead of a message. OpenAI: three tokens and the role, which is one (its cookbook, "How to count tokens
# with tiktoken"). No other provider documents it, so the same is assumed for all.
MESSAGE_TOKENS = 4
# A call is addressed: channel, recipient, kind of content (OpenAI's harmony format, less what a message has anyway).
CALL_TOKENS = 8
# Anthropic adds a system prompt of its own where there are tools (pricing page, tool use, Claude 4, auto or none).
ANTHROPIC_TOOL_PROMPT_TOKENS = 346
# Characters of sealed reasoning (signatures, encrypted content) per token of the provider. Measured
# over the usage of 449 turns of Claude Code with three models that show no thinking: 3.2, 3.5 and 3.8.
SEALED_CHARS_PER_TOKEN = 3.5

# Keys that no model reads.
_SILENT = frozenset(
    "type role id status meta cache_control index is_error annotations logprobs detail thought".split()
)
_SEALED = frozenset(("signature", "encrypted_content", "thoughtSignature", "thought_signature"))
# Keys whose value is data of the tools' own: a model reads it as JSON.
_DATA = frozenset(("input", "arguments", "args", "response"))
_CALLS = frozenset(("tool_use", "function_call", "custom_tool_call", "function"))
_KNOWN = _CALLS | frozenset(
    """text input_text output_text summary_text reasoning_text refusal message reasoning
    tool_result function_call_output custom_tool_call_output document""".split()
)


def message_tokens(message: Message, count: Counter) -> int:
    """Return the tokens of `message`, with the overhead of its provider.

    >>> raw = {"role": "user", "content": "Ship it."}
    >>> message_tokens(Message("user", (), raw, "openai"), lambda text: len(text.split()))
    6
    """
    raw, provider = message.raw, message.format
    keys = providers.provider(provider).TRAITS.sent
    if not keys:
        return MESSAGE_TOKENS + _block({key: raw[key] for key in raw if key != "meta"}, count, provider)
    return MESSAGE_TOKENS + _fields({key: raw[key] for key in keys if key in raw}, count, provider)


def tools_tokens(tools: Any, count: Counter) -> int:
    """Return the tokens of the tool schemas of a request: their JSON, and Anthropic's own prompt about tools.

    >>> tools_tokens([], len), tools_tokens([{"name": "now"}], len)
    (0, 16)
    """
    if not tools:
        return 0
    schemas = tools if isinstance(tools, list) else [tools]
    anthropic = any(isinstance(tool, dict) and "input_schema" in tool for tool in schemas)
    return count(_json(tools)) + (ANTHROPIC_TOOL_PROMPT_TOKENS if anthropic else 0)


def system_tokens(system: Any, count: Counter) -> int:
    """Return the tokens of a system prompt that is separate from the messages: text, blocks, or a Gemini content.

    >>> system_tokens("", len), system_tokens("Be brief.", len), system_tokens([{"type": "text", "text": "Be."}], len)
    (0, 13, 7)
    """
    tokens = _value(system, count, "plain")
    return tokens + MESSAGE_TOKENS if tokens else 0


def _value(value: Any, count: Counter, provider: ProviderFormat) -> int:
    if isinstance(value, str):
        return count(value)
    if isinstance(value, dict):
        return _block(value, count, provider)
    if isinstance(value, list | tuple):
        return sum(_value(below, count, provider) for below in value)
    return 0


def _block(block: JsonObject, count: Counter, provider: ProviderFormat) -> int:
    media = medium(block)
    if media:
        return media_tokens(media, provider)
    kind = block.get("type")
    if kind == "redacted_thinking":
        return _sealed(block.get("data"))
    if kind == "thinking":  # a signature counts only in place of absent text
        return _value(block.get("thinking"), count, provider) or _sealed(block.get("signature"))
    kind = kind if isinstance(kind, str) else None
    if kind is not None and kind not in _KNOWN:
        return _data(block, count, provider)
    call = kind in _CALLS or "functionCall" in block
    return _fields(block, count, provider) + (CALL_TOKENS if call else 0)


def _fields(block: JsonObject, count: Counter, provider: ProviderFormat) -> int:
    total = 0
    for key, value in block.items():
        if key in _SILENT:
            continue
        if key in _DATA:
            total += _data(value, count, provider)
        elif key in _SEALED:
            total += _sealed(value)
        else:
            total += _value(value, count, provider)
    return total


def _sealed(value: Any) -> int:
    return math.ceil(len(value) / SEALED_CHARS_PER_TOKEN) if isinstance(value, str) else 0


def _data(value: Any, count: Counter, provider: ProviderFormat) -> int:
    """Return the tokens of `value` as JSON; media and sealed reasoning in it are counted apart, by their size."""
    if not isinstance(value, dict | list):
        return count(value) if isinstance(value, str) else 0
    aside: list[int] = []
    return count(_json(_open(value, aside, provider))) + sum(aside)


def _open(value: Any, aside: list[int], provider: ProviderFormat) -> Any:
    if isinstance(value, list):
        return [_open(below, aside, provider) for below in value]
    if not isinstance(value, dict):
        return value
    media = medium(value)
    if media and media.base64:  # arguments such as {"type": "file"} are not always a file
        aside.append(media_tokens(media, provider))
        return None
    aside.append(_sealed(value.get("encrypted_content")))
    return {key: _open(below, aside, provider) for key, below in value.items() if key != "encrypted_content"}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


class Tally(NamedTuple):
    """The messages of a conversation with the tokens of each.

    It holds copies of the messages whose texts are the caller's own objects: comparing reads no text, and a message
    that was changed in place is noticed. (1, 1.0 and true compare equal, in a message as in Python.)
    """

    raws: list[JsonObject]
    """The copies; shared with `messages`, never to be changed."""
    messages: list[Message]
    tokens: list[int]
    total: int
    provider: ProviderFormat
    count: Counter


def tally(
    raws: Sequence[JsonObject],
    *,
    provider: ProviderFormat | None,
    count: Counter,
    before: Tally | None = None,
    start: int = 0,
) -> Tally:
    """Return the tokens of each of `raws`; messages that `before` holds are not counted again.

    A message is recognised in any place of `before`, so that after a compaction only its new messages are counted; the first
    `start` are known to be those of `before`. A tally by another counter or provider format is ignored. Without a format it is that of
    `before` unless a new message contradicts it, and otherwise the detected one.
    """
    if (
        before
        and start == len(before.raws)
        and before.count == count
        and _is_format(before, raws[start:], provider)
    ):
        return _extended(before, raws[len(before.raws) :])
    same = list(map(eq, raws, before.raws)) if before else []
    new = [index for index in range(len(raws)) if index >= len(same) or not same[index]]
    if provider is None and before and before.provider != "plain":
        detected = convert.detect_format([raws[index] for index in new], after=before.provider)
        provider = detected if detected == before.provider else None
    provider = provider or convert.detect_format(raws)
    if before is None or before.provider != provider or before.count != count:
        before, same, new = Tally([], [], [], 0, provider, count), [], list(range(len(raws)))
    if not new and len(raws) == len(before.raws):
        return before
    lost = [index for index in range(len(before.raws)) if index >= len(same) or not same[index]]
    moved = {_key(before.raws[index]): index for index in lost}
    messages, tokens = before.messages[: len(raws)], before.tokens[: len(raws)]
    for index in new:
        was = moved.get(_key(raws[index])) if moved else None
        message = (
            convert.message(_own(raws[index], f"messages[{index}]"), provider)
            if was is None
            else before.messages[was]
        )
        messages[index : index + 1] = [message]
        tokens[index : index + 1] = [message_tokens(message, count) if was is None else before.tokens[was]]
    return Tally([message.raw for message in messages], messages, tokens, sum(tokens), provider, count)


def _is_format(before: Tally, new: Sequence[JsonObject], provider: ProviderFormat | None) -> bool:
    """Return whether `new` messages are of the same format as those before them."""
    if provider is not None or before.provider == "plain":
        return provider == before.provider
    return convert.detect_format(new, after=before.provider) == before.provider


def _extended(before: Tally, new: Sequence[JsonObject]) -> Tally:
    if not new:
        return before
    number = len(before.raws)
    messages = [
        convert.message(_own(raw, f"messages[{number + nth}]"), before.provider)
        for nth, raw in enumerate(new)
    ]
    tokens = [message_tokens(message, before.count) for message in messages]
    raws = [message.raw for message in messages]
    return before._replace(
        raws=[*before.raws, *raws], messages=[*before.messages, *messages], tokens=[*before.tokens, *tokens],
        total=before.total + sum(tokens),
    )  # fmt: skip


def _own(raw: Any, where: str) -> Any:
    try:
        return _copied(raw, where)
    except RecursionError as reason:
        fix = "Give it with fewer levels, or as text."
        raise InvalidInput("the message is nested too deeply.", fix=fix, where=where) from reason


def _copied(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _copied(below, where) for key, below in value.items()}
    if isinstance(value, list):
        return [_copied(below, where) for below in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise InvalidInput(
        f"{shown(value)} is not JSON.", fix="Give text, numbers, lists and objects.", where=where
    )


def _key(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((key, _key(below)) for key, below in value.items())
    return tuple(map(_key, value)) if isinstance(value, list) else value
