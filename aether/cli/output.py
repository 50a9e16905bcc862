"""Output: stdout is data, stderr is words; one shape per command with `--json`.

Every command has the same options `--home`, `--json` and `--quiet`, before the noun or after the verb.
Text for a person fits the terminal, holds no control characters of foreign texts, and falls back to ASCII
where the terminal knows no more; with `--json` everything is there, exactly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from pathlib import Path

    from aether.shapes import Finding

# Columns of a line where no terminal says otherwise: what two windows side by side have room for.
DEFAULT_COLUMNS = 100
# A last column narrower than this says nothing.
LEAST_COLUMNS = 24
# Work that is done sooner needs no progress line.
PROGRESS_AFTER_SECONDS = 1.0
# Often enough to see that it lives, rarely enough not to slow it.
PROGRESS_EVERY_SECONDS = 0.2
# What our own words use beyond ASCII, for terminals that have no more.
_IN_ASCII = str.maketrans(
    {"─": "-", "…": "...", "→": "->", "↔": "<->", "—": "-", "×": "x", "±": "+-", "�": "?"}
)
# Control characters, and the marks that change the direction of the text after them.
_UNSEEN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


class Ask:
    """What the common options say, and the home the command worked on."""

    def __init__(self) -> None:
        self.home: str | None = None
        self.json = False
        self.quiet = False
        self.found: Path | None = None

    def place(self) -> Path:
        """Return the home, resolved and its spool drained, and remember it for folding.

        Raises:
            NotFound: there is none.
        """
        from aether.operations.edge import drained
        from aether.paths import find_home

        self.found = drained(find_home(self.home))
        self._tell_unreadable()
        return self.found

    def _tell_unreadable(self) -> None:
        """Say which documents do not parse: what is in them besides is put aside, not taken in."""
        from aether.errors import AetherError
        from aether.store.state import load

        if self.found is None:
            return
        try:
            amiss = load(self.found).amiss
        except AetherError:
            return  # the operation says it
        for name, file in amiss.items():
            if file.state == "corrupt":
                say(
                    f"Note: data/{name}.json does not parse. What is in it is kept in quarantine/, and the last "
                    "good state is used; take an edit from there and make it again."
                )


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value:
        setattr(ctx.ensure_object(Ask), str(parameter.name), value)
    return value


COMMON: list[click.Parameter] = [
    click.Option(
        ["--home"], metavar="DIR", expose_value=False, callback=_keep,
        help="The home, or the directory that holds it  [default: AETHER_HOME, else the nearest .aether/ above]",
    ),
    click.Option(["--json"], is_flag=True, expose_value=False, callback=_keep, help="Print one JSON value"),
    click.Option(["--quiet"], is_flag=True, expose_value=False, callback=_keep, help="Say nothing on stderr but errors"),
]  # fmt: skip


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": DEFAULT_COLUMNS}


class Command(click.Command):
    """A command with the common options."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["params"] = [*(options.get("params") or []), *COMMON]
        options.setdefault("context_settings", SETTINGS)
        super().__init__(*arguments, **options)


class Group(click.Group):
    """A noun whose verbs are commands with the common options, listed in the order of writing."""

    command_class = Command

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["params"] = [*(options.get("params") or []), *COMMON]
        options.setdefault("context_settings", SETTINGS)
        super().__init__(*arguments, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the verbs in the order in which they are written."""
        return list(self.commands)


pass_ask = click.make_pass_decorator(Ask, ensure=True)


def say(text: str) -> None:
    """Write words to stderr that a person must see, `--quiet` or not."""
    _write(sys.stderr, text)


def note(ask: Ask, text: str) -> None:
    """Write words to stderr that help a person along; nothing with `--quiet`."""
    if not ask.quiet:
        _write(sys.stderr, text)


def emit(ask: Ask, data: Any, text: str | Iterable[str]) -> None:
    """Print `data` with `--json`, else the line or lines of `text`, to stdout."""
    lines = [as_json(data)] if ask.json else [text] if isinstance(text, str) else list(text)
    if lines:
        _write(sys.stdout, "\n".join(lines))


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text + "\n")


def as_json(data: Any) -> str:
    """Return `data` as indented JSON; what a terminal cannot show (lone surrogates) is escaped."""
    import json

    text = json.dumps(data, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, indent=2)
    return text


def table(
    rows: Iterable[Sequence[Any]], *, head: Sequence[str] = (), right: Iterable[int] = (), indent: int = 0
) -> list[str]:
    """Return `rows` as aligned lines that fit the terminal: the last column is cut.

    The columns in `right` are aligned to the right. No rows give no lines, not even the head.
    """
    cells = [[" ".join(plain(str(cell)).split()) for cell in row] for row in rows]
    if not cells:
        return []
    if head:
        cells.insert(0, list(head))
    widths = [max(columns(row[at]) for row in cells) for at in range(len(cells[0]))]
    room = terminal_columns() - indent - sum(widths[:-1]) - 2 * (len(widths) - 1)
    widths[-1] = min(widths[-1], max(room, LEAST_COLUMNS))
    if head:
        cells.insert(1, ["─" * width for width in widths])
    to_right = set(right)
    return [" " * indent + _aligned(row, widths, to_right) for row in cells]


def _aligned(row: list[str], widths: list[int], to_right: set[int]) -> str:
    parts = []
    for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
        text = short(cell, width)
        blank = " " * (width - columns(text))
        parts.append(blank + text if at in to_right else text + blank)
    return "  ".join(parts).rstrip()


def facts(pairs: Iterable[tuple[str, Any]], *, indent: int = 2, room: int = 0) -> list[str]:
    """Return `pairs` of label and value, one per line, the values below each other.

    The labels take `room` columns, or as many as the longest needs.
    """
    rows = [(f"{label}:", str(value)) for label, value in pairs]
    widest = max((room, *(len(label) for label, _ in rows)))
    return [f"{' ' * indent}{label:<{widest}}  {value}" for label, value in rows]


def when(time: str) -> str:
    """Return an ISO 8601 time in UTC as a person reads it.

    >>> when("2026-03-01T10:15:00.000000Z")
    '2026-03-01 10:15:00'
    """
    return time[:19].replace("T", " ")


def terminal_columns() -> int:
    """Return how many columns a line on stdout may take."""
    try:
        known = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):  # a pipe, a file, or no stdout at all
        return DEFAULT_COLUMNS
    said = os.environ.get("COLUMNS", "")  # for terminals that do not know their size
    return known or (int(said) if said.isdecimal() else 0) or DEFAULT_COLUMNS


def columns(text: str) -> int:
    """Return how many columns `text` takes on a terminal.

    >>> columns("abc"), columns("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(2 if east_asian_width(sign) in "WF" else not combining(sign) for sign in text)


def plain(text: str) -> str:
    r"""Return `text` without what would steer a terminal; line ends and tabs stay.

    >>> plain("red \x1b[31m")
    'red �[31m'
    """
    if text.isprintable():
        return text
    import re

    return re.sub(_UNSEEN, "�", text.replace("\r\n", "\n"))


def short(text: str, room: int = DEFAULT_COLUMNS) -> str:
    """Return `text` on one line of at most `room` columns, safe to print.

    >>> short("one   two three", 9)
    'one two …'
    """
    # No more words and signs than columns are needed, however long the text.
    line = plain(" ".join(text.split(None, room + 1)[: room + 1])[: room + 1])
    if len(line) <= room and columns(line) <= room:
        return line
    line = line[: max(0, room - 1)]
    while columns(line) > max(0, room - 1):
        line = line[:-1]
    return line + "…"


def wrapped(text: str, *, indent: int = 0) -> list[str]:
    """Return `text` as lines that fit the terminal; all but the first are indented by `indent`."""
    import textwrap

    blank = " " * indent
    return textwrap.wrap(plain(text), terminal_columns(), subsequent_indent=blank, break_on_hyphens=False)


@contextmanager
def progress(ask: Ask) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes what is being done, shown on a terminal while the block takes long.

    The line appears after `PROGRESS_AFTER_SECONDS` and is gone at the end.
    """
    if ask.quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from threading import Event, Thread

    doing, done = [""], Event()

    def show() -> None:
        wait, shown = PROGRESS_AFTER_SECONDS, ""
        while not done.wait(wait):
            wait = PROGRESS_EVERY_SECONDS
            if doing[0] != shown:
                shown = doing[0]
                sys.stderr.write(f"\r\x1b[K{short(shown, terminal_columns() - 1)}")
                sys.stderr.flush()
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield lambda text: doing.__setitem__(0, text)
    finally:
        done.set()
        thread.join()


def read_text(source: str) -> str:
    """Return the text of a file, or of standard input for `-`.

    Raises:
        NotFound: there is no such file, or it cannot be read.
        InvalidInput: it is not UTF-8.
    """
    from pathlib import Path

    from aether.errors import InvalidInput, NotFound

    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except (OSError, ValueError) as reason:  # ValueError: a NUL or a lone surrogate in the name
        words = getattr(reason, "strerror", None) or "no such name"
        raise NotFound(
            f"cannot be read ({words}).", fix="Name a file, or - for standard input.", where=plain(source)
        ) from reason
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise InvalidInput("is not UTF-8 text.", fix="Convert it to UTF-8.", where=source) from reason


def need_output(ask: Ask, output: str | None, *, what: str) -> None:
    """Refuse to fill a terminal with `what`, before anything is done.

    Raises:
        InvalidInput: it would go to a terminal.
    """
    if output is None and not ask.json and sys.stdout.isatty():
        from aether.errors import InvalidInput

        raise InvalidInput(
            f"{what} would fill the terminal; nothing was done.",
            fix="Name a file with --output, or send stdout to one.",
        )


def gathered(findings: Iterable[Finding]) -> list[Finding]:
    """Return `findings` with those that say the same in one, which counts the places."""
    places: dict[Finding, list[str]] = {}
    for finding in findings:
        places.setdefault(finding._replace(where=""), []).append(finding.where)
    return [
        one._replace(where=found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more")
        for one, found in places.items()
    ]


def write_file(output: str, data: bytes) -> None:
    """Write the whole file that `--output` names, or leave what is there as it is.

    A device, a pipe or a link is written into: to put a file in its place would break what others use.

    Raises:
        NotFound: there is no such directory.
        StorageFailed: the disk refused.
    """
    from pathlib import Path

    from aether.errors import NotFound
    from aether.store.files import storage, write_whole

    path = Path(output)
    if not path.name or not path.parent.is_dir():
        raise NotFound(
            "there is no such directory.", fix="Name a file in one that is there.", where=str(path.parent)
        )
    with storage(path, left="Nothing was written."):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            with path.open("wb") as file:
                file.write(data)
        else:
            write_whole(path, data)


def confirmed(what: str, *, yes: bool) -> bool:
    """Return whether a person agreed to `what`.

    Raises:
        InvalidInput: there is neither `--yes` nor a terminal to ask at.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        from aether.errors import InvalidInput

        raise InvalidInput(what, fix="Pass --yes to do it.")
    return click.confirm(f"{what} Go on?", err=True)
