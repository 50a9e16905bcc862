"""The graph of live memory: only what is there is linked, and each link is there once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aether.memory.link_graph import link_graph
from aether.memory.patterns import LINK_TYPES, MUTUAL

NAMES = [f"wm_{nth}" for nth in range(6)]


def item(id, links=(), type="decision", **metadata):
    return {
        "id": id, "type": type, "content": f"Text of {id}", "metadata": metadata,
        "associative_links": [{"target_id": target, "link_type": kind} for target, kind in links],
    }  # fmt: skip


def memory(items, sessions=(), patterns=()):
    return {
        "working_memory": {"items": list(items)}, "short_term_memory": {"sessions": list(sessions)},
        "long_term_memory": {"patterns": list(patterns)},
    }  # fmt: skip


@st.composite
def memories(draw):
    links = st.lists(st.tuples(st.sampled_from([*NAMES, "gone"]), st.sampled_from(LINK_TYPES)), max_size=4)
    items = []
    for name in NAMES[: draw(st.integers(0, 6))]:
        metadata = {"conversation": draw(st.sampled_from(["", "c1", "c2"]))}
        if draw(st.booleans()):
            metadata["fact"] = {
                "kind": draw(st.sampled_from(["change", "run"])),
                "path": draw(st.sampled_from(["a.py", "b.py"])),
            }
        items.append(item(name, draw(links), draw(st.sampled_from(["decision", "code_change"])), **metadata))
    return memory(items)


@given(memories(), st.integers(0, 12))
def test_links_are_between_nodes_and_every_node_is_linked(document, most):
    graph = link_graph(document, most=most)
    ids = [node.id for node in graph.nodes]

    assert len(ids) == len(set(ids)) <= most
    assert len(graph.edges) == len(set(graph.edges))
    assert {end for edge in graph.edges for end in edge[:2]} == set(ids)
    assert all(edge.source != edge.target and "" not in edge for edge in graph.edges)
    assert len(ids) <= graph.total


@given(memories())
def test_a_limit_that_is_wide_enough_leaves_nothing_out(document):
    graph = link_graph(document, most=100)
    held = {
        frozenset((entry["id"], link["target_id"])) for entry in document["working_memory"]["items"]
        for link in entry["associative_links"] if link["target_id"] not in ("gone", entry["id"])
    }  # fmt: skip
    live = {
        entry["id"]
        for entry in document["working_memory"]["items"]
        if entry["type"] == "decision" or entry["associative_links"]
    }

    assert {pair for pair in held if pair <= live} <= {frozenset(edge[:2]) for edge in graph.edges}
    assert len(graph.nodes) == graph.total


def test_both_ends_of_a_mutual_link_are_one_edge():
    kind = min(MUTUAL)
    graph = link_graph(memory([item("wm_1", [("wm_2", kind)]), item("wm_2", [("wm_1", kind)])]), most=9)

    assert [edge.type for edge in graph.edges] == [kind]


def test_patterns_sessions_conversations_and_files_are_linked():
    pattern = {
        "id": "p",
        "pattern": "Test first.",
        "associative_links": [],
        "metadata": {"evidence": [{"session_id": "s"}]},
    }
    session = {"session_id": "s", "summary": "Tests.", "metadata": {}}
    change = item(
        "wm_1", type="code_change", conversation="c", title="Ship", fact={"kind": "change", "path": "a.py"}
    )
    graph = link_graph(memory([change, item("wm_2", conversation="c")], [session], [pattern]), most=9)

    assert {(node.id, node.kind) for node in graph.nodes} == {
        ("p", "pattern"), ("s", "session"), ("c", "conversation"), ("a.py", "file"), ("wm_2", "decision"),
    }  # fmt: skip
    assert set(graph.edges) == {
        ("p", "s", "extracted_from"),
        ("c", "a.py", "changed"),
        ("wm_2", "c", "said_in"),
    }


def test_the_items_of_a_session_are_linked_to_it_after_a_compression():
    change = item("wm_1", type="code_change", conversation="c", fact={"kind": "change", "path": "a.py"})
    choice = item("wm_2", conversation="c")
    session = {"session_id": "s", "summary": "Tests.", "metadata": {"items": [change, choice]}}
    graph = link_graph(memory([], [session]), most=9)

    assert set(graph.edges) == {
        ("s", "a.py", "changed"),
        ("s", "c", "extracted_from"),
        ("s", "wm_2", "extracted_from"),
        ("wm_2", "c", "said_in"),
    }
