"""Print one of the two commands of the README: `demo` (sets up and runs the main job) or `test`."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def readme_command(name: str) -> str:
    """Return the set-up command of the README that ends in the demo or in the tests."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ (python3 -m venv .*)$", text, re.MULTILINE)
    wanted = {"demo": "aether demo", "test": "pytest"}[name]
    (found,) = (command for command in commands if wanted in command)
    return found


if __name__ == "__main__":
    print(readme_command(sys.argv[1]))
