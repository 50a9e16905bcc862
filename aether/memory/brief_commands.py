"""Commands: what of a command line is worth telling, and what became of it.

An agent looks around with long lines of shell that are of no use to anybody later; what tests, builds and changes
something stands among them. A line is told by those parts alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from aether.memory.brief_lines import TOLD_CHARS, Line, flat
from aether.shapes import Item
from aether.text.patterns import lazy

# A command that is longer is a script, and nobody runs it again.
COMMAND_CHARS = 160
# Looked through: far more than any budget holds, far less than a full memory.
LOOKED_AT = 60

# One command of a line with what stands quoted in it, or what stands between two.
_PIECE = lazy(
    r"""((?:"(?:\\.|[^"\\])*(?:"|\Z)|'[^']*(?:'|\Z)|\\.|\d?>&\d|&>|[^"'\\;&|\n]|&(?!&)|\\\Z)+)|(\|\||&&|[;|\n])""",
    re.DOTALL,
)
_OPENS = lazy(
    r"(?:(?:do|then|else|if|elif|while|until|time|!|[({])(?:\s+|\Z)|[A-Za-z_]\w*=(?:\$\([^)]*\)|[^\s;]*)(?:\s+|\Z))+"
)
_NO_WORK = lazy(
    r"(?:for|case|select|read|done|fi|esac|\}|\)|break|continue|exit|return|wait|set|export|unset|source|\.|mkdir|touch|cp|mv|rm|ln|chmod|kill|pkill|"
    r"pushd|popd|curl|wget|sed|perl|awk|basename|dirname|realpath|tee|column|comm|seq|command|open)(?:\s|\Z)|\\?\Z"
)
# An interpreter that is given its program on the spot.
_ON_THE_SPOT = lazy(
    r"(?:\S*/)?(?:python[\d.]*|node|ruby|php|bash|sh|zsh|osascript)(?:\s+-[a-zA-Z]*[ce]\b.*|\s+-(?:\s.*)?)?\Z",
    re.DOTALL,
)
_REDIRECTED = lazy(r"\s*(?:\d?>&\d|&?\d?>\s*/dev/null)")
_RAN = lazy(r"Ran `(.+?)`((?: \(\d+ runs\))?)(?:: (.*))?", re.DOTALL)
_FAILED = lazy(r"`(.+?)` failed((?: \d+ times)?): (.*)", re.DOTALL)
_WAY = lazy(r"(?:as `(.+?)`)?(?: ?(after changes to .+?))?(?:: .*|\.)?", re.DOTALL)
_HISTORY = lazy(r"(?:git|gh) ")
_QUOTED = lazy(r"`([^`]+)`")
# The host says where its shell stands, whatever it ran.
_ASIDE = lazy(r"\s*Shell cwd was reset to\b.*", re.DOTALL)


class Failed(NamedTuple):
    """A command that failed: what of it did the work, how often, and what it said."""

    parts: list[str]
    times: str
    complaint: str


def working(command: str) -> list[str]:
    """Return the parts of `command` that do something, without what filters their output.

    >>> working("cd app && go build ./... && echo OK && go test ./... 2>&1 | tail -22; ls")
    ['go build ./...', 'go test ./...']
    """
    from aether.messages.shell import looks_around  # a session that ran nothing need not wait for it

    found, heads = [], True
    for match in _PIECE.finditer(command):
        piece, between = match.groups()
        if between:
            heads = between != "|"
        elif heads:
            bare = _REDIRECTED.sub("", piece.strip())
            opens = _OPENS.match(bare)
            bare = bare[opens.end() if opens else 0 :].strip()
            if not _NO_WORK.match(bare) and not _ON_THE_SPOT.match(bare) and not looks_around(bare):
                found.append(bare)
            heads = False
    return found


def names(parts: Iterable[str]) -> set[str]:
    """Return `parts` without their flags: a run with other flags is that command again."""
    return {" ".join(word for word in part.split() if not word.startswith("-")) for part in parts}


def names_in(text: str) -> set[str]:
    """Return what `text` says was run, by `names`; the first thing it quotes is that."""
    quoted = _QUOTED.search(text)
    return names(working(quoted[1])) if quoted else set()


def failed(text: str) -> Failed | None:
    """Return what `text` says of a command that failed, None where it says something else."""
    found = _FAILED.fullmatch(text)
    return Failed(working(found[1]), found[2], _ASIDE.sub("", found[3])) if found else None


def failure(known: Failed, most: int = TOLD_CHARS) -> str:
    """Return a failed command as it is told."""
    shown = _shown(known.parts, min(COMMAND_CHARS, most // 2))
    return flat(f"`{shown}` failed{known.times}: {known.complaint}", most)


def _shown(parts: list[str], most: int = COMMAND_CHARS) -> str:
    whole = [part for part in parts if not part.endswith("…")] or parts
    return flat(" && ".join(whole), most)


def ran(items: Iterable[Item]) -> list[Line]:
    """Return the commands that mattered, each as it was run last: how to build and test before what was committed."""
    found: list[tuple[int, Line]] = []
    seen: set[str] = set()
    held = (item for item in items if item["type"] == "command" and not item["metadata"].get("protected"))
    for item, _ in zip(held, range(LOOKED_AT), strict=False):
        run = _RAN.fullmatch(item["content"])
        parts = working(run[1]) if run else []
        known = names(parts) or {flat(item["content"], TOLD_CHARS)}
        if (run and not parts) or known <= seen:
            continue
        seen |= known
        text = f"Ran `{_shown(parts)}`{run[2]}{_end(run[3])}" if run else item["content"]
        last = 0 if run and not any(map(_HISTORY.match, parts)) else 1 + bool(run)
        found.append((last, Line("ran", flat(text, TOLD_CHARS), item["metadata"]["timestamp"])))
    return [line for _, line in sorted(found, key=lambda each: each[0])]


def _end(said: str | None) -> str:
    told = _ASIDE.sub("", said or "").strip()
    return f": {told}" if told else ""


def solved(items: Iterable[Item], *, otherwise: bool = False) -> Iterator[Line]:
    """Yield the errors that were put right by something, with what did it; to run it again is no news.

    With `otherwise`, only those where another command did: that one is worth knowing.
    """
    held = (item for item in items if item["type"] == "solution" and not item["metadata"].get("protected"))
    for item, _ in zip(held, range(LOOKED_AT), strict=False):
        before, worked, after = item["content"].partition("\nWorked ")
        known, way = failed(before), _WAY.fullmatch(after) if worked else None
        if known and known.parts and way:
            other = working(way[1]) if way[1] else []
            how = [f"as `{_shown(other)}`"] if other and names(other) != names(known.parts) else []
            how += [way[2]] if way[2] and not otherwise else []
            if how:
                text = f"{failure(known, TOLD_CHARS // 2)} -> worked {flat(' '.join(how), TOLD_CHARS // 2)}"
                yield Line("solved", text, item["metadata"]["timestamp"])
