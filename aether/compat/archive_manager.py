"""Mai's memory manager: conversations that are compressed, archived and kept by importance.

`MemoryManager`, `CompressionEngine`, `ArchivalManager` and `RetentionPolicy` have the names, signatures and results of
the original; each method is a call of `api.archive` or of the pure `archive`. A path is that of a home, which is made if it
is missing; `":memory:"` is a home that is removed with its manager. Conversations of a manager are live ones of the home,
with `about` beside the settings of the context, until `aether archive age` or `trigger_automatic_compression` archives them.
docs/archive.md lists the differences from the original. No model is ever loaded: passing a `model_name` warns.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

from aether import clock
from aether.api import archive
from aether.api.admin import init
from aether.api.home import Home
from aether.compat.deprecations import warn_without_effect
from aether.conversation import archive_levels as forms
from aether.conversation import archive_retention as retention
from aether.conversation.archived import Conversation, Level, given_conversation, level, read_conversation
from aether.errors import (
    AetherError,
    Conflict,
    InvalidInput,
    NotFound,
    UnsafePath,
    public_methods,
    require_one_of,
    shown,
)
from aether.store import archive_store, conversations, history
from aether.types import Finding, JsonObject

__all__ = [
    "ArchivalManager", "CompressedConversation", "CompressionEngine", "CompressionLevel", "CompressionMetrics",
    "MemoryManager", "RetentionPolicy",
]  # fmt: skip

ROLES = ("user", "assistant", "system", "tool_call", "tool_result")
NOT_INITIALIZED = "Memory manager not initialized. Call initialize() first."
ONLY_METADATA = "Metadata only - full content compressed due to age"
METHOD = "hybrid_extractive_abstractive"
WINDOW = 4096
INFO = "_archival_info"
FIELDS = ("id", "title", "created_at", "updated_at", "total_messages", "session_id")
BYTES_PER_MB = 1024 * 1024
# Scores from which a conversation is of high and of medium importance, in statistics.
HIGH, MEDIUM = 0.7, 0.4


class CompressionLevel(Enum):
    """How much of a conversation is kept."""

    FULL = "full"
    KEY_POINTS = "key_points"
    SUMMARY = "summary"
    METADATA = "metadata"


@dataclass
class CompressionMetrics:
    """Measures of a compression."""

    original_length: int
    """Characters of the conversation as JSON."""
    compressed_length: int
    compression_ratio: float
    """Compressed to original."""
    information_retention_score: float
    """The share of its identifiers, numbers, decisions and questions that the compressed form has."""
    quality_score: float
    """That share, reduced by the excess of the form over the size of its level; 0 if it is empty."""


@dataclass
class CompressedConversation:
    """A conversation at one level."""

    original_id: str
    compression_level: CompressionLevel
    compressed_at: datetime
    original_created_at: datetime | None
    content: str | JsonObject
    metadata: JsonObject
    metrics: CompressionMetrics


class Results(list[Any]):
    """The results of a batch, with a finding in `failed` for each conversation that failed."""

    def __init__(self, results: Iterable[Any] = (), failed: Iterable[Finding] = ()) -> None:
        super().__init__(results)
        self.failed = list(failed)


@public_methods
class CompressionEngine:
    """Conversations compressed by age, by extraction: whole sentences of the conversation, in its order.

    `boundaries` are a preset (`research` is 7/30/90 days), or days by level; by default 30/90/365.
    """

    def __init__(
        self, model_name: str = "", *, boundaries: Mapping[str, int] | str | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:  # fmt: skip
        if model_name:
            warn_without_effect("CompressionEngine", "model_name", "sentences are extracted without a model.")
        self.model_name = model_name
        self.boundaries = retention.boundaries(boundaries)
        self.now = now or clock.now

    def get_compression_level(self, age_days: int) -> CompressionLevel:
        """Return the level of an age; a negative one, of a clock set back, is full."""
        return CompressionLevel(retention.level_of_age(age_days, self.boundaries))

    def extract_key_points(self, conversation: JsonObject) -> str:
        """Return about 70 % of the text, in its order; all of it if that is three sentences or fewer."""
        return _text(forms.form(_read(conversation), "key_points"))

    def generate_summary(self, conversation: JsonObject, target_ratio: float = 0.4) -> str:
        """Return at most `target_ratio`, above 0 and at most 1, of the text."""
        return _text(forms.form(_read(conversation), "summary", share=target_ratio))

    def extract_metadata_only(self, conversation: JsonObject) -> JsonObject:
        """Return the nine keys that describe a conversation."""
        return forms.metadata(_read(conversation))

    def compress_by_age(self, conversation: JsonObject) -> CompressedConversation:
        """Return a conversation at the level of its age; it shares nothing with the given one."""
        days = retention.age(_read(conversation), self.now()).days
        return self.compress(conversation, retention.level_of_age(days, self.boundaries))

    def compress(self, conversation: JsonObject, to: CompressionLevel | str) -> CompressedConversation:
        """Return a conversation at the named level."""
        read, wanted, now = _read(conversation), level(CompressionLevel(to).value), self.now()
        form = forms.form(read, wanted)
        content: str | JsonObject = _text(form)
        if wanted == "full":
            content = deepcopy(conversation)
        elif wanted == "metadata":
            content = {**form["metadata"], **({"kept": form["kept"]} if "kept" in form else {})}
        created = read["created_at"]
        metadata = {
            "compression_method": METHOD, "age_days": retention.age(read, now).days, "original_tokens": read["total_tokens"],
        }  # fmt: skip
        return CompressedConversation(
            read["id"], CompressionLevel(wanted), now, clock.parse(created) if created else None, content, metadata,
            _metrics(read, wanted, form, conversation, content),
        )  # fmt: skip

    def decompress(self, compressed: CompressedConversation) -> JsonObject:
        """Return the conversation if it is full, else its description, with its text as `summary`."""
        content, created = compressed.content, compressed.original_created_at
        if compressed.compression_level is CompressionLevel.FULL and isinstance(content, dict):
            return deepcopy(content)
        names = ("compression_ratio", "information_retention_score", "quality_score")
        return {
            "id": compressed.original_id, "compression_level": compressed.compression_level.value,
            "compressed_at": clock.stamp(compressed.compressed_at),
            "original_created_at": clock.stamp(created) if created else None,
            "metadata": deepcopy(content) if isinstance(content, dict) else deepcopy(compressed.metadata),
            "metrics": {name: getattr(compressed.metrics, name) for name in names},
            "summary": content if isinstance(content, str) else ONLY_METADATA,
        }  # fmt: skip

    def batch_compress_conversations(
        self, conversations: Iterable[JsonObject]
    ) -> list[CompressedConversation]:
        """Return each conversation by its age; others are findings in `failed` of the list."""
        results = Results()
        for nth, conversation in enumerate(conversations):
            try:
                results.append(self.compress_by_age(conversation))
            except AetherError as reason:
                where = reason.where or f"conversations[{nth}]"
                results.failed.append(Finding("error", "no-conversation", where, reason.what, reason.fix))
        return results


def _read(conversation: JsonObject) -> Conversation:
    return read_conversation(without_info(conversation))[0]


def without_info(conversation: JsonObject) -> JsonObject:
    """Return a conversation without the field that a restore added, which is not archived again."""
    is_object = isinstance(conversation, dict)
    return {key: field for key, field in conversation.items() if key != INFO} if is_object else conversation


def _text(content: JsonObject) -> str:
    texts = [str(message["content"]) for message in content.get("messages", ())]
    return "\n".join(filter(None, [*texts, content.get("summary", ""), *content.get("kept", ())]))


def _metrics(
    read: Conversation, wanted: Level, form: JsonObject, original: JsonObject, content: str | JsonObject
) -> CompressionMetrics:
    before, after = (
        len(value) if isinstance(value, str) else len(json.dumps(value, ensure_ascii=False, default=str))
        for value in (original, content)
    )
    measures = forms.measure(read, form)
    shares = list(measures["retention"].values())
    kept = sum(shares) / len(shares)
    excess = measures["ratio"] / forms.SHARES.get(wanted, 1.0)
    quality = kept / max(1.0, excess) if content and measures["ratio"] else 0.0
    return CompressionMetrics(before, after, after / before, round(kept, 4), round(quality, 4))


@public_methods
class RetentionPolicy:
    """The importance of conversations, and the level that it keeps.

    With a `sqlite_manager` or a `home`, their policy, marks and recommendations are those of the home, and a change of the
    policy is journaled there. Without one it scores given conversations.
    """

    def __init__(
        self, sqlite_manager: MemoryManager | None = None, *, home: Home = None, now: Callable[[], datetime] | None = None,
    ) -> None:  # fmt: skip
        self._manager, self._home, self._own = sqlite_manager, home, retention.policy()
        self.now = now or clock.now

    @property
    def home(self) -> Home:
        """Return the home of the policy; None without one."""
        return self._manager.home if self._manager is not None else self._home

    @property
    def settings(self) -> retention.Policy:
        """Return the present policy."""
        home = self.home
        return self._own if home is None else retention.policy(archive.retention_policy(home=home))

    def calculate_importance_score(self, conversation: JsonObject) -> float:
        """Return the importance of a conversation, 0 to 1; 0 without messages."""
        return retention.score(_read(conversation), self.settings).total

    def should_retain_full(self, conversation: JsonObject, importance_score: float | None = None) -> bool:
        """Return whether its importance or its mark keeps a conversation full."""
        return not self.should_retain_compressed(conversation, importance_score)[0]

    def should_retain_compressed(
        self, conversation: JsonObject, importance_score: float | None = None
    ) -> tuple[bool, str]:
        """Return whether a conversation may lose detail, and the least level that its importance keeps."""
        read, policy = _read(conversation), self.settings
        score = retention.score(read, policy)
        if score.parts.get("user_marked"):
            return False, "full"
        if importance_score is not None:
            score = score._replace(total=importance_score)
        least = retention.level_of_score(score, retention.age(read, self.now()).days, policy)[0]
        return least != "full", least

    def update_retention_policy(self, policy_settings: Mapping[str, Any]) -> JsonObject:
        """Change thresholds, the multiplier or weights, and return the whole policy.

        Raises:
            InvalidInput: a key is unknown, or a value out of range; nothing was changed.
        """
        if self.home is not None:
            return archive.update_retention_policy(policy_settings, home=self.home)
        self._own = retention.policy(policy_settings, of=self._own)
        return {**self._own._asdict(), "weights": dict(self._own.weights)}

    def mark_conversation_important(self, conversation_id: str, important: bool = True) -> bool:
        """Mark a conversation so that it stays full, or remove the mark; False if no conversation has that id."""
        return archive.mark_conversation_important(conversation_id, important, home=self.home)

    def get_retention_recommendations(self, limit: int = 100) -> list[JsonObject]:
        """Return the recommendation for each conversation, the most important first."""
        return archive.retention_recommendations(limit=limit, now=self.now(), home=self.home)

    def get_retention_statistics(self) -> JsonObject:
        """Return the number of important conversations, and of each recommended level."""
        entries = archive.retention_recommendations(limit=None, now=self.now(), home=self.home)
        scores = [entry["importance_score"] for entry in entries]
        high = sum(score >= HIGH for score in scores)
        low = sum(score < MEDIUM for score in scores)
        levels = [entry["recommended_level"] for entry in entries]
        return {
            "total_conversations": len(entries),
            "important_marked": sum(bool(entry["user_marked_important"]) for entry in entries),
            "importance_distribution": {"high": high, "medium": len(entries) - high - low, "low": low},
            "average_importance": sum(scores) / len(scores) if scores else 0.0,
            "compression_recommendations": {member.value: levels.count(member.value) for member in CompressionLevel},
        }  # fmt: skip


@public_methods
class ArchivalManager:
    """Conversations as readable JSON files, in `archive/YYYY/MM/` of the home that `archival_root` names."""

    def __init__(
        self, archival_root: str | PathLike[str] = "archive", compression_engine: CompressionEngine | None = None,
    ) -> None:  # fmt: skip
        self.home = init(Path(archival_root).absolute())
        self.compression_engine = compression_engine or CompressionEngine()

    @property
    def archive_directory(self) -> Path:
        """Return the directory of the years."""
        return self.home / "archive"

    def archive_conversation(
        self, conversation: JsonObject, compressed: CompressedConversation | None = None
    ) -> str:
        """Store a conversation and return the path of its file.

        It is stored whole: its age and its importance decide when it loses detail, whatever level `compressed` has.

        Raises:
            InvalidInput: it is not a conversation.
        """
        if compressed is not None:
            warn_without_effect("ArchivalManager", "compressed", "age and importance decide the level.")
        results = self.archive_conversations_batch([conversation])
        for failure in results.failed if not results else ():
            raise InvalidInput(failure.message, fix=failure.fix, where=failure.where)
        return str(results[0])

    def archive_conversations_batch(
        self, conversations: Iterable[JsonObject], compress: bool = True
    ) -> Results:
        """Store conversations and return the paths of their files; `failed` of the list names the others.

        With `compress`, conversations of this archive that are old enough lose detail at once.
        """
        batch = archive.archive_conversations(map(without_info, conversations), home=self.home)
        failed = [*batch.failed, *batch.findings]
        if compress:
            failed += archive.age_archive(now=self.compression_engine.now(), home=self.home).failed
        return Results((str(self.home / entry.path) for entry in batch.added), failed)

    archive_conversations = archive_conversations_batch

    def restore_conversation(self, archive_path: str | PathLike[str]) -> JsonObject | None:
        """Return the conversation in a file of this archive, with `_archival_info`; None if there is no such file.

        Within its grace it is exactly what was stored; afterwards its fullest form.

        Raises:
            UnsafePath: the path leads out of the archive.
            CorruptDocument, InvalidDocument: the file is damaged, or a newer aether wrote it.
        """
        name = self._name(archive_path)
        if name is None:
            return None
        archived = archive_store.read(self.home, name)
        restored = archive.restore_conversation(archived["id"], home=self.home)
        info = _listed(archived, str(self.home / name))
        info |= {"compression_level": restored.level, "exact": restored.exact}
        names = ("archived_at", "archive_path", "compression_ratio", "version", "compression_level", "exact")
        return {**restored.conversation, INFO: {name: info[name] for name in names}}

    def list_archived(
        self, year: int | None = None, month: int | None = None, include_content: bool = False
    ) -> list[JsonObject]:
        """Return the archived conversations of a year or a month, the last archived first.

        Raises:
            InvalidInput: a month without its year, or an impossible one.
        """
        if month is not None and (year is None or month not in range(1, 13)):
            what = f"month {shown(month)} has no year." if year is None else f"{shown(month)} is not a month."
            raise InvalidInput(what, fix="Give the year, and a month from 1 to 12.", where="month")
        start = "" if year is None else f"{year:04d}" if month is None else f"{year:04d}-{month:02d}"
        entries = []
        for entry in archive.list_archived(home=self.home):
            if entry.created_at.startswith(start):
                archived = archive.read_archived(entry.id, home=self.home)
                content = {"content": archived["content"]} if include_content else {}
                entries.append(_listed(archived, str(self.home / entry.path)) | content)
        return sorted(entries, key=lambda entry: str(entry["archived_at"]), reverse=True)

    def delete_archive(self, archive_path: str | PathLike[str]) -> bool:
        """Remove an archived conversation, and return whether it existed; its files are kept in `quarantine/`.

        Raises:
            UnsafePath: the path leads out of the archive.
        """
        name = self._name(archive_path)
        ids = {entry.path: entry.id for entry in archive.list_archived(home=self.home)}
        return name in ids and archive.delete_archived(ids[name], home=self.home)

    def get_archive_stats(self) -> JsonObject:
        """Return the numbers of this archive: conversations, bytes, levels, years."""
        stats = archive.archive_stats(home=self.home)
        years = {int(entry.created_at[:4]) for entry in archive.list_archived(home=self.home)}
        return {
            "total_archived_conversations": stats["conversations"], "total_archive_size_bytes": stats["bytes"],
            "total_archive_size_mb": stats["bytes"] / BYTES_PER_MB, "compression_levels": dict(stats["levels"]),
            "years_with_archives": sorted(years), "archive_directory": str(self.archive_directory),
        }  # fmt: skip

    def _name(self, path: str | PathLike[str]) -> str | None:
        """Return the path of a file of the archive, relative to the home; None if it does not exist."""
        root, file = self.archive_directory.resolve(), Path(path).resolve()
        if not file.is_relative_to(root):
            what = f"{shown(str(path))} is outside the archive."
            raise UnsafePath(what, fix="Name a file of list_archived().", where=str(root))
        return file.relative_to(root.parent).as_posix() if file.is_file() else None


def _listed(archived: JsonObject, path: str) -> JsonObject:
    return {
        **{key: archived[key] for key in ("id", "title", "created_at", "archived_at", "version")},
        "archive_path": path, "compression_level": archived["level"], "compression_ratio": archived["metrics"].get("ratio", 1.0),
    }  # fmt: skip


@public_methods
class MemoryManager:
    """Conversations of one home, whole while they are young or important, and smaller later.

        manager = MemoryManager(":memory:")
        manager.initialize()
        manager.create_conversation("talk", title="Webhooks")
        manager.add_message("m1", "talk", "user", "Why does it fail?")

    `db_path` is the home, which `initialize` makes; that of `":memory:"` is removed with its manager. Methods that change a
    conversation raise `NotFound` if no conversation has that id, and `Conflict` if it is archived.
    """

    def __init__(
        self, db_path: str | PathLike[str] = "memory.db", *, now: Callable[[], datetime] | None = None, backend: str | None = None,
    ) -> None:  # fmt: skip
        self.db_path, self.now, self.backend = str(db_path), now or clock.now, backend
        self._place: Path | None = None
        self._end: Callable[[], object] = dict

    def initialize(self) -> None:
        """Make the home, unless it exists.

        Raises:
            InvalidInput: the path is that of a file, such as a database of the original.
        """
        if self._place is not None:
            return
        if self.db_path == ":memory:":
            scratch = tempfile.mkdtemp(prefix="aether-memory-")
            self._end = weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
            self._place = init(Path(scratch) / ".aether")
        elif Path(self.db_path).is_file():
            raise InvalidInput("it is a file, and a home is a directory.", fix="Name another path.", where=self.db_path)  # fmt: skip
        else:
            self._place = init(Path(self.db_path).absolute())

    def close(self) -> None:
        """Forget the home; that of `":memory:"` is removed."""
        self._end()
        self._place = None

    @property
    def home(self) -> Path:
        """Return the home.

        Raises:
            RuntimeError: `initialize` was not called.
        """
        if self._place is None:
            raise RuntimeError(NOT_INITIALIZED)
        return self._place

    @property
    def compression_engine(self) -> CompressionEngine:
        """Return the engine of this manager's clock."""
        return CompressionEngine(now=self.now)

    @property
    def archival_manager(self) -> ArchivalManager:
        """Return the archive of this manager."""
        return ArchivalManager(self.home, self.compression_engine)

    @property
    def retention_policy(self) -> RetentionPolicy:
        """Return the policy of this manager."""
        return RetentionPolicy(self, now=self.now)

    # Conversations and messages

    def create_conversation(
        self, conversation_id: str, title: str | None = None, session_id: str | None = None,
        metadata: JsonObject | None = None, *, created_at: datetime | str | None = None,
    ) -> None:  # fmt: skip
        """Add a conversation without messages; its title and session are its id unless they are given.

        Raises:
            InvalidInput: there is one of that id, or the time is invalid.
        """
        if self.get_conversation(conversation_id, include_messages=False) is not None:
            raise InvalidInput(f"{shown(conversation_id)} exists.", fix="Use another id.", where="conversation_id")  # fmt: skip
        at = self._time(created_at)
        about = {
            "title": title or conversation_id, "session_id": session_id or conversation_id, "created_at": at,
            "metadata": dict(metadata or {}),
        }  # fmt: skip
        self._note(conversation_id, {"window": WINDOW, "about": about}, at)

    def add_message(  # noqa: PLR0917 - the original's signature
        self, message_id: str, conversation_id: str, role: str, content: str, token_count: int = 0,
        importance_score: float = 0.5, metadata: JsonObject | None = None, embedding_id: str | None = None,
        *, timestamp: datetime | str | None = None,
    ) -> None:  # fmt: skip
        """Add a message to a conversation, at the given time or now.

        Raises:
            InvalidInput: the role, the score or the time is out of range.
        """
        require_one_of(role, ROLES, "a role", where="role")
        _require_score(importance_score)
        self._live(conversation_id)
        at = self._time(timestamp)
        message = {
            "id": message_id, "conversation_id": conversation_id, "role": role, "content": content, "timestamp": at,
            "token_count": token_count, "importance_score": importance_score, "metadata": dict(metadata or {}),
            "embedding_id": embedding_id,
        }  # fmt: skip
        conversations.extend(self.home, conversation_id, [message], now=clock.parse(at))

    def update_importance_score(self, conversation_id: str, message_id: str, importance_score: float) -> bool:
        """Set the importance of a message, and return whether there is such a message.

        Raises:
            InvalidInput: the score is out of range.
        """
        _require_score(importance_score)
        live = _of_log(self._live(conversation_id))
        exists = any(message["id"] == message_id for message in live["messages"])
        if exists:
            patch = {"about": {"importance": {message_id: importance_score}}}
            self._note(conversation_id, patch, live["updated_at"])
        return exists

    def get_conversation(self, conversation_id: str, include_messages: bool = True) -> JsonObject | None:
        """Return a conversation in its present form, None if no conversation has that id; a smaller one says its level."""
        try:
            conversation = _of_archived(archive.read_archived(conversation_id, home=self.home))
        except NotFound:
            log = conversations.load(self.home, conversation_id)
            if not log.settings:
                return None
            conversation = _of_log(log)
        if not include_messages:
            conversation.pop("messages", None)
        return conversation

    def get_recent_conversations(self, limit: int = 10, offset: int = 0) -> list[JsonObject]:
        """Return conversations without their messages, the last used first."""
        every = sorted(self._all(), key=lambda entry: (str(entry["updated_at"]), str(entry["id"])), reverse=True)  # fmt: skip
        return every[offset : offset + limit]

    def get_conversations_by_date_range(
        self, start_date: datetime | date | str, end_date: datetime | date | str
    ) -> list[JsonObject]:
        """Return the conversations that were created between two times or on two days, both included."""
        first, last = self._time(start_date), self._time(end_date, end=True)
        return [entry for entry in self._all() if first <= self._time(entry["created_at"]) <= last]

    def get_conversation_messages(
        self, conversation_id: str, limit: int | None = None, offset: int = 0
    ) -> list[JsonObject]:
        """Return the messages of a conversation, the oldest first; none if there is no such conversation."""
        conversation = self.get_conversation(conversation_id) or {}
        return list(conversation.get("messages", ()))[offset:][:limit]

    def get_messages_by_role(
        self, conversation_id: str, role: str, limit: int | None = None
    ) -> list[JsonObject]:
        """Return the messages of one role, the oldest first."""
        messages = self.get_conversation_messages(conversation_id)
        return [message for message in messages if message.get("role") == role][:limit]

    def get_recent_messages(self, conversation_id: str, limit: int = 10) -> list[JsonObject]:
        """Return the last messages of a conversation, the newest first."""
        return self.get_conversation_messages(conversation_id)[::-1][:limit]

    def get_conversation_metadata(self, conversation_ids: Sequence[str]) -> dict[str, JsonObject]:
        """Return the description of each conversation, by its id; unknown ids are left out."""
        described = {}
        for id in conversation_ids:  # noqa: A001
            if (entry := self.get_conversation(id)) is not None:
                own = {} if "compression_level" in entry else forms.metadata(_read(entry))
                described[id] = {**own, "metadata": entry["metadata"]} if own else entry["metadata"]
        return described

    def update_conversation_metadata(self, conversation_id: str, metadata: JsonObject) -> None:
        """Add to the metadata of a conversation; None removes a key."""
        at = _of_log(self._live(conversation_id))["updated_at"]
        self._note(conversation_id, {"about": {"metadata": dict(metadata)}}, at)

    def delete_conversation(self, conversation_id: str) -> bool:
        """Remove a conversation, and return whether it existed; its files are kept in `quarantine/`."""
        if archive.delete_archived(conversation_id, home=self.home):
            return True
        log = conversations.load(self.home, conversation_id)
        if not log.settings:
            return False
        aside = conversations.set_aside(self.home, conversation_id, lines=log.lines, now=self.now())
        return aside is not None

    def get_database_stats(self) -> JsonObject:
        """Return the numbers of conversations and messages, and the bytes on disk."""
        every = self._all()
        live = sum(stored.bytes for stored in conversations.stored_conversations(self.home))
        size = live + int(archive.archive_stats(home=self.home)["bytes"])
        return {
            "total_conversations": len(every), "total_messages": sum(int(entry["total_messages"]) for entry in every),
            "database_size_bytes": size, "database_size_mb": size / BYTES_PER_MB,
        }  # fmt: skip

    # Compression and the archive

    def compress_conversation(self, conversation_id: str) -> CompressedConversation | None:
        """Return a conversation at the level of its age and its importance; nothing is changed."""
        conversation = self.get_conversation(conversation_id)
        if conversation is None:
            return None
        decision = archive.explain_retention(conversation_id, now=self.now(), home=self.home)
        return self.compression_engine.compress(conversation, decision["decided_level"])

    def archive_conversation(self, conversation_id: str) -> str | None:
        """Age one conversation by the rules, and return its file; None if no conversation has that id.

        The file of one that is still live is its log.

        Raises:
            Conflict: it could not be aged, and is unchanged.
        """
        ageing = archive.age_archive(now=self.now(), backend=self.backend, ids=[conversation_id], home=self.home)  # fmt: skip
        for failure in ageing.failed:
            raise Conflict(failure.message, fix=failure.fix, where=failure.where)
        paths = {entry.id: entry.path for entry in archive.list_archived(home=self.home)}
        if conversation_id in paths:
            return str(self.home / paths[conversation_id])
        log = conversations.load(self.home, conversation_id)
        return str(log.path) if log.settings else None

    def restore_conversation(self, conversation_id: str) -> JsonObject | None:
        """Restore a conversation in its fullest form, and return it; None if it is not archived.

        Within its grace one of this manager is live again, exactly as it was.
        """
        try:
            restored = archive.restore_conversation(conversation_id, home=self.home)
        except NotFound:
            return None
        return self.get_conversation(conversation_id) if restored.path else restored.conversation

    def mark_conversation_important(self, conversation_id: str, important: bool = True) -> bool:
        """Mark a conversation so that it stays full, or remove the mark; False if no conversation has that id."""
        return self.retention_policy.mark_conversation_important(conversation_id, important)

    def get_retention_recommendations(self, limit: int = 100) -> list[JsonObject]:
        """Return the recommendation for each conversation, the most important first."""
        return self.retention_policy.get_retention_recommendations(limit)

    def trigger_automatic_compression(self, days_threshold: int = 30) -> JsonObject:
        """Age every conversation of at least that age by the rules, and return a report.

        Saved space is measured on disk: it may be less than 0 while fuller forms are kept (`archive.grace_days`).
        """
        now = self.now()
        plan = archive.age_archive(now=now, dry_run=True, home=self.home)
        ready = [step.id for step in plan.plan if step.days >= days_threshold]
        ageing = archive.age_archive(now=now, backend=self.backend, ids=ready, home=self.home)
        steps = [receipt for receipt in ageing.done if receipt["from"] != receipt["to"]]
        failures = dict.fromkeys([*plan.failed, *ageing.failed])
        return {
            "total_processed": len(ready), "compressed_count": len(steps),
            "archived_count": sum(receipt["from"] == "full" for receipt in steps),
            "total_space_saved_bytes": ageing.saved_bytes, "total_space_saved_mb": ageing.saved_bytes / BYTES_PER_MB,
            "errors": [f"{failure.where}: {failure.message}" for failure in failures], "threshold_days": days_threshold,
        }  # fmt: skip

    def get_archival_stats(self) -> JsonObject:
        """Return the numbers of the archive, of retention and of the conversations, and the ratio of kept to original text."""
        entries = archive.list_archived(home=self.home)
        metrics = [archive.read_archived(entry.id, home=self.home)["metrics"] for entry in entries]
        kept, whole = (sum(each.get(key, 0) for each in metrics) for key in ("chars", "text_chars"))
        return {
            "archive": self.archival_manager.get_archive_stats(),
            "retention": self.retention_policy.get_retention_statistics(), "database": self.get_database_stats(),
            "compression_ratio": kept / whole if whole else 1.0,
        }  # fmt: skip

    def _time(self, given: datetime | date | str | None, *, end: bool = False) -> str:
        """Return a time as it is stored; of a day its first moment, or its last one at the `end` of a range."""
        text = (given or self.now()).isoformat() if not isinstance(given, str) else given
        if end and len(text) == len("2026-01-01"):
            text = datetime.combine(date.fromisoformat(text), time.max).isoformat()
        return clock.stamp(clock.parse(text))

    def _all(self) -> list[JsonObject]:
        stored = conversations.stored_conversations(self.home)
        logs = [conversations.load(self.home, entry.id) for entry in stored]
        archived = [archive.read_archived(entry.id, home=self.home) for entry in archive.list_archived(home=self.home)]  # fmt: skip
        every = [*(_of_log(log) for log in logs if log.settings), *map(_of_archived, archived)]
        return [{key: field for key, field in entry.items() if key != "messages"} for entry in every]

    def _live(self, conversation_id: str) -> history.Log:
        """Return the log of a conversation that is not archived."""
        log = conversations.load(self.home, conversation_id)
        if not log.settings:
            raise NotFound(f"there is no conversation {shown(conversation_id)}.", fix="Create it first.")
        return log

    def _note(self, conversation_id: str, patch: JsonObject, at: str) -> None:
        """Change the notes of a live conversation, without making it younger."""
        conversations.set_settings(self.home, conversation_id, patch, now=clock.parse(at))


def _require_score(score: float) -> None:
    if not 0 <= score <= 1:
        raise InvalidInput(f"{score} is not a score.", fix="Give one from 0 to 1.", where="importance_score")


def _of_log(log: history.Log) -> JsonObject:
    """Return a live conversation in the shape of Mai's memory manager."""
    about = log.settings.get("about", {})
    importance = about.get("importance", {})
    messages = history.history(log)
    for message in messages:
        if message.get("id") in importance:
            message["importance_score"] = importance[message["id"]]
    times = [str(message["timestamp"]) for message in messages if message.get("timestamp")]
    created = about.get("created_at") or min(times, default="")
    return {
        "id": log.id, "title": about.get("title") or log.id, "created_at": created,
        "updated_at": max([created, *times]), "session_id": about.get("session_id") or log.id,
        "total_messages": len(messages), "total_tokens": sum(int(message.get("token_count") or 0) for message in messages),
        "context_window_size": log.settings["window"], "model_history": [], "metadata": dict(about.get("metadata", {})),
        "messages": messages,
    }  # fmt: skip


def _of_archived(archived: JsonObject) -> JsonObject:
    """Return an archived conversation in the shape of Mai's memory manager, as far as its level has it."""
    content, about = archived["content"], archived["metadata"]
    tokens = {"total_tokens": about["summary_stats"]["total_tokens"]}
    if archived["level"] == "full":
        return {**{key: about[key] for key in FIELDS}, **tokens, **given_conversation(content)}
    return {
        **{key: field for key, field in about.items() if key != "summary_stats"}, **tokens, "metadata": about,
        "messages": deepcopy(content.get("messages", [])), "summary": content.get("summary", ""),
        "compression_level": archived["level"],
    }  # fmt: skip
