"""The frame of every page: what a page function is given and returns, how it is written as HTML, and conflicts.

Jinja2 is imported when the first page is made. All text is escaped, and shown without characters that hide words.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime
from functools import lru_cache
from html import escape
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from aether import clock, paths
from aether.errors import AetherError, InvalidInput
from aether.memory.items import items_of
from aether.memory.sessions import sessions_of
from aether.store import conversations
from aether.store.authors import acting
from aether.store.snapshot import Snapshot, file_ids
from aether.text.regex import UNPRINTABLE
from aether.text.words import pluralize
from aether.types import JsonObject
from aether.view import markup

BY = "viewer"
T = TypeVar("T")
# Lines of a list on one page.
PAGE_LINES = 50
# Notices that wait to be shown; each is of one action.
MOST_NOTICES = 200
# Events of a template that are one piece of a page: fewer than come before its content.
PIECE_EVENTS = 20
# What changes by being read, and is no change of an entry.
_READING = frozenset({"access_count", "last_accessed"})


class Asked(NamedTuple):
    """A request for a page."""

    path: Mapping[str, str]
    """The variable parts of the path."""
    query: Mapping[str, str]
    here: str
    """Path and query, for the way back after an action."""

    def number(self, name: str, default: int = 1) -> int:
        """Return a positive number of the query; `default` without one, or with another text."""
        text = self.query.get(name, "")
        return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else default


class Shown(NamedTuple):
    """The answer to a request: a template of `data/view/templates/` and its values."""

    template: str
    values: Mapping[str, Any]
    title: str = ""
    """Unless given, that of the page."""
    status: int = 200
    later: bool = False
    """Whether a value is a function that takes long: then the start of the page is sent before it is called."""


class File(NamedTuple):
    """The answer to a request for a file to keep."""

    name: str
    """Of letters, digits and `.-_`."""
    kind: str
    """Its media type."""
    data: bytes


class Page(NamedTuple):
    """A page of the site. `path` may have variable parts, as `/entry/{id:path}`."""

    path: str
    title: str
    make: Callable[[Frame, Asked], Shown | File]
    in_menu: bool = True


class Action(NamedTuple):
    """A change that a form asks for at `/do/<name>`: one function of `api`, made under the author `viewer`."""

    name: str
    run: Callable[[Frame, Mapping[str, str]], str]
    """Makes the change with the fields of the form, and returns the words of the notice."""
    changes: bool = True
    """Whether it changes a home; a view that is read-only refuses those."""


class Notice(NamedTuple):
    """What an action did, and its revision; 0 without one."""

    text: str
    revision: int


class Stale(Exception):
    """An entry was changed after the page that showed it was made; the page of the conflict is the only answer."""

    def __init__(self, entry: str, what: str) -> None:
        super().__init__(f"{entry} {what}")
        self.entry = entry
        self.what = f"{entry} {what}"


class Part(NamedTuple):
    """One page of a long list."""

    lines: list[Any]
    page: int
    pages: int
    total: int
    more: bool = False
    """Whether there are more than `total`: they were not counted."""

    @property
    def first(self) -> int:
        """Return the number of the first line."""
        return (self.page - 1) * PAGE_LINES + 1


def part(lines: Iterable[Any], page: int, *, total: int | None = None, more: bool = False) -> Part:
    """Return page number `page` of `lines`; the last one if there are fewer.

    `total` says that `lines` are those of this page only, and `more` that there are others beyond that number.
    """
    listed = list(lines)
    number = len(listed) if total is None else total
    pages = max(1, ceil(number / PAGE_LINES))
    page = min(page, pages)
    return Part(
        listed[(page - 1) * PAGE_LINES : page * PAGE_LINES] if total is None else listed, page, pages, number, more,
    )  # fmt: skip


class Frame:
    """One running view: its home, its secrets, and the notices that wait."""

    def __init__(self, home: Path, *, pages: Iterable[Page], read_only: bool = False) -> None:
        self.home = home
        self.read_only = read_only
        self.token = secrets.token_urlsafe(32)
        self.pages = list(pages)
        self._notices: dict[str, Notice] = {}
        self._answers: dict[str, str] = {}
        self._turn = threading.Lock()

    @property
    def csrf(self) -> str:
        """Return the token that every form holds; that of another home is another, so no form changes the wrong one."""
        form = b"form" + os.fsencode(self.home)
        return hmac.new(self.token.encode(), form, hashlib.sha256).hexdigest()

    @property
    def cookie(self) -> str:
        """Return the value of the cookie: the token of the address is not kept in it."""
        return hmac.new(self.token.encode(), b"cookie", hashlib.sha256).hexdigest()

    def notify(self, text: str, revision: int) -> str:
        """Keep a notice, and return the key under which the next page shows it."""
        key = secrets.token_hex(8)
        self._notices[key] = Notice(text, revision)
        while len(self._notices) > MOST_NOTICES:
            del self._notices[next(iter(self._notices))]
        return key

    def once(self, name: str, form: Mapping[str, str], act: Callable[[], str]) -> str:
        """Return what `act` returns for this form; of the same form of the same page, what it returned before.

        So two quick clicks are one action. An action that raises an error may be asked for again.
        """
        if not form.get("once"):
            return act()
        data = json.dumps([name, sorted(form.items())], ensure_ascii=True).encode()
        key = hashlib.sha256(data).hexdigest()
        with self._turn:  # the second click waits for the first
            if key not in self._answers:
                self._answers[key] = act()
                while len(self._answers) > MOST_NOTICES:
                    del self._answers[next(iter(self._answers))]
            return self._answers[key]

    def html(self, shown: Shown, asked: Asked | None = None, *, title: str = "", path: str = "") -> str:
        """Return a page as HTML."""
        values = self._values(shown, asked, title=title, path=path)
        return str(environment().get_template(shown.template).render(values))

    def pieces(self, shown: Shown, asked: Asked, *, title: str, path: str) -> Iterator[str]:
        """Yield a page as HTML in pieces, the start of it before what takes long; an error ends the page."""
        values = self._values(shown, asked, title=title, path=path)
        stream = environment().get_template(shown.template).stream(values)
        stream.enable_buffering(PIECE_EVENTS)
        try:
            yield from stream
        except AetherError as reason:
            yield f'<p class="problem">{escape(visible(reason.what))} {escape(visible(reason.fix))}</p>'

    def _values(self, content: Shown, request: Asked | None, *, title: str, path: str) -> dict[str, Any]:
        query = request.query if request else {}
        return {
            "title": content.title or title, "menu": [page for page in self.pages if page.in_menu], "path": path,
            "here": without(request.here, "done") if request else "/", "csrf": self.csrf, "once": secrets.token_hex(8), "read_only": self.read_only,
            "home": str(self.home), "place": paths.project_root(self.home) or str(self.home),
            "notice": self._notices.get(query.get("done", "")), "now": clock.now(), "query": query,
            "query_with": lambda field, value: {name: text for name, text in query.items() if name != "done"} | {field: value},
            "query_without": lambda *names: {name: value for name, value in query.items() if name not in names},
            **content.values,
        }  # fmt: skip


def form_number(text: str, what: str, fix: str) -> int:
    """Return the whole number that a form, or an address, has for `what`.

    Raises:
        InvalidInput: it has none.
    """
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise InvalidInput(f"not a {what}: {text!r}.", fix=fix, where=BY)


def form_share(text: str, what: str) -> float:
    """Return the number from 0 to 1 that a form has for `what`.

    Raises:
        InvalidInput: it has none.
    """
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"not a {what}: {text!r}.", fix="Use a number from 0 to 1.", where=BY) from None


def later(frame: Frame, make: Callable[[], T]) -> Callable[[], T]:
    """Return a function for a template, which calls `make` when the start of the page is sent; it runs in another task."""

    def made() -> T:
        with acting(BY, read_only=frame.read_only):
            return make()

    return made


@lru_cache(maxsize=1)
def environment() -> Any:
    """Return the templates with their filters; all text in them is escaped.

    Raises:
        ImportError: the extra `view` is not installed.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    directory = paths.resource("data/view")
    templates = Environment(
        loader=FileSystemLoader(directory / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=visible,
    )  # fmt: skip
    templates.filters |= {
        "ago": ago, "days_ago": days_ago, "when": when, "number": number, "plural": plural,
        "at": lambda path, /, **query: link(path, query), "digest": digest, "mark": marked, "markdown": lambda text: markup.markdown(visible(text)), "codes": lambda text: markup.codes(visible(text)), "gist": markup.gist,
    }  # fmt: skip
    templates.globals["files"] = {
        file.name: f"/static/{file.name}?v={hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
        for file in (directory / "static").iterdir()
    }
    return templates


def visible(value: Any) -> Any:
    r"""Return text as it can be shown: characters that hide or turn round other text are replaced.

    >>> visible("pay \u202eme")
    'pay �me'
    """
    if isinstance(value, str) and not value.isprintable():
        cleaned = UNPRINTABLE.sub("�", value.replace("\r\n", "\n"))
        return type(value)(cleaned) if hasattr(value, "__html__") else cleaned
    return value


def when(at: Any) -> str:
    """Return a time as a person reads it.

    >>> when("2026-03-01T10:15:00.000000Z")
    '2026-03-01 10:15'
    """
    text = clock.stamp(at) if isinstance(at, datetime) else str(at or "")
    return text[:16].replace("T", " ")


def ago(at: Any, now: datetime) -> str:
    """Return how long ago a time was; empty for another text.

    >>> from datetime import UTC
    >>> ago("2026-03-01T10:15:00.000000Z", datetime(2026, 3, 4, tzinfo=UTC))
    '2 days ago'
    """
    try:
        seconds = (now - (at if isinstance(at, datetime) else clock.parse(str(at)))).total_seconds()
    except InvalidInput:
        return ""
    if seconds < 0:
        return "in the future"
    for length, unit in ((31_536_000, "years"), (86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= length:
            return f"{pluralize(int(seconds // length), unit)} ago"
    return "just now"


def days_ago(day: str, now: datetime) -> str:
    """Return how many days ago a day was.

    >>> from datetime import UTC
    >>> [days_ago(f"2026-03-0{day}", datetime(2026, 3, 4, 9, tzinfo=UTC)) for day in (4, 3, 1)]
    ['today', 'yesterday', '3 days ago']
    """
    days = (now.date() - date.fromisoformat(day)).days
    return {0: "today", 1: "yesterday"}.get(days, "in the future" if days < 0 else f"{number(days)} days ago")


def number(value: Any) -> str:
    """Return a number with its thousands apart.

    >>> number(12345)
    '12,345'
    """
    return f"{value:,}"


def plural(many: int, noun: str) -> str:
    """Return a number with its noun, given in the plural.

    >>> plural(12345, "tokens"), plural(1, "tokens")
    ('12,345 tokens', '1 token')
    """
    return f"{number(many)} {pluralize(many, noun).partition(' ')[2]}"


def link(path: str, query: Mapping[str, Any]) -> str:
    """Return `path` with its text escaped and the fields of `query` that are not empty."""
    fields = {name: value for name, value in query.items() if value not in ("", None, False)}
    text = quote(path.encode("utf-8", "replace"), safe="/-_.~")
    return f"{text}?{urlencode(fields, errors='replace')}" if fields else text


def without(here: str, name: str) -> str:
    """Return the address `here` without the field `name` of its query.

    >>> without("/brief?done=1&occasion=resume", "done")
    '/brief?occasion=resume'
    """
    path, _, query = here.partition("?")
    fields = [field for field in query.split("&") if field and field.partition("=")[0] != name]
    return f"{path}?{'&'.join(fields)}" if fields else path


def marked(text: str, words: Iterable[str]) -> list[tuple[str, bool]]:
    """Return `text` in parts, each with whether one of `words` is at its start.

    >>> marked("Use SQLite.", ["sqlite"])
    [('Use ', False), ('SQLite', True), ('.', False)]
    """
    import re

    sorted_words = sorted({word for word in words if len(word) > 1}, key=len, reverse=True)
    if not sorted_words:
        return [(text, False)]
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted_words))})\w*", re.IGNORECASE)
    parts, position = [], 0
    for piece in pattern.finditer(text):
        parts += [(text[position : piece.start()], False), (piece.group(), True)]
        position = piece.end()
    return [piece for piece in (*parts, (text[position:], False)) if piece[0]]


def digest(entry: Mapping[str, Any] | None) -> str:
    """Return a short text that changes with every change of an entry, but not when it is read."""
    if entry is None:
        return ""
    lasting = {name: value for name, value in entry.items() if name not in _READING}
    if isinstance(lasting.get("metadata"), Mapping):
        lasting["metadata"] = {
            name: value for name, value in lasting["metadata"].items() if name not in _READING
        }
    data = json.dumps(lasting, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def state_of(home: Path) -> str:
    """Return what changes whenever a document, the journal or a conversation of the home does."""
    talks = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for conversation in sorted(os.listdir(home / "conversations")):
            with contextlib.suppress(OSError):
                status = os.stat(home / "conversations" / conversation / conversations.FILE)
                talks.append((conversation, status.st_mtime_ns, status.st_size))
    return f"{file_ids(home)} {talks}"


def live_entry(documents: Mapping[str, Any], id: str) -> JsonObject | None:
    """Return the item, session, pattern, goal or signal with this id; None if no document holds it."""
    return live_entries(documents, {id}).get(id)


def live_entries(documents: Mapping[str, Any], ids: AbstractSet[str]) -> dict[str, JsonObject]:
    """Return the items, sessions, patterns, goals and signals with these ids, by their id."""
    memory = documents["memory"]
    every_entry = chain(
        items_of(memory), sessions_of(memory), memory["long_term_memory"]["patterns"],
        documents["goals"]["goals"], documents["pheromones"]["active_pheromones"],
    )  # fmt: skip
    by_id = ((entry.get("session_id") or entry["id"], entry) for entry in every_entry)
    return {name: dict(entry) for name, entry in by_id if name in ids}


def unchanged(states: Mapping[str, str]) -> Callable[[Snapshot], None]:
    """Return the check that entries are as they were shown: their digests, by id.

    The check raises `Stale`.
    """

    def require(snapshot: Snapshot) -> None:
        live = live_entries(snapshot.documents, states.keys())
        for name, state in states.items():
            now = digest(live.get(name))
            if now != state:
                changed, missing = (
                    "was changed after this page was shown.",
                    "is no longer where this page showed it.",
                )
                raise Stale(name, changed if now else missing)

    return require
