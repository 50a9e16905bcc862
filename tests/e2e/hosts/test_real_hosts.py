"""The real agents against a model on this machine: what one of them hears is remembered, and the next gets it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from aether.api import enforcing, working
from aether.hosts import installing, programs
from tests import homes
from tests.e2e.hosts.models import ANSWER, COMMAND, model

pytestmark = pytest.mark.slow
REQUEST = "Never rename a public field. Run the check."
SECONDS = 120
HOOK = programs.own_script("aether-hook")


def codex(user, address):
    """Return the command for a request, with the settings that lead Codex to `address`."""
    provider = (
        f'name = "mock"\nbase_url = "{address}/v1"\nwire_api = "responses"\nrequires_openai_auth = false\n'
    )
    text = f'model = "mock"\nmodel_provider = "mock"\n[model_providers.mock]\n{provider}'
    (user / ".codex" / "config.toml").write_text(text)
    return ["codex", "exec", "--dangerously-bypass-hook-trust", "--sandbox", "danger-full-access"], {}


def gemini_cli(user, address):
    """Return the command for a request, with the settings that lead Gemini to `address`."""
    path = user / ".gemini" / "settings.json"
    settings = {**json.loads(path.read_text()), "security": {"auth": {"selectedType": "gemini-api-key"}}}
    path.write_text(json.dumps(settings))
    variables = {
        "GEMINI_API_KEY": "k",
        "GOOGLE_GEMINI_BASE_URL": address,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return ["gemini", "--yolo", "--skip-trust", "-m", "gemini-2.5-flash", "-p"], variables


def copilot(user, address):
    """Return the command for a request, with the settings that lead Copilot to `address`."""
    names = {
        "BASE_URL": f"{address}/v1",
        "TYPE": "openai",
        "API_KEY": "k",
        "MODEL_ID": "mock",
        "WIRE_MODEL": "mock",
    }
    variables = {f"COPILOT_PROVIDER_{name}": value for name, value in names.items()}
    return ["copilot", "--allow-all-tools", "-p"], {**variables, "COPILOT_MODEL": "mock", "COPILOT_OFFLINE": "true"}  # fmt: skip


def opencode(user, address):
    """Return the command for a request, with the settings that lead opencode to `address`."""
    limits = {"context": 100_000, "output": 4_000}
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": f"{address}/v1", "apiKey": "k"},
        "models": {"mock": {"name": "mock", "limit": limits, "tool_call": True}},
    }  # fmt: skip
    config = {
        "model": "mock/mock",
        "small_model": "mock/mock",
        "autoupdate": False,
        "provider": {"mock": provider},
    }
    (user / ".config" / "opencode" / "opencode.json").write_text(
        json.dumps({**config, "permission": "allow"})
    )
    return ["opencode", "run"], {}


HOSTS = {"codex": codex, "gemini-cli": gemini_cli, "copilot": copilot, "opencode": opencode}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a request in a host with a user of its own, and return what the model was sent."""
    user, project = tmp_path / "user", tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    path = os.pathsep.join(filter(None, [os.environ.get("AETHER_TEST_HOSTS"), os.environ["PATH"]]))
    bare = {"HOME": str(user), "PATH": path, "TERM": "xterm", "LANG": "C.UTF-8", "CI": "1"}
    for name in ("CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "AETHER_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.chdir(project)

    def run(host, request):
        program = host.partition("-")[0]
        if not shutil.which(program, path=path):
            pytest.skip(f"{program} is not here: put it on PATH, or its directory in AETHER_TEST_HOSTS")
        installing.install(host, "user")
        with model() as (address, requests):
            words, variables = HOSTS[host](user, address)
            done = subprocess.run(
                [*words, request], env={**bare, **variables}, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        assert ANSWER in done.stdout, done.stderr
        return requests

    return run


@pytest.mark.skipif(not HOOK, reason="aether is not installed as programs here")
@pytest.mark.parametrize("host", HOSTS)
def test_a_session_is_remembered_and_the_next_one_gets_memory(run, host):
    assert "public field" not in "".join(run(host, "Say what the cache is.")[:1])
    run(host, REQUEST)

    home = Path(".aether").resolve()
    items = working.list_working_memory_items(home=home)
    [rule] = [item for item in items if REQUEST in item["content"]]
    assert rule["metadata"]["evidence"] == "person"
    assert rule["metadata"]["pointer"]["host"] == host
    assert ANSWER in [item["content"] for item in items]
    memory = "".join(run(host, "Which fields may I rename?"))
    assert "aether-memory" in memory
    assert "Never rename a public field" in memory
    assert not (home / "hook.log").exists()


@pytest.mark.skipif(not HOOK, reason="aether is not installed as programs here")
@pytest.mark.parametrize("host", HOSTS)
def test_a_rule_of_the_person_stops_a_command(run, host, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user" / ".local" / "state"))
    home = homes.fresh(Path.cwd())
    rule = {"type": "constraint", "metadata": {"evidence": "person"}}
    entry = working.add_working_memory_item("Never print made-it.", home=home, **rule)
    enforcing.enforce_rule(entry, command=COMMAND, home=home)

    requests = run(host, "Run the check.")

    assert "Never print made-it." in requests[-1]
    assert "aether rule relax" in requests[-1]
    assert "\\nmade-it" not in requests[-1]


@pytest.mark.skipif(not HOOK, reason="aether is not installed as programs here")
def test_what_one_host_heard_another_knows(run):
    run("codex", REQUEST)

    assert "Never rename a public field" in "".join(run("opencode", "Which fields may I rename?"))
