"""The shape of the code: sizes, names, layers, and one home for each third-party import."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from aether import seams
from tests import homes
from tests.sources import ROOT, modules

# Trust needs rooms of its own: regular files, seals, recovery, and the tags of injected text. Contexts are
# a package (shapes, tiers, modes, checkpoints, guard) and one edge; goals, a chat and its streams, what the holder of a
# lock is asked for (in the store and in the API) and the lines of the journal have theirs. What only looks like a rule, and what ends one, are a module each, and so are the names of hints.
MAX_MODULES = 362
MAX_LINES = 98_000
MAX_FUNCTION_LINES = 50
MAX_MEDIAN_FUNCTION_LINES = 10
# A module of fewer lines is read with the one that imports it, unless others import it too.
SMALL_LINES = 80
# Lines of the modules that can be reached from "add an item": what a reader of it must know.
MAX_REACHED_LINES = 15_000
# File names that occur more than once, and why: the same feature or provider on another floor.
SHARED_NAMES = {
    **dict.fromkeys(
        "archive backup briefing chat colony compact context conversations forget goals graph home memory_tool patterns recall review share status teamwork timeline tokens withdraw".split(),
        "one feature on several floors",
    ),
    **dict.fromkeys("anthropic openai".split(), "a provider's backend and its message format"),
    "archive": "archived conversations, and the append-only files of the store",
    "facts": "those of machine work, and those that a compaction keeps",
}
# Small modules with one importer, each with its reason.
SMALL_WITH_A_REASON: dict[str, str] = {
    "aether.__main__": "what `python -m aether` runs",
    "aether.hosts.codex_hooks": "a row of the table of hosts",
    "aether.messages.directories": "files beside each other, as unpacking is about files within each other",
}
# The shapes, which the module of types loads when one of them is used.
LAZY_HALF = ["aether.document_types", "aether.types"]
# Each third-party package may be imported in one place only.
HOMES = {
    "agents": {"aether/frameworks/openai_agents.py"},
    "anthropic": {
        "aether/architects/anthropic.py",
        "aether/frameworks/anthropic_sdk.py",
        "aether/frameworks/memory_tool.py",
    },
    "boto3": {"aether/storage/s3.py"},
    "botocore": {"aether/storage/s3.py"},
    "httpx2": {"aether/http.py", "aether/architects/anthropic.py"},
    "langchain": {"aether/frameworks/langchain.py"},
    "leather": {"aether/view/charts.py"},
    "langchain_core": {"aether/frameworks/langchain.py"},
    "langgraph": {"aether/frameworks/langgraph_store.py"},
    "mcp": {"aether/mcp"},
    "opentelemetry": {"aether/events/otlp.py"},
    "psycopg": {"aether/sharing/postgres.py"},
    "jinja2": {"aether/view"},
    "igraph": {"aether/view/graph_page.py"},
    "markdown_it": {"aether/view/markup.py"},
    "markupsafe": {"aether/view/markup.py"},
    "starlette": {"aether/view"},
    "uvicorn": {"aether/view"},
    "rapidfuzz": {"aether/text/similarity.py"},
    "yaml": {"aether/store/config.py"},
    "click": {"aether/cli", "aether/compat/compactctl.py"},
    "filelock": {"aether/store/files.py"},
    "jsonschema": {"aether/schemas/check.py"},
    "rich": {"aether/cli/output.py"},
    "orjson": {"aether/store/files.py", "aether/messages/records.py"},
    "snowballstemmer": {"aether/text/words.py"},
    "sqlite3": {
        "aether/messages/unpack.py",
        "aether/search/index.py",
        "aether/store/archive_store.py",
        "aether/store/search_index.py",
    },
    "tiktoken": {"aether/tokens/exact.py"},
    "zstandard": {"aether/store/files.py", "aether/api/backup.py"},
}
# A fresh process that adds an item must not pay for these.
HEAVY = {
    "anthropic",
    "httpx2",
    "tiktoken",
    "jsonschema",
    "filelock",
    "rapidfuzz",
    "snowballstemmer",
    "psycopg",
    "sqlite3",
    "asyncio",
    "rich",
    "difflib",
    "_hashlib",
    "tomllib",
    "aether.document_types",
}
# Nor may the event of a tool, a process for each call of one, pay for these.
HEAVY_FOR_A_TOOL = HEAVY | set(
    "pathlib dataclasses click subprocess tempfile datetime base64 "
    "aether.api aether.memory aether.paths".split()
)


def functions() -> list[tuple[str, int]]:
    """Return the name of every function with the lines of its body."""
    return [function for module in modules().values() for function in module.functions]


@cache
def imports() -> dict[str, set[str]]:
    """Return the dotted names that each module imports, at its top and inside functions."""
    return {
        name: {
            # What is imported from a package may be a module of it.
            f"{package}.{part}" if f"{package}.{part}" in modules() else package
            for package, part in module.imports
        }
        - {name}
        for name, module in modules().items()
    }


def ours(name: str) -> set[str]:
    """Return the modules of aether that module `name` imports."""
    return imports()[name] & modules().keys()


def importers() -> dict[str, set[str]]:
    found = defaultdict(set)
    for name in modules():
        for imported in ours(name):
            found[imported].add(name)
    return found


def test_there_are_so_many_modules_at_most():
    assert len(modules()) <= MAX_MODULES


def test_there_are_so_many_lines_at_most():
    assert sum(len(module.lines) for module in modules().values()) <= MAX_LINES


def test_a_file_name_is_used_once():
    places = defaultdict(list)
    for module in modules().values():
        places[Path(module.path).stem].append(module.path)
    repeated = {name: found for name, found in places.items() if len(found) > 1 and name != "__init__"}

    assert {name: found for name, found in repeated.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= repeated.keys(), "a name that is no longer shared is no longer listed"


def test_a_small_module_has_several_importers():
    found = importers()
    alone = {
        name
        for name, module in modules().items()
        if len(module.lines) < SMALL_LINES
        and len(found[name]) <= 1
        and not module.path.endswith("__init__.py")
        and not name.startswith("aether.messages.sources.")  # a row of the table of sources
    }

    assert sorted(alone - SMALL_WITH_A_REASON.keys()) == []
    assert sorted(SMALL_WITH_A_REASON.keys() - alone) == [], "listed without need"


def test_no_import_leads_back_to_its_module():
    assert circles() == [LAZY_HALF]


def circles() -> list[list[str]]:
    """Return the sets of modules that import each other, directly or not, each sorted."""
    reached = {name: _reached(name) for name in modules()}
    found = {
        tuple(sorted({name} | {other for other in reached[name] if name in reached[other]}))
        for name in modules()
        if name in reached[name]
    }
    return [list(circle) for circle in sorted(found)]


def _reached(start: str) -> set[str]:
    """Return the modules that can be reached from `start` in one import or more."""
    seen: set[str] = set()
    left = [start]
    while left:
        new = ours(left.pop()) - seen - {"aether"}  # the package imports a name when it is first used
        seen |= new
        left += new
    return seen


def test_adding_an_item_knows_few_modules():
    reached = _reached("aether.api.working")
    subjects = ("archive", "architects", "conversation", "messages", "search", "sharing")

    assert sum(len(modules()[name].lines) for name in reached) <= MAX_REACHED_LINES
    assert [name for name in reached if name.split(".")[1] in subjects] == []


def test_every_seam_leads_to_a_function():
    for target in seams._FUNCTIONS.values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function)), target


def test_a_function_can_be_held_in_mind():
    assert [name for name, lines in functions() if lines > MAX_FUNCTION_LINES] == []


def test_most_functions_are_short():
    assert len(functions()) > 500
    assert median(lines for _, lines in functions()) <= MAX_MEDIAN_FUNCTION_LINES


def test_a_module_says_what_it_owns():
    assert [module.path for module in modules().values() if not module.docstring] == []


def test_a_third_party_package_has_one_home():
    strays = [
        f"{package} in {module.path}"
        for name, module in modules().items()
        for package in {imported.partition(".")[0] for imported in imports()[name]} & HOMES.keys()
        if not any(module.path.startswith(home) for home in HOMES[package])
    ]

    assert strays == []


def test_every_other_import_is_of_the_standard_library_or_ours():
    # The first is the interpreter's own since 3.12, and the list is that of the running one.
    known = {"_sha2", "aether", *sys.stdlib_module_names, *HOMES}

    strangers = {
        (module.path, imported)
        for name, module in modules().items()
        for imported in imports()[name]
        if imported.partition(".")[0] not in known
    }

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
        ("from aether.api import status; status.get_memory_status", HEAVY),
        (
            "import aether.hosts.hook, aether.hosts.claude_code.event, aether.store.spool",
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
        f"{module.path}: {line.strip()}"
        for module in modules().values()
        for line in module.lines
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
        if (ROOT / name).is_file()
        for content in [(ROOT / name).read_bytes()]
        for word in words
        if word.encode() in content
    ]

    assert found == []
