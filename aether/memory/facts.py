"""Facts: the English of what a machine showed, made here and nowhere else.

A fact is fields (`aether.types.Fact`). The text is for people, models and search; nobody reads it back. A field that is
missing is left out, so that every fact of a known kind has a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from aether.types import Fact

EMPTY_PLAN = "The list of tasks was emptied."
_ACTIONS = {"created": "Created", "deleted": "Deleted", "moved": "Moved", "reverted": "Reverted"}
_SHORT_ID = 9


def fact_text(fact: Fact) -> str:
    """Return `fact` as English.

    >>> fact_text({"kind": "change", "path": "a.py", "action": "changed", "names": ["load"], "times": 2})
    'Changed a.py (2 edits): load'
    >>> fact_text({"kind": "run", "command": "pytest -q", "times": 3, "outcome": "14 passed"})
    'Ran `pytest -q` (3 runs): 14 passed'
    """
    return _WRITERS[fact["kind"]](fact)


def stated_fact(item: Mapping[str, Any]) -> Fact | None:
    """Return the fact of an item if the text states it: a corrected text states something else.

    >>> fact = {"kind": "run", "command": "pytest -q"}
    >>> [stated_fact({"content": text, "metadata": {"fact": fact}}) for text in ("Ran `pytest -q`", "Ran nothing")]
    [{'kind': 'run', 'command': 'pytest -q'}, None]
    """
    fact = cast("Fact", item["metadata"].get("fact") or {})
    return fact if fact.get("kind") in _WRITERS and fact_text(fact) == item["content"] else None


def _change(fact: Fact) -> str:
    action, times, lines = fact.get("action", ""), fact.get("times", 1), fact.get("lines", 0)
    size = f" ({times} edits)" if times > 1 else f" ({lines} lines)" if action == "created" and lines else ""
    names = "" if action == "deleted" else ", ".join(fact.get("names", []))
    return f"{_ACTIONS.get(action, 'Changed')} {fact.get('path', '')}{size}" + (f": {names}" if names else "")


def _run(fact: Fact) -> str:
    command, times, outcome = fact.get("command", ""), fact.get("times", 1), fact.get("outcome", "")
    end = f": {outcome}" if outcome else ""
    failed = f"`{command}` failed" + (f" {times} times" if times > 1 else "")
    if "after" in fact:
        complaint = f": {fact['body']}" if fact.get("body") else ""
        return f"{failed}{complaint}\nWorked {_way(fact['after'])}{end or '.'}"
    if fact.get("failed"):
        return failed + end
    return f"Ran `{command}`" + (f" ({times} runs)" if times > 1 else "") + end


def _way(after: list[str]) -> str:
    """Return what came between a failure and its success: commands have backticks, files have none."""
    files = [name for name in after if not name.startswith("`")]
    ran = [name for name in after if name.startswith("`")]
    since = [*([f"changes to {', '.join(files)}"] if files else []), *ran]
    return f"after {' and '.join(since)}" if since else "when run again"


def _commit(fact: Fact) -> str:
    name, subject, branch = fact.get("id", ""), fact.get("subject", ""), fact.get("branch", "")
    head = f"{name} {subject}" if "://" in name else f"[{f'{branch} {name}'.strip()}] {subject}"
    return f"{head.strip()}\n\n{fact['body']}" if fact.get("body") else head.strip()


def _push(fact: Fact) -> str:
    remote = fact.get("remote", "")
    return f"Pushed {fact.get('branch', '')}" + (f" to {remote}" if remote else "")


def _branch(fact: Fact) -> str:
    upstream, ahead = fact.get("remote", ""), fact.get("outcome", "")
    name = fact.get("branch", "")
    lines = [f"Branch {name}" if name else "No branch"]
    lines[0] += f" ({', '.join(filter(None, (upstream, ahead)))})." if upstream or ahead else "."
    if names := fact.get("names", []):
        times = fact.get("times", len(names)) - len(names)
        lines.append(f"Uncommitted: {', '.join(names)}" + (f" and {times} more." if times > 0 else "."))
    else:
        lines.append("Nothing is uncommitted.")
    if subject := fact.get("subject", ""):
        lines.append(f"Last commit: {fact.get('id', '')[:_SHORT_ID]} {subject}")
    return " ".join(lines)


def _plan(fact: Fact) -> str:
    lines = [f"[{step.get('status', '')}] {step.get('text', '')}" for step in fact.get("steps", [])]
    return "\n".join(lines) or EMPTY_PLAN


def _question(fact: Fact) -> str:
    options = fact.get("options", [])
    return f"Asked: {fact.get('question', '')}" + (f"\nOptions: {' | '.join(options)}" if options else "")


def _answer(fact: Fact) -> str:
    """Return an answer with its question, or the reason of a refusal with the call that was refused."""
    choice = fact.get("choice", "")
    if "question" not in fact:
        refused = fact.get("command") or fact.get("path")
        return f"Refused `{refused}`: {choice}" if refused else choice
    return f"{_question(fact)}\nAnswered: {choice}"


_WRITERS = {
    "change": _change, "run": _run, "commit": _commit, "push": _push, "branch": _branch, "plan": _plan,
    "question": _question, "answer": _answer,
}  # fmt: skip
