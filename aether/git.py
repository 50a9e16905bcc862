"""Git: what git itself says of the work tree of a directory, and of the files that it tracks there.

Git is only read: it takes no optional lock, asks nobody, starts neither a pager nor the program that watches files, and
is killed when its time is over. Without git, or outside of a repository, there is no answer, and nothing raises.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from aether.types import Fact

# A hook waits for the answer: two calls take 10 ms in a usual repository.
TIMEOUT_SECONDS = 0.2
# Tracked files decide what a home may read, so a slow disk has more time.
TRACKED_SECONDS = 2.0
MOST_BYTES = 256 * 1024
MOST_COMMITS = 5
MOST_PATHS = 50
# Of a fact: enough to see where the work is.
SHOWN_PATHS = 12
_FIELDS = "\x1f"
_RECORD = "\x1e"
# Neither a converter, nor the program that checks signatures, nor a map of names of the repository has a part in a listing.
_LOG = ("log", "--no-show-signature", "--no-mailmap", "--no-textconv", "--no-ext-diff", "--no-color")
# A hook of git sets variables that name another repository or index.
# A clone with parts of its history would fetch the others.
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
_SETTINGS = "--no-optional-locks --no-pager -c core.fsmonitor=false -c core.hooksPath=/dev/null -c protocol.allow=never".split()


class Commit(NamedTuple):
    """A commit: its hash, its subject, and its time in seconds since 1970."""

    id: str
    subject: str
    at: int


class GitState(NamedTuple):
    """The state of a work tree."""

    branch: str
    """Empty if HEAD is detached."""
    upstream: str
    ahead: int
    behind: int
    changed: tuple[str, ...]
    """Paths that are modified, added, deleted, in conflict or untracked; at most `MOST_PATHS`."""
    changes: int
    """The number of all of them."""
    commits: tuple[Commit, ...]
    """The last commits, newest first."""


def ask(directory: str) -> GitState | None:
    """Return the state of the work tree that holds `directory`; None without git, a repository, or an answer in time."""
    until = time.monotonic() + TIMEOUT_SECONDS
    status = _run(directory, ("status", "--porcelain=v2", "--branch", "-z"), until=until)
    if status is None:
        return None
    form = f"--format=%H{_FIELDS}%s{_FIELDS}%ct"
    log = _run(directory, ("log", f"-{MOST_COMMITS}", "--no-show-signature", "-z", form), until=until)
    commits = (entry.split(_FIELDS) for entry in (log or "").split("\0"))
    return _state(status)._replace(
        commits=tuple(Commit(at[0], at[1], int(at[2])) for at in commits if len(at) == 3 and at[2].isdigit())
    )


def branch_fact(state: GitState) -> Fact:
    """Return the branch with its upstream, the last commit, and the files that are not committed, as a fact.

    >>> branch_fact(GitState("main", "origin/main", 1, 0, ("a.py",), 1, ()))["outcome"]
    'ahead 1'
    """
    ways = (("ahead", state.ahead), ("behind", state.behind))
    fact = Fact(
        kind="branch", branch=state.branch, remote=state.upstream,
        outcome=", ".join(f"{way} {count}" for way, count in ways if count),
        names=[*state.changed[:SHOWN_PATHS]], times=state.changes,
    )  # fmt: skip
    for commit in state.commits[:1]:
        fact |= Fact(kind="branch", id=commit.id, subject=commit.subject)
    return fact


def tracked(directory: str, below: str = "") -> frozenset[str] | None:
    """Return the paths below `directory`, or below its directory `below`, that the index holds, without that prefix; None if git does not say.

    Nothing of the repository is run for it, so one that belongs to another user is read as well.
    """
    pathspec = f"{below}/" if below else "."
    until = time.monotonic() + TRACKED_SECONDS
    # The owner of the files does not matter here: listing them runs nothing.
    command = ("-c", "safe.directory=*", "ls-files", "-z", "--", pathspec)
    listed = _run(directory, command, until=until, most=-1)
    if listed is None:
        return None
    prefix = f"{below}/" if below else ""
    return frozenset(path.removeprefix(prefix) for path in listed.split("\0") if path)


def aliases(directory: str) -> dict[str, str]:
    """Return the aliases of git in `directory`, by the user's configuration and the repository's; empty without an answer."""
    until = time.monotonic() + TIMEOUT_SECONDS
    listed = _run(directory, ("config", "--null", "--get-regexp", r"^alias\."), until=until) or ""
    pairs = (entry.partition("\n") for entry in listed.split("\0"))
    return {name.removeprefix("alias."): text for name, _, text in pairs}


class Removal(NamedTuple):
    """The commit that removed a file, or moved it."""

    commit: str
    at: int
    to: str
    """Its new path; empty if it is nowhere."""


def removals(top: str, paths: Sequence[str], *, since: str, until: float) -> dict[str, Removal] | None:
    """Return how those of `paths`, from the top of the work tree, left the history of HEAD since a time; None without an answer.

    Of a walk that takes too long, what it has by then.
    """
    form = f"--format={_RECORD}%H{_FIELDS}%ct"
    options = "--full-diff -M -l400 --diff-filter=DR --name-status -z".split()
    command = (*_LOG, *options, form, f"--since={since}", "--")
    listed = _run(top, (*command, *map(_literal, paths)), until=until, partial=True)
    if listed is None:
        return None
    wanted, removed = {*paths}, dict[str, Removal]()
    for record in listed.split(_RECORD)[1:]:
        head, _, rest = record.partition("\0")
        commit, _, seconds = head.partition(_FIELDS)
        steps = iter(rest.lstrip("\n").split("\0"))
        for status in steps:
            path, to = next(steps, ""), next(steps, "") if status.startswith("R") else ""
            if path in wanted and path not in removed and seconds.isdigit():
                removed[path] = Removal(commit, int(seconds), to)
    return removed


def has_lost(top: str, path: str, word: str, *, since: str, until: float) -> bool:
    """Return whether a commit since a time changed how often a word is in a file: if it is not there now, it was."""
    regex = f"(^|[^[:alnum:]_]){re.escape(word)}([^[:alnum:]_]|$)"
    options = ("-1", "--format=%H", f"--since={since}", "--pickaxe-regex", f"-S{regex}")
    command = (*_LOG, *options, "--", _literal(path))
    return bool(_run(top, command, until=until))


def merges(top: str, *, since: str, until: float) -> list[Commit] | None:
    """Return the commits of HEAD since a time, newest first, for their subjects; of many those that git lists in time."""
    form = f"--format=%H{_FIELDS}%s{_FIELDS}%ct"
    listed = _run(top, (*_LOG, "-z", form, f"--since={since}"), until=until, partial=True)
    return None if listed is None else _commits(listed)


def dropped(top: str, commits: Sequence[str], *, until: float) -> set[str] | None:
    """Return those of `commits`, whole or abbreviated ids, that no ref leads to any more; None without an answer.

    An id that git does not know is not among them: a clone may never have had it.
    """
    listed = _run(
        top, ("rev-list", "--ignore-missing", "--max-count=500", *commits, "--not", "--all"), until=until
    )
    if listed is None:
        return None
    return {commit for commit in commits if any(line.startswith(commit) for line in listed.splitlines())}


def merged_refs(top: str, refs: Sequence[str], *, until: float) -> set[str] | None:
    """Return those of `refs`, whole names, whose commits HEAD has; None without an answer."""
    listed = _run(top, ("for-each-ref", "--format=%(refname)", "--merged=HEAD", *refs), until=until)
    return None if listed is None else {*listed.splitlines()} & {*refs}


def _commits(listed: str | None) -> list[Commit]:
    entries = (entry.split(_FIELDS) for entry in (listed or "").replace("\0", "\n").splitlines())
    return [Commit(at[0], at[1], int(at[2])) for at in entries if len(at) == 3 and at[2].isdigit()]


def _literal(path: str) -> str:
    return f":(top,literal){path}"


def _state(status: str) -> GitState:
    """Read what `git status --porcelain=v2 --branch -z` prints."""
    head: dict[str, str] = {}
    changed: list[str] = []
    entries = iter(status.split("\0"))
    for entry in entries:
        kind, _, fields = entry.partition(" ")
        if kind == "#":
            name, _, value = fields.partition(" ")
            head[name] = value
        elif kind == "?":
            changed.append(fields)
        elif kind in ("1", "2", "u"):
            changed.append(fields.split(" ", {"1": 7, "2": 8, "u": 9}[kind])[-1])
            if kind == "2":
                next(entries, "")  # where a renamed file was before
    ahead, _, behind = head.get("branch.ab", "+0 -0").partition(" ")
    branch = head.get("branch.head", "")
    return GitState(
        "" if branch == "(detached)" else branch, head.get("branch.upstream", ""), abs(int(ahead)), abs(int(behind)),
        tuple(changed[:MOST_PATHS]), len(changed), (),
    )  # fmt: skip


def _run(
    directory: str, command: Sequence[str], *, until: float, most: int = MOST_BYTES, partial: bool = False
) -> str | None:
    """Return what a command of git prints, at most so many bytes of it; None if it fails or takes too long.

    With `partial`, what it printed before its time was over, if anything.
    """
    import subprocess  # most hooks ask nothing
    from threading import Timer

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _QUIET
    try:
        process = subprocess.Popen(  # noqa: S603 - the arguments are ours
            ["git", "-C", directory, *_SETTINGS, *command], env=environment, stdin=subprocess.DEVNULL,  # noqa: S607
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError):
        return None
    with process:
        timer = Timer(max(0.0, until - time.monotonic()), process.kill)
        timer.start()
        try:
            output = process.stdout.read(most) if process.stdout else b""
            full = 0 <= most <= len(output)
            if full:
                process.kill()  # the rest would wait for a reader
        finally:
            timer.cancel()
    is_cut = partial and bool(output) and time.monotonic() >= until
    return os.fsdecode(output) if full or is_cut or process.returncode == 0 else None
