"""Support: an invented summary is dropped, a true one is kept, with and without quotes, in several scripts."""

from hypothesis import given
from hypothesis import strategies as st

from aether.text.summary_checks import proven_lines, without_quotes
from tests.tables import rows

SOURCES = (
    "We decided to use SQLite for store.py, because one process writes. It has 3 tables.",
    "The tests of the parser pass. Push nothing to main.",
    "我们决定使用 SQLite，因为只有一个进程写入。端口是 8080。",
    "Мы решили использовать SQLite, потому что пишет один процесс.",
    "The deployment waits for the certificate of mx1.example.net.",
)


@rows(
    "line, proven",
    [
        ("The store is SQLite. «use SQLite for store.py»", True),
        ("The store is SQLite. «USE  sqlite for\tstore.py»", True),
        ("The store is Postgres. «use SQLite for store.py»", False),
        ("It has 4 tables. «It has 3 tables»", False),
        ("It has three tables. «It has 5 tables»", False),
        ("The customer approved it. «one process writes»", False),
        ("The tests of the parser fail. «The tests of the parser pass»", False),
        ("The port is 8080. «端口是 8080»", True),
        ("The file is other.py. «use SQLite for store.py»", False),
    ],
)
def test_a_line_is_as_good_as_its_quote(line, proven):
    assert bool(proven_lines(line, SOURCES).proven) == proven


@rows(
    "sentence, proven",
    [
        ("We use SQLite for store.py because one process writes.", True),
        ("We decided to use Postgres for store.py.", False),
        ("We decided not to use SQLite for store.py.", False),
        ("The store has 4 tables.", False),
        ("The certificate of mx1.example.net holds up the deployment.", True),
        ("The parser of the deployment uses main tables.", False),
        ("我们决定使用 SQLite。", True),
        ("我们决定使用 Redis。", False),
        ("端口是 9090。", False),
        ("Мы решили использовать SQLite.", True),
        ("Мы решили использовать Redis.", False),
    ],
)
def test_a_sentence_without_a_quote_has_to_stand_in_one_source(sentence, proven):
    assert bool(proven_lines(sentence, SOURCES).proven) == proven


def test_headings_stay_with_what_is_proven_and_the_rest_is_counted():
    checked = proven_lines(
        "## Decided\n- SQLite «use SQLite»\n- Redis «use Redis»\nOpen:\n- Nothing «nothing at all»", SOURCES
    )

    assert checked.kept == "## Decided\n- SQLite"
    assert (checked.proven, len(checked.dropped)) == (1, 2)
    assert "says 2 of 3 things" in checked.fault


def test_half_is_enough_and_nothing_is_not():
    assert proven_lines("SQLite «use SQLite»\nRedis «use Redis»", SOURCES).fault == ""
    assert proven_lines("", SOURCES).fault
    assert proven_lines("Anything at all.", ()).fault


def test_a_marker_about_the_goal_is_judged_by_what_it_says():
    assert proven_lines("[DECISION] use SQLite for store.py - LOCKED", SOURCES).proven == 1


@given(st.text(max_size=200), st.lists(st.text(max_size=80), max_size=3))
def test_what_is_kept_is_in_the_summary_whatever_it_says(summary, sources):
    checked = proven_lines(summary, sources)

    plain = "".join(without_quotes(summary).split())
    assert all("".join(line.split()) in plain for line in checked.kept.splitlines())
