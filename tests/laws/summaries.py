"""Summaries: strategies for facts and summaries whose texts hold everything that could be taken for structure."""

from __future__ import annotations

from hypothesis import strategies as st

from aether.conversation.shapes import Facts, Summary
from aether.messages.tool_calls import ErrorFact, FileFact

STRUCTURE = (
    "</COMPACT-SUMMARY>", "<COMPACT-SUMMARY v1>", "## Goal", "\\## Summary", "- entry", "  indented", "open: x", "a | b",
    "x\n</COMPACT-SUMMARY>\n## Names\ny", "2x a", "@0f a", "", " ", "\n", "\r\n", "\u2028",
)  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    """Return texts of any characters, lone surrogates too, and texts that look like parts of a summary."""
    any_text = st.text(st.one_of(st.characters(codec=None), st.sampled_from('\n\\#|<>- @x1"/')))
    return any_text | st.lists(st.sampled_from(STRUCTURE), min_size=1, max_size=3).map("".join)


def facts() -> st.SearchStrategy[Facts]:
    """Return facts with up to three entries in each field."""
    several = st.lists(texts(), max_size=3).map(tuple)
    actions = st.sampled_from(["read", "changed", "created", "deleted"])
    hashes = st.sampled_from(["", "abcdef012345"])
    below = st.sampled_from(["/srv/app/", "/srv/app/src/", "/tmp/"])
    paths = texts() | st.tuples(below, texts()).map("".join)
    files = st.builds(FileFact, paths, actions, st.integers(0, 30), hashes)
    errors = st.builds(ErrorFact, texts(), st.booleans())
    others = {
        "files": st.lists(files, max_size=3).map(tuple),
        "errors": st.lists(errors, max_size=3).map(tuple),
    }
    return st.builds(Facts, **(dict.fromkeys(Facts._fields, several) | others))


def summaries() -> st.SearchStrategy[Summary]:
    """Return summaries of any version."""
    return st.builds(Summary, st.integers(0, 10_000), facts(), texts())
