"""Checking: what the lines of a brief name is looked up in the work tree and in git before a model reads it.

Files are looked at, refs are read, and git is asked at most a few questions with one deadline; nothing is asked by network,
and nothing of the repository is run. A file was removed only if git has the commit that removed it since the line was written, or
has no copy of it in another work tree; what cannot be proven in time stays as it is, unchecked.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, NamedTuple

from aether import clock, git, regular
from aether.api.home import Home, read
from aether.errors import AetherError, InvalidInput
from aether.memory.briefing.kept import facts_in, known_items, newest_sessions, timestamp
from aether.memory.briefing.sections import Line
from aether.memory.briefing.verdicts import (
    Mention,
    Verdict,
    has_word,
    judged,
    last_name,
    mentions_of,
    relative,
)
from aether.memory.layers import excerpt
from aether.memory.statements import statements_of
from aether.paths import project_root
from aether.project import repository_of
from aether.types import Finding

# All of it, at the start of a session: less than a person notices.
SECONDS = 0.06
# Questions to git that are asked at the same time.
AT_ONCE = 6
# A look at the whole home, by a person who asked for it.
PATIENT_SECONDS = 20.0
# A larger file is not searched for a word.
MOST_BYTES = 1 << 20
MOST_SYMBOLS = 4
# Types of items that say what happened, and nothing that could be true no more.
_WORDS_AND_WORK = frozenset({"user_input", "code_change", "command"})
# Of the reflog: enough for the branches of months.
REFLOG_BYTES = 256 * 1024
# The action of a fact that says itself that its file was removed.
_LEAVING = frozenset({"deleted", "moved", "reverted"})
_MOVED = re.compile(r"checkout: moving from (\S+) to (\S+)")
_PLAIN_PATH = re.compile(r"[\w@+-][\w.@+/-]{0,150}")


class Repository(NamedTuple):
    """What can be read of a repository without git."""

    top: str
    """Empty without one."""
    root: str
    """The directory of the project, from which the paths of lines are seen."""
    others: tuple[str, ...]
    """The tops of other work trees, with the same files at other states."""
    refs: frozenset[str]
    """Whole names of refs."""
    former: frozenset[str]
    """Names of branches that were checked out here."""
    state: str
    """What the refs are; equal texts for equal refs."""
    complete: bool = True
    """Whether its refs could be read."""


class Checked(NamedTuple):
    """Lines with their verdicts, in the same order."""

    lines: list[Line | None]
    """As a model is to get them; None for one that is left out."""
    verdicts: list[list[Verdict]]
    watched: dict[str, list[int] | None]
    """The files that were looked at, each with its time and size, None if it is not there."""
    state: str
    """That of the refs."""


def check(
    lines: Sequence[Line],
    root: str,
    *,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    seconds: float,
    most_symbols: int = MOST_SYMBOLS,
) -> Checked:
    """Return `lines` checked against the project at `root` within so many seconds; `facts` are those of the entries, by id."""
    until = time.monotonic() + seconds
    if not root or not lines:
        return Checked([*lines], [[] for _ in lines], {}, "")
    repository = read_repository(root)
    branches = {
        name.split("/", 2)[2] for name in repository.refs if name.startswith("refs/heads/")
    } | repository.former
    mentions = [
        []
        if not line.at or _says_so(line, facts or {})
        else mentions_of(line.text, root=root, branches=branches)
        for line in lines
    ]
    look = _Look(repository, until, {}, facts or {}, most_symbols)
    verdicts: list[list[Verdict]] = [[] for _ in lines]
    questions = (_paths, _pulls_and_branches, _commits, _symbols)
    _ask([job for question in questions for job in question(look, lines, mentions, verdicts)], until)
    for own, names in zip(verdicts, mentions, strict=True):
        judged_names = {verdict.mention for verdict in own}
        own += [Verdict(mention, "unchecked") for mention in names if mention not in judged_names]
        own.sort(key=lambda verdict: names.index(verdict.mention))
    outcome = [judged(line, own) for line, own in zip(lines, verdicts, strict=True)]
    return Checked(outcome, verdicts, look.watched, repository.state)


def _ask(jobs: _Jobs, until: float) -> None:
    """Do the jobs, each of which waits for git, some at the same time, until the time is over."""
    for first in range(0, len(jobs), AT_ONCE):
        if time.monotonic() >= until:
            return
        threads = [Thread(target=job, daemon=True) for job in jobs[first + 1 : first + AT_ONCE]]
        for thread in threads:
            thread.start()
        jobs[first]()
        for thread in threads:
            thread.join()


def _says_so(line: Line, facts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether a line is about a file that left, by its own words."""
    return any(str(facts.get(name, {}).get("action", "")) in _LEAVING for name in line.ids)


class _Look(NamedTuple):
    repository: Repository
    until: float
    watched: dict[str, list[int] | None]
    facts: Mapping[str, Mapping[str, Any]]
    most_symbols: int


_Mentions = list[list[Mention]]
_Verdicts = list[list[Verdict]]
# A question looks at files itself, and returns what has to wait for git.
_Jobs = list[Callable[[], None]]


def signature(path: str) -> list[int] | None:
    """Return time and size of what is at a path; None if nothing is."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return [status.st_mtime_ns, status.st_size]


def _paths(look: _Look, lines: Sequence[Line], mentions: _Mentions, verdicts: _Verdicts) -> _Jobs:
    repository = look.repository
    missing: list[tuple[int, Mention]] = []
    for place, mention in _of(mentions, "path"):
        path = os.path.join(repository.root, mention.name)
        look.watched[mention.name] = status = signature(path)
        if status is None:
            missing.append((place, mention))
        else:
            changed = clock.stamp(clock.of_file(status[0] / 1e9)) > lines[place].at
            verdicts[place].append(Verdict(mention, "changed" if changed else "holds"))
    if repository.top:
        return [partial(_removed, look, lines, missing, verdicts)] if missing else []
    for place, mention in missing:
        # Without git, a machine that changed the file is the proof that it was there.
        changed_paths = (str(look.facts.get(name, {}).get("path", "")) for name in lines[place].ids)
        if f"{repository.root}/{mention.name}" in changed_paths:
            verdicts[place].append(Verdict(mention, "removed"))
    return []


def _removed(
    look: _Look, lines: Sequence[Line], missing: list[tuple[int, Mention]], verdicts: _Verdicts
) -> None:
    """Add the verdicts on missing files that a commit removed since their lines were written."""
    repository = look.repository
    names = {mention.name: _from_top(repository, mention.name) for _, mention in missing}
    since = min(lines[place].at for place, _ in missing)
    removed = git.removals(repository.top, [*names.values()], since=since, until=look.until) or {}
    for place, mention in missing:
        removal = removed.get(names[mention.name])
        if (
            removal is None
            or _time(removal.at) < lines[place].at[:19]
            or _is_elsewhere(repository, names[mention.name])
        ):
            continue
        to = _to_root(repository, removal.to) if removal.to else ""
        about = {"commit": removal.commit, "at": _time(removal.at)[:10]}
        if _PLAIN_PATH.fullmatch(to) and os.path.lexists(os.path.join(repository.root, to)):
            verdicts[place].append(Verdict(mention, "moved", to, **about))
        elif not removal.to or not os.path.lexists(os.path.join(repository.top, removal.to)):
            verdicts[place].append(Verdict(mention, "removed", **about))


def _pulls_and_branches(
    look: _Look, lines: Sequence[Line], mentions: _Mentions, verdicts: _Verdicts
) -> _Jobs:
    asked = [*_of(mentions, "pull"), *_of(mentions, "branch")]
    if not asked or not look.repository.top or not look.repository.complete:
        return []
    return [partial(_merged, look, lines, asked, verdicts)]


def _merged(
    look: _Look, lines: Sequence[Line], asked: list[tuple[int, Mention]], verdicts: _Verdicts
) -> None:
    """Add the verdicts on pull requests and branches that were merged since their lines were written, or deleted."""
    repository = look.repository
    since = min(lines[place].at for place, _ in asked)
    commits = git.merges(repository.top, since=since, until=look.until)
    heads = {
        f"refs/pull/{mention.name[1:]}/head" for _, mention in asked if mention.subject == "pull"
    } & repository.refs
    merged = git.merged_refs(repository.top, sorted(heads), until=look.until) if heads else None
    for place, mention in asked:
        since = lines[place].at[:19]
        merging = (
            commit
            for commit in commits or ()
            if _time(commit.at) >= since and _merges(commit.subject, mention)
        )
        commit = next(merging, None)
        if commit:
            verdicts[place].append(Verdict(mention, "merged", "", commit.id, _time(commit.at)[:10]))
        elif mention.subject == "pull" and f"refs/pull/{mention.name[1:]}/head" in (merged or ()):
            verdicts[place].append(Verdict(mention, "merged"))
        elif mention.subject == "branch" and commits is not None:
            is_there = any(_is_branch(ref, mention.name) for ref in repository.refs)
            verdicts[place].append(Verdict(mention, "holds" if is_there else "deleted"))


def _merges(subject: str, mention: Mention) -> bool:
    """Return whether the subject of a commit, as git and its hosts write it, says that a branch or pull request was merged."""
    if mention.subject == "pull":
        return subject.endswith(f"({mention.name})") or subject.startswith(
            f"Merge pull request {mention.name} "
        )
    if subject.startswith(f"Merge branch '{mention.name}'"):
        return True
    pulled = re.match(r"Merge pull request #\d+ from [^/\s]+/(\S+)$", subject)
    return bool(pulled) and pulled is not None and pulled[1] == mention.name


def _is_branch(ref: str, name: str) -> bool:
    if ref == f"refs/heads/{name}":
        return True
    return ref.startswith("refs/remotes/") and ref.split("/", 3)[3:] == [name]


def _commits(look: _Look, _: Sequence[Line], mentions: _Mentions, verdicts: _Verdicts) -> _Jobs:
    asked = _of(mentions, "commit")
    return [partial(_dropped, look, asked, verdicts)] if asked and look.repository.top else []


def _dropped(look: _Look, asked: list[tuple[int, Mention]], verdicts: _Verdicts) -> None:
    names = [*dict.fromkeys(mention.name for _, mention in asked)]
    dropped = git.dropped(look.repository.top, names, until=look.until)
    for place, mention in asked if dropped is not None else ():
        is_dropped = dropped is not None and mention.name in dropped
        verdicts[place].append(Verdict(mention, "dropped" if is_dropped else "holds"))


def _symbols(look: _Look, lines: Sequence[Line], mentions: _Mentions, verdicts: _Verdicts) -> _Jobs:
    repository, texts = look.repository, dict[str, str | None]()
    missing: list[tuple[int, Mention]] = []
    for place, mention in _of(mentions, "symbol"):
        if look.watched.get(mention.file) is None or time.monotonic() > look.until:
            continue
        if mention.file not in texts:
            texts[mention.file] = _text(os.path.join(repository.root, mention.file))
        text = texts[mention.file]
        if text is not None and has_word(text, last_name(mention.name)):
            verdicts[place].append(Verdict(mention, "holds"))
        elif text is not None and repository.top:
            missing.append((place, mention))
    return [
        partial(_lost, look, lines[place].at, mention, verdicts[place])
        for place, mention in missing[: look.most_symbols]
    ]


def _lost(look: _Look, since: str, mention: Mention, verdicts: list[Verdict]) -> None:
    path = _from_top(look.repository, mention.file)
    if git.has_lost(look.repository.top, path, last_name(mention.name), since=since, until=look.until):
        verdicts.append(Verdict(mention, "removed"))


def _text(path: str) -> str | None:
    try:
        with regular.opened(path) as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, AetherError):
        return None
    return data.decode("utf-8", "replace") if len(data) <= MOST_BYTES else None


def _of(mentions: _Mentions, subject: str) -> list[tuple[int, Mention]]:
    return [
        (place, mention)
        for place, names in enumerate(mentions)
        for mention in names
        if mention.subject == subject
    ]


def _time(seconds: int) -> str:
    return clock.stamp(clock.of_file(seconds))[:19]


def _from_top(repository: Repository, path: str) -> str:
    return os.path.relpath(os.path.join(repository.root, path), repository.top).replace(os.sep, "/")


def _to_root(repository: Repository, path: str) -> str:
    return relative(
        os.path.relpath(os.path.join(repository.top, path), repository.root).replace(os.sep, "/"), ""
    )


def _is_elsewhere(repository: Repository, path: str) -> bool:
    return any(os.path.lexists(os.path.join(top, path)) for top in repository.others)


# --- The repository, read without git


def read_repository(root: str) -> Repository:
    """Return what the files of the repository of `root` say; without one, of nothing but files."""
    root = os.path.realpath(root)
    top, main = repository_of(root)
    git_directory = os.path.join(main, ".git") if main else ""
    if not os.path.isdir(git_directory):
        return Repository("", root, (), frozenset(), frozenset(), "", complete=False)
    if os.path.exists(os.path.join(git_directory, "reftable")):
        return Repository(
            top, root, _worktrees(git_directory, main, top), frozenset(), frozenset(), _line(git_directory, "HEAD"),
            complete=False,
        )  # fmt: skip
    loose = dict(_loose(git_directory))
    packed = _packed(_line(git_directory, "packed-refs", 4 << 20))
    heads = [_line(top_of, "HEAD") for top_of in (git_directory, *_administrations(git_directory))]
    state = regular.digest(
        repr((heads, sorted(loose.items()), signature(os.path.join(git_directory, "packed-refs")))).encode(
            "utf-8", "surrogatepass"
        )
    )
    return Repository(
        top, root, _worktrees(git_directory, main, top), frozenset({*loose, *packed}), _former(git_directory), state,
    )  # fmt: skip


def _line(directory: str, name: str, most: int = 4096) -> str:
    with suppress(OSError, AetherError), regular.opened(os.path.join(directory, name)) as file:
        return file.read(most).decode("utf-8", "surrogateescape")
    return ""


def _loose(git_directory: str) -> Iterable[tuple[str, str]]:
    base = os.path.join(git_directory, "refs")
    for directory, _, names in os.walk(base):
        for name in names:
            path = os.path.join(directory, name)
            yield (
                os.path.relpath(path, git_directory).replace(os.sep, "/"),
                _line(directory, name, 100).strip(),
            )


def _packed(text: str) -> list[str]:
    rows = (line.split(" ", 1) for line in text.splitlines() if line and line[0] not in "#^")
    return [row[1] for row in rows if len(row) == 2]


def _administrations(git_directory: str) -> list[str]:
    with suppress(OSError):
        return sorted(entry.path for entry in os.scandir(os.path.join(git_directory, "worktrees")))
    return []


def _worktrees(git_directory: str, main: str, top: str) -> tuple[str, ...]:
    tops = [os.path.dirname(_line(path, "gitdir").strip()) for path in _administrations(git_directory)]
    return tuple(other for other in (main, *tops) if other and os.path.realpath(other) != top)


def _former(git_directory: str) -> frozenset[str]:
    """Return the branches that the reflog of HEAD names, without commits."""
    path = os.path.join(git_directory, "logs", "HEAD")
    try:
        with regular.opened(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - REFLOG_BYTES))
            text = file.read(REFLOG_BYTES).decode("utf-8", "replace")
    except (OSError, AetherError):
        return frozenset()
    names = {name for match in _MOVED.finditer(text) for name in match.groups()}
    return frozenset(name for name in names if not re.fullmatch(r"[0-9a-f]{7,64}", name))


def is_current(root: str, watched: Mapping[str, list[int] | None], state: str) -> bool:
    """Return whether the files and refs that a check looked at are as they were then."""
    if not state:
        return True
    if any(signature(os.path.join(root, path)) != status for path, status in watched.items()):
        return False
    return read_repository(root).state == state


class Checker:
    """A check of lines in several calls, which share the time; it keeps what it saw."""

    def __init__(self, root: str, facts: Mapping[str, Mapping[str, Any]], seconds: float) -> None:
        """Check against the project at `root`; without one nothing is checked."""
        self._root, self._facts, self._left = root, facts, seconds
        self.verdicts: dict[Line, list[Verdict]] = {}
        """By the line as it is given to a model."""
        self.left_out: list[tuple[Line, list[Verdict]]] = []
        self.watched: dict[str, list[int] | None] = {}
        self.state = ""
        """That of the refs, if a line named something."""

    def __call__(self, lines: Sequence[Line]) -> list[Line | None]:
        """Return `lines` as a model is to get them; None for one that is left out."""
        began = time.monotonic()
        checked = check(lines, self._root, facts=self._facts, seconds=self._left)
        self._left -= time.monotonic() - began
        for before, after, verdicts in zip(lines, checked.lines, checked.verdicts, strict=True):
            if after is None:
                self.left_out.append((before, verdicts))
            elif verdicts:
                self.verdicts[after] = verdicts
            self.state = checked.state if verdicts else self.state
        self.watched |= checked.watched
        return checked.lines


# --- The whole home


def examine_facts(*, home: Home = None) -> list[Finding]:
    """Return a finding for each entry in force of which the repository says that it is true no more.

    Raises:
        InvalidInput: the home lies in no project.
    """
    snapshot = read(home)
    memory, root = snapshot.documents["memory"], project_root(snapshot.home)
    if not root:
        fix = "Use the home in the directory of a project: PROJECT/.aether."
        raise InvalidInput(
            "this home is not in a project whose files can be checked.", fix=fix, where=str(snapshot.home)
        )
    lines = [*_lines_in_force(memory)]
    findings: list[Finding] = []
    checked = check(lines, root, facts=facts_in(memory), seconds=PATIENT_SECONDS, most_symbols=len(lines))
    for line, verdicts in zip(lines, checked.verdicts, strict=True):
        stale = [verdict for verdict in verdicts if verdict.finding not in ("holds", "changed", "unchecked")]
        if stale:
            what = f"{'; '.join(verdict.words() for verdict in stale)}. The note: {excerpt(line.text)}"
            fix = f"aether memory resolve {line.ids[0]}"
            findings.append(Finding("info", "stale-fact", line.ids[0], what, fix))
    unchecked = sum(verdict.finding == "unchecked" for verdicts in checked.verdicts for verdict in verdicts)
    if unchecked:
        what = f"{unchecked} of {sum(map(len, checked.verdicts))} names could not be checked: git has nothing certain about them."
        findings.append(Finding("info", "unchecked", "memory", what, 'See "aether brief --why".'))
    return findings


def _lines_in_force(memory: Mapping[str, Any]) -> Iterable[Line]:
    """Yield what is in force in a whole home: notes and captured statements, statements of sessions, and patterns."""
    for item in known_items(memory):
        metadata = item["metadata"]
        if not metadata.get("ended_at") and item["type"] not in _WORDS_AND_WORK:
            yield Line("lesson", item["content"], metadata["timestamp"], ids=(item["id"],))
    for time_of_session, session in newest_sessions(memory):
        for stated in statements_of(session):
            if not stated.ended:
                yield Line(stated.kind, stated.text, time_of_session, ids=(stated.id,))
    for pattern in memory["long_term_memory"]["patterns"]:
        if not (pattern.get("metadata") or {}).get("ended_at"):
            yield Line("lesson", pattern["pattern"], timestamp(pattern["last_seen"]), ids=(pattern["id"],))
