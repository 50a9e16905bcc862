"""Against moto's server on loopback; what moto cannot stage, a stubbed client does."""

import io
import json
import threading

import pytest

from aether.errors import Conflict, StorageFailed
from aether.storage import s3, storage
from aether.storage.s3 import REST_SECONDS, S3Storage

boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
stub = pytest.importorskip("botocore.stub")

pytestmark = pytest.mark.extras
MESSAGES = [{"role": "user", "content": "one"}, {"role": "tool", "content": None}]


def get(place, where):
    key = where.removeprefix(f"s3://{place.bucket}/")
    return place.client.get_object(Bucket=place.bucket, Key=key)["Body"].read()


def test_everything_has_its_key(bucket):
    place = storage("s3", bucket=bucket, prefix="team/a/")

    transcript = place.save_transcript("user:42", MESSAGES, 1)
    summary = place.save_summary("user:42", {"content": "short"}, 1)
    event = place.save_event("user:42", {"nth": 0})

    start = f"s3://{bucket}/team/a/user%3a42/"
    assert (transcript, summary, event) == (
        f"{start}transcript-pre-compact-001.jsonl",
        f"{start}summary-001.json",
        f"{start}events.jsonl",
    )
    assert [json.loads(line) for line in get(place, transcript).splitlines()] == MESSAGES
    assert json.loads(get(place, summary)) == {"content": "short"}


def test_events_are_appended(bucket):
    place = S3Storage(bucket)

    for nth in range(3):
        where = place.save_event("s1", {"nth": nth})

    assert where == f"s3://{bucket}/s1/events.jsonl"
    assert get(place, where) == b'{"nth":0}\n{"nth":1}\n{"nth":2}\n'


def test_many_writers_lose_no_event(bucket):
    def write(who):
        place = S3Storage(bucket)
        for nth in range(3):
            place.save_event("s1", {"who": who, "nth": nth})

    threads = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    place = S3Storage(bucket)
    assert len(set(get(place, f"s3://{bucket}/s1/events.jsonl").splitlines())) == 9


def test_a_step_is_never_written_over(bucket):
    place = S3Storage(bucket)
    where = place.save_transcript("s1", MESSAGES, 1)

    assert place.save_transcript("s1", MESSAGES, 1) == where
    with pytest.raises(Conflict, match="written before"):
        place.save_transcript("s1", MESSAGES[:1], 1)
    assert len(get(place, where).splitlines()) == 2


def test_the_next_step_is_after_what_is_kept(bucket):
    place = S3Storage(bucket, "p")
    place.save_summary("s1", {}, 41)
    place.save_event("s10", {})

    assert (place.next_step("s1"), place.next_step("s10"), place.next_step("s")) == (42, 1, 1)


def test_a_bucket_that_is_not_there_is_said(bucket):
    with pytest.raises(StorageFailed, match="Nothing was stored"):
        S3Storage("nowhere-at-all").save_event("s1", {})


def test_a_server_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(s3, "ATTEMPTS", 1)

    with pytest.raises(StorageFailed, match="Check the bucket"):
        S3Storage("copies").save_event("s1", {})


def test_a_server_that_does_not_answer_is_asked_once_and_again_after_a_rest(monkeypatch):
    from botocore.exceptions import ReadTimeoutError

    asked, now = [], [1000.0]
    monkeypatch.setattr("aether.storage.s3.time.monotonic", lambda: now[0])

    class Silent:
        def put_object(self, **request):
            asked.append(request["Key"])
            raise ReadTimeoutError(endpoint_url="http://silent")

    storing = S3Storage("copies", client=Silent())

    for step in (1, 2):
        with pytest.raises(StorageFailed, match="Nothing was stored"):
            storing.save_transcript("s1", [{"a": 1}], step)
    now[0] += REST_SECONDS
    with pytest.raises(StorageFailed, match="timeout"):
        storing.save_transcript("s1", [{"a": 1}], 3)

    assert asked == ["s1/transcript-pre-compact-001.jsonl", "s1/transcript-pre-compact-003.jsonl"]


def test_a_client_that_cannot_be_made_is_said(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "not a url")
    monkeypatch.setenv("AWS_PROFILE", "nobody")

    with pytest.raises(StorageFailed, match="nobody"):
        S3Storage("copies")


@pytest.fixture
def stubbed():
    client = boto3.client("s3")
    with stub.Stubber(client) as answers:
        yield client, answers
        answers.assert_no_pending_responses()


TRANSCRIPT = {"Bucket": "copies", "Key": "s1/transcript-pre-compact-001.jsonl"}
EVENTS = {"Bucket": "copies", "Key": "s1/events.jsonl"}
DATA = b'{"a":1}\n'
PUT = {"Body": DATA, "ContentType": "application/x-ndjson"}


def refused(answers, operation, code, expected):
    answers.add_client_error(operation, code, http_status_code=412, expected_params=expected)


def found(answers, place, data):
    answers.add_response("get_object", {"Body": io.BytesIO(data), "ETag": '"t"'}, place)


def test_writes_ask_for_the_key_to_encrypt_with(stubbed):
    client, answers = stubbed
    expected = {
        **TRANSCRIPT,
        **PUT,
        "IfNoneMatch": "*",
        "ServerSideEncryption": "aws:kms",
        "SSEKMSKeyId": "alias/k",
    }
    answers.add_response("put_object", {}, expected)

    S3Storage("copies", kms_key_id="alias/k", client=client).save_transcript("s1", [{"a": 1}], 1)


@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict"])
def test_a_write_whose_answer_was_lost_counts(stubbed, code):
    client, answers = stubbed
    refused(answers, "put_object", code, {**TRANSCRIPT, **PUT, "IfNoneMatch": "*"})
    found(answers, TRANSCRIPT, DATA)

    S3Storage("copies", client=client).save_transcript("s1", [{"a": 1}], 1)


def test_a_write_that_met_another_which_then_failed_is_tried_again(stubbed):
    client, answers = stubbed
    expected = {**TRANSCRIPT, **PUT, "IfNoneMatch": "*"}
    refused(answers, "put_object", "ConditionalRequestConflict", expected)
    answers.add_client_error("get_object", "NoSuchKey", http_status_code=404, expected_params=TRANSCRIPT)
    answers.add_response("put_object", {}, expected)

    S3Storage("copies", client=client).save_transcript("s1", [{"a": 1}], 1)


def test_an_event_whose_answer_was_lost_is_not_written_twice(stubbed):
    client, answers = stubbed
    found(answers, EVENTS, b'{"b":2}\n')
    refused(
        answers,
        "put_object",
        "PreconditionFailed",
        {**EVENTS, **PUT, "Body": b'{"b":2}\n' + DATA, "IfMatch": '"t"'},
    )
    found(answers, EVENTS, b'{"b":2}\n' + DATA + b'{"c":3}\n')

    S3Storage("copies", client=client).save_event("s1", {"a": 1})


@pytest.mark.parametrize("save", ["event", "transcript"])
def test_a_bucket_that_is_always_busy_is_given_up(stubbed, monkeypatch, save):
    monkeypatch.setattr(s3, "CONFLICT_TRIES", 2)
    client, answers = stubbed
    place, order = (EVENTS, [1, 0]) if save == "event" else (TRANSCRIPT, [0, 1])
    for kind in order * 2:
        if kind:
            answers.add_client_error("get_object", "NoSuchKey", http_status_code=404, expected_params=place)
        else:
            refused(answers, "put_object", "ConditionalRequestConflict", {**place, **PUT, "IfNoneMatch": "*"})
    storing = S3Storage("copies", client=client)

    with pytest.raises(StorageFailed, match="2 times"):
        storing.save_event("s1", {"a": 1}) if save == "event" else storing.save_transcript(
            "s1", [{"a": 1}], 1
        )


def test_an_answer_that_denies_is_said(stubbed):
    client, answers = stubbed
    answers.add_client_error("put_object", "AccessDenied", "no", http_status_code=403)

    with pytest.raises(StorageFailed, match="AccessDenied"):
        S3Storage("copies", client=client).save_transcript("s1", [{"a": 1}], 1)
