from aether.text.picking import heaviest_fitting, longest_fitting, longest_front


def fit(sizes, target, depends_on=None):
    """Return the places kept of clauses of these sizes."""
    return sorted(
        longest_fitting(
            range(len(sizes)), lambda places: sum(sizes[place] for place in places),
            most=target, tried=40, close=0.01, depends_on=depends_on,
        )
    )  # fmt: skip


def test_everything_is_kept_where_it_fits():
    assert fit([5, 5], 10) == [0, 1]


def test_the_first_ones_are_kept_up_to_the_target():
    assert len(fit([10] * 1000, 4_005)) == 400


def test_uneven_sizes_are_fitted_too():
    sizes = [1] * 500 + [100] * 100

    assert fit(sizes, 2_000) == list(range(515))


def test_a_shorter_one_behind_fills_the_rest():
    assert fit([50, 70, 30, 15], 100) == [0, 2, 3]


def test_a_clause_that_depends_on_a_dropped_one_is_dropped():
    assert fit([50, 70, 30, 15], 100, {2: 1}) == [0, 3]


def test_nothing_is_kept_where_nothing_fits():
    assert fit([50, 70], -5) == []


def test_the_longest_front_is_the_last_number_that_fits():
    assert [longest_front(4, lambda number, most=most: number <= most) for most in (0, 2, 4, 9)] == [
        0,
        2,
        4,
        4,
    ]
    assert longest_front(0, lambda number: True) == 0


def test_without_a_tolerance_the_longest_front_is_found():
    for most in range(0, 1_300, 7):
        sizes = [1 + at * at % 37 for at in range(60)]
        found = longest_fitting(
            range(60), lambda places, sizes=sizes: sum(sizes[place] for place in places), most=most, tried=0
        )  # fmt: skip

        assert sum(sizes[: len(found)]) <= most
        assert len(found) == 60 or sum(sizes[: len(found) + 1]) > most


def test_the_heaviest_that_fit_are_taken_and_the_newest_of_equals():
    assert heaviest_fitting([(1, 0.5, 60), (2, 0.9, 50), (3, 0.5, 40), (4, 0.5, 40)], most=100) == {2, 4}
    assert heaviest_fitting([(1, 0.9, 101), (2, 0.1, 100)], most=100) == {2}
    assert heaviest_fitting([], most=100) == set()
