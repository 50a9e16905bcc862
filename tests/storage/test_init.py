import sys

import pytest

from aether.errors import BackendUnavailable, InvalidInput
from aether.storage import storage
from aether.storage.adapter import FileStorage
from aether.storage.s3 import CONNECT_SECONDS, READ_SECONDS


def test_fs_is_a_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    named, default = storage("fs", path=str(tmp_path / "copies")), storage("fs")

    assert isinstance(named, FileStorage)
    assert named.root == tmp_path / "copies"
    assert default.root == tmp_path / ".compact" / "archive"


def test_another_kind_is_refused():
    with pytest.raises(InvalidInput, match="'ftp' is not a storage"):
        storage("ftp")


def test_s3_wants_a_bucket():
    with pytest.raises(InvalidInput, match="no bucket"):
        storage("s3")


def test_s3_without_boto3_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)

    with pytest.raises(BackendUnavailable, match=r"aether-memory\[s3\]"):
        storage("s3", bucket="copies")


@pytest.mark.extras
def test_s3_is_a_bucket(monkeypatch):
    pytest.importorskip("boto3", reason="boto3 is not installed")
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "us-east-1")

    made = storage("s3", bucket="copies", prefix="/a/b/", kms_key_id="key")

    assert (made.name, made.bucket, made.prefix) == ("s3", "copies", "a/b")
    settings = made.client.meta.config
    assert (settings.connect_timeout, settings.read_timeout) == (CONNECT_SECONDS, READ_SECONDS)
