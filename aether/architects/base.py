"""The interface of backends: a backend is a module with `NAME` and `complete`, which turns a request into text.

A request carries the same task twice: as data, for a backend that works on data (`extractive`), and as a rendered
prompt, for a backend that reads (a model, a program). The answer is unchecked text; `memory` and `api` validate it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from aether.types import Counter, JsonObject


class Request(NamedTuple):
    """One task for a backend."""

    task: str
    """`session` turns a hand-off into session JSON, `summary` removed messages into plain text."""
    data: JsonObject
    """The task as data: for `session` the hand-off, for `summary` a `SummaryTask` as JSON."""
    prompt: str
    """The task as words, rendered from a file in `prompts/`; holds the data."""
    schema: JsonObject
    """JSON Schema of the answer; empty for plain text."""
    target_tokens: int
    """Tokens that the answer should have, by the counter of the home."""
    feedback: str = ""
    """Why the last answer was rejected, in words for the next attempt."""


class Settings(NamedTuple):
    """How to reach a backend; empty values mean: the backend's own default or environment."""

    model: str = ""
    base_url: str = ""
    api_key: str = ""
    command: str = ""
    timeout_seconds: float = 120.0
    max_retries: int = 2
    backoff_seconds: float = 0.5
    """The first wait before a retry; each further one is twice as long."""
    max_output_tokens: int = 16_000
    window_tokens: int = 0
    """Largest input in tokens; a larger one is sent in chunks. 0: the backend's default."""
    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    temperature: float | None = None
    """How freely a model chooses its words; None: the backend's default. Some models refuse any other."""


class Completion(NamedTuple):
    """The answer of a backend, and its cost."""

    text: str
    backend: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    calls: int = 1


class Backend(Protocol):
    """What every backend module offers."""

    NAME: str

    def complete(self, request: Request, *, settings: Settings, count: Counter) -> Completion:
        """Return the answer to `request`.

        Raises:
            BackendUnavailable: a package, key, program or server is missing.
            BackendFailed: it was reached and failed, refused, or its answer was cut off.
        """
        ...
