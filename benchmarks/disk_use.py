"""How much disk does a home take after a chat was imported and asked about, beside SQLite with an index of words?

LoCoMo's conversations beside the checkout, one file of chat messages each, are imported by `aether import`; then come six
questions, the first of which makes the index. The rival holds the same messages as rows, with FTS5, and is vacuumed. The text
is the bytes of the messages alone. A kind of file is the first part of its path in the home.

Usage: python benchmarks/disk_use.py
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import report
from startup import CLI

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo" / "locomo_dev6.json"
QUESTIONS = (
    "What does she do for work?", "Where did they travel in summer?", "Which pets are there?", "What are the plans for the weekend?",
    "Who is the oldest friend?", "What was bought last?",
)  # fmt: skip
GOAL = 4


def messages(conversation: dict) -> list[dict[str, str]]:
    """Return the turns of one conversation as messages, its two speakers as user and assistant."""
    spoken = conversation["conversation"]
    sessions = sorted(
        (name for name in spoken if name.startswith("session_") and isinstance(spoken[name], list)),
        key=lambda name: int(name.removeprefix("session_")),
    )
    turns = [turn for name in sessions for turn in spoken[name]]
    return [
        {"role": "user" if turn["speaker"] == spoken["speaker_a"] else "assistant", "content": turn["text"]}
        for turn in turns
    ]


def sizes(home: Path) -> Counter[str]:
    """Return the bytes of the files of a home by kind."""
    kinds: Counter[str] = Counter()
    for path in home.rglob("*"):
        if path.is_file():
            parts = path.relative_to(home).parts
            kinds["/".join(parts[:2]) if len(parts) > 2 else parts[-1]] += path.stat().st_size
    return kinds


def rival(directory: Path, texts: list[str]) -> int:
    """Return the bytes of a database with the same texts, and an index of their words."""
    file = directory / "rival.sqlite"
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, role TEXT, content TEXT)")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(content)")
    for text in texts:
        connection.execute("INSERT INTO messages (role, content) VALUES ('user', ?)", (text,))
        connection.execute("INSERT INTO words VALUES (?)", (text,))
    connection.execute("VACUUM")
    assert connection.execute("SELECT count(*) FROM words").fetchone() == (len(texts),)
    connection.close()
    return file.stat().st_size


def measure(directory: Path, chat: list[dict[str, str]]) -> dict[str, object]:
    """Return the bytes after an import, and after questions, of one conversation."""
    home, file = directory / ".aether", directory / "chat.json"
    file.write_text(json.dumps(chat), encoding="utf-8")
    texts = [message["content"] for message in chat]
    text_bytes = sum(len(text.encode()) for text in texts)
    environment = {**os.environ, "AETHER_HOME": str(home)}

    def run(*arguments: str) -> str:
        done = subprocess.run([*CLI, *arguments], check=True, capture_output=True, text=True, env=environment)
        return done.stdout

    run("init", str(directory))
    stored = json.loads(run("import", str(file), "--json"))
    assert stored["items"] > len(chat) / 2, stored
    imported = sum(sizes(home).values())
    for question in QUESTIONS:
        run("recall", question)
    kinds = sizes(home)
    return {
        "messages": len(chat), "text_bytes": text_bytes, "imported": imported, "asked": sum(kinds.values()),
        "rival": rival(directory, texts), "kinds": dict(kinds.most_common(12)),
    }  # fmt: skip


def main() -> None:
    if not DATA.is_file():
        sys.exit(f"{DATA} is not there: this benchmark needs LoCoMo beside the checkout.")
    rows = []
    for conversation in json.loads(DATA.read_bytes()):
        with tempfile.TemporaryDirectory() as directory:
            rows.append(measure(Path(directory), messages(conversation)))
    text = sum(row["text_bytes"] for row in rows)
    ratios = {
        name: round(sum(row[name] for row in rows) / text, 1) for name in ("imported", "asked", "rival")
    }
    report.write(__file__, {"goal": GOAL, "over_text": ratios, "rows": rows})


if __name__ == "__main__":
    main()
