"""Storage: places outside the home, for redacted copies of what a compaction replaced and for backups."""

from __future__ import annotations

import os

from aether.errors import InvalidInput, shown
from aether.storage.adapter import NamedFiles, StorageAdapter

S3 = "s3://"


def storage(
    kind: str, *, path: str = "", bucket: str = "", prefix: str = "", kms_key_id: str = ""
) -> StorageAdapter:
    """Return the storage of this kind: `fs` below the directory `path`, `s3` in `bucket` below `prefix`.

    Raises:
        InvalidInput: there is no such kind, or `s3` is given no bucket.
        BackendUnavailable: `s3` needs boto3, and it is not installed.
    """
    if kind == "fs":
        from aether.storage.adapter import ROOT, FileStorage

        return FileStorage(path or ROOT)
    if kind == "s3":
        from aether.storage.s3 import S3Storage

        return S3Storage(bucket, prefix, kms_key_id=kms_key_id)
    raise InvalidInput(f"{shown(kind)} is not a storage.", fix="Use fs or s3.", where="storage.adapter")


def named_files(place: str) -> NamedFiles:
    """Return the files of a place: a directory, which need not exist yet, or `s3://bucket/prefix`.

    Raises:
        InvalidInput: it is neither.
        BackendUnavailable: S3 needs boto3, and it is not installed.
    """
    if place.startswith(S3) and place.removeprefix(S3).strip("/"):
        from aether.storage.s3 import S3Storage, patient_client

        bucket, _, prefix = place.removeprefix(S3).partition("/")
        return S3Storage(bucket, prefix, client=patient_client())
    if not place or "://" in place or "\0" in place:
        fix = "Name a directory, or s3://bucket/prefix."
        raise InvalidInput(f"{shown(place)} is not a place for files.", fix=fix, where="destination")
    from aether.storage.adapter import FileStorage

    return FileStorage(os.path.realpath(os.path.expanduser(place)))
