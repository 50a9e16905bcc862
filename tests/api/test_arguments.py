"""Arguments of a wrong type, and in a wrong place: every public function says what it wants."""

from __future__ import annotations

import asyncio
import inspect

import pytest

import aether
from aether.errors import AetherError, InvalidInput, public
from tests.tables import rows

NONSENSE = (None, 3, [], {}, "x", object())
# Positional parameters first; keywords need no place to go wrong.
KEYWORD = inspect.Parameter.KEYWORD_ONLY
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def calls():
    """Each public function and method, by name, with how to get it for a home."""
    for name in dir(aether):
        found = getattr(aether, name)
        if inspect.isclass(found):
            if not issubclass(found, Exception):
                yield name, lambda found=found: found
            if found in (aether.ContextManager, aether.CompactManager):
                for method, value in vars(found).items():
                    if inspect.isfunction(value) and not method.startswith("_"):
                        yield (
                            f"{name}.{method}",
                            lambda found=found, method=method: getattr(made(found), method),
                        )
        elif callable(found):
            yield name, lambda found=found: found


def made(kind):
    return kind(1_000) if kind is aether.ContextManager else kind()


def nonsense(function):
    """Arguments, of which one positional one after the other is nonsense; the other required ones are a text."""
    found = list(inspect.signature(function).parameters.values())
    names = [one for one in found if one.kind in POSITIONAL]
    needed = [one for one in found if one.default is one.empty and one.kind in (*POSITIONAL, KEYWORD)]
    for at, one in enumerate(names):
        for value in NONSENSE:
            yield (
                ["x"] * at + [value],
                {each.name: "x" for each in needed if each not in names[:at] and each != one},
            )


def test_no_function_fails_from_inside_whatever_its_arguments_are(home, monkeypatch):
    monkeypatch.setenv("AETHER_HOME", str(home))
    monkeypatch.chdir(home)
    failed = []
    for name, get in calls():
        function = get()
        for arguments, others in nonsense(function):
            try:
                found = function(*arguments, **others)
                if inspect.iscoroutine(found):
                    asyncio.run(found)
            except (AetherError, UserWarning):  # a parameter without effect says so
                pass
            except Exception as reason:
                failed.append(f"{name}{tuple(arguments)} {others}: {type(reason).__name__}: {reason}")

    assert "\n".join(failed) == ""


def manager():
    found = aether.ContextManager(1_000)
    found.add_message("c", "user", "Hi.")
    return found


@rows(
    ("call", "where", "wanted"),
    [
        (lambda: aether.emit_signal(3, "x"), "type", "str"),
        (lambda: aether.add_working_memory_items(None), "entries", "Mapping"),
        (lambda: aether.forget(3), "ids", "str"),
        (lambda: aether.undo("x"), "revision", "int"),
        (lambda: aether.import_transcripts(3), "sources", "PathLike"),
        (lambda: manager().get_context_for_model("c", 800), "model_key", "str"),
        (lambda: aether.search_memory("x", since=3), "since", "datetime"),
        (lambda: aether.compress(1, progress=3), "progress", "Callable"),
    ],
)
def test_the_error_names_the_argument_and_its_type(home, monkeypatch, call, where, wanted):
    monkeypatch.setenv("AETHER_HOME", str(home))

    with pytest.raises(InvalidInput) as failure:
        call()

    assert failure.value.where == where
    assert wanted in failure.value.what


def test_a_failure_that_is_not_of_an_argument_stays_what_it_is():
    @public
    def broken(number: int, call: object = None, *, rest: Missing = 0) -> int:  # noqa: F821 - a hint nobody can resolve
        return number.missing

    @public
    def strict(number: int = 0, names: list[str] | None = None) -> int:
        return number.missing

    for call in (lambda: strict(1, ["a"]), lambda: broken("x"), lambda: strict(1, None)):
        with pytest.raises(AttributeError):
            call()
    for call in (lambda: strict("1"), lambda: strict(1, [2]), lambda: strict(1, "a"), lambda: strict(True)):
        with pytest.raises(InvalidInput):
            call()
    with pytest.raises(TypeError):
        strict(1, 2, 3)
