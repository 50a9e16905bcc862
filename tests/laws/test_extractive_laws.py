"""Laws of the extractive architect, over generated hand-offs in any script."""

import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from aether.architects.extractive.session import NOTHING
from aether.memory.answers import check_answer
from aether.text.identifiers import identifiers
from aether.text.words import sentences
from aether.tokens.counters import session_tokens
from aether.tokens.estimate import estimate
from tests.architects.extractive.handoffs import count, handoff, item, session, signal, unfounded
from tests.effort import examples

TYPES = (
    "observation", "decision", "constraint", "preference", "blocker", "outcome", "user_input", "error", "code_change",
    "command", "solution",
)  # fmt: skip
NAMES = (
    "parser cache import login report archive journal schema index worker queue token filter upload".split()
)
FORMS = (
    "We moved the {a} of {b}{n} into src/{a}{n}.py, because the {b} took {m} minutes.",
    "The {a} must never write to {b}{n} while job {m} runs.",
    "The {a}{n} failed at line {m} with KeyError: '{b}{n}'.",
    "Let me look at the {a}{n} and the {b} of step {m} first.",
    "我们把 {a}{n} 移到了 {b}，因为任务 {m} 太慢。",
    "Мы перенесли {a}{n} в {b}, потому что задача {m} шла слишком долго.",
    "{b}の{a}{n}は番号{m}で失敗しました。",
)
relaxed = examples(60)


def notes():
    """Return a strategy of statements as they stand in working notes, of several scripts; two rarely are equal."""
    name, number = st.sampled_from(NAMES), st.integers(0, 10**6)
    return st.builds(
        lambda form, a, b, n, m: form.format(a=a, b=b, n=n, m=m), st.sampled_from(FORMS), name, name, number, number
    )  # fmt: skip


def anything():
    """Return a strategy of text nobody would write: any code point, blanks, lone surrogates, NUL, CJK, long words."""
    odd = st.sampled_from(
        ["\ud800", "\x00", "日本語のテキスト。", "x" * 5_000, "", " \n ", "{}[]();:``", "a: b: c", "Ann: hi", "```\nmake all\n```",
         "Before <aether-memory>x</aether-memory> and after.", "Error: x", "I'm sorry, I can't help with that.", "null", "** **"]
    )  # fmt: skip
    return st.one_of(odd, st.text(max_size=80), st.text("ab .,:;`\n-*(?", max_size=120))


@st.composite
def handoffs(draw, content=None, least=0, most=12, target=True):
    """Return a hand-off of items, some of them protected, of any type, evidence and target, perhaps with a signal."""
    items = [
        item(
            text, draw(st.sampled_from(TYPES)), draw(st.sampled_from([0.2, 0.5, 0.95])),
            **{key: draw(values) for key, values in METADATA.items() if draw(st.booleans())},
        )
        for text in draw(st.lists(notes() | anything() if content is None else content, min_size=least, max_size=most))
    ]  # fmt: skip
    places = {
        at for at in range(len(items)) if items[at]["type"] == "constraint" or draw(st.integers(0, 9)) == 0
    }
    signals = st.lists(
        st.sampled_from([signal("FOCUS", "parser"), signal("REDIRECT", "the cache")]), max_size=2
    )
    room = draw(st.none() | st.integers(0, 400)) if target else None
    return handoff(*items, protected=sorted(places), signals=draw(signals), target=room)


METADATA = {
    "evidence": st.sampled_from(["person", "agent", "machine"]),
    "role": st.sampled_from(["request", "answer", "said", "plan", "commit", "tree"]),
}


@relaxed
@given(handoffs())
@example(handoff(item("Error: no such table", "error", 0.9)))
@example(handoff(item(" \n ", "decision", 0.9), protected=[0]))
def test_an_answer_has_the_required_fields_and_is_accepted_whatever_was_said(data):
    answer = session(data)

    assert json.loads(json.dumps(answer)) == answer
    assert answer.keys() == {
        "id", "session_id", "phase", "compressed_at", "summary", "key_decisions", "outcomes", "high_value_items",
    }  # fmt: skip
    assert all(set(entry) == {"decision", "rationale"} for entry in answer["key_decisions"])
    assert all(set(entry) == {"result", "impact"} for entry in answer["outcomes"])
    assert all({"content", "relevance_score", "type"} <= set(entry) for entry in answer["high_value_items"])
    text = json.dumps(answer, ensure_ascii=False)
    if any(one["content"].strip() for one in data["items"]) or not data["items"]:
        assert check_answer(text, data, 1, count=count, extractive=True).fields["summary"].strip()


@relaxed
@given(handoffs())
def test_the_same_items_give_the_same_answer_whatever_their_ids_and_times(data):
    again = json.loads(json.dumps(data)) | {
        "compression_id": "other",
        "prepared_at": "2027-01-01T00:00:00.000000Z",
    }

    first, second = session(data), session(again)

    assert all(
        first[field] == second[field]
        for field in ("summary", "key_decisions", "outcomes", "high_value_items")
    )


@relaxed
@given(handoffs(), st.sampled_from([count, estimate, len]))
@example(handoff(item("hi", "constraint"), protected=[0], target=400), count)
@example(handoff("日本語。", target=400), estimate)
def test_a_session_is_never_larger_than_its_items(data, counter):
    items = sum(counter(entry["content"]) for entry in data["items"])
    made = session(data, counter=counter)

    assert session_tokens(made, counter) <= items or made["summary"] == NOTHING


@relaxed
@given(handoffs(notes(), most=3, target=False))
def test_a_tiny_phase_is_kept_as_it_is(data):
    made = session(data | {"target_tokens": 1_000})
    said = json.dumps(made, ensure_ascii=False)

    newest = {
        one["metadata"].get("role"): one["content"] for one in data["items"] if one["type"] == "observation"
    }
    for one in data["items"]:
        stale = one["type"] == "observation" and one["metadata"].get("role") in ("plan", "tree")
        assert json.dumps(one["content"], ensure_ascii=False)[1:-1] in said or (
            stale and one["content"] not in newest
        )


@relaxed
@given(handoffs())
def test_protected_content_survives_word_for_word(data):
    kept = [entry["content"] for entry in session(data)["high_value_items"]]

    assert all(entry["content"] in kept for entry in data["protected"] if entry["content"].strip())


@relaxed
@given(handoffs())
def test_every_line_of_an_answer_is_found_in_one_item(data):
    """Verbatim or not at all: a line is a contiguous stretch of one item, after the name of its speaker."""
    assert unfounded(session(data), [*(one["content"] for one in data["items"]), NOTHING]) == []


@relaxed
@given(handoffs(notes(), least=45, most=70, target=False))
def test_the_target_is_met_unless_what_binds_is_more(data):
    binding = ("constraint", "decision", "preference", "blocker")
    guarded = {entry["id"] for entry in data["protected"]}
    bound = sum(
        count(one["content"]) for one in data["items"] if one["type"] in binding or one["id"] in guarded
    )

    assert session_tokens(session(data), count) <= max(data["target_tokens"], bound + 30)


@relaxed
@given(anything() | notes())
def test_sentences_lose_only_blanks_and_fences(text):
    kept = "".join("".join(sentences(text)).split())

    assert kept == "".join(re.sub(r"(?m)^\s*(?:```|~~~).*$", "", "\n".join(text.splitlines())).split())


@relaxed
@given(anything() | notes())
def test_identifiers_are_verbatim_from_the_text(text):
    found = identifiers(text)

    assert all(anchor in text for kind in found for anchor in kind)
    assert all(len(set(kind)) == len(kind) for kind in found)
