"""Tables of near-equal cases, run by one test that names the rows that fail."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

FAILURES = (Exception, pytest.fail.Exception)
SHOWN = 60


def rows(names: str | tuple[str, ...], table: Iterable[Any], ids: Any = None) -> Callable[..., Any]:
    """Run a test once for all rows of `table`, with the arguments of `pytest.mark.parametrize`.

    Collecting a case costs more than running most of them. The rows of one test share its fixtures, except
    that each has a `tmp_path` and a `monkeypatch` of its own, and that `capsys` holds only what it printed. A row
    that skips is passed over.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed, skipped, number = [], [], 0
            for number, row in enumerate(table, 1):
                values, given = _row(row, len(columns))
                try:
                    _run_row(test, fixtures, dict(zip(columns, values, strict=True)), number)
                except pytest.skip.Exception as skip:
                    skipped.append(skip)
                except FAILURES as failure:
                    name = given or (ids(row) if callable(ids) else None) or repr(row)
                    failure.add_note(f"in the row {name}")
                    failed.append((str(name)[:SHOWN], failure))
            if failed:
                message = f"{len(failed)} of {number} rows fail: " + "; ".join(name for name, _ in failed)
                raise BaseExceptionGroup(message, [failure for _, failure in failed])
            if skipped and len(skipped) == number:
                raise skipped[0]

        del run.__wrapped__  # else pytest asks for the columns as fixtures
        left = [value for name, value in signature.parameters.items() if name not in columns]
        run.__signature__ = signature.replace(parameters=left)
        return run

    return decorate


def _row(row: Any, columns: int) -> tuple[Any, str | None]:
    """Return the values of a row and the name that it was given."""
    if isinstance(row, type(pytest.param())):
        return row.values, row.id
    return ((row,) if columns == 1 else row), None


def _run_row(test: Callable[..., Any], fixtures: dict[str, Any], row: dict[str, Any], number: int) -> None:
    given = dict(fixtures)
    if "tmp_path" in given:
        given["tmp_path"] = given["tmp_path"] / f"row{number}"
        given["tmp_path"].mkdir()
    if "capsys" in given:
        given["capsys"].readouterr()
    if "monkeypatch" not in given:
        test(**given, **row)
        return
    with given["monkeypatch"].context() as given["monkeypatch"]:
        test(**given, **row)
