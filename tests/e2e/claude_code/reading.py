"""What the tests read: the memory in a request, the items in a home, and whether anything showed on the screen."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from aether.text.tags import NOTICE
from tests.e2e.claude_code import driver
from tests.e2e.claude_code.driver import Session, Stage
from tests.e2e.claude_code.server import Request

BLOCK = re.compile(r'<aether-memory occasion="([^"]*)"[^>]*>\n(.*?)</aether-memory>', re.DOTALL)


def briefed(request: Request) -> list[tuple[str, list[str]]]:
    """Give the occasion and the lines of every block of memory that the model was sent."""
    return [
        (occasion, [line for line in body.splitlines() if line not in ("", NOTICE)])
        for occasion, body in BLOCK.findall(request.text)
    ]


def memory(request: Request) -> str:
    """Give all lines of memory in a request."""
    return "\n".join(line for _, lines in briefed(request) for line in lines)


def briefed_twice(request: Request) -> list[str]:
    """Give the facts that the model was sent more than once."""
    lines = Counter(
        line for _, lines in briefed(request) for line in lines if re.search(r"\d{4}-\d\d-\d\d", line)
    )
    return [line for line, times in lines.items() if times > 1]


def colony(stage: Stage, where: Path) -> dict[str, Any]:
    """Give the whole colony of the project there, as `aether export` shows it."""
    return json.loads(driver.run(stage, where, ["aether", "--quiet", "export"]))


def items(colony: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the items of working memory and of the archive, each once; not the words kept for search."""
    live = colony["documents"]["memory"]["working_memory"]["items"]
    archived = [
        record["item"]
        for record in colony["items"]
        if record.get("item", {}).get("type", "history") != "history"
    ]
    return list({item["id"]: item for item in [*archived, *live]}.values())


def complaints(session: Session) -> list[str]:
    """Give what the person at the screen would have seen go wrong."""
    seen = [
        f"{event.get('hook_name')}: {event.get('outcome')} {event.get('exit_code')} {event.get('stderr')}"
        for event in session.system("hook_response")
        if event.get("outcome") != "success" or event.get("exit_code") or event.get("stderr")
    ]
    if session.error or session.code or session.stderr:
        seen.append(f"claude: {session.code} {session.result} {session.stderr}")
    return seen


def holding(directory: Path, text: str) -> list[str]:
    """Give the files below a directory whose bytes hold a text."""
    return [
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file() and (text.encode() in path.read_bytes() or text in path.name)
    ]
