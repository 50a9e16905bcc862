import re
from datetime import timedelta

from aether.clock import new_id, short_id
from tests.homes import NOW


def test_an_id_names_its_kind_and_instant():
    assert re.fullmatch(r"wm_1772360100000007_[0-9a-f]{8}", new_id("wm", NOW + timedelta(microseconds=7)))


def test_ids_of_one_instant_differ():
    made = [new_id("wm", NOW, nth) for nth in range(20_000)]

    assert len(set(made)) == len(made)
    assert made == sorted(made)


def test_a_short_id_has_eight_random_digits_and_no_time():
    made = {short_id("phase_3") for _ in range(100)}

    assert len(made) == 100
    assert all(re.fullmatch(r"phase_3_[0-9a-f]{8}", each) for each in made)
