"""Storage: where redacted copies of what a compaction replaced are kept, outside the home."""

from __future__ import annotations

from aether.errors import InvalidInput, shown
from aether.storage.adapter import StorageAdapter


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
