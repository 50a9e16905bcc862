"""What a model may name, and what keeps it from being made."""

from __future__ import annotations

import pytest

from aether.errors import UnsafePath
from aether.memory.memory_tool import MAX_NAME_BYTES, MAX_PATH_BYTES, blocking_path, canonical, index
from tests.tables import rows


@rows(
    ("path", "found"),
    [
        ("/memories", "/memories"),
        ("/memories/", "/memories"),
        ("/memories/./a", "/memories/a"),
        ("/memories//a//b/", "/memories/a/b"),
        ("/memories/50% done.md", "/memories/50% done.md"),
        ("/memories/.hidden/...b", "/memories/.hidden/...b"),
        ("/memories/später 🐜.md", "/memories/später 🐜.md"),
        ("/memories/" + "n" * MAX_NAME_BYTES, "/memories/" + "n" * MAX_NAME_BYTES),
    ],
)
def test_a_path_has_one_form(path, found):
    assert canonical(path) == found
    assert canonical(found) == found


@rows(
    ("path", "why"),
    [
        ("", "does not begin"),
        ("memories/a", "does not begin"),
        ("/memoriesother", "does not begin"),
        ("/Memories/a", "does not begin"),
        ("//memories/a", "does not begin"),
        ("/etc/passwd", "does not begin"),
        ("/memories/../etc/passwd", "leads up"),
        ("/memories/a/..", "leads up"),
        ("/memories/%2e%2e/a", "encoded"),
        ("/memories/%2E%2E/a", "encoded"),
        ("/memories/..%2fa", "encoded"),
        ("/memories/%252e%252e/a", "encoded"),
        ("/memories/a%00", "encoded"),
        ("/memories/..\\a", "backslash"),
        ("/memories/a\0b", "control character"),
        ("/memories/a\nb", "control character"),
        ("/memories/a\x7fb", "control character"),
        ("/memories/a\ud800", "surrogate"),
        ("/memories/con", "keeps for something else"),
        ("/memories/NUL.txt", "keeps for something else"),
        ("/memories/com1 .md", "keeps for something else"),
        ("/memories/a.", "keeps for something else"),
        ("/memories/a ", "keeps for something else"),
        ("/memories/.a.0123.aether-tmp", "keeps for something else"),
        ("/memories/" + "n" * (MAX_NAME_BYTES + 1), "a name of more than"),
        ("/memories/" + "ü" * (MAX_NAME_BYTES // 2 + 1), "a name of more than"),
        ("/memories" + "/abcdefg" * (MAX_PATH_BYTES // 8), "is longer than"),
    ],
)
def test_what_leads_out_or_is_no_name_everywhere_is_refused(path, why):
    with pytest.raises(UnsafePath, match=why):
        canonical(path)


@rows(
    ("path", "found"),
    [
        ("/memories/new", ""),
        ("/memories/dir/new", ""),
        ("/memories/new/deep/er", ""),
        ("/memories/a", "/memories/a"),
        ("/memories/dir", "/memories/dir"),
        ("/memories/a/below", "/memories/a"),
        ("/memories/A", "/memories/a"),
        ("/memories/DIR/new", "/memories/dir"),
        ("/memories/u\u0308", "/memories/\u00fc"),
        ("/memories", "/memories"),
    ],
)
def test_what_is_in_the_way(path, found):
    known = index(["/memories/a", "/memories/dir/b", "/memories/\u00fc"])

    assert blocking_path(known, path) == found


def test_the_root_is_always_in_the_way():
    assert blocking_path(index([]), "/memories") == "/memories"
