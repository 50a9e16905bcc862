"""A real `aether view` on the loopback, the system's Chromium before it, and what every journey may rely on."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests import homes

# Where Debian and others put it; `AETHER_TEST_CHROMIUM` names another.
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
# Whatever a page asks of a name is refused at once, so that a mistake cannot wait for a network.
CHROMIUM_OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)  # fmt: skip
START_SECONDS = 120
END_SECONDS = 60
# For whatever a page is waited for: a fault is slow to show, and a busy machine is none.
PAGE_MILLISECONDS = 60_000
# Findings of axe that fail a test; the lesser ones are advice.
SERIOUS = ("serious", "critical")


def chromium() -> str:
    """Return the path of the system's Chromium, "" if there is none."""
    named = os.environ.get("AETHER_TEST_CHROMIUM", "")
    return named or next((found for name in CHROMIUM_NAMES if (found := shutil.which(name))), "")


def axe() -> str:
    """Return the source of axe-core, "" where `AETHER_TEST_AXE` names no file."""
    named = os.environ.get("AETHER_TEST_AXE", "")
    return Path(named).read_text(encoding="utf-8") if named else ""


class Served(NamedTuple):
    """A running `aether view`."""

    url: str
    """Of the overview, with the token of this start."""
    origin: str
    process: subprocess.Popen[str]


@contextmanager
def viewing(home: Path, *options: str) -> Iterator[Served]:
    """Run `aether view` for `home` on a free port; it is interrupted at the end, and must end without a word of trouble."""
    command = [
        sys.executable, "-m", "aether", "--home", str(home), "view", "--port", "0", "--no-browser", *options,
    ]  # fmt: skip
    errors = home.parent / "view.stderr"
    with errors.open("w+") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL, text=True,
            env={**homes.plain_environment(), "PYTHONPATH": os.pathsep.join(sys.path)}, preexec_fn=homes.heed_interrupts,  # noqa: PLW1509
        )  # fmt: skip
        try:
            with _alarm(START_SECONDS):
                url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), (url, errors.read_text())
            yield Served(url, "{0.scheme}://{0.netloc}".format(urlsplit(url)), process)
            process.send_signal(signal.SIGINT)
            assert process.wait(END_SECONDS) in (0, 130), errors.read_text()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    assert "Traceback" not in errors.read_text(), errors.read_text()


@contextmanager
def _alarm(seconds: int) -> Iterator[None]:
    """Raise in the main thread what a process that never prints would hide."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"nothing was printed in {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Visitor:
    """A person at the browser: one context of Chromium, what it asked for, and what went wrong on its pages."""

    def __init__(self, browser: Any, served: Served | None, **options: Any) -> None:
        """Open a context with `options` of Playwright, and a page that shows the overview of `served`."""
        self.served = served
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(PAGE_MILLISECONDS)
        self.asked: list[str] = []
        self.trouble: list[str] = []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.context.on("page", self._listen)
        self.page = self.context.new_page()
        if served:
            self.page.goto(served.url)
            # The page that takes the token goes on by itself.
            self.page.wait_for_selector("h1")
            # The heading is there before the script that listens to keys.
            self.page.wait_for_load_state()

    def _listen(self, page: Any) -> None:
        page.on("pageerror", lambda error: self.trouble.append(f"{page.url}: {error}"))
        page.on("console", lambda said: self._said(page, said))
        page.on("response", lambda answer: answer.status >= 500 and self.trouble.append(answer.url))

    def _said(self, page: Any, said: Any) -> None:
        # A page of an error is an answer that Chromium reports too.
        if said.type == "error" and not re.search(r"status of 4\d\d", said.text):
            self.trouble.append(f"{page.url}: {said.text}")

    def go(self, path: str, page: Any = None) -> Any:
        """Show `path` of the served origin and return the page."""
        page = page or self.page
        page.goto(self.served.origin + path)
        return page

    def links(self) -> list[str]:
        """Return the paths of the served origin that the page links to, without fragments, in their order."""
        # A link in a drawing has an object as its href.
        address = "link => new URL(link.getAttribute('href'), link.baseURI).href"
        found = self.page.eval_on_selector_all("a[href]", f"links => links.map({address})")
        here = self.served.origin
        return list(dict.fromkeys(one[len(here) :].split("#")[0] for one in found if one.startswith(here)))

    def leave(self) -> None:
        """Close the context, and fail if a page asked anybody else, broke a policy or raised an error."""
        with suppress(Exception):
            self.context.close()
        elsewhere = [
            url
            for url in self.asked
            if not url.startswith(("data:", "about:"))
            and not (self.served and url.startswith(self.served.origin))
        ]
        assert elsewhere == []
        assert self.trouble == []


def findings(page: Any) -> list[str]:
    """Return the serious findings of axe-core about the page, with the elements that they concern."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(axe())
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{page.url} {one['id']} ({one['impact']}): {[node['target'] for node in one['nodes']][:4]}"
        for one in result["violations"]
        if one["impact"] in SERIOUS
    ]
