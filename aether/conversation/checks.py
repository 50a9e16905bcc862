"""The guard: builds what is sent from typed parts only, and says whether it fits and what would make it fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from aether.architects.model_server import NOT_ABOUT_LENGTH, says_too_long
from aether.conversation.checkpoints import View
from aether.conversation.shapes import (
    CheckpointPart,
    ContextSettings,
    Held,
    Limits,
    NewPart,
    Part,
    PartTokens,
    Prompt,
    ProviderError,
    RecentPart,
    Suggestion,
    SystemPart,
    Tier,
    Validation,
)
from aether.errors import BudgetExceeded, InvalidInput, shown
from aether.messages.convert import bare, without_tools
from aether.messages.model import Message, ProviderFormat
from aether.text.regex import lazy
from aether.tokens.count import system_tokens, tools_tokens
from aether.types import Counter, Finding, JsonObject

# Keys of snapshots and of the history: a dict with one of them is no message.
STORED_KEYS = frozenset(
    "snapshot snapshotId snapshot_id conversationState sessionHistory checkpointRecords restore".split()
)
_MENTIONED = ("[SNAPSHOT]", "snapshot_", "[HISTORY]", "session_history_")
# Formats with the system prompt beside the messages.
SYSTEM_BESIDE = ("anthropic", "gemini", "responses")
BASE = "base"


def system_parts(settings: ContextSettings, *, mode_text: str, goals: str) -> list[SystemPart]:
    """Return the parts of the system prompt, in an order that never changes: base, mode, goals, then the caller's own."""
    own = [SystemPart(name, text) for name, text in settings.parts]
    found = [
        SystemPart(BASE, settings.system),
        SystemPart("mode", mode_text),
        SystemPart("goals", goals),
        *own,
    ]
    return [part for part in found if part.text.strip()]


def system_text(parts: Sequence[SystemPart]) -> str:
    """Return the system prompt: the texts of its parts, word for word, with an empty line between them."""
    return "\n\n".join(part.text for part in parts)


def beside_tokens(parts: Sequence[SystemPart], tools: Sequence[JsonObject], count: Counter) -> int:
    """Return the tokens of what is sent beside the messages: system prompt and schemas of tools."""
    return system_tokens(system_text(parts), count) + tools_tokens(list(tools), count)


def require_message(raw: object, *, where: str) -> None:
    """Require that `raw` has the form of a message, and not that of a snapshot or of a history.

    Raises:
        InvalidInput: it has not.
    """
    if not isinstance(raw, dict):
        raise InvalidInput(
            f"{shown(raw)} is not a message.", fix="Give an object with role and content.", where=where
        )
    if stored := sorted(STORED_KEYS & raw.keys()):
        what = f"it has {stored[0]!r}: it is a snapshot or a history, and never sent to a model."
        raise InvalidInput(what, fix="Give a message; restore a snapshot with restore_context.", where=where)


def parts_of(found: View, system: Sequence[SystemPart], *, tools: bool = True) -> list[Part]:
    """Return everything that is sent, as typed parts in order; for a model without tools with calls and results as text."""
    newest = max((at for at in range(len(found.live)) if not found.live[at].checkpoint), default=-1)
    parts: list[Part] = [*system]
    for at, held in enumerate(found.live):
        if not tools:
            message = without_tools(held.message)
            if message is None:
                continue
            held = held._replace(message=message)  # noqa: PLW2901 - what is sent of it
        parts.append(
            CheckpointPart(held) if held.checkpoint else NewPart(held) if at == newest else RecentPart(held)
        )
    return parts


def build(
    parts: Sequence[Part],
    *,
    tools: Sequence[JsonObject],
    provider: ProviderFormat,
    beside: int,
    limit: int,
    count: Counter,
) -> Prompt:
    """Return the prompt made of `parts`: the only way in which anything reaches a model.

    `beside` is what `beside_tokens` says of its system parts and of the tools.

    Raises:
        InvalidInput: one of them is no part, or holds a snapshot or history: an error of the program.
    """
    system: list[SystemPart] = []
    messages: list[JsonObject] = []
    tokens: dict[str, int] = {}
    for nth, part in enumerate(parts):
        if type(part) not in get_args(Part):
            raise InvalidInput(
                f"{type(part).__name__} is no part of a prompt.",
                fix="Send messages and checkpoints only; snapshots and the history stay on disk.",
                where=f"parts[{nth}]",
            )
        if isinstance(part, SystemPart):
            system.append(part)
            tokens[f"system:{part.name}"] = tokens.get(f"system:{part.name}", 0) + count(part.text)
            continue
        raw = part.held.message.raw
        require_message(raw, where=f"parts[{nth}]")
        messages.append(bare(raw))
        name = {CheckpointPart: "checkpoints", RecentPart: "recent", NewPart: "new"}[type(part)]
        tokens[name] = tokens.get(name, 0) + part.held.tokens
    text = system_text(system)
    if tools:
        tokens["tools"] = tools_tokens(list(tools), count)
    total = beside + sum(part.held.tokens for part in parts if not isinstance(part, SystemPart))
    if text and provider not in SYSTEM_BESIDE:
        messages.insert(0, {"role": "system", "content": text})
    listed = tuple(PartTokens(name, size) for name, size in tokens.items())
    return Prompt(messages, total, limit, listed, text, tuple(tools))


def fill_level(
    ratio: float, limits: Limits
) -> Literal["none", "inform", "compress", "emergency", "rollover"]:
    """Return what a context that is so full asks for.

    >>> [fill_level(share, Limits()) for share in (0.69, 0.7, 0.8, 0.95, 1.0)]
    ['none', 'inform', 'compress', 'emergency', 'rollover']
    """
    if ratio >= 1:
        return "rollover"
    if ratio >= limits.emergency:
        return "emergency"
    if ratio >= limits.compress:
        return "compress"
    return "inform" if ratio >= limits.inform else "none"


def validate(found: View, *, beside: int, limit: int, tier: Tier, limits: Limits, system: int) -> Validation:
    """Return whether the context can be sent, and what would make it smaller; nothing is counted again."""
    tokens = beside + sum(held.tokens for held in found.live)
    overage = max(0, tokens - limit)
    ratio = tokens / limit
    return Validation(
        overage == 0, tokens, limit, overage, tuple(_suggestions(found, limit=limit, overage=overage)),
        tuple(_findings(found, tier=tier, tokens=tokens, limit=limit, limits=limits, system=system)),
        fill_level(ratio, limits),
    )  # fmt: skip


def _suggestions(found: View, *, limit: int, overage: int) -> list[Suggestion]:
    """Return the suggestions that OLLM-CLI makes, by priority, each with its estimate."""
    made = []
    assistant = [at for nth, group in enumerate(found.groups) if nth not in found.users for at in group]
    users = [group[0] for nth, group in enumerate(found.groups) if nth in found.users]
    if len(assistant) > 5:
        saved = int(0.7 * found.tokens(assistant[:-5]))
        made.append(Suggestion("compress", 1, saved, "older messages can become a checkpoint"))
    if len(found.checkpoints) > 1:
        saved = max(int(0.3 * overage), found.tokens(found.checkpoints) // 2)
        made.append(
            Suggestion("merge_checkpoints", 2, saved, f"{len(found.checkpoints)} checkpoints can be one")
        )
    if len(users) > 10:
        saved = found.tokens(users[:-10])
        made.append(
            Suggestion("remove_messages", 3, saved, "older messages of the user can become a checkpoint")
        )
    if overage > 0.5 * limit:
        saved = sum(held.tokens for held in found.live)
        made.append(
            Suggestion("emergency_rollover", 4, saved, "everything but the newest can become one checkpoint")
        )
    return made


def _findings(
    found: View, *, tier: Tier, tokens: int, limit: int, limits: Limits, system: int
) -> list[Finding]:
    made = []
    share = f"{100 * tokens / limit:.1f} % ({tokens}/{limit} tokens)"
    if tokens > limit:
        fix = "Compress it; build_prompt does so by itself."
        what = f"Prompt exceeds the limit by {tokens - limit} tokens."
        made.append(Finding("error", "over-limit", "context", what, fix))
    elif tokens >= limits.inform * limit:
        made.append(Finding("info", "filling", "context", f"Context at {share}.", "Nothing to do."))
    if system > tier.prompt_budget:
        what = (
            f"System prompt ({system} tokens) exceeds the budget of its tier ({tier.prompt_budget} tokens)."
        )
        fix = "Shorten it, or use a larger window; it is never compressed."
        made.append(Finding("warning", "system-over-budget", "system", what, fix))
    for held in found.live:
        if held.mentions:
            what = "It mentions a snapshot or a history; it is sent as the words of its author."
            made.append(Finding("info", "mentions-stored", f"n={held.number}", what, "Nothing to do."))
    return made


def mentions_stored(message: Message) -> bool:
    """Return whether a text names a snapshot or a history, as the words of its author."""
    return any(word in message.text for word in _MENTIONED)


# What errors of providers say, by the words in the names of their classes, and in their texts. Blanks, "-" and "_" are left out.
_CLASSES: Mapping[str, tuple[str, ...]] = {
    "connection": ("connect", "timeout", "network", "unavailable", "refused", "reset"),
    "other": ("ratelimit", "authentication", "permission", "quota"),
    "overflow": ("contextwindow", "contextlength", "contextoverflow", "requesttoolarge"),
}
_TEXTS: Mapping[str, tuple[str, ...]] = {
    "connection": (
        "econnrefused", "econnreset", "etimedout", "connection", "network", "timedout", "timeout", "unreachable",
        "nameresolution", "getaddrinfo", "502", "503", "504",
    ),
    "other": ("ratelimit", "quota", "apikey", "unauthorized", "unauthorised", "expired", "invalidtoken"),
}  # fmt: skip
_SEPARATORS = dict.fromkeys(map(ord, " -_"))
_LIMIT = lazy(
    r"(?:maximum context length (?:is|of)|context (?:size|window|length)(?: is| of|:)?|n_ctx\W{1,4}|>)\s*\(?(\d[\d,]{2,9})(?: tokens)?(?: maximum)?",
    re.IGNORECASE,
)
_REQUESTED = lazy(
    r"(?:too long|requested|resulted in|n_prompt_tokens\W{1,4}|request \()\D{0,12}(\d[\d,]{2,9})",
    re.IGNORECASE,
)


def classified(error: BaseException | str) -> ProviderError:
    """Return what the error of a provider says, by its class and code, then by its text.

    >>> classified("prompt is too long: 210000 tokens > 200000 maximum")
    ProviderError(kind='overflow', window=200000, tokens=210000)
    >>> classified(ConnectionRefusedError()).kind, classified("rate limit of 4000 tokens reached").kind
    ('connection', 'unknown')
    """
    name = "" if isinstance(error, str) else type(error).__name__
    text = f"{getattr(error, 'code', '') or ''} {error}"
    if isinstance(error, ConnectionError | TimeoutError) or _has(name, _CLASSES["connection"]):
        return ProviderError("connection")
    status = getattr(error, "status_code", 0)
    if _has(name, _CLASSES["other"]) or _has(text, _TEXTS["other"]) or status in NOT_ABOUT_LENGTH:
        return ProviderError("unknown")
    if status == 413 or _has(name, _CLASSES["overflow"]) or says_too_long(text):
        limit, asked = _LIMIT.search(text), _REQUESTED.search(text)
        return ProviderError("overflow", _number(limit), _number(asked))
    return ProviderError("connection" if _has(text, _TEXTS["connection"]) else "unknown")


def _has(text: str, words: Iterable[str]) -> bool:
    plain = text.lower().translate(_SEPARATORS)
    return any(word in plain for word in words)


def _number(found: re.Match[str] | None) -> int:
    return int(found[1].replace(",", "")) if found else 0


def require_room(
    found: View,
    *,
    parts: Sequence[SystemPart],
    tools: Sequence[JsonObject],
    beside: int,
    limit: int,
    count: Counter,
) -> None:
    """Require that what no step may change, with the tokens `beside` the messages, leaves room for a message.

    Raises:
        BudgetExceeded: it does not; the error names the largest part and what to do.
    """
    taken = beside + found.tokens(found.fixed)
    if taken < limit:
        return
    sizes: list[tuple[int, str, str]] = [
        (count(part.text), f"the part {part.name!r} of the system prompt", "Shorten it") for part in parts
    ]
    if tools:
        sizes.append((tools_tokens(list(tools), count), "the schemas of the tools", "Send fewer tools"))
    sizes += [
        (found.live[at].tokens, f"the protected message n={found.live[at].number}", "Remove its protection")
        for at in found.fixed
    ]
    sizes.sort(key=lambda one: (-one[0], one[1]))
    named = ", ".join(f"{what} has {size} tokens" for size, what, _ in sizes[:3])
    raise BudgetExceeded(
        f"the parts that no step may change have {taken} tokens, and the limit is {limit}: {named}.",
        fix=f"{sizes[0][2]}, or use a model with a larger window.",
        where="context",
    )


def exceeded(
    found: View, tokens: int, limit: int, *, parts: Sequence[SystemPart], count: Counter
) -> BudgetExceeded:
    """Return the error for a context that no step makes small enough; it names the largest part."""
    held: Held = max(found.live, key=lambda one: one.tokens)
    size, named = max(
        [
            (held.tokens, f"the largest message, n={held.number}"),
            *((count(part.text), f"the part {part.name!r} of the system prompt") for part in parts),
        ]
    )
    return BudgetExceeded(
        f"the context has {tokens} tokens after every step, and the limit is {limit}; {named}, has {size}.",
        fix="Split or shorten it, or use a model with a larger window.",
        where="context",
    )
