"""Mai's memory manager: conversations that are compressed, archived and kept by importance.

`MemoryManager`, `CompressionEngine`, `ArchivalManager` and `RetentionPolicy` have the names, signatures and results of
the original; each method is a call of `api.archive` or of the pure `archive`. A path is that of a home, which is made if it
is missing; `":memory:"` is a home that goes with its manager. Conversations of a manager are live ones of the home, in
which `about` is noted beside the settings of the context, until `aether archive age` or `trigger_automatic_compression`
archives them. docs/archive.md says what differs from the original, and why.
No model is ever loaded: passing a `model_name` warns.
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
from aether.archive import forms, retention
from aether.archive.shapes import Conversation, Level, given_conversation, level, read_conversation
from aether.compat.deprecations import warn_without_effect
from aether.errors import AetherError, Conflict, InvalidInput, NotFound, UnsafePath, public_methods, shown
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
# What every conversation has, whoever gave it.
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
    """What a compression came to, all of it measured."""

    original_length: int
    """Characters of the conversation as JSON."""
    compressed_length: int
    compression_ratio: float
    """Compressed to original."""
    information_retention_score: float
    """The share of its identifiers, numbers, decisions and questions that the compressed form has."""
    quality_score: float
    """That share, and less of it the more the form exceeds the size of its level; 0 if it is empty."""


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
    """What a batch made, with a finding in `failed` for each conversation that it could not do."""

    def __init__(self, made: Iterable[Any] = (), failed: Iterable[Finding] = ()) -> None:
        super().__init__(made)
        self.failed = list(failed)


@public_methods
class CompressionEngine:
    """Conversations compressed by age, by extraction: whole sentences of the conversation, in its order.

    `boundaries` are a preset (`research` is 7/30/90 days), or days by level; by default 30/90/365.

    Raises:
        InvalidInput: the boundaries are no boundaries.
    """

    def __init__(
        self, model_name: str = "", *, boundaries: Mapping[str, int] | str | None = None,
        now: Callable[[], datetime] = clock.now,
    ) -> None:  # fmt: skip
        if model_name:
            warn_without_effect("CompressionEngine", "model_name", "sentences are extracted without a model.")
        self.model_name = model_name
        self.boundaries = retention.boundaries(boundaries)
        self.now = now

    def get_compression_level(self, age_days: int) -> CompressionLevel:
        """Return the level that an age asks for; a negative one is that of a clock set back, and full."""
        return CompressionLevel(retention.level_of_age(age_days, self.boundaries))

    def extract_key_points(self, conversation: JsonObject) -> str:
        """Return about 70 % of what was said, in its order; all of it, if that is three sentences or fewer."""
        return _text(forms.form(_read(conversation), "key_points"))

    def generate_summary(self, conversation: JsonObject, target_ratio: float = 0.4) -> str:
        """Return at most `target_ratio` of what was said.

        Raises:
            InvalidInput: the ratio is not above 0 and at most 1.
        """
        return _text(forms.form(_read(conversation), "summary", share=target_ratio))

    def extract_metadata_only(self, conversation: JsonObject) -> JsonObject:
        """Return the nine keys that describe a conversation."""
        return forms.metadata(_read(conversation))

    def compress_by_age(self, conversation: JsonObject) -> CompressedConversation:
        """Return a conversation at the level that its age asks for; it shares nothing with the one given."""
        read = _read(conversation)
        return self.compress(
            conversation, retention.level_of_age(retention.age(read, self.now()).days, self.boundaries)
        )

    def compress(self, conversation: JsonObject, to: CompressionLevel | str) -> CompressedConversation:
        """Return a conversation at the named level."""
        read, wanted, now = _read(conversation), level(CompressionLevel(to).value), self.now()
        made = forms.form(read, wanted)
        content: str | JsonObject = deepcopy(conversation) if wanted == "full" else _content(made)
        created = read["created_at"]
        metadata = {
            "compression_method": METHOD, "age_days": retention.age(read, now).days, "original_tokens": read["total_tokens"],
        }  # fmt: skip
        return CompressedConversation(
            read["id"], CompressionLevel(wanted), now, clock.parse(created) if created else None, content, metadata,
            _metrics(read, wanted, made, conversation, content),
        )  # fmt: skip

    def decompress(self, compressed: CompressedConversation) -> JsonObject:
        """Return the conversation if it is full, else what is known of it, with its text as `summary`."""
        if compressed.compression_level is CompressionLevel.FULL and isinstance(compressed.content, dict):
            return deepcopy(compressed.content)
        content, created = compressed.content, compressed.original_created_at
        return {
            "id": compressed.original_id, "compression_level": compressed.compression_level.value,
            "compressed_at": clock.stamp(compressed.compressed_at),
            "original_created_at": clock.stamp(created) if created else None,
            "metadata": deepcopy(content) if isinstance(content, dict) else deepcopy(compressed.metadata),
            "metrics": {
                name: getattr(compressed.metrics, name)
                for name in ("compression_ratio", "information_retention_score", "quality_score")
            },
            "summary": content if isinstance(content, str) else ONLY_METADATA,
        }  # fmt: skip

    def batch_compress_conversations(
        self, conversations: Iterable[JsonObject]
    ) -> list[CompressedConversation]:
        """Return each conversation by its age; what is no conversation is a finding in `failed` of the list."""
        done = Results()
        for nth, conversation in enumerate(conversations):
            try:
                done.append(self.compress_by_age(conversation))
            except AetherError as reason:
                where = reason.where or f"conversations[{nth}]"
                done.failed.append(Finding("error", "no-conversation", where, reason.what, reason.fix))
        return done


def _read(conversation: JsonObject) -> Conversation:
    return read_conversation(without_info(conversation))[0]


def without_info(conversation: JsonObject) -> JsonObject:
    """Return a conversation without what a restore added: it is no part of it when it is archived again."""
    if not isinstance(conversation, dict) or INFO not in conversation:
        return conversation
    return {key: value for key, value in conversation.items() if key != INFO}


def _text(content: JsonObject) -> str:
    said = [str(one["content"]) for one in content.get("messages", ())]
    return "\n".join(filter(None, [*said, content.get("summary", ""), *content.get("kept", ())]))


def _content(made: JsonObject) -> str | JsonObject:
    if "metadata" not in made:
        return _text(made)
    return {**made["metadata"], **({"kept": made["kept"]} if "kept" in made else {})}


def _metrics(
    read: Conversation, wanted: Level, made: JsonObject, original: JsonObject, content: str | JsonObject
) -> CompressionMetrics:
    before, after = _chars(original), _chars(content)
    measured = forms.measure(read, made)
    shares = list(measured["retention"].values())
    kept = sum(shares) / len(shares)
    most = forms.SHARES.get(wanted, 1.0)
    within = min(1.0, most / measured["ratio"]) if measured["ratio"] else 0.0
    quality = kept * within if content else 0.0
    return CompressionMetrics(before, after, after / before, round(kept, 4), round(quality, 4))


def _chars(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value, ensure_ascii=False, default=str))


@public_methods
class RetentionPolicy:
    """How important conversations are, and what that keeps.

    With the `sqlite_manager` or the `home` of conversations their policy, marks and recommendations are those of the
    home, and a change of the policy is journaled there. Without one it scores conversations that are given.
    """

    def __init__(
        self,
        sqlite_manager: MemoryManager | None = None,
        *,
        home: Home = None,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._manager, self._home, self._own, self.now = sqlite_manager, home, retention.policy(), now

    @property
    def home(self) -> Home:
        """Return the home whose policy it is; None without one."""
        return self._manager.home if self._manager is not None else self._home

    @property
    def settings(self) -> retention.Policy:
        """Return the policy as it is now."""
        home = self.home
        return self._own if home is None else retention.policy(archive.retention_policy(home=home))

    def calculate_importance_score(self, conversation: JsonObject) -> float:
        """Return the importance of a conversation, 0 to 1; 0 without messages."""
        return retention.score(_read(conversation), self.settings).total

    def should_retain_full(self, conversation: JsonObject, importance_score: float | None = None) -> bool:
        """Return whether its importance or its mark keeps a conversation full."""
        return self._level(conversation, importance_score) == "full"

    def should_retain_compressed(
        self, conversation: JsonObject, importance_score: float | None = None
    ) -> tuple[bool, str]:
        """Return whether a conversation may lose detail, and the least level that its importance keeps."""
        found = self._level(conversation, importance_score)
        return found != "full", found

    def _level(self, conversation: JsonObject, importance_score: float | None) -> Level:
        read, policy = _read(conversation), self.settings
        found = retention.score(read, policy)
        if found.parts.get("user_marked"):
            return "full"
        if importance_score is not None:
            found = found._replace(total=importance_score)
        return retention.level_of_score(found, retention.age(read, self.now()).days, policy)[0]

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
        """Return what retention recommends for each conversation, the most important first."""
        return archive.retention_recommendations(limit=limit, now=self.now(), home=self.home)

    def get_retention_statistics(self) -> JsonObject:
        """Return how many conversations are important, and what is recommended for them."""
        found = archive.retention_recommendations(limit=None, now=self.now(), home=self.home)
        scores = [one["importance_score"] for one in found]
        high = sum(score >= HIGH for score in scores)
        low = sum(score < MEDIUM for score in scores)
        return {
            "total_conversations": len(found),
            "important_marked": sum(bool(one["user_marked_important"]) for one in found),
            "importance_distribution": {"high": high, "medium": len(found) - high - low, "low": low},
            "average_importance": sum(scores) / len(scores) if scores else 0.0,
            "compression_recommendations": {
                one.value: sum(each["recommended_level"] == one.value for each in found) for one in CompressionLevel
            },
        }  # fmt: skip


@public_methods
class ArchivalManager:
    """Conversations as readable JSON files, in `archive/YYYY/MM/` of the home that `archival_root` names.

    Raises:
        StorageFailed: the home cannot be made.
    """

    def __init__(
        self,
        archival_root: str | PathLike[str] = "archive",
        compression_engine: CompressionEngine | None = None,
    ) -> None:
        self.home = init(Path(archival_root).absolute())
        self.compression_engine = compression_engine or CompressionEngine()

    @property
    def archive_directory(self) -> Path:
        """Return the directory of the years."""
        return self.home / "archive"

    def archive_conversation(
        self,
        conversation: JsonObject,
        compressed: CompressedConversation | None = None,
    ) -> str:
        """Store a conversation and return the path of its file.

        It is stored whole: its age and its importance decide when it loses detail, whatever level `compressed` has.

        Raises:
            InvalidInput: it is no conversation.
        """
        if compressed is not None:
            warn_without_effect("ArchivalManager", "compressed", "age and importance decide the level.")
        done = self.archive_conversations_batch([conversation])
        for one in done.failed if not done else ():
            raise InvalidInput(one.message, fix=one.fix, where=one.where)
        return str(done[0])

    def archive_conversations_batch(
        self, conversations: Iterable[JsonObject], compress: bool = True
    ) -> Results:
        """Store conversations and return the paths of their files; `failed` of the list names those that were not.

        With `compress`, what is old enough in this archive loses detail at once.
        """
        done = archive.archive_conversations(map(without_info, conversations), home=self.home)
        failed = [*done.failed, *done.findings]
        if compress:
            failed += archive.age_archive(now=self.compression_engine.now(), home=self.home).failed
        return Results((str(self.home / one.path) for one in done.added), failed)

    archive_conversations = archive_conversations_batch

    def restore_conversation(self, archive_path: str | PathLike[str]) -> JsonObject | None:
        """Return the conversation in a file of this archive, with `_archival_info`; None if there is no such file.

        While its grace lasts it is exactly what was stored; afterwards it is the form that is left.

        Raises:
            UnsafePath: the path leads out of the archive.
            CorruptDocument: the file is damaged.
            InvalidDocument: a newer aether wrote it.
        """
        name = self._name(archive_path)
        if name is None:
            return None
        archived = archive_store.read(self.home, name)
        done = archive.restore_conversation(archived["id"], home=self.home)
        info = _listed(archived, str(self.home / name))
        return {
            **done.conversation,
            INFO: {
                **{key: info[key] for key in ("archived_at", "archive_path", "compression_ratio", "version")},
                "compression_level": done.level, "exact": done.exact,
            },
        }  # fmt: skip

    def list_archived(
        self, year: int | None = None, month: int | None = None, include_content: bool = False
    ) -> list[JsonObject]:
        """Return the archived conversations of a year or a month, those that were archived last first.

        Raises:
            InvalidInput: a month without its year, or one that is no month.
        """
        if month is not None and (year is None or month not in range(1, 13)):
            what = (
                f"{shown(month)} is no month." if year is not None else f"month {shown(month)} has no year."
            )
            raise InvalidInput(what, fix="Give the year, and a month from 1 to 12.", where="month")
        wanted = "" if year is None else f"{year:04d}" if month is None else f"{year:04d}-{month:02d}"
        found = []
        for one in archive.list_archived(home=self.home):
            if one.created_at.startswith(wanted):
                archived = archive.read_archived(one.id, home=self.home)
                content = {"content": archived["content"]} if include_content else {}
                found.append(_listed(archived, str(self.home / one.path)) | content)
        return sorted(found, key=lambda one: str(one["archived_at"]), reverse=True)

    def delete_archive(self, archive_path: str | PathLike[str]) -> bool:
        """Remove an archived conversation, and return whether it was there; its files are kept in `quarantine/`.

        Raises:
            UnsafePath: the path leads out of the archive.
        """
        name = self._name(archive_path)
        known = {one.path: one.id for one in archive.list_archived(home=self.home)}
        return name in known and archive.delete_archived(known[name], home=self.home)

    def get_archive_stats(self) -> JsonObject:
        """Return the numbers of this archive: conversations, bytes, levels, years."""
        found = archive.archive_stats(home=self.home)
        years = {one.created_at[:4] for one in archive.list_archived(home=self.home)}
        return {
            "total_archived_conversations": found["conversations"], "total_archive_size_bytes": found["bytes"],
            "total_archive_size_mb": found["bytes"] / BYTES_PER_MB, "compression_levels": dict(found["levels"]),
            "years_with_archives": sorted(map(int, years)), "archive_directory": str(self.archive_directory),
        }  # fmt: skip

    def migrate_archives(self, from_version: str = "", to_version: str = "") -> int:  # noqa: ARG002 - every older one
        """Write the files of older versions in today's form, and return how many there were."""
        return len(archive.migrate_archive(home=self.home))

    def _name(self, path: str | PathLike[str]) -> str | None:
        """Return the place of a file of the archive, relative to the home; None if it is not there."""
        named, root = Path(path), self.archive_directory.resolve()
        found = (named if named.is_absolute() else Path.cwd() / named).resolve()
        if not found.is_relative_to(root):
            raise UnsafePath(
                f"{shown(str(path))} is outside the archive.",
                fix="Name a file of list_archived().",
                where=str(root),
            )
        return found.relative_to(root.parent).as_posix() if found.is_file() else None


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

    `db_path` is the home, which `initialize` makes; that of `":memory:"` is removed with its manager.
    """

    def __init__(
        self,
        db_path: str | PathLike[str] = "memory.db",
        *,
        now: Callable[[], datetime] = clock.now,
        backend: str | None = None,
    ) -> None:
        self.db_path, self.now, self.backend = str(db_path), now, backend
        self._place: Path | None = None
        self._end: Callable[[], object] = dict

    def initialize(self) -> None:
        """Make the home, unless it is there.

        Raises:
            InvalidInput: the path is that of a file, such as a database of the original.
            StorageFailed: the home cannot be made.
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
        """Add a message to a conversation, at the time that is given or now.

        Raises:
            NotFound: there is no such conversation.
            InvalidInput: the role, the score or the time is out of range.
            Conflict: the conversation is archived.
        """
        if role not in ROLES:
            raise InvalidInput(
                f"{shown(role)} is no role.", fix=f"Use one of {', '.join(ROLES)}.", where="role"
            )
        _require_score(importance_score)
        self._log(conversation_id)
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
            NotFound, Conflict: as `add_message`.
            InvalidInput: the score is out of range.
        """
        _require_score(importance_score)
        found = self._live(conversation_id)
        known = any(one["id"] == message_id for one in found["messages"])
        if known:
            noted = {"about": {"importance": {message_id: importance_score}}}
            self._note(conversation_id, noted, found["updated_at"])
        return known

    def get_conversation(self, conversation_id: str, include_messages: bool = True) -> JsonObject | None:
        """Return a conversation as it is now, None if no conversation has that id; a smaller one says its level."""
        archived = self._archived(conversation_id)
        log = conversations.load(self.home, conversation_id) if archived is None else None
        found = (
            _conversation(archived)
            if archived is not None
            else _of_log(log)
            if log and log.settings
            else None
        )
        if found is None:
            return None
        if not include_messages:
            found.pop("messages", None)
        return found

    def get_recent_conversations(self, limit: int = 10, offset: int = 0) -> list[JsonObject]:
        """Return conversations without their messages, those that were last used first."""
        found = sorted(self._all(), key=lambda one: (str(one["updated_at"]), str(one["id"])), reverse=True)
        return found[offset : offset + limit]

    def get_conversations_by_date_range(
        self, start_date: datetime | date | str, end_date: datetime | date | str
    ) -> list[JsonObject]:
        """Return the conversations that were created between two times or on two days, both included."""
        first, last = self._time(start_date), self._time(end_date, end=True)
        return [one for one in self._all() if first <= self._time(one["created_at"]) <= last]

    def get_conversation_messages(
        self, conversation_id: str, limit: int | None = None, offset: int = 0
    ) -> list[JsonObject]:
        """Return the messages of a conversation, the oldest first; none if there is no such conversation."""
        found = self.get_conversation(conversation_id) or {}
        messages = list(found.get("messages", ()))[offset:]
        return messages if limit is None else messages[:limit]

    def get_messages_by_role(
        self, conversation_id: str, role: str, limit: int | None = None
    ) -> list[JsonObject]:
        """Return the messages of one role, the oldest first."""
        found = [one for one in self.get_conversation_messages(conversation_id) if one.get("role") == role]
        return found if limit is None else found[:limit]

    def get_recent_messages(self, conversation_id: str, limit: int = 10) -> list[JsonObject]:
        """Return the last messages of a conversation, the newest first."""
        return self.get_conversation_messages(conversation_id)[::-1][:limit]

    def get_conversation_metadata(self, conversation_ids: Sequence[str]) -> dict[str, JsonObject]:
        """Return what describes each conversation, by its id; unknown ids are left out."""
        found = {id_: self.get_conversation(id_) for id_ in conversation_ids}
        return {
            id_: one["metadata"] if "compression_level" in one else {**forms.metadata(_read(one)), "metadata": one["metadata"]}
            for id_, one in found.items() if one is not None
        }  # fmt: skip

    def update_conversation_metadata(self, conversation_id: str, metadata: JsonObject) -> None:
        """Add to the metadata of a conversation; None removes a key.

        Raises:
            NotFound, Conflict: as `add_message`.
        """
        at = self._live(conversation_id)["updated_at"]
        self._note(conversation_id, {"about": {"metadata": dict(metadata)}}, at)

    def delete_conversation(self, conversation_id: str) -> bool:
        """Remove a conversation, and return whether it was there; its files are kept in `quarantine/`."""
        if archive.delete_archived(conversation_id, home=self.home):
            return True
        log = conversations.load(self.home, conversation_id)
        kept = (
            conversations.set_aside(self.home, conversation_id, lines=log.lines, now=self.now())
            if log.settings
            else None
        )
        return kept is not None

    def get_database_stats(self) -> JsonObject:
        """Return the numbers of conversations and messages, and the bytes on disk."""
        every = self._all()
        live = sum(one.bytes for one in conversations.stored_conversations(self.home))
        size = live + int(archive.archive_stats(home=self.home)["bytes"])
        return {
            "total_conversations": len(every), "total_messages": sum(int(one["total_messages"]) for one in every),
            "database_size_bytes": size, "database_size_mb": size / BYTES_PER_MB,
        }  # fmt: skip

    # Compression and the archive

    def compress_conversation(self, conversation_id: str) -> CompressedConversation | None:
        """Return a conversation at the level that its age and its importance ask for; nothing is changed."""
        found = self.get_conversation(conversation_id)
        if found is None:
            return None
        decided = archive.explain_retention(conversation_id, now=self.now(), home=self.home)["decided_level"]
        return self.compression_engine.compress(found, decided)

    def archive_conversation(self, conversation_id: str) -> str | None:
        """Let a conversation lose the detail that its rules allow now, and return its file; None if no conversation has that id.

        The file of one that is whole still, and no caller's dict, is its log.

        Raises:
            Conflict: it could not be aged, and is as it was.
        """
        done = archive.age_archive(
            now=self.now(), backend=self.backend, ids=[conversation_id], home=self.home
        )
        for one in done.failed:
            raise Conflict(one.message, fix=one.fix, where=one.where)
        paths = {one.id: one.path for one in archive.list_archived(home=self.home)}
        if conversation_id in paths:
            return str(self.home / paths[conversation_id])
        log = conversations.load(self.home, conversation_id)
        return str(log.path) if log.settings else None

    def restore_conversation(self, conversation_id: str) -> JsonObject | None:
        """Bring a conversation back as full as it still is, and return it; None if it is not archived.

        Within its grace one of this manager is live again, exactly as it was, and goes on from there.
        """
        try:
            done = archive.restore_conversation(conversation_id, home=self.home)
        except NotFound:
            return None
        return self.get_conversation(conversation_id) if done.path else done.conversation

    def mark_conversation_important(self, conversation_id: str, important: bool = True) -> bool:
        """Mark a conversation so that it stays full, or remove the mark; False if no conversation has that id."""
        return archive.mark_conversation_important(conversation_id, important, home=self.home)

    def get_retention_recommendations(self, limit: int = 100) -> list[JsonObject]:
        """Return what retention recommends for each conversation, the most important first."""
        return self.retention_policy.get_retention_recommendations(limit)

    def trigger_automatic_compression(self, days_threshold: int = 30) -> JsonObject:
        """Let every conversation of that age lose the detail that its rules allow, and return what was done.

        Space that is saved is measured on disk, that of fuller forms whose grace is over too: it may be less than 0 while
        they are kept (`archive.grace_days`).
        """
        now = self.now()
        plan = archive.age_archive(now=now, dry_run=True, home=self.home)
        ready = [one.id for one in plan.plan if one.days >= days_threshold]
        done = archive.age_archive(now=now, backend=self.backend, ids=ready, home=self.home)
        steps = [one for one in done.done if one["from"] != one["to"]]
        return {
            "total_processed": len(ready), "compressed_count": len(steps),
            "archived_count": sum(one["from"] == "full" for one in steps),
            "total_space_saved_bytes": done.saved_bytes, "total_space_saved_mb": done.saved_bytes / BYTES_PER_MB,
            "errors": [f"{one.where}: {one.message}" for one in dict.fromkeys([*plan.failed, *done.failed])],
            "threshold_days": days_threshold,
        }  # fmt: skip

    def get_archival_stats(self) -> JsonObject:
        """Return the numbers of the archive, of retention and of the conversations, and the measured ratio.

        The ratio is that of all text that is kept to all text that there was.
        """
        kept = whole = 0
        for one in archive.list_archived(home=self.home):
            metrics = archive.read_archived(one.id, home=self.home)["metrics"]
            kept, whole = kept + metrics.get("chars", 0), whole + metrics.get("text_chars", 0)
        return {
            "archive": self.archival_manager.get_archive_stats(),
            "retention": self.retention_policy.get_retention_statistics(), "database": self.get_database_stats(),
            "compression_ratio": kept / whole if whole else 1.0,
        }  # fmt: skip

    def _time(self, given: datetime | date | str | None, *, end: bool = False) -> str:
        """Return a time as it is stored; of a day its first moment, or its last one at the `end` of a range."""
        if given is None:
            given = self.now()
        if isinstance(given, date) and not isinstance(given, datetime):
            given = given.isoformat()
        if isinstance(given, datetime):
            given = given.isoformat()
        elif end and len(given) == len("2026-01-01"):
            given = datetime.combine(date.fromisoformat(given), time.max).isoformat()
        return clock.stamp(clock.parse(given))

    def _archived(self, conversation_id: str) -> JsonObject | None:
        try:
            return archive.read_archived(conversation_id, home=self.home)
        except NotFound:
            return None

    def _all(self) -> list[JsonObject]:
        live = [
            conversations.load(self.home, one.id) for one in conversations.stored_conversations(self.home)
        ]
        every = [
            archive.read_archived(one.id, home=self.home) for one in archive.list_archived(home=self.home)
        ]
        found = [*(_of_log(log) for log in live if log.settings), *map(_conversation, every)]
        return [{key: value for key, value in one.items() if key != "messages"} for one in found]

    def _live(self, conversation_id: str) -> JsonObject:
        return _of_log(self._log(conversation_id))

    def _log(self, conversation_id: str) -> history.Log:
        """Return the log of a conversation that is not archived."""
        log = conversations.load(self.home, conversation_id)
        if not log.settings:
            raise NotFound(f"there is no conversation {shown(conversation_id)}.", fix="Create it first.")
        return log

    def _note(self, conversation_id: str, patch: JsonObject, at: str) -> None:
        """Add to what is known of a live conversation, without making it younger."""
        conversations.set_settings(self.home, conversation_id, patch, now=clock.parse(at))


def _require_score(score: float) -> None:
    if not 0 <= score <= 1:
        raise InvalidInput(f"{score} is no score.", fix="Give one from 0 to 1.", where="importance_score")


def _of_log(log: history.Log) -> JsonObject:
    """Return a live conversation in the shape of Mai's memory manager."""
    about = log.settings.get("about", {})
    importance = about.get("importance", {})
    messages = history.messages(log, history.said(log))
    for one in messages:
        if one.get("id") in importance:
            one["importance_score"] = importance[one["id"]]
    times = [str(one["timestamp"]) for one in messages if one.get("timestamp")]
    created = about.get("created_at") or min(times, default="")
    return {
        "id": log.id, "title": about.get("title") or log.id, "created_at": created,
        "updated_at": max([created, *times]), "session_id": about.get("session_id") or log.id,
        "total_messages": len(messages), "total_tokens": sum(int(one.get("token_count") or 0) for one in messages),
        "context_window_size": log.settings["window"], "model_history": [], "metadata": dict(about.get("metadata", {})),
        "messages": messages,
    }  # fmt: skip


def _conversation(archived: JsonObject) -> JsonObject:
    """Return an archived conversation in the shape of Mai's memory manager, as far as its level has it."""
    content, stats = archived["content"], archived["metadata"]["summary_stats"]
    if archived["level"] == "full":
        known = {key: value for key, value in archived["metadata"].items() if key in FIELDS}
        return {**known, "total_tokens": stats["total_tokens"], **given_conversation(content)}
    return {
        **{key: value for key, value in archived["metadata"].items() if key != "summary_stats"},
        "metadata": archived["metadata"], "total_tokens": stats["total_tokens"],
        "messages": deepcopy(content.get("messages", [])), "summary": content.get("summary", ""),
        "compression_level": archived["level"],
    }  # fmt: skip
