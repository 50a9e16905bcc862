"""Many who read and some who write at once: each gets an answer, and nothing that was acknowledged is lost."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Self
from urllib.parse import urlencode, urlsplit

import pytest

import aether
from tests import children, effort, homes
from tests.e2e.view import stage

pytestmark = [pytest.mark.extras, pytest.mark.slow]
pytest.importorskip("uvicorn", reason="the extra view is not installed")

READERS, LISTENERS = 20, 3
SECONDS = 60 if effort.FULL_TRIALS else 6
# A busy machine is given the time to do as much.
MOST_SECONDS = 300
HOOK = [sys.executable, "-c", "from aether.hosts.hook import run; run()"]


class Client:
    """One visitor on one connection."""

    def __init__(self, served: stage.Served) -> None:
        """Enter with the token, and keep the cookie."""
        self.origin = served.origin
        self.connection = http.client.HTTPConnection(urlsplit(served.origin).netloc, timeout=MOST_SECONDS)
        self.headers: dict[str, str] = {}
        _, self.headers["Cookie"], _ = self.ask("GET", served.url[len(served.origin) :])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def ask(self, method: str, path: str, **fields: str) -> tuple[int, str, str]:
        """Return status, cookie and page of an answer."""
        headers, body = dict(self.headers), urlencode(fields)
        if method == "POST":
            headers |= {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded"}
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        page = answer.read().decode()
        return answer.status, (answer.headers["set-cookie"] or "").partition(";")[0], page


def test_twenty_readers_and_four_writers_get_every_answer(harbour):
    stop, counts, failures = threading.Event(), {}, []
    # What writes is forked before there are threads.
    over = harbour.parent / "over"
    writers = [children.start(_store, harbour, who, over) for who in range(2)]
    try:
        with stage.viewing(harbour) as served:
            acts: list[Callable[[], None]] = [
                lambda: _correct(served, harbour, stop, counts),
                lambda: _hook(harbour, stop, counts),
            ]
            acts += [lambda nth=nth: _read(served, nth, stop, counts) for nth in range(READERS)]
            acts += [lambda: _listen(served, stop, counts)] * LISTENERS
            threads = [threading.Thread(target=_noted, args=(act, failures)) for act in acts]
            for thread in threads:
                thread.start()
            started = time.monotonic()
            time.sleep(SECONDS)
            while not failures and not _is_enough(counts) and time.monotonic() < started + MOST_SECONDS:
                time.sleep(0.1)
            stop.set()
            for thread in threads:
                thread.join(MOST_SECONDS)
    finally:
        over.touch()
    assert [children.ended(writer) for writer in writers] == [0, 0]

    assert failures == []
    assert _is_enough(counts), counts
    texts = {item["content"] for item in aether.list_working_memory_items(home=harbour)}
    acknowledged = [
        line for who in range(2) for line in (harbour.parent / f"stored{who}").read_text().splitlines()
    ]
    assert acknowledged
    assert set(acknowledged) <= texts
    assert f"Corrected {counts['corrected']} times." in texts
    assert [finding for finding in aether.examine(home=harbour) if finding.level == "error"] == []


def _is_enough(counts: dict[str, int]) -> bool:
    least = {"pages": READERS * 2, "corrected": 2, "events": 2, "news": LISTENERS}
    return all(counts.get(name, 0) >= number for name, number in least.items())


def _noted(act: Callable[[], None], failures: list[str]) -> None:
    try:
        act()
    except Exception as reason:
        failures.append(repr(reason))


def _store(home: Path, who: int, over: Path) -> None:
    nth = 0
    with (home.parent / f"stored{who}").open("w") as file:
        while not over.exists():
            text = f"Writer {who} stored note {nth}."
            aether.add_working_memory_item(text, "observation", home=home)
            file.write(f"{text}\n")
            nth += 1
            time.sleep(0.05)


def _correct(served: stage.Served, home: Path, stop: threading.Event, counts: dict[str, int]) -> None:
    """Correct one item over and over by the form of its page."""
    with Client(served) as client:
        item = aether.add_working_memory_item("Corrected 0 times.", "observation", home=home)
        counts["corrected"] = 0
        while not stop.is_set():
            _, _, page = client.ask("GET", f"/entry/{item}")
            form = page.partition('action="/do/correct"')[2].partition("</form>")[0]
            hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)
            fields = {name: unescape(value) for name, value in hidden}
            text = f"Corrected {counts['corrected'] + 1} times."
            status, _, page = client.ask("POST", "/do/correct", **fields, text=text)
            assert status == 303, (status, page)
            counts["corrected"] += 1


def _hook(home: Path, stop: threading.Event, counts: dict[str, int]) -> None:
    """Let one tool call after the other be noted by the real hook."""
    counts["events"] = 0
    while not stop.is_set():
        event = {
            "hook_event_name": "PostToolUse", "session_id": "load", "cwd": str(home.parent), "tool_name": "Bash",
            "tool_use_id": f"t{counts['events']}", "tool_input": {"command": "make check"},
            "tool_response": {"stdout": f"{counts['events']} passed", "stderr": ""},
        }  # fmt: skip
        done = subprocess.run(
            HOOK,
            input=json.dumps(event),
            text=True,
            env=homes.plain_environment(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        counts["events"] += 1


def _read(served: stage.Served, nth: int, stop: threading.Event, counts: dict[str, int]) -> None:
    """Walk through the pages, each reader from another one on."""
    with Client(served) as client:
        _, _, overview = client.ask("GET", "/")
        menu = overview.partition('aria-label="Pages"')[2].partition("</nav>")[0]
        paths = [unescape(path) for path in re.findall(r'href="(/[^"]*)"', menu)] + [
            "/search?q=reminders",
            "/search?q=berth+prices",
        ]
        at = nth
        while not stop.is_set():
            path = paths[at % len(paths)]
            status, _, page = client.ask("GET", path)
            assert status == 200, (path, status, page)
            assert "</html>" in page, path
            counts["pages"] = counts.get("pages", 0) + 1
            at += 1


def _listen(served: stage.Served, stop: threading.Event, counts: dict[str, int]) -> None:
    """Hear that the home changes."""
    with Client(served) as client:
        client.connection.request("GET", "/live", headers=client.headers)
        answer = client.connection.getresponse()
        while not stop.is_set():
            line = answer.readline()
            assert line, "the stream ended"
            if line.startswith(b"event: change"):
                counts["news"] = counts.get("news", 0) + 1
