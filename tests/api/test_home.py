"""Home access: find, read, change, drain first, export the events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import aether
from aether.api import home as api_home
from aether.api import telemetry
from aether.errors import NotFound, StorageFailed
from aether.memory import signals
from aether.store import snapshot, spool
from aether.types import Change
from tests import homes
from tests.events import viewers
from tests.hook_player import put, turn
from tests.memory.states import plain
from tests.tables import rows


def test_a_home_is_found_by_name_by_environment_and_from_below(home, monkeypatch):
    below = home.parent / "src" / "deep"
    below.mkdir(parents=True)

    assert api_home.find(home) == api_home.find(str(home)) == api_home.find(home.parent) == home
    monkeypatch.setenv("AETHER_HOME", str(home))
    assert api_home.find(None) == home
    monkeypatch.delenv("AETHER_HOME")
    monkeypatch.chdir(below)
    assert api_home.find(None) == home


def test_a_change_is_committed_once_and_read_back(home):
    patch = [{"op": "replace", "path": "/metrics/total_compressions", "value": 7}]

    done = api_home.change(home, lambda _: Change({"memory": patch}, result="told"), api_home.Author("test"))

    assert (done.result, done.changed) == ("told", True)
    assert api_home.read(home).documents["memory"]["metrics"]["total_compressions"] == 7
    assert api_home.read(home).revision == done.revision


def test_the_counter_is_the_one_that_the_home_records(home):
    memory = api_home.read(home).documents["memory"]

    once = api_home.counter_of(memory)("Use JSON for the state of the colony")
    twice = api_home.counter_of({"token_counter": {"counter": "estimate", "factor": 2.0}})(
        "Use JSON for the state of the colony"
    )

    assert once > 0
    assert twice == pytest.approx(2 * once, abs=1)


def test_a_data_directory_of_somebody_else_is_no_home(tmp_path):
    (tmp_path / "project" / "data").mkdir(parents=True)
    (tmp_path / "project" / "data" / "sales.csv").write_text("1")

    with pytest.raises(NotFound, match="is not a home"):
        aether.add_working_memory_item("x", "note", home=tmp_path / "project")
    assert [path.name for path in (tmp_path / "project" / "data").iterdir()] == ["sales.csv"]


@rows("command", [aether.init, aether.list_working_memory_items, aether.examine, aether.log])
def test_a_file_is_no_home_and_no_advice_is_to_make_one_there(tmp_path, command):
    (tmp_path / "file").write_text("1")

    with pytest.raises(NotFound, match=r"is a file, not a home\. Name a directory"):
        command(home=tmp_path / "file")


def test_a_home_that_may_not_be_looked_into_is_not_said_to_be_none(tmp_path, monkeypatch):
    place = aether.init(tmp_path / ".aether")
    real = os.stat

    def closed(path, *args, **kwargs):
        if str(path).startswith(f"{place}/data"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", closed)

    with pytest.raises(StorageFailed, match="Permission denied"):
        aether.list_working_memory_items(home=place)


def test_the_home_in_a_project_is_meant_although_the_project_has_data_of_its_own(tmp_path):
    (tmp_path / "project" / "data").mkdir(parents=True)
    place = aether.init(tmp_path / "project" / ".aether")

    aether.add_working_memory_item("x", "note", home=tmp_path / "project")

    assert len(aether.list_working_memory_items(home=place)) == 1


def spoil(value):
    """Change everything in `value` that can be changed."""
    if isinstance(value, dict):
        for below in list(value.values()):
            spoil(below)
        value["spoilt"] = True
    elif isinstance(value, list | tuple):
        for below in value:
            spoil(below)
        if isinstance(value, list):
            value.append("spoilt")


@pytest.mark.parametrize(
    "call",
    [
        lambda home: aether.emit_signal("FEEDBACK", "well done", metadata={"a": [1]}, home=home),
        lambda home: aether.trigger_phase_boundary_compression(1, plain("s1"), home=home),
        lambda home: aether.export(home=home),
        lambda home: aether.show("memory", home=home),
        lambda home: aether.show("memory", revision=1, home=home),
        lambda home: aether.register_worker("w1", home=home),
        lambda home: aether.transition_state("INIT", home=home),
        lambda home: aether.colony(home=home),
        lambda home: aether.search_memory("note", home=home),
        lambda home: aether.list_working_memory_items(home=home),
    ],
)
def test_a_caller_never_holds_a_part_of_the_state(home, call):
    """The state is shared between calls: to change it would write a change that no journal knows."""
    aether.add_working_memory_item("a note", "note", metadata={"deep": {"list": [1]}}, home=home)

    spoil(call(home))

    cached = snapshot.load(home)
    assert "spoilt" not in json.dumps([cached.documents, cached.pending])


def test_spooled_events_are_drained_before_a_read_or_a_change(home):
    put(home, *turn(1))
    assert len(api_home.read(home).documents["memory"]["working_memory"]["items"]) == 3
    put(home, *turn(2))

    seen = []
    api_home.change(home, lambda documents: seen.append(documents) or Change({}), api_home.Author("look"))

    assert len(seen[0]["memory"]["working_memory"]["items"]) == 6
    assert spool.waiting(str(home)) == []


def test_with_an_empty_spool_nothing_is_imported(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "aether.api.drain", None)

    assert api_home.drained(home) == home


def test_an_edit_by_hand_is_its_own_change_by_hand_although_a_hook_finds_it(home):
    path = home / "data" / "memory.json"
    aether.fold(home=home)
    document = json.loads(path.read_bytes())
    document["edited"] = 1
    path.write_text(json.dumps(document))

    change = Change({"memory": [{"op": "add", "path": "/noted", "value": 1}]})
    api_home.change(home, lambda documents: change, api_home.Author("note", by="hook"))

    assert [line.by for line in aether.log(limit=2, home=home)] == ["hook", "hand"]


ROOT = Path(__file__).parents[2]


def configured(home, **settings):
    """Write the `[telemetry]` table of the home."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    homes.configure(home, "\n".join(["[telemetry]", *lines]))
    return home


def exported(home, name="telemetry.jsonl"):
    path = home / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def withdrawn(home, context="the parser"):
    """Emit a signal and take it back: a change with an event."""
    signal = aether.emit_signal("FOCUS", context, home=home)
    api_home.change(
        home,
        lambda documents: signals.withdraw(documents["pheromones"], [signal["id"]], now=api_home.now()),
        api_home.Author("test"),
    )
    return signal


def test_without_a_configuration_nothing_leaves(home, capsys):
    withdrawn(home)

    assert capsys.readouterr() == ("", "")
    assert not (home / "telemetry.jsonl").exists()
    assert telemetry.exporter_of(home) is None


def test_the_events_of_a_change_are_exported_after_its_commit(home):
    configured(home, exporter="file")

    signal = withdrawn(home)

    (event,) = exported(home)
    assert event["event"] == "memory.signal_withdrawn"
    assert (event["signal_id"], event["signal_type"]) == (signal["id"], "FOCUS")
    assert event["session_id"] == telemetry.colony_session_id(home)


def test_a_compression_is_exported(home):
    configured(home, exporter="file")
    aether.add_working_memory_item("We decided to use JSON.", "decision", home=home)

    aether.trigger_phase_boundary_compression(1, plain("s1"), home=home)

    assert "memory.compressed" in [event["event"] for event in exported(home)]


def test_texts_do_not_leave(home):
    configured(home, exporter="file", path="one.jsonl")
    withdrawn(home, "use api_key=sk-abc123")

    assert "payload" not in exported(home, "one.jsonl")[0]


def test_several_exporters_at_once_and_one_that_cannot_be(home, capsys):
    configured(home, exporter="syslog, console,file , ariadne", ariadne_url="ftp://nowhere")

    withdrawn(home)
    withdrawn(home)

    shown = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["event"] for line in shown if line.startswith("{")] == [
        "memory.signal_withdrawn"
    ] * 2
    assert len(exported(home)) == 2
    reported = [line for line in shown if line.startswith("[telemetry]")]
    assert len(reported) == 2  # once for each that cannot be, not for each change
    assert "'syslog' is not an exporter" in reported[0]


def test_a_change_is_kept_if_the_export_of_its_events_fails(home, capsys):
    (home / "telemetry").mkdir()
    configured(home, exporter="file", path="telemetry")

    signal = withdrawn(home)

    assert signal["id"] not in [held["id"] for held in aether.active_signals(home=home)]
    assert "[telemetry]" in capsys.readouterr().err


def test_a_rejected_change_exports_nothing(home):
    configured(home, exporter="file")

    with pytest.raises(aether.AetherError):
        aether.complete_phase(-1, home=home)

    assert exported(home) == []


def test_a_command_that_ends_at_once_still_delivers(home):
    with viewers.viewer() as found:
        configured(home, exporter="ariadne", ariadne_url=found.url, timeout_seconds=20)
        code = "import sys\nfrom tests.api.test_home import withdrawn\nwithdrawn(sys.argv[1])"
        ran = subprocess.run(
            [sys.executable, "-c", code, str(home)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )  # fmt: skip

    assert ran.stderr == ""
    assert [span["name"] for span in found.spans] == ["memory.signal_withdrawn"]
    assert found.traces[0]["name"] == telemetry.colony_session_id(home)


def test_to_add_an_item_imports_no_exporter(home):
    code = (
        "import sys, aether\naether.add_working_memory_item('x', 'note', home=sys.argv[1])\n"
        "print([name for name in sys.modules if name.startswith(('aether.events', 'aether.redact'))])"
    )
    listed = subprocess.run(
        [sys.executable, "-c", code, str(home)],
        cwd=ROOT, capture_output=True, text=True, check=True, env=homes.plain_environment(),
    )  # fmt: skip

    assert listed.stdout.strip() == "[]"
