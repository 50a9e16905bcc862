"""The claude-code backend: the user's own Claude Code (`claude -p`) answers, with the subscription or key it has.

It gets the prompt and nothing else: no tools, no MCP servers, no hooks (its session would become memory), no instructions of
a project, and no transcript is kept. The answer is unchecked, as that of any backend.
"""

from __future__ import annotations

import json
import os
from tempfile import TemporaryDirectory
from typing import Any

from aether.architects.base import Completion, Request, Settings
from aether.architects.command import run_program
from aether.architects.request import whole_prompt
from aether.errors import BackendFailed, shown
from aether.tokens.models import ANTHROPIC_INPUT
from aether.types import Counter

NAME = "claude-code"
PROGRAM = "claude"
# In the place of the instructions for programming, which would cost some thousand tokens.
SYSTEM = "You write what the prompt asks for, and nothing else."
OPTIONS = (
    "-p", "--output-format", "json", "--tools", "", "--strict-mcp-config", "--disable-slash-commands",
    "--no-session-persistence", "--settings", '{"disableAllHooks": true}',
    "--system-prompt", SYSTEM,
)  # fmt: skip
# Set inside a session of Claude Code, in which another one refuses to start.
_WITHIN = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_PROJECT_DIR")


def complete(request: Request, *, settings: Settings, count: Counter) -> Completion:
    """Return the answer of Claude Code to the prompt, with its own count of tokens and cost.

    Raises:
        BackendUnavailable: `claude` is not on PATH, or it cannot be run.
        BackendFailed: it failed, is not logged in, or did not answer in time.
    """
    del count  # Claude Code reports its usage
    words = [PROGRAM, *OPTIONS, *(["--model", settings.model] if settings.model else [])]
    around = {name: value for name, value in os.environ.items() if name not in _WITHIN}
    around["AETHER_NO_HOOKS"] = "1"  # of an administrator's settings, which no option switches off
    with TemporaryDirectory(prefix="aether-") as nowhere:  # a directory without a CLAUDE.md
        output = run_program(
            words, whole_prompt(request).encode(), name=NAME, timeout_seconds=settings.timeout_seconds,
            environment=around, directory=nowhere, fix="Install Claude Code (claude.com/claude-code), or use the extractive architect.",
        )  # fmt: skip
    result = _result(output)
    reported = result.get("usage")
    usage: dict[str, Any] = reported if isinstance(reported, dict) else {}
    models = result.get("modelUsage")
    cost = result.get("total_cost_usd")
    return Completion(
        text=result["result"], backend=NAME,
        model=next(iter(models), settings.model) if isinstance(models, dict) else settings.model,
        input_tokens=sum(_whole(usage.get(name)) for name in ANTHROPIC_INPUT), output_tokens=_whole(usage.get("output_tokens")),
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )  # fmt: skip


def _result(output: str) -> dict[str, Any]:
    """Return the result in the output of `claude -p --output-format json`: the last event of some versions' list."""
    try:
        found = json.loads(output)
    except ValueError:
        found = None
    result = found[-1] if isinstance(found, list) and found else found
    if (
        not isinstance(result, dict)
        or not isinstance(result.get("result"), str)
        or not result["result"].strip()
    ):
        raise _failed(f"did not answer in its form: {shown(output[:400])}.")
    if result.get("is_error"):
        raise _failed(f"answered with an error: {result['result'][:400]}")
    return result


def _failed(what: str) -> BackendFailed:
    fix = f'Try it by hand: echo Hello | {PROGRAM} -p. "{PROGRAM} update" brings a newer one.'
    return BackendFailed(f"Claude Code {what}", fix=fix, where=NAME)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
