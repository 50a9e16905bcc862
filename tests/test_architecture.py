"""The shape of the code: sizes, mirrors, layers, and one home for each third-party import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from tests import homes

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "aether").rglob("*.py"))
MAX_MODULE_LINES = 900
MAX_FUNCTION_LINES = 50
MAX_MEDIAN_FUNCTION_LINES = 10
# Each third-party package may be imported in one place only.
HOMES = {
    "agents": {"aether/integrations/openai_agents.py"},
    "anthropic": {
        "aether/backends/anthropic_api.py",
        "aether/integrations/anthropic_sdk.py",
        "aether/integrations/memory_tool.py",
    },
    "boto3": {"aether/storage/s3.py"},
    "botocore": {"aether/storage/s3.py"},
    "httpx2": {"aether/backends/anthropic_api.py"},
    "langchain": {"aether/integrations/langchain.py"},
    "langchain_core": {"aether/integrations/langchain.py"},
    "mcp": {"aether/integrations/mcp_server"},
    "opentelemetry": {"aether/events/otlp.py"},
    "splintr": {"aether/tokens/exact.py"},
    "yaml": {"aether/operations/configuration.py"},
    "click": {"aether/cli"},
    "filelock": {"aether/store/lock.py"},
    "jsonschema": {"aether/schemas/check.py"},
    "orjson": {"aether/store/codec.py", "aether/messages/jsonl.py"},
    "snowballstemmer": {"aether/text/words.py"},
    "sqlite3": {"aether/store/index.py"},
    "tiktoken": {"aether/tokens/exact.py"},
}
# A fresh process that adds an item must not pay for these.
HEAVY = {"anthropic", "tiktoken", "jsonschema", "filelock", "snowballstemmer", "sqlite3", "asyncio"}
# Nor may the event of a tool, a process for each call of one, pay for these.
HEAVY_FOR_A_TOOL = HEAVY | set(
    "typing pathlib contextlib dataclasses hashlib tomllib click subprocess tempfile datetime base64 "
    "aether.operations aether.memory aether.paths".split()
)


def functions(path: Path) -> list[ast.FunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


def body_lines(function: ast.FunctionDef) -> int:
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
        body = body[1:]  # the docstring is not what a reader holds in mind
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level
    }
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_and_its_functions_can_be_held_in_mind(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_MODULE_LINES
    assert [function.name for function in functions(path) if body_lines(function) > MAX_FUNCTION_LINES] == []


def test_most_functions_are_short():
    sizes = [body_lines(function) for path in MODULES for function in functions(path)]

    assert len(sizes) > 500
    assert median(sizes) <= MAX_MEDIAN_FUNCTION_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_owns_and_has_a_test_of_its_name(path):
    relative = path.relative_to(ROOT / "aether")
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, "the first line says what the module owns"
    if path.name == "__init__.py" and not functions(path):
        return
    name = "init" if path.name == "__init__.py" else path.stem
    assert (ROOT / "tests" / relative.parent / f"test_{name}.py").exists()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_third_party_package_has_one_home(path):
    place = path.relative_to(ROOT).as_posix()
    for package in imported(path) & HOMES.keys():
        assert any(place.startswith(home) for home in HOMES[package]), f"{package} in {place}"


def test_every_other_import_is_of_the_standard_library_or_ours():
    known = set(sys.stdlib_module_names) | set(HOMES) | {"aether"}

    strangers = {(path.name, name) for path in MODULES for name in imported(path) - known if name}

    assert strangers == set()


def test_arrows_point_down():
    checked = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert checked.returncode == 0, checked.stdout[-2000:]


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import aether", HEAVY_FOR_A_TOOL),
        ("import aether; aether.add_working_memory_item", HEAVY),
        ("import aether.cli.main", HEAVY),
        ("from aether.operations import status; status.get_memory_status", HEAVY),
        (
            "import aether.integrations.claude_code.hook, aether.integrations.claude_code.intake, aether.store.spool",
            HEAVY_FOR_A_TOOL,
        ),
    ],
)
def test_start_up_imports_nothing_heavy(code, forbidden):
    """What is imported decides how long a hook takes; the milliseconds are measured in benchmarks."""
    listed = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(' '.join(sys.modules))"],
        capture_output=True, text=True, check=True, env=homes.plain_environment(),
    )  # fmt: skip

    assert forbidden & set(listed.stdout.split()) == set()


def test_no_line_is_left_out_of_coverage_without_a_reason():
    bare = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in MODULES
        for line in path.read_text(encoding="utf-8").splitlines()
        if "pragma: no cover" in line and " - " not in line.partition("pragma: no cover")[2]
    ]

    assert bare == []


def test_nothing_tracked_names_a_machine():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    # Assembled, so that this file does not hold them.
    words = ["/wo" + "rk/", "/fa" + "rm/", "py" + "pi.org", "registry." + "npmjs", "deb." + "debian"]

    found = [
        (name, word)
        for name in tracked
        for word in words
        if (ROOT / name).is_file() and word.encode() in (ROOT / name).read_bytes()
    ]

    assert found == []
