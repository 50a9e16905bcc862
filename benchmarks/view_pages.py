"""How soon does each page of `aether view` come, and how large is it?

A real `aether view` serves a full home (`full_home`: 157,000 tokens, ten sessions, 500 patterns, 20,000 archived items),
then one with 100,000 archived items. Each page of the menu, the page of an entry of each kind, a search, and the last
page of each list that has several are asked over one connection: once cold, then in turns; the numbers are medians of
the turns. That a page shows what it was asked for is asserted, and so is the size of the homes. Goals: the first byte
after 150 ms and 150 kB a page in the full home, and 200 ms for paging and search in the great one.

Wall time suffers from whatever else the machine does (`load_at_start`); the answer of a page of plain text, in the
same turns (`static`), says how much of it is the connection and the machine.

Usage: python benchmarks/view_pages.py
"""

from __future__ import annotations

import http.client
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import full_home
import report

import aether

TURNS = 7
FIRST_BYTE_MS, PAGE_BYTES, GREAT_MS = 150, 150_000, 200
GREAT = 100_000
# A search for words of thousands of items, one of one item, and one that narrows.
SEARCHES = ("/search?q=cache+port", "/search?q=8007+gateway", "/search?q=service&layer=archive&page=2")


@contextmanager
def served(home: Path) -> Iterator[tuple[http.client.HTTPConnection, dict[str, str]]]:
    """Serve `home`, and return a connection with the headers of a visitor."""
    command = [sys.executable, "-m", "aether", "--home", str(home), "view", "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        url = urlsplit(process.stdout.readline().strip())
        connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=60)
        connection.request("GET", f"{url.path}?{url.query}")
        answer = connection.getresponse()
        answer.read()
        cookie = answer.headers["set-cookie"].partition(";")[0]
        yield connection, {"Cookie": cookie}
        connection.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def asked(
    connection: http.client.HTTPConnection, headers: dict[str, str], path: str
) -> tuple[float, float, str]:
    """Return the milliseconds to the first byte and to the last, and the page."""
    begin = time.perf_counter()
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    first = time.perf_counter()
    body = answer.read()
    last = time.perf_counter()
    assert answer.status == 200, (path, answer.status, body[:300])
    return (first - begin) * 1000, (last - begin) * 1000, body.decode()


def paths_of(home: Path, connection: Any, headers: dict[str, str]) -> list[str]:
    """Return the pages to ask for: those of the menu, of entries, of searches, and the last of each list."""
    _, _, overview = asked(connection, headers, "/")
    menu = overview.partition('aria-label="Pages"')[2].partition("</nav>")[0]
    paths = re.findall(r'href="(/[^"]*)"', menu)
    items = aether.list_working_memory_items(home=home)
    entries = [items[0]["id"], "session_3", "pattern_77", f"wm_archived_{ARCHIVED_SHOWN}"]
    paths += [f"/entry/{entry}" for entry in entries] + list(SEARCHES)
    for path in list(paths):
        _, _, page = asked(connection, headers, path)
        if found := re.search(r'<a rel="next" href="([^"]+)"', page):
            following = unescape(found[1])
            # How many entries a query finds is not counted: then the third page.
            total = re.search(r" of ([\d,]+)</span>", page)
            last = -(-int(total[1].replace(",", "")) // PER_PAGE) if total else 3
            paths.append(re.sub(r"page=\d+", f"page={last}", following))
    return list(dict.fromkeys(paths))


PER_PAGE = 50
ARCHIVED_SHOWN = 777


def checked(path: str, page: str) -> None:
    """Fail unless the page shows what it was asked for."""
    assert "<h1>" in page, path
    assert "</html>" in page, path
    if path.startswith("/search?q="):
        assert page.count("<mark>") >= 5, (path, page.count("<mark>"))
    if path.startswith("/entry/"):
        assert "service" in page.lower(), path


def measured(home: Path) -> dict[str, Any]:
    """Return the milliseconds and the bytes of each page."""
    with served(home) as (connection, headers):
        paths = paths_of(home, connection, headers)
        assert len(paths) >= 12, paths
        _, _, overview = asked(connection, headers, "/")
        static = re.search(r'href="(/static/view.css[^"]*)"', overview)[1]
        times: dict[str, list[tuple[float, float]]] = {path: [] for path in (*paths, static)}
        size = {}
        for turn in range(TURNS + 1):
            for path, each in times.items():
                first, last, page = asked(connection, headers, path)
                size[path] = len(page.encode())
                if path != static:
                    checked(path, page)
                if turn:
                    each.append((first, last))
    return {
        "static" if path == static else path: {
            "first_byte_ms": round(statistics.median(first for first, _ in each), 1),
            "last_byte_ms": round(statistics.median(last for _, last in each), 1),
            "bytes": size[path],
        }
        for path, each in times.items()
    }


def main() -> None:
    found: dict[str, Any] = {}
    for name, archived in (("full", full_home.ARCHIVED), ("great", GREAT)):
        with tempfile.TemporaryDirectory(prefix="aether-view-") as place:
            home = full_home.make(Path(place), archived=archived)
            layers = aether.get_memory_status(home=home)
            assert layers["long_term_memory"]["patterns"] == full_home.PATTERNS, layers
            found[name] = measured(home)
    goals = {"first_byte_ms": FIRST_BYTE_MS, "page_bytes": PAGE_BYTES, "great_ms": GREAT_MS}
    missed = [
        f"{name} {path}"
        for name, pages in found.items()
        for path, each in pages.items()
        if each["first_byte_ms"] > (FIRST_BYTE_MS if name == "full" else GREAT_MS)
        or each["bytes"] > PAGE_BYTES
    ]
    report.write(__file__, {"goals": goals, "turns": TURNS, "missed": missed, "homes": found})


if __name__ == "__main__":
    main()
