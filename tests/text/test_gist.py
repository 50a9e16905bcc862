from aether.text.similarity import CACHED_CHARS, fingerprint
from tests.tables import rows


def signs(statement):
    return fingerprint(statement).signs


@rows(
    ("a", "b"),
    [
        ("1 minute", "60 seconds"),
        ("30s", "30 sec"),
        ("2 kB", "2000"),
        ("three times", "3x"),
        ("1,000 files", "1000 files"),
        ("5_000", "5000"),
        ("30秒", "30 seconds"),
        ("v2", "2"),
    ],
)
def test_equal_amounts_are_one_number(a, b):
    assert fingerprint(a).numbers == fingerprint(b).numbers != frozenset()


@rows(
    ("a", "b"), [("-5", "5"), ("1.5", "15"), ("123456789012345678", "123456789012345679"), ("5 s", "5 min")]
)
def test_other_amounts_are_other_numbers(a, b):
    assert fingerprint(a).numbers != fingerprint(b).numbers


@rows(
    ("text", "names"),
    [
        ("edit src/a.py", {"src/a.py"}),
        ("open /etc/hosts and ~/x", {"/etc/hosts", "~/x"}),
        ("call fetch_user and getName", {"fetch_user", "getname"}),
        ("pin 1.26.4 and v0.23.5", {"1.26.4", "0.23.5"}),
        ("on 2026-03-01", {"2026-03-01"}),
        ("see https://example.org/x?y=1 for more", {"https://example.org/x?y=1"}),
        ("pass --dry-run", {"--dry-run"}),
        ("issue #12 in phase 3", {"#12", "phase 3"}),
        ("write it in C++", {"C++"}),
        ("commit a1b2c3d4", {"a1b2c3d4"}),
        ("use os.path here", {"os.path"}),
        ("read/write access", set()),
    ],
)
def test_what_may_not_differ_is_a_name(text, names):
    assert fingerprint(text).names == names


def test_a_proper_name_inside_a_sentence_is_a_name_unless_everything_is_capital():
    assert fingerprint("we cache with Redis").names == {"redi"}
    assert fingerprint("All Words Are Written So").names == frozenset()


def test_a_negation_turns_its_whole_clause_and_no_other():
    assert signs("State files are never shared. Locks are short") == {
        "state": -1,
        "file": -1,
        "share": -1,
        "lock": 1,
        "short": 1,
    }
    assert signs("never share files but copy logs")["log"] == 1


def test_two_turns_undo_each_other():
    assert set(signs("Never disable caching").values()) == {1}
    assert set(signs("Never deploy without review").values()) == {1}


def test_what_is_rejected_is_turned_alone():
    assert signs("Use tabs, not spaces")["tab"] == 1
    assert signs("Use tabs, not spaces")["space"] == -1
    assert signs("Instead of spaces, use tabs") | {} == {"space": -1, "use": 1, "tab": 1}
    assert signs("Do not prefer tabs over spaces")["space"] == 1


def test_a_reason_weighs_little_and_decides_nothing():
    found = fingerprint("Use locks because 3 writers never wait")

    assert found.numbers == frozenset()
    assert found.signs["writer"] == 1
    assert found.weights["writer"] < found.weights["lock"]
    assert fingerprint("Because disks are slow, cache pages").weights["cach"] == found.weights["lock"]


def test_equal_words_are_one_term():
    assert fingerprint("initialise the colour").weights == fingerprint("initialize the color").weights
    assert fingerprint("set up the repo").weights == fingerprint("set up the repository").weights


def test_a_question_is_marked():
    assert fingerprint('Use tabs?"').question
    assert not fingerprint("Use tabs.").question


def test_kana_pairs_weigh_less_than_han_pairs():
    weights = fingerprint("保存する").weights

    assert weights["保存"] > weights["する"]


def test_a_long_statement_is_read_too():
    assert fingerprint("lock " * CACHED_CHARS).weights == fingerprint("lock").weights
