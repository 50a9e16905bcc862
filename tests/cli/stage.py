"""A stage for commands: every command of the tree, its example lines, and a home in which they run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from aether.api.share import update_share
from aether.cli.main import cli, main
from aether.paths import resource
from aether.sharing import ledgers
from aether.store.ledger import JOURNAL, Mark
from tests.lines import line

# What must have been run before a command's example makes sense, beside what `prepared` does for all.
COMPACTED = ["compact run session.jsonl --window 8000 --force --output smaller.json"]
# A conversation of last winter, as a caller keeps it.
ARCHIVED = ["archive add old-talk.json"]
GOAL = ["goal add 'Ship the parser' --step 'Write it'"]
# A conversation of eighty messages, as OLLM-CLI keeps it, and a snapshot of its context.
CONTEXT = ["context import ollm"]
SHARED = ["share init postgresql://db.example/memory harbour"]
UNREADABLE = 41


def unreadable_line() -> None:
    """Let the colony of the home have a line that no aether can read, as its last one."""
    home = Path(".aether").resolve()
    server = ledgers.of(home)
    assert server is not None
    head = server.head(JOURNAL)
    lines = [line(number, server) for number in range(head + 1, UNREADABLE)]
    lines.append(line(UNREADABLE, server, patches={"no such document": []}))
    assert server.append_if(JOURNAL, Mark(head, ""), lines).done
    update_share(home=home)


BEFORE: dict[str, list[Any]] = {
    **dict.fromkeys(
        ("context", *(f"context {verb}" for verb in "status compress snapshot set".split())), CONTEXT
    ),
    **dict.fromkeys(("archive", *(f"archive {verb}" for verb in "age list restore mark".split())), ARCHIVED),
    "context snapshot": [*CONTEXT, "context snapshot talk"],
    "context delete": CONTEXT,
    "export": CONTEXT,
    **{f"goal {verb}": GOAL for verb in "show done decide next".split()},
    "goal block": GOAL,
    "goal start": [*GOAL, "goal done --paused"],
    **{f"backup {verb}": ["backup create backups"] for verb in "list restore".split()},
    "claude status": ["claude install"],
    "compact show": COMPACTED,
    "memory ingest": [
        "memory prepare --phase 1",
        """add "Let's write state by a temporary file and a rename." --metadata '{"conversation": "talk"}'""",
    ],
    "phase decide": ["phase complete 1"],
    **{f"share {verb}": SHARED for verb in "join status leave members".split()},
    "share remove": [*SHARED, unreadable_line],
    "snapshot": ["snapshot"],
    "tokens count": ["add 'A longer note, to have something to measure.'"],
    "undo": ["add 'A note to undo.'"],
}
# What the official memory server keeps.
GRAPH = """\
{"type":"entity","name":"Colony","entityType":"project","observations":["Its state is JSON."]}
{"type":"relation","from":"Colony","to":"Queen","relationType":"answers to"}
"""


def commands(*, groups: bool = False) -> Iterator[tuple[str, click.Command]]:
    """Yield every command by its words without `aether`; nouns that only hold verbs if `groups`."""
    for noun in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), noun)
        assert command is not None
        if groups or not isinstance(command, click.Group):
            yield noun, command
        if isinstance(command, click.Group):
            yield from ((f"{noun} {verb}", below) for verb, below in command.commands.items())


NAMES = [name for name, _ in commands()]


def examples(command: click.Command) -> list[str]:
    """Return the example lines of a command's help, without `aether`."""
    _, _, after = (command.help or "").partition("Example:")
    return [line.strip().removeprefix("aether ") for line in after.splitlines() if line.strip()]


def prepared(directory: Path) -> dict[str, str]:
    """Make a home and files in `directory`, and return what the variables of the examples stand for."""
    place = directory / ".aether"
    assert main(["init", "--quiet", str(directory)]) == 0
    import aether

    metadata: dict[str, Any] = {"phase": 1}
    item, other = (
        aether.add_working_memory_item(text, kind, 0.9, home=place, metadata={**metadata, **by})
        for text, kind, by in (
            ("Decided to use atomic writes for state, because a crash must not tear it.", "decision", {}),
            (
                "Never write state without a temporary file and a rename.",
                "constraint",
                {"evidence": "person"},
            ),
        )
    )
    lines = resource("data/samples/colony.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (directory / "session.jsonl").write_text("".join(lines[:40]), encoding="utf-8")
    (directory / "memory.jsonl").write_text(GRAPH, encoding="utf-8")
    (directory / "README.md").write_text("# A colony\n\nIt keeps notes.\n", encoding="utf-8")
    (directory / "session.json").write_text(json.dumps(session()), encoding="utf-8")
    (directory / "answer.json").write_text(json.dumps(ANSWER), encoding="utf-8")
    (directory / "request.json").write_text(json.dumps(request()), encoding="utf-8")
    (directory / "old-talk.json").write_text(json.dumps(old_talk()), encoding="utf-8")
    (directory / "ollm").mkdir()
    (directory / "ollm" / "talk.json").write_text(json.dumps(ollm_session()), encoding="utf-8")
    (directory / "event.json").write_text(
        '{"hook_event_name": "SessionStart", "source": "startup"}', encoding="utf-8"
    )
    rule = aether.enforce_rule(other, path="data/*.json", home=place)
    return {"ITEM": str(item), "OTHER": str(other), "RULE": rule["id"]}


# What an agent would say of a conversation in which state was talked about.
ANSWER = {
    "decisions": [
        {
            "decision": "Write state by a temporary file and a rename.",
            "quote": "a temporary file and a rename",
        }
    ]
}


def session() -> dict[str, Any]:
    """Return what an architect would write about the prepared items."""
    return {
        "id": "phase_1_by_hand",
        "session_id": "phase_1_by_hand",
        "compressed_at": "2026-03-01T10:15:00Z",
        "summary": "State is written atomically.",
        "key_decisions": [
            {
                "decision": "Use atomic writes for state",
                "rationale": "a crash must not tear it",
                "quote": "use atomic writes",
            }
        ],
        "outcomes": [{"result": "State survives a crash", "impact": "later phases can rely on it"}],
        "high_value_items": [],
    }


def ollm_session() -> dict[str, Any]:
    """Return a session of OLLM-CLI with some thousand tokens."""
    said = [
        {
            "id": f"m{nth}",
            "role": ("user", "assistant")[nth % 2],
            "content": f"Module {nth} reads port {8000 + nth}. " * 4,
        }
        for nth in range(80)
    ]
    return {"sessionId": "talk", "messages": said, "metadata": {"contextSize": 8192}}


def old_talk() -> dict[str, Any]:
    """Return a conversation of last winter, in the shape of Mai's memory manager."""
    texts = [
        "The webhook fails under load. What should we do?",
        "It retries at once, so the provider drops the calls. We decided to retry with exponential backoff, at most five times.",
        "Good. Never retry more than five times.",
        "Done: src/webhook.py waits 2, 4, 8, 16 and 32 seconds, and the tests pass.",
    ]
    said = [
        {
            "id": f"m{nth}",
            "role": ("user", "assistant")[nth % 2],
            "content": text,
            "timestamp": f"2026-01-05T10:0{nth}:00Z",
        }
        for nth, text in enumerate(texts)
    ]
    return {
        "id": "old-talk", "title": "Webhook retries", "created_at": "2026-01-05T10:00:00Z",
        "updated_at": "2026-01-05T10:03:00Z", "session_id": "old-talk", "messages": said,
    }  # fmt: skip


def request() -> dict[str, Any]:
    """Return a request to Anthropic that it would take."""
    call = {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "print(1)"}
    return {
        "system": "You fix bugs.",
        "messages": [
            {"role": "user", "content": "What is in a.py?"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }


def run_before(name: str, capsys: Any) -> None:
    """Run what an example of command `name` needs."""
    for step in BEFORE.get(name, []):
        if callable(step):
            step()
        else:
            assert main(shlex.split(step)) == 0
    capsys.readouterr()


def words_of(line: str, variables: dict[str, str]) -> list[str]:
    """Return an example line split as a shell would, its variables filled in."""
    return [re.sub(r"\$([A-Z]+)", lambda found: variables[found[1]], word) for word in shlex.split(line)]


def shown(capsys: Any, *words: str, code: int = 0) -> Any:
    """Run a command line, require its exit code, and return the texts of stdout and stderr."""
    capsys.readouterr()
    assert main(list(words)) == code, capsys.readouterr().err
    return capsys.readouterr()
