"""The timeline, and the history of one file: which moments are shown, and which paths are the same file."""

from __future__ import annotations

from aether.memory.layers import Filter, Record, records
from aether.memory.timeline import MAIN_KINDS, Moment, about_file, item_moment, moments
from tests.memory.memories import memory, session
from tests.tables import rows

COLONY = {"phases": {"roadmap": [{"phase": 2, "name": "Build", "goal": None, "started_at": "2026-03-01T09:00:00Z", "completed_at": None}]}}  # fmt: skip
RECEIPTS = [
    {"kind": "compression", "at": "2026-03-03T09:00:00Z", "tokens_before": 900, "tokens_after": 300, "phase": 2, "items": ["a", "b"], "session_id": "s2"},
    {"kind": "forgetting", "at": "2026-03-03T10:00:00Z"},
]  # fmt: skip
COMPACTION = Moment("2026-03-04T09:00:00.000000Z", "compaction", "compaction", "smaller", "talk", "talk")


def note(text, type="decision", at="2026-03-02T10:00:00.000000Z", layer="working_memory", id="wm_1", **known):
    return Record(id, layer, type, at, text, 1, {"metadata": known})


def kinds(found, types=(), **asked):
    keep = Filter(types, kinds=frozenset(types) or MAIN_KINDS, **asked)
    return [one.kind for one in moments(map(item_moment, found), RECEIPTS, [COMPACTION], COLONY, keep)]


def test_all_sources_are_in_one_order():
    found = [note("B", "solution"), note("A", "user_input", at="2026-02-01T00:00:00.000000Z")]

    assert kinds(found) == ["request", "phase", "fix", "compression", "compaction"]


@rows(
    ("asked", "expected"),
    [
        ({"since": "2026-03-03T09:00:00.000000Z"}, ["compression", "compaction"]),
        ({"until": "2026-03-03T09:00:00.000000Z"}, ["phase", "decision"]),
        ({"conversation": "talk"}, ["compaction"]),
        ({"conversation": "run.jsonl"}, ["decision"]),
        ({"project": "src/shop"}, ["decision"]),
        ({"types": ("change",)}, ["change"]),
        ({"types": ("code_change", "phase")}, ["phase", "change"]),
        ({"types": ("history",)}, ["note"]),
    ],
)
def test_a_filter_only_removes(asked, expected):
    found = [
        note("Use SQLite.", project="/home/me/src/shop", pointer={"file": "a/run.jsonl"}),
        note("Changed a.py", "code_change"),
        note("So it goes.", "history"),
    ]

    assert kinds(found, **asked) == expected


@rows(
    ("asked", "text", "known"),
    [
        ("a.py", "a.py reads the config.", True),
        ("a.py", "Edit src/a.py.", True),
        ("a.py", "See `a.py`, then go on.", True),
        ("a.py", "src/a.py:12: in load", True),
        ("a.py", "Why does data.py fail?", False),
        ("a.py", "a.pyc is ignored.", False),
        ("a.py", "a.py.bak is ignored.", False),
        ("a.py", "my-a.py is another.", False),
        ("a.py", "The directory a.py/b is odd.", False),
        ("src/a.py", "/home/me/shop/src/a.py holds it.", True),
        ("src/a.py", "/home/me/shop/xsrc/a.py holds it.", False),
        ("src/a.py", "tests/a.py holds it.", False),
        ("./src/../src/a.py", "src/a.py holds it.", True),
        ("/home/me/shop/src/a.py", "src/a.py holds it.", True),
        ("/home/me/shop/src/a.py", "/home/me/src/a.py holds it.", False),
        ("C:\\shop\\src\\a.py", "src\\a.py holds it.", True),
        ("src/a.py", "a.py holds it.", True),
        ("Makefile", "The Makefile runs the tests.", False),
        ("Makefile", "The `Makefile` runs the tests.", True),
        ("Makefile", "shop/Makefile runs the tests.", True),
        ("a+(1).py", "Use src/a+(1).py here.", True),
    ],
)
def test_a_path_is_compared_by_whole_components(asked, text, known):
    assert bool(about_file([note(text)], asked).decisions) is known


def test_a_name_alone_counts_only_if_no_other_file_has_it():
    bare, own, other = (
        note(text, id=text) for text in ("a.py blocks.", "src/a.py waits.", "tests/a.py runs.")
    )

    assert [one.id for one in about_file([bare, own], "src/a.py").decisions] == [bare.id, own.id]
    assert [one.id for one in about_file([bare, own, other], "src/a.py").decisions] == [own.id]


def test_a_relative_path_of_another_project_is_another_file():
    found = [
        note("src/a.py waits.", project="/home/me/blog"),
        note("src/a.py reads.", project="/home/me/shop"),
    ]

    assert [one.text for one in about_file(found, "/home/me/shop/src/a.py").decisions] == ["src/a.py reads."]
    assert len(about_file(found, "src/a.py").decisions) == 2


def test_each_statement_is_in_its_part_once_with_its_state():
    state = memory(session("s1", decisions=["Keep a.py small"], items=[{"content": "Changed a.py", "relevance_score": 1, "type": "code_change"}]))  # fmt: skip
    found = [
        note("Changed /x/with space/a.py (2 edits): load", "code_change", id="c"),
        note("`pytest` failed: a.py:3\nWorked when run again.", "solution", id="e"),
        note("Never open a.py twice.", "constraint", id="r"),
        note("Never open a.py twice.", "constraint", id="again", layer="archive"),
        note("Fix a.py!", "user_input", id="u"),
        note("a.py", "command", id="not shown"),
        *records(state),
    ]

    history = about_file(found, "a.py", ended=frozenset({"r"}))

    assert [one.id for one in history.changes] == ["c"]
    assert [one.id for one in history.errors] == ["e"]
    assert {(one.id, one.revoked) for one in history.decisions} == {("r", True), ("s1", False)}
    assert [one.id for one in history.others] == ["u"]


def test_a_directory_or_nothing_is_no_file():
    for path in ("", "/", ".", "./"):
        assert about_file([note("a.py")], path)[1:] == ([], [], [], [])
