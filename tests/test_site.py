"""The site of the docs: it builds without a warning, has every page, and loads nothing from anywhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import aether
from tests.sources import ROOT

pytestmark = pytest.mark.extras
# Elements that a browser loads by itself; an anchor waits for a click.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*\bhref=\"(?:https?:)?//"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the directory of the built site."""
    pytest.importorskip("mkdocs", reason="the site needs the extra docs")
    pytest.importorskip("mkdocstrings", reason="the site needs the extra docs")
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(directory)]
    run = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return directory


def test_every_page_is_on_the_site_and_in_its_menu(site):
    menu = (site / "index.html").read_text(encoding="utf-8")

    for page in (ROOT / "docs").glob("*.md"):
        if page.stem != "index":
            assert (site / page.stem / "index.html").is_file(), page.name
            assert f'href="{page.stem}/"' in menu, page.name


def test_nothing_is_loaded_from_elsewhere(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]

    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not _LOADED.search(text), page
        assert not re.search(r"url\([\"']?(?:https?:)?//", text), page


def test_every_public_function_is_on_the_page_of_functions(site):
    text = (site / "api" / "index.html").read_text(encoding="utf-8")

    missing = [name for name in dir(aether) if name != "__version__" and f'.{name}"' not in text]
    assert missing == []
