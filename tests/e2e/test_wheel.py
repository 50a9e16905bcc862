"""The wheel holds everything that the main job needs, and runs away from the checkout."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="no hatchling to build with"),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel of this checkout."""
    out = tmp_path_factory.mktemp("dist")
    if importlib.util.find_spec("build"):
        builder = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    else:
        builder = [
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            str(out),
            str(ROOT),
        ]
    built = subprocess.run([sys.executable, *builder], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout[-1000:] + built.stderr[-1000:]
    (found,) = out.glob("*.whl")
    return found


def test_what_is_shipped_is_inside(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())

    assert "aether/py.typed" in names
    for directory in ("data", "prompts"):
        shipped = {
            f"aether/_files/{path.relative_to(ROOT).as_posix()}"
            for path in (ROOT / directory).rglob("*")
            if path.is_file()
        }
        assert shipped - names == set()
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "aether").rglob("*.py")}
    assert modules - names == set()
    plugin = ROOT / "aether" / "hosts" / "claude_code" / "plugin"
    files = {path.relative_to(ROOT).as_posix() for path in plugin.rglob("*") if path.is_file()}
    assert ".mcp.json" in {Path(name).name for name in files}
    assert files - names == set()


def test_the_main_job_runs_away_from_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    away = tmp_path / "away"
    away.mkdir()
    environment = {
        name: value for name, value in os.environ.items() if name not in ("ANTHROPIC_API_KEY", "AETHER_HOME")
    }

    def run(*words):
        return subprocess.run(
            [sys.executable, *words], cwd=away, env={**environment, "PYTHONPATH": str(tmp_path / "installed")},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert run("-c", "import aether; print(aether.__file__)").stdout.startswith(str(tmp_path / "installed"))
    ran = run("-m", "aether", "demo")
    assert ran.stderr == ""
    assert "5. Nothing is lost" in ran.stdout
