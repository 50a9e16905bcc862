"""`python -m aether` is the command line."""

from __future__ import annotations

import os
import runpy
import signal
import sys

import pytest


def test_the_module_runs_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["aether", "--version"])
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.delitem(sys.modules, "aether.__main__", raising=False)

    with pytest.raises(SystemExit) as left:
        runpy.run_module("aether", run_name="__main__")

    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("aether ")
