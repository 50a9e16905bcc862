import hashlib

from aether.compaction.calls import calls
from aether.compaction.files import digest, files_of, merged_files
from aether.compaction.shapes import FileFact
from tests.compaction.conversations import bash, conversation, tool
from tests.tables import rows


def files(*parts):
    return files_of(calls(conversation(*parts)))


def paths(*parts):
    return [(fact.path, fact.action) for fact in files(*parts)]


def test_a_whole_file_that_was_written_has_the_hash_that_sha256sum_would_say():
    (fact,) = files(tool("Write", file_path="a.py", content="x = 1\n"))

    assert fact == ("a.py", "created", 1, hashlib.sha256(b"x = 1\n").hexdigest()[:12])


def test_a_part_that_is_changed_takes_the_hash_away_and_leaves_the_file_created():
    (fact,) = files(
        tool("Write", file_path="a.py", content="x = 1\n"),
        tool("Edit", file_path="a.py", old_string="1", new_string="2"),
    )

    assert fact == ("a.py", "created", 2, "")


def test_a_file_that_was_read_and_then_changed_is_listed_as_changed():
    (fact,) = files(
        tool("Read", "text", file_path="a.py"), tool("Edit", file_path="a.py", old_string="1", new_string="2")
    )

    assert fact == ("a.py", "changed", 1, "")


def test_a_file_that_is_written_whole_after_it_was_read_was_changed():
    assert paths(tool("Read", "text", file_path="a.py"), tool("Write", file_path="a.py", content="b")) == [
        ("a.py", "changed")
    ]


def test_reading_a_changed_file_again_only_tells_its_hash():
    (fact,) = files(
        tool("Edit", file_path="a.py", old_string="1", new_string="2"), tool("Read", "all", file_path="a.py")
    )

    assert fact == ("a.py", "changed", 1, digest("all"))


def test_a_deleted_file_that_is_written_again_was_created():
    assert paths(bash("rm src/a.py"), tool("Write", file_path="src/a.py", content="b")) == [
        ("src/a.py", "created")
    ]


@rows(
    "part",
    [
        tool("Read", "     1→x = 1", file_path="a.py"),
        tool("Read", "x = 1", file_path="a.py", offset=3),
        tool("Read", "", file_path="a.py"),
    ],
)
def test_a_file_that_was_read_in_part_or_with_line_numbers_has_no_hash(part):
    (fact,) = files(part)

    assert fact == ("a.py", "read", 1, "")


@rows(
    "part",
    [
        tool("Edit", "String not found", failed=True, file_path="a.py", old_string="1", new_string="2"),
        tool("Write", None, file_path="a.py", content="x"),
        tool("Grep", "a.py:1", path="a.py", pattern="x"),
        tool("list_files", "a.py", path="src"),
        tool("read_dir", "a.py", path="src/"),
        tool("get_weather", "sunny", city="Rome"),
        bash("echo hi > /dev/null"),
        bash("make 2>&1 | cat"),
        bash("rm -rf build"),
        bash("mv a.py"),
    ],
)
def test_what_failed_never_answered_or_names_no_file_is_not_listed(part):
    assert files(part) == ()


@rows(
    ("part", "expected"),
    [
        (tool("str_replace_editor", "text", command="view", path="b.py"), [("b.py", "read")]),
        (tool("str_replace_editor", command="create", path="b.py", file_text="x"), [("b.py", "created")]),
        (tool("open_file", "text", path="b.py"), [("b.py", "read")]),
        (bash("cat docs/x.md | head"), [("docs/x.md", "read")]),
        (bash("sed -n 1,20p src/a.py"), [("src/a.py", "read")]),
        (bash("cd app && head -5 'src/a.py' b.txt"), [("src/a.py", "read"), ("b.txt", "read")]),
        (bash("git rm src/old.py && git mv src/a.py src/b.py"),
         [("src/old.py", "deleted"), ("src/a.py", "deleted"), ("src/b.py", "created")]),
        (bash("rm notes.txt"), [("notes.txt", "deleted")]),
        (bash("mv a.py b.py"), [("a.py", "deleted"), ("b.py", "created")]),
        (bash("python gen.py > out.json"), [("out.json", "created")]),
        (bash("echo more >> log.txt"), [("log.txt", "changed")]),
        (bash("cat > new.py <<'EOF'\nx = 1\nEOF"), [("new.py", "created")]),
        (bash("sed -i 's/a/b/' conf.ini"), [("conf.ini", "changed")]),
        (tool("apply_patch", input="*** Begin Patch\n*** Update File: p.py\n+x\n*** Delete File: q.py\n*** End Patch"),
         [("p.py", "changed"), ("q.py", "deleted")]),
    ],
)  # fmt: skip
def test_files_are_told_from_editors_patches_and_the_shell(part, expected):
    assert paths(part) == expected


def test_merging_counts_on_and_puts_what_was_touched_last_at_the_end():
    older = (FileFact("a", "changed", 2), FileFact("b", "read", 1), FileFact("c", "read", 4))
    newer = (FileFact("a", "changed", 1), FileFact("b", "deleted", 1), FileFact("c", "read", 1, "0f"))

    assert merged_files(older, newer) == (
        FileFact("a", "changed", 3),
        FileFact("b", "deleted", 1),
        FileFact("c", "read", 5, "0f"),
    )
