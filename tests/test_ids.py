import re
from datetime import timedelta

from aether.ids import new_id
from tests.homes import NOW


def test_an_id_names_its_kind_and_instant():
    assert re.fullmatch(r"wm_1772360100000007_[0-9a-f]{8}", new_id("wm", NOW + timedelta(microseconds=7)))


def test_ids_of_one_instant_differ():
    made = [new_id("wm", NOW, nth) for nth in range(20_000)]

    assert len(set(made)) == len(made)
    assert made == sorted(made)
