"""Architects: ask one to compress, hear why its answer was rejected, ask again, and end without a model.

The architect is any backend of `backends`. A rejected answer is sent back with the reasons, twice; then,
or when the backend fails, the built-in extractive architect does it, and the result says so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

from aether.backends import backend as backend_of
from aether.backends.base import Completion, Request, Settings
from aether.backends.request import session_request
from aether.errors import BackendFailed, InvalidInput
from aether.memory.fidelity import demands
from aether.memory.handoff import room
from aether.memory.ingest import Ingested
from aether.operations.compression import (
    Prepared,
    ingested,
    outgrown,
    prepare,
)
from aether.operations.edge import Home, counter_of, find, read
from aether.operations.handoffs import read_handoff
from aether.shapes import JsonObject
from aether.store import config

FALLBACK = "extractive"
# Asked once, and corrected twice: a model that is wrong three times is wrong.
ANSWER_TRIES = 3


class Compressed(NamedTuple):
    """What compressing did."""

    prepared: Prepared
    ingested: Ingested | None
    """None where there was nothing to compress, or the architect is a person."""
    architect: str
    """Who wrote the session in the end."""
    notes: list[str]
    """What went wrong on the way, in words."""


def compress(
    phase: int,
    *,
    architect: str | None = None,
    home: Home = None,
    progress: Callable[[str], None] = lambda _: None,
    by: str = "",
) -> Compressed:
    """Compress the items of `phase` by an architect, and return what became of them.

    `architect` is `extractive`, `anthropic`, `openai`, `ollama`, `command:'…'` or `manual` (stops after
    the hand-off); by default the one in `config.toml`, else the extractive one. `progress` hears each step. `by` names
    the author in the log; `undo` without a revision passes over changes by a hook.

    Raises:
        InvalidInput: there is no such architect.
        BackendUnavailable: it needs a package, key, program or server that is missing.
    """
    place = find(home)
    settings = config.load(place)
    chosen = architect or settings.architect
    module, overrides = (None, {}) if chosen == "manual" else backend_of(chosen)
    prepared = prepare(phase, manual=True, new=outgrown(phase, place), home=place, by=by)
    if prepared.path is None or module is None:
        return Compressed(prepared, None, chosen, [])
    reach = _settings(settings)._replace(**cast(Any, overrides))
    notes: list[str] = []
    stored = _ask(prepared, module, reach, notes=notes, progress=progress, place=place, by=by)
    if stored is None and module.NAME != FALLBACK:
        fallback, _ = backend_of(FALLBACK)
        progress("asking the extractive architect instead")
        stored = _ask(prepared, fallback, reach, notes=notes, progress=progress, place=place, by=by)
        if stored is not None:
            notes.append("the extractive architect wrote the session instead")
    if stored is None:
        raise BackendFailed(
            f"no architect wrote an acceptable session: {'; '.join(notes)}.",
            fix="Nothing changed; the hand-off stays open. Write the session by hand and ingest it.",
            where=f"phase {phase}",
        )
    return Compressed(prepared, stored, stored.session["metadata"]["architect"]["backend"], notes)


def _ask(
    prepared: Prepared, module: Any, reach: Settings, *, place: Path, notes: list[str],
    progress: Callable[[str], None], by: str,
) -> Ingested | None:  # fmt: skip
    """Return what ingesting the backend's answer did, or None once it failed for good."""
    path, record = prepared.path, prepared.record
    if path is None or record is None:
        return None
    handoff = read_handoff(path)
    # Who works on data is told what the gate will ask for, so that nothing has to be added afterwards.
    given = cast(JsonObject, {**handoff, "required": demands(handoff), "target_tokens": room(handoff)})
    count = counter_of(read(place).documents["memory"])
    spent: list[Completion] = []
    feedback = ""
    for attempt in range(ANSWER_TRIES):
        progress(f"asking {module.NAME}" + (f", again ({attempt})" if attempt else ""))
        request = session_request(given, feedback=feedback)
        try:
            spent.append(module.complete(request, settings=reach, count=count))
            return ingested(
                record["phase"],
                spent[-1].text,
                home=place,
                architect=_cost(spent, request, given),
                compression_id=record["id"],
                by=by,
            )
        except InvalidInput as reason:
            feedback = str(reason)
            notes.append(f"{module.NAME}: answer rejected: {reason.what}")
        except BackendFailed as reason:
            notes.append(f"{module.NAME}: {reason.what}")
            return None
    return None


def _cost(spent: list[Completion], request: Request, given: JsonObject) -> JsonObject:
    """Return who answered and what all the tries cost, for the receipt."""
    costs = [one.cost_usd for one in spent if one.cost_usd is not None]
    return {
        "backend": spent[-1].backend,
        "model": spent[-1].model,
        "input_tokens": sum(one.input_tokens for one in spent),
        "output_tokens": sum(one.output_tokens for one in spent),
        "cost_usd": round(sum(costs), 6) if costs else None,
        "calls": sum(one.calls for one in spent),
        "tries": len(spent),
        "task": request.task,
        "prompt_sha256": given["prompt"]["sha256"],
    }


def _settings(settings: config.Config) -> Settings:
    return Settings(
        model=settings.architect_model,
        base_url=settings.architect_base_url,
        timeout_seconds=settings.architect_timeout_seconds,
        max_retries=settings.architect_max_retries,
        max_output_tokens=settings.architect_max_output_tokens,
        window_tokens=settings.architect_window_tokens,
        input_usd_per_million=settings.architect_input_usd_per_million or None,
        output_usd_per_million=settings.architect_output_usd_per_million or None,
    )
