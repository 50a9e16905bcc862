"""The words of names, help and errors: plain technical English, in the terms of the glossary.

Text for models in prompts/ and JSON keys are not names.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click

from aether.compat.compactctl import compactctl
from tests import sources
from tests.cli import stage

ROOT = sources.ROOT
# The documents written by hand; their generated blocks are left out.
PAGES = [
    "README.md", "CHANGELOG.md", "SECURITY.md", "docs/architecture.md", "docs/compaction.md", "docs/backup.md", "docs/configuration.md", "docs/formats.md", "docs/goals.md",
    "docs/glossary.md", "docs/integrations.md", "docs/claude-code.md", "docs/mcp.md", "docs/observability.md", "docs/release.md", "docs/security.md", "docs/shared.md", "docs/why.md",
]  # fmt: skip
# Each banned term, and the words that say it plainly.
BANNED = {
    "tell|tells|told|telling": "say, report, print",
    "taken in|taking in|took in": "drain, import",
    "amiss": "damaged, edited",
    "anew": "again, recount",
    "(?-i:is none|that is none|of none)": "invalid, without",
    "mend|mends|mended|mending": "repair",
    "stand|stands|stood|standing": "be, apply",
    "gone": "removed",
    "begin|begins|began|begun|beginning": "start",
    "due": "ready",
    "unasked": "automatically",
    "wherever": "in any",
    "ladder|climb": "steps",
}
# Parts of names that the vocabulary has replaced.
# A parameter of a public function: callers may give it by name.
PUBLIC = {
    "aether/api/tokens.py: counted",
    # Fields of the JSON that commands print.
    "aether/cli/json_results.py: told", "aether/cli/json_results.py: wire",
} | {
    f"aether/{module}.py: wire"
    for module in (
        "api/compact", "api/compact_views", "api/conversations", "compat/compact_manager", "conversation/plan",
        "conversation/shapes", "tokens/models",
    )
}  # fmt: skip
NAMES_BANNED = "tell tells told amiss anew mend mended stands gone begun begin due drafts salvage gist anchors likeness counted lean ladder climb taking departures reminders wire"
# In the names of tests this is plain English: "unsaved messages are counted".
PLAIN_IN_TESTS = {"counted", "wire"}
# Fields that are keys of JSON output: they stay as they are.
JSON_KEYS = {"gist"}
# A relative clause in the place of a subject.
SUBJECT_WHAT = re.compile(r"^\s*What\b(?!.*\?)", re.IGNORECASE)
# Near-synonyms of the glossary's words: it has one word for each of these things.
GLOSSARY = {
    "workspace directory|data directory": "home",
    "memory entry|memory record": "item",
    "insight|lesson entry": "pattern",
    "pheromones? trail": "signal",
    "threshold ratio": "trigger",
    "hand-over|handover": "hand-off",
}
# One expression of all terms finds quickly that a text has none of them, as nearly all have.
ANY_BANNED = re.compile(rf"\b(?:{'|'.join(BANNED | GLOSSARY)})\b", re.IGNORECASE)


def slips(text: str) -> list[str]:
    """Return each banned term in `text` with the words that say it plainly."""
    if not ANY_BANNED.search(text):
        return []
    return [
        f"{found[0]!r}: say {plainly}"
        for terms, plainly in (BANNED | GLOSSARY).items()
        if (found := re.search(rf"\b(?:{terms})\b", text, re.IGNORECASE))
    ]


def words_of(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment of a program."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_names_are_plain():
    banned = set(NAMES_BANNED.split())

    found = {
        f"{module.path}: {name}"
        for module in sources.modules().values()
        for name in module.names
        if name not in JSON_KEYS and banned & set(words_of(name))
    }

    assert found - PUBLIC == set()


def test_names_of_tests_and_their_helpers_are_plain():
    banned = set(NAMES_BANNED.split()) - PLAIN_IN_TESTS

    # Only a file that has such a word in code is parsed: each worker would spend seconds on all of them.
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
        if any(banned & set(words_of(name)) for name in {path.stem, *re.findall("[A-Za-z]+", text)})
        for name in (path.stem, *sources.defined(ast.walk(ast.parse(text))))
        if banned & set(words_of(name))
    }

    assert found == set()


def test_errors_findings_notes_and_docstrings_are_plain():
    found = [
        f"{module.path}:{line}: {slip}"
        for module in sources.modules().values()
        for line, text in (*module.errors, *module.printed, *module.docstrings)
        for slip in slips(text)
    ]

    assert found == []


def test_comments_are_plain():
    folders = ("aether", "benchmarks", "docs", "examples")
    found = [
        f"{path.relative_to(ROOT)}:{line}: {slip}"
        for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
        # Only a file that has such a word after a # is tokenized, to see whether that is a comment.
        if any(ANY_BANNED.search(rest) for rest in re.findall("#(.*)", path.read_text(encoding="utf-8")))
        for line, text in comments(path)
        for slip in slips(text)
    ]

    assert found == []


def test_examples_and_the_ci_are_plain():
    paths = [ROOT / ".ci/run", *sorted((ROOT / "examples").glob("*.py"))]
    found = [f"{path.name}: {slip}" for path in paths for slip in slips(path.read_text(encoding="utf-8"))]

    assert found == []


def test_documents_are_plain():
    found = [
        f"{page}: {slip} in {line!r}"
        for page in PAGES
        for line in prose((ROOT / page).read_text(encoding="utf-8")).splitlines()
        for slip in slips(line)
    ]

    assert found == []


def prose(page: str) -> str:
    """Return the text of a page without code and without its generated blocks."""
    page = re.sub(r"<!-- [^>]*generated.*?<!-- end -->", "", page, flags=re.DOTALL)
    return re.sub(r"^```.*?^```$|`[^`\n]+`", "", page, flags=re.DOTALL | re.MULTILINE)


def test_docstrings_of_benchmarks_and_generators_are_plain():
    paths = [*sorted((ROOT / "benchmarks").glob("*.py")), *sorted((ROOT / "docs").glob("*.py"))]
    found = [
        f"{path.name}:{line}: {slip}"
        for path in paths
        for line, text in sources.docstrings(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for slip in slips(text)
    ]

    assert found == []


def test_no_error_starts_with_a_clause_as_its_subject():
    found = [
        f"{module.path}:{line}: {text}"
        for module in sources.modules().values()
        for line, text in module.errors
        if SUBJECT_WHAT.search(text)
    ]

    assert found == []


def test_no_text_has_a_plural_in_parentheses():
    found = [
        f"{module.path}:{number}"
        for module in sources.modules().values()
        for number, line in enumerate(module.lines, 1)
        if re.search(r"\w\(s\)[\s\"'.:,]", line) and "str" not in line
    ]

    assert found == [], "use aether.text.words.pluralize"


def helps() -> Iterator[tuple[str, str]]:
    """Yield each command's name with its help, and each option's with its own."""
    commands = [
        *stage.commands(groups=True),
        *((f"compactctl {name}", each) for name, each in compactctl.commands.items()),
    ]
    for name, command in commands:
        yield name, command.help or ""
        for option in command.params:
            if isinstance(option, click.Option):
                yield f"{name} {option.opts[0]}", option.help or ""


def test_help_is_plain():
    found = [f"{name}: {slip}" for name, text in helps() for slip in slips(text)]
    found += [f"{name}: {text}" for name, text in helps() if SUBJECT_WHAT.search(text)]

    assert found == []


def test_no_sentence_of_help_has_where_twice():
    found = [
        f"{name}: {sentence}"
        for name, text in helps()
        for sentence in re.split(r"[.;:]\s", text)
        if len(re.findall(r"\bwhere\b", sentence)) > 1
    ]

    assert found == []


def test_the_words_to_use_are_those_of_the_glossary():
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")

    assert [word for word in GLOSSARY.values() if f"**{word}**" not in glossary] == []


def test_a_slip_is_found():
    """The lists above are worth their lines only if they find something."""
    nodes = list(
        ast.walk(
            ast.parse(
                'def tell_it(anchors):\n    raise InvalidInput("what is amiss is none.", fix="Mend it.")'
            )
        )
    )

    assert [name for name in sources.defined(nodes) if set(NAMES_BANNED.split()) & set(words_of(name))] == [
        "tell_it",
        "anchors",
    ]
    ((_, text),) = sources.texts_of(nodes, sources.ERRORS)
    assert len(slips(text)) == 3
    assert SUBJECT_WHAT.search(text)
