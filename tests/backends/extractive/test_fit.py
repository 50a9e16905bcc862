from aether.backends.extractive.fit import fitting

COUNTED = len('{"summary":""}')


def fit(sizes, target, leans_on=None):
    """Return the places kept of clauses of these sizes, by characters."""
    found = {}

    def compose(places):
        text = "x" * sum(sizes[place] for place in places)
        found[text] = sorted(places)
        return {"summary": text}

    session = fitting(compose, range(len(sizes)), leans_on or {}, target_tokens=target + COUNTED, count=len)
    return found[session["summary"]]


def test_everything_is_kept_where_it_fits():
    assert fit([5, 5], 10) == [0, 1]


def test_the_first_ones_are_kept_up_to_the_target():
    assert len(fit([10] * 1000, 4_005)) == 400


def test_uneven_sizes_are_fitted_too():
    sizes = [1] * 500 + [100] * 100

    assert fit(sizes, 2_000) == list(range(515))


def test_a_shorter_one_behind_fills_the_rest():
    assert fit([50, 70, 30, 15], 100) == [0, 2, 3]


def test_what_leans_on_a_clause_left_out_stays_out():
    assert fit([50, 70, 30, 15], 100, {2: 1}) == [0, 3]


def test_nothing_is_kept_where_nothing_fits():
    assert fit([50, 70], -5) == []
