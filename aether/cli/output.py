"""Output: data goes to stdout and words to stderr; each command has one JSON shape with `--json`.

Every command has the options `--home`, `--json` and `--quiet`, before the noun or after the verb. A pipe gets plain
lines in which nothing is cut; a terminal gets tables that fit its width, drawn by `rich`, which is imported only then.
Control characters in foreign text are replaced, and a stream that is ASCII only gets ASCII.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click

from aether.text.regex import UNPRINTABLE

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from aether.types import Finding

# Columns of the text of --help: as many as two windows side by side have room for.
HELP_COLUMNS = 100
# Of the line below a head, where a cell may be as long as a message.
LONGEST_RULE = 60
# A line of a hit is at least this wide, however narrow the terminal.
LEAST_COLUMNS = 12
# Shorter work shows no progress: a spinner that flashes up distracts.
PROGRESS_AFTER_SECONDS = 1.0
# Beyond these the closing words of an import would be a list: `aether log` has all.
MOST_UNDOS = 3
# Set by coding agents in the commands that they run; with a terminal of their own, they are no person all the same.
AGENT_VARIABLES = (
    "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CURSOR_AGENT", "GEMINI_CLI",
)  # fmt: skip
USER_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")
LAYER_NAMES = {
    "working_memory": "working", "short_term_memory": "session", "long_term_memory": "pattern",
    "archive": "archive",
}  # fmt: skip
# Characters of our own words beyond ASCII, for streams that are ASCII only.
_IN_ASCII = str.maketrans(
    {"─": "-", "…": "...", "→": "->", "↔": "<->", "—": "-", "×": "x", "±": "+-", "�": "?"}
)


class Table(NamedTuple):
    """Rows under column names; the columns in `right` are aligned to the right."""

    rows: Sequence[Sequence[Any]]
    head: Sequence[str] = ()
    right: Iterable[int] = ()
    indent: int = 0


class Ask:
    """The values of the common options, and the home the command worked on."""

    def __init__(self) -> None:
        self.home: str | None = None
        self.json = False
        self.quiet = False
        self.found: Path | None = None
        self.ages = True
        """Whether the archive may age after the command, if it is the first one of a day."""
        self.least_to_fold = 0
        """Bytes of a journal that is not folded after the command."""

    def place(self) -> Path:
        """Return the resolved home with the spool of the hooks drained, and remember it for folding.

        From here on the log names the user as the author.

        Raises:
            NotFound: there is no home.
        """
        from aether.api.home import drained
        from aether.paths import find_home
        from aether.store.authors import PERSON

        PERSON.set(user_name())
        self.found = drained(find_home(self.home))
        self._report_edits()
        return self.found

    def _report_edits(self) -> None:
        """Say which documents are not used as they are: their text is kept aside, and the last good state is used."""
        from aether.errors import AetherError
        from aether.store.snapshot import load

        if self.found is None:
            return
        try:
            snapshot = load(self.found)
        except AetherError:
            return  # the operation reports it
        for name, about in snapshot.refused.items():
            words = (
                f"Note: the edit of data/{name}.json is not in force: {about['reason']} See: aether doctor"
            )
            note(self, plain(words))
        for name, file in snapshot.irregular.items():
            if snapshot.revision and snapshot.known.get(name) not in (None, snapshot.documents[name]):
                words = f"Note: data/{name}.json was changed by hand or by another program, and the change counts."
                note(self, f"{words} To undo it: aether log, aether undo")
            if file.state == "corrupt":
                words = (
                    f"Note: data/{name}.json is {file.fault} It is kept in quarantine/, and the last good state is "
                    "used; to keep an edit, copy it from there and make it again."
                )
                say(plain(words))


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
    click.Option(["--quiet"], is_flag=True, expose_value=False, callback=_keep, help="Print nothing on stderr except errors"),
]  # fmt: skip


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_COLUMNS}


class Command(click.Command):
    """A command with the common options."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["params"] = [*(options.get("params") or []), *COMMON]
        options.setdefault("context_settings", SETTINGS)
        super().__init__(*arguments, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse `args`; the error about them names this command, also where click names none."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as reason:
            reason.ctx = reason.ctx or ctx
            raise


class Group(Command, click.Group):
    """A noun whose verbs are commands with the common options, listed in the order of writing."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the verbs in the order in which they are written."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` name; a typo prints up to three suggestions."""
        if not args or args[0].startswith("-") or args[0] in self.list_commands(ctx):
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command {args[0]!r}.{_suggestions(self, ctx, args[0])}", ctx)


def with_options(command: Any, options: Sequence[Callable[[Any], Any]]) -> Any:
    """Return `command` with `options` as decorators, in the order of its help."""
    for option in reversed(options):
        command = option(command)
    return command


MOST_SUGGESTIONS = 3


def _suggestions(group: click.Group, ctx: click.Context, word: str) -> str:
    """Return a question that names the commands meant by a misspelt one, or where they are listed."""
    from difflib import get_close_matches

    commands = {name: group.get_command(ctx, name) for name in group.list_commands(ctx)}
    below = [
        f"{name} {verb}"
        for name, command in commands.items()
        if isinstance(command, click.Group)
        for verb in get_close_matches(word, command.commands, 1, 0.8)
    ]
    near = [*get_close_matches(word, commands, MOST_SUGGESTIONS, 0.7), *below][:MOST_SUGGESTIONS]
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


pass_ask = click.make_pass_decorator(Ask, ensure=True)


def say(*parts: str | Table) -> None:
    """Write words to stderr that a person must see, even with `--quiet`."""
    _write(sys.stderr, parts)


def note(ask: Ask, *parts: str | Table) -> None:
    """Write helpful words to stderr; nothing with `--quiet`."""
    if not ask.quiet:
        _write(sys.stderr, parts)


def note_nothing(
    ask: Ask, types: Iterable[str] = (), *, layers: Iterable[str] = (), words: str = "Nothing found."
) -> None:
    """Say that nothing was found; if no entry of `layers` (empty: all) has one of `types`, say which types there are."""
    from aether.api.recall import types_in

    there = types_in(layers, home=ask.place()) if types else set()
    unknown = [plain(type_name) for type_name in types if type_name not in there]
    for type_name in unknown:
        alternatives = f"there are: {plain(', '.join(sorted(there)))}." if there else "there is no entry yet."
        note(ask, f"No entry has the type {type_name!r}; {alternatives}")
    if not unknown:
        note(ask, words)


@contextmanager
def notices(ask: Ask) -> Iterator[None]:
    """Say on a terminal, once, what a command waits for: the lock of a home, or a server."""
    if not sys.stderr.isatty():
        yield
        return
    from aether.clock import NOTICES

    printed: set[str] = set()

    def notice(words: str) -> None:
        if words not in printed:
            printed.add(words)
            note(ask, plain(words))

    NOTICES.append(notice)
    try:
        yield
    finally:
        NOTICES.remove(notice)


def undo_words(revision: int, what: str) -> str:
    """Return the sentence that names the command which undoes `revision`; a change without one waits for a server."""
    return f"aether undo {revision} {what}." if revision else "It waits for the server of the colony."


def note_undo(ask: Ask, revisions: Sequence[int], options: str = "") -> None:
    """Write the commands that undo `revisions`, newest first, to stderr; of a long list the first and the last."""
    *earlier, last = [f"aether undo {revision}{options}" for revision in reversed(revisions)]
    listed = [*earlier[:MOST_UNDOS], *(["…"] if len(earlier) > MOST_UNDOS else []), last]
    note(ask, f"To undo it: {', '.join(listed)}")


def emit(ask: Ask, data: Any, text: str | Table | Iterable[str | Table]) -> None:
    """Print `data` as JSON with `--json`, else the lines and tables of `text`, to stdout; a named tuple is an object."""
    if ask.json:
        text = as_json(_as_data(data))
    _write(sys.stdout, [text] if isinstance(text, (str, Table)) else text)


def _as_data(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: _as_data(below) for name, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_data(below) for below in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _write(stream: TextIO, parts: Iterable[str | Table]) -> None:
    """Write each part as lines of its own: tables are drawn on a terminal and plain elsewhere."""
    lines = _lines(parts, drawn if stream.isatty() else aligned)
    if not lines:
        return
    text, encoding = "\n".join(lines), stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text + "\n")


def _lines(parts: Iterable[str | Table], render: Callable[[Table], list[str]]) -> list[str]:
    return [line for part in parts for line in ([part] if isinstance(part, str) else render(part))]


def as_json(data: Any) -> str:
    """Return `data` as indented JSON; characters that stdout cannot show (lone surrogates) are escaped."""
    import json

    text = json.dumps(data, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, indent=2)
    return text


def aligned(table: Table) -> list[str]:
    """Return a table as aligned plain lines in which nothing is cut; without rows there is no head either.

    >>> aligned(Table([("a", 5), ("bcd", 10)], right=[1]))
    ['a     5', 'bcd  10']
    """
    cells = _cells(table)
    if not cells:
        return []
    widths = _widths(table, cells)
    if table.head:
        cells = [list(table.head), ["─" * min(width, LONGEST_RULE) for width in widths], *cells]
    right = set(table.right)
    lines = []
    for row in cells:
        blanks = [" " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)]
        padded = (
            blank + cell if column in right else cell + blank
            for column, (cell, blank) in enumerate(zip(row, blanks, strict=True))
        )
        lines.append((" " * table.indent + "  ".join(padded)).rstrip())
    return lines


def drawn(table: Table) -> list[str]:
    """Return a table as lines that fit the terminal, drawn by `rich`: the widest column is cut first."""
    cells = _cells(table)
    if not cells:
        return []
    from rich.box import SIMPLE_HEAD
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    console, right, last = _console(), set(table.right), len(cells[0]) - 1
    widths = _fitted(_widths(table, cells), console.width - table.indent - 2 * last)
    table_view = RichTable(
        box=SIMPLE_HEAD, show_edge=False, show_header=bool(table.head), padding=(0, 1, 0, 0), pad_edge=False
    )
    for column in range(last + 1):
        table_view.add_column(
            Text(table.head[column] if table.head else "", no_wrap=True, overflow="ellipsis"),
            justify="right" if column in right else "left",
            width=widths[column],
        )
    for row in cells:
        table_view.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    with console.capture() as captured:
        console.print(Padding(table_view, (0, 0, 0, table.indent)))
    return [line.rstrip() for line in captured.get().splitlines()]


def _widths(table: Table, cells: list[list[str]]) -> list[int]:
    rows = [list(table.head), *cells] if table.head else cells
    return [max(columns(row[column]) for row in rows) for column in range(len(rows[0]))]


def _fitted(widths: list[int], room: int) -> list[int]:
    """Return `widths` with the widest columns narrowed until all of them take at most `room` columns.

    >>> _fitted([3, 19, 60], 50)
    [3, 19, 28]
    """
    fitted = list(widths)
    while sum(fitted) > max(room, len(fitted)):
        widest = max(range(len(fitted)), key=lambda column: (fitted[column], column))
        fitted[widest] -= 1
    return fitted


def _cells(table: Table) -> list[list[str]]:
    return [[" ".join(plain(str(cell)).split()) for cell in row] for row in table.rows]


def _console(*, stderr: bool = False) -> Console:
    """Return a console of the terminal's width, and with its colours unless NO_COLOR is set."""
    from rich.console import Console

    colors: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(
        stderr=stderr, color_system=colors, force_terminal=True, markup=False, highlight=False, emoji=False
    )


def facts(pairs: Iterable[tuple[str, Any]], *, indent: int = 2, room: int = 0) -> list[str]:
    """Return `pairs` of label and value, one per line, with the values aligned.

    The labels take `room` columns, or as many as the longest needs.
    """
    rows = [(f"{label}:", plain(str(value))) for label, value in pairs]
    widest = max((room, *(len(label) for label, _ in rows)))
    return [f"{' ' * indent}{label:<{widest}}  {value}" for label, value in rows]


def when(time: str) -> str:
    """Return an ISO 8601 time in UTC as a person reads it.

    >>> when("2026-03-01T10:15:00.000000Z")
    '2026-03-01 10:15:00'
    """
    return time[:19].replace("T", " ")


def columns(text: str) -> int:
    """Return how many columns `text` takes on a terminal.

    >>> columns("abc"), columns("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(2 if east_asian_width(sign) in "WF" else not combining(sign) for sign in text)


def cut_to(line: str, width: int) -> str:
    """Return a line of at most `width` columns; a cut one ends in an ellipsis.

    >>> cut_to("abcdef", 4), cut_to("日本語", 4)
    ('abc…', '日…')
    """
    if columns(line) <= width:
        return line
    line = line[: max(0, width - 1)]  # no character is narrower than a column, save the combining ones
    while columns(line) > width - 1:
        line = line[:-1]
    return f"{line}…"


def plain(text: str) -> str:
    r"""Return `text` without characters that steer a terminal; line ends and tabs stay.

    >>> plain("red \x1b[31m")
    'red �[31m'
    """
    if text.isprintable():
        return text
    return UNPRINTABLE.sub("�", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    r"""Return `text` on one line, safe to print.

    >>> one_line("one\n  two")
    'one two'
    """
    return plain(" ".join(text.split()))


def watch(frames: Iterable[Iterable[str | Table]]) -> None:
    """Show each frame in the place of the one before, as far as the terminal has room."""
    from rich.live import Live
    from rich.text import Text

    with Live(console=_console(), auto_refresh=False, vertical_overflow="crop") as live:
        for parts in frames:
            text = Text("\n".join(_lines(parts, drawn)), no_wrap=True, overflow="ellipsis")
            live.update(text, refresh=True)


@contextmanager
def progress(ask: Ask) -> Iterator[Callable[[str], None]]:
    """Yield a function that reports the current step: a spinner on a terminal, nothing elsewhere.

    The spinner appears after `PROGRESS_AFTER_SECONDS` and is removed at the end.
    """
    if ask.quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from threading import Timer

    from rich.text import Text

    status = _console(stderr=True).status("")
    timer = Timer(PROGRESS_AFTER_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda text: status.update(Text(one_line(text)))
    finally:
        timer.cancel()
        timer.join()
        status.stop()


@contextmanager
def bar(ask: Ask, words: str) -> Iterator[Callable[[int, str], None]]:
    """Yield a function that shows how far a work is, in percent, and its step: a bar on a terminal, nothing elsewhere.

    The bar appears with the first report below 100 and is removed with one of 100, so that other output may follow.
    """
    if ask.quiet or not sys.stderr.isatty():
        yield lambda percent, step: None
        return
    from rich.progress import BarColumn, Progress, TextColumn

    visible: list[Progress] = []

    def report(percent: int, step: str) -> None:
        if percent >= 100:
            if visible:
                visible.pop().stop()
            return
        if not visible:
            columns_ = (
                TextColumn("{task.description} {task.percentage:.0f} %"),
                BarColumn(30),
                TextColumn("{task.fields[step]}"),
            )
            progress_bar = Progress(*columns_, console=_console(stderr=True), transient=True)
            progress_bar.add_task(words, total=100, step="")
            progress_bar.start()
            visible.append(progress_bar)
        visible[0].update(visible[0].task_ids[0], completed=percent, step=one_line(step), refresh=True)

    try:
        yield report
    finally:
        for progress_bar in visible:
            progress_bar.stop()


def read_text(source: str) -> str:
    """Return the text of a file, or of standard input for `-`.

    Raises:
        NotFound: there is no such file, or it cannot be read.
        InvalidInput: it is not UTF-8.
    """
    from aether import regular
    from aether.errors import InvalidInput

    if source == "-":
        data = sys.stdin.buffer.read()
    else:
        with regular.named(source) as file:
            data = file.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise InvalidInput("is not UTF-8 text.", fix="Convert it to UTF-8.", where=source) from reason


def need_output(ask: Ask, output: str | None, *, content: str) -> None:
    """Refuse to fill a terminal with `content`, or to write where no file can be, before anything is done.

    Raises:
        InvalidInput: it would go to a terminal, or `output` is a directory.
        StorageFailed: the directory is read-only.
    """
    if output is not None:
        from pathlib import Path

        from aether.store.files import require_writable

        _refuse_directory(Path(output))
        require_writable(Path(output).parent)
    elif not ask.json and sys.stdout.isatty():
        from aether.errors import InvalidInput

        raise InvalidInput(
            f"{content} would fill the terminal; nothing was done.",
            fix="Name a file with --output, or send stdout to one.",
        )


def finding_line(finding: Finding, head: str = "") -> str:
    """Return a finding on one line: `head` or its level, its place, what it says and what to do."""
    return plain(f"{head or finding.level}: {finding.where}: {finding.message} {finding.fix}")


def gathered(findings: Iterable[Finding]) -> list[Finding]:
    """Return `findings` with equal ones merged into one that counts the places."""
    places: dict[Finding, list[str]] = {}
    for finding in findings:
        places.setdefault(finding._replace(where=""), []).append(finding.where)
    return [
        one._replace(where=origins[0] if len(origins) == 1 else f"{origins[0]} and {len(origins) - 1} more")
        for one, origins in places.items()
    ]


def write_file(output: str, data: bytes) -> None:
    """Write the whole file that `--output` names, or leave the old file as it is.

    A device, a pipe or a link is written into: replacing it by a file would break its other users.

    Raises:
        InvalidInput: it is a directory.
        NotFound: there is no such directory.
        StorageFailed: the disk refused.
    """
    from pathlib import Path

    from aether.errors import NotFound
    from aether.store.files import storage_errors, write_whole

    path = Path(output)
    _refuse_directory(path)
    if not path.parent.is_dir():
        raise NotFound(
            "there is no such directory.", fix="Name a file in an existing one.", where=str(path.parent)
        )
    with storage_errors(path, left="Nothing was written."):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            with path.open("wb") as file:
                file.write(data)
        else:
            write_whole(path, data)


def _refuse_directory(path: Path) -> None:
    if path.is_dir():
        from aether.errors import InvalidInput

        raise InvalidInput("is a directory.", fix="Name a file.", where=str(path))


def user_name() -> str:
    """Return whose changes those of a command are: the user's, or an agent's; the Queen's if the user has no name."""
    from aether.store.authors import QUEEN

    if any(name in os.environ for name in AGENT_VARIABLES):
        return "agent"
    for name in USER_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    try:  # cron and containers set none of them
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name or QUEEN
    except (ImportError, KeyError):
        return QUEEN


def is_typed() -> bool:
    """Return whether a person typed the command: at a terminal, and in no session of a coding agent."""
    return sys.stdin.isatty() and not any(name in os.environ for name in AGENT_VARIABLES)


def confirmed(question: str, *, yes: bool) -> bool:
    """Return whether a person agreed.

    Raises:
        InvalidInput: `--yes` is missing and there is no terminal to ask.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        from aether.errors import InvalidInput

        raise InvalidInput(question, fix="Pass --yes to do it.")
    return click.confirm(f"{question} Continue?", err=True)


def agreed(
    ask: Ask, data: Any, preview: str | Table | Iterable[str | Table], *questions: str, yes: bool
) -> bool:
    """Show what would be done, and return whether a person agreed to all `questions`; else `data` is printed with `--json`.

    Raises:
        InvalidInput: `--yes` is missing and there is no terminal to ask.
    """
    if not yes and not ask.json:
        emit(ask, None, preview)
    if all(confirmed(question, yes=yes) for question in questions):
        return True
    if ask.json:
        emit(ask, data, [])
    return False


def open_missing() -> None:
    """Put the null device in the place of each standard stream that was closed before the process started.

    Reading from it finds the end, and writing goes nowhere. Otherwise a file opened later could get its
    number, and with it the text for the stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends


def drop_stdout() -> None:
    """Send buffered output to the null device: at exit Python would try to write it again, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
