"""The application of a view, asked without a server: one request in, one answer out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

PORT = 8080
ORIGIN = f"http://127.0.0.1:{PORT}"


class Answer(NamedTuple):
    """Status, headers and body of one answer."""

    status: int
    headers: dict[str, str]
    html: str


class Visit:
    """A person who opened the view of `home` and may look and change."""

    def __init__(self, home: Path, *, read_only: bool = False) -> None:
        """Make the application, and know its cookie and the token of its forms."""
        from aether.view.app import create_app

        self.app = create_app(home, port=PORT, read_only=read_only)
        self.frame = self.app.state.frame

    def get(self, path: str, **query: str) -> Answer:
        """Return the answer to a look at `path`."""
        path, _, given = path.partition("?")
        asked = "&".join(one for one in (given, urlencode(query, errors="replace")) if one)
        return self._ask("GET", path, asked)

    def post(self, action: str, **fields: str) -> Answer:
        """Return the answer to the form of an action."""
        form = {"csrf": self.frame.csrf, "back": "/", **fields}
        return self._ask("POST", f"/do/{action}", "", urlencode(form, errors="replace").encode())

    def _ask(self, method: str, path: str, query: str, body: bytes = b"") -> Answer:
        headers = {
            "host": urlsplit(ORIGIN).netloc,
            "cookie": f"aether_view_{PORT}={self.frame.cookie}",
            "sec-fetch-site": "same-origin",
        }
        if method == "POST":
            headers |= {
                "origin": ORIGIN,
                "content-type": "application/x-www-form-urlencoded",
                "content-length": str(len(body)),
            }
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": quote(path).encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", PORT),
        }  # fmt: skip
        sent: list[Any] = []
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not given:
                await asyncio.Event().wait()  # the visitor stays
            return given.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        start = next(one for one in sent if one["type"] == "http.response.start")
        data = b"".join(one.get("body", b"") for one in sent if one["type"] == "http.response.body")
        named = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], named, data.decode())
