"""Timeline, conversations, archive, signals and phases as pages: what they show, and what their forms change."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import aether
from aether import clock
from aether.api import hook_sessions
from aether.errors import Conflict
from aether.store import conversations
from aether.store.snapshot import load
from aether.view.frame import link
from tests.view.test_report import HOSTILE, Tags

pytestmark = pytest.mark.extras


@pytest.fixture(autouse=True)
def _packages():
    pytest.importorskip("starlette.testclient")
    pytest.importorskip("leather")


@pytest.fixture
def reader(home):
    from tests.view.surfers import Reader

    return Reader(home)


def said(number):
    return [
        {"role": ("user", "assistant")[nth % 2], "content": f"Note {nth}. " * 60} for nth in range(number)
    ]


def old_talk(id="old-talk", days=400):
    at = clock.stamp(clock.now() - timedelta(days=days))
    texts = ["The webhook fails.", "It retries at once; we retry five times now."] * 4
    messages = [
        {"id": f"m{nth}", "role": ("user", "assistant")[nth % 2], "content": text, "timestamp": at}
        for nth, text in enumerate(texts)
    ]
    return {
        "id": id,
        "title": "Webhook",
        "created_at": at,
        "updated_at": at,
        "session_id": id,
        "messages": messages,
    }


def test_every_page_of_an_empty_home_says_what_to_do_first(reader):
    for path, words in (
        ("/timeline", "aether import PATH"), ("/conversations", "aether compact run FILE"),
        ("/archive", "aether archive add FILE"), ("/colony", "Emit one below"),
    ):  # fmt: skip
        page = reader.get(path)
        assert page.status_code == 200
        assert words in page.text, path


def test_the_timeline_is_by_day_with_filters_and_pages(home, reader):
    for nth in range(60):
        about = {
            "timestamp": f"2026-01-05T10:{nth:02}:00Z",
            "project": "/srv/shop",
            "conversation": "c1",
            "title": "Ship it",
        }
        aether.add_working_memory_item(f"Use file {nth}.", "decision", 0.9, metadata=about, home=home)
    aether.add_working_memory_item("Changed a.py", "code_change", 0.9, home=home)

    page = reader.get("/timeline")
    second = reader.get("/timeline?page=2&project=shop")
    changes = reader.get("/timeline?type=change")

    assert page.text.index("Use file 59.") < page.text.index("Use file 58.")
    assert "Use file 3." not in page.text
    assert "Use file 3." in second.text
    assert "Ship it" in page.text
    assert "Changed a.py" in changes.text
    assert "Use file" not in changes.text
    filtered = reader.get("/timeline?project=blog").text
    assert "Nothing happened" in filtered
    assert f"<bdi>{home.parent}</bdi>" in filtered, "the head names the project of the home, not the filter"
    assert "Nothing happened" in reader.get("/timeline?conversation=blog").text


def test_the_lines_of_a_transcript_are_shown_around_an_entry_without_secrets(
    home, reader, tmp_path, monkeypatch
):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    place = tmp_path / "claude" / "projects" / "-srv-shop"
    place.mkdir(parents=True)
    lines = [
        {"type": "user", "uuid": f"u{nth}", "timestamp": f"2026-01-05T10:{nth:02}:00Z", "message": {"role": "user", "content": f"Line {nth}, password=hunter2hunter2"}}
        for nth in range(40)
    ]  # fmt: skip
    (place / "s1.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    entry = aether.add_working_memory_item(
        "Use one file.", "decision", 0.9, metadata={"pointer": {"file": "s1.jsonl", "line": 20}}, home=home
    )

    page = reader.get(f"/around/{entry}").text

    assert "Line 19," in page
    assert "Line 2," not in page
    assert "hunter2" not in page
    noted = aether.add_working_memory_item(
        "Use no other.", "decision", 0.9,
        metadata={"pointer": {"file": "s1.jsonl", "via": "hooks"}, "timestamp": "2026-01-05T10:20:00Z"}, home=home,
    )  # fmt: skip
    page = reader.get(f"/around/{noted}").text
    assert "Line 20," in page
    assert "Line 2," not in page
    (place / "s1.jsonl").unlink()
    assert "is not among those of Claude Code on this machine" in reader.get(f"/around/{entry}").text


def test_a_pointer_to_another_file_opens_nothing(home, reader, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "secret.jsonl").write_text(
        '{"type": "user", "message": {"role": "user", "content": "hidden words"}}'
    )
    for file in ("../secret.jsonl", str(tmp_path / "secret.jsonl"), "..", "*.jsonl", ""):
        entry = aether.add_working_memory_item(
            f"Use {file}.", "decision", 0.9, metadata={"pointer": {"file": file, "line": 1}}, home=home
        )
        assert "hidden words" not in reader.get(f"/around/{entry}").text


def test_a_compaction_is_shown_side_by_side_and_undone_once(home, reader):
    aether.compact("talk/1", said(44), window=8000, home=home)

    listed = reader.get("/conversations").text
    page = reader.get("/conversation/talk/1")
    step = reader.get("/conversation/talk/1?step=1")

    assert 'href="/conversation/talk/1"' in listed
    assert "Tokens saved as a table" in reader.get("/charts").text
    assert "not in the context" in page.text
    for words in ("Tokens before", "removed", "added", "the same"):
        assert words in step.text, words
    assert "Compaction 1 is undone" in reader.follow(reader.submit(page, "undo-compaction")).text
    assert len(aether.api.conversations.context("talk/1", home=home)) == 44
    assert reader.submit(step, "undo-compaction").status_code in (404, 409), "another window is behind"


def test_two_clicks_undo_one_compaction(home, reader):
    aether.compact("talk", said(60), window=8000, home=home)
    context = aether.api.conversations.context("talk", home=home)
    aether.compact("talk", [*context, *said(60)], window=8000, home=home)
    page, window = reader.get("/conversation/talk"), reader.get("/conversation/talk")

    first, second = (reader.submit(page, "undo-compaction") for _ in range(2))

    assert first.headers["location"] == second.headers["location"]
    assert list(conversations.load(home, "talk").open) == [1]
    assert reader.submit(window, "undo-compaction").status_code == 409
    with pytest.raises(Conflict, match="is 1, not 2"):
        aether.undo_compaction("talk", step=2, home=home)
    assert list(conversations.load(home, "talk").open) == [1]


def test_two_clicks_are_one_action(home, reader):
    """Of every form: the second click of one page gets the answer of the first, and changes nothing."""
    aether.archive_conversations([old_talk()], home=home)
    entry = aether.add_working_memory_item("Use one file.", "decision", 0.9, home=home)
    for action, path, given in (
        ("emit", "/colony", {"type": "FOCUS", "context": "The parser"}),
        ("start-phase", "/colony", {"phase": "1", "name": "Build"}),
        ("complete-phase", "/colony", {}),
        ("decide", "/colony", {"decision": "continue"}),
        ("age", "/archive", {}),
        ("restore", "/archive", {}),
        ("mark", "/archive", {}),
        ("protect", f"/entry/{entry}", {}),
        ("correct", f"/entry/{entry}", {"text": "Use two files.", "type": "decision", "relevance": "0.9"}),
        ("undo", f"/entry/{entry}", {}),
        ("forget", f"/entry/{entry}", {}),
    ):
        page = reader.get(path)
        first = reader.submit(page, action, **given)
        after = load(home).revision
        second = reader.submit(page, action, **given)
        assert first.status_code == 303, (action, first.text)
        assert second.headers["location"] == first.headers["location"], action
        assert load(home).revision == after, action
    assert [one["type"] for one in aether.active_signals(home=home)].count("FOCUS") == 1


def test_a_conversation_is_exported_as_a_file(home, reader):
    aether.compact("../talk", said(60), window=8000, home=home)

    answer = reader.get("/conversation/../talk?export=markdown".replace("../", "%2E%2E/"))
    if answer.status_code == 200:
        assert answer.headers["content-disposition"] == 'attachment; filename="..-talk.md"'
        assert "Note 0." in answer.text
    assert reader.get("/conversation/none?export=json").status_code == 404


def test_an_export_and_a_conversation_hold_no_secret(home, reader):
    secret = "sk-ant-api03-" + "Ab3" * 30
    messages = [{"role": "user", "content": f"The key is {secret} of ACME-12345."}, *said(59)]
    aether.compact("talk", messages, window=8000, home=home)
    (home / "config.toml").write_text('[redaction]\npatterns = ["ACME-[0-9]+"]\n')

    for path in ("?export=markdown", "?export=json", "", "?step=1"):
        page = reader.get(f"/conversation/talk{path}")
        assert page.status_code == 200
        assert "The key is" in page.text or path == "?step=1"
        assert secret not in page.text, path
        assert "ACME-12345" not in page.text, path


def test_the_archive_explains_marks_ages_by_its_plan_and_restores(home, reader):
    aether.archive_conversations([old_talk()], home=home)

    page = reader.get("/archive")
    assert "1 conversation would lose detail now" in page.text
    assert "<b>Why:</b>" in page.text
    assert "is marked" in reader.follow(reader.submit(page, "mark")).text

    assert reader.submit(page, "age").status_code == 409, "the plan has changed"
    reader.submit(reader.get("/archive"), "mark")
    done = reader.follow(reader.submit(reader.get("/archive"), "age")).text
    assert "1 conversation aged." in done
    assert aether.list_archived(home=home)[0].level != "full"
    assert (
        "exactly as it was archived" in reader.follow(reader.submit(reader.get("/archive"), "restore")).text
    )


def test_signals_and_phases_are_emitted_started_completed_and_decided(home, reader):
    reader.follow(
        reader.submit(reader.get("/colony"), "emit", type="FOCUS", context="The parser", strength="0.8")
    )
    reader.follow(
        reader.submit(reader.get("/colony"), "start-phase", phase="1", name="Build", goal="A parser")
    )
    page = reader.get("/colony")

    assert [(one["type"], one["context"]) for one in aether.active_signals(home=home)] == [
        ("FOCUS", "The parser")
    ]
    assert 'role="img"' in page.text
    assert aether.log(limit=1, home=home)[0].by == "viewer"
    reader.follow(reader.submit(page, "complete-phase"))
    assert reader.submit(reader.get("/colony"), "decide", phase="7", decision="redo").status_code == 409
    reader.follow(reader.submit(reader.get("/colony"), "decide", decision="continue", note="Good."))
    assert aether.colony(home=home)["colony_status"]["queen_checkin"]["queen_decision"] == "continue"
    for fields in ({"strength": "strong"}, {"type": "SHOUT"}, {"context": ""}):
        given = {"type": "FOCUS", "context": "x"} | fields
        assert reader.post("emit", **given).status_code == 400, fields


def test_hostile_text_is_text_on_every_page(home, reader):
    name = f"talk {HOSTILE[2]} {HOSTILE[5]}"
    entries = []
    for text in HOSTILE:
        about = {"title": text, "project": text, "conversation": text, "pointer": {"file": text, "line": 1}}
        entries.append({"content": text, "type": "decision", "caste": text[:60], "metadata": about})
    first, *_ = aether.add_working_memory_items(entries, home=home)
    messages = [
        {**one, "content": f"{HOSTILE[nth % 8]} {one['content']}"} for nth, one in enumerate(said(60))
    ]
    aether.compact(name, messages, window=8000, home=home)
    aether.archive_conversations([{**old_talk(), "title": " ".join(HOSTILE)}], home=home)
    aether.emit_signal("FEEDBACK", " ".join(HOSTILE), home=home)
    aether.start_phase(1, name=HOSTILE[0], goal=HOSTILE[2], home=home)
    paths = ["/timeline", "/conversations", "/archive", "/colony", f"/around/{first}"]
    paths += ["/live-sessions", "/graph", *(link(f"/thread/{text}", {}) for text in HOSTILE if text)]
    hook_sessions.start_injected(home, "s-1", HOSTILE)
    paths += [link(f"/conversation/{name}", query) for query in ({}, {"step": 1})]

    for path in paths:
        page = reader.get(path)
        assert page.status_code == 200, path
        assert "\u202e" not in page.text
        for tag, attributes in Tags(page.text).found:
            assert tag != "img" or attributes["src"].startswith("/static/"), path
            assert tag != "script" or attributes["src"].startswith("/static/"), path
            assert not [name for name in attributes if name.startswith("on") or name == "style"], path


def test_a_read_only_view_has_no_forms_that_change(home):
    from tests.view.surfers import Reader

    aether.compact("talk", said(60), window=8000, home=home)
    aether.archive_conversations([old_talk()], home=home)
    reader = Reader(home, read_only=True)

    for path in (
        "/timeline",
        "/live-sessions",
        "/conversation/talk",
        "/conversation/talk?step=1",
        "/archive",
        "/colony",
    ):
        page = reader.get(path)
        assert page.status_code == 200, path
        assert 'action="/do/' not in page.text, path
    assert reader.post("undo-compaction", conversation="talk", step="1").status_code >= 400
    assert len(aether.api.conversations.context("talk", home=home)) < 60
