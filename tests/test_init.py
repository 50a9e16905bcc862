import inspect
import os
import pydoc
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import aether
from tests.tables import rows

# Names of all that takes no home.
WITHOUT_HOME = {
    "AetherError", "ArchivalManager", "CompactConfig", "CompactManager", "CompactPolicy", "CompressionEngine", "ContextManager",
    "MemoryManager", "Options", "backups", "bare", "join", "mark_protected", "verify_backup",
}  # fmt: skip
FUNCTIONS = sorted({name for names in aether._NAMES_IN.values() for name in names.split()} - WITHOUT_HOME)
# What others rely on, word for word.
FIXED = {
    "add_working_memory_item": "(content, type, relevance_score=0.5, *, home=None, source='queen', caste=None, phase=None, metadata=None)",
    "add_working_memory_items": "(entries, *, home=None)",
    "get_working_memory_item": "(id, *, home=None)",
    "update_working_memory_item": "(id, updates, *, home=None)",
    "list_working_memory_items": "(limit=0, *, types=(), phase=None, caste=None, since=None, until=None, project=None, conversation=None, home=None)",
    "clear_working_memory": "(*, home=None)",
    "check_token_threshold": "(*, home=None)",
    "auto_compress_if_needed": "(*, home=None)",
    "prepare_compression_data": "(phase, manual=False, *, home=None, new=False)",
    "trigger_phase_boundary_compression": "(phase, compressed_json, *, home=None, architect=None, compression_id=None)",
    "create_short_term_session": "(phase, compressed_json, *, home=None)",
    "evict_short_term_session": "(session_id=None, *, home=None)",
    "trigger_pattern_extraction": "(*, home=None)",
    "detect_patterns_across_sessions": "(*, home=None)",
    "get_memory_status": "(*, home=None)",
    "get_compression_stats": "(*, home=None)",
    "verify_token_limit": "(*, home=None)",
    "preflight": (
        "(conversation_id, messages, *, model=None, window=None, policy='compact', system=None, tools=None, "
        f"wire=None, resume=True, repair=True, options={aether.Options()!r}, home=None)"
    ),
    "share": "(home=None, url='', colony='')",
    "join": "(url='', colony='', directory='.')",
    "undo_compaction": "(conversation_id, *, step=0, home=None)",
}


def signature(name):
    found = inspect.signature(getattr(aether, name))
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


@rows("name", FUNCTIONS)
def test_a_public_function_is_documented_and_takes_a_home(name):
    function = getattr(aether, name)

    assert function.__name__ == name
    assert inspect.getdoc(function)
    home = inspect.signature(function).parameters["home"]
    assert home.default is None
    assert home.kind is inspect.Parameter.KEYWORD_ONLY or name in ("init", "share")


@rows("name", sorted(set(dir(aether)) - {"__version__", "AetherError"}))
def test_the_type_checker_knows_every_public_name(name):
    source = Path(aether.__file__).with_suffix(".pyi").read_text(encoding="utf-8")

    assert getattr(aether, name).__doc__
    assert f"from {aether._MODULE_OF[name]} import {name} as {name}\n" in source


@rows("name", FIXED)
def test_names_that_others_rely_on_keep_their_arguments(name):
    assert signature(name) == FIXED[name]


def test_search_takes_its_query_and_limit_in_order():
    assert signature("search_memory").startswith("(query, limit=20, *,")


def test_every_name_is_listed_once_and_nothing_else_is_there():
    assert (
        len(set(dir(aether)))
        == len(dir(aether))
        == sum(len(names.split()) for names in aether._NAMES_IN.values()) + 1
    )
    assert aether.AetherError.__name__ == "AetherError"
    assert aether.__version__
    with pytest.raises(AttributeError, match="no_such_name"):
        aether.no_such_name  # noqa: B018 - asking is the test


def test_importing_aether_imports_nothing_of_it():
    code = "import sys, aether; print([name for name in sys.modules if name.startswith('aether.')])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert done.stdout.strip() == "[]"


def test_help_names_every_public_name_once_and_fits_in_200_lines():
    text = pydoc.render_doc(aether, renderer=pydoc.plaintext)
    table = (aether.__doc__ or "").partition("\nAll functions by task")[2]
    named = re.findall(r"\w+", " ".join(re.findall(r"^ {8}(.*)$", table, re.MULTILINE)))

    assert text.splitlines()[3].startswith("    aether - Memory for LLM agents")
    assert sorted([*named, "AetherError", "__version__"]) == sorted(dir(aether))
    assert len(text.splitlines()) <= 200
    assert max(map(len, (aether.__doc__ or "").splitlines())) <= 120


@rows("name", sorted(set(dir(aether)) - {"__version__"}))
def test_a_signature_shows_its_defaults(name):
    """A default that is a function shows as its address; None says that there is a default."""
    offered = getattr(aether, name)
    methods = inspect.getmembers(offered, inspect.isfunction) if inspect.isclass(offered) else []

    shown = {name: str(inspect.signature(offered))} | {
        method: str(inspect.signature(function)) for method, function in methods
    }

    assert {method: text for method, text in shown.items() if " at 0x" in text or "<factory>" in text} == {}


def test_a_star_import_brings_the_everyday_verbs():
    names: dict[str, object] = {}
    exec("from aether import *", names)

    assert {name for name in names if name != "__builtins__"} == set(aether.__all__)
    assert set(aether.__all__) < set(dir(aether))


FORMER_IMPORTS = {
    "aether.backends.anthropic": "aether.architects.anthropic",
    "aether.events.event": "aether.events.events",
    "aether.integrations.compact_manager": "aether.compat.compact_manager",
    "aether.integrations.langchain": "aether.frameworks.langchain",
    "aether.integrations.mcp_server.results": "aether.mcp.results",
    "aether.messages.formats": "aether.messages.convert",
    "aether.operations.compaction_case": "aether.api.compact",
    "aether.redact.redaction": "aether.redact.redact",
}


@rows("former", FORMER_IMPORTS)
def test_a_former_module_name_still_works_and_warns(former):
    now = import_module(FORMER_IMPORTS[former])
    for name in [name for name in sys.modules if f"{name}.".startswith(aether._FORMER)]:
        del sys.modules[name]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = import_module(former)

    assert str(caught[-1].message).startswith(f"{former} is now {now.__name__};")
    assert module is now
    assert now.__spec__.name == now.__name__


def test_a_former_package_offers_no_module_that_never_was():
    with pytest.raises(ModuleNotFoundError):
        import_module("aether.integrations.no_such_module")
