"""Output: stdout is data, stderr is words; one shape per command with `--json`.

Every command has the same options `--home`, `--json` and `--quiet`, before the noun or after the verb.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path


class Ask:
    """What the common options say, and the home the command worked on."""

    def __init__(self) -> None:
        self.home: str | None = None
        self.json = False
        self.quiet = False
        self.found: Path | None = None

    def place(self) -> Path:
        """Return the home, resolved, and remember it for folding.

        Raises:
            NotFound: there is none.
        """
        from aether.paths import find_home

        self.found = find_home(self.home)
        return self.found


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


class Command(click.Command):
    """A command with the common options."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["params"] = [*(options.get("params") or []), *COMMON]
        options.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*arguments, **options)


class Group(click.Group):
    """A noun whose verbs are commands with the common options, listed in the order of writing."""

    command_class = Command

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*arguments, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Return the verbs in the order in which they are written."""
        return list(self.commands)


pass_ask = click.make_pass_decorator(Ask, ensure=True)


def say(text: str) -> None:
    """Write words for a person to stderr."""
    click.echo(text, err=True)


def emit(ask: Ask, data: Any, text: str | Iterable[str]) -> None:
    """Print `data` with `--json`, else `text`, to stdout."""
    if ask.json:
        click.echo(as_json(data))
        return
    for line in [text] if isinstance(text, str) else text:
        click.echo(line)


def as_json(data: Any) -> str:
    """Return `data` as indented JSON; what a terminal cannot show (lone surrogates) is escaped."""
    import json

    text = json.dumps(data, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, indent=2)
    return text


def table(rows: Sequence[Sequence[Any]], *, head: Sequence[str] = (), right: Iterable[int] = ()) -> list[str]:
    """Return `rows` as aligned lines; the columns in `right` are aligned to the right."""
    cells = [[str(cell) for cell in row] for row in ([head] if head else []) + list(rows)]
    if not cells:
        return []
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    to_right = set(right)
    out = [
        "  ".join(
            cell.rjust(width) if at in to_right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    if head:
        out.insert(1, "  ".join("─" * width for width in widths))
    return out


def short(text: str, chars: int = 90) -> str:
    """Return the first line of `text`, cut to `chars`, safe to print."""
    first = " ".join(text.split()).encode("utf-8", "replace").decode()
    return first if len(first) <= chars else first[: chars - 1] + "…"


def read_text(source: str) -> str:
    """Return the text of a file, or of standard input for `-`.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is not UTF-8.
    """
    from pathlib import Path

    from aether.errors import InvalidInput, NotFound

    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as reason:
        raise NotFound(
            f"cannot be read ({reason.strerror}).", fix="Name a file, or - for standard input.", where=source
        ) from reason
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        raise InvalidInput("is not UTF-8 text.", fix="Convert it to UTF-8.", where=source) from reason


def confirmed(what: str, *, yes: bool) -> bool:
    """Return whether a person agreed to `what`; without a terminal only `--yes` agrees."""
    if yes:
        return True
    if not sys.stdin.isatty():
        say(f"{what} Pass --yes to do it.")
        return False
    return click.confirm(f"{what} Go on?", err=True)
