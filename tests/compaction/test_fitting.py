from aether.compaction.facts import CUT, LEAST_CHARS, fit_facts
from aether.compaction.shapes import Facts, Summary
from aether.compaction.summary import rendered
from aether.messages.tool_calls import ErrorFact, FileFact
from tests.tables import rows

RICH = Facts(
    goals=("Build the ledger service.",),
    requests=tuple(f"Please look at part {n} for ticket T-{n}0001." for n in range(8)),
    constraints=("Never touch the migrations.",),
    decisions=tuple(f"We decided on variant {n} because it is short." for n in range(14)),
    open_calls=("Bash: make test",),
    files=(
        FileFact("read.py", "read", 1, "aaaaaaaaaaaa"),
        FileFact("made.py", "created", 2, "bbbbbbbbbbbb"),
        FileFact("done.py", "changed", 1),
    ),
    errors=(ErrorFact("$ make\nno rule", open=False), ErrorFact("$ tox\nfailed", open=True)),
    names=tuple(f"name_{n}" for n in range(50)),
    lookups=("1 message in full: a", "2 messages in full: b"),
)


def chars(text):
    return len(text)


def size(facts):
    return len(rendered(Summary(1, facts, "")))


def test_what_fits_stays_as_it_is():
    assert fit_facts(RICH, count=chars, most=size(RICH)) == (RICH, [])


@rows("most", range(300, size(RICH), 97))
def test_the_result_fits_and_what_it_lacks_is_named(most):
    kept, lost = fit_facts(RICH, count=chars, most=most)

    assert size(kept) <= most or kept == Facts(
        goals=RICH.goals, constraints=RICH.constraints, lookups=RICH.lookups[-1:]
    )
    assert kept.goals == RICH.goals
    assert kept.constraints == RICH.constraints
    assert lost


def test_a_little_too_much_costs_only_an_error_that_is_over():
    kept, lost = fit_facts(RICH, count=chars, most=size(RICH) - 1)

    assert kept == RICH._replace(errors=RICH.errors[1:])
    assert lost == ["1 error that is over"]


def test_a_request_that_goes_leaves_its_names():
    kept, lost = fit_facts(RICH, count=chars, most=size(RICH) - 90)
    gone = len(RICH.requests) - len(kept.requests)

    assert 0 < gone <= 5
    assert kept.requests == RICH.requests[gone:]
    assert kept.names == (*(f"T-{n}0001" for n in range(gone)), *RICH.names)
    assert lost[-1] == f"{gone} requests"


def test_the_oldest_names_go_before_the_newest_and_before_decisions():
    some = Facts(decisions=RICH.decisions, names=RICH.names)

    kept, _ = fit_facts(some, count=chars, most=size(some) - 60)

    assert 40 <= len(kept.names) < 50
    assert kept.names == RICH.names[-len(kept.names) :]
    assert kept.decisions == RICH.decisions


def test_all_names_go_before_a_file():
    some = Facts(files=RICH.files, names=RICH.names)

    kept, _ = fit_facts(
        some, count=chars, most=size(Facts(files=tuple(one._replace(sha256="") for one in RICH.files)))
    )

    assert [file.path for file in kept.files] == ["read.py", "made.py", "done.py"]
    assert kept.names == ()


def test_the_newest_pointer_is_never_left_out():
    kept, _ = fit_facts(RICH, count=chars, most=1)

    assert kept.lookups == ("2 messages in full: b",)


def test_hashes_go_before_their_files():
    some = Facts(files=(*RICH.files[:2], FileFact("last.py", "read", 1)))

    assert fit_facts(some, count=chars, most=size(some) - 1)[0].files == (
        FileFact("read.py", "read", 1), FileFact("made.py", "created", 2, "bbbbbbbbbbbb"), FileFact("last.py", "read", 1),
    )  # fmt: skip

    bare = Facts(files=(FileFact("made.py", "created", 2),))

    assert fit_facts(some, count=chars, most=size(bare)) == (
        bare,
        [
            "1 hash of a file that was read",
            "1 hash of a file",
            "2 files that were read",
        ],
    )


def test_many_that_went_are_counted():
    _, lost = fit_facts(RICH, count=chars, most=400)

    assert "8 requests" in lost


def test_goals_and_constraints_that_alone_are_too_long_keep_their_beginnings():
    long = Facts(goals=("g" * 3_000,), constraints=("Never x.", "c" * 2_000))

    kept, lost = fit_facts(long, count=chars, most=1_500)

    assert size(kept) <= 1_500
    assert kept.goals[0].startswith("g" * 300)
    assert kept.goals[0].endswith(CUT)
    assert kept.constraints[0] == "Never x."
    assert lost == ["the ends of goals and constraints"]


def test_no_room_at_all_leaves_the_least_of_goals_and_constraints():
    kept, _ = fit_facts(RICH._replace(goals=("g" * 900,)), count=chars, most=1)

    assert kept == Facts(
        goals=("g" * LEAST_CHARS + CUT,), constraints=RICH.constraints, lookups=RICH.lookups[-1:]
    )


def test_facts_without_goals_can_become_nothing():
    assert fit_facts(Facts(names=("a_b",)), count=chars, most=1) == (Facts(), ["1 name"])


def test_thousands_of_entries_cost_no_counting_of_what_has_no_room():
    counted = []
    many = Facts(requests=tuple(f"Look at part {n} of the ledger again." for n in range(5_000)))

    def count(text):
        counted.append(len(text))
        return len(text)

    kept, lost = fit_facts(many, count=count, most=2_000)

    assert kept.requests == many.requests[-len(kept.requests) :]
    assert len(kept.requests) > 10
    assert sum(size > 50_000 for size in counted) == 1
    assert lost[0].endswith(" requests")
