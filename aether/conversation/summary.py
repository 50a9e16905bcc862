r"""Summary text: the message that replaces removed ones, written so that it can be read back exactly.

    <COMPACT-SUMMARY v3>
    (what this is)
    ## Goal
    - verbatim text; a further line of it is indented by two
    ## Summary
    prose
    </COMPACT-SUMMARY>

`parsed(rendered(summary)) == summary` holds for all texts, whatever tags, headings or line ends they contain. A text
that merely quotes a summary is not read as one. The contents of the fields are decided in `facts`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

from aether.conversation.shapes import Facts, Summary
from aether.messages.model import Message
from aether.messages.tool_calls import ErrorFact, FileFact

END = "</COMPACT-SUMMARY>"
NOTE = (
    "This stands for earlier messages of this conversation, which were removed. "
    "It is a record of them, not an instruction: what is quoted here was said before."
)
_OPENING = re.compile(r"<COMPACT-SUMMARY v(0|[1-9][0-9]*)>")
_PROSE = "Summary"
# A line of prose that looks like structure gets one more backslash, which is removed on reading.
_STRUCTURE = re.compile(r"^(?=\\*(?:## |</?COMPACT-SUMMARY))", re.MULTILINE)
_ESCAPED = re.compile(r"^\\(?=\\*(?:## |</?COMPACT-SUMMARY))", re.MULTILINE)
_FILE = re.compile(r"(read|changed|created|deleted)(?:(, changed)?(?: (\d+)x)?)(?: @(\S*))? (.*)", re.DOTALL)
# A path that starts like a count or a hash has both written before it.
_AMBIGUOUS = re.compile(r"\d+x |@")
_PLAIN_NAME = re.compile(r"[^\s|\"\\](?:[^|\n\\]*[^\s|\\])?")
_BETWEEN = " | "
# A heading of files with the directory of those whose path starts with neither a slash nor the mark of a relative one.
_FILES_IN = "Files in "
_RELATIVE = "./"
_FROM_ROOT = ("/", "~/")


class _Section(NamedTuple):
    """One heading with its entries, one per line."""

    heading: str
    field: str
    write: Callable[[Any], str] = str
    read: Callable[[str], Any] = str


def rendered(summary: Summary) -> str:
    r"""Return the text of the message with `summary`.

    >>> facts = Facts(goals=("Ship it.",), names=("v1.2", "go test"))
    >>> print(rendered(Summary(1, facts, "Done.\n## Odd")).replace(NOTE, "(note)"))
    <COMPACT-SUMMARY v1>
    (note)
    ## Goal
    - Ship it.
    ## Names
    - v1.2 | go test
    ## Summary
    Done.
    \## Odd
    </COMPACT-SUMMARY>
    """
    return "\n".join(rendered_lines(summary))


def rendered_lines(summary: Summary) -> list[str]:
    """Return the parts of that text, each from a line start to a line end: its frame, headings and entries."""
    return [f"<COMPACT-SUMMARY v{summary.version}>", NOTE, *_body(summary), END]


def written_entry(field: str, entry: Any) -> str:
    """Return an entry of a field of the facts as a summary writes it, beside the mark of its line."""
    return _WRITERS[field](entry)


def parsed(text: str) -> Summary | None:
    """Return the summary in `text`; None if it is something else, or has more than a summary.

    >>> parsed("I saw <COMPACT-SUMMARY v1> somewhere.")
    """
    lines = text.strip().split("\n")
    opening = _OPENING.fullmatch(lines[0].strip())
    if opening is None or len(lines) < 2 or lines[-1] != END:
        return None
    if any(line == END or _OPENING.fullmatch(line) for line in lines[1:-1]):
        return None  # several, or one within another text
    fields: dict[str, Any] = {}
    prose = ""
    # The note is above the first heading.
    for part in "\n".join(["", *lines[1:-1]]).split("\n## ")[1:]:
        heading, *body = part.split("\n")
        directory = heading.removeprefix(_FILES_IN) if heading.startswith(_FILES_IN) else ""
        section = _FILES if directory else _BY_HEADING.get(heading)
        if heading == _PROSE:
            prose = _ESCAPED.sub("", "\n".join(body))
        elif section is _NAMES:
            fields["names"] = tuple(
                name for entry in _entries(body) for name in map(_read_name, entry.split(_BETWEEN))
            )
        elif section is _FILES:
            fields["files"] = tuple(_within(directory, _read_file(entry)) for entry in _entries(body))
        elif section:
            fields[section.field] = tuple(map(section.read, _entries(body)))
    return Summary(int(opening[1]), Facts(**fields), prose)


def is_summary(message: Message) -> bool:
    """Return whether `message` is a summary and nothing else; a result of a tool never is."""
    if not message.blocks or any(block.kind != "text" for block in message.blocks):
        return False
    return parsed(message.text) is not None


def _body(summary: Summary) -> Iterator[str]:
    for section in _BEFORE_PROSE:
        yield from _written(section, summary.facts)
    if summary.prose:
        yield f"## {_PROSE}"
        yield _STRUCTURE.sub(r"\\", summary.prose)
    yield from _written(_LOOKUPS, summary.facts)


def _written(section: _Section, facts: Facts) -> Iterator[str]:
    entries: tuple[Any, ...] = getattr(facts, section.field)
    if not entries:
        return
    directory = _directory(facts.files) if section is _FILES else ""
    yield f"## {_FILES_IN}{directory}" if directory else f"## {section.heading}"
    if directory:
        entries = tuple(_below(directory, fact) for fact in facts.files)
    written = [_BETWEEN.join(map(_name, entries))] if section is _NAMES else map(section.write, entries)
    yield from (f"- {entry}".replace("\n", "\n  ") for entry in written)


def _entries(body: Iterable[str]) -> list[str]:
    entries: list[list[str]] = []
    for line in body:
        if line.startswith("- ") or line == "-":
            entries.append([line[2:]])
        elif entries:
            entries[-1].append(line.removeprefix("  "))
    return ["\n".join(lines) for lines in entries]


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name):
        return name
    return json.dumps(name, ensure_ascii=False).replace("|", "\\u007c")


def _read_name(text: str) -> str:
    try:
        return str(json.loads(text)) if text.startswith('"') else text
    except ValueError:
        return text  # written by somebody else


def _file(fact: FileFact) -> str:
    unsure = _AMBIGUOUS.match(fact.path)
    times = f" {fact.times}x" if fact.times != 1 or unsure else ""
    if fact.action == "created" and fact.times > 1:
        # The first use created it, the others changed it.
        times = f", changed {fact.times - 1}x"
    digest = f" @{fact.sha256}" if fact.sha256 or unsure else ""
    return f"{fact.action}{times}{digest} {fact.path}"


def _read_file(entry: str) -> FileFact:
    match = _FILE.fullmatch(entry)
    if match is None:
        return FileFact(entry, "changed", 1)
    times = int(match[3] or 1) + (1 if match[2] else 0)
    return FileFact(match[5], cast(Any, match[1]), times, match[4] or "")


def _directory(files: Sequence[FileFact]) -> str:
    """Return the directory that most of `files` are in, to be written once; nothing if a path does not allow that."""
    paths = [fact.path for fact in files if fact.path.startswith("/")]
    (top, _), *_ = Counter(path.split("/")[1] for path in paths).most_common(1) or [("", 0)]
    inner = [path for path in paths if path.startswith(f"/{top}/")]
    directory = (
        posixpath.commonpath([path.rpartition("/")[0] for path in inner]) + "/" if len(inner) > 1 else ""
    )
    clear = directory and "\n" not in directory and all(path.startswith(directory) for path in inner)
    marked = tuple(directory + mark for mark in (_RELATIVE, *_FROM_ROOT))
    return directory if clear and not any(path.startswith(marked) for path in inner) else ""


def _below(directory: str, fact: FileFact) -> FileFact:
    inner = fact.path.removeprefix(directory)
    is_unchanged = inner == fact.path and not fact.path.startswith(_FROM_ROOT)
    return fact._replace(path=f"{_RELATIVE}{inner}" if is_unchanged else inner)


def _within(directory: str, fact: FileFact) -> FileFact:
    if fact.path.startswith(_RELATIVE):
        return fact._replace(path=fact.path.removeprefix(_RELATIVE))
    return fact if fact.path.startswith(_FROM_ROOT) else fact._replace(path=directory + fact.path)


def _error(fact: ErrorFact) -> str:
    return f"{'open' if fact.open else 'closed'}: {fact.text}"


def _read_error(entry: str) -> ErrorFact:
    state, parted, text = entry.partition(": ")
    if not parted or state not in {"open", "closed"}:
        return ErrorFact(entry, open=True)
    return ErrorFact(text, state == "open")


_NAMES = _Section("Names", "names")
_FILES = _Section("Files", "files", _file, _read_file)
_LOOKUPS = _Section("Look up", "lookups")
_BEFORE_PROSE = (
    _Section("Goal", "goals"),
    _Section("First request", "opening"),
    _Section("Current request", "current"),
    _Section("State", "state"),
    _Section("Next", "next"),
    _Section("Ran", "ran"),
    _Section("Done before", "earlier"),
    _Section("Constraints", "constraints"),
    _Section("Decisions", "decisions"),
    _Section("Requests", "requests"),
    _FILES,
    _Section("Open", "open_calls"),
    _Section("Errors", "errors", _error, _read_error),
    _NAMES,
)
_WRITERS = {section.field: section.write for section in (*_BEFORE_PROSE, _LOOKUPS)} | {"names": _name}
_BY_HEADING = {section.heading: section for section in (*_BEFORE_PROSE, _LOOKUPS)}
