"""Erasing, as a caller asks for it: afterwards no file of the home holds the text, the history included.

What is named by its id is forgotten, the journal is folded, and every file that holds the text is written again with a
mark in its place. All new files are made and checked before one is replaced (`store.replacing`), under the locks of the
home. There is no undo: `aether undo` refuses the revisions that held the text.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from aether.api import forget, memory_tool
from aether.api.home import Home, drained, find, now
from aether.errors import InvalidInput, NotFound, shown
from aether.memory.forgetting import erase as forgetting_erase
from aether.memory.forgetting.erase import MARK, MIN_CHARS
from aether.schemas import check
from aether.store import config, documents
from aether.store.commit import fold, settle, write_lock
from aether.store.conversations import path_of
from aether.store.files import locked, storage_errors
from aether.store.rewrite import DIRECTORY, Step, file_identity, finish, stage
from aether.store.snapshot import load

# A person writes these; erasing in them could change how aether works.
OWN_FILES = ("config.toml", "models.json")
INDEX = "index.sqlite"
LOCK = "lock"
# What the first part of a path holds, in the words of a report; anything else is `other`.
KINDS = {
    "data/journal": "history", "data/backups": "backups", "data/archive": "archive", "data/receipts": "records",
    "data/events": "records", "data/history": "records", "data": "documents", "compressions": "hand-offs",
    "snapshots": "snapshots", "conversations": "conversations", "memories": "memory files", "hooks": "hooks",
    "quarantine": "quarantine", "hook.log": "logs", "telemetry": "logs",
}  # fmt: skip
_DIGEST = re.compile(rb"[0-9a-f]{64}|[0-9a-f]{16}")


class Erased(NamedTuple):
    """What erasing did, or would do; never what the text is."""

    places: dict[str, int]
    """How often the text occurs in each kind of file."""
    files: int
    skipped: int
    """Texts of the named things that are too short, or a word that files are built of: they stay."""
    own: list[str]
    """Files that a person wrote and that hold the text: they stay as they are."""
    left: list[str]
    """Files that were changed meanwhile, and stay as they are: erase again."""
    forgotten: int
    """Named things that were taken out of memory as well."""
    done: bool


class _File(NamedTuple):
    """One file, as it was read."""

    path: str
    data: bytes
    known: tuple[int, int, int]


class _Plan(NamedTuple):
    """The new files, and what they were made for."""

    places: Counter[str]
    steps: list[Step]
    skipped: int
    own: list[str]


class _Seen(NamedTuple):
    """Where a home holds a text."""

    held: Counter[str]
    """How often each file holds it."""
    spellings: dict[str, None]
    known: list[Any]
    """The strings and objects that hold it."""
    taken: set[str]
    """The marks of what was erased before."""


def preview_erase(ids: Iterable[str] = (), *, match: str = "", home: Home = None) -> Erased:
    """Return how often the text `match`, or what the things `ids` say, occurs in the home; nothing is changed.

    Raises:
        InvalidInput: neither or both are given, or the text cannot be erased without harm.
        NotFound: an id names nothing, not even in the history.
    """
    return _report(_plan(drained(find(home)), list(ids), match))


def erase(ids: Iterable[str] = (), *, match: str = "", home: Home = None) -> Erased:
    """Put a mark in the place of the text `match`, or of what the things `ids` say, in every file of the home.

    Things that are named are forgotten first. None of it can be undone.

    Raises:
        InvalidInput, NotFound: as `would_erase`; nothing was changed.
        LockTimeout: another process used the home for too long; nothing was erased.
        StorageFailed: the disk refused. What was decided by then is finished by whoever writes next.
    """
    place, wanted = drained(find(home)), list(ids)
    if wanted:
        _plan(place, wanted, match)  # refused before anything is forgotten
    forgotten = len(_forget(place, wanted))
    with _alone(place):
        with storage_errors(place):
            fold(settle(load(place), now=now()), now=now())
        plan = _plan(place, wanted, match)
        left: list[str] = []
        if plan.steps:
            stage(place, plan.steps)
            left = finish(place)
    return _report(plan)._replace(left=left, forgotten=forgotten, done=bool(plan.steps or forgotten))


def _report(plan: _Plan) -> Erased:
    files = sum(bool(step.to) for step in plan.steps)
    return Erased(dict(plan.places), files, plan.skipped, plan.own, [], 0, done=False)


def _alone(place: Path) -> ExitStack:
    """Return what holds every lock that a writer of the home takes, in the order in which writers take them."""
    with ExitStack() as stack:
        if (place / "data" / "memories").is_dir():
            stack.enter_context(memory_tool.directory_lock(place))
            memory_tool.synchronize_directory(place)
        hooks = place / "hooks"
        patience = config.or_default(place).lock_timeout_seconds
        stack.enter_context(locked(hooks, timeout=patience) if hooks.is_dir() else nullcontext())
        stack.enter_context(write_lock(place))
        return stack.pop_all()


def _forget(place: Path, ids: list[str]) -> list[str]:
    """Forget those of `ids` that memory still has, and return them."""
    found = []
    for one in ids:
        with suppress(NotFound):
            forget.preview_forget([one], home=place)
            found.append(one)
    if found:
        forget.forget(found, home=place)
    return found


def _plan(place: Path, ids: list[str], match: str) -> _Plan:
    """Return the new files that hold nothing of the text any more, all of them checked."""
    if bool(ids) == bool(match.strip()):
        raise InvalidInput("expected either ids or a text.", fix="Pass one of them.", where="erase")
    with storage_errors(place, left="Nothing was changed."):
        texts, skipped = _of_ids(place, ids) if ids else ([_fit(match.strip())], 0)
        return _made(place, texts)._replace(skipped=skipped)


def _fit(text: str) -> str:
    # No message repeats the text: it would be on a screen, and in a transcript.
    if len(text) < MIN_CHARS:
        raise InvalidInput(
            "the text is too short: it is part of too much.",
            fix=f"Use at least {MIN_CHARS} characters, with the words beside it.",
            where="erase",
        )
    if forgetting_erase.is_reserved(text):
        raise _in_the_way("the words that files of a home are built of")
    return text


def _in_the_way(where: str) -> InvalidInput:
    return InvalidInput(
        f"the text is part of {where}: to erase it would break them.",
        fix="Use a longer text, with the words beside it.",
        where="erase",
    )


def _of_ids(place: Path, ids: list[str]) -> tuple[list[str], int]:
    """Return what the things called `ids` say, or ever said, and how many texts of it have to stay."""
    texts: set[str] = set()
    known: set[str] = set()
    for found in _files(place):
        if any(one.encode() in found.data for one in ids):
            for entry in forgetting_erase.objects(found.path, found.data):
                name = str(entry.get("session_id", entry.get("id")))
                if name in ids and (said := [text.strip() for text in forgetting_erase.texts_of(entry)]):
                    known.add(name)
                    texts |= {text for text in said if not MARK.fullmatch(text)}
    missing = [one for one in ids if one not in known]
    if missing:
        raise NotFound(
            f"{shown(missing[0])} is in no layer, no signal, not in the archive and not in the history.",
            fix='See "aether recall QUERY" and "aether log".',
            where="erase",
        )
    fit = [text for text in texts if len(text) >= MIN_CHARS and not forgetting_erase.is_reserved(text)]
    return fit, len(texts) - len(fit)


def _files(place: Path) -> Iterator[_File]:
    """Yield every file of the home that erasing looks into."""
    for directory, names, files in os.walk(place, onerror=_raised):
        names.sort()
        for name in sorted(files):
            path = Path(directory) / name
            relative = path.relative_to(place).as_posix()
            if name == LOCK or relative.startswith((INDEX, f"{DIRECTORY}/")):
                continue
            known = file_identity(path)
            with suppress(FileNotFoundError):  # hooks make and remove theirs at any time
                if known is not None and stat.S_ISREG(path.lstat().st_mode):
                    yield _File(relative, path.read_bytes(), known)


def _raised(reason: OSError) -> None:
    """Raise what `os.walk` passes over: a directory that cannot be read may hold the text."""
    raise reason


def _made(place: Path, texts: list[str]) -> _Plan:
    """Return the plan that erases `texts`."""
    pattern = forgetting_erase.pattern_of(texts)
    raw = re.compile(pattern.pattern.encode("utf-8", "surrogatepass"))
    seen = _seen(place, pattern, raw)
    own = [path for path in OWN_FILES if seen.held.pop(path, 0)]
    places: Counter[str] = Counter()
    for path, number in seen.held.items():
        places[_kind(path)] += number
    steps: list[Step] = []
    by = forgetting_erase.marks(seen.spellings, taken=seen.taken)
    digests: dict[str, str] = {}

    def erase(text: str) -> str:
        return digests.get(text) or pattern.sub(lambda match: by[match[0]], text)

    for each in seen.known:
        digests |= forgetting_erase.digests(each, erase)

    def concerns(data: bytes) -> bool:
        # A receipt of forgetting may hold the digest of several texts.
        found = {digest.decode() for digest in _DIGEST.findall(data)}
        return bool(raw.search(data) or b'"forgotten":[' in data or found & digests.keys())

    for file in _files(place) if places.total() else ():
        held = seen.held[file.path]
        if file.path not in OWN_FILES and (held or concerns(file.data)):
            # In a conversation that held the text, receipts of compactions hold digests of several messages.
            every = held and file.path.startswith("conversations/")
            data = forgetting_erase.rewrite_file(file.path, file.data, erase, bool if every else concerns)
            if raw.search(data) or pattern.search(erase(file.path)):
                raise _in_the_way(f"what files are built of ({_kind(file.path)})")
            steps += _steps(place, file, data, erase)
    if steps:
        steps += [Step(name, "", (0, 0, 0), b"") for name in (INDEX, f"{INDEX}-journal")]
    return _Plan(+places, steps, 0, own)


def _seen(place: Path, pattern: re.Pattern[str], raw: re.Pattern[bytes]) -> _Seen:
    """Return where the home holds what `pattern` finds in strings, and `raw` in bytes."""
    seen = _Seen(Counter(), {}, [], set())
    for file in _files(place):
        seen.taken.update(MARK.findall(f"{file.path}\n{file.data.decode('utf-8', 'replace')}"))
        if not raw.search(file.data) and not pattern.search(file.path):
            continue

        def look(text: str, path: str = file.path) -> str:
            found = pattern.findall(text)
            seen.held[path] += len(found)
            seen.spellings.update(dict.fromkeys(found))
            seen.known.extend([text] if found else [])
            return text

        look(f"/{file.path}")
        look(forgetting_erase.conversation_of(file.path, file.data) or "")
        forgetting_erase.rewrite_file(file.path, file.data, look, lambda line: bool(raw.search(line)))
        objects = forgetting_erase.objects(file.path, file.data)
        seen.known.extend(each for each in objects if pattern.search(str(each.get("content"))))
    return seen


def _kind(path: str) -> str:
    return next((kind for start, kind in KINDS.items() if path.startswith(start)), "other")


def _steps(place: Path, file: _File, data: bytes, erase: forgetting_erase.Rewrite) -> Iterator[Step]:
    """Yield how the file gets its new `data`, and a new name where its own, or that of its conversation, held the text."""
    to = erase(f"/{file.path}")[1:]
    conversation = forgetting_erase.conversation_of(file.path, file.data)
    renamed = conversation is not None and erase(conversation) != conversation
    if conversation is not None and renamed:
        to = path_of(place, erase(conversation)).relative_to(place).as_posix()
    if data != file.data or to != file.path:
        _require_fit(file, data)
        yield Step(file.path, to, file.known, data)
    if renamed:  # its lock keeps the directory, and with it the name
        yield Step(f"{file.path.rpartition('/')[0]}/{LOCK}", "", (0, 0, 0), b"")


def _require_fit(file: _File, data: bytes) -> None:
    name = file.path.removeprefix("data/").removesuffix(".json")
    if name in documents.NAMES:
        before, after = (documents.parse(each, where=name).value for each in (file.data, data))
        found = [check.findings(name, value) for value in (before, after) if value is not None]
        if len(found) != 2 or len(found[0]) < len(found[1]):
            raise _in_the_way(f"what the schema of {name} says")
