"""`python -m aether`: the command line, where its script is not on the path."""

from __future__ import annotations

from aether.cli.main import run

if __name__ == "__main__":
    run()
