"""Verdicts: which files, symbols, commits, branches and pull requests a line names, and what it says once they have changed.

A name counts only in the form of one, and a verdict only if the repository proves it; whoever asks the repository is in
`api.checking`. A line that is true no more is given as history, with what changed; a person's words stay as they are, and get
a note. Only the changed file of an old piece of work is left out once the file is removed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from aether.text.identifiers import identifiers

if TYPE_CHECKING:
    from aether.memory.briefing.sections import Line

Subject = Literal["path", "symbol", "commit", "branch", "pull"]
Finding = Literal["holds", "changed", "removed", "moved", "merged", "deleted", "dropped", "unchecked"]
# Those after which a line is true no more; a merge settles only what was still to be done.
ENDED = frozenset({"removed", "dropped", "deleted"})
_TO_DO = frozenset({"next", "open", "state"})
MOST_MENTIONS = 8
# Of the id of a commit.
SHORT = 7
WAS = "was: "
_COMMIT = re.compile(r"(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}")
_PULL = re.compile(r"#\d{1,7}")
# A name of code: with an underscore, in camel case, or qualified; `load()` is one by its brackets.
_SYMBOL = re.compile(r"[A-Za-z_][\w.:]*")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(\)")
# A word alone is no name of a branch, though there may be such a branch.
_BRANCH = re.compile(r"[\w.+-]+(?:/[\w.+-]+)*")
_EDGES = ".,;:!?()[]{}<>\"'`“”‘’«»*"


class Mention(NamedTuple):
    """One name in a line."""

    subject: Subject
    name: str
    file: str = ""
    """Of a symbol, the file that it is named with."""


class Verdict(NamedTuple):
    """What the repository says about a mention."""

    mention: Mention
    finding: Finding
    to: str = ""
    """The new path of a file that moved."""
    commit: str = ""
    at: str = ""
    """The day of the commit."""

    def words(self) -> str:
        """Return the verdict as words.

        >>> Verdict(Mention("path", "a.py"), "moved", "b.py", "0123456789", "2026-03-02").words()
        'a.py moved to b.py, 0123456 of 2026-03-02'
        """
        what = {
            "holds": "is there", "changed": "changed since", "removed": "was removed", "moved": f"moved to {self.to}",
            "merged": "was merged", "deleted": "was deleted", "dropped": "is in no branch any more", "unchecked": "could not be checked",
        }[self.finding]  # fmt: skip
        name = self.mention.name
        name = f"branch {name}" if self.mention.subject == "branch" else name
        if self.mention.subject == "symbol":
            name = f"{name} in {self.mention.file}"
        commit = f"{self.commit[:SHORT]} of {self.at}" if self.commit else ""
        return ", ".join(filter(None, (f"{name} {what}", commit)))


def mentions_of(text: str, *, root: str = "", branches: Collection[str] = ()) -> list[Mention]:
    """Return what `text` names, each once: paths relative to `root`, and of branches those in `branches`, which are or were there.

    >>> mentions_of("See `fetch_user` in src/api.py, #12 and 3f2a9c1.")[:2]
    [Mention(subject='path', name='src/api.py', file=''), Mention(subject='symbol', name='fetch_user', file='src/api.py')]
    """
    names = identifiers(text)
    paths = [path for name in names.paths if (path := relative(name, root))]
    mentions = [Mention("path", path) for path in paths]
    if len({*paths}) == 1:
        words = [*names.identifiers, *_CALL.findall(text)]
        mentions += [
            Mention("symbol", word, paths[0])
            for word in words
            if _is_symbol(word) or word in _CALL.findall(text)
        ]
    mentions += [Mention("commit", word) for word in names.identifiers if _COMMIT.fullmatch(word)]
    mentions += [Mention("pull", word) for word in names.identifiers if _PULL.fullmatch(word)]
    if branches:
        tokens = (word.strip(_EDGES) for word in text.split())
        mentions += [Mention("branch", word) for word in tokens if word in branches and is_branch_name(word)]
    return list(dict.fromkeys(mentions))[:MOST_MENTIONS]


def relative(path: str, root: str) -> str:
    r"""Return a path as one below `root`; empty for one elsewhere, a directory, and what leads out.

    >>> relative("/p/src/a.py", "/p"), relative("src\\a.py", "/p"), relative("~/a.py", "/p"), relative("../a.py", "/p")
    ('src/a.py', '', '', '')
    """
    path = path.removeprefix(f"{root.rstrip('/')}/") if root else path
    path = path.removeprefix("./")
    bad = path.startswith(("/", "~")) or path.endswith("/") or "\\" in path or ":" in path
    return "" if bad or not path or ".." in path.split("/") else path


def _is_symbol(word: str) -> bool:
    if not _SYMBOL.fullmatch(word) or _COMMIT.fullmatch(word):
        return False
    return "_" in word or "." in word or ":" in word or word != word.lower()


def is_branch_name(word: str) -> bool:
    """Return whether a word has the form of a name rather than of a word: with a sign or a number in it.

    >>> is_branch_name("feature/login"), is_branch_name("fix-12"), is_branch_name("main")
    (True, True, False)
    """
    return bool(_BRANCH.fullmatch(word)) and not word.isalpha()


def last_name(symbol: str) -> str:
    """Return the last part of a qualified name.

    >>> last_name("Store.load"), last_name("store::load"), last_name("fetch_user")
    ('load', 'load', 'fetch_user')
    """
    return re.split(r"[.:]+", symbol)[-1]


def has_word(text: str, word: str) -> bool:
    """Return whether `word` is in `text` as a whole word."""
    return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def judged(line: Line, verdicts: Sequence[Verdict]) -> Line | None:
    """Return `line` with what its verdicts say, or None if it is not worth a line any more."""
    notable = [verdict for verdict in verdicts if verdict.finding not in ("holds", "changed", "unchecked")]
    if not notable:
        return line
    if (
        line.kind == "file"
        and line.source == "floor"
        and any(verdict.finding == "removed" for verdict in notable)
    ):
        return None
    note = ", ".join(filter(None, (line.note, "; ".join(verdict.words() for verdict in notable))))
    settled = line.kind in _TO_DO and any(verdict.finding == "merged" for verdict in notable)
    over = settled or any(verdict.finding in ENDED for verdict in notable)
    # Of a note without evidence a person may be the author.
    keeps_words = (
        line.kind == "rule" or line.evidence == "person" or (line.source == "explicit" and not line.evidence)
    )
    text = line.text if keeps_words or not over else WAS + line.text
    return line._replace(text=text, note=note)
