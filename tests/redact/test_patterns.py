"""Patterns: compiled once, and not before they are needed."""

from __future__ import annotations

import subprocess
import sys

from aether.redact.patterns import compiled
from tests import homes


def test_a_pattern_is_compiled_once():
    assert compiled("a+b") is compiled("a+b")


def test_a_text_without_a_secret_compiles_next_to_nothing():
    code = (
        "from aether.redact.redaction import redact\n"
        "from aether.redact.patterns import compiled\n"
        "assert redact('12 tests ok in 0.4s') == '12 tests ok in 0.4s'\n"
        "print(compiled.cache_info().currsize)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=homes.plain_environment(),
    )

    assert int(found.stdout) == 0
