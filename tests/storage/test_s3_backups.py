"""Named files, and whole backups of them, in a bucket: against moto's server on loopback."""

import pytest

import aether
from aether.errors import InvalidDocument, NotFound, StorageFailed
from aether.storage import named_files, s3
from aether.storage.s3 import S3Storage
from tests import homes
from tests.api.test_backup import content

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")

pytestmark = pytest.mark.extras


def test_files_have_their_names_sizes_and_content(bucket):
    place = named_files(f"s3://{bucket}/team/a/")

    place.put("objects/aa/one", b"1")
    place.put("objects/aa/one", b"12")
    place.put("objects/bb/two", b"")
    place.put("objectsother", b"123")

    assert place.names("objects") == {"objects/aa/one": 2, "objects/bb/two": 0}
    assert place.names("manifests") == {}
    assert place.get("objects/aa/one", 2) == b"12"
    assert place.where("objects/aa/one") == f"s3://{bucket}/team/a/objects/aa/one"
    with pytest.raises(InvalidDocument, match="more than the 1 bytes"):
        place.get("objects/aa/one", 1)
    with pytest.raises(NotFound, match="no such file"):
        place.get("objects/cc/three", 1)
    for _ in range(2):
        place.remove("objects/aa/one")
    assert (place.has("objects/aa/one"), place.has("objectsother")) == (False, True)


@pytest.mark.slow
def test_many_files_are_listed(bucket):
    place = S3Storage(bucket)
    for nth in range(1_005):
        place.put(f"objects/{nth}", b"")

    assert len(place.names("objects")) == 1_005


@pytest.mark.parametrize("prefix", ["", "/deep/er"])
def test_a_home_is_backed_up_verified_and_restored_byte_for_byte(bucket, prefix, home, tmp_path):
    place = f"s3://{bucket}{prefix}"
    homes.add(home, "first")
    first, held = aether.create_backup(place, home=home), content(home)
    homes.add(home, "second")
    again = aether.create_backup(place, home=home)
    client = boto3.client("s3")
    keys = [one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]]

    assert all(key.startswith(prefix.lstrip("/")) for key in keys)
    assert 0 < again.new_bytes < first.new_bytes
    assert [one.id for one in aether.backups(place)] == [again.id, first.id]
    assert aether.verify_backup(place) == []
    assert content(aether.restore_backup(place, first.id, home=tmp_path / "first").home) == held
    assert content(aether.restore_backup(place, home=tmp_path / "new").home) == content(home)


def test_a_missing_and_a_changed_object_are_found(bucket, home, tmp_path):
    place, client = f"s3://{bucket}/p", boto3.client("s3")
    aether.create_backup(place, home=home)
    manifest = client.list_objects_v2(Bucket=bucket, Prefix="p/manifests/")["Contents"][0]["Key"]
    listing = client.get_object(Bucket=bucket, Key=manifest)["Body"].read().decode()
    keys = [key["Key"] for key in client.list_objects_v2(Bucket=bucket, Prefix="p/objects/")["Contents"]]
    one, two, *_ = [
        key for key in keys if key.rpartition("/")[2] not in listing
    ]  # pieces of files, not of the list
    client.delete_object(Bucket=bucket, Key=one)
    client.put_object(Bucket=bucket, Key=two, Body=b"other")

    assert {found.code for found in aether.verify_backup(place)} >= {"missing-object", "changed-object"}
    with pytest.raises((NotFound, ValueError)):
        aether.restore_backup(place, home=tmp_path / "new")
    client.delete_object(Bucket=bucket, Key=two)
    aether.create_backup(place, home=home)
    assert aether.verify_backup(place) == []


def test_a_backup_that_fails_half_way_leaves_the_older_one_whole(bucket, home, tmp_path, monkeypatch):
    place = f"s3://{bucket}"
    aether.create_backup(place, home=home)
    held = content(home)
    homes.add(home, "second")
    real, puts = S3Storage._put, []

    def put(self, *given):
        puts.append(given[0])
        if len(puts) > 1:
            raise StorageFailed("the line was cut.", fix="Try again.", where="s3")
        return real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(S3Storage, "_put", put)
        with pytest.raises(StorageFailed, match="cut"):
            aether.create_backup(place, home=home)

    assert len(aether.backups(place)) == 1
    assert aether.verify_backup(place) == []
    assert content(aether.restore_backup(place, home=tmp_path / "new").home) == held
    aether.create_backup(place, home=home)
    assert aether.verify_backup(place) == []


def test_a_bucket_that_is_not_there_is_said(bucket, home, monkeypatch):
    monkeypatch.setattr(s3, "PATIENT_ATTEMPTS", 1)
    with pytest.raises(StorageFailed, match="bucket"):
        aether.create_backup("s3://nowhere-at-all", home=home)
