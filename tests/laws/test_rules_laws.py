from hypothesis import example, given
from hypothesis import strategies as st

from aether.text.classify import message_by_kind, rule, rules, without_lead_in
from aether.text.words import sentences


def requests():
    """Return a strategy of what people ask for: rules, bullets, lead-ins and wishes in any order, and any text."""
    words = (
        "- 1. ok. please remember that never use floats must always prefer tabs . ! ? the amounts are, I need"
    )
    parts = st.sampled_from(
        [*words.split(), "\n", "And same as always:", "before every commit", "from now on"]
    )
    return st.lists(parts, max_size=14).map(" ".join) | st.text(max_size=80)


@given(requests())
def test_the_wording_of_a_rule_stands_in_what_was_said(text):
    for sentence in sentences(text):
        found = rule(sentence)
        assert sentence.strip().endswith(without_lead_in(sentence))
        assert found is None or found.text in sentence


@given(requests())
@example("- and the amounts must never be floats")
def test_a_rule_in_its_own_words_is_the_same_rule(text):
    for found in rules(sentences(text), text):
        assert rule(found.text) == found


@given(requests())
def test_what_a_message_says_is_the_message_or_rules_that_stand_in_it(text):
    said = message_by_kind(text)
    assert said
    for kind, wording in said:
        assert wording == text or (kind in {"constraint", "preference"} and wording in " ".join(text.split()))
