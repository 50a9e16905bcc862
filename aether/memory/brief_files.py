"""Files: which files were changed, each told once, by the path that is shortest from the project's root.

What lies in a scratch directory comes last: it was made to find something out and is gone when this is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from aether.memory.brief_lines import TOLD_CHARS, Line, flat
from aether.shapes import Item
from aether.text.patterns import lazy

# Changes looked through: a file that was changed before them is not what the work is about now.
LOOKED_AT_CHANGES = 200
# Far more than any budget holds.
MOST_FILES = 60
MOST_SCRATCH = 3
# A root is told once and saves its length for each file; one below `/home/user` saves little.
ROOT_PARTS = 4
ROOT_SHARE = 0.6

_CHANGE = lazy(r"(Created|Changed|Deleted) (.+?)(?: \((\d+) (edits|lines)\))?(?:: (.+))?", re.DOTALL)
_SCRATCH = lazy(
    r"(?:/private)?/(?:tmp|var/tmp|var/folders)/|(?:.*/)?(?:tmp|temp|scratch|scratchpad)/"
    r"|\$?\{?[A-Z_]*(?:TMP|TEMP|SCRATCH)[A-Z_]*\}?/|.*/AppData/Local/Temp/",
    re.DOTALL,
)
# First lines that are alike in many files.
_SAYS_NOTHING = lazy(
    r"#!|\W*(?:copyright|spdx|licen[sc]e)\b|(?:package|import|use|using|from|#include)\s|[\"'<][^\s\"']*[\"'>]?,?\Z|[^\w\s]*\Z|.*[{(]\Z",
    re.IGNORECASE,
)


class _Changed(NamedTuple):
    """What is known of one file; the newest change says most."""

    at: str
    action: str
    edits: int
    about: str


def shortener(root: str) -> Callable[[str], str]:
    """Return what tells paths below `root` from there.

    >>> shortener("/home/me/p")("Changed /home/me/p/src/a.py and /srv/home/me/p/b.py")
    'Changed src/a.py and /srv/home/me/p/b.py'
    """
    base = root.rstrip("/") + "/"
    if base.count("/") < 3:  # below `/` or `/srv` lies more than a project
        return str
    found = re.compile(rf"(?<![\w.~/-]){re.escape(base)}")
    return lambda text: found.sub("", text) if base in text else text


def below(items: Iterable[Item], root: str) -> Iterator[Item]:
    """Yield `items` with the paths below `root` told from there."""
    short = shortener(root)
    for item in items:
        content = short(item["content"])
        yield item if content is item["content"] else {**item, "content": content}


def is_scratch(path: str) -> bool:
    """Tell whether `path` lies in a directory for what is thrown away.

    >>> is_scratch("/private/tmp/x/a.go"), is_scratch("SCRATCH/run.sh"), is_scratch("src/template/a.go")
    (True, True, False)
    """
    return _SCRATCH.match(path) is not None


def files(items: Iterable[Item], *, root: str = "", foremost: bool = False) -> list[Line]:
    """Return the files that were changed, each once with all its edits: the last one first, scratch files last.

    Relative paths are below `root`; where nobody knows it, each is the one whole path that ends in it, if there is
    one. With `foremost`, those come first that were edited most, counted the less the longer ago that was.
    """
    found = _changed(items, root)
    places = {path: place for place, path in enumerate(found, start=1)}

    def key(path: str) -> tuple[bool, float]:
        return is_scratch(path), -found[path].edits / places[path] if foremost else places[path]

    ordered = sorted(found, key=key)
    lasting = sum(not is_scratch(path) for path in found)
    return [_line(path, found[path]) for path in ordered[: min(MOST_FILES, lasting + MOST_SCRATCH)]]


def _changed(items: Iterable[Item], root: str) -> dict[str, _Changed]:
    """Return what is known of each file, the one changed last first."""
    changes = (item for item in items if item["type"] == "code_change")
    read = [
        (item["metadata"]["timestamp"], *match.groups())
        for item, _ in zip(changes, range(LOOKED_AT_CHANGES), strict=False)
        if (match := _CHANGE.fullmatch(item["content"].strip()))
    ]
    whole = {} if root else _whole({path for _, _, path, *_ in read})
    found: dict[str, _Changed] = {}
    for at, action, path, number, unit, about in read:
        name = whole.get(path, path)
        known = found.get(name, _Changed(at, action, 0, ""))
        edits = known.edits + (int(number) if unit == "edits" else 1)
        found[name] = known._replace(edits=edits, about=known.about or _hint(about or ""))
    return found


def _whole(paths: set[str]) -> dict[str, str]:
    """Return for each relative path the one whole path that ends in it; a shell names files from where it stands."""
    absolute = [path for path in paths if path.startswith("/")]
    ends = {
        path: [each for each in absolute if each.endswith(f"/{path}")]
        for path in paths
        if not path.startswith("/")
    }
    return {path: found[0] for path, found in ends.items() if len(found) == 1}


def _hint(about: str) -> str:
    return "" if _SAYS_NOTHING.match(about) else flat(about, TOLD_CHARS // 3)


def _line(path: str, known: _Changed) -> Line:
    about = f": {known.about}" if known.about else ""
    return Line("files", f"{path} ({known.action.lower()}, {known.edits}x){about}", known.at)


def root_of(lines: Sequence[Line]) -> str:
    """Return the deepest directory that holds most files of `lines`, "" where there is none worth a mention."""
    held: dict[str, int] = {}
    for line in lines:
        parts = line.text.split(" (")[0].split("/")[:-1]
        for depth in range(ROOT_PARTS, len(parts) + 1):
            directory = "/".join(parts[:depth]) + "/"
            held[directory] = held.get(directory, 0) + 1
    most = [
        root
        for root, files in held.items()
        if files >= max(2, ROOT_SHARE * len(lines)) and root.startswith("/")
    ]
    return max(most, key=lambda root: (len(root), root), default="")
