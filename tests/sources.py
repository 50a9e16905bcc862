"""What the tests of the shape and of the words read in the source: each module is parsed once in a process, and walked once."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# What makes an error or a finding.
ERRORS = {
    "AetherError", "BackendFailed", "BackendUnavailable", "BudgetExceeded", "CorruptDocument", "InvalidDocument",
    "InvalidInput", "LockTimeout", "NotFound", "StorageFailed", "UnsafePath", "UsageError", "Finding", "error", "warning", "lost", "changed",
}  # fmt: skip
# What prints a message to a person.
PRINTS = {"say", "note"}


class Module(NamedTuple):
    """What one module of aether has. Its tree is not kept: all of them take 200 MB."""

    name: str
    path: str
    lines: list[str]
    docstring: str | None
    names: set[str]
    """Each name that it defines: its own, its functions', parameters' and variables'."""
    functions: list[tuple[str, int]]
    """Each function with the lines of its body."""
    imports: list[tuple[str, str]]
    """The module and, after `from`, the name of each import, at the top and inside functions."""
    errors: list[tuple[int, str]]
    """The line and the text of each error or finding that is made, its `fix` included."""
    printed: list[tuple[int, str]]
    """The line and the text of each message to a person."""
    docstrings: list[tuple[int, str]]


@cache
def modules() -> dict[str, Module]:
    """Return every module of aether by its dotted name."""
    found = {}
    for file in sorted((ROOT / "aether").rglob("*.py")):
        place = file.relative_to(ROOT)
        name = ".".join(place.with_suffix("").parts).removesuffix(".__init__")
        found[name] = _module(name, place.as_posix(), file.read_text(encoding="utf-8"))
    return found


def _module(name: str, path: str, text: str) -> Module:
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    return Module(
        name, path, text.splitlines(), ast.get_docstring(tree), {Path(path).stem, *defined(nodes)},
        [
            (f"{path}: {node.name}", body_lines(node))
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ],
        list(_imports(nodes)), list(texts_of(nodes, ERRORS)), list(texts_of(nodes, PRINTS)), list(docstrings(nodes)),
    )  # fmt: skip


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines the body of a function has, without its docstring: that is not what a reader holds in mind."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


def _imports(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield what is imported, but for the type checker."""
    skipped = {
        inner
        for node in nodes
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in nodes:
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def defined(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each name of a function, a class, a parameter or a variable."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def texts_of(nodes: Iterable[ast.AST], names: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the literal text of each call of one of `names`, its placeholders left out."""
    for node in nodes:
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in names:
                yield node.lineno, literals(node)


def literals(node: ast.AST) -> str:
    """Return the text of a literal, its placeholders left out."""
    return " ".join(
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring."""
    for node in nodes:
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and (
            text := ast.get_docstring(node)
        ):
            yield getattr(node, "lineno", 1), text
