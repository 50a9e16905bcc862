import json
import subprocess
import sys
from pathlib import Path

import pytest

import aether
from aether.api import home as api_home
from aether.api import telemetry
from aether.memory import signals
from tests import homes
from tests.events import viewers
from tests.memory.states import answer

ROOT = Path(__file__).parents[2]


def configured(home, **settings):
    """Write the `[telemetry]` table of the home."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (home / "config.toml").write_text("\n".join(["[telemetry]", *lines]))
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


def test_the_events_of_a_change_are_exported_when_it_stands(home):
    configured(home, exporter="file")

    signal = withdrawn(home)

    (event,) = exported(home)
    assert event["event"] == "memory.signal_withdrawn"
    assert (event["signal_id"], event["signal_type"]) == (signal["id"], "FOCUS")
    assert event["session_id"] == telemetry.colony_session_id(home)


def test_a_compression_is_told(home):
    configured(home, exporter="file")
    aether.add_working_memory_item("We decided to use JSON.", "decision", home=home)

    aether.trigger_phase_boundary_compression(1, answer("s1"), home=home)

    assert "memory.compressed" in [event["event"] for event in exported(home)]


def test_texts_leave_only_when_asked_for_and_never_with_a_secret(home):
    configured(home, exporter="file", path="one.jsonl")
    withdrawn(home)
    configured(home, exporter="file", path="two.jsonl", content=True)

    withdrawn(home, "use api_key=sk-abc123")

    assert "payload" not in exported(home, "one.jsonl")[0]
    text = json.dumps(exported(home, "two.jsonl")[0]["payload"])
    assert "sk-abc123" not in text
    assert "api_key=<REDACTED>" in text


def test_several_exporters_at_once_and_one_that_cannot_be(home, capsys):
    configured(home, exporter="syslog, console,file , ariadne", ariadne_url="ftp://nowhere")

    withdrawn(home)
    withdrawn(home)

    shown = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["event"] for line in shown if line.startswith("{")] == [
        "memory.signal_withdrawn"
    ] * 2
    assert len(exported(home)) == 2
    told = [line for line in shown if line.startswith("[telemetry]")]
    assert len(told) == 2  # once for each that cannot be, not for each change
    assert "'syslog' is not an exporter" in told[0]


def test_the_change_stands_whatever_becomes_of_its_events(home, capsys):
    (home / "telemetry").mkdir()
    configured(home, exporter="file", path="telemetry")

    signal = withdrawn(home)

    assert signal["id"] not in [held["id"] for held in aether.active_signals(home=home)]
    assert "[telemetry]" in capsys.readouterr().err


def test_a_change_that_is_refused_tells_nothing(home):
    configured(home, exporter="file")

    with pytest.raises(aether.AetherError):
        aether.complete_phase(-1, home=home)

    assert exported(home) == []


def test_the_file_of_events_is_no_trouble_to_the_home(home):
    configured(home, exporter="file")
    withdrawn(home)

    assert [finding for finding in aether.examine(home=home) if finding.level == "error"] == []


def test_a_command_that_ends_at_once_still_delivers(home):
    with viewers.viewer() as found:
        configured(home, exporter="ariadne", ariadne_url=found.url, timeout_seconds=20)
        code = "import sys\nfrom tests.api.test_telemetry import withdrawn\nwithdrawn(sys.argv[1])"
        ran = subprocess.run(
            [sys.executable, "-c", code, str(home)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )  # fmt: skip

    assert ran.stderr == ""
    assert [span["name"] for span in found.spans] == ["memory.signal_withdrawn"]
    assert found.traces[0]["name"] == telemetry.colony_session_id(home)


def test_two_colonies_of_one_name_are_two():
    here, there = (telemetry.colony_session_id(Path(place) / "shop" / ".aether") for place in ("/a", "/b"))

    assert here.startswith("colony-shop-")
    assert here != there
    assert telemetry.colony_session_id(Path("/a/home")).startswith("colony-home-")


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
