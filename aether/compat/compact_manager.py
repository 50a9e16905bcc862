"""The compaction manager of Ariadne: `preflight` before a model call, `manual_compact` when asked.

It holds configuration only; the state is on disk, and each method is one call of `api`. Messages are dicts of any
provider, or `Message` objects; kept ones come back as the very objects they were. Before a change the exact
conversation is stored in the home, or in `.compact/` without a home. The redacted copies for `storage` come on top, so a
failing storage costs an event and not the conversation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from os import PathLike
from typing import Any, NamedTuple, Protocol, cast

from aether.api import compact
from aether.api.compact import META_KEYS, as_dicts, options_from_config, redaction_rules
from aether.api.conversations import record_directory
from aether.api.home import Home
from aether.api.tokens import counting
from aether.conversation.policy import CompactConfig, CompactPolicy, config_from_values
from aether.errors import (
    AetherError,
    BackendFailed,
    BudgetExceeded,
    InvalidInput,
    public,
    public_methods,
    require_one_of,
    shown,
)
from aether.events.events import Event, Exporter
from aether.events.exporters import callback, screened
from aether.messages.convert import META, read
from aether.messages.model import ProviderFormat
from aether.storage.adapter import StorageAdapter
from aether.store.config import settings
from aether.tokens.count import message_tokens, system_tokens, tools_tokens
from aether.types import Counter, Finding, JsonObject

__all__ = [
    "CompactConfig", "CompactError", "CompactManager", "CompactPolicy", "CompactionResult", "InsufficientBudgetError",
    "Message", "SummarizationError", "TokenBudget", "mark_protected",
]  # fmt: skip

CompactError = AetherError
InsufficientBudgetError = BudgetExceeded
SummarizationError = BackendFailed

ROLES = ("system", "developer", "assistant", "user", "tool")
DEFAULT_SESSION = "default"
# The texts of a file or a variable that mean true.
_TRUE = ("true", "yes", "on", "1")


@dataclass(frozen=True)
class Message:
    """One message; calls and results of tools are in `meta` in OpenAI's format.

    Raises:
        InvalidInput: the role is unknown.
    """

    role: str
    content: str | None
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_one_of(self.role, ROLES, "a role", where="role")

    def is_protected(self, flag: str = "protected") -> bool:
        """Return whether `meta` protects it: true, 1, "true" and "yes" all do."""
        value = self.meta.get(flag)
        return value.strip().lower() in _TRUE if isinstance(value, str) else bool(value)

    def get_label(self) -> str | None:
        """Return its label, if it has one."""
        return self.meta.get("label")


@public
def mark_protected(content: str | JsonObject, label: str | None = None, **meta: Any) -> Any:
    """Return a developer message that no compaction changes or drops; for a message, a protected copy of it.

    >>> mark_protected("Never deploy on a Friday.", label="policy").meta
    {'protected': True, 'label': 'policy'}
    >>> mark_protected({"role": "user", "content": "Keep the API."})["meta"]
    {'protected': True}
    """
    about = {"protected": True, **({"label": label} if label else {}), **meta}
    if isinstance(content, dict):
        return {**content, META: {**content.get(META, {}), **about}}
    return Message("developer", content, about)


class TokenBudget(NamedTuple):
    """Tokens of a request by part."""

    system_tokens: int
    developer_tokens: int
    tools_schema_tokens: int
    messages_tokens: int

    @property
    def total(self) -> int:
        """Return their sum."""
        return sum(self)


@dataclass(frozen=True)
class CompactionResult:
    """A conversation that fits; iterating gives its messages."""

    messages: list[Any]
    summary: Any
    """The summary of the removed messages; None without one."""
    was_triggered: bool
    tokens_before: int
    tokens_after: int
    pruned_count: int
    kept: dict[str, int]
    """Kept messages by reason: `pinned`, `recent_turns`, `tool_pairs`, `middle`."""
    policy_applied: CompactPolicy
    """The policy with the keep counts that were used."""
    findings: list[Finding]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)


class TokenEstimator(Protocol):
    """A caller's own counter: texts are counted one by one."""

    def estimate_tokens(self, text: str) -> int:
        """Return the tokens of `text`."""
        ...


class Summarizer(Protocol):
    """A caller's own summariser."""

    def summarize(self, messages: list[Message], max_tokens: int, policy: CompactPolicy) -> str:
        """Return the summary of `messages`."""
        ...


class EventSink(Protocol):
    """A caller's own exporter in Ariadne's form."""

    def emit_event(self, event_type: str, properties: JsonObject, payload: JsonObject | None = None) -> Any:
        """Accept one event."""
        ...


@public_methods
class CompactManager:
    """Keep the conversations of an agent below its window.

        manager = CompactManager()
        messages = manager.preflight(session_id, messages).messages

    `config` is a configuration, or the name of a file that holds one: TOML, YAML or JSON. Unless it is a configuration,
    variables win over the file, the file over the `config.toml` of the home, that over the user's; an unknown
    `COMPACT_*` variable is a finding of each result. Each part may be the caller's own: `token_estimator` an object
    with `estimate_tokens` or a function of a text, `storage` a `StorageAdapter`, `exporter` an `Exporter` or an object
    with `emit_event`, `summarizer` an object with `summarize`. Neither a key nor a network is needed.

    Raises:
        InvalidInput: the configuration of the file or the environment is invalid.
        NotFound: the file does not exist.
        BackendUnavailable: a package that the configuration asks for is missing.
    """

    def __init__(
        self, config: CompactConfig | str | PathLike[str] | None = None, *,
        token_estimator: TokenEstimator | Callable[[str], int] | None = None,
        storage: StorageAdapter | None = None, exporter: Exporter | EventSink | None = None,
        summarizer: Summarizer | None = None, home: Home = None,
    ) -> None:  # fmt: skip
        self._doubts: list[Finding] = []
        if isinstance(config, CompactConfig):
            self.config = config
        else:
            loaded = settings(config, home=record_directory(home))
            self.config, self._doubts = config_from_values(loaded.values), loaded.findings
        options = options_from_config(
            self.config, home=home, storage=storage, exporter=_exporter(self.config, exporter)
        )
        if token_estimator is not None:
            count = cast("Counter", getattr(token_estimator, "estimate_tokens", token_estimator))
            options = options._replace(
                counter=count, counter_name=f"{type(token_estimator).__name__} (the caller's own)"
            )
        if summarizer is not None:

            def ask(dialog: list[JsonObject], most: int, strategy: str) -> str:
                messages = [Message(entry["role"], entry["content"]) for entry in dialog]
                return summarizer.summarize(
                    messages, most, dataclasses.replace(self.config.policy, strategy=strategy)
                )

            options = options._replace(backend=ask)
        self._options = options

    def preflight(
        self, session_id: str, messages: Sequence[Any], *, system: Any = None, tools: Any = None,
        wire: ProviderFormat | None = None, repair: bool = True,
    ) -> CompactionResult:  # fmt: skip
        """Return messages that fit: the same, or compacted ones if the trigger fires.

        `system` and `tools` are the rest of the request; they are counted and never changed. Messages that the provider
        would refuse are repaired, with a finding for each change, unless `repair` is off.

        Raises:
            InsufficientBudgetError: the protected messages do not fit; nothing was changed.
            InvalidInput: a message is invalid.
        """
        raws = as_dicts(messages)
        compaction = compact.preflight(
            session_id, raws, model=self.config.model, window=self.config.max_context_tokens,
            policy=self.config.policy.policy(), system=system, tools=tools, wire=wire, repair=repair,
            options=self._options,
        )  # fmt: skip
        return self._result(compaction, messages, raws)

    def manual_compact(
        self, session_id: str, messages: Sequence[Any], note: str = "manual", *, system: Any = None,
        tools: Any = None, wire: ProviderFormat | None = None, repair: bool = True,
    ) -> CompactionResult:  # fmt: skip
        """Return compacted messages even if no trigger fires; `note` is the reason in event and receipt.

        Raises:
            InsufficientBudgetError, InvalidInput: as `preflight`.
        """
        raws = as_dicts(messages)
        compaction = compact.compact(
            session_id, raws, model=self.config.model, window=self.config.max_context_tokens,
            policy=self.config.policy.policy(), system=system, tools=tools, wire=wire, note=note,
            repair=repair, options=self._options,
        )  # fmt: skip
        return self._result(compaction, messages, raws)

    def before_model_call(self, ctx: Any) -> Any:
        """Replace `ctx.messages` by messages that fit, and return `ctx`.

        `ctx.session_id`, `tools` and `system_prompt` are used if it has them.

        Raises:
            InsufficientBudgetError, InvalidInput: as `preflight`; nothing too large is ever sent on.
        """
        if not hasattr(ctx, "messages"):
            fix = "Give the context of a model call."
            raise InvalidInput(f"{shown(ctx)} has no messages.", fix=fix, where="ctx")
        session = getattr(ctx, "session_id", None) or DEFAULT_SESSION
        system, tools = getattr(ctx, "system_prompt", None), getattr(ctx, "tools", None)
        ctx.messages = self.preflight(session, ctx.messages, system=system, tools=tools).messages
        return ctx

    def after_model_call(self, ctx: Any) -> Any:
        """Correct the count by `ctx.usage`, the provider's report of the call, if there is one, and return `ctx`."""
        usage = getattr(ctx, "usage", None)
        if usage is not None:
            self.record_usage(getattr(ctx, "session_id", None) or DEFAULT_SESSION, usage)
        return ctx

    def record_usage(self, session_id: str, usage: int | Mapping[str, Any]) -> bool:
        """Correct the count by the provider's `usage` of the last `preflight`; return whether that was possible.

        `usage` is the number of input tokens, cached ones included, or the usage object of the answer. Nothing is
        corrected without a home or a model in the configuration, or with the caller's own counter.
        """
        return compact.answered(session_id, usage, home=self._options.record)

    def budget(self, messages: Sequence[Any], *, system: Any = None, tools: Any = None) -> TokenBudget:
        """Return the tokens of a request with these parts, by the counter of this manager."""
        count = self._options.counter or counting(self.config.model, place=self._options.record).count
        tokens: dict[str, int] = {}
        for message in read(as_dicts(messages)):
            part = message.raw.get("role")
            part = part if part in ("system", "developer") else ""
            tokens[part] = tokens.get(part, 0) + message_tokens(message, count)
        return TokenBudget(
            system_tokens(system, count) + tokens.get("system", 0), tokens.get("developer", 0),
            tools_tokens(tools, count), tokens.get("", 0),
        )  # fmt: skip

    def _result(
        self, done: compact.Compaction, given: Sequence[Any], raws: Sequence[JsonObject]
    ) -> CompactionResult:
        originals = {id(raw): message for raw, message in zip(raws, given, strict=True)}
        objects = any(isinstance(message, Message) for message in given)
        messages = [originals.get(id(raw)) or (_message(raw) if objects else raw) for raw in done.messages]
        receipt, policy = done.receipt, self.config.policy
        summary, counts = None, dict[str, int]()
        if receipt:
            places = zip(messages, receipt.places, strict=True)
            summary = next((message for message, place in places if place is None), None)
            counts = {name if name != "recent" else "recent_turns": n for name, n in receipt.kept.items()}
            effective = receipt.effective
            policy = dataclasses.replace(
                policy,
                keep_recent_turns=effective["keep_recent_turns"],
                keep_tool_io_pairs=effective["keep_tool_pairs"],
            )
        elif isinstance(given, list) and len(given) == len(messages) and all(map(is_, messages, given)):
            messages = given  # nothing changed: the very list
        return CompactionResult(
            messages, summary, done.triggered, done.tokens_before, done.tokens_after,
            len(receipt.removed) if receipt else 0, counts, policy, [*self._doubts, *done.findings],
        )  # fmt: skip


def _message(raw: JsonObject) -> Message:
    fields = {key: raw[key] for key in META_KEYS if key in raw}
    return Message(raw["role"], raw.get("content"), {**raw.get(META, {}), **fields})


def _exporter(config: CompactConfig, given: Exporter | EventSink | None) -> Exporter | None:
    """Return the caller's exporter, wrapped so that it gets redacted copies and cannot raise."""
    if given is None:
        return None
    if hasattr(given, "emit"):
        return screened(cast("Exporter", given), rules=redaction_rules(config))
    sink: EventSink = given

    def put(event: Event) -> None:
        sink.emit_event(
            event.name, {"session_id": event.session_id, "ts": event.at, **event.properties}, event.payload
        )

    return callback(put, rules=redaction_rules(config))
