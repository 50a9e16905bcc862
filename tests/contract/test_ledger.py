"""What every ledger keeps, whatever it is made of. Each row of `KINDS` makes one for a colony of the test."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable

import pytest

from aether.errors import Conflict, NotFound
from aether.sharing import postgres
from aether.store import log
from aether.store.ledger import JOURNAL, Mark
from tests import directory_ledger, postgres_server
from tests.children import ended, start
from tests.lines import AT


def line(number, words="x"):
    """Return a line of the journal that both ledgers take."""
    fields = {"revision": number, "at": AT, "operation": words, "member": postgres_server.OWNER}
    return log.seal_json(fields)


def mark(number):
    return Mark(number, log.checksum_of(line(number)) if number else "")


def of_postgres(request) -> Callable[[str], object]:

    server = request.getfixturevalue("postgres")
    colony = uuid.uuid4().hex
    postgres.create_colony(server.url(), colony).close()
    return lambda replica: postgres.open_ledger(server.url(), colony, replica=replica, timeout=10)


def of_directory(request) -> Callable[[str], object]:
    """Return how the reference is opened that the tests of homes use."""
    url = f"{directory_ledger.START}{request.getfixturevalue('tmp_path')}"
    directory_ledger.create_colony(url, "c", timeout=1)
    return lambda replica: directory_ledger.open_ledger(url, "c", replica=replica, timeout=1)


KINDS = {"postgres": of_postgres, "directory": of_directory}


@pytest.fixture(params=[pytest.param("postgres", marks=pytest.mark.extras), "directory"])
def opened(request):
    """Return a function that opens the ledger of one colony, as another replica each time."""
    make, made = KINDS[request.param](request), []

    def open_one(replica="r"):
        made.append(make(replica))
        return made[-1]

    yield open_one
    for ledger in made:
        ledger.close()


def test_lines_come_back_byte_for_byte_in_order(opened):
    ledger, other = opened(), opened()
    odd = log.seal(b'{"b":1,"a":1,"a":2,"n":1.10000000000000000000000001,"z":"\\u0000\\ud800"}')
    lines = [line(1), odd, line(3, "x" * 3_000_000)]

    assert ledger.append_if("s", Mark(0, ""), lines) == (True, 3, [])

    assert other.read_after("s", Mark(0, "")) == (3, lines)
    assert other.read_after("s", mark(1), limit=1) == (3, lines[1:2])
    assert other.read_after("s", Mark(3, "")) == (3, [])
    assert (other.head("s"), other.head("t"), other.read_after("t", Mark(0, ""))) == (3, 0, (0, []))


def test_the_one_who_comes_late_is_given_what_is_new(opened):
    ledger, late = opened(), opened()
    ledger.append_if(JOURNAL, mark(0), [line(1), line(2)])

    assert late.append_if(JOURNAL, mark(0), [line(1, "late")]) == (False, 2, [line(1), line(2)])
    assert late.append_if(JOURNAL, mark(2), [line(3)]) == (True, 3, [])
    assert ledger.read_after(JOURNAL, mark(1)) == (3, [line(2), line(3)])


def test_a_late_one_far_behind_reads_the_rest(opened):
    ledger = opened()
    lines = [line(number) for number in range(1, 601)]
    ledger.append_if(JOURNAL, mark(0), lines)

    answer = ledger.append_if(JOURNAL, mark(0), [line(1, "late")])
    news = ledger.read_after(JOURNAL, mark(len(answer.lines)))

    assert (answer.done, answer.head) == (False, 600)
    assert answer.lines + news.lines == lines


def test_streams_do_not_disturb_each_other(opened):
    ledger = opened()
    for stream in (JOURNAL, "conversations/a", "conversations/b", "conversations/ä%_"):
        ledger.append_if(stream, mark(0), [line(1)])

    assert ledger.ends("conversations/").keys() == {
        "conversations/a",
        "conversations/b",
        "conversations/ä%_",
    }
    assert ledger.ends("conversations/_") == {}
    ledger.append_if("conversations/a", mark(1), [line(2), line(3)])
    assert ledger.ends() == {
        JOURNAL: mark(1), "conversations/a": mark(3), "conversations/b": mark(1), "conversations/ä%_": mark(1),
    }  # fmt: skip


def test_another_history_is_a_conflict(opened):
    ledger = opened()
    ledger.append_if(JOURNAL, mark(0), [line(1), line(2)])
    other = Mark(1, "f" * 16)

    for refused in (
        lambda: ledger.read_after(JOURNAL, other),
        lambda: ledger.append_if(JOURNAL, other, [line(2)]),
        lambda: ledger.append_if(JOURNAL, Mark(2, "f" * 16), [line(3)]),
        lambda: ledger.read_after(JOURNAL, mark(3)),
        lambda: ledger.append_if(JOURNAL, mark(3), [line(4)]),
    ):
        with pytest.raises(Conflict):
            refused()
    assert ledger.head(JOURNAL) == 2
    assert ledger.read_after(JOURNAL, Mark(1, "")).lines == [line(2)]


def test_a_turn_keeps_others_waiting(opened):
    ledger, other = opened(), opened()
    ledger.append_if(JOURNAL, mark(0), [line(1)])
    answers = []

    with ledger.turn(JOURNAL, mark(0)) as news:
        waiting = threading.Thread(
            target=lambda: answers.append(other.append_if(JOURNAL, mark(1), [line(2, "o")]))
        )
        waiting.start()
        time.sleep(0.1)
        assert answers == []
        assert ledger.append_if(JOURNAL, mark(1), [line(2)]) == (True, 2, [])
        waiting.join()

    assert news == (1, [line(1)])
    assert answers == [(False, 2, [line(2)])]


def test_a_turn_that_is_not_used_changes_nothing(opened):
    ledger, other = opened(), opened()
    with pytest.raises(ZeroDivisionError), ledger.turn("new", mark(0)):
        raise ZeroDivisionError

    assert (ledger.head("new"), other.append_if("new", mark(0), [line(1)]).done) == (0, True)
    assert ledger.append_if("new", mark(1), [line(2)]).done


def test_blobs_are_kept_once_by_their_content(opened):
    ledger, data = opened(), bytes(range(256)) * 100
    name = ledger.put_blob(data)

    assert (opened().put_blob(data), ledger.get_blob(name)) == (name, data)
    with pytest.raises(NotFound):
        ledger.get_blob("0" * 64)
    opened().drop_blob(name)
    ledger.drop_blob(name)
    with pytest.raises(NotFound):
        ledger.get_blob(name)
    assert (ledger.put_blob(data), ledger.get_blob(name)) == (name, data)


def test_a_stream_may_start_from_a_snapshot(opened):
    ledger = opened()
    first, second = ledger.put_blob(b"state of 10"), ledger.put_blob(b"state of 11")
    part = ledger.put_blob(b"part of 10")

    assert ledger.set_base(JOURNAL, Mark(10, "a" * 16), first, [part]) == ""
    assert (ledger.head(JOURNAL), ledger.base(JOURNAL), ledger.base("none")) == (10, (10, first), (0, ""))
    assert ledger.append_if(JOURNAL, Mark(10, "a" * 16), [line(11), line(12)]).done
    ledger.drop_blob(part)
    assert ledger.get_blob(part) == b"part of 10"
    with pytest.raises(Conflict):
        ledger.read_after(JOURNAL, Mark(10, "b" * 16))
    assert ledger.set_base(JOURNAL, Mark(11, ""), second) == first
    assert ledger.set_base(JOURNAL, Mark(10, ""), first) is None
    assert ledger.base(JOURNAL) == (11, second)
    ledger.drop_blob(part)
    with pytest.raises(NotFound):
        ledger.get_blob(part)

    assert opened().read_after(JOURNAL, Mark(10, "")) == (12, [line(11), line(12)])
    assert (ledger.base(JOURNAL), ledger.head(JOURNAL)) == ((11, second), 12)
    ledger.drop_blob(second)
    assert ledger.get_blob(second) == b"state of 11"
    with pytest.raises(Conflict):
        ledger.read_after(JOURNAL, Mark(3, ""))


def test_many_threads_of_one_ledger_lose_nothing(opened):
    ledger = opened()

    def write(who):
        for number in range(8):
            at = 0
            while not (answer := ledger.append_if("s", Mark(at, ""), [line(at + 1, f"{who}-{number}")])).done:
                at = answer.head

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(
        log.unsealed(one)["operation"] for one in ledger.read_after("s", Mark(0, "")).lines
    ) == sorted(f"{who}-{number}" for who in range(4) for number in range(8))


def test_a_forked_child_connects_by_itself(opened):
    ledger = opened()
    ledger.append_if("s", Mark(0, ""), [line(1)])

    def child():
        assert ledger.append_if("s", Mark(1, ""), [line(2)]).done
        ledger.close()

    assert ended(start(child)) == 0
    assert ledger.read_after("s", Mark(0, "")) == (2, [line(1), line(2)])


def test_the_identity_is_that_of_the_colony(opened):
    assert opened().identity == opened().identity
    assert len(opened().identity) >= 32
