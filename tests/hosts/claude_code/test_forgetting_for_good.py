"""Forgetting through the whole of Claude Code's hooks: what was forgotten after a compaction is told by nothing any more."""

from __future__ import annotations

import json

import pytest

import aether
from aether.api import admin as operations_home
from aether.api import forget, graph, recall
from aether.errors import NotFound
from aether.hosts import hook
from aether.mcp import server, tools
from aether.store import snapshot
from tests import homes

RULE = "We must support legacyFormat 7."
STATEMENT = "support legacyformat 7"
SUMMARY = """<summary>
1. Primary Request and Intent:
   The user said "Never use tabs in this project. We must support legacyFormat 7." and asked for the installer in Python.
2. Key Technical Concepts:
   - We must support legacyFormat 7.
   - The installer is written in Python, src/installer.py makes it.
3. Pending Tasks:
   - The installer has to be signed with the certificate of the release team before Friday.
</summary>"""


@pytest.fixture
def reported(tmp_path, monkeypatch):
    """Call the hook of an event in a project with a home, as its program does, and return what the model is told."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    project = tmp_path / "app"
    (project / ".git").mkdir(parents=True)
    homes.fresh(project)

    def call(event, session="s", **more):
        payload = {"hook_event_name": event, "session_id": session, "cwd": str(project), **more}
        code, out = hook.main([], json.dumps(payload).encode())
        assert code == 0
        return out

    call.home = project / ".aether"
    return call


def compacted(reported):
    reported("SessionStart", source="startup")
    reported(
        "UserPromptSubmit",
        prompt="Never use tabs in this project. We must support legacyFormat 7.",
        prompt_id="p1",
    )
    reported(
        "Stop",
        last_assistant_message="Understood. The installer is written in Python: src/installer.py makes it.",
    )
    about = {"conversation": "s", "evidence": "person"}
    for text in (RULE, "Never use tabs in this project."):
        aether.add_working_memory_item(text, "constraint", 0.9, home=reported.home, metadata=about)
    reported("PreCompact", trigger="manual")
    reported("PostCompact", trigger="manual", compact_summary=SUMMARY)
    reported("SessionStart", source="compact")
    reported("SessionEnd", reason="other")
    aether.add_working_memory_item(
        "Decided: since we must support legacyFormat 7, use Python 3.8.", "decision", home=reported.home
    )
    reported("SessionStart", "s2", source="startup")
    reported("UserPromptSubmit", "s2", prompt="Again: we must support legacyformat 7!", prompt_id="p2")
    reported("Stop", "s2", last_assistant_message="Yes.")


def everywhere(reported, session):
    """Return all that is told or found, by who tells it."""
    home = reported.home
    lines = recall.recall("support legacyFormat 7 tabs", home=home)
    (anchor,) = [line.id for line in recall.recall("use tabs", home=home) if line.type == "constraint"][:1]
    exported = operations_home.export(home=home)
    return {
        "startup": reported("SessionStart", session, source="startup"),
        "compact": reported("SessionStart", f"{session}c", source="compact"),
        "sub-agent": reported("SubagentStart", session, agent_id="a1", agent_type="Explore"),
        "prompt": reported(
            "UserPromptSubmit", f"{session}p", prompt="where is legacyFormat read?", prompt_id="p3"
        ),
        "search": json.dumps([hit["entry"] for hit in recall.search_memory("legacyFormat 7", home=home)]),
        "recall": " ".join(line.gist for line in lines),
        "timeline": " ".join(line.gist for line in recall.timeline(anchor, before=50, after=50, home=home)),
        "mcp recall": tools.recall("legacyFormat 7 support", home=home).text,
        "mcp get": tools.get([line.id for line in lines], home=home).text,
        "resources": server.sessions(home) + server.state(home),
        "layers": json.dumps(exported["documents"]),
    }


def test_a_compressed_rule_that_is_forgotten_by_its_id_appears_nowhere(reported):
    compacted(reported)
    graph.create_entities(
        [
            {
                "name": "app",
                "entityType": "project",
                "observations": ["We must support legacyFormat 7", "It is small."],
            }
        ],
        home=reported.home,
    )
    rule, *_ = [
        hit["id"] for hit in recall.search_memory(RULE, home=reported.home)
        if hit["type"] == "constraint" and hit["content"] == RULE
    ]  # fmt: skip
    before = everywhere(reported, "s3")
    assert {name for name, text in before.items() if STATEMENT not in text.casefold()} <= {"prompt"}

    planned = forget.preview_forget([rule], home=reported.home)
    done = forget.forget([rule], home=reported.home)

    assert planned.targets == done.targets
    layers = {target.layer for target in done.targets}
    assert layers == {"archive", "working_memory", "short_term_memory", "long_term_memory", "graph"}
    after = everywhere(reported, "s6")
    assert {name: text for name, text in after.items() if STATEMENT in text.casefold()} == {}
    assert [name for name in ("startup", "compact", "sub-agent") if "use tabs" not in after[name]] == []
    assert "It is small." in after["layers"]
    for target in done.targets:
        if target.layer in ("archive", "working_memory", "long_term_memory"):
            with pytest.raises(NotFound):
                tools.get([target.id], home=reported.home)
    assert [one for one in operations_home.examine(home=reported.home) if one.level == "error"] == []

    reported("Stop", "s3", last_assistant_message="Yes.")
    operations_home.undo(home=reported.home)

    assert "legacyFormat 7" in reported("SessionStart", "s4", source="startup")
    assert "legacyFormat 7" in json.dumps(snapshot.load(reported.home).documents["graph"])
