"""The application: one page or action a route, behind checks of the host, the origin, the cookie and the form.

Starlette and uvicorn are imported when a view is started. A request that fails a check reaches no page.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Mapping
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from aether import paths, regular
from aether.api.home import drained
from aether.errors import (
    AetherError,
    BackendUnavailable,
    Conflict,
    InvalidInput,
    NotFound,
    StorageFailed,
    disk_failure,
)
from aether.store import places, spool
from aether.store.authors import acting
from aether.store.snapshot import load
from aether.view import charts, connections, graph_page, pages, work
from aether.view.frame import BY, Action, Asked, File, Frame, Page, Shown, Stale, state_of, unchanged, without

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PAGES: list[Page] = work.in_order([*pages.PAGES, *work.PAGES, *graph_page.PAGES, *charts.PAGES])
ACTIONS: dict[str, Action] = {action.name: action for action in [*pages.ACTIONS, *work.ACTIONS]}
PACKAGES = ("igraph", "jinja2", "leather", "markdown_it", "starlette", "uvicorn")
HOST = "127.0.0.1"
# Names under which a browser on this machine reaches the view; any other is a page that was rebound to this address.
HOSTS = (HOST, "localhost")
# A form holds a text and a few words; more is no form of ours.
MOST_FORM_BYTES, MOST_FIELDS = 2_000_000, 100
# Often enough to see an event of a hook arrive.
LOOK_SECONDS = 0.5
# A comment keeps a quiet connection open, and shows that the reader left.
QUIET_LOOKS = 30
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser sends forms with the origin `null`
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# The fields of a form that name an entry, and those with its digest when it was shown.
SHOWN = (("entry", "state"), ("other", "other_state"))
# The status of an error's page, by its class.
STATUS = {"NotFound": 404, "InvalidInput": 400, "Conflict": 409, "LockTimeout": 503, "UnsafePath": 400}


def require_packages() -> None:
    """Check that what a view needs is installed.

    Raises:
        BackendUnavailable: the extra `view` is not installed.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise BackendUnavailable(
            f"the package {missing[0]} is not installed.",
            fix="Run: pip install '.[view]' in a clone of aether",
            where="view",
        )


def create_app(home: Path, *, port: int, read_only: bool = False) -> Any:
    """Return the ASGI application of a view of `home` that is served on `port`; a random token opens it.

    Its `state.frame` is the frame of its pages, with the token.

    Raises:
        BackendUnavailable: the extra `view` is not installed.
    """
    require_packages()
    from starlette.applications import Starlette
    from starlette.routing import Route

    frame = Frame(home, pages=PAGES, read_only=read_only)
    routes = [Route(page.path, _page_route(frame, page), name=page.title) for page in PAGES]
    app = Starlette(
        routes=[
            *routes, Route("/do/{name}", _action_route(frame), methods=["POST"]), Route("/live", _live_route(frame)),
            Route("/static/{name}", _static),
        ],
        exception_handlers={404: _missing(frame), 405: _missing(frame), Exception: _broken(frame)},
    )  # fmt: skip
    app.state.frame = frame
    app.add_middleware(Guard, frame=frame, port=port)
    return app


class Guard:
    """The checks before every request: host, origin, cookie and, of a change, the token of its form."""

    def __init__(self, app: Any, frame: Frame, port: int) -> None:
        self.app = app
        self.frame = frame
        self.hosts = {f"{host}:{port}" for host in HOSTS}
        # Cookies are the same for all ports: two views have two names.
        self.name = f"aether_view_{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)  # type: ignore[no-any-return]
        from starlette.requests import Request

        request = Request(scope, receive)
        answer = self._refusal(request) or self._entrance(request)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                header_names = {name.lower() for name, _ in message["headers"]}
                message["headers"] += [
                    (name.lower().encode(), value.encode())
                    for name, value in HEADERS.items()
                    if name.lower().encode() not in header_names
                ]
            await send(message)

        await (answer or self.app)(scope, receive, sent)
        return None

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request from elsewhere; None if it may come in."""
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return _refused("This page is served under the address that aether printed, and no other.")
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return _refused("The request came from another page.")
        if origin is None and request.method not in ("GET", "HEAD"):
            return _refused("The request does not say from which page it came.")
        # To a browser the pages of other ports are the same site, so that they have the strict cookie as well.
        elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if elsewhere and request.headers.get("sec-fetch-mode") != "navigate":
            return _refused("The request came from another page.")
        return None

    def _entrance(self, request: Request) -> Response | None:
        """Return the answer that sets the cookie or asks for the token; None for who has the cookie already."""
        from starlette.responses import HTMLResponse

        token = request.query_params.get("token", "")
        if token and hmac.compare_digest(token.encode(), self.frame.token.encode()):
            # No redirect: after one, a link clicked in another program would arrive without the strict cookie.
            inside = without(_here(request), "token")
            answer = HTMLResponse(self.frame.html(Shown("enter.html", {"inside": inside}, "aether")))
            answer.set_cookie(self.name, self.frame.cookie, httponly=True, samesite="strict", path="/")
            return answer
        if _static_file(request.url.path):
            return None
        cookie = request.cookies.get(self.name, "")
        if hmac.compare_digest(cookie.encode("utf-8", "replace"), self.frame.cookie.encode()):
            return None
        return _refused(
            "Open the address that aether printed when it started: it holds the key to this page."
        )


def _refused(words: str) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(f"{words}\n", status_code=403)


def _here(request: Request) -> str:
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _asked(request: Request) -> Asked:
    path = {name: str(value) for name, value in request.path_params.items()}
    return Asked(path, dict(request.query_params), _here(request))


def _page_route(frame: Frame, page: Page) -> Any:
    from starlette.responses import HTMLResponse, StreamingResponse
    from starlette.responses import Response as PlainResponse

    def answer(request: Request) -> Response:
        page_request = _asked(request)
        try:
            with acting(BY, read_only=frame.read_only):
                content = page.make(frame, page_request)
                if isinstance(content, File):
                    headers = {"Content-Disposition": f'attachment; filename="{content.name}"'}
                    return PlainResponse(content.data, media_type=content.kind, headers=headers)
                if content.later:
                    pieces = frame.pieces(content, page_request, title=page.title, path=page.path)
                    return StreamingResponse(pieces, media_type="text/html")
                html = frame.html(content, page_request, title=page.title, path=page.path)
        except AetherError as reason:
            return _failed(frame, reason, page_request)
        except OSError as reason:
            where = str(reason.filename or frame.home)
            return _failed(frame, disk_failure(reason, "Nothing was read.", where=where), page_request)
        return HTMLResponse(html, status_code=content.status)

    return answer


def _failed(frame: Frame, reason: AetherError, page_request: Asked | None = None) -> Response:
    """Return the page of an error: where, what, and what to do."""
    content = Shown("error.html", {"error": reason}, "This did not work")
    return _html(frame, content._replace(status=STATUS.get(reason.code, 500)), page_request)


def _html(frame: Frame, content: Shown, page_request: Asked | None = None) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(frame.html(content, page_request), status_code=content.status)


def _missing(frame: Frame) -> Any:
    def answer(request: Request, reason: Exception) -> Response:  # noqa: ARG001 - Starlette's interface
        wrong = NotFound(f"there is no page {request.url.path!r}.", fix="Choose one of the menu.", where=BY)
        return _failed(frame, wrong)

    return answer


def _broken(frame: Frame) -> Any:
    def answer(request: Request, reason: Exception) -> Response:  # noqa: ARG001 - Starlette's interface
        wrong = StorageFailed(
            f"{type(reason).__name__}: {reason}.",
            fix="The terminal in which aether runs has the details.",
            where=BY,
        )
        response = _failed(frame, wrong)
        response.headers.update(HEADERS)  # this answer does not pass the guard
        return response

    return answer


def _action_route(frame: Frame) -> Any:
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import RedirectResponse

    async def answer(request: Request) -> Response:
        form = await _fields(request)
        if form is None:
            return _refused("The form is too large, or none of this page.")
        if not hmac.compare_digest(form.get("csrf", "").encode("utf-8", "replace"), frame.csrf.encode()):
            return _refused("The form is not one of this page. Go back, reload the page, and try again.")
        name = request.path_params["name"]
        return await run_in_threadpool(_done, name, form)

    def _done(name: str, form: Mapping[str, str]) -> Response:
        action = ACTIONS.get(name)
        try:
            if frame.read_only and (action is None or action.changes):
                fix = "Start aether view without --read-only to change something."
                raise Conflict("this view is read-only: nothing was changed.", fix=fix, where=BY)
            if action is None:
                raise NotFound(f"there is no action {name!r}.", fix="Reload the page.", where=BY)
            known_action = action
            location = frame.once(name, form, lambda: _acted(frame, known_action, form))
        except Stale as reason:
            return _html(frame, pages.conflict(frame, reason, {**form, "action": name}))
        except AetherError as reason:
            return _failed(frame, reason)
        return RedirectResponse(location, status_code=303)

    return answer


def _acted(frame: Frame, action: Action, form: Mapping[str, str]) -> str:
    """Do what a form asks for, if what it shows is as it was, and return where its notice is."""
    digests = {form[field]: form.get(state, "") for field, state in SHOWN if form.get(field)}
    require = unchanged(digests) if digests else None
    if require:  # an action that looks for what is changed already would say that it is missing
        require(load(frame.home))
    with acting(BY, require, read_only=frame.read_only) as changes:
        words = action.run(frame, form)
    key = frame.notify(words, changes.revisions[-1] if changes.revisions else 0)
    back = without(own_path(form.get("back", "")), "done")
    return f"{back}{'&' if '?' in back else '?'}done={key}"


class Form(dict[str, str]):
    """The fields of a form."""

    def __missing__(self, name: str) -> str:
        """Refuse a form that lacks a field.

        Raises:
            InvalidInput: always.
        """
        raise InvalidInput(
            f"the form has no field {name!r}.", fix="Reload the page, and try again.", where=BY
        )


async def _fields(request: Request) -> Form | None:
    """Return the fields of a form; None if it is too large or is none."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_FORM_BYTES:
            return None
    try:
        sent = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return None
    return Form((name, value.replace("\r\n", "\n")) for name, value in sent)


def own_path(text: str) -> str:
    r"""Return a path of this site, or `/`.

    >>> own_path("/brief?a=1"), own_path("//evil.example"), own_path("/\\evil.example"), own_path("https://evil.example/")
    ('/brief?a=1', '/', '/', '/')
    """
    try:
        address = urlsplit(text)
    except ValueError:
        return "/"
    plain = text.startswith("/") and text.isascii() and text.isprintable() and "\\" not in text
    return text if plain and not text.startswith("//") and not (address.scheme or address.netloc) else "/"


def _live_route(frame: Frame) -> Any:
    from starlette.responses import StreamingResponse

    async def answer(request: Request) -> Response:
        return StreamingResponse(_changes(frame, request), media_type="text/event-stream")

    return answer


async def _changes(frame: Frame, request: Request) -> AsyncIterator[str]:
    """Yield an event whenever the home has changed, until the reader leaves or the view stops."""
    server = getattr(request.app.state, "server", None)
    seen, quiet = None, 0
    yield ": aether\n\n"
    while not (server and server.should_exit) and not await request.is_disconnected():
        try:
            state = await asyncio.to_thread(_state, frame)
        except (AetherError, OSError) as reason:
            state = {"error": str(reason)}
        if seen is not None and state != seen:
            yield f"event: change\ndata: {json.dumps(state)}\n\n"
        elif not quiet % QUIET_LOOKS:
            yield ": still here\n\n"
        seen, quiet = state, quiet + 1
        await asyncio.sleep(LOOK_SECONDS)


def _state(frame: Frame) -> dict[str, Any]:
    """Return what changes with the home, after draining the spool of its hooks."""
    with acting(BY, read_only=frame.read_only):
        drained(frame.home)
    return {"files": state_of(frame.home), "waiting": len(spool.waiting(str(frame.home)))}


def _static_file(path: str) -> Path | None:
    """Return the file of the page that has this address; None without one."""
    name = path.removeprefix("/static/")
    file = paths.resource("data/view/static") / name
    return file if name != path and file.name == name and file.suffix in KINDS and file.is_file() else None


def _static(request: Request) -> Response:
    from starlette.responses import PlainTextResponse, Response

    file = _static_file(request.url.path)
    if file is None:
        return PlainTextResponse("There is no such file.\n", status_code=404)
    headers = {"Cache-Control": "private, max-age=31536000, immutable"} if request.url.query else {}
    return Response(file.read_bytes(), media_type=KINDS[file.suffix], headers=headers)


class View:
    """A view that is about to be served: its address is known before the first request."""

    def __init__(self, home: Path, *, port: int = 0, read_only: bool = False) -> None:
        """Take a port of this machine.

        Raises:
            BackendUnavailable: the extra `view` is not installed.
            InvalidInput: the port is taken, or may not be used.
        """
        require_packages()
        places.remember(home)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((HOST, port))
            self.socket.listen(
                connections.WAITING
            )  # now, so that the address can be opened as soon as it is printed
        except (OSError, OverflowError) as reason:
            self.socket.close()
            raise InvalidInput(
                f"port {port} cannot be used: {getattr(reason, 'strerror', None) or reason}.",
                fix="Choose another with --port, or leave it out to get a free one.",
                where="view",
            ) from reason
        self.port = int(self.socket.getsockname()[1])
        self.app = create_app(home, port=self.port, read_only=read_only)
        self.address = f"http://{HOST}:{self.port}/?token={self.app.state.frame.token}"

    def entrance(self, directory: Path) -> Path:
        """Write a page into `directory` that leads to the address, and return its path.

        A browser gets that path: other users of this machine can read its arguments, and not this file.
        """
        page = directory / "aether.html"
        address = escape(self.address)
        text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">'
        regular.create(page, f'{text}<a href="{address}">aether</a>\n'.encode())
        return page

    def serve(self) -> None:
        """Serve until Ctrl-C or a signal to end."""
        import uvicorn

        config = uvicorn.Config(
            self.app, log_level="warning", access_log=False, server_header=False, lifespan="off",
            timeout_graceful_shutdown=2, limit_concurrency=2 * connections.MOST_CONNECTIONS, backlog=connections.WAITING,
            http=connections.limited_protocol(), h11_max_incomplete_event_size=connections.HEADER_BYTES,
        )  # fmt: skip
        server = uvicorn.Server(config)
        connections.log_once()
        # A page that is still being made when the view stops is no error.
        logging.getLogger("uvicorn.error").addFilter(lambda record: not server.should_exit)
        # The first page would wait for imports, for the memory of the home and for the comparisons of its brief.
        threading.Thread(target=self._prepare, daemon=True).start()
        self.app.state.server = server
        with contextlib.closing(self.socket), contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[self.socket])

    def _prepare(self) -> None:
        """Make the first page once; what is wrong with it is shown when a person asks for it."""
        frame, page = self.app.state.frame, PAGES[0]
        page_request = Asked({}, {}, page.path)
        with contextlib.suppress(Exception), acting(BY, read_only=frame.read_only):
            frame.html(page.make(frame, page_request), page_request, path=page.path)
