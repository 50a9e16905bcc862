"""Erasing, as a caller asks for it: a text that no file of the home holds afterwards, in the history neither.

Everything is worked out first, in memory, and looked at: where the text stands in what a file is built of, or something
would not fit its schema any more, nothing is changed. Then all files are replaced as one (`store.replacing`), under the
locks of the home. There is no undo.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from aether.errors import InvalidInput, NotFound, shown
from aether.memory import erasing
from aether.operations import forgetting, memory_directory
from aether.operations.edge import Home, drained, find, now
from aether.schemas import check
from aether.shapes import JsonObject
from aether.store import config, documents
from aether.store.commit import fold, settle
from aether.store.conversation_log import path_of
from aether.store.files import storage
from aether.store.lock import locked
from aether.store.replacing import DIRECTORY, Step, finish, identity, stage
from aether.store.state import load
from aether.text.erasing import LEAST_CHARS, Sought, is_mark, marks, may_hold, replaced, sought, spans, whole

# A person writes these; erasing in them could change what aether does.
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


class Erased(NamedTuple):
    """What erasing did, or would do; never what the text is."""

    places: dict[str, int]
    """How often the text stands in each kind of file."""
    files: int
    skipped: int
    """Texts of what was named that are too short, or a word that files are built of: they stay."""
    own: list[str]
    """Files that a person wrote and that hold the text: they stay as they are."""
    left: list[str]
    """Files that were touched meanwhile, and stay as they are: erase again."""
    forgotten: int
    """Things that were named, and were taken out of memory as well."""
    done: bool


class _Found(NamedTuple):
    """One file, as it was read."""

    path: str
    data: bytes
    known: tuple[int, int, int]


class _Seen(NamedTuple):
    """Where a text stands in the files that were looked into."""

    paths: dict[str, bool]
    """The files that may hold it, and whether they do."""
    spellings: dict[str, None]
    texts: dict[str, None]
    """The strings that it is part of."""
    items: list[JsonObject]
    places: Counter[str]
    around: list[str]
    """All that stands in those files."""


class _Plan(NamedTuple):
    """What is to be done."""

    places: dict[str, int]
    steps: list[Step]
    skipped: int
    own: list[str]


def would_erase(ids: Iterable[str] = (), *, match: str = "", home: Home = None) -> Erased:
    """Return how often the text `match`, or what the things `ids` say, stands in the home; nothing is changed.

    Raises:
        InvalidInput: neither or both are given, or the text cannot be erased without harm.
        NotFound: an id names nothing, in the history neither.
    """
    place = drained(find(home))
    return _told(_plan(place, list(ids), match))


def erase(ids: Iterable[str] = (), *, match: str = "", home: Home = None) -> Erased:
    """Put a mark in the place of the text `match`, or of what the things `ids` say, in every file of the home.

    Things that are named are forgotten as well. This cannot be undone.

    Raises:
        InvalidInput, NotFound: as `would_erase`; nothing was changed.
        LockTimeout: another process used the home for too long; nothing was changed.
        StorageFailed: the disk refused. What was decided by then is finished by whoever writes next.
    """
    place, wanted = drained(find(home)), list(ids)
    with _alone(place):
        with storage(place):
            fold(settle(load(place), now=now()), now=now())
        plan = _plan(place, wanted, match)
        left: list[str] = []
        if plan.steps:
            stage(place, plan.steps)
            left = finish(place)
    forgotten = len(_forget(place, wanted))
    return _told(plan)._replace(left=left, forgotten=forgotten, done=bool(plan.steps or forgotten))


def _told(plan: _Plan) -> Erased:
    return Erased(
        plan.places, sum(bool(step.to) for step in plan.steps), plan.skipped, plan.own, [], 0, done=False
    )


def _alone(place: Path) -> ExitStack:
    """Return what holds every lock that a writer of the home takes, in the order in which writers take them."""
    stack = ExitStack()
    try:
        if (place / "data" / "memories").is_dir():
            stack.enter_context(memory_directory.alone(place))
            memory_directory.settled(place)
        hooks = place / "hooks"
        patience = config.or_default(place).lock_timeout_seconds
        stack.enter_context(locked(hooks, timeout=patience) if hooks.is_dir() else nullcontext())
        stack.enter_context(locked(place))
    except BaseException:
        stack.close()
        raise
    return stack


def _forget(place: Path, ids: list[str]) -> list[str]:
    """Forget those of `ids` that are still to be found, and return them."""
    still = []
    for one in ids:
        try:
            forgetting.would_forget([one], home=place)
        except NotFound:
            continue
        still.append(one)
    if still:
        forgetting.forget(still, home=place)
    return still


def _plan(place: Path, ids: list[str], match: str) -> _Plan:
    if bool(ids) == bool(match.strip()):
        raise InvalidInput(
            "what to erase is needed: ids, or a text.", fix="Pass one of them, not both.", where="erase"
        )
    with storage(place, left="Nothing was changed."):
        if match:
            wanted, skipped = sought([_fit(match)]), 0
        else:
            wanted, skipped = _of_ids(place, ids)
        return _worked_out(place, wanted)._replace(skipped=skipped)


def _fit(text: str) -> str:
    # Neither message holds the text: it would stand on a screen, and in a transcript.
    if len(text.strip()) < LEAST_CHARS:
        raise InvalidInput(
            "the text is too short: it is part of too much.",
            fix=f"Use at least {LEAST_CHARS} characters, with what stands beside it.",
            where="erase",
        )
    if erasing.is_reserved(text.strip()):
        raise _in_the_way("the words that files of a home are built of")
    return text


def _in_the_way(where: str) -> InvalidInput:
    return InvalidInput(
        f"the text is part of {where}: to erase it would break what holds it.",
        fix="Use a longer text, with what stands beside it.",
        where="erase",
    )


def _of_ids(place: Path, ids: list[str]) -> tuple[Sought, int]:
    """Return what the things called `ids` say, or ever said, and how many texts of it have to stay."""
    texts: dict[str, None] = {}
    known: set[str] = set()
    for found in _files(place):
        if any(one.encode() in found.data for one in ids):
            for value in erasing.values_of(found.path, found.data):
                for entry in erasing.dicts(value):
                    name = entry.get("session_id", entry.get("id"))
                    if name in ids and (said := list(erasing.texts_of(entry))):
                        known.add(str(name))
                        texts |= dict.fromkeys(said)
    missing = [one for one in ids if one not in known]
    if missing:
        raise NotFound(
            f"{shown(missing[0])} is in no layer, no signal, not in the archive and not in the history.",
            fix='See "aether recall QUERY" and "aether log".',
            where="erase",
        )
    texts = {text.strip(): None for text in texts if not is_mark(text.strip())}
    fit = [text for text in texts if len(text) >= LEAST_CHARS and not erasing.is_reserved(text)]
    return sought(fit), len(texts) - len(fit)


def _files(place: Path) -> Iterator[_Found]:
    """Yield every file of the home that erasing looks into."""
    for directory, names, files in os.walk(place, onerror=_raised):
        names.sort()
        for name in sorted(files):
            relative = (Path(directory) / name).relative_to(place).as_posix()
            if name != LOCK and not relative.startswith((INDEX, f"{DIRECTORY}/")):
                found = _read(place, relative)
                if found is not None:
                    yield found


def _read(place: Path, relative: str) -> _Found | None:
    path = place / relative
    known = identity(path)
    with suppress(FileNotFoundError):  # hooks make and remove theirs at any time
        if known is not None and stat.S_ISREG(path.lstat().st_mode):
            return _Found(relative, path.read_bytes(), known)
    return None


def _raised(reason: OSError) -> None:
    """Raise what `os.walk` passes over: a directory that cannot be read may hold the text."""
    raise reason


def _worked_out(place: Path, wanted: Sought) -> _Plan:
    """Return the plan that erases what is `wanted`, having seen that nothing of it is left and all is whole."""
    seen = _seen(place, wanted)
    own = [path for path, holds in seen.paths.items() if holds and path in OWN_FILES]
    if not seen.spellings:
        return _Plan({}, [], 0, own)
    by = marks(seen.spellings, wanted, taken="\n".join(seen.around))

    def plain(text: str) -> str:
        return replaced(text, wanted, by)

    known = {old: new for text in seen.texts for old, new in erasing.digests(text, plain).items()}
    for entry in seen.items:
        known |= erasing.item_digests(entry, plain)
    erase = erasing.with_digests(plain, known)
    steps: list[Step] = []

    def concerns(data: bytes) -> bool:
        others = erasing.MARK_OF_FORGETTING in data or erasing.found_digests(data) & known.keys()
        return bool(others) or may_hold(data.decode("utf-8", "replace"), wanted)

    def with_receipts(data: bytes) -> bool:
        return erasing.MARK_OF_COMPACTION in data or concerns(data)

    for found in _files(place):
        if (found.path in seen.paths or concerns(found.data)) and found.path not in OWN_FILES:
            steps += _steps(
                place, found, erase, wanted, with_receipts if seen.paths.get(found.path) else concerns
            )
    if steps:
        steps += [Step(name, "", (0, 0, 0), b"") for name in (INDEX, f"{INDEX}-journal")]
    return _Plan(dict(seen.places), steps, 0, own)


def _seen(place: Path, wanted: Sought) -> _Seen:
    seen = _Seen({}, {}, {}, [], Counter(), [])

    def concerns(data: bytes) -> bool:
        return may_hold(data.decode("utf-8", "replace"), wanted)

    for found in _files(place):
        around = f"/{found.path}\n{found.data.decode('utf-8', 'replace')}"
        if not may_hold(around, wanted):
            continue
        before = seen.places.total()
        look = _looking(seen, wanted, "" if found.path in OWN_FILES else _kind(found.path))
        look(f"/{found.path}")
        look(erasing.conversation_of(found.path, found.data) or "")
        erasing.rewritten(found.path, found.data, look, concerns)
        for value in erasing.values_of(found.path, found.data, concerns):
            seen.items.extend(
                entry for entry in erasing.dicts(value) if spans(str(entry.get("content", "")), wanted)
            )
        seen.paths[found.path] = seen.places.total() > before
        seen.around.append(around)
    del seen.places[""]
    return seen


def _looking(seen: _Seen, wanted: Sought, kind: str) -> erasing.Rewrite:
    """Return what notes in `seen` where a string holds what is `wanted`, and leaves the string as it is."""

    def look(text: str) -> str:
        for start, end in spans(text, wanted):
            seen.places[kind] += 1
            seen.texts[text] = None
            seen.spellings[text[start:end]] = None
        return text

    return look


def _kind(path: str) -> str:
    return next((kind for start, kind in KINDS.items() if path.startswith(start)), "other")


def _steps(
    place: Path, found: _Found, erase: erasing.Rewrite, wanted: Sought, concerns: erasing.Concerns
) -> Iterator[Step]:
    """Yield what happens to one file, having seen that nothing is left in it.

    Raises:
        InvalidInput: something is, or it would not fit its schema any more.
    """
    data = erasing.rewritten(found.path, found.data, erase, concerns)
    to = erase(f"/{found.path}")[1:]
    name = erasing.conversation_of(found.path, found.data)
    if name is not None and erase(name) != name:
        to = path_of(place, erase(name)).relative_to(place).as_posix()
        # Its lock keeps the directory, and with it the name.
        yield Step(f"{found.path.rpartition('/')[0]}/{LOCK}", "", (0, 0, 0), b"")
    if whole(data.decode("utf-8", "surrogateescape"), wanted) or whole(to, wanted):
        raise _in_the_way(f"what files are built of ({_kind(found.path)})")
    if data != found.data or to != found.path:
        _require_fit(found, data)
        yield Step(found.path, to, found.known, data)


def _require_fit(found: _Found, data: bytes) -> None:
    name = found.path.removeprefix("data/").removesuffix(".json")
    if name in documents.NAMES:
        before, after = (documents.parse(each, where=name).value for each in (found.data, data))
        amiss = [check.findings(name, value) for value in (before, after) if value is not None]
        if len(amiss) != 2 or len(amiss[0]) < len(amiss[1]):
            raise _in_the_way(f"what the schema of {name} says")
