"""Replies: which operation each event calls, with what, and when none."""

from __future__ import annotations

import pytest

from aether.api import admin as operations_home
from aether.api import briefing, compress, drain, recall, working
from aether.api.drain import Drained
from aether.errors import Conflict
from aether.integrations.claude_code import reply as claude_code_reply
from tests import homes
from tests.hook_player import entry, put


@pytest.fixture
def home(tmp_path):
    return homes.fresh(tmp_path)


@pytest.fixture
def calls(monkeypatch):
    """What was called, by name; nothing of it is done."""
    seen = []

    def stand_in(module, name, result):
        monkeypatch.setattr(
            module, name, lambda *given, **named: seen.append((name, *given[1:], *named.values())) or result
        )

    stand_in(drain, "drain", Drained(0, [], compression_needed=False, left=""))
    stand_in(briefing, "session_brief", "brief")
    stand_in(briefing, "subagent_brief", "agent brief")
    stand_in(briefing, "compaction_steering", "keep this")
    stand_in(recall, "prompt_recall", "recalled")
    stand_in(compress, "ingest_summary", None)
    stand_in(working, "check_token_threshold", result=False)
    return seen


def reply(home, event, *, left=8.0, note=None, **more):
    return claude_code_reply.reply(
        event, {"session": "s", **more}, str(home), left=left, note=note or (lambda what: None)
    )


@pytest.mark.parametrize(
    ("event", "given", "done", "said"),
    [
        ("SessionStart", {"source": "compact"}, [("drain",), ("session_brief", "compact", "s")], "brief"),
        ("SubagentStart", {"caste": "scout"}, [("subagent_brief", "scout")], "agent brief"),
        ("SubagentStop", {}, [("drain",)], ""),
        ("PreCompact", {}, [("drain",), ("compaction_steering", "s", "hook")], "keep this"),
        (
            "PostCompact",
            {"summary": "All.", "trigger": "auto"},
            [("ingest_summary", "All.", "s", "auto", "hook")],
            "",
        ),
        ("PostCompact", {}, [], ""),
        ("UserPromptSubmit", {}, [], ""),
        ("Stop", {"stop_hook_active": True}, [], ""),
        ("SessionEnd", {}, [], ""),
    ],
)
def test_each_event_calls_its_operations(home, calls, event, given, done, said):
    assert reply(home, event, **given) == said
    assert calls == done


def test_a_prompt_is_answered_with_what_matches_it(home, calls):
    assert reply(home, "UserPromptSubmit", prompt="Which database?") == "recalled"
    assert [(name, 400 in given, "s" in given) for name, *given in calls] == [("prompt_recall", True, True)]


@pytest.mark.parametrize(
    ("key", "event", "given"),
    [
        ("inject", "SessionStart", {}),
        ("inject", "SubagentStart", {}),
        ("recall", "UserPromptSubmit", {"prompt": "x"}),
    ],
)
def test_what_is_switched_off_is_not_told(home, calls, key, event, given):
    (home / "config.toml").write_text(f"[claude]\n{key} = false\n")

    assert reply(home, event, **given) == ""
    assert [name for name, *_ in calls if name != "drain"] == []


def test_what_stays_in_the_spool_is_noted(home, calls, monkeypatch):
    monkeypatch.setattr(drain, "drain", lambda home: Drained(0, [], compression_needed=False, left="locked"))
    noted = []

    reply(home, "SubagentStop", note=noted.append)

    assert noted == ["waits in the spool: locked"]


def full(home):
    """Fill working memory of `home` beyond its threshold."""
    for nth in range(3):
        homes.add(home, f"i{nth}", tokens=70_000)


def test_a_full_memory_is_compressed_when_a_turn_ends(home, monkeypatch):
    asked = []
    monkeypatch.setattr(
        compress, "compress", lambda phase, **named: asked.append((phase, named["architect"]))
    )
    full(home)

    reply(home, "Stop")

    assert asked == [(1, "extractive")]


@pytest.mark.parametrize("why", ["off", "late", "not full"])
def test_it_is_not_compressed_where_it_is_switched_off_late_or_not_full(home, monkeypatch, why):
    asked = []
    monkeypatch.setattr(compress, "compress", lambda *given, **named: asked.append(given))
    if why != "not full":
        full(home)
    if why == "off":
        (home / "config.toml").write_text("[claude]\nauto_compress = false\n")

    reply(home, "Stop", left=1.0 if why == "late" else 8.0)

    assert asked == []


def test_what_waits_is_taken_in_for_real(home):
    put(home, entry("UserPromptSubmit", prompt="Please always use SQLite for the state.", prompt_id="p1"))

    reply(home, "SubagentStop")

    assert "SQLite" in str(working.list_working_memory_items(home=home))


def test_what_a_hook_does_of_itself_is_not_what_undo_takes_back(home):
    asked = str(working.add_working_memory_item("Never use tabs.", "constraint", home=home))
    put(home, entry("UserPromptSubmit", prompt="Please always use SQLite for the state.", prompt_id="p1"))

    reply(home, "PreCompact")
    reply(home, "PostCompact", summary="Chose SQLite. " * 20, trigger="manual")

    made = [(line.operation, line.by) for line in operations_home.log(home=home)]
    assert made[:3] == [("compress", "hook"), ("prepare", "hook"), ("capture", "hook")]
    with pytest.raises(Conflict, match="changed again by revision"):
        operations_home.undo(home=home)
    operations_home.undo(operations_home.log(limit=1, home=home)[0].revision, home=home)
    assert asked in str(working.list_working_memory_items(home=home))
