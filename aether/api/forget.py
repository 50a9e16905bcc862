"""Forgetting: remove entries from memory, supersede one by a correction, or erase a text from every file of the home.

`forget` and `supersede` are one transaction each, with a receipt, and `undo` reverses them. `erase` has no undo: it rewrites
every file that holds the text, the history included, and `undo` refuses the revisions that held it. All new files are made
and checked before one is replaced (`store.rewrite`), under the locks of the home.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from aether import regular
from aether.api import hook_sessions, memory_tool
from aether.api.home import Home, change, copied, counter_of, drained, find, now, read
from aether.clock import new_id
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidInput, NotFound, public, shown
from aether.memory import erase as erasing
from aether.memory import forget as forgetting
from aether.memory import items
from aether.memory.capture.passages import request_in
from aether.memory.erase import MARK, MIN_CHARS
from aether.memory.forget import Target
from aether.schemas import check
from aether.store import (
    archive_steps,
    archive_store,
    config,
    documents,
    enforced,
    files,
    ledger,
    record_files,
    seals,
    search_index,
)
from aether.store.authors import Author
from aether.store.commit import fold, settle, write_lock
from aether.store.conversation_list import LIST_LOCK, list_lock
from aether.store.conversations import FILE, path_of
from aether.store.files import locked, storage_errors
from aether.store.log import HEAD
from aether.store.patch import chain_changes
from aether.store.rewrite import DIRECTORY, PLAN, Step, end, file_identity, finish, stage, start
from aether.store.snapshot import Snapshot, load
from aether.text.words import pluralize
from aether.types import Change, EnforcedRule, Item, JsonObject

# Documents that forgetting leaves unchanged: each has commands of its own.
UNCHANGED_DOCUMENTS = ("COLONY_STATE", "memories", "goals", "teamwork")
# A shorter text is part of too many entries.
MIN_TEXT_CHARS = 3
# A person took the trouble to correct it: as high as a constraint.
SUPERSEDING_RELEVANCE = 0.9
# A person writes these; erasing in them could change how aether works.
OWN_FILES = ("config.toml", "models.json")
# The indexes, and what SQLite keeps beside them: they are removed, and made again.
DERIVED = tuple(
    f"{name}{end}"
    for name in (search_index.FILE, search_index.OLD_FILE)
    for end in ("", *search_index.BESIDE)
)
LOCK = "lock"
# Files of a home that hold no text: its locks, the numbers of last lines, the mark of erasures. A note of the memory tool may have any name.
_NO_TEXT = re.compile(
    rf"(?:(?:hooks(?:/injected|/told)?|data/memories|conversations(?:/[^/]+)?)/)?{LOCK}|(?:data|conversations/[^/]+)/{HEAD}|{files.ERASURES}"
)
# The kind of the rules of a home that act: they are in the user's own state directory.
RULES = "rules that act"
# Advice for ids that `supersede` rejects.
_INSTEAD = {
    "session": 'It holds several statements: "aether memory forget --match TEXT" removes the wrong one, "aether add" adds the right one.',
    "signals": 'Remove it with "aether memory forget {id}", and emit a new one with "aether signal".',
    "graph": 'Remove it with "aether memory forget {id}"; a model adds it again through "aether mcp --tools graph".',
}
_LINE_END = re.compile(r"(?:\n|\\+n)\Z")
_DIGEST = re.compile(rb"[0-9a-f]{64}|[0-9a-f]{16}")


class Forgotten(NamedTuple):
    """Result of forgetting, or its plan."""

    targets: list[Target]
    similar: list[Target]
    """Entries with the same statement in other words; they are kept unless `similar` is set."""
    elsewhere: list[str]
    """Documents that hold the text too and are not changed."""
    receipt: JsonObject | None
    revision: int
    """The revision to undo; 0 if nothing was changed."""


def preview_forget(
    ids: Iterable[str] = (), *, match: str = "", similar: bool = False, home: Home = None
) -> Forgotten:
    """Return the entries that forgetting `ids`, or all that contains the text `match`, would remove; nothing is changed.

    Every entry that repeats the text of a named item or pattern is included: statements of sessions, patterns, the
    prompt that it was part of, observations of the knowledge graph. `similar` includes those in other words.

    Raises:
        InvalidInput: neither or both are given, or the text is too short.
        NotFound: an id names nothing.
    """
    snapshot = read(home)
    targets, like, elsewhere = _matches(
        snapshot.documents, remembered_archive(snapshot), list(ids), match, similar=similar
    )
    return Forgotten(targets, like, elsewhere, None, 0)


def forgotten_with(ids: Iterable[str], *, home: Home = None) -> dict[str, int]:
    """Return how many entries forgetting each of `ids` would remove; an id that names nothing is left out."""
    snapshot = read(home)
    return forgetting.forgotten_with(snapshot.documents, remembered_archive(snapshot), ids)


@public
def forget(
    ids: Iterable[str] = (),
    *,
    match: str = "",
    similar: bool = False,
    repeated: bool = False,
    home: Home = None,
) -> Forgotten:
    """Remove from memory the entries that `preview_forget` returns, and return them.

    With `repeated` the text `match` is a whole statement: only what repeats it word for word is removed, and something must.

    No search, recall or briefing finds them any more; undoing the returned revision brings them back. Their text stays in
    the history of the home.

    Raises:
        InvalidInput, NotFound: as `preview_forget`; nothing was changed.
    """
    place, wanted_ids, moment = find(home), list(ids), now()
    # The archive only grows; an item that arrives in it meanwhile was live, and is found in memory.
    archived = remembered_archive(read(place))

    def plan(state: Mapping[str, Any]) -> Change:
        matches = _matches(state, archived, wanted_ids, match, similar=similar, repeated=repeated)
        result = forget_targets(state, matches[0], moment)
        return result._replace(result=(*matches, result.result))

    author = Author("forget", reason=pluralize(len(wanted_ids), "ids") if wanted_ids else "by text")
    result = change(place, plan, author)
    *matches, elsewhere, receipt = result.result
    targets, like = ([Target(*fields) for fields in some] for some in matches)
    return Forgotten(targets, like, elsewhere, receipt, result.revision if result.changed else 0)


def forget_targets(state: Mapping[str, Any], targets: list[Target], at: datetime) -> Change:
    """Return the change that forgets `targets`; its result is the receipt."""
    return forgetting.forget(
        state, targets, now=at, count=counter_of(state["memory"]), receipt_id=new_id("receipt", at, 0)
    )


def remembered_archive(snapshot: Snapshot) -> list[JsonObject]:
    """Return the archive records that are not forgotten, oldest first."""
    hidden = items.forgotten_ids(snapshot.documents["memory"])
    return [
        record for _, record in record_files.records(snapshot, "items") if record["item"]["id"] not in hidden
    ]


def _matches(
    state: Mapping[str, Any],
    archived: list[JsonObject],
    ids: list[str],
    match: str,
    *,
    similar: bool,
    repeated: bool = False,
) -> tuple[list[Target], list[Target], list[str]]:
    """Return the entries to forget, the similar ones, and the other documents that hold their text."""
    if bool(ids) == bool(match):
        raise InvalidInput("expected either ids or a text.", fix="Pass one of them.", where="forget")
    if match:
        if len(match.strip()) < MIN_TEXT_CHARS:
            raise InvalidInput(
                f"the text {shown(match)} is too short: too many entries hold it.",
                fix=f"Use at least {MIN_TEXT_CHARS} characters.",
                where="forget",
            )
        find = forgetting.find_repeats if repeated else forgetting.find_by_text
        matches = find(state, archived, match)
        if repeated and not matches:
            fix = "Look at it again: it was changed or forgotten meanwhile."
            raise NotFound("no entry says this any more.", fix=fix, where="forget")
        return matches, [], _elsewhere(state, [match])
    targets, unknown = forgetting.find_by_ids(state, archived, ids)
    if unknown:
        raise NotFound(
            f"{shown(unknown[0])} is in no layer, signal, archive or knowledge graph.",
            fix='See "aether recall QUERY".',
            where="forget",
        )
    like = forgetting.find_similar(state, archived, targets)
    if similar:
        targets, like = targets + like, []
    return targets, like, _elsewhere(state, forgetting.statement_texts(targets))


def _elsewhere(state: Mapping[str, Any], texts: list[str]) -> list[str]:
    """Return the documents that hold one of `texts` and that forgetting does not change."""
    escaped_texts = [json.dumps(text, ensure_ascii=False)[1:-1].casefold() for text in texts]
    document_texts = {
        name: json.dumps(state.get(name), ensure_ascii=False).casefold() for name in UNCHANGED_DOCUMENTS
    }
    return [
        name
        for name, document_text in document_texts.items()
        if any(
            escaped in document_text for escaped in escaped_texts if len(escaped.strip()) >= MIN_TEXT_CHARS
        )
    ]


class Superseded(NamedTuple):
    """Result of a correction."""

    item: Item
    """The correction, in working memory."""
    forgotten: list[Target]
    """All entries that held the earlier statement."""
    revision: int


@public
def supersede(id: str, updates: Mapping[str, Any], *, home: Home = None) -> Superseded:
    """Store `updates` (content and other fields of an item) in place of an archived item or a pattern, and return that.

    Items of working memory are changed in place (`update_working_memory_item`); this is for entries that left it. All that
    repeats the text of `id` is forgotten in the same transaction, so one undo brings it back.

    Raises:
        NotFound: nothing has this id.
        InvalidInput: no content is given, a field is impossible, or `id` is neither an item nor a pattern.
        BudgetExceeded: the new content does not fit.
    """
    place, moment = find(home), now()
    archived = remembered_archive(read(place))
    fields = copied(files.checked_json(dict(updates), where=f"item {id}"))

    def plan(state: Mapping[str, Any]) -> Change:
        targets, unknown = forgetting.find_by_ids(state, archived, [id])
        if unknown:
            raise NotFound(
                f"{shown(id)} is in no layer and not in the archive.",
                fix='See "aether recall QUERY".',
                where="correct",
            )
        entry = _correction(targets[0], fields)
        result = chain_changes(
            state,
            lambda present: forget_targets(present, targets, moment),
            lambda present: items.add(
                present["memory"], [entry], now=moment, new_id=new_id, count=counter_of(present["memory"])
            ),
        )
        return result._replace(result=(targets, result.result[1].ids[0]))

    result = change(place, plan, Author("correct", reason=id))
    targets, new_item_id = result.result
    (item,) = (
        entry_ for entry_ in items.items_of(read(place).documents["memory"]) if entry_["id"] == new_item_id
    )
    return Superseded(copied(item), [Target(*target_fields) for target_fields in targets], result.revision)


def _correction(old: Target, updates: Mapping[str, Any]) -> JsonObject:
    """Return the entry that takes the place of `old`, checked."""
    kind = "session" if old.type == "session" else old.layer
    if kind in _INSTEAD:
        raise InvalidInput(
            f"{shown(old.id)} is not a single statement that could be corrected.",
            fix=_INSTEAD[kind].format(id=old.id),
            where="correct",
        )
    if "content" not in updates:
        raise InvalidInput(
            f"{shown(old.id)} is not in working memory any more: only its text can be corrected.",
            fix=f'Give the correct text: aether memory update {old.id} --content "TEXT".',
            where="correct",
        )
    metadata = {**(updates.get("metadata") or {}), "supersedes": old.id}
    fields = {"type": old.type, "relevance_score": SUPERSEDING_RELEVANCE, **updates, "metadata": metadata}
    (checked,) = items.checked_entries([fields])
    return checked


class Erased(NamedTuple):
    """Result of erasing, or its plan; it never holds the text."""

    places: dict[str, int]
    """How often the text occurs in each kind of file."""
    files: int
    skipped: int
    """Texts of the named entries that are too short, or part of the format of files: they are kept."""
    own: list[str]
    """Files that a person wrote and that hold the text: they are not changed."""
    left: list[str]
    """Files that were changed meanwhile, and are not changed: erase again."""
    forgotten: int
    """Named entries that were removed from memory as well."""
    done: bool
    unread: tuple[str, ...] = ()
    """Compressed files that are damaged: they cannot be searched, and are not changed."""


class _File(NamedTuple):
    """One file of the home, as it was read."""

    path: str
    data: bytes
    known: tuple[int, int, int]
    form: str
    """A path that names the format of `data`: for a compressed file the path of its content."""
    layers: tuple[str, ...] | None
    """The compressions and encodings of the file around `data`; None if it is damaged."""


class _Occurrences(NamedTuple):
    """The places of a text in a home."""

    counts: Counter[str]
    """How often each file holds it."""
    spellings: dict[str, None]
    values: list[Any]
    """The strings and objects that hold it."""
    taken: set[str]
    """The marks of earlier erasures."""
    unread: list[str]
    """Compressed files that are damaged."""


def preview_erase(ids: Iterable[str] = (), *, match: str = "", home: Home = None) -> Erased:
    """Return how often the text `match`, or the texts of the entries `ids`, occur in the home; nothing is changed.

    Raises:
        InvalidInput: neither or both are given, or erasing the text would damage files.
        NotFound: an id names nothing, not even in the history.
    """
    return _plan(drained(find(home)), list(ids), match)[0]


@public
def erase(ids: Iterable[str] = (), *, match: str = "", home: Home = None) -> Erased:
    """Replace the text `match`, or the texts of the entries `ids`, by a mark in every file of the home.

    Named entries are forgotten first. None of it can be undone.

    Raises:
        InvalidInput, NotFound: as `preview_erase`; nothing was changed.
        Conflict: the home is shared: other replicas and the server keep the text.
        LockTimeout: another process used the home, or a conversation, for too long. Nothing was erased, or the next
            writer completes the erasure.
        StorageFailed: the disk refused. If all new files were written by then, the next writer completes the erasure.
    """
    place, id_list = drained(find(home)), list(ids)
    if ledger.is_shared(place):
        what = (
            "a text cannot be erased from one replica of a shared colony: the server and the others keep it."
        )
        fix = 'Use "aether memory forget"; to erase it, let every home leave, erase it in one, and share that one again.'
        raise Conflict(what, fix=fix, where=str(place))
    present = []
    if id_list:
        _plan(place, id_list, match)  # refused before anything is forgotten
        archived = remembered_archive(read(place))
        missing = forgetting.find_by_ids(read(place).documents, archived, id_list)[1]
        present = [id for id in id_list if id not in missing]  # noqa: A001 - only the history has the others
    if present:
        forget(present, home=place)
    seconds = config.or_default(place).lock_timeout_seconds
    with ExitStack() as locks:  # every lock that a writer of the home takes, in the same order
        if (place / "data" / "memories").is_dir():
            locks.enter_context(memory_tool.directory_lock(place))
            memory_tool.synchronize_directory(place)
        if (hooks := place / "hooks").is_dir():
            locks.enter_context(locked(hooks, timeout=seconds))
        locks.enter_context(write_lock(place))
        start(place, list_lock(place), timeout=seconds)
        locks.callback(_end, place)
        archive_steps.settle(place, now=now())
        if (injected := hooks / hook_sessions.INJECTED_DIRECTORY).is_dir():
            locks.enter_context(locked(injected, timeout=seconds))
        locks.enter_context(list_lock(place))
        with storage_errors(place):
            fold(settle(load(place), now=now()), now=now())
        report, steps, texts, ended = _plan(place, id_list, match)
        leftovers: list[str] = []
        if steps:
            _without_lines_of(place, texts)
            stage(place, steps)
            leftovers = finish(place, timeout=seconds)
    for home_of_rules, removed in ended.items():
        enforced.change(home_of_rules, lambda rules: [rule for rule in rules if rule not in removed])  # noqa: B023 - called at once
    return report._replace(left=leftovers, forgotten=len(present), done=bool(report.places or present))


def _end(place: Path) -> None:
    """Mark the end of an erasure, unless it is decided and not finished."""
    if not (place / DIRECTORY / PLAN).exists():
        with suppress(AetherError):  # the next writer does it
            end(place)


def _ended(place: Path, ids: list[str], texts: list[str]) -> dict[Path, list[EnforcedRule]]:
    """Return the rules that end with an erasure, by their homes: those of this one, also from where it was before."""
    ended = {place: [rule for rule in enforced.read(place) if _holds(rule, ids, texts)]}
    for former in enforced.former_homes():
        rules = [rule for rule in enforced.read(former) if _holds(rule, ids, texts)]
        entries = {rule["entry"].encode() for rule in rules}
        # An entry that this home knows came with it.
        known = {
            entry for file in (_files(place) if rules else ()) for entry in entries if entry in file.data
        }
        ended[Path(former)] = [rule for rule in rules if rule["entry"].encode() in known]
    return {home: rules for home, rules in ended.items() if rules}


def _holds(rule: EnforcedRule, ids: list[str], texts: list[str]) -> bool:
    """Return whether a rule is that of an erased entry, or says an erased text in its words or its patterns."""
    fields = (rule["text"], rule["tool"], rule["command"], rule["regex"], rule["path"])
    # The words of a rule are in one line, whatever was between them.
    wanted = erasing.wanted([*texts, *(" ".join(text.split()) for text in texts)])
    return rule["entry"] in ids or any(erasing.spans(wanted, field) for field in fields)


def _plan(
    place: Path, ids: list[str], match: str
) -> tuple[Erased, list[Step], list[str], dict[Path, list[EnforcedRule]]]:
    """Return the report of an erasure, its new files, all of them checked, the texts that go, and the rules that end."""
    text = match.strip()
    if bool(ids) == bool(text):
        raise InvalidInput("expected either ids or a text.", fix="Pass one of them.", where="erase")
    # No message repeats the text: it would be on a screen, and in a transcript.
    if text and len(text) < MIN_CHARS:
        fix = f"Use at least {MIN_CHARS} characters, with the words beside it."
        raise InvalidInput("the text is too short: it is part of too many others.", fix=fix, where="erase")
    if text and erasing.is_reserved(text):
        raise _in_the_way("the words of the file formats of a home")
    with storage_errors(place, left="Nothing was changed."):
        given, skipped = _texts_of_ids(place, ids) if ids else ([text], 0)
        texts = [*dict.fromkeys(spelling for text in given for spelling in _own_spellings(text))]
        report, steps = _rewritten(place, texts)
        ended = _ended(place, ids, texts)
    places = report.places | ({RULES: sum(map(len, ended.values()))} if ended else {})
    return report._replace(skipped=skipped, places=places), steps, texts, ended


def _own_spellings(text: str) -> list[str]:
    """Return `text` as aether writes it: as it is, on one line as in titles, and as a reason of the log quotes these."""
    spellings = [text, " ".join(text.split())]
    return [*dict.fromkeys([*spellings, *(repr(spelling)[1:-1] for spelling in spellings)])]


def _without_lines_of(place: Path, texts: Iterable[str]) -> None:
    """Remove what hooks keep line by line, if one of `texts` has several: no element of it holds such a text as a whole."""
    if any("\n" in text for text in texts):
        for name in ("briefs", hook_sessions.INJECTED_DIRECTORY):
            for file in files.files_ending(place / "hooks" / name, ".json"):
                file.unlink(missing_ok=True)


def _in_the_way(where: str) -> InvalidInput:
    what = f"the text is part of {where}: erasing it would damage files."
    return InvalidInput(what, fix="Use a longer text, with the words beside it.", where="erase")


def _texts_of_ids(place: Path, ids: list[str]) -> tuple[list[str], int]:
    """Return the present and earlier texts of the entries `ids`, and the number of those that cannot be erased."""
    texts: set[str] = set()
    unknown = {*ids}
    for file in _files(place):
        if any(id.encode() in file.data for id in ids):  # noqa: A001
            for entry in erasing.objects(file.form, file.data):
                name = str(entry.get("session_id", entry.get("id")))
                entry_texts = [text.strip() for text in erasing.texts_of(entry)] if name in ids else []
                if entry_texts:
                    unknown.discard(name)
                    texts |= {text for text in entry_texts if not MARK.fullmatch(text)}
    for missing in sorted(unknown):
        what = f"{shown(missing)} is in no layer, signal, archive or history."
        raise NotFound(what, fix='See "aether recall QUERY" and "aether log".', where="erase")
    texts |= _torn_in(place, texts)
    erasable = [text for text in texts if len(text) >= MIN_CHARS and not erasing.is_reserved(text)]
    return erasable, len(texts) - len(erasable)


def _torn_in(place: Path, texts: set[str]) -> set[str]:
    """Return the starts of sentences in `texts` at which a title, or the request that a passage quotes, was cut.

    Each with the mark of the cut or the end of the line: others may start with the same words.
    """
    quoted = {
        (text, end)
        for file in _files(place)
        if file.form.startswith("data/") and file.form.endswith((".json", ".jsonl"))
        for entry in erasing.objects(file.form, file.data)
        for text, end in ((entry.get("title"), "…"), (request_in(entry), "\n"))
        if isinstance(text, str) and text.endswith("…")
    }
    starts = forgetting.torn_starts({text for text, _ in quoted}, texts)
    cut = [(starts.get(text, ""), end) for text, end in quoted]
    return {f"{start}{end}" for start, end in cut if len(start) >= erasing.MIN_SENTENCE_CHARS}


def _files(place: Path, wanted: erasing.Wanted | None = None) -> Iterator[_File]:
    """Yield every file of the home but locks, the indexes and the files of an erasure; `wanted` as `erasing.unwrapped`."""

    def fail(reason: OSError) -> None:
        raise reason  # a directory that cannot be read may hold the text

    for directory, _, names in sorted(os.walk(place, onerror=fail)):
        for path in sorted(Path(directory, name) for name in names):
            relative = seals.place(place, path)
            if relative in (seals.PATH, *DERIVED) or _NO_TEXT.fullmatch(relative) or relative.startswith(f"{DIRECTORY}/"):  # fmt: skip
                continue
            identity = file_identity(path)
            with suppress(FileNotFoundError):  # hooks make and remove theirs at any time
                if identity is not None and stat.S_ISREG(path.lstat().st_mode):
                    yield _read_file(path, relative, identity, wanted)


def _read_file(
    path: Path, relative: str, identity: tuple[int, int, int], wanted: erasing.Wanted | None
) -> _File:
    data = regular.read(path, regular.LOG_BYTES)
    try:
        data, layers = erasing.unwrapped(data, wanted, where=relative)
    except CorruptDocument:
        return _File(relative, data, identity, relative, None)
    form = relative.removesuffix(".zst").removesuffix(".gz") if layers else relative
    if relative.startswith(f"{archive_store.GRACE}/") and relative.endswith(".zst"):
        form += {"conversation": ".jsonl", "dict": ".json"}.get(archive_store.grace_kind(relative), "")
    return _File(relative, data, identity, form, layers)


def _rewritten(place: Path, texts: list[str]) -> tuple[Erased, list[Step]]:
    """Return the report, and the new files without `texts`."""
    wanted = erasing.wanted(texts)
    seen = _occurrences(place, wanted)
    own_files = [path for path in OWN_FILES if seen.counts.pop(path, 0)]
    mark_of = erasing.marks(seen.spellings, taken=seen.taken)
    digests: dict[str, str] = {}

    def replace(text: str) -> str:
        return digests.get(text) or erasing.replaced(
            wanted, text, lambda spelling: mark_of[spelling] + _line_end(spelling)
        )

    for value in seen.values:
        digests |= erasing.digests(value, replace)
    is_relevant = _relevance(wanted, _receipts_about(place, seen.counts), digests)
    steps: list[Step] = []
    archived: dict[str, tuple[_File, bytes]] = {}
    for file in _files(place, wanted) if seen.counts.total() else ():
        holds, in_archive = seen.counts[file.path], file.path.startswith(f"{archive_store.DIRECTORY}/")
        if file.path in OWN_FILES or not (in_archive or holds or is_relevant(file.data)):
            continue
        # In a conversation that held the text, receipts of compactions hold digests of several messages.
        is_whole = holds and (in_archive or file.path.startswith("conversations/"))
        data = file.data
        if holds or not in_archive:
            data = erasing.rewrite_file(file.form, data, replace, bool if is_whole else is_relevant)
        if erasing.is_in(wanted, data) or erasing.spans(wanted, replace(file.path)):
            raise _in_the_way(f"a file format ({seals.kind_of(file.path)})")
        if in_archive:
            archived[file.path] = file, data
        else:
            steps += _steps(place, file, data, replace)
    steps += _archive_steps(archived)
    steps += _directory_steps(place, replace)
    if steps:
        steps += _sealed_again(place, steps, replace)
        steps += [Step(name, "", (0, 0, 0), b"") for name in DERIVED]
    places: Counter[str] = Counter()
    for path, number in seen.counts.items():
        places[seals.kind_of(path)] += number
    written = sum(bool(step.to) for step in steps)
    return Erased(dict(+places), written, 0, own_files, [], 0, done=False, unread=tuple(seen.unread)), steps


def _relevance(
    wanted: erasing.Wanted, receipts: list[bytes], digests: Mapping[str, str]
) -> Callable[[bytes], bool]:
    """Return whether data has to be rewritten although it may not hold the text: it may hold a digest of it."""

    def is_relevant(data: bytes) -> bool:
        # A receipt of forgetting may hold the digest of several texts, and one of the archive that of a conversation.
        digests_in_data = {digest.decode() for digest in _DIGEST.findall(data)}
        evidence = b'"forgotten":[' in data or any(receipt in data for receipt in receipts)
        return bool(evidence or digests_in_data & digests.keys() or erasing.is_in(wanted, data))

    return is_relevant


def _line_end(text: str) -> str:
    """Return the line end of `text`, in its form: it separates a quotation from an answer, and stays."""
    end = _LINE_END.search(text)
    return end[0] if end else ""


def _occurrences(place: Path, wanted: erasing.Wanted) -> _Occurrences:
    """Return the places of the texts that are `wanted`."""
    seen = _Occurrences(Counter(), {}, [], set(), [])

    def look(text: str, path: str) -> str:
        matches = [text[start:end] for start, end in erasing.spans(wanted, text)]
        seen.counts[path] += len(matches)
        seen.spellings.update(dict.fromkeys(matches))
        seen.values.extend([text] if matches else [])
        return text

    for directory, name in _without_log(place).items():
        look(name, directory)
    for file in _files(place, wanted):
        seen.unread.extend([file.path] if file.layers is None else [])
        seen.taken.update(MARK.findall(f"{file.path}\n{file.data.decode('utf-8', 'replace')}"))
        if not erasing.is_in(wanted, file.data) and not erasing.spans(wanted, file.path):
            continue
        look_here = partial(look, path=file.path)
        look_here(f"/{file.path}")
        look_here(erasing.conversation_of(file.path, file.data) or "")
        erasing.rewrite_file(file.form, file.data, look_here, partial(erasing.is_in, wanted))
        entries = erasing.objects(file.form, file.data)
        seen.values.extend(entry for entry in entries if erasing.spans(wanted, str(entry.get("content"))))
    return seen


def _without_log(place: Path) -> dict[str, str]:
    """Return the directories of conversations that have no log, each with the id that it is named after.

    One is left by a removal, and by a process that was killed while it started a conversation.
    """
    paths = (place / "conversations").glob("*/")
    return {
        seals.place(place, path): unquote(path.name, errors="surrogatepass")
        for path in paths
        if path.name != LIST_LOCK and not os.path.lexists(path / FILE)
    }


def _directory_steps(place: Path, replace: erasing.Rewrite) -> Iterator[Step]:
    """Yield the steps that rename directories of conversations that have no log."""
    for directory, name in _without_log(place).items():
        if replace(name) != name:
            to = seals.place(place, path_of(place, replace(name)).parent)
            if identity := file_identity(place / directory / HEAD):
                yield Step(
                    f"{directory}/{HEAD}", f"{to}/{HEAD}", identity, regular.read(place / directory / HEAD)
                )
            yield Step(f"{directory}/{LOCK}", f"{to}/{LOCK}", (0, 0, 0), b"")


def _receipts_about(place: Path, counts: Mapping[str, int]) -> list[bytes]:
    """Return the ids of the receipts of archived conversations that hold the text, or held it."""
    receipts = []
    for name in archive_store.names(place):
        with suppress(AetherError, KeyError):
            value = archive_store.read(place, name)
            if counts.get(name) or counts.get((value["grace"] or {}).get("file", "")):
                receipts += [step["id"].encode() for step in value["steps"]]
    return receipts


def _archive_steps(archived: dict[str, tuple[_File, bytes]]) -> Iterator[Step]:
    """Yield the steps that write the files of the archive: sealed again, and under the names of their new content."""
    for path, (file, data) in list(archived.items()):
        if not file.form.endswith(archive_store.PLAIN) or path.startswith(f"{archive_store.GRACE}/"):
            continue
        with suppress(AetherError, KeyError, TypeError):
            grace = archive_store.parsed(file.data, where=path)["grace"]
            value = files.parse_json(data, where=path)
            fuller, content = archived.get((grace or {}).get("file", ""), (None, b""))
            if fuller is not None and fuller.layers is None:
                fuller = None  # damaged: it is unchanged
            if data != file.data or (fuller is not None and content != fuller.data):
                value["metrics"].pop("sha256", None)
                if fuller is not None:
                    if fuller.form.endswith(archive_store.PLAIN):
                        content = archive_store.encoded(files.parse_json(content, where=fuller.path))
                    content = erasing.wrapped(content, (fuller.layers or ())[1:])
                    kind = archive_store.grace_kind(fuller.path)
                    value["grace"] = archive_store.grace_of(
                        value["id"], kind, grace["level"], content, until=grace["until"]
                    )
                    new = value["grace"]["file"]
                    yield Step(fuller.path, new, fuller.known, files.packed(content))
                    del archived[fuller.path]
                packed = path.endswith(archive_store.PACKED)
                body, name = archive_store.encoded(value), archive_store.name_of(value, packed=packed)
                yield Step(path, name, file.known, files.packed(body) if packed else body)
            del archived[path]
    for path, (file, data) in archived.items():  # damaged ones, and forms that no file names
        if data != file.data:
            yield Step(path, path, file.known, erasing.wrapped(data, file.layers or ()))


def _sealed_again(place: Path, steps: list[Step], replace: erasing.Rewrite) -> Iterator[Step]:
    """Yield the step that writes the record of seals for the new files; a damaged file stays damaged."""
    record, identity = seals.read(place), file_identity(place / seals.PATH)
    if record.state != "good" or identity is None:
        return
    for step in steps:
        if step.path in (*record.grown, *record.whole) and not seals.fault(place, record, step.path):
            if record.grown.pop(step.path, None):
                record.grown[step.to] = seals.Grown().after(step.data.splitlines(keepends=True))
            if record.whole.pop(step.path, ""):
                record.whole[step.to] = files.checksum(step.data)
    losses = erasing.map_strings(record.losses, replace)
    yield Step(seals.PATH, seals.PATH, identity, seals.encoded(record._replace(losses=losses)))


def _steps(place: Path, file: _File, data: bytes, replace: erasing.Rewrite) -> Iterator[Step]:
    """Yield the steps that write `data`, and rename a file whose name, or whose conversation's id, held the text."""
    to = replace(f"/{file.path}")[1:]
    conversation = erasing.conversation_of(file.path, file.data)
    renamed = conversation is not None and replace(conversation) != conversation
    if conversation is not None and renamed:
        to = seals.place(place, path_of(place, replace(conversation)))
    if data != file.data or to != file.path:
        name = file.path.removeprefix("data/").removesuffix(".json")
        if name in documents.NAMES:
            values = [documents.parse(content, where=name).value for content in (file.data, data)]
            faults = [len(check.findings(name, value)) for value in values if value is not None]
            if len(faults) != 2 or faults[0] < faults[1]:
                raise _in_the_way(f"the schema of {name}")
        yield Step(file.path, to, file.known, erasing.wrapped(data, file.layers or ()))
    if renamed:  # its lock keeps the directory, and with it the name
        yield Step(f"{file.path.rpartition('/')[0]}/{LOCK}", "", (0, 0, 0), b"")
