"""What goes wrong with aether is no trouble of the session; and what was said meanwhile is not lost."""

from __future__ import annotations

import threading

import pytest

from aether.store.files import locked
from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import briefed, colony, complaints, items, memory
from tests.e2e.claude_code.server import call, calls, plot, say
from tests.e2e.claude_code.test_installing import PLUGIN

pytestmark = pytest.mark.slow

CONSTRAINT = "Never ship on a Friday."
TALK = plot(
    {
        "Pack the boxes": [
            calls(
                call("Bash", command="pack_boxes", description="Pack"),
                call("Bash", command="echo", description="x"),
            ),
            say("I decided to pack by weight, because the van tips over."),
        ]
    },
    summary=say("<summary>The boxes are packed by weight.</summary>"),
)


@pytest.fixture
def at(stage):
    return stage(TALK)


@pytest.fixture
def project(at):
    made = driver.project(at)
    driver.run(at, made, ["aether", "claude", "install", "--project"])
    driver.ask(at, made, "Hello")
    return made


def untouched(at, project, *options):
    """Play a session with a compaction, and see that it goes as it would without aether."""
    before = len(at.api.requests)
    first = driver.ask(at, project, f"Pack the boxes. {CONSTRAINT}", *options)
    compacted = driver.ask(at, project, "/compact", "--resume", first.id, *options)
    last = driver.ask(at, project, "Go on.", "--resume", first.id, *options)

    assert complaints(first) + complaints(compacted) + complaints(last) == []
    requests = at.api.requests[before:]
    assert [(request.kind, request.step) for request in requests] == [
        ("main", 0), ("main", 1), ("summary", 0), ("main", 0)
    ]  # fmt: skip
    assert not [
        request.text for request in requests if "Traceback" in request.text or "hook.log" in request.text
    ]
    assert [
        event["compact_result"] for event in compacted.system("status") if event.get("compact_result")
    ] == ["success"]
    return requests


def assert_remembered(at, project):
    texts = [item["content"] for item in items(colony(at, project))]
    assert any("ship on a Friday" in text for text in texts), texts
    assert any("pack by weight" in text for text in texts), texts


def test_a_home_that_cannot_be_read(at, project):
    document = project / ".aether" / "data" / "memory.json"
    good = document.rename(project.parent / "good")
    document.mkdir()

    untouched(at, project)

    assert (project / ".aether" / "hook.log").read_text()
    document.rmdir()
    good.rename(document)
    assert_remembered(at, project)


def test_a_document_that_is_damaged(at, project):
    (project / ".aether" / "data" / "memory.json").write_text("this is { no JSON")

    untouched(at, project)

    assert_remembered(at, project)


def test_a_home_that_somebody_else_holds(at, project):
    done = threading.Event()
    held = threading.Event()

    def hold():
        with locked(project / ".aether"):
            held.set()
            done.wait(driver.PATIENCE * 3)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        untouched(at, project)
    finally:
        done.set()
        holder.join()

    assert_remembered(at, project)


def test_a_home_that_cannot_be_written(at, project):
    spool = project / ".aether" / "hooks"
    aside = project.parent / "hooks"
    spool.rename(aside)
    spool.write_text("a file where a directory belongs")

    requests = untouched(at, project)

    assert all(memory(request).count("pack by weight") <= 1 for request in requests)


def test_a_file_where_the_home_belongs(at):
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--user"])
    (project / ".aether").write_text("a file")

    requests = untouched(at, project)

    assert [briefed(request) for request in requests] == [[]] * len(requests)
    assert (project / ".aether").read_text() == "a file"


def test_a_plugin_without_the_program(at):
    project = driver.project(at)
    for name in driver.SCRIPTS:
        (at.programs / name).unlink()

    requests = untouched(at, project, "--plugin-dir", str(PLUGIN))

    assert [briefed(request) for request in requests] == [[]] * len(requests)


def test_a_program_that_dies(at):
    project = driver.project(at)
    (at.programs / "aether-hook").write_text("#!/bin/sh\nkill -9 $$\n")
    session = driver.ask(at, project, "Pack the boxes.", "--plugin-dir", str(PLUGIN))

    assert session.result == "I decided to pack by weight, because the van tips over."
    assert not session.error


def test_a_paused_memory_keeps_and_injects_nothing(at, project):
    driver.run(at, project, ["aether", "claude", "pause"])
    requests = untouched(at, project)
    driver.run(at, project, ["aether", "claude", "pause", "--resume"])

    assert [briefed(request) for request in requests] == [[]] * len(requests)
    assert not [item for item in items(colony(at, project)) if "Friday" in item["content"]]
