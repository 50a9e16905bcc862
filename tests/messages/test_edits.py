from aether.messages.edits import file_changes
from tests.tables import rows

PATCH = """*** Begin Patch
*** Update File: a.go
@@
-func Old() {}
+func New() {}
*** Add File: b.go
+package b
*** Delete File: c.go
*** End Patch
trailing
"""


def brief(arguments, command=""):
    return [(change.path, change.action) for change in file_changes(arguments, command)]


@rows(
    ("arguments", "found"),
    [
        ({"file_path": "a.py", "content": "x = 1\n"}, [("a.py", "created")]),
        ({"file_path": "a.py", "old_string": "x", "new_string": "y"}, [("a.py", "changed")]),
        ({"path": "a.py", "command": "str_replace", "old_str": "x", "new_str": "y"}, [("a.py", "changed")]),
        ({"path": "a.py", "command": "create", "file_text": "x"}, [("a.py", "created")]),
        ({"path": "a.py", "command": "view", "content": "x"}, []),
        ({"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "y"}, 7]}, [("a.py", "changed")]),
        ({"file_path": "a.py", "offset": 3}, []),
        ({"file_path": 7, "content": "x"}, []),
        ({"input": PATCH}, [("a.go", "changed"), ("b.go", "created"), ("c.go", "deleted")]),
        ({"input": "*** Begin Patch\nnothing"}, []),
        ({}, []),
    ],
)
def test_edits_are_known_by_their_arguments(arguments, found):
    assert brief(arguments) == found


@rows(
    ("command", "found"),
    [
        ("cat > a.py <<'EOF'\nx\nEOF", [("a.py", "created")]),
        ("echo x; cat >> notes.md <<EOF\nx\nEOF", [("notes.md", "changed")]),
        ("cat <<EOF\nx\nEOF", []),
        ("sed -i 's/a/b/' a.py && sed -i -e 's/c/d/' b.py", [("a.py", "changed"), ("b.py", "changed")]),
        (
            "apply_patch <<'EOF'\n" + PATCH + "EOF",
            [("a.go", "changed"), ("b.go", "created"), ("c.go", "deleted")],
        ),
        ("ls", []),
    ],
)
def test_files_written_by_the_shell_count_as_well(command, found):
    assert brief({"command": command}, command) == found


def test_a_change_names_what_is_new_in_it():
    [change] = file_changes(
        {"path": "a.py", "old_str": "def a(): ...", "new_str": "def a(): ...\n\nclass B:\n"}
    )
    assert change.names == ("B",)
    [change] = file_changes({"path": "a.md", "old_str": "one\n", "new_str": "one\n" + "two " * 60})
    assert change.first.startswith("two two")
    assert change.first.endswith("…")
    [change] = file_changes({"path": "a.md", "old_str": "one", "new_str": "one"})
    assert (change.names, change.first) == ((), "")


def test_what_aether_added_is_not_taken_for_new():
    [change] = file_changes({"path": "a.md", "content": "<aether-memory>def secret</aether-memory>"})

    assert "secret" not in str(change)
