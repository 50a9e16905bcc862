"""Laws of proof: nothing is stored that no item bears out, and nobody but a person makes a person's rule."""

from hypothesis import given
from hypothesis import strategies as st

from aether.memory.proof import prove
from aether.text.words import find_quote

WORDS = (
    "never always push delete the a tests branch файлы 提交 to not main src/a.py 14 fetch_user ignore".split()
)


def texts():
    """Return a strategy of short texts of few words, so that some of them contain others."""
    return st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@st.composite
def items(draw):
    """Return a strategy of items of persons, machines and agents, some of them injected."""
    return [
        {
            "id": f"i{number}",
            "type": "observation",
            "content": draw(texts()),
            "metadata": {
                "evidence": draw(st.sampled_from(["person", "machine", "agent"])),
                "pointer": {"line": number},
                "injected": draw(st.booleans()),
            },
        }
        for number in range(draw(st.integers(0, 5)))
    ]


@st.composite
def answers(draw, *fields):
    """Return a strategy of items and of an answer about them; half of its quotes are words of an item."""
    found = draw(items())
    refs = st.lists(st.sampled_from(["i0", "1", "[2]", "#9", "nobody"]), max_size=2)
    quotes = st.just("") | texts() | st.sampled_from([item["content"] for item in found] or [""])
    entries = st.lists(
        st.fixed_dictionaries({"text": texts() | quotes.filter(bool), "quote": quotes, "items": refs}),
        max_size=4,
    )
    return found, {field: draw(entries) for field in fields}


@given(answers("rules", "open", "key_decisions"))
def test_a_stored_quote_is_in_its_item_with_its_evidence(case):
    items, answer = case

    done = prove(answer, items)

    by_id = {item["id"]: item for item in items}
    for field in answer:
        for entry in done.fields[field]:
            [item] = [by_id[name] for name in entry["items"]]
            assert find_quote(entry["quote"], [item["content"]]) == 0
            assert entry["evidence"] == item["metadata"]["evidence"]
            assert not item["metadata"]["injected"]
    assert all(entry["evidence"] == "person" for entry in done.fields["rules"])


@given(answers("rules", "open"))
def test_each_statement_is_stored_or_dropped_with_a_reason(case):
    items, answer = case

    done = prove(answer, items)

    stored = len(done.fields["rules"]) + len(done.fields["open"])
    assert stored + len(done.dropped) == sum(map(len, answer.values()))
    assert all(entry["why"] for entry in done.dropped)


@given(answers("rules"))
def test_without_items_of_persons_there_is_no_rule(case):
    items, answer = case
    others = [item for item in items if item["metadata"]["evidence"] != "person"]

    assert prove(answer, others).fields["rules"] == []


@given(answers("open"))
def test_an_invented_name_is_never_stored(case):
    items, answer = case
    lies = [{**entry, "text": f"{entry['text']} in ghost/written.py"} for entry in answer["open"]]

    assert prove({"open": lies}, items).fields["open"] == []
