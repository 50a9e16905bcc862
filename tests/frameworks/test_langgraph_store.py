"""The store of LangGraph over a home."""

import asyncio
import builtins
import json

import pytest

pytest.importorskip("langgraph", reason="needs the package langgraph")

from langgraph.store.base import PutOp

import aether
from aether.errors import BackendUnavailable, InvalidInput
from aether.frameworks.langgraph_store import memory_store
from aether.memory.memory_tool import MAX_FILE_BYTES
from tests.tables import rows

pytestmark = pytest.mark.extras
NAMES = ("users", "Ada/1")


@pytest.fixture
def store(home):
    return memory_store(home)


def keys(items):
    return [item.key for item in items]


def test_a_value_is_put_replaced_and_deleted(store):
    store.put(NAMES, "food", {"likes": "figs"})
    first = store.get(NAMES, "food")
    store.put(NAMES, "food", {"likes": "dates"})
    second = store.get(NAMES, "food")

    assert (first.value, first.key, first.namespace) == ({"likes": "figs"}, "food", NAMES)
    assert second.value == {"likes": "dates"}
    assert first.created_at == second.created_at <= second.updated_at
    store.delete(NAMES, "food")
    assert store.get(NAMES, "food") is None
    store.delete(NAMES, "food")


@rows("name", ["a", "A", "a.b", "..", "con", "Über / 100 %", "a~b", "x\\y", "日本", ".json", "a\nb"])
def test_any_text_is_a_key_and_a_namespace(store, name):
    namespace = ("keys", name.replace(".", "-"))  # LangGraph allows no period there
    store.put(namespace, name, {"n": name})

    assert store.get(namespace, name).value == {"n": name}
    assert namespace in store.list_namespaces()


def test_names_that_differ_in_case_are_different(store):
    store.put(("a",), "K", {"n": 1})
    store.put(("a",), "k", {"n": 2})

    assert [store.get(("a",), key).value["n"] for key in "Kk"] == [1, 2]


def test_an_empty_key_is_refused_and_nothing_of_its_batch_is_stored(store):
    with pytest.raises(InvalidInput):
        store.batch([PutOp(("a",), "good", {}), PutOp(("a",), "", {})])

    assert store.search(("a",)) == []


def test_a_search_keeps_to_its_namespace_its_filter_and_its_words(store):
    store.put(("a", "x"), "one", {"text": "The queue uses SQLite.", "stars": 3})
    store.put(("a", "y"), "two", {"text": "The queue was slow.", "stars": 5})
    store.put(("b",), "three", {"text": "SQLite queue", "stars": 5})

    assert keys(store.search(("a",))) == ["two", "one"]
    assert keys(store.search((), query="SQLite queues")) == ["three", "one", "two"]
    assert store.search((), query="SQLite queues")[0].score == 1
    assert keys(store.search((), query="zebra")) == []
    assert keys(store.search((), filter={"stars": 5})) == ["three", "two"]
    assert keys(store.search((), filter={"stars": {"$gt": 2, "$lt": 4}})) == ["one"]
    assert keys(store.search((), filter={"text": {"$gt": 2}})) == []
    assert keys(store.search((), limit=1, offset=1)) == ["two"]


def test_namespaces_are_listed_by_their_ends_and_their_depth(store):
    for namespace in (("a", "x", "v1"), ("a", "y", "v1"), ("b", "x", "v2")):
        store.put(namespace, "k", {})

    assert store.list_namespaces(prefix=("a",)) == [("a", "x", "v1"), ("a", "y", "v1")]
    assert store.list_namespaces(prefix=("*", "x")) == [("a", "x", "v1"), ("b", "x", "v2")]
    assert store.list_namespaces(suffix=("v1",), max_depth=1) == [("a",)]
    assert (
        store.list_namespaces(prefix=("a", "x", "v1", "z"))
        == store.list_namespaces(suffix=tuple("abcd"))
        == []
    )
    assert store.list_namespaces(limit=1, offset=2) == [("b", "x", "v2")]


def test_values_are_files_that_undo_brings_back_and_other_sessions_see(home, store):
    store.put(NAMES, "food", {"likes": "figs"})
    store.put(NAMES, "food", {"likes": "dates"})

    shown = home / "memories/store/users/~41da~2f1/food.json"
    assert json.loads(shown.read_text(encoding="utf-8"))["value"] == {"likes": "dates"}
    assert memory_store(home).get(NAMES, "food").value == {"likes": "dates"}
    aether.undo(home=home)
    assert store.get(NAMES, "food").value == {"likes": "figs"}


def test_the_asynchronous_calls_do_the_same(store):
    async def talk():
        await store.aput(NAMES, "food", {"likes": "figs"})
        return await store.aget(NAMES, "food")

    assert asyncio.run(talk()).value == {"likes": "figs"}


def test_what_a_home_cannot_hold_is_refused(store):
    with pytest.raises(InvalidInput, match="the limit is"):
        store.put(NAMES, "all", {"text": "a" * MAX_FILE_BYTES})

    for nth in range(15):
        store.put(NAMES, str(nth), {"text": "a" * (MAX_FILE_BYTES - 200)})
    with pytest.raises(InvalidInput, match="all files"):
        store.batch(PutOp(NAMES, f"x{nth}", {"text": "a" * (MAX_FILE_BYTES - 200)}) for nth in range(2))


def test_a_file_that_was_damaged_by_hand_is_named(home, store):
    store.put(NAMES, "food", {"likes": "figs"})
    path = "/memories/store/users/~41da~2f1/food.json"
    aether.memory_tool(
        {"command": "str_replace", "path": path, "old_str": '"value"', "new_str": '"v"'}, home=home
    )

    with pytest.raises(InvalidInput, match="not a value"):
        store.get(NAMES, "food")


def test_without_langgraph_the_fix_is_named(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("langgraph"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(BackendUnavailable, match=r"pip install .*langchain"):
        memory_store()
