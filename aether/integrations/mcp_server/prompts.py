"""Prompts: what a person starts by name; in Claude Code they are slash commands.

`compress` puts the hand-off before the model that the person talks to, which then is the architect. `summary` asks for
an account of the conversation by one of the prompts that compaction uses.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aether import prompts as texts
from aether.backends.request import SUMMARIES
from aether.errors import AetherError, InvalidInput, shown
from aether.integrations.mcp_server.answers import part_of
from aether.integrations.mcp_server.compressing import handoff_text
from aether.integrations.mcp_server.places import place
from aether.memory import phases
from aether.operations import colony

# A page: an account that is read, not a transcript.
SUMMARY_TOKENS = 800
# No colony gets to a phase of more; and Python takes no whole number of some thousand.
MOST_DIGITS = 9


def register(server: Any, home: str | None) -> None:
    """Add the prompts to the server."""

    async def compress(phase: str = "") -> str:
        return await _told(lambda: compress_prompt(phase, home))

    async def summary(kind: str = "task_state") -> str:
        return await _told(lambda: summary_prompt(kind))

    about = "Compress working memory: you are the architect who writes the session"
    server.prompt("compress", description=about)(compress)
    server.prompt("summary", description=f"Sum this conversation up, as {', '.join(SUMMARIES)}")(summary)


def compress_prompt(phase: str, home: str | None) -> str:
    """Return what an architect reads, and how it hands the session in.

    Raises:
        InvalidInput: the phase is no number.
    """
    if phase and not (phase.isdecimal() and len(phase) <= MOST_DIGITS):
        raise InvalidInput(
            f"phase is {shown(phase)}.", fix="Use a number, or leave it out.", where="compress"
        )
    found = place(home)
    number = int(phase) if phase else phases.current_phase(colony.colony(home=found))
    text, path = handoff_text(number, found)
    if not path:
        return text
    shown_part = part_of(text, 1, ask=f"the tool compress, action=prepare, phase={number}")
    return f"{shown_part}\nGive the session JSON to the tool compress with action=ingest."


def summary_prompt(kind: str) -> str:
    """Return the prompt for an account of the conversation.

    Raises:
        InvalidInput: there is no such kind.
    """
    if kind not in SUMMARIES:
        raise InvalidInput(
            f"there is no summary {shown(kind)}.", fix=f"Use {', '.join(SUMMARIES)}.", where="summary"
        )
    return texts.render(SUMMARIES[kind], max_tokens=str(SUMMARY_TOKENS))


async def _told(make: Any) -> str:
    from mcp.shared.exceptions import MCPError
    from mcp.types import INVALID_PARAMS

    try:
        return str(await asyncio.to_thread(make))
    except AetherError as reason:
        raise MCPError(code=INVALID_PARAMS, message=str(reason)) from reason
