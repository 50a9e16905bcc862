"""Every example in a docstring of aether is run."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import aether

PACKAGE = Path(aether.__file__).parent
MODULES = sorted(found.name for found in pkgutil.walk_packages([str(PACKAGE)], "aether."))


def test_the_examples_in_a_module_are_true():
    failed = [name for name in MODULES if doctest.testmod(importlib.import_module(name)).failed]

    assert failed == []


def test_there_are_examples():
    examples = sum(path.read_text(encoding="utf-8").count("\n    >>> ") for path in PACKAGE.rglob("*.py"))

    assert examples > 10
    assert len(MODULES) > 50
