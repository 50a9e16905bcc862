"""The guard: builds what is sent from typed parts only, and says whether it fits and what would make it fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from aether.architects.model_server import NOT_ABOUT_LENGTH, says_too_long
from aether.conversation.checkpoints import View
from aether.conversation.shapes import (
    CheckpointPart,
    ContextSettings,
    Limits,
    LiveMessage,
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
from aether.errors import BudgetExceeded, InvalidInput, require_one_of, shown
from aether.messages import providers
from aether.messages.convert import META, sent, without_tools
from aether.messages.model import Message, ProviderFormat
from aether.messages.sources.chat import SENDERS
from aether.text.regex import lazy
from aether.tokens.count import system_tokens, tools_tokens
from aether.types import Counter, Finding, JsonObject

# Keys of snapshots and of the history: a dict with one of them is no message.
STORED_KEYS = frozenset(
    "snapshot snapshotId snapshot_id conversationState sessionHistory checkpointRecords restore".split()
)
_MENTIONED = ("[SNAPSHOT]", "snapshot_", "[HISTORY]", "session_history_")
BASE = "base"


def system_parts(settings: ContextSettings, *, mode_text: str, goals: str) -> list[SystemPart]:
    """Return the parts of the system prompt, in an order that never changes: base, mode, goals, then the caller's own."""
    texts = [(BASE, settings.system), ("mode", mode_text), ("goals", goals), *settings.parts]
    return [SystemPart(name, text) for name, text in texts if text.strip()]


def system_text(parts: Sequence[SystemPart]) -> str:
    """Return the system prompt: the texts of its parts, word for word, with an empty line between them."""
    return "\n\n".join(part.text for part in parts)


def beside_tokens(parts: Sequence[SystemPart], tools: Sequence[JsonObject], count: Counter) -> int:
    """Return the tokens of what is sent beside the messages: system prompt and schemas of tools."""
    return system_tokens(system_text(parts), count) + tools_tokens(list(tools), count)


def require_message(raw: object, *, where: str) -> None:
    """Require that `raw` is a message that can be sent: a known role or type, and content that is text or parts.

    Raises:
        InvalidInput: it is something else, such as a snapshot or a history.
    """
    fix = "Give an object with role and content."
    if not isinstance(raw, dict):
        raise InvalidInput(f"{shown(raw)} is not a message.", fix=fix, where=where)
    role, content = raw.get("role"), raw.get("content")
    if "role" in raw:
        require_one_of(role, SENDERS, "a role", where=where)
    if role is None and not isinstance(raw.get("type"), str):
        raise InvalidInput("the message has no role.", fix=fix, where=where)
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(part, str | dict | None) for part in parts):
        what = f"{shown(content)} is not content."
        raise InvalidInput(what, fix="Give text, or a list of texts and objects.", where=where)
    if not raw.keys() - {"role", "type", META}:
        raise InvalidInput("the message has no content.", fix=fix, where=where)
    if stored := sorted(STORED_KEYS & raw.keys()):
        what = f"it has {stored[0]!r}: it is a snapshot or a history, and never sent to a model."
        raise InvalidInput(what, fix="Give a message; restore a snapshot with restore_context.", where=where)


def parts_of(view: View, system: Sequence[SystemPart], *, tools: bool = True) -> list[Part]:
    """Return everything that is sent, as typed parts in order; for a model without tools with calls and results as text."""
    newest = max((index for index in range(len(view.live)) if not view.live[index].checkpoint), default=-1)
    parts: list[Part] = [*system]
    for index, live in enumerate(view.live):
        message = live.message if tools else without_tools(live.message)
        if message is not None:
            kind = CheckpointPart if live.checkpoint else NewPart if index == newest else RecentPart
            parts.append(kind(live._replace(message=message)))
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

    `beside` is the `beside_tokens` of its system parts and of the tools.

    Raises:
        InvalidInput: one of them is no part, or holds a snapshot or history: an error of the program.
    """
    system: list[SystemPart] = []
    messages: list[JsonObject] = []
    sizes: dict[str, int] = {}
    total = beside
    for nth, part in enumerate(parts):
        if isinstance(part, SystemPart):
            system.append(part)
            name, size = f"system:{part.name}", count(part.text)
        elif type(part) in _MESSAGE_PARTS:
            require_message(part.live.message.raw, where=f"parts[{nth}]")
            messages.append(sent(part.live.message))
            name, size = _MESSAGE_PARTS[type(part)], part.live.tokens
            total += size
        else:
            raise InvalidInput(
                f"{type(part).__name__} is not part of a prompt.",
                fix="Send messages and checkpoints only; snapshots and the history stay on disk.",
                where=f"parts[{nth}]",
            )
        sizes[name] = sizes.get(name, 0) + size
    text = system_text(system)
    if tools:
        sizes["tools"] = tools_tokens(list(tools), count)
    if text and not providers.provider(provider).TRAITS.system:
        messages.insert(0, {"role": "system", "content": text})
    listed = tuple(PartTokens(name, size) for name, size in sizes.items())
    return Prompt(messages, total, limit, listed, text, tuple(tools))


_MESSAGE_PARTS: Mapping[type, str] = {CheckpointPart: "checkpoints", RecentPart: "recent", NewPart: "new"}


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


def validate(view: View, *, beside: int, limit: int, tier: Tier, limits: Limits, system: int) -> Validation:
    """Return whether the context can be sent, and what would make it smaller; nothing is counted again."""
    tokens = beside + sum(message.tokens for message in view.live)
    overage = max(0, tokens - limit)
    return Validation(
        overage == 0, tokens, limit, overage, tuple(_suggestions(view, limit=limit, overage=overage)),
        tuple(_findings(view, tier=tier, tokens=tokens, limit=limit, limits=limits, system=system)),
        fill_level(tokens / limit, limits),
    )  # fmt: skip


def _suggestions(view: View, *, limit: int, overage: int) -> Iterator[Suggestion]:
    """Yield the suggestions that OLLM-CLI makes, by priority, each with its estimate."""
    assistant = [index for nth, group in enumerate(view.groups) if nth not in view.users for index in group]
    users = [group[0] for nth, group in enumerate(view.groups) if nth in view.users]
    checkpoints = len(view.checkpoints)
    if len(assistant) > 5:
        saved = int(0.7 * view.tokens(assistant[:-5]))
        yield Suggestion("compress", 1, saved, "older messages can become a checkpoint")
    if checkpoints > 1:
        saved = max(int(0.3 * overage), view.tokens(view.checkpoints) // 2)
        yield Suggestion("merge_checkpoints", 2, saved, f"{checkpoints} checkpoints can be one")
    if len(users) > 10:
        saved = view.tokens(users[:-10])
        yield Suggestion("remove_messages", 3, saved, "older messages of the user can become a checkpoint")
    if overage > 0.5 * limit:
        saved = view.tokens(range(len(view.live)))
        yield Suggestion(
            "emergency_rollover", 4, saved, "everything but the newest can become one checkpoint"
        )


def _findings(
    view: View, *, tier: Tier, tokens: int, limit: int, limits: Limits, system: int
) -> Iterator[Finding]:
    share = f"{100 * tokens / limit:.1f} % ({tokens}/{limit} tokens)"
    if tokens > limit:
        fix = "Compress it; build_prompt does so by itself."
        what = f"Prompt exceeds the limit by {tokens - limit} tokens."
        yield Finding("error", "over-limit", "context", what, fix)
    elif tokens >= limits.inform * limit:
        yield Finding("info", "filling", "context", f"Context at {share}.", "Nothing to do.")
    if system > tier.prompt_budget:
        what = (
            f"System prompt ({system} tokens) exceeds the budget of its tier ({tier.prompt_budget} tokens)."
        )
        fix = "Shorten it, or use a larger window; it is never compressed."
        yield Finding("warning", "system-over-budget", "system", what, fix)
    for message in view.live:
        if message.mentions:
            what = "It mentions a snapshot or a history; it is sent as the words of its author."
            yield Finding("info", "mentions-stored", f"n={message.number}", what, "Nothing to do.")


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
    "other": ("ratelimit", "quota", "tokensper", "apikey", "unauthorized", "unauthorised", "expired", "invalidtoken"),
}  # fmt: skip
_SEPARATORS = dict.fromkeys(map(ord, " -_"))
_NUMBER = r"(\d[\d,_]{2,9}|\d{1,4}(?=k\b))(k?)"
# Between the name of a limit and its number: not how much the request exceeds it, nor what was asked for.
_GAP = r"(?:(?!\b(?:by|but|contains?|requested|you|your)\b|limit \(\d+\))\D){0,40}?"
# How the limit is written, the surest form first. A bare number in brackets after "limit" is the code of the error.
_LIMITS = tuple(
    lazy(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:>|<=|≤)\s*{_NUMBER}",
        rf"(?:context|model)[ _](?:length|window|size)\b{_GAP}{_NUMBER}|n_ctx\W{{1,4}}{_NUMBER}",
        rf"{_NUMBER}[ -]?(?:tokens? )?(?:max\w* )?context\b",
        rf"\[\d+, ?{_NUMBER}\]",
        rf"(?:max\w*|limit(?! \(\d+\))|allowed|supports?|up to|at most)\b{_GAP}{_NUMBER}",
        rf"exceed\w*\b{_GAP}{_NUMBER}",
        rf"{_NUMBER} (?:tokens? )?(?:max\w*|limit|allowed)\b",
    )
)
_REQUESTED = lazy(
    r"(?:too long|requested|resulted in|contains|passed|received|given|current length|token count|n_prompt_tokens\W{1,4}|request \()"
    rf"\D{{0,12}}?{_NUMBER}",
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
        limit = next(filter(None, (pattern.search(text) for pattern in _LIMITS)), None)
        return ProviderError("overflow", _number(limit), _number(_REQUESTED.search(text)))
    return ProviderError("connection" if _has(text, _TEXTS["connection"]) else "unknown")


def _has(text: str, words: Iterable[str]) -> bool:
    plain = text.lower().translate(_SEPARATORS)
    return any(word in plain for word in words)


def _number(match: re.Match[str] | None) -> int:
    """Return the number of a match, whose last two groups with a value are its digits and its unit."""
    if not match:
        return 0
    digits, unit = [group for group in match.groups() if group is not None]
    return int(digits.replace(",", "").replace("_", "")) * (1_000 if unit else 1)


def require_room(
    view: View,
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
    fixed_tokens = beside + view.tokens(view.fixed)
    if fixed_tokens < limit:
        return
    sizes = [(*_size(part, count), "Shorten it") for part in parts]
    if tools:
        sizes.append((tools_tokens(list(tools), count), "the schemas of the tools", "Send fewer tools"))
    protected = [view.live[index] for index in view.fixed]
    sizes += [
        (live.tokens, f"the protected message n={live.number}", "Remove its protection") for live in protected
    ]
    sizes.sort(key=lambda entry: (-entry[0], entry[1]))
    largest = ", ".join(f"{what} has {size} tokens" for size, what, _ in sizes[:3])
    raise BudgetExceeded(
        f"the parts that no step may change have {fixed_tokens} tokens, and the limit is {limit}: {largest}.",
        fix=f"{sizes[0][2]}, or use a model with a larger window.",
        where="context",
    )


def _size(part: SystemPart, count: Counter) -> tuple[int, str]:
    return count(part.text), f"the part {part.name!r} of the system prompt"


def exceeded(
    view: View, tokens: int, limit: int, *, parts: Sequence[SystemPart], count: Counter
) -> BudgetExceeded:
    """Return the error for a context that no step makes small enough; it names the largest part."""
    largest: LiveMessage = max(view.live, key=lambda live: live.tokens)
    message = (largest.tokens, f"the largest message, n={largest.number}")
    size, what = max([message, *(_size(part, count) for part in parts)])
    return BudgetExceeded(
        f"the context has {tokens} tokens after every step, and the limit is {limit}; {what}, has {size}.",
        fix="Split or shorten it, or use a model with a larger window.",
        where="context",
    )
