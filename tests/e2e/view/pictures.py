"""The pictures of the page in README and docs, made from the sample home.

Usage: python -m tests.e2e.view.pictures
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.e2e.view import sample, stage
from tests.sources import ROOT

PICTURES = (("view-overview", "/", "light"), ("view-brief", "/brief", "dark"))
SIZE = {"width": 1280, "height": 860}


def main() -> None:
    """Write the pictures into docs/images."""
    from playwright.sync_api import sync_playwright

    directory = ROOT / "docs" / "images"
    directory.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        home = sample.make(Path(place) / "harbour")
        running = playwright.chromium.launch(
            executable_path=stage.chromium(), args=list(stage.CHROMIUM_OPTIONS)
        )
        with stage.viewing(home) as served:
            for name, path, scheme in PICTURES:
                visitor = stage.Visitor(running, served, viewport=SIZE, color_scheme=scheme)
                page = visitor.go(path)
                # Where the sample was made is of no interest.
                page.evaluate("document.querySelector('.project bdi').textContent = '/home/ana/harbour'")
                page.screenshot(path=str(directory / f"{name}.png"))
                visitor.leave()
        running.close()


if __name__ == "__main__":
    main()
