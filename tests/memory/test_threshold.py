from aether.memory.items import token_usage
from tests.memory.states import shipped
from tests.tables import rows


def filled(tokens, **limits):
    memory = shipped(**limits)["memory"]
    memory["working_memory"]["current_tokens"] = tokens
    return token_usage(memory)


@rows(("tokens", "needed"), [(0, False), (159_999, False), (160_000, True), (200_000, True)])
def test_compression_is_needed_from_four_fifths_of_the_capacity(tokens, needed):
    found = filled(tokens)

    assert (found.maximum, found.threshold, found.needed) == (200_000, 160_000, needed)


def test_the_threshold_is_a_whole_number_of_tokens():
    assert filled(0, capacity=999, percent=33).threshold == 329


def test_the_share_in_use_has_one_decimal():
    assert filled(1_234).percent == 0.6
    assert filled(200_000).percent == 100.0
    assert (
        token_usage(
            {
                "working_memory": {
                    "max_capacity_tokens": 0,
                    "current_tokens": 0,
                    "eviction_threshold_percent": 80,
                }
            }
        ).percent
        == 0.0
    )
