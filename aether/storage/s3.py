"""S3 storage: copies in a bucket, by conditional writes, so that nothing is ever overwritten.

A `PUT` that was sent again because its answer was lost is refused although it succeeded: the object is read and compared
before a conflict is reported.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from aether.errors import InvalidDocument, InvalidInput, StorageFailed, packages_of
from aether.paths import directory_name
from aether.storage.adapter import (
    EVENTS,
    message_lines,
    next_free_step,
    no_such_file,
    step_conflict,
    summary_file,
    transcript_file,
)
from aether.store import files
from aether.types import JsonObject

# A copy must not hold up the turn that it belongs to for longer than a model call would: ten seconds at the worst.
CONNECT_SECONDS = 2
READ_SECONDS = 5
ATTEMPTS = 2
# A turn makes half a dozen requests: after one without an answer, none is sent for this time.
REST_SECONDS = 60.0
# Writers of one session are few; the waits sum up to about two seconds.
CONFLICT_TRIES = 10
FIRST_WAIT_SECONDS = 0.01
LONGEST_WAIT_SECONDS = 0.4
# The object is not the expected one, was written at that moment, or does not exist.
_REFUSED = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "404")
# The type of the content by the last part of a name.
KINDS = {"json": "application/json", "jsonl": "application/x-ndjson"}
# A backup may wait: nobody's turn depends on it.
PATIENT_SECONDS = 60
PATIENT_ATTEMPTS = 5
# As many requests at a time as a backup makes, and some more.
CONNECTIONS = 16
T = TypeVar("T")


class S3Storage:
    """A `StorageAdapter` in a bucket, below `prefix`; `client` is a boto3 S3 client of the caller's own."""

    name = "s3"

    def __init__(self, bucket: str, prefix: str = "", *, kms_key_id: str = "", client: Any = None) -> None:
        if not bucket:
            raise InvalidInput("no bucket is named.", fix="Set storage.bucket.", where="storage.bucket")
        self.bucket = bucket
        self.prefix = prefix.strip("/")
        self.encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key_id} if kms_key_id else {}
        self.client = client or _client()
        self._rests_until = 0.0

    def save_transcript(self, session_id: str, messages: Sequence[JsonObject], step: int) -> str:
        """Keep the messages as they were before compaction `step`, and return the URL."""
        return self._once(self._key(session_id, transcript_file(step)), message_lines(messages))

    def save_summary(self, session_id: str, summary: JsonObject, step: int) -> str:
        """Keep the summary of compaction `step`, and return the URL."""
        return self._once(self._key(session_id, summary_file(step)), files.json_document(summary))

    def save_event(self, session_id: str, event: JsonObject) -> str:
        """Append one event, and return the URL; S3 cannot append, so the whole object is written again."""
        key, line = self._key(session_id, EVENTS), files.json_line(event) + b"\n"
        before: bytes | None = None
        for nth in range(CONFLICT_TRIES):
            found, tag = self._read(key)
            if before is not None and found.startswith(before + line):
                return self._url(key)  # ours: its answer was lost
            if self._put(key, found + line, {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}):
                return self._url(key)
            before = found
            _wait(nth)
        raise _busy(self._url(key))

    def next_step(self, session_id: str) -> int:
        """Return the first step after all that are kept."""
        start = self._key(session_id, "")

        def names() -> list[str]:
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=start)
            return [found["Key"].removeprefix(start) for page in pages for found in page.get("Contents", ())]

        return next_free_step(self._answer(names, self._url(start)) or ())

    def where(self, name: str = "") -> str:
        """Return the URL of a file, or of the place."""
        return self._url("/".join(part for part in (self.prefix, name) if part))

    def names(self, below: str) -> dict[str, int]:
        """Return the files in the directory `below`, at any depth, with their sizes."""
        root = f"{self.prefix}/" if self.prefix else ""

        def names() -> dict[str, int]:
            pages = self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=f"{root}{below}/"
            )
            found = (one for page in pages for one in page.get("Contents", ()))
            return {one["Key"].removeprefix(root): one["Size"] for one in found}

        return self._answer(names, self.where(below)) or {}

    def get(self, name: str, most: int) -> bytes:
        """Return the content of the file `name`, which has at most so many bytes.

        Raises:
            NotFound: there is no such file.
            InvalidDocument: it is larger.
        """
        key = "/".join(part for part in (self.prefix, name) if part)

        def get() -> bytes:
            data: bytes = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read(most + 1)
            return data

        data = self._answer(get, self._url(key))
        if data is None:
            raise no_such_file(self._url(key))
        if len(data) > most:
            what = f"has more than the {most:,} bytes that are read."
            raise InvalidDocument(what, fix="Restore it from a copy.", where=self._url(key))
        return data

    def put(self, name: str, data: bytes) -> None:
        """Write the file `name`, whole or not at all."""
        key = "/".join(part for part in (self.prefix, name) if part)
        if not self._put(key, data, {}):
            raise _busy(self._url(key))

    def has(self, name: str) -> bool:
        """Return whether there is an object `name`."""
        key = "/".join(part for part in (self.prefix, name) if part)
        found = self._answer(lambda: self.client.head_object(Bucket=self.bucket, Key=key), self._url(key))
        return found is not None

    def remove(self, name: str) -> None:
        """Remove the object `name`, if it is there."""
        key = "/".join(part for part in (self.prefix, name) if part)
        self._answer(lambda: self.client.delete_object(Bucket=self.bucket, Key=key), self._url(key))

    def _key(self, session_id: str, name: str) -> str:
        directory = directory_name(session_id, what="session")
        return "/".join(part for part in (self.prefix, directory) if part) + f"/{name}"

    def _url(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def _once(self, key: str, data: bytes) -> str:
        for nth in range(CONFLICT_TRIES):
            if self._put(key, data, {"IfNoneMatch": "*"}):
                return self._url(key)
            found, tag = self._read(key)
            if tag and found != data:
                raise step_conflict(self._url(key))
            if tag:
                return self._url(key)
            _wait(nth)
        raise _busy(self._url(key))

    def _put(self, key: str, data: bytes, condition: dict[str, str]) -> bool:
        """Write the object and return whether the condition held."""
        kind = KINDS.get(key[key.rfind(".") + 1 :], "application/octet-stream")

        def put() -> Any:
            return self.client.put_object(
                Bucket=self.bucket, Key=key, Body=data, ContentType=kind, **condition, **self.encryption
            )

        return self._answer(put, self._url(key)) is not None

    def _read(self, key: str) -> tuple[bytes, str]:
        """Return the object and its tag, both empty if there is no object."""

        def get() -> tuple[bytes, str]:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
            return answer["Body"].read(), answer["ETag"]

        return self._answer(get, self._url(key)) or (b"", "")

    def _answer(self, ask: Callable[[], T], where: str) -> T | None:
        """Return the answer of S3, None if a condition did not hold or there is no such object."""
        if time.monotonic() < self._rests_until:
            raise StorageFailed(
                "it did not answer a moment ago. Nothing was stored.",
                fix=f"Check the network; it is asked again after {REST_SECONDS:g} s.",
                where=where,
            )
        from botocore.exceptions import ClientError

        try:
            with _translated(where):
                try:
                    return ask()
                except ClientError as reason:
                    if reason.response.get("Error", {}).get("Code") in _REFUSED:
                        return None
                    raise
        except StorageFailed as reason:
            if not isinstance(reason.__cause__, ClientError):  # nobody answered
                self._rests_until = time.monotonic() + REST_SECONDS
            raise


def patient_client() -> Any:
    """Return a client that waits and tries again for longer than a copy may.

    Raises:
        BackendUnavailable: boto3 is not installed.
        StorageFailed: the environment names an endpoint or a profile that cannot be used.
    """
    return _client(connect=PATIENT_SECONDS, read=PATIENT_SECONDS, attempts=PATIENT_ATTEMPTS)


def _client(*, connect: int = CONNECT_SECONDS, read: int = READ_SECONDS, attempts: int = 0) -> Any:
    with packages_of("s3", where="storage.adapter"):
        import boto3
        from botocore.config import Config
    timeouts = Config(
        connect_timeout=connect,
        read_timeout=read,
        retries={"mode": "standard", "max_attempts": attempts or ATTEMPTS},
        max_pool_connections=CONNECTIONS,
    )
    with _translated("s3"):
        return boto3.client("s3", config=timeouts)


@contextlib.contextmanager
def _translated(where: str) -> Iterator[None]:
    """Turn the errors of boto3 into ours.

    Raises:
        StorageFailed: S3 refused, or could not be reached in time.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError, OSError) as reason:
        raise StorageFailed(
            f"{str(reason).rstrip('.')}. Nothing was stored.",
            fix="Check the bucket, its region, the credentials and the network.",
            where=where,
        ) from reason


def _wait(nth: int) -> None:
    # Jitter: equal waits would make the same writer lose every round.
    longest = min(FIRST_WAIT_SECONDS * 2**nth, LONGEST_WAIT_SECONDS)
    time.sleep(longest * (0.5 + random.random() / 2))  # noqa: S311 - spreading waits, not secrets


def _busy(where: str) -> StorageFailed:
    return StorageFailed(
        f"others wrote at the same time, {CONFLICT_TRIES} times. Nothing was stored.",
        fix="Try again.",
        where=where,
    )
