"""Every example in a docstring of aether is run."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import aether

PACKAGE = Path(aether.__file__).parent
MODULES = sorted(found.name for found in pkgutil.walk_packages([str(PACKAGE)], "aether."))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_a_module_are_true(name):
    tried = doctest.testmod(importlib.import_module(name))

    assert not tried.failed


def test_there_are_examples():
    examples = sum(path.read_text(encoding="utf-8").count("\n    >>> ") for path in PACKAGE.rglob("*.py"))

    assert examples > 10
    assert len(MODULES) > 50
