"""A reader of the view: requests to the application as a browser on this machine sends them."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

PORT = 8123
ADDRESS = f"http://127.0.0.1:{PORT}"


class Reader:
    """A browser that has the cookie, or is about to get it."""

    def __init__(self, home, *, read_only=False, enter=True):
        from starlette.testclient import TestClient

        from aether.view.app import create_app

        self.app = create_app(home, port=PORT, read_only=read_only)
        self.frame = self.app.state.frame
        self.client = TestClient(
            self.app, base_url=ADDRESS, follow_redirects=False, raise_server_exceptions=False
        )
        if enter:
            assert self.client.get(f"/?token={self.frame.token}").status_code == 200

    def get(self, path, **headers):
        return self.client.get(path, headers=headers)

    def post(self, action, *, back="/", origin=ADDRESS, csrf=None, **fields):
        form = {"csrf": self.frame.csrf if csrf is None else csrf, "back": back, **fields}
        headers = {"content-type": "application/x-www-form-urlencoded"} | (
            {"origin": origin} if origin else {}
        )
        return self.client.post(f"/do/{action}", content=urlencode(form), headers=headers)

    def follow(self, answer):
        """Return the page that an answer leads to."""
        assert answer.status_code == 303, answer.text
        return self.get(answer.headers["location"])

    def forms(self, page, action):
        """Return the hidden fields of each form of `page` that asks for `action`."""
        found = re.findall(rf'<form[^>]*action="/do/{action}"[^>]*>(.*?)</form>', page.text, re.DOTALL)
        return [
            {
                name: unescape(value)
                for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', one)
            }
            for one in found
        ]

    def submit(self, page, action, nth=0, **fields):
        """Send the form number `nth` for `action` with `fields` filled in."""
        given = self.forms(page, action)[nth] | fields
        return self.post(action, **given)
